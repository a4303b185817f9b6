/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rma.h - put, get, signals, fence and quiet in kernels: by load and store where they lead, else by the NIC (far.h).
 *
 * Blocking and non-blocking forms are the same by load and store.  The forms of a group synchronise it before, so that what any of
 * its threads wrote is sent, and after, so that one thread's fence or quiet covers the stores of all.
 */
#ifndef SHMEM_DEVICE_RMA_H
#define SHMEM_DEVICE_RMA_H

#include "addr.h"
#include "copy.h"
#include "far.h"

#ifdef SHMEMI_DEVICE_CODE

/* ---- where only the NIC leads ----
 *
 * Of each call, the part behind a pointer, and `..._else', which its near way calls when it has not found the address at once:
 * gives the address if loads and stores lead there after all, or 0 when it has done everything but for the last meeting of the
 * group: that is one for both ways, as otherwise the compiler must take it that threads of a warp have parted.
 */

/*
 * The shortest way of one thread's entry to a device heap that only the NIC reaches: its ticket; 0: not done, and then the general
 * way says why or goes on.  After an error, too: that way finds it again.
 */
SHMEMI_DEV uint64_t shmemi_nic_entry(shmem_ctx_t ctx, const void *there, uint32_t opcode, struct shmemi_v16 seg, int world)
{
    const struct shmemi_dev_far *p = shmemi_dev_state.nic.peers + world;
    uint32_t row = shmemi_far_row(ctx);
    int is_private = (row & SHMEMI_DEV_ROW_PRIVATE) != 0;
    struct shmemi_sq *sq = shmemi_far_queue(row, world);
    uint64_t base = p->dheap, ticket;
    shmemi_be32 rkey = { p->dheap_rkey };

    if (!base || !sq->ring || !shmemi_far_single(is_private, SHMEMI_THREAD))
        return 0;
    base += (uint64_t)(uintptr_t)there - shmemi_dev_state.dheap_base;
    if (is_private)
        ticket = SHMEMI_BEHIND(shmemi_far_post_private)(sq, opcode, base, rkey, seg.x, seg.y,
                                                        opcode == SHMEMI_MLX5_WRITE ? shmemi_far_lazy(row) : 0);
    else
        ticket = SHMEMI_BEHIND(shmemi_far_post_shared)(sq, opcode, base, rkey, seg.x, seg.y);
    return ticket == SHMEMI_SQ_FAILED ? 0 : ticket;
}

/* Of registered memory, and not waited for. */
SHMEMI_DEV uint64_t shmemi_nic_memory(shmem_ctx_t ctx, const void *there, uint32_t opcode, const void *local, uint64_t len, int world)
{
    shmemi_be32 lkey;

    if (len - 1 >= shmemi_dev_state.nic.message_max || !shmemi_far_local(local, len, world, &lkey))
        return 0;
    return shmemi_nic_entry(ctx, there, opcode, shmemi_mlx5_data((uint64_t)(uintptr_t)local, lkey, (uint32_t)len), world);
}

/* Has a put that need not be waited for gone so? */
SHMEMI_DEV uint64_t shmemi_nic_put(shmem_ctx_t ctx, void *dest, const void *source, uint64_t len, int world, uint32_t call)
{
    if (len - 1 < 8)
        return shmemi_nic_entry(ctx, dest, SHMEMI_MLX5_WRITE,
                                shmemi_far_value_seg(shmemi_far_load((const char *)source, (uint32_t)len), (uint32_t)len), world);
    if (len <= SHMEMI_SQ_INLINE_MAX || !shmemi_far_is_nbi(call))
        return 0;
    return shmemi_nic_memory(ctx, dest, SHMEMI_MLX5_WRITE, source, len, world);
}

