/* SPDX-License-Identifier: BSD-3-Clause */
/* mpp/shmemx.h - shmemx.h at the old place. */
#ifndef MPP_SHMEMX_H
#define MPP_SHMEMX_H

#include <shmemx.h>

#endif
