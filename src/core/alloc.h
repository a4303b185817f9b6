/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * alloc.h - the allocator inside a symmetric heap: offsets in, offsets out.
 *
 * It never touches the memory that it hands out: all metadata lives outside
 * the heap, so neither an overflow by the user nor a peer's stray put can
 * corrupt it.  It is deterministic: the same sequence of calls gives the same
 * offsets on every PE, and NULL on every PE alike.  Not thread-safe: callers
 * hold the heap's lock.  No dependency on the rest of the library.
 */
#ifndef SHMEMI_ALLOC_H
#define SHMEMI_ALLOC_H

#include <stddef.h>
#include <stdint.h>

struct shmemi_alloc;

#define SHMEMI_ALLOC_FAIL SIZE_MAX
#define SHMEMI_ALLOC_MIN_ALIGN 64 /* every block starts on a cache line of its own */

/* A heap of `size` bytes whose offset 0 is aligned to `base_align` (a power of two, at least a page). */
int shmemi_alloc_create(size_t size, size_t base_align, struct shmemi_alloc **out);
void shmemi_alloc_destroy(struct shmemi_alloc *a);

/*
 * Offset of a new block of `size` > 0 bytes at a multiple of `align` (a power of two,
 * any up to base_align; larger ones give SHMEMI_ALLOC_FAIL).  SHMEMI_ALLOC_FAIL
 * when no free range is large enough.
 */
size_t shmemi_alloc_get(struct shmemi_alloc *a, size_t size, size_t align);

/* Frees the block that starts at `off`.  -EINVAL: no live block starts there (double free, interior pointer). */
int shmemi_alloc_put(struct shmemi_alloc *a, size_t off);

/* Grows or shrinks in place where possible.  0, or -ENOSPC when the block must move, -EINVAL as above. */
int shmemi_alloc_resize(struct shmemi_alloc *a, size_t off, size_t size);

/*
 * The live block that holds `off` (an interior offset is fine): its start and its
 * requested size in bytes.  -ENOENT when `off` lies in free space.
 */
int shmemi_alloc_find(const struct shmemi_alloc *a, size_t off, size_t *start_out, size_t *size_out);

/* Where the last live block ends. */
size_t shmemi_alloc_end(const struct shmemi_alloc *a);

struct shmemi_alloc_stats {
    size_t size;         /* bytes of the heap */
    size_t live_bytes;   /* requested bytes in live blocks */
    size_t used_bytes;   /* bytes that live blocks occupy with rounding */
    size_t largest_free; /* bytes of the largest free range */
    size_t live_blocks;
};
void shmemi_alloc_stats(const struct shmemi_alloc *a, struct shmemi_alloc_stats *out);

#endif
