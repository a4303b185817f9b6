/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * far_buffers.c - puts and gets of every size from and to every kind of memory: what a NIC reads in place, what is
 * copied for it, inline or in pieces, and transfers longer than one work request.
 *
 * run: n=1,2,3 launch=oshrun timeout=120
 * run: n=2,3 launch=oshrun timeout=120 env=MARROW_CHECK=1
 * nodes: some=one timeout=300 env=MARROW_NIC_MESSAGE=4096
 */
#include "tap.h"

#include <stdint.h>

#define MOST (300 * 1000)
#define GUARD 64

static const size_t sizes[] = { 0,   1,   2,   3,    4,    7,    8,    9,     12,    16,    31,    64,       200,
                                219, 220, 221, 1000, 1024, 1025, 4096, 4097, 8191, 8192, 8193, 65536, 65537, MOST };
#define N_SIZES (sizeof sizes / sizeof sizes[0])

static unsigned char in_data[GUARD + MOST + GUARD], from_data[MOST];
static const unsigned char read_only[] = "constants lie in pages that nobody may write, and a NIC need not know them";
static unsigned char *in_heap, *from_heap, *from_malloc, *in_malloc;
static uint64_t arrived;
static size_t kinds; /* of memory that have been tried */

static unsigned char pattern(size_t i, size_t len, int pe)
{
    return (unsigned char)(i * 7 + len * 3 + (size_t)pe * 101 + i / 251);
}

static void fill(unsigned char *p, size_t len, int pe)
{
    for (size_t i = 0; i < len; i++)
        p[i] = pattern(i, len, pe);
}

static int wrong(const unsigned char *p, size_t len, int pe)
{
    for (size_t i = 0; i < len; i++)
        if (p[i] != pattern(i, len, pe))
            return 1;
    for (int i = 0; i < GUARD; i++)
        if (p[-1 - i] != 0xee || p[len + (size_t)i] != 0xee)
            return 1;
    return 0;
}

enum way { PUT, PUT_NBI, SIGNAL, SIGNAL_NBI, N_WAYS };

/* The signal word becomes `signals` either way, from one less. */
static void send(enum way way, unsigned char *dest, const unsigned char *source, size_t len, uint64_t signals, int pe)
{
    int op = (signals + kinds) % 2 ? SHMEM_SIGNAL_SET : SHMEM_SIGNAL_ADD;
    uint64_t value = op == SHMEM_SIGNAL_SET ? signals : 1;

    switch (way) {
    case PUT: shmem_putmem(dest, source, len, pe); break;
    case PUT_NBI: shmem_putmem_nbi(dest, source, len, pe); break;
    case SIGNAL: shmem_putmem_signal(dest, source, len, &arrived, value, op, pe); break;
    default: shmem_putmem_signal_nbi(dest, source, len, &arrived, value, op, pe); break;
    }
}

static void puts_from(const char *what, unsigned char *source, int blocking_may_clobber)
{
    int right = (tap_me + 1) % tap_n, left = (tap_me + tap_n - 1) % tap_n;
    uint64_t signals = 0;

    arrived = 0;
    for (size_t s = 0; s < N_SIZES; s++)
        for (int way = 0; way < N_WAYS; way++) {
            unsigned char *dest = (s + (size_t)way) % 2 ? in_heap : in_data;
            size_t len = sizes[s];

            if (tap_short() && (s + kinds) % N_WAYS != (size_t)way)
                continue; /* one way a size, another one with each kind of memory */
            memset(dest, 0xee, MOST + 2 * GUARD);
            fill(source, len, tap_me);
            shmem_barrier_all();
            signals += way == SIGNAL || way == SIGNAL_NBI;
            send((enum way)way, dest + GUARD, source, len, signals, right);
            if (blocking_may_clobber && (way == PUT || way == SIGNAL))
                memset(source, 0x55, len); /* a blocking put is done with its source */
            if (way == SIGNAL || way == SIGNAL_NBI)
                shmem_signal_wait_until(&arrived, SHMEM_CMP_EQ, signals);
            else
                shmem_barrier_all();
            if (wrong(dest + GUARD, len, left)) {
                tap_diag("way %d, %zu bytes from %s", way, len, what);
                tap_check(0);
            }
            shmem_barrier_all();
        }
    kinds++;
    tap_point("puts from %s", what);
}

