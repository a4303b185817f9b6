#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Injected faults as foreign clients see them, and the views on them: counters, trace, softhca-stat.
. "$(dirname "$0")/clients.sh"
need ibv_rc_pingpong ib_write_bw
: "${SOFTHCA_STAT:=$(dirname "$SOFTHCA_RUN")/softhca-stat}"

if "$SOFTHCA_RUN" --devices 2 --faults mlx5_2:loss=5% true 2>"$work/out"; then
    not_ok "faults of a device that is not there"
elif grep -q 'names mlx5_2, but --devices is 2' "$work/out" && "$SOFTHCA_RUN" --faults mlx5_1:loss=5% --devices 2 true; then
    ok "faults of a device that is not there"
else
    not_ok "faults of a device that is not there"
    show "$work/out"
fi

pair "data checked, 5 % loss" "--faults loss=5%" ibv_rc_pingpong -c -n 100
pair "data checked, loss, duplicates, reordering" "--faults loss=3%,dup=3%,reorder=3%" ibv_rc_pingpong -c -n 100
pair "data checked, events, loss over UDP" "--faults loss=3%,corrupt=2% --wire udp" ibv_rc_pingpong -c -e -n 100
pair "data checked, delays" "--faults delay=10%:500us" ibv_rc_pingpong -c -n 100
pair "data checked, slow doorbell" "--faults doorbell=300us" ibv_rc_pingpong -c -n 50
pair "data checked, receiver not ready at random" "--faults rnr=20%" ibv_rc_pingpong -c -n 100
pair "data checked, link down for 200 ms" "--faults linkdown=100p+200ms" ibv_rc_pingpong -c -n 100

# The client of this pair must fail, both must end.
if run_pair "--faults qperr=20:0x02 --trace $work/trace" ibv_rc_pingpong -n 100; then
    not_ok "queue pair error after 20 entries: the client sees it"
else
    if grep -q 'Failed status' "$work/client" "$work/server"; then
        ok "queue pair error after 20 entries: the client sees it"
    else
        not_ok "queue pair error after 20 entries: the client sees it"
        show "$work/client" "$work/server"
    fi
fi
if grep -q 'CQE .* REQ_ERR op SEND .* syndrome 0x02' "$work/trace" &&
    grep -q 'CQE .* RECV_ERR .* syndrome 0x05' "$work/trace"; then
    ok "trace shows the error completion and the flushed receives"
else
    not_ok "trace shows the error completion and the flushed receives"
    grep ERR "$work/trace" | head -n 5 | sed 's/^/# /'
fi

if run_pair "--faults loss=5% --stats --seed 7" ibv_rc_pingpong -c -n 100 &&
    grep -q '^fault_loss  *[1-9]' "$work/server" && grep -q '^retransmits  *[1-9]' "$work/client" "$work/server" &&
    grep -q 'faults loss=5% seed 7' "$work/client"; then
    ok "counters show losses and retransmissions"
else
    not_ok "counters show losses and retransmissions"
    show "$work/client" "$work/server"
fi

# The server's NIC dies in the middle; the client must be told, within its retry limit, that nobody answers.
port=$(free_port)
timeout -k 5 "$CLIENT_LIMIT" "$SOFTHCA_RUN" --faults die=30p ib_write_bw -F -s 1000 -n 5000 -p "$port" >"$work/server" 2>&1 &
server=$!
: >"$work/client"
if wait_listening "$port" "$server"; then
    timeout -k 5 "$CLIENT_LIMIT" "$SOFTHCA_RUN" ib_write_bw -F -s 1000 -n 5000 -p "$port" 127.0.0.1 >"$work/client" 2>&1
    status=$?
fi
kill "$server" 2>/dev/null
wait "$server" 2>/dev/null
# 12 is IBV_WC_RETRY_EXC_ERR.
if [ "${status:-0}" -eq 1 ] && grep -q 'Failed status 12' "$work/client"; then
    ok "a peer whose NIC dies: retry limit exceeded"
else
    not_ok "a peer whose NIC dies: retry limit exceeded (status ${status:-none})"
    show "$work/client"
fi

# A server that waits for its client is a NIC to ask.
port=$(free_port)
timeout -k 5 "$CLIENT_LIMIT" "$SOFTHCA_RUN" ibv_rc_pingpong -p "$port" >"$work/server" 2>&1 &
server=$!
if [ ! -x "$SOFTHCA_STAT" ]; then
    skip "softhca-stat asks a running NIC" "$SOFTHCA_STAT is not built"
elif wait_listening "$port" "$server" && "$SOFTHCA_STAT" >"$work/stat" 2>&1 && grep -q '^softhca slot [0-9]* pid' "$work/stat"; then
    ok "softhca-stat asks a running NIC"
else
    not_ok "softhca-stat asks a running NIC"
    show "$work/stat"
fi
kill "$server" 2>/dev/null
wait "$server" 2>/dev/null

"$SOFTHCA_RUN" --faults nonsense=1% ibv_devinfo >"$work/out" 2>&1
if grep -q nonsense "$work/out"; then
    ok "a fault list that cannot be read is named"
else
    not_ok "a fault list that cannot be read is named"
    show "$work/out"
fi
plan
