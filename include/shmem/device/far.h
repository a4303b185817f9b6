/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * far.h - put, get, signals and atomics of kernels where loads and stores do not lead: the calling thread posts to a queue
 * of the NIC (sq.h), or leaves a request to a thread of the CPU where the NIC cannot be driven from here (channel.h).
 *
 * A context has one queue a peer (the default one may have several, of which a block uses one), so its operations to one peer
 * stay in order and a fence between them is free.  Threads that
 * make a call together share a reservation and a doorbell (sq_warp.h); of a warp's or block's call one thread posts.  A
 * queue of a private context belongs to one thread at a time and takes no atomics.
 *
 * Local memory that the NIC knows (the symmetric heaps) is used in place when it does not fit a work request; other
 * memory is sent inline, piece by piece, and received through a slot of the result area.  A queue in error ends the kernel.
 *
 * Where requests are left to the CPU, a context's channel stands in the place of its queues, for all peers: `sq` is then a
 * struct shmemi_chan, and only the functions that say so look inside.
 */
#ifndef SHMEM_DEVICE_FAR_H
#define SHMEM_DEVICE_FAR_H

#include "amo_op.h"
#include "apart.h"
#include "channel.h"
#include "sq_warp.h"

#ifdef SHMEMI_DEVICE_CODE

/* A peer, as a call sees it. */
struct shmemi_far {
    struct shmemi_sq *sq;
    uint64_t own, raddr; /* the symmetric address, here and there */
    shmemi_be32 rkey;
    uint32_t call;
    int world;
    int is_private, alone; /* alone: one thread posts for its group */
};

/* Do requests go to a thread of the CPU? */
SHMEMI_DEV int shmemi_far_proxy(void)
{
    return (shmemi_dev_state.nic.flags & SHMEMI_DEV_NIC_PROXY) != 0;
}

SHMEMI_DEV struct shmemi_chan *shmemi_far_chan(struct shmemi_sq *sq)
{
    return (struct shmemi_chan *)(void *)sq;
}

/* The default context's queues to a peer are shared out among blocks, so a block's operations keep to one. */
SHMEMI_DEV uint32_t shmemi_far_row(shmem_ctx_t ctx)
{
    return ctx == SHMEM_CTX_DEFAULT ? shmemi_block_index() & shmemi_dev_state.nic.spread : shmemi_dev_state.ctxs[((uint64_t)(uintptr_t)ctx & 0xffff) - 1].row;
}

SHMEMI_DEV struct shmemi_sq *shmemi_far_queue(uint32_t row, int world)
{
    uint64_t i = row & ~SHMEMI_DEV_ROW_PRIVATE;

    if (!shmemi_far_proxy())
        i = i * (uint32_t)shmemi_dev_state.n_pes + (uint32_t)world;
    return (struct shmemi_sq *)(uintptr_t)(shmemi_dev_state.nic.queues + i * shmemi_dev_state.nic.stride);
}

/* Is the memory in a symmetric heap, and under which key on the rail to that PE? */
SHMEMI_DEV int shmemi_far_local(int world, const void *addr, uint64_t len, shmemi_be32 *lkey_out)
{
    const struct shmemi_dev_far *p = shmemi_dev_state.nic.peers + world;
    uint64_t off = (uint64_t)(uintptr_t)addr - shmemi_dev_state.dheap_base;

    lkey_out->raw = p->dheap_lkey;
    if (off < shmemi_dev_state.dheap_len)
        return len <= shmemi_dev_state.dheap_len - off;
    off = (uint64_t)(uintptr_t)addr - shmemi_dev_state.heap_base;
    lkey_out->raw = p->heap_lkey;
    return off < shmemi_dev_state.heap_len && len <= shmemi_dev_state.heap_len - off;
}

/* The result area's key on the rail to that PE, big-endian. */
SHMEMI_DEV uint32_t shmemi_far_area_lkey(int world)
{
    return shmemi_dev_state.nic.peers[world].area_lkey;
}

