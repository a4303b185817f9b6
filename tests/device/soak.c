/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * soak.c - shmem-soak's plans by kernels: threads, a warp and a block of each PE and its host work on the same device memory at the
 * same time, over load and store and over the NIC, and every byte, word and fetched value is checked.
 *
 * Arguments: seed (0: from the clock, printed), steps, first step, and a kind of operation that kernels leave out now and then, so
 * that the test must fail.  A seed gives the same operations again.
 *
 * run: n=1,3 launch=oshrun timeout=120 args=1,30
 * run: n=2 launch=oshrun timeout=120 args=0,40
 * nodes: no soak_nodes.sh runs it over ibgda
 */
#include "launch.h"
#include "soak_ops.h"
#include "soak_seed.h"

#define THREAD_AGENTS 3 /* agents 0 to 2: threads of a warp; then a warp, a block, the host */
#define WARP_AGENT 3
#define BLOCK_AGENT 4
#define HOST_AGENT 5
#define AGENTS 6
#define SLICE 1024
#define ARENA (4 * SLICE + 4096)
#define R SOAK_DEVICE

struct args {
    struct place places[AGENTS];
    struct soak_op *ops; /* SOAK_OPS an agent */
    int n[AGENTS];       /* 0: not this agent */
    struct mail *mail;   /* one an agent */
    int mailing;
    int lost;            /* see run_in_kernel */
    uint64_t *slots, *bad; /* of barriers: one a PE; a count */
    int scope, rounds, me, n_pes; /* scope: 0 thread, 1 warp, 2 block */
    uint64_t first;
};

static struct soak_shape shape;
static struct soak_layout layout;
static unsigned char *region, *shadow, *mirror[AGENTS];
static unsigned char *local_arena[AGENTS], *symmetric_arena[AGENTS];
static unsigned char host_arena[AGENTS][ARENA];
static struct soak_op *dev_ops, plans[AGENTS][SOAK_OPS];
static struct mail *dev_mail;
static uint64_t step, counts[SOAK_N_KINDS], *tally, *tally_sum; /* symmetric: SOAK_CELLS a PE */
static int complaints;
static void *scratch;
static shmem_ctx_t ctxs[CTXS];

KERNEL(run_agents, struct args)
{
    int rank = (int)shmemi_thread_in_block(), agent = BLOCK_AGENT;

    if (shmemi_block_index() == 0)
        agent = rank < THREAD_AGENTS ? rank : rank >= 32 ? WARP_AGENT : HOST_AGENT;
    if (agent == HOST_AGENT || !a.n[agent])
        return;
#ifdef SHMEMI_DEVICE_CODE
    enum shmemi_scope scope = agent == BLOCK_AGENT ? SHMEMI_BLOCK : agent == WARP_AGENT ? SHMEMI_WARP : SHMEMI_THREAD;

    if (a.mailing)
        mail_in_kernel(scope, &a.places[agent], a.mail + agent);
    else
        run_in_kernel(scope, &a.places[agent], a.ops + agent * SOAK_OPS, a.n[agent], a.lost);
#endif
}

/* Nobody passes before all have come; what they stored is there. */
KERNEL(barriers, struct args)
{
    int rank = (int)shmemi_thread_in_block(), size = (int)shmemi_block_threads();

    for (uint64_t v = a.first; v < a.first + (uint64_t)a.rounds; v++) {
        if (rank == 0)
            for (int pe = 0; pe < a.n_pes; pe++)
                shmem_uint64_p(a.slots + a.me, v, pe);
        if (a.scope == 2)
            shmemx_barrier_all_block();
        else if (a.scope == 1)
            shmemx_barrier_all_warp();
        else
            shmem_barrier_all();
        for (int pe = rank; pe < a.n_pes; pe += size)
            if (a.slots[pe] != v)
                a.bad[rank]++;
        if (a.scope == 2)
            shmemx_barrier_all_block();
        else if (a.scope == 1)
            shmemx_sync_all_warp();
        else
            shmem_sync_all();
    }
}

/* ---- what should be there ---- */

static struct soak_view view_of(unsigned char *base, size_t writer)
{
    struct soak_view v;

    v.slice = base + layout.data + writer * SLICE;
    v.sig = base + layout.sig + writer * SOAK_WORDS * 8;
    v.own = base + layout.own + writer * SOAK_WORDS * 8;
    v.shared = base + layout.shared;
    v.held = base + layout.held;
    return v;
}

