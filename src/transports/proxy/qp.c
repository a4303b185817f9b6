/* SPDX-License-Identifier: BSD-3-Clause */
/* qp.c - RC queue pairs of plain verbs: for any device whose queue pairs are connected by address. */
#include "proxy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    RNR_TIMER = 12,
    RNR_RETRY = 7,
    LEAST_DEPTH = 16,
    INLINE_FALLBACK = 64,
    IDLE_ENTRIES = 16,
};

static struct ibv_qp *make_qp(struct shmemi_verbs_nic *nic, struct ibv_cq *cq, unsigned depth, unsigned *inline_io)
{
    struct ibv_qp_init_attr attr = { .send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC };
    struct ibv_qp *qp;

    attr.cap.max_send_wr = depth;
    attr.cap.max_recv_wr = 1;
    attr.cap.max_send_sge = 1;
    attr.cap.max_recv_sge = 1;
    attr.cap.max_inline_data = *inline_io;
    errno = 0;
    qp = ibv_create_qp(nic->pd, &attr);
    if (qp && attr.cap.max_inline_data < *inline_io)
        *inline_io = attr.cap.max_inline_data;
    return qp;
}

static int refused(struct shmemi_verbs_nic *nic, const char *what, int status)
{
    char hint[320];

    shmemi_verbs_log(nic->config, SHMEMI_VERBS_ERR, SHMEMI_VERBS_AT ": cannot %s: %s%s", SHMEMI_VERBS_AT_ARGS(nic), what,
                     strerror(-status), shmemi_verbs_memlock_hint(status, hint, sizeof hint));
    return status;
}

/* Finds the depth and the inline size that the provider takes. */
static int probe(struct shmemi_verbs_nic *nic)
{
    static const unsigned inlines[] = { SHMEMI_PROXY_INLINE, INLINE_FALLBACK, 0 };
    unsigned most = (unsigned)nic->attr.orig_attr.max_qp_wr;

    nic->depth = (unsigned)nic->config->queue_depth;
    if (nic->depth > most)
        nic->depth = most;
    for (; nic->depth >= LEAST_DEPTH; nic->depth /= 2) {
        for (size_t i = 0; i < sizeof inlines / sizeof *inlines; i++) {
            unsigned inline_max = inlines[i];
            struct ibv_qp *qp = make_qp(nic, nic->idle_cq, nic->depth, &inline_max);

            if (!qp)
                continue;
            ibv_destroy_qp(qp);
            nic->nic.inline_max = inline_max;
            return 0;
        }
    }
    return refused(nic, "create an RC queue pair", errno ? -errno : -EIO);
}

int shmemi_proxy_open(struct shmemi_verbs_nic *nic)
{
    int status;

    if (nic->attr.orig_attr.atomic_cap == IBV_ATOMIC_NONE) {
        shmemi_verbs_log(nic->config, SHMEMI_VERBS_ERR,
                         SHMEMI_VERBS_AT " has no atomics, which OpenSHMEM needs: choose another with MARROW_HCA_LIST",
                         SHMEMI_VERBS_AT_ARGS(nic));
        return -EOPNOTSUPP;
    }
    errno = 0;
    nic->idle_cq = ibv_create_cq(nic->ctx, IDLE_ENTRIES, NULL, NULL, 0);
    if (!nic->idle_cq)
        return refused(nic, "create a completion queue", errno ? -errno : -EIO);
    status = probe(nic);
    if (status) {
        shmemi_proxy_close(nic);
        return status;
    }
    nic->nic.kind = SHMEMI_NIC_VERBS;
    nic->kind = &shmemi_proxy_kind;
    nic->nic.atomics_4 = false;
    nic->nic.message_max = nic->port.max_msg_sz < 1u << 30 ? nic->port.max_msg_sz : 1u << 30;
    return 0;
}

void shmemi_proxy_close(struct shmemi_verbs_nic *nic)
{
    if (nic->idle_cq)
        ibv_destroy_cq(nic->idle_cq);
    nic->idle_cq = NULL;
}

static int to_init(struct shmemi_verbs_nic *nic, struct ibv_qp *qp, int access)
{
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .pkey_index = (uint16_t)nic->config->pkey_index,
                                .port_num = (uint8_t)nic->nic.port, .qp_access_flags = (unsigned)access };
    int status = shmemi_verbs_status(
        ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));

    return status ? refused(nic, "initialise a queue pair", status) : 0;
}

static int to_rtr(struct shmemi_verbs_nic *nic, struct ibv_qp *qp, const struct shmemi_verbs_end *peer)
{
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR, .dest_qp_num = peer->qpn, .rq_psn = peer->psn,
                                .min_rnr_timer = RNR_TIMER };
    char name[SHMEMI_VERBS_NAME_BYTES];
    int status;

    attr.path_mtu = shmemi_verbs_path_mtu(nic, peer->address);
    attr.max_dest_rd_atomic = nic->own.rd_atomic;
    shmemi_verbs_ah_attr(nic, peer->address, &attr.ah_attr);
    status = shmemi_verbs_status(ibv_modify_qp(qp, &attr,
                                               IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN
                                                   | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER));
    if (status)
        shmemi_verbs_log(nic->config, SHMEMI_VERBS_ERR,
                         SHMEMI_VERBS_AT ": cannot connect a queue pair to %s: %s; is its address routed from here? "
                         "MARROW_IB_GID_INDEX chooses another address of the port",
                         SHMEMI_VERBS_AT_ARGS(nic), shmemi_verbs_address_name(peer->address, peer->pe, name, sizeof name),
                         strerror(-status));
    return status;
}

