/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * launch.h - launching kernels whose blocks wait for other PEs, by the kernel itself: part of shmemx.h in .cu files.
 *
 * All blocks are on the GPU together or the launch fails; every PE launches.  The library sees only the driver's handle,
 * so that it needs no CUDA runtime.
 */
#ifndef SHMEM_DEVICE_LAUNCH_H
#define SHMEM_DEVICE_LAUNCH_H

#include <cuda_runtime_api.h>

/* As in apix.h. */
extern "C" {
int shmemx_collective_launch_cufunction(struct CUfunc_st *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                        unsigned block_x, unsigned block_y, unsigned block_z, void **args, size_t shared,
                                        struct CUstream_st *stream);
int shmemx_collective_launch_query_gridsize_cufunction(struct CUfunc_st *function, unsigned block_x, unsigned block_y,
                                                       unsigned block_z, size_t shared, int *gridsize);
}

/* 0, or not: the library has said why; CUDA's error when that does not know the kernel, as without a usable GPU. */
static inline int shmemx_collective_launch(const void *kernel, dim3 grid, dim3 block, void **args, size_t shared,
                                           cudaStream_t stream)
{
    cudaFunction_t function;
    cudaError_t status = cudaGetFuncBySymbol(&function, kernel);

    if (status != cudaSuccess) {
        shmemx_collective_launch_cufunction(NULL, grid.x, grid.y, grid.z, block.x, block.y, block.z, args, shared, NULL);
        return (int)status;
    }
    return shmemx_collective_launch_cufunction((struct CUfunc_st *)function, grid.x, grid.y, grid.z, block.x, block.y,
                                               block.z, args, shared, (struct CUstream_st *)stream);
}

/* How many blocks fit on the GPU together.  `args` is there for NVSHMEM's sake and not looked at. */
static inline int shmemx_collective_launch_query_gridsize(const void *kernel, dim3 block, void **args, size_t shared,
                                                          int *gridsize)
{
    cudaFunction_t function;
    cudaError_t status = cudaGetFuncBySymbol(&function, kernel);

    (void)args;
    if (status != cudaSuccess) {
        shmemx_collective_launch_query_gridsize_cufunction(NULL, block.x, block.y, block.z, shared, gridsize);
        return (int)status;
    }
    return shmemx_collective_launch_query_gridsize_cufunction((struct CUfunc_st *)function, block.x, block.y, block.z, shared,
                                                              gridsize);
}

#endif
