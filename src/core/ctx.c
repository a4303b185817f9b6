/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ctx.c - contexts: create, destroy, look up (specification 1.6, section 9.5), and sessions on them (9.13).
 *
 * A context carries its team, for the PE numbers of its calls, its options, and queues to PEs of other nodes once it
 * has used them; where load and store lead it needs none.  Lookups take no lock: a slot's pointer is published once and its record is never freed before finalize.
 */
#include "ctx.h"

#include "devmem.h"
#include "net.h"
#include "rma.h"
#include "team.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define CTX_MAX 32768 /* slots; handles have 16 bits for them */
#define KNOWN_OPTIONS (SHMEM_CTX_SERIALIZED | SHMEM_CTX_PRIVATE | SHMEM_CTX_NOSTORE)

struct ctx {
    uint32_t generation; /* odd while live */
    int start, stride, n_pes;
    long options;
    shmem_team_t team;
    long session_options;
    bool in_session;
    shmem_ctx_session_config_t session;
    struct shmemi_net_ctx *net; /* stays with the slot */
};

static struct ctx **table; /* slot 0 is the default context */
static int n_slots;        /* slots that have a record */
static uint64_t dead[CTX_MAX / 64], some_dead[CTX_MAX / 64 / 64]; /* a bit for each of those, and for each word that has one */
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;

static shmem_ctx_t handle_of(int slot)
{
    return (shmem_ctx_t)((uintptr_t)(slot ? table[slot]->generation : 0) << 16 | (uintptr_t)(slot + 1));
}

SHMEMI_NORETURN static void bad_ctx(shmem_ctx_t ctx, const char *call)
{
    shmemi_check_init(call);
    if (ctx == SHMEM_CTX_INVALID)
        shmemi_fatal(call, "the context is SHMEM_CTX_INVALID");
    shmemi_fatal(call, "context %p does not exist (destroyed before, or never created)", (void *)ctx);
}

static struct ctx *find(shmem_ctx_t ctx, const char *call)
{
    uintptr_t h = (uintptr_t)ctx;
    size_t slot = (h & 0xffff) - 1;
    struct ctx *c;

    if (!table || slot >= CTX_MAX)
        bad_ctx(ctx, call);
    c = SHMEMI_LD_ACQ(&table[slot]); /* pairs with the release in new_slot */
    if (!c || (slot && (SHMEMI_LD_RLX(&c->generation) != (uint32_t)(h >> 16) || !(c->generation & 1))))
        bad_ctx(ctx, call);
    return c;
}

int shmemi_ctx_lookup_pe(shmem_ctx_t ctx, int pe, const char *call)
{
    const struct ctx *c = find(ctx, call);

    if (shmemi_unlikely((unsigned)pe >= (unsigned)c->n_pes))
        shmemi_fatal(call, "PE %d is out of range: the context's team has PEs 0 to %d", pe, c->n_pes - 1);
    return c->start + pe * c->stride;
}

void shmemi_ctx_check(shmem_ctx_t ctx, const char *call)
{
    find(ctx, call);
}

/* As it was created, and whether it is in a batch now. */
static long options_of(const struct ctx *c)
{
    return c->options | (c->in_session && (c->session_options & SHMEM_CTX_SESSION_BATCH) ? SHMEMI_CTX_IN_BATCH : 0);
}

struct shmemi_net_ctx **shmemi_ctx_net(shmem_ctx_t ctx, long *options_out, const char *call)
{
    struct ctx *c = find(ctx, call);

    *options_out = options_of(c);
    return &c->net;
}

void shmemi_ctxs_level_raised(void)
{
    pthread_mutex_lock(&table_lock);
    for (int i = 1; i < n_slots; i++)
        if ((table[i]->generation & 1) && table[i]->net)
            shmemi_net_ctx_reuse(table[i]->net, table[i]->options);
    pthread_mutex_unlock(&table_lock);
}

