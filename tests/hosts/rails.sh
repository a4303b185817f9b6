#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# rails.sh - two NICs a PE on pretended hosts, each on a network of its own: mpirun and srun, both transports, losses; and
# a cable or a device of the two that fails.  All programs of tests/mp run so by check-nodes.sh -r 2.
set -u
export MARROW_TEST_RAILS=3 # the launcher's network is neither
. "${top_srcdir:?}/tests/hosts/lib.sh"
jobs_on 4 "$0"
nic=("${nic[0]}" --wire udp --link eth --devices 2 --net 10.78.0.0,10.79.0.0 --stats)
. "$top_srcdir/tests/verbs/lib.sh"
work=$build/tests/hosts/net_job
second=srun # where there is none, mpirun again
[ "$slurm" = yes ] || second=mpirun

# passes LAUNCHER NODES TRANSPORT TEST
passes() {
    across "$1" "$2" "$3" "$build/tests/mp/$4"
    holds "$1, $2 hosts, $3: $4" all_points
    holds "both networks are used" both tx_packets 50
}
ended() { [ "$status" != 0 ] && [ "$status" != 124 ] && soon 30000; }
all_up() { [ "$(grep -cx up "$dir/out")" = 4 ]; }

settings=(MARROW_IB_TIMEOUT=16 SHMEM_SYMMETRIC_SIZE=64M TAP_TIMEOUT=98 TAP_SHORT=1)
passes mpirun 4 ibgda far_atomics
"$HOSTS" wire all loss 5000 # each of two cables: 1 % of the packets
across $second 2 proxy "$work" work 0 500
holds "$second, 2 hosts, proxy, 1 % of packets lost: puts, gets, signals, atomics" grep -q "^worked well" "$dir/out"
holds "both networks are used" both tx_packets 50
"$HOSTS" wire all loss 0

# ---- one of the two is lost ----

settings=(MARROW_IB_TIMEOUT=13 MARROW_IB_RETRY=3 MARROW_CONNECT_TIMEOUT=8 MARROW_TIMEOUT=15 SHMEM_SYMMETRIC_SIZE=64M)
# lost LAUNCHER TRANSPORT DEVICE: its cable at h2 is pulled while all work.
lost() {
    local other=mlx5_$((1 - $3))
    : > "$dir/out"
    (within 60 all_up && sleep 0.3 && date +%s%N > "$dir/cut" && "$HOSTS" wire "h2.$(($3 + 1))" down 1) &
    across "$1" 4 "$2" "$work" work 0 120000
    wait $!
    took=$((($(date +%s%N) - $(cat "$dir/cut")) / 1000000))
    "$HOSTS" wire h2 down 0
    holds "$1, $2: the cable of mlx5_$3 is cut at a host: the job ends" ended
    holds "it is said where, and to whom" grep -Eq "to PE [0-3] failed on mlx5_$3 port 1: transport retry counter" "$dir/err"
    holds "and of no other device" test "$(grep -c "failed on $other" "$dir/err")" = 0
}
# unconnected NAME DEVICE WHY COMMAND...: the job never gets going, because DEVICE does not reach the peer's mlx5_1.
unconnected() {
    local name=$1 by="mlx5_$2 port 1" why=$3
    shift 3
    across $second 4 proxy "$@"
    holds "$name: the job ends" ended
    holds "it is said where, to whom, and why" \
        grep -Eq "$by: PE [0-3] \(mlx5_1 port 1, 10\.79[.0-9]*\) has not answered .*$why" "$dir/err"
    # Of two PEs that give up at the same time, the one that the other ends may leave this line out.
    holds "and no other device is blamed" test "$(grep "no connection to PE" "$dir/err" | grep -cv " by $by: ")" = 0
}
lost mpirun ibgda 1
settings+=(MARROW_CONNECT_TIMEOUT=2)
# Its PE cannot reach those that receive on the other network.
unconnected "a port that is down on one host alone" 0 "different networks" \
    sh -c '[ "$(hostname)" != h1 ] || export SOFTHCA_FAULTS_1=port=down; exec "$@"' sh "$work" work 0 300
if [ "${MARROW_TEST_NODES:-some}" != some ]; then
    "$HOSTS" wire h3.2 down 1
    unconnected "a cable that is cut from the start" 1 "is its port down" "$work" work 0 300
    "$HOSTS" wire h3.2 down 0
    lost mpirun proxy 0
    lost $second ibgda 0
fi
done_testing
