/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sq_warp.h - posts of several lanes of a warp at once: one reservation, one release and one doorbell for all
 * that go to the same queue, whatever lanes are active and whatever mix of peers they talk to.
 *
 * Each lane brings its own queue and request.  Lanes of one queue form a group, in lane order; the last one
 * reserves for all, each fills its own entries, and the last one, whose entry alone is signalled, publishes.
 * `mask` names the lanes that make the call together (shmemi_active_mask(), or shmemi_warp_mask() where all
 * do); mode and flags are the same in all of them.  A private queue may belong to a warp if its calls come
 * one after the other, with a mask that all lanes agree on.
 *
 * A whole warp on one queue with plenty of room takes a way of its own, without a branch: `all` in what follows, a constant.
 *
 * Each returns what the plain call does; the ticket is that of the lane's whole group.
 */
#ifndef SHMEM_DEVICE_SQ_WARP_H
#define SHMEM_DEVICE_SQ_WARP_H

#include "sq.h"

/* A lane's part of its group's post. */
struct shmemi_sq_part {
    uint32_t group;  /* lanes that post together */
    uint32_t rest;   /* these, and those of the same queue that have to wait for the next round */
    uint32_t leader; /* the last of them */
    uint32_t total;  /* blocks of all */
    int all, same;
    int signalled; /* this lane's last entry */
    struct shmemi_sq_fixed q;
    struct shmemi_sq_claim c; /* the group's */
    uint64_t idx; /* this lane's first block */
    uint32_t failed;
};

/* What a whole warp does at no cost; for a mask that is not known before, the compiler finds out who is there (50 cycles). */
#define SHMEMI_SQ_ALL 0xffffffffu

/* Lanes of the same queue. */
SHMEMI_FN uint32_t shmemi_sq_match(uint32_t mask, const struct shmemi_sq *sq)
{
    return shmemi_match_any64(mask, (uint64_t)(uintptr_t)sq);
}

SHMEMI_FN uint32_t shmemi_sq_last_lane(uint32_t mask)
{
    return 31 - shmemi_clz32(mask);
}

/* In place of `same`: lanes have up to SHMEMI_SQ_WIDE_MOST blocks, not up to 7. */
enum { SHMEMI_SQ_WIDE = -1, SHMEMI_SQ_WIDE_BITS = 6, SHMEMI_SQ_WIDE_MOST = (1 << SHMEMI_SQ_WIDE_BITS) - 1 };

/* Blocks of the lanes before this one; n is at most 7, and in every lane `same`, if that is not 0. */
SHMEMI_FN uint32_t shmemi_sq_before(uint32_t group, uint32_t n, int same)
{
    uint32_t below = group & ((1u << shmemi_lane()) - 1), sum = 0;

    if (same == SHMEMI_SQ_WIDE) {
        SHMEMI_ROLLED
        for (uint32_t b = 0; b < SHMEMI_SQ_WIDE_BITS; b++)
            sum += shmemi_popc32(shmemi_ballot(group, (int)(n >> b & 1)) & below) << b;
        return sum;
    }
    if (same)
        return (group == SHMEMI_SQ_ALL ? shmemi_lane() : shmemi_popc32(below)) * (uint32_t)same;
    sum = shmemi_popc32(shmemi_ballot(group, (int)(n & 1)) & below);
    sum += shmemi_popc32(shmemi_ballot(group, (int)(n >> 1 & 1)) & below) * 2;
    sum += shmemi_popc32(shmemi_ballot(group, (int)(n >> 2 & 1)) & below) * 4;
    return sum;
}

/*
 * The lanes of my queue, as many as half its ring has room for; the others come in a later round. Blocks of
 * the lanes before this one.
 */
SHMEMI_FN uint32_t shmemi_sq_group(const struct shmemi_sq *sq, enum shmemi_sq_mode mode, uint32_t mask,
                                   uint32_t n, int same, struct shmemi_sq_part *p)
{
    uint32_t before;

    p->rest = shmemi_sq_match(mask, sq);
    for (;;) {
        before = shmemi_sq_before(p->rest, n, same);
        p->group = shmemi_ballot(p->rest, before + n <= p->q.depth / 2);
        if (p->group >> shmemi_lane() & 1)
            return before;
        /* One round at a time on a private queue: the first comes here when it is done. */
        if (mode == SHMEMI_SQ_PRIVATE)
            shmemi_warp_sync(p->rest);
        p->rest &= ~p->group;
    }
}

