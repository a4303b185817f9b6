/* SPDX-License-Identifier: BSD-3-Clause */
/* spmat.c - spreads a matrix over the PEs and exchanges vector entries. */
#include "spmat.h"

#include <shmem.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Symmetric words for the collectives below. */
static int64_t word_in, word_out;

static int64_t max_over_pes(int64_t v)
{
    word_in = v;
    shmem_int64_max_reduce(SHMEM_TEAM_WORLD, &word_out, &word_in, 1);
    v = word_out;
    shmem_barrier_all(); /* the words may be used again */
    return v;
}

static int64_t from_pe0(int64_t v)
{
    word_in = v;
    shmem_int64_broadcast(SHMEM_TEAM_WORLD, &word_out, &word_in, 1, 0);
    v = word_out;
    shmem_barrier_all();
    return v;
}

/* Collective: does any PE report a failure?  PE 0 says what was short. */
static int any_failed(int failed, const char *what)
{
    if (!max_over_pes(failed))
        return 0;
    if (shmem_my_pe() == 0)
        fprintf(stderr, "cg: no memory left for %s: is SHMEM_SYMMETRIC_SIZE large enough?\n", what);
    return 1;
}

/*
 * Where to cut: block p ends with the row that brings the work done to p+1 shares.
 * A row costs its entries and one more for the vectors.
 */
static void cut_rows(const struct mtx *m, int n_pes, int64_t *start)
{
    int64_t total = m->nnz + m->n, row = 0;

    start[0] = 0;
    for (int p = 0; p < n_pes; p++) {
        double share = (double)total * (p + 1) / n_pes;

        while (row < m->n && (double)(m->row_ptr[row] + row) < share)
            row++;
        start[p + 1] = p == n_pes - 1 ? m->n : row;
    }
}

static int owner_of(const struct spmat *a, int64_t row)
{
    int lo = 0, hi = shmem_n_pes() - 1;

    while (lo < hi) {
        int mid = lo + (hi - lo) / 2;

        if (row < a->start[mid + 1])
            hi = mid;
        else
            lo = mid + 1;
    }
    return lo;
}

/* PE 0 puts every PE's rows into place. */
static void send_rows(const struct mtx *m, const struct spmat *a)
{
    for (int p = 0; p < shmem_n_pes(); p++) {
        int64_t first = a->start[p], rows = a->start[p + 1] - first;
        int64_t at = m->row_ptr[first], nnz = m->row_ptr[first + rows] - at;

        shmem_int64_put(a->row_ptr, m->row_ptr + first, (size_t)rows + 1, p);
        shmem_int64_put(a->col, m->col + at, (size_t)nnz, p);
        shmem_double_put(a->val, m->val + at, (size_t)nnz, p);
    }
}

static int64_t most_entries(const struct mtx *m, const struct spmat *a)
{
    int64_t most = 0;

    for (int p = 0; p < shmem_n_pes(); p++) {
        int64_t nnz = m->row_ptr[a->start[p + 1]] - m->row_ptr[a->start[p]];

        if (nnz > most)
            most = nnz;
    }
    return most;
}

static int spread_rows(const struct mtx *whole, struct spmat *a)
{
    int n_pes = shmem_n_pes(), me = shmem_my_pe();
    int64_t nnz, max_rows = 0, base;

    a->n = from_pe0(whole ? whole->n : 0);
    a->start = shmem_malloc(((size_t)n_pes + 1) * sizeof *a->start);
    if (any_failed(!a->start, "the list of PEs"))
        return -1;
    if (whole)
        cut_rows(whole, n_pes, a->start);
    shmem_barrier_all();
    if (me != 0)
        shmem_int64_get(a->start, a->start, (size_t)n_pes + 1, 0);
    nnz = from_pe0(whole ? most_entries(whole, a) : 0);
    for (int p = 0; p < n_pes; p++)
        if (a->start[p + 1] - a->start[p] > max_rows)
            max_rows = a->start[p + 1] - a->start[p];
    a->first = a->start[me];
    a->rows = a->start[me + 1] - a->first;
    a->row_ptr = shmem_malloc(((size_t)max_rows + 1) * sizeof *a->row_ptr);
    a->col = shmem_malloc(((size_t)nnz + 1) * sizeof *a->col);
    a->val = shmem_malloc(((size_t)nnz + 1) * sizeof *a->val);
    if (any_failed(!a->row_ptr || !a->col || !a->val, "the matrix"))
        return -1;
    if (whole)
        send_rows(whole, a);
    shmem_barrier_all();
    base = a->row_ptr[0];
    for (int64_t i = 0; i <= a->rows; i++)
        a->row_ptr[i] -= base;
    return 0;
}

