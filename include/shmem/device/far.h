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
#include "channel.h"
#include "sq_warp.h"
#include "wait.h"

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

/* Is the memory in a symmetric heap, and under which key? */
SHMEMI_DEV int shmemi_far_local(const void *addr, uint64_t len, shmemi_be32 *lkey_out)
{
    uint64_t off = (uint64_t)(uintptr_t)addr - shmemi_dev_state.dheap_base;

    lkey_out->raw = shmemi_dev_state.nic.dheap_lkey;
    if (off < shmemi_dev_state.dheap_len)
        return len <= shmemi_dev_state.dheap_len - off;
    off = (uint64_t)(uintptr_t)addr - shmemi_dev_state.heap_base;
    lkey_out->raw = shmemi_dev_state.nic.heap_lkey;
    return off < shmemi_dev_state.heap_len && len <= shmemi_dev_state.heap_len - off;
}

/* The symmetric address, which is one (shmemi_dev_reach), at the peer. */
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

SHMEMI_DEV struct shmemi_far shmemi_far_of_row(enum shmemi_scope scope, uint32_t row, const void *addr, int world,
                                               uint32_t call)
{
    struct shmemi_far f;

    f.sq = shmemi_far_queue(row, world);
    f.call = call;
    f.world = world;
    f.is_private = (row & SHMEMI_DEV_ROW_PRIVATE) != 0;
    f.alone = scope != SHMEMI_THREAD;
    shmemi_far_at(&f, addr, world);
    return f;
}

SHMEMI_DEV struct shmemi_far shmemi_far_of(enum shmemi_scope scope, shmem_ctx_t ctx, const void *addr, int world,
                                           uint32_t call)
{
    return shmemi_far_of_row(scope, shmemi_far_row(ctx), addr, world, call);
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
        shmemi_spin_step(&s, call, all ? -1 : shmemi_chan_at(&c->ring, ticket - 1)->pe, word, 0, SHMEM_CMP_GE, ticket);
    shmemi_spin_done(&s);
}

SHMEMI_DEV_LARGE void shmemi_far_wait(struct shmemi_sq *sq, uint64_t ticket, uint32_t call, uint64_t own)
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
        shmemi_spin_step(&s, call,
                         (int)(((uint64_t)(uintptr_t)sq - shmemi_dev_state.nic.queues) / shmemi_dev_state.nic.stride %
                               (uint32_t)shmemi_dev_state.n_pes),
                         &sq->done, done, SHMEM_CMP_GE, ticket);
    }
    shmemi_spin_done(&s);
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
        uint64_t done = SHMEMI_LD_RLX_GPU(&sq->done), ticket;

        if (done >= SHMEMI_LD_RLX_GPU(&sq->tail) && done >= SHMEMI_LD_RLX_GPU(&sq->deferred))
            continue;
        if (near_only && !shmemi_dev_base(pe, 0) && !shmemi_dev_base(pe, 1))
            continue;
        ticket = row & SHMEMI_DEV_ROW_PRIVATE ? shmemi_sq_ring(sq, SHMEMI_SQ_PRIVATE) : shmemi_sq_ring(sq, SHMEMI_SQ_SHARED);
        if (ticket == SHMEMI_SQ_FAILED)
            shmemi_far_fail(sq, call, 0);
        shmemi_far_wait(sq, ticket, call, 0);
    }
}

/* ---- posting ---- */

/* The threads that post together: all have the same flags. */
SHMEMI_DEV uint32_t shmemi_far_mask(const struct shmemi_far *f, int flags)
{
    uint32_t mask, same;

    if (f->alone)
        return 1u << shmemi_lane();
    mask = shmemi_active_mask();
    same = shmemi_ballot(mask, flags != 0);
    return flags ? same : mask & ~same;
}

