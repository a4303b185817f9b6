/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kernels.h - the bodies of the library's kernels, in the common subset: kernels.cu makes GPU code of them,
 * tests/fakecuda functions for the stand-in driver.
 */
#ifndef SHMEMI_CUDA_KERNELS_H
#define SHMEMI_CUDA_KERNELS_H

#include "kernel_args.h"

#include <shmem.h>
#include <shmem/device/amo.h>
#include <shmem/device/coll.h>
#include <shmem/device/wait.h>

#ifdef SHMEMI_DEVICE_CODE

/* One thread: an atomic operation on the word at dest, whose old value goes to out. */
SHMEMI_DEV void shmemi_k_amo_body(const struct shmemi_kernel_args *a)
{
    uint64_t old;

    if (a->size == 4)
        old = shmemi_dev_amo32((enum shmemi_dev_amo_op)a->op, (uint32_t *)(uintptr_t)a->dest, (uint32_t)a->value,
                               (uint32_t)a->cond);
    else
        old = shmemi_dev_amo64((enum shmemi_dev_amo_op)a->op, (uint64_t *)(uintptr_t)a->dest, a->value, a->cond);
    SHMEMI_ST_RLX((uint64_t *)(uintptr_t)a->out, old);
}

/* ---- one thread ---- */

/* What the stream did before is visible to who sees the signal. */
SHMEMI_DEV void shmemi_k_signal_body(const struct shmemi_kernel_args *a)
{
    uint64_t *word = (uint64_t *)(uintptr_t)a->dest;

    SHMEMI_FENCE_ACQREL();
    if (a->op == SHMEM_SIGNAL_SET)
        SHMEMI_ST_RLX(word, a->value);
    else
        (void)SHMEMI_ADD_RLX(word, a->value);
}

/* One element by value; its bytes are in value and cond. */
SHMEMI_DEV void shmemi_k_store_body(const struct shmemi_kernel_args *a)
{
    void *at = (void *)(uintptr_t)a->dest;

    switch (a->size) {
    case 1: *(uint8_t *)at = (uint8_t)a->value; break;
    case 2: *(uint16_t *)at = (uint16_t)a->value; break;
    case 4: SHMEMI_ST_RLX((uint32_t *)at, (uint32_t)a->value); break;
    default:
        SHMEMI_ST_RLX((uint64_t *)at, a->value);
        if (a->size == 16)
            SHMEMI_ST_RLX((uint64_t *)at + 1, a->cond);
    }
}

SHMEMI_DEV void shmemi_k_wait_body(const struct shmemi_kernel_args *a)
{
    (void)shmemi_dev_wait_until(SHMEMI_THREAD, a->kind, (const void *)(uintptr_t)a->dest, (int)a->op, a->value,
                                SHMEMI_CALL_LIBRARY);
}

/* One-sided calls that only the NIC can do. */
SHMEMI_DEV void shmemi_k_far_body(const struct shmemi_kernel_args *a)
{
    const shmem_ctx_t ctx = SHMEM_CTX_DEFAULT;
    void *dest = (void *)(uintptr_t)a->dest;
    const void *source = (const void *)(uintptr_t)a->source;
    uint64_t value[2] = { a->value, a->cond };
    int put = a->coll == SHMEMI_KERNEL_IPUT;

    switch (a->coll) {
    case SHMEMI_KERNEL_PUT: shmemi_dev_put(SHMEMI_THREAD, ctx, dest, source, a->bytes, a->root, SHMEMI_CALL_LIBRARY); break;
    case SHMEMI_KERNEL_GET: shmemi_dev_get(SHMEMI_THREAD, ctx, dest, source, a->bytes, a->root, SHMEMI_CALL_LIBRARY); break;
    case SHMEMI_KERNEL_P: shmemi_dev_put(SHMEMI_THREAD, ctx, dest, value, a->size, a->root, SHMEMI_CALL_LIBRARY); break;
    case SHMEMI_KERNEL_IPUT:
    case SHMEMI_KERNEL_IGET:
        shmemi_dev_strided(SHMEMI_THREAD, put, ctx, dest, source, (int64_t)a->value, (int64_t)a->cond, 1, a->bytes, a->size,
                           a->root, SHMEMI_CALL_LIBRARY);
        break;
    case SHMEMI_KERNEL_SIGNAL:
        SHMEMI_FENCE_ACQREL(); /* what the stream did before is visible to who sees the signal */
        shmemi_dev_signal(ctx, (uint64_t *)dest, a->value, (int)a->op, a->root, SHMEMI_CALL_LIBRARY);
        break;
    default: shmemi_dev_quiet(SHMEMI_THREAD, ctx, SHMEMI_CALL_LIBRARY);
    }
}

