/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lock.c - locks in static and heap memory exclude all other PEs and threads, hand on what was
 * written inside, and waiting PEs get them in turn.
 *
 * run: n=1,2,4 launch=oshrun timeout=120
 * run: n=3 launch=mpirun timeout=120
 */
#include "coll.h"

#include <pthread.h>

#define THREADS 3

static long static_lock, *heap_locks;
static long inside, total, turns[TAP_MAX_PES];
static int rounds = 300;

/* The read and the write are separate calls: without the lock additions get lost. */
static void section(long *lock, long *in, long *count)
{
    shmem_set_lock(lock);
    tap_check_eq(shmem_long_atomic_fetch_add(in, 1, 0), 0);
    shmem_long_p(count, shmem_long_g(count, 0) + 1, 0);
    shmem_long_atomic_add(in, -1, 0);
    shmem_clear_lock(lock);
}

static void exclusion(long *lock, const char *name)
{
    shmem_barrier_all();
    inside = total = 0;
    shmem_barrier_all();
    for (int i = 0; i < rounds; i++)
        section(lock, &inside, &total);
    shmem_barrier_all();
    if (tap_me == 0)
        tap_check_eq(total, (long)rounds * tap_n);
    tap_check_eq(*lock, 0);
    tap_point("exclusion by %s", name);
}

static void try_lock(void)
{
    int got = 0;

    shmem_barrier_all();
    inside = total = 0;
    shmem_barrier_all();
    while (got < rounds / 4) {
        if (shmem_test_lock(&static_lock)) {
            sched_yield();
            continue;
        }
        tap_check_eq(shmem_long_atomic_fetch_inc(&inside, 0), 0);
        shmem_long_p(&total, shmem_long_g(&total, 0) + 1, 0);
        shmem_long_atomic_add(&inside, -1, 0);
        shmem_clear_lock(&static_lock);
        got++;
    }
    shmem_barrier_all();
    if (tap_me == 0)
        tap_check_eq(total, (long)(rounds / 4) * tap_n);
    tap_point("exclusion by shmem_test_lock");
    if (tap_me == 0) {
        shmem_set_lock(&static_lock);
        tap_check_eq(shmem_test_lock(&static_lock), 1);
    }
    shmem_barrier_all();
    if (tap_me != 0)
        tap_check_eq(shmem_test_lock(&static_lock), 1);
    shmem_barrier_all();
    if (tap_me == 0)
        shmem_clear_lock(&static_lock);
    shmem_barrier_all();
    tap_point("shmem_test_lock says no while it is held");
}

/* While PE 0 holds the lock all others queue; each gets it once before any gets it twice. */
static void in_turn(void)
{
    long *lock = &heap_locks[3];

    shmem_barrier_all();
    total = 0;
    if (tap_me == 0)
        shmem_set_lock(lock);
    shmem_barrier_all();
    if (tap_me == 0) {
        struct timespec t = { 0, 100000000 };

        nanosleep(&t, NULL); /* long enough that all queue, and sleep */
        shmem_clear_lock(lock);
    } else {
        for (int i = 0; i < 2; i++) {
            shmem_set_lock(lock);
            shmem_long_p(&turns[shmem_long_g(&total, 0)], tap_me, 0);
            shmem_long_p(&total, shmem_long_g(&total, 0) + 1, 0);
            shmem_clear_lock(lock);
        }
    }
    shmem_barrier_all();
    if (tap_me == 0) {
        int seen[TAP_MAX_PES] = { 0 };

        tap_check_eq(total, 2 * (tap_n - 1));
        for (int i = 0; i < tap_n - 1; i++)
            tap_check_eq(seen[turns[i]]++, 0);
    }
    tap_point("waiting PEs get the lock in turn");
}

static void *thread(void *arg)
{
    (void)arg;
    for (int i = 0; i < rounds / 3; i++) {
        section(&static_lock, &inside, &total);
        section(&heap_locks[i % 3], &heap_locks[4 + i % 3], &heap_locks[7 + i % 3]);
    }
    return NULL;
}

static void threads(void)
{
    pthread_t t[THREADS];
    long sum = 0;

    shmem_barrier_all();
    inside = total = 0;
    shmem_barrier_all();
    for (int i = 0; i < THREADS; i++)
        pthread_create(&t[i], NULL, thread, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
    shmem_barrier_all();
    for (int i = 7; i < 10; i++)
        sum += heap_locks[i];
    if (tap_me == 0) {
        tap_check_eq(total, (long)(rounds / 3) * THREADS * tap_n);
        tap_check_eq(sum, (long)(rounds / 3) * THREADS * tap_n);
    }
    tap_point("%d threads a PE, four locks", THREADS);
}

int main(void)
{
    int provided = -1;

    tap_check_eq(shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided), 0);
    tap_attach();
    tap_check_eq(provided, SHMEM_THREAD_MULTIPLE);
    if (!tap_all_near())
        rounds = 30; /* a section is eight round trips in a row, and packets may get lost */
    heap_locks = shmem_calloc(16, sizeof(long));
    tap_check(heap_locks != NULL);
    exclusion(&static_lock, "a static lock");
    exclusion(&heap_locks[0], "a lock on the heap");
    exclusion(&heap_locks[1], "its neighbour");
    try_lock();
    in_turn();
    threads();
    return tap_done();
}
