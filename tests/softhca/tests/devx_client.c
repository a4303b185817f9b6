/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client in the manner of a GPU-initiated transport: a collapsed completion queue and an RC queue pair made with DEVX,
 * rings and doorbell record in its own memory, work requests written by hand; with the argument "bare", without the record. Formats come from mlx5dv.h, command layouts
 * from the programmer's reference (bit offsets below are its own table on purpose: nothing of the device is included).
 * Two processes, joined by a socket pair; run it under softhca-run, or on a machine with an mlx5 NIC.
 */
#include <endian.h>
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tap.h"

enum {
    BLOCKS = 64,                 /* of the send queue */
    HEAP = 1 << 20,
    WAIT_SECONDS = 60,
    NOT_OFFERED = 3,             /* exit status */
    OFF_INLINE = 400000,
    OFF_COUNTER = 400008,
    OFF_SMALL = 400024,
    OFF_SLOTS = 410000,
    OFF_LOCAL = 500000,
    OFF_READ = 600000,
    BIG = 300000,
    ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
};

struct peer_info {
    uint32_t qpn, rkey;
    uint64_t heap;
    uint16_t lid;
    uint8_t gid[16];
};

struct client {
    int rank, sock;
    bool bare;                   /* the doorbell alone announces entries */
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    uint32_t pdn;
    struct ibv_port_attr port;
    struct mlx5dv_devx_uar *uar;
    struct mlx5dv_devx_umem *wq_umem, *cq_umem, *db_umem;
    struct mlx5dv_devx_obj *cq, *qp;
    uint32_t cqn, qpn;
    uint8_t *wq, *heap;
    struct mlx5_cqe64 *cqe;
    uint32_t *dbrec;
    struct ibv_mr *mr;
    uint16_t index;              /* of the next free block */
    unsigned half;               /* of the doorbell register, used in turn */
    struct peer_info me, peer;
};

/* ---- command fields: first bit, width ---- */

static void put(void *base, unsigned bit, unsigned width, uint64_t value)
{
    uint8_t *bytes = base;

    for (unsigned i = bit + width; i-- > bit; value >>= 1) {
        bytes[i / 8] &= (uint8_t)~(0x80 >> i % 8);
        bytes[i / 8] |= (uint8_t)((value & 1) << (7 - i % 8));
    }
}

static uint64_t get(const void *base, unsigned bit, unsigned width)
{
    const uint8_t *bytes = base;
    uint64_t value = 0;

    for (unsigned i = bit; i < bit + width; i++)
        value = value << 1 | (bytes[i / 8] >> (7 - i % 8) & 1);
    return value;
}

static void die(const char *what)
{
    printf("Bail out! %s: %s\n", what, strerror(errno));
    fflush(stdout);
    _exit(1);
}

static void swap_bytes(struct client *c, const void *mine, void *theirs, size_t len)
{
    if (write(c->sock, mine, len) != (ssize_t)len || read(c->sock, theirs, len) != (ssize_t)len)
        die("peer");
}

static void meet(struct client *c)
{
    char a = 'x', b;

    swap_bytes(c, &a, &b, 1);
}

static void *pages(size_t bytes, int fill)
{
    void *p = aligned_alloc(4096, (bytes + 4095) & ~4095ul);

    if (!p)
        die("memory");
    memset(p, fill, (bytes + 4095) & ~4095ul);
    return p;
}

/* ---- set-up ---- */

static void open_device(struct client *c)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct mlx5dv_context_attr attr = { .flags = MLX5DV_CONTEXT_FLAGS_DEVX };
    struct mlx5dv_pd dv_pd = { 0 };
    struct mlx5dv_obj obj = { 0 };

    if (!list || !list[0])
        die("no device");
    c->ctx = mlx5dv_open_device(list[0], &attr);
    if (!c->ctx)
        die("mlx5dv_open_device");
    ibv_free_device_list(list);
    c->pd = ibv_alloc_pd(c->ctx);
    obj.pd.in = c->pd;
    obj.pd.out = &dv_pd;
    if (!c->pd || mlx5dv_init_obj(&obj, MLX5DV_OBJ_PD) || ibv_query_port(c->ctx, 1, &c->port))
        die("protection domain or port");
    c->pdn = dv_pd.pdn;
    c->uar = mlx5dv_devx_alloc_uar(c->ctx, MLX5DV_UAR_ALLOC_TYPE_BF);
    if (!c->uar)
        die("doorbell page");
}