/* Has a put that need not be waited for gone so, with its signal to the same heap? */
SHMEMI_DEV int shmemi_nic_put_signal(shmem_ctx_t ctx, void *dest, const void *source, uint64_t len, uint64_t *sig_addr,
                                     uint64_t signal, int sig_op, int world, uint32_t call)
{
    uint32_t row = shmemi_far_row(ctx), how = shmemi_far_how(call, sig_op);
    int is_private = (row & SHMEMI_DEV_ROW_PRIVATE) != 0;
    struct shmemi_v16 seg;
    shmemi_be32 lkey;

    if ((sig_op != SHMEM_SIGNAL_SET && sig_op != SHMEM_SIGNAL_ADD) || !shmemi_far_in_dheap(dest) || !shmemi_far_leads(row, world) ||
        !shmemi_far_single(is_private, SHMEMI_THREAD))
        return 0;
    if (len == 8 && shmemi_in_halves((const char *)source)) {
        seg = shmemi_far_value_seg(shmemi_ld64h((const char *)source), 8);
    } else {
        if (len <= SHMEMI_SQ_INLINE_MAX || !shmemi_far_is_nbi(call) || len > shmemi_dev_state.nic.message_max ||
            !shmemi_far_local(source, len, world, &lkey))
            return 0;
        seg = shmemi_mlx5_data((uint64_t)(uintptr_t)source, lkey, (uint32_t)len);
    }
    if (is_private)
        (void)SHMEMI_BEHIND(shmemi_far_pair_private)(row, world, dest, sig_addr, seg.x, seg.y, signal, how);
    else
        (void)SHMEMI_BEHIND(shmemi_far_pair_shared)(row, world, dest, sig_addr, seg.x, seg.y, signal, how);
    return 1;
}

SHMEMI_DEV_LARGE void shmemi_put_far(enum shmemi_scope scope, shmem_ctx_t ctx, void *dest, const void *source, uint64_t len,
                                     int world, uint32_t call)
{
    shmemi_group_sync(scope);
    if (shmemi_rank(scope) == 0)
        shmemi_far_put(scope, ctx, dest, source, len, world, call);
}

SHMEMI_DEV_COLD uint64_t shmemi_put_else(enum shmemi_scope scope, shmem_ctx_t ctx, void *dest, const void *source, uint64_t len,
                                         int world, uint32_t call)
{
    int only_nic = shmemi_dev_only_nic(dest, 1, world);
    uint64_t at;

    if (only_nic && scope == SHMEMI_THREAD && !shmemi_far_proxy() && shmemi_nic_put(ctx, dest, source, len, world, call))
        return 0;
    at = only_nic ? 0 : shmemi_dev_search(dest, len, 1, world, call, 1);
    if (SHMEMI_NIC_PATH && !at)
        SHMEMI_BEHIND(shmemi_put_far)(scope, ctx, dest, source, len, world, call);
    return at;
}

SHMEMI_DEV_LARGE void shmemi_get_far(enum shmemi_scope scope, shmem_ctx_t ctx, void *dest, const void *source, uint64_t len,
                                     int world, uint32_t call)
{
    shmemi_group_sync(scope);
    if (shmemi_rank(scope) == 0)
        shmemi_far_get(scope, ctx, dest, source, len, world, call);
}

SHMEMI_DEV_COLD uint64_t shmemi_get_else(enum shmemi_scope scope, shmem_ctx_t ctx, void *dest, const void *source, uint64_t len,
                                         int world, uint32_t call)
{
    int only_nic = shmemi_dev_only_nic(source, 1, world);
    uint64_t at;

    if (only_nic && scope == SHMEMI_THREAD && !shmemi_far_proxy() && shmemi_far_is_nbi(call) &&
        shmemi_nic_memory(ctx, source, SHMEMI_MLX5_READ, dest, len, world))
        return 0;
    at = only_nic ? 0 : shmemi_dev_search(source, len, 1, world, call, 1);
    if (SHMEMI_NIC_PATH && !at)
        SHMEMI_BEHIND(shmemi_get_far)(scope, ctx, dest, source, len, world, call);
    return at;
}

