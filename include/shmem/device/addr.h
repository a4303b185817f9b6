/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * addr.h - from a symmetric address and a PE to an address that this GPU can load and store, and what happens when
 * there is none.
 *
 * PE numbers and the heap that an address lies in are always looked at; the end of a range with MARROW_CHECK=1 only.
 */
#ifndef SHMEM_DEVICE_ADDR_H
#define SHMEM_DEVICE_ADDR_H

#include "scope.h"

#ifdef SHMEMI_DEVICE_CODE

/* Is the NIC's path part of this code?  A program whose kernels stay within a node may leave it out. */
#if defined(SHMEMX_NO_DEVICE_NIC)
#define SHMEMI_NIC_PATH 0
#else
#define SHMEMI_NIC_PATH 1
#endif

SHMEMI_DEV int shmemi_dev_nic(void)
{
    return SHMEMI_NIC_PATH && shmemi_dev_state.nic.queues != 0;
}

/* Do atomics go through it, to this PE and near ones too? */
SHMEMI_DEV int shmemi_dev_nic_amos(void)
{
    return SHMEMI_NIC_PATH && (shmemi_dev_state.nic.flags & SHMEMI_DEV_NIC_ATOMICS) != 0;
}

/* While a kernel lives, the host can read the queue that has failed; no longer than it may take to explain it. */
SHMEMI_DEV_COLD void shmemi_dev_linger(struct shmemi_dev_report *r)
{
    uint64_t until = shmemi_now_ns() + 10000000000u;

    while (!SHMEMI_LD_RLX(&r->stop) && shmemi_now_ns() < until)
        SHMEMI_PAUSE();
}

/* Leaves a record for the host, which prints it and ends the job, and ends the kernel. */
SHMEMI_DEV_LAST void shmemi_dev_fail(uint32_t error, uint32_t call, uint64_t a, uint64_t b, uint64_t c)
{
    struct shmemi_dev_report *r = shmemi_dev_state.report;
    uint32_t unclaimed = 0;

    if (shmemi_dev_state.n_pes == 0)
        shmemi_not_started();
    if (r && SHMEMI_CAS_RLX(&r->error_claim, &unclaimed, 1u)) {
        r->error_args[0] = call;
        r->error_args[1] = a;
        r->error_args[2] = b;
        r->error_args[3] = c;
        SHMEMI_ST_REL(&r->error, error); /* pairs with the watchdog's acquire */
        SHMEMI_FENCE_SC();               /* the record leaves the GPU before the kernel dies */
    }
    if (r && error == SHMEMI_DEV_NIC)
        shmemi_dev_linger(r);
    shmemi_trap();
    shmemi_gone();
}

/* 0: this PE cannot reach it. */
SHMEMI_DEV uint64_t shmemi_dev_base(int world, int device_heap)
{
    if (world < SHMEMI_DEV_NEAR)
        return device_heap ? shmemi_dev_state.near[world].dheap : shmemi_dev_state.near[world].heap;
    return device_heap ? shmemi_dev_state.peers[world].dheap : shmemi_dev_state.peers[world].heap;
}

SHMEMI_DEV void shmemi_dev_check_pe(int world, uint32_t call)
{
    if ((uint32_t)world >= (uint32_t)shmemi_dev_state.n_pes)
        shmemi_dev_fail(SHMEMI_DEV_BAD_PE, call, (uint64_t)(int64_t)world, (uint64_t)shmemi_dev_state.n_pes, 0);
}

/* Where the symmetric address lies on world PE `world`; 0 for a local address or a PE out of reach. */
SHMEMI_DEV uint64_t shmemi_dev_try(const void *addr, int world, uint64_t *room_out)
{
    uint64_t off = (uint64_t)(uintptr_t)addr - shmemi_dev_state.dheap_base, base;
    int device_heap = off < shmemi_dev_state.dheap_len;

    *room_out = shmemi_dev_state.dheap_len - off;
    if (!device_heap) {
        off = (uint64_t)(uintptr_t)addr - shmemi_dev_state.heap_base;
        *room_out = off < shmemi_dev_state.heap_len ? shmemi_dev_state.heap_len - off : 0;
    }
    base = *room_out ? shmemi_dev_base(world, device_heap) : 0;
    return base ? base + off : 0;
}

SHMEMI_DEV void shmemi_dev_check_word(const void *addr, uint32_t size, uint32_t call)
{
    if (((uintptr_t)addr & (size - 1)) != 0)
        shmemi_dev_fail(SHMEMI_DEV_MISALIGNED, call, (uint64_t)(uintptr_t)addr, size, 0);
}

/* What shmemi_dev_locate does not see at once: the host heap, ranges to be looked at, and what is wrong.  or_far: 0 for a far PE. */
SHMEMI_DEV uint64_t shmemi_dev_search(const void *addr, uint64_t len, uint32_t align, int world, uint32_t call, int or_far)
{
    uint64_t room, at;

    shmemi_dev_check_pe(world, call);
    at = shmemi_dev_try(addr, world, &room);
    if (!at && (!room || !or_far || !shmemi_dev_nic()))
        shmemi_dev_fail(room ? SHMEMI_DEV_UNREACHABLE : SHMEMI_DEV_BAD_ADDRESS, call, (uint64_t)(uintptr_t)addr, len,
                        (uint64_t)world);
    if (shmemi_dev_state.check && len > room)
        shmemi_dev_fail(SHMEMI_DEV_BAD_RANGE, call, (uint64_t)(uintptr_t)addr, len, (uint64_t)world);
    shmemi_dev_check_word(addr, align, call);
    return at;
}

