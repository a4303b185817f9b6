/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * far_contexts.c - contexts with queues of their own, threads that share one, and operations whose doorbell is left to
 * later: all of it arrives, in order, whoever waits.
 *
 * run: n=1,2,3 launch=oshrun timeout=120
 * nodes: some=one timeout=300
 */
#include "tap.h"

#include <pthread.h>
#include <time.h>

#define CONTEXTS 24
#define THREADS 3
#define ROUNDS 60

static long cells[CONTEXTS], flags[CONTEXTS], echo, box[THREADS][ROUNDS], total;

/* What is put without blocking, and without quiet, reaches a peer on whose answer this PE waits. */
static void a_wait_sends_what_was_deferred(void)
{
    int right = (tap_me + 1) % tap_n, left = (tap_me + tap_n - 1) % tap_n;

    for (long round = 1; round <= ROUNDS; round++) {
        for (int i = 0; i < 5; i++)
            shmem_long_put_nbi(&cells[i], &round, 1, right);
        shmem_fence();
        shmem_long_put_nbi(&flags[0], &round, 1, right);
        shmem_long_wait_until(&flags[0], SHMEM_CMP_GE, round);
        for (int i = 0; i < 5; i++)
            tap_check(cells[i] >= round);
        shmem_long_put_nbi(&echo, &round, 1, left);
        while (!shmem_long_test(&echo, SHMEM_CMP_GE, round))
            ;
        shmem_sync_all();
    }
    shmem_quiet();
    tap_point("waits and tests send what was deferred");
}

static void many_contexts(void)
{
    static const long options[] = { 0, SHMEM_CTX_SERIALIZED, SHMEM_CTX_PRIVATE };
    int right = (tap_me + 1) % tap_n, left = (tap_me + tap_n - 1) % tap_n;

    for (long round = 1; round <= 3; round++) {
        shmem_ctx_t ctx[CONTEXTS];
        long got[CONTEXTS], values[CONTEXTS];

        for (int i = 0; i < CONTEXTS; i++) {
            tap_check_eq(shmem_ctx_create(options[i % 3], &ctx[i]), 0);
            values[i] = 100 * round + i + 1000L * tap_me;
            shmem_ctx_long_put_nbi(ctx[i], &cells[i], &values[i], 1, right);
            shmem_ctx_fence(ctx[i]);
            shmem_ctx_long_put_nbi(ctx[i], &flags[i], &values[i], 1, right);
        }
        for (int i = 0; i < CONTEXTS; i += 2)
            shmem_ctx_quiet(ctx[i]);
        for (int i = 1; i < CONTEXTS; i += 2)
            shmem_ctx_pe_quiet(ctx[i], &right, 1);
        shmem_barrier_all();
        for (int i = 0; i < CONTEXTS; i++) {
            tap_check_eq(cells[i], 100 * round + i + 1000L * left);
            tap_check_eq(flags[i], 100 * round + i + 1000L * left);
            shmem_ctx_long_get_nbi(ctx[i], &got[i], &cells[i], 1, right);
        }
        for (int i = 0; i < CONTEXTS; i++) {
            shmem_ctx_quiet(ctx[i]);
            tap_check_eq(got[i], values[i]);
        }
        shmem_barrier_all();
        for (int i = 0; i < CONTEXTS; i++)
            shmem_ctx_destroy(ctx[i]);
    }
    tap_point("%d contexts, made and destroyed three times", CONTEXTS);
}

static shmem_ctx_t older; /* than the thread level */

/* Threads on the default context and an older one, which they share, and on one of their own. */
static void *thread(void *arg)
{
    int k = (int)(long)arg, right = (tap_me + 1) % tap_n, bad = 0;
    shmem_ctx_t own = SHMEM_CTX_INVALID;
    long back[ROUNDS];

    bad += shmem_ctx_create(SHMEM_CTX_PRIVATE, &own) != 0;
    for (long i = 0; i < ROUNDS; i++) {
        long value = 7 * i + k + 1, seen = -1;

        shmem_long_put_nbi(&box[k][i], &value, 1, right);
        shmem_long_atomic_inc(&total, 0);
        if (i % 8 == 7)
            shmem_quiet();
        shmem_ctx_long_put(own, &box[k][i], &value, 1, right);
        shmem_ctx_quiet(own);
        shmem_ctx_long_get(own, &seen, &box[k][i], 1, right);
        bad += seen != value;
        seen = shmem_long_g(&box[k][i], right);
        bad += seen != value;
        seen = -1;
        shmem_ctx_long_get_nbi(older, &seen, &box[k][i], 1, right);
        shmem_ctx_quiet(older);
        bad += seen != value;
    }
    shmem_getmem(back, box[k], sizeof box[k], right);
    for (int i = 0; i < ROUNDS; i++)
        bad += back[i] != 7L * i + k + 1;
    shmem_quiet();
    shmem_ctx_destroy(own);
    return (void *)(long)bad;
}

