/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * channel.h - requests of kernels to a thread of the CPU, which posts them by plain verbs (the "proxy" data path): one ring a
 * context, in host memory.
 *
 * A request is an entry of 64 bytes.  What it writes lies in its operand (8 bytes) or in the entries behind it.  A ticket is
 * the index of the request's first entry, plus 1; tickets only grow.  Those who post reserve with one fetch-add on a counter
 * in their own memory, fill their entries, and publish with one release store of the first one's flag, which says how many
 * entries it stands for: lanes that post together, to whatever peers, share all three.
 *
 * The thread takes entries in their order and posts those of one peer to one queue, so a fence between them is free.  It
 * tells twice what is complete: `done` counts the entries that are complete with all before them (quiet), and comp[] gets
 * the ticket of each request when it is complete (a get need not wait for a put to another peer).  Before `done` moves on,
 * which frees entries, their flags are cleared, so that no data that lay there is ever taken for a flag.
 */
#ifndef SHMEM_DEVICE_CHANNEL_H
#define SHMEM_DEVICE_CHANNEL_H

#include "sq_warp.h"

enum {
    SHMEMI_CHAN_ENTRY = 64,
    SHMEMI_CHAN_INLINE_MAX = 6 * SHMEMI_CHAN_ENTRY, /* so that a request has at most 7 entries */
    SHMEMI_CHAN_DEPTH_MIN = 64,                     /* a warp's requests of one entry fit half of it */
    SHMEMI_CHAN_LOOK = 1024,                        /* polls between looks whether the job ends */
};

enum shmemi_chan_op {
    SHMEMI_CHAN_WRITE, /* of registered memory, which the thread need not be able to load */
    SHMEMI_CHAN_READ,
    SHMEMI_CHAN_INLINE, /* at most 8 bytes: the operand; more: the entries behind */
    SHMEMI_CHAN_ATOMIC, /* amo: enum shmemi_sq_amo_op; the old value as shmemi_sq_amo_result() wants it */
};

struct shmemi_chan_entry {
    uint64_t flag; /* of a publication's first entry: how many it has; 0: not published */
    uint64_t what; /* op | amo << 8 | size << 16 | entries << 24 | call << 32 */
    uint64_t raddr, laddr;
    uint64_t operand, cond;
    uint32_t rkey, lkey; /* big-endian */
    uint32_t len;
    int32_t pe; /* world PE */
};

SHMEMI_STATIC_ASSERT(sizeof(struct shmemi_chan_entry) == SHMEMI_CHAN_ENTRY, "the same for every compiler");

/* What both sides know of a ring, constant. */
struct shmemi_chan_ring {
    char *entries;  /* `depth` of them, a power of two */
    uint64_t *comp; /* by entry */
    uint64_t *done; /* entries complete with all before them */
    uint32_t *stop; /* not 0: the job ends, nobody waits any more; may be null */
    uint32_t depth, pad;
    uint64_t slot; /* of a private context: memory for its results, or 0 */
    uint64_t pad2[2];
};

/* The side of those who post, in their memory; a context's row in the NIC's table. */
struct shmemi_chan {
    struct shmemi_chan_ring ring;
    uint64_t reserved; /* entries handed out */
    uint64_t seen;     /* of `done`, some time ago */
    uint64_t near;     /* the last ticket of those whose peer loads and stores reach too */
    uint64_t pad[5];
};

SHMEMI_STATIC_ASSERT(sizeof(struct shmemi_chan) == 128, "the same for every compiler");

/* A request; data: of INLINE. */
struct shmemi_chan_request {
    uint32_t op, amo, size, call;
    uint64_t raddr, laddr, operand, cond;
    uint32_t rkey, lkey, len;
    int32_t pe;
    const void *data;
};

SHMEMI_FN struct shmemi_chan_entry *shmemi_chan_at(const struct shmemi_chan_ring *ring, uint64_t idx)
{
    return (struct shmemi_chan_entry *)(void *)(ring->entries +
                                                (size_t)((uint32_t)idx & (ring->depth - 1)) * SHMEMI_CHAN_ENTRY);
}

SHMEMI_FN uint64_t *shmemi_chan_comp(const struct shmemi_chan_ring *ring, uint64_t ticket)
{
    return ring->comp + ((uint32_t)(ticket - 1) & (ring->depth - 1));
}

/* ---- those who post ---- */

