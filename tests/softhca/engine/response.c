/* SPDX-License-Identifier: BSD-3-Clause */
/* The requester's other half: acknowledgements, read data and atomic results coming back. */
#include "engine/engine.h"

enum { VENDOR_RNR = 0x87, VENDOR_NAK = 0x88, VENDOR_SCATTER = 0x53, AETH_KIND = 0x60, AETH_VALUE = 0x1f };
enum { KIND_ACK = 0x00, KIND_RNR = 0x20, KIND_NAK = 0x60, RNR_FOREVER = 7 };

/* IBTA table 45: how long an RNR timer value waits, in units of 10 us. */
static const uint32_t rnr_10us[32] = { 65536, 1,   2,   3,   4,   6,    8,    12,   16,   24,   32,
                                       48,    64,  96,  128, 192, 256,  384,  512,  768,  1024, 1536,
                                       2048,  3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152 };

static struct eng_send *oldest(const struct eng_qp *q)
{
    return &q->sends[q->head % ENG_SENDS];
}

/*
 * On a crowded machine an answer may take longer than the first timeout: then all would be sent again and again, and the
 * machine only get more crowded.  Only a packet that was sent once tells how long; until one has, the timer stays backed off.
 */
static void measure(struct eng_qp *q)
{
    uint64_t took = q->eng->now - q->timed_ns;

    if (!q->timed_ns || pkt_psn_diff(q->una, q->timed_psn) < 0)
        return;
    q->timed_ns = 0;
    q->rtt_ns = q->rtt_ns ? (q->rtt_ns * 7 + took) / 8 : took;
    q->rto_ns = q->rtt_ns * 2 > ENG_RTO_MOST_NS ? ENG_RTO_MOST_NS : q->rtt_ns * 2;
    if (q->rto_ns < q->eng->rto_ns)
        q->rto_ns = q->eng->rto_ns;
}

static void progress(struct eng_qp *q)
{
    q->progress_ns = q->resend_ns = q->eng->now;
    measure(q);
    q->rnr_tries = 0;
    eng_activate(q);
}

/*
 * Everything before end is acknowledged, except reads and atomics whose data has not come: an answer to something behind
 * them tells that theirs was lost, and they are asked for again. That holds only if the packet that the answer belongs to
 * (trigger) was sent after the last rewind, else every answer still in flight would cause another rewind.
 */
static bool acknowledge(struct eng_qp *q, uint32_t end, uint32_t trigger)
{
    uint32_t before = q->una;

    for (;;) {
        struct eng_send *s;
        uint32_t upto = end;

        eng_retire(q);
        if (q->head == q->tail || (q->qp->state != IBV_QPS_RTS && q->qp->state != IBV_QPS_SQD))
            break;
        s = oldest(q);
        if (!s->npsn)
            break;
        if (s->answered_by_data && !s->done) {
            uint32_t missing = pkt_psn_add(s->psn, s->got);

            if (pkt_psn_diff(end, missing) > 0) {
                if (pkt_psn_diff(trigger, missing) >= 0 && pkt_psn_diff(trigger, eng_next_psn(q)) < 0)
                    eng_rewind(q, missing);
                upto = missing;
            }
        } else if (pkt_psn_diff(end, pkt_psn_add(s->psn, s->npsn)) > 0) {
            upto = pkt_psn_add(s->psn, s->npsn);
        }
        if (pkt_psn_diff(upto, q->una) <= 0)
            break;
        q->una = upto;
    }
    /* The position may not stay behind what is acknowledged (a rewind, then a late acknowledgement). */
    if (q->send != q->tail && q->send == q->head && !oldest(q)->answered_by_data && oldest(q)->npsn &&
        pkt_psn_diff(q->una, eng_next_psn(q)) > 0)
        q->sent = (q->una - oldest(q)->psn) & PKT_PSN_MASK;
    if (q->una == before)
        return false;
    progress(q);
    return true;
}

static bool requester_live(const struct eng_qp *q)
{
    return (q->qp->state == IBV_QPS_RTS || q->qp->state == IBV_QPS_SQD) && q->head != q->tail;
}

static void wait_rnr(struct eng_qp *q, uint32_t psn, uint8_t timer)
{
    q->eng->count.rnr_waits++;
    if (q->qp->rnr_retry != RNR_FOREVER && q->rnr_tries++ >= q->qp->rnr_retry) {
        eng_fail_head(q, MLX5_CQE_SYNDROME_RNR_RETRY_EXC_ERR, VENDOR_RNR);
        return;
    }
    eng_rewind(q, psn);
    q->rnr_until = q->eng->now + rnr_10us[timer] * 10000ull;
    q->progress_ns = q->eng->now;
}

