/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reduce.h - the operators of reductions on 16 bytes of any type, and the pass that combines the arrays of all members.
 *
 * Operator and kind are constants at each call site and fold away.  All PEs combine in the order of their numbers, so
 * all get the same floating-point result.
 */
#ifndef SHMEM_DEVICE_REDUCE_H
#define SHMEM_DEVICE_REDUCE_H

#include "addr.h"

enum shmemi_red_op {
    SHMEMI_RED_SUM, SHMEMI_RED_PROD, SHMEMI_RED_MIN, SHMEMI_RED_MAX, SHMEMI_RED_AND, SHMEMI_RED_OR, SHMEMI_RED_XOR,
};

/* Integers by log2 of their bytes, signed ones from 4. */
enum shmemi_red_kind {
    SHMEMI_RED_U8, SHMEMI_RED_U16, SHMEMI_RED_U32, SHMEMI_RED_U64,
    SHMEMI_RED_I8, SHMEMI_RED_I16, SHMEMI_RED_I32, SHMEMI_RED_I64,
    SHMEMI_RED_F32, SHMEMI_RED_F64, SHMEMI_RED_C32, SHMEMI_RED_C64,
};

#define SHMEMI_RED_INT(T)                                                                  \
    ((enum shmemi_red_kind)((sizeof(T) == 8 ? 3 : sizeof(T) == 4 ? 2 : sizeof(T) == 2 ? 1 : 0) + \
                            ((T)-1 < (T)1 ? 4 : 0)))

#ifdef SHMEMI_DEVICE_CODE

SHMEMI_DEV uint32_t shmemi_red_size(enum shmemi_red_kind kind)
{
    return kind <= SHMEMI_RED_I64 ? 1u << (kind & 3) : kind == SHMEMI_RED_F32 ? 4 : kind == SHMEMI_RED_C64 ? 16 : 8;
}

/* W: unsigned, at least as wide as int, so that nothing overflows. */
#define SHMEMI_RED_INTS(NAME, T, W)                                                                         \
    SHMEMI_DEV struct shmemi_v16 shmemi_red_##NAME(enum shmemi_red_op op, struct shmemi_v16 a, struct shmemi_v16 b) \
    {                                                                                                       \
        union {                                                                                             \
            struct shmemi_v16 v;                                                                            \
            T e[16 / sizeof(T)];                                                                            \
        } x, y;                                                                                             \
        x.v = a;                                                                                            \
        y.v = b;                                                                                            \
        SHMEMI_UNROLL                                                                                       \
        for (uint32_t i = 0; i < 16 / sizeof(T); i++) {                                                     \
            T p = x.e[i], q = y.e[i];                                                                       \
            switch (op) {                                                                                   \
            case SHMEMI_RED_SUM: p = (T)((W)p + (W)q); break;                                               \
            case SHMEMI_RED_PROD: p = (T)((W)p * (W)q); break;                                              \
            case SHMEMI_RED_MIN: p = q < p ? q : p; break;                                                  \
            case SHMEMI_RED_MAX: p = q > p ? q : p; break;                                                  \
            case SHMEMI_RED_AND: p = (T)(p & q); break;                                                     \
            case SHMEMI_RED_OR: p = (T)(p | q); break;                                                      \
            case SHMEMI_RED_XOR: p = (T)(p ^ q); break;                                                     \
            }                                                                                               \
            x.e[i] = p;                                                                                     \
        }                                                                                                   \
        return x.v;                                                                                         \
    }
SHMEMI_RED_INTS(u8, uint8_t, uint32_t)
SHMEMI_RED_INTS(u16, uint16_t, uint32_t)
SHMEMI_RED_INTS(u32, uint32_t, uint32_t)
SHMEMI_RED_INTS(u64, uint64_t, uint64_t)
SHMEMI_RED_INTS(i8, int8_t, uint32_t)
SHMEMI_RED_INTS(i16, int16_t, uint32_t)
SHMEMI_RED_INTS(i32, int32_t, uint32_t)
SHMEMI_RED_INTS(i64, int64_t, uint64_t)
#undef SHMEMI_RED_INTS

