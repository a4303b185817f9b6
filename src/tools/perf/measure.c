/* SPDX-License-Identifier: BSD-3-Clause */
/* measure.c - the clock, and the ways in which shmem-perf measures an operation. */
#include "perf.h"

#include <string.h>
#include <time.h>

#define BATCH_NS 20000.0
#define LEAST_SAMPLES 10
#define PLAN_ROUNDS 8 /* the least of these counts, as a round may be cut by the scheduler */
#define PLAN_MOST 256 /* calls in one round */
#define BATCH_MOST (1L << 24)

double perf_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

double perf_clock_overhead(void)
{
    double best = 1e9;

    for (int round = 0; round < 50; round++) {
        double start = perf_now(), end = start;

        for (int i = 0; i < 1000; i++)
            end = perf_now();
        if ((end - start) / 1000 < best)
            best = (end - start) / 1000;
    }
    return best;
}

size_t perf_next_size(size_t bytes)
{
    return bytes == 8 ? 64 : bytes * 4;
}

/* Everybody leaves with PE 0's value. */
long perf_agree(long value_of_pe0)
{
    shmem_barrier_all();
    if (perf.me == 0) {
        for (int pe = 0; pe < perf.n_pes; pe++)
            shmem_long_p(&perf.ctl->agreed, value_of_pe0, pe);
        shmem_quiet();
    }
    shmem_barrier_all();
    return *(volatile long *)&perf.ctl->agreed;
}

static long clamp(double v, long low, long high)
{
    return v < (double)low ? low : v > (double)high ? high : (long)v;
}

/* Least time of three, as one of them may be cut by the scheduler. */
static double least_of_three(size_t bytes, perf_fn *fn, long n)
{
    double best = 1e18;

    for (int i = 0; i < 3; i++) {
        double t = perf_now();

        fn(bytes, n);
        t = perf_now() - t;
        if (t < best)
            best = t;
    }
    return best;
}

/* Calls for a batch of about BATCH_NS, found by doubling (which also warms up). */
static long batch_alone(size_t bytes, perf_fn *fn)
{
    for (long n = 1;; n *= 2) {
        double t = least_of_three(bytes, fn, n);

        if (t >= BATCH_NS / 4 || n >= BATCH_MOST)
            return clamp((double)n * BATCH_NS / t, 1, BATCH_MOST);
    }
}

/* Batches by this PE alone, until the samples or the time run out. */
static long sample_alone(size_t bytes, perf_fn *fn, long batch, double seconds)
{
    double start = perf_now(), t = start;
    long n = 0;

    while (n < perf.opt.iters && (n < LEAST_SAMPLES || t - start < seconds * 1e9)) {
        double end;

        fn(bytes, batch);
        end = perf_now();
        perf.samples[n++] = (end - t) / (double)batch;
        t = end;
    }
    return n;
}

static double measure_alone(const char *test, size_t bytes, perf_fn *fn, double floor, enum perf_rate rate,
                            double seconds)
{
    struct perf_row row = { .test = test, .bytes = bytes, .how = PERF_BATCH, .floor = floor, .rate = rate };

    row.batch = batch_alone(bytes, fn);
    perf_row_stats(&row, perf.samples, sample_alone(bytes, fn, row.batch, seconds));
    perf_report_row(&row);
    return row.p50;
}

double perf_floor(const char *test, size_t bytes, perf_fn *fn)
{
    double ns = 0;

    shmem_barrier_all();
    if (perf.me == 0)
        ns = measure_alone(test, bytes, fn, 0, PERF_MBYTES, perf.opt.seconds / 2);
    shmem_barrier_all();
    return ns;
}

void perf_one_sided(const char *test, size_t bytes, perf_fn *fn, double floor, enum perf_rate rate)
{
    shmem_barrier_all();
    if (perf.me == 0)
        measure_alone(test, bytes, fn, floor, rate, perf.opt.seconds);
    shmem_barrier_all();
}

/*
 * Operations that several PEs must do in step: PE 0 takes the time of a few and
 * says how long a batch and how many samples there will be.
 */
static void plan(size_t bytes, perf_fn *fn, bool takes_part, long *batch_out, long *samples_out)
{
    double each = 1e18, spent = 0, enough = perf.opt.seconds * 1e9;
    long warm = 4;

    for (int round = 0; round < PLAN_ROUNDS; round++) {
        double t;

        shmem_barrier_all();
        t = perf_now();
        if (takes_part)
            fn(bytes, warm);
        t = perf_now() - t;
        if (t / (double)warm < each)
            each = t / (double)warm;
        spent += t;
        if (perf_agree(spent > (round < 2 ? 2 * enough : enough / 4)))
            break;
        if (warm < PLAN_MOST)
            warm *= 4;
    }
    if (each < 1)
        each = 1;
    if (batch_out) {
        *batch_out = perf_agree(clamp(BATCH_NS / each, 1, BATCH_MOST));
        each *= (double)*batch_out;
    }
    *samples_out = perf_agree(clamp(perf.opt.seconds * 1e9 / each, LEAST_SAMPLES, perf.opt.iters));
}

