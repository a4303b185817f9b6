/* SPDX-License-Identifier: BSD-3-Clause */
/* Two RC queue pairs of one process that talk to each other, over plain verbs: for tests of one call each. */
#ifndef SOFTHCA_TESTS_LOOP_H
#define SOFTHCA_TESTS_LOOP_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tap.h"

enum { DEPTH = 16, BYTES = 4096, WAIT_MS = 30000, ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE };

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_mr *mr;
static struct ibv_port_attr port;
static union ibv_gid gid;
static uint8_t *buffer;             /* BYTES, registered as mr */

static inline void die(const char *what)
{
    printf("Bail out! %s: %s\n", what, strerror(errno));
    exit(1);
}

static inline void open_device(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);

    if (!list || !list[0])
        die("no device");
    ctx = ibv_open_device(list[0]);
    ibv_free_device_list(list);
    buffer = aligned_alloc(4096, BYTES);
    pd = ctx ? ibv_alloc_pd(ctx) : NULL;
    mr = pd && buffer ? ibv_reg_mr(pd, buffer, BYTES, ACCESS) : NULL;
    if (!mr || ibv_query_port(ctx, 1, &port) || ibv_query_gid(ctx, 1, 0, &gid))
        die("device");
}

struct pair {
    struct ibv_cq *cq;
    struct ibv_srq *srq;
    struct ibv_qp *a, *b;
};

static inline struct ibv_qp *make_qp(struct pair *p)
{
    struct ibv_qp_init_attr init = { .send_cq = p->cq, .recv_cq = p->cq, .srq = p->srq, .qp_type = IBV_QPT_RC, .sq_sig_all = 1,
                                     .cap = { DEPTH, p->srq ? 0 : DEPTH, 1, 1, 0 } };
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = ACCESS };
    struct ibv_qp *qp = ibv_create_qp(pd, &init);

    if (!qp || ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
        die("queue pair");
    return qp;
}

static inline void connect_qp(struct ibv_qp *qp, uint32_t peer)
{
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR, .path_mtu = port.active_mtu, .dest_qp_num = peer,
                                .max_dest_rd_atomic = 1, .min_rnr_timer = 12,
                                .ah_attr = { .dlid = port.lid, .port_num = 1 } };

    if (port.link_layer == IBV_LINK_LAYER_ETHERNET) {
        attr.ah_attr.is_global = 1;
        attr.ah_attr.grh.dgid = gid;
        attr.ah_attr.grh.hop_limit = 64;
    }
    if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN
                                     | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
        die("RTR");
    attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1 };
    if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN
                                     | IBV_QP_MAX_QP_RD_ATOMIC))
        die("RTS");
}

static inline void make_pair(struct pair *p, int cqe, bool srq)
{
    struct ibv_srq_init_attr init = { .attr = { .max_wr = DEPTH, .max_sge = 1 } };

    p->cq = ibv_create_cq(ctx, cqe, NULL, NULL, 0);
    p->srq = srq ? ibv_create_srq(pd, &init) : NULL;
    if (!p->cq || (srq && !p->srq))
        die("completion or receive queue");
    p->a = make_qp(p);
    p->b = make_qp(p);
    connect_qp(p->a, p->b->qp_num);
    connect_qp(p->b, p->a->qp_num);
}

static inline void end_pair(struct pair *p)
{
    bool good = !ibv_destroy_qp(p->a) && !ibv_destroy_qp(p->b) && (!p->srq || !ibv_destroy_srq(p->srq)) && !ibv_destroy_cq(p->cq);

    tap_ok(good, "the objects can be destroyed after their events");
}

#endif
