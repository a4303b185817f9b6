/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net_queue.h - the inside of the network core: a context's queues, what is posted on them, and what is complete.
 *
 * Each context has a table of queues by world PE, connected on first use and kept until finalize: a context that takes
 * a destroyed one's slot takes its queues too.  How a queue is posted to is one byte, `mode`:
 *
 *     PRIVATE   one thread at a time: no atomics; the queues with something under way are chained (ctx->dirty)
 *     SHARED    several threads; nothing is chained, a queue is dirty when its two counters differ
 *     VERBS     through the module, which locks where threads share the queue
 *
 * Deferred posts: a small non-blocking operation leaves the doorbell to the next post without DEFER, to every
 * SHMEMI_NET_BATCH-th post, quiet, or a wait, whichever comes first.  It needs a thread that will come by, so a
 * context of its own thread in a program with several of them does without.
 */
#ifndef SHMEMI_NET_QUEUE_H
#define SHMEMI_NET_QUEUE_H

#include "net.h"

#include "check.h"
#include "devmem_rma.h"
#include "net_bounce.h"

#include <pthread.h>

#define SHMEMI_NET_BATCH 16
#define SHMEMI_NET_SMALL 8192u /* bytes: a blocking put copies up to this much and returns at once */
#define SHMEMI_NET_DEFER_MAX 2048u /* bytes: more is worth a doorbell of its own */

enum shmemi_net_mode { SHMEMI_NET_PRIVATE, SHMEMI_NET_SHARED, SHMEMI_NET_VERBS };

struct shmemi_net_queue {
    struct shmemi_nic_queue nic; /* first: its `sq` is what a post touches */
    /* constant once connected */
    SHMEMI_ALIGNED_LINE uint64_t heap_delta; /* what to add to an own address in the heap, */
    uint64_t data_delta;                     /* and in the static data */
    struct shmemi_net_ctx *ctx;
    uint32_t rkey, lkey; /* of the whole slices, host order */
    shmemi_be32 rkey_be, lkey_be;
    uint32_t inline_max;
    uint8_t mode; /* enum shmemi_net_mode */
    uint8_t rail; /* whose local keys to use */
    bool has_data;
    /* the peer's device heap, once it is known to its NIC; it may grow, under a new key (net_dheap.h) */
    uint64_t dheap_at, dheap_len;
    uint32_t dheap_rkey;
    /* changes with every post */
    bool dirty; /* PRIVATE and unshared VERBS: chained in the context */
    uint8_t n_deferred; /* where threads share the queue only about right: shmemi_net_owes says what is true */
    int pe;
    struct shmemi_net_queue *next; /* in the context's chain: of the dirty ones, or of all where it is shared */
    uint64_t last, done;           /* VERBS: the last ticket, and what is complete */
    uint64_t deferred, rung;       /* VERBS: the last ticket that was left to a later post, and the last one that was not */
    uint64_t probe;                /* ticket of the probe under way, or 0 */
};

struct shmemi_net_ctx {
    struct shmemi_net_queue **queues; /* by world PE; NULL: no queue yet, or not to be used any more */
    struct shmemi_net_queue *chain;   /* dirty queues; of a shared context all of them */
    bool shared, defers;
    bool alien; /* in a forked child */
    pthread_mutex_t lock;             /* of a new connection */
    struct shmemi_net_ctx *next;      /* all contexts that ever had a queue */
    struct shmemi_net_bounce bounce;
};

extern struct shmemi_net_ctx shmemi_net_default;

/* The context's part in here, made on first use. */
struct shmemi_net_ctx *shmemi_net_ctx_of(shmem_ctx_t ctx, const char *call);

/* First use of a queue; ends the job where no NIC leads to `addr` at `pe`. */
SHMEMI_COLD struct shmemi_net_queue *shmemi_net_connect(struct shmemi_net_ctx *c, const void *addr, int pe,
                                                        const char *call);

/* The queue has failed, or a post has found it so: says why and ends the job. */
SHMEMI_COLD SHMEMI_NORETURN void shmemi_net_failed(struct shmemi_net_queue *q, const char *call);