/* Of at most 8 bytes. */
SHMEMI_DEV_COLD uint64_t shmemi_p_else(shmem_ctx_t ctx, void *dest, uint64_t value, uint32_t size, int world, uint32_t call)
{
    int only_nic = shmemi_dev_only_nic(dest, 1, world);
    uint64_t at;

    if (only_nic && !shmemi_far_proxy() &&
        shmemi_nic_entry(ctx, dest, SHMEMI_MLX5_WRITE, shmemi_far_value_seg(value, size), world))
        return 0;
    at = only_nic ? 0 : shmemi_dev_search(dest, size, 1, world, call, 1);
    if (SHMEMI_NIC_PATH && !at)
        SHMEMI_BEHIND(shmemi_far_p)(ctx, dest, value, size, world, call);
    return at;
}

/* An address, or 0 and the value. */
struct shmemi_got {
    uint64_t at, value;
};

SHMEMI_DEV_COLD struct shmemi_got shmemi_g_else(shmem_ctx_t ctx, const void *source, uint32_t size, int world, uint32_t call)
{
    struct shmemi_got g;

    g.at = shmemi_dev_only_nic(source, 1, world) ? 0 : shmemi_dev_search(source, size, 1, world, call, 1);
    g.value = 0;
    if (SHMEMI_NIC_PATH && !g.at)
        g.value = SHMEMI_BEHIND(shmemi_far_g)(ctx, source, size, world, call);
    return g;
}

/* ---- put and get ---- */

SHMEMI_DEV void shmemi_dev_put(enum shmemi_scope scope, shmem_ctx_t ctx, void *dest, const void *source, uint64_t len,
                               int pe, uint32_t call)
{
    int world = shmemi_dev_ctx_world(ctx, pe, call);
    int near = 1;
    uint64_t at;
    char *to;

    if (!shmemi_dev_found(dest, 1, world, &at)) {
        at = shmemi_put_else(scope, ctx, dest, source, len, world, call);
        near = !SHMEMI_NIC_PATH || at != 0;
    }
    if (near) {
        to = (char *)(uintptr_t)at;
        SHMEMI_ASSUME_GLOBAL(to);
        shmemi_group_sync(scope);
        shmemi_copy_by(scope, 0, to, (const char *)source, len);
    }
    shmemi_group_sync(scope);
}

SHMEMI_DEV void shmemi_dev_get(enum shmemi_scope scope, shmem_ctx_t ctx, void *dest, const void *source, uint64_t len,
                               int pe, uint32_t call)
{
    int world = shmemi_dev_ctx_world(ctx, pe, call);
    const char *from;
    int near = 1;
    uint64_t at;

    if (!shmemi_dev_found(source, 1, world, &at)) {
        at = shmemi_get_else(scope, ctx, dest, source, len, world, call);
        near = !SHMEMI_NIC_PATH || at != 0;
    }
    if (near) {
        from = (const char *)(uintptr_t)at;
        SHMEMI_ASSUME_GLOBAL(from);
        shmemi_group_sync(scope);
        shmemi_copy_by(scope, 1, (char *)dest, from, len);
    }
    shmemi_group_sync(scope);
}

/* An element of at most 8 bytes, as the low bytes of a word: one whose address is known would live in memory. */
SHMEMI_DEV uint64_t shmemi_dev_bits(const void *value, uint32_t size)
{
    uint64_t v = 0;

    memcpy(&v, value, size);
    return v;
}

SHMEMI_DEV void shmemi_dev_set_bits(void *value_out, uint64_t v, uint32_t size)
{
    memcpy(value_out, &v, size);
}

SHMEMI_DEV void shmemi_dev_p(shmem_ctx_t ctx, void *dest, const void *value, uint32_t size, int pe, uint32_t call)
{
    int world = shmemi_dev_ctx_world(ctx, pe, call);
    uint64_t at;
    char *to;

    if (!shmemi_dev_found(dest, 1, world, &at)) {
        at = size > 8 ? shmemi_put_else(SHMEMI_THREAD, ctx, dest, value, size, world, call)
                      : shmemi_p_else(ctx, dest, shmemi_dev_bits(value, size), size, world, call);
        if (SHMEMI_NIC_PATH && !at)
            return;
    }
    to = (char *)(uintptr_t)at;
    SHMEMI_ASSUME_GLOBAL(to);
    shmemi_copy_element(to, (const char *)value, size);
}

