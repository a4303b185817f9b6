# SPDX-License-Identifier: BSD-3-Clause
# gen-api.awk - turns the tables of api/ into headers, lists, tests and manual pages.
#
#   awk -v out=KIND -f gen-api.awk types.tab api.tab plain.tab device.tab
#
# KIND   header    shmem/api.h            exthdr    shmem/apix.h
#        pshmem    pshmem.h               generic   shmem/generic.h
#        device    shmem/api_device.h    devcalls  DEVCALL(...) of each of its routines with some types
#        types     types_x.h              list      NAME KIND PAGE of each routine
#        pages     names of the pages     alias     ALIAS PAGE of each further name of a page
#        table     ROUTINE(...) of each   calls     CALL(...) of each typed and sized routine
#        gencalls  CALL(...) of each generic with each of its types
#        man       all pages, each after a line `.\" page NAME`; takes -v version=V -v date=DATE
#
# POSIX awk: tested with mawk, gawk, busybox and the original awk.

BEGIN {
    scope["t"] = "SHMEMI_THREAD"; scope["w"] = "SHMEMI_WARP"; scope["b"] = "SHMEMI_BLOCK"
    ending["w"] = "_warp"; ending["b"] = "_block"
    kind_of["float"] = "SHMEMI_RED_F32"; kind_of["double"] = "SHMEMI_RED_F64"
    kind_of["complexf"] = "SHMEMI_RED_C32"; kind_of["complexd"] = "SHMEMI_RED_C64"
}
BEGIN { classes = "raebslmpofwdc"; bits[1] = 8; bits[2] = 16; bits[3] = 32; bits[4] = 64; bits[5] = 128 }

FNR == 1 { nfile++; page = 0; key = "" }
/^[ \t]*#/ && key != "ex" { next }
/^#/ { next }
NF == 0 { if (key == "ex") blank++; next }
nfile == 1 { type_row(); next }
/^[ \t]/ { more(); next }
$1 == "dev" { device_row(); next }
$0 ~ / : / { api_row(); next }
{ key_line() }

# ---- reading ----

function die(msg) {
    printf "%s:%d: %s\n", FILENAME, FNR, msg > "/dev/stderr"
    failed = 1
    exit 1
}

function type_row(    i) {
    if (NF < 3) die("want TYPENAME CLASSES TYPE")
    if ($1 in trow) die("TYPENAME " $1 " twice")
    for (i = 1; i <= length($2); i++)
        if (!index(classes "gh-", substr($2, i, 1))) die("unknown class " substr($2, i, 1))
    tname[++nt] = $1; trow[$1] = nt; tclass[nt] = $2
    ctype[nt] = $3
    for (i = 4; i <= NF; i++) ctype[nt] = ctype[nt] " " $i
    htype[nt] = ctype[nt]
    # C++ spells complex types another way: shmem.h has a name for each
    if (ctype[nt] ~ /_Complex$/) htype[nt] = "shmemi_" tname[nt]
}

function rest(n,    s, i) {
    s = $0
    for (i = 1; i <= n; i++) sub(/^[ \t]*[^ \t]+[ \t]*/, "", s)
    return s
}

function add(old, text) { return old == "" ? text : old " " text }

function key_line(    w) {
    key = $1; blank = 0
    if (key == "page") {
        if (NF != 3) die("want: page NAME SECTION")
        if ($2 in prow) die("page " $2 " twice")
        pname[++np] = $2; prow[$2] = np; psec[np] = $3; page = np
        return
    }
    if (key == "def") { defname = $2; if (defname in deftext) die("def " defname " twice"); deftext[defname] = rest(2); return }
    if (key == "arg") {
        if (NF != 2) die("want: arg NAME")
        argname = $2
        w = page ? "p" page : "f" nfile
        if ((w, argname) in argtext) die("arg " argname " twice")
        argtext[w, argname] = ""
        return
    }
    if (!page) die("\"" key "\" before the first page")
    if (key == "what" || key == "order" || key == "ret" || key == "err" || key == "note" || key == "see") {
        if ((page, key) in ptext) die(key " twice")
        ptext[page, key] = rest(1)
    } else if (key == "text")
        para[page, ++npara[page]] = rest(1)
    else if (key != "ex")
        die("unknown key " key)
}

