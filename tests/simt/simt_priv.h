/* SPDX-License-Identifier: BSD-3-Clause */
/* simt_priv.h - lanes, warps and blocks as the executor's files see them. */
#ifndef SIMT_PRIV_H
#define SIMT_PRIV_H

#ifndef SHMEMI_SIMT
#define SHMEMI_SIMT 1
#endif
#include "shmem/device/port.h"
#include "simt.h"

#include <pthread.h>
#include <stdbool.h>

enum lane_state { LANE_READY, LANE_AT_ACTIVE, LANE_AT_WARP, LANE_AT_BLOCK, LANE_ENDED };

struct warp;
struct block;
struct launch;

struct lane {
    struct shmemi_simt_place place;
    struct launch *launch;
    struct block *block;
    struct warp *warp;
    int state; /* enum lane_state; in SIMT_THREADS also the futex that the lane sleeps on */
    bool in_ready, asleep;
    uint32_t ready_at; /* place in launch->ready */
    uint64_t random;
    /* the warp call it is in */
    enum shmemi_simt_call call;
    uint32_t mask, src;
    uint64_t value, result;
    const void *site;
    /* fibre */
    void *sp, *stack;
    pthread_t thread;
};

struct warp {
    struct lane *lane[32];
    uint32_t lanes; /* mask of those that exist */
    char order[32]; /* addresses that stand for the order a warp sync makes, by the mask's lowest lane */
};

enum { ARENA_BYTES = 64 << 10, ARENA_SITES = 32 };

struct block {
    struct warp *warps;
    struct lane *lanes;
    uint32_t n, live, waiting;
    char *arena; /* shared memory, handed out by place in the source */
    size_t arena_used;
    const void *sites[ARENA_SITES];
    char *site_mem[ARENA_SITES];
    char order;
};

struct launch {
    struct simt_grid grid;
    void (*kernel)(void *arg);
    void *arg;
    struct block *blocks;
    struct lane *lanes;
    uint32_t n, live, n_ready;
    struct lane **ready; /* those that the scheduler may pick */
    uint64_t random, pauses, deadline_ns;
    uint32_t blocked; /* SIMT_THREADS: lanes asleep */
    int lock;         /* SIMT_THREADS */
    int error;
    void *sp; /* the scheduler's */
};

uint64_t simt_random(uint64_t *state);
uint64_t simt_now_ns(void);
/* Says what is wrong and where every lane stands. */
void simt_complain(struct launch *l, const char *what);

/* The running lane, or NULL: a thread of its own. */
struct lane *simt_self(void);
void simt_set_self(struct lane *lane);

/* The lock that all warp and block calls hold (fibres need none). */
void simt_lock(struct launch *l);
void simt_unlock(struct launch *l);
/* With the lock held: lane sleeps until its state is LANE_READY again; makes another lane so. Returns with
 * the lock. */
void simt_sleep(struct lane *lane);
void simt_wake(struct lane *lane);
/* Ends the launch from within a lane. */
void simt_fail(struct lane *lane, int error, const char *what);

/* The same calls and pauses, of fibres. */
void simt_fibre_sleep(struct lane *lane);
void simt_fibre_wake(struct lane *lane);
void simt_fibre_pause(struct lane *lane);
void simt_fibre_step(struct lane *lane);
void simt_fibre_fail(struct lane *lane, int error, const char *what);

int simt_run_fibres(struct launch *l);
int simt_run_threads(struct launch *l);
/* A lane has returned from the kernel (lock held): what others wait for may be complete now. */
void simt_lane_ended(struct lane *lane);
/* Lane stands at shmemi_active_mask (lock held): forms the group that it goes on with. */
void simt_release_active(struct lane *lane, bool all);

#endif
