/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reduce_kernels.c - the loops of the reductions, one for each pair of operation and element type.
 *
 * The inner loop has a constant count: compilers vectorise it at -O2 without run-time tests.
 */
#include "reduce.h"

#define BLOCK 64

#define KERNEL(name, T, expr)                                                        \
    static void name(void *restrict acc_, const void *restrict in_, size_t n)        \
    {                                                                                \
        T *restrict acc = acc_;                                                      \
        const T *restrict in = in_;                                                  \
                                                                                     \
        for (; n >= BLOCK; n -= BLOCK, acc += BLOCK, in += BLOCK)                    \
            for (int i = 0; i < BLOCK; i++) {                                        \
                const T a = acc[i], b = in[i];                                       \
                acc[i] = (T)(expr);                                                  \
            }                                                                        \
        for (size_t i = 0; i < n; i++) {                                             \
            const T a = acc[i], b = in[i];                                           \
            acc[i] = (T)(expr);                                                      \
        }                                                                            \
    }

/* 1u * keeps small unsigned operands from becoming signed int, where a product may overflow. */
#define WRAPPING(T, suffix)             \
    KERNEL(and_##suffix, T, a & b)      \
    KERNEL(or_##suffix, T, a | b)       \
    KERNEL(xor_##suffix, T, a ^ b)      \
    KERNEL(sum_##suffix, T, 1u * a + b) \
    KERNEL(prod_##suffix, T, 1u * a * b)

#define ORDERED(T, suffix)                  \
    KERNEL(max_##suffix, T, a > b ? a : b)  \
    KERNEL(min_##suffix, T, a < b ? a : b)

#define ARITHMETIC(T, suffix)        \
    KERNEL(sum_##suffix, T, a + b)   \
    KERNEL(prod_##suffix, T, a * b)

WRAPPING(uint8_t, u8)
WRAPPING(uint16_t, u16)
WRAPPING(uint32_t, u32)
WRAPPING(uint64_t, u64)
ORDERED(uint8_t, u8)
ORDERED(uint16_t, u16)
ORDERED(uint32_t, u32)
ORDERED(uint64_t, u64)
ORDERED(int8_t, i8)
ORDERED(int16_t, i16)
ORDERED(int32_t, i32)
ORDERED(int64_t, i64)
ORDERED(float, f)
ORDERED(double, d)
ORDERED(long double, ld)
ARITHMETIC(float, f)
ARITHMETIC(double, d)
ARITHMETIC(long double, ld)
ARITHMETIC(float _Complex, cf)
ARITHMETIC(double _Complex, cd)

/* Without a sign of its own: the loops of the unsigned types serve both. */
#define INTEGER_ROW(op)                                                            \
    [SHMEMI_RED_U8] = op##_u8, [SHMEMI_RED_U16] = op##_u16, [SHMEMI_RED_U32] = op##_u32, \
    [SHMEMI_RED_U64] = op##_u64, [SHMEMI_RED_I8] = op##_u8, [SHMEMI_RED_I16] = op##_u16, \
    [SHMEMI_RED_I32] = op##_u32, [SHMEMI_RED_I64] = op##_u64
#define SIGNED_ROW(op)                                                             \
    [SHMEMI_RED_U8] = op##_u8, [SHMEMI_RED_U16] = op##_u16, [SHMEMI_RED_U32] = op##_u32, \
    [SHMEMI_RED_U64] = op##_u64, [SHMEMI_RED_I8] = op##_i8, [SHMEMI_RED_I16] = op##_i16, \
    [SHMEMI_RED_I32] = op##_i32, [SHMEMI_RED_I64] = op##_i64
#define REAL_ROW(op)                                                               \
    [SHMEMI_RED_FLOAT] = op##_f, [SHMEMI_RED_DOUBLE] = op##_d, [SHMEMI_RED_LONGDOUBLE] = op##_ld
#define COMPLEX_ROW(op) [SHMEMI_RED_COMPLEXF] = op##_cf, [SHMEMI_RED_COMPLEXD] = op##_cd

shmemi_red_fn *const shmemi_red_kernels[SHMEMI_RED_OPS][SHMEMI_RED_TYPES] = {
    [SHMEMI_RED_AND] = { INTEGER_ROW(and) },
    [SHMEMI_RED_OR] = { INTEGER_ROW(or) },
    [SHMEMI_RED_XOR] = { INTEGER_ROW(xor) },
    [SHMEMI_RED_MAX] = { SIGNED_ROW(max), REAL_ROW(max) },
    [SHMEMI_RED_MIN] = { SIGNED_ROW(min), REAL_ROW(min) },
    [SHMEMI_RED_SUM] = { INTEGER_ROW(sum), REAL_ROW(sum), COMPLEX_ROW(sum) },
    [SHMEMI_RED_PROD] = { INTEGER_ROW(prod), REAL_ROW(prod), COMPLEX_ROW(prod) },
};
