/* SPDX-License-Identifier: BSD-3-Clause */
/* coll.c - broadcast, collect and alltoall on teams: the small sizes, and the choice (see coll.h). */
#include "coll.h"

#include "devmem_coll.h"

/* ---- checks and copies ---- */

void shmemi_check_root(int root, int n_pes, const char *call)
{
    if (shmemi_unlikely(root < 0 || root >= n_pes))
        shmemi_fatal(call, "PE_root %d is outside 0 to %d", root, n_pes - 1);
}

size_t shmemi_mul(size_t a, size_t b, const char *call)
{
    size_t product;

    if (shmemi_unlikely(__builtin_mul_overflow(a, b, &product)))
        shmemi_fatal(call, "%zu times %zu bytes exceed the address space", a, b);
    return product;
}

size_t shmemi_extent(size_t n, ptrdiff_t stride, size_t elem, const char *call)
{
    if (shmemi_unlikely(stride < 1))
        shmemi_fatal(call, "stride %td is less than 1", stride);
    if (n == 0)
        return 0;
    return shmemi_mul(shmemi_mul(n - 1, (size_t)stride, call) + 1, elem, call);
}

SHMEMI_INLINE void copy_elements(unsigned char *to, size_t to_step, const unsigned char *from, size_t from_step,
                                 size_t n, size_t elem)
{
    for (size_t i = 0; i < n; i++)
        memcpy(to + i * to_step, from + i * from_step, elem);
}

void shmemi_copy_strided(void *dest, ptrdiff_t dst, const void *source, ptrdiff_t sst, size_t nelems, size_t elem)
{
    size_t to = (size_t)dst * elem, from = (size_t)sst * elem;

    if (dst == 1 && sst == 1)
        shmemi_copy(dest, source, nelems * elem);
    else if (elem == 4)
        copy_elements(dest, to, source, from, nelems, 4);
    else if (elem == 8)
        copy_elements(dest, to, source, from, nelems, 8);
    else
        copy_elements(dest, to, source, from, nelems, elem);
}

/* ---- exchange ---- */

void shmemi_span_exchange(struct shmemi_exchange *x, const void *source, const char *call)
{
    struct shmemi_team *t = x->team;
    int me = t->my_pe;

    /* The own part where the others' are. */
    memcpy((void *)(uintptr_t)shmemi_span_data(t, x->epoch, me, x->len), source, x->len);
    for (int i = me + 1; i < t->n_pes; i++)
        shmemi_span_post(t, x->epoch, i, source, x->len);
    for (int i = 0; i < me; i++)
        shmemi_span_post(t, x->epoch, i, source, x->len);
    shmemi_settle(t, x->epoch, call);
}

const void *shmemi_exchange_staged(const struct shmemi_exchange *x, int i)
{
    return x->team->coll->span ? shmemi_span_data(x->team, x->epoch, i, x->len) : shmemi_stage_of(x->team, x->epoch, i);
}

/* ---- broadcast ---- */

/* The root leaves when its data is out, the others when they have it: nobody waits for all. */
static void line_broadcast(struct shmemi_team *t, void *dest, const void *source, size_t len, int root,
                           const char *call)
{
    uint64_t epoch = shmemi_op_begin(t, call);
    struct shmemi_awaited a = { t, epoch, root };
    struct shmemi_waiter w = SHMEMI_WAITER_EPOCH(call, &a);

    if (t->my_pe != root) {
        shmemi_arrive(t, epoch);
        shmemi_copy_small(dest, shmemi_line_wait(t, epoch, root, &w)->data, len);
        shmemi_wait_done(&w);
        return;
    }
    for (int i = 0; i < t->n_pes; i++)
        if (i != root)
            shmemi_line_post(t, epoch, i, source, len);
    shmemi_copy(dest, source, len);
}

static void stage_broadcast(struct shmemi_team *t, void *dest, const void *source, size_t len, int root,
                            const char *call)
{
    uint64_t epoch = shmemi_op_begin(t, call);

    if (t->my_pe == root) {
        memcpy(shmemi_stage(t, epoch), source, len);
        shmemi_arrive(t, epoch);
        if (!t->coll->flat)
            shmemi_wake_members(t);
        shmemi_copy(dest, source, len);
    } else {
        shmemi_arrive(t, epoch);
        shmemi_await(t, epoch, root, call);
        memcpy(dest, shmemi_stage_of(t, epoch, root), len);
    }
}

