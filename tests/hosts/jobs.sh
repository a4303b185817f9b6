#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# jobs.sh - whole jobs across pretended hosts with addresses of their own: RoCE packets over UDP between them, a cable
# that loses some, mpirun and srun, both transports, the examples cg and isort; and a host that dies or stalls.
set -u
. "${top_srcdir:?}/tests/hosts/lib.sh"
jobs_on 4 "$0"
work=$build/tests/hosts/net_job ex=$build/examples data=$top_srcdir/examples/data
settings=(MARROW_IB_TIMEOUT=16 SHMEM_SYMMETRIC_SIZE=64M) # the NIC of a loaded machine is slow to answer

good() { # NAME REGEX LAUNCHER NODES TRANSPORT COMMAND...
    local name=$1 regex=$2 what="$3, $4 hosts, $5"
    shift 2
    across "$@"
    holds "$what: $name" eval '[ "$status" = 0 ] && grep -Eq -- "$regex" "$dir/out"'
}

good "puts, gets, signals, atomics" "^worked well" mpirun 4 ibgda "$work" work 0 1000
good cg "check .*the same" mpirun 2 ibgda "$ex/cg" --check "$data/poisson2d-32.mtx"
good isort "sorted and complete" mpirun 4 proxy "$ex/isort" -k 20000
if [ $slurm = yes ]; then
    good "puts, gets, signals, atomics" "^worked well" srun 2 proxy "$work" work 0 1000
    good cg "check .*the same" srun 4 proxy "$ex/cg" --check -x get -b random "$data/random-200.mtx"
    good isort "sorted and complete" srun 2 ibgda "$ex/isort" -k 20000
fi
"$HOSTS" wire all loss 5000 # each of two cables: 1 % of the packets
good "1 % of packets lost: isort" "sorted and complete" mpirun 4 ibgda "$ex/isort" -k 20000
good "1 % of packets lost: cg" "check .*the same" mpirun 2 proxy "$ex/cg" --check "$data/poisson2d-32.mtx"
"$HOSTS" wire all loss 0
"$HOSTS" wire h2 delay 2000
good "2 ms further away: work" "^worked well" mpirun 4 ibgda "$work" work 0 1000
"$HOSTS" wire h2 delay 0

settings=(MARROW_IB_TIMEOUT=13 MARROW_IB_RETRY=3 MARROW_CONNECT_TIMEOUT=8 MARROW_TIMEOUT=15 SHMEM_SYMMETRIC_SIZE=64M)
# What happens to a host while a job of four runs, one PE a host, once all have begun; $dir/out has pids of the last job.
all_begun() { [ "$(grep -c ^pid "$dir/out")" = 4 ]; }
if [ $slurm = yes ]; then
    # srun goes on when a node is silent: the library alone notices.
    : > "$dir/out"
    (within 30 all_begun && sleep 2 && "$HOSTS" freeze h2; sleep 25; "$HOSTS" thaw h2) &
    across srun 4 ibgda "$work" work 0 60000
    holds "a host that stalls for good: said, and in time" eval '[ "$status" != 0 ] && soon 60000 &&
        grep -Eq "PE [0-3].* failed on mlx5_0|gave up .*PE [0-3]" "$dir/err"'
    wait $!
fi
: > "$dir/out"
(within 30 all_begun && sleep 2 && "$HOSTS" crash h3) &
across mpirun 4 proxy "$work" work 0 60000
holds "a host that dies: the job ends" eval '[ "$status" != 0 ] && [ "$status" != 124 ] && soon 45000'
done_testing
