/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll.h - the collectives of kernels, on any team: by load and store where they lead, else by the NIC (coll_far.h).
 *
 * Short messages go by lines (coll_op.h).  Longer ones are stored or put into the others' dest, or read from their source by
 * reductions, with one fence and one exchange of flags.
 * All threads of the group take part; members are served in parallel.
 */
#ifndef SHMEM_DEVICE_COLL_H
#define SHMEM_DEVICE_COLL_H

#include "coll_far.h"
#include "coll_op.h"
#include "copy.h"
#include "reduce.h"
#include "rma.h"

#ifdef SHMEMI_DEVICE_CODE

/* ---- teams of several nodes: one call each, away from the near way ---- */

SHMEMI_DEV_COLD int shmemi_exchange_nodes(enum shmemi_scope scope, shmem_team_t team, void *dest, const void *source,
                                          uint64_t step, uint64_t len, uint32_t call)
{
    return SHMEMI_BEHIND(shmemi_nodes_exchange)(scope, team, (char *)dest, (const char *)source, step, len, call);
}

SHMEMI_DEV_COLD int shmemi_alltoalls_nodes(enum shmemi_scope scope, shmem_team_t team, void *dest, const void *source,
                                           int64_t dst, int64_t sst, uint64_t nelems, uint32_t elem)
{
    return SHMEMI_BEHIND(shmemi_nodes_alltoalls)(scope, team, (char *)dest, (const char *)source, dst, sst, nelems, elem);
}

SHMEMI_DEV_COLD int shmemi_collect_nodes(enum shmemi_scope scope, shmem_team_t team, void *dest, const void *source,
                                         uint64_t len)
{
    return SHMEMI_BEHIND(shmemi_nodes_collect)(scope, team, (char *)dest, (const char *)source, len);
}

SHMEMI_DEV_COLD int shmemi_broadcast_nodes(enum shmemi_scope scope, shmem_team_t team, void *dest, const void *source,
                                           uint64_t len, int root)
{
    return SHMEMI_BEHIND(shmemi_nodes_broadcast)(scope, team, (char *)dest, (const char *)source, len, root);
}

SHMEMI_DEV_COLD int shmemi_reduce_nodes(enum shmemi_scope scope, shmem_team_t team, enum shmemi_red_kind kind,
                                        enum shmemi_red_op op, void *dest, const void *source, uint64_t len)
{
    return SHMEMI_BEHIND(shmemi_nodes_reduce)(scope, team, kind, op, (char *)dest, (const char *)source, len);
}

/* ---- one node ---- */

/* Meets the others, with a fence, and copies the own block: by the threads that do not serve members, if there are any. */
SHMEMI_DEV_LARGE void shmemi_exchange_meet(struct shmemi_op *o, char *own_dest, const char *own_source, uint64_t len)
{
    uint32_t servers = shmemi_sync_servers(o->scope), spare = o->size - servers;

    shmemi_group_sync(o->scope);
    if (o->rank < servers)
        shmemi_sync_meet(o->scope, &o->t, 0, o->epoch, SHMEMI_SYNC_POSTED, o->rank, servers, o->call);
    if (!spare || o->rank >= servers)
        shmemi_copy(own_dest, own_source, len, spare ? o->rank - servers : o->rank, spare ? spare : o->size);
    shmemi_group_sync(o->scope);
    shmemi_op_met(o);
}

/* ---- alltoall and fcollect: block `member * send_step` of source to block `me` of dest there ---- */

