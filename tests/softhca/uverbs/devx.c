/* SPDX-License-Identifier: BSD-3-Clause */
/* The DEVX methods: doorbell pages, user memory, firmware commands and their objects, event channels. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "fw/fw.h"
#include "uverbs/events.h"
#include "uverbs/file.h"
#include "uverbs/uverbs.h"

enum { MAX_COMMAND_BYTES = 1 << 16, MAX_SUBSCRIBED_TYPES = 64 };

/* ---- doorbell pages ---- */

static int uar_map(struct uv_context *ctx, bool dedicated, struct uv_uar **out, uint64_t *offset_out)
{
    uint64_t offset = (uint64_t)ctx->next_uar_page * HCA_UAR_BYTES;
    struct uv_uar *uar = calloc(1, sizeof *uar);
    int err;

    if (!uar)
        return -ENOMEM;
    uar->map = mmap(NULL, HCA_UAR_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, ctx->memfd, (off_t)offset);
    if (uar->map == MAP_FAILED) {
        free(uar);
        return -ENOMEM;
    }
    err = hca_uar_new(hca_current, uar->map, dedicated, &uar->uar);
    if (err) {
        munmap(uar->map, HCA_UAR_BYTES);
        free(uar);
        return err;
    }
    ctx->next_uar_page++;
    uar->memfd = ctx->memfd;
    uar->offset = offset;
    *out = uar;
    *offset_out = offset;
    return 0;
}

static int uar_alloc(struct uv_bundle *b)
{
    uint64_t type = uv_num(b, MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE), offset;
    struct uv_uar *uar;
    uint32_t handle;
    int err;

    if (type > MLX5_IB_UAPI_UAR_ALLOC_TYPE_NC)
        return -EOPNOTSUPP;
    err = uar_map(b->ctx, type == MLX5_IB_UAPI_UAR_ALLOC_TYPE_BF, &uar, &offset);
    if (err)
        return err;
    err = uv_object_add(b->ctx, UV_UAR, uar, &handle);
    if (err) {
        hca_uar_free(hca_current, uar->uar);
        munmap(uar->map, HCA_UAR_BYTES);
        free(uar);
        return err;
    }
    err = uv_out_u64(b, MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET, offset);
    if (!err)
        err = uv_out_u32(b, MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH, HCA_UAR_BYTES);
    if (!err)
        err = uv_out_u32(b, MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID, uar->uar->page_id);
    if (!err)
        err = uv_out_handle(b, MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE, handle);
    if (err)
        uv_object_destroy(b->ctx, handle, UV_UAR, NULL);
    return err;
}

static int uar_destroy(struct uv_bundle *b)
{
    return uv_object_destroy(b->ctx, uv_handle(b, MLX5_IB_ATTR_UAR_OBJ_DESTROY_HANDLE), UV_UAR, NULL);
}

/* ---- user memory ---- */

static int umem_reg(struct uv_bundle *b)
{
    struct hca_mr_attr attr = {
        .addr = uv_num(b, MLX5_IB_ATTR_DEVX_UMEM_REG_ADDR),
        .len = uv_num(b, MLX5_IB_ATTR_DEVX_UMEM_REG_LEN),
        .access = (uint32_t)uv_num(b, MLX5_IB_ATTR_DEVX_UMEM_REG_ACCESS),
        .dmabuf_fd = -1,
    };
    struct hca_umem *umem;
    uint32_t handle;
    int err;

    if (!b->ctx->devx)
        return -EINVAL;
    if (attr.access & ~(uint32_t)(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ
                                  | IBV_ACCESS_RELAXED_ORDERING))
        return -EINVAL;
    if ((attr.access & IBV_ACCESS_REMOTE_WRITE) && !(attr.access & IBV_ACCESS_LOCAL_WRITE))
        return -EINVAL;
    if (uv_has(b, MLX5_IB_ATTR_DEVX_UMEM_REG_PGSZ_BITMAP)
        && !(uv_num(b, MLX5_IB_ATTR_DEVX_UMEM_REG_PGSZ_BITMAP) & ~(uint64_t)(HCA_UAR_BYTES - 1)))
        return -EINVAL;
    if (uv_has(b, MLX5_IB_ATTR_DEVX_UMEM_REG_DMABUF_FD))
        attr.dmabuf_fd = uv_fd(b, MLX5_IB_ATTR_DEVX_UMEM_REG_DMABUF_FD);
    if (!attr.len)
        return -EINVAL;
    err = hca_umem_new(hca_current, &attr, &umem);
    if (err)
        return err;
    err = uv_object_add(b->ctx, UV_UMEM, umem, &handle);
    if (err) {
        hca_umem_free(hca_current, umem);
        return err;
    }
    err = uv_out_u32(b, MLX5_IB_ATTR_DEVX_UMEM_REG_OUT_ID, umem->id);
    if (!err)
        err = uv_out_handle(b, MLX5_IB_ATTR_DEVX_UMEM_REG_HANDLE, handle);
    if (err)
        uv_object_destroy(b->ctx, handle, UV_UMEM, NULL);
    return err;
}

