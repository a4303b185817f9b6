/* SPDX-License-Identifier: BSD-3-Clause */
/* qp.c - completion queues and RC queue pairs made with DEVX, whose rings this process writes itself. */
#include "ibgda.h"
#include "prm.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    USER_INDEX_MASK = 0xffffff,
    RNR_TIMER = 12,       /* 0.64 ms; nothing here ever waits for a receive request */
    RNR_RETRY = 7,
    UDP_PORTS = 0xc000,   /* RoCE v2 source ports: routers spread flows by them */
    UDP_PORT_MASK = 0x3fff,
};

/* Of a queue that sends (struct shmemi_nic_queue's priv), or of one that answers. */
struct queue {
    struct shmemi_verbs_queue common; /* first */
    struct shmemi_ibgda_place *place; /* NULL: the shared idle one */
    struct mlx5dv_devx_obj *cq, *qp;
    struct shmemi_ibgda_page *page; /* without a doorbell record: its own, else NULL */
    uint32_t cqn, qpn;
};

int shmemi_ibgda_make_cq(struct shmemi_verbs_nic *nic, const struct shmemi_ibgda_place *place, bool idle,
                         struct mlx5dv_devx_obj **cq_out, uint32_t *cqn_out)
{
    uint8_t in[PRM_CREATE_CQ_BYTES] = { 0 }, *cqc = in + PRM_CQC;
    uint32_t umem = place->piece->umem->umem_id;
    int status;

    shmemi_prm_set(in, PRM_OPCODE, PRM_CREATE_CQ);
    shmemi_prm_set(in, PRM_CQ_UMEM_OFFSET, place->cq);
    shmemi_prm_set(in, PRM_CQ_UMEM_ID, umem);
    shmemi_prm_set(in, PRM_CQ_UMEM_VALID, 1);
    shmemi_prm_set(cqc, CQC_DBR_UMEM_VALID, 1);
    shmemi_prm_set(cqc, CQC_COLLAPSED, 1);
    shmemi_prm_set(cqc, CQC_IGNORE_OVERRUN, 1);
    shmemi_prm_set(cqc, CQC_DBR_UMEM_ID, umem);
    shmemi_prm_set(cqc, CQC_LOG_SIZE, SHMEMI_IBGDA_LOG_CQ);
    shmemi_prm_set(cqc, CQC_UAR_PAGE, (idle ? nic->ibgda->idle_uar : nic->ibgda->uar)->page_id);
    shmemi_prm_set(cqc, CQC_EQN, nic->ibgda->eqn);
    shmemi_prm_set(cqc, CQC_DBR_ADDR, place->records + SHMEMI_IBGDA_CQ_RECORD);
    *cq_out = shmemi_ibgda_create(nic, "create a completion queue", in, sizeof in, cqn_out, &status);
    return status;
}

static int to_init(struct shmemi_verbs_nic *nic, struct queue *q, bool answers)
{
    uint8_t in[PRM_MODIFY_QP_BYTES] = { 0 }, *qpc = in + PRM_QPC;

    shmemi_prm_set(in, PRM_OPCODE, PRM_RST2INIT_QP);
    shmemi_prm_set(in, PRM_OBJECT, q->qpn);
    shmemi_prm_set(qpc, QPC_PM_STATE, PRM_MIGRATED);
    shmemi_prm_set(qpc, QPC_PORT, (unsigned)nic->nic.port);
    shmemi_prm_set(qpc, QPC_PKEY_INDEX, (unsigned)nic->config->pkey_index);
    shmemi_prm_set(qpc, QPC_ATOMIC_MODE, PRM_ATOMIC_8_BYTES_EXTENDED);
    shmemi_prm_set(qpc, QPC_RRE, answers);
    shmemi_prm_set(qpc, QPC_RWE, answers);
    shmemi_prm_set(qpc, QPC_RAE, answers);
    return shmemi_ibgda_modify(nic, "initialise a queue pair (RST2INIT)", q->qp, in, sizeof in);
}

static uint32_t page_of(const struct shmemi_verbs_nic *nic, const struct queue *q, bool answers)
{
    return (answers ? nic->ibgda->idle_uar : q->page ? q->page->uar : nic->ibgda->uar)->page_id;
}