/* `complex`: pairs of a real and an imaginary part. */
#define SHMEMI_RED_FLOATS(NAME, T)                                                                          \
    SHMEMI_DEV struct shmemi_v16 shmemi_red_##NAME(enum shmemi_red_op op, int complex, struct shmemi_v16 a, \
                                                   struct shmemi_v16 b)                                     \
    {                                                                                                       \
        union {                                                                                             \
            struct shmemi_v16 v;                                                                            \
            T e[16 / sizeof(T)];                                                                            \
        } x, y;                                                                                             \
        x.v = a;                                                                                            \
        y.v = b;                                                                                            \
        SHMEMI_UNROLL                                                                                       \
        for (uint32_t i = 0; i < 16 / sizeof(T); i++) {                                                     \
            T p = x.e[i], q = y.e[i];                                                                       \
            if (complex && op == SHMEMI_RED_PROD) {                                                         \
                if (i % 2 == 0) {                                                                           \
                    x.e[i] = p * q - x.e[i + 1] * y.e[i + 1];                                               \
                    x.e[i + 1] = p * y.e[i + 1] + x.e[i + 1] * q;                                           \
                }                                                                                           \
                continue;                                                                                   \
            }                                                                                               \
            switch (op) {                                                                                   \
            case SHMEMI_RED_SUM: p = p + q; break;                                                          \
            case SHMEMI_RED_PROD: p = p * q; break;                                                         \
            case SHMEMI_RED_MIN: p = q < p ? q : p; break;                                                  \
            default: p = q > p ? q : p; break;                                                              \
            }                                                                                               \
            x.e[i] = p;                                                                                     \
        }                                                                                                   \
        return x.v;                                                                                         \
    }
SHMEMI_RED_FLOATS(f32, float)
SHMEMI_RED_FLOATS(f64, double)
#undef SHMEMI_RED_FLOATS

SHMEMI_DEV struct shmemi_v16 shmemi_red16(enum shmemi_red_op op, enum shmemi_red_kind kind, struct shmemi_v16 a,
                                          struct shmemi_v16 b)
{
    switch (kind) {
    case SHMEMI_RED_U8: return shmemi_red_u8(op, a, b);
    case SHMEMI_RED_U16: return shmemi_red_u16(op, a, b);
    case SHMEMI_RED_U32: return shmemi_red_u32(op, a, b);
    case SHMEMI_RED_U64: return shmemi_red_u64(op, a, b);
    case SHMEMI_RED_I8: return shmemi_red_i8(op, a, b);
    case SHMEMI_RED_I16: return shmemi_red_i16(op, a, b);
    case SHMEMI_RED_I32: return shmemi_red_i32(op, a, b);
    case SHMEMI_RED_I64: return shmemi_red_i64(op, a, b);
    case SHMEMI_RED_F32: return shmemi_red_f32(op, 0, a, b);
    case SHMEMI_RED_F64: return shmemi_red_f64(op, 0, a, b);
    case SHMEMI_RED_C32: return shmemi_red_f32(op, 1, a, b);
    case SHMEMI_RED_C64: return shmemi_red_f64(op, 1, a, b);
    }
    return a;
}

/* Up to 8 bytes at any address as a word, and back. */
SHMEMI_DEV uint64_t shmemi_word_in(const char *p, uint32_t bytes)
{
    uint64_t v = 0;

    if (bytes == 8 && ((uintptr_t)p & 7) == 0)
        return *(const uint64_t *)(const void *)p;
    if (bytes == 8 && ((uintptr_t)p & 3) == 0)
        return *(const uint32_t *)(const void *)p | (uint64_t) * (const uint32_t *)(const void *)(p + 4) << 32;
    if (bytes == 4 && ((uintptr_t)p & 3) == 0)
        return *(const uint32_t *)(const void *)p;
    SHMEMI_ROLLED
    for (uint32_t i = 0; i < bytes; i++)
        v |= (uint64_t)(uint8_t)p[i] << (8 * i);
    return v;
}

