# SPDX-License-Identifier: BSD-3-Clause
# lib.sh - what the launching tests share: TAP points about a command's status and output.
# shellcheck shell=bash

build=${top_builddir:?run by make check}
oshrun=$build/src/tools/oshrun
job=$build/tests/launch/boot_job
dir=$(mktemp -d "${TMPDIR:-/tmp}/marrow-launch.XXXXXX") || exit 99
trap '[ "$BASHPID" != $$ ] || rm -rf "$dir"' EXIT # not when a subshell is killed
scale=${MARROW_TEST_SCALE:-1} # a machine so many times slower has so much more time
points=0
bads=0
unset MARROW_LAUNCHER MARROW_BOOTSTRAP

point() { # point STATUS NAME: STATUS 0 passes
    points=$((points + 1))
    if [ "$1" = 0 ]; then
        echo "ok $points - $2"
    else
        bads=$((bads + 1))
        echo "not ok $points - $2"
        sed 's/^/# /' "$dir/out" "$dir/err" 2> /dev/null | head -40
        echo "# status ${status:-none}, ${took:-?} ms"
    fi
}

skip_all() {
    echo "1..0 # SKIP $1"
    exit 0
}

done_testing() {
    echo "1..$points"
    [ "$bads" = 0 ]
    exit
}

# go SECONDS COMMAND...: bounded; leaves $dir/out, $dir/err, $status, $took (ms).
go() {
    local seconds=$(($1 * scale)) from
    shift
    from=$(date +%s%N)
    timeout -k 5 "$seconds" "$@" > "$dir/out" 2> "$dir/err" < "${input:-/dev/null}"
    status=$?
    took=$((($(date +%s%N) - from) / 1000000))
    [ $took -lt 1000 ] || echo "# $took ms: $*"
}

# soon MS: was the last go done by then?
soon() { [ "$took" -lt $(($1 * scale)) ]; }

# expect STATUS ERROR_REGEX NAME: of the last go; an empty regex wants an empty stderr.
expect() {
    local good=0

    [ "$status" = "$1" ] || good=1
    if [ -n "$2" ]; then
        grep -Eq -- "$2" "$dir/err" || good=1
    elif [ -s "$dir/err" ]; then
        good=1
    fi
    point $good "$3"
}

# holds NAME COMMAND...: a point that passes when the command does.
holds() {
    local name=$1
    shift
    "$@"
    point $? "$name"
}

# within SECONDS COMMAND...: does it succeed in time?
within() {
    local end=$((SECONDS + $1 * scale + 1))
    shift
    while ! "$@"; do
        [ $SECONDS -lt $end ] || return 1
        sleep 0.05
    done
}

# own PROGRAM: another name for it, in $dir: other tests run the same program at the same time, and nobody_runs is to find
# only the processes of this script.
own() { ln -sf "$1" "$dir/" && echo "$dir/${1##*/}"; }

# who_runs WORD: the processes whose command line holds it, `PID COMMAND' each; zombies have none.
who_runs() {
    local p words

    for p in /proc/[0-9]*; do
        [ "$p" != "/proc/$$" ] && { mapfile -d '' -t words < "$p/cmdline"; } 2> /dev/null || continue
        case "${words[*]}" in *"$1"*) echo "${p#/proc/} ${words[*]}" ;; esac
    done
}
nobody_runs() { [ -z "$(who_runs "$1")" ]; }
