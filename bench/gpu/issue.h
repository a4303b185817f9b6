/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * issue.h - how issue.cu and issue_calls.cu measure what a put costs those who post it: a queue without a NIC.
 *
 * Ring, doorbell record, completion entry and the queue itself lie in the GPU's memory, the doorbell in a page of the host.  A row
 * is one kernel of one block; thread 0 takes the clock before and behind each call.  Between calls, outside the time, it plays
 * the NIC when the ring fills: it writes the completion of all that was posted and polls.  After each row the ring's
 * entries, the record, the counters and the doorbell's last value must be what so many puts leave.
 *
 * Times are ns a put.  issue_nothing is what the clock itself takes and is in every row: a row of k puts a call has 1/k of it.
 */
#ifndef BENCH_ISSUE_H
#define BENCH_ISSUE_H

#include "clock.h"
#include "shmem/device/sq.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOG_DEPTH 11
#define DEPTH (1u << LOG_DEPTH)
#define SAMPLES 4096
#define WARM 64
#define QPN 0x1234u
#define RADDR 0x7f0000000000ull

#define CUDA(call) need((call), #call)

static void need(cudaError_t status, const char *what)
{
    if (status == cudaSuccess)
        return;
    fprintf(stderr, "bench-issue: %s: %s\n", what, cudaGetErrorString(status));
    exit(1);
}

/* ---- the measurement ---- */

/* Everything that was handed out is published by now, and complete after this. */
__device__ static void complete_all(struct shmemi_sq *sq)
{
    uint32_t index = (uint32_t)(shmemi_sq_reserved(sq) - 1) & 0xffff;

    SHMEMI_ST_RLX(sq->cqe + SHMEMI_MLX5_CQE_LAST, index >> 8 | (index & 0xff) << 8);
    shmemi_sq_poll(sq);
}

/* `puts` blocks a call; the ring is emptied whenever less than a call's worth is left. */
template <class Op> __global__ void measure(struct shmemi_sq *sq, Op op, uint32_t puts, int n, uint32_t *samples, uint64_t *span)
{
    __shared__ uint32_t kept[SAMPLES];
    uint64_t ns = 0;
    long long first = 0;
    uint32_t used = 0;

#pragma unroll 1
    for (int i = -WARM; i < n; i++) {
        long long from = 0;

        if (used + puts > DEPTH) {
            __syncthreads();
            if (threadIdx.x == 0)
                complete_all(sq);
            __syncthreads();
            used = 0;
        }
        used += puts;
        if (threadIdx.x == 0) {
            if (i == 0) {
                ns = bench_timer();
                first = bench_ticks();
            }
            from = bench_ticks();
        }
        op(sq, i);
        if (threadIdx.x == 0 && i >= 0)
            kept[i] = (uint32_t)(bench_ticks() - from);
    }
    if (threadIdx.x == 0) {
        span[0] = bench_timer() - ns;
        span[1] = (uint64_t)(bench_ticks() - first);
        complete_all(sq);
    }
    __syncthreads();
    for (int i = (int)threadIdx.x; i < n; i += (int)blockDim.x)
        samples[i] = kept[i];
}

struct bench {
    char *ring;
    uint32_t *dbrec, *cqe;
    struct shmemi_sq *sq;
    uint64_t *bell, *bell_gpu; /* the host's page, and where the GPU has it */
    uint32_t *samples;
    uint64_t *span;
    int n, errors;
};

static void set_up(struct bench *b)
{
    void *page = NULL;

    CUDA(cudaMalloc((void **)&b->ring, (size_t)DEPTH * SHMEMI_MLX5_BLOCK));
    CUDA(cudaMalloc((void **)&b->dbrec, 64));
    CUDA(cudaMalloc((void **)&b->cqe, 64));
    CUDA(cudaMalloc((void **)&b->sq, sizeof *b->sq));
    CUDA(cudaMalloc((void **)&b->samples, SAMPLES * sizeof *b->samples));
    CUDA(cudaMalloc((void **)&b->span, 2 * sizeof *b->span));
    if (posix_memalign(&page, 4096, 4096)) {
        fprintf(stderr, "bench-issue: no memory\n");
        exit(1);
    }
    memset(page, 0, 4096);
    CUDA(cudaHostRegister(page, 4096, cudaHostRegisterMapped | cudaHostRegisterPortable));
    b->bell = (uint64_t *)page;
    CUDA(cudaHostGetDevicePointer((void **)&b->bell_gpu, page, 0));
}

