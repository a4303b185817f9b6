/* SPDX-License-Identifier: BSD-3-Clause */
/* soak_seed.h - the seed of a random device test: given, or of the clock, and the same on all PEs. */
#ifndef SOAK_SEED_H
#define SOAK_SEED_H

#include "launch.h"
#include "plan.h"

#include <time.h>

/* PE 0's seed, on all; collective.  Of the clock when it is 0. */
static uint64_t agreed_seed(uint64_t seed)
{
    uint64_t *word = (uint64_t *)shmem_calloc(1, 8);
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    if (!seed)
        seed = soak_mix((uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec) >> 32;
    if (tap_me == 0)
        for (int pe = 0; pe < tap_n; pe++)
            shmem_uint64_p(word, seed, pe);
    shmem_barrier_all();
    return *word;
}

#endif
