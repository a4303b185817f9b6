/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * p2p.h - wait and test on local symmetric words (specification 1.6, section 9.11).
 *
 * One engine serves all types: a word's kind is its width and signedness.
 */
#ifndef SHMEMI_P2P_H
#define SHMEMI_P2P_H

#include "ctx.h"

enum shmemi_kind {
    SHMEMI_I16,
    SHMEMI_U16,
    SHMEMI_I32,
    SHMEMI_U32,
    SHMEMI_I64,
    SHMEMI_U64,
};

/* Constant for an integer type T. */
#define SHMEMI_KIND(T)                                                                     \
    ((enum shmemi_kind)((sizeof(T) == 2 ? SHMEMI_I16 : sizeof(T) == 4 ? SHMEMI_I32 : SHMEMI_I64) + \
                        ((T)-1 > (T)0)))

enum shmemi_set { SHMEMI_ALL, SHMEMI_ANY, SHMEMI_SOME };

/*
 * cmp is SHMEM_CMP_*; anything else ends the job.  The wait gives the word that ended it, which may have changed
 * since; for an unsigned kind that is its value.
 */
uint64_t shmemi_wait_until(enum shmemi_kind kind, const void *ivar, int cmp, const void *value, const char *call);
int shmemi_test(enum shmemi_kind kind, const void *ivar, int cmp, const void *value, const char *call);

/*
 * The set forms.  status[i] != 0 leaves element i out; status may be NULL.  `vector`: values
 * has one comparison value an element, else one for all.  ALL gives 0 (wait) or 0/1 (test); ANY the index or
 * SIZE_MAX for an empty set (or none true yet, test); SOME the count, with the indices written.
 */
size_t shmemi_wait_set(enum shmemi_set set, enum shmemi_kind kind, const void *ivars, size_t nelems,
                       size_t *indices, const int *status, int cmp, const void *values, bool vector,
                       const char *call);
size_t shmemi_test_set(enum shmemi_set set, enum shmemi_kind kind, const void *ivars, size_t nelems,
                       size_t *indices, const int *status, int cmp, const void *values, bool vector,
                       const char *call);

#endif
