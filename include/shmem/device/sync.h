/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sync.h - how the PEs of a team meet inside kernels: each stores its epoch into every member's slot for it, and waits
 * for theirs.
 *
 * Thread i of the group serves member i; beyond a warp, threads of the first warp serve several.  A barrier
 * puts one fence before the stores and reads the slots with acquire; a sync does neither and so orders nothing.
 * Before a barrier stores any slot, what was posted on the default context is complete.  A team of several nodes meets as
 * synctree.h says.
 */
#ifndef SHMEM_DEVICE_SYNC_H
#define SHMEM_DEVICE_SYNC_H

#include "synctree.h"

#ifdef SHMEMI_DEVICE_CODE

#define SHMEMI_SYNC_AHEAD 4

/* Own slot at member `i`, or NULL when that is nobody or this PE. */
SHMEMI_DEV uint64_t *shmemi_sync_target(const struct shmemi_dev_team *t, uint32_t chan, uint32_t i, uint32_t call)
{
    uint32_t n = (uint32_t)t->n_pes, me = (uint32_t)t->my_pe;

    return i < n && i != me ? shmemi_sync_flag(shmemi_sync_of(t, (int)i, call), n, chan, me) : NULL;
}

SHMEMI_DEV_COLD int shmemi_sync_nic(struct shmemi_dev_team t, uint32_t chan, uint64_t epoch, enum shmemi_sync_kind kind,
                                    uint32_t rank, uint32_t size, uint32_t call)
{
    return SHMEMI_BEHIND(shmemi_sync_nodes)(&t, chan, epoch, kind, rank, size, call);
}

/*
 * The NIC's part in a meeting of threads `rank` of `size`: what must be complete before it, and all of it where the team has
 * members on other nodes (true).
 */
SHMEMI_DEV int shmemi_sync_by_nic(const struct shmemi_dev_team *t, uint32_t chan, uint64_t epoch, enum shmemi_sync_kind kind,
                                  uint32_t rank, uint32_t size, uint32_t call)
{
    if (SHMEMI_LIKELY(!shmemi_dev_nic()) || (kind != SHMEMI_SYNC_FENCED && !t->far))
        return 0;
    return shmemi_sync_nic(*t, chan, epoch, kind, rank, size, call); /* a copy: the team itself may live in registers */
}

/*
 * One thread waits for up to four members, whose slots it loads together: a load after the other would add the way to L2 for each.
 */
SHMEMI_DEV void shmemi_sync_await_four(const struct shmemi_dev_team *t, uint32_t chan, uint32_t first, uint64_t epoch,
                                       uint32_t call)
{
    uint32_t n = (uint32_t)t->n_pes, me = (uint32_t)t->my_pe, last;
    uint64_t *slot = shmemi_sync_flag(shmemi_sync_own(t), n, chan, first), step = shmemi_sync_stride(n) / 8;
    struct shmemi_spin s = SHMEMI_SPIN_INIT;
    uint64_t seen[4];

    for (;;) {
        int all = 1;

        SHMEMI_UNROLL
        for (uint32_t k = 0; k < 4; k++)
            seen[k] = first + k < n && first + k != me ? SHMEMI_LD_RLX(slot + k * step) : epoch;
        SHMEMI_UNROLL
        for (uint32_t k = 0; k < 4; k++)
            all &= seen[k] >= epoch;
        if (all)
            break;
        last = seen[3] < epoch ? 3 : seen[2] < epoch ? 2 : seen[1] < epoch; /* of those that have not come */
        shmemi_spin_step(&s, call, shmemi_dev_team_world(t, (int)(first + last)), slot + last * step, 0, SHMEM_CMP_GE, epoch);
    }
    shmemi_spin_done(&s);
}

/*
 * The part of one thread: `rank` of `size` that serve the members.  The group has synchronised before and does so after.
 * Where the first stores go is found out before the fence, which takes longer: behind it they follow at once.  Threads of a
 * warp have one each; a thread by itself has them all.
 */
SHMEMI_DEV void shmemi_sync_meet(enum shmemi_scope scope, const struct shmemi_dev_team *t, uint32_t chan, uint64_t epoch,
                                 enum shmemi_sync_kind kind, uint32_t rank, uint32_t size, uint32_t call)
{
    uint32_t n = (uint32_t)t->n_pes, me = (uint32_t)t->my_pe, found = scope == SHMEMI_THREAD ? SHMEMI_SYNC_AHEAD : 1;
    int together = scope == SHMEMI_THREAD && kind == SHMEMI_SYNC_RELAXED && n > 2;
    uint64_t *ahead[SHMEMI_SYNC_AHEAD];

