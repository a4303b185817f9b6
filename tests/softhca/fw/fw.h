/* SPDX-License-Identifier: BSD-3-Clause */
/* The firmware: what the device can do, and the commands that DEVX passes to it. Device lock held in every call. */
#ifndef SOFTHCA_FW_H
#define SOFTHCA_FW_H

#include <rdma/ib_user_verbs.h>

#include "fw/prm.h"
#include "hca/objects.h"

/* Limits that verbs and firmware answers share. */
enum {
    FW_COMP_VECTORS = 1,
    FW_MAX_WQEBB = 32768,
    FW_MAX_CQE = (1 << 22) - 1,
    FW_MAX_SRQ_WR = 32767,
    FW_MAX_SGE = 30,
    FW_MAX_SRQ_SGE = 31,
    FW_MAX_MODERATION = 4095,
    FW_MAX_KLM = 1 << 16,
};

/* ---- answers of the capability table (caps.c) ---- */
void fw_query_device(const struct hca *hca, struct ib_uverbs_query_device_resp *resp);
void fw_query_device_ex(const struct hca *hca, struct ib_uverbs_ex_query_device_resp *resp);
void fw_query_port(const struct hca *hca, struct ib_uverbs_query_port_resp *resp);
/* out: CAP_BYTES, zeroed. 0 or a firmware status. */
int fw_hca_cap(uint16_t op_mod, uint8_t *cap);
/* The MAC address that goes with a GID. */
void fw_gid_mac(const uint8_t gid[16], uint8_t mac[6]);

/* ---- commands (cmd.c) ---- */

/* An object that a DEVX create command made. */
enum fw_kind { FW_CQ, FW_QP, FW_MKEY, FW_PD };
struct fw_object {
    enum fw_kind kind;
    uint32_t number;             /* as in the command's output */
    void *ptr;
};

struct fw_cmd {
    const uint8_t *in;
    size_t in_len;
    uint8_t *out;                /* zeroed, at least OUT_HEADER_BYTES */
    size_t out_len;
};

/* Each: 0, -EREMOTEIO with status and syndrome in out, or the kernel's -errno for what it does not let through. */
int fw_general(const struct fw_cmd *cmd);
int fw_object_create(const struct fw_cmd *cmd, struct fw_object **out);
/* Modify or query of a DEVX object, or of a verbs object (obj NULL). */
int fw_object_modify(const struct fw_cmd *cmd, const struct fw_object *obj, struct hca_qp *qp, struct hca_cq *cq);
int fw_object_query(const struct fw_cmd *cmd, const struct fw_object *obj, struct hca_qp *qp, struct hca_cq *cq);
int fw_object_destroy(struct fw_object *obj);

/* ---- for the files of fw/ ---- */

/* Stores status and syndrome; returns -EREMOTEIO. what says it in words, for the log. */
int fw_fail(const struct fw_cmd *cmd, enum prm_status status, uint32_t syndrome, const char *what);
int fw_create_cq(const struct fw_cmd *cmd, struct fw_object *obj);
int fw_modify_cq(const struct fw_cmd *cmd, struct hca_cq *cq);
int fw_query_cq(const struct fw_cmd *cmd, const struct hca_cq *cq);
int fw_create_qp(const struct fw_cmd *cmd, struct fw_object *obj);
int fw_modify_qp(const struct fw_cmd *cmd, struct hca_qp *qp);
int fw_query_qp(const struct fw_cmd *cmd, const struct hca_qp *qp);
int fw_create_mkey(const struct fw_cmd *cmd, struct fw_object *obj);
/* A part of a umem; -EINVAL when it does not exist or does not fit. */
int fw_umem_buf(uint32_t umem_id, uint64_t off, uint64_t len, uint64_t align, struct hca_buf *out);

#endif
