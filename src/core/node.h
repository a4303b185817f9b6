/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * node.h - the cards that PEs exchange at start, and the node that they imply.
 *
 * Node membership comes from the host names in the cards (or MARROW_NODE), never from
 * what the launcher says about nodes.
 */
#ifndef SHMEMI_NODE_H
#define SHMEMI_NODE_H

#include "state.h"

#define SHMEMI_HEAP_UNIT ((size_t)2 << 20) /* a heap's size is a multiple: a huge page */
#define SHMEMI_NODE_NAME_MAX 64
#define SHMEMI_CPU_WORDS 16 /* CPUs beyond 1024 are not told apart */

/* What a PE tells all others, once. */
struct shmemi_card {
    uint32_t magic; /* catches PEs that run another version of the library */
    int32_t pid;
    char node[SHMEMI_NODE_NAME_MAX];
    uint64_t pid_ns;
    uint64_t heap_len;
    uint64_t data_len;
    uint64_t data_identity; /* of the executable whose data it is */
    uint8_t secret[16];  /* who knows the leader's may have the node's memory */
    uint32_t wants_gpu;  /* CUDA from the start, not only at the first use of device memory */
    char door[24];       /* abstract socket of this PE, should it be a leader */
    uint64_t cpus[SHMEMI_CPU_WORDS]; /* CPUs that this PE may run on */
};

/* Does this PE's static data have the same layout as the other's? */
static inline bool shmemi_same_data(const struct shmemi_card *a, const struct shmemi_card *b)
{
    return a->data_len == b->data_len && a->data_identity == b->data_identity;
}

/* Exchanges cards and fills what shmemi tells about nodes (n_local, local_pes, node_of ...).  `cards_out`: n_pes cards, to be freed. */
int shmemi_node_discover(struct shmemi_card *mine, struct shmemi_card **cards_out);
void shmemi_node_forget(void);

#endif
