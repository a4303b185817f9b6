/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * amo.h - atomic memory operations on 4- and 8-byte words (specification 1.6, section 9.7).
 *
 * Operands and results are passed by address as raw bits, so float and double
 * travel unconverted.  With `op` and `size` constant the call folds to one
 * instruction on the peer's word.
 */
#ifndef SHMEMI_AMO_H
#define SHMEMI_AMO_H

#include "rma.h"

enum shmemi_amo_op {
    SHMEMI_AMO_FETCH,
    SHMEMI_AMO_SET,
    SHMEMI_AMO_SWAP,
    SHMEMI_AMO_CSWAP, /* stores *operand when the word equals *cond */
    SHMEMI_AMO_ADD,   /* the arithmetic ones give the old value when `old_out` is not NULL */
    SHMEMI_AMO_AND,
    SHMEMI_AMO_OR,
    SHMEMI_AMO_XOR,
};

#define SHMEMI_AMO_WORD(bits)                                                                        \
    SHMEMI_INLINE void shmemi_amo_apply##bits(enum shmemi_amo_op op, uint##bits##_t *word,           \
                                              const void *operand, const void *cond, void *old_out)  \
    {                                                                                                \
        uint##bits##_t v = 0, old = 0;                                                               \
        if (operand)                                                                                 \
            memcpy(&v, operand, sizeof v);                                                           \
        switch (op) {                                                                                \
        case SHMEMI_AMO_FETCH: old = __atomic_load_n(word, __ATOMIC_ACQUIRE); break;                 \
        case SHMEMI_AMO_SET: __atomic_store_n(word, v, __ATOMIC_RELEASE); break;                     \
        case SHMEMI_AMO_SWAP: old = __atomic_exchange_n(word, v, __ATOMIC_ACQ_REL); break;           \
        case SHMEMI_AMO_CSWAP:                                                                       \
            memcpy(&old, cond, sizeof old);                                                          \
            __atomic_compare_exchange_n(word, &old, v, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);       \
            break;                                                                                   \
        case SHMEMI_AMO_ADD: old = __atomic_fetch_add(word, v, __ATOMIC_ACQ_REL); break;             \
        case SHMEMI_AMO_AND: old = __atomic_fetch_and(word, v, __ATOMIC_ACQ_REL); break;             \
        case SHMEMI_AMO_OR: old = __atomic_fetch_or(word, v, __ATOMIC_ACQ_REL); break;               \
        case SHMEMI_AMO_XOR: old = __atomic_fetch_xor(word, v, __ATOMIC_ACQ_REL); break;             \
        }                                                                                            \
        if (old_out)                                                                                 \
            memcpy(old_out, &old, sizeof old);                                                       \
    }
SHMEMI_AMO_WORD(32)
SHMEMI_AMO_WORD(64)
#undef SHMEMI_AMO_WORD

/* Over the NIC, or on device memory, from copies: operands whose address nobody takes stay in registers where load and store lead. */
SHMEMI_INLINE void shmemi_amo_far(shmem_ctx_t ctx, enum shmemi_amo_op op, void *dest, const void *operand,
                                  const void *cond, void *old_out, size_t size, int world, bool nbi, const char *call)
{
    uint64_t v = 0, c = 0, old = 0;

    if (operand)
        memcpy(&v, operand, size);
    if (cond)
        memcpy(&c, cond, size);
    if (!shmemi_devmem_amo((int)op, dest, &v, &c, nbi || !old_out ? old_out : &old, size, world, call))
        shmemi_net_amo(ctx, op, dest, &v, &c, nbi || !old_out ? old_out : &old, size, world, nbi, call);
    if (!nbi && old_out)
        memcpy(old_out, &old, size);
}

/* nbi: old_out need not be written before quiet.  size is 4 or 8; operand NULL only for FETCH, cond only used by CSWAP, old_out NULL for the non-fetching forms. */
SHMEMI_INLINE void shmemi_amo(shmem_ctx_t ctx, enum shmemi_amo_op op, void *dest, const void *operand,
                              const void *cond, void *old_out, size_t size, int pe, bool nbi, const char *call)
{
    int world = shmemi_ctx_world_pe(ctx, pe, call);
    void *word;

    if (shmemi_unlikely(!shmemi_reach_amo(dest, size, world, call, &word))) {
        shmemi_check_aligned(dest, size, call);
        shmemi_amo_far(ctx, op, dest, operand, cond, old_out, size, world, nbi, call);
        return;
    }
    shmemi_check_aligned(dest, size, call);
    if (size == 4)
        shmemi_amo_apply32(op, (uint32_t *)word, operand, cond, old_out);
    else
        shmemi_amo_apply64(op, (uint64_t *)word, operand, cond, old_out);
    if (op != SHMEMI_AMO_FETCH)
        shmemi_wake_peer(shmemi.peers[world].ctl);
}

#endif
