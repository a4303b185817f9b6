/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * soak_coll.c - random collectives in kernels: a thread, a warp and a block of each PE, each on a team of its own, go through
 * sequences of their own in one kernel at the same time, with every element of each result checked by who asked for it.
 *
 * A source is filled anew as soon as its call has returned; a result has one of two places in turn, and where members do not
 * sync between two calls, they come back to back.
 *
 * Arguments: seed (0: from the clock, printed), steps, first step, and a collective for which PE 0 now and then gives wrong
 * values, so that the test must fail.  A seed gives the same calls again.
 *
 * run: n=1,3 launch=oshrun timeout=120 args=1,8
 * run: n=2 launch=oshrun timeout=120 args=0,10
 * nodes: no soak_nodes.sh runs it
 */
#include "launch.h"

#include "plan.h"
#include "soak_seed.h"

#if defined(__CUDACC__)
#define OPS static inline __host__ __device__
#define OPS_DEVICE static __device__ __noinline__
#else
#define OPS static inline
#define OPS_DEVICE static __attribute__((noinline))
#endif

#define AGENTS 3 /* a thread, a warp, a block */
#define CALLS 12 /* of an agent in a step */
#define MOST 700 /* ints of a PE's part; beyond what goes by way of the sync blocks */

enum what { BROADCAST, FCOLLECT, ALLTOALL, COLLECT, SUM, N_WHATS };
static const char *const names[N_WHATS] = { "broadcast", "fcollect", "alltoall", "collect", "sum_reduce" };
static const char *const scopes[AGENTS] = { "thread", "warp", "block" };

struct call {
    int what, len, root, sync; /* sync: members meet behind it */
    uint32_t tag;
};

/* What an agent has, and the first wrong element that it has seen: its call and place, what it was and should be. */
struct agent {
    shmem_team_t team;
    int me, n, n_calls, liar; /* liar: a collective, or -1 */
    int *source, *dest[2];
    int bad, bad_call, at, got, want;
    struct call calls[CALLS];
};

struct args {
    struct agent *agents;
};

OPS int value(uint32_t tag, int pe, int i)
{
    return (int)(tag + (uint32_t)pe * 100003u + (uint32_t)i * 7u) >> 3;
}

/* A part of COLLECT has a length of each PE's own. */
OPS int part(const struct call *c, int pe)
{
    return c->what == COLLECT ? (c->len + pe * 37) % (MOST + 1) : c->len;
}

OPS int filled(const struct call *c, int me, int n)
{
    return c->what == ALLTOALL ? c->len * n : part(c, me);
}

OPS int result(const struct call *c, int n)
{
    int len = 0;

    if (c->what == BROADCAST || c->what == SUM)
        return c->len;
    for (int pe = 0; pe < n; pe++)
        len += part(c, pe);
    return len;
}

OPS int wanted(const struct call *c, int me, int n, int i)
{
    int sum = 0, pe = 0;

    if (c->what == BROADCAST)
        return value(c->tag, c->root, i);
    if (c->what != SUM) {
        for (; i >= part(c, pe); pe++)
            i -= part(c, pe);
        return value(c->tag, pe, c->what == ALLTOALL ? me * c->len + i : i);
    }
    for (; pe < n; pe++)
        sum = (int)((uint32_t)sum + (uint32_t)value(c->tag, pe, i));
    return sum;
}

#ifdef SHMEMI_DEVICE_CODE

OPS_DEVICE void fill(enum shmemi_scope scope, const struct agent *a, const struct call *c)
{
    uint32_t wrong = c->what == a->liar && a->me == 0;

    for (int i = (int)shmemi_rank(scope), n = filled(c, a->me, a->n); i < n; i += (int)shmemi_size(scope))
        a->source[i] = value(c->tag + wrong * 64, a->me, i);
}

OPS_DEVICE void check(enum shmemi_scope scope, struct agent *a, int k)
{
    const struct call *c = &a->calls[k];
    const int *dest = a->dest[k & 1];

    for (int i = (int)shmemi_rank(scope), n = result(c, a->n); i < n; i += (int)shmemi_size(scope)) {
        int want = wanted(c, a->me, a->n, i);

        if (dest[i] == want || a->bad)
            continue;
        a->bad = 1; /* several threads may say so; one of the places is enough */
        a->bad_call = k;
        a->at = i;
        a->got = dest[i];
        a->want = want;
    }
}

