/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * span.h - meeting in teams whose PEs are on several nodes, by the rules of sync.h.
 *
 * Small teams, where no node is crowded, use lines as on one node.  A line for a PE of another node is written by the NIC:
 * data, then epoch, which arrive in this order, behind all that this PE has put there through the default context.
 *
 * Larger teams meet in a tree.  The members of a node count in shared memory and tell the node's leader, its first
 * member; leaders form a tree of radix k over nodes.  A leader that has heard from its node and from its child
 * nodes writes the epoch into its place among its parent's children; the root writes the release word of its
 * children, they that of theirs, and each leader's release word is what its node polls.  Leaders do this while
 * they settle, so here every operation settles before it returns.
 *
 * Data may travel along.  With lines: up to SHMEMI_EAGER_BYTES a member and target, in the target's stage.  In the tree:
 * a payload that each leader combines on the way up and hands on unchanged on the way down.  By the parity rule of
 * sync.h a PE that has begun epoch e may write for e into any other's stage.
 *
 * Memory order: the NIC reads what was stored before the doorbell, and its writes to one peer become visible in order,
 * so its write of an epoch is a release, paired with the acquire of who polls it.
 */
#ifndef SHMEMI_SPAN_H
#define SHMEMI_SPAN_H

#include "sync.h"

#define SHMEMI_EAGER_BYTES (SHMEMI_STAGE_BYTES / SHMEMI_FLAT_MAX)

struct shmemi_span {
    bool lines;
    struct shmemi_block *blocks[SHMEMI_FLAT_MAX]; /* lines: by member; NULL on another node */
    int *node_of;   /* by member: its node, from 0 on by lowest member */
    int *leaders;   /* by node: its lowest member */
    int *here;      /* members of this node, ascending */
    int n_nodes, n_here;
    int my_node, my_here; /* places of this PE in leaders and here */
    /* the tree over nodes */
    int radix;
    int parent; /* node, or -1 */
    int child_place; /* among the parent's children */
    int first_child, n_children;
    size_t payload_max;
};

/* Combined on the way up: acc is acc with `in`. */
struct shmemi_payload {
    void *acc; /* this PE's part, and in the end all members' */
    size_t len; /* at most payload_max */
    void (*combine)(const struct shmemi_payload *p, const void *in);
    const void *arg;
};

/* Sets t->coll->span, or frees it where all members are on this node.  -ENOMEM. */
int shmemi_span_setup(struct shmemi_team *t);

/* The halves of sync.h.  A payload for settle is in this PE's stage already, before arrive. */
void shmemi_span_arrive(struct shmemi_team *t, uint64_t epoch);
void shmemi_span_settle(struct shmemi_team *t, uint64_t epoch, const struct shmemi_payload *p, struct shmemi_waiter *w);

/* Tree: one operation, in which p->acc becomes the combination of all members' in an order that is the same on all. */
void shmemi_span_combine(struct shmemi_team *t, const struct shmemi_payload *p, const char *call);

/* Lines: arrives at `member` with up to SHMEMI_EAGER_BYTES. */
void shmemi_span_post(const struct shmemi_team *t, uint64_t epoch, int member, const void *data, size_t len);
/* The same place of `member`'s stage, for data of more than a line, without arriving: a post follows. */
void shmemi_span_fill(const struct shmemi_team *t, uint64_t epoch, int member, const void *data, size_t len);
SHMEMI_INLINE const void *shmemi_span_stage(const struct shmemi_team *t, uint64_t epoch, int member)
{
    return t->coll->mine->stage[epoch & 1] + (size_t)member * SHMEMI_EAGER_BYTES;
}

/* Where this PE finds what `member` has posted. */
SHMEMI_INLINE const void *shmemi_span_data(const struct shmemi_team *t, uint64_t epoch, int member, size_t len)
{
    if (len <= SHMEMI_LINE_BYTES)
        return t->coll->mine->lines[epoch & 1][member].data;
    return shmemi_span_stage(t, epoch, member);
}

/* For reports.  Tree: has the member entered?  Asks its node where that is the only way to know. */
bool shmemi_span_entered(const struct shmemi_team *t, uint64_t epoch, int member);
/* Tree: the world PE from which this node waits to hear, or -1. */
int shmemi_span_culprit(const struct shmemi_team *t, uint64_t epoch);

#endif
