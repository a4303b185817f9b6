/* SPDX-License-Identifier: BSD-3-Clause */
/* mpp/shmem.h - the old place of shmem.h (deprecated since 1.1), for codes that still include it. */
#ifndef MPP_SHMEM_H
#define MPP_SHMEM_H

#include <shmem.h>

#endif
