/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * synctree.h - how the members of a team on several nodes meet in steps: those of a node tell its first one, first
 * members tell each other (mesh) or form a tree over nodes, and each tells its node.
 *
 * Who tells whom is fixed, so each has a slot of its own at each, that of sync.h: up the tree an epoch there says "we
 * have come", down "all have".  Near slots are stored, others written by the NIC, inline.
 *
 * Memory order: a member's fence, and its quiet before, come ahead of its slot; first members read slots with acquire and put
 * one fence behind those of their node and their children, ahead of what they tell.  What a PE has put by the NIC was
 * complete before it came, so it needs no order on the way.
 */
#ifndef SHMEM_DEVICE_SYNCTREE_H
#define SHMEM_DEVICE_SYNCTREE_H

#include "syncflag.h"

#ifdef SHMEMI_DEVICE_CODE

/* The team's nodes, as syncblk.h lays them out. */
struct shmemi_nodes {
    const struct shmemi_sync_map *map;
    const uint32_t *node_of, *first, *members;
};

SHMEMI_DEV struct shmemi_nodes shmemi_nodes_of(const struct shmemi_dev_team *t)
{
    uint32_t n = (uint32_t)t->n_pes;
    struct shmemi_nodes s;

    s.map = (const struct shmemi_sync_map *)(const void *)(shmemi_sync_own(t) + shmemi_sync_map_off(n));
    s.node_of = (const uint32_t *)(const void *)(s.map + 1);
    s.first = s.node_of + n;
    s.members = s.first + n + 1;
    return s;
}

/* The first member of a node, and how many it has. */
SHMEMI_DEV uint32_t shmemi_node_head(const struct shmemi_nodes *s, uint32_t node)
{
    return s->members[s->first[node]];
}

SHMEMI_DEV uint32_t shmemi_node_size(const struct shmemi_nodes *s, uint32_t node)
{
    return s->first[node + 1] - s->first[node];
}

/* The epoch into this PE's slot at member `i`. */
SHMEMI_DEV_LARGE void shmemi_sync_tell(const struct shmemi_dev_team *t, uint32_t chan, uint32_t i, uint64_t epoch,
                                       uint32_t call)
{
    uint32_t n = (uint32_t)t->n_pes, me = (uint32_t)t->my_pe;

    if (shmemi_sync_is_far(t, i))
        shmemi_far_word(0, shmemi_sync_flag(shmemi_sync_own(t), n, chan, me), epoch, 8, shmemi_dev_team_world(t, (int)i), call);
    else
        SHMEMI_ST_RLX(shmemi_sync_flag(shmemi_sync_of(t, (int)i, call), n, chan, me), epoch);
}

/* Until member `i` has told; `speaks`: for others too, so it may be one of them that has not come. */
SHMEMI_DEV_LARGE void shmemi_sync_hear(const struct shmemi_dev_team *t, uint32_t chan, uint32_t i, uint64_t epoch,
                                       enum shmemi_sync_kind kind, int speaks, uint32_t call)
{
    int world = shmemi_dev_team_world(t, (int)i);

    shmemi_sync_await_far(shmemi_sync_flag(shmemi_sync_own(t), (uint32_t)t->n_pes, chan, i), epoch, kind,
                          speaks ? SHMEMI_DEV_SPEAKER(world) : world, call);
}

/* A node's children in the tree: from *first_out on, as many as there are. */
SHMEMI_DEV uint32_t shmemi_node_children(const struct shmemi_sync_map *m, uint32_t node, uint32_t *first_out)
{
    uint64_t first = (uint64_t)node * m->radix + 1, left;

    *first_out = (uint32_t)first;
    if (first >= m->n_nodes)
        return 0;
    left = m->n_nodes - first;
    return left < m->radix ? (uint32_t)left : m->radix;
}

/* A first member, when its node and its children's have come: the others'. */
SHMEMI_DEV_LARGE void shmemi_sync_cross(const struct shmemi_dev_team *t, const struct shmemi_nodes *s, uint32_t chan,
                                        uint64_t epoch, enum shmemi_sync_kind kind, uint32_t rank, uint32_t size,
                                        uint32_t call)
{
    uint32_t nodes = s->map->n_nodes, node = s->map->my_node;

    if (t->far == SHMEMI_FAR_TREE) {
        if (node && rank == 0) {
            uint32_t parent = shmemi_node_head(s, (node - 1) / s->map->radix);

            shmemi_sync_tell(t, chan, parent, epoch, call);
            shmemi_sync_hear(t, chan, parent, epoch, kind, 1, call);
        }
        return;
    }
    SHMEMI_ROLLED
    for (uint32_t k = rank + 1; k < nodes; k += size)
        shmemi_sync_tell(t, chan, shmemi_node_head(s, node + k < nodes ? node + k : node + k - nodes), epoch, call);
    SHMEMI_ROLLED
    for (uint32_t k = rank + 1; k < nodes; k += size) {
        uint32_t other = node + k < nodes ? node + k : node + k - nodes;

        shmemi_sync_hear(t, chan, shmemi_node_head(s, other), epoch, kind, shmemi_node_size(s, other) > 1, call);
    }
}

