/* SPDX-License-Identifier: BSD-3-Clause */
/* The legacy write() commands that rdma-core still issues; they travel inside UVERBS_METHOD_INVOKE_WRITE. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fw/fw.h"
#include "uverbs/uverbs.h"

#define EXTENDED(cmd) ((cmd) | IB_USER_VERBS_CMD_FLAG_EXTENDED)

struct write_cmd {
    uint32_t cmd;
    uint16_t in_min, out_min;    /* bytes; fewer is ENOSPC */
    int (*handler)(struct uv_bundle *b);
};

/* What the core calls answer when a handle in a write() command is wrong. */
static void *lookup(struct uv_bundle *b, uint32_t handle, enum uv_type type)
{
    int err;

    return uv_object_get(b->ctx, handle, type, &err);
}

static int reply(struct uv_bundle *b, const void *resp, size_t len)
{
    return uv_out(b, UVERBS_ATTR_CORE_OUT, resp, len);
}

/* A new object whose handle goes into the reply: undone when the reply cannot be written. */
static int finish_new(struct uv_bundle *b, enum uv_type type, uint32_t handle, int err)
{
    if (err)
        uv_object_destroy(b->ctx, handle, type, NULL);
    return err;
}

static int query_device(struct uv_bundle *b)
{
    struct ib_uverbs_query_device_resp resp;

    memset(&resp, 0, sizeof resp);
    fw_query_device(hca_current, &resp);
    return reply(b, &resp, sizeof resp);
}

static int query_device_ex(struct uv_bundle *b)
{
    struct ib_uverbs_ex_query_device_resp resp;
    struct mlx5_ib_query_device_resp vendor;
    struct ib_uverbs_ex_query_device cmd;
    size_t room = uv_len(b, UVERBS_ATTR_CORE_OUT);
    int err;

    if (uv_in(b, UVERBS_ATTR_CORE_IN, &cmd, sizeof cmd))
        return -EFAULT;
    if (cmd.comp_mask || cmd.reserved)
        return -EINVAL;
    memset(&resp, 0, sizeof resp);
    memset(&vendor, 0, sizeof vendor);
    fw_query_device_ex(hca_current, &resp);
    resp.response_length = (uint32_t)(room < sizeof resp ? room : sizeof resp);
    room = uv_len(b, UVERBS_ATTR_UHW_OUT);
    vendor.response_length = (uint32_t)(room < sizeof vendor ? room : sizeof vendor);
    err = reply(b, &resp, sizeof resp);
    return err ? err : uv_out(b, UVERBS_ATTR_UHW_OUT, &vendor, sizeof vendor);
}

static int alloc_pd(struct uv_bundle *b)
{
    struct ib_uverbs_alloc_pd_resp resp = { 0 };
    struct mlx5_ib_alloc_pd_resp vendor = { 0 };
    struct hca_pd *pd;
    int err = hca_pd_new(hca_current, &pd);

    if (err)
        return err;
    err = uv_object_add(b->ctx, UV_PD, pd, &resp.pd_handle);
    if (err) {
        hca_pd_free(hca_current, pd);
        return err;
    }
    vendor.pdn = pd->pdn;
    err = uv_out(b, UVERBS_ATTR_UHW_OUT, &vendor, sizeof vendor);
    if (!err)
        err = reply(b, &resp, sizeof resp);
    return finish_new(b, UV_PD, resp.pd_handle, err);
}

static int reg_mr(struct uv_bundle *b)
{
    struct ib_uverbs_reg_mr cmd;
    struct ib_uverbs_reg_mr_resp resp = { 0 };
    struct hca_mr_attr attr = { .dmabuf_fd = -1 };
    struct hca_key *mr;
    int err;

    if (uv_in(b, UVERBS_ATTR_CORE_IN, &cmd, sizeof cmd))
        return -EFAULT;
    if ((cmd.start & (HCA_UAR_BYTES - 1)) != (cmd.hca_va & (HCA_UAR_BYTES - 1)))
        return -EINVAL;
    attr.pd = lookup(b, cmd.pd_handle, UV_PD);
    if (!attr.pd)
        return -EINVAL;
    attr.addr = cmd.start;
    attr.len = cmd.length;
    attr.iova = cmd.hca_va;
    attr.access = cmd.access_flags;
    err = hca_mr_new(hca_current, &attr, &mr);
    if (err)
        return err;
    hca_log(HCA_INFO, "mr 0x%x: 0x%llx + %llu at iova 0x%llx, access 0x%x", mr->key, (unsigned long long)cmd.start,
            (unsigned long long)cmd.length, (unsigned long long)mr->iova, cmd.access_flags);
    err = uv_object_add(b->ctx, UV_MR, mr, &resp.mr_handle);
    if (err) {
        hca_key_free(hca_current, mr);
        return err;
    }
    resp.lkey = resp.rkey = mr->key;
    return finish_new(b, UV_MR, resp.mr_handle, reply(b, &resp, sizeof resp));
}

