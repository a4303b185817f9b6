/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sq.h - entries of the mlx5 send queue (sq_ring.h) and the calls that post them.
 */
#ifndef SHMEM_DEVICE_SQ_H
#define SHMEM_DEVICE_SQ_H

#include "sq_ring.h"

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

/* ---- entries ---- */

SHMEMI_FN uint32_t shmemi_sq_fm(int signalled, int flags)
{
    return (uint32_t)(signalled ? SHMEMI_MLX5_SIGNALLED : 0) |
           (uint32_t)(flags & SHMEMI_SQ_FENCE ? SHMEMI_MLX5_FENCED : 0);
}

/* Where an entry begins, and which number it has. */
struct shmemi_sq_slot {
    char *block;
    shmemi_be32 qpn;
    uint64_t idx;
};

SHMEMI_FN struct shmemi_sq_slot shmemi_sq_slot_at(const struct shmemi_sq_fixed *q, uint64_t idx)
{
    struct shmemi_sq_slot slot = { shmemi_sq_block(q, idx), q->qpn, idx };

    return slot;
}

/* Each of the following fills one entry from block idx on and returns its first 8 bytes, the doorbell's
 * value. */

SHMEMI_FN uint64_t shmemi_sq_fill(struct shmemi_sq_slot slot, uint32_t opcode, uint32_t opmod,
                                  uint32_t n_segs, uint32_t fm, uint64_t raddr, shmemi_be32 rkey)
{
    struct shmemi_v16 ctrl = { shmemi_mlx5_ctrl(slot.qpn, slot.idx, shmemi_mlx5_ctrl_op(opcode, opmod, n_segs)),
                               shmemi_mlx5_ctrl_flags(fm) };

    shmemi_st16(slot.block + 16, shmemi_mlx5_raddr(raddr, rkey));
    shmemi_st16(slot.block, ctrl);
    return ctrl.x;
}

