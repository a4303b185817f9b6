/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shape.h - how the members of a team on several nodes meet in kernels: which of three ways is the fastest, and with how
 * many children a node of the tree.  Plain numbers in, plain numbers out.
 *
 *     flat   each member writes to each member: one message on the way, as many posts as there are members elsewhere
 *     mesh   members of a node tell its first one, first members write to each other, and tell theirs
 *     tree   first members form a tree of radix k: up to its root and down again
 *
 * The costs are those of one warp that posts for its PE.  tests/device/barrier_model.c derives the time of every shape
 * along its slowest path, and tests/device/model.sh holds what is chosen here against it.
 */
#ifndef SHMEMI_SHAPE_H
#define SHMEMI_SHAPE_H

#include "shmem/device/state.h"

/* In ns, of one H200 with the doorbell in host memory; the wire is an assumption. */
enum {
    SHMEMI_COST_POST = 596,    /* one write on a queue that all threads share */
    SHMEMI_COST_NEXT = 75,     /* each further peer of the same warp: 14 for its entry, 61 for its doorbell */
    SHMEMI_COST_NIC = 2863,    /* doorbell to NIC, and from it into the memory of a GPU that polls */
    SHMEMI_COST_WIRE = 1000,   /* from NIC to NIC */
    SHMEMI_COST_ARRIVE = 5,    /* each further message to the same NIC: 200 million a second, an assumption */
    SHMEMI_COST_NEAR = 750,    /* a flag stored in a near peer's memory is seen there */
};

struct shmemi_shape {
    uint32_t kind; /* enum shmemi_dev_far_shape, or 0: one node */
    uint32_t radix;
};

/* Levels below the root that `nodes` need in a tree of this radix. */
unsigned shmemi_shape_depth(long long nodes, unsigned radix);
/* The smallest radix with which they need no more than `depth`. */
unsigned shmemi_shape_radix(long long nodes, unsigned depth);

/* The nodes have from `least` to `most` members each.  forced: a radix that is asked for, or 0. */
struct shmemi_shape shmemi_shape_choose(long long pes, long long nodes, long long least, long long most, unsigned forced);

#endif
