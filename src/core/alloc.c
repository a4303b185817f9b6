/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * alloc.c - the allocator inside a symmetric heap.
 *
 * The heap is a chain of ranges, live or free, in address order; no two
 * neighbours are both free.  Each range has a 32-byte record in an array
 * outside the heap, found by its index:
 *
 *   live   through the ordered index of block starts (alloc_index.h)
 *   free   through one of the bins, by length: one bin for each length below
 *          32 granules, then 32 bins for each power of two
 *
 * A request takes the best of the first few ranges in the lowest bin that has
 * one that fits, which is close to best fit and needs no search.  Only when
 * that fails every range of the bins in question is looked at, so a request
 * fails only when no free range is large enough.
 *
 * With n live blocks there are at most 2n + 1 ranges.  shmemi_alloc_get()
 * reserves for that, hence it alone may run out of memory for records.
 */
#include "alloc.h"

#include "alloc_index.h"
#include "compiler.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#define GRANULE SHMEMI_ALLOC_MIN_ALIGN
#define GRANULE_SHIFT 6
#define NONE UINT32_MAX /* end of a list */
#define LIVE (UINT32_MAX - 1) /* as bin_prev: the range is a live block */
#define SUB_SHIFT 5
#define SUBS (1u << SUB_SHIFT)
#define BIN_WORDS 28 /* lengths up to 2^64 bytes: (57 - 4) * 32 + 31 is the last bin */
#define BINS (BIN_WORDS * 64u)
#define SCAN_QUICK 8u /* ranges looked at in a bin before going on to the next */
#define RANGES_FIRST 128u

_Static_assert(1 << GRANULE_SHIFT == GRANULE, "granule and its shift agree");

struct range {
    uint64_t off;
    uint64_t size; /* live: requested bytes; free: length.  The length of a live range is `size` in whole granules. */
    uint32_t prev, next; /* neighbours by address */
    uint32_t bin_prev, bin_next;
};

struct shmemi_alloc {
    struct range *ranges;
    uint32_t capacity;
    uint32_t fresh; /* ranges[fresh..capacity) were never used */
    uint32_t spare; /* list of records given back, through `next` */
    struct shmemi_index live;
    size_t heap_size;
    size_t base_align;
    size_t live_blocks, live_bytes, used_bytes;
    uint64_t bin_words; /* bit w: bin_map[w] is not 0 */
    uint64_t bin_map[BIN_WORDS];
    uint32_t bin[BINS]; /* first range; undefined where the bin's bit is 0 */
};

/* ---- records ---- */

static int ranges_reserve(struct shmemi_alloc *a, size_t n)
{
    size_t want = a->capacity;
    struct range *grown;

    if (shmemi_likely(n <= want))
        return 0;
    while (want < n)
        want *= 2;
    if (want >= LIVE)
        return -ENOMEM;
    grown = realloc(a->ranges, want * sizeof *grown);
    if (!grown)
        return -ENOMEM;
    a->ranges = grown;
    a->capacity = (uint32_t)want;
    return 0;
}

static uint32_t range_take(struct shmemi_alloc *a)
{
    uint32_t r = a->spare;

    if (r == NONE)
        return a->fresh++;
    a->spare = a->ranges[r].next;
    return r;
}

static void range_give(struct shmemi_alloc *a, uint32_t r)
{
    a->ranges[r].next = a->spare;
    a->spare = r;
}

static bool is_free(const struct shmemi_alloc *a, uint32_t r)
{
    return r != NONE && a->ranges[r].bin_prev != LIVE;
}

/* ---- bins ---- */

static uint64_t granules(uint64_t bytes)
{
    return (bytes + GRANULE - 1) >> GRANULE_SHIFT;
}

static uint64_t length_of_size(uint64_t size)
{
    return granules(size) << GRANULE_SHIFT;
}

