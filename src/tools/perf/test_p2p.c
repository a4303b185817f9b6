/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_p2p.c - one word or a message handed to and fro between PE 0 and 1: the bare
 * cache line (the ruler), p and wait, put with signal.  Figures are half a round trip.
 */
#include "perf.h"

#include <sched.h>

#define RULER_ROUNDS 200
#define RULER_TRIPS 200

static void poll_until(volatile long *word, long value)
{
    for (long polls = 0; *word != value; polls++) {
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#endif
        if (polls > 20000)
            sched_yield(); /* the other PE may not be running */
    }
}

/* One line, no library: PE 0 stores k into its peer's word and waits for k in its own. */
double perf_ruler(void)
{
    volatile long *mine = &perf.ctl->flag, *theirs = NULL;
    double best = 1e18;
    long k = 0;

    if (perf.n_pes > 1 && perf.me < 2)
        theirs = shmem_ptr(&perf.ctl->flag, 1 - perf.me);
    *mine = 0;
    if (!perf_agree(theirs != NULL))
        return 0;
    for (int round = 0; perf.me < 2 && round < RULER_ROUNDS; round++) {
        double t = perf_now();

        for (int i = 0; i < RULER_TRIPS; i++) {
            k++;
            if (perf.me == 0)
                *theirs = k;
            poll_until(mine, k);
            if (perf.me == 1)
                *theirs = k;
        }
        t = (perf_now() - t) / (2.0 * RULER_TRIPS);
        perf.samples[round < perf.opt.iters ? round : 0] = t;
        if (t < best)
            best = t;
    }
    shmem_barrier_all();
    *mine = 0;
    if (perf.me == 0) {
        struct perf_row row;

        perf_row_stats(&row, perf.samples, RULER_ROUNDS < perf.opt.iters ? RULER_ROUNDS : perf.opt.iters);
        best = row.p50;
    }
    return best;
}

static long turn; /* counts round trips; the same on PE 0 and 1 */

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
