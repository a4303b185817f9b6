/* SPDX-License-Identifier: BSD-3-Clause */
/* ioctl commands of the verbs objects: create CQ, QP and SRQ, destroy each type, dma-buf regions. */
#include <stdlib.h>
#include <string.h>

#include "fw/fw.h"
#include "uverbs/uverbs.h"

#define KNOWN_QP_FLAGS                                                                                                      \
    (MLX5_QP_FLAG_SIGNATURE | MLX5_QP_FLAG_SCATTER_CQE | MLX5_QP_FLAG_BFREG_INDEX | MLX5_QP_FLAG_ALLOW_SCATTER_CQE          \
     | MLX5_QP_FLAG_UAR_PAGE_INDEX)

uint8_t uv_log2_up(uint32_t value)
{
    uint8_t log = 0;

    while (log < 31 && 1u << log < value)
        log++;
    return log;
}

/* Ring and doorbell record that the library allocated: pinned here, as the kernel pins them. */
int uv_pin(uint64_t ring_addr, uint64_t ring_len, uint64_t dbrec_addr, struct hca_buf *ring, struct hca_buf *dbrec)
{
    struct hca_mem *mem;
    int err = 0;

    memset(ring, 0, sizeof *ring);
    memset(dbrec, 0, sizeof *dbrec);
    if (ring_len) {
        mem = hca_mem_get(ring_addr, ring_len, true, &err);
        if (!mem)
            return err;
        err = hca_buf_init(ring, mem, 0, ring_len, 1);
        hca_mem_put(mem);
        if (err)
            return err;
    }
    mem = hca_mem_get(dbrec_addr, 8, true, &err);
    if (mem) {
        err = hca_buf_init(dbrec, mem, 0, 8, 4);
        hca_mem_put(mem);
    }
    if (err)
        hca_buf_fini(ring);
    return err;
}

static void source_init(const struct uv_bundle *b, struct hca_evsource *source, uint64_t user_handle, uint16_t event_fd_attr,
                        int *err)
{
    memset(source, 0, sizeof *source);
    source->user_handle = user_handle;
    *err = 0;
    if (uv_has(b, event_fd_attr))
        source->file = uv_evfile_get(uv_fd(b, event_fd_attr), UV_EV_ASYNC, err);
    else
        source->file = uv_evfile_ref(b->ctx->async);
}

/* Gives a new object its handle; the object is destroyed again when that fails. */
static int publish(struct uv_bundle *b, uint16_t handle_attr, enum uv_type type, void *ptr, int err)
{
    uint32_t handle;

    if (!err)
        err = uv_object_add(b->ctx, type, ptr, &handle);
    if (!err) {
        err = uv_out_handle(b, handle_attr, handle);
        if (err)
            uv_object_destroy(b->ctx, handle, type, NULL);
    }
    return err;
}

/* ---- completion queues ---- */

static int cq_events(const struct uv_bundle *b, struct hca_evsource *comp, struct hca_evsource *async)
{
    uint64_t user_handle = uv_num(b, UVERBS_ATTR_CREATE_CQ_USER_HANDLE);
    int err = 0;

    memset(comp, 0, sizeof *comp);
    comp->user_handle = user_handle;
    if (uv_has(b, UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL))
        comp->file = uv_evfile_get(uv_fd(b, UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL), UV_EV_COMP, &err);
    if (err)
        return err;
    source_init(b, async, user_handle, UVERBS_ATTR_CREATE_CQ_EVENT_FD, &err);
    if (err)
        uv_evfile_put(comp->file);
    return err;
}

static int cq_check(const struct uv_bundle *b, const struct mlx5_ib_create_cq *cmd, uint32_t cqe)
{
    uint64_t flags = uv_num(b, UVERBS_ATTR_CREATE_CQ_FLAGS);

    if (!cqe || uv_num(b, UVERBS_ATTR_CREATE_CQ_COMP_VECTOR) >= FW_COMP_VECTORS)
        return -EINVAL;
    if (cqe > FW_MAX_CQE)
        return -EINVAL;
    if (flags & ~(uint64_t)(IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION | IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN))
        return -EOPNOTSUPP;
    if (cmd->flags & ~(MLX5_IB_CREATE_CQ_FLAGS_UAR_PAGE_INDEX | MLX5_IB_CREATE_CQ_FLAGS_CQE_128B_PAD))
        return -EINVAL;
    if ((cmd->cqe_size != 64 && cmd->cqe_size != 128) || cmd->reserved0 || cmd->reserved1)
        return -EINVAL;
    if (cmd->cqe_comp_en || (cmd->flags & MLX5_IB_CREATE_CQ_FLAGS_CQE_128B_PAD))
        return -EOPNOTSUPP;
    return 0;
}

