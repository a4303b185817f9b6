/* SPDX-License-Identifier: BSD-3-Clause */
/* Malformed commands get the errno that the kernel's uverbs and mlx5 drivers give. Run it under softhca-run. */
#include "cmd.h"

#include <infiniband/verbs.h>
#include <stdlib.h>
#include <unistd.h>

#include "tap.h"

static int fd;
static uint8_t *page;
static uint32_t pd;

static void expect(int got, int want, const char *what)
{
    if (!tap_ok(got == want, "%s: %s", what, want ? strerror(want) : "accepted"))
        printf("# got %d (%s)\n", got, got ? strerror(got) : "accepted");
}

/* ---- header ---- */

static int header(size_t length, unsigned attrs, unsigned driver, uint64_t reserved)
{
    union cmd cmd;

    cmd_begin(&cmd, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT);
    cmd.hdr.length = (__u16)length;
    cmd.hdr.num_attrs = (__u16)attrs;
    cmd.hdr.driver_id = driver;
    cmd.hdr.reserved1 = reserved;
    return ioctl(fd, RDMA_VERBS_IOCTL, &cmd) ? errno : 0;
}

static void headers(void)
{
    const size_t head = sizeof(struct ib_uverbs_ioctl_hdr), attr = sizeof(struct ib_uverbs_attr);
    union cmd cmd;

    expect(ioctl(fd, RDMA_VERBS_IOCTL + 1, page) ? errno : 0, ENOTTY, "another ioctl");
    expect(ioctl(fd, RDMA_VERBS_IOCTL, NULL) ? errno : 0, EFAULT, "header at address 0");
    expect(header(head + attr, 2, RDMA_DRIVER_MLX5, 0), EINVAL, "length that does not fit the number of attributes");
    expect(header(8192, 340, RDMA_DRIVER_MLX5, 0), EINVAL, "command longer than a page");
    expect(header(head, 0, RDMA_DRIVER_MLX4, 0), EINVAL, "another driver's number");
    expect(header(head, 0, RDMA_DRIVER_MLX5, 1), EPROTONOSUPPORT, "reserved field not 0");
    expect(header(head, 0, RDMA_DRIVER_MLX5, 0), EINVAL, "mandatory attributes missing");
    cmd_begin(&cmd, 0x77, 0);
    expect(cmd_run(fd, &cmd), EPROTONOSUPPORT, "unknown object");
    cmd_begin(&cmd, UVERBS_OBJECT_CQ, 0x77);
    expect(cmd_run(fd, &cmd), EPROTONOSUPPORT, "unknown method");
}

/* ---- attributes ---- */

static int query_port(size_t port_len, uint64_t port, void *out, size_t out_len, unsigned extra_id, unsigned extra_flags)
{
    union cmd cmd;

    cmd_begin(&cmd, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT);
    cmd_attr(&cmd, UVERBS_ATTR_QUERY_PORT_PORT_NUM, port_len, port);
    cmd_out(&cmd, UVERBS_ATTR_QUERY_PORT_RESP, out, out_len);
    if (extra_id)
        cmd_attr(&cmd, extra_id, 4, 0)->flags = (__u16)extra_flags;
    return cmd_run(fd, &cmd);
}

static void attributes(void)
{
    struct ib_uverbs_query_port_resp_ex resp;
    union cmd cmd;

    expect(query_port(8, 1, &resp, sizeof resp, 0, 0), 0, "query of port 1");
    expect(query_port(8, 2, &resp, sizeof resp, 0, 0), EINVAL, "query of port 2");
    expect(query_port(0, 1, &resp, sizeof resp, 0, 0), EINVAL, "input shorter than its type");
    expect(query_port(8, 1, &resp, 0, 0, 0), EINVAL, "output shorter than the least answer");
    expect(query_port(8, 1, NULL, sizeof resp, 0, 0), EFAULT, "output at address 0");
    expect(query_port(8, 1, &resp, sizeof resp, 0x88, UVERBS_ATTR_F_MANDATORY), EPROTONOSUPPORT, "unknown mandatory attribute");
    expect(query_port(8, 1, &resp, sizeof resp, 0x88, 0), 0, "unknown optional attribute");
    expect(query_port(8, 1, &resp, sizeof resp, 0x88, 0x80), EINVAL, "unknown attribute flag");
    cmd_begin(&cmd, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT);
    cmd_attr(&cmd, UVERBS_ATTR_QUERY_PORT_PORT_NUM, 8, 1);
    cmd_attr(&cmd, UVERBS_ATTR_QUERY_PORT_PORT_NUM, 8, 1);
    cmd_out(&cmd, UVERBS_ATTR_QUERY_PORT_RESP, &resp, sizeof resp);
    expect(cmd_run(fd, &cmd), EINVAL, "the same attribute twice");
    cmd_begin(&cmd, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_QUERY_PORT);
    cmd_attr(&cmd, UVERBS_ATTR_QUERY_PORT_PORT_NUM, 8, 1)->attr_data.reserved = 1;
    cmd_out(&cmd, UVERBS_ATTR_QUERY_PORT_RESP, &resp, sizeof resp);
    expect(cmd_run(fd, &cmd), EINVAL, "reserved field of an attribute not 0");
}