SHMEMI_INLINE struct shmemi_net_queue *shmemi_net_queue_of(shmem_ctx_t ctx, const void *addr, int pe, const char *call)
{
    struct shmemi_net_ctx *c = shmemi_likely(ctx == SHMEM_CTX_DEFAULT) ? &shmemi_net_default
                                                                       : shmemi_net_ctx_of(ctx, call);
    struct shmemi_net_queue *q;

    if (shmemi_likely(c->queues != NULL)) {
        q = SHMEMI_LD_ACQ(&c->queues[pe]); /* pairs with shmemi_net_connect */
        if (shmemi_likely(q != NULL))
            return q;
    }
    return shmemi_net_connect(c, addr, pe, call);
}

SHMEMI_COLD SHMEMI_NORETURN void shmemi_net_no_data(const struct shmemi_net_queue *q, const void *addr, const char *call);
/* The same for an address in the device heap. */
SHMEMI_COLD uint64_t shmemi_net_dheap_raddr(const struct shmemi_net_queue *q, const void *addr, const char *call);

/* Where an own symmetric address, already checked, lies at the peer. */
SHMEMI_INLINE uint64_t shmemi_net_raddr(const struct shmemi_net_queue *q, const void *addr, const char *call)
{
    uintptr_t a = (uintptr_t)addr;

    if (shmemi_likely(a - shmemi.heap_base < shmemi.heap_len))
        return a + q->heap_delta;
    if (shmemi_unlikely(a - shmemi.dheap_base < shmemi.dheap_len))
        return shmemi_net_dheap_raddr(q, addr, call);
    if (shmemi_unlikely(!q->has_data))
        shmemi_net_no_data(q, addr, call);
    return a + q->data_delta;
}

/* The key of what lies at that address of the peer: the slice's, or the device heap's. */
SHMEMI_INLINE uint32_t shmemi_rkey(const struct shmemi_net_queue *q, uint64_t raddr)
{
    return shmemi_likely(raddr - q->dheap_at >= SHMEMI_LD_RLX(&q->dheap_len)) ? q->rkey : SHMEMI_LD_RLX(&q->dheap_rkey);
}

SHMEMI_INLINE shmemi_be32 shmemi_rkey_be(const struct shmemi_net_queue *q, uint64_t raddr)
{
    return shmemi_likely(raddr - q->dheap_at >= SHMEMI_LD_RLX(&q->dheap_len))
               ? q->rkey_be
               : shmemi_be32_of(SHMEMI_LD_RLX(&q->dheap_rkey));
}

/* ---- posting (net_post.c); len is not 0 unless said; ends the job when the queue has failed; gives the ticket ---- */

uint64_t shmemi_net_post_inline(struct shmemi_net_queue *q, uint64_t raddr, const void *data, uint32_t len, int flags,
                                const char *call);
uint64_t shmemi_net_post_write(struct shmemi_net_queue *q, uint64_t raddr, uint64_t laddr, uint32_t lkey, uint32_t len,
                               int flags, const char *call);
/* With a signal behind it, in one post.  Not for the mode VERBS. */
uint64_t shmemi_net_post_inline_signal(struct shmemi_net_queue *q, uint64_t raddr, const void *data, uint32_t len,
                                       const struct shmemi_sq_signal *sig, const char *call);
uint64_t shmemi_net_post_write_signal(struct shmemi_net_queue *q, uint64_t raddr, uint64_t laddr, uint32_t lkey,
                                      uint32_t len, const struct shmemi_sq_signal *sig, const char *call);
uint64_t shmemi_net_post_read(struct shmemi_net_queue *q, uint64_t raddr, uint64_t laddr, uint32_t lkey, uint32_t len,
                              int flags, const char *call);
/* 8-byte ones, which every device has; compare NULL: fetch-add. */
uint64_t shmemi_net_post_atomic(struct shmemi_net_queue *q, uint64_t raddr, uint64_t operand, const uint64_t *compare,
                                uint64_t laddr, uint32_t lkey, int flags, const char *call);
