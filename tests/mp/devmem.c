/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * devmem.c - device memory from the host, on the stand-in driver of tests/fakecuda: the device heap shared by the node's
 * PEs, host calls on it, what kernels are told, teams that come and go.
 *
 * run: n=1,2,3 env=LD_LIBRARY_PATH=tests/fakecuda env=FAKECUDA_KERNELS=tests/fakecuda/kernels.so launch=oshrun
 * run: n=2 env=LD_LIBRARY_PATH=tests/fakecuda env=FAKECUDA_KERNELS=tests/fakecuda/kernels.so env=MARROW_CUDA=1 launch=oshrun
 * run: n=2,4 env=LD_LIBRARY_PATH=tests/fakecuda env=FAKECUDA_KERNELS=tests/fakecuda/kernels.so env=FAKECUDA_DEVICES=2 launch=oshrun
 * run: n=2,3 env=LD_LIBRARY_PATH=tests/fakecuda env=FAKECUDA_KERNELS=tests/fakecuda/kernels.so env=FAKECUDA_NO_VMM=1 env=MARROW_DEVICE_HEAP=128M launch=oshrun
 * run: n=2 env=LD_LIBRARY_PATH=tests/fakecuda env=FAKECUDA_KERNELS=tests/fakecuda/kernels.so env=MARROW_CHECK=1 launch=oshrun
 * nodes: some=no env=LD_LIBRARY_PATH=tests/fakecuda env=FAKECUDA_KERNELS=tests/fakecuda/kernels.so
 */
#include "config.h"
#include "standin.h"
#include "tap.h"

#include "shmem/device/module.h"
#include "shmem/device/syncblk.h"

#include <shmemx.h>
#include <stdint.h>
#include <stdlib.h>

#define N 1000

/* This program's copy of what kernels know; the stand-in's device memory is memory. */
static struct shmemi_dev_state state;

static int where(void **out)
{
    *out = &state;
    return 0;
}

static struct shmemi_dev_module module = { NULL, SHMEMI_DEV_ABI, sizeof state, where };

static int next_pe(void)
{
    return (tap_me + 1) % tap_n;
}

static void allocation(void)
{
    char *a = shmemx_malloc_device(100), *b, *c;

    tap_check(a != NULL && (uintptr_t)a % 256 == 0);
    b = shmemx_align_device(1 << 20, 5);
    tap_check(b && (uintptr_t)b % (1 << 20) == 0);
    c = shmem_malloc_with_hints(1000, SHMEMX_MALLOC_DEVICE);
    tap_check(c != NULL);
    tap_check(shmemx_malloc_device(0) == NULL && shmemx_align_device(3, 8) == NULL);
    tap_check(shmem_addr_accessible(a, next_pe()) && shmem_ptr(a, tap_me) == a);
    shmemx_free_device(b);
    shmem_free(c);
    shmem_free(a);
    tap_check(shmemx_malloc_device(100) == a);
    shmem_free(a);
    tap_point("device memory is allocated, aligned, freed");
}

static void put_get(void)
{
    long *d = shmemx_calloc_device(N, sizeof *d), mine[N], back[N];

    for (int i = 0; i < N; i++)
        mine[i] = tap_me * N + i;
    shmem_barrier_all();
    shmem_long_put(d, mine, N, next_pe());
    shmem_barrier_all();
    shmem_long_get(back, d, N, tap_me);
    for (int i = 0; i < N; i++)
        tap_check_eq(back[i], (long)((tap_me + tap_n - 1) % tap_n * N + i));
    shmem_barrier_all();
    shmem_long_p(&d[3], 42 + tap_me, next_pe());
    shmem_barrier_all();
    tap_check_eq(shmem_long_g(&d[3], tap_me), (long)(42 + (tap_me + tap_n - 1) % tap_n));
    shmem_barrier_all();
    for (int i = 0; i < 600; i++)
        shmem_long_p(&d[i], i, next_pe());
    shmem_barrier_all();
    shmem_long_get_nbi(back, d, 600, tap_me);
    shmem_quiet();
    for (int i = 0; i < 600; i++)
        tap_check_eq(back[i], (long)i);
    shmem_long_iput(d, mine, 3, 2, 100, tap_me);
    shmem_long_iget(back, d, 1, 3, 100, tap_me);
    for (int i = 0; i < 100; i++)
        tap_check_eq(back[i], mine[2 * i]);
    shmem_barrier_all();
    shmem_free(d);
    tap_point("put, get, p, g and strided on device memory");
}