SHMEMI_DEV void shmemi_dev_g(shmem_ctx_t ctx, void *value_out, const void *source, uint32_t size, int pe, uint32_t call)
{
    int world = shmemi_dev_ctx_world(ctx, pe, call);
    uint64_t at;
    char *from;

    if (!shmemi_dev_found(source, 1, world, &at)) {
        if (size > 8) {
            at = shmemi_get_else(SHMEMI_THREAD, ctx, value_out, source, size, world, call);
        } else {
            struct shmemi_got g = shmemi_g_else(ctx, source, size, world, call);

            at = g.at;
            if (SHMEMI_NIC_PATH && !at)
                shmemi_dev_set_bits(value_out, g.value, size);
        }
        if (SHMEMI_NIC_PATH && !at)
            return;
    }
    from = (char *)(uintptr_t)at;
    SHMEMI_ASSUME_GLOBAL(from);
    if (size == 8)
        *(uint64_t *)value_out = SHMEMI_LD_RLX((uint64_t *)(void *)from);
    else if (size == 4)
        *(uint32_t *)value_out = SHMEMI_LD_RLX((uint32_t *)(void *)from);
    else if (size == 2)
        *(uint16_t *)value_out = SHMEMI_LD_RLX((uint16_t *)(void *)from);
    else
        shmemi_copy_element((char *)value_out, from, size);
}

/* `nblocks` blocks of `block` bytes; distances in bytes.  Short blocks are dealt out element by element. */
SHMEMI_DEV_LARGE void shmemi_copy_blocks(char *to, uint64_t dst, const char *from, uint64_t sst, uint64_t nblocks,
                                         uint64_t block, uint32_t elem, uint32_t rank, uint32_t size)
{
    if (block == elem)
        for (uint64_t i = rank; i < nblocks; i += size)
            shmemi_copy_element(to + i * dst, from + i * sst, elem);
    else if (block >= (uint64_t)size * 16)
        for (uint64_t i = 0; i < nblocks; i++)
            shmemi_copy(to + i * dst, from + i * sst, block, rank, size);
    else
        for (uint64_t i = rank; i < nblocks; i += size)
            shmemi_copy_by_one(to + i * dst, from + i * sst, block);
}

SHMEMI_DEV_LARGE void shmemi_blocks_far(enum shmemi_scope scope, const struct shmemi_far_blocks *b)
{
    shmemi_group_sync(scope);
    shmemi_far_blocks(b);
}

/* `len`: what the blocks reach over. */
SHMEMI_DEV_COLD uint64_t shmemi_blocks_else(enum shmemi_scope scope, uint64_t len, const struct shmemi_far_blocks *b)
{
    uint64_t at = shmemi_dev_search(b->put ? b->dest : b->source, len, 1, b->world, b->call, 1);

    if (SHMEMI_NIC_PATH && !at)
        SHMEMI_BEHIND(shmemi_blocks_far)(scope, b);
    return at;
}

/* All strided forms; strides and bsize in elements of `elem` bytes. */
SHMEMI_DEV void shmemi_dev_strided(enum shmemi_scope scope, int put, shmem_ctx_t ctx, void *dest, const void *source,
                                   int64_t dst, int64_t sst, uint64_t bsize, uint64_t nblocks, uint32_t elem, int pe,
                                   uint32_t call)
{
    int world = shmemi_dev_ctx_world(ctx, pe, call);
    uint64_t block = bsize * elem, to_step = (uint64_t)dst * elem, from_step = (uint64_t)sst * elem, at;
    int near = 1;

    if (nblocks == 0 || bsize == 0) {
        shmemi_dev_check_pe(world, call);
        return;
    }
    if (dst < 1 || sst < 1 || (uint64_t)dst < bsize || (uint64_t)sst < bsize)
        shmemi_dev_fail(SHMEMI_DEV_BAD_VALUE, call, (uint64_t)(dst < sst ? dst : sst), 0, 0);
    if (!shmemi_dev_found(put ? dest : source, 1, world, &at)) {
        struct shmemi_far_blocks b = { (char *)dest, (const char *)source, to_step, from_step, nblocks, block, ctx,
                                       shmemi_rank(scope), shmemi_size(scope), call, put, world };

        at = shmemi_blocks_else(scope, (nblocks - 1) * (put ? to_step : from_step) + block, &b);
        near = !SHMEMI_NIC_PATH || at != 0;
    }
    if (near) {
        shmemi_group_sync(scope);
        shmemi_copy_blocks(put ? (char *)(uintptr_t)at : (char *)dest, to_step,
                           put ? (const char *)source : (const char *)(uintptr_t)at, from_step, nblocks, block, elem,
                           shmemi_rank(scope), shmemi_size(scope));
    }
    shmemi_group_sync(scope);
}

