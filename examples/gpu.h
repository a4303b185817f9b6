/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * gpu.h - what the CUDA examples share: errors of CUDA calls, is there a GPU, numbers on the command line.
 *
 * None of them chooses a device: shmem_init has made one current, by the PE's number on its node.
 */
#ifndef EXAMPLES_GPU_H
#define EXAMPLES_GPU_H

#include <cuda_runtime.h>
#include <shmem.h>
#include <shmemx.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Ends the job when a CUDA call failed. */
#define GPU(call) gpu_must(#call, (call))

static inline void gpu_must(const char *what, cudaError_t status)
{
    if (status == cudaSuccess)
        return;
    fprintf(stderr, "PE %d: %s: %s\n", shmem_my_pe(), what, cudaGetErrorString(status));
    shmem_global_exit(1);
}

/* 0, or -1 with one message from PE 0.  `name` is the program's. */
static inline int gpu_is_there(const char *name)
{
    int n = 0;
    cudaError_t status = cudaGetDeviceCount(&n);

    if (status == cudaSuccess && n > 0)
        return 0;
    if (shmem_my_pe() == 0)
        fprintf(stderr, "%s: needs a GPU: %s\n", name,
                status == cudaSuccess ? "CUDA sees none" : cudaGetErrorString(status));
    return -1;
}

/* Symmetric device memory, zeroed; ends the job when there is none left. */
static inline void *gpu_symmetric(size_t bytes)
{
    void *p = shmemx_malloc_device(bytes ? bytes : 1);

    if (!p) {
        fprintf(stderr, "PE %d: no room for %zu bytes in the device heap\n", shmem_my_pe(), bytes);
        shmem_global_exit(1);
    }
    GPU(cudaMemset(p, 0, bytes));
    GPU(cudaDeviceSynchronize());
    return p;
}

/* Device memory with a copy of `from`. */
static inline void *gpu_copy(const void *from, size_t bytes)
{
    void *p;

    GPU(cudaMalloc(&p, bytes ? bytes : 1));
    if (bytes)
        GPU(cudaMemcpy(p, from, bytes, cudaMemcpyHostToDevice));
    return p;
}

/*
 * Launches a kernel whose blocks wait for each other and for other PEs', so all of them must be on the GPU at once, and waits
 * for its end.  `arg` is its one argument.
 */
static inline void gpu_run_together(const char *name, const void *kernel, int blocks, int threads, void *arg)
{
    void *args[] = { arg };
    int most = 0;

    if (shmemx_collective_launch_query_gridsize(kernel, dim3((unsigned)threads), args, 0, &most) || blocks > most) {
        fprintf(stderr, "%s: PE %d: %d blocks do not fit on the GPU at once, %d do: see --blocks\n", name, shmem_my_pe(),
                blocks, most);
        shmem_global_exit(1);
    }
    if (shmemx_collective_launch(kernel, dim3((unsigned)blocks), dim3((unsigned)threads), args, 0, 0)) {
        fprintf(stderr, "%s: PE %d: the kernel could not be launched\n", name, shmem_my_pe());
        shmem_global_exit(1);
    }
    GPU(cudaDeviceSynchronize());
}

/* The number that the whole text is, or -1: no option takes negative ones. */
static inline long gpu_number(const char *text)
{
    char *end;
    long value = strtol(text, &end, 10);

    return end == text || *end ? -1 : value;
}

static inline double gpu_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif
