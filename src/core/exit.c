/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * exit.c - shmem_global_exit, fatal errors, and processes that end without finalize.
 *
 * A global exit marks the node's header, so that PEs that wait in the library leave by themselves with their
 * output flushed; then the launcher is told, which ends the ones that compute.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "exit.h"

#include "check.h"
#include "init.h"
#include "log.h"
#include "net.h"
#include "state.h"
#include "team.h"
#include "wait.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define STEP_MS 2
#define LEAVE_MS 250  /* for the other PEs of the node to flush and say so */
#define FLUSH_S 2     /* for a PE that computes, to flush, where it must end by itself */
#define FAR_LOOK_MS 100 /* between looks whether another node ends the job */
#define KILL_MS 5000  /* for the launcher to end a PE that has flushed */

static struct {
    bool installed;
    bool finalizes; /* start_pes */
    uint64_t global; /* thread in the high half, status in the low one: who is inside shmem_global_exit, or 0 */
    bool handled;   /* at_exit has run */
    pid_t pid;      /* of the PE: a forked child that exits is none */
} watch;

static pid_t thread_id(void)
{
    return (pid_t)syscall(SYS_gettid);
}

bool shmemi_exit_in_handlers(void)
{
    uint64_t global = SHMEMI_LD_RLX(&watch.global);

    return global && (pid_t)(global >> 32) == thread_id();
}

static int global_code(void)
{
    return (int)(uint32_t)SHMEMI_LD_RLX(&watch.global);
}

bool shmemi_exit_is_child(void)
{
    return watch.pid && watch.pid != getpid();
}

static void nap(void)
{
    struct timespec t = { .tv_nsec = STEP_MS * 1000000 };

    nanosleep(&t, NULL);
}

static bool others_have_left(void)
{
    for (int i = 0; i < shmemi.n_local; i++) {
        int pe = shmemi.local_pes[i];

        if (pe != shmemi.my_pe && SHMEMI_LD_ACQ(&shmemi.peers[pe].ctl->phase) < SHMEMI_PE_FINALIZED)
            return false;
    }
    return true;
}

