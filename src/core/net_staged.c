/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net_staged.c - strided transfers whose local side is memory of a GPU that the NIC does not know: gathered and scattered by the
 * GPU's copy engine, to and from a host buffer of bounded size, since a copy of each block would take microseconds.
 */
#include "net_queue.h"

#include "transports/cuda/gpu.h"

#include <stdlib.h>

#define STAGE_BYTES ((size_t)256 << 10)

/* A buffer for that many blocks at a time, at least one. */
static char *stage(size_t block, size_t n, size_t *most_out, const char *call)
{
    size_t most = block < STAGE_BYTES ? STAGE_BYTES / block : 1;
    char *p;

    *most_out = most < n ? most : n;
    p = malloc(*most_out * block);
    if (!p)
        shmemi_fatal(call, "no memory for a buffer of %zu bytes", *most_out * block);
    return p;
}

static void copied(int rc, const void *local, size_t bytes, const char *call)
{
    if (rc)
        shmemi_fatal(call, "%zu bytes at %p: the GPU's strided copy failed", bytes, local);
}

void shmemi_net_put_gathered(shmem_ctx_t ctx, void *dest, size_t dst, const void *source, size_t sst, size_t n, size_t block,
                             int pe, const char *call)
{
    size_t most, step;
    char *packed = stage(block, n, &most, call);

    for (size_t i = 0; i < n; i += step) {
        const char *from = (const char *)source + i * sst;

        step = n - i < most ? n - i : most;
        copied(shmemi_gpu_copy2d(packed, block, from, sst, block, step), from, step * block, call);
        shmemi_net_put_strided(ctx, (char *)dest + i * dst, dst, packed, block, step, block, pe, call);
    }
    free(packed);
}

void shmemi_net_get_scattered(shmem_ctx_t ctx, void *dest, size_t dst, const void *source, size_t sst, size_t n, size_t block,
                              int pe, const char *call)
{
    size_t most, step;
    char *packed = stage(block, n, &most, call);

    for (size_t i = 0; i < n; i += step) {
        char *to = (char *)dest + i * dst;

        step = n - i < most ? n - i : most;
        shmemi_net_get_strided(ctx, packed, block, (const char *)source + i * sst, sst, step, block, pe, call);
        copied(shmemi_gpu_copy2d(to, dst, packed, block, block, step), to, step * block, call);
    }
    free(packed);
}
