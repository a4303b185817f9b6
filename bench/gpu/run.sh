#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# run.sh - the GPU benchmark of Marrow beside NVSHMEM and NCCL: builds all, runs each twice in turns, prints the table.
#
#     bench/gpu/run.sh (-t TARBALL | -p PREFIX) [-g 'GROUPS'] [-n 'PES...'] [-o OUT] [-r ROW] [-m]
#
#   -t, -p   a `make dist` tarball to build and install, or where Marrow is installed
#   -g       what to run (default: rows):
#              rows    the table, beside NVSHMEM and NCCL
#              issue   what a put costs the threads that post it to an mlx5 queue: one GPU, no NIC; and, with
#                     -t or -p, what the calls of shmem.h cost there
#              tail    the slowest of 100,000 barriers, idle and with a busy process on each CPU core, beside NVSHMEM's
#              copies  puts of one block with the other copy loop (SHMEMI_COPY_FLOW), beside ours
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
    sed -n '3,20s/^# \{0,1\}//p' "$0" >&2
    exit 2
}

tarball='' prefix='' counts='' out=gpu-bench.out only='' one_gpu=no groups=rows
while getopts t:p:g:n:o:r:m opt; do
    case $opt in
    t) tarball=$OPTARG ;;
    p) prefix=$OPTARG ;;
    g) groups=" $OPTARG " ;;
    n) counts=$OPTARG ;;
    o) out=$OPTARG ;;
    r) only=$OPTARG ;;
    m) one_gpu=yes ;;
    *) usage ;;
    esac
