#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# driver.sh - runs one test for `make check`: multi-PE programs under each launcher, unit tests, scripts.
#
# Automake calls it (custom test driver protocol).  By hand, for one program:
#   make check TESTS=tests/mp/NAME      MARROW_TEST_N=2 MARROW_TEST_LAUNCH=oshrun narrow the runs
#
# Multi-PE programs also run with 4 PEs on several nodes, over the virtual NIC (tests/softhca): a way is NODES/TRANSPORT/
# LOSS/LAUNCHER, such as 2/proxy/1%/mpirun.  MARROW_TEST_NODES says which: some (two that differ in nodes,
# transport, loss and launcher, and change from test to test), all, hosts (those of tests/hosts/hosts, when run there), none,
# or a list such as "2/ibgda/0%/oshrun 4/proxy/1%/mpirun".  MARROW_TEST_RAILS=2 gives each PE two NICs.  A test's source has a say in a line `nodes:`: n=20 PEs instead
# of 4; some=WAY,WAY, some=one (the first of the two) or some=no; dies=ARG,ARG of its ways to die.  Where some is
# wanted, the variable TAP_SHORT tells the program to do less.
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
nodes_wanted=${MARROW_TEST_NODES:-some}
nodes_only=${MARROW_TEST_NODES_ONLY:-no}
reduced=()
[ "$nodes_wanted" != some ] && [ -z "${TAP_SHORT:-}" ] || reduced=(TAP_SHORT=1)
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

# bounded SECONDS COMMAND...: output to $results.out and the log, status in $status; $late when the time was up.
bounded() {
    local seconds=$(($1 * scale)) from=$SECONDS
    shift
    {
        printf '\n## %s\n' "$*"
        timeout -k 5 "$seconds" "$@" < /dev/null > "$results.out" 2>&1
        status=$?
        late=no
        [ $((SECONDS - from)) -lt "$seconds" ] || late=yes
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
    local launcher=$1 n=$2
    shift 2
    if launch_line "$launcher" "$n"; then
        go "$@"
    else
        result SKIP "$2$why"
    fi
}

# go SECONDS LABEL EXPECT ENV... -- ARGS...: the program behind ${launch[@]}.
go() {
    local seconds=$1 label=$2 expect=$3
    local -a vars=()
    shift 3
    while [ "$1" != -- ]; do vars+=("$1"); shift; done
    shift
    bounded "$seconds" env "TAP_TIMEOUT=$((seconds * scale - 2))" ${vars[@]+"${vars[@]}"} \
        "${launch[@]}" "${program[@]}" "$@"
    if [ -z "$expect" ]; then
        read_tap "$label" "$status" 1
    elif [ "$status" = 0 ]; then
        result FAIL "${label}ended with status 0, should have died"
    elif [ "$status" = 124 ] || { [ "$status" = 137 ] && [ $late = yes ]; }; then # srun ends a job whose task died by SIGKILL
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

# ways: what MARROW_TEST_NODES stands for, one way a line.
ways() {
    local n t loss l sum
    case $nodes_wanted in
    none | no) ;;
    some | one)
        sum=$(cksum <<< "$name")
        sum=$((${sum%% *} % 4))
        for n in $([ $((sum % 2)) = 0 ] && echo 2/ibgda/0% 4/proxy/1% || echo 2/proxy/1% 4/ibgda/0%); do
            if [ $sum -lt 2 ]; then echo "$n/oshrun"; else echo "$n/mpirun"; fi
            sum=$(((sum + 2) % 4))
            [ $nodes_wanted = some ] && [ ${#dies[@]} = 0 ] || break # each way to die is a run
        done
        ;;
    all | hosts)
        for n in 1 2 4; do for t in ibgda proxy; do for loss in 0% 1%; do
            for l in $([ "$nodes_wanted" = all ] && echo oshrun mpirun || echo hosts srun); do
                echo "$n/$t/$loss/$l"
            done
        done; done; done
        ;;
    *) printf '%s\n' ${nodes_wanted//,/ } ;;
    esac
}

# launch_nodes PES NODES LOSS LAUNCHER: as launch_line; the program comes behind ${launch[@]}.
launch_nodes() {
    local nic=("$build/tests/softhca/softhca-run") pes=$1 per=$((($1 + $2 - 1) / $2))
    shift
    [ -x "${nic[0]}" ] || { why="no virtual NIC"; return 1; }
    nic+=(--devices "${MARROW_TEST_RAILS:-1}")
    [ "$2" = 0% ] || nic+=(--faults "loss=$2")
    case $3 in
    oshrun) launch=("${nic[@]}" "$oshrun" --nodes "$1" -n "$pes") ;;
    mpirun)
        launch_line mpirun "$pes" || return 1
        launch=("${nic[@]}" "$oshrun" --launcher mpirun --nodes "$1" -n "$pes")
        ;;
    hosts | srun)
        [ -n "${HOSTS:-}" ] || { why="not on pretended hosts"; return 1; }
        nic+=(--wire udp --link eth --net 10.77.0.0,10.78.0.0)
        launch=("$HOSTS" mpirun --oversubscribe -n "$pes" --map-by "ppr:$per:node" env "${exported[@]}" "${nic[@]}")
        [ "$3" = hosts ] || launch=(srun --mpi=pmix -N "$1" -n "$pes" --ntasks-per-node="$per" "${nic[@]}")
        ;;
    *) why="unknown launcher $3"; return 1 ;;
    esac
}

