/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll_move.c - broadcast, collect, fcollect, alltoall and alltoalls on teams: each byte of every PE is checked, at
 * sizes on both sides of each change of method, back to back while PEs drift apart.
 *
 * run: n=1,2,3,5 launch=oshrun,mpirun timeout=120
 * run: n=17 launch=oshrun timeout=120
 * nodes: some=one timeout=300
 */
#include "coll.h"

#include <stdint.h>

#define MOST (80 * 1024) /* bytes of one PE's part */

static const size_t sizes[] = { 0, 1, 7, 8, 48, 49, 56, 57, 513, 8192, 8193, 65536 + 3, MOST };
#define N_SIZES (sizeof sizes / sizeof sizes[0])

static unsigned char *source, *dest;
static unsigned skew;

/* Byte `i` of what world PE `from` sends to member `to` in round `round`. */
static unsigned char value(int from, int to, unsigned round, size_t i)
{
    return (unsigned char)(from * 101 + to * 37 + (int)(round * 7) + (int)(i * 13) + (int)(i >> 8));
}

static void fill(unsigned char *p, size_t len, int from, int to, unsigned round)
{
    for (size_t i = 0; i < len; i++)
        p[i] = value(from, to, round, i);
}

static int same(const unsigned char *p, size_t len, int from, int to, unsigned round)
{
    for (size_t i = 0; i < len; i++)
        if (p[i] != value(from, to, round, i)) {
            tap_diag("byte %zu of %zu from PE %d to member %d, round %u: %u", i, len, from, to, round, p[i]);
            return 0;
        }
    return 1;
}

static int world_pe(shmem_team_t t, int member)
{
    return shmem_team_translate_pe(t, member, SHMEM_TEAM_WORLD);
}

static void broadcasts(shmem_team_t t, size_t len, unsigned round)
{
    int n = shmem_team_n_pes(t);

    for (int root = 0; root < n; root += n > 5 ? 4 : 1) {
        int from = world_pe(t, root);

        shmem_team_sync(t); /* dest is read below: nobody may write it before */
        if (from == tap_me)
            fill(source, len, from, 0, round);
        coll_skew(&skew);
        tap_check_eq(shmem_broadcastmem(t, dest, source, len, root), 0);
        tap_check(same(dest, len, from, 0, round));
        if (from == tap_me) /* it may be reused at once */
            memset(source, 0xee, len);
    }
}

static void fcollects(shmem_team_t t, size_t len, unsigned round)
{
    int n = shmem_team_n_pes(t);

    shmem_team_sync(t);
    fill(source, len, tap_me, 0, round);
    coll_skew(&skew);
    tap_check_eq(shmem_fcollectmem(t, dest, source, len), 0);
    memset(source, 0xee, len);
    for (int i = 0; i < n; i++)
        tap_check(same(dest + (size_t)i * len, len, world_pe(t, i), 0, round));
}

static size_t part(size_t len, int pe)
{
    return len * (size_t)(pe % 3) / 2;
}

static void collects(shmem_team_t t, size_t len, unsigned round)
{
    int n = shmem_team_n_pes(t);
    size_t mine = part(len, tap_me), at = 0;

    shmem_team_sync(t);
    fill(source, mine, tap_me, 0, round);
    coll_skew(&skew);
    tap_check_eq(shmem_collectmem(t, dest, source, mine), 0);
    memset(source, 0xee, mine);
    for (int i = 0; i < n; i++) {
        size_t p = part(len, world_pe(t, i));

        tap_check(same(dest + at, p, world_pe(t, i), 0, round));
        at += p;
    }
}

static void alltoalls(shmem_team_t t, size_t len, unsigned round)
{
    int n = shmem_team_n_pes(t), me = shmem_team_my_pe(t);

    shmem_team_sync(t);
    for (int i = 0; i < n; i++)
        fill(source + (size_t)i * len, len, tap_me, i, round);
    coll_skew(&skew);
    tap_check_eq(shmem_alltoallmem(t, dest, source, len), 0);
    memset(source, 0xee, (size_t)n * len);
    for (int i = 0; i < n; i++)
        tap_check(same(dest + (size_t)i * len, len, world_pe(t, i), me, round));
}

