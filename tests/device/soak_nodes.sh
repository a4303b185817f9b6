#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# soak_nodes.sh - soak.c with PEs on several nodes, so that near and far peers, kernels and hosts work on the same words; and what it
# makes of kernels that leave operations out.
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

# passes NODES PES SEED STEPS [OPTION]...
passes() {
    local nodes=$1 n=$2 seed=$3 steps=$4
    shift 4
    go 120 "$nic" "$@" "$oshrun" --nodes "$nodes" -n "$n" "$soak" "$seed" "$steps"
    holds "$n PEs on $nodes nodes, $(grep -om1 "seed [0-9]*" "$dir/out")${*:+, $*}" \
        eval '[ "$status" = 0 ] && grep -q "^1\.\." "$dir/out" && ! grep -q "^not ok" "$dir/out"'
}

if [ -x "$nic" ]; then
    export MARROW_TRANSPORT=ibgda
    passes 2 4 2 8
    passes 2 2 0 10
    passes 2 2 3 8 --faults loss=1%
fi
done_testing
