/* SPDX-License-Identifier: BSD-3-Clause */
/* cg_job.c - options, input, checks and output of the conjugate gradient examples. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "cg_job.h"

#include <shmem.h>

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

double cg_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Sums of up to two numbers over all PEs: out[k] = sum of in[k]. */
void cg_sum_over_pes(const double *in, double *out, int count)
{
    static double send[2], recv[2];

    memcpy(send, in, (size_t)count * sizeof *in);
    shmem_double_sum_reduce(SHMEM_TEAM_WORLD, recv, send, (size_t)count);
    memcpy(out, recv, (size_t)count * sizeof *out);
}

/* --- input ------------------------------------------------------------- */

void cg_defaults(struct cg_options *o, const char *name, int on_gpu)
{
    memset(o, 0, sizeof *o);
    o->name = name;
    o->on_gpu = on_gpu;
    o->rhs = "rowsum";
    o->tol = 1e-8;
    o->blocks = 16;
    o->jacobi = 1;
}

void cg_usage(const struct cg_options *o, FILE *to)
{
    fprintf(to,
            "usage: oshrun -n N %s [options] MATRIX.mtx\n"
            "\n"
            "Solves A x = b by conjugate gradients%s.  MATRIX.mtx is a symmetric positive definite\n"
            "matrix in Matrix Market coordinate format (real, integer or pattern; general or\n"
            "symmetric).  Its rows are spread over the PEs by their number of entries.\n"
            "\n"
            "  -b, --rhs WHAT        right-hand side: rowsum (A times ones, so x is all ones;\n"
            "                        default), ones, random, or a file: a Matrix Market array\n"
            "                        of one column, or a number a line\n"
            "  -t, --tol T           stop when ||b - Ax|| <= T ||b|| (default 1e-8)\n"
            "  -m, --maxit N         at most N iterations (default 10 times the rows, at least 1000)\n"
            "%s"
            "  -p, --precond HOW     jacobi (default) or none\n"
            "  -d, --duplicates HOW  error (default) or sum, for entries given twice\n"
            "  -c, --check           PE 0 solves again alone%s and compares\n"
            "  -o, --output FILE     write x as a Matrix Market array\n"
            "  -h, --help            this text\n"
            "\n"
            "Exit status: 0 solved (and the check passed), 1 bad input, 2 bad usage, 3 not solved.\n",
            o->name, o->on_gpu ? " inside one kernel a PE" : "",
            o->on_gpu ? "  -k, --blocks N        blocks of threads a PE, all on the GPU at once (default 16)\n"
                      : "  -x, --exchange HOW    put (owners send with a signal; default) or get (users fetch)\n",
            o->on_gpu ? " on the CPU" : "");
}

/* Says what is wrong on PE 0 only; every PE parses the same words. */
static int __attribute__((format(printf, 2, 3))) wrong(const struct cg_options *o, const char *fmt, ...)
{
    va_list ap;

    if (shmem_my_pe() != 0)
        return STATUS_USAGE;
    fprintf(stderr, "%s: ", o->name);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fprintf(stderr, " (%s --help shows the options)\n", o->name);
    return STATUS_USAGE;
}

static int parse_tol(struct cg_options *o, const char *text)
{
    char *end;

    o->tol = strtod(text, &end);
    if (end == text || *end || !(o->tol > 0) || !(o->tol < 1))
        return wrong(o, "--tol must be a number between 0 and 1, not '%s'", text);
    return 0;
}

static int parse_count(const struct cg_options *o, const char *option, const char *text, long *out)
{
    char *end;

    errno = 0;
    *out = strtol(text, &end, 10);
    if (errno || end == text || *end || *out < 1)
        return wrong(o, "--%s must be a positive number, not '%s'", option, text);
    return 0;
}

/* Index of `text` among two words, or -1. */
static int choice(const char *text, const char *first, const char *second)
{
    return strcmp(text, first) == 0 ? 0 : strcmp(text, second) == 0 ? 1 : -1;
}

static int parse_choice(struct cg_options *o, int option, const char *text)
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
    return k < 0 ? wrong(o, "-%c does not know '%s'", option, text) : 0;
}

int cg_parse(int argc, char **argv, struct cg_options *o)
{
    static const struct option longs[] = {
        { "rhs", required_argument, NULL, 'b' },        { "tol", required_argument, NULL, 't' },
        { "maxit", required_argument, NULL, 'm' },      { "exchange", required_argument, NULL, 'x' },
        { "precond", required_argument, NULL, 'p' },    { "duplicates", required_argument, NULL, 'd' },
        { "check", no_argument, NULL, 'c' },            { "output", required_argument, NULL, 'o' },
        { "help", no_argument, NULL, 'h' },             { "blocks", required_argument, NULL, 'k' },
        { NULL, 0, NULL, 0 },
    };
    int c, status = 0;

    opterr = shmem_my_pe() == 0;
    while (status == 0 && (c = getopt_long(argc, argv, "b:t:m:k:x:p:d:co:h", longs, NULL)) != -1) {
        switch (c == (o->on_gpu ? 'x' : 'k') ? '?' : c) {
        case 'b': o->rhs = optarg; break;
        case 't': status = parse_tol(o, optarg); break;
        case 'm': status = parse_count(o, "maxit", optarg, &o->maxit); break;
        case 'k': status = parse_count(o, "blocks", optarg, &o->blocks); break;
        case 'x':
        case 'p':
        case 'd': status = parse_choice(o, c, optarg); break;
        case 'c': o->check = 1; break;
        case 'o': o->output = optarg; break;
        case 'h': o->help = 1; return 0;
        default: return wrong(o, "bad option");
        }
    }
    if (status)
        return status;
    if (argc - optind != 1)
        return wrong(o, "%s", argc == optind ? "which matrix?" : "one matrix at a time");
    o->path = argv[optind];
    return 0;
}