function more(    s, w) {
    s = $0
    if (key == "ex") {
        for (; blank > 0; blank--) exline[page, ++nex[page]] = ""
        sub(/^  /, "", s)
        exline[page, ++nex[page]] = s
        return
    }
    sub(/^[ \t]+/, "", s)
    w = page ? "p" page : "f" nfile
    if (key == "arg") argtext[w, argname] = add(argtext[w, argname], s)
    else if (key == "dev") body[devname] = add(body[devname], s)
    else if (key == "def") deftext[defname] = add(deftext[defname], s)
    else if (key == "text") para[page, npara[page]] = add(para[page, npara[page]], s)
    else if ((page, key) in ptext) ptext[page, key] = add(ptext[page, key], s)
    else die("text without a key")
}

function device_row(    k) {
    key = "dev"; devname = $3
    k = index($0, " : ")
    if (NF < 5 || $4 != ":" || $2 !~ /^t?w?b?l?$/) die("want: dev SCOPES NAME : BODY")
    if (devname in body) die("dev " devname " twice")
    devline[devname] = FILENAME ":" FNR
    scopes[devname] = $2; body[devname] = substr($0, k + 3)
}

function api_row(    head, decl, n, f, i, k) {
    key = ""
    if (!page) die("routine before the first page")
    k = index($0, " : ")
    head = substr($0, 1, k - 1); decl = substr($0, k + 3)
    n = split(head, f, " ")
    rcls[++nr] = f[1]; rpage[nr] = page; rfile[nr] = nfile
    rwhere[nr] = FILENAME ":" FNR
    for (i = 2; i <= n; i++) flag(nr, f[i])
    if (decl !~ /^[a-z][A-Za-z0-9_%]*( \*| )[a-z_][A-Za-z0-9_%]*\(.*\)$/ && decl !~ /^%T [a-z_][A-Za-z0-9_%]*\(.*\)$/)
        die("not a prototype: " decl)
    k = index(decl, "(")
    rargs[nr] = substr(decl, k + 1, length(decl) - k - 1)
    head = substr(decl, 1, k - 1)
    match(head, /[A-Za-z0-9_%]+$/)
    rname[nr] = substr(head, RSTART); rres[nr] = substr(head, 1, RSTART - 1)
    check_row(nr)
}

function flag(r, f,    v) {
    v = f; sub(/^[a-z]+=/, "", v)
    if (f == "ctx") rctx[r] = 1
    else if (f == "gen") rgen[r] = 1
    else if (f ~ /^gen=/) rgenname[r] = v
    else if (f ~ /^dep=/) rdep[r] = v
    else if (f ~ /^old=/) rold[r] = v
    else if (f ~ /^more=/ && length(v) == 1 && index(classes, v)) rmore[r] = v
    else if (f == "noreturn") rnoret[r] = 1
    else if (f == "ext") rext[r] = 1
    else die("unknown flag " f)
}

function check_row(r,    c, i, n, p, w) {
    c = rcls[r]
    if (length(c) != 1 || !index(classes "z-", c)) die("unknown class " c)
    if ((index(classes, c) > 0) != (rname[r] ~ /%N/)) die("class " c " and %N in " rname[r] " do not go together")
    if ((c == "z") != (rname[r] ~ /%S/)) die("class z and %S in " rname[r] " do not go together")
    if (rctx[r] && rname[r] !~ /^shmem_/) die("ctx needs a name that starts with shmem_")
    if (rctx[r]) param_text(r, "ctx")
    n = params(r, p)
    for (i = 1; i <= n; i++) param_text(r, p[i])
    for (i = 1; i <= variants(r); i++) {
        once(full(r, i, 0))
        if (rctx[r]) once(full(r, i, 1))
    }
}

function once(name) {
    if (name in seen) die(name " twice")
    seen[name] = 1
}

# Names of the parameters, in order.
function params(r, p,    n, i, a) {
    if (rargs[r] == "void") return 0
    n = split(rargs[r], a, /, */)
    for (i = 1; i <= n; i++) {
        p[i] = a[i]
        sub(/^.*[ *]/, "", p[i])
    }
    return n
}

function param_text(r, p) {
    if (p == "...") return ""
    if (("p" rpage[r], p) in argtext) return argtext["p" rpage[r], p]
    if (("f" rfile[r], p) in argtext) return argtext["f" rfile[r], p]
    die("parameter " p " of " rname[r] " has no arg text")
}

# ---- what a row stands for ----

function variants(r,    t, n) {
    if (rcls[r] == "-") return 1
    if (rcls[r] == "z") return 5
    if ((r, "n") in var) return var[r, "n"]
    for (t = 1; t <= nt; t++)
        if (index(tclass[t], rcls[r]) || (rmore[r] && index(tclass[t], rmore[r]))) var[r, ++n] = t
    var[r, "n"] = n
    return n
}

