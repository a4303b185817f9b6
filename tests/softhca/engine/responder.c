/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The responder: executes requests in sequence, repeats answers to duplicates, refuses what the rights or the protocol do
 * not allow. Answers wait in a queue of their own, because the wire may be full.
 */
#include "engine/engine.h"

#include <string.h>

enum {
    BUDGET_RESERVE = 2,          /* places of the queue kept for negative answers */
    REPEAT_NAK_NS = 1000000,     /* a lost sequence NAK is repeated, so that the peer need not wait for its timer */
};

static uint32_t queued(const struct eng_qp *q)
{
    return q->rsp_tail - q->rsp_head;
}

static struct eng_response *response_at(const struct eng_qp *q, uint32_t n)
{
    return &q->responses[n % ENG_RESPONSES];
}

static struct eng_response *new_response(struct eng_qp *q, enum eng_response_kind kind, uint32_t psn)
{
    struct eng_response *r = response_at(q, q->rsp_tail++);

    *r = (struct eng_response){ .kind = kind, .syndrome = PKT_AETH_ACK, .psn = psn, .first_psn = psn };
    eng_activate(q);
    return r;
}

void eng_answer_ack(struct eng_qp *q, uint32_t psn, uint8_t syndrome)
{
    if (queued(q) && syndrome == PKT_AETH_ACK) {
        struct eng_response *last = response_at(q, q->rsp_tail - 1);

        /* Acknowledgements are cumulative: one that has not left yet speaks for both. */
        if (last->kind == ENG_RSP_ACK && last->syndrome == PKT_AETH_ACK) {
            last->psn = psn;
            return;
        }
    }
    if (queued(q) < ENG_RESPONSES)
        new_response(q, ENG_RSP_ACK, psn)->syndrome = syndrome;
}

void eng_refuse(struct eng_qp *q, uint32_t psn, enum pkt_nak code, uint8_t recv_syndrome)
{
    eng_answer_ack(q, psn, PKT_AETH_NAK(code));
    q->eng->count.naks_sent++;
    hca_log(HCA_INFO, "qp 0x%06x: request refused with NAK code %d", q->qp->qpn, code);
    if (recv_syndrome && q->recv.held)
        eng_recv_fail(q, recv_syndrome);
    hca_qp_event(q->qp, code == PKT_NAK_ACCESS ? IBV_EVENT_QP_ACCESS_ERR : IBV_EVENT_QP_REQ_ERR);
    eng_respond(q, ENG_RESPONSES);
    hca_qp_error(q->qp, IBV_QPS_ERR);
}

/* ---- sending answers ---- */

static bool send_read_data(struct eng_qp *q, struct eng_response *r, uint8_t *buf)
{
    uint32_t left = r->len - r->off, len = left < q->qp->mtu ? left : q->qp->mtu;
    bool first = r->psn == r->first_psn, last = len == left;
    struct pkt p = { .pkey = 0xffff, .dqpn = q->qp->dest_qpn, .psn = r->psn, .syndrome = PKT_AETH_ACK, .msn = q->msn,
                     .pad = (uint8_t)(-len & 3) };
    size_t n;

    if (first)
        p.op = last ? PKT_READ_RSP_ONLY : PKT_READ_RSP_FIRST;
    else
        p.op = last ? PKT_READ_RSP_LAST : PKT_READ_RSP_MIDDLE;
    p.ext = pkt_flags(p.op);
    n = pkt_build(buf, &p);
    if (len && !eng_remote_read(q, r->rkey, r->va + r->off, buf + n, len))
        return false;
    wire_commit(q->eng->wire, pkt_finish(buf, n + len, p.pad), eng_packet_key(q, &p));
    r->off += len;
    r->psn = pkt_psn_add(r->psn, 1);
    if (last)
        q->rsp_head++;
    return true;
}

static void send_ack(struct eng_qp *q, const struct eng_response *r, uint8_t *buf)
{
    struct pkt p = { .op = r->kind == ENG_RSP_ATOMIC ? PKT_ATOMIC_ACK : PKT_ACK, .pkey = 0xffff,
                     .dqpn = q->qp->dest_qpn, .psn = r->psn, .syndrome = r->syndrome, .msn = q->msn,
                     .original = r->original };

    p.ext = pkt_flags(p.op);
    wire_commit(q->eng->wire, pkt_build(buf, &p), eng_packet_key(q, &p));
    q->rsp_head++;
}

