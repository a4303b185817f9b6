/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * copy.h - how a group of threads copies bytes: vectors of 16 bytes, four of them in flight in each thread.  Kernels of 1024
 * threads have 64 registers each, so no form here may need more.
 *
 * Nothing here synchronises: the caller says which of `size` threads it is (`rank`), and that may be one of a whole grid.
 */
#ifndef SHMEM_DEVICE_COPY_H
#define SHMEM_DEVICE_COPY_H

#include "scope.h"

#ifdef SHMEMI_DEVICE_CODE

#define SHMEMI_COPY_DEPTH 4

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
 * The next functions copy from and to aligned places.  With 1024 threads an instruction that all of them execute is eight
 * cycles of the SM: in a copy of some KiB what counts is how few there are, so counts are 32 bits wide.
 */

/* n vectors of which this thread has every size-th: up to four under way. */
SHMEMI_DEV void shmemi_copy_rest(char *to, const char *from, int32_t n, uint32_t rank, uint32_t size)
{
    struct shmemi_v16 v[4];
    uint32_t step = size * 16;
    int32_t left = n - (int32_t)rank, all = (int32_t)size;

    from += (uint64_t)rank * 16;
    to += (uint64_t)rank * 16;
    SHMEMI_ROLLED
    while (left > all) {
        SHMEMI_UNROLL
        for (int k = 0; k < 4; k++)
            if (k * all < left)
                v[k] = shmemi_ld16(from + (uint64_t)step * k);
        SHMEMI_UNROLL
        for (int k = 0; k < 4; k++)
            if (k * all < left)
                shmemi_st16(to + (uint64_t)step * k, v[k]);
        left -= all * 4;
        from += (uint64_t)step * 4;
        to += (uint64_t)step * 4;
    }
    if (left > 0)
        shmemi_st16(to, shmemi_ld16(from));
}

/* One thread by itself waits for its loads, not for bandwidth: of each KiB all misses are under way at once. */
SHMEMI_DEV void shmemi_copy_alone(char *to, const char *from, uint64_t n)
{
    struct shmemi_v16 v[8];

    SHMEMI_ROLLED
    while (n >= 8) {
        uint32_t most = n < 64 ? (uint32_t)n : 64;

        shmemi_touch(to, from, most);
        n -= most & ~7u;
        SHMEMI_ROLLED
        for (; most >= 8; most -= 8, from += 128, to += 128) {
            SHMEMI_UNROLL
            for (int k = 0; k < 8; k++)
                v[k] = shmemi_ld16(from + k * 16);
            SHMEMI_UNROLL
            for (int k = 0; k < 8; k++)
                shmemi_st16(to + k * 16, v[k]);
        }
    }
    SHMEMI_UNROLL
    for (uint32_t k = 0; k < 7; k++)
        if (k < n)
            v[k] = shmemi_ld16(from + k * 16);
    SHMEMI_UNROLL
    for (uint32_t k = 0; k < 7; k++)
        if (k < n)
            shmemi_st16(to + k * 16, v[k]);
}

/*
 * Whole warps: in a turn each takes 128 vectors in a row, its lanes side by side, so that the addresses of a thread are one
 * register and constants.  Where a turn begins is added anew each time: advancing the address itself makes a warp's first store
 * wait until its last load has left the queue.
 */
SHMEMI_DEV uint32_t shmemi_copy_turns(char **to_io, const char **from_io, uint32_t n, uint32_t rank, uint32_t size)
{
    uint32_t turn = size * SHMEMI_COPY_DEPTH, at = ((rank & ~31u) * SHMEMI_COPY_DEPTH + (rank & 31)) * 16;
    const char *from = *from_io;
    char *to = *to_io;
    struct shmemi_v16 v[SHMEMI_COPY_DEPTH];

    SHMEMI_ROLLED
    for (; n >= turn; n -= turn, from += turn * 16, to += turn * 16) {
        SHMEMI_UNROLL
        for (int k = 0; k < SHMEMI_COPY_DEPTH; k++)
            v[k] = shmemi_ld16(from + at + k * 512);
        SHMEMI_UNROLL
        for (int k = 0; k < SHMEMI_COPY_DEPTH; k++)
            shmemi_st16(to + at + k * 512, v[k]);
    }
    *from_io = from;
    *to_io = to;
    return n;
}

