/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * team.c - every team call: members and numbers of strided and 2-D splits, what an invalid team gives, running
 * out of teams, and reuse of what destroyed teams leave behind.
 *
 * run: n=1,2,3,5,8 launch=oshrun timeout=120
 * run: n=2,4 launch=mpirun timeout=120
 * nodes: some=one timeout=300
 */
#include "coll.h"

static long word[4], sum[4];

static int world_pe(shmem_team_t t, int member)
{
    return shmem_team_translate_pe(t, member, SHMEM_TEAM_WORLD);
}

/* The team is start, start + stride, ...; its members can sum. */
static void check_members(shmem_team_t t, int start, int stride, int size)
{
    int inside = 0;
    long want = 0;

    for (int i = 0; i < size; i++) {
        inside |= start + i * stride == tap_me;
        want += start + i * stride + 1;
    }
    if (!inside) {
        tap_check(t == SHMEM_TEAM_INVALID);
        return;
    }
    if (!tap_check(t != SHMEM_TEAM_INVALID))
        return;
    tap_check_eq(shmem_team_n_pes(t), size);
    tap_check_eq(world_pe(t, shmem_team_my_pe(t)), tap_me);
    for (int i = 0; i < size; i++) {
        tap_check_eq(world_pe(t, i), start + i * stride);
        tap_check_eq(shmem_team_translate_pe(SHMEM_TEAM_WORLD, start + i * stride, t), i);
    }
    word[0] = tap_me + 1;
    tap_check_eq(shmem_long_sum_reduce(t, sum, word, 1), 0);
    tap_check_eq(sum[0], want);
}

/* The PEs whose memory can be loaded: on the nodes of tests they are consecutive. */
static void predefined(void)
{
    int first = tap_n, size = 0;

    for (int pe = tap_n - 1; pe >= 0; pe--)
        if (shmem_ptr(word, pe)) {
            first = pe;
            size++;
        }
    tap_check_eq(shmem_team_my_pe(SHMEM_TEAM_WORLD), shmem_my_pe());
    tap_check_eq(shmem_team_n_pes(SHMEM_TEAM_WORLD), shmem_n_pes());
    tap_check_eq(shmem_team_my_pe(SHMEM_TEAM_SHARED), tap_me - first);
    tap_check_eq(shmem_team_n_pes(SHMEM_TEAM_SHARED), size);
    check_members(SHMEM_TEAM_WORLD, 0, 1, tap_n);
    check_members(SHMEM_TEAM_SHARED, first, 1, size);
    tap_point("world and shared");
}

static void strided(void)
{
    for (int stride = -3; stride <= 3; stride++)
        for (int start = 0; start < tap_n; start += tap_short() ? 2 : 1)
            for (int size = 1; size <= tap_n; size++) {
                int last = start + stride * (size - 1), rc;
                int valid = last >= 0 && last < tap_n && (stride != 0 || size == 1);
                shmem_team_t t = SHMEM_TEAM_WORLD;

                rc = shmem_team_split_strided(SHMEM_TEAM_WORLD, start, stride, size, NULL, 0, &t);
                tap_check_eq(rc == 0, valid);
                if (valid)
                    check_members(t, start, stride, size);
                else
                    tap_check(t == SHMEM_TEAM_INVALID);
                shmem_team_destroy(t);
            }
    tap_point("every start, stride from -3 to 3, and size");
}

static void wrong_triplets(void)
{
    static const int bad[][3] = { { -1, 1, 1 }, { 0, 1, 0 }, { 0, 1, -1 }, { 0, 1, 1 << 30 }, { 0, 1 << 30, 3 },
                                  { 1 << 30, 1, 1 } };
    shmem_team_t t;

    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        t = SHMEM_TEAM_WORLD;
        tap_check(shmem_team_split_strided(SHMEM_TEAM_WORLD, bad[i][0], bad[i][1], bad[i][2], NULL, 0, &t) != 0);
        tap_check(t == SHMEM_TEAM_INVALID);
    }
    tap_point("triplets outside the parent give an error and no team");
}

