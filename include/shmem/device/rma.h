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

SHMEMI_DEV void shmemi_dev_put(enum shmemi_scope scope, shmem_ctx_t ctx, void *dest, const void *source, uint64_t len,
                               int pe, uint32_t call)
{
    int world = shmemi_dev_ctx_world(ctx, pe, call);
    char *to = shmemi_dev_reach(dest, len, world, call);

    shmemi_group_sync(scope);
    if (SHMEMI_LIKELY(shmemi_dev_near(to))) {
        SHMEMI_ASSUME_GLOBAL(to);
        shmemi_copy_by(scope, 0, to, (const char *)source, len);
    } else if (shmemi_rank(scope) == 0) {
        SHMEMI_BEHIND(shmemi_far_put)(scope, ctx, dest, source, len, world, call);
    }
    shmemi_group_sync(scope);
}

SHMEMI_DEV void shmemi_dev_get(enum shmemi_scope scope, shmem_ctx_t ctx, void *dest, const void *source, uint64_t len,
                               int pe, uint32_t call)
{
    int world = shmemi_dev_ctx_world(ctx, pe, call);
    const char *from = shmemi_dev_reach(source, len, world, call);

    shmemi_group_sync(scope);
    if (SHMEMI_LIKELY(shmemi_dev_near(from))) {
        SHMEMI_ASSUME_GLOBAL(from);
        shmemi_copy_by(scope, 1, (char *)dest, from, len);
    } else if (shmemi_rank(scope) == 0) {
        SHMEMI_BEHIND(shmemi_far_get)(scope, ctx, dest, source, len, world, call);
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
    char *to = shmemi_dev_reach(dest, size, world, call);

    if (SHMEMI_UNLIKELY(!shmemi_dev_near(to))) {
        if (size > 8)
            SHMEMI_BEHIND(shmemi_far_put)(SHMEMI_THREAD, ctx, dest, value, size, world, call);
        else
            SHMEMI_BEHIND(shmemi_far_p)(ctx, dest, shmemi_dev_bits(value, size), size, world, call);
        return;
    }
    SHMEMI_ASSUME_GLOBAL(to);
    shmemi_copy_element(to, (const char *)value, size);
}

SHMEMI_DEV void shmemi_dev_g(shmem_ctx_t ctx, void *value_out, const void *source, uint32_t size, int pe, uint32_t call)
{
    int world = shmemi_dev_ctx_world(ctx, pe, call);
    char *from = shmemi_dev_reach(source, size, world, call);

    if (SHMEMI_UNLIKELY(!shmemi_dev_near(from))) {
        if (size > 8)
            SHMEMI_BEHIND(shmemi_far_get)(SHMEMI_THREAD, ctx, value_out, source, size, world, call);
        else
            shmemi_dev_set_bits(value_out, SHMEMI_BEHIND(shmemi_far_g)(ctx, source, size, world, call), size);
        return;
    }
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

/* All strided forms; strides and bsize in elements of `elem` bytes. */
SHMEMI_DEV void shmemi_dev_strided(enum shmemi_scope scope, int put, shmem_ctx_t ctx, void *dest, const void *source,
                                   int64_t dst, int64_t sst, uint64_t bsize, uint64_t nblocks, uint32_t elem, int pe,
                                   uint32_t call)
{
    int world = shmemi_dev_ctx_world(ctx, pe, call);
    uint64_t block = bsize * elem, far = (uint64_t)(put ? dst : sst) * elem, len;
    char *to = (char *)dest;
    const char *from = (const char *)source;

    if (nblocks == 0 || bsize == 0) {
        shmemi_dev_check_pe(world, call);
        return;
    }
    if (dst < 1 || sst < 1 || (uint64_t)dst < bsize || (uint64_t)sst < bsize)
        shmemi_dev_fail(SHMEMI_DEV_BAD_VALUE, call, (uint64_t)(dst < sst ? dst : sst), 0, 0);
    len = (nblocks - 1) * far + block;
    if (put)
        to = shmemi_dev_reach(dest, len, world, call);
    else
        from = shmemi_dev_reach(source, len, world, call);
    shmemi_group_sync(scope);
    if (SHMEMI_LIKELY(shmemi_dev_near(put ? to : from)))
        shmemi_copy_blocks(to, (uint64_t)dst * elem, from, (uint64_t)sst * elem, nblocks, block, elem, shmemi_rank(scope),
                           shmemi_size(scope));
    else {
        struct shmemi_far_blocks b = { (char *)dest, (const char *)source, (uint64_t)dst * elem, (uint64_t)sst * elem, nblocks,
                                       block, ctx, shmemi_rank(scope), shmemi_size(scope), call, put, world };

        SHMEMI_BEHIND(shmemi_far_blocks)(&b);
    }
    shmemi_group_sync(scope);
}

/* ---- signals ---- */

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
        SHMEMI_FENCE_ACQREL();
        SHMEMI_BEHIND(shmemi_far_signal)(SHMEMI_THREAD, ctx, sig_addr, signal, sig_op, world, call);
    } else {
        (void)SHMEMI_ADD_REL(word, signal);
    }
}

