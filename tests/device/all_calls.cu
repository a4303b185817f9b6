/* SPDX-License-Identifier: BSD-3-Clause */
/* all_calls.cu - a kernel for each routine that runs in kernels: nvcc must compile them all; never run. */
#include <shmemx.h>

__device__ char buf[64];

#define DEVCALL(name, args)                \
    extern "C" __global__ void run_##name(void) \
    {                                      \
        (void)name args;                   \
    }
#include "devcalls.h"