/* The symmetric address, which is one (shmemi_dev_search), at the peer. */
SHMEMI_DEV void shmemi_far_at(struct shmemi_far *f, const void *addr, int world)
{
    const struct shmemi_dev_far *p = shmemi_dev_state.nic.peers + world;
    uint64_t off = (uint64_t)(uintptr_t)addr - shmemi_dev_state.dheap_base, base = p->dheap;

    f->rkey.raw = p->dheap_rkey;
    if (off >= shmemi_dev_state.dheap_len) {
        off = (uint64_t)(uintptr_t)addr - shmemi_dev_state.heap_base;
        base = p->heap;
        f->rkey.raw = p->heap_rkey;
    }
    if (!base || (!shmemi_far_proxy() && !f->sq->ring))
        shmemi_dev_fail(SHMEMI_DEV_UNREACHABLE, f->call, (uint64_t)(uintptr_t)addr, 0, (uint64_t)world);
    f->own = (uint64_t)(uintptr_t)addr;
    f->raddr = base + off;
}

SHMEMI_DEV_LARGE void shmemi_far_open(struct shmemi_far *f, enum shmemi_scope scope, uint32_t row, const void *addr, int world,
                                      uint32_t call)
{
    f->sq = shmemi_far_queue(row, world);
    f->call = call;
    f->world = world;
    f->is_private = (row & SHMEMI_DEV_ROW_PRIVATE) != 0;
    f->alone = scope != SHMEMI_THREAD;
    shmemi_far_at(f, addr, world);
}

/* ---- completion ---- */

SHMEMI_DEV_COLD void shmemi_far_fail(struct shmemi_sq *sq, uint32_t call, uint64_t own)
{
    shmemi_sq_poll(sq); /* a post that gave up may not have kept the error yet */
    shmemi_dev_fail(SHMEMI_DEV_NIC, call, own, SHMEMI_LD_RLX_GPU(&sq->error),
                    ((uint64_t)(uintptr_t)sq - shmemi_dev_state.nic.queues) / shmemi_dev_state.nic.stride);
}

/* For the request of that ticket, which has the peer in it; or for everything up to the ticket. */
SHMEMI_DEV_LARGE void shmemi_chan_wait(struct shmemi_chan *c, uint64_t ticket, int all, uint32_t call)
{
    const uint64_t *word = all ? c->ring.done : shmemi_chan_comp(&c->ring, ticket);
    struct shmemi_spin s = SHMEMI_SPIN_INIT;

    while (!(all ? shmemi_chan_all_done(&c->ring, ticket) : shmemi_chan_is_done(&c->ring, ticket)))
        shmemi_apart_step(&s, call, all ? -1 : shmemi_chan_at(&c->ring, ticket - 1)->pe, word, 0, SHMEM_CMP_GE, ticket);
    shmemi_apart_done(&s);
}

SHMEMI_DEV_LARGE void shmemi_far_wait(struct shmemi_sq *sq, uint64_t ticket, int world, uint32_t call, uint64_t own)
{
    struct shmemi_spin s = SHMEMI_SPIN_INIT;
    uint64_t done;

    if (shmemi_far_proxy()) {
        shmemi_chan_wait(shmemi_far_chan(sq), ticket, 0, call);
        return;
    }
    for (;;) {
        if (shmemi_sq_poll(sq))
            shmemi_far_fail(sq, call, own);
        done = SHMEMI_LD_ACQ_GPU(&sq->done); /* pairs with the exchange in poll: what reads brought is here */
        if (done >= ticket)
            break;
        shmemi_apart_step(&s, call, world, &sq->done, done, SHMEM_CMP_GE, ticket);
    }
    shmemi_apart_done(&s);
}

/* What has been posted on a queue, and this thread knows of. */
SHMEMI_DEV_LARGE void shmemi_far_flush(struct shmemi_sq *sq, int is_private, int world, uint32_t call)
{
    uint64_t ticket = shmemi_sq_ring(sq, is_private ? SHMEMI_SQ_PRIVATE : SHMEMI_SQ_SHARED);

    if (ticket == SHMEMI_SQ_FAILED)
        shmemi_far_fail(sq, call, 0);
    shmemi_far_wait(sq, ticket, world, call, 0);
}

