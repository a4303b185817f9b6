/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * peer.h - a queue pair of rdma-core that is connected to itself, and beside it a ring of ours with the same
 * number and size that no NIC looks at.
 */
#ifndef TESTS_MLX5_PEER_H
#define TESTS_MLX5_PEER_H

/* As the library compiles the posts of its own threads. */
#define SHMEMI_SQ_RECORDS
#include "shmem/device/sq.h"

#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { HEAP = 1 << 18, WAIT_SECONDS = 60 };

struct peer {
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    struct mlx5dv_qp dv;
    uint8_t *heap;
    uint64_t idx;        /* the next block */
    struct shmemi_sq sq; /* ours: the same number and index, a ring of our own */
    uint8_t *ring;
    uint32_t record, cqe[16];
    uint64_t bell;
};

static inline void die(const char *what)
{
    printf("Bail out! %s: %s\n", what, strerror(errno));
    exit(1);
}

/* ---- set-up ---- */

static inline void open_device(struct peer *p)
{
    struct ibv_device **list = ibv_get_device_list(NULL);

    if (!list || !list[0])
        die("no device");
    p->ctx = ibv_open_device(list[0]);
    if (!p->ctx || !mlx5dv_is_supported(list[0]))
        die("no mlx5 device");
    ibv_free_device_list(list);
    p->pd = ibv_alloc_pd(p->ctx);
    p->cq = ibv_create_cq(p->ctx, 512, NULL, NULL, 0);
    p->heap = aligned_alloc(4096, HEAP);
    if (!p->pd || !p->cq || !p->heap)
        die("resources");
    memset(p->heap, 0, HEAP);
    p->mr = ibv_reg_mr(p->pd, p->heap, HEAP,
                       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                           IBV_ACCESS_REMOTE_ATOMIC);
    if (!p->mr)
        die("registration");
}

static inline void modify(struct peer *p, struct ibv_qp_attr *a, int mask)
{
    int rc = ibv_modify_qp(p->qp, a, mask);

    if (rc) {
        errno = rc;
        die("ibv_modify_qp");
    }
}

/* To itself. */
static inline void connect_qp(struct peer *p)
{
    struct ibv_port_attr port;
    struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT,
                             .port_num = 1,
                             .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                                                IBV_ACCESS_REMOTE_ATOMIC };

    if (ibv_query_port(p->ctx, 1, &port))
        die("port");
    modify(p, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTR,
                              .path_mtu = port.active_mtu,
                              .dest_qp_num = p->qp->qp_num,
                              .max_dest_rd_atomic = 16,
                              .min_rnr_timer = 12,
                              .ah_attr = { .dlid = port.lid, .port_num = 1 } };
    if (port.link_layer == IBV_LINK_LAYER_ETHERNET) {
        a.ah_attr.is_global = 1;
        a.ah_attr.grh.hop_limit = 64;
        if (ibv_query_gid(p->ctx, 1, 0, &a.ah_attr.grh.dgid))
            die("GID");
    }
    modify(p, &a,
           IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
               IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    a = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTS, .timeout = 18, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 16
    };
    modify(p, &a,
           IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
               IBV_QP_MAX_QP_RD_ATOMIC);
}

static inline void make_qp(struct peer *p)
{
    struct ibv_qp_init_attr_ex init = { .send_cq = p->cq,
                                        .recv_cq = p->cq,
                                        .qp_type = IBV_QPT_RC,
                                        .pd = p->pd,
                                        .cap = { .max_send_wr = 64,
                                                 .max_recv_wr = 1,
                                                 .max_send_sge = 1,
                                                 .max_recv_sge = 1,
                                                 .max_inline_data = SHMEMI_SQ_INLINE_MAX },
                                        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
                                        .send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE |
                                                          IBV_QP_EX_WITH_RDMA_READ |
                                                          IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
                                                          IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD };
    struct mlx5dv_obj obj = { .qp = { .out = &p->dv } };
    uint32_t log_depth = 0;

    p->qp = ibv_create_qp_ex(p->ctx, &init);
    if (!p->qp)
        die("queue pair");
    obj.qp.in = p->qp;
    if (mlx5dv_init_obj(&obj, MLX5DV_OBJ_QP))
        die("mlx5dv_init_obj");
    connect_qp(p);
    while (1u << log_depth < p->dv.sq.wqe_cnt)
        log_depth++;
    p->ring = aligned_alloc(64, 64u << log_depth);
    if (!p->ring ||
        shmemi_sq_init(&p->sq, p->ring, &p->record, &p->bell, p->cqe, p->qp->qp_num, log_depth, 0))
        die("our ring");
}

static inline void await_completion(struct peer *p)
{
    time_t end = time(NULL) + WAIT_SECONDS;
    struct ibv_wc wc;
    int n;

    do
        n = ibv_poll_cq(p->cq, 1, &wc);
    while (n == 0 && time(NULL) < end);
    if (n != 1 || wc.status != IBV_WC_SUCCESS)
        die(n == 1 ? ibv_wc_status_str(wc.status) : "no completion");
}

#endif
