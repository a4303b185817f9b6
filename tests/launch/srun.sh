#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# srun.sh - under srun --mpi=pmix, where a Slurm that answers is configured: exchange, failures, global exit.
set -u
. "${top_srcdir:?}/tests/launch/lib.sh"
[ "${MARROW_HAVE_PMIX:-yes}" = yes ] || skip_all "built without PMIx"
command -v srun > /dev/null || skip_all "no srun"
go 20 srun --mpi=list
grep -q pmix "$dir/out" "$dir/err" || skip_all "srun has no PMIx"
go 30 srun -n 2 --mpi=pmix true
[ "$status" = 0 ] || skip_all "no Slurm cluster answers"
plain=(srun --mpi=pmix)

for n in 1 2 4; do
    go 60 "${plain[@]}" -n $n "$job" exchange
    expect 0 "" "$n PEs exchange"
    holds "$n PEs say so" grep -qx "exchanged $n by pmix key 0" "$dir/out"
done
nodes=$(sinfo -h -t idle,mix -o %D | head -1)
if [ "${nodes:-1}" -ge 2 ]; then
    go 60 "${plain[@]}" -N 2 --ntasks-per-node=2 "$job" exchange
    holds "over two nodes" grep -qx "exchanged 4 by pmix key 0" "$dir/out"
    go 60 "${plain[@]}" -K -N 2 --ntasks-per-node=1 "$job" late 1
    holds "a late PE of another node is named" grep -q "waited 1 s in the start-up exchange for PE 1$" "$dir/err"
fi
go 60 "$oshrun" --launcher srun -n 3 --tag-output "$job" exchange
holds "through oshrun" grep -qx "0: exchanged 3 by pmix key 0" "$dir/out"
go 60 srun --mpi=none -n 3 "$job" exchange
expect 3 "SLURM_STEP_NUM_TASKS=3" "three silent jobs of one are refused"
holds "said once" test "$(grep -c SLURM_STEP_NUM_TASKS "$dir/err")" = 1
go 60 srun --mpi=none -n 1 "$job" exchange
holds "one task without PMIx is a job of one" grep -qx "exchanged 1 by single key 1" "$dir/out"
go 60 "${plain[@]}" -n 3 "$job" abort 1 9
holds "abort 9" test "$status" = 9
holds "and soon" soon 25000
go 60 "$oshrun" --launcher srun -n 3 "$job" killed 1
holds "a killed PE" test "$status" = 137 -o "$status" = 143
holds "and soon" soon 25000
end=$build/tests/launch/end_job
cd "$dir" || exit 99
for what in barrier compute; do
    rm -f kept.*
    go 60 "${plain[@]}" -N 1 -n 3 "$end" global 0 $what
    holds "global exit 0, others in $what" test "$status" = 0
    holds "with all files flushed" test "$(cat kept.* | sort | tr '\n' ,)" = "kept 0,kept 1,kept 2,"
    holds "and soon" soon 25000
done
go 60 "${plain[@]}" -N 1 -n 3 "$end" global 5 barrier
holds "global exit 5" test "$status" = 5
done_testing
