/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shmemx.h - what this library offers beyond OpenSHMEM 1.6; names start with shmemx_ or SHMEMX_.
 *
 * The forms for warps and blocks of kernels, shmemx_..._warp and shmemx_..._block, come with shmem.h itself.
 *
 * shmemx_wtime: Sandia OpenSHMEM and OSSS-UCX have it, and their users' benchmarks call it.
 */
#ifndef SHMEMX_H
#define SHMEMX_H

#include <shmem.h>

/* Hint of shmem_malloc_with_hints: memory of the GPU (shmemx_malloc_device). */
#define SHMEMX_MALLOC_DEVICE (1L << 16)

#if !defined(__CUDACC_RTC__)
/* CUDA's cudaStream_t and CUstream, CUmodule, CUfunction, so that this header needs no CUDA. */
struct CUstream_st;
struct CUmod_st;
struct CUfunc_st;
struct shmemi_dev_module;
struct shmemi_dev_state;

#include <shmem/apix.h>
#if defined(__CUDACC__) && !defined(SHMEM_HOST_ONLY)
#include <shmem/device/launch.h>
#endif
#endif

#endif
