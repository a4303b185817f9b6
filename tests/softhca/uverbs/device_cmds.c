/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands about the device as a whole: context, ports, GIDs, event files. */
#include <string.h>

#include "fw/fw.h"
#include "uverbs/uverbs.h"

enum { ALL_UCTX_FLAGS = MLX5_IB_ALLOC_UCTX_DEVX };

static void fill_ucontext(struct mlx5_ib_alloc_ucontext_resp *resp)
{
    memset(resp, 0, sizeof *resp);
    resp->qp_tab_size = HCA_MAX_QP;
    resp->bf_reg_size = 512;
    resp->tot_bfregs = 0;        /* all doorbell pages are dynamic */
    resp->cache_line_size = 64;
    resp->max_sq_desc_sz = 1024;
    resp->max_rq_desc_sz = 512;
    resp->max_send_wqebb = FW_MAX_WQEBB;
    resp->max_recv_wr = FW_MAX_WQEBB;
    resp->max_srq_recv_wr = FW_MAX_SRQ_WR;
    resp->num_ports = 1;
    resp->response_length = sizeof *resp;
    resp->cqe_version = 1;
    resp->cmds_supp_uhw = MLX5_USER_CMDS_SUPP_UHW_QUERY_DEVICE | MLX5_USER_CMDS_SUPP_UHW_CREATE_AH;
    resp->eth_min_inline = MLX5_USER_INLINE_MODE_NONE;
    resp->clock_info_versions = 1 << MLX5_IB_CLOCK_INFO_V1;
    resp->comp_mask = MLX5_IB_ALLOC_UCONTEXT_RESP_MASK_SQD2RTS;
    resp->log_uar_size = 12;
    resp->num_uars_per_page = 1;
}

static int get_context(struct uv_bundle *b)
{
    struct mlx5_ib_alloc_ucontext_req_v2 req;
    struct mlx5_ib_alloc_ucontext_resp resp;
    int err;

    if (b->ctx->has_ucontext)
        return -EINVAL;
    if (uv_in(b, UVERBS_ATTR_UHW_IN, &req, sizeof req))
        return -EFAULT;
    if (uv_len(b, UVERBS_ATTR_UHW_IN) < sizeof(struct mlx5_ib_alloc_ucontext_req))
        return -EINVAL;
    if ((req.flags & ~(uint32_t)ALL_UCTX_FLAGS) || req.comp_mask || req.reserved0 || req.reserved1 || req.reserved2)
        return -EOPNOTSUPP;
    if (req.total_num_bfregs == 0 || req.num_low_latency_bfregs > req.total_num_bfregs - 1)
        return -EINVAL;
    fill_ucontext(&resp);
    err = uv_out_u32(b, UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS, FW_COMP_VECTORS);
    if (!err)
        err = uv_out_u64(b, UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT, IB_UVERBS_CORE_SUPPORT_OPTIONAL_MR_ACCESS);
    if (!err)
        err = uv_out(b, UVERBS_ATTR_UHW_OUT, &resp, sizeof resp);
    if (err)
        return err;
    b->ctx->devx = (req.flags & MLX5_IB_ALLOC_UCTX_DEVX) != 0;
    b->ctx->has_ucontext = true;
    return 0;
}

static int query_context(struct uv_bundle *b)
{
    struct mlx5_ib_alloc_ucontext_resp resp;
    int err;

    if (!b->ctx->has_ucontext)
        return -EINVAL;
    fill_ucontext(&resp);
    err = uv_out_u32(b, UVERBS_ATTR_QUERY_CONTEXT_NUM_COMP_VECTORS, FW_COMP_VECTORS);
    if (!err)
        err = uv_out_u64(b, UVERBS_ATTR_QUERY_CONTEXT_CORE_SUPPORT, IB_UVERBS_CORE_SUPPORT_OPTIONAL_MR_ACCESS);
    return err ? err : uv_out(b, MLX5_IB_ATTR_QUERY_CONTEXT_RESP_UCTX, &resp, sizeof resp);
}

static int query_port(struct uv_bundle *b)
{
    struct ib_uverbs_query_port_resp_ex resp;

    if (uv_num(b, UVERBS_ATTR_QUERY_PORT_PORT_NUM) != HCA_PORT)
        return -EINVAL;
    memset(&resp, 0, sizeof resp);
    fw_query_port(hca_current, &resp.legacy_resp);
    return uv_out(b, UVERBS_ATTR_QUERY_PORT_RESP, &resp, sizeof resp);
}

static void gid_entry(struct ib_uverbs_gid_entry *entry)
{
    memset(entry, 0, sizeof *entry);
    memcpy(entry->gid, hca_current->id.gid, sizeof hca_current->id.gid);
    entry->port_num = HCA_PORT;
    entry->gid_type = hca_config.eth ? IB_UVERBS_GID_TYPE_ROCE_V2 : IB_UVERBS_GID_TYPE_IB;
    entry->netdev_ifindex = hca_config.eth ? 1 : 0;
}

