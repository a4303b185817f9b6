/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * devmem_coll.h - the host's collectives on buffers in the device heap; dest and source each in device or host memory.
 *
 * As their counterparts in coll.h and reduce.h, whose arguments are checked but for the buffers, and not empty but for collect.
 */
#ifndef SHMEMI_DEVMEM_COLL_H
#define SHMEMI_DEVMEM_COLL_H

#include "devmem.h"
#include "reduce.h"

/* Is a buffer in the device heap?  The answer is the same on all members. */
SHMEMI_INLINE bool shmemi_devmem_coll(const void *dest, const void *source)
{
    return shmemi_unlikely(shmemi_in_device_heap(dest) || shmemi_in_device_heap(source));
}

SHMEMI_COLD void shmemi_devmem_broadcast(struct shmemi_team *t, void *dest, const void *source, size_t len, int root,
                                         const char *call);
SHMEMI_COLD void shmemi_devmem_fcollect(struct shmemi_team *t, void *dest, const void *source, size_t len, const char *call);
SHMEMI_COLD void shmemi_devmem_collect(struct shmemi_team *t, void *dest, const void *source, size_t len, const char *call);
SHMEMI_COLD void shmemi_devmem_alltoalls(struct shmemi_team *t, void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst,
                                         size_t nelems, size_t elem, const char *call);
SHMEMI_COLD void shmemi_devmem_reduce(struct shmemi_team *t, void *dest, const void *source, size_t nreduce, size_t elem,
                                      shmemi_red_fn *kernel, const char *call);
SHMEMI_COLD void shmemi_devmem_scan(struct shmemi_team *t, void *dest, const void *source, size_t nelems, size_t elem,
                                    bool inclusive, shmemi_red_fn *kernel, const char *call);

#endif