SHMEMI_DEV_COLD uint64_t shmemi_dev_look_up(const void *addr, uint64_t len, uint32_t align, int world, uint32_t call)
{
    return shmemi_dev_search(addr, len, align, world, call, 0);
}

/*
 * Device heaps that stores reach take one branch: true, and where it is.  What is not found so is left to a function: to
 * shmemi_dev_look_up, or to one that goes the NIC's way where only that leads there, so that the path of loads and stores is
 * left by this branch and no other.
 */
SHMEMI_DEV int shmemi_dev_found(const void *addr, uint32_t align, int world, uint64_t *at_out)
{
    uint64_t off = (uint64_t)(uintptr_t)addr - shmemi_dev_state.dheap_base, base = 0;

    if ((uint32_t)world < (uint32_t)shmemi_dev_state.n_pes && !shmemi_dev_state.check)
        base = shmemi_dev_base(world, 1);
    *at_out = base + off;
    return SHMEMI_LIKELY((base != 0) & (off < shmemi_dev_state.dheap_len) & ((off & (align - 1)) == 0));
}

/* Not found so, but a device heap's all the same, to which only the NIC leads, and nobody wants a closer look. */
SHMEMI_DEV int shmemi_dev_only_nic(const void *addr, uint32_t align, int world)
{
    uint64_t off = (uint64_t)(uintptr_t)addr - shmemi_dev_state.dheap_base;

    return shmemi_dev_nic() && (uint32_t)world < (uint32_t)shmemi_dev_state.n_pes && !shmemi_dev_state.check &&
           off < shmemi_dev_state.dheap_len && (off & (align - 1)) == 0 && !shmemi_dev_base(world, 1);
}

SHMEMI_DEV uint64_t shmemi_dev_locate(const void *addr, uint64_t len, uint32_t align, int world, uint32_t call)
{
    uint64_t at;

    if (!shmemi_dev_found(addr, align, world, &at))
        at = shmemi_dev_look_up(addr, len, align, world, call);
    return at;
}

/* Where nothing but loads and stores will do. */
SHMEMI_DEV char *shmemi_dev_remote(const void *addr, uint64_t len, int world, uint32_t call)
{
    uint64_t at = shmemi_dev_locate(addr, len, 1, world, call);

    SHMEMI_ASSUME_GLOBAL((char *)(uintptr_t)at);
    return (char *)(uintptr_t)at;
}

/* ---- teams and contexts ---- */

/* n_pes is 0 when the handle is of no live team of this PE. */
SHMEMI_DEV struct shmemi_dev_team shmemi_dev_team_find(shmem_team_t team)
{
    uint64_t h = (uint64_t)(uintptr_t)team;
    uint32_t slot = (uint32_t)(h & 0xffff) - 1;
    struct shmemi_dev_team t;

    if (slot < SHMEMI_DEV_NEAR_TEAMS)
        t = shmemi_dev_state.near_teams[slot];
    else if (slot < shmemi_dev_state.n_teams)
        t = shmemi_dev_state.teams[slot];
    else
        t.n_pes = 0;
    if (t.n_pes && t.generation != (uint32_t)(h >> 16))
        t.n_pes = 0;
    return t;
}

SHMEMI_DEV struct shmemi_dev_team shmemi_dev_team_get(shmem_team_t team, uint32_t call)
{
    struct shmemi_dev_team t = shmemi_dev_team_find(team);

    if (t.n_pes == 0)
        shmemi_dev_fail(SHMEMI_DEV_BAD_TEAM, call, (uint64_t)(uintptr_t)team, 0, 0);
    return t;
}

SHMEMI_DEV int shmemi_dev_team_world(const struct shmemi_dev_team *t, int pe)
{
    return t->start + pe * t->stride;
}

/* World PE of `pe` in the context's team. */
SHMEMI_DEV int shmemi_dev_ctx_world(shmem_ctx_t ctx, int pe, uint32_t call)
{
    uint64_t h = (uint64_t)(uintptr_t)ctx;
    uint32_t slot = (uint32_t)(h & 0xffff) - 1;
    const struct shmemi_dev_ctx *c;

    if (ctx == SHMEM_CTX_DEFAULT)
        return pe;
    c = shmemi_dev_state.ctxs + slot;
    if (slot >= shmemi_dev_state.n_ctxs || c->generation != (uint32_t)(h >> 16) || !(c->generation & 1))
        shmemi_dev_fail(SHMEMI_DEV_BAD_CTX, call, h, 0, 0);
    if ((uint32_t)pe >= (uint32_t)c->n_pes)
        shmemi_dev_fail(SHMEMI_DEV_BAD_PE, call, (uint64_t)(int64_t)pe, (uint64_t)c->n_pes, 0);
    return c->start + pe * c->stride;
}

SHMEMI_DEV void shmemi_dev_check_ctx(shmem_ctx_t ctx, uint32_t call)
{
    if (ctx != SHMEM_CTX_DEFAULT && ctx != SHMEM_CTX_INVALID)
        shmemi_dev_ctx_world(ctx, 0, call);
}

#endif
#endif
