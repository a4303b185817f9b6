#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Small writes a second and large writes in MB/s between two processes: perftest's best interval must reach the aims
# (its average depends on what else the machine does, and is shown).
. "$(dirname "$0")/clients.sh"
need ib_write_bw

# speed NAME AIM-IN-MB/S LAUNCHER-OPTIONS COMMAND...
speed() {
    local name=$1 aim=$2 figures
    shift 2
    if ! run_pair "$@"; then
        not_ok "$name"
        show "$work/server" "$work/client"
        return
    fi
    figures=$(awk '/^ *[0-9]+ +[0-9]+ +[0-9.]+ +[0-9.]+/ { print $3, $4, $5 }' "$work/client" | tail -n 1)
    echo "# $name: peak and average MB/s, average million messages/s: $figures"
    if awk -v peak="${figures%% *}" -v aim="$aim" 'BEGIN { exit !(peak >= aim) }'; then
        ok "$name reaches $aim MB/s"
    else
        not_ok "$name reaches $aim MB/s"
    fi
}

# 200,000 writes of 8 bytes a second are 1.53 MB/s in perftest's units of 2^20 bytes.
speed "8-byte writes" 1.53 "" ib_write_bw -s 8 -n 20000
speed "64 KiB writes" 500 "" ib_write_bw -s 65536 -n 1000
speed "64 KiB reads" 500 "" ib_read_bw -s 65536 -n 1000
plan
