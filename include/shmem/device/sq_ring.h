/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sq_ring.h - the ring of an mlx5 send queue, posted by whoever calls: a GPU thread or a host thread (the "ibgda" data path).
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
 * So one store serves both.  It holds 16 bits, so only who is within one ring of `done` may look at it.
 *
 * One doorbell and one signalled entry a batch: a post rings unless SHMEMI_SQ_DEFER leaves it to a later
 * post, or (shared) a post that has reserved behind us will: the top bits of `reserved` count those that ring.  Deferred
 * entries are signalled and rung for once a quarter of the ring, so a full ring always drains.
 *
 * What a post reads of the queue it reads at once and into registers: its constants (struct shmemi_sq_fixed) and its state.
 * So a private post takes no atomic and one fence, a shared one the reservation's trip to the second level of cache, with all
 * else looked at meanwhile, and one fence; only who finds that it is another's turn looks at the baton again.
 *
 * Order, the same in both modes: entries, then the fence, then the record, then the doorbell, before which a record that is not
 * SHMEMI_SQ_NEAR takes a fence of its own (shmemi_fence_record).  A shared post makes its fence
 * before it awaits its turn, so fences of several threads overlap and the baton goes from hand to hand without one.  By then all
 * that earlier threads wrote is where the NIC finds it, for each has fenced before it moved the baton on; the next one only has to
 * store behind the load that showed it its turn (SHMEMI_LD_GATE_GPU).  A CPU has no fence for that, but an acquire and a release,
 * which cost it nothing.
 *
 * Without a record (SHMEMI_SQ_NO_RECORD) the doorbell alone tells the NIC up to where the ring is filled: its value is the index behind
 * the last entry.  Then nothing has to be true of the order in which record and doorbell arrive, and a post is entries, fence,
 * doorbell, wherever the queue lies.  A shared queue still has the record's word, as the baton, which the NIC never reads; it moves
 * on behind the doorbell.  So on a CPU no value follows a later one, which a NIC whose register is memory (the tests') would lose; a GPU's
 * threads have no such order, and a real NIC needs none (DOCA's threads ring without a lock).
 *
 * Keys, as everything that goes into an entry, are stored big-endian (shmemi_be32) once, at set-up.
 */
#ifndef SHMEM_DEVICE_SQ_RING_H
#define SHMEM_DEVICE_SQ_RING_H

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
    SHMEMI_SQ_NO_RECORD = 2, /* the NIC goes by the doorbell's value, and never reads the record */
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
    /* set when the queue is connected, constant then; 16 bytes at a time, as posts read them */
    SHMEMI_ALIGNED(16) char *ring; /* `depth` blocks, a power of 2 */
    shmemi_be32 qpn; /* shifted as in a control segment */
    uint32_t depth;
    uint32_t *dbrec;    /* the send half of the doorbell record */
    uint64_t *doorbell; /* register in the UAR page */
    uint32_t *cqe;      /* the one completion entry */
    uint32_t flags, pad;
    uint64_t pad1[2];
    uint64_t user[8]; /* the owner's */
    /* A line of its own (of 128 bytes, a GPU's): what is written here takes the line from the first level of cache. */
    /* producers; the first pair is written, the second read at once by a private post */
    uint64_t reserved; /* blocks handed out; shared: see shmemi_sq_reserved */
    uint64_t tail;     /* ticket of the last entry; shared: of the last signalled one */
    uint64_t deferred; /* shared: ticket of the last entry left without signal and doorbell; private: all bits, if that is the last */
    /* completion */
    uint64_t done; /* tickets up to this one are complete */
    uint64_t pad2[4];
    /* 0, or the first error, which stays:
     * syndrome | vendor syndrome << 8 | 1 << 31 | index << 32 | opcode << 48 */
    uint64_t error;
    uint64_t pad3[7];
};

SHMEMI_STATIC_ASSERT(sizeof(struct shmemi_sq) == 256, "a queue's address is its index shifted");

/* `reserved` of a shared queue: blocks, and above them, modulo 2^16, how many of the posts will ring. */
#define SHMEMI_SQ_RINGS 48

SHMEMI_FN uint64_t shmemi_sq_reserved(const struct shmemi_sq *sq)
{
    return SHMEMI_LD_RLX_GPU((uint64_t *)&sq->reserved) & (((uint64_t)1 << SHMEMI_SQ_RINGS) - 1);
}

/* The constants of a queue, for the registers of whoever posts. */
struct shmemi_sq_fixed {
    char *ring;
    shmemi_be32 qpn;
    uint32_t depth;
    uint32_t *dbrec;
    uint64_t *doorbell;
    uint32_t flags;
};

/* What a post has reserved. */
struct shmemi_sq_claim {
    uint64_t idx;   /* of the first block */
    uint64_t taken; /* shared: `reserved` behind it */
    int turn;       /* shared: the one before is published already */
    int deferred;   /* private: the last entry is without signal and doorbell */
};

SHMEMI_FN struct shmemi_sq_fixed shmemi_sq_fixed_of(const struct shmemi_sq *sq)
{
    struct shmemi_sq_fixed q;
    struct shmemi_v16 first;

    SHMEMI_ASSUME_GLOBAL(sq);
    first = shmemi_ld16(sq); /* ring, qpn, depth */
    q.ring = (char *)(uintptr_t)first.x;
    q.qpn.raw = (uint32_t)first.y;
    q.depth = shmemi_high32(first.y);
    q.dbrec = sq->dbrec;
    q.doorbell = sq->doorbell;
    q.flags = sq->flags;
    SHMEMI_ASSUME_GLOBAL(q.ring);
    SHMEMI_ASSUME_GLOBAL(q.dbrec);
    return q;
}

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
    sq->reserved = sq->tail = sq->deferred = 0;
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
    return ((uint32_t)idx ^ ((uint32_t)idx + n)) >= q->depth / 4; /* a carry beyond flips all of these, too */
}

