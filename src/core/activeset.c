/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * activeset.c - the deprecated collectives on active sets (specification 1.6, section 9.10).
 *
 * A set has no team, so its PEs meet through the caller's pSync array and copy from user memory to user memory.
 * Elements of pSync in use; all are SHMEM_SYNC_VALUE again when a PE returns:
 *
 *     ARRIVED   on the first PE of the set: how many have come
 *     STATE     on each PE: has entered; may go on
 *     LENGTH    on each PE, in collect: bytes of its part
 *     FROM + i  on each PE of a small set: meetings that member i has come to and this PE has not finished
 *
 * Where the set's PEs are on several nodes, ARRIVED and FROM are only changed by atomics of the path that reaches all
 * of them (amo.h), never by this CPU's own.
 *
 * A PE that is ahead may enter the next meeting on the same pSync before another has left this one, so the words
 * are counted up and down, never just set.
 */
#include "activeset.h"

#include "amo.h"
#include "shell.h"

#include <stdio.h>

#undef shmem_sync /* the type-generic macro of C11 */

#define FLAT_MAX 16

enum { ARRIVED, STATE, LENGTH, FROM = 8, USED = FROM + FLAT_MAX };

#define ENTERED (SHMEM_SYNC_VALUE + 1)
#define RELEASED (SHMEM_SYNC_VALUE + 2)

_Static_assert(USED <= SHMEM_SYNC_SIZE, "pSync has room");

static long *word(const struct shmemi_group *g, int member, int which)
{
    return shmemi_group_addr(g, member, &g->psync[which], sizeof(long));
}

/* ---- meeting ---- */

/* The same on all PEs of the set. */
static bool is_flat(const struct shmemi_group *g)
{
    return g->n_pes <= FLAT_MAX && (g->far ? !shmemi.crowded : shmemi.n_local <= shmemi.n_cpus);
}

static bool has_entered(const struct shmemi_group *g, int member)
{
    if (member == g->my_pe)
        return true;
    if (is_flat(g))
        return SHMEMI_LD_ACQ(word(g, g->my_pe, FROM + member)) != SHMEM_SYNC_VALUE;
    if (g->far)
        return false; /* not to be seen from here */
    return SHMEMI_LD_ACQ(word(g, member, STATE)) != SHMEM_SYNC_VALUE;
}

static int absent(const void *arg)
{
    const struct shmemi_group *g = arg;

    /* Only the first PE counts, if at all: the one to ask whether it is alive. */
    if (g->far && !is_flat(g))
        return g->my_pe ? g->start : -1;
    for (int i = 0; i < g->n_pes; i++)
        if (!has_entered(g, i))
            return g->start + i * g->stride;
    return -1;
}

static void describe(const void *arg, char *buf, size_t len)
{
    const struct shmemi_group *g = arg;
    int n = g->far && !is_flat(g) ? snprintf(buf, len, "all PEs") : snprintf(buf, len, "PE %d", absent(g));

    if (n > 0 && (size_t)n < len)
        snprintf(buf + n, len - (size_t)n, " to enter (active set of %d PEs from PE %d on, stride %d)", g->n_pes,
                 g->start, g->stride);
}

static void release_all(const struct shmemi_group *g)
{
    /* Nobody adds before it is released, and all are released below. */
    SHMEMI_ST_RLX(word(g, 0, ARRIVED), SHMEM_SYNC_VALUE);
    for (int i = 0; i < g->n_pes; i++) {
        if (i == g->my_pe)
            continue;
        SHMEMI_ST_REL(word(g, i, STATE), RELEASED); /* pairs with shmemi_set_sync */
        shmemi_wake_peer(shmemi.peers[g->start + i * g->stride].ctl);
    }
}

/*
 * The last to arrive releases the others.  Its addition acquires what they released with theirs, and its stores to
 * their STATE hand all of that on.
 */
static void counted_sync(const struct shmemi_group *g, struct shmemi_waiter *w)
{
    long *state = word(g, g->my_pe, STATE);

    SHMEMI_ST_REL(state, ENTERED);
    if (SHMEMI_ADD_ACQREL(word(g, 0, ARRIVED), 1L) + 1 == SHMEM_SYNC_VALUE + g->n_pes) {
        release_all(g);
    } else {
        while (SHMEMI_LD_ACQ(state) != RELEASED)
            shmemi_wait_step(w);
    }
    SHMEMI_ST_RLX(state, SHMEM_SYNC_VALUE);
}

