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
#if !defined(__CUDACC_RTC__)
#include <shmem/apix.h>
#endif

#endif