SHMEMI_DEV uint64_t shmemi_far_posted(const struct shmemi_far *f, uint64_t ticket)
{
    if (ticket == SHMEMI_SQ_FAILED)
        shmemi_far_fail(f->sq, f->call, f->own);
    return ticket;
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

SHMEMI_DEV_LARGE uint64_t shmemi_far_ask_rdma(const struct shmemi_far *f, uint32_t op, uint64_t raddr, uint64_t laddr,
                                              shmemi_be32 lkey, uint32_t len)
{
    struct shmemi_chan_request r = { op, 0, 0, 0, raddr, laddr, 0, 0, 0, lkey.raw, len, 0, 0 };

    return shmemi_far_ask(f, &r);
}

/* data, or the low bytes of value. */
SHMEMI_DEV_LARGE uint64_t shmemi_far_ask_inline(const struct shmemi_far *f, uint64_t raddr, const void *data, uint64_t value,
                                                uint32_t len)
{
    struct shmemi_chan_request r = { SHMEMI_CHAN_INLINE, 0, 0, 0, raddr, 0, value, 0, 0, 0, len, 0, data };

    return shmemi_far_ask(f, &r);
}

SHMEMI_DEV_LARGE uint64_t shmemi_far_ask_atomic(const struct shmemi_far *f, uint32_t amo, uint32_t size, uint64_t operand,
                                                uint64_t cond, uint64_t laddr, shmemi_be32 lkey)
{
    struct shmemi_chan_request r = { SHMEMI_CHAN_ATOMIC, amo, size, 0, f->raddr, laddr, operand, cond, 0, lkey.raw, size, 0, 0 };

    return shmemi_far_ask(f, &r);
}

SHMEMI_DEV_LARGE uint64_t shmemi_far_rdma(const struct shmemi_far *f, uint32_t opcode, uint64_t raddr, uint64_t laddr,
                                          shmemi_be32 lkey, uint32_t len, int flags)
{
    if (shmemi_far_proxy())
        return shmemi_far_ask_rdma(f, opcode == SHMEMI_MLX5_READ ? SHMEMI_CHAN_READ : SHMEMI_CHAN_WRITE, raddr, laddr, lkey,
                                   len);
    if (f->is_private)
        return shmemi_far_posted(f, shmemi_sq_rdma(f->sq, SHMEMI_SQ_PRIVATE, opcode, raddr, f->rkey, laddr, lkey, len, flags));
    return shmemi_far_posted(f, shmemi_sq_warp_rdma(f->sq, SHMEMI_SQ_SHARED, shmemi_far_mask(f, flags), opcode, raddr, f->rkey,
                                                    laddr, lkey, len, flags));
}

SHMEMI_DEV_LARGE void shmemi_far_inline(const struct shmemi_far *f, uint64_t raddr, const void *data, uint32_t len, int flags)
{
    if (shmemi_far_proxy())
        shmemi_far_ask_inline(f, raddr, data, 0, len);
    else if (f->is_private)
        shmemi_far_posted(f, shmemi_sq_write_inline(f->sq, SHMEMI_SQ_PRIVATE, raddr, f->rkey, data, len, flags));
    else
        shmemi_far_posted(f, shmemi_sq_warp_write_inline(f->sq, SHMEMI_SQ_SHARED, shmemi_far_mask(f, flags), raddr, f->rkey,
                                                         data, len, flags));
}

/* One word at f->raddr. */
SHMEMI_DEV_LARGE uint64_t shmemi_far_value(const struct shmemi_far *f, uint64_t value, uint32_t size)
{
    if (shmemi_far_proxy())
        return shmemi_far_ask_inline(f, f->raddr, 0, value, size);
    if (f->is_private)
        return shmemi_far_posted(f, shmemi_sq_write_value(f->sq, SHMEMI_SQ_PRIVATE, f->raddr, f->rkey, value, size, 0));
    return shmemi_far_posted(f, shmemi_sq_warp_write_value(f->sq, SHMEMI_SQ_SHARED, shmemi_far_mask(f, 0), f->raddr, f->rkey,
                                                           value, size, 0));
}

SHMEMI_DEV_LARGE uint64_t shmemi_far_atomic(const struct shmemi_far *f, enum shmemi_sq_amo_op op, uint32_t size,
                                            uint64_t operand, uint64_t cond, uint64_t laddr)
{
    shmemi_be32 lkey;

    lkey.raw = shmemi_dev_state.nic.area_lkey;
    if (shmemi_far_proxy())
        return shmemi_far_ask_atomic(f, op, size, operand, cond, laddr, lkey);
    if (f->is_private)
        return shmemi_far_posted(f, shmemi_sq_amo(f->sq, SHMEMI_SQ_PRIVATE, op, size, f->raddr, f->rkey, operand, cond, laddr,
                                                  lkey, 0));
    return shmemi_far_posted(f, shmemi_sq_warp_amo(f->sq, SHMEMI_SQ_SHARED, shmemi_far_mask(f, 0), op, size, f->raddr, f->rkey,
                                                   operand, cond, laddr, lkey, 0));
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
    int in_place = len > fits && shmemi_far_local(source, len, &lkey);

    if (!in_place && most > fits)
        most = fits;
    SHMEMI_ROLLED
    while (len) {
        uint32_t n = (uint32_t)(len < most ? len : most);
        int now = n < len ? SHMEMI_SQ_DEFER : flags;

        if (in_place)
            ticket = shmemi_far_rdma(f, SHMEMI_MLX5_WRITE, raddr, (uint64_t)(uintptr_t)source, lkey, n, now);
        else
            shmemi_far_inline(f, raddr, source, n, now);
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
    int in_place = shmemi_far_local(dest, len, &lkey);

    if (!in_place) {
        slot = shmemi_far_take(f);
        lkey.raw = shmemi_dev_state.nic.area_lkey;
        most = most < SHMEMI_DEV_SLOT ? most : SHMEMI_DEV_SLOT;
    }
    SHMEMI_ROLLED
    while (len) {
        uint32_t n = (uint32_t)(len < most ? len : most);

        ticket = shmemi_far_rdma(f, SHMEMI_MLX5_READ, raddr, in_place ? (uint64_t)(uintptr_t)dest : slot, lkey, n,
                                 in_place && n < len ? SHMEMI_SQ_DEFER : 0);
        if (!in_place) {
            shmemi_far_wait(f->sq, ticket, f->call, f->own);
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
    struct shmemi_far f = shmemi_far_of(scope, ctx, dest, world, call);
    uint64_t ticket = shmemi_far_put_one(&f, f.raddr, (const char *)source, len, 0);

    if (ticket && !shmemi_far_is_nbi(call))
        shmemi_far_wait(f.sq, ticket, call, f.own);
}

SHMEMI_DEV_LARGE void shmemi_far_get(enum shmemi_scope scope, shmem_ctx_t ctx, void *dest, const void *source, uint64_t len,
                                     int world, uint32_t call)
{
    struct shmemi_far f = shmemi_far_of(scope, ctx, source, world, call);
    uint64_t ticket = len ? shmemi_far_get_one(&f, (char *)dest, f.raddr, len) : 0;

    if (ticket && !shmemi_far_is_nbi(call))
        shmemi_far_wait(f.sq, ticket, call, f.own);
}

/*
 * Thread `rank` of `size` moves every size-th block, and completes its own gets; distances in bytes.  A private context's
 * queue takes one thread only.
 */
SHMEMI_DEV_LARGE void shmemi_far_blocks(int put, shmem_ctx_t ctx, char *dest, uint64_t dst, const char *source, uint64_t sst,
                                        uint64_t n, uint64_t block, uint32_t rank, uint32_t size, int world, uint32_t call)
{
    struct shmemi_far f = shmemi_far_of(SHMEMI_THREAD, ctx, put ? dest : source, world, call);
    uint64_t last = 0, ticket;

    if (f.is_private && rank)
        return;
    SHMEMI_ROLLED
    for (uint64_t i = rank; i < n; i += f.is_private ? 1 : size) {
        if (put)
            ticket = shmemi_far_put_one(&f, f.raddr + i * dst, source + i * sst, block, 0);
        else
            ticket = shmemi_far_get_one(&f, dest + i * dst, f.raddr + i * sst, block);
        last = ticket ? ticket : last;
    }
    if (last)
        shmemi_far_wait(f.sq, last, call, f.own);
}

/* ---- words ---- */

SHMEMI_DEV_LARGE void shmemi_far_p(shmem_ctx_t ctx, void *dest, const void *value, uint32_t size, int world, uint32_t call)
{
    struct shmemi_far f = shmemi_far_of(SHMEMI_THREAD, ctx, dest, world, call);

    if (size > 8)
        shmemi_far_inline(&f, f.raddr, value, size, 0);
    else
        shmemi_far_value(&f, size == 8 ? shmemi_ld64u(value) : shmemi_sq_few((const char *)value, size), size);
}

SHMEMI_DEV_LARGE void shmemi_far_signal(enum shmemi_scope scope, shmem_ctx_t ctx, uint64_t *sig_addr, uint64_t signal,
                                        int sig_op, int world, uint32_t call)
{
    struct shmemi_far f = shmemi_far_of(scope, ctx, sig_addr, world, call);

    if (sig_op == SHMEM_SIGNAL_SET)
        shmemi_far_value(&f, signal, 8);
    else
        shmemi_far_atomic(&f, SHMEMI_SQ_FETCH_ADD, 8, signal, 0, shmemi_dev_state.nic.area + SHMEMI_DEV_SCRAP_OFF);
}

/* The data's doorbell is left to the signal, which follows it in the same queue. */
SHMEMI_DEV_LARGE void shmemi_far_put_signal(enum shmemi_scope scope, shmem_ctx_t ctx, void *dest, const void *source,
                                            uint64_t len, uint64_t *sig_addr, uint64_t signal, int sig_op, int world,
                                            uint32_t call)
{
    struct shmemi_far f;
    uint64_t ticket = 0;

    if (len) {
        f = shmemi_far_of(scope, ctx, dest, world, call);
        ticket = shmemi_far_put_one(&f, f.raddr, (const char *)source, len, SHMEMI_SQ_DEFER);
    }
    shmemi_far_signal(scope, ctx, sig_addr, signal, sig_op, world, call);
    if (ticket && !shmemi_far_is_nbi(call))
        shmemi_far_wait(f.sq, ticket, call, f.own);
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
    struct shmemi_far f = shmemi_far_of(SHMEMI_THREAD, ctx, dest, world, SHMEMI_CALL_ATOMIC);
    uint64_t slot = shmemi_dev_state.nic.area + SHMEMI_DEV_SCRAP_OFF, ticket, old;
    shmemi_be32 lkey;

    lkey.raw = shmemi_dev_state.nic.area_lkey;
    if (wanted)
        slot = shmemi_far_take(&f);
    if (op == SHMEMI_DEV_FETCH)
        ticket = shmemi_far_rdma(&f, SHMEMI_MLX5_READ, f.raddr, slot, lkey, size, 0);
    else
        ticket = shmemi_far_atomic(&f, shmemi_far_amo_op(op), size, operand, cond, slot);
    if (!wanted)
        return 0;
    shmemi_far_wait(f.sq, ticket, SHMEMI_CALL_ATOMIC, f.own);
    if (op == SHMEMI_DEV_FETCH && size == 4)
        old = *(const volatile uint32_t *)(uintptr_t)slot;
    else
        old = shmemi_sq_amo_result((const void *)(uintptr_t)slot, size);
    shmemi_far_give(&f, slot);
    return old;
}

#endif
#endif