static int to_rts(struct shmemi_verbs_nic *nic, struct ibv_qp *qp, const struct shmemi_verbs_end *peer)
{
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS, .timeout = (uint8_t)nic->config->timeout,
                                .retry_cnt = (uint8_t)nic->config->retry_count, .rnr_retry = RNR_RETRY,
                                .sq_psn = peer->psn };
    int at_once = nic->attr.orig_attr.max_qp_init_rd_atom;
    int status;

    attr.max_rd_atomic = peer->address->rd_atomic;
    if (attr.max_rd_atomic > at_once)
        attr.max_rd_atomic = (uint8_t)at_once;
    status = shmemi_verbs_status(ibv_modify_qp(qp, &attr,
                                               IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY
                                                   | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC));
    return status ? refused(nic, "start a queue pair", status) : 0;
}

static void queue_free(struct shmemi_proxy_queue *q)
{
    if (q->qp)
        ibv_destroy_qp(q->qp);
    if (q->cq)
        ibv_destroy_cq(q->cq);
    pthread_mutex_destroy(&q->lock);
    free(q->requests);
    free(q);
}

static int create(struct shmemi_verbs_nic *nic, int how, const struct shmemi_nic_memory *memory, struct shmemi_nic_queue *nq,
                  uint32_t *qpn_out)
{
    struct shmemi_proxy_queue *q = memory ? NULL : calloc(1, sizeof *q);
    int status;

    (void)how;
    if (!q)
        return memory ? -EOPNOTSUPP : -ENOMEM;
    pthread_mutex_init(&q->lock, NULL);
    q->depth = nic->depth;
    q->inline_max = nic->nic.inline_max;
    q->requests = calloc(q->depth, sizeof *q->requests);
    errno = ENOMEM;
    if (q->requests)
        q->cq = ibv_create_cq(nic->ctx, (int)q->depth + 1, NULL, NULL, 0);
    if (q->cq)
        q->qp = make_qp(nic, q->cq, q->depth, &q->inline_max);
    status = q->qp ? to_init(nic, q->qp, 0) : refused(nic, "create a queue pair", errno ? -errno : -EIO);
    if (status) {
        queue_free(q);
        return status;
    }
    nq->priv = q;
    *qpn_out = q->qp->qp_num;
    return 0;
}

static int connect_queue(struct shmemi_verbs_nic *nic, struct shmemi_nic_queue *nq, const struct shmemi_verbs_end *peer)
{
    struct shmemi_proxy_queue *q = nq->priv;
    int status = to_rtr(nic, q->qp, peer);

    return status ? status : to_rts(nic, q->qp, peer);
}

static void fail(struct shmemi_verbs_nic *nic, struct shmemi_verbs_queue *common)
{
    struct shmemi_proxy_queue *q = (struct shmemi_proxy_queue *)common;

    (void)nic;
    __atomic_store_n(&q->dead, true, __ATOMIC_RELAXED);
}

static void destroy(struct shmemi_verbs_nic *nic, struct shmemi_nic_queue *nq)
{
    (void)nic;
    queue_free(nq->priv);
    nq->priv = NULL;
}

static int accept_queue(struct shmemi_verbs_nic *nic, const struct shmemi_verbs_end *peer, void **responder_out,
                        uint32_t *qpn_out)
{
    unsigned no_inline = 0;
    struct ibv_qp *qp = make_qp(nic, nic->idle_cq, 1, &no_inline);
    int status;

    if (!qp)
        return refused(nic, "create a queue pair", errno ? -errno : -EIO);
    status = to_init(nic, qp, IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
    if (!status)
        status = to_rtr(nic, qp, peer);
    if (status) {
        ibv_destroy_qp(qp);
        return status;
    }
    *responder_out = qp;
    *qpn_out = qp->qp_num;
    return 0;
}

static void drop(struct shmemi_verbs_nic *nic, void *responder)
{
    (void)nic;
    ibv_destroy_qp(responder);
}

const struct shmemi_verbs_kind shmemi_proxy_kind = {
    .create = create, .connect = connect_queue, .destroy = destroy, .fail = fail, .accept = accept_queue, .drop = drop
};

void shmemi_proxy_error(const struct shmemi_nic_queue *nq, struct shmemi_nic_error *out)
{
    const struct shmemi_proxy_queue *q = nq->priv;
    const struct shmemi_verbs_syndrome *s;

    out->syndrome = q->dead ? SHMEMI_VERBS_DEVICE_DEAD : shmemi_verbs_wc_syndrome(q->wc_status);
    out->vendor_syndrome = (uint8_t)q->vendor;
    s = shmemi_verbs_syndrome(out->syndrome);
    out->what = q->refused ? "work request refused by the verbs library" : s->what;
    out->advice = q->refused ? strerror(-q->error) : s->advice;
    out->operation = q->failed.opcode == IBV_WR_RDMA_WRITE  ? "RDMA write"
                     : q->failed.opcode == IBV_WR_RDMA_READ ? "RDMA read"
                                                            : "atomic";
    out->raddr = q->failed.raddr;
}
