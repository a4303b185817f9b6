/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cg.c - solves A x = b by conjugate gradients for a symmetric positive
 * definite matrix from a Matrix Market file, its rows spread over the PEs.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "spmat.h"

#include <shmem.h>

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { STATUS_OK = 0, STATUS_INPUT = 1, STATUS_USAGE = 2, STATUS_FAILED = 3 };

struct options {
    const char *path, *rhs, *output;
    double tol;
    long maxit; /* 0: by size */
    enum spmat_exchange exchange;
    enum mtx_duplicates duplicates;
    int jacobi, check, help;
};

/* How the solve ended, the same on every PE. */
enum outcome { CONVERGED, OUT_OF_ITERATIONS, STAGNATED, NOT_POSITIVE, NOT_FINITE };

struct result {
    enum outcome outcome;
    long iterations;
    double residual; /* true one, ||b - Ax|| / ||b|| */
    double curvature; /* p'Ap where it broke down */
};

struct times {
    double read, plan, solve;
};

/* One PE's vectors; p, x and q are as spmat.h asks. */
struct work {
    double *b, *x, *p, *q, *r, *inv_diag;
};

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Sums of up to two numbers over all PEs: out[k] = sum of in[k]. */
static void sum_over_pes(const double *in, double *out, int count)
{
    static double send[2], recv[2];

    memcpy(send, in, (size_t)count * sizeof *in);
    shmem_double_sum_reduce(SHMEM_TEAM_WORLD, recv, send, (size_t)count);
    memcpy(out, recv, (size_t)count * sizeof *out);
}

static double dot(int64_t n, const double *u, const double *v)
{
    double sum = 0;

    for (int64_t i = 0; i < n; i++)
        sum += u[i] * v[i];
    sum_over_pes(&sum, &sum, 1);
    return sum;
}

/* r = b - A x and its norm. */
static double true_residual(struct spmat *a, struct work *w)
{
    spmat_multiply(a, w->x, w->q);
    for (int64_t i = 0; i < a->rows; i++)
        w->r[i] = w->b[i] - w->q[i];
    return sqrt(dot(a->rows, w->r, w->r));
}

/* p = inv_diag r; the start of a run of iterations.  Returns r'p. */
static double restart(const struct spmat *a, struct work *w)
{
    for (int64_t i = 0; i < a->rows; i++)
        w->p[i] = w->inv_diag[i] * w->r[i];
    return dot(a->rows, w->r, w->p);
}

/*
 * One step; *rz is r'z before and after.  Returns the norm of the updated r, or -1 when
 * p'Ap is not positive (then nothing was changed and *curvature holds it).
 */
static double step(struct spmat *a, struct work *w, double *rz, double *curvature)
{
    double alpha, beta, sums[2] = { 0, 0 };

    spmat_multiply(a, w->p, w->q);
    *curvature = dot(a->rows, w->p, w->q);
    if (!(*curvature > 0))
        return -1;
    alpha = *rz / *curvature;
    for (int64_t i = 0; i < a->rows; i++) {
        w->x[i] += alpha * w->p[i];
        w->r[i] -= alpha * w->q[i];
        sums[0] += w->r[i] * w->inv_diag[i] * w->r[i];
        sums[1] += w->r[i] * w->r[i];
    }
    sum_over_pes(sums, sums, 2);
    beta = sums[0] / *rz;
    *rz = sums[0];
    for (int64_t i = 0; i < a->rows; i++)
        w->p[i] = w->inv_diag[i] * w->r[i] + beta * w->p[i];
    return sqrt(sums[1]);
}

/*
 * The recurrence's residual drifts from the true one, so each time that it says
 * "done" the true one decides: done, or on from there unless that no longer helps.
 */
static struct result solve(struct spmat *a, struct work *w, double tol, long maxit)
{
    struct result res = { .outcome = OUT_OF_ITERATIONS };
    double b_norm = sqrt(dot(a->rows, w->b, w->b)), norm, best, rz;

