/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The requester: turns WQEs into packets and, after a loss, goes back. Sequence numbers are given when a WQE is fetched;
 * the position of the next packet is (send, sent), and a retransmission only moves that position.
 */
#include "engine/engine.h"

#include <string.h>

enum {
    OP_DUMP = 0x23,
    ACK_EVERY = 16,              /* packets between requests for an acknowledgement inside a message */
    VENDOR_SYNDROME = 0x51,
    VENDOR_TIMEOUT = 0x81,
    MAX_SPAN = 1 << 22,          /* sequence numbers in use at most: half the range that can be told apart */
    FENCE_STRONG = 3,
    MIN_DEADLINE_MS = 1000,
};

static struct eng_send *send_at(const struct eng_qp *q, uint32_t n)
{
    return &q->sends[n % ENG_SENDS];
}

uint32_t eng_next_psn(const struct eng_qp *q)
{
    const struct eng_send *s = send_at(q, q->send);

    if (q->send == q->tail)
        return q->next_psn;
    return pkt_psn_add(s->psn, s->answered_by_data && !q->sent ? s->got : q->sent);
}

/* Same packet of the same queue pair, same key, whenever and however often it is sent. */
uint64_t eng_packet_key(const struct eng_qp *q, const struct pkt *p)
{
    uint32_t origin = p->ext & PKT_IS_RESPONSE ? q->qp->rq_psn : q->qp->sq_psn;

    return (uint64_t)HCA_QPN_INDEX(q->qp->qpn) << 40 | (uint64_t)p->op << 24 | ((p->psn - origin) & PKT_PSN_MASK);
}

static void emit(struct eng_qp *q, uint8_t *buf, size_t len, struct pkt *p)
{
    p->ext = pkt_flags(p->op);
    wire_commit(q->eng->wire, pkt_finish(buf, len, p->pad), eng_packet_key(q, p));
}

void eng_complete(struct eng_qp *q, struct eng_send *s)
{
    q->eng->count.wqe_executed++;
    if ((s->flags & MLX5_WQE_CTRL_CQ_UPDATE) || q->qp->sig_all) {
        struct hca_cqe cqe = { .opcode = MLX5_CQE_REQ, .send_opcode = s->opcode, .wqe_counter = s->index,
                               .qpn = q->qp->qpn, .uidx = q->qp->uidx,
                               .byte_cnt = s->answered_by_data ? s->len : 0 };

        eng_cqe(q, q->qp->scq, &cqe);
    }
}

void eng_fail_head(struct eng_qp *q, uint8_t syndrome, uint8_t vendor)
{
    struct eng_send *s = send_at(q, q->head++);
    struct hca_cqe cqe = { .opcode = MLX5_CQE_REQ_ERR, .send_opcode = s->opcode, .wqe_counter = s->index,
                           .qpn = q->qp->qpn, .uidx = q->qp->uidx, .syndrome = syndrome, .vendor_syndrome = vendor };
    bool connected = q->qp->type == HCA_RC;

    if ((int32_t)(q->send - q->head) < 0) {
        q->send = q->head;
        q->sent = 0;
    }
    q->eng->count.wqe_failed++;
    hca_log(HCA_INFO, "qp 0x%06x: wqe %u (%s) fails with syndrome 0x%02x", q->qp->qpn, s->index,
            eng_opcode_name(s->opcode), syndrome);
    eng_cqe(q, q->qp->scq, &cqe);
    hca_qp_error(q->qp, connected ? IBV_QPS_ERR : IBV_QPS_SQE);
}

/* DUMP reads its buffers and throws the bytes away; a fault shows as on hardware. */
static uint8_t run_local(struct eng_qp *q, const struct eng_send *s)
{
    uint8_t sink[PKT_MAX_MTU];

    if (s->opcode == MLX5_OPCODE_UMR)
        return eng_umr_run(q, s);
    for (uint32_t at = 0; s->opcode == OP_DUMP && at < s->len; at += sizeof(sink)) {
        uint32_t len = s->len - at < sizeof(sink) ? s->len - at : (uint32_t)sizeof(sink);

        if (eng_gather(q, s->raw + s->data_off, s->bytes - s->data_off, at, sink, len) != ENG_COPY_OK)
            return MLX5_CQE_SYNDROME_LOCAL_PROT_ERR;
    }
    return 0;
}

