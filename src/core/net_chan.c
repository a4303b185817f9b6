/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net_chan.c - the thread that drains the channels of kernels (shmem/device/channel.h) into the NIC's queues, by plain verbs or,
 * where only the GPU cannot reach an mlx5 device's registers, through its send queues.
 *
 * A row has a ring and a queue to each peer that it has ever had a request for, which no other thread posts to.  The thread
 * takes what is published in all rings, posts it without doorbells, rings once for each queue, and looks what is complete.
 * Atomics that the device does not have are made of compare-swaps, one at a time in a row, whose later requests wait.
 *
 * When nothing happens it spins for a moment and then naps, an eighth of the time that has passed in silence, at most
 * NAP_MAX_NS: so the first request of a kernel waits little longer than the silence has made likely, and an idle thread costs
 * next to nothing.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "net_chan.h"

#include "devmem.h"
#include "exit.h"
#include "log.h"
#include "net.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define AT_ONCE 64u             /* publications of a ring between looks at completions */
#define SPIN_NS 20000u          /* of silence before the first nap */
#define NAP_MIN_NS 5000u
#define NAP_MAX_NS 2000000u     /* nothing is under way */
#define NAP_FLYING_NS 100000u   /* something is */
#define SETTLE_NS 200000000u    /* for what is under way at the end */
#define NONE UINT64_MAX

/* A queue to one peer. */
struct link {
    struct shmemi_nic_queue nic;
    uint64_t done;        /* tickets of the queue that are complete */
    uint64_t first, last; /* its requests under way, by ring index, chained; NONE: none */
    struct link *next;    /* of those that have some */
    int pe;
    bool unrung;          /* posts wait for the doorbell */
};

/* What has become of a request, by its first entry. */
struct flight {
    struct link *link;
    uint64_t ticket; /* the queue's */
    uint64_t next;   /* of the same queue */
    uint32_t entries;
    bool complete;
};

struct row {
    struct shmemi_chan_ring ring;
    char *memory;
    size_t bytes;
    struct shmemi_nic_key key;
    struct flight *flights;
    struct link **links; /* by world PE */
    struct link *busy;   /* links with requests under way */
    uint64_t head;       /* the next entry to be posted */
    uint64_t published;  /* up to here */
    uint64_t done;
    /* an atomic that is being made of compare-swaps */
    struct link *making;
    uint64_t seen, *landing;
    uint64_t ticket; /* of the compare-swap under way */
};

static struct {
    struct row *rows;
    struct shmemi_chan *chans;
    size_t chans_bytes;
    int room, n;
    const struct shmemi_nic_memory *memory; /* NULL: device code on the CPU */
    struct shmemi_dev_report *report, *seen;
    pthread_t thread;
    bool running;
    uint32_t stop;
} it;

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static struct flight *flight_at(const struct row *r, uint64_t idx)
{
    return &r->flights[idx & (r->ring.depth - 1)];
}

static bool is_verbs(void)
{
    return shmemi_net.nic->kind == SHMEMI_NIC_VERBS;
}

static uint32_t host_key(uint32_t big_endian)
{
    return shmemi_bswap32(big_endian);
}

static shmemi_be32 raw_key(uint32_t big_endian)
{
    return (shmemi_be32){ big_endian };
}

/* ---- errors ---- */

/* This PE's own address of what lies there at the peer, or 0. */
static uint64_t own_address(int pe, uint64_t raddr)
{
    uint64_t off = raddr - shmemi_net.peers[pe].heap;

    return off < shmemi.heap_len ? shmemi.heap_base + off : 0;
}

/* The call that made the request at that address, else the oldest one's. */
static uint64_t call_of(const struct row *r, const struct link *link, uint64_t raddr)
{
    uint64_t first = link == r->making ? r->head : link->first;

    for (uint64_t i = link->first; i != NONE; i = flight_at(r, i)->next)
        if (raddr && shmemi_chan_at(&r->ring, i)->raddr == raddr)
            first = i;
    return first == NONE ? 0 : shmemi_chan_at(&r->ring, first)->what >> 32;
}

