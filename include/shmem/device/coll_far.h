/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll_far.h - what collectives do in teams of several nodes, beyond lines: data put in place by the NIC with the flag
 * behind it in the same queue, broadcasts that cross to each node once, reductions that fetch what they combine.
 *
 * It is apart from what members of one node do (coll.h), so that code keeps its registers; where nothing is copied, behind
 * pointers.
 */
#ifndef SHMEM_DEVICE_COLL_FAR_H
#define SHMEM_DEVICE_COLL_FAR_H

#include "coll_op.h"
#include "copy.h"
#include "rma.h"

#ifdef SHMEMI_DEVICE_CODE

/*
 * A copy of their own: a function that both they and the near path call would have to save registers for either.  Links
 * between nodes are no faster than this loop.
 */
SHMEMI_DEV_LARGE void shmemi_nodes_copy(char *to, const char *from, uint64_t len, uint32_t rank, uint32_t size)
{
    uint64_t n = (((uintptr_t)to | (uintptr_t)from) & 15) == 0 ? len / 16 : 0;

    SHMEMI_ROLLED
    for (uint64_t i = rank; i < n; i += (uint64_t)size * 4) {
        struct shmemi_v16 v[4];

        SHMEMI_UNROLL
        for (uint32_t k = 0; k < 4; k++)
            if (i + (uint64_t)k * size < n)
                v[k] = shmemi_ld16(from + (i + (uint64_t)k * size) * 16);
        SHMEMI_UNROLL
        for (uint32_t k = 0; k < 4; k++)
            if (i + (uint64_t)k * size < n)
                shmemi_st16(to + (i + (uint64_t)k * size) * 16, v[k]);
    }
    SHMEMI_ROLLED
    for (uint64_t i = n * 16 + rank; i < len; i += size)
        to[i] = from[i];
}

/* To every member that only the NIC reaches: source + member * step to `dest` there.  Flags follow. */
SHMEMI_DEV_LARGE void shmemi_puts_far(const struct shmemi_op *o, char *dest, const char *source, uint64_t step, uint64_t len)
{
    SHMEMI_ROLLED
    for (uint32_t p = 1 + o->rank; p < o->n; p += o->size) {
        uint32_t to = o->me + p < o->n ? o->me + p : o->me + p - o->n;

        if (!shmemi_sync_is_far(&o->t, to))
            continue;
        shmemi_apart_check(dest, len, shmemi_op_world(o, to), o->call);
        shmemi_far_row_put(0, dest, source + to * step, len, 0, shmemi_op_world(o, to), o->call);
    }
}

/* What was put in place has left the source. */
SHMEMI_DEV_LARGE void shmemi_puts_done(const struct shmemi_op *o)
{
    shmemi_group_sync(o->scope);
    shmemi_far_quiet_row(0, 0, o->rank, o->size, o->call);
    shmemi_group_sync(o->scope);
}

/* One element after the other, inline; distances in bytes. */
SHMEMI_DEV_LARGE void shmemi_strided_far(const struct shmemi_op *o, uint32_t to, char *dest, uint64_t dst, const char *source,
                                         uint64_t sst, uint64_t n, uint32_t elem)
{
    shmemi_apart_check(dest, (n - 1) * dst + elem, shmemi_op_world(o, to), o->call);
    SHMEMI_ROLLED
    for (uint64_t i = o->rank; i < n; i += o->size)
        shmemi_far_row_put(0, dest + i * dst, source + i * sst, elem, 0, shmemi_op_world(o, to), o->call);
}

/* ---- broadcast: root to the node heads along the tree, whose numbers count from its own node; each to its node ---- */

struct shmemi_cast {
    struct shmemi_nodes s;
    uint32_t root, root_node, node; /* node: own, counted from the root's */
    uint32_t head, up; /* who has it in this node first; from whom this member gets it */
    uint32_t child, children;
};