void eng_retire(struct eng_qp *q)
{
    while (q->head != q->tail) {
        struct eng_send *s = send_at(q, q->head);

        if (s->npsn) {
            bool acked = pkt_psn_diff(q->una, pkt_psn_add(s->psn, s->npsn)) >= 0;

            if (!acked || (s->answered_by_data && !s->done))
                break;
        } else {
            uint8_t syndrome = s->syndrome ? s->syndrome : run_local(q, s);

            if (syndrome) {
                eng_fail_head(q, syndrome, VENDOR_SYNDROME);
                return;
            }
        }
        q->head++;
        if ((int32_t)(q->send - q->head) < 0) {
            q->send = q->head;
            q->sent = 0;
        }
        eng_complete(q, s);
    }
}

void eng_rewind(struct eng_qp *q, uint32_t psn)
{
    for (uint32_t n = q->head; n != q->tail; n++) {
        const struct eng_send *s = send_at(q, n);
        uint32_t off = (psn - s->psn) & PKT_PSN_MASK;

        if (!s->npsn || off >= s->npsn)
            continue;
        q->send = n;
        q->sent = s->answered_by_data ? 0 : off;
        q->eng->count.retransmits++;
        q->timed_ns = 0;
        q->resend_ns = q->eng->now;
        eng_activate(q);
        return;
    }
}

/* Whether the WQE must wait for reads and atomics before it (fence), or for everything (strong order). */
static bool fenced(const struct eng_qp *q, const struct eng_send *s)
{
    unsigned mode = s->flags >> 5;

    if (!mode || q->send == q->head)
        return false;
    if (mode == FENCE_STRONG)
        return true;
    for (uint32_t n = q->head; n != q->send; n++)
        if (send_at(q, n)->answered_by_data && !send_at(q, n)->done)
            return true;
    return false;
}

static bool too_many_reads(const struct eng_qp *q)
{
    unsigned limit = q->qp->max_rd_atomic ? q->qp->max_rd_atomic : HCA_MAX_RD_ATOMIC;
    unsigned n = 0;

    for (uint32_t k = q->head; k != q->send; k++)
        n += send_at(q, k)->answered_by_data && !send_at(q, k)->done;
    return n >= limit;
}

/* Whether flow control lets the next packet of s go now. */
static bool may_send(const struct eng_qp *q, const struct eng_send *s)
{
    uint32_t ahead = (eng_next_psn(q) - q->una) & PKT_PSN_MASK;

    if (q->sent)
        return s->answered_by_data || ahead < q->eng->window;
    if (fenced(q, s))
        return false;
    if (s->answered_by_data)
        return !too_many_reads(q) && (q->send == q->head || ahead + s->npsn < MAX_SPAN);
    return ahead < q->eng->window;
}

static uint8_t message_opcode(const struct eng_send *s, bool first, bool last)
{
    bool write = s->opcode == MLX5_OPCODE_RDMA_WRITE || s->opcode == MLX5_OPCODE_RDMA_WRITE_IMM;
    bool imm = s->opcode == MLX5_OPCODE_RDMA_WRITE_IMM || s->opcode == MLX5_OPCODE_SEND_IMM;
    bool inval = s->opcode == MLX5_OPCODE_SEND_INVAL;

    if (!last)
        return first ? (write ? PKT_WRITE_FIRST : PKT_SEND_FIRST) : (write ? PKT_WRITE_MIDDLE : PKT_SEND_MIDDLE);
    if (inval)
        return first ? PKT_SEND_ONLY_INV : PKT_SEND_LAST_INV;
    if (first)
        return (uint8_t)((write ? PKT_WRITE_ONLY : PKT_SEND_ONLY) + imm);
    return (uint8_t)((write ? PKT_WRITE_LAST : PKT_SEND_LAST) + imm);
}

/* 0, or the syndrome with which the WQE fails when it is the oldest. */
static uint8_t send_message(struct eng_qp *q, struct eng_send *s, uint8_t *buf)
{
    uint32_t off = q->sent * q->qp->mtu;
    bool last = q->sent + 1 == s->npsn;
    uint32_t len = last ? s->len - off : q->qp->mtu;
    struct pkt p = { .op = message_opcode(s, q->sent == 0, last), .pkey = 0xffff, .pad = (uint8_t)(-len & 3) };
    size_t n;

    if (q->qp->type == HCA_UC)
        p.op |= PKT_UC;
    p.dqpn = q->qp->dest_qpn;
    p.psn = pkt_psn_add(s->psn, q->sent);
    p.solicited = last && (s->flags & MLX5_WQE_CTRL_SOLICITED);
    p.ack_req = q->qp->type == HCA_RC && (last || q->sent % ACK_EVERY == ACK_EVERY - 1);
    p.va = s->raddr;
    p.rkey = s->rkey;
    p.dma_len = s->len;
    p.imm = s->imm_be;
    n = pkt_build(buf, &p);
    if (len && eng_gather(q, s->raw + s->data_off, s->bytes - s->data_off, off, buf + n, len) != ENG_COPY_OK)
        return MLX5_CQE_SYNDROME_LOCAL_PROT_ERR;
    emit(q, buf, n + len, &p);
    q->sent++;
    return 0;
}

