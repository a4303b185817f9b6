/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * team_split.c - making and destroying teams (specification 1.6, section 9.4).
 *
 * A split agrees on a slot that is free in every member of the parent: each puts its set
 * of free slots into its stage, and all take the lowest common ones, so success and failure are
 * the same everywhere.  Teams of one split share a slot number where they are disjoint.
 *
 * Destroying waits for nobody.  Each member adds 1 to the `departed` word (`departed_far` from another node) of all members' blocks when it has
 * left the team's last operation; a member counts the slot as free once it has heard from all.  So nothing of a
 * former team is still under way in a block when the next team of that slot gets it, in whatever order
 * members destroy their teams.  What a former team left there are old epochs: the new team starts above them.
 */
#include "check.h"
#include "coll.h"
#include "ctx.h"
#include "devmem.h"
#include "net.h"
#include "team_slots.h"

#include <pthread.h>
#include <sched.h>

#define WORDS (SHMEMI_TEAMS_MAX / 64)

enum slot_state { SLOT_FREE, SLOT_LIVE, SLOT_DRAINING };

static struct {
    pthread_mutex_t lock;
    unsigned char state[SHMEMI_TEAMS_MAX];
    uint64_t departed[SHMEMI_TEAMS_MAX]; /* own block's word when the slot was last free */
    uint64_t epoch_floor;                /* above the epochs of all teams that this PE has left */
    /* Threads that split different parents take turns; the lowest parent slot that waits goes first. */
    int turn;                /* parent slot + 1, or 0 */
    uint64_t waiting[WORDS]; /* by parent slot */
} slots = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* What a member tells the others in a split. */
struct record {
    uint64_t free[WORDS];
    uint64_t epoch_floor;
    uint32_t has_turn; /* else `free` is not said */
    uint32_t agrees;   /* its arguments are usable */
};

_Static_assert(sizeof(struct record) <= SHMEMI_STAGE_BYTES / (SHMEMI_SPAN_RADIX_MAX + 2), "a record is a payload");

struct triplet {
    int start, stride, n_pes, my_pe; /* of world PEs; my_pe is -1 outside */
};

/* ---- turns ---- */

static int lowest(const uint64_t *words)
{
    for (int i = 0; i < WORDS; i++)
        if (words[i])
            return i * 64 + __builtin_ctzll(words[i]);
    return -1;
}

static bool take_turn(int parent_slot)
{
    bool got;

    pthread_mutex_lock(&slots.lock);
    slots.waiting[parent_slot / 64] |= 1ull << (parent_slot % 64);
    got = slots.turn == 0 && lowest(slots.waiting) == parent_slot;
    if (got)
        slots.turn = parent_slot + 1;
    pthread_mutex_unlock(&slots.lock);
    return got;
}

static void give_turn(int parent_slot, bool done)
{
    pthread_mutex_lock(&slots.lock);
    if (slots.turn == parent_slot + 1)
        slots.turn = 0;
    if (done)
        slots.waiting[parent_slot / 64] &= ~(1ull << (parent_slot % 64));
    pthread_mutex_unlock(&slots.lock);
}

/* ---- free slots ---- */

static struct shmemi_block *own_block(int slot)
{
    return shmemi_team_block(shmemi.my_pe, slot);
}

/* Free slots that all members of their last team have left. */
static void list_free(uint64_t *free_out, uint64_t *floor_out)
{
    memset(free_out, 0, WORDS * sizeof *free_out);
    pthread_mutex_lock(&slots.lock);
    for (int s = SHMEMI_TEAMS_PREDEFINED; s < SHMEMI_TEAMS_MAX; s++) {
        if (slots.state[s] == SLOT_DRAINING) {
            uint64_t all = slots.departed[s] + (uint64_t)shmemi_team_at(s)->n_pes;

            /* Acquire: pairs with depart. */
            if (SHMEMI_LD_ACQ(&own_block(s)->departed) + SHMEMI_LD_ACQ(&own_block(s)->departed_far) == all) {
                slots.departed[s] = all;
                slots.state[s] = SLOT_FREE;
            }
        }
        if (slots.state[s] == SLOT_FREE)
            free_out[s / 64] |= 1ull << (s % 64);
    }
    *floor_out = slots.epoch_floor;
    pthread_mutex_unlock(&slots.lock);
}

static void mark(int slot, enum slot_state state)
{
    pthread_mutex_lock(&slots.lock);
    slots.state[slot] = (unsigned char)state;
    pthread_mutex_unlock(&slots.lock);
}

