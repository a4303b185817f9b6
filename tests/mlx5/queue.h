/* SPDX-License-Identifier: BSD-3-Clause */
/* queue.h - a send queue of ours on a soft_nic, for the tests of this folder. */
#ifndef TESTS_MLX5_QUEUE_H
#define TESTS_MLX5_QUEUE_H

#include "shmem/device/sq.h"
#include "soft_nic.h"

#include <stdlib.h>

struct queue {
    struct shmemi_sq sq;
    struct soft_nic nic;
};

/* Of the queues that are made from now on: 0, or SHMEMI_SQ_NO_RECORD, and then their NIC goes by the doorbell alone. */
static uint32_t queue_flags;

static inline shmemi_be32 queue_lkey(void)
{
    return shmemi_be32_of(SOFT_NIC_LKEY);
}

static inline shmemi_be32 queue_rkey(void)
{
    return shmemi_be32_of(SOFT_NIC_RKEY);
}

static inline uint64_t queue_va(const void *p)
{
    return (uint64_t)(uintptr_t)p;
}

/* first: index of the first block, so that the wrap of 16 bits is near. */
static inline struct queue *queue_new(uint32_t log_depth, uint64_t first)
{
    struct queue *q = aligned_alloc(256, (sizeof *q + 255) / 256 * 256);
    uint8_t *ring = aligned_alloc(4096, (64u << log_depth) < 4096 ? 4096 : 64u << log_depth);

    if (!q || !ring)
        abort();
    memset(q, 0, sizeof *q);
    memset(ring, 0xee, 64u << log_depth);
    q->nic.ring = ring;
    q->nic.depth = 1u << log_depth;
    q->nic.no_record = queue_flags & SHMEMI_SQ_NO_RECORD;
    if (shmemi_sq_init(&q->sq, ring, &q->nic.dbrec, &q->nic.doorbell, q->nic.cqe, SOFT_NIC_QPN, log_depth, queue_flags))
        abort();
    q->sq.reserved = q->sq.done = q->sq.tail = first;
    q->nic.next = q->nic.limit = (uint16_t)first;
    q->nic.dbrec = shmemi_sq_record(first);
    return q;
}

static inline void queue_free(struct queue *q)
{
    free(q->nic.ring);
    free(q);
}

#endif