/* ---- handles ---- */

static int destroy_pd(uint32_t handle)
{
    return cmd_destroy(fd, UVERBS_OBJECT_PD, UVERBS_METHOD_PD_DESTROY, UVERBS_ATTR_DESTROY_PD_HANDLE, handle);
}

static int destroy_mr(uint32_t handle)
{
    return cmd_destroy(fd, UVERBS_OBJECT_MR, UVERBS_METHOD_MR_DESTROY, UVERBS_ATTR_DESTROY_MR_HANDLE, handle);
}

static void handles(void)
{
    uint32_t mr, other;

    expect(destroy_pd(12345), ENOENT, "destroy of a handle that does not exist");
    expect(cmd_reg_mr(fd, pd, page, 4096, (uintptr_t)page, IBV_ACCESS_LOCAL_WRITE, &mr), 0, "registration");
    expect(destroy_pd(mr), EINVAL, "destroy of a handle of another type");
    expect(destroy_pd(pd), EBUSY, "destroy of a protection domain in use");
    expect(destroy_mr(mr), 0, "deregistration");
    expect(destroy_mr(mr), ENOENT, "deregistration again");
    expect(cmd_alloc_pd(fd, &other), 0, "another protection domain");
    expect(destroy_pd(other), 0, "its end");
}

/* ---- write commands ---- */

static void write_commands(void)
{
    struct ib_uverbs_alloc_pd_resp resp;

    expect(cmd_write(fd, IB_USER_VERBS_CMD_QUERY_DEVICE, NULL, 0, NULL, 0), ENOSPC, "query_device without buffers");
    expect(cmd_write(fd, IB_USER_VERBS_CMD_ALLOC_PD, page, 8, &resp, 1), ENOSPC, "answer does not fit");
    expect(cmd_write(fd, IB_USER_VERBS_CMD_OPEN_XRCD, page, 64, &resp, sizeof resp), EOPNOTSUPP, "command that this device lacks");
    expect(cmd_write(fd, 77, page, 64, &resp, sizeof resp), EINVAL, "command that does not exist");
}

static int reg(uint32_t handle, void *addr, uint64_t len, uint64_t iova, uint32_t access)
{
    uint32_t mr;

    return cmd_reg_mr(fd, handle, addr, len, iova, access, &mr);
}

static void regions(void)
{
    const uint64_t at = (uintptr_t)page;

    expect(reg(pd, page, 4096, at, IBV_ACCESS_REMOTE_WRITE), EINVAL, "remote write without local write");
    expect(reg(pd, page, 4096, at, IBV_ACCESS_REMOTE_ATOMIC), EINVAL, "remote atomic without local write");
    expect(reg(pd, page, 4096, at, 1u << 14), EINVAL, "unknown access flag");
    expect(reg(pd, page, 4096, at, IBV_ACCESS_RELAXED_ORDERING), 0, "optional access flag");
    expect(reg(pd, page, 4096, at + 1, IBV_ACCESS_LOCAL_WRITE), EINVAL, "device address with another page offset");
    expect(reg(777, page, 4096, at, IBV_ACCESS_LOCAL_WRITE), EINVAL, "no such protection domain");
    expect(reg(pd, (void *)4096, 4096, 4096, IBV_ACCESS_LOCAL_WRITE), EFAULT, "memory that is not mapped");
    expect(reg(pd, page, 1ull << 40, at, IBV_ACCESS_LOCAL_WRITE), EFAULT, "region that runs past the mapping");
    expect(reg(pd, page, 0, at, IBV_ACCESS_LOCAL_WRITE), EINVAL, "region without bytes");
    expect(reg(pd, page, UINT64_MAX, at, IBV_ACCESS_LOCAL_WRITE), EINVAL, "region that wraps around");
}

/* ---- completion queues and queue pairs ---- */