/*
 * Everything that has been posted on the row's queues (the default context's: on all of its rows), and that this thread knows of:
 * thread `rank` of `size` serves every size-th PE, and of a channel, which serves all of them, the first does.  near_only: of PEs
 * that loads and stores reach as well.
 */
SHMEMI_DEV_LARGE void shmemi_far_quiet_row(uint32_t row, int near_only, uint32_t rank, uint32_t size, uint32_t call)
{
    uint32_t n = (uint32_t)shmemi_dev_state.n_pes, each = row <= shmemi_dev_state.nic.spread ? shmemi_dev_state.nic.spread + 1 : 1;

    row = each > 1 ? 0 : row;
    if (shmemi_far_proxy()) {
        struct shmemi_chan *c = shmemi_far_chan(shmemi_far_queue(row, 0)); /* the default context has but one */

        if (rank == 0)
            shmemi_chan_wait(c, SHMEMI_LD_RLX_GPU(near_only ? &c->near : &c->reserved), 1, call);
        return;
    }
    SHMEMI_ROLLED
    for (uint32_t i = rank; i < n * each; i += size) {
        int pe = (int)(i % n);
        struct shmemi_sq *sq = shmemi_far_queue(row + i / n, pe);
        uint64_t done = SHMEMI_LD_RLX_GPU(&sq->done);

        if (done >= SHMEMI_LD_RLX_GPU(&sq->tail) && done >= SHMEMI_LD_RLX_GPU(&sq->deferred))
            continue;
        if (near_only && !shmemi_dev_base(pe, 0) && !shmemi_dev_base(pe, 1))
            continue;
        shmemi_far_flush(sq, (row & SHMEMI_DEV_ROW_PRIVATE) != 0, pe, call);
    }
}

/* ---- posting ---- */

/* The threads that post together: all have the same flags. */
SHMEMI_DEV uint32_t shmemi_far_mask(int flags)
{
    uint32_t mask = shmemi_active_mask(), same = shmemi_ballot(mask, flags != 0);

    return flags ? same : mask & ~same;
}

/* By way of the channel.  Its thread ends the job when something fails, so a failed post has been told to stop. */
SHMEMI_DEV_LARGE uint64_t shmemi_far_ask(const struct shmemi_far *f, struct shmemi_chan_request *r)
{
    struct shmemi_chan *c = shmemi_far_chan(f->sq);
    uint64_t ticket;

    r->rkey = f->rkey.raw;
    r->pe = f->world;
    r->call = f->call;
    if (f->is_private)
        ticket = shmemi_chan_post_private(c, r);
    else
        ticket = shmemi_chan_post(c, f->alone ? 1u << shmemi_lane() : shmemi_active_mask(), r);
    if (ticket == SHMEMI_SQ_FAILED)
        shmemi_trap();
    if (shmemi_dev_nic_amos() && (shmemi_dev_base(f->world, 0) || shmemi_dev_base(f->world, 1)))
        shmemi_chan_note_near(c, ticket);
    return ticket;
}

/* Blocks of the request's entry. */
SHMEMI_DEV uint32_t shmemi_far_entry(const struct shmemi_chan_request *r)
{
    if (r->op == SHMEMI_CHAN_INLINE && r->data)
        return shmemi_sq_inline_blocks(r->len);
    return r->op == SHMEMI_CHAN_ATOMIC ? shmemi_sq_amo_blocks((enum shmemi_sq_amo_op)r->amo, r->size) : 1;
}