static unsigned bin_of(uint64_t length)
{
    uint64_t n = length >> GRANULE_SHIFT;
    unsigned top;

    if (n < SUBS)
        return (unsigned)n;
    top = 63u - (unsigned)__builtin_clzll(n);
    return ((top - SUB_SHIFT + 1) << SUB_SHIFT) + ((unsigned)(n >> (top - SUB_SHIFT)) & (SUBS - 1));
}

/* First bin at or above `b` that holds a range; BINS when there is none. */
static unsigned bin_next_used(const struct shmemi_alloc *a, unsigned b)
{
    unsigned w = b / 64;
    uint64_t m;

    if (b >= BINS)
        return BINS;
    m = a->bin_map[w] >> (b % 64) << (b % 64);
    if (!m) {
        uint64_t words = a->bin_words & ~((UINT64_C(2) << w) - 1);

        if (!words)
            return BINS;
        w = (unsigned)__builtin_ctzll(words);
        m = a->bin_map[w];
    }
    return w * 64 + (unsigned)__builtin_ctzll(m);
}

/* Makes `r`, whose off and neighbours are set, a free range of `length` bytes. */
static void bin_add(struct shmemi_alloc *a, uint32_t r, uint64_t length)
{
    struct range *x = &a->ranges[r];
    unsigned b = bin_of(length);
    bool used = a->bin_map[b / 64] >> (b % 64) & 1;

    x->size = length;
    x->bin_prev = NONE;
    x->bin_next = used ? a->bin[b] : NONE;
    if (used)
        a->ranges[x->bin_next].bin_prev = r;
    a->bin[b] = r;
    a->bin_map[b / 64] |= UINT64_C(1) << (b % 64);
    a->bin_words |= UINT64_C(1) << (b / 64);
}

static void bin_drop(struct shmemi_alloc *a, uint32_t r)
{
    struct range *x = &a->ranges[r];
    unsigned b = bin_of(x->size);

    if (x->bin_next != NONE)
        a->ranges[x->bin_next].bin_prev = x->bin_prev;
    if (x->bin_prev != NONE) {
        a->ranges[x->bin_prev].bin_next = x->bin_next;
        return;
    }
    a->bin[b] = x->bin_next;
    if (x->bin_next == NONE) {
        a->bin_map[b / 64] &= ~(UINT64_C(1) << (b % 64));
        if (!a->bin_map[b / 64])
            a->bin_words &= ~(UINT64_C(1) << (b / 64));
    }
}

/* ---- create, destroy ---- */

int shmemi_alloc_create(size_t size, size_t base_align, struct shmemi_alloc **out)
{
    struct shmemi_alloc *a;

    size &= ~(size_t)(GRANULE - 1);
    if (size == 0 || base_align < GRANULE || (base_align & (base_align - 1)))
        return -EINVAL;
    a = calloc(1, sizeof *a);
    if (!a)
        return -ENOMEM;
    a->spare = NONE;
    a->heap_size = size;
    a->base_align = base_align;
    a->ranges = malloc(RANGES_FIRST * sizeof *a->ranges);
    a->capacity = RANGES_FIRST;
    if (!a->ranges || shmemi_index_init(&a->live, (size - 1) >> GRANULE_SHIFT)) {
        free(a->ranges);
        free(a);
        return -ENOMEM;
    }
    a->fresh = 1;
    a->ranges[0] = (struct range){ .off = 0, .prev = NONE, .next = NONE };
    bin_add(a, 0, size);
    *out = a;
    return 0;
}

void shmemi_alloc_destroy(struct shmemi_alloc *a)
{
    if (!a)
        return;
    shmemi_index_fini(&a->live);
    free(a->ranges);
    free(a);
}

/* ---- get ---- */

/* Bytes that `x` loses in front of the first multiple of `align`, or UINT64_MAX when `length` does not fit behind. */
static uint64_t gap_for(const struct range *x, uint64_t length, uint64_t align)
{
    uint64_t gap = -x->off & (align - 1);

    return gap <= x->size && x->size - gap >= length ? gap : UINT64_MAX;
}

