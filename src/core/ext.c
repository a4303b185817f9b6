/* SPDX-License-Identifier: BSD-3-Clause */
/* ext.c - the routines of shmemx.h. */
#include "compiler.h"

#include <shmemx.h>
#include <time.h>

SHMEMI_API(double, shmemx_wtime, (void))
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