/* Fills it, from block idx on; its first 8 bytes. */
SHMEMI_DEV_LARGE uint64_t shmemi_far_fill(const struct shmemi_sq_fixed *q, uint64_t idx, uint32_t fm, shmemi_be32 rkey,
                                          const struct shmemi_chan_request *r)
{
    shmemi_be32 lkey;

    lkey.raw = r->lkey;
    if (r->op == SHMEMI_CHAN_ATOMIC)
        return shmemi_sq_fill_amo(q, idx, (enum shmemi_sq_amo_op)r->amo, r->size, fm, r->raddr, rkey, r->operand, r->cond,
                                  r->laddr, lkey);
    if (r->op != SHMEMI_CHAN_INLINE)
        return shmemi_sq_fill_rdma(q, idx, r->op == SHMEMI_CHAN_READ ? SHMEMI_MLX5_READ : SHMEMI_MLX5_WRITE, fm, r->raddr,
                                   rkey, r->laddr, lkey, r->len);
    if (r->data)
        return shmemi_sq_fill_inline(q, idx, fm, r->raddr, rkey, r->data, r->len);
    return shmemi_sq_fill_value(q, idx, fm, r->raddr, rkey, r->operand, r->len);
}

/* By one thread, for itself or its group. */
SHMEMI_DEV_LARGE uint64_t shmemi_far_post_one(const struct shmemi_far *f, const struct shmemi_chan_request *r, int flags)
{
    const struct shmemi_sq_fixed q = shmemi_sq_fixed_of(f->sq);
    enum shmemi_sq_mode mode = f->is_private ? SHMEMI_SQ_PRIVATE : SHMEMI_SQ_SHARED;
    uint32_t n = shmemi_far_entry(r);
    struct shmemi_sq_claim c;
    uint64_t bell;
    int signalled;

    if (SHMEMI_UNLIKELY(shmemi_sq_reserve(f->sq, &q, mode, n, flags, &c)))
        return SHMEMI_SQ_FAILED;
    signalled = shmemi_sq_signals(&q, c.idx, n, flags);
    bell = shmemi_far_fill(&q, c.idx, shmemi_sq_fm(signalled, flags), f->rkey, r);
    return shmemi_sq_publish(f->sq, &q, mode, &c, n, c.idx, bell, signalled, flags);
}

/* The lanes that have come here together reserve; and publish, when each has filled its entry. */
SHMEMI_DEV_LARGE void shmemi_far_join(const struct shmemi_far *f, uint32_t n, int flags, struct shmemi_sq_part *out)
{
    struct shmemi_sq_part p;

    p.q = shmemi_sq_fixed_of(f->sq);
    shmemi_sq_join(f->sq, SHMEMI_SQ_SHARED, 0, shmemi_far_mask(flags), n, 0, flags, &p);
    *out = p;
}

SHMEMI_DEV_LARGE uint64_t shmemi_far_part_done(const struct shmemi_far *f, int flags, const struct shmemi_sq_part *p,
                                               uint64_t bell)
{
    return shmemi_sq_part_done(f->sq, SHMEMI_SQ_SHARED, flags, p, p->idx, bell);
}

SHMEMI_DEV uint64_t shmemi_far_post_warp(const struct shmemi_far *f, const struct shmemi_chan_request *r, int flags)
{
    struct shmemi_sq_part p;
    uint64_t bell = 0;

    shmemi_far_join(f, shmemi_far_entry(r), flags, &p);
    if (!p.failed)
        bell = shmemi_far_fill(&p.q, p.idx, shmemi_sq_fm(p.signalled, flags), f->rkey, r);
    return shmemi_far_part_done(f, flags, &p, bell);
}

/* One request, by the queue or by the channel: its ticket.  There is but one copy of this code for all of them. */
SHMEMI_DEV_LARGE uint64_t shmemi_far_post(const struct shmemi_far *f, struct shmemi_chan_request *r, int flags)
{
    uint64_t ticket;

    if (shmemi_far_proxy())
        return shmemi_far_ask(f, r);
    ticket = f->is_private || f->alone ? shmemi_far_post_one(f, r, flags) : shmemi_far_post_warp(f, r, flags);
    if (ticket == SHMEMI_SQ_FAILED)
        shmemi_far_fail(f->sq, f->call, f->own);
    return ticket;
}