    if (b_norm == 0) {
        res.outcome = CONVERGED;
        return res;
    }
    best = norm = true_residual(a, w);
    rz = restart(a, w);
    while (norm > tol * b_norm && res.iterations < maxit) {
        norm = step(a, w, &rz, &res.curvature);
        if (!(norm >= 0)) {
            res.outcome = isfinite(res.curvature) && norm == -1 ? NOT_POSITIVE : NOT_FINITE;
            break;
        }
        res.iterations++;
        if (norm > tol * b_norm)
            continue;
        norm = true_residual(a, w);
        if (norm > tol * b_norm && norm > best / 2) {
            res.outcome = STAGNATED;
            break;
        }
        best = norm;
        rz = restart(a, w);
    }
    if (norm >= 0 && norm <= tol * b_norm)
        res.outcome = CONVERGED;
    res.residual = true_residual(a, w) / b_norm;
    return res;
}

/* --- input ------------------------------------------------------------- */

static void usage(FILE *to)
{
    fputs("usage: oshrun -n N cg [options] MATRIX.mtx\n"
          "\n"
          "Solves A x = b by conjugate gradients.  MATRIX.mtx is a symmetric positive definite\n"
          "matrix in Matrix Market coordinate format (real, integer or pattern; general or\n"
          "symmetric).  Its rows are spread over the PEs by their number of entries.\n"
          "\n"
          "  -b, --rhs WHAT        right-hand side: rowsum (A times ones, so x is all ones;\n"
          "                        default), ones, random, or a file: a Matrix Market array\n"
          "                        of one column, or a number a line\n"
          "  -t, --tol T           stop when ||b - Ax|| <= T ||b|| (default 1e-8)\n"
          "  -m, --maxit N         at most N iterations (default 10 times the rows, at least 1000)\n"
          "  -x, --exchange HOW    put (owners send with a signal; default) or get (users fetch)\n"
          "  -p, --precond HOW     jacobi (default) or none\n"
          "  -d, --duplicates HOW  error (default) or sum, for entries given twice\n"
          "  -c, --check           PE 0 solves again alone and compares\n"
          "  -o, --output FILE     write x as a Matrix Market array\n"
          "  -h, --help            this text\n"
          "\n"
          "Exit status: 0 solved (and the check passed), 1 bad input, 2 bad usage, 3 not solved.\n",
          to);
}

/* Says what is wrong on PE 0 only; every PE parses the same words. */
static int __attribute__((format(printf, 1, 2))) wrong(const char *fmt, ...)
{
    va_list ap;

    if (shmem_my_pe() != 0)
        return STATUS_USAGE;
    fputs("cg: ", stderr);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputs(" (cg --help shows the options)\n", stderr);
    return STATUS_USAGE;
}

static int parse_tol(const char *text, double *out)
{
    char *end;

    *out = strtod(text, &end);
    if (end == text || *end || !(*out > 0) || !(*out < 1))
        return wrong("--tol must be a number between 0 and 1, not '%s'", text);
    return 0;
}

static int parse_maxit(const char *text, long *out)
{
    char *end;

    errno = 0;
    *out = strtol(text, &end, 10);
    if (errno || end == text || *end || *out < 1)
        return wrong("--maxit must be a positive number, not '%s'", text);
    return 0;
}

/* Index of `text` among two words, or -1. */
static int choice(const char *text, const char *first, const char *second)
{
    return strcmp(text, first) == 0 ? 0 : strcmp(text, second) == 0 ? 1 : -1;
}

static int parse_choice(struct options *o, int option, const char *text)
{
    int k;

    if (option == 'x') {
        k = choice(text, "put", "get");
        o->exchange = k == 1 ? SPMAT_GET : SPMAT_PUT;
    } else if (option == 'p') {
        k = choice(text, "none", "jacobi");
        o->jacobi = k == 1;
    } else {
        k = choice(text, "error", "sum");
        o->duplicates = k == 1 ? MTX_DUPLICATES_SUM : MTX_DUPLICATES_ERROR;
    }
    return k < 0 ? wrong("-%c does not know '%s'", option, text) : 0;
}