/* On PE 0: the matrix and the right-hand side, checked as far as one can before solving. */
static int check_matrix(const struct cg_options *o, const struct mtx *m)
{
    int64_t row, col;

    for (int64_t i = 0; i < m->n; i++) {
        double d = mtx_at(m, i, i);

        if (d > 0)
            continue;
        fprintf(stderr, "%s: %s: the matrix is not positive definite: entry (%lld, %lld) on its diagonal is %g\n",
                o->name, o->path, (long long)i + 1, (long long)i + 1, d);
        return -1;
    }
    if (!mtx_is_symmetric(m, &row, &col)) {
        fprintf(stderr, "%s: %s: the matrix is not symmetric: entry (%lld, %lld) is %g, entry (%lld, %lld) is %g\n",
                o->name, o->path, (long long)row + 1, (long long)col + 1, mtx_at(m, row, col), (long long)col + 1,
                (long long)row + 1, mtx_at(m, col, row));
        return -1;
    }
    return 0;
}

static double *make_rhs(const struct cg_options *o, const struct mtx *m, char *message)
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

int cg_read_input(const struct cg_options *o, struct mtx *m, double **b)
{
    char message[MTX_MESSAGE_MAX];

    if (mtx_read(o->path, o->duplicates, m, message)) {
        fprintf(stderr, "%s: %s\n", o->name, message);
        return -1;
    }
    if (check_matrix(o, m))
        return -1;
    *b = make_rhs(o, m, message);
    if (!*b) {
        fprintf(stderr, "%s: %s\n", o->name, message);
        return -1;
    }
    return 0;
}

/* --- output ------------------------------------------------------------ */

static int write_solution(const struct cg_options *o, int64_t n, const double *x)
{
    FILE *f = fopen(o->output, "w");
    int bad;

    if (!f) {
        fprintf(stderr, "%s: cannot write %s: %s\n", o->name, o->output, strerror(errno));
        return -1;
    }
    fprintf(f, "%%%%MatrixMarket matrix array real general\n%lld 1\n", (long long)n);
    for (int64_t i = 0; i < n; i++)
        fprintf(f, "%.17g\n", x[i]);
    bad = ferror(f) != 0;
    if (fclose(f) != 0 || bad) {
        fprintf(stderr, "%s: cannot write %s: %s\n", o->name, o->output, strerror(errno));
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

static int check_serial(const struct cg_options *o, const struct mtx *m, const double *b, const double *x, long maxit)
{
    double *y = malloc((size_t)m->n * 3 * sizeof *y), apart, biggest = 0;
    long it = y ? serial_solve(m, b, y, o->tol, maxit) : -1;

    if (it < 0) {
        fprintf(stderr, "%s: no memory for the check\n", o->name);
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

static void report_shape(const struct cg_options *o, const struct mtx *m, const struct spmat *a)
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

static void report_result(const struct cg_options *o, const struct cg_result *res, const struct cg_times *t, double volume)
{
    static const char *const words[] = { "converged", "NOT converged: out of iterations",
                                         "NOT converged: the residual no longer falls (tolerance too small?)",
                                         "BREAKDOWN: the matrix is not positive definite",
                                         "BREAKDOWN: numbers grew out of range" };

    printf("result     %s after %ld iterations\n", words[res->outcome], res->iterations);
    if (res->outcome == CG_NOT_POSITIVE)
        printf("           p'Ap = %g in iteration %ld\n", res->curvature, res->iterations + 1);
    printf("residual   ||b - Ax|| / ||b|| = %.3e (asked for %.1e)\n", res->residual, o->tol);
    printf("exchanged  %.0f vector entries an iteration over all PEs\n", volume);
    printf("time       read %.4f s, spread and plan %.4f s, solve %.4f s\n", t->read, t->plan, t->solve);
}

void cg_report(const struct cg_options *o, const struct mtx *m, const struct spmat *a, const struct cg_result *res,
               const struct cg_times *t, double volume)
{
    report_shape(o, m, a);
    report_result(o, res, t, volume);
}

long cg_most_iterations(const struct cg_options *o, int64_t n)
{
    return o->maxit ? o->maxit : n < 100 ? 1000 : 10 * (long)n;
}

int cg_finish(const struct cg_options *o, const struct mtx *m, const double *b, const struct spmat *a,
                  const double *x, long maxit)
{
    double *whole = malloc((size_t)m->n * sizeof *whole), off = 0;
    int status = 0;

    if (!whole) {
        fprintf(stderr, "%s: no memory for the whole solution\n", o->name);
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
    if (o->output && write_solution(o, m->n, whole))
        status = STATUS_INPUT;
    free(whole);
    return status;
}

/* PE 0's word on how it went, for all. */
int cg_agree(int status)
{
    static int mine, all;

    mine = status;
    shmem_int_broadcast(SHMEM_TEAM_WORLD, &all, &mine, 1, 0);
    shmem_barrier_all();
    return all;
}

