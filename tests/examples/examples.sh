#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# examples.sh - runs every example under oshrun and mpirun: good runs, odd sizes, bad input (TAP).
set -u

build=${top_builddir:?} src=${top_srcdir:?}
ex=$build/examples data=$src/examples/data
oshrun=$build/src/tools/oshrun
work=$(mktemp -d "${TMPDIR:-/tmp}/marrow-examples.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
seconds=$((60 * ${MARROW_TEST_SCALE:-1}))
points=0 failed=0

# verdict STATUS NAME: one TAP line; the output of a failed run goes before it.
verdict() {
    points=$((points + 1))
    if [ "$1" = 0 ]; then
        echo "ok $points - $2"
    else
        sed 's/^/# /' "$work/out"
        echo "not ok $points - $2"
        failed=1
    fi
}

# launched LAUNCHER N PROGRAM...: runs it, output in $work/out.
launched() {
    local how=$1 n=$2
    local -a line
    shift 2
    case $how in
    oshrun) line=("$oshrun" -n "$n") ;;
    mpirun)
        line=("$MPIRUN" --bind-to none --oversubscribe -np "$n")
        [ "$(id -u)" != 0 ] || line+=(--allow-run-as-root)
        ;;
    esac
    timeout -k 5 "$seconds" "${line[@]}" "$@" > "$work/out" 2>&1 < /dev/null
}

# good HOW N REGEX PROGRAM...: must end with 0 and print a line that matches.
good() {
    local how=$1 n=$2 regex=$3 status
    shift 3
    launched "$how" "$n" "$@"
    status=$?
    [ "$status" != 0 ] || grep -Eq -- "$regex" "$work/out" || status=1
    verdict "$status" "$how n=$n ${*##*/}"
}

# bad N STATUS REGEX PROGRAM...: must end with that status and say why, once.
bad() {
    local n=$1 want=$2 regex=$3 got lines
    shift 3
    launched oshrun "$n" "$@"
    got=$?
    lines=$(grep -Ec -- "$regex" "$work/out")
    [ "$got" = "$want" ] && [ "$lines" = 1 ]
    verdict $? "n=$n status $want: ${*##*/}"
}

matrix() { printf '%s\n' "$@" > "$work/m.mtx"; }

launchers=oshrun
[ "${MPIRUN:-no}" = no ] || [ "${MARROW_HAVE_PMIX:-no}" = no ] || launchers="oshrun mpirun"
for how in $launchers; do
    for n in 1 2 3 4; do
        good "$how" "$n" "hello from PE $((n - 1)) of $n" "$ex/hello"
        good "$how" "$n" "all words right" "$ex/ring" -l 20
        good "$how" "$n" "sorted and complete" "$ex/isort" -k 20000
        good "$how" "$n" "the same as a serial run" "$ex/heat2d" -r 61 -c 33 -s 50
        good "$how" "$n" "check .*the same" "$ex/cg" --check "$data/poisson2d-32.mtx"
    done
    good "$how" 4 "check .*the same" "$ex/cg" --check -x get -b random "$data/random-200.mtx"
done

# odd sizes
good oshrun 4 "sorted and complete" "$ex/isort" -k 0
good oshrun 4 "sorted and complete" "$ex/isort" -k 500 -m 2
good oshrun 3 "the same as a serial run" "$ex/heat2d" -r 2 -c 1 -s 9
good oshrun 3 "all words right" "$ex/ring" -l 5 -w 50000
good oshrun 4 "check .*the same" "$ex/cg" -c -p none "$data/random-200.mtx"
for kind in "poisson2d 9" "poisson3d 5" "random 57" "random 57 --general" "random 1" "poisson2d 1 -g"; do
    # shellcheck disable=SC2086 # words
    "$ex/gen-matrix" $kind > "$work/m.mtx"
    good oshrun 4 "check .*the same" "$ex/cg" -c -b random "$work/m.mtx"
    good oshrun 3 "check .*the same" "$ex/cg" -c -x get "$work/m.mtx"
done
"$ex/gen-matrix" poisson2d 32 | cmp -s - "$data/poisson2d-32.mtx"
verdict $? "the shipped Poisson matrix is what gen-matrix writes"
"$ex/gen-matrix" random 200 --general | cmp -s - "$data/random-200.mtx"
verdict $? "the shipped random matrix is what gen-matrix writes"

