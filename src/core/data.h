/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * data.h - the executable's static data as symmetric memory.
 *
 * At init the pages of .data and .bss are moved onto the node's shared memory, mapped over the same
 * addresses, so peers load, store and do atomics on them as on the heap.
 */
#ifndef SHMEMI_DATA_H
#define SHMEMI_DATA_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Page-rounded range of the executable's writable data, without what the loader protects after relocation.
 * Length 0 when there is none. */
void shmemi_data_find(uintptr_t *base_out, size_t *len_out);

/* Equal for PEs that run the same executable: its build id, or without one the file that it is. */
uint64_t shmemi_data_identity(void);

/* Moves [base, base + len) onto fd at `off`, keeping the contents. */
int shmemi_data_share(uintptr_t base, size_t len, int fd, off_t off);

/* Gives this process a private copy back; peers no longer see it. */
void shmemi_data_unshare(void);

#endif
