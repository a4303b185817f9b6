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

#if defined(__CUDACC__)
#define ON_DEVICE static __device__
#else
#define ON_DEVICE static
#endif

#define LANES 40
#define WORDS 64
#define STREAM 3000
#define LONG 3000

struct args {
    uint64_t *in;    /* symmetric: WORDS a lane and PE */
    uint64_t *out;   /* symmetric: WORDS a lane */
    uint64_t *sig;   /* symmetric: two a lane */
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

/* Blocks of a strided call: n of `len` words, every `to`-th word there from every `from`-th here. */
struct blocks {
    int n, len, to, from;
};

/* More words than a run may have; short blocks; blocks that do not fit an entry. */
#define KINDS 3

ON_DEVICE struct blocks blocks_of(int k, int rank)
{
    struct blocks words = { 80 + rank % 40, 1, 2, 3 }, few = { 20, 5, 7, 6 }, many = { 3, 40, 50, 45 };

    return k == 0 ? words : k == 1 ? few : many;
}

ON_DEVICE uint64_t value_of(int pe, int rank, int k, int i)
{
    return (uint64_t)(pe * 1000000 + rank * 10000 + k * 1000 + i);
}

/* Each lane, from memory that no NIC knows and from the heap by turns, there and back. */
KERNEL(strided, struct args)
{
    int rank = (int)shmemi_thread_in_block();
    uint64_t *there = (uint64_t *)(void *)(a.bytes + rank * LONG), *local = (uint64_t *)(void *)(a.local + rank * LONG);

    for (int k = 0; k < KINDS; k++) {
        struct blocks b = blocks_of(k, rank);

        for (int i = 0; i < LONG / 8; i++)
            local[i] = value_of(a.me, rank, k, i);
        shmem_uint64_ibput(there, local, b.to, b.from, (size_t)b.len, (size_t)b.n, a.to);
        shmemx_barrier_all_block();
        for (int i = 0; i < b.n * b.len; i++)
            a.bad[rank] += there[i / b.len * b.to + i % b.len] != value_of(a.from, rank, k, i / b.len * b.from + i % b.len);
        for (int i = 0; i < LONG / 8; i++)
            local[i] = 0;
        shmem_uint64_ibget(local, there, b.from, b.to, (size_t)b.len, (size_t)b.n, a.to);
        for (int i = 0; i < b.n * b.len; i++)
            a.bad[rank] += local[i / b.len * b.from + i % b.len] != value_of(a.me, rank, k, i / b.len * b.from + i % b.len);
        shmemx_barrier_all_block();
    }
}

/* By all together, heap to heap. */
KERNEL(strided_block, struct args)
{
    int rank = (int)shmemi_thread_in_block();
    uint64_t *there = (uint64_t *)(void *)a.bytes, *back = there + LANES * LONG / 16;

    for (int i = rank; i < LANES * WORDS; i += LANES)
        a.out[i] = value_of(a.me, 0, 0, i);
    shmemx_uint64_iput_block(there, a.out, 2, 1, LANES * WORDS, a.to);
    shmemx_barrier_all_block();
    for (int i = rank; i < LANES * WORDS; i += LANES)
        a.bad[rank] += there[2 * i] != value_of(a.from, 0, 0, i);
    shmemx_uint64_iget_block(back, there, 1, 2, LANES * WORDS, a.to);
    shmem_quiet();
    shmemx_barrier_all_block();
    for (int i = rank; i < LANES * WORDS; i += LANES)
        a.bad[rank] += back[i] != value_of(a.me, 0, 0, i);
    shmemx_barrier_all_block();
}

/* The queue to PE `pe`, if that is how one gets there: is the last of its entries without a doorbell? */
ON_DEVICE int is_left(shmem_ctx_t ctx, int pe)
{
#if !defined(__CUDACC__) || defined(__CUDA_ARCH__) /* nvcc's pass for the host does not know them */
    if (shmemi_dev_nic() && !shmemi_far_proxy() && !shmemi_dev_base(pe, 1))
        return shmemi_far_queue(shmemi_far_row(ctx), pe)->deferred != 0;
#endif
    (void)ctx;
    (void)pe;
    return -1;
}

/* In a batch the doorbell waits for a call that rings. */
KERNEL(batch, struct args)
{
    for (int i = 1; i <= 5; i++)
        shmem_ctx_uint64_p(a.ctx, a.in + i, (uint64_t)i, a.to);
    *a.bad += is_left(a.ctx, a.to) == 0;
    shmem_ctx_uint64_put_nbi(a.ctx, a.in + 6, a.out + 6, 1, a.to);
    shmem_ctx_uint64_put_nbi(a.ctx, a.in + 7, a.out + 7, 9, a.to);
    *a.bad += is_left(a.ctx, a.to) == 0;
    shmem_ctx_uint64_put_signal_nbi(a.ctx, a.in + 16, a.out + 16, 40, a.sig, 1, SHMEM_SIGNAL_SET, a.to);
    *a.bad += is_left(a.ctx, a.to) == 1;
    shmem_signal_wait_until(a.sig, SHMEM_CMP_EQ, 1);
    for (int i = 1; i < 56; i++)
        *a.bad += a.in[i] != (i < 6 ? (uint64_t)i : value_of(a.from, 0, 0, i));
    shmem_ctx_uint64_p(a.ctx, a.in + 60, 7, a.to);
    shmem_ctx_uint64_iput(a.ctx, a.in + 61, a.out, 1, 1, 2, a.to);
    *a.bad += is_left(a.ctx, a.to) == 0;
    shmem_ctx_quiet(a.ctx);
    *a.bad += is_left(a.ctx, a.to) == 1;
    shmem_barrier_all();
    *a.bad += a.in[60] != 7 || a.in[62] != value_of(a.from, 0, 0, 1);
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

#define ROUNDS 60

/*
 * Data with their signal, set and added, to a PE that sends the same way: a word, memory in place and inline, waited for or not, with
 * single entries between, so that pairs begin at odd places of the ring, too.  Two buffers take turns, as the other may be a round ahead.
 */
ON_DEVICE int signal_rounds(struct args a, int rank)
{
    int bad = 0;

    for (int i = 1; i <= ROUNDS; i++) {
        int at = rank * WORDS + i % 2 * 32, len = i % 3 == 0 ? 1 : i % 3 == 1 ? 30 : 5, op = i % 7 < 4 ? SHMEM_SIGNAL_SET : SHMEM_SIGNAL_ADD;
        uint64_t signal = op == SHMEM_SIGNAL_SET ? (uint64_t)i : 1;

        for (int k = 0; k < len; k++)
            a.out[at + k] = value_of(a.me, rank, i % 10, k) + (uint64_t)i;
        if (i % 4 == 0)
            shmem_ctx_uint64_p(a.ctx, a.in + rank * WORDS + 63, 1, a.to);
        if (i % 5 == 0)
            shmem_ctx_uint64_put_signal(a.ctx, a.in + at, a.out + at, (size_t)len, a.sig + rank, signal, op, a.to);
        else
            shmem_ctx_uint64_put_signal_nbi(a.ctx, a.in + at, a.out + at, (size_t)len, a.sig + rank, signal, op, a.to);
        shmem_signal_wait_until(a.sig + rank, SHMEM_CMP_GE, (uint64_t)i);
        for (int k = 0; k < len; k++)
            bad += a.in[at + k] != value_of(a.to, rank, i % 10, k) + (uint64_t)i;
    }
    return bad;
}

/* And many at a time (a.turn), of which the last is there when so many signals have come. */
KERNEL(signalled, struct args)
{
    int rank = (int)(shmemi_block_index() * shmemi_block_threads() + shmemi_thread_in_block());
    uint64_t *out = a.out + rank * WORDS, *in = a.in + rank * WORDS;

    a.bad[rank] += signal_rounds(a, rank);
    for (int i = 1; i <= a.turn; i++) {
        out[62] = (uint64_t)i;
        shmem_ctx_uint64_put_signal_nbi(a.ctx, in + 62, out + 62, 1, a.sig + rank, 1, SHMEM_SIGNAL_ADD, a.to);
        if (i % 3 == 0)
            shmem_ctx_uint64_put_signal_nbi(a.ctx, in + 32, out + 32, 30, a.sig + LANES + rank, (uint64_t)i, SHMEM_SIGNAL_SET, a.to);
    }
    shmem_signal_wait_until(a.sig + rank, SHMEM_CMP_EQ, (uint64_t)(ROUNDS + a.turn));
    a.bad[rank] += in[62] != (uint64_t)a.turn;
    shmem_signal_wait_until(a.sig + LANES + rank, SHMEM_CMP_EQ, (uint64_t)a.turn);
    shmem_ctx_quiet(a.ctx);
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
    dev_write(a->sig, zero, sizeof zero);
    shmem_barrier_all();
}

static void in_a_batch(struct args *a)
{
    uint64_t out[WORDS], word = 77 + (uint64_t)tap_me;

    shmem_ctx_create(SHMEM_CTX_PRIVATE, &a->ctx);
    shmem_ctx_session_start(a->ctx, SHMEM_CTX_SESSION_BATCH, NULL, 0);
    dev_add_ctx(a->ctx, SHMEM_TEAM_WORLD);
    clear(a);
    dev_write(a->out + 1, &word, 8);
    shmem_barrier_all();
    LAUNCH(own_queue, struct args, *a, 1, 1);
    shmem_barrier_all();
    tap_ok(bad_lanes(a) == 0, "a stream in a batch");
    for (int i = 0; i < WORDS; i++)
        out[i] = (uint64_t)(tap_me * 1000000 + i);
    dev_write(a->out, out, sizeof out);
    clear(a);
    LAUNCH(batch, struct args, *a, 1, 1);
    shmem_barrier_all();
    tap_ok(bad_lanes(a) == 0, "a batch is rung for by a signal and a quiet");
    shmem_ctx_session_stop(a->ctx);
    shmem_ctx_destroy(a->ctx);
}

/* By one thread at a time, by several blocks' on one queue, by lanes of a warp together. */
static void signals(struct args a)
{
    static const struct {
        long options; /* -1: the default context */
        int blocks, threads, many; /* together more entries than a ring holds */
        const char *name;
    } ways[] = { { -1, 1, 1, 450, "one thread" },
                 { -1, 6, 1, 90, "six blocks of a thread" },
                 { -1, 1, LANES, 15, "lanes together" },
                 { SHMEM_CTX_PRIVATE, 1, 1, 450, "a private context" },
                 { 0, 3, 1, 150, "three blocks and a context" } };

    if (tap_n % 2 == 0)
        a.to = (tap_me + tap_n / 2) % tap_n;
    else
        a.to = tap_me;
    for (int k = 0; k < (int)(sizeof ways / sizeof *ways); k++) {
        clear(&a);
        a.turn = ways[k].many;
        a.ctx = SHMEM_CTX_DEFAULT;
        if (ways[k].options >= 0) {
            shmem_ctx_create(ways[k].options, &a.ctx);
            dev_add_ctx(a.ctx, SHMEM_TEAM_WORLD);
        }
        LAUNCH(signalled, struct args, a, ways[k].blocks, ways[k].threads);
        shmem_barrier_all();
        tap_ok(bad_lanes(&a) == 0, "signals behind their data: %s", ways[k].name);
        if (ways[k].options >= 0)
            shmem_ctx_destroy(a.ctx);
    }
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
    a.sig = (uint64_t *)dev_malloc(LANES * 2 * 8);
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
    LAUNCH(strided, struct args, a, 1, LANES);
    tap_ok(bad_lanes(&a) == 0, "blocks by each of %d lanes, there and back", LANES);
    LAUNCH(strided_block, struct args, a, 1, LANES);
    tap_ok(bad_lanes(&a) == 0, "words by %d threads together, there and back", LANES);
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
    in_a_batch(&a);
    signals(a);
    return dev_done();
}
