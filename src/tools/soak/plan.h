/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plan.h - what shmem-soak does in a step, as a pure function of seed, step, PE and thread, so that every PE knows what every
 * other writes to it; and what an operation makes of memory.
 *
 * C and C++, for tests/device/soak.c too, which runs the same plans in kernels.
 *
 * A writer is a thread of a PE.  It has, in each region of each PE, a slice, SOAK_WORDS signal words and SOAK_WORDS words for atomics
 * that nobody else writes.  Between two fences or quiets its operations touch no byte of a slice twice and no word twice unless the
 * first came back with a value: the result is known whatever the library may reorder.  Shared words take what commutes.
 */
#ifndef SOAK_PLAN_H
#define SOAK_PLAN_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define SOAK_BOTH static inline __host__ __device__ /* kernels use it too */
#else
#define SOAK_BOTH static inline
#endif

#define SOAK_OPS 48     /* most operations of a plan */
#define SOAK_WORDS 8
#define SOAK_CELLS 16 /* shared words */
#define SOAK_SHARED_SIG 0x100 /* soak_op.word is a shared word */
#define SOAK_LOCKS 4
#define SOAK_CTXS 4

enum soak_region { SOAK_HEAP, SOAK_STATIC, SOAK_DEVICE, SOAK_REGIONS };

/* Kinds of operations, then of whole steps; the names are those of --ops. */
#define SOAK_KINDS(X)                                                                                                \
    X(PUT, "put") X(PUT_NBI, "put_nbi") X(P, "p") X(IPUT, "iput") X(IBPUT, "ibput") X(STORE, "store")               \
    X(SIGNAL, "put_signal") X(SIGNAL_NBI, "put_signal_nbi") X(GET, "get") X(GET_NBI, "get_nbi") X(G, "g")           \
    X(IGET, "iget") X(BACK, "get_back") X(OWN, "atomic") X(OWN_NBI, "atomic_nbi") X(SHARED, "atomic_shared")         \
    X(FENCE, "fence") X(QUIET, "quiet") X(LOCK, "lock") X(PAIRS, "pairs") X(FAN, "fan") X(COLL, "coll")              \
    X(TEAM, "team") X(ALLOC, "alloc") X(CTX, "ctx")
#define SOAK_KIND_ENUM(id, name) SOAK_##id,
enum soak_kind { SOAK_KINDS(SOAK_KIND_ENUM) SOAK_N_KINDS };
#define SOAK_OP_KINDS SOAK_PAIRS /* kinds below are operations of a plan */
#define SOAK_BIT(kind) (1u << (kind))

/* Atomic operations; soak_op.sub holds one, with flags. */
enum soak_amo {
    SOAK_FETCH, SOAK_SWAP, SOAK_CSWAP, SOAK_FINC, SOAK_FADD, SOAK_FAND, SOAK_FOR, SOAK_FXOR,
    SOAK_SET, SOAK_INC, SOAK_ADD, SOAK_AND, SOAK_OR, SOAK_XOR, SOAK_LOOP, /* a loop of compare-and-swap that adds */
    SOAK_AMO_MASK = 15,
    SOAK_AMO_32 = 16,
    SOAK_AMO_HIGH = 32 /* the upper half of the word */
};

/* What a shared word takes: its place says so. */
enum soak_class { SOAK_C_ADD, SOAK_C_XOR, SOAK_C_TICKET, SOAK_C_LOOP, SOAK_C_SWAP, SOAK_C_BITS, SOAK_C_SIG };
#define SOAK_W32 16
static const unsigned char soak_class_of[SOAK_CELLS] = {
    SOAK_C_ADD, SOAK_C_ADD, SOAK_C_ADD | SOAK_W32, SOAK_C_XOR, SOAK_C_XOR | SOAK_W32, SOAK_C_TICKET, SOAK_C_TICKET | SOAK_W32,
    SOAK_C_LOOP, SOAK_C_SWAP, SOAK_C_BITS, SOAK_C_LOOP | SOAK_W32, SOAK_C_SIG, SOAK_C_ADD, SOAK_C_ADD | SOAK_W32, SOAK_C_SIG, SOAK_C_XOR,
};

