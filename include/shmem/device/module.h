/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * module.h - how a program's kernels and the library find each other: each translation unit registers its copy of the
 * device state before main and withdraws it when it is unloaded.
 *
 * Implemented in src/transports/cuda; the library writes every registered copy at init and after each change.
 */
#ifndef SHMEM_DEVICE_MODULE_H
#define SHMEM_DEVICE_MODULE_H

#include "state.h"

struct shmemi_dev_module {
    struct shmemi_dev_module *next; /* the library's */
    uint32_t abi, bytes;            /* SHMEMI_DEV_ABI, sizeof(struct shmemi_dev_state) */
    /* Device address of the copy in the current context; 0, or a cudaError_t. */
    int (*address)(void **out);
};

#ifdef __cplusplus
extern "C" {
#endif
/* Any time, before shmem_init and after shmem_finalize too; the struct stays the caller's. */
void shmemx_device_register(struct shmemi_dev_module *module);
void shmemx_device_unregister(struct shmemi_dev_module *module);
#ifdef __cplusplus
}
#endif

#endif
