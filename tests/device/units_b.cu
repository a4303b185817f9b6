/* SPDX-License-Identifier: BSD-3-Clause */
/* units_b.cu - the other file of units_a.cu's program. */
#include <shmemx.h>

int other_unit(int *dest, int *source);

__global__ void kernel_b(int *dest, int *source)
{
    shmemx_int_put_block(dest, source, 10, 0);
    shmemx_barrier_all_block();
}

int other_unit(int *dest, int *source)
{
    shmem_barrier_all();
    shmem_int_sum_reduce(SHMEM_TEAM_WORLD, dest, source, 1);
    return shmem_n_pes();
}
