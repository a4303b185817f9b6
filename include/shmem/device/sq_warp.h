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
    int signalled;   /* this lane's last entry */
    int turn;        /* the leader's, of its reservation */
    struct shmemi_sq_fixed q;
    uint64_t idx;    /* this lane's first block */
    uint64_t first;  /* the group's */
    uint32_t failed;
};

/* What a whole warp does at no cost; for a mask that is not known before, the compiler finds out who is there (50 cycles). */

#define SHMEMI_SQ_ALL 0xffffffffu

SHMEMI_FN uint32_t shmemi_sq_ballot(uint32_t mask, int pred)
{
    return mask == SHMEMI_SQ_ALL ? shmemi_ballot(SHMEMI_SQ_ALL, pred) : shmemi_ballot(mask, pred);
}

SHMEMI_FN uint64_t shmemi_sq_shfl(uint32_t mask, uint64_t v, uint32_t lane)
{
    return mask == SHMEMI_SQ_ALL ? shmemi_shfl64(SHMEMI_SQ_ALL, v, lane) : shmemi_shfl64(mask, v, lane);
}

/* Lanes of the same queue: a whole warp on one is the common case, and quicker to see than to match. */
SHMEMI_FN uint32_t shmemi_sq_match(uint32_t mask, const struct shmemi_sq *sq)
{
    uint64_t mine = (uint64_t)(uintptr_t)sq;

    if (mask == SHMEMI_SQ_ALL && shmemi_ballot(SHMEMI_SQ_ALL, mine == shmemi_shfl64(SHMEMI_SQ_ALL, mine, 0)) == SHMEMI_SQ_ALL)
        return SHMEMI_SQ_ALL;
    return shmemi_match_any64(mask, mine);
}

SHMEMI_FN uint32_t shmemi_sq_last_lane(uint32_t mask)
{
    return 31 - shmemi_clz32(mask);
}

/* Blocks of the lanes before this one; n at most 7, `one`: 1 in every lane. */
SHMEMI_FN uint32_t shmemi_sq_before(uint32_t group, uint32_t n, int one)
{
    uint32_t below = group & ((1u << shmemi_lane()) - 1), sum;

    if (one)
        return shmemi_popc32(below);
    sum = shmemi_popc32(shmemi_sq_ballot(group, (int)(n & 1)) & below);
    sum += shmemi_popc32(shmemi_sq_ballot(group, (int)(n >> 1 & 1)) & below) * 2;
    sum += shmemi_popc32(shmemi_sq_ballot(group, (int)(n >> 2 & 1)) & below) * 4;
    return sum;
}

/*
 * The lanes of my queue, as many as half its ring has room for; the others come in a later round. Blocks of
 * the lanes before this one.
 */
SHMEMI_FN uint32_t shmemi_sq_group(const struct shmemi_sq *sq, enum shmemi_sq_mode mode, uint32_t mask,
                                   uint32_t n, int one, struct shmemi_sq_part *p)
{
    uint32_t before;

    p->q = shmemi_sq_fixed_of(sq);
    p->rest = shmemi_sq_match(mask, sq);
    for (;;) {
        before = shmemi_sq_before(p->rest, n, one);
        p->group = shmemi_sq_ballot(p->rest, before + n <= p->q.depth / 2);
        if (p->group >> shmemi_lane() & 1)
            return before;
        /* One round at a time on a private queue: the first comes here when it is done. */
        if (mode == SHMEMI_SQ_PRIVATE)
            shmemi_warp_sync(p->rest);
        p->rest &= ~p->group;
    }
}

SHMEMI_FN struct shmemi_sq_part shmemi_sq_join(struct shmemi_sq *sq, enum shmemi_sq_mode mode, uint32_t mask,
                                               uint32_t n, int one, int flags)
{
    struct shmemi_sq_part p;
    uint32_t before = shmemi_sq_group(sq, mode, mask, n, one, &p);
    int leads;

    p.leader = shmemi_sq_last_lane(p.group);
    leads = shmemi_lane() == p.leader;
    p.failed = 0;
    p.first = 0;
    p.turn = 0;
    /* What the last leader, perhaps another lane, has noted in a private queue. */
    if (mode == SHMEMI_SQ_PRIVATE)
        shmemi_warp_sync(p.group); /* noted */
    if (leads)
        p.failed = shmemi_sq_reserve(sq, &p.q, mode, before + n, &p.first, &p.turn);
    p.total = one ? shmemi_popc32(p.group) : (uint32_t)shmemi_sq_shfl(p.group, before + n, p.leader);
    p.first = shmemi_sq_shfl(p.group, p.failed ? SHMEMI_SQ_FAILED : p.first, p.leader);
    p.failed = p.first == SHMEMI_SQ_FAILED;
    p.idx = p.first + before;
    p.signalled = leads && shmemi_sq_signals(&p.q, p.first, p.total, flags);
    /* The others fill blocks that the leader has seen to be free. */
    shmemi_warp_sync(p.group); /* free */
    return p;
}

