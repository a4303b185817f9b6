/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ctx.h - communication contexts (specification 1.6, section 9.5).
 *
 * A handle is (generation << 16 | slot + 1) cast to a pointer; 0 is SHMEM_CTX_INVALID and
 * 1 SHMEM_CTX_DEFAULT, which the hot path recognises without a lookup.  PE numbers of a
 * call on a context are relative to the context's team.
 */
#ifndef SHMEMI_CTX_H
#define SHMEMI_CTX_H

#include "check.h"

#include <shmem.h>

/* World PE of `pe` in the context's team; ends the job for an invalid or destroyed context or a PE out of range. */
int shmemi_ctx_lookup_pe(shmem_ctx_t ctx, int pe, const char *call);
/* Ends the job unless ctx is live. */
void shmemi_ctx_check(shmem_ctx_t ctx, const char *call);

SHMEMI_INLINE int shmemi_ctx_world_pe(shmem_ctx_t ctx, int pe, const char *call)
{
    if (shmemi_likely(ctx == SHMEM_CTX_DEFAULT))
        return pe;
    return shmemi_ctx_lookup_pe(ctx, pe, call);
}

/* Beside the options that contexts are created with: in a session with SHMEM_CTX_SESSION_BATCH. */
#define SHMEMI_CTX_IN_BATCH (1L << 30)

/* Where a context other than the default one keeps its queues (net_queue.h), NULL at first; and its options. */
struct shmemi_net_ctx;
struct shmemi_net_ctx **shmemi_ctx_net(shmem_ctx_t ctx, long *options_out, const char *call);
/* The thread level has risen and all is quiet: the queues of the contexts that there are become what the new level asks for. */
void shmemi_ctxs_level_raised(void);
/* CUDA has come up: kernels learn of the contexts that there are. */
void shmemi_ctxs_tell_kernels(void);

int shmemi_ctxs_init(void);
void shmemi_ctxs_fini(void);
/* Destroys the contexts of a team that goes away. */
void shmemi_ctxs_drop_team(shmem_team_t team);

#endif