/* Waits until the entries before `end` fit the ring. 0, or 1: the job ends. */
SHMEMI_FN_COLD uint32_t shmemi_chan_room(struct shmemi_chan *c, uint64_t end)
{
    uint32_t spins = 0;
    uint64_t done;

    for (;;) {
        done = SHMEMI_LD_ACQ(c->ring.done); /* pairs with shmemi_chan_free: the thread is through with what lay there */
        if (end <= done + c->ring.depth)
            break;
        if (spins % SHMEMI_CHAN_LOOK == 0 && c->ring.stop && SHMEMI_LD_RLX(c->ring.stop))
            return 1;
        shmemi_backoff(&spins);
    }
    /* Pairs with the acquire in reserve.  An older value that comes later only makes others look again. */
    SHMEMI_ST_REL_GPU(&c->seen, done);
    return 0;
}

/* n entries, at most half a ring, to be filled and published.  The first one's index, or SHMEMI_SQ_FAILED: the job ends. */
SHMEMI_FN uint64_t shmemi_chan_reserve(struct shmemi_chan *c, enum shmemi_sq_mode mode, uint32_t n)
{
    uint64_t idx;

    if (mode == SHMEMI_SQ_PRIVATE) {
        idx = c->reserved;
        c->reserved = idx + n;
    } else {
        idx = SHMEMI_ADD_RLX_GPU(&c->reserved, (uint64_t)n);
    }
    /* Pairs with the release in room. */
    if (SHMEMI_UNLIKELY(idx + n > SHMEMI_LD_ACQ_GPU(&c->seen) + c->ring.depth) && shmemi_chan_room(c, idx + n))
        return SHMEMI_SQ_FAILED;
    return idx;
}

SHMEMI_FN_COLD void shmemi_chan_fill(struct shmemi_chan *c, uint64_t idx, uint32_t n, const struct shmemi_chan_request *r)
{
    struct shmemi_chan_entry *e = shmemi_chan_at(&c->ring, idx);
    const char *from = (const char *)shmemi_any_object(r->data);
    struct shmemi_v16 v;

    e->what = r->op | r->amo << 8 | r->size << 16 | n << 24 | (uint64_t)r->call << 32;
    v.x = r->raddr;
    v.y = r->laddr;
    shmemi_st16(&e->raddr, v);
    v.x = r->op == SHMEMI_CHAN_INLINE && from ? shmemi_sq_word(from, 0, r->len) : r->operand;
    v.y = r->cond;
    shmemi_st16(&e->operand, v);
    v.x = r->rkey | (uint64_t)r->lkey << 32;
    v.y = r->len | (uint64_t)(uint32_t)r->pe << 32;
    shmemi_st16(&e->rkey, v);
    SHMEMI_ROLLED
    for (uint32_t at = 0; n > 1 && at < r->len; at += 16) {
        v.x = shmemi_sq_word(from, at, r->len);
        v.y = shmemi_sq_word(from, at + 8, r->len);
        shmemi_st16((char *)shmemi_chan_at(&c->ring, idx + 1 + at / SHMEMI_CHAN_ENTRY) + at % SHMEMI_CHAN_ENTRY, v);
    }
}

SHMEMI_FN uint32_t shmemi_chan_entries(const struct shmemi_chan_request *r)
{
    return 1 + (r->op == SHMEMI_CHAN_INLINE && r->len > 8 ? (r->len + SHMEMI_CHAN_ENTRY - 1) / SHMEMI_CHAN_ENTRY : 0);
}

/* Read by the thread: the n entries from idx on are filled, and what they refer to is written. */
SHMEMI_FN void shmemi_chan_publish(struct shmemi_chan *c, uint64_t idx, uint32_t n)
{
    SHMEMI_ST_REL(&shmemi_chan_at(&c->ring, idx)->flag, (uint64_t)n); /* pairs with shmemi_chan_peek */
}

/* By one thread at a time. */
SHMEMI_FN uint64_t shmemi_chan_post_private(struct shmemi_chan *c, const struct shmemi_chan_request *r)
{
    uint32_t n = shmemi_chan_entries(r);
    uint64_t idx = shmemi_chan_reserve(c, SHMEMI_SQ_PRIVATE, n);

    if (idx == SHMEMI_SQ_FAILED)
        return idx;
    shmemi_chan_fill(c, idx, n, r);
    shmemi_chan_publish(c, idx, n);
    return idx + 1;
}

