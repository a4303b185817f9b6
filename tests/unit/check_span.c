/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check_span.c - teams on several nodes (src/core/span.c): the tree that each PE plants, and the meetings themselves.
 *
 * One process plays all PEs of a team: span.c is linked alone, with this file's memory, NIC and waiting behind it.  A
 * PE that would wait leaves by longjmp and is asked again later; who goes on, and when a NIC's write arrives, is
 * drawn by lot.
 */
#include "env.h"
#include "net.h"
#include "span.h"

#include <check.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#define MOST_PES 300
#define WORLD_MOST (2 * MOST_PES + 8) /* teams need not start at PE 0, nor be dense */
#define MEMBERS 64                    /* of the teams of which all shapes are tried */
#define CHILDREN 2                    /* parts of a stage before those of the children, as in span.c */

struct shmemi_state shmemi;
struct shmemi_env shmemi_env;

static int n_pes, n_nodes;
static int pe_of[MOST_PES];  /* by member */
static int node_at[MOST_PES]; /* by member, numbered as the job's nodes */
static int job_nodes[WORLD_MOST];
static char *memory; /* slot 0 of each member's blocks */
static struct shmemi_pe_ctl ctls[MOST_PES];
static struct shmemi_peer *near; /* by node: what its PEs see of the world */
static struct shmemi_team teams[MOST_PES];
static struct shmemi_team_coll colls[MOST_PES];
static int now; /* the member that runs */
static jmp_buf later;
static unsigned lot;

static unsigned draw(unsigned n)
{
    lot ^= lot << 13;
    lot ^= lot >> 17;
    lot ^= lot << 5;
    return lot % n;
}

/* ---- what span.c stands on ---- */

void shmemi_wait_slow(struct shmemi_waiter *w)
{
    (void)w;
    longjmp(later, 1);
}

void shmemi_wait_withdraw(struct shmemi_waiter *w)
{
    (void)w;
}

void shmemi_wake(struct shmemi_pe_ctl *ctl)
{
    (void)ctl;
}

void shmemi_settle(struct shmemi_team *t, uint64_t epoch, const char *call)
{
    (void)t, (void)epoch, (void)call;
    abort(); /* every operation here settles before the next one */
}

void shmemi_awaited_describe(const void *arg, char *buf, size_t len)
{
    (void)arg;
    snprintf(buf, len, "nothing");
}

int shmemi_awaited_culprit(const void *arg)
{
    (void)arg;
    return -1;
}

void shmemi_fatal(const char *call, const char *fmt, ...)
{
    fprintf(stderr, "%s: %s\n", call, fmt);
    abort();
}

/* A write on its way: to one peer they arrive in the order in which they were posted. */
struct flight {
    struct flight *next;
    int from, to;
    size_t at, len, epoch_at;
    uint64_t epoch;
    bool has_epoch;
    unsigned char data[];
};
static struct flight *flights, **last_flight = &flights;
static unsigned n_flights;
static uint64_t told[MOST_PES]; /* by member: the last epoch that it has told its parent */

static int member_of(int pe)
{
    for (int i = 0; i < n_pes; i++)
        if (pe_of[i] == pe)
            return i;
    abort();
}

static size_t offset_of(const void *mine)
{
    size_t at = (size_t)((const char *)mine - (memory + (size_t)now * SHMEMI_TEAM_BLOCK_BYTES));

    if (at >= SHMEMI_TEAM_BLOCK_BYTES)
        abort();
    return at;
}

void shmemi_net_block_write(int pe, const void *mine, const void *src, size_t len, const uint64_t *epoch_at,
                            uint64_t epoch, const char *call)
{
    const uint64_t *children = colls[now].mine->children;
    bool upwards = epoch_at >= children && epoch_at < children + SHMEMI_SPAN_RADIX_MAX;
    struct flight *f;

    (void)call;
    if (upwards && told[now] == epoch)
        return; /* this PE has left in a wait since, and comes by again */
    if (upwards)
        told[now] = epoch;
    f = malloc(sizeof *f + len);
    if (!f)
        abort();
    *f = (struct flight){ .from = now, .to = member_of(pe), .at = offset_of(mine), .len = len,
                          .epoch_at = epoch_at ? offset_of(epoch_at) : 0, .epoch = epoch, .has_epoch = epoch_at };
    if (len)
        memcpy(f->data, src, len);
    *last_flight = f;
    last_flight = &f->next;
    n_flights++;
}

void shmemi_net_block_read(int pe, const void *mine, void *dst, size_t len, const char *call)
{
    (void)call;
    memcpy(dst, memory + (size_t)member_of(pe) * SHMEMI_TEAM_BLOCK_BYTES + offset_of(mine), len);
}

