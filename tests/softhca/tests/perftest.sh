#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The perftest suite over the virtual NIC: each operation, several queue pairs, inline, events, both wires, with losses.
. "$(dirname "$0")/clients.sh"
need ib_write_lat ib_write_bw ib_read_lat ib_read_bw ib_send_lat ib_send_bw ib_atomic_lat ib_atomic_bw

# -F: its clock calibration may fail beside other load, and it would end without a report.
few=(-F -n 100)
pair "ib_write_lat" "" ib_write_lat "${few[@]}"
pair "ib_write_lat, inline" "" ib_write_lat "${few[@]}" -I 64 -s 32
pair "ib_write_lat, over UDP" "--wire udp" ib_write_lat "${few[@]}"
pair "ib_write_bw, all sizes to 8 MiB" "" ib_write_bw -a -F -n 20
pair "ib_write_bw, 8 queue pairs, both directions" "" ib_write_bw -q 8 -b "${few[@]}"
pair "ib_write_bw, over UDP" "--wire udp" ib_write_bw "${few[@]}"
pair "ib_read_lat" "" ib_read_lat "${few[@]}"
pair "ib_read_lat, events" "" ib_read_lat -e "${few[@]}"
pair "ib_read_bw, all sizes to 8 MiB" "" ib_read_bw -a -F -n 20
pair "ib_read_bw, 4 queue pairs" "" ib_read_bw -q 4 "${few[@]}"
pair "ib_send_lat" "" ib_send_lat "${few[@]}"
pair "ib_send_lat, events" "" ib_send_lat -e "${few[@]}"
pair "ib_send_lat, UD" "" ib_send_lat -c UD "${few[@]}"
pair "ib_send_lat, UC" "" ib_send_lat -c UC "${few[@]}"
pair "ib_send_bw" "" ib_send_bw "${few[@]}"
pair "ib_send_bw, UD" "" ib_send_bw -c UD "${few[@]}"
pair "ib_send_bw, shared receive queue" "" ib_send_bw --use-srq "${few[@]}"
pair "ib_send_bw, 4 queue pairs, both directions" "" ib_send_bw -q 4 -b "${few[@]}"
pair "ib_atomic_lat, fetch-add" "" ib_atomic_lat -A FETCH_AND_ADD "${few[@]}"
pair "ib_atomic_lat, compare-swap" "" ib_atomic_lat -A CMP_AND_SWAP "${few[@]}"
pair "ib_atomic_bw" "" ib_atomic_bw "${few[@]}"
pair "ib_atomic_bw, 4 queue pairs" "" ib_atomic_bw -q 4 "${few[@]}"
pair "ib_write_bw, Ethernet port" "--link eth" ib_write_bw -x 0 "${few[@]}"
pair "ib_send_lat, UD, Ethernet port" "--link eth" ib_send_lat -c UD -x 0 "${few[@]}"

lossy="--faults loss=1%"
pair "ib_write_bw, 1 % loss" "$lossy" ib_write_bw "${few[@]}"
pair "ib_read_bw, 1 % loss" "$lossy" ib_read_bw "${few[@]}"
pair "ib_send_bw, 1 % loss" "$lossy" ib_send_bw "${few[@]}"
pair "ib_atomic_bw, 1 % loss" "$lossy" ib_atomic_bw "${few[@]}"
pair "ib_write_bw, 1 % loss, over UDP" "$lossy --wire udp" ib_write_bw "${few[@]}"
pair "ib_write_bw, loss, duplicates, reordering" "--faults loss=5%,dup=5%,reorder=5%" ib_write_bw "${few[@]}"
pair "ib_read_bw, loss, duplicates, reordering" "--faults loss=5%,dup=5%,reorder=5%" ib_read_bw "${few[@]}"
plan
