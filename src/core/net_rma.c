/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net_rma.c - put and get over the NIC.
 *
 * What is small goes inline into the work request.  A blocking put of more copies up to SHMEMI_NET_SMALL bytes to the
 * bounce buffer and returns; beyond that symmetric memory is read in place, and waited for.  Other memory always takes
 * the bounce buffer, in pieces.  A transfer that is longer than one work request may be is cut.
 */
#include "net_queue.h"

#include "amo.h"
#include "log.h"
#include "net_dheap.h"
#include "transports/cuda/gpu.h"

#include <string.h>

/* The least of what is left, what one work request may carry, and `most`. */
static uint32_t piece(size_t left, size_t most)
{
    size_t n = shmemi_net.message_max < most ? shmemi_net.message_max : most;

    return (uint32_t)(left < n ? left : n);
}

bool shmemi_net_registered(const struct shmemi_net_queue *q, const void *addr, size_t len, uint64_t *laddr_out,
                           uint32_t *lkey_out)
{
    uintptr_t a = (uintptr_t)addr;
    const struct shmemi_net_peer *me = &shmemi_net.peers[shmemi.my_pe];

    *lkey_out = q->lkey;
    if (a - shmemi.heap_base < shmemi.heap_len && len <= shmemi.heap_len - (a - shmemi.heap_base)) {
        *laddr_out = a;
        return true;
    }
    if (a - shmemi.data_base < shmemi.data_len && len <= shmemi.data_len - (a - shmemi.data_base)) {
        *laddr_out = a - shmemi.data_base + me->data; /* the NIC knows the slice's mapping of it */
        return true;
    }
    if (a - me->team_blocks < SHMEMI_TEAMS_MAX * (size_t)SHMEMI_TEAM_BLOCK_BYTES) {
        *laddr_out = a;
        return true;
    }
    if (a - shmemi.dheap_base < shmemi.dheap_len && len <= shmemi.dheap_len - (a - shmemi.dheap_base)) {
        *laddr_out = a;
        *lkey_out = shmemi_net_dheap_lkey(q->rail);
        return *lkey_out != 0;
    }
    return false;
}

void shmemi_net_move(void *to, const void *from, size_t len, const char *call)
{
    if (!shmemi_net_on_gpu(to) && !shmemi_net_on_gpu(from))
        memcpy(to, from, len);
    else if (shmemi_gpu_copy(to, from, len, true))
        shmemi_fatal(call, "%zu bytes between %p and %p: the GPU's copy failed", len, to, from);
}

/* ---- put ---- */

/* From memory that the NIC knows.  The ticket of the last piece. */
static uint64_t put_in_place(struct shmemi_net_queue *q, uint64_t raddr, uint64_t laddr, uint32_t lkey, size_t len,
                             int flags, const char *call)
{
    uint64_t ticket = 0;

    for (size_t at = 0; at < len;) {
        uint32_t n = piece(len - at, UINT32_MAX);

        ticket = shmemi_net_post_write(q, raddr + at, laddr + at, lkey, n, at + n < len ? flags | SHMEMI_SQ_DEFER : flags,
                                       call);
        at += n;
    }
    return ticket;
}

static void put_copied(struct shmemi_net_queue *q, uint64_t raddr, const char *source, size_t len, int flags,
                       const char *call)
{
    shmemi_bounce_lock(q->ctx);
    for (size_t at = 0; at < len;) {
        uint32_t n = piece(len - at, SHMEMI_BOUNCE_PIECE);
        char *between = shmemi_bounce_take(q->ctx, n, call);
        uint64_t ticket;

        shmemi_net_move(between, source + at, n, call);
        ticket = shmemi_net_post_write(q, raddr + at, (uint64_t)(uintptr_t)between, q->ctx->bounce.key.lkey[q->rail], n,
                                       at + n < len ? 0 : flags, call);
        shmemi_bounce_give(q->ctx, q, ticket, SHMEMI_BOUNCE_PUT, between, NULL, n);
        at += n;
    }
    shmemi_bounce_unlock(q->ctx);
}

/* Any length but 0.  A ticket to wait for before source may change, or 0. */
static uint64_t put_one(struct shmemi_net_queue *q, uint64_t raddr, const void *source, size_t len, bool nbi, int flags,
                        const char *call)
{
    bool on_gpu = shmemi_net_on_gpu(source);
    uint64_t laddr, ticket;
    uint32_t lkey;

    if (len <= q->inline_max && len <= shmemi_net.message_max && !on_gpu) {
        shmemi_net_post_inline(q, raddr, source, (uint32_t)len, flags, call);
        return 0;
    }
    if ((nbi || on_gpu || len > SHMEMI_NET_SMALL) && shmemi_net_registered(q, source, len, &laddr, &lkey)) {
        ticket = put_in_place(q, raddr, laddr, lkey, len, on_gpu ? flags | SHMEMI_NIC_IN_PLACE : flags, call);
        return nbi ? 0 : ticket;
    }
    put_copied(q, raddr, source, len, flags, call);
    return 0;
}