/* The oldest write between the two PEs of the one that was drawn. */
static void deliver(unsigned which)
{
    struct flight *drawn = flights, **at = &flights, *f;
    char *there;

    while (which--)
        drawn = drawn->next;
    while ((*at)->from != drawn->from || (*at)->to != drawn->to)
        at = &(*at)->next;
    f = *at;
    *at = f->next;
    if (!*at)
        last_flight = at;
    there = memory + (size_t)f->to * SHMEMI_TEAM_BLOCK_BYTES;
    memcpy(there + f->at, f->data, f->len);
    if (f->has_epoch)
        memcpy(there + f->epoch_at, &f->epoch, sizeof f->epoch);
    free(f);
    n_flights--;
}

/* ---- teams ---- */

/* Member i is PE start + i * stride of the job, on node place(i). */
static void make_team(int n, int nodes, int start, int stride, int (*place)(int i))
{
    n_pes = n;
    n_nodes = nodes;
    if (memory)
        munmap(memory, MOST_PES * (size_t)SHMEMI_TEAM_BLOCK_BYTES);
    memory = mmap(NULL, MOST_PES * (size_t)SHMEMI_TEAM_BLOCK_BYTES, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    free(near);
    near = calloc((size_t)nodes * WORLD_MOST, sizeof *near);
    if (memory == MAP_FAILED || !near)
        abort();
    for (int i = 0; i < n; i++) {
        struct shmemi_peer *peer;

        pe_of[i] = start + i * stride;
        node_at[i] = job_nodes[pe_of[i]] = place(i);
        peer = &near[(size_t)node_at[i] * WORLD_MOST + (size_t)pe_of[i]];
        peer->ctl = &ctls[i];
        peer->team_blocks = memory + (size_t)i * SHMEMI_TEAM_BLOCK_BYTES;
    }
}

static void become(int member)
{
    now = member;
    shmemi.my_pe = pe_of[member];
    shmemi.peers = near + (size_t)node_at[member] * WORLD_MOST;
}

/* What sync.c does when a team is set up, for each PE; false where the team needs no NIC. */
static bool set_up(int radix)
{
    shmemi = (struct shmemi_state){ .n_pes = WORLD_MOST, .n_nodes = n_nodes, .node_of = job_nodes };
    shmemi_env.barrier_radix = radix;
    for (int i = 0; i < n_pes; i++) {
        become(i);
        shmemi.n_local = 0;
        for (int k = 0; k < n_pes; k++)
            shmemi.n_local += node_at[k] == node_at[i];
        colls[i].mine = shmemi_team_block(pe_of[i], 0);
        colls[i].epoch = colls[i].settled = told[i] = 0;
        teams[i] = (struct shmemi_team){ .my_pe = i, .n_pes = n_pes, .start = pe_of[0],
                                         .stride = n_pes > 1 ? pe_of[1] - pe_of[0] : 1, .coll = &colls[i] };
        if (shmemi_span_setup(&teams[i]))
            abort(); /* out of memory; a ck_assert of each PE would cost more than all the rest */
    }
    return colls[0].span;
}

static int the_nodes; /* of the placements below */

static int place_blocks(int i)
{
    return (int)((long)i * the_nodes / n_pes);
}

static int place_block_of_four(int i)
{
    return i / 4;
}

static int place_cyclic(int i)
{
    return i % the_nodes;
}

/* One PE a node, and the rest on the first, or on the last. */
static int place_first(int i)
{
    return i < n_pes - the_nodes ? 0 : i - (n_pes - the_nodes);
}

static int place_last(int i)
{
    return i < the_nodes ? i : the_nodes - 1;
}

/* Any node, in no order, which leaves some without a member. */
static int place_any(int i)
{
    return (int)((unsigned)i * 2654435761u >> 7) % the_nodes;
}

static int (*const places[])(int) = { place_blocks, place_cyclic, place_first, place_last, place_any };
#define N_PLACES (int)(sizeof places / sizeof places[0])

static void make_shape(int n, int nodes, int place)
{
    /* Counted upwards, downwards, with gaps, from the first PE on or a later one. */
    int stride = (n + place) % 3 == 2 ? -1 : 1 + (n + place) % 3, start = stride < 0 ? n + 3 : nodes % 5;

    the_nodes = nodes;
    make_team(n, nodes, start, stride, places[place]);
}

/* ---- the tree ---- */

static const struct shmemi_span *span_of(int member)
{
    return colls[member].span;
}

/* Node k of the team, as its leader, or -1. */
static int leader(int k)
{
    return span_of(0)->leaders[k];
}

/* What is wrong with a PE's own view of the nodes, NULL when nothing is. */
static const char *bad_view(int me)
{
    const struct shmemi_span *s = span_of(me), *first = span_of(0);
    int here = 0;

    if (s->n_nodes != first->n_nodes || s->radix != first->radix || s->payload_max != first->payload_max ||
        s->lines != first->lines)
        return "PEs differ about the tree";
    for (int k = 0; k < s->n_nodes; k++)
        if (s->leaders[k] != leader(k) || (k && s->leaders[k] <= s->leaders[k - 1]) || s->node_of[leader(k)] != k)
            return "leaders are not the lowest members, in order";
    for (int i = 0; i < n_pes; i++) {
        if ((node_at[i] == node_at[me]) != (s->node_of[i] == s->my_node) || s->leaders[s->node_of[i]] > i)
            return "members are on other nodes than they are";
        if (s->node_of[i] != s->my_node)
            continue;
        if (here >= s->n_here || s->here[here] != i || (i == me && s->my_here != here))
            return "the list of the node's members is wrong";
        here++;
    }
    if (here != s->n_here || s->node_of[me] != s->my_node || s->here[0] != leader(s->my_node))
        return "the node's members are not all there";
    return NULL;
}

static const char *bad_edges(int k)
{
    const struct shmemi_span *s = span_of(leader(k));

    if (s->radix < 1 || s->radix > SHMEMI_SPAN_RADIX_MAX || s->n_children < 0 || s->n_children > s->radix)
        return "too many children";
    if (s->payload_max == 0 || s->payload_max % SHMEMI_CACHELINE ||
        s->payload_max * (size_t)(CHILDREN + s->radix) > SHMEMI_STAGE_BYTES)
        return "parts do not fit the stage";
    if ((s->parent < 0) != (k == 0) || s->parent >= k)
        return "no parent, or a later node";
    if (k) {
        const struct shmemi_span *p = span_of(leader(s->parent));

        if (s->child_place < 0 || s->child_place >= p->n_children || p->first_child + s->child_place != k)
            return "the parent does not know the child";
    }
    for (int i = 0; i < s->n_children; i++) {
        int child = s->first_child + i;

        if (child <= k || child >= s->n_nodes || span_of(leader(child))->parent != k ||
            span_of(leader(child))->child_place != i)
            return "the child does not know the parent";
    }
    return NULL;
}

/* Reached from the root, each exactly once. */
static const char *bad_reach(void)
{
    int seen[MOST_PES] = { 0 }, queue[MOST_PES], n = 0, reached = 1;

    for (queue[0] = 0; n < reached; n++) {
        const struct shmemi_span *s = span_of(leader(queue[n]));

        if (seen[queue[n]]++)
            return "a node is reached twice";
        for (int i = 0; i < s->n_children; i++) {
            if (reached == span_of(0)->n_nodes)
                return "more children than nodes";
            queue[reached++] = s->first_child + i;
        }
    }
    return reached == span_of(0)->n_nodes ? NULL : "a node is not reached";
}

static const char *bad_tree(void)
{
    const char *bad = NULL;

    for (int i = 0; i < n_pes && !bad; i++)
        bad = bad_view(i);
    for (int k = 0; k < span_of(0)->n_nodes && !bad; k++)
        bad = bad_edges(k);
    return bad ? bad : bad_reach();
}

static const int radices[] = { 0, 1, 2, 3, 5, 16, 63, 64, 65, 1000 };
#define N_RADICES (int)(sizeof radices / sizeof radices[0])

START_TEST(every_member_is_in_the_tree_once)
{
    int n = _i;

    for (int nodes = 1; nodes <= n; nodes += 1 + n / 16)
        for (int place = 0; place < N_PLACES; place++) {
            int radix = radices[(n + nodes + place) % N_RADICES];
            const char *bad = NULL;

            make_shape(n, nodes, place);
            if (set_up(radix))
                bad = bad_tree();
            else
                for (int i = 0; i < n; i++)
                    bad = node_at[i] == node_at[0] ? bad : "several nodes, and no span";
            ck_assert_msg(!bad, "%s: %d PEs, %d nodes, placement %d, radix %d", bad, n, nodes, place, radix);
        }
}
END_TEST

START_TEST(every_radix_gives_a_tree)
{
    for (int nodes = 2; nodes <= MEMBERS; nodes += 1 + nodes / 8)
        for (int radix = 0; radix <= SHMEMI_SPAN_RADIX_MAX + 1; radix++) {
            const char *bad;

            if (radix == 0)
                make_shape(MEMBERS, nodes, nodes % N_PLACES);
            set_up(radix);
            bad = bad_tree();
            ck_assert_msg(!bad, "%s: %d nodes, radix %d", bad, nodes, radix);
            if (radix && radix <= SHMEMI_SPAN_RADIX_MAX)
                ck_assert_int_eq(span_of(0)->radix, radix);
        }
}
END_TEST

/* Left to itself the tree has no more levels than one of radix 16 has, and no larger radix than that needs. */
START_TEST(radix_is_the_smallest_of_the_depth)
{
    static const int want[][2] = { { 2, 1 }, { 3, 2 }, { 17, 16 }, { 18, 4 }, { 21, 4 }, { 22, 5 }, { 200, 14 },
                                   { 273, 16 }, { 274, 7 } };

    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        make_shape(MOST_PES, want[i][0], 1);
        set_up(0);
        ck_assert_int_eq(span_of(0)->radix, want[i][1]);
    }
}
END_TEST