static struct soak_view mirror_of(int agent, int pe)
{
    struct soak_view v;

    v.slice = mirror[agent] + (size_t)pe * (SLICE + SOAK_WORDS * 16);
    v.sig = v.slice + SLICE;
    v.own = v.sig + SOAK_WORDS * 8;
    v.shared = NULL;
    v.held = NULL;
    return v;
}

#define NAME(id, name) name,
static const char *const names[] = { SOAK_KINDS(NAME) };

static void complain(int agent, int i, const struct soak_op *o, uint64_t got, uint64_t want)
{
    tap_check(!"as expected");
    if (complaints++ > 5)
        return;
    tap_diag("seed %llu, step %llu, agent %d: operation %d, %s (sub %d, context %d) of %u bytes at %u, word %u, of PE %d: 0x%llx, expected 0x%llx",
             (unsigned long long)shape.seed, (unsigned long long)step, agent, i, names[o->kind], o->sub, o->ctx, o->len, o->off, o->word, o->pe,
             (unsigned long long)got, (unsigned long long)want);
}

/* The local side of an agent's operations: memory of the host, or of the device, symmetric or not. */
static unsigned char *arena_of(int agent, int where)
{
    return where == 0 ? host_arena[agent] : where == 1 ? local_arena[agent] : symmetric_arena[agent];
}

static const unsigned char *arena_bytes(int agent, int where)
{
    static unsigned char copy[ARENA];

    if (where == 0)
        return host_arena[agent];
    dev_read(copy, arena_of(agent, where), ARENA);
    return copy;
}

/* What a get brought, at once or behind a quiet. */
static void check_bytes(int agent, int i, const struct soak_op *o, const unsigned char *arena, const unsigned char *want)
{
    if (o->kind == SOAK_GET_NBI && o->tag != hash_of(want, o->len))
        complain(agent, i, o, o->tag, hash_of(want, o->len));
    for (uint32_t k = 0; k < o->len; k++)
        if (arena[o->loc + k] != want[k]) {
            complain(agent, i, o, arena[o->loc + k], want[k]);
            return;
        }
}

static void check_strided(int agent, int i, const struct soak_op *o, const unsigned char *arena, const unsigned char *want)
{
    for (uint32_t k = 0; k < o->count; k++)
        if (memcmp(arena + o->loc + k * o->here * o->sub, want + k * o->there * o->sub, o->sub)) {
            complain(agent, i, o, k, o->count);
            return;
        }
}

static void count_shared(const struct soak_op *o)
{
    size_t at = (size_t)o->pe * SOAK_CELLS + o->off;
    int class_ = soak_class_of[o->off] & 15;

    if (class_ == SOAK_C_TICKET)
        tally[at] += o->got;
    else if (class_ == SOAK_C_SWAP)
        tally[at] += o->value - o->got;
}

/* ops: as run, with what they fetched. */
static void check_agent(int agent, const struct soak_op *ops, int n, int where)
{
    const unsigned char *arena = arena_bytes(agent, where);
    unsigned char want[SLICE];

    for (int i = 0; i < n; i++) {
        const struct soak_op *plan = &plans[agent][i], *o = &ops[i];
        struct soak_view v = mirror_of(agent, plan->pe);
        uint64_t had = soak_apply(&v, plan), value = 0;

        counts[o->kind]++;
        soak_fill(want, soak_const_tag(&shape, o->pe, R, 0), o->off, o->len <= SLICE ? o->len : 0);
        switch (o->kind) {
        case SOAK_GET:
        case SOAK_GET_NBI: check_bytes(agent, i, o, arena, want); break;
        case SOAK_BACK: check_bytes(agent, i, o, arena, v.slice + o->off); break;
        case SOAK_IGET: check_strided(agent, i, o, arena, want); break;
        case SOAK_G:
            memcpy(&value, want, o->sub);
            if (o->got != value)
                complain(agent, i, o, o->got, value);
            break;
        case SOAK_OWN:
        case SOAK_OWN_NBI:
            if (soak_fetches(o->sub) && o->got != had)
                complain(agent, i, o, o->got, had);
            if (o->kind == SOAK_OWN_NBI && o->tag != had)
                complain(agent, i, o, o->tag, had);
            break;
        case SOAK_SHARED: count_shared(o); break;
        default: break;
        }
    }
}