static int umem_dereg(struct uv_bundle *b)
{
    return uv_object_destroy(b->ctx, uv_handle(b, MLX5_IB_ATTR_DEVX_UMEM_DEREG_HANDLE), UV_UMEM, NULL);
}

/* ---- firmware commands ---- */

static int cmd_begin(struct uv_bundle *b, uint16_t in_id, uint16_t out_id, struct fw_cmd *cmd)
{
    uint8_t *in;
    size_t in_len = uv_len(b, in_id), out_len = uv_len(b, out_id);

    if (!b->ctx->devx)
        return -EINVAL;
    in = calloc(1, in_len);
    cmd->out = calloc(1, out_len);
    cmd->in = in;
    cmd->in_len = in_len;
    cmd->out_len = out_len;
    if (in && cmd->out && !uv_in(b, in_id, in, in_len))
        return 0;
    free(in);
    free(cmd->out);
    return in && cmd->out ? -EFAULT : -ENOMEM;
}

/* The output goes back also when the firmware refused: callers print the syndrome. */
static int cmd_end(struct uv_bundle *b, uint16_t out_id, struct fw_cmd *cmd, int err)
{
    int copy_err = 0;

    if (!err || err == -EREMOTEIO)
        copy_err = uv_out(b, out_id, cmd->out, cmd->out_len);
    free((void *)(uintptr_t)cmd->in);
    free(cmd->out);
    return copy_err ? copy_err : err;
}

static int general_cmd(struct uv_bundle *b)
{
    struct fw_cmd cmd;
    int err = cmd_begin(b, MLX5_IB_ATTR_DEVX_OTHER_CMD_IN, MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT, &cmd);

    return err ? err : cmd_end(b, MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT, &cmd, fw_general(&cmd));
}

static int obj_create(struct uv_bundle *b)
{
    struct fw_object *obj = NULL;
    struct fw_cmd cmd;
    uint32_t handle;
    int err = cmd_begin(b, MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN, MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT, &cmd);

    if (err)
        return err;
    err = fw_object_create(&cmd, &obj);
    if (!err && uv_object_add(b->ctx, UV_DEVX_OBJ, obj, &handle)) {
        fw_object_destroy(obj);
        err = -ENOMEM;
    } else if (!err) {
        err = uv_out_handle(b, MLX5_IB_ATTR_DEVX_OBJ_CREATE_HANDLE, handle);
        if (err)
            uv_object_destroy(b->ctx, handle, UV_DEVX_OBJ, NULL);
    }
    return cmd_end(b, MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT, &cmd, err);
}

/* Handle of a DEVX object, or of a verbs queue of the same file. */
static int find_target(struct uv_bundle *b, uint16_t id, struct fw_object **obj, struct hca_qp **qp, struct hca_cq **cq)
{
    uint32_t handle = uv_handle(b, id);
    int err;

    *qp = NULL;
    *cq = NULL;
    *obj = uv_object_get(b->ctx, handle, UV_DEVX_OBJ, &err);
    if (!err || err == -ENOENT)
        return err;
    *qp = uv_object_get(b->ctx, handle, UV_QP, &err);
    if (err)
        *cq = uv_object_get(b->ctx, handle, UV_CQ, &err);
    return err;
}

static int obj_modify(struct uv_bundle *b)
{
    struct fw_object *obj;
    struct hca_qp *qp;
    struct hca_cq *cq;
    struct fw_cmd cmd;
    int err = find_target(b, MLX5_IB_ATTR_DEVX_OBJ_MODIFY_HANDLE, &obj, &qp, &cq);

    if (!err)
        err = cmd_begin(b, MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_IN, MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_OUT, &cmd);
    if (err)
        return err;
    return cmd_end(b, MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_OUT, &cmd, fw_object_modify(&cmd, obj, qp, cq));
}

