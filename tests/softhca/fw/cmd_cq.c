/* SPDX-License-Identifier: BSD-3-Clause */
/* Firmware commands about completion queues. */
#include <string.h>

#include "fw/fw.h"

int fw_create_cq(const struct fw_cmd *cmd, struct fw_object *obj)
{
    const uint8_t *cqc = cmd->in + CREATE_CQ_CONTEXT;
    struct hca_cq_attr attr;
    struct hca_cq *cq;
    uint64_t bytes;

    if (cmd->in_len < CREATE_CQ_BYTES)
        return fw_fail(cmd, STATUS_BAD_INPUT_LEN, 0x30001, "input too short");
    memset(&attr, 0, sizeof attr);
    attr.log_entries = (uint8_t)prm_get(cqc, CQC_LOG_SIZE);
    attr.cqe_bytes = prm_get(cqc, CQC_CQE_SIZE) == 1 ? 128 : 64;
    attr.collapsed = prm_get(cqc, CQC_COLLAPSED);
    attr.ignore_overrun = prm_get(cqc, CQC_IGNORE_OVERRUN);
    attr.devx = true;
    if (attr.log_entries > 22 || prm_get(cqc, CQC_CQE_SIZE) > 1)
        return fw_fail(cmd, STATUS_BAD_PARAM, 0x30002, "queue or entry size");
    if (prm_get(cqc, CQC_COMPRESS))
        return fw_fail(cmd, STATUS_BAD_PARAM, 0x30003, "compression is not among the capabilities");
    bytes = (uint64_t)attr.cqe_bytes << (attr.collapsed ? 0 : attr.log_entries);
    if (fw_umem_buf((uint32_t)prm_get(cmd->in, CREATE_CQ_UMEM_ID), prm_get(cmd->in, CREATE_CQ_UMEM_OFFSET), bytes, 64, &attr.ring))
        return fw_fail(cmd, STATUS_BAD_PARAM, 0x30004, "ring is not inside its umem");
    if (fw_umem_buf((uint32_t)prm_get(cqc, CQC_DBREC_UMEM), prm_get(cqc, CQC_DBREC_ADDR), 8, 8, &attr.dbrec)) {
        hca_buf_fini(&attr.ring);
        return fw_fail(cmd, STATUS_BAD_PARAM, 0x30005, "doorbell record is not inside its umem");
    }
    if (hca_cq_new(hca_current, &attr, &cq)) {
        hca_buf_fini(&attr.ring);
        hca_buf_fini(&attr.dbrec);
        return fw_fail(cmd, STATUS_NO_RES, 0x30006, "no completion queue left");
    }
    cq->eqn = (uint32_t)prm_get(cqc, CQC_EQN);
    obj->kind = FW_CQ;
    obj->number = cq->cqn;
    obj->ptr = cq;
    prm_set(cmd->out, OUT_NUMBER, cq->cqn);
    hca_log(HCA_INFO, "cq 0x%x: DEVX, %u entries of %u bytes%s%s", cq->cqn, cq->entries, cq->cqe_bytes,
            cq->collapsed ? ", collapsed" : "", cq->ignore_overrun ? ", overrun ignored" : "");
    return 0;
}

/* Moderation and the like change nothing here: events fire as soon as they are due. */
int fw_modify_cq(const struct fw_cmd *cmd, struct hca_cq *cq)
{
    (void)cq;
    if (cmd->in_len < CREATE_CQ_CONTEXT + CQC_BYTES)
        return fw_fail(cmd, STATUS_BAD_INPUT_LEN, 0x30007, "input too short");
    return 0;
}

int fw_query_cq(const struct fw_cmd *cmd, const struct hca_cq *cq)
{
    uint8_t *cqc = cmd->out + QUERY_CQ_CONTEXT;

    if (cmd->out_len < QUERY_CQ_CONTEXT + CQC_BYTES)
        return fw_fail(cmd, STATUS_BAD_OUTPUT_LEN, 0x30008, "output too short");
    prm_set(cqc, CQC_CQE_SIZE, cq->cqe_bytes == 128);
    prm_set(cqc, CQC_COLLAPSED, cq->collapsed);
    prm_set(cqc, CQC_IGNORE_OVERRUN, cq->ignore_overrun);
    prm_set(cqc, CQC_LOG_SIZE, cq->log_entries);
    prm_set(cqc, CQC_EQN, cq->eqn);
    prm_set(cqc, CQC_CONSUMER, hca_dbrec_load(&cq->dbrec, 0) & 0xffffff);
    prm_set(cqc, CQC_PRODUCER, cq->producer & 0xffffff);
    return 0;
}