/* Tells kernels to stop waiting before it ends the job. */
SHMEMI_COLD SHMEMI_NORETURN static void failed(const struct row *r, struct link *link)
{
    struct shmemi_nic_error e = { .pe = link->pe, .what = "unknown error", .advice = "", .operation = "operation" };
    const char *call;

    if (it.report)
        SHMEMI_ST_REL(&it.report->stop, 1u);
    shmemi_net.module->queue_error(&link->nic, &e);
    call = shmemi_devmem_call_name(call_of(r, link, e.raddr));
    shmemi_exit_if_ending();
    shmemi_net_check_left(link->pe, call);
    shmemi_fatal(call, "in a kernel: %s to PE %d failed on %s port %d: %s (syndrome 0x%02x, vendor 0x%02x, remote address %#llx, "
                 "symmetric address %#llx); %s", e.operation ? e.operation : "operation", link->pe, link->nic.nic->device,
                 link->nic.nic->port, e.what, e.syndrome, e.vendor_syndrome, (unsigned long long)e.raddr,
                 (unsigned long long)own_address(link->pe, e.raddr), e.advice ? e.advice : "");
}

/* ---- queues ---- */

static struct link *link_of(struct row *r, int pe)
{
    struct link *link = r->links[pe];
    int rc;

    if (link)
        return link;
    link = aligned_alloc(64, shmemi_round_up(sizeof *link, 64));
    if (!link)
        shmemi_fatal("a kernel", "no memory for a queue to PE %d", pe);
    memset(link, 0, sizeof *link);
    link->pe = pe;
    link->first = link->last = NONE;
    rc = shmemi_net.module->queue_open(shmemi_net.nic, pe, 0, NULL, &link->nic);
    if (rc) {
        if (it.report)
            SHMEMI_ST_REL(&it.report->stop, 1u);
        shmemi_exit_if_ending();
        errno = -rc;
        shmemi_fatal("a kernel", "no connection to PE %d by %s port %d: %m; the reason stands above", pe,
                     shmemi_net_rail(pe)->device, shmemi_net_rail(pe)->port);
    }
    r->links[pe] = link;
    return link;
}

/* Takes completions in. */
static void poll_link(const struct row *r, struct link *link)
{
    struct shmemi_sq *sq = &link->nic.sq;

    if (is_verbs()) {
        if (shmemi_net.module->poll(&link->nic, &link->done))
            failed(r, link);
    } else {
        if (shmemi_sq_poll(sq))
            failed(r, link);
        link->done = SHMEMI_LD_ACQ(&sq->done); /* pairs with the exchange in poll */
    }
}

static void ring_link(const struct row *r, struct link *link)
{
    link->unrung = false;
    if (is_verbs() ? shmemi_net.module->flush(&link->nic) != 0
                   : shmemi_sq_ring(&link->nic.sq, SHMEMI_SQ_PRIVATE) == SHMEMI_SQ_FAILED)
        failed(r, link);
}

/* ---- posts: all leave the doorbell to ring_link; they give the queue's ticket ---- */

static uint64_t posted(const struct row *r, struct link *link, int64_t ticket)
{
    if (ticket < 0)
        failed(r, link);
    link->unrung = true;
    return (uint64_t)ticket;
}

static uint64_t post_rdma(const struct row *r, struct link *link, const struct shmemi_chan_entry *e, bool read)
{
    const struct shmemi_nic_module *m = shmemi_net.module;
    void *local = (void *)(uintptr_t)e->laddr;
    int64_t t;

    if (!is_verbs())
        t = (int64_t)shmemi_sq_rdma(&link->nic.sq, SHMEMI_SQ_PRIVATE, read ? SHMEMI_MLX5_READ : SHMEMI_MLX5_WRITE, e->raddr,
                                    raw_key(e->rkey), e->laddr, raw_key(e->lkey), e->len, SHMEMI_SQ_DEFER);
    else if (read)
        t = m->read(&link->nic, e->raddr, host_key(e->rkey), local, host_key(e->lkey), e->len, SHMEMI_SQ_DEFER);
    else
        t = m->write(&link->nic, e->raddr, host_key(e->rkey), local, host_key(e->lkey), e->len,
                     SHMEMI_SQ_DEFER | SHMEMI_NIC_IN_PLACE);
    return posted(r, link, t);
}