static int obj_query(struct uv_bundle *b)
{
    struct fw_object *obj;
    struct hca_qp *qp;
    struct hca_cq *cq;
    struct fw_cmd cmd;
    int err = find_target(b, MLX5_IB_ATTR_DEVX_OBJ_QUERY_HANDLE, &obj, &qp, &cq);

    if (!err)
        err = cmd_begin(b, MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_IN, MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_OUT, &cmd);
    if (err)
        return err;
    return cmd_end(b, MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_OUT, &cmd, fw_object_query(&cmd, obj, qp, cq));
}

/* The answer arrives as a record on a command file; here it is there at once. */
static int obj_query_async(struct uv_bundle *b)
{
    uint64_t wr_id = uv_num(b, MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_WR_ID);
    size_t out_len = (size_t)uv_num(b, MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_OUT_LEN);
    size_t in_len = uv_len(b, MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_CMD_IN);
    struct fw_object *obj;
    struct hca_qp *qp;
    struct hca_cq *cq;
    uint8_t in[MAX_COMMAND_BYTES / 64] = { 0 }, *record;
    struct fw_cmd cmd = { .in = in, .in_len = in_len, .out_len = out_len };
    struct hca_evfile *file;
    int err = find_target(b, MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_HANDLE, &obj, &qp, &cq);

    if (err)
        return err;
    if (in_len > sizeof in || out_len < OUT_HEADER_BYTES || out_len > MAX_COMMAND_BYTES)
        return -EINVAL;
    if (uv_in(b, MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_CMD_IN, in, in_len))
        return -EFAULT;
    file = uv_evfile_get(uv_fd(b, MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_FD), UV_EV_DEVX_CMD, &err);
    if (err)
        return err;
    record = calloc(1, sizeof wr_id + out_len);
    if (record) {
        memcpy(record, &wr_id, sizeof wr_id);
        cmd.out = record + sizeof wr_id;
        err = fw_object_query(&cmd, obj, qp, cq);
        if (!err || err == -EREMOTEIO)
            err = uv_evfile_send(file, record, sizeof wr_id + out_len) ? 0 : -EAGAIN;
        free(record);
    } else {
        err = -ENOMEM;
    }
    uv_evfile_put(file);
    return err;
}

static int obj_destroy(struct uv_bundle *b)
{
    return uv_object_destroy(b->ctx, uv_handle(b, MLX5_IB_ATTR_DEVX_OBJ_DESTROY_HANDLE), UV_DEVX_OBJ, NULL);
}

static int query_eqn(struct uv_bundle *b)
{
    if (uv_num(b, MLX5_IB_ATTR_DEVX_QUERY_EQN_USER_VEC) >= FW_COMP_VECTORS)
        return -ENOENT;
    return uv_out_u32(b, MLX5_IB_ATTR_DEVX_QUERY_EQN_DEV_EQN, 1);
}

/* ---- events ---- */

static int event_fd_alloc(struct uv_bundle *b)
{
    uint64_t flags = uv_num(b, MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_FLAGS);
    int fd;

    if (flags & ~(uint64_t)MLX5_IB_UAPI_DEVX_CR_EV_CH_FLAGS_OMIT_DATA)
        return -EINVAL;
    fd = uv_evfile_new(b->ctx, UV_EV_DEVX, flags != 0);
    return fd < 0 ? fd : uv_out_fd(b, MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_HANDLE, fd);
}

static int cmd_fd_alloc(struct uv_bundle *b)
{
    int fd = uv_evfile_new(b->ctx, UV_EV_DEVX_CMD, false);

    return fd < 0 ? fd : uv_out_fd(b, MLX5_IB_ATTR_DEVX_ASYNC_CMD_FD_ALLOC_HANDLE, fd);
}

static int subscribe(struct uv_bundle *b)
{
    uint16_t types[MAX_SUBSCRIBED_TYPES];
    size_t bytes = uv_len(b, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_TYPE_NUM_LIST);
    bool redirected = uv_has(b, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_NUM);
    int redirect = redirected ? (int)uv_num(b, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_NUM) : -1;
    struct fw_object *obj = NULL;
    struct hca_evfile *file;
    struct hca_qp *qp = NULL;
    struct hca_cq *cq = NULL;
    int err = 0;

    if (!b->ctx->devx || !bytes || bytes % 2 || bytes > sizeof types)
        return -EINVAL;
    if (uv_in(b, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_TYPE_NUM_LIST, types, bytes))
        return -EFAULT;
    if (uv_has(b, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_OBJ_HANDLE))
        err = find_target(b, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_OBJ_HANDLE, &obj, &qp, &cq);
    if (err)
        return err;
    if (obj && obj->kind == FW_QP)
        qp = obj->ptr;
    if (obj && obj->kind == FW_CQ)
        cq = obj->ptr;
    file = uv_evfile_get(uv_fd(b, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_HANDLE), UV_EV_DEVX, &err);
    if (err)
        return err;
    err = uv_devx_subscribe(file, uv_num(b, MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_COOKIE), redirect, types, (unsigned)(bytes / 2), cq,
                            qp);
    uv_evfile_put(file);
    return err;
}

