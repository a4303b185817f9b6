/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll_far.c - collectives of teams and active sets whose PEs are on several nodes.
 *
 * Data of any size goes by puts from user memory to user memory, all in flight at once, between two meetings: the
 * first says that everybody's dest may be written, the second that all has come.  That is one trip of
 * the data, where reading would be a round trip.  A source that overlaps dest is copied first, as others write there.
 */
#include "coll.h"

#include "rma.h"

#include <stdlib.h>

/* The members are gone through from the next one on, so that not all write to the same one. */
static int partner(const struct shmemi_group *g, int step)
{
    int i = g->my_pe + step;

    return i < g->n_pes ? i : i - g->n_pes;
}

static void put(const struct shmemi_group *g, int member, void *dest, const void *source, size_t len)
{
    if (len)
        shmemi_put_nbi(SHMEM_CTX_DEFAULT, dest, source, len, shmemi_group_pe(g, member), g->call);
}

void shmemi_far_finish(const struct shmemi_group *g)
{
    struct shmemi_team *t = g->team;
    uint64_t epoch;

    if (!t || !t->coll->span->lines) {
        shmemi_quiet(SHMEM_CTX_DEFAULT, g->call);
        shmemi_group_sync(g);
        return;
    }
    /* A line follows the data on the same queue; quiet is for the source, which may be written once we return. */
    epoch = shmemi_op_begin(t, g->call);
    shmemi_arrive(t, epoch);
    shmemi_settle(t, epoch, g->call);
    shmemi_quiet(SHMEM_CTX_DEFAULT, g->call);
}

/* ---- sources that overlap dest ---- */

static bool overlaps(const void *a, size_t a_len, const void *b, size_t b_len)
{
    return (uintptr_t)a < (uintptr_t)b + b_len && (uintptr_t)b < (uintptr_t)a + a_len;
}

/* `source` or a copy of it, to be freed; `*copy_out` is NULL when there is none. */
static const void *steady(const struct shmemi_group *g, const void *source, size_t len, const void *dest,
                          size_t dest_len, void **copy_out)
{
    *copy_out = NULL;
    if (len == 0 || !overlaps(source, len, dest, dest_len))
        return source;
    *copy_out = malloc(len);
    if (!*copy_out)
        shmemi_fatal(g->call, "no memory to copy %zu bytes of a source that overlaps dest", len);
    return memcpy(*copy_out, source, len);
}

/* ---- broadcast ---- */

void shmemi_far_broadcast(const struct shmemi_group *g, void *dest, const void *source, size_t len, int root,
                          bool root_too)
{
    shmemi_group_sync(g);
    if (g->my_pe == root) {
        for (int step = 1; step < g->n_pes; step++)
            put(g, partner(g, step), dest, source, len);
        if (root_too)
            shmemi_copy(dest, source, len);
    }
    shmemi_far_finish(g);
}

/* A part with a word before it that says whether it is the root's. */
struct offer {
    uint64_t valid;
    unsigned char data[];
};

static void take_offer(const struct shmemi_payload *p, const void *in)
{
    if (((const struct offer *)in)->valid)
        memcpy(p->acc, in, p->len);
}

static void tree_broadcast(struct shmemi_team *t, void *dest, const void *source, size_t len, int root,
                           const char *call)
{
    SHMEMI_ALIGNED_LINE unsigned char acc[SHMEMI_STAGE_BYTES / 3];
    struct shmemi_payload p = { acc, sizeof(struct offer) + len, take_offer, NULL };
    struct offer *mine = (struct offer *)acc;

    mine->valid = t->my_pe == root;
    if (mine->valid)
        memcpy(mine->data, source, len);
    else
        memset(mine->data, 0, len);
    shmemi_span_combine(t, &p, call);
    memcpy(dest, mine->data, len);
}