static void gets_to(const char *what, unsigned char *base)
{
    int right = (tap_me + 1) % tap_n;

    for (size_t s = 0; s < N_SIZES; s++)
        for (int nbi = 0; nbi < 2; nbi++) {
            size_t len = sizes[s];
            unsigned char *source = s % 2 ? from_heap : from_data;

            if (tap_short() && (s + kinds) % 2 != (size_t)nbi)
                continue;
            fill(source, len, tap_me);
            memset(base, 0xee, len + 2 * GUARD);
            shmem_barrier_all();
            if (nbi) {
                shmem_getmem_nbi(base + GUARD, source, len, right);
                shmem_quiet();
            } else {
                shmem_getmem(base + GUARD, source, len, right);
            }
            if (wrong(base + GUARD, len, right)) {
                tap_diag("nbi %d, %zu bytes to %s", nbi, len, what);
                tap_check(0);
            }
            shmem_barrier_all();
        }
    kinds++;
    tap_point("gets to %s", what);
}

static void constants(void)
{
    int right = (tap_me + 1) % tap_n;

    memset(in_heap, 0, sizeof read_only);
    shmem_barrier_all();
    shmem_putmem_nbi(in_heap, read_only, sizeof read_only, right);
    shmem_barrier_all();
    tap_check(!memcmp(in_heap, read_only, sizeof read_only));
    tap_point("a put from read-only memory");
}

/* Elements with gaps on both sides, from and to both kinds of memory. */
static void strided(void)
{
    enum { N = 500 };
    int right = (tap_me + 1) % tap_n, bad = 0;
    long *far = (long *)(void *)in_heap, mine[2 * N], near[3 * N];

    for (int i = 0; i < 2 * N; i++)
        mine[i] = i;
    memset(far, 0xff, 3 * N * sizeof *far);
    shmem_barrier_all();
    shmem_long_iput(far, mine, 3, 2, N, right);
    shmem_barrier_all();
    for (int i = 0; i < 3 * N; i++)
        bad += far[i] != (i % 3 ? -1 : i / 3 * 2);
    tap_check_eq(bad, 0);
    memset(near, 0xff, sizeof near);
    shmem_long_iget(near, far, 3, 3, N, right);
    tap_check(!memcmp(near, far, sizeof near));
    memset(near, 0xff, sizeof near);
    shmem_long_ibget(near, far, 9, 9, 9, N / 3, right);
    tap_check(!memcmp(near, far, N / 3 * 9 * sizeof *near));
    shmem_barrier_all();
    shmem_long_ibput(far, near, 9, 9, 8, N / 3, right);
    shmem_barrier_all();
    for (int i = 0; i < N / 3; i++)
        bad += memcmp(&far[9 * i], &near[9 * i], 8 * sizeof *far) != 0;
    tap_check_eq(bad, 0);
    tap_point("strided transfers");
}

int main(void)
{
    static unsigned char stack_like[MOST + 2 * GUARD];
    unsigned char on_stack[MOST + 2 * GUARD];

    tap_init();
    in_heap = shmem_malloc(MOST + 2 * GUARD);
    from_heap = shmem_malloc(MOST);
    from_malloc = malloc(MOST);
    in_malloc = malloc(MOST + 2 * GUARD);
    if (!in_heap || !from_heap || !from_malloc || !in_malloc)
        return 99;
    puts_from("the heap", from_heap, 1);
    puts_from("static data", from_data, 1);
    puts_from("malloc", from_malloc, 1);
    puts_from("the stack", on_stack, 1);
    gets_to("the heap", in_heap);
    gets_to("static data", stack_like);
    gets_to("malloc", in_malloc);
    gets_to("the stack", on_stack);
    constants();
    strided();
    free(from_malloc);
    free(in_malloc);
    return tap_done();
}
