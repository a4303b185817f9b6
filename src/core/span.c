/* SPDX-License-Identifier: BSD-3-Clause */
/* span.c - how the members of a team on several nodes meet (see span.h for the protocol and its memory order). */
#include "span.h"

#include "env.h"
#include "net.h"
#include "shape.h"

#include <errno.h>
#include <stdlib.h>

#define LOCAL_RADIX 16
#define NODE_RADIX 16 /* children that a leader writes to one after the other, at most */

/* Parts of a leader's stage in the tree: its own payload, the result, and one for each child. */
enum { OWN, RESULT, CHILDREN };

/* ---- set-up ---- */

static bool all_here(const struct shmemi_team *t)
{
    if (shmemi.n_nodes <= 1)
        return true;
    for (int i = 0; i < t->n_pes; i++)
        if (!shmemi.peers[shmemi_team_world_pe(t, i)].ctl)
            return false;
    return true;
}

/* The smallest radix that needs no more levels than the largest one. */
static int choose_radix(int n_nodes)
{
    if (shmemi_env.barrier_radix > 0)
        return shmemi_env.barrier_radix < SHMEMI_SPAN_RADIX_MAX ? (int)shmemi_env.barrier_radix : SHMEMI_SPAN_RADIX_MAX;
    return (int)shmemi_shape_radix(n_nodes, shmemi_shape_depth(n_nodes, NODE_RADIX));
}

/* Numbers the nodes that have members and lists this node's.  `seen`: by node of the job, all -1. */
static void list_nodes(const struct shmemi_team *t, struct shmemi_span *s, int *seen)
{
    int my_job_node = shmemi.node_of[shmemi.my_pe];

    for (int i = 0; i < t->n_pes; i++) {
        int node = shmemi.node_of[shmemi_team_world_pe(t, i)];

        if (seen[node] < 0) {
            seen[node] = s->n_nodes;
            s->leaders[s->n_nodes++] = i;
        }
        s->node_of[i] = seen[node];
        if (node != my_job_node)
            continue;
        if (i == t->my_pe)
            s->my_here = s->n_here;
        s->here[s->n_here++] = i;
    }
    s->my_node = seen[my_job_node];
}

static void plant_tree(struct shmemi_span *s)
{
    long long first;

    s->radix = choose_radix(s->n_nodes);
    s->parent = s->my_node ? (s->my_node - 1) / s->radix : -1;
    s->child_place = s->my_node ? (s->my_node - 1) % s->radix : 0;
    first = (long long)s->my_node * s->radix + 1;
    s->first_child = first < s->n_nodes ? (int)first : s->n_nodes;
    s->n_children = s->n_nodes - s->first_child < s->radix ? s->n_nodes - s->first_child : s->radix;
    s->payload_max = SHMEMI_STAGE_BYTES / (size_t)(CHILDREN + s->radix) / SHMEMI_CACHELINE * SHMEMI_CACHELINE;
}

static void span_free(struct shmemi_span *s)
{
    if (!s)
        return;
    free(s->node_of);
    free(s->leaders);
    free(s->here);
    free(s);
}

static struct shmemi_span *span_new(int n_pes)
{
    int n_leaders = n_pes < shmemi.n_nodes ? n_pes : shmemi.n_nodes;
    int n_here = n_pes < shmemi.n_local ? n_pes : shmemi.n_local;
    struct shmemi_span *s = calloc(1, sizeof *s);

    if (!s)
        return NULL;
    s->node_of = calloc((size_t)n_pes, sizeof *s->node_of);
    s->leaders = calloc((size_t)n_leaders, sizeof *s->leaders);
    s->here = calloc((size_t)n_here, sizeof *s->here);
    if (s->node_of && s->leaders && s->here)
        return s;
    span_free(s);
    return NULL;
}

int shmemi_span_setup(struct shmemi_team *t)
{
    struct shmemi_span *s;
    int *seen;

    span_free(t->coll->span);
    t->coll->span = NULL;
    if (all_here(t))
        return 0;
    s = span_new(t->n_pes);
    seen = malloc((size_t)shmemi.n_nodes * sizeof *seen);
    if (!s || !seen) {
        span_free(s);
        free(seen);
        return -ENOMEM;
    }
    for (int i = 0; i < shmemi.n_nodes; i++)
        seen[i] = -1;
    list_nodes(t, s, seen);
    free(seen);
    plant_tree(s);
    s->lines = t->n_pes <= SHMEMI_FLAT_MAX && !shmemi.crowded && shmemi_env.barrier_radix <= 0;
    for (int i = 0; s->lines && i < t->n_pes; i++)
        s->blocks[i] = shmemi_team_block(shmemi_team_world_pe(t, i), t->slot);
    t->coll->stage_max = s->lines ? SHMEMI_EAGER_BYTES : 0;
    t->coll->span = s;
    return 0;
}