/* ---- one warp ---- */

SHMEMI_DEV void shmemi_k_sync_body(const struct shmemi_kernel_args *a)
{
    enum shmemi_sync_kind kind = a->fenced ? SHMEMI_SYNC_FENCED : SHMEMI_SYNC_RELAXED;

    if (a->team.far) /* how they meet, the device state knows */
        shmemi_dev_sync_any(SHMEMI_WARP, (shmem_team_t)(uintptr_t)a->team_handle, kind, SHMEMI_CALL_LIBRARY);
    else
        shmemi_sync_chan(SHMEMI_WARP, &a->team, 0, kind, SHMEMI_CALL_LIBRARY);
}

/* ---- one block: messages that travel with their flags, and collect ---- */

/* The launcher sends other reductions to the kernel of many blocks, but for teams of several nodes. */
SHMEMI_DEV void shmemi_k_small_sum(const struct shmemi_kernel_args *a, shmem_team_t team, void *dest, const void *source)
{
    if (a->team.far) {
        (void)shmemi_reduce_nodes(SHMEMI_BLOCK, team, (enum shmemi_red_kind)a->kind, (enum shmemi_red_op)a->op, dest, source,
                                  a->bytes);
        return;
    }
    switch (a->kind) {
    case SHMEMI_RED_F32: (void)shmemi_dev_reduce(SHMEMI_BLOCK, team, SHMEMI_RED_F32, SHMEMI_RED_SUM, dest, source, a->bytes / 4); break;
    case SHMEMI_RED_F64: (void)shmemi_dev_reduce(SHMEMI_BLOCK, team, SHMEMI_RED_F64, SHMEMI_RED_SUM, dest, source, a->bytes / 8); break;
    default: (void)shmemi_dev_reduce(SHMEMI_BLOCK, team, SHMEMI_RED_U32, SHMEMI_RED_SUM, dest, source, a->bytes / 4);
    }
}

SHMEMI_DEV void shmemi_k_small_body(const struct shmemi_kernel_args *a)
{
    shmem_team_t team = (shmem_team_t)(uintptr_t)a->team_handle;
    void *dest = (void *)(uintptr_t)a->dest;
    const void *source = (const void *)(uintptr_t)a->source;

    switch (a->coll) {
    case SHMEMI_KERNEL_BROADCAST: (void)shmemi_dev_broadcast(SHMEMI_BLOCK, team, dest, source, a->bytes, a->root); break;
    case SHMEMI_KERNEL_FCOLLECT: (void)shmemi_dev_fcollect(SHMEMI_BLOCK, team, dest, source, a->bytes); break;
    case SHMEMI_KERNEL_ALLTOALL: (void)shmemi_dev_alltoall(SHMEMI_BLOCK, team, dest, source, a->bytes); break;
    case SHMEMI_KERNEL_COLLECT: (void)shmemi_dev_collect(SHMEMI_BLOCK, team, dest, source, a->bytes); break;
    default: shmemi_k_small_sum(a, team, dest, source);
    }
}

/* ---- many blocks ----
 *
 * Block b of each member works on part b of the bytes and meets the blocks b of the others on channel 1 + b, so blocks
 * of one GPU need not know of each other.
 */

struct shmemi_part {
    uint64_t from, len;
};

/* Part `i` of `n` of `len` bytes; parts begin at multiples of 256. */
SHMEMI_DEV struct shmemi_part shmemi_part_of(uint64_t len, uint32_t i, uint32_t n)
{
    uint64_t each = ((len + n - 1) / n + 255) & ~(uint64_t)255, end;
    struct shmemi_part p;

    p.from = i * each < len ? i * each : len;
    end = p.from + each < len ? p.from + each : len;
    p.len = end - p.from;
    return p;
}

