/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sq.h - the mlx5 send queue, posted by whoever calls: a GPU thread or a host thread (the "ibgda" data path).
 *
 * One queue leads to one peer.  Its completion queue is collapsed: one entry, which the NIC
 * overwrites.  A ticket is the index behind an operation's last 64-byte block; tickets only grow, 64 bits wide, and the NIC
 * knows their low 16 bits.  `mode` is a constant at each call site, so the code for the other mode folds away:
 *
 *     SHMEMI_SQ_PRIVATE   one thread at a time posts (who orders the threads orders the queue): no atomics
 *     SHMEMI_SQ_SHARED    any thread posts at any time
 *
 * Keys, as everything that goes into an entry, are stored big-endian (shmemi_be32) once, at set-up.
 */
#ifndef SHMEM_DEVICE_SQ_H
#define SHMEM_DEVICE_SQ_H

#include "port.h"

enum shmemi_sq_mode { SHMEMI_SQ_PRIVATE, SHMEMI_SQ_SHARED };

/* Flags of a post. */
enum {
    SHMEMI_SQ_DEFER = 1, /* leave the doorbell to a later post, shmemi_sq_ring or quiet */
    SHMEMI_SQ_FENCE = 2, /* starts only when the queue's earlier reads and atomics are complete */
};

struct shmemi_sq {
    /* set when the queue is connected, constant then; one line */
    uint64_t *ring;     /* 1 << log_depth blocks of 64 bytes */
    uint32_t *dbrec;    /* the send half of the doorbell record */
    uint64_t *doorbell; /* register in the UAR page */
    uint8_t *cqe;       /* the one completion entry, 64 bytes, filled with 0xff at first */
    uint32_t qpn;
    uint32_t log_depth; /* at most 15 */
    uint64_t pad[3];
    /* producers */
    uint64_t reserved;  /* blocks handed out */
    uint64_t ready;     /* blocks written, in order */
    uint64_t rung;      /* blocks that the doorbell has told the NIC of */
    uint64_t pad2[5];
    /* completion */
    uint64_t done;      /* blocks complete */
    uint32_t error;     /* 0, or syndrome | vendor syndrome << 8 | 1 << 31: the first error, which stays */
    uint32_t error_index; /* low 16 bits: the failed entry's index */
    uint64_t pad3[6];
};

/*
 * The calls (all SHMEMI_FN, all take struct shmemi_sq *sq, enum shmemi_sq_mode mode):
 *
 *   uint64_t shmemi_sq_write(sq, mode, raddr, shmemi_be32 rkey, laddr, shmemi_be32 lkey, uint32_t len, int flags)
 *   uint64_t shmemi_sq_write_inline(sq, mode, raddr, rkey, const void *data, uint32_t len, int flags)
 *   uint64_t shmemi_sq_read(sq, mode, raddr, rkey, laddr, lkey, uint32_t len, int flags)
 *   uint64_t shmemi_sq_amo(sq, mode, enum shmemi_sq_amo_op op, unsigned size, raddr, rkey,
 *                          uint64_t operand, uint64_t cond, laddr, lkey, int flags)
 *       op: FETCH_ADD, CSWAP, SWAP, AND, OR, XOR; size 4 or 8.  The old value goes to laddr: 8 bytes in host order,
 *       4 bytes big-endian as the NIC writes them; shmemi_sq_amo_result() reads either.
 *   uint64_t shmemi_sq_write_signal(...)  a write, then its signal (inline write to SET, atomic to ADD), one doorbell
 *   void     shmemi_sq_ring(sq, mode)          rings for what DEFER has left
 *   uint32_t shmemi_sq_poll(sq)                takes in the completion entry; nonzero: sq->error
 *   int      shmemi_sq_is_done(sq, ticket)     after a poll: the operation is complete (or the queue in error)
 *
 * A post that finds the queue full polls until there is room, and gives up (ticket UINT64_MAX) when the queue is in error.
 */

#endif