/* Who gets it first in the node that is `node` behind the root's. */
SHMEMI_DEV uint32_t shmemi_cast_head(const struct shmemi_cast *c, uint32_t node)
{
    uint32_t at = c->root_node + node;

    return node ? shmemi_node_head(&c->s, at < c->s.map->n_nodes ? at : at - c->s.map->n_nodes) : c->root;
}

SHMEMI_DEV struct shmemi_cast shmemi_cast_of(const struct shmemi_op *o, uint32_t root)
{
    struct shmemi_cast c;
    uint32_t own;

    c.s = shmemi_nodes_of(&o->t);
    own = c.s.map->my_node;
    c.root = root;
    c.root_node = c.s.node_of[root];
    c.node = own >= c.root_node ? own - c.root_node : own + c.s.map->n_nodes - c.root_node;
    c.head = shmemi_cast_head(&c, c.node);
    c.up = c.head;
    c.child = c.children = 0;
    if (o->me == c.head) {
        c.up = c.node ? shmemi_cast_head(&c, (c.node - 1) / c.s.map->radix) : root;
        c.children = shmemi_node_children(c.s.map, c.node, &c.child);
    }
    return c;
}

/* Own node, but for this member: lines of the root, or the data itself. */
SHMEMI_DEV_LARGE void shmemi_cast_near(const struct shmemi_op *o, const struct shmemi_cast *c, char *dest, const char *data,
                                       uint64_t len, int by_lines)
{
    uint32_t node = c->s.map->my_node, here = shmemi_node_size(&c->s, node);

    SHMEMI_ROLLED
    for (uint32_t k = 0; k < here; k++) {
        uint32_t to = c->s.members[c->s.first[node] + k];

        if (to == o->me || shmemi_sync_is_far(&o->t, to))
            continue;
        if (!by_lines) {
            shmemi_nodes_copy(shmemi_apart_remote(dest, len, shmemi_op_world(o, to), o->call), data, len, o->rank, o->size);
            continue;
        }
        SHMEMI_ROLLED
        for (uint32_t line = o->rank; line < shmemi_lines(len); line += o->size)
            shmemi_line_put(shmemi_lines_of(o, shmemi_sync_of(&o->t, (int)to, o->call), c->root) + line,
                            shmemi_word_in(data + (uint64_t)line * 8, shmemi_line_bytes(len, line)), shmemi_line_flag(o));
    }
}

/* To the heads of child nodes. */
SHMEMI_DEV_LARGE void shmemi_cast_down(const struct shmemi_op *o, const struct shmemi_cast *c, char *dest, const char *data,
                                       uint64_t len, int by_lines)
{
    uint32_t posts = by_lines ? (shmemi_lines(len) + SHMEMI_LINES_POST - 1) / SHMEMI_LINES_POST : 1;

    SHMEMI_ROLLED
    for (uint32_t k = o->rank; k < c->children * posts; k += o->size) {
        uint32_t to = shmemi_cast_head(c, c->child + k / posts);

        if (by_lines) {
            shmemi_lines_post(o, to, c->root, k % posts * SHMEMI_LINES_POST, data, len);
            continue;
        }
        shmemi_apart_check(dest, len, shmemi_op_world(o, to), o->call);
        shmemi_far_row_put(0, dest, data, len, SHMEMI_SQ_DEFER, shmemi_op_world(o, to), o->call); /* the flag follows */
        shmemi_sync_tell(&o->t, 0, to, o->epoch, o->call);
    }
}

/* Flags of what was stored in the own node's members. */
SHMEMI_DEV_LARGE void shmemi_cast_tell(const struct shmemi_op *o, const struct shmemi_cast *c)
{
    uint32_t node = c->s.map->my_node, servers = shmemi_sync_servers(o->scope);

    if (o->rank >= servers)
        return;
    SHMEMI_FENCE_ACQREL(); /* pairs with the acquire in shmemi_cast_take */
    SHMEMI_ROLLED
    for (uint32_t k = o->rank; k < shmemi_node_size(&c->s, node); k += servers) {
        uint32_t to = c->s.members[c->s.first[node] + k];

        if (to != o->me)
            shmemi_sync_tell(&o->t, 0, to, o->epoch, o->call);
    }
}