struct soak_op {
    uint8_t kind, region, ctx, sub; /* sub: an atomic operation, an element's size, 1 for SHMEM_SIGNAL_ADD */
    int32_t pe;
    uint32_t off, len;              /* where: in the slice or the constants, or a word; bytes */
    uint32_t loc;                   /* the local side: in the writer's arena */
    uint32_t there, here, count;    /* strides of IPUT, IBPUT, IGET in elements, and elements */
    uint32_t word;                  /* of the signal */
    uint64_t value, cond;
    uint64_t tag;                   /* of the bytes it writes */
    uint64_t got;                   /* filled by who runs it */
};

/* The same on all PEs, or they disagree on everything. */
struct soak_shape {
    uint64_t seed;
    int n_pes, threads, n_ctxs, most_ops;
    uint32_t regions; /* bits */
    uint32_t kinds;   /* bits */
    uint32_t slice[SOAK_REGIONS], consts[SOAK_REGIONS]; /* bytes, multiples of 16 */
    uint32_t most;    /* bytes of an operation */
    uint32_t arena;   /* bytes of a writer's local memory */
};

/* Where the parts of a region begin. */
struct soak_layout {
    size_t data, sig, own, shared, locks, held, consts, end;
};

static inline struct soak_layout soak_layout_of(const struct soak_shape *s, int region)
{
    size_t writers = (size_t)s->n_pes * (size_t)s->threads;
    struct soak_layout l;

    l.data = 0;
    l.sig = writers * s->slice[region];
    l.own = l.sig + writers * SOAK_WORDS * 8;
    l.shared = l.own + writers * SOAK_WORDS * 8;
    l.locks = l.shared + SOAK_CELLS * 8;
    l.held = l.locks + SOAK_LOCKS * 8;
    l.consts = l.held + SOAK_LOCKS * 8;
    l.end = l.consts + s->consts[region];
    return l;
}

/* ---- numbers ---- */

struct soak_rng {
    uint64_t s;
};

SOAK_BOTH uint64_t soak_mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

static inline uint64_t soak_next(struct soak_rng *r)
{
    r->s += UINT64_C(0x9e3779b97f4a7c15);
    return soak_mix(r->s);
}

static inline uint32_t soak_below(struct soak_rng *r, uint32_t n)
{
    return (uint32_t)((soak_next(r) >> 32) * n >> 32);
}

/* A stream of its own for each use; pe and thread -1: the one that all PEs share. */
static inline struct soak_rng soak_stream(uint64_t seed, uint64_t step, int pe, int thread, int use)
{
    struct soak_rng r;

    r.s = soak_mix(seed + soak_mix(step + 1) * 3 + soak_mix((uint64_t)(pe + 7) * 65537 + (uint64_t)(thread + 3)) * 5 + (uint64_t)use);
    return r;
}

/* Between 1 and most; each power of two is as likely. */
static inline uint32_t soak_size(struct soak_rng *r, uint32_t most)
{
    uint32_t bits = 0, n;

    while (most >> bits > 1)
        bits++;
    n = 1u << soak_below(r, bits + 1);
    n += soak_below(r, n);
    return n > most ? most : n;
}

SOAK_BOTH unsigned char soak_byte(uint64_t tag, size_t i)
{
    return (unsigned char)(soak_mix(tag + (i >> 3)) >> ((i & 7) * 8));
}

/* The bytes from..from+len of a tag's endless sequence. */
static inline void soak_fill(void *to, uint64_t tag, size_t from, size_t len)
{
    unsigned char *p = (unsigned char *)to;
    size_t i = 0;

    for (; i < len && (from + i) % 8; i++)
        p[i] = soak_byte(tag, from + i);
    for (; i + 8 <= len; i += 8) {
        uint64_t v = soak_mix(tag + ((from + i) >> 3));

        memcpy(p + i, &v, 8);
    }
    for (; i < len; i++)
        p[i] = soak_byte(tag, from + i);
}

static inline uint64_t soak_const_tag(const struct soak_shape *s, int pe, int region, uint64_t epoch)
{
    return soak_mix(s->seed ^ soak_mix(epoch * 4 + (uint64_t)region) ^ ((uint64_t)pe << 40));
}

