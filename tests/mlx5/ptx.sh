#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ptx.sh - what nvcc makes of a put: which loads, stores and atomics have an order, and how many there are (TAP).
#
# A private path holds two releases, of which one is taken: at GPU scope when the ring lies there, else at system scope; and the same
# for a queue without a doorbell record.  A shared one holds what a queue there with a record takes, and calls
# shmemi_sq_publish_other for any other.
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
# compile INCLUDE OUT
compile() { "$nvcc" -arch=sm_90 -std=c++17 -I"$1" --ptx "$src/tests/mlx5/orders.cu" -o "$2" 2> "$dir/says"; }
compile "$src/include" "$dir/orders.ptx"
status=$?
sed 's/^/# /' "$dir/says"
point $status "it compiles"
[ ! -s "$dir/says" ]
point $? "without a warning"

# orders FILE FUNCTION: the instructions of its body with an order, and the vector stores, as they come
orders() {
    awk -v name="$2" '$0 ~ "^[.](visible [.]entry|func).*" name ".*[(]$" { on = 1 } on { print } on && /^}/ { exit }' "$1" |
        grep -oE 'atom\.[a-z0-9.]*|red\.[a-z.]*|fence\.[a-z_.]*|membar\.[a-z.]*|ld\.acquire\.[a-z]*|ld\.relaxed\.[a-z]*|st\.release\.[a-z]*|st\.relaxed\.[a-z]*|st\.mmio\.relaxed\.sys|st\.(global\.)?v2\.[bu]64' |
        sed 's/st\.global\.v2/st.v2/; s/v2\.b64/v2.u64/; s/\.$//'
}

# expect NAME KERNEL WANT
expect() {
    local found
    found=$(orders "$dir/orders.ptx" "$2" | sort | uniq -c | awk '{ printf "%s%s x%s", n++ ? ", " : "", $2, $1 }')
    [ "$found" = "$3" ] || echo "# found: $found"
    [ "$found" = "$3" ]
    point $? "$1: $3"
}

# The fourth vector store is the queue's own counters.  A record in host memory has a fence of its own before the doorbell, which
# one in GPU memory does not take: one fence of system scope more than are on that way.  The other two are of a queue without a record.
expect "private: no atomic, one release" put_private \
    "fence.release.gpu x1, fence.release.sys x2, st.mmio.relaxed.sys x1, st.release.gpu x1, st.release.sys x1, st.v2.u64 x4"
# The second look at the baton, the acquire of who waits for it and the look at `reserved` are for who found it not to be its turn.
expect "shared: one atomic, beside it two loads, one fence" put_shared \
    "atom.add.relaxed.gpu.global.u64 x1, fence.release.gpu x1, ld.relaxed.gpu x4, st.mmio.relaxed.sys x1, st.relaxed.gpu x1, st.relaxed.sys x1, st.v2.u64 x3"
expect "shared, other memory or no record: a fence of either scope, before a record's doorbell one more" shmemi_sq_publish_other \
    "fence.release.gpu x1, fence.release.sys x2, ld.relaxed.gpu x2, st.mmio.relaxed.sys x2, st.relaxed.gpu x1, st.relaxed.sys x1"

# Two ways, one for a whole warp on one queue.
expect "a warp on its private queue: each way as one lane" put_warp \
    "fence.release.gpu x2, fence.release.sys x4, st.mmio.relaxed.sys x2, st.release.gpu x2, st.release.sys x2, st.v2.u64 x8"

# All that is taken of it: one fence, and no record; the shared baton moves on by the same store as the record.
expect "no record, private: no atomic, one fence, the doorbell" bare_private \
    "fence.release.gpu x1, st.mmio.relaxed.sys x1, st.v2.u64 x4"
expect "no record, shared: one atomic, the rest in shmemi_sq_publish_other" bare_shared \
    "atom.add.relaxed.gpu.global.u64 x1, ld.relaxed.gpu x2, st.v2.u64 x3"

# in_order FILE KERNEL: all entries are written before the fence, which comes before record and doorbell
in_order() {
    orders "$1" "$2" | awk '/st\.v2/ { if (fence) bad = 1; entry++ } /^fence/ { fence++ }
        /st\.(relaxed|mmio)/ && !fence { bad = 1 } END { exit bad || !entry || !fence }'
}
for kernel in put_shared bare_private; do
    in_order "$dir/orders.ptx" $kernel
    point $? "$kernel: entries, fence, record, doorbell"
done
# fence_first FILE FUNCTION: the same of a function to which others have left record and doorbell
fence_first() {
    orders "$1" "$2" | awk '/^fence/ { fence++ } /st\.(relaxed|mmio)/ && !fence { bad = 1 } END { exit bad || !fence }'
}
fence_first "$dir/orders.ptx" shmemi_sq_publish_other
point $? "shmemi_sq_publish_other: fence, record, doorbell"
# doorbell_first FILE FUNCTION: before the baton of a shared queue without a record
doorbell_first() {
    orders "$1" "$2" | awk '/st\.mmio/ { bell = 1 } /st\.relaxed\.sys/ && !bell { bad = 1 } END { exit bad || !bell }'
}
doorbell_first "$dir/orders.ptx" shmemi_sq_publish_other
point $? "shmemi_sq_publish_other: doorbell, baton"

# mutant NAME FROM TO CHECK KERNEL: the same of a header with one line changed, which must be found
mutant() {
    mkdir -p "$dir/include/shmem/device"
    cp "$src"/include/shmem/device/*.h "$dir/include/shmem/device"
    FROM=$2 TO=$3 awk 'BEGIN { from = ENVIRON["FROM"]; to = ENVIRON["TO"] }
        (i = index($0, from)) { $0 = substr($0, 1, i - 1) to substr($0, i + length(from)); n++ }
        { print } END { exit n != 1 }' "$src/include/shmem/device/sq_ring.h" > "$dir/include/shmem/device/sq_ring.h" &&
        compile "$dir/include" "$dir/mutant.ptx" && ! "$4" "$dir/mutant.ptx" "$5"
    point $? "$1: found"
}
mutant "no fence before the record" "    shmemi_fence_nic(1);" "" in_order put_shared
mutant "an entry behind the fence" "    shmemi_st_fenced_nic(q->dbrec, shmemi_sq_record(end));" \
    "    shmemi_st_fenced_nic(q->dbrec, shmemi_sq_record(end)); shmemi_fence_nic(1); shmemi_st16(q->ring, shmemi_mlx5_pair8(1, 2));" in_order put_shared
mutant "no record, private: no fence before the doorbell" "        shmemi_fence_nic(near);" "" in_order bare_private
mutant "no record, shared: no fence before the doorbell" "    shmemi_fence_nic(q.flags & SHMEMI_SQ_NEAR);" "" fence_first \
    shmemi_sq_publish_other
mutant "no record, shared: the baton before the doorbell" "    if (ring && shmemi_sq_no_record(&q)) {" \
    "    SHMEMI_ST_RLX(q.dbrec, shmemi_sq_record(end)); if (ring && shmemi_sq_no_record(&q)) {" doorbell_first \
    shmemi_sq_publish_other

echo "1..$points"
exit $failed
