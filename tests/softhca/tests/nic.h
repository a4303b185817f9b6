/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A queue pair with rings in the test's own memory, on the device model directly: no libibverbs, no command interface.
 * Entries are built with the inline functions of mlx5dv.h, so that their layout is not ours.
 */
#ifndef SOFTHCA_TESTS_NIC_H
#define SOFTHCA_TESTS_NIC_H

#include "hca/objects.h"

enum { NIC_HEAP = 1 << 20, NIC_RQ_STRIDE = 64, NIC_MAX_CQ = 4096 };

struct nic_setup {
    uint32_t sq_blocks, rq_entries, cq_entries; /* powers of two */
    uint32_t psn;                               /* of both directions */
    uint32_t mtu_code;
    uint8_t timeout, retry_cnt, rnr_retry;
    enum hca_qp_type type;
};

struct nic {
    struct nic_setup setup;
    struct hca *hca;
    struct hca_pd *pd;
    struct hca_uar *uar;
    struct hca_cq *scq, *rcq;
    struct hca_qp *qp;
    struct hca_key *mr;
    uint8_t *heap, *sq, *rq, *page;
    struct mlx5_cqe64 *sring, *rring;
    uint32_t *dbrec, *sdb, *rdb;
    uint32_t sci, rci;           /* consumer indices */
    uint16_t pi, ri;             /* producer indices */
    uint32_t peer_rkey, peer_qpn;
    uint64_t peer_heap;
    int sock;
};

/* What a completion said. opcode 255: none came in time. */
struct nic_done {
    uint8_t opcode, syndrome;
    uint16_t index;
    uint32_t bytes, imm_be;
};

/* What the two ends tell each other over the socket before they connect. */
struct nic_card {
    uint32_t qpn, rkey, slot;
    uint64_t heap;
};

/* Both sides call it; exchanges addresses over sock. 0 or -errno. */
int nic_open(struct nic *n, const struct nic_setup *setup, int sock);
void nic_close(struct nic *n);
/* Both sides wait for each other; false: the peer is gone. */
bool nic_sync(struct nic *n);

/* Each builds one entry at the producer index and advances it. nic_ring makes them visible. */
void nic_write(struct nic *n, uint64_t raddr, uint32_t rkey, const void *src, uint32_t len, uint8_t flags);
void nic_write_inline(struct nic *n, uint64_t raddr, uint32_t rkey, const void *src, uint32_t len, uint8_t flags);
void nic_write_imm(struct nic *n, uint64_t raddr, const void *src, uint32_t len, uint32_t imm_be, uint8_t flags);
void nic_read(struct nic *n, void *dst, uint64_t raddr, uint32_t rkey, uint32_t len, uint8_t flags);
void nic_fetch_add(struct nic *n, uint64_t *old, uint64_t raddr, uint64_t add, uint8_t flags);
void nic_compare_swap(struct nic *n, uint64_t *old, uint64_t raddr, uint64_t compare, uint64_t swap, uint8_t flags);
/* 4-byte masked fetch-add: *old is big-endian. */
void nic_fetch_add4(struct nic *n, uint32_t *old_be, uint64_t raddr, uint32_t add, uint8_t flags);
void nic_send(struct nic *n, const void *src, uint32_t len, bool imm, uint32_t imm_be, uint8_t flags);
void nic_nop(struct nic *n, uint8_t flags);
uint8_t *nic_block(struct nic *n, uint16_t index);
void nic_ring(struct nic *n);
void nic_recv(struct nic *n, void *dst, uint32_t len);

struct nic_done nic_wait_send(struct nic *n, unsigned ms);
struct nic_done nic_wait_recv(struct nic *n, unsigned ms);

#define NIC_SIGNAL MLX5_WQE_CTRL_CQ_UPDATE
#define NIC_NONE 255

#endif
