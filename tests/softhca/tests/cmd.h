/* SPDX-License-Identifier: BSD-3-Clause */
/* Builds uverbs ioctl commands attribute by attribute, for tests that say what no library would. */
#ifndef SOFTHCA_TESTS_CMD_H
#define SOFTHCA_TESTS_CMD_H

#include <errno.h>
#include <fcntl.h>
#include <linux/types.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <rdma/mlx5_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>

enum { CMD_MAX_ATTRS = 24 };

/* Header and attributes, which follow it as its flexible array. */
union cmd {
    struct ib_uverbs_ioctl_hdr hdr;
    uint8_t room[sizeof(struct ib_uverbs_ioctl_hdr) + CMD_MAX_ATTRS * sizeof(struct ib_uverbs_attr)];
};

static inline void cmd_begin(union cmd *cmd, unsigned object, unsigned method)
{
    memset(cmd, 0, sizeof *cmd);
    cmd->hdr.object_id = (__u16)object;
    cmd->hdr.method_id = (__u16)method;
    cmd->hdr.driver_id = RDMA_DRIVER_MLX5;
}

static inline struct ib_uverbs_attr *cmd_attr(union cmd *cmd, unsigned id, size_t len, uint64_t data)
{
    struct ib_uverbs_attr *attr = &cmd->hdr.attrs[cmd->hdr.num_attrs++];

    attr->attr_id = (__u16)id;
    attr->len = (__u16)len;
    attr->flags = UVERBS_ATTR_F_MANDATORY;
    attr->data = data;
    return attr;
}

static inline void cmd_ptr(union cmd *cmd, unsigned id, const void *data, size_t len)
{
    uint64_t small = 0;

    if (len <= sizeof small)
        memcpy(&small, data, len);
    cmd_attr(cmd, id, len, len <= sizeof small ? small : (uintptr_t)data);
}

static inline void cmd_out(union cmd *cmd, unsigned id, void *data, size_t len)
{
    cmd_attr(cmd, id, len, (uintptr_t)data);
}

static inline void cmd_handle(union cmd *cmd, unsigned id, uint32_t handle)
{
    cmd_attr(cmd, id, 0, handle);
}

/* 0 or the errno. */
static inline int cmd_run(int fd, union cmd *cmd)
{
    cmd->hdr.length = (__u16)(sizeof cmd->hdr + cmd->hdr.num_attrs * sizeof(struct ib_uverbs_attr));
    return ioctl(fd, RDMA_VERBS_IOCTL, cmd) ? errno : 0;
}

/* Opens the device and a context with DEVX, as libmlx5 does; -1 on failure. */
static inline int cmd_open_context(void)
{
    struct mlx5_ib_alloc_ucontext_req_v2 req = { .total_num_bfregs = 16, .num_low_latency_bfregs = 4,
                                                 .flags = MLX5_IB_ALLOC_UCTX_DEVX, .max_cqe_version = 1,
                                                 .lib_caps = MLX5_LIB_CAP_4K_UAR | MLX5_LIB_CAP_DYN_UAR };
    struct mlx5_ib_alloc_ucontext_resp resp;
    uint32_t vectors;
    uint64_t support;
    union cmd cmd;
    int fd = open("/dev/infiniband/uverbs0", O_RDWR | O_CLOEXEC);

    if (fd < 0)
        return -1;
    cmd_begin(&cmd, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_GET_CONTEXT);
    cmd_out(&cmd, UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS, &vectors, sizeof vectors);
    cmd_out(&cmd, UVERBS_ATTR_GET_CONTEXT_CORE_SUPPORT, &support, sizeof support);
    cmd_ptr(&cmd, UVERBS_ATTR_UHW_IN, &req, sizeof req);
    cmd_out(&cmd, UVERBS_ATTR_UHW_OUT, &resp, sizeof resp);
    return cmd_run(fd, &cmd) ? -1 : fd;
}

/* A legacy write() command in its ioctl envelope. */
static inline int cmd_write(int fd, uint32_t number, const void *in, size_t in_len, void *out, size_t out_len)
{
    union cmd cmd;

    cmd_begin(&cmd, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);
    cmd_ptr(&cmd, UVERBS_ATTR_WRITE_CMD, &(uint64_t){ number }, 8);
    if (in_len)
        cmd_ptr(&cmd, UVERBS_ATTR_CORE_IN, in, in_len);
    if (out_len)
        cmd_out(&cmd, UVERBS_ATTR_CORE_OUT, out, out_len);
    return cmd_run(fd, &cmd);
}

static inline int cmd_alloc_pd(int fd, uint32_t *handle)
{
    struct ib_uverbs_alloc_pd in = { 0 };
    struct ib_uverbs_alloc_pd_resp out = { 0 };
    int err = cmd_write(fd, IB_USER_VERBS_CMD_ALLOC_PD, &in, sizeof in, &out, sizeof out);

    *handle = out.pd_handle;
    return err;
}

static inline int cmd_reg_mr(int fd, uint32_t pd, void *addr, uint64_t len, uint64_t iova, uint32_t access, uint32_t *handle)
{
    struct ib_uverbs_reg_mr in = { .start = (uintptr_t)addr, .length = len, .hca_va = iova, .pd_handle = pd,
                                   .access_flags = access };
    struct ib_uverbs_reg_mr_resp out = { 0 };
    int err = cmd_write(fd, IB_USER_VERBS_CMD_REG_MR, &in, sizeof in, &out, sizeof out);

    *handle = out.mr_handle;
    return err;
}

static inline int cmd_destroy(int fd, unsigned object, unsigned method, unsigned id, uint32_t handle)
{
    union cmd cmd;

    cmd_begin(&cmd, object, method);
    cmd_handle(&cmd, id, handle);
    return cmd_run(fd, &cmd);
}

#endif
