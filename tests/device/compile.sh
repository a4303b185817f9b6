#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# compile.sh - nvcc takes every routine of kernels without a word, and the tests that check-gpu runs; two files link into one program;
# NVRTC takes the headers.
set -u
case ${NVCC:-no} in no) echo "no nvcc"; exit 77 ;; esac
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT
here=$top_srcdir/tests/device
inc=(-I"$top_srcdir/include" -I"$top_builddir/include")
lib=$(cd "$top_builddir/src/.libs" && pwd)
n=0 bad=0

quietly() { # TEXT COMMAND...
    local text=$1
    shift
    n=$((n + 1))
    if "$@" >"$tmp/log" 2>&1 && [ ! -s "$tmp/log" ]; then
        echo "ok $n - $text"
    else
        echo "not ok $n - $text"
        head -30 "$tmp/log" | sed 's/^/# /'
        bad=1
    fi
}

skip() { # TEXT WHY
    n=$((n + 1))
    echo "ok $n - $1 # SKIP $2"
}

$AWK -v out=devcalls -f "$top_srcdir/maint/gen-api.awk" "$top_srcdir"/api/{types,plain,api,device}.tab >"$tmp/devcalls.h"
quietly "$(grep -c DEVCALL "$tmp/devcalls.h") routines of kernels compile" \
    "$NVCC" -arch=sm_90 -Xcompiler -Wall,-Wextra "${inc[@]}" -I"$tmp" -ptx "$here/all_calls.cu" -o "$tmp/all.ptx"
for u in a b; do
    quietly "unit $u compiles, with warnings of the host's compiler too" \
        "$NVCC" -arch=sm_90 -Xcompiler -Wall,-Wextra "${inc[@]}" -c "$here/units_$u.cu" -o "$tmp/$u.o"
done
quietly "and with relocatable device code" "$NVCC" -arch=sm_90 -rdc=true "${inc[@]}" -c "$here/units_a.cu" -o "$tmp/rdc.o"
quietly "two units link" "$NVCC" -arch=sm_90 "$tmp/a.o" "$tmp/b.o" -o "$tmp/units" -L"$lib" -lmarrow -Xlinker -rpath,"$lib"
n=$((n + 1))
if MARROW_CUDA=0 timeout 60 "$tmp/units" >"$tmp/out" 2>"$tmp/log" && grep -q "two units" "$tmp/out"; then
    echo "ok $n - their host calls reach the library"
else
    echo "not ok $n - their host calls reach the library"
    cat "$tmp/out" "$tmp/log" | head -20 | sed 's/^/# /'
    bad=1
fi

# What runs on GPU machines alone must compile before one is there.  To a pass of nvcc for the host kernels are text, too.
tests=("$here"/far.c "$here"/far_bad.c)
for f in "$here"/*.c; do
    ! grep -q '"launch.h"' "$f" || grep -q '^ \* gpu: no' "$f" || tests+=("$f")
done
gpu=("${inc[@]}" -I"$top_srcdir/tests/mp" -I"$here" -I"$top_srcdir/src/tools/soak")
printf '%s\n' "${tests[@]}" | xargs -P 2 -I{} sh -c 'out=$1/$(basename "$2"); shift; f=$1; shift
    "$@" "$f" -o "$out.ii" >"$out.log" 2>&1; echo $? >"$out.rc"' sh "$tmp" {} "$NVCC" -x cu -std=c++17 -cuda \
    -gencode arch=compute_90,code=compute_90 "${gpu[@]}"
for f in "${tests[@]}"; do
    f=$(basename "$f")
    quietly "$f compiles for a GPU" eval 'cat "$tmp/$f.log"; [ "$(cat "$tmp/$f.rc")" = 0 ]'
done

cuda=$(dirname "$(dirname "$(readlink -f "$(command -v "$NVCC")")")")
nvrtc=
for f in "$cuda"/lib*/libnvrtc.so; do nvrtc=$f; done
if [ -e "$nvrtc" ] && [ -e "$cuda/include/nvrtc.h" ]; then
    rt=$(dirname "$nvrtc")
    quietly "the program with NVRTC builds" \
        "${CC:-cc}" -I"$cuda/include" "$here/rtc.c" -o "$tmp/rtc" -L"$rt" -lnvrtc -Wl,-rpath,"$rt"
    for arch in 75 90; do
        quietly "NVRTC takes shmem.h and shmemx.h for sm_$arch" "$tmp/rtc" --gpu-architecture=compute_$arch "${inc[@]}"
    done
else
    skip "NVRTC takes shmem.h" "no NVRTC"
fi
echo "1..$n"
exit $bad
