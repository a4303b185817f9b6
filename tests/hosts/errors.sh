#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# errors.sh - what a NIC or a peer can do wrong, over both transports: one line says where, what and what to do about it,
# the job ends with a status, in time, and leaves nothing.
set -u
. "${top_srcdir:?}/tests/launch/lib.sh"
nic=$build/tests/softhca/softhca-run
work=$(own "$build/tests/hosts/net_job")
[ -x "$nic" ] || skip_all "no virtual NIC"
export SHMEM_SYMMETRIC_SIZE=64M MARROW_IB_TIMEOUT=13 MARROW_IB_RETRY=3 MARROW_CONNECT_TIMEOUT=5 MARROW_TIMEOUT=20

# fails NAME REGEX NIC_OPTIONS COMMAND...: two PEs on two nodes; the line comes from at most one PE of each node.
fails() {
    local name=$1 regex=$2 options=$3 lines
    local -a line=()
    shift 3
    [ "$options" = - ] || read -ra line <<< "$nic $options"
    go 60 ${line[@]+"${line[@]}"} "$oshrun" --nodes 2 -n 2 "$@"
    lines=$(cat "$dir/out" "$dir/err" | grep -Ec -- "$regex")
    holds "$MARROW_TRANSPORT: $name" test "$status" != 0 -a "$status" != 124 -a "$lines" -ge 1 -a "$lines" -le 2
    holds "$MARROW_TRANSPORT: $name: in time" soon 30000
}

no_word_of() { ! grep -q "$1" "$dir/err"; }

at='mlx5_0 port 1'
for MARROW_TRANSPORT in ibgda proxy; do
    export MARROW_TRANSPORT
    go 60 env MARROW_IB_TIMEOUT=16 "$nic" "$oshrun" --nodes 2 -n 2 "$work" work 0 300
    holds "$MARROW_TRANSPORT: a job that nothing disturbs" grep -qx "worked well" "$dir/out"
    fails "no device" "no RDMA device can be opened here: is there a NIC" - "$work" work 0 300
    MARROW_HCA_LIST=mlx5_7 fails "a device that is not here" "MARROW_HCA_LIST.*mlx5_7.*(no device|mlx5_0)" "--link ib" "$work" work 0 300
    holds "and that variable alone is spoken of" no_word_of MARROW_NODE
    MARROW_IB_GID_INDEX=99 fails "a GID index that is not here" "$at has no GID at index 99 \(MARROW_IB_GID_INDEX\)" "--link eth" \
        "$work" work 0 300
    holds "and that variable alone is spoken of" no_word_of MARROW_NODE
    fails "port down" "no port can be used: .*mlx5_0.*[dD][oO][wW][nN]" "--faults port=down" "$work" work 0 300
    fails "empty GID table" "$at: its GID table is empty: give .* (ip addr add)?" "--link eth --faults gids=none" "$work" work 0 300
    fails "registration refused" "$at.* (refuses|cannot register) .*ulimit -l" "--faults memlock=64k" "$work" work 0 300
    # One operation at a time: of many, the collapsed completion queue of ibgda may only keep the flushes behind the first.
    fails "access error" "PE 1 failed on $at: remote access error \(syndrome 0x13.*address" "--faults qperr=20:0x13" "$work" single
    fails "retry exceeded" "PE 1 failed on $at: transport retry counter exceeded \(syndrome 0x15.*does not answer" \
        "--faults qperr=20:0x15" "$work" single
    fails "operation error of the own queue" "PE 1 failed on $at: local queue pair operation error \(syndrome 0x02" \
        "--faults qperr=20:0x02" "$work" single
    # Of many that are flushed too the first error is found out all the same.
    fails "an access error among many operations" "PE [01] failed on $at: remote access error .*\(syndrome 0x13.*address" \
        "--faults deny=400p" "$work" work 0 20000
    fails "link lost for good" "(PE [01] failed on $at: transport retry counter exceeded .*\(syndrome 0x15|$at: PE [01].* has not answered)" \
        "--faults linkdown=200p" "$work" work 0 20000
    MARROW_IB_TIMEOUT=16 MARROW_IB_RETRY=7 fails "a PE that closes all descriptors" "$at: this process has closed the NIC's file descriptors" \
        "--link ib" "$work" close 1
    fails "a peer that stops" "(PE 1 failed on $at: transport retry counter exceeded .*\(syndrome 0x15|gave up after .* PE 1|$at: PE 1.* has not answered)" \
        "--link ib" "$work" stop 1 300
    fails "a peer that dies" "oshrun: PE 1 .* was killed by signal 9" "--link ib" "$work" kill 1 300
    fails "a peer that dies before a barrier" "oshrun: PE 1 .* was killed by signal 9" "--link ib" "$work" idle 1 300
done
holds "no process is left" within 5 nobody_runs "$work"
done_testing