/* Of the ring's own memory, copied where it is short. */
static uint64_t post_bytes(const struct row *r, struct link *link, uint64_t raddr, uint32_t rkey, const void *data,
                           uint32_t len)
{
    struct shmemi_sq *sq = &link->nic.sq;
    int64_t t;

    if (is_verbs())
        t = shmemi_net.module->write(&link->nic, raddr, host_key(rkey), data, r->key.lkey[link->nic.nic->rail], len, SHMEMI_SQ_DEFER);
    else if (len <= SHMEMI_SQ_INLINE_MAX)
        t = (int64_t)shmemi_sq_write_inline(sq, SHMEMI_SQ_PRIVATE, raddr, raw_key(rkey), data, len, SHMEMI_SQ_DEFER);
    else
        t = (int64_t)shmemi_sq_write(sq, SHMEMI_SQ_PRIVATE, raddr, raw_key(rkey), (uintptr_t)data,
                                     shmemi_be32_of(r->key.lkey[link->nic.nic->rail]), len, SHMEMI_SQ_DEFER);
    return posted(r, link, t);
}

/* The data lies in the operand or behind the entry, perhaps round the ring's end. */
static uint64_t post_inline(const struct row *r, struct link *link, uint64_t idx, const struct shmemi_chan_entry *e)
{
    const char *data = (const char *)shmemi_chan_at(&r->ring, idx + 1);
    const char *end = r->ring.entries + (size_t)r->ring.depth * SHMEMI_CHAN_ENTRY;
    uint32_t n = e->len < (size_t)(end - data) ? e->len : (uint32_t)(end - data);
    uint64_t ticket;

    if (e->len <= 8)
        return post_bytes(r, link, e->raddr, e->rkey, &e->operand, e->len);
    ticket = post_bytes(r, link, e->raddr, e->rkey, data, n);
    if (n < e->len)
        ticket = post_bytes(r, link, e->raddr + n, e->rkey, r->ring.entries, e->len - n);
    return ticket;
}

/* 8-byte fetch-add (compare NULL) or compare-swap, which every device has. */
static uint64_t post_word(const struct row *r, struct link *link, uint64_t raddr, uint32_t rkey, uint64_t operand,
                          const uint64_t *compare, uint64_t laddr, uint32_t lkey)
{
    int64_t t;

    if (is_verbs())
        t = shmemi_net.module->atomic(&link->nic, raddr, host_key(rkey), operand, compare, (uint64_t *)(uintptr_t)laddr, lkey,
                                      SHMEMI_SQ_DEFER);
    else
        t = (int64_t)shmemi_sq_amo(&link->nic.sq, SHMEMI_SQ_PRIVATE, compare ? SHMEMI_SQ_CSWAP : SHMEMI_SQ_FETCH_ADD, 8, raddr,
                                   raw_key(rkey), operand, compare ? *compare : 0, laddr, shmemi_be32_of(lkey),
                                   SHMEMI_SQ_DEFER);
    return posted(r, link, t);
}

static uint32_t amo_of(const struct shmemi_chan_entry *e)
{
    return (uint32_t)(e->what >> 8) & 0xff;
}

static uint32_t size_of(const struct shmemi_chan_entry *e)
{
    return (uint32_t)(e->what >> 16) & 0xff;
}

/* Does the device have that one? */
static bool in_hardware(const struct shmemi_chan_entry *e)
{
    if (!is_verbs() && shmemi_net.nic->atomics_4)
        return true;
    return size_of(e) == 8 && (amo_of(e) == SHMEMI_SQ_FETCH_ADD || amo_of(e) == SHMEMI_SQ_CSWAP);
}

static uint64_t post_atomic(const struct row *r, struct link *link, const struct shmemi_chan_entry *e)
{
    if (is_verbs())
        return post_word(r, link, e->raddr, e->rkey, e->operand, amo_of(e) == SHMEMI_SQ_CSWAP ? &e->cond : NULL, e->laddr,
                         host_key(e->lkey));
    return posted(r, link, (int64_t)shmemi_sq_amo(&link->nic.sq, SHMEMI_SQ_PRIVATE, (enum shmemi_sq_amo_op)amo_of(e), size_of(e),
                                                  e->raddr, raw_key(e->rkey), e->operand, e->cond, e->laddr, raw_key(e->lkey),
                                                  SHMEMI_SQ_DEFER));
}

