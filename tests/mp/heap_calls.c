/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * heap_calls.c - shmem_malloc and its relatives as the specification says, alike on every PE.
 *
 * run: n=1,2,3 env=SHMEM_SYMMETRIC_SIZE=16M
 */
#include "tap.h"

#include <stdint.h>

static long offset_seen[TAP_MAX_PES];

/* The same block on every PE: its offset from the first block agrees. */
static void check_symmetric(const char *first, const char *p)
{
    long off = p ? (long)(p - first) : -1;

    shmem_barrier_all();
    shmem_long_p(&offset_seen[tap_me], off, 0);
    shmem_barrier_all();
    if (tap_me == 0)
        for (int i = 0; i < tap_n; i++)
            tap_check_eq(offset_seen[i], off);
}

static void edge_sizes(void)
{
    tap_check(shmem_malloc(0) == NULL);
    tap_check(shmem_calloc(0, 8) == NULL && shmem_calloc(8, 0) == NULL);
    tap_check(shmem_malloc(SIZE_MAX) == NULL);
    tap_check(shmem_malloc((size_t)1 << 40) == NULL);
    tap_check(shmem_calloc(SIZE_MAX / 2, 4) == NULL);
    tap_check(shmem_calloc((size_t)1 << 33, (size_t)1 << 33) == NULL);
    tap_check(shmem_malloc_with_hints(0, SHMEM_MALLOC_ATOMICS_REMOTE) == NULL);
    shmem_free(NULL);
    tap_point("zero, too much and overflow give NULL");
}

static void alignments(void)
{
    for (size_t a = sizeof(void *); a <= 8 << 20; a *= 2) {
        char *p = shmem_align(a, 37);

        tap_check(p && (uintptr_t)p % a == 0);
        shmem_free(p);
    }
    tap_check(shmem_align(0, 8) == NULL);
    tap_check(shmem_align(3, 8) == NULL);
    tap_check(shmem_align(1, 8) != NULL && shmem_align(4, 8) != NULL);
    tap_check(shmem_align(64, 0) == NULL);
    tap_check(shmem_align((size_t)1 << 62, 8) == NULL);
    tap_check((uintptr_t)shmem_malloc(1) % _Alignof(max_align_t) == 0);
    tap_point("alignments are kept, impossible ones give NULL");
}

static void realloc_keeps(void)
{
    char *first = shmem_malloc(64), *p = shmem_realloc(NULL, 100), *blocker, *q;

    tap_check(p != NULL);
    memset(p, 7, 100);
    blocker = shmem_malloc(64);
    q = shmem_realloc(p, 100000);
    tap_check(q && q[0] == 7 && q[99] == 7);
    check_symmetric(first, q);
    q = shmem_realloc(q, 10);
    tap_check(q && q[9] == 7);
    tap_check(shmem_realloc(q, (size_t)1 << 40) == NULL);
    tap_check(q[9] == 7); /* the failed call left the block */
    tap_check(shmem_realloc(q, 0) == NULL);
    shmem_free(blocker);
    shmem_free(first);
    tap_point("realloc keeps contents, and the block when it fails");
}

static void full_heap(void)
{
    static char *blocks[64];
    char *first = NULL;
    int count = 0, again = 0;

    while (count < 64 && (blocks[count] = shmem_malloc(1 << 20)))
        count++;
    first = blocks[0];
    tap_check(count >= 14 && count <= 16);
    check_symmetric(first, blocks[count - 1]);
    for (int i = 0; i < count; i++)
        memset(blocks[i], i, 1 << 20);
    for (int i = 0; i < count; i += 2)
        shmem_free(blocks[i]);
    for (int i = 1; i < count; i += 2) {
        tap_check(blocks[i][12345] == (char)i);
        shmem_free(blocks[i]);
    }
    while (again < 64 && (blocks[again] = shmem_malloc(1 << 20)))
        again++;
    tap_check_eq(again, count);
    while (again)
        shmem_free(blocks[--again]);
    tap_point("a full heap is NULL on every PE alike, and comes back");
}

static void calloc_zeroes(void)
{
    unsigned char *p = shmem_malloc(5000), *q;
    int bad = 0;

    memset(p, 0xff, 5000);
    shmem_free(p);
    q = shmem_calloc(1000, 5);
    for (int i = 0; i < 5000; i++)
        bad += q[i] != 0;
    tap_check_eq(bad, 0);
    shmem_free(q);
    tap_point("calloc gives zeroes in memory that was used before");
}

int main(void)
{
    tap_init();
    edge_sizes();
    alignments();
    realloc_keeps();
    full_heap();
    calloc_zeroes();
    return tap_done();
}
