/* SPDX-License-Identifier: BSD-3-Clause */
/* orders.cu - one put in each mode, for ptx.sh to look at. */
#include "shmem/device/sq_warp.h"

extern "C" __global__ void put_private(struct shmemi_sq *sq, uint64_t raddr, shmemi_be32 rkey, uint64_t v)
{
    shmemi_sq_write_value(sq, SHMEMI_SQ_PRIVATE, raddr, rkey, v, 8, 0);
}

extern "C" __global__ void put_shared(struct shmemi_sq *sq, uint64_t raddr, shmemi_be32 rkey, uint64_t v)
{
    shmemi_sq_write_value(sq, SHMEMI_SQ_SHARED, raddr, rkey, v, 8, 0);
}

extern "C" __global__ void put_warp(struct shmemi_sq *sq, uint64_t raddr, shmemi_be32 rkey, uint64_t v)
{
    shmemi_sq_warp_write_value(sq, SHMEMI_SQ_PRIVATE, shmemi_warp_mask(), raddr, rkey, v, 8, 0);
}

/* On queues in GPU memory that have no record, and nothing else. */
__device__ __forceinline__ void is_bare(const struct shmemi_sq *sq)
{
    __builtin_assume(sq->flags == (SHMEMI_SQ_NEAR | SHMEMI_SQ_NO_RECORD));
}

extern "C" __global__ void bare_private(struct shmemi_sq *sq, uint64_t raddr, shmemi_be32 rkey, uint64_t v)
{
    is_bare(sq);
    shmemi_sq_write_value(sq, SHMEMI_SQ_PRIVATE, raddr, rkey, v, 8, 0);
}

extern "C" __global__ void bare_shared(struct shmemi_sq *sq, uint64_t raddr, shmemi_be32 rkey, uint64_t v)
{
    is_bare(sq);
    shmemi_sq_write_value(sq, SHMEMI_SQ_SHARED, raddr, rkey, v, 8, 0);
}
