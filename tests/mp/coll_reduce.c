/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll_reduce.c - reductions and scans of every type and operation, in place and apart, against a loop in this file.
 *
 * run: n=1,2,3 launch=oshrun,mpirun timeout=120
 * run: n=7,18 launch=oshrun timeout=120
 * nodes: some=one timeout=300
 */
#include "coll.h"

#include <complex.h>
#include <stdbool.h>
#include <stdint.h>
#include "types_x.h"

#define MOST (72 * 1024) /* bytes of an array */

static const size_t lengths[] = { 0, 1, 3, 7, 64, 1025, 4500 }; /* elements; the last ones are above 8 KiB */
#define N_LENGTHS (sizeof lengths / sizeof lengths[0])

static char *source, *dest;
static unsigned skew;
static bool few;                 /* each type and operation either in place or apart */
static unsigned first, step = 1; /* of the lengths: over NICs every third or sixth, in turn */
static shmem_team_t team;

static int pes[TAP_MAX_PES]; /* world PEs of the team's members */

static void use_team(shmem_team_t t)
{
    team = t;
    for (int i = 0; i < shmem_team_n_pes(t); i++)
        pes[i] = shmem_team_translate_pe(t, i, SHMEM_TEAM_WORLD);
}

/* Small values, exact in every type; products of 18 of them stay exact too. */
static long element(int pe, size_t i)
{
    return (long)((unsigned)pe * 7u + (unsigned)i * 5u + (unsigned)(i / 64)) % 3 + (pe == 0 && i % 2);
}

#define AND(a, b) ((a) & (b))
#define OR(a, b) ((a) | (b))
#define XOR(a, b) ((a) ^ (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define SUM(a, b) ((a) + (b))
#define PROD(a, b) ((a) * (b))

/* A value of the type whose top bit or sign matters where it has one: PE 1 sends -1 in some places. */
#define VALUE(T, pe, i) ((T)((pe) == 1 && (i) % 5 == 4 ? (T)-1 : (T)element((pe), (i))))

#define CASE(NAME, T, FN, OP, FIRST, LAST, EMPTY, CALL)                                          \
    static void test_##NAME##_##FN(int in_place)                                                 \
    {                                                                                            \
        T *s = (T *)(void *)source, *d = in_place ? s : (T *)(void *)dest;                       \
        int me = shmem_team_my_pe(team), n = shmem_team_n_pes(team);                             \
                                                                                                 \
        (void)me, (void)n;                                                                       \
        for (unsigned k = first; k < N_LENGTHS; k += step) {                                     \
            size_t len = lengths[k];                                                             \
                                                                                                 \
            shmem_team_sync(team);                                                               \
            for (size_t i = 0; i < len; i++)                                                     \
                s[i] = VALUE(T, tap_me, i);                                                      \
            coll_skew(&skew);                                                                    \
            tap_check_eq(CALL(team, d, s, len), 0);                                              \
            for (size_t i = 0; i < len; i++) {                                                   \
                T want = EMPTY;                                                                  \
                                                                                                 \
                for (int m = 0; m <= (LAST); m++)                                                \
                    want = m == 0 ? VALUE(T, pes[m], i) : (T)OP(want, VALUE(T, pes[m], i));  \
                if (!tap_check(d[i] == want)) {                                                  \
                    tap_diag(#NAME " " #FN " element %zu of %zu", i, len);                       \
                    break;                                                                       \
                }                                                                                \
            }                                                                                    \
        }                                                                                        \
    }

#define REDUCE(NAME, T, FN, OP) CASE(NAME, T, FN, OP, 0, n - 1, 0, shmem_##NAME##_##FN##_reduce)
#define SCANS(NAME, T)                                                     \
    CASE(NAME, T, inscan, SUM, 0, me, 0, shmem_##NAME##_sum_inscan)        \
    CASE(NAME, T, exscan, SUM, 0, me - 1, 0, shmem_##NAME##_sum_exscan)

#define BIT(NAME, T) REDUCE(NAME, T, and, AND) REDUCE(NAME, T, or, OR) REDUCE(NAME, T, xor, XOR)
#define MINMAX(NAME, T) REDUCE(NAME, T, max, MAX) REDUCE(NAME, T, min, MIN)
#define ARITH(NAME, T) REDUCE(NAME, T, sum, SUM) REDUCE(NAME, T, prod, PROD) SCANS(NAME, T)

SHMEMI_TYPES_RED_BIT(BIT)
SHMEMI_TYPES_RED_MINMAX(MINMAX)
SHMEMI_TYPES_RED_ARITH(ARITH)

static const struct test {
    const char *name;
    void (*run)(int in_place);
} tests[] = {
#define ROW(NAME, FN) { #NAME " " #FN, test_##NAME##_##FN },
#define BIT_ROWS(NAME, T) ROW(NAME, and) ROW(NAME, or) ROW(NAME, xor)
#define MINMAX_ROWS(NAME, T) ROW(NAME, max) ROW(NAME, min)
#define ARITH_ROWS(NAME, T) ROW(NAME, sum) ROW(NAME, prod) ROW(NAME, inscan) ROW(NAME, exscan)
    SHMEMI_TYPES_RED_BIT(BIT_ROWS)
    SHMEMI_TYPES_RED_MINMAX(MINMAX_ROWS)
    SHMEMI_TYPES_RED_ARITH(ARITH_ROWS)
};

int main(void)
{
    shmem_team_t teams[COLL_TEAMS];

    tap_init();
    skew = (unsigned)tap_me * 104729u + 1;
    source = shmem_malloc(MOST);
    dest = shmem_malloc(MOST);
    tap_check(source && dest);
    few = tap_n > 7 || !tap_all_near();
    step = tap_all_near() ? 1 : tap_short() ? 6 : 3;
    coll_make_teams(teams);
    for (int i = 0; i < COLL_TEAMS; i += i == 0 ? 2 : 5) { /* world, reversed, nested */
        for (unsigned k = 0; k < sizeof tests / sizeof tests[0]; k++) {
            if (teams[i] != SHMEM_TEAM_INVALID && !(tap_short() && i && k % 4)) {
                use_team(teams[i]);
                first = (k / 2 + (unsigned)i) % step;
                if (!few || k % 2 == 0)
                    tests[k].run(0);
                if (!few || k % 2)
                    tests[k].run(1);
            }
            if (i == 0)
                tap_point("%s", tests[k].name);
        }
        tap_point("all of them on team %d", i);
    }
    coll_free_teams(teams);
    return tap_done();
}
