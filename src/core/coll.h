/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll.h - untyped collectives (specification 1.6, section 9.10); the typed routines are shells around these.
 *
 * Three sizes, chosen alike by all members:
 *
 *     line    up to 56 bytes in a flat team travel in the cache line that says "I have come"
 *     stage   up to the team's stage_max bytes are copied to this PE's block, one arrival, and read from there
 *     bulk    the members meet, read one another's user memory, and meet again (coll_bulk.c)
 *
 * The active-set forms, which have no team, are always bulk and meet through the user's pSync.  Where PEs are on
 * several nodes, bulk writes to the others instead of reading from them (coll_far.c), and the stage is the
 * receiver's (span.h).
 */
#ifndef SHMEMI_COLL_H
#define SHMEMI_COLL_H

#include "check.h"
#include "span.h"

/* ---- collectives of a team; sizes are in bytes ---- */

void shmemi_broadcast(shmem_team_t team, void *dest, const void *source, size_t len, int root, const char *call);
void shmemi_fcollect(shmem_team_t team, void *dest, const void *source, size_t len, const char *call);
void shmemi_collect(shmem_team_t team, void *dest, const void *source, size_t len, const char *call);
/* Strides and nelems in elements of `elem` bytes; strides of 1 are the plain alltoall. */
void shmemi_alltoalls(shmem_team_t team, void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst,
                      size_t nelems, size_t elem, const char *call);

/* ---- the PEs of a bulk operation ---- */

struct shmemi_group {
    struct shmemi_team *team; /* NULL: an active set, which meets through psync */
    int n_pes, my_pe;
    int start, stride; /* world PE of member i: start + i * stride */
    long *psync;
    const char *call;
    bool far; /* some members are on other nodes */
};

SHMEMI_INLINE struct shmemi_group shmemi_group_of(struct shmemi_team *t, const char *call)
{
    return (struct shmemi_group){ t, t->n_pes, t->my_pe, t->start, t->stride, NULL, call, t->coll->span != NULL };
}

/* Meets through pSync (activeset.c). */
void shmemi_set_sync(const struct shmemi_group *g);

SHMEMI_INLINE void shmemi_group_sync(const struct shmemi_group *g)
{
    if (g->team)
        shmemi_team_sync(g->team, g->call);
    else
        shmemi_set_sync(g);
}

SHMEMI_INLINE int shmemi_group_pe(const struct shmemi_group *g, int member)
{
    return g->start + member * g->stride;
}

/* `len` bytes at the symmetric address `addr` of a member of this node. */
SHMEMI_INLINE void *shmemi_group_addr(const struct shmemi_group *g, int member, const void *addr, size_t len)
{
    return shmemi_remote(addr, len, g->start + member * g->stride, g->call);
}

void shmemi_bulk_broadcast(const struct shmemi_group *g, void *dest, const void *source, size_t len, int root,
                           bool root_too);
void shmemi_bulk_fcollect(const struct shmemi_group *g, void *dest, const void *source, size_t len);
void shmemi_bulk_alltoalls(const struct shmemi_group *g, void *dest, const void *source, ptrdiff_t dst,
                           ptrdiff_t sst, size_t nelems, size_t elem);

/* The same for groups that are far. */
void shmemi_far_broadcast(const struct shmemi_group *g, void *dest, const void *source, size_t len, int root,
                          bool root_too);
void shmemi_far_fcollect(const struct shmemi_group *g, void *dest, const void *source, size_t len);
void shmemi_far_alltoalls(const struct shmemi_group *g, void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst,
                          size_t nelems, size_t elem);
/* After all members have entered: gives `len` bytes to offset `at` of everyone's dest. */
void shmemi_far_spread(const struct shmemi_group *g, void *dest, size_t at, const void *source, size_t len);
/* Completes what this PE has put, and waits until the others' has arrived. */
void shmemi_far_finish(const struct shmemi_group *g);

/* Teams that span nodes, all sizes; arguments are checked, and not empty but for collect. */
void shmemi_span_broadcast(struct shmemi_team *t, void *dest, const void *source, size_t len, int root,
                           const char *call);