static int by_value(const void *pa, const void *pb)
{
    int64_t a = *(const int64_t *)pa, b = *(const int64_t *)pb;

    return a < b ? -1 : a > b;
}

/* The columns of other PEs, ascending and each once, in a new array of a->ghosts. */
static int64_t *list_ghosts(struct spmat *a)
{
    int64_t nnz = a->row_ptr[a->rows], found = 0, kept = 0;
    int64_t *list = malloc((size_t)(nnz + 1) * sizeof *list);

    if (!list)
        return NULL;
    for (int64_t k = 0; k < nnz; k++)
        if (a->col[k] < a->first || a->col[k] >= a->first + a->rows)
            list[found++] = a->col[k];
    if (found > 0)
        qsort(list, (size_t)found, sizeof *list, by_value);
    for (int64_t k = 0; k < found; k++)
        if (kept == 0 || list[kept - 1] != list[k])
            list[kept++] = list[k];
    a->ghosts = kept;
    return list;
}

static void renumber_columns(struct spmat *a, const int64_t *ghost)
{
    for (int64_t k = 0; k < a->row_ptr[a->rows]; k++) {
        int64_t *col = &a->col[k];

        if (*col >= a->first && *col < a->first + a->rows) {
            *col -= a->first;
        } else {
            const int64_t *at = bsearch(col, ghost, (size_t)a->ghosts, sizeof *ghost, by_value);

            *col = a->rows + (at - ghost);
        }
    }
}

/* Runs of ghosts that are neighbours at one owner; also counts what is wanted from each PE. */
static int list_runs(struct spmat *a, const int64_t *ghost)
{
    a->run = malloc((size_t)(a->ghosts + 1) * sizeof *a->run);
    if (!a->run)
        return -1;
    for (int64_t g = 0; g < a->ghosts; g++) {
        int owner = owner_of(a, ghost[g]);
        int64_t from = ghost[g] - a->start[owner];
        struct spmat_run *last = a->runs ? &a->run[a->runs - 1] : NULL;

        a->want_count[owner]++;
        if (last && last->owner == owner && last->from + last->len == from)
            last->len++;
        else
            a->run[a->runs++] = (struct spmat_run){ .owner = owner, .from = from, .ghost = g, .len = 1 };
    }
    return 0;
}

/* Every PE learns how many entries each other one wants and where they go; then fetches the lists. */
static int exchange_lists(struct spmat *a, const int64_t *ghost, int64_t *wants, int64_t *want_at)
{
    int n_pes = shmem_n_pes();
    int64_t total = 0, at = 0;

    for (int p = 0; p < n_pes; p++) {
        want_at[p] = at;
        at += a->want_count[p];
    }
    memcpy(wants, ghost, (size_t)a->ghosts * sizeof *ghost);
    shmem_int64_alltoall(SHMEM_TEAM_WORLD, a->give_count, a->want_count, 1);
    shmem_int64_alltoall(SHMEM_TEAM_WORLD, a->give_at, want_at, 1);
    for (int p = 0; p < n_pes; p++)
        total += a->give_count[p];
    a->give = malloc((size_t)(total + 1) * sizeof *a->give);
    a->pack = malloc((size_t)(total + 1) * sizeof *a->pack);
    if (any_failed(!a->give || !a->pack, "the exchange plan"))
        return -1;
    at = 0;
    shmem_barrier_all(); /* every list is in place */
    for (int p = 0; p < n_pes; p++) {
        if (a->give_count[p] > 0)
            shmem_int64_get(a->give + at, wants + a->give_at[p], (size_t)a->give_count[p], p);
        at += a->give_count[p];
    }
    for (int64_t k = 0; k < total; k++)
        a->give[k] -= a->first;
    return 0;
}

