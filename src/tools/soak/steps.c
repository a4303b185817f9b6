/* SPDX-License-Identifier: BSD-3-Clause */
/* steps.c - steps that all PEs make together outside the plans: teams, allocation, contexts that come and go. */
#include "soak.h"

#include <stdlib.h>

#define BLOCKS 16

/* ---- contexts ---- */

void soak_quiet_all(struct soak_thread *t)
{
    for (int i = 0; i < soak.shape.n_ctxs; i++)
        shmem_ctx_quiet(t->ctx[i]);
}

/* The default one, and one of each kind; SOAK_CTX: a private one is its thread's. */
void soak_contexts_open(struct soak_thread *t)
{
    static const long options[SOAK_CTXS] = { 0, 0, SHMEM_CTX_SERIALIZED, SHMEM_CTX_PRIVATE };

    t->ctx[0] = SHMEM_CTX_DEFAULT;
    for (int i = 1; i < SOAK_CTXS; i++)
        if (shmem_ctx_create(options[i], &t->ctx[i]))
            t->ctx[i] = SHMEM_CTX_DEFAULT; /* allowed, and as good */
}

void soak_contexts_close(struct soak_thread *t)
{
    for (int i = 1; i < SOAK_CTXS; i++)
        if (t->ctx[i] != SHMEM_CTX_DEFAULT)
            shmem_ctx_destroy(t->ctx[i]);
}

void soak_renew_contexts(struct soak_thread *t)
{
    struct soak_op o = { .kind = SOAK_CTX };
    struct soak_entry *e = soak_begin(t, &o);

    soak_contexts_close(t);
    soak_contexts_open(t);
    soak_end(e);
}

/* ---- teams ---- */

static void check_number(const char *what, int got, int want)
{
    if (got != want)
        soak_fail(&soak.threads[0], NULL, "%s is %d, expected %d", what, got, want);
}

/* 64 bytes around the ring of a team, through a context of the team. */
static void ring_of(shmem_team_t team, uint64_t tag)
{
    struct soak_thread *t = &soak.threads[0];
    int me = shmem_team_my_pe(team), n = shmem_team_n_pes(team);
    unsigned char out[64], want[64];
    shmem_ctx_t ctx;

    if (shmem_team_create_ctx(team, 0, &ctx))
        return; /* no more contexts: allowed */
    soak_fill(out, tag + (uint64_t)me, 0, sizeof out);
    shmem_ctx_putmem_nbi(ctx, t->coll[0][1], out, sizeof out, (me + 1) % n);
    shmem_ctx_quiet(ctx);
    shmem_team_sync(team);
    soak_fill(want, tag + (uint64_t)((me + n - 1) % n), 0, sizeof want);
    if (memcmp(want, t->coll[0][1], sizeof want))
        soak_fail(t, NULL, "a put of 64 bytes through a context of a team of %d did not come to its PE %d", n, me);
    shmem_ctx_destroy(ctx);
    shmem_team_sync(team);
}

static void use_team(shmem_team_t team, int part)
{
    struct soak_rng r = soak_stream(soak.shape.seed, soak.step, -1, 100 + part, 6);

    shmem_team_sync(team); /* members may come from calls on other teams, with the same buffers */
    ring_of(team, soak_next(&r));
    if (soak.opt.kinds & SOAK_BIT(SOAK_COLL))
        soak_coll_on(&soak.threads[0], team, &r);
}

static void split_again(shmem_team_t team, int xrange)
{
    shmem_team_t x, y;
    int me = shmem_team_my_pe(team), n = shmem_team_n_pes(team);

    check_number("shmem_team_split_2d", shmem_team_split_2d(team, xrange, NULL, 0, &x, NULL, 0, &y), 0);
    if (xrange > n)
        xrange = n;
    check_number("a PE's number in its row", shmem_team_my_pe(x), me % xrange);
    check_number("a PE's number in its column", shmem_team_my_pe(y), me / xrange);
    check_number("a row's first PE", shmem_team_translate_pe(x, 0, team), me / xrange * xrange);
    use_team(x, 1);
    use_team(y, 2);
    shmem_team_destroy(x);
    shmem_team_destroy(y);
}

void soak_team_step(void)
{
    struct soak_rng r = soak_stream(soak.shape.seed, soak.step, -1, 0, 7);
    int start = (int)soak_below(&r, (uint32_t)soak.n), stride = 1 + (int)soak_below(&r, (uint32_t)soak.n);
    int size = 1 + (int)soak_below(&r, (uint32_t)((soak.n - 1 - start) / stride + 1)), xrange = 1 + (int)soak_below(&r, (uint32_t)size);
    bool again = soak_below(&r, 2), member = soak.me >= start && (soak.me - start) % stride == 0 && (soak.me - start) / stride < size;
    struct soak_op o = { .kind = SOAK_TEAM, .off = (uint32_t)start, .len = (uint32_t)size };
    struct soak_entry *e = soak_begin(&soak.threads[0], &o);
    shmem_team_t team;

    check_number("shmem_team_split_strided", shmem_team_split_strided(SHMEM_TEAM_WORLD, start, stride, size, NULL, 0, &team), 0);
    check_number("membership in a team", team != SHMEM_TEAM_INVALID, member);
    if (member) {
        check_number("a PE's number in a team", shmem_team_my_pe(team), (soak.me - start) / stride);
        check_number("a team's size", shmem_team_n_pes(team), size);
        check_number("a team's last PE", shmem_team_translate_pe(team, size - 1, SHMEM_TEAM_WORLD), start + (size - 1) * stride);
        use_team(team, 0);
        if (again)
            split_again(team, xrange);
        shmem_team_destroy(team);
    }
    soak_end(e);
    shmem_sync_all();
}