SHMEMI_DEV void shmemi_exchange(struct shmemi_op *o, char *dest, const char *source, uint64_t send_step, uint64_t len)
{
    char *own_dest = dest + o->me * len;
    const char *own_source = source + o->me * send_step;

    if (len == 0) {
        shmemi_op_meet(o, SHMEMI_SYNC_RELAXED);
    } else if (len <= shmemi_sync_message(o->n)) {
        shmemi_lines_send(o, source, send_step, len);
        shmemi_copy(own_dest, own_source, len, o->rank, o->size);
        shmemi_lines_receive(o, dest, len, len, 0);
        shmemi_op_met(o);
    } else {
        SHMEMI_ROLLED
        for (uint32_t p = 1; p < o->n; p++) {
            uint32_t to = o->me + p < o->n ? o->me + p : o->me + p - o->n;

            shmemi_copy(shmemi_dev_remote(dest + o->me * len, len, shmemi_op_world(o, to), o->call), source + to * send_step,
                        len, o->rank, o->size);
        }
        shmemi_exchange_meet(o, own_dest, own_source, len);
    }
}

SHMEMI_DEV_LARGE int shmemi_near_fcollect(enum shmemi_scope scope, shmem_team_t team, void *dest, const void *source,
                                         uint64_t len)
{
    struct shmemi_op o;

    o = shmemi_op_begin(scope, team, SHMEMI_CALL_FCOLLECT);
    shmemi_exchange(&o, (char *)dest, (const char *)source, 0, len);
    shmemi_op_end(&o);
    shmemi_group_sync(scope);
    return 0;
}

SHMEMI_DEV int shmemi_dev_fcollect(enum shmemi_scope scope, shmem_team_t team, void *dest, const void *source,
                                         uint64_t len)
{
    if (SHMEMI_UNLIKELY(shmemi_team_is_far(team)))
        return shmemi_exchange_nodes(scope, team, dest, source, 0, len, SHMEMI_CALL_FCOLLECT);
    return shmemi_near_fcollect(scope, team, dest, source, len);
}

SHMEMI_DEV_LARGE int shmemi_near_alltoall(enum shmemi_scope scope, shmem_team_t team, void *dest, const void *source,
                                         uint64_t len)
{
    struct shmemi_op o;

    o = shmemi_op_begin(scope, team, SHMEMI_CALL_ALLTOALL);
    shmemi_exchange(&o, (char *)dest, (const char *)source, len, len);
    shmemi_op_end(&o);
    shmemi_group_sync(scope);
    return 0;
}

SHMEMI_DEV int shmemi_dev_alltoall(enum shmemi_scope scope, shmem_team_t team, void *dest, const void *source,
                                         uint64_t len)
{
    if (SHMEMI_UNLIKELY(shmemi_team_is_far(team)))
        return shmemi_exchange_nodes(scope, team, dest, source, len, len, SHMEMI_CALL_ALLTOALL);
    return shmemi_near_alltoall(scope, team, dest, source, len);
}

SHMEMI_DEV_LARGE int shmemi_near_alltoalls(enum shmemi_scope scope, shmem_team_t team, void *dest, const void *source,
                                          int64_t dst, int64_t sst, uint64_t nelems, uint32_t elem)
{
    uint64_t to_step = (uint64_t)dst * elem, from_step = (uint64_t)sst * elem;
    struct shmemi_op o;

    if (dst < 1 || sst < 1)
        shmemi_dev_fail(SHMEMI_DEV_BAD_VALUE, SHMEMI_CALL_ALLTOALLS, (uint64_t)(dst < sst ? dst : sst), 0, 0);
    o = shmemi_op_begin(scope, team, SHMEMI_CALL_ALLTOALLS);
    SHMEMI_ROLLED
    for (uint32_t p = 0; nelems && p < o.n; p++) {
        uint32_t to = o.me + p < o.n ? o.me + p : o.me + p - o.n;

        shmemi_copy_blocks(shmemi_dev_remote((char *)dest + o.me * nelems * to_step, (nelems - 1) * to_step + elem,
                                             shmemi_op_world(&o, to), SHMEMI_CALL_ALLTOALLS),
                           to_step, (const char *)source + to * nelems * from_step, from_step, nelems, elem, elem, o.rank, o.size);
    }
    shmemi_op_meet(&o, SHMEMI_SYNC_POSTED);
    shmemi_op_end(&o);
    shmemi_group_sync(scope);
    return 0;
}

