#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# soak_faults.sh - shmem-soak notices what goes wrong between it and the library (soak_faulty.c): it says which operation, writes
# its log and ends the job.
set -u
. "${top_srcdir:?}/tests/launch/lib.sh"
soak=$build/tests/tools/soak_faulty
export SHMEM_SYMMETRIC_SIZE=64M
cd "$dir" || exit 99

# notices FAULT REGEX OPTION...
notices() {
    local fault=$1 regex=$2
    shift 2
    rm -f shmem-soak.log.*
    SOAK_FAULT=$fault go 100 "$oshrun" -n 3 "$soak" --seed 5 --steps 100000 --minutes 1 --stall 80 "$@"
    holds "$fault is noticed" eval '[ "$status" = 1 ] && grep -Eq -- "^shmem-soak: PE [0-2].*: step [0-9]+: .*$regex" "$dir/err"'
    holds "$fault: how to see it again, and the last operations" \
        eval 'grep -q "shmem-soak: again: -n 3 shmem-soak --seed 5 " "$dir/err" && [ "$(cat shmem-soak.log.* | grep -c " step ")" -gt 0 ]'
}

go 100 "$oshrun" -n 3 "$soak" --seed 5 --steps 100 --stall 80
holds "without a fault all is well" eval '[ "$status" = 0 ] && grep -q "all as expected" "$dir/out"'
notices lost_put "expected 0x.*: (put|store) of" --ops put,get_back,quiet
notices short_put "expected 0x.*: put_nbi of" --ops put_nbi,get_back,quiet
notices wrong_bit "expected 0x.*: (get|get_back) of" --ops get,get_back,put
notices late_get "expected 0x.*: get_nbi of" --ops get_nbi,quiet
notices wrong_stride "expected 0x" --ops iput,quiet
notices lost_add "expected 0x" --ops atomic,atomic_shared
notices torn_inc "(expected 0x|ticket)" --ops atomic_shared
notices wrong_swap "expected 0x" --ops atomic
SOAK_EVERY=7 notices early_signal "signal from PE [0-2] without its data" --ops pairs,fan
SOAK_EVERY=2 notices wrong_sum "reduction 0" --ops coll
SOAK_EVERY=2 notices wrong_collect "fcollect" --ops coll,team
SOAK_EVERY=2 notices dirty_calloc "shmem_calloc" --ops alloc
notices no_lock "counter under a lock" --ops lock

SOAK_FAULT=lost_signal go 100 "$oshrun" -n 2 "$soak" --seed 5 --ops pairs --stall 3
holds "a wait for a signal that is lost ends" eval '[ "$status" != 0 ] && [ "$status" != 124 ] && grep -q "no progress for 3 s" "$dir/err"'
done_testing
