/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_p2p.c - one word or a message handed to and fro between PE 0 and 1: the bare
 * cache line (the ruler), p and wait, put with signal.  Figures are half a round trip.
 */
#include "perf.h"

#include <sched.h>

static long turn; /* counts round trips of the tests below; the same on PE 0 and 1 */

#define RULER_ROUNDS 500
#define RULER_TRIPS 50
#define RULER_NS 50e6 /* at most about this long: the two PEs may share a CPU */
#define RULER_STOP (-1L)

/* The word's next value. */
static long poll_change(volatile long *word, long old)
{
    long v;

    for (long polls = 0; (v = *word) == old; polls++) {
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#endif
        if (polls > 1000)
            sched_yield(); /* the other PE may not be running */
    }
    return v;
}

/* PE 0: stores k into its peer's word and waits for k in its own.  The median round's half trip. */
static double ruler_lead(volatile long *mine, volatile long *theirs)
{
    struct perf_row row = { .test = "ruler" };
    double start = perf_now(), t = start;
    long k = 0, n = 0;

    while (n < RULER_ROUNDS && n < perf.opt.iters && (n == 0 || t - start < RULER_NS)) {
        double end;

        for (int i = 0; i < RULER_TRIPS; i++) {
            *theirs = ++k;
            poll_change(mine, k - 1);
        }
        end = perf_now();
        perf.samples[n++] = (end - t) / (2.0 * RULER_TRIPS);
        t = end;
    }
    *theirs = RULER_STOP;
    perf_row_stats(&row, perf.samples, n);
    return row.p50;
}

static void ruler_follow(volatile long *mine, volatile long *theirs)
{
    long k = 0;

    while ((k = poll_change(mine, k)) != RULER_STOP)
        *theirs = k;
}

/* One line to and fro with no library in between. */
double perf_ruler(void)
{
    volatile long *mine = &perf.ctl->flag, *theirs = NULL;
    double ns = 0;

    if (perf.n_pes > 1 && perf.me < 2)
        theirs = shmem_ptr(&perf.ctl->flag, 1 - perf.me);
    *mine = 0;
    if (!perf_agree(theirs != NULL))
        return 0;
    if (perf.me == 0)
        ns = ruler_lead(mine, theirs);
    else if (perf.me == 1)
        ruler_follow(mine, theirs);
    shmem_barrier_all();
    *mine = turn;
    shmem_barrier_all();
    return ns;
}

static void p_and_wait(size_t bytes, long n)
{
    int other = 1 - perf.me;

    (void)bytes;
    for (long i = 0; i < n; i++) {
        turn++;
        if (perf.me == 0)
            shmem_long_p(&perf.ctl->flag, turn, other);
        shmem_long_wait_until(&perf.ctl->flag, SHMEM_CMP_EQ, turn);
        if (perf.me == 1)
            shmem_long_p(&perf.ctl->flag, turn, other);
    }
}

#if PERF_HAVE_15
static void send(size_t bytes, int to)
{
    shmem_putmem_signal(perf.dst, perf.src, bytes, &perf.ctl->signal, (uint64_t)turn, SHMEM_SIGNAL_SET, to);
}

static void receive(void)
{
    shmem_signal_wait_until(&perf.ctl->signal, SHMEM_CMP_EQ, (uint64_t)turn);
}
#else
/* Before put-with-signal: put, fence and p. */
static void send(size_t bytes, int to)
{
    shmem_putmem(perf.dst, perf.src, bytes, to);
    shmem_fence();
    shmem_long_p(&perf.ctl->flag, turn, to);
}

static void receive(void)
{
    shmem_long_wait_until(&perf.ctl->flag, SHMEM_CMP_EQ, turn);
}
#endif

static void put_and_signal(size_t bytes, long n)
{
    int other = 1 - perf.me;

    for (long i = 0; i < n; i++) {
        turn++;
        if (perf.me == 0)
            send(bytes, other);
        receive();
        if (perf.me == 1)
            send(bytes, other);
    }
}

void perf_run_p2p(double ruler)
{
    if (perf_wanted("pwait"))
        perf_pingpong("pwait", 8, p_and_wait, ruler);
    if (perf_wanted("putsignal"))
        PERF_FOR_SIZES(s)
            perf_pingpong("putsignal", s, put_and_signal, ruler + perf_copy_floor(s));
}
