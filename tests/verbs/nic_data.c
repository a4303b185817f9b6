/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nic_data.c - the NIC module moves data between a few processes, by either kind of queue: every PE to every PE and to
 * itself.  Run under the virtual NIC (nic.sh), or on a machine with a NIC.
 *
 *     nic_data [PES]      MARROW_TRANSPORT and the other variables as in shmem_env(7)
 */
#include "nic_job.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BIG = 300000,
    COUNTER = 3 << 20, /* offsets in the heap */
    SWAPPED = COUNTER + 8,
    THREADED = COUNTER + 16,
    SMALL = COUNTER + 64,
    ADDS = 40,
    SMALLS = 1000, /* more than a queue takes at once */
    THREADS = 3,
    ROUNDS = 3,    /* of opening and closing queues */
};

static int points;

static void point(struct job *job, const char *name)
{
    uint64_t failed;

    job_barrier(job);
    failed = __atomic_load_n(&job->board->failed, __ATOMIC_RELAXED);
    if (job->me == 0)
        printf("%sok %d - %s\n", failed ? "not " : "", ++points, name);
    fflush(stdout);
    job_barrier(job);
}

/* What `from` writes into the part of `to`'s heap that is for it. */
static unsigned char pattern(int from, int to, int i)
{
    return (unsigned char)(i * 7 + i / 251 + from * 31 + to * 17);
}

static uint64_t part(int from)
{
    return (uint64_t)from * BIG;
}

static void write_all(struct job *job)
{
    for (int pe = 0; pe < job->n; pe++) {
        for (int i = 0; i < BIG; i++)
            job->bounce[i] = pattern(job->me, pe, i);
        job_write(job, pe, part(job->me), job->bounce, BIG, 0);
        job_check(job, job_quiet(job, pe) == 0, "big write to PE %d", pe);
    }
    job_barrier(job);
    for (int from = 0; from < job->n; from++) {
        int i = 0;

        while (i < BIG && job->heap[part(from) + (uint64_t)i] == pattern(from, job->me, i))
            i++;
        job_check(job, i == BIG, "byte %d from PE %d", i, from);
    }
    point(job, "big writes arrive whole");
}

static void read_all(struct job *job)
{
    for (int pe = 0; pe < job->n; pe++) {
        int i = 0;

        memset(job->bounce, 0, BIG);
        job_read(job, pe, part(job->me), job->bounce, BIG, 0);
        job_check(job, job_quiet(job, pe) == 0, "big read from PE %d", pe);
        while (i < BIG && job->bounce[i] == pattern(job->me, pe, i))
            i++;
        job_check(job, i == BIG, "byte %d read from PE %d", i, pe);
    }
    point(job, "reads bring back what was written");
}

static void write_small(struct job *job)
{
    uint64_t *value = (uint64_t *)(void *)job->bounce;

    for (int pe = 0; pe < job->n; pe++) {
        for (unsigned i = 0; i < SMALLS; i++) {
            value[i] = (uint64_t)i << 8 | (uint64_t)job->me;
            job_write(job, pe, SMALL + ((uint64_t)job->me * SMALLS + i) * 8, &value[i], 8, i % 16 == 15 ? 0 : SHMEMI_SQ_DEFER);
        }
        job_check(job, job_quiet(job, pe) == 0, "small writes to PE %d", pe);
    }
    job_barrier(job);
    for (unsigned from = 0; from < (unsigned)job->n; from++) {
        const uint64_t *got = (const uint64_t *)(const void *)(job->heap + SMALL + (uint64_t)from * SMALLS * 8);

        for (unsigned i = 0; i < SMALLS; i++)
            job_check(job, got[i] == ((uint64_t)i << 8 | from), "small write %u of PE %u", i, from);
    }
    point(job, "many small writes, most of them deferred");
}

