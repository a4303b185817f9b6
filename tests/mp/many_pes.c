/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * many_pes.c - teams of more PEs than meet by lines: counters on each node, a tree of the nodes' leaders above them,
 * payloads that fit the tree and some that do not.  The short form keeps to the tree, as each pair of PEs that talk
 * is a connection to be made.
 *
 * run: n=20 launch=oshrun timeout=120
 * nodes: n=20 some=3/ibgda/0%/oshrun timeout=300 env=SHMEM_SYMMETRIC_SIZE=8M env=MARROW_BARRIER_RADIX=1
 */
#include "coll.h"

#define MOST 1500 /* longs of a PE's part: twelve thousand bytes are more than any tree carries */

static long *source, *dest;
static unsigned skew;

static long value(int pe, size_t i, long round)
{
    return pe * 1000003L + (long)i * 7 + round * 131;
}

static int world_pe(shmem_team_t t, int member)
{
    return shmem_team_translate_pe(t, member, SHMEM_TEAM_WORLD);
}

static void fill(size_t n, long round)
{
    for (size_t i = 0; i < n; i++)
        source[i] = value(tap_me, i, round);
}

static int same(size_t at, size_t n, int pe, long round)
{
    for (size_t i = 0; i < n; i++)
        if (dest[at + i] != value(pe, i, round))
            return 0;
    return 1;
}

static void broadcasts(shmem_team_t t, size_t n, long round)
{
    int root = (int)(round * 5) % shmem_team_n_pes(t);

    shmem_team_sync(t);
    fill(n, round);
    coll_skew(&skew);
    tap_check_eq(shmem_long_broadcast(t, dest, source, n, root), 0);
    tap_check(same(0, n, world_pe(t, root), round));
}

/* All give as much, or each one another part of it. */
static void collects(shmem_team_t t, size_t n, long round)
{
    int size = shmem_team_n_pes(t), me = shmem_team_my_pe(t);
    size_t at = 0;

    shmem_team_sync(t);
    fill(n, round);
    tap_check_eq(shmem_long_fcollect(t, dest, source, n), 0);
    for (int i = 0; i < size; i++)
        tap_check(same((size_t)i * n, n, world_pe(t, i), round));
    shmem_team_sync(t);
    coll_skew(&skew);
    tap_check_eq(shmem_long_collect(t, dest, source, n * (size_t)(me % 4) / 3), 0);
    for (int i = 0; i < size; i++) {
        size_t part = n * (size_t)(i % 4) / 3;

        tap_check(same(at, part, world_pe(t, i), round));
        at += part;
    }
}

static void alltoalls(shmem_team_t t, size_t n, long round)
{
    int size = shmem_team_n_pes(t), me = shmem_team_my_pe(t);

    n = n / (size_t)size + 1;
    shmem_team_sync(t);
    fill(n * (size_t)size, round);
    tap_check_eq(shmem_long_alltoall(t, dest, source, n), 0);
    for (int i = 0; i < size; i++)
        for (size_t k = 0; k < n; k++)
            tap_check_eq(dest[(size_t)i * n + k], value(world_pe(t, i), (size_t)me * n + k, round));
}

static void reductions(shmem_team_t t, size_t n, long round)
{
    int size = shmem_team_n_pes(t), me = shmem_team_my_pe(t), most = 0;
    long pes = 0, before = 0;

    for (int i = 0; i < size; i++) {
        pes += world_pe(t, i);
        most = world_pe(t, i) > most ? world_pe(t, i) : most;
        before += i < me ? value(world_pe(t, i), 3, round) : 0;
    }
    shmem_team_sync(t);
    fill(n, round);
    coll_skew(&skew);
    tap_check_eq(shmem_long_sum_reduce(t, dest, source, n), 0);
    for (size_t i = 0; i < n; i++)
        if (!tap_check_eq(dest[i], pes * 1000003L + size * value(0, i, round)))
            break;
    if (!tap_short()) {
        tap_check_eq(shmem_long_sum_exscan(t, dest, source, n), 0);
        if (n > 3)
            tap_check_eq(dest[3], before);
    }
    tap_check_eq(shmem_long_max_reduce(t, source, source, n), 0); /* in place */
    for (size_t i = 0; i < n; i++)
        if (!tap_check_eq(source[i], value(most, i, round)))
            break;
}

/* Nobody leaves before all have come: one has told all, or some, before it enters. */
static void meetings(shmem_team_t t, int rounds)
{
    static long told[2];
    int size = shmem_team_n_pes(t), me = shmem_team_my_pe(t), reach = tap_short() ? 3 : size;
    int step = tap_short() ? 6 : 1;

    told[0] = told[1] = -1;
    shmem_team_sync(t);
    for (long r = 0; r < rounds; r++) {
        int teller = (int)(r * 7 % size);

        if (me == teller)
            for (int i = 0; i < reach; i++)
                shmem_long_p(&told[r % 2], r, world_pe(t, (me + i * step) % size));
        coll_skew(&skew);
        shmem_quiet();
        shmem_team_sync(t);
        for (int i = 0; i < reach; i++)
            tap_check(me != (teller + i * step) % size || told[r % 2] == r);
    }
}

static void on_team(shmem_team_t t, const char *name, long round)
{
    static const size_t sizes[] = { 1, 60, 700, 5, MOST };

    if (t != SHMEM_TEAM_INVALID) {
        meetings(t, tap_short() ? 5 : 40);
        for (unsigned k = 0; k < (tap_short() ? 3 : sizeof sizes / sizeof sizes[0]); k++, round++) {
            broadcasts(t, sizes[k], round);
            reductions(t, sizes[k], round);
            if (tap_short())
                continue;
            collects(t, sizes[k], round);
            alltoalls(t, sizes[k], round);
        }
        shmem_team_sync(t);
    }
    shmem_barrier_all();
    tap_point("on %s", name);
}

int main(void)
{
    shmem_team_t reversed, most, rest;

    tap_init();
    skew = (unsigned)tap_me * 7919u + 1;
    source = shmem_malloc(2 * MOST * sizeof *source);
    dest = shmem_malloc((size_t)tap_n * MOST * sizeof *dest);
    if (!source || !dest)
        return 99;
    on_team(SHMEM_TEAM_WORLD, "the world", 0);
    tap_check_eq(shmem_team_split_strided(SHMEM_TEAM_WORLD, tap_n - 1, -1, tap_n, NULL, 0, &reversed), 0);
    if (!tap_short())
        on_team(reversed, "all PEs, backwards", 100);
    /* The first node lacks a member or two, then also its lowest one. */
    tap_check_eq(shmem_team_split_strided(SHMEM_TEAM_WORLD, 2, 1, tap_n - 2, NULL, 0, &most), 0);
    if (!tap_short())
        on_team(most, "all but two PEs", 200);
    tap_check_eq(shmem_team_split_strided(reversed, 1, 1, tap_n - 2, NULL, 0, &rest), 0);
    shmem_team_destroy(reversed);
    on_team(rest, "a team of a team that is gone", 300);
    shmem_team_destroy(rest);
    shmem_team_destroy(most);
    return tap_done();
}
