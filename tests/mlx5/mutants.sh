#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# mutants.sh - several threads on one send queue under ThreadSanitizer (stress_sq), which is silent; and then with one
# order after the other taken away, each of which it must report, or the test would prove nothing (TAP).
#
# Not to be seen this way: the acquire at the head of shmemi_sq_poll (it keeps a value from going backwards, not data from
# being read early), and what only PCIe can reorder.
set -u

. "${top_srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/mlx5/mutants_lib.sh"

build() { # build INCLUDE PROGRAM
    $cc -std=gnu11 -O1 -g -fsanitize=thread -I"$1" -I"$src/include" -I"$src/tests/mlx5" \
        "$src/tests/mlx5/stress_sq.c" -o "$2" -pthread
}

build "$src/include" "$dir/stress" || { echo "Bail out! stress_sq does not compile"; exit 1; }
for args in "-s 1" "-s 2 -l 4" "-s 3 -l 7 -t 4" "-s 1 -p" "-s 2 -p -l 4" "-s 1 -b" "-s 2 -b -l 4 -t 4" "-s 1 -b -p"; do
    # shellcheck disable=SC2086
    run "$dir/stress" -n 400 $args
    status=$?
    [ $status -eq 0 ] || sed 's/^/# /' "$dir/out" | head -n 60
    point $status "stress_sq $args: no race, every value right"
done

