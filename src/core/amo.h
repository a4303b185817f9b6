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

/* How shmemi_amo_far learns what is wanted: no more arguments than go in registers. */
#define SHMEMI_AMO_WANT(op, size, fetches, world) \
    ((uint64_t)(op) | (uint64_t)(size) << 8 | (uint64_t)(fetches) << 16 | (uint64_t)(unsigned)(world) << 32)

/*
 * All that the shortest way does not do: argument errors, MARROW_CHECK, over the NIC, on device memory.  By value, and not in line: what load and store do keeps its operands in registers, and
 * there are hundreds of these routines.  Gives the old value, where one is wanted; nbi: into `old_out`, until quiet.
 */
SHMEMI_COLD uint64_t shmemi_amo_far(shmem_ctx_t ctx, uint64_t want, void *dest, uint64_t operand, uint64_t cond,
                                    const char *call);
SHMEMI_COLD void shmemi_amo_far_nbi(shmem_ctx_t ctx, uint64_t want, void *dest, uint64_t operand, uint64_t cond,
                                    void *old_out, const char *call);

SHMEMI_INLINE uint64_t shmemi_amo_bits(const void *p, size_t size)
{
    uint32_t v4 = 0;
    uint64_t v8 = 0;

    if (p && size == 4)
        memcpy(&v4, p, 4);
    else if (p)
        memcpy(&v8, p, 8);
    return size == 4 ? v4 : v8;
}

/* nbi: old_out need not be written before quiet.  size is 4 or 8; operand NULL only for FETCH, cond only used by CSWAP, old_out NULL for the non-fetching forms. */
SHMEMI_INLINE void shmemi_amo(shmem_ctx_t ctx, enum shmemi_amo_op op, void *dest, const void *operand,
                              const void *cond, void *old_out, size_t size, int pe, bool nbi, const char *call)
{
    int world = shmemi_ctx_world_pe(ctx, pe, call);
    void *word;

    if (shmemi_unlikely(((uintptr_t)dest & (size - 1)) ||
                        !shmemi_reach_plain(&shmemi.amo_peers, dest, size, world, shmemi.check_blocks, &word))) {
        uint64_t want = SHMEMI_AMO_WANT(op, size, old_out != NULL, world);
        uint64_t v = shmemi_amo_bits(operand, size), c = shmemi_amo_bits(cond, size);

        if (nbi) {
            shmemi_amo_far_nbi(ctx, want, dest, v, c, old_out, call);
        } else {
            v = shmemi_amo_far(ctx, want, dest, v, c, call);
            if (old_out)
                memcpy(old_out, &v, size); /* the low half comes first: nothing else is supported */
        }
        return;
    }
    if (size == 4)
        shmemi_amo_apply32(op, (uint32_t *)word, operand, cond, old_out);
    else
        shmemi_amo_apply64(op, (uint64_t *)word, operand, cond, old_out);
    if (op != SHMEMI_AMO_FETCH)
        shmemi_wake_peer(shmemi.peers[world].ctl);
}

#endif
