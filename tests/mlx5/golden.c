/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * golden.c - entries that we build against entries that others build for the same request, byte by byte.
 *
 *     golden           against rdma-core: ibv_post_send and ibv_wr_* on a queue pair that is connected to
 *                      itself; its ring is read through mlx5dv_init_obj
 *     golden replay    against the raw entries of a trace of the virtual NIC on standard input: fields
 *                      are read at the places that the reference manual gives them, built again and compared
 *
 * Needs an mlx5 NIC, or softhca-run before it.
 */
#include "peer.h"
#include "tap.h"

#include <endian.h>

/* ---- comparison ---- */

static const uint8_t *ours(const struct shmemi_sq *sq, uint64_t idx)
{
    const struct shmemi_sq_fixed q = shmemi_sq_fixed_of(sq);

    return (const uint8_t *)shmemi_sq_block(&q, idx);
}

static const uint8_t *theirs(const struct peer *p, uint64_t idx)
{
    return (const uint8_t *)p->dv.sq.buf + (idx & (p->dv.sq.wqe_cnt - 1)) * p->dv.sq.stride;
}

static bool same(struct peer *p, const char *name, uint64_t idx, uint32_t blocks, uint32_t bytes)
{
    uint8_t a[256], b[256];

    for (uint32_t i = 0; i < blocks; i++) {
        memcpy(a + i * 64, theirs(p, idx + i), 64);
        memcpy(b + i * 64, ours(&p->sq, idx + i), 64);
    }
    for (uint32_t i = 0; i < bytes; i++)
        if (a[i] != b[i]) {
            printf("# %s: byte %u at index %u: rdma-core 0x%02x, we 0x%02x\n", name, i, (unsigned)idx, a[i],
                   b[i]);
            return false;
        }
    return true;
}

/* One request, ours: what shmemi_sq_* posts at the index where rdma-core will. */
struct request {
    enum { WRITE, INLINE, READ, FETCH_ADD, CSWAP } op;
    uint32_t len;
    uint64_t raddr, laddr, operand, cond;
    bool fence;
};

static uint64_t post_ours(struct peer *p, const struct request *r)
{
    int flags = r->fence ? SHMEMI_SQ_FENCE : 0;
    shmemi_be32 rkey = shmemi_be32_of(p->mr->rkey), lkey = shmemi_be32_of(p->mr->lkey);

    p->sq.reserved = p->sq.done = p->idx;
    switch (r->op) {
    case WRITE:
        return shmemi_sq_write(&p->sq, SHMEMI_SQ_PRIVATE, r->raddr, rkey, r->laddr, lkey, r->len, flags);
    case INLINE:
        return shmemi_sq_write_inline(&p->sq, SHMEMI_SQ_PRIVATE, r->raddr, rkey, (void *)(uintptr_t)r->laddr,
                                      r->len, flags);
    case READ:
        return shmemi_sq_read(&p->sq, SHMEMI_SQ_PRIVATE, r->raddr, rkey, r->laddr, lkey, r->len, flags);
    default:
        return shmemi_sq_amo(&p->sq, SHMEMI_SQ_PRIVATE,
                             r->op == CSWAP ? SHMEMI_SQ_CSWAP : SHMEMI_SQ_FETCH_ADD, 8, r->raddr, rkey,
                             r->operand, r->cond, r->laddr, lkey, flags);
    }
}

static void post_send(struct peer *p, const struct request *r)
{
    static const enum ibv_wr_opcode codes[] = { IBV_WR_RDMA_WRITE, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
                                                IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP };
    struct ibv_sge sge = { r->laddr, r->len, p->mr->lkey };
    struct ibv_send_wr *bad, wr = { .sg_list = &sge, .num_sge = r->len ? 1 : 0, .opcode = codes[r->op] };

    wr.send_flags =
        IBV_SEND_SIGNALED | (r->fence ? IBV_SEND_FENCE : 0) | (r->op == INLINE ? IBV_SEND_INLINE : 0);
    if (r->op >= FETCH_ADD) {
        wr.wr.atomic.remote_addr = r->raddr;
        wr.wr.atomic.rkey = p->mr->rkey;
        wr.wr.atomic.compare_add = r->op == CSWAP ? r->cond : r->operand;
        wr.wr.atomic.swap = r->operand;
    } else {
        wr.wr.rdma.remote_addr = r->raddr;
        wr.wr.rdma.rkey = p->mr->rkey;
    }
    if (ibv_post_send(p->qp, &wr, &bad))
        die("ibv_post_send");
}

