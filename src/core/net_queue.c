/* SPDX-License-Identifier: BSD-3-Clause */
/* net_queue.c - contexts' queues: connected on first use, polled when dirty, explained when they fail, closed at the end. */
#include "net_queue.h"

#include "ctx.h"
#include "exit.h"
#include "log.h"
#include "net_dheap.h"
#include "wait.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct shmemi_net_ctx shmemi_net_default = { .lock = PTHREAD_MUTEX_INITIALIZER,
                                             .bounce.lock = PTHREAD_MUTEX_INITIALIZER };

static struct shmemi_net_ctx *all; /* contexts that ever had a queue; only grows until the end */
static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;

#define LAST_WORDS_NS 300000000u /* for notices that this PE leaves */

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- contexts ---- */

static void add_ctx(struct shmemi_net_ctx *c)
{
    pthread_mutex_lock(&all_lock);
    c->next = all;
    SHMEMI_ST_REL(&all, c); /* pairs with the walks: the context is complete */
    pthread_mutex_unlock(&all_lock);
}

/* How it is shared follows from the options and the thread level, which may rise. */
static void set_sharing(struct shmemi_net_ctx *c, long options)
{
    bool threads = shmemi.thread_level == SHMEM_THREAD_MULTIPLE;

    c->shared = threads && !(options & (SHMEM_CTX_PRIVATE | SHMEM_CTX_SERIALIZED));
    c->defers = !threads || c == &shmemi_net_default;
}

struct shmemi_net_ctx *shmemi_net_ctx_of(shmem_ctx_t ctx, const char *call)
{
    long options = 0;
    struct shmemi_net_ctx **at, *c;

    if (ctx == SHMEM_CTX_DEFAULT)
        return &shmemi_net_default;
    at = shmemi_ctx_net(ctx, &options, call);
    c = SHMEMI_LD_ACQ(at); /* pairs with the release below */
    if (c)
        return c;
    pthread_mutex_lock(&shmemi_net_default.lock);
    c = *at;
    if (!c) {
        c = calloc(1, sizeof *c);
        if (!c)
            shmemi_fatal(call, "no memory for the queues of a context");
        pthread_mutex_init(&c->lock, NULL);
        pthread_mutex_init(&c->bounce.lock, NULL);
        set_sharing(c, options);
        add_ctx(c);
        SHMEMI_ST_REL(at, c);
    }
    pthread_mutex_unlock(&shmemi_net_default.lock);
    return c;
}

static void close_queues(struct shmemi_net_ctx *c)
{
    for (int pe = 0; c->queues && pe < shmemi.n_pes; pe++) {
        if (!c->queues[pe])
            continue;
        shmemi_net.module->queue_close(&c->queues[pe]->nic);
        free(c->queues[pe]);
    }
    free(c->queues);
    c->queues = NULL;
    c->chain = NULL;
    shmemi_bounce_free(c);
}

void shmemi_net_ctx_reuse(struct shmemi_net_ctx *c, long options)
{
    bool was_shared = c->shared;

    set_sharing(c, options);
    if (was_shared && c->queues)
        c->shared = true; /* serves one thread as well */
    else if (c->shared)
        close_queues(c); /* quiet since the slot's last context went */
}

void shmemi_net_level_raised(void)
{
    if (!shmemi_net.up)
        return;
    shmemi_net_quiet_all("shmem_init_thread");
    shmemi_net_ctx_reuse(&shmemi_net_default, 0);
    shmemi_ctxs_level_raised();
}

/* ---- connections ---- */

SHMEMI_NORETURN static void no_nic(struct shmemi_net_ctx *c, const void *addr, int pe, const char *call)
{
    if (c->alien || shmemi_exit_is_child())
        shmemi_fatal(call, "called in process %d, which PE %d has forked: only the PE itself reaches other nodes",
                     (int)getpid(), shmemi.my_pe);
    shmemi_not_reachable(call, addr, pe);
}

