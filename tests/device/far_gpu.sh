#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# far_gpu.sh - the device tests with PEs on several nodes, where the library puts queues, tables and the device heap as it does for
# a GPU: in the memory of the stand-in driver (tests/fakecuda), which the virtual NIC reads and writes through that driver.
set -u
. "${top_srcdir:?}/tests/launch/lib.sh"
nic=$build/tests/softhca/softhca-run
here=$build/tests/device
[ -x "$nic" ] || skip_all "no virtual NIC"
export SHMEM_SYMMETRIC_SIZE=64M MARROW_IB_TIMEOUT=16 MARROW_TRANSPORT=ibgda TAP_TIMEOUT=170 TAP_DEVICE=1
export LD_LIBRARY_PATH=$build/tests/fakecuda FAKECUDA_KERNELS=$build/tests/fakecuda/kernels.so

# passes PES TEST NAME
passes() {
    go 180 "$nic" "$oshrun" --nodes 2 -n "$1" "$here/$2"
    holds "$2, $1 PEs on 2 nodes: $3" \
        eval '[ "$status" = 0 ] && grep -q "^1\.\." "$dir/out" && ! grep -q "^not ok" "$dir/out"'
}

for t in rma sync words far count; do
    passes 2 $t "queues in GPU memory"
done
MARROW_DEVICE_QPS=4 passes 2 rma "four queues a peer"
FAKECUDA_NO_DMA_BUF=1 FAKECUDA_IO=2 passes 2 words "no dma-bufs, doorbells as I/O memory"
FAKECUDA_NO_VMM=1 MARROW_DEVICE_HEAP=64M passes 2 words "a device heap that does not grow"
MARROW_IBGDA_MEMORY=host passes 2 words "queues in host memory"

MARROW_NO_DBR=on MARROW_STRICT=1 SOFTHCA_NO_DBR=15 passes 2 far "queues without doorbell records"
MARROW_NO_DBR=auto SOFTHCA_NO_DBR=15 FAKECUDA_IO=2 MARROW_IBGDA_MEMORY=host MARROW_DEVICE_QPS=4 passes 2 words \
    "the same, in host memory, four a peer"

# says NAME REGEX STATUS: how a small test ends (0, or 1 for not 0), and what it says.
says() {
    local regex=$2 bad=$3

    MARROW_LOG=debug go 100 "$nic" "$oshrun" --nodes 2 -n 2 "$here/words"
    holds "$1" eval '[ $((status != 0)) = "$bad" ] && cat "$dir/out" "$dir/err" | grep -Eq -- "$regex"'
}

says "the way is said" "kernels reach PEs of other nodes by ibgda: mlx5_0 port 1, queues in GPU memory, 1 for each PE" 0
says "rings are dma-bufs" "queues in GPU memory, registered as a dma-buf" 0
FAKECUDA_IO=0 MARROW_STRICT=1 says "no doorbells for kernels" \
    "kernels do not post to mlx5_0 port 1 themselves: the doorbell page of mlx5_0 cannot be mapped" 1
FAKECUDA_IO=0 says "no doorbells: a thread posts for kernels" "doorbell page of mlx5_0 cannot be mapped.*a thread of the CPU does it" 0
MARROW_TRANSPORT=proxy says "by plain verbs" "kernels leave their requests to a thread of the CPU" 0
bare="queues in GPU memory without doorbell records"
MARROW_NO_DBR=auto SOFTHCA_NO_DBR=15 says "no doorbell records" "$bare" 0
need="mlx5_0 port 1 has no queues without a doorbell record \(MARROW_NO_DBR=on\): "
MARROW_NO_DBR=on says "no such queues are offered" "$need.*it does not offer them .*kernels post with records there" 0
MARROW_NO_DBR=on MARROW_STRICT=1 says "the same is the end with MARROW_STRICT" "$need.*it does not offer them" 1
MARROW_NO_DBR=on SOFTHCA_NO_DBR=6 says "none as long" "$need.*they hold 64 entries at most, and MARROW_QUEUE_DEPTH asks for 1024" 0
MARROW_NO_DBR=auto says "auto does not complain" "queues in GPU memory, 1 for each PE" 0

