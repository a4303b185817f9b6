/* SPDX-License-Identifier: BSD-3-Clause */
/* Firmware commands about queue pairs. */
#include <string.h>

#include "fw/fw.h"

static bool service_type(uint32_t st, enum hca_qp_type *out)
{
    switch (st) {
    case ST_RC:
        *out = HCA_RC;
        return true;
    case ST_UC:
        *out = HCA_UC;
        return true;
    case ST_UD:
        *out = HCA_UD;
        return true;
    default:
        return false;
    }
}

static int qp_numbers(const struct fw_cmd *cmd, const uint8_t *qpc, struct hca_qp_new_attr *attr)
{
    uint32_t rq_type = (uint32_t)prm_get(qpc, QPC_RQ_TYPE);

    if (!service_type((uint32_t)prm_get(qpc, QPC_ST), &attr->type))
        return fw_fail(cmd, STATUS_BAD_PARAM, 0x50002, "service type");
    attr->pd = hca_pd_find(hca_current, (uint32_t)prm_get(qpc, QPC_PD));
    if (!attr->pd)
        return fw_fail(cmd, STATUS_BAD_PARAM, 0x50003, "no such protection domain");
    attr->uar = hca_uar_find(hca_current, (uint32_t)prm_get(qpc, QPC_UAR_PAGE));
    if (!attr->uar)
        return fw_fail(cmd, STATUS_BAD_PARAM, 0x50004, "no such doorbell page");
    attr->uidx = (uint32_t)prm_get(qpc, QPC_USER_INDEX);
    attr->rq_signature = prm_get(qpc, QPC_WQ_SIGNATURE);
    attr->sq_entries = prm_get(qpc, QPC_NO_SQ) ? 0 : 1u << prm_get(qpc, QPC_LOG_SQ_SIZE);
    if (rq_type == RQ_TYPE_RQ) {
        attr->rq_entries = 1u << prm_get(qpc, QPC_LOG_RQ_SIZE);
        attr->rq_log_stride = (uint8_t)(prm_get(qpc, QPC_LOG_RQ_STRIDE) + 4);
    } else if (rq_type == RQ_TYPE_SRQ) {
        attr->srq = hca_srq_find(hca_current, (uint32_t)prm_get(qpc, QPC_SRQN));
        if (!attr->srq)
            return fw_fail(cmd, STATUS_BAD_PARAM, 0x50005, "no such shared receive queue");
    } else if (rq_type != RQ_TYPE_NONE) {
        return fw_fail(cmd, STATUS_BAD_PARAM, 0x50006, "receive queue type");
    }
    attr->scq = hca_cq_find(hca_current, (uint32_t)prm_get(qpc, QPC_CQN_SND));
    attr->rcq = hca_cq_find(hca_current, (uint32_t)prm_get(qpc, QPC_CQN_RCV));
    if (attr->sq_entries && !attr->scq)
        return fw_fail(cmd, STATUS_BAD_PARAM, 0x50007, "no such send completion queue");
    if ((attr->rq_entries || attr->srq) && !attr->rcq)
        return fw_fail(cmd, STATUS_BAD_PARAM, 0x50008, "no such receive completion queue");
    return 0;
}

/* Two queues without a record on one page: there a doorbell may overwrite the other's, as it cannot on a real NIC. */
static int qp_bare(const struct fw_cmd *cmd, const uint8_t *qpc, struct hca_qp_new_attr *attr)
{
    uint32_t mode = (uint32_t)prm_get(qpc, QPC_SEND_DBR_MODE);

    attr->bare = mode == SEND_NO_DBR_EXT;
    if (mode == SEND_DBR_VALID)
        return 0;
    if (mode != SEND_NO_DBR_EXT || !hca_config.log_bare)
        return fw_fail(cmd, STATUS_BAD_PARAM, 0x5000c, "send doorbell record mode");
    if (attr->sq_entries > 1u << hca_config.log_bare)
        return fw_fail(cmd, STATUS_BAD_PARAM, 0x5000d, "send queue without doorbell record too long");
    if (attr->uar->bare)
        return fw_fail(cmd, STATUS_BAD_PARAM, 0x5000e, "doorbell page has a queue without doorbell record already");
    return 0;
}