static void make_memory(struct client *c)
{
    c->wq = pages(BLOCKS * MLX5_SEND_WQE_BB, 0);
    c->cqe = pages(sizeof *c->cqe, 0xff);
    c->dbrec = pages(4096, 0);
    c->heap = pages(HEAP, 0);
    c->wq_umem = mlx5dv_devx_umem_reg(c->ctx, c->wq, BLOCKS * MLX5_SEND_WQE_BB, IBV_ACCESS_LOCAL_WRITE);
    c->cq_umem = mlx5dv_devx_umem_reg(c->ctx, c->cqe, 4096, IBV_ACCESS_LOCAL_WRITE);
    c->db_umem = mlx5dv_devx_umem_reg(c->ctx, c->dbrec, 4096, IBV_ACCESS_LOCAL_WRITE);
    c->mr = ibv_reg_mr(c->pd, c->heap, HEAP, ACCESS);
    if (!c->wq_umem || !c->cq_umem || !c->db_umem || !c->mr)
        die("memory registration");
}

static void make_cq(struct client *c)
{
    uint8_t in[0x110] = { 0 }, out[16] = { 0 }, *cqc = in + 0x10;
    uint32_t eqn;

    if (mlx5dv_devx_query_eqn(c->ctx, 0, &eqn))
        die("event queue number");
    put(in, 0, 16, 0x400);                          /* CREATE_CQ */
    put(in, 0x2c0, 32, c->cq_umem->umem_id);
    put(in, 0x2e0, 1, 1);
    put(cqc, 0x06, 1, 1);                           /* doorbell record in a umem */
    put(cqc, 0x0b, 1, 1);                           /* collapsed */
    put(cqc, 0x0e, 1, 1);                           /* overrun ignored */
    put(cqc, 0x20, 32, c->db_umem->umem_id);
    put(cqc, 0x63, 5, 6);
    put(cqc, 0x68, 24, c->uar->page_id);
    put(cqc, 0xb8, 8, eqn);
    put(cqc, 0x1c0, 64, 64);                        /* its place in the umem */
    c->cq = mlx5dv_devx_obj_create(c->ctx, in, sizeof in, out, sizeof out);
    if (!c->cq)
        die("CREATE_CQ");
    c->cqn = (uint32_t)get(out, 0x48, 24);
}

/* Does the device offer send queues without a doorbell record, of 64 blocks at least? */
static bool offers_bare(struct client *c)
{
    uint8_t in[16] = { 0 }, out[0x1010] = { 0 };

    put(in, 0, 16, 0x100);                          /* QUERY_HCA_CAP */
    put(in, 0x30, 16, 1);
    if (mlx5dv_devx_general_cmd(c->ctx, in, sizeof in, out, sizeof out) || !get(out + 0x10, 0x20, 1))
        return false;
    memset(out, 0, sizeof out);
    put(in, 0x30, 16, 0x20 << 1 | 1);
    if (mlx5dv_devx_general_cmd(c->ctx, in, sizeof in, out, sizeof out))
        return false;
    return get(out + 0x10, 0x2e1, 1) && get(out + 0x10, 0x2e3, 5) >= 6;
}