SHMEMI_DEV_LARGE void shmemi_cast_take(const struct shmemi_op *o, const struct shmemi_cast *c, char *dest, uint64_t len, int by_lines)
{
    struct shmemi_sync_line *from = shmemi_lines_of(o, shmemi_sync_own(&o->t), c->root);

    if (!by_lines && o->rank == 0)
        shmemi_sync_hear(&o->t, 0, c->up, o->epoch, SHMEMI_SYNC_POSTED, 0, o->call);
    SHMEMI_ROLLED
    for (uint32_t line = o->rank; by_lines && line < shmemi_lines(len); line += o->size)
        shmemi_word_out(dest + (uint64_t)line * 8, shmemi_nodes_line(o, from + line, c->up), shmemi_line_bytes(len, line));
    shmemi_group_sync(o->scope);
}

SHMEMI_DEV_LARGE void shmemi_broadcast_far(struct shmemi_op *o, uint32_t root, char *dest, const char *source, uint64_t len)
{
    struct shmemi_cast c = shmemi_cast_of(o, root);
    int by_lines = len <= shmemi_sync_message(o->n);
    const char *data = o->me == root ? source : dest;

    if (o->me != root)
        shmemi_cast_take(o, &c, dest, len, by_lines);
    if (o->me != c.head)
        return;
    shmemi_cast_down(o, &c, dest, data, len, by_lines);
    shmemi_cast_near(o, &c, dest, data, len, by_lines);
    if (by_lines)
        return;
    shmemi_group_sync(o->scope); /* all of it is stored */
    shmemi_cast_tell(o, &c);
    if (c.children)
        shmemi_puts_done(o);
}

/* ---- the collectives of such teams ---- */

SHMEMI_DEV int shmemi_nodes_end(struct shmemi_op *o)
{
    shmemi_op_close(o);
    shmemi_group_sync(o->scope);
    return 0;
}

/* To the members that stores reach, and this one: source + member * step to dest there. */
SHMEMI_DEV_LARGE void shmemi_puts_near(const struct shmemi_op *o, char *dest, const char *source, uint64_t step, uint64_t len)
{
    SHMEMI_ROLLED
    for (uint32_t p = 0; p < o->n; p++) {
        uint32_t to = o->me + p < o->n ? o->me + p : o->me + p - o->n;

        if (!shmemi_sync_is_far(&o->t, to))
            shmemi_nodes_copy(shmemi_apart_remote(dest, len, shmemi_op_world(o, to), o->call), source + to * step, len, o->rank, o->size);
    }
}

/* The data of a collective to every member, and their data has come. */
SHMEMI_DEV_LARGE void shmemi_nodes_puts(struct shmemi_op *o, char *dest, const char *source, uint64_t step, uint64_t len)
{
    if (len) {
        shmemi_puts_near(o, dest, source, step, len);
        shmemi_puts_far(o, dest, source, step, len);
    }
    shmemi_nodes_meet(o, SHMEMI_SYNC_POSTED);
    if (len)
        shmemi_puts_done(o);
}

/* fcollect and alltoall, as shmemi_exchange. */
SHMEMI_DEV_LARGE int shmemi_nodes_exchange(enum shmemi_scope scope, shmem_team_t team, char *dest, const char *source,
                                           uint64_t step, uint64_t len, uint32_t call)
{
    struct shmemi_op o;

    shmemi_nodes_begin(&o, scope, team, call);
    if (len && len <= shmemi_sync_message(o.n)) {
        shmemi_lines_send_nodes(&o, source, step, len);
        shmemi_nodes_copy(dest + o.me * len, source + o.me * step, len, o.rank, o.size);
        shmemi_lines_receive(&o, dest, len, len, 1);
        shmemi_op_met(&o);
    } else {
        shmemi_nodes_puts(&o, dest + o.me * len, source, step, len);
    }
    return shmemi_nodes_end(&o);
}

