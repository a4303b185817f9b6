/* SPDX-License-Identifier: BSD-3-Clause */
/* The device as a whole: lock, start and stop, link state, death, fork. */
#include "hca/hca.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hca/objects.h"
#include "uverbs/uverbs.h"

struct hca hca_devices[HCA_MAX_DEVICES];
_Thread_local struct hca *hca_current = &hca_devices[0];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int waiters;              /* commands that want the lock; engines step back (atomic) */
static int engines_waiting;      /* atomic */
static const struct hca *last_engine; /* atomic: whose round was the last one */

enum { STEP_BACK = 200, STEP_BACK_NS = 10000 };

uint64_t hca_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void hca_lock(struct hca *hca)
{
    __atomic_add_fetch(&waiters, 1, __ATOMIC_RELAXED);
    pthread_mutex_lock(&lock);
    __atomic_sub_fetch(&waiters, 1, __ATOMIC_RELAXED);
    hca_current = hca;
}

void hca_unlock(struct hca *hca)
{
    (void)hca;
    pthread_mutex_unlock(&lock);
}

/*
 * Engines take the lock all the time, and mutexes are not fair: without the step back commands would starve, and so would
 * the device whose engine sleeps while another one goes round and round.  For a command it sleeps: a real-time thread yields
 * to nobody but its like.
 */
void hca_lock_engine(struct hca *hca)
{
    const struct timespec rest = { 0, STEP_BACK_NS };

    while (__atomic_load_n(&waiters, __ATOMIC_RELAXED) > 0)
        nanosleep(&rest, NULL);
    __atomic_add_fetch(&engines_waiting, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < STEP_BACK && __atomic_load_n(&engines_waiting, __ATOMIC_RELAXED) > 1
                    && __atomic_load_n(&last_engine, __ATOMIC_RELAXED) == hca; i++)
        sched_yield();
    pthread_mutex_lock(&lock);
    __atomic_sub_fetch(&engines_waiting, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&last_engine, hca, __ATOMIC_RELAXED);
    hca_current = hca;
}

void hca_unlock_engine(struct hca *hca)
{
    (void)hca;
    pthread_mutex_unlock(&lock);
}

static int identify(struct hca *hca)
{
    int err;

    if (hca->identified)
        return 0;
    hca->link_up = true;
    err = eng_open(hca);
    if (err)
        return err;
    hca->identified = true;
    return 0;
}

int hca_device_identify(unsigned index)
{
    struct hca *hca = &hca_devices[index], *before = hca_current;
    int err;

    hca_lock(hca);
    err = identify(hca);
    hca_unlock(hca);
    hca_current = before;
    return err;
}

int hca_device_start(unsigned index)
{
    struct hca *hca = &hca_devices[index];
    int err;

    hca_lock(hca);
    err = identify(hca);
    if (!err && !hca->started) {
        err = eng_start(hca);
        hca->started = !err;
    }
    hca_unlock(hca);
    return err;
}

void hca_device_stop(void)
{
    for (unsigned i = 0; i < HCA_MAX_DEVICES; i++) {
        struct hca *hca = &hca_devices[i];
        bool started;

        hca_lock(hca);
        started = hca->started;
        hca->started = false;
        hca_unlock(hca);
        if (started)
            eng_stop(hca);
    }
    hca_current = &hca_devices[0];
}

void hca_port_set(struct hca *hca, bool up)
{
    if (hca->link_up == up)
        return;
    hca->link_up = up;
    uv_event_port(hca, up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR);
    eng_port_changed(hca);
}

void hca_die(struct hca *hca)
{
    if (hca->dead)
        return;
    hca->dead = true;
    uv_event_device_fatal(hca);
    eng_port_changed(hca);
}

/* No command and no engine round is under way while the process is copied. */
void hca_fork_prepare(void)
{
    hca_lock(hca_current);
    uv_fork_lock();
}

void hca_fork_parent(void)
{
    uv_fork_unlock();
    hca_unlock(hca_current);
}

/* The child starts without a device: contexts of the parent are dead in it, a new open makes a new port. */
void hca_fork_child(void)
{
    bool any = false;            /* else nothing was ever made, and most programs fork without a device */

    uv_fork_unlock();
    for (unsigned i = 0; i < HCA_MAX_DEVICES; i++) {
        struct hca *hca = &hca_devices[i];

        if (!hca->identified)
            continue;
        hca_current = hca;
        eng_forked(hca);
        if (!any)
            uv_forked();
        any = true;
        memset(hca, 0, sizeof *hca);
    }
    hca_current = &hca_devices[0];
    __atomic_store_n(&waiters, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&engines_waiting, 0, __ATOMIC_RELAXED);
    hca_unlock(hca_current);
}
