/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * team.h - teams: a strided set of world PEs with a slot of shared memory in each member.
 *
 * A handle is (generation << 16 | slot + 1) cast to a pointer, so that a stale
 * handle is told from a live one.  Handle 0 is SHMEM_TEAM_INVALID; slot 0 is
 * the world team (handle 1), slot 1 the shared team (handle 2).
 */
#ifndef SHMEMI_TEAM_H
#define SHMEMI_TEAM_H

#include "state.h"

#include <shmem.h>

struct shmemi_team {
    uint32_t generation; /* odd while live */
    int slot;            /* the same in every member */
    int my_pe;           /* within the team */
    int n_pes;
    int start, stride;   /* world PE of member i: start + i * stride */
    shmem_team_config_t config;
    long config_mask;
    /* epochs and buffers of its collectives: private to sync.c and the coll files */
    struct shmemi_team_coll *coll;
};

int shmemi_teams_init(void); /* world and shared; needs the peers' mappings */
void shmemi_teams_fini(void);
void shmemi_teams_disown(void); /* in a forked child: no team is valid there */

/* The live team behind a handle; ends the job with a message that names `call` for a stale or made-up one. */
struct shmemi_team *shmemi_team_get(shmem_team_t team, const char *call);
/* The same, but NULL for SHMEM_TEAM_INVALID. */
struct shmemi_team *shmemi_team_get_or_invalid(shmem_team_t team, const char *call);

SHMEMI_INLINE int shmemi_team_world_pe(const struct shmemi_team *t, int pe)
{
    return t->start + pe * t->stride;
}

/* Orders nothing but arrival; the team's sync (sync.c).  The barrier adds quiet on the default context. */
void shmemi_team_sync(struct shmemi_team *t, const char *call);
void shmemi_barrier_all(const char *call);

#endif
