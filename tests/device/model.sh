#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# model.sh - what the library chooses for a barrier over nodes is the best that the model knows, from 2 PEs to a million.
set -u
model=${top_builddir:?run by make check}/tests/device/barrier_model
points=0
bads=0

# agrees NAME STATUS OPTION...: the model ends with this status and has a line for the largest job
agrees() {
    local name=$1 want=$2 out status
    shift 2
    out=$(timeout 100 "$model" --check "$@" 2>&1)
    status=$?
    points=$((points + 1))
    if [ "$status" = "$want" ] && grep -Eq '^ *1048576 ' <<< "$out"; then
        echo "ok $points - $name"
    else
        bads=$((bads + 1))
        echo "not ok $points - $name"
        printf '%s\n' "$out" | sed 's/^/# /' | head -40
    fi
}

for n in 1 2 4 8; do
    agrees "$n PEs a node: the choice is within 5 % of the best" 0 --pes-per-node "$n"
done
# The comparison can fail: with a wire of no length and posts that take long the library's constants are wrong.
agrees "other costs, and the choice is not the best" 1 --wire 0 --nic 100 --post 100 --next 2000
echo "1..$points"
[ "$bads" = 0 ]
