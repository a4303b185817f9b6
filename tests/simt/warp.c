/* SPDX-License-Identifier: BSD-3-Clause */
/* Warp and block calls: who waits for whom, and what each gets. */
#include "simt_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ThreadSanitizer's, when it is there: what a lane did before a sync is ordered before what others do behind
 * it. */
void __tsan_acquire(void *addr) __attribute__((weak));
void __tsan_release(void *addr) __attribute__((weak));

static void order_before(void *addr)
{
    if (__tsan_release)
        __tsan_release(addr);
}

static void order_after(void *addr)
{
    if (__tsan_acquire)
        __tsan_acquire(addr);
}

/* ---- warps ---- */

static bool is_with(const struct lane *lane, const struct lane *other)
{
    return other->state == LANE_AT_WARP && other->call == lane->call && other->mask == lane->mask;
}

static void give_results(const struct warp *w, const struct lane *first)
{
    uint32_t votes = 0;
    uint64_t values[32] = { 0 };

    for (uint32_t i = 0; i < 32; i++) {
        if (!(first->mask >> i & 1) || w->lane[i]->state == LANE_ENDED)
            continue;
        values[i] = w->lane[i]->value;
        votes |= values[i] ? 1u << i : 0;
    }
    for (uint32_t i = 0; i < 32; i++) {
        struct lane *lane = w->lane[i];
        uint32_t same = 0;

        if (!(first->mask >> i & 1) || lane->state == LANE_ENDED)
            continue;
        for (uint32_t j = 0; j < 32; j++)
            if (first->mask >> j & 1 && w->lane[j]->state != LANE_ENDED && values[j] == values[i])
                same |= 1u << j;
        lane->result = lane->call == SHMEMI_SIMT_BALLOT  ? votes
                       : lane->call == SHMEMI_SIMT_SHFL  ? values[lane->src % 32]
                       : lane->call == SHMEMI_SIMT_MATCH ? same
                                                         : 0;
    }
}

/* Have all come that this lane waits for?  Then all go on. */
static bool try_warp(struct lane *lane)
{
    struct warp *w = lane->warp;
    uint32_t mask = lane->mask;

    for (uint32_t i = 0; i < 32; i++)
        if (mask >> i & 1 && w->lane[i]->state != LANE_ENDED && !is_with(lane, w->lane[i]))
            return false;
    give_results(w, lane);
    for (uint32_t i = 0; i < 32; i++)
        if (mask >> i & 1 && w->lane[i]->state == LANE_AT_WARP)
            simt_wake(w->lane[i]);
    return true;
}

/* Two lanes that wait for each other in different calls never meet. */
static bool contradicts(const struct lane *lane)
{
    for (uint32_t i = 0; i < 32; i++) {
        const struct lane *other = lane->warp->lane[i];

        if (lane->mask >> i & 1 && other->state == LANE_AT_WARP &&
            other->mask >> lane->place.thread % 32 & 1 && !is_with(lane, other))
            return true;
    }
    return false;
}

static uint32_t at_active(struct lane *lane, const void *site)
{
    struct launch *l = lane->launch;

    simt_lock(l);
    lane->site = site;
    lane->state = LANE_AT_ACTIVE;
    if (l->grid.mode == SIMT_THREADS) {
        simt_unlock(l);
        for (uint64_t i = simt_random(&lane->random) % 8; i-- > 0;)
            sched_yield();
        simt_lock(l);
        if (lane->state == LANE_AT_ACTIVE)
            simt_release_active(lane, true);
    } else {
        simt_sleep(lane);
    }
    simt_unlock(l);
    return (uint32_t)lane->result;
}