function subst(s, r, i) {
    if (rcls[r] == "z") gsub(/%S/, bits[i], s)
    else if (rcls[r] != "-") { variants(r); gsub(/%N/, tname[var[r, i]], s); gsub(/%T/, htype[var[r, i]], s) }
    return s
}

function with_ctx(name) { sub(/^shmem_/, "shmem_ctx_", name); return name }

function full(r, i, ctx,    s) {
    s = subst(rname[r], r, i)
    return ctx ? with_ctx(s) : s
}

function ctx_args(r, ctx) {
    if (!ctx) return rargs[r]
    return rargs[r] == "void" ? "shmem_ctx_t ctx" : "shmem_ctx_t ctx, " rargs[r]
}

function proto(r, i, ctx, prefix) {
    return subst(rres[r], r, i) prefix full(r, i, ctx) "(" subst(ctx_args(r, ctx), r, i) ")" (rnoret[r] ? " SHMEM_NORETURN" : "")
}

function generic_name(r,    s) { s = rname[r]; sub(/%N_/, "", s); return s }

# Position of the first parameter that points to the type, without a context.
function type_arg(r,    n, i, a) {
    n = split(rargs[r], a, /, */)
    for (i = 1; i <= n; i++) if (a[i] ~ /%T \*/) return i
    return 0
}

# ---- text ----

function expand(s,    w, out2) {
    out2 = ""
    while (match(s, /@[a-z0-9]+/)) {
        w = substr(s, RSTART + 1, RLENGTH - 1)
        if (!(w in deftext)) { printf "gen-api: no def %s\n", w > "/dev/stderr"; failed = 1; exit 1 }
        out2 = out2 substr(s, 1, RSTART - 1) deftext[w]
        s = substr(s, RSTART + RLENGTH)
    }
    s = out2 s
    gsub(/  +/, " ", s)
    return s
}

# Fills `s` to lines of at most `width`, the first after `first`, the others after `later`.
function fill(s, first, later, width,    n, w, i, line, r) {
    n = split(s, w, " ")
    line = first; r = ""
    for (i = 1; i <= n; i++) {
        if (line != first && line != later && length(line) + 1 + length(w[i]) > width) {
            sub(/ +$/, "", line)
            r = r line "\n"; line = later
        }
        line = line (line == first || line == later ? "" : " ") w[i]
    }
    return r line "\n"
}

function comment(p,    i, r, n, a, k, done, label) {
    printf "/*\n"
    printf "%s", fill(pname[p] (psec[p] ~ /^[0-9]/ ? " (section " psec[p] ")" : "") ": " ptext[p, "what"] ".", " * ", " * ", 100)
    for (i = 1; i <= npara[p]; i++) { print " *"; printf "%s", fill(expand(para[p, i]), " * ", " * ", 100) }
    print " *"
    label = ""
    for (r = 1; r <= nr; r++) {
        if (rpage[r] != p) continue
        n = params(r, a)
        for (i = 1; i <= n; i++) {
            if (a[i] == "..." || (p, a[i]) in commented) continue
            commented[p, a[i]] = 1; label = "y"
            printf "%s", fill(param_text(r, a[i]), sprintf(" *   %-9s ", a[i]), " *             ", 100)
        }
    }
    if (label != "") print " *"
    if ((p, "order") in ptext) printf "%s", fill(expand(ptext[p, "order"]), " * Order: ", " *   ", 100)
    if ((p, "ret") in ptext) printf "%s", fill(expand(ptext[p, "ret"]), " * Result: ", " *   ", 100)
    if ((p, "err") in ptext) printf "%s", fill(expand(ptext[p, "err"]), " * Errors: ", " *   ", 100)
    print " */"
}

# ---- outputs ----

function banner(what) {
    print "/* SPDX-License-Identifier: BSD-3-Clause */"
    print "/* " what "  Generated by gen-api.awk from api/; do not edit. */"
}

