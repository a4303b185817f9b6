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

# refused WORD OPTION...: softhca-run names what it cannot read, and starts nothing.
refused() {
    local word=$1
    shift
    timeout -k 5 "$CLIENT_LIMIT" "$SOFTHCA_RUN" "$@" echo started >"$work/out" 2>&1
    if [ $? -eq 2 ] && grep -q "must be.*'$word'\|'${word}[^']*'.*lists the faults\|'$word' is no\|$word: No such file" "$work/out" &&
        ! grep -q started "$work/out"; then
        ok "refused: ${*:-$word, in the environment}"
    else
        not_ok "refused: ${*:-$word, in the environment}"
        show "$work/out"
    fi
}
refused nonsense=1% --faults nonsense=1%
refused delay=1% --faults loss=1%,delay=1%
refused dup=1 --devices 2 --faults mlx5_1:dup=1
for bad in "devices 9" "devices 0" "nodes none" "nodes 0" "nodes 2x" "log 4" "no-dbr 16" "no-dbr yes" "seed x" "wire tcp" "link roce" \
    "net 127.77.0" "net 127.77.0.0,x"; do
    refused "${bad##*[ ,]}" "--${bad% *}" "${bad#* }"
done
refused /no/folder --trace /no/folder/file
refused /no/folder --pcap /no/folder/file
SOFTHCA_NO_DBR=32 refused 32
SOFTHCA_FAULTS=loss refused loss

# limited NAME LIMIT PATTERN: with that ulimit, which does not hold for root, it says why it cannot go on.
limited() {
    local -a user=()
    [ "$(id -u)" != 0 ] || user=(setpriv --reuid=65534 --regid=65534 --clear-groups)
    if ! ${user[@]+"${user[@]}"} test -x "$SOFTHCA_RUN" 2>/dev/null; then
        skip "$1" "another user may not run it here"
        return
    fi
    TMPDIR=/tmp timeout -k 5 "$CLIENT_LIMIT" ${user[@]+"${user[@]}"} \
        bash -c "ulimit $2; exec \"\$0\" ibv_devinfo" "$SOFTHCA_RUN" 2>&1 | cat >"$work/out"
    if grep -q "$3" "$work/out"; then
        ok "$1"
    else
        not_ok "$1"
        show "$work/out"
    fi
}
limited "no file may be written" "-f 0" "a file may have 0 bytes here (ulimit -f)"
limited "no large file may be" "-f 100000" "a file may have [0-9]*0000 bytes here (ulimit -f)"
limited "no more processes" "-u 1" "this user may have no more processes (ulimit -u)"
plan