static int rereg_mr(struct uv_bundle *b)
{
    struct ib_uverbs_rereg_mr cmd;
    struct ib_uverbs_rereg_mr_resp resp = { 0 };
    struct hca_mr_attr attr = { .dmabuf_fd = -1 };
    struct hca_key *mr;
    int err;

    if (uv_in(b, UVERBS_ATTR_CORE_IN, &cmd, sizeof cmd))
        return -EFAULT;
    if (!cmd.flags || (cmd.flags & ~(uint32_t)IBV_REREG_MR_FLAGS_SUPPORTED))
        return -EINVAL;
    if ((cmd.flags & IBV_REREG_MR_CHANGE_TRANSLATION) && (cmd.start & (HCA_UAR_BYTES - 1)) != (cmd.hca_va & (HCA_UAR_BYTES - 1)))
        return -EINVAL;
    mr = lookup(b, cmd.mr_handle, UV_MR);
    if (!mr)
        return -EINVAL;
    if (cmd.flags & IBV_REREG_MR_CHANGE_PD) {
        attr.pd = lookup(b, cmd.pd_handle, UV_PD);
        if (!attr.pd)
            return -EINVAL;
    }
    attr.addr = cmd.start;
    attr.len = cmd.length;
    attr.iova = cmd.hca_va;
    attr.access = cmd.access_flags;
    err = hca_mr_change(hca_current, mr, cmd.flags, &attr);
    if (err)
        return err;
    resp.lkey = resp.rkey = mr->key;
    return reply(b, &resp, sizeof resp);
}

static int alloc_mw(struct uv_bundle *b)
{
    struct ib_uverbs_alloc_mw cmd;
    struct ib_uverbs_alloc_mw_resp resp = { 0 };
    struct mlx5_ib_alloc_mw vendor;
    struct hca_key *mw;
    struct hca_pd *pd;
    int err;

    if (uv_in(b, UVERBS_ATTR_CORE_IN, &cmd, sizeof cmd) || uv_in(b, UVERBS_ATTR_UHW_IN, &vendor, sizeof vendor))
        return -EFAULT;
    pd = lookup(b, cmd.pd_handle, UV_PD);
    if (!pd || (cmd.mw_type != IBV_MW_TYPE_1 && cmd.mw_type != IBV_MW_TYPE_2))
        return -EINVAL;
    if (vendor.comp_mask || vendor.reserved1 || vendor.reserved2)
        return -EOPNOTSUPP;
    err = hca_mw_new(hca_current, pd, cmd.mw_type == IBV_MW_TYPE_2, &mw);
    if (err)
        return err;
    err = uv_object_add(b->ctx, UV_MW, mw, &resp.mw_handle);
    if (err) {
        hca_key_free(hca_current, mw);
        return err;
    }
    resp.rkey = mw->key;
    return finish_new(b, UV_MW, resp.mw_handle, reply(b, &resp, sizeof resp));
}

static int create_channel(struct uv_bundle *b)
{
    struct ib_uverbs_create_comp_channel_resp resp = { 0 };
    int fd = uv_evfile_new(b->ctx, UV_EV_COMP, false);

    if (fd < 0)
        return fd;
    resp.fd = (uint32_t)fd;
    return reply(b, &resp, sizeof resp);
}

/*
 * A firmware command takes long enough for work that was posted before it to complete, and whether a ring can shrink
 * depends on that. Here a command is quick: the engine gets its time first.
 */
static void let_engine_catch_up(struct uv_context *ctx)
{
    const struct timespec pause = { .tv_nsec = 5000000 };

    ctx->pins++;
    hca_unlock(hca_current);
    nanosleep(&pause, NULL);
    hca_lock(hca_current);
    ctx->pins--;
}

