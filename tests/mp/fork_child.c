/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fork_child.c - a forked child has its own copy of static data, its exit is no PE's exit, and it cannot pass for a PE.
 *
 * run: n=1,2,3
 */
#include "tap.h"

#include <pthread.h>
#include <sys/wait.h>

static long value = 5;
static long from_peer;

/* What the child finds; it must not touch the parent's memory whatever it does. */
static int child(void)
{
    int bad = 0;

    bad |= value != 6;      /* as the parent had it at fork */
    value = 99;             /* stays here */
    usleep(100 * 1000);     /* meanwhile the parent and peers write */
    bad |= value != 99;
    bad |= from_peer != 0;
    return bad;
}

static void children_are_private(void)
{
    int status = -1;
    pid_t pid;

    value = 6;
    fflush(stdout);
    pid = fork();
    if (pid == 0)
        _exit(child());
    value = 7;
    shmem_barrier_all();
    shmem_long_p(&from_peer, 1, (tap_me + 1) % tap_n);
    tap_check(waitpid(pid, &status, 0) == pid && status == 0);
    shmem_barrier_all();
    tap_check_eq(value, 7);
    tap_check_eq(from_peer, 1);
    tap_point("parent and child each keep their own static data");
}

/* exit() in a child runs the library's exit handler: it must see that this is not the PE. */
static void child_exit_is_harmless(void)
{
    int status = -1;
    pid_t pid;

    fflush(stdout);
    pid = fork();
    if (pid == 0)
        exit(0);
    tap_check(waitpid(pid, &status, 0) == pid && status == 0);
    shmem_barrier_all();
    shmem_long_atomic_add(&value, 1, (tap_me + 1) % tap_n);
    shmem_barrier_all();
    tap_check_eq(value, 8);
    tap_point("the exit of a child leaves the PE working");
}

static void system_works(void)
{
    tap_check(system("exit 3") == 3 << 8);
    shmem_barrier_all();
    tap_check_eq(value, 8);
    tap_point("system() works");
}

/* Forks, lets the child do it with its standard error out of the way, and returns its wait status. */
static int in_child(void (*doing)(void))
{
    int status = -1;
    pid_t pid;

    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        close(STDERR_FILENO);
        doing();
        _exit(0);
    }
    tap_check(waitpid(pid, &status, 0) == pid);
    return status;
}

static void allocate(void)
{
    shmem_malloc(8);
}

static void reduce(void)
{
    static long one = 1, sum;

    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &sum, &one, 1);
}

/* The members would take the child's arrival for the PE's: the next barrier would let them through too early. */
static void child_is_no_pe(void)
{
    tap_check_eq(in_child(shmem_barrier_all), 1 << 8);
    tap_check_eq(in_child(allocate), 1 << 8);
    tap_check_eq(in_child(reduce), 1 << 8);
    tap_check_eq(in_child(shmem_finalize), 0);
    shmem_barrier_all();
    if (tap_me == tap_n - 1)
        usleep(200 * 1000);
    from_peer = 2; /* on the last PE later than on the others */
    shmem_barrier_all();
    tap_check_eq(shmem_long_g(&from_peer, tap_n - 1), 2);
    tap_point("a child's collectives are refused, its finalize is ignored, and the PEs still meet");
}

static void *fork_often(void *bad)
{
    for (int i = 0; i < 10; i++) {
        int status = -1;
        pid_t pid = fork();

        if (pid == 0) {
            int wrong = value != 8;

            value = 99;
            _exit(wrong);
        }
        if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
            __atomic_store_n((int *)bad, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

static void threads_fork(void)
{
    pthread_t threads[4];
    int bad = 0;

    for (int i = 0; i < 4; i++)
        tap_check_eq(pthread_create(&threads[i], NULL, fork_often, &bad), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    tap_check_eq(bad, 0);
    tap_check_eq(value, 8);
    tap_point("threads may fork at the same time");
}

/* As daemons do, which close all that they do not know. */
static void descriptors_closed(void)
{
    int status = -1;
    pid_t pid;

    if (!tap_all_near()) {
        tap_skip("a fork after all descriptors were closed", "the NIC's are among them");
        return;
    }
    for (int fd = 3; fd < 256; fd++)
        close(fd);
    fflush(stdout);
    pid = fork();
    if (pid == 0) {
        int wrong = value != 8;

        value = 99;
        _exit(wrong);
    }
    tap_check(waitpid(pid, &status, 0) == pid && status == 0);
    tap_check_eq(value, 8);
    tap_point("a fork after all descriptors were closed");
}

int main(void)
{
    const char *launcher = getenv("PMIX_NAMESPACE");
    int status;

    tap_init();
    children_are_private();
    child_exit_is_harmless();
    system_works();
    child_is_no_pe();
    threads_fork();
    if (launcher || getenv("SOFTHCA_DIR"))
        return tap_done(); /* PMIx needs its descriptors, and so does a virtual NIC */
    descriptors_closed();
    status = tap_done();
    return value == 8 ? status : 1; /* finalize gave the data back, too */
}