static void in_step(const char *test, size_t bytes, perf_fn *fn, bool takes_part, double divisor, double floor)
{
    struct perf_row row = { .test = test, .bytes = bytes, .how = PERF_BATCH, .floor = floor };
    long n;

    plan(bytes, fn, takes_part, &row.batch, &n);
    if (takes_part) {
        double t = perf_now();

        for (long i = 0; i < n; i++) {
            double end;

            fn(bytes, row.batch);
            end = perf_now();
            perf.samples[i] = (end - t) / ((double)row.batch * divisor);
            t = end;
        }
    }
    shmem_barrier_all();
    if (perf.me == 0) {
        perf_row_stats(&row, perf.samples, n);
        perf_report_row(&row);
    }
}

void perf_pingpong(const char *test, size_t bytes, perf_fn *fn, double floor)
{
    if (perf.n_pes > 1)
        in_step(test, bytes, fn, perf.me < 2, 2, floor);
}

void perf_all_batch(const char *test, size_t bytes, perf_fn *fn, double floor)
{
    in_step(test, bytes, fn, true, 1, floor);
}

void perf_contended(const char *test, size_t bytes, perf_fn *fn)
{
    struct perf_row row = { .test = test, .bytes = bytes, .how = PERF_BATCH, .rate = PERF_MOPS };
    long n;

    plan(bytes, fn, true, &row.batch, &n);
    /* A sample is a batch by every PE between two barriers: long enough to hide them. */
    row.batch *= 50;
    n = n / 50 < LEAST_SAMPLES ? LEAST_SAMPLES : n / 50;
    for (long i = 0; i < n; i++) {
        double t;

        shmem_barrier_all();
        t = perf_now();
        fn(bytes, row.batch);
        shmem_barrier_all();
        perf.samples[i] = (perf_now() - t) / ((double)row.batch * perf.n_pes);
    }
    if (perf.me == 0) {
        perf_row_stats(&row, perf.samples, n);
        perf_report_row(&row);
    }
}

void perf_all_calls(const char *test, perf_fn *fn, double floor)
{
    struct perf_row row = { .test = test, .how = PERF_CALL, .batch = 1, .floor = floor };
    double t;
    long n;

    plan(0, fn, true, NULL, &n);
    t = perf_now();
    for (long i = 0; i < n; i++) {
        double end;

        fn(0, 1);
        end = perf_now();
        perf.samples[i] = end - t;
        t = end;
    }
    shmem_barrier_all();
    if (perf.me == 0) {
        perf_row_stats(&row, perf.samples, n);
        perf_report_row(&row);
    }
}

/* On PE 0: each sample becomes the largest of all PEs' samples. */
static void take_slowest(long n)
{
    double theirs[512];

    for (int pe = 1; pe < perf.n_pes; pe++) {
        for (long i = 0; i < n; i += 512) {
            long len = n - i < 512 ? n - i : 512;

            shmem_getmem(theirs, perf.samples + i, (size_t)len * sizeof theirs[0], pe);
            for (long k = 0; k < len; k++)
                if (theirs[k] > perf.samples[i + k])
                    perf.samples[i + k] = theirs[k];
        }
    }
}

/* The collective behind a barrier, to be timed together when the number of samples is chosen. */
static perf_fn *behind_barrier;
static void barrier_and_call(size_t bytes, long n)
{
    for (long i = 0; i < n; i++) {
        shmem_barrier_all();
        behind_barrier(bytes, 1);
    }
}

void perf_collective(const char *test, size_t bytes, perf_fn *fn, double floor)
{
    struct perf_row row = { .test = test, .bytes = bytes, .how = PERF_CALL, .batch = 1, .floor = floor };
    long n;

    behind_barrier = fn;
    plan(bytes, barrier_and_call, true, NULL, &n);
    for (long i = 0; i < n; i++) {
        double t;

        shmem_barrier_all();
        t = perf_now();
        fn(bytes, 1);
        perf.samples[i] = perf_now() - t;
    }
    shmem_barrier_all();
    if (perf.me == 0) {
        take_slowest(n);
        perf_row_stats(&row, perf.samples, n);
        perf_report_row(&row);
    }
    shmem_barrier_all();
}
