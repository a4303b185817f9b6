/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine's side of a queue pair: its making, its state changes and its end. */
#include "engine/engine.h"

#include <stdlib.h>
#include <string.h>

int eng_qp_new(struct hca_qp *qp)
{
    struct eng *e = qp->hca->eng;
    struct eng_qp *q;

    if (qp->type != HCA_RC && qp->type != HCA_UC && qp->type != HCA_UD)
        return -EOPNOTSUPP;
    q = calloc(1, sizeof(*q));
    if (!q)
        return -ENOMEM;
    q->sends = calloc(ENG_SENDS, sizeof(*q->sends));
    q->responses = calloc(ENG_RESPONSES, sizeof(*q->responses));
    if (!q->sends || !q->responses) {
        free(q->sends);
        free(q->responses);
        free(q);
        return -ENOMEM;
    }
    q->qp = qp;
    q->eng = e;
    q->rto_ns = e->rto_ns;
    hca_list_init(&q->active);
    qp->eng = q;
    return 0;
}

static void deactivate(struct eng_qp *q)
{
    if (q->is_active)
        hca_list_del(&q->active);
    q->is_active = false;
}

/* Everything but the allocations and the links to others. */
static void clear(struct eng_qp *q)
{
    struct eng_qp fresh = { .qp = q->qp, .eng = q->eng, .sends = q->sends, .responses = q->responses,
                            .rto_ns = q->eng->rto_ns };

    deactivate(q);
    *q = fresh;
    hca_list_init(&q->active);
}

/* The address vector says who the peer is; its QPN says so as well, and they should agree. */
static uint32_t slot_of_peer(struct eng_qp *q)
{
    const struct hca_qp *qp = q->qp;
    uint32_t by_qpn = HCA_QPN_SLOT(qp->dest_qpn), by_av = by_qpn;

    if (hca_config.eth && qp->av.global && qp->av.dgid[10] == 0xff && qp->av.dgid[11] == 0xff)
        by_av = pkt_get32(qp->av.dgid + 12) - wire_ipv4(q->eng->wire, 0);
    else if (!hca_config.eth && qp->av.dlid)
        by_av = qp->av.dlid;
    if (by_av != by_qpn)
        eng_complain(q, "address vector names slot %u, but queue pair 0x%06x lives in slot %u", by_av, qp->dest_qpn,
                     by_qpn);
    return by_av >= 1 && by_av <= HCA_MAX_SLOT ? by_av : by_qpn;
}

static void start_requester(struct eng_qp *q)
{
    q->next_psn = q->una = q->max_psn = q->qp->sq_psn;
    q->progress_ns = q->resend_ns = hca_now_ns();
    if (q->qp->type != HCA_UD)
        q->peer_slot = slot_of_peer(q);
}

void eng_qp_state(struct hca_qp *qp, enum ibv_qp_state old)
{
    struct eng_qp *q = ENG_OF(qp);

    switch (qp->state) {
    case IBV_QPS_RESET:
        /* A doorbell of the queue's former life must not be taken for one of the next. */
        eng_scan_pages(q->eng);
        clear(q);
        return;
    case IBV_QPS_RTR:
        if (old == IBV_QPS_RTR)
            return;
        q->epsn = qp->rq_psn;
        if (qp->type != HCA_UD)
            q->peer_slot = slot_of_peer(q);
        return;
    case IBV_QPS_RTS:
        if (old == IBV_QPS_RTR)
            start_requester(q);
        break;
    case IBV_QPS_SQE:
    case IBV_QPS_ERR:
        if (old == qp->state)
            return;
        eng_flush(q);
        if (qp->state == IBV_QPS_ERR && qp->srq)
            hca_qp_event(qp, IBV_EVENT_QP_LAST_WQE_REACHED);
        break;
    default:
        break;
    }
    eng_activate(q);
}

void eng_qp_gone(struct hca_qp *qp)
{
    struct eng_qp *q = ENG_OF(qp);

    if (!q)
        return;
    /* Its last doorbell may not have been seen yet, although an earlier one made us do all its work. */
    eng_scan_pages(q->eng);
    /* A peer may still wait for an answer that was already earned. */
    if (qp->state == IBV_QPS_RTR || qp->state == IBV_QPS_RTS || qp->state == IBV_QPS_SQD) {
        eng_respond(q, ENG_RESPONSES);
        wire_flush(q->eng->wire);
    }
    deactivate(q);
    free(q->sends);
    free(q->responses);
    free(q);
    qp->eng = NULL;
}

/* Keys are looked up for each packet and completion queues through the queue pair: nothing is cached. */
void eng_key_gone(struct hca *hca, const struct hca_key *key)
{
    (void)hca;
    (void)key;
}

void eng_cq_gone(struct hca_cq *cq)
{
    (void)cq;
}
