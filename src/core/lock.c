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
 *
 * All changes are atomics of amo.h, which go through one agent for all PEs, in order to each of them.  A NIC may
 * change a word by a compare-swap of the whole long, so that holds for the own NODE too; it is polled by plain loads.
 */
#include "amo.h"
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

/* This PE's own address of a word. */
static lock_word *word(const struct lock *l, int which)
{
    return (lock_word *)(uintptr_t)l->addr + which;
}

/* `pe`'s word; the old value.  cond NULL but for a compare-swap. */
SHMEMI_INLINE uint32_t change(const struct lock *l, enum shmemi_amo_op op, int pe, int which, uint32_t operand,
                              const uint32_t *cond)
{
    uint32_t old = 0;

    shmemi_amo(SHMEM_CTX_DEFAULT, op, word(l, which), &operand, cond, &old, sizeof old, pe, false, l->call);
    return old;
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

/* The same where the old value does not matter. */
SHMEMI_INLINE void apply(const struct lock *l, enum shmemi_amo_op op, int pe, int which, uint32_t operand)
{
    shmemi_amo(SHMEM_CTX_DEFAULT, op, word(l, which), &operand, NULL, NULL, sizeof operand, pe, false, l->call);
}

/* ---- waiting ---- */

static void describe(const void *arg, char *buf, size_t len)
{
    const struct lock *l = arg;

    snprintf(buf, len, "the lock at %p (its queue is kept by PE %d and ends with PE %d)", (const void *)l->addr, l->home,
             (int)change(l, SHMEMI_AMO_FETCH, l->home, TAIL, 0, NULL) - 1);
}

static int awaited(const void *arg)
{
    const struct lock *l = arg;

    return l->before;
}

static void wait_bits(const struct lock *l, uint32_t bits, uint32_t not_value)
{
    struct shmemi_waiter w = SHMEMI_WAITER_FN(l->call, describe, l);

    w.culprit = awaited;
    while ((SHMEMI_LD_ACQ(word(l, NODE)) & bits) == not_value)
        shmemi_wait_step(&w);
    shmemi_wait_done(&w);
}

/* A long that was never a lock, or was not zeroed, would be waited for without end. */
SHMEMI_NORETURN static void no_lock(const struct lock *l, uint32_t half)
{
    shmemi_fatal(l->call, "the long at %p is no lock, one half of it was %#x: a lock is zero on all PEs before its first use, "
                 "and nothing but these calls changes it", (const void *)l->addr, half);
}

static bool claim_node(const struct lock *l)
{
    const uint32_t idle = 0;
    uint32_t old = change(l, SHMEMI_AMO_CSWAP, shmemi.my_pe, NODE, BUSY, &idle);

    if (shmemi_unlikely(old != idle && !(old & BUSY)))
        no_lock(l, old);
    return old == idle;
}

/* Who was last in the queue, plus 1, or 0.  This PE was not in it. */
static uint32_t check_tail(const struct lock *l, uint32_t tail)
{
    if (shmemi_unlikely(tail > (uint32_t)shmemi.n_pes || tail == (uint32_t)shmemi.my_pe + 1))
        no_lock(l, tail);
    return tail;
}

/* Until no other thread of this PE holds the lock or waits for it. */
static void wait_for_node(const struct lock *l)
{
    if (shmemi.thread_level < SHMEM_THREAD_MULTIPLE)
        shmemi_fatal(l->call, "PE %d holds the lock at %p already and would wait for itself", shmemi.my_pe,
                     (const void *)l->addr);
    wait_bits(l, BUSY, BUSY);
}

static void free_node(const struct lock *l)
{
    apply(l, SHMEMI_AMO_SET, shmemi.my_pe, NODE, 0); /* release: pairs with claim_node, in another thread */
}

/* ---- the calls ---- */

SHMEMI_API(void, shmem_set_lock, (long *lock))
{
    struct lock l = lock_at(lock, "shmem_set_lock");
    uint32_t me = (uint32_t)shmemi.my_pe + 1, before;

    while (!claim_node(&l))
        wait_for_node(&l);
    /* Acquire: the holder before released with its swap or compare-swap of TAIL. */
    before = check_tail(&l, change(&l, SHMEMI_AMO_SWAP, l.home, TAIL, me, NULL));
    if (before == 0)
        return;
    l.before = (int)before - 1;
    apply(&l, SHMEMI_AMO_ADD, l.before, NODE, me); /* NEXT was 0 */
    wait_bits(&l, GO, 0); /* acquire; pairs with hand_over */
}

SHMEMI_API(int, shmem_test_lock, (long *lock))
{
    struct lock l = lock_at(lock, "shmem_test_lock");
    const uint32_t nobody = 0;

    if (!claim_node(&l))
        return 1;
    if (check_tail(&l, change(&l, SHMEMI_AMO_CSWAP, l.home, TAIL, (uint32_t)shmemi.my_pe + 1, &nobody)) == nobody)
        return 0;
    free_node(&l);
    return 1;
}

static void hand_over(const struct lock *l)
{
    int next;

    wait_bits(l, NEXT, 0); /* it is in the queue, so it is about to say who it is */
    next = (int)(SHMEMI_LD_ACQ(word(l, NODE)) & NEXT) - 1;
    free_node(l);
    apply(l, SHMEMI_AMO_ADD, next, NODE, GO); /* release: the critical section */
}

SHMEMI_API(void, shmem_clear_lock, (long *lock))
{
    struct lock l = lock_at(lock, "shmem_clear_lock");
    const uint32_t me = (uint32_t)shmemi.my_pe + 1;

    if (!(SHMEMI_LD_RLX(word(&l, NODE)) & BUSY))
        shmemi_fatal(l.call, "PE %d does not hold the lock at %p", shmemi.my_pe, (const void *)lock);
    shmemi_quiet(SHMEM_CTX_DEFAULT, l.call);
    if (!(SHMEMI_LD_ACQ(word(&l, NODE)) & NEXT) && change(&l, SHMEMI_AMO_CSWAP, l.home, TAIL, 0, &me) == me)
        free_node(&l);
    else
        hand_over(&l);
}
