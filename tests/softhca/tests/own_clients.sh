#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The project's own clients of the virtual NIC: queues in own memory through DEVX, errno of malformed commands, random
# commands. SOFTHCA_BIN is the folder with their programs.
. "$(dirname "$0")/clients.sh"
: "${SOFTHCA_BIN:=$(dirname "$SOFTHCA_RUN")/tests}"

# tap NAME OPTIONS PROGRAM...: takes over the results that a program prints in this protocol.
tap() {
    local name=$1 options=$2 line points=0 status
    shift 2
    # shellcheck disable=SC2086 # options are several words
    timeout -k 5 "$CLIENT_LIMIT" "$SOFTHCA_RUN" $options "$@" >"$work/out" 2>"$work/err"
    status=$?
    while read -r line; do
        case $line in
        "ok "*) ok "$name: ${line#* - }" ;;
        "not ok "*) not_ok "$name: ${line#* - }" ;;
        "# "*) echo "$line"; continue ;;
        *) continue ;;
        esac
        points=$((points + 1))
    done <"$work/out"
    if [ $status -ne 0 ] || [ $points -eq 0 ] || ! grep -q "^1\.\.$points\$" "$work/out"; then
        not_ok "$name: exit status $status after $points points"
        show "$work/err"
    fi
}

tap "DEVX client" "" "$SOFTHCA_BIN/devx_client"
tap "DEVX client, UDP" "--wire udp" "$SOFTHCA_BIN/devx_client"
tap "DEVX client, Ethernet port" "--link eth" "$SOFTHCA_BIN/devx_client"
tap "DEVX client, 1 % loss" "--faults loss=1%" "$SOFTHCA_BIN/devx_client"
tap "DEVX client, no doorbell record" "--no-dbr 6" "$SOFTHCA_BIN/devx_client" bare
if grep -q "at 0x800 of page .* has no doorbell record, so its register is another" "$work/err"; then
    ok "a doorbell in the wrong register is complained about"
else
    not_ok "a doorbell in the wrong register is complained about"
fi
for offer in 0 5; do # none, and none as long as the client's
    timeout -k 5 "$CLIENT_LIMIT" "$SOFTHCA_RUN" --no-dbr $offer "$SOFTHCA_BIN/devx_client" bare >/dev/null 2>&1
    if [ $? -eq 3 ]; then ok "no queue without a doorbell record: offered $offer"; else not_ok "no such queue: offered $offer"; fi
done
tap "errno" "" "$SOFTHCA_BIN/check_errno"
tap "errno, Ethernet port" "--link eth" "$SOFTHCA_BIN/check_errno"
tap "memory keys" "" "$SOFTHCA_BIN/check_mr"
tap "memory keys, UDP" "--wire udp" "$SOFTHCA_BIN/check_mr"
tap "events" "" "$SOFTHCA_BIN/check_events"
tap "events, Ethernet port" "--link eth" "$SOFTHCA_BIN/check_events"
tap "events, UDP" "--wire udp" "$SOFTHCA_BIN/check_events"
tap "link down and up" "--faults linkdown=50ms+100ms" "$SOFTHCA_BIN/check_events" link
tap "death of the device" "--faults die=50ms" "$SOFTHCA_BIN/check_events" death
tap "two devices" "--devices 2" "$SOFTHCA_BIN/check_rails"
tap "two devices, Ethernet ports" "--devices 2 --link eth" "$SOFTHCA_BIN/check_rails"
tap "two devices, UDP" "--devices 2 --wire udp --net 127.78.0.0" "$SOFTHCA_BIN/check_rails"
tap "two devices, 1 % loss on one" "--devices 2 --faults mlx5_1:loss=1%" "$SOFTHCA_BIN/check_rails"
tap "two devices, one port down" "--devices 2 --faults mlx5_1:port=down" "$SOFTHCA_BIN/check_rails" down
tap "two devices, one with errors" "--devices 2 --faults mlx5_1:qperr=1:0x02" "$SOFTHCA_BIN/check_rails" error
tap "two devices, one dies" "--devices 2 --faults mlx5_1:die=20ms" "$SOFTHCA_BIN/check_rails" death
tap "threads" "" "$SOFTHCA_BIN/check_threads"
early=$SOFTHCA_BIN/.libs/early.so
if [ ! -e "$early" ]; then
    skip "a device opened by a library's constructor" "$early is not built"
elif timeout -k 5 "$CLIENT_LIMIT" "$SOFTHCA_RUN" sh -c "LD_PRELOAD=\$LD_PRELOAD:$early exec true" >"$work/out" 2>&1 &&
    grep -qx 'opened early: yes' "$work/out"; then
    ok "a device opened by a library's constructor"
else
    not_ok "a device opened by a library's constructor"
    show "$work/out"
fi
tap "random commands" "" "$SOFTHCA_BIN/fuzz_cmd" "${SOFTHCA_FUZZ_SECONDS:-5}"
plan