/* Each tells each: one trip of a line.  The addition releases what the load of the count acquires. */
static void flat_sync(const struct shmemi_group *g, struct shmemi_waiter *w)
{
    for (int i = 0; i < g->n_pes; i++) {
        if (i == g->my_pe)
            continue;
        SHMEMI_ADD_ACQREL(word(g, i, FROM + g->my_pe), 1L);
        shmemi_wake_peer(shmemi.peers[g->start + i * g->stride].ctl);
    }
    for (int i = 0; i < g->n_pes; i++) {
        long *from = word(g, g->my_pe, FROM + i);

        if (i == g->my_pe)
            continue;
        while (SHMEMI_LD_ACQ(from) == SHMEM_SYNC_VALUE)
            shmemi_wait_step(w);
        SHMEMI_ADD_ACQREL(from, -1L);
    }
}

/* ---- meeting across nodes ---- */

static void add(const struct shmemi_group *g, int member, int which, long value)
{
    shmemi_amo(SHMEM_CTX_DEFAULT, SHMEMI_AMO_ADD, &g->psync[which], &value, NULL, NULL, sizeof value,
               shmemi_group_pe(g, member), false, g->call);
}

/* As counted_sync; the counter is back where it was before anybody is released. */
static void far_counted_sync(const struct shmemi_group *g, struct shmemi_waiter *w)
{
    const long one = 1, released = RELEASED, free_value = SHMEM_SYNC_VALUE;
    long *state = &g->psync[STATE], count = 0;

    SHMEMI_ST_REL(state, ENTERED);
    shmemi_amo(SHMEM_CTX_DEFAULT, SHMEMI_AMO_ADD, &g->psync[ARRIVED], &one, NULL, &count, sizeof one,
               shmemi_group_pe(g, 0), false, g->call);
    if (count + 1 == SHMEM_SYNC_VALUE + g->n_pes) {
        long old;

        /* Fetched, so it is done. */
        shmemi_amo(SHMEM_CTX_DEFAULT, SHMEMI_AMO_SWAP, &g->psync[ARRIVED], &free_value, NULL, &old, sizeof old,
                   shmemi_group_pe(g, 0), false, g->call);
        for (int i = 0; i < g->n_pes; i++)
            if (i != g->my_pe)
                shmemi_p(SHMEM_CTX_DEFAULT, state, &released, sizeof released, shmemi_group_pe(g, i), g->call);
    } else {
        while (SHMEMI_LD_ACQ(state) != RELEASED)
            shmemi_wait_step(w);
    }
    SHMEMI_ST_RLX(state, SHMEM_SYNC_VALUE);
}

/* As flat_sync; quiet, so that this PE does not find its own counts too high in the next meeting. */
static void far_flat_sync(const struct shmemi_group *g, struct shmemi_waiter *w)
{
    for (int i = 0; i < g->n_pes; i++)
        if (i != g->my_pe)
            add(g, i, FROM + g->my_pe, 1);
    for (int i = 0; i < g->n_pes; i++) {
        const long *from = &g->psync[FROM + i];

        if (i == g->my_pe)
            continue;
        while (SHMEMI_LD_ACQ(from) == SHMEM_SYNC_VALUE)
            shmemi_wait_step(w);
        add(g, g->my_pe, FROM + i, -1);
    }
    shmemi_quiet(SHMEM_CTX_DEFAULT, g->call);
}

void shmemi_set_sync(const struct shmemi_group *g)
{
    struct shmemi_waiter w = SHMEMI_WAITER_FN(g->call, describe, g);

    w.culprit = absent;
    if (g->far && is_flat(g))
        far_flat_sync(g, &w);
    else if (g->far)
        far_counted_sync(g, &w);
    else if (is_flat(g))
        flat_sync(g, &w);
    else
        counted_sync(g, &w);
    shmemi_wait_done(&w);
}

/* ---- arguments ---- */

struct shmemi_group shmemi_set(int start, int log_stride, int size, long *psync, const char *call)
{
    struct shmemi_group g = { .n_pes = size, .start = start, .psync = psync, .call = call };
    int distance = shmemi.my_pe - start;

    shmemi_check_init(call);
    if (start < 0 || log_stride < 0 || log_stride > 30 || size < 1 ||
        start + ((long long)(size - 1) << log_stride) >= shmemi.n_pes)
        shmemi_fatal(call, "active set PE_start %d, logPE_stride %d, PE_size %d does not lie within PE 0 to %d", start,
                     log_stride, size, shmemi.n_pes - 1);
    g.stride = 1 << log_stride;
    g.my_pe = distance >> log_stride;
    if (distance < 0 || distance % g.stride || g.my_pe >= size)
        shmemi_fatal(call, "PE %d is not in the active set PE_start %d, logPE_stride %d, PE_size %d", shmemi.my_pe,
                     start, log_stride, size);
    shmemi_check_symmetric(psync, USED * sizeof(long), call);
    shmemi_check_aligned(psync, sizeof(long), call);
    for (int i = 0; shmemi.n_nodes > 1 && i < size && !g.far; i++)
        g.far = !shmemi.peers[shmemi_group_pe(&g, i)].ctl;
    return g;
}