static int make_qp(struct shmemi_verbs_nic *nic, struct queue *q, unsigned log_blocks, bool answers)
{
    const struct shmemi_ibgda_place *place = q->place ? q->place : nic->ibgda->idle_place;
    uint8_t in[PRM_CREATE_QP_BYTES] = { 0 }, *qpc = in + PRM_QPC;
    uint32_t umem = place->piece->umem->umem_id;
    uint32_t index = __atomic_fetch_add(&nic->ibgda->next_index, 1, __ATOMIC_RELAXED);
    int status;

    shmemi_prm_set(in, PRM_OPCODE, PRM_CREATE_QP);
    shmemi_prm_set(in, PRM_QP_UMEM_OFFSET, place->ring);
    shmemi_prm_set(in, PRM_QP_UMEM_ID, umem);
    shmemi_prm_set(in, PRM_QP_UMEM_VALID, 1);
    shmemi_prm_set(qpc, QPC_ST, PRM_ST_RC);
    shmemi_prm_set(qpc, QPC_PM_STATE, PRM_MIGRATED);
    shmemi_prm_set(qpc, QPC_PD, nic->ibgda->pdn);
    shmemi_prm_set(qpc, QPC_LOG_SQ_SIZE, log_blocks);
    shmemi_prm_set(qpc, QPC_UAR_PAGE, page_of(nic, q, answers));
    shmemi_prm_set(qpc, QPC_SEND_DBR_MODE, q->page ? PRM_NO_DBR_EXT : 0);
    shmemi_prm_set(qpc, QPC_USER_INDEX, index & USER_INDEX_MASK);
    shmemi_prm_set(qpc, QPC_CQN_SND, q->cqn);
    shmemi_prm_set(qpc, QPC_CQN_RCV, q->cqn);
    shmemi_prm_set(qpc, QPC_RQ_TYPE, PRM_RQ_NONE);
    shmemi_prm_set(qpc, QPC_DBR_UMEM_VALID, 1);
    shmemi_prm_set(qpc, QPC_DBR_UMEM_ID, umem);
    shmemi_prm_set(qpc, QPC_DBR_ADDR, place->records + SHMEMI_IBGDA_QP_RECORD);
    q->qp = shmemi_ibgda_create(nic, "create a queue pair", in, sizeof in, &q->qpn, &status);
    return status ? status : to_init(nic, q, answers);
}

/* The MAC of a RoCE peer: the kernel resolves it for an address handle, from which libmlx5 hands it out. */
static int peer_mac(struct shmemi_verbs_nic *nic, struct ibv_ah_attr *attr, int pe, uint8_t mac[6])
{
    struct mlx5dv_ah dv = { 0 };
    struct mlx5dv_obj obj = { 0 };
    char name[SHMEMI_VERBS_NAME_BYTES];
    struct ibv_ah *ah;
    int status = 0;

    errno = 0;
    ah = ibv_create_ah(nic->pd, attr);
    obj.ah.in = ah;
    obj.ah.out = &dv;
    if (!ah || mlx5dv_init_obj(&obj, MLX5DV_OBJ_AH)) {
        status = errno ? -errno : -EIO;
        shmemi_verbs_log(nic->config, SHMEMI_VERBS_ERR,
                         SHMEMI_VERBS_AT " finds no way to %s: %s; is the peer's address routed from here? "
                         "MARROW_IB_GID_INDEX chooses another address of the port",
                         SHMEMI_VERBS_AT_ARGS(nic), shmemi_verbs_peer_name(nic, pe, name, sizeof name), strerror(-status));
    } else {
        memcpy(mac, dv.av->rmac, 6);
    }
    if (ah)
        ibv_destroy_ah(ah);
    return status;
}

