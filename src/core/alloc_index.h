/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * alloc_index.h - an ordered map from 64-bit keys to 32-bit values, for the
 * allocator: exact lookup, and the greatest key at or below a given one.
 *
 * It is a 64-way trie with a bitmap in each node, so that a lookup is a few
 * dependent loads (one for each six bits of the largest key) whatever the number
 * of keys.  Memory grows with the keys that are present.  Not thread-safe for
 * writers; lookups may run beside each other.
 */
#ifndef SHMEMI_ALLOC_INDEX_H
#define SHMEMI_ALLOC_INDEX_H

#include <stddef.h>
#include <stdint.h>

#define SHMEMI_INDEX_NONE UINT32_MAX /* no such key; never a value */

struct shmemi_index_node;

struct shmemi_index {
    struct shmemi_index_node *nodes;
    uint32_t capacity; /* nodes allocated */
    uint32_t fresh;    /* nodes[fresh..capacity) were never used */
    uint32_t spare;    /* list of nodes given back, through child[0] */
    uint32_t n_spare;
    int levels;
};

/* Keys are 0..max_key. */
int shmemi_index_init(struct shmemi_index *x, uint64_t max_key);
void shmemi_index_fini(struct shmemi_index *x);

/* Makes sure that the next insert cannot fail.  0 or -ENOMEM. */
int shmemi_index_reserve(struct shmemi_index *x);

/* The key must be absent, and reserve() must have succeeded since the last insert. */
void shmemi_index_insert(struct shmemi_index *x, uint64_t key, uint32_t value);

/* The key must be present. */
void shmemi_index_remove(struct shmemi_index *x, uint64_t key);

/* Value of exactly this key, or SHMEMI_INDEX_NONE.  Any key may be asked for, also one above max_key. */
uint32_t shmemi_index_get(const struct shmemi_index *x, uint64_t key);

/* Value of the greatest key <= `key`, or SHMEMI_INDEX_NONE. */
uint32_t shmemi_index_floor(const struct shmemi_index *x, uint64_t key);

#endif
