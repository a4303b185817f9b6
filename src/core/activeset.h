/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * activeset.h - the deprecated collectives on active sets, untyped.
 */
#ifndef SHMEMI_ACTIVESET_H
#define SHMEMI_ACTIVESET_H

#include "reduce.h"

/* The set as a group; ends the job when it leaves the world, lacks this PE, or pSync is not symmetric. */
struct shmemi_group shmemi_set(int start, int log_stride, int size, long *psync, const char *call);

void shmemi_set_broadcast(const struct shmemi_group *g, void *dest, const void *source, size_t len, int root);
void shmemi_set_fcollect(const struct shmemi_group *g, void *dest, const void *source, size_t len);
void shmemi_set_collect(const struct shmemi_group *g, void *dest, const void *source, size_t len);
void shmemi_set_alltoalls(const struct shmemi_group *g, void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst,
                          size_t nelems, size_t elem);
void shmemi_set_reduce(const struct shmemi_group *g, void *dest, const void *source, int nreduce, size_t elem,
                       shmemi_red_fn *kernel);

#endif