/* ---- lines ---- */

void shmemi_span_post(const struct shmemi_team *t, uint64_t epoch, int member, const void *data, size_t len)
{
    struct shmemi_block *mine = t->coll->mine, *theirs = t->coll->span->blocks[member];
    int parity = epoch & 1, me = t->my_pe, pe = shmemi_team_world_pe(t, member);
    size_t at = (size_t)me * SHMEMI_EAGER_BYTES;
    struct shmemi_line *line;

    if (!theirs) {
        line = &mine->lines[parity][me];
        shmemi_net_block_write(pe, len <= SHMEMI_LINE_BYTES ? line->data : mine->stage[parity] + at, data, len,
                               &line->epoch, epoch, "collective");
        return;
    }
    line = &theirs->lines[parity][me];
    shmemi_copy_small(len <= SHMEMI_LINE_BYTES ? line->data : theirs->stage[parity] + at, data, len);
    SHMEMI_ST_REL(&line->epoch, epoch); /* pairs with shmemi_line_wait */
    shmemi_wake_peer_sync(shmemi.peers[pe].ctl);
}

void shmemi_span_fill(const struct shmemi_team *t, uint64_t epoch, int member, const void *data, size_t len)
{
    struct shmemi_block *theirs = t->coll->span->blocks[member];
    size_t at = (size_t)t->my_pe * SHMEMI_EAGER_BYTES;

    if (theirs)
        memcpy(theirs->stage[epoch & 1] + at, data, len);
    else
        shmemi_net_block_write(shmemi_team_world_pe(t, member), t->coll->mine->stage[epoch & 1] + at, data, len, NULL, 0,
                               "collective");
}

/* ---- the tree ---- */

static struct shmemi_block *leader_block(const struct shmemi_team *t)
{
    return shmemi_block_of(t, t->coll->span->here[0]);
}

static unsigned char *part(const struct shmemi_team *t, const struct shmemi_block *block, uint64_t epoch, int which)
{
    return (unsigned char *)block->stage[epoch & 1] + (size_t)which * t->coll->span->payload_max;
}

/* This PE has come: the last one of its node tells the leader. */
static void tree_arrive(const struct shmemi_team *t, uint64_t epoch)
{
    const struct shmemi_span *s = t->coll->span;
    int index = s->my_here, count = s->n_here, reach = LOCAL_RADIX;

    SHMEMI_ST_REL(&t->coll->mine->entered, epoch); /* pairs with the hang report */
    for (int level = 0; count > 1; level++) {
        int group = index / LOCAL_RADIX;
        int size = count - group * LOCAL_RADIX < LOCAL_RADIX ? count - group * LOCAL_RADIX : LOCAL_RADIX;
        struct shmemi_block *counter = shmemi_block_of(t, s->here[group * reach]);

        if (!shmemi_last_of(&counter->arrived[level], (unsigned)size))
            return;
        if (count <= LOCAL_RADIX)
            break;
        index = group;
        count = (count + LOCAL_RADIX - 1) / LOCAL_RADIX;
        reach *= LOCAL_RADIX;
    }
    SHMEMI_ST_REL(&leader_block(t)->gathered, epoch); /* pairs with lead */
    if (s->my_here != 0)
        shmemi_wake_peer_sync(shmemi.peers[shmemi_team_world_pe(t, s->here[0])].ctl);
}

static void await_word(const uint64_t *word, uint64_t epoch, struct shmemi_waiter *w)
{
    while (SHMEMI_LD_ACQ(word) < epoch)
        shmemi_wait_step(w);
}

/* Writes `word`, and before it part `which` of the stage, of a node's leader.  Both as addresses in the own block. */
static void write_to(const struct shmemi_team *t, int node, uint64_t epoch, int which, const uint64_t *word,
                     const struct shmemi_payload *p, const char *call)
{
    int pe = shmemi_team_world_pe(t, t->coll->span->leaders[node]);

    shmemi_net_block_write(pe, part(t, t->coll->mine, epoch, which), p ? p->acc : NULL, p ? p->len : 0, word, epoch,
                           call);
}

static void gather(const struct shmemi_team *t, uint64_t epoch, const struct shmemi_payload *p, struct shmemi_waiter *w)
{
    const struct shmemi_span *s = t->coll->span;
    struct shmemi_block *mine = t->coll->mine;

    await_word(&mine->gathered, epoch, w); /* pairs with tree_arrive */
    for (int i = 1; p && i < s->n_here; i++)
        p->combine(p, part(t, shmemi_block_of(t, s->here[i]), epoch, OWN));
    for (int i = 0; i < s->n_children; i++) {
        await_word(&mine->children[i], epoch, w);
        if (p)
            p->combine(p, part(t, mine, epoch, CHILDREN + i));
    }
}