static int create_cq(struct uv_bundle *b)
{
    uint32_t cqe = (uint32_t)uv_num(b, UVERBS_ATTR_CREATE_CQ_CQE);
    struct mlx5_ib_create_cq cmd;
    struct mlx5_ib_create_cq_resp resp = { 0 };
    struct hca_cq_attr attr = { .cqe_bytes = 64 };
    struct hca_evsource comp, async;
    struct hca_cq *cq = NULL;
    int err;

    if (uv_in(b, UVERBS_ATTR_UHW_IN, &cmd, sizeof cmd))
        return -EFAULT;
    err = cq_check(b, &cmd, cqe);
    if (err)
        return err;
    attr.log_entries = uv_log2_up(cqe + 1);
    attr.cqe_bytes = (uint16_t)cmd.cqe_size;
    attr.ignore_overrun = (uv_num(b, UVERBS_ATTR_CREATE_CQ_FLAGS) & IB_UVERBS_CQ_FLAGS_IGNORE_OVERRUN) != 0;
    err = cq_events(b, &comp, &async);
    if (err)
        return err;
    err = uv_pin(cmd.buf_addr, (uint64_t)cmd.cqe_size << attr.log_entries, cmd.db_addr, &attr.ring, &attr.dbrec);
    if (!err)
        err = hca_cq_new(hca_current, &attr, &cq);
    if (err) {
        hca_buf_fini(&attr.ring);
        hca_buf_fini(&attr.dbrec);
        uv_evfile_put(comp.file);
        uv_evfile_put(async.file);
        return err;
    }
    cq->comp = comp;
    cq->async = async;
    resp.cqn = cq->cqn;
    err = uv_out_u32(b, UVERBS_ATTR_CREATE_CQ_RESP_CQE, cq->entries - 1);
    if (!err)
        err = uv_out(b, UVERBS_ATTR_UHW_OUT, &resp, sizeof resp);
    hca_log(HCA_INFO, "cq 0x%x: %u entries of %u bytes", cq->cqn, cq->entries, cq->cqe_bytes);
    return publish(b, UVERBS_ATTR_CREATE_CQ_HANDLE, UV_CQ, cq, err);
}

/* ---- queue pairs ---- */

static int qp_type(uint32_t verbs_type, enum hca_qp_type *out)
{
    switch (verbs_type) {
    case IB_UVERBS_QPT_RC:
        *out = HCA_RC;
        return 0;
    case IB_UVERBS_QPT_UC:
        *out = HCA_UC;
        return 0;
    case IB_UVERBS_QPT_UD:
        *out = HCA_UD;
        return 0;
    default:
        return -EOPNOTSUPP;
    }
}

static bool power_of_two(uint32_t value)
{
    return value && !(value & (value - 1));
}

static int qp_check(const struct mlx5_ib_create_qp *cmd, const struct ib_uverbs_qp_cap *cap)
{
    if (cmd->flags & ~(uint32_t)KNOWN_QP_FLAGS)
        return -EINVAL;
    if (cap->max_send_wr > FW_MAX_WQEBB || cap->max_recv_wr > FW_MAX_WQEBB || cap->max_send_sge > FW_MAX_SGE
        || cap->max_recv_sge > FW_MAX_SGE)
        return -EINVAL;
    if (cmd->sq_wqe_count > FW_MAX_WQEBB || (cmd->sq_wqe_count && !power_of_two(cmd->sq_wqe_count)))
        return -EINVAL;
    if (cmd->rq_wqe_count > FW_MAX_WQEBB || (cmd->rq_wqe_count && !power_of_two(cmd->rq_wqe_count)))
        return -EINVAL;
    if (cmd->rq_wqe_count && (cmd->rq_wqe_shift < 4 || cmd->rq_wqe_shift > 9))
        return -EINVAL;
    return 0;
}