/* ---- plans ---- */

/* Scratch of the planner: a number for each PE and region. */
struct soak_planner {
    const struct soak_shape *s;
    struct soak_rng r;
    struct soak_op *ops;
    int n, most, thread;
    int ctx;
    int fresh;                      /* a quiet came just before */
    uint32_t loc;
    uint32_t *cursor;               /* first free byte of the slice */
    uint8_t *own_busy, *own_asked;  /* words that a fence frees, and that only a quiet does */
    uint8_t *sig_busy;
};

static inline size_t soak_planner_bytes(const struct soak_shape *s)
{
    return (size_t)s->n_pes * SOAK_REGIONS * (sizeof(uint32_t) + 3);
}

static inline int soak_wants(const struct soak_shape *s, int kind)
{
    return (s->kinds >> kind & 1) != 0;
}

static inline struct soak_op *soak_add(struct soak_planner *g, int kind)
{
    struct soak_op *o = &g->ops[g->n++];

    memset(o, 0, sizeof *o);
    o->kind = (uint8_t)kind;
    o->ctx = (uint8_t)g->ctx;
    o->tag = soak_next(&g->r);
    g->fresh = kind == SOAK_QUIET || (g->fresh && kind == SOAK_BACK);
    return o;
}

/* Orders what was planned; slices start over somewhere. */
static inline void soak_order(struct soak_planner *g, int kind)
{
    size_t cells = (size_t)g->s->n_pes * SOAK_REGIONS;

    soak_add(g, kind);
    for (size_t i = 0; i < cells; i++) {
        g->cursor[i] = soak_below(&g->r, g->s->slice[i % SOAK_REGIONS] + 1);
        g->own_busy[i] = 0;
        g->sig_busy[i] = 0;
        if (kind == SOAK_QUIET)
            g->own_asked[i] = 0;
    }
}

static inline int soak_pick_region(struct soak_planner *g)
{
    int region;

    do
        region = (int)soak_below(&g->r, SOAK_REGIONS);
    while (!(g->s->regions >> region & 1));
    return region;
}

/* len bytes of the slice on o->pe, aligned; orders first when the rest is too short. */
static inline void soak_place(struct soak_planner *g, uint32_t region, int32_t pe, uint32_t len, uint32_t align, uint32_t *off)
{
    uint32_t *c = &g->cursor[(size_t)pe * SOAK_REGIONS + region], at, room = g->s->slice[region];

    at = (*c + soak_below(&g->r, 24) + align - 1) / align * align;
    if (at + len > room) {
        soak_order(g, soak_below(&g->r, 2) ? SOAK_FENCE : SOAK_QUIET);
        at = *c / align * align;
        if (at + len > room)
            at = (room - len) / align * align;
    }
    *c = at + len;
    *off = at;
}

/* Local bytes; 0 when the arena is used up. */
static inline int soak_local(struct soak_planner *g, uint32_t len, uint32_t align, uint32_t *loc)
{
    uint32_t at = align > 1 ? (g->loc + align - 1) / align * align : g->loc + soak_below(&g->r, 16);

    if (at + len > g->s->arena)
        return 0;
    g->loc = at + len;
    *loc = at;
    return 1;
}

/* A word of `busy` that may be used; orders when there is none. */
static inline uint32_t soak_free_word(struct soak_planner *g, uint8_t *busy, const uint8_t *asked, size_t cell)
{
    uint32_t w = soak_below(&g->r, SOAK_WORDS);

    for (int i = 0; i < SOAK_WORDS; i++, w = (w + 1) % SOAK_WORDS)
        if (!((busy[cell] | (asked ? asked[cell] : 0)) >> w & 1))
            return w;
    soak_order(g, SOAK_QUIET);
    return w;
}

