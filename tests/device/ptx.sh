#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# ptx.sh - what nvcc makes of the device code: widths of accesses, orders and scopes, and how many fences;
# without the NIC's path, whose fences are its own.
set -u
case ${NVCC:-no} in no) echo "no nvcc"; exit 77 ;; esac
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
n=0 bad=0

point() { # STATUS TEXT
    n=$((n + 1))
    if [ "$1" -eq 0 ]; then
        echo "ok $n - $2"
    else
        echo "not ok $n - $2"
        bad=1
    fi
}

"$NVCC" -arch=sm_90 -DSHMEMX_NO_DEVICE_NIC -I"$top_srcdir/include" -I"$top_builddir/include" -ptx "$top_srcdir/tests/device/ptx.cu" -o "$tmp/ptx" >"$tmp/log" 2>&1
s=$?
[ -s "$tmp/log" ] && s=1
point $s "ptx.cu compiles without a word"
head -20 "$tmp/log" | sed 's/^/# /'

# FUNCTION INSTRUCTION of each access with an order, each vector access, atomic and fence; functions without their mangling.
awk '
    /^\.visible \.entry |^\.func / { name = $0 }
    /^\.visible \.entry / { sub(/.*\.entry /, "", name); sub(/\(.*/, "", name) }
    /^\.func / { sub(/^.* /, "", name); sub(/\($/, "", name); if (match(name, /shmemi_[a-z0-9_]*[a-z0-9]E/)) name = substr(name, RSTART, RLENGTH - 1) }
    /^\.visible \.entry |^\.func / { print name, "function" }
    { op = $1 ~ /^@/ ? $2 : $1; sub(/;$/, "", op) }
    op ~ /^(fence|membar|atom|red)|^(ld|st)\..*(relaxed|acquire|release|v2|v4)/ { print name, op }
' "$tmp/ptx" >"$tmp/ops"

count() { grep -cE "^$1 $2" "$tmp/ops"; } # FUNCTION PATTERN

has() { # FUNCTION PATTERN LEAST TEXT
    [ "$(count "$1" "$2")" -ge "$3" ]
    point $? "$1: $4"
}

fences() { # FUNCTION WANT
    [ "$(count "$1" function)" -ge 1 ] && [ "$(count "$1" '(fence|membar)')" -eq "$2" ]
    point $? "$1: $2 fences"
}

has p 'st\.relaxed\.sys\.(b|u)32' 1 "one relaxed store"
has g 'ld\.relaxed\.sys\.(b|u)32' 1 "one relaxed load"
has shmemi_copy_vectors 'ld\.(global\.)?v2\.(b|u)64' 8 "eight loads of 16 bytes in a turn"
has shmemi_copy_vectors 'st\.(global\.)?v2\.(b|u)64' 8 "eight stores of 16 bytes in a turn"
has shmemi_copy_by_one 'ld\.(global\.)?v2\.(b|u)64' 8 "a thread by itself has loads of 16 bytes in flight"
has shmemi_copy_shifted 'st\.(global\.)?v2\.(b|u)64' 1 "misaligned pairs go by 16 bytes"
has put_signal 'st\.release\.sys\.(b|u)64' 1 "the signal is a release store"
has signal_add '(atom|red)\.add\.release\.sys' 1 "the signal is a release addition"
has signal_op 'st\.relaxed\.sys' 1 "a signal alone orders nothing"
# Of a group, one thread or a warp serves the members: a fence in each of the two ways.
fences barrier_thread 1
for f in barrier_warp barrier_block; do fences $f 2; done
fences shmemi_dev_sync_any 1
for f in barrier_thread barrier_warp barrier_block shmemi_dev_sync_any; do
    has $f 'fence\.acq_rel\.sys' 1 "its fence is acq_rel at system scope"
    has $f 'st\.relaxed\.sys\.(b|u)64' 1 "flags are relaxed stores behind it"
    has $f 'ld\.acquire\.sys\.(b|u)64' 1 "and read with acquire"
done
for f in sync_thread sync_block; do
    fences $f 0
    has $f 'ld\.relaxed\.sys\.(b|u)64' 1 "polls are relaxed"
    [ "$(count $f '(ld\.acquire|st\.release)')" -eq 0 ]
    point $? "$f: no acquire, no release"
done
for f in add fetch_add; do has $f '(atom|red)\.add\.relaxed\.sys' 1 "one atomic at system scope"; done
has swap 'atom\.exch\.relaxed\.sys' 1 "one atomic at system scope"
has cswap 'atom\.cas\.relaxed\.sys' 1 "one atomic at system scope"
has set 'st\.relaxed\.sys' 1 "a store"
has fetch 'ld\.relaxed\.sys' 1 "a load"
has wait 'ld\.acquire\.sys' 1 "polls with acquire"
for f in p g put_thread put_block get_block put_signal signal_add signal_op add fetch_add swap cswap set fetch wait \
    shmemi_copy_vectors shmemi_copy_by_one shmemi_copy_shifted shmemi_lines_send shmemi_near_fcollect reduce_block; do
    fences $f 0
done
fences fence 1
has fence 'fence\.acq_rel\.sys' 1 "acq_rel"
fences quiet 1
has quiet 'fence\.sc\.sys' 1 "sequentially consistent"
has shmemi_lines_send 'st\.relaxed\.sys\.v2\.(b|u)64' 1 "data and flags by 16-byte stores"
has reduce_block 'ld\.relaxed\.sys\.v2\.(b|u)64' 4 "four members' lines in flight"
has reduce_block 'ld\.(global\.)?v2\.(b|u)64' 4 "four members' vectors in flight"
fences shmemi_op_meet 1
fences shmemi_exchange_meet 1
fences shmemi_near_broadcast 1
echo "1..$n"
exit $bad
