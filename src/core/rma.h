/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rma.h - untyped put and get; the typed routines are shells of one call around these.
 *
 * `call` is the public name for messages.  Strides and block sizes are in
 * elements of `elem` bytes, as in the specification (1.6, section 9.5).
 * Blocking and non-blocking forms are the same where load and store lead; elsewhere net.h takes over.
 */
#ifndef SHMEMI_RMA_H
#define SHMEMI_RMA_H

#include "ctx.h"
#include "devmem_rma.h"
#include "net.h"
#include "wait.h"

#include <string.h>

void shmemi_put(shmem_ctx_t ctx, void *dest, const void *source, size_t len, int pe, const char *call);
void shmemi_get(shmem_ctx_t ctx, void *dest, const void *source, size_t len, int pe, const char *call);
void shmemi_put_nbi(shmem_ctx_t ctx, void *dest, const void *source, size_t len, int pe, const char *call);
void shmemi_get_nbi(shmem_ctx_t ctx, void *dest, const void *source, size_t len, int pe, const char *call);
void shmemi_iput(shmem_ctx_t ctx, void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst,
                 size_t nelems, size_t elem, int pe, const char *call);
void shmemi_iget(shmem_ctx_t ctx, void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst,
                 size_t nelems, size_t elem, int pe, const char *call);
void shmemi_ibput(shmem_ctx_t ctx, void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst,
                  size_t bsize, size_t nblocks, size_t elem, int pe, const char *call);
void shmemi_ibget(shmem_ctx_t ctx, void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst,
                  size_t bsize, size_t nblocks, size_t elem, int pe, const char *call);
/* sig_op: SHMEM_SIGNAL_SET or SHMEM_SIGNAL_ADD.  The signal is seen after the data. */
void shmemi_put_signal(shmem_ctx_t ctx, void *dest, const void *source, size_t len, uint64_t *sig_addr,
                       uint64_t signal, int sig_op, int pe, const char *call);
void shmemi_put_signal_nbi(shmem_ctx_t ctx, void *dest, const void *source, size_t len, uint64_t *sig_addr,
                           uint64_t signal, int sig_op, int pe, const char *call);

/* ADD of a signal by this PE's own NIC. */
SHMEMI_COLD void shmemi_signal_add_far(shmem_ctx_t ctx, uint64_t *sig_addr, uint64_t signal, int world, const char *call);

/*
 * In a job where the NICs do the atomics, ADD goes through this PE's own even to a peer that is near.  SET is a plain
 * store there: SET and ADD of one signal at the same time are for the program to order.
 */
SHMEMI_INLINE void shmemi_signal_near(shmem_ctx_t ctx, uint64_t *word, uint64_t *sig_addr, uint64_t signal, int sig_op,
                                      int world, const char *call)
{
    /* Release: who sees the signal with acquire sees the data. */
    if (sig_op == SHMEM_SIGNAL_SET)
        SHMEMI_ST_REL(word, signal);
    else if (shmemi_unlikely(shmemi_net.nic_atomics))
        shmemi_signal_add_far(ctx, sig_addr, signal, world, call);
    else
        SHMEMI_ADD_ACQREL(word, signal);
    shmemi_wake_peer(shmemi.peers[world].ctl);
}

/* A signal without data; sig_op is right. */
SHMEMI_INLINE void shmemi_signal(shmem_ctx_t ctx, uint64_t *sig_addr, uint64_t signal, int sig_op, int pe,
                                 const char *call)
{
    int world = shmemi_ctx_world_pe(ctx, pe, call);
    void *word;

    shmemi_check_aligned(sig_addr, sizeof *sig_addr, call);
    if (shmemi_unlikely(!shmemi_reach(sig_addr, sizeof *sig_addr, world, call, &word))) {
        if (!shmemi_devmem_put_signal(ctx, NULL, NULL, 0, sig_addr, signal, sig_op, world, call))
            shmemi_net_put_signal(ctx, NULL, NULL, 0, sig_addr, signal, sig_op, world, true, call);
    } else
        shmemi_signal_near(ctx, word, sig_addr, signal, sig_op, world, call);
}

