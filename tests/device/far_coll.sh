#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# far_coll.sh - barriers and collectives of kernels on teams that span nodes, over the virtual NIC: every shape in which members
# meet, nodes of different sizes, lost packets; and a PE that does not come is named.
set -u
. "${top_srcdir:?}/tests/launch/lib.sh"
nic=$build/tests/softhca/softhca-run
here=$build/tests/device
[ -x "$nic" ] || skip_all "no virtual NIC"
export SHMEM_SYMMETRIC_SIZE=64M MARROW_IB_TIMEOUT=18 MARROW_TRANSPORT=ibgda TAP_TIMEOUT=280

# passes NODES PES SHAPE OPTIONS TEST: all points.  SHAPE: - what the library chooses, mesh, or the radix of a tree.
passes() {
    local nodes=$1 n=$2 shape=$3 test=$5
    local -a options=()
    [ "$4" = - ] || read -ra options <<< "$4"
    unset TAP_FAR_SHAPE MARROW_BARRIER_RADIX
    case $shape in
    -) ;;
    mesh) export TAP_FAR_SHAPE=2 ;;
    *) export MARROW_BARRIER_RADIX=$shape ;;
    esac
    go 300 "$nic" ${options[@]+"${options[@]}"} "$oshrun" --nodes "$nodes" -n "$n" "$here/$test"
    holds "$test, $n PEs on $nodes nodes, shape $shape${options[*]:+, ${options[*]}}" \
        eval '[ "$status" = 0 ] && grep -q "^1\.\." "$dir/out" && ! grep -q "^not ok" "$dir/out"'
}

passes 2 3 1 - sync
passes 3 4 2 - sync
passes 4 4 1 - sync
passes 2 4 mesh - sync
MARROW_SIMT_SEED=5 passes 3 3 2 "--faults loss=1%" sync
passes 2 2 - - coll
passes 2 3 - - coll
passes 2 4 mesh - coll
MARROW_SIMT_SEED=3 passes 3 3 1 "--faults loss=1%" coll

# late NODES PES SHAPE TEXT...: the last PE does not come; each text, a PE and for whom it waits, is said.
late() {
    local said='shmem_barrier_all.*in a kernel: has waited .* for' where="$2 PEs on $1 nodes, shape $3" pid
    unset TAP_FAR_SHAPE MARROW_BARRIER_RADIX
    [ "$3" = - ] || export MARROW_BARRIER_RADIX=$3
    MARROW_HANG_REPORT=1 timeout -k 5 95 "$nic" "$oshrun" --nodes "$1" -n "$2" "$here/far_bad" late > "$dir/out" 2> "$dir/err" &
    pid=$!
    shift 3
    while [ $# -gt 0 ]; do
        holds "$where: PE $1 waits for $2" within 60 grep -Eq "pe $1 .*$said $2: " "$dir/err"
        shift 2
    done
    kill "$pid"
    wait "$pid"
    holds "$where: nobody has passed" eval '! grep -q "has ended" "$dir/out"'
}

late 2 2 - 0 "PE 1"
late 2 4 1 2 "PE 3" 0 "PE 2 or one for which it speaks" 1 "PE 0 or one for which it speaks"
done_testing
