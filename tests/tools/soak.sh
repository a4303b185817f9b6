#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# soak.sh - a few seconds of shmem-soak each way: on one node, with threads, with device memory, over both NIC transports
# with loss; a seed gives the same operations again; nonsense is refused.  tests/tools/soak_faults.sh shows that it notices.
set -u
. "${top_srcdir:?}/tests/launch/lib.sh"
soak=$build/src/tools/shmem-soak
nic=$build/tests/softhca/softhca-run
export SHMEM_SYMMETRIC_SIZE=64M MARROW_IB_TIMEOUT=16 MARROW_CONNECT_TIMEOUT=60
cd "$dir" || exit 99 # where failures leave their logs
# No more time than that, however slow the machine is; a stall is not a slow machine.
short=(--minutes 0.1 --stall 100)

# well NAME COMMAND...: ends well and says so.
well() {
    local name=$1
    shift
    go 150 "$@"
    holds "$name" eval '[ "$status" = 0 ] && grep -q "^shmem-soak: [1-9][0-9]* steps, .*, all as expected:" "$dir/out"'
    sed -n 's/^\(shmem-soak: seed [0-9]*\).*/# \1/p' "$dir/out"
}

well "one PE" "$oshrun" -n 1 "$soak" --seed 1 --steps 200 "${short[@]}"
well "4 PEs" "$oshrun" -n 4 "$soak" --seed 1 --steps 400 "${short[@]}"
well "4 PEs, a seed from the clock" "$oshrun" -n 4 "$soak" --steps 400 "${short[@]}"
well "2 PEs of 3 threads" "$oshrun" -n 2 "$soak" --seed 3 --threads 3 --steps 200 "${short[@]}"
well "small slices" "$oshrun" -n 3 "$soak" --seed 4 --size 64 --steps 200 "${short[@]}"
well "two kinds alone" "$oshrun" -n 3 "$soak" --seed 5 --ops atomic_shared,fan --steps 200 "${short[@]}"
holds "and no others" eval '[ "$(grep -oE " (atomic_shared|fan|put_signal|put_signal_nbi|quiet) [0-9]+" "$dir/out" | wc -l)" -ge 3 ] && ! grep -q " get [0-9]" "$dir/out"'
well "all kinds but two" "$oshrun" -n 2 "$soak" --seed 6 --ops -alloc,lock --steps 100 "${short[@]}"
holds "without these" eval '! grep -qE " (alloc|lock) [0-9]" "$dir/out"'
# The host's atomics on device memory are kernels of the library.
if [ -e "$build/tests/fakecuda/libcuda.so.1" ] && "$build/src/tools/shmem-info" -c | grep -q '^  nvcc *yes'; then
    LD_LIBRARY_PATH=$build/tests/fakecuda FAKECUDA_KERNELS=$build/tests/fakecuda/kernels.so \
        well "device memory" "$oshrun" -n 2 "$soak" --seed 7 --device --steps 100 "${short[@]}"
fi
if [ -x "$nic" ]; then
    MARROW_TRANSPORT=ibgda well "2 nodes, ibgda, 1 % loss" "$nic" --faults loss=1% "$oshrun" --nodes 2 -n 4 "$soak" --seed 8 --steps 100 "${short[@]}"
    MARROW_TRANSPORT=proxy well "2 nodes, proxy" "$nic" "$oshrun" --nodes 2 -n 4 "$soak" --seed 9 --steps 100 "${short[@]}"
fi

# What happened, without times and values.
ops_of() { sed -E 's/^[0-9]+ //; 1d' "$1".0; }
well "a log" "$oshrun" -n 2 "$soak" --seed 11 --steps 20 --log "$dir/first" --ring 5000 --stall 100
well "the same again" "$oshrun" -n 2 "$soak" --seed 11 --steps 20 --log "$dir/second" --ring 5000 --stall 100
holds "it is the same" eval '[ "$(ops_of "$dir/first" | wc -l)" -gt 50 ] && [ "$(ops_of "$dir/first")" = "$(ops_of "$dir/second")" ]'
well "steps 10 to 19 alone" "$oshrun" -n 2 "$soak" --seed 11 --steps 10,20 --log "$dir/third" --ring 5000 --stall 100
holds "are those of the whole run" eval '[ "$(ops_of "$dir/first" | grep -E " step 1[0-9] (put|get)")" = "$(ops_of "$dir/third" | grep -E " step 1[0-9] (put|get)")" ]'

for bad in "--ops put,banana" "--ops -" "--steps 5,5" "--minutes 0" "--size 4X" "--threads 0" extra; do
    # shellcheck disable=SC2086
    go 60 "$oshrun" -n 2 "$soak" $bad
    holds "$bad is refused, once" eval '[ "$status" = 1 ] && [ "$(cat "$dir/out" "$dir/err" | grep -Ec "^shmem-soak: |unrecognized")" = 1 ]'
done
go 60 "$oshrun" -n 2 "$soak" --help
holds "--help lists the kinds" eval '[ "$status" = 0 ] && grep -q "kinds: put .* ctx$" "$dir/out"'
SHMEM_SYMMETRIC_SIZE=1M go 60 "$oshrun" -n 2 "$soak" --size 1M
holds "too small a heap is said" eval '[ "$status" = 1 ] && grep -q "too little memory" "$dir/err"'
done_testing