SHMEMI_COLD uint64_t shmemi_signal_fetch_odd(const uint64_t *sig_addr, const char *call);

SHMEMI_INLINE uint64_t shmemi_signal_fetch(const uint64_t *sig_addr, const char *call)
{
    void *word;

    if (shmemi_unlikely(((uintptr_t)sig_addr & (sizeof *sig_addr - 1)) ||
                        !shmemi_reach_plain(&shmemi.peers, sig_addr, sizeof *sig_addr, shmemi.my_pe, shmemi.odd, &word)))
        return shmemi_signal_fetch_odd(sig_addr, call);
    return SHMEMI_LD_ACQ(sig_addr);
}

/*
 * Of one element, all that the shortest way does not do: argument errors, MARROW_CHECK, another node, device memory.  Words
 * go by value, so that they stay in registers on the other way.
 */
SHMEMI_COLD void shmemi_p_far(shmem_ctx_t ctx, void *dest, uint64_t bits, size_t size, int world, const char *call);
SHMEMI_COLD uint64_t shmemi_g_far(shmem_ctx_t ctx, const void *source, size_t size, int world, const char *call);
SHMEMI_COLD void shmemi_put_far(shmem_ctx_t ctx, void *dest, const void *value, size_t size, int world, const char *call);
SHMEMI_COLD void shmemi_get_far(shmem_ctx_t ctx, void *value_out, const void *source, size_t size, int world,
                                const char *call);

/* One element of 1, 2, 4 or 8 bytes is one store that cannot tear; larger ones are copied. */
SHMEMI_INLINE void shmemi_store_elem(void *to, const void *from, size_t size)
{
    switch (size) {
    case 1: SHMEMI_ST_RLX((uint8_t *)to, *(const uint8_t *)from); break;
    case 2: { uint16_t v; memcpy(&v, from, 2); SHMEMI_ST_RLX((uint16_t *)to, v); break; }
    case 4: { uint32_t v; memcpy(&v, from, 4); SHMEMI_ST_RLX((uint32_t *)to, v); break; }
    case 8: { uint64_t v; memcpy(&v, from, 8); SHMEMI_ST_RLX((uint64_t *)to, v); break; }
    default: memcpy(to, from, size);
    }
}

SHMEMI_INLINE void shmemi_p(shmem_ctx_t ctx, void *dest, const void *value, size_t size, int pe, const char *call)
{
    int world = shmemi_ctx_world_pe(ctx, pe, call);
    void *there;

    if (shmemi_unlikely(!shmemi_reach_plain(&shmemi.peers, dest, size, world, shmemi.check_blocks, &there))) {
        uint64_t bits = 0;

        if (size <= sizeof bits) {
            memcpy(&bits, value, size);
            shmemi_p_far(ctx, dest, bits, size, world, call);
        } else {
            shmemi_put_far(ctx, dest, value, size, world, call);
        }
        return;
    }
    shmemi_store_elem(there, value, size);
    shmemi_wake_peer(shmemi.peers[world].ctl);
}

SHMEMI_INLINE void shmemi_g(shmem_ctx_t ctx, void *value_out, const void *source, size_t size, int pe, const char *call)
{
    int world = shmemi_ctx_world_pe(ctx, pe, call);
    void *there;

    if (shmemi_unlikely(!shmemi_reach_plain(&shmemi.peers, source, size, world, shmemi.check_blocks, &there))) {
        uint64_t bits;

        if (size <= sizeof bits) {
            bits = shmemi_g_far(ctx, source, size, world, call);
            memcpy(value_out, &bits, size);
        } else {
            shmemi_get_far(ctx, value_out, source, size, world, call);
        }
        return;
    }
    shmemi_store_elem(value_out, there, size);
}

void shmemi_fence(shmem_ctx_t ctx, const char *call);
void shmemi_quiet(shmem_ctx_t ctx, const char *call);

#endif