static int parse_options(int argc, char **argv, struct options *o)
{
    static const struct option longs[] = {
        { "rhs", required_argument, NULL, 'b' },        { "tol", required_argument, NULL, 't' },
        { "maxit", required_argument, NULL, 'm' },      { "exchange", required_argument, NULL, 'x' },
        { "precond", required_argument, NULL, 'p' },    { "duplicates", required_argument, NULL, 'd' },
        { "check", no_argument, NULL, 'c' },            { "output", required_argument, NULL, 'o' },
        { "help", no_argument, NULL, 'h' },             { NULL, 0, NULL, 0 },
    };
    int c, status = 0;

    opterr = shmem_my_pe() == 0;
    while (status == 0 && (c = getopt_long(argc, argv, "b:t:m:x:p:d:co:h", longs, NULL)) != -1) {
        switch (c) {
        case 'b': o->rhs = optarg; break;
        case 't': status = parse_tol(optarg, &o->tol); break;
        case 'm': status = parse_maxit(optarg, &o->maxit); break;
        case 'x':
        case 'p':
        case 'd': status = parse_choice(o, c, optarg); break;
        case 'c': o->check = 1; break;
        case 'o': o->output = optarg; break;
        case 'h': o->help = 1; return 0;
        default: return wrong("bad option");
        }
    }
    if (status)
        return status;
    if (argc - optind != 1)
        return wrong(argc == optind ? "which matrix?" : "one matrix at a time");
    o->path = argv[optind];
    return 0;
}

/* On PE 0: the matrix and the right-hand side, checked as far as one can before solving. */
static int check_matrix(const struct options *o, const struct mtx *m)
{
    int64_t row, col;

    for (int64_t i = 0; i < m->n; i++) {
        double d = mtx_at(m, i, i);

        if (d > 0)
            continue;
        fprintf(stderr, "cg: %s: the matrix is not positive definite: entry (%lld, %lld) on its diagonal is %g\n",
                o->path, (long long)i + 1, (long long)i + 1, d);
        return -1;
    }
    if (!mtx_is_symmetric(m, &row, &col)) {
        fprintf(stderr, "cg: %s: the matrix is not symmetric: entry (%lld, %lld) is %g, entry (%lld, %lld) is %g\n",
                o->path, (long long)row + 1, (long long)col + 1, mtx_at(m, row, col), (long long)col + 1,
                (long long)row + 1, mtx_at(m, col, row));
        return -1;
    }
    return 0;
}

static double *make_rhs(const struct options *o, const struct mtx *m, char *message)
{
    uint64_t state = 12345;
    double *b = NULL;
    int rowsum = strcmp(o->rhs, "rowsum") == 0, ones = strcmp(o->rhs, "ones") == 0;

    if (!rowsum && !ones && strcmp(o->rhs, "random") != 0) {
        mtx_read_vector(o->rhs, m->n, &b, message);
        return b;
    }
    b = malloc((size_t)m->n * sizeof *b);
    if (!b) {
        snprintf(message, MTX_MESSAGE_MAX, "out of memory for the right-hand side");
        return NULL;
    }
    for (int64_t i = 0; i < m->n; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        b[i] = ones ? 1 : (double)(state >> 11) / 9007199254740992.0 - 0.5;
        for (int64_t k = m->row_ptr[i]; rowsum && k < m->row_ptr[i + 1]; k++)
            b[i] = (k == m->row_ptr[i] ? 0 : b[i]) + m->val[k];
    }
    return b;
}

static int read_input(const struct options *o, struct mtx *m, double **b)
{
    char message[MTX_MESSAGE_MAX];

    if (mtx_read(o->path, o->duplicates, m, message)) {
        fprintf(stderr, "cg: %s\n", message);
        return -1;
    }
    if (check_matrix(o, m))
        return -1;
    *b = make_rhs(o, m, message);
    if (!*b) {
        fprintf(stderr, "cg: %s\n", message);
        return -1;
    }
    return 0;
}

/* --- output ------------------------------------------------------------ */

static int write_solution(const char *path, int64_t n, const double *x)
{
    FILE *f = fopen(path, "w");
    int bad;

    if (!f) {
        fprintf(stderr, "cg: cannot write %s: %s\n", path, strerror(errno));
        return -1;
    }
    fprintf(f, "%%%%MatrixMarket matrix array real general\n%lld 1\n", (long long)n);
    for (int64_t i = 0; i < n; i++)
        fprintf(f, "%.17g\n", x[i]);
    bad = ferror(f) != 0;
    if (fclose(f) != 0 || bad) {
        fprintf(stderr, "cg: cannot write %s: %s\n", path, strerror(errno));
        return -1;
    }
    return 0;
}

