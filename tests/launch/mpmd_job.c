/* SPDX-License-Identifier: BSD-3-Clause */
/* mpmd_job.c - compiled twice, into executables that differ; the heap is shared, the static data is not. */
#include <shmem.h>

#include <stdio.h>
#include <string.h>

volatile char data[MPMD_BYTES];
static long variable;

int main(int argc, char **argv)
{
    long *heap;
    int me, n;

    shmem_init();
    me = shmem_my_pe();
    n = shmem_n_pes();
    data[0] = (char)me;
    heap = shmem_calloc(1, sizeof *heap);
    shmem_long_atomic_add(heap, me + 1, 0);
    shmem_barrier_all();
    if (argc > 1 && !strcmp(argv[1], "static"))
        shmem_long_p(&variable, 1, (me + 1) % n);
    if (me == 0)
        printf("sum %ld of %d, static data %s\n", *heap, n, shmem_ptr(&variable, 1) ? "shared" : "apart");
    shmem_finalize();
    return variable != 0;
}
