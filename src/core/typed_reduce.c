/* SPDX-License-Identifier: BSD-3-Clause */
/* typed_reduce.c - the reductions and scans of every type (specification 1.6, section 9.10): shells only. */
#include "activeset.h"
#include "reduce.h"

#include "shell.h"

#define KERNEL(T, OP) shmemi_red_kernels[SHMEMI_RED_##OP][SHMEMI_RED_TYPE(T)]

#define REDUCE(NAME, T, FN, OP)                                                                         \
    SHMEMI_SHELL(int, NAME##_##FN##_reduce, (shmem_team_t team, T *dest, const T *source, size_t nreduce), \
                 shmemi_reduce(team, dest, source, nreduce, sizeof(T), KERNEL(T, OP), call); return 0;)
#define SCAN(NAME, T, FN, INCLUSIVE)                                                                    \
    SHMEMI_SHELL(int, NAME##_##FN, (shmem_team_t team, T *dest, const T *source, size_t nelems),        \
                 shmemi_scan(team, dest, source, nelems, sizeof(T), INCLUSIVE, KERNEL(T, SUM), call);   \
                 return 0;)

#define BIT(NAME, T)                  \
    REDUCE(NAME, T, and, AND)         \
    REDUCE(NAME, T, or, OR)           \
    REDUCE(NAME, T, xor, XOR)
SHMEMI_TYPES_RED_BIT(BIT)
#undef BIT

#define MINMAX(NAME, T)               \
    REDUCE(NAME, T, max, MAX)         \
    REDUCE(NAME, T, min, MIN)
SHMEMI_TYPES_RED_MINMAX(MINMAX)
#undef MINMAX

#define ARITH(NAME, T)                \
    REDUCE(NAME, T, sum, SUM)         \
    REDUCE(NAME, T, prod, PROD)       \
    SCAN(NAME, T, sum_inscan, true)   \
    SCAN(NAME, T, sum_exscan, false)
SHMEMI_TYPES_RED_ARITH(ARITH)
#undef ARITH

/* ---- on active sets; pWrk is not needed ---- */

#define TO_ALL(NAME, T, FN, OP)                                                                             \
    SHMEMI_SHELL(void, NAME##_##FN##_to_all,                                                                \
                 (T *dest, const T *source, int nreduce, int PE_start, int logPE_stride, int PE_size, T *pWrk, \
                  long *pSync),                                                                             \
                 const struct shmemi_group g = shmemi_set(PE_start, logPE_stride, PE_size, pSync, call);    \
                 (void)pWrk; shmemi_set_reduce(&g, dest, source, nreduce, sizeof(T), KERNEL(T, OP));)

#define OLD_BIT(NAME, T)              \
    TO_ALL(NAME, T, and, AND)         \
    TO_ALL(NAME, T, or, OR)           \
    TO_ALL(NAME, T, xor, XOR)
SHMEMI_TYPES_OLD_WAIT(OLD_BIT)
#undef OLD_BIT

#define OLD_MINMAX(NAME, T)           \
    TO_ALL(NAME, T, max, MAX)         \
    TO_ALL(NAME, T, min, MIN)
SHMEMI_TYPES_OLD_MINMAX(OLD_MINMAX)
#undef OLD_MINMAX

#define OLD_ARITH(NAME, T)            \
    TO_ALL(NAME, T, sum, SUM)         \
    TO_ALL(NAME, T, prod, PROD)
SHMEMI_TYPES_OLD_ARITH(OLD_ARITH)
#undef OLD_ARITH
