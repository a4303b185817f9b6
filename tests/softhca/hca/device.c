/* SPDX-License-Identifier: BSD-3-Clause */
/* The device as a whole: lock, start and stop, link state, death, fork. */
#include "hca/hca.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hca/objects.h"
#include "uverbs/uverbs.h"

struct hca hca_device = { .lock = PTHREAD_MUTEX_INITIALIZER };

static bool identified;          /* guarded by the device lock */

uint64_t hca_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void hca_lock(struct hca *hca)
{
    __atomic_add_fetch(&hca->waiters, 1, __ATOMIC_RELAXED);
    pthread_mutex_lock(&hca->lock);
    __atomic_sub_fetch(&hca->waiters, 1, __ATOMIC_RELAXED);
}

void hca_unlock(struct hca *hca)
{
    pthread_mutex_unlock(&hca->lock);
}

/* The engine takes the lock all the time, and mutexes are not fair: without the step back commands would starve. */
void hca_lock_engine(struct hca *hca)
{
    while (__atomic_load_n(&hca->waiters, __ATOMIC_RELAXED) > 0)
        sched_yield();
    pthread_mutex_lock(&hca->lock);
}

void hca_unlock_engine(struct hca *hca)
{
    pthread_mutex_unlock(&hca->lock);
}

static int identify(struct hca *hca)
{
    int err;

    if (identified)
        return 0;
    hca->link_up = true;
    err = eng_open(hca);
    if (err)
        return err;
    identified = true;
    return 0;
}

int hca_device_identify(void)
{
    int err;

    hca_lock(&hca_device);
    err = identify(&hca_device);
    hca_unlock(&hca_device);
    return err;
}

int hca_device_start(void)
{
    struct hca *hca = &hca_device;
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
    bool started;

    hca_lock(&hca_device);
    started = hca_device.started;
    hca_device.started = false;
    hca_unlock(&hca_device);
    if (started)
        eng_stop(&hca_device);
}

void hca_port_set(struct hca *hca, bool up)
{
    if (hca->link_up == up)
        return;
    hca->link_up = up;
    uv_event_port(up ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR);
    eng_port_changed(hca);
}

void hca_die(struct hca *hca)
{
    if (hca->dead)
        return;
    hca->dead = true;
    uv_event_device_fatal();
    eng_port_changed(hca);
}

/* No command and no engine round is under way while the process is copied. */
void hca_fork_prepare(void)
{
    hca_lock(&hca_device);
    uv_fork_lock();
}

void hca_fork_parent(void)
{
    uv_fork_unlock();
    hca_unlock(&hca_device);
}

/* The child starts without a device: contexts of the parent are dead in it, a new open makes a new port. */
void hca_fork_child(void)
{
    struct hca *hca = &hca_device;

    uv_fork_unlock();
    if (identified) {            /* else nothing was ever made, and most programs fork without a device */
        eng_forked(hca);
        uv_forked();
        memset((uint8_t *)hca + sizeof hca->lock, 0, sizeof *hca - sizeof hca->lock);
        identified = false;
    }
    __atomic_store_n(&hca->waiters, 0, __ATOMIC_RELAXED);
    hca_unlock(hca);
}

_Static_assert(offsetof(struct hca, lock) == 0, "everything behind the lock is cleared");
