/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cg.cu - the solver of cg.c with its matrix and vectors on the GPU, the whole solve inside one kernel a PE: the product's
 * vector entries are put with signals from the kernel, dot products are reductions from the kernel.
 */
#include "cg_job.h"
#include "gpu.h"

#include <cooperative_groups.h>

#include <math.h>
#include <string.h>

#define THREADS 256
#define WARPS (THREADS / 32)

/* Pointers are to device memory. */
struct solver {
    int me, n_pes;
    int64_t rows;
    int64_t *row_ptr, *col; /* as in spmat.h: col < rows is our own, rows + g ghost g */
    double *val, *inv_diag;

    /* the plan, arrays of n_pes: entries that PE k wants are give[give_from[k] ..], and go to its vector's dest_at[k] */
    int64_t *give_from, *dest_at, *want;
    int64_t *give;
    double *pack;
    uint64_t *arrived; /* symmetric, a word a PE */

    double *b, *x, *p; /* symmetric: own entries, then ghosts */
    double *q, *r;
    double *partial;           /* 2 for each block */
    double *sum_in, *sum_out;  /* symmetric, 2 */
    double tol;
    long maxit;
    struct cg_result *result;
};

/* What every thread of the kernel knows, with the same values everywhere. */
struct progress {
    uint64_t epoch; /* exchanges so far */
    double rz, curvature;
};

__device__ static int64_t first_of_mine(void)
{
    return (int64_t)blockIdx.x * THREADS + threadIdx.x;
}

__device__ static int64_t stride(void)
{
    return (int64_t)gridDim.x * THREADS;
}

__device__ static void grid_sync(void)
{
    cooperative_groups::this_grid().sync();
}

/* Sums of u and v over the block, valid in thread 0. */
__device__ static void block_sum(double *u, double *v)
{
    __shared__ double warp_u[WARPS], warp_v[WARPS];

    for (int d = 16; d > 0; d /= 2) {
        *u += __shfl_down_sync(0xffffffffu, *u, d);
        *v += __shfl_down_sync(0xffffffffu, *v, d);
    }
    if (threadIdx.x % 32 == 0) {
        warp_u[threadIdx.x / 32] = *u;
        warp_v[threadIdx.x / 32] = *v;
    }
    __syncthreads();
    if (threadIdx.x == 0)
        for (int w = 1; w < WARPS; w++) {
            *u += warp_u[w];
            *v += warp_v[w];
        }
    __syncthreads();
}

/*
 * Sums of u and v over all threads of all PEs, for all of them.  Every PE gets the same bits: each decides by them when
 * to stop.
 */
__device__ static void sum_over_all(const struct solver *s, double *u, double *v)
{
    block_sum(u, v);
    if (threadIdx.x == 0) {
        s->partial[2 * blockIdx.x] = *u;
        s->partial[2 * blockIdx.x + 1] = *v;
    }
    grid_sync();
    if (blockIdx.x == 0) {
        if (threadIdx.x < 2) {
            double sum = 0;

            for (unsigned k = 0; k < gridDim.x; k++)
                sum += s->partial[2 * k + threadIdx.x];
            s->sum_in[threadIdx.x] = sum;
        }
        shmemx_double_sum_reduce_block(SHMEM_TEAM_WORLD, s->sum_out, s->sum_in, 2);
    }
    grid_sync();
    *u = ((volatile double *)s->sum_out)[0];
    *v = ((volatile double *)s->sum_out)[1];
}

__device__ static double dot(const struct solver *s, const double *u, const double *v)
{
    double sum = 0, none = 0;

    for (int64_t i = first_of_mine(); i < s->rows; i += stride())
        sum += u[i] * v[i];
    sum_over_all(s, &sum, &none);
    return sum;
}

/*
 * Sends what others want of x, each peer's share by one block, then waits for what we want.  A peer's ghosts may be
 * overwritten: between two products there is a sum over all, and this one's reads were done before it.
 */
__device__ static void exchange(const struct solver *s, double *x, struct progress *at)
{
    at->epoch++;
    grid_sync(); /* x is complete */
    for (int64_t k = first_of_mine(); k < s->give_from[s->n_pes]; k += stride())
        s->pack[k] = x[s->give[k]];
    grid_sync();
    for (int p = (int)blockIdx.x; p < s->n_pes; p += (int)gridDim.x) {
        int64_t from = s->give_from[p], count = s->give_from[p + 1] - from;

        if (count > 0)
            shmemx_double_put_signal_block(x + s->dest_at[p], s->pack + from, (size_t)count, s->arrived + s->me, at->epoch,
                                           SHMEM_SIGNAL_SET, p);
    }
    if (threadIdx.x == 0)
        for (int p = 0; p < s->n_pes; p++)
            if (s->want[p] > 0)
                shmem_signal_wait_until(s->arrived + p, SHMEM_CMP_GE, at->epoch);
    __syncthreads();
}