unsigned eng_respond(struct eng_qp *q, unsigned budget)
{
    unsigned n = 0;

    while (queued(q) && n < budget) {
        struct eng_response *r = response_at(q, q->rsp_head);
        uint8_t *buf = wire_reserve(q->eng->wire, q->peer_slot);

        if (!buf)
            break;
        if (r->kind != ENG_RSP_READ) {
            send_ack(q, r, buf);
        } else if (!send_read_data(q, r, buf)) {
            /* The region went away while it was being read: what is behind this answer is void. */
            uint32_t psn = r->psn;

            q->rsp_tail = q->rsp_head;
            eng_refuse(q, psn, PKT_NAK_ACCESS, 0);
            break;
        }
        n++;
    }
    return n;
}

/* ---- requests ---- */

static void accept(struct eng_qp *q, uint32_t packets)
{
    q->epsn = pkt_psn_add(q->epsn, packets);
    q->qp->next_rcv_psn = q->epsn;
    q->nak = ENG_NAK_NONE;
}

static void gap(struct eng_qp *q)
{
    q->eng->count.out_of_sequence++;
    if (q->nak == ENG_NAK_RNR_SENT) /* the peer is told to wait, what was in flight falls behind it */
        return;
    if (q->nak == ENG_NAK_SEQ_SENT && q->eng->now - q->nak_ns < REPEAT_NAK_NS)
        return;
    q->nak = ENG_NAK_SEQ_SENT;
    q->nak_ns = q->eng->now;
    q->eng->count.naks_sent++;
    eng_answer_ack(q, q->epsn, PKT_AETH_NAK(PKT_NAK_SEQ));
}

static void not_ready(struct eng_qp *q, uint32_t psn)
{
    q->nak = ENG_NAK_RNR_SENT;
    q->eng->count.rnr_sent++;
    eng_answer_ack(q, psn, (uint8_t)PKT_AETH_RNR(q->qp->min_rnr_timer));
}

/* Rules of IBTA 9.7.4.1 for the place of a packet in its message, and for lengths. */
static bool well_formed(const struct eng_qp *q, const struct pkt *p)
{
    bool first = p->ext & PKT_IS_FIRST, last = p->ext & PKT_IS_LAST, is_send = p->ext & PKT_IS_SEND;
    uint32_t mtu = q->qp->mtu;

    if (first == q->in_msg || (!first && is_send != q->msg_is_send))
        return false;
    if (!last && p->payload_len != mtu)
        return false;
    if (last && (p->payload_len > mtu || (!first && !p->payload_len)))
        return false;
    if (is_send)
        return true;
    if (first)
        return p->dma_len <= 1u << HCA_LOG_MAX_MSG &&
               (last ? p->dma_len == p->payload_len : p->dma_len > p->payload_len);
    return last ? q->write_left == p->payload_len : q->write_left > p->payload_len;
}

static void deliver(struct eng_qp *q, const struct pkt *p)
{
    bool imm = p->ext & PKT_HAS_IMM, is_send = p->ext & PKT_IS_SEND;
    bool inval = PKT_BASE(p->op) == PKT_SEND_LAST_INV || PKT_BASE(p->op) == PKT_SEND_ONLY_INV;
    struct hca_cqe cqe = { .solicited = p->solicited, .byte_cnt = is_send ? q->recv.filled : q->write_len,
                           .imm_be = imm ? p->imm : 0, .src_qpn = q->qp->dest_qpn };

    q->msn++;
    if (!is_send)
        q->eng->count.writes++;
    if (!is_send && !imm)
        return;
    if (!is_send)
        cqe.opcode = MLX5_CQE_RESP_WR_IMM;
    else
        cqe.opcode = inval ? MLX5_CQE_RESP_SEND_INV : imm ? MLX5_CQE_RESP_SEND_IMM : MLX5_CQE_RESP_SEND;
    if (is_send)
        q->eng->count.sends++;
    eng_recv_done(q, &cqe);
}

static bool begin_write(struct eng_qp *q, const struct pkt *p)
{
    unsigned n;

    q->write_va = p->va;
    q->write_rkey = p->rkey;
    q->write_left = q->write_len = p->dma_len;
    return !p->dma_len || eng_remote_map(q, p->rkey, p->va, p->dma_len, IBV_ACCESS_REMOTE_WRITE, NULL, &n);
}

