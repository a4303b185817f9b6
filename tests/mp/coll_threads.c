/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll_threads.c - threads of a PE work on teams of their own at the same time: collectives, splits of their
 * teams, active sets with a pSync each.
 *
 * run: n=1,2,3 launch=oshrun timeout=120
 * nodes: some=one timeout=300
 */
#include "coll.h"

#include <pthread.h>

#define THREADS 3

static int rounds;
static long in[THREADS][4], out[THREADS][4], psync[THREADS][SHMEM_SYNC_SIZE], work[THREADS][4];
static shmem_team_t teams[THREADS];

static void *thread(void *arg)
{
    int k = (int)(long)arg;
    shmem_team_t child;

    for (int r = 0; r < rounds; r++) {
        long sum = 0;

        for (int i = 0; i < tap_n; i++)
            sum += i + r + k;
        in[k][0] = tap_me + r + k;
        tap_check_eq(shmem_long_sum_reduce(teams[k], out[k], in[k], 1), 0);
        tap_check_eq(out[k][0], sum);
        /* Threads split at the same time, in an order that differs from PE to PE. */
        tap_check_eq(shmem_team_split_strided(teams[k], tap_n - 1, -1, tap_n, NULL, 0, &child), 0);
        in[k][0] = tap_me + r + k;
        shmem_long_sum_reduce(child, out[k], in[k], 1);
        tap_check_eq(out[k][0], sum);
        shmem_team_sync(child);
        shmem_team_destroy(child);
        shmem_long_sum_to_all(&out[k][1], in[k], 1, 0, 0, tap_n, work[k], psync[k]);
        tap_check_eq(out[k][1], sum);
        shmem_barrier(0, 0, tap_n, psync[k]);
    }
    return NULL;
}

int main(void)
{
    int provided;
    pthread_t t[THREADS];

    tap_check_eq(shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided), 0);
    tap_attach();
    rounds = tap_short() ? 15 : 60;
    for (int i = 0; i < THREADS; i++)
        tap_check_eq(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, tap_n, NULL, 0, &teams[i]), 0);
    for (long i = 0; i < THREADS; i++)
        pthread_create(&t[i], NULL, thread, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
    tap_point("%d threads, each on a team of its own", THREADS);
    for (int i = 0; i < THREADS; i++)
        shmem_team_destroy(teams[i]);
    return tap_done();
}
