#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# far_nodes.sh - the device tests with PEs on several nodes, over the virtual NIC, with lost packets too, by kernels that drive it
# and by kernels that leave their requests to the CPU; and what a failed work request makes of the job.
set -u
. "${top_srcdir:?}/tests/launch/lib.sh"
nic=$build/tests/softhca/softhca-run
here=$build/tests/device
[ -x "$nic" ] || skip_all "no virtual NIC"
export SHMEM_SYMMETRIC_SIZE=64M MARROW_IB_TIMEOUT=16 MARROW_TRANSPORT=ibgda TAP_TIMEOUT=170

# passes NODES PES OPTIONS TEST: all points of the test, over the NIC.
passes() {
    local nodes=$1 n=$2 test=$4
    local -a options=()
    [ "$3" = - ] || read -ra options <<< "$3"
    go 180 "$nic" ${options[@]+"${options[@]}"} "$oshrun" --nodes "$nodes" -n "$n" "$here/$test"
    holds "$MARROW_TRANSPORT: $test, $n PEs on $nodes nodes${options[*]:+, ${options[*]}}" \
        eval '[ "$status" = 0 ] && grep -q "^1\.\." "$dir/out" && ! grep -q "^not ok" "$dir/out"'
}

for MARROW_TRANSPORT in ibgda proxy; do
    for t in rma sync words far count; do
        passes 2 2 - "$t"
        # four PEs, each with a thread for its kernels and one for its NIC, take long over a barrier on two cores
        [ "$MARROW_TRANSPORT $t" = "proxy sync" ] || passes 2 4 - "$t"
    done
    passes 3 3 - sync
    MARROW_SIMT_SEED=7 passes 2 2 "--faults loss=1%" far
    MARROW_QUEUE_DEPTH=64 passes 2 2 - far
    MARROW_NIC_MESSAGE=100 passes 2 2 - rma
    passes 2 4 "--devices 2" far
    passes 2 2 "--devices 2 --faults loss=1%" rma
done
MARROW_TRANSPORT=proxy passes 2 2 - far_idle

# Queues without a doorbell record; the NIC's counters say that they were rung.
rung() { holds "its doorbells are those of queues without a record" eval 'grep -Eq "bare_doorbells +[1-9]" "$dir/err" "$dir/out"'; }
for MARROW_TRANSPORT in ibgda; do
    export MARROW_NO_DBR=on MARROW_STRICT=1
    passes 2 2 "--no-dbr 15 --stats" far
    rung
    MARROW_QUEUE_DEPTH=64 passes 2 4 "--no-dbr 6 --stats" far
    rung
    passes 2 2 "--no-dbr 15 --devices 2 --faults loss=1%,doorbell=50us" rma
    unset MARROW_NO_DBR MARROW_STRICT
done

# fails NAME KIND REGEX OPTIONS
fails() {
    local regex=$3
    local -a options=()
    [ "$4" = - ] || read -ra options <<< "$4"
    go 60 "$nic" ${options[@]+"${options[@]}"} "$oshrun" --nodes 2 -n 2 "$here/far_bad" "$2"
    holds "$MARROW_TRANSPORT: $1: the job says so and ends" \
        eval '[ "$status" != 0 ] && [ "$status" != 124 ] && cat "$dir/out" "$dir/err" | grep -Eq -- "$regex"'
    holds "$MARROW_TRANSPORT: $1: nobody takes it for success" eval '! cat "$dir/out" "$dir/err" | grep -q "has ended"'
}

export MARROW_IB_TIMEOUT=13 MARROW_IB_RETRY=3
at='PE 1 failed on mlx5_0 port 1'
for MARROW_TRANSPORT in ibgda proxy; do
    fails "a wrong key" key "(shmem_p|shmem_quiet).*in a kernel: .* to $at: .*syndrome 0x" -
    fails "a wrong key, and a wait for a flag" wait "in a kernel: .* to $at: .*syndrome 0x" -
    fails "a queue that fails" queue "in a kernel: .* to $at: .*syndrome 0x" "--faults qperr=100:0x02"
    fails "a wrong key, and two devices" key "in a kernel: .* to PE 1 failed on mlx5_1 port 1: .*syndrome 0x" "--devices 2"
done
done_testing
