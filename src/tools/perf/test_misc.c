/* SPDX-License-Identifier: BSD-3-Clause */
/* test_misc.c - symmetric malloc and free, locks, one word that all PEs add to. */
#include "perf.h"

static void malloc_free(size_t bytes, long n)
{
    for (long i = 0; i < n; i++)
        shmem_free(shmem_malloc(bytes));
}

static void lock_pair(size_t bytes, long n)
{
    (void)bytes;
    for (long i = 0; i < n; i++) {
        shmem_set_lock(&perf.ctl->lock);
        shmem_clear_lock(&perf.ctl->lock);
    }
}

/* PE 0's word, by every PE. */
static void add_to_one(size_t bytes, long n)
{
    (void)bytes;
    for (long i = 0; i < n; i++)
        (void)shmem_long_atomic_fetch_add(&perf.ctl->word, 1, 0);
}

void perf_run_misc(void)
{
    if (perf_wanted("malloc")) {
        perf_all_batch("malloc_free", 64, malloc_free, 0);
        perf_all_batch("malloc_free", 1 << 20, malloc_free, 0);
    }
    if (perf_wanted("lock")) {
        perf_one_sided("lock_unlock", 0, lock_pair, 0, PERF_NO_RATE);
        perf_contended("lock_contended", 0, lock_pair);
    }
    if (perf_wanted("contended"))
        perf_contended("fetch_add_all", 8, add_to_one);
}