function headers(ext,    p, r, i, ctx, any) {
    banner(ext ? "apix.h - the routines of shmemx.h." : "api.h - the routines of OpenSHMEM 1.6; included by shmem.h.")
    print "#ifndef SHMEM_API" (ext ? "X" : "") "_H\n#define SHMEM_API" (ext ? "X" : "") "_H\n"
    print "#ifdef __cplusplus\nextern \"C\" {\n#endif"
    for (p = 1; p <= np; p++) {
        any = 0
        for (r = 1; r <= nr; r++) {
            if (rpage[r] != p || rext[r] + 0 != ext) continue
            if (!any++) { print ""; comment(p) }
            if (rdep[r]) print "/* deprecated since " rdep[r] ": */"
            if (rold[r]) print "/* deprecated since " rold[r] ", not in 1.6's synopses: */"
            if (ext && (rname[r] in body)) print "#ifndef SHMEMI_DEVICE_API"
            for (ctx = 0; ctx <= rctx[r] + 0; ctx++)
                for (i = 1; i <= variants(r); i++) print "SHMEM_API " proto(r, i, ctx, "") ";"
            if (ext && (rname[r] in body)) print "#endif"
        }
    }
    print "\n#ifdef __cplusplus\n}\n#endif\n\n#endif"
}

# ---- the forms for kernels ----

# Can variant i of row r run in kernels?
function on_device(r, i) {
    return (rname[r] in body) && (rcls[r] == "-" || rcls[r] == "z" || tname[var[r, i]] != "longdouble" || scopes[rname[r]] ~ /l/)
}

function device_body(r, i, ctx, sc,    s, t) {
    s = body[rname[r]]
    gsub(/@C/, ctx ? "ctx" : "SHMEM_CTX_DEFAULT", s)
    gsub(/@S/, scope[sc], s)
    if (rcls[r] == "z") gsub(/%Y/, bits[i] / 8, s)
    else if (rcls[r] != "-") {
        t = tname[var[r, i]]
        gsub(/%Z/, t == "longdouble" ? 16 : "sizeof(" htype[var[r, i]] ")", s)
        gsub(/%W/, "SHMEMI_WORD(" htype[var[r, i]] ")", s)
        gsub(/%R/, (t in kind_of) ? kind_of[t] : "SHMEMI_RED_INT(" htype[var[r, i]] ")", s)
    }
    return subst(s, r, i)
}

function device_form(r, i, ctx,    name, res, args, n, a, k, s) {
    name = full(r, i, ctx); res = subst(rres[r], r, i); sub(/ $/, "", res)
    args = subst(ctx_args(r, ctx), r, i)
    n = split(args, a, /, */); s = ""
    for (k = 1; k <= n && args != "void"; k++) { sub(/^.*[ *]/, "", a[k]); s = s (k > 1 ? ", " : "") a[k] }
    printf "SHMEMI_BOTH(%s, %s, (%s), %s, (%s), %s)\n", res, name, args, (res == "void" ? "" : "return"), s, device_body(r, i, ctx, "t")
    for (k = 1; k <= length(scopes[rname[r]]); k++) {
        n = substr(scopes[rname[r]], k, 1)
        if (!(n in ending)) continue
        s = name; sub(/^shmemx?_/, "shmemx_", s)
        printf "SHMEMI_ONLY(%s, %s%s, (%s), %s)\n", res, s, ending[n], args, device_body(r, i, ctx, n)
    }
}

function device(    r, i, ctx) {
    banner("api_device.h - the routines for files with kernels; included by shmem.h instead of api.h.")
    print "#ifndef SHMEM_API_DEVICE_H\n#define SHMEM_API_DEVICE_H\n\n#include <shmem/device/api.h>"
    print "\n/* for the host alone, which NVRTC does not compile for */\n\n#if !defined(__CUDACC_RTC__)\n#ifdef __cplusplus\nextern \"C\" {\n#endif"
    for (r = 1; r <= nr; r++) {
        if (rext[r]) continue
        for (ctx = 0; ctx <= rctx[r] + 0; ctx++)
            for (i = 1; i <= variants(r); i++) if (!on_device(r, i)) print "SHMEM_API " proto(r, i, ctx, "") ";"
    }
    print "#ifdef __cplusplus\n}\n#endif\n#endif\n\n/* for both */\n"
    for (r = 1; r <= nr; r++)
        for (ctx = 0; ctx <= rctx[r] + 0; ctx++)
            for (i = 1; i <= variants(r); i++) if (on_device(r, i)) device_form(r, i, ctx)
    print "\n#endif"
}

function check_device(    n, r) {
    for (r = 1; r <= nr; r++) known[rname[r]] = 1
    for (n in body)
        if (!(n in known)) { printf "%s: no routine %s\n", devline[n], n > "/dev/stderr"; failed = 1 }
    if (failed) exit 1
}

