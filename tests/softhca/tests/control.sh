#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Clients of ibverbs-utils over the virtual NIC: device queries, and pingpongs of every kind with data checks and events.
. "$(dirname "$0")/clients.sh"
need ibv_devinfo ibv_devices ibv_rc_pingpong ibv_uc_pingpong ibv_ud_pingpong ibv_srq_pingpong ibv_asyncwatch

# says NAME PATTERN OPTIONS COMMAND...: the command succeeds and prints the pattern.
says() {
    local name=$1 pattern=$2 options=$3
    shift 3
    # shellcheck disable=SC2086 # options are several words
    if timeout -k 5 "$CLIENT_LIMIT" "$SOFTHCA_RUN" $options "$@" >"$work/out" 2>&1 && grep -qE "$pattern" "$work/out"; then
        ok "$name"
    else
        not_ok "$name"
        show "$work/out"
    fi
}

says "ibv_devices lists the device" 'mlx5_0[[:space:]]+[0-9a-f]{16}' "" ibv_devices
says "ibv_devinfo: the port is active" 'PORT_ACTIVE' "" ibv_devinfo
says "ibv_devinfo -v: atomics" 'atomic_cap:[[:space:]]+ATOMIC_HCA' "" ibv_devinfo -v
says "ibv_devices lists several" 'mlx5_2[[:space:]]+[0-9a-f]{16}' "--devices 3" ibv_devices
says "ibv_devinfo: a port that is down" 'PORT_DOWN' "--devices 2 --faults mlx5_1:port=down" ibv_devinfo -d mlx5_1
says "ibv_devinfo: beside one that is up" 'PORT_ACTIVE' "--devices 2 --faults mlx5_1:port=down" ibv_devinfo -d mlx5_0
says "ibv_devinfo: InfiniBand port" 'link_layer:[[:space:]]+InfiniBand' "--link ib" ibv_devinfo
says "ibv_devinfo: Ethernet port" 'link_layer:[[:space:]]+Ethernet' "--link eth" ibv_devinfo
says "ibv_devinfo -v: GID of an Ethernet port" 'GID\[.*::ffff:' "--link eth" ibv_devinfo -v

few=(-n 200)
pair "ibv_rc_pingpong" "" ibv_rc_pingpong "${few[@]}"
pair "ibv_rc_pingpong, data checked" "" ibv_rc_pingpong "${few[@]}" -c
pair "ibv_rc_pingpong, events" "" ibv_rc_pingpong "${few[@]}" -e
pair "ibv_rc_pingpong, timestamps" "" ibv_rc_pingpong "${few[@]}" -t
pair "ibv_rc_pingpong, new post-send interface" "" ibv_rc_pingpong "${few[@]}" -N
pair "ibv_rc_pingpong, over UDP" "--wire udp" ibv_rc_pingpong "${few[@]}" -c
pair "ibv_rc_pingpong, Ethernet port" "--link eth" ibv_rc_pingpong "${few[@]}" -g 0 -c
pair "ibv_rc_pingpong, 1 % loss" "--faults loss=1%" ibv_rc_pingpong "${few[@]}" -c
pair "ibv_rc_pingpong, 1 % loss over UDP" "--faults loss=1% --wire udp" ibv_rc_pingpong "${few[@]}" -c
pair "ibv_uc_pingpong" "" ibv_uc_pingpong "${few[@]}"
pair "ibv_uc_pingpong, events" "" ibv_uc_pingpong "${few[@]}" -e
pair "ibv_ud_pingpong" "" ibv_ud_pingpong "${few[@]}"
pair "ibv_ud_pingpong, events" "" ibv_ud_pingpong "${few[@]}" -e
pair "ibv_ud_pingpong, Ethernet port" "--link eth" ibv_ud_pingpong "${few[@]}" -g 0
pair "ibv_srq_pingpong" "" ibv_srq_pingpong "${few[@]}"
pair "ibv_srq_pingpong, events" "" ibv_srq_pingpong "${few[@]}" -e

# It opens the device, says so, and waits for events.
watch() {
    local end=$((SECONDS + 30)) watcher found=1
    timeout -k 5 60 "$SOFTHCA_RUN" "$@" ibv_asyncwatch >"$work/out" 2>&1 &
    watcher=$!
    while [ $found = 1 ] && [ $SECONDS -lt $end ]; do
        sleep 0.1
        grep -q 'mlx5_0: async event FD' "$work/out" && found=0
    done
    kill "$watcher"
    wait "$watcher"
    return $found
}
if watch; then
    ok "ibv_asyncwatch opens the device"
else
    not_ok "ibv_asyncwatch opens the device"
    show "$work/out"
fi
plan