SHMEMI_DEV int shmemi_dev_alltoalls(enum shmemi_scope scope, shmem_team_t team, void *dest, const void *source,
                                          int64_t dst, int64_t sst, uint64_t nelems, uint32_t elem)
{
    if (SHMEMI_UNLIKELY(shmemi_team_is_far(team)))
        return shmemi_alltoalls_nodes(scope, team, dest, source, dst, sst, nelems, elem);
    return shmemi_near_alltoalls(scope, team, dest, source, dst, sst, nelems, elem);
}

/* ---- collect ---- */

SHMEMI_DEV_LARGE int shmemi_near_collect(enum shmemi_scope scope, shmem_team_t team, void *dest, const void *source,
                                        uint64_t len)
{
    struct shmemi_op o;
    uint64_t before;

    o = shmemi_op_begin(scope, team, SHMEMI_CALL_COLLECT);
    shmemi_lines_send(&o, (const char *)&len, 0, 8);
    before = shmemi_collect_before(&o, len, 0);
    o.epoch++;
    SHMEMI_ROLLED
    for (uint32_t p = 0; len && p < o.n; p++) {
        uint32_t to = o.me + p < o.n ? o.me + p : o.me + p - o.n;

        shmemi_copy(shmemi_dev_remote((char *)dest + before, len, shmemi_op_world(&o, to), SHMEMI_CALL_COLLECT),
                    (const char *)source, len, o.rank, o.size);
    }
    shmemi_op_meet(&o, SHMEMI_SYNC_POSTED);
    shmemi_op_end(&o);
    shmemi_group_sync(scope);
    return 0;
}

SHMEMI_DEV int shmemi_dev_collect(enum shmemi_scope scope, shmem_team_t team, void *dest, const void *source,
                                        uint64_t len)
{
    if (SHMEMI_UNLIKELY(shmemi_team_is_far(team)))
        return shmemi_collect_nodes(scope, team, dest, source, len);
    return shmemi_near_collect(scope, team, dest, source, len);
}

/* ---- broadcast ---- */

/*
 * The root's data is in everybody's dest: one fence, and a flag for each.  The root's own dest is filled meanwhile, by the threads that
 * do not wait at the fence, if there are any.
 */
SHMEMI_DEV void shmemi_broadcast_long(struct shmemi_op *o, uint32_t root, char *dest, const char *source, uint64_t len)
{
    uint32_t servers = shmemi_sync_servers(o->scope), spare = o->size - servers;

    SHMEMI_ROLLED
    for (uint32_t p = 1; o->me == root && p < o->n; p++) {
        uint32_t to = o->me + p < o->n ? o->me + p : o->me + p - o->n;

        shmemi_copy(shmemi_dev_remote(dest, len, shmemi_op_world(o, to), o->call), source, len, o->rank, o->size);
    }
    shmemi_group_sync(o->scope);
    if (o->me == root && o->rank < servers) {
        SHMEMI_FENCE_ACQREL(); /* pairs with the acquire below */
        SHMEMI_ROLLED
        for (uint32_t i = o->rank; i < o->n; i += servers)
            if (i != root)
                SHMEMI_ST_RLX(shmemi_sync_flag(shmemi_sync_of(&o->t, (int)i, o->call), o->n, 0, root), o->epoch);
    } else if (o->me != root && o->rank == 0) {
        shmemi_sync_await(o->scope, shmemi_sync_flag(shmemi_sync_own(&o->t), o->n, 0, root), o->epoch,
                          SHMEMI_SYNC_FENCED, shmemi_op_world(o, root), o->call);
    }
    if (o->me == root && dest != source && (!spare || o->rank >= servers))
        shmemi_copy(dest, source, len, spare ? o->rank - servers : o->rank, spare ? spare : o->size);
}

