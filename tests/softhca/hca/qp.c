/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs: their making and end. State changes are in qp_state.c. */
#include <stdlib.h>
#include <string.h>

#include "hca/objects.h"
#include "uverbs/uverbs.h"

enum { FIRST_INDEX = 2 };        /* 0 and 1 are the management QPs of a real port */

static uint32_t index_alloc(struct hca *hca)
{
    static uint32_t next = FIRST_INDEX;

    for (uint32_t tries = 0; tries < HCA_MAX_QP; tries++) {
        uint32_t index = next;

        next = next + 1 < HCA_MAX_QP ? next + 1 : FIRST_INDEX;
        if (!hca->qp[index])
            return index;
    }
    return 0;
}

static void hold(struct hca_qp *qp, int step)
{
    qp->pd->users += (unsigned)step;
    if (qp->scq)
        qp->scq->users += (unsigned)step;
    if (qp->rcq)
        qp->rcq->users += (unsigned)step;
    if (qp->srq)
        qp->srq->users += (unsigned)step;
    if (qp->uar)
        qp->uar->users += (unsigned)step;
}

static void set_defaults(struct hca_qp *qp, const struct hca_qp_new_attr *attr)
{
    qp->type = attr->type;
    qp->state = IBV_QPS_RESET;
    qp->uidx = attr->uidx;
    qp->devx = attr->devx;
    qp->pd = attr->pd;
    qp->scq = attr->scq;
    qp->rcq = attr->rcq;
    qp->srq = attr->srq;
    qp->uar = attr->uar;
    qp->cap = attr->cap;
    qp->sq = attr->sq;
    qp->rq = attr->rq;
    qp->dbrec = attr->dbrec;
    qp->sq_entries = attr->sq_entries;
    qp->rq_entries = attr->rq_entries;
    qp->rq_log_stride = attr->rq_log_stride;
    qp->bare = attr->bare;
    qp->sig_all = attr->sig_all;
    qp->rq_signature = attr->rq_signature;
    qp->ext_atomics = true;
    qp->dc_key = attr->dc_key;
    qp->port_num = HCA_PORT;
    qp->mtu = 1024;
}

int hca_qp_new(struct hca *hca, struct hca_qp_new_attr *attr, struct hca_qp **out)
{
    uint32_t index = index_alloc(hca);
    struct hca_qp *qp;
    int err;

    if (!index)
        return -ENOMEM;
    qp = calloc(1, sizeof *qp);
    if (!qp)
        return -ENOMEM;
    qp->hca = hca;
    qp->qpn = hca->id.slot << HCA_QPN_SHIFT | index;
    hca_list_init(&qp->uar_link);
    set_defaults(qp, attr);
    err = eng_qp_new(qp);
    if (err) {
        free(qp);
        return err;
    }
    memset(&attr->sq, 0, sizeof attr->sq);
    memset(&attr->rq, 0, sizeof attr->rq);
    memset(&attr->dbrec, 0, sizeof attr->dbrec);
    hold(qp, 1);
    if (qp->uar)
        hca_list_add(&qp->uar->qps, &qp->uar_link);
    if (qp->bare)
        qp->uar->bare = true;
    hca->qp[index] = qp;
    if (index >= hca->qp_top)
        hca->qp_top = index + 1;
    *out = qp;
    return 0;
}

int hca_qp_free(struct hca *hca, struct hca_qp *qp)
{
    uint32_t index = HCA_QPN_INDEX(qp->qpn);

    eng_qp_gone(qp);
    hca->qp[index] = NULL;
    while (hca->qp_top > FIRST_INDEX && !hca->qp[hca->qp_top - 1])
        hca->qp_top--;
    hca_list_del(&qp->uar_link);
    if (qp->bare)
        qp->uar->bare = false;
    hold(qp, -1);
    hca_buf_fini(&qp->sq);
    hca_buf_fini(&qp->rq);
    hca_buf_fini(&qp->dbrec);
    free(qp);
    return 0;
}

struct hca_qp *hca_qp_find(struct hca *hca, uint32_t qpn)
{
    return HCA_QPN_SLOT(qpn) == hca->id.slot ? hca->qp[HCA_QPN_INDEX(qpn)] : NULL;
}

void hca_qp_event(struct hca_qp *qp, enum ibv_event_type type)
{
    uv_event_async(&qp->async, type);
    uv_event_devx_qp(qp, type);
}

void hca_qp_error(struct hca_qp *qp, enum ibv_qp_state state)
{
    enum ibv_qp_state old = qp->state;

    if (old == state || old == IBV_QPS_ERR || old == IBV_QPS_RESET)
        return;
    qp->state = state;
    hca_log(HCA_INFO, "qp 0x%06x: state %d -> %d by an error", qp->qpn, old, state);
    eng_qp_state(qp, old);
}
