/* SPDX-License-Identifier: BSD-3-Clause */
/* A queue pair for tests: memory, rings, connection, entries, completions. */
#include "tests/nic.h"

#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

static void *pages(size_t bytes)
{
    void *p = mmap(NULL, (bytes + 4095) & ~4095ul, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return p == MAP_FAILED ? NULL : p;
}

static int buffer(struct hca_buf *buf, void *p, size_t len)
{
    int err = 0;
    struct hca_mem *mem = hca_mem_get((uint64_t)(uintptr_t)p, len, true, &err);

    if (!mem)
        return err;
    err = hca_buf_init(buf, mem, 0, len, 8);
    hca_mem_put(mem);
    return err;
}

static int make_cq(struct nic *n, struct hca_cq **out, struct mlx5_cqe64 **ring, uint32_t **db)
{
    struct hca_cq_attr attr = { .cqe_bytes = 64 };
    uint32_t entries = n->setup.cq_entries;
    int err;

    *ring = pages(entries * sizeof(**ring));
    *db = pages(64);
    if (!*ring || !*db)
        return -ENOMEM;
    for (uint32_t i = 0; i < entries; i++)
        (*ring)[i].op_own = MLX5_CQE_INVALID << 4 | 1;
    attr.log_entries = (uint8_t)__builtin_ctz(entries);
    err = buffer(&attr.ring, *ring, entries * sizeof(**ring));
    if (!err)
        err = buffer(&attr.dbrec, *db, 8);
    return err ? err : hca_cq_new(n->hca, &attr, out);
}

static int make_qp(struct nic *n)
{
    struct hca_qp_new_attr attr = { .type = n->setup.type, .pd = n->pd, .scq = n->scq, .rcq = n->rcq, .uar = n->uar,
                                    .sq_entries = n->setup.sq_blocks, .rq_entries = n->setup.rq_entries,
                                    .rq_log_stride = 6 };
    int err;

    n->sq = pages(n->setup.sq_blocks * HCA_WQEBB);
    n->rq = pages(n->setup.rq_entries * NIC_RQ_STRIDE);
    n->dbrec = pages(64);
    if (!n->sq || !n->rq || !n->dbrec)
        return -ENOMEM;
    err = buffer(&attr.sq, n->sq, n->setup.sq_blocks * HCA_WQEBB);
    if (!err)
        err = buffer(&attr.rq, n->rq, n->setup.rq_entries * NIC_RQ_STRIDE);
    if (!err)
        err = buffer(&attr.dbrec, n->dbrec, 8);
    return err ? err : hca_qp_new(n->hca, &attr, &n->qp);
}

static int connect_qp(struct nic *n, const struct nic_card *peer)
{
    struct hca_qp_attr attr = { .port_num = 1, .access = 0xf, .mtu_code = n->setup.mtu_code, .dest_qpn = peer->qpn,
                                .rq_psn = n->setup.psn, .sq_psn = n->setup.psn, .max_rd_atomic = 16,
                                .max_dest_rd_atomic = 16, .timeout = n->setup.timeout, .min_rnr_timer = 1,
                                .retry_cnt = n->setup.retry_cnt, .rnr_retry = n->setup.rnr_retry,
                                .av = { .port = 1, .dlid = (uint16_t)peer->slot } };
    bool rc = n->setup.type == HCA_RC;
    int err;

    attr.state = IBV_QPS_INIT;
    err = hca_qp_modify(n->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    attr.state = IBV_QPS_RTR;
    if (!err)
        err = hca_qp_modify(n->qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                              (rc ? IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER : 0));
    attr.state = IBV_QPS_RTS;
    if (!err)
        err = hca_qp_modify(n->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN |
                                              (rc ? IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                                                        IBV_QP_MAX_QP_RD_ATOMIC
                                                  : 0));
    return err;
}

static bool swap(int sock, const void *mine, void *theirs, size_t len)
{
    struct pollfd p = { .fd = sock, .events = POLLIN };

    return send(sock, mine, len, MSG_NOSIGNAL) == (ssize_t)len && poll(&p, 1, 60000) == 1 &&
           recv(sock, theirs, len, MSG_WAITALL) == (ssize_t)len;
}

bool nic_sync(struct nic *n)
{
    char mine = 1, theirs;

    /*
     * What this side has read may be overwritten by the peer from now on. The order goes through the peer's process,
     * where a thread sanitizer cannot see it; the lock shows it that this thread and our engine do not overlap.
     */
    hca_lock(n->hca);
    hca_unlock(n->hca);
    return swap(n->sock, &mine, &theirs, 1);
}

static int make_objects(struct nic *n)
{
    struct hca_mr_attr attr = { .access = 0xf, .len = NIC_HEAP, .dmabuf_fd = -1 };
    int err = hca_pd_new(n->hca, &n->pd);

    n->heap = pages(NIC_HEAP);
    n->page = pages(4096);
    if (!n->heap || !n->page)
        return -ENOMEM;
    attr.pd = n->pd;
    attr.addr = attr.iova = (uint64_t)(uintptr_t)n->heap;
    if (!err)
        err = hca_uar_new(n->hca, n->page, true, &n->uar);
    if (!err)
        err = hca_mr_new(n->hca, &attr, &n->mr);
    if (!err)
        err = make_cq(n, &n->scq, &n->sring, &n->sdb);
    if (!err)
        err = make_cq(n, &n->rcq, &n->rring, &n->rdb);
    return err ? err : make_qp(n);
}

int nic_open(struct nic *n, const struct nic_setup *setup, int sock)
{
    struct nic_card mine, peer;
    int err;

    memset(n, 0, sizeof(*n));
    n->setup = *setup;
    n->hca = hca_current;
    n->sock = sock;
    err = hca_device_start(0);
    if (err)
        return err;
    hca_lock(n->hca);
    err = make_objects(n);
    hca_unlock(n->hca);
    if (err)
        return err;
    mine = (struct nic_card){ n->qp->qpn, n->mr->key, n->hca->id.slot, (uint64_t)(uintptr_t)n->heap };
    if (!swap(sock, &mine, &peer, sizeof(mine)))
        return -EPIPE;
    n->peer_qpn = peer.qpn;
    n->peer_rkey = peer.rkey;
    n->peer_heap = peer.heap;
    hca_lock(n->hca);
    err = connect_qp(n, &peer);
    hca_unlock(n->hca);
    return err ? err : nic_sync(n) ? 0 : -EPIPE;
}

void nic_close(struct nic *n)
{
    hca_lock(n->hca);
    hca_qp_free(n->hca, n->qp);
    hca_cq_free(n->hca, n->scq);
    hca_cq_free(n->hca, n->rcq);
    if (n->mr)
        hca_key_free(n->hca, n->mr);
    hca_uar_free(n->hca, n->uar);
    hca_pd_free(n->hca, n->pd);
    hca_unlock(n->hca);
    munmap(n->sq, n->setup.sq_blocks * HCA_WQEBB);
    munmap(n->rq, n->setup.rq_entries * NIC_RQ_STRIDE);
    munmap(n->sring, n->setup.cq_entries * sizeof(*n->sring));
    munmap(n->rring, n->setup.cq_entries * sizeof(*n->rring));
    munmap(n->dbrec, 4096);
    munmap(n->sdb, 4096);
    munmap(n->rdb, 4096);
    munmap(n->page, 4096);
    munmap(n->heap, NIC_HEAP);
}

/* ---- entries ---- */

uint8_t *nic_block(struct nic *n, uint16_t index)
{
    return n->sq + (size_t)(index & (n->setup.sq_blocks - 1)) * HCA_WQEBB;
}

static void control(struct nic *n, uint8_t opcode, uint8_t opmod, uint8_t ds, uint8_t flags, uint32_t imm)
{
    mlx5dv_set_ctrl_seg((struct mlx5_wqe_ctrl_seg *)(void *)nic_block(n, n->pi), n->pi, opcode, opmod, n->qp->qpn, flags,
                        ds, 0, imm);
}

static void remote(uint8_t *at, uint64_t raddr, uint32_t rkey)
{
    struct mlx5_wqe_raddr_seg seg = { htobe64(raddr), htobe32(rkey), 0 };

    memcpy(at, &seg, sizeof(seg));
}

static void data(struct nic *n, uint8_t *at, const void *p, uint32_t len)
{
    mlx5dv_set_data_seg((struct mlx5_wqe_data_seg *)(void *)at, len, n->mr->key, (uintptr_t)p);
}

void nic_write(struct nic *n, uint64_t raddr, uint32_t rkey, const void *src, uint32_t len, uint8_t flags)
{
    uint8_t *w = nic_block(n, n->pi);

    control(n, MLX5_OPCODE_RDMA_WRITE, 0, 3, flags, 0);
    remote(w + 16, raddr, rkey);
    data(n, w + 32, src, len);
    n->pi++;
}

void nic_write_imm(struct nic *n, uint64_t raddr, const void *src, uint32_t len, uint32_t imm_be, uint8_t flags)
{
    uint8_t *w = nic_block(n, n->pi);

    control(n, MLX5_OPCODE_RDMA_WRITE_IMM, 0, 3, flags, imm_be);
    remote(w + 16, raddr, n->peer_rkey);
    data(n, w + 32, src, len);
    n->pi++;
}

void nic_write_inline(struct nic *n, uint64_t raddr, uint32_t rkey, const void *src, uint32_t len, uint8_t flags)
{
    uint8_t *w = nic_block(n, n->pi);
    uint32_t count = htobe32(len | MLX5_INLINE_SEG);

    control(n, MLX5_OPCODE_RDMA_WRITE, 0, (uint8_t)(2 + (4 + len + 15) / 16), flags, 0);
    remote(w + 16, raddr, rkey);
    memcpy(w + 32, &count, 4);
    memcpy(w + 36, src, len);
    n->pi++;
}

void nic_read(struct nic *n, void *dst, uint64_t raddr, uint32_t rkey, uint32_t len, uint8_t flags)
{
    uint8_t *w = nic_block(n, n->pi);

    control(n, MLX5_OPCODE_RDMA_READ, 0, 3, flags, 0);
    remote(w + 16, raddr, rkey);
    data(n, w + 32, dst, len);
    n->pi++;
}

static void atomic(struct nic *n, uint8_t opcode, void *old, uint64_t raddr, uint64_t swap_add, uint64_t compare,
                   uint8_t flags)
{
    struct mlx5_wqe_atomic_seg seg = { htobe64(swap_add), htobe64(compare) };
    uint8_t *w = nic_block(n, n->pi);

    control(n, opcode, 0, 4, flags, 0);
    remote(w + 16, raddr, n->peer_rkey);
    memcpy(w + 32, &seg, sizeof(seg));
    data(n, w + 48, old, 8);
    n->pi++;
}

void nic_fetch_add(struct nic *n, uint64_t *old, uint64_t raddr, uint64_t add, uint8_t flags)
{
    atomic(n, MLX5_OPCODE_ATOMIC_FA, old, raddr, add, 0, flags);
}

void nic_compare_swap(struct nic *n, uint64_t *old, uint64_t raddr, uint64_t compare, uint64_t new_value, uint8_t flags)
{
    atomic(n, MLX5_OPCODE_ATOMIC_CS, old, raddr, new_value, compare, flags);
}

void nic_fetch_add4(struct nic *n, uint32_t *old_be, uint64_t raddr, uint32_t add, uint8_t flags)
{
    uint8_t *w = nic_block(n, n->pi);
    uint32_t operand[4] = { htobe32(add), 0, 0, 0 };

    control(n, MLX5_OPCODE_ATOMIC_MASKED_FA, 8, 4, flags, 0);
    remote(w + 16, raddr, n->peer_rkey);
    memcpy(w + 32, operand, sizeof(operand));
    data(n, w + 48, old_be, 4);
    n->pi++;
}

void nic_send(struct nic *n, const void *src, uint32_t len, bool imm, uint32_t imm_be, uint8_t flags)
{
    control(n, imm ? MLX5_OPCODE_SEND_IMM : MLX5_OPCODE_SEND, 0, 2, flags, imm_be);
    data(n, nic_block(n, n->pi) + 16, src, len);
    n->pi++;
}

void nic_nop(struct nic *n, uint8_t flags)
{
    control(n, MLX5_OPCODE_NOP, 0, 1, flags, 0);
    n->pi++;
}

void nic_ring(struct nic *n)
{
    uint64_t value;

    memcpy(&value, nic_block(n, (uint16_t)(n->pi - 1)), sizeof(value));
    /* pairs with the engine's acquire of the record */
    __atomic_store_n(&n->dbrec[1], htobe32(n->pi), __ATOMIC_RELEASE);
    __atomic_store_n((uint64_t *)(void *)(n->page + 0x800), value, __ATOMIC_RELEASE);
}

void nic_recv(struct nic *n, void *dst, uint32_t len)
{
    uint8_t *w = n->rq + (size_t)(n->ri & (n->setup.rq_entries - 1)) * NIC_RQ_STRIDE;

    data(n, w, dst, len);
    mlx5dv_set_data_seg((struct mlx5_wqe_data_seg *)(void *)(w + 16), 0, HCA_INVALID_LKEY, 0);
    n->ri++;
    __atomic_store_n(&n->dbrec[0], htobe32(n->ri), __ATOMIC_RELEASE); /* pairs with rq_fetch */
}

/* ---- completions ---- */

static struct nic_done wait_cq(struct mlx5_cqe64 *ring, uint32_t entries, uint32_t *ci, uint32_t *db, unsigned ms)
{
    struct mlx5_cqe64 *cqe = &ring[*ci & (entries - 1)];
    const struct mlx5_err_cqe *error = (const struct mlx5_err_cqe *)cqe;
    uint8_t owner = *ci / entries & 1;
    uint64_t end = hca_now_ns() + ms * 1000000ull;
    struct nic_done done = { .opcode = NIC_NONE };
    uint32_t last;

    for (;;) {
        /* pairs with the release of the entry's last word */
        last = __atomic_load_n((uint32_t *)(void *)((uint8_t *)cqe + 60), __ATOMIC_ACQUIRE);
        if ((last >> 24 & 1) == owner && last >> 28 != MLX5_CQE_INVALID)
            break;
        if (hca_now_ns() > end)
            return done;
        sched_yield();
    }
    done.opcode = (uint8_t)(last >> 28);
    done.index = be16toh(cqe->wqe_counter);
    if (done.opcode == MLX5_CQE_REQ_ERR || done.opcode == MLX5_CQE_RESP_ERR)
        done.syndrome = error->syndrome;
    done.bytes = be32toh(cqe->byte_cnt);
    done.imm_be = cqe->imm_inval_pkey;
    (*ci)++;
    __atomic_store_n(&db[0], htobe32(*ci & 0xffffff), __ATOMIC_RELEASE);
    return done;
}

struct nic_done nic_wait_send(struct nic *n, unsigned ms)
{
    return wait_cq(n->sring, n->setup.cq_entries, &n->sci, n->sdb, ms);
}

struct nic_done nic_wait_recv(struct nic *n, unsigned ms)
{
    return wait_cq(n->rring, n->setup.cq_entries, &n->rci, n->rdb, ms);
}