    SHMEMI_UNROLL
    for (uint32_t k = 0; k < SHMEMI_SYNC_AHEAD; k++)
        ahead[k] = k < found ? shmemi_sync_target(t, chan, rank + k * size, call) : NULL;
    if (kind != SHMEMI_SYNC_RELAXED)
        SHMEMI_FENCE_ACQREL(); /* one instruction of the warp; cumulative: covers what the whole group wrote */
    SHMEMI_UNROLL
    for (uint32_t k = 0; k < SHMEMI_SYNC_AHEAD; k++)
        if (ahead[k])
            SHMEMI_ST_RLX(ahead[k], epoch);
    SHMEMI_ROLLED
    for (uint32_t i = rank + found * size; i < n; i += size) {
        uint64_t *slot = shmemi_sync_target(t, chan, i, call);

        if (slot)
            SHMEMI_ST_RLX(slot, epoch);
    }
    SHMEMI_ROLLED
    for (uint32_t i = 0; together && i < n; i += 4)
        shmemi_sync_await_four(t, chan, i, epoch, call);
    if (together)
        return;
    SHMEMI_ROLLED
    for (uint32_t i = rank; i < n; i += size)
        if (i != me)
            shmemi_sync_await(scope, shmemi_sync_flag(shmemi_sync_own(t), n, chan, i), epoch, kind,
                              shmemi_dev_team_world(t, (int)i), call);
}

/* Threads of a group that serve members: at most a warp. */
SHMEMI_DEV uint32_t shmemi_sync_servers(enum shmemi_scope scope)
{
    uint32_t size = shmemi_size(scope);

    return scope == SHMEMI_BLOCK && size > 32 ? 32 : size;
}

/* The whole of a sync or barrier of one group on a channel. */
SHMEMI_DEV void shmemi_sync_chan(enum shmemi_scope scope, const struct shmemi_dev_team *t, uint32_t chan,
                                 enum shmemi_sync_kind kind, uint32_t call)
{
    struct shmemi_sync_chan *c = shmemi_sync_chan_of(t, chan);
    uint32_t rank = shmemi_rank(scope), servers = shmemi_sync_servers(scope);
    uint64_t epoch;

    shmemi_group_sync(scope);
    if (rank < servers) {
        epoch = c->epoch + 1;
        if (!shmemi_sync_by_nic(t, chan, epoch, kind, rank, servers, call))
            shmemi_sync_meet(scope, t, chan, epoch, kind, rank, servers, call);
        if (scope != SHMEMI_THREAD)
            shmemi_group_sync(SHMEMI_WARP); /* all have read the old epoch */
        if (rank == 0) {
            c->epoch = epoch;
            c->safe = epoch - 1; /* all have begun this one */
        }
    }
    shmemi_group_sync(scope);
}

/* ---- small teams on one node ---- */

/* Is it one of them, and nothing was posted to a NIC that must be awaited first?  shmemi_dev_state.meets[*slot_out] is its entry. */
SHMEMI_DEV int shmemi_meet_is(shmem_team_t team, enum shmemi_sync_kind kind, uint32_t *slot_out)
{
    uint64_t h = (uint64_t)(uintptr_t)team;
    uint32_t slot = (uint32_t)(h & 0xffff) - 1;

    *slot_out = slot;
    return slot < SHMEMI_DEV_NEAR_TEAMS && shmemi_dev_state.meets[slot].chan != 0 &&
           shmemi_dev_state.meets[slot].generation == (uint32_t)(h >> 16) &&
           !(kind != SHMEMI_SYNC_RELAXED && shmemi_dev_nic());
}

/* Others `first` to `first + 2`, by one thread, which loads their slots together. */
SHMEMI_DEV void shmemi_meet_await_three(const struct shmemi_dev_meet *m, uint32_t first, uint64_t epoch, uint32_t call)
{
    struct shmemi_spin s = SHMEMI_SPIN_INIT;
    uint64_t seen[3];
    uint32_t last, n = m->others;

    for (;;) {
        SHMEMI_UNROLL
        for (uint32_t k = 0; k < 3; k++)
            seen[k] = first + k < n ? SHMEMI_LD_RLX((uint64_t *)(uintptr_t)m->here[first + k]) : epoch;
        if (seen[0] >= epoch && seen[1] >= epoch && seen[2] >= epoch)
            break;
        last = first + (seen[2] < epoch ? 2 : seen[1] < epoch);
        shmemi_spin_step(&s, call, m->pe[last], (const void *)(uintptr_t)m->here[last], 0, SHMEM_CMP_GE, epoch);
    }
    shmemi_spin_done(&s);
}

SHMEMI_DEV void shmemi_meet_await(const struct shmemi_dev_meet *m, uint32_t i, enum shmemi_sync_kind kind, uint64_t epoch,
                                  uint32_t call)
{
    uint64_t *slot = (uint64_t *)(uintptr_t)m->here[i];

    if (kind == SHMEMI_SYNC_RELAXED)
        shmemi_sync_await_plain(slot, epoch, m->pe[i], call);
    else
        shmemi_sync_await_acquire(slot, epoch, m->pe[i], call);
}