/* The smallest range that fits among the first `limit` of bin `b`. */
static uint32_t bin_best(const struct shmemi_alloc *a, unsigned b, uint64_t length, uint64_t align, uint32_t limit)
{
    uint32_t r, best = NONE;

    for (r = a->bin[b]; r != NONE && limit; r = a->ranges[r].bin_next, limit--) {
        const struct range *x = &a->ranges[r];

        if ((best == NONE || x->size < a->ranges[best].size) && gap_for(x, length, align) != UINT64_MAX) {
            best = r;
            if (x->size == length)
                break;
        }
    }
    return best;
}

static uint32_t find_fit(const struct shmemi_alloc *a, uint64_t length, uint64_t align, uint32_t limit)
{
    unsigned b = bin_next_used(a, bin_of(length));

    for (; b < BINS; b = bin_next_used(a, b + 1)) {
        uint32_t r = bin_best(a, b, length, align, limit);

        if (r != NONE)
            return r;
    }
    return NONE;
}

/* Inserts a free range of `length` bytes at `off` between `before` and the range that follows it. */
static void insert_free_after(struct shmemi_alloc *a, uint32_t before, uint64_t off, uint64_t length)
{
    uint32_t r = range_take(a);
    struct range *x = &a->ranges[r], *b = &a->ranges[before];

    x->off = off;
    x->prev = before;
    x->next = b->next;
    if (b->next != NONE)
        a->ranges[b->next].prev = r;
    b->next = r;
    bin_add(a, r, length);
}

/* Turns `length` bytes of the free range `r`, `gap` bytes in, into a live block of `size`; the rest stays free. */
static uint64_t carve(struct shmemi_alloc *a, uint32_t r, uint64_t gap, uint64_t length, uint64_t size)
{
    struct range *x = &a->ranges[r];
    uint64_t tail = x->size - gap - length;

    bin_drop(a, r);
    if (gap) {
        /* The front stays in this record, the block gets the one behind it. */
        uint32_t front = r;

        insert_free_after(a, front, x->off + gap, length);
        r = x->next;
        bin_drop(a, r);
        bin_add(a, front, gap);
        x = &a->ranges[r];
    }
    x->size = size;
    x->bin_prev = LIVE;
    if (tail)
        insert_free_after(a, r, x->off + length, tail);
    shmemi_index_insert(&a->live, x->off >> GRANULE_SHIFT, r);
    return x->off;
}

size_t shmemi_alloc_get(struct shmemi_alloc *a, size_t size, size_t align)
{
    uint64_t length;
    uint32_t r;

    if (size == 0 || size > a->heap_size || align == 0 || (align & (align - 1)) || align > a->base_align)
        return SHMEMI_ALLOC_FAIL;
    length = length_of_size(size);
    if (align < GRANULE)
        align = GRANULE;
    if (ranges_reserve(a, 2 * a->live_blocks + 3) || shmemi_index_reserve(&a->live))
        return SHMEMI_ALLOC_FAIL;
    r = find_fit(a, length, align, SCAN_QUICK);
    if (r == NONE)
        r = find_fit(a, length, align, UINT32_MAX);
    if (r == NONE)
        return SHMEMI_ALLOC_FAIL;
    a->live_blocks++;
    a->live_bytes += size;
    a->used_bytes += length;
    return carve(a, r, gap_for(&a->ranges[r], length, align), length, size);
}

/* ---- put, resize ---- */

/* Takes the range after `r` out of the chain; its bytes now belong to `r`. */
static void absorb_next(struct shmemi_alloc *a, uint32_t r)
{
    uint32_t gone = a->ranges[r].next;

    a->ranges[r].next = a->ranges[gone].next;
    if (a->ranges[gone].next != NONE)
        a->ranges[a->ranges[gone].next].prev = r;
    range_give(a, gone);
}

