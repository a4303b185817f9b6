/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * simt.h - runs device code on the CPU: a grid of blocks of warps of lanes, each lane a fibre or a thread of
 * its own.
 *
 * Code compiled with SHMEMI_SIMT takes its lanes, warps and blocks from here (shmem/device/port.h).  All
 * blocks run at the same time.  Lanes of a warp are independent: whoever relies on lockstep fails here.
 *
 *     SIMT_FIBRES    one thread; lanes change places at every atomic, pause and warp or block call,
 *                    at random but reproducibly by the seed
 *     SIMT_THREADS   one thread a lane, for ThreadSanitizer: it sees a race that no order between lanes
 *                    excludes.  Of the warp calls only shmemi_warp_sync orders memory, as on a GPU.
 */
#ifndef SIMT_H
#define SIMT_H

#include <stdint.h>

enum simt_mode { SIMT_FIBRES, SIMT_THREADS };

struct simt_grid {
    uint32_t blocks, threads; /* at most 1024 threads a block */
    uint64_t seed;            /* 0: from MARROW_SIMT_SEED, else 1 */
    enum simt_mode mode; /* ThreadSanitizer builds always use threads; so does MARROW_SIMT_MODE=threads */
    uint32_t timeout_ms; /* 0: 60 s, or MARROW_SIMT_TIMEOUT_MS */
};

/* What a launch makes of a wish. */
enum simt_mode simt_mode(enum simt_mode wish);

/*
 * Runs kernel(arg) in every lane and returns when all have ended: 0.  Otherwise standard error has got
 * a message with the seed and where each lane stands:
 *
 *     -EDEADLK     no lane can go on
 *     -EINVAL      lanes disagree about the mask of a warp call, or a lane is not in its own mask; a bad grid
 *     -ETIMEDOUT   lanes still spin
 *
 * After a failure the lanes' stacks are gone with what they held; in SIMT_THREADS the process ends instead
 * (status 3).
 */
int simt_launch(const struct simt_grid *grid, void (*kernel)(void *arg), void *arg);

#endif
