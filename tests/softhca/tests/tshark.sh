#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# A capture of each operation, read by tshark without any option: RoCE v2 packets with the right opcodes and fields.
. "$(dirname "$0")/clients.sh"
need tshark ib_write_lat ib_read_lat ib_send_lat ib_atomic_lat

# capture WIRE: one file for all clients of that wire
capture() {
    local wire=$1 file=$work/$1.pcap
    pair "$wire: write" "--wire $wire --pcap $file" ib_write_lat -F -n 5 -s 5000
    pair "$wire: read" "--wire $wire --pcap $file" ib_read_lat -F -n 5 -s 5000
    pair "$wire: send" "--wire $wire --pcap $file" ib_send_lat -F -n 5 -s 20
    pair "$wire: datagram" "--wire $wire --pcap $file" ib_send_lat -c UD -F -n 5 -s 20
    pair "$wire: compare-swap" "--wire $wire --pcap $file" ib_atomic_lat -F -A CMP_AND_SWAP -n 5
    pair "$wire: fetch-add" "--wire $wire --pcap $file" ib_atomic_lat -F -A FETCH_AND_ADD -n 5
    tshark -r "$file" -T fields -e frame.protocols -e infiniband.bth.opcode -e infiniband.bth.destqp -e infiniband.bth.psn \
        -e infiniband.reth.r_key -e infiniband.reth.dmalen -e infiniband.aeth.syndrome >"$work/fields" 2>"$work/errors"
    if [ -s "$work/fields" ] && ! grep -qv 'ip:udp:infiniband' "$work/fields" &&
        ! tshark -r "$file" -Y _ws.malformed 2>/dev/null | grep -q .; then
        ok "$wire: $(wc -l <"$work/fields") packets, all of them RoCE v2, none malformed"
    else
        not_ok "$wire: all packets are RoCE v2"
        grep -v 'ip:udp:infiniband' "$work/fields" | head -n 5 | sed 's/^/# /'
        show "$work/errors"
    fi
    # Opcodes of the standard: write first, last; read request, first, last; acknowledgement; send only; compare-swap,
    # fetch-add and their answer; datagram.
    local op
    for op in 6 8 12 13 15 17 4 19 20 18 100; do
        if cut -f2 "$work/fields" | grep -qx "$op"; then
            ok "$wire: opcode $op is there"
        else
            not_ok "$wire: opcode $op is there"
        fi
    done
    if awk -F'\t' '$2 == 6 && $6 != 5000 { bad++ } $2 == 6 { n++ } END { exit bad || !n }' "$work/fields"; then
        ok "$wire: length of a write in the extended header"
    else
        not_ok "$wire: length of a write in the extended header"
    fi
}

capture shm
capture udp
plan