/* The umem valid bits need not be set: the kernel driver sets them. Receive queue first, then send queue. */
static int qp_rings(const struct fw_cmd *cmd, const uint8_t *qpc, struct hca_qp_new_attr *attr)
{
    uint32_t umem = (uint32_t)prm_get(cmd->in, CREATE_QP_UMEM_ID);
    uint64_t off = prm_get(cmd->in, CREATE_QP_UMEM_OFFSET);
    uint64_t rq_bytes = attr->rq_entries ? (uint64_t)attr->rq_entries << attr->rq_log_stride : 0;
    uint64_t sq_bytes = (uint64_t)attr->sq_entries * HCA_WQEBB;
    int err = 0;

    if (rq_bytes)
        err = fw_umem_buf(umem, off, rq_bytes, HCA_WQEBB, &attr->rq);
    if (!err && sq_bytes)
        err = off + rq_bytes < off ? -EINVAL : fw_umem_buf(umem, off + rq_bytes, sq_bytes, 16, &attr->sq);
    if (err)
        return fw_fail(cmd, STATUS_BAD_PARAM, 0x50009, "rings are not inside their umem");
    if (fw_umem_buf((uint32_t)prm_get(qpc, QPC_DBREC_UMEM), prm_get(qpc, QPC_DBREC_ADDR), 8, 8, &attr->dbrec))
        return fw_fail(cmd, STATUS_BAD_PARAM, 0x5000a, "doorbell record is not inside its umem");
    return 0;
}

int fw_create_qp(const struct fw_cmd *cmd, struct fw_object *obj)
{
    const uint8_t *qpc = cmd->in + QP_CONTEXT;
    struct hca_qp_new_attr attr;
    struct hca_qp *qp = NULL;
    int err;

    if (cmd->in_len < CREATE_QP_BYTES)
        return fw_fail(cmd, STATUS_BAD_INPUT_LEN, 0x50001, "input too short");
    memset(&attr, 0, sizeof attr);
    attr.devx = true;
    err = qp_numbers(cmd, qpc, &attr);
    if (!err)
        err = qp_bare(cmd, qpc, &attr);
    if (!err)
        err = qp_rings(cmd, qpc, &attr);
    if (!err && hca_qp_new(hca_current, &attr, &qp))
        err = fw_fail(cmd, STATUS_NO_RES, 0x5000b, "no queue pair left");
    if (err) {
        hca_buf_fini(&attr.sq);
        hca_buf_fini(&attr.rq);
        hca_buf_fini(&attr.dbrec);
        return err;
    }
    qp->qkey = (uint32_t)prm_get(qpc, QPC_Q_KEY);
    obj->kind = FW_QP;
    obj->number = qp->qpn;
    obj->ptr = qp;
    prm_set(cmd->out, OUT_NUMBER, qp->qpn);
    hca_log(HCA_INFO, "qp 0x%06x: DEVX, type %d, send %u blocks%s, receive %u << %u, uar %u", qp->qpn, qp->type, qp->sq_entries,
            qp->bare ? " without doorbell record" : "", qp->rq_entries, qp->rq_log_stride, qp->uar->page_id);
    return 0;
}