SHMEMI_DEV uint64_t shmemi_far_rdma(const struct shmemi_far *f, enum shmemi_chan_op op, uint64_t raddr, uint64_t laddr,
                                    shmemi_be32 lkey, uint32_t len, int flags)
{
    struct shmemi_chan_request r = { (uint32_t)op, 0, 0, 0, raddr, laddr, 0, 0, 0, lkey.raw, len, 0, 0 };

    return shmemi_far_post(f, &r, flags);
}

/* data, or (null) the low bytes of value. */
SHMEMI_DEV uint64_t shmemi_far_inline(const struct shmemi_far *f, uint64_t raddr, const void *data, uint64_t value,
                                      uint32_t len, int flags)
{
    struct shmemi_chan_request r = { SHMEMI_CHAN_INLINE, 0, 0, 0, raddr, 0, value, 0, 0, 0, len, 0, data };

    return shmemi_far_post(f, &r, flags);
}

SHMEMI_DEV uint64_t shmemi_far_atomic(const struct shmemi_far *f, enum shmemi_sq_amo_op op, uint32_t size, uint64_t operand,
                                      uint64_t cond, uint64_t laddr)
{
    struct shmemi_chan_request r = { SHMEMI_CHAN_ATOMIC, (uint32_t)op, size, 0, f->raddr, laddr, operand, cond, 0,
                                     shmemi_far_area_lkey(f->world), size, 0, 0 };

    return shmemi_far_post(f, &r, 0);
}

/* ---- result slots ---- */

SHMEMI_DEV uint64_t *shmemi_far_claims(uint64_t slot)
{
    uint64_t i = (slot - shmemi_dev_state.nic.area - SHMEMI_DEV_SLOTS_OFF) / SHMEMI_DEV_SLOT;

    return (uint64_t *)(uintptr_t)(shmemi_dev_state.nic.area + i / 64 * 64);
}

/* The one that a private queue or channel brings, or 0. */
SHMEMI_DEV uint64_t shmemi_far_own_slot(const struct shmemi_far *f)
{
    if (!f->is_private)
        return 0;
    return shmemi_far_proxy() ? shmemi_far_chan(f->sq)->ring.slot : f->sq->user[0];
}

/* A slot of one's own until it is given back. */
SHMEMI_DEV_LARGE uint64_t shmemi_far_take(const struct shmemi_far *f)
{
    uint32_t at = shmemi_block_index() * 7 + shmemi_thread_in_block() / 32 + shmemi_lane() * 3, bit;
    uint64_t *word, seen, own = shmemi_far_own_slot(f);

    if (own)
        return own;
    for (;; at++) {
        word = (uint64_t *)(uintptr_t)(shmemi_dev_state.nic.area + at % SHMEMI_DEV_CLAIM_WORDS * 64);
        seen = ~SHMEMI_LD_RLX(word);
        if (seen) {
            bit = (uint32_t)seen ? shmemi_ctz32((uint32_t)seen) : 32 + shmemi_ctz32((uint32_t)(seen >> 32));
            /* Pairs with the release of who gives it back: that one has read what it held. */
            if (!(SHMEMI_OR_ACQREL(word, (uint64_t)1 << bit) >> bit & 1))
                return shmemi_dev_state.nic.area + SHMEMI_DEV_SLOTS_OFF +
                       (uint64_t)(at % SHMEMI_DEV_CLAIM_WORDS * 64 + bit) * SHMEMI_DEV_SLOT;
        }
        SHMEMI_PAUSE();
    }
}

SHMEMI_DEV_LARGE void shmemi_far_give(const struct shmemi_far *f, uint64_t slot)
{
    uint64_t i = (slot - shmemi_dev_state.nic.area - SHMEMI_DEV_SLOTS_OFF) / SHMEMI_DEV_SLOT;

    if (slot != shmemi_far_own_slot(f))
        (void)SHMEMI_ADD_REL(shmemi_far_claims(slot), -((uint64_t)1 << i % 64));
}

/* ---- put and get ---- */

