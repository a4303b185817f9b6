/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kernels.h - the bodies of the library's kernels, in the common subset: kernels.cu makes GPU code of them,
 * tests/fakecuda functions for the stand-in driver.
 */
#ifndef SHMEMI_CUDA_KERNELS_H
#define SHMEMI_CUDA_KERNELS_H

#include "kernel_args.h"

#include <shmem.h>
#include <shmem/device/amo.h>

#ifdef SHMEMI_DEVICE_CODE

/* One thread: an atomic operation on the word at dest, whose old value goes to out. */
SHMEMI_DEV void shmemi_k_amo_body(const struct shmemi_kernel_args *a)
{
    uint64_t old;

    if (a->size == 4)
        old = shmemi_dev_amo32((enum shmemi_dev_amo_op)a->op, (uint32_t *)(uintptr_t)a->dest, (uint32_t)a->value,
                               (uint32_t)a->cond);
    else
        old = shmemi_dev_amo64((enum shmemi_dev_amo_op)a->op, (uint64_t *)(uintptr_t)a->dest, a->value, a->cond);
    SHMEMI_ST_RLX((uint64_t *)(uintptr_t)a->out, old);
}

#endif
#endif
