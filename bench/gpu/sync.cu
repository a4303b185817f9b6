/* SPDX-License-Identifier: BSD-3-Clause */
/* sync.cu - rows of barriers and syncs: from a kernel at each scope, from the host, on a stream. */
#include "bench.h"

struct barrier_thread {
    __device__ void operator()(int) const { shmem_barrier_all(); }
};

struct barrier_warp {
    __device__ void operator()(int) const { shmemx_barrier_all_warp(); }
};

struct barrier_block {
    __device__ void operator()(int) const { shmemx_barrier_all_block(); }
};

struct sync_thread {
    __device__ void operator()(int) const { shmem_sync_all(); }
};

struct sync_warp {
    __device__ void operator()(int) const { shmemx_sync_all_warp(); }
};

struct sync_block {
    __device__ void operator()(int) const { shmemx_sync_all_block(); }
};

/*
 * Is it one?  Thread 0 stores the round's number at every PE, all cross the barrier, and then each PE's number must be there
 * (the next one may be as well).
 */
template <class Op> struct proof {
    Op op;
    int64_t *slot; /* one word a PE */
    int *wrong;
    int pe, n_pes;

    __device__ void operator()(int i) const
    {
        if (threadIdx.x == 0)
            for (int p = 0; p < n_pes; p++)
                shmem_int64_p(slot + pe, i + 1, p);
        __syncthreads();
        op(i);
        if (threadIdx.x == 0)
            for (int p = 0; p < n_pes; p++)
                if (*(volatile int64_t *)(slot + p) < i + 1)
                    atomicAdd(wrong, 1);
        __syncthreads();
    }
};

template <class Op> static void row(struct bench *b, const char *name, Op op, int threads, int orders)
{
    struct bench_result r;

    if (!bench_wanted(b, name))
        return;
    r = bench_run<256>(b, op, 1, threads, BENCH_SAMPLES);
    if (orders && b->n_pes <= 32) {
        struct proof<Op> p = { op, (int64_t *)b->words + 32, b->wrong, b->pe, b->n_pes };

        CUDA(cudaMemset(b->words + 32, 0, 32 * sizeof *b->words));
        CUDA(cudaDeviceSynchronize());
        bench_run<256>(b, p, 1, threads, 500);
    }
    bench_print(b, name, "ns", r);
}

static void barrier_on_stream(cudaStream_t stream)
{
#ifndef BENCH_NO_STREAM
    shmemx_barrier_all_on_stream(stream);
#endif
    CUDA(cudaStreamSynchronize(stream));
}

__global__ void nothing(void)
{
}

enum host_op { FROM_HOST, ON_STREAM, NOTHING };

static void host_row(struct bench *b, const char *name, enum host_op op)
{
    static double ns[2000];
    int n = b->quick ? 20 : 2000;

    if (!bench_wanted(b, name))
        return;
    for (int i = -50; i < n; i++) {
        double t = bench_now_ns();

        if (op == NOTHING) {
            nothing<<<1, 32, 0, b->stream>>>();
            CUDA(cudaStreamSynchronize(b->stream));
        } else if (op == ON_STREAM) {
            barrier_on_stream(b->stream);
        } else {
            shmem_barrier_all();
        }
        if (i >= 0)
            ns[i] = bench_now_ns() - t;
    }
    bench_print(b, name, "ns", bench_summary(ns, n));
}

void rows_sync(struct bench *b)
{
    row(b, "barrier_thread", barrier_thread(), 1, 1);
    row(b, "barrier_warp", barrier_warp(), 32, 1);
    row(b, "barrier_block", barrier_block(), 256, 1);
    row(b, "sync_thread", sync_thread(), 1, 0);
    row(b, "sync_warp", sync_warp(), 32, 0);
    row(b, "sync_block", sync_block(), 256, 0);
    host_row(b, "barrier_host", FROM_HOST);
    host_row(b, "nothing_stream", NOTHING); /* what any launch and its synchronisation take */
#ifndef BENCH_NO_STREAM
    host_row(b, "barrier_stream", ON_STREAM);
#endif
}