static void read_av(const uint8_t *qpc, struct hca_av *av)
{
    uint64_t gid[2] = { htobe64(prm_get(qpc, QPC_PATH_RGID_HIGH)), htobe64(prm_get(qpc, QPC_PATH_RGID_LOW)) };
    uint64_t mac = htobe64((prm_get(qpc, QPC_PATH_RMAC_HIGH) << 32 | prm_get(qpc, QPC_PATH_RMAC_LOW)) << 16);

    av->global = prm_get(qpc, QPC_PATH_GRH) || hca_config.eth;
    memcpy(av->dgid, gid, sizeof av->dgid);
    memcpy(av->dmac, &mac, sizeof av->dmac);
    av->dlid = (uint16_t)prm_get(qpc, QPC_PATH_RLID);
    av->sl = (uint8_t)prm_get(qpc, QPC_PATH_SL);
    av->sgid_index = (uint8_t)prm_get(qpc, QPC_PATH_SGID_INDEX);
    av->hop_limit = (uint8_t)prm_get(qpc, QPC_PATH_HOP_LIMIT);
    av->traffic_class = (uint8_t)prm_get(qpc, QPC_PATH_TCLASS);
    av->static_rate = (uint8_t)prm_get(qpc, QPC_PATH_STAT_RATE);
    av->src_path_bits = (uint8_t)prm_get(qpc, QPC_PATH_MLID);
    av->flow_label = (uint32_t)prm_get(qpc, QPC_PATH_FLOW_LABEL);
    av->udp_sport = (uint16_t)prm_get(qpc, QPC_PATH_UDP_SPORT);
    av->port = (uint8_t)prm_get(qpc, QPC_PATH_PORT);
}

static uint32_t access_bits(const uint8_t *qpc)
{
    return (prm_get(qpc, QPC_RRE) ? IBV_ACCESS_REMOTE_READ : 0) | (prm_get(qpc, QPC_RWE) ? IBV_ACCESS_REMOTE_WRITE : 0)
           | (prm_get(qpc, QPC_RAE) ? IBV_ACCESS_REMOTE_ATOMIC : 0);
}

static void read_attr(const uint8_t *qpc, struct hca_qp_attr *attr)
{
    memset(attr, 0, sizeof *attr);
    attr->mtu_code = (uint32_t)prm_get(qpc, QPC_MTU);
    attr->dest_qpn = (uint32_t)prm_get(qpc, QPC_REMOTE_QPN);
    attr->rq_psn = (uint32_t)prm_get(qpc, QPC_NEXT_RCV_PSN);
    attr->sq_psn = (uint32_t)prm_get(qpc, QPC_NEXT_SEND_PSN);
    attr->qkey = (uint32_t)prm_get(qpc, QPC_Q_KEY);
    attr->pkey_index = (uint16_t)prm_get(qpc, QPC_PATH_PKEY_INDEX);
    attr->max_rd_atomic = (uint8_t)(1u << prm_get(qpc, QPC_LOG_SRA_MAX));
    attr->max_dest_rd_atomic = (uint8_t)(1u << prm_get(qpc, QPC_LOG_RRA_MAX));
    attr->timeout = (uint8_t)prm_get(qpc, QPC_PATH_ACK_TIMEOUT);
    attr->retry_cnt = (uint8_t)prm_get(qpc, QPC_RETRY_COUNT);
    attr->rnr_retry = (uint8_t)prm_get(qpc, QPC_RNR_RETRY);
    attr->min_rnr_timer = (uint8_t)prm_get(qpc, QPC_MIN_RNR_NAK);
    attr->port_num = (uint8_t)prm_get(qpc, QPC_PATH_PORT);
    read_av(qpc, &attr->av);
    if (attr->max_rd_atomic > HCA_MAX_RD_ATOMIC)
        attr->max_rd_atomic = HCA_MAX_RD_ATOMIC;
    if (attr->max_dest_rd_atomic > HCA_MAX_RD_ATOMIC)
        attr->max_dest_rd_atomic = HCA_MAX_RD_ATOMIC;
}

/* What each command sets, and what it sets only when asked to. */
struct change {
    enum prm_opcode op;
    enum ibv_qp_state from, to;
    uint32_t mask;
};

#define RTR_MASK (IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER | IBV_QP_AV)
#define RTS_MASK (IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC)

static const struct change changes[] = {
    { OP_RST2INIT_QP, IBV_QPS_RESET, IBV_QPS_INIT, IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_QKEY },
    { OP_INIT2INIT_QP, IBV_QPS_INIT, IBV_QPS_INIT, 0 },
    { OP_INIT2RTR_QP, IBV_QPS_INIT, IBV_QPS_RTR, RTR_MASK },
    { OP_RTR2RTS_QP, IBV_QPS_RTR, IBV_QPS_RTS, RTS_MASK },
    { OP_RTS2RTS_QP, IBV_QPS_RTS, IBV_QPS_RTS, 0 },
    { OP_SQERR2RTS_QP, IBV_QPS_SQE, IBV_QPS_RTS, 0 },
    { OP_SQD_RTS_QP, IBV_QPS_SQD, IBV_QPS_RTS, 0 },
};