/*
 * May the queue be without a record?  Who posts only to queues that have one, as the library's own threads do, defines
 * SHMEMI_SQ_RECORDS, and does not look.
 */
SHMEMI_FN int shmemi_sq_no_record(const struct shmemi_sq_fixed *q)
{
#if defined(SHMEMI_SQ_RECORDS)
    (void)q;
    return 0;
#else
    return SHMEMI_UNLIKELY(q->flags & SHMEMI_SQ_NO_RECORD);
#endif
}

/*
 * The doorbell of a queue without a record, when all blocks before `end` are written.  Two public programs ring such queues: DOCA's
 * GPU library so, rdma-core's test with the first 8 bytes of the last entry.  Both are right where the NIC adds the size that the value
 * names, which is 0 here.  `doorbell`: those 8 bytes, which name the queue as well.
 */
SHMEMI_FN uint64_t shmemi_sq_bell(uint64_t doorbell, uint64_t end)
{
    const shmemi_be32 qpn = { shmemi_high32(doorbell) & 0xffffff };

    return shmemi_mlx5_ctrl(qpn, end, 0);
}

/*
 * The common queue: near, and with a record.  A GPU's post asks once, and nothing that only other queues need stands in its way: a
 * fence that a condition skips takes some 100 ns all the same.  To a CPU no memory is nearer than other.
 */
SHMEMI_FN int shmemi_sq_plain(const struct shmemi_sq_fixed *q)
{
#if defined(__CUDA_ARCH__)
    return SHMEMI_LIKELY(q->flags == SHMEMI_SQ_NEAR);
#else
    return !shmemi_sq_no_record(q);
#endif
}

/* Private: record and doorbell for all that is filled; `doorbell` is the first 8 bytes of the last entry. */
SHMEMI_FN void shmemi_sq_ring_private(struct shmemi_sq *sq, const struct shmemi_sq_fixed *q, uint64_t end, uint64_t doorbell)
{
    const int near = q->flags & SHMEMI_SQ_NEAR;

    (void)sq;
    /* Read by the NIC: the entries before the record, or before the doorbell's value, are filled. */
    if (shmemi_sq_plain(q)) {
        shmemi_st_rel_nic(q->dbrec, shmemi_sq_record(end), 1);
    } else if (shmemi_sq_no_record(q)) {
        shmemi_fence_nic(near);
        doorbell = shmemi_sq_bell(doorbell, end);
    } else {
        shmemi_st_rel_nic(q->dbrec, shmemi_sq_record(end), 0);
        shmemi_fence_record(0);
    }
    shmemi_mmio_st64(q->doorbell, doorbell);
}

/* The same where the constants are not at hand. */
SHMEMI_FN_COLD void shmemi_sq_ring_quarter(struct shmemi_sq *sq, uint64_t end, uint64_t doorbell)
{
    const struct shmemi_sq_fixed q = shmemi_sq_fixed_of(sq);

    sq->deferred = 0;
    shmemi_sq_ring_private(sq, &q, end, doorbell);
}