/* Threads that post meanwhile have addresses in what was there before, for which the old key stays good. */
static void fill_dheap(struct shmemi_net_queue *q)
{
    struct shmemi_net_dheap d = shmemi_net_dheap(q->pe);

    if (!d.base)
        return;
    q->dheap_at = d.base;
    SHMEMI_ST_RLX(&q->dheap_rkey, d.rkey);
    SHMEMI_ST_RLX(&q->dheap_len, (uint64_t)shmemi_net_dheap_len());
}

static void fill(struct shmemi_net_queue *q, struct shmemi_net_ctx *c, int pe)
{
    const struct shmemi_net_peer *p = &shmemi_net.peers[pe];

    q->ctx = c;
    q->pe = pe;
    q->heap_delta = p->heap - shmemi.heap_base;
    q->has_data = p->data != 0;
    q->data_delta = p->data - shmemi.data_base;
    q->rkey = p->rkey;
    q->rkey_be = shmemi_be32_of(p->rkey);
    q->rail = (uint8_t)q->nic.nic->rail;
    q->lkey = shmemi_net.key.lkey[q->rail];
    q->lkey_be = shmemi_be32_of(q->lkey);
    q->inline_max = q->nic.nic->inline_max;
    fill_dheap(q);
    q->mode = shmemi_net.nic->kind == SHMEMI_NIC_VERBS ? SHMEMI_NET_VERBS
              : c->shared                              ? SHMEMI_NET_SHARED
                                                       : SHMEMI_NET_PRIVATE;
}

static struct shmemi_net_queue *connect_queue(struct shmemi_net_ctx *c, int pe, const char *call)
{
    struct shmemi_net_queue *q = aligned_alloc(SHMEMI_CACHELINE, shmemi_round_up(sizeof *q, SHMEMI_CACHELINE));
    int rc;

    if (!q)
        shmemi_fatal(call, "no memory for a queue to PE %d", pe);
    memset(q, 0, sizeof *q);
    rc = shmemi_net.module->queue_open(shmemi_net.nic, pe, c->shared ? SHMEMI_NIC_SHARED : 0, NULL, &q->nic);
    if (rc) {
        shmemi_exit_if_ending();
        shmemi_net_check_left(pe, call);
        errno = -rc;
        shmemi_fatal(call, "no connection to PE %d by %s port %d: %m; the reason stands above", pe, shmemi_net_rail(pe)->device,
                     shmemi_net_rail(pe)->port);
    }
    fill(q, c, pe);
    return q;
}

struct shmemi_net_queue *shmemi_net_connect(struct shmemi_net_ctx *c, const void *addr, int pe, const char *call)
{
    struct shmemi_net_queue *q;

    if (!shmemi_net.up || c->alien)
        no_nic(c, addr, pe, call);
    pthread_mutex_lock(&c->lock);
    if (!c->queues) {
        struct shmemi_net_queue **table = calloc((size_t)shmemi.n_pes, sizeof *table);

        if (!table)
            shmemi_fatal(call, "no memory for a table of %d queues", shmemi.n_pes);
        SHMEMI_ST_REL(&c->queues, table);
    }
    q = c->queues[pe];
    if (!q) {
        q = connect_queue(c, pe, call);
        if (c->shared) {
            q->next = c->chain;
            SHMEMI_ST_REL(&c->chain, q); /* pairs with the walks of quiet */
        }
        SHMEMI_ST_REL(&c->queues[pe], q); /* pairs with shmemi_net_queue_of */
    }
    pthread_mutex_unlock(&c->lock);
    return q;
}

/* ---- errors ---- */

void shmemi_net_no_data(const struct shmemi_net_queue *q, const void *addr, const char *call)
{
    shmemi_fatal(call, "static data at %p is not symmetric with PE %d: that PE runs another executable, or does not "
                 "share its static data (MARROW_STATIC_DATA)", addr, q->pe);
}

bool shmemi_net_left(int pe)
{
    const struct shmemi_pe_ctl *ctl = shmemi.peers[pe].ctl;

    if (ctl)
        return shmemi_wait_left(ctl);
    return SHMEMI_LD_ACQ(&shmemi.my_ctl->far_left) == (uint64_t)pe + 1;
}

