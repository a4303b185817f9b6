/* SPDX-License-Identifier: BSD-3-Clause */
/* alloc_index.c - the allocator's ordered index: a 64-way trie over block starts. */
#include "alloc_index.h"

#include <errno.h>
#include <stdlib.h>

#define LEVEL_BITS 6
#define LEVELS_MAX 11 /* 64 bits in steps of six */
#define ROOT 0u
#define NODES_FIRST 64u

/* child[i] means something only where bit i of `map` is set, so a node needs no clearing. */
struct shmemi_index_node {
    uint64_t map;
    uint32_t child[64]; /* a node, or at the lowest level a value */
};

static unsigned slot_of(uint64_t key, int level)
{
    return (unsigned)(key >> (level * LEVEL_BITS)) & 63u;
}

static int in_range(const struct shmemi_index *x, uint64_t key)
{
    return x->levels == LEVELS_MAX || key >> (x->levels * LEVEL_BITS) == 0;
}

int shmemi_index_init(struct shmemi_index *x, uint64_t max_key)
{
    *x = (struct shmemi_index){ .spare = SHMEMI_INDEX_NONE, .levels = 1 };
    while (!in_range(x, max_key))
        x->levels++;
    x->nodes = malloc(NODES_FIRST * sizeof *x->nodes);
    if (!x->nodes)
        return -ENOMEM;
    x->capacity = NODES_FIRST;
    x->nodes[ROOT].map = 0;
    x->fresh = ROOT + 1;
    return 0;
}

void shmemi_index_fini(struct shmemi_index *x)
{
    free(x->nodes);
    x->nodes = NULL;
}

int shmemi_index_reserve(struct shmemi_index *x)
{
    struct shmemi_index_node *grown;

    if (x->n_spare + (x->capacity - x->fresh) >= (uint32_t)x->levels)
        return 0;
    if (x->capacity > UINT32_MAX / 4)
        return -ENOMEM;
    grown = realloc(x->nodes, 2 * (size_t)x->capacity * sizeof *grown);
    if (!grown)
        return -ENOMEM;
    x->nodes = grown;
    x->capacity *= 2;
    return 0;
}

static uint32_t node_take(struct shmemi_index *x)
{
    uint32_t n = x->spare;

    if (n == SHMEMI_INDEX_NONE)
        return x->fresh++;
    x->spare = x->nodes[n].child[0];
    x->n_spare--;
    return n;
}

static void node_give(struct shmemi_index *x, uint32_t n)
{
    x->nodes[n].child[0] = x->spare;
    x->spare = n;
    x->n_spare++;
}

void shmemi_index_insert(struct shmemi_index *x, uint64_t key, uint32_t value)
{
    uint32_t n = ROOT;
    int level = x->levels - 1;

    for (; level > 0; level--) {
        struct shmemi_index_node *node = &x->nodes[n];
        unsigned slot = slot_of(key, level);

        if (!(node->map >> slot & 1)) {
            node->map |= UINT64_C(1) << slot;
            node->child[slot] = node_take(x);
            x->nodes[node->child[slot]].map = 0;
        }
        n = node->child[slot];
    }
    x->nodes[n].map |= UINT64_C(1) << slot_of(key, 0);
    x->nodes[n].child[slot_of(key, 0)] = value;
}

void shmemi_index_remove(struct shmemi_index *x, uint64_t key)
{
    uint32_t path[LEVELS_MAX];
    int level = x->levels - 1;

    path[level] = ROOT;
    for (; level > 0; level--)
        path[level - 1] = x->nodes[path[level]].child[slot_of(key, level)];
    for (level = 0; level < x->levels; level++) {
        struct shmemi_index_node *node = &x->nodes[path[level]];

        node->map &= ~(UINT64_C(1) << slot_of(key, level));
        if (node->map || path[level] == ROOT)
            return;
        node_give(x, path[level]);
    }
}

uint32_t shmemi_index_get(const struct shmemi_index *x, uint64_t key)
{
    uint32_t n = ROOT;
    int level;

    if (!in_range(x, key))
        return SHMEMI_INDEX_NONE;
    for (level = x->levels - 1; level >= 0; level--) {
        const struct shmemi_index_node *node = &x->nodes[n];
        unsigned slot = slot_of(key, level);

        if (!(node->map >> slot & 1))
            return SHMEMI_INDEX_NONE;
        n = node->child[slot];
    }
    return n;
}

/* The value under the last key of the subtree that hangs below `node` in its highest slot of `below`. */
static uint32_t last_under(const struct shmemi_index *x, const struct shmemi_index_node *node, uint64_t below,
                           int level)
{
    uint32_t n = node->child[63 - __builtin_clzll(below)];

    while (level-- > 0) {
        node = &x->nodes[n];
        n = node->child[63 - __builtin_clzll(node->map)];
    }
    return n;
}

uint32_t shmemi_index_floor(const struct shmemi_index *x, uint64_t key)
{
    const struct shmemi_index_node *side = NULL; /* lowest node on the path with keys left of it */
    uint64_t side_below = 0;
    uint32_t n = ROOT;
    int side_level = 0, level;

    if (!in_range(x, key))
        key = UINT64_MAX;
    for (level = x->levels - 1; level >= 0; level--) {
        const struct shmemi_index_node *node = &x->nodes[n];
        unsigned slot = slot_of(key, level);
        uint64_t below = node->map & ((UINT64_C(1) << slot) - 1);

        if (below) {
            side = node;
            side_below = below;
            side_level = level;
        }
        if (!(node->map >> slot & 1))
            return side ? last_under(x, side, side_below, side_level) : SHMEMI_INDEX_NONE;
        n = node->child[slot];
    }
    return n;
}
