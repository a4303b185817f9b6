/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * copy.h - how a group of threads copies bytes: vectors of 16 bytes, eight of them in flight in each thread.  Kernels of 1024
 * threads have 64 registers each, so no form here may need more.
 *
 * Nothing here synchronises: the caller says which of `size` threads it is (`rank`), and that may be one of a whole grid.
 */
#ifndef SHMEM_DEVICE_COPY_H
#define SHMEM_DEVICE_COPY_H

#include "scope.h"

#ifdef SHMEMI_DEVICE_CODE

#define SHMEMI_COPY_DEPTH 8

/* One element of 1, 2, 4 or 8 bytes goes by one access, so that a flag never tears; others byte by byte. */
SHMEMI_DEV void shmemi_copy_element(char *to, const char *from, uint64_t size)
{
    if (size == 8)
        SHMEMI_ST_RLX((uint64_t *)(void *)to, *(const uint64_t *)(const void *)from);
    else if (size == 4)
        SHMEMI_ST_RLX((uint32_t *)(void *)to, *(const uint32_t *)(const void *)from);
    else if (size == 2)
        SHMEMI_ST_RLX((uint16_t *)(void *)to, *(const uint16_t *)(const void *)from);
    else
        for (uint64_t i = 0; i < size; i++)
            to[i] = from[i];
}

/* A few bytes: words where both ends are aligned to them. */
SHMEMI_DEV void shmemi_copy_edge(char *to, const char *from, uint32_t len, uint32_t rank, uint32_t size)
{
    uint64_t bits = (uint64_t)(uintptr_t)to | (uint64_t)(uintptr_t)from | len;

    if ((bits & 7) == 0) {
        SHMEMI_ROLLED
        for (uint32_t i = rank * 8; i < len; i += size * 8)
            *(uint64_t *)(void *)(to + i) = *(const uint64_t *)(const void *)(from + i);
    } else if ((bits & 3) == 0) {
        SHMEMI_ROLLED
        for (uint32_t i = rank * 4; i < len; i += size * 4)
            *(uint32_t *)(void *)(to + i) = *(const uint32_t *)(const void *)(from + i);
    } else {
        SHMEMI_ROLLED
        for (uint32_t i = rank; i < len; i += size)
            to[i] = from[i];
    }
}

/*
 * The next functions copy from and to aligned places.  They keep little besides the vectors themselves: two pointers and
 * a count, which the caller gives away.
 */

/* n vectors of which this thread has every size-th: up to four under way. */
SHMEMI_DEV void shmemi_copy_rest(char *to, const char *from, uint64_t n, uint32_t rank, uint32_t size)
{
    struct shmemi_v16 v[4];
    uint64_t step = (uint64_t)size * 16;

    from += (uint64_t)rank * 16;
    to += (uint64_t)rank * 16;
    SHMEMI_ROLLED
    for (int64_t left = (int64_t)n - rank; left > 0; left -= (int64_t)size * 4, from += step * 4, to += step * 4) {
        SHMEMI_UNROLL
        for (uint32_t k = 0; k < 4; k++)
            if (k * (int64_t)size < left)
                v[k] = shmemi_ld16(from + k * step);
        SHMEMI_UNROLL
        for (uint32_t k = 0; k < 4; k++)
            if (k * (int64_t)size < left)
                shmemi_st16(to + k * step, v[k]);
    }
}

/*
 * One thread by itself waits for its loads, not for bandwidth: three fours of them are under way, each stored when it has
 * come and loaded anew at once.
 */
SHMEMI_DEV void shmemi_copy_alone(char *to, const char *from, uint64_t n)
{
    struct shmemi_v16 v[12];

    if (n >= 12) {
        SHMEMI_UNROLL
        for (int k = 0; k < 12; k++)
            v[k] = shmemi_ld16(from + k * 16);
        SHMEMI_ROLLED
        for (; n >= 24; n -= 12, from += 192, to += 192)
            SHMEMI_UNROLL
            for (int g = 0; g < 12; g += 4) {
                SHMEMI_UNROLL
                for (int k = g; k < g + 4; k++)
                    shmemi_st16(to + k * 16, v[k]);
                SHMEMI_UNROLL
                for (int k = g; k < g + 4; k++)
                    v[k] = shmemi_ld16(from + 192 + k * 16);
            }
        SHMEMI_UNROLL
        for (int k = 0; k < 12; k++)
            shmemi_st16(to + k * 16, v[k]);
        n -= 12;
        from += 192;
        to += 192;
    }
    shmemi_copy_rest(to, from, n, 0, 1);
}

/*
 * Whole warps: in a turn each takes 256 vectors in a row, its lanes side by side, so that the eight addresses of a thread
 * are one register and constants.  The loads of a turn come before its first store.
 *
 * `alone` is a constant: a block that happens to have one thread does not cost every block's copy the registers.
 */
