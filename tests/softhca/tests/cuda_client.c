/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * GPU memory through the virtual NIC: two connected queue pairs of one process; writes, reads and atomics between host
 * and device memory with every byte checked, and a doorbell page registered with the driver. Skips without a GPU.
 */
#include <dlfcn.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/tap.h"

enum { BYTES = 1 << 20, WAIT_SECONDS = 20, DEVICE_MAP = 2 };

static struct {
    int (*init)(unsigned);
    int (*device_get)(int *, int);
    int (*retain)(void **, int);
    int (*set_current)(void *);
    int (*alloc)(uint64_t *, size_t);
    int (*to_device)(uint64_t, const void *, size_t);
    int (*to_host)(void *, uint64_t, size_t);
    int (*host_register)(void *, size_t, unsigned);
    int (*host_unregister)(void *);
} cu;

static bool load_cuda(void)
{
    static const struct {
        const char *name;
        void *slot;
    } symbols[] = {
        { "cuInit", &cu.init },
        { "cuDeviceGet", &cu.device_get },
        { "cuDevicePrimaryCtxRetain", &cu.retain },
        { "cuCtxSetCurrent", &cu.set_current },
        { "cuMemAlloc_v2", &cu.alloc },
        { "cuMemcpyHtoD_v2", &cu.to_device },
        { "cuMemcpyDtoH_v2", &cu.to_host },
        { "cuMemHostRegister_v2", &cu.host_register },
        { "cuMemHostUnregister", &cu.host_unregister },
    };
    void *lib = dlopen("libcuda.so.1", RTLD_NOW);
    void *context;
    int device;

    for (size_t i = 0; lib && i < sizeof(symbols) / sizeof(symbols[0]); i++) {
        void *address = dlsym(lib, symbols[i].name);

        if (!address)
            return false;
        memcpy(symbols[i].slot, &address, sizeof(address));
    }
    return lib && !cu.init(0) && !cu.device_get(&device, 0) && !cu.retain(&context, device) && !cu.set_current(context);
}

struct end {
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_qp *qp[2];
    struct ibv_mr *host_mr, *gpu_mr;
    uint8_t *host;
    uint64_t gpu;
    uint16_t lid;
};

