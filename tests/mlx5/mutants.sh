#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# mutants.sh - several threads on one send queue under ThreadSanitizer (stress_sq), which is silent; and then with one
# order after the other taken away, each of which it must report, or the test would prove nothing (TAP).
#
# Not to be seen this way: the acquire at the head of shmemi_sq_poll (it keeps a value from going backwards, not data from
# being read early), and what only PCIe can reorder.
set -u

src=${top_srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}
cc=${CC:-cc}
dir=$(mktemp -d "${TMPDIR:-/tmp}/marrow-mutants.XXXXXX") || exit 1
trap 'rm -rf "$dir"' EXIT
points=0 failed=0

point() { # point STATUS NAME
    points=$((points + 1))
    if [ "$1" -eq 0 ]; then echo "ok $points - $2"; else failed=1; echo "not ok $points - $2"; fi
}

# A fixed layout of addresses is what the sanitizer of some systems cannot do without.
fixed="setarch -R"
$fixed true 2> /dev/null || fixed=

build() { # build INCLUDE PROGRAM
    $cc -std=gnu11 -O1 -g -fsanitize=thread -I"$1" -I"$src/include" -I"$src/tests/mlx5" \
        "$src/tests/mlx5/stress_sq.c" -o "$2" -pthread
}

# run PROGRAM ARGS: 0 when it ends well and silently, 1 when a race was reported, 2 for anything else.
run() {
    local status
    TSAN_OPTIONS="halt_on_error=1 exitcode=66" timeout 200 $fixed "$@" > "$dir/out" 2>&1
    status=$?
    [ $status -eq 0 ] && return 0
    grep -q 'WARNING: ThreadSanitizer: data race' "$dir/out" && return 1
    return 2
}

echo 'int main(void) { return 0; }' > "$dir/try.c"
if ! $cc -fsanitize=thread "$dir/try.c" -o "$dir/try" 2> /dev/null || ! $fixed "$dir/try" 2> /dev/null; then
    echo "1..0 # SKIP ThreadSanitizer does not work here"
    exit 0
fi

build "$src/include" "$dir/stress" || { echo "Bail out! stress_sq does not compile"; exit 1; }
for args in "-s 1" "-s 2 -l 4" "-s 3 -l 7 -t 4" "-s 1 -p" "-s 2 -p -l 4"; do
    # shellcheck disable=SC2086
    run "$dir/stress" -n 400 $args
    status=$?
    [ $status -eq 0 ] || sed 's/^/# /' "$dir/out" | head -n 60
    point $status "stress_sq $args: no race, every value right"
done

# mutant NAME ARGS FROM TO: one line of sq.h changed, in a copy that is found first.
mutant() {
    local at="$dir/include/shmem/device" status=0
    mkdir -p "$at"
    cp "$src"/include/shmem/device/*.h "$at"
    FROM=$3 TO=$4 awk 'BEGIN { from = ENVIRON["FROM"]; to = ENVIRON["TO"] }
        (i = index($0, from)) { $0 = substr($0, 1, i - 1) to substr($0, i + length(from)); n++ }
        { print }
        END { exit n != 1 }' "$src/include/shmem/device/sq.h" > "$at/sq.h" || {
        point 1 "$1: sq.h has the line exactly once"
        return
    }
    build "$dir/include" "$dir/mutant" || { point 1 "$1: compiles"; return; }
    for seed in 1 2 3 4 5 6; do
        # shellcheck disable=SC2086
        run "$dir/mutant" -n 400 -s $seed $2
        status=$?
        [ $status -eq 0 ] || break
    done
    [ $status -eq 1 ]
    point $? "$1: the sanitizer reports it"
}

mutant "shared: record without release" "" \
    "shmemi_st_rel_nic(sq->dbrec, shmemi_sq_record(end), sq->flags & SHMEMI_SQ_NEAR)" \
    "SHMEMI_ST_RLX(sq->dbrec, shmemi_sq_record(end))"
mutant "private: record without release" "-p" \
    "shmemi_st_rel_nic(sq->dbrec, shmemi_sq_record(idx + n), sq->flags & SHMEMI_SQ_NEAR)" \
    "SHMEMI_ST_RLX(sq->dbrec, shmemi_sq_record(idx + n))"
mutant "private: record of deferred entries without release" "-p" \
    "shmemi_st_rel_nic(sq->dbrec, shmemi_sq_record(sq->reserved), sq->flags & SHMEMI_SQ_NEAR)" \
    "SHMEMI_ST_RLX(sq->dbrec, shmemi_sq_record(sq->reserved))"
mutant "publish: baton taken without acquire" "" \
    "if (SHMEMI_LD_ACQ_GPU(sq->dbrec) != shmemi_sq_record(idx)" \
    "if (SHMEMI_LD_RLX_GPU(sq->dbrec) != shmemi_sq_record(idx)"
mutant "turn: baton awaited without acquire" "-l 4" \
    "while (SHMEMI_LD_ACQ_GPU(sq->dbrec) != mine)" "while (SHMEMI_LD_RLX_GPU(sq->dbrec) != mine)"
mutant "reserve: free blocks seen without acquire" "" \
    "idx + n > SHMEMI_LD_ACQ_GPU(&sq->done)" "idx + n > SHMEMI_LD_RLX_GPU(&sq->done)"
mutant "await: free blocks seen without acquire" "-l 4 -t 8" \
    "while (end > SHMEMI_LD_ACQ_GPU(&sq->done)" "while (end > SHMEMI_LD_RLX_GPU(&sq->done)"
mutant "poll: completion read without acquire" "-p" \
    "SHMEMI_LD_ACQ(sq->cqe + SHMEMI_MLX5_CQE_LAST)" "SHMEMI_LD_RLX(sq->cqe + SHMEMI_MLX5_CQE_LAST)"
mutant "poll: completion passed on without release" "" \
    "!SHMEMI_CAS_ACQREL_GPU(&sq->done, &done, seen)" \
    "!__atomic_compare_exchange_n(&sq->done, &done, seen, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)"
mutant "is_done: completion seen without acquire" "" \
    "return SHMEMI_LD_ACQ_GPU(&sq->done) >= ticket" "return SHMEMI_LD_RLX_GPU(&sq->done) >= ticket"

echo "1..$points"
exit $failed
