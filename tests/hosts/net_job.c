/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net_job.c - a job that uses all PEs' memory all the time: what the error tests break.
 *
 * Usage: net_job MODE [PE [MILLISECONDS]]
 *   work    for MILLISECONDS; then PE 0 prints "worked" when every word and count is right
 *   kill    the same, but PE gets SIGKILL after MILLISECONDS; the others work on
 *   stop    PE stops (SIGSTOP) after MILLISECONDS
 *   single  PE 0 puts one word after the other to the last PE, each with a quiet, for a minute; the others wait
 *   close   PE closes all descriptors but the standard ones, and waits in a barrier; the others sleep
 *   idle    PE gets SIGKILL after MILLISECONDS while the others wait in a barrier that it has not entered
 *
 * Each PE first prints "pid NUMBER", before shmem_init, and "up" behind it.
 */
#define _GNU_SOURCE /* close_range */
#include <shmem.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { WORDS = 8192, ADDS = 4 };

static long *block;       /* a part of each PE's, in the heap */
static long count;        /* on PE 0, static */
static long go_on = 1;    /* PE 0's word to all */
static uint64_t signals;
static int me, n;

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void wrong(const char *what, long got, long want)
{
    fprintf(stderr, "net_job: PE %d: %s is %ld, not %ld\n", me, what, got, want);
    shmem_global_exit(7);
}

/* Puts of many sizes to the next PE, a signalled one among them, a get from the one before, adds on PE 0. */
static void work_round(long round)
{
    static long local[WORDS];
    int next = (me + 1) % n, before = (me + n - 1) % n;
    size_t words = (size_t)1 << round % 13;

    for (size_t i = 0; i < words; i++)
        local[i] = round * n + me + (long)i;
    shmem_put64_signal(block, local, words, &signals, (uint64_t)round, SHMEM_SIGNAL_SET, next);
    for (int i = 0; i < ADDS; i++)
        shmem_long_atomic_add(&count, 1, 0);
    shmem_signal_wait_until(&signals, SHMEM_CMP_GE, (uint64_t)round);
    if (block[words - 1] != round * n + before + (long)words - 1)
        wrong("the last word that came", block[words - 1], round * n + before + (long)words - 1);
    shmem_barrier_all();
    memset(local, 0, words * sizeof *local);
    shmem_long_get(local, block, words, next);
    if (local[0] != round * n + me)
        wrong("the word got back", local[0], round * n + me);
    shmem_barrier_all();
}

/* Rounds until PE 0 says that the time is over. */
static void work(double limit)
{
    long round = 0, total;

    while (shmem_long_g(&go_on, 0)) {
        work_round(++round);
        if (me == 0 && seconds() > limit)
            go_on = 0;
        shmem_barrier_all();
    }
    total = shmem_long_atomic_fetch(&count, 0);
    if (total != round * ADDS * n)
        wrong("the count", total, round * ADDS * n);
    if (me == 0)
        printf("worked %s\n", round > 0 ? "well" : "not at all");
}

static void end_myself(int sig)
{
    (void)sig;
    kill(getpid(), SIGKILL);
}

static void stop_myself(int sig)
{
    (void)sig;
    kill(getpid(), SIGSTOP);
}

static void alarm_after(long ms, void (*handler)(int sig))
{
    struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART };
    struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR2 };
    struct itimerspec when = { .it_value = { ms / 1000, ms % 1000 * 1000000 + 1 } };
    timer_t timer;

    if (sigaction(SIGUSR2, &action, NULL) || timer_create(CLOCK_MONOTONIC, &event, &timer) ||
        timer_settime(timer, 0, &when, NULL))
        abort();
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "";
    int bad = argc > 2 ? atoi(argv[2]) : 1;
    long ms = argc > 3 ? atol(argv[3]) : 500;

    printf("pid %d\n", (int)getpid());
    fflush(stdout);
    shmem_init();
    printf("up\n");
    fflush(stdout);
    me = shmem_my_pe();
    n = shmem_n_pes();
    block = shmem_malloc(WORDS * sizeof *block);
    if (!block)
        return 2;
    if (!strcmp(mode, "work")) {
        work(seconds() + (double)ms / 1000);
    } else if (!strcmp(mode, "kill") || !strcmp(mode, "stop")) {
        if (me == bad)
            alarm_after(ms, mode[0] == 'k' ? end_myself : stop_myself);
        work(seconds() + 60);
    } else if (!strcmp(mode, "single")) {
        for (double end = seconds() + 60; me == 0 && seconds() < end; shmem_quiet())
            shmem_long_p(block, 1, n - 1);
        shmem_barrier_all();
    } else if (!strcmp(mode, "close")) {
        shmem_barrier_all();
        if (me != bad)
            sleep(60);
        else if (close_range(3, ~0u, 0))
            return 2;
        shmem_barrier_all();
    } else if (!strcmp(mode, "idle")) {
        if (me == bad) {
            usleep((useconds_t)ms * 1000);
            end_myself(0);
        }
        shmem_barrier_all();
    } else {
        fprintf(stderr, "net_job: which mode?\n");
        return 2;
    }
    shmem_finalize();
    return 0;
}