/* Conjugate gradients once more, on one PE, with the matrix as it was read. */
static long serial_solve(const struct mtx *m, const double *b, double *x, double tol, long maxit)
{
    int64_t n = m->n;
    double *p = calloc((size_t)n * 3, sizeof *p), *q = p + n, *r = q + n, rz = 0, stop = 0;
    long it = 0;

    if (!p)
        return -1;
    for (int64_t i = 0; i < n; i++) {
        x[i] = 0;
        r[i] = p[i] = b[i];
        rz += b[i] * b[i];
    }
    stop = tol * tol * rz;
    while (rz > stop && it < maxit) {
        double curvature = 0, old = rz;

        mtx_multiply(m, p, q);
        for (int64_t i = 0; i < n; i++)
            curvature += p[i] * q[i];
        rz = 0;
        for (int64_t i = 0; i < n; i++) {
            x[i] += old / curvature * p[i];
            r[i] -= old / curvature * q[i];
            rz += r[i] * r[i];
        }
        for (int64_t i = 0; i < n; i++)
            p[i] = r[i] + rz / old * p[i];
        it++;
    }
    free(p);
    return it;
}

/* ||A (x - y)|| / ||b||: two answers within `tol` are at most 2 tol apart by it. */
static double distance(const struct mtx *m, const double *b, const double *x, const double *y, double *diff)
{
    double *d = diff, *ad = diff + m->n, num = 0, den = 0;

    for (int64_t i = 0; i < m->n; i++)
        d[i] = x[i] - y[i];
    mtx_multiply(m, d, ad);
    for (int64_t i = 0; i < m->n; i++) {
        num += ad[i] * ad[i];
        den += b[i] * b[i];
    }
    return den > 0 ? sqrt(num / den) : sqrt(num);
}

static int check_serial(const struct options *o, const struct mtx *m, const double *b, const double *x, long maxit)
{
    double *y = malloc((size_t)m->n * 3 * sizeof *y), apart, biggest = 0;
    long it = y ? serial_solve(m, b, y, o->tol, maxit) : -1;

    if (it < 0) {
        fprintf(stderr, "cg: no memory for the check\n");
        free(y);
        return -1;
    }
    for (int64_t i = 0; i < m->n; i++)
        biggest = fmax(biggest, fabs(x[i] - y[i]));
    apart = distance(m, b, x, y, y + m->n);
    printf("check      serial solve: %ld iterations, largest difference %.1e, ||A(x - y)|| / ||b|| = %.1e: %s\n", it,
           biggest, apart, apart <= 4 * o->tol ? "the same" : "DIFFERENT");
    free(y);
    return apart <= 4 * o->tol ? 0 : -1;
}

static void report_shape(const struct options *o, const struct mtx *m, const struct spmat *a)
{
    int n_pes = shmem_n_pes();
    int64_t least = m->n, most = 0;

    for (int p = 0; p < n_pes; p++) {
        int64_t rows = a->start[p + 1] - a->start[p];

        least = rows < least ? rows : least;
        most = rows > most ? rows : most;
    }
    printf("matrix     %s: %lld rows, %lld entries (%s file)\n", o->path, (long long)m->n, (long long)m->nnz,
           m->from_symmetric_file ? "symmetric" : "general");
    printf("spread     %d PE%s, %lld to %lld rows each, vector entries exchanged by %s\n", n_pes,
           n_pes == 1 ? "" : "s", (long long)least, (long long)most, o->exchange == SPMAT_PUT ? "put" : "get");
}

static void report_result(const struct options *o, const struct result *res, const struct times *t, double volume)
{
    static const char *const words[] = { "converged", "NOT converged: out of iterations",
                                         "NOT converged: the residual no longer falls (tolerance too small?)",
                                         "BREAKDOWN: the matrix is not positive definite",
                                         "BREAKDOWN: numbers grew out of range" };

    printf("result     %s after %ld iterations\n", words[res->outcome], res->iterations);
    if (res->outcome == NOT_POSITIVE)
        printf("           p'Ap = %g in iteration %ld\n", res->curvature, res->iterations + 1);
    printf("residual   ||b - Ax|| / ||b|| = %.3e (asked for %.1e)\n", res->residual, o->tol);
    printf("exchanged  %.0f vector entries an iteration over all PEs\n", volume);
    printf("time       read %.4f s, spread and plan %.4f s, solve %.4f s\n", t->read, t->plan, t->solve);
}

