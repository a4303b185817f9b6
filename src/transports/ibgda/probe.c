/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * probe.c - finds out what a flushed queue died of.
 *
 * The one completion entry holds the newest error, and flushes follow the first error at once.  So the
 * question is put again, over a fresh queue: does the peer answer at all, and may the ranges be read that the incomplete
 * entries were about?  Nothing is written there.
 */
#include "ibgda.h"

#include <endian.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { MOST_SUSPECTS = 64, FLUSHED = 0x05, NO_ANSWER = 0x15, SECOND = 1000000000 };

/* An entry that was not complete. */
struct suspect {
    uint64_t raddr;
    uint32_t len;
    shmemi_be32 rkey;
    uint8_t opcode;
};

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

/* How long the NIC itself may take to give a peer up, and some more for a virtual one. */
static uint64_t patience_ns(const struct shmemi_verbs_nic *nic)
{
    uint64_t once = 4096ull << (nic->config->timeout & 31);

    return 2u * (uint64_t)SECOND + 8 * once * (uint64_t)(nic->config->retry_count + 1);
}

static const uint8_t *entry_at(const struct shmemi_sq *sq, uint64_t idx)
{
    return (const uint8_t *)sq->ring + (idx & (sq->depth - 1)) * SHMEMI_IBGDA_BLOCK;
}

static unsigned blocks_of(const uint8_t *entry)
{
    const struct mlx5_wqe_ctrl_seg *ctrl = (const void *)entry;
    unsigned segments = be32toh(ctrl->qpn_ds) & 0x3f;

    return segments ? (segments + 3) / 4 : 1;
}

static bool suspicious(const uint8_t *entry, struct suspect *out)
{
    const struct mlx5_wqe_ctrl_seg *ctrl = (const void *)entry;
    const struct mlx5_wqe_raddr_seg *remote = (const void *)(ctrl + 1);
    uint32_t len;

    out->opcode = (uint8_t)(be32toh(ctrl->opmod_idx_opcode) & 0xff);
    out->raddr = be64toh(remote->raddr);
    memcpy(&out->rkey, &remote->rkey, sizeof out->rkey);
    switch (out->opcode) {
    case MLX5_OPCODE_RDMA_WRITE:
    case MLX5_OPCODE_RDMA_READ:
        memcpy(&len, remote + 1, sizeof len);
        out->len = be32toh(len) & ~MLX5_INLINE_SEG;
        return (be32toh(ctrl->qpn_ds) & 0x3f) > 2;
    case MLX5_OPCODE_ATOMIC_CS:
    case MLX5_OPCODE_ATOMIC_FA:
    case MLX5_OPCODE_ATOMIC_MASKED_CS:
    case MLX5_OPCODE_ATOMIC_MASKED_FA:
        out->len = 1;
        return true;
    default:
        return false;
    }
}

/* Those behind the last complete entry, oldest first. */
static int suspects(const struct shmemi_sq *sq, struct suspect *list)
{
    uint64_t idx = sq->done ? sq->done - 1 : 0;
    int n = 0;

    if (sq->done)
        idx += blocks_of(entry_at(sq, idx));
    while (idx < shmemi_sq_reserved(sq) && n < MOST_SUSPECTS) {
        n += suspicious(entry_at(sq, idx), &list[n]);
        idx += blocks_of(entry_at(sq, idx));
    }
    return n;
}

/* 0, or the syndrome that the queue died of. */
static uint8_t outcome(struct shmemi_sq *sq, uint64_t ticket, uint64_t deadline)
{
    while (now_ns() < deadline) {
        if (shmemi_sq_poll(sq))
            return (uint8_t)(sq->error & 0xff);
        if (shmemi_sq_is_done(sq, ticket))
            return 0;
        sched_yield();
    }
    return NO_ANSWER;
}

/* May these bytes be read?  One at each end tells. */
static uint8_t try_range(struct shmemi_verbs_nic *nic, struct shmemi_sq *sq, const struct suspect *s, uint64_t deadline)
{
    uint32_t scratch;
    uint64_t local = shmemi_verbs_service_scratch(nic, &scratch);
    shmemi_be32 lkey = shmemi_be32_of(scratch);
    uint8_t bad = outcome(sq, shmemi_sq_read(sq, SHMEMI_SQ_PRIVATE, s->raddr, s->rkey, local, lkey, 1, 0), deadline);

    if (bad || s->len < 2)
        return bad;
    return outcome(sq, shmemi_sq_read(sq, SHMEMI_SQ_PRIVATE, s->raddr + s->len - 1, s->rkey, local, lkey, 1, 0), deadline);
}

/* The syndrome found, or 0; *culprit: which of the list it was, or -1. */
static uint8_t ask(struct shmemi_verbs_nic *nic, int pe, const struct suspect *list, int n, int *culprit)
{
    uint64_t deadline = now_ns() + patience_ns(nic);
    struct shmemi_nic_queue q;
    uint8_t bad;

    *culprit = -1;
    if (shmemi_verbs_queue_probe(nic, pe, patience_ns(nic), &q))
        return NO_ANSWER;
    bad = outcome(&q.sq, shmemi_sq_write(&q.sq, SHMEMI_SQ_PRIVATE, 0, shmemi_be32_of(0), 0, shmemi_be32_of(0), 0, 0), deadline);
    for (int i = 0; i < n && !bad; i++) {
        bad = try_range(nic, &q.sq, &list[i], deadline);
        if (bad)
            *culprit = i;
    }
    shmemi_verbs_queue_close(&q);
    return bad;
}

/* As shown to the user; one error ends the job, so the text need not live longer than the thread. */
static const char *found(const char *what)
{
    static _Thread_local char text[200];

    snprintf(text, sizeof text, "%s (found by asking again: those behind it had flushed the first error)", what);
    return text;
}

bool shmemi_ibgda_probe(struct shmemi_nic_queue *nq, struct shmemi_nic_error *out)
{
    struct shmemi_verbs_nic *nic = shmemi_verbs_of(nq->nic);
    struct suspect list[MOST_SUSPECTS];
    int n = suspects(&nq->sq, list), culprit;
    uint8_t bad = ask(nic, nq->pe, list, n, &culprit);
    const struct shmemi_verbs_syndrome *s = shmemi_verbs_syndrome(bad);

    if (!bad || bad == FLUSHED)
        return false;
    /* A peer that does not answer fails the oldest first. */
    if (culprit < 0 && n > 0)
        culprit = 0;
    out->syndrome = bad;
    out->vendor_syndrome = 0;
    out->what = found(s->what);
    out->advice = s->advice;
    if (culprit >= 0) {
        out->operation = shmemi_ibgda_opcode_name(list[culprit].opcode);
        out->raddr = list[culprit].raddr;
    }
    return true;
}
