#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# GPU memory behind the virtual NIC: with the driver where there is one, else with a stand-in whose device addresses
# cannot be touched by the processor.
. "$(dirname "$0")/clients.sh"
: "${SOFTHCA_BIN:=$(dirname "$SOFTHCA_RUN")/tests}"

timeout -k 5 "$CLIENT_LIMIT" "$SOFTHCA_RUN" "$SOFTHCA_BIN/cuda_client" >"$work/out" 2>"$work/err"
status=$?
if [ $status -eq 0 ] && grep -q '^1\.\.0' "$work/out"; then
    for fake in "$SOFTHCA_BIN/.libs/fake_cuda.so" "$SOFTHCA_BIN/fake_cuda.so"; do
        [ -f "$fake" ] && ln -sf "$(readlink -f "$fake")" "$work/libcuda.so.1"
    done
    if [ ! -e "$work/libcuda.so.1" ]; then
        echo "1..0 # SKIP neither a GPU nor the stand-in"
        exit 0
    fi
    echo "# no GPU: stand-in for the driver"
    LD_LIBRARY_PATH=$work${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} timeout -k 5 "$CLIENT_LIMIT" "$SOFTHCA_RUN" \
        "$SOFTHCA_BIN/cuda_client" >"$work/out" 2>"$work/err"
    status=$?
fi
cat "$work/out"
show "$work/err"
exit $status
