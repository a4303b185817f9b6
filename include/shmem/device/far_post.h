/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * far_post.h - how a kernel's call finds the queue that leads to a peer, posts to it and waits; far.h says what is posted.
 *
 * Requests of one call to one peer are a run: one reservation, one fence, one doorbell.  Where requests are left to the CPU, a
 * context's channel stands in the place of its queues, for all peers: `sq` is then a struct shmemi_chan, and only the functions that
 * say so look inside.
 */
#ifndef SHMEM_DEVICE_FAR_POST_H
#define SHMEM_DEVICE_FAR_POST_H

#include "apart.h"
#include "channel.h"
#include "sq_warp.h"

#ifdef SHMEMI_DEVICE_CODE

#ifdef SHMEMI_SQ_RECORDS
#error "a kernel's queues may be without a doorbell record: SHMEMI_SQ_RECORDS is for the library's own threads"
#endif

/* A peer, as a call sees it. */
struct shmemi_far {
    struct shmemi_sq *sq;
    uint64_t own, raddr; /* the symmetric address, here and there */
    shmemi_be32 rkey;
    uint32_t call;
    int world;
    int is_private, alone; /* alone: one thread posts for its group */
    int lazy; /* SHMEMI_SQ_DEFER where the context is in a batch, else 0 */
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
    uint64_t i = row & ~SHMEMI_DEV_ROW_FLAGS;

    if (!shmemi_far_proxy())
        i = i * (uint32_t)shmemi_dev_state.n_pes + (uint32_t)world;
    return (struct shmemi_sq *)(uintptr_t)(shmemi_dev_state.nic.queues + i * shmemi_dev_state.nic.stride);
}

/* Is there a way to that PE's device heap on the row's queue? */
SHMEMI_DEV int shmemi_far_leads(uint32_t row, int world)
{
    return shmemi_dev_state.nic.peers[world].dheap && shmemi_far_queue(row, world)->ring;
}

/* SHMEMI_SQ_DEFER where the context is in a batch, else 0. */
SHMEMI_DEV int shmemi_far_lazy(uint32_t row)
{
    return row & SHMEMI_DEV_ROW_BATCH ? SHMEMI_SQ_DEFER : 0;
}

/* Is the memory in a symmetric heap, and under which key on the rail to that PE? */
SHMEMI_DEV int shmemi_far_local(const void *addr, uint64_t len, int world, shmemi_be32 *lkey_out)
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

SHMEMI_DEV void shmemi_far_open_here(struct shmemi_far *f, enum shmemi_scope scope, uint32_t row, const void *addr, int world,
                                     uint32_t call)
{
    f->sq = shmemi_far_queue(row, world);
    f->call = call;
    f->world = world;
    f->is_private = (row & SHMEMI_DEV_ROW_PRIVATE) != 0;
    f->lazy = shmemi_far_lazy(row);
    f->alone = scope != SHMEMI_THREAD;
    shmemi_far_at(f, addr, world);
}