static int resize_cq(struct uv_bundle *b)
{
    struct ib_uverbs_resize_cq cmd;
    struct ib_uverbs_resize_cq_resp resp = { 0 };
    struct mlx5_ib_resize_cq vendor;
    struct hca_buf ring, unused;
    struct hca_cq *cq;
    uint8_t log;
    int err;

    if (uv_in(b, UVERBS_ATTR_CORE_IN, &cmd, sizeof cmd) || uv_in(b, UVERBS_ATTR_UHW_IN, &vendor, sizeof vendor))
        return -EFAULT;
    let_engine_catch_up(b->ctx);
    cq = lookup(b, cmd.cq_handle, UV_CQ);
    if (!cq || cmd.cqe < 1 || cmd.cqe > FW_MAX_CQE || vendor.reserved0 || vendor.reserved1)
        return -EINVAL;
    if (vendor.cqe_size != 64 && vendor.cqe_size != 128)
        return -EINVAL;
    log = uv_log2_up(cmd.cqe + 1);
    if (1u << log == cq->entries) {
        resp.cqe = cq->entries - 1;
        return reply(b, &resp, sizeof resp);
    }
    err = uv_pin(vendor.buf_addr, (uint64_t)vendor.cqe_size << log, vendor.buf_addr, &ring, &unused);
    if (err)
        return err;
    hca_buf_fini(&unused);
    err = hca_cq_resize(cq, &ring, log, vendor.cqe_size);
    if (err) {
        hca_buf_fini(&ring);
        return err;
    }
    resp.cqe = cq->entries - 1;
    return reply(b, &resp, sizeof resp);
}

static int modify_cq(struct uv_bundle *b)
{
    struct ib_uverbs_ex_modify_cq cmd;
    struct hca_cq *cq;

    if (uv_in(b, UVERBS_ATTR_CORE_IN, &cmd, sizeof cmd))
        return -EFAULT;
    if (!cmd.attr_mask || cmd.reserved)
        return -EINVAL;
    if (cmd.attr_mask > IBV_CQ_ATTR_MODERATE)
        return -EOPNOTSUPP;
    cq = lookup(b, cmd.cq_handle, UV_CQ);
    if (!cq || cmd.attr.cq_count > FW_MAX_MODERATION || cmd.attr.cq_period > FW_MAX_MODERATION)
        return -EINVAL;
    cq->moder_count = cmd.attr.cq_count;
    cq->moder_period = cmd.attr.cq_period;
    return 0;
}

static int create_ah(struct uv_bundle *b)
{
    struct ib_uverbs_create_ah cmd;
    struct ib_uverbs_create_ah_resp resp = { 0 };
    struct mlx5_ib_create_ah_resp vendor = { .response_length = sizeof vendor };
    struct uv_ah *ah;
    struct hca_pd *pd;
    int err;

    if (uv_in(b, UVERBS_ATTR_CORE_IN, &cmd, sizeof cmd))
        return -EFAULT;
    pd = lookup(b, cmd.pd_handle, UV_PD);
    if (cmd.attr.port_num != HCA_PORT || !pd)
        return -EINVAL;
    if (cmd.attr.is_global ? cmd.attr.grh.sgid_index >= HCA_GID_TABLE : hca_config.eth)
        return -EINVAL;
    ah = calloc(1, sizeof *ah);
    if (!ah)
        return -ENOMEM;
    ah->pd = pd;
    pd->users++;
    err = uv_object_add(b->ctx, UV_AH, ah, &resp.ah_handle);
    if (err) {
        pd->users--;
        free(ah);
        return err;
    }
    fw_gid_mac(cmd.attr.grh.dgid, vendor.dmac);
    err = uv_out(b, UVERBS_ATTR_UHW_OUT, &vendor, sizeof vendor);
    if (!err)
        err = reply(b, &resp, sizeof resp);
    return finish_new(b, UV_AH, resp.ah_handle, err);
}

static int modify_srq(struct uv_bundle *b)
{
    struct ib_uverbs_modify_srq cmd;
    struct hca_srq *srq;

    if (uv_in(b, UVERBS_ATTR_CORE_IN, &cmd, sizeof cmd))
        return -EFAULT;
    srq = lookup(b, cmd.srq_handle, UV_SRQ);
    if (!srq || (cmd.attr_mask & IBV_SRQ_MAX_WR))
        return -EINVAL;          /* the device does not resize them */
    if (cmd.attr_mask & IBV_SRQ_LIMIT) {
        if (cmd.srq_limit >= srq->entries)
            return -EINVAL;
        srq->limit = cmd.srq_limit;
    }
    return 0;
}

static int query_srq(struct uv_bundle *b)
{
    struct ib_uverbs_query_srq cmd;
    struct ib_uverbs_query_srq_resp resp = { 0 };
    const struct hca_srq *srq;

    if (uv_in(b, UVERBS_ATTR_CORE_IN, &cmd, sizeof cmd))
        return -EFAULT;
    srq = lookup(b, cmd.srq_handle, UV_SRQ);
    if (!srq)
        return -EINVAL;
    resp.max_wr = srq->entries - 1;
    resp.max_sge = srq->max_sge;
    resp.srq_limit = srq->limit;
    return reply(b, &resp, sizeof resp);
}

