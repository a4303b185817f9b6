/* SPDX-License-Identifier: BSD-3-Clause */
/* rate.cu - rows of PE 0 sending as much as it can to PE 1: bandwidth by number of blocks, single stores, atomics. */
#include "bench.h"

#define CALL ((size_t)1 << 20) /* bytes in one call at most */
#define REPS 7

/* Block k moves bytes k * share .. (k + 1) * share. */
template <int Get> __global__ void __launch_bounds__(1024) move(char *dst, const char *src, size_t share)
{
    size_t from = (size_t)blockIdx.x * share;

    for (size_t at = from; at < from + share; at += CALL) {
        size_t bytes = from + share - at < CALL ? from + share - at : CALL;

        if (Get)
            shmemx_getmem_nbi_block(dst + at, src + at, bytes, 1);
        else
            shmemx_putmem_nbi_block(dst + at, src + at, bytes, 1);
    }
    if (threadIdx.x == 0)
        shmem_quiet();
}

/* Each thread stores words of 8 bytes, neighbours side by side. */
__global__ void __launch_bounds__(1024) store(int64_t *dst, int each)
{
    size_t all = (size_t)gridDim.x * blockDim.x, me = (size_t)blockIdx.x * blockDim.x + threadIdx.x;

    for (int i = 0; i < each; i++)
        shmem_int64_p(dst + (size_t)i * all + me, (int64_t)((size_t)i * all + me) * 3 + 1, 1);
}

__global__ void check_stored(const int64_t *p, size_t words, int *wrong)
{
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < words; i += (size_t)gridDim.x * blockDim.x)
        if (p[i] != (int64_t)i * 3 + 1)
            atomicAdd(wrong, 1);
}

/* Spread: a word for each thread; contended: one word for all. */
__global__ void __launch_bounds__(1024) add(uint64_t *word, int each, int spread)
{
    size_t me = spread ? (size_t)blockIdx.x * blockDim.x + threadIdx.x : 0;

    for (int i = 0; i < each; i++)
        shmem_uint64_atomic_add(word + me, 1, 1);
}

__global__ void check_added(const uint64_t *p, size_t words, uint64_t want, int *wrong)
{
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < words; i += (size_t)gridDim.x * blockDim.x)
        if (p[i] != want)
            atomicAdd(wrong, 1);
}

/* Runs `launch` on PE 0 with events around it: `amount` over the time of a run, in 1e9 a second; the slowest run is p999. */
template <class Launch> static struct bench_result rate(struct bench *b, double amount, Launch launch)
{
    struct bench_result r = {};
    double v[REPS];
    int n = b->quick ? 1 : REPS;
    cudaEvent_t from, to;

    shmem_barrier_all();
    if (b->pe == 0) {
        CUDA(cudaEventCreate(&from));
        CUDA(cudaEventCreate(&to));
        for (int i = -1; i < n; i++) {
            float ms;

            CUDA(cudaEventRecord(from, b->stream));
            launch();
            CUDA(cudaGetLastError());
            CUDA(cudaEventRecord(to, b->stream));
            CUDA(cudaEventSynchronize(to));
            CUDA(cudaEventElapsedTime(&ms, from, to));
            if (i >= 0)
                v[i] = amount / ((double)ms * 1e6);
        }
        CUDA(cudaEventDestroy(from));
        CUDA(cudaEventDestroy(to));
        r = bench_summary(v, n);
        r.p999 = v[0];
    }
    shmem_barrier_all();
    return r;
}

static void bandwidth_row(struct bench *b, int blocks, int get)
{
    size_t total = b->quick ? (size_t)4 << 20 : BENCH_DATA, share = total / (size_t)blocks / 4096 * 4096;
    uint32_t seed = 300u + (uint32_t)blocks;
    struct bench_result r;
    char name[32];

    snprintf(name, sizeof name, "%s_bw_%d", get ? "get" : "put", blocks);
    if (!bench_wanted(b, name))
        return;
    bench_fill(b, b->src, share * (size_t)blocks, seed + (uint32_t)b->pe);
    CUDA(cudaMemset(b->dst, 0, share * (size_t)blocks));
    CUDA(cudaDeviceSynchronize());
    r = rate(b, (double)share * blocks, [=] {
        if (get)
            move<1><<<blocks, 1024, 0, b->stream>>>(b->dst, b->src, share);
        else
            move<0><<<blocks, 1024, 0, b->stream>>>(b->dst, b->src, share);
    });
    if (b->pe == (get ? 0 : 1))
        bench_check(b, b->dst, share * (size_t)blocks, seed + (get ? 1u : 0u));
    bench_print(b, name, "GB/s", r);
}

void rows_bandwidth(struct bench *b)
{
    static const int blocks[] = { 1, 4, 16, 32, 132 };

    for (int get = 0; get < 2; get++)
        for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++)
            bandwidth_row(b, blocks[i], get);
}

static void store_row(struct bench *b)
{
    const int each = b->quick ? 2 : 64, blocks = 264;
    const size_t words = (size_t)each * blocks * 1024;
    struct bench_result r;

    if (!bench_wanted(b, "p_rate"))
        return;
    CUDA(cudaMemset(b->dst, 0, words * 8));
    CUDA(cudaDeviceSynchronize());
    r = rate(b, (double)words, [=] { store<<<blocks, 1024, 0, b->stream>>>((int64_t *)b->dst, each); });
    if (b->pe == 1) {
        check_stored<<<512, 256, 0, b->stream>>>((const int64_t *)b->dst, words, b->wrong);
        CUDA(cudaStreamSynchronize(b->stream));
    }
    bench_print(b, "p_rate", "G/s", r);
}

static void add_row(struct bench *b, const char *name, int spread)
{
    const int each = b->quick ? 2 : 32, blocks = 264, runs = b->quick ? 2 : REPS + 1;
    const size_t threads = (size_t)blocks * 1024, words = spread ? threads : 1;
    struct bench_result r;

    if (!bench_wanted(b, name))
        return;
    CUDA(cudaMemset(b->dst, 0, words * 8));
    CUDA(cudaDeviceSynchronize());
    r = rate(b, (double)threads * each,
             [=] { add<<<blocks, 1024, 0, b->stream>>>((uint64_t *)b->dst, each, spread); });
    if (b->pe == 1) {
        uint64_t want = (uint64_t)runs * (uint64_t)each * (spread ? 1 : threads);

        check_added<<<512, 256, 0, b->stream>>>((const uint64_t *)b->dst, words, want, b->wrong);
        CUDA(cudaStreamSynchronize(b->stream));
    }
    bench_print(b, name, "G/s", r);
}

void rows_rate(struct bench *b)
{
    store_row(b);
    add_row(b, "add_rate_spread", 1);
    add_row(b, "add_rate_one_word", 0);
}
