/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wait.h - how a PE waits: spin, yield, sleep, report, give up.
 *
 *     struct shmemi_waiter w = SHMEMI_WAITER("shmem_barrier_all", "PE 3 to arrive");
 *     while (SHMEMI_LD_ACQ(flag) < epoch)
 *         shmemi_wait_step(&w);
 *     shmemi_wait_done(&w);
 *
 * A step spins `shmemi.spin_limit` times (none to speak of when PEs outnumber CPUs),
 * then yields for about a millisecond, then sleeps on the PE's futex word.
 *
 * A sleeper says in my_ctl->asleep what it waits for: user data, or the library's own
 * sync lines.  Who stores to a peer's memory calls shmemi_wake_peer(), or shmemi_wake_peer_sync() after a sync
 * line; it costs one load of a line that is rarely written.  So a stream of puts to a
 * PE that sleeps in a barrier wakes nobody; and since the waker clears the
 * bits, a stream to a PE that waits for data makes one system call a nap, not one a put.
 * Naps are timed, so a store that came by another way (a user's own store through
 * shmem_ptr) or that raced with falling asleep is seen 2 ms later at most.  NICs wake nobody: in a job that spans
 * nodes naps begin with 0.1 ms and grow with the time waited.
 *
 * The slow path also looks for a job that is ending, for dead peers, and for the
 * hang report (MARROW_HANG_REPORT, MARROW_TIMEOUT).
 */
#ifndef SHMEMI_WAIT_H
#define SHMEMI_WAIT_H

#include "state.h"

enum shmemi_asleep { SHMEMI_ASLEEP_DATA = 1, SHMEMI_ASLEEP_SYNC = 2 };

struct shmemi_waiter {
    const char *call; /* public name of the routine */
    const char *what; /* what is waited for; NULL: describe() says it */
    /* Writes what is waited for, naming the PE that has not come, into buf. */
    void (*describe)(const void *arg, char *buf, size_t len);
    /* Optional: the world PE that is waited for, or -1; lets a wait for a PE that has exited end. */
    int (*culprit)(const void *arg);
    const void *arg;
    unsigned polls, yields;
    bool sync;      /* waits for sync lines, not for user data */
    bool nic;       /* waits for this PE's own NIC, which gives up by itself */
    bool turn;      /* whom to ask next: the PE waited for, or any */
    bool sleeping;  /* the time for yielding is over */
    bool exit_told; /* the warning about PEs that have exited is out */
    bool announced; /* in my_ctl->asleep, for the nap to come */
    int left_pe;    /* it has left, since left_ns */
    uint32_t seq;   /* wake_seq before the last poll */
    uint64_t nap_from_ns; /* yields until then */
    uint64_t start_ns, report_ns, check_ns, lost_ns, left_ns, probe_ns;
};

#define SHMEMI_WAITER(call_, what_) { .call = (call_), .what = (what_) }
#define SHMEMI_WAITER_FN(call_, fn_, arg_) { .call = (call_), .describe = (fn_), .arg = (arg_) }

SHMEMI_COLD void shmemi_wait_slow(struct shmemi_waiter *w);
SHMEMI_COLD void shmemi_wait_withdraw(struct shmemi_waiter *w);
SHMEMI_COLD void shmemi_wake(struct shmemi_pe_ctl *ctl);
/* Has this PE of the node exited without finalize, for good? */
SHMEMI_COLD bool shmemi_wait_left(const struct shmemi_pe_ctl *ctl);

/* One failed poll. */
SHMEMI_INLINE void shmemi_wait_step(struct shmemi_waiter *w)
{
    if (shmemi_likely(w->polls < shmemi.spin_limit)) {
        w->polls++;
        SHMEMI_PAUSE();
    } else {
        shmemi_wait_slow(w);
    }
}

/* After the condition held. */
SHMEMI_INLINE void shmemi_wait_done(struct shmemi_waiter *w)
{
    if (shmemi_unlikely(w->announced))
        shmemi_wait_withdraw(w);
}

/* After a store to memory of a PE of this node that somebody may sleep on. */
SHMEMI_INLINE void shmemi_wake_peer(struct shmemi_pe_ctl *ctl)
{
    if (shmemi_unlikely(SHMEMI_LD_RLX(&ctl->asleep) & SHMEMI_ASLEEP_DATA))
        shmemi_wake(ctl);
}

/* After a store to a sync line.  Wakes every sleeper: they share the futex word. */
SHMEMI_INLINE void shmemi_wake_peer_sync(struct shmemi_pe_ctl *ctl)
{
    if (shmemi_unlikely(SHMEMI_LD_RLX(&ctl->asleep) != 0))
        shmemi_wake(ctl);
}

#endif
