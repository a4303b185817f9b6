/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reduce_loops.h - the loops of the reductions and their table, included by reduce_kernels.c once for each
 * instruction set: VARIANT is the suffix of the names, TARGET an attribute for the functions.
 *
 * The inner loop has a constant count: compilers vectorise it at -O2 without run-time tests.
 */
#define BLOCK 64

#define PASTE_(a, b) a##_##b
#define PASTE(a, b) PASTE_(a, b)

#define KERNEL(name, T, expr)                                                                        \
    TARGET static void PASTE(name, VARIANT)(void *restrict acc_, const void *restrict in_, size_t n) \
    {                                                                                                \
        T *restrict acc = acc_;                                                                      \
        const T *restrict in = in_;                                                                  \
                                                                                                     \
        for (; n >= BLOCK; n -= BLOCK, acc += BLOCK, in += BLOCK)                                    \
            for (int i = 0; i < BLOCK; i++) {                                                        \
                const T a = acc[i], b = in[i];                                                       \
                acc[i] = (T)(expr);                                                                  \
            }                                                                                        \
        for (size_t i = 0; i < n; i++) {                                                             \
            const T a = acc[i], b = in[i];                                                           \
            acc[i] = (T)(expr);                                                                      \
        }                                                                                            \
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

#define CELL(type, op, suffix) [SHMEMI_RED_##type] = PASTE(op##_##suffix, VARIANT)

#define UNSIGNED_CELLS(op) CELL(U8, op, u8), CELL(U16, op, u16), CELL(U32, op, u32), CELL(U64, op, u64)
/* Without a sign of its own: the loops of the unsigned types serve both. */
#define BOTH_CELLS(op) \
    UNSIGNED_CELLS(op), CELL(I8, op, u8), CELL(I16, op, u16), CELL(I32, op, u32), CELL(I64, op, u64)
#define SIGNED_CELLS(op) CELL(I8, op, i8), CELL(I16, op, i16), CELL(I32, op, i32), CELL(I64, op, i64)
#define REAL_CELLS(op) CELL(FLOAT, op, f), CELL(DOUBLE, op, d), CELL(LONGDOUBLE, op, ld)
#define COMPLEX_CELLS(op) CELL(COMPLEXF, op, cf), CELL(COMPLEXD, op, cd)

static shmemi_red_fn *const PASTE(kernels, VARIANT)[SHMEMI_RED_OPS][SHMEMI_RED_TYPES] = {
    [SHMEMI_RED_AND] = { BOTH_CELLS(and) },
    [SHMEMI_RED_OR] = { BOTH_CELLS(or) },
    [SHMEMI_RED_XOR] = { BOTH_CELLS(xor) },
    [SHMEMI_RED_MAX] = { UNSIGNED_CELLS(max), SIGNED_CELLS(max), REAL_CELLS(max) },
    [SHMEMI_RED_MIN] = { UNSIGNED_CELLS(min), SIGNED_CELLS(min), REAL_CELLS(min) },
    [SHMEMI_RED_SUM] = { BOTH_CELLS(sum), REAL_CELLS(sum), COMPLEX_CELLS(sum) },
    [SHMEMI_RED_PROD] = { BOTH_CELLS(prod), REAL_CELLS(prod), COMPLEX_CELLS(prod) },
};

#undef BLOCK
#undef PASTE_
#undef PASTE
#undef KERNEL
#undef WRAPPING
#undef ORDERED
#undef ARITHMETIC
#undef CELL
#undef UNSIGNED_CELLS
#undef BOTH_CELLS
#undef SIGNED_CELLS
#undef REAL_CELLS
#undef COMPLEX_CELLS
