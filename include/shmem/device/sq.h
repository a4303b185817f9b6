/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sq.h - the mlx5 send queue, posted by whoever calls: a GPU thread or a host thread (the "ibgda" data path).
 *
 * One queue leads to one peer.  Its completion queue is collapsed: one entry, which the NIC overwrites.  A
 * ticket is the index of an operation's last entry, plus 1; tickets only grow, 64 bits wide, and the NIC
 * knows their low 16 bits.  (An entry of several blocks completes under its first one's index, so a ticket
 * may be less than `reserved`.)
 *
 * `mode` is a constant at each call site, so the code for the other mode folds away; it is the same for all
 * calls on a queue:
 *
 *     SHMEMI_SQ_PRIVATE   one thread at a time posts (who orders the threads orders the queue): no atomics
 *     SHMEMI_SQ_SHARED    any thread posts at any time: one fetch-add, then entries go out in its order
 *
 * The doorbell record tells the NIC up to where the ring is filled.  In the shared mode it is also the
 * producers' baton: who finds his own index in it is next, publishes his entries by moving it on, and rings.
 * So one release store serves both.  It holds 16 bits, so only who is within one ring of `done` may look at
 * it.
 *
 * One doorbell and one signalled entry a batch: a post rings unless SHMEMI_SQ_DEFER leaves it to a later
 * post, or (shared) another thread that has reserved behind us will.  Deferred entries are signalled and rung
 * for once a quarter of the ring, so a full ring always drains.
 *
 * What is constant in a queue is read once a post, into registers (struct shmemi_sq_fixed): on a GPU an acquire empties the
 * first level of cache, and each of these words would come from the second again.  So a private post takes no atomic and
 * one fence, a shared one at most two trips to the second level of cache (the reservation, with the baton looked at
 * meanwhile; only when it is another's turn the baton again) and one fence.
 *
 * Keys, as everything that goes into an entry, are stored big-endian (shmemi_be32) once, at set-up.
 */
#ifndef SHMEM_DEVICE_SQ_H
#define SHMEM_DEVICE_SQ_H

#include "mlx5.h"
#include "port.h"

enum shmemi_sq_mode { SHMEMI_SQ_PRIVATE, SHMEMI_SQ_SHARED };

/* Flags of a post. */
enum {
    SHMEMI_SQ_DEFER = 1, /* leave the doorbell to a later post, shmemi_sq_ring or a quarter of the ring */
    SHMEMI_SQ_FENCE = 2, /* starts only when the queue's earlier reads and atomics are complete */
    /*
     * A value on a private queue, all 64 bytes of its entry stored in the doorbell's register, from where a NIC may take it; nothing
     * is waited for.  A NIC that reads the ring all the same does so a trip over PCIe later, and nothing but that time says
     * that the ring is written by then: to be confirmed on each kind of hardware, so nobody does it unless told to.
     */
    SHMEMI_SQ_BLUEFLAME = 4,
};

/* Flags of a queue. */
enum {
    SHMEMI_SQ_NEAR = 1, /* ring, record and completion entry lie in the memory of the GPU that posts */
};

#define SHMEMI_SQ_FAILED UINT64_MAX /* in place of a ticket: the queue is in error */

enum {
    SHMEMI_SQ_LOG_DEPTH_MIN = 4,
    SHMEMI_SQ_LOG_DEPTH_MAX = 15, /* so that 16-bit indices within a ring are never ambiguous */
    SHMEMI_SQ_ENTRY_BLOCKS = 4,   /* the longest entry we write */
    /* What fits there.  Beyond it a NIC gathers as fast as it fetches entries, and the copy costs more. */
    SHMEMI_SQ_INLINE_MAX = SHMEMI_SQ_ENTRY_BLOCKS * SHMEMI_MLX5_BLOCK - 36,
    SHMEMI_SQ_SWEEP = 32, /* blocks after which a shared queue is rung for even if another thread would */
};

struct shmemi_sq {
    /* set when the queue is connected, constant then; 16 bytes at a time, as shmemi_sq_fixed_of reads them */
    SHMEMI_ALIGNED(16) char *ring; /* 1 << log_depth blocks */
    uint32_t *dbrec;    /* the send half of the doorbell record */
    uint64_t *doorbell; /* register in the UAR page */
    uint32_t *cqe;      /* the one completion entry */
    shmemi_be32 qpn;    /* shifted as in a control segment */
    uint32_t flags;
    uint32_t depth, log_depth; /* in blocks */
    uint64_t pad[2];
    /* producers */
    uint64_t reserved; /* blocks handed out */
    uint64_t tail;     /* ticket of the last entry; shared: of the last signalled one */
    uint64_t deferred; /* ticket of the last entry that was left without signal and doorbell */
    uint64_t owed;     /* shared: whose doorbell was last left to the thread behind: that one's first block */
    uint64_t pad2[4];
    /* completion */
    uint64_t done; /* tickets up to this one are complete */
    /* 0, or the first error, which stays:
     * syndrome | vendor syndrome << 8 | 1 << 31 | index << 32 | opcode << 48 */
    uint64_t error;
    uint64_t pad3[6];
    uint64_t user[8]; /* the owner's */
};

SHMEMI_STATIC_ASSERT(sizeof(struct shmemi_sq) == 256, "a queue's address is its index shifted");

/* The constants of a queue, for the registers of whoever posts. */
struct shmemi_sq_fixed {
    char *ring;
    uint32_t *dbrec;
    uint64_t *doorbell;
    shmemi_be32 qpn;
    uint32_t flags, depth, log_depth;
};

SHMEMI_FN struct shmemi_sq_fixed shmemi_sq_fixed_of(const struct shmemi_sq *sq)
{
    struct shmemi_sq_fixed q;

    SHMEMI_ASSUME_GLOBAL(sq);
    q.ring = sq->ring;
    q.dbrec = sq->dbrec;
    q.doorbell = sq->doorbell;
    q.qpn = sq->qpn;
    q.flags = sq->flags;
    q.depth = sq->depth;
    q.log_depth = sq->log_depth;
    SHMEMI_ASSUME_GLOBAL(q.ring);
    SHMEMI_ASSUME_GLOBAL(q.dbrec);
    return q;
}

/* A signal that follows a write. */
struct shmemi_sq_signal {
    uint64_t raddr, value;
    shmemi_be32 rkey;
    int add;        /* an atomic; else a write of 8 bytes */
    uint64_t laddr; /* of ADD: 8 registered bytes for the old value, which nobody reads */
    shmemi_be32 lkey;
};

enum shmemi_sq_amo_op {
    SHMEMI_SQ_FETCH_ADD,
    SHMEMI_SQ_CSWAP,
    SHMEMI_SQ_SWAP,
    SHMEMI_SQ_AND,
    SHMEMI_SQ_OR,
    SHMEMI_SQ_XOR,
};

/* A fresh queue: the record is 0, nothing was posted. Fills the completion entry. 0, or -1: log_depth out of
 * range. */
SHMEMI_FN int shmemi_sq_init(struct shmemi_sq *sq, void *ring, uint32_t *dbrec, uint64_t *doorbell, void *cqe,
                             uint32_t qpn, uint32_t log_depth, uint32_t flags)
{
    if (log_depth < SHMEMI_SQ_LOG_DEPTH_MIN || log_depth > SHMEMI_SQ_LOG_DEPTH_MAX)
        return -1;
    sq->ring = (char *)ring;
    sq->dbrec = dbrec;
    sq->doorbell = doorbell;
    sq->cqe = (uint32_t *)cqe;
    sq->qpn = shmemi_be32_of(qpn << 8);
    sq->flags = flags;
    sq->depth = 1u << log_depth;
    sq->log_depth = log_depth;
    sq->reserved = sq->tail = sq->deferred = 0;
    sq->owed = UINT64_MAX;
    sq->done = sq->error = 0;
    for (int i = 0; i < 16; i++)
        sq->cqe[i] = 0xffffffffu;
    return 0;
}

/* ---- completion ---- */

/* Blocks complete after this completion; `done` was read before `last`, so the difference is never negative.
 */
SHMEMI_FN uint64_t shmemi_sq_widen(uint64_t done, uint32_t last)
{
    return done + (uint16_t)(shmemi_mlx5_cqe_index(last) + 1u - (uint16_t)done);
}

/* The first error stays; flush errors that follow it into the same entry are not looked at. */
SHMEMI_FN_COLD uint32_t shmemi_sq_keep_error(struct shmemi_sq *sq, uint32_t last)
{
    uint32_t syndrome = SHMEMI_LD_RLX(sq->cqe + SHMEMI_MLX5_CQE_SYNDROME);
    uint32_t opcode = SHMEMI_LD_RLX(sq->cqe + SHMEMI_MLX5_CQE_OPCODE);
    uint64_t none = 0, error;

    error = syndrome >> 24 | (syndrome >> 16 & 0xff) << 8 | 1u << 31 |
            (uint64_t)shmemi_mlx5_cqe_index(last) << 32 | (uint64_t)(opcode & 0xff) << 48;
    /* Another thread may have seen it first: then none is what it has kept. */
    if (SHMEMI_CAS_ACQREL_GPU(&sq->error, &none, error))
        return (uint32_t)error;
    return (uint32_t)none;
}

/* Takes in what the NIC has completed. 0, or the low half of sq->error. Any mode, any thread that may post.
 */
SHMEMI_FN uint32_t shmemi_sq_poll(struct shmemi_sq *sq)
{
    /* Pairs with the exchange below: who reads `done` has behind it what the NIC has written before. */
    uint64_t done = SHMEMI_LD_ACQ_GPU(&sq->done), seen;
    /* Pairs with the NIC's write of the completion: data of reads and atomics have arrived, blocks are free.
     */
    uint32_t last = SHMEMI_LD_ACQ(sq->cqe + SHMEMI_MLX5_CQE_LAST);

    if (SHMEMI_UNLIKELY(shmemi_mlx5_cqe_is_error(last)))
        return shmemi_sq_keep_error(sq, last);
    if (shmemi_mlx5_cqe_opcode(last) == 0) {
        seen = shmemi_sq_widen(done, last);
        /* Never backwards: a slow thread's `seen` may be older than what others have found meanwhile. */
        while (done < seen && !SHMEMI_CAS_ACQREL_GPU(&sq->done, &done, seen))
            ;
    }
    return 0;
}

/* After a poll: the operation is complete, or the queue is in error (which poll has said). */
SHMEMI_FN int shmemi_sq_is_done(struct shmemi_sq *sq, uint64_t ticket)
{
    /* Pairs with the exchange in poll. */
    return SHMEMI_LD_ACQ_GPU(&sq->done) >= ticket || SHMEMI_LD_RLX_GPU(&sq->error) != 0;
}

/* ---- the ring ---- */

SHMEMI_FN char *shmemi_sq_block(const struct shmemi_sq_fixed *q, uint64_t idx)
{
    return q->ring + (size_t)((uint32_t)idx & (q->depth - 1)) * SHMEMI_MLX5_BLOCK;
}

/* What the record says when all blocks before `idx` are written. */
SHMEMI_FN uint32_t shmemi_sq_record(uint64_t idx)
{
    return shmemi_bswap32((uint32_t)idx & 0xffff);
}

/* Does a deferred entry have to be signalled and rung for? */
SHMEMI_FN int shmemi_sq_quarter(const struct shmemi_sq_fixed *q, uint64_t idx, uint32_t n)
{
    return ((uint32_t)idx ^ (uint32_t)(idx + n)) >> (q->log_depth - 2) != 0; /* a carry beyond flips all of these, too */
}

/* Private: the last entry was written unsignalled and without a doorbell; makes up for both. */
SHMEMI_FN void shmemi_sq_ring_deferred(struct shmemi_sq *sq)
{
    const struct shmemi_sq_fixed q = shmemi_sq_fixed_of(sq);
    char *entry = shmemi_sq_block(&q, sq->tail - 1);

    sq->deferred = 0;
    entry[SHMEMI_MLX5_FM_CE_SE] = (char)(entry[SHMEMI_MLX5_FM_CE_SE] | SHMEMI_MLX5_SIGNALLED);
    /* Read by the NIC: the entries before the record are filled. */
    shmemi_st_rel_nic(q.dbrec, shmemi_sq_record(sq->reserved), q.flags & SHMEMI_SQ_NEAR);
    shmemi_mmio_st64(q.doorbell, *(const uint64_t *)(const void *)entry);
}

/* Waits until the blocks before `end` fit the ring. 0, or the error. */
SHMEMI_FN uint32_t shmemi_sq_await(struct shmemi_sq *sq, uint64_t end)
{
    uint32_t spins = 0, error;

    /* Pairs with the exchange in poll: the NIC has read what these blocks held. */
    while (end > SHMEMI_LD_ACQ_GPU(&sq->done) + sq->depth) {
        error = shmemi_sq_poll(sq);
        if (error)
            return error;
        shmemi_backoff(&spins);
    }
    return 0;
}

SHMEMI_FN_COLD uint32_t shmemi_sq_room_private(struct shmemi_sq *sq, uint64_t idx, uint32_t n)
{
    if (sq->deferred == sq->tail)
        shmemi_sq_ring_deferred(sq);
    return shmemi_sq_await(sq, idx + n);
}

/* Until everything before `idx` is published. */
SHMEMI_FN_COLD uint32_t shmemi_sq_turn(struct shmemi_sq *sq, uint64_t idx)
{
    uint32_t mine = shmemi_sq_record(idx), spins = 0, error;

    /* Pairs with the record's release by the thread before us: its entries are filled, ours may be published
     * too. */
    while (SHMEMI_LD_ACQ_GPU(sq->dbrec) != mine) {
        /* Who gives up on a queue in error never publishes. */
        error = spins % 32 ? 0 : shmemi_sq_poll(sq);
        if (error)
            return error;
        shmemi_backoff(&spins);
    }
    return 0;
}

/*
 * The ring is full. Entries before ours may lie there without a doorbell, so we first become the next to
 * publish, ring for them, and then wait for room.
 */
SHMEMI_FN_COLD uint32_t shmemi_sq_room_shared(struct shmemi_sq *sq, uint64_t idx, uint32_t n)
{
    uint32_t error = shmemi_sq_await(sq, idx); /* from here on the record's 16 bits mean us */

    if (!error)
        error = shmemi_sq_turn(sq, idx);
    if (error)
        return error;
    if (SHMEMI_LD_RLX_GPU(&sq->owed) == idx ||
        SHMEMI_LD_RLX_GPU(&sq->deferred) > SHMEMI_LD_RLX_GPU(&sq->tail))
        shmemi_mmio_st64(sq->doorbell, shmemi_mlx5_ctrl(sq->qpn, idx));
    return shmemi_sq_await(sq, idx + n);
}

/*
 * Hands out `n` blocks (at most half a ring), which are the caller's to fill. 0, or the error of the queue.
 * Each reservation must be published.  *turn_out, shared: the one before is published already.
 */
SHMEMI_FN uint32_t shmemi_sq_reserve(struct shmemi_sq *sq, const struct shmemi_sq_fixed *q, enum shmemi_sq_mode mode,
                                     uint32_t n, uint64_t *idx_out, int *turn_out)
{
    uint64_t idx, done;
    uint32_t record;

    *turn_out = 1;
    if (mode == SHMEMI_SQ_PRIVATE) {
        *idx_out = idx = sq->reserved;
        if (SHMEMI_UNLIKELY((uint32_t)idx + n - (uint32_t)sq->done > q->depth))
            return shmemi_sq_room_private(sq, idx, n);
        return 0;
    }
    /* Neither load waits for the addition, so all three together take as long as that. */
    *idx_out = idx = shmemi_reserve_gpu(&sq->reserved, n);
    /* Pairs with the exchange in poll: the NIC has read what these blocks held. */
    done = SHMEMI_LD_ACQ_GPU(&sq->done);
    /* Pairs with the record's release by the thread before us.  It is not older than `done`: if ours are within a ring of that,
     * 16 bits mean what they say. */
    record = SHMEMI_LD_ACQ_GPU(q->dbrec);
    if (SHMEMI_UNLIKELY(idx + n > done + q->depth))
        return shmemi_sq_room_shared(sq, idx, n);
    *turn_out = record == shmemi_sq_record(idx);
    return 0;
}

/* Is the last entry of a post to be signalled (and the doorbell rung)? */
SHMEMI_FN int shmemi_sq_signals(const struct shmemi_sq_fixed *q, uint64_t idx, uint32_t n, int flags)
{
    return !(flags & SHMEMI_SQ_DEFER) || shmemi_sq_quarter(q, idx, n);
}

/*
 * The n blocks from idx on are filled; `last` is the index of the last entry, `doorbell` its first 8 bytes.  Who found the
 * queue idle rings at once; who had to wait for its turn looks whether another one waits behind.
 */
SHMEMI_FN uint64_t shmemi_sq_publish_shared(struct shmemi_sq *sq, const struct shmemi_sq_fixed *q, uint64_t idx, uint32_t n,
                                            uint64_t last, uint64_t doorbell, int signalled, int turn)
{
    uint64_t end = idx + n;
    int ring = signalled, more = 0;

    if (!turn) {
        more = SHMEMI_LD_RLX_GPU(&sq->reserved) != end && (idx ^ end) < SHMEMI_SQ_SWEEP;
        /* Pairs with the record's release below: what earlier threads wrote goes out with our own release. */
        if (SHMEMI_LD_ACQ_GPU(sq->dbrec) != shmemi_sq_record(idx) && shmemi_sq_turn(sq, idx))
            return SHMEMI_SQ_FAILED;
    }
    /* The words below are the baton holder's; others only look at them. */
    if (!ring)
        ring = SHMEMI_LD_RLX_GPU(&sq->owed) == idx;
    if (ring && more) {
        SHMEMI_ST_RLX_GPU(&sq->owed, end);
        ring = 0;
    }
    SHMEMI_ST_RLX_GPU(signalled ? &sq->tail : &sq->deferred, last + 1);
    /* Read by the NIC (the entries before it are filled) and by the next thread (it is its turn). */
    shmemi_st_rel_nic(q->dbrec, shmemi_sq_record(end), q->flags & SHMEMI_SQ_NEAR);
    if (ring)
        shmemi_mmio_st64(q->doorbell, doorbell);
    return last + 1;
}

SHMEMI_FN uint64_t shmemi_sq_publish(struct shmemi_sq *sq, const struct shmemi_sq_fixed *q, enum shmemi_sq_mode mode,
                                     uint64_t idx, uint32_t n, uint64_t last, uint64_t doorbell, int signalled, int turn)
{
    if (mode == SHMEMI_SQ_SHARED)
        return shmemi_sq_publish_shared(sq, q, idx, n, last, doorbell, signalled, turn);
    sq->reserved = idx + n;
    sq->tail = last + 1;
    if (signalled) {
        /* Read by the NIC: the entries before the record are filled. */
        shmemi_st_rel_nic(q->dbrec, shmemi_sq_record(idx + n), q->flags & SHMEMI_SQ_NEAR);
        shmemi_mmio_st64(q->doorbell, doorbell);
    } else {
        sq->deferred = last + 1;
    }
    return last + 1;
}

/* ---- entries ---- */

SHMEMI_FN uint32_t shmemi_sq_fm(int signalled, int flags)
{
    return (uint32_t)(signalled ? SHMEMI_MLX5_SIGNALLED : 0) |
           (uint32_t)(flags & SHMEMI_SQ_FENCE ? SHMEMI_MLX5_FENCED : 0);
}

/* Where an entry begins, and what of its first 8 bytes follows from that. */
struct shmemi_sq_slot {
    char *block;
    uint64_t ctrl;
};

SHMEMI_FN struct shmemi_sq_slot shmemi_sq_slot_at(const struct shmemi_sq_fixed *q, uint64_t idx)
{
    struct shmemi_sq_slot slot = { shmemi_sq_block(q, idx), shmemi_mlx5_ctrl(q->qpn, idx) };

    return slot;
}

/* Each of the following fills one entry from block idx on and returns its first 8 bytes, the doorbell's
 * value. */

SHMEMI_FN uint64_t shmemi_sq_fill(struct shmemi_sq_slot slot, uint32_t opcode, uint32_t opmod,
                                  uint32_t n_segs, uint32_t fm, uint64_t raddr, shmemi_be32 rkey)
{
    struct shmemi_v16 ctrl = { slot.ctrl | shmemi_mlx5_ctrl_op(opcode, opmod, n_segs),
                               shmemi_mlx5_ctrl_flags(fm) };

    shmemi_st16(slot.block, ctrl);
    shmemi_st16(slot.block + 16, shmemi_mlx5_raddr(raddr, rkey));
    return ctrl.x;
}

/* Completes, and does nothing else. */
SHMEMI_FN uint64_t shmemi_sq_fill_nop(const struct shmemi_sq_fixed *q, uint64_t idx)
{
    struct shmemi_sq_slot slot = shmemi_sq_slot_at(q, idx);
    struct shmemi_v16 ctrl = { slot.ctrl | shmemi_mlx5_ctrl_op(SHMEMI_MLX5_NOP, 0, 1),
                               shmemi_mlx5_ctrl_flags(SHMEMI_MLX5_SIGNALLED) };

    shmemi_st16(slot.block, ctrl);
    return ctrl.x;
}

/* RDMA write or read of registered local memory; of 0 bytes it has no data segment. */
SHMEMI_FN uint64_t shmemi_sq_fill_rdma(const struct shmemi_sq_fixed *q, uint64_t idx, uint32_t opcode, uint32_t fm,
                                       uint64_t raddr, shmemi_be32 rkey, uint64_t laddr, shmemi_be32 lkey,
                                       uint32_t len)
{
    struct shmemi_sq_slot slot = shmemi_sq_slot_at(q, idx);

    if (SHMEMI_LIKELY(len))
        shmemi_st16(slot.block + 32, shmemi_mlx5_data(laddr, lkey, len));
    return shmemi_sq_fill(slot, opcode, 0, len ? 3 : 2, fm, raddr, rkey);
}

/* Write of the low `size` bytes (1, 2, 4 or 8) of value. */
SHMEMI_FN uint64_t shmemi_sq_fill_value(const struct shmemi_sq_fixed *q, uint64_t idx, uint32_t fm, uint64_t raddr,
                                        shmemi_be32 rkey, uint64_t value, uint32_t size)
{
    struct shmemi_sq_slot slot = shmemi_sq_slot_at(q, idx);
    struct shmemi_v16 seg = { shmemi_mlx5_inline(size) | value << 32, value >> 32 };

    shmemi_st16(slot.block + 32, seg);
    return shmemi_sq_fill(slot, SHMEMI_MLX5_WRITE, 0, 3, fm, raddr, rkey);
}

/* SHMEMI_SQ_BLUEFLAME: the same entry, signalled, to the ring and to one of the register's two buffers of 256 bytes by turns. */
SHMEMI_FN uint64_t shmemi_sq_blue_value(struct shmemi_sq *sq, const struct shmemi_sq_fixed *q, uint64_t idx, int flags,
                                        uint64_t raddr, shmemi_be32 rkey, uint64_t value, uint32_t size)
{
    struct shmemi_sq_slot slot = shmemi_sq_slot_at(q, idx);
    struct shmemi_v16 seg[4] = { { slot.ctrl | shmemi_mlx5_ctrl_op(SHMEMI_MLX5_WRITE, 0, 3),
                                   shmemi_mlx5_ctrl_flags(shmemi_sq_fm(1, flags)) },
                                 shmemi_mlx5_raddr(raddr, rkey),
                                 { shmemi_mlx5_inline(size) | value << 32, value >> 32 },
                                 { 0, 0 } };
    uint64_t *reg = q->doorbell + (idx & 1) * 32;

    for (int i = 0; i < 4; i++)
        shmemi_st16(slot.block + i * 16, seg[i]);
    sq->reserved = sq->tail = idx + 1;
    SHMEMI_ST_RLX_GPU(q->dbrec, shmemi_sq_record(idx + 1));
    for (int i = 0; i < 4; i++) {
        shmemi_mmio_st64(reg + i * 2, seg[i].x);
        shmemi_mmio_st64(reg + i * 2 + 1, seg[i].y);
    }
    return idx + 1;
}

SHMEMI_FN uint32_t shmemi_sq_inline_segs(uint32_t len)
{
    return 2 + (len + 4 + 15) / 16;
}

SHMEMI_FN uint32_t shmemi_sq_inline_blocks(uint32_t len)
{
    return (shmemi_sq_inline_segs(len) + 3) / 4;
}

/* The n (less than 8) bytes at p, and nothing behind them. */
SHMEMI_FN uint64_t shmemi_sq_few(const char *p, uint32_t n)
{
    uint64_t v = 0;
    uint32_t at = 0;

    if (n & 4) {
        v = shmemi_ld32u(p);
        at = 4;
    }
    for (; at < n; at++)
        v |= (uint64_t)(unsigned char)p[at] << 8 * at;
    return v;
}

/* Bytes [at, at + 8) of the data, cut off at its end. */
SHMEMI_FN uint64_t shmemi_sq_word(const char *data, uint32_t at, uint32_t len)
{
    if (at + 8 <= len)
        return shmemi_ld64u(data + at);
    if (at >= len)
        return 0;
    if (len >= 8)
        return shmemi_ld64u(data + len - 8) >> (64 - 8 * (len - at));
    return shmemi_sq_few(data + at, len - at);
}

/* Inline write of at most SHMEMI_SQ_INLINE_MAX bytes; its entry may go round the ring's end. */
SHMEMI_FN uint64_t shmemi_sq_fill_inline(const struct shmemi_sq_fixed *q, uint64_t idx, uint32_t fm, uint64_t raddr,
                                         shmemi_be32 rkey, const void *data, uint32_t len)
{
    const char *from = (const char *)shmemi_any_object(data);
    uint32_t n_segs = shmemi_sq_inline_segs(len);
    struct shmemi_sq_slot slot = shmemi_sq_slot_at(q, idx);
    struct shmemi_v16 seg;

    if (len == 0)
        return shmemi_sq_fill_rdma(q, idx, SHMEMI_MLX5_WRITE, fm, raddr, rkey, 0, rkey, 0);
    seg.x = shmemi_mlx5_inline(len) | (len < 4 ? shmemi_sq_few(from, len) : shmemi_ld32u(from)) << 32;
    seg.y = shmemi_sq_word(from, 4, len);
    shmemi_st16(slot.block + 32, seg);
    for (uint32_t i = 3, at = 12; i < n_segs; i++, at += 16) {
        seg.x = shmemi_sq_word(from, at, len);
        seg.y = shmemi_sq_word(from, at + 8, len);
        shmemi_st16(shmemi_sq_block(q, idx + i / 4) + i % 4 * 16, seg);
    }
    return shmemi_sq_fill(slot, SHMEMI_MLX5_WRITE, 0, n_segs, fm, raddr, rkey);
}

/* Blocks of an atomic's entry. */
SHMEMI_FN uint32_t shmemi_sq_amo_blocks(enum shmemi_sq_amo_op op, uint32_t size)
{
    return size == 8 && (op == SHMEMI_SQ_SWAP || op == SHMEMI_SQ_AND || op == SHMEMI_SQ_OR) ? 2 : 1;
}

/* Masked compare-swap: where the bits of cond_mask agree with cond, the bits of mask become those of value.
 */
SHMEMI_FN uint64_t shmemi_sq_fill_masked(const struct shmemi_sq_fixed *q, uint64_t idx, uint32_t size, uint32_t fm,
                                         uint64_t raddr, shmemi_be32 rkey, uint64_t value, uint64_t mask,
                                         uint64_t cond, uint64_t cond_mask, struct shmemi_v16 result)
{
    struct shmemi_sq_slot slot = shmemi_sq_slot_at(q, idx);

    if (size == 4) {
        shmemi_st16(slot.block + 32,
                    shmemi_mlx5_quad4((uint32_t)value, (uint32_t)cond, (uint32_t)mask, (uint32_t)cond_mask));
        shmemi_st16(slot.block + 48, result);
        return shmemi_sq_fill(slot, SHMEMI_MLX5_MASKED_CS, SHMEMI_MLX5_OPMOD_4, 4, fm, raddr, rkey);
    }
    shmemi_st16(slot.block + 32, shmemi_mlx5_pair8(value, cond));
    shmemi_st16(slot.block + 48, shmemi_mlx5_pair8(mask, cond_mask));
    shmemi_st16(shmemi_sq_block(q, idx + 1), result);
    return shmemi_sq_fill(slot, SHMEMI_MLX5_MASKED_CS, SHMEMI_MLX5_OPMOD_8, 5, fm, raddr, rkey);
}

/* Masked fetch-add: no carry leaves a bit that is set in boundary, so with all set it is an exclusive or. */
SHMEMI_FN uint64_t shmemi_sq_fill_add(const struct shmemi_sq_fixed *q, uint64_t idx, uint32_t size, uint32_t fm,
                                      uint64_t raddr, shmemi_be32 rkey, uint64_t value, uint64_t boundary,
                                      struct shmemi_v16 result)
{
    struct shmemi_sq_slot slot = shmemi_sq_slot_at(q, idx);

    shmemi_st16(slot.block + 48, result);
    if (size == 4) {
        shmemi_st16(slot.block + 32, shmemi_mlx5_quad4((uint32_t)value, (uint32_t)boundary, 0, 0));
        return shmemi_sq_fill(slot, SHMEMI_MLX5_MASKED_FA, SHMEMI_MLX5_OPMOD_4, 4, fm, raddr, rkey);
    }
    shmemi_st16(slot.block + 32, shmemi_mlx5_pair8(value, boundary));
    if (boundary)
        return shmemi_sq_fill(slot, SHMEMI_MLX5_MASKED_FA, SHMEMI_MLX5_OPMOD_8, 4, fm, raddr, rkey);
    return shmemi_sq_fill(slot, SHMEMI_MLX5_FA, 0, 4, fm, raddr, rkey);
}

/* Size 4 or 8. The old value goes to laddr: see shmemi_sq_amo_result(). */
SHMEMI_FN uint64_t shmemi_sq_fill_amo(const struct shmemi_sq_fixed *q, uint64_t idx, enum shmemi_sq_amo_op op,
                                      uint32_t size, uint32_t fm, uint64_t raddr, shmemi_be32 rkey,
                                      uint64_t operand, uint64_t cond, uint64_t laddr, shmemi_be32 lkey)
{
    struct shmemi_v16 result = shmemi_mlx5_data(laddr, lkey, size);
    struct shmemi_sq_slot slot = shmemi_sq_slot_at(q, idx);

    switch (op) {
    case SHMEMI_SQ_CSWAP:
        if (size == 4)
            return shmemi_sq_fill_masked(q, idx, 4, fm, raddr, rkey, operand, UINT64_MAX, cond, UINT64_MAX,
                                         result);
        shmemi_st16(slot.block + 32, shmemi_mlx5_pair8(operand, cond));
        shmemi_st16(slot.block + 48, result);
        return shmemi_sq_fill(slot, SHMEMI_MLX5_CS, 0, 4, fm, raddr, rkey);
    case SHMEMI_SQ_SWAP:
        return shmemi_sq_fill_masked(q, idx, size, fm, raddr, rkey, operand, UINT64_MAX, 0, 0, result);
    case SHMEMI_SQ_AND:
        return shmemi_sq_fill_masked(q, idx, size, fm, raddr, rkey, operand, ~operand, 0, 0, result);
    case SHMEMI_SQ_OR:
        return shmemi_sq_fill_masked(q, idx, size, fm, raddr, rkey, operand, operand, 0, 0, result);
    case SHMEMI_SQ_XOR:
        return shmemi_sq_fill_add(q, idx, size, fm, raddr, rkey, operand, UINT64_MAX, result);
    default: return shmemi_sq_fill_add(q, idx, size, fm, raddr, rkey, operand, 0, result);
    }
}

/* The old value at laddr, once the ticket is done: 8 bytes come in host order, 4 bytes big-endian. */
SHMEMI_FN uint64_t shmemi_sq_amo_result(const void *at, uint32_t size)
{
    if (size == 4)
        return shmemi_bswap32(*(const volatile uint32_t *)at);
    return *(const volatile uint64_t *)at;
}

/* ---- posts: each returns a ticket, or SHMEMI_SQ_FAILED ---- */

SHMEMI_FN uint64_t shmemi_sq_rdma(struct shmemi_sq *sq, enum shmemi_sq_mode mode, uint32_t opcode,
                                  uint64_t raddr, shmemi_be32 rkey, uint64_t laddr, shmemi_be32 lkey,
                                  uint32_t len, int flags)
{
    const struct shmemi_sq_fixed q = shmemi_sq_fixed_of(sq);
    uint64_t idx, bell;
    int signalled, turn;

    if (SHMEMI_UNLIKELY(shmemi_sq_reserve(sq, &q, mode, 1, &idx, &turn)))
        return SHMEMI_SQ_FAILED;
    signalled = shmemi_sq_signals(&q, idx, 1, flags);
    bell =
        shmemi_sq_fill_rdma(&q, idx, opcode, shmemi_sq_fm(signalled, flags), raddr, rkey, laddr, lkey, len);
    return shmemi_sq_publish(sq, &q, mode, idx, 1, idx, bell, signalled, turn);
}

/* At most 1 GiB. `laddr` is registered and stays as it is until the ticket is done. */
SHMEMI_FN uint64_t shmemi_sq_write(struct shmemi_sq *sq, enum shmemi_sq_mode mode, uint64_t raddr,
                                   shmemi_be32 rkey, uint64_t laddr, shmemi_be32 lkey, uint32_t len,
                                   int flags)
{
    return shmemi_sq_rdma(sq, mode, SHMEMI_MLX5_WRITE, raddr, rkey, laddr, lkey, len, flags);
}

/* At most 1 GiB. */
SHMEMI_FN uint64_t shmemi_sq_read(struct shmemi_sq *sq, enum shmemi_sq_mode mode, uint64_t raddr,
                                  shmemi_be32 rkey, uint64_t laddr, shmemi_be32 lkey, uint32_t len, int flags)
{
    return shmemi_sq_rdma(sq, mode, SHMEMI_MLX5_READ, raddr, rkey, laddr, lkey, len, flags);
}

/* At most SHMEMI_SQ_INLINE_MAX bytes, which may change when the call returns. */
SHMEMI_FN uint64_t shmemi_sq_write_inline(struct shmemi_sq *sq, enum shmemi_sq_mode mode, uint64_t raddr,
                                          shmemi_be32 rkey, const void *data, uint32_t len, int flags)
{
    const struct shmemi_sq_fixed q = shmemi_sq_fixed_of(sq);
    uint32_t n = shmemi_sq_inline_blocks(len);
    uint64_t idx, bell;
    int signalled, turn;

    if (SHMEMI_UNLIKELY(shmemi_sq_reserve(sq, &q, mode, n, &idx, &turn)))
        return SHMEMI_SQ_FAILED;
    signalled = shmemi_sq_signals(&q, idx, n, flags);
    bell = shmemi_sq_fill_inline(&q, idx, shmemi_sq_fm(signalled, flags), raddr, rkey, data, len);
    return shmemi_sq_publish(sq, &q, mode, idx, n, idx, bell, signalled, turn);
}

/* The low `size` bytes of value: 1, 2, 4 or 8. */
SHMEMI_FN uint64_t shmemi_sq_write_value(struct shmemi_sq *sq, enum shmemi_sq_mode mode, uint64_t raddr,
                                         shmemi_be32 rkey, uint64_t value, uint32_t size, int flags)
{
    const struct shmemi_sq_fixed q = shmemi_sq_fixed_of(sq);
    uint64_t idx, bell;
    int signalled, turn;

    if (SHMEMI_UNLIKELY(shmemi_sq_reserve(sq, &q, mode, 1, &idx, &turn)))
        return SHMEMI_SQ_FAILED;
    signalled = shmemi_sq_signals(&q, idx, 1, flags);
    if (mode == SHMEMI_SQ_PRIVATE && signalled && (flags & SHMEMI_SQ_BLUEFLAME))
        return shmemi_sq_blue_value(sq, &q, idx, flags, raddr, rkey, value, size);
    bell = shmemi_sq_fill_value(&q, idx, shmemi_sq_fm(signalled, flags), raddr, rkey, value, size);
    return shmemi_sq_publish(sq, &q, mode, idx, 1, idx, bell, signalled, turn);
}

/* Size 4 or 8; laddr: `size` registered bytes, also when nobody wants the old value. */
SHMEMI_FN uint64_t shmemi_sq_amo(struct shmemi_sq *sq, enum shmemi_sq_mode mode, enum shmemi_sq_amo_op op,
                                 uint32_t size, uint64_t raddr, shmemi_be32 rkey, uint64_t operand,
                                 uint64_t cond, uint64_t laddr, shmemi_be32 lkey, int flags)
{
    const struct shmemi_sq_fixed q = shmemi_sq_fixed_of(sq);
    uint32_t n = shmemi_sq_amo_blocks(op, size);
    uint64_t idx, bell;
    int signalled, turn;

    if (SHMEMI_UNLIKELY(shmemi_sq_reserve(sq, &q, mode, n, &idx, &turn)))
        return SHMEMI_SQ_FAILED;
    signalled = shmemi_sq_signals(&q, idx, n, flags);
    bell = shmemi_sq_fill_amo(&q, idx, op, size, shmemi_sq_fm(signalled, flags), raddr, rkey, operand, cond,
                              laddr, lkey);
    return shmemi_sq_publish(sq, &q, mode, idx, n, idx, bell, signalled, turn);
}

SHMEMI_FN uint64_t shmemi_sq_fill_signal(const struct shmemi_sq_fixed *q, uint64_t idx, uint32_t fm,
                                         const struct shmemi_sq_signal *sig)
{
    if (!sig->add)
        return shmemi_sq_fill_value(q, idx, fm, sig->raddr, sig->rkey, sig->value, 8);
    return shmemi_sq_fill_amo(q, idx, SHMEMI_SQ_FETCH_ADD, 8, fm, sig->raddr, sig->rkey, sig->value, 0,
                              sig->laddr, sig->lkey);
}

/* A write and then its signal, under one doorbell and one completion. */
SHMEMI_FN uint64_t shmemi_sq_write_signal(struct shmemi_sq *sq, enum shmemi_sq_mode mode, uint64_t raddr,
                                          shmemi_be32 rkey, uint64_t laddr, shmemi_be32 lkey, uint32_t len,
                                          const struct shmemi_sq_signal *sig, int flags)
{
    const struct shmemi_sq_fixed q = shmemi_sq_fixed_of(sq);
    uint64_t idx, bell;
    int signalled, turn;

    if (SHMEMI_UNLIKELY(shmemi_sq_reserve(sq, &q, mode, 2, &idx, &turn)))
        return SHMEMI_SQ_FAILED;
    signalled = shmemi_sq_signals(&q, idx, 2, flags);
    shmemi_sq_fill_rdma(&q, idx, SHMEMI_MLX5_WRITE, shmemi_sq_fm(0, flags), raddr, rkey, laddr, lkey, len);
    bell = shmemi_sq_fill_signal(&q, idx + 1, shmemi_sq_fm(signalled, 0), sig);
    return shmemi_sq_publish(sq, &q, mode, idx, 2, idx + 1, bell, signalled, turn);
}

/* The same with at most SHMEMI_SQ_INLINE_MAX bytes inline. */
SHMEMI_FN uint64_t shmemi_sq_write_inline_signal(struct shmemi_sq *sq, enum shmemi_sq_mode mode,
                                                 uint64_t raddr, shmemi_be32 rkey, const void *data,
                                                 uint32_t len, const struct shmemi_sq_signal *sig, int flags)
{
    const struct shmemi_sq_fixed q = shmemi_sq_fixed_of(sq);
    uint32_t n = shmemi_sq_inline_blocks(len);
    uint64_t idx, bell;
    int signalled, turn;

    if (SHMEMI_UNLIKELY(shmemi_sq_reserve(sq, &q, mode, n + 1, &idx, &turn)))
        return SHMEMI_SQ_FAILED;
    signalled = shmemi_sq_signals(&q, idx, n + 1, flags);
    shmemi_sq_fill_inline(&q, idx, shmemi_sq_fm(0, flags), raddr, rkey, data, len);
    bell = shmemi_sq_fill_signal(&q, idx + n, shmemi_sq_fm(signalled, 0), sig);
    return shmemi_sq_publish(sq, &q, mode, idx, n + 1, idx + n, bell, signalled, turn);
}

/* Rings for what has been deferred; the ticket covers everything that this thread (private: any) has posted
 * so far. */
SHMEMI_FN uint64_t shmemi_sq_ring(struct shmemi_sq *sq, enum shmemi_sq_mode mode)
{
    const struct shmemi_sq_fixed q = shmemi_sq_fixed_of(sq);
    uint64_t idx, tail = SHMEMI_LD_RLX_GPU(&sq->tail);
    int turn;

    if (mode == SHMEMI_SQ_PRIVATE) {
        if (tail && sq->deferred == tail)
            shmemi_sq_ring_deferred(sq);
        return tail;
    }
    if (SHMEMI_LD_RLX_GPU(&sq->deferred) <= tail)
        return tail;
    /* Nobody may touch an entry that is published: a signalled one behind it does nothing else. */
    if (shmemi_sq_reserve(sq, &q, mode, 1, &idx, &turn))
        return SHMEMI_SQ_FAILED;
    return shmemi_sq_publish(sq, &q, mode, idx, 1, idx, shmemi_sq_fill_nop(&q, idx), 1, turn);
}

#endif
