/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check_sq_warp.c - lanes of warps that post together, under the SIMT executor: any set of active lanes, any
 * mix of queues, rings too small for a warp, private queues of a warp, doorbells counted. One lane of the
 * grid plays the NIC.
 */
#include "queue.h"
#include "simt.h"

#include "shmem/device/sq_warp.h"

#include <check.h>

enum { QUEUES = 3, LANES = 128, ROUNDS = 12, WORDS = 26, WARPS = LANES / 32 };

static struct queue *queues[WARPS * QUEUES];
static uint32_t n_queues, log_depth;
static enum shmemi_sq_mode mode;
static int flags;
static uint64_t seed, counter[QUEUES];
static uint32_t left, wrong;

static uint64_t remote[LANES][ROUNDS][WORDS], signals[LANES][ROUNDS];
static uint64_t local[LANES][ROUNDS][WORDS], old[LANES][ROUNDS];
static uint64_t adds[QUEUES];

static uint64_t mix(uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t v = (seed * 1000003 + a) * 0x9e3779b97f4a7c15ull + b * 0x2545f4914f6cdd1dull + c;

    v ^= v >> 29;
    v *= 0xbf58476d1ce4e5b9ull;
    return v >> 33;
}

static void check(int right)
{
    if (!right)
        SHMEMI_ADD_ACQREL(&wrong, 1u);
}

static void play_nic(void)
{
    while (SHMEMI_LD_ACQ(&left)) {
        for (uint32_t i = 0; i < n_queues; i++)
            soft_nic_run(&queues[i]->nic, 5);
        SHMEMI_PAUSE();
    }
}

static void wait_for(struct shmemi_sq *sq, uint64_t ticket)
{
    uint32_t spins = 0;

    check(ticket != SHMEMI_SQ_FAILED);
    while (!shmemi_sq_is_done(sq, ticket)) {
        check(shmemi_sq_poll(sq) == 0);
        shmemi_backoff(&spins);
    }
}

/* What lane `me` does in round r; every lane of `mask` does the same kind. */
static uint64_t post(struct queue *q, uint32_t mask, uint32_t me, uint32_t r, uint32_t kind, uint32_t counted)
{
    uint64_t v = (uint64_t)me << 32 | r;
    uint32_t len = 8 * (1 + (uint32_t)mix(me, r, 7) % WORDS);
    struct shmemi_sq_signal sig = { queue_va(&signals[me][r]), v, queue_rkey(), 0, 0, queue_lkey() };

    for (uint32_t i = 0; i < WORDS; i++)
        local[me][r][i] = v + i;
    switch (kind) {
    case 0:
        return shmemi_sq_warp_write_value(&q->sq, mode, mask, queue_va(remote[me][r]), queue_rkey(), v, 8,
                                          flags);
    case 1:
        return shmemi_sq_warp_write_inline(&q->sq, mode, mask, queue_va(remote[me][r]), queue_rkey(),
                                           local[me][r], len, flags);
    case 2:
        return shmemi_sq_warp_amo(&q->sq, mode, mask, me % 2 ? SHMEMI_SQ_FETCH_ADD : SHMEMI_SQ_OR, 8,
                                  me % 2 ? queue_va(&counter[counted]) : queue_va(remote[me][r]),
                                  queue_rkey(), me % 2 ? 1 : v, 0, queue_va(&old[me][r]), queue_lkey(),
                                  flags);
    default:
        return shmemi_sq_warp_write_signal(&q->sq, mode, mask, queue_va(remote[me][r]), queue_rkey(),
                                           queue_va(local[me][r]), queue_lkey(), len, &sig, flags);
    }
}

static void verify(uint32_t me, uint32_t r, uint32_t kind)
{
    uint64_t v = (uint64_t)me << 32 | r;

    if (kind == 2 && me % 2)
        return;
    check(remote[me][r][0] == v);
    if (kind == 1 || kind == 3)
        check(remote[me][r][mix(me, r, 7) % WORDS] == v + mix(me, r, 7) % WORDS);
    if (kind == 3)
        check(signals[me][r] == v);
}