static void make_qp(struct client *c)
{
    uint8_t in[0x110] = { 0 }, out[16] = { 0 }, *qpc = in + 0x18;

    put(in, 0, 16, 0x500);                          /* CREATE_QP */
    put(in, 0x840, 32, c->wq_umem->umem_id);
    put(in, 0x860, 1, 1);
    put(qpc, 0x08, 8, 0);                           /* RC */
    put(qpc, 0x13, 2, 3);                           /* migrated */
    put(qpc, 0x28, 24, c->pdn);
    put(qpc, 0x51, 4, 6);                           /* 64 send blocks */
    put(qpc, 0x68, 24, c->uar->page_id);
    put(qpc, 0x80, 2, c->bare);
    put(qpc, 0x88, 24, 0x77);
    put(qpc, 0x3e8, 24, c->cqn);
    put(qpc, 0x4e8, 24, c->cqn);
    put(qpc, 0x565, 3, 3);                          /* no receive queue */
    put(qpc, 0x683, 1, 1);
    put(qpc, 0x720, 32, c->db_umem->umem_id);       /* record at offset 0 */
    c->qp = mlx5dv_devx_obj_create(c->ctx, in, sizeof in, out, sizeof out);
    if (!c->qp && c->bare && !offers_bare(c))
        exit(NOT_OFFERED);
    if (!c->qp)
        die("CREATE_QP");
    c->qpn = (uint32_t)get(out, 0x48, 24);
}

static void modify(struct client *c, uint8_t *in, size_t len, unsigned opcode)
{
    uint8_t out[16] = { 0 };

    put(in, 0, 16, opcode);
    put(in, 0x48, 24, c->qpn);
    if (mlx5dv_devx_obj_modify(c->qp, in, len, out, sizeof out)) {
        printf("# command 0x%x: status 0x%x syndrome 0x%x\n", opcode, out[0], (unsigned)get(out, 32, 32));
        die("modify");
    }
}

static void put_path(struct client *c, uint8_t *qpc)
{
    put(qpc, 0x1e8, 8, 1);                          /* port */
    put(qpc, 0x100, 5, 14);                         /* acknowledge timeout */
    if (c->port.link_layer != IBV_LINK_LAYER_ETHERNET) {
        put(qpc, 0xf0, 16, c->peer.lid);
        return;
    }
    memcpy(qpc + 0x28, c->peer.gid, sizeof c->peer.gid);
    put(qpc, 0x118, 8, 64);                         /* hop limit */
    put(qpc, 0x1d0, 16, 0xc000);                    /* UDP source port */
    put(qpc, 0x1f0, 16, 0x0200);                    /* MAC */
    memcpy(qpc + 0x40, c->peer.gid + 12, 4);
}

static void connect_qp(struct client *c)
{
    uint8_t in[0x110], *qpc = in + 0x18;

    memset(in, 0, sizeof in);
    put(qpc, 0x13, 2, 3);
    put(qpc, 0x490, 3, 7);                          /* remote read, write, atomic */
    put(qpc, 0x48c, 4, 3);                          /* atomics up to 8 bytes, extended forms too */
    put(qpc, 0x1e8, 8, 1);
    modify(c, in, sizeof in, 0x502);                /* RST2INIT */
    memset(in, 0, sizeof in);
    put(qpc, 0x40, 3, c->port.active_mtu);
    put(qpc, 0x43, 5, 30);
    put(qpc, 0xa8, 24, c->peer.qpn);
    put(qpc, 0x4a3, 5, 12);
    put(qpc, 0x488, 3, 4);                          /* 16 reads or atomics of the peer */
    put(qpc, 0x4a8, 24, 0xfffff0);                  /* sequence numbers wrap soon */
    put_path(c, qpc);
    modify(c, in, sizeof in, 0x503);                /* INIT2RTR */
    memset(in, 0, sizeof in);
    put(qpc, 0x38d, 3, 7);
    put(qpc, 0x390, 3, 7);
    put(qpc, 0x388, 3, 4);
    put(qpc, 0x3c8, 24, 0xfffff0);
    put_path(c, qpc);
    modify(c, in, sizeof in, 0x504);                /* RTR2RTS */
}

static void setup(struct client *c)
{
    union ibv_gid gid = { { 0 } };

    open_device(c);
    make_memory(c);
    make_cq(c);
    make_qp(c);
    ibv_query_gid(c->ctx, 1, 0, &gid);
    c->me = (struct peer_info){ c->qpn, c->mr->rkey, (uintptr_t)c->heap, c->port.lid, { 0 } };
    memcpy(c->me.gid, gid.raw, sizeof gid.raw);
    swap_bytes(c, &c->me, &c->peer, sizeof c->me);
    connect_qp(c);
    meet(c);
}

/* ---- work requests ---- */

