/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stress_sq.c - several threads on one shared queue with a NIC of its own thread: small rings, so that they
 * are full most of the time, entries of every kind and length, deferred doorbells.  Each value written is
 * checked.
 *
 * ThreadSanitizer looks on (mutants.sh): the NIC's acquire of the record and its release of completions
 * are all the order that hardware gives.  With -p one thread posts to a private queue instead,
 * with -b the queue has no doorbell record, and the NIC goes by the doorbell alone.
 *
 *     stress_sq [-p] [-b] [-n operations of each thread] [-t threads] [-l log2 of the ring's blocks] [-s seed]
 */
#include "queue.h"

#include <getopt.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

enum { THREADS = 8, SLOTS = 8, WORDS = 26, LIMIT_SECONDS = 100 };

static struct queue *q;
static enum shmemi_sq_mode mode = SHMEMI_SQ_SHARED;
static uint32_t n_threads = 3, n_ops = 2000;
static uint64_t counter, seed = 1;
static int stop;

struct poster {
    pthread_t thread;
    uint32_t id;
    uint64_t adds, random;
    uint64_t remote[SLOTS][WORDS]; /* only this thread's operations go there */
    uint64_t local[SLOTS][WORDS];
    uint64_t want[SLOTS];
    uint64_t ticket[SLOTS]; /* of the last operation on the slot */
};
static struct poster posters[THREADS];

static void fail(const char *what)
{
    fprintf(stderr, "stress_sq: %s (NIC: %s)\n", what, q->nic.complaint ? q->nic.complaint : "content");
    exit(1);
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

static void *nic(void *arg)
{
    uint64_t random = seed;

    (void)arg;
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        if (!soft_nic_run(&q->nic, 1 + (uint32_t)(random >> 60)))
            sched_yield();
        if (q->nic.complaint)
            fail("the NIC complains");
        check_time();
    }
    return NULL;
}

static void wait_for(uint64_t ticket)
{
    uint32_t spins = 0;

    if (ticket == SHMEMI_SQ_FAILED)
        fail("a post has failed");
    while (!shmemi_sq_is_done(&q->sq, ticket)) {
        if (shmemi_sq_poll(&q->sq))
            fail("the queue is in error");
        shmemi_backoff(&spins);
    }
}

static void wait_all(void)
{
    wait_for(shmemi_sq_ring(&q->sq, mode));
}

/* Everything a thread has sent to a slot has arrived there, and a read brings it back. */
static void check_slot(struct poster *p, uint32_t slot)
{
    uint64_t back[WORDS];

    wait_all();
    memset(back, 0, sizeof back);
    for (uint32_t i = 0; i < WORDS; i++)
        if (p->remote[slot][i] != p->want[slot])
            fail("a write has not arrived");
    wait_for(shmemi_sq_read(&q->sq, mode, queue_va(p->remote[slot]), queue_rkey(), queue_va(back),
                            queue_lkey(), sizeof back, 0));
    for (uint32_t i = 0; i < WORDS; i++)
        if (back[i] != p->want[slot])
            fail("a read has brought something else");
}

static uint64_t random_of(struct poster *p)
{
    p->random = p->random * 6364136223846793005u + 1442695040888963407u;
    return p->random >> 33;
}

static void operate(struct poster *p, uint32_t op)
{
    uint32_t slot = op % SLOTS;
    int flags = random_of(p) % 2 ? SHMEMI_SQ_DEFER : 0;
    uint64_t v = (uint64_t)p->id << 32 | op, ticket, words[WORDS], old = 0;

    for (uint32_t i = 0; i < WORDS; i++)
        words[i] = v;
    p->want[slot] = v;
    switch (random_of(p) % 4) {
    case 0: /* one piece */
        ticket = shmemi_sq_write_inline(&q->sq, mode, queue_va(p->remote[slot]), queue_rkey(), words,
                                        sizeof words, flags);
        break;
    case 1: /* from registered memory, which an earlier write of this slot may still be reading */
        wait_all();
        memcpy(p->local[slot], words, sizeof words);
        ticket = shmemi_sq_write(&q->sq, mode, queue_va(p->remote[slot]), queue_rkey(),
                                 queue_va(p->local[slot]), queue_lkey(), sizeof words, flags);
        break;
    case 2: /* words */
        for (uint32_t i = 0; i < WORDS; i++)
            ticket =
                shmemi_sq_write_value(&q->sq, mode, queue_va(&p->remote[slot][i]), queue_rkey(), v, 8, flags);
        break;
    default: /* an atomic, whose old value is awaited */
        ticket = shmemi_sq_write_inline(&q->sq, mode, queue_va(p->remote[slot]), queue_rkey(), words,
                                        sizeof words, SHMEMI_SQ_DEFER);
        if (ticket == SHMEMI_SQ_FAILED)
            fail("a post has failed");
        ticket = shmemi_sq_amo(&q->sq, mode, op % 2 ? SHMEMI_SQ_FETCH_ADD : SHMEMI_SQ_XOR, 8,
                               op % 2 ? queue_va(&counter) : queue_va(&p->remote[slot][0]), queue_rkey(),
                               op % 2, 0, queue_va(&old), queue_lkey(), 0);
        p->adds += op % 2;
        wait_for(ticket);
        if (op % 2 == 0 && old != v)
            fail("an atomic has overtaken a write");
        break;
    }
    if (ticket == SHMEMI_SQ_FAILED)
        fail("a post has failed");
    if (random_of(p) % 8 == 0)
        check_slot(p, slot);
}

static void *post(void *arg)
{
    struct poster *p = arg;

    p->random = seed * 1000 + p->id;
    for (uint32_t op = 1; op <= n_ops; op++)
        operate(p, op);
    for (uint32_t slot = 0; slot < SLOTS; slot++)
        check_slot(p, slot);
    return NULL;
}

int main(int argc, char **argv)
{
    uint32_t log_depth = 5;
    uint64_t adds = 0;
    pthread_t nic_thread;
    int c;

    while ((c = getopt(argc, argv, "bpn:t:l:s:")) != -1) {
        unsigned long v = optarg ? strtoul(optarg, NULL, 0) : 0;

        switch (c) {
        case 'p':
            mode = SHMEMI_SQ_PRIVATE;
            n_threads = 1;
            break;
        case 'b': queue_flags = SHMEMI_SQ_NO_RECORD; break;
        case 'n': n_ops = (uint32_t)v; break;
        case 't': n_threads = v <= THREADS ? (uint32_t)v : THREADS; break;
        case 'l': log_depth = (uint32_t)v; break;
        case 's': seed = v; break;
        default: return 2;
        }
    }
    q = queue_new(log_depth, seed % 2 ? 65500 : 0);
    check_time();
    if (pthread_create(&nic_thread, NULL, nic, NULL))
        return 2;
    for (uint32_t i = 0; i < n_threads; i++) {
        posters[i].id = i + 1;
        if (pthread_create(&posters[i].thread, NULL, post, &posters[i]))
            return 2;
    }
    for (uint32_t i = 0; i < n_threads; i++) {
        pthread_join(posters[i].thread, NULL);
        adds += posters[i].adds;
    }
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    pthread_join(nic_thread, NULL);
    if (counter != adds)
        fail("an increment is lost");
    printf("%llu entries, %llu doorbells, %llu completions\n", (unsigned long long)q->nic.entries,
           (unsigned long long)q->nic.bells, (unsigned long long)q->nic.completions);
    return 0;
}
