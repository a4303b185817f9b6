/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * scope.h - who makes a call together: a thread, a warp or a block, as a value that is a constant at each call site.
 *
 * All threads of the group make the call with the same arguments.
 */
#ifndef SHMEM_DEVICE_SCOPE_H
#define SHMEM_DEVICE_SCOPE_H

#include "atomics.h"

#ifdef SHMEMI_DEVICE_CODE

enum shmemi_scope { SHMEMI_THREAD, SHMEMI_WARP, SHMEMI_BLOCK };

/* Own number in the group. */
SHMEMI_DEV uint32_t shmemi_rank(enum shmemi_scope scope)
{
    return scope == SHMEMI_THREAD ? 0 : scope == SHMEMI_WARP ? shmemi_lane() : shmemi_thread_in_block();
}

/* Threads of the group; the last warp of a block may be short. */
SHMEMI_DEV uint32_t shmemi_size(enum shmemi_scope scope)
{
    return scope == SHMEMI_THREAD ? 1 : scope == SHMEMI_WARP ? shmemi_popc32(shmemi_warp_mask()) : shmemi_block_threads();
}

/* What each thread of the group wrote before, each of them sees behind it. */
SHMEMI_DEV void shmemi_group_sync(enum shmemi_scope scope)
{
    if (scope == SHMEMI_WARP)
        shmemi_warp_sync(shmemi_warp_mask());
    else if (scope == SHMEMI_BLOCK)
        shmemi_block_sync();
}

/* The value of thread 0, in every thread. */
SHMEMI_DEV uint64_t shmemi_group_word(enum shmemi_scope scope, uint64_t v)
{
    if (scope == SHMEMI_WARP)
        return shmemi_shfl64(shmemi_warp_mask(), v, 0);
    if (scope == SHMEMI_BLOCK) {
        SHMEMI_SHARED(uint64_t, word, 1);
        if (shmemi_thread_in_block() == 0)
            *word = v;
        shmemi_block_sync();
        v = *word;
        shmemi_block_sync();
    }
    return v;
}

#endif
#endif