static void *block(struct client *c, unsigned ahead)
{
    return c->wq + ((uint16_t)(c->index + ahead) % BLOCKS) * MLX5_SEND_WQE_BB;
}

/* Writes the control segment; returns what follows it. */
static void *begin(struct client *c, uint8_t opcode, uint8_t opmod, uint8_t units, uint8_t flags)
{
    struct mlx5_wqe_ctrl_seg *ctrl = block(c, 0);

    mlx5dv_set_ctrl_seg(ctrl, c->index, opcode, opmod, c->qpn, flags, units, 0, 0);
    return ctrl + 1;
}

static void *remote(struct client *c, void *at, uint64_t offset)
{
    struct mlx5_wqe_raddr_seg *seg = at;

    seg->raddr = htobe64(c->peer.heap + offset);
    seg->rkey = htobe32(c->peer.rkey);
    seg->reserved = 0;
    return seg + 1;
}

static void local(struct client *c, void *at, uint64_t offset, uint32_t len)
{
    mlx5dv_set_data_seg(at, len, c->mr->lkey, (uintptr_t)c->heap + offset);
}

static void inline_data(void *at, const void *data, uint32_t len)
{
    struct mlx5_wqe_inl_data_seg *seg = at;

    seg->byte_count = htobe32(MLX5_INLINE_SEG | len);
    memcpy(seg + 1, data, len);
}

static void store(struct client *c, size_t at, uint64_t value)
{
    __atomic_store_n((uint64_t *)(void *)((uint8_t *)c->uar->base_addr + at), value, __ATOMIC_RELEASE);
}

/* Record first, then the register: its first 8 bytes are those of the control segment. */
static void ring(struct client *c, const void *ctrl)
{
    uint64_t value;

    memcpy(&value, ctrl, sizeof value);
    if (c->bare) {
        store(c, 0x600, value);
        return;
    }
    __atomic_store_n(&c->dbrec[MLX5_SND_DBR], htobe32(c->index), __ATOMIC_RELEASE);
    __atomic_store_n((uint64_t *)(void *)((uint8_t *)c->uar->reg_addr + c->half), value, __ATOMIC_RELEASE);
    c->half ^= 256;
}

/* The other way: index and queue pair number only, as GPU code does it. */
static void ring_number(struct client *c)
{
    const uint32_t words[2] = { htobe32((uint32_t)c->index << 8), htobe32(c->qpn << 8) };

    ring(c, words);
}

static void post(struct client *c, unsigned blocks)
{
    const void *ctrl = block(c, 0);

    c->index = (uint16_t)(c->index + blocks);
    ring(c, ctrl);
}

/* Waits until the newest completion covers block index; 0, the syndrome of an error, or -1 after too long. */
static int wait_for(struct client *c, uint16_t index)
{
    time_t end = time(NULL) + WAIT_SECONDS;

    for (unsigned spins = 1;; spins++) {
        uint32_t last = __atomic_load_n((uint32_t *)(void *)&c->cqe->wqe_counter, __ATOMIC_ACQUIRE);
        uint8_t opcode = (uint8_t)(be32toh(last) & 0xff) >> 4;
        uint16_t counter = (uint16_t)(be32toh(last) >> 16);

        if (opcode == MLX5_CQE_REQ_ERR)
            return __atomic_load_n(&((struct mlx5_err_cqe *)(void *)c->cqe)->syndrome, __ATOMIC_RELAXED);
        if (opcode != MLX5_CQE_INVALID && (int16_t)(counter - index) >= 0)
            return 0;
        if (!(spins % 64))
            usleep(20);
        if (!(spins % 4096) && time(NULL) > end)
            return -1;
    }
}

/* ---- the work ---- */

enum { SIGNALED = MLX5_WQE_CTRL_CQ_UPDATE };

static void do_write(struct client *c)
{
    uint8_t *seg = begin(c, MLX5_OPCODE_RDMA_WRITE, 0, 3, 0);

    local(c, remote(c, seg, 0), 0, BIG);
    c->index++;
    begin(c, MLX5_OPCODE_NOP, 0, 1, SIGNALED);
    c->index++;
    ring_number(c);
    tap_ok(!wait_for(c, (uint16_t)(c->index - 1)), "unsignalled write of %d bytes, then a signalled NOP", BIG);
}