/* Eight bytes, by the shortest way that there is. */
SHMEMI_INLINE void put_word(struct shmemi_net_queue *q, uint64_t raddr, const void *source, int flags, const char *call)
{
    uint64_t v;

    memcpy(&v, source, sizeof v);
    if (shmemi_unlikely(q->mode != SHMEMI_NET_PRIVATE)) {
        shmemi_net_post_inline(q, raddr, &v, sizeof v, flags, call);
        return;
    }
    if (shmemi_unlikely(shmemi_sq_write_value(&q->nic.sq, SHMEMI_SQ_PRIVATE, raddr, shmemi_rkey_be(q, raddr), v, sizeof v,
                                              flags) == SHMEMI_SQ_FAILED))
        shmemi_net_failed(q, call);
    if (!(flags & SHMEMI_SQ_DEFER))
        q->n_deferred = 0;
    shmemi_net_mark(q);
}

void shmemi_net_p(shmem_ctx_t ctx, void *dest, const void *value, size_t size, int pe, const char *call)
{
    struct shmemi_net_queue *q = shmemi_net_queue_of(ctx, dest, pe, call);
    uint64_t raddr = shmemi_net_raddr(q, dest, call);

    if (shmemi_likely(size == 8))
        put_word(q, raddr, value, 0, call);
    else
        shmemi_net_post_inline(q, raddr, value, (uint32_t)size, 0, call);
}

void shmemi_net_put(shmem_ctx_t ctx, void *dest, const void *source, size_t len, int pe, bool nbi, const char *call)
{
    struct shmemi_net_queue *q = shmemi_net_queue_of(ctx, dest, pe, call);
    uint64_t raddr = shmemi_net_raddr(q, dest, call), ticket;

    if (len == 8 && !shmemi_net_on_gpu(source)) {
        if (nbi)
            put_word(q, raddr, source, shmemi_net_defer(q, len), call);
        else
            put_word(q, raddr, source, 0, call);
        return;
    }
    ticket = put_one(q, raddr, source, len, nbi, nbi ? shmemi_net_defer(q, len) : 0, call);
    if (ticket)
        shmemi_net_wait(q, ticket, call);
}

void shmemi_net_put_strided(shmem_ctx_t ctx, void *dest, size_t dst, const void *source, size_t sst, size_t n,
                            size_t block, int pe, const char *call)
{
    struct shmemi_net_queue *q = shmemi_net_queue_of(ctx, dest, pe, call);
    uint64_t raddr = shmemi_net_raddr(q, dest, call), wait = 0, laddr;
    uint32_t lkey;

    if (shmemi_net_on_gpu(source) && !shmemi_net_registered(q, source, (n - 1) * sst + block, &laddr, &lkey)) {
        shmemi_net_put_gathered(ctx, dest, dst, source, sst, n, block, pe, call);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        uint64_t ticket = put_one(q, raddr + i * dst, (const char *)source + i * sst, block, false,
                                  i + 1 < n ? SHMEMI_SQ_DEFER : 0, call);

        if (ticket)
            wait = ticket;
    }
    if (wait)
        shmemi_net_wait(q, wait, call);
}

/* ---- get ---- */

static uint64_t get_in_place(struct shmemi_net_queue *q, uint64_t laddr, uint32_t lkey, uint64_t raddr, size_t len,
                             int flags, const char *call)
{
    uint64_t ticket = 0;

    for (size_t at = 0; at < len;) {
        uint32_t n = piece(len - at, UINT32_MAX);

        ticket = shmemi_net_post_read(q, raddr + at, laddr + at, lkey, n, at + n < len ? SHMEMI_SQ_DEFER : flags, call);
        at += n;
    }
    return ticket;
}

/* Arrives in dest when the bounce buffer is drained. */
static void get_copied(struct shmemi_net_queue *q, char *dest, uint64_t raddr, size_t len, int flags, const char *call)
{
    shmemi_bounce_lock(q->ctx);
    for (size_t at = 0; at < len;) {
        uint32_t n = piece(len - at, SHMEMI_BOUNCE_PIECE);
        char *between = shmemi_bounce_take(q->ctx, n, call);
        uint64_t ticket = shmemi_net_post_read(q, raddr + at, (uint64_t)(uintptr_t)between, q->ctx->bounce.key.lkey[q->rail], n,
                                               at + n < len ? 0 : flags, call);

        shmemi_bounce_give(q->ctx, q, ticket, SHMEMI_BOUNCE_GET, between, dest + at, n);
        at += n;
    }
    shmemi_bounce_unlock(q->ctx);
}

