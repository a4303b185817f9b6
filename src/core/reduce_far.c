/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reduce_far.c - large reductions and scans of teams and active sets whose PEs are on several nodes.
 *
 * As on one node each member does a share of the elements for all.  The others' parts are fetched in batches into
 * two buffers, so that one batch is on its way while the other is combined; results are put to all.
 */
#include "reduce.h"

#include "rma.h"

#define CHUNK_BYTES 4096

/* The parts of all members for this PE's share: chunk by chunk, of each chunk batches of members. */
struct feed {
    const struct shmemi_group *g;
    const char *source;
    size_t first, count, elem; /* the share */
    size_t chunk;              /* elements */
    int batch, batches;        /* members of a batch; batches of a chunk */
    long next, end;            /* of all chunks' batches: to be fetched */
    unsigned char *buffers[2];
};

/* Reads by a team land in its stage, which nobody writes to between two meetings and which the NIC knows. */
static void feed_begin(struct feed *f, const struct shmemi_group *g, const void *source, size_t n, size_t elem,
                       unsigned char *scratch)
{
    size_t chunk_bytes;

    *f = (struct feed){ .g = g, .source = source, .elem = elem };
    shmemi_share(g, n, elem, &f->first, &f->count);
    f->chunk = CHUNK_BYTES / elem;
    if (f->chunk > f->count)
        f->chunk = f->count ? f->count : 1;
    chunk_bytes = f->chunk * elem;
    f->batch = (int)(SHMEMI_STAGE_BYTES / chunk_bytes);
    if (f->batch > g->n_pes)
        f->batch = g->n_pes;
    f->batches = (g->n_pes + f->batch - 1) / f->batch;
    f->end = (long)((f->count + f->chunk - 1) / f->chunk) * f->batches;
    for (int i = 0; i < 2; i++)
        f->buffers[i] = g->team ? g->team->coll->mine->stage[i] : scratch + i * SHMEMI_STAGE_BYTES;
}

/* Elements [*at_out, *at_out + result) of a batch's chunk. */
static size_t feed_chunk(const struct feed *f, long batch, size_t *at_out)
{
    size_t done = (size_t)(batch / f->batches) * f->chunk;

    *at_out = f->first + done;
    return f->count - done < f->chunk ? f->count - done : f->chunk;
}

static void feed_members(const struct feed *f, long batch, int *from_out, int *to_out)
{
    *from_out = (int)(batch % f->batches) * f->batch;
    *to_out = *from_out + f->batch < f->g->n_pes ? *from_out + f->batch : f->g->n_pes;
}

static bool is_near(const struct shmemi_group *g, int member)
{
    return shmemi.peers[shmemi_group_pe(g, member)].ctl != NULL;
}

static unsigned char *feed_slot(const struct feed *f, long batch, int place)
{
    return f->buffers[batch & 1] + (size_t)place * f->chunk * f->elem;
}

static void feed_fetch(struct feed *f)
{
    long batch = f->next;
    size_t at, n;
    int from, to;

    if (batch >= f->end)
        return;
    f->next++;
    n = feed_chunk(f, batch, &at);
    feed_members(f, batch, &from, &to);
    for (int i = from; i < to; i++)
        if (!is_near(f->g, i))
            shmemi_get_nbi(SHMEM_CTX_DEFAULT, feed_slot(f, batch, i - from), f->source + at * f->elem, n * f->elem,
                           shmemi_group_pe(f->g, i), f->g->call);
}

/* What has been asked for is here; the next batch is asked for. */
static void feed_turn(struct feed *f)
{
    shmemi_quiet(SHMEM_CTX_DEFAULT, f->g->call);
    feed_fetch(f);
}

static const void *feed_part(const struct feed *f, long batch, int member)
{
    size_t at, n = feed_chunk(f, batch, &at);
    int from, to;

    feed_members(f, batch, &from, &to);
    if (is_near(f->g, member))
        return shmemi_group_addr(f->g, member, f->source + at * f->elem, n * f->elem);
    return feed_slot(f, batch, member - from);
}

/* ---- reductions ---- */

