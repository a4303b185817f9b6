/* SPDX-License-Identifier: BSD-3-Clause */
/* net_bounce.c - bounce buffers of contexts, and landing slots of calls. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "net_bounce.h"

#include "log.h"
#include "net_queue.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* ---- registered memory ---- */

static char *map(size_t bytes, struct shmemi_nic_key *key_out)
{
    char *mem = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (mem == MAP_FAILED)
        return NULL;
    if (shmemi_net.module->mem_register(shmemi_net.nic, mem, bytes, key_out)) {
        munmap(mem, bytes);
        return NULL;
    }
    return mem;
}

static void unmap(char *mem, size_t bytes, struct shmemi_nic_key *key)
{
    shmemi_net.module->mem_deregister(shmemi_net.nic, key);
    munmap(mem, bytes);
}

/* ---- bounce buffers ---- */

void shmemi_bounce_lock(struct shmemi_net_ctx *c)
{
    if (c->shared)
        pthread_mutex_lock(&c->bounce.lock);
}

void shmemi_bounce_unlock(struct shmemi_net_ctx *c)
{
    if (c->shared)
        pthread_mutex_unlock(&c->bounce.lock);
}

static void make(struct shmemi_net_bounce *b, const char *call)
{
    b->ops = calloc(SHMEMI_BOUNCE_OPS, sizeof *b->ops);
    b->mem = b->ops ? map(SHMEMI_BOUNCE_BYTES, &b->key) : NULL;
    if (!b->mem)
        shmemi_fatal(call, "no bounce buffer of %zu bytes for memory that the NIC does not know", SHMEMI_BOUNCE_BYTES);
}

/* Hands over what the operation has brought, once. */
static void copy_on(struct shmemi_bounce_op *op, const char *call)
{
    uint32_t be;

    if (!op->to)
        return;
    if (op->kind == SHMEMI_BOUNCE_AMO4) {
        memcpy(&be, op->from, sizeof be);
        be = __builtin_bswap32(be); /* as the NIC writes 4-byte results, whatever this CPU's order: see be32 in net_amo.c */
        shmemi_net_move(op->to, &be, sizeof be, call);
    } else {
        shmemi_net_move(op->to, op->from, op->len, call);
    }
    op->to = NULL;
}

static void retire_oldest(struct shmemi_net_bounce *b, const char *call)
{
    struct shmemi_bounce_op *op = &b->ops[b->first % SHMEMI_BOUNCE_OPS];

    shmemi_net_wait(op->q, op->ticket, call);
    copy_on(op, call);
    b->tail = op->end;
    b->first++;
}

char *shmemi_bounce_take(struct shmemi_net_ctx *c, size_t len, const char *call)
{
    struct shmemi_net_bounce *b = &c->bounce;
    size_t at, take = (len + 7) & ~(size_t)7;

    if (!b->mem)
        make(b, call);
    if (b->first == b->last)
        b->head = b->tail = 0;
    at = b->head % SHMEMI_BOUNCE_BYTES;
    if (at + take > SHMEMI_BOUNCE_BYTES) { /* no piece goes round the end */
        b->head += SHMEMI_BOUNCE_BYTES - at;
        at = 0;
    }
    while (b->first != b->last &&
           (b->head + take - b->tail > SHMEMI_BOUNCE_BYTES || b->last - b->first == SHMEMI_BOUNCE_OPS))
        retire_oldest(b, call);
    b->head += take;
    return b->mem + at;
}

void shmemi_bounce_give(struct shmemi_net_ctx *c, struct shmemi_net_queue *q, uint64_t ticket,
                        enum shmemi_bounce_kind kind, char *at, void *to, size_t len)
{
    struct shmemi_net_bounce *b = &c->bounce;

    b->ops[b->last++ % SHMEMI_BOUNCE_OPS] = (struct shmemi_bounce_op){
        .q = q, .ticket = ticket, .end = b->head, .to = to, .from = at, .len = (uint32_t)len, .kind = (uint8_t)kind,
    };
}

void shmemi_bounce_drain(struct shmemi_net_ctx *c, const struct shmemi_net_queue *only, const char *call)
{
    struct shmemi_net_bounce *b = &c->bounce;

    if (SHMEMI_LD_RLX(&b->first) == SHMEMI_LD_RLX(&b->last))
        return; /* threads that share the context: another one's operations are not this one's to wait for */
    shmemi_bounce_lock(c);
    while (!only && b->first != b->last)
        retire_oldest(b, call);
    for (uint32_t i = b->first; i != b->last; i++) {
        struct shmemi_bounce_op *op = &b->ops[i % SHMEMI_BOUNCE_OPS];

        if (op->q == only && op->to) {
            shmemi_net_wait(op->q, op->ticket, call);
            copy_on(op, call);
        }
    }
    shmemi_bounce_unlock(c);
}

void shmemi_bounce_free(struct shmemi_net_ctx *c)
{
    if (c->bounce.mem)
        unmap(c->bounce.mem, SHMEMI_BOUNCE_BYTES, &c->bounce.key);
    free(c->bounce.ops);
    c->bounce.mem = NULL;
    c->bounce.ops = NULL;
    c->bounce.head = c->bounce.tail = 0;
    c->bounce.first = c->bounce.last = 0;
}

/* ---- landing slots ---- */

#define N_LANDINGS 64
#define LANDING_ALL ((size_t)(N_LANDINGS + 1) * SHMEMI_LANDING_BYTES) /* the last one is for scrap */

static struct {
    char *mem;
    struct shmemi_nic_key key;
    uint64_t busy; /* a bit a slot */
} landing;

int shmemi_landing_init(void)
{
    landing.busy = 0;
    landing.mem = map(LANDING_ALL, &landing.key);
    return landing.mem ? 0 : -ENOMEM;
}

void shmemi_landing_fini(void)
{
    if (landing.mem)
        unmap(landing.mem, LANDING_ALL, &landing.key);
    landing.mem = NULL;
}

char *shmemi_landing_take(void)
{
    uint64_t busy = SHMEMI_LD_RLX(&landing.busy);

    for (;;) {
        if (busy == UINT64_MAX) { /* as many threads are in such a call; each comes to its end */
            sched_yield();
            busy = SHMEMI_LD_RLX(&landing.busy);
            continue;
        }
        int i = __builtin_ctzll(~busy);

        if (__atomic_compare_exchange_n(&landing.busy, &busy, busy | 1ull << i, true, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED)) /* pairs with shmemi_landing_put */
            return landing.mem + (size_t)i * SHMEMI_LANDING_BYTES;
    }
}

void shmemi_landing_put(char *slot)
{
    size_t i = (size_t)(slot - landing.mem) / SHMEMI_LANDING_BYTES;

    __atomic_fetch_and(&landing.busy, ~(1ull << i), __ATOMIC_RELEASE);
}

uint32_t shmemi_landing_key(const struct shmemi_net_queue *q)
{
    return landing.key.lkey[q->rail];
}

uint64_t shmemi_landing_scrap(void)
{
    return (uint64_t)(uintptr_t)(landing.mem + N_LANDINGS * SHMEMI_LANDING_BYTES);
}
