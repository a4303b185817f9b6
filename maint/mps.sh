# SPDX-License-Identifier: BSD-3-Clause
# mps.sh - sourced: starts and ends a CUDA MPS daemon of our own, so that several PEs share one GPU at full speed.
# shellcheck shell=sh

# mps_start DIR: exports what a client needs; fails when there is no MPS or it does not answer.
mps_start() {
    command -v nvidia-cuda-mps-control >/dev/null || return 1
    mkdir -p "$1/pipe" "$1/log"
    CUDA_MPS_PIPE_DIRECTORY=$1/pipe
    CUDA_MPS_LOG_DIRECTORY=$1/log
    export CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
    timeout -k 2 20 nvidia-cuda-mps-control -d >"$1/log/start" 2>&1 </dev/null || { mps_forget; return 1; }
    mps_running=yes
}

mps_stop() {
    [ "${mps_running:-no}" = yes ] || return 0
    echo quit | timeout -k 2 20 nvidia-cuda-mps-control >/dev/null 2>&1 || true
    mps_forget
}

mps_forget() {
    unset CUDA_MPS_PIPE_DIRECTORY CUDA_MPS_LOG_DIRECTORY
    mps_running=no
}
