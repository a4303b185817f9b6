#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# run.sh - the GPU benchmark of Marrow beside NVSHMEM and NCCL: builds all, runs each twice in turns, prints the table.
#
#     bench/gpu/run.sh (-t TARBALL | -p PREFIX) [-n 'PES...'] [-o OUT] [-r ROW] [-m]
#
#   -t, -p   a `make dist` tarball to build and install, or where Marrow is installed
#   -n       numbers of PEs (default: those of 2 and 4 that have a GPU each; with one GPU both, under MPS)
#   -o       folder for the figures: table-N.csv and each program's own output (default: gpu-bench.out)
#   -r       only rows whose name starts so
#   -m       under MPS on GPU 0 though there are more GPUs
#
# NVSHMEM and NCCL are taken from python3's wheels where they are; without them their columns stay empty.  NVLink
# multicast is switched off in both.  Exit status: 0, 1 when something failed or a value was wrong, 77 without a GPU.
set -u

here=$(cd "$(dirname "$0")" && pwd)
. "$here/../../maint/mps.sh"

usage() {
    sed -n '3,14s/^# \{0,1\}//p' "$0" >&2
    exit 2
}

tarball='' prefix='' counts='' out=gpu-bench.out only='' one_gpu=no
while getopts t:p:n:o:r:m opt; do
    case $opt in
    t) tarball=$OPTARG ;;
    p) prefix=$OPTARG ;;
    n) counts=$OPTARG ;;
    o) out=$OPTARG ;;
    r) only=$OPTARG ;;
    m) one_gpu=yes ;;
    *) usage ;;
    esac
done
[ -n "$tarball$prefix" ] && [ $OPTIND -gt $# ] || usage
gpus=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU')
[ "$gpus" -gt 0 ] || { echo "bench/gpu: no GPU here"; exit 77; }
[ "$one_gpu" = no ] || { gpus=1 CUDA_VISIBLE_DEVICES=0; export CUDA_VISIBLE_DEVICES; }
out=$(mkdir -p "$out" && cd "$out" && pwd) || exit 1
work=$(mktemp -d) || exit 1
trap 'mps_stop; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
export CUDA_MODULE_LOADING=EAGER NCCL_NVLS_ENABLE=0 NCCL_SOCKET_IFNAME=lo

wheel() { python3 -c "import nvidia.$1 as m; print(list(m.__path__)[0])" 2>/dev/null; }
cuda=$(cd "$(dirname "$(readlink -f "$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)")")/.." && pwd)
nvcc=$cuda/bin/nvcc
arch=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d .)
flags=(-std=c++17 -O3 "-arch=sm_$arch")

# compile LIBRARY FLAG...: every source, at once; then waits for all.
compile() {
    local library=$1 f pid pids=() bad=0
    shift
    for f in main sync p2p rate coll; do
        timeout 240 "$nvcc" "${flags[@]}" "$@" -c "$here/$f.cu" -o "$work/$library-$f.o" >"$out/build-$library-$f.log" 2>&1 &
        pids+=($!)
    done
    for pid in "${pids[@]}"; do wait "$pid" || bad=1; done
    [ $bad = 0 ] || grep -h error "$out/build-$library"-*.log | head
    return $bad
}

link_with() {
    local library=$1
    shift
    timeout 120 "$nvcc" "${flags[@]}" "$work/$library"-{main,sync,p2p,rate,coll}.o -o "$work/$library" "$@" \
        >"$out/build-$library.log" 2>&1 || { head "$out/build-$library.log"; return 1; }
}

build_nvshmem() {
    local nv
    nv=$(wheel nvshmem) && [ -d "$nv/include" ] || { echo "no NVSHMEM wheel: its column stays empty"; return 1; }
    echo "$nv/lib" >"$work/nvshmem.lib"
    compile nvshmem -DUSE_NVSHMEM -rdc=true -I"$nv/include" &&
        link_with nvshmem -rdc=true -L"$nv/lib" -l:libnvshmem_host.so.3 -lnvshmem_device -lcuda -Xlinker "-rpath=$nv/lib"
}

