/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_coll.c - collectives on all PEs.  `bytes` is one PE's contribution (one block of
 * alltoall).  On teams where the library has them, else on the active set
 * of all PEs.
 */
#include "perf.h"

#define ROOT 0
#define LONGS (bytes / sizeof(long))
#define SRC_L ((long *)perf.src)
#define DST_L ((long *)perf.dst)
#define SRC_D ((double *)perf.src)
#define DST_D ((double *)perf.dst)

#define EACH(NAME, CALL)                   \
    static void NAME(size_t bytes, long n) \
    {                                      \
        for (long i = 0; i < n; i++)       \
            CALL;                          \
    }

#if PERF_HAVE_15

#define TEAM SHMEM_TEAM_WORLD
EACH(sum_long, shmem_long_sum_reduce(TEAM, DST_L, SRC_L, LONGS))
EACH(max_long, shmem_long_max_reduce(TEAM, DST_L, SRC_L, LONGS))
EACH(sum_double, shmem_double_sum_reduce(TEAM, DST_D, SRC_D, LONGS))
EACH(broadcast, shmem_broadcastmem(TEAM, perf.dst, perf.src, bytes, ROOT))
EACH(fcollect, shmem_fcollectmem(TEAM, perf.dst, perf.src, bytes))
EACH(collect, shmem_collectmem(TEAM, perf.dst, perf.src, bytes))
EACH(alltoall, shmem_alltoallmem(TEAM, perf.dst, perf.src, bytes))

static int coll_open(void)
{
    return 0;
}

#else

/* Each call uses the next of these: a barrier lies between two calls, so a few are plenty. */
#define PSYNCS 4
static long *psync;
static size_t psync_len; /* of one of them: enough for every kind of collective */
static void *pwrk;
static unsigned next_psync;

static long *take_psync(void)
{
    return psync + (next_psync++ % PSYNCS) * psync_len;
}

#define ALL 0, 0, perf.n_pes
EACH(sum_long, shmem_long_sum_to_all(DST_L, SRC_L, (int)LONGS, ALL, pwrk, take_psync()))
EACH(max_long, shmem_long_max_to_all(DST_L, SRC_L, (int)LONGS, ALL, pwrk, take_psync()))
EACH(sum_double, shmem_double_sum_to_all(DST_D, SRC_D, (int)LONGS, ALL, pwrk, take_psync()))
EACH(broadcast, shmem_broadcast64(perf.dst, perf.src, LONGS, ROOT, ALL, take_psync()))
EACH(fcollect, shmem_fcollect64(perf.dst, perf.src, LONGS, ALL, take_psync()))
EACH(collect, shmem_collect64(perf.dst, perf.src, LONGS, ALL, take_psync()))
EACH(alltoall, shmem_alltoall64(perf.dst, perf.src, LONGS, ALL, take_psync()))

static size_t largest(size_t a, size_t b)
{
    return a > b ? a : b;
}

static int coll_open(void)
{
    size_t n;

    psync_len = largest(largest(SHMEM_REDUCE_SYNC_SIZE, SHMEM_COLLECT_SYNC_SIZE),
                        largest(SHMEM_ALLTOALL_SYNC_SIZE, SHMEM_BCAST_SYNC_SIZE));
    n = psync_len * PSYNCS;
    psync = shmem_malloc(n * sizeof *psync);
    pwrk = shmem_malloc(largest(perf.opt.max_bytes / 2 + sizeof(long), SHMEM_REDUCE_MIN_WRKDATA_SIZE * sizeof(long)));
    if (!psync || !pwrk)
        return -1;
    for (size_t i = 0; i < n; i++)
        psync[i] = SHMEM_SYNC_VALUE;
    shmem_barrier_all();
    return 0;
}

#endif

#if PERF_HAVE_16
EACH(inscan, shmem_long_sum_inscan(TEAM, DST_L, SRC_L, LONGS))
EACH(exscan, shmem_long_sum_exscan(TEAM, DST_L, SRC_L, LONGS))
#endif

/*
 * `copies`: blocks that a PE must copy at the least, 0 for all PEs' blocks.  The floor adds a
 * line's way and, since each call is timed, a reading of the clock.
 */
static void sized(const char *test, const char *row, perf_fn *fn, int copies, double ruler)
{
    int blocks = copies ? copies : perf.n_pes;

    if (!perf_wanted(test))
        return;
    PERF_FOR_SIZES(s) {
        double copy = perf_copy_floor(s);

        if ((size_t)perf.n_pes * s > perf.buf_len)
            return;
        perf_collective(row, s, fn, copy > 0 && ruler > 0 ? blocks * copy + ruler + perf.clock_ns : 0);
    }
}

void perf_run_coll(double ruler)
{
    if (coll_open())
        return;
    sized("reduce", "reduce_sum_long", sum_long, 0, ruler);
    sized("reduce", "reduce_max_long", max_long, 0, ruler);
    sized("reduce", "reduce_sum_double", sum_double, 0, ruler);
#if PERF_HAVE_16
    sized("scan", "inscan_sum_long", inscan, 0, ruler);
    sized("scan", "exscan_sum_long", exscan, 0, ruler);
#endif
    sized("broadcast", "broadcast", broadcast, 1, ruler);
    sized("fcollect", "fcollect", fcollect, 0, ruler);
    sized("collect", "collect", collect, 0, ruler);
    sized("alltoall", "alltoall", alltoall, 0, ruler);
}
