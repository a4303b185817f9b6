#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# info.sh - shmem-info on GPUs, with the stand-in driver of tests/fakecuda: what there is, who reaches whom, why not.
set -u
info=${top_builddir:?run by make check}/src/tools/shmem-info
fake=$top_builddir/tests/fakecuda
dir=$(mktemp -d "${TMPDIR:-/tmp}/marrow-info.XXXXXX") || exit 99
trap 'rm -rf "$dir"' EXIT
points=0
bads=0

# shows PATTERN NAME VARIABLE=VALUE...: shmem-info -t has a line that matches.
shows() {
    local pattern=$1 name=$2
    shift 2
    points=$((points + 1))
    if timeout 60 env "$@" "$info" -t > "$dir/out" 2>&1 && grep -Eq -- "$pattern" "$dir/out"; then
        echo "ok $points - $name"
    else
        bads=$((bads + 1))
        echo "not ok $points - $name"
        sed 's/^/# /' "$dir/out" | head -40
    fi
}

with=(LD_LIBRARY_PATH="$fake${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}")
shows '^  cuda +yes: 1 GPU, driver for CUDA 13\.0' "a GPU and its driver" "${with[@]}"
shows ' 0: Fake GPU 0, 0000:01:00\.0, compute capability 9\.0, 4 multiprocessors, 1\.0 GiB' "name, place and size" "${with[@]}"
shows 'device heap shared as descriptors, grows; dma-buf ' "how its memory is shared" "${with[@]}"
shows 'device heap shared by CUDA IPC, does not grow' "without descriptors" "${with[@]}" FAKECUDA_NO_VMM=1
shows "host heap usable from kernels yes; their atomics .* CPU's: no" "over PCIe no atomics with the CPU" "${with[@]}"
shows "their atomics .* CPU's: yes" "where the link has them" "${with[@]}" FAKECUDA_HOST_ATOMICS=1
shows '^ +1  A  \.' "who reaches whom" "${with[@]}" FAKECUDA_DEVICES=2
shows '^ +1  -  \.' "who does not" "${with[@]}" FAKECUDA_DEVICES=2 FAKECUDA_NO_PEER=1
shows "library's kernels.*(built with|none, nvcc)" "the library's kernels" "${with[@]}"
shows '^  cuda +no: no usable GPU \(CUDA_ERROR_NO_DEVICE\)' "no GPU" "${with[@]}" FAKECUDA_DEVICES=0
shows '^  cuda +no: the CUDA driver is for CUDA 11\.8: 12\.0 or later is needed' "an old driver" "${with[@]}" FAKECUDA_VERSION=11080
# A value that cannot be read: the variables behind it are not known either.
SHMEM_SYMMETRIC_SIZE=1X timeout 60 "$info" > "$dir/out" 2>&1
status=$?
points=$((points + 1))
if [ $status = 1 ] && grep -q 'not looked at with such a value' "$dir/out"; then
    echo "ok $points - a bad value is an error, no crash"
else
    bads=$((bads + 1))
    echo "not ok $points - a bad value is an error, no crash (status $status)"
fi
echo "1..$points"
exit $((bads > 0))