static int make_plan(struct spmat *a)
{
    size_t n_pes = (size_t)shmem_n_pes();
    int64_t *ghost = list_ghosts(a), *wants, *want_at;
    int64_t max_ghosts = max_over_pes(a->ghosts);
    int status = -1;

    a->vector_len = max_over_pes(a->rows + a->ghosts);
    wants = shmem_malloc((size_t)(max_ghosts + 1) * sizeof *wants);
    want_at = shmem_malloc(n_pes * sizeof *want_at);
    a->want_count = shmem_calloc(n_pes, sizeof *a->want_count);
    a->give_count = shmem_malloc(n_pes * sizeof *a->give_count);
    a->give_at = shmem_malloc(n_pes * sizeof *a->give_at);
    a->arrived = shmem_calloc(n_pes, sizeof *a->arrived);
    if (!any_failed(!ghost || !wants || !want_at || !a->want_count || !a->give_count || !a->give_at ||
                        !a->arrived || list_runs(a, ghost),
                    "the exchange plan")) {
        renumber_columns(a, ghost);
        status = exchange_lists(a, ghost, wants, want_at);
    }
    shmem_free(wants); /* these wait for all PEs: every list has been read */
    shmem_free(want_at);
    free(ghost);
    return status;
}

int spmat_spread(const struct mtx *whole, enum spmat_exchange exchange, struct spmat *out)
{
    struct spmat a = { .exchange = exchange };

    if (spread_rows(whole, &a) || make_plan(&a)) {
        spmat_free(&a);
        return -1;
    }
    *out = a;
    return 0;
}

void spmat_free(struct spmat *a)
{
    shmem_free(a->start);
    shmem_free(a->row_ptr);
    shmem_free(a->col);
    shmem_free(a->val);
    shmem_free(a->want_count);
    shmem_free(a->give_count);
    shmem_free(a->give_at);
    shmem_free(a->arrived);
    free(a->give);
    free(a->pack);
    free(a->run);
    memset(a, 0, sizeof *a);
}

double *spmat_vector(const struct spmat *a)
{
    double *v = shmem_calloc((size_t)a->vector_len + 1, sizeof *v);

    return any_failed(!v, "a vector") ? NULL : v;
}

void spmat_scatter(const struct spmat *a, const double *whole, double *vector)
{
    if (shmem_my_pe() == 0)
        for (int p = 0; p < shmem_n_pes(); p++)
            shmem_double_put(vector, whole + a->start[p], (size_t)(a->start[p + 1] - a->start[p]), p);
    shmem_barrier_all();
}

void spmat_gather(const struct spmat *a, const double *vector, double *whole)
{
    for (int p = 0; p < shmem_n_pes(); p++)
        shmem_double_get(whole + a->start[p], vector, (size_t)(a->start[p + 1] - a->start[p]), p);
}

/* Sends what others want of x, then waits for what we want. */
static void exchange_by_put(struct spmat *a, double *x)
{
    int n_pes = shmem_n_pes(), me = shmem_my_pe();
    int64_t at = 0;

    a->epoch++;
    shmem_quiet(); /* the last exchange has left a->pack */
    for (int p = 0; p < n_pes; p++) {
        int64_t count = a->give_count[p];

        for (int64_t k = at; k < at + count; k++)
            a->pack[k] = x[a->give[k]];
        if (count > 0)
            shmem_double_put_signal_nbi(x + (a->start[p + 1] - a->start[p]) + a->give_at[p], a->pack + at,
                                        (size_t)count, &a->arrived[me], a->epoch, SHMEM_SIGNAL_SET, p);
        at += count;
    }
    for (int p = 0; p < n_pes; p++)
        if (a->want_count[p] > 0)
            shmem_signal_wait_until(&a->arrived[p], SHMEM_CMP_GE, a->epoch);
}

static void exchange_by_get(struct spmat *a, double *x)
{
    shmem_barrier_all(); /* every PE's part of x is ready */
    for (int64_t k = 0; k < a->runs; k++) {
        const struct spmat_run *r = &a->run[k];

        shmem_double_get_nbi(x + a->rows + r->ghost, x + r->from, (size_t)r->len, r->owner);
    }
    shmem_quiet();
}

void spmat_multiply(struct spmat *a, double *x, double *y)
{
    if (a->exchange == SPMAT_PUT)
        exchange_by_put(a, x);
    else
        exchange_by_get(a, x);
    for (int64_t i = 0; i < a->rows; i++) {
        double sum = 0;

        for (int64_t k = a->row_ptr[i]; k < a->row_ptr[i + 1]; k++)
            sum += a->val[k] * x[a->col[k]];
        y[i] = sum;
    }
}
