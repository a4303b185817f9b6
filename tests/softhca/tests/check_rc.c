/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The reliable protocol between two processes: every kind of operation with its data checked, near the wrap of sequence
 * numbers and queue indices, with and without faults; then errors, key reuse and the linter.
 */
#include "tests/nic.h"
#include "tests/tap.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    MIX_OPS = 600,
    COUNTERS = 0,                /* heap areas: words for atomics, then data of each direction */
    DATA = 64 * 1024,
    BACK = 512 * 1024,
    MAX_LEN = 60000,
    WAIT_MS = 60000,
};

static const struct nic_setup usual = { .sq_blocks = 64, .rq_entries = 64, .cq_entries = 256, .psn = 0xffff80,
                                        .mtu_code = IBV_MTU_1024, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7,
                                        .type = HCA_RC };

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static void fill(uint8_t *p, uint32_t len, uint32_t seed)
{
    for (uint32_t i = 0; i < len; i++)
        p[i] = (uint8_t)(seed + i * 7 + (i >> 8));
}

/* ---- the mix: one operation at a time is checked, but several are under way ---- */

struct expect {
    int kind;
    uint32_t len, seed;
    uint64_t old;
};

/* Posts operation k into its own part of the heap. */
static void post_mix(struct nic *n, struct expect *x, uint32_t *rng, uint64_t *sum, uint32_t *sum4, int slot)
{
    uint64_t peer = n->peer_heap;
    uint8_t *mine = n->heap + DATA + slot * MAX_LEN, *back = n->heap + BACK + slot * MAX_LEN;
    uint64_t *word = (uint64_t *)(void *)(n->heap + 8 * slot);

    x->kind = (int)(next_random(rng) % 5);
    x->len = next_random(rng) % MAX_LEN;
    x->seed = next_random(rng);
    switch (x->kind) {
    case 0: /* write, then read it back */
    case 1:
        fill(mine, x->len, x->seed);
        memset(back, 0, x->len);
        nic_write(n, peer + DATA + (uint64_t)slot * MAX_LEN, n->peer_rkey, mine, x->len, 0);
        nic_read(n, back, peer + DATA + (uint64_t)slot * MAX_LEN, n->peer_rkey, x->len, NIC_SIGNAL);
        break;
    case 2:
        x->old = *sum;
        nic_fetch_add(n, word, peer + COUNTERS, x->seed, NIC_SIGNAL);
        *sum += x->seed;
        break;
    case 3:
        x->old = *sum;
        nic_compare_swap(n, word, peer + COUNTERS, x->seed & 1 ? *sum : *sum + 1, *sum + 5, NIC_SIGNAL);
        *sum += x->seed & 1 ? 5 : 0;
        break;
    default:
        x->old = *sum4;
        nic_fetch_add4(n, (uint32_t *)(void *)word, peer + COUNTERS + 16, x->seed, NIC_SIGNAL);
        *sum4 += x->seed;
    }
}

static bool check_mix(struct nic *n, const struct expect *x, int slot)
{
    const uint8_t *back = n->heap + BACK + slot * MAX_LEN;
    uint64_t word;
    uint32_t half;

    memcpy(&word, n->heap + 8 * slot, 8);
    memcpy(&half, n->heap + 8 * slot, 4);
    if (x->kind <= 1)
        return !memcmp(n->heap + DATA + slot * MAX_LEN, back, x->len);
    return x->kind <= 3 ? word == x->old : be32toh(half) == (uint32_t)x->old;
}

static bool run_mix(struct nic *n)
{
    enum { SLOTS = 7 };
    struct expect x[SLOTS];
    uint32_t rng = 7, sum4 = 0;
    uint64_t sum = 0;
    bool good = true;

    for (int done = 0; done < MIX_OPS && good; done += SLOTS) {
        for (int s = 0; s < SLOTS; s++)
            post_mix(n, &x[s], &rng, &sum, &sum4, s);
        nic_ring(n);
        for (int s = 0; s < SLOTS && good; s++) {
            struct nic_done d = nic_wait_send(n, WAIT_MS);

            good = d.opcode == MLX5_CQE_REQ && check_mix(n, &x[s], s);
            if (!good)
                printf("# operation %d kind %d: opcode %u syndrome 0x%02x\n", done + s, x[s].kind, d.opcode, d.syndrome);
        }
    }
    return good;
}

