/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_rma.c - put, get, p, g, quiet, fence: PE 0 to its peer while the others
 * wait in a barrier; and the memcpy floor beside them.
 */
#include "perf.h"

#include <string.h>

#define WINDOW 64 /* non-blocking calls between two quiets */
#define FLOORS 16

static struct {
    size_t bytes;
    double to, from;
} floors[FLOORS];
static int n_floors;

/* The peer's buffer as this PE can load and store it, or a buffer of its own when it cannot. */
static char *copy_target(void)
{
    static char *at;

    if (!at)
        at = shmem_ptr(perf.dst, perf.peer);
    return at ? at : perf.dst;
}

static void keep(void *p)
{
    __asm__ volatile("" : : "r"(p) : "memory");
}

static void copy_to(size_t bytes, long n)
{
    char *to = copy_target();

    for (long i = 0; i < n; i++) {
        memcpy(to, perf.local, bytes);
        keep(to);
    }
}

static void copy_from(size_t bytes, long n)
{
    char *from = copy_target();

    for (long i = 0; i < n; i++) {
        memcpy(perf.local, from, bytes);
        keep(perf.local);
    }
}

static void put(size_t bytes, long n)
{
    for (long i = 0; i < n; i++) {
        shmem_putmem(perf.dst, perf.local, bytes, perf.peer);
        shmem_quiet();
    }
}

static void get(size_t bytes, long n)
{
    for (long i = 0; i < n; i++)
        shmem_getmem(perf.local, perf.dst, bytes, perf.peer);
}

static void put_stream(size_t bytes, long n)
{
    for (long i = 1; i <= n; i++) {
        shmem_putmem_nbi(perf.dst, perf.local, bytes, perf.peer);
        if (i % WINDOW == 0)
            shmem_quiet();
    }
    shmem_quiet();
}

static void get_stream(size_t bytes, long n)
{
    for (long i = 1; i <= n; i++) {
        shmem_getmem_nbi(perf.local, perf.dst, bytes, perf.peer);
        if (i % WINDOW == 0)
            shmem_quiet();
    }
    shmem_quiet();
}

static void p(size_t bytes, long n)
{
    (void)bytes;
    for (long i = 0; i < n; i++) {
        shmem_long_p(&perf.ctl->word, i, perf.peer);
        shmem_quiet();
    }
}

static void p_stream(size_t bytes, long n)
{
    (void)bytes;
    for (long i = 0; i < n; i++)
        shmem_long_p(&perf.ctl->word, i, perf.peer);
    shmem_quiet();
}

static void g(size_t bytes, long n)
{
    long sum = 0;

    (void)bytes;
    for (long i = 0; i < n; i++)
        sum += shmem_long_g(&perf.ctl->word, perf.peer);
    keep(&sum);
}

static void quiet(size_t bytes, long n)
{
    (void)bytes;
    for (long i = 0; i < n; i++)
        shmem_quiet();
}

static void fence(size_t bytes, long n)
{
    (void)bytes;
    for (long i = 0; i < n; i++)
        shmem_fence();
}

static void ptr(size_t bytes, long n)
{
    (void)bytes;
    for (long i = 0; i < n; i++)
        keep(shmem_ptr(perf.dst, perf.peer));
}

static void measure_floors(void)
{
    PERF_FOR_SIZES(s) {
        if (n_floors == FLOORS)
            return;
        floors[n_floors].bytes = s;
        floors[n_floors].to = perf_floor("memcpy_to", s, copy_to);
        floors[n_floors++].from = perf_floor("memcpy_from", s, copy_from);
    }
}

static double floor_of(size_t bytes, bool from)
{
    for (int i = 0; i < n_floors; i++)
        if (floors[i].bytes == bytes)
            return from ? floors[i].from : floors[i].to;
    return 0;
}

double perf_copy_floor(size_t bytes)
{
    return floor_of(bytes, false);
}

static void sized(const char *test, perf_fn *fn, bool from, enum perf_rate rate)
{
    if (!perf_wanted(test))
        return;
    PERF_FOR_SIZES(s)
        perf_one_sided(test, s, fn, floor_of(s, from), rate);
}

void perf_run_rma(void)
{
    if (perf_wanted("memcpy"))
        measure_floors();
    sized("put", put, false, PERF_NO_RATE);
    sized("put_bw", put_stream, false, PERF_MBYTES);
    sized("get", get, true, PERF_NO_RATE);
    sized("get_bw", get_stream, true, PERF_MBYTES);
    if (perf_wanted("p")) {
        perf_one_sided("p", 8, p, floor_of(8, false), PERF_NO_RATE);
        perf_one_sided("p_rate", 8, p_stream, floor_of(8, false), PERF_MOPS);
    }
    if (perf_wanted("g"))
        perf_one_sided("g", 8, g, floor_of(8, true), PERF_NO_RATE);
    if (perf_wanted("quiet"))
        perf_one_sided("quiet", 0, quiet, 0, PERF_NO_RATE);
    if (perf_wanted("fence"))
        perf_one_sided("fence", 0, fence, 0, PERF_NO_RATE);
    if (perf_wanted("ptr"))
        perf_one_sided("ptr", 0, ptr, 0, PERF_NO_RATE);
}
