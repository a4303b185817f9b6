/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * far.h - put, get, signals and atomics of kernels where loads and stores do not lead: the calling thread posts to a queue
 * of the NIC (sq.h), or leaves a request to a thread of the CPU where the NIC cannot be driven from here (channel.h).
 *
 * A context has one queue a peer (the default one may have several, of which a block uses one), so its operations to one peer
 * stay in order and a fence between them is free.  Threads that
 * make a call together share a reservation and a doorbell (sq_warp.h); of a warp's or block's call one thread posts.  A
 * queue of a private context belongs to one thread at a time and takes no atomics.  A call that takes several work requests posts
 * them as one run: the pieces of a long transfer, the blocks of a strided one, data and their signal.  In a session with
 * SHMEM_CTX_SESSION_BATCH a private context's puts that need not wait leave the doorbell to whatever does.
 *
 * Local memory that the NIC knows (the symmetric heaps) is used in place when it does not fit a work request; other
 * memory is sent inline, piece by piece, and received through a slot of the result area.  A queue in error ends the kernel.
 */
#ifndef SHMEM_DEVICE_FAR_H
#define SHMEM_DEVICE_FAR_H

#include "amo_op.h"
#include "far_post.h"

#ifdef SHMEMI_DEVICE_CODE

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

/* Requests of one kind: `n` of `len` bytes, the last one of `last`, from step to step there and here. */
struct shmemi_far_pieces {
    uint64_t n, raddr, rstep, local, lstep;
    uint32_t op, len, last; /* op: WRITE, READ (of memory under lkey), INLINE */
    shmemi_be32 lkey;
};

/* What follows behind the last of them in the same run: a signal, of one block. */
struct shmemi_far_then {
    shmemi_be32 rkey;
    struct shmemi_chan_request r;
};

SHMEMI_DEV uint32_t shmemi_far_piece_len(const struct shmemi_far_pieces *p, uint64_t i)
{
    return i + 1 < p->n ? p->len : p->last;
}

SHMEMI_DEV struct shmemi_chan_request shmemi_far_piece(const struct shmemi_far_pieces *p, uint64_t i)
{
    struct shmemi_chan_request r = { p->op, 0, 0, 0, p->raddr + i * p->rstep, p->local + i * p->lstep, 0, 0, 0, p->lkey.raw,
                                     shmemi_far_piece_len(p, i), 0, (const void *)(uintptr_t)(p->local + i * p->lstep) };

    return r;
}

SHMEMI_DEV uint32_t shmemi_far_piece_blocks(const struct shmemi_far_pieces *p, uint32_t len)
{
    return p->op == SHMEMI_CHAN_INLINE ? shmemi_sq_inline_blocks(len) : 1;
}

/* At most 8 bytes of any alignment. */
SHMEMI_DEV_COLD uint64_t shmemi_far_load_odd(const char *from, uint32_t len)
{
    return len == 8 ? shmemi_sq_odd_word(from, 0, 8) : shmemi_sq_few(from, len);
}

SHMEMI_DEV uint64_t shmemi_far_load(const char *from, uint32_t len)
{
    return len == 8 && shmemi_in_halves(from) ? shmemi_ld64h(from) : shmemi_far_load_odd(from, len);
}

/* Words of at most 8 bytes. */
SHMEMI_DEV_LARGE void shmemi_far_fill_words(const struct shmemi_far *f, const struct shmemi_far_pieces *p, uint64_t i, uint32_t k,
                                            struct shmemi_far_run *run)
{
    const struct shmemi_sq_fixed q = run->p.q;
    uint64_t idx = run->p.idx + run->used, raddr = p->raddr + i * p->rstep, bell = 0;
    const char *from = (const char *)(uintptr_t)(p->local + i * p->lstep);
    uint32_t len = p->len, fm = run->used + k == run->n ? shmemi_sq_fm(run->p.signalled, 0) : 0;

    run->used += k;
    run->last = idx + k - 1;
    SHMEMI_ROLLED
    for (; k; k--) {
        bell = shmemi_sq_fill_value(&q, idx++, k == 1 ? fm : 0, raddr, f->rkey, shmemi_far_load(from, len), len);
        from += p->lstep;
        raddr += p->rstep;
    }
    run->bell = bell;
}

