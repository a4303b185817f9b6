/* SPDX-License-Identifier: BSD-3-Clause */
/* exec.c - carries out a thread's plan by calls of the host. */
#include "soak.h"

#include <sched.h>

/* Where the operation's target is in this PE's terms: a symmetric address. */
static unsigned char *target(const struct soak_thread *t, const struct soak_op *o)
{
    const struct soak_layout *l = &soak.layout[o->region];
    unsigned char *at = soak.region[o->region];
    size_t writer = soak_writer(soak.me, t->id);

    switch (o->kind) {
    case SOAK_GET:
    case SOAK_GET_NBI:
    case SOAK_G:
    case SOAK_IGET: return at + l->consts + o->off;
    case SOAK_OWN:
    case SOAK_OWN_NBI: return at + l->own + (writer * SOAK_WORDS + o->off) * 8 + (o->sub & SOAK_AMO_HIGH ? 4 : 0);
    case SOAK_SHARED: return at + l->shared + (size_t)o->off * 8;
    default: return at + l->data + writer * soak.shape.slice[o->region] + o->off;
    }
}

static uint64_t *signal_word(const struct soak_thread *t, const struct soak_op *o)
{
    const struct soak_layout *l = &soak.layout[o->region];
    unsigned char *at = soak.region[o->region];

    if (o->word & SOAK_SHARED_SIG)
        at += l->shared + (o->word & 0xff) * 8;
    else
        at += l->sig + (soak_writer(soak.me, t->id) * SOAK_WORDS + o->word) * 8;
    return (uint64_t *)(void *)at;
}

