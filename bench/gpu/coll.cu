/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll.cu - rows of collectives by one block, and of reductions on a stream.
 *
 * Sizes are bytes that a PE contributes (to each peer, of alltoall).  Two pairs of buffers take turns, and a broadcast's root
 * moves on, so that no PE runs ahead of the others.
 */
#include "bench.h"

#define THREADS 512
#define GAP ((size_t)64 << 20) /* between the two pairs */

struct reduce {
    int *dst, *src;
    int n, pe, n_pes;

    __device__ void operator()(int i) const
    {
        size_t at = (i & 1) * (GAP / sizeof(int));

        shmemx_int_sum_reduce_block(SHMEM_TEAM_WORLD, dst + at, src + at, (size_t)n);
    }
    int blocks_in() const { return 1; }
    int blocks_out() const { return 1; }
    /* Element k of block j of PE p's source is value(p, j, k). */
    __host__ __device__ static int value(int p, int j, int k) { return p * 1000 + j * 77 + k % 501; }
    __device__ int want(int, int k, int) const
    {
        int sum = 0;

        for (int p = 0; p < n_pes; p++)
            sum += value(p, 0, k);
        return sum;
    }
};

struct fcollect : reduce {
    __device__ void operator()(int i) const
    {
        size_t at = (i & 1) * (GAP / sizeof(int));

        shmemx_int_fcollect_block(SHMEM_TEAM_WORLD, dst + at, src + at, (size_t)n);
    }
    int blocks_out() const { return n_pes; }
    __device__ int want(int j, int k, int) const { return value(j, 0, k); }
};

struct broadcast : reduce {
    __device__ void operator()(int i) const
    {
        size_t at = (i & 1) * (GAP / sizeof(int));

        shmemx_int_broadcast_block(SHMEM_TEAM_WORLD, dst + at, src + at, (size_t)n, i % n_pes);
    }
    __device__ int want(int, int k, int root) const { return value(root, 0, k); }
};

struct alltoall : reduce {
    __device__ void operator()(int i) const
    {
        size_t at = (i & 1) * (GAP / sizeof(int));

        shmemx_int_alltoall_block(SHMEM_TEAM_WORLD, dst + at, src + at, (size_t)n);
    }
    int blocks_in() const { return n_pes; }
    int blocks_out() const { return n_pes; }
    __device__ int want(int j, int k, int) const { return value(j, pe, k); }
};

__global__ void set_source(int *src, int n, int blocks, int pe)
{
    for (int i = (int)(blockIdx.x * blockDim.x + threadIdx.x); i < n * blocks; i += (int)(gridDim.x * blockDim.x))
        src[i] = src[i + GAP / sizeof(int)] = reduce::value(pe, i / n, i % n);
}

/* `last` is the number of the last call: its root, and which pair it used. */
template <class Op> __global__ void check_result(Op op, int blocks, int last, int *wrong)
{
    for (int i = (int)(blockIdx.x * blockDim.x + threadIdx.x); i < op.n * blocks; i += (int)(gridDim.x * blockDim.x))
        for (int back = 0; back < 2; back++) {
            int call = last - back;

            if (op.dst[i + (call & 1) * (GAP / sizeof(int))] != op.want(i / op.n, i % op.n, call % op.n_pes))
                atomicAdd(wrong, 1);
        }
}

template <class Op> static void row(struct bench *b, const char *what, const char *size, int n, int samples)
{
    Op op = {};
    struct bench_result r;
    char name[48];
    int calls;

    snprintf(name, sizeof name, "%s_block_%s", what, size);
    if (!bench_wanted(b, name))
        return;
    op.dst = (int *)b->dst;
    op.src = (int *)b->src;
    op.n = n;
    op.pe = b->pe;
    op.n_pes = b->n_pes;
    set_source<<<64, 256, 0, b->stream>>>(op.src, n, op.blocks_in(), b->pe);
    CUDA(cudaMemsetAsync(b->dst, 0xff, 2 * GAP, b->stream));
    CUDA(cudaStreamSynchronize(b->stream));
    r = bench_run<THREADS>(b, op, 1, THREADS, samples);
    calls = b->quick ? 34 : samples + 256;
    check_result<<<64, 256, 0, b->stream>>>(op, op.blocks_out(), calls - 1, b->wrong);
    CUDA(cudaGetLastError());
    CUDA(cudaStreamSynchronize(b->stream));
    bench_print(b, name, "ns", r);
}

template <class Op> static void sizes(struct bench *b, const char *what)
{
    row<Op>(b, what, "4", 1, 4000);
    row<Op>(b, what, "1k", 256, 4000);
    row<Op>(b, what, "64k", 16384, 1000);
}

void rows_coll(struct bench *b)
{
    sizes<reduce>(b, "reduce");
    sizes<fcollect>(b, "fcollect");
    sizes<broadcast>(b, "broadcast");
    sizes<alltoall>(b, "alltoall");
}

#ifndef BENCH_NO_STREAM

static void stream_row(struct bench *b, const char *name, size_t bytes, int n)
{
    static double ns[1000];
    int words = (int)(bytes / sizeof(int));
    struct reduce op = { (int *)b->dst, (int *)b->src, words, b->pe, b->n_pes };

    if (!bench_wanted(b, name))
        return;
    if (b->quick)
        n = 5;
    set_source<<<64, 256, 0, b->stream>>>(op.src, words, 1, b->pe);
    CUDA(cudaMemsetAsync(b->dst, 0xff, 2 * GAP, b->stream));
    CUDA(cudaStreamSynchronize(b->stream));
    shmem_barrier_all();
    for (int i = -20; i < n; i++) {
        double t = bench_now_ns();
        size_t at = (i & 1) * (GAP / sizeof(int));

        shmemx_int_sum_reduce_on_stream(SHMEM_TEAM_WORLD, op.dst + at, op.src + at, (size_t)words, b->stream);
        CUDA(cudaStreamSynchronize(b->stream));
        if (i >= 0)
            ns[i] = bench_now_ns() - t;
    }
    check_result<<<64, 256, 0, b->stream>>>(op, 1, n - 1 + 2, b->wrong);
    CUDA(cudaStreamSynchronize(b->stream));
    bench_print(b, name, "ns", bench_summary(ns, n));
}

void rows_stream(struct bench *b)
{
    stream_row(b, "reduce_stream_4", 4, 1000);
    stream_row(b, "reduce_stream_256k", (size_t)256 << 10, 500);
    stream_row(b, "reduce_stream_16m", (size_t)16 << 20, 200);
}

#endif
