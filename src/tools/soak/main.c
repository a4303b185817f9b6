/* SPDX-License-Identifier: BSD-3-Clause */
/* main.c - shmem-soak: random operations of all kinds, from a seed, with everything that they write or fetch checked. */
#include "soak.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define ALL_EVERY 16   /* steps between two looks at every byte */
#define TALLY_EVERY 64
#define STOP_EVERY 8
#define MOST_OPS 40

struct soak soak;

static pthread_barrier_t start_line, finish_line;
static void (*phase)(struct soak_thread *t); /* what all threads do between the two lines; null: end */

static void *worker(void *arg)
{
    struct soak_thread *t = arg;

    for (;;) {
        pthread_barrier_wait(&start_line);
        if (!phase)
            return NULL;
        phase(t);
        pthread_barrier_wait(&finish_line);
    }
}

static void all_threads(void (*fn)(struct soak_thread *t))
{
    if (soak.opt.threads == 1) {
        fn(&soak.threads[0]);
        return;
    }
    phase = fn;
    pthread_barrier_wait(&start_line);
    fn(&soak.threads[0]);
    pthread_barrier_wait(&finish_line);
}

static void plans_step(struct soak_rng *r)
{
    if (soak_below(r, 16) == 0) {
        soak_new_constants(soak.step);
        shmem_barrier_all();
    }
    all_threads(soak_run_plan);
    shmem_barrier_all();
    soak_verify(soak.step % ALL_EVERY == 0);
    shmem_sync_all();
}

static void waits_step(int kind)
{
    all_threads(kind == SOAK_FAN ? soak_fan : soak_pairs);
    shmem_barrier_all();
    soak_pairs_apply(kind);
    shmem_sync_all();
}

/* Plans are most of it; the others share what is left. */
static int kind_of_step(struct soak_rng *r)
{
    int kinds[SOAK_N_KINDS], n = 0;

    for (int k = SOAK_OP_KINDS; k < SOAK_N_KINDS; k++)
        if (soak_wants(&soak.shape, k))
            kinds[n++] = k;
    if ((soak.opt.kinds & (SOAK_BIT(SOAK_OP_KINDS) - 1)) && (n == 0 || soak_below(r, 2)))
        return -1;
    return kinds[soak_below(r, (uint32_t)n)];
}

static void one_step(void)
{
    struct soak_rng r = soak_stream(soak.shape.seed, soak.step, -1, -1, 0);
    int kind = kind_of_step(&r);

    switch (kind) {
    case -1: plans_step(&r); break;
    case SOAK_PAIRS:
    case SOAK_FAN: waits_step(kind); break;
    case SOAK_COLL: all_threads(soak_coll); break;
    case SOAK_TEAM: soak_team_step(); break;
    case SOAK_ALLOC: soak_alloc_step(); break;
    default: all_threads(soak_renew_contexts); break;
    }
}

/* PE 0's clock says when it is over; the others are told in a step before. */
static bool over(void)
{
    long stop = soak.opt.minutes > 0 && soak_now() - soak.started > soak.opt.minutes * 60;

    if (soak.step % STOP_EVERY)
        return false;
    if (soak.me == 0)
        for (int pe = 0; pe < soak.n; pe++)
            shmem_long_p(soak.stop, stop, pe);
    shmem_barrier_all();
    stop = *soak.stop;
    shmem_sync_all();
    return stop;
}

static void run(void)
{
    while (soak.step < (uint64_t)soak.opt.to && !(soak.opt.minutes > 0 && over())) {
        one_step();
        if (soak.step % TALLY_EVERY == TALLY_EVERY - 1)
            soak_check_tallies();
        __atomic_store_n(&soak.step, soak.step + 1, __ATOMIC_RELAXED);
    }
    shmem_barrier_all();
    for (int r = 0; r < SOAK_REGIONS; r++)
        if (soak.region[r]) {
            soak_region_read(r, soak.layout[r].locks, soak.shadow[r] + soak.layout[r].locks, SOAK_LOCKS * 8);
            soak_compare(r, 0, soak.layout[r].end);
        }
    soak_check_tallies();
}

