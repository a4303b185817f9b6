#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# mistakes.sh - what a newcomer gets wrong: each has a line that says so and what to do, once, and none goes unnoticed.
set -u
. "${top_srcdir:?}/tests/launch/lib.sh"
[ -x "$oshrun" ] || skip_all "no $oshrun"
job=$build/tests/launch/mistake_job
soak=$build/src/tools/shmem-soak
info=$build/src/tools/shmem-info
nic=$build/tests/softhca/softhca-run
fake=$build/tests/fakecuda

# once REGEX: one line of the last go's stderr matches, and one only.
once() { [ "$(grep -Ec -- "$1" "$dir/err")" = 1 ]; }

go 30 env MARROW_TRANSPROT=proxy "$oshrun" -n 3 "$job"
holds "a misspelt variable is said once, by PE 0" once '\[pe 0 .* env\] MARROW_TRANSPROT is not a variable of Marrow and has no effect \(did you mean MARROW_TRANSPORT\?\)'
expect 0 "MARROW_TRANSPROT" "and the program runs"
go 30 env MARROW_TRANSPROT=proxy MARROW_STRICT=1 "$oshrun" -n 3 "$job"
expect 1 "MARROW_TRANSPROT .*did you mean MARROW_TRANSPORT" "not with MARROW_STRICT=1"
go 30 env SHMEM_SYMETRIC_SIZE=1G SHMEM_BOUNCE_SIZE=3 "$oshrun" -n 2 "$job"
holds "so is one of the specification" once 'SHMEM_SYMETRIC_SIZE .*did you mean SHMEM_SYMMETRIC_SIZE'
holds "one of another library is not" eval '! grep -q BOUNCE "$dir/err"'
go 30 env MARROW_TEST_N=3 MARROW_ROOT=/opt/marrow "$oshrun" -n 2 "$job"
expect 0 "" "nor are those of tests and of environment modules"

go 30 env MARROW_DEVICE_QPS=3 "$oshrun" -n 2 "$job"
expect 1 "MARROW_DEVICE_QPS is 3: expected a power of two from 1 to 64" "a value out of range ends the job, on one node and without a GPU too"
go 30 env MARROW_IB_RETRY=99 "$info"
holds "shmem-info refuses it as well" eval '[ "$status" = 1 ] && once "MARROW_IB_RETRY is 99: expected 0 to 7"'
go 30 env MARROW_TRANSPROT=proxy "$info" -v
holds "and knows misspelt names" once 'MARROW_TRANSPROT .*did you mean MARROW_TRANSPORT'

go 30 "$oshrun" -n 2 "$job" full
holds "a full heap gives NULL" eval '[ "$status" = 0 ] && [ "$(grep -c "got NULL" "$dir/out")" = 2 ]'
holds "and is said once" once '\[pe 0 .* shmem_malloc\] 1099511627776 bytes: there is no room, the result is NULL; the heap has [0-9]+ bytes a PE \(SHMEM_SYMMETRIC_SIZE\)'
go 30 env MARROW_LOG=info "$oshrun" -n 2 "$job" full
holds "each time with MARROW_LOG=info" eval '[ "$(grep -c "the result is NULL" "$dir/err")" = 2 ]'

go 30 "$oshrun" -N 2 "$job"
expect 2 "-N is PEs a node for mpirun and nodes for srun.*-n PEs --nodes K" "-N says what to write instead"
go 30 "$oshrun" --launcher mpirun --nodes 2 "$job" : -n 2 "$job"
expect 2 "--nodes with several programs: each needs its -n" "--nodes with several programs"
go 30 "$oshrun" --launcher mpirun --show --nodes 3 "$job"
holds "--nodes without -n: one PE on each" eval '[ "$status" = 0 ] && grep -Eq "MARROW_NODE=n2" "$dir/out" && ! grep -q "MARROW_NODE=n3" "$dir/out"'
go 30 "$oshrun" --launcher mpirun --show -n 2 "./my prog" "it's" ''
holds "--show is quoted for a shell" grep -Fq -- "-n 2 './my prog' 'it'\\''s' ''" "$dir/out"
if [ -x "$nic" ]; then
    go 60 env SHMEM_SYMMETRIC_SIZE=16M MARROW_IB_TIMEOUT=16 "$nic" "$oshrun" --nodes 2 "$job"
    holds "so it is without a launcher" eval '[ "$status" = 0 ] && grep -q "PE 0 of 2 on n0" "$dir/out" && grep -q "PE 1 of 2 on n1" "$dir/out"'
fi
if [ ! -e /dev/infiniband ]; then
    go 60 "$oshrun" --nodes 2 "$job"
    holds "--nodes without a NIC" eval '[ "$status" = 1 ] && once "counts as on node .n0. by MARROW_NODE .*softhca-run"'
fi

go 60 env MARROW_CUDA=0 "$oshrun" -n 2 "$soak" --steps 5 --device
holds "shmem-soak --device without a GPU" eval '[ "$status" = 1 ] && once "^shmem-soak: --device: there is no device memory here" && ! grep -q "too little memory:" "$dir/err"'
done_testing