void shmemi_broadcast(shmem_team_t team, void *dest, const void *source, size_t len, int root, const char *call)
{
    struct shmemi_team *t = shmemi_team_get(team, call);

    shmemi_check_root(root, t->n_pes, call);
    if (len == 0) {
        shmemi_team_sync(t, call);
        return;
    }
    if (shmemi_devmem_coll(dest, source)) {
        shmemi_devmem_broadcast(t, dest, source, len, root, call);
        return;
    }
    shmemi_check_symmetric(dest, len, call);
    if (t->my_pe == root)
        shmemi_check_symmetric(source, len, call);
    if (t->coll->flat && len <= SHMEMI_LINE_BYTES) {
        line_broadcast(t, dest, source, len, root, call);
    } else if (t->coll->span) {
        shmemi_span_broadcast(t, dest, source, len, root, call);
    } else if (len <= t->coll->stage_max) {
        stage_broadcast(t, dest, source, len, root, call);
    } else {
        struct shmemi_group g = shmemi_group_of(t, call);

        shmemi_bulk_broadcast(&g, dest, source, len, root, true);
    }
}

/* ---- fcollect ---- */

void shmemi_fcollect(shmem_team_t team, void *dest, const void *source, size_t len, const char *call)
{
    struct shmemi_team *t = shmemi_team_get(team, call);
    size_t total = shmemi_mul(len, (size_t)t->n_pes, call);
    struct shmemi_exchange x;

    if (len == 0) {
        shmemi_team_sync(t, call);
        return;
    }
    if (shmemi_devmem_coll(dest, source)) {
        shmemi_devmem_fcollect(t, dest, source, len, call);
        return;
    }
    shmemi_check_symmetric(dest, total, call);
    shmemi_check_symmetric(source, len, call);
    if (len > t->coll->stage_max) {
        struct shmemi_group g = shmemi_group_of(t, call);

        shmemi_bulk_fcollect(&g, dest, source, len);
        return;
    }
    shmemi_exchange_begin(&x, t, source, len, call);
    for (int i = 0; i < t->n_pes; i++)
        shmemi_copy_small((char *)dest + (size_t)i * len, shmemi_exchange_from(&x, i), len);
    shmemi_exchange_end(&x, true);
}

/* ---- collect ---- */

/* What a member says: its length, and its data when that is short. */
struct part {
    uint64_t len;
    unsigned char data[SHMEMI_LINE_BYTES - 8];
};

#define STAGED_AT 64 /* offset of longer data in the stage, behind the part */

/*
 * Lengths differ, so each member learns them with the short data; longer ones are found in the member's stage, or in
 * its user memory, and then all meet again before anybody's source may change.
 */
void shmemi_collect(shmem_team_t team, void *dest, const void *source, size_t len, const char *call)
{
    struct shmemi_team *t = shmemi_team_get(team, call);
    struct part mine = { .len = len };
    struct shmemi_exchange x;
    size_t at = 0;
    bool bulk = false;

    if (shmemi_devmem_coll(dest, source)) {
        shmemi_devmem_collect(t, dest, source, len, call);
        return;
    }
    shmemi_check_symmetric(source, len, call);
    if (t->coll->span) {
        shmemi_span_collect(t, dest, source, len, call);
        return;
    }
    if (len <= sizeof mine.data)
        shmemi_copy(mine.data, source, len);
    else if (len <= t->coll->stage_max) {
        /* Before exchange_begin, but it may be written only once the last operation is settled. */
        if (t->coll->settled < t->coll->epoch)
            shmemi_settle(t, t->coll->epoch, call);
        memcpy((char *)shmemi_stage(t, t->coll->epoch + 1) + STAGED_AT, source, len);
    }
    shmemi_exchange_begin(&x, t, &mine, sizeof mine, call);
    for (int i = 0; i < t->n_pes; i++) {
        const struct part *p = shmemi_exchange_from(&x, i);
        const void *from = p->data;

        if (p->len > t->coll->stage_max) {
            from = shmemi_remote(source, p->len, shmemi_team_world_pe(t, i), call);
            bulk = true;
        } else if (p->len > sizeof p->data) {
            from = (const char *)shmemi_stage_of(t, x.epoch, i) + STAGED_AT;
        }
        if (p->len == 0)
            continue;
        shmemi_check_symmetric((char *)dest + at, p->len, call);
        shmemi_copy((char *)dest + at, from, p->len);
        at += p->len;
    }
    shmemi_exchange_end(&x, true);
    if (bulk)
        shmemi_team_sync(t, call);
}

/* ---- alltoall ---- */

struct blocks {
    char *dest;
    const char *source;
    ptrdiff_t dst, sst;
    size_t nelems, elem;
    size_t len;                    /* bytes of one block, packed */
    size_t dest_step, source_step; /* from one block to the next */
};