/* Messages of many lengths, in order, with a receiver that is sometimes late. */
static bool run_sends(struct nic *n, int rank)
{
    uint32_t rng = 99;
    bool good = true;

    for (int i = 0; i < 200 && good; i++) {
        uint32_t len = next_random(&rng) % 9000, seed = next_random(&rng);
        uint8_t *p = n->heap + DATA, *q = n->heap + BACK;
        struct nic_done d;

        if (rank) {
            if (i % 50 == 49)
                usleep(3000); /* the sender sees receiver-not-ready */
            nic_recv(n, p, 9000);
            d = nic_wait_recv(n, WAIT_MS);
            fill(q, len, seed);
            good = d.opcode == (seed & 1 ? MLX5_CQE_RESP_SEND_IMM : MLX5_CQE_RESP_SEND) && d.bytes == len &&
                   !memcmp(p, q, len) && (!(seed & 1) || d.imm_be == seed);
        } else {
            fill(p, len, seed);
            nic_send(n, p, len, seed & 1, seed, NIC_SIGNAL);
            nic_ring(n);
            d = nic_wait_send(n, WAIT_MS);
            good = d.opcode == MLX5_CQE_REQ;
        }
        if (!good)
            printf("# message %d: opcode %u syndrome 0x%02x bytes %u of %u\n", i, d.opcode, d.syndrome, d.bytes, len);
    }
    return good;
}

/* Writes that take a receive entry and tell the receiver how much came where; its buffer is not touched. */
static bool run_write_imm(struct nic *n, int rank)
{
    uint32_t rng = 5;
    bool good = true;

    for (int i = 0; i < 100 && good; i++) {
        uint32_t len = next_random(&rng) % 20000, seed = next_random(&rng);
        struct nic_done d;

        if (rank) {
            nic_recv(n, n->heap, 64);
            d = nic_wait_recv(n, WAIT_MS);
            fill(n->heap + BACK, len, seed);
            good = d.opcode == MLX5_CQE_RESP_WR_IMM && d.bytes == len && d.imm_be == seed && !n->heap[0] &&
                   !memcmp(n->heap + DATA, n->heap + BACK, len);
        } else {
            fill(n->heap + DATA, len, seed);
            nic_write_imm(n, n->peer_heap + DATA, n->heap + DATA, len, seed, NIC_SIGNAL);
            nic_ring(n);
            d = nic_wait_send(n, WAIT_MS);
            good = d.opcode == MLX5_CQE_REQ;
        }
        if (!nic_sync(n)) /* the next write would overwrite what is being compared */
            return false;
    }
    return good;
}

/* A fenced write leaves only when the read before it is complete: it may send what the read brings. */
static bool run_fence(struct nic *n)
{
    bool good = true;

    for (uint32_t i = 1; i <= 50 && good; i++) {
        uint64_t value = i * 0x0101010101ull, *mine = (uint64_t *)(void *)n->heap;

        nic_write_inline(n, n->peer_heap + 64, n->peer_rkey, &value, 8, 0);
        nic_read(n, mine, n->peer_heap + 64, n->peer_rkey, 8, 0);
        nic_write(n, n->peer_heap + 128, n->peer_rkey, mine, 8, MLX5_WQE_CTRL_FENCE);
        nic_read(n, mine + 1, n->peer_heap + 128, n->peer_rkey, 8, NIC_SIGNAL);
        nic_ring(n);
        good = nic_wait_send(n, WAIT_MS).opcode == MLX5_CQE_REQ && mine[1] == value;
    }
    return good;
}