/* By lines: the root to all, each line of each member by a thread. */
SHMEMI_DEV void shmemi_broadcast_lines(struct shmemi_op *o, uint32_t root, char *dest, const char *source, uint64_t len)
{
    struct shmemi_sync_line *from = shmemi_lines_of(o, shmemi_sync_own(&o->t), root);

    if (o->me == root)
        shmemi_lines_send(o, source, 0, len);
    SHMEMI_ROLLED
    for (uint32_t line = o->rank; o->me != root && line < shmemi_lines(len); line += o->size)
        shmemi_word_out(dest + (uint64_t)line * 8, shmemi_line_get(o, from + line, root), shmemi_line_bytes(len, line));
}

SHMEMI_DEV_LARGE int shmemi_near_broadcast(enum shmemi_scope scope, shmem_team_t team, void *dest, const void *source,
                                          uint64_t len, int root)
{
    struct shmemi_op o;

    o = shmemi_op_begin(scope, team, SHMEMI_CALL_BROADCAST);
    if ((uint32_t)root >= o.n)
        shmemi_dev_fail(SHMEMI_DEV_BAD_PE, SHMEMI_CALL_BROADCAST, (uint64_t)(int64_t)root, o.n, 0);
    if (len > shmemi_sync_message(o.n)) {
        shmemi_broadcast_long(&o, (uint32_t)root, (char *)dest, (const char *)source, len);
    } else {
        shmemi_broadcast_lines(&o, (uint32_t)root, (char *)dest, (const char *)source, len);
        if (o.me == (uint32_t)root && dest != source)
            shmemi_copy((char *)dest, (const char *)source, len, o.rank, o.size);
    }
    shmemi_op_end(&o);
    /* Behind the group's sync in op_end: this member needs nothing of the operation any more. */
    SHMEMI_ROLLED
    for (uint32_t i = o.rank; i < o.n; i += o.size)
        if (i != o.me)
            SHMEMI_ST_RLX(shmemi_sync_ack(shmemi_sync_of(&o.t, (int)i, SHMEMI_CALL_BROADCAST), o.n, o.me), o.epoch);
    shmemi_group_sync(scope);
    return 0;
}

SHMEMI_DEV int shmemi_dev_broadcast(enum shmemi_scope scope, shmem_team_t team, void *dest, const void *source,
                                          uint64_t len, int root)
{
    if (SHMEMI_UNLIKELY(shmemi_team_is_far(team)))
        return shmemi_broadcast_nodes(scope, team, dest, source, len, root);
    return shmemi_near_broadcast(scope, team, dest, source, len, root);
}

/* ---- reductions ---- */

/* 16 bytes of a message: two lines, or the last one alone. */
SHMEMI_DEV int shmemi_item_try(struct shmemi_sync_line *l, int two, uint64_t flag, struct shmemi_v16 *v)
{
    int ok = shmemi_line_try(l, flag, &v->x);

    v->y = 0;
    if (two)
        ok &= shmemi_line_try(l + 1, flag, &v->y);
    return ok;
}

/* The item of members m0 to m0 + 3, as many as there are: their loads are in flight together. */
SHMEMI_DEV void shmemi_items_get(const struct shmemi_op *o, uint32_t m0, uint32_t item, int two, struct shmemi_v16 own,
                                 struct shmemi_v16 v[4])
{
    struct shmemi_spin s = SHMEMI_SPIN_INIT;
    char *block = shmemi_sync_own(&o->t);
    uint64_t flag = shmemi_line_flag(o);
    uint32_t missing;

    for (;;) {
        missing = 0;
        SHMEMI_UNROLL
        for (uint32_t j = 0; j < 4; j++) {
            if (m0 + j == o->me)
                v[j] = own;
            else if (m0 + j < o->n && !shmemi_item_try(shmemi_lines_of(o, block, m0 + j) + 2 * item, two, flag, &v[j]))
                missing = m0 + j + 1;
        }
        if (!missing)
            break;
        shmemi_spin_step(&s, o->call, shmemi_op_world(o, missing - 1), block, 0, SHMEM_CMP_EQ, flag >> 32);
    }
    shmemi_spin_done(&s);
}