/* ---- meeting ---- */

/* Each member adds its own number to a place of the table: too few or too many of anybody show. */
static uint64_t accs[MOST_PES][MEMBERS];

static int places_of(const struct shmemi_span *s)
{
    int most = (int)(s->payload_max / sizeof(uint64_t));

    return most < MEMBERS ? most : MEMBERS;
}

static uint64_t word_of(int member, uint64_t epoch)
{
    return epoch * 65536 + (uint64_t)member + 1;
}

static void add_table(const struct shmemi_payload *p, const void *in)
{
    uint64_t *acc = p->acc;
    const uint64_t *more = in;

    for (size_t i = 0; i < p->len / sizeof *acc; i++)
        acc[i] += more[i];
}

static void fill_own(int member, uint64_t epoch)
{
    memset(accs[member], 0, sizeof accs[member]);
    accs[member][member % places_of(span_of(member))] = word_of(member, epoch);
}

static bool table_is_whole(int member, uint64_t epoch)
{
    int n = places_of(span_of(member));

    for (int k = 0; k < n; k++) {
        uint64_t want = 0;

        for (int i = k; i < n_pes; i += n)
            want += word_of(i, epoch);
        if (accs[member][k] != want)
            return false;
    }
    return true;
}

static uint64_t entered[MOST_PES];

