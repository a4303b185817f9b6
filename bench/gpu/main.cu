/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * main.cu - the GPU benchmark of Marrow and NVSHMEM: one source, map.h has the names.
 *
 *     oshrun -n N bench-marrow [--quick] [--only ROW]      a CSV table on PE 0's standard output
 *
 * One PE a GPU, round robin when there are more PEs.  Exit status 1: values were wrong.
 */
#include "bench.h"

#include <algorithm>
#include <sched.h>
#include <string.h>
#include <time.h>

void bench_cuda(cudaError_t status, const char *what)
{
    if (status == cudaSuccess)
        return;
    fprintf(stderr, "bench: %s: %s\n", what, cudaGetErrorString(status));
    exit(1);
}

double bench_now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int bench_wanted(const struct bench *b, const char *row)
{
    return !b->only || strncmp(row, b->only, strlen(b->only)) == 0;
}

struct bench_result bench_summary(double *v, int n)
{
    struct bench_result r;
    double sum = 0;

    std::sort(v, v + n);
    for (int i = 0; i < n; i++)
        sum += v[i];
    r.p50 = v[n / 2];
    r.mean = sum / n;
    r.p99 = v[(int)((double)(n - 1) * 0.99)];
    r.p999 = v[(int)((double)(n - 1) * 0.999)];
    r.max = v[n - 1];
    return r;
}

struct bench_result bench_samples(const struct bench *b, int n)
{
    static uint32_t ticks[BENCH_SAMPLES];
    static double ns[BENCH_SAMPLES];
    uint64_t span[2];

    CUDA(cudaMemcpy(ticks, b->samples, (size_t)n * sizeof *ticks, cudaMemcpyDeviceToHost));
    CUDA(cudaMemcpy(span, b->span, sizeof span, cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++)
        ns[i] = (double)ticks[i] * (double)span[0] / (double)span[1];
    return bench_summary(ns, n);
}

__global__ void fill(uint32_t *p, size_t words, uint32_t seed)
{
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < words; i += (size_t)gridDim.x * blockDim.x)
        p[i] = bench_word(i, seed);
}

__global__ void check(const uint32_t *p, size_t words, uint32_t seed, int *wrong)
{
    int found = 0;

    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < words; i += (size_t)gridDim.x * blockDim.x)
        found += p[i] != bench_word(i, seed);
    if (found)
        atomicAdd(wrong, found);
}

static unsigned blocks_for(size_t words)
{
    size_t blocks = (words + 255) / 256;

    return blocks > 512 ? 512 : (unsigned)blocks;
}

void bench_fill(struct bench *b, void *p, size_t bytes, uint32_t seed)
{
    fill<<<blocks_for(bytes / 4), 256, 0, b->stream>>>((uint32_t *)p, bytes / 4, seed);
    CUDA(cudaGetLastError());
    CUDA(cudaStreamSynchronize(b->stream));
}

void bench_check(struct bench *b, const void *p, size_t bytes, uint32_t seed)
{
    check<<<blocks_for(bytes / 4), 256, 0, b->stream>>>((const uint32_t *)p, bytes / 4, seed, b->wrong);
    CUDA(cudaGetLastError());
    CUDA(cudaStreamSynchronize(b->stream));
}

void bench_wrong_if(struct bench *b, int wrong)
{
    int now;

    if (!wrong)
        return;
    CUDA(cudaMemcpy(&now, b->wrong, sizeof now, cudaMemcpyDeviceToHost));
    now += wrong;
    CUDA(cudaMemcpy(b->wrong, &now, sizeof now, cudaMemcpyHostToDevice));
}

static int errors;

/* Adds this PE's errors to PE 0's count. */
__global__ void gather_errors(uint64_t *total, const int *wrong)
{
    if (*wrong)
        shmem_uint64_atomic_add(total, (uint64_t)*wrong, 0);
    shmem_quiet();
}

void bench_print(struct bench *b, const char *row, const char *unit, struct bench_result r)
{
    uint64_t wrong = 0;

    CUDA(cudaMemset(b->total, 0, sizeof *b->total));
    CUDA(cudaDeviceSynchronize());
    shmem_barrier_all();
    gather_errors<<<1, 1, 0, b->stream>>>(b->total, b->wrong);
    CUDA(cudaGetLastError());
    CUDA(cudaStreamSynchronize(b->stream));
    shmem_barrier_all();
    CUDA(cudaMemset(b->wrong, 0, sizeof *b->wrong));
    if (b->pe == 0)
        CUDA(cudaMemcpy(&wrong, b->total, sizeof wrong, cudaMemcpyDeviceToHost));
    if (wrong)
        errors = 1;
    if (b->pe == 0) {
        printf("%s,%s,%.4g,%.4g,%.4g,%.4g,%llu,%.4g\n", row, unit, r.p50, r.mean, r.p999, r.max,
               (unsigned long long)wrong, r.p99);
        fflush(stdout);
    }
}

