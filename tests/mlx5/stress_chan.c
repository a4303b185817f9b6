/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stress_chan.c - several threads that leave requests in one channel (shmem/device/channel.h), and the thread that drains it,
 * which plays the NIC too: small rings, requests of every length, results, completions out of order.  Every value is checked.
 *
 * ThreadSanitizer looks on (mutants_chan.sh).  With -p one thread posts to a private channel; compiled with SHMEMI_SIMT, with
 * lanes of warps (tests/simt) in the place of threads, any of which may be active.
 *
 *     stress_chan [-p] [-n requests of each thread] [-t threads] [-s seed]
 */
#include "shmem/device/channel.h"
#ifdef SHMEMI_SIMT
#include "simt.h"
#endif

#include <getopt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { THREADS = 64, WORDS = 48, DEPTH = SHMEMI_CHAN_DEPTH_MIN, LIMIT_SECONDS = 60 };

static char entries[DEPTH * SHMEMI_CHAN_ENTRY] __attribute__((aligned(64)));
static uint64_t comp[DEPTH], done;
static uint32_t stop;
static struct shmemi_chan chan = {
    .ring = { .entries = entries, .comp = comp, .done = &done, .stop = &stop, .depth = DEPTH }
};

static int is_private;
static uint32_t n_threads = 3, n_ops = 2000;
static uint64_t seed = 1, counter, taken, bytes;

struct poster {
    uint32_t id;
    uint64_t random, adds;
    uint64_t local[WORDS];           /* what requests refer to; changes when the last one of it is complete */
    uint64_t remote[WORDS];          /* only this thread's requests go there; the drain alone writes it */
    uint64_t back[WORDS];
};
static struct poster posters[THREADS];

static void fail(const char *what)
{
    fprintf(stderr, "stress_chan: %s\n", what);
    _Exit(1);
}

static void check_time(void)
{
    static time_t end;
    time_t now = time(NULL);

    if (!__atomic_load_n(&end, __ATOMIC_RELAXED))
        __atomic_store_n(&end, now + LIMIT_SECONDS, __ATOMIC_RELAXED);
    if (now > __atomic_load_n(&end, __ATOMIC_RELAXED))
        fail("no progress");
}

/* ---- the drain: takes, does, completes some of what it has done later and out of order ---- */

static uint64_t finished[DEPTH]; /* by entry: the request's number of entries once it is complete, else 0 */
static uint64_t head, published, freed;

/* Not memcpy, whose accesses ThreadSanitizer sees less of. */
static void copy(void *to, const void *from, size_t len)
{
    for (size_t i = 0; i < len; i++)
        ((char *)to)[i] = ((const char *)from)[i];
}

static void *address(uint64_t va)
{
    return (void *)(uintptr_t)va;
}

static void inline_data(const struct shmemi_chan_entry *e, uint64_t idx)
{
    if (e->len <= 8) {
        copy(address(e->raddr), &e->operand, e->len);
        return;
    }
    for (uint32_t at = 0; at < e->len; at += SHMEMI_CHAN_ENTRY)
        copy((char *)address(e->raddr) + at, shmemi_chan_at(&chan.ring, idx + 1 + at / SHMEMI_CHAN_ENTRY),
               e->len - at < SHMEMI_CHAN_ENTRY ? e->len - at : SHMEMI_CHAN_ENTRY);
}

static uint32_t perform(uint64_t idx)
{
    const struct shmemi_chan_entry *e = shmemi_chan_at(&chan.ring, idx);
    uint64_t old;

    switch (e->what & 0xff) {
    case SHMEMI_CHAN_WRITE: copy(address(e->raddr), address(e->laddr), e->len); break;
    case SHMEMI_CHAN_READ: copy(address(e->laddr), address(e->raddr), e->len); break;
    case SHMEMI_CHAN_INLINE: inline_data(e, idx); break;
    case SHMEMI_CHAN_ATOMIC:
        old = *(uint64_t *)address(e->raddr);
        *(uint64_t *)address(e->raddr) = old + e->operand;
        *(uint64_t *)address(e->laddr) = old;
        break;
    default: fail("a request that nobody made");
    }
    taken++;
    bytes += e->len;
    return (uint32_t)(e->what >> 24) & 0xff;
}

/* What has been done is complete by pieces, now and then the younger half first. */
static void complete_some(uint64_t random)
{
    uint64_t from = random >> 8 & 1 ? freed : freed + (head - freed) / 2;

    for (uint64_t i = freed; i < head; i++) {
        uint64_t *f = &finished[i % DEPTH];

        if (i >= from && *f && !(*f >> 32)) {
            shmemi_chan_complete(&chan.ring, i + 1);
            *f |= 1ull << 32;
        }
    }
    from = freed;
    while (freed < head && finished[freed % DEPTH] >> 32)
        freed += (uint32_t)finished[freed % DEPTH];
    if (freed != from)
        shmemi_chan_free(&chan.ring, from, freed);
}

static void *drain(void *arg)
{
    uint64_t random = seed;

    while (!SHMEMI_LD_RLX(&stop)) {
        int some = 0;

        random = random * 6364136223846793005u + 1442695040888963407u;
        for (uint32_t n = 0; n < 1 + (random >> 60); n++) {
            uint32_t n_entries;

            if (head == published)
                published += shmemi_chan_peek(&chan.ring, head, freed);
            if (head == published)
                break;
            n_entries = perform(head);
            for (uint32_t i = 1; i < n_entries; i++)
                finished[(head + i) % DEPTH] = 0;
            finished[head % DEPTH] = n_entries;
            head += n_entries;
            some = 1;
        }
        complete_some(random >> 32);
        if (!some)
            sched_yield();
        check_time();
    }
    return arg;
}

