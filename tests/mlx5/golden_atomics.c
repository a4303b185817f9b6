/* SPDX-License-Identifier: BSD-3-Clause */
/* golden_atomics.c - makes another OpenSHMEM library send each kind of atomic, for golden.sh. */
#include <shmem.h>
#include <stdio.h>

/* Open MPI 4.1.4's own fetching forms of 4 bytes corrupt its stack: only forms without a result there. */
int main(void)
{
    static long wide[8];
    static int small[8];
    long sum = 0;
    int pe;

    shmem_init();
    pe = (shmem_my_pe() + 1) % shmem_n_pes();
    shmem_barrier_all();
    for (int i = 1; i < 20; i++) {
        shmem_int_atomic_add(&small[0], i, pe);
        shmem_int_atomic_inc(&small[1], pe);
        shmem_uint_atomic_and((unsigned *)&small[2], 0xffff00ffu << i, pe);
        shmem_uint_atomic_or((unsigned *)&small[3], 0x80000001u << i, pe);
        shmem_uint_atomic_xor((unsigned *)&small[4], 0x12345678u * (unsigned)i, pe);
        shmem_long_atomic_add(&wide[0], i, pe);
        sum += shmem_long_atomic_fetch_add(&wide[1], i, pe);
        sum += shmem_long_atomic_swap(&wide[2], i * 0x123456789abcl, pe);
        sum += shmem_long_atomic_compare_swap(&wide[3], i - 1, i, pe);
        shmem_ulong_atomic_and((unsigned long *)&wide[4], ~0x10ul << i, pe);
        shmem_ulong_atomic_or((unsigned long *)&wide[5], 0x8000000000000001ul << i, pe);
        shmem_ulong_atomic_xor((unsigned long *)&wide[6], 0x123456789abcdef0ul * (unsigned long)i, pe);
    }
    shmem_barrier_all();
    printf("all sent: %ld\n", sum);
    shmem_finalize();
    return 0;
}