/* Pieces [i, i + k) into a run that has room for them. */
SHMEMI_DEV_LARGE void shmemi_far_fill_pieces(const struct shmemi_far *f, const struct shmemi_far_pieces *p, uint64_t i, uint64_t k,
                                             struct shmemi_far_run *run)
{
    struct shmemi_chan_request r;

    if (p->op == SHMEMI_CHAN_INLINE && p->len <= 8) {
        if (!run->p.failed)
            shmemi_far_fill_words(f, p, i, (uint32_t)k, run);
        return;
    }
    SHMEMI_ROLLED
    for (uint64_t end = i + k; i < end; i++) {
        r = shmemi_far_piece(p, i);
        shmemi_far_run_fill(run, f->rkey, &r);
    }
}

/* The ticket of the last run.  A doorbell each of them, if `flags` leave none out. */
SHMEMI_DEV_LARGE uint64_t shmemi_far_post_pieces(const struct shmemi_far *f, const struct shmemi_far_pieces *p,
                                                 const struct shmemi_far_then *then, int flags)
{
    uint32_t each = shmemi_far_piece_blocks(p, p->len), most = (shmemi_far_run_most(f) - (then != 0)) / each;
    uint64_t i = 0, ticket = 0;
    struct shmemi_far_run run;

    SHMEMI_ROLLED
    while (i < p->n) {
        uint64_t k = p->n - i < most ? p->n - i : most;
        int ends = i + k == p->n;
        uint32_t n = (uint32_t)(k - (uint64_t)ends) * each + (ends ? shmemi_far_piece_blocks(p, p->last) + (then != 0) : 0);

        shmemi_far_run_open(f, n, flags, &run);
        shmemi_far_fill_pieces(f, p, i, k, &run);
        if (ends && then)
            shmemi_far_run_fill(&run, then->rkey, &then->r);
        ticket = shmemi_far_run_close(f, &run);
        i += k;
    }
    return ticket;
}

/* The same as requests to a thread of the CPU. */
SHMEMI_DEV_LARGE uint64_t shmemi_far_ask_pieces(const struct shmemi_far *f, const struct shmemi_far_pieces *p,
                                                const struct shmemi_far_then *then)
{
    struct shmemi_chan_request r;
    struct shmemi_far there = *f;
    uint64_t ticket = 0;

    SHMEMI_ROLLED
    for (uint64_t i = 0; i < p->n; i++) {
        r = shmemi_far_piece(p, i);
        ticket = shmemi_far_ask(f, &r);
    }
    if (!then)
        return ticket;
    r = then->r;
    there.rkey = then->rkey;
    (void)shmemi_far_ask(&there, &r);
    return ticket;
}

/* The ticket of the last piece, or of one behind it. */
SHMEMI_DEV_LARGE uint64_t shmemi_far_send(const struct shmemi_far *f, const struct shmemi_far_pieces *p,
                                          const struct shmemi_far_then *then, int flags)
{
    return shmemi_far_proxy() ? shmemi_far_ask_pieces(f, p, then) : shmemi_far_post_pieces(f, p, then, flags);
}

SHMEMI_DEV uint32_t shmemi_far_fits(void)
{
    return shmemi_far_proxy() ? SHMEMI_CHAN_INLINE_MAX : SHMEMI_SQ_INLINE_MAX;
}

/* Any length, then a signal (or null).  A ticket to wait for before source may change, or 0. */
SHMEMI_DEV_LARGE uint64_t shmemi_far_put_one(const struct shmemi_far *f, uint64_t raddr, const char *source, uint64_t len,
                                             const struct shmemi_far_then *then, int flags)
{
    uint32_t fits = shmemi_far_fits(), most = shmemi_dev_state.nic.message_max;
    struct shmemi_far_pieces p;
    uint64_t ticket;
    int in_place;

    p.lkey.raw = 0;
    in_place = len > fits && shmemi_far_local(source, len, f->world, &p.lkey);
    if (!in_place && most > fits)
        most = fits;
    p.op = in_place ? SHMEMI_CHAN_WRITE : SHMEMI_CHAN_INLINE;
    p.n = (len + most - 1) / most;
    p.raddr = raddr;
    p.local = (uint64_t)(uintptr_t)source;
    p.rstep = p.lstep = p.len = most;
    p.last = (uint32_t)(len - (p.n - 1) * most);
    ticket = shmemi_far_send(f, &p, then, flags);
    return in_place ? ticket : 0;
}

