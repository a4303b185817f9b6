/* SPDX-License-Identifier: BSD-3-Clause */
/* kernel_args.h - what the library's kernels are given: one struct, the same for all; compiled by cc and nvcc. */
#ifndef SHMEMI_KERNEL_ARGS_H
#define SHMEMI_KERNEL_ARGS_H

#include "shmem/device/state.h"

/* X(name): the kernel is shmemi_k_<name>. */
#define SHMEMI_KERNELS(X) X(amo)

enum shmemi_kernel {
#define SHMEMI_KERNEL_ENUM(name) SHMEMI_KERNEL_##name,
    SHMEMI_KERNELS(SHMEMI_KERNEL_ENUM)
#undef SHMEMI_KERNEL_ENUM
    SHMEMI_KERNEL_COUNT
};

/* Not all kernels read all members. */
struct shmemi_kernel_args {
    uint64_t dest, source; /* addresses here */
    uint64_t bytes;
    uint64_t value, cond;
    uint64_t out;          /* where a result goes */
    uint32_t op, kind, size;
    int32_t pe;
    struct shmemi_dev_team team;
};

#endif
