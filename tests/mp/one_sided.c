/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * one_sided.c - puts, gets and atomics where other libraries were found wrong: bit patterns, neighbours of small
 * words, empty strided calls, order seen by a third PE.
 *
 * nodes: some=one
 */
#include "tap.h"

#include <stdint.h>


static unsigned adds;
static uint32_t cells[3];
static uint64_t wide;
static double real[3];
static float small[3];
static long strided[32], box[2], flag;

/* -0, a denormal and a NaN with a payload survive as the bits that they are; neighbours stay. */
static void bit_patterns(void)
{
    static const uint64_t bits[] = { 0x8000000000000000u, 1, 0x7ff8dead00000001u, 0x3ff0000000000000u };
    static const uint32_t bits32[] = { 0x80000000u, 1, 0x7fc0beefu, 0x3f800000u };
    int right = (tap_me + 1) % tap_n;

    for (int i = 0; i < 4; i++) {
        double value, got;
        float value32, got32;
        uint64_t back;
        uint32_t back32;

        memcpy(&value, &bits[i], sizeof value);
        memcpy(&value32, &bits32[i], sizeof value32);
        shmem_barrier_all();
        shmem_double_atomic_set(&real[1], value, right);
        shmem_float_atomic_set(&small[1], value32, right);
        got = shmem_double_atomic_fetch(&real[1], right);
        got32 = shmem_float_atomic_swap(&small[1], value32, right);
        memcpy(&back, &got, sizeof back);
        memcpy(&back32, &got32, sizeof back32);
        tap_check_eq(back, bits[i]);
        tap_check_eq(back32, bits32[i]);
        tap_check(real[0] == 0 && real[2] == 0 && small[0] == 0 && small[2] == 0);
    }
    tap_point("float and double atomics keep every bit and no neighbour");
}

/* Carries of a 32-bit word must not reach the next one. */
static void adjacent_words(void)
{
    if (tap_me == 0)
        cells[0] = cells[1] = cells[2] = UINT32_MAX;
    shmem_barrier_all();
    for (int i = 0; i < (int)adds; i++) {
        shmem_uint32_atomic_add(&cells[tap_me % 2], 1, 0);
        shmem_uint64_atomic_inc(&wide, 0);
    }
    shmem_barrier_all();
    if (tap_me == 0) {
        uint32_t evens = (uint32_t)((tap_n + 1) / 2) * adds, odds = (uint32_t)(tap_n / 2) * adds;

        tap_check_eq(cells[0], UINT32_MAX + evens);
        tap_check_eq(cells[1], UINT32_MAX + odds);
        tap_check_eq(cells[2], UINT32_MAX);
        tap_check_eq(wide, (uint64_t)tap_n * adds);
    }
    tap_point("adjacent 32-bit counters are exact");
}

/* A target that only polls its own counter must not keep the others from changing it. */
static void polling_target(void)
{
    static long counter;

    if (tap_me == 0)
        while (shmem_long_atomic_fetch(&counter, 0) < 500L * (tap_n - 1))
            ;
    else
        for (int i = 0; i < 500; i++)
            shmem_long_atomic_fetch_inc(&counter, 0);
    shmem_barrier_all();
    tap_check(tap_me != 0 || counter == 500L * (tap_n - 1));
    tap_point("a target that polls does not starve its peers");
}

static void strides(void)
{
    long source[16];
    int right = (tap_me + 1) % tap_n, left = (tap_me + tap_n - 1) % tap_n;

    for (int i = 0; i < 16; i++)
        source[i] = 100 * tap_me + i;
    for (int i = 0; i < 32; i++)
        strided[i] = -1;
    shmem_barrier_all();
    shmem_long_iput(NULL, NULL, 7, 5, 0, right); /* nothing to do is no error, whatever the pointers */
    shmem_long_iget(NULL, NULL, 3, 7, 0, right);
    shmem_long_ibput(NULL, NULL, 4, 4, 2, 0, right);
    shmem_putmem(NULL, NULL, 0, right);
    shmem_getmem(NULL, NULL, 0, right);
    shmem_long_iput(strided, source, 7, 3, 4, right);
    shmem_barrier_all();
    for (int i = 0; i < 32; i++)
        tap_check_eq(strided[i], i % 7 == 0 && i <= 21 ? 100L * left + i / 7 * 3 : -1L);
    shmem_barrier_all(); /* the get reads what the put wrote at the right */
    shmem_long_iget(source, strided, 2, 7, 4, right);
    for (int i = 0; i < 4; i++)
        tap_check_eq(source[2 * i], 100L * tap_me + 3 * i);
    tap_point("strided transfers keep the gaps, empty ones do nothing");
}

/* PE 0 writes to 1, is quiet, tells 2: what 2 then reads from 1 is new. */
static void third_party(void)
{
    for (long round = 1; tap_n >= 3 && round <= (tap_short() ? 60 : 300); round++) {
        if (tap_me == 0) {
            long pair[2] = { round, -round };

            shmem_long_put_nbi(box, pair, 2, 1);
            shmem_quiet();
            shmem_long_p(&flag, round, 2);
        } else if (tap_me == 2) {
            long got[2];

            shmem_long_wait_until(&flag, SHMEM_CMP_GE, round);
            shmem_long_get(got, box, 2, 1);
            tap_check(got[0] >= round && got[1] <= -round);
        }
        if (round % 10 == 0)
            shmem_barrier_all();
    }
    tap_point("quiet shows a put to everybody");
}

int main(void)
{
    tap_init();
    adds = tap_short() ? 200 : 2000;
    bit_patterns();
    adjacent_words();
    polling_target();
    strides();
    third_party();
    return tap_done();
}