/* Small, blocking, to memory of any kind. */
static void get_landing(struct shmemi_net_queue *q, void *dest, uint64_t raddr, size_t len, const char *call)
{
    char *slot = shmemi_landing_take();
    uint64_t ticket = 0;

    for (size_t at = 0; at < len;) {
        uint32_t n = piece(len - at, SHMEMI_LANDING_BYTES);

        ticket = shmemi_net_post_read(q, raddr + at, (uint64_t)(uintptr_t)(slot + at), shmemi_landing_key(q), n, 0, call);
        at += n;
    }
    shmemi_net_wait(q, ticket, call);
    shmemi_net_move(dest, slot, len, call);
    shmemi_landing_put(slot);
}

void shmemi_net_get(shmem_ctx_t ctx, void *dest, const void *source, size_t len, int pe, bool nbi, const char *call)
{
    struct shmemi_net_queue *q = shmemi_net_queue_of(ctx, source, pe, call);
    uint64_t raddr = shmemi_net_raddr(q, source, call), laddr, ticket;
    uint32_t lkey;

    if (shmemi_net_registered(q, dest, len, &laddr, &lkey)) {
        ticket = get_in_place(q, laddr, lkey, raddr, len, nbi ? shmemi_net_defer(q, len) : 0, call);
        if (!nbi)
            shmemi_net_wait(q, ticket, call);
    } else if (!nbi && len <= SHMEMI_LANDING_BYTES) {
        get_landing(q, dest, raddr, len, call);
    } else {
        get_copied(q, dest, raddr, len, nbi ? shmemi_net_defer(q, len) : 0, call);
        if (!nbi)
            shmemi_bounce_drain(q->ctx, q, call);
    }
}

void shmemi_net_get_strided(shmem_ctx_t ctx, void *dest, size_t dst, const void *source, size_t sst, size_t n,
                            size_t block, int pe, const char *call)
{
    struct shmemi_net_queue *q = shmemi_net_queue_of(ctx, source, pe, call);
    uint64_t raddr = shmemi_net_raddr(q, source, call), laddr = 0, ticket = 0;
    uint32_t lkey = 0;
    bool in_place = shmemi_net_registered(q, dest, (n - 1) * dst + block, &laddr, &lkey);

    if (!in_place && shmemi_net_on_gpu(dest)) {
        shmemi_net_get_scattered(ctx, dest, dst, source, sst, n, block, pe, call);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        int flags = i + 1 < n ? SHMEMI_SQ_DEFER : 0;

        if (in_place)
            ticket = get_in_place(q, laddr + i * dst, lkey, raddr + i * sst, block, flags, call);
        else
            get_copied(q, (char *)dest + i * dst, raddr + i * sst, block, flags, call);
    }
    if (in_place)
        shmemi_net_wait(q, ticket, call);
    else
        shmemi_bounce_drain(q->ctx, q, call);
}

/* ---- put with signal ---- */

/* Data and signal in one post, where they are one entry each; false, and nothing done, where they are not. */
static bool put_signalled(struct shmemi_net_queue *q, uint64_t raddr, const void *source, size_t len, bool nbi,
                          const struct shmemi_sq_signal *sig, const char *call)
{
    bool on_gpu = shmemi_net_on_gpu(source);
    uint64_t laddr, ticket;
    uint32_t lkey;
    char *between;

    if (len <= q->inline_max && !on_gpu) {
        shmemi_net_post_inline_signal(q, raddr, source, (uint32_t)len, sig, call);
        return true;
    }
    if ((nbi || on_gpu || len > SHMEMI_NET_SMALL) && shmemi_net_registered(q, source, len, &laddr, &lkey)) {
        ticket = shmemi_net_post_write_signal(q, raddr, laddr, lkey, (uint32_t)len, sig, call);
        if (!nbi)
            shmemi_net_wait(q, ticket, call);
        return true;
    }
    if (len > SHMEMI_BOUNCE_PIECE)
        return false;
    shmemi_bounce_lock(q->ctx);
    between = shmemi_bounce_take(q->ctx, len, call);
    shmemi_net_move(between, source, len, call);
    ticket = shmemi_net_post_write_signal(q, raddr, (uint64_t)(uintptr_t)between, q->ctx->bounce.key.lkey[q->rail], (uint32_t)len,
                                          sig, call);
    shmemi_bounce_give(q->ctx, q, ticket, SHMEMI_BOUNCE_PUT, between, NULL, len);
    shmemi_bounce_unlock(q->ctx);
    return true;
}

