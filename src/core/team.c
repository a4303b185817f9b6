/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * team.c - the table of live teams, the predefined ones, and what can be asked about a team
 * (specification 1.6, section 9.4).  team_split.c makes and destroys them.
 */
#include "team.h"

#include "check.h"
#include "exit.h"
#include "reduce.h"
#include "sync.h"
#include "team_slots.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

/*
 * By slot.  A team's memory is kept when it is destroyed and serves the slot's next team, so that a
 * thread that looks up a stale handle reads a generation and not freed memory.
 */
static struct shmemi_team *table[SHMEMI_TEAMS_MAX];

/* The predefined teams' last epochs outlive finalize: another init may find the same memory, or zeroes. */
static uint64_t predefined_epoch[SHMEMI_TEAMS_PREDEFINED];

shmem_team_t shmemi_team_handle(const struct shmemi_team *t)
{
    uintptr_t generation = t->slot < SHMEMI_TEAMS_PREDEFINED ? 0 : t->generation;

    return (shmem_team_t)(generation << 16 | (uintptr_t)(t->slot + 1));
}

SHMEMI_COLD SHMEMI_NORETURN static void bad_team(shmem_team_t team, const char *call)
{
    shmemi_check_init(call);
    if (shmemi_exit_is_child())
        shmemi_fatal(call, "called in process %d, which PE %d has forked: it is no PE and cannot meet the others",
                     (int)getpid(), shmemi.my_pe);
    if (team == SHMEM_TEAM_INVALID)
        shmemi_fatal(call, "team is SHMEM_TEAM_INVALID");
    shmemi_fatal(call, "team handle 0x%zx is not valid: destroyed, or never returned by a split",
                 (size_t)(uintptr_t)team);
}

struct shmemi_team *shmemi_team_get(shmem_team_t team, const char *call)
{
    uintptr_t handle = (uintptr_t)team, slot = (handle & 0xffff) - 1;
    struct shmemi_team *t;

    if (shmemi_unlikely(slot >= SHMEMI_TEAMS_MAX))
        bad_team(team, call);
    t = SHMEMI_LD_ACQ(&table[slot]); /* pairs with shmemi_team_place */
    if (shmemi_unlikely(!t || !(SHMEMI_LD_RLX(&t->generation) & 1) || shmemi_team_handle(t) != team))
        bad_team(team, call);
    return t;
}

struct shmemi_team *shmemi_team_get_or_invalid(shmem_team_t team, const char *call)
{
    shmemi_check_init(call);
    return team == SHMEM_TEAM_INVALID ? NULL : shmemi_team_get(team, call);
}

struct shmemi_team *shmemi_team_at(int slot)
{
    struct shmemi_team *t = table[slot];

    if (t)
        return t;
    t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    t->coll = aligned_alloc(SHMEMI_CACHELINE, shmemi_round_up(sizeof *t->coll, SHMEMI_CACHELINE));
    if (!t->coll) {
        free(t);
        return NULL;
    }
    memset(t->coll, 0, sizeof *t->coll);
    t->slot = slot;
    SHMEMI_ST_REL(&table[slot], t);
    return t;
}

int shmemi_team_place(struct shmemi_team *t, int start, int stride, int n_pes, int my_pe, uint64_t epoch)
{
    int rc;

    t->start = start;
    t->stride = stride;
    t->n_pes = n_pes;
    t->my_pe = my_pe;
    rc = shmemi_sync_setup(t, epoch);
    if (rc)
        return rc;
    SHMEMI_ST_REL(&t->generation, t->generation + 1); /* odd: live; pairs with shmemi_team_get */
    return 0;
}

const struct shmemi_team *shmemi_team_live(int slot)
{
    const struct shmemi_team *t = table[slot];

    return t && (t->generation & 1) ? t : NULL;
}

void shmemi_team_retire(struct shmemi_team *t)
{
    if (t->generation & 1)
        SHMEMI_ST_REL(&t->generation, t->generation + 1);
}

/* ---- world and shared ---- */