void shmemi_net_check_left(int pe, const char *call)
{
    if (shmemi_net_left(pe))
        shmemi_fatal(call, "waits for PE %d, which has exited without calling shmem_finalize", pe);
}

uint64_t shmemi_net_dheap_raddr(const struct shmemi_net_queue *q, const void *addr, const char *call)
{
    if (!q->dheap_at)
        shmemi_not_reachable(call, addr, q->pe);
    return (uintptr_t)addr - shmemi.dheap_base + q->dheap_at;
}

void shmemi_net_failed(struct shmemi_net_queue *q, const char *call)
{
    struct shmemi_nic_error e = { .pe = q->pe, .what = "unknown error", .advice = "", .operation = "operation" };

    shmemi_exit_if_ending();
    shmemi_net_check_left(q->pe, call);
    shmemi_net.module->queue_error(&q->nic, &e);
    shmemi_fatal(call, "%s to PE %d failed on %s port %d: %s (syndrome 0x%02x, vendor 0x%02x, remote address 0x%llx); %s",
                 e.operation ? e.operation : "operation", q->pe, q->nic.nic->device, q->nic.nic->port, e.what,
                 e.syndrome, e.vendor_syndrome, (unsigned long long)e.raddr, e.advice ? e.advice : "");
}

/* ---- completion ---- */

int shmemi_net_poll(struct shmemi_net_queue *q)
{
    uint64_t done = 0;
    int rc;

    if (q->mode != SHMEMI_NET_VERBS)
        return shmemi_sq_poll(&q->nic.sq) ? -EIO : 0;
    rc = shmemi_net.module->poll(&q->nic, &done);
    if (!rc && done > SHMEMI_LD_RLX(&q->done))
        SHMEMI_ST_REL(&q->done, done);
    return rc;
}

/* Right after a poll that has not failed. */
static bool is_done(struct shmemi_net_queue *q, uint64_t ticket)
{
    if (q->mode != SHMEMI_NET_VERBS)
        return shmemi_sq_is_done(&q->nic.sq, ticket);
    return SHMEMI_LD_ACQ(&q->done) >= ticket;
}

bool shmemi_net_done(struct shmemi_net_queue *q, uint64_t ticket, const char *call)
{
    if (shmemi_net_poll(q))
        shmemi_net_failed(q, call);
    return is_done(q, ticket);
}

static void describe(const void *arg, char *buf, size_t len)
{
    const struct shmemi_net_queue *q = arg;

    snprintf(buf, len, "operations on PE %d to complete (%s port %d)", q->pe, q->nic.nic->device,
             q->nic.nic->port);
}

/* Who has left does not answer, and the NIC gives up later than we need to know that. */
static int awaited(const void *arg)
{
    const struct shmemi_net_queue *q = arg;

    return q->pe;
}

void shmemi_net_wait(struct shmemi_net_queue *q, uint64_t ticket, const char *call)
{
    struct shmemi_waiter w = SHMEMI_WAITER_FN(call, describe, q);

    if (shmemi_net_done(q, ticket, call))
        return;
    if (shmemi_net_owes(q))
        shmemi_net_ring(q, call);
    w.nic = true;
    w.culprit = awaited;
    while (!shmemi_net_done(q, ticket, call))
        shmemi_wait_step(&w);
    shmemi_wait_done(&w);
}

void shmemi_net_wait_all(struct shmemi_net_queue *q, const char *call)
{
    shmemi_net_wait(q, shmemi_net_ring(q, call), call);
}

/* ---- quiet ---- */

static void quiet_ctx(struct shmemi_net_ctx *c, const char *call)
{
    struct shmemi_net_queue *chain = SHMEMI_LD_ACQ(&c->chain); /* pairs with shmemi_net_connect */

    if (c->alien)
        return; /* the parent's operations are the parent's */
    for (struct shmemi_net_queue *q = chain; q; q = q->next)
        if (shmemi_net_owes(q))
            shmemi_net_ring(q, call);
    for (struct shmemi_net_queue *q = chain; q; q = q->next) {
        shmemi_net_wait_all(q, call);
        if (!c->shared)
            q->dirty = false;
    }
    if (!c->shared)
        c->chain = NULL;
    shmemi_bounce_drain(c, NULL, call);
}

