#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# check-nodes.sh - the multi-PE tests with 4 PEs on 1, 2 and 4 nodes, all ways at once: for a machine with many cores.
#
#     maint/check-nodes.sh (-t TARBALL | -b BUILD -s SOURCE) [-o OUT] [-j JOBS] [-l SECONDS] [-w LAUNCHERS] [-k NAME]
#                          [-W WAYS] [-r RAILS] [-S] [-c]
#
#   -t       a `make dist` tarball: configured and built first (into OUT/marrow)
#   -b, -s   a build tree and its source tree
#   -o       folder for logs (default: check-nodes.out)
#   -j       runs at the same time (default: a quarter of the cores)
#   -l       start no more runs after so many seconds (default: no limit); those not started are counted
#   -w       launchers (default: "oshrun mpirun"); with hosts (mpirun on pretended hosts) or srun, four such hosts are made
#   -k       only tests whose name contains NAME
#   -W       only these ways, in this order, such as "2/ibgda/0%/srun 4/proxy/1%/hosts" (NODES/TRANSPORT/LOSS/LAUNCHER)
#   -r       so many NICs a PE, on hosts each with a cable of its own (default 1)
#   -S       shorter tests (TAP_SHORT)
#   -c       goes on: what has passed in OUT is not run again
#
# What `make check-nodes-here' and `check-nodes-hosts' run test by test runs here as one job a test and a way.  Ends with
# `N passed, N failed, N not run'; exit status 0 when all ran and passed.
set -u

here=$(cd "$(dirname "$0")" && pwd)

usage() {
    sed -n '3,23s/^# \{0,1\}//p' "$0" >&2
    exit 2
}

tarball='' build='' source='' out=check-nodes.out jobs=$((($(nproc) + 3) / 4)) limit=0 launchers='oshrun mpirun' only=''
ways='' goes_on=no
while getopts t:b:s:o:j:l:w:k:W:r:Sc opt; do
    case $opt in
    t) tarball=$OPTARG ;;
    b) build=$OPTARG ;;
    s) source=$OPTARG ;;
    o) out=$OPTARG ;;
    j) jobs=$OPTARG ;;
    l) limit=$OPTARG ;;
    w) launchers=$OPTARG ;;
    k) only=$OPTARG ;;
    W) ways=$OPTARG ;;
    r) export MARROW_TEST_RAILS=$OPTARG ;;
    S) export TAP_SHORT=1 ;;
    c) goes_on=yes ;;
    *) usage ;;
    esac
done
[ $OPTIND -gt $# ] || usage
[ -n "$tarball" ] || { [ -n "$build" ] && [ -n "$source" ]; } || usage
out=$(mkdir -p "$out" && cd "$out" && pwd) || exit 1
if [ -n "$tarball" ]; then
    sh "$here/install-tarball.sh" "$tarball" "$out/marrow" --without-nvcc || exit 1
    build=$out/marrow/build source=$out/marrow/source
fi
build=$(cd "$build" && pwd) && source=$(cd "$source" && pwd) || exit 1
if [ -z "${HOSTS:-}" ]; then
    make -C "$build" -j"$(nproc)" check TESTS= >"$out/make.log" 2>&1 || { tail -n 20 "$out/make.log"; exit 1; }
    echo "# built in $SECONDS s"
fi

# Losses first, since they take longest.
all_ways() {
    local launcher transport loss nodes
    for loss in 1% 0%; do for nodes in 4 2 1; do for launcher in $launchers; do for transport in ibgda proxy; do
        echo "$nodes/$transport/$loss/$launcher"
    done; done; done; done
}
[ -n "$ways" ] || ways=$(all_ways)

# Pretended hosts: this script once more, on their host `login'.
case $ways in
*/hosts* | */srun*)
    if [ -z "${HOSTS:-}" ]; then
        why=$(bash "$source/tests/hosts/hosts" check) || { echo "check-nodes.sh: no pretended hosts: $why" >&2; exit 1; }
        again=(-b "$build" -s "$source" -o "$out" -j "$jobs" -l "$limit" -k "$only" -W "$ways")
        [ $goes_on = no ] || again+=(-c)
        HOSTS_SWITCH=$build/tests/hosts/switch exec bash "$source/tests/hosts/hosts" run 4 \
            bash "$here/check-nodes.sh" "${again[@]}"
    fi
    case $ways in *srun*) "$HOSTS" slurm || exit 1 ;; esac
    ;;
esac

plan() {
    local way test
    for way in $ways; do
        sed -n 's/^MP_TESTS += //p' "$source/tests/mp/Makefile.inc" | while read -r test; do
            case $test in *"$only"*) echo "$test $way" ;; esac
        done
    done
}

# log_of TEST WAY: the name of its logs, without an ending.
log_of() { echo "$out/runs/${1##*/}-${2//[\/%]/-}"; }

# one TEST WAY: through the driver, which bounds it.
one() {
    local to
    to=$(log_of "$1" "$2")
    ! grep -q '^:global-test-result: \(PASS\|SKIP\)' "$to.trs" 2>/dev/null || return 0
    [ "$limit" = 0 ] || [ $(($(date +%s) - started)) -lt "$limit" ] || return 0
    MARROW_TEST_NODES=$2 MARROW_TEST_NODES_ONLY=yes bash "$source/tests/driver.sh" --test-name "$1" --log-file "$to.log" \
        --trs-file "$to.trs" -- "./$1" >"$to.out" 2>&1 </dev/null
    grep -E '^(FAIL|ERROR)' "$to.out"
    return 0
}

[ $goes_on = yes ] || rm -rf "$out/runs"
mkdir -p "$out/runs"
started=$(date +%s)
export started limit out source
export top_srcdir=$source top_builddir=$build MPIRUN=${MPIRUN:-$(command -v mpirun || echo no)}
export -f one log_of
cd "$build" || exit 1
plan >"$out/plan"
xargs -P "$jobs" -n 2 bash -c 'one "$@"' one <"$out/plan"

echo "# $(($(date +%s) - started)) s, $jobs at a time; logs in $out/runs"
while read -r test way; do
    cat "$(log_of "$test" "$way").trs" 2>/dev/null || echo ":not-run"
done <"$out/plan" | awk '
    /^:not-run/ { left++ }
    /^:test-result: PASS/ { p++ }
    /^:test-result: (FAIL|ERROR)/ { f++ }
    /^:test-result: SKIP/ { sub(/^:test-result: SKIP ([0-9]+\/[a-z]+\/[0-9]+%\/[a-z]+: )?/, ""); s[$0]++ }
    END {
        for (why in s) printf "# skipped %d times: %s\n", s[why], why
        printf "%d passed, %d failed, %d not run\n", p, f, left
        exit f > 0 || left > 0 || !p
    }'