static int create_cq(uint32_t cqe, uint32_t vector, uint32_t cqe_size, uint64_t ring, uint32_t *handle)
{
    struct mlx5_ib_create_cq vendor = { .buf_addr = ring, .db_addr = (uintptr_t)page, .cqe_size = cqe_size };
    struct mlx5_ib_create_cq_resp vendor_out;
    uint32_t got = 0;
    union cmd cmd;
    int err;

    cmd_begin(&cmd, UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_CREATE);
    cmd_handle(&cmd, UVERBS_ATTR_CREATE_CQ_HANDLE, 0);
    cmd_ptr(&cmd, UVERBS_ATTR_CREATE_CQ_CQE, &cqe, 4);
    cmd_ptr(&cmd, UVERBS_ATTR_CREATE_CQ_USER_HANDLE, &(uint64_t){ 1 }, 8);
    cmd_ptr(&cmd, UVERBS_ATTR_CREATE_CQ_COMP_VECTOR, &vector, 4);
    cmd_out(&cmd, UVERBS_ATTR_CREATE_CQ_RESP_CQE, &got, 4);
    cmd_ptr(&cmd, UVERBS_ATTR_UHW_IN, &vendor, sizeof vendor);
    cmd_out(&cmd, UVERBS_ATTR_UHW_OUT, &vendor_out, sizeof vendor_out);
    err = cmd_run(fd, &cmd);
    *handle = (uint32_t)cmd.hdr.attrs[0].data;
    return err;
}

static int create_qp(uint32_t type, uint32_t cq, const struct mlx5_ib_create_qp *vendor, uint32_t *handle)
{
    struct ib_uverbs_qp_cap cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 }, cap_out;
    struct mlx5_ib_create_qp_resp vendor_out;
    uint32_t qpn;
    union cmd cmd;
    int err;

    cmd_begin(&cmd, UVERBS_OBJECT_QP, UVERBS_METHOD_QP_CREATE);
    cmd_handle(&cmd, UVERBS_ATTR_CREATE_QP_HANDLE, 0);
    cmd_handle(&cmd, UVERBS_ATTR_CREATE_QP_PD_HANDLE, pd);
    cmd_handle(&cmd, UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE, cq);
    cmd_handle(&cmd, UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE, cq);
    cmd_ptr(&cmd, UVERBS_ATTR_CREATE_QP_USER_HANDLE, &(uint64_t){ 2 }, 8);
    cmd_ptr(&cmd, UVERBS_ATTR_CREATE_QP_CAP, &cap, sizeof cap);
    cmd_ptr(&cmd, UVERBS_ATTR_CREATE_QP_TYPE, &(uint64_t){ type }, 8);
    cmd_out(&cmd, UVERBS_ATTR_CREATE_QP_RESP_CAP, &cap_out, sizeof cap_out);
    cmd_out(&cmd, UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, &qpn, 4);
    cmd_ptr(&cmd, UVERBS_ATTR_UHW_IN, vendor, sizeof *vendor);
    cmd_out(&cmd, UVERBS_ATTR_UHW_OUT, &vendor_out, sizeof vendor_out);
    err = cmd_run(fd, &cmd);
    *handle = (uint32_t)cmd.hdr.attrs[0].data;
    return err;
}

static uint32_t alloc_uar(void)
{
    uint64_t offset;
    uint32_t length, page_id = 0;
    union cmd cmd;

    cmd_begin(&cmd, MLX5_IB_OBJECT_UAR, MLX5_IB_METHOD_UAR_OBJ_ALLOC);
    cmd_handle(&cmd, MLX5_IB_ATTR_UAR_OBJ_ALLOC_HANDLE, 0);
    cmd_ptr(&cmd, MLX5_IB_ATTR_UAR_OBJ_ALLOC_TYPE, &(uint64_t){ 0 }, 8);
    cmd_out(&cmd, MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_OFFSET, &offset, sizeof offset);
    cmd_out(&cmd, MLX5_IB_ATTR_UAR_OBJ_ALLOC_MMAP_LENGTH, &length, sizeof length);
    cmd_out(&cmd, MLX5_IB_ATTR_UAR_OBJ_ALLOC_PAGE_ID, &page_id, sizeof page_id);
    expect(cmd_run(fd, &cmd), 0, "doorbell page");
    return page_id;
}

static int modify_qp(uint32_t qp, uint32_t mask, unsigned state, unsigned port)
{
    struct ib_uverbs_modify_qp in = { .qp_handle = qp, .attr_mask = mask, .qp_state = (__u8)state, .port_num = (__u8)port };

    return cmd_write(fd, IB_USER_VERBS_CMD_MODIFY_QP, &in, sizeof in, NULL, 0);
}

