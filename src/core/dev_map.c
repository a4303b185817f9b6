/* SPDX-License-Identifier: BSD-3-Clause */
/* dev_map.c - see dev_map.h. */
#include "dev_map.h"

#include "check.h"
#include "env.h"
#include "shape.h"
#include "shmem/device/syncblk.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Members by node. */
struct count {
    uint32_t *node_of; /* by member */
    uint32_t *here;    /* by node: its members */
    uint32_t n_nodes;
};

static uint32_t job_node(const struct shmemi_team *t, int member)
{
    return (uint32_t)shmemi.node_of[shmemi_team_world_pe(t, member)];
}

static void count_down(struct count *c)
{
    free(c->node_of);
    free(c->here);
}

/* Numbers the nodes that have members. */
static int count_up(const struct shmemi_team *t, struct count *c)
{
    uint32_t *seen = calloc((size_t)shmemi.n_nodes, sizeof *seen); /* number + 1 */

    c->n_nodes = 0;
    c->node_of = calloc((size_t)t->n_pes, sizeof *c->node_of);
    c->here = calloc((size_t)shmemi.n_nodes, sizeof *c->here);
    if (!seen || !c->node_of || !c->here) {
        free(seen);
        count_down(c);
        return -ENOMEM;
    }
    for (int i = 0; i < t->n_pes; i++) {
        uint32_t *number = &seen[job_node(t, i)];

        if (!*number)
            *number = ++c->n_nodes;
        c->node_of[i] = *number - 1;
        c->here[*number - 1]++;
    }
    free(seen);
    return 0;
}

static struct shmemi_shape shape_of(const struct shmemi_team *t, const struct count *c)
{
    uint32_t least = (uint32_t)t->n_pes, most = 0;
    long forced = shmemi_env.barrier_radix;

    for (uint32_t i = 0; i < c->n_nodes; i++) {
        least = c->here[i] < least ? c->here[i] : least;
        most = c->here[i] > most ? c->here[i] : most;
    }
    return shmemi_shape_choose(t->n_pes, c->n_nodes, least, most, forced > 0 ? (unsigned)forced : 0);
}

int shmemi_dev_map_fill(const struct shmemi_team *t, void *map)
{
    struct shmemi_sync_map *m = map;
    uint32_t *node_of = (uint32_t *)(void *)(m + 1), *first = node_of + t->n_pes, *members = first + t->n_pes + 1;
    struct shmemi_shape shape;
    struct count c;
    int rc = count_up(t, &c);

    if (rc)
        return rc;
    shape = shape_of(t, &c);
    memset(map, 0, shmemi_sync_map_bytes((uint32_t)t->n_pes));
    m->n_nodes = c.n_nodes;
    m->my_node = c.node_of[t->my_pe];
    m->radix = shape.radix;
    memcpy(node_of, c.node_of, (size_t)t->n_pes * sizeof *node_of);
    for (uint32_t i = 0, at = 0; i <= c.n_nodes; i++) {
        first[i] = at;
        at += i < c.n_nodes ? c.here[i] : 0;
        if (i < c.n_nodes)
            c.here[i] = first[i]; /* from here on: where its next member goes */
    }
    for (int i = 0; i < t->n_pes; i++)
        members[c.here[c.node_of[i]]++] = (uint32_t)i;
    count_down(&c);
    return (int)shape.kind;
}

int shmemi_dev_map_shape(const struct shmemi_team *t)
{
    struct count c;
    struct shmemi_shape shape;
    int rc = count_up(t, &c);

    if (rc)
        return rc;
    shape = shape_of(t, &c);
    count_down(&c);
    return (int)shape.kind;
}

SHMEMI_API(unsigned, shmemx_device_team, (shmem_team_t team, void *block))
{
    const struct shmemi_team *t;
    int kind;

    shmemi_check_init("shmemx_device_team");
    t = shmemi_team_get(team, "shmemx_device_team");
    kind = shmemi_dev_map_fill(t, (char *)block + shmemi_sync_map_off((uint32_t)t->n_pes));
    if (kind < 0)
        shmemi_fatal("shmemx_device_team", "no memory for a team of %d PEs", t->n_pes);
    return (unsigned)kind;
}