static bool connect_to(struct end *e, int from, int to)
{
    struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1,
                             .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC };

    if (ibv_modify_qp(e->qp[from], &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
        return false;
    a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_4096, .dest_qp_num = e->qp[to]->qp_num,
                              .max_dest_rd_atomic = 16, .min_rnr_timer = 12, .ah_attr = { .dlid = e->lid, .port_num = 1 } };
    if (ibv_modify_qp(e->qp[from], &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                           IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
        return false;
    a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS, .timeout = 16, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 16 };
    return !ibv_modify_qp(e->qp[from], &a, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                               IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

static bool open_end(struct end *e)
{
    const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
    struct mlx5dv_context_attr attr = { .flags = MLX5DV_CONTEXT_FLAGS_DEVX };
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_port_attr port;

    e->ctx = list && list[0] ? mlx5dv_open_device(list[0], &attr) : NULL;
    if (!e->ctx || ibv_query_port(e->ctx, 1, &port) || cu.alloc(&e->gpu, BYTES))
        return false;
    e->lid = port.lid;
    e->host = aligned_alloc(4096, BYTES);
    e->pd = ibv_alloc_pd(e->ctx);
    e->cq = ibv_create_cq(e->ctx, 64, NULL, NULL, 0);
    if (!e->host || !e->pd || !e->cq)
        return false;
    memset(e->host, 0, BYTES);
    e->host_mr = ibv_reg_mr(e->pd, e->host, BYTES, access);
    e->gpu_mr = ibv_reg_mr(e->pd, (void *)(uintptr_t)e->gpu, BYTES, access);
    for (int i = 0; i < 2; i++) {
        struct ibv_qp_init_attr init = { .send_cq = e->cq, .recv_cq = e->cq, .qp_type = IBV_QPT_RC,
                                         .cap = { 16, 16, 1, 1, 0 } };

        e->qp[i] = ibv_create_qp(e->pd, &init);
        if (!e->qp[i])
            return false;
    }
    return e->host_mr && e->gpu_mr && connect_to(e, 0, 1) && connect_to(e, 1, 0);
}

static bool run_wr(struct end *e, struct ibv_send_wr *wr)
{
    time_t end = time(NULL) + WAIT_SECONDS;
    struct ibv_send_wr *bad;
    struct ibv_wc wc;

    wr->send_flags = IBV_SEND_SIGNALED;
    wr->num_sge = 1;
    if (ibv_post_send(e->qp[0], wr, &bad))
        return false;
    while (time(NULL) < end) {
        int n = ibv_poll_cq(e->cq, 1, &wc);

        if (n)
            return n == 1 && wc.status == IBV_WC_SUCCESS;
    }
    return false;
}

/* Bytes between host and GPU in one operation; local and remote may be either. */
static bool move(struct end *e, enum ibv_wr_opcode op, bool local_gpu, uint32_t local_off, bool remote_gpu,
                 uint32_t remote_off, uint32_t len)
{
    struct ibv_sge sge = { (local_gpu ? e->gpu : (uintptr_t)e->host) + local_off, len,
                           local_gpu ? e->gpu_mr->lkey : e->host_mr->lkey };
    struct ibv_send_wr wr = { .sg_list = &sge, .opcode = op };

    wr.wr.rdma.remote_addr = (remote_gpu ? e->gpu : (uintptr_t)e->host) + remote_off;
    wr.wr.rdma.rkey = remote_gpu ? e->gpu_mr->rkey : e->host_mr->rkey;
    return run_wr(e, &wr);
}

static void pattern(uint8_t *p, uint32_t len, uint8_t seed)
{
    for (uint32_t i = 0; i < len; i++)
        p[i] = (uint8_t)(seed + i * 13 + (i >> 8));
}

static void copies(struct end *e)
{
    enum { LEN = 300001, HALF = BYTES / 2 };
    uint8_t *check = malloc(LEN);

    pattern(e->host, LEN, 1);
    tap_ok(move(e, IBV_WR_RDMA_WRITE, false, 0, true, 3, LEN) && !cu.to_host(check, e->gpu + 3, LEN) &&
               !memcmp(check, e->host, LEN),
           "write from host to GPU");
    pattern(check, LEN, 77);
    cu.to_device(e->gpu + 3, check, LEN);
    tap_ok(move(e, IBV_WR_RDMA_READ, false, HALF, true, 3, LEN) && !memcmp(check, e->host + HALF, LEN),
           "read from GPU to host");
    tap_ok(move(e, IBV_WR_RDMA_WRITE, true, 3, false, HALF + 5, LEN) && !memcmp(check, e->host + HALF + 5, LEN),
           "write from GPU to host");
    tap_ok(move(e, IBV_WR_RDMA_WRITE, true, 3, true, HALF, LEN) && !cu.to_host(e->host, e->gpu + HALF, LEN) &&
               !memcmp(check, e->host, LEN),
           "write from GPU to GPU");
    free(check);
}

static void atomics(struct end *e)
{
    uint64_t value = 1000, seen = 0, *old = (uint64_t *)(void *)e->host;
    struct ibv_sge sge = { (uintptr_t)e->host, 8, e->host_mr->lkey };
    struct ibv_send_wr wr = { .sg_list = &sge, .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD };

    cu.to_device(e->gpu, &value, 8);
    wr.wr.atomic.remote_addr = e->gpu;
    wr.wr.atomic.rkey = e->gpu_mr->rkey;
    wr.wr.atomic.compare_add = 7;
    tap_ok(run_wr(e, &wr) && *old == 1000 && !cu.to_host(&seen, e->gpu, 8) && seen == 1007, "fetch-add on GPU memory");
    wr.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
    wr.wr.atomic.compare_add = 1007;
    wr.wr.atomic.swap = 5;
    tap_ok(run_wr(e, &wr) && *old == 1007 && !cu.to_host(&seen, e->gpu, 8) && seen == 5, "compare-swap on GPU memory");
}

static void doorbell_page(struct end *e)
{
    struct mlx5dv_devx_uar *uar = mlx5dv_devx_alloc_uar(e->ctx, MLX5DV_UAR_ALLOC_TYPE_BF);
    void *page = uar ? (void *)((uintptr_t)uar->reg_addr & ~4095ul) : NULL;

    tap_ok(page && !cu.host_register(page, 4096, DEVICE_MAP), "doorbell page registered with the driver");
    if (page) {
        cu.host_unregister(page);
        mlx5dv_devx_free_uar(uar);
    }
}

int main(void)
{
    struct end e = { 0 };

    if (!load_cuda()) {
        puts("1..0 # SKIP no GPU");
        return 0;
    }
    if (!tap_ok(open_end(&e), "connection, host and GPU memory registered"))
        return tap_done();
    copies(&e);
    atomics(&e);
    doorbell_page(&e);
    return tap_done();
}