static void mixed(void)
{
    static long symmetric[N];
    long *d = shmemx_malloc_device(N * sizeof *d), *h = shmem_malloc(N * sizeof *h), mine[N];

    for (int i = 0; i < N; i++)
        mine[i] = i - tap_me;
    shmem_long_put(d, mine, N, tap_me);
    shmem_barrier_all();
    shmem_long_put(h, d, N, next_pe());         /* local buffer in device memory, dest in host memory */
    shmem_long_put(symmetric, d, N, next_pe());
    shmem_barrier_all();
    for (int i = 0; i < N; i++)
        tap_check(h[i] == i - (tap_me + tap_n - 1) % tap_n && symmetric[i] == h[i]);
    shmem_long_get(d, h, N, next_pe());
    shmem_long_get(mine, d, N, tap_me);
    for (int i = 0; i < N; i++)
        tap_check_eq(mine[i], (long)(i - tap_me));
    shmem_barrier_all();
    shmem_free(h);
    shmem_free(d);
    tap_point("host and device memory in one call");
}

static void signals(void)
{
    long *d = shmemx_calloc_device(N, sizeof *d), mine[N], back[N];
    uint64_t *host = shmem_calloc(1, sizeof *host), *device = shmemx_calloc_device(1, sizeof *device);

    for (int i = 0; i < N; i++)
        mine[i] = 7 * i + tap_me;
    shmem_long_put_signal(d, mine, N, host, 5, SHMEM_SIGNAL_SET, next_pe());
    shmem_signal_wait_until(host, SHMEM_CMP_EQ, 5);
    shmem_long_get(back, d, N, tap_me);
    for (int i = 0; i < N; i++)
        tap_check_eq(back[i], (long)(7 * i + (tap_me + tap_n - 1) % tap_n));
    shmem_barrier_all();
    mine[N - 1] = -9;
    shmem_long_put_signal(d, mine, N, device, 6, SHMEM_SIGNAL_SET, next_pe());
    tap_check_eq(shmem_signal_wait_until(device, SHMEM_CMP_GE, 6), (uint64_t)6);
    tap_check_eq(shmem_signal_fetch(device), (uint64_t)6);
    tap_check_eq(shmem_long_g(&d[N - 1], tap_me), (long)-9);
    tap_check(shmem_uint64_test(device, SHMEM_CMP_EQ, 6) && !shmem_uint64_test(device, SHMEM_CMP_NE, 6));
    shmem_barrier_all();
    shmem_uint64_atomic_set(device, 77, next_pe());
    shmem_barrier_all();
    tap_check_eq(shmem_uint64_atomic_fetch(device, tap_me), (uint64_t)77);
    shmem_barrier_all();
    shmem_free(device);
    shmem_free(host);
    shmem_free(d);
    tap_point("signals in host and in device memory, waits on both");
}

/* Host atomics on device memory are kernels of the library. */
static void atomics(void)
{
#ifdef HAVE_NVCC
    long *d = shmemx_calloc_device(4, sizeof *d);
    int *small = (int *)&d[3];

    tap_check_eq(shmem_long_atomic_fetch_inc(&d[tap_n > 1], next_pe()), 0L);
    shmem_barrier_all();
    shmem_long_atomic_add(d, tap_me + 1, 0);
    shmem_uint_atomic_or((unsigned *)&d[2], 1u << tap_me, 0);
    shmem_barrier_all();
    tap_check_eq(shmem_long_g(d, 0) - (tap_n == 1), (long)tap_n * (tap_n + 1) / 2);
    tap_check_eq(shmem_int_g((int *)&d[2], 0), (1 << tap_n) - 1);
    tap_check_eq(shmem_int_atomic_compare_swap(small, 0, 9, tap_me), 0);
    tap_check_eq(shmem_int_atomic_compare_swap(small, 0, 8, tap_me), 9);
    tap_check_eq(shmem_int_atomic_swap(small, 3, tap_me), 9);
    shmem_barrier_all();
    shmem_free(d);
    tap_point("atomics on device memory");
#else
    tap_skip("atomics on device memory", "built without nvcc");
#endif
}

/* Blocks larger than a step of growth: the peers see all of them. */
static void growth(void)
{
    size_t bytes = (size_t)20 << 20;
    char *blocks[3];
    long last = 0;

    for (int i = 0; i < 3; i++) {
        blocks[i] = shmemx_malloc_device(bytes);
        tap_check(blocks[i] != NULL);
        if (!blocks[i])
            continue;
        shmem_long_p((long *)(blocks[i] + bytes - 8), 100 * i + tap_me, next_pe());
        shmem_barrier_all();
        last = shmem_long_g((long *)(blocks[i] + bytes - 8), tap_me);
        tap_check_eq(last, (long)(100 * i + (tap_me + tap_n - 1) % tap_n));
        tap_check(state.dheap_len >= (size_t)(blocks[i] - (char *)state.dheap_base) + bytes);
    }
    for (int i = 0; i < 3; i++)
        shmem_free(blocks[i]);
    tap_check(shmemx_malloc_device((size_t)1 << 45) == NULL);
    tap_point("the device heap grows on all PEs, and has an end");
}

