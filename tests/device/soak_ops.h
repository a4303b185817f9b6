/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * soak_ops.h - the kernels' side of tests/device/soak.c: operations of a plan by a thread (in a kernel or on the host), a warp or
 * a block.
 */
#ifndef SOAK_OPS_H
#define SOAK_OPS_H

#include "plan.h"

/* The library's routine, also where the header's one could be the kernels' (SIMT): less code to compile. */
#if defined(__CUDACC__)
#define OPS_BOTH static inline __host__ __device__
#define OPS_DEVICE static __device__ __noinline__
#define HOST(NAME) NAME
#else
#define OPS_BOTH static inline
#define OPS_DEVICE static __attribute__((noinline))
#define HOST(NAME) shmemi_host_##NAME
#endif

#define CTXS 2

/* Where one agent's operations go and come from. */
struct place {
    unsigned char *slice, *consts, *arena; /* slice, words: symmetric, this agent's */
    uint64_t *sig, *own, *shared;
    shmem_ctx_t ctx[CTXS];
};

OPS_BOTH unsigned char *target_of(const struct place *p, const struct soak_op *o)
{
    switch (o->kind) {
    case SOAK_GET:
    case SOAK_GET_NBI:
    case SOAK_G:
    case SOAK_IGET: return p->consts + o->off;
    case SOAK_OWN:
    case SOAK_OWN_NBI: return (unsigned char *)(p->own + o->off) + (o->sub & SOAK_AMO_HIGH ? 4 : 0);
    case SOAK_SHARED: return (unsigned char *)(p->shared + o->off);
    default: return p->slice + o->off;
    }
}

OPS_BOTH uint64_t *signal_of(const struct place *p, const struct soak_op *o)
{
    return o->word & SOAK_SHARED_SIG ? p->shared + (o->word & 0xff) : p->sig + o->word;
}

OPS_BOTH uint64_t hash_of(const unsigned char *bytes, size_t len)
{
    uint64_t h = len;

    for (size_t i = 0; i < len; i++)
        h = (h ^ bytes[i]) * UINT64_C(0x100000001b3);
    return h;
}

/* Behind a quiet: what the calls since the last one have brought must be there; the tag keeps what was seen. */
OPS_BOTH void look_back(const struct place *p, struct soak_op *quiet, const struct soak_op *first)
{
    for (struct soak_op *o = quiet; o-- > first && o->kind != SOAK_QUIET;) {
        if (o->kind == SOAK_GET_NBI)
            o->tag = hash_of(p->arena + o->loc, o->len);
        else if (o->kind == SOAK_OWN_NBI)
            o->tag = o->got;
    }
}

/* Single elements and atomics: these have no form for groups. */
OPS_BOTH int is_word(const struct soak_op *o)
{
    return o->kind == SOAK_P || o->kind == SOAK_G || o->kind == SOAK_OWN || o->kind == SOAK_OWN_NBI || o->kind == SOAK_SHARED;
}

/* ---- by the host ---- */

