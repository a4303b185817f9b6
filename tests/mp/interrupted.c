/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * interrupted.c - a timer that interrupts system calls all the time, as profilers have, disturbs nothing.
 *
 * run: n=1,2,3
 */
#include "tap.h"

#include <sys/time.h>

static volatile sig_atomic_t hits;
static long flag;

static void on_timer(int sig)
{
    (void)sig;
    hits++;
}

static void set_timer(long microseconds)
{
    struct itimerval t = { { 0, microseconds }, { 0, microseconds } };

    setitimer(ITIMER_REAL, &t, NULL);
}

static void wait_and_meet(void)
{
    for (int i = 1; i <= 50; i++) {
        void *block = shmem_malloc(4096);

        tap_check(block != NULL);
        if (tap_me == tap_n - 1) {
            usleep(3000);
            for (int pe = 0; pe < tap_n; pe++)
                shmem_long_p(&flag, i, pe);
        }
        shmem_long_wait_until(&flag, SHMEM_CMP_GE, i);
        shmem_barrier_all();
        tap_check_eq(flag, i);
        shmem_free(block);
    }
}

int main(void)
{
    struct sigaction restart_nothing = { .sa_handler = on_timer };

    shmem_init();
    tap_attach();
    alarm(0); /* the watchdog of tap.h uses the same timer; the driver has another */
    sigaction(SIGALRM, &restart_nothing, NULL);
    set_timer(500);
    wait_and_meet();
    for (int i = 0; i < 10; i++) {
        shmem_finalize();
        shmem_init();
    }
    wait_and_meet();
    set_timer(0);
    tap_check(hits > 20);
    tap_point("waits, allocations and ten starts under a timer of 0.5 ms");
    return tap_done();
}