#define CMD_ATTRS(in_id, out_id) \
    UV_ATTR_IN(in_id, CMD_HEADER_BYTES, 0, UV_MANDATORY), UV_ATTR_OUT(out_id, OUT_HEADER_BYTES, UV_MANDATORY)

static const struct uv_attr_spec uar_alloc_spec[] = {
    UV_ATTR_OBJ(MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE, UV_UAR, UV_NEW, UV_MANDATORY),
    UV_ATTR_IN(MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE, 4, 8, UV_MANDATORY),
    UV_ATTR_OUT(MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET, 8, UV_MANDATORY),
    UV_ATTR_OUT(MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH, 4, UV_MANDATORY),
    UV_ATTR_OUT(MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID, 4, UV_MANDATORY),
};
static const struct uv_attr_spec uar_destroy_spec[] = {
    UV_ATTR_OBJ(MLX5_IB_ATTR_UAR_OBJ_DESTROY_HANDLE, UV_UAR, UV_DESTROY, UV_MANDATORY),
};
static const struct uv_attr_spec umem_reg_spec[] = {
    UV_ATTR_OBJ(MLX5_IB_ATTR_DEVX_UMEM_REG_HANDLE, UV_UMEM, UV_NEW, UV_MANDATORY),
    UV_ATTR_IN(MLX5_IB_ATTR_DEVX_UMEM_REG_ADDR, 8, 8, UV_MANDATORY),
    UV_ATTR_IN(MLX5_IB_ATTR_DEVX_UMEM_REG_LEN, 8, 8, UV_MANDATORY),
    UV_ATTR_IN(MLX5_IB_ATTR_DEVX_UMEM_REG_ACCESS, 4, 8, 0),
    UV_ATTR_OUT(MLX5_IB_ATTR_DEVX_UMEM_REG_OUT_ID, 4, UV_MANDATORY),
    UV_ATTR_IN(MLX5_IB_ATTR_DEVX_UMEM_REG_PGSZ_BITMAP, 8, 8, 0),
    UV_ATTR_FILE(MLX5_IB_ATTR_DEVX_UMEM_REG_DMABUF_FD, UV_READ, 0),
};
static const struct uv_attr_spec umem_dereg_spec[] = {
    UV_ATTR_OBJ(MLX5_IB_ATTR_DEVX_UMEM_DEREG_HANDLE, UV_UMEM, UV_DESTROY, UV_MANDATORY),
};
static const struct uv_attr_spec general_spec[] = {
    CMD_ATTRS(MLX5_IB_ATTR_DEVX_OTHER_CMD_IN, MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT),
};
static const struct uv_attr_spec create_spec[] = {
    UV_ATTR_OBJ(MLX5_IB_ATTR_DEVX_OBJ_CREATE_HANDLE, UV_DEVX_OBJ, UV_NEW, UV_MANDATORY),
    CMD_ATTRS(MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN, MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT),
};
/* UV_DESTROY: the handle may be of several types, so the handler looks it up. */
static const struct uv_attr_spec modify_spec[] = {
    UV_ATTR_OBJ(MLX5_IB_ATTR_DEVX_OBJ_MODIFY_HANDLE, UV_NONE, UV_DESTROY, UV_MANDATORY),
    CMD_ATTRS(MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_IN, MLX5_IB_ATTR_DEVX_OBJ_MODIFY_CMD_OUT),
};
static const struct uv_attr_spec query_spec[] = {
    UV_ATTR_OBJ(MLX5_IB_ATTR_DEVX_OBJ_QUERY_HANDLE, UV_NONE, UV_DESTROY, UV_MANDATORY),
    CMD_ATTRS(MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_IN, MLX5_IB_ATTR_DEVX_OBJ_QUERY_CMD_OUT),
};
static const struct uv_attr_spec query_async_spec[] = {
    UV_ATTR_OBJ(MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_HANDLE, UV_NONE, UV_DESTROY, UV_MANDATORY),
    UV_ATTR_IN(MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_CMD_IN, CMD_HEADER_BYTES, 0, UV_MANDATORY),
    UV_ATTR_FILE(MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_FD, UV_READ, UV_MANDATORY),
    UV_ATTR_IN(MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_WR_ID, 8, 8, UV_MANDATORY),
    UV_ATTR_IN(MLX5_IB_ATTR_DEVX_OBJ_QUERY_ASYNC_OUT_LEN, 2, 8, UV_MANDATORY),
};
static const struct uv_attr_spec destroy_spec[] = {
    UV_ATTR_OBJ(MLX5_IB_ATTR_DEVX_OBJ_DESTROY_HANDLE, UV_DEVX_OBJ, UV_DESTROY, UV_MANDATORY),
};
static const struct uv_attr_spec eqn_spec[] = {
    UV_ATTR_IN(MLX5_IB_ATTR_DEVX_QUERY_EQN_USER_VEC, 4, 4, UV_MANDATORY),
    UV_ATTR_OUT(MLX5_IB_ATTR_DEVX_QUERY_EQN_DEV_EQN, 4, UV_MANDATORY),
};
static const struct uv_attr_spec subscribe_spec[] = {
    UV_ATTR_FILE(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_HANDLE, UV_READ, UV_MANDATORY),
    UV_ATTR_OBJ(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_OBJ_HANDLE, UV_NONE, UV_DESTROY, 0),
    UV_ATTR_IN(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_TYPE_NUM_LIST, 2, 0, UV_MANDATORY),
    UV_ATTR_IN(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_COOKIE, 8, 8, 0),
    UV_ATTR_IN(MLX5_IB_ATTR_DEVX_SUBSCRIBE_EVENT_FD_NUM, 4, 4, 0),
};
static const struct uv_attr_spec event_fd_spec[] = {
    UV_ATTR_FILE(MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_HANDLE, UV_NEW, UV_MANDATORY),
    UV_ATTR_IN(MLX5_IB_ATTR_DEVX_ASYNC_EVENT_FD_ALLOC_FLAGS, 4, 8, UV_MANDATORY),
};
static const struct uv_attr_spec cmd_fd_spec[] = {
    UV_ATTR_FILE(MLX5_IB_ATTR_DEVX_ASYNC_CMD_FD_ALLOC_HANDLE, UV_NEW, UV_MANDATORY),
};