SHMEMI_DEV void shmemi_part_meet(const struct shmemi_kernel_args *a, enum shmemi_sync_kind kind)
{
    shmemi_sync_chan(SHMEMI_BLOCK, &a->team, 1 + shmemi_block_index(), kind, SHMEMI_CALL_LIBRARY);
}

/* Copies own bytes to the same place of member `to`. */
SHMEMI_DEV void shmemi_part_send(const struct shmemi_kernel_args *a, uint64_t dest, uint64_t source, uint64_t len, uint32_t to)
{
    char *at = (char *)(uintptr_t)dest;

    if (!len)
        return;
    if (to != (uint32_t)a->team.my_pe)
        at = shmemi_dev_remote(at, len, shmemi_dev_team_world(&a->team, (int)to), SHMEMI_CALL_LIBRARY);
    shmemi_copy(at, (const char *)(uintptr_t)source, len, shmemi_thread_in_block(), shmemi_block_threads());
}

/* fcollect and alltoall: to each member its part of source, which is `value` bytes further for each. */
SHMEMI_DEV void shmemi_k_exchange_body(const struct shmemi_kernel_args *a)
{
    uint32_t n = (uint32_t)a->team.n_pes, me = (uint32_t)a->team.my_pe;
    struct shmemi_part p = shmemi_part_of(a->bytes, shmemi_block_index(), shmemi_grid_blocks());

    for (uint32_t i = 1; i <= n; i++) {
        uint32_t to = (me + i) % n;

        shmemi_part_send(a, a->dest + me * a->bytes + p.from, a->source + to * a->value + p.from, p.len, to);
    }
    shmemi_part_meet(a, SHMEMI_SYNC_FENCED);
}

/* The root gives each member a share, who then gives it to the others: the root's link carries the data once or twice. */
SHMEMI_DEV void shmemi_k_broadcast_body(const struct shmemi_kernel_args *a)
{
    uint32_t n = (uint32_t)a->team.n_pes, me = (uint32_t)a->team.my_pe, root = (uint32_t)a->root;
    struct shmemi_part p = shmemi_part_of(a->bytes, shmemi_block_index(), shmemi_grid_blocks()), s;

    if (me == root && a->dest != a->source)
        shmemi_part_send(a, a->dest + p.from, a->source + p.from, p.len, root);
    for (uint32_t i = 1; me == root && i < n; i++) {
        uint32_t to = (root + i) % n;

        /* Its share and the root's own; with two members that is all of it. */
        s = shmemi_part_of(p.len, to, n);
        shmemi_part_send(a, a->dest + p.from + s.from, a->source + p.from + s.from, s.len, to);
        s = shmemi_part_of(p.len, root, n);
        shmemi_part_send(a, a->dest + p.from + s.from, a->source + p.from + s.from, s.len, to);
    }
    shmemi_part_meet(a, SHMEMI_SYNC_FENCED);
    if (n <= 2)
        return;
    s = shmemi_part_of(p.len, me, n);
    for (uint32_t i = 1; me != root && i < n; i++) {
        uint32_t to = (me + i) % n;

        if (to != root)
            shmemi_part_send(a, a->dest + p.from + s.from, a->dest + p.from + s.from, s.len, to);
    }
    shmemi_part_meet(a, SHMEMI_SYNC_FENCED);
}

/* Any operator on any kind, chosen at run time: not folded into its callers, where it would be many times too large. */
SHMEMI_DEV_COLD struct shmemi_v16 shmemi_part_combine(uint32_t op, int kind, struct shmemi_v16 x, struct shmemi_v16 y)
{
    return shmemi_red16((enum shmemi_red_op)op, (enum shmemi_red_kind)kind, x, y);
}