void simt_release_active(struct lane *lane, bool all)
{
    struct lane *group[32];
    uint32_t mask = 0, n = 0;

    for (uint32_t i = 0; i < 32; i++) {
        struct lane *other = lane->warp->lane[i];

        if (!other || other->state != LANE_AT_ACTIVE || other->site != lane->site)
            continue;
        if (other != lane && !all && simt_random(&lane->launch->random) % 2)
            continue;
        group[n++] = other;
        mask |= 1u << i;
    }
    for (uint32_t i = 0; i < n; i++) {
        group[i]->result = mask;
        simt_wake(group[i]);
    }
}

uint64_t shmemi_simt_warp(enum shmemi_simt_call call, uint32_t mask, uint64_t v, uint32_t src)
{
    struct lane *lane = simt_self();
    char *order;

    if (!lane) /* one lane */
        return call == SHMEMI_SIMT_SHFL ? v : call == SHMEMI_SIMT_BALLOT ? v != 0 : call != SHMEMI_SIMT_SYNC;
    if (call == SHMEMI_SIMT_ACTIVE)
        return at_active(lane, __builtin_return_address(0));
    if (!(mask >> lane->place.thread % 32 & 1))
        simt_fail(lane, -EINVAL, "a lane is not in the mask of its own warp call");
    if (mask & ~lane->warp->lanes)
        simt_fail(lane, -EINVAL, "the mask of a warp call names lanes that the warp has not");
    order = &lane->warp->order[__builtin_ctz(mask)];
    if (call == SHMEMI_SIMT_SYNC)
        order_before(order);
    simt_lock(lane->launch);
    lane->call = call;
    lane->mask = mask;
    lane->value = v;
    lane->src = src;
    lane->state = LANE_AT_WARP;
    if (contradicts(lane)) {
        simt_unlock(lane->launch);
        simt_fail(lane, -EINVAL,
                  "lanes that wait for each other are in different warp calls, or have different masks");
    }
    if (!try_warp(lane))
        simt_sleep(lane);
    simt_unlock(lane->launch);
    if (call == SHMEMI_SIMT_SYNC)
        order_after(order);
    return lane->result;
}

/* ---- blocks ---- */

static bool try_block(struct block *b)
{
    if (b->waiting == 0 || b->waiting < b->live)
        return false;
    b->waiting = 0;
    for (uint32_t i = 0; i < b->n; i++)
        if (b->lanes[i].state == LANE_AT_BLOCK)
            simt_wake(&b->lanes[i]);
    return true;
}

void shmemi_simt_block_sync(void)
{
    struct lane *lane = simt_self();

    if (!lane)
        return;
    order_before(&lane->block->order);
    simt_lock(lane->launch);
    lane->state = LANE_AT_BLOCK;
    lane->block->waiting++;
    if (!try_block(lane->block))
        simt_sleep(lane);
    simt_unlock(lane->launch);
    order_after(&lane->block->order);
}

void simt_lane_ended(struct lane *lane)
{
    lane->state = LANE_ENDED;
    lane->block->live--;
    try_block(lane->block);
    for (uint32_t i = 0; i < 32; i++) {
        struct lane *other = lane->warp->lane[i];

        if (other && other->state == LANE_AT_WARP && other->mask >> lane->place.thread % 32 & 1)
            try_warp(other);
    }
}

void *shmemi_simt_shared(const void *site, size_t bytes, void *own)
{
    struct lane *lane = simt_self();
    struct block *b;
    uint32_t i;

    if (!lane)
        return own;
    b = lane->block;
    simt_lock(lane->launch);
    for (i = 0; i < ARENA_SITES && b->sites[i] && b->sites[i] != site; i++)
        ;
    bytes = (bytes + 63) / 64 * 64;
    if (i == ARENA_SITES || (!b->sites[i] && b->arena_used + bytes > ARENA_BYTES)) {
        simt_unlock(lane->launch);
        simt_fail(lane, -ENOMEM, "a block's shared memory is used up");
    }
    if (!b->sites[i]) {
        b->sites[i] = site;
        b->site_mem[i] = b->arena + b->arena_used;
        b->arena_used += bytes;
    }
    simt_unlock(lane->launch);
    return b->site_mem[i];
}