SHMEMI_DEV void shmemi_reduce_lines(struct shmemi_op *o, enum shmemi_red_kind kind, enum shmemi_red_op op, char *dest,
                                    const char *source, uint64_t len)
{
    struct shmemi_v16 v[4], acc, own;

    shmemi_lines_send(o, source, 0, len);
    if (dest == source)
        shmemi_group_sync(o->scope); /* nobody stores there before all of it is sent */
    SHMEMI_ROLLED
    for (uint32_t item = o->rank; (uint64_t)item * 16 < len; item += o->size) {
        uint64_t left = len - (uint64_t)item * 16;
        uint32_t bytes = left < 16 ? (uint32_t)left : 16;

        own = shmemi_v16_in(source + (uint64_t)item * 16, bytes);
        acc = own;
        SHMEMI_ROLLED
        for (uint32_t m0 = 0; m0 < o->n; m0 += 4) {
            shmemi_items_get(o, m0, item, bytes > 8, own, v);
            SHMEMI_UNROLL
            for (uint32_t j = 0; j < 4; j++)
                if (m0 + j < o->n)
                    acc = m0 + j ? shmemi_red16(op, kind, acc, v[j]) : v[j];
        }
        shmemi_v16_out(dest + (uint64_t)item * 16, acc, bytes);
    }
    shmemi_op_met(o);
}

/*
 * Each reads the others' arrays.  Where source and dest are one, they read a copy of a piece at a time, each with an epoch of its own.
 */
SHMEMI_DEV void shmemi_reduce_long(struct shmemi_op *o, enum shmemi_red_kind kind, enum shmemi_red_op op, char *dest,
                                   const char *source, uint64_t len)
{
    int in_place = dest == source;

    SHMEMI_ROLLED
    for (uint64_t done = 0, piece; done < len; done += piece) {
        const char *from = source;

        piece = in_place && len - done > SHMEMI_SYNC_SCRATCH ? SHMEMI_SYNC_SCRATCH : len - done;
        if (in_place) {
            char *stage = shmemi_sync_own(&o->t) + shmemi_sync_scratch_off(o->n) + (o->epoch & 1) * SHMEMI_SYNC_SCRATCH;

            shmemi_copy(stage, dest + done, piece, o->rank, o->size);
            from = stage;
        }
        shmemi_op_meet(o, SHMEMI_SYNC_POSTED);
        shmemi_reduce_pull(kind, op, &o->t, dest + done, from, piece, o->rank, o->size, o->call);
        if (done + piece < len)
            o->epoch++;
    }
    if (!in_place) {
        o->epoch++;
        shmemi_op_meet(o, SHMEMI_SYNC_RELAXED); /* everybody has read: source may change */
    }
}

SHMEMI_DEV int shmemi_dev_reduce(enum shmemi_scope scope, shmem_team_t team, enum shmemi_red_kind kind,
                                 enum shmemi_red_op op, void *dest, const void *source, uint64_t nelems)
{
    uint64_t len = nelems * shmemi_red_size(kind);
    struct shmemi_op o;

    if (SHMEMI_UNLIKELY(shmemi_team_is_far(team)))
        return shmemi_reduce_nodes(scope, team, kind, op, dest, source, len);
    o = shmemi_op_begin(scope, team, SHMEMI_CALL_REDUCE);
    if (len == 0)
        shmemi_op_meet(&o, SHMEMI_SYNC_RELAXED);
    else if (len <= shmemi_sync_message(o.n))
        shmemi_reduce_lines(&o, kind, op, (char *)dest, (const char *)source, len);
    else
        shmemi_reduce_long(&o, kind, op, (char *)dest, (const char *)source, len);
    shmemi_op_end(&o);
    shmemi_group_sync(scope);
    return 0;
}

#endif
#endif