/* One buffer holds both rings, receive queue first. */
static int qp_rings(const struct mlx5_ib_create_qp *cmd, struct hca_qp_new_attr *attr)
{
    uint64_t rq_bytes = cmd->rq_wqe_count ? (uint64_t)cmd->rq_wqe_count << cmd->rq_wqe_shift : 0;
    uint64_t sq_bytes = (uint64_t)cmd->sq_wqe_count * HCA_WQEBB;
    struct hca_buf all;
    int err = uv_pin(cmd->buf_addr, rq_bytes + sq_bytes, cmd->db_addr, &all, &attr->dbrec);

    if (err)
        return err;
    if (rq_bytes)
        err = hca_buf_init(&attr->rq, all.mem, 0, rq_bytes, 1);
    if (!err && sq_bytes)
        err = hca_buf_init(&attr->sq, all.mem, rq_bytes, sq_bytes, 1);
    if (all.mem)
        hca_buf_fini(&all);
    attr->sq_entries = cmd->sq_wqe_count;
    attr->rq_entries = cmd->rq_wqe_count;
    attr->rq_log_stride = (uint8_t)cmd->rq_wqe_shift;
    return err;
}

static void drop_rings(struct hca_qp_new_attr *attr)
{
    hca_buf_fini(&attr->sq);
    hca_buf_fini(&attr->rq);
    hca_buf_fini(&attr->dbrec);
}

static int qp_attributes(const struct uv_bundle *b, const struct mlx5_ib_create_qp *cmd, struct hca_qp_new_attr *attr)
{
    uint64_t flags = uv_num(b, UVERBS_ATTR_CREATE_QP_FLAGS);
    struct ib_uverbs_qp_cap cap;
    int err = qp_type((uint32_t)uv_num(b, UVERBS_ATTR_CREATE_QP_TYPE), &attr->type);

    if (err)
        return err;
    if (uv_in(b, UVERBS_ATTR_CREATE_QP_CAP, &cap, sizeof cap))
        return -EFAULT;
    if (flags & ~(uint64_t)(IB_UVERBS_QP_CREATE_SQ_SIG_ALL | IB_UVERBS_QP_CREATE_BLOCK_MULTICAST_LOOPBACK))
        return (flags & ~0x1fffull) ? -EINVAL : -EOPNOTSUPP;
    err = qp_check(cmd, &cap);
    if (err)
        return err;
    attr->pd = uv_obj(b, UVERBS_ATTR_CREATE_QP_PD_HANDLE);
    attr->scq = uv_obj(b, UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE);
    attr->rcq = uv_obj(b, UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE);
    attr->srq = uv_obj(b, UVERBS_ATTR_CREATE_QP_SRQ_HANDLE);
    if (!attr->pd || !attr->scq || !attr->rcq)
        return -EINVAL;
    attr->uar = hca_uar_find(hca_current, cmd->bfreg_index);
    if (cmd->sq_wqe_count && !attr->uar)
        return -EINVAL;
    attr->uidx = cmd->uidx;
    attr->sig_all = (flags & IB_UVERBS_QP_CREATE_SQ_SIG_ALL) != 0;
    attr->rq_signature = (cmd->flags & MLX5_QP_FLAG_SIGNATURE) != 0;
    attr->cap = (struct hca_qp_cap){ cap.max_send_wr, cap.max_recv_wr, cap.max_send_sge, cap.max_recv_sge, cap.max_inline_data };
    return 0;
}