/* Multicast groups: membership is accepted, nothing is ever delivered to them. */
static int mcast(struct uv_bundle *b)
{
    struct ib_uverbs_attach_mcast cmd;
    const struct hca_qp *qp;

    if (uv_in(b, UVERBS_ATTR_CORE_IN, &cmd, sizeof cmd))
        return -EFAULT;
    qp = lookup(b, cmd.qp_handle, UV_QP);
    return qp && qp->type == HCA_UD && cmd.gid[0] == 0xff ? 0 : -EINVAL;
}

static const struct write_cmd write_cmds[] = {
    { IB_USER_VERBS_CMD_QUERY_DEVICE, 8, sizeof(struct ib_uverbs_query_device_resp), query_device },
    { EXTENDED(IB_USER_VERBS_EX_CMD_QUERY_DEVICE), sizeof(struct ib_uverbs_ex_query_device), 176 + 8, query_device_ex },
    { IB_USER_VERBS_CMD_ALLOC_PD, 8, sizeof(struct ib_uverbs_alloc_pd_resp), alloc_pd },
    { IB_USER_VERBS_CMD_REG_MR, sizeof(struct ib_uverbs_reg_mr), sizeof(struct ib_uverbs_reg_mr_resp), reg_mr },
    { IB_USER_VERBS_CMD_REREG_MR, sizeof(struct ib_uverbs_rereg_mr), sizeof(struct ib_uverbs_rereg_mr_resp), rereg_mr },
    { IB_USER_VERBS_CMD_ALLOC_MW, sizeof(struct ib_uverbs_alloc_mw), sizeof(struct ib_uverbs_alloc_mw_resp), alloc_mw },
    { IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL, 8, sizeof(struct ib_uverbs_create_comp_channel_resp), create_channel },
    { IB_USER_VERBS_CMD_RESIZE_CQ, sizeof(struct ib_uverbs_resize_cq), 4, resize_cq },
    { EXTENDED(IB_USER_VERBS_EX_CMD_MODIFY_CQ), sizeof(struct ib_uverbs_ex_modify_cq), 0, modify_cq },
    { IB_USER_VERBS_CMD_MODIFY_QP, sizeof(struct ib_uverbs_modify_qp), 0, uv_modify_qp },
    { EXTENDED(IB_USER_VERBS_EX_CMD_MODIFY_QP), sizeof(struct ib_uverbs_modify_qp), 0, uv_modify_qp_ex },
    { IB_USER_VERBS_CMD_QUERY_QP, sizeof(struct ib_uverbs_query_qp), sizeof(struct ib_uverbs_query_qp_resp), uv_query_qp },
    { IB_USER_VERBS_CMD_CREATE_AH, sizeof(struct ib_uverbs_create_ah), sizeof(struct ib_uverbs_create_ah_resp), create_ah },
    { IB_USER_VERBS_CMD_MODIFY_SRQ, sizeof(struct ib_uverbs_modify_srq), 0, modify_srq },
    { IB_USER_VERBS_CMD_QUERY_SRQ, sizeof(struct ib_uverbs_query_srq), sizeof(struct ib_uverbs_query_srq_resp), query_srq },
    { IB_USER_VERBS_CMD_ATTACH_MCAST, sizeof(struct ib_uverbs_attach_mcast), 0, mcast },
    { IB_USER_VERBS_CMD_DETACH_MCAST, sizeof(struct ib_uverbs_attach_mcast), 0, mcast },
};

int uv_invoke_write(struct uv_bundle *b)
{
    uint32_t cmd = (uint32_t)uv_num(b, UVERBS_ATTR_WRITE_CMD);

    for (unsigned i = 0; i < sizeof write_cmds / sizeof *write_cmds; i++) {
        const struct write_cmd *known = &write_cmds[i];

        if (known->cmd != cmd)
            continue;
        /* Too small is ENOSPC even before there is a context: that answer is how the library probes for this method. */
        if (uv_len(b, UVERBS_ATTR_CORE_IN) < known->in_min || uv_len(b, UVERBS_ATTR_CORE_OUT) < known->out_min)
            return -ENOSPC;
        if (!b->ctx->has_ucontext)
            return -EINVAL;
        return known->handler(b);
    }
    hca_log(HCA_INFO, "write command 0x%x is not among those of this device", cmd);
    if (cmd & IB_USER_VERBS_CMD_FLAG_EXTENDED)
        return (cmd & ~(uint32_t)IB_USER_VERBS_CMD_FLAG_EXTENDED) > IB_USER_VERBS_EX_CMD_MODIFY_CQ ? -EINVAL : -EOPNOTSUPP;
    return cmd > IB_USER_VERBS_CMD_OPEN_QP ? -EINVAL : -EOPNOTSUPP;
}
