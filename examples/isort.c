/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * isort.c - sorts integers over all PEs, in the manner of the NAS IS kernel:
 * count the keys by bucket, give each PE a range of buckets with about its
 * share of keys, send the keys there, sort them on their PE, prove the order.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <shmem.h>

#include <getopt.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BUCKETS 1024

struct options {
    long keys; /* a PE */
    long max;  /* keys are 0 .. max - 1 */
    long rounds;
    uint64_t seed;
};

/* Symmetric. */
static int64_t local_hist[BUCKETS], total_hist[BUCKETS];
static int64_t received; /* keys that have found a place in this PE's inbox */
static int64_t boundary_in[2], sums_in[3], sums[3];

static void usage(FILE *to)
{
    fputs("usage: oshrun -n N isort [options]\n"
          "\n"
          "Sorts random integers over all PEs with a bucket sort and checks the result:\n"
          "order within and between PEs, number of keys, and sum of keys.\n"
          "\n"
          "  -k, --keys N     keys a PE (default 100000)\n"
          "  -m, --max N      keys are below N (default 1048576)\n"
          "  -r, --rounds N   sort N different sets (default 3)\n"
          "  -s, --seed N     seed of the keys (default 1)\n"
          "  -h, --help       this text\n",
          to);
}

/* The number that the whole text is, or -1: no option here takes negative ones. */
static long number(const char *text)
{
    char *end;
    long value = strtol(text, &end, 10);

    return end == text || *end ? -1 : value;
}

/* 0, or the exit status plus one. */
static int parse(int argc, char **argv, struct options *o)
{
    static const struct option longs[] = {
        { "keys", required_argument, NULL, 'k' }, { "max", required_argument, NULL, 'm' },
        { "rounds", required_argument, NULL, 'r' }, { "seed", required_argument, NULL, 's' },
        { "help", no_argument, NULL, 'h' }, { NULL, 0, NULL, 0 } };
    int c, first = shmem_my_pe() == 0;

    opterr = first;
    while ((c = getopt_long(argc, argv, "k:m:r:s:h", longs, NULL)) != -1) {
        switch (c) {
        case 'k': o->keys = number(optarg); break;
        case 'm': o->max = number(optarg); break;
        case 'r': o->rounds = number(optarg); break;
        case 's': o->seed = (uint64_t)number(optarg); break;
        default:
            if (first)
                usage(c == 'h' ? stdout : stderr);
            return c == 'h' ? 1 : 3;
        }
    }
    if (optind == argc && o->keys >= 0 && o->keys <= 1 << 28 && o->max >= 1 && o->max <= INT32_MAX && o->rounds >= 1 &&
        (int64_t)o->seed >= 0)
        return 0;
    if (first) {
        if (optind < argc)
            fprintf(stderr, "isort: takes no arguments, but '%s' is one\n", argv[optind]);
        else
            fputs("isort: --keys must be 0 to 268435456, --max 1 to 2147483647, --rounds 1 or more,\n"
                  "--seed 0 or more\n",
                  stderr);
        usage(stderr);
    }
    return 3;
}

