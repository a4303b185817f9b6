/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cg.c - solves A x = b by conjugate gradients for a symmetric positive
 * definite matrix from a Matrix Market file, its rows spread over the PEs.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "cg_job.h"

#include <shmem.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One PE's vectors; p, x and q are as spmat.h asks. */
struct work {
    double *b, *x, *p, *q, *r, *inv_diag;
};

static double dot(int64_t n, const double *u, const double *v)
{
    double sum = 0;

    for (int64_t i = 0; i < n; i++)
        sum += u[i] * v[i];
    cg_sum_over_pes(&sum, &sum, 1);
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
    cg_sum_over_pes(sums, sums, 2);
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
static struct cg_result solve(struct spmat *a, struct work *w, double tol, long maxit)
{
    struct cg_result res = { .outcome = CG_OUT_OF_ITERATIONS };
    double b_norm = sqrt(dot(a->rows, w->b, w->b)), norm, best, rz;

    if (b_norm == 0) {
        res.outcome = CG_CONVERGED;
        return res;
    }
    best = norm = true_residual(a, w);
    rz = restart(a, w);
    while (norm > tol * b_norm && res.iterations < maxit) {
        norm = step(a, w, &rz, &res.curvature);
        if (!(norm >= 0)) {
            res.outcome = isfinite(res.curvature) && norm == -1 ? CG_NOT_POSITIVE : CG_NOT_FINITE;
            break;
        }
        res.iterations++;
        if (norm > tol * b_norm)
            continue;
        norm = true_residual(a, w);
        if (norm > tol * b_norm && norm > best / 2) {
            res.outcome = CG_STAGNATED;
            break;
        }
        best = norm;
        rz = restart(a, w);
    }
    if (norm >= 0 && norm <= tol * b_norm)
        res.outcome = CG_CONVERGED;
    res.residual = true_residual(a, w) / b_norm;
    return res;
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
static int run(const struct cg_options *o, const struct mtx *m, const double *b, struct cg_times *t)
{
    struct spmat a;
    struct work w;
    struct cg_result res;
    double start = cg_now(), volume;
    long maxit;
    int status = STATUS_FAILED;

    if (spmat_spread(m, o->exchange, &a))
        return STATUS_FAILED;
    if (make_work(&a, o->jacobi, &w) == 0) {
        maxit = cg_most_iterations(o, a.n);
        spmat_scatter(&a, b, w.b);
        shmem_barrier_all();
        t->plan = cg_now() - start;
        start = cg_now();
        res = solve(&a, &w, o->tol, maxit);
        t->solve = cg_now() - start;
        volume = (double)a.ghosts;
        cg_sum_over_pes(&volume, &volume, 1);
        status = res.outcome == CG_CONVERGED ? STATUS_OK : STATUS_FAILED;
        if (m) {
            cg_report(o, m, &a, &res, t, volume);
            if (status == STATUS_OK)
                status = cg_finish(o, m, b, &a, w.x, maxit);
        }
        shmem_barrier_all();
    }
    free_work(&w);
    spmat_free(&a);
    return status;
}

int main(int argc, char **argv)
{
    struct cg_options o;
    struct cg_times t = { 0, 0, 0 };
    struct mtx m = { 0 };
    double *b = NULL, start;
    int status;

    shmem_init();
    start = cg_now();
    cg_defaults(&o, "cg", 0);
    status = cg_parse(argc, argv, &o);
    if (status == 0 && o.help) {
        if (shmem_my_pe() == 0)
            cg_usage(&o, stdout);
    } else if (status == 0) {
        if (shmem_my_pe() == 0)
            status = cg_read_input(&o, &m, &b) ? STATUS_INPUT : STATUS_OK;
        t.read = cg_now() - start;
        status = cg_agree(status);
        if (status == STATUS_OK)
            status = cg_agree(run(&o, shmem_my_pe() == 0 ? &m : NULL, b, &t));
    }
    mtx_free(&m);
    free(b);
    shmem_finalize();
    return status;
}
