#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# rails.sh - PEs with several devices, over the virtual NIC: data, order and atomics as over one, both devices at work, devices
# that cannot be used, and messages that name the right one.
set -u
. "${top_srcdir:?}/tests/launch/lib.sh"
. "$top_srcdir/tests/verbs/lib.sh"
nic=$build/tests/softhca/softhca-run
[ -x "$nic" ] || skip_all "no virtual NIC"
export SHMEM_SYMMETRIC_SIZE=64M MARROW_IB_TIMEOUT=18 TAP_TIMEOUT=170

# passes NODES PES OPTIONS TEST: all points of a test of several PEs, and both devices have sent packets.
passes() {
    local -a options=()
    [ "$3" = - ] || read -ra options <<< "$3"
    go 180 "$nic" --devices 2 --stats ${options[@]+"${options[@]}"} "$oshrun" --nodes "$1" -n "$2" "$build/tests/mp/$4"
    holds "$MARROW_TRANSPORT: $4, $2 PEs on $1 nodes${options[*]:+, ${options[*]}}" all_points
    holds "both devices send, and write" eval 'both tx_packets 50 && both writes 10'
}

for MARROW_TRANSPORT in ibgda proxy; do
    export MARROW_TRANSPORT
    # an atomic is carried out by one device of its target, or increments would get lost here
    passes 2 4 - far_atomics
    holds "both devices carry out atomics" both atomics 20
    passes 4 4 - far_atomics
    passes 2 2 - far_buffers
    passes 4 4 - one_sided
    passes 2 4 "--link eth --faults loss=1% --seed 5" far_atomics
done
MARROW_TRANSPORT=ibgda passes 4 4 "--faults loss=1% --seed 9" waits
MARROW_TRANSPORT=ibgda passes 2 4 - far_contexts
passes 2 4 "--wire udp --link eth --net 127.77.0.0,127.78.0.0" waits

# ---- which devices ----

# runs OPTIONS [VARIABLE=VALUE...]: one short test of 2 PEs on 2 nodes.
runs() {
    local -a options
    read -ra options <<< "$1"
    shift
    go 100 env "$@" "$nic" --stats "${options[@]}" "$oshrun" --nodes 2 -n 2 "$build/tests/mp/lock"
}

export MARROW_TRANSPORT=ibgda
runs "--devices 3" MARROW_HCA_LIST=mlx5_0,mlx5_2
holds "MARROW_HCA_LIST narrows them" eval 'all_points && [ "$(sum mlx5_1 tx_packets)" = 0 ] && [ "$(sum mlx5_0 tx_packets)" -gt 20 ] &&
    [ "$(sum mlx5_2 tx_packets)" -gt 20 ]'
runs "--devices 2" MARROW_RAILS=1
holds "MARROW_RAILS=1: the PEs share one" eval 'all_points && [ "$(sum mlx5_1 tx_packets)" = 0 ]'
runs "--devices 2 --faults mlx5_0:port=down"
holds "a port that is down is not used" eval 'all_points && [ "$(sum mlx5_0 tx_packets)" = 0 ]'
runs "--devices 2 --faults mlx5_1:port=down" MARROW_RAILS=2
holds "and said, where so many are asked for" \
    eval 'all_points && grep -q "MARROW_RAILS asks for 2 devices, 1 can be used: .*mlx5_1:1 (down" "$dir/err"'
runs "--devices 2 --faults mlx5_1:port=down" MARROW_HCA_LIST=mlx5_0,mlx5_1
holds "or where it is named" eval 'all_points && grep -q "mlx5_1 port 1 is left out as a rail: the port is down" "$dir/err"'
runs "--devices 2 --link eth --faults mlx5_1:gids=none" A=1
holds "one that cannot be opened is left out" \
    eval '[ "$status" = 0 ] && grep -q "mlx5_1 port 1 is left out as a rail: it cannot be opened" "$dir/err"'
for strict in "port=down MARROW_RAILS=2" "port=down MARROW_HCA_LIST=mlx5_0,mlx5_1" "gids=none A=1"; do
    runs "--devices 2 --link eth --faults mlx5_1:${strict% *}" MARROW_STRICT=1 "${strict#* }"
    holds "MARROW_STRICT: $strict ends the job" eval '[ "$status" != 0 ] && [ "$status" != 124 ] && grep -q "MARROW_STRICT=1 forbids" "$dir/err"'
done
runs "--devices 2 --faults memlock=200M" A=1
holds "one that has no room for the heap is left out" \
    eval '[ "$status" = 0 ] && grep -q "mlx5_1 port 1 is left out as a rail: .* memory" "$dir/err"'

# ---- errors name the device ----

for MARROW_TRANSPORT in ibgda proxy; do
    for d in 0 1; do
        go 100 "$nic" --devices 2 --faults "mlx5_$d:qperr=60:0x02" "$oshrun" --nodes 2 -n 2 "$build/tests/mp/far_atomics"
        holds "$MARROW_TRANSPORT: an error on mlx5_$d is said to be there" \
            eval '[ "$status" != 0 ] && [ "$status" != 124 ] && grep -Eq "to PE [01] failed on mlx5_$d port 1: " "$dir/err" &&
                ! grep -q "failed on mlx5_$((1 - d)) port" "$dir/err"'
    done
done
done_testing