/* The same, one copy for most. */
SHMEMI_DEV_LARGE void shmemi_far_open(struct shmemi_far *f, enum shmemi_scope scope, uint32_t row, const void *addr, int world,
                                      uint32_t call)
{
    shmemi_far_open_here(f, scope, row, addr, world, call);
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

/*
 * Entries that a thread posts under one doorbell; threads that come here together share a reservation and a doorbell.  It is opened
 * for a number of blocks, all of them are filled, and it is closed; nothing that waits comes between.
 */
struct shmemi_far_run {
    struct shmemi_sq_part p;
    uint32_t n, used;    /* this thread's blocks */
    uint64_t last, bell; /* of the entry filled last */
    int flags;
};

SHMEMI_DEV enum shmemi_sq_mode shmemi_far_mode(const struct shmemi_far *f)
{
    return f->is_private ? SHMEMI_SQ_PRIVATE : SHMEMI_SQ_SHARED;
}

/* As many blocks as a run may have. */
SHMEMI_DEV uint32_t shmemi_far_run_most(const struct shmemi_far *f)
{
    uint32_t half = f->sq->depth / 2;

    return !f->is_private && !f->alone && half > SHMEMI_SQ_WIDE_MOST ? SHMEMI_SQ_WIDE_MOST : half;
}

SHMEMI_DEV_LARGE void shmemi_far_run_open(const struct shmemi_far *f, uint32_t n, int flags, struct shmemi_far_run *r)
{
    struct shmemi_sq_part p;
    uint32_t mask;

    p.q = shmemi_sq_fixed_of(f->sq);
    if (f->is_private || f->alone) {
        p.group = p.rest = p.leader = 0;
        p.all = p.same = 0;
        p.total = n;
        p.failed = shmemi_sq_reserve(f->sq, &p.q, shmemi_far_mode(f), n, flags, &p.c);
        p.idx = p.c.idx;
        p.signalled = shmemi_sq_signals(&p.q, p.c.idx, n, flags);
    } else {
        mask = shmemi_far_mask(flags);
        shmemi_sq_join(f->sq, SHMEMI_SQ_SHARED, 0, mask, n, shmemi_ballot(mask, n != 1) ? SHMEMI_SQ_WIDE : 1, flags, &p);
    }
    r->p = p;
    r->n = n;
    r->used = 0;
    r->last = r->bell = 0;
    r->flags = flags;
}

/* The next entry takes n blocks: its flags.  Only the last is signalled. */
SHMEMI_DEV uint32_t shmemi_far_run_next(struct shmemi_far_run *r, uint32_t n)
{
    r->last = r->p.idx + r->used;
    r->used += n;
    return shmemi_sq_fm(r->p.signalled && r->used == r->n, r->flags);
}

SHMEMI_DEV_LARGE void shmemi_far_run_fill(struct shmemi_far_run *r, shmemi_be32 rkey, const struct shmemi_chan_request *request)
{
    uint32_t fm;

    if (r->p.failed)
        return;
    fm = shmemi_far_run_next(r, shmemi_far_entry(request));
    r->bell = shmemi_far_fill(&r->p.q, r->last, fm, rkey, request);
}

/* The ticket of all. */
SHMEMI_DEV_LARGE uint64_t shmemi_far_run_close(const struct shmemi_far *f, const struct shmemi_far_run *r)
{
    uint64_t ticket = SHMEMI_SQ_FAILED;

    if (!f->is_private && !f->alone)
        ticket = shmemi_sq_part_done(f->sq, SHMEMI_SQ_SHARED, r->flags, &r->p, r->last, r->bell);
    else if (!r->p.failed)
        ticket = shmemi_sq_publish(f->sq, &r->p.q, shmemi_far_mode(f), &r->p.c, r->n, r->last, r->bell, r->p.signalled, r->flags);
    if (ticket == SHMEMI_SQ_FAILED)
        shmemi_far_fail(f->sq, f->call, f->own);
    return ticket;
}

/* One request, by the queue or by the channel: its ticket.  There is but one copy of this code for all of them. */
SHMEMI_DEV_LARGE uint64_t shmemi_far_post(const struct shmemi_far *f, struct shmemi_chan_request *r, int flags)
{
    struct shmemi_far_run run;

    if (shmemi_far_proxy())
        return shmemi_far_ask(f, r);
    shmemi_far_run_open(f, shmemi_far_entry(r), flags, &run);
    shmemi_far_run_fill(&run, f->rkey, r);
    return shmemi_far_run_close(f, &run);
}

/* ---- one entry of one thread: each instruction of a far call is fetched, and what is kept over a call stored and loaded ---- */

/* Is this thread the only one that posts here and now?  Of several lanes each has a part of a group's post. */
SHMEMI_DEV int shmemi_far_single(int is_private, enum shmemi_scope scope)
{
    uint32_t mask = shmemi_active_mask();

    return is_private || scope != SHMEMI_THREAD || (mask & (mask - 1)) == 0;
}

SHMEMI_DEV struct shmemi_v16 shmemi_far_value_seg(uint64_t value, uint32_t size)
{
    struct shmemi_v16 seg = { shmemi_mlx5_inline(size) | value << 32, value >> 32 };

    return seg;
}

/*
 * An entry of three segments: a write of a value, or a write or read of registered memory; x, y: its last one.
 *
 * These two call nothing but at their very end, and what they call there takes over with what is known by then: so they keep
 * nothing for afterwards.
 */
SHMEMI_DEV uint64_t shmemi_far_entry_out(struct shmemi_sq *sq, const struct shmemi_sq_fixed *q, enum shmemi_sq_mode mode,
                                         const struct shmemi_sq_claim *c, uint32_t opcode, uint64_t raddr, shmemi_be32 rkey,
                                         struct shmemi_v16 seg, int flags)
{
    int signalled = shmemi_sq_signals(q, c->idx, 1, flags);
    uint64_t bell;

    shmemi_st16(shmemi_sq_block(q, c->idx) + 32, seg);
    bell = shmemi_sq_fill(shmemi_sq_slot_at(q, c->idx), opcode, 0, 3, shmemi_sq_fm(signalled, flags), raddr, rkey);
    return shmemi_sq_publish(sq, q, mode, c, 1, c->idx, bell, signalled, flags);
}

/* The ring is full. */
SHMEMI_DEV_LARGE uint64_t shmemi_far_post_private_late(struct shmemi_sq *sq, uint32_t opcode, uint64_t raddr, shmemi_be32 rkey,
                                                       uint64_t x, uint64_t y, int flags)
{
    struct shmemi_sq_claim c = { sq->reserved, 0, 1, 0 };
    struct shmemi_v16 seg = { x, y };
    struct shmemi_sq_fixed q;

    if (shmemi_sq_room_private(sq, c.idx, 1))
        return SHMEMI_SQ_FAILED;
    q = shmemi_sq_fixed_of(sq);
    return shmemi_far_entry_out(sq, &q, SHMEMI_SQ_PRIVATE, &c, opcode, raddr, rkey, seg, flags);
}

SHMEMI_DEV_LARGE uint64_t shmemi_far_post_private(struct shmemi_sq *sq, uint32_t opcode, uint64_t raddr, shmemi_be32 rkey,
                                                  uint64_t x, uint64_t y, int flags)
{
    const struct shmemi_sq_fixed q = shmemi_sq_fixed_of(sq);
    struct shmemi_v16 seg = { x, y };
    struct shmemi_sq_claim c;

    if (SHMEMI_UNLIKELY(!shmemi_sq_look_private(sq, &q, 1, &c)))
        return shmemi_far_post_private_late(sq, opcode, raddr, rkey, x, y, flags);
    return shmemi_far_entry_out(sq, &q, SHMEMI_SQ_PRIVATE, &c, opcode, raddr, rkey, seg, flags);
}

#define SHMEMI_FAR_TURN 0x10000u /* beside an opcode: there is room, and nobody has to publish before */

/* `taken` is reserved, but the ring is full, others have to publish before, or the queue is none of the common ones. */
SHMEMI_DEV_LARGE uint64_t shmemi_far_post_shared_late(struct shmemi_sq *sq, uint32_t opcode, uint64_t raddr, shmemi_be32 rkey,
                                                      uint64_t x, uint64_t y, uint64_t taken)
{
    struct shmemi_sq_claim c = { shmemi_sq_first(taken, 1), taken, (opcode & SHMEMI_FAR_TURN) != 0, 0 };
    struct shmemi_v16 seg = { x, y };
    struct shmemi_sq_fixed q;

    /* Pairs with the exchange in poll: the NIC has read what this block held. */
    if (c.idx + 1 > SHMEMI_LD_GATE_GPU(&sq->done) + sq->depth) {
        c.turn = 1;
        if (shmemi_sq_room_shared(sq, c.idx, 1))
            return SHMEMI_SQ_FAILED;
    }
    q = shmemi_sq_fixed_of(sq);
    return shmemi_far_entry_out(sq, &q, SHMEMI_SQ_SHARED, &c, opcode & ~SHMEMI_FAR_TURN, raddr, rkey, seg, 0);
}

/* Rings: only private queues have batches. */
SHMEMI_DEV_LARGE uint64_t shmemi_far_post_shared(struct shmemi_sq *sq, uint32_t opcode, uint64_t raddr, shmemi_be32 rkey,
                                                 uint64_t x, uint64_t y)
{
    const struct shmemi_sq_fixed q = shmemi_sq_fixed_of(sq);
    struct shmemi_v16 seg = { x, y };
    struct shmemi_sq_claim c;
    int turn = shmemi_sq_take_shared(sq, &q, 1, 0, &c) && c.turn; /* without room the record's 16 bits may mean another round */

    if (SHMEMI_UNLIKELY(!turn || !shmemi_sq_plain(&q)))
        return shmemi_far_post_shared_late(sq, opcode | (turn ? SHMEMI_FAR_TURN : 0), raddr, rkey, x, y, c.taken);
    c.turn = 1;
    return shmemi_far_entry_out(sq, &q, SHMEMI_SQ_SHARED, &c, opcode, raddr, rkey, seg, 0);
}

SHMEMI_DEV uint64_t shmemi_far_post_entry(struct shmemi_sq *sq, int is_private, uint32_t opcode, uint64_t raddr, shmemi_be32 rkey,
                                          struct shmemi_v16 seg, int flags)
{
    if (is_private)
        return shmemi_far_post_private(sq, opcode, raddr, rkey, seg.x, seg.y, flags);
    return shmemi_far_post_shared(sq, opcode, raddr, rkey, seg.x, seg.y);
}

/*
 * A write's entry and behind it a signal's, both to the device heap.  A call behind a pointer passes twelve registers: what is not
 * among them is looked up on the other side, where an error is told as well, so that the caller keeps nothing.
 */
struct shmemi_far_pair {
    struct shmemi_sq *sq;
    uint64_t raddr, sig_raddr;
    shmemi_be32 rkey, lkey; /* lkey: of the word that an addition's result goes to */
};

#define SHMEMI_FAR_CALL 0xffu
#define SHMEMI_FAR_ADD 0x100u /* or'ed to the call: the signal is added; as well SHMEMI_FAR_TURN */
SHMEMI_STATIC_ASSERT(SHMEMI_CALL_LAST <= SHMEMI_FAR_CALL, "a call's number leaves room for flags");

SHMEMI_DEV struct shmemi_far_pair shmemi_far_pair_at(uint32_t row, int world, const void *dest, const uint64_t *sig_addr)
{
    const struct shmemi_dev_far *p = shmemi_dev_state.nic.peers + world;
    uint64_t there = p->dheap - shmemi_dev_state.dheap_base;
    struct shmemi_far_pair at = { shmemi_far_queue(row, world), there + (uint64_t)(uintptr_t)dest,
                                  there + (uint64_t)(uintptr_t)sig_addr, { p->dheap_rkey }, { p->area_lkey } };

    return at;
}

/* x, y: the write's last segment. */
SHMEMI_DEV uint64_t shmemi_far_pair_out(const struct shmemi_far_pair *at, const struct shmemi_sq_fixed *q, enum shmemi_sq_mode mode,
                                        const struct shmemi_sq_claim *c, struct shmemi_v16 seg, uint64_t signal, uint32_t how)
{
    struct shmemi_sq_signal sig = { at->sig_raddr, signal, at->rkey, (how & SHMEMI_FAR_ADD) != 0,
                                    shmemi_dev_state.nic.area + SHMEMI_DEV_SCRAP_OFF, at->lkey };
    uint64_t bell;

    shmemi_st16(shmemi_sq_block(q, c->idx) + 32, seg);
    (void)shmemi_sq_fill(shmemi_sq_slot_at(q, c->idx), SHMEMI_MLX5_WRITE, 0, 3, 0, at->raddr, at->rkey);
    bell = shmemi_sq_fill_signal(q, c->idx + 1, shmemi_sq_fm(1, 0), &sig);
    return shmemi_sq_publish(at->sq, q, mode, c, 2, c->idx + 1, bell, 1, 0);
}

/* The ring is full. */
SHMEMI_DEV_LARGE uint64_t shmemi_far_pair_private_late(uint32_t row, int world, void *dest, uint64_t *sig_addr, uint64_t x, uint64_t y,
                                                       uint64_t signal, uint32_t how)
{
    struct shmemi_sq *sq = shmemi_far_queue(row, world);
    struct shmemi_sq_claim c = { sq->reserved, 0, 1, 0 };
    struct shmemi_v16 seg = { x, y };
    struct shmemi_far_pair at;
    struct shmemi_sq_fixed q;

    if (shmemi_sq_room_private(sq, c.idx, 2))
        shmemi_far_fail(sq, how & SHMEMI_FAR_CALL, (uint64_t)(uintptr_t)dest);
    q = shmemi_sq_fixed_of(sq);
    at = shmemi_far_pair_at(row, world, dest, sig_addr);
    return shmemi_far_pair_out(&at, &q, SHMEMI_SQ_PRIVATE, &c, seg, signal, how);
}

SHMEMI_DEV_LARGE uint64_t shmemi_far_pair_private(uint32_t row, int world, void *dest, uint64_t *sig_addr, uint64_t x, uint64_t y,
                                                  uint64_t signal, uint32_t how)
{
    struct shmemi_far_pair at = shmemi_far_pair_at(row, world, dest, sig_addr);
    const struct shmemi_sq_fixed q = shmemi_sq_fixed_of(at.sq);
    struct shmemi_v16 seg = { x, y };
    struct shmemi_sq_claim c;

    if (SHMEMI_UNLIKELY(!shmemi_sq_look_private(at.sq, &q, 2, &c)))
        return shmemi_far_pair_private_late(row, world, dest, sig_addr, x, y, signal, how);
    return shmemi_far_pair_out(&at, &q, SHMEMI_SQ_PRIVATE, &c, seg, signal, how);
}

/* `taken` is reserved and there is room. */
SHMEMI_DEV_LARGE uint64_t shmemi_far_pair_shared_taken(uint32_t row, int world, void *dest, uint64_t *sig_addr, uint64_t x, uint64_t y,
                                                       uint64_t signal, uint32_t how, uint64_t taken)
{
    struct shmemi_far_pair at = shmemi_far_pair_at(row, world, dest, sig_addr);
    const struct shmemi_sq_fixed q = shmemi_sq_fixed_of(at.sq);
    struct shmemi_sq_claim c = { shmemi_sq_first(taken, 2), taken, (how & SHMEMI_FAR_TURN) != 0, 0 };
    struct shmemi_v16 seg = { x, y };

    return shmemi_far_pair_out(&at, &q, SHMEMI_SQ_SHARED, &c, seg, signal, how);
}

/* `taken` is reserved, but the ring is full, others have to publish before, or the queue is none of the common ones. */
SHMEMI_DEV_LARGE uint64_t shmemi_far_pair_shared_late(uint32_t row, int world, void *dest, uint64_t *sig_addr, uint64_t x, uint64_t y,
                                                      uint64_t signal, uint32_t how, uint64_t taken)
{
    struct shmemi_sq *sq = shmemi_far_queue(row, world);
    uint64_t idx = shmemi_sq_first(taken, 2), ticket = SHMEMI_SQ_FAILED;
    /* Pairs with the exchange in poll: the NIC has read what these blocks held. */
    int full = idx + 2 > SHMEMI_LD_GATE_GPU(&sq->done) + sq->depth;

    if (!full || !shmemi_sq_room_shared(sq, idx, 2))
        ticket = shmemi_far_pair_shared_taken(row, world, dest, sig_addr, x, y, signal, how | (full ? SHMEMI_FAR_TURN : 0), taken);
    if (ticket == SHMEMI_SQ_FAILED)
        shmemi_far_fail(sq, how & SHMEMI_FAR_CALL, (uint64_t)(uintptr_t)dest);
    return ticket;
}

SHMEMI_DEV_LARGE uint64_t shmemi_far_pair_shared(uint32_t row, int world, void *dest, uint64_t *sig_addr, uint64_t x, uint64_t y,
                                                 uint64_t signal, uint32_t how)
{
    struct shmemi_far_pair at = shmemi_far_pair_at(row, world, dest, sig_addr);
    const struct shmemi_sq_fixed q = shmemi_sq_fixed_of(at.sq);
    struct shmemi_v16 seg = { x, y };
    struct shmemi_sq_claim c;
    int turn = shmemi_sq_take_shared(at.sq, &q, 2, 0, &c) && c.turn; /* as in shmemi_far_post_shared */

    if (SHMEMI_UNLIKELY(!turn || !shmemi_sq_plain(&q)))
        return shmemi_far_pair_shared_late(row, world, dest, sig_addr, x, y, signal, how | (turn ? SHMEMI_FAR_TURN : 0), c.taken);
    c.turn = 1;
    return shmemi_far_pair_out(&at, &q, SHMEMI_SQ_SHARED, &c, seg, signal, how);
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

#endif
#endif
