/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tail.cu - rows of barriers whose slowest ones count: 100,000 from a kernel, and fewer that the CPU drives, from the host and
 * on a stream.
 *
 * They run only when asked for (--only tail): run.sh does so once on an idle machine and once with a busy process on each CPU
 * core, and shows p50, p99, p99.9 and max side by side.  Rows that the CPU drives end after TAIL_SECONDS at the latest.
 */
#include "bench.h"

#include <string.h>

#define TAIL_DEVICE 100000
#define TAIL_HOST 20000
#define TAIL_CHUNK 250 /* barriers between two looks at the time */
#define TAIL_SECONDS 4

struct tail_barrier {
    __device__ void operator()(int) const { shmemx_barrier_all_block(); }
};

/* As many launches as it takes; the launches are not timed. */
static void device_row(struct bench *b)
{
    static double ns[TAIL_DEVICE + BENCH_SAMPLES];
    static uint32_t ticks[BENCH_SAMPLES];
    int n = b->quick ? 32 : TAIL_DEVICE, part = b->quick ? 32 : BENCH_SAMPLES, have = 0;
    uint64_t span[2];

    while (have < n) {
        bench_run<256>(b, tail_barrier(), 1, 256, part);
        CUDA(cudaMemcpy(ticks, b->samples, (size_t)part * sizeof *ticks, cudaMemcpyDeviceToHost));
        CUDA(cudaMemcpy(span, b->span, sizeof span, cudaMemcpyDeviceToHost));
        for (int i = 0; i < part; i++)
            ns[have++] = ticks[i] * (double)span[0] / (double)span[1];
    }
    bench_print(b, "tail_device", "ns", bench_summary(ns, n));
}

__global__ void tell(int64_t *word, int64_t value, int n_pes)
{
    for (int p = 0; p < n_pes; p++)
        shmem_int64_p(word, value, p);
    shmem_quiet();
}

/* Collective: PE 0's opinion. */
static int goes_on(struct bench *b, int64_t mine)
{
    int64_t value = 0;

    if (b->pe == 0) {
        tell<<<1, 1, 0, b->stream>>>((int64_t *)b->words + 31, mine, b->n_pes);
        CUDA(cudaGetLastError());
        CUDA(cudaStreamSynchronize(b->stream));
    }
    shmem_barrier_all();
    CUDA(cudaMemcpy(&value, b->words + 31, sizeof value, cudaMemcpyDeviceToHost));
    shmem_barrier_all();
    return (int)value;
}

static void host_row(struct bench *b, const char *name, int on_stream)
{
    static double ns[TAIL_HOST];
    int n = b->quick ? 20 : TAIL_HOST, have = 0;
    double begin = bench_now_ns();

    do {
        for (int i = 0; i < TAIL_CHUNK && have < n; i++) {
            double t = bench_now_ns();

            if (on_stream) {
#ifndef BENCH_NO_STREAM
                shmemx_barrier_all_on_stream(b->stream);
#endif
                CUDA(cudaStreamSynchronize(b->stream));
            } else {
                shmem_barrier_all();
            }
            ns[have++] = bench_now_ns() - t;
        }
    } while (goes_on(b, have < n && bench_now_ns() - begin < TAIL_SECONDS * 1e9));
    bench_print(b, name, "ns", bench_summary(ns, have));
}

void rows_tail(struct bench *b)
{
    if (!b->only || strncmp(b->only, "tail", 4) != 0)
        return;
    if (bench_wanted(b, "tail_device"))
        device_row(b);
    if (bench_wanted(b, "tail_host"))
        host_row(b, "tail_host", 0);
#ifndef BENCH_NO_STREAM
    if (bench_wanted(b, "tail_stream"))
        host_row(b, "tail_stream", 1);
#endif
}
