/* SPDX-License-Identifier: BSD-3-Clause */
/* typed_amo.c - the atomic routines of every type (specification 1.6, section 9.7): shells only. */
#include "amo.h"

#include "shell.h"

/* The shapes: what a routine takes and which operation it is. */
#define FETCHING(NAME, T, CALL, OP, PARAMS, OPERAND, COND) \
    SHMEMI_SHELLS(T, NAME##_##CALL, PARAMS, T old;         \
                  shmemi_amo(ctx, SHMEMI_AMO_##OP, dest, OPERAND, COND, &old, sizeof(T), pe, false, call); return old;)
#define SILENT(NAME, T, CALL, OP, PARAMS, OPERAND) \
    SHMEMI_SHELLS(void, NAME##_##CALL, PARAMS,     \
                  shmemi_amo(ctx, SHMEMI_AMO_##OP, dest, OPERAND, NULL, NULL, sizeof(T), pe, false, call);)
#define LATER(NAME, T, CALL, OP, PARAMS, OPERAND, COND)                                              \
    SHMEMI_SHELLS(void, NAME##_##CALL##_nbi, PARAMS, shmemi_check_result(fetch, "fetch", call); \
                  shmemi_amo(ctx, SHMEMI_AMO_##OP, dest, OPERAND, COND, fetch, sizeof(T), pe, true, call);)
#define ONE(T) &(T){1}

#define EXTENDED(NAME, T)                                                                          \
    SHMEMI_SHELLS(T, NAME##_atomic_fetch, (const T *source, int pe), T old;                        \
                  shmemi_amo(ctx, SHMEMI_AMO_FETCH, (T *)source, NULL, NULL, &old, sizeof(T), pe, false, call); return old;) \
    SHMEMI_SHELLS(void, NAME##_atomic_fetch_nbi, (T *fetch, const T *source, int pe),              \
                  shmemi_check_result(fetch, "fetch", call);                                       \
                  shmemi_amo(ctx, SHMEMI_AMO_FETCH, (T *)source, NULL, NULL, fetch, sizeof(T), pe, true, call);) \
    SILENT(NAME, T, atomic_set, SET, (T *dest, T value, int pe), &value)                           \
    FETCHING(NAME, T, atomic_swap, SWAP, (T *dest, T value, int pe), &value, NULL)                 \
    LATER(NAME, T, atomic_swap, SWAP, (T *fetch, T *dest, T value, int pe), &value, NULL)
SHMEMI_TYPES_AMO_EXT(EXTENDED)
#undef EXTENDED

#define STANDARD(NAME, T)                                                                                     \
    FETCHING(NAME, T, atomic_compare_swap, CSWAP, (T *dest, T cond, T value, int pe), &value, &cond)          \
    LATER(NAME, T, atomic_compare_swap, CSWAP, (T *fetch, T *dest, T cond, T value, int pe), &value, &cond)   \
    FETCHING(NAME, T, atomic_fetch_inc, ADD, (T *dest, int pe), ONE(T), NULL)                                 \
    LATER(NAME, T, atomic_fetch_inc, ADD, (T *fetch, T *dest, int pe), ONE(T), NULL)                          \
    SILENT(NAME, T, atomic_inc, ADD, (T *dest, int pe), ONE(T))                                               \
    FETCHING(NAME, T, atomic_fetch_add, ADD, (T *dest, T value, int pe), &value, NULL)                        \
    LATER(NAME, T, atomic_fetch_add, ADD, (T *fetch, T *dest, T value, int pe), &value, NULL)                 \
    SILENT(NAME, T, atomic_add, ADD, (T *dest, T value, int pe), &value)
SHMEMI_TYPES_AMO(STANDARD)
#undef STANDARD

#define BITWISE_OP(NAME, T, NAMED, OP)                                                               \
    FETCHING(NAME, T, atomic_fetch_##NAMED, OP, (T *dest, T value, int pe), &value, NULL)            \
    LATER(NAME, T, atomic_fetch_##NAMED, OP, (T *fetch, T *dest, T value, int pe), &value, NULL)     \
    SILENT(NAME, T, atomic_##NAMED, OP, (T *dest, T value, int pe), &value)
#define BITWISE(NAME, T)              \
    BITWISE_OP(NAME, T, and, AND)     \
    BITWISE_OP(NAME, T, or, OR)       \
    BITWISE_OP(NAME, T, xor, XOR)
SHMEMI_TYPES_AMO_BIT(BITWISE)
#undef BITWISE
#undef BITWISE_OP
#undef LATER
#undef SILENT
#undef FETCHING

/* The names of before 1.4, which have no context; for more types than 1.4 gave them, as Sandia OpenSHMEM has. */

#define OLD_FETCHING(NAME, T, CALL, OP, PARAMS, OPERAND, COND)                     \
    SHMEMI_SHELL(T, NAME##_##CALL, PARAMS, T old;                                  \
                 shmemi_amo(SHMEM_CTX_DEFAULT, SHMEMI_AMO_##OP, dest, OPERAND, COND, &old, sizeof(T), pe, false, call); \
                 return old;)
#define OLD_SILENT(NAME, T, CALL, OP, PARAMS, OPERAND) \
    SHMEMI_SHELL(void, NAME##_##CALL, PARAMS,          \
                 shmemi_amo(SHMEM_CTX_DEFAULT, SHMEMI_AMO_##OP, dest, OPERAND, NULL, NULL, sizeof(T), pe, false, call);)

#define OLD_EXTENDED(NAME, T)                                                              \
    SHMEMI_SHELL(T, NAME##_fetch, (const T *source, int pe), T old;                        \
                 shmemi_amo(SHMEM_CTX_DEFAULT, SHMEMI_AMO_FETCH, (T *)source, NULL, NULL, &old, sizeof(T), pe, false, call); \
                 return old;)                                                              \
    OLD_SILENT(NAME, T, set, SET, (T *dest, T value, int pe), &value)                      \
    OLD_FETCHING(NAME, T, swap, SWAP, (T *dest, T value, int pe), &value, NULL)
SHMEMI_TYPES_AMO_EXT(OLD_EXTENDED)
#undef OLD_EXTENDED

#define OLD_STANDARD(NAME, T)                                                                   \
    OLD_FETCHING(NAME, T, cswap, CSWAP, (T *dest, T cond, T value, int pe), &value, &cond)      \
    OLD_FETCHING(NAME, T, finc, ADD, (T *dest, int pe), ONE(T), NULL)                           \
    OLD_SILENT(NAME, T, inc, ADD, (T *dest, int pe), ONE(T))                                    \
    OLD_FETCHING(NAME, T, fadd, ADD, (T *dest, T value, int pe), &value, NULL)                  \
    OLD_SILENT(NAME, T, add, ADD, (T *dest, T value, int pe), &value)
SHMEMI_TYPES_AMO(OLD_STANDARD)
#undef OLD_STANDARD
#undef OLD_SILENT
#undef OLD_FETCHING
#undef ONE
