/* SPDX-License-Identifier: BSD-3-Clause */
/* sync.c - how the members of a team meet (see sync.h for the protocol and its memory order). */
#include "sync.h"

#include "rma.h"
#include "span.h"

#include <stdio.h>

#define RADIX 16

/*
 * Largest data that goes through the stage.  It costs the transfer of every line twice, against a second meeting for
 * data that is fetched in place: 0.1 microseconds where each PE has a CPU, a turn on the CPU where they share.
 */
#define STAGE_ALONE 1024
#define STAGE_CROWDED 8192

/* Flat teams where PEs share CPUs: n stores and n polls cost more there than one addition and one poll. */
#define FLAT_CROWDED 2

int shmemi_sync_setup(struct shmemi_team *t, uint64_t epoch)
{
    struct shmemi_team_coll *c = t->coll;
    bool crowded = shmemi.n_local > shmemi.n_cpus; /* the same on all PEs of a node */
    int rc;

    c->epoch = c->settled = epoch;
    c->mine = shmemi_team_block(shmemi_team_world_pe(t, t->my_pe), t->slot);
    rc = shmemi_span_setup(t);
    if (rc || c->span) {
        c->flat = false;
        return rc;
    }
    c->flat = t->n_pes <= (crowded ? FLAT_CROWDED : SHMEMI_FLAT_MAX);
    c->stage_max = crowded ? STAGE_CROWDED : STAGE_ALONE;
    for (int i = 0; c->flat && i < t->n_pes; i++) {
        int pe = shmemi_team_world_pe(t, i);

        c->blocks[i] = shmemi_team_block(pe, t->slot);
        c->ctls[i] = shmemi.peers[pe].ctl;
    }
    return 0;
}

/* ---- who has not come ---- */

static bool has_entered(const struct shmemi_awaited *a, int member)
{
    const struct shmemi_team *t = a->team;

    if (member == t->my_pe)
        return true;
    if (t->coll->flat || (t->coll->span && t->coll->span->lines))
        return SHMEMI_LD_ACQ(&t->coll->mine->lines[a->epoch & 1][member].epoch) >= a->epoch;
    if (t->coll->span)
        return shmemi_span_entered(t, a->epoch, member);
    return SHMEMI_LD_ACQ(&shmemi_block_of(t, member)->entered) >= a->epoch;
}

static int next_absent(const struct shmemi_awaited *a, int from)
{
    if (a->member >= 0)
        return from <= a->member && !has_entered(a, a->member) ? a->member : -1;
    for (int i = from; i < a->team->n_pes; i++)
        if (!has_entered(a, i))
            return i;
    return -1;
}

int shmemi_awaited_culprit(const void *arg)
{
    const struct shmemi_awaited *a = arg;
    int member;

    if (a->team->coll->span && !a->team->coll->span->lines)
        return shmemi_span_culprit(a->team, a->epoch);
    member = next_absent(a, 0);
    return member < 0 ? -1 : shmemi_team_world_pe(a->team, member);
}

void shmemi_awaited_describe(const void *arg, char *buf, size_t len)
{
    const struct shmemi_awaited *a = arg;
    int shown = 0, n = snprintf(buf, len, "PE");

    for (int i = next_absent(a, 0); i >= 0 && n > 0 && (size_t)n < len; i = next_absent(a, i + 1)) {
        if (++shown > 8) {
            n += snprintf(buf + n, len - (size_t)n, " and others");
            break;
        }
        n += snprintf(buf + n, len - (size_t)n, "%s %d", shown > 1 ? "," : "", shmemi_team_world_pe(a->team, i));
    }
    if (n > 0 && (size_t)n < len)
        snprintf(buf + n, len - (size_t)n, " to enter (team slot %d, epoch %llu)", a->team->slot,
                 (unsigned long long)a->epoch);
}

/* ---- the tree ---- */

void shmemi_wake_members(const struct shmemi_team *t)
{
    for (int i = 0; i < t->n_pes; i++)
        shmemi_wake_peer_sync(shmemi.peers[shmemi_team_world_pe(t, i)].ctl);
}