/* More than 65536 blocks through a ring of 16, with sequence numbers passing 2^24. */
static bool run_wrap(struct nic *n)
{
    bool good = true;

    for (uint32_t i = 0; i < 70000 && good; i += 8) {
        for (uint32_t k = 0; k < 8; k++) {
            uint64_t value = i + k + 1;

            nic_write_inline(n, n->peer_heap + 8 * k, n->peer_rkey, &value, 8, k == 7 ? NIC_SIGNAL : 0);
        }
        nic_ring(n);
        good = nic_wait_send(n, WAIT_MS).opcode == MLX5_CQE_REQ;
    }
    nic_read(n, n->heap + 4096, n->peer_heap, n->peer_rkey, 64, NIC_SIGNAL);
    nic_ring(n);
    good = good && nic_wait_send(n, WAIT_MS).opcode == MLX5_CQE_REQ;
    for (uint64_t k = 0; k < 8 && good; k++)
        good = ((uint64_t *)(void *)(n->heap + 4096))[k] == 69993 + k;
    return good;
}

/* ---- errors ---- */

static bool fails_with(struct nic *n, uint8_t syndrome)
{
    struct nic_done d = nic_wait_send(n, WAIT_MS);

    if (d.opcode == MLX5_CQE_REQ_ERR && d.syndrome == syndrome)
        return true;
    printf("# wanted syndrome 0x%02x, got opcode %u syndrome 0x%02x\n", syndrome, d.opcode, d.syndrome);
    return false;
}

/* What the peer does while rank 0 provokes it: nothing but waiting. */
static bool bad_rkey(struct nic *n, int rank)
{
    uint64_t value = 1;
    bool good = true;

    if (!rank) {
        nic_write_inline(n, n->peer_heap, n->peer_rkey ^ 0x100, &value, 8, NIC_SIGNAL);
        nic_nop(n, 0); /* flushed although not signalled */
        nic_ring(n);
        good = fails_with(n, MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR) && fails_with(n, MLX5_CQE_SYNDROME_WR_FLUSH_ERR);
    }
    return nic_sync(n) && good && (!rank || !*(uint64_t *)(void *)n->heap);
}

static bool out_of_bounds(struct nic *n, int rank)
{
    bool good = true;

    if (!rank) {
        nic_write(n, n->peer_heap + NIC_HEAP - 4, n->peer_rkey, n->heap, 8, NIC_SIGNAL);
        nic_ring(n);
        good = fails_with(n, MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR);
    }
    return nic_sync(n) && good;
}

static bool bad_lkey(struct nic *n, int rank)
{
    bool good = true;

    if (!rank) {
        uint64_t value = 5;
        uint8_t *w;

        nic_write_inline(n, n->peer_heap, n->peer_rkey, &value, 8, NIC_SIGNAL); /* this one still completes */
        w = nic_block(n, n->pi);
        nic_write(n, n->peer_heap, n->peer_rkey, n->heap, 8, NIC_SIGNAL);
        w[32 + 7] ^= 0x55;
        nic_ring(n);
        good = nic_wait_send(n, WAIT_MS).opcode == MLX5_CQE_REQ && fails_with(n, MLX5_CQE_SYNDROME_LOCAL_PROT_ERR);
    }
    return nic_sync(n) && good;
}

static bool misaligned_atomic(struct nic *n, int rank)
{
    bool good = true;

    if (!rank) {
        nic_fetch_add(n, (uint64_t *)(void *)n->heap, n->peer_heap + 4, 1, NIC_SIGNAL);
        nic_ring(n);
        good = fails_with(n, MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR);
    }
    return nic_sync(n) && good;
}

static bool lint_index(struct nic *n, int rank)
{
    bool good = true;

    if (!rank) {
        nic_nop(n, NIC_SIGNAL);
        nic_block(n, 0)[2] = 9; /* the entry claims to be number 9 */
        nic_ring(n);
        good = fails_with(n, MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR);
    }
    return nic_sync(n) && good;
}

static bool no_doorbell(struct nic *n, int rank)
{
    bool good = true;

    if (!rank) {
        nic_nop(n, NIC_SIGNAL);
        __atomic_store_n(&n->dbrec[1], htobe32(n->pi), __ATOMIC_RELEASE);
        good = nic_wait_send(n, 100).opcode == NIC_NONE; /* the record alone does nothing */
        nic_ring(n);
        good = good && nic_wait_send(n, WAIT_MS).opcode == MLX5_CQE_REQ;
    }
    return nic_sync(n) && good;
}

