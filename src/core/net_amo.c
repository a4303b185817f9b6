/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net_amo.c - atomics over the NIC.
 *
 * An mlx5 device adds, compares and swaps words of 4 and 8 bytes, and under masks it does the rest.  Where only the
 * 8-byte fetch-add and compare-swap of every device are there, the rest is made of compare-swap on
 * the 8 bytes that hold the word.
 */
#include "net_queue.h"

#include "amo.h"

#include <string.h>

struct amo {
    struct shmemi_net_queue *q;
    uint64_t raddr;
    enum shmemi_amo_op op;
    size_t size;
    uint64_t operand, cond; /* zero-extended */
    const char *call;
};

static uint64_t load(const void *p, size_t size)
{
    uint32_t v4;
    uint64_t v8;

    if (!p)
        return 0;
    if (size == 4) {
        memcpy(&v4, p, 4);
        return v4;
    }
    memcpy(&v8, p, 8);
    return v8;
}

static void store(void *p, uint64_t v, size_t size)
{
    uint32_t v4 = (uint32_t)v;

    if (size == 4)
        memcpy(p, &v4, 4);
    else
        memcpy(p, &v, 8);
}

static int sq_op(enum shmemi_amo_op op)
{
    switch (op) {
    case SHMEMI_AMO_CSWAP: return SHMEMI_SQ_CSWAP;
    case SHMEMI_AMO_ADD: return SHMEMI_SQ_FETCH_ADD;
    case SHMEMI_AMO_AND: return SHMEMI_SQ_AND;
    case SHMEMI_AMO_OR: return SHMEMI_SQ_OR;
    case SHMEMI_AMO_XOR: return SHMEMI_SQ_XOR;
    default: return SHMEMI_SQ_SWAP; /* also SET, whose old value nobody wants */
    }
}

/* Can the device do it with one work request? */
static bool in_hardware(const struct amo *a)
{
    if (a->op == SHMEMI_AMO_FETCH || (a->q->mode != SHMEMI_NET_VERBS && shmemi_net.nic->atomics_4))
        return true;
    return a->size == 8 && (a->op == SHMEMI_AMO_ADD || a->op == SHMEMI_AMO_CSWAP);
}

static uint64_t post(const struct amo *a, uint64_t laddr, uint32_t lkey, int flags)
{
    if (a->op == SHMEMI_AMO_FETCH)
        return shmemi_net_post_read(a->q, a->raddr, laddr, lkey, (uint32_t)a->size, flags, a->call);
    if (a->q->mode != SHMEMI_NET_VERBS && shmemi_net.nic->atomics_4)
        return shmemi_net_post_amo(a->q, sq_op(a->op), (unsigned)a->size, a->raddr, a->operand, a->cond, laddr, lkey,
                                   flags, a->call);
    return shmemi_net_post_atomic(a->q, a->raddr, a->operand, a->op == SHMEMI_AMO_CSWAP ? &a->cond : NULL, laddr, lkey,
                                  flags, a->call);
}

/* Does the NIC leave the result big-endian? */
static bool is_be(const struct amo *a)
{
    return a->size == 4 && a->op != SHMEMI_AMO_FETCH;
}

static uint64_t fetch_now(const struct amo *a)
{
    char *slot = shmemi_landing_take();
    uint64_t ticket = post(a, (uint64_t)(uintptr_t)slot, shmemi_landing_key(a->q), 0), old;

    shmemi_net_wait(a->q, ticket, a->call);
    old = is_be(a) ? shmemi_sq_amo_result(slot, 4) : load(slot, a->size);
    shmemi_landing_put(slot);
    return old;
}

static void fetch_later(const struct amo *a, void *old_out)
{
    struct shmemi_net_ctx *c = a->q->ctx;
    int flags = shmemi_net_defer(a->q, a->size);
    uint64_t laddr;
    uint32_t lkey;
    char *between;

    if (!is_be(a) && shmemi_net_registered(a->q, old_out, a->size, &laddr, &lkey)) {
        post(a, laddr, lkey, flags);
        return;
    }
    shmemi_bounce_lock(c);
    between = shmemi_bounce_take(c, a->size, a->call);
    shmemi_bounce_give(c, a->q, post(a, (uint64_t)(uintptr_t)between, c->bounce.key.lkey[a->q->rail], flags),
                       is_be(a) ? SHMEMI_BOUNCE_AMO4 : SHMEMI_BOUNCE_GET, between, old_out, a->size);
    shmemi_bounce_unlock(c);
}

static uint64_t apply(const struct amo *a, uint64_t old)
{
    switch (a->op) {
    case SHMEMI_AMO_FETCH: return old;
    case SHMEMI_AMO_SET: return a->operand;
    case SHMEMI_AMO_SWAP: return a->operand;
    case SHMEMI_AMO_CSWAP: return old == a->cond ? a->operand : old;
    case SHMEMI_AMO_ADD: return old + a->operand;
    case SHMEMI_AMO_AND: return old & a->operand;
    case SHMEMI_AMO_OR: return old | a->operand;
    case SHMEMI_AMO_XOR: return old ^ a->operand;
    }
    return old;
}

/* Of compare-swaps on the 8 bytes around the word, from a first guess that costs nothing: that they are zero. */
static uint64_t emulate(const struct amo *a)
{
    struct amo step = *a;
    unsigned shift = (unsigned)(a->raddr & 4) * 8;
    uint64_t mask = a->size == 4 ? 0xffffffffull << shift : UINT64_MAX;
    uint64_t seen = 0, old;

    if (a->size == 8)
        shift = 0;
    step.raddr = a->raddr & ~(uint64_t)7;
    step.size = 8;
    step.op = SHMEMI_AMO_CSWAP;
    for (;;) {
        uint64_t was;

        old = (seen & mask) >> shift;
        step.cond = seen;
        step.operand = (seen & ~mask) | (apply(a, old) << shift & mask);
        was = fetch_now(&step);
        if (was == seen)
            return old;
        seen = was;
    }
}

void shmemi_net_amo(shmem_ctx_t ctx, int op, void *dest, const void *operand, const void *cond, void *old_out,
                    size_t size, int pe, bool nbi, const char *call)
{
    struct amo a = { .op = (enum shmemi_amo_op)op, .size = size, .call = call };
    uint64_t old, result;

    a.q = shmemi_net_queue_of(ctx, dest, pe, call);
    a.raddr = shmemi_net_raddr(a.q, dest, call);
    a.operand = load(operand, size);
    a.cond = load(cond, size);
    if (!in_hardware(&a)) {
        old = emulate(&a);
    } else if (!old_out) {
        post(&a, shmemi_landing_scrap(), shmemi_landing_key(a.q), 0);
        return;
    } else if (nbi) {
        fetch_later(&a, old_out);
        return;
    } else {
        old = fetch_now(&a);
    }
    if (!old_out)
        return;
    store(&result, old, size);
    shmemi_net_move(old_out, &result, size, call);
}