static int put_path(struct shmemi_verbs_nic *nic, uint8_t *qpc, const struct queue *q, const struct shmemi_verbs_end *peer)
{
    struct ibv_ah_attr attr;
    int status;

    shmemi_verbs_ah_attr(nic, peer->address, &attr);
    shmemi_prm_set(qpc, QPC_PORT, attr.port_num);
    shmemi_prm_set(qpc, QPC_PKEY_INDEX, (unsigned)nic->config->pkey_index);
    shmemi_prm_set(qpc, QPC_ACK_TIMEOUT, (unsigned)nic->config->timeout);
    if (attr.is_global) {
        shmemi_prm_set(qpc, QPC_SGID_INDEX, attr.grh.sgid_index);
        shmemi_prm_set(qpc, QPC_HOP_LIMIT, attr.grh.hop_limit);
        shmemi_prm_set(qpc, QPC_TCLASS, attr.grh.traffic_class);
        memcpy(qpc + QPC_RGID_BYTE, attr.grh.dgid.raw, sizeof attr.grh.dgid.raw);
    }
    if (nic->port.link_layer != IBV_LINK_LAYER_ETHERNET) {
        shmemi_prm_set(qpc, QPC_GRH, attr.is_global);
        shmemi_prm_set(qpc, QPC_RLID, attr.dlid);
        shmemi_prm_set(qpc, QPC_SL, attr.sl);
        return 0;
    }
    status = peer_mac(nic, &attr, peer->pe, qpc + QPC_RMAC_BYTE);
    shmemi_prm_set(qpc, QPC_ETH_PRIO, attr.sl);
    shmemi_prm_set(qpc, QPC_DSCP, attr.grh.traffic_class >> 2);
    shmemi_prm_set(qpc, QPC_UDP_SPORT, UDP_PORTS | ((q->qpn * 0x9e3779b1u >> 16 ^ peer->qpn) & UDP_PORT_MASK));
    return status;
}

static unsigned log2_floor(unsigned value)
{
    return value > 1 ? 31 - (unsigned)__builtin_clz(value) : 0;
}

static int to_rtr(struct shmemi_verbs_nic *nic, struct queue *q, const struct shmemi_verbs_end *peer, bool answers)
{
    uint8_t in[PRM_MODIFY_QP_BYTES] = { 0 }, *qpc = in + PRM_QPC;
    int status;

    shmemi_prm_set(in, PRM_OPCODE, PRM_INIT2RTR_QP);
    shmemi_prm_set(in, PRM_OBJECT, q->qpn);
    if (answers) {
        shmemi_prm_set(in, PRM_QP_OPT_MASK, PRM_OPT_RRE | PRM_OPT_RWE | PRM_OPT_RAE);
        shmemi_prm_set(qpc, QPC_RRE, 1);
        shmemi_prm_set(qpc, QPC_RWE, 1);
        shmemi_prm_set(qpc, QPC_RAE, 1);
    }
    shmemi_prm_set(qpc, QPC_ATOMIC_MODE, PRM_ATOMIC_8_BYTES_EXTENDED);
    shmemi_prm_set(qpc, QPC_PM_STATE, PRM_MIGRATED);
    shmemi_prm_set(qpc, QPC_MTU, shmemi_verbs_path_mtu(nic, peer->address));
    shmemi_prm_set(qpc, QPC_LOG_MSG_MAX, PRM_LOG_MSG_MAX);
    shmemi_prm_set(qpc, QPC_REMOTE_QPN, peer->qpn);
    shmemi_prm_set(qpc, QPC_MIN_RNR_NAK, RNR_TIMER);
    shmemi_prm_set(qpc, QPC_LOG_RRA_MAX, log2_floor(nic->own.rd_atomic));
    shmemi_prm_set(qpc, QPC_NEXT_RCV_PSN, peer->psn);
    status = put_path(nic, qpc, q, peer);
    return status ? status : shmemi_ibgda_modify(nic, "connect a queue pair (INIT2RTR)", q->qp, in, sizeof in);
}

static int to_rts(struct shmemi_verbs_nic *nic, struct queue *q, const struct shmemi_verbs_end *peer)
{
    uint8_t in[PRM_MODIFY_QP_BYTES] = { 0 }, *qpc = in + PRM_QPC;
    unsigned at_once = (unsigned)nic->attr.orig_attr.max_qp_init_rd_atom;

    if (at_once > peer->address->rd_atomic)
        at_once = peer->address->rd_atomic;
    shmemi_prm_set(in, PRM_OPCODE, PRM_RTR2RTS_QP);
    shmemi_prm_set(in, PRM_OBJECT, q->qpn);
    shmemi_prm_set(qpc, QPC_PM_STATE, PRM_MIGRATED);
    shmemi_prm_set(qpc, QPC_ACK_TIMEOUT, (unsigned)nic->config->timeout);
    shmemi_prm_set(qpc, QPC_RETRY_COUNT, (unsigned)nic->config->retry_count);
    shmemi_prm_set(qpc, QPC_RNR_RETRY, RNR_RETRY);
    shmemi_prm_set(qpc, QPC_LOG_SRA_MAX, log2_floor(at_once));
    shmemi_prm_set(qpc, QPC_NEXT_SEND_PSN, peer->psn);
    return shmemi_ibgda_modify(nic, "start a queue pair (RTR2RTS)", q->qp, in, sizeof in);
}

