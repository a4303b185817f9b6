/* SPDX-License-Identifier: BSD-3-Clause */
/* shape.c - see shape.h. */
#include "shape.h"

#define DEPTH_MAX 20 /* a million nodes by twos */

/* Nodes in a tree of this radix and depth. */
static long long capacity(unsigned radix, unsigned depth)
{
    long long nodes = 1, level = 1;

    for (unsigned i = 0; i < depth && nodes < (1ll << 40); i++)
        nodes += level *= radix;
    return nodes;
}

unsigned shmemi_shape_depth(long long nodes, unsigned radix)
{
    unsigned depth = 0;

    if (radix < 2)
        return nodes > 1 ? (unsigned)(nodes - 1) : 0;
    while (capacity(radix, depth) < nodes)
        depth++;
    return depth;
}

unsigned shmemi_shape_radix(long long nodes, unsigned depth)
{
    unsigned low = 1, high = 1;

    if (nodes <= 1 || depth == 0)
        return 1;
    while (capacity(high, depth) < nodes)
        high *= 2;
    while (low < high) {
        unsigned middle = low + (high - low) / 2;

        if (capacity(middle, depth) < nodes)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* One after the other to `peers`, until the last has it, who hears from `senders`. */
static long long posts(long long peers, long long senders)
{
    return SHMEMI_COST_POST + (peers - 1) * SHMEMI_COST_NEXT + SHMEMI_COST_NIC + SHMEMI_COST_WIRE +
           (senders - 1) * SHMEMI_COST_ARRIVE;
}

struct shmemi_shape shmemi_shape_choose(long long pes, long long nodes, long long least, long long most, unsigned forced)
{
    struct shmemi_shape best = { SHMEMI_FAR_FLAT, 0 };
    long long least_ns = posts(pes - least, pes - least), near = most > 1 ? 2 * SHMEMI_COST_NEAR : 0, ns;

    if (nodes <= 1)
        return (struct shmemi_shape){ 0, 0 };
    if (forced)
        return (struct shmemi_shape){ SHMEMI_FAR_TREE, forced };
    best.radix = (uint32_t)nodes - 1;
    ns = near + posts(nodes - 1, nodes - 1);
    if (ns < least_ns && most > 1) {
        best.kind = SHMEMI_FAR_MESH;
        least_ns = ns;
    }
    for (unsigned depth = 1; depth <= DEPTH_MAX; depth++) {
        unsigned radix = shmemi_shape_radix(nodes, depth);

        if (radix < 2)
            break;
        ns = near + (long long)depth * (posts(1, radix) + posts(radix, 1));
        if (ns < least_ns) {
            best = (struct shmemi_shape){ SHMEMI_FAR_TREE, radix };
            least_ns = ns;
        }
    }
    return best;
}
