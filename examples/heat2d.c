/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * heat2d.c - heat in a plate: a 5-point stencil on blocks of rows.  Each step
 * puts a PE's edge rows into its neighbours' halos together with a signal, so
 * neighbours wait for each other and nobody waits for all.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <shmem.h>

#include <getopt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct options {
    long rows, cols, steps;
    int check;
};

/*
 * One PE's block: rows 1 .. rows of each grid are its own, 0 and rows + 1 are halos
 * (or the plate's fixed edge).  Step s reads grid[s % 2] and writes the other one.
 */
struct block {
    long first, rows, cols;
    int above, below; /* neighbours, or -1 */
    long below_of_above; /* index of the lower halo row in the block above */
    double *grid[2];     /* symmetric */
};

static uint64_t from_above, from_below; /* signals: steps whose halo row has come */

static void usage(FILE *to)
{
    fputs("usage: oshrun -n N heat2d [options]\n"
          "\n"
          "Heat in a plate whose upper edge is at 100 degrees and the others at 0: Jacobi steps\n"
          "on blocks of rows, halos exchanged by put-with-signal.  PE 0 then computes the plate\n"
          "alone and compares bit by bit.\n"
          "\n"
          "  -r, --rows N     inner rows (default 512)\n"
          "  -c, --cols N     inner columns (default 512)\n"
          "  -s, --steps N    steps (default 200)\n"
          "  -n, --no-check   skip the comparison\n"
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
        { "rows", required_argument, NULL, 'r' },  { "cols", required_argument, NULL, 'c' },
        { "steps", required_argument, NULL, 's' }, { "no-check", no_argument, NULL, 'n' },
        { "help", no_argument, NULL, 'h' },        { NULL, 0, NULL, 0 } };
    int c, first_pe = shmem_my_pe() == 0;

    opterr = first_pe;
    while ((c = getopt_long(argc, argv, "r:c:s:nh", longs, NULL)) != -1) {
        switch (c) {
        case 'r': o->rows = number(optarg); break;
        case 'c': o->cols = number(optarg); break;
        case 's': o->steps = number(optarg); break;
        case 'n': o->check = 0; break;
        default:
            if (first_pe)
                usage(c == 'h' ? stdout : stderr);
            return c == 'h' ? 1 : 3;
        }
    }
    if (optind == argc && o->rows > 0 && o->cols > 0 && o->steps > 0 && o->rows <= 1 << 24 && o->cols <= 1 << 24)
        return 0;
    if (first_pe) {
        if (optind < argc)
            fprintf(stderr, "heat2d: takes no arguments, but '%s' is one\n", argv[optind]);
        else
            fputs("heat2d: --rows and --cols must be 1 to 16777216, --steps 1 or more\n", stderr);
        usage(stderr);
    }
    return 3;
}

static long first_row(long rows, int pe, int n)
{
    return rows * pe / n;
}

static void stencil_row(const double *up, const double *mid, const double *down, double *out, long cols)
{
    for (long j = 1; j <= cols; j++)
        out[j] = 0.25 * (up[j] + down[j] + mid[j - 1] + mid[j + 1]);
}

/* Rows are cols + 2 wide: the outer columns are the plate's edge and stay 0. */
static double *row(const struct block *b, int which, long i)
{
    return b->grid[which] + i * (b->cols + 2);
}

/* PEs beyond the number of rows get no block; only the first `active` take part. */
static int make_block(const struct options *o, int active, struct block *b)
{
    int me = shmem_my_pe();
    long most = (o->rows + active - 1) / active;

    memset(b, 0, sizeof *b);
    b->cols = o->cols;
    for (int k = 0; k < 2; k++)
        b->grid[k] = shmem_calloc((size_t)(most + 2) * (size_t)(o->cols + 2), sizeof(double));
    if (!b->grid[0] || !b->grid[1])
        return -1;
    if (me >= active)
        return 0;
    b->first = first_row(o->rows, me, active);
    b->rows = first_row(o->rows, me + 1, active) - b->first;
    b->above = me - 1; /* -1 for PE 0 */
    b->below = me + 1 < active ? me + 1 : -1;
    if (b->above >= 0)
        b->below_of_above = b->first - first_row(o->rows, b->above, active) + 1;
    else
        for (int k = 0; k < 2; k++)
            for (long j = 1; j <= o->cols; j++)
                row(b, k, 0)[j] = 100;
    return 0;
}

/*
 * A neighbour's halo in this grid was last read in its step s - 1, and it has
 * told us (by the signal that we waited for in step s) that this is over: the
 * two grids are all the protection that is needed.
 */
