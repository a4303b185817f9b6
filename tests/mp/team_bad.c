/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * team_bad.c - wrong arguments of collectives and team calls end the job with a message that says which.
 *
 * run: n=2 launch=oshrun timeout=30
 * dies: invalid | shmem_team_sync.*team is SHMEM_TEAM_INVALID
 * dies: stale | shmem_long_sum_reduce.*team handle 0x[0-9a-f]+ is not valid
 * dies: madeup | shmem_team_sync.*team handle 0xbad is not valid
 * dies: predefined | shmem_team_destroy.*SHMEM_TEAM_WORLD is predefined
 * dies: root | shmem_long_broadcast.*PE_root (2 is outside 0 to 1|4 is outside 0 to 3)
 * dies: private | shmem_long_fcollect.*neither in the symmetric heap
 * dies: past_end | shmem_long_alltoall.*past the end of the symmetric heap
 * dies: stride | shmem_long_alltoalls.*stride 0 is less than 1
 * dies: huge | shmem_long_collect.*exceed the address space
 * dies: set | shmem_barrier.*active set PE_start 0, logPE_stride 0, PE_size [35]
 * dies: not_in_set | shmem_sync.*PE 1 is not in the active set
 * dies: psync | shmem_int_sum_to_all.*neither in the symmetric heap
 * dies: unlock | shmem_clear_lock.*does not hold the lock
 * dies: lock_private | shmem_set_lock.*neither in the symmetric heap
 */
#include "coll.h"

#include <stdint.h>

static long word[4], result[8], psync[SHMEM_SYNC_SIZE];
static int number[2];

static void run(const char *what, shmem_team_t stale)
{
    long private_word = 0, private_psync[SHMEM_SYNC_SIZE] = { 0 };
    long *heap = shmem_malloc(64);

    if (!strcmp(what, "invalid"))
        shmem_team_sync(SHMEM_TEAM_INVALID);
    else if (!strcmp(what, "stale"))
        shmem_long_sum_reduce(stale, result, word, 1);
    else if (!strcmp(what, "madeup"))
        shmem_team_sync((shmem_team_t)(uintptr_t)0xbad);
    else if (!strcmp(what, "predefined"))
        shmem_team_destroy(SHMEM_TEAM_WORLD);
    else if (!strcmp(what, "root"))
        shmem_long_broadcast(SHMEM_TEAM_WORLD, result, word, 1, tap_n);
    else if (!strcmp(what, "private"))
        shmem_long_fcollect(SHMEM_TEAM_WORLD, result, &private_word, 1);
    else if (!strcmp(what, "past_end"))
        shmem_long_alltoall(SHMEM_TEAM_WORLD, heap, word, (size_t)1 << 40);
    else if (!strcmp(what, "stride"))
        shmem_long_alltoalls(SHMEM_TEAM_WORLD, result, word, 0, 1, 1);
    else if (!strcmp(what, "huge"))
        shmem_long_collect(SHMEM_TEAM_WORLD, result, word, SIZE_MAX);
    else if (!strcmp(what, "set"))
        shmem_barrier(0, 0, tap_n + 1, psync);
    else if (!strcmp(what, "not_in_set"))
        tap_me == 1 ? (shmem_sync)(0, 0, 1, psync) : (void)0;
    else if (!strcmp(what, "psync"))
        shmem_int_sum_to_all(number, number, 1, 0, 0, tap_n, number, private_psync);
    else if (!strcmp(what, "unlock"))
        shmem_clear_lock(&word[3]);
    else if (!strcmp(what, "lock_private"))
        shmem_set_lock(&private_word);
    shmem_barrier_all();
}

int main(int argc, char **argv)
{
    shmem_team_t t, again;

    tap_init();
    tap_check_eq(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, tap_n, NULL, 0, &t), 0);
    shmem_team_destroy(t);
    if (argc > 1) {
        run(argv[1], t);
        return tap_done();
    }
    /* The slot's next team has another handle. */
    for (int i = 0; i < 4; i++) {
        tap_check_eq(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, tap_n, NULL, 0, &again), 0);
        tap_check(again != t);
        shmem_team_destroy(again);
    }
    tap_point("a handle is not given out twice");
    return tap_done();
}
