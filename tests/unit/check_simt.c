/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check_simt.c - the SIMT executor: what lanes see, what warp and block calls return, which mistakes it
 * reports, and that the seed decides the order.  Each test runs with fibres and with threads.
 */
#include "simt.h"

#include "shmem/device/port.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MOST = 256 };

static uint64_t out[MOST];
static uint32_t counter;

static uint32_t me(void)
{
    return shmemi_block_index() * shmemi_block_threads() + shmemi_thread_in_block();
}

static int launch(int mode, uint32_t blocks, uint32_t threads, uint64_t seed, void (*kernel)(void *))
{
    struct simt_grid g = { .blocks = blocks, .threads = threads, .seed = seed, .timeout_ms = 20000 };

    g.mode = mode ? SIMT_THREADS : SIMT_FIBRES;
    memset(out, 0, sizeof out);
    counter = 0;
    return simt_launch(&g, kernel, NULL);
}

/* ---- places ---- */

static void tell_place(void *arg)
{
    (void)arg;
    out[me()] = (uint64_t)shmemi_lane() | (uint64_t)shmemi_grid_blocks() << 8 |
                (uint64_t)shmemi_on_device() << 16 | (uint64_t)shmemi_warp_mask() << 32;
}

START_TEST(a_lane_knows_its_place)
{
    ck_assert_int_eq(launch(_i, 2, 40, 1, tell_place), 0);
    for (uint32_t i = 0; i < 80; i++) {
        uint32_t t = i % 40;
        uint64_t mask = t < 32 ? 0xffffffff : 0xff;

        ck_assert_uint_eq(out[i], t % 32 | 2u << 8 | 1u << 16 | mask << 32);
    }
}
END_TEST

START_TEST(a_host_thread_is_a_block_of_one)
{
    uint64_t own = 7;

    ck_assert_uint_eq(shmemi_lane(), 0);
    ck_assert_uint_eq(shmemi_block_threads(), 1);
    ck_assert_uint_eq(shmemi_warp_mask(), 1);
    ck_assert_int_eq(shmemi_on_device(), 0);
    ck_assert_uint_eq(shmemi_active_mask(), 1);
    ck_assert_uint_eq(shmemi_ballot(1, 1), 1);
    ck_assert_uint_eq(shmemi_ballot(1, 0), 0);
    ck_assert_uint_eq(shmemi_shfl64(1, own, 0), 7);
    ck_assert_uint_eq(shmemi_match_any64(1, 0), 1);
    shmemi_warp_sync(1);
    shmemi_block_sync();
}
END_TEST

/* ---- warp calls ---- */

static void warp_calls(void *arg)
{
    uint32_t lane = shmemi_lane(), all = shmemi_warp_mask(), odd = 0xaaaaaaaa & all;
    int right;

    (void)arg;
    right = shmemi_ballot(all, lane % 3 == 0) == (0x49249249 & all);
    right &= shmemi_shfl64(all, 1000 + lane, (lane + 1) % 8) == 1000 + (lane + 1) % 8;
    right &= shmemi_match_any64(all, lane / 8) == (0xffu << lane / 8 * 8 & all);
    if (lane % 2) { /* half a warp among itself */
        right &= shmemi_ballot(odd, 1) == odd;
        right &= shmemi_shfl64(odd, lane, 3) == 3;
    }
    shmemi_warp_sync(all);
    out[me()] = (uint64_t)right;
}

START_TEST(warp_calls_return_what_a_gpu_does)
{
    for (uint64_t seed = 1; seed < 20; seed++) {
        ck_assert_int_eq(launch(_i, 2, 72, seed, warp_calls), 0);
        for (uint32_t i = 0; i < 144; i++)
            ck_assert_msg(out[i] == 1, "thread %u, seed %u", i, (unsigned)seed);
    }
}
END_TEST

static void ended_lanes(void *arg)
{
    (void)arg;
    if (shmemi_lane() >= 20)
        return;
    shmemi_block_sync();
    out[me()] = shmemi_ballot(0xffffffff, 1);
}

START_TEST(lanes_that_have_ended_are_not_waited_for)
{
    ck_assert_int_eq(launch(_i, 1, 32, 3, ended_lanes), 0);
    for (uint32_t i = 0; i < 20; i++)
        ck_assert_uint_eq(out[i], 0xfffff);
}
END_TEST

static void groups(void *arg)
{
    uint32_t mask;

    (void)arg;
    if (shmemi_lane() == 5)
        return;
    mask = shmemi_active_mask();
    out[me()] = mask;
    shmemi_warp_sync(mask);
    /* All of the group have got the same mask. */
    if (shmemi_ballot(mask, out[me()] == mask) != mask)
        out[me()] = 0;
}

START_TEST(the_active_mask_is_a_group_that_can_be_synced)
{
    uint32_t whole = 0, parts = 0;

    for (uint64_t seed = 1; seed < 60; seed++) {
        ck_assert_int_eq(launch(_i, 1, 32, seed, groups), 0);
        for (uint32_t i = 0; i < 32; i++) {
            if (i == 5)
                continue;
            ck_assert(out[i] >> i & 1);
            ck_assert(!(out[i] >> 5 & 1));
            for (uint32_t j = 0; j < 32; j++)
                if (out[i] >> j & 1)
                    ck_assert_uint_eq(out[j], out[i]);
        }
        whole += out[0] == 0xffffffdf;
        parts += out[0] != 0xffffffdf;
    }
    /* Both kinds of weather. */
    ck_assert(simt_mode(_i ? SIMT_THREADS : SIMT_FIBRES) == SIMT_THREADS || (whole > 0 && parts > 0));
}
END_TEST

