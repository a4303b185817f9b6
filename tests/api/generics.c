/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * generics.c - calls each type-generic name with each of its types, with and without a context, and a few shapes
 * of arguments that macros tend to break on.
 *
 * run: n=1,2 launch=oshrun timeout=60
 */
#include "../mp/tap.h"

#include "call_buffers.h"

#if !defined(shmem_put) || !defined(shmem_sync) || !defined(shmem_sum_inscan)
#error "the type-generic macros are missing"
#endif

static void call_all(void)
{
#define CALL(name, args) (void)name args; calls++;
#include "api_gencalls.h"
}

static long word, other[2];
static short small;
static double real[4];

static void shapes(int peer)
{
    const shmem_ctx_t fixed = ctx;
    const long list[2] = { 5, 6 };
    volatile long *seen = &word;
    int evaluated = 0;

    shmem_p(&word, 7, peer);
    shmem_barrier_all();
    tap_check_eq(word, 7);
    shmem_p(fixed, &word, shmem_g(&word, peer) + 1, (evaluated++, peer));
    shmem_ctx_quiet(fixed);
    shmem_barrier_all();
    tap_check_eq(*seen, 8);
    tap_check_eq(evaluated, 1);
    shmem_put(other, ((const long[]){ 1, 2 }), 2, peer);
    shmem_barrier_all();
    tap_check(other[0] == 1 && other[1] == 2);
    shmem_put(ctx, other, list, sizeof list / sizeof *list, peer);
    shmem_ctx_quiet(ctx);
    shmem_barrier_all();
    tap_check(other[0] == 5 && other[1] == 6);
    real[0] = shmem_my_pe() + 0.5;
    shmem_barrier_all();
    shmem_get(real + 1, real, 1, peer);
    tap_check(real[1] == peer + 0.5);
    tap_check_eq(shmem_atomic_fetch_add(SHMEM_CTX_DEFAULT, &other[0], 1, shmem_my_pe()), 5);
    tap_check_eq(shmem_finc(&other[0], shmem_my_pe()), 6);
    tap_check_eq(other[0], 7);
}

static void words(int peer)
{
    shmem_barrier_all();
    sig = 0;
    shmem_barrier_all();
    shmem_signal_set(&sig, 3, peer);
    shmem_quiet();
    shmem_signal_wait_until(&sig, SHMEM_CMP_EQ, 3);
    shmem_barrier_all();
    shmem_signal_add(ctx, &sig, 2, peer);
    shmem_ctx_quiet(ctx);
    tap_check_eq(shmem_signal_wait_until(&sig, SHMEM_CMP_GT, 3), 5);
    shmem_barrier_all();
    shmem_signal_set(ctx, &sig, 0, peer);
    shmem_wait_until(&small, SHMEM_CMP_EQ, 0);
    tap_check_eq(shmem_test(&small, SHMEM_CMP_LT, 0), 0);
    tap_check_eq(shmem_sync(SHMEM_TEAM_WORLD), 0);
}

int main(void)
{
    int peer;

    tap_init();
    peer = (shmem_my_pe() + 1) % shmem_n_pes();
    for (int i = 0; i < SHMEM_SYNC_SIZE; i++)
        pSync[i] = SHMEM_SYNC_VALUE;
    tap_check_eq(shmem_ctx_create(0, &ctx), 0);
    call_all();
    shmem_barrier_all();
    tap_check_eq(calls, 957);
    tap_point("each generic with each of its types returns");
    shapes(peer);
    tap_point("arguments with commas, side effects, qualifiers and nested generics");
    words(peer);
    tap_point("generics that are functions too");
    shmem_sync(0, 0, shmem_n_pes(), pSync);
    tap_point("shmem_sync of an active set");
    shmem_ctx_destroy(ctx);
    return tap_done();
}