static void lanes_post(void *arg)
{
    uint32_t me, warp, kind, mask;

    (void)arg;
    if (shmemi_block_index() == 0) {
        if (shmemi_thread_in_block() == 0)
            play_nic();
        return;
    }
    me = shmemi_thread_in_block();
    warp = me / 32;
    for (uint32_t r = 0; r < ROUNDS; r++) {
        /* Private queues are the warp's, so all its lanes agree on who posts; on shared ones nobody does. */
        int whole = mix(warp, r, 4) % 3 == 0;
        int mine = whole || mix(warp, r, 100 + shmemi_lane()) % 4 != 0;
        uint32_t counted = (uint32_t)mix(whole ? warp : me, r, 2) % QUEUES;
        struct queue *q = queues[mode == SHMEMI_SQ_PRIVATE ? warp * QUEUES + counted : counted];

        kind = (uint32_t)mix(warp, r, 3) % 4;
        if (mode == SHMEMI_SQ_PRIVATE) {
            mask = shmemi_ballot(shmemi_warp_mask(), mine);
            if (mine)
                check(post(q, mask, me, r, kind, counted) != SHMEMI_SQ_FAILED);
            shmemi_warp_sync(shmemi_warp_mask());
            for (uint32_t i = 0; i < QUEUES && shmemi_lane() == r; i++)
                wait_for(&queues[warp * QUEUES + i]->sq,
                         shmemi_sq_ring(&queues[warp * QUEUES + i]->sq, mode));
            shmemi_warp_sync(shmemi_warp_mask());
        } else if (mine) {
            /* Lanes that come together may be in different rounds of this loop. */
            if (whole)
                shmemi_warp_sync(shmemi_warp_mask());
            mask = whole ? shmemi_warp_mask() : shmemi_match_any64(shmemi_active_mask(), kind);
            check(post(q, mask, me, r, kind, counted) != SHMEMI_SQ_FAILED);
            wait_for(&q->sq, shmemi_sq_ring(&q->sq, mode));
        }
        if (mine) {
            verify(me, r, kind);
            if (kind == 2 && me % 2)
                SHMEMI_ADD_ACQREL(&adds[counted], (uint64_t)1);
        }
    }
    SHMEMI_ADD_ACQREL(&left, 0xffffffffu);
}

static void run(int simt, uint64_t with_seed)
{
    struct simt_grid g = { .blocks = 2, .threads = LANES, .seed = with_seed, .timeout_ms = 90000 };

    g.mode = simt ? SIMT_THREADS : SIMT_FIBRES;
    seed = with_seed;
    n_queues = mode == SHMEMI_SQ_PRIVATE ? WARPS * QUEUES : QUEUES;
    for (uint32_t i = 0; i < n_queues; i++)
        queues[i] = queue_new(log_depth, seed % 2 ? 65500 : 0);
    memset(remote, 0, sizeof remote);
    memset(signals, 0, sizeof signals);
    memset(counter, 0, sizeof counter);
    memset(adds, 0, sizeof adds);
    left = LANES;
    wrong = 0;
    ck_assert_int_eq(simt_launch(&g, lanes_post, NULL), 0);
    for (uint32_t i = 0; i < n_queues; i++) {
        ck_assert_msg(!queues[i]->nic.complaint, "the NIC complains: %s", queues[i]->nic.complaint);
        queue_free(queues[i]);
    }
    ck_assert_uint_eq(wrong, 0);
    for (int i = 0; i < QUEUES; i++)
        ck_assert_uint_eq(counter[i], adds[i]);
}

START_TEST(any_lanes_any_mix_of_queues)
{
    mode = _i & 1 ? SHMEMI_SQ_PRIVATE : SHMEMI_SQ_SHARED;
    flags = _i & 2 ? SHMEMI_SQ_DEFER : 0;
    log_depth = _i & 4 ? 4 : 8; /* a ring of 16 blocks is less than a warp wants */
    /* ThreadSanitizer makes threads of all, and takes its time. */
    for (uint64_t s = 1; s <= 6 && simt_mode(SIMT_FIBRES) == SIMT_FIBRES; s++)
        run(0, s);
    run(1, 7);
}
END_TEST

/* ---- what it costs ---- */

static void whole_warp(void *arg)
{
    uint32_t lane = shmemi_lane();
    struct queue *q = queues[lane / 16];

    (void)arg;
    shmemi_sq_warp_write_value(&q->sq, mode, shmemi_warp_mask(), queue_va(remote[lane][0]), queue_rkey(),
                               lane, 8, 0);
}

/* A whole warp on one queue, whose way is its own, round the ring and the wrap of 16 bits. */
static void warp_after_warp(void *arg)
{
    struct queue *q = queues[0];
    uint32_t lane = shmemi_lane();
    struct shmemi_sq_signal sig = { queue_va(&signals[lane][0]), lane + 1, queue_rkey(), 0, 0, queue_lkey() };

    (void)arg;
    for (uint32_t i = 0; i < 6; i++) {
        uint64_t ticket = shmemi_sq_warp_write_value(&q->sq, mode, SHMEMI_SQ_ALL, queue_va(&remote[lane][0][i]), queue_rkey(),
                                                     lane + i, 8, i % 2 ? SHMEMI_SQ_DEFER : 0);
        check(ticket == counter[0] + i * 32 + 32);
    }
    local[lane][0][0] = lane * 3;
    check(shmemi_sq_warp_write_signal(&q->sq, mode, SHMEMI_SQ_ALL, queue_va(&remote[lane][1][0]), queue_rkey(),
                                      queue_va(&local[lane][0][0]), queue_lkey(), 8, &sig, 0) == counter[0] + 8 * 32);
}