static int create_qp(struct uv_bundle *b)
{
    struct mlx5_ib_create_qp cmd;
    struct mlx5_ib_create_qp_resp resp;
    struct hca_qp_new_attr attr;
    struct hca_evsource async;
    struct hca_qp *qp = NULL;
    struct ib_uverbs_qp_cap cap;
    int err;

    memset(&attr, 0, sizeof attr);
    memset(&resp, 0, sizeof resp);
    if (uv_in(b, UVERBS_ATTR_UHW_IN, &cmd, sizeof cmd))
        return -EFAULT;
    err = qp_attributes(b, &cmd, &attr);
    if (err)
        return err;
    source_init(b, &async, uv_num(b, UVERBS_ATTR_CREATE_QP_USER_HANDLE), UVERBS_ATTR_CREATE_QP_EVENT_FD, &err);
    if (err)
        return err;
    err = qp_rings(&cmd, &attr);
    if (!err)
        err = hca_qp_new(hca_current, &attr, &qp);
    if (err) {
        drop_rings(&attr);
        uv_evfile_put(async.file);
        return err;
    }
    qp->async = async;
    cap = (struct ib_uverbs_qp_cap){ qp->cap.max_send_wr, qp->cap.max_recv_wr, qp->cap.max_send_sge, qp->cap.max_recv_sge,
                                     qp->cap.max_inline };
    err = uv_out(b, UVERBS_ATTR_CREATE_QP_RESP_CAP, &cap, sizeof cap);
    if (!err)
        err = uv_out_u32(b, UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, qp->qpn);
    if (!err)
        err = uv_out(b, UVERBS_ATTR_UHW_OUT, &resp, sizeof resp);
    hca_log(HCA_INFO, "qp 0x%06x: type %d, send %u blocks, receive %u << %u, uar %u, cq 0x%x 0x%x", qp->qpn, qp->type,
            qp->sq_entries, qp->rq_entries, qp->rq_log_stride, qp->uar ? qp->uar->page_id : 0, qp->scq->cqn, qp->rcq->cqn);
    return publish(b, UVERBS_ATTR_CREATE_QP_HANDLE, UV_QP, qp, err);
}

/* ---- shared receive queues ---- */

static int srq_check(const struct uv_bundle *b, const struct mlx5_ib_create_srq *cmd, uint32_t max_wr, uint32_t max_sge)
{
    if (uv_num(b, UVERBS_ATTR_CREATE_SRQ_TYPE) != IB_UVERBS_SRQT_BASIC)
        return -EOPNOTSUPP;
    if (max_wr > FW_MAX_SRQ_WR || max_sge > FW_MAX_SRQ_SGE)
        return -EINVAL;
    if (cmd->reserved0 || cmd->reserved1 || (cmd->flags & ~(uint32_t)MLX5_SRQ_FLAG_SIGNATURE))
        return -EINVAL;
    return uv_obj(b, UVERBS_ATTR_CREATE_SRQ_PD_HANDLE) ? 0 : -EINVAL;
}

static int create_srq(struct uv_bundle *b)
{
    uint32_t max_wr = (uint32_t)uv_num(b, UVERBS_ATTR_CREATE_SRQ_MAX_WR);
    uint32_t max_sge = (uint32_t)uv_num(b, UVERBS_ATTR_CREATE_SRQ_MAX_SGE);
    struct mlx5_ib_create_srq cmd;
    struct mlx5_ib_create_srq_resp resp = { 0 };
    struct hca_srq_attr attr;
    struct hca_evsource async;
    struct hca_srq *srq = NULL;
    int err;

    memset(&attr, 0, sizeof attr);
    if (uv_in(b, UVERBS_ATTR_UHW_IN, &cmd, sizeof cmd))
        return -EFAULT;
    err = srq_check(b, &cmd, max_wr, max_sge);
    if (err)
        return err;
    attr.pd = uv_obj(b, UVERBS_ATTR_CREATE_SRQ_PD_HANDLE);
    attr.entries = 1u << uv_log2_up(max_wr + 1);
    attr.log_stride = uv_log2_up(16 + max_sge * 16 < 32 ? 32 : 16 + max_sge * 16);
    attr.max_sge = ((1u << attr.log_stride) - 16) / 16;
    attr.limit = (uint32_t)uv_num(b, UVERBS_ATTR_CREATE_SRQ_LIMIT);
    attr.uidx = cmd.uidx;
    source_init(b, &async, uv_num(b, UVERBS_ATTR_CREATE_SRQ_USER_HANDLE), UVERBS_ATTR_CREATE_SRQ_EVENT_FD, &err);
    if (err)
        return err;
    err = uv_pin(cmd.buf_addr, (uint64_t)attr.entries << attr.log_stride, cmd.db_addr, &attr.ring, &attr.dbrec);
    if (!err)
        err = hca_srq_new(hca_current, &attr, &srq);
    if (err) {
        hca_buf_fini(&attr.ring);
        hca_buf_fini(&attr.dbrec);
        uv_evfile_put(async.file);
        return err;
    }
    srq->async = async;
    resp.srqn = srq->srqn;
    err = uv_out_u32(b, UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR, srq->entries - 1);
    if (!err)
        err = uv_out_u32(b, UVERBS_ATTR_CREATE_SRQ_RESP_MAX_SGE, srq->max_sge);
    if (!err)
        err = uv_out(b, UVERBS_ATTR_UHW_OUT, &resp, sizeof resp);
    hca_log(HCA_INFO, "srq 0x%x: %u entries << %u", srq->srqn, srq->entries, srq->log_stride);
    return publish(b, UVERBS_ATTR_CREATE_SRQ_HANDLE, UV_SRQ, srq, err);
}

