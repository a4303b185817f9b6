/* SPDX-License-Identifier: BSD-3-Clause */
/* Receive work queue entries, of a queue pair or of a shared queue, and datagrams. */
#include "engine/engine.h"

#include <string.h>

enum { SIGNATURE_BYTES = 16, SRQ_NEXT_BYTES = 16, GRH_BYTES = 40, IPV4_IN_GRH = 20, ROCE_V2_IPV4 = 2 };

static void srq_limit(struct hca_srq *srq, uint16_t posted)
{
    uint16_t left = (uint16_t)(posted - srq->consumed);

    if (!srq->limit || left >= srq->limit)
        return;
    srq->limit = 0;
    hca_srq_event(srq, IBV_EVENT_SRQ_LIMIT_REACHED);
}

/* Entries of a shared queue form a list: each names the next one. */
static bool srq_fetch(struct eng_qp *q, struct hca_srq *srq)
{
    uint16_t posted = (uint16_t)hca_dbrec_load(&srq->dbrec, 0); /* acquire: entries below are complete */
    size_t stride = (size_t)1 << srq->log_stride;
    uint8_t next[4];

    if (posted == srq->consumed || srq->error)
        return false;
    if (stride > sizeof(q->recv.segs))
        stride = sizeof(q->recv.segs);
    if (hca_buf_read(&srq->ring, (uint64_t)srq->head << srq->log_stride, next, sizeof(next)) ||
        hca_buf_read(&srq->ring, ((uint64_t)srq->head << srq->log_stride) + SRQ_NEXT_BYTES, q->recv.segs,
                     stride - SRQ_NEXT_BYTES))
        return false;
    q->recv.bytes = (uint16_t)(stride - SRQ_NEXT_BYTES);
    q->recv.index = (uint16_t)srq->head;
    srq->head = (uint32_t)(next[2] << 8 | next[3]) & (srq->entries - 1);
    srq->consumed++;
    srq_limit(srq, posted);
    return true;
}

static bool rq_fetch(struct eng_qp *q)
{
    struct hca_qp *qp = q->qp;
    uint16_t posted = (uint16_t)hca_dbrec_load(&qp->dbrec, 0); /* acquire: entries below are complete */
    size_t stride = (size_t)1 << qp->rq_log_stride, skip = qp->rq_signature ? SIGNATURE_BYTES : 0;
    uint64_t slot = qp->rq_consumer & (qp->rq_entries - 1);

    if (posted == qp->rq_consumer)
        return false;
    if ((uint16_t)(posted - qp->rq_consumer) > qp->rq_entries)
        eng_complain(q, "receive record says %u, the NIC is at %u: more than the %u entries of the ring", posted,
                     qp->rq_consumer, qp->rq_entries);
    if (stride > sizeof(q->recv.segs))
        stride = sizeof(q->recv.segs);
    if (stride <= skip ||
        hca_buf_read(&qp->rq, (slot << qp->rq_log_stride) + skip, q->recv.segs, stride - skip))
        return false;
    q->recv.bytes = (uint16_t)(stride - skip);
    q->recv.index = qp->rq_consumer++;
    return true;
}

bool eng_recv_fetch(struct eng_qp *q)
{
    if (q->recv.held)
        return true;
    if (q->qp->srq ? !srq_fetch(q, q->qp->srq) : !q->qp->rq_entries || !rq_fetch(q))
        return false;
    q->recv.held = true;
    q->recv.filled = 0;
    q->eng->count.recv_consumed++;
    eng_trace_line("RECV-WQE", q, q->recv.index);
    return true;
}

enum eng_copy_result eng_recv_put(struct eng_qp *q, const uint8_t *data, uint32_t len)
{
    enum eng_copy_result r = ENG_COPY_OK;

    if (len)
        r = eng_scatter(q, q->recv.segs, q->recv.bytes, q->recv.filled, data, len);
    q->recv.filled += len;
    return r;
}

void eng_recv_done(struct eng_qp *q, const struct hca_cqe *what)
{
    struct hca_cqe cqe = *what;

    cqe.qpn = q->qp->qpn;
    cqe.uidx = q->qp->uidx;
    cqe.wqe_counter = q->recv.index;
    if (!cqe.slid && !hca_config.eth)
        cqe.slid = (uint16_t)q->peer_slot;
    q->recv.held = false;
    eng_cqe(q, q->qp->rcq, &cqe);
}

void eng_recv_fail(struct eng_qp *q, uint8_t syndrome)
{
    struct hca_cqe cqe = { .opcode = MLX5_CQE_RESP_ERR, .syndrome = syndrome };

    eng_recv_done(q, &cqe);
}

/* The 40 bytes in front of a datagram: RoCE v2 over IPv4 puts the IP header into the second half. */
static void fill_grh(struct eng_qp *q, uint8_t *grh, uint32_t src_slot, size_t len)
{
    memset(grh, 0, GRH_BYTES);
    if (hca_config.eth) {
        uint8_t headers[PKT_IP_UDP_LEN];

        pkt_ip_udp(headers, wire_ipv4(q->eng->wire, src_slot), wire_ipv4(q->eng->wire, q->qp->hca->id.slot), PKT_ROCE_PORT, len);
        memcpy(grh + IPV4_IN_GRH, headers, IPV4_IN_GRH);
    }
}

void eng_ud_packet(struct eng_qp *q, const struct pkt *p, uint32_t src_slot)
{
    bool imm = p->ext & PKT_HAS_IMM;
    struct hca_cqe cqe = { .opcode = imm ? MLX5_CQE_RESP_SEND_IMM : MLX5_CQE_RESP_SEND, .solicited = p->solicited,
                           .byte_cnt = p->payload_len + GRH_BYTES, .imm_be = imm ? p->imm : 0, .src_qpn = p->src_qpn,
                           .slid = hca_config.eth ? 0 : (uint16_t)src_slot, .grh = hca_config.eth,
                           .rocev2_l3 = hca_config.eth ? ROCE_V2_IPV4 : 0 };
    uint8_t grh[GRH_BYTES];

    if (q->qp->state != IBV_QPS_RTR && q->qp->state != IBV_QPS_RTS && q->qp->state != IBV_QPS_SQD &&
        q->qp->state != IBV_QPS_SQE) {
        q->eng->count.rx_wrong_state++;
        return;
    }
    if (p->qkey != q->qp->qkey) {
        q->eng->count.rx_bad_qkey++;
        return;
    }
    if (!eng_recv_fetch(q)) {
        q->eng->count.rx_no_recv++;
        return;
    }
    fill_grh(q, grh, src_slot, p->payload_len);
    if (eng_recv_put(q, grh, sizeof(grh)) != ENG_COPY_OK ||
        eng_recv_put(q, p->payload, p->payload_len) != ENG_COPY_OK) {
        eng_recv_fail(q, MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR);
        hca_qp_error(q->qp, IBV_QPS_ERR);
        return;
    }
    q->eng->count.sends++;
    eng_recv_done(q, &cqe);
}
