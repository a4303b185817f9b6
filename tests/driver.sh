#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# driver.sh - runs one test for `make check`: multi-PE programs under each launcher, unit tests, scripts.
#
# Automake calls it (custom test driver protocol).  By hand, for one program:
#   make check TESTS=tests/mp/NAME      MARROW_TEST_N=2 MARROW_TEST_LAUNCH=oshrun narrow the runs
#
# Exit status 77 of a test means skipped.  Every run is bounded by timeout(1).
set -u

name="" log="" trs="" color=no
while [ $# -gt 0 ]; do
    case $1 in
    --test-name) name=$2; shift 2 ;;
    --log-file) log=$2; shift 2 ;;
    --trs-file) trs=$2; shift 2 ;;
    --color-tests) color=$2; shift 2 ;;
    --expect-failure | --enable-hard-errors | --collect-skipped-logs) shift 2 ;;
    --) shift; break ;;
    *) echo "driver.sh: unknown option $1" >&2; exit 2 ;;
    esac
done
[ -n "$name" ] && [ -n "$log" ] && [ -n "$trs" ] && [ $# -gt 0 ] || {
    echo "usage: driver.sh --test-name T --log-file L --trs-file R -- PROGRAM..." >&2
    exit 2
}
program=("$@")
src=${top_srcdir:-.}
build=${top_builddir:-$PWD}
scale=${MARROW_TEST_SCALE:-1}
mpirun=${MPIRUN:-no}
oshrun=${OSHRUN:-$build/src/tools/oshrun}
: > "$log"
results=$(mktemp "${TMPDIR:-/tmp}/marrow-test.XXXXXX") || exit 2
trap 'rm -f "$results" "$results.out"' EXIT

# result KIND TEXT: one line of the .trs file.
result() { printf ':test-result: %s %s\n' "$1" "$2" >> "$results"; }

# read_tap LABEL STATUS STRICT: turns the TAP of $results.out into results.  A stream
# without its plan, or a bad exit status that no point explains, is a failure.
read_tap() {
    awk -v label="$1" -v status="$2" -v strict="$3" '
    function say(kind, text) { printf ":test-result: %s %s%s\n", kind, label, text }
    /^Bail out!/ { bail = 1; say("ERROR", $0) }
    /^1\.\.[0-9]+/ {
        plans++; plan = substr($1, 4) + 0
        if (plan == 0) { skipall = 1; why = $0; sub(/^1\.\.0[ #]*([Ss][Kk][Ii][Pp][ :]*)?/, "", why) }
        next
    }
    /^(not )?ok([ \t]|$)/ {
        points++
        text = $0; sub(/^(not )?ok[ \t]*[0-9]*[ \t]*(- )?/, "", text)
        if ($0 ~ /^not ok/) { bad++; say("FAIL", text) }
        else if (text ~ /# *[Ss][Kk][Ii][Pp]/) say("SKIP", text)
        else say("PASS", text)
    }
    END {
        if (bail) exit
        if (skipall && !points) { say("SKIP", why); exit }
        if (!points && !plans && !strict) {
            if (status == 77) say("SKIP", "exit status 77")
            else say(status == 0 ? "PASS" : "FAIL", "exit status " status)
            exit
        }
        if (status == 124 || status == 137) say("FAIL", "ran out of time")
        else if (plans != 1) say("FAIL", plans + 0 " plans (1..N), exit status " status)
        else if (plan != points) say("FAIL", "planned " plan " points, saw " points)
        else if (status != 0 && !bad) say("FAIL", "exit status " status)
        else if (status == 0 && bad) say("FAIL", "points failed but the exit status is 0")
        else if (points == 0) say("FAIL", "no points")
    }' "$results.out" >> "$results"
}

# bounded SECONDS COMMAND...: output to $results.out and the log, status in $status.
bounded() {
    local seconds=$(($1 * scale))
    shift
    {
        printf '\n## %s\n' "$*"
        timeout -k 5 "$seconds" "$@" < /dev/null > "$results.out" 2>&1
        status=$?
        cat "$results.out"
        printf '## exit status %d\n' "$status"
    } >> "$log"
}

# launch_line LAUNCHER N: the command words in front of the program, in ${launch[@]}.
# Fails, with the reason in $why, when that launcher is not here.
launch_line() {
    case $1 in
    oshrun) launch=("$oshrun" -n "$2"); [ -x "$oshrun" ] || { why="no $oshrun"; return 1; } ;;
    mpirun)
        [ "$mpirun" != no ] || { why="no mpirun"; return 1; }
        [ "${MARROW_HAVE_PMIX:-yes}" = yes ] || { why="built without PMIx"; return 1; }
        launch=("$mpirun" --bind-to none --oversubscribe -np "$2")
        [ "$(id -u)" != 0 ] || launch+=(--allow-run-as-root)
        ;;
    bare) launch=(env) ;;
    *) why="unknown launcher $1"; return 1 ;;
    esac
}

