/* SPDX-License-Identifier: BSD-3-Clause */
/* An OpenSHMEM program for Open MPI's library: puts, gets, atomics and barriers with every value checked. */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 20000, ROUNDS = 20 };

static int failures;

static void check(int good, const char *what, int round)
{
    if (!good) {
        printf("pe %d round %d: %s is wrong\n", shmem_my_pe(), round, what);
        failures++;
    }
}

static void puts_and_gets(long *box, long *back, int round, int me, int n)
{
    int right = (me + 1) % n, left = (me + n - 1) % n;
    long *mine = malloc(WORDS * sizeof(*mine));
    int good = 1;

    for (long i = 0; i < WORDS; i++)
        mine[i] = i * 3 + me * 1000003L + round;
    shmem_barrier_all();
    shmem_long_put(box, mine, WORDS, right);
    shmem_barrier_all();
    for (long i = 0; i < WORDS; i++)
        good &= box[i] == i * 3 + left * 1000003L + round;
    check(good, "put", round);
    shmem_long_get(back, box, WORDS, right);
    check(!memcmp(back, mine, WORDS * sizeof(*mine)), "get", round);
    shmem_barrier_all();
    free(mine);
}

static void atomics(long *counter, int *small, int round, int me, int n)
{
    int right = (me + 1) % n;
    long old;

    shmem_barrier_all();
    *counter = 0;
    *small = 7;
    shmem_barrier_all();
    for (int pe = 0; pe < n; pe++)
        shmem_long_atomic_add(counter, me + 1, pe);
    shmem_int_atomic_add(small, 5, right);
    shmem_barrier_all();
    check(*counter == (long)n * (n + 1) / 2, "atomic add", round);
    check(*small == 12, "4-byte atomic add", round);
    shmem_barrier_all();
    old = shmem_long_atomic_fetch_add(counter, 100, right);
    check(old == (long)n * (n + 1) / 2, "fetch-add", round);
    shmem_barrier_all();
    old = shmem_long_atomic_swap(counter, 1234 + me, right);
    check(old == (long)n * (n + 1) / 2 + 100, "swap", round);
    shmem_barrier_all();
    old = shmem_long_atomic_compare_swap(counter, 1234 + me, 99, right);
    check(old == 1234 + me, "compare-swap", round);
    check(shmem_long_atomic_fetch(counter, right) == 99, "fetch", round);
    old = shmem_long_atomic_compare_swap(counter, 5, 6, right);
    check(old == 99, "compare-swap that fails", round);
    shmem_barrier_all();
}

int main(void)
{
    long *box, *back, *counter;
    int *small;

    shmem_init();
    box = shmem_malloc(WORDS * sizeof(*box));
    back = shmem_malloc(WORDS * sizeof(*back));
    counter = shmem_malloc(sizeof(*counter));
    small = shmem_malloc(sizeof(*small));
    for (int round = 0; round < ROUNDS; round++) {
        puts_and_gets(box, back, round, shmem_my_pe(), shmem_n_pes());
        atomics(counter, small, round, shmem_my_pe(), shmem_n_pes());
    }
    shmem_barrier_all();
    printf("pe %d of %d: %s\n", shmem_my_pe(), shmem_n_pes(), failures ? "FAILED" : "all values right");
    shmem_finalize();
    return failures != 0;
}