# fewer rows than PEs; a diagonal matrix exchanges nothing; zero right-hand side; CR LF
matrix '%%MatrixMarket matrix coordinate real symmetric' '2 2 3' '1 1 4' '2 1 1' '2 2 3'
good oshrun 4 "2 iterations" "$ex/cg" -c -b ones "$work/m.mtx"
printf '1\n2\n' > "$work/b"
good oshrun 4 "check .*the same" "$ex/cg" -c -b "$work/b" -o "$work/x" "$work/m.mtx"
# 4x + y = 1, x + 3y = 2: x = 1/11, y = 7/11
awk 'NR == 3 { a = $1 } NR == 4 { b = $1 } END { exit !(NR == 4 && (a - 1/11)^2 + (b - 7/11)^2 < 1e-14) }' "$work/x"
verdict $? "the written solution is right"
printf '0\n0\n' > "$work/b"
good oshrun 2 "converged after 0 iterations" "$ex/cg" -b "$work/b" "$work/m.mtx"
matrix '%%MatrixMarket matrix coordinate integer symmetric' '3 3 3' '1 1 4' '2 2 5' '3 3 6'
good oshrun 3 "exchanged  0 vector" "$ex/cg" -c "$work/m.mtx"
sed 's/$/\r/' "$data/poisson2d-32.mtx" > "$work/m.mtx"
good oshrun 2 "converged" "$ex/cg" "$work/m.mtx"

# bad input: one message, from PE 0, and an orderly end
general='%%MatrixMarket matrix coordinate real general'
bad 2 1 "no-such.mtx: cannot open: No such file" "$ex/cg" "$work/no-such.mtx"
matrix "$general" '3 2 1' '1 1 1'
bad 4 1 "m.mtx:2: the matrix is not square" "$ex/cg" "$work/m.mtx"
matrix "$general" '2 2 2' '1 1 1' '% note' '2 3 1'
bad 2 1 "m.mtx:5: column index 3 is out of range 1..2" "$ex/cg" "$work/m.mtx"
matrix "$general" '2 2 3' '1 1 1' '1 1 2' '2 2 1'
bad 2 1 "m.mtx:4: entry \(1, 1\) was already given on line 3" "$ex/cg" "$work/m.mtx"
good oshrun 2 "converged" "$ex/cg" -d sum "$work/m.mtx"
matrix "$general" '2 2 3' '1 1 2' '1 2 1' '2 2 2'
bad 2 1 "the matrix is not symmetric: entry \(1, 2\) is 1" "$ex/cg" "$work/m.mtx"
matrix "$general" '2 2 2' '1 1 1' '2 2 -1'
bad 2 1 "not positive definite: entry \(2, 2\) on its diagonal is -1" "$ex/cg" "$work/m.mtx"
matrix "$general" '2 2 1' '1 1 1'
bad 3 1 "not positive definite: entry \(2, 2\) on its diagonal is 0" "$ex/cg" "$work/m.mtx"
matrix "$general" '2 2 4' '1 1 1' '1 2 2' '2 1 2' '2 2 1'
printf '1\n-1\n' > "$work/b"
bad 2 3 "BREAKDOWN: the matrix is not positive definite after 0 iterations" "$ex/cg" -b "$work/b" "$work/m.mtx"
printf '1\n' > "$work/b"
bad 2 1 "b:1: the file ends after 1 numbers" "$ex/cg" -b "$work/b" "$work/m.mtx"
bad 2 3 "NOT converged: out of iterations after 5" "$ex/cg" -m 5 "$data/poisson2d-32.mtx"
bad 2 3 "NOT converged: the residual no longer falls" "$ex/cg" -t 1e-30 "$data/poisson2d-32.mtx"

# bad usage: status 2
bad 2 2 "tol must be a number between 0 and 1, not 'x'" "$ex/cg" -t x "$data/poisson2d-32.mtx"
bad 2 2 "which matrix" "$ex/cg"
bad 2 2 "does not know 'push'" "$ex/cg" -x push "$data/poisson2d-32.mtx"
bad 2 2 "^usage:" "$ex/isort" --keys -5
bad 2 2 "isort: --keys must be 0 to" "$ex/isort" --keys many
bad 2 2 "isort: --keys must be 0 to" "$ex/isort" --seed 1x
bad 2 2 "^usage:" "$ex/ring" extra
bad 2 2 "ring: takes no arguments, but 'extra' is one" "$ex/ring" extra
bad 2 2 "ring: --laps must be 1 or more" "$ex/ring" --words 5x
bad 2 2 "^usage:" "$ex/heat2d" --rows 0
bad 2 2 "heat2d: --rows and --cols must be 1 to" "$ex/heat2d" --steps 1.5
for p in hello ring isort heat2d cg gen-matrix; do
    good oshrun 1 "^usage: " "$ex/$p" --help
done
echo "1..$points"
exit "$failed"