static inline int soak_plan_move(struct soak_planner *g, int kind, int region, int pe)
{
    const struct soak_shape *s = g->s;
    uint32_t most = s->most < s->slice[region] ? s->most : s->slice[region], len = soak_size(&g->r, most), off = 0, loc, word = 0;
    size_t cell = (size_t)pe * SOAK_REGIONS + (size_t)region;
    struct soak_op *o;
    int signals = kind == SOAK_SIGNAL || kind == SOAK_SIGNAL_NBI;

    if (!soak_local(g, len, 1, &loc))
        return 0;
    if (signals)
        word = soak_free_word(g, g->sig_busy, NULL, cell);
    if (kind == SOAK_GET || kind == SOAK_GET_NBI) {
        if (len > s->consts[region])
            len = s->consts[region];
        off = soak_below(&g->r, s->consts[region] - len + 1);
    } else if (kind == SOAK_BACK) {
        off = soak_below(&g->r, s->slice[region] - len + 1);
    } else {
        soak_place(g, (uint32_t)region, pe, len, 1, &off);
    }
    o = soak_add(g, kind);
    o->region = (uint8_t)region;
    o->pe = pe;
    o->off = off;
    o->len = len;
    o->loc = loc;
    if (signals) {
        o->sub = (uint8_t)soak_below(&g->r, 2);
        o->word = word;
        o->value = soak_next(&g->r) >> 8;
        if (soak_below(&g->r, 4) == 0) { /* a signal of many writers */
            o->sub = 1;
            o->word = SOAK_SHARED_SIG | (soak_below(&g->r, 2) ? 11u : 14u);
        } else {
            g->sig_busy[cell] |= (uint8_t)(1u << word);
        }
    }
    return 1;
}

/* Elements of 1 to 16 bytes, strided. */
static inline int soak_plan_elements(struct soak_planner *g, int kind, int region, int pe)
{
    const struct soak_shape *s = g->s;
    uint32_t size = 1u << soak_below(&g->r, kind == SOAK_P || kind == SOAK_G ? 4 : 5), there, here, count, block, len, loc, off = 0;
    uint32_t room = kind == SOAK_IGET || kind == SOAK_G ? s->consts[region] : s->slice[region];
    struct soak_op *o;

    block = kind == SOAK_IBPUT ? 1 + soak_below(&g->r, 5) : 1;
    there = block + soak_below(&g->r, 4);
    here = block + soak_below(&g->r, 4);
    count = kind == SOAK_P || kind == SOAK_G ? 1 : 1 + soak_below(&g->r, 40);
    while (count > 1 && ((count - 1) * (there > here ? there : here) + block) * size > (s->most < room ? s->most : room))
        count /= 2;
    if (((count - 1) * (there > here ? there : here) + block) * size > room)
        return 1;
    len = ((count - 1) * there + block) * size;
    if (!soak_local(g, ((count - 1) * here + block) * size, 16, &loc))
        return 0;
    if (kind == SOAK_IGET || kind == SOAK_G)
        off = soak_below(&g->r, (room - len) / size + 1) * size;
    else
        soak_place(g, (uint32_t)region, pe, len, size, &off);
    o = soak_add(g, kind);
    o->region = (uint8_t)region;
    o->pe = pe;
    o->off = off;
    o->len = len;
    o->loc = loc;
    o->sub = (uint8_t)size;
    o->there = there;
    o->here = here;
    o->count = count;
    o->word = block;
    return 1;
}

SOAK_BOTH int soak_fetches(int sub)
{
    return (sub & SOAK_AMO_MASK) < SOAK_SET;
}

/* Atomics on a word of one's own: each result is known. */
static inline int soak_plan_own(struct soak_planner *g, int kind, int region, int pe)
{
    size_t cell = (size_t)pe * SOAK_REGIONS + (size_t)region;
    uint32_t w = soak_free_word(g, g->own_busy, g->own_asked, cell);
    int sub = (int)soak_below(&g->r, kind == SOAK_OWN_NBI ? SOAK_SET : SOAK_LOOP), width = (int)soak_below(&g->r, 4);
    int flags = width == 0 ? SOAK_AMO_32 : width == 1 ? SOAK_AMO_32 | SOAK_AMO_HIGH : 0;
    uint64_t before = soak_next(&g->r);
    struct soak_op *o;

    if (sub == SOAK_CSWAP && soak_below(&g->r, 4)) { /* one that succeeds: the word's value is known */
        o = soak_add(g, SOAK_OWN);
        o->region = (uint8_t)region;
        o->pe = pe;
        o->off = w;
        o->sub = (uint8_t)(SOAK_SWAP | flags);
        o->value = before;
    }
    o = soak_add(g, kind);
    o->region = (uint8_t)region;
    o->pe = pe;
    o->off = w;
    o->sub = (uint8_t)(sub | flags);
    o->value = soak_next(&g->r);
    o->cond = before;
    if (kind == SOAK_OWN_NBI)
        g->own_asked[cell] |= (uint8_t)(1u << w);
    else if (!soak_fetches(sub))
        g->own_busy[cell] |= (uint8_t)(1u << w);
    return 1;
}