static void atomics(struct job *job)
{
    uint64_t *old = (uint64_t *)(void *)job->bounce, compare = 0, sum = 0, one = 0;

    for (int i = 0; i < ADDS; i++) {
        for (int pe = 0; pe < job->n; pe++)
            job_atomic(job, pe, COUNTER, 3, NULL, &old[pe]);
    }
    for (int pe = 0; pe < job->n; pe++) {
        job_check(job, job_quiet(job, pe) == 0, "fetch-add at PE %d", pe);
        job_check(job, old[pe] % 3 == 0 && old[pe] < 3u * ADDS * (unsigned)job->n, "old value %llu",
                  (unsigned long long)old[pe]);
    }
    job_barrier(job);
    sum = *(uint64_t *)(void *)(job->heap + COUNTER);
    job_check(job, sum == 3u * ADDS * (unsigned)job->n, "sum %llu", (unsigned long long)sum);
    point(job, "no fetch-add is lost");

    /* All try to be the first at PE 0: one is. */
    job_atomic(job, 0, SWAPPED, (uint64_t)job->me + 1, &compare, old);
    job_check(job, job_quiet(job, 0) == 0, "compare-swap at PE 0");
    job_barrier(job);
    job_read(job, 0, SWAPPED, old + 1, 8, 0);
    job_check(job, job_quiet(job, 0) == 0, "read of what was swapped in");
    one = old[1];
    job_check(job, one >= 1 && one <= (uint64_t)job->n && (old[0] == 0) == (one == (uint64_t)job->me + 1),
              "swapped %llu, old %llu", (unsigned long long)one, (unsigned long long)old[0]);
    point(job, "one compare-swap wins");
}

struct poster {
    struct job *job;
    int index;
};

static void *post_many(void *arg)
{
    struct poster *p = arg;
    struct job *job = p->job;
    uint64_t *old = (uint64_t *)(void *)(job->bounce + 4096 * (p->index + 1));

    for (int i = 0; i < ADDS * 5; i++) {
        if (job_atomic(job, (job->me + 1) % job->n, THREADED, 1, NULL, old) < 0)
            break;
    }
    return NULL;
}

static void threads(struct job *job)
{
    int to = (job->me + 1) % job->n;
    struct poster posters[THREADS];
    pthread_t ids[THREADS];

    job->module->queue_close(&job->queues[to]);
    job_connect(job, to, true);
    for (int i = 0; i < THREADS; i++) {
        posters[i] = (struct poster){ job, i };
        if (pthread_create(&ids[i], NULL, post_many, &posters[i]))
            job_die("no thread");
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(ids[i], NULL);
    job_check(job, job_quiet(job, to) == 0, "adds of %d threads", THREADS);
    job_barrier(job);
    job_check(job, *(uint64_t *)(void *)(job->heap + THREADED) == (uint64_t)ADDS * 5 * THREADS, "adds: %llu",
              (unsigned long long)*(uint64_t *)(void *)(job->heap + THREADED));
    point(job, "several threads on one shared queue");
}

static void reopen(struct job *job)
{
    for (int round = 0; round < ROUNDS; round++) {
        for (int pe = 0; pe < job->n; pe++) {
            job->module->queue_close(&job->queues[pe]);
            job_connect(job, pe, false);
            memset(job->bounce, round + 1, 4096);
            job_write(job, pe, part(job->me), job->bounce, 4096, 0);
            job_check(job, job_quiet(job, pe) == 0, "write over reopened queue to PE %d", pe);
        }
    }
    point(job, "queues can be closed and opened again");
}

static int pe_main(struct job *job)
{
    if (job_open(job))
        job_die("the NIC does not open");
    job_start(job);
    if (job->me == 0)
        printf("# %s port %d, %s, inline %u\n", job->nic->device, job->nic->port,
               job->nic->kind == SHMEMI_NIC_MLX5 ? "ibgda" : "proxy", job->nic->inline_max);
    for (int i = 0; i < job->n; i++)
        job_connect(job, (job->me + i) % job->n, false);
    point(job, "every PE connects to every PE, at once");
    write_all(job);
    read_all(job);
    write_small(job);
    atomics(job);
    threads(job);
    reopen(job);
    job_close(job);
    if (job->me == 0)
        printf("1..%d\n", points);
    fflush(stdout);
    return 0;
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 2;

    if (n < 1 || n > JOB_MAX_PES) {
        fprintf(stderr, "usage: nic_data [1 to %d]\n", JOB_MAX_PES);
        return 2;
    }
    return job_run(n, pe_main) != 0;
}