static void grids(void)
{
    for (int xrange = 1; xrange <= tap_n + 2; xrange++) {
        int x = xrange < tap_n ? xrange : tap_n, mx = tap_me % x, my = tap_me / x;
        shmem_team_t row, column, again[2];

        tap_check_eq(shmem_team_split_2d(SHMEM_TEAM_WORLD, xrange, NULL, 0, &row, NULL, 0, &column), 0);
        check_members(row, my * x, 1, tap_n - my * x < x ? tap_n - my * x : x);
        check_members(column, mx, x, (tap_n - mx + x - 1) / x);
        tap_check_eq(shmem_team_my_pe(row), mx);
        tap_check_eq(shmem_team_my_pe(column), my);
        /* nested: the column in two halves */
        tap_check_eq(shmem_team_split_2d(column, 2, NULL, 0, &again[0], NULL, 0, &again[1]), 0);
        tap_check_eq(shmem_team_my_pe(again[0]), shmem_team_my_pe(column) % (shmem_team_n_pes(column) > 1 ? 2 : 1));
        for (int k = 0; k < 2; k++)
            shmem_team_destroy(again[k]);
        shmem_team_destroy(column);
        shmem_team_destroy(row);
    }
    tap_check(shmem_team_split_2d(SHMEM_TEAM_WORLD, 0, NULL, 0, &(shmem_team_t){ 0 }, NULL, 0,
                                  &(shmem_team_t){ 0 }) != 0);
    tap_point("2-D splits of every width, and a split of their columns");
}

static void invalid_team(void)
{
    shmem_team_t a = SHMEM_TEAM_WORLD, b = SHMEM_TEAM_WORLD;
    shmem_team_config_t config = { 77 };

    tap_check_eq(shmem_team_my_pe(SHMEM_TEAM_INVALID), -1);
    tap_check_eq(shmem_team_n_pes(SHMEM_TEAM_INVALID), -1);
    tap_check_eq(shmem_team_translate_pe(SHMEM_TEAM_INVALID, 0, SHMEM_TEAM_WORLD), -1);
    tap_check_eq(shmem_team_translate_pe(SHMEM_TEAM_WORLD, 0, SHMEM_TEAM_INVALID), -1);
    tap_check_eq(shmem_team_translate_pe(SHMEM_TEAM_WORLD, -1, SHMEM_TEAM_WORLD), -1);
    tap_check_eq(shmem_team_translate_pe(SHMEM_TEAM_WORLD, tap_n, SHMEM_TEAM_WORLD), -1);
    tap_check(shmem_team_get_config(SHMEM_TEAM_INVALID, SHMEM_TEAM_NUM_CONTEXTS, &config) != 0);
    tap_check_eq(config.num_contexts, 77);
    tap_check(shmem_team_split_strided(SHMEM_TEAM_INVALID, 0, 1, 1, NULL, 0, &a) != 0);
    tap_check(a == SHMEM_TEAM_INVALID);
    a = SHMEM_TEAM_WORLD;
    tap_check(shmem_team_split_2d(SHMEM_TEAM_INVALID, 1, NULL, 0, &a, NULL, 0, &b) != 0);
    tap_check(a == SHMEM_TEAM_INVALID && b == SHMEM_TEAM_INVALID);
    shmem_team_destroy(SHMEM_TEAM_INVALID);
    tap_point("SHMEM_TEAM_INVALID where the specification allows it");
}

