/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * start_pes.c - programs of before 1.2: start_pes, no finalize, a return from main.
 *
 * The library finalizes in exit(), so every PE ends with status 0 under any launcher.
 */
#include <shmem.h>

#include <stdio.h>

static long from_left;

int main(void)
{
    int me, n;
    long *heap;

    start_pes(0);
    start_pes(99); /* again: no effect */
    me = _my_pe();
    n = _num_pes();
    heap = shmalloc(64);
    shmem_long_p(&from_left, 10 + me, (me + 1) % n);
    shmem_long_p(heap, 20 + me, (me + 1) % n);
    shmem_barrier_all();
    if (from_left != 10 + (me + n - 1) % n || *heap != 20 + (me + n - 1) % n)
        return 1; /* seen by the driver, as is any PE that ends badly after this */
    if (me == 0)
        printf("1..1\nok 1 - start_pes and a return from main\n");
    return 0;
}