/* ---- signals ---- */

/* An addition, with release. */
SHMEMI_DEV_COLD void shmemi_signal_nic(shmem_ctx_t ctx, uint64_t *sig_addr, uint64_t signal, int world, uint32_t call)
{
    SHMEMI_FENCE_ACQREL();
    SHMEMI_BEHIND(shmemi_far_signal)(SHMEMI_THREAD, ctx, sig_addr, signal, SHMEM_SIGNAL_ADD, world, call);
}

/*
 * Release, of all that the group wrote before: pairs with the acquire of shmem_signal_wait_until.  Where all atomics go through
 * the NIC, so does an addition to a word that stores reach.
 */
SHMEMI_DEV void shmemi_signal_after(shmem_ctx_t ctx, uint64_t *word, uint64_t *sig_addr, uint64_t signal, int sig_op, int world,
                                    uint32_t call)
{
    if (sig_op == SHMEM_SIGNAL_SET) {
        SHMEMI_ST_REL(word, signal);
    } else if (SHMEMI_UNLIKELY(shmemi_dev_nic_amos())) {
        shmemi_signal_nic(ctx, sig_addr, signal, world, call);
    } else {
        (void)SHMEMI_ADD_REL(word, signal);
    }
}

/* Thread 0 looks at the signal's address, while the others copy. */
SHMEMI_DEV uint64_t *shmemi_signal_word(uint64_t *sig_addr, int sig_op, int world, uint32_t call)
{
    uint64_t at = shmemi_dev_locate(sig_addr, 8, 8, world, call);

    if (sig_op != SHMEM_SIGNAL_SET && sig_op != SHMEM_SIGNAL_ADD)
        shmemi_dev_fail(SHMEMI_DEV_BAD_VALUE, call, (uint64_t)sig_op, 0, 0);
    SHMEMI_ASSUME_GLOBAL((char *)(uintptr_t)at);
    return (uint64_t *)(uintptr_t)at;
}

/* By thread 0 alone: a word is on its way from the source while the addresses are found. */
SHMEMI_DEV void shmemi_put_signal_few(enum shmemi_scope scope, shmem_ctx_t ctx, char *dest, const char *source,
                                      uint64_t len, uint64_t *sig_addr, uint64_t signal, int sig_op, int world, uint32_t call)
{
    int is_word = len == 8 && (((uintptr_t)dest | (uintptr_t)source) & 7) == 0;
    uint64_t v = is_word ? *(const uint64_t *)(const void *)source : 0;
    uint64_t *word = shmemi_signal_word(sig_addr, sig_op, world, call);
    char *to = len ? shmemi_dev_remote(dest, len, world, call) : dest;

    if (is_word)
        SHMEMI_ST_RLX((uint64_t *)(void *)to, v);
    else if (scope == SHMEMI_THREAD)
        shmemi_copy_by_one(to, source, len);
    else if (len)
        shmemi_copy_odd(to, source, len, 0, 1, 0);
    shmemi_signal_after(ctx, word, sig_addr, signal, sig_op, world, call);
}

/* Where only the NIC leads to the signal.  Its doorbell is behind a release of what the group wrote. */
SHMEMI_DEV_LARGE void shmemi_put_signal_far(const struct shmemi_far_signalled *s)
{
    shmemi_group_sync(s->scope);
    if (shmemi_rank(s->scope) == 0)
        shmemi_far_put_signal(s);
}