/* Those that an mlx5 device has beyond; op: enum shmemi_sq_amo_op. */
uint64_t shmemi_net_post_amo(struct shmemi_net_queue *q, int op, unsigned size, uint64_t raddr, uint64_t operand,
                             uint64_t cond, uint64_t laddr, uint32_t lkey, int flags, const char *call);
/* A short write, which may be empty, that does not end the job: false when the queue has failed. */
bool shmemi_net_post_try(struct shmemi_net_queue *q, uint64_t raddr, const void *data, uint32_t len, uint64_t *ticket_out);
/* Rings for what was deferred.  The ticket that covers all posts so far. */
uint64_t shmemi_net_ring(struct shmemi_net_queue *q, const char *call);

/*
 * Something may still be without a doorbell.  Who has posted it, or was told so by who has, is never answered no.  A
 * SHARED queue knows by itself, and rings only where it must.
 */
SHMEMI_INLINE bool shmemi_net_owes(const struct shmemi_net_queue *q)
{
    if (q->mode == SHMEMI_NET_PRIVATE)
        return q->n_deferred;
    return q->mode == SHMEMI_NET_SHARED || SHMEMI_LD_RLX(&q->deferred) > SHMEMI_LD_RLX(&q->rung);
}

/* The queue has something under way. */
SHMEMI_INLINE void shmemi_net_mark(struct shmemi_net_queue *q)
{
    struct shmemi_net_ctx *c = q->ctx;

    if (q->dirty || c->shared)
        return;
    q->dirty = true;
    q->next = c->chain;
    c->chain = q;
}

/* DEFER, or 0 where the time has come for a doorbell. */
SHMEMI_INLINE int shmemi_net_defer(struct shmemi_net_queue *q, size_t len)
{
    unsigned n = SHMEMI_LD_RLX(&q->n_deferred) + 1u;

    if (!q->ctx->defers || len > SHMEMI_NET_DEFER_MAX || n >= SHMEMI_NET_BATCH)
        return 0;
    SHMEMI_ST_RLX(&q->n_deferred, (uint8_t)n);
    return SHMEMI_SQ_DEFER;
}

/* ---- completion (net_queue.c) ---- */

/* Polls once.  Ends the job when the queue has failed. */
bool shmemi_net_done(struct shmemi_net_queue *q, uint64_t ticket, const char *call);
/* Rings, and waits until everything up to `ticket` is complete. */
void shmemi_net_wait(struct shmemi_net_queue *q, uint64_t ticket, const char *call);
void shmemi_net_wait_all(struct shmemi_net_queue *q, const char *call);
/* -EIO when it has failed. */
int shmemi_net_poll(struct shmemi_net_queue *q);

/* Own memory that the NIC knows: symmetric memory, and its key on the queue's rail.  False: it must be copied. */
bool shmemi_net_registered(const struct shmemi_net_queue *q, const void *addr, size_t len, uint64_t *laddr_out,
                           uint32_t *lkey_out);
/* Is a local buffer memory of a GPU, which the CPU does not touch? */
SHMEMI_INLINE bool shmemi_net_on_gpu(const void *local)
{
    return shmemi_unlikely(shmemi.gpu_up) && shmemi_devmem_holds(local);
}
/* Copies between memory of the host and a local buffer of any kind, on either side. */
void shmemi_net_move(void *to, const void *from, size_t len, const char *call);
/* As shmemi_net_put_strided and _get_strided, where the local side is memory of a GPU that the NIC does not know. */
SHMEMI_COLD void shmemi_net_put_gathered(shmem_ctx_t ctx, void *dest, size_t dst, const void *source, size_t sst, size_t n,
                                         size_t block, int pe, const char *call);
SHMEMI_COLD void shmemi_net_get_scattered(shmem_ctx_t ctx, void *dest, size_t dst, const void *source, size_t sst, size_t n,
                                          size_t block, int pe, const char *call);

/* The device heaps have changed: tells the queues that there are. */
void shmemi_net_queues_dheap(void);
int shmemi_net_queues_init(void);
/* Closes every queue; what is still under way gets some time, and errors no longer matter. */
void shmemi_net_queues_fini(void);

#endif
