/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What hca/ offers to the command side (uverbs/, fw/): making, changing and destroying device objects. Everything is
 * called with the device lock held unless said. Results are 0 or -errno, the errno being the kernel's.
 */
#ifndef SOFTHCA_OBJECTS_H
#define SOFTHCA_OBJECTS_H

#include "hca/hca.h"

/* Reads the environment; once, at load time. */
void hca_config_read(void);

/* Opens wire and engine at the first use; later calls do nothing. Takes the lock itself. */
int hca_device_start(unsigned index);
/* The identity is known without an engine: wire opened, no thread. Takes the lock itself. */
int hca_device_identify(unsigned index);
/* All of them. */
void hca_device_stop(void);
/* pthread_atfork handlers. */
void hca_fork_prepare(void);
void hca_fork_parent(void);
void hca_fork_child(void);

/* ---- protection domains ---- */
int hca_pd_new(struct hca *hca, struct hca_pd **out);
int hca_pd_free(struct hca *hca, struct hca_pd *pd);
struct hca_pd *hca_pd_find(struct hca *hca, uint32_t pdn);

/* ---- doorbell pages ---- */
/* page: 4 KiB that application and engine share; the caller maps and unmaps it. */
int hca_uar_new(struct hca *hca, uint8_t *page, bool dedicated, struct hca_uar **out);
int hca_uar_free(struct hca *hca, struct hca_uar *uar);
struct hca_uar *hca_uar_find(struct hca *hca, uint32_t page_id);

/* ---- memory keys ---- */
struct hca_mr_attr {
    struct hca_pd *pd;
    uint64_t addr, len, iova;
    uint32_t access;
    int dmabuf_fd;               /* -1: plain memory at addr; else addr is the offset in that buffer */
};
int hca_access_check(uint32_t access);
int hca_mr_new(struct hca *hca, const struct hca_mr_attr *attr, struct hca_key **out);
/* change: IBV_REREG_MR_*. */
int hca_mr_change(struct hca *hca, struct hca_key *mr, uint32_t change, const struct hca_mr_attr *attr);
/* Indirect key with room for max_klm entries, free until configured. variant: low byte of the key. */
int hca_mkey_new(struct hca *hca, struct hca_pd *pd, uint32_t max_klm, uint8_t variant, struct hca_key **out);
int hca_mw_new(struct hca *hca, struct hca_pd *pd, bool type2, struct hca_key **out);
int hca_key_free(struct hca *hca, struct hca_key *key);

/* ---- user memory of DEVX ---- */
int hca_umem_new(struct hca *hca, const struct hca_mr_attr *attr, struct hca_umem **out);
int hca_umem_free(struct hca *hca, struct hca_umem *umem);
struct hca_umem *hca_umem_find(struct hca *hca, uint32_t id);

/* ---- completion queues ---- */
struct hca_cq_attr {
    struct hca_buf ring, dbrec;  /* moved into the CQ on success */
    uint8_t log_entries;
    uint16_t cqe_bytes;
    bool collapsed, ignore_overrun, devx;
};
int hca_cq_new(struct hca *hca, struct hca_cq_attr *attr, struct hca_cq **out);
/* Writes the mark into the old ring that tells libmlx5 where it ends, then uses the new one. */
int hca_cq_resize(struct hca_cq *cq, struct hca_buf *ring, uint8_t log_entries, uint16_t cqe_bytes);
int hca_cq_free(struct hca *hca, struct hca_cq *cq);

/* ---- shared receive queues ---- */
struct hca_srq_attr {
    struct hca_pd *pd;
    struct hca_buf ring, dbrec;
    uint32_t entries;
    uint8_t log_stride;
    uint32_t max_sge, uidx, limit;
};
int hca_srq_new(struct hca *hca, struct hca_srq_attr *attr, struct hca_srq **out);
int hca_srq_free(struct hca *hca, struct hca_srq *srq);

/* ---- queue pairs ---- */
struct hca_qp_new_attr {
    enum hca_qp_type type;
    struct hca_pd *pd;
    struct hca_cq *scq, *rcq;
    struct hca_srq *srq;
    struct hca_uar *uar;
    struct hca_buf sq, rq, dbrec;
    uint32_t sq_entries, rq_entries;
    uint8_t rq_log_stride;
    uint32_t uidx;
    struct hca_qp_cap cap;
    bool sig_all, rq_signature, devx, bare;
    uint64_t dc_key;
};
int hca_qp_new(struct hca *hca, struct hca_qp_new_attr *attr, struct hca_qp **out);
int hca_qp_free(struct hca *hca, struct hca_qp *qp);

/* Attributes to change; mask is IBV_QP_*. */
struct hca_qp_attr {
    enum ibv_qp_state state, cur_state;
    uint32_t access, mtu_code, dest_qpn, rq_psn, sq_psn, qkey;
    uint16_t pkey_index;
    uint8_t max_rd_atomic, max_dest_rd_atomic, timeout, retry_cnt, rnr_retry, min_rnr_timer, port_num;
    uint8_t sqd_notify, path_mig_state, alt_timeout, alt_port, alt_pkey_index;
    struct hca_av av, alt_av;
};
/* Checks the transition and the attribute mask as the kernel does, then applies. */
int hca_qp_modify(struct hca_qp *qp, const struct hca_qp_attr *attr, uint32_t mask);
/* Applies without asking whether mandatory attributes came (firmware commands check by opcode). */
void hca_qp_apply(struct hca_qp *qp, const struct hca_qp_attr *attr, uint32_t mask);

#endif
