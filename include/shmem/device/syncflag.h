/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * syncflag.h - the flags by which members of a team meet: where each stands, and how one waits for it.
 *
 * Flags and what collectives put go to a peer through one queue, whatever block calls (row 0 of the default context), so
 * that a flag is behind its data and an epoch never behind the one after it.
 */
#ifndef SHMEM_DEVICE_SYNCFLAG_H
#define SHMEM_DEVICE_SYNCFLAG_H

#include "far.h"
#include "syncblk.h"

/*
 * FENCED is a barrier.  POSTED, of collectives, is one for what the group has stored, and put by the NIC on the default
 * context: the flag follows the data in the same queue, so where each writes to each nobody waits for its completion.
 */
enum shmemi_sync_kind { SHMEMI_SYNC_RELAXED, SHMEMI_SYNC_FENCED, SHMEMI_SYNC_POSTED };

#ifdef SHMEMI_DEVICE_CODE

/* Own sync block, and that of member `pe`. */
SHMEMI_DEV char *shmemi_sync_own(const struct shmemi_dev_team *t)
{
    char *own = (char *)(uintptr_t)(shmemi_dev_state.dheap_base + t->sync);

    SHMEMI_ASSUME_GLOBAL(own);
    return own;
}

SHMEMI_DEV char *shmemi_sync_of(const struct shmemi_dev_team *t, int pe, uint32_t call)
{
    int world = shmemi_dev_team_world(t, pe);
    uint64_t base = shmemi_dev_base(world, 1);

    if (!base)
        shmemi_dev_fail(SHMEMI_DEV_UNREACHABLE, call, t->sync, 0, (uint64_t)world);
    SHMEMI_ASSUME_GLOBAL((char *)(uintptr_t)(base + t->sync));
    return (char *)(uintptr_t)(base + t->sync);
}

SHMEMI_DEV struct shmemi_sync_chan *shmemi_sync_chan_of(const struct shmemi_dev_team *t, uint32_t chan)
{
    return (struct shmemi_sync_chan *)(void *)shmemi_sync_own(t) + chan;
}

/* Where member `from` stores its epochs in `block`. */
SHMEMI_DEV uint64_t *shmemi_sync_flag(char *block, uint32_t n, uint32_t chan, uint32_t from)
{
    uint64_t off = shmemi_sync_flags_off() + ((uint64_t)chan * n + from) * shmemi_sync_stride(n);

    return (uint64_t *)(void *)(block + off);
}

SHMEMI_DEV uint64_t *shmemi_sync_ack(char *block, uint32_t n, uint32_t from)
{
    return (uint64_t *)(void *)(block + shmemi_sync_acks_off(n) + (uint64_t)from * shmemi_sync_stride(n));
}

/*
 * Waits until the slot has reached `epoch`.  Two polls are under way by turns: what has come is seen a quarter of a load's time
 * later on average, not half.
 */
SHMEMI_DEV void shmemi_sync_await_relaxed(uint64_t *slot, uint64_t epoch, int world, uint32_t call)
{
    struct shmemi_spin s = SHMEMI_SPIN_INIT;
    uint64_t a = SHMEMI_LD_RLX(slot), b;

    shmemi_poll_gap();
    for (;;) {
        b = SHMEMI_LD_RLX(slot);
        if (a >= epoch)
            break;
        a = SHMEMI_LD_RLX(slot);
        if (b >= epoch)
            break;
        shmemi_spin_step(&s, call, world, slot, b, SHMEM_CMP_GE, epoch);
    }
    shmemi_spin_done(&s);
}

/* The same, but with acquire, which ends one poll before the next. */
SHMEMI_DEV void shmemi_sync_await_acquire(uint64_t *slot, uint64_t epoch, int world, uint32_t call)
{
    struct shmemi_spin s = SHMEMI_SPIN_INIT;
    uint64_t seen;

    /* Pairs with the fence before the store in shmemi_sync_meet. */
    while ((seen = SHMEMI_LD_ACQ(slot)) < epoch)
        shmemi_spin_step(&s, call, world, slot, seen, SHMEM_CMP_GE, epoch);
    shmemi_spin_done(&s);
}

/* Any kind, where the way over the NIC takes longer than the choice. */
SHMEMI_DEV_LARGE void shmemi_sync_await_far(uint64_t *slot, uint64_t epoch, enum shmemi_sync_kind kind, int world, uint32_t call)
{
    struct shmemi_spin s = SHMEMI_SPIN_INIT;
    uint64_t seen;

    /* Pairs with the fence before the store in shmemi_sync_steps. */
    while ((seen = kind == SHMEMI_SYNC_RELAXED ? SHMEMI_LD_RLX(slot) : SHMEMI_LD_ACQ(slot)) < epoch)
        shmemi_apart_step(&s, call, world, slot, seen, SHMEM_CMP_GE, epoch);
    shmemi_apart_done(&s);
}

/* One poll at a time: with a warp's lanes two under way cost more than they save (H200, p50: 1260 ns, with two 1840). */
SHMEMI_DEV void shmemi_sync_await_plain(uint64_t *slot, uint64_t epoch, int world, uint32_t call)
{
    struct shmemi_spin s = SHMEMI_SPIN_INIT;
    uint64_t seen;

    while ((seen = SHMEMI_LD_RLX(slot)) < epoch)
        shmemi_spin_step(&s, call, world, slot, seen, SHMEM_CMP_GE, epoch);
    shmemi_spin_done(&s);
}

SHMEMI_DEV void shmemi_sync_await(enum shmemi_scope scope, uint64_t *slot, uint64_t epoch, enum shmemi_sync_kind kind,
                                  int world, uint32_t call)
{
    if (kind != SHMEMI_SYNC_RELAXED)
        shmemi_sync_await_acquire(slot, epoch, world, call);
    else if (scope == SHMEMI_THREAD)
        shmemi_sync_await_relaxed(slot, epoch, world, call);
    else
        shmemi_sync_await_plain(slot, epoch, world, call);
}

/* Does only the NIC lead to member `i`? */
SHMEMI_DEV int shmemi_sync_is_far(const struct shmemi_dev_team *t, uint32_t i)
{
    return shmemi_dev_nic() && !shmemi_dev_base(shmemi_dev_team_world(t, (int)i), 1);
}

#endif
#endif
