/* SPDX-License-Identifier: BSD-3-Clause */
/* typed_signal.c - put-with-signal of every type and size, and the signals alone (specification 1.6, section 9.8): shells only. */
#include "amo.h"
#include "p2p.h"
#include "rma.h"

#include "shell.h"

#define WITH_SIGNAL(NAME, OP, T, BYTES)                                                                      \
    SHMEMI_SHELLS(void, NAME,                                                                                \
                  (T *dest, const T *source, size_t nelems, uint64_t *sig_addr, uint64_t signal, int sig_op, \
                   int pe),                                                                                  \
                  shmemi_##OP(ctx, dest, source, shmemi_bytes(nelems, BYTES), sig_addr, signal, sig_op, pe, call);)

#define TYPED(NAME, T)                              \
    WITH_SIGNAL(NAME##_put_signal, put_signal, T, sizeof(T))    \
    WITH_SIGNAL(NAME##_put_signal_nbi, put_signal_nbi, T, sizeof(T))
SHMEMI_TYPES_RMA(TYPED)
#undef TYPED

#define SIZED(BITS, BYTES)                              \
    WITH_SIGNAL(put##BITS##_signal, put_signal, void, BYTES)        \
    WITH_SIGNAL(put##BITS##_signal_nbi, put_signal_nbi, void, BYTES)
SHMEMI_SIZES(SIZED)
#undef SIZED

WITH_SIGNAL(putmem_signal, put_signal, void, 1)
WITH_SIGNAL(putmem_signal_nbi, put_signal_nbi, void, 1)
#undef WITH_SIGNAL

SHMEMI_SHELLS(void, signal_set, (uint64_t *sig_addr, uint64_t signal, int pe),
              shmemi_signal(ctx, sig_addr, signal, SHMEM_SIGNAL_SET, pe, call);)
SHMEMI_SHELLS(void, signal_add, (uint64_t *sig_addr, uint64_t signal, int pe),
              shmemi_signal(ctx, sig_addr, signal, SHMEM_SIGNAL_ADD, pe, call);)

/* Acquire pairs with the release of the signal in shmemi_put_signal: who sees the signal sees the data. */
SHMEMI_SHELL(uint64_t, signal_fetch, (const uint64_t *sig_addr), return shmemi_signal_fetch(sig_addr, call);)

SHMEMI_SHELL(uint64_t, signal_wait_until, (uint64_t *sig_addr, int cmp, uint64_t cmp_value),
             return shmemi_wait_until(SHMEMI_U64, sig_addr, cmp, &cmp_value, call);)
