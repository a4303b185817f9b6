/* SPDX-License-Identifier: BSD-3-Clause */
/* wait.c - the slow half of waiting: yield, sleep, look for the dead, report. */
#include "wait.h"

#include "env.h"
#include "exit.h"
#include "log.h"
#include "net.h"

#include <shmem.h>

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MS 1000000ull
#define YIELD_NS (1 * MS)        /* of yielding before the first sleep */
#define YIELDS 48               /* and this many at least */
#define WOKEN_YIELD_NS (50000ull) /* of yielding after a wake for something else */
#define NAP_NS (2 * MS)          /* longest sleep that a store outside the library can cost */
#define LONG_NAP_NS (10 * MS)    /* the same for a PE that has slept for a second */
#define NET_NAP_NS (MS / 10)     /* first nap where a NIC may be what brings the news; then a part of the time waited */
#define NET_NAP_PART 16
#define PROBE_NS (250 * MS)      /* between questions to other nodes whether they live */
#define CHECK_NS (20 * MS)       /* between looks for a job that ends and for dead peers */
#define EXITED_GRACE_NS (2000 * MS) /* before a wait for data suspects PEs that have exited */
#define DEAD_GRACE_NS (2000 * MS) /* a launcher that ends the job itself is left this long to do so */
#define LEFT_GRACE_NS (1000 * MS) /* the same where the PE has said that it leaves */

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* True unless the time ran out: somebody has stored, or a signal came. */
static bool futex_wait(uint32_t *word, uint32_t seen, uint64_t ns)
{
    struct timespec t = { .tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u) };

    return syscall(SYS_futex, word, FUTEX_WAIT, seen, &t, NULL, 0) == 0 || errno != ETIMEDOUT;
}