/* A context that has never had a queue has nothing to complete. */
static struct shmemi_net_ctx *used(shmem_ctx_t ctx, const char *call)
{
    long options;

    if (ctx == SHMEM_CTX_DEFAULT)
        return &shmemi_net_default;
    return SHMEMI_LD_ACQ(shmemi_ctx_net(ctx, &options, call));
}

void shmemi_net_quiet(shmem_ctx_t ctx, const char *call)
{
    struct shmemi_net_ctx *c = used(ctx, call);

    if (c)
        quiet_ctx(c, call);
}

void shmemi_net_quiet_pe(shmem_ctx_t ctx, int pe, const char *call)
{
    struct shmemi_net_ctx *c = used(ctx, call);
    struct shmemi_net_queue *q = c && c->queues ? SHMEMI_LD_ACQ(&c->queues[pe]) : NULL;

    if (!q)
        return;
    shmemi_net_wait_all(q, call);
    shmemi_bounce_drain(c, q, call);
}

void shmemi_net_quiet_all(const char *call)
{
    for (struct shmemi_net_ctx *c = SHMEMI_LD_ACQ(&all); c; c = c->next)
        quiet_ctx(c, call);
}

void shmemi_net_fence(shmem_ctx_t ctx, const char *call)
{
    struct shmemi_net_ctx *c = used(ctx, call);

    for (struct shmemi_net_queue *q = c && !c->alien ? SHMEMI_LD_ACQ(&c->chain) : NULL; q; q = q->next)
        if (shmemi.peers[q->pe].heap)
            shmemi_net_wait_all(q, call);
}

void shmemi_net_ctx_gone(shmem_ctx_t ctx)
{
    shmemi_net_quiet(ctx, "shmem_ctx_destroy");
}

void shmemi_net_progress(const char *call)
{
    for (struct shmemi_net_ctx *c = SHMEMI_LD_ACQ(&all); c; c = c->next) {
        if (!c->defers || c->alien)
            continue;
        for (struct shmemi_net_queue *q = SHMEMI_LD_ACQ(&c->chain); q; q = q->next)
            if (shmemi_net_owes(q))
                shmemi_net_ring(q, call);
    }
}

/* ---- looking for lost peers ---- */

static void probe_queue(struct shmemi_net_queue *q, const char *call)
{
    if (shmemi_net_poll(q))
        shmemi_net_failed(q, call);
    if (q->probe && !is_done(q, q->probe))
        return; /* the last question is still open */
    if (!shmemi_net_post_try(q, shmemi_net.peers[q->pe].heap, NULL, 0, &q->probe))
        shmemi_net_failed(q, call);
}

void shmemi_net_probe(int pe, const char *call)
{
    static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER; /* the others' threads have the same question */
    static int turn;
    struct shmemi_net_ctx *c = &shmemi_net_default;

    if (!c->queues || c->alien || pthread_mutex_trylock(&one))
        return;
    for (int i = 0; pe < 0 && i < shmemi.n_pes; i++) {
        turn = turn + 1 < shmemi.n_pes ? turn + 1 : 0;
        if (turn != shmemi.my_pe && c->queues[turn])
            pe = turn;
    }
    if (pe >= 0 && pe != shmemi.my_pe && c->queues[pe])
        probe_queue(c->queues[pe], call);
    pthread_mutex_unlock(&one);
}

/* ---- last words, on which nobody waits for long ---- */

static void settle(struct shmemi_net_queue *q, uint64_t until_ns)
{
    uint64_t ticket = shmemi_net_ring(q, "exit");

    while (!shmemi_net_poll(q) && !is_done(q, ticket) && now_ns() < until_ns)
        sched_yield();
}

