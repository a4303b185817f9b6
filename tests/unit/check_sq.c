/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check_sq.c - the mlx5 send queue against a NIC in the same process (tests/mlx5/soft_nic.h): what each post
 * does to memory, doorbells and completions it costs, the ring's end, the wrap of 16-bit indices, a full
 * ring, and errors.
 */
#include "queue.h"
#include "shmem/device/sq_run.h"

#include <check.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

static const enum shmemi_sq_mode modes[] = { SHMEMI_SQ_PRIVATE, SHMEMI_SQ_SHARED };
static const uint64_t firsts[] = { 0, 65530, 0xfffffffeull };

static uint64_t remote[64], local[64];

static void run_all(struct queue *q)
{
    while (soft_nic_run(&q->nic, 1000))
        ;
    ck_assert_msg(!q->nic.complaint, "the NIC complains: %s", q->nic.complaint);
    ck_assert_uint_eq(shmemi_sq_poll(&q->sq), 0);
}

static void finish(struct queue *q, uint64_t ticket)
{
    ck_assert_uint_ne(ticket, SHMEMI_SQ_FAILED);
    run_all(q);
    ck_assert(shmemi_sq_is_done(&q->sq, ticket));
}

/* ---- operations ---- */

START_TEST(write_and_read_move_bytes)
{
    struct queue *q = queue_new(4, firsts[_i / 2]);
    enum shmemi_sq_mode mode = modes[_i % 2];

    for (int i = 0; i < 64; i++)
        local[i] = (uint64_t)i * 7;
    memset(remote, 0, sizeof remote);
    finish(q, shmemi_sq_write(&q->sq, mode, queue_va(remote), queue_rkey(), queue_va(local), queue_lkey(),
                              500, 0));
    ck_assert_int_eq(memcmp(remote, local, 500), 0);
    ck_assert_uint_eq(remote[63], 0);
    memset(local, 0, sizeof local);
    finish(q, shmemi_sq_read(&q->sq, mode, queue_va(remote), queue_rkey(), queue_va(local), queue_lkey(), 496,
                             0));
    ck_assert_int_eq(memcmp(remote, local, 496), 0);
    finish(q, shmemi_sq_write(&q->sq, mode, queue_va(remote), queue_rkey(), 0, queue_lkey(), 0, 0));
    ck_assert_uint_eq(q->nic.bells, 3);
    ck_assert_uint_eq(q->nic.completions, 3);
    queue_free(q);
}
END_TEST

START_TEST(values_of_every_size)
{
    struct queue *q = queue_new(4, firsts[_i / 2]);
    static const uint64_t want[] = { 0, 0x88, 0x7788, 0, 0x55667788, 0, 0, 0, 0x1122334455667788 };

    for (uint32_t size = 1; size <= 8; size *= 2) {
        remote[0] = 0;
        finish(q, shmemi_sq_write_value(&q->sq, modes[_i % 2], queue_va(remote), queue_rkey(),
                                        0x1122334455667788, size, 0));
        ck_assert_uint_eq(remote[0], want[size]);
    }
    queue_free(q);
}
END_TEST