START_TEST(a_whole_warp_posts_as_one)
{
    struct simt_grid g = { .blocks = 1, .threads = 32, .seed = 4 };

    mode = _i & 1 ? SHMEMI_SQ_PRIVATE : SHMEMI_SQ_SHARED;
    wrong = 0;
    counter[0] = _i & 2 ? 65500 : 0;
    queues[0] = queue_new(10, counter[0]);
    ck_assert_int_eq(simt_launch(&g, warp_after_warp, NULL), 0);
    ck_assert_uint_eq(soft_nic_run(&queues[0]->nic, 1000), 8 * 32);
    ck_assert_msg(!queues[0]->nic.complaint, "%s", queues[0]->nic.complaint);
    ck_assert_uint_eq(wrong, 0);
    ck_assert_uint_eq(shmemi_sq_poll(&queues[0]->sq), 0);
    ck_assert(shmemi_sq_is_done(&queues[0]->sq, counter[0] + 8 * 32));
    for (uint32_t lane = 0; lane < 32; lane++) {
        for (uint32_t i = 0; i < 6; i++)
            ck_assert_uint_eq(remote[lane][0][i], lane + i);
        ck_assert_uint_eq(remote[lane][1][0], lane * 3);
        ck_assert_uint_eq(signals[lane][0], lane + 1);
    }
    queue_free(queues[0]);
}
END_TEST

START_TEST(a_warp_rings_once_for_each_queue)
{
    struct simt_grid g = { .blocks = 1, .threads = 32, .seed = 3 };

    mode = _i ? SHMEMI_SQ_PRIVATE : SHMEMI_SQ_SHARED;
    queues[0] = queue_new(8, 0);
    queues[1] = queue_new(8, 0);
    ck_assert_int_eq(simt_launch(&g, whole_warp, NULL), 0);
    for (int i = 0; i < 2; i++) {
        ck_assert_uint_eq(soft_nic_run(&queues[i]->nic, 100), 16);
        ck_assert_msg(!queues[i]->nic.complaint, "%s", queues[i]->nic.complaint);
        ck_assert_uint_eq(queues[i]->nic.completions, 1);
        ck_assert_uint_eq(shmemi_sq_reserved(&queues[i]->sq), 16);
        ck_assert_uint_eq(shmemi_sq_poll(&queues[i]->sq), 0);
        ck_assert(shmemi_sq_is_done(&queues[i]->sq, 16));
        queue_free(queues[i]);
    }
    for (uint32_t i = 0; i < 32; i++)
        ck_assert_uint_eq(remote[i][0][0], i);
}
END_TEST

/* ---- errors ---- */

static void into_error(void *arg)
{
    struct queue *q = queues[0];
    uint64_t ticket = 0;

    (void)arg;
    if (shmemi_block_index() == 0) {
        if (shmemi_thread_in_block() == 0)
            play_nic();
        return;
    }
    for (int i = 0; i < 50 && ticket != SHMEMI_SQ_FAILED; i++)
        ticket = shmemi_sq_warp_write_value(&q->sq, mode, shmemi_warp_mask(), queue_va(remote[0][0]),
                                            queue_rkey(), 1, 8, 0);
    check(ticket == SHMEMI_SQ_FAILED);
    SHMEMI_ADD_ACQREL(&left, 0xffffffffu);
}

START_TEST(all_lanes_give_up_on_a_queue_in_error)
{
    struct simt_grid g = { .blocks = 2, .threads = 32, .seed = 5 };

    mode = _i & 1 ? SHMEMI_SQ_PRIVATE : SHMEMI_SQ_SHARED;
    n_queues = 1;
    left = 32;
    wrong = 0;
    queues[0] = queue_new(_i & 2 ? 8 : 5, 0);
    queues[0]->nic.fail_at = 40;
    queues[0]->nic.fail_syndrome = 0x13;
    ck_assert_int_eq(simt_launch(&g, into_error, NULL), 0);
    ck_assert_uint_eq(wrong, 0);
    queue_free(queues[0]);
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

    tcase_set_timeout(t, 200);
    tcase_add_loop_test(t, any_lanes_any_mix_of_queues, 0, 8);
    tcase_add_loop_test(t, a_whole_warp_posts_as_one, 0, 4);
    tcase_add_loop_test(t, a_warp_rings_once_for_each_queue, 0, 2);
    tcase_add_loop_test(t, all_lanes_give_up_on_a_queue_in_error, 0, 4);
    return t;
}

int main(void)
{
    Suite *s = suite_create("sq_warp");
    TCase *t = everything("sq_warp"), *bell = everything("no record");
    SRunner *r = srunner_create(s);
    int failed;

    tcase_add_checked_fixture(bell, no_record, NULL);
    suite_add_tcase(s, t);
    suite_add_tcase(s, bell);
    srunner_run_all(r, CK_NORMAL);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