SHMEMI_DEV void shmemi_word_out(char *p, uint64_t v, uint32_t bytes)
{
    if (bytes == 8 && ((uintptr_t)p & 7) == 0) {
        *(uint64_t *)(void *)p = v;
    } else if (bytes == 8 && ((uintptr_t)p & 3) == 0) {
        *(uint32_t *)(void *)p = (uint32_t)v;
        *(uint32_t *)(void *)(p + 4) = (uint32_t)(v >> 32);
    } else if (bytes == 4 && ((uintptr_t)p & 3) == 0) {
        *(uint32_t *)(void *)p = (uint32_t)v;
    } else {
        SHMEMI_ROLLED
        for (uint32_t i = 0; i < bytes; i++)
            p[i] = (char)(v >> (8 * i));
    }
}

/* Up to 16 bytes. */
SHMEMI_DEV struct shmemi_v16 shmemi_v16_in(const char *p, uint32_t bytes)
{
    struct shmemi_v16 v;

    v.x = shmemi_word_in(p, bytes < 8 ? bytes : 8);
    v.y = bytes > 8 ? shmemi_word_in(p + 8, bytes - 8) : 0;
    return v;
}

SHMEMI_DEV void shmemi_v16_out(char *p, struct shmemi_v16 v, uint32_t bytes)
{
    shmemi_word_out(p, v.x, bytes < 8 ? bytes : 8);
    if (bytes > 8)
        shmemi_word_out(p + 8, v.y, bytes - 8);
}

/* ---- the pass ---- */

/* The same symmetric place in every member: which heap, and how far in. */
struct shmemi_place {
    uint64_t off;
    int device_heap;
};

SHMEMI_DEV struct shmemi_place shmemi_place_of(const void *addr, uint64_t len, uint32_t call)
{
    struct shmemi_place p;

    /* Also looks whether it is symmetric at all. */
    (void)shmemi_dev_remote(addr, len, shmemi_dev_state.my_pe, call);
    p.off = (uint64_t)(uintptr_t)addr - shmemi_dev_state.dheap_base;
    p.device_heap = p.off < shmemi_dev_state.dheap_len;
    if (!p.device_heap)
        p.off = (uint64_t)(uintptr_t)addr - shmemi_dev_state.heap_base;
    return p;
}

SHMEMI_DEV char *shmemi_place_at(struct shmemi_place p, int world)
{
    uint64_t base = shmemi_dev_base(world, p.device_heap);

    if (!base)
        shmemi_dev_fail(SHMEMI_DEV_UNREACHABLE, SHMEMI_CALL_REDUCE, p.off, 0, (uint64_t)world);
    return (char *)(uintptr_t)(base + p.off);
}

/*
 * Vectors of all members at one place, four members' loads under way, from vector `first` on.
 */
SHMEMI_DEV void shmemi_reduce_vectors(enum shmemi_red_kind kind, enum shmemi_red_op op, const struct shmemi_dev_team *t,
                                      char *dest, struct shmemi_place from, uint64_t first, uint64_t n, uint32_t rank,
                                      uint32_t size)
{
    struct shmemi_v16 v[4], acc = { 0, 0 };

    SHMEMI_ROLLED
    for (uint64_t i = first + rank; i < n; i += size) {
        SHMEMI_ROLLED
        for (int m0 = 0; m0 < t->n_pes; m0 += 4) {
            SHMEMI_UNROLL
            for (int j = 0; j < 4; j++)
                if (m0 + j < t->n_pes)
                    v[j] = shmemi_ld16(shmemi_place_at(from, shmemi_dev_team_world(t, m0 + j)) + i * 16);
            SHMEMI_UNROLL
            for (int j = 0; j < 4; j++)
                if (m0 + j < t->n_pes)
                    acc = m0 + j ? shmemi_red16(op, kind, acc, v[j]) : v[j];
        }
        shmemi_st16(dest + i * 16, acc);
    }
}

#define SHMEMI_RED_FLIGHT 8 /* vectors of a thread under way: kernels of 1024 threads leave it 64 registers */

/*
 * A team of `many` members (2 or 4, a constant) by whole warps: in a turn each thread loads SHMEMI_RED_FLIGHT vectors before it combines
 * the first, as one SM draws its share of NVLink only with some 48 KiB under way.  A warp takes its vectors in a row, so
 * that the addresses of a thread are one for each member and constants.  Gives the number of vectors done.
 */