/* This PE's memory against the shadow; swapped words depend on the order. */
static void compare(void)
{
    unsigned char *got = (unsigned char *)malloc(layout.end);
    int shown = 0;

    dev_read(got, region, layout.end);
    for (size_t w = 0; w < SOAK_CELLS; w++)
        if ((soak_class_of[w] & 15) == SOAK_C_SWAP)
            memcpy(shadow + layout.shared + w * 8, got + layout.shared + w * 8, 8);
    for (size_t i = 0; i < layout.end && shown < 5; i++)
        if (got[i] != shadow[i]) {
            tap_diag("seed %llu, step %llu: byte %zu of this PE's memory (slice of writer %zu, words from %zu, shared from %zu) is 0x%02x, "
                     "expected 0x%02x",
                     (unsigned long long)shape.seed, (unsigned long long)step, i, i / SLICE, layout.sig, layout.shared, got[i], shadow[i]);
            tap_check(!"memory as expected");
            shown++;
        }
    free(got);
}

/* ---- steps ---- */

static int kernel_arena(int agent)
{
    return 1 + (int)((step + (uint64_t)agent) % 2);
}

static void prepare(int agent, int n, int where)
{
    static unsigned char arena[ARENA];

    for (int i = 0; i < n; i++) {
        const struct soak_op *o = &plans[agent][i];
        size_t block = (size_t)o->word * o->sub;

        if (o->kind == SOAK_IPUT || o->kind == SOAK_IBPUT)
            for (uint32_t k = 0; k < o->count; k++)
                soak_fill(arena + o->loc + k * o->here * o->sub, o->tag, k * block, block);
        else
            soak_fill(arena + o->loc, o->tag, 0, o->len);
    }
    if (where == 0)
        memcpy(host_arena[agent], arena, ARENA);
    else
        dev_write(arena_of(agent, where), arena, ARENA);
}

static void place_of(struct args *a, int agent, int where)
{
    struct soak_view v = view_of(region, (size_t)(tap_me * AGENTS + agent));
    struct place *p = &a->places[agent];

    p->slice = v.slice;
    p->consts = region + layout.consts;
    p->arena = arena_of(agent, where);
    p->sig = (uint64_t *)(void *)v.sig;
    p->own = (uint64_t *)(void *)v.own;
    p->shared = (uint64_t *)(void *)v.shared;
    for (int c = 0; c < CTXS; c++)
        p->ctx[c] = ctxs[c];
}

/* Agents from `first` on, by calls of the host. */
static void by_host(struct args *a, int first)
{
    struct soak_op ops[SOAK_OPS];

    for (int agent = first; agent < AGENTS; agent++) {
        memcpy(ops, plans[agent], sizeof ops);
        run_by_host(&a->places[agent], ops, a->n[agent]);
        check_agent(agent, ops, a->n[agent], 0);
    }
}

/* The others, by one kernel. */
static void by_kernel(struct args *a)
{
    struct soak_op ops[SOAK_OPS];

    for (int agent = 0; agent < HOST_AGENT; agent++)
        dev_write(dev_ops + agent * SOAK_OPS, plans[agent], sizeof ops);
    LAUNCH(run_agents, struct args, *a, 2, 64);
    for (int agent = 0; agent < HOST_AGENT; agent++) {
        dev_read(ops, dev_ops + agent * SOAK_OPS, sizeof ops);
        check_agent(agent, ops, a->n[agent], kernel_arena(agent));
    }
}

static void apply_all(void)
{
    struct soak_op ops[SOAK_OPS];

    for (int pe = 0; pe < tap_n; pe++)
        for (int agent = 0; agent < AGENTS; agent++) {
            struct soak_view v = view_of(shadow, (size_t)(pe * AGENTS + agent));
            int n = soak_plan(&shape, scratch, step, pe, agent, ops);

            for (int i = 0; i < n; i++)
                if (ops[i].pe == tap_me)
                    soak_apply(&v, &ops[i]);
        }
}

/* One PE in four does all its agents' work on the host. */
static void plans_step(struct args *a)
{
    struct soak_rng r = soak_stream(shape.seed, step, tap_me, 0, 9);
    int host_only = soak_below(&r, 4) == 0, host_first = (int)soak_below(&r, 2);

    a->mailing = 0;
    for (int agent = 0; agent < AGENTS; agent++) {
        int where = host_only || agent == HOST_AGENT ? 0 : kernel_arena(agent);

        a->n[agent] = soak_plan(&shape, scratch, step, tap_me, agent, plans[agent]);
        prepare(agent, a->n[agent], where);
        place_of(a, agent, where);
    }
    shmem_barrier_all(); /* arenas are written */
    if (host_only) {
        by_host(a, 0);
    } else {
        if (host_first)
            by_host(a, HOST_AGENT);
        by_kernel(a);
        if (!host_first)
            by_host(a, HOST_AGENT);
    }
    shmem_barrier_all();
    apply_all();
    compare();
    shmem_barrier_all();
}

