#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# with_mpi.sh - a program that uses MPI too, started by mpirun; skipped where there is no mpicc.
set -u
. "${top_srcdir:?}/tests/launch/lib.sh"
[ "${MPIRUN:-no}" != no ] || skip_all "no mpirun"
[ "${MARROW_HAVE_PMIX:-yes}" = yes ] || skip_all "built without PMIx"
command -v "${MPICC:-mpicc}" > /dev/null || skip_all "no mpicc"
[ -z "${SANITIZE_FLAGS:-}" ] || skip_all "MPI is not sanitized"
launch=("$MPIRUN" --bind-to none --oversubscribe)
[ "$(id -u)" != 0 ] || launch+=(--allow-run-as-root)

go 120 "${MPICC:-mpicc}" -I"$top_srcdir/include" -I"$build/include" "$top_srcdir/tests/launch/with_mpi.c" \
    -o "$dir/with_mpi" -L"$build/src/.libs" -lmarrow -Wl,-rpath,"$build/src/.libs"
holds "it compiles" test "$status" = 0
for order in ms mm ss sm; do
    for n in 1 3; do
        go 90 "${launch[@]}" -n $n "$dir/with_mpi" $order
        holds "order $order, $n PEs: status 0" test "$status" = 0
        holds "order $order, $n PEs: both work" grep -qx "both work on $n" "$dir/out"
    done
done
go 90 "$oshrun" --launcher mpirun -n 2 "$dir/with_mpi" sm
holds "through oshrun" grep -qx "both work on 2" "$dir/out"
done_testing
