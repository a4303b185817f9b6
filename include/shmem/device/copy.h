/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * copy.h - how a group of threads copies bytes: vectors of 16 bytes, eight of them in flight in each thread.
 *
 * Nothing here synchronises: the caller says which of `size` threads it is (`rank`), and that may be one of a whole grid.
 */
#ifndef SHMEM_DEVICE_COPY_H
#define SHMEM_DEVICE_COPY_H

#include "atomics.h"

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

    if ((bits & 7) == 0)
        for (uint32_t i = rank * 8; i < len; i += size * 8)
            *(uint64_t *)(void *)(to + i) = *(const uint64_t *)(const void *)(from + i);
    else if ((bits & 3) == 0)
        for (uint32_t i = rank * 4; i < len; i += size * 4)
            *(uint32_t *)(void *)(to + i) = *(const uint32_t *)(const void *)(from + i);
    else
        for (uint32_t i = rank; i < len; i += size)
            to[i] = from[i];
}

/* n vectors, both sides aligned.  The loads of a turn come before its first store. */
SHMEMI_DEV void shmemi_copy_vectors(char *to, const char *from, uint64_t n, uint32_t rank, uint32_t size)
{
    struct shmemi_v16 v[SHMEMI_COPY_DEPTH];
    uint64_t i = rank, step = size;

    for (; i + (SHMEMI_COPY_DEPTH - 1) * step < n; i += SHMEMI_COPY_DEPTH * step) {
        SHMEMI_UNROLL
        for (int k = 0; k < SHMEMI_COPY_DEPTH; k++)
            v[k] = shmemi_ld16(from + (i + (uint64_t)k * step) * 16);
        SHMEMI_UNROLL
        for (int k = 0; k < SHMEMI_COPY_DEPTH; k++)
            shmemi_st16(to + (i + (uint64_t)k * step) * 16, v[k]);
    }
    if (i >= n)
        return;
    SHMEMI_UNROLL
    for (int k = 0; k < SHMEMI_COPY_DEPTH - 1; k++)
        if (i + (uint64_t)k * step < n)
            v[k] = shmemi_ld16(from + (i + (uint64_t)k * step) * 16);
    SHMEMI_UNROLL
    for (int k = 0; k < SHMEMI_COPY_DEPTH - 1; k++)
        if (i + (uint64_t)k * step < n)
            shmemi_st16(to + (i + (uint64_t)k * step) * 16, v[k]);
}

/* n vectors to an aligned place from one that is `shift` bytes (1 to 15) behind an aligned one, `from`. */
SHMEMI_DEV void shmemi_copy_shifted(char *to, const char *from, uint32_t shift, uint64_t n, uint32_t rank, uint32_t size)
{
    struct shmemi_v16 lo[4], hi[4];
    uint64_t step = size;

    for (uint64_t i = rank; i < n; i += 4 * step) {
        SHMEMI_UNROLL
        for (int k = 0; k < 4; k++)
            if (i + (uint64_t)k * step < n) {
                lo[k] = shmemi_ld16(from + (i + (uint64_t)k * step) * 16);
                hi[k] = shmemi_ld16(from + (i + (uint64_t)k * step) * 16 + 16);
            }
        SHMEMI_UNROLL
        for (int k = 0; k < 4; k++)
            if (i + (uint64_t)k * step < n)
                shmemi_st16(to + (i + (uint64_t)k * step) * 16, shmemi_shift16(lo[k], hi[k], shift));
    }
}

/*
 * The stores are aligned.  From a source that is not, vectors are put together from two loads; the first and the last bytes go
 * by themselves, so that no load leaves the source.
 */
SHMEMI_DEV void shmemi_copy_long(char *to, const char *from, uint64_t len, uint32_t rank, uint32_t size)
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
    if (shift)
        shmemi_copy_shifted(to + head, from + head - shift, shift, n, rank, size);
    else
        shmemi_copy_vectors(to + head, from + head, n, rank, size);
    if (tail)
        shmemi_copy_edge(to + head + n * 16, from + head + n * 16, tail, rank, size);
}

SHMEMI_DEV int shmemi_is_word(const char *to, const char *from, uint64_t len)
{
    return (len == 8 || len == 4 || len == 2) && (((uintptr_t)to | (uintptr_t)from) & (len - 1)) == 0;
}

/* One pass of the group.  An aligned word goes as one store: flags are often put with the general calls. */
SHMEMI_DEV_LARGE void shmemi_copy(char *to, const char *from, uint64_t len, uint32_t rank, uint32_t size)
{
    if (len >= 48)
        shmemi_copy_long(to, from, len, rank, size);
    else if (!shmemi_is_word(to, from, len))
        shmemi_copy_edge(to, from, (uint32_t)len, rank, size);
    else if (rank == 0)
        shmemi_copy_element(to, from, len);
}

#endif
#endif