/* The root leaves when its data is out, the others when they have it. */
static void eager_broadcast(struct shmemi_team *t, void *dest, const void *source, size_t len, int root,
                            const char *call)
{
    uint64_t epoch = shmemi_op_begin(t, call);
    struct shmemi_awaited a = { t, epoch, root };
    struct shmemi_waiter w = SHMEMI_WAITER_EPOCH(call, &a);

    if (t->my_pe != root) {
        shmemi_arrive(t, epoch);
        shmemi_line_wait(t, epoch, root, &w);
        shmemi_copy_small(dest, shmemi_span_data(t, epoch, root, len), len);
        shmemi_wait_done(&w);
        return;
    }
    for (int i = root + 1; i < t->n_pes; i++)
        shmemi_span_post(t, epoch, i, source, len);
    for (int i = 0; i < root; i++)
        shmemi_span_post(t, epoch, i, source, len);
    shmemi_copy(dest, source, len);
}

void shmemi_span_broadcast(struct shmemi_team *t, void *dest, const void *source, size_t len, int root,
                           const char *call)
{
    const struct shmemi_span *s = t->coll->span;
    struct shmemi_group g = shmemi_group_of(t, call);

    if (s->lines && len <= SHMEMI_EAGER_BYTES)
        eager_broadcast(t, dest, source, len, root, call);
    else if (!s->lines && sizeof(struct offer) + len <= s->payload_max)
        tree_broadcast(t, dest, source, len, root, call);
    else
        shmemi_far_broadcast(&g, dest, source, len, root, true);
}

/* ---- collect ---- */

void shmemi_far_spread(const struct shmemi_group *g, void *dest, size_t at, const void *source, size_t len)
{
    char *to = (char *)dest + at;

    if (len == 0)
        return;
    shmemi_check_symmetric(to, len, g->call);
    for (int step = 1; step < g->n_pes; step++)
        put(g, partner(g, step), to, source, len);
    shmemi_copy(to, source, len);
}

void shmemi_far_fcollect(const struct shmemi_group *g, void *dest, const void *source, size_t len)
{
    void *copy;
    const void *from = steady(g, source, len, dest, len * (size_t)g->n_pes, &copy);

    shmemi_group_sync(g);
    shmemi_far_spread(g, dest, (size_t)g->my_pe * len, from, len);
    shmemi_far_finish(g);
    free(copy);
}

/* What a member says in its line: its length, and its data when that is short.  Longer data is in the stage, or put after. */
struct part {
    uint64_t len;
    unsigned char data[SHMEMI_LINE_BYTES - 8];
};

static void send_parts(struct shmemi_team *t, uint64_t epoch, const void *source, size_t len)
{
    struct part mine = { .len = len };
    bool staged = len > sizeof mine.data && len <= SHMEMI_EAGER_BYTES;

    if (len <= sizeof mine.data)
        shmemi_copy(mine.data, source, len);
    for (int step = 1; step < t->n_pes; step++) {
        int i = t->my_pe + step < t->n_pes ? t->my_pe + step : t->my_pe + step - t->n_pes;

        if (staged)
            shmemi_span_fill(t, epoch, i, source, len);
        shmemi_span_post(t, epoch, i, &mine, sizeof mine);
    }
}

/* Takes the others' parts that have come with the lines; this PE's offset and whether some have not. */
static size_t take_parts(struct shmemi_team *t, uint64_t epoch, void *dest, size_t len, bool *more_out,
                         const char *call)
{
    size_t at = 0, my_at = 0;

    *more_out = len > SHMEMI_EAGER_BYTES;
    for (int i = 0; i < t->n_pes; i++) {
        const struct part *p = shmemi_span_data(t, epoch, i, sizeof *p);

        if (i == t->my_pe) {
            my_at = at;
            at += len;
            continue;
        }
        if (p->len > SHMEMI_EAGER_BYTES) {
            *more_out = true;
        } else if (p->len) {
            shmemi_check_symmetric((char *)dest + at, p->len, call);
            memcpy((char *)dest + at, p->len <= sizeof p->data ? p->data : shmemi_span_stage(t, epoch, i), p->len);
        }
        at += p->len;
    }
    return my_at;
}