/* Writes `value` to a control word of `pe`, if there is a queue to it. */
static void tell(int pe, const uint64_t *word, uint64_t value)
{
    struct shmemi_net_queue *q = shmemi_net_default.queues[pe];
    uint64_t ticket, at = (uint64_t)(uintptr_t)word - shmemi_net.peers[shmemi.my_pe].ctl + shmemi_net.peers[pe].ctl;

    if (q)
        (void)shmemi_net_post_try(q, at, &value, sizeof value, &ticket);
}

/* Threads may be inside their own calls on the default context where it is not shared: those have no business there. */
static bool may_tell(void)
{
    return shmemi_net.up && shmemi_net_default.queues && !shmemi_net_default.alien;
}

static void settle_all(uint64_t until_ns)
{
    for (int pe = 0; pe < shmemi.n_pes; pe++)
        if (shmemi_net_default.queues[pe])
            settle(shmemi_net_default.queues[pe], until_ns);
}

void shmemi_net_tell_left(void)
{
    if (!may_tell())
        return;
    for (int pe = 0; pe < shmemi.n_pes; pe++)
        if (!shmemi.peers[pe].ctl)
            tell(pe, &shmemi.my_ctl->far_left, (uint64_t)shmemi.my_pe + 1);
    settle_all(now_ns() + LAST_WORDS_NS);
}

void shmemi_net_tell_end(int code, bool connect)
{
    int node = -1;

    if (!shmemi_net.up || shmemi_net_default.alien)
        return;
    for (int pe = 0; pe < shmemi.n_pes; pe++) {
        if (shmemi.node_of[pe] <= node)
            continue;
        node = shmemi.node_of[pe]; /* the node's first PE: nodes are numbered in its order */
        if (shmemi.peers[pe].ctl)
            continue;
        if (connect)
            (void)shmemi_net_queue_of(SHMEM_CTX_DEFAULT, (void *)shmemi.heap_base, pe, "shmem_global_exit");
        if (shmemi_net_default.queues)
            tell(pe, &shmemi.my_ctl->far_end, SHMEMI_FAR_END(shmemi.my_pe, code));
    }
    if (may_tell())
        settle_all(now_ns() + LAST_WORDS_NS);
}

/* ---- start and end ---- */

/* A forked child has the queues too, but they are the PE's. */
static void disown(void)
{
    for (struct shmemi_net_ctx *c = all; c; c = c->next) {
        c->queues = NULL;
        c->alien = true;
    }
    shmemi_net_default.alien = shmemi_net.up;
}

int shmemi_net_queues_init(void)
{
    static bool handler;

    if (!handler && pthread_atfork(NULL, NULL, disown))
        return -ENOMEM;
    handler = true;
    set_sharing(&shmemi_net_default, 0);
    add_ctx(&shmemi_net_default);
    return 0;
}

/*
 * The last barrier's own messages must arrive, or a peer would wait for them for ever.  Peers that have got theirs
 * may be gone before they have confirmed it, so after some time for repetitions it no longer matters.
 */
static void drain(uint64_t until_ns)
{
    for (struct shmemi_net_ctx *c = all; c; c = c->next)
        for (struct shmemi_net_queue *q = c->chain; q; q = q->next)
            settle(q, until_ns);
}

void shmemi_net_queues_dheap(void)
{
    for (struct shmemi_net_ctx *c = SHMEMI_LD_ACQ(&all); c; c = c->next) {
        pthread_mutex_lock(&c->lock); /* a queue that is being made has seen the change, or is seen here */
        for (int pe = 0; c->queues && pe < shmemi.n_pes; pe++)
            if (c->queues[pe])
                fill_dheap(c->queues[pe]);
        pthread_mutex_unlock(&c->lock);
    }
}

void shmemi_net_queues_fini(void)
{
    struct shmemi_net_ctx *next;

    drain(now_ns() + 100000000u + (4096u << (shmemi_net.nic->config->timeout & 31)) * (uint64_t)4);
    for (struct shmemi_net_ctx *c = all; c; c = next) {
        next = c->next;
        close_queues(c);
        if (c != &shmemi_net_default)
            free(c);
    }
    all = NULL;
}