/* Queue pair first: it refers to all else. */
static void queue_free(struct shmemi_verbs_nic *nic, struct queue *q)
{
    if (q->qp)
        mlx5dv_devx_obj_destroy(q->qp);
    if (q->cq)
        mlx5dv_devx_obj_destroy(q->cq);
    if (q->page)
        shmemi_ibgda_page_give(nic, q->page);
    if (q->place)
        shmemi_ibgda_place_give(q->place);
    free(q);
}

static int fill_sq(const struct shmemi_verbs_nic *nic, const struct queue *q, unsigned log_blocks, struct shmemi_sq *sq)
{
    const struct shmemi_nic_memory *memory = q->place->piece->arena->memory;
    uint8_t *base = q->place->piece->base;
    void *records = base + q->place->records + SHMEMI_IBGDA_QP_RECORD;
    void *bell = q->page ? (char *)q->page->uar->base_addr + SHMEMI_IBGDA_BARE_BELL : nic->ibgda->uar->reg_addr;
    uint32_t flags = (memory && memory->near ? SHMEMI_SQ_NEAR : 0) | (q->page ? SHMEMI_SQ_NO_RECORD : 0);
    uint32_t elsewhere[16]; /* the real entry is filled already */

    if (shmemi_sq_init(sq, base + q->place->ring, (uint32_t *)records + MLX5_SND_DBR, bell, elsewhere, q->qpn, log_blocks, flags))
        return -EINVAL;
    sq->cqe = (uint32_t *)(void *)(base + q->place->cq);
    return 0;
}

static int create(struct shmemi_verbs_nic *nic, int how, const struct shmemi_nic_memory *memory, struct shmemi_nic_queue *nq,
                  uint32_t *qpn_out)
{
    unsigned log_blocks = log2_floor((unsigned)(nic->ibgda->arena.ring_bytes / SHMEMI_IBGDA_BLOCK));
    struct queue *q = calloc(1, sizeof *q);
    int status = q ? shmemi_ibgda_place_take(nic, memory, &q->place) : -ENOMEM;

    if (!status && how & SHMEMI_NIC_NO_RECORD && !nic->nic.record_why)
        q->page = shmemi_ibgda_page_take(nic); /* NULL, there is none left: it has a record */
    if (!status)
        status = shmemi_ibgda_make_cq(nic, q->place, false, &q->cq, &q->cqn);
    if (!status)
        status = make_qp(nic, q, log_blocks, false);
    if (!status)
        status = fill_sq(nic, q, log_blocks, &nq->sq);
    if (status) {
        if (q)
            queue_free(nic, q);
        return status;
    }
    nq->priv = q;
    *qpn_out = q->qpn;
    return 0;
}

static int connect_queue(struct shmemi_verbs_nic *nic, struct shmemi_nic_queue *nq, const struct shmemi_verbs_end *peer)
{
    struct queue *q = nq->priv;
    int status = to_rtr(nic, q, peer, false);

    return status ? status : to_rts(nic, q, peer);
}

/* Writes the error completion that the device no longer does; host and GPU threads find it as any other. */
static void fail(struct shmemi_verbs_nic *nic, struct shmemi_verbs_queue *common)
{
    struct queue *q = (struct queue *)common;
    struct mlx5_err_cqe *cqe = (void *)(q->place->piece->base + q->place->cq), dead = { .syndrome = SHMEMI_VERBS_DEVICE_DEAD };
    const struct shmemi_nic_memory *memory = q->place->piece->arena->memory;
    uint32_t last = htobe32(0xffffu << 16 | MLX5_CQE_REQ_ERR << 4);

    (void)nic;
    dead.s_wqe_opcode_qpn = htobe32(0xffu << 24 | q->qpn);
    if (memory) {
        memory->copy(cqe, &dead, offsetof(struct mlx5_err_cqe, wqe_counter));
        memory->copy(&cqe->wqe_counter, &last, sizeof last);
        return;
    }
    memcpy(cqe, &dead, offsetof(struct mlx5_err_cqe, wqe_counter));
    /* Pairs with the acquire in shmemi_sq_poll: the words above are read after this one. */
    __atomic_store_n((uint32_t *)(void *)&cqe->wqe_counter, last, __ATOMIC_RELEASE);
}