SHMEMI_DEV int shmemi_far_is_nbi(uint32_t call)
{
    return call == SHMEMI_CALL_PUT_NBI || call == SHMEMI_CALL_GET_NBI || call == SHMEMI_CALL_PUT_SIGNAL_NBI;
}

/* Any length; `flags` of the last work request.  A ticket to wait for before source may change, or 0. */
SHMEMI_DEV_LARGE uint64_t shmemi_far_put_one(const struct shmemi_far *f, uint64_t raddr, const char *source, uint64_t len,
                                             int flags)
{
    uint64_t ticket = 0, most = shmemi_dev_state.nic.message_max;
    uint32_t fits = shmemi_far_proxy() ? SHMEMI_CHAN_INLINE_MAX : SHMEMI_SQ_INLINE_MAX;
    shmemi_be32 lkey;
    int in_place = len > fits && shmemi_far_local(f->world, source, len, &lkey);

    if (!in_place && most > fits)
        most = fits;
    SHMEMI_ROLLED
    while (len) {
        uint32_t n = (uint32_t)(len < most ? len : most);
        int now = n < len ? SHMEMI_SQ_DEFER : flags;

        if (in_place)
            ticket = shmemi_far_rdma(f, SHMEMI_CHAN_WRITE, raddr, (uint64_t)(uintptr_t)source, lkey, n, now);
        else
            shmemi_far_inline(f, raddr, source, 0, n, now);
        raddr += n;
        source += n;
        len -= n;
    }
    return ticket;
}

SHMEMI_DEV void shmemi_far_bytes_out(char *to, uint64_t slot, uint64_t n)
{
    const volatile char *from = (const volatile char *)(uintptr_t)slot;

    SHMEMI_ROLLED
    for (uint64_t i = 0; i < n; i++)
        to[i] = from[i];
}

/* A ticket to wait for, or 0: what was asked for is there. */
SHMEMI_DEV_LARGE uint64_t shmemi_far_get_one(const struct shmemi_far *f, char *dest, uint64_t raddr, uint64_t len)
{
    uint64_t ticket = 0, slot = 0, most = shmemi_dev_state.nic.message_max;
    shmemi_be32 lkey;
    int in_place = shmemi_far_local(f->world, dest, len, &lkey);

    if (!in_place) {
        slot = shmemi_far_take(f);
        lkey.raw = shmemi_far_area_lkey(f->world);
        most = most < SHMEMI_DEV_SLOT ? most : SHMEMI_DEV_SLOT;
    }
    SHMEMI_ROLLED
    while (len) {
        uint32_t n = (uint32_t)(len < most ? len : most);

        ticket = shmemi_far_rdma(f, SHMEMI_CHAN_READ, raddr, in_place ? (uint64_t)(uintptr_t)dest : slot, lkey, n,
                                 in_place && n < len ? SHMEMI_SQ_DEFER : 0);
        if (!in_place) {
            shmemi_far_wait(f->sq, ticket, f->world, f->call, f->own);
            shmemi_far_bytes_out(dest, slot, n);
        }
        raddr += n;
        dest += n;
        len -= n;
    }
    if (in_place)
        return ticket;
    shmemi_far_give(f, slot);
    return 0;
}

SHMEMI_DEV_LARGE void shmemi_far_put(enum shmemi_scope scope, shmem_ctx_t ctx, void *dest, const void *source, uint64_t len,
                                     int world, uint32_t call)
{
    struct shmemi_far f;
    uint64_t ticket;

    shmemi_far_open(&f, scope, shmemi_far_row(ctx), dest, world, call);
    ticket = shmemi_far_put_one(&f, f.raddr, (const char *)source, len, 0);
    if (ticket && !shmemi_far_is_nbi(call))
        shmemi_far_wait(f.sq, ticket, world, call, f.own);
}

SHMEMI_DEV_LARGE void shmemi_far_get(enum shmemi_scope scope, shmem_ctx_t ctx, void *dest, const void *source, uint64_t len,
                                     int world, uint32_t call)
{
    struct shmemi_far f;
    uint64_t ticket;

    shmemi_far_open(&f, scope, shmemi_far_row(ctx), source, world, call);
    ticket = len ? shmemi_far_get_one(&f, (char *)dest, f.raddr, len) : 0;
    if (ticket && !shmemi_far_is_nbi(call))
        shmemi_far_wait(f.sq, ticket, world, call, f.own);
}