/* y = A x */
__device__ static void multiply(const struct solver *s, double *x, double *y, struct progress *at)
{
    exchange(s, x, at);
    for (int64_t i = first_of_mine(); i < s->rows; i += stride()) {
        double sum = 0;

        for (int64_t k = s->row_ptr[i]; k < s->row_ptr[i + 1]; k++)
            sum += s->val[k] * x[s->col[k]];
        y[i] = sum;
    }
}

/* r = b - A x and its norm. */
__device__ static double true_residual(const struct solver *s, struct progress *at)
{
    multiply(s, s->x, s->q, at);
    for (int64_t i = first_of_mine(); i < s->rows; i += stride())
        s->r[i] = s->b[i] - s->q[i];
    return sqrt(dot(s, s->r, s->r));
}

__device__ static void restart(const struct solver *s, struct progress *at)
{
    for (int64_t i = first_of_mine(); i < s->rows; i += stride())
        s->p[i] = s->inv_diag[i] * s->r[i];
    at->rz = dot(s, s->r, s->p);
}

/* One step: the norm of the updated r, or -1 when p'Ap is not positive (then nothing was changed). */
__device__ static double step(const struct solver *s, struct progress *at)
{
    double alpha, beta, rz = 0, rr = 0;

    multiply(s, s->p, s->q, at);
    at->curvature = dot(s, s->p, s->q);
    if (!(at->curvature > 0))
        return -1;
    alpha = at->rz / at->curvature;
    for (int64_t i = first_of_mine(); i < s->rows; i += stride()) {
        s->x[i] += alpha * s->p[i];
        s->r[i] -= alpha * s->q[i];
        rz += s->r[i] * s->inv_diag[i] * s->r[i];
        rr += s->r[i] * s->r[i];
    }
    sum_over_all(s, &rz, &rr);
    beta = rz / at->rz;
    at->rz = rz;
    for (int64_t i = first_of_mine(); i < s->rows; i += stride())
        s->p[i] = s->inv_diag[i] * s->r[i] + beta * s->p[i];
    return sqrt(rr);
}

/* cg.c's solve(): when the recurrence's residual says "done", the true one decides. */
__device__ static struct cg_result iterate(const struct solver *s, double b_norm)
{
    struct cg_result res = { CG_OUT_OF_ITERATIONS, 0, 0, 0 };
    struct progress at = { 0, 0, 0 };
    double norm = true_residual(s, &at), best = norm;

    restart(s, &at);
    while (norm > s->tol * b_norm && res.iterations < s->maxit) {
        norm = step(s, &at);
        if (!(norm >= 0)) {
            res.outcome = isfinite(at.curvature) && norm == -1 ? CG_NOT_POSITIVE : CG_NOT_FINITE;
            break;
        }
        res.iterations++;
        if (norm > s->tol * b_norm)
            continue;
        norm = true_residual(s, &at);
        if (norm > s->tol * b_norm && norm > best / 2) {
            res.outcome = CG_STAGNATED;
            break;
        }
        best = norm;
        restart(s, &at);
    }
    if (norm >= 0 && norm <= s->tol * b_norm)
        res.outcome = CG_CONVERGED;
    res.curvature = at.curvature;
    res.residual = true_residual(s, &at) / b_norm;
    return res;
}

__global__ void __launch_bounds__(THREADS) solve(struct solver s)
{
    double b_norm = sqrt(dot(&s, s.b, s.b));
    struct cg_result res = { CG_CONVERGED, 0, 0, 0 };

    if (b_norm != 0)
        res = iterate(&s, b_norm);
    if (blockIdx.x == 0 && threadIdx.x == 0)
        *s.result = res;
}

/* --- the host's part ---------------------------------------------------- */

static int64_t *plan_copy(const int64_t *from, int n)
{
    return (int64_t *)gpu_copy(from, (size_t)n * sizeof *from);
}

/* Copies the matrix and the plan of its product to the GPU. */
static void make_matrix(const struct spmat *a, struct solver *s)
{
    int n = s->n_pes;
    size_t nnz = (size_t)a->row_ptr[a->rows];
    int64_t *host = (int64_t *)calloc((size_t)n * 2 + 1, sizeof *host), *dest = host + n + 1;

    if (!host)
        shmem_global_exit(STATUS_FAILED);
    for (int p = 0; p < n; p++) {
        host[p + 1] = host[p] + a->give_count[p];
        dest[p] = a->start[p + 1] - a->start[p] + a->give_at[p];
    }
    s->rows = a->rows;
    s->row_ptr = (int64_t *)gpu_copy(a->row_ptr, ((size_t)a->rows + 1) * sizeof *a->row_ptr);
    s->col = (int64_t *)gpu_copy(a->col, nnz * sizeof *a->col);
    s->val = (double *)gpu_copy(a->val, nnz * sizeof *a->val);
    s->give_from = plan_copy(host, n + 1);
    s->dest_at = plan_copy(dest, n);
    s->want = plan_copy(a->want_count, n);
    s->give = plan_copy(a->give, (int)host[n]);
    GPU(cudaMalloc((void **)&s->pack, ((size_t)host[n] + 1) * sizeof *s->pack));
    s->arrived = (uint64_t *)gpu_symmetric((size_t)n * sizeof *s->arrived);
    free(host);
}