/* A fresh queue, as the host would hand it to kernels. */
static void fresh_queue(struct bench *b)
{
    struct shmemi_sq sq;
    uint32_t record = 0, cqe[16];

    memset(&sq, 0, sizeof sq);
    if (shmemi_sq_init(&sq, b->ring, &record, b->bell_gpu, cqe, QPN, LOG_DEPTH, SHMEMI_SQ_NEAR)) {
        fprintf(stderr, "bench-issue: no queue of 2^%d blocks\n", LOG_DEPTH);
        exit(1);
    }
    sq.dbrec = b->dbrec;
    sq.cqe = b->cqe;
    CUDA(cudaMemset(b->ring, 0, (size_t)DEPTH * SHMEMI_MLX5_BLOCK));
    CUDA(cudaMemset(b->dbrec, 0, 64));
    CUDA(cudaMemcpy(b->cqe, cqe, sizeof cqe, cudaMemcpyHostToDevice));
    CUDA(cudaMemcpy(b->sq, &sq, sizeof sq, cudaMemcpyHostToDevice));
    memset(b->bell, 0, 4096);
    CUDA(cudaDeviceSynchronize());
}

static uint32_t be32(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* Every entry of the ring, the record, the counters and (`bell`) the doorbell against what `blocks` puts leave. */
static int wrong_after(struct bench *b, uint64_t blocks, int bell)
{
    static unsigned char ring[DEPTH * SHMEMI_MLX5_BLOCK];
    struct shmemi_sq sq;
    uint32_t record;
    uint64_t last;
    int wrong = 0;

    CUDA(cudaMemcpy(ring, b->ring, sizeof ring, cudaMemcpyDeviceToHost));
    CUDA(cudaMemcpy(&sq, b->sq, sizeof sq, cudaMemcpyDeviceToHost));
    CUDA(cudaMemcpy(&record, b->dbrec, sizeof record, cudaMemcpyDeviceToHost));
    wrong += shmemi_sq_reserved(&sq) != blocks || sq.done != blocks || sq.error != 0;
    wrong += record != shmemi_sq_record(blocks);
    for (uint64_t idx = blocks < DEPTH ? 0 : blocks - DEPTH; idx < blocks; idx++) {
        const unsigned char *e = ring + (idx & (DEPTH - 1)) * SHMEMI_MLX5_BLOCK;
        int add = idx % 2 && e[3] == SHMEMI_MLX5_FA; /* a signal behind its write */

        wrong += be32(e) != ((uint32_t)(idx & 0xffff) << 8 | (add ? SHMEMI_MLX5_FA : SHMEMI_MLX5_WRITE)) ||
                 be32(e + 4) != (QPN << 8 | (add ? 4 : 3)) || (be32(e + 16) != (uint32_t)(RADDR >> 32));
    }
    memcpy(&last, ring + ((blocks - 1) & (DEPTH - 1)) * SHMEMI_MLX5_BLOCK, sizeof last);
    wrong += bell && *(volatile uint64_t *)b->bell != last && *(volatile uint64_t *)(b->bell + 32) != last;
    return wrong;
}

/* `puts` calls that the row divides by, each of `blocks` blocks; bell: the last put's doorbell is the last of all. */
template <class Op> static void row(struct bench *b, const char *name, Op op, int threads, uint32_t puts, uint32_t blocks, int bell)
{
    static uint32_t raw[SAMPLES];
    static double ns[SAMPLES];
    uint64_t span[2];
    double sum = 0, tick;
    uint32_t each = puts * blocks;
    int n = b->n, wrong = 0;

    if (each >= DEPTH / 4 && n > 512) /* long calls: fewer of them */
        n = 512;
    fresh_queue(b);
    measure<<<1, threads>>>(b->sq, op, each, n, b->samples, b->span);
    CUDA(cudaGetLastError());
    CUDA(cudaDeviceSynchronize());
    CUDA(cudaMemcpy(raw, b->samples, (size_t)n * sizeof *raw, cudaMemcpyDeviceToHost));
    CUDA(cudaMemcpy(span, b->span, sizeof span, cudaMemcpyDeviceToHost));
    if (blocks)
        wrong = wrong_after(b, (uint64_t)(n + WARM) * each, bell);
    tick = (double)span[0] / (double)span[1] / puts;
    for (int i = 0; i < n; i++)
        sum += ns[i] = raw[i] * tick;
    std::sort(ns, ns + n);
    printf("%s,ns,%.4g,%.4g,%.4g,%.4g,%d,%.4g\n", name, ns[n / 2], sum / n, ns[(int)((n - 1) * 0.999)], ns[n - 1], wrong,
           ns[(int)((n - 1) * 0.99)]);
    b->errors |= wrong != 0;
}

#endif