SHMEMI_DEV void shmemi_far_bytes_out(char *to, uint64_t slot, uint64_t n)
{
    const volatile char *from = (const volatile char *)(uintptr_t)slot;

    SHMEMI_ROLLED
    for (uint64_t i = 0; i < n; i++)
        to[i] = from[i];
}

/* Through a slot: as many pieces at a time as it holds. */
SHMEMI_DEV_LARGE void shmemi_far_get_by_slot(const struct shmemi_far *f, struct shmemi_far_pieces *p)
{
    uint64_t left = p->n, at = p->local, step = p->lstep, slot = shmemi_far_take(f);
    uint32_t last = p->last;

    p->lkey.raw = shmemi_far_area_lkey(f->world);
    p->local = slot;
    p->lstep = p->len;
    SHMEMI_ROLLED
    for (; left; left -= p->n) {
        p->n = left < SHMEMI_DEV_SLOT / p->len ? left : SHMEMI_DEV_SLOT / p->len;
        p->last = p->n == left ? last : p->len;
        shmemi_far_wait(f->sq, shmemi_far_send(f, p, 0, 0), f->world, f->call, f->own);
        SHMEMI_ROLLED
        for (uint64_t i = 0; i < p->n; i++, at += step)
            shmemi_far_bytes_out((char *)(uintptr_t)at, slot + i * p->len, shmemi_far_piece_len(p, i));
        p->raddr += p->n * p->rstep;
    }
    shmemi_far_give(f, slot);
}

/* A ticket to wait for, or 0: what was asked for is there. */
SHMEMI_DEV_LARGE uint64_t shmemi_far_get_one(const struct shmemi_far *f, char *dest, uint64_t raddr, uint64_t len)
{
    uint32_t most = shmemi_dev_state.nic.message_max;
    struct shmemi_far_pieces p;
    int in_place = shmemi_far_local(dest, len, f->world, &p.lkey);

    if (!in_place && most > SHMEMI_DEV_SLOT)
        most = SHMEMI_DEV_SLOT;
    p.op = SHMEMI_CHAN_READ;
    p.n = (len + most - 1) / most;
    p.raddr = raddr;
    p.local = (uint64_t)(uintptr_t)dest;
    p.rstep = p.lstep = p.len = most;
    p.last = (uint32_t)(len - (p.n - 1) * most);
    if (in_place)
        return shmemi_far_send(f, &p, 0, 0);
    shmemi_far_get_by_slot(f, &p);
    return 0;
}

/* By lanes together, or through the channel. */
SHMEMI_DEV_LARGE void shmemi_far_word_by_run(uint32_t row, void *dest, uint64_t value, uint32_t size, int world, uint32_t call)
{
    struct shmemi_far f;

    shmemi_far_open(&f, SHMEMI_THREAD, row, dest, world, call);
    (void)shmemi_far_inline(&f, f.raddr, 0, value, size, f.lazy);
}

/* By a whole warp; 0: not to one queue, or not now. */
SHMEMI_DEV_LARGE uint64_t shmemi_far_word_by_warp(struct shmemi_sq *sq, uint64_t raddr, shmemi_be32 rkey, uint64_t value,
                                                  uint32_t size)
{
    struct shmemi_sq_part p;

    if (!shmemi_sq_whole(sq, SHMEMI_SQ_SHARED, SHMEMI_SQ_ALL, 32, &p))
        return 0;
    return shmemi_sq_lanes_value(sq, SHMEMI_SQ_SHARED, 1, SHMEMI_SQ_ALL, &p, raddr, rkey, value, size, 0);
}

