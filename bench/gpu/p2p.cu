/* SPDX-License-Identifier: BSD-3-Clause */
/* p2p.cu - rows between PE 0 and PE 1: atomics, ping-pongs, the latency of put with quiet and of get. */
#include "bench.h"

#include <string.h>

/*
 * What these give is part of the next call, so that each waits for the one before.  A row says how long PE 1's word takes to
 * come: a library that keeps it in a cache of this GPU shows its cache.
 */
struct fetch_add {
    uint64_t *word, old;

    __device__ void operator()(int) { old = shmem_uint64_atomic_fetch_add(word + (old >> 63), 1, 1); }
};

struct compare_swap {
    uint64_t *word, next;

    __device__ void operator()(int) { next = shmem_uint64_atomic_compare_swap(word, next, next + 1, 1) + 1; }
};

struct get_word {
    int64_t *word;
    uint64_t zero; /* all words are 0 */

    __device__ void operator()(int) { zero = (uint64_t)shmem_int64_g(word + zero, 1); }
};

struct quiet {
    __device__ void operator()(int) const { shmem_quiet(); }
};

/* The word counts the calls: bench_run makes 256 before its samples. */
template <class Op> static void atomic_row(struct bench *b, const char *name, Op op, int counts)
{
    struct bench_result r;
    uint64_t value;

    if (!bench_wanted(b, name))
        return;
    CUDA(cudaMemset(b->words, 0, sizeof *b->words));
    CUDA(cudaDeviceSynchronize());
    r = bench_run<32>(b, op, b->pe == 0, 1, BENCH_SAMPLES);
    CUDA(cudaMemcpy(&value, b->words, sizeof value, cudaMemcpyDeviceToHost));
    if (counts && b->pe == 1)
        bench_wrong_if(b, value != (b->quick ? 34u : BENCH_SAMPLES + 256u));
    bench_print(b, name, "ns", r);
}

void rows_amo(struct bench *b)
{
    struct fetch_add add = { b->words, 0 };
    struct compare_swap swap = { b->words, 0 };
    struct get_word get = { (int64_t *)b->words, 0 };

    atomic_row(b, "fetch_add", add, 1);
    atomic_row(b, "compare_swap", swap, 1);
    atomic_row(b, "g", get, 0);
    atomic_row(b, "quiet", quiet(), 0);
}

/* A round trip: PE 0 sends, PE 1 answers when it has come. */
struct signal_pong {
    uint64_t *sig;
    int pe;

    __device__ void operator()(int i) const
    {
        if (pe == 0)
            shmemx_signal_op(sig, (uint64_t)i + 1, SHMEM_SIGNAL_SET, 1);
        shmem_signal_wait_until(sig, SHMEM_CMP_GE, (uint64_t)i + 1);
        if (pe == 1)
            shmemx_signal_op(sig, (uint64_t)i + 1, SHMEM_SIGNAL_SET, 0);
    }
};

struct put_signal_pong {
    char *dst;
    const char *src;
    size_t bytes;
    uint64_t *sig;
    int pe;

    __device__ void operator()(int i) const
    {
        if (pe == 0)
            shmemx_putmem_signal_block(dst, src, bytes, sig, (uint64_t)i + 1, SHMEM_SIGNAL_SET, 1);
        if (threadIdx.x == 0)
            shmem_signal_wait_until(sig, SHMEM_CMP_GE, (uint64_t)i + 1);
        __syncthreads();
        if (pe == 1)
            shmemx_putmem_signal_block(dst, src, bytes, sig, (uint64_t)i + 1, SHMEM_SIGNAL_SET, 0);
    }
};

/*
 * The same, but what is sent carries the round's number in every word, and who gets it looks at all of them: data must not
 * come after its signal.
 */
struct put_signal_proof {
    uint32_t *dst, *src;
    size_t words;
    uint64_t *sig;
    int *wrong;
    int pe;

    __device__ void send(int i, int to) const
    {
        for (size_t k = threadIdx.x; k < words; k += blockDim.x)
            src[k] = (uint32_t)i * 7u + (uint32_t)k;
        __syncthreads();
        shmemx_putmem_signal_block(dst, src, words * 4, sig, (uint64_t)i + 1, SHMEM_SIGNAL_SET, to);
    }

