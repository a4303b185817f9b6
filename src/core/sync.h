/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sync.h - arrival and waiting inside a team: the base of its barriers and collectives.
 *
 * Every operation of a team has an epoch, one more than the last one's.  It has two halves:
 *
 *     arrive   tells every member that this PE has entered epoch e
 *     settle   waits until every member has entered epoch e
 *
 * An operation that needs to hear from only some members (a broadcast waits for its
 * root) may leave settle to the next operation: shmemi_op_begin() settles epoch e-1 before
 * e starts.  From that follows the rule that makes two buffers enough: a PE that has
 * begun e knows that all have entered e-1, hence have left e-2, hence that what was
 * written for e-2 (same parity) is read and may be overwritten.
 *
 * Memory order, for all of it: a PE writes its data, then its epoch with release; who
 * loads that epoch with acquire may read the data.  In the tree the arrival counters carry
 * the order on (each addition acquires what the earlier ones released), and the release word
 * hands it to all.  So a settled epoch orders everything before any member's arrival
 * before everything after this PE's settle: that is shmem_sync.  The barrier adds quiet.
 *
 * Small teams are flat: each PE stores its epoch, and up to 56 bytes of data, into a line
 * of its own in each member's block, so a member polls only its own memory.  Larger ones, and those whose PEs share
 * CPUs, count in a tree of radix 16 where the last to arrive climbs, which costs no PE a second turn
 * on its CPU; all poll one release word.
 *
 * Teams whose PEs are on several nodes go the same two ways with a NIC in the middle: span.h.
 *
 * Epochs only grow, over teams too: a new team in an old slot starts above every epoch that its
 * members' blocks have seen (team_split.c), so nothing that a former team left can be taken for news.
 */
#ifndef SHMEMI_SYNC_H
#define SHMEMI_SYNC_H

#include "team.h"
#include "wait.h"

#include <string.h>

#define SHMEMI_FLAT_MAX 16
#define SHMEMI_LINE_BYTES 56
#define SHMEMI_TREE_LEVELS 7 /* radix 16: 2^28 PEs */
#define SHMEMI_SPAN_RADIX_MAX 64 /* of the tree over nodes */
#define SHMEMI_STAGE_BYTES 30720

struct shmemi_line {
    SHMEMI_ALIGNED_LINE unsigned char data[SHMEMI_LINE_BYTES];
    uint64_t epoch;
};

#define SHMEMI_COUNT_MASK 0xffffu

/* Counts arrivals in the low 16 bits and completed epochs above them. */
struct shmemi_arrivals {
    SHMEMI_ALIGNED_LINE uint64_t count;
};

/* What SHMEMI_TEAM_BLOCK_BYTES of a member hold.  Zero at first. */
struct shmemi_block {
    struct shmemi_line lines[2][SHMEMI_FLAT_MAX]; /* [epoch & 1][member that writes] */
    struct shmemi_arrivals arrived[SHMEMI_TREE_LEVELS];
    SHMEMI_ALIGNED_LINE uint64_t release;  /* member 0's: all have entered this epoch */
    SHMEMI_ALIGNED_LINE uint64_t entered;  /* this member has; its stage is filled */
    SHMEMI_ALIGNED_LINE uint64_t departed; /* members of this slot's teams that have destroyed them, ever */
    SHMEMI_ALIGNED_LINE uint64_t departed_far; /* the same for members on other nodes: only NICs add to it */
    /* A node's first member only, and teams that span nodes: */
    SHMEMI_ALIGNED_LINE uint64_t gathered; /* the node's members have entered this epoch */
    SHMEMI_ALIGNED_LINE uint64_t children[SHMEMI_SPAN_RADIX_MAX]; /* so have those of this subtree; NICs write it */
    __attribute__((aligned(4096))) unsigned char stage[2][SHMEMI_STAGE_BYTES]; /* [epoch & 1], written by the owner */
};

_Static_assert(sizeof(struct shmemi_line) == 64, "a line is a cache line");
_Static_assert(offsetof(struct shmemi_block, stage) == 4096, "flags fit one page");
_Static_assert(sizeof(struct shmemi_block) <= SHMEMI_TEAM_BLOCK_BYTES, "a block fits its slot");

struct shmemi_team_coll {
    uint64_t epoch;   /* of the last operation begun */
    uint64_t settled; /* all have entered up to this one */
    bool flat; /* lines, and all members are on this node */
    struct shmemi_span *span; /* span.h; NULL where all members are on this node */
    size_t stage_max; /* above this, data is better fetched from user memory between two meetings */
    struct shmemi_block *mine;
    /* flat teams only: by member */
    struct shmemi_block *blocks[SHMEMI_FLAT_MAX];
    struct shmemi_pe_ctl *ctls[SHMEMI_FLAT_MAX];
};