/* Atomics on a word that all writers use. */
static inline int soak_plan_shared(struct soak_planner *g, int region, int pe, int writer)
{
    static const unsigned char adds[4] = { SOAK_FINC, SOAK_FADD, SOAK_INC, SOAK_ADD };
    uint32_t w = soak_below(&g->r, SOAK_CELLS);
    int class_ = soak_class_of[w] & 15, sub;
    uint64_t value = soak_next(&g->r);
    struct soak_op *o;

    if (soak_below(&g->r, 2))
        pe = 0; /* many at one place */
    switch (class_) {
    case SOAK_C_ADD: sub = adds[soak_below(&g->r, 4)]; break;
    case SOAK_C_XOR: sub = soak_below(&g->r, 2) ? SOAK_XOR : SOAK_FXOR; break;
    case SOAK_C_TICKET: sub = SOAK_FINC; break;
    case SOAK_C_LOOP: sub = SOAK_LOOP; break;
    case SOAK_C_SWAP: sub = SOAK_SWAP; break;
    case SOAK_C_BITS:
        if (writer >= 64)
            return 1;
        sub = soak_below(&g->r, 2) ? SOAK_FOR : SOAK_FAND;
        value = UINT64_C(1) << writer;
        if (sub == SOAK_FAND)
            value = ~value;
        break;
    default: return 1; /* signals only */
    }
    o = soak_add(g, SOAK_SHARED);
    o->region = (uint8_t)region;
    o->pe = pe;
    o->off = w;
    o->sub = (uint8_t)(sub | (soak_class_of[w] & SOAK_W32 ? SOAK_AMO_32 : 0));
    o->value = value;
    return 1;
}

/* A lock and a counter that it guards; locks are a PE's, so one thread takes them. */
static inline int soak_plan_lock(struct soak_planner *g)
{
    struct soak_op *o = soak_add(g, SOAK_LOCK);

    o->off = soak_below(&g->r, SOAK_LOCKS);
    o->pe = (int32_t)(o->off % (uint32_t)g->s->n_pes);
    o->sub = (uint8_t)soak_below(&g->r, 2); /* 1: taken by shmem_test_lock */
    return 1;
}

/* One operation of that kind with what must come before; 0 when the arena is full. */
static inline int soak_plan_one(struct soak_planner *g, int kind, int pe, int writer)
{
    int region = soak_pick_region(g);

    switch (kind) {
    case SOAK_FENCE:
    case SOAK_QUIET: soak_order(g, kind); return 1;
    case SOAK_LOCK: return g->thread || !(g->s->regions & 1) ? 1 : soak_plan_lock(g);
    case SOAK_P:
    case SOAK_G:
    case SOAK_IPUT:
    case SOAK_IBPUT:
    case SOAK_IGET: return soak_plan_elements(g, kind, region, pe);
    case SOAK_OWN:
    case SOAK_OWN_NBI: return soak_plan_own(g, kind, region, pe);
    case SOAK_SHARED: return soak_plan_shared(g, region, pe, writer);
    case SOAK_BACK:
        if (!g->fresh)
            soak_order(g, SOAK_QUIET);
        return soak_plan_move(g, kind, region, pe);
    default: return soak_plan_move(g, kind, region, pe);
    }
}