/*
 * Far memory to near: the loads of a warp's next turn are under way before it stores the last one's, since what counts is how much
 * is on its way here.  At least one turn; worth it from two.
 */
SHMEMI_DEV uint32_t shmemi_copy_ahead(char **to_io, const char **from_io, uint32_t n, uint32_t rank, uint32_t size)
{
    uint32_t turn = size * SHMEMI_COPY_DEPTH * 16, left = n * 16 - turn; /* bytes: at most 2 GiB */
    uint32_t at = ((rank & ~31u) * SHMEMI_COPY_DEPTH + (rank & 31)) * 16;
    const char *from = *from_io + at;
    char *to = *to_io + at;
    struct shmemi_v16 v[SHMEMI_COPY_DEPTH], next[SHMEMI_COPY_DEPTH];

    SHMEMI_UNROLL
    for (int k = 0; k < SHMEMI_COPY_DEPTH; k++)
        v[k] = shmemi_ld16(from + k * 512);
    SHMEMI_ROLLED
    for (; left >= turn; left -= turn, to += turn) {
        from += turn;
        SHMEMI_UNROLL
        for (int k = 0; k < SHMEMI_COPY_DEPTH; k++)
            next[k] = shmemi_ld16(from + k * 512);
        SHMEMI_UNROLL
        for (int k = 0; k < SHMEMI_COPY_DEPTH; k++)
            shmemi_st16(to + k * 512, v[k]);
        SHMEMI_UNROLL
        for (int k = 0; k < SHMEMI_COPY_DEPTH; k++)
            v[k] = next[k];
    }
    SHMEMI_UNROLL
    for (int k = 0; k < SHMEMI_COPY_DEPTH; k++)
        shmemi_st16(to + k * 512, v[k]);
    *from_io = from + turn - at;
    *to_io = to + turn - at;
    return left / 16;
}

/*
 * Near memory to far: every thread sends one vector first, and from then on loads its next two before it stores the last ones,
 * so that stores never wait for a whole turn of loads.  At least three vectors a thread.
 */
SHMEMI_DEV uint32_t shmemi_copy_flow(char **to_io, const char **from_io, uint32_t n, uint32_t rank, uint32_t size)
{
    uint32_t step = size * 16;
    const char *from = *from_io + rank * 16;
    char *to = *to_io + rank * 16;
    struct shmemi_v16 a, b, c, d;

    a = shmemi_ld16(from);
    shmemi_st16(to, a);
    a = shmemi_ld16(from + step);
    b = shmemi_ld16(from + 2 * (uint64_t)step);
    SHMEMI_ROLLED
    for (n -= size * 3; n >= size * 2; n -= size * 2) {
        from += 2 * (uint64_t)step;
        c = shmemi_ld16(from + step);
        d = shmemi_ld16(from + 2 * (uint64_t)step);
        shmemi_st16(to + step, a);
        shmemi_st16(to + 2 * (uint64_t)step, b);
        to += 2 * (uint64_t)step;
        a = c;
        b = d;
    }
    shmemi_st16(to + step, a);
    shmemi_st16(to + 2 * (uint64_t)step, b);
    *from_io = from + 3 * (uint64_t)step - rank * 16;
    *to_io = to + 3 * (uint64_t)step - rank * 16;
    return n;
}

/* From so many vectors a thread on near memory is read by turns, too; a benchmark that compares sets another. */
#ifndef SHMEMI_COPY_FLOW
#define SHMEMI_COPY_FLOW 8u
#endif

#define SHMEMI_COPY_MOST ((uint32_t)1 << 27) /* vectors at a time: 2 GiB */

/* Of a copy of three vectors a thread or more; what is left is returned. */
SHMEMI_DEV uint32_t shmemi_copy_many(char **to, const char **from, uint32_t n, uint32_t rank, uint32_t size, int far)
{
    if (!far && size >= 512 && n < size * SHMEMI_COPY_FLOW)
        return shmemi_copy_flow(to, from, n, rank, size);
    if (size % 32 != 0)
        return n;
    if (far && n >= size * (2 * SHMEMI_COPY_DEPTH))
        return shmemi_copy_ahead(to, from, n, rank, size);
    return shmemi_copy_turns(to, from, n, rank, size);
}

