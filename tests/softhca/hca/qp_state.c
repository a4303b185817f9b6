/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queue pair states: which transitions exist, which attributes each must and may bring (InfiniBand specification, volume
 * 1, modify queue pair; the kernel's errno for a violation is EINVAL), and how attributes are applied.
 */
#include <string.h>

#include "hca/objects.h"

struct transition {
    enum ibv_qp_state from, to;
    unsigned types;              /* 1 << enum hca_qp_type */
    uint32_t must, may;          /* IBV_QP_*; STATE and CUR_STATE are always allowed */
};

#define RC (1u << HCA_RC | 1u << HCA_XRC_INI | 1u << HCA_XRC_TGT)
#define UC (1u << HCA_UC)
#define UD (1u << HCA_UD)
#define RAW (1u << HCA_RAW)
#define DC (1u << HCA_DCI)
#define ALL (RC | UC | UD | RAW | DC)

#define RTR_UC (IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define RTR_RC (RTR_UC | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define RTS_RC (IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC)
#define PATHS (IBV_QP_ALT_PATH | IBV_QP_ACCESS_FLAGS)
#define LIVE_UC (PATHS | IBV_QP_PATH_MIG_STATE)
#define LIVE_RC (LIVE_UC | IBV_QP_MIN_RNR_TIMER)
#define SQD_UC (IBV_QP_AV | LIVE_UC | IBV_QP_PKEY_INDEX)
#define SQD_RC                                                                                                              \
    (IBV_QP_PORT | IBV_QP_AV | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC               \
     | IBV_QP_MAX_DEST_RD_ATOMIC | LIVE_RC | IBV_QP_PKEY_INDEX)
#define UD_MAY (IBV_QP_PKEY_INDEX | IBV_QP_QKEY)

static const struct transition transitions[] = {
    { IBV_QPS_RESET, IBV_QPS_INIT, UD, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, 0 },
    { IBV_QPS_RESET, IBV_QPS_INIT, RC | UC, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0 },
    { IBV_QPS_RESET, IBV_QPS_INIT, RAW, IBV_QP_PORT, 0 },
    { IBV_QPS_RESET, IBV_QPS_INIT, DC, IBV_QP_PKEY_INDEX | IBV_QP_PORT, IBV_QP_ACCESS_FLAGS },
    { IBV_QPS_INIT, IBV_QPS_INIT, UD, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY },
    { IBV_QPS_INIT, IBV_QPS_INIT, RC | UC | DC, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS },
    { IBV_QPS_INIT, IBV_QPS_RTR, UD, 0, UD_MAY },
    { IBV_QPS_INIT, IBV_QPS_RTR, UC, RTR_UC, PATHS | IBV_QP_PKEY_INDEX },
    { IBV_QPS_INIT, IBV_QPS_RTR, RC, RTR_RC, PATHS | IBV_QP_PKEY_INDEX },
    { IBV_QPS_INIT, IBV_QPS_RTR, RAW, 0, 0 },
    { IBV_QPS_INIT, IBV_QPS_RTR, DC, IBV_QP_PATH_MTU | IBV_QP_AV, IBV_QP_PKEY_INDEX | IBV_QP_MIN_RNR_TIMER },
    { IBV_QPS_RTR, IBV_QPS_RTS, UD, IBV_QP_SQ_PSN, IBV_QP_QKEY },
    { IBV_QPS_RTR, IBV_QPS_RTS, UC, IBV_QP_SQ_PSN, LIVE_UC },
    { IBV_QPS_RTR, IBV_QPS_RTS, RC, RTS_RC, LIVE_RC },
    { IBV_QPS_RTR, IBV_QPS_RTS, RAW, 0, IBV_QP_RATE_LIMIT },
    { IBV_QPS_RTR, IBV_QPS_RTS, DC, IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC,
      IBV_QP_MIN_RNR_TIMER | IBV_QP_SQ_PSN },
    { IBV_QPS_RTS, IBV_QPS_RTS, UD, 0, IBV_QP_QKEY },
    { IBV_QPS_RTS, IBV_QPS_RTS, UC, 0, LIVE_UC },
    { IBV_QPS_RTS, IBV_QPS_RTS, RC, 0, LIVE_RC },
    { IBV_QPS_RTS, IBV_QPS_RTS, RAW, 0, IBV_QP_RATE_LIMIT },
    { IBV_QPS_RTS, IBV_QPS_SQD, UD | UC | RC, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY },
    { IBV_QPS_SQD, IBV_QPS_RTS, UD, 0, IBV_QP_QKEY },
    { IBV_QPS_SQD, IBV_QPS_RTS, UC, 0, LIVE_UC },
    { IBV_QPS_SQD, IBV_QPS_RTS, RC, 0, LIVE_RC },
    { IBV_QPS_SQD, IBV_QPS_SQD, UD, 0, UD_MAY },
    { IBV_QPS_SQD, IBV_QPS_SQD, UC, 0, SQD_UC },
    { IBV_QPS_SQD, IBV_QPS_SQD, RC, 0, SQD_RC },
    { IBV_QPS_SQE, IBV_QPS_RTS, UD, 0, IBV_QP_QKEY },
    { IBV_QPS_SQE, IBV_QPS_RTS, UC, 0, IBV_QP_ACCESS_FLAGS },
};

static bool transition_ok(const struct hca_qp *qp, enum ibv_qp_state from, enum ibv_qp_state to, uint32_t mask)
{
    uint32_t given = mask & ~(uint32_t)(IBV_QP_STATE | IBV_QP_CUR_STATE);

    if (to == IBV_QPS_RESET || to == IBV_QPS_ERR)
        return given == 0;
    if ((mask & IBV_QP_CUR_STATE) && from != IBV_QPS_RTR && from != IBV_QPS_RTS && from != IBV_QPS_SQD && from != IBV_QPS_SQE)
        return false;
    for (size_t i = 0; i < sizeof transitions / sizeof *transitions; i++) {
        const struct transition *t = &transitions[i];

        if (t->from == from && t->to == to && (t->types >> qp->type & 1))
            return (given & t->must) == t->must && !(given & ~(t->must | t->may));
    }
    return false;
}

static bool av_ok(const struct hca_av *av)
{
    if (av->port != HCA_PORT)
        return false;
    if (av->global && av->sgid_index >= HCA_GID_TABLE)
        return false;
    return av->global || !hca_config.eth;
}

static bool values_ok(const struct hca_qp_attr *attr, uint32_t mask)
{
    if ((mask & IBV_QP_PORT) && attr->port_num != HCA_PORT)
        return false;
    if ((mask & IBV_QP_AV) && !av_ok(&attr->av))
        return false;
    if ((mask & IBV_QP_ALT_PATH) && (!av_ok(&attr->alt_av) || attr->alt_port != HCA_PORT))
        return false;
    if ((mask & IBV_QP_PKEY_INDEX) && attr->pkey_index >= 1)
        return false;
    if ((mask & IBV_QP_PATH_MTU) && (attr->mtu_code < IBV_MTU_256 || attr->mtu_code > IBV_MTU_4096))
        return false;
    if ((mask & IBV_QP_MAX_QP_RD_ATOMIC) && attr->max_rd_atomic > HCA_MAX_RD_ATOMIC)
        return false;
    if ((mask & IBV_QP_MAX_DEST_RD_ATOMIC) && attr->max_dest_rd_atomic > HCA_MAX_RD_ATOMIC)
        return false;
    if ((mask & IBV_QP_TIMEOUT) && attr->timeout > 31)
        return false;
    return true;
}

static void apply_path(struct hca_qp *qp, const struct hca_qp_attr *attr, uint32_t mask)
{
    if (mask & IBV_QP_AV)
        qp->av = attr->av;
    if (mask & IBV_QP_ALT_PATH) {
        qp->alt_av = attr->alt_av;
        qp->alt_timeout = attr->alt_timeout;
        qp->alt_port = attr->alt_port;
        qp->alt_pkey_index = attr->alt_pkey_index;
    }
    if (mask & IBV_QP_PATH_MIG_STATE)
        qp->path_mig_state = attr->path_mig_state;
    if (mask & IBV_QP_PATH_MTU)
        qp->mtu = 128u << attr->mtu_code;
    if (mask & IBV_QP_PKEY_INDEX)
        qp->pkey_index = attr->pkey_index;
    if (mask & IBV_QP_PORT)
        qp->port_num = attr->port_num;
}

static void apply_attributes(struct hca_qp *qp, const struct hca_qp_attr *attr, uint32_t mask)
{
    apply_path(qp, attr, mask);
    if (mask & IBV_QP_ACCESS_FLAGS)
        qp->access = attr->access;
    if (mask & IBV_QP_QKEY)
        qp->qkey = attr->qkey;
    if (mask & IBV_QP_DEST_QPN)
        qp->dest_qpn = attr->dest_qpn & 0xffffff;
    if (mask & IBV_QP_RQ_PSN)
        qp->rq_psn = qp->next_rcv_psn = attr->rq_psn & HCA_PSN_MASK;
    if (mask & IBV_QP_SQ_PSN)
        qp->sq_psn = qp->next_send_psn = attr->sq_psn & HCA_PSN_MASK;
    if (mask & IBV_QP_TIMEOUT)
        qp->timeout = attr->timeout;
    if (mask & IBV_QP_RETRY_CNT)
        qp->retry_cnt = attr->retry_cnt & 7;
    if (mask & IBV_QP_RNR_RETRY)
        qp->rnr_retry = attr->rnr_retry & 7;
    if (mask & IBV_QP_MIN_RNR_TIMER)
        qp->min_rnr_timer = attr->min_rnr_timer & 31;
    if (mask & IBV_QP_MAX_QP_RD_ATOMIC)
        qp->max_rd_atomic = attr->max_rd_atomic;
    if (mask & IBV_QP_MAX_DEST_RD_ATOMIC)
        qp->max_dest_rd_atomic = attr->max_dest_rd_atomic;
    qp->sq_drained_event = (mask & IBV_QP_EN_SQD_ASYNC_NOTIFY) && attr->sqd_notify;
}

static void reset(struct hca_qp *qp)
{
    qp->sq_consumer = qp->sq_producer = qp->rq_consumer = 0;
    qp->next_send_psn = qp->next_rcv_psn = 0;
    qp->sq_draining = false;
    qp->dest_qpn = 0;
    memset(&qp->av, 0, sizeof qp->av);
    memset(&qp->alt_av, 0, sizeof qp->alt_av);
}

void hca_qp_apply(struct hca_qp *qp, const struct hca_qp_attr *attr, uint32_t mask)
{
    enum ibv_qp_state old = qp->state;

    apply_attributes(qp, attr, mask);
    if (mask & IBV_QP_STATE)
        qp->state = attr->state;
    if (qp->state == IBV_QPS_SQD && old != IBV_QPS_SQD)
        qp->sq_draining = true;
    if (qp->state == IBV_QPS_RESET)
        reset(qp);
    if (old != qp->state)
        hca_log(HCA_INFO, "qp 0x%06x: state %d -> %d, peer qp 0x%06x", qp->qpn, old, qp->state, qp->dest_qpn);
    eng_qp_state(qp, old);
}

int hca_qp_modify(struct hca_qp *qp, const struct hca_qp_attr *attr, uint32_t mask)
{
    enum ibv_qp_state from = mask & IBV_QP_CUR_STATE ? attr->cur_state : qp->state;
    enum ibv_qp_state to = mask & IBV_QP_STATE ? attr->state : from;

    if ((mask & IBV_QP_STATE && attr->state > IBV_QPS_ERR) || (mask & IBV_QP_CUR_STATE && attr->cur_state > IBV_QPS_ERR))
        return -EINVAL;
    if ((mask & IBV_QP_CUR_STATE) && attr->cur_state != qp->state)
        return -EINVAL;
    if (!transition_ok(qp, from, to, mask) || !values_ok(attr, mask))
        return -EINVAL;
    hca_qp_apply(qp, attr, mask);
    return 0;
}