/* The node's PEs as start and stride.  PEs that are dealt out unevenly have none: the team is then this PE alone. */
static void shared_triplet(int *start, int *stride, int *n_pes, int *my_pe)
{
    const int *pes = shmemi.local_pes;

    *start = pes[0];
    *stride = shmemi.n_local > 1 ? pes[1] - pes[0] : 1;
    *n_pes = shmemi.n_local;
    *my_pe = shmemi.my_local;
    for (int i = 1; i < shmemi.n_local; i++)
        if (pes[i] - pes[i - 1] != *stride) {
            shmemi_warn("team", "SHMEM_TEAM_SHARED has only this PE: the PEs of its node are not evenly spaced");
            *start = shmemi.my_pe;
            *stride = *n_pes = 1;
            *my_pe = 0;
            return;
        }
}

int shmemi_teams_init(void)
{
    struct shmemi_team *world, *shared;
    int start, stride, n_pes, my_pe, rc;

    shmemi_red_choose(true);
    world = shmemi_team_at(SHMEMI_TEAM_SLOT_WORLD);
    shared = shmemi_team_at(SHMEMI_TEAM_SLOT_SHARED);
    if (!world || !shared)
        return -ENOMEM;
    rc = shmemi_team_place(world, 0, 1, shmemi.n_pes, shmemi.my_pe, predefined_epoch[SHMEMI_TEAM_SLOT_WORLD]);
    if (rc)
        return rc;
    shared_triplet(&start, &stride, &n_pes, &my_pe);
    return shmemi_team_place(shared, start, stride, n_pes, my_pe, predefined_epoch[SHMEMI_TEAM_SLOT_SHARED]);
}

void shmemi_teams_fini(void)
{
    for (int slot = 0; slot < SHMEMI_TEAMS_MAX; slot++) {
        struct shmemi_team *t = table[slot];

        if (!t)
            continue;
        if (slot < SHMEMI_TEAMS_PREDEFINED)
            predefined_epoch[slot] = t->coll->epoch;
        else
            shmemi_slot_reset(t);
        shmemi_team_retire(t);
    }
}

/* The members would take a child's arrival for the PE's.  Other threads of the PE may have been in mid-call, so no lock. */
void shmemi_teams_disown(void)
{
    for (int slot = 0; slot < SHMEMI_TEAMS_MAX; slot++)
        if (table[slot])
            shmemi_team_retire(table[slot]);
}

/* ---- queries ---- */

SHMEMI_API(int, shmem_team_my_pe, (shmem_team_t team))
{
    const struct shmemi_team *t = shmemi_team_get_or_invalid(team, "shmem_team_my_pe");

    return t ? t->my_pe : -1;
}

SHMEMI_API(int, shmem_team_n_pes, (shmem_team_t team))
{
    const struct shmemi_team *t = shmemi_team_get_or_invalid(team, "shmem_team_n_pes");

    return t ? t->n_pes : -1;
}

SHMEMI_API(int, shmem_team_get_config, (shmem_team_t team, long config_mask, shmem_team_config_t *config))
{
    const struct shmemi_team *t = shmemi_team_get_or_invalid(team, "shmem_team_get_config");

    if (!t)
        return -1;
    if (config_mask & SHMEM_TEAM_NUM_CONTEXTS) {
        if (!config)
            shmemi_fatal("shmem_team_get_config", "config is NULL although config_mask is 0x%lx", config_mask);
        config->num_contexts = t->config.num_contexts;
    }
    return 0;
}

int shmemi_team_index(const struct shmemi_team *t, int world_pe)
{
    int distance = world_pe - t->start, index;

    if (distance % t->stride)
        return -1;
    index = distance / t->stride;
    return index >= 0 && index < t->n_pes ? index : -1;
}

SHMEMI_API(int, shmem_team_translate_pe, (shmem_team_t src_team, int src_pe, shmem_team_t dest_team))
{
    const struct shmemi_team *src = shmemi_team_get_or_invalid(src_team, "shmem_team_translate_pe");
    const struct shmemi_team *dest = shmemi_team_get_or_invalid(dest_team, "shmem_team_translate_pe");

    if (!src || !dest || src_pe < 0 || src_pe >= src->n_pes)
        return -1;
    return shmemi_team_index(dest, shmemi_team_world_pe(src, src_pe));
}
