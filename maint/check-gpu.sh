#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# check-gpu.sh - every test that needs a GPU: device tests, examples, NCCL in the same process, compute-sanitizer.
#
#     maint/check-gpu.sh (-t TARBALL | -b BUILD -s SOURCE) [-o OUT] [-l SECONDS] [-k NAME] [-q]
#
#   -t       a `make dist` tarball: configured, built and installed first (into OUT/marrow)
#   -b, -s   a build tree and its source tree (`make check-gpu`)
#   -o       folder for logs (default: check-gpu.out)
#   -l       give up after so many seconds (default 460); what has not run by then counts as failed
#   -k       only steps whose name contains NAME
#   -q       quick: two PEs on one GPU under MPS, no sanitizers
#
# Several PEs share GPU 0 under MPS, and with several GPUs each PE also gets its own.  Ends with `N passed, N failed';
# exit status 0, 1, or 77 without a GPU or nvcc.
set -u

here=$(cd "$(dirname "$0")" && pwd)
. "$here/mps.sh"

usage() {
    sed -n '3,15s/^# \{0,1\}//p' "$0" >&2
    exit 2
}

tarball='' build='' source='' out=check-gpu.out limit=460 only='' quick=no
while getopts t:b:s:o:l:k:q opt; do
    case $opt in
    t) tarball=$OPTARG ;;
    b) build=$OPTARG ;;
    s) source=$OPTARG ;;
    o) out=$OPTARG ;;
    l) limit=$OPTARG ;;
    k) only=$OPTARG ;;
    q) quick=yes ;;
    *) usage ;;
    esac
done
[ $OPTIND -gt $# ] || usage
[ -n "$tarball" ] || [ -n "$build" ] && [ -n "$source$tarball" ] || usage
gpus=$(nvidia-smi -L 2>/dev/null | grep -c '^GPU')
nvcc=${NVCC:-$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)}
[ "$gpus" -gt 0 ] || { echo "check-gpu: no GPU here: skipped"; exit 77; }
[ -x "$nvcc" ] || { echo "check-gpu: no nvcc here: skipped"; exit 77; }
out=$(mkdir -p "$out" && cd "$out" && pwd) || exit 1
trap 'mps_stop' EXIT
trap 'exit 130' INT TERM
export NCCL_NVLS_ENABLE=0 NCCL_SOCKET_IFNAME=lo

if [ -n "$tarball" ]; then
    sh "$here/install-tarball.sh" "$tarball" "$out/marrow" "NVCC_GENCODE=-arch=native" "NVCC_ARCH=-arch=native" || exit 1
    build=$out/marrow/build source=$out/marrow/source
    echo "# built in $SECONDS s"
fi
build=$(cd "$build" && pwd) && source=$(cd "$source" && pwd) || exit 1
oshrun=$build/src/tools/oshrun
bin=$out/bin
mkdir -p "$bin"

passed=0 failed=0 faults='' no_dbr=''
# result STATUS NAME LOG SECONDS
result() {
    if [ "$1" = 0 ]; then
        passed=$((passed + 1))
        echo "ok - $2 ($4 s)"
    elif [ "$1" = 77 ]; then
        echo "ok - $2 # SKIP"
    else
        failed=$((failed + 1))
        echo "not ok - $2 (status $1, $4 s)"
        grep -vE '^ok |^# *$' "$3" | tail -n 15 | sed 's/^/#   /'
    fi
}

# step SECONDS NAME COMMAND...: runs it bounded; its output goes to a log.
step() {
    local seconds=$1 name=$2 log status from=$SECONDS
    shift 2
    case $name in *"$only"*) ;; *) return 0 ;; esac
    log=$out/$(printf %s "$name" | tr -c 'A-Za-z0-9._\n-' _).log
    if [ $((limit - SECONDS)) -lt 3 ]; then
        echo "out of time: not run" >"$log"
        result 124 "$name" "$log" 0
        return
    fi
    [ $((limit - SECONDS)) -ge "$seconds" ] || seconds=$((limit - SECONDS))
    if [ "$(type -t "$1")" = function ]; then "$@" >"$log" 2>&1 </dev/null; else timeout -k 5 "$seconds" "$@" >"$log" 2>&1 </dev/null; fi
    status=$?
    # A program that ended well but printed a failed point, or nothing at all, did not pass.
    if [ $status = 0 ] && { grep -q '^not ok' "$log" || [ ! -s "$log" ]; }; then status=1; fi
    result $status "$name" "$log" $((SECONDS - from))
}

