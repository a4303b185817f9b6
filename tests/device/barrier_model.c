/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * barrier_model.c - how long a barrier of kernels takes, by the number of PEs and by the way in which they meet: each
 * message is followed along the tree, node by node.  Nothing is measured here; costs come from src/core/shape.h or the command line.
 *
 *     barrier_model [--pes-per-node N] [--most PES] [--post NS] [--next NS] [--nic NS] [--wire NS] [--near NS]
 *                   [--arrive NS] [--check]
 *
 * One line for each number of PEs, times in microseconds.  "wide" is a dissemination in which each tells several others in a
 * round, as many as are best.  --check: fails where what the library chooses takes over 5 % longer than the best of
 * flat, mesh and all trees.
 */
#include "core/shape.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long post = SHMEMI_COST_POST, next_post = SHMEMI_COST_NEXT, nic = SHMEMI_COST_NIC, wire = SHMEMI_COST_WIRE;
static long near = SHMEMI_COST_NEAR, arrive = SHMEMI_COST_ARRIVE, per_node = 1, most = 1 << 20, check;

static const struct {
    const char *name;
    long *value;
} options[] = {
    { "--pes-per-node", &per_node }, { "--most", &most }, { "--post", &post }, { "--next", &next_post }, { "--nic", &nic },
    { "--wire", &wire }, { "--near", &near }, { "--arrive", &arrive },
};

static long hop(void)
{
    return nic + wire;
}

/* The members of a node to their first one, or back. */
static long within(void)
{
    return per_node > 1 ? near : 0;
}

/* All to all. */
static long all_to_all(long peers)
{
    return post + (peers - 1) * (next_post + arrive) + hop();
}

/* Each of `nodes` tells `width` others a round, until all know of all. */
static long dissemination(long nodes, long width)
{
    long ns = 0;

    for (long known = 1; known < nodes; known *= width + 1)
        ns += all_to_all(width < nodes - 1 ? width : nodes - 1);
    return ns;
}

static long wide(long nodes, long *width_out)
{
    long best = dissemination(nodes, 1);

    *width_out = 1;
    for (long w = 2; w < nodes && w <= 128; w++)
        if (dissemination(nodes, w) < best) {
            best = dissemination(nodes, w);
            *width_out = w;
        }
    return best;
}

/* When the last node is released: up and down a tree whose node i has the children radix * i + 1 to radix * i + radix. */
static long tree(long nodes, long radix)
{
    long *at = calloc((size_t)nodes, sizeof *at), last = 0;

    if (!at)
        exit(2);
    for (long i = nodes - 1; i > 0; i--) { /* its children have reported: tells its parent, whose NIC takes one by one */
        long parent = (i - 1) / radix, there = at[i] + post + hop() + (i - 1) % radix * arrive;

        at[parent] = there > at[parent] ? there : at[parent];
    }
    for (long i = 1; i < nodes; i++) {
        at[i] = at[(i - 1) / radix] + post + (i - 1) % radix * next_post + hop();
        last = at[i] > last ? at[i] : last;
    }
    free(at);
    return last;
}

static long by_shape(struct shmemi_shape s, long pes, long nodes)
{
    switch (s.kind) {
    case SHMEMI_FAR_FLAT: return all_to_all(pes - per_node);
    case SHMEMI_FAR_MESH: return 2 * within() + all_to_all(nodes - 1);
    default: return 2 * within() + tree(nodes, s.radix);
    }
}

static long best_of(long pes, long nodes, struct shmemi_shape *best)
{
    static const enum shmemi_dev_far_shape all[2] = { SHMEMI_FAR_FLAT, SHMEMI_FAR_MESH };
    long least = -1, ns;

    for (int i = 0; i < 2; i++) {
        struct shmemi_shape s = { all[i], 0 };

        ns = by_shape(s, pes, nodes);
        if (least < 0 || ns < least) {
            least = ns;
            *best = s;
        }
    }
    for (long radix = 2; radix < nodes && radix <= 512; radix += radix < 24 ? 1 : radix / 8) {
        struct shmemi_shape s = { SHMEMI_FAR_TREE, (uint32_t)radix };

        ns = by_shape(s, pes, nodes);
        if (ns < least) {
            least = ns;
            *best = s;
        }
    }
    return least;
}

static const char *name(struct shmemi_shape s, char buf[32])
{
    snprintf(buf, 32, s.kind == SHMEMI_FAR_TREE ? "tree of %u" : s.kind == SHMEMI_FAR_MESH ? "mesh" : "flat", s.radix);
    return buf;
}

/* 0, or 1: what the library chooses is too slow. */
static int line(long pes)
{
    static const long radices[6] = { 2, 4, 8, 16, 32, 64 };
    long nodes = pes / per_node, width, chosen_ns, best_ns;
    struct shmemi_shape chosen = shmemi_shape_choose(pes, nodes, per_node, per_node, 0), best = { 0, 0 };
    char a[32], b[32];

    if (nodes < 2) {
        printf("%8ld %8ld: one node, %.2f\n", pes, nodes, (double)near / 1e3);
        return 0;
    }
    chosen_ns = by_shape(chosen, pes, nodes);
    best_ns = best_of(pes, nodes, &best);
    printf("%8ld %8ld %10.2f %10.2f %7.2f", pes, nodes, (double)all_to_all(pes - per_node) / 1e3,
           (double)(2 * within() + all_to_all(nodes - 1)) / 1e3, (double)(2 * within() + dissemination(nodes, 1)) / 1e3);
    printf(" %7.2f", (double)(2 * within() + wide(nodes, &width)) / 1e3);
    printf(" (%3ld)", width);
    for (int i = 0; i < 6; i++)
        printf(" %7.2f", (double)(2 * within() + tree(nodes, radices[i])) / 1e3);
    printf("   %-11s %7.2f   %-11s %7.2f\n", name(chosen, a), (double)chosen_ns / 1e3, name(best, b), (double)best_ns / 1e3);
    return chosen_ns * 100 > best_ns * 105;
}

static int parse(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        size_t k = 0, n = sizeof options / sizeof options[0];

        if (!strcmp(argv[i], "--check")) {
            check = 1;
            continue;
        }
        while (k < n && strcmp(argv[i], options[k].name))
            k++;
        if (k == n || i + 1 == argc || (*options[k].value = atol(argv[++i])) < 0)
            return -1;
    }
    return per_node >= 1 && most >= 2 ? 0 : -1;
}

int main(int argc, char **argv)
{
    int bad = 0;

    if (parse(argc, argv)) {
        fprintf(stderr, "barrier_model: wrong options\n");
        return 2;
    }
    printf("a post %ld ns, each further one %ld, NIC %ld, wire %ld, near flag %ld, each further arrival %ld; %ld PEs a node\n", post,
           next_post, nic, wire, near, arrive, per_node);
    printf("%8s %8s %10s %10s %7s %7s %5s %7s %7s %7s %7s %7s %7s   %-19s   %s\n", "PEs", "nodes", "flat", "mesh", "dissem.", "wide",
           "", "tree 2", "4", "8", "16", "32", "64", "chosen", "best but dissemination");
    for (long pes = 2; pes <= most; pes *= 2)
        if (line(pes)) {
            bad++;
            printf("# the choice for %ld PEs is more than 5 %% behind the best\n", pes);
        }
    return check && bad;
}