static void told(void)
{
    struct shmemi_dev_peer *peers = state.peers;

    tap_check_eq(state.n_pes, tap_n);
    tap_check_eq(state.my_pe, tap_me);
    tap_check_eq(state.dheap_base, peers[tap_me].dheap);
    tap_check_eq(state.heap_base, peers[tap_me].heap);
    for (int i = 0; i < tap_n; i++) {
        bool near = shmem_ptr(&state, i) != NULL;

        tap_check((peers[i].heap != 0) == near && (peers[i].dheap != 0) == near);
        tap_check(i >= SHMEMI_DEV_NEAR || state.near[i].dheap == peers[i].dheap);
    }
    tap_check(state.teams[0].n_pes == tap_n && state.teams[0].generation == 0 && state.teams[0].my_pe == tap_me);
    tap_check_eq(state.near_teams[0].n_pes, tap_n);
    tap_check_eq(state.teams[1].n_pes, shmem_team_n_pes(SHMEM_TEAM_SHARED));
    tap_check(state.report && !state.report->stop);
    tap_point("kernels know the job");
}

/* The sync blocks: those of the members of this node are reachable at the offset that all have, and zero. */
static void check_team(shmem_team_t team)
{
    uintptr_t handle = (uintptr_t)team;
    struct shmemi_dev_team *t = &state.teams[(handle & 0xffff) - 1];
    int n = shmem_team_n_pes(team), me = shmem_team_my_pe(team);

    tap_check(t->generation == (uint32_t)(handle >> 16) && t->n_pes == n && t->my_pe == me);
    for (int i = 0; i < n; i++) {
        uint64_t at = state.peers[t->start + i * t->stride].dheap;
        uint64_t *word = (uint64_t *)(uintptr_t)(at + t->sync) + 16 + me;

        if (!at)
            continue;
        tap_check_eq(*word, (uint64_t)0);
        *word = (uint64_t)me + 1;
    }
    shmem_team_sync(team);
    for (int i = 0; i < n; i++)
        tap_check_eq(((uint64_t *)(uintptr_t)(state.dheap_base + t->sync))[16 + i],
                     state.peers[t->start + i * t->stride].dheap ? (uint64_t)i + 1 : 0);
}

static void teams(void)
{
    shmem_team_t team[20], odd;

    check_team(SHMEM_TEAM_WORLD);
    for (int i = 0; i < 20; i++) {
        shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, tap_n, NULL, 0, &team[i]);
        check_team(team[i]);
    }
    for (int i = 0; i < 20; i++)
        shmem_team_destroy(team[i]);
    tap_check(state.teams[2].n_pes == 0);
    for (int i = 0; i < 3; i++) {
        shmem_team_split_strided(SHMEM_TEAM_WORLD, tap_me % 2, 2, (tap_n + 1 - tap_me % 2) / 2, NULL, 0, &odd);
        check_team(odd);
        shmem_team_destroy(odd);
    }
    tap_point("teams have memory that their members' kernels meet at");
}

static void contexts(void)
{
    shmem_ctx_t ctx;
    uint32_t slot;

    tap_check_eq(shmem_ctx_create(SHMEM_CTX_PRIVATE, &ctx), 0);
    slot = (uint32_t)((uintptr_t)ctx & 0xffff) - 1;
    tap_check(slot < state.n_ctxs && state.ctxs[slot].generation == (uint32_t)((uintptr_t)ctx >> 16));
    tap_check_eq(state.ctxs[slot].n_pes, tap_n);
    shmem_ctx_destroy(ctx);
    tap_check_eq(state.ctxs[slot].generation, 0u);
    tap_check_eq(state.ctxs[0].n_pes, tap_n);
    tap_point("kernels know the contexts");
}

int main(void)
{
    shmem_team_t before;

    if (standin_missing())
        return 0;
    shmemx_device_register(&module);
    if (getenv("MARROW_CHECK"))
        shmemx_device_unregister(&module); /* so CUDA comes up late, with a team already there */
    tap_init();
    if (getenv("MARROW_CHECK")) {
        shmemx_device_register(&module);
        shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, tap_n, NULL, 0, &before);
        shmem_free(shmemx_malloc_device(1));
        check_team(before);
        shmem_team_destroy(before);
    }
    allocation();
    put_get();
    mixed();
    signals();
    atomics();
    growth();
    told();
    teams();
    contexts();
    shmem_barrier_all();
    return tap_done();
}