static void destroy(struct shmemi_verbs_nic *nic, struct shmemi_nic_queue *nq)
{
    queue_free(nic, nq->priv);
    nq->priv = NULL;
}

/* One that only answers sends nothing, so its ring, record and completion queue can be those of all others. */
static int accept_queue(struct shmemi_verbs_nic *nic, const struct shmemi_verbs_end *peer, void **responder_out,
                        uint32_t *qpn_out)
{
    struct queue *q = calloc(1, sizeof *q);
    int status;

    if (!q)
        return -ENOMEM;
    q->cqn = nic->ibgda->idle_cqn;
    status = make_qp(nic, q, 0, true);
    if (!status)
        status = to_rtr(nic, q, peer, true);
    if (status) {
        queue_free(nic, q);
        return status;
    }
    *responder_out = q;
    *qpn_out = q->qpn;
    return 0;
}

static void drop(struct shmemi_verbs_nic *nic, void *responder)
{
    queue_free(nic, responder);
}

const struct shmemi_verbs_kind shmemi_ibgda_kind = {
    .create = create, .connect = connect_queue, .destroy = destroy, .fail = fail, .accept = accept_queue, .drop = drop
};

const char *shmemi_ibgda_opcode_name(uint8_t opcode)
{
    switch (opcode) {
    case MLX5_OPCODE_NOP:
        return "no operation";
    case MLX5_OPCODE_RDMA_WRITE:
        return "RDMA write";
    case MLX5_OPCODE_RDMA_READ:
        return "RDMA read";
    case MLX5_OPCODE_ATOMIC_CS:
    case MLX5_OPCODE_ATOMIC_FA:
    case MLX5_OPCODE_ATOMIC_MASKED_CS:
    case MLX5_OPCODE_ATOMIC_MASKED_FA:
        return "atomic";
    default:
        return "unknown operation";
    }
}

/* The failed entry is still in the ring: a queue in error takes no more of them. */
static void explain(struct shmemi_nic_queue *nq, bool ring_known, struct shmemi_nic_error *out)
{
    const struct shmemi_sq *sq = &nq->sq;
    size_t slot = sq->error >> 32 & (sq->depth - 1);
    const struct mlx5_wqe_ctrl_seg *ctrl = (const void *)(sq->ring + slot * SHMEMI_IBGDA_BLOCK);
    const struct mlx5_wqe_raddr_seg *remote = (const void *)(ctrl + 1);
    const struct shmemi_verbs_syndrome *s;
    uint8_t opcode = (uint8_t)(sq->error >> 48 & 0xff);

    out->syndrome = (uint8_t)(sq->error & 0xff);
    out->vendor_syndrome = (uint8_t)(sq->error >> 8 & 0xff);
    s = shmemi_verbs_syndrome(out->syndrome);
    out->what = s->what;
    out->advice = s->advice;
    out->operation = shmemi_ibgda_opcode_name(opcode);
    /* An entry that is not known is not there to be read either. */
    if (ring_known && opcode != MLX5_OPCODE_NOP && opcode != 0xff)
        out->raddr = be64toh(remote->raddr);
    if (ring_known && out->syndrome == MLX5_CQE_SYNDROME_WR_FLUSH_ERR)
        shmemi_ibgda_probe(nq, out);
}

/* A ring in a device's memory is looked at in a copy. */
void shmemi_ibgda_error(struct shmemi_nic_queue *nq, struct shmemi_nic_error *out)
{
    const struct queue *q = nq->priv;
    size_t bytes = (size_t)nq->sq.depth * SHMEMI_IBGDA_BLOCK;
    struct shmemi_nic_queue view = *nq;
    bool known;

    if (!q->place->piece->arena->memory) {
        explain(nq, true, out);
        return;
    }
    view.sq.ring = malloc(bytes);
    known = view.sq.ring && shmemi_ibgda_place_copy(q->place, view.sq.ring, nq->sq.ring, bytes) == 0;
    explain(known ? &view : nq, known, out);
    free(view.sq.ring);
}