static void write_mail(struct mail *m, int agent, const struct soak_pairing *p)
{
    int to = (tap_me + p->shift) % tap_n, from = (tap_me + tap_n - p->shift) % tap_n;
    struct soak_view v = view_of(region, (size_t)(from * AGENTS + agent)), s = view_of(shadow, (size_t)(from * AGENTS + agent));
    uint64_t word;

    memset(m, 0, sizeof *m);
    m->n = p->messages;
    m->mode = p->mode;
    m->slice = v.slice;
    m->sig = (uint64_t *)(void *)v.sig;
    for (int i = 0; i < m->n; i++) {
        m->out[i] = soak_message(&shape, p, step, tap_me, agent, to, i);
        m->in[i] = soak_message(&shape, p, step, from, agent, tap_me, i);
        if (agent >= THREAD_AGENTS)
            m->out[i].here = 0; /* groups have no p and no atomics: put-with-signal does it */
        memcpy(&word, s.sig + i * 8, 8);
        m->want[i] = m->in[i].sub ? word + m->in[i].value : m->in[i].value;
        plans[agent][i] = m->out[i];
        counts[m->out[i].kind]++;
    }
}

/* The shadow and the mirror, behind the barrier. */
static void apply_mail(int agent, const struct soak_pairing *p)
{
    int to = (tap_me + p->shift) % tap_n, from = (tap_me + tap_n - p->shift) % tap_n;
    struct soak_view s = view_of(shadow, (size_t)(from * AGENTS + agent)), m = mirror_of(agent, to);
    struct soak_op o;

    for (int i = 0; i < p->messages; i++) {
        o = soak_message(&shape, p, step, from, agent, tap_me, i);
        soak_apply(&s, &o);
        o = soak_message(&shape, p, step, tap_me, agent, to, i);
        soak_apply(&m, &o);
    }
}

/* Kernels of all PEs send to one another and wait. */
static void mail_step(struct args *a)
{
    struct soak_pairing p;
    struct mail mail;

    a->mailing = 1;
    for (int agent = 0; agent < HOST_AGENT; agent++) {
        p = soak_pairing_of(&shape, step, agent, 0, 5);
        write_mail(&mail, agent, &p);
        prepare(agent, p.messages, kernel_arena(agent));
        place_of(a, agent, kernel_arena(agent));
        a->n[agent] = p.messages;
        dev_write(dev_mail + agent, &mail, sizeof mail);
    }
    shmem_barrier_all();
    LAUNCH(run_agents, struct args, *a, 2, 64);
    for (int agent = 0; agent < HOST_AGENT; agent++) {
        dev_read(&mail, dev_mail + agent, sizeof mail);
        if (mail.bad || mail.done != mail.n)
            complain(agent, mail.done, &mail.in[0], mail.bad, 0);
    }
    shmem_barrier_all();
    for (int agent = 0; agent < HOST_AGENT; agent++) {
        p = soak_pairing_of(&shape, step, agent, 0, 5);
        apply_mail(agent, &p);
    }
    compare();
    shmem_barrier_all();
}

static void barriers_step(struct args *a)
{
    static const int threads[3] = { 1, 32, 64 };
    struct soak_rng r = soak_stream(shape.seed, step, -1, 0, 10);
    uint64_t bad[64];

    a->scope = (int)soak_below(&r, 3);
    a->rounds = 1 + (int)soak_below(&r, 8);
    a->first = step * 16 + 1;
    LAUNCH(barriers, struct args, *a, 1, threads[a->scope]);
    dev_read(bad, a->bad, sizeof bad);
    for (int i = 0; i < 64; i++)
        tap_check_eq(bad[i], 0);
    counts[SOAK_COLL] += (uint64_t)a->rounds;
}