# mutant NAME ARGS FROM TO [HEADER]
mutant() {
    local status=0
    change "${5:-sq_ring.h}" "$3" "$4" || return
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
    "shmemi_st_fenced_nic(q->dbrec, shmemi_sq_record(end))" "SHMEMI_ST_RLX(q->dbrec, shmemi_sq_record(end))"
mutant "private: record without release" "-p" \
    "shmemi_st_rel_nic(q->dbrec, shmemi_sq_record(end), 1)" \
    "SHMEMI_ST_RLX(q->dbrec, shmemi_sq_record(end))"
# The entries are behind the doorbell then, for all that the NIC can tell.
for mode in -p ""; do
    mutant "no record${mode:+, private}: doorbell without release" "-b $mode" \
        "(volatile uint64_t *)reg, v, __ATOMIC_RELEASE)" "(volatile uint64_t *)reg, v, __ATOMIC_RELAXED)" port.h
done
mutant "publish: baton taken without acquire" "" \
    "return SHMEMI_LD_GATE_GPU(q->dbrec) != shmemi_sq_record(c->idx)" \
    "return SHMEMI_LD_RLX_GPU(q->dbrec) != shmemi_sq_record(c->idx)"
mutant "reserve: baton taken without acquire" "" \
    "record = SHMEMI_LD_GATE_GPU(q->dbrec)" "record = SHMEMI_LD_RLX_GPU(q->dbrec)"
mutant "turn: baton awaited without acquire" "-l 4" \
    "while (SHMEMI_LD_ACQ_GPU(sq->dbrec) != mine)" "while (SHMEMI_LD_RLX_GPU(sq->dbrec) != mine)"
mutant "reserve: free blocks seen without acquire" "" \
    "done = SHMEMI_LD_GATE_GPU(&sq->done);" "done = SHMEMI_LD_RLX_GPU(&sq->done);"
mutant "await: free blocks seen without acquire" "-l 4 -t 8" \
    "while (end > SHMEMI_LD_ACQ_GPU(&sq->done)" "while (end > SHMEMI_LD_RLX_GPU(&sq->done)"
mutant "poll: completion read without acquire" "-p" \
    "SHMEMI_LD_ACQ(sq->cqe + SHMEMI_MLX5_CQE_LAST)" "SHMEMI_LD_RLX(sq->cqe + SHMEMI_MLX5_CQE_LAST)"
mutant "poll: completion passed on without release" "" \
    "!SHMEMI_CAS_ACQREL_GPU(&sq->done, &done, seen)" \
    "!__atomic_compare_exchange_n(&sq->done, &done, seen, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)"
mutant "is_done: completion seen without acquire" "" \
    "return SHMEMI_LD_ACQ_GPU(&sq->done) >= ticket" "return SHMEMI_LD_RLX_GPU(&sq->done) >= ticket"

# Lanes of a warp that post together, in the SIMT executor with a thread a lane (which is built without the sanitizer).
simt=()
for part in simt fibres threads warp; do
    $cc -std=gnu11 -D_GNU_SOURCE -O1 -I"$src/include" -I"$src/tests/simt" -c "$src/tests/simt/$part.c" \
        -o "$dir/$part.o" || { echo "Bail out! the SIMT executor does not compile"; exit 1; }
    simt+=("$dir/$part.o")
done

build_warp() { # build_warp INCLUDE PROGRAM
    # shellcheck disable=SC2086
    $cc -std=gnu11 -DSHMEMI_SIMT -O1 -g -fsanitize=thread -I"$1" -I"$src/include" -I"$src/tests/simt" -I"$src/tests/mlx5" \
        "$src/tests/unit/check_sq_warp.c" "${simt[@]}" -o "$2" ${CHECK_LIBS:--lcheck -lsubunit -lm -lrt} -pthread
}

# mutant_warp NAME FROM TO
mutant_warp() {
    local status=0
    change sq_warp.h "$2" "$3" || return
    build_warp "$dir/include" "$dir/mutant" || { point 1 "$1: compiles"; return; }
    for _ in 1 2 3 4 5 6; do # some show in most runs only
        run "$dir/mutant"
        status=$?
        [ $status -eq 0 ] || break
    done
    [ $status -eq 1 ]
    point $? "$1: the sanitizer reports it"
}

export CK_FORK=no
if ! build_warp "$src/include" "$dir/warp" 2> /dev/null; then
    echo "# no Check: lanes that post together are left out"
else
    run "$dir/warp"
    status=$?
    [ $status -eq 0 ] || sed 's/^/# /' "$dir/out" | head -n 60
    point $status "check_sq_warp: no race"
    mutant_warp "warp: others fill blocks before the leader has seen them free" \
        "shmemi_warp_sync(p->group); /* free */" ""
    mutant_warp "warp: record released before the others have filled their blocks" \
        "shmemi_warp_sync(p->group); /* filled */" ""
    mutant_warp "warp: the next leader does not wait for the last one's notes" \
        "shmemi_warp_sync(p->group); /* noted */" ""
    mutant_warp "warp: a whole one does not wait for the last leader's notes" \
        "shmemi_warp_sync(SHMEMI_SQ_ALL); /* noted by all */" ""
    mutant_warp "warp: one goes on before the others have looked at their queues" \
        "shmemi_warp_sync(SHMEMI_SQ_ALL); /* looked: a vote orders no memory */" ";"
fi

# Not a race but a doorbell that nobody rings.
build_unit() { # build_unit INCLUDE PROGRAM
    # shellcheck disable=SC2086
    $cc -std=gnu11 -D_GNU_SOURCE -O1 -I"$1" -I"$src/include" -I"$src/tests/mlx5" "$src/tests/unit/check_sq.c" -o "$2" \
        ${CHECK_LIBS:--lcheck -lsubunit -lm -lrt} -pthread
}

if build_unit "$src/include" "$dir/unit" 2> /dev/null; then
    change sq_ring.h "const uint64_t more = n | (uint64_t)!(flags & SHMEMI_SQ_DEFER) << SHMEMI_SQ_RINGS;" \
        "const uint64_t more = n | (uint64_t)1 << SHMEMI_SQ_RINGS;" &&
        build_unit "$dir/include" "$dir/mutant" && CK_RUN_CASE=sq timeout 200 "$dir/mutant" > "$dir/out" 2>&1
    grep -q "a_doorbell_is_left_only_to_who_rings:1" "$dir/out"
    point $? "a doorbell left to a post that does not ring: check_sq finds it"
fi

echo "1..$points"
exit $failed
