/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sq_run.h - a run: several entries of one thread under one reservation, one fence, one completion and one doorbell.
 *
 * Who knows how many blocks it is going to post asks for them at once, fills them one entry after the other, which costs no more than
 * its stores, and closes the run.  On a shared queue others may reserve behind it meanwhile; they wait for their turn, so nothing
 * that takes long comes between open and close.
 */
#ifndef SHMEM_DEVICE_SQ_RUN_H
#define SHMEM_DEVICE_SQ_RUN_H

#include "sq.h"

struct shmemi_sq_run {
    struct shmemi_sq_fixed q;
    struct shmemi_sq_claim c;
    uint32_t n, used; /* blocks */
    uint64_t last, bell; /* of the entry filled last */
    int flags, signalled;
};

/* As many blocks as a run may have. */
SHMEMI_FN uint32_t shmemi_sq_run_most(const struct shmemi_sq *sq)
{
    return sq->depth / 2;
}

/* For `n` blocks, all of which are to be filled. 0, or the error of the queue. */
SHMEMI_FN uint32_t shmemi_sq_run_open(struct shmemi_sq *sq, enum shmemi_sq_mode mode, uint32_t n, int flags,
                                      struct shmemi_sq_run *r)
{
    uint32_t error;

    r->q = shmemi_sq_fixed_of(sq);
    r->flags = flags;
    r->last = r->bell = 0;
    error = shmemi_sq_reserve(sq, &r->q, mode, n, flags, &r->c);
    r->n = n;
    r->used = 0;
    r->signalled = shmemi_sq_signals(&r->q, r->c.idx, n, flags);
    return error;
}

/* The next entry takes n blocks: its flags.  Only the first is fenced, only the last signalled. */
SHMEMI_FN uint32_t shmemi_sq_run_next(struct shmemi_sq_run *r, uint32_t n)
{
    uint32_t fm = shmemi_sq_fm(r->signalled && r->used + n == r->n, r->used == 0 ? r->flags : 0);

    r->last = r->c.idx + r->used;
    r->used += n;
    return fm;
}

SHMEMI_FN void shmemi_sq_run_rdma(struct shmemi_sq_run *r, uint32_t opcode, uint64_t raddr, shmemi_be32 rkey, uint64_t laddr,
                                  shmemi_be32 lkey, uint32_t len)
{
    uint32_t fm = shmemi_sq_run_next(r, 1);

    r->bell = shmemi_sq_fill_rdma(&r->q, r->last, opcode, fm, raddr, rkey, laddr, lkey, len);
}

SHMEMI_FN void shmemi_sq_run_value(struct shmemi_sq_run *r, uint64_t raddr, shmemi_be32 rkey, uint64_t value, uint32_t size)
{
    uint32_t fm = shmemi_sq_run_next(r, 1);

    r->bell = shmemi_sq_fill_value(&r->q, r->last, fm, raddr, rkey, value, size);
}

/* shmemi_sq_inline_blocks(len) blocks. */
SHMEMI_FN void shmemi_sq_run_inline(struct shmemi_sq_run *r, uint64_t raddr, shmemi_be32 rkey, const void *data, uint32_t len)
{
    uint32_t fm = shmemi_sq_run_next(r, shmemi_sq_inline_blocks(len));

    r->bell = shmemi_sq_fill_inline(&r->q, r->last, fm, raddr, rkey, data, len);
}

/* All blocks are filled: a ticket for the whole, or SHMEMI_SQ_FAILED. */
SHMEMI_FN uint64_t shmemi_sq_run_close(struct shmemi_sq *sq, enum shmemi_sq_mode mode, const struct shmemi_sq_run *r)
{
    return shmemi_sq_publish(sq, &r->q, mode, &r->c, r->n, r->last, r->bell, r->signalled, r->flags);
}

#endif
