/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs_post.c - an 8-byte inline RDMA write posted by libmlx5 and by shmem/device/sq.h, on the same kind of queue pair.
 *
 *     verbs_post nothing | post_send | wr_write | sq_private | sq_shared | batch
 *
 * batch prints how many of 16 deferred puts and the call behind them wrote the doorbell register.
 */
#include "measured.h"

#include <shmem/device/sq.h>

#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <time.h>

enum { DEPTH = 128, BYTES = 4096, BATCH = 16, WAIT_S = 60 };

static struct ibv_context *ctx;
static struct ibv_cq *cq;
static struct ibv_qp *qp, *peer;
static struct ibv_qp_ex *qpx;
static struct ibv_mr *mr;
static char *memory;
static uint64_t value = 42, posted;
static struct shmemi_sq sq;
static struct mlx5dv_cq raw_cq;
static uint32_t seen;

static struct ibv_qp *make_qp(struct ibv_pd *pd, struct ibv_port_attr *port, uint32_t *qpn)
{
    struct ibv_qp_init_attr_ex init = {
        .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = { DEPTH, 1, 1, 1, 64 }, .pd = pd,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE,
    };
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1,
                                .qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE };
    struct ibv_qp *made = ibv_create_qp_ex(ctx, &init);

    (void)port;
    if (!made || ibv_modify_qp(made, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
        die("no queue pair");
    *qpn = made->qp_num;
    return made;
}

static void connect_qp(struct ibv_qp *one, uint32_t other, const struct ibv_port_attr *port)
{
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR, .path_mtu = port->active_mtu, .dest_qp_num = other,
                                .max_dest_rd_atomic = 1, .min_rnr_timer = 12,
                                .ah_attr = { .dlid = port->lid, .port_num = 1 } };

    if (ibv_modify_qp(one, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
        die("cannot connect (receive)");
    attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1 };
    if (ibv_modify_qp(one, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                                      IBV_QP_MAX_QP_RD_ATOMIC))
        die("cannot connect (send)");
}

static void set_up(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_port_attr port;
    struct ibv_pd *pd;
    uint32_t a, b;

    ctx = list && list[0] ? ibv_open_device(list[0]) : NULL;
    pd = ctx ? ibv_alloc_pd(ctx) : NULL;
    memory = aligned_alloc(4096, BYTES);
    if (!pd || !memory || ibv_query_port(ctx, 1, &port))
        die("no device: run me under softhca-run");
    memset(memory, 0, BYTES);
    mr = ibv_reg_mr(pd, memory, BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    cq = ibv_create_cq(ctx, 2 * DEPTH, NULL, NULL, 0);
    if (!mr || !cq)
        die("no memory region or completion queue");
    qp = make_qp(pd, &port, &a);
    peer = make_qp(pd, &port, &b);
    connect_qp(peer, a, &port);
    connect_qp(qp, b, &port);
    qpx = ibv_qp_to_qp_ex(qp);
}

/* ---- libmlx5: signals one post in DRAIN_EVERY, as its users do ---- */

static int flags_now(void)
{
    return IBV_SEND_INLINE | (++posted % DRAIN_EVERY ? 0 : IBV_SEND_SIGNALED);
}

static void post_send(void)
{
    struct ibv_sge sge = { (uintptr_t)&value, 8, 0 };
    struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE, .send_flags = (unsigned)flags_now(),
                              .wr.rdma = { (uintptr_t)memory, mr->rkey } };
    struct ibv_send_wr *bad;

    if (ibv_post_send(qp, &wr, &bad))
        die("ibv_post_send");
}

static void wr_write(void)
{
    ibv_wr_start(qpx);
    qpx->wr_flags = (unsigned)flags_now();
    ibv_wr_rdma_write(qpx, mr->rkey, (uintptr_t)memory);
    ibv_wr_set_inline_data(qpx, &value, 8);
    if (ibv_wr_complete(qpx))
        die("ibv_wr_complete");
}

static void drain_verbs(void)
{
    time_t limit = time(NULL) + WAIT_S;
    struct ibv_wc wc;
    int n;

    while ((n = ibv_poll_cq(cq, 1, &wc)) == 0)
        if (time(NULL) > limit)
            die("no completion");
    if (n < 0 || wc.status != IBV_WC_SUCCESS)
        die(ibv_wc_status_str(wc.status));
}

/* ---- sq.h on that queue pair's ring: each post signals.  Its completion queue is no collapsed one, so `drain` reads
 * the entry of the last post and lets sq.h find it where it looks. ---- */

static char own_cqe[64] __attribute__((aligned(64)));

static void take_ring(void)
{
    struct mlx5dv_qp raw = { 0 };
    struct mlx5dv_obj obj = { .qp = { qp, &raw }, .cq = { cq, &raw_cq } };
    uint32_t log = 0;

    if (mlx5dv_init_obj(&obj, MLX5DV_OBJ_QP | MLX5DV_OBJ_CQ))
        die("mlx5dv_init_obj");
    while ((2u << log) <= raw.sq.wqe_cnt)
        log++;
    if (raw.sq.stride != 64 ||
        shmemi_sq_init(&sq, raw.sq.buf, (uint32_t *)(void *)raw.dbrec + 1, raw.bf.reg, own_cqe, qp->qp_num, log, 0))
        die("the ring is of another kind");
}

static void sq_private(void)
{
    shmemi_sq_write_inline(&sq, SHMEMI_SQ_PRIVATE, (uintptr_t)memory, shmemi_be32_of(mr->rkey), &value, 8, 0);
}

static void sq_shared(void)
{
    shmemi_sq_write_inline(&sq, SHMEMI_SQ_SHARED, (uintptr_t)memory, shmemi_be32_of(mr->rkey), &value, 8, 0);
}

static void drain_sq(void)
{
    time_t limit = time(NULL) + WAIT_S;

    while (seen < sq.reserved) {
        struct mlx5_cqe64 *cqe = (struct mlx5_cqe64 *)((char *)raw_cq.buf + (seen & (raw_cq.cqe_cnt - 1)) * raw_cq.cqe_size);
        uint8_t owner;

        cqe += raw_cq.cqe_size == 128;
        owner = __atomic_load_n(&cqe->op_own, __ATOMIC_ACQUIRE);
        if ((owner & 1) == !!(seen & raw_cq.cqe_cnt) && owner >> 4 != 15) {
            memcpy(own_cqe, cqe, sizeof own_cqe);
            __atomic_store_n(raw_cq.dbrec, shmemi_bswap32(++seen & 0xffffff), __ATOMIC_RELEASE);
        } else if (time(NULL) > limit) {
            die("no completion");
        }
    }
    if (shmemi_sq_poll(&sq))
        die("a completion with an error");
}

/* A doorbell register and record of our own: each write to the register is seen. */
static void batch(void)
{
    static char ring[64 * 64] __attribute__((aligned(64)));
    static uint32_t record;
    static uint64_t doorbell;
    int rung = 0;

    shmemi_sq_init(&sq, ring, &record, &doorbell, own_cqe, 1, 6, 0);
    sq.reserved = sq.tail = 0;
    for (int i = 0; i <= BATCH; i++) {
        doorbell = 0;
        if (i < BATCH)
            shmemi_sq_write_inline(&sq, SHMEMI_SQ_PRIVATE, 4096, shmemi_be32_of(1), &value, 8, SHMEMI_SQ_DEFER);
        else
            shmemi_sq_ring(&sq, SHMEMI_SQ_PRIVATE);
        rung += doorbell != 0;
    }
    printf("%d\n", rung);
}

static void nothing(void)
{
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";

    if (!strcmp(what, "batch")) {
        batch();
        return 0;
    }
    set_up();
    if (!strcmp(what, "nothing"))
        measure(nothing, nothing);
    else if (!strcmp(what, "post_send"))
        measure(post_send, drain_verbs);
    else if (!strcmp(what, "wr_write"))
        measure(wr_write, drain_verbs);
    else if (!strncmp(what, "sq_", 3)) {
        take_ring();
        measure(strcmp(what, "sq_shared") ? sq_private : sq_shared, drain_sq);
    } else {
        die("which post?");
    }
    if (strcmp(what, "nothing") != 0 && memcmp(memory, &value, 8) != 0)
        die("the value did not arrive");
    return 0;
}