/* The seed of PE 0 is everyone's. */
static void agree_on_seed(void)
{
    static uint64_t seed;
    struct timespec t;

    if (!soak.opt.seeded) {
        clock_gettime(CLOCK_REALTIME, &t);
        soak.opt.seed = soak_mix((uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec) >> 16;
    }
    if (soak.me == 0)
        for (int pe = 0; pe < soak.n; pe++)
            shmem_uint64_p(&seed, soak.opt.seed, pe);
    shmem_barrier_all();
    soak.opt.seed = seed;
    soak.shape = (struct soak_shape){
        .seed = seed,
        .n_pes = soak.n,
        .threads = soak.opt.threads,
        .n_ctxs = SOAK_CTXS,
        .most_ops = MOST_OPS,
        .kinds = soak.opt.kinds,
        .most = (uint32_t)soak.opt.size / 16 * 16,
        .arena = (uint32_t)soak.opt.size * 4 + 4096,
    };
    soak.step = (uint64_t)soak.opt.from;
    soak.epoch = soak.step;
    soak.coll_most = soak.opt.size < 8192 ? soak.opt.size + 64 : 8192;
}

static int threads_open(void)
{
    pthread_t id;

    soak.threads = calloc((size_t)soak.opt.threads, sizeof *soak.threads);
    if (!soak.threads)
        return -1;
    for (int i = 0; i < soak.opt.threads; i++) {
        struct soak_thread *t = &soak.threads[i];

        if (soak_thread_open(t, i) || shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, soak.n, NULL, 0, &t->team))
            return -1;
    }
    pthread_barrier_init(&start_line, NULL, (unsigned)soak.opt.threads);
    pthread_barrier_init(&finish_line, NULL, (unsigned)soak.opt.threads);
    for (int i = 1; i < soak.opt.threads; i++) {
        if (pthread_create(&id, NULL, worker, &soak.threads[i]))
            return -1;
        pthread_detach(id);
    }
    all_threads(soak_contexts_open);
    shmem_barrier_all();
    return 0;
}

static void threads_close(void)
{
    all_threads(soak_contexts_close);
    phase = NULL;
    if (soak.opt.threads > 1)
        pthread_barrier_wait(&start_line);
    for (int i = soak.opt.threads - 1; i >= 0; i--) {
        shmem_team_destroy(soak.threads[i].team);
        soak_thread_close(&soak.threads[i]);
    }
    free(soak.threads);
    soak.threads = NULL;
}

/* Counts of all PEs and threads. */
static void report(void)
{
    uint64_t *sums = shmem_calloc(2 * SOAK_N_KINDS, sizeof *sums), total = 0;

    if (!sums)
        return;
    for (int i = 0; i < soak.opt.threads; i++)
        for (int k = 0; k < SOAK_N_KINDS; k++)
            sums[k] += soak.threads[i].counts[k];
    shmem_uint64_sum_reduce(SHMEM_TEAM_WORLD, sums + SOAK_N_KINDS, sums, SOAK_N_KINDS);
    for (int k = 0; k < SOAK_N_KINDS; k++)
        total += sums[SOAK_N_KINDS + k];
    if (soak.me == 0) {
        printf("shmem-soak: %" PRIu64 " steps, %" PRIu64 " operations in %.1f s, all as expected:", soak.step - (uint64_t)soak.opt.from,
               total, soak_now() - soak.started);
        for (int k = 0; k < SOAK_N_KINDS; k++)
            if (sums[SOAK_N_KINDS + k])
                printf(" %s %" PRIu64, soak_kind_names[k], sums[SOAK_N_KINDS + k]);
        printf("\n");
        fflush(stdout);
    }
    shmem_free(sums);
}

static int wanted_level(int argc, char **argv)
{
    struct soak_options o;

    soak.me = 1; /* silent: PE 0 is not known yet */
    return soak_parse(argc, argv, &o) == 0 && o.threads > 1 ? SHMEM_THREAD_MULTIPLE : SHMEM_THREAD_SINGLE;
}

int main(int argc, char **argv)
{
    int level = wanted_level(argc, argv), given, rc;

    if (shmem_init_thread(level, &given) || given < level) {
        fprintf(stderr, "shmem-soak: no thread level %d here\n", level);
        return EXIT_FAILURE;
    }
    soak.me = shmem_my_pe();
    soak.n = shmem_n_pes();
    rc = soak_parse(argc, argv, &soak.opt);
    if (rc) {
        shmem_finalize();
        return rc - 1;
    }
    soak.started = soak_now();
    agree_on_seed();
    rc = soak_memory_open();
    if (rc || threads_open()) {
        if (soak.me == 0 && rc != -ENODEV)
            fprintf(stderr, "shmem-soak: too little memory: set SHMEM_SYMMETRIC_SIZE, or lower --size or --threads\n");
        shmem_global_exit(EXIT_FAILURE);
    }
    if (soak.me == 0) {
        printf("shmem-soak: seed %" PRIu64 ", %d PEs of %d threads, %s\n", soak.opt.seed, soak.n, soak.opt.threads,
               soak.region[SOAK_DEVICE] ? "host and device memory" : "host memory");
        fflush(stdout);
    }
    soak_watch();
    run();
    soak_alloc_close();
    report();
    if (soak.opt.log)
        soak_write_log();
    soak_watch_end();
    threads_close();
    soak_memory_close();
    shmem_finalize();
    return EXIT_SUCCESS;
}
