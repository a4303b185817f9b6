/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * far_atomics.c - atomics of near and far PEs, and of the owner, on the same words: nothing is lost, and each operation
 * does what it says, in 4 and 8 bytes, with its result at once or at quiet, in any memory.
 *
 * run: n=1,2,3 launch=oshrun timeout=120
 * nodes: timeout=120
 */
#include "tap.h"

#include <stdint.h>

#define ROUNDS 200

static long adds, swaps_seen;
static int adds4;
static unsigned bits4;
static uint64_t bits8, signals, lock_word;
static unsigned char around[24];

/* Every PE, PE 0 among them, adds in every way to words of PE 0. */
static void no_add_is_lost(long *heap_adds)
{
    adds = adds4 = 0;
    signals = 0;
    *heap_adds = 0;
    shmem_barrier_all();
    for (int i = 0; i < ROUNDS; i++) {
        long old = -1;

        shmem_long_atomic_inc(&adds, 0);
        shmem_long_atomic_add(heap_adds, 3, 0);
        shmem_int_atomic_inc(&adds4, 0);
        tap_check(shmem_long_atomic_fetch_add(&adds, 2, 0) >= 0);
        shmem_long_atomic_fetch_add_nbi(&old, heap_adds, 4, 0);
        shmem_signal_add(&signals, 1, 0);
        shmem_putmem_signal(&around[8], &around[8], 0, &signals, 1, SHMEM_SIGNAL_ADD, 0);
        if (i % 16 == 0) {
            shmem_quiet();
            tap_check(old >= 0);
        }
    }
    shmem_barrier_all();
    if (tap_me == 0) {
        tap_check_eq(adds, 3L * ROUNDS * tap_n);
        tap_check_eq(*heap_adds, 7L * ROUNDS * tap_n);
        tap_check_eq(adds4, ROUNDS * tap_n);
        tap_check_eq(signals, 2u * ROUNDS * (unsigned)tap_n);
    }
    tap_point("no increment is lost between near, far and own atomics");
}

/* Compare-swap as a lock around a plain counter; bits of one's own in a shared word. */
static void compare_swap_and_bits(void)
{
    static long guarded;
    unsigned mine4 = 1u << tap_me % 32;
    uint64_t mine8 = 1ull << (63 - tap_me % 64);

    guarded = 0;
    lock_word = bits8 = 0;
    bits4 = 0;
    shmem_barrier_all();
    for (int i = 0; i < 20; i++) {
        while (shmem_uint64_atomic_compare_swap(&lock_word, 0, (uint64_t)tap_me + 1, 0) != 0)
            ;
        shmem_long_p(&guarded, shmem_long_g(&guarded, 0) + 1, 0);
        shmem_quiet();
        tap_check_eq(shmem_uint64_atomic_swap(&lock_word, 0, 0), (uint64_t)tap_me + 1);
        tap_check(!(shmem_uint_atomic_fetch_or(&bits4, mine4, 0) & mine4));
        tap_check(shmem_uint_atomic_fetch_xor(&bits4, mine4, 0) & mine4);
        shmem_uint64_atomic_or(&bits8, mine8, 0);
        tap_check(shmem_uint64_atomic_fetch_and(&bits8, ~mine8, 0) & mine8);
    }
    shmem_uint64_atomic_or(&bits8, mine8, 0);
    shmem_uint_atomic_xor(&bits4, mine4, 0);
    shmem_barrier_all();
    if (tap_me == 0) {
        tap_check_eq(guarded, 20L * tap_n);
        tap_check_eq(__builtin_popcount(bits4), tap_n);
        tap_check_eq(__builtin_popcountll(bits8), tap_n);
    }
    tap_point("compare-swap excludes, bits stay one's own");
}

/* Tokens that are swapped round: each is seen once. */
static void swaps(void)
{
    static long cell;
    long sum = 0, want = 0;

    cell = 0;
    swaps_seen = 0;
    shmem_barrier_all();
    for (int i = 0; i < ROUNDS; i++)
        sum += shmem_long_atomic_swap(&cell, 1 + (long)tap_me * ROUNDS + i, 0);
    shmem_long_atomic_add(&swaps_seen, sum, 0);
    shmem_barrier_all();
    for (long i = 1; i <= (long)tap_n * ROUNDS; i++)
        want += i;
    if (tap_me == 0)
        tap_check_eq(swaps_seen + cell, want);
    tap_point("each swapped value comes back once");
}

/* 4-byte words at both halves of 8 bytes, with what lies beside them. */
static void small_words(void)
{
    int right = (tap_me + 1) % tap_n;
    uint32_t *words = (uint32_t *)(void *)around;
    uint32_t got[3] = { 0, 0, 0 };

    memset(around, 0xa5, sizeof around);
    shmem_barrier_all();
    shmem_uint32_atomic_set(&words[1], 0xffffffffu, right);
    shmem_uint32_atomic_set(&words[4], 7, right);
    shmem_quiet();
    shmem_uint32_atomic_fetch_add_nbi(&got[0], &words[1], 2, right);
    shmem_uint32_atomic_fetch_nbi(&got[1], &words[4], right);
    shmem_quiet();
    shmem_uint32_atomic_compare_swap_nbi(&got[2], &words[4], 7, 0x01020304, right);
    shmem_quiet();
    tap_check_eq(got[0], 0xffffffffu);
    tap_check_eq(got[1], 7u);
    tap_check_eq(got[2], 7u);
    shmem_barrier_all();
    tap_check_eq(words[0], 0xa5a5a5a5u);
    tap_check_eq(words[1], 1u);
    tap_check_eq(words[2], 0xa5a5a5a5u);
    tap_check_eq(words[3], 0xa5a5a5a5u);
    tap_check_eq(words[4], 0x01020304u);
    tap_check_eq(words[5], 0xa5a5a5a5u);
    tap_point("4-byte atomics keep their neighbours and their byte order");
}

/* An atomic to a near PE goes another way than a put: fence keeps them in order all the same. */
static void fence_between_ways(void)
{
    static long value, flag;
    int right = (tap_me + 1) % tap_n;

    value = flag = 0;
    shmem_barrier_all();
    for (long i = 1; i <= ROUNDS; i++) {
        shmem_long_atomic_add(&value, 1, right);
        shmem_fence();
        shmem_long_p(&flag, i, right);
        shmem_long_wait_until(&flag, SHMEM_CMP_GE, i);
        tap_check(shmem_long_atomic_fetch(&value, tap_me) >= i);
        shmem_barrier_all();
    }
    tap_point("an atomic before a fence is seen before a put after it");
}

int main(void)
{
    long *heap_adds;

    tap_init();
    heap_adds = shmem_malloc(sizeof *heap_adds);
    if (!heap_adds)
        return 99;
    no_add_is_lost(heap_adds);
    compare_swap_and_bits();
    swaps();
    small_words();
    fence_between_ways();
    return tap_done();
}