void shmemi_slot_reset(struct shmemi_team *t)
{
    SHMEMI_ST_REL(&own_block(t->slot)->departed, (uint64_t)0);
    SHMEMI_ST_REL(&own_block(t->slot)->departed_far, (uint64_t)0);
    slots.departed[t->slot] = 0;
    slots.state[t->slot] = SLOT_FREE;
    if (slots.epoch_floor < t->coll->epoch)
        slots.epoch_floor = t->coll->epoch;
}

/* ---- agreement ---- */

static void add_record(struct record *r, const struct record *o)
{
    for (int w = 0; w < WORDS; w++)
        r->free[w] &= o->free[w];
    if (r->epoch_floor < o->epoch_floor)
        r->epoch_floor = o->epoch_floor;
    r->has_turn &= o->has_turn;
    r->agrees &= o->agrees;
}

static void add_payload(const struct shmemi_payload *p, const void *in)
{
    add_record(p->acc, in);
}

/* One exchange of records; the sum of all in `r`. */
static void combine(struct shmemi_team *parent, struct record *r, const char *call)
{
    struct shmemi_payload p = { r, sizeof *r, add_payload, NULL };
    struct shmemi_exchange x;

    if (parent->coll->span && !parent->coll->span->lines) {
        shmemi_span_combine(parent, &p, call);
        return;
    }
    shmemi_exchange_begin(&x, parent, r, sizeof *r, call);
    for (int i = 0; i < parent->n_pes; i++)
        add_record(r, shmemi_exchange_from(&x, i));
    shmemi_exchange_end(&x, true);
}

static bool pick(uint64_t *words, int n, int *slots_out)
{
    for (int i = 0; i < n; i++) {
        slots_out[i] = lowest(words);
        if (slots_out[i] < 0)
            return false;
        words[slots_out[i] / 64] &= ~(1ull << (slots_out[i] % 64));
    }
    return true;
}

/*
 * Finds `n` slots for teams of the parent's members, or false on all alike.  A PE that is in no new team
 * (`member` false) has no say in which.
 */
static bool agree(struct shmemi_team *parent, bool member, bool agrees, int n, int *slots_out, uint64_t *epoch_out,
                  const char *call)
{
    struct record r;
    bool found;

    /* All have come: nobody holds its turn while a member is still on its way through another split. */
    shmemi_team_sync(parent, call);
    for (;;) {
        r = (struct record){ .has_turn = take_turn(parent->slot), .agrees = agrees };
        list_free(r.free, &r.epoch_floor);
        if (!member)
            memset(r.free, 0xff, sizeof r.free);
        combine(parent, &r, call);
        if (r.has_turn)
            break;
        give_turn(parent->slot, false);
        sched_yield();
    }
    found = r.agrees && pick(r.free, n, slots_out);
    for (int i = 0; found && member && i < n; i++)
        mark(slots_out[i], SLOT_LIVE);
    give_turn(parent->slot, true);
    *epoch_out = r.epoch_floor;
    return found;
}

static bool config_usable(const shmem_team_config_t *config, long mask)
{
    if (mask & ~SHMEM_TEAM_NUM_CONTEXTS)
        return false;
    return !(mask & SHMEM_TEAM_NUM_CONTEXTS) || (config && config->num_contexts >= 0);
}

static shmem_team_t make(int slot, const struct triplet *tri, uint64_t epoch, const shmem_team_config_t *config,
                         long mask, const char *call)
{
    struct shmemi_team *t = shmemi_team_at(slot);

    if (!t)
        shmemi_fatal(call, "no memory for a team of %d PEs", tri->n_pes);
    t->config.num_contexts = mask & SHMEM_TEAM_NUM_CONTEXTS ? config->num_contexts : 0;
    t->config_mask = mask;
    if (shmemi_team_place(t, tri->start, tri->stride, tri->n_pes, tri->my_pe, epoch))
        shmemi_fatal(call, "no memory for a team of %d PEs", tri->n_pes);
    shmemi_devmem_team_up(t, call);
    return shmemi_team_handle(t);
}

/* ---- strided ---- */

/* The triplet in world PEs; false when it leaves the parent, wraps, or repeats a PE. */
static bool strided_triplet(const struct shmemi_team *parent, int start, int stride, int size, struct triplet *out)
{
    long long last = start + (long long)stride * (size - 1);
    struct shmemi_team probe;

    if (size < 1 || start < 0 || start >= parent->n_pes || last < 0 || last >= parent->n_pes ||
        (stride == 0 && size != 1))
        return false;
    out->start = shmemi_team_world_pe(parent, start);
    out->stride = size == 1 ? 1 : stride * parent->stride;
    out->n_pes = size;
    probe = (struct shmemi_team){ .start = out->start, .stride = out->stride, .n_pes = size };
    out->my_pe = shmemi_team_index(&probe, shmemi.my_pe);
    return true;
}