SHMEMI_DEV_LARGE void shmemi_nodes_strided(char *to, uint64_t to_step, const char *from, uint64_t from_step, uint64_t n,
                                          uint32_t elem, const struct shmemi_op *o)
{
    SHMEMI_ROLLED
    for (uint64_t i = o->rank; i < n; i += o->size)
        shmemi_copy_element(to + i * to_step, from + i * from_step, elem);
}

SHMEMI_DEV_LARGE int shmemi_nodes_alltoalls(enum shmemi_scope scope, shmem_team_t team, char *dest, const char *source,
                                            int64_t dst, int64_t sst, uint64_t nelems, uint32_t elem)
{
    uint64_t to_step = (uint64_t)dst * elem, from_step = (uint64_t)sst * elem;
    struct shmemi_op o;

    if (dst < 1 || sst < 1)
        shmemi_dev_fail(SHMEMI_DEV_BAD_VALUE, SHMEMI_CALL_ALLTOALLS, (uint64_t)(dst < sst ? dst : sst), 0, 0);

    shmemi_nodes_begin(&o, scope, team, SHMEMI_CALL_ALLTOALLS);
    SHMEMI_ROLLED
    for (uint32_t p = 0; nelems && p < o.n; p++) {
        uint32_t to = o.me + p < o.n ? o.me + p : o.me + p - o.n;
        char *there = dest + o.me * nelems * to_step;
        const char *block = source + to * nelems * from_step;

        if (shmemi_sync_is_far(&o.t, to))
            shmemi_strided_far(&o, to, there, to_step, block, from_step, nelems, elem);
        else
            shmemi_nodes_strided(shmemi_apart_remote(there, (nelems - 1) * to_step + elem, shmemi_op_world(&o, to),
                                                   SHMEMI_CALL_ALLTOALLS),
                                 to_step, block, from_step, nelems, elem, &o);
    }
    shmemi_nodes_meet(&o, SHMEMI_SYNC_POSTED);
    return shmemi_nodes_end(&o);
}

/* Where this member's part of a collect begins: all bytes of members come by lines, into the owner's scratch. */
SHMEMI_DEV uint64_t shmemi_collect_before(struct shmemi_op *o, uint64_t len, int far)
{
    uint64_t *counts = (uint64_t *)(void *)(shmemi_sync_own(&o->t) + shmemi_sync_counts_off(o->n)), before = 0;

    if (o->rank == 0)
        counts[o->me] = len;
    shmemi_lines_receive(o, (char *)counts, 8, 8, far);
    shmemi_group_sync(o->scope);
    SHMEMI_ROLLED
    for (uint32_t i = 0; i < o->me; i++)
        before += counts[i];
    shmemi_op_met(o);
    return before;
}

SHMEMI_DEV_LARGE int shmemi_nodes_collect(enum shmemi_scope scope, shmem_team_t team, char *dest, const char *source, uint64_t len)
{
    uint64_t mine = len;
    struct shmemi_op o;

    shmemi_nodes_begin(&o, scope, team, SHMEMI_CALL_COLLECT);
    shmemi_lines_send_nodes(&o, (const char *)&mine, 0, 8);
    dest += shmemi_collect_before(&o, len, 1);
    o.epoch++;
    shmemi_nodes_puts(&o, dest, source, 0, len);
    return shmemi_nodes_end(&o);
}

SHMEMI_DEV_LARGE int shmemi_nodes_broadcast(enum shmemi_scope scope, shmem_team_t team, char *dest, const char *source,
                                            uint64_t len, int root)
{
    struct shmemi_op o;

    shmemi_nodes_begin(&o, scope, team, SHMEMI_CALL_BROADCAST);
    if ((uint32_t)root >= o.n)
        shmemi_dev_fail(SHMEMI_DEV_BAD_PE, SHMEMI_CALL_BROADCAST, (uint64_t)(int64_t)root, o.n, 0);
    if (o.me == (uint32_t)root && dest != source)
        shmemi_nodes_copy(dest, source, len, o.rank, o.size);
    shmemi_broadcast_far(&o, (uint32_t)root, dest, source, len);
    return shmemi_nodes_end(&o);
}