/* Every lane of the group has filled its blocks; `last` and `bell` are this lane's. */
SHMEMI_FN uint64_t shmemi_sq_part_done(struct shmemi_sq *sq, enum shmemi_sq_mode mode,
                                       const struct shmemi_sq_part *p, uint64_t last, uint64_t bell)
{
    uint64_t ticket = SHMEMI_SQ_FAILED;

    /* All entries are filled before the leader's release of the record. */
    shmemi_warp_sync(p->group); /* filled */
    if (shmemi_lane() == p->leader && !p->failed)
        ticket = shmemi_sq_publish(sq, &p->q, mode, p->first, p->total, last, bell, p->signalled, p->turn);
    if (mode == SHMEMI_SQ_PRIVATE && p->rest != p->group)
        shmemi_warp_sync(p->rest);
    return shmemi_sq_shfl(p->group, ticket, p->leader);
}

SHMEMI_FN uint64_t shmemi_sq_warp_rdma(struct shmemi_sq *sq, enum shmemi_sq_mode mode, uint32_t mask,
                                       uint32_t opcode, uint64_t raddr, shmemi_be32 rkey, uint64_t laddr,
                                       shmemi_be32 lkey, uint32_t len, int flags)
{
    struct shmemi_sq_part p = shmemi_sq_join(sq, mode, mask, 1, 1, flags);
    uint64_t bell = 0;

    if (!p.failed)
        bell = shmemi_sq_fill_rdma(&p.q, p.idx, opcode, shmemi_sq_fm(p.signalled, flags), raddr, rkey, laddr,
                                   lkey, len);
    return shmemi_sq_part_done(sq, mode, &p, p.idx, bell);
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

SHMEMI_FN uint64_t shmemi_sq_warp_write_value(struct shmemi_sq *sq, enum shmemi_sq_mode mode, uint32_t mask,
                                              uint64_t raddr, shmemi_be32 rkey, uint64_t value, uint32_t size,
                                              int flags)
{
    struct shmemi_sq_part p = shmemi_sq_join(sq, mode, mask, 1, 1, flags);
    uint64_t bell = 0;

    if (!p.failed)
        bell = shmemi_sq_fill_value(&p.q, p.idx, shmemi_sq_fm(p.signalled, flags), raddr, rkey, value, size);
    return shmemi_sq_part_done(sq, mode, &p, p.idx, bell);
}

SHMEMI_FN uint64_t shmemi_sq_warp_write_inline(struct shmemi_sq *sq, enum shmemi_sq_mode mode, uint32_t mask,
                                               uint64_t raddr, shmemi_be32 rkey, const void *data,
                                               uint32_t len, int flags)
{
    struct shmemi_sq_part p = shmemi_sq_join(sq, mode, mask, shmemi_sq_inline_blocks(len), 0, flags);
    uint64_t bell = 0;

    if (!p.failed)
        bell = shmemi_sq_fill_inline(&p.q, p.idx, shmemi_sq_fm(p.signalled, flags), raddr, rkey, data, len);
    return shmemi_sq_part_done(sq, mode, &p, p.idx, bell);
}

/* op and size may differ between lanes. */
SHMEMI_FN uint64_t shmemi_sq_warp_amo(struct shmemi_sq *sq, enum shmemi_sq_mode mode, uint32_t mask,
                                      enum shmemi_sq_amo_op op, uint32_t size, uint64_t raddr,
                                      shmemi_be32 rkey, uint64_t operand, uint64_t cond, uint64_t laddr,
                                      shmemi_be32 lkey, int flags)
{
    struct shmemi_sq_part p = shmemi_sq_join(sq, mode, mask, shmemi_sq_amo_blocks(op, size), 0, flags);
    uint64_t bell = 0;

    if (!p.failed)
        bell = shmemi_sq_fill_amo(&p.q, p.idx, op, size, shmemi_sq_fm(p.signalled, flags), raddr, rkey, operand,
                                  cond, laddr, lkey);
    return shmemi_sq_part_done(sq, mode, &p, p.idx, bell);
}

/* Each lane's write, and behind it each lane's signal. */
SHMEMI_FN uint64_t shmemi_sq_warp_write_signal(struct shmemi_sq *sq, enum shmemi_sq_mode mode, uint32_t mask,
                                               uint64_t raddr, shmemi_be32 rkey, uint64_t laddr,
                                               shmemi_be32 lkey, uint32_t len,
                                               const struct shmemi_sq_signal *sig, int flags)
{
    struct shmemi_sq_part p = shmemi_sq_join(sq, mode, mask, 2, 0, flags);
    uint64_t bell = 0;

    if (!p.failed) {
        shmemi_sq_fill_rdma(&p.q, p.idx, SHMEMI_MLX5_WRITE, shmemi_sq_fm(0, flags), raddr, rkey, laddr, lkey,
                            len);
        bell = shmemi_sq_fill_signal(&p.q, p.idx + 1, shmemi_sq_fm(p.signalled, 0), sig);
    }
    return shmemi_sq_part_done(sq, mode, &p, p.idx + 1, bell);
}

#endif
