/* SPDX-License-Identifier: BSD-3-Clause */
/* Completions, and the end of queues in error: everything posted, now or later, completes as flushed. */
#include "engine/engine.h"

void eng_cqe(struct eng_qp *q, struct hca_cq *cq, const struct hca_cqe *cqe)
{
    if (!cq)
        return;
    if (eng_trace_on())
        eng_trace_cqe(cq, cqe);
    if (hca_cq_write(cq, cqe))
        q->eng->count.cqe_written++;
    else
        q->eng->count.cqe_lost++;
}

static void flushed(struct eng_qp *q, struct hca_cq *cq, uint8_t cqe_opcode, uint8_t opcode, uint16_t index)
{
    struct hca_cqe cqe = { .opcode = cqe_opcode, .send_opcode = opcode, .wqe_counter = index, .qpn = q->qp->qpn,
                           .uidx = q->qp->uidx, .syndrome = MLX5_CQE_SYNDROME_WR_FLUSH_ERR };

    q->eng->count.wqe_flushed++;
    eng_cqe(q, cq, &cqe);
}

static void flush_sends(struct eng_qp *q)
{
    uint16_t left;

    for (; q->head != q->tail; q->head++) {
        const struct eng_send *s = &q->sends[q->head % ENG_SENDS];

        flushed(q, q->qp->scq, MLX5_CQE_REQ_ERR, s->opcode, s->index);
    }
    q->send = q->head;
    q->sent = 0;
    q->una = q->max_psn = q->next_psn;
    q->rnr_until = 0;
    if (!q->qp->sq_entries)
        return;
    q->producer = eng_announced(q);
    left = (uint16_t)(q->producer - q->fetch);
    if (left > q->qp->sq_entries) { /* complained about at the doorbell; each block once is the most there can be */
        q->fetch = (uint16_t)(q->producer - q->qp->sq_entries);
        left = (uint16_t)q->qp->sq_entries;
    }
    while (left) {
        uint64_t slot = q->fetch & (q->qp->sq_entries - 1);
        uint8_t control[8] = { 0 };
        uint16_t blocks;

        hca_buf_read(&q->qp->sq, slot * HCA_WQEBB, control, sizeof(control));
        blocks = (uint16_t)(((control[7] & 0x3fu) + 3) / 4);
        blocks = blocks < 1 ? 1 : blocks > left ? left : blocks;
        flushed(q, q->qp->scq, MLX5_CQE_REQ_ERR, control[3], q->fetch);
        q->fetch = (uint16_t)(q->fetch + blocks);
        left = (uint16_t)(left - blocks);
    }
    q->qp->sq_consumer = q->qp->sq_producer = q->fetch;
}

static void flush_receives(struct eng_qp *q)
{
    uint16_t posted, left;

    if (q->recv.held) {
        q->recv.held = false;
        flushed(q, q->qp->rcq, MLX5_CQE_RESP_ERR, 0, q->recv.index);
    }
    if (!q->qp->rq_entries || q->qp->srq)
        return;
    posted = (uint16_t)hca_dbrec_load(&q->qp->dbrec, 0);
    left = (uint16_t)(posted - q->qp->rq_consumer);
    if (left > q->qp->rq_entries)
        left = (uint16_t)q->qp->rq_entries;
    while (left--)
        flushed(q, q->qp->rcq, MLX5_CQE_RESP_ERR, 0, q->qp->rq_consumer++);
    q->qp->rq_consumer = posted;
}

void eng_flush(struct eng_qp *q)
{
    flush_sends(q);
    if (q->qp->state == IBV_QPS_ERR)
        flush_receives(q);
}

/* Receives are posted without a doorbell: the record is looked at now and then. */
bool eng_flush_due(struct eng_qp *q)
{
    const struct hca_qp *qp = q->qp;

    if (qp->state != IBV_QPS_ERR && qp->state != IBV_QPS_SQE)
        return false;
    if (qp->sq_entries && eng_announced(q) != q->fetch)
        return true;
    return qp->state == IBV_QPS_ERR && qp->rq_entries && !qp->srq &&
           (uint16_t)hca_dbrec_load(&qp->dbrec, 0) != qp->rq_consumer;
}
