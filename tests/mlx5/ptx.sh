#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ptx.sh - what nvcc makes of a put: which loads, stores and atomics have an order, and how many there are (TAP).
#
# Each path holds two releases, of which one is taken: at GPU scope when the ring lies there, else at system scope.
set -u

src=${top_srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
nvcc=${NVCC:-$(PATH=$PATH:/usr/local/cuda/bin command -v nvcc)}
dir=$(mktemp -d "${TMPDIR:-/tmp}/marrow-ptx.XXXXXX") || exit 1
trap 'rm -rf "$dir"' EXIT
points=0 failed=0

point() { # point STATUS NAME
    points=$((points + 1))
    if [ "$1" -eq 0 ]; then echo "ok $points - $2"; else failed=1; echo "not ok $points - $2"; fi
}

if [ -z "$nvcc" ] || ! "$nvcc" --version > /dev/null 2>&1; then
    echo "1..0 # SKIP no nvcc"
    exit 0
fi
"$nvcc" -arch=sm_90 -std=c++17 -I"$src/include" --ptx "$src/tests/mlx5/orders.cu" -o "$dir/orders.ptx" 2> "$dir/says"
status=$?
sed 's/^/# /' "$dir/says"
point $status "it compiles"
[ ! -s "$dir/says" ]
point $? "without a warning"

# kernel NAME: the instructions of its body with an order, and the vector stores, sorted and counted
kernel() {
    awk -v name="$1" '$0 ~ "[.]entry " name "[(]" { on = 1 } on { print } on && /^}/ { exit }' "$dir/orders.ptx" |
        grep -oE 'atom\.[a-z0-9.]*|red\.[a-z.]*|fence\.[a-z_.]*|membar\.[a-z.]*|ld\.acquire\.[a-z]*|ld\.relaxed\.[a-z]*|st\.release\.[a-z]*|st\.relaxed\.[a-z]*|st\.mmio\.relaxed\.sys|st\.(global\.)?v2\.[bu]64' |
        sed 's/st\.global\.v2/st.v2/; s/v2\.b64/v2.u64/; s/\.$//' | sort | uniq -c | awk '{ printf "%s%s x%s", n++ ? ", " : "", $2, $1 }'
}

# expect NAME KERNEL WANT
expect() {
    local found
    found=$(kernel "$2")
    [ "$found" = "$3" ] || echo "# found: $found"
    [ "$found" = "$3" ]
    point $? "$1: $3"
}

# The fourth vector store is the queue's own counters.
expect "private: no atomic, one release" put_private \
    "st.mmio.relaxed.sys x1, st.release.gpu x1, st.release.sys x1, st.v2.u64 x4"
# The second acquire of the baton and the look at `reserved` are for who found it not to be its turn.
expect "shared: one atomic, beside it two loads, one release" put_shared \
    "atom.add.relaxed.gpu.global.u64 x1, ld.acquire.gpu x3, ld.relaxed.gpu x1, st.mmio.relaxed.sys x1, st.relaxed.gpu x2, st.release.gpu x1, st.release.sys x1, st.v2.u64 x3"
expect "a warp on its private queue: as one lane" put_warp \
    "st.mmio.relaxed.sys x1, st.release.gpu x1, st.release.sys x1, st.v2.u64 x4"

echo "1..$points"
exit $failed