/* ---- those who post ---- */

static void wait_for(uint64_t ticket)
{
    uint32_t spins = 0;

    if (ticket == SHMEMI_SQ_FAILED)
        fail("a post has failed");
    while (!shmemi_chan_is_done(&chan.ring, ticket))
        shmemi_backoff(&spins);
}

static void quiet(void)
{
    uint64_t all = SHMEMI_LD_RLX_GPU(&chan.reserved);
    uint32_t spins = 0;

    while (!shmemi_chan_all_done(&chan.ring, all))
        shmemi_backoff(&spins);
}

static uint64_t post(const struct shmemi_chan_request *r)
{
    return is_private ? shmemi_chan_post_private(&chan, r) : shmemi_chan_post(&chan, shmemi_active_mask(), r);
}

static uint64_t random_of(struct poster *p)
{
    p->random = p->random * 6364136223846793005u + 1442695040888963407u;
    return p->random >> 33;
}

static void operate(struct poster *p, uint64_t v)
{
    struct shmemi_chan_request r = { .raddr = (uintptr_t)p->remote, .laddr = (uintptr_t)p->local, .pe = (int)p->id };
    uint32_t n = 1 + (uint32_t)random_of(p) % WORDS;
    uint64_t old = 0;

    for (uint32_t i = 0; i < n; i++)
        p->local[i] = v + i;
    switch (random_of(p) % 4) {
    case 0: /* of registered memory, which stays */
        r.op = SHMEMI_CHAN_WRITE;
        r.len = n * 8;
        wait_for(post(&r));
        break;
    case 1: /* words, the last of which is waited for */
        r.op = SHMEMI_CHAN_INLINE;
        r.len = 8;
        for (uint32_t i = 0; i < n; i++, r.raddr += 8) {
            r.operand = v + i;
            if (post(&r) == SHMEMI_SQ_FAILED)
                fail("a post has failed");
        }
        break;
    default: /* carried along, of any length */
        r.op = SHMEMI_CHAN_INLINE;
        r.len = n * 8 - (n > 1 ? (uint32_t)random_of(p) % 8 : 0);
        r.data = p->local;
        if (post(&r) == SHMEMI_SQ_FAILED)
            fail("a post has failed");
        n = r.len / 8;
        break;
    }
    if (random_of(p) % 4 == 0) {
        r = (struct shmemi_chan_request){ .op = SHMEMI_CHAN_ATOMIC, .raddr = (uintptr_t)&counter, .laddr = (uintptr_t)&old,
                                          .operand = 1, .size = 8, .len = 8 };
        wait_for(post(&r));
        p->adds++;
    }
    if (random_of(p) % 2) {
        quiet();
        for (uint32_t i = 0; i < n; i++)
            if (p->remote[i] != v + i)
                fail("a write has not arrived");
    }
    r = (struct shmemi_chan_request){ .op = SHMEMI_CHAN_READ, .raddr = (uintptr_t)p->remote, .laddr = (uintptr_t)p->back,
                                      .len = n * 8 };
    wait_for(post(&r));
    for (uint32_t i = 0; i < n; i++)
        if (p->back[i] != v + i)
            fail("a read has brought something else");
}

static void *work(void *arg)
{
    struct poster *p = arg;

    p->random = seed * 1000 + p->id;
    for (uint32_t op = 1; op <= n_ops; op++)
        operate(p, (uint64_t)p->id << 40 | (uint64_t)op << 8);
    quiet();
    return NULL;
}

#ifdef SHMEMI_SIMT
static void lane(void *arg)
{
    (void)arg;
    work(&posters[shmemi_thread_in_block()]);
}

static void run(void)
{
    struct simt_grid grid = { .blocks = 1, .threads = n_threads, .seed = seed, .mode = SIMT_THREADS };

    if (simt_launch(&grid, lane, NULL))
        fail("the launch has failed");
}
#else
static void run(void)
{
    pthread_t threads[THREADS];

    for (uint32_t i = 0; i < n_threads; i++)
        if (pthread_create(&threads[i], NULL, work, &posters[i]))
            fail("no thread");
    for (uint32_t i = 0; i < n_threads; i++)
        pthread_join(threads[i], NULL);
}
#endif

int main(int argc, char **argv)
{
    uint64_t adds = 0;
    pthread_t drainer;
    int c;

    while ((c = getopt(argc, argv, "pn:t:s:")) != -1) {
        unsigned long v = optarg ? strtoul(optarg, NULL, 0) : 0;

        switch (c) {
        case 'p':
            is_private = 1;
            n_threads = 1;
            break;
        case 'n': n_ops = (uint32_t)v; break;
        case 't': n_threads = v <= THREADS ? (uint32_t)v : THREADS; break;
        case 's': seed = v; break;
        default: return 2;
        }
    }
    check_time();
    for (uint32_t i = 0; i < THREADS; i++)
        posters[i].id = i + 1;
    if (pthread_create(&drainer, NULL, drain, NULL))
        return 2;
    run();
    SHMEMI_ST_RLX(&stop, 1u);
    pthread_join(drainer, NULL);
    for (uint32_t i = 0; i < n_threads; i++)
        adds += posters[i].adds;
    if (counter != adds)
        fail("an increment is lost");
    printf("%llu requests, %llu bytes\n", (unsigned long long)taken, (unsigned long long)bytes);
    return 0;
}