# run_nodes WAY ROW: one run, or one of each way to die, with what the row says but for PEs and launchers.
run_nodes() {
    local n t loss l word seconds=60 pes=4 which="" exported=()
    local -a vars=() args=()
    IFS=/ read -r n t loss l <<< "$1"
    case ,${MARROW_TEST_LAUNCH:-$l}, in *,$l,*) ;; *) return ;; esac
    for word in $2; do
        case $word in
        n=*) [ ${#nodes[@]} = 0 ] || pes=${word#n=} ;;
        dies=*) which=,${word#dies=}, ;;
        timeout=*) seconds=${word#timeout=} ;;
        env=*) vars+=("${word#env=}") ;;
        args=*) IFS=, read -ra args <<< "${word#args=}" ;;
        esac
    done
    [ "$seconds" -ge 150 ] || seconds=150 # a bound, not a measure: four virtual NICs may share two CPUs with other tests
    # A loaded machine's virtual NIC is slow to answer, and pins all of a heap.
    vars+=("MARROW_TRANSPORT=$t" MARROW_IB_TIMEOUT=16 ${reduced[@]+"${reduced[@]}"})
    case " ${vars[*]}" in *" SHMEM_SYMMETRIC_SIZE="*) ;; *) vars+=(SHMEM_SYMMETRIC_SIZE=64M) ;; esac
    exported=("${vars[@]}" "TAP_TIMEOUT=$((seconds * scale - 2))")
    if ! launch_nodes "$pes" "$n" "$loss" "$l"; then
        result SKIP "$1: $why"
    elif [ ${#dies[@]} = 0 ]; then
        go "$seconds" "$1${args[*]:+ ${args[*]}}: " "" "${vars[@]}" -- ${args[@]+"${args[@]}"}
    else
        for word in "${dies[@]}"; do
            t=${word%%|*} word=${word#*|}
            t=${t//[[:space:]]/}
            case ${which:-,$t,} in *,"$t",*) ;; *) continue ;; esac
            go "$seconds" "$1 $t: " "${word#"${word%%[![:space:]]*}"}" "${vars[@]}" -- "$t"
        done
    fi
}

# directive WORD: the text of every `WORD:` comment line of the test's source.
directive() {
    sed -n -E "s,^[ /]*\*+ *$1: *(.*[^ ]) *(\*/)?\$,\1,p; s,^/\* *$1: *(.*[^ ]) *\*/\$,\1,p" "$source" |
        sed 's, *\*/$,,'
}

case $name in
tests/device/*.sh)
    bounded "${MARROW_TEST_TIMEOUT:-300}" "${program[@]}"
    read_tap "" "$status" 0
    ;;
tests/mp/* | tests/device/*)
    source=$src/$name.c
    [ -f "$source" ] || source=$src/$name.cc
    mapfile -t rows < <(directive run)
    mapfile -t dies < <(directive dies)
    [ ${#rows[@]} -gt 0 ] || rows=("")
    [ "$nodes_only" = yes ] || for row in "${rows[@]}"; do run_row "$row"; done
    mapfile -t nodes < <(directive nodes)
    case ${nodes[0]:-} in
    no*) result SKIP "${nodes[0]#no }" ;;
    *some=*)
        way=${nodes[0]##*some=}
        [ "$nodes_wanted" != some ] || nodes_wanted=${way%% *}
        ;;&
    *) while read -r way; do run_nodes "$way" "${nodes[0]:-${rows[0]}}"; done < <(ways) ;;
    esac
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