static void row_malloc(struct bench *b)
{
    double ns[100];
    int n = b->quick ? 5 : 100;

    if (!bench_wanted(b, "malloc_free"))
        return;
    for (int i = -3; i < n; i++) {
        double t = bench_now_ns();
        void *p = shmemx_malloc_device((size_t)1 << 20);

        bench_wrong_if(b, !p);
        shmem_free(p);
        if (i >= 0)
            ns[i] = bench_now_ns() - t;
    }
    bench_print(b, "malloc_free_1m", "ns", bench_summary(ns, n));
}

static int number_of(const char *first, const char *second)
{
    const char *text = getenv(first) ? getenv(first) : getenv(second);

    return text ? atoi(text) : -1;
}

static void *symmetric(size_t bytes)
{
    void *p = shmemx_malloc_device(bytes);

    if (!p) {
        fprintf(stderr, "bench: no symmetric device memory for %zu bytes\n", bytes);
        exit(1);
    }
    return p;
}

static void set_up(struct bench *b)
{
    b->pe = shmem_my_pe();
    b->n_pes = shmem_n_pes();
    b->peer = b->pe == 0 ? 1 : 0;
    b->src = (char *)symmetric(BENCH_DATA);
    b->dst = (char *)symmetric(BENCH_DATA);
    b->words = (uint64_t *)symmetric(64 * sizeof *b->words);
    b->total = (uint64_t *)symmetric(sizeof *b->total);
    CUDA(cudaMalloc((void **)&b->wrong, sizeof *b->wrong));
    CUDA(cudaMalloc((void **)&b->samples, BENCH_SAMPLES * sizeof *b->samples));
    CUDA(cudaMalloc((void **)&b->span, 2 * sizeof *b->span));
    CUDA(cudaStreamCreateWithFlags(&b->stream, cudaStreamNonBlocking));
    CUDA(cudaMemset(b->words, 0, 64 * sizeof *b->words));
    CUDA(cudaMemset(b->wrong, 0, sizeof *b->wrong));
    CUDA(cudaDeviceSynchronize());
    shmem_barrier_all();
}

static void all_rows(struct bench *b)
{
    rows_sync(b);
    rows_amo(b);
    rows_signal(b);
    rows_latency(b);
    rows_bandwidth(b);
    rows_rate(b);
    rows_coll(b);
#ifndef BENCH_NO_STREAM
    rows_stream(b);
#endif
    row_malloc(b);
    rows_tail(b);
}

/* The calling thread stays on the pe-th core that this process may use, as under a launcher that binds PEs to cores. */
static void pin_to_core(int pe)
{
    cpu_set_t may, core;

    CPU_ZERO(&core);
    if (sched_getaffinity(0, sizeof may, &may) == 0)
        for (int c = 0, seen = 0; c < CPU_SETSIZE; c++)
            if (CPU_ISSET(c, &may) && seen++ == pe)
                CPU_SET(c, &core);
    if (sched_setaffinity(0, sizeof core, &core) != 0)
        fprintf(stderr, "bench: PE %d cannot be bound to a core\n", pe);
}

static int parse(int argc, char **argv, struct bench *b)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--quick") == 0)
            b->quick = 1;
        else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc)
            b->only = argv[++i];
        else if (strcmp(argv[i], "--pin") == 0)
            b->pin = 1;
        else
            return -1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct bench b = {};
    struct bench_result init = {}, fini = {};
    int pe = number_of("MARROW_PE", "OMPI_COMM_WORLD_RANK"), n = number_of("MARROW_N_PES", "OMPI_COMM_WORLD_SIZE");
    int devices = 0;
    struct cudaDeviceProp prop;
    double t;

    if (parse(argc, argv, &b) || pe < 0 || n < 2) {
        fprintf(stderr, "usage: oshrun -n N %s [--quick] [--pin] [--only ROW], with N of 2 or more\n", argv[0]);
        return 2;
    }
    CUDA(cudaGetDeviceCount(&devices));
    CUDA(cudaSetDevice(pe % devices));
    CUDA(cudaFree(0)); /* the context is not the library's to pay for */
    CUDA(cudaGetDeviceProperties(&prop, pe % devices));
    bench_prepare(pe, n);
    t = bench_now_ns();
    bench_init();
    init.p50 = init.mean = init.p999 = init.max = (bench_now_ns() - t) * 1e-6;
    if (b.pin)
        pin_to_core(pe);
    set_up(&b);
    if (pe == 0)
        printf("# %s, %d PEs on %d GPUs, %s\nrow,unit,p50,mean,p999,max,wrong,p99\n", BENCH_LIBRARY, n, devices, prop.name);
    if (bench_wanted(&b, "init"))
        bench_print(&b, "init", "ms", init);
    all_rows(&b);
    shmem_barrier_all();
    t = bench_now_ns();
    shmem_finalize();
    fini.p50 = (bench_now_ns() - t) * 1e-6;
    if (pe == 0 && bench_wanted(&b, "finalize"))
        printf("finalize,ms,%.4g,%.4g,%.4g,%.4g,0\n", fini.p50, fini.p50, fini.p50, fini.p50);
    return errors;
}