static void make_vectors(const struct spmat *a, const struct cg_options *o, int blocks, struct solver *s)
{
    size_t own = ((size_t)a->rows + 1) * sizeof(double), whole = ((size_t)a->vector_len + 1) * sizeof(double);
    double *diag = (double *)malloc(own);

    if (!diag)
        shmem_global_exit(STATUS_FAILED);
    for (int64_t i = 0; i < a->rows; i++) {
        diag[i] = 1;
        for (int64_t k = a->row_ptr[i]; o->jacobi && k < a->row_ptr[i + 1]; k++)
            if (a->col[k] == i)
                diag[i] = 1 / a->val[k];
    }
    s->inv_diag = (double *)gpu_copy(diag, own);
    free(diag);
    s->b = (double *)gpu_symmetric(whole);
    s->x = (double *)gpu_symmetric(whole);
    s->p = (double *)gpu_symmetric(whole);
    s->sum_in = (double *)gpu_symmetric(2 * sizeof(double));
    s->sum_out = (double *)gpu_symmetric(2 * sizeof(double));
    GPU(cudaMalloc((void **)&s->q, own));
    GPU(cudaMalloc((void **)&s->r, own));
    GPU(cudaMalloc((void **)&s->partial, 2 * (size_t)blocks * sizeof(double)));
    GPU(cudaMalloc((void **)&s->result, sizeof *s->result));
}

static void free_solver(struct solver *s)
{
    void *mine[] = { s->row_ptr, s->col, s->val, s->inv_diag, s->give_from, s->dest_at, s->want, s->give, s->pack,
                     s->q, s->r, s->partial, s->result };
    void *symmetric[] = { s->arrived, s->b, s->x, s->p, s->sum_in, s->sum_out };

    for (size_t i = 0; i < sizeof mine / sizeof mine[0]; i++)
        GPU(cudaFree(mine[i]));
    for (size_t i = 0; i < sizeof symmetric / sizeof symmetric[0]; i++)
        shmem_free(symmetric[i]);
}

static struct cg_result launch(const struct cg_options *o, struct solver *s)
{
    struct cg_result res;

    gpu_run_together(o->name, (const void *)solve, (int)o->blocks, THREADS, s);
    GPU(cudaMemcpy(&res, s->result, sizeof res, cudaMemcpyDeviceToHost));
    return res;
}

/* Collective; the whole matrix and right-hand side are PE 0's. */
static int run(const struct cg_options *o, const struct mtx *m, const double *b, struct cg_times *t)
{
    struct spmat a;
    struct solver s;
    struct cg_result res;
    double start = cg_now(), volume;
    int status;

    if (spmat_spread(m, SPMAT_PUT, &a))
        return STATUS_FAILED;
    memset(&s, 0, sizeof s);
    s.me = shmem_my_pe();
    s.n_pes = shmem_n_pes();
    s.tol = o->tol;
    s.maxit = cg_most_iterations(o, a.n);
    make_matrix(&a, &s);
    make_vectors(&a, o, (int)o->blocks, &s);
    spmat_scatter(&a, b, s.b);
    shmem_barrier_all();
    t->plan = cg_now() - start;
    start = cg_now();
    res = launch(o, &s);
    t->solve = cg_now() - start;
    volume = (double)a.ghosts;
    cg_sum_over_pes(&volume, &volume, 1);
    status = res.outcome == CG_CONVERGED ? STATUS_OK : STATUS_FAILED;
    shmem_barrier_all();
    if (m) {
        cg_report(o, m, &a, &res, t, volume);
        if (status == STATUS_OK)
            status = cg_finish(o, m, b, &a, s.x, s.maxit);
    }
    shmem_barrier_all();
    free_solver(&s);
    spmat_free(&a);
    return status;
}

int main(int argc, char **argv)
{
    struct cg_options o;
    struct cg_times t = { 0, 0, 0 };
    struct mtx m;
    double *b = NULL, start;
    int status;

    shmem_init();
    memset(&m, 0, sizeof m);
    start = cg_now();
    cg_defaults(&o, "cg-gpu", 1);
    status = cg_parse(argc, argv, &o);
    if (status == 0 && o.help) {
        if (shmem_my_pe() == 0)
            cg_usage(&o, stdout);
    } else if (status == 0) {
        if (shmem_my_pe() == 0)
            status = cg_read_input(&o, &m, &b) ? STATUS_INPUT : STATUS_OK;
        t.read = cg_now() - start;
        status = cg_agree(status);
        if (status == STATUS_OK && gpu_is_there(o.name))
            status = STATUS_FAILED;
        if (status == STATUS_OK)
            status = cg_agree(run(&o, shmem_my_pe() == 0 ? &m : NULL, b, &t));
    }
    mtx_free(&m);
    free(b);
    shmem_finalize();
    return status;
}
