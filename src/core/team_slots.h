/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * team_slots.h - the inside of teams, shared by team.c and team_split.c.
 */
#ifndef SHMEMI_TEAM_SLOTS_H
#define SHMEMI_TEAM_SLOTS_H

#include "team.h"

enum { SHMEMI_TEAM_SLOT_WORLD, SHMEMI_TEAM_SLOT_SHARED, SHMEMI_TEAMS_PREDEFINED };

shmem_team_t shmemi_team_handle(const struct shmemi_team *t);

/* The team object of a slot, made on first use; NULL without memory.  Callers own the slot. */
struct shmemi_team *shmemi_team_at(int slot);
/* Brings it to life (stride is not 0).  -ENOMEM. */
int shmemi_team_place(struct shmemi_team *t, int start, int stride, int n_pes, int my_pe, uint64_t epoch);
/* The live team of a slot, or NULL. */
const struct shmemi_team *shmemi_team_live(int slot);
/* Makes its handle stale. */
void shmemi_team_retire(struct shmemi_team *t);

/* Finalize, after the last barrier: the slot and its block are as before first use, but for epochs. */
void shmemi_slot_reset(struct shmemi_team *t);

/* The member of `t` that is `world_pe`, or -1. */
int shmemi_team_index(const struct shmemi_team *t, int world_pe);

#endif
