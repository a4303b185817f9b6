/* SPDX-License-Identifier: BSD-3-Clause */
/* static_data.c - global and static variables take puts, gets and atomics from peers, and keep their first values. */
#include "tap.h"

static long initialised[4] = { 11, 22, 33, 44 };
static long zero;
long global_counter;
static int small = 7;
static double real = 2.5;
static char big[3 << 20];
static const char *text = "relocated pointer";
static void (*function)(void) = shmem_barrier_all;

static void values_survive_init(void)
{
    tap_check(initialised[0] == 11 && initialised[3] == 44 && zero == 0 && small == 7);
    tap_check(real == 2.5 && !strcmp(text, "relocated pointer") && function == shmem_barrier_all);
    tap_point("values from before init are kept");
}

static void puts_and_gets(int me, int n)
{
    int right = (me + 1) % n, left = (me + n - 1) % n;
    static long from_left, back;

    shmem_long_p(&from_left, 1000 + me, right);
    shmem_barrier_all();
    tap_check_eq(from_left, 1000 + left);
    back = shmem_long_g(&from_left, right);
    tap_check_eq(back, 1000 + me);
    memset(big + 100, me + 1, 64);
    shmem_barrier_all();
    shmem_putmem(big + (2 << 20), big + 100, 64, right);
    shmem_barrier_all();
    tap_check(big[2 << 20] == left + 1 && big[(2 << 20) + 63] == left + 1 && big[(2 << 20) + 64] == 0);
    tap_point("puts and gets reach static data");
}

static void atomics(int me, int n)
{
    long old;

    for (int i = 0; i < 1000; i++)
        shmem_long_atomic_inc(&global_counter, i % n);
    old = shmem_long_atomic_fetch_add(&zero, 1, 0);
    tap_check(old >= 0 && old < n);
    shmem_int_atomic_add(&small, 1, (me + 1) % n);
    shmem_double_atomic_swap(&real, (double)me, me);
    shmem_barrier_all();
    tap_check_eq(shmem_long_atomic_fetch(&zero, 0), (long)n);
    tap_check_eq(small, 8);
    tap_check(real == (double)me);
    {
        long mine = global_counter, want = 0;

        for (int i = 0; i < 1000; i++)
            want += i % n == me;
        tap_check_eq(mine, want * n);
    }
    tap_point("atomics on static data are exact");
}

static void polling(int me, int n)
{
    static volatile long flag;
    int right = (me + 1) % n;

    if (me == 0) {
        shmem_long_p((long *)&flag, 1, right);
        while (n > 1 && !flag)
            usleep(10); /* a plain loop, with no call into the library */
    } else {
        while (!flag)
            usleep(10);
        shmem_long_p((long *)&flag, 1, right);
    }
    tap_check(n == 1 || flag == 1);
    tap_point("a program's own loop sees a peer's put to a static flag");
}

static void pointers(int me, int n)
{
    int right = (me + 1) % n;
    long *there = shmem_ptr(initialised, right);

    tap_check(shmem_ptr(initialised, me) == initialised);
    tap_check_eq(there != NULL, shmem_team_translate_pe(SHMEM_TEAM_WORLD, right, SHMEM_TEAM_SHARED) >= 0);
    shmem_barrier_all();
    if (there)
        there[2] = 5000 + me;
    else
        shmem_long_p(&initialised[2], 5000 + me, right);
    shmem_barrier_all();
    tap_check_eq(initialised[2], 5000L + (me + n - 1) % n);
    tap_check(shmem_addr_accessible(initialised, right));
    tap_check(!shmem_addr_accessible(&me, right));
    tap_point("shmem_ptr gives static data of every PE of this node");
}

int main(void)
{
    tap_init();
    values_survive_init();
    puts_and_gets(tap_me, tap_n);
    atomics(tap_me, tap_n);
    polling(tap_me, tap_n);
    pointers(tap_me, tap_n);
    return tap_done();
}
