/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * profiling.c - a tool that defines standard names itself sees the program's calls and reaches the library
 * through the profiling names (specification 1.6, section 10).
 *
 * run: n=2 launch=oshrun timeout=60
 */
#include <pshmem.h>

static int puts_seen, barriers_seen, adds_seen;

void shmem_putmem(void *dest, const void *source, size_t nelems, int pe)
{
    puts_seen++;
    pshmem_putmem(dest, source, nelems, pe);
}

long shmem_long_atomic_fetch_add(long *dest, long value, int pe)
{
    adds_seen++;
    return pshmem_long_atomic_fetch_add(dest, value, pe);
}

void shmem_barrier_all(void)
{
    barriers_seen++;
    pshmem_barrier_all();
}

#include "../mp/tap.h"

int main(void)
{
    static char there[4];
    static long word;
    int before, peer;

    tap_init();
    peer = (shmem_my_pe() + 1) % shmem_n_pes();
    shmem_putmem(there, "abc", 4, peer);
    before = barriers_seen;
    shmem_barrier_all();
    tap_check_eq(barriers_seen, before + 1);
    tap_check_eq(puts_seen, 1);
    tap_check(strcmp(there, "abc") == 0);
    tap_point("the tool's routines stand before the library's and reach them");
    tap_check_eq(shmem_atomic_fetch_add(&word, 2, shmem_my_pe()), 0);
    tap_check_eq(adds_seen, 1);
    tap_check_eq(word, 2);
    tap_point("generics call the tool's routine too");
    before = barriers_seen;
    shmem_free(shmem_malloc(64));
    tap_check_eq(barriers_seen, before);
    tap_point("the library's own barriers are not the program's");
    return tap_done();
}