static uint64_t next_random(uint64_t *s)
{
    uint64_t z = (*s += 0x9e3779b97f4a7c15u);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Sum of four draws: heavier in the middle, so equal ranges would not be equal work. */
static void make_keys(const struct options *o, long round, int32_t *key)
{
    uint64_t s = o->seed + 1000003u * (uint64_t)round + 7919u * (uint64_t)shmem_my_pe();

    for (long i = 0; i < o->keys; i++) {
        uint64_t sum = 0;

        for (int d = 0; d < 4; d++)
            sum += next_random(&s) % (uint64_t)o->max;
        key[i] = (int32_t)(sum / 4);
    }
}

static int bucket_of(const struct options *o, int32_t key)
{
    return (int)((int64_t)key * BUCKETS / o->max);
}

/*
 * Cuts the buckets into one range a PE with about equal numbers of keys;
 * dest[b] is the PE of bucket b.  The same on every PE.
 */
static void assign_buckets(int *dest)
{
    int n = shmem_n_pes();
    int64_t total = 0, before = 0;

    for (int b = 0; b < BUCKETS; b++)
        total += total_hist[b];
    for (int b = 0; b < BUCKETS; b++) {
        dest[b] = total ? (int)((before + total_hist[b] / 2) * n / total) : 0;
        if (dest[b] >= n)
            dest[b] = n - 1;
        before += total_hist[b];
    }
}

/* Keys grouped by destination in `out`, with count[p] and first[p] of each group. */
static void group(const struct options *o, const int32_t *key, const int *dest, int32_t *out, int64_t *count,
                  int64_t *first)
{
    int n = shmem_n_pes();
    int64_t *fill = calloc((size_t)n, sizeof *fill), at = 0;

    if (!fill)
        shmem_global_exit(1);
    memset(count, 0, (size_t)n * sizeof *count);
    for (int b = 0; b < BUCKETS; b++)
        count[dest[b]] += local_hist[b];
    for (int p = 0; p < n; p++) {
        first[p] = fill[p] = at;
        at += count[p];
    }
    for (long i = 0; i < o->keys; i++)
        out[fill[dest[bucket_of(o, key[i])]]++] = key[i];
    free(fill);
}

/* An atomic add reserves room in each PE's inbox; the puts then overlap nobody's. */
static void send_keys(const int32_t *grouped, const int64_t *count, const int64_t *first, int32_t *inbox)
{
    int me = shmem_my_pe(), n = shmem_n_pes();

    for (int k = 0; k < n; k++) {
        int p = (me + k) % n; /* not everybody at PE 0 first */
        int64_t at;

        if (count[p] == 0)
            continue;
        at = shmem_int64_atomic_fetch_add(&received, count[p], p);
        shmem_int32_put_nbi(inbox + at, grouped + first[p], (size_t)count[p], p);
    }
    shmem_barrier_all(); /* completes the puts of all PEs */
}

static int by_key(const void *a, const void *b)
{
    int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

    return x < y ? -1 : x > y;
}

/* Faults seen by this PE: order inside, and against the last key of the PEs before. */
static long check_order(const int32_t *key, int64_t n)
{
    int me = shmem_my_pe();
    long faults = 0;

    for (int64_t i = 1; i < n; i++)
        faults += key[i - 1] > key[i];
    boundary_in[0] = n > 0 ? key[n - 1] : -1; /* -1: no keys here */
    boundary_in[1] = n;
    shmem_barrier_all();
    for (int p = me - 1; p >= 0 && n > 0; p--) {
        int64_t other[2];

        shmem_int64_get(other, boundary_in, 2, p);
        if (other[1] == 0)
            continue;
        faults += other[0] > key[0];
        break;
    }
    shmem_barrier_all(); /* boundary_in is free again */
    return faults;
}

/* Adds up over all PEs: faults, keys less keys made, sum of keys less sum made.  All must be 0. */
static int verify(const int32_t *sorted, int64_t n, const int32_t *made, long n_made, long round)
{
    sums_in[0] = check_order(sorted, n);
    sums_in[1] = n - n_made;
    sums_in[2] = 0;
    for (int64_t i = 0; i < n; i++)
        sums_in[2] += sorted[i];
    for (long i = 0; i < n_made; i++)
        sums_in[2] -= made[i];
    shmem_int64_sum_reduce(SHMEM_TEAM_WORLD, sums, sums_in, 3);
    if (shmem_my_pe() == 0 && (sums[0] || sums[1] || sums[2]))
        printf("round %ld: %" PRId64 " keys out of order, %" PRId64 " keys too many, sum off by %" PRId64 "\n",
               round, sums[0], sums[1], sums[2]);
    return sums[0] || sums[1] || sums[2];
}

struct buffers {
    int32_t *key, *grouped, *inbox;
    int64_t *count, *first;
    int64_t inbox_len;
    int dest[BUCKETS];
};

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Symmetric room for the fullest PE of this round. */
static void make_inbox(struct buffers *b)
{
    int n = shmem_n_pes();
    int64_t most = 1;

    for (int p = 0; p < n; p++) {
        int64_t load = 0;

        for (int k = 0; k < BUCKETS; k++)
            if (b->dest[k] == p)
                load += total_hist[k];
        most = load > most ? load : most;
    }
    if (most > b->inbox_len) {
        shmem_free(b->inbox);
        b->inbox = shmem_malloc((size_t)most * sizeof *b->inbox);
        b->inbox_len = most;
    }
    if (!b->inbox) {
        fprintf(stderr, "isort: PE %d: no room for %" PRId64 " keys: is SHMEM_SYMMETRIC_SIZE large enough?\n",
                shmem_my_pe(), most);
        shmem_global_exit(1);
    }
}

static int sort_round(const struct options *o, long round, struct buffers *b, double *time)
{
    double start;

    make_keys(o, round, b->key);
    received = 0;
    shmem_barrier_all();
    start = seconds();
    memset(local_hist, 0, sizeof local_hist);
    for (long i = 0; i < o->keys; i++)
        local_hist[bucket_of(o, b->key[i])]++;
    shmem_int64_sum_reduce(SHMEM_TEAM_WORLD, total_hist, local_hist, BUCKETS);
    assign_buckets(b->dest);
    make_inbox(b);
    group(o, b->key, b->dest, b->grouped, b->count, b->first);
    send_keys(b->grouped, b->count, b->first, b->inbox);
    if (received > 0)
        qsort(b->inbox, (size_t)received, sizeof *b->inbox, by_key);
    shmem_barrier_all();
    *time += seconds() - start;
    return verify(b->inbox, received, b->key, o->keys, round);
}

int main(int argc, char **argv)
{
    struct options o = { .keys = 100000, .max = 1 << 20, .rounds = 3, .seed = 1 };
    static struct buffers b;
    double time = 0;
    int status, n;

    shmem_init();
    status = parse(argc, argv, &o);
    if (status) {
        shmem_finalize();
        return status - 1;
    }
    n = shmem_n_pes();
    b.key = malloc((size_t)(o.keys + 1) * sizeof *b.key);
    b.grouped = malloc((size_t)(o.keys + 1) * sizeof *b.grouped);
    b.count = malloc((size_t)n * sizeof *b.count);
    b.first = malloc((size_t)n * sizeof *b.first);
    if (!b.key || !b.grouped || !b.count || !b.first) {
        fprintf(stderr, "isort: PE %d: out of memory\n", shmem_my_pe());
        shmem_global_exit(1);
    }
    for (long round = 0; round < o.rounds; round++)
        status |= sort_round(&o, round, &b, &time);
    if (shmem_my_pe() == 0)
        printf("isort: %d PEs, %ld rounds of %ld keys each: %s, %.1f million keys/s\n", n, o.rounds, o.keys,
               status ? "WRONG" : "sorted and complete",
               time > 0 ? 1e-6 * (double)o.rounds * (double)o.keys * n / time : 0.0);
    shmem_free(b.inbox);
    free(b.key);
    free(b.grouped);
    free(b.count);
    free(b.first);
    shmem_finalize();
    return status;
}
