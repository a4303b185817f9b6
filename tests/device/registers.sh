#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# registers.sh - a kernel of 1024 threads a block has 64 registers a thread: no single call of a block takes more, with and
# without the NIC's path.
set -u
case ${NVCC:-no} in no) echo "no nvcc"; exit 77 ;; esac
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
n=0 bad=0

for nic in "" -DSHMEMX_NO_DEVICE_NIC; do
    "$NVCC" -arch=sm_90 $nic -I"$top_srcdir/include" -I"$top_builddir/include" -Xptxas -v -cubin \
        "$top_srcdir/tests/device/registers.cu" -o "$tmp/cubin" >"$tmp/log" 2>&1 || { head -20 "$tmp/log"; exit 1; }
    awk '/Compiling entry function/ { split($0, at, "\047"); name = at[2] }
        match($0, /Used [0-9]+ registers/) { print name, substr($0, RSTART + 5) + 0 }' "$tmp/log" >"$tmp/used"
    while read -r name used; do
        n=$((n + 1))
        if [ "$used" -le 64 ]; then
            echo "ok $n - $name takes $used registers${nic:+ without the NIC}"
        else
            echo "not ok $n - $name takes $used registers${nic:+ without the NIC}: more than 64"
            bad=1
        fi
    done <"$tmp/used"
done
echo "1..$n"
[ "$n" -ge 14 ] || bad=1
exit $bad