static uint32_t optional_mask(uint32_t opt)
{
    return (opt & OPT_PKEY_INDEX ? IBV_QP_PKEY_INDEX : 0) | (opt & OPT_Q_KEY ? IBV_QP_QKEY : 0)
           | (opt & OPT_RNR_TIMEOUT ? IBV_QP_MIN_RNR_TIMER : 0) | (opt & OPT_PRIMARY_ADDR_PATH ? IBV_QP_AV : 0)
           | (opt & OPT_SRA_MAX ? IBV_QP_MAX_QP_RD_ATOMIC : 0) | (opt & OPT_RRA_MAX ? IBV_QP_MAX_DEST_RD_ATOMIC : 0)
           | (opt & OPT_RETRY_COUNT ? IBV_QP_RETRY_CNT : 0) | (opt & OPT_RNR_RETRY ? IBV_QP_RNR_RETRY : 0)
           | (opt & OPT_ACK_TIMEOUT ? IBV_QP_TIMEOUT : 0);
}

/* Each access bit may be changed on its own. */
static void optional_access(const struct hca_qp *qp, const uint8_t *qpc, uint32_t opt, struct hca_qp_attr *attr, uint32_t *mask)
{
    uint32_t which = (opt & OPT_RRE ? IBV_ACCESS_REMOTE_READ : 0) | (opt & OPT_RWE ? IBV_ACCESS_REMOTE_WRITE : 0)
                     | (opt & OPT_RAE ? IBV_ACCESS_REMOTE_ATOMIC : 0);

    if (*mask & IBV_QP_ACCESS_FLAGS) {
        attr->access = access_bits(qpc);
    } else if (which) {
        attr->access = (qp->access & ~which) | (access_bits(qpc) & which);
        *mask |= IBV_QP_ACCESS_FLAGS;
    }
}

static int to_end(struct hca_qp *qp, enum ibv_qp_state state)
{
    struct hca_qp_attr attr = { .state = state };

    hca_qp_apply(qp, &attr, IBV_QP_STATE);
    return 0;
}

int fw_modify_qp(const struct fw_cmd *cmd, struct hca_qp *qp)
{
    uint32_t op = (uint32_t)prm_get(cmd->in, CMD_OPCODE), opt;
    const uint8_t *qpc = cmd->in + QP_CONTEXT;
    const struct change *change = changes;
    struct hca_qp_attr attr;
    uint32_t mask;

    if (op == OP_2ERR_QP)
        return to_end(qp, IBV_QPS_ERR);
    if (op == OP_2RST_QP)
        return to_end(qp, IBV_QPS_RESET);
    if (cmd->in_len < MODIFY_QP_BYTES)
        return fw_fail(cmd, STATUS_BAD_INPUT_LEN, 0x50010, "input too short");
    while (change->op != op)
        change++;
    if (qp->state != change->from)
        return fw_fail(cmd, STATUS_BAD_QP_STATE, 0x50011, "queue pair is in another state");
    opt = (uint32_t)prm_get(cmd->in, MODIFY_QP_OPTIONAL);
    read_attr(qpc, &attr);
    mask = change->mask | optional_mask(opt) | IBV_QP_STATE;
    attr.state = change->to;
    optional_access(qp, qpc, opt, &attr, &mask);
    if ((mask & IBV_QP_PATH_MTU) && qp->type == HCA_UD)
        mask &= ~(uint32_t)(IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_AV);
    if ((mask & IBV_QP_PATH_MTU) && (attr.mtu_code < IBV_MTU_256 || attr.mtu_code > IBV_MTU_4096))
        return fw_fail(cmd, STATUS_BAD_PARAM, 0x50012, "path MTU");
    if ((mask & IBV_QP_PKEY_INDEX) && attr.pkey_index)
        return fw_fail(cmd, STATUS_BAD_PARAM, 0x50013, "partition key index");
    hca_qp_apply(qp, &attr, mask);
    return 0;
}