/* ---- destroy ---- */

static int destroy(struct uv_bundle *b, uint16_t id, enum uv_type type, struct uv_gone *gone)
{
    return uv_object_destroy(b->ctx, uv_handle(b, id), type, gone);
}

static int destroy_cq(struct uv_bundle *b)
{
    struct uv_gone gone;
    struct ib_uverbs_destroy_cq_resp resp = { 0 };
    int err = destroy(b, UVERBS_ATTR_DESTROY_CQ_HANDLE, UV_CQ, &gone);

    if (err)
        return err;
    resp.comp_events_reported = gone.completion_events;
    resp.async_events_reported = gone.async_events;
    return uv_out(b, UVERBS_ATTR_DESTROY_CQ_RESP, &resp, sizeof resp);
}

static int destroy_qp(struct uv_bundle *b)
{
    struct uv_gone gone;
    struct ib_uverbs_destroy_qp_resp resp = { 0 };
    int err = destroy(b, UVERBS_ATTR_DESTROY_QP_HANDLE, UV_QP, &gone);

    if (err)
        return err;
    resp.events_reported = gone.async_events;
    return uv_out(b, UVERBS_ATTR_DESTROY_QP_RESP, &resp, sizeof resp);
}

static int destroy_srq(struct uv_bundle *b)
{
    struct uv_gone gone;
    struct ib_uverbs_destroy_srq_resp resp = { 0 };
    int err = destroy(b, UVERBS_ATTR_DESTROY_SRQ_HANDLE, UV_SRQ, &gone);

    if (err)
        return err;
    resp.events_reported = gone.async_events;
    return uv_out(b, UVERBS_ATTR_DESTROY_SRQ_RESP, &resp, sizeof resp);
}

static int destroy_pd(struct uv_bundle *b)
{
    return destroy(b, UVERBS_ATTR_DESTROY_PD_HANDLE, UV_PD, NULL);
}

static int destroy_mr(struct uv_bundle *b)
{
    return destroy(b, UVERBS_ATTR_DESTROY_MR_HANDLE, UV_MR, NULL);
}

static int destroy_mw(struct uv_bundle *b)
{
    return destroy(b, UVERBS_ATTR_DESTROY_MW_HANDLE, UV_MW, NULL);
}

static int destroy_ah(struct uv_bundle *b)
{
    return destroy(b, UVERBS_ATTR_DESTROY_AH_HANDLE, UV_AH, NULL);
}

/* ---- regions ---- */

static int reg_dmabuf(struct uv_bundle *b)
{
    struct hca_mr_attr attr = {
        .pd = uv_obj(b, UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE),
        .addr = uv_num(b, UVERBS_ATTR_REG_DMABUF_MR_OFFSET),
        .len = uv_num(b, UVERBS_ATTR_REG_DMABUF_MR_LENGTH),
        .iova = uv_num(b, UVERBS_ATTR_REG_DMABUF_MR_IOVA),
        .access = (uint32_t)uv_num(b, UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS),
        .dmabuf_fd = (int)uv_num(b, UVERBS_ATTR_REG_DMABUF_MR_FD),
    };
    struct hca_key *mr;
    int err;

    if ((attr.addr & (HCA_UAR_BYTES - 1)) != (attr.iova & (HCA_UAR_BYTES - 1)))
        return -EINVAL;
    if (attr.dmabuf_fd < 0)
        return -EBADF;
    err = hca_mr_new(hca_current, &attr, &mr);
    if (err)
        return err;
    err = uv_out_u32(b, UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY, mr->key);
    if (!err)
        err = uv_out_u32(b, UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY, mr->key);
    return publish(b, UVERBS_ATTR_REG_DMABUF_MR_HANDLE, UV_MR, mr, err);
}