static void tree_arrive(const struct shmemi_team *t, uint64_t epoch)
{
    int index = t->my_pe, count = t->n_pes, reach = RADIX;

    SHMEMI_ST_REL(&t->coll->mine->entered, epoch); /* pairs with shmemi_await and the hang report */
    for (int level = 0;; level++) {
        int group = index / RADIX;
        int size = count - group * RADIX < RADIX ? count - group * RADIX : RADIX;

        if (!shmemi_last_of(&shmemi_block_of(t, group * reach)->arrived[level], (unsigned)size))
            return;
        if (count <= RADIX)
            break;
        index = group;
        count = (count + RADIX - 1) / RADIX;
        reach *= RADIX;
    }
    SHMEMI_ST_REL(&shmemi_block_of(t, 0)->release, epoch); /* pairs with tree_settle */
    shmemi_wake_members(t);
}

static void tree_settle(const struct shmemi_team *t, uint64_t epoch, struct shmemi_waiter *w)
{
    uint64_t *release = &shmemi_block_of(t, 0)->release;

    while (SHMEMI_LD_ACQ(release) < epoch)
        shmemi_wait_step(w);
}

/* ---- both kinds ---- */

void shmemi_arrive(struct shmemi_team *t, uint64_t epoch)
{
    if (!t->coll->flat) {
        if (t->coll->span)
            shmemi_span_arrive(t, epoch);
        else
            tree_arrive(t, epoch);
        return;
    }
    /* From the next member on, so that not all start with the same one. */
    for (int i = t->my_pe + 1; i < t->n_pes; i++)
        shmemi_line_post(t, epoch, i, NULL, 0);
    for (int i = 0; i < t->my_pe; i++)
        shmemi_line_post(t, epoch, i, NULL, 0);
}

void shmemi_settle(struct shmemi_team *t, uint64_t epoch, const char *call)
{
    struct shmemi_awaited a = { t, epoch, -1 };
    struct shmemi_waiter w = SHMEMI_WAITER_EPOCH(call, &a);

    if (t->coll->flat) {
        for (int i = 0; i < t->n_pes; i++)
            if (i != t->my_pe)
                shmemi_line_wait(t, epoch, i, &w);
    } else if (t->coll->span) {
        shmemi_span_settle(t, epoch, NULL, &w);
    } else {
        tree_settle(t, epoch, &w);
    }
    shmemi_wait_done(&w);
    t->coll->settled = epoch;
}

void shmemi_await(struct shmemi_team *t, uint64_t epoch, int member, const char *call)
{
    struct shmemi_awaited a = { t, epoch, member };
    struct shmemi_waiter w = SHMEMI_WAITER_EPOCH(call, &a);

    if (member == t->my_pe)
        return;
    if (t->coll->flat) {
        shmemi_line_wait(t, epoch, member, &w);
    } else {
        uint64_t *entered = &shmemi_block_of(t, member)->entered;

        while (SHMEMI_LD_ACQ(entered) < epoch) /* pairs with tree_arrive */
            shmemi_wait_step(&w);
    }
    shmemi_wait_done(&w);
}

void shmemi_team_sync(struct shmemi_team *t, const char *call)
{
    uint64_t epoch = shmemi_op_begin(t, call);

    shmemi_arrive(t, epoch);
    shmemi_settle(t, epoch, call);
}

void shmemi_barrier_all(const char *call)
{
    struct shmemi_team *t = shmemi_team_get(SHMEM_TEAM_WORLD, call);

    shmemi_quiet(SHMEM_CTX_DEFAULT, call);
    shmemi_team_sync(t, call);
}

/* ---- the API ---- */

SHMEMI_API(void, shmem_barrier_all, (void))
{
    shmemi_barrier_all("shmem_barrier_all");
}

SHMEMI_API(void, shmem_sync_all, (void))
{
    shmemi_team_sync(shmemi_team_get(SHMEM_TEAM_WORLD, "shmem_sync_all"), "shmem_sync_all");
}

SHMEMI_API(int, shmem_team_sync, (shmem_team_t team))
{
    shmemi_team_sync(shmemi_team_get(team, "shmem_team_sync"), "shmem_team_sync");
    return 0;
}
