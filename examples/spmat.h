/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * spmat.h - a sparse matrix spread over the PEs by blocks of rows, and the
 * plan by which its product with a vector fetches exactly the vector entries
 * of other PEs that this PE's rows touch.
 *
 * A vector of the matrix is symmetric memory: this PE's entries come first,
 * the copies of other PEs' entries (ghosts) behind them.  Columns are numbered
 * to match, so the product reads one array.
 */
#ifndef SPMAT_H
#define SPMAT_H

#include "mtx.h"

#ifdef __cplusplus
extern "C" {
#endif

enum spmat_exchange {
    SPMAT_PUT, /* the owner packs the entries and sends them with a signal */
    SPMAT_GET, /* who needs them fetches each run of neighbours after a barrier */
};

/* Ghosts that lie side by side at their owner: one get. */
struct spmat_run {
    int owner;
    int64_t from, ghost, len; /* `from` in the owner's vector, `ghost` in ours behind the rows */
};

struct spmat {
    int64_t n;           /* rows of the whole matrix */
    int64_t *start;      /* n_pes + 1: first row of each PE, same on all */
    int64_t first, rows; /* this PE's rows */
    int64_t ghosts;      /* vector entries of other PEs that this PE needs */
    int64_t vector_len;  /* length of a vector, the same on every PE */

    int64_t *row_ptr, *col; /* symmetric; col < rows is our own, rows + g is ghost g */
    double *val;

    /* the plan; arrays of n_pes unless noted */
    enum spmat_exchange exchange;
    int64_t *give_count; /* entries that each PE wants from us */
    int64_t *give_at;    /* where they go among its ghosts */
    int64_t *want_count; /* and what we want from each */
    int64_t *give;       /* our indices, all PEs' lists end to end */
    double *pack;        /* as many */
    struct spmat_run *run;
    int64_t runs;
    uint64_t *arrived; /* symmetric: last exchange whose entries have come from each PE */
    uint64_t epoch;
};

/*
 * Collective.  PE 0 gives the whole matrix, the others NULL.  0, or -1 on every PE with a
 * message from PE 0 when memory is short.
 */
int spmat_spread(const struct mtx *whole, enum spmat_exchange exchange, struct spmat *out);
void spmat_free(struct spmat *a);

/* Collective: a zeroed vector, NULL on every PE when the symmetric heap is full. */
double *spmat_vector(const struct spmat *a);

/* Collective: PE 0's whole vector of n entries to every PE's part. */
void spmat_scatter(const struct spmat *a, const double *whole, double *vector);
/* The other way, for one PE: needs a barrier before it. */
void spmat_gather(const struct spmat *a, const double *vector, double *whole);

/*
 * Collective: y = A x; fills x's ghosts.  Between two calls with the same x there must be a
 * collective that waits for all PEs (a dot product does): until then a slow
 * PE may still read the ghosts that the next exchange overwrites.
 */
void spmat_multiply(struct spmat *a, double *x, double *y);

#ifdef __cplusplus
}
#endif

#endif