#define SEQUENCE(NAME, SCOPE, PREFIX, SUFFIX)                                                                        \
    OPS_DEVICE void NAME(struct agent *a)                                                                            \
    {                                                                                                                \
        for (int k = 0; k < a->n_calls; k++) {                                                                       \
            const struct call *c = &a->calls[k];                                                                     \
            int *dest = a->dest[k & 1];                                                                              \
                                                                                                                     \
            fill(SCOPE, a, c);                                                                                       \
            switch (c->what) {                                                                                       \
            case BROADCAST: PREFIX##_int_broadcast##SUFFIX(a->team, dest, a->source, (size_t)c->len, c->root); break; \
            case FCOLLECT: PREFIX##_int_fcollect##SUFFIX(a->team, dest, a->source, (size_t)c->len); break;           \
            case ALLTOALL: PREFIX##_int_alltoall##SUFFIX(a->team, dest, a->source, (size_t)c->len); break;           \
            case COLLECT: PREFIX##_int_collect##SUFFIX(a->team, dest, a->source, (size_t)part(c, a->me)); break;     \
            default: PREFIX##_int_sum_reduce##SUFFIX(a->team, dest, a->source, (size_t)c->len); break;               \
            }                                                                                                        \
            check(SCOPE, a, k);                                                                                      \
            if (c->sync)                                                                                             \
                PREFIX##_team_sync##SUFFIX(a->team);                                                                 \
        }                                                                                                            \
    }
SEQUENCE(by_thread, SHMEMI_THREAD, shmem, )
SEQUENCE(by_warp, SHMEMI_WARP, shmemx, _warp)
SEQUENCE(by_block, SHMEMI_BLOCK, shmemx, _block)

#endif

KERNEL(run_agents, struct args)
{
#ifdef SHMEMI_DEVICE_CODE
    int rank = (int)shmemi_thread_in_block();

    if (shmemi_block_index() == 1)
        by_block(&a.agents[2]);
    else if (rank >= 32)
        by_warp(&a.agents[1]);
    else if (rank == 0)
        by_thread(&a.agents[0]);
#endif
}

/* ---- by the host ---- */

static struct agent agents[AGENTS];
static struct args args;

/* The same on all members. */
static void plan(uint64_t seed, uint64_t step, int which, int liar)
{
    struct soak_rng r = soak_stream(seed, step, -1, which, 11);
    struct agent *a = &agents[which];

    a->n_calls = a->team == SHMEM_TEAM_INVALID ? 0 : 2 + (int)soak_below(&r, CALLS - 1);
    a->liar = liar;
    a->bad = 0;
    for (int k = 0; k < a->n_calls; k++) {
        struct call *c = &a->calls[k];

        c->what = (int)soak_below(&r, N_WHATS);
        c->len = (int)soak_size(&r, MOST + 1) - 1;
        c->root = (int)soak_below(&r, (uint32_t)a->n);
        c->tag = (uint32_t)soak_next(&r);
        /* A place is written again two calls later: some meeting must lie between. */
        c->sync = k % 2 || k + 1 == a->n_calls || soak_below(&r, 2);
    }
}

static void one_step(uint64_t seed, uint64_t step, int liar)
{
    for (int i = 0; i < AGENTS; i++)
        plan(seed, step, i, liar);
    dev_write(args.agents, agents, sizeof agents);
    shmem_barrier_all();
    LAUNCH(run_agents, struct args, args, 2, 64);
    dev_read(agents, args.agents, sizeof agents);
    for (int i = 0; i < AGENTS; i++) {
        const struct agent *a = &agents[i];

        tap_check_eq(a->bad, 0);
        if (a->bad)
            tap_diag("seed %llu, step %llu: %s of %d by a %s, member %d of %d, call %d: element %d is %d, expected %d",
                     (unsigned long long)seed, (unsigned long long)step, names[a->calls[a->bad_call].what],
                     a->calls[a->bad_call].len, scopes[i], a->me, a->n, a->bad_call, a->at, a->got, a->want);
    }
    shmem_barrier_all();
}

/* A thread's team is the world's PEs, a warp's all but the first, a block's every second, where there are enough. */
static void memory_open(void)
{
    size_t bytes = (size_t)(MOST + 8) * (size_t)tap_n * sizeof(int);

    args.agents = (struct agent *)dev_local(sizeof agents);
    for (int i = 0; i < AGENTS; i++) {
        struct agent *a = &agents[i];
        int start = i == 1 && tap_n > 2, stride = i == 2 && tap_n > 2 ? 2 : 1;

        a->source = (int *)dev_malloc(bytes);
        a->dest[0] = (int *)dev_malloc(bytes);
        a->dest[1] = (int *)dev_malloc(bytes);
        a->team = dev_split(start, stride, stride == 2 ? (tap_n + 1) / 2 : tap_n - start);
        if (a->team == SHMEM_TEAM_INVALID)
            continue;
        a->me = shmem_team_my_pe(a->team);
        a->n = shmem_team_n_pes(a->team);
    }
}

int main(int argc, char **argv)
{
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1, steps = argc > 2 ? strtoull(argv[2], NULL, 0) : 8;
    uint64_t step = argc > 3 ? strtoull(argv[3], NULL, 0) : 0;
    int liar = -1;

    dev_init();
    seed = agreed_seed(seed);
    memory_open();
    for (int w = 0; argc > 4 && w < N_WHATS; w++)
        if (!strcmp(names[w], argv[4]))
            liar = w;
    for (uint64_t end = step + steps; step < end && !tap_failed; step++) {
        one_step(seed, step, liar);
        if (step % 4 == 3 || step + 1 == end)
            tap_point("seed %llu, up to step %llu", (unsigned long long)seed, (unsigned long long)step);
    }
    return dev_done();
}