function pshmem(    r, i, ctx) {
    banner("pshmem.h - the profiling names: each routine once more with a leading p (section 10).")
    print "#ifndef PSHMEM_H\n#define PSHMEM_H\n"
    print "/*\n * A tool that defines shmem_x itself reaches the library's own through pshmem_x.\n * The contracts are those of shmem.h.\n */"
    print "#include <shmem.h>\n\n#ifdef __cplusplus\nextern \"C\" {\n#endif\n"
    for (r = 1; r <= nr; r++) {
        if (rext[r]) continue
        for (ctx = 0; ctx <= rctx[r] + 0; ctx++)
            for (i = 1; i <= variants(r); i++) print "SHMEM_API " proto(r, i, ctx, "p") ";"
    }
    print "\n#ifdef __cplusplus\n}\n#endif\n\n#endif"
}

# The associations of a _Generic list: fundamental types, then exact-width ones where the class has no plain int.
# The inner default is for types that the outer list takes (a list that is not chosen must still be valid); a type
# that neither has ends as a call of 0, an error.
function assoc(r, ctx, sel, pad,    i, t, s, has_int, second) {
    s = ""; second = ""
    for (i = 1; i <= variants(r); i++) if (tname[var[r, i]] == "int") has_int = 1
    for (i = 1; i <= variants(r); i++) {
        t = var[r, i]
        if (index(tclass[t], "g")) s = s (s == "" ? "" : ", \\\n" pad) ctype[t] ": " full(r, i, ctx)
        else if (!has_int && index(tclass[t], "h")) second = second (second == "" ? "" : ", \\\n" pad) ctype[t] ": " full(r, i, ctx)
    }
    if (second != "") s = s ", \\\n" pad "default: _Generic(" sel ", \\\n" pad second ", \\\n" pad "default: 0)"
    return s
}

function generics(    r, k, sel, pad) {
    banner("generic.h - the type-generic names of C11; included by shmem.h.")
    print "#ifndef SHMEM_GENERIC_H\n#define SHMEM_GENERIC_H\n"
    print "/*\n * The type that the first array (or word) points to chooses the routine; a leading shmem_ctx_t chooses the"
    print " * shmem_ctx_ form.  Arguments are evaluated once.\n * A compound literal with commas stands in parentheses: ((long[]){1, 2}).\n */"
    print "#define SHMEMI_ARG1(a, ...) (a)\n#define SHMEMI_ARG2(a, b, ...) (b)"
    print "/* The first argument that is no context. */"
    print "#define SHMEMI_FIRST(...) \\\n    _Generic(SHMEMI_ARG1(__VA_ARGS__), \\\n        shmem_ctx_t: SHMEMI_ARG2(__VA_ARGS__), \\\n        default: SHMEMI_ARG1(__VA_ARGS__))"
    pad = "        "
    for (r = 1; r <= nr; r++) {
        if (rgenname[r]) {
            k = rargs[r]; sub(/ [^ ]*(,.*)?$/, "", k)
            printf "\n#define %s(...) \\\n    _Generic(SHMEMI_ARG1(__VA_ARGS__, 0), %s: %s, default: %s)(__VA_ARGS__)\n", rgenname[r], k, rname[r], rgenname[r]
        } else if (rgen[r] && rname[r] !~ /%N/) {
            printf "\n#define %s(...) \\\n    _Generic(SHMEMI_ARG1(__VA_ARGS__, 0), shmem_ctx_t: %s, default: %s)(__VA_ARGS__)\n", rname[r], full(r, 1, 1), rname[r]
        } else if (rgen[r] && rctx[r]) {
            sel = "*SHMEMI_FIRST(__VA_ARGS__, 0)"
            printf "\n#define %s(...) \\\n    _Generic(SHMEMI_ARG1(__VA_ARGS__, 0), \\\n    shmem_ctx_t: _Generic(%s, \\\n%s%s), \\\n    default: _Generic(%s, \\\n%s%s))(__VA_ARGS__)\n", generic_name(r), sel, pad, assoc(r, 1, sel, pad), sel, pad, assoc(r, 0, sel, pad)
        } else if (rgen[r]) {
            sel = "*SHMEMI_ARG" type_arg(r) "(__VA_ARGS__, 0)"
            printf "\n#define %s(...) \\\n    _Generic(%s, \\\n%s%s)(__VA_ARGS__)\n", generic_name(r), sel, pad, assoc(r, 0, sel, pad)
        }
    }
    print "\n#endif"
}