# one_run LAUNCHER N SECONDS LABEL EXPECT ENV... -- ARGS...
one_run() {
    local launcher=$1 n=$2 seconds=$3 label=$4 expect=$5
    local -a vars=()
    shift 5
    while [ "$1" != -- ]; do vars+=("$1"); shift; done
    shift
    if ! launch_line "$launcher" "$n"; then
        result SKIP "$label$why"
        return
    fi
    bounded "$seconds" env "TAP_TIMEOUT=$((seconds * scale - 2))" ${vars[@]+"${vars[@]}"} \
        "${launch[@]}" "${program[@]}" "$@"
    if [ -z "$expect" ]; then
        read_tap "$label" "$status" 1
    elif [ "$status" = 0 ]; then
        result FAIL "${label}ended with status 0, should have died"
    elif [ "$status" = 124 ] || [ "$status" = 137 ]; then
        result FAIL "${label}ran out of time, should have died by itself"
    elif ! grep -Eq -- "$expect" "$results.out"; then
        result FAIL "${label}died (status $status) without a line that matches $expect"
    else
        result PASS "${label}died as it should, status $status"
    fi
}

# run_row ROW: all runs of one `run:` line.
run_row() {
    local ns=1,2,3,4 launches=oshrun,mpirun seconds=60 word n l arg expect
    local -a vars=() args=()
    for word in $1; do
        case $word in
        n=*) ns=${word#n=} ;;
        launch=*) launches=${word#launch=} ;;
        timeout=*) seconds=${word#timeout=} ;;
        env=*) vars+=("${word#env=}") ;;
        args=*) IFS=, read -ra args <<< "${word#args=}" ;;
        *) result ERROR "unknown word in a run: line: $word"; return ;;
        esac
    done
    for l in ${launches//,/ }; do
        case ,${MARROW_TEST_LAUNCH:-$l}, in *,$l,*) ;; *) continue ;; esac
        for n in ${ns//,/ }; do
            case ,${MARROW_TEST_N:-$n}, in *,$n,*) ;; *) continue ;; esac
            if [ ${#dies[@]} = 0 ]; then
                one_run "$l" "$n" "$seconds" "$l n=$n${vars[*]:+ ${vars[*]}}${args[*]:+ ${args[*]}}: " "" \
                    ${vars[@]+"${vars[@]}"} -- ${args[@]+"${args[@]}"}
                continue
            fi
            for word in "${dies[@]}"; do
                arg=${word%%|*} expect=${word#*|}
                arg=${arg//[[:space:]]/} expect=${expect#"${expect%%[![:space:]]*}"}
                one_run "$l" "$n" "$seconds" "$l n=$n $arg: " "$expect" \
                    ${vars[@]+"${vars[@]}"} -- "$arg"
            done
        done
    done
}

# directive WORD: the text of every `WORD:` comment line of the test's source.
directive() {
    sed -n -E "s,^[ /]*\*+ *$1: *(.*[^ ]) *(\*/)?\$,\1,p; s,^/\* *$1: *(.*[^ ]) *\*/\$,\1,p" "$source" |
        sed 's, *\*/$,,'
}

case $name in
tests/mp/*)
    source=$src/$name.c
    [ -f "$source" ] || source=$src/$name.cc
    mapfile -t rows < <(directive run)
    mapfile -t dies < <(directive dies)
    [ ${#rows[@]} -gt 0 ] || rows=("")
    for row in "${rows[@]}"; do run_row "$row"; done
    ;;
tests/unit/*)
    export CK_TAP_LOG_FILE_NAME=- CK_VERBOSITY=silent CK_DEFAULT_TIMEOUT=$((20 * scale))
    bounded 180 "${program[@]}"
    read_tap "" "$status" 1
    ;;
*)
    bounded "${MARROW_TEST_TIMEOUT:-300}" "${program[@]}"
    read_tap "" "$status" 0
    ;;
esac

# The verdict: automake's words, and one line on the terminal for each result that is not a pass.
worst=PASS
if [ ! -s "$results" ]; then
    result SKIP "no run was asked for"
fi
if grep -q '^:test-result: ERROR' "$results"; then worst=ERROR
elif grep -q '^:test-result: FAIL' "$results"; then worst=FAIL
elif ! grep -q '^:test-result: PASS' "$results"; then worst=SKIP
fi
red="" green="" plain=""
if [ "$color" = yes ]; then red=$'\e[0;31m' green=$'\e[0;32m' plain=$'\e[m'; fi
passed=$(grep -c '^:test-result: PASS' "$results")
case $worst in
PASS) printf '%sPASS%s: %s (%d)\n' "$green" "$plain" "$name" "$passed" ;;
SKIP) printf 'SKIP: %s (%s)\n' "$name" "$(sed -n '1s/^:test-result: SKIP //p' "$results")" ;;
*)
    sed -n -E "s/^:test-result: (FAIL|ERROR) (.*)/${red}\1${plain}: ${name//\//\\/}: \2/p" "$results"
    ;;
esac
{
    cat "$results"
    echo ":global-test-result: $worst"
    case $worst in PASS | SKIP) echo ":recheck: no" ;; *) echo ":recheck: yes" ;; esac
    case $worst in PASS | SKIP) echo ":copy-in-global-log: no" ;; *) echo ":copy-in-global-log: yes" ;; esac
} > "$trs"
exit 0
