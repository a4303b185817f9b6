/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll_op.h - one collective operation of kernels: its epoch, how its members meet, and messages by lines.
 *
 * Messages of up to shmemi_sync_message() bytes go by lines: 8 data bytes and their flags in one store, so that the data is its own
 * signal and no fence is needed.  The NIC writes lines for members of other nodes inline, several in a work
 * request, and may do so in any order.  Lines of consecutive operations use two buffers in turn; a member that may be two
 * operations ahead waits until the others have finished with a buffer (struct shmemi_sync_chan.safe, acks).
 */
#ifndef SHMEM_DEVICE_COLL_OP_H
#define SHMEM_DEVICE_COLL_OP_H

#include "reduce.h"
#include "sync.h"

#ifdef SHMEMI_DEVICE_CODE

/* One collective, as a thread sees it. */
struct shmemi_op {
    struct shmemi_dev_team t;
    uint64_t epoch, safe;
    enum shmemi_scope scope;
    uint32_t n, me, rank, size, call;
};

/* All members have begun this epoch: so they have completed the one before. */
SHMEMI_DEV void shmemi_op_met(struct shmemi_op *o)
{
    o->safe = o->epoch - 1;
}

/* Of a team whose members are all near. */
SHMEMI_DEV_LARGE void shmemi_op_meet(struct shmemi_op *o, enum shmemi_sync_kind kind)
{
    uint32_t servers = shmemi_sync_servers(o->scope);

    shmemi_group_sync(o->scope);
    if (o->rank < servers)
        shmemi_sync_meet(o->scope, &o->t, 0, o->epoch, kind, o->rank, servers, o->call);
    shmemi_group_sync(o->scope);
    shmemi_op_met(o);
}

/* Everybody has completed the operation before the last: its buffers are free again. */
SHMEMI_DEV void shmemi_op_wait_safe(struct shmemi_op *o)
{
    if (o->safe + 2 >= o->epoch)
        return;
    /* Only behind a broadcast, which tells its receivers nothing about each other. */
    SHMEMI_ROLLED
    for (uint32_t i = o->rank; i < o->n; i += o->size)
        if (i != o->me)
            shmemi_sync_await(o->scope, shmemi_sync_ack(shmemi_sync_own(&o->t), o->n, i), o->epoch - 2,
                              SHMEMI_SYNC_RELAXED, shmemi_dev_team_world(&o->t, (int)i), o->call);
    shmemi_group_sync(o->scope);
    o->safe = o->epoch - 2;
}

/* Whether the buffers are free is the caller's next question. */
SHMEMI_DEV void shmemi_op_open(struct shmemi_op *o, enum shmemi_scope scope, shmem_team_t team, uint32_t call)
{
    struct shmemi_sync_chan *c;

    o->t = shmemi_dev_team_get(team, call);
    o->n = (uint32_t)o->t.n_pes;
    o->me = (uint32_t)o->t.my_pe;
    o->scope = scope;
    o->rank = shmemi_rank(scope);
    o->size = shmemi_size(scope);
    o->call = call;
    c = shmemi_sync_chan_of(&o->t, 0);
    shmemi_group_sync(scope); /* the counters of the call before, and what the group wrote to source */
    o->epoch = c->epoch + 1;
    o->safe = c->safe;
}

SHMEMI_DEV_LARGE struct shmemi_op shmemi_op_begin(enum shmemi_scope scope, shmem_team_t team, uint32_t call)
{
    struct shmemi_op o;

    shmemi_op_open(&o, scope, team, call);
    shmemi_op_wait_safe(&o);
    return o;
}

SHMEMI_DEV void shmemi_op_close(struct shmemi_op *o)
{
    struct shmemi_sync_chan *c = shmemi_sync_chan_of(&o->t, 0);

    shmemi_group_sync(o->scope); /* all have read the counters, and written their part of dest */
    if (o->rank == 0) {
        c->epoch = o->epoch;
        c->safe = o->safe;
    }
}

SHMEMI_DEV_LARGE void shmemi_op_end(struct shmemi_op *o)
{
    shmemi_op_close(o);
}

SHMEMI_DEV int shmemi_op_world(const struct shmemi_op *o, uint32_t member)
{
    return shmemi_dev_team_world(&o->t, (int)member);
}

/* ---- lines ---- */

SHMEMI_DEV uint32_t shmemi_lines(uint64_t len)
{
    return (uint32_t)((len + 7) / 8);
}