/* Blocks of a strided call; distances in bytes. */
struct shmemi_far_blocks {
    char *dest;
    const char *source;
    uint64_t dst, sst, n, block;
    shmem_ctx_t ctx;
    uint32_t rank, size, call;
    int put, world;
};

/*
 * Thread `rank` of `size` moves every size-th block, and completes its own gets.  A private context's queue takes one thread
 * only.
 */
SHMEMI_DEV_LARGE void shmemi_far_blocks(const struct shmemi_far_blocks *b)
{
    uint64_t last = 0, ticket;
    struct shmemi_far f;

    shmemi_far_open(&f, SHMEMI_THREAD, shmemi_far_row(b->ctx), b->put ? b->dest : b->source, b->world, b->call);
    if (f.is_private && b->rank)
        return;
    SHMEMI_ROLLED
    for (uint64_t i = b->rank; i < b->n; i += f.is_private ? 1 : b->size) {
        if (b->put)
            ticket = shmemi_far_put_one(&f, f.raddr + i * b->dst, b->source + i * b->sst, b->block, 0);
        else
            ticket = shmemi_far_get_one(&f, b->dest + i * b->dst, f.raddr + i * b->sst, b->block);
        last = ticket ? ticket : last;
    }
    if (last)
        shmemi_far_wait(f.sq, last, f.world, f.call, f.own);
}

/* ---- words ---- */

/* The low `size` (1, 2, 4 or 8) bytes of value. */
SHMEMI_DEV_LARGE void shmemi_far_word(uint32_t row, void *dest, uint64_t value, uint32_t size, int world, uint32_t call)
{
    struct shmemi_far f;

    shmemi_far_open(&f, SHMEMI_THREAD, row, dest, world, call);
    shmemi_far_inline(&f, f.raddr, 0, value, size, 0);
}

SHMEMI_DEV_LARGE void shmemi_far_p(shmem_ctx_t ctx, void *dest, uint64_t value, uint32_t size, int world, uint32_t call)
{
    shmemi_far_word(shmemi_far_row(ctx), dest, value, size, world, call);
}

SHMEMI_DEV_LARGE uint64_t shmemi_far_g(shmem_ctx_t ctx, const void *source, uint32_t size, int world, uint32_t call)
{
    uint64_t v = 0;

    shmemi_far_get(SHMEMI_THREAD, ctx, &v, source, size, world, call);
    return v;
}

SHMEMI_DEV_LARGE void shmemi_far_signal(enum shmemi_scope scope, shmem_ctx_t ctx, uint64_t *sig_addr, uint64_t signal,
                                        int sig_op, int world, uint32_t call)
{
    struct shmemi_far f;

    shmemi_far_open(&f, scope, shmemi_far_row(ctx), sig_addr, world, call);
    if (sig_op == SHMEM_SIGNAL_SET)
        shmemi_far_inline(&f, f.raddr, 0, signal, 8, 0);
    else
        shmemi_far_atomic(&f, SHMEMI_SQ_FETCH_ADD, 8, signal, 0, shmemi_dev_state.nic.area + SHMEMI_DEV_SCRAP_OFF);
}

/* A put and its signal. */
struct shmemi_far_signalled {
    void *dest;
    const void *source;
    uint64_t len, *sig_addr, signal;
    shmem_ctx_t ctx;
    enum shmemi_scope scope;
    int sig_op, world;
    uint32_t call;
};