    __device__ void operator()(int i) const
    {
        if (pe == 0)
            send(i, 1);
        if (threadIdx.x == 0)
            shmem_signal_wait_until(sig, SHMEM_CMP_GE, (uint64_t)i + 1);
        __syncthreads();
        for (size_t k = threadIdx.x; k < words; k += blockDim.x)
            if (((volatile uint32_t *)dst)[k] != (uint32_t)i * 7u + (uint32_t)k)
                atomicAdd(wrong, 1);
        __syncthreads();
        if (pe == 1)
            send(i, 0);
    }
};

static void clear_words(struct bench *b)
{
    CUDA(cudaMemset(b->words, 0, sizeof *b->words));
    CUDA(cudaDeviceSynchronize());
}

static void put_signal_row(struct bench *b, const char *name, size_t bytes, int n)
{
    struct put_signal_pong op = { b->dst, b->src, bytes, b->words, b->pe };
    struct put_signal_proof proof = { (uint32_t *)b->dst, (uint32_t *)b->src, bytes / 4, b->words, b->wrong, b->pe };
    struct bench_result r;

    if (!bench_wanted(b, name))
        return;
    clear_words(b);
    bench_fill(b, b->src, bytes, 100u + (uint32_t)b->pe);
    r = bench_run(b, op, b->pe < 2, 1024, n);
    if (b->pe < 2)
        bench_check(b, b->dst, bytes, 100u + (uint32_t)b->peer);
    clear_words(b);
    bench_run(b, proof, b->pe < 2, 1024, 200);
    bench_print(b, name, "ns", r);
}

void rows_signal(struct bench *b)
{
    if (bench_wanted(b, "signal_pingpong")) {
        struct signal_pong op = { b->words, b->pe };

        clear_words(b);
        bench_print(b, "signal_pingpong", "ns", bench_run<32>(b, op, b->pe < 2, 1, BENCH_SAMPLES));
    }
    put_signal_row(b, "put_signal_pingpong_8", 8, BENCH_SAMPLES);
    put_signal_row(b, "put_signal_pingpong_16k", (size_t)16 << 10, BENCH_SAMPLES);
    put_signal_row(b, "put_signal_pingpong_256k", (size_t)256 << 10, 2000);
}

struct put_thread {
    char *dst;
    const char *src;
    size_t bytes;

    __device__ void operator()(int) const
    {
        shmem_putmem(dst, src, bytes, 1);
        shmem_quiet();
    }
};

struct put_block {
    char *dst;
    const char *src;
    size_t bytes;

    __device__ void operator()(int) const
    {
        shmemx_putmem_block(dst, src, bytes, 1);
        if (threadIdx.x == 0)
            shmem_quiet();
        __syncthreads();
    }
};

struct get_block {
    char *dst;
    const char *src;
    size_t bytes;

    __device__ void operator()(int) const { shmemx_getmem_block(dst, src, bytes, 1); }
};

template <class Op, int Threads>
static void latency_row(struct bench *b, const char *name, size_t bytes, int n, int is_get)
{
    Op op = { b->dst, b->src, bytes };
    uint32_t seed = 200u + (uint32_t)strlen(name);
    struct bench_result r;

    if (!bench_wanted(b, name))
        return;
    bench_fill(b, b->src, bytes, seed + (uint32_t)b->pe);
    CUDA(cudaMemset(b->dst, 0, bytes));
    CUDA(cudaDeviceSynchronize());
    r = bench_run<Threads == 1 ? 32 : Threads>(b, op, b->pe == 0, Threads, n);
    if (b->pe == (is_get ? 0 : 1))
        bench_check(b, b->dst, bytes, seed + (is_get ? 1u : 0u));
    bench_print(b, name, "ns", r);
}

void rows_latency(struct bench *b)
{
    latency_row<put_thread, 1>(b, "put_thread_8", 8, BENCH_SAMPLES, 0);
    latency_row<put_thread, 1>(b, "put_thread_4k", 4096, 4000, 0);
    latency_row<put_block, 1024>(b, "put_block_8", 8, BENCH_SAMPLES, 0);
    latency_row<put_block, 1024>(b, "put_block_64k", (size_t)64 << 10, BENCH_SAMPLES, 0);
    latency_row<put_block, 1024>(b, "put_block_1m", (size_t)1 << 20, 2000, 0);
    latency_row<get_block, 1024>(b, "get_block_4k", 4096, BENCH_SAMPLES, 1);
    latency_row<get_block, 1024>(b, "get_block_64k", (size_t)64 << 10, BENCH_SAMPLES, 1);
    latency_row<get_block, 1024>(b, "get_block_1m", (size_t)1 << 20, 2000, 1);
}