static void states(uint32_t qp)
{
    const uint32_t init = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;

    expect(modify_qp(qp, IBV_QP_STATE, IBV_QPS_RTS, 1), EINVAL, "RESET to RTS");
    expect(modify_qp(qp, IBV_QP_STATE, IBV_QPS_INIT, 1), EINVAL, "RESET to INIT without its attributes");
    expect(modify_qp(qp, init | IBV_QP_SQ_PSN, IBV_QPS_INIT, 1), EINVAL, "RESET to INIT with an attribute too many");
    expect(modify_qp(qp, init, IBV_QPS_INIT, 2), EINVAL, "RESET to INIT on port 2");
    expect(modify_qp(qp, init, 9, 1), EINVAL, "state that does not exist");
    expect(modify_qp(qp, init, IBV_QPS_INIT, 1), 0, "RESET to INIT");
    expect(modify_qp(qp, IBV_QP_STATE, IBV_QPS_RTR, 1), EINVAL, "INIT to RTR without its attributes");
    expect(modify_qp(qp, IBV_QP_STATE, IBV_QPS_ERR, 1), 0, "INIT to ERR");
    expect(modify_qp(qp, IBV_QP_STATE, IBV_QPS_RESET, 1), 0, "ERR to RESET");
    expect(modify_qp(qp + 100, init, IBV_QPS_INIT, 1), EINVAL, "modify of a handle that does not exist");
    expect(modify_qp(qp, 1u << 30, IBV_QPS_INIT, 1), EOPNOTSUPP, "unknown attribute");
}

static int destroy_cq(uint32_t handle)
{
    struct ib_uverbs_destroy_cq_resp resp;
    union cmd cmd;

    cmd_begin(&cmd, UVERBS_OBJECT_CQ, UVERBS_METHOD_CQ_DESTROY);
    cmd_handle(&cmd, UVERBS_ATTR_DESTROY_CQ_HANDLE, handle);
    cmd_out(&cmd, UVERBS_ATTR_DESTROY_CQ_RESP, &resp, sizeof resp);
    return cmd_run(fd, &cmd);
}

static int destroy_qp(uint32_t handle)
{
    struct ib_uverbs_destroy_qp_resp resp;
    union cmd cmd;

    cmd_begin(&cmd, UVERBS_OBJECT_QP, UVERBS_METHOD_QP_DESTROY);
    cmd_handle(&cmd, UVERBS_ATTR_DESTROY_QP_HANDLE, handle);
    cmd_out(&cmd, UVERBS_ATTR_DESTROY_QP_RESP, &resp, sizeof resp);
    return cmd_run(fd, &cmd);
}

static void queues(void)
{
    const uint64_t ring = (uintptr_t)page + 4096;
    struct mlx5_ib_create_qp good = { .buf_addr = ring, .db_addr = (uintptr_t)page + 64, .sq_wqe_count = 4, .rq_wqe_count = 4,
                                      .rq_wqe_shift = 4, .flags = MLX5_QP_FLAG_UAR_PAGE_INDEX };
    struct mlx5_ib_create_qp bad;
    uint32_t cq, qp, none;

    expect(create_cq(0, 0, 64, ring, &none), EINVAL, "completion queue of 0 entries");
    expect(create_cq(1u << 23, 0, 64, ring, &none), EINVAL, "more entries than the device has");
    expect(create_cq(15, 99, 64, ring, &none), EINVAL, "completion vector that does not exist");
    expect(create_cq(15, 0, 32, ring, &none), EINVAL, "entries of 32 bytes");
    expect(create_cq(15, 0, 64, 4096, &none), EFAULT, "ring that is not mapped");
    expect(create_cq(15, 0, 64, ring, &cq), 0, "completion queue");
    good.bfreg_index = alloc_uar();
    expect(create_qp(IB_UVERBS_QPT_RC, cq + 50, &good, &none), ENOENT, "queue pair with no such completion queue");
    expect(create_qp(0x55, cq, &good, &none), EOPNOTSUPP, "queue pair of an unknown type");
    bad = good;
    bad.sq_wqe_count = 3;
    expect(create_qp(IB_UVERBS_QPT_RC, cq, &bad, &none), EINVAL, "send queue that is no power of two");
    bad = good;
    bad.flags |= 1u << 30;
    expect(create_qp(IB_UVERBS_QPT_RC, cq, &bad, &none), EINVAL, "unknown driver flag");
    bad = good;
    bad.bfreg_index = 400;
    expect(create_qp(IB_UVERBS_QPT_RC, cq, &bad, &none), EINVAL, "doorbell page that does not exist");
    expect(create_qp(IB_UVERBS_QPT_RC, cq, &good, &qp), 0, "queue pair");
    states(qp);
    expect(destroy_cq(cq), EBUSY, "destroy of a completion queue in use");
    expect(destroy_qp(qp), 0, "destroy of the queue pair");
    expect(destroy_cq(cq), 0, "destroy of the completion queue");
}

