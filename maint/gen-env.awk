# SPDX-License-Identifier: BSD-3-Clause
# gen-env.awk - the table of environment variables in shmem_env(7), from api/env.def.
#
#   awk -v version=V -v date=DATE -f gen-env.awk env.def
#
# POSIX awk.

# Lines of at most 78 characters.
function fold(s,    n, i, w, line, out) {
    n = split(s, w, " ")
    for (i = 1; i <= n; i++) {
        if (line != "" && length(line) + length(w[i]) > 77) { out = out line "\n"; line = "" }
        line = line (line == "" ? "" : " ") w[i]
    }
    return out line
}

function roff(s) { gsub(/\\/, "\\e", s); gsub(/-/, "\\-", s); return s }

# Field i of a row, without the quotes of a string.
function field(i,    s) {
    s = part[i]
    gsub(/^[ \t]*"?|"?[ \t]*$/, "", s)
    return s
}

# Splits the arguments of a row at the commas outside strings.
function parts(s,    n, i, c, in_string) {
    n = 1; part[1] = ""
    for (i = 1; i <= length(s); i++) {
        c = substr(s, i, 1)
        if (c == "\"") in_string = !in_string
        if (c == "," && !in_string) part[++n] = ""
        else part[n] = part[n] c
    }
    return n
}

/^SHMEMI_ENV\(.*\)[ \t]*$/ {
    s = $0; sub(/^SHMEMI_ENV\(/, "", s); sub(/\)[ \t]*$/, "", s)
    if (parts(s) != 7) { printf "%s:%d: want 7 fields\n", FILENAME, FNR > "/dev/stderr"; failed = 1; exit 1 }
    name = (field(2) == "SPEC" ? "SHMEM_" : "MARROW_") field(3)
    group = field(6)
    if (!(group in rows)) groups[++ngroups] = group
    text = field(7)
    rows[group] = rows[group] ".TP\n.B " name "\n" fold(roff(toupper(substr(text, 1, 1)) substr(text, 2)) ".") "\n" \
        "Kind " tolower(field(4)) (field(5) == "" ? ", no default" : ", default " roff(field(5))) ".\n"
    nrows++
}

END {
    if (failed) exit 1
    if (!nrows) { print "gen-env: no rows" > "/dev/stderr"; exit 1 }
    print ".\\\" SPDX-License-Identifier: BSD-3-Clause"
    printf ".TH SHMEM_ENV 7 \"%s\" \"Marrow %s\" \"OpenSHMEM 1.6\"\n", date, version
    print ".SH NAME\nshmem_env \\- environment variables of Marrow"
    print ".SH DESCRIPTION"
    print "The variables are read when the library is initialised."
    print "The PEs of a job should agree on them."
    print "Those of the specification, SHMEM_, may also be spelt SMA_ (deprecated);"
    print "where both are set, SHMEM_ wins."
    print ".PP"
    print fold("A variable with an empty value counts as unset; for a size, it ends the job.")
    print "A flag is on when it is set, but for 0, no, false and off."
    print "A size is a number, which may have a fraction, with k, m, g or t behind it"
    print "for the powers of 1024; a blank may stand between."
    print "Seconds may have a fraction; 0 turns a limit off."
    print fold("A value that does not parse, or is out of its range, ends the job with a message.")
    print ".PP"
    print fold("A variable whose name begins with MARROW_ but which is not in this list has no effect, and PE 0 says so once, " \
        "with the name that may have been meant; so it does for names with SHMEM_ or SMA_ that are nearly one of this list's.")
    print "With MARROW_STRICT=1 such a name ends the job."
    print fold("MARROW_TEST_ and what environment modules set (MARROW_ROOT, MARROW_HOME, ...) are left alone.")
    for (i = 1; i <= ngroups; i++)
        printf ".SS %s\n%s", toupper(substr(groups[i], 1, 1)) substr(groups[i], 2), rows[groups[i]]
    print ".SH \"SEE ALSO\"\n.BR shmem_init (3),\n.BR shmem_malloc (3)"
    print ".PP\nSHMEM_INFO=1 in the environment of a program prints this list"
    print "with the values in force."
}