static void step(const struct block *b, long s)
{
    int from = (int)(s % 2), to = 1 - from;
    uint64_t done = (uint64_t)s + 1;
    size_t width = (size_t)b->cols + 2;

    if (s > 0 && b->above >= 0)
        shmem_signal_wait_until(&from_above, SHMEM_CMP_GE, (uint64_t)s);
    if (s > 0 && b->below >= 0)
        shmem_signal_wait_until(&from_below, SHMEM_CMP_GE, (uint64_t)s);
    for (long i = 1; i <= b->rows; i++)
        stencil_row(row(b, from, i - 1), row(b, from, i), row(b, from, i + 1), row(b, to, i), b->cols);
    if (b->above >= 0)
        shmem_double_put_signal(row(b, to, b->below_of_above), row(b, to, 1), width, &from_below, done,
                                SHMEM_SIGNAL_SET, b->above);
    if (b->below >= 0)
        shmem_double_put_signal(row(b, to, 0), row(b, to, b->rows), width, &from_above, done,
                                SHMEM_SIGNAL_SET, b->below);
}

/* The whole plate on one PE with the same arithmetic.  Number of points that differ, or -1 without memory. */
static long compare_serial(const struct options *o, int active, const struct block *b)
{
    size_t width = (size_t)o->cols + 2, size = (size_t)(o->rows + 2) * width;
    double *g[2] = { calloc(size, sizeof(double)), calloc(size, sizeof(double)) };
    double *theirs = malloc(width * sizeof *theirs);
    int last = (int)(o->steps % 2), pe = 0;
    long differ = 0;

    if (!g[0] || !g[1] || !theirs) {
        differ = -1;
        goto out;
    }
    for (size_t j = 1; j < width - 1; j++)
        g[0][j] = g[1][j] = 100;
    for (long s = 0; s < o->steps; s++)
        for (long i = 1; i <= o->rows; i++) {
            double *from = g[s % 2] + i * (long)width, *to = g[1 - s % 2] + i * (long)width;

            stencil_row(from - width, from, from + width, to, o->cols);
        }
    for (long i = 0; i < o->rows; i++) {
        while (i >= first_row(o->rows, pe + 1, active))
            pe++;
        shmem_double_get(theirs, row(b, last, i - first_row(o->rows, pe, active) + 1), width, pe);
        for (size_t j = 1; j < width - 1; j++)
            differ += memcmp(&theirs[j], &g[last][(size_t)(i + 1) * width + j], sizeof(double)) != 0;
    }
out:
    free(g[0]);
    free(g[1]);
    free(theirs);
    return differ;
}

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int run(const struct options *o, int active, const struct block *b)
{
    static int result, result_of_pe0;
    double start, time;

    shmem_barrier_all();
    start = seconds();
    for (long s = 0; shmem_my_pe() < active && s < o->steps; s++)
        step(b, s);
    shmem_barrier_all();
    time = seconds() - start;
    if (shmem_my_pe() == 0) {
        long differ = o->check ? compare_serial(o, active, b) : 0;

        printf("heat2d: %ld x %ld, %ld steps on %d PEs, %.3f s, %.0f million points/s: ", o->rows, o->cols, o->steps,
               shmem_n_pes(), time, 1e-6 * (double)o->rows * (double)o->cols * (double)o->steps / time);
        if (differ)
            printf("%s (%ld)\n", differ < 0 ? "no memory for the check" : "DIFFERENT from a serial run", differ);
        else
            printf("%s\n", o->check ? "the same as a serial run" : "not checked");
        result = differ != 0;
    }
    shmem_int_broadcast(SHMEM_TEAM_WORLD, &result_of_pe0, &result, 1, 0);
    return result_of_pe0;
}

int main(int argc, char **argv)
{
    struct options o = { .rows = 512, .cols = 512, .steps = 200, .check = 1 };
    struct block b;
    int status, active;

    shmem_init();
    status = parse(argc, argv, &o);
    if (status) {
        shmem_finalize();
        return status - 1;
    }
    active = o.rows < shmem_n_pes() ? (int)o.rows : shmem_n_pes();
    if (make_block(&o, active, &b)) {
        if (shmem_my_pe() == 0)
            fprintf(stderr, "heat2d: no room for the grid: is SHMEM_SYMMETRIC_SIZE large enough?\n");
        status = 1;
    } else {
        status = run(&o, active, &b);
    }
    shmem_free(b.grid[0]);
    shmem_free(b.grid[1]);
    shmem_finalize();
    return status;
}
