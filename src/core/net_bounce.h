/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net_bounce.h - registered memory in between, for local buffers that the NIC does not know.
 *
 * A context's bounce buffer is a ring of bytes, with a record for each operation under way; it is made on
 * first use.  Bytes are reused in order, so taking some may wait for the oldest operation.  What a read brings is
 * copied on when its record retires: at quiet, or when room is needed.
 *
 * Landing slots are for blocking reads and atomics with a small result: any thread takes one for the time of a call.
 */
#ifndef SHMEMI_NET_BOUNCE_H
#define SHMEMI_NET_BOUNCE_H

#include "transports/nic.h"

#include <pthread.h>
#include <stdbool.h>

#define SHMEMI_BOUNCE_BYTES ((size_t)512 << 10)
#define SHMEMI_BOUNCE_PIECE ((size_t)64 << 10) /* most for one operation */
#define SHMEMI_BOUNCE_OPS 256u
#define SHMEMI_LANDING_BYTES 1024u

struct shmemi_net_queue;
struct shmemi_net_ctx;

enum shmemi_bounce_kind { SHMEMI_BOUNCE_PUT, SHMEMI_BOUNCE_GET, SHMEMI_BOUNCE_AMO4 };

struct shmemi_bounce_op {
    struct shmemi_net_queue *q;
    uint64_t ticket;
    size_t end; /* where the ring's tail is after it */
    void *to;   /* GET, AMO4: the user's buffer */
    const char *from;
    uint32_t len;
    uint8_t kind;
};

struct shmemi_net_bounce {
    char *mem; /* NULL: not made yet */
    struct shmemi_nic_key key;
    size_t head, tail;          /* free-running */
    uint32_t first, last;       /* records, free-running */
    struct shmemi_bounce_op *ops;
    pthread_mutex_t lock; /* shared contexts only */
};

/*
 * Room for `len` bytes, at most a piece.  The caller posts an operation that uses it and gives its ticket, in between
 * holding the context's bounce lock.
 */
char *shmemi_bounce_take(struct shmemi_net_ctx *c, size_t len, const char *call);
void shmemi_bounce_give(struct shmemi_net_ctx *c, struct shmemi_net_queue *q, uint64_t ticket,
                        enum shmemi_bounce_kind kind, char *at, void *to, size_t len);
void shmemi_bounce_lock(struct shmemi_net_ctx *c);
void shmemi_bounce_unlock(struct shmemi_net_ctx *c);
/* Waits for every operation, of `only` or (NULL) of all queues, and hands over what reads have brought. */
void shmemi_bounce_drain(struct shmemi_net_ctx *c, const struct shmemi_net_queue *only, const char *call);
void shmemi_bounce_free(struct shmemi_net_ctx *c);

/* SHMEMI_LANDING_BYTES of registered memory. */
char *shmemi_landing_take(void);
void shmemi_landing_put(char *slot);
uint32_t shmemi_landing_key(const struct shmemi_net_queue *q); /* on the queue's rail */
/* Where results go that nobody wants. */
uint64_t shmemi_landing_scrap(void);
int shmemi_landing_init(void);
void shmemi_landing_fini(void);

#endif