void shmemi_wake(struct shmemi_pe_ctl *ctl)
{
    /* Cleared before the bump: a sleeper that announces itself after its load of wake_seq
     * and is cleared here finds the word changed, or is on the queue and woken. */
    SHMEMI_ST_RLX(&ctl->asleep, 0);
    SHMEMI_ADD_ACQREL(&ctl->wake_seq, 1u);
    syscall(SYS_futex, &ctl->wake_seq, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void shmemi_wait_withdraw(struct shmemi_waiter *w)
{
    /* With several threads the bit may be another one's: it stays and costs one needless wake. */
    if (shmemi.thread_level < SHMEM_THREAD_MULTIPLE)
        SHMEMI_ST_RLX(&shmemi.my_ctl->asleep, 0);
    w->announced = false;
}

/* 1 when the process is gone, also as a zombie that its parent has not collected. */
static int process_gone(int pid)
{
    struct pollfd p = { .events = POLLIN };
    int gone;

    p.fd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (p.fd < 0) /* an old kernel, or no descriptor left: then a zombie goes unnoticed */
        return errno == ESRCH || (kill(pid, 0) && errno == ESRCH);
    gone = poll(&p, 1, 0) == 1;
    close(p.fd);
    return gone;
}

/*
 * The PE has exited without finalize, and its process is gone: until then a handler that the program registered before init,
 * such as the destructor of a static object, may still finalize.
 */
bool shmemi_wait_left(const struct shmemi_pe_ctl *ctl)
{
    return SHMEMI_LD_ACQ(&ctl->phase) == SHMEMI_PE_EXITED &&
           (ctl->pid_ns != shmemi.my_ctl->pid_ns || process_gone(ctl->pid));
}

/* A PE of this node that has died or left without finalize, or -1. */
static int find_lost_peer(const char **how)
{
    for (int i = 0; i < shmemi.n_local; i++) {
        int pe = shmemi.local_pes[i];
        const struct shmemi_pe_ctl *ctl = shmemi.peers[pe].ctl;
        uint32_t phase = SHMEMI_LD_ACQ(&ctl->phase);

        if (pe == shmemi.my_pe || phase == SHMEMI_PE_FINALIZED)
            continue;
        if (phase == SHMEMI_PE_RUNNING && ctl->pid_ns == shmemi.my_ctl->pid_ns && process_gone(ctl->pid)) {
            *how = "has died";
            return pe;
        }
    }
    return -1;
}

static void describe(const struct shmemi_waiter *w, char *buf, size_t len)
{
    buf[0] = '\0';
    if (w->describe)
        w->describe(w->arg, buf, len);
    else
        snprintf(buf, len, "%s", w->what ? w->what : "a peer");
}

/* How many PEs are known to have left through exit(), and one of them. */
static int count_exited(int *pe_out)
{
    int n = 0;

    for (int i = 0; i < shmemi.n_local; i++) {
        int pe = shmemi.local_pes[i];

        if (pe != shmemi.my_pe && shmemi_wait_left(shmemi.peers[pe].ctl)) {
            *pe_out = pe;
            n++;
        }
    }
    if (SHMEMI_LD_ACQ(&shmemi.my_ctl->far_left)) { /* of those elsewhere one is known */
        *pe_out = (int)SHMEMI_LD_ACQ(&shmemi.my_ctl->far_left) - 1;
        n++;
    }
    return n;
}

/*
 * A wait for data names no PE.  One that has exited may be the one that should have stored it, so that is
 * said before long; when all others have, nobody is left to store it, unless another thread does.
 */
static void check_exited(struct shmemi_waiter *w, uint64_t now)
{
    int pe = -1, n = count_exited(&pe);
    char what[256];

    if (n == 0)
        return;
    describe(w, what, sizeof what);
    if (n == shmemi.n_pes - 1 && shmemi.thread_level < SHMEM_THREAD_MULTIPLE)
        shmemi_fatal(w->call, "waits for %s, but all other PEs have exited without calling shmem_finalize", what);
    if (w->exit_told || now - w->start_ns < EXITED_GRACE_NS)
        return;
    w->exit_told = true;
    shmemi_warn(w->call, "waits for %s; %d PEs, PE %d among them, have exited without calling shmem_finalize", what, n, pe);
}

/*
 * Ends the job when the PE that is waited for has left through exit(), but not at once: a launcher that sees its status ends
 * the job with that one.
 */
static void check_culprit(struct shmemi_waiter *w, uint64_t now)
{
    int pe = w->culprit ? w->culprit(w->arg) : -1;

    if (!w->culprit)
        check_exited(w, now);
    if (w->left_ns && pe != w->left_pe)
        w->left_ns = 0; /* it has come after all */
    if (!w->left_ns && pe >= 0 && shmemi_net_left(pe)) {
        w->left_ns = now;
        w->left_pe = pe; /* of those on other nodes only the last that has left is known */
    }
    if (w->left_ns && now - w->left_ns > LEFT_GRACE_NS)
        shmemi_fatal(w->call, "waits for PE %d, which has exited without calling shmem_finalize", w->left_pe);
}

static void check_peers(struct shmemi_waiter *w, uint64_t now)
{
    const char *how = "";
    int pe = find_lost_peer(&how);

    if (pe < 0) {
        w->lost_ns = 0;
        check_culprit(w, now);
    } else if (!w->lost_ns) {
        w->lost_ns = now;
    } else if (now - w->lost_ns > DEAD_GRACE_NS) {
        shmemi_fatal(w->call, "PE %d (pid %d) %s while this PE waits", pe, shmemi.peers[pe].ctl->pid, how);
    }
}

static void report(struct shmemi_waiter *w, uint64_t now)
{
    char what[256];
    double seconds = (double)(now - w->start_ns) / 1e9;

    if (shmemi_env.timeout && now - w->start_ns > shmemi_env.timeout) {
        describe(w, what, sizeof what);
        shmemi_fatal(w->call, "gave up after %.1f s waiting for %s (MARROW_TIMEOUT)", seconds, what);
    }
    if (shmemi_env.hang_report && now - w->report_ns > shmemi_env.hang_report) {
        w->report_ns = now;
        describe(w, what, sizeof what);
        shmemi_warn(w->call, "has waited %.0f s for %s (MARROW_HANG_REPORT sets when this is said)", seconds, what);
    }
}

static void announce(struct shmemi_waiter *w)
{
    /* The caller polls once more between this and the nap: who stores after that poll either
     * sees the bit and bumps wake_seq, or the nap ends by itself. */
    w->seq = SHMEMI_LD_ACQ(&shmemi.my_ctl->wake_seq);
    SHMEMI_OR_ACQREL(&shmemi.my_ctl->asleep, (uint32_t)(w->sync ? SHMEMI_ASLEEP_SYNC : SHMEMI_ASLEEP_DATA));
    w->announced = true;
}

static uint64_t nap_ns(const struct shmemi_waiter *w, uint64_t now)
{
    uint64_t waited = now - w->start_ns, part = waited / NET_NAP_PART;

    if (!shmemi_net.up)
        return waited > 1000 * MS ? LONG_NAP_NS : NAP_NS;
    return part < NET_NAP_NS ? NET_NAP_NS : part < NAP_NS ? part : NAP_NS;
}

/* Asks the PE that is waited for, and in turns any other one: of several that are missing only the first is known. */
static void probe(struct shmemi_waiter *w, uint64_t now)
{
    int pe = -1;

    if (!shmemi_net.up || w->nic || now - w->probe_ns < PROBE_NS)
        return;
    w->probe_ns = now;
    w->turn = !w->turn;
    if (w->turn && w->culprit)
        pe = w->culprit(w->arg);
    shmemi_net_probe(pe >= 0 && !shmemi.peers[pe].ctl ? pe : -1, w->call);
}

static void nap(struct shmemi_waiter *w)
{
    uint64_t now = now_ns();

    if (futex_wait(&shmemi.my_ctl->wake_seq, w->seq, nap_ns(w, now))) {
        /* More stores are likely: stay awake a little, so that they need not wake. */
        w->sleeping = false;
        w->nap_from_ns = now_ns() + WOKEN_YIELD_NS;
    }
    w->announced = false;
    if (now - w->check_ns < CHECK_NS)
        return;
    w->check_ns = now;
    shmemi_exit_if_ending();
    check_peers(w, now);
    probe(w, now);
    report(w, now);
}

/* Where a NIC may bring the news: the fast half leaves the spinning to this one, which first sends what is deferred. */
static bool net_spin(struct shmemi_waiter *w)
{
    if (w->polls > shmemi_net.spin)
        return false;
    if (w->polls == 1 && !w->nic)
        shmemi_net_progress(w->call);
    w->polls++;
    SHMEMI_PAUSE();
    return true;
}

void shmemi_wait_slow(struct shmemi_waiter *w)
{
    if (shmemi_net.up && net_spin(w))
        return;
    if (!w->start_ns) {
        w->start_ns = w->report_ns = w->check_ns = w->probe_ns = now_ns();
        w->nap_from_ns = w->start_ns + YIELD_NS;
    }
    if (!w->sleeping) {
        sched_yield();
        /*
         * Also by count: on a crowded CPU a millisecond may be but a few turns, and each sleep costs a wake-up.  Not
         * where NICs bring the news: nobody wakes, and who yields gets the CPU later than who has slept.
         */
        if ((++w->yields >= YIELDS && w->yields % 4 == 0) || shmemi_net.up)
            w->sleeping = now_ns() > w->nap_from_ns;
    } else if (!w->announced) {
        announce(w);
    } else {
        nap(w);
    }
}