/* The part of thread `rank` of `size`, as in shmemi_sync_meet. */
SHMEMI_DEV_LARGE void shmemi_sync_steps(const struct shmemi_dev_team *t, uint32_t chan, uint64_t epoch,
                                        enum shmemi_sync_kind kind, uint32_t rank, uint32_t size, uint32_t call)
{
    struct shmemi_nodes s = shmemi_nodes_of(t);
    uint32_t node = s.map->my_node, here = shmemi_node_size(&s, node), head = shmemi_node_head(&s, node), child = 0, unused;
    uint32_t children = t->far == SHMEMI_FAR_TREE ? shmemi_node_children(s.map, node, &child) : 0;
    const uint32_t *mates = s.members + s.first[node];

    if (head != (uint32_t)t->my_pe) {
        if (rank == 0) {
            if (kind != SHMEMI_SYNC_RELAXED)
                SHMEMI_FENCE_ACQREL();
            shmemi_sync_tell(t, chan, head, epoch, call);
            shmemi_sync_hear(t, chan, head, epoch, kind, 1, call);
        }
        return;
    }
    SHMEMI_ROLLED
    for (uint32_t i = rank + 1; i < here; i += size)
        shmemi_sync_hear(t, chan, mates[i], epoch, kind, 0, call);
    SHMEMI_ROLLED
    for (uint32_t i = rank; i < children; i += size) {
        int speaks = shmemi_node_size(&s, child + i) > 1 || shmemi_node_children(s.map, child + i, &unused) > 0;

        shmemi_sync_hear(t, chan, shmemi_node_head(&s, child + i), epoch, kind, speaks, call);
    }
    if (size > 1)
        shmemi_group_sync(SHMEMI_WARP); /* each has heard its part */
    if (kind != SHMEMI_SYNC_RELAXED)
        SHMEMI_FENCE_ACQREL(); /* cumulative: for the node's members, and what they wrote */
    shmemi_sync_cross(t, &s, chan, epoch, kind, rank, size, call);
    if (size > 1)
        shmemi_group_sync(SHMEMI_WARP);
    SHMEMI_ROLLED
    for (uint32_t i = rank; i < children; i += size)
        shmemi_sync_tell(t, chan, shmemi_node_head(&s, child + i), epoch, call);
    SHMEMI_ROLLED
    for (uint32_t i = rank + 1; i < here; i += size)
        shmemi_sync_tell(t, chan, mates[i], epoch, call);
}

/* Each to each.  The group has synchronised before and does so after. */
SHMEMI_DEV_LARGE void shmemi_sync_each(const struct shmemi_dev_team *t, uint32_t chan, uint64_t epoch,
                                       enum shmemi_sync_kind kind, uint32_t rank, uint32_t size, uint32_t call)
{
    uint32_t n = (uint32_t)t->n_pes, me = (uint32_t)t->my_pe;

    if (kind != SHMEMI_SYNC_RELAXED)
        SHMEMI_FENCE_ACQREL();
    SHMEMI_ROLLED
    for (uint32_t i = rank; i < n; i += size)
        if (i != me)
            shmemi_sync_tell(t, chan, i, epoch, call);
    SHMEMI_ROLLED
    for (uint32_t i = rank; i < n; i += size)
        if (i != me)
            shmemi_sync_hear(t, chan, i, epoch, kind, 0, call);
}

/* shmemi_sync_by_nic, where there is a NIC. */
SHMEMI_DEV_LARGE int shmemi_sync_nodes(const struct shmemi_dev_team *t, uint32_t chan, uint64_t epoch,
                                       enum shmemi_sync_kind kind, uint32_t rank, uint32_t size, uint32_t call)
{
    if (kind == SHMEMI_SYNC_FENCED || (kind == SHMEMI_SYNC_POSTED && t->far > SHMEMI_FAR_FLAT)) {
        shmemi_far_quiet_row(0, 0, rank, size, call);
        if (size > 1)
            shmemi_group_sync(SHMEMI_WARP); /* all of them, before the first slot says so */
    }
    if (t->far > SHMEMI_FAR_FLAT)
        shmemi_sync_steps(t, chan, epoch, kind, rank, size, call);
    else if (t->far)
        shmemi_sync_each(t, chan, epoch, kind, rank, size, call);
    return t->far != 0;
}

#endif
#endif
