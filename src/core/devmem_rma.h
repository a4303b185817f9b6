/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * devmem_rma.h - host calls on device memory: on the device heap, and with local buffers that are device memory.
 *
 * The forms that give bool look first whether device memory is involved that load and store, or this GPU, lead to: false, and
 * nothing done, when it is not, or when the NIC is to do it (net.h).
 * `pe` is a world PE.  All end the job on bad arguments.
 */
#ifndef SHMEMI_DEVMEM_RMA_H
#define SHMEMI_DEVMEM_RMA_H

#include "devmem.h"

/* Is this local buffer device memory?  The driver is asked only about pointers that can be. */
bool shmemi_devmem_holds(const void *p);
/* Do only NICs lead from here to these symmetric bytes?  Ends the job on bad arguments. */
bool shmemi_devmem_far(const void *addr, size_t len, int pe, const char *call);
/* Where the bytes lie here, for the GPU: in the device heap or in host memory. */
void *shmemi_devmem_address(const void *addr, size_t len, int pe, const char *call);

/* wait: returns when it is complete; else at the next quiet or fence. */
bool shmemi_devmem_put(void *dest, const void *source, size_t len, int pe, bool wait, const char *call);
bool shmemi_devmem_get(void *dest, const void *source, size_t len, int pe, bool wait, const char *call);
/* n blocks of `block` bytes; strides in bytes; span: bytes that the symmetric side covers. */
bool shmemi_devmem_strided(bool put, void *dest, const void *source, size_t dst, size_t sst, size_t n, size_t block,
                           size_t span, int pe, const char *call);
bool shmemi_devmem_put_signal(shmem_ctx_t ctx, void *dest, const void *source, size_t len, uint64_t *sig_addr,
                              uint64_t signal, int sig_op, int pe, const char *call);

SHMEMI_COLD bool shmemi_devmem_p(void *dest, const void *value, size_t size, int pe, const char *call);
SHMEMI_COLD bool shmemi_devmem_g(void *value_out, const void *source, size_t size, int pe, const char *call);
/* op: enum shmemi_amo_op */
SHMEMI_COLD bool shmemi_devmem_amo(int op, void *dest, const void *operand, const void *cond, void *old_out, size_t size,
                                   int pe, const char *call);
/* A word of this PE in device memory, widened. */
SHMEMI_COLD uint64_t shmemi_devmem_load(const void *addr, size_t size);
/* Completes what was not waited for. */
void shmemi_devmem_quiet(const char *call);

#endif
