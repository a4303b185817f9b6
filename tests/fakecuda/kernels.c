/* SPDX-License-Identifier: BSD-3-Clause */
/* kernels.c - the library's kernels as functions for the stand-in driver: each launch is one thread. */
#include "transports/cuda/kernels.h"

struct shmemi_dev_state shmemi_dev_state;
const size_t shmemi_dev_state_bytes = sizeof shmemi_dev_state;

#define KERNEL(name)                                                                              \
    void shmemi_k_##name(const unsigned *grid, const unsigned *block, void **args);               \
    void shmemi_k_##name(const unsigned *grid, const unsigned *block, void **args)                \
    {                                                                                             \
        (void)grid;                                                                               \
        (void)block;                                                                              \
        shmemi_k_##name##_body((const struct shmemi_kernel_args *)args[0]);                       \
    }
SHMEMI_KERNELS(KERNEL)
