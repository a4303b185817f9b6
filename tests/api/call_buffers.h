/* SPDX-License-Identifier: BSD-3-Clause */
/* call_buffers.h - the symmetric arguments of the generated calls in api_calls.h and api_gencalls.h. */
#ifndef CALL_BUFFERS_H
#define CALL_BUFFERS_H

#include <shmem.h>

#define BUFFER __attribute__((aligned(64), unused)) static char

BUFFER buf_dest[256];
BUFFER buf_source[256];
BUFFER buf_fetch[64];
BUFFER buf_pWrk[256];
/* all zero for ever: what the waits and tests look at */
BUFFER buf_ivar[64];
BUFFER buf_ivars[64];
BUFFER buf_cmp_values[64];
static uint64_t sig;
static size_t indices[4];
static long pSync[SHMEM_SYNC_SIZE];
static shmem_ctx_t ctx;
static unsigned long calls;

#endif