/* PE 0, after the solve: the whole x for the known answer, the check, the file. */
static int finish(const struct options *o, const struct mtx *m, const double *b, const struct spmat *a,
                  const double *x, long maxit)
{
    double *whole = malloc((size_t)m->n * sizeof *whole), off = 0;
    int status = 0;

    if (!whole) {
        fprintf(stderr, "cg: no memory for the whole solution\n");
        return STATUS_FAILED;
    }
    spmat_gather(a, x, whole);
    if (strcmp(o->rhs, "rowsum") == 0) {
        for (int64_t i = 0; i < m->n; i++)
            off = fmax(off, fabs(whole[i] - 1));
        printf("answer     x is all ones, largest error %.1e\n", off);
    }
    if (o->check && check_serial(o, m, b, whole, maxit))
        status = STATUS_FAILED;
    if (o->output && write_solution(o->output, m->n, whole))
        status = STATUS_INPUT;
    free(whole);
    return status;
}

/* --- main -------------------------------------------------------------- */

static void free_work(struct work *w)
{
    shmem_free(w->b);
    shmem_free(w->x);
    shmem_free(w->p);
    free(w->q);
    free(w->r);
    free(w->inv_diag);
}

static int make_work(const struct spmat *a, int jacobi, struct work *w)
{
    size_t bytes = ((size_t)a->rows + 1) * sizeof(double);

    memset(w, 0, sizeof *w);
    w->q = malloc(bytes);
    w->r = malloc(bytes);
    w->inv_diag = malloc(bytes);
    if (!w->q || !w->r || !w->inv_diag) {
        fprintf(stderr, "cg: PE %d: out of memory\n", shmem_my_pe());
        shmem_global_exit(STATUS_FAILED);
    }
    w->b = spmat_vector(a);
    w->x = w->b ? spmat_vector(a) : NULL;
    w->p = w->x ? spmat_vector(a) : NULL;
    if (!w->p)
        return -1;
    for (int64_t i = 0; i < a->rows; i++) {
        w->inv_diag[i] = 1;
        for (int64_t k = a->row_ptr[i]; jacobi && k < a->row_ptr[i + 1]; k++)
            if (a->col[k] == i)
                w->inv_diag[i] = 1 / a->val[k];
    }
    return 0;
}

/* Collective; the whole matrix and right-hand side are PE 0's. */
static int run(const struct options *o, const struct mtx *m, const double *b, struct times *t)
{
    struct spmat a;
    struct work w;
    struct result res;
    double start = now(), volume;
    long maxit = o->maxit;
    int status = STATUS_FAILED;

    if (spmat_spread(m, o->exchange, &a))
        return STATUS_FAILED;
    if (make_work(&a, o->jacobi, &w) == 0) {
        if (maxit == 0)
            maxit = a.n < 100 ? 1000 : 10 * (long)a.n;
        spmat_scatter(&a, b, w.b);
        shmem_barrier_all();
        t->plan = now() - start;
        start = now();
        res = solve(&a, &w, o->tol, maxit);
        t->solve = now() - start;
        volume = (double)a.ghosts;
        sum_over_pes(&volume, &volume, 1);
        status = res.outcome == CONVERGED ? STATUS_OK : STATUS_FAILED;
        if (m) {
            report_shape(o, m, &a);
            report_result(o, &res, t, volume);
            if (status == STATUS_OK)
                status = finish(o, m, b, &a, w.x, maxit);
        }
        shmem_barrier_all();
    }
    free_work(&w);
    spmat_free(&a);
    return status;
}

/* PE 0's word on how it went, for all. */
static int agree(int status)
{
    static int mine, all;

    mine = status;
    shmem_int_broadcast(SHMEM_TEAM_WORLD, &all, &mine, 1, 0);
    shmem_barrier_all();
    return all;
}

int main(int argc, char **argv)
{
    struct options o = { .rhs = "rowsum", .tol = 1e-8, .jacobi = 1 };
    struct times t = { 0, 0, 0 };
    struct mtx m = { 0 };
    double *b = NULL, start;
    int status;

    shmem_init();
    start = now();
    status = parse_options(argc, argv, &o);
    if (status == 0 && o.help) {
        if (shmem_my_pe() == 0)
            usage(stdout);
    } else if (status == 0) {
        if (shmem_my_pe() == 0)
            status = read_input(&o, &m, &b) ? STATUS_INPUT : STATUS_OK;
        t.read = now() - start;
        status = agree(status);
        if (status == STATUS_OK)
            status = agree(run(&o, shmem_my_pe() == 0 ? &m : NULL, b, &t));
    }
    mtx_free(&m);
    free(b);
    shmem_finalize();
    return status;
}