/*
 * The lanes of `mask` that post to this ring, as many as half of it has room for; the others come in a later round.  Entries of
 * the lanes before this one.
 */
SHMEMI_FN uint32_t shmemi_chan_group(const struct shmemi_chan *c, uint32_t mask, uint32_t n, uint32_t *group_out)
{
    uint32_t rest = shmemi_match_any64(mask, (uint64_t)(uintptr_t)c), before;

    for (;;) {
        before = shmemi_sq_before(rest, n, 0);
        *group_out = shmemi_ballot(rest, before + n <= c->ring.depth / 2);
        if (*group_out >> shmemi_lane() & 1)
            return before;
        rest &= ~*group_out;
    }
}

/* By any threads; the lanes of `mask` make the call together, each with its own ring and request.  This lane's ticket. */
SHMEMI_FN uint64_t shmemi_chan_post(struct shmemi_chan *c, uint32_t mask, const struct shmemi_chan_request *r)
{
    uint32_t n = shmemi_chan_entries(r), group, before = shmemi_chan_group(c, mask, n, &group), leader, total;
    uint64_t first = 0;

    leader = shmemi_sq_last_lane(group);
    total = (uint32_t)shmemi_shfl64(group, before + n, leader);
    if (shmemi_lane() == leader)
        first = shmemi_chan_reserve(c, SHMEMI_SQ_SHARED, total);
    first = shmemi_shfl64(group, first, leader);
    shmemi_warp_sync(group); /* free: the others fill what the leader has seen to be free */
    if (first != SHMEMI_SQ_FAILED)
        shmemi_chan_fill(c, first + before, n, r);
    shmemi_warp_sync(group); /* filled: before the leader's release */
    if (first == SHMEMI_SQ_FAILED)
        return first;
    if (shmemi_lane() == leader)
        shmemi_chan_publish(c, first, total);
    return first + before + 1;
}

/* The request's peer is one that loads and stores reach too. */
SHMEMI_FN void shmemi_chan_note_near(struct shmemi_chan *c, uint64_t ticket)
{
    uint64_t last = SHMEMI_LD_RLX_GPU(&c->near);

    while (last < ticket && !SHMEMI_CAS_ACQREL_GPU(&c->near, &last, ticket))
        ;
}

/* ---- the thread ---- */

/*
 * How many entries are published from `head` on, which begins a publication; 0: none yet.  `freed`: where shmemi_chan_free has
 * come to; a ring's length further the flags are still those of requests that are not complete.
 */
SHMEMI_FN uint32_t shmemi_chan_peek(const struct shmemi_chan_ring *ring, uint64_t head, uint64_t freed)
{
    if (head == freed + ring->depth)
        return 0;
    return (uint32_t)SHMEMI_LD_ACQ(&shmemi_chan_at(ring, head)->flag); /* pairs with shmemi_chan_publish */
}

/* The request is complete: read by who waits for its ticket, behind what it has brought. */
SHMEMI_FN void shmemi_chan_complete(const struct shmemi_chan_ring *ring, uint64_t ticket)
{
    SHMEMI_ST_REL(shmemi_chan_comp(ring, ticket), ticket); /* pairs with shmemi_chan_is_done */
}

/* Complete with all before them: entries up to `to` may be used again. */
SHMEMI_FN void shmemi_chan_free(const struct shmemi_chan_ring *ring, uint64_t from, uint64_t to)
{
    for (uint64_t i = from; i < to; i++)
        SHMEMI_ST_RLX(&shmemi_chan_at(ring, i)->flag, (uint64_t)0);
    SHMEMI_ST_REL(ring->done, to); /* pairs with shmemi_chan_room and shmemi_chan_all_done */
}

/* ---- those who wait ---- */

SHMEMI_FN int shmemi_chan_is_done(const struct shmemi_chan_ring *ring, uint64_t ticket)
{
    return SHMEMI_LD_ACQ(shmemi_chan_comp(ring, ticket)) >= ticket; /* pairs with shmemi_chan_complete */
}

/* Everything up to the ticket. */
SHMEMI_FN int shmemi_chan_all_done(const struct shmemi_chan_ring *ring, uint64_t ticket)
{
    return SHMEMI_LD_ACQ(ring->done) >= ticket; /* pairs with shmemi_chan_free */
}

#endif
