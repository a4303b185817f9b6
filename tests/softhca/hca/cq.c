/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues: entry layout, owner bit, collapsed rings, overrun, arming. Layout facts: struct mlx5_cqe64, mlx5_err_cqe. */
#include <stdlib.h>
#include <string.h>

#include "hca/objects.h"
#include "uverbs/uverbs.h"

enum {
    DBREC_CI = 0,
    DBREC_ARM = 1,
    INDEX_MASK = 0xffffff,
    ARM_SOLICITED = 1 << 24,
    CQE_RESIZE = 5,              /* opcode of the mark at which a resized ring ends */
};

/* Software never reads the arm word, so the device may park a value there that no arm request has. */
#define NOT_ARMED 0xffffffffu

static int32_t index_diff(uint32_t a, uint32_t b)
{
    return (int32_t)((a - b) << 8) >> 8;
}

int hca_cq_new(struct hca *hca, struct hca_cq_attr *attr, struct hca_cq **out)
{
    uint32_t cqn = 1;
    struct hca_cq *cq;

    while (cqn < HCA_MAX_CQ && hca->cq[cqn])
        cqn++;
    if (cqn == HCA_MAX_CQ)
        return -ENOMEM;
    cq = calloc(1, sizeof *cq);
    if (!cq)
        return -ENOMEM;
    cq->cqn = cqn;
    cq->ring = attr->ring;
    cq->dbrec = attr->dbrec;
    cq->log_entries = attr->log_entries;
    cq->entries = 1u << attr->log_entries;
    cq->cqe_bytes = attr->cqe_bytes;
    cq->collapsed = attr->collapsed;
    cq->ignore_overrun = attr->ignore_overrun;
    cq->devx = attr->devx;
    memset(&attr->ring, 0, sizeof attr->ring);
    memset(&attr->dbrec, 0, sizeof attr->dbrec);
    hca_dbrec_store(&cq->dbrec, DBREC_ARM, NOT_ARMED);
    hca->cq[cqn] = cq;
    if (cqn >= hca->cq_top)
        hca->cq_top = cqn + 1;
    *out = cq;
    return 0;
}

int hca_cq_free(struct hca *hca, struct hca_cq *cq)
{
    if (cq->users)
        return -EBUSY;
    eng_cq_gone(cq);
    hca->cq[cq->cqn] = NULL;
    while (hca->cq_top > 1 && !hca->cq[hca->cq_top - 1])
        hca->cq_top--;
    hca_buf_fini(&cq->ring);
    hca_buf_fini(&cq->dbrec);
    free(cq);
    return 0;
}

struct hca_cq *hca_cq_find(struct hca *hca, uint32_t cqn)
{
    return cqn < HCA_MAX_CQ ? hca->cq[cqn] : NULL;
}

/*
 * Puts 64 bytes into the ring at the producer index. The last word, which holds the owner bit, is stored last and with
 * release: it pairs with the acquire (or the read barrier) by which software finds the entry valid.
 */
static void put_entry(struct hca_cq *cq, struct mlx5_cqe64 *cqe)
{
    uint32_t slot = cq->collapsed ? 0 : cq->producer & (cq->entries - 1), last;
    uint64_t off = (uint64_t)slot * cq->cqe_bytes + (cq->cqe_bytes == 128 ? 64 : 0);
    const size_t body = sizeof *cqe - sizeof last;

    cqe->op_own |= cq->producer >> cq->log_entries & 1;
    memcpy(&last, (uint8_t *)cqe + body, sizeof last);
    hca_buf_write(&cq->ring, off, cqe, body);
    if (cq->ring.host)
        __atomic_store_n((uint32_t *)(void *)(cq->ring.host + off + body), last, __ATOMIC_RELEASE);
    else
        hca_buf_write(&cq->ring, off + body, &last, sizeof last);
    cq->producer++;
}

static void fill_good(struct mlx5_cqe64 *out, const struct hca_cqe *cqe)
{
    out->slid = htobe16(cqe->slid);
    out->flags_rqpn = htobe32((cqe->src_qpn & 0xffffff) | (uint32_t)(cqe->sl & 0xf) << 24
                              | (cqe->grh ? 1u << 28 : 0) | (uint32_t)(cqe->rocev2_l3 & 3) << 28);
    out->srqn_uidx = htobe32(cqe->uidx);
    out->imm_inval_pkey = cqe->imm_be;
    out->byte_cnt = htobe32(cqe->byte_cnt);
    out->timestamp = htobe64(hca_now_ns());
    out->sop_drop_qpn = htobe32((uint32_t)cqe->send_opcode << 24 | cqe->qpn);
    out->wqe_counter = htobe16(cqe->wqe_counter);
    out->op_own = (uint8_t)(cqe->opcode << 4 | (cqe->solicited ? 2 : 0));
}