/* ---- barrier and sync ---- */

SHMEMI_SHELL(void, barrier, (int PE_start, int logPE_stride, int PE_size, long *pSync),
             struct shmemi_group g = shmemi_set(PE_start, logPE_stride, PE_size, pSync, call);
             shmemi_quiet(SHMEM_CTX_DEFAULT, call);
             shmemi_set_sync(&g);)

SHMEMI_SHELL(void, sync, (int PE_start, int logPE_stride, int PE_size, long *pSync),
             struct shmemi_group g = shmemi_set(PE_start, logPE_stride, PE_size, pSync, call);
             shmemi_set_sync(&g);)

/* ---- moving data ---- */

void shmemi_set_broadcast(const struct shmemi_group *g, void *dest, const void *source, size_t len, int root)
{
    shmemi_check_root(root, g->n_pes, g->call);
    if (g->my_pe != root)
        shmemi_check_symmetric(dest, len, g->call);
    else
        shmemi_check_symmetric(source, len, g->call);
    shmemi_bulk_broadcast(g, dest, source, len, root, false); /* the root's dest stays as it is */
}

void shmemi_set_fcollect(const struct shmemi_group *g, void *dest, const void *source, size_t len)
{
    shmemi_check_symmetric(source, len, g->call);
    shmemi_check_symmetric(dest, shmemi_mul(len, (size_t)g->n_pes, g->call), g->call);
    shmemi_bulk_fcollect(g, dest, source, len);
}

/* Bytes of the members before this one. */
static size_t far_offset(const struct shmemi_group *g)
{
    size_t at = 0;

    for (int i = 0; i < g->my_pe; i++) {
        long part;

        shmemi_g(SHMEM_CTX_DEFAULT, &part, &g->psync[LENGTH], sizeof part, shmemi_group_pe(g, i), g->call);
        at += (size_t)part;
    }
    return at;
}

void shmemi_set_collect(const struct shmemi_group *g, void *dest, const void *source, size_t len)
{
    size_t at = 0;

    shmemi_check_symmetric(source, len, g->call);
    SHMEMI_ST_RLX(word(g, g->my_pe, LENGTH), (long)len);
    shmemi_set_sync(g);
    if (g->far) {
        shmemi_far_spread(g, dest, far_offset(g), source, len);
        shmemi_far_finish(g);
        SHMEMI_ST_RLX(word(g, g->my_pe, LENGTH), SHMEM_SYNC_VALUE);
        return;
    }
    for (int i = 0; i < g->n_pes; i++) {
        size_t part = (size_t)SHMEMI_LD_RLX(word(g, i, LENGTH));

        if (part == 0)
            continue;
        shmemi_check_symmetric((char *)dest + at, part, g->call);
        memcpy((char *)dest + at, shmemi_group_addr(g, i, source, part), part);
        at += part;
    }
    shmemi_set_sync(g);
    SHMEMI_ST_RLX(word(g, g->my_pe, LENGTH), SHMEM_SYNC_VALUE);
}

void shmemi_set_alltoalls(const struct shmemi_group *g, void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst,
                          size_t nelems, size_t elem)
{
    size_t n = shmemi_mul(nelems, (size_t)g->n_pes, g->call);

    shmemi_check_symmetric(dest, shmemi_extent(n, dst, elem, g->call), g->call);
    shmemi_check_symmetric(source, shmemi_extent(n, sst, elem, g->call), g->call);
    shmemi_bulk_alltoalls(g, dest, source, dst, sst, nelems, elem);
}

void shmemi_set_reduce(const struct shmemi_group *g, void *dest, const void *source, int nreduce, size_t elem,
                       shmemi_red_fn *kernel)
{
    size_t len;

    if (nreduce < 0)
        shmemi_fatal(g->call, "nreduce %d is negative", nreduce);
    len = shmemi_mul((size_t)nreduce, elem, g->call);
    shmemi_check_symmetric(dest, len, g->call);
    shmemi_check_symmetric(source, len, g->call);
    shmemi_bulk_reduce(g, dest, source, (size_t)nreduce, elem, kernel);
}
