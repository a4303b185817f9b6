/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll_bulk.c - broadcast, fcollect and alltoall of large blocks, from user memory to user memory.
 *
 * Each PE fetches what it needs once the others have come, so that all copy at the same time, and all meet
 * again before a source may change.
 */
#include "coll.h"

/* Member i is asked after me, me + 1, ... so that not all read from the same one. */
static int partner(const struct shmemi_group *g, int step)
{
    int i = g->my_pe + step;

    return i < g->n_pes ? i : i - g->n_pes;
}

/* Where PEs share CPUs the root writes to all: one turn on the CPU for each PE and not two. */
static void push_broadcast(const struct shmemi_group *g, void *dest, const void *source, size_t len, int root)
{
    struct shmemi_team *t = g->team;
    uint64_t epoch = shmemi_op_begin(t, g->call);

    if (g->my_pe != root) {
        shmemi_arrive(t, epoch);
        shmemi_await(t, epoch, root, g->call);
        return;
    }
    for (int step = 1; step < g->n_pes; step++) {
        int i = partner(g, step);

        memcpy(shmemi_group_addr(g, i, dest, len), source, len);
    }
    shmemi_arrive(t, epoch);
    if (!t->coll->flat)
        shmemi_wake_members(t);
    shmemi_copy(dest, source, len);
}

void shmemi_bulk_broadcast(const struct shmemi_group *g, void *dest, const void *source, size_t len, int root,
                           bool root_too)
{
    if (g->far) {
        shmemi_far_broadcast(g, dest, source, len, root, root_too);
        return;
    }
    if (g->team && shmemi.n_local > shmemi.n_cpus) {
        push_broadcast(g, dest, source, len, root);
        return;
    }
    shmemi_group_sync(g);
    if (len && g->my_pe != root)
        memcpy(dest, shmemi_group_addr(g, root, source, len), len);
    else if (root_too)
        shmemi_copy(dest, source, len);
    shmemi_group_sync(g);
}

void shmemi_bulk_fcollect(const struct shmemi_group *g, void *dest, const void *source, size_t len)
{
    if (g->far) {
        shmemi_far_fcollect(g, dest, source, len);
        return;
    }
    shmemi_group_sync(g);
    for (int step = 0; len && step < g->n_pes; step++) {
        int i = partner(g, step);

        shmemi_copy((char *)dest + (size_t)i * len, shmemi_group_addr(g, i, source, len), len);
    }
    shmemi_group_sync(g);
}

void shmemi_bulk_alltoalls(const struct shmemi_group *g, void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst,
                           size_t nelems, size_t elem)
{
    size_t len = nelems * elem, extent = shmemi_extent(nelems, sst, elem, g->call);
    const char *mine = (const char *)source + (size_t)g->my_pe * len * (size_t)sst;

    if (g->far) {
        shmemi_far_alltoalls(g, dest, source, dst, sst, nelems, elem);
        return;
    }
    shmemi_group_sync(g);
    for (int step = 0; len && step < g->n_pes; step++) {
        int i = partner(g, step);

        shmemi_copy_strided((char *)dest + (size_t)i * len * (size_t)dst, dst, shmemi_group_addr(g, i, mine, extent),
                            sst, nelems, elem);
    }
    shmemi_group_sync(g);
}
