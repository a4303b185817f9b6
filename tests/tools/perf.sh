#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# perf.sh - shmem-perf gives a row for every test in each format, and refuses nonsense; it measures nothing.
set -u
oshrun=${top_builddir:?run by make check}/src/tools/oshrun
perf=$top_builddir/src/tools/shmem-perf
dir=$(mktemp -d "${TMPDIR:-/tmp}/marrow-perf.XXXXXX") || exit 99
trap 'rm -rf "$dir"' EXIT
points=0
bads=0
quick=(--seconds 0.0005 --iters 20 --max 256)

point() { # point STATUS NAME
    points=$((points + 1))
    if [ "$1" = 0 ]; then
        echo "ok $points - $2"
    else
        bads=$((bads + 1))
        echo "not ok $points - $2"
        sed 's/^/# /' "$dir/out" | head -20
    fi
}

go() { # go N OPTION...: output in $dir/out, status in $status
    local n=$1
    shift
    timeout 100 "$oshrun" -n "$n" "$perf" "$@" >"$dir/out" 2>&1
    status=$?
}

rows="init memcpy_to memcpy_from put put_bw get get_bw p p_rate g quiet fence ptr bare_fetch_add atomic_fetch
atomic_swap atomic_cswap atomic_fetch_inc atomic_fetch_add atomic_fetch_and atomic_fetch_or atomic_fetch_xor
atomic_set atomic_inc atomic_add atomic_and atomic_or atomic_xor atomic_add_rate atomic_fadd_nbi barrier sync team_sync
reduce_sum_long reduce_max_long reduce_sum_double inscan_sum_long exscan_sum_long broadcast fcollect collect
alltoall malloc_free lock_unlock lock_contended fetch_add_all"

# Every row: 14 fields, and 0 < min <= p50 <= p99 <= p99.9 <= max.
# shellcheck disable=SC2016
well_formed='BEGIN { FS = "," } /^#/ || $1 == "test" { next }
    NF != 14 || !($6 > 0 && $6 <= $7 && $7 <= $8 && $8 <= $9 && $9 <= $10) { bad = 1 } END { exit bad }'

for n in 1 2 3; do
    go $n "${quick[@]}" --csv
    point $status "$n PEs run all tests"
    missing=
    for row in $rows; do
        grep -q "^$row," "$dir/out" || missing="$missing $row"
    done
    [ -z "$missing" ]
    point $? "$n PEs: a row for each test${missing:+, but:$missing}"
    awk "$well_formed" "$dir/out"
    point $? "$n PEs: the figures of each row are in order"
done
[ "$(grep -c '^put,' "$dir/out")" = 3 ]
point $? "one row for each of the sizes 8, 64, 256"
grep -q '^putsignal,256,batch,' "$dir/out" && grep -q '^pwait,8,batch,' "$dir/out"
point $? "ping-pongs where there are two PEs"

go 2 "${quick[@]}" --json --tests put,barrier
point $status "JSON is written"
if command -v python3 >"$dir/which"; then
    python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
assert d["pes"] == 2 and {r["test"] for r in d["rows"]} == {"put", "barrier"} and d["clock_ns"] > 0' "$dir/out"
    point $? "and is JSON, with the rows that were asked for"
fi
go 2 "${quick[@]}" --pin --tests g
{ [ $status = 0 ] && grep -q '^ruler: ' "$dir/out" && grep -q '^g .* batch ' "$dir/out"; }
point $? "a table for people"

for bad in "--tests put,banana" "--min 64 --max 8" "--min 9 --max 63" "--max 7" "--min 65 --max 255 --csv" "--max 4X" "--min 0" "--seconds -1" "--iters 0" "extra" "--banana"; do
    # shellcheck disable=SC2086
    go 2 $bad
    [ $status = 1 ] && [ "$(grep -c "^shmem-perf: \|unrecognized" "$dir/out")" = 1 ]
    point $? "$bad is refused, once"
done
go 1 --help
{ [ $status = 0 ] && grep -q 'tests:.* putsignal' "$dir/out"; }
point $? "--help lists the tests"
SHMEM_SYMMETRIC_SIZE=1M go 2 --tests put
{ [ $status = 1 ] && grep -q 'heap is too small' "$dir/out"; }
point $? "too small a heap is said"

echo "1..$points"
exit $((bads > 0))
