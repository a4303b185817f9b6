/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lanes as threads.  This folder is compiled without ThreadSanitizer, and its lock and its sleeping are made
 * of what the sanitizer does not see: so the executor itself puts no order between lanes that a GPU would
 * not.
 */
#include "simt_priv.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { STACK_BYTES = 256 << 10, STUCK = 3 };

static bool is_threads(const struct lane *lane)
{
    return lane->launch->grid.mode == SIMT_THREADS;
}

static void futex_wait(int *word, int value, uint32_t ms)
{
    struct timespec t = { ms / 1000, (long)(ms % 1000) * 1000000 };

    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &t, NULL, 0);
}

static void futex_wake(int *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

void simt_lock(struct launch *l)
{
    if (l->grid.mode == SIMT_FIBRES)
        return;
    while (__atomic_exchange_n(&l->lock, 1, __ATOMIC_ACQUIRE))
        sched_yield();
}

void simt_unlock(struct launch *l)
{
    if (l->grid.mode == SIMT_THREADS)
        __atomic_store_n(&l->lock, 0, __ATOMIC_RELEASE);
}

/* Other lanes still run, so there is no way back to the launcher. */
static void end_process(struct launch *l, const char *what)
{
    simt_complain(l, what);
    _exit(STUCK);
}

static void check_deadlock(struct launch *l)
{
    if (l->blocked && l->blocked == l->live)
        end_process(l, "deadlock");
}

void simt_sleep(struct lane *lane)
{
    struct launch *l = lane->launch;
    int state;

    if (!is_threads(lane)) {
        simt_fibre_sleep(lane);
        return;
    }
    lane->asleep = true;
    l->blocked++;
    check_deadlock(l);
    simt_unlock(l);
    while ((state = __atomic_load_n(&lane->state, __ATOMIC_ACQUIRE)) != LANE_READY)
        futex_wait(&lane->state, state, 1000);
    simt_lock(l);
}

void simt_wake(struct lane *lane)
{
    if (!is_threads(lane)) {
        simt_fibre_wake(lane);
        return;
    }
    if (lane->asleep) {
        lane->asleep = false;
        lane->launch->blocked--;
    }
    __atomic_store_n(&lane->state, LANE_READY, __ATOMIC_RELEASE);
    futex_wake(&lane->state);
}

void simt_fail(struct lane *lane, int error, const char *what)
{
    if (!is_threads(lane))
        simt_fibre_fail(lane, error, what);
    end_process(lane->launch, what);
}

void shmemi_simt_pause(void)
{
    struct lane *lane = simt_self();

    if (lane && !is_threads(lane))
        simt_fibre_pause(lane);
    else
        sched_yield();
}

void shmemi_simt_step(void)
{
    struct lane *lane = simt_self();

    if (!lane)
        return;
    if (!is_threads(lane))
        simt_fibre_step(lane);
    else if (simt_random(&lane->random) % 32 == 0)
        sched_yield();
}

static void *lane_main(void *arg)
{
    struct lane *lane = arg;
    struct launch *l = lane->launch;

    simt_set_self(lane);
    l->kernel(l->arg);
    simt_set_self(NULL);
    simt_lock(l);
    simt_lane_ended(lane);
    l->live--;
    if (l->live == 0)
        futex_wake((int *)&l->live);
    check_deadlock(l);
    simt_unlock(l);
    return NULL;
}

int simt_run_threads(struct launch *l)
{
    pthread_attr_t attr;
    uint32_t left;

    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    for (uint32_t i = 0; i < l->n; i++) {
        int rc = pthread_create(&l->lanes[i].thread, &attr, lane_main, &l->lanes[i]);

        if (rc)
            end_process(l, "no more threads");
    }
    pthread_attr_destroy(&attr);
    while ((left = __atomic_load_n(&l->live, __ATOMIC_ACQUIRE)) != 0) {
        futex_wait((int *)&l->live, (int)left, 100);
        if (simt_now_ns() > l->deadline_ns)
            end_process(l, "lanes still spin when the time is up");
    }
    for (uint32_t i = 0; i < l->n; i++)
        pthread_join(l->lanes[i].thread, NULL);
    return 0;
}