SHMEMI_DEV void shmemi_copy_vectors(int alone, char *to, const char *from, uint64_t n, uint32_t rank, uint32_t size)
{
    uint32_t turn = size * SHMEMI_COPY_DEPTH, at = ((rank & ~31u) * SHMEMI_COPY_DEPTH + (rank & 31)) * 16;
    struct shmemi_v16 v[SHMEMI_COPY_DEPTH];

    if (alone) {
        shmemi_copy_alone(to, from, n);
        return;
    }
    if (size % 32 == 0) {
        SHMEMI_ROLLED
        for (; n >= turn; n -= turn, from += (uint64_t)turn * 16, to += (uint64_t)turn * 16) {
            SHMEMI_UNROLL
            for (int k = 0; k < SHMEMI_COPY_DEPTH; k++)
                v[k] = shmemi_ld16(from + at + k * 512);
            SHMEMI_UNROLL
            for (int k = 0; k < SHMEMI_COPY_DEPTH; k++)
                shmemi_st16(to + at + k * 512, v[k]);
        }
    }
    shmemi_copy_rest(to, from, n, rank, size);
}

/* n vectors to an aligned place from one that is `shift` bytes (1 to 15) behind an aligned one, `from`. */
SHMEMI_DEV_COLD void shmemi_copy_shifted(char *to, const char *from, uint32_t shift, uint64_t n, uint32_t rank,
                                         uint32_t size)
{
    struct shmemi_v16 lo[2], hi[2];
    uint64_t step = (uint64_t)size * 16;

    for (uint64_t i = rank; i < n; i += (uint64_t)size * 2) {
        const char *f = from + i * 16;
        char *t = to + i * 16;
        uint64_t left = n - i;

        SHMEMI_UNROLL
        for (uint32_t k = 0; k < 2; k++)
            if (k * (uint64_t)size < left) {
                lo[k] = shmemi_ld16(f + k * step);
                hi[k] = shmemi_ld16(f + k * step + 16);
            }
        SHMEMI_UNROLL
        for (uint32_t k = 0; k < 2; k++)
            if (k * (uint64_t)size < left)
                shmemi_st16(t + k * step, shmemi_shift16(lo[k], hi[k], shift));
    }
}

/*
 * The stores are aligned.  From a source that is not, vectors are put together from two loads; the first and the last bytes go
 * by themselves, so that no load leaves the source.
 */
SHMEMI_DEV void shmemi_copy_long(int alone, char *to, const char *from, uint64_t len, uint32_t rank, uint32_t size)
{
    uint32_t shift = (uint32_t)(((uintptr_t)from - (uintptr_t)to) & 15);
    uint32_t head = (uint32_t)(-(uintptr_t)to & 15), tail;
    uint64_t n;

    if (shift && head < shift) /* the aligned load that holds the first vector must not begin before the source */
        head += 16;
    n = (len - head) / 16;
    if (shift && n && n * 16 + head + 16 - shift > len) /* nor the last end behind it */
        n--;
    tail = (uint32_t)(len - head - n * 16);
    if (head)
        shmemi_copy_edge(to, from, head, rank, size);
    if (tail)
        shmemi_copy_edge(to + head + n * 16, from + head + n * 16, tail, rank, size);
    if (shift)
        shmemi_copy_shifted(to + head, from + head - shift, shift, n, rank, size);
    else
        shmemi_copy_vectors(alone, to + head, from + head, n, rank, size);
}

SHMEMI_DEV int shmemi_is_word(const char *to, const char *from, uint64_t len)
{
    return (len == 8 || len == 4 || len == 2) && (((uintptr_t)to | (uintptr_t)from) & (len - 1)) == 0;
}

/* An aligned word goes as one store: flags are often put with the general calls. */
SHMEMI_DEV void shmemi_copy_any(int alone, char *to, const char *from, uint64_t len, uint32_t rank, uint32_t size)
{
    if (len >= 48)
        shmemi_copy_long(alone, to, from, len, rank, size);
    else if (!shmemi_is_word(to, from, len))
        shmemi_copy_edge(to, from, (uint32_t)len, rank, size);
    else if (rank == 0)
        shmemi_copy_element(to, from, len);
}

/* One pass of a group. */
SHMEMI_DEV_LARGE void shmemi_copy(char *to, const char *from, uint64_t len, uint32_t rank, uint32_t size)
{
    shmemi_copy_any(0, to, from, len, rank, size);
}

/* The whole by one thread. */
SHMEMI_DEV_LARGE void shmemi_copy_by_one(char *to, const char *from, uint64_t len)
{
    shmemi_copy_any(1, to, from, len, 0, 1);
}

/* By the threads of a scope. */
SHMEMI_DEV void shmemi_copy_by(enum shmemi_scope scope, char *to, const char *from, uint64_t len)
{
    if (scope == SHMEMI_THREAD)
        shmemi_copy_by_one(to, from, len);
    else
        shmemi_copy(to, from, len, shmemi_rank(scope), shmemi_size(scope));
}

#endif
#endif