#define ATOMICS(W)                                                                                                   \
    static uint64_t host_atomic##W(shmem_ctx_t c, uint##W##_t *at, const struct soak_op *o)                          \
    {                                                                                                                \
        uint##W##_t v = (uint##W##_t)o->value, old, seen;                                                            \
                                                                                                                     \
        switch (o->sub & SOAK_AMO_MASK) {                                                                            \
        case SOAK_FETCH: return HOST(shmem_ctx_uint##W##_atomic_fetch)(c, at, o->pe);                                \
        case SOAK_SWAP: return HOST(shmem_ctx_uint##W##_atomic_swap)(c, at, v, o->pe);                               \
        case SOAK_CSWAP: return HOST(shmem_ctx_uint##W##_atomic_compare_swap)(c, at, (uint##W##_t)o->cond, v, o->pe); \
        case SOAK_FINC: return HOST(shmem_ctx_uint##W##_atomic_fetch_inc)(c, at, o->pe);                             \
        case SOAK_FADD: return HOST(shmem_ctx_uint##W##_atomic_fetch_add)(c, at, v, o->pe);                          \
        case SOAK_FAND: return HOST(shmem_ctx_uint##W##_atomic_fetch_and)(c, at, v, o->pe);                          \
        case SOAK_FOR: return HOST(shmem_ctx_uint##W##_atomic_fetch_or)(c, at, v, o->pe);                            \
        case SOAK_FXOR: return HOST(shmem_ctx_uint##W##_atomic_fetch_xor)(c, at, v, o->pe);                          \
        case SOAK_SET: HOST(shmem_ctx_uint##W##_atomic_set)(c, at, v, o->pe); return 0;                              \
        case SOAK_INC: HOST(shmem_ctx_uint##W##_atomic_inc)(c, at, o->pe); return 0;                                 \
        case SOAK_ADD: HOST(shmem_ctx_uint##W##_atomic_add)(c, at, v, o->pe); return 0;                              \
        case SOAK_AND: HOST(shmem_ctx_uint##W##_atomic_and)(c, at, v, o->pe); return 0;                              \
        case SOAK_OR: HOST(shmem_ctx_uint##W##_atomic_or)(c, at, v, o->pe); return 0;                                \
        case SOAK_XOR: HOST(shmem_ctx_uint##W##_atomic_xor)(c, at, v, o->pe); return 0;                              \
        default: break;                                                                                              \
        }                                                                                                            \
        old = HOST(shmem_ctx_uint##W##_atomic_fetch)(c, at, o->pe);                                                  \
        while ((seen = HOST(shmem_ctx_uint##W##_atomic_compare_swap)(c, at, old, (uint##W##_t)(old + v), o->pe)) != old) \
            old = seen;                                                                                              \
        return old;                                                                                                  \
    }
ATOMICS(32)
ATOMICS(64)
#undef ATOMICS

/* An element as bytes, strided ones element by element. */
static void host_op(const struct place *p, struct soak_op *o)
{
    unsigned char *at = target_of(p, o), *here = p->arena + o->loc;
    shmem_ctx_t c = p->ctx[o->ctx];
    int add = o->sub ? SHMEM_SIGNAL_ADD : SHMEM_SIGNAL_SET;

    switch (o->kind) {
    case SOAK_P:
    case SOAK_STORE:
    case SOAK_PUT: HOST(shmem_ctx_putmem)(c, at, here, o->len, o->pe); break;
    case SOAK_PUT_NBI: HOST(shmem_ctx_putmem_nbi)(c, at, here, o->len, o->pe); break;
    case SOAK_SIGNAL: HOST(shmem_ctx_putmem_signal)(c, at, here, o->len, signal_of(p, o), o->value, add, o->pe); break;
    case SOAK_SIGNAL_NBI: HOST(shmem_ctx_putmem_signal_nbi)(c, at, here, o->len, signal_of(p, o), o->value, add, o->pe); break;
    case SOAK_BACK:
    case SOAK_GET: HOST(shmem_ctx_getmem)(c, here, at, o->len, o->pe); break;
    case SOAK_GET_NBI: HOST(shmem_ctx_getmem_nbi)(c, here, at, o->len, o->pe); break;
    case SOAK_G: HOST(shmem_ctx_getmem)(c, &o->got, at, o->sub, o->pe); break;
    case SOAK_FENCE: HOST(shmem_ctx_fence)(c); break;
    case SOAK_QUIET: HOST(shmem_ctx_quiet)(c); break;
    case SOAK_IPUT:
    case SOAK_IBPUT:
    case SOAK_IGET:
        for (uint32_t i = 0; i < o->count; i++) {
            unsigned char *there = at + i * o->there * o->sub, *local = here + i * o->here * o->sub;

            if (o->kind == SOAK_IGET)
                HOST(shmem_ctx_getmem)(c, local, there, o->sub, o->pe);
            else
                HOST(shmem_ctx_putmem)(c, there, local, (size_t)o->word * o->sub, o->pe);
        }
        break;
    default:
        o->got = o->sub & SOAK_AMO_32 ? host_atomic32(c, (uint32_t *)(void *)at, o) : host_atomic64(c, (uint64_t *)(void *)at, o);
        break;
    }
}

static void run_by_host(const struct place *p, struct soak_op *ops, int n)
{
    for (int i = 0; i < n; i++) {
        host_op(p, &ops[i]);
        if (ops[i].kind == SOAK_QUIET)
            look_back(p, &ops[i], ops);
    }
}

/* ---- in kernels: what the routines are made of, so that each is compiled once and not for every type ---- */

#ifdef SHMEMI_DEVICE_CODE

OPS_DEVICE void device_amo(shmem_ctx_t c, enum shmemi_dev_amo_op op, void *at, uint64_t value, uint64_t cond, void *old, uint32_t size, int pe)
{
    shmemi_dev_amo(c, op, at, &value, &cond, old, size, pe);
}

OPS_DEVICE void device_atomic(const struct place *p, struct soak_op *o)
{
    static const unsigned char made_of[SOAK_LOOP + 1] = {
        SHMEMI_DEV_FETCH, SHMEMI_DEV_SWAP, SHMEMI_DEV_CSWAP, SHMEMI_DEV_ADD, SHMEMI_DEV_ADD, SHMEMI_DEV_AND, SHMEMI_DEV_OR, SHMEMI_DEV_XOR,
        SHMEMI_DEV_SET, SHMEMI_DEV_ADD, SHMEMI_DEV_ADD, SHMEMI_DEV_AND, SHMEMI_DEV_OR, SHMEMI_DEV_XOR, SHMEMI_DEV_FETCH,
    };
    int sub = o->sub & SOAK_AMO_MASK;
    uint32_t size = o->sub & SOAK_AMO_32 ? 4 : 8;
    uint64_t value = sub == SOAK_FINC || sub == SOAK_INC ? 1 : o->value, old = 0, seen = 0;
    void *at = target_of(p, o);

    if (o->kind == SOAK_OWN_NBI || soak_fetches(sub)) {
        device_amo(p->ctx[o->ctx], (enum shmemi_dev_amo_op)made_of[sub], at, value, o->cond, &o->got, size, o->pe);
    } else if (sub != SOAK_LOOP) {
        device_amo(p->ctx[o->ctx], (enum shmemi_dev_amo_op)made_of[sub], at, value, 0, 0, size, o->pe);
    } else {
        device_amo(p->ctx[o->ctx], SHMEMI_DEV_FETCH, at, 0, 0, &old, size, o->pe);
        for (;;) {
            device_amo(p->ctx[o->ctx], SHMEMI_DEV_CSWAP, at, old + value, old, &seen, size, o->pe);
            if (seen == old)
                break;
            old = seen;
        }
        o->got = old;
    }
}

OPS_DEVICE void device_word(const struct place *p, struct soak_op *o)
{
    if (o->kind == SOAK_P)
        shmemi_dev_p(p->ctx[o->ctx], target_of(p, o), p->arena + o->loc, o->sub, o->pe, SHMEMI_CALL_P);
    else if (o->kind == SOAK_G)
        shmemi_dev_g(p->ctx[o->ctx], &o->got, target_of(p, o), o->sub, o->pe, SHMEMI_CALL_G);
    else
        device_atomic(p, o);
}

/* SCOPE is a constant in each of the three. */
#define MOVES(NAME, SCOPE)                                                                                           \
    OPS_DEVICE void NAME(const struct place *p, struct soak_op *o)                                                   \
    {                                                                                                                \
        unsigned char *at = target_of(p, o), *here = p->arena + o->loc;                                              \
        shmem_ctx_t c = p->ctx[o->ctx];                                                                              \
        int get = o->kind == SOAK_IGET;                                                                              \
                                                                                                                     \
        switch (o->kind) {                                                                                           \
        case SOAK_STORE:                                                                                             \
        case SOAK_PUT:                                                                                               \
        case SOAK_PUT_NBI:                                                                                           \
            shmemi_dev_put(SCOPE, c, at, here, o->len, o->pe, o->kind == SOAK_PUT_NBI ? SHMEMI_CALL_PUT_NBI : SHMEMI_CALL_PUT); \
            break;                                                                                                   \
        case SOAK_SIGNAL:                                                                                            \
        case SOAK_SIGNAL_NBI:                                                                                        \
            shmemi_dev_put_signal(SCOPE, c, at, here, o->len, signal_of(p, o), o->value,                             \
                                  o->sub ? SHMEM_SIGNAL_ADD : SHMEM_SIGNAL_SET, o->pe,                               \
                                  o->kind == SOAK_SIGNAL ? SHMEMI_CALL_PUT_SIGNAL : SHMEMI_CALL_PUT_SIGNAL_NBI);     \
            break;                                                                                                   \
        case SOAK_BACK:                                                                                              \
        case SOAK_GET:                                                                                               \
        case SOAK_GET_NBI:                                                                                           \
            shmemi_dev_get(SCOPE, c, here, at, o->len, o->pe, o->kind == SOAK_GET_NBI ? SHMEMI_CALL_GET_NBI : SHMEMI_CALL_GET); \
            break;                                                                                                   \
        case SOAK_FENCE: shmemi_dev_fence(SCOPE, c, SHMEMI_CALL_FENCE); break;                                       \
        case SOAK_QUIET: shmemi_dev_quiet(SCOPE, c, SHMEMI_CALL_QUIET); break;                                       \
        default:                                                                                                     \
            shmemi_dev_strided(SCOPE, !get, c, get ? here : at, get ? at : here, get ? o->here : o->there,           \
                               get ? o->there : o->here, get ? 1 : o->word, o->count, o->sub, o->pe,                 \
                               get ? SHMEMI_CALL_IGET : SHMEMI_CALL_IBPUT);                                          \
            break;                                                                                                   \
        }                                                                                                            \
    }
MOVES(move_thread, SHMEMI_THREAD)
MOVES(move_warp, SHMEMI_WARP)
MOVES(move_block, SHMEMI_BLOCK)
#undef MOVES

SHMEMI_DEV void move(enum shmemi_scope scope, const struct place *p, struct soak_op *o)
{
    if (scope == SHMEMI_THREAD)
        move_thread(p, o);
    else if (scope == SHMEMI_WARP)
        move_warp(p, o);
    else
        move_block(p, o);
}

/* `lost`: a kind of which every other operation is left out, or -1: for the proof that this is noticed. */
OPS_DEVICE void run_in_kernel(enum shmemi_scope scope, const struct place *p, struct soak_op *ops, int n, int lost)
{
    for (int i = 0; i < n; i++) {
        if (ops[i].kind == lost && i % 2)
            continue;
        if (!is_word(&ops[i]))
            move(scope, p, &ops[i]);
        else if (shmemi_rank(scope) == 0)
            device_word(p, &ops[i]);
        shmemi_group_sync(scope);
        if (ops[i].kind == SOAK_QUIET && shmemi_rank(scope) == 0)
            look_back(p, &ops[i], ops);
        shmemi_group_sync(scope);
    }
}

#endif

/* ---- messages ---- */

/* What an agent sends and waits for in a step. */
struct mail {
    struct soak_op out[SOAK_WORDS], in[SOAK_WORDS];
    uint64_t want[SOAK_WORDS];  /* of the signal words */
    int n, mode, done;
    uint64_t bad;               /* bytes that were not there with their signal */
    unsigned char *slice;       /* of the sender, here */
    uint64_t *sig;
};

#ifdef SHMEMI_DEVICE_CODE

OPS_DEVICE void read_message(struct mail *m, int i)
{
    const struct soak_op *o = &m->in[i];

    for (uint32_t k = 0; k < o->len; k++)
        m->bad += m->slice[o->off + k] != soak_byte(o->tag, k);
    m->done++;
}

/* The word of the message, by p or an atomic, behind a fence or quiet. */
OPS_DEVICE void raise_flag(const struct place *p, const struct soak_op *o)
{
    uint64_t *word = p->sig + o->word;

    if (o->here == 1 && !o->sub)
        shmemi_dev_p(p->ctx[o->ctx], word, &o->value, 8, o->pe, SHMEMI_CALL_P);
    else
        device_amo(p->ctx[o->ctx], o->sub ? SHMEMI_DEV_ADD : SHMEMI_DEV_SET, word, o->value, 0, 0, 8, o->pe);
}

/* A thread's waits and tests. */
OPS_DEVICE void wait_alone(struct mail *m)
{
    int status[SOAK_WORDS] = { 0 };
    size_t got[SOAK_WORDS], n;

    while (m->done < m->n) {
        n = 1;
        got[0] = (size_t)m->done;
        switch (m->mode % 5) {
        case 0:
            shmem_uint64_wait_until_all_vector(m->sig, (size_t)m->n, status, SHMEM_CMP_EQ, m->want);
            for (int k = 0; k < m->n; k++)
                read_message(m, k);
            continue;
        case 1: got[0] = shmem_uint64_wait_until_any_vector(m->sig, (size_t)m->n, status, SHMEM_CMP_EQ, m->want); break;
        case 2: n = shmem_uint64_wait_until_some_vector(m->sig, (size_t)m->n, got, status, SHMEM_CMP_EQ, m->want); break;
        case 3: n = shmem_uint64_test_some_vector(m->sig, (size_t)m->n, got, status, SHMEM_CMP_EQ, m->want); break;
        default: shmem_signal_wait_until(m->sig + m->done, SHMEM_CMP_EQ, m->want[m->done]); break;
        }
        for (size_t i = 0; i < n; i++) {
            m->bad += status[got[i]] ? 1000000 : 0; /* said twice */
            status[got[i]] = 1;
            read_message(m, (int)got[i]);
        }
    }
}

OPS_DEVICE void mail_alone(const struct place *p, struct mail *m)
{
    struct soak_op first, fence;

    for (int i = 0; i < m->n; i++) {
        first = fence = m->out[i];
        if (first.here)
            first.kind = first.here == 1 ? SOAK_PUT : SOAK_PUT_NBI;
        move_thread(p, &first);
        if (!first.here)
            continue;
        fence.kind = first.here == 3 ? SOAK_QUIET : SOAK_FENCE;
        move_thread(p, &fence);
        raise_flag(p, &m->out[i]);
    }
    wait_alone(m);
}

/* A warp or block: put-with-signal, and waits of the group. */
OPS_DEVICE void mail_group(enum shmemi_scope scope, const struct place *p, struct mail *m)
{
    for (int i = 0; i < m->n; i++)
        move(scope, p, &m->out[i]);
    for (int i = 0; i < m->n; i++) {
        if (scope == SHMEMI_WARP)
            shmemx_signal_wait_until_warp(m->sig + i, SHMEM_CMP_EQ, m->want[i]);
        else
            shmemx_signal_wait_until_block(m->sig + i, SHMEM_CMP_EQ, m->want[i]);
        if (shmemi_rank(scope) == shmemi_size(scope) - 1) /* what one thread waited for, another sees */
            read_message(m, i);
    }
}

OPS_DEVICE void mail_in_kernel(enum shmemi_scope scope, const struct place *p, struct mail *m)
{
    struct soak_op quiet;

    if (scope == SHMEMI_THREAD)
        mail_alone(p, m);
    else
        mail_group(scope, p, m);
    for (int c = 0; c < CTXS; c++) {
        quiet = m->out[0];
        quiet.kind = SOAK_QUIET;
        quiet.ctx = (uint8_t)c;
        move(scope, p, &quiet);
    }
}

#endif
#endif