/*
 * Is this a whole warp on one queue, with room for `total` blocks at once?  Then all lanes look at a private queue themselves, at the
 * same words; `filled` comes before the leader changes them.
 */
SHMEMI_FN int shmemi_sq_whole(const struct shmemi_sq *sq, enum shmemi_sq_mode mode, uint32_t mask, uint32_t total,
                              struct shmemi_sq_part *p)
{
    uint64_t mine = (uint64_t)(uintptr_t)sq;
    int fits;

    p->q = shmemi_sq_fixed_of(sq);
    p->c.idx = p->c.taken = 0;
    p->c.turn = p->c.deferred = 0;
    if (mask != SHMEMI_SQ_ALL)
        return 0;
    fits = p->q.depth >= 2 * total;
    if (mode == SHMEMI_SQ_PRIVATE) {
        shmemi_warp_sync(SHMEMI_SQ_ALL); /* noted by all */
        fits &= shmemi_sq_look_private(sq, &p->q, total, &p->c);
    }
    fits &= mine == shmemi_shfl64(SHMEMI_SQ_ALL, mine, 0);
    if (shmemi_ballot(SHMEMI_SQ_ALL, fits) == SHMEMI_SQ_ALL)
        return 1;
    if (mode == SHMEMI_SQ_PRIVATE)
        shmemi_warp_sync(SHMEMI_SQ_ALL); /* looked: a vote orders no memory */
    return 0;
}

/* The leader's reservation, for all to know. */
SHMEMI_FN void shmemi_sq_reserve_group(struct shmemi_sq *sq, enum shmemi_sq_mode mode, int flags, struct shmemi_sq_part *p)
{
    p->c.idx = p->c.taken = 0;
    p->c.turn = p->c.deferred = 0;
    if (shmemi_lane() == p->leader)
        p->failed = shmemi_sq_reserve(sq, &p->q, mode, p->total, flags, &p->c);
    p->c.idx = shmemi_shfl64(p->group, p->failed ? SHMEMI_SQ_FAILED : p->c.idx, p->leader);
    p->failed = p->c.idx == SHMEMI_SQ_FAILED;
    /* The others fill blocks that the leader has seen to be free. */
    shmemi_warp_sync(p->group); /* free */
}

/* all: shmemi_sq_whole has said so. */
SHMEMI_FN void shmemi_sq_join(struct shmemi_sq *sq, enum shmemi_sq_mode mode, int all, uint32_t mask, uint32_t n, int same,
                              int flags, struct shmemi_sq_part *p)
{
    uint32_t before;

    p->all = all;
    p->same = same;
    p->failed = 0;
    p->group = p->rest = SHMEMI_SQ_ALL;
    before = all ? shmemi_sq_before(SHMEMI_SQ_ALL, n, same) : shmemi_sq_group(sq, mode, mask, n, same, p);
    p->leader = shmemi_sq_last_lane(p->group);
    if (same > 0)
        p->total = (all ? 32 : shmemi_popc32(p->group)) * (uint32_t)same;
    else
        p->total = (uint32_t)shmemi_shfl64(p->group, before + n, p->leader);
    /* What the last leader, perhaps another lane, has noted in a private queue. */
    if (mode == SHMEMI_SQ_PRIVATE && !all)
        shmemi_warp_sync(p->group); /* noted */
    if (mode == SHMEMI_SQ_SHARED || !all)
        shmemi_sq_reserve_group(sq, mode, flags, p);
    p->idx = p->c.idx + before;
    p->signalled = shmemi_lane() == p->leader && shmemi_sq_signals(&p->q, p->c.idx, p->total, flags);
}