# A device that runs out of doorbell pages: two for all queues with records, and one more for each without.
said() { cat "$dir/out" "$dir/err" | grep -Eq -- "$1"; }
short="mlx5_0 port 1 has no doorbell page left for a queue without a record \(MARROW_NO_DBR=on\): "
another="kernels do not post|host memory|cannot communicate: mem"
export SOFTHCA_NO_DBR=15
export SOFTHCA_FAULTS=pages=5 MARROW_DEVICE_QPS=4
MARROW_NO_DBR=on SOFTHCA_STATS=1 says "not enough doorbell pages" "${short}further queues of kernels have one" 0
holds "both kinds of queue are rung" eval 'said "bare_doorbells +[1-9]" && said "queues in GPU memory, some without doorbell records"'
MARROW_NO_DBR=on MARROW_STRICT=1 says "the same is the end with MARROW_STRICT" "$short" 1
holds "no other way is tried then" eval '! said "$another"'
MARROW_NO_DBR=auto MARROW_STRICT=1 says "auto does not complain of that either" "queues in GPU memory, some without doorbell records" 0
holds "nor warns" eval '! grep -q "no doorbell page left" "$dir/err"'
unset SOFTHCA_FAULTS MARROW_DEVICE_QPS
for strict in 0 1; do
    MARROW_NO_DBR=on MARROW_STRICT=$strict SOFTHCA_FAULTS=pages=4 go 100 "$nic" "$oshrun" --nodes 2 -n 2 "$here/far"
    holds "a context comes when the pages are used up, MARROW_STRICT=$strict" eval '[ $((status != 0)) = $strict ] && said "$short"'
done
unset SOFTHCA_NO_DBR
MARROW_DEVICE_QPS=3 says "a bad number of queues" "MARROW_DEVICE_QPS is 3" 1
MARROW_IBGDA_MEMORY=disk says "a bad place of queues" "MARROW_IBGDA_MEMORY is \"disk\"" 1

# refused NAME REGEX: what a host's put to device memory of another node comes to where no NIC registers it.
refused() {
    local regex=$2

    FAKECUDA_GUARD=1 FAKECUDA_NO_DMA_BUF=1 FAKECUDA_NO_PEERMEM=1 go 100 "$nic" "$oshrun" --nodes 2 -n 2 "$build/tests/mp/devmem_far"
    holds "$1" eval '[ "$status" = 1 ] && cat "$dir/out" "$dir/err" | grep -Eq -- "$regex"'
}

unknown="shmem_putmem\] 0x[0-9a-f]+ is device memory of PE [01], .* its NIC has not registered it .*: load nvidia-peermem"
refused "no NIC knows the device heap: a put says what to do" "$unknown"
MARROW_TRANSPORT=proxy refused "the same by plain verbs" "$unknown"
MARROW_STRICT=1 refused "the same is the end with MARROW_STRICT" "the device heap .* cannot be registered with mlx5_0 port 1"

# fails NAME KIND OPTIONS
export MARROW_IB_TIMEOUT=13 MARROW_IB_RETRY=3
fails() {
    local -a options=()
    [ "$3" = - ] || read -ra options <<< "$3"
    go 100 "$nic" ${options[@]+"${options[@]}"} "$oshrun" --nodes 2 -n 2 "$here/far_bad" "$2"
    holds "$1: the job says so and ends" eval '[ "$status" != 0 ] && [ "$status" != 124 ] && cat "$dir/out" "$dir/err" |
        grep -Eq "in a kernel: .* to PE 1 failed on mlx5_0 port 1: .*syndrome 0x"'
    holds "$1: nobody takes it for success" eval '! cat "$dir/out" "$dir/err" | grep -q "has ended"'
}

fails "a wrong key" key -
fails "a wrong key, and a wait for a flag" wait -
fails "a queue that fails" queue "--faults qperr=100:0x02"
MARROW_NO_DBR=on SOFTHCA_NO_DBR=15 fails "a queue without doorbell records that fails" queue "--faults qperr=100:0x02"
done_testing