/* ---- reductions: each member combines a slice of all arrays, in the order of their numbers, and gives it to all ---- */

/* Any operator on any kind, chosen at run time: one copy for all of them. */
SHMEMI_DEV_LARGE struct shmemi_v16 shmemi_nodes_red16(enum shmemi_red_op op, enum shmemi_red_kind kind, struct shmemi_v16 x,
                                                      struct shmemi_v16 y)
{
    return shmemi_red16(op, kind, x, y);
}

#define SHMEMI_FETCH_MOST 16u /* members whose pieces are in the scratch at once */

struct shmemi_slice {
    enum shmemi_red_kind kind;
    enum shmemi_red_op op;
    const char *source;
    char *dest, *stage; /* stage: part 0 what has been combined, then one for each member fetched */
    uint64_t at, len, part; /* of the piece: from the arrays' beginning, bytes; bytes of a part of the stage */
};

/* Pieces of members [m0, m1) that are far, into the stage. */
SHMEMI_DEV_LARGE void shmemi_slice_fetch(const struct shmemi_op *o, const struct shmemi_slice *s, uint32_t m0, uint32_t m1)
{
    shmemi_group_sync(o->scope); /* the parts of the stage are free */
    SHMEMI_ROLLED
    for (uint32_t m = m0 + o->rank; m < m1; m += o->size) {
        if (m == o->me || !shmemi_sync_is_far(&o->t, m))
            continue;
        shmemi_far_row_get(0, s->stage + (uint64_t)(m - m0 + 1) * s->part, s->source + s->at, s->len,
                                 shmemi_op_world(o, m), o->call);
    }
    shmemi_group_sync(o->scope);
    shmemi_far_quiet_row(0, 0, o->rank, o->size, o->call);
    SHMEMI_FENCE_ACQREL_GPU(); /* pairs with the exchange in poll: it may have been another block that saw the queue done */
    shmemi_group_sync(o->scope);
}

SHMEMI_DEV const char *shmemi_slice_of(const struct shmemi_op *o, const struct shmemi_slice *s, uint32_t m, uint32_t m0)
{
    if (m == o->me)
        return s->source + s->at;
    if (shmemi_sync_is_far(&o->t, m))
        return s->stage + (uint64_t)(m - m0 + 1) * s->part;
    return shmemi_apart_remote(s->source + s->at, s->len, shmemi_op_world(o, m), o->call);
}

/* Members [m0, m1) behind what is in part 0, there or, the last time, into dest.  A thread keeps to its vectors. */
SHMEMI_DEV_LARGE void shmemi_slice_combine(const struct shmemi_op *o, const struct shmemi_slice *s, uint32_t m0, uint32_t m1)
{
    char *to = m1 == o->n ? s->dest + s->at : s->stage;

    SHMEMI_ROLLED
    for (uint64_t i = (uint64_t)o->rank * 16; i < s->len; i += (uint64_t)o->size * 16) {
        uint32_t bytes = s->len - i < 16 ? (uint32_t)(s->len - i) : 16;
        struct shmemi_v16 acc = shmemi_v16_in((m0 ? s->stage : shmemi_slice_of(o, s, 0, 0)) + i, bytes);

        SHMEMI_ROLLED
        for (uint32_t m = m0 ? m0 : 1; m < m1; m++)
            acc = shmemi_nodes_red16(s->op, s->kind, acc, shmemi_v16_in(shmemi_slice_of(o, s, m, m0) + i, bytes));
        shmemi_v16_out(to + i, acc, bytes);
    }
}

