#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# unaligned.sh - words that go inline into a work request may lie at any address: in what nvcc makes of it, each load of 8 bytes
# stands behind a look at the address.  nvcc 13.0 took two loads, of 8 aligned bytes and of single ones, for the same.
set -u
case ${NVCC:-no} in no) echo "no nvcc"; exit 77 ;; esac
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT

cat >"$tmp/word.cu" <<'END'
#include <shmem.h>
__global__ void word(uint64_t *out, const char *data, uint32_t at, uint32_t len)
{
    *out = shmemi_sq_odd_word(data, at, len);
}
END
"$NVCC" -arch=sm_90 -I"${top_srcdir:?}/include" -I"${top_builddir:?}/include" -ptx "$tmp/word.cu" \
    -o "$tmp/word.ptx" >"$tmp/log" 2>&1 || { head -n 20 "$tmp/log"; exit 1; }
awk '/^\.func.*shmemi_sq_odd_word/ { inside = 1 } inside { print } /^}/ { inside = 0 }' "$tmp/word.ptx" >"$tmp/body"
loads=$(grep -cE 'ld(\.global)?\.(u|b)64[[:space:]]' "$tmp/body")
looks=$(grep -cE 'and\.b64[[:space:]].*, 7;' "$tmp/body")
echo "1..1"
[ "$loads" -gt 0 ] && [ "$loads" = "$looks" ] || { echo "not ok 1 - $loads loads of 8 bytes behind $looks looks at the address"; exit 1; }
echo "ok 1 - $loads loads of 8 bytes, each behind a look at the address"