/* Where there is a NIC: true when only that leads to the signal, and it has gone that way. */
SHMEMI_DEV_COLD int shmemi_put_signal_group_else(const struct shmemi_far_signalled *s)
{
    if (shmemi_dev_search(s->sig_addr, 8, 1, s->world, s->call, 1))
        return 0;
    SHMEMI_BEHIND(shmemi_put_signal_far)(s);
    return 1;
}

/* What one thread cannot send by two entries at once. */
SHMEMI_DEV_COLD void shmemi_put_signal_nic(shmem_ctx_t ctx, void *dest, const void *source, uint64_t len, uint64_t *sig_addr,
                                           uint64_t signal, int sig_op, int world, uint32_t call)
{
    struct shmemi_far_signalled s = { dest, source, len, sig_addr, signal, ctx, SHMEMI_THREAD, sig_op, world, call };

    SHMEMI_BEHIND(shmemi_put_signal_far)(&s);
}

/* The same for one thread. */
SHMEMI_DEV_COLD int shmemi_put_signal_else(shmem_ctx_t ctx, void *dest, const void *source, uint64_t len, uint64_t *sig_addr,
                                           uint64_t signal, int sig_op, int world, uint32_t call)
{
    uint64_t at;

    if (shmemi_dev_found(sig_addr, 8, world, &at))
        return 0;
    if (shmemi_dev_only_nic(sig_addr, 8, world)) {
        if (!shmemi_far_proxy() && shmemi_nic_put_signal(ctx, dest, source, len, sig_addr, signal, sig_op, world, call))
            return 1;
    } else if (shmemi_dev_search(sig_addr, 8, 1, world, call, 1)) {
        return 0;
    }
    shmemi_put_signal_nic(ctx, dest, source, len, sig_addr, signal, sig_op, world, call);
    return 1;
}

SHMEMI_DEV void shmemi_dev_put_signal(enum shmemi_scope scope, shmem_ctx_t ctx, void *dest, const void *source,
                                      uint64_t len, uint64_t *sig_addr, uint64_t signal, int sig_op, int pe, uint32_t call)
{
    int world = shmemi_dev_ctx_world(ctx, pe, call);
    uint32_t rank = shmemi_rank(scope);
    uint64_t *word = 0;
    int near = 1;
    char *to;

    if (SHMEMI_UNLIKELY(shmemi_dev_nic()) && scope == SHMEMI_THREAD) {
        near = !shmemi_put_signal_else(ctx, dest, source, len, sig_addr, signal, sig_op, world, call);
    } else if (SHMEMI_UNLIKELY(shmemi_dev_nic())) {
        struct shmemi_far_signalled s = { dest, source, len, sig_addr, signal, ctx, scope, sig_op, world, call };

        near = !shmemi_put_signal_group_else(&s);
    }
    if (!near) {
        ; /* done */
    } else if (scope == SHMEMI_THREAD || len <= 8) { /* the group need not meet again */
        shmemi_group_sync(scope);
        if (rank == 0)
            shmemi_put_signal_few(scope, ctx, (char *)dest, (const char *)source, len, sig_addr, signal, sig_op, world, call);
    } else {
        to = shmemi_dev_remote(dest, len, world, call);
        shmemi_group_sync(scope);
        shmemi_copy(to, (const char *)source, len, rank, shmemi_size(scope));
        if (rank == 0)
            word = shmemi_signal_word(sig_addr, sig_op, world, call);
        shmemi_group_sync(scope);
        if (rank == 0)
            shmemi_signal_after(ctx, word, sig_addr, signal, sig_op, world, call);
    }
    shmemi_group_sync(scope);
}

/* Also where all atomics go through the NIC. */
SHMEMI_DEV_COLD uint64_t shmemi_signal_else(shmem_ctx_t ctx, uint64_t *sig_addr, uint64_t signal, int sig_op, int world,
                                            uint32_t call)
{
    uint64_t at = shmemi_dev_search(sig_addr, 8, 8, world, call, 1);

    if (!SHMEMI_NIC_PATH || (at && !(sig_op == SHMEM_SIGNAL_ADD && shmemi_dev_nic_amos())))
        return at;
    SHMEMI_BEHIND(shmemi_far_signal)(SHMEMI_THREAD, ctx, sig_addr, signal, sig_op, world, call);
    return 0;
}

