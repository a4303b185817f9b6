/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * issue.cu - what a put costs the GPU threads that post it: the mlx5 queue of include/shmem/device/sq.h, as issue.h measures.
 *
 *     bench-issue [--quick]      rows of main.cu's table and a column p99; no library, no peers, one GPU
 */
#include "issue.h"

#include "shmem/device/sq_run.h"
#include "shmem/device/sq_warp.h"

/* ---- the operations: each thread of the block calls them ---- */

__device__ static shmemi_be32 key(uint32_t v)
{
    shmemi_be32 k = { v };

    return k;
}

struct nothing {
    __device__ void operator()(struct shmemi_sq *, int) const {}
};

/* One word, for whose value no memory is read. */
template <enum shmemi_sq_mode Mode, int Flags> struct put_word {
    __device__ void operator()(struct shmemi_sq *sq, int i) const
    {
        shmemi_sq_write_value(sq, Mode, RADDR, key(1), (uint64_t)i, 8, Flags);
    }
};

/* Memory that the NIC reads. */
template <enum shmemi_sq_mode Mode> struct put_memory {
    __device__ void operator()(struct shmemi_sq *sq, int i) const
    {
        shmemi_sq_write(sq, Mode, RADDR, key(1), RADDR + (uint64_t)i * 64, key(2), 4096, 0);
    }
};

template <enum shmemi_sq_mode Mode> struct put_signal {
    __device__ void operator()(struct shmemi_sq *sq, int i) const
    {
        struct shmemi_sq_signal sig = { RADDR, (uint64_t)i, key(3), 0, 0, key(0) };

        shmemi_sq_write_signal(sq, Mode, RADDR, key(1), RADDR, key(2), 4096, &sig, 0);
    }
};

/* A quarter of the ring without a doorbell: its last one is rung for and signalled. */
template <class Op> struct stream_of {
    __device__ void operator()(struct shmemi_sq *sq, int i) const
    {
#pragma unroll 1
        for (uint32_t k = 0; k < DEPTH / 4; k++)
            Op()(sq, i * (int)(DEPTH / 4) + (int)k);
    }
};

/* The same under one reservation. */
template <enum shmemi_sq_mode Mode> struct batch {
    __device__ void operator()(struct shmemi_sq *sq, int i) const
    {
        struct shmemi_sq_run r;

        if (shmemi_sq_run_open(sq, Mode, DEPTH / 4, 0, &r))
            return;
#pragma unroll 1
        for (uint32_t k = 0; k < DEPTH / 4; k++)
            shmemi_sq_run_value(&r, RADDR, key(1), (uint64_t)i + k, 8);
        shmemi_sq_run_close(sq, Mode, &r);
    }
};

template <enum shmemi_sq_mode Mode> struct warp_word {
    __device__ void operator()(struct shmemi_sq *sq, int i) const
    {
        shmemi_sq_warp_write_value(sq, Mode, shmemi_warp_mask(), RADDR + shmemi_lane() * 8, key(1), (uint64_t)i, 8, 0);
    }
};

template <enum shmemi_sq_mode Mode> struct warp_signal {
    __device__ void operator()(struct shmemi_sq *sq, int i) const
    {
        struct shmemi_sq_signal sig = { RADDR, (uint64_t)i, key(3), 0, 0, key(0) };

        shmemi_sq_warp_write_signal(sq, Mode, shmemi_warp_mask(), RADDR, key(1), RADDR, key(2), 4096, &sig, 0);
    }
};

/* As the library's block calls: the block meets, thread 0 posts for all. */
template <enum shmemi_sq_mode Mode> struct block_one {
    __device__ void operator()(struct shmemi_sq *sq, int i) const
    {
        __syncthreads();
        if (threadIdx.x == 0)
            put_memory<Mode>()(sq, i);
        __syncthreads();
    }
};

/* Each warp of the block posts for its lanes, all on one queue. */
struct block_warps {
    __device__ void operator()(struct shmemi_sq *sq, int i) const
    {
        __syncthreads();
        warp_word<SHMEMI_SQ_SHARED>()(sq, i);
        __syncthreads();
    }
};

int main(int argc, char **argv)
{
    struct bench b = {};
    struct cudaDeviceProp prop;

    b.n = argc > 1 && strcmp(argv[1], "--quick") == 0 ? 32 : SAMPLES;
    if (argc > 2 || (argc == 2 && b.n == SAMPLES)) {
        fprintf(stderr, "usage: bench-issue [--quick]\n");
        return 2;
    }
    CUDA(cudaGetDeviceProperties(&prop, 0));
    set_up(&b);
    printf("# Marrow, issue cost, ring of %u blocks, %s\nrow,unit,p50,mean,p999,max,wrong,p99\n", DEPTH, prop.name);
    row(&b, "issue_nothing", nothing(), 1, 1, 0, 0);
    row(&b, "issue_private", put_word<SHMEMI_SQ_PRIVATE, 0>(), 1, 1, 1, 1);
    row(&b, "issue_private_memory", put_memory<SHMEMI_SQ_PRIVATE>(), 1, 1, 1, 1);
    row(&b, "issue_private_signal", put_signal<SHMEMI_SQ_PRIVATE>(), 1, 1, 2, 1);
    row(&b, "issue_private_stream", stream_of<put_word<SHMEMI_SQ_PRIVATE, SHMEMI_SQ_DEFER> >(), 1, DEPTH / 4, 1, 1);
    row(&b, "issue_private_batch", batch<SHMEMI_SQ_PRIVATE>(), 1, DEPTH / 4, 1, 1);
    row(&b, "issue_private_blueflame", put_word<SHMEMI_SQ_PRIVATE, SHMEMI_SQ_BLUEFLAME>(), 1, 1, 1, 1);
    row(&b, "issue_private_warp", warp_word<SHMEMI_SQ_PRIVATE>(), 32, 32, 1, 1);
    row(&b, "issue_private_warp_signal", warp_signal<SHMEMI_SQ_PRIVATE>(), 32, 32, 2, 1);
    row(&b, "issue_shared", put_word<SHMEMI_SQ_SHARED, 0>(), 1, 1, 1, 1);
    row(&b, "issue_shared_memory", put_memory<SHMEMI_SQ_SHARED>(), 1, 1, 1, 1);
    row(&b, "issue_shared_signal", put_signal<SHMEMI_SQ_SHARED>(), 1, 1, 2, 1);
    row(&b, "issue_shared_stream", stream_of<put_word<SHMEMI_SQ_SHARED, SHMEMI_SQ_DEFER> >(), 1, DEPTH / 4, 1, 1);
    row(&b, "issue_shared_batch", batch<SHMEMI_SQ_SHARED>(), 1, DEPTH / 4, 1, 1);
    row(&b, "issue_shared_warp", warp_word<SHMEMI_SQ_SHARED>(), 32, 32, 1, 1);
    row(&b, "issue_shared_warp_signal", warp_signal<SHMEMI_SQ_SHARED>(), 32, 32, 2, 1);
    row(&b, "issue_block", block_one<SHMEMI_SQ_SHARED>(), 256, 1, 1, 1);
    row(&b, "issue_block_private", block_one<SHMEMI_SQ_PRIVATE>(), 256, 1, 1, 1);
    row(&b, "issue_block_warps", block_warps(), 256, 256, 1, 0);
    return b.errors;
}