build_nccl() {
    local nc
    nc=$(wheel nccl) && [ -f "$nc/include/nccl_device.h" ] || nc=$cuda
    [ -f "$nc/include/nccl_device.h" ] || { echo "NCCL here has no device API: its column stays empty"; return 1; }
    [ -d "$nc/lib" ] || nc=$cuda/lib64/..
    timeout 120 "$nvcc" "${flags[@]}" -I"$nc/include" "$here/nccl_lsa.cu" -o "$work/nccl" -L"$nc/lib" -L"$cuda/lib64" \
        -l:libnccl.so.2 -Xlinker "-rpath=$nc/lib" >"$out/build-nccl.log" 2>&1 || { head "$out/build-nccl.log"; return 1; }
}

start=$SECONDS
build_nvshmem >"$out/build-nvshmem.txt" 2>&1 & nvshmem_pid=$!
build_nccl >"$out/build-nccl.txt" 2>&1 & nccl_pid=$!
if [ -n "$tarball" ]; then
    sh "$here/../../maint/install-tarball.sh" "$tarball" "$work/marrow-build" || exit 1
    prefix=$work/marrow-build/install
fi
failed=0
stream=()
grep -q shmemx_barrier_all_on_stream "$prefix/include/shmem/apix.h" || stream=(-DBENCH_NO_STREAM)
compile marrow -I"$prefix/include" "${stream[@]}" &&
    link_with marrow -L"$prefix/lib" -lmarrow -Xlinker "-rpath=$prefix/lib" || failed=1
wait "$nvshmem_pid" || true
wait "$nccl_pid" || true
cat "$out/build-nvshmem.txt" "$out/build-nccl.txt"
echo "built in $((SECONDS - start)) s"
[ -x "$work/marrow" ] || { echo "bench/gpu: Marrow's side was not built"; exit 1; }

# one LIBRARY N TURN [OPTION]...: a run; its table goes to OUT/N/LIBRARY.TURN.
one() {
    local library=$1 n=$2 turn=$3 status
    shift 3
    [ -x "$work/$library" ] || return 0
    mkdir -p "$out/$n"
    rm -f "$work/uid"
    BENCH_UID_FILE=$work/uid timeout -k 5 60 "$prefix/bin/oshrun" -n "$n" "$work/$library" "$@" \
        >"$out/$n/$library.$turn" 2>"$out/$n/$library.$turn.err" </dev/null
    status=$?
    if [ $status != 0 ]; then
        failed=1
        echo "$library, $n PEs, run $turn: exit status $status; what it printed counts"
        tail -n 5 "$out/$n/$library.$turn.err"
    fi
}

# side_by_side N BARS
side_by_side() {
    local n=$1 turn order library options=()
    [ -z "$only" ] || options=(--only "$only")
    for turn in 1 2; do
        order="marrow nvshmem"
        [ $turn = 1 ] || order="nvshmem marrow"
        for library in $order; do one "$library" "$n" $turn "${options[@]}"; done
    done
    [ "$2" = 0 ] || one nccl "$n" 1
    awk -v pes="$n" -v bars="$2" -v csv="$out/table-$n.csv" -f "$here/table.awk" "$here/bars.tab" \
        $(find "$out/$n" -name '*.[12]' | sort) || failed=1
}

export NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME=lo NVSHMEM_REMOTE_TRANSPORT=none NVSHMEM_DISABLE_NVLS=1 NVSHMEM_DISABLE_NCCL=1
[ ! -f "$work/nvshmem.lib" ] || LD_LIBRARY_PATH=$(cat "$work/nvshmem.lib")${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH
if [ -z "$counts" ]; then
    counts="2 4"
    case $gpus in 2 | 3) counts=2 ;; esac
fi
for n in $counts; do
    echo
    if [ "$n" -le "$gpus" ]; then
        echo "== $n PEs, one a GPU"
        side_by_side "$n" 1
    elif mps_start "$work/mps"; then
        echo "== $n PEs on $gpus GPU under MPS"
        NVSHMEM_IGNORE_CUDA_MPS_ACTIVE_THREAD_PERCENTAGE=1
        export NVSHMEM_IGNORE_CUDA_MPS_ACTIVE_THREAD_PERCENTAGE
        side_by_side "$n" 0
        mps_stop
    else
        echo "$n PEs: $gpus GPU and no MPS here"
        failed=1
    fi
done
echo "all in $((SECONDS - start)) s"
exit $failed
