/* SPDX-License-Identifier: BSD-3-Clause */
/* test_sync.c - barrier and sync of all PEs, each call timed and in batches. */
#include "perf.h"

static void barrier(size_t bytes, long n)
{
    (void)bytes;
    for (long i = 0; i < n; i++)
        shmem_barrier_all();
}

static void sync_all(size_t bytes, long n)
{
    (void)bytes;
    for (long i = 0; i < n; i++)
        shmem_sync_all();
}

#if PERF_HAVE_15
static void team_sync(size_t bytes, long n)
{
    (void)bytes;
    for (long i = 0; i < n; i++)
        shmem_team_sync(SHMEM_TEAM_WORLD);
}
#endif

void perf_run_sync(double ruler)
{
    /* With two PEs who both arrive at once, one line each way at the same time is the least. */
    double floor = perf.n_pes == 2 ? ruler : 0;

    if (perf_wanted("barrier")) {
        perf_all_calls("barrier", barrier, floor > 0 ? floor + perf.clock_ns : 0);
        perf_all_batch("barrier", 0, barrier, floor);
    }
    if (perf_wanted("sync")) {
        perf_all_calls("sync", sync_all, floor > 0 ? floor + perf.clock_ns : 0);
        perf_all_batch("sync", 0, sync_all, floor);
#if PERF_HAVE_15
        perf_all_calls("team_sync", team_sync, floor > 0 ? floor + perf.clock_ns : 0);
#endif
    }
}