/* ---- DEVX ---- */

static int devx_general(const uint8_t *in, size_t in_len, uint8_t *out, size_t out_len)
{
    union cmd cmd;

    cmd_begin(&cmd, MLX5_IB_OBJECT_DEVX, MLX5_IB_METHOD_DEVX_OTHER);
    cmd_ptr(&cmd, MLX5_IB_ATTR_DEVX_OTHER_CMD_IN, in, in_len);
    cmd_out(&cmd, MLX5_IB_ATTR_DEVX_OTHER_CMD_OUT, out, out_len);
    return cmd_run(fd, &cmd);
}

static int devx_create(const uint8_t *in, size_t in_len, uint8_t *out, size_t out_len)
{
    union cmd cmd;

    cmd_begin(&cmd, MLX5_IB_OBJECT_DEVX_OBJ, MLX5_IB_METHOD_DEVX_OBJ_CREATE);
    cmd_handle(&cmd, MLX5_IB_ATTR_DEVX_OBJ_CREATE_HANDLE, 0);
    cmd_ptr(&cmd, MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_IN, in, in_len);
    cmd_out(&cmd, MLX5_IB_ATTR_DEVX_OBJ_CREATE_CMD_OUT, out, out_len);
    return cmd_run(fd, &cmd);
}

static void firmware(void)
{
    uint8_t in[0x110] = { 0 }, out[0x1010];

    in[0] = 0x01;                /* QUERY_HCA_CAP, general, current */
    in[7] = 0x01;
    expect(devx_general(in, 16, out, sizeof out), 0, "capability query");
    expect(devx_general(in, 8, out, sizeof out), EINVAL, "command shorter than its header");
    expect(devx_general(in, 16, out, 8), EINVAL, "answer shorter than its header");
    in[0] = 0x05;                /* CREATE_QP is no general command */
    expect(devx_general(in, sizeof in, out, sizeof out), EINVAL, "create command as a general command");
    in[0] = 0x05;
    in[1] = 0x0b;
    expect(devx_create(in, sizeof in, out, 16), EINVAL, "query command as a create command");
    in[0] = 0x05;
    in[1] = 0x00;
    expect(devx_create(in, sizeof in, out, 16), EREMOTEIO, "queue pair without a protection domain");
    tap_ok(out[0] == 0x03, "the answer says bad parameter (0x%02x)", out[0]);
    expect(devx_create(in, 0x40, out, 16), EREMOTEIO, "queue pair command that is too short");
    tap_ok(out[0] == 0x50, "the answer says bad input length (0x%02x)", out[0]);
    in[0] = 0x04;                /* CREATE_CQ without umems */
    expect(devx_create(in, sizeof in, out, 16), EREMOTEIO, "completion queue without memory");
    in[0] = 0x07;
    in[1] = 0x10;                /* CREATE_DCT */
    expect(devx_create(in, sizeof in, out, 16), EREMOTEIO, "object that this device does not have");
    tap_ok(out[0] == 0x02, "the answer says bad operation (0x%02x)", out[0]);
}

static void without_context(void)
{
    struct ib_uverbs_query_port_resp_ex resp;
    int keep = fd;
    uint32_t handle;

    fd = open("/dev/infiniband/uverbs0", O_RDWR);
    expect(query_port(8, 1, &resp, sizeof resp, 0, 0), EINVAL, "command on a file without a context");
    expect(cmd_alloc_pd(fd, &handle), EINVAL, "write command on a file without a context");
    close(fd);
    fd = keep;
}

int main(void)
{
    fd = cmd_open_context();
    page = aligned_alloc(4096, 4 * 4096);
    if (fd < 0 || !page) {
        printf("Bail out! no device: %s\n", strerror(errno));
        return 1;
    }
    memset(page, 0, 4 * 4096);
    expect(cmd_alloc_pd(fd, &pd), 0, "protection domain");
    headers();
    attributes();
    handles();
    write_commands();
    regions();
    queues();
    firmware();
    without_context();
    close(fd);
    return tap_done();
}