const struct uv_method uv_methods_devx[] = {
    UV_METHOD(MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_ALLOC, uar_alloc_spec, uar_alloc),
    UV_METHOD(MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_DESTROY, uar_destroy_spec, uar_destroy),
    UV_METHOD(MLX5_IB_OBJECT_DEVX_UMEM, MLX5_IB_METHOD_DEVX_UMEM_REG, umem_reg_spec, umem_reg),
    UV_METHOD(MLX5_IB_OBJECT_DEVX_UMEM, MLX5_IB_METHOD_DEVX_UMEM_DEREG, umem_dereg_spec, umem_dereg),
    UV_METHOD(MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_OTHER, general_spec, general_cmd),
    UV_METHOD(MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_QUERY_EQN, eqn_spec, query_eqn),
    UV_METHOD(MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_SUBSCRIBE_EVENT, subscribe_spec, subscribe),
    UV_METHOD(MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_CREATE, create_spec, obj_create),
    UV_METHOD(MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_DESTROY, destroy_spec, obj_destroy),
    UV_METHOD(MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_MODIFY, modify_spec, obj_modify),
    UV_METHOD(MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_QUERY, query_spec, obj_query),
    UV_METHOD(MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_ASYNC_QUERY, query_async_spec, obj_query_async),
    UV_METHOD(MLX5_IB_OBJECT_DEVX_ASYNC_EVENT_FD, MLX5_IB_METHOD_DEVX_ASYNC_EVENT_FD_ALLOC, event_fd_spec, event_fd_alloc),
    UV_METHOD(MLX5_IB_OBJECT_DEVX_ASYNC_CMD_FD, MLX5_IB_METHOD_DEVX_ASYNC_CMD_FD_ALLOC, cmd_fd_spec, cmd_fd_alloc),
};
const unsigned uv_nmethods_devx = sizeof uv_methods_devx / sizeof *uv_methods_devx;
