/* SPDX-License-Identifier: BSD-3-Clause */
/* amo_op.h - the atomics of kernels, by number. */
#ifndef SHMEM_DEVICE_AMO_OP_H
#define SHMEM_DEVICE_AMO_OP_H

enum shmemi_dev_amo_op {
    SHMEMI_DEV_FETCH,
    SHMEMI_DEV_SET,
    SHMEMI_DEV_SWAP,
    SHMEMI_DEV_CSWAP, /* stores the operand when the word equals *cond */
    SHMEMI_DEV_ADD,   /* the arithmetic ones give the old value when `old_out` is not null */
    SHMEMI_DEV_AND,
    SHMEMI_DEV_OR,
    SHMEMI_DEV_XOR,
};

#endif
