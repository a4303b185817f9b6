/* SPDX-License-Identifier: BSD-3-Clause */
/* amo.c - atomics that are not just a processor instruction: checked ones, by the NIC, on device memory. */
#include "amo.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "amo.h takes the low half of a 64-bit value for a 32-bit one");

static void far(shmem_ctx_t ctx, uint64_t want, void *dest, uint64_t operand, uint64_t cond, void *old_out, bool nbi,
                const char *call)
{
    int op = (int)(want & 0xff), world = (int)(want >> 32);
    size_t size = want >> 8 & 0xff;
    const void *operand_at = op == SHMEMI_AMO_FETCH ? NULL : &operand, *cond_at = op == SHMEMI_AMO_CSWAP ? &cond : NULL;
    void *word;

    if (shmemi_reach_amo(dest, size, world, call, &word)) {
        shmemi_check_aligned(dest, size, call);
        if (size == 4)
            shmemi_amo_apply32((enum shmemi_amo_op)op, word, operand_at, cond_at, old_out);
        else
            shmemi_amo_apply64((enum shmemi_amo_op)op, word, operand_at, cond_at, old_out);
        shmemi_wake_peer(shmemi.peers[world].ctl);
        return;
    }
    shmemi_check_aligned(dest, size, call);
    if (shmemi_likely(!shmemi.gpu_up) || !shmemi_devmem_amo(op, dest, operand_at, cond_at, old_out, size, world, call))
        shmemi_net_amo(ctx, op, dest, operand_at, cond_at, old_out, size, world, nbi, call);
}

uint64_t shmemi_amo_far(shmem_ctx_t ctx, uint64_t want, void *dest, uint64_t operand, uint64_t cond, const char *call)
{
    uint64_t old = 0;

    far(ctx, want, dest, operand, cond, want >> 16 & 1 ? &old : NULL, false, call);
    return old;
}

void shmemi_amo_far_nbi(shmem_ctx_t ctx, uint64_t want, void *dest, uint64_t operand, uint64_t cond, void *old_out,
                        const char *call)
{
    far(ctx, want, dest, operand, cond, old_out, true, call);
}
