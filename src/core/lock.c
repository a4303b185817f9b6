/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lock.c - distributed locks (specification 1.6, section 9.13): a queue of PEs in the user's one long.
 *
 * The long is two 32-bit words.  TAIL, on the lock's home PE only, is the last PE of the queue plus 1,
 * or 0 when the lock is free.  NODE, on each PE, is that PE's place in the queue:
 *
 *     BUSY   the PE is in the queue or holds the lock
 *     GO     the PE before it has handed the lock over
 *     NEXT   the PE behind it plus 1, or 0
 *
 * A PE that waits polls its own NODE and is woken by exactly the one that hands over, so the order is
 * first come, first served.  Threads of one PE take turns at its NODE.  A free lock is all zeroes.
 */
#include "check.h"
#include "rma.h"
#include "wait.h"

#include <shmem.h>
#include <stdio.h>

#define BUSY 0x80000000u
#define GO 0x40000000u
#define NEXT 0x3fffffffu

_Static_assert(sizeof(long) == 8, "a lock is two 32-bit words");

typedef uint32_t __attribute__((may_alias)) lock_word;

enum { TAIL, NODE };

struct lock {
    const long *addr;
    int home;
    const char *call;
    int before; /* the PE that is to hand over, or -1 */
};

static lock_word *word(const struct lock *l, int pe, int which)
{
    return (lock_word *)shmemi_remote(l->addr, sizeof(long), pe, l->call) + which;
}

/* Locks are spread over the PEs by their offset, which is the same everywhere. */
static struct lock lock_at(const long *addr, const char *call)
{
    uintptr_t off = (uintptr_t)addr - shmemi.heap_base;

    shmemi_check_init(call);
    (void)shmemi_remote(addr, sizeof *addr, shmemi.my_pe, call);
    if ((uintptr_t)addr % sizeof *addr)
        shmemi_fatal(call, "lock %p is not aligned to %zu bytes", (const void *)addr, sizeof *addr);
    if (off >= shmemi.heap_len)
        off = (uintptr_t)addr - shmemi.data_base;
    return (struct lock){ addr, (int)(off / sizeof *addr % (uintptr_t)shmemi.n_pes), call, -1 };
}

/* ---- waiting ---- */

static void describe(const void *arg, char *buf, size_t len)
{
    const struct lock *l = arg;

    snprintf(buf, len, "the lock at %p (its queue is kept by PE %d and ends with PE %d)", (const void *)l->addr, l->home,
             (int)SHMEMI_LD_RLX(word(l, l->home, TAIL)) - 1);
}

static int awaited(const void *arg)
{
    const struct lock *l = arg;

    return l->before;
}

static void wait_bits(const struct lock *l, lock_word *node, uint32_t bits, uint32_t not_value)
{
    struct shmemi_waiter w = SHMEMI_WAITER_FN(l->call, describe, l);

    w.culprit = awaited;
    while ((SHMEMI_LD_ACQ(node) & bits) == not_value)
        shmemi_wait_step(&w);
    shmemi_wait_done(&w);
}

static bool claim_node(lock_word *node)
{
    uint32_t idle = 0;

    return __atomic_compare_exchange_n(node, &idle, BUSY, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}

static void free_node(lock_word *node)
{
    SHMEMI_ST_REL(node, 0u); /* pairs with claim_node, in another thread */
    shmemi_wake_peer(shmemi.my_ctl);
}

/* ---- the calls ---- */

SHMEMI_API(void, shmem_set_lock, (long *lock))
{
    struct lock l = lock_at(lock, "shmem_set_lock");
    lock_word *node = word(&l, shmemi.my_pe, NODE);
    uint32_t before;

    while (!claim_node(node))
        wait_bits(&l, node, BUSY, BUSY);
    /* Acquire: the holder before released with its exchange or compare-exchange of TAIL. */
    before = __atomic_exchange_n(word(&l, l.home, TAIL), (uint32_t)shmemi.my_pe + 1, __ATOMIC_ACQ_REL);
    if (before == 0)
        return;
    l.before = (int)before - 1;
    SHMEMI_ADD_ACQREL(word(&l, l.before, NODE), (uint32_t)shmemi.my_pe + 1); /* NEXT was 0 */
    shmemi_wake_peer(shmemi.peers[before - 1].ctl);
    wait_bits(&l, node, GO, 0); /* acquire; pairs with hand_over */
}

SHMEMI_API(int, shmem_test_lock, (long *lock))
{
    struct lock l = lock_at(lock, "shmem_test_lock");
    lock_word *node = word(&l, shmemi.my_pe, NODE);
    uint32_t nobody = 0;

    if (!claim_node(node))
        return 1;
    if (__atomic_compare_exchange_n(word(&l, l.home, TAIL), &nobody, (uint32_t)shmemi.my_pe + 1, false,
                                    __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        return 0;
    free_node(node);
    return 1;
}

static void hand_over(const struct lock *l, lock_word *node)
{
    int next;

    wait_bits(l, node, NEXT, 0); /* it is in the queue, so it is about to say who it is */
    next = (int)(SHMEMI_LD_ACQ(node) & NEXT) - 1;
    free_node(node);
    SHMEMI_ADD_ACQREL(word(l, next, NODE), GO); /* release: the critical section */
    shmemi_wake_peer(shmemi.peers[next].ctl);
}

SHMEMI_API(void, shmem_clear_lock, (long *lock))
{
    struct lock l = lock_at(lock, "shmem_clear_lock");
    lock_word *node = word(&l, shmemi.my_pe, NODE);
    uint32_t me = (uint32_t)shmemi.my_pe + 1;

    if (!(SHMEMI_LD_RLX(node) & BUSY))
        shmemi_fatal(l.call, "PE %d does not hold the lock at %p", shmemi.my_pe, (const void *)lock);
    shmemi_quiet(SHMEM_CTX_DEFAULT, l.call);
    if (!(SHMEMI_LD_ACQ(node) & NEXT) &&
        __atomic_compare_exchange_n(word(&l, l.home, TAIL), &me, 0, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
        free_node(node);
    else
        hand_over(&l, node);
}
