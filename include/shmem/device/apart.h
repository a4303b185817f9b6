/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * apart.h - what the NIC's path has copies of its own of.
 *
 * A function that stands behind a pointer (SHMEMI_BEHIND), and all that it calls, follows the calling convention of the GPU's
 * ABI; for its other callers too, who then save registers around the call.  So what both paths call, and comes back from, is
 * there twice: one copy for loads and stores, and these.
 */
#ifndef SHMEM_DEVICE_APART_H
#define SHMEM_DEVICE_APART_H

#include "wait.h"

#ifdef SHMEMI_DEVICE_CODE

SHMEMI_DEV_COLD struct shmemi_spin shmemi_apart_look(struct shmemi_spin s, const struct shmemi_waited *w)
{
    return shmemi_spin_looked(s, w);
}

/* One failed poll. */
SHMEMI_DEV void shmemi_apart_step(struct shmemi_spin *s, uint32_t call, int pe, const void *addr, uint64_t value, int cmp,
                                  uint64_t want)
{
    if (shmemi_spin_pause(s)) {
        struct shmemi_waited w = { call, pe, cmp, addr, value, want };

        *s = shmemi_apart_look(*s, &w);
    }
}

SHMEMI_DEV void shmemi_apart_done(const struct shmemi_spin *s)
{
    if (s->reported)
        shmemi_spin_withdrawn();
}

/* Ends the kernel unless the address is symmetric. */
SHMEMI_DEV_LARGE void shmemi_apart_check(const void *addr, uint64_t len, int world, uint32_t call)
{
    (void)shmemi_dev_search(addr, len, 1, world, call, 1);
}

/* Where it lies for loads and stores, which must lead there. */
SHMEMI_DEV_LARGE char *shmemi_apart_remote(const void *addr, uint64_t len, int world, uint32_t call)
{
    return (char *)(uintptr_t)shmemi_dev_search(addr, len, 1, world, call, 0);
}

#endif
#endif