/* The low `size` (at most 8) bytes of value. */
SHMEMI_DEV_LARGE void shmemi_far_word(uint32_t row, void *dest, uint64_t value, uint32_t size, int world, uint32_t call)
{
    struct shmemi_v16 seg = shmemi_far_value_seg(value, size);
    struct shmemi_far f;
    uint64_t ticket = 0;

    shmemi_far_open_here(&f, SHMEMI_THREAD, row, dest, world, call);
    if (!shmemi_far_proxy()) {
        if (shmemi_far_single(f.is_private, SHMEMI_THREAD))
            ticket = shmemi_far_post_entry(f.sq, f.is_private, SHMEMI_MLX5_WRITE, f.raddr, f.rkey, seg, f.lazy);
        else if (shmemi_active_mask() == SHMEMI_SQ_ALL)
            ticket = shmemi_far_word_by_warp(f.sq, f.raddr, f.rkey, value, size);
    }
    if (ticket == SHMEMI_SQ_FAILED)
        shmemi_far_fail(f.sq, call, f.own);
    if (ticket == 0)
        shmemi_far_word_by_run(row, dest, value, size, world, call);
}

/* Of one work request of registered memory, by one thread: its ticket; 0: it takes more than that. */
SHMEMI_DEV uint64_t shmemi_far_quick(const struct shmemi_far *f, enum shmemi_scope scope, uint32_t opcode, const void *local,
                                     uint64_t len, int flags)
{
    struct shmemi_v16 seg;
    shmemi_be32 lkey;
    uint64_t ticket;

    if (shmemi_far_proxy() || !shmemi_far_single(f->is_private, scope) || len > shmemi_dev_state.nic.message_max ||
        !shmemi_far_local(local, len, f->world, &lkey))
        return 0;
    seg = shmemi_mlx5_data((uint64_t)(uintptr_t)local, lkey, (uint32_t)len);
    ticket = shmemi_far_post_entry(f->sq, f->is_private, opcode, f->raddr, f->rkey, seg, flags);
    if (ticket == SHMEMI_SQ_FAILED)
        shmemi_far_fail(f->sq, f->call, f->own);
    return ticket;
}

/* In a batch, of a put that is not waited for: the doorbell is left to a later post. */
SHMEMI_DEV int shmemi_far_put_flags(const struct shmemi_far *f, uint64_t len, uint32_t call)
{
    return len <= shmemi_far_fits() || shmemi_far_is_nbi(call) ? f->lazy : 0;
}

SHMEMI_DEV_LARGE void shmemi_far_put(enum shmemi_scope scope, shmem_ctx_t ctx, void *dest, const void *source, uint64_t len,
                                     int world, uint32_t call)
{
    struct shmemi_far f, run;
    uint64_t ticket = 0;

    if (scope == SHMEMI_THREAD && len - 1 < 8) {
        shmemi_far_word(shmemi_far_row(ctx), dest, shmemi_far_load((const char *)source, (uint32_t)len), (uint32_t)len, world, call);
        return;
    }
    shmemi_far_open_here(&f, scope, shmemi_far_row(ctx), dest, world, call);
    if (len > SHMEMI_SQ_INLINE_MAX)
        ticket = shmemi_far_quick(&f, scope, SHMEMI_MLX5_WRITE, source, len, shmemi_far_put_flags(&f, len, call));
    if (!ticket) {
        run = f;
        ticket = shmemi_far_put_one(&run, f.raddr, (const char *)source, len, 0, shmemi_far_put_flags(&f, len, call));
    }
    if (ticket && !shmemi_far_is_nbi(call))
        shmemi_far_wait(f.sq, ticket, world, call, f.own);
}