/* Changes a signal without data; orders nothing. */
SHMEMI_DEV void shmemi_dev_signal(shmem_ctx_t ctx, uint64_t *sig_addr, uint64_t signal, int sig_op, int pe, uint32_t call)
{
    int world = shmemi_dev_ctx_world(ctx, pe, call);
    uint64_t at, *word;

    if (sig_op != SHMEM_SIGNAL_SET && sig_op != SHMEM_SIGNAL_ADD)
        shmemi_dev_fail(SHMEMI_DEV_BAD_VALUE, call, (uint64_t)sig_op, 0, 0);
    if (!shmemi_dev_found(sig_addr, 8, world, &at) || (sig_op == SHMEM_SIGNAL_ADD && shmemi_dev_nic_amos())) {
        at = shmemi_signal_else(ctx, sig_addr, signal, sig_op, world, call);
        if (SHMEMI_NIC_PATH && !at)
            return;
    }
    word = (uint64_t *)(uintptr_t)at;
    if (sig_op == SHMEM_SIGNAL_SET)
        SHMEMI_ST_RLX(word, signal);
    else
        (void)SHMEMI_ADD_RLX(word, signal);
}

SHMEMI_DEV uint64_t shmemi_dev_signal_fetch(const uint64_t *sig_addr)
{
    /* Pairs with the release of shmemi_dev_put_signal. */
    return SHMEMI_LD_ACQ((uint64_t *)(uintptr_t)sig_addr);
}

/* ---- order ---- */

/* What was posted, by thread `rank` of `size`. */
SHMEMI_DEV_COLD void shmemi_quiet_nic(shmem_ctx_t ctx, int near_only, uint32_t rank, uint32_t size, uint32_t call)
{
    SHMEMI_BEHIND(shmemi_far_quiet_row)(shmemi_far_row(ctx), near_only, rank, size, call);
}

/*
 * Stores of this thread, and those it has seen, before stores that come after.  What goes to one peer by the NIC is in order
 * anyway; only atomics by the NIC to a peer that stores reach would be overtaken by them.
 */
SHMEMI_DEV void shmemi_dev_fence(enum shmemi_scope scope, shmem_ctx_t ctx, uint32_t call)
{
    shmemi_dev_check_ctx(ctx, call);
    shmemi_group_sync(scope);
    if (shmemi_rank(scope) == 0) {
        if (SHMEMI_UNLIKELY(shmemi_dev_nic_amos()) && ctx != SHMEM_CTX_INVALID)
            shmemi_quiet_nic(ctx, 1, 0, 1, call);
        SHMEMI_FENCE_ACQREL();
    }
    shmemi_group_sync(scope);
}

/* Everything is where it belongs before this returns, also for a read that follows. */
SHMEMI_DEV void shmemi_dev_quiet(enum shmemi_scope scope, shmem_ctx_t ctx, uint32_t call)
{
    shmemi_dev_check_ctx(ctx, call);
    shmemi_group_sync(scope);
    if (SHMEMI_UNLIKELY(shmemi_dev_nic()) && ctx != SHMEM_CTX_INVALID) {
        shmemi_quiet_nic(ctx, 0, shmemi_rank(scope), shmemi_size(scope), call);
        shmemi_group_sync(scope);
    }
    if (shmemi_rank(scope) == 0)
        SHMEMI_FENCE_SC();
    shmemi_group_sync(scope);
}

SHMEMI_DEV void shmemi_dev_pe_quiet(shmem_ctx_t ctx, const int *pes, uint64_t n, uint32_t call)
{
    SHMEMI_ROLLED
    for (uint64_t i = 0; i < n; i++)
        shmemi_dev_check_pe(shmemi_dev_ctx_world(ctx, pes[i], call), call);
    if (n && SHMEMI_UNLIKELY(shmemi_dev_nic()))
        shmemi_quiet_nic(ctx, 0, 0, 1, call);
    if (n)
        SHMEMI_FENCE_SC();
}

#endif
#endif