/* ---- atomics made of compare-swaps on the 8 bytes around the word ---- */

static uint64_t apply(const struct shmemi_chan_entry *e, uint64_t old)
{
    switch (amo_of(e)) {
    case SHMEMI_SQ_FETCH_ADD: return old + e->operand;
    case SHMEMI_SQ_CSWAP: return old == e->cond ? e->operand : old;
    case SHMEMI_SQ_AND: return old & e->operand;
    case SHMEMI_SQ_OR: return old | e->operand;
    case SHMEMI_SQ_XOR: return old ^ e->operand;
    default: return e->operand;
    }
}

/* Where the word lies in the 8 bytes. */
static unsigned shift_of(const struct shmemi_chan_entry *e, uint64_t *mask_out)
{
    unsigned shift = size_of(e) == 4 ? (unsigned)(e->raddr & 4) * 8 : 0;

    *mask_out = size_of(e) == 4 ? 0xffffffffull << shift : UINT64_MAX;
    return shift;
}

/* One try, from what was last seen there; the first is a guess that costs nothing: zero. */
static void try_swap(struct row *r, const struct shmemi_chan_entry *e)
{
    uint64_t mask, word;
    unsigned shift = shift_of(e, &mask);

    word = (r->seen & ~mask) | (apply(e, (r->seen & mask) >> shift) << shift & mask);
    r->ticket = post_word(r, r->making, e->raddr & ~7ull, e->rkey, word, &r->seen, (uintptr_t)r->landing,
                          r->key.lkey[r->making->nic.nic->rail]);
    ring_link(r, r->making);
}

/* As the device would have left it: 4 bytes big-endian. */
static void store_result(const struct shmemi_chan_entry *e, uint64_t old)
{
    void *to = (void *)(uintptr_t)e->laddr;

    if (size_of(e) == 4)
        SHMEMI_ST_RLX((uint32_t *)to, shmemi_bswap32((uint32_t)old));
    else
        SHMEMI_ST_RLX((uint64_t *)to, old);
}

/* True: something has happened. */
static bool go_on_making(struct row *r)
{
    const struct shmemi_chan_entry *e = shmemi_chan_at(&r->ring, r->head);
    struct flight *f = flight_at(r, r->head);
    uint64_t mask, was;
    unsigned shift;

    if (r->making->done < r->ticket)
        poll_link(r, r->making);
    if (r->making->done < r->ticket)
        return false;
    was = SHMEMI_LD_RLX(r->landing);
    if (was != r->seen) {
        r->seen = was;
        try_swap(r, e);
        return true;
    }
    shift = shift_of(e, &mask);
    store_result(e, (was & mask) >> shift);
    f->complete = true;
    shmemi_chan_complete(&r->ring, r->head + 1);
    r->making = NULL;
    r->head += f->entries;
    return true;
}

/* ---- requests ---- */

/* The link's requests under way end with this one. */
static void add_flight(struct row *r, struct link *link, uint64_t idx, uint64_t ticket)
{
    struct flight *f = flight_at(r, idx);

    f->link = link;
    f->ticket = ticket;
    f->next = NONE;
    if (link->first == NONE) {
        link->first = idx;
        link->next = r->busy;
        r->busy = link;
    } else {
        flight_at(r, link->last)->next = idx;
    }
    link->last = idx;
}