/* The plan of a writer for a step: at most SOAK_OPS operations, the last a quiet.  `scratch`: soak_planner_bytes(). */
static inline int soak_plan(const struct soak_shape *s, void *scratch, uint64_t step, int pe, int thread, struct soak_op *ops)
{
    struct soak_planner g;
    size_t cells = (size_t)s->n_pes * SOAK_REGIONS;
    int kinds[SOAK_OP_KINDS], n_kinds = 0, one_peer, one_kind, peer, kind, goal;

    memset(&g, 0, sizeof g);
    g.s = s;
    g.r = soak_stream(s->seed, step, pe, thread, 1);
    g.ops = ops;
    g.thread = thread;
    g.cursor = (uint32_t *)scratch;
    g.own_busy = (uint8_t *)(g.cursor + cells);
    g.own_asked = g.own_busy + cells;
    g.sig_busy = g.own_asked + cells;
    memset(scratch, 0, soak_planner_bytes(s));
    for (int k = 0; k < SOAK_OP_KINDS; k++)
        if (soak_wants(s, k))
            kinds[n_kinds++] = k;
    if (!n_kinds)
        return 0;
    for (size_t i = 0; i < cells; i++)
        g.cursor[i] = soak_below(&g.r, s->slice[i % SOAK_REGIONS] + 1);
    g.ctx = (int)soak_below(&g.r, (uint32_t)s->n_ctxs);
    goal = 1 + (int)soak_below(&g.r, (uint32_t)s->most_ops);
    one_peer = soak_below(&g.r, 4) == 0 ? (int)soak_below(&g.r, (uint32_t)s->n_pes) : -1;
    one_kind = soak_below(&g.r, 6) == 0 ? kinds[soak_below(&g.r, (uint32_t)n_kinds)] : -1;
    while (g.n < goal) {
        peer = one_peer >= 0 ? one_peer : (int)soak_below(&g.r, (uint32_t)s->n_pes);
        kind = one_kind >= 0 && soak_below(&g.r, 8) ? one_kind : kinds[soak_below(&g.r, (uint32_t)n_kinds)];
        if (!soak_plan_one(&g, kind, peer, pe * s->threads + thread))
            break;
        if (g.n && ops[g.n - 1].kind == SOAK_QUIET)
            g.ctx = (int)soak_below(&g.r, (uint32_t)s->n_ctxs);
        goal -= kind == SOAK_LOCK && g.thread; /* which plans nothing */
    }
    soak_order(&g, SOAK_QUIET);
    return g.n;
}

/* ---- messages that somebody waits for ---- */

/* All PEs agree on this for a step and thread number. */
struct soak_pairing {
    int shift;    /* PE i sends to i + shift; a fan sends to all */
    int messages;
    int region;
    int mode;     /* how the receiver waits */
    int same;     /* all signals are set to one value */
    uint64_t value;
};

static inline struct soak_pairing soak_pairing_of(const struct soak_shape *s, uint64_t step, int thread, int fan, int n_modes)
{
    struct soak_rng r = soak_stream(s->seed, step, -1, thread, fan ? 3 : 4);
    struct soak_pairing p;

    p.shift = (int)soak_below(&r, (uint32_t)s->n_pes);
    p.messages = fan ? 1 : 1 + (int)soak_below(&r, SOAK_WORDS);
    do
        p.region = (int)soak_below(&r, SOAK_REGIONS);
    while (!(s->regions >> p.region & 1));
    p.mode = (int)soak_below(&r, (uint32_t)n_modes);
    p.same = (int)soak_below(&r, 2);
    p.value = soak_next(&r) | 1;
    return p;
}

/*
 * Message m of a writer to PE `to`: bytes of a part of its slice that no other message uses, and signal word m.  In `here`: 0, put
 * with signal, as the kind says; 1, put, fence, p; 2, put_nbi, fence, atomic; 3, put_nbi, quiet, atomic.
 */