static uint8_t send_read(struct eng_qp *q, struct eng_send *s, uint8_t *buf)
{
    uint32_t off = s->got * q->qp->mtu;
    struct pkt p = { .op = PKT_READ_REQ, .pkey = 0xffff, .ack_req = true, .dqpn = q->qp->dest_qpn,
                     .psn = pkt_psn_add(s->psn, s->got), .va = s->raddr + off, .rkey = s->rkey,
                     .dma_len = s->len - off };

    emit(q, buf, pkt_build(buf, &p), &p);
    q->sent = s->npsn;
    return 0;
}

static uint8_t send_atomic(struct eng_qp *q, struct eng_send *s, uint8_t *buf)
{
    struct pkt p = { .pkey = 0xffff, .ack_req = true, .dqpn = q->qp->dest_qpn, .psn = s->psn };

    eng_atomic_request(s, &p);
    emit(q, buf, pkt_build(buf, &p), &p);
    q->sent = 1;
    return 0;
}

/* The destination of a datagram stands in the WQE; see struct mlx5_wqe_av. */
static uint32_t datagram_slot(const struct eng_qp *q, const uint8_t *av, uint32_t dqpn)
{
    uint16_t lid = (uint16_t)(av[14] << 8 | av[15]);
    bool full = av[8] >> 7;

    if (hca_config.eth && full && av[32 + 10] == 0xff && av[32 + 11] == 0xff)
        return pkt_get32(av + 32 + 12) - wire_ipv4(q->eng->wire, 0);
    if (!hca_config.eth && lid >= 1 && lid <= HCA_MAX_SLOT && lid != HCA_QPN_SLOT(dqpn) && q->complaints == 0)
        hca_log(HCA_INFO, "qp 0x%06x: datagram to lid %u, but qp 0x%06x lives at lid %u", q->qp->qpn, lid, dqpn,
                HCA_QPN_SLOT(dqpn));
    return HCA_QPN_SLOT(dqpn);
}

static uint8_t send_datagram(struct eng_qp *q, struct eng_send *s)
{
    const uint8_t *av = s->raw + 16;
    uint32_t qkey = pkt_get32(av), dqpn = pkt_get32(av + 8) & PKT_PSN_MASK;
    struct pkt p = { .op = PKT_UD | (s->opcode == MLX5_OPCODE_SEND_IMM ? PKT_SEND_ONLY_IMM : PKT_SEND_ONLY),
                     .pkey = 0xffff, .pad = (uint8_t)(-s->len & 3), .dqpn = dqpn, .psn = s->psn,
                     .src_qpn = q->qp->qpn, .imm = s->imm_be,
                     .solicited = (s->flags & MLX5_WQE_CTRL_SOLICITED) != 0,
                     .qkey = qkey >> 31 ? q->qp->qkey : qkey };
    uint8_t *buf = wire_reserve(q->eng->wire, datagram_slot(q, av, dqpn));
    size_t n;

    if (!buf) {
        q->wire_full = true;
        return 0;
    }
    n = pkt_build(buf, &p);
    if (s->len && eng_gather(q, s->raw + s->data_off, s->bytes - s->data_off, 0, buf + n, s->len) != ENG_COPY_OK)
        return MLX5_CQE_SYNDROME_LOCAL_PROT_ERR;
    emit(q, buf, n + s->len, &p);
    q->sent = 1;
    return 0;
}

static uint8_t send_packet(struct eng_qp *q, struct eng_send *s)
{
    uint8_t *buf;

    if (q->qp->type == HCA_UD)
        return send_datagram(q, s);
    buf = wire_reserve(q->eng->wire, q->peer_slot);
    if (!buf) {
        q->wire_full = true;
        return 0;
    }
    if (!s->answered_by_data)
        return send_message(q, s, buf);
    return s->opcode == MLX5_OPCODE_RDMA_READ ? send_read(q, s, buf) : send_atomic(q, s, buf);
}