static void post_wr(struct peer *p, const struct request *r)
{
    struct ibv_qp_ex *x = ibv_qp_to_qp_ex(p->qp);

    ibv_wr_start(x);
    x->wr_flags = IBV_SEND_SIGNALED | (r->fence ? IBV_SEND_FENCE : 0);
    switch (r->op) {
    case WRITE:
    case INLINE: ibv_wr_rdma_write(x, p->mr->rkey, r->raddr); break;
    case READ: ibv_wr_rdma_read(x, p->mr->rkey, r->raddr); break;
    case FETCH_ADD: ibv_wr_atomic_fetch_add(x, p->mr->rkey, r->raddr, r->operand); break;
    case CSWAP: ibv_wr_atomic_cmp_swp(x, p->mr->rkey, r->raddr, r->cond, r->operand); break;
    }
    if (r->op == INLINE)
        ibv_wr_set_inline_data(x, (void *)(uintptr_t)r->laddr, r->len);
    else
        ibv_wr_set_sge(x, p->mr->lkey, r->laddr, r->len);
    if (ibv_wr_complete(x))
        die("ibv_wr_complete");
}

static bool compare(struct peer *p, const char *name, const struct request *r,
                    void (*post)(struct peer *, const struct request *))
{
    uint64_t ticket = post_ours(p, r), bell;
    uint32_t blocks = (uint32_t)(p->sq.reserved - p->idx);
    uint32_t segs = be32toh(((const uint32_t *)(const void *)ours(&p->sq, p->idx))[1]) & 0x3f;
    bool good;

    post(p, r);
    /* What follows inline data up to the segment's end is nobody's. */
    good = same(p, name, p->idx, blocks, r->op == INLINE && r->len ? 36 + r->len : segs * 16);
    memcpy(&bell, theirs(p, p->idx), sizeof bell);
    if (p->bell != bell || p->record != p->dv.dbrec[MLX5_SND_DBR] || ticket != p->idx + 1) {
        printf("# %s: doorbell 0x%llx, record 0x%08x; rdma-core 0x%llx, 0x%08x\n", name,
               (unsigned long long)p->bell, p->record, (unsigned long long)bell, p->dv.dbrec[MLX5_SND_DBR]);
        good = false;
    }
    await_completion(p);
    p->idx = p->sq.reserved;
    return good;
}

static void check_all(struct peer *p, const char *api, void (*post)(struct peer *, const struct request *))
{
    static const uint32_t lens[] = { 1, 8, 63, 64, 4096, 65537 };
    uint64_t remote = (uintptr_t)p->heap, local = remote + HEAP / 2;
    bool good = true;

    for (size_t i = 0; i < sizeof lens / sizeof *lens; i++) {
        struct request r = { .op = WRITE, .len = lens[i], .raddr = remote + 3 * i, .laddr = local + 5 * i };

        good &= compare(p, "write", &r, post);
        r.fence = true;
        good &= compare(p, "write, fenced", &r, post);
    }
    tap_ok(good, "%s: RDMA write", api);
    good = true;
    for (size_t i = 0; i < sizeof lens / sizeof *lens; i++) {
        struct request r = { .op = READ, .len = lens[i], .raddr = remote + 3 * i, .laddr = local + 5 * i };

        good &= compare(p, "read", &r, post);
    }
    tap_ok(good, "%s: RDMA read", api);
    good = true;
    for (uint32_t len = 1; len <= SHMEMI_SQ_INLINE_MAX; len++) { /* over and over past the ring's end */
        struct request r = {
            .op = INLINE, .len = len, .raddr = remote + len, .laddr = local + len, .fence = len % 7 == 0
        };

        good &= compare(p, "inline write", &r, post);
    }
    tap_ok(good, "%s: inline write of 1 to %d bytes", api, SHMEMI_SQ_INLINE_MAX);
    good = true;
    for (uint64_t i = 0; i < 8; i++) {
        struct request r = { .op = i % 2 ? CSWAP : FETCH_ADD,
                             .len = 8,
                             .raddr = remote + 8 * i,
                             .laddr = local,
                             .operand = 0x0123456789abcdef * (i + 1),
                             .cond = ~i,
                             .fence = i > 5 };

        good &= compare(p, "atomic", &r, post);
    }
    tap_ok(good, "%s: fetch-add and compare-swap of 8 bytes", api);
}

static void check_empty(struct peer *p)
{
    struct request r = { .op = WRITE, .raddr = (uintptr_t)p->heap };

    tap_ok(compare(p, "empty write", &r, post_send), "ibv_post_send: write of no bytes");
}

/* ---- replay ---- */

static uint32_t at32(const uint8_t *e, uint32_t at)
{
    return be32toh(*(const uint32_t *)(const void *)(e + at));
}

static uint64_t at64(const uint8_t *e, uint32_t at)
{
    return (uint64_t)at32(e, at) << 32 | at32(e, at + 4);
}