static int query_mr(struct uv_bundle *b)
{
    const struct hca_key *mr = uv_obj(b, UVERBS_ATTR_QUERY_MR_HANDLE);
    int err = uv_out_u32(b, UVERBS_ATTR_QUERY_MR_RESP_LKEY, mr->key);

    if (!err)
        err = uv_out_u32(b, UVERBS_ATTR_QUERY_MR_RESP_RKEY, mr->key);
    if (!err)
        err = uv_out_u64(b, UVERBS_ATTR_QUERY_MR_RESP_LENGTH, mr->len);
    return err ? err : uv_out_u64(b, UVERBS_ATTR_QUERY_MR_RESP_IOVA, mr->iova);
}

static int query_pd(struct uv_bundle *b)
{
    const struct hca_pd *pd = uv_obj(b, MLX5_IB_ATTR_QUERY_PD_HANDLE);

    return uv_out_u32(b, MLX5_IB_ATTR_QUERY_PD_RESP_PDN, pd->pdn);
}

static const struct uv_attr_spec create_cq_spec[] = {
    UV_ATTR_OBJ(UVERBS_ATTR_CREATE_CQ_HANDLE, UV_CQ, UV_NEW, UV_MANDATORY),
    UV_ATTR_IN(UVERBS_ATTR_CREATE_CQ_CQE, 4, 4, UV_MANDATORY),
    UV_ATTR_IN(UVERBS_ATTR_CREATE_CQ_USER_HANDLE, 8, 8, UV_MANDATORY),
    UV_ATTR_FILE(UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL, UV_READ, 0),
    UV_ATTR_IN(UVERBS_ATTR_CREATE_CQ_COMP_VECTOR, 4, 4, UV_MANDATORY),
    UV_ATTR_IN(UVERBS_ATTR_CREATE_CQ_FLAGS, 4, 8, 0),
    UV_ATTR_OUT(UVERBS_ATTR_CREATE_CQ_RESP_CQE, 4, UV_MANDATORY),
    UV_ATTR_FILE(UVERBS_ATTR_CREATE_CQ_EVENT_FD, UV_READ, 0),
    UV_ATTR_UHW,
};
static const struct uv_attr_spec create_qp_spec[] = {
    UV_ATTR_OBJ(UVERBS_ATTR_CREATE_QP_HANDLE, UV_QP, UV_NEW, UV_MANDATORY),
    UV_ATTR_OBJ(UVERBS_ATTR_CREATE_QP_XRCD_HANDLE, UV_XRCD, UV_READ, 0),
    UV_ATTR_OBJ(UVERBS_ATTR_CREATE_QP_PD_HANDLE, UV_PD, UV_READ, 0),
    UV_ATTR_OBJ(UVERBS_ATTR_CREATE_QP_SRQ_HANDLE, UV_SRQ, UV_READ, 0),
    UV_ATTR_OBJ(UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE, UV_CQ, UV_READ, 0),
    UV_ATTR_OBJ(UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE, UV_CQ, UV_READ, 0),
    UV_ATTR_IN(UVERBS_ATTR_CREATE_QP_USER_HANDLE, 8, 8, UV_MANDATORY),
    UV_ATTR_IN_T(UVERBS_ATTR_CREATE_QP_CAP, struct ib_uverbs_qp_cap, UV_MANDATORY),
    UV_ATTR_IN(UVERBS_ATTR_CREATE_QP_TYPE, 4, 8, UV_MANDATORY),
    UV_ATTR_IN(UVERBS_ATTR_CREATE_QP_FLAGS, 4, 8, 0),
    UV_ATTR_IN(UVERBS_ATTR_CREATE_QP_SOURCE_QPN, 4, 4, 0),
    UV_ATTR_FILE(UVERBS_ATTR_CREATE_QP_EVENT_FD, UV_READ, 0),
    UV_ATTR_OUT(UVERBS_ATTR_CREATE_QP_RESP_CAP, sizeof(struct ib_uverbs_qp_cap), UV_MANDATORY),
    UV_ATTR_OUT(UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, 4, UV_MANDATORY),
    UV_ATTR_UHW,
};
static const struct uv_attr_spec create_srq_spec[] = {
    UV_ATTR_OBJ(UVERBS_ATTR_CREATE_SRQ_HANDLE, UV_SRQ, UV_NEW, UV_MANDATORY),
    UV_ATTR_OBJ(UVERBS_ATTR_CREATE_SRQ_PD_HANDLE, UV_PD, UV_READ, UV_MANDATORY),
    UV_ATTR_OBJ(UVERBS_ATTR_CREATE_SRQ_XRCD_HANDLE, UV_XRCD, UV_READ, 0),
    UV_ATTR_OBJ(UVERBS_ATTR_CREATE_SRQ_CQ_HANDLE, UV_CQ, UV_READ, 0),
    UV_ATTR_IN(UVERBS_ATTR_CREATE_SRQ_USER_HANDLE, 8, 8, UV_MANDATORY),
    UV_ATTR_IN(UVERBS_ATTR_CREATE_SRQ_MAX_WR, 4, 4, UV_MANDATORY),
    UV_ATTR_IN(UVERBS_ATTR_CREATE_SRQ_MAX_SGE, 4, 4, UV_MANDATORY),
    UV_ATTR_IN(UVERBS_ATTR_CREATE_SRQ_LIMIT, 4, 4, UV_MANDATORY),
    UV_ATTR_IN(UVERBS_ATTR_CREATE_SRQ_MAX_NUM_TAGS, 4, 4, 0),
    UV_ATTR_IN(UVERBS_ATTR_CREATE_SRQ_TYPE, 4, 8, UV_MANDATORY),
    UV_ATTR_FILE(UVERBS_ATTR_CREATE_SRQ_EVENT_FD, UV_READ, 0),
    UV_ATTR_OUT(UVERBS_ATTR_CREATE_SRQ_RESP_MAX_WR, 4, UV_MANDATORY),
    UV_ATTR_OUT(UVERBS_ATTR_CREATE_SRQ_RESP_MAX_SGE, 4, UV_MANDATORY),
    UV_ATTR_OUT(UVERBS_ATTR_CREATE_SRQ_RESP_SRQ_NUM, 4, 0),
    UV_ATTR_UHW,
};
static const struct uv_attr_spec destroy_cq_spec[] = {
    UV_ATTR_OBJ(UVERBS_ATTR_DESTROY_CQ_HANDLE, UV_CQ, UV_DESTROY, UV_MANDATORY),
    UV_ATTR_OUT(UVERBS_ATTR_DESTROY_CQ_RESP, sizeof(struct ib_uverbs_destroy_cq_resp), UV_MANDATORY),
};
static const struct uv_attr_spec destroy_qp_spec[] = {
    UV_ATTR_OBJ(UVERBS_ATTR_DESTROY_QP_HANDLE, UV_QP, UV_DESTROY, UV_MANDATORY),
    UV_ATTR_OUT(UVERBS_ATTR_DESTROY_QP_RESP, sizeof(struct ib_uverbs_destroy_qp_resp), UV_MANDATORY),
};
static const struct uv_attr_spec destroy_srq_spec[] = {
    UV_ATTR_OBJ(UVERBS_ATTR_DESTROY_SRQ_HANDLE, UV_SRQ, UV_DESTROY, UV_MANDATORY),
    UV_ATTR_OUT(UVERBS_ATTR_DESTROY_SRQ_RESP, sizeof(struct ib_uverbs_destroy_srq_resp), UV_MANDATORY),
};
static const struct uv_attr_spec destroy_pd_spec[] = {
    UV_ATTR_OBJ(UVERBS_ATTR_DESTROY_PD_HANDLE, UV_PD, UV_DESTROY, UV_MANDATORY),
};
static const struct uv_attr_spec destroy_mr_spec[] = {
    UV_ATTR_OBJ(UVERBS_ATTR_DESTROY_MR_HANDLE, UV_MR, UV_DESTROY, UV_MANDATORY),
};
static const struct uv_attr_spec destroy_mw_spec[] = {
    UV_ATTR_OBJ(UVERBS_ATTR_DESTROY_MW_HANDLE, UV_MW, UV_DESTROY, UV_MANDATORY),
};
static const struct uv_attr_spec destroy_ah_spec[] = {
    UV_ATTR_OBJ(UVERBS_ATTR_DESTROY_AH_HANDLE, UV_AH, UV_DESTROY, UV_MANDATORY),
};
static const struct uv_attr_spec dmabuf_spec[] = {
    UV_ATTR_OBJ(UVERBS_ATTR_REG_DMABUF_MR_HANDLE, UV_MR, UV_NEW, UV_MANDATORY),
    UV_ATTR_OBJ(UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE, UV_PD, UV_READ, UV_MANDATORY),
    UV_ATTR_IN(UVERBS_ATTR_REG_DMABUF_MR_OFFSET, 8, 8, UV_MANDATORY),
    UV_ATTR_IN(UVERBS_ATTR_REG_DMABUF_MR_LENGTH, 8, 8, UV_MANDATORY),
    UV_ATTR_IN(UVERBS_ATTR_REG_DMABUF_MR_IOVA, 8, 8, UV_MANDATORY),
    UV_ATTR_IN(UVERBS_ATTR_REG_DMABUF_MR_FD, 4, 8, UV_MANDATORY),
    UV_ATTR_IN(UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS, 4, 8, UV_MANDATORY),
    UV_ATTR_OUT(UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY, 4, UV_MANDATORY),
    UV_ATTR_OUT(UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY, 4, UV_MANDATORY),
};
static const struct uv_attr_spec query_mr_spec[] = {
    UV_ATTR_OBJ(UVERBS_ATTR_QUERY_MR_HANDLE, UV_MR, UV_READ, UV_MANDATORY),
    UV_ATTR_OUT(UVERBS_ATTR_QUERY_MR_RESP_LKEY, 4, UV_MANDATORY),
    UV_ATTR_OUT(UVERBS_ATTR_QUERY_MR_RESP_RKEY, 4, UV_MANDATORY),
    UV_ATTR_OUT(UVERBS_ATTR_QUERY_MR_RESP_LENGTH, 8, UV_MANDATORY),
    UV_ATTR_OUT(UVERBS_ATTR_QUERY_MR_RESP_IOVA, 8, 0),
};
static const struct uv_attr_spec query_pd_spec[] = {
    UV_ATTR_OBJ(MLX5_IB_ATTR_QUERY_PD_HANDLE, UV_PD, UV_READ, UV_MANDATORY),
    UV_ATTR_OUT(MLX5_IB_ATTR_QUERY_PD_RESP_PDN, 4, UV_MANDATORY),
};