/* Private: the last entry was written unsignalled and without a doorbell; makes up for both. */
SHMEMI_FN_COLD void shmemi_sq_ring_deferred(struct shmemi_sq *sq)
{
    const struct shmemi_sq_fixed q = shmemi_sq_fixed_of(sq);
    char *entry = shmemi_sq_block(&q, sq->tail - 1);

    sq->deferred = 0;
    entry[SHMEMI_MLX5_FM_CE_SE] = (char)(entry[SHMEMI_MLX5_FM_CE_SE] | SHMEMI_MLX5_SIGNALLED);
    shmemi_sq_ring_private(sq, &q, sq->reserved, *(const uint64_t *)(const void *)entry);
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
    if (sq->deferred)
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
 * The ring is full. Entries before ours may lie there without a doorbell, left to one behind us, so we first become the next to
 * publish, ring for them (for nothing, if there are none), and then wait for room.
 */
SHMEMI_FN_COLD uint32_t shmemi_sq_room_shared(struct shmemi_sq *sq, uint64_t idx, uint32_t n)
{
    uint32_t error = shmemi_sq_await(sq, idx); /* from here on the record's 16 bits mean us */

    if (!error)
        error = shmemi_sq_turn(sq, idx);
    if (error)
        return error;
    shmemi_mmio_st64(sq->doorbell, shmemi_mlx5_ctrl(sq->qpn, idx, 0));
    return shmemi_sq_await(sq, idx + n);
}

/* Private: where a post of n blocks begins; is there room for it? */
SHMEMI_FN int shmemi_sq_look_private(const struct shmemi_sq *sq, const struct shmemi_sq_fixed *q, uint32_t n,
                                     struct shmemi_sq_claim *c)
{
    uint64_t deferred = sq->deferred, done = sq->done;

    c->idx = sq->reserved;
    c->taken = 0;
    c->turn = 1;
    c->deferred = deferred != 0;
    return (uint32_t)c->idx + n - (uint32_t)done <= q->depth;
}

/* The first of n blocks behind which a shared reservation ends. */
SHMEMI_FN uint64_t shmemi_sq_first(uint64_t taken, uint32_t n)
{
    return (taken - n) & (((uint64_t)1 << SHMEMI_SQ_RINGS) - 1);
}

/* Shared: reserves n blocks.  Is there room for them now? */
SHMEMI_FN int shmemi_sq_take_shared(struct shmemi_sq *sq, const struct shmemi_sq_fixed *q, uint32_t n, int flags,
                                    struct shmemi_sq_claim *c)
{
    const uint64_t more = n | (uint64_t)!(flags & SHMEMI_SQ_DEFER) << SHMEMI_SQ_RINGS;
    uint64_t done;
    uint32_t record;

    /* Neither load waits for the addition, so all three together take as long as that. */
    c->taken = shmemi_reserve_gpu(&sq->reserved, more) + more;
    /* Pairs with the exchange in poll: the NIC has read what these blocks held. */
    done = SHMEMI_LD_GATE_GPU(&sq->done);
    /* Pairs with the record's store by the thread before us.  It cannot be half of what 16 bits count older than `done`, so if ours
     * are within a ring of that, it means what it says. */
    record = SHMEMI_LD_GATE_GPU(q->dbrec);
    c->idx = shmemi_sq_first(c->taken, n);
    c->deferred = 0;
    c->turn = record == shmemi_sq_record(c->idx);
    return c->idx + n <= done + q->depth;
}

/*
 * Hands out `n` blocks (at most half a ring), which are the caller's to fill. 0, or the error of the queue.
 * Each reservation must be published.
 */
SHMEMI_FN uint32_t shmemi_sq_reserve(struct shmemi_sq *sq, const struct shmemi_sq_fixed *q, enum shmemi_sq_mode mode,
                                     uint32_t n, int flags, struct shmemi_sq_claim *c)
{
    if (mode == SHMEMI_SQ_PRIVATE) {
        if (SHMEMI_LIKELY(shmemi_sq_look_private(sq, q, n, c)))
            return 0;
        c->deferred = 0;
        return shmemi_sq_room_private(sq, c->idx, n);
    }
    if (SHMEMI_LIKELY(shmemi_sq_take_shared(sq, q, n, flags, c)))
        return 0;
    c->turn = 1;
    return shmemi_sq_room_shared(sq, c->idx, n);
}

/* Is the last entry of a post to be signalled (and the doorbell rung)? */
SHMEMI_FN int shmemi_sq_signals(const struct shmemi_sq_fixed *q, uint64_t idx, uint32_t n, int flags)
{
    return !(flags & SHMEMI_SQ_DEFER) || shmemi_sq_quarter(q, idx, n);
}

/*
 * Shared, fenced: may this post publish?  Who found the queue idle may at once; who has to wait for its turn looks meanwhile whether
 * another one that rings waits behind (then *ring becomes 0).  0, or the error.
 */
SHMEMI_FN uint32_t shmemi_sq_next(struct shmemi_sq *sq, const struct shmemi_sq_fixed *q, const struct shmemi_sq_claim *c,
                                  uint64_t end, int *ring)
{
    if (c->turn)
        return 0;
    if ((c->idx ^ end) < SHMEMI_SQ_SWEEP && (SHMEMI_LD_RLX_GPU(&sq->reserved) ^ c->taken) >> SHMEMI_SQ_RINGS)
        *ring = 0;
    /* Pairs with the record's store by the thread before us: what earlier threads wrote goes out with our own. */
    return SHMEMI_LD_GATE_GPU(q->dbrec) != shmemi_sq_record(c->idx) ? shmemi_sq_turn(sq, c->idx) : 0;
}

/*
 * shmemi_sq_publish_shared for queues that are far, or have no record; the constants are read again.  blocks: n, and where in them the
 * last entry begins << 16.  how: signalled, turn << 1.
 */
SHMEMI_FN_COLD uint64_t shmemi_sq_publish_other(struct shmemi_sq *sq, uint64_t taken, uint32_t blocks, int how, uint64_t doorbell)
{
    const struct shmemi_sq_claim c = { shmemi_sq_first(taken, blocks & 0xffff), taken, how >> 1, 0 };
    struct shmemi_sq_fixed q = shmemi_sq_fixed_of(sq);
    uint64_t end = c.idx + (blocks & 0xffff), last = c.idx + (blocks >> 16);
    int ring = how & 1;

    /* Read by the NIC: the entries before the record, or before the doorbell's value, are filled. */
    shmemi_fence_nic(q.flags & SHMEMI_SQ_NEAR);
    if (shmemi_sq_next(sq, &q, &c, end, &ring))
        return SHMEMI_SQ_FAILED;
    q = shmemi_sq_fixed_of(sq); /* once more: nothing of it was kept over the wait */
    SHMEMI_ST_RLX_GPU(how & 1 ? &sq->tail : &sq->deferred, last + 1);
    if (ring && shmemi_sq_no_record(&q)) {
        shmemi_mmio_st64(q.doorbell, shmemi_sq_bell(doorbell, end));
        ring = 0;
    }
    shmemi_st_fenced_nic(q.dbrec, shmemi_sq_record(end)); /* also read by the next thread: it is its turn */
    if (ring) {
        shmemi_fence_record(q.flags & SHMEMI_SQ_NEAR);
        shmemi_mmio_st64(q.doorbell, doorbell);
    }
    return last + 1;
}

/* The n blocks reserved are filled; `last` is the index of the last entry, `doorbell` its first 8 bytes. */
SHMEMI_FN uint64_t shmemi_sq_publish_shared(struct shmemi_sq *sq, const struct shmemi_sq_fixed *q,
                                            const struct shmemi_sq_claim *c, uint32_t n, uint64_t last, uint64_t doorbell,
                                            int signalled)
{
    uint64_t end = c->idx + n;
    int ring = signalled;

    if (!shmemi_sq_plain(q))
        return shmemi_sq_publish_other(sq, c->taken, n | (uint32_t)(last - c->idx) << 16, signalled | c->turn << 1, doorbell);
    /* Read by the NIC: the entries before the record, stored below, are filled. */
    shmemi_fence_nic(1);
    if (shmemi_sq_next(sq, q, c, end, &ring))
        return SHMEMI_SQ_FAILED;
    /* The baton holder's words; others only look at them. */
    SHMEMI_ST_RLX_GPU(signalled ? &sq->tail : &sq->deferred, last + 1);
    /* Also read by the next thread: it is its turn. */
    shmemi_st_fenced_nic(q->dbrec, shmemi_sq_record(end));
    if (ring)
        shmemi_mmio_st64(q->doorbell, doorbell);
    return last + 1;
}

SHMEMI_FN uint64_t shmemi_sq_publish_private(struct shmemi_sq *sq, const struct shmemi_sq_fixed *q,
                                             const struct shmemi_sq_claim *c, uint32_t n, uint64_t last, uint64_t doorbell,
                                             int signalled, int flags)
{
    uint64_t end = c->idx + n;

    sq->reserved = end;
    sq->tail = last + 1;
    if (flags & SHMEMI_SQ_DEFER) {
        if (!c->deferred)
            sq->deferred = UINT64_MAX;
        if (SHMEMI_UNLIKELY(signalled))
            shmemi_sq_ring_quarter(sq, end, doorbell);
        return last + 1;
    }
    if (c->deferred)
        sq->deferred = 0;
    shmemi_sq_ring_private(sq, q, end, doorbell);
    return last + 1;
}

SHMEMI_FN uint64_t shmemi_sq_publish(struct shmemi_sq *sq, const struct shmemi_sq_fixed *q, enum shmemi_sq_mode mode,
                                     const struct shmemi_sq_claim *c, uint32_t n, uint64_t last, uint64_t doorbell,
                                     int signalled, int flags)
{
    if (mode == SHMEMI_SQ_SHARED)
        return shmemi_sq_publish_shared(sq, q, c, n, last, doorbell, signalled);
    return shmemi_sq_publish_private(sq, q, c, n, last, doorbell, signalled, flags);
}

#endif