/* Neither a record nor the register of other queues announces anything; a doorbell late and once more does no harm. */
static void do_strange_bells(struct client *c)
{
    uint8_t *seg = begin(c, MLX5_OPCODE_NOP, 0, 1, SIGNALED);
    const uint32_t behind[2] = { htobe32((uint32_t)(uint16_t)(c->index - 3) << 8), htobe32(c->qpn << 8) };
    uint64_t value;

    memcpy(&value, seg - sizeof(struct mlx5_wqe_ctrl_seg), sizeof value);
    c->index++;
    __atomic_store_n(&c->dbrec[MLX5_SND_DBR], htobe32(c->index), __ATOMIC_RELEASE);
    store(c, 0x800, value);
    usleep(50000);
    tap_ok(be16toh(*(volatile uint16_t *)&c->cqe->wqe_counter) != (uint16_t)(c->index - 1),
           "no record and no other register announces an entry");
    ring_number(c);
    tap_ok(!wait_for(c, (uint16_t)(c->index - 1)), "the queue's own register does");
    ring(c, behind);
    begin(c, MLX5_OPCODE_NOP, 0, 1, SIGNALED);
    post(c, 1);
    tap_ok(!wait_for(c, (uint16_t)(c->index - 1)), "so it does behind an older value");
}

static void do_inline_and_read(struct client *c)
{
    const uint64_t value = 0x1122334455667788ull;
    uint64_t back;
    uint8_t *seg = begin(c, MLX5_OPCODE_RDMA_WRITE, 0, 3, SIGNALED);

    inline_data(remote(c, seg, OFF_INLINE), &value, sizeof value);
    post(c, 1);
    tap_ok(!wait_for(c, (uint16_t)(c->index - 1)), "inline write of 8 bytes");
    seg = begin(c, MLX5_OPCODE_RDMA_READ, 0, 3, SIGNALED);
    local(c, remote(c, seg, OFF_INLINE), OFF_LOCAL, sizeof back);
    post(c, 1);
    tap_ok(!wait_for(c, (uint16_t)(c->index - 1)), "read of 8 bytes");
    memcpy(&back, c->heap + OFF_LOCAL, sizeof back);
    tap_ok(back == value, "it reads what was written inline");
    seg = begin(c, MLX5_OPCODE_RDMA_READ, 0, 3, SIGNALED);
    local(c, remote(c, seg, 0), OFF_READ, BIG);
    post(c, 1);
    tap_ok(!wait_for(c, (uint16_t)(c->index - 1)) && !memcmp(c->heap, c->heap + OFF_READ, BIG), "read of %d bytes is right", BIG);
}

/* Operands are big-endian in the entry; an 8-byte result is in host order. */
static void do_atomics(struct client *c)
{
    struct mlx5_wqe_atomic_seg *atomic;
    uint64_t old[20];
    bool right = true;

    for (unsigned i = 0; i < 20; i++) {
        atomic = remote(c, begin(c, MLX5_OPCODE_ATOMIC_FA, 0, 4, i == 19 ? SIGNALED : 0), OFF_COUNTER);
        atomic->swap_add = htobe64(3);
        atomic->compare = 0;
        local(c, atomic + 1, OFF_LOCAL + i * 8, 8);
        c->index++;
    }
    ring_number(c);
    tap_ok(!wait_for(c, (uint16_t)(c->index - 1)), "20 fetch-adds behind one doorbell");
    memcpy(old, c->heap + OFF_LOCAL, sizeof old);
    for (unsigned i = 0; i < 20; i++)
        right = right && old[i] == i * 3;
    tap_ok(right, "each returns the sum of those before it");
    atomic = remote(c, begin(c, MLX5_OPCODE_ATOMIC_CS, 0, 4, SIGNALED), OFF_COUNTER);
    atomic->swap_add = htobe64(1000);
    atomic->compare = htobe64(60);
    local(c, atomic + 1, OFF_LOCAL, 8);
    post(c, 1);
    tap_ok(!wait_for(c, (uint16_t)(c->index - 1)), "compare-swap");
    memcpy(old, c->heap + OFF_LOCAL, 8);
    tap_ok(old[0] == 60, "it returns the old value");
}

