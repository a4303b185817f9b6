#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# check-nodes.sh - the multi-PE tests with 4 PEs on 1, 2 and 4 nodes, all ways at once: for a machine with many cores.
#
#     maint/check-nodes.sh (-t TARBALL | -b BUILD -s SOURCE) [-o OUT] [-j JOBS] [-l SECONDS] [-w LAUNCHERS] [-k NAME]
#
#   -t       a `make dist` tarball: configured and built first (into OUT/marrow)
#   -b, -s   a build tree and its source tree
#   -o       folder for logs (default: check-nodes.out)
#   -j       runs at the same time (default: a quarter of the cores)
#   -l       start no more runs after so many seconds (default: no limit); those not started are counted
#   -w       launchers (default: "oshrun mpirun")
#   -k       only tests whose name contains NAME
#
# What `make check-nodes-here' runs test by test runs here as one job a test and a way (NODES/TRANSPORT/LOSS/LAUNCHER).
# Ends with `N passed, N failed, N not run'; exit status 0 when all ran and passed.
set -u

here=$(cd "$(dirname "$0")" && pwd)

usage() {
    sed -n '3,17s/^# \{0,1\}//p' "$0" >&2
    exit 2
}

tarball='' build='' source='' out=check-nodes.out jobs=$((($(nproc) + 3) / 4)) limit=0 launchers='oshrun mpirun' only=''
while getopts t:b:s:o:j:l:w:k: opt; do
    case $opt in
    t) tarball=$OPTARG ;;
    b) build=$OPTARG ;;
    s) source=$OPTARG ;;
    o) out=$OPTARG ;;
    j) jobs=$OPTARG ;;
    l) limit=$OPTARG ;;
    w) launchers=$OPTARG ;;
    k) only=$OPTARG ;;
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
make -C "$build" -j"$(nproc)" check TESTS= >"$out/make.log" 2>&1 || { tail -n 20 "$out/make.log"; exit 1; }
echo "# built in $SECONDS s"

# Losses first, since they take longest.
plan() {
    local test launcher transport loss nodes
    for loss in 1% 0%; do for nodes in 4 2 1; do for launcher in $launchers; do for transport in ibgda proxy; do
        sed -n 's/^MP_TESTS += //p' "$source/tests/mp/Makefile.inc" | while read -r test; do
            case $test in *"$only"*) echo "$test $nodes/$transport/$loss/$launcher" ;; esac
        done
    done; done; done; done
}

# one TEST WAY: through the driver, which bounds it.
one() {
    local to=$out/runs/${1##*/}-${2//[\/%]/-}
    [ "$limit" = 0 ] || [ $(($(date +%s) - started)) -lt "$limit" ] || return 0
    MARROW_TEST_NODES=$2 MARROW_TEST_NODES_ONLY=yes bash "$source/tests/driver.sh" --test-name "$1" --log-file "$to.log" \
        --trs-file "$to.trs" -- "./$1" >"$to.out" 2>&1 </dev/null
    grep -E '^(FAIL|ERROR)' "$to.out"
    return 0
}

rm -rf "$out/runs"
mkdir -p "$out/runs"
started=$(date +%s)
export started limit out source
export top_srcdir=$source top_builddir=$build MPIRUN=${MPIRUN:-$(command -v mpirun || echo no)}
export -f one
cd "$build" || exit 1
plan >"$out/plan"
xargs -P "$jobs" -n 2 bash -c 'one "$@"' one <"$out/plan"

planned=$(wc -l <"$out/plan")
ran=$(find "$out/runs" -name '*.trs' | wc -l)
echo "# $(($(date +%s) - started)) s, $jobs at a time; logs in $out/runs"
find "$out/runs" -name '*.trs' -exec cat {} + | awk -v left=$((planned - ran)) '
    /^:test-result: PASS/ { p++ }
    /^:test-result: (FAIL|ERROR)/ { f++ }
    /^:test-result: SKIP/ { s[substr($0, 20)]++ }
    END {
        for (why in s) printf "# skipped %d times: %s\n", s[why], why
        printf "%d passed, %d failed, %d not run\n", p, f, left
        exit f > 0 || left > 0 || !p
    }'