/* Odd, so never that of memory still zero. */
SHMEMI_DEV uint64_t shmemi_line_flag(const struct shmemi_op *o)
{
    return (uint64_t)(uint32_t)(2 * o->epoch + 1) << 32;
}

/* The lines of member `from` in `block`. */
SHMEMI_DEV struct shmemi_sync_line *shmemi_lines_of(const struct shmemi_op *o, char *block, uint32_t from)
{
    uint64_t off = ((o->epoch & 1) * o->n + from) * 2 * shmemi_sync_message(o->n);

    return (struct shmemi_sync_line *)(void *)(block + shmemi_sync_lines_off(o->n) + off);
}

SHMEMI_DEV void shmemi_line_put(struct shmemi_sync_line *l, uint64_t data, uint64_t flag)
{
    shmemi_st_pair(l->half, (uint32_t)data | flag, data >> 32 | flag);
}

SHMEMI_DEV int shmemi_line_try(struct shmemi_sync_line *l, uint64_t flag, uint64_t *data_out)
{
    uint64_t a, b;

    shmemi_ld_pair(l->half, &a, &b);
    *data_out = (uint32_t)a | b << 32;
    return ((a ^ flag) >> 32 | (b ^ flag) >> 32) == 0;
}

SHMEMI_DEV uint64_t shmemi_line_get(const struct shmemi_op *o, struct shmemi_sync_line *l, uint32_t from)
{
    struct shmemi_spin s = SHMEMI_SPIN_INIT;
    uint64_t data;

    while (!shmemi_line_try(l, shmemi_line_flag(o), &data))
        shmemi_spin_step(&s, o->call, shmemi_op_world(o, from), l, l->half[0] >> 32, SHMEM_CMP_EQ,
                         shmemi_line_flag(o) >> 32);
    shmemi_spin_done(&s);
    return data;
}

/* The same in a team of several nodes. */
SHMEMI_DEV_LARGE uint64_t shmemi_nodes_line(const struct shmemi_op *o, struct shmemi_sync_line *l, uint32_t from)
{
    struct shmemi_spin s = SHMEMI_SPIN_INIT;
    uint64_t data;

    while (!shmemi_line_try(l, shmemi_line_flag(o), &data))
        shmemi_apart_step(&s, o->call, shmemi_op_world(o, from), l, l->half[0] >> 32, SHMEM_CMP_EQ,
                          shmemi_line_flag(o) >> 32);
    shmemi_apart_done(&s);
    return data;
}

SHMEMI_DEV uint32_t shmemi_line_bytes(uint64_t len, uint32_t line)
{
    uint64_t left = len - (uint64_t)line * 8;

    return left < 8 ? (uint32_t)left : 8;
}

#define SHMEMI_LINES_POST (SHMEMI_SQ_INLINE_MAX / 16) /* lines of one work request */

/* Lines [first, first + SHMEMI_LINES_POST) of the `len` bytes at data, to those of member `from` at `to`, by the NIC. */
SHMEMI_DEV_LARGE void shmemi_lines_post(const struct shmemi_op *o, uint32_t to, uint32_t from, uint32_t first,
                                        const char *data, uint64_t len)
{
    struct shmemi_sync_line *at = shmemi_lines_of(o, shmemi_sync_own(&o->t), from) + first, l[SHMEMI_LINES_POST];
    uint32_t n = shmemi_lines(len) - first;
    uint64_t flag = shmemi_line_flag(o);

    n = n < SHMEMI_LINES_POST ? n : SHMEMI_LINES_POST;
    SHMEMI_ROLLED
    for (uint32_t i = 0; i < n; i++) {
        uint64_t v = shmemi_word_in(data + (uint64_t)(first + i) * 8, shmemi_line_bytes(len, first + i));

        l[i].half[0] = (uint32_t)v | flag;
        l[i].half[1] = v >> 32 | flag;
    }
    shmemi_far_row_put(0, at, l, n * 16, 0, shmemi_op_world(o, to), o->call);
}

/* Line k of all that go to the other members: its member and its number; the lines of a member follow one another. */
SHMEMI_DEV uint32_t shmemi_line_to(const struct shmemi_op *o, uint32_t k, uint32_t lines, uint32_t *line_out)
{
    uint32_t p = k / lines, to = o->me + 1 + p;

    *line_out = k - p * lines;
    return to < o->n ? to : to - o->n;
}

