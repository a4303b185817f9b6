/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * amo.h - atomics of kernels on words of 4 and 8 bytes: one instruction on the peer's word, or one work request.
 *
 * Operands and results are passed by address as raw bits, so float and double travel unconverted; `op` and `size` are
 * constants at each call site.
 */
#ifndef SHMEM_DEVICE_AMO_H
#define SHMEM_DEVICE_AMO_H

#include "far.h"

#ifdef SHMEMI_DEVICE_CODE

#define SHMEMI_DEV_AMO_WORD(bits)                                                                            \
    SHMEMI_DEV uint##bits##_t shmemi_dev_amo##bits(enum shmemi_dev_amo_op op, uint##bits##_t *word,          \
                                                   uint##bits##_t v, uint##bits##_t cond)                    \
    {                                                                                                        \
        switch (op) {                                                                                        \
        case SHMEMI_DEV_FETCH: return SHMEMI_LD_RLX(word);                                                   \
        case SHMEMI_DEV_SET: SHMEMI_ST_RLX(word, v); break;                                                  \
        case SHMEMI_DEV_SWAP: return SHMEMI_SWAP_RLX(word, v);                                               \
        case SHMEMI_DEV_CSWAP: (void)SHMEMI_CAS_RLX(word, &cond, v); return cond;                            \
        case SHMEMI_DEV_ADD: return SHMEMI_ADD_RLX(word, v);                                                 \
        case SHMEMI_DEV_AND: return SHMEMI_AND_RLX(word, v);                                                 \
        case SHMEMI_DEV_OR: return SHMEMI_OR_RLX(word, v);                                                   \
        case SHMEMI_DEV_XOR: return SHMEMI_XOR_RLX(word, v);                                                 \
        }                                                                                                    \
        return 0;                                                                                            \
    }
SHMEMI_DEV_AMO_WORD(32)
SHMEMI_DEV_AMO_WORD(64)
#undef SHMEMI_DEV_AMO_WORD

SHMEMI_DEV uint64_t shmemi_dev_raw(const void *p, uint32_t size)
{
    return !p ? 0 : size == 4 ? *(const uint32_t *)p : *(const uint64_t *)p;
}

/* The word's address, or 0 and its old value when it went by the NIC. */
struct shmemi_amo_else {
    uint64_t at, old;
};

SHMEMI_DEV_COLD struct shmemi_amo_else shmemi_dev_amo_else(shmem_ctx_t ctx, enum shmemi_dev_amo_op op, const void *dest,
                                                           uint64_t operand, uint64_t cond, int wanted, uint32_t size,
                                                           int world)
{
    struct shmemi_amo_else r;

    r.at = shmemi_dev_search(dest, size, size, world, SHMEMI_CALL_ATOMIC, 1);
    r.old = 0;
    if (SHMEMI_NIC_PATH && (!r.at || shmemi_dev_nic_amos())) {
        r.old = SHMEMI_BEHIND(shmemi_far_amo)(ctx, op, dest, operand, cond, wanted, size, world);
        r.at = 0;
    }
    return r;
}

/* operand may be null for FETCH, cond is used by CSWAP only, old_out may be null. */
SHMEMI_DEV void shmemi_dev_amo(shmem_ctx_t ctx, enum shmemi_dev_amo_op op, const void *dest, const void *operand,
                               const void *cond, void *old_out, uint32_t size, int pe)
{
    int world = shmemi_dev_ctx_world(ctx, pe, SHMEMI_CALL_ATOMIC);
    uint64_t at;
    void *word;

    if (!shmemi_dev_found(dest, size, world, &at) || SHMEMI_UNLIKELY(shmemi_dev_nic_amos())) {
        struct shmemi_amo_else r = shmemi_dev_amo_else(ctx, op, dest, shmemi_dev_raw(operand, size), shmemi_dev_raw(cond, size),
                                                       old_out != 0, size, world);

        at = r.at;
        if (SHMEMI_NIC_PATH && !at) {
            if (old_out && size == 4)
                *(uint32_t *)old_out = (uint32_t)r.old;
            else if (old_out)
                *(uint64_t *)old_out = r.old;
            return;
        }
    }
    word = (void *)(uintptr_t)at;
    SHMEMI_ASSUME_GLOBAL(word);
    if (size == 4) {
        uint32_t old = shmemi_dev_amo32(op, (uint32_t *)word, operand ? *(const uint32_t *)operand : 0,
                                        cond ? *(const uint32_t *)cond : 0);

        if (old_out)
            *(uint32_t *)old_out = old;
    } else {
        uint64_t old = shmemi_dev_amo64(op, (uint64_t *)word, operand ? *(const uint64_t *)operand : 0,
                                        cond ? *(const uint64_t *)cond : 0);

        if (old_out)
            *(uint64_t *)old_out = old;
    }
}

#endif
#endif
