#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# mutants_chan.sh - several threads, then lanes of warps, on the channel of kernels to the CPU under ThreadSanitizer
# (stress_chan), which is silent; and then with one order after the other taken away, which must be reported (TAP).
set -u

. "${top_srcdir:-$(cd "$(dirname "$0")/../.." && pwd)}/tests/mlx5/mutants_lib.sh"

simt=()
for part in simt fibres threads warp; do
    $cc -std=gnu11 -D_GNU_SOURCE -O1 -I"$src/include" -I"$src/tests/simt" -c "$src/tests/simt/$part.c" \
        -o "$dir/$part.o" || { echo "Bail out! the SIMT executor does not compile"; exit 1; }
    simt+=("$dir/$part.o")
done

build() { # build INCLUDE PROGRAM [warp]
    local -a more=()
    [ -z "${3-}" ] || more=(-DSHMEMI_SIMT -I"$src/tests/simt" "${simt[@]}")
    $cc -std=gnu11 -D_GNU_SOURCE -O1 -g -fsanitize=thread -I"$1" -I"$src/include" "$src/tests/mlx5/stress_chan.c" \
        ${more[@]+"${more[@]}"} -o "$2" -pthread
}

silent() { # silent PROGRAM ARGS
    local status
    # shellcheck disable=SC2086
    run "$dir/$1" $2
    status=$?
    [ $status -eq 0 ] || sed 's/^/# /' "$dir/out" | head -n 60
    point $status "stress_chan $2${3:+, $3}: no race, every value right"
}

build "$src/include" "$dir/stress" && build "$src/include" "$dir/warps" warp ||
    { echo "Bail out! stress_chan does not compile"; exit 1; }
for args in "-s 1" "-s 2 -t 8" "-s 3 -p"; do
    silent stress "-n 300 $args"
done
silent warps "-n 12 -s 1 -t 33" lanes

# mutant NAME ARGS FROM TO [warp]: what is reported is a race, or a value that is wrong.
mutant() {
    local status=0
    change channel.h "$3" "$4" || return
    build "$dir/include" "$dir/mutant" "${5-}" || { point 1 "$1: compiles"; return; }
    for seed in 1 2 3 4 5 6; do
        # shellcheck disable=SC2086
        run "$dir/mutant" -s $seed $2
        status=$?
        [ $status -eq 0 ] || break
    done
    [ $status -eq 1 ] || { [ $status -eq 2 ] && grep -q '^stress_chan: ' "$dir/out"; }
    point $? "$1: reported"
}

some="-n 300 -t 4"
mutant "publish without release" "$some" \
    "SHMEMI_ST_REL(&shmemi_chan_at(&c->ring, idx)->flag" "SHMEMI_ST_RLX(&shmemi_chan_at(&c->ring, idx)->flag"
mutant "publish without release, private" "-n 300 -p" \
    "SHMEMI_ST_REL(&shmemi_chan_at(&c->ring, idx)->flag" "SHMEMI_ST_RLX(&shmemi_chan_at(&c->ring, idx)->flag"
mutant "peek without acquire" "$some" \
    "SHMEMI_LD_ACQ(&shmemi_chan_at(ring, head)->flag)" "SHMEMI_LD_RLX(&shmemi_chan_at(ring, head)->flag)"
mutant "peek past what is free" "-n 1500 -t 8" "if (head == freed + ring->depth)" "if (head > freed + ring->depth)"
mutant "room seen without acquire" "$some" "done = SHMEMI_LD_ACQ(c->ring.done)" "done = SHMEMI_LD_RLX(c->ring.done)"
mutant "room passed on without release" "$some" "SHMEMI_ST_REL_GPU(&c->seen, done)" "SHMEMI_ST_RLX_GPU(&c->seen, done)"
mutant "room taken over without acquire" "$some" "SHMEMI_LD_ACQ_GPU(&c->seen)" "SHMEMI_LD_RLX_GPU(&c->seen)"
mutant "freed without release" "$some" "SHMEMI_ST_REL(ring->done, to)" "SHMEMI_ST_RLX(ring->done, to)"
mutant "freed before the flags are cleared" "$some" \
    "for (uint64_t i = from; i < to; i++)" "for (uint64_t i = (__atomic_store_n(ring->done, to, __ATOMIC_RELEASE), sched_yield(), from); i < to; i++)"
mutant "flags not cleared" "$some" "SHMEMI_ST_RLX(&shmemi_chan_at(ring, i)->flag, (uint64_t)0)" "(void)i"
mutant "complete without release" "$some" \
    "SHMEMI_ST_REL(shmemi_chan_comp(ring, ticket), ticket)" "SHMEMI_ST_RLX(shmemi_chan_comp(ring, ticket), ticket)"
mutant "a ticket seen without acquire" "$some" \
    "SHMEMI_LD_ACQ(shmemi_chan_comp(ring, ticket))" "SHMEMI_LD_RLX(shmemi_chan_comp(ring, ticket))"
mutant "quiet without acquire" "$some" \
    "return SHMEMI_LD_ACQ(ring->done) >= ticket" "return SHMEMI_LD_RLX(ring->done) >= ticket"
mutant "warp: others fill entries before the leader has seen them free" "-n 12 -t 33" \
    "shmemi_warp_sync(group); /* free" "/* free" warp
mutant "warp: published before the others have filled their entries" "-n 12 -t 33" \
    "shmemi_warp_sync(group); /* filled" "/* filled" warp

echo "1..$points"
exit $failed