/* Record of the live block that starts at `off`, or NONE. */
static uint32_t live_at(const struct shmemi_alloc *a, size_t off)
{
    return off & (GRANULE - 1) ? NONE : shmemi_index_get(&a->live, off >> GRANULE_SHIFT);
}

int shmemi_alloc_put(struct shmemi_alloc *a, size_t off)
{
    uint32_t r = live_at(a, off), prev;
    uint64_t length;

    if (r == NONE)
        return -EINVAL;
    length = length_of_size(a->ranges[r].size);
    a->live_blocks--;
    a->live_bytes -= a->ranges[r].size;
    a->used_bytes -= length;
    shmemi_index_remove(&a->live, off >> GRANULE_SHIFT);

    prev = a->ranges[r].prev;
    if (is_free(a, a->ranges[r].next)) {
        length += a->ranges[a->ranges[r].next].size;
        bin_drop(a, a->ranges[r].next);
        absorb_next(a, r);
    }
    if (is_free(a, prev)) {
        length += a->ranges[prev].size;
        bin_drop(a, prev);
        absorb_next(a, prev);
        r = prev;
    }
    bin_add(a, r, length);
    return 0;
}

int shmemi_alloc_resize(struct shmemi_alloc *a, size_t off, size_t size)
{
    uint32_t r = live_at(a, off), next;
    uint64_t old_length, length, room;

    if (r == NONE || size == 0)
        return -EINVAL;
    if (size > a->heap_size)
        return -ENOSPC;
    old_length = length_of_size(a->ranges[r].size);
    length = length_of_size(size);
    if (length != old_length) {
        next = a->ranges[r].next;
        room = old_length + (is_free(a, next) ? a->ranges[next].size : 0);
        if (length > room)
            return -ENOSPC;
        if (is_free(a, next)) {
            bin_drop(a, next);
            absorb_next(a, r);
        }
        if (room > length)
            insert_free_after(a, r, off + length, room - length);
    }
    a->live_bytes += size - a->ranges[r].size;
    a->used_bytes += length - old_length;
    a->ranges[r].size = size;
    return 0;
}

/* ---- queries ---- */

int shmemi_alloc_find(const struct shmemi_alloc *a, size_t off, size_t *start_out, size_t *size_out)
{
    uint32_t r = shmemi_index_floor(&a->live, off >> GRANULE_SHIFT);
    const struct range *x;

    if (r == NONE)
        return -ENOENT;
    x = &a->ranges[r];
    if (off - x->off >= length_of_size(x->size))
        return -ENOENT;
    *start_out = x->off;
    *size_out = x->size;
    return 0;
}

size_t shmemi_alloc_end(const struct shmemi_alloc *a)
{
    uint32_t r = shmemi_index_floor(&a->live, (a->heap_size - 1) >> GRANULE_SHIFT);

    return r == NONE ? 0 : a->ranges[r].off + length_of_size(a->ranges[r].size);
}

static size_t largest_free(const struct shmemi_alloc *a)
{
    uint64_t largest = 0;
    unsigned w, b;
    uint32_t r;

    if (!a->bin_words)
        return 0;
    w = 63u - (unsigned)__builtin_clzll(a->bin_words);
    b = w * 64 + 63u - (unsigned)__builtin_clzll(a->bin_map[w]);
    for (r = a->bin[b]; r != NONE; r = a->ranges[r].bin_next)
        if (a->ranges[r].size > largest)
            largest = a->ranges[r].size;
    return largest;
}

void shmemi_alloc_stats(const struct shmemi_alloc *a, struct shmemi_alloc_stats *out)
{
    *out = (struct shmemi_alloc_stats){
        .size = a->heap_size,
        .live_bytes = a->live_bytes,
        .used_bytes = a->used_bytes,
        .largest_free = largest_free(a),
        .live_blocks = a->live_blocks,
    };
}