static void eager_collect(struct shmemi_team *t, void *dest, const void *source, size_t len, const char *call)
{
    struct shmemi_group g = shmemi_group_of(t, call);
    uint64_t epoch = shmemi_op_begin(t, call);
    bool more;
    size_t at;

    send_parts(t, epoch, source, len);
    shmemi_settle(t, epoch, call);
    at = take_parts(t, epoch, dest, len, &more, call);
    if (len > SHMEMI_EAGER_BYTES) {
        shmemi_far_spread(&g, dest, at, source, len);
    } else if (len) {
        shmemi_check_symmetric((char *)dest + at, len, call);
        shmemi_copy((char *)dest + at, source, len);
    }
    if (more)
        shmemi_far_finish(&g);
}

/* Adds a table of the members' lengths to that in p->acc: each has its own place, the others are 0. */
static void add_lengths(const struct shmemi_payload *p, const void *in)
{
    uint64_t *acc = p->acc;
    const uint64_t *more = in;

    for (size_t i = 0; i < p->len / sizeof *acc; i++)
        acc[i] += more[i];
}

/* The lengths go over the tree in windows of members. */
size_t shmemi_span_offset(struct shmemi_team *t, size_t len, const char *call)
{
    SHMEMI_ALIGNED_LINE uint64_t window[SHMEMI_STAGE_BYTES / 3 / sizeof(uint64_t)];
    int most = (int)(t->coll->span->payload_max / sizeof window[0]);
    size_t at = 0;

    for (int first = 0; first < t->n_pes; first += most) {
        int n = t->n_pes - first < most ? t->n_pes - first : most;
        struct shmemi_payload p = { window, (size_t)n * sizeof window[0], add_lengths, NULL };

        memset(window, 0, p.len);
        if (t->my_pe >= first && t->my_pe < first + n)
            window[t->my_pe - first] = len;
        shmemi_span_combine(t, &p, call);
        for (int i = 0; i < n && first + i < t->my_pe; i++)
            at += window[i];
    }
    return at;
}

void shmemi_span_collect(struct shmemi_team *t, void *dest, const void *source, size_t len, const char *call)
{
    struct shmemi_group g = shmemi_group_of(t, call);

    if (t->coll->span->lines) {
        eager_collect(t, dest, source, len, call);
        return;
    }
    shmemi_far_spread(&g, dest, shmemi_span_offset(t, len, call), source, len);
    shmemi_far_finish(&g);
}

/* ---- alltoall ---- */

void shmemi_far_alltoalls(const struct shmemi_group *g, void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst,
                          size_t nelems, size_t elem)
{
    size_t len = nelems * elem, total = len * (size_t)g->n_pes;
    size_t dest_step = len * (size_t)dst, source_step = len * (size_t)sst;
    char *to = (char *)dest + (size_t)g->my_pe * dest_step;
    void *copy;
    const char *from = steady(g, source, len ? total * (size_t)sst - ((size_t)sst - 1) * elem : 0, dest,
                              total * (size_t)dst, &copy);

    shmemi_group_sync(g);
    for (int step = 1; len && step < g->n_pes; step++) {
        int i = partner(g, step);
        const char *block = from + (size_t)i * source_step;

        if (dst == 1 && sst == 1)
            put(g, i, to, block, len);
        else
            shmemi_iput(SHMEM_CTX_DEFAULT, to, block, dst, sst, nelems, elem, shmemi_group_pe(g, i), g->call);
    }
    if (len)
        shmemi_copy_strided(to, dst, from + (size_t)g->my_pe * source_step, sst, nelems, elem);
    shmemi_far_finish(g);
    free(copy);
}