static inline struct soak_op soak_message(const struct soak_shape *s, const struct soak_pairing *p, uint64_t step, int pe, int thread, int to,
                                          int m)
{
    struct soak_rng r = soak_stream(s->seed, step, pe, thread, 16 + m + to * SOAK_WORDS);
    uint32_t part = s->slice[p->region] / (uint32_t)p->messages, len = soak_size(&r, part);
    struct soak_op o;

    memset(&o, 0, sizeof o);
    o.kind = (uint8_t)(soak_below(&r, 2) ? SOAK_SIGNAL : SOAK_SIGNAL_NBI);
    o.region = (uint8_t)p->region;
    o.ctx = (uint8_t)soak_below(&r, (uint32_t)s->n_ctxs);
    o.pe = to;
    o.len = len;
    o.off = (uint32_t)m * part + soak_below(&r, part - len + 1);
    o.loc = (uint32_t)m * part;
    o.here = soak_below(&r, 2) ? 0 : 1 + soak_below(&r, 3);
    o.word = (uint32_t)m;
    o.tag = soak_next(&r);
    o.sub = (uint8_t)soak_below(&r, 2);
    o.value = soak_next(&r) | 1;
    if (p->same) {
        o.sub = 0;
        o.value = p->value;
    }
    return o;
}

/* ---- what an operation makes of memory ---- */

/* Where a writer's parts of a region are, in the memory itself or in a picture of it; null: not looked at. */
struct soak_view {
    unsigned char *slice;
    unsigned char *sig, *own, *shared, *held;
};

static inline uint64_t soak_amo_result(int sub, uint64_t old, uint64_t value, uint64_t cond)
{
    switch (sub & SOAK_AMO_MASK) {
    case SOAK_SWAP:
    case SOAK_SET: return value;
    case SOAK_CSWAP: return old == (sub & SOAK_AMO_32 ? (uint32_t)cond : cond) ? value : old;
    case SOAK_FINC:
    case SOAK_INC: return old + 1;
    case SOAK_FADD:
    case SOAK_LOOP:
    case SOAK_ADD: return old + value;
    case SOAK_FAND:
    case SOAK_AND: return old & value;
    case SOAK_FOR:
    case SOAK_OR: return old | value;
    case SOAK_FXOR:
    case SOAK_XOR: return old ^ value;
    default: return old;
    }
}

/* The atomic operation on the word at `at`; what was there before. */
static inline uint64_t soak_amo_apply(unsigned char *at, int sub, uint64_t value, uint64_t cond)
{
    size_t size = sub & SOAK_AMO_32 ? 4 : 8;
    uint64_t old = 0, new_;

    at += sub & SOAK_AMO_HIGH ? 4 : 0;
    memcpy(&old, at, size);
    new_ = soak_amo_result(sub, old, value, cond);
    memcpy(at, &new_, size);
    return old;
}

static inline void soak_signal_apply(const struct soak_view *v, const struct soak_op *o)
{
    unsigned char *at = v->sig + o->word * 8;
    uint64_t word;

    if (o->word & SOAK_SHARED_SIG) {
        if (!v->shared)
            return;
        at = v->shared + (o->word & 0xff) * 8;
    }
    memcpy(&word, at, 8);
    word = o->sub ? word + o->value : o->value;
    memcpy(at, &word, 8);
}

/* What the operation does to its target's region; returns what an atomic finds. */
static inline uint64_t soak_apply(const struct soak_view *v, const struct soak_op *o)
{
    uint32_t block = o->word * o->sub;
    uint64_t held;

    switch (o->kind) {
    case SOAK_SIGNAL:
    case SOAK_SIGNAL_NBI: soak_signal_apply(v, o); soak_fill(v->slice + o->off, o->tag, 0, o->len); return 0;
    case SOAK_PUT:
    case SOAK_PUT_NBI:
    case SOAK_STORE:
    case SOAK_P: soak_fill(v->slice + o->off, o->tag, 0, o->len); return 0;
    case SOAK_IPUT:
    case SOAK_IBPUT:
        for (uint32_t i = 0; i < o->count; i++)
            soak_fill(v->slice + o->off + i * o->there * o->sub, o->tag, i * block, block);
        return 0;
    case SOAK_OWN:
    case SOAK_OWN_NBI: return soak_amo_apply(v->own + o->off * 8, o->sub, o->value, o->cond);
    case SOAK_SHARED: return v->shared ? soak_amo_apply(v->shared + o->off * 8, o->sub, o->value, o->cond) : 0;
    case SOAK_LOCK:
        if (v->held) {
            memcpy(&held, v->held + o->off * 8, 8);
            held++;
            memcpy(v->held + o->off * 8, &held, 8);
        }
        return 0;
    default: return 0;
    }
}

#endif
