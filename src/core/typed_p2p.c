/* SPDX-License-Identifier: BSD-3-Clause */
/* typed_p2p.c - the wait and test routines of every type (specification 1.6, section 9.11): shells only. */
#include "p2p.h"

#include "shell.h"

#define ONE(NAME, T)                                                                \
    SHMEMI_SHELL(void, NAME##_wait_until, (T *ivar, int cmp, T cmp_value),          \
                 shmemi_wait_until(SHMEMI_KIND(T), ivar, cmp, &cmp_value, call);)   \
    SHMEMI_SHELL(int, NAME##_test, (T *ivar, int cmp, T cmp_value),                 \
                 return shmemi_test(SHMEMI_KIND(T), ivar, cmp, &cmp_value, call);)
SHMEMI_TYPES_SYNC(ONE)
#undef ONE

#define ALL(NAME, T)                                                                                              \
    SHMEMI_SHELL(void, NAME##_wait_until_all,                                                                     \
                 (T *ivars, size_t nelems, const int *status, int cmp, T cmp_value),                              \
                 shmemi_wait_set(SHMEMI_ALL, SHMEMI_KIND(T), ivars, nelems, NULL, status, cmp, &cmp_value, false, \
                                 call);)                                                                          \
    SHMEMI_SHELL(void, NAME##_wait_until_all_vector,                                                              \
                 (T *ivars, size_t nelems, const int *status, int cmp, const T *cmp_values),                      \
                 shmemi_wait_set(SHMEMI_ALL, SHMEMI_KIND(T), ivars, nelems, NULL, status, cmp, cmp_values, true,  \
                                 call);)                                                                          \
    SHMEMI_SHELL(int, NAME##_test_all, (T *ivars, size_t nelems, const int *status, int cmp, T cmp_value),        \
                 return (int)shmemi_test_set(SHMEMI_ALL, SHMEMI_KIND(T), ivars, nelems, NULL, status, cmp,        \
                                             &cmp_value, false, call);)                                           \
    SHMEMI_SHELL(int, NAME##_test_all_vector,                                                                     \
                 (T *ivars, size_t nelems, const int *status, int cmp, const T *cmp_values),                      \
                 return (int)shmemi_test_set(SHMEMI_ALL, SHMEMI_KIND(T), ivars, nelems, NULL, status, cmp,        \
                                             cmp_values, true, call);)
SHMEMI_TYPES_SYNC(ALL)
#undef ALL

#define ANY(NAME, T, KIND)                                                                                       \
    SHMEMI_SHELL(size_t, NAME##_any, (T *ivars, size_t nelems, const int *status, int cmp, T cmp_value),         \
                 return KIND(SHMEMI_ANY, SHMEMI_KIND(T), ivars, nelems, NULL, status, cmp, &cmp_value, false,    \
                             call);)                                                                             \
    SHMEMI_SHELL(size_t, NAME##_any_vector,                                                                      \
                 (T *ivars, size_t nelems, const int *status, int cmp, const T *cmp_values),                     \
                 return KIND(SHMEMI_ANY, SHMEMI_KIND(T), ivars, nelems, NULL, status, cmp, cmp_values, true,     \
                             call);)
#define SOME(NAME, T, KIND)                                                                                      \
    SHMEMI_SHELL(size_t, NAME##_some,                                                                            \
                 (T *ivars, size_t nelems, size_t *indices, const int *status, int cmp, T cmp_value),            \
                 return KIND(SHMEMI_SOME, SHMEMI_KIND(T), ivars, nelems, indices, status, cmp, &cmp_value,       \
                             false, call);)                                                                      \
    SHMEMI_SHELL(size_t, NAME##_some_vector,                                                                     \
                 (T *ivars, size_t nelems, size_t *indices, const int *status, int cmp, const T *cmp_values),    \
                 return KIND(SHMEMI_SOME, SHMEMI_KIND(T), ivars, nelems, indices, status, cmp, cmp_values, true, \
                             call);)
#define SETS(NAME, T)                                  \
    ANY(NAME##_wait_until, T, shmemi_wait_set)         \
    SOME(NAME##_wait_until, T, shmemi_wait_set)        \
    ANY(NAME##_test, T, shmemi_test_set)               \
    SOME(NAME##_test, T, shmemi_test_set)
SHMEMI_TYPES_SYNC(SETS)
#undef SETS
#undef SOME
#undef ANY

/* The names of before 1.4. */

#define OLD_WAIT(NAME, T)                              \
    SHMEMI_SHELL(void, NAME##_wait, (T *ivar, T cmp_value), \
                 shmemi_wait_until(SHMEMI_KIND(T), ivar, SHMEM_CMP_NE, &cmp_value, call);)
SHMEMI_TYPES_OLD_WAIT(OLD_WAIT)
#undef OLD_WAIT

SHMEMI_SHELL(void, wait, (long *ivar, long cmp_value),
             shmemi_wait_until(SHMEMI_KIND(long), ivar, SHMEM_CMP_NE, &cmp_value, call);)
SHMEMI_SHELL(void, wait_until, (long *ivar, int cmp, long cmp_value),
             shmemi_wait_until(SHMEMI_KIND(long), ivar, cmp, &cmp_value, call);)
