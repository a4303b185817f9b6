/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll.h - what the tests of collectives share: random numbers that all PEs agree on, skew, and a set of teams.
 */
#ifndef COLL_H
#define COLL_H

#include "tap.h"

#include <time.h>

#define COLL_TEAMS 8

/* Each PE of a job draws the same numbers from the same state. */
TAP_UNUSED static unsigned coll_random(unsigned *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* Lets this PE fall behind now and then, so that PEs enter collectives at different times. */
TAP_UNUSED static void coll_skew(unsigned *state)
{
    unsigned r = coll_random(state);
    struct timespec t = { 0, (long)(r % 200) * 1000 };

    if (r % 8 == 0)
        nanosleep(&t, NULL);
    else
        for (volatile unsigned i = 0; i < r % 512; i++)
            ;
}

/*
 * World, shared, all reversed, even and odd PEs, the upper half, and a row and column of a grid: what this PE is in,
 * else SHMEM_TEAM_INVALID.  Gives their number.
 */
TAP_UNUSED static int coll_make_teams(shmem_team_t *teams)
{
    int n = tap_n, x = n > 3 ? 3 : 2;
    shmem_team_t upper = SHMEM_TEAM_INVALID;

    teams[0] = SHMEM_TEAM_WORLD;
    teams[1] = SHMEM_TEAM_SHARED;
    tap_check(!shmem_team_split_strided(SHMEM_TEAM_WORLD, n - 1, -1, n, NULL, 0, &teams[2]));
    tap_check(!shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 2, (n + 1) / 2, NULL, 0, &teams[3]));
    tap_check(!shmem_team_split_strided(SHMEM_TEAM_WORLD, n / 2, 1, n - n / 2, NULL, 0, &upper));
    teams[4] = upper;
    tap_check(!shmem_team_split_2d(SHMEM_TEAM_WORLD, x, NULL, 0, &teams[5], NULL, 0, &teams[6]));
    teams[7] = SHMEM_TEAM_INVALID;
    if (upper != SHMEM_TEAM_INVALID) /* nested: the upper half, backwards */
        tap_check(!shmem_team_split_strided(upper, n - n / 2 - 1, -1, n - n / 2, NULL, 0, &teams[7]));
    return COLL_TEAMS;
}

TAP_UNUSED static void coll_free_teams(shmem_team_t *teams)
{
    for (int i = 2; i < COLL_TEAMS; i++)
        shmem_team_destroy(teams[i]);
}

#endif