/* The same place registered anew has another key; the old one opens nothing. */
static bool key_reuse(struct nic *n, int rank)
{
    uint64_t value = 77;
    uint32_t old = n->mr->key;
    bool good;

    if (rank) {
        struct hca_mr_attr attr = { .pd = n->pd, .addr = (uint64_t)(uintptr_t)n->heap, .len = 4096,
                                    .iova = (uint64_t)(uintptr_t)n->heap, .access = 0xf, .dmabuf_fd = -1 };
        bool again = false;

        hca_lock(n->hca);
        /* Indices come round sooner or later: go on until this one is used again. */
        for (int i = 0; i < 2 * HCA_MAX_KEY && !again; i++) {
            hca_key_free(n->hca, n->mr);
            if (hca_mr_new(n->hca, &attr, &n->mr))
                n->mr = NULL;
            again = !n->mr || n->mr->key >> 8 == old >> 8;
        }
        hca_unlock(n->hca);
        good = n->mr && n->mr->key >> 8 == old >> 8 && n->mr->key != old;
        return nic_sync(n) && nic_sync(n) && good && !*(uint64_t *)(void *)n->heap;
    }
    good = nic_sync(n);
    nic_write_inline(n, n->peer_heap, n->peer_rkey, &value, 8, NIC_SIGNAL);
    nic_ring(n);
    good = good && fails_with(n, MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR);
    return nic_sync(n) && good;
}

static bool no_receive(struct nic *n, int rank)
{
    bool good = true;

    if (!rank) {
        nic_send(n, n->heap, 8, false, 0, NIC_SIGNAL);
        nic_ring(n);
        good = fails_with(n, MLX5_CQE_SYNDROME_RNR_RETRY_EXC_ERR);
    }
    return nic_sync(n) && good;
}

static bool too_long(struct nic *n, int rank)
{
    bool good;

    if (rank) {
        struct nic_done d;

        nic_recv(n, n->heap + DATA, 100);
        good = nic_sync(n);
        d = nic_wait_recv(n, WAIT_MS);
        good = good && d.opcode == MLX5_CQE_RESP_ERR && d.syndrome == MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR &&
               n->heap[DATA + 100] == 0;
        return nic_sync(n) && good;
    }
    memset(n->heap, 1, 200);
    good = nic_sync(n);
    nic_send(n, n->heap, 200, false, 0, NIC_SIGNAL);
    nic_ring(n);
    good = good && fails_with(n, MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR);
    return nic_sync(n) && good;
}

/* The peer stops answering: the sender is told within the time that its QP allows, and not before. */
static bool dead_peer(struct nic *n, int rank)
{
    uint64_t value = 3;
    bool good = nic_sync(n);

    if (rank) {
        hca_lock(n->hca);
        hca_die(n->hca);
        hca_unlock(n->hca);
    }
    good = nic_sync(n) && good;
    if (!rank) {
        nic_write_inline(n, n->peer_heap, n->peer_rkey, &value, 8, NIC_SIGNAL);
        nic_ring(n);
        good = fails_with(n, MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR) && good;
    }
    return nic_sync(n) && good;
}

/* ---- running ---- */

struct scenario {
    const char *name;
    const char *faults;
    bool (*run)(struct nic *n, int rank);
    uint32_t sq_blocks;
    uint8_t timeout, rnr_retry;
};

static bool mix(struct nic *n, int rank)
{
    bool good = rank || run_mix(n);

    return nic_sync(n) && good;
}

static bool sends(struct nic *n, int rank)
{
    bool good = run_sends(n, rank);

    return nic_sync(n) && good;
}

static bool wrap(struct nic *n, int rank)
{
    bool good = rank || run_wrap(n);

    return nic_sync(n) && good;
}

static bool write_imm(struct nic *n, int rank)
{
    bool good = run_write_imm(n, rank);

    return nic_sync(n) && good;
}

static bool fence(struct nic *n, int rank)
{
    bool good = rank || run_fence(n);

    return nic_sync(n) && good;
}

