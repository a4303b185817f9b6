#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# soak_nodes.sh - soak.c with PEs on several nodes, so that near and far peers, kernels and hosts work on the same words; and what it
# makes of kernels that leave operations out; soak_coll.c likewise.
set -u
. "${top_srcdir:?}/tests/launch/lib.sh"
nic=$build/tests/softhca/softhca-run
soak=$build/tests/device/soak
export SHMEM_SYMMETRIC_SIZE=64M MARROW_IB_TIMEOUT=16 MARROW_CONNECT_TIMEOUT=60 TAP_TIMEOUT=110

# notices KIND: a run whose kernels leave out operations of that kind fails and names what is wrong.
notices() {
    go 120 "$oshrun" -n 2 "$soak" 1 20 0 "$1"
    holds "lost $1 is noticed" eval '[ "$status" = 1 ] && grep -q "^not ok" "$dir/out" && grep -Eq "# PE [01]: seed 1, step [0-9]+.*expected" "$dir/err"'
}

for kind in put put_nbi get get_nbi put_signal atomic atomic_nbi atomic_shared; do
    notices $kind
done

for kind in broadcast fcollect alltoall collect sum_reduce; do
    go 120 "$oshrun" -n 2 "${soak}_coll" 1 4 0 $kind
    holds "wrong values to $kind are noticed" eval '[ "$status" = 1 ] && grep -q "^not ok" "$dir/out" && grep -Eq "# PE [01]: seed 1, step [0-9]+: $kind of .*expected" "$dir/err"'
done

# passes PROGRAM NODES PES SEED STEPS [OPTION]...
passes() {
    local program=$1 nodes=$2 n=$3 seed=$4 steps=$5
    shift 5
    go 120 "$nic" "$@" "$oshrun" --nodes "$nodes" -n "$n" "$program" "$seed" "$steps"
    holds "$MARROW_TRANSPORT, ${program##*/}, $n PEs on $nodes nodes, $(grep -om1 "seed [0-9]*" "$dir/out")${*:+, $*}" \
        eval '[ "$status" = 0 ] && grep -q "^1\.\." "$dir/out" && ! grep -q "^not ok" "$dir/out"'
}

if [ -x "$nic" ]; then
    export MARROW_TRANSPORT=ibgda
    passes "$soak" 2 4 2 8
    passes "$soak" 2 2 0 10
    passes "$soak" 2 2 3 8 --faults loss=1%
    passes "${soak}_coll" 2 4 2 4
    passes "${soak}_coll" 3 3 0 4 --faults loss=1%
    # Kernels leave their requests to a thread.
    export MARROW_TRANSPORT=proxy
    passes "$soak" 2 2 4 8
    passes "$soak" 2 4 0 6 --faults loss=1%
    passes "${soak}_coll" 2 3 5 4
fi
done_testing