/* Marks the node as ending, as `pe` wants it, and wakes its sleepers.  False: another PE was first. */
static bool announce_end(int pe, int code)
{
    uint32_t no = 0;

    if (!shmemi.node || !shmemi.peers)
        return true;
    if (!__atomic_compare_exchange_n(&shmemi.node->ending, &no, 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return false;
    shmemi.node->exit_code = code;
    shmemi.node->ending_pe = pe;
    SHMEMI_ST_REL(&shmemi.node->ending, 2u); /* pairs with the acquire in shmemi_exit_if_ending */
    syscall(SYS_futex, &shmemi.node->ending, FUTEX_WAKE, INT_MAX, NULL, NULL, 0); /* the listeners */
    for (int i = 0; i < shmemi.n_local; i++)
        shmemi_wake(shmemi.peers[shmemi.local_pes[i]].ctl);
    return true;
}

SHMEMI_NORETURN static void tell_launcher(int code)
{
    if (shmemi.boot.ops)
        shmemi.boot.ops->abort(&shmemi.boot, code);
    _exit(code);
}

/* stdout, unless another thread holds it: a fatal error must not hang on it. */
static void flush_stdout(void)
{
    if (ftrylockfile(stdout) == 0) {
        fflush_unlocked(stdout);
        funlockfile(stdout);
    }
}

void shmemi_end_job(int code)
{
    flush_stdout();
    if (shmemi_exit_is_child())
        _exit(code); /* a forked child speaks for nobody but itself */
    announce_end(shmemi.my_pe, code);
    tell_launcher(code);
}

static void *flush(void *done)
{
    fflush(NULL);
    SHMEMI_ST_REL((uint32_t *)done, 1u);
    return NULL;
}

/*
 * All streams, but not for ever: fflush waits for a stream's lock, which another thread may hold in a read from a
 * terminal, or this one where a signal has interrupted it in printf.
 */
static void flush_all(void)
{
    static uint32_t done;
    pthread_t thread;
    sigset_t all, old;
    int rc;

    SHMEMI_ST_RLX(&done, 0u);
    sigfillset(&all); /* the program's signals are for its own threads */
    pthread_sigmask(SIG_SETMASK, &all, &old);
    rc = pthread_create(&thread, NULL, flush, &done);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc) {
        flush_stdout();
        return;
    }
    for (int ms = 0; ms < FLUSH_S * 1000 && !SHMEMI_LD_ACQ(&done); ms += STEP_MS)
        nap();
}

/* This PE has nothing more to say: wait for the launcher's signal, or go where the launcher sends none. */
SHMEMI_NORETURN static void leave(int code)
{
    flush_all();
    SHMEMI_ST_REL(&shmemi.my_ctl->phase, SHMEMI_PE_EXITED);
    if (code == 0 && shmemi.boot.leave_on_zero)
        tell_launcher(0); /* no signal will come */
    for (int ms = 0; ms < KILL_MS; ms += STEP_MS)
        nap();
    _exit(code);
}

SHMEMI_NORETURN static void end_globally(int code);

/* A PE of another node has told this node's first PE that it ends the job: whoever sees it passes it on. */
static void take_far_end(void)
{
    uint64_t end = SHMEMI_LD_ACQ(&shmemi.peers[shmemi.local_pes[0]].ctl->far_end);

    if (end)
        announce_end((int)(end >> 32 & 0x7fffffff), (int)(uint32_t)end);
}

void shmemi_exit_if_ending(void)
{
    if (shmemi_exit_in_handlers())
        end_globally(global_code()); /* a handler that waits for PEs which know nothing of the end would wait for ever */
    if (shmemi.node && shmemi_net.up)
        take_far_end();
    if (shmemi.node && SHMEMI_LD_ACQ(&shmemi.node->ending) == 2u && shmemi.node->ending_pe != shmemi.my_pe)
        leave(shmemi.node->exit_code);
}

/*
 * Slurm counts a PE that it had to kill as failed, so under srun shmem_global_exit(0) needs every PE to end by itself,
 * also one that computes: there, and only there, a thread listens for the end.
 */
static struct {
    pthread_t thread;
    bool running;
    uint32_t stop;
} listener;

/* The program may hold a stream's lock for long, as in a read from a terminal: then its files stay unflushed. */
static void *flush_no_longer(void *arg)
{
    struct timespec t = { .tv_sec = FLUSH_S };

    nanosleep(&t, NULL);
    tell_launcher(0);
    return arg;
}

static void *listen_for_end(void *arg)
{
    pthread_t killer;

    (void)arg;
    while (!SHMEMI_LD_ACQ(&listener.stop)) {
        struct timespec t = { .tv_sec = shmemi_net.up ? 0 : 1, .tv_nsec = shmemi_net.up ? FAR_LOOK_MS * 1000000 : 0 };
        uint32_t seen;

        if (shmemi_net.up)
            take_far_end();
        seen = SHMEMI_LD_ACQ(&shmemi.node->ending);
        if (seen == 2u && shmemi.node->ending_pe != shmemi.my_pe && shmemi.node->exit_code == 0)
            pthread_create(&killer, NULL, flush_no_longer, NULL);
        shmemi_exit_if_ending();
        syscall(SYS_futex, &shmemi.node->ending, FUTEX_WAIT, seen, &t, NULL, 0);
    }
    return NULL;
}

static int listener_start(void)
{
    sigset_t all, old;

    if (!shmemi.boot.leave_on_zero)
        return 0;
    SHMEMI_ST_REL(&listener.stop, 0u);
    sigfillset(&all); /* the program's signals are for its own threads */
    pthread_sigmask(SIG_SETMASK, &all, &old);
    listener.running = pthread_create(&listener.thread, NULL, listen_for_end, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return listener.running ? 0 : -EAGAIN;
}

void shmemi_exit_unwatch(void)
{
    if (!listener.running)
        return;
    SHMEMI_ST_REL(&listener.stop, 1u);
    syscall(SYS_futex, &shmemi.node->ending, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    pthread_join(listener.thread, NULL);
    listener.running = false;
}

/* Last step of shmem_global_exit, after the program's own exit handlers. */
SHMEMI_NORETURN static void end_globally(int code)
{
    bool first = announce_end(shmemi.my_pe, code);

    if (first)
        shmemi_net_tell_end(code, code == 0 && shmemi.boot.leave_on_zero);
    flush_all();
    if (first)
        for (int ms = 0; ms < LEAVE_MS && shmemi.peers && !others_have_left(); ms += STEP_MS)
            nap();
    tell_launcher(code);
}

/* Runs in exit(), after the handlers that the program registered since init. */
static void at_exit(int status, void *arg)
{
    (void)arg;
    if (watch.pid != getpid())
        return;
    watch.handled = true;
    if (SHMEMI_LD_RLX(&watch.global))
        end_globally(global_code());
    if (!shmemi.init_count)
        return;
    if (watch.finalizes && status == 0) {
        while (shmemi.init_count)
            shmemi_finalize("exit after start_pes");
        return;
    }
    SHMEMI_ST_REL(&shmemi.my_ctl->phase, SHMEMI_PE_EXITED);
    shmemi_net_tell_left();
    /* A launcher takes a silent exit for a crash; with status 0 the program surely means no harm. */
    if (status == 0)
        shmemi.boot.ops->close(&shmemi.boot);
}

int shmemi_exit_watch(void)
{
    watch.pid = getpid();
    watch.finalizes = false;
    if (!watch.installed && (on_exit(at_exit, NULL) || pthread_atfork(NULL, NULL, shmemi_teams_disown)))
        return -ENOMEM;
    watch.installed = true;
    return listener_start();
}

void shmemi_exit_finalizes(void)
{
    watch.finalizes = true;
}

/* What a parent gets of it: eight bits.  A failure stays one. */
static int seen_by_parents(int status)
{
    return status && !(status & 0xff) ? 0xff : status & 0xff;
}

SHMEMI_API(void, shmem_global_exit, (int status))
{
    uint64_t nobody = 0, me;

    status = seen_by_parents(status);
    me = (uint64_t)thread_id() << 32 | (uint32_t)status;

    shmemi_check_init("shmem_global_exit");
    if (shmemi_exit_is_child())
        exit(status); /* for itself alone */
    if (!__atomic_compare_exchange_n(&watch.global, &nobody, me, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
        if (shmemi_exit_in_handlers())
            end_globally(global_code()); /* called again by an exit handler, or by a signal's */
        for (;;)
            pause(); /* a second thread must not run exit() beside the first */
    }
    if (watch.handled)
        end_globally(status); /* called by an exit handler that is older than shmem_init */
    exit(status);
}
