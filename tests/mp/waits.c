/* SPDX-License-Identifier: BSD-3-Clause */
/* waits.c - waiting PEs give their CPU away, wake for library and plain stores alike, and every form returns what it should. */
#include "tap.h"

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define WAIT_US (700 * 1000)

static long flag;
static int ints[8];
static uint64_t words[8], sig;

/* Of the process, without the thread of a virtual NIC. */
static double cpu_seconds(void)
{
    struct timespec t;

    clock_gettime(getenv("SOFTHCA_DIR") ? CLOCK_THREAD_CPUTIME_ID : CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* All but PE 0 wait for about 0.7 s; who spins the whole time uses as much of a CPU. */
static void idle_waits_are_cheap(void)
{
    double before = cpu_seconds(), used;

    if (tap_me == 0) {
        usleep(WAIT_US);
        for (int pe = 1; pe < tap_n; pe++)
            shmem_long_p(&flag, 1, pe);
    } else {
        shmem_long_wait_until(&flag, SHMEM_CMP_EQ, 1);
    }
    used = cpu_seconds() - before;
    tap_check(used < 0.15);
    shmem_barrier_all();
    before = cpu_seconds();
    if (tap_me == 0)
        usleep(WAIT_US);
    shmem_barrier_all();
    used = cpu_seconds() - before;
    tap_check(used < 0.15);
    tap_point("a PE that waits long uses next to no CPU");
}

/* A store through shmem_ptr tells nobody; the sleeper must find it all the same. */
static void plain_stores_are_seen(void)
{
    int right = (tap_me + 1) % tap_n;
    long *there;

    if (!tap_all_near()) {
        tap_skip("a sleeping PE sees a plain store", "the PEs are on several nodes");
        return;
    }
    flag = 0;
    shmem_barrier_all();
    there = shmem_ptr(&flag, right);
    if (tap_me == 0)
        usleep(50 * 1000);
    else
        shmem_long_wait_until(&flag, SHMEM_CMP_EQ, 2);
    if (there)
        __atomic_store_n(there, 2, __ATOMIC_RELEASE);
    else
        shmem_long_p(&flag, 2, right); /* on another node */
    if (tap_me == 0)
        shmem_long_wait_until(&flag, SHMEM_CMP_EQ, 2);
    tap_check_eq(flag, 2);
    tap_point("a sleeping PE sees a plain store");
}

static void comparisons(void)
{
    ints[0] = -5;
    tap_check(shmem_int_test(ints, SHMEM_CMP_LT, 0));
    tap_check(shmem_int_test(ints, SHMEM_CMP_NE, 5));
    tap_check(shmem_int_test(ints, SHMEM_CMP_LE, -5));
    tap_check(!shmem_int_test(ints, SHMEM_CMP_GT, -5));
    tap_check(shmem_int_test(ints, SHMEM_CMP_GE, -5));
    words[0] = UINT64_MAX;
    tap_check(shmem_uint64_test(words, SHMEM_CMP_GT, 5));
    tap_check(!shmem_int64_test((int64_t *)words, SHMEM_CMP_GT, 5));
    tap_point("signed and unsigned words compare as what they are");
}

static void sets(void)
{
    size_t idx[8];
    int skip_all[4] = { 1, 1, 1, 1 }, skip_two[4] = { 0, 1, 1, 0 };
    int want[4] = { 0, 7, 8, 3 };

    for (int i = 0; i < 4; i++)
        ints[i] = i;
    tap_check_eq(shmem_int_test_any(ints, 0, NULL, SHMEM_CMP_EQ, 0), SIZE_MAX);
    tap_check_eq(shmem_int_wait_until_any(ints, 4, skip_all, SHMEM_CMP_EQ, 99), SIZE_MAX);
    tap_check_eq(shmem_int_wait_until_some(ints, 4, idx, skip_all, SHMEM_CMP_EQ, 99), 0);
    tap_check(shmem_int_test_all(ints, 0, NULL, SHMEM_CMP_EQ, 0) == 1);
    tap_check(shmem_int_test_all(ints, 4, skip_all, SHMEM_CMP_EQ, 99) == 1);
    tap_check_eq(shmem_int_test_any(ints, 4, NULL, SHMEM_CMP_EQ, 2), 2);
    tap_check_eq(shmem_int_test_any(ints, 4, skip_two, SHMEM_CMP_EQ, 2), SIZE_MAX);
    tap_check_eq(shmem_int_test_some(ints, 4, idx, NULL, SHMEM_CMP_GE, 2), 2);
    tap_check(idx[0] + idx[1] == 5 && (idx[0] == 2 || idx[0] == 3));
    tap_check(shmem_int_test_all_vector(ints, 4, skip_two, SHMEM_CMP_EQ, want) == 1);
    tap_check(shmem_int_test_all_vector(ints, 4, NULL, SHMEM_CMP_EQ, want) == 0);
    shmem_int_wait_until_all_vector(ints, 4, skip_two, SHMEM_CMP_EQ, want);
    tap_check_eq(shmem_int_wait_until_some_vector(ints, 4, idx, NULL, SHMEM_CMP_EQ, want), 2);
    tap_point("any, some, all: empty sets, masks and vectors");
}

/* Every true element of a set must come up, also when another one is always true. */
static void any_is_fair(void)
{
    int seen[4] = { 0 };

    for (int i = 0; i < 4; i++)
        words[i] = 1;
    for (int round = 0; round < 100; round++) {
        size_t i = shmem_uint64_wait_until_any(words, 4, NULL, SHMEM_CMP_EQ, 1);

        tap_check(i < 4);
        if (i < 4)
            seen[i]++;
    }
    tap_check(seen[0] && seen[1] && seen[2] && seen[3]);
    tap_point("wait_until_any starves no element");
}

static void signals(void)
{
    static long data[100];
    long mine[100];
    int right = (tap_me + 1) % tap_n, left = (tap_me + tap_n - 1) % tap_n;

    for (int round = 1; round <= 200; round++) {
        for (int i = 0; i < 100; i++)
            mine[i] = round * 1000 + tap_me;
        shmem_long_put_signal(data, mine, 100, &sig, 1, SHMEM_SIGNAL_ADD, right);
        tap_check(shmem_signal_wait_until(&sig, SHMEM_CMP_GE, (uint64_t)round) >= (uint64_t)round);
        tap_check_eq(data[0], round * 1000L + left);
        tap_check_eq(data[99], round * 1000L + left);
        shmem_barrier_all();
    }
    tap_check_eq(shmem_signal_fetch(&sig), 200);
    tap_point("a signal comes after its data");
}

int main(void)
{
    tap_init();
    idle_waits_are_cheap();
    plain_stores_are_seen();
    comparisons();
    sets();
    any_is_fair();
    signals();
    return tap_done();
}