function type_lists(    k, n, c, p, t) {
    banner("types_x.h - X(NAME, T) for the TYPENAMEs of each class of api/types.tab.")
    print "#ifndef SHMEMI_TYPES_X_H\n#define SHMEMI_TYPES_X_H"
    n = split("r:RMA a:AMO e:AMO_EXT b:AMO_BIT s:SYNC l:RED_BIT m:RED_MINMAX p:RED_ARITH w:OLD_WAIT d:OLD_MINMAX c:OLD_ARITH", c, " ")
    for (k = 1; k <= n; k++) {
        split(c[k], p, ":")
        printf "\n#define SHMEMI_TYPES_%s(X)", p[2]
        for (t = 1; t <= nt; t++)
            if (index(tclass[t], p[1])) printf " \\\n    X(%s, %s)", tname[t], ctype[t]
        print ""
    }
    print "\n/* X(BITS, BYTES) for the sized routines. */"
    printf "#define SHMEMI_SIZES(X)"
    for (k = 1; k <= 5; k++) printf " \\\n    X(%d, %d)", bits[k], bits[k] / 8
    print "\n\n#endif"
}

# Types that a row has by more= alone are ours; class s has short and ushort, which 1.5 deprecated, besides the AMO types.
function kind(r, i,    c) {
    c = tclass[var[r, i]]
    if (rext[r] || (rmore[r] && !index(c, rcls[r]))) return "extension"
    if (rold[r]) return "old"
    return rdep[r] || (rcls[r] == "s" && !index(c, "a")) ? "deprecated" : "current"
}

function list(    r, i, ctx) {
    for (r = 1; r <= nr; r++)
        for (ctx = 0; ctx <= rctx[r] + 0; ctx++)
            for (i = 1; i <= variants(r); i++) print full(r, i, ctx), kind(r, i), pname[rpage[r]]
}

function aliases(    r, i, ctx, name) {
    for (r = 1; r <= nr; r++) {
        if (rgen[r] && !(generic_name(r) in prow) && !(generic_name(r) in said)) {
            said[generic_name(r)] = 1
            print generic_name(r), pname[rpage[r]]
        }
        for (ctx = 0; ctx <= rctx[r] + 0; ctx++)
            for (i = 1; i <= variants(r); i++) {
                name = full(r, i, ctx)
                if (!(name in prow) && !(name in said)) print name, pname[rpage[r]]
                said[name] = 1
            }
    }
}

# ---- manual pages ----