/* ---- blocks ---- */

static void shared_sum(void *arg)
{
    SHMEMI_SHARED(uint64_t, part, 64);
    SHMEMI_SHARED(uint64_t, total, 1);
    uint32_t t = shmemi_thread_in_block();

    (void)arg;
    part[t] = t + 1;
    shmemi_block_sync();
    if (t == 0) {
        *total = 0;
        for (uint32_t i = 0; i < shmemi_block_threads(); i++)
            *total += part[i];
    }
    shmemi_block_sync();
    out[me()] = *total + 10000 * shmemi_block_index();
}

START_TEST(a_block_shares_memory_and_meets)
{
    ck_assert_int_eq(launch(_i, 3, 50, 9, shared_sum), 0);
    for (uint32_t i = 0; i < 150; i++)
        ck_assert_uint_eq(out[i], 1275 + 10000 * (i / 50));
}
END_TEST

static void hand_over(void *arg)
{
    uint32_t turn = me();

    (void)arg;
    while (SHMEMI_LD_ACQ(&counter) != turn)
        SHMEMI_PAUSE();
    out[0] += turn;
    SHMEMI_ST_REL(&counter, turn + 1);
}

START_TEST(lanes_of_a_warp_may_wait_for_each_other)
{
    ck_assert_int_eq(launch(_i, 2, 33, 5, hand_over), 0);
    ck_assert_uint_eq(out[0], 65 * 66 / 2);
}
END_TEST

/* ---- order ---- */

static void who_comes_when(void *arg)
{
    (void)arg;
    out[SHMEMI_ADD_ACQREL(&counter, 1u)] = me();
}

START_TEST(the_seed_decides_the_order)
{
    uint64_t first[64];

    if (simt_mode(SIMT_FIBRES) == SIMT_THREADS)
        return;
    ck_assert_int_eq(launch(0, 1, 64, 77, who_comes_when), 0);
    memcpy(first, out, sizeof first);
    ck_assert_int_eq(launch(0, 1, 64, 77, who_comes_when), 0);
    ck_assert_int_eq(memcmp(first, out, sizeof first), 0);
    ck_assert_int_eq(launch(0, 1, 64, 78, who_comes_when), 0);
    ck_assert_int_ne(memcmp(first, out, sizeof first), 0);
}
END_TEST

/* ---- mistakes ---- */

static void waits_for_ever(void *arg)
{
    (void)arg;
    if (shmemi_lane() == 3)
        shmemi_block_sync();
    else
        shmemi_warp_sync(0xffffffff);
}

static void different_masks(void *arg)
{
    (void)arg;
    shmemi_warp_sync(shmemi_lane() == 0 ? 0x3 : 0xffffffff);
}

static void not_in_mask(void *arg)
{
    (void)arg;
    shmemi_warp_sync(0x1);
}

static void no_such_lanes(void *arg)
{
    (void)arg;
    shmemi_warp_sync(0xffffffff);
}

static void spins(void *arg)
{
    (void)arg;
    while (SHMEMI_LD_ACQ(&counter) == 0)
        SHMEMI_PAUSE();
}

static int fate(int mode, uint32_t threads, void (*kernel)(void *), uint32_t timeout_ms)
{
    struct simt_grid g = { .blocks = 1, .threads = threads, .seed = 4, .timeout_ms = timeout_ms };
    int status;
    pid_t pid;

    g.mode = mode ? SIMT_THREADS : SIMT_FIBRES;
    pid = fork();
    if (pid == 0) {
        close(2);
        _exit(100 - simt_launch(&g, kernel, NULL) % 100);
    }
    ck_assert(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* A launch by fibres returns the error; of threads there is no way back. */
static int want(int mode, int error)
{
    return mode ? 3 : 100 - error % 100;
}

START_TEST(mistakes_are_reported)
{
    int mode = simt_mode(_i ? SIMT_THREADS : SIMT_FIBRES) == SIMT_THREADS;

    ck_assert_int_eq(fate(mode, 32, waits_for_ever, 20000), want(mode, -EDEADLK));
    ck_assert_int_eq(fate(mode, 32, different_masks, 20000), want(mode, -EINVAL));
    ck_assert_int_eq(fate(mode, 32, not_in_mask, 20000), want(mode, -EINVAL));
    ck_assert_int_eq(fate(mode, 16, no_such_lanes, 20000), want(mode, -EINVAL));
    ck_assert_int_eq(fate(mode, 32, spins, 300), want(mode, -ETIMEDOUT));
    ck_assert_int_eq(fate(mode, 0, spins, 300), 100 + EINVAL);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("simt");
    TCase *t = tcase_create("simt");
    SRunner *r = srunner_create(s);
    int failed;

    tcase_set_timeout(t, 100);
    tcase_add_loop_test(t, a_lane_knows_its_place, 0, 2);
    tcase_add_test(t, a_host_thread_is_a_block_of_one);
    tcase_add_loop_test(t, warp_calls_return_what_a_gpu_does, 0, 2);
    tcase_add_loop_test(t, lanes_that_have_ended_are_not_waited_for, 0, 2);
    tcase_add_loop_test(t, the_active_mask_is_a_group_that_can_be_synced, 0, 2);
    tcase_add_loop_test(t, a_block_shares_memory_and_meets, 0, 2);
    tcase_add_loop_test(t, lanes_of_a_warp_may_wait_for_each_other, 0, 2);
    tcase_add_test(t, the_seed_decides_the_order);
    tcase_add_loop_test(t, mistakes_are_reported, 0, 2);
    suite_add_tcase(s, t);
    srunner_run_all(r, CK_NORMAL);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