/* To every other member, all of them near: `len` bytes from source + member * step. */
SHMEMI_DEV_LARGE void shmemi_lines_send(const struct shmemi_op *o, const char *source, uint64_t step, uint64_t len)
{
    uint32_t lines = shmemi_lines(len), total = (o->n - 1) * lines;

    SHMEMI_ROLLED
    for (uint32_t k = o->rank; k < total; k += o->size) {
        uint32_t p = k / lines, line = k - p * lines, to = o->me + 1 + p;

        to = to < o->n ? to : to - o->n;
        shmemi_line_put(shmemi_lines_of(o, shmemi_sync_of(&o->t, (int)to, o->call), o->me) + line,
                        shmemi_word_in(source + to * step + (uint64_t)line * 8, shmemi_line_bytes(len, line)),
                        shmemi_line_flag(o));
    }
}

/* The same in a team of several nodes. */
SHMEMI_DEV_LARGE void shmemi_lines_send_nodes(const struct shmemi_op *o, const char *source, uint64_t step, uint64_t len)
{
    uint32_t lines = shmemi_lines(len), posts = (lines + SHMEMI_LINES_POST - 1) / SHMEMI_LINES_POST, line;

    SHMEMI_ROLLED
    for (uint32_t k = o->rank; k < (o->n - 1) * posts; k += o->size) {
        uint32_t to = shmemi_line_to(o, k, posts, &line);

        if (shmemi_sync_is_far(&o->t, to))
            shmemi_lines_post(o, to, o->me, line * SHMEMI_LINES_POST, source + to * step, len);
    }
    SHMEMI_ROLLED
    for (uint32_t k = o->rank; k < (o->n - 1) * lines; k += o->size) {
        uint32_t to = shmemi_line_to(o, k, lines, &line);

        if (!shmemi_sync_is_far(&o->t, to))
            shmemi_line_put(shmemi_lines_of(o, shmemi_sync_of(&o->t, (int)to, o->call), o->me) + line,
                            shmemi_word_in(source + to * step + (uint64_t)line * 8, shmemi_line_bytes(len, line)),
                            shmemi_line_flag(o));
    }
}

/* Members of several nodes meet. */
SHMEMI_DEV_LARGE void shmemi_nodes_meet(struct shmemi_op *o, enum shmemi_sync_kind kind)
{
    uint32_t servers = shmemi_sync_servers(o->scope);

    shmemi_group_sync(o->scope);
    if (o->rank < servers)
        (void)shmemi_sync_nodes(&o->t, 0, o->epoch, kind, o->rank, servers, o->call);
    shmemi_group_sync(o->scope);
    shmemi_op_met(o);
}

/* shmemi_op_begin of such a team.  To meet is cheaper than messages from each to each, and an operation of its own. */
SHMEMI_DEV_LARGE void shmemi_nodes_begin(struct shmemi_op *o, enum shmemi_scope scope, shmem_team_t team, uint32_t call)
{
    shmemi_op_open(o, scope, team, call);
    if (o->safe + 2 >= o->epoch)
        return;
    shmemi_nodes_meet(o, SHMEMI_SYNC_RELAXED);
    o->epoch++;
}

/* Has the team members that only the NIC reaches? */
SHMEMI_DEV int shmemi_team_is_far(shmem_team_t team)
{
    struct shmemi_dev_team t;

    if (SHMEMI_LIKELY(!shmemi_dev_nic()))
        return 0;
    t = shmemi_dev_team_find(team);
    return t.n_pes && t.far;
}

/* From every other member: `len` bytes to dest + member * step.  far: of a team of several nodes. */
SHMEMI_DEV void shmemi_lines_receive(const struct shmemi_op *o, char *dest, uint64_t step, uint64_t len, int far)
{
    uint32_t lines = shmemi_lines(len), total = (o->n - 1) * lines;

    SHMEMI_ROLLED
    for (uint32_t k = o->rank; k < total; k += o->size) {
        uint32_t p = k / lines, line = k - p * lines, from = o->me + 1 + p;
        struct shmemi_sync_line *at;

        from = from < o->n ? from : from - o->n;
        at = shmemi_lines_of(o, shmemi_sync_own(&o->t), from) + line;
        shmemi_word_out(dest + from * step + (uint64_t)line * 8, far ? shmemi_nodes_line(o, at, from) : shmemi_line_get(o, at, from),
                        shmemi_line_bytes(len, line));
    }
}

#endif
#endif
