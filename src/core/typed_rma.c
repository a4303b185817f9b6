/* SPDX-License-Identifier: BSD-3-Clause */
/* typed_rma.c - the put and get routines of every type and size (specification 1.6, section 9.6): shells only. */
#include "rma.h"

#include "shell.h"

/* typed */

#define CONTIGUOUS(NAME, T, OP)                                                      \
    SHMEMI_SHELLS(void, NAME##_##OP, (T *dest, const T *source, size_t nelems, int pe), \
                  shmemi_##OP(ctx, dest, source, shmemi_bytes(nelems, sizeof(T)), pe, call);)
#define STRIDED(NAME, T, OP)                                                                                  \
    SHMEMI_SHELLS(void, NAME##_##OP,                                                                          \
                  (T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe),            \
                  shmemi_##OP(ctx, dest, source, dst, sst, nelems, sizeof(T), pe, call);)
#define BLOCKS(NAME, T, OP)                                                                                     \
    SHMEMI_SHELLS(void, NAME##_##OP,                                                                            \
                  (T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe), \
                  shmemi_##OP(ctx, dest, source, dst, sst, bsize, nblocks, sizeof(T), pe, call);)

#define TYPED(NAME, T)                                                                     \
    CONTIGUOUS(NAME, T, put)                                                               \
    CONTIGUOUS(NAME, T, get)                                                               \
    CONTIGUOUS(NAME, T, put_nbi)                                                           \
    CONTIGUOUS(NAME, T, get_nbi)                                                           \
    STRIDED(NAME, T, iput)                                                                 \
    STRIDED(NAME, T, iget)                                                                 \
    BLOCKS(NAME, T, ibput)                                                                 \
    BLOCKS(NAME, T, ibget)                                                                 \
    SHMEMI_SHELLS(void, NAME##_p, (T *dest, T value, int pe),                              \
                  shmemi_p(ctx, dest, &value, sizeof(T), pe, call);)                       \
    SHMEMI_SHELLS(T, NAME##_g, (const T *source, int pe), T value;                         \
                  shmemi_g(ctx, &value, source, sizeof(T), pe, call); return value;)
SHMEMI_TYPES_RMA(TYPED)
#undef TYPED
#undef BLOCKS
#undef STRIDED
#undef CONTIGUOUS

/* by size of the element, and by bytes */

#define CONTIGUOUS(NAME, OP, BYTES)                                                          \
    SHMEMI_SHELLS(void, NAME, (void *dest, const void *source, size_t nelems, int pe),       \
                  shmemi_##OP(ctx, dest, source, shmemi_bytes(nelems, BYTES), pe, call);)
#define STRIDED(NAME, OP, BYTES)                                                                              \
    SHMEMI_SHELLS(void, NAME,                                                                                 \
                  (void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe),      \
                  shmemi_##OP(ctx, dest, source, dst, sst, nelems, BYTES, pe, call);)
#define BLOCKS(NAME, OP, BYTES)                                                                                       \
    SHMEMI_SHELLS(void, NAME,                                                                                         \
                  (void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize, size_t nblocks, int pe), \
                  shmemi_##OP(ctx, dest, source, dst, sst, bsize, nblocks, BYTES, pe, call);)

#define SIZED(BITS, BYTES)                          \
    CONTIGUOUS(put##BITS, put, BYTES)               \
    CONTIGUOUS(get##BITS, get, BYTES)               \
    CONTIGUOUS(put##BITS##_nbi, put_nbi, BYTES)     \
    CONTIGUOUS(get##BITS##_nbi, get_nbi, BYTES)     \
    STRIDED(iput##BITS, iput, BYTES)                \
    STRIDED(iget##BITS, iget, BYTES)                \
    BLOCKS(ibput##BITS, ibput, BYTES)               \
    BLOCKS(ibget##BITS, ibget, BYTES)
SHMEMI_SIZES(SIZED)
#undef SIZED

CONTIGUOUS(putmem, put, 1)
CONTIGUOUS(getmem, get, 1)
CONTIGUOUS(putmem_nbi, put_nbi, 1)
CONTIGUOUS(getmem_nbi, get_nbi, 1)
#undef BLOCKS
#undef STRIDED
#undef CONTIGUOUS
