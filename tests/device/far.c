/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * far.c - what differs where a NIC leads to peers: lanes that share a queue or have one each, memory that the NIC does not
 * know, order of data and signals, more work requests than a ring holds, peers of both kinds in one kernel.
 *
 * run: n=1,2 launch=oshrun timeout=120
 * nodes: no far_nodes.sh runs it
 * gpu: no: as several nodes only (maint/check-gpu.sh)
 */
#include "launch.h"

#define LANES 40
#define WORDS 64
#define STREAM 3000
#define LONG 3000

struct args {
    uint64_t *in;    /* symmetric: WORDS a lane and PE */
    uint64_t *out;   /* symmetric: WORDS a lane */
    uint64_t *sig;   /* symmetric: one a PE */
    char *bytes;     /* symmetric: LONG a lane */
    char *local;     /* LONG a lane that no NIC knows */
    int *bad;
    int me, n, to, from, turn;
    shmem_ctx_t ctx;
};

/* Each lane writes to every PE, many to one queue: by value, inline, in place, from memory that no NIC knows. */
KERNEL(all_to_all, struct args)
{
    int rank = (int)shmemi_thread_in_block();
    uint64_t *mine = a.out + rank * WORDS;

    for (int i = 0; i < WORDS; i++)
        mine[i] = (uint64_t)(a.me * 1000000 + rank * 1000 + i + a.turn);
    for (int k = 0; k < a.n; k++) {
        int pe = (a.me + rank + k) % a.n; /* lanes of a warp talk to different peers */
        uint64_t *there = a.in + (a.me * LANES + rank) * WORDS;

        shmem_uint64_p(there, mine[0], pe);
        shmem_uint64_put_nbi(there + 1, mine + 1, 3, pe);
        shmem_uint64_put_nbi(there + 4, mine + 4, WORDS - 4, pe);
    }
    shmem_quiet();
    shmemx_barrier_all_block();
    for (int pe = 0; pe < a.n; pe++)
        for (int i = 0; i < WORDS; i++)
            a.bad[rank] += a.in[(pe * LANES + rank) * WORDS + i] != (uint64_t)(pe * 1000000 + rank * 1000 + i + a.turn);
    shmemx_barrier_all_block();
}

/* To and from memory of every kind, by lanes at the same time. */
KERNEL(long_way, struct args)
{
    int rank = (int)shmemi_thread_in_block();
    char *there = a.bytes + rank * LONG, *local = a.local + rank * LONG;
    int len = LONG - rank * 7;

    for (int i = 0; i < len; i++)
        local[i] = (char)(a.me + rank * 3 + i);
    shmem_putmem(there, local, (size_t)len, a.to);
    for (int i = 0; i < len; i++)
        local[i] = 0; /* a blocking put is through with it */
    shmemx_barrier_all_block();
    shmem_getmem(local, there, (size_t)len, a.to);
    for (int i = 0; i < len; i++) {
        a.bad[rank] += local[i] != (char)(a.me + rank * 3 + i);
        a.bad[rank] += there[i] != (char)(a.from + rank * 3 + i);
    }
    shmemx_barrier_all_block();
}

/* A stream of values to one word, then a signal: the last value is there when the signal is. */
KERNEL(stream, struct args)
{
    int rank = (int)shmemi_thread_in_block();

    for (int i = 1; i <= STREAM; i++)
        shmem_uint64_p(a.in + rank, (uint64_t)i, a.to);
    shmem_fence();
    shmem_uint64_put_signal_nbi(a.in + LANES + rank, a.out, 1, a.sig + rank, 1, SHMEM_SIGNAL_ADD, a.to);
    shmem_signal_wait_until(a.sig + rank, SHMEM_CMP_EQ, 1);
    a.bad[rank] += a.in[rank] != STREAM;
    shmemx_barrier_all_block();
}

/* One thread and a context of its own. */
KERNEL(own_queue, struct args)
{
    uint64_t old;

    for (int i = 1; i <= STREAM; i++)
        shmem_ctx_uint64_p(a.ctx, a.in, (uint64_t)i, a.to);
    for (int i = 0; i < 20; i++) {
        old = shmem_ctx_uint64_atomic_fetch_add(a.ctx, a.sig, 2, a.to);
        *a.bad += old != (uint64_t)(2 * i);
    }
    *a.bad += shmem_ctx_uint64_g(a.ctx, a.in, a.to) != STREAM;
    shmem_ctx_getmem_nbi(a.ctx, a.bytes, a.out, WORDS * 8, a.to);
    shmem_ctx_quiet(a.ctx);
    *a.bad += ((uint64_t *)(void *)a.bytes)[1] != 77u + (uint64_t)a.to;
    shmem_barrier_all();
    *a.bad += *a.in != STREAM || *a.sig != 40;
}

static int bad_lanes(struct args *a)
{
    int host[LANES], zero[LANES] = { 0 }, total = 0;

    dev_read(host, a->bad, sizeof host);
    dev_write(a->bad, zero, sizeof zero);
    for (int i = 0; i < LANES; i++)
        total += host[i];
    return total;
}

static void clear(struct args *a)
{
    static const uint64_t zero[LANES * 2] = { 0 };

    dev_write(a->in, zero, sizeof zero);
    dev_write(a->sig, zero, LANES * 8);
    shmem_barrier_all();
}

int main(void)
{
    static const long options[2] = { SHMEM_CTX_PRIVATE, 0 };
    uint64_t word;
    struct args a;

    dev_init();
    memset(&a, 0, sizeof a);
    a.in = (uint64_t *)dev_malloc((size_t)tap_n * LANES * WORDS * 8);
    a.out = (uint64_t *)dev_malloc(LANES * WORDS * 8);
    a.sig = (uint64_t *)dev_malloc(LANES * 8);
    a.bytes = (char *)dev_malloc(LANES * LONG);
    a.local = (char *)dev_local(LANES * LONG);
    a.bad = (int *)dev_local(LANES * sizeof(int));
    a.me = tap_me;
    a.n = tap_n;
    a.to = (tap_me + 1) % tap_n;
    a.from = (tap_me + tap_n - 1) % tap_n;
    for (a.turn = 0; a.turn < 3; a.turn++)
        LAUNCH(all_to_all, struct args, a, 1, LANES);
    tap_ok(bad_lanes(&a) == 0, "%d lanes of every PE put to every PE", LANES);
    LAUNCH(long_way, struct args, a, 1, LANES);
    tap_ok(bad_lanes(&a) == 0, "to and from memory that no NIC knows");
    clear(&a);
    LAUNCH(stream, struct args, a, 1, LANES);
    tap_ok(bad_lanes(&a) == 0, "%d values a lane, then a signal", STREAM);
    for (int k = 0; k < 2; k++) {
        clear(&a);
        word = 77 + (uint64_t)tap_me;
        dev_write(a.out + 1, &word, 8);
        shmem_ctx_create(options[k], &a.ctx);
        dev_add_ctx(a.ctx, SHMEM_TEAM_WORLD);
        shmem_barrier_all();
        LAUNCH(own_queue, struct args, a, 1, 1);
        shmem_barrier_all();
        tap_ok(bad_lanes(&a) == 0, "a context%s", k ? "" : " of one thread");
    }
    return dev_done();
}