/* Own slice, `len` bytes from `at` on, into dest. */
SHMEMI_DEV_LARGE void shmemi_slice_reduce(const struct shmemi_op *o, struct shmemi_slice *s, uint64_t at, uint64_t len)
{
    uint32_t most = o->n < SHMEMI_FETCH_MOST ? o->n : SHMEMI_FETCH_MOST;

    s->part = 2 * SHMEMI_SYNC_SCRATCH / (most + 1) & ~(uint64_t)127;
    SHMEMI_ROLLED
    for (uint64_t done = 0; done < len; done += s->len) {
        s->at = at + done;
        s->len = len - done < s->part ? len - done : s->part;
        SHMEMI_ROLLED
        for (uint32_t m0 = 0; m0 < o->n; m0 += most) {
            uint32_t m1 = m0 + most < o->n ? m0 + most : o->n;

            shmemi_slice_fetch(o, s, m0, m1);
            shmemi_slice_combine(o, s, m0, m1);
        }
    }
}

/*
 * Nobody reads a slice but the member that combines it, and that one has read all of it before it gives any away, so
 * source and dest may be one array.
 */
SHMEMI_DEV_LARGE void shmemi_reduce_far(struct shmemi_op *o, enum shmemi_red_kind kind, enum shmemi_red_op op, char *dest,
                                        const char *source, uint64_t len)
{
    uint64_t slice = ((len + o->n - 1) / o->n + 15) & ~(uint64_t)15, at = slice * o->me, n;
    struct shmemi_slice s;

    s.kind = kind;
    s.op = op;
    s.source = source;
    s.dest = dest;
    s.stage = shmemi_sync_own(&o->t) + shmemi_sync_scratch_off(o->n);
    n = at >= len ? 0 : len - at < slice ? len - at : slice;
    shmemi_apart_check(source, len, shmemi_dev_state.my_pe, o->call);
    shmemi_nodes_meet(o, SHMEMI_SYNC_POSTED); /* all sources are ready */
    shmemi_slice_reduce(o, &s, at, n);
    shmemi_group_sync(o->scope);
    o->epoch++;
    shmemi_nodes_puts(o, dest + at, dest + at, 0, n);
}

/* By lines, one member after the other. */
SHMEMI_DEV_LARGE void shmemi_nodes_reduce_lines(struct shmemi_op *o, enum shmemi_red_kind kind, enum shmemi_red_op op, char *dest,
                                          const char *source, uint64_t len)
{
    struct shmemi_v16 acc = { 0, 0 }, v;

    shmemi_lines_send_nodes(o, source, 0, len);
    if (dest == source)
        shmemi_group_sync(o->scope); /* nobody stores there before all of it is sent */
    SHMEMI_ROLLED
    for (uint32_t item = o->rank; (uint64_t)item * 16 < len; item += o->size) {
        uint64_t left = len - (uint64_t)item * 16;
        uint32_t bytes = left < 16 ? (uint32_t)left : 16;

        SHMEMI_ROLLED
        for (uint32_t m = 0; m < o->n; m++) {
            struct shmemi_sync_line *from = shmemi_lines_of(o, shmemi_sync_own(&o->t), m) + 2 * item;

            if (m == o->me) {
                v = shmemi_v16_in(source + (uint64_t)item * 16, bytes);
            } else {
                v.x = shmemi_nodes_line(o, from, m);
                v.y = bytes > 8 ? shmemi_nodes_line(o, from + 1, m) : 0;
            }
            acc = m ? shmemi_nodes_red16(op, kind, acc, v) : v;
        }
        shmemi_v16_out(dest + (uint64_t)item * 16, acc, bytes);
    }
    shmemi_op_met(o);
}

SHMEMI_DEV_LARGE int shmemi_nodes_reduce(enum shmemi_scope scope, shmem_team_t team, enum shmemi_red_kind kind, enum shmemi_red_op op,
                                   char *dest, const char *source, uint64_t len)
{
    struct shmemi_op o;

    shmemi_nodes_begin(&o, scope, team, SHMEMI_CALL_REDUCE);
    if (len == 0)
        shmemi_nodes_meet(&o, SHMEMI_SYNC_RELAXED);
    else if (len <= shmemi_sync_message(o.n))
        shmemi_nodes_reduce_lines(&o, kind, op, dest, source, len);
    else
        shmemi_reduce_far(&o, kind, op, dest, source, len);
    return shmemi_nodes_end(&o);
}

#endif
#endif