/* Every lane of the group has filled its blocks; `last` and `bell` are this lane's. */
SHMEMI_FN uint64_t shmemi_sq_part_done(struct shmemi_sq *sq, enum shmemi_sq_mode mode, int flags,
                                       const struct shmemi_sq_part *p, uint64_t last, uint64_t bell)
{
    uint64_t ticket = SHMEMI_SQ_FAILED;

    /* All entries are filled before the leader's release of the record. */
    shmemi_warp_sync(p->group); /* filled */
    if (shmemi_lane() == p->leader && !p->failed)
        ticket = shmemi_sq_publish(sq, &p->q, mode, &p->c, p->total, last, bell, p->signalled, flags);
    if (mode == SHMEMI_SQ_PRIVATE && p->rest != p->group)
        shmemi_warp_sync(p->rest);
    /* Entries of one block each, the last ones at least: all know what the leader does. */
    if (mode == SHMEMI_SQ_PRIVATE && p->all && p->same)
        return p->failed ? SHMEMI_SQ_FAILED : p->c.idx + p->total;
    return shmemi_shfl64(p->group, ticket, p->leader);
}

SHMEMI_FN uint64_t shmemi_sq_lanes_rdma(struct shmemi_sq *sq, enum shmemi_sq_mode mode, int all, uint32_t mask, struct shmemi_sq_part *p,
                                        uint32_t opcode, uint64_t raddr, shmemi_be32 rkey, uint64_t laddr,
                                        shmemi_be32 lkey, uint32_t len, int flags)
{
    uint64_t bell = 0;

    shmemi_sq_join(sq, mode, all, mask, 1, 1, flags, p);
    if (!p->failed)
        bell = shmemi_sq_fill_rdma(&p->q, p->idx, opcode, shmemi_sq_fm(p->signalled, flags), raddr, rkey, laddr,
                                   lkey, len);
    return shmemi_sq_part_done(sq, mode, flags, p, p->idx, bell);
}

SHMEMI_FN uint64_t shmemi_sq_warp_rdma(struct shmemi_sq *sq, enum shmemi_sq_mode mode, uint32_t mask,
                                       uint32_t opcode, uint64_t raddr, shmemi_be32 rkey, uint64_t laddr,
                                       shmemi_be32 lkey, uint32_t len, int flags)
{
    struct shmemi_sq_part p;

    if (shmemi_sq_whole(sq, mode, mask, 32, &p))
        return shmemi_sq_lanes_rdma(sq, mode, 1, mask, &p, opcode, raddr, rkey, laddr, lkey, len, flags);
    return shmemi_sq_lanes_rdma(sq, mode, 0, mask, &p, opcode, raddr, rkey, laddr, lkey, len, flags);
}

SHMEMI_FN uint64_t shmemi_sq_warp_write(struct shmemi_sq *sq, enum shmemi_sq_mode mode, uint32_t mask,
                                        uint64_t raddr, shmemi_be32 rkey, uint64_t laddr, shmemi_be32 lkey,
                                        uint32_t len, int flags)
{
    return shmemi_sq_warp_rdma(sq, mode, mask, SHMEMI_MLX5_WRITE, raddr, rkey, laddr, lkey, len, flags);
}

SHMEMI_FN uint64_t shmemi_sq_warp_read(struct shmemi_sq *sq, enum shmemi_sq_mode mode, uint32_t mask,
                                       uint64_t raddr, shmemi_be32 rkey, uint64_t laddr, shmemi_be32 lkey,
                                       uint32_t len, int flags)
{
    return shmemi_sq_warp_rdma(sq, mode, mask, SHMEMI_MLX5_READ, raddr, rkey, laddr, lkey, len, flags);
}

SHMEMI_FN uint64_t shmemi_sq_lanes_value(struct shmemi_sq *sq, enum shmemi_sq_mode mode, int all, uint32_t mask, struct shmemi_sq_part *p,
                                         uint64_t raddr, shmemi_be32 rkey, uint64_t value, uint32_t size, int flags)
{
    uint64_t bell = 0;

    shmemi_sq_join(sq, mode, all, mask, 1, 1, flags, p);
    if (!p->failed)
        bell = shmemi_sq_fill_value(&p->q, p->idx, shmemi_sq_fm(p->signalled, flags), raddr, rkey, value, size);
    return shmemi_sq_part_done(sq, mode, flags, p, p->idx, bell);
}