/* Tickets of a counter that hosts and kernels of near and far PEs increment: each once. */
static void check_tallies(void)
{
    uint64_t v, sum, want;

    shmem_uint64_sum_reduce(SHMEM_TEAM_WORLD, tally_sum, tally, (size_t)tap_n * SOAK_CELLS);
    for (size_t w = 0; w < SOAK_CELLS; w++) {
        int class_ = soak_class_of[w] & 15;

        v = 0;
        memcpy(&v, shadow + layout.shared + w * 8, soak_class_of[w] & SOAK_W32 ? 4 : 8);
        sum = tally_sum[(size_t)tap_me * SOAK_CELLS + w];
        want = class_ == SOAK_C_TICKET ? (v % 2 ? (v - 1) / 2 * v : v / 2 * (v - 1)) : v;
        if (class_ == SOAK_C_TICKET || class_ == SOAK_C_SWAP)
            tap_check_eq(sum, want);
    }
}

static void memory_open(struct args *a)
{
    size_t mirror_bytes = (size_t)tap_n * (SLICE + SOAK_WORDS * 16);

    layout = soak_layout_of(&shape, R);
    region = (unsigned char *)dev_malloc(layout.end);
    shadow = (unsigned char *)calloc(1, layout.end);
    scratch = malloc(soak_planner_bytes(&shape));
    tally = (uint64_t *)shmem_calloc((size_t)tap_n * SOAK_CELLS, 8);
    tally_sum = (uint64_t *)shmem_calloc((size_t)tap_n * SOAK_CELLS, 8);
    dev_ops = (struct soak_op *)dev_local(sizeof plans);
    dev_mail = (struct mail *)dev_local(sizeof(struct mail) * AGENTS);
    for (int agent = 0; agent < AGENTS; agent++) {
        mirror[agent] = (unsigned char *)calloc(1, mirror_bytes);
        local_arena[agent] = (unsigned char *)dev_local(ARENA);
        symmetric_arena[agent] = (unsigned char *)dev_malloc(ARENA);
    }
    memset(a, 0, sizeof *a);
    a->ops = dev_ops;
    a->mail = dev_mail;
    a->slots = (uint64_t *)dev_malloc((size_t)tap_n * 8);
    a->bad = (uint64_t *)dev_local(64 * 8);
    a->me = tap_me;
    a->n_pes = tap_n;
    ctxs[0] = SHMEM_CTX_DEFAULT;
    tap_check_eq(shmem_ctx_create(0, &ctxs[1]), 0);
    dev_add_ctx(ctxs[1], SHMEM_TEAM_WORLD);
    soak_fill(shadow + layout.consts, soak_const_tag(&shape, tap_me, R, 0), 0, SLICE);
    dev_write(region, shadow, layout.end);
    shmem_barrier_all();
}

static void one_step(struct args *a)
{
    struct soak_rng r = soak_stream(shape.seed, step, -1, -1, 0);
    int kind = (int)soak_below(&r, 8);

    if (kind == 0)
        barriers_step(a);
    else if (kind <= 2)
        mail_step(a);
    else
        plans_step(a);
}

int main(int argc, char **argv)
{
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1, steps = argc > 2 ? strtoull(argv[2], NULL, 0) : 30, total = 0;
    struct args a;

    dev_init();
    memset(&shape, 0, sizeof shape);
    shape.seed = agreed_seed(seed);
    shape.n_pes = tap_n;
    shape.threads = AGENTS;
    shape.n_ctxs = CTXS;
    shape.most_ops = 20;
    shape.regions = SOAK_BIT(R);
    shape.kinds = (SOAK_BIT(SOAK_OP_KINDS) - 1) & ~SOAK_BIT(SOAK_LOCK);
    shape.slice[R] = shape.consts[R] = shape.most = SLICE;
    shape.arena = ARENA;
    memory_open(&a);
    step = argc > 3 ? strtoull(argv[3], NULL, 0) : 0;
    a.lost = -1;
    for (int k = 0; argc > 4 && k < SOAK_N_KINDS; k++)
        if (!strcmp(names[k], argv[4]))
            a.lost = k;
    if (argc <= 2 && getenv("MARROW_TEST_SHORT"))
        steps = 6;
    for (uint64_t end = step + steps; step < end && !tap_failed; step++) {
        one_step(&a);
        if (step % 10 == 9 || step + 1 == end)
            tap_point("seed %llu, up to step %llu", (unsigned long long)shape.seed, (unsigned long long)step);
    }
    check_tallies();
    tap_point("no increment is lost, no ticket given twice");
    for (int k = 0; k < SOAK_N_KINDS; k++)
        total += counts[k];
    if (tap_me == 0)
        tap_diag("%llu operations of PE 0", (unsigned long long)total);
    return dev_done();
}