static bool store(struct eng_qp *q, const struct pkt *p)
{
    if (p->payload_len && !eng_remote_write(q, q->write_rkey, q->write_va, p->payload, p->payload_len))
        return false;
    q->write_va += p->payload_len;
    q->write_left -= p->payload_len;
    return true;
}

/* Where the bytes of a send or write go. Returns false when the request was refused or must come again. */
static bool place(struct eng_qp *q, const struct pkt *p)
{
    bool is_send = p->ext & PKT_IS_SEND;
    bool needs_recv = is_send || (p->ext & PKT_HAS_IMM);
    enum eng_copy_result r;

    if (needs_recv && ((!q->recv.held && fault_rnr(&q->eng->faults, eng_packet_key(q, p))) || !eng_recv_fetch(q))) {
        not_ready(q, p->psn);
        return false;
    }
    if (!is_send) {
        if (((p->ext & PKT_IS_FIRST) && !begin_write(q, p)) || !store(q, p)) {
            eng_refuse(q, p->psn, PKT_NAK_ACCESS, MLX5_CQE_SYNDROME_LOCAL_ACCESS_ERR);
            return false;
        }
        return true;
    }
    r = eng_recv_put(q, p->payload, p->payload_len);
    if (r == ENG_COPY_OK)
        return true;
    if (r == ENG_COPY_SHORT)
        eng_refuse(q, p->psn, PKT_NAK_INVALID, MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR);
    else
        eng_refuse(q, p->psn, PKT_NAK_OPERATION, MLX5_CQE_SYNDROME_LOCAL_PROT_ERR);
    return false;
}

static bool invalidate(struct eng_qp *q, const struct pkt *p)
{
    uint32_t base = PKT_BASE(p->op);

    if (base != PKT_SEND_LAST_INV && base != PKT_SEND_ONLY_INV)
        return true;
    return !hca_key_invalidate(q->qp->hca, q->qp->pd, q->qp->qpn, be32toh(p->imm));
}

static void message_packet(struct eng_qp *q, const struct pkt *p)
{
    bool last = p->ext & PKT_IS_LAST;

    if (!well_formed(q, p)) {
        q->eng->count.rx_bad_length++;
        eng_refuse(q, p->psn, PKT_NAK_INVALID, MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR);
        return;
    }
    if (!place(q, p))
        return;
    if (!invalidate(q, p)) {
        eng_refuse(q, p->psn, PKT_NAK_ACCESS, MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR);
        return;
    }
    q->in_msg = !last;
    q->msg_is_send = p->ext & PKT_IS_SEND;
    accept(q, 1);
    if (last)
        deliver(q, p);
    if (p->ack_req)
        eng_answer_ack(q, p->psn, PKT_AETH_ACK);
}

static uint32_t read_packets(const struct eng_qp *q, uint32_t len)
{
    return len ? (len + q->qp->mtu - 1) / q->qp->mtu : 1;
}

/* A read that is asked for again while its answer still waits: the answer only starts over from there. */
static bool restart_read(struct eng_qp *q, const struct pkt *p)
{
    for (uint32_t n = q->rsp_head; n != q->rsp_tail; n++) {
        struct eng_response *r = response_at(q, n);
        uint32_t skip = (p->psn - r->first_psn) & PKT_PSN_MASK, off = skip * q->qp->mtu;

        if (r->kind != ENG_RSP_READ || skip >= read_packets(q, r->len) || off + p->dma_len != r->len ||
            r->va + off != p->va || r->rkey != p->rkey)
            continue;
        if (pkt_psn_diff(p->psn, r->psn) < 0) {
            r->psn = p->psn;
            r->off = off;
        }
        return true;
    }
    return false;
}