SHMEMI_FN uint64_t shmemi_sq_warp_write_value(struct shmemi_sq *sq, enum shmemi_sq_mode mode, uint32_t mask,
                                              uint64_t raddr, shmemi_be32 rkey, uint64_t value, uint32_t size,
                                              int flags)
{
    struct shmemi_sq_part p;

    if (shmemi_sq_whole(sq, mode, mask, 32, &p))
        return shmemi_sq_lanes_value(sq, mode, 1, mask, &p, raddr, rkey, value, size, flags);
    return shmemi_sq_lanes_value(sq, mode, 0, mask, &p, raddr, rkey, value, size, flags);
}

SHMEMI_FN uint64_t shmemi_sq_warp_write_inline(struct shmemi_sq *sq, enum shmemi_sq_mode mode, uint32_t mask,
                                               uint64_t raddr, shmemi_be32 rkey, const void *data,
                                               uint32_t len, int flags)
{
    struct shmemi_sq_part p;
    uint64_t bell = 0;

    p.q = shmemi_sq_fixed_of(sq);
    shmemi_sq_join(sq, mode, 0, mask, shmemi_sq_inline_blocks(len), 0, flags, &p);
    if (!p.failed)
        bell = shmemi_sq_fill_inline(&p.q, p.idx, shmemi_sq_fm(p.signalled, flags), raddr, rkey, data, len);
    return shmemi_sq_part_done(sq, mode, flags, &p, p.idx, bell);
}

/* op and size may differ between lanes. */
SHMEMI_FN uint64_t shmemi_sq_warp_amo(struct shmemi_sq *sq, enum shmemi_sq_mode mode, uint32_t mask,
                                      enum shmemi_sq_amo_op op, uint32_t size, uint64_t raddr,
                                      shmemi_be32 rkey, uint64_t operand, uint64_t cond, uint64_t laddr,
                                      shmemi_be32 lkey, int flags)
{
    struct shmemi_sq_part p;
    uint64_t bell = 0;

    p.q = shmemi_sq_fixed_of(sq);
    shmemi_sq_join(sq, mode, 0, mask, shmemi_sq_amo_blocks(op, size), 0, flags, &p);
    if (!p.failed)
        bell = shmemi_sq_fill_amo(&p.q, p.idx, op, size, shmemi_sq_fm(p.signalled, flags), raddr, rkey, operand,
                                  cond, laddr, lkey);
    return shmemi_sq_part_done(sq, mode, flags, &p, p.idx, bell);
}

/* Each lane's write, and behind it each lane's signal. */
SHMEMI_FN uint64_t shmemi_sq_lanes_signal(struct shmemi_sq *sq, enum shmemi_sq_mode mode, int all, uint32_t mask, struct shmemi_sq_part *p,
                                          uint64_t raddr, shmemi_be32 rkey, uint64_t laddr, shmemi_be32 lkey, uint32_t len,
                                          const struct shmemi_sq_signal *sig, int flags)
{
    uint64_t bell = 0;

    shmemi_sq_join(sq, mode, all, mask, 2, 2, flags, p);
    if (!p->failed) {
        shmemi_sq_fill_rdma(&p->q, p->idx, SHMEMI_MLX5_WRITE, shmemi_sq_fm(0, flags), raddr, rkey, laddr, lkey,
                            len);
        bell = shmemi_sq_fill_signal(&p->q, p->idx + 1, shmemi_sq_fm(p->signalled, 0), sig);
    }
    return shmemi_sq_part_done(sq, mode, flags, p, p->idx + 1, bell);
}

SHMEMI_FN uint64_t shmemi_sq_warp_write_signal(struct shmemi_sq *sq, enum shmemi_sq_mode mode, uint32_t mask,
                                               uint64_t raddr, shmemi_be32 rkey, uint64_t laddr,
                                               shmemi_be32 lkey, uint32_t len,
                                               const struct shmemi_sq_signal *sig, int flags)
{
    struct shmemi_sq_part p;

    if (shmemi_sq_whole(sq, mode, mask, 64, &p))
        return shmemi_sq_lanes_signal(sq, mode, 1, mask, &p, raddr, rkey, laddr, lkey, len, sig, flags);
    return shmemi_sq_lanes_signal(sq, mode, 0, mask, &p, raddr, rkey, laddr, lkey, len, sig, flags);
}

#endif