/* A leader's settle. */
static void lead(const struct shmemi_team *t, uint64_t epoch, const struct shmemi_payload *p, struct shmemi_waiter *w)
{
    const struct shmemi_span *s = t->coll->span;
    struct shmemi_block *mine = t->coll->mine;

    gather(t, epoch, p, w);
    if (s->parent >= 0) {
        write_to(t, s->parent, epoch, CHILDREN + s->child_place, &mine->children[s->child_place], p, w->call);
        await_word(&mine->release, epoch, w);
        if (p)
            memcpy(p->acc, part(t, mine, epoch, RESULT), p->len);
    } else if (p) {
        memcpy(part(t, mine, epoch, RESULT), p->acc, p->len);
    }
    for (int i = 0; i < s->n_children; i++)
        write_to(t, s->first_child + i, epoch, RESULT, &mine->release, p, w->call);
    if (s->parent < 0)
        SHMEMI_ST_REL(&mine->release, epoch);
    for (int i = 1; i < s->n_here; i++)
        shmemi_wake_peer_sync(shmemi.peers[shmemi_team_world_pe(t, s->here[i])].ctl);
}

void shmemi_span_combine(struct shmemi_team *t, const struct shmemi_payload *p, const char *call)
{
    uint64_t epoch = shmemi_op_begin(t, call);
    struct shmemi_awaited a = { t, epoch, -1 };
    struct shmemi_waiter w = SHMEMI_WAITER_EPOCH(call, &a);

    memcpy(part(t, t->coll->mine, epoch, OWN), p->acc, p->len);
    tree_arrive(t, epoch);
    shmemi_span_settle(t, epoch, p, &w);
    shmemi_wait_done(&w);
    t->coll->settled = epoch;
}

/* ---- both kinds ---- */

void shmemi_span_arrive(struct shmemi_team *t, uint64_t epoch)
{
    if (!t->coll->span->lines) {
        tree_arrive(t, epoch);
        return;
    }
    /* From the next member on, so that not all start with the same one. */
    for (int i = t->my_pe + 1; i < t->n_pes; i++)
        shmemi_span_post(t, epoch, i, NULL, 0);
    for (int i = 0; i < t->my_pe; i++)
        shmemi_span_post(t, epoch, i, NULL, 0);
}

void shmemi_span_settle(struct shmemi_team *t, uint64_t epoch, const struct shmemi_payload *p, struct shmemi_waiter *w)
{
    const struct shmemi_span *s = t->coll->span;

    if (s->lines) {
        for (int i = 0; i < t->n_pes; i++)
            if (i != t->my_pe)
                shmemi_line_wait(t, epoch, i, w);
    } else if (s->my_here == 0) {
        lead(t, epoch, p, w);
    } else {
        await_word(&leader_block(t)->release, epoch, w);
        if (p)
            memcpy(p->acc, part(t, leader_block(t), epoch, RESULT), p->len);
    }
}

/* ---- reports ---- */

/* This node's child through which `node` is reached, or -1. */
static int child_towards(const struct shmemi_span *s, int node)
{
    while (node > s->my_node) {
        int parent = (node - 1) / s->radix;

        if (parent == s->my_node)
            return node - s->first_child;
        node = parent;
    }
    return -1;
}

bool shmemi_span_entered(const struct shmemi_team *t, uint64_t epoch, int member)
{
    const struct shmemi_span *s = t->coll->span;
    int node = s->node_of[member], child = child_towards(s, node);
    uint64_t entered;

    if (node == s->my_node)
        return SHMEMI_LD_ACQ(&shmemi_block_of(t, member)->entered) >= epoch;
    if (child >= 0 && SHMEMI_LD_ACQ(&leader_block(t)->children[child]) >= epoch)
        return true;
    shmemi_net_block_read(shmemi_team_world_pe(t, member), &t->coll->mine->entered, &entered, sizeof entered,
                          "hang report");
    return entered >= epoch;
}

int shmemi_span_culprit(const struct shmemi_team *t, uint64_t epoch)
{
    const struct shmemi_span *s = t->coll->span;
    int member = s->parent < 0 ? -1 : s->leaders[s->parent];

    for (int i = s->n_children - 1; i >= 0; i--)
        if (SHMEMI_LD_ACQ(&leader_block(t)->children[i]) < epoch)
            member = s->leaders[s->first_child + i];
    for (int i = s->n_here - 1; i >= 0; i--)
        if (SHMEMI_LD_ACQ(&shmemi_block_of(t, s->here[i])->entered) < epoch)
            member = s->here[i];
    return member < 0 ? -1 : shmemi_team_world_pe(t, member);
}
