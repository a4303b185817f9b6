/* SPDX-License-Identifier: BSD-3-Clause */
/* fork_child.c - a forked child has its own copy of static data, and its exit is no PE's exit. */
#include "tap.h"

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

int main(void)
{
    tap_init();
    children_are_private();
    child_exit_is_harmless();
    system_works();
    return tap_done();
}