/* Units of `unit` bytes, 16 or an element. */
SHMEMI_DEV void shmemi_part_reduce_any(const struct shmemi_kernel_args *a, uint64_t from, uint64_t len, uint32_t unit)
{
    struct shmemi_place at = shmemi_place_of((const char *)(uintptr_t)a->source + from, len, SHMEMI_CALL_LIBRARY);
    struct shmemi_v16 v[4], acc = { 0, 0 };

    for (uint64_t i = (uint64_t)shmemi_thread_in_block() * unit; i < len; i += (uint64_t)shmemi_block_threads() * unit) {
        for (int m0 = 0; m0 < a->team.n_pes; m0 += 4) {
            for (int j = 0; j < 4 && m0 + j < a->team.n_pes; j++)
                v[j] = shmemi_v16_in(shmemi_place_at(at, shmemi_dev_team_world(&a->team, m0 + j)) + i, unit);
            for (int j = 0; j < 4 && m0 + j < a->team.n_pes; j++)
                acc = m0 + j ? shmemi_part_combine(a->op, a->kind, acc, v[j]) : v[j];
        }
        shmemi_v16_out((char *)(uintptr_t)(a->dest + from) + i, acc, unit);
    }
}

#define SHMEMI_PART_PULL(KIND)                                                                                          \
    shmemi_reduce_pull(KIND, SHMEMI_RED_SUM, &a->team, (char *)(uintptr_t)(a->dest + from),                             \
                       (const char *)(uintptr_t)(a->source + from), len, shmemi_thread_in_block(),                      \
                       shmemi_block_threads(), SHMEMI_CALL_LIBRARY)

/* The sums of the usual types get code of their own. */
SHMEMI_DEV void shmemi_part_reduce(const struct shmemi_kernel_args *a, uint64_t from, uint64_t len)
{
    uint64_t whole = ((a->dest | a->source) & 15) == 0 ? len & ~(uint64_t)15 : 0;

    if (len && a->op == SHMEMI_RED_SUM && a->kind == SHMEMI_RED_F32) {
        SHMEMI_PART_PULL(SHMEMI_RED_F32);
    } else if (len && a->op == SHMEMI_RED_SUM && a->kind == SHMEMI_RED_F64) {
        SHMEMI_PART_PULL(SHMEMI_RED_F64);
    } else if (len && a->op == SHMEMI_RED_SUM && (a->kind == SHMEMI_RED_I32 || a->kind == SHMEMI_RED_U32)) {
        SHMEMI_PART_PULL(SHMEMI_RED_U32);
    } else if (len) {
        if (whole)
            shmemi_part_reduce_any(a, from, whole, 16);
        if (len > whole)
            shmemi_part_reduce_any(a, from + whole, len - whole, shmemi_red_size((enum shmemi_red_kind)a->kind));
    }
}

/*
 * Two members: each combines everything.  More, or one array for source and dest: each combines a share, which nobody else
 * reads or writes, and gives the result to the others.
 */
SHMEMI_DEV void shmemi_k_reduce_body(const struct shmemi_kernel_args *a)
{
    uint32_t n = (uint32_t)a->team.n_pes, me = (uint32_t)a->team.my_pe;
    struct shmemi_part p = shmemi_part_of(a->bytes, shmemi_block_index(), shmemi_grid_blocks()), s;

    shmemi_part_meet(a, SHMEMI_SYNC_FENCED); /* every source is there */
    if (n <= 2 && a->dest != a->source) {
        shmemi_part_reduce(a, p.from, p.len);
        shmemi_part_meet(a, SHMEMI_SYNC_RELAXED); /* all have read; nobody wrote elsewhere */
        return;
    }
    s = shmemi_part_of(p.len, me, n);
    shmemi_part_reduce(a, p.from + s.from, s.len);
    shmemi_block_sync();
    for (uint32_t i = 1; i < n; i++)
        shmemi_part_send(a, a->dest + p.from + s.from, a->dest + p.from + s.from, s.len, (me + i) % n);
    shmemi_part_meet(a, SHMEMI_SYNC_FENCED);
}

SHMEMI_STATIC_ASSERT((int)SHMEMI_KERNEL_XOR == (int)SHMEMI_RED_XOR && (int)SHMEMI_KERNEL_MIN == (int)SHMEMI_RED_MIN,
                     "the same operators");
SHMEMI_STATIC_ASSERT((int)SHMEMI_KERNEL_C64 == (int)SHMEMI_RED_C64 && (int)SHMEMI_KERNEL_I8 == (int)SHMEMI_RED_I8,
                     "the same kinds");
SHMEMI_STATIC_ASSERT(SHMEMI_KERNEL_BLOCKS < SHMEMI_SYNC_CHANS, "a channel for each block");

#endif
#endif
