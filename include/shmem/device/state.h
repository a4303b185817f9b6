/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * state.h - what a kernel knows of the job: one struct, filled by the library, read by device code.
 *
 * Each translation unit compiled by nvcc has a __constant__ copy that the library fills at init and after each change
 * (shmem.h says how it finds them); a kernel sees a snapshot, which grows only (heap, teams), so an old one stays right
 * for what existed when the kernel started.  Fixed-width types only; addresses are device-visible ones unless
 * their name ends in _host.
 */
#ifndef SHMEM_DEVICE_STATE_H
#define SHMEM_DEVICE_STATE_H

#include "port.h"

#define SHMEMI_DEV_ABI 1
#define SHMEMI_DEV_NEAR 8 /* peers whose addresses are in the struct itself */

/* Where a peer's memory can be loaded and stored from here; 0: not at all. */
struct shmemi_dev_peer {
    uint64_t heap;  /* its host heap */
    uint64_t dheap; /* its device heap */
};

/* A team of which this PE is a member, by slot; generation 0: none. */
struct shmemi_dev_team {
    uint32_t generation; /* handle = generation << 16 | slot + 1; of the predefined ones 0, with n_pes > 0 */
    int32_t my_pe, n_pes, start, stride;
    uint32_t pad;
    uint64_t sync; /* offset in the device heap of the team's sync block, the same in every member */
};

/* A context made on the host, by slot. */
struct shmemi_dev_ctx {
    uint32_t generation;
    int32_t n_pes, start, stride;
    uint32_t options, pad;
};

/* What a device wait leaves for the host's watchdog, in host memory; also how the host tells kernels to stop. */
struct shmemi_dev_report {
    uint32_t stop;      /* set by the host: waits return, the job is ending */
    uint32_t error;     /* first device-side error: enum shmemi_dev_error */
    uint64_t error_args[4];
    uint32_t waiting;   /* a record below is valid */
    uint32_t call;      /* enum of the call */
    uint64_t addr, value, want;
    int32_t pe, cmp;
};

struct shmemi_dev_state {
    uint32_t abi, bytes; /* SHMEMI_DEV_ABI, sizeof: the library refuses a program built with another */
    int32_t my_pe, n_pes; /* n_pes 0: not initialised */
    uint32_t flags, check;
    uint64_t heap_base, heap_len;   /* own host symmetric heap: addresses as the user has them */
    uint64_t dheap_base, dheap_len; /* own device heap; len: bytes backed so far */
    struct shmemi_dev_peer *peers;  /* n_pes of them */
    struct shmemi_dev_team *teams;  /* by slot; 0 world, 1 shared */
    struct shmemi_dev_ctx *ctxs;
    uint32_t n_teams, n_ctxs;
    struct shmemi_dev_report *report;
    uint64_t hang_ns, timeout_ns;
    struct shmemi_dev_peer near[SHMEMI_DEV_NEAR];
};

#endif