/* Elements of 4 bytes, dest 3 apart and source 2 apart; what lies between must stay as it was. */
static void strided(shmem_team_t t, size_t nelems, unsigned round)
{
    int n = shmem_team_n_pes(t), me = shmem_team_my_pe(t);
    uint32_t *s = (uint32_t *)source, *d = (uint32_t *)dest;

    shmem_team_sync(t);
    for (size_t i = 0; i < nelems * (size_t)n; i++) {
        s[2 * i] = (uint32_t)(tap_me << 20 | (int)(i & 0xfffff)) ^ round;
        d[3 * i + 1] = d[3 * i + 2] = 0xabababab;
    }
    coll_skew(&skew);
    tap_check_eq(shmem_uint32_alltoalls(t, d, s, 3, 2, nelems), 0);
    for (size_t i = 0; i < nelems * (size_t)n; i++) {
        size_t from = i / nelems, k = (size_t)me * nelems + i % nelems;
        uint32_t want = (uint32_t)(world_pe(t, (int)from) << 20 | (int)(k & 0xfffff)) ^ round;

        if (!tap_check(d[3 * i] == want))
            break;
        if (i + 1 < nelems * (size_t)n && !tap_check(d[3 * i + 1] == 0xabababab && d[3 * i + 2] == 0xabababab))
            break;
    }
}

static void on_team(shmem_team_t t, unsigned round)
{
    for (unsigned k = 0; k < N_SIZES; k++) {
        if (tap_short() && (k + round / 100) % 3)
            continue; /* another third on each team */
        broadcasts(t, sizes[k], round + k);
        fcollects(t, sizes[k], round + k);
        collects(t, sizes[k], round + k);
        alltoalls(t, sizes[k], round + k);
        strided(t, sizes[k] / 16, round + k);
    }
}

/* No sync between the calls, each with memory of its own: only the library keeps them apart. */
static void back_to_back(shmem_team_t t)
{
    enum { ROUNDS = 40, WORDS = 12 };
    int n = shmem_team_n_pes(t);
    long *s = (long *)source, *d = (long *)dest;

    shmem_team_sync(t);
    for (int r = 0; r < ROUNDS; r++)
        for (int i = 0; i < WORDS; i++)
            s[r * WORDS + i] = tap_me * 1000 + r * 20 + i;
    for (int r = 0; r < ROUNDS; r++) {
        size_t len = (size_t)(1 + r % WORDS);
        long *to = d + (size_t)r * WORDS * (size_t)n, *from = s + r * WORDS;

        coll_skew(&skew);
        switch (r % 4) {
        case 0: shmem_long_fcollect(t, to, from, len); break;
        case 1: shmem_long_broadcast(t, to, from, len, r % n); break;
        case 2: shmem_long_collect(t, to, from, len); break;
        default: shmem_long_sum_reduce(t, to, from, len); break;
        }
    }
    for (int r = 0; r < ROUNDS; r++) {
        const long *got = d + (size_t)r * WORDS * (size_t)n;
        int len = 1 + r % WORDS;

        for (int i = 0; i < len; i++) {
            long base = r * 20 + i, sum = 0;

            for (int m = 0; m < n; m++) {
                sum += world_pe(t, m) * 1000 + base;
                if (r % 2 == 0)
                    tap_check_eq(got[m * len + i], world_pe(t, m) * 1000 + base);
            }
            if (r % 4 == 1)
                tap_check_eq(got[i], world_pe(t, r % n) * 1000 + base);
            if (r % 4 == 3)
                tap_check_eq(got[i], sum);
        }
    }
}

int main(void)
{
    static const char *const names[COLL_TEAMS] = { "world", "shared", "reversed", "even", "upper half",
                                                   "row", "column", "nested" };
    shmem_team_t teams[COLL_TEAMS];

    tap_init();
    skew = (unsigned)tap_me * 7919u + 1;
    source = shmem_malloc((size_t)tap_n * MOST);
    dest = shmem_malloc((size_t)tap_n * MOST);
    tap_check(source && dest);
    coll_make_teams(teams);
    for (int i = 0; i < COLL_TEAMS; i++) {
        if (teams[i] != SHMEM_TEAM_INVALID)
            on_team(teams[i], (unsigned)i * 100);
        tap_point("blocks on the team %s", names[i]);
        if (teams[i] != SHMEM_TEAM_INVALID)
            back_to_back(teams[i]);
        tap_point("back to back on the team %s", names[i]);
    }
    shmem_fcollectmem(SHMEM_TEAM_WORLD, NULL, NULL, 0);
    shmem_collectmem(SHMEM_TEAM_WORLD, NULL, NULL, 0);
    shmem_alltoallmem(SHMEM_TEAM_WORLD, NULL, NULL, 0);
    shmem_alltoallsmem(SHMEM_TEAM_WORLD, NULL, NULL, 1, 1, 0);
    shmem_broadcastmem(SHMEM_TEAM_WORLD, NULL, NULL, 0, 0);
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, NULL, NULL, 0);
    tap_point("no elements and no buffers");
    coll_free_teams(teams);
    shmem_free(dest);
    shmem_free(source);
    return tap_done();
}