/* Makes `t`, whose slot and members are set, ready for operations after `epoch`.  -ENOMEM. */
int shmemi_sync_setup(struct shmemi_team *t, uint64_t epoch);

/* NULL for a member on another node. */
SHMEMI_INLINE struct shmemi_block *shmemi_block_of(const struct shmemi_team *t, int member)
{
    if (t->coll->flat)
        return t->coll->blocks[member];
    return shmemi_team_block(shmemi_team_world_pe(t, member), t->slot);
}

/* Waiting for epoch `epoch` of member `member`, or of all when that is -1. */
struct shmemi_awaited {
    const struct shmemi_team *team;
    uint64_t epoch;
    int member;
};
/* "PE 3, 5 (team slot 0, epoch 17) to enter": world PE numbers, the first few of them. */
void shmemi_awaited_describe(const void *arg, char *buf, size_t len);
int shmemi_awaited_culprit(const void *arg);

#define SHMEMI_WAITER_EPOCH(call_, awaited_)                                                    \
    { .call = (call_), .describe = shmemi_awaited_describe, .culprit = shmemi_awaited_culprit, \
      .arg = (awaited_), .sync = true }

/* One word or two of payload are the common case and go without a library call. */
SHMEMI_INLINE void shmemi_copy_small(void *to, const void *from, size_t len)
{
    if (len == 8)
        memcpy(to, from, 8);
    else if (len == 4)
        memcpy(to, from, 4);
    else if (len)
        memcpy(to, from, len);
}

/* Flat teams: fills this PE's line at `member` and arrives there. */
SHMEMI_INLINE void shmemi_line_post(const struct shmemi_team *t, uint64_t epoch, int member, const void *data,
                                    size_t len)
{
    struct shmemi_line *line = &t->coll->blocks[member]->lines[epoch & 1][t->my_pe];

    shmemi_copy_small(line->data, data, len);
    SHMEMI_ST_REL(&line->epoch, epoch); /* pairs with shmemi_line_wait */
    shmemi_wake_peer_sync(t->coll->ctls[member]);
}

/* Flat teams: the line of `member`, once it has entered `epoch`. */
SHMEMI_INLINE const struct shmemi_line *shmemi_line_wait(const struct shmemi_team *t, uint64_t epoch, int member,
                                                         struct shmemi_waiter *w)
{
    struct shmemi_line *line = &t->coll->mine->lines[epoch & 1][member];

    while (SHMEMI_LD_ACQ(&line->epoch) < epoch) /* pairs with shmemi_line_post */
        shmemi_wait_step(w);
    return line;
}

/* Waits until every member has entered `epoch`. */
void shmemi_settle(struct shmemi_team *t, uint64_t epoch, const char *call);
/* Tells every member that this PE has entered `epoch`; what it wrote before is theirs to read. */
void shmemi_arrive(struct shmemi_team *t, uint64_t epoch);
/* After a store to this PE's own block that any member may sleep on; one-node teams. */
void shmemi_wake_members(const struct shmemi_team *t);
/* Waits until `member` has entered `epoch`: its stage may be read.  One-node teams. */
void shmemi_await(struct shmemi_team *t, uint64_t epoch, int member, const char *call);

/*
 * One of `size` that count in `a` has come.  True for the last one, which also makes the counter ready for the next
 * epoch: nobody adds to it again before all are told that this one is over.
 */
SHMEMI_INLINE bool shmemi_last_of(struct shmemi_arrivals *a, unsigned size)
{
    /* Acquire: the last one's release of the whole epoch covers what the others wrote. */
    uint64_t count = SHMEMI_ADD_ACQREL(&a->count, (uint64_t)1) + 1;

    if ((count & SHMEMI_COUNT_MASK) != size)
        return false;
    SHMEMI_ST_RLX(&a->count, count - size + SHMEMI_COUNT_MASK + 1);
    return true;
}

/* The epoch of a new operation. */
SHMEMI_INLINE uint64_t shmemi_op_begin(struct shmemi_team *t, const char *call)
{
    struct shmemi_team_coll *c = t->coll;

    if (shmemi_unlikely(c->settled < c->epoch))
        shmemi_settle(t, c->epoch, call);
    return ++c->epoch;
}

/* Where this PE puts data for its node to read after it arrives, and where it finds another's. */
SHMEMI_INLINE void *shmemi_stage(const struct shmemi_team *t, uint64_t epoch)
{
    return t->coll->mine->stage[epoch & 1];
}

SHMEMI_INLINE const void *shmemi_stage_of(const struct shmemi_team *t, uint64_t epoch, int member)
{
    return shmemi_block_of(t, member)->stage[epoch & 1];
}

#endif