/* Thread 0 looks at the signal's address, while the others copy. */
SHMEMI_DEV uint64_t *shmemi_signal_word(uint64_t *sig_addr, int sig_op, int world, uint32_t call)
{
    uint64_t at = shmemi_dev_locate(sig_addr, 8, 8, world, call, 0);

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
SHMEMI_DEV void shmemi_put_signal_far(enum shmemi_scope scope, shmem_ctx_t ctx, void *dest, const void *source, uint64_t len,
                                      uint64_t *sig_addr, uint64_t signal, int sig_op, int world, uint32_t call)
{
    shmemi_group_sync(scope);
    if (shmemi_rank(scope) == 0) {
        struct shmemi_far_signalled s = { dest, source, len, sig_addr, signal, ctx, scope, sig_op, world, call };

        SHMEMI_BEHIND(shmemi_far_put_signal)(&s);
    }
    shmemi_group_sync(scope);
}

SHMEMI_DEV void shmemi_dev_put_signal(enum shmemi_scope scope, shmem_ctx_t ctx, void *dest, const void *source,
                                      uint64_t len, uint64_t *sig_addr, uint64_t signal, int sig_op, int pe, uint32_t call)
{
    int world = shmemi_dev_ctx_world(ctx, pe, call);
    uint32_t rank = shmemi_rank(scope);
    uint64_t *word = 0;
    char *to;

    if (SHMEMI_UNLIKELY(shmemi_dev_nic()) && !shmemi_dev_reach(sig_addr, 8, world, call)) {
        shmemi_put_signal_far(scope, ctx, dest, source, len, sig_addr, signal, sig_op, world, call);
        return;
    }
    if (scope == SHMEMI_THREAD || len <= 8) { /* the group need not meet again */
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

/* Changes a signal without data; orders nothing. */
SHMEMI_DEV void shmemi_dev_signal(shmem_ctx_t ctx, uint64_t *sig_addr, uint64_t signal, int sig_op, int pe, uint32_t call)
{
    int world = shmemi_dev_ctx_world(ctx, pe, call);
    uint64_t *word = (uint64_t *)(void *)shmemi_dev_reach(sig_addr, 8, world, call);

    shmemi_dev_check_word(sig_addr, 8, call);
    if (sig_op != SHMEM_SIGNAL_SET && sig_op != SHMEM_SIGNAL_ADD)
        shmemi_dev_fail(SHMEMI_DEV_BAD_VALUE, call, (uint64_t)sig_op, 0, 0);
    if (SHMEMI_UNLIKELY(!shmemi_dev_near(word)) || (sig_op == SHMEM_SIGNAL_ADD && shmemi_dev_nic_amos()))
        SHMEMI_BEHIND(shmemi_far_signal)(SHMEMI_THREAD, ctx, sig_addr, signal, sig_op, world, call);
    else if (sig_op == SHMEM_SIGNAL_SET)
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

/*
 * Stores of this thread, and those it has seen, before stores that come after.  What goes to one peer by the NIC is in order
 * anyway; only atomics by the NIC to a peer that stores reach would be overtaken by them.
 */
SHMEMI_DEV void shmemi_dev_fence(enum shmemi_scope scope, shmem_ctx_t ctx, uint32_t call)
{
    shmemi_dev_check_ctx(ctx, call);
    shmemi_group_sync(scope);
    if (shmemi_rank(scope) == 0) {
        if (shmemi_dev_nic_amos() && ctx != SHMEM_CTX_INVALID)
            SHMEMI_BEHIND(shmemi_far_quiet_row)(shmemi_far_row(ctx), 1, 0, 1, call);
        SHMEMI_FENCE_ACQREL();
    }
    shmemi_group_sync(scope);
}

/* Everything is where it belongs before this returns, also for a read that follows. */
SHMEMI_DEV void shmemi_dev_quiet(enum shmemi_scope scope, shmem_ctx_t ctx, uint32_t call)
{
    shmemi_dev_check_ctx(ctx, call);
    shmemi_group_sync(scope);
    if (shmemi_dev_nic() && ctx != SHMEM_CTX_INVALID) {
        SHMEMI_BEHIND(shmemi_far_quiet_row)(shmemi_far_row(ctx), 0, shmemi_rank(scope), shmemi_size(scope), call);
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
    if (n && shmemi_dev_nic())
        SHMEMI_BEHIND(shmemi_far_quiet_row)(shmemi_far_row(ctx), 0, 0, 1, call);
    if (n)
        SHMEMI_FENCE_SC();
}

#endif
#endif