static void tell_kernels(int slot)
{
    const struct ctx *c = table[slot];
    bool live = c->generation & 1;
    uint32_t generation = live ? c->generation : c->generation - 1;

    shmemi_devmem_ctx((shmem_ctx_t)((uintptr_t)(slot ? generation : 0) << 16 | (uintptr_t)(slot + 1)), live ? generation : 0,
                      c->start, c->stride, c->n_pes, options_of(c));
}

void shmemi_ctxs_tell_kernels(void)
{
    pthread_mutex_lock(&table_lock);
    for (int i = 0; i < n_slots; i++)
        tell_kernels(i);
    pthread_mutex_unlock(&table_lock);
}

/* The lowest dead slot, alive from here on, or -1: kernels know only the first ones.  Caller holds the lock. */
static int take_dead(void)
{
    for (int i = 0; i < CTX_MAX / 64 / 64; i++) {
        if (some_dead[i]) {
            int word = i * 64 + __builtin_ctzll(some_dead[i]), bit = __builtin_ctzll(dead[word]);

            dead[word] &= dead[word] - 1;
            if (!dead[word])
                some_dead[i] &= some_dead[i] - 1;
            return word * 64 + bit;
        }
    }
    return -1;
}

/* A dead slot, or a new one; -1 when all are live.  Caller holds the lock. */
static int new_slot(void)
{
    struct ctx *c;
    int slot = take_dead();

    if (slot > 0)
        return slot;
    if (n_slots == CTX_MAX)
        return -1;
    c = calloc(1, sizeof *c);
    if (!c)
        return -1;
    SHMEMI_ST_REL(&table[n_slots], c);
    return n_slots++;
}

/* Caller holds the lock. */
static void end_slot(int slot)
{
    struct ctx *c = table[slot];

    SHMEMI_ST_REL(&c->generation, c->generation + 1);
    dead[slot / 64] |= 1ull << slot % 64;
    some_dead[slot / 64 / 64] |= 1ull << slot / 64 % 64;
    tell_kernels(slot);
}

static int create(const struct shmemi_team *t, shmem_team_t team, long options, shmem_ctx_t *out, const char *call)
{
    struct ctx *c;
    int slot;

    shmemi_check_result(out, "ctx", call);
    *out = SHMEM_CTX_INVALID;
    if (options & ~KNOWN_OPTIONS)
        shmemi_fatal(call, "options %#lx hold unknown bits %#lx", (unsigned long)options,
                     (unsigned long)(options & ~KNOWN_OPTIONS));
    pthread_mutex_lock(&table_lock);
    slot = new_slot();
    if (slot >= 0) {
        c = table[slot];
        c->start = t->start;
        c->stride = t->stride;
        c->n_pes = t->n_pes;
        c->options = options;
        c->team = team;
        c->in_session = false;
        if (c->net)
            shmemi_net_ctx_reuse(c->net, options);
        SHMEMI_ST_REL(&c->generation, c->generation + 1);
        *out = handle_of(slot);
        tell_kernels(slot);
    }
    pthread_mutex_unlock(&table_lock);
    return slot < 0;
}

SHMEMI_API(int, shmem_ctx_create, (long options, shmem_ctx_t *ctx))
{
    return create(shmemi_team_get(SHMEM_TEAM_WORLD, "shmem_ctx_create"), SHMEM_TEAM_WORLD, options, ctx,
                  "shmem_ctx_create");
}

SHMEMI_API(int, shmem_team_create_ctx, (shmem_team_t team, long options, shmem_ctx_t *ctx))
{
    const struct shmemi_team *t = shmemi_team_get_or_invalid(team, "shmem_team_create_ctx");

    if (!t) {
        shmemi_check_result(ctx, "ctx", "shmem_team_create_ctx");
        *ctx = SHMEM_CTX_INVALID;
        return 1;
    }
    return create(t, team, options, ctx, "shmem_team_create_ctx");
}