SHMEMI_API(int, shmem_team_split_strided,
           (shmem_team_t parent_team, int start, int stride, int size, const shmem_team_config_t *config,
            long config_mask, shmem_team_t *new_team))
{
    static const char call[] = "shmem_team_split_strided";
    struct shmemi_team *parent = shmemi_team_get_or_invalid(parent_team, call);
    struct triplet tri;
    uint64_t epoch;
    int slot;

    shmemi_check_result(new_team, "new_team", call);
    *new_team = SHMEM_TEAM_INVALID;
    if (!parent || !strided_triplet(parent, start, stride, size, &tri))
        return -1;
    if (!agree(parent, tri.my_pe >= 0, tri.my_pe < 0 || config_usable(config, config_mask), 1, &slot, &epoch, call))
        return -1;
    if (tri.my_pe >= 0)
        *new_team = make(slot, &tri, epoch, config, config_mask, call);
    return 0;
}

/* ---- two dimensions ---- */

static void grid_triplets(const struct shmemi_team *parent, int xrange, struct triplet *row, struct triplet *column)
{
    int x = parent->my_pe % xrange, y = parent->my_pe / xrange, n = parent->n_pes;

    row->start = shmemi_team_world_pe(parent, y * xrange);
    row->stride = parent->stride;
    row->n_pes = n - y * xrange < xrange ? n - y * xrange : xrange;
    row->my_pe = x;
    column->start = shmemi_team_world_pe(parent, x);
    column->n_pes = (n - x + xrange - 1) / xrange;
    column->stride = column->n_pes > 1 ? xrange * parent->stride : 1;
    column->my_pe = y;
}

SHMEMI_API(int, shmem_team_split_2d,
           (shmem_team_t parent_team, int xrange, const shmem_team_config_t *xaxis_config, long xaxis_mask,
            shmem_team_t *xaxis_team, const shmem_team_config_t *yaxis_config, long yaxis_mask,
            shmem_team_t *yaxis_team))
{
    static const char call[] = "shmem_team_split_2d";
    struct shmemi_team *parent = shmemi_team_get_or_invalid(parent_team, call);
    struct triplet row, column;
    uint64_t epoch;
    int slot[2];

    shmemi_check_result(xaxis_team, "xaxis_team", call);
    shmemi_check_result(yaxis_team, "yaxis_team", call);
    *xaxis_team = *yaxis_team = SHMEM_TEAM_INVALID;
    if (!parent || xrange < 1)
        return -1;
    if (xrange > parent->n_pes)
        xrange = parent->n_pes;
    grid_triplets(parent, xrange, &row, &column);
    if (!agree(parent, true, config_usable(xaxis_config, xaxis_mask) && config_usable(yaxis_config, yaxis_mask), 2,
               slot, &epoch, call))
        return -1;
    *xaxis_team = make(slot[0], &row, epoch, xaxis_config, xaxis_mask, call);
    *yaxis_team = make(slot[1], &column, epoch, yaxis_config, yaxis_mask, call);
    return 0;
}

/* ---- destroy ---- */

static void depart(const struct shmemi_team *t, const char *call)
{
    pthread_mutex_lock(&slots.lock);
    if (slots.epoch_floor < t->coll->epoch)
        slots.epoch_floor = t->coll->epoch;
    slots.state[t->slot] = SLOT_DRAINING;
    pthread_mutex_unlock(&slots.lock);
    /*
     * Release: all that this PE read and wrote in the members' blocks is done; pairs with list_free.  The own block comes
     * last: after that another thread may make the slot's next team, in this same object.
     */
    for (int i = 0; i < t->n_pes; i++) {
        struct shmemi_block *theirs = shmemi_block_of(t, i);

        if (!theirs)
            shmemi_net_block_add(shmemi_team_world_pe(t, i), &t->coll->mine->departed_far, 1, call);
        else if (i != t->my_pe)
            SHMEMI_ADD_ACQREL(&theirs->departed, (uint64_t)1);
    }
    SHMEMI_ADD_ACQREL(&t->coll->mine->departed, (uint64_t)1);
}

SHMEMI_API(void, shmem_team_destroy, (shmem_team_t team))
{
    static const char call[] = "shmem_team_destroy";
    struct shmemi_team *t = shmemi_team_get_or_invalid(team, call);

    if (!t)
        return;
    if (t->slot < SHMEMI_TEAMS_PREDEFINED)
        shmemi_fatal(call, "%s is predefined and cannot be destroyed",
                     team == SHMEM_TEAM_WORLD ? "SHMEM_TEAM_WORLD" : "SHMEM_TEAM_SHARED");
    shmemi_ctxs_drop_team(team);
    shmemi_devmem_team_gone(t->slot);
    shmemi_team_retire(t);
    depart(t, call);
}