SHMEMI_DEV uint64_t shmemi_reduce_turns(enum shmemi_red_kind kind, enum shmemi_red_op op, int many,
                                        const struct shmemi_dev_team *t, char *dest, struct shmemi_place from, uint64_t n,
                                        uint32_t rank, uint32_t size)
{
    const int depth = SHMEMI_RED_FLIGHT / many;
    uint32_t turn = size * (uint32_t)depth, at = ((rank & ~31u) * (uint32_t)depth + (rank & 31)) * 16;
    const char *base[4];
    uint64_t left = n;

    SHMEMI_UNROLL
    for (int j = 0; j < many; j++) {
        base[j] = shmemi_place_at(from, shmemi_dev_team_world(t, j)) + at;
        SHMEMI_ASSUME_GLOBAL(base[j]);
    }
    dest += at;
    SHMEMI_ASSUME_GLOBAL(dest);
    SHMEMI_ROLLED
    for (; left >= turn; left -= turn) {
        struct shmemi_v16 v[SHMEMI_RED_FLIGHT];

        SHMEMI_UNROLL
        for (int k = 0; k < SHMEMI_RED_FLIGHT; k++)
            v[k] = shmemi_ld16(base[k % many] + k / many * 512);
        SHMEMI_UNROLL
        for (int k = 0; k < SHMEMI_RED_FLIGHT; k++)
            if (k % many)
                v[k / many * many] = shmemi_red16(op, kind, v[k / many * many], v[k]);
        SHMEMI_UNROLL
        for (int k = 0; k < depth; k++)
            shmemi_st16(dest + k * 512, v[k * many]);
        SHMEMI_UNROLL
        for (int j = 0; j < many; j++)
            base[j] += (uint64_t)turn * 16;
        dest += (uint64_t)turn * 16;
    }
    return n - left;
}

/* Element by element, for ends and for arrays that are not aligned to vectors. */
SHMEMI_DEV void shmemi_reduce_elements(enum shmemi_red_kind kind, enum shmemi_red_op op, const struct shmemi_dev_team *t,
                                       char *dest, struct shmemi_place from, uint64_t len, uint32_t rank, uint32_t size)
{
    uint32_t elem = shmemi_red_size(kind);

    SHMEMI_ROLLED
    for (uint64_t i = (uint64_t)rank * elem; i < len; i += (uint64_t)size * elem) {
        struct shmemi_v16 acc = shmemi_v16_in(shmemi_place_at(from, t->start) + i, elem);

        SHMEMI_ROLLED
        for (int m = 1; m < t->n_pes; m++)
            acc = shmemi_red16(op, kind, acc,
                               shmemi_v16_in(shmemi_place_at(from, shmemi_dev_team_world(t, m)) + i, elem));
        shmemi_v16_out(dest + i, acc, elem);
    }
}

/*
 * One pass of any group over `len` bytes: dest on this PE becomes the combination of the bytes at symmetric address
 * `source` of all members, which must be there: nothing here synchronises.
 */
SHMEMI_DEV void shmemi_reduce_pull(enum shmemi_red_kind kind, enum shmemi_red_op op, const struct shmemi_dev_team *t,
                                         char *dest, const char *source, uint64_t len, uint32_t rank, uint32_t size,
                                         uint32_t call)
{
    struct shmemi_place from = shmemi_place_of(source, len, call), end = from;
    uint64_t vectors = (((uintptr_t)dest | (uintptr_t)source) & 15) == 0 ? len / 16 : 0, done = 0;

    if (t->n_pes == 2 && size % 32 == 0)
        done = shmemi_reduce_turns(kind, op, 2, t, dest, from, vectors, rank, size);
    else if (t->n_pes == 4 && size % 32 == 0)
        done = shmemi_reduce_turns(kind, op, 4, t, dest, from, vectors, rank, size);
    shmemi_reduce_vectors(kind, op, t, dest, from, done, vectors, rank, size);
    end.off += vectors * 16;
    shmemi_reduce_elements(kind, op, t, dest + vectors * 16, end, len - vectors * 16, rank, size);
}

#endif
#endif
