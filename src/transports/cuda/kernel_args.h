/* SPDX-License-Identifier: BSD-3-Clause */
/* kernel_args.h - what the library's kernels are given: one struct, the same for all; compiled by cc and nvcc. */
#ifndef SHMEMI_KERNEL_ARGS_H
#define SHMEMI_KERNEL_ARGS_H

#include "shmem/device/state.h"

/* X(name): the kernel is shmemi_k_<name>. */
#define SHMEMI_KERNELS(X) \
    X(amo) X(signal) X(store) X(wait) X(far) X(sync) X(small) X(exchange) X(broadcast) X(reduce)

enum shmemi_kernel {
#define SHMEMI_KERNEL_ENUM(name) SHMEMI_KERNEL_##name,
    SHMEMI_KERNELS(SHMEMI_KERNEL_ENUM)
#undef SHMEMI_KERNEL_ENUM
    SHMEMI_KERNEL_COUNT
};

/* What kernel `far` does, by the NIC, with PE `root`; strides in elements are in value and cond. */
enum shmemi_kernel_far {
    SHMEMI_KERNEL_PUT, SHMEMI_KERNEL_GET, SHMEMI_KERNEL_IPUT, SHMEMI_KERNEL_IGET, SHMEMI_KERNEL_P, SHMEMI_KERNEL_SIGNAL,
    SHMEMI_KERNEL_QUIET,
};

/* Which collective kernel `small` does. */
enum shmemi_kernel_coll {
    SHMEMI_KERNEL_BROADCAST, SHMEMI_KERNEL_FCOLLECT, SHMEMI_KERNEL_ALLTOALL, SHMEMI_KERNEL_COLLECT, SHMEMI_KERNEL_REDUCE,
};

/* The operators and kinds of elements of reduce.h (device), for who cannot include it. */
enum shmemi_kernel_red_op {
    SHMEMI_KERNEL_SUM, SHMEMI_KERNEL_PROD, SHMEMI_KERNEL_MIN, SHMEMI_KERNEL_MAX, SHMEMI_KERNEL_AND, SHMEMI_KERNEL_OR,
    SHMEMI_KERNEL_XOR,
};
enum shmemi_kernel_red_kind {
    SHMEMI_KERNEL_U8, SHMEMI_KERNEL_U16, SHMEMI_KERNEL_U32, SHMEMI_KERNEL_U64, SHMEMI_KERNEL_I8, SHMEMI_KERNEL_I16,
    SHMEMI_KERNEL_I32, SHMEMI_KERNEL_I64, SHMEMI_KERNEL_F32, SHMEMI_KERNEL_F64, SHMEMI_KERNEL_C32, SHMEMI_KERNEL_C64,
    SHMEMI_KERNEL_NO_KIND /* long double: not on GPUs */
};

#define SHMEMI_KERNEL_THREADS 512  /* of a block, but for the kernels of one thread or warp */
#define SHMEMI_KERNEL_BLOCKS 32    /* at most: each block meets its counterparts on a channel of its own (syncblk.h) */

/* Not all kernels read all members. */
struct shmemi_kernel_args {
    uint64_t dest, source; /* addresses here */
    uint64_t bytes;
    uint64_t value, cond;
    uint64_t out;          /* where a result goes */
    uint32_t op;           /* of an atomic, a signal, a reduction; a comparison */
    int32_t kind;          /* of elements */
    uint32_t size;
    uint32_t coll;         /* or what kernel `far` does */
    int32_t root;
    uint32_t fenced;
    uint64_t team_handle;
    struct shmemi_dev_team team; /* far: only whether it has members on other nodes */
};

#endif
