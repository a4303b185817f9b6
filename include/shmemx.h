/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shmemx.h - what this library offers beyond OpenSHMEM 1.6; names start with shmemx_ or SHMEMX_.
 *
 * shmemx_wtime: Sandia OpenSHMEM and OSSS-UCX have it, and their users' benchmarks call it.
 */
#ifndef SHMEMX_H
#define SHMEMX_H

#include <shmem.h>
#include <shmem/apix.h>

#endif