/* Results of 4-byte extended atomics are big-endian in memory. */
static void do_extended_atomics(struct client *c)
{
    uint32_t *four = (uint32_t *)remote(c, begin(c, MLX5_OPCODE_ATOMIC_MASKED_FA, 8, 4, SIGNALED), OFF_SMALL);
    uint64_t *eight, old8;
    uint32_t old4;

    memset(four, 0, 16);
    four[0] = htobe32(5);
    local(c, four + 4, OFF_LOCAL, 4);
    post(c, 1);
    tap_ok(!wait_for(c, (uint16_t)(c->index - 1)), "4-byte masked fetch-add");
    four = (uint32_t *)remote(c, begin(c, MLX5_OPCODE_ATOMIC_MASKED_CS, 8, 4, SIGNALED), OFF_SMALL);
    four[0] = htobe32(0xabcd);
    four[1] = 0;
    four[2] = htobe32(~0u);
    four[3] = 0;
    local(c, four + 4, OFF_LOCAL, 4);
    post(c, 1);
    tap_ok(!wait_for(c, (uint16_t)(c->index - 1)), "4-byte masked compare-swap used as a swap");
    memcpy(&old4, c->heap + OFF_LOCAL, sizeof old4);
    tap_ok(be32toh(old4) == 5, "its result is the old value, big-endian");
    eight = (uint64_t *)remote(c, begin(c, MLX5_OPCODE_ATOMIC_MASKED_CS, 9, 5, SIGNALED), OFF_COUNTER);
    eight[0] = htobe64(0x0f);
    eight[1] = 0;
    eight[2] = htobe64(0xff);
    eight[3] = 0;
    local(c, block(c, 1), OFF_LOCAL, 8);
    post(c, 2);
    tap_ok(!wait_for(c, (uint16_t)(c->index - 2)), "8-byte masked swap of the low byte, in two blocks");
    memcpy(&old8, c->heap + OFF_LOCAL, sizeof old8);
    tap_ok(old8 == 1000, "its result is the old value, host order");
}

/* More than 65,536 blocks: ring, 16-bit index and sequence numbers all wrap. */
static void do_wraps(struct client *c)
{
    const unsigned total = 70000, batch = 16;
    int status = 0;

    for (unsigned i = 0; i < total && !status; i += batch) {
        for (unsigned k = 0; k < batch; k++) {
            uint64_t value = i + k;
            uint8_t *seg = begin(c, MLX5_OPCODE_RDMA_WRITE, 0, 3, k == batch - 1 ? SIGNALED : 0);

            inline_data(remote(c, seg, OFF_SLOTS + (i + k) % 100 * 8), &value, sizeof value);
            c->index++;
        }
        ring_number(c);
        status = wait_for(c, (uint16_t)(c->index - 1));
    }
    tap_ok(!status, "%u inline writes over a ring of %d blocks, index %u at the end", total, BLOCKS, c->index);
}

static unsigned query_state(struct client *c)
{
    uint8_t in[16] = { 0 }, out[0x110] = { 0 };

    put(in, 0, 16, 0x50b);
    put(in, 0x48, 24, c->qpn);
    if (mlx5dv_devx_obj_query(c->qp, in, sizeof in, out, sizeof out))
        die("QUERY_QP");
    return (unsigned)get(out + 0x18, 0, 4);
}

/* A later flush completion may already have replaced the first error in the one entry. */
static void do_error(struct client *c)
{
    uint8_t *seg = begin(c, MLX5_OPCODE_RDMA_WRITE, 0, 3, SIGNALED);
    int status;

    local(c, remote(c, seg, 0), OFF_LOCAL, 8);
    post(c, 1);
    status = wait_for(c, (uint16_t)(c->index - 1));
    tap_ok(status == MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR || status == MLX5_CQE_SYNDROME_WR_FLUSH_ERR,
           "the key of an ended registration gives a remote access error (0x%02x)", (unsigned)status);
    tap_ok(query_state(c) == 6, "the queue pair is in the error state then");
}