/* Atomics of 32 and 64 bits. */
#define ATOMICS(W, T)                                                                                                \
    static uint64_t loop##W(shmem_ctx_t c, T *at, T value, int pe)                                                   \
    {                                                                                                                \
        T old = shmem_ctx_uint##W##_atomic_fetch(c, at, pe), seen;                                                   \
                                                                                                                     \
        while ((seen = shmem_ctx_uint##W##_atomic_compare_swap(c, at, old, (T)(old + value), pe)) != old)            \
            old = seen;                                                                                              \
        return old;                                                                                                  \
    }                                                                                                                \
    static uint64_t atomic##W(shmem_ctx_t c, T *at, const struct soak_op *o)                                         \
    {                                                                                                                \
        T v = (T)o->value;                                                                                           \
                                                                                                                     \
        switch (o->sub & SOAK_AMO_MASK) {                                                                            \
        case SOAK_FETCH: return shmem_ctx_uint##W##_atomic_fetch(c, at, o->pe);                                      \
        case SOAK_SWAP: return shmem_ctx_uint##W##_atomic_swap(c, at, v, o->pe);                                     \
        case SOAK_CSWAP: return shmem_ctx_uint##W##_atomic_compare_swap(c, at, (T)o->cond, v, o->pe);                \
        case SOAK_FINC: return shmem_ctx_uint##W##_atomic_fetch_inc(c, at, o->pe);                                   \
        case SOAK_FADD: return shmem_ctx_uint##W##_atomic_fetch_add(c, at, v, o->pe);                                \
        case SOAK_FAND: return shmem_ctx_uint##W##_atomic_fetch_and(c, at, v, o->pe);                                \
        case SOAK_FOR: return shmem_ctx_uint##W##_atomic_fetch_or(c, at, v, o->pe);                                  \
        case SOAK_FXOR: return shmem_ctx_uint##W##_atomic_fetch_xor(c, at, v, o->pe);                                \
        case SOAK_SET: shmem_ctx_uint##W##_atomic_set(c, at, v, o->pe); return 0;                                    \
        case SOAK_INC: shmem_ctx_uint##W##_atomic_inc(c, at, o->pe); return 0;                                       \
        case SOAK_ADD: shmem_ctx_uint##W##_atomic_add(c, at, v, o->pe); return 0;                                    \
        case SOAK_AND: shmem_ctx_uint##W##_atomic_and(c, at, v, o->pe); return 0;                                    \
        case SOAK_OR: shmem_ctx_uint##W##_atomic_or(c, at, v, o->pe); return 0;                                      \
        case SOAK_XOR: shmem_ctx_uint##W##_atomic_xor(c, at, v, o->pe); return 0;                                    \
        default: return loop##W(c, at, v, o->pe);                                                                    \
        }                                                                                                            \
    }                                                                                                                \
    static void atomic_nbi##W(shmem_ctx_t c, T *got, T *at, const struct soak_op *o)                                 \
    {                                                                                                                \
        T v = (T)o->value;                                                                                           \
                                                                                                                     \
        switch (o->sub & SOAK_AMO_MASK) {                                                                            \
        case SOAK_FETCH: shmem_ctx_uint##W##_atomic_fetch_nbi(c, got, at, o->pe); break;                             \
        case SOAK_SWAP: shmem_ctx_uint##W##_atomic_swap_nbi(c, got, at, v, o->pe); break;                            \
        case SOAK_CSWAP: shmem_ctx_uint##W##_atomic_compare_swap_nbi(c, got, at, (T)o->cond, v, o->pe); break;       \
        case SOAK_FINC: shmem_ctx_uint##W##_atomic_fetch_inc_nbi(c, got, at, o->pe); break;                          \
        case SOAK_FADD: shmem_ctx_uint##W##_atomic_fetch_add_nbi(c, got, at, v, o->pe); break;                       \
        case SOAK_FAND: shmem_ctx_uint##W##_atomic_fetch_and_nbi(c, got, at, v, o->pe); break;                       \
        case SOAK_FOR: shmem_ctx_uint##W##_atomic_fetch_or_nbi(c, got, at, v, o->pe); break;                         \
        default: shmem_ctx_uint##W##_atomic_fetch_xor_nbi(c, got, at, v, o->pe); break;                              \
        }                                                                                                            \
    }
ATOMICS(32, uint32_t)
ATOMICS(64, uint64_t)
#undef ATOMICS

static void run_atomic(shmem_ctx_t c, void *at, struct soak_op *o)
{
    bool narrow = o->sub & SOAK_AMO_32;

    o->got = 0;
    if (o->kind == SOAK_OWN_NBI && narrow)
        atomic_nbi32(c, (uint32_t *)(void *)&o->got, at, o);
    else if (o->kind == SOAK_OWN_NBI)
        atomic_nbi64(c, &o->got, at, o);
    else
        o->got = narrow ? atomic32(c, at, o) : atomic64(c, at, o);
}

/* One element; `here` is private memory that it comes from or goes to. */
static void run_element(shmem_ctx_t c, void *at, void *here, const struct soak_op *o)
{
#define ELEMENT(T)                                                                                                   \
    if (o->kind == SOAK_P)                                                                                           \
        shmem_ctx_##T##_p(c, at, *(T##_t *)here, o->pe);                                                             \
    else                                                                                                             \
        *(T##_t *)here = shmem_ctx_##T##_g(c, at, o->pe)

    switch (o->sub) {
    case 1: ELEMENT(uint8); break;
    case 2: ELEMENT(uint16); break;
    case 4: ELEMENT(uint32); break;
    default: ELEMENT(uint64); break;
    }
#undef ELEMENT
}

static void run_strided(shmem_ctx_t c, void *at, void *loc, const struct soak_op *o)
{
    ptrdiff_t there = (ptrdiff_t)o->there, here = (ptrdiff_t)o->here;

#define STRIDED(BITS)                                                                                                \
    if (o->kind == SOAK_IGET)                                                                                        \
        shmem_ctx_iget##BITS(c, loc, at, here, there, o->count, o->pe);                                              \
    else if (o->kind == SOAK_IPUT)                                                                                   \
        shmem_ctx_iput##BITS(c, at, loc, there, here, o->count, o->pe);                                              \
    else                                                                                                             \
        shmem_ctx_ibput##BITS(c, at, loc, there, here, o->word, o->count, o->pe)

    switch (o->sub) {
    case 1: STRIDED(8); break;
    case 2: STRIDED(16); break;
    case 4: STRIDED(32); break;
    case 8: STRIDED(64); break;
    default: STRIDED(128); break;
    }
#undef STRIDED
}

/* What the operation reads, into the arena before it begins. */
static void prepare(struct soak_thread *t, const struct soak_op *o)
{
    size_t block = (size_t)o->word * o->sub;

    switch (o->kind) {
    case SOAK_PUT:
    case SOAK_PUT_NBI:
    case SOAK_STORE:
    case SOAK_SIGNAL:
    case SOAK_SIGNAL_NBI:
        soak_fill(t->work, o->tag, 0, o->len);
        soak_local_write(t, o->loc, t->work, o->len);
        break;
    case SOAK_IPUT:
    case SOAK_IBPUT:
        memset(t->work, 0xee, ((o->count - 1) * o->here + o->word) * o->sub);
        for (uint32_t i = 0; i < o->count; i++)
            soak_fill(t->work + i * o->here * o->sub, o->tag, i * block, block);
        soak_local_write(t, o->loc, t->work, ((o->count - 1) * o->here + o->word) * o->sub);
        break;
    default: break;
    }
}

/* Stores through shmem_ptr where there is a way, a put where not. */
static void run_store(shmem_ctx_t c, unsigned char *at, const unsigned char *here, const struct soak_op *o, bool host_memory)
{
    void *p = host_memory && o->region != SOAK_DEVICE ? shmem_ptr(at, o->pe) : NULL;

    if (p)
        memcpy(p, here, o->len);
    else
        shmem_ctx_putmem(c, at, here, o->len, o->pe);
}

static void run_locked(const struct soak_op *o)
{
    const struct soak_layout *l = &soak.layout[SOAK_HEAP];
    long *lock = (long *)(void *)(soak.region[SOAK_HEAP] + l->locks) + o->off;
    uint64_t *held = (uint64_t *)(void *)(soak.region[SOAK_HEAP] + l->held) + o->off;

    if (o->sub)
        while (shmem_test_lock(lock))
            sched_yield();
    else
        shmem_set_lock(lock);
    shmem_uint64_p(held, shmem_uint64_g(held, o->pe) + 1, o->pe);
    shmem_clear_lock(lock); /* completes the put */
}

static void run_op(struct soak_thread *t, struct soak_op *o)
{
    unsigned char *at = target(t, o), *here = t->arena[t->arena_now] + o->loc;
    shmem_ctx_t c = t->ctx[o->ctx];
    uint64_t word;

    switch (o->kind) {
    case SOAK_PUT: shmem_ctx_putmem(c, at, here, o->len, o->pe); break;
    case SOAK_PUT_NBI: shmem_ctx_putmem_nbi(c, at, here, o->len, o->pe); break;
    case SOAK_STORE: run_store(c, at, here, o, t->arena_now != 2); break;
    case SOAK_SIGNAL:
        shmem_ctx_putmem_signal(c, at, here, o->len, signal_word(t, o), o->value, o->sub ? SHMEM_SIGNAL_ADD : SHMEM_SIGNAL_SET, o->pe);
        break;
    case SOAK_SIGNAL_NBI:
        shmem_ctx_putmem_signal_nbi(c, at, here, o->len, signal_word(t, o), o->value, o->sub ? SHMEM_SIGNAL_ADD : SHMEM_SIGNAL_SET, o->pe);
        break;
    case SOAK_GET:
    case SOAK_BACK: shmem_ctx_getmem(c, here, at, o->len, o->pe); break;
    case SOAK_GET_NBI: shmem_ctx_getmem_nbi(c, here, at, o->len, o->pe); break;
    case SOAK_P:
        soak_fill(&word, o->tag, 0, sizeof word);
        run_element(c, at, &word, o);
        break;
    case SOAK_G:
        o->got = 0;
        run_element(c, at, &o->got, o);
        break;
    case SOAK_IPUT:
    case SOAK_IBPUT:
    case SOAK_IGET: run_strided(c, at, here, o); break;
    case SOAK_OWN:
    case SOAK_OWN_NBI:
    case SOAK_SHARED: run_atomic(c, at, o); break;
    case SOAK_FENCE: shmem_ctx_fence(c); break;
    case SOAK_QUIET: shmem_ctx_quiet(c); break;
    default: run_locked(o); break;
    }
}

/* The thread's part of a step.  Results are looked at as soon as they must be there, and never later. */
void soak_run_plan(struct soak_thread *t)
{
    struct soak_rng r = soak_stream(soak.shape.seed, soak.step, soak.me, t->id, 2);
    struct soak_entry *e;
    bool pending = false;

    t->n = soak_plan(&soak.shape, t->scratch, soak.step, soak.me, t->id, t->ops);
    t->checked = 0;
    do
        t->arena_now = (int)soak_below(&r, SOAK_ARENAS);
    while (!t->arena[t->arena_now]);
    for (int i = 0; i < t->n; i++) {
        struct soak_op *o = &t->ops[i];

        prepare(t, o);
        e = soak_begin(t, o);
        run_op(t, o);
        soak_end(e);
        e->op.got = o->got;
        pending = o->kind != SOAK_QUIET && (pending || o->kind == SOAK_GET_NBI || o->kind == SOAK_OWN_NBI);
        if (!pending)
            soak_check_upto(t, i + 1);
    }
}