/* Every length at every block of the ring; the source ends where memory ends. */
START_TEST(inline_data_of_every_length)
{
    struct queue *q = queue_new(4, firsts[_i / 2]);
    long page = sysconf(_SC_PAGESIZE);
    unsigned char *two =
        mmap(NULL, (size_t)page * 2, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned char *end = two + page, want[256], *got = (unsigned char *)remote;

    ck_assert(two != MAP_FAILED && mprotect(end, (size_t)page, PROT_NONE) == 0);
    for (int i = 1; i <= SHMEMI_SQ_INLINE_MAX; i++)
        end[-i] = (unsigned char)(i * 13);
    for (uint32_t turn = 0; turn < 17; turn++)
        for (uint32_t len = 0; len <= SHMEMI_SQ_INLINE_MAX; len++) {
            memset(remote, 0x5a, sizeof remote);
            memset(want, 0x5a, sizeof want);
            memcpy(want, end - len, len);
            finish(q, shmemi_sq_write_inline(&q->sq, modes[_i % 2], queue_va(remote), queue_rkey(), end - len,
                                             len, 0));
            ck_assert_msg(memcmp(got, want, sizeof want) == 0, "length %u", len);
        }
    munmap(two, (size_t)page * 2);
    queue_free(q);
}
END_TEST

static uint64_t after(enum shmemi_sq_amo_op op, uint64_t old, uint64_t v, uint64_t cond)
{
    switch (op) {
    case SHMEMI_SQ_FETCH_ADD: return old + v;
    case SHMEMI_SQ_CSWAP: return old == cond ? v : old;
    case SHMEMI_SQ_SWAP: return v;
    case SHMEMI_SQ_AND: return old & v;
    case SHMEMI_SQ_OR: return old | v;
    default: return old ^ v;
    }
}

START_TEST(atomics_of_both_sizes)
{
    static const uint64_t values[] = {
        0, 1, 0xffffffffffffffff, 0x123456789abcdef0, 0x80000000, 0xf0f0f0f0ffffffff
    };
    struct queue *q = queue_new(4, firsts[_i / 2]);
    uint64_t ticket, mask, old, v;

    for (uint32_t size = 4; size <= 8; size += 4)
        for (int op = SHMEMI_SQ_FETCH_ADD; op <= SHMEMI_SQ_XOR; op++)
            for (int i = 0; i < 36 * 2; i++) {
                mask = size == 4 ? 0xffffffff : UINT64_MAX;
                old = values[i % 6];
                v = values[i / 6 % 6];
                remote[0] = old;
                local[0] = local[1] = 0x5555555555555555;
                ticket =
                    shmemi_sq_amo(&q->sq, modes[_i % 2], (enum shmemi_sq_amo_op)op, size, queue_va(remote),
                                  queue_rkey(), v, i < 36 ? old : old + 1, queue_va(local), queue_lkey(), 0);
                finish(q, ticket);
                ck_assert_uint_eq(shmemi_sq_amo_result(local, size), old & mask);
                ck_assert_uint_eq(local[1], 0x5555555555555555);
                ck_assert_uint_eq(remote[0] & mask, after((enum shmemi_sq_amo_op)op, old & mask, v & mask,
                                                          (i < 36 ? old : old + 1) & mask) &
                                                        mask);
                ck_assert_uint_eq(remote[0] & ~mask, old & ~mask);
            }
    queue_free(q);
}
END_TEST

START_TEST(a_signal_follows_its_data_under_one_doorbell)
{
    struct queue *q = queue_new(4, firsts[_i / 2]);
    enum shmemi_sq_mode mode = modes[_i % 2];
    struct shmemi_sq_signal sig = { queue_va(&remote[40]), 9,           queue_rkey(), 0,
                                    queue_va(&local[40]),  queue_lkey() };

    memset(remote, 0, sizeof remote);
    for (int i = 0; i < 64; i++)
        local[i] = (uint64_t)i + 1;
    finish(q, shmemi_sq_write_signal(&q->sq, mode, queue_va(remote), queue_rkey(), queue_va(local),
                                     queue_lkey(), 64, &sig, 0));
    ck_assert_uint_eq(remote[40], 9);
    ck_assert_int_eq(memcmp(remote, local, 64), 0);
    sig.add = 1;
    for (int i = 0; i < 20; i++)
        finish(q, shmemi_sq_write_inline_signal(&q->sq, mode, queue_va(&remote[8]), queue_rkey(), &local[i],
                                                160, &sig, 0));
    ck_assert_uint_eq(remote[40], 9 * 21);
    ck_assert_int_eq(memcmp(&remote[8], &local[19], 160), 0);
    ck_assert_uint_eq(q->nic.bells, 21);
    ck_assert_uint_eq(q->nic.completions, 21);
    queue_free(q);
}
END_TEST

START_TEST(fence_marks_only_the_first_entry)
{
    struct queue *q = queue_new(4, 0);
    struct shmemi_sq_signal sig = { queue_va(&remote[40]), 9, queue_rkey(), 0, 0, queue_lkey() };

    shmemi_sq_write_signal(&q->sq, modes[_i % 2], queue_va(remote), queue_rkey(), queue_va(local),
                           queue_lkey(), 64, &sig, SHMEMI_SQ_FENCE);
    ck_assert_uint_eq(q->nic.ring[11], 0x80);
    ck_assert_uint_eq(q->nic.ring[64 + 11], 0x08);
    run_all(q);
    queue_free(q);
}
END_TEST

/* ---- doorbells ---- */

START_TEST(sixteen_deferred_puts_ring_once)
{
    struct queue *q = queue_new(8, firsts[_i / 2]);
    enum shmemi_sq_mode mode = modes[_i % 2];
    uint64_t ticket;

    for (int i = 0; i < 16; i++)
        shmemi_sq_write_value(&q->sq, mode, queue_va(&remote[i]), queue_rkey(), (uint64_t)i, 8,
                              SHMEMI_SQ_DEFER);
    if (firsts[_i / 2] == 0) {
        run_all(q);
        ck_assert_uint_eq(q->nic.bells, 0);
        ck_assert_uint_eq(q->nic.entries, 0);
    }
    ticket = shmemi_sq_ring(&q->sq, mode);
    finish(q, ticket);
    if (firsts[_i / 2] == 0) {
        ck_assert_uint_eq(q->nic.bells, 1);
        ck_assert_uint_eq(q->nic.completions, 1);
    }
    for (int i = 0; i < 16; i++)
        ck_assert_uint_eq(remote[i], (uint64_t)i);
    /* Nothing is left: no doorbell, the same ticket. */
    ck_assert_uint_eq(shmemi_sq_ring(&q->sq, mode), ticket);
    run_all(q);
    ck_assert_uint_le(q->nic.bells, firsts[_i / 2] ? 2 : 1);
    queue_free(q);
}
END_TEST

START_TEST(a_post_rings_for_deferred_ones_before_it)
{
    struct queue *q = queue_new(8, 0);
    enum shmemi_sq_mode mode = modes[_i % 2];
    uint64_t ticket;

    for (int i = 0; i < 15; i++)
        shmemi_sq_write_value(&q->sq, mode, queue_va(&remote[i]), queue_rkey(), 100, 8, SHMEMI_SQ_DEFER);
    ticket = shmemi_sq_write_value(&q->sq, mode, queue_va(&remote[15]), queue_rkey(), 100, 8, 0);
    ck_assert_uint_eq(shmemi_sq_ring(&q->sq, mode), ticket);
    finish(q, ticket);
    ck_assert_uint_eq(q->nic.bells, 1);
    ck_assert_uint_eq(q->nic.completions, 1);
    ck_assert_uint_eq(q->nic.entries, 16);
    queue_free(q);
}
END_TEST

/* Three posts reserve before the first is published: the second may leave its doorbell to the third only if that one rings. */
START_TEST(a_doorbell_is_left_only_to_who_rings)
{
    struct queue *q = queue_new(8, 0);
    const struct shmemi_sq_fixed fixed = shmemi_sq_fixed_of(&q->sq);
    struct shmemi_sq_claim c[3];
    int flags[3] = { 0, 0, _i ? SHMEMI_SQ_DEFER : 0 };

    for (int i = 0; i < 3; i++)
        ck_assert_uint_eq(shmemi_sq_reserve(&q->sq, &fixed, SHMEMI_SQ_SHARED, 1, flags[i], &c[i]), 0);
    for (uint64_t i = 0; i < 3; i++) {
        int signalled = shmemi_sq_signals(&fixed, c[i].idx, 1, flags[i]);
        uint64_t bell = shmemi_sq_fill_value(&fixed, c[i].idx, shmemi_sq_fm(signalled, flags[i]), queue_va(&remote[i]),
                                             queue_rkey(), i + 7, 8);

        ck_assert_int_eq(c[i].turn, i == 0);
        ck_assert_uint_eq(shmemi_sq_publish(&q->sq, &fixed, SHMEMI_SQ_SHARED, &c[i], 1, c[i].idx, bell, signalled, flags[i]),
                          i + 1);
        soft_nic_run(&q->nic, 1000);
        ck_assert_uint_eq(q->nic.bells, i == 0 ? 1 : _i ? 2 : i);
    }
    finish(q, shmemi_sq_ring(&q->sq, SHMEMI_SQ_SHARED));
    for (uint64_t i = 0; i < 3; i++)
        ck_assert_uint_eq(remote[i], i + 7);
    queue_free(q);
}
END_TEST

/* A run: all kinds of entries under one doorbell and one completion, the first fenced, the last signalled. */
START_TEST(a_run_rings_once)
{
    struct queue *q = queue_new(6, firsts[_i / 2]);
    enum shmemi_sq_mode mode = modes[_i % 2];
    struct shmemi_sq_run r;
    uint64_t bells;

    for (uint64_t turn = 0; turn < 40; turn++) {
        uint32_t n = 4 + shmemi_sq_inline_blocks(100), slot = (uint32_t)q->sq.reserved % 64;

        memset(remote, 0, sizeof remote);
        for (uint64_t i = 0; i < 64; i++)
            local[i] = i + turn;
        bells = q->nic.bells;
        ck_assert_uint_ge(shmemi_sq_run_most(&q->sq), n);
        ck_assert_uint_eq(shmemi_sq_run_open(&q->sq, mode, n, SHMEMI_SQ_FENCE, &r), 0);
        shmemi_sq_run_rdma(&r, SHMEMI_MLX5_WRITE, queue_va(remote), queue_rkey(), queue_va(local), queue_lkey(), 64);
        shmemi_sq_run_inline(&r, queue_va(remote + 10), queue_rkey(), local + 10, 100);
        for (uint64_t i = 0; i < 3; i++)
            shmemi_sq_run_value(&r, queue_va(&remote[40 + i]), queue_rkey(), turn * 10 + i, 8);
        finish(q, shmemi_sq_run_close(&q->sq, mode, &r));
        ck_assert_uint_eq(q->nic.bells, bells + 1);
        ck_assert_uint_eq(q->nic.ring[slot * 64 + 11], 0x80);
        ck_assert_int_eq(memcmp(remote, local, 64), 0);
        ck_assert_int_eq(memcmp(remote + 10, local + 10, 100), 0);
        for (uint64_t i = 0; i < 3; i++)
            ck_assert_uint_eq(remote[40 + i], turn * 10 + i);
    }
    ck_assert_uint_eq(q->nic.completions, 40);
    queue_free(q);
}
END_TEST

START_TEST(an_untouched_queue_has_nothing_to_ring_for)
{
    struct queue *q = queue_new(4, 0);

    ck_assert_uint_eq(shmemi_sq_ring(&q->sq, modes[_i % 2]), 0);
    ck_assert_uint_eq(shmemi_sq_poll(&q->sq), 0);
    ck_assert(shmemi_sq_is_done(&q->sq, 0));
    ck_assert(!shmemi_sq_is_done(&q->sq, 1));
    ck_assert_uint_eq(q->nic.doorbell, 0);
    ck_assert_int_eq(shmemi_sq_init(&q->sq, NULL, NULL, NULL, q->nic.cqe, 1, 3, 0), -1);
    ck_assert_int_eq(shmemi_sq_init(&q->sq, NULL, NULL, NULL, q->nic.cqe, 1, 16, 0), -1);
    queue_free(q);
}
END_TEST

/* ---- a full ring, in the company of a NIC that runs by itself ---- */

struct runner {
    pthread_t thread;
    struct queue *q;
    int stop;
};

static void *run_nic(void *arg)
{
    struct runner *r = arg;

    while (!__atomic_load_n(&r->stop, __ATOMIC_ACQUIRE))
        if (!soft_nic_run(&r->q->nic, 3))
            sched_yield();
    return NULL;
}

static void start(struct runner *r, struct queue *q)
{
    *r = (struct runner){ .q = q };
    ck_assert_int_eq(pthread_create(&r->thread, NULL, run_nic, r), 0);
}

static void stop(struct runner *r)
{
    __atomic_store_n(&r->stop, 1, __ATOMIC_RELEASE);
    pthread_join(r->thread, NULL);
}

static void wait_for(struct queue *q, uint64_t ticket)
{
    uint32_t spins = 0;

    while (shmemi_sq_poll(&q->sq) == 0 && !shmemi_sq_is_done(&q->sq, ticket))
        shmemi_backoff(&spins);
}

/* 70,000 entries of one to four blocks, deferred or not: more than 16 bits can count, many times round the
 * ring. */
START_TEST(a_full_ring_waits_and_wraps)
{
    static unsigned char want[224];
    struct queue *q = queue_new(_i / 2 % 2 ? 4 : 6, 0);
    enum shmemi_sq_mode mode = modes[_i % 2];
    int flags = _i < 4 ? SHMEMI_SQ_DEFER : 0;
    struct runner r;
    uint32_t random = 1, len;
    uint64_t ticket;

    start(&r, q);
    for (int i = 0; i < 70000; i++) {
        random = random * 1664525 + 1013904223;
        len = 1 + (random >> 16) % SHMEMI_SQ_INLINE_MAX;
        memset(want, i, len);
        ticket = shmemi_sq_write_inline(&q->sq, mode, queue_va(remote), queue_rkey(), want, len, flags);
        ck_assert_uint_ne(ticket, SHMEMI_SQ_FAILED);
    }
    wait_for(q, shmemi_sq_ring(&q->sq, mode));
    stop(&r);
    ck_assert_msg(!q->nic.complaint, "the NIC complains: %s", q->nic.complaint);
    ck_assert_uint_eq(q->nic.entries, 70000 + (mode == SHMEMI_SQ_SHARED && flags && q->nic.entries != 70000));
    ck_assert_int_eq(memcmp(remote, want, len), 0);
    ck_assert_uint_gt(q->sq.done, 65536);
    queue_free(q);
}
END_TEST

/* ---- errors ---- */

START_TEST(the_first_error_stays)
{
    struct queue *q = queue_new(6, 0);
    enum shmemi_sq_mode mode = modes[_i % 2];
    uint64_t first, second;
    uint32_t error = 0x80000000 | 0x77 << 8 | 0x13;

    q->nic.fail_at = 3;
    q->nic.fail_syndrome = 0x13;
    for (int i = 0; i < 2; i++)
        finish(q, shmemi_sq_write_value(&q->sq, mode, queue_va(remote), queue_rkey(), 1, 8, 0));
    first = shmemi_sq_write_value(&q->sq, mode, queue_va(remote), queue_rkey(), 1, 8, 0);
    second = shmemi_sq_write_value(&q->sq, mode, queue_va(remote), queue_rkey(), 1, 8, 0);
    ck_assert_uint_eq(soft_nic_run(&q->nic, 1), 1);
    ck_assert_uint_eq(shmemi_sq_poll(&q->sq), error);
    ck_assert_uint_eq(q->sq.error >> 32, 2 | 0x08 << 16); /* index and opcode of the third */
    ck_assert_uint_eq(soft_nic_run(&q->nic, 1), 1);       /* its flush error overwrites the completion */
    ck_assert_uint_eq(shmemi_sq_poll(&q->sq), error);
    ck_assert_uint_eq(q->sq.error >> 32, 2 | 0x08 << 16);
    ck_assert(shmemi_sq_is_done(&q->sq, first) && shmemi_sq_is_done(&q->sq, second));
    ck_assert_uint_eq(q->sq.done, 2); /* not complete, in error */
    queue_free(q);
}
END_TEST

START_TEST(an_error_is_no_completion)
{
    struct queue *q = queue_new(6, 0);
    uint64_t ticket = shmemi_sq_write_value(&q->sq, modes[_i % 2], queue_va(remote), queue_rkey(), 1, 8, 0);

    ck_assert(!shmemi_sq_is_done(&q->sq, ticket));
    for (uint32_t opcode = 0; opcode < 16; opcode++) {
        q->sq.error = q->sq.done = 0;
        q->nic.cqe[15] = opcode << 28; /* of the entry with index 0 */
        ck_assert_uint_eq(shmemi_sq_poll(&q->sq) != 0, opcode != 0 && opcode != 15);
        ck_assert_uint_eq(q->sq.done, opcode == 0);
    }
    queue_free(q);
}
END_TEST

/* A post to a queue in error, be its ring full or not, gives up and does not hang. */
START_TEST(posts_give_up_on_a_queue_in_error)
{
    struct queue *q = queue_new(4, 0);
    enum shmemi_sq_mode mode = modes[_i % 2];
    uint64_t ticket = 0;
    struct runner r;

    q->nic.fail_at = 5;
    q->nic.fail_syndrome = 0x15;
    start(&r, q);
    for (int i = 0; i < 100 && ticket != SHMEMI_SQ_FAILED; i++)
        ticket = shmemi_sq_write_value(&q->sq, mode, queue_va(remote), queue_rkey(), 1, 8, 0);
    ck_assert_uint_eq(ticket, SHMEMI_SQ_FAILED);
    ck_assert_uint_eq(shmemi_sq_write_value(&q->sq, mode, queue_va(remote), queue_rkey(), 1, 8, 0),
                      SHMEMI_SQ_FAILED);
    ck_assert(shmemi_sq_is_done(&q->sq, SHMEMI_SQ_FAILED));
    ck_assert_uint_ne(shmemi_sq_poll(&q->sq), 0);
    stop(&r);
    queue_free(q);
}
END_TEST

/* ---- indices ---- */

START_TEST(sixteen_bits_are_widened)
{
    static const uint64_t at[] = { 0, 1, 65535, 65536, 65537, 0x1ffff, 0x7ffffffffff0 };

    for (size_t i = 0; i < sizeof at / sizeof *at; i++)
        for (uint64_t ahead = 0; ahead <= 32768; ahead += ahead < 40 ? 1 : 4091) {
            uint16_t index = (uint16_t)(at[i] + ahead - 1);
            uint32_t last = (uint32_t)(index >> 8) | (uint32_t)(index & 0xff) << 8;

            ck_assert_uint_eq(shmemi_sq_widen(at[i], last), at[i] + ahead);
        }
}
END_TEST

/* The register gets the whole entry, in two places by turns; the ring and the record say the same. */
START_TEST(blue_flame_carries_the_entry)
{
    static uint64_t reg[64];
    struct queue *q = queue_new(4, firsts[_i]);
    struct shmemi_sq_fixed fixed;
    uint64_t ticket;

    q->sq.doorbell = reg;
    fixed = shmemi_sq_fixed_of(&q->sq);
    for (uint64_t i = 0; i < 40; i++) {
        uint64_t idx = q->sq.reserved, *at = reg + (idx & 1) * 32;

        memset(reg, 0, sizeof reg);
        ticket = shmemi_sq_write_value(&q->sq, SHMEMI_SQ_PRIVATE, queue_va(remote), queue_rkey(), i + 1, 8,
                                       SHMEMI_SQ_BLUEFLAME | (i % 8 == 7 ? SHMEMI_SQ_FENCE : 0));
        ck_assert_int_eq(memcmp(at, shmemi_sq_block(&fixed, idx), 64), 0);
        q->nic.doorbell = at[0];
        for (int k = 0; k < 8; k++)
            at[k] = 0;
        for (int k = 0; k < 64; k++)
            ck_assert_uint_eq(reg[k], 0);
        finish(q, ticket);
        ck_assert_uint_eq(remote[0], i + 1);
        if (i % 3 == 0) { /* entries of other kinds go as ever */
            ticket = shmemi_sq_write(&q->sq, SHMEMI_SQ_PRIVATE, queue_va(remote), queue_rkey(), queue_va(local),
                                     queue_lkey(), 500, 0);
            q->nic.doorbell = reg[0];
            finish(q, ticket);
        }
    }
    ck_assert_uint_eq(q->nic.completions, 54);
    queue_free(q);
}
END_TEST

START_TEST(quarters_are_crossed_once)
{
    struct queue *q = queue_new(6, 0);
    const struct shmemi_sq_fixed fixed = shmemi_sq_fixed_of(&q->sq);

    for (uint32_t n = 1; n <= 5; n++) {
        uint64_t crossed = 0;

        for (uint64_t idx = 0; idx < 1600 * n; idx += n)
            crossed += (uint64_t)shmemi_sq_quarter(&fixed, idx, n);
        ck_assert_uint_eq(crossed, 100 * n);
    }
    queue_free(q);
}
END_TEST

static void no_record(void)
{
    queue_flags = SHMEMI_SQ_NO_RECORD;
}

/* For a NIC that reads the record, or for one that does without. */
static TCase *everything(const char *name)
{
    TCase *t = tcase_create(name);

    tcase_set_timeout(t, 100);
    tcase_add_loop_test(t, write_and_read_move_bytes, 0, 6);
    tcase_add_loop_test(t, values_of_every_size, 0, 6);
    tcase_add_loop_test(t, inline_data_of_every_length, 0, 6);
    tcase_add_loop_test(t, atomics_of_both_sizes, 0, 6);
    tcase_add_loop_test(t, a_signal_follows_its_data_under_one_doorbell, 0, 6);
    tcase_add_loop_test(t, fence_marks_only_the_first_entry, 0, 2);
    tcase_add_loop_test(t, sixteen_deferred_puts_ring_once, 0, 6);
    tcase_add_loop_test(t, a_post_rings_for_deferred_ones_before_it, 0, 2);
    tcase_add_loop_test(t, a_doorbell_is_left_only_to_who_rings, 0, 2);
    tcase_add_loop_test(t, a_run_rings_once, 0, 6);
    tcase_add_loop_test(t, an_untouched_queue_has_nothing_to_ring_for, 0, 2);
    tcase_add_loop_test(t, a_full_ring_waits_and_wraps, 0, 8);
    tcase_add_loop_test(t, the_first_error_stays, 0, 2);
    tcase_add_loop_test(t, an_error_is_no_completion, 0, 2);
    tcase_add_loop_test(t, posts_give_up_on_a_queue_in_error, 0, 2);
    tcase_add_test(t, sixteen_bits_are_widened);
    tcase_add_test(t, quarters_are_crossed_once);
    return t;
}

int main(void)
{
    Suite *s = suite_create("sq");
    TCase *t = everything("sq"), *bell = everything("no record");
    SRunner *r = srunner_create(s);
    int failed;

    tcase_add_loop_test(t, blue_flame_carries_the_entry, 0, 3);
    tcase_add_checked_fixture(bell, no_record, NULL);
    suite_add_tcase(s, t);
    suite_add_tcase(s, bell);
    srunner_run_all(r, CK_NORMAL);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
