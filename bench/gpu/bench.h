/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench.h - the parts that the rows share: buffers with known contents, timed loops inside a kernel, and results.
 *
 * A latency row is a functor whose operator() is one operation, called by every thread of one block.  Thread 0 keeps the
 * difference of the SM's clock between two calls, in shared memory so that the samples cost no traffic that a fence would
 * wait for; the whole loop's globaltimer gives the length of a tick.
 */
#ifndef BENCH_H
#define BENCH_H

#include "map.h"

#include <stddef.h>

#define BENCH_SAMPLES 8192 /* at most, in one launch */
#define BENCH_DATA ((size_t)256 << 20) /* bytes of each of the two large symmetric buffers */

/* What the rows work with; the pointers are symmetric. */
struct bench {
    int pe, n_pes, peer; /* peer: 1 for PE 0, 0 for the others */
    int quick;           /* few iterations, for a memory checker */
    int pin;             /* the main thread stays on one core */
    const char *only;    /* rows whose name starts with it, or NULL */
    char *src, *dst;     /* BENCH_DATA bytes each */
    uint64_t *words;     /* 64, for signals and atomics */
    uint64_t *total;     /* errors of all PEs, on PE 0 */
    int *wrong;          /* device memory: errors found by kernels on this PE */
    uint32_t *samples;   /* device memory, BENCH_SAMPLES */
    uint64_t *span;      /* device memory: ns and ticks of the loop */
    cudaStream_t stream;
};

struct bench_result {
    double p50, mean, p999, max, p99;
};

void bench_cuda(cudaError_t status, const char *what);
#define CUDA(call) bench_cuda((call), #call)

double bench_now_ns(void);
int bench_wanted(const struct bench *b, const char *row);

/* Sorts `v`, n values in ns. */
struct bench_result bench_summary(double *v, int n);
/* The same of a launch's samples. */
struct bench_result bench_samples(const struct bench *b, int n);
/* Collective: prints the row on PE 0 with the errors of all PEs. */
void bench_print(struct bench *b, const char *row, const char *unit, struct bench_result r);

/* Word i of a buffer made with `seed` is bench_word(i, seed). */
__host__ __device__ static inline uint32_t bench_word(size_t i, uint32_t seed)
{
    uint32_t x = (uint32_t)i * 2654435761u ^ seed * 2246822519u;

    x ^= x >> 15;
    return x * 2246822519u ^ x >> 13;
}

void bench_fill(struct bench *b, void *p, size_t bytes, uint32_t seed);
/* Adds the number of wrong words to this PE's errors. */
void bench_check(struct bench *b, const void *p, size_t bytes, uint32_t seed);
void bench_wrong_if(struct bench *b, int wrong);

void rows_sync(struct bench *b);
void rows_amo(struct bench *b);
void rows_signal(struct bench *b);
void rows_latency(struct bench *b);
void rows_bandwidth(struct bench *b);
void rows_rate(struct bench *b);
void rows_coll(struct bench *b);
void rows_stream(struct bench *b);
void rows_tail(struct bench *b);

#ifdef __CUDACC__

#include "clock.h"

/* `Most` threads at most: fewer leave more registers for each. */
template <int Most, class Op>
__global__ void __launch_bounds__(Most) bench_loop(Op op, int warm, int n, uint32_t *samples, uint64_t *span)
{
    __shared__ uint32_t kept[BENCH_SAMPLES];
    uint64_t ns = 0;
    long long first = 0, last = 0;

#pragma unroll 1
    for (int i = 0; i < warm; i++)
        op(i);
    if (threadIdx.x == 0) {
        ns = bench_timer();
        first = last = bench_ticks();
    }
#pragma unroll 1
    for (int i = 0; i < n; i++) {
        op(warm + i);
        if (threadIdx.x == 0) {
            long long t = bench_ticks();

            kept[i] = (uint32_t)(t - last);
            last = t;
        }
    }
    if (threadIdx.x == 0) {
        span[0] = bench_timer() - ns;
        span[1] = (uint64_t)(last - first);
    }
    __syncthreads();
    for (int i = (int)threadIdx.x; i < n; i += (int)blockDim.x)
        samples[i] = kept[i];
}

/* Collective; only PEs with `active` launch.  The result means something on those. */
template <int Most = 1024, class Op>
struct bench_result bench_run(struct bench *b, Op op, int active, int threads, int n)
{
    struct bench_result r = {};
    int warm = b->quick ? 2 : n < 256 ? 16 : 256;

    if (b->quick && n > 32)
        n = 32;
    shmem_barrier_all();
    if (active) {
        bench_loop<Most><<<1, threads, 0, b->stream>>>(op, warm, n, b->samples, b->span);
        CUDA(cudaGetLastError());
        CUDA(cudaStreamSynchronize(b->stream));
        r = bench_samples(b, n);
    }
    shmem_barrier_all();
    return r;
}

#endif

#endif