/* Completes, and does nothing else. */
SHMEMI_FN uint64_t shmemi_sq_fill_nop(const struct shmemi_sq_fixed *q, uint64_t idx)
{
    struct shmemi_v16 ctrl = { shmemi_mlx5_ctrl(q->qpn, idx, shmemi_mlx5_ctrl_op(SHMEMI_MLX5_NOP, 0, 1)),
                               shmemi_mlx5_ctrl_flags(SHMEMI_MLX5_SIGNALLED) };

    shmemi_st16(shmemi_sq_block(q, idx), ctrl);
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
SHMEMI_FN uint64_t shmemi_sq_blue_value(struct shmemi_sq *sq, const struct shmemi_sq_fixed *q,
                                        const struct shmemi_sq_claim *c, int flags, uint64_t raddr, shmemi_be32 rkey,
                                        uint64_t value, uint32_t size)
{
    uint64_t idx = c->idx;
    char *block = shmemi_sq_block(q, idx);
    struct shmemi_v16 seg[4] = { { shmemi_mlx5_ctrl(q->qpn, idx, shmemi_mlx5_ctrl_op(SHMEMI_MLX5_WRITE, 0, 3)),
                                   shmemi_mlx5_ctrl_flags(shmemi_sq_fm(1, flags)) },
                                 shmemi_mlx5_raddr(raddr, rkey),
                                 { shmemi_mlx5_inline(size) | value << 32, value >> 32 },
                                 { 0, 0 } };
    uint64_t *reg = q->doorbell + (idx & 1) * 32;

    for (int i = 0; i < 4; i++)
        shmemi_st16(block + i * 16, seg[i]);
    sq->reserved = sq->tail = idx + 1;
    if (c->deferred)
        sq->deferred = 0;
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
    SHMEMI_ROLLED
    for (; at < n; at++)
        v |= (uint64_t)(unsigned char)p[at] << 8 * at;
    return v;
}

/* Bytes [at, at + 8) of the data, cut off at its end, of any alignment. */
SHMEMI_FN_COLD uint64_t shmemi_sq_odd_word(const char *data, uint32_t at, uint32_t len)
{
    if (at + 8 <= len)
        return shmemi_ld64u(data + at);
    if (at >= len)
        return 0;
    if (len >= 8)
        return shmemi_ld64u(data + len - 8) >> (64 - 8 * (len - at));
    return shmemi_sq_few(data + at, len - at);
}

/* The same; what a GPU needs a hundred instructions for is not repeated at each call. */
SHMEMI_FN uint64_t shmemi_sq_word(const char *data, uint32_t at, uint32_t len)
{
    if (at + 8 <= len && shmemi_in_halves(data + at))
        return shmemi_ld64h(data + at);
    return shmemi_sq_odd_word(data, at, len);
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
    SHMEMI_ROLLED
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
    uint64_t mask = UINT64_MAX, care = 0;

    if (op == SHMEMI_SQ_FETCH_ADD || op == SHMEMI_SQ_XOR)
        return shmemi_sq_fill_add(q, idx, size, fm, raddr, rkey, operand, op == SHMEMI_SQ_XOR ? UINT64_MAX : 0, result);
    if (op == SHMEMI_SQ_CSWAP && size == 8) {
        shmemi_st16(slot.block + 32, shmemi_mlx5_pair8(operand, cond));
        shmemi_st16(slot.block + 48, result);
        return shmemi_sq_fill(slot, SHMEMI_MLX5_CS, 0, 4, fm, raddr, rkey);
    }
    if (op == SHMEMI_SQ_CSWAP)
        care = UINT64_MAX;
    else
        mask = op == SHMEMI_SQ_AND ? ~operand : op == SHMEMI_SQ_OR ? operand : UINT64_MAX;
    return shmemi_sq_fill_masked(q, idx, size, fm, raddr, rkey, operand, mask, care ? cond : 0, care, result);
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
    struct shmemi_sq_claim c;
    uint64_t bell;
    int signalled;

    if (SHMEMI_UNLIKELY(shmemi_sq_reserve(sq, &q, mode, 1, flags, &c)))
        return SHMEMI_SQ_FAILED;
    signalled = shmemi_sq_signals(&q, c.idx, 1, flags);
    bell =
        shmemi_sq_fill_rdma(&q, c.idx, opcode, shmemi_sq_fm(signalled, flags), raddr, rkey, laddr, lkey, len);
    return shmemi_sq_publish(sq, &q, mode, &c, 1, c.idx, bell, signalled, flags);
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
    struct shmemi_sq_claim c;
    uint64_t bell;
    int signalled;

    if (SHMEMI_UNLIKELY(shmemi_sq_reserve(sq, &q, mode, n, flags, &c)))
        return SHMEMI_SQ_FAILED;
    signalled = shmemi_sq_signals(&q, c.idx, n, flags);
    bell = shmemi_sq_fill_inline(&q, c.idx, shmemi_sq_fm(signalled, flags), raddr, rkey, data, len);
    return shmemi_sq_publish(sq, &q, mode, &c, n, c.idx, bell, signalled, flags);
}

SHMEMI_FN uint64_t shmemi_sq_value(struct shmemi_sq *sq, enum shmemi_sq_mode mode, uint64_t raddr,
                                   shmemi_be32 rkey, uint64_t value, uint32_t size, int flags)
{
    const struct shmemi_sq_fixed q = shmemi_sq_fixed_of(sq);
    struct shmemi_sq_claim c;
    uint64_t bell;
    int signalled;

    if (SHMEMI_UNLIKELY(shmemi_sq_reserve(sq, &q, mode, 1, flags, &c)))
        return SHMEMI_SQ_FAILED;
    signalled = shmemi_sq_signals(&q, c.idx, 1, flags);
    if (mode == SHMEMI_SQ_PRIVATE && signalled && (flags & SHMEMI_SQ_BLUEFLAME) && !shmemi_sq_no_record(&q))
        return shmemi_sq_blue_value(sq, &q, &c, flags, raddr, rkey, value, size);
    bell = shmemi_sq_fill_value(&q, c.idx, shmemi_sq_fm(signalled, flags), raddr, rkey, value, size);
    return shmemi_sq_publish(sq, &q, mode, &c, 1, c.idx, bell, signalled, flags);
}

/* The same out of line, for what happens seldom. */
SHMEMI_FN_COLD uint64_t shmemi_sq_value_seldom(struct shmemi_sq *sq, uint64_t raddr, shmemi_be32 rkey, uint64_t value,
                                               uint32_t size, int flags)
{
    return shmemi_sq_value(sq, SHMEMI_SQ_PRIVATE, raddr, rkey, value, size, flags);
}

/*
 * The low `size` bytes of value: 1, 2, 4 or 8.  Where the doorbell is left to a later post nothing else takes time, and each branch
 * costs a GPU's thread a quarter of that: there is one.
 */
SHMEMI_FN uint64_t shmemi_sq_write_value(struct shmemi_sq *sq, enum shmemi_sq_mode mode, uint64_t raddr,
                                         shmemi_be32 rkey, uint64_t value, uint32_t size, int flags)
{
    struct shmemi_sq_fixed q;
    struct shmemi_sq_claim c;
    uint64_t bell;
    int plain;

    if (mode == SHMEMI_SQ_SHARED || !(flags & SHMEMI_SQ_DEFER))
        return shmemi_sq_value(sq, mode, raddr, rkey, value, size, flags);
    q = shmemi_sq_fixed_of(sq);
    plain = shmemi_sq_look_private(sq, &q, 1, &c);
    plain &= !shmemi_sq_quarter(&q, c.idx, 1);
    if (SHMEMI_UNLIKELY(!plain))
        return shmemi_sq_value_seldom(sq, raddr, rkey, value, size, flags);
    bell = shmemi_sq_fill_value(&q, c.idx, shmemi_sq_fm(0, flags), raddr, rkey, value, size);
    return shmemi_sq_publish_private(sq, &q, &c, 1, c.idx, bell, 0, flags);
}

/* Size 4 or 8; laddr: `size` registered bytes, also when nobody wants the old value. */
SHMEMI_FN uint64_t shmemi_sq_amo(struct shmemi_sq *sq, enum shmemi_sq_mode mode, enum shmemi_sq_amo_op op,
                                 uint32_t size, uint64_t raddr, shmemi_be32 rkey, uint64_t operand,
                                 uint64_t cond, uint64_t laddr, shmemi_be32 lkey, int flags)
{
    const struct shmemi_sq_fixed q = shmemi_sq_fixed_of(sq);
    uint32_t n = shmemi_sq_amo_blocks(op, size);
    struct shmemi_sq_claim c;
    uint64_t bell;
    int signalled;

    if (SHMEMI_UNLIKELY(shmemi_sq_reserve(sq, &q, mode, n, flags, &c)))
        return SHMEMI_SQ_FAILED;
    signalled = shmemi_sq_signals(&q, c.idx, n, flags);
    bell = shmemi_sq_fill_amo(&q, c.idx, op, size, shmemi_sq_fm(signalled, flags), raddr, rkey, operand, cond,
                              laddr, lkey);
    return shmemi_sq_publish(sq, &q, mode, &c, n, c.idx, bell, signalled, flags);
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
    struct shmemi_sq_claim c;
    uint64_t bell;
    int signalled;

    if (SHMEMI_UNLIKELY(shmemi_sq_reserve(sq, &q, mode, 2, flags, &c)))
        return SHMEMI_SQ_FAILED;
    signalled = shmemi_sq_signals(&q, c.idx, 2, flags);
    shmemi_sq_fill_rdma(&q, c.idx, SHMEMI_MLX5_WRITE, shmemi_sq_fm(0, flags), raddr, rkey, laddr, lkey, len);
    bell = shmemi_sq_fill_signal(&q, c.idx + 1, shmemi_sq_fm(signalled, 0), sig);
    return shmemi_sq_publish(sq, &q, mode, &c, 2, c.idx + 1, bell, signalled, flags);
}

/* The same with at most SHMEMI_SQ_INLINE_MAX bytes inline. */
SHMEMI_FN uint64_t shmemi_sq_write_inline_signal(struct shmemi_sq *sq, enum shmemi_sq_mode mode,
                                                 uint64_t raddr, shmemi_be32 rkey, const void *data,
                                                 uint32_t len, const struct shmemi_sq_signal *sig, int flags)
{
    const struct shmemi_sq_fixed q = shmemi_sq_fixed_of(sq);
    uint32_t n = shmemi_sq_inline_blocks(len);
    struct shmemi_sq_claim c;
    uint64_t bell;
    int signalled;

    if (SHMEMI_UNLIKELY(shmemi_sq_reserve(sq, &q, mode, n + 1, flags, &c)))
        return SHMEMI_SQ_FAILED;
    signalled = shmemi_sq_signals(&q, c.idx, n + 1, flags);
    shmemi_sq_fill_inline(&q, c.idx, shmemi_sq_fm(0, flags), raddr, rkey, data, len);
    bell = shmemi_sq_fill_signal(&q, c.idx + n, shmemi_sq_fm(signalled, 0), sig);
    return shmemi_sq_publish(sq, &q, mode, &c, n + 1, c.idx + n, bell, signalled, flags);
}

/* Rings for what has been deferred; the ticket covers everything that this thread (private: any) has posted
 * so far. */
SHMEMI_FN uint64_t shmemi_sq_ring(struct shmemi_sq *sq, enum shmemi_sq_mode mode)
{
    const struct shmemi_sq_fixed q = shmemi_sq_fixed_of(sq);
    uint64_t tail = SHMEMI_LD_RLX_GPU(&sq->tail);
    struct shmemi_sq_claim c;

    if (mode == SHMEMI_SQ_PRIVATE) {
        if (sq->deferred)
            shmemi_sq_ring_deferred(sq);
        return tail;
    }
    if (SHMEMI_LD_RLX_GPU(&sq->deferred) <= tail)
        return tail;
    /* Nobody may touch an entry that is published: a signalled one behind it does nothing else. */
    if (shmemi_sq_reserve(sq, &q, mode, 1, 0, &c))
        return SHMEMI_SQ_FAILED;
    return shmemi_sq_publish(sq, &q, mode, &c, 1, c.idx, shmemi_sq_fill_nop(&q, c.idx), 1, 0);
}

#endif