/* The data's doorbell is left to the signal, which follows it in the same queue. */
SHMEMI_DEV_LARGE void shmemi_far_put_signal(const struct shmemi_far_signalled *s)
{
    struct shmemi_far f;
    uint64_t ticket = 0;

    shmemi_dev_check_word(s->sig_addr, 8, s->call);
    if (s->sig_op != SHMEM_SIGNAL_SET && s->sig_op != SHMEM_SIGNAL_ADD)
        shmemi_dev_fail(SHMEMI_DEV_BAD_VALUE, s->call, (uint64_t)s->sig_op, 0, 0);
    if (s->len) {
        shmemi_apart_check(s->dest, s->len, s->world, s->call);
        shmemi_far_open(&f, s->scope, shmemi_far_row(s->ctx), s->dest, s->world, s->call);
        ticket = shmemi_far_put_one(&f, f.raddr, (const char *)s->source, s->len, SHMEMI_SQ_DEFER);
    }
    shmemi_far_signal(s->scope, s->ctx, s->sig_addr, s->signal, s->sig_op, s->world, s->call);
    if (ticket && !shmemi_far_is_nbi(s->call))
        shmemi_far_wait(f.sq, ticket, f.world, f.call, f.own);
}

SHMEMI_DEV enum shmemi_sq_amo_op shmemi_far_amo_op(enum shmemi_dev_amo_op op)
{
    switch (op) {
    case SHMEMI_DEV_CSWAP: return SHMEMI_SQ_CSWAP;
    case SHMEMI_DEV_ADD: return SHMEMI_SQ_FETCH_ADD;
    case SHMEMI_DEV_AND: return SHMEMI_SQ_AND;
    case SHMEMI_DEV_OR: return SHMEMI_SQ_OR;
    case SHMEMI_DEV_XOR: return SHMEMI_SQ_XOR;
    default: return SHMEMI_SQ_SWAP; /* also SET, whose old value nobody wants */
    }
}

/* The old value, where it is wanted. */
SHMEMI_DEV_LARGE uint64_t shmemi_far_amo(shmem_ctx_t ctx, enum shmemi_dev_amo_op op, const void *dest, uint64_t operand,
                                         uint64_t cond, int wanted, uint32_t size, int world)
{
    uint64_t slot = shmemi_dev_state.nic.area + SHMEMI_DEV_SCRAP_OFF, ticket, old;
    struct shmemi_far f;
    shmemi_be32 lkey;

    shmemi_far_open(&f, SHMEMI_THREAD, shmemi_far_row(ctx), dest, world, SHMEMI_CALL_ATOMIC);
    lkey.raw = shmemi_far_area_lkey(world);
    if (wanted)
        slot = shmemi_far_take(&f);
    if (op == SHMEMI_DEV_FETCH)
        ticket = shmemi_far_rdma(&f, SHMEMI_CHAN_READ, f.raddr, slot, lkey, size, 0);
    else
        ticket = shmemi_far_atomic(&f, shmemi_far_amo_op(op), size, operand, cond, slot);
    if (!wanted)
        return 0;
    shmemi_far_wait(f.sq, ticket, f.world, SHMEMI_CALL_ATOMIC, f.own);
    if (op == SHMEMI_DEV_FETCH && size == 4)
        old = *(const volatile uint32_t *)(uintptr_t)slot;
    else
        old = shmemi_sq_amo_result((const void *)(uintptr_t)slot, size);
    shmemi_far_give(&f, slot);
    return old;
}

/* ---- what collectives do on the queues of one row ---- */

/* Nobody waits: flags, or a quiet, follow. */
SHMEMI_DEV_LARGE void shmemi_far_row_put(uint32_t row, void *dest, const void *source, uint64_t len, int flags, int world,
                                         uint32_t call)
{
    struct shmemi_far f;

    shmemi_far_open(&f, SHMEMI_THREAD, row, dest, world, call);
    (void)shmemi_far_put_one(&f, f.raddr, (const char *)source, len, flags);
}

SHMEMI_DEV_LARGE void shmemi_far_row_get(uint32_t row, void *dest, const void *source, uint64_t len, int world, uint32_t call)
{
    struct shmemi_far f;

    shmemi_far_open(&f, SHMEMI_THREAD, row, source, world, call);
    (void)shmemi_far_get_one(&f, (char *)dest, f.raddr, len);
}

#endif
#endif