static void enter(int member)
{
    struct shmemi_team *t = &teams[member];
    uint64_t epoch = shmemi_op_begin(t, "test");

    entered[member] = epoch;
    fill_own(member, epoch);
    memcpy(t->coll->mine->stage[epoch & 1], accs[member], (size_t)places_of(t->coll->span) * sizeof(uint64_t));
    shmemi_span_arrive(t, epoch);
}

/* Lines bring no payload, and trees not with each operation. */
static bool carries(const struct shmemi_team *t, uint64_t epoch)
{
    return !t->coll->span->lines && epoch % 3 != 0;
}

/* True once this member has left; `bad` when it should not have, or with other data than all members'. */
static bool try_to_leave(int member, const char **bad)
{
    struct shmemi_team *t = &teams[member];
    uint64_t epoch = t->coll->epoch;
    struct shmemi_payload p = { accs[member], (size_t)places_of(t->coll->span) * sizeof(uint64_t), add_table, NULL };
    struct shmemi_waiter w = { .call = "test" };

    if (setjmp(later))
        return false;
    fill_own(member, epoch); /* a former try may have added some */
    shmemi_span_settle(t, epoch, carries(t, epoch) ? &p : NULL, &w);
    t->coll->settled = epoch;
    for (int i = 0; i < n_pes; i++)
        if (entered[i] < epoch)
            *bad = "left before all had come";
    if (carries(t, epoch) && !table_is_whole(member, epoch))
        *bad = "left with other data";
    return true;
}

/* All members meet `rounds` times.  NULL, or what went wrong. */
static const char *meet(uint64_t rounds)
{
    const char *bad = NULL;
    int left = n_pes;
    /* A chain of all nodes, there and back, at one lot in all each. */
    long lots = (long)rounds * (4 * span_of(0)->n_nodes + 64) * (n_pes + 8) * 8;

    for (int i = 0; i < n_pes; i++)
        entered[i] = 0;
    while (left && !bad) {
        int i = (int)draw((unsigned)n_pes);

        if (lots-- == 0)
            return "nobody gets on";
        if (n_flights && draw(2))
            deliver(draw(n_flights));
        become(i);
        if (colls[i].settled == colls[i].epoch) {
            if (colls[i].epoch < rounds)
                enter(i);
        } else if (try_to_leave(i, &bad)) {
            left -= colls[i].settled == rounds;
        }
    }
    while (n_flights)
        deliver(0);
    return bad;
}

