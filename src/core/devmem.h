/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * devmem.h - device memory as symmetric memory: CUDA comes up, the device heap, what kernels know of the job.
 *
 * CUDA comes up for all PEs together: in init when a PE's program has device code of ours (or a context, or MARROW_CUDA=1),
 * else in the first allocation of device memory.  A job that never asks does not load the driver.
 *
 * Offsets in the device heap, the same on every PE:
 *
 *     team slot 0 | team slot 1 | ... | slot SHMEMI_TEAMS_MAX-1 | what the program allocates ...
 *
 * A team's slot holds what its members' kernels meet at (syncblk.h); it is backed by memory, and zeroed, in the members
 * when the team is made.
 */
#ifndef SHMEMI_DEVMEM_H
#define SHMEMI_DEVMEM_H

#include "shmem/device/state.h"
#include "team.h"

/* Does this process want CUDA from the start? */
bool shmemi_devmem_wanted(void);
/* Init stage: brings CUDA up where a PE wants it. */
int shmemi_devmem_init(void);
void shmemi_devmem_fini(void);
/* Collective over the world: brings CUDA up unless it is.  False on all PEs alike: not possible, and this PE has said why. */
bool shmemi_devmem_start(const char *call);

/* Are the library's kernels loaded, on all PEs of the node? */
bool shmemi_devmem_kernels(void);

/* Why it is not possible, in words. */
const char *shmemi_devmem_why(void);

/* Copies what kernels know to the device, after a change of it. */
int shmemi_devmem_publish(void);
/* All PEs have taken a step: true when it went well on every PE of the node.  Collective over the world. */
bool shmemi_devmem_agree(bool good, int *bad_pe_out, const char *call);

/* A new team's memory: collective over its members.  Does nothing while CUDA is down. */
void shmemi_devmem_team_up(struct shmemi_team *t, const char *call);
void shmemi_devmem_team_gone(int slot);
/* What kernels know of a team. */
struct shmemi_dev_team shmemi_devmem_team_entry(const struct shmemi_team *t);
/* A context is made or, with generation 0, gone. */
void shmemi_devmem_ctx(shmem_ctx_t ctx, uint32_t generation, int start, int stride, int n_pes, long options);

/* The watch over what kernels report (devmem_watch.c): starts it; after how many ns a kernel's wait is to be reported. */
void shmemi_devmem_watch(struct shmemi_dev_report *report);
/* The same by a thread of the caller's, which looks every now and then. */
void shmemi_devmem_watch_by(struct shmemi_dev_report *report);
void shmemi_devmem_look(void);
uint64_t shmemi_devmem_watch_after(void);
/* A call of device code (enum shmemi_dev_call), as a message names it. */
const char *shmemi_devmem_call_name(uint64_t call);
bool shmemi_devmem_has_nic(void); /* kernels have a way to PEs of other nodes */

/* The allocator of the program's part (devmem_alloc.c). */
int shmemi_devmem_alloc_init(size_t from, size_t max);
void shmemi_devmem_alloc_fini(void);
/* The allocated block of the device heap around offset `off`: 0 or -ENOENT. */
int shmemi_devmem_find(size_t off, size_t *start_out, size_t *size_out);
/* Device memory, NULL: none, said why.  call names the routine. */
void *shmemi_devmem_allocate(const char *call, size_t size, size_t align, bool zero);
void shmemi_devmem_release(const char *call, void *ptr);
void *shmemi_devmem_reallocate(const char *call, void *ptr, size_t size);

/* Host heap in use up to `end`: kernels may use that much. */
void shmemi_devmem_host_heap(size_t end);

SHMEMI_INLINE bool shmemi_in_device_heap(const void *addr)
{
    return (uintptr_t)addr - shmemi.dheap_base < shmemi.dheap_len;
}

#endif
