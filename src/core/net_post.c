/* SPDX-License-Identifier: BSD-3-Clause */
/* net_post.c - one operation onto one queue, by whichever way that queue is posted to. */
#include "net_queue.h"

/* Never backwards, whichever thread comes last. */
SHMEMI_INLINE void raise_to(uint64_t *word, uint64_t ticket)
{
    uint64_t old = SHMEMI_LD_RLX(word);

    while (old < ticket && !__atomic_compare_exchange_n(word, &old, ticket, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

/* What all posts do afterwards. */
SHMEMI_INLINE uint64_t posted(struct shmemi_net_queue *q, uint64_t ticket, int flags, const char *call)
{
    if (shmemi_unlikely((int64_t)ticket < 0))
        shmemi_net_failed(q, call);
    if (!(flags & SHMEMI_SQ_DEFER) && q->n_deferred)
        SHMEMI_ST_RLX(&q->n_deferred, (uint8_t)0);
    if (q->mode == SHMEMI_NET_VERBS) {
        raise_to(&q->last, ticket);
        raise_to(flags & SHMEMI_SQ_DEFER ? &q->deferred : &q->rung, ticket);
    }
    shmemi_net_mark(q);
    return ticket;
}

#define SQ_CALL(q, fn, ...)                                                             \
    ((q)->mode == SHMEMI_NET_PRIVATE ? fn(&(q)->nic.sq, SHMEMI_SQ_PRIVATE, __VA_ARGS__) \
                                     : fn(&(q)->nic.sq, SHMEMI_SQ_SHARED, __VA_ARGS__))

uint64_t shmemi_net_post_inline(struct shmemi_net_queue *q, uint64_t raddr, const void *data, uint32_t len, int flags,
                                const char *call)
{
    uint64_t t;

    if (q->mode == SHMEMI_NET_VERBS)
        t = (uint64_t)shmemi_net.module->write(&q->nic, raddr, shmemi_rkey(q, raddr), data, 0, len, flags);
    else
        t = SQ_CALL(q, shmemi_sq_write_inline, raddr, shmemi_rkey_be(q, raddr), data, len, flags);
    return posted(q, t, flags, call);
}

uint64_t shmemi_net_post_write(struct shmemi_net_queue *q, uint64_t raddr, uint64_t laddr, uint32_t lkey, uint32_t len,
                               int flags, const char *call)
{
    uint64_t t;

    if (q->mode == SHMEMI_NET_VERBS)
        t = (uint64_t)shmemi_net.module->write(&q->nic, raddr, shmemi_rkey(q, raddr), (const void *)(uintptr_t)laddr, lkey,
                                               len, flags);
    else
        t = SQ_CALL(q, shmemi_sq_write, raddr, shmemi_rkey_be(q, raddr), laddr, shmemi_be32_of(lkey), len,
                    flags & ~SHMEMI_NIC_IN_PLACE);
    return posted(q, t, flags, call);
}

uint64_t shmemi_net_post_inline_signal(struct shmemi_net_queue *q, uint64_t raddr, const void *data, uint32_t len,
                                       const struct shmemi_sq_signal *sig, const char *call)
{
    return posted(q, SQ_CALL(q, shmemi_sq_write_inline_signal, raddr, shmemi_rkey_be(q, raddr), data, len, sig, 0), 0,
                  call);
}

uint64_t shmemi_net_post_write_signal(struct shmemi_net_queue *q, uint64_t raddr, uint64_t laddr, uint32_t lkey,
                                      uint32_t len, const struct shmemi_sq_signal *sig, const char *call)
{
    return posted(q, SQ_CALL(q, shmemi_sq_write_signal, raddr, shmemi_rkey_be(q, raddr), laddr, shmemi_be32_of(lkey), len,
                             sig, 0),
                  0, call);
}

uint64_t shmemi_net_post_read(struct shmemi_net_queue *q, uint64_t raddr, uint64_t laddr, uint32_t lkey, uint32_t len,
                              int flags, const char *call)
{
    uint64_t t;

    if (q->mode == SHMEMI_NET_VERBS)
        t = (uint64_t)shmemi_net.module->read(&q->nic, raddr, shmemi_rkey(q, raddr), (void *)(uintptr_t)laddr, lkey, len,
                                              flags);
    else
        t = SQ_CALL(q, shmemi_sq_read, raddr, shmemi_rkey_be(q, raddr), laddr, shmemi_be32_of(lkey), len, flags);
    return posted(q, t, flags, call);
}

uint64_t shmemi_net_post_amo(struct shmemi_net_queue *q, int op, unsigned size, uint64_t raddr, uint64_t operand,
                             uint64_t cond, uint64_t laddr, uint32_t lkey, int flags, const char *call)
{
    uint64_t t = SQ_CALL(q, shmemi_sq_amo, (enum shmemi_sq_amo_op)op, size, raddr, shmemi_rkey_be(q, raddr), operand, cond,
                         laddr, shmemi_be32_of(lkey), flags);

    return posted(q, t, flags, call);
}

uint64_t shmemi_net_post_atomic(struct shmemi_net_queue *q, uint64_t raddr, uint64_t operand, const uint64_t *compare,
                                uint64_t laddr, uint32_t lkey, int flags, const char *call)
{
    int64_t t;

    if (q->mode != SHMEMI_NET_VERBS)
        return shmemi_net_post_amo(q, compare ? SHMEMI_SQ_CSWAP : SHMEMI_SQ_FETCH_ADD, 8, raddr, operand,
                                   compare ? *compare : 0, laddr, lkey, flags, call);
    t = shmemi_net.module->atomic(&q->nic, raddr, shmemi_rkey(q, raddr), operand, compare, (uint64_t *)(uintptr_t)laddr,
                                  lkey, flags);
    return posted(q, (uint64_t)t, flags, call);
}

bool shmemi_net_post_try(struct shmemi_net_queue *q, uint64_t raddr, const void *data, uint32_t len, uint64_t *ticket_out)
{
    uint64_t t;

    if (q->mode == SHMEMI_NET_VERBS)
        t = (uint64_t)shmemi_net.module->write(&q->nic, raddr, shmemi_rkey(q, raddr), data, 0, len, 0);
    else
        t = SQ_CALL(q, shmemi_sq_write_inline, raddr, shmemi_rkey_be(q, raddr), data, len, 0);
    if ((int64_t)t < 0)
        return false;
    *ticket_out = posted(q, t, 0, "");
    return true;
}

uint64_t shmemi_net_ring(struct shmemi_net_queue *q, const char *call)
{
    uint64_t last;

    SHMEMI_ST_RLX(&q->n_deferred, (uint8_t)0);
    if (q->mode == SHMEMI_NET_PRIVATE)
        return shmemi_sq_ring(&q->nic.sq, SHMEMI_SQ_PRIVATE);
    if (q->mode == SHMEMI_NET_SHARED)
        return shmemi_sq_ring(&q->nic.sq, SHMEMI_SQ_SHARED);
    last = SHMEMI_LD_RLX(&q->last);
    if (shmemi_net.module->flush(&q->nic))
        shmemi_net_failed(q, call);
    raise_to(&q->rung, last);
    return last;
}