/* ---- allocation ---- */

/* The first half of a block is written by its PE, the second by the PE before it. */
static struct block {
    unsigned char *p;
    size_t size;
    uint64_t tag;
    bool device;
} blocks[BLOCKS];

static void block_fill(struct block *b)
{
    size_t half = b->size / 2;
    int to = (soak.me + 1) % soak.n;
    unsigned char *text = malloc(b->size);

    if (!text)
        soak_fail(NULL, NULL, "out of memory");
    soak_fill(text, b->tag + (uint64_t)soak.me, 0, half);
    soak_fill(text + half, b->tag + (uint64_t)to, half, b->size - half);
    if (b->device)
        shmem_putmem(b->p, text, half, soak.me);
    else
        memcpy(b->p, text, half);
    shmem_putmem(b->p + half, text + half, b->size - half, to);
    shmem_barrier_all();
    free(text);
}

static void block_check(const struct block *b, size_t len)
{
    unsigned char *want = malloc(len + 1), *got = malloc(len + 1);

    if (!want || !got)
        soak_fail(NULL, NULL, "out of memory");
    soak_fill(want, b->tag + (uint64_t)soak.me, 0, len);
    if (b->device)
        shmem_getmem(got, b->p, len, soak.me);
    else
        memcpy(got, b->p, len);
    for (size_t i = 0; i < len; i++)
        if (want[i] != got[i])
            soak_fail(NULL, NULL, "block of %zu bytes: byte %zu, at %p, is 0x%02x, expected 0x%02x", b->size, i, (void *)(b->p + i), got[i],
                      want[i]);
    free(want);
    free(got);
}

static void block_make(struct block *b, struct soak_rng *r)
{
    size_t align = (size_t)8 << soak_below(r, 10);
    int how = (int)soak_below(r, soak.region[SOAK_DEVICE] ? 5 : 4);

    b->size = soak_size(r, 65536);
    b->tag = soak_next(r);
    b->device = how == 4;
    switch (how) {
    case 0: b->p = shmem_malloc(b->size); break;
    case 1: b->p = shmem_align(align, b->size); break;
    case 2: b->p = shmem_calloc(1, b->size); break;
    case 3: b->p = shmem_malloc_with_hints(b->size, SHMEM_MALLOC_ATOMICS_REMOTE); break;
    default: b->p = shmemx_malloc_device(b->size); break;
    }
    if (!b->p)
        return;
    if (how == 1 && (uintptr_t)b->p % align)
        soak_fail(NULL, NULL, "shmem_align(%zu, %zu) gave %p", align, b->size, (void *)b->p);
    for (size_t i = 0; how == 2 && i < b->size; i++)
        if (b->p[i])
            soak_fail(NULL, NULL, "shmem_calloc(1, %zu) gave %p with byte %zu 0x%02x", b->size, (void *)b->p, i, b->p[i]);
    shmem_sync_all(); /* looked at before anyone writes */
    block_fill(b);
}

static void block_resize(struct block *b, struct soak_rng *r)
{
    size_t size = soak_size(r, 65536), both = size < b->size ? size : b->size;
    unsigned char *p = shmem_realloc(b->p, size);

    if (!p)
        return; /* the old block stays */
    b->p = p;
    block_check(b, both);
    shmem_sync_all();
    b->size = size;
    block_fill(b);
}

static void block_drop(struct block *b)
{
    block_check(b, b->size);
    if (b->device)
        shmemx_free_device(b->p);
    else
        shmem_free(b->p);
    b->p = NULL;
}

void soak_alloc_step(void)
{
    struct soak_rng r = soak_stream(soak.shape.seed, soak.step, -1, 0, 8);
    int n = 1 + (int)soak_below(&r, 5);

    for (int i = 0; i < n; i++) {
        struct block *b = &blocks[soak_below(&r, BLOCKS)];
        struct soak_op o = { .kind = SOAK_ALLOC, .len = (uint32_t)b->size };
        struct soak_entry *e = soak_begin(&soak.threads[0], &o);

        if (!b->p)
            block_make(b, &r);
        else if (!b->device && soak_below(&r, 3) == 0)
            block_resize(b, &r);
        else
            block_drop(b);
        soak_end(e);
    }
}

void soak_alloc_close(void)
{
    for (int i = 0; i < BLOCKS; i++)
        if (blocks[i].p)
            block_drop(&blocks[i]);
}
