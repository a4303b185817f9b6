/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * threads.c - threads of a PE at the same time: contexts come and go, data with signals, atomics, waits, queries, and
 * one thread that allocates while the others transfer.
 *
 * run: n=1,2,3 launch=oshrun timeout=120
 * run: n=2,3 launch=oshrun timeout=120 env=MARROW_CHECK=1
 * nodes: some=one timeout=300
 */
#include "tap.h"

#include <pthread.h>

#define THREADS 3
#define WORDS 40

static long rounds;
static long box[THREADS][WORDS], counter, flags[THREADS][2];
static uint64_t arrived[THREADS], taken[THREADS];
static long *heap_box[THREADS];

/* One message to the next PE through a context of this round; the next PE's answer frees the box for another. */
static void send_round(int k, long round, int next)
{
    long message[WORDS];
    shmem_ctx_t ctx = SHMEM_CTX_INVALID;
    shmem_team_t team = SHMEM_TEAM_INVALID;
    long *to = round % 2 ? box[k] : heap_box[k];

    for (long i = 0; i < WORDS; i++)
        message[i] = 1000 * round + i + tap_me;
    tap_check_eq(shmem_ctx_create(round % 3 ? 0 : SHMEM_CTX_SERIALIZED, &ctx), 0);
    tap_check_eq(shmem_ctx_get_team(ctx, &team), 0);
    tap_check(team == SHMEM_TEAM_WORLD);
    if (round % 4 < 2) {
        shmem_ctx_long_put_signal(ctx, to, message, WORDS, &arrived[k], (uint64_t)round, SHMEM_SIGNAL_SET, next);
    } else {
        shmem_ctx_long_put_nbi(ctx, to, message, WORDS, next);
        shmem_ctx_fence(ctx);
        shmem_ctx_uint64_atomic_set(ctx, &arrived[k], (uint64_t)round, next);
    }
    shmem_ctx_long_atomic_inc(ctx, &counter, 0);
    shmem_ctx_quiet(ctx);
    shmem_ctx_destroy(ctx);
}

static void receive_round(int k, long round, int previous)
{
    const long *from = round % 2 ? box[k] : heap_box[k];
    int bad = 0;

    shmem_signal_wait_until(&arrived[k], SHMEM_CMP_GE, (uint64_t)round);
    for (long i = 0; i < WORDS; i++)
        bad += from[i] != 1000 * round + i + previous;
    tap_check_eq(bad, 0);
    shmem_uint64_atomic_set(&taken[k], (uint64_t)round, previous);
    shmem_uint64_wait_until(&taken[k], SHMEM_CMP_GE, (uint64_t)round);
}

/* A thread of this PE stores the flag, or another PE: waits of all sorts see it. */
static void flag_round(int k, long round, int next)
{
    shmem_long_p(&flags[k][round & 1], round, next);
    tap_check_eq(shmem_long_wait_until_any(flags[k], 2, NULL, SHMEM_CMP_GE, round), (size_t)(round & 1));
    tap_check(shmem_long_test(&flags[k][round & 1], SHMEM_CMP_GE, round));
    tap_check(shmem_ptr(&counter, tap_me) == &counter);
    tap_check(shmem_addr_accessible(heap_box[k], next));
}

static void *thread(void *arg)
{
    int k = (int)(long)arg, next = (tap_me + 1) % tap_n, previous = (tap_me + tap_n - 1) % tap_n;

    for (long round = 1; round <= rounds; round++) {
        void *block = NULL;

        if (k == 0) {
            block = shmem_malloc((size_t)(64 * round));
            tap_check(block != NULL);
        }
        send_round(k, round, next);
        receive_round(k, round, previous);
        flag_round(k, round, next);
        if (k == 0)
            shmem_free(block);
    }
    return NULL;
}

int main(void)
{
    int provided;
    pthread_t t[THREADS];

    tap_check_eq(shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided), 0);
    tap_attach();
    rounds = tap_short() ? 30 : 100;
    for (int i = 0; i < THREADS; i++)
        heap_box[i] = shmem_calloc(WORDS, sizeof(long));
    for (long i = 0; i < THREADS; i++)
        pthread_create(&t[i], NULL, thread, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
    shmem_barrier_all();
    tap_check_eq(shmem_long_atomic_fetch(&counter, 0), rounds * THREADS * tap_n);
    tap_point("%d threads: contexts, signals, atomics, waits, and an allocating one", THREADS);
    for (int i = 0; i < THREADS; i++)
        shmem_free(heap_box[i]);
    return tap_done();
}