SHMEMI_API(void, shmem_ctx_destroy, (shmem_ctx_t ctx))
{
    shmemi_check_init("shmem_ctx_destroy");
    if (ctx == SHMEM_CTX_INVALID)
        return;
    if (ctx == SHMEM_CTX_DEFAULT)
        shmemi_fatal("shmem_ctx_destroy", "the default context cannot be destroyed");
    shmemi_quiet(ctx, "shmem_ctx_destroy");
    pthread_mutex_lock(&table_lock);
    find(ctx, "shmem_ctx_destroy");
    end_slot((int)((uintptr_t)ctx & 0xffff) - 1);
    pthread_mutex_unlock(&table_lock);
}

SHMEMI_API(int, shmem_ctx_get_team, (shmem_ctx_t ctx, shmem_team_t *team))
{
    shmemi_check_init("shmem_ctx_get_team");
    shmemi_check_result(team, "team", "shmem_ctx_get_team");
    if (ctx == SHMEM_CTX_INVALID) {
        *team = SHMEM_TEAM_INVALID;
        return 1;
    }
    *team = find(ctx, "shmem_ctx_get_team")->team;
    return 0;
}

void shmemi_ctxs_drop_team(shmem_team_t team)
{
    pthread_mutex_lock(&table_lock);
    for (int i = 1; table && i < n_slots; i++)
        if ((table[i]->generation & 1) && table[i]->team == team)
            end_slot(i);
    pthread_mutex_unlock(&table_lock);
}

SHMEMI_API(void, shmem_ctx_session_start,
           (shmem_ctx_t ctx, long options, const shmem_ctx_session_config_t *config, long config_mask))
{
    struct ctx *c;

    shmemi_check_init("shmem_ctx_session_start");
    if (ctx == SHMEM_CTX_INVALID)
        return;
    if (config_mask & ~SHMEM_CTX_SESSION_TOTAL_OPS)
        shmemi_fatal("shmem_ctx_session_start", "config_mask %#lx holds unknown bits", (unsigned long)config_mask);
    if (config_mask && !config)
        shmemi_fatal("shmem_ctx_session_start", "config_mask is %#lx but config is NULL", (unsigned long)config_mask);
    c = find(ctx, "shmem_ctx_session_start");
    pthread_mutex_lock(&table_lock);
    if (!c->in_session) {
        c->session_options = 0;
        c->session.total_ops = SIZE_MAX;
    }
    c->in_session = true;
    c->session_options |= options;
    if (config_mask & SHMEM_CTX_SESSION_TOTAL_OPS)
        c->session.total_ops = config->total_ops;
    tell_kernels((int)((uintptr_t)ctx & 0xffff) - 1);
    pthread_mutex_unlock(&table_lock);
}

SHMEMI_API(void, shmem_ctx_session_stop, (shmem_ctx_t ctx))
{
    struct ctx *c;

    shmemi_check_init("shmem_ctx_session_stop");
    if (ctx == SHMEM_CTX_INVALID)
        return;
    c = find(ctx, "shmem_ctx_session_stop");
    pthread_mutex_lock(&table_lock);
    c->in_session = false;
    tell_kernels((int)((uintptr_t)ctx & 0xffff) - 1);
    pthread_mutex_unlock(&table_lock);
}

int shmemi_ctxs_init(void)
{
    struct ctx *dflt = calloc(1, sizeof *dflt);

    table = calloc(CTX_MAX, sizeof *table);
    if (!table || !dflt) {
        free(dflt);
        free(table);
        table = NULL;
        return -ENOMEM;
    }
    dflt->generation = 1;
    dflt->stride = 1;
    dflt->n_pes = shmemi.n_pes;
    dflt->team = SHMEM_TEAM_WORLD;
    table[0] = dflt;
    n_slots = 1;
    return 0;
}

void shmemi_ctxs_fini(void)
{
    for (int i = 0; i < n_slots; i++)
        free(table[i]);
    free(table);
    table = NULL;
    n_slots = 0;
    memset(dead, 0, sizeof dead);
    memset(some_dead, 0, sizeof some_dead);
}
