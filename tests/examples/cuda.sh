#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# cuda.sh - the CUDA examples as far as no GPU is needed: usage, bad input, what they say without a GPU (TAP).  Runs with a
# GPU are maint/check-gpu.sh's.
set -u

build=${top_builddir:?} src=${top_srcdir:?}
ex=$build/examples data=$src/examples/data
oshrun=$build/src/tools/oshrun
work=$(mktemp -d "${TMPDIR:-/tmp}/marrow-cuda.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
seconds=$((60 * ${MARROW_TEST_SCALE:-1}))
points=0 failed=0

if [ ! -x "$ex/ring-gpu" ]; then
    echo "1..0 # SKIP this build has no nvcc"
    exit 77
fi

# ends N STATUS REGEX PROGRAM...: must end with that status and say why, once.
ends() {
    local n=$1 want=$2 regex=$3 got lines
    shift 3
    timeout -k 5 "$seconds" "$oshrun" -n "$n" "$@" > "$work/out" 2>&1 < /dev/null
    got=$?
    lines=$(grep -Ec -- "$regex" "$work/out")
    points=$((points + 1))
    if [ "$got" = "$want" ] && [ "$lines" = 1 ]; then
        echo "ok $points - n=$n status $want: ${*##*/}"
    else
        sed 's/^/# /' "$work/out"
        echo "not ok $points - n=$n status $want: ${*##*/} (status $got, $lines lines match)"
        failed=1
    fi
}

for p in ring-gpu heat-gpu cg-gpu moe-dispatch; do
    ends 2 0 "^usage: oshrun -n N $p " "$ex/$p" --help
    ends 2 2 "unrecognized option" "$ex/$p" --no-such-option
done
ends 2 2 "ring-gpu: takes no arguments, but 'extra' is one" "$ex/ring-gpu" extra
ends 2 2 "ring-gpu: --laps must be 1 or more" "$ex/ring-gpu" --words 5x
ends 2 2 "heat-gpu: --rows and --cols must be 1 to" "$ex/heat-gpu" --steps 1.5
ends 2 2 "heat-gpu: --rows and --cols must be 1 to" "$ex/heat-gpu" --blocks 0
ends 2 2 "moe-dispatch: --tokens and --hidden must be 1 to" "$ex/moe-dispatch" --top 4 --experts 3
ends 2 2 "cg-gpu: --blocks must be a positive number, not 'x'" "$ex/cg-gpu" -k x "$data/poisson2d-32.mtx"
ends 2 2 "cg-gpu: which matrix" "$ex/cg-gpu"
ends 2 2 "cg-gpu: bad option" "$ex/cg-gpu" -x get "$data/poisson2d-32.mtx"
ends 2 1 "cg-gpu: .*no-such.mtx: cannot open" "$ex/cg-gpu" "$work/no-such.mtx"
ends 2 2 "cg: bad option" "$ex/cg" -k 3 "$data/poisson2d-32.mtx"

if nvidia-smi -L > /dev/null 2>&1; then
    echo "# this machine has a GPU: the message that there is none is not tried"
else
    ends 2 1 "ring-gpu: needs a GPU: " "$ex/ring-gpu"
    ends 3 1 "heat-gpu: needs a GPU: " "$ex/heat-gpu"
    ends 2 1 "moe-dispatch: needs a GPU: " "$ex/moe-dispatch"
    ends 2 3 "cg-gpu: needs a GPU: " "$ex/cg-gpu" "$data/poisson2d-32.mtx"
fi
echo "1..$points"
exit "$failed"
