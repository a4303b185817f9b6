/* SPDX-License-Identifier: BSD-3-Clause */
/* typed_onstream.c - the typed routines on CUDA streams: shells only. */
#include "onstream.h"

#include "shell.h"
#include "transports/cuda/kernel_args.h"

#define SHELL(RET, NAME, PARAMS, ...)                 \
    SHMEMI_API(RET, shmemx_##NAME##_on_stream, PARAMS) \
    {                                                 \
        static const char call[] = "shmemx_" #NAME "_on_stream"; \
        __VA_ARGS__                                   \
    }
#define STREAM struct CUstream_st *stream

#define MOVE(NAME, T, BYTES, OP)                                                                                 \
    SHELL(void, NAME, (T *dest, const T *source, size_t nelems, int pe, STREAM),                                 \
          shmemi_##OP##_on(dest, source, shmemi_bytes(nelems, BYTES), pe, stream, call);)
#define WITH_SIGNAL(NAME, T, BYTES)                                                                              \
    SHELL(void, NAME, (T *dest, const T *source, size_t nelems, uint64_t *sig_addr, uint64_t signal, int sig_op, int pe, STREAM), \
          shmemi_put_signal_on(dest, source, shmemi_bytes(nelems, BYTES), sig_addr, signal, sig_op, pe, stream, call);)
#define COLL(NAME, T, BYTES, WHICH)                                                                              \
    SHELL(int, NAME, (shmem_team_t team, T *dest, const T *source, size_t nelems, STREAM),                       \
          return shmemi_coll_on(SHMEMI_KERNEL_##WHICH, team, dest, source, shmemi_bytes(nelems, BYTES), 0, stream, call);)
#define BROADCAST(NAME, T, BYTES)                                                                                \
    SHELL(int, NAME, (shmem_team_t team, T *dest, const T *source, size_t nelems, int PE_root, STREAM),          \
          return shmemi_coll_on(SHMEMI_KERNEL_BROADCAST, team, dest, source, shmemi_bytes(nelems, BYTES), PE_root, stream, call);)

#define RMA(NAME, T)                                                                                             \
    MOVE(NAME##_put, T, sizeof(T), put)                                                                          \
    MOVE(NAME##_get, T, sizeof(T), get)                                                                          \
    MOVE(NAME##_put_nbi, T, sizeof(T), put)                                                                      \
    MOVE(NAME##_get_nbi, T, sizeof(T), get)                                                                      \
    SHELL(void, NAME##_p, (T *dest, T value, int pe, STREAM), shmemi_p_on(dest, &value, sizeof value, pe, stream, call);) \
    SHELL(T, NAME##_g, (const T *source, int pe, STREAM), T v; shmemi_g_on(&v, source, sizeof v, pe, stream, call); return v;) \
    SHELL(void, NAME##_iput, (T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe, STREAM), \
          shmemi_iput_on(dest, source, dst, sst, nelems, sizeof(T), pe, stream, call);)                          \
    SHELL(void, NAME##_iget, (T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe, STREAM), \
          shmemi_iget_on(dest, source, dst, sst, nelems, sizeof(T), pe, stream, call);)                          \
    WITH_SIGNAL(NAME##_put_signal, T, sizeof(T))                                                                 \
    WITH_SIGNAL(NAME##_put_signal_nbi, T, sizeof(T))                                                             \
    BROADCAST(NAME##_broadcast, T, sizeof(T))                                                                    \
    COLL(NAME##_collect, T, sizeof(T), COLLECT)                                                                  \
    COLL(NAME##_fcollect, T, sizeof(T), FCOLLECT)                                                                \
    COLL(NAME##_alltoall, T, sizeof(T), ALLTOALL)
SHMEMI_TYPES_RMA(RMA)
#undef RMA

MOVE(putmem, void, 1, put)
MOVE(getmem, void, 1, get)
MOVE(putmem_nbi, void, 1, put)
MOVE(getmem_nbi, void, 1, get)
WITH_SIGNAL(putmem_signal, void, 1)
WITH_SIGNAL(putmem_signal_nbi, void, 1)
BROADCAST(broadcastmem, void, 1)
COLL(collectmem, void, 1, COLLECT)
COLL(fcollectmem, void, 1, FCOLLECT)
COLL(alltoallmem, void, 1, ALLTOALL)

#define WAIT(NAME, T)                                                                                            \
    SHELL(void, NAME##_wait_until, (T *ivar, int cmp, T cmp_value, STREAM),                                      \
          shmemi_wait_on((T)-1 < (T)1 ? -(int)sizeof(T) : (int)sizeof(T), ivar, cmp, (uint64_t)cmp_value, stream, call);)
SHMEMI_TYPES_SYNC(WAIT)
#undef WAIT

/* ---- reductions ---- */

#define KIND(T)                                                                                                  \
    _Generic((T)0, float: SHMEMI_KERNEL_F32, double: SHMEMI_KERNEL_F64, long double: SHMEMI_KERNEL_NO_KIND,      \
             float _Complex: SHMEMI_KERNEL_C32, double _Complex: SHMEMI_KERNEL_C64, default: -1)
#define REDUCE(NAME, T, FN, OP, KIND)                                                                            \
    SHELL(int, NAME##_##FN##_reduce, (shmem_team_t team, T *dest, const T *source, size_t nreduce, STREAM),      \
          return shmemi_reduce_on(team, dest, source, nreduce, sizeof(T), KIND, SHMEMI_KERNEL_##OP, stream, call);)
#define KIND_OF(T) (_Generic((T)0, float: 1, double: 1, long double: 1, float _Complex: 1, double _Complex: 1, default: 0) \
                    ? (int)KIND(T) : (int)SIZE_KIND(T))
/* Of an integer; for other types any value that compiles. */
#define SIZE_KIND(T) (__builtin_ctz((unsigned)sizeof(T)) + (IS_SIGNED(T) ? 4 : 0))
#define IS_SIGNED(T)                                                                                             \
    _Generic((T)0, signed char: 1, short: 1, int: 1, long: 1, long long: 1, char: (char)-1 < 0, default: 0)

#define BIT(NAME, T)                                \
    REDUCE(NAME, T, and, AND, KIND_OF(T))           \
    REDUCE(NAME, T, or, OR, KIND_OF(T))             \
    REDUCE(NAME, T, xor, XOR, KIND_OF(T))
SHMEMI_TYPES_RED_BIT(BIT)
#undef BIT

#define MINMAX(NAME, T)                             \
    REDUCE(NAME, T, max, MAX, KIND_OF(T))           \
    REDUCE(NAME, T, min, MIN, KIND_OF(T))
SHMEMI_TYPES_RED_MINMAX(MINMAX)
#undef MINMAX

#define ARITH(NAME, T)                              \
    REDUCE(NAME, T, sum, SUM, KIND_OF(T))           \
    REDUCE(NAME, T, prod, PROD, KIND_OF(T))
SHMEMI_TYPES_RED_ARITH(ARITH)
#undef ARITH
