/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gen-matrix.c - writes symmetric positive definite test matrices for cg in
 * Matrix Market format.  A plain C program: it does not use OpenSHMEM.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <getopt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct options {
    const char *kind;
    long size;
    long per_row;
    uint64_t seed;
    int general;
};

static void usage(FILE *to)
{
    fputs("usage: gen-matrix KIND SIZE [options] > FILE.mtx\n"
          "\n"
          "Writes a symmetric positive definite matrix in Matrix Market format.\n"
          "\n"
          "  poisson2d SIZE   5-point Laplace operator on a SIZE x SIZE grid, integer\n"
          "  poisson3d SIZE   7-point Laplace operator on a SIZE x SIZE x SIZE grid, integer\n"
          "  random SIZE      SIZE rows, random places and values, diagonally dominant, real\n"
          "\n"
          "  -g, --general    write both triangles (default: the lower one, `symmetric')\n"
          "  -r, --per-row N  random: about N off-diagonal entries a row (default 6)\n"
          "  -s, --seed N     random: seed (default 1); the same seed gives the same matrix\n"
          "  -h, --help       this text\n",
          to);
}

static long number(const char *text, long low, long high, const char *what)
{
    char *end;
    long v;

    errno = 0;
    v = strtol(text, &end, 10);
    if (errno || end == text || *end || v < low || v > high) {
        fprintf(stderr, "gen-matrix: %s must be a number from %ld to %ld, not '%s'\n", what, low, high, text);
        exit(2);
    }
    return v;
}

/* splitmix64: small, and the same on every machine. */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static void head(const char *field, const struct options *o, long n, long lower, const char *comment)
{
    printf("%%%%MatrixMarket matrix coordinate %s %s\n", field, o->general ? "general" : "symmetric");
    printf("%% %s\n", comment);
    printf("%ld %ld %ld\n", n, n, o->general ? 2 * lower - n : lower);
}

/* Grid operator in `dims` dimensions: 2 * dims on the diagonal, -1 for each neighbour. */
static void poisson(const struct options *o, int dims)
{
    long m = o->size, n = m * m * (dims == 3 ? m : 1);
    long stride[3] = { 1, m, m * m };
    char comment[100];

    snprintf(comment, sizeof comment, "%d-D Poisson, %ld points a side", dims, m);
    head("integer", o, n, n + dims * (n - n / m), comment);
    for (long i = 0; i < n; i++) {
        for (int d = dims - 1; d >= 0; d--)
            if (i / stride[d] % m > 0)
                printf("%ld %ld -1\n", i + 1, i + 1 - stride[d]);
        printf("%ld %ld %d\n", i + 1, i + 1, 2 * dims);
        for (int d = 0; o->general && d < dims; d++)
            if (i / stride[d] % m < m - 1)
                printf("%ld %ld -1\n", i + 1, i + 1 + stride[d]);
    }
}

struct place {
    long row, col;
    double val;
};

static int by_place(const void *pa, const void *pb)
{
    const struct place *a = pa, *b = pb;

    if (a->row != b->row)
        return a->row < b->row ? -1 : 1;
    return a->col < b->col ? -1 : a->col > b->col;
}

/* Draws the strict lower triangle, sorts it and drops places drawn twice; returns how many. */
static long draw(const struct options *o, struct place *p, long wanted)
{
    uint64_t state = o->seed;
    long drawn = 0, kept = 0;

    for (long k = 0; k < wanted; k++) {
        long row = (long)(next_random(&state) % (uint64_t)o->size);
        long col = (long)(next_random(&state) % (uint64_t)o->size);
        double val = (double)(next_random(&state) % 2000) / 1000 - 1;

        if (row == col || val == 0)
            continue;
        p[drawn++] = (struct place){ row > col ? row : col, row > col ? col : row, val };
    }
    if (drawn > 0)
        qsort(p, (size_t)drawn, sizeof *p, by_place);
    for (long k = 0; k < drawn; k++)
        if (kept == 0 || by_place(&p[kept - 1], &p[k]) != 0)
            p[kept++] = p[k];
    return kept;
}

/*
 * The diagonal is the sum of the row's absolute values plus one: positive
 * definite.  The general form holds the mirrored triangle after the lower one;
 * Matrix Market asks for no order.
 */
static int random_spd(const struct options *o)
{
    long n = o->size, wanted = n * o->per_row / 2, off;
    struct place *p = malloc((size_t)(wanted + 1) * sizeof *p);
    double *diag = malloc((size_t)n * sizeof *diag);
    char comment[100];

    if (!p || !diag) {
        fprintf(stderr, "gen-matrix: out of memory for %ld rows\n", n);
        free(p);
        free(diag);
        return 1;
    }
    off = draw(o, p, wanted);
    for (long i = 0; i < n; i++)
        diag[i] = 1;
    for (long k = 0; k < off; k++) {
        double size = p[k].val < 0 ? -p[k].val : p[k].val;

        diag[p[k].row] += size;
        diag[p[k].col] += size;
    }
    snprintf(comment, sizeof comment, "random, diagonally dominant, seed %llu", (unsigned long long)o->seed);
    head("real", o, n, n + off, comment);
    for (long i = 0; i < n; i++)
        printf("%ld %ld %.3f\n", i + 1, i + 1, diag[i]);
    for (long k = 0; k < off; k++) {
        printf("%ld %ld %.3f\n", p[k].row + 1, p[k].col + 1, p[k].val);
        if (o->general)
            printf("%ld %ld %.3f\n", p[k].col + 1, p[k].row + 1, p[k].val);
    }
    free(p);
    free(diag);
    return 0;
}

static struct options parse(int argc, char **argv)
{
    static const struct option longs[] = { { "general", no_argument, NULL, 'g' },
                                           { "per-row", required_argument, NULL, 'r' },
                                           { "seed", required_argument, NULL, 's' },
                                           { "help", no_argument, NULL, 'h' },
                                           { NULL, 0, NULL, 0 } };
    struct options o = { .per_row = 6, .seed = 1 };
    int c;

    while ((c = getopt_long(argc, argv, "gr:s:h", longs, NULL)) != -1) {
        switch (c) {
        case 'g': o.general = 1; break;
        case 'r': o.per_row = number(optarg, 0, 1000, "--per-row"); break;
        case 's': o.seed = (uint64_t)number(optarg, 0, INT32_MAX, "--seed"); break;
        case 'h': usage(stdout); exit(0);
        default: usage(stderr); exit(2);
        }
    }
    if (argc - optind != 2) {
        usage(stderr);
        exit(2);
    }
    o.kind = argv[optind];
    o.size = number(argv[optind + 1], 1, strcmp(o.kind, "poisson3d") == 0 ? 1000 : strcmp(o.kind, "poisson2d") == 0 ? 30000 : 100000000, "SIZE");
    return o;
}

int main(int argc, char **argv)
{
    struct options o = parse(argc, argv);
    int status = 0;

    if (strcmp(o.kind, "poisson2d") == 0) {
        poisson(&o, 2);
    } else if (strcmp(o.kind, "poisson3d") == 0) {
        poisson(&o, 3);
    } else if (strcmp(o.kind, "random") == 0) {
        status = random_spd(&o);
    } else {
        fprintf(stderr, "gen-matrix: unknown kind '%s' (poisson2d, poisson3d, random)\n", o.kind);
        status = 2;
    }
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "gen-matrix: cannot write: %s\n", strerror(errno));
        status = 1;
    }
    return status;
}
