/* SPDX-License-Identifier: BSD-3-Clause */
/* Modify and query of queue pairs: between the wire format of the commands and the device model. */
#include <string.h>

#include "fw/fw.h"
#include "uverbs/uverbs.h"

/* Extended modify knows one attribute more. */
enum { KNOWN_MASK = (IBV_QP_RATE_LIMIT << 1) - 1, LEGACY_MASK = IBV_QP_RATE_LIMIT - 1 };

static void av_from_dest(struct hca_av *av, const struct ib_uverbs_qp_dest *dest)
{
    memset(av, 0, sizeof *av);
    av->global = dest->is_global != 0;
    memcpy(av->dgid, dest->dgid, sizeof av->dgid);
    av->flow_label = dest->flow_label;
    av->dlid = dest->dlid;
    av->sgid_index = dest->sgid_index;
    av->hop_limit = dest->hop_limit;
    av->traffic_class = dest->traffic_class;
    av->sl = dest->sl;
    av->src_path_bits = dest->src_path_bits;
    av->static_rate = dest->static_rate;
    av->port = dest->port_num;
    fw_gid_mac(av->dgid, av->dmac);
}

static void dest_from_av(struct ib_uverbs_qp_dest *dest, const struct hca_av *av)
{
    dest->is_global = av->global;
    memcpy(dest->dgid, av->dgid, sizeof dest->dgid);
    dest->flow_label = av->flow_label;
    dest->dlid = av->dlid;
    dest->sgid_index = av->sgid_index;
    dest->hop_limit = av->hop_limit;
    dest->traffic_class = av->traffic_class;
    dest->sl = av->sl;
    dest->src_path_bits = av->src_path_bits;
    dest->static_rate = av->static_rate;
    dest->port_num = av->port;
}

static int modify(struct uv_bundle *b, const struct ib_uverbs_modify_qp *cmd)
{
    struct hca_qp_attr attr;
    struct hca_qp *qp;
    int err;

    qp = uv_object_get(b->ctx, cmd->qp_handle, UV_QP, &err);
    if (!qp)
        return -EINVAL;
    memset(&attr, 0, sizeof attr);
    attr.state = (enum ibv_qp_state)cmd->qp_state;
    attr.cur_state = (enum ibv_qp_state)cmd->cur_qp_state;
    attr.access = cmd->qp_access_flags;
    attr.mtu_code = cmd->path_mtu;
    attr.dest_qpn = cmd->dest_qp_num;
    attr.rq_psn = cmd->rq_psn;
    attr.sq_psn = cmd->sq_psn;
    attr.qkey = cmd->qkey;
    attr.pkey_index = cmd->pkey_index;
    attr.max_rd_atomic = cmd->max_rd_atomic;
    attr.max_dest_rd_atomic = cmd->max_dest_rd_atomic;
    attr.timeout = cmd->timeout;
    attr.retry_cnt = cmd->retry_cnt;
    attr.rnr_retry = cmd->rnr_retry;
    attr.min_rnr_timer = cmd->min_rnr_timer;
    attr.port_num = cmd->port_num;
    attr.sqd_notify = cmd->en_sqd_async_notify;
    attr.path_mig_state = cmd->path_mig_state;
    attr.alt_timeout = cmd->alt_timeout;
    attr.alt_port = cmd->alt_port_num;
    attr.alt_pkey_index = (uint8_t)cmd->alt_pkey_index;
    av_from_dest(&attr.av, &cmd->dest);
    av_from_dest(&attr.alt_av, &cmd->alt_dest);
    return hca_qp_modify(qp, &attr, cmd->attr_mask);
}

int uv_modify_qp(struct uv_bundle *b)
{
    struct ib_uverbs_modify_qp cmd;

    if (uv_in(b, UVERBS_ATTR_CORE_IN, &cmd, sizeof cmd))
        return -EFAULT;
    if (cmd.attr_mask & ~(uint32_t)LEGACY_MASK)
        return -EOPNOTSUPP;
    return modify(b, &cmd);
}

int uv_modify_qp_ex(struct uv_bundle *b)
{
    struct ib_uverbs_ex_modify_qp cmd;
    struct ib_uverbs_ex_modify_qp_resp resp = { .response_length = sizeof resp };
    struct mlx5_ib_modify_qp_resp vendor = { .response_length = sizeof vendor };
    int err;

    if (uv_in(b, UVERBS_ATTR_CORE_IN, &cmd, sizeof cmd))
        return -EFAULT;
    if (cmd.base.attr_mask & ~(uint32_t)KNOWN_MASK)
        return -EOPNOTSUPP;
    if (cmd.base.attr_mask & IBV_QP_RATE_LIMIT)
        return -EOPNOTSUPP;
    err = modify(b, &cmd.base);
    if (!err)
        err = uv_out(b, UVERBS_ATTR_CORE_OUT, &resp, sizeof resp);
    return err ? err : uv_out(b, UVERBS_ATTR_UHW_OUT, &vendor, sizeof vendor);
}

static uint8_t mtu_code(uint32_t bytes)
{
    return (uint8_t)(uv_log2_up(bytes) - 7);
}

static void fill_query(const struct hca_qp *qp, struct ib_uverbs_query_qp_resp *resp)
{
    dest_from_av(&resp->dest, &qp->av);
    dest_from_av(&resp->alt_dest, &qp->alt_av);
    resp->max_send_wr = qp->cap.max_send_wr;
    resp->max_recv_wr = qp->rq_entries;   /* what the ring holds, not what was asked for */
    resp->max_send_sge = qp->cap.max_send_sge;
    resp->max_recv_sge = qp->rq_entries ? (1u << qp->rq_log_stride) / 16 - (qp->rq_signature ? 1 : 0) : 0;
    resp->max_inline_data = qp->cap.max_inline;
    resp->qkey = qp->qkey;
    resp->rq_psn = qp->next_rcv_psn;
    resp->sq_psn = qp->next_send_psn;
    resp->dest_qp_num = qp->dest_qpn;
    resp->qp_access_flags = qp->access;
    resp->pkey_index = qp->pkey_index;
    resp->alt_pkey_index = qp->alt_pkey_index;
    resp->qp_state = (uint8_t)qp->state;
    resp->cur_qp_state = (uint8_t)qp->state;
    resp->path_mtu = mtu_code(qp->mtu);
    resp->path_mig_state = qp->path_mig_state;
    resp->sq_draining = qp->sq_draining;
    resp->max_rd_atomic = qp->max_rd_atomic;
    resp->max_dest_rd_atomic = qp->max_dest_rd_atomic;
    resp->min_rnr_timer = qp->min_rnr_timer;
    resp->port_num = qp->port_num;
    resp->timeout = qp->timeout;
    resp->retry_cnt = qp->retry_cnt;
    resp->rnr_retry = qp->rnr_retry;
    resp->alt_port_num = qp->alt_port;
    resp->alt_timeout = qp->alt_timeout;
    resp->sq_sig_all = qp->sig_all;
}

int uv_query_qp(struct uv_bundle *b)
{
    struct ib_uverbs_query_qp cmd;
    struct ib_uverbs_query_qp_resp resp;
    const struct hca_qp *qp;
    int err;

    if (uv_in(b, UVERBS_ATTR_CORE_IN, &cmd, sizeof cmd))
        return -EFAULT;
    qp = uv_object_get(b->ctx, cmd.qp_handle, UV_QP, &err);
    if (!qp)
        return -EINVAL;
    memset(&resp, 0, sizeof resp);
    fill_query(qp, &resp);
    return uv_out(b, UVERBS_ATTR_CORE_OUT, &resp, sizeof resp);
}