static void line_alltoall(struct shmemi_team *t, const struct blocks *b, const char *call)
{
    uint64_t epoch = shmemi_op_begin(t, call);
    struct shmemi_awaited a = { t, epoch, -1 };
    struct shmemi_waiter w = SHMEMI_WAITER_EPOCH(call, &a);
    unsigned char packed[SHMEMI_LINE_BYTES];
    int me = t->my_pe;

    for (int i = 0; i < t->n_pes; i++) {
        const void *block = b->source + (size_t)i * b->source_step;

        if (i == me)
            continue;
        if (b->sst != 1) {
            shmemi_copy_strided(packed, 1, block, b->sst, b->nelems, b->elem);
            block = packed;
        }
        shmemi_line_post(t, epoch, i, block, b->len);
    }
    shmemi_copy_strided(b->dest + (size_t)me * b->dest_step, b->dst, b->source + (size_t)me * b->source_step,
                        b->sst, b->nelems, b->elem);
    for (int i = 0; i < t->n_pes; i++) {
        if (i == me)
            continue;
        shmemi_copy_strided(b->dest + (size_t)i * b->dest_step, b->dst,
                            shmemi_line_wait(t, epoch, i, &w)->data, 1, b->nelems, b->elem);
    }
    shmemi_wait_done(&w);
    t->coll->settled = epoch;
}

static void stage_alltoall(struct shmemi_team *t, const struct blocks *b, const char *call)
{
    uint64_t epoch = shmemi_op_begin(t, call);
    char *stage = shmemi_stage(t, epoch);

    for (int i = 0; i < t->n_pes; i++)
        shmemi_copy_strided(stage + (size_t)i * b->len, 1, b->source + (size_t)i * b->source_step, b->sst,
                            b->nelems, b->elem);
    shmemi_arrive(t, epoch);
    shmemi_settle(t, epoch, call);
    for (int i = 0; i < t->n_pes; i++)
        shmemi_copy_strided(b->dest + (size_t)i * b->dest_step, b->dst,
                            (const char *)shmemi_stage_of(t, epoch, i) + (size_t)t->my_pe * b->len, 1, b->nelems,
                            b->elem);
}

/* Each block goes to its receiver's line or stage. */
static void span_alltoall(struct shmemi_team *t, const struct blocks *b, const char *call)
{
    SHMEMI_ALIGNED_LINE unsigned char packed[SHMEMI_EAGER_BYTES];
    uint64_t epoch = shmemi_op_begin(t, call);
    int me = t->my_pe;

    for (int step = 1; step < t->n_pes; step++) {
        int i = me + step < t->n_pes ? me + step : me + step - t->n_pes;
        const void *block = b->source + (size_t)i * b->source_step;

        if (b->sst != 1) {
            shmemi_copy_strided(packed, 1, block, b->sst, b->nelems, b->elem);
            block = packed;
        }
        shmemi_span_post(t, epoch, i, block, b->len);
    }
    shmemi_copy_strided(b->dest + (size_t)me * b->dest_step, b->dst, b->source + (size_t)me * b->source_step, b->sst,
                        b->nelems, b->elem);
    shmemi_settle(t, epoch, call);
    for (int i = 0; i < t->n_pes; i++)
        if (i != me)
            shmemi_copy_strided(b->dest + (size_t)i * b->dest_step, b->dst, shmemi_span_data(t, epoch, i, b->len), 1,
                                b->nelems, b->elem);
}

void shmemi_alltoalls(shmem_team_t team, void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems,
                      size_t elem, const char *call)
{
    struct shmemi_team *t = shmemi_team_get(team, call);
    size_t n = shmemi_mul(nelems, (size_t)t->n_pes, call), len = shmemi_mul(nelems, elem, call);
    struct blocks b = { dest, source, dst, sst, nelems, elem, len, len * (size_t)dst, len * (size_t)sst };
    size_t dest_len = shmemi_extent(n, dst, elem, call), source_len = shmemi_extent(n, sst, elem, call);

    if (n == 0) {
        shmemi_team_sync(t, call);
        return;
    }
    if (shmemi_devmem_coll(dest, source)) {
        shmemi_devmem_alltoalls(t, dest, source, dst, sst, nelems, elem, call);
        return;
    }
    shmemi_check_symmetric(dest, dest_len, call);
    shmemi_check_symmetric(source, source_len, call);
    if (t->coll->flat && len <= SHMEMI_LINE_BYTES) {
        line_alltoall(t, &b, call);
    } else if (t->coll->span && len <= t->coll->stage_max) {
        span_alltoall(t, &b, call);
    } else if (!t->coll->span && n * elem <= t->coll->stage_max) {
        stage_alltoall(t, &b, call);
    } else {
        struct shmemi_group g = shmemi_group_of(t, call);

        shmemi_bulk_alltoalls(&g, dest, source, dst, sst, nelems, elem);
    }
}
