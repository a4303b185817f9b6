# SPDX-License-Identifier: BSD-3-Clause
# lib.sh - what tests of PEs with several devices share: the virtual NICs' counters, and whether all went well.
# shellcheck shell=bash

# sum DEVICE COUNTER: over all PEs of the last run with --stats.
sum() {
    cat "$dir/out" "$dir/err" | awk -v d="$1" -v c="$2" '
        /^softhca slot/ { device = $NF }
        $1 == c && device == d { v += $2 }
        END { print v + 0 }'
}

# both COUNTER LEAST: each of the two devices has so many.
both() {
    local a b
    a=$(sum mlx5_0 "$1") b=$(sum mlx5_1 "$1")
    echo "# $1: mlx5_0 $a, mlx5_1 $b"
    [ "$a" -ge "$2" ] && [ "$b" -ge "$2" ]
}

all_points() {
    # shellcheck disable=SC2154
    [ "$status" = 0 ] && grep -q '^1\.\.' "$dir/out" && ! grep -q '^not ok' "$dir/out" && ! grep -Eq 'lint:|\] !' "$dir/err"
}