void shmemi_net_put_signal(shmem_ctx_t ctx, void *dest, const void *source, size_t len, uint64_t *sig_addr,
                           uint64_t signal, int sig_op, int pe, bool nbi, const char *call)
{
    struct shmemi_net_queue *q = shmemi_net_queue_of(ctx, sig_addr, pe, call);
    uint64_t raddr, ticket = 0;

    if (len && q->mode != SHMEMI_NET_VERBS && len <= shmemi_net.message_max) {
        struct shmemi_sq_signal sig = {
            .raddr = shmemi_net_raddr(q, sig_addr, call), .value = signal,
            .add = sig_op == SHMEM_SIGNAL_ADD, .laddr = shmemi_landing_scrap(), .lkey = shmemi_be32_of(shmemi_landing_key(q)),
        };

        sig.rkey = shmemi_rkey_be(q, sig.raddr);
        if (put_signalled(q, shmemi_net_raddr(q, dest, call), source, len, nbi, &sig, call))
            return;
    }
    if (len) /* the signal, behind it in the same queue, rings */
        ticket = put_one(q, shmemi_net_raddr(q, dest, call), source, len, nbi, SHMEMI_SQ_DEFER, call);
    raddr = shmemi_net_raddr(q, sig_addr, call);
    if (sig_op == SHMEM_SIGNAL_SET)
        put_word(q, raddr, &signal, 0, call);
    else
        shmemi_net_post_atomic(q, raddr, signal, NULL, shmemi_landing_scrap(), shmemi_landing_key(q), 0, call);
    if (ticket)
        shmemi_net_wait(q, ticket, call);
}

/* ---- the core's own words ---- */

static uint64_t block_raddr(int pe, const void *mine, const char *call)
{
    const struct shmemi_net_peer *me = &shmemi_net.peers[shmemi.my_pe], *p = &shmemi_net.peers[pe];
    uintptr_t a = (uintptr_t)mine;

    if (a - me->team_blocks < SHMEMI_TEAMS_MAX * (size_t)SHMEMI_TEAM_BLOCK_BYTES)
        return a - me->team_blocks + p->team_blocks;
    if (a - me->ctl < sizeof(struct shmemi_pe_ctl))
        return a - me->ctl + p->ctl;
    shmemi_fatal(call, "%p is neither a team block nor a control word", mine);
}

void shmemi_net_block_write(int pe, const void *mine, const void *src, size_t len, const uint64_t *epoch_at,
                            uint64_t epoch, const char *call)
{
    struct shmemi_net_queue *q = shmemi_net_queue_of(SHMEM_CTX_DEFAULT, mine, pe, call);

    if (len && len <= q->inline_max)
        shmemi_net_post_inline(q, block_raddr(pe, mine, call), src, (uint32_t)len, epoch_at ? SHMEMI_SQ_DEFER : 0, call);
    else if (len)
        put_copied(q, block_raddr(pe, mine, call), src, len, epoch_at ? SHMEMI_SQ_DEFER : 0, call);
    if (epoch_at)
        put_word(q, block_raddr(pe, epoch_at, call), &epoch, 0, call);
}

void shmemi_net_block_read(int pe, const void *mine, void *dst, size_t len, const char *call)
{
    struct shmemi_net_queue *q = shmemi_net_queue_of(SHMEM_CTX_DEFAULT, mine, pe, call);
    uint64_t laddr, raddr = block_raddr(pe, mine, call);
    uint32_t lkey;

    if (!len)
        return;
    if (shmemi_net_registered(q, dst, len, &laddr, &lkey)) {
        shmemi_net_wait(q, get_in_place(q, laddr, lkey, raddr, len, 0, call), call);
    } else if (len <= SHMEMI_LANDING_BYTES) {
        get_landing(q, dst, raddr, len, call);
    } else {
        get_copied(q, dst, raddr, len, 0, call);
        shmemi_bounce_drain(q->ctx, q, call);
    }
}

void shmemi_net_block_add(int pe, const uint64_t *mine, uint64_t value, const char *call)
{
    struct shmemi_net_queue *q = shmemi_net_queue_of(SHMEM_CTX_DEFAULT, mine, pe, call);

    shmemi_net_post_atomic(q, block_raddr(pe, mine, call), value, NULL, shmemi_landing_scrap(), shmemi_landing_key(q), 0,
                           call);
}
