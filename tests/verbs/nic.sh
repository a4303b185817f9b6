#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The NIC module over the virtual NIC: both kinds of queue, both links, with and without faults.
# shellcheck source=tests/softhca/tests/clients.sh
. "${top_srcdir:-.}/tests/softhca/tests/clients.sh"
bin=${top_builddir:-.}/tests/verbs
export MARROW_MODULE_DIR=${top_builddir:-.}/src/.libs

# moves NAME PES OPTIONS [VARIABLE=VALUE...]: nic_data passes all of its points, and the NIC has nothing to complain about.
moves() {
    local name=$1 pes=$2 options=$3
    shift 3
    # shellcheck disable=SC2086 # options are several words
    if timeout -k 5 "$CLIENT_LIMIT" env "$@" "$SOFTHCA_RUN" $options "$bin/nic_data" "$pes" > "$work/out" 2>&1 &&
        grep -q '^1\.\.8$' "$work/out" && ! grep -qE '^not ok|lint:|\] !' "$work/out"; then
        ok "$name"
    else
        not_ok "$name"
        show "$work/out"
    fi
}

for kind in ibgda proxy; do
    for link in ib eth; do
        moves "$kind, $link, 3 PEs" 3 "--link $link" MARROW_TRANSPORT=$kind
        moves "$kind, $link, 2 % of packets lost" 2 "--link $link --faults loss=2% --seed 3" MARROW_TRANSPORT=$kind
    done
    moves "$kind, two devices a PE" 3 "--devices 2" MARROW_TRANSPORT=$kind
    moves "$kind, two devices, 2 % of packets lost" 2 "--devices 2 --link eth --faults loss=2% --seed 4" MARROW_TRANSPORT=$kind
    moves "$kind, one PE alone" 1 "" MARROW_TRANSPORT=$kind
    moves "$kind, UDP wire, lost, late, twice" 2 "--wire udp --link eth --faults loss=3%,dup=3%,reorder=3%,delay=3%:2ms" \
        MARROW_TRANSPORT=$kind
    moves "$kind, short queue" 2 "" MARROW_TRANSPORT=$kind MARROW_QUEUE_DEPTH=16
done
plan
