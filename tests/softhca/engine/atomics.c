/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Atomics: operands of a WQE to a packet, execution at the responder, the old value back to memory. Operands are
 * big-endian in WQEs, memory is host-endian; 8-byte results are host-endian (atomic_req_8B_endianness_mode 1), 4-byte
 * results of the extended forms are always big-endian.
 */
#include "engine/engine.h"

#include <string.h>

enum { OPERANDS = 32, EXT_ATOMIC_4 = 8 };

void eng_atomic_request(const struct eng_send *s, struct pkt *p)
{
    const uint8_t *w = s->raw + OPERANDS;
    unsigned size = s->opmod == EXT_ATOMIC_4 ? 4 : 8;

    p->va = s->raddr;
    p->rkey = s->rkey;
    if (s->opcode == MLX5_OPCODE_ATOMIC_CS || s->opcode == MLX5_OPCODE_ATOMIC_FA) {
        p->op = s->opcode == MLX5_OPCODE_ATOMIC_CS ? PKT_CMP_SWAP : PKT_FETCH_ADD;
        p->swap_add = pkt_get64(w);
        p->compare = pkt_get64(w + 8);
        return;
    }
    p->op = PKT_MASKED_ATOMIC;
    p->masked.compare_swap = s->opcode == MLX5_OPCODE_ATOMIC_MASKED_CS;
    p->masked.size = (uint8_t)size;
    for (unsigned i = 0; i < (p->masked.compare_swap ? 4u : 2u); i++)
        p->masked.operand[i] = size == 4 ? pkt_get32(w + 4 * i) : pkt_get64(w + 8 * i);
}

enum eng_copy_result eng_atomic_result(struct eng_qp *q, const struct eng_send *s, uint64_t original)
{
    bool big = s->len == 4;
    uint32_t half = htobe32((uint32_t)original);

    return eng_scatter(q, s->raw + s->data_off, s->bytes - s->data_off, 0,
                       big ? (const uint8_t *)&half : (const uint8_t *)&original, s->len);
}

static struct mem_atomic operation(const struct pkt *p)
{
    struct mem_atomic op = { .size = 8, .compare_mask = UINT64_MAX, .swap_mask = UINT64_MAX };

    if (p->ext & PKT_HAS_ATOMIC) {
        op.compare_swap = p->op == PKT_CMP_SWAP;
        op.swap_add = p->swap_add;
        op.compare = p->compare;
        return op;
    }
    op.size = p->masked.size;
    op.compare_swap = p->masked.compare_swap;
    op.swap_add = p->masked.operand[0];
    if (op.compare_swap) {
        op.compare = p->masked.operand[1];
        op.swap_mask = p->masked.operand[2];
        op.compare_mask = p->masked.operand[3];
    } else {
        op.boundary = p->masked.operand[1];
    }
    return op;
}

static bool do_atomic(const struct eng_qp *q, const struct hca_span *span, const struct mem_atomic *op, uint64_t *old_out)
{
    int err;

    eng_remote_begin(q);
    err = mem_atomic(span->mem, span->off, op, old_out);
    eng_remote_end(q);
    return !err;
}

void eng_atomic_packet(struct eng_qp *q, const struct pkt *p)
{
    struct mem_atomic op = operation(p);
    struct hca_span span[ENG_SPANS];
    struct eng_replay *memo = &q->replay[q->next_replay % ENG_REPLAYS];
    uint64_t old;
    unsigned n;

    if (q->in_msg || (p->va & (op.size - 1))) {
        eng_refuse(q, p->psn, PKT_NAK_INVALID, 0);
        return;
    }
    if (!eng_remote_map(q, p->rkey, p->va, op.size, IBV_ACCESS_REMOTE_ATOMIC, span, &n) || n != 1 ||
        !do_atomic(q, span, &op, &old)) {
        eng_refuse(q, p->psn, PKT_NAK_ACCESS, 0);
        return;
    }
    q->eng->count.atomics++;
    q->epsn = pkt_psn_add(q->epsn, 1);
    q->qp->next_rcv_psn = q->epsn;
    q->nak = ENG_NAK_NONE;
    q->msn++;
    *memo = (struct eng_replay){ true, p->psn, old };
    q->next_replay++;
    eng_atomic_replay(q, p);
    q->eng->count.replays--; /* the first answer is not a repetition */
}