static void meet_shape(int n, int nodes, int place, int radix)
{
    const char *bad;

    make_shape(n, nodes, place);
    if (!set_up(radix))
        return;
    bad = meet(5);
    ck_assert_msg(!bad, "%s: %d PEs, %d nodes, placement %d, radix %d", bad, n, nodes, place, radix);
}

START_TEST(members_meet)
{
    static const int sizes[] = { 2, 3, 4, 5, 6, 7, 8, 12, 16, 17, 20, 24, 33, 40 };
    int n = sizes[_i];

    lot = 1 + (unsigned)_i;
    for (int nodes = 2; nodes <= n; nodes += nodes < 8 ? 1 : 5)
        for (int place = 0; place < N_PLACES; place++) {
            meet_shape(n, nodes, place, 0);
            meet_shape(n, nodes, place, radices[1 + (n + nodes + place) % (N_RADICES - 1)]);
        }
}
END_TEST

START_TEST(seven_pes_meet_in_a_chain)
{
    for (unsigned seed = 1; seed <= 40; seed++)
        for (int nodes = 2; nodes <= 7; nodes++) {
            lot = seed;
            meet_shape(7, nodes, (int)(seed % N_PLACES), 1);
        }
}
END_TEST

START_TEST(crowds_meet)
{
    lot = 77;
    for (int place = 0; place < N_PLACES; place++) {
        meet_shape(MEMBERS, 9, place, 2);
        meet_shape(MEMBERS, MEMBERS, place, 1);
        meet_shape(MOST_PES, 3, place, 0); /* counters of two levels on a node */
    }
}
END_TEST

/* The last one's arrival, and no other's, is what the leader hears. */
START_TEST(node_is_gathered_by_its_last_member)
{
    lot = 5;
    for (int n = 2; n <= MOST_PES; n += n < 40 ? 1 : 37) {
        int order[MOST_PES];

        make_shape(n, 2, n % N_PLACES);
        if (!set_up(3))
            continue;
        for (int i = 0; i < n; i++) {
            int k = (int)draw((unsigned)i + 1);

            order[i] = order[k];
            order[k] = i;
        }
        for (int i = 0; i < n; i++) {
            const struct shmemi_span *s = span_of(order[i]);
            int come = 0;

            become(order[i]);
            enter(order[i]);
            for (int k = 0; k < s->n_here; k++)
                come += colls[s->here[k]].epoch == 1;
            ck_assert_int_eq(colls[s->here[0]].mine->gathered == 1, come == s->n_here);
        }
    }
}
END_TEST

/* ---- the report of a hang ---- */

/* Five nodes of four; `absent` does not come.  want: whom the PEs of each node wait for. */
static void check_report(int radix, int absent, const int want[5])
{
    const char *bad = NULL;

    the_nodes = 5;
    make_team(20, 5, 0, 1, place_block_of_four);
    ck_assert(set_up(radix));
    for (int i = 0; i < n_pes; i++) {
        become(i);
        if (i != absent)
            enter(i);
    }
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < n_pes; i++) {
            become(i);
            ck_assert(i == absent || !try_to_leave(i, &bad));
        }
        while (n_flights)
            deliver(0);
    }
    for (int me = 0; me < n_pes; me++) {
        become(me);
        for (int i = 0; i < n_pes; i++)
            ck_assert_int_eq(shmemi_span_entered(&teams[me], 1, i), i != absent);
        ck_assert_int_eq(shmemi_span_culprit(&teams[me], 1), want[me / 4]);
    }
}

/* A node waits for its own, then for its children, then for its parent. */
START_TEST(report_knows_who_is_missing)
{
    check_report(1, 13, (const int[]){ 4, 8, 12, 13, 12 });
    check_report(2, 17, (const int[]){ 4, 16, 0, 4, 17 });
}
END_TEST

int main(void)
{
    Suite *s = suite_create("span");
    TCase *t = tcase_create("teams on several nodes");
    SRunner *r = srunner_create(s);
    int failed;

    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, every_member_is_in_the_tree_once, 1, MEMBERS + 1);
    tcase_add_test(t, every_radix_gives_a_tree);
    tcase_add_test(t, radix_is_the_smallest_of_the_depth);
    tcase_add_loop_test(t, members_meet, 0, 14);
    tcase_add_test(t, seven_pes_meet_in_a_chain);
    tcase_add_test(t, crowds_meet);
    tcase_add_test(t, node_is_gathered_by_its_last_member);
    tcase_add_test(t, report_knows_who_is_missing);
    suite_add_tcase(s, t);
    srunner_run_all(r, CK_NORMAL);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