/* At most SHMEMI_COPY_MOST vectors.  `far`: the source is another PE's memory, where what is under way decides. */
SHMEMI_DEV_LARGE void shmemi_copy_vectors(char *to, const char *from, uint32_t n, uint32_t rank, uint32_t size, int far)
{
    if (n >= size * 3)
        n = shmemi_copy_many(&to, &from, n, rank, size, far);
    shmemi_copy_rest(to, from, (int32_t)n, rank, size);
}

SHMEMI_DEV void shmemi_copy_chunks(char *to, const char *from, uint64_t n, uint32_t rank, uint32_t size, int far)
{
    SHMEMI_ROLLED
    for (; n > SHMEMI_COPY_MOST; n -= SHMEMI_COPY_MOST) {
        shmemi_copy_vectors(to, from, SHMEMI_COPY_MOST, rank, size, far);
        from += (uint64_t)SHMEMI_COPY_MOST * 16;
        to += (uint64_t)SHMEMI_COPY_MOST * 16;
    }
    shmemi_copy_vectors(to, from, (uint32_t)n, rank, size, far);
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
SHMEMI_DEV void shmemi_copy_long(int alone, char *to, const char *from, uint64_t len, uint32_t rank, uint32_t size, int far)
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
    else if (alone)
        shmemi_copy_alone(to + head, from + head, n);
    else
        shmemi_copy_chunks(to + head, from + head, n, rank, size, far);
}

SHMEMI_DEV int shmemi_is_word(const char *to, const char *from, uint64_t len)
{
    return (len == 8 || len == 4 || len == 2) && (((uintptr_t)to | (uintptr_t)from) & (len - 1)) == 0;
}

/* An aligned word goes as one store: flags are often put with the general calls.  `alone`: a constant. */
SHMEMI_DEV void shmemi_copy_any(int alone, char *to, const char *from, uint64_t len, uint32_t rank, uint32_t size, int far)
{
    if (len >= 48)
        shmemi_copy_long(alone, to, from, len, rank, size, far);
    else if (!shmemi_is_word(to, from, len))
        shmemi_copy_edge(to, from, (uint32_t)len, rank, size);
    else if (rank == 0)
        shmemi_copy_element(to, from, len);
}

SHMEMI_DEV_LARGE void shmemi_copy_odd(char *to, const char *from, uint64_t len, uint32_t rank, uint32_t size, int far)
{
    shmemi_copy_any(0, to, from, len, rank, size, far);
}

/* The whole by one thread. */
SHMEMI_DEV_LARGE void shmemi_copy_by_one(char *to, const char *from, uint64_t len)
{
    shmemi_copy_any(1, to, from, len, 0, 1, 0);
}

/* One pass of a group.  `far`: the source is another PE's memory. */
SHMEMI_DEV void shmemi_copy_from(int far, char *to, const char *from, uint64_t len, uint32_t rank, uint32_t size)
{
    if ((((uintptr_t)to | (uintptr_t)from | len) & 15) == 0 && len <= (uint64_t)SHMEMI_COPY_MOST * 16)
        shmemi_copy_vectors(to, from, (uint32_t)(len / 16), rank, size, far);
    else
        shmemi_copy_odd(to, from, len, rank, size, far);
}

/* The same, where the source may be near. */
SHMEMI_DEV void shmemi_copy(char *to, const char *from, uint64_t len, uint32_t rank, uint32_t size)
{
    shmemi_copy_from(0, to, from, len, rank, size);
}

/* By the threads of a scope. */
SHMEMI_DEV void shmemi_copy_by(enum shmemi_scope scope, int far, char *to, const char *from, uint64_t len)
{
    uint32_t rank = shmemi_rank(scope);

    if (scope == SHMEMI_THREAD)
        shmemi_copy_by_one(to, from, len);
    else if (len > 16)
        shmemi_copy_from(far, to, from, len, rank, shmemi_size(scope));
    else if (rank == 0)
        shmemi_copy_odd(to, from, len, 0, 1, far);
}

#endif
#endif
