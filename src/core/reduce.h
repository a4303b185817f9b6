/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reduce.h - reductions and scans: operation, element type, and the loops for each pair.
 *
 * Integers are known by width alone where signedness makes no difference (sum, product and
 * the bitwise operations wrap as unsigned), so 26 C types come down to 13.
 */
#ifndef SHMEMI_REDUCE_H
#define SHMEMI_REDUCE_H

#include "coll.h"

enum shmemi_red_op {
    SHMEMI_RED_AND,
    SHMEMI_RED_OR,
    SHMEMI_RED_XOR,
    SHMEMI_RED_MAX,
    SHMEMI_RED_MIN,
    SHMEMI_RED_SUM,
    SHMEMI_RED_PROD,
    SHMEMI_RED_OPS
};

enum shmemi_red_type {
    SHMEMI_RED_U8,
    SHMEMI_RED_U16,
    SHMEMI_RED_U32,
    SHMEMI_RED_U64,
    SHMEMI_RED_I8,
    SHMEMI_RED_I16,
    SHMEMI_RED_I32,
    SHMEMI_RED_I64,
    SHMEMI_RED_FLOAT,
    SHMEMI_RED_DOUBLE,
    SHMEMI_RED_LONGDOUBLE,
    SHMEMI_RED_COMPLEXF,
    SHMEMI_RED_COMPLEXD,
    SHMEMI_RED_TYPES
};

#define SHMEMI_RED_WIDTH(T) (sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3)
/* Constant for a C type T.  The detour over double lets the unchosen branch accept complex types. */
#define SHMEMI_RED_TYPE(T)                                                                \
    _Generic((T)0, float: SHMEMI_RED_FLOAT, double: SHMEMI_RED_DOUBLE,                    \
             long double: SHMEMI_RED_LONGDOUBLE, float _Complex: SHMEMI_RED_COMPLEXF,     \
             double _Complex: SHMEMI_RED_COMPLEXD,                                        \
             default: (enum shmemi_red_type)(SHMEMI_RED_WIDTH(T) +                        \
                                             ((double)(T)-1 < 0 ? SHMEMI_RED_I8 : SHMEMI_RED_U8)))

/* acc[i] = acc[i] op in[i] for n elements; NULL where the pair does not exist. */
typedef void shmemi_red_fn(void *restrict acc, const void *restrict in, size_t n);
extern shmemi_red_fn *const (*shmemi_red_kernels)[SHMEMI_RED_TYPES]; /* [op][type] */
/* Init: the loops that suit the processor (`wide`), or those that every one has. */
void shmemi_red_choose(bool wide);

void shmemi_reduce(shmem_team_t team, void *dest, const void *source, size_t nreduce, size_t elem,
                   shmemi_red_fn *kernel, const char *call);
void shmemi_scan(shmem_team_t team, void *dest, const void *source, size_t nelems, size_t elem, bool inclusive,
                 shmemi_red_fn *kernel, const char *call);

void shmemi_bulk_reduce(const struct shmemi_group *g, void *dest, const void *source, size_t nreduce, size_t elem,
                        shmemi_red_fn *kernel);

/* For groups that are far. */
void shmemi_far_reduce(const struct shmemi_group *g, void *dest, const void *source, size_t nreduce, size_t elem,
                       shmemi_red_fn *kernel);
void shmemi_far_scan(const struct shmemi_group *g, void *dest, const void *source, size_t nelems, size_t elem,
                     bool inclusive, shmemi_red_fn *kernel);
/* Teams that span nodes: what is too long to be exchanged. */
void shmemi_span_reduce(struct shmemi_team *t, void *dest, const void *source, size_t nreduce, size_t elem,
                        shmemi_red_fn *kernel, const char *call);

/* This PE's share of n elements, so that shares begin on cache lines of an aligned array. */
void shmemi_share(const struct shmemi_group *g, size_t n, size_t elem, size_t *first_out, size_t *count_out);

#endif
