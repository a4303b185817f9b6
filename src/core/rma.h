/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rma.h - untyped put and get; the typed routines are shells of one call around these.
 *
 * `call` is the public name for messages.  Strides and block sizes are in
 * elements of `elem` bytes, as in the specification (1.6, section 9.5).
 * Blocking and non-blocking forms are the same on load/store paths.
 */
#ifndef SHMEMI_RMA_H
#define SHMEMI_RMA_H

#include "ctx.h"
#include "wait.h"

#include <string.h>

void shmemi_put(shmem_ctx_t ctx, void *dest, const void *source, size_t len, int pe, const char *call);
void shmemi_get(shmem_ctx_t ctx, void *dest, const void *source, size_t len, int pe, const char *call);
void shmemi_put_nbi(shmem_ctx_t ctx, void *dest, const void *source, size_t len, int pe, const char *call);
void shmemi_get_nbi(shmem_ctx_t ctx, void *dest, const void *source, size_t len, int pe, const char *call);
void shmemi_iput(shmem_ctx_t ctx, void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst,
                 size_t nelems, size_t elem, int pe, const char *call);
void shmemi_iget(shmem_ctx_t ctx, void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst,
                 size_t nelems, size_t elem, int pe, const char *call);
void shmemi_ibput(shmem_ctx_t ctx, void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst,
                  size_t bsize, size_t nblocks, size_t elem, int pe, const char *call);
void shmemi_ibget(shmem_ctx_t ctx, void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst,
                  size_t bsize, size_t nblocks, size_t elem, int pe, const char *call);
/* sig_op: SHMEM_SIGNAL_SET or SHMEM_SIGNAL_ADD.  The signal is seen after the data. */
void shmemi_put_signal(shmem_ctx_t ctx, void *dest, const void *source, size_t len, uint64_t *sig_addr,
                       uint64_t signal, int sig_op, int pe, const char *call);

/* One element of 1, 2, 4 or 8 bytes is one store that cannot tear; larger ones are copied. */
SHMEMI_INLINE void shmemi_store_elem(void *to, const void *from, size_t size)
{
    switch (size) {
    case 1: SHMEMI_ST_RLX((uint8_t *)to, *(const uint8_t *)from); break;
    case 2: { uint16_t v; memcpy(&v, from, 2); SHMEMI_ST_RLX((uint16_t *)to, v); break; }
    case 4: { uint32_t v; memcpy(&v, from, 4); SHMEMI_ST_RLX((uint32_t *)to, v); break; }
    case 8: { uint64_t v; memcpy(&v, from, 8); SHMEMI_ST_RLX((uint64_t *)to, v); break; }
    default: memcpy(to, from, size);
    }
}

SHMEMI_INLINE void shmemi_p(shmem_ctx_t ctx, void *dest, const void *value, size_t size, int pe, const char *call)
{
    int world = shmemi_ctx_world_pe(ctx, pe, call);

    shmemi_store_elem(shmemi_remote(dest, size, world, call), value, size);
    shmemi_wake_peer(shmemi.peers[world].ctl);
}

SHMEMI_INLINE void shmemi_g(shmem_ctx_t ctx, void *value_out, const void *source, size_t size, int pe, const char *call)
{
    int world = shmemi_ctx_world_pe(ctx, pe, call);

    shmemi_store_elem(value_out, shmemi_remote(source, size, world, call), size);
}

void shmemi_fence(shmem_ctx_t ctx, const char *call);
void shmemi_quiet(shmem_ctx_t ctx, const char *call);

#endif
