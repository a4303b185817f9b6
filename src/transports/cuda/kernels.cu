/* SPDX-License-Identifier: BSD-3-Clause */
/* kernels.cu - the library's kernels; their bodies are in kernels.h. */
#include "kernels.h"

#ifdef SHMEMI_DEVICE_CODE
#define KERNEL(name)                                                               \
    extern "C" __global__ void __launch_bounds__(SHMEMI_KERNEL_THREADS)            \
    shmemi_k_##name(const __grid_constant__ struct shmemi_kernel_args args)        \
    {                                                                              \
        shmemi_k_##name##_body(&args);                                             \
    }
#else
#define KERNEL(name)                                                               \
    extern "C" __global__ void __launch_bounds__(SHMEMI_KERNEL_THREADS)            \
    shmemi_k_##name(const __grid_constant__ struct shmemi_kernel_args)             \
    {                                                                              \
    }
#endif
SHMEMI_KERNELS(KERNEL)