/* After a packet is out: who needs no answer is done. */
static void advance(struct eng_qp *q, struct eng_send *s)
{
    uint32_t next = eng_next_psn(q);

    if (q->una == q->max_psn) /* nothing was in flight: the clock starts now */
        q->progress_ns = q->resend_ns = q->eng->now;
    if (q->sent >= s->npsn) {
        q->send++;
        q->sent = 0;
    }
    if (pkt_psn_diff(next, q->max_psn) > 0) {
        q->max_psn = next;
        if (!q->timed_ns) {
            q->timed_ns = q->eng->now;
            q->timed_psn = next;
        }
    }
    if (q->qp->type != HCA_RC) {
        q->una = q->max_psn = next;
        eng_retire(q);
    }
}

/* Makes sends[send] a WQE that has packets to send. false: there is none, or the queue pair has failed. */
static bool pick(struct eng_qp *q)
{
    for (;;) {
        struct eng_send *s;

        if (q->send == q->tail && (q->qp->state != IBV_QPS_RTS || !eng_wqe_fetch(q)))
            return false;
        s = send_at(q, q->send);
        if (s->npsn)
            return true;
        if (q->send == q->head) {
            eng_retire(q);
            if (q->qp->state != IBV_QPS_RTS && q->qp->state != IBV_QPS_SQD)
                return false;
            continue;
        }
        if (s->syndrome || s->opcode == MLX5_OPCODE_UMR || fenced(q, s))
            return false; /* nothing behind it may start; it fails, or goes on, when it is the oldest */
        q->send++;
        q->sent = 0;
    }
}

static bool live(const struct eng_qp *q)
{
    return q->qp->state == IBV_QPS_RTS || q->qp->state == IBV_QPS_SQD;
}

static void check_drained(struct eng_qp *q)
{
    if (q->qp->state != IBV_QPS_SQD || !q->qp->sq_draining || q->head != q->tail)
        return;
    q->qp->sq_draining = false;
    if (q->qp->sq_drained_event)
        hca_qp_event(q->qp, IBV_EVENT_SQ_DRAINED);
}

unsigned eng_requester(struct eng_qp *q, unsigned budget)
{
    unsigned done = 0;

    q->wire_full = false;
    if (q->rnr_until) {
        if (q->eng->now < q->rnr_until)
            return 0;
        q->rnr_until = 0;
        q->progress_ns = q->resend_ns = q->eng->now;
    }
    while (done < budget && live(q) && pick(q)) {
        struct eng_send *s = send_at(q, q->send);
        uint8_t syndrome;

        if (!may_send(q, s))
            break;
        syndrome = send_packet(q, s);
        if (q->wire_full)
            break;
        if (syndrome) {
            /* Fails in its turn: what was posted before it still completes. */
            s->syndrome = syndrome;
            s->npsn = 0;
            eng_retire(q);
            break;
        }
        advance(q, s);
        done++;
    }
    check_drained(q);
    return done;
}

bool eng_requester_idle(const struct eng_qp *q)
{
    const struct eng_send *s = send_at(q, q->send);

    if (!live(q))
        return true;
    if (q->rnr_until || q->wire_full)
        return false;
    if (q->send == q->tail)
        return q->fetch == q->producer || q->tail - q->head >= ENG_SENDS || q->qp->state != IBV_QPS_RTS;
    if (!s->npsn)
        return q->send != q->head;
    return !may_send(q, s);
}

/* Hardware gives up after retry_cnt timeouts; scaled, because here the peer may wait for a time slice. */
static uint64_t deadline_ns(const struct eng_qp *q)
{
    uint64_t once = (4096ull << q->qp->timeout) * q->eng->timeout_scale;
    uint64_t all = once * (q->qp->retry_cnt + 1u);

    return all < MIN_DEADLINE_MS * 1000000ull ? MIN_DEADLINE_MS * 1000000ull : all;
}

void eng_requester_timer(struct eng_qp *q)
{
    uint64_t now = q->eng->now;
    const struct eng_send *s = send_at(q, q->head);

    if (q->qp->type != HCA_RC || !live(q) || q->rnr_until || q->una == q->max_psn || q->head == q->tail)
        return;
    if (now - q->resend_ns < q->rto_ns)
        return;
    if (q->qp->timeout && now - q->progress_ns > deadline_ns(q)) {
        eng_fail_head(q, MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR, VENDOR_TIMEOUT);
        return;
    }
    q->eng->count.timeouts++;
    q->rto_ns = q->rto_ns * 2 > ENG_RTO_MOST_NS ? ENG_RTO_MOST_NS : q->rto_ns * 2;
    eng_rewind(q, s->npsn && s->answered_by_data ? pkt_psn_add(s->psn, s->got) : q->una);
    q->resend_ns = now;
}