/* Posts the request at the head, or starts to make it. */
static void handle(struct row *r)
{
    const struct shmemi_chan_entry *e = shmemi_chan_at(&r->ring, r->head);
    struct link *link = link_of(r, e->pe);
    struct flight *f = flight_at(r, r->head);
    uint32_t op = (uint32_t)e->what & 0xff;
    uint64_t ticket;

    f->entries = (uint32_t)(e->what >> 24) & 0xff;
    f->complete = false;
    if (op == SHMEMI_CHAN_ATOMIC && !in_hardware(e)) {
        r->making = link;
        r->seen = 0;
        try_swap(r, e);
        return;
    }
    if (op == SHMEMI_CHAN_INLINE)
        ticket = post_inline(r, link, r->head, e);
    else if (op == SHMEMI_CHAN_ATOMIC)
        ticket = post_atomic(r, link, e);
    else
        ticket = post_rdma(r, link, e, op == SHMEMI_CHAN_READ);
    add_flight(r, link, r->head, ticket);
    r->head += f->entries;
}

/* Takes what kernels have published. */
static bool take(struct row *r)
{
    bool some = false;

    for (uint32_t n = 0; n < AT_ONCE; n++) {
        if (r->making) {
            if (!go_on_making(r))
                return some;
            some = true;
            continue;
        }
        if (r->head == r->published) {
            r->published += shmemi_chan_peek(&r->ring, r->head, r->done);
            if (r->head == r->published)
                return some;
        }
        handle(r);
        some = true;
    }
    return some;
}

/* Passes on what the link's queue has completed. */
static bool retire(struct row *r, struct link *link)
{
    uint64_t first = link->first;

    while (link->first != NONE && flight_at(r, link->first)->ticket <= link->done) {
        struct flight *f = flight_at(r, link->first);

        f->complete = true;
        shmemi_chan_complete(&r->ring, link->first + 1);
        link->first = f->next;
    }
    return link->first != first;
}

/* Doorbells, completions, and what is free again. */
static bool look(struct row *r)
{
    struct link **at = &r->busy, *link;
    uint64_t done = r->done;

    for (link = r->busy; link; link = link->next)
        if (link->unrung)
            ring_link(r, link);
    while ((link = *at)) {
        poll_link(r, link);
        retire(r, link);
        if (link->first == NONE)
            *at = link->next;
        else
            at = &link->next;
    }
    while (done < r->head && flight_at(r, done)->complete)
        done += flight_at(r, done)->entries;
    if (done == r->done)
        return false;
    shmemi_chan_free(&r->ring, r->done, done);
    r->done = done;
    return true;
}

/* ---- the thread ---- */

/* One round over all rows.  True: something has happened. */
static bool turn(bool *flying_out)
{
    int n = SHMEMI_LD_ACQ(&it.n); /* pairs with shmemi_chan_open */
    bool some = false;

    *flying_out = false;
    for (int i = 0; i < n; i++) {
        struct row *r = &it.rows[i];

        if (take(r))
            some = true;
        if (r->done < r->head && look(r))
            some = true;
        if (r->busy || r->making)
            *flying_out = true;
    }
    return some;
}

static void nap(uint64_t silence, bool flying)
{
    uint64_t most = flying ? NAP_FLYING_NS : NAP_MAX_NS, ns = silence / 8;
    struct timespec t = { 0 };

    if (silence < SPIN_NS) {
        sched_yield();
        return;
    }
    ns = ns < NAP_MIN_NS ? NAP_MIN_NS : ns;
    t.tv_nsec = (long)(ns < most ? ns : most);
    nanosleep(&t, NULL);
}

static void *drain(void *arg)
{
    uint64_t busy_at = now_ns(), now, end = 0;
    bool flying;

    for (;;) {
        bool some = turn(&flying);

        now = now_ns();
        if (some)
            busy_at = now;
        else if (!end || flying)
            nap(now - busy_at, flying);
        if (SHMEMI_LD_RLX(&it.stop)) {
            end = end ? end : now + SETTLE_NS;
            if (now > end || (!some && !flying))
                return arg;
        }
    }
}

/* ---- start and end ---- */

static size_t line(size_t bytes)
{
    return shmemi_round_up(bytes, 64);
}

static uint32_t depth_of(void)
{
    uint32_t depth = (uint32_t)shmemi_net.nic->config->queue_depth;

    return depth < SHMEMI_CHAN_DEPTH_MIN ? SHMEMI_CHAN_DEPTH_MIN : depth;
}