static void put_to_all(const struct shmemi_group *g, char *to, size_t len)
{
    for (int step = 1; step < g->n_pes; step++) {
        int i = g->my_pe + step < g->n_pes ? g->my_pe + step : g->my_pe + step - g->n_pes;

        shmemi_put_nbi(SHMEM_CTX_DEFAULT, to, to, len, shmemi_group_pe(g, i), g->call);
    }
}

static void reduce_share(struct feed *f, void *dest, shmemi_red_fn *kernel)
{
    SHMEMI_ALIGNED_LINE unsigned char acc[CHUNK_BYTES];

    feed_fetch(f);
    for (long batch = 0; batch < f->end; batch++) {
        size_t at, n = feed_chunk(f, batch, &at), len = n * f->elem;
        char *to = (char *)dest + at * f->elem;
        int from, end;

        feed_turn(f);
        feed_members(f, batch, &from, &end);
        if (from == 0)
            memcpy(acc, feed_part(f, batch, from++), len);
        for (int i = from; i < end; i++)
            kernel(acc, feed_part(f, batch, i), n);
        if (end < f->g->n_pes)
            continue;
        memcpy(to, acc, len);
        put_to_all(f->g, to, len);
    }
}

void shmemi_far_reduce(const struct shmemi_group *g, void *dest, const void *source, size_t nreduce, size_t elem,
                       shmemi_red_fn *kernel)
{
    SHMEMI_ALIGNED_LINE unsigned char scratch[2 * SHMEMI_STAGE_BYTES]; /* of active sets */
    struct feed f;

    shmemi_group_sync(g);
    feed_begin(&f, g, source, nreduce, elem, scratch);
    reduce_share(&f, dest, kernel);
    shmemi_far_finish(g);
}

/* ---- reductions that fit the tree ---- */

struct loop {
    shmemi_red_fn *kernel;
    size_t n;
};

static void apply_loop(const struct shmemi_payload *p, const void *in)
{
    const struct loop *l = p->arg;

    l->kernel(p->acc, in, l->n);
}

void shmemi_span_reduce(struct shmemi_team *t, void *dest, const void *source, size_t nreduce, size_t elem,
                        shmemi_red_fn *kernel, const char *call)
{
    struct shmemi_group g = shmemi_group_of(t, call);
    struct loop l = { kernel, nreduce };
    struct shmemi_payload p = { dest, nreduce * elem, apply_loop, &l };

    if (t->coll->span->lines || p.len > t->coll->span->payload_max) {
        shmemi_far_reduce(&g, dest, source, nreduce, elem, kernel);
        return;
    }
    shmemi_copy(dest, source, p.len);
    shmemi_span_combine(t, &p, call);
}

/* ---- scans ---- */

void shmemi_far_scan(const struct shmemi_group *g, void *dest, const void *source, size_t nelems, size_t elem,
                     bool inclusive, shmemi_red_fn *kernel)
{
    SHMEMI_ALIGNED_LINE unsigned char sum[CHUNK_BYTES], part[CHUNK_BYTES];
    struct feed f;

    shmemi_group_sync(g);
    feed_begin(&f, g, source, nelems, elem, NULL);
    feed_fetch(&f);
    for (long batch = 0; batch < f.end; batch++) {
        size_t at, n = feed_chunk(&f, batch, &at), len = n * elem;
        char *to = (char *)dest + at * elem;
        int from, end;

        feed_turn(&f);
        feed_members(&f, batch, &from, &end);
        if (from == 0)
            memset(sum, 0, len);
        for (int i = from; i < end; i++) {
            memcpy(part, feed_part(&f, batch, i), len); /* before it is overwritten, as dest may be source */
            if (!inclusive)
                shmemi_put(SHMEM_CTX_DEFAULT, to, sum, len, shmemi_group_pe(g, i), g->call);
            if (i == 0)
                memcpy(sum, part, len);
            else
                kernel(sum, part, n);
            if (inclusive)
                shmemi_put(SHMEM_CTX_DEFAULT, to, sum, len, shmemi_group_pe(g, i), g->call);
        }
    }
    shmemi_far_finish(g);
}