static void negative(struct eng_qp *q, uint32_t psn, uint8_t code)
{
    static const uint8_t syndrome[] = {
        [PKT_NAK_INVALID] = MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR,
        [PKT_NAK_ACCESS] = MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR,
        [PKT_NAK_OPERATION] = MLX5_CQE_SYNDROME_REMOTE_OP_ERR,
    };
    uint32_t off = (psn - oldest(q)->psn) & PKT_PSN_MASK;

    if (code == PKT_NAK_SEQ) {
        /* One that was sent before the last rewind says nothing new. */
        if (pkt_psn_diff(psn, eng_next_psn(q)) < 0)
            eng_rewind(q, psn);
        return;
    }
    /* Answers to older reads may have been lost; the peer has stopped, so the timer ends the matter in that case. */
    if (code < sizeof(syndrome) && oldest(q)->npsn && off < oldest(q)->npsn)
        eng_fail_head(q, syndrome[code], VENDOR_NAK);
}

static void ack_packet(struct eng_qp *q, const struct pkt *p)
{
    uint8_t kind = p->syndrome & AETH_KIND;

    if (kind == KIND_ACK) {
        acknowledge(q, pkt_psn_add(p->psn, 1), p->psn);
        return;
    }
    acknowledge(q, p->psn, p->psn);
    if (!requester_live(q))
        return;
    /* A read before it is being asked for again: the peer will repeat what it said. */
    if (pkt_psn_diff(q->una, p->psn) < 0)
        return;
    if (kind == KIND_NAK)
        negative(q, p->psn, p->syndrome & AETH_VALUE);
    else if (kind == KIND_RNR && pkt_psn_diff(p->psn, eng_next_psn(q)) < 0)
        wait_rnr(q, p->psn, p->syndrome & AETH_VALUE);
}

static void atomic_packet(struct eng_qp *q, const struct pkt *p)
{
    struct eng_send *s;

    acknowledge(q, p->psn, p->psn);
    if (!requester_live(q))
        return;
    s = oldest(q);
    if (s->psn != p->psn || !s->answered_by_data || s->done || s->opcode == MLX5_OPCODE_RDMA_READ || !s->npsn) {
        q->eng->count.rx_stale++;
        return;
    }
    if (eng_atomic_result(q, s, p->original) != ENG_COPY_OK) {
        eng_fail_head(q, MLX5_CQE_SYNDROME_LOCAL_PROT_ERR, VENDOR_SCATTER);
        return;
    }
    s->done = true;
    acknowledge(q, pkt_psn_add(p->psn, 1), p->psn);
}

static void read_packet(struct eng_qp *q, const struct pkt *p)
{
    struct eng_send *s;
    uint32_t off, want;

    acknowledge(q, p->psn, p->psn);
    if (!requester_live(q))
        return;
    s = oldest(q);
    if (s->opcode != MLX5_OPCODE_RDMA_READ || !s->npsn || s->done || p->psn != pkt_psn_add(s->psn, s->got)) {
        q->eng->count.rx_stale++;
        return;
    }
    off = s->got * q->qp->mtu;
    want = s->len - off < q->qp->mtu ? s->len - off : q->qp->mtu;
    if (p->payload_len != want) {
        q->eng->count.rx_bad_length++;
        return;
    }
    if (want && eng_scatter(q, s->raw + s->data_off, s->bytes - s->data_off, off, p->payload, want) != ENG_COPY_OK) {
        eng_fail_head(q, MLX5_CQE_SYNDROME_LOCAL_PROT_ERR, VENDOR_SCATTER);
        return;
    }
    s->got++;
    s->done = s->got == s->npsn;
    q->una = pkt_psn_add(s->psn, s->got);
    progress(q);
    eng_retire(q);
}

void eng_response_packet(struct eng_qp *q, const struct pkt *p)
{
    if (!requester_live(q)) {
        q->eng->count.rx_stale++;
        return;
    }
    /* Only what is in flight can be answered. */
    if (pkt_psn_diff(p->psn, q->una) < 0 || pkt_psn_diff(p->psn, q->max_psn) >= 0) {
        q->eng->count.rx_stale++;
        return;
    }
    if (p->op == PKT_ACK)
        ack_packet(q, p);
    else if ((p->ext & PKT_HAS_AETH) && (p->syndrome & AETH_KIND) != KIND_ACK)
        q->eng->count.rx_malformed++;
    else if (p->op == PKT_ATOMIC_ACK)
        atomic_packet(q, p);
    else
        read_packet(q, p);
}