static const struct scenario scenarios[] = {
    { "mixed operations", NULL, mix, 0, 0, 0 },
    { "mixed operations, 1 % loss", "loss=1%", mix, 0, 0, 0 },
    { "mixed operations, loss, duplicates, reordering, 5 % each", "loss=5%,dup=5%,reorder=5%", mix, 0, 0, 0 },
    { "mixed operations, delays and corruption", "delay=5%:300us,corrupt=2%", mix, 0, 0, 0 },
    { "mixed operations, slow doorbell", "doorbell=200us", mix, 0, 0, 0 },
    { "mixed operations, link down for 300 ms", "linkdown=300p+300ms", mix, 0, 0, 0 },
    { "messages", NULL, sends, 0, 0, 0 },
    { "messages, loss, duplicates, reordering", "loss=2%,dup=2%,reorder=2%", sends, 0, 0, 0 },
    { "messages, injected receiver-not-ready", "rnr=10%,loss=1%", sends, 0, 0, 0 },
    { "writes with immediate", NULL, write_imm, 0, 0, 0 },
    { "writes with immediate, loss, duplicates, reordering", "loss=2%,dup=2%,reorder=2%", write_imm, 0, 0, 0 },
    { "fences", NULL, fence, 0, 0, 0 },
    { "fences, loss, reordering", "loss=3%,reorder=3%", fence, 0, 0, 0 },
    { "70000 entries through a ring of 16", NULL, wrap, 16, 0, 0 },
    { "wrong rkey", NULL, bad_rkey, 0, 0, 0 },
    { "write past the region's end", NULL, out_of_bounds, 0, 0, 0 },
    { "wrong lkey", NULL, bad_lkey, 0, 0, 0 },
    { "misaligned atomic", NULL, misaligned_atomic, 0, 0, 0 },
    { "entry with a wrong index", NULL, lint_index, 0, 0, 0 },
    { "record without doorbell", NULL, no_doorbell, 0, 0, 0 },
    { "key index used again", NULL, key_reuse, 0, 0, 0 },
    { "receiver never ready", NULL, no_receive, 0, 0, 1 },
    { "message longer than its buffer", NULL, too_long, 0, 0, 0 },
    { "peer dies", NULL, dead_peer, 0, 8, 0 },
};

static int run_one(const struct scenario *s, const char *wire, int rank, int sock)
{
    struct nic_setup setup = usual;
    struct nic n;
    bool good;
    int err;

    hca_config_read();
    hca_config.wire = wire;
    hca_config.faults[0] = s->faults;
    hca_config.log_level = -1;   /* the complaints provoked here are expected */
    if (s->sq_blocks)
        setup.sq_blocks = s->sq_blocks;
    if (s->timeout)
        setup.timeout = s->timeout;
    if (s->rnr_retry)
        setup.rnr_retry = s->rnr_retry;
    err = nic_open(&n, &setup, sock);
    if (err) {
        printf("# open: %s\n", strerror(-err));
        return 1;
    }
    good = s->run(&n, rank);
    nic_close(&n);
    if (hca_config.stats)
        fflush(stdout);
    hca_device_stop();
    return !good;
}

/* Both ends are children of their own, so that each scenario has a fresh device. */
static bool run_pair(const struct scenario *s, const char *wire)
{
    pid_t pid[2];
    bool good = true;
    int sv[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv))
        return false;
    fflush(stdout);
    for (int rank = 0; rank < 2; rank++) {
        pid[rank] = fork();
        if (pid[rank] == 0) {
            int status;

            prctl(PR_SET_PDEATHSIG, SIGKILL);
            alarm(150);
            close(sv[!rank]);
            status = run_one(s, wire, rank, sv[rank]);
            fflush(stdout);
            exit(status);
        }
    }
    close(sv[0]);
    close(sv[1]);
    for (int rank = 0; rank < 2; rank++) {
        int status;

        if (pid[rank] < 0 || waitpid(pid[rank], &status, 0) < 0 || status)
            good = false;
    }
    return good;
}

int main(int argc, char **argv)
{
    static const char *const wires[] = { "shm", "udp" };

    for (unsigned w = 0; w < 2; w++) {
        for (unsigned i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++) {
            if (argc > 1 && !strstr(scenarios[i].name, argv[1]))
                continue;
            tap_ok(run_pair(&scenarios[i], wires[w]), "%s: %s", wires[w], scenarios[i].name);
        }
    }
    return tap_done();
}