SHMEMI_DEV void shmemi_meet_end(const struct shmemi_dev_meet *m, uint64_t epoch)
{
    struct shmemi_sync_chan *c = (struct shmemi_sync_chan *)(uintptr_t)m->chan;

    c->epoch = epoch;
    c->safe = epoch - 1; /* all have begun this one */
}

/* By one thread. */
SHMEMI_DEV void shmemi_meet_alone(const struct shmemi_dev_meet *m, enum shmemi_sync_kind kind, uint32_t call)
{
    uint64_t *chan = (uint64_t *)(uintptr_t)m->chan, *first = (uint64_t *)(uintptr_t)m->there[0], epoch;
    uint32_t n = m->others;

    SHMEMI_ASSUME_GLOBAL(chan);
    SHMEMI_ASSUME_GLOBAL(first);
    epoch = *chan + 1;
    if (kind != SHMEMI_SYNC_RELAXED)
        SHMEMI_FENCE_ACQREL(); /* cumulative: covers what the whole group wrote */
    if (n)
        SHMEMI_ST_RLX(first, epoch);
    SHMEMI_ROLLED
    for (uint32_t k = 1; k < n; k++)
        SHMEMI_ST_RLX((uint64_t *)(uintptr_t)m->there[k], epoch);
    if (n == 1) {
        shmemi_meet_await(m, 0, kind, epoch, call);
    } else if (kind == SHMEMI_SYNC_RELAXED) {
        SHMEMI_ROLLED
        for (uint32_t i = 0; i < n; i += 3)
            shmemi_meet_await_three(m, i, epoch, call);
    } else {
        SHMEMI_ROLLED
        for (uint32_t i = 0; i < n; i++)
            shmemi_meet_await(m, i, kind, epoch, call);
    }
    shmemi_meet_end(m, epoch);
}

/* By a warp: thread `rank` of `size`. */
SHMEMI_DEV void shmemi_meet_warp(const struct shmemi_dev_meet *m, enum shmemi_sync_kind kind, uint32_t rank, uint32_t size,
                                 uint32_t call)
{
    uint64_t epoch = ((struct shmemi_sync_chan *)(uintptr_t)m->chan)->epoch + 1;

    if (kind != SHMEMI_SYNC_RELAXED)
        SHMEMI_FENCE_ACQREL(); /* one instruction of the warp */
    SHMEMI_ROLLED
    for (uint32_t i = rank; i < m->others; i += size)
        SHMEMI_ST_RLX((uint64_t *)(uintptr_t)m->there[i], epoch);
    SHMEMI_ROLLED
    for (uint32_t i = rank; i < m->others; i += size)
        shmemi_meet_await(m, i, kind, epoch, call);
    shmemi_group_sync(SHMEMI_WARP); /* all have read the old epoch */
    if (rank == 0)
        shmemi_meet_end(m, epoch);
}

/*
 * Among few, one thread of a group serves all: to wait, a warp's lanes need more time than one thread, and each lane asks
 * memory by itself.  With acquire one slot is read after the other, so there few are two.
 */
SHMEMI_DEV void shmemi_meet(enum shmemi_scope scope, const struct shmemi_dev_meet *m, enum shmemi_sync_kind kind,
                            uint32_t call)
{
    uint32_t rank = shmemi_rank(scope), servers = shmemi_sync_servers(scope);

    shmemi_group_sync(scope);
    if (scope == SHMEMI_THREAD || m->others <= (kind == SHMEMI_SYNC_RELAXED ? 3u : 1u)) {
        if (rank == 0)
            shmemi_meet_alone(m, kind, call);
    } else if (rank < servers) {
        shmemi_meet_warp(m, kind, rank, servers, call);
    }
    shmemi_group_sync(scope);
}

/* ---- any team ---- */

SHMEMI_DEV_LARGE void shmemi_dev_sync_any(enum shmemi_scope scope, shmem_team_t team, enum shmemi_sync_kind kind,
                                          uint32_t call)
{
    struct shmemi_dev_team t = shmemi_dev_team_get(team, call);

    shmemi_sync_chan(scope, &t, 0, kind, call);
}

SHMEMI_DEV void shmemi_dev_sync(enum shmemi_scope scope, shmem_team_t team, enum shmemi_sync_kind kind, uint32_t call)
{
    uint32_t slot;

    if (SHMEMI_LIKELY(shmemi_meet_is(team, kind, &slot)))
        shmemi_meet(scope, &shmemi_dev_state.meets[slot], kind, call);
    else
        shmemi_dev_sync_any(scope, team, kind, call);
}

#endif
#endif