static void read_request(struct eng_qp *q, const struct pkt *p, bool duplicate)
{
    uint32_t packets = read_packets(q, p->dma_len);
    struct eng_response *r;
    unsigned n;

    if (!duplicate && (q->in_msg || p->dma_len > 1u << HCA_LOG_MAX_MSG)) {
        eng_refuse(q, p->psn, PKT_NAK_INVALID, 0);
        return;
    }
    if (duplicate && pkt_psn_diff(pkt_psn_add(p->psn, packets), q->epsn) > 0) {
        q->eng->count.rx_bad_length++; /* asks for more than it did the first time */
        return;
    }
    if (duplicate && restart_read(q, p))
        return;
    if (p->dma_len && !eng_remote_map(q, p->rkey, p->va, p->dma_len, IBV_ACCESS_REMOTE_READ, NULL, &n)) {
        eng_refuse(q, p->psn, PKT_NAK_ACCESS, 0);
        return;
    }
    if (!duplicate) {
        accept(q, packets);
        q->msn++;
        q->eng->count.reads++;
    }
    r = new_response(q, ENG_RSP_READ, p->psn);
    r->va = p->va;
    r->rkey = p->rkey;
    r->len = p->dma_len;
}

void eng_atomic_replay(struct eng_qp *q, const struct pkt *p)
{
    for (unsigned i = 0; i < ENG_REPLAYS; i++) {
        if (!q->replay[i].valid || q->replay[i].psn != p->psn)
            continue;
        q->eng->count.replays++;
        new_response(q, ENG_RSP_ATOMIC, p->psn)->original = q->replay[i].original;
        return;
    }
}

static void duplicate_packet(struct eng_qp *q, const struct pkt *p)
{
    q->eng->count.duplicates++;
    if (p->op == PKT_READ_REQ)
        read_request(q, p, true);
    else if (p->ext & (PKT_HAS_ATOMIC | PKT_HAS_MASKED))
        eng_atomic_replay(q, p);
    else if (p->ack_req)
        eng_answer_ack(q, (q->epsn - 1) & PKT_PSN_MASK, PKT_AETH_ACK);
}

static bool can_receive(const struct eng_qp *q)
{
    return q->qp->state == IBV_QPS_RTR || q->qp->state == IBV_QPS_RTS || q->qp->state == IBV_QPS_SQD;
}

void eng_request_packet(struct eng_qp *q, const struct pkt *p)
{
    int32_t distance = pkt_psn_diff(p->psn, q->epsn);

    if (!can_receive(q)) {
        q->eng->count.rx_wrong_state++;
        return;
    }
    if (q->qp->state == IBV_QPS_RTR && !q->comm_established) {
        q->comm_established = true;
        hca_qp_event(q->qp, IBV_EVENT_COMM_EST);
    }
    if (queued(q) >= ENG_RESPONSES - BUDGET_RESERVE)
        return; /* as if lost; the peer asks again */
    if (distance > 0) {
        gap(q);
    } else if (distance < 0) {
        duplicate_packet(q, p);
    } else if (p->op == PKT_READ_REQ) {
        read_request(q, p, false);
    } else if (p->ext & (PKT_HAS_ATOMIC | PKT_HAS_MASKED)) {
        eng_atomic_packet(q, p);
    } else {
        message_packet(q, p);
    }
}

/* Unreliable connection: a gap loses the message that it is in, and the next first packet starts anew. */
void eng_uc_packet(struct eng_qp *q, const struct pkt *p)
{
    bool needs_recv = (p->ext & PKT_IS_SEND) || (p->ext & PKT_HAS_IMM);

    if (!can_receive(q)) {
        q->eng->count.rx_wrong_state++;
        return;
    }
    if (p->psn != q->epsn || (p->ext & PKT_IS_FIRST)) {
        q->in_msg = false;
        q->recv.filled = 0; /* a receive WQE in use serves the next message */
    }
    q->epsn = pkt_psn_add(p->psn, 1);
    if (!well_formed(q, p)) {
        q->eng->count.out_of_sequence++;
        return;
    }
    if (needs_recv && !eng_recv_fetch(q)) {
        q->eng->count.rx_no_recv++;
        return;
    }
    q->msg_is_send = p->ext & PKT_IS_SEND;
    if (p->ext & PKT_IS_SEND) {
        if (eng_recv_put(q, p->payload, p->payload_len) != ENG_COPY_OK) {
            eng_recv_fail(q, MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR);
            hca_qp_error(q->qp, IBV_QPS_ERR);
            return;
        }
    } else if (((p->ext & PKT_IS_FIRST) && !begin_write(q, p)) || !store(q, p)) {
        return; /* refused and counted; nobody is told */
    }
    q->in_msg = !(p->ext & PKT_IS_LAST);
    if (!q->in_msg)
        deliver(q, p);
}
