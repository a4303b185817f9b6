/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * with_mpi.c - MPI and OpenSHMEM in one process, in every order of start and end; what with_mpi.sh compiles.
 *
 * Usage: with_mpi ORDER, two letters: who is started first, who is ended first (m or s).
 * Checks that both agree about rank and size and that both move data.
 */
#include <mpi.h>
#include <shmem.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static long from_left; /* symmetric */

static void use_both(void)
{
    int rank, size, me = shmem_my_pe(), n = shmem_n_pes(), sum = 0, want = 0;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank != me || size != n) {
        fprintf(stderr, "MPI says %d of %d, OpenSHMEM %d of %d\n", rank, size, me, n);
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    shmem_long_p(&from_left, me + 100, (me + 1) % n);
    shmem_barrier_all();
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < n; i++)
        want += i;
    if (sum != want || from_left != (me + n - 1) % n + 100) {
        fprintf(stderr, "PE %d: sum %d, from the left %ld\n", me, sum, from_left);
        MPI_Abort(MPI_COMM_WORLD, 4);
    }
    if (me == 0)
        printf("both work on %d\n", n);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    const char *order = argc > 1 ? argv[1] : "ms";

    if (strlen(order) != 2)
        return 2;
    if (order[0] == 's')
        shmem_init();
    MPI_Init(&argc, &argv);
    if (order[0] == 'm')
        shmem_init();
    use_both();
    if (order[1] == 's')
        shmem_finalize();
    MPI_Finalize();
    if (order[1] == 'm') {
        shmem_barrier_all();
        shmem_finalize();
    }
    return 0;
}
