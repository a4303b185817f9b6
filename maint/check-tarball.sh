#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# check-tarball.sh - builds, tests and times a `make dist` tarball on a machine that has no autotools.
#
# usage: maint/check-tarball.sh TARBALL [OUT]
# Results go to OUT (default: ./check-tarball.out): configure.log, make.log, check.log, perf.txt.
# Exit status 0: everything passed.
set -eu

tarball=$(readlink -f "$1")
out=$(mkdir -p "${2:-check-tarball.out}" && cd "${2:-check-tarball.out}" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
jobs=$(getconf _NPROCESSORS_ONLN)

cd "$work"
tar xf "$tarball"
mv marrow-* source
mkdir build
cd build
../source/configure --prefix="$work/install" >"$out/configure.log" 2>&1
sed -n '/^marrow /,$p' "$out/configure.log"
make -j"$jobs" >"$out/make.log" 2>&1
make install >>"$out/make.log" 2>&1
PATH="$work/install/bin:$PATH"

failed=0
# One test at a time: each already runs several PEs.
timeout -k 5 400 make -k check >"$out/check.log" 2>&1 || failed=1
grep -E '^(FAIL|ERROR)|^# (TOTAL|PASS|FAIL|SKIP|ERROR)' "$out/check.log" || true

sed -n 's/^FAIL: \([^:]*\).*/\1/p' "$out/check.log" | sort -u | while read -r log; do
    tail -n 200 "${log%.sh}.log" "$log.log" 2>/dev/null | grep -B20 -A5 '^not ok' || true
done >"$out/failed.log"

matrix="$work/source/examples/data/poisson2d-32.mtx"
cg="$work/build/examples/cg"
oshrun -n 4 "$cg" "$matrix" --check || failed=1
if command -v mpirun >/dev/null; then
    oshrun --launcher mpirun -n 4 "$cg" "$matrix" --check || failed=1
fi
timeout -k 5 120 oshrun -n 2 shmem-perf --pin >"$out/perf.txt" 2>&1 || failed=1
timeout -k 5 60 oshrun -n 8 shmem-perf --tests barrier,sync >"$out/perf8.txt" 2>&1 || failed=1
exit $failed