static uint32_t mtu_code(uint32_t bytes)
{
    uint32_t code = IBV_MTU_256;

    while (code < IBV_MTU_4096 && 128u << code < bytes)
        code++;
    return code;
}

static uint32_t log2_of(uint32_t value)
{
    return value > 1 ? (uint32_t)(31 - __builtin_clz(value)) : 0;
}

static uint32_t prm_state(const struct hca_qp *qp)
{
    /* RST 0, INIT 1, RTR 2, RTS 3, SQERR 4, SQD 5, ERR 6: two of them trade places with verbs. */
    switch (qp->state) {
    case IBV_QPS_SQE:
        return 4;
    case IBV_QPS_SQD:
        return 5;
    default:
        return (uint32_t)qp->state;
    }
}

int fw_query_qp(const struct fw_cmd *cmd, const struct hca_qp *qp)
{
    static const uint8_t service[] = { [HCA_RC] = ST_RC, [HCA_UC] = ST_UC, [HCA_UD] = ST_UD };
    uint8_t *qpc = cmd->out + QP_CONTEXT;

    if (cmd->out_len < QP_CONTEXT + QPC_BYTES)
        return fw_fail(cmd, STATUS_BAD_OUTPUT_LEN, 0x50014, "output too short");
    prm_set(qpc, QPC_STATE, prm_state(qp));
    prm_set(qpc, QPC_ST, (unsigned)qp->type < sizeof service ? service[qp->type] : ST_RC);
    prm_set(qpc, QPC_PD, qp->pd->pdn);
    prm_set(qpc, QPC_MTU, mtu_code(qp->mtu));
    prm_set(qpc, QPC_LOG_MSG_MAX, HCA_LOG_MAX_MSG);
    prm_set(qpc, QPC_USER_INDEX, qp->uidx);
    prm_set(qpc, QPC_REMOTE_QPN, qp->dest_qpn);
    prm_set(qpc, QPC_PATH_RLID, qp->av.dlid);
    prm_set(qpc, QPC_PATH_ACK_TIMEOUT, qp->timeout);
    prm_set(qpc, QPC_LOG_SRA_MAX, log2_of(qp->max_rd_atomic));
    prm_set(qpc, QPC_LOG_RRA_MAX, log2_of(qp->max_dest_rd_atomic));
    prm_set(qpc, QPC_RETRY_COUNT, qp->retry_cnt);
    prm_set(qpc, QPC_RNR_RETRY, qp->rnr_retry);
    prm_set(qpc, QPC_NEXT_SEND_PSN, qp->next_send_psn);
    prm_set(qpc, QPC_NEXT_RCV_PSN, qp->next_rcv_psn);
    prm_set(qpc, QPC_CQN_SND, qp->scq ? qp->scq->cqn : 0);
    prm_set(qpc, QPC_CQN_RCV, qp->rcq ? qp->rcq->cqn : 0);
    prm_set(qpc, QPC_RRE, (qp->access & IBV_ACCESS_REMOTE_READ) != 0);
    prm_set(qpc, QPC_RWE, (qp->access & IBV_ACCESS_REMOTE_WRITE) != 0);
    prm_set(qpc, QPC_RAE, (qp->access & IBV_ACCESS_REMOTE_ATOMIC) != 0);
    prm_set(qpc, QPC_MIN_RNR_NAK, qp->min_rnr_timer);
    prm_set(qpc, QPC_Q_KEY, qp->qkey);
    prm_set(qpc, QPC_HW_SQ_COUNTER, qp->sq_consumer);
    prm_set(qpc, QPC_SW_SQ_COUNTER, qp->sq_producer);
    prm_set(qpc, QPC_HW_RQ_COUNTER, qp->rq_consumer);
    return 0;
}