function roff(s) {
    gsub(/\\/, "\\e", s)
    gsub(/-/, "\\-", s)
    if (s ~ /^[.']/) s = "\\&" s
    return s
}

function man_text(s,    lines, n, i, r) {
    n = split(fill(expand(s), "", "", 78), lines, "\n")
    r = ""
    for (i = 1; i < n; i++) r = r roff(lines[i]) "\n"
    return r
}

function man_proto(s) {
    gsub(/%N/, "TYPENAME", s); gsub(/%T/, "TYPE", s); gsub(/%S/, "SIZE", s)
    return man_wrap(s ";")
}

# A prototype on lines of at most 76 characters.
function man_wrap(s,    r, cut) {
    r = ""
    while (length(s) > 76) {
        cut = 76
        while (cut > 20 && substr(s, cut, 2) != ", ") cut--
        if (cut <= 20) break
        r = r roff(substr(s, 1, cut)) "\n"
        s = "    " substr(s, cut + 2)
    }
    return r roff(s) "\n"
}

function synopsis(p,    r, ctx, any) {
    for (r = 1; r <= nr; r++) {
        if (rpage[r] != p) continue
        if ((rdep[r] || rold[r]) && any != "dep" rdep[r] rold[r]) {
            any = "dep" rdep[r] rold[r]
            printf "\nDeprecated since %s:\n", rdep[r] rold[r]
        }
        for (ctx = 0; ctx <= rctx[r] + 0; ctx++)
            printf "%s", man_proto(rres[r] (ctx ? with_ctx(rname[r]) : rname[r]) "(" ctx_args(r, ctx) ")")
    }
    any = 0
    for (r = 1; r <= nr; r++) {
        if (rpage[r] != p || !(rgen[r] || rgenname[r])) continue
        if (!any++) print "\nC11:"
        k = rgenname[r] ? rgenname[r] : generic_name(r)
        if (!rctx[r] || rname[r] ~ /%N/) printf "%s", man_proto(rres[r] k "(" rargs[r] ")")
        if (rctx[r]) printf "%s", man_proto(rres[r] k "(" ctx_args(r, 1) ")")
    }
}

function man_types(p,    r, i, s, c, other) {
    for (r = 1; r <= nr; r++) {
        if (rpage[r] != p || rcls[r] == "-" || (p, rcls[r]) in typed) continue
        typed[p, rcls[r]] = 1
        if (rcls[r] == "z") { print ".PP\nSIZE is one of 8, 16, 32, 64, 128: the bits of an element."; continue }
        s = ""
        for (i = 1; i <= variants(r); i++) s = add(s, tname[var[r, i]] (i < variants(r) ? "," : "."))
        c = rname[r]; sub(/^shmem_%N_/, "", c)
        print ".PP"
        printf "%s", man_text("TYPENAME (for " c (rdep[r] ? ", deprecated" : "") ") is one of " s)
    }
}

function man_section(title, s) { if (s != "") printf ".SH %s\n%s", title, man_text(s) }

function man_page(p,    i, r, n, a, k, nsee, see, nalias) {
    print ".\\\" SPDX-License-Identifier: BSD-3-Clause"
    printf ".TH %s 3 \"%s\" \"Marrow %s\" \"OpenSHMEM 1.6\"\n", toupper(pname[p]), date, version
    printf ".SH NAME\n%s \\- %s\n", pname[p], ptext[p, "what"]
    print ".SH SYNOPSIS\n.nf"
    print (rext_page(p) ? "#include <shmemx.h>" : "#include <shmem.h>") "\n"
    synopsis(p)
    print ".fi\n.SH DESCRIPTION"
    for (i = 1; i <= npara[p]; i++) printf "%s%s", (i > 1 ? ".PP\n" : ""), man_text(para[p, i])
    man_types(p)
    k = 0
    for (r = 1; r <= nr; r++) {
        if (rpage[r] != p) continue
        if (rctx[r]) k = man_arg(p, r, "ctx", k)
        n = params(r, a)
        for (i = 1; i <= n; i++) if (a[i] != "...") k = man_arg(p, r, a[i], k)
    }
    man_section("ORDER AND COMPLETION", ptext[p, "order"])
    man_section("RETURN VALUE", ptext[p, "ret"])
    man_section("ERRORS", ptext[p, "err"])
    man_section("NOTES", ptext[p, "note"])
    if (nex[p]) {
        print ".SH EXAMPLES\n.nf"
        for (i = 1; i <= nex[p]; i++) print roff(exline[p, i])
        print ".fi"
    }
    print ".SH \"SEE ALSO\""
    nsee = split(ptext[p, "see"], see, " ")
    for (i = 1; i <= nsee; i++) printf ".BR %s (3),\n", see[i]
    print ".BR shmem_env (7)"
    if (psec[p] ~ /^[0-9]/) print ".PP\nOpenSHMEM 1.6, section " psec[p] "."
}

function man_arg(p, r, name, k) {
    if ((p, name) in manned) return k
    manned[p, name] = 1
    if (!k) print ".SH ARGUMENTS"
    printf ".TP\n.I %s\n%s", name, man_text(param_text(r, name))
    return 1
}

function rext_page(p,    r) {
    for (r = 1; r <= nr; r++) if (rpage[r] == p) return rext[r] + 0
    return 0
}

# ---- tests ----

function table(    r, i, ctx, n) {
    banner("All routines, by name and profiling name.")
    for (r = 1; r <= nr; r++) {
        if (rext[r]) continue
        for (ctx = 0; ctx <= rctx[r] + 0; ctx++)
            for (i = 1; i <= variants(r); i++) { n = full(r, i, ctx); print "ROUTINE(" n ", p" n ")" }
    }
}

# An argument for parameter `p` (declared as `decl`) in a job of one PE; the buffers are those of tests/api.
function value(decl, p, name, t) {
    if (p == "ctx") return "ctx"
    if (p == "team") return "SHMEM_TEAM_WORLD"
    if (p == "status") return "NULL"
    if (p == "cmp") return "SHMEM_CMP_EQ"
    if (p == "cmp_value") return name ~ /_wait$/ ? "(" t ")1" : "(" t ")0"
    if (p == "sig_addr") return "&sig"
    if (p == "sig_op") return "SHMEM_SIGNAL_SET"
    if (p == "indices" || p == "pSync") return p
    if (p == "pe" || p == "PE_start" || p == "logPE_stride" || p == "PE_root") return "0"
    if (p == "nelems" || p == "nreduce") return "2"
    if (decl ~ /\*/) return "(" (decl ~ /^const/ ? "const " : "") t " *)buf_" p
    if (decl ~ /%T/) return "(" t ")1"
    return "1"
}

function call_args(r, ctx, t,    n, a, p, i, s) {
    n = split(ctx_args(r, ctx), a, /, */)
    s = ""
    for (i = 1; i <= n; i++) {
        p = a[i]; sub(/^.*[ *]/, "", p)
        s = s (i > 1 ? ", " : "") value(a[i], p, rname[r], t)
    }
    return s
}

# CALL(statement): one call of each typed and sized routine, or of each generic with each distinct type.
function calls(gen,    r, i, ctx, t, n, name) {
    banner("One call of each " (gen ? "generic with each of its types." : "typed and sized routine."))
    for (r = 1; r <= nr; r++) {
        if (rcls[r] == "-" || rext[r] || (gen && !rgen[r])) continue
        n = 0
        for (i = 1; i <= variants(r); i++) if (rcls[r] != "z" && tname[var[r, i]] == "int") n = 1
        for (ctx = 0; ctx <= rctx[r] + 0; ctx++)
            for (i = 1; i <= variants(r); i++) {
                if (gen && !index(tclass[var[r, i]], "g") && (n || !index(tclass[var[r, i]], "h"))) continue
                t = rcls[r] == "z" ? "void" : ctype[var[r, i]]
                name = gen ? generic_name(r) : full(r, i, ctx)
                print "CALL(" name ", (" call_args(r, ctx, t) "))"
            }
    }
}

# Arguments for a compiler alone: pointers to `buf`, a context that it does not know.
function device_args(r, i, ctx,    n, a, k, s) {
    if (ctx_args(r, ctx) == "void") return ""
    n = split(subst(ctx_args(r, ctx), r, i), a, /, */)
    for (k = 1; k <= n; k++) {
        sub(/[A-Za-z0-9_]+$/, "", a[k])
        s = s (k > 1 ? ", " : "") (a[k] ~ /\*/ ? "(" a[k] ")buf" : a[k] ~ /_t $/ && a[k] ~ /ctx|team/ ? "*(" a[k] "*)buf" : "1")
    }
    return s
}

# DEVCALL(name, arguments): each routine of kernels, at each scope; of the types a few of each kind.
function device_calls(    r, i, ctx, k, c, name) {
    banner("One call of each routine that runs in kernels, with some of its types.")
    for (r = 1; r <= nr; r++)
        for (ctx = 0; ctx <= rctx[r] + 0; ctx++)
            for (i = 1; i <= variants(r); i++) {
                if (!on_device(r, i)) continue
                if (rcls[r] == "z" ? i != 3 && i != 5 : rcls[r] != "-" && !(tname[var[r, i]] ~ /^(int|double|uint64|short|complexd)$/)) continue
                for (k = 1; k <= length(scopes[rname[r]]); k++) {
                    c = substr(scopes[rname[r]], k, 1)
                    if (!(c in scope)) continue
                    name = full(r, i, ctx)
                    if (c in ending) { sub(/^shmemx?_/, "shmemx_", name); name = name ending[c] }
                    print "DEVCALL(" name ", (" device_args(r, i, ctx) "))"
                }
            }
}

function check_see(    p, n, i, see) {
    for (p = 1; p <= np; p++) {
        if (!((p, "what") in ptext) || !npara[p]) { printf "gen-api: page %s lacks what or text\n", pname[p] > "/dev/stderr"; failed = 1 }
        n = split(ptext[p, "see"], see, " ")
        for (i = 1; i <= n; i++)
            if (!(see[i] in prow) && see[i] != "pshmem") { printf "gen-api: page %s: see %s: no such page\n", pname[p], see[i] > "/dev/stderr"; failed = 1 }
    }
    if (failed) exit 1
}

END {
    if (failed) exit 1
    check_see()
    check_device()
    if (out == "header") headers(0)
    else if (out == "exthdr") headers(1)
    else if (out == "pshmem") pshmem()
    else if (out == "device") device()
    else if (out == "generic") generics()
    else if (out == "types") type_lists()
    else if (out == "list") list()
    else if (out == "pages") { for (i = 1; i <= np; i++) print pname[i] }
    else if (out == "alias") aliases()
    else if (out == "table") table()
    else if (out == "calls") calls(0)
    else if (out == "gencalls") calls(1)
    else if (out == "devcalls") device_calls()
    else if (out == "man") { for (i = 1; i <= np; i++) { print ".\\\" page " pname[i]; man_page(i) } }
    else { printf "gen-api: unknown out=%s\n", out > "/dev/stderr"; exit 1 }
}