static void fill_error(struct mlx5_cqe64 *cqe64, const struct hca_cqe *cqe)
{
    struct mlx5_err_cqe *out = (struct mlx5_err_cqe *)cqe64;

    out->srqn = htobe32(cqe->uidx);
    out->vendor_err_synd = cqe->vendor_syndrome;
    out->syndrome = cqe->syndrome;
    out->s_wqe_opcode_qpn = htobe32((uint32_t)cqe->send_opcode << 24 | cqe->qpn);
    out->wqe_counter = htobe16(cqe->wqe_counter);
    out->op_own = (uint8_t)(cqe->opcode << 4);
}

static bool full(const struct hca_cq *cq)
{
    uint32_t consumer;

    if (cq->ignore_overrun || cq->collapsed)
        return false;
    consumer = hca_dbrec_load(&cq->dbrec, DBREC_CI);
    return ((cq->producer - consumer) & INDEX_MASK) >= cq->entries;
}

bool hca_cq_write(struct hca_cq *cq, const struct hca_cqe *cqe)
{
    bool error = cqe->opcode == MLX5_CQE_REQ_ERR || cqe->opcode == MLX5_CQE_RESP_ERR;
    struct mlx5_cqe64 entry;

    if (cq->overrun || full(cq)) {
        if (!cq->overrun) {
            cq->overrun = true;
            hca_log(HCA_LINT, "cq 0x%x: overrun, completion of qp 0x%06x wqe %u is lost", cq->cqn, cqe->qpn, cqe->wqe_counter);
            hca_cq_event(cq, IBV_EVENT_CQ_ERR);
        }
        return false;
    }
    memset(&entry, 0, sizeof entry);
    if (error)
        fill_error(&entry, cqe);
    else
        fill_good(&entry, cqe);
    put_entry(cq, &entry);
    if (cqe->solicited || error)
        cq->solicited = cq->producer;
    hca_cq_check_arm(cq);
    return true;
}

/*
 * An event is due when the producer is past the consumer index that came with the arm request and past what the previous
 * event announced: clients arm before they poll, and would get a second event for completions that they then drain.
 */
void hca_cq_check_arm(struct hca_cq *cq)
{
    uint32_t raw, consumer, ahead;

    if (!cq->comp.file && !cq->devx_events)
        return;
    raw = hca_dbrec_load(&cq->dbrec, DBREC_ARM);
    if (raw == NOT_ARMED)
        return;
    consumer = raw & INDEX_MASK;
    ahead = (cq->producer - consumer) & INDEX_MASK;
    if (!ahead || ahead > cq->entries || index_diff(cq->producer, cq->notified) <= 0)
        return;
    if ((raw & ARM_SOLICITED) && index_diff(cq->solicited, consumer) <= 0)
        return;
    if (cq->dbrec.host) {
        uint32_t seen = htobe32(raw);

        /* Fails when software armed again meanwhile: the next look sees that. */
        if (!__atomic_compare_exchange_n((uint32_t *)(void *)cq->dbrec.host + DBREC_ARM, &seen, NOT_ARMED, false, __ATOMIC_ACQ_REL,
                                         __ATOMIC_ACQUIRE))
            return;
    } else {
        hca_dbrec_store(&cq->dbrec, DBREC_ARM, NOT_ARMED);
    }
    cq->notified = cq->producer;
    uv_event_completion(cq);
}

void hca_cq_event(struct hca_cq *cq, enum ibv_event_type type)
{
    uv_event_async(&cq->async, type);
}

int hca_cq_resize(struct hca_cq *cq, struct hca_buf *ring, uint8_t log_entries, uint16_t cqe_bytes)
{
    struct mlx5_cqe64 mark;
    uint32_t pending = (cq->producer - hca_dbrec_load(&cq->dbrec, DBREC_CI)) & INDEX_MASK;

    if (pending > 1u << log_entries || pending >= cq->entries)
        return -EINVAL;
    memset(&mark, 0, sizeof mark);
    mark.op_own = CQE_RESIZE << 4;
    put_entry(cq, &mark);        /* takes an index of its own: libmlx5 moves the entries before it up by one */
    hca_buf_fini(&cq->ring);
    cq->ring = *ring;
    memset(ring, 0, sizeof *ring);
    cq->log_entries = log_entries;
    cq->entries = 1u << log_entries;
    cq->cqe_bytes = cqe_bytes;
    return 0;
}