done
has_group() { case " $groups " in *" $1 "*) return 0 ;; *) return 1 ;; esac; }
for g in $groups; do case $g in rows | issue | tail | copies) ;; *) usage ;; esac; done
[ $OPTIND -gt $# ] || usage
[ -n "$tarball$prefix" ] || ! { has_group rows || has_group tail || has_group copies; } || usage
gpus=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU')
[ "$gpus" -gt 0 ] || { echo "bench/gpu: no GPU here"; exit 77; }
[ "$one_gpu" = no ] || { gpus=1 CUDA_VISIBLE_DEVICES=0; export CUDA_VISIBLE_DEVICES; }
out=$(mkdir -p "$out" && cd "$out" && pwd) || exit 1
work=$(mktemp -d) || exit 1
busy=()
trap 'busy_stop; mps_stop; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
export CUDA_MODULE_LOADING=EAGER NCCL_NVLS_ENABLE=0 NCCL_SOCKET_IFNAME=lo

# A process bound to each CPU core that does nothing but compute, for two minutes at most.
busy_start() {
    local core
    for core in $(python3 -c 'import os; print(*sorted(os.sched_getaffinity(0)))'); do
        timeout -k 1 120 taskset -c "$core" bash -c 'while :; do :; done' >/dev/null 2>&1 </dev/null &
        busy+=($!)
    done
}

busy_stop() {
    [ ${#busy[@]} -gt 0 ] || return 0
    kill "${busy[@]}" 2>/dev/null
    wait "${busy[@]}" 2>/dev/null
    busy=()
}

wheel() { python3 -c "import nvidia.$1 as m; print(list(m.__path__)[0])" 2>/dev/null; }
cuda=$(cd "$(dirname "$(readlink -f "$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)")")/.." && pwd)
nvcc=$cuda/bin/nvcc
arch=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -n 1 | tr -d .)
flags=(-std=c++17 -O3 "-arch=sm_$arch")

# compile LIBRARY FLAG...: every source, at once; then waits for all.
compile() {
    local library=$1 f pid pids=() bad=0
    shift
    for f in main sync p2p rate coll tail; do
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
    timeout 120 "$nvcc" "${flags[@]}" "$work/$library"-{main,sync,p2p,rate,coll,tail}.o -o "$work/$library" "$@" \
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
failed=0

# issue: no library, only headers; the calls of shmem.h want those that a build makes.
issue() {
    local turn which whiches=issue pid pids=() bad=0
    [ -z "$prefix" ] || whiches="issue issue_calls"
    for which in $whiches; do
        timeout 300 "$nvcc" "${flags[@]}" -I"${prefix:-$here/../..}/include" "$here/$which.cu" -o "$work/$which" \
            >"$out/build-$which.log" 2>&1 &
        pids+=($!)
    done
    for pid in "${pids[@]}"; do wait "$pid" || bad=1; done
    [ $bad = 0 ] || { head "$out"/build-issue*.log; return 1; }
    mkdir -p "$out/issue"
    for turn in 1 2; do
        for which in $whiches; do
            timeout -k 5 30 "$work/$which" >>"$out/issue/marrow.$turn" 2>"$out/issue/$which.$turn.err" </dev/null || {
                echo "$which, run $turn: exit status $?"
                tail -n 5 "$out/issue/$which.$turn.err"
                failed=1
            }
        done
    done
    echo "== what a put costs who posts it, ns"
    awk -v pes=1 -v bars=1 -v csv="$out/table-issue.csv" -f "$here/table.awk" "$here/bars.tab" "$out"/issue/marrow.[12]
}

if [ -n "$tarball" ]; then
    sh "$here/../../maint/install-tarball.sh" "$tarball" "$work/marrow-build" || exit 1
    prefix=$work/marrow-build/install
fi
if has_group issue; then
    issue || failed=1
    echo "issue: $((SECONDS - start)) s"
fi
[ -n "$tarball$prefix" ] && { has_group rows || has_group tail || has_group copies; } || exit $failed

build_nvshmem >"$out/build-nvshmem.txt" 2>&1 & nvshmem_pid=$!
nccl_pid=''
if has_group rows; then
    build_nccl >"$out/build-nccl.txt" 2>&1 & nccl_pid=$!
fi
stream=()
grep -q shmemx_barrier_all_on_stream "$prefix/include/shmem/apix.h" || stream=(-DBENCH_NO_STREAM)
compile marrow -I"$prefix/include" "${stream[@]}" &&
    link_with marrow -L"$prefix/lib" -lmarrow -Xlinker "-rpath=$prefix/lib" || failed=1
if has_group copies; then
    compile flow -I"$prefix/include" "${stream[@]}" -DSHMEMI_COPY_FLOW=1000000u &&
        link_with flow -L"$prefix/lib" -lmarrow -Xlinker "-rpath=$prefix/lib" || failed=1
fi
wait "$nvshmem_pid" || true
[ -z "$nccl_pid" ] || wait "$nccl_pid" || true
cat "$out"/build-nvshmem.txt "$out"/build-nccl.txt 2>/dev/null
echo "built in $((SECONDS - start)) s"
[ -x "$work/marrow" ] || { echo "bench/gpu: Marrow's side was not built"; exit 1; }

# one LIBRARY N TURN [OPTION]...: a run; its table goes to OUT/FOLDER/LIBRARY.TURN, FOLDER being N if $folder is empty.
folder=''
one() {
    local library=$1 n=$2 turn=$3 to=$out/${folder:-$2} status
    shift 3
    [ -x "$work/$library" ] || return 0
    mkdir -p "$to"
    rm -f "$work/uid"
    BENCH_UID_FILE=$work/uid timeout -k 5 60 "$prefix/bin/oshrun" -n "$n" "$work/$library" "$@" \
        >"$to/$library.$turn" 2>"$to/$library.$turn.err" </dev/null
    status=$?
    if [ $status != 0 ]; then
        failed=1
        echo "$library, $n PEs, run $turn: exit status $status; what it printed counts"
        tail -n 5 "$to/$library.$turn.err"
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

# tails N: both libraries on an idle machine, then on a busy one; by turns, and each PE's thread bound to a core, which it
# shares with one busy process: who gets a core of its own must not depend on luck.
tails() {
    local n=$1 load library turn
    for load in idle busy; do
        folder=tail-$n-$load
        [ $load = idle ] || busy_start
        for turn in 1 2; do
            for library in marrow nvshmem; do one "$library" "$n" "$turn" --pin --only tail; done
        done
        [ $load = idle ] || busy_stop
    done
    folder=''
    echo "== barriers, ns, $n PEs, each bound to a core; busy: a busy process bound to each of $(nproc) CPU cores"
    printf '%-12s %-8s %-5s %-4s %10s %10s %10s %10s\n' row library load turn p50 p99 p99.9 max
    for load in idle busy; do
        for library in marrow nvshmem; do
            for turn in 1 2; do
                [ -f "$out/tail-$n-$load/$library.$turn" ] || continue
                awk -F, -v lib="$library" -v load="$load" -v turn=$turn '/^tail_/ {
                    printf "%-12s %-8s %-5s %-4s %10s %10s %10s %10s\n", $1, lib, load, turn, $3, $8, $5, $6
                }' "$out/tail-$n-$load/$library.$turn"
            done
        done
    done | sort -k1,1 -k3,3r -k2,2 -k4,4
}

# copies N: the same rows with either loop.
copies() {
    local n=$1 library
    folder=copies-$n
    for library in marrow flow; do one "$library" "$n" 1 --only put_; done
    folder=''
    echo "== puts, $n PEs: turns of four from 8 vectors a thread on (as built), and a flow of pairs for all"
    awk -F, 'FNR == NR { a[$1] = $3; next } $1 in a && $1 ~ /^put_/ { printf "%-26s %-5s %10s %10s\n", $1, $2, a[$1], $3 }' \
        "$out/copies-$n/marrow.1" "$out/copies-$n/flow.1"
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
        ! has_group rows || side_by_side "$n" 1
        ! has_group copies || copies "$n"
        ! has_group tail || tails "$n"
    elif has_group rows && mps_start "$work/mps"; then
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