wheel() { python3 -c "import nvidia.$1 as m; print(list(m.__path__)[0])" 2>/dev/null; }

# compile NAME SOURCE [OPTION]...
compile() {
    local name=$1 file=$2
    shift 2
    timeout 240 "$nvcc" -x cu -std=c++17 -arch=native -O2 -lineinfo -I"$source/include" -I"$build/include" -I"$source/tests/mp" \
        -I"$source/tests/device" -I"$source/src/tools/soak" "$file" -o "$bin/$name" "$@" -L"$build/src/.libs" -lmarrow \
        -Xlinker "-rpath=$build/src/.libs" >"$out/compile-$name.log" 2>&1 || rm -f "$bin/$name"
}

nccl=$(wheel nccl) && [ -d "$nccl/include" ] || nccl=''
tests=()
for f in "$source"/tests/device/*.c; do
    grep -q '"launch.h"' "$f" && ! grep -q '^ \* gpu: no' "$f" || continue # the others run on the CPU alone
    name=$(basename "$f" .c)
    tests+=("$name")
    compile "$name" "$f" &
done
[ -z "$nccl" ] || compile nccl "$source/tests/gpu/nccl.cu" -I"$nccl/include" -L"$nccl/lib" -l:libnccl.so.2 -Xlinker "-rpath=$nccl/lib" &
compile graph "$source/tests/gpu/graph.cu" &
compile module "$source/tests/gpu/module.cu" -lnvrtc -lcuda &
# As two nodes, over the virtual NIC.
nic=$build/tests/softhca/softhca-run
for name in far far_bad; do compile $name "$source/tests/device/$name.c" & done
make -C "$build" -j4 tests/softhca/softhca-run tests/softhca/libsofthca.la >"$out/compile-softhca.log" 2>&1 &
make -C "$build" -k -j"$(getconf _NPROCESSORS_ONLN)" cuda-examples >"$out/compile-examples.log" 2>&1
result $? "compile the examples" "$out/compile-examples.log" $SECONDS
wait
for name in "${tests[@]}" graph module far far_bad ${nccl:+nccl}; do
    [ -x "$bin/$name" ]
    result $? "compile $name" "$out/compile-$name.log" $SECONDS
done

# all_with PES WHERE: the device tests and the examples.
all_with() {
    local n=$1 where=$2 name ex=$build/examples data=$source/examples/data
    for name in "${tests[@]}"; do
        [ ! -x "$bin/$name" ] || step 60 "device $name, $n PEs $where" "$oshrun" -n "$n" "$bin/$name"
    done
    step 30 "ring, $n PEs $where" "$oshrun" -n "$n" "$ex/ring-gpu" -l 1000 -w 100
    step 30 "ring of long messages, $n PEs $where" "$oshrun" -n "$n" "$ex/ring-gpu" -l 50 -w 100000
    step 30 "heat, $n PEs $where" "$oshrun" -n "$n" "$ex/heat-gpu" -s 500
    step 30 "heat of few rows, $n PEs $where" "$oshrun" -n "$n" "$ex/heat-gpu" -r 3 -c 70 -s 99
    step 30 "cg, $n PEs $where" "$oshrun" -n "$n" "$ex/cg-gpu" --check "$data/poisson2d-32.mtx"
    step 30 "cg random, $n PEs $where" "$oshrun" -n "$n" "$ex/cg-gpu" --check -b random -k 3 "$data/random-200.mtx"
    step 30 "moe_dispatch, $n PEs $where" "$oshrun" -n "$n" "$ex/moe-dispatch"
    step 30 "moe_dispatch of odd sizes, $n PEs $where" "$oshrun" -n "$n" "$ex/moe-dispatch" -t 37 -d 33 -e 5 -k 3 -r 7 -b 3
    [ ! -x "$bin/graph" ] || step 60 "a CUDA graph of calls on a stream, $n PEs $where" "$oshrun" -n "$n" "$bin/graph"
    [ ! -x "$bin/module" ] || step 60 "a module compiled at run time, $n PEs $where" "$oshrun" -n "$n" "$bin/module" \
        "-I$source/include" "-I$build/include"
    [ ! -x "$bin/nccl" ] || step 60 "NCCL in the same process, $n PEs $where" "$oshrun" -n "$n" "$bin/nccl"
}

# far_with WHERE NODES PES TESTS [NAME=VALUE]...: PEs as several nodes, whose kernels post to the virtual NIC.  $faults: its faults;
# $no_dbr: it offers queues without a doorbell record, of up to 2^$no_dbr blocks.
far_with() {
    local where="$3 PEs on $2 nodes, $1" nodes=$2 n=$3 names=$4 name
    local -a args=()
    shift 4
    for name in $names; do
        args=()
        case $name in soak*) args=(1 10) ;; esac
        [ ! -x "$bin/$name" ] || step 60 "far $name, $where" env MARROW_TRANSPORT=ibgda MARROW_IB_TIMEOUT=16 MARROW_LOG=debug \
            SHMEM_SYMMETRIC_SIZE=64M "$@" "$nic" ${faults:+--faults "$faults"} ${no_dbr:+--no-dbr "$no_dbr"} "$oshrun" --nodes "$nodes" -n "$n" \
            "$bin/$name" ${args[@]+"${args[@]}"}
    done
}

# far_fails KIND: the job ends by itself and says which work request has failed.
far_fails() {
    timeout -k 5 20 env MARROW_TRANSPORT=ibgda MARROW_IB_TIMEOUT=13 MARROW_IB_RETRY=3 SHMEM_SYMMETRIC_SIZE=64M "$nic" "$oshrun" \
        --nodes 2 -n 2 "$bin/far_bad" "$1" >"$out/far_bad-$1.out" 2>&1
    local status=$?
    cat "$out/far_bad-$1.out"
    [ $status != 0 ] && [ $status != 124 ] && grep -Eq "in a kernel: .* to PE 1 failed on .*syndrome 0x" "$out/far_bad-$1.out"
}

if [ "$gpus" -ge 2 ] && [ $quick = no ]; then
    all_with 2 "on 2 GPUs"
    [ "$gpus" -lt 4 ] || all_with 4 "on 4 GPUs"
fi
export CUDA_VISIBLE_DEVICES=0
[ $quick = yes ] || step 60 "ring without MPS, 2 PEs on one GPU" "$oshrun" -n 2 "$build/examples/ring-gpu" -l 20
if mps_start "$out/mps"; then
    far_with "queues in GPU memory" 2 2 "words rma sync far count coll soak soak_coll graph"
    far_with "queues in host memory" 2 2 "words rma far count" MARROW_IBGDA_MEMORY=host
    far_with "four queues a peer" 2 2 "words rma far" MARROW_DEVICE_QPS=4
    far_with "proxy" 2 2 "words rma sync far count graph" MARROW_TRANSPORT=proxy
    far_with "two NICs a PE" 2 2 "words rma far" SOFTHCA_DEVICES=2
    faults=loss=1%
    far_with "one packet of a hundred lost" 2 2 "words rma sync"
    faults='' no_dbr=15
    far_with "no doorbell records" 2 2 "words rma sync far count coll" MARROW_NO_DBR=on
    no_dbr=''
    far_with "near and far peers" 2 4 "words rma sync far count coll soak soak_coll"
    [ ! -x "$bin/far_bad" ] || step 30 "far wrong key" far_fails key
    [ ! -x "$bin/far_bad" ] || step 30 "far wrong key, a wait" far_fails wait
    all_with 2 "on one GPU under MPS"
    [ $quick = yes ] || all_with 4 "on one GPU under MPS"
    mps_stop
else
    result 1 "start MPS" "$out/mps/log/start" 0
fi

# Sanitizers: with a GPU for each PE where there are two, else the two PEs take turns.
[ "$gpus" -lt 2 ] || unset CUDA_VISIBLE_DEVICES
sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null)
if [ $quick = yes ]; then
    :
elif [ -n "$sanitizer" ]; then
    for name in "${tests[@]}"; do
        for tool in memcheck racecheck; do
            [ ! -x "$bin/$name" ] || MARROW_TEST_SHORT=1 step 75 "$tool $name" "$oshrun" -n 2 "$sanitizer" --tool $tool \
                --error-exitcode 9 "$bin/$name"
        done
    done
    step 60 "memcheck heat" "$oshrun" -n 2 "$sanitizer" --tool memcheck --error-exitcode 9 "$build/examples/heat-gpu" -r 20 -c 20 -s 5 -b 2
else
    echo "# no compute-sanitizer here"
fi

echo "# $SECONDS s; logs in $out"
printf '%d passed, %d failed\n' $passed $failed
[ $passed -gt 0 ] && [ $failed = 0 ]