static void threads(void)
{
    pthread_t t[THREADS];
    void *bad;

    for (int k = 0; k < THREADS; k++)
        pthread_create(&t[k], NULL, thread, (void *)(long)k);
    for (int k = 0; k < THREADS; k++) {
        pthread_join(t[k], &bad);
        tap_check_eq((long)bad, 0);
    }
    shmem_barrier_all();
    if (tap_me == 0)
        tap_check_eq(total, (long)THREADS * ROUNDS * tap_n);
    tap_point("threads on the default context, on one made before there were threads, and on their own");
}

/*
 * Threads that share the default context's queues.  At the same moment one rings and another one leaves an operation without a
 * doorbell; nobody rings after that, but who waits for it: another thread's quiet (a get that comes through a bounce
 * buffer), and a wait for the peer's answer.
 */
static long asked, answered, rung[2];
static int rounds;
static pthread_barrier_t line;

static int peer(void)
{
    return tap_me ^ 1;
}

static void *rings(void *arg)
{
    for (long i = 0; i < 2 * rounds; i++) {
        pthread_barrier_wait(&line);
        shmem_long_put(&rung[0], &i, 1, peer());
        pthread_barrier_wait(&line);
    }
    return arg;
}

static void *leaves(void *arg)
{
    long got;

    for (long i = 0; i < 2 * rounds; i++) {
        got = -1; /* on the stack: no NIC knows it */
        pthread_barrier_wait(&line);
        if (i < rounds)
            shmem_long_get_nbi(&got, &cells[i % CONTEXTS], 1, peer());
        else if (tap_me % 2 == 0)
            shmem_long_put_nbi(&asked, &i, 1, peer());
        pthread_barrier_wait(&line);
        if (i < rounds) {
            shmem_quiet();
            *(int *)arg += got != 5 * (i % CONTEXTS) + peer();
        } else if (tap_me % 2 == 0) {
            shmem_long_wait_until(&answered, SHMEM_CMP_GE, i);
        }
    }
    return NULL;
}

static void *waits(void *arg)
{
    for (long i = 0; i < 2 * rounds; i++) {
        pthread_barrier_wait(&line);
        if (i < rounds) {
            shmem_quiet();
        } else if (tap_me % 2 == 1) {
            shmem_long_wait_until(&asked, SHMEM_CMP_GE, i);
            shmem_long_put(&answered, &i, 1, peer());
        }
        pthread_barrier_wait(&line);
    }
    return arg;
}

static void what_others_leave(void)
{
    void *(*const bodies[])(void *) = { rings, leaves, waits };
    pthread_t t[THREADS];
    int bad = 0;

    rounds = tap_short() ? 200 : 2000;
    for (int i = 0; i < CONTEXTS; i++)
        cells[i] = 5 * i + tap_me;
    shmem_barrier_all();
    if (peer() < tap_n) {
        pthread_barrier_init(&line, NULL, THREADS);
        for (int i = 0; i < THREADS; i++)
            pthread_create(&t[i], NULL, bodies[i], &bad);
        for (int i = 0; i < THREADS; i++)
            pthread_join(t[i], NULL);
        pthread_barrier_destroy(&line);
        tap_check_eq(bad, 0);
    }
    shmem_barrier_all();
    tap_point("what a thread leaves without a doorbell when another one rings");
}

static double cpu_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* The last ones cost no more than the first ones, and the places of dead ones are used again. */
static void as_many_as_there_are(void)
{
    enum { MOST = 40000, PART = 4096, LEAST = 30000 };
    shmem_ctx_t *all = malloc(MOST * sizeof *all);
    int count[2] = { 0, 0 };
    double late = 1e9; /* of the later ones the quickest part: the others may have lost the processor */

    for (int round = 0; round < 2; round++) {
        double at[MOST / PART + 1] = { cpu_seconds() };
        int n = 0;

        while (n < MOST && shmem_ctx_create(0, &all[n]) == 0)
            if (++n % PART == 0)
                at[n / PART] = cpu_seconds();
        count[round] = n;
        for (int part = n / PART - 2; round == 0 && part > 0 && part < n / PART; part++)
            late = at[part + 1] - at[part] < late ? at[part + 1] - at[part] : late;
        if (round == 0)
            tap_check(late < 4 * (at[1] - at[0]) + 0.02);
        while (n > 0)
            shmem_ctx_destroy(all[--n]);
    }
    free(all);
    tap_check(count[0] > LEAST);
    tap_check_eq(count[1], count[0]);
    tap_point("as many contexts as there can be");
}

int main(void)
{
    int provided;

    shmem_init_thread(SHMEM_THREAD_SERIALIZED, &provided);
    tap_attach();
    a_wait_sends_what_was_deferred();
    many_contexts();
    tap_check_eq(shmem_ctx_create(0, &older), 0);
    shmem_ctx_long_p(older, &echo, 0, (tap_me + 1) % tap_n);
    shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided); /* counted; from here on threads may share the queues */
    threads();
    shmem_ctx_destroy(older);
    what_others_leave();
    many_contexts();
    as_many_as_there_are();
    shmem_finalize();
    return tap_done();
}