/* What kind of atomic it is, by the constants that its masks must have; -1: none of ours. */
static int kind_of(const uint8_t *e, uint32_t size)
{
    uint64_t all = size == 4 ? 0xffffffff : UINT64_MAX;
    uint64_t swap = size == 4 ? at32(e, 32) : at64(e, 32), second = size == 4 ? at32(e, 36) : at64(e, 40);
    uint64_t mask = size == 4 ? at32(e, 40) : at64(e, 48), cmask = size == 4 ? at32(e, 44) : at64(e, 56);

    if (e[3] == 0x11)
        return SHMEMI_SQ_CSWAP;
    if (e[3] == 0x12 || (e[3] == 0x15 && second == 0))
        return SHMEMI_SQ_FETCH_ADD;
    if (e[3] == 0x15)
        return second == all ? SHMEMI_SQ_XOR : -1;
    if (mask == all)
        return cmask == all ? SHMEMI_SQ_CSWAP : cmask == 0 ? SHMEMI_SQ_SWAP : -1;
    return cmask ? -1 : (swap & mask) == 0 ? SHMEMI_SQ_AND : swap == mask ? SHMEMI_SQ_OR : -1;
}

static int replay_atomic(struct shmemi_sq *sq, const uint8_t *e, uint64_t idx, uint32_t fm)
{
    uint32_t size = e[0] == 8 ? 4 : 8, data = e[3] == 0x14 && size == 8 ? 64 : 48;
    uint64_t operand = size == 4 ? at32(e, 32) : at64(e, 32), cond = size == 4 ? at32(e, 36) : at64(e, 40);
    shmemi_be32 rkey = shmemi_be32_of(at32(e, 24)), lkey = shmemi_be32_of(at32(e, data + 4));
    const struct shmemi_sq_fixed q = shmemi_sq_fixed_of(sq);
    int op = kind_of(e, size);

    if (op < 0)
        return -1;
    if (op == SHMEMI_SQ_AND)
        operand = ~(size == 4 ? at32(e, 40) : at64(e, 48));
    /* 8-byte adds of no boundary may come as the standard atomic or as the extended one: we write the first.
     */
    if (e[3] == 0x15 && size == 8 && op == SHMEMI_SQ_FETCH_ADD)
        return -1;
    shmemi_sq_fill_amo(&q, idx, (enum shmemi_sq_amo_op)op, size, fm, at64(e, 16), rkey, operand, cond,
                       at64(e, data + 8), lkey);
    return op;
}

static void replay(void)
{
    static const char *const names[] = { "add", "compare-swap", "swap", "and", "or", "xor" };
    static uint8_t ring[64 * 64] __attribute__((aligned(64)));
    uint32_t record = 0, cqe[16], seen[2][6] = { { 0 } }, wrong[2][6] = { { 0 } };
    struct shmemi_sq sq;
    uint64_t bell;
    char line[4096];

    while (fgets(line, sizeof line, stdin)) {
        uint8_t e[128] __attribute__((aligned(8))) = { 0 };
        const char *hex = strstr(line, " raw ");
        uint32_t n = 0, idx, segs;
        int op, wide;

        for (hex = hex ? hex + 5 : ""; n < sizeof e && sscanf(hex, "%2hhx", &e[n]) == 1; hex += 2)
            n++;
        if (n < 64 || e[3] < 0x11 || e[3] > 0x15 || e[3] == 0x13)
            continue;
        idx = at32(e, 0) >> 8 & 0xffff;
        segs = at32(e, 4) & 0x3f;
        shmemi_sq_init(&sq, ring, &record, &bell, cqe, at32(e, 4) >> 8, 6, 0);
        op = replay_atomic(&sq, e, idx, e[11]);
        if (op < 0)
            continue;
        wide = e[0] != 8;
        seen[wide][op]++;
        for (uint32_t i = 0; i < segs * 16 && i < n; i++)
            if (e[i] != ours(&sq, idx + i / 64)[i % 64] && !wrong[wide][op]++)
                printf("# %s of %d bytes: byte %u: 0x%02x, we 0x%02x\n", names[op], wide ? 8 : 4, i, e[i],
                       ours(&sq, idx + i / 64)[i % 64]);
    }
    for (int wide = 0; wide < 2; wide++)
        for (int op = 0; op < 6; op++)
            if (seen[wide][op])
                tap_ok(!wrong[wide][op], "UCX: %s of %d bytes (%u entries)", names[op], wide ? 8 : 4,
                       seen[wide][op]);
}

int main(int argc, char **argv)
{
    struct peer p = { 0 };

    if (argc > 1 && strcmp(argv[1], "replay") == 0) {
        replay();
        return tap_done();
    }
    open_device(&p);
    make_qp(&p);
    check_all(&p, "ibv_post_send", post_send);
    check_empty(&p);
    check_all(&p, "ibv_wr", post_wr);
    return tap_done();
}