SHMEMI_DEV_LARGE void shmemi_far_get(enum shmemi_scope scope, shmem_ctx_t ctx, void *dest, const void *source, uint64_t len,
                                     int world, uint32_t call)
{
    struct shmemi_far f, run;
    uint64_t ticket = 0;

    shmemi_far_open_here(&f, scope, shmemi_far_row(ctx), source, world, call);
    if (len)
        ticket = shmemi_far_quick(&f, scope, SHMEMI_MLX5_READ, dest, len, 0);
    if (len && !ticket) {
        run = f;
        ticket = shmemi_far_get_one(&run, (char *)dest, f.raddr, len);
    }
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

/* Blocks of one request each, n of them from the first on, `size` apart; the ticket of the last, or 0. */
SHMEMI_DEV_LARGE uint64_t shmemi_far_short_blocks(const struct shmemi_far *f, const struct shmemi_far_blocks *b, uint64_t first,
                                                  uint64_t n, uint64_t size)
{
    uint64_t here = b->put ? b->sst : b->dst, span = (b->n - 1) * here + b->block;
    const char *local = b->put ? b->source : b->dest;
    struct shmemi_far_pieces p;
    int is_inline = b->put && b->block <= shmemi_far_fits(), in_place;

    p.lkey.raw = 0;
    in_place = !is_inline && shmemi_far_local(local, span, f->world, &p.lkey);
    p.op = is_inline ? SHMEMI_CHAN_INLINE : b->put ? SHMEMI_CHAN_WRITE : SHMEMI_CHAN_READ;
    p.n = n;
    p.len = p.last = (uint32_t)b->block;
    p.rstep = (b->put ? b->dst : b->sst) * size;
    p.lstep = here * size;
    p.raddr = f->raddr + first * (b->put ? b->dst : b->sst);
    p.local = (uint64_t)(uintptr_t)local + first * here;
    if (is_inline || in_place) {
        uint64_t ticket = shmemi_far_send(f, &p, 0, is_inline ? f->lazy : 0);

        return in_place ? ticket : 0;
    }
    shmemi_far_get_by_slot(f, &p);
    return 0;
}

/* Is a block one request? */
SHMEMI_DEV int shmemi_far_blocks_short(const struct shmemi_far_blocks *b)
{
    shmemi_be32 lkey;
    uint64_t most = shmemi_dev_state.nic.message_max;

    if (b->put && b->block <= shmemi_far_fits())
        return b->block <= most;
    if (shmemi_far_local(b->put ? b->source : b->dest, (b->n - 1) * (b->put ? b->sst : b->dst) + b->block, b->world, &lkey))
        return b->block <= most;
    return !b->put && b->block <= most && b->block <= SHMEMI_DEV_SLOT;
}

/*
 * Thread `rank` of `size` moves every size-th block, and completes its own gets.  A private context's queue takes one thread
 * only.
 */
SHMEMI_DEV_LARGE void shmemi_far_blocks(const struct shmemi_far_blocks *b)
{
    uint64_t last = 0, ticket, step;
    struct shmemi_far f;

    shmemi_far_open(&f, SHMEMI_THREAD, shmemi_far_row(b->ctx), b->put ? b->dest : b->source, b->world, b->call);
    if ((f.is_private && b->rank) || b->rank >= b->n)
        return;
    step = f.is_private ? 1 : b->size;
    if (shmemi_far_blocks_short(b)) {
        last = shmemi_far_short_blocks(&f, b, b->rank, (b->n - b->rank + step - 1) / step, step);
    } else {
        SHMEMI_ROLLED
        for (uint64_t i = b->rank; i < b->n; i += step) {
            if (b->put)
                ticket = shmemi_far_put_one(&f, f.raddr + i * b->dst, b->source + i * b->sst, b->block, 0, 0);
            else
                ticket = shmemi_far_get_one(&f, b->dest + i * b->dst, f.raddr + i * b->sst, b->block);
            last = ticket ? ticket : last;
        }
    }
    if (last)
        shmemi_far_wait(f.sq, last, f.world, f.call, f.own);
}

/* ---- words ---- */

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

/* SET is a write of 8 bytes, ADD an atomic whose result nobody reads. */
SHMEMI_DEV struct shmemi_chan_request shmemi_far_signal_request(const struct shmemi_far *f, uint64_t signal, int sig_op)
{
    uint64_t scrap = shmemi_dev_state.nic.area + SHMEMI_DEV_SCRAP_OFF;
    struct shmemi_chan_request set = { SHMEMI_CHAN_INLINE, 0, 0, 0, f->raddr, 0, signal, 0, 0, 0, 8, 0, 0 };
    struct shmemi_chan_request add = { SHMEMI_CHAN_ATOMIC, SHMEMI_SQ_FETCH_ADD, 8, 0, f->raddr, scrap, signal, 0, 0,
                                       shmemi_far_area_lkey(f->world), 8, 0, 0 };

    return sig_op == SHMEM_SIGNAL_SET ? set : add;
}

SHMEMI_DEV_LARGE void shmemi_far_signal(enum shmemi_scope scope, shmem_ctx_t ctx, uint64_t *sig_addr, uint64_t signal,
                                        int sig_op, int world, uint32_t call)
{
    struct shmemi_chan_request r;
    struct shmemi_far f;

    shmemi_far_open(&f, scope, shmemi_far_row(ctx), sig_addr, world, call);
    r = shmemi_far_signal_request(&f, signal, sig_op);
    (void)shmemi_far_post(&f, &r, 0);
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

SHMEMI_DEV int shmemi_far_in_dheap(const void *addr)
{
    return (uint64_t)(uintptr_t)addr - shmemi_dev_state.dheap_base < shmemi_dev_state.dheap_len;
}

SHMEMI_DEV uint32_t shmemi_far_how(uint32_t call, int sig_op)
{
    return call | (sig_op == SHMEM_SIGNAL_ADD ? SHMEMI_FAR_ADD : 0);
}

/* Registered memory by one thread, to the device heap and its signal there too: the ticket, or 0. */
SHMEMI_DEV_LARGE uint64_t shmemi_far_signalled_quick(const struct shmemi_far_signalled *s)
{
    uint32_t row = shmemi_far_row(s->ctx), how = shmemi_far_how(s->call, s->sig_op);
    int is_private = (row & SHMEMI_DEV_ROW_PRIVATE) != 0;
    struct shmemi_v16 seg;
    shmemi_be32 lkey;

    if (shmemi_far_proxy() || s->len <= SHMEMI_SQ_INLINE_MAX || s->len > shmemi_dev_state.nic.message_max ||
        !shmemi_far_single(is_private, s->scope) || !shmemi_far_in_dheap(s->dest) || !shmemi_far_in_dheap(s->sig_addr) ||
        !shmemi_far_leads(row, s->world) || !shmemi_far_local(s->source, s->len, s->world, &lkey))
        return 0;
    seg = shmemi_mlx5_data((uint64_t)(uintptr_t)s->source, lkey, (uint32_t)s->len);
    if (is_private)
        return shmemi_far_pair_private(row, s->world, s->dest, s->sig_addr, seg.x, seg.y, s->signal, how);
    return shmemi_far_pair_shared(row, s->world, s->dest, s->sig_addr, seg.x, seg.y, s->signal, how);
}

/* The signal follows the data in the same run of the same queue. */
SHMEMI_DEV_LARGE void shmemi_far_put_signal(const struct shmemi_far_signalled *s)
{
    struct shmemi_far f, word;
    struct shmemi_far_then then;
    uint64_t ticket;

    shmemi_dev_check_word(s->sig_addr, 8, s->call);
    if (s->sig_op != SHMEM_SIGNAL_SET && s->sig_op != SHMEM_SIGNAL_ADD)
        shmemi_dev_fail(SHMEMI_DEV_BAD_VALUE, s->call, (uint64_t)s->sig_op, 0, 0);
    if (!s->len) {
        shmemi_far_signal(s->scope, s->ctx, s->sig_addr, s->signal, s->sig_op, s->world, s->call);
        return;
    }
    shmemi_apart_check(s->dest, s->len, s->world, s->call);
    ticket = shmemi_far_signalled_quick(s);
    if (ticket && !shmemi_far_is_nbi(s->call))
        shmemi_far_wait(shmemi_far_queue(shmemi_far_row(s->ctx), s->world), ticket, s->world, s->call,
                        (uint64_t)(uintptr_t)s->dest);
    if (ticket)
        return;
    shmemi_far_open(&f, s->scope, shmemi_far_row(s->ctx), s->dest, s->world, s->call);
    shmemi_far_open(&word, s->scope, shmemi_far_row(s->ctx), s->sig_addr, s->world, s->call);
    then.rkey = word.rkey;
    then.r = shmemi_far_signal_request(&word, s->signal, s->sig_op);
    ticket = shmemi_far_put_one(&f, f.raddr, (const char *)s->source, s->len, &then, 0);
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
    lkey.raw = shmemi_far_area_lkey(f.world);
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
    (void)shmemi_far_put_one(&f, f.raddr, (const char *)source, len, 0, flags);
}

SHMEMI_DEV_LARGE void shmemi_far_row_get(uint32_t row, void *dest, const void *source, uint64_t len, int world, uint32_t call)
{
    struct shmemi_far f;

    shmemi_far_open(&f, SHMEMI_THREAD, row, source, world, call);
    (void)shmemi_far_get_one(&f, (char *)dest, f.raddr, len);
}

#endif
#endif