/* Teams without lines: bytes of the members before this one, each of which brings `len`. */
size_t shmemi_span_offset(struct shmemi_team *t, size_t len, const char *call);
void shmemi_span_collect(struct shmemi_team *t, void *dest, const void *source, size_t len, const char *call);

/* ---- checks and copies ---- */

/* Ends the job unless `len` bytes at addr are symmetric memory.  Empty ranges may be anywhere, NULL too. */
SHMEMI_INLINE void shmemi_check_symmetric(const void *addr, size_t len, const char *call)
{
    if (len)
        (void)shmemi_remote(addr, len, shmemi.my_pe, call);
}

void shmemi_check_root(int root, int n_pes, const char *call);
/* a * b, ending the job where that overflows. */
size_t shmemi_mul(size_t a, size_t b, const char *call);
/* Bytes from the first to the last of `n` elements, `stride` elements apart. */
size_t shmemi_extent(size_t n, ptrdiff_t stride, size_t elem, const char *call);
void shmemi_copy_strided(void *dest, ptrdiff_t dst, const void *source, ptrdiff_t sst, size_t nelems, size_t elem);

SHMEMI_INLINE void shmemi_copy(void *dest, const void *source, size_t len)
{
    if (len && dest != source)
        memmove(dest, source, len);
}

/* ---- all members' small data, for all ---- */

struct shmemi_exchange {
    struct shmemi_team *team;
    uint64_t epoch;
    size_t len;
    bool lines;
    SHMEMI_ALIGNED_LINE unsigned char own[SHMEMI_LINE_BYTES]; /* lines: this PE's part, as dest may be source */
    struct shmemi_awaited awaited;
    struct shmemi_waiter waiter;
};

/* What exchange_begin does in a team of lines that spans nodes; len <= SHMEMI_EAGER_BYTES. */
void shmemi_span_exchange(struct shmemi_exchange *x, const void *source, const char *call);
/* Other ways than lines of one node: member `i`'s bytes. */
const void *shmemi_exchange_staged(const struct shmemi_exchange *x, int i);

/* Gives `len` <= stage_max bytes, or a line's, to the others.  Not for teams that are trees over nodes. */
SHMEMI_INLINE void shmemi_exchange_begin(struct shmemi_exchange *x, struct shmemi_team *t, const void *source,
                                         size_t len, const char *call)
{
    x->team = t;
    x->epoch = shmemi_op_begin(t, call);
    x->lines = t->coll->flat && len <= SHMEMI_LINE_BYTES;
    if (x->lines) {
        shmemi_copy_small(x->own, source, len);
        for (int i = t->my_pe + 1; i < t->n_pes; i++)
            shmemi_line_post(t, x->epoch, i, source, len);
        for (int i = 0; i < t->my_pe; i++)
            shmemi_line_post(t, x->epoch, i, source, len);
        x->awaited = (struct shmemi_awaited){ t, x->epoch, -1 };
        x->waiter = (struct shmemi_waiter)SHMEMI_WAITER_EPOCH(call, &x->awaited);
        return;
    }
    x->len = len;
    if (t->coll->span) {
        shmemi_span_exchange(x, source, call);
        return;
    }
    memcpy(shmemi_stage(t, x->epoch), source, len);
    shmemi_arrive(t, x->epoch);
    shmemi_settle(t, x->epoch, call);
}

/* Member `i`'s bytes; waits for them. */
SHMEMI_INLINE const void *shmemi_exchange_from(struct shmemi_exchange *x, int i)
{
    if (!x->lines)
        return shmemi_exchange_staged(x, i);
    if (i == x->team->my_pe)
        return x->own;
    return shmemi_line_wait(x->team, x->epoch, i, &x->waiter)->data;
}

/* `all`: every other member's part was asked for, so all have come. */
SHMEMI_INLINE void shmemi_exchange_end(struct shmemi_exchange *x, bool all)
{
    if (!x->lines)
        return;
    shmemi_wait_done(&x->waiter);
    if (all)
        x->team->coll->settled = x->epoch;
}

#endif
