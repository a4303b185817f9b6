/* SPDX-License-Identifier: BSD-3-Clause */
/* units_a.cu - one of two files of a program: compiled by themselves, linked by the host's linker, no -rdc. */
#include <shmem.h>

#include <cstdio>

int other_unit(int *dest, int *source);

__global__ void kernel_a(int *dest)
{
    shmem_int_p(dest, 1, shmem_my_pe());
}

int main()
{
    static int word; /* symmetric */

    shmem_init();
    shmem_int_p(&word, 5, shmem_my_pe());
    shmem_quiet();
    if (shmem_int_g(&word, shmem_my_pe()) != 5 || other_unit(&word, &word) != shmem_n_pes())
        return 1;
    shmem_finalize();
    std::printf("two units\n");
    return 0;
}