/* Host memory that kernels reach too; zero. */
static void *shared_get(size_t bytes)
{
    void *p;

    if (it.memory) {
        p = it.memory->get(bytes);
        return p ? memset(p, 0, bytes) : NULL;
    }
    p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

static void shared_put(void *p, size_t bytes)
{
    if (p && it.memory)
        it.memory->put(p);
    else if (p)
        munmap(p, bytes);
}

static void row_down(struct row *r)
{
    for (int pe = 0; r->links && pe < shmemi.n_pes; pe++) {
        if (!r->links[pe])
            continue;
        shmemi_net.module->queue_close(&r->links[pe]->nic);
        free(r->links[pe]);
    }
    if (r->key.mr[0])
        shmemi_net.module->mem_deregister(shmemi_net.nic, &r->key);
    shared_put(r->memory, r->bytes);
    free(r->links);
    free(r->flights);
    memset(r, 0, sizeof *r);
}

/* Memory that the CPU, the NIC and kernels reach: done | landing | comp | entries. */
static int row_up(struct row *r, uint64_t slot)
{
    uint32_t depth = depth_of();
    size_t comp = 128, entries = comp + line(depth * sizeof(uint64_t));
    int rc;

    r->bytes = shmemi_round_up(entries + (size_t)depth * SHMEMI_CHAN_ENTRY, 4096);
    r->memory = shared_get(r->bytes);
    r->flights = calloc(depth, sizeof *r->flights);
    r->links = calloc((size_t)shmemi.n_pes, sizeof *r->links);
    if (!r->memory || !r->flights || !r->links)
        return -ENOMEM;
    rc = shmemi_net.module->mem_register(shmemi_net.nic, r->memory, r->bytes, &r->key);
    if (rc)
        return rc;
    r->landing = (uint64_t *)(void *)(r->memory + 64);
    r->ring = (struct shmemi_chan_ring){ .entries = r->memory + entries,
                                         .comp = (uint64_t *)(void *)(r->memory + comp),
                                         .done = (uint64_t *)(void *)r->memory,
                                         .stop = it.seen ? &it.seen->stop : NULL,
                                         .depth = depth,
                                         .slot = slot };
    return 0;
}

int shmemi_chan_open(int row, uint64_t private_slot)
{
    int rc = row < it.room ? row_up(&it.rows[row], private_slot) : -ENOSPC;

    if (rc) {
        if (row < it.room)
            row_down(&it.rows[row]);
        return rc;
    }
    it.chans[row] = (struct shmemi_chan){ .ring = it.rows[row].ring };
    SHMEMI_ST_REL(&it.n, row + 1); /* pairs with turn */
    return 0;
}

static int start_thread(void)
{
    sigset_t all, old;
    int rc;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    rc = pthread_create(&it.thread, NULL, drain, NULL);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    it.running = rc == 0;
    if (!rc)
        pthread_setname_np(it.thread, "marrow-chan");
    return -rc;
}

int shmemi_chan_start(struct shmemi_dev_report *report, struct shmemi_dev_report *seen, int rows,
                      const struct shmemi_nic_memory *memory)
{
    int rc = -ENOMEM;

    memset(&it, 0, sizeof it);
    it.room = rows;
    it.memory = memory;
    it.report = report;
    it.seen = seen;
    it.rows = calloc((size_t)rows, sizeof *it.rows);
    it.chans_bytes = shmemi_round_up((size_t)rows * sizeof *it.chans, 4096);
    it.chans = shared_get(it.chans_bytes);
    if (it.rows && it.chans)
        rc = start_thread();
    if (rc)
        shmemi_chan_stop();
    return rc;
}

void shmemi_chan_show(struct shmemi_dev_state *s)
{
    s->nic.flags |= SHMEMI_DEV_NIC_PROXY;
    s->nic.stride = sizeof *it.chans;
    s->nic.queues = (uint64_t)(uintptr_t)it.chans;
}

void shmemi_chan_stop(void)
{
    SHMEMI_ST_RLX(&it.stop, 1u);
    if (it.running)
        pthread_join(it.thread, NULL);
    for (int i = 0; it.rows && i < it.n; i++)
        row_down(&it.rows[i]);
    shared_put(it.chans, it.chans_bytes);
    free(it.rows);
    memset(&it, 0, sizeof it);
}