const struct uv_method uv_methods_verbs[] = {
    UV_METHOD(UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE, create_cq_spec, create_cq),
    UV_METHOD(UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_DESTROY, destroy_cq_spec, destroy_cq),
    UV_METHOD(UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE, create_qp_spec, create_qp),
    UV_METHOD(UVERBS_OBJECT_QP, UVERBS_METHOD_QP_DESTROY, destroy_qp_spec, destroy_qp),
    UV_METHOD(UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_CREATE, create_srq_spec, create_srq),
    UV_METHOD(UVERBS_OBJECT_SRQ, UVERBS_METHOD_SRQ_DESTROY, destroy_srq_spec, destroy_srq),
    UV_METHOD(UVERBS_OBJECT_PD, UVERBS_METHOD_PD_DESTROY, destroy_pd_spec, destroy_pd),
    UV_METHOD(UVERBS_OBJECT_PD, MLX5_IB_METHOD_PD_QUERY, query_pd_spec, query_pd),
    UV_METHOD(UVERBS_OBJECT_MR, UVERBS_METHOD_MR_DESTROY, destroy_mr_spec, destroy_mr),
    UV_METHOD(UVERBS_OBJECT_MR, UVERBS_METHOD_REG_DMABUF_MR, dmabuf_spec, reg_dmabuf),
    UV_METHOD(UVERBS_OBJECT_MR, UVERBS_METHOD_QUERY_MR, query_mr_spec, query_mr),
    UV_METHOD(UVERBS_OBJECT_MW, UVERBS_METHOD_MW_DESTROY, destroy_mw_spec, destroy_mw),
    UV_METHOD(UVERBS_OBJECT_AH, UVERBS_METHOD_AH_DESTROY, destroy_ah_spec, destroy_ah),
};
const unsigned uv_nmethods_verbs = sizeof uv_methods_verbs / sizeof *uv_methods_verbs;