static int query_gid(struct uv_bundle *b)
{
    struct ib_uverbs_gid_entry entry;
    uint32_t index = (uint32_t)uv_num(b, UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX);

    if (uv_num(b, UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS))
        return -EINVAL;
    if (uv_num(b, UVERBS_ATTR_QUERY_GID_ENTRY_PORT) != HCA_PORT || index >= HCA_GID_TABLE)
        return -EINVAL;
    if (index || hca_current->no_gids)
        return -ENODATA;
    gid_entry(&entry);
    return uv_out(b, UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY, &entry, sizeof entry);
}

static int query_gid_table(struct uv_bundle *b)
{
    struct ib_uverbs_gid_entry entry;
    uint64_t size = uv_num(b, UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE);
    int err;

    if (uv_num(b, UVERBS_ATTR_QUERY_GID_TABLE_FLAGS) || !size)
        return -EINVAL;
    if (uv_len(b, UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES) < size)
        return -EINVAL;
    if (hca_current->no_gids)
        return uv_out_u64(b, UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES, 0);
    gid_entry(&entry);
    err = uv_out(b, UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES, &entry, size < sizeof entry ? size : sizeof entry);
    return err ? err : uv_out_u64(b, UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES, 1);
}

static int alloc_async(struct uv_bundle *b)
{
    int fd = uv_evfile_new(b->ctx, UV_EV_ASYNC, false);

    return fd < 0 ? fd : uv_out_fd(b, UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE, fd);
}

static const struct uv_attr_spec invoke_write_spec[] = {
    UV_ATTR_IN(UVERBS_ATTR_WRITE_CMD, 4, 8, UV_MANDATORY),
    UV_ATTR_IN(UVERBS_ATTR_CORE_IN, 4, 0, 0),
    UV_ATTR_OUT(UVERBS_ATTR_CORE_OUT, 0, 0),
    UV_ATTR_UHW,
};
static const struct uv_attr_spec get_context_spec[] = {
    UV_ATTR_OUT(UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS, 4, 0),
    UV_ATTR_OUT(UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT, 8, 0),
    UV_ATTR_UHW,
};
static const struct uv_attr_spec query_context_spec[] = {
    UV_ATTR_OUT(UVERBS_ATTR_QUERY_CONTEXT_NUM_COMP_VECTORS, 4, 0),
    UV_ATTR_OUT(UVERBS_ATTR_QUERY_CONTEXT_CORE_SUPPORT, 8, 0),
    UV_ATTR_OUT(MLX5_IB_ATTR_QUERY_CONTEXT_RESP_UCTX, 0, 0),
};
static const struct uv_attr_spec query_port_spec[] = {
    UV_ATTR_IN(UVERBS_ATTR_QUERY_PORT_PORT_NUM, 1, 8, UV_MANDATORY),
    UV_ATTR_OUT(UVERBS_ATTR_QUERY_PORT_RESP, 8, UV_MANDATORY),
};
static const struct uv_attr_spec query_gid_spec[] = {
    UV_ATTR_IN(UVERBS_ATTR_QUERY_GID_ENTRY_PORT, 4, 8, UV_MANDATORY),
    UV_ATTR_IN(UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX, 4, 8, UV_MANDATORY),
    UV_ATTR_IN(UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS, 4, 8, UV_MANDATORY),
    UV_ATTR_OUT(UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY, 28, UV_MANDATORY),
};
static const struct uv_attr_spec query_gid_table_spec[] = {
    UV_ATTR_IN(UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE, 8, 8, UV_MANDATORY),
    UV_ATTR_IN(UVERBS_ATTR_QUERY_GID_TABLE_FLAGS, 4, 8, 0),
    UV_ATTR_OUT(UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES, 0, UV_MANDATORY),
    UV_ATTR_OUT(UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES, 8, UV_MANDATORY),
};
static const struct uv_attr_spec async_spec[] = {
    UV_ATTR_FILE(UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE, UV_NEW, UV_MANDATORY),
};

const struct uv_method uv_methods_device[] = {
    UV_METHOD(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE, invoke_write_spec, uv_invoke_write),
    UV_METHOD(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_GET_CONTEXT, get_context_spec, get_context),
    UV_METHOD(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_CONTEXT, query_context_spec, query_context),
    UV_METHOD(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT, query_port_spec, query_port),
    UV_METHOD(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_ENTRY, query_gid_spec, query_gid),
    UV_METHOD(UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_GID_TABLE, query_gid_table_spec, query_gid_table),
    UV_METHOD(UVERBS_OBJECT_ASYNC_EVENT, UVERBS_METHOD_ASYNC_EVENT_ALLOC, async_spec, alloc_async),
};
const unsigned uv_nmethods_device = sizeof uv_methods_device / sizeof *uv_methods_device;