static void check_target(struct client *c)
{
    uint64_t value;
    uint32_t small;
    bool right = true;

    for (unsigned i = 0; i < BIG; i++)
        right = right && c->heap[i] == (uint8_t)(i * 7);
    tap_ok(right, "target: all %d bytes of the big write", BIG);
    memcpy(&value, c->heap + OFF_INLINE, sizeof value);
    tap_ok(value == 0x1122334455667788ull, "target: inline value");
    memcpy(&value, c->heap + OFF_COUNTER, sizeof value);
    tap_ok(value == ((1000 & ~0xffull) | 0x0f), "target: counter after add, swap and masked swap");
    memcpy(&small, c->heap + OFF_SMALL, sizeof small);
    tap_ok(small == 0xabcd, "target: 4-byte counter is in host order");
    for (unsigned i = 0; i < 100; i++) {
        memcpy(&value, c->heap + OFF_SLOTS + i * 8, sizeof value);
        right = right && value == 69900 + i;
    }
    tap_ok(right, "target: last round of the small writes");
}

/* The same memory under a new key: the old one must not work any more, although all else is as before. */
static void renew_key(struct client *c)
{
    uint32_t old = c->mr->rkey;

    if (ibv_dereg_mr(c->mr))
        die("deregistration");
    c->mr = ibv_reg_mr(c->pd, c->heap, HEAP, ACCESS);
    tap_ok(c->mr && c->mr->rkey != old, "target: registering again gives another key");
}

static void check_untouched(struct client *c)
{
    bool right = true;

    for (unsigned i = 0; i < 8; i++)
        right = right && c->heap[i] == (uint8_t)(i * 7);
    tap_ok(right, "target: a write with the old key touched nothing");
}

static void teardown(struct client *c)
{
    int bad = mlx5dv_devx_obj_destroy(c->qp) || mlx5dv_devx_obj_destroy(c->cq) || mlx5dv_devx_umem_dereg(c->wq_umem)
              || mlx5dv_devx_umem_dereg(c->cq_umem) || mlx5dv_devx_umem_dereg(c->db_umem) || ibv_dereg_mr(c->mr);

    mlx5dv_devx_free_uar(c->uar);
    bad = bad || ibv_dealloc_pd(c->pd) || ibv_close_device(c->ctx);
    if (!c->rank)
        tap_ok(!bad, "everything can be destroyed");
}

static int run(struct client *c)
{
    setup(c);
    if (!c->rank) {
        for (unsigned i = 0; i < BIG; i++)
            c->heap[i] = (uint8_t)(i * 7);
        tap_ok(query_state(c) == 3, "queue pair is ready to send");
        do_write(c);
        if (c->bare)
            do_strange_bells(c);
        do_inline_and_read(c);
        do_atomics(c);
        do_extended_atomics(c);
        do_wraps(c);
    }
    meet(c);
    if (c->rank) {
        check_target(c);
        renew_key(c);
    }
    meet(c);
    if (!c->rank)
        do_error(c);
    meet(c);
    if (c->rank)
        check_untouched(c);
    teardown(c);
    return tap_failures;
}

/* The target's results come through a pipe, so that one process prints all of them in order. */
int main(int argc, char **argv)
{
    struct client c = { .bare = argc > 1 && !strcmp(argv[1], "bare") };
    int pair[2], results[2], status, failures;
    char line[256];
    FILE *from;
    pid_t child;

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) || pipe(results))
        die("sockets");
    child = fork();
    c.rank = child == 0;
    c.sock = pair[c.rank];
    close(pair[!c.rank]);
    if (c.rank) {
        dup2(results[1], STDOUT_FILENO);
        close(results[0]);
        close(results[1]);
        _exit(run(&c) != 0);
    }
    close(results[1]);
    failures = run(&c);
    from = fdopen(results[0], "r");
    while (from && fgets(line, sizeof line, from)) {
        const char *name = strstr(line, " - ");

        line[strcspn(line, "\n")] = 0;
        if (name)
            tap_ok(strncmp(line, "not", 3) != 0, "%s", name + 3);
    }
    if (waitpid(child, &status, 0) < 0 || status)
        failures++;
    tap_ok(!failures, "both processes end well");
    return tap_done();
}