static void configs(void)
{
    shmem_team_config_t in = { 3 }, out = { -5 };
    shmem_team_t t, none;

    tap_check_eq(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, tap_n, &in, SHMEM_TEAM_NUM_CONTEXTS, &t), 0);
    tap_check_eq(shmem_team_get_config(t, 0, NULL), 0);
    tap_check_eq(shmem_team_get_config(t, SHMEM_TEAM_NUM_CONTEXTS, &out), 0);
    tap_check_eq(out.num_contexts, 3);
    shmem_team_destroy(t);
    tap_check_eq(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, tap_n, &in, 0, &t), 0);
    tap_check_eq(shmem_team_get_config(t, SHMEM_TEAM_NUM_CONTEXTS, &out), 0);
    tap_check_eq(out.num_contexts, 0);
    shmem_team_destroy(t);
    in.num_contexts = tap_me == 0 ? -1 : 1; /* one PE's bad argument fails on all */
    tap_check(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, tap_n, &in, SHMEM_TEAM_NUM_CONTEXTS, &none) != 0);
    tap_check(none == SHMEM_TEAM_INVALID);
    tap_point("configurations");
}

/* Teams until none is left: the same number on all PEs, and all can be had again after. */
static void exhaustion(void)
{
    static shmem_team_t teams[4096];
    static int count[2], most[2];
    shmem_team_t pair[2];

    for (int k = 0; k < 2; k++) {
        int n = 0;

        while (n < 4096 && shmem_team_split_strided(SHMEM_TEAM_WORLD, tap_n - 1, -1, tap_n, NULL, 0, &teams[n]) == 0)
            n++;
        tap_check(n >= 100 && n < 4096 && teams[n] == SHMEM_TEAM_INVALID);
        tap_check(shmem_team_split_2d(SHMEM_TEAM_WORLD, 1, NULL, 0, &pair[0], NULL, 0, &pair[1]) != 0);
        tap_check(pair[0] == SHMEM_TEAM_INVALID && pair[1] == SHMEM_TEAM_INVALID);
        count[k] = n;
        shmem_int_max_reduce(SHMEM_TEAM_WORLD, &most[k], &count[k], 1);
        tap_check_eq(most[k], n);
        check_members(teams[n - 1], tap_n - 1, -1, tap_n);
        for (int i = 0; i < n; i++) /* each PE from another end */
            shmem_team_destroy(teams[tap_me % 2 ? i : n - 1 - i]);
        shmem_barrier_all();
    }
    tap_check_eq(count[0], count[1]);
    tap_point("out of teams on all PEs alike, twice");
}

/* Random teams live and die; each is used between, and members destroy in different orders. */
static void churn(void)
{
    enum { LIVE = 6 };
    const int rounds = tap_short() ? 60 : 300;
    shmem_team_t live[LIVE] = { 0 };
    int shape[LIVE][3] = { { 0 } };
    unsigned shared = 12345, own = (unsigned)tap_me + 99;

    for (int r = 0; r < rounds; r++) {
        int k = (int)(coll_random(&shared) % LIVE), size = 1 + (int)(coll_random(&shared) % (unsigned)tap_n);
        int start = (int)(coll_random(&shared) % (unsigned)(tap_n - size + 1));

        coll_skew(&own);
        if (shape[k][2])
            check_members(live[k], shape[k][0], shape[k][1], shape[k][2]);
        shmem_team_destroy(live[k]);
        shape[k][0] = r % 2 ? start : start + size - 1;
        shape[k][1] = r % 2 ? 1 : -1;
        shape[k][2] = size;
        tap_check_eq(shmem_team_split_strided(SHMEM_TEAM_WORLD, shape[k][0], shape[k][1], size, NULL, 0, &live[k]), 0);
        if (live[k] != SHMEM_TEAM_INVALID)
            shmem_team_sync(live[k]);
    }
    for (int i = 0; i < LIVE; i++)
        shmem_team_destroy(live[tap_me % 2 ? i : LIVE - 1 - i]);
    tap_point("%d random teams", rounds);
}

int main(void)
{
    tap_init();
    predefined();
    strided();
    wrong_triplets();
    grids();
    invalid_team();
    configs();
    if (!tap_short()) /* a thousand teams, twice */
        exhaustion();
    churn();
    return tap_done();
}
