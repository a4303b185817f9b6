/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nccl_lsa.cu - the barrier of NCCL's device API (load/store accessible peers) at the scopes and orders of our barrier and sync.
 *
 *     BENCH_UID_FILE=... NCCL_NVLS_ENABLE=0 oshrun -n N bench-nccl        one PE a GPU
 *
 * Multicast is never asked for.  Prints the columns of main.cu.
 */
#include "clock.h"

#include <cuda_runtime.h>
#include <nccl.h>
#include <nccl_device.h>

#include <algorithm>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SAMPLES 8192
#define WARM 256

static void need_cuda(cudaError_t status, const char *what)
{
    if (status != cudaSuccess) {
        fprintf(stderr, "bench-nccl: %s: %s\n", what, cudaGetErrorString(status));
        exit(1);
    }
}

static void need_nccl(ncclResult_t status, const char *what)
{
    if (status != ncclSuccess) {
        fprintf(stderr, "bench-nccl: %s: %s\n", what, ncclGetErrorString(status));
        exit(1);
    }
}

template <class Coop> __global__ void barriers(ncclDevComm comm, int relaxed, uint32_t *samples, uint64_t *span)
{
    __shared__ uint32_t kept[SAMPLES];
    Coop coop;
    ncclLsaBarrierSession<Coop> bar(coop, comm, ncclTeamTagLsa(), 0u);
    uint64_t ns = 0;
    long long first = 0, last = 0;

    for (int i = -WARM; i < SAMPLES; i++) {
        if (i == 0 && threadIdx.x == 0) {
            ns = bench_timer();
            first = last = bench_ticks();
        }
        if (relaxed)
            bar.sync(coop, cuda::memory_order_relaxed);
        else
            bar.sync(coop, cuda::memory_order_acq_rel);
        if (i >= 0 && threadIdx.x == 0) {
            long long t = bench_ticks();

            kept[i] = (uint32_t)(t - last);
            last = t;
        }
    }
    if (threadIdx.x == 0) {
        span[0] = bench_timer() - ns;
        span[1] = (uint64_t)(last - first);
        for (int i = 0; i < SAMPLES; i++)
            samples[i] = kept[i];
    }
}

/* PE 0 writes the id, the others wait up to 20 seconds for it. */
static void exchange_id(int pe, ncclUniqueId *id)
{
    const char *path = getenv("BENCH_UID_FILE");
    char part[4096];
    FILE *f = NULL;
    int bad;

    if (!path) {
        fprintf(stderr, "bench-nccl: BENCH_UID_FILE is not set\n");
        exit(2);
    }
    snprintf(part, sizeof part, "%s.part", path);
    if (pe == 0) {
        need_nccl(ncclGetUniqueId(id), "ncclGetUniqueId");
        f = fopen(part, "wb");
        bad = !f || fwrite(id, sizeof *id, 1, f) != 1 || fclose(f) || rename(part, path);
    } else {
        for (int i = 0; i < 2000 && !(f = fopen(path, "rb")); i++)
            usleep(10000);
        bad = !f || fread(id, sizeof *id, 1, f) != 1;
    }
    if (bad) {
        fprintf(stderr, "bench-nccl: PE %d: no unique id in %s\n", pe, path);
        exit(1);
    }
}

static void report(int pe, const char *row, const uint32_t *samples, const uint64_t *span)
{
    static uint32_t t[SAMPLES];
    uint64_t s[2];
    double tick, mean;

    need_cuda(cudaDeviceSynchronize(), "kernel");
    need_cuda(cudaMemcpy(t, samples, sizeof t, cudaMemcpyDeviceToHost), "cudaMemcpy");
    need_cuda(cudaMemcpy(s, span, sizeof s, cudaMemcpyDeviceToHost), "cudaMemcpy");
    tick = (double)s[0] / (double)s[1];
    mean = (double)s[0] / SAMPLES;
    std::sort(t, t + SAMPLES);
    if (pe == 0)
        printf("%s,ns,%.4g,%.4g,%.4g,%.4g,0\n", row, t[SAMPLES / 2] * tick, mean, t[(int)((SAMPLES - 1) * 0.999)] * tick,
               t[SAMPLES - 1] * tick);
}

int main(void)
{
    const char *rank = getenv("MARROW_PE"), *size = getenv("MARROW_N_PES");
    int pe = rank ? atoi(rank) : -1, n = size ? atoi(size) : -1, devices = 0;
    ncclUniqueId id;
    ncclComm_t comm;
    ncclDevCommRequirements_t want = {};
    ncclDevComm_t dev;
    uint32_t *samples;
    uint64_t *span;

    need_cuda(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
    if (pe < 0 || n < 2 || n > devices) {
        fprintf(stderr, "usage: oshrun -n N bench-nccl, with 2 or more PEs and a GPU for each\n");
        return 2;
    }
    need_cuda(cudaSetDevice(pe), "cudaSetDevice");
    exchange_id(pe, &id);
    need_nccl(ncclCommInitRank(&comm, n, id, pe), "ncclCommInitRank");
    want.lsaBarrierCount = 1;
    need_nccl(ncclDevCommCreate(comm, &want, &dev), "ncclDevCommCreate");
    need_cuda(cudaMalloc((void **)&samples, SAMPLES * sizeof *samples), "cudaMalloc");
    need_cuda(cudaMalloc((void **)&span, 2 * sizeof *span), "cudaMalloc");
    if (pe == 0)
        printf("# NCCL, %d PEs on %d GPUs\nrow,unit,p50,mean,p999,max,wrong\n", n, devices);
    barriers<ncclCoopThread><<<1, 1>>>(dev, 0, samples, span);
    report(pe, "barrier_thread", samples, span);
    barriers<ncclCoopWarp><<<1, 32>>>(dev, 0, samples, span);
    report(pe, "barrier_warp", samples, span);
    barriers<ncclCoopCta><<<1, 256>>>(dev, 0, samples, span);
    report(pe, "barrier_block", samples, span);
    barriers<ncclCoopThread><<<1, 1>>>(dev, 1, samples, span);
    report(pe, "sync_thread", samples, span);
    barriers<ncclCoopWarp><<<1, 32>>>(dev, 1, samples, span);
    report(pe, "sync_warp", samples, span);
    barriers<ncclCoopCta><<<1, 256>>>(dev, 1, samples, span);
    report(pe, "sync_block", samples, span);
    need_nccl(ncclDevCommDestroy(comm, &dev), "ncclDevCommDestroy");
    need_nccl(ncclCommDestroy(comm), "ncclCommDestroy");
    return 0;
}
