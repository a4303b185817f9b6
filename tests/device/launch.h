/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * launch.h - the frame of a device test: one source for a GPU (nvcc -x cu) and for the SIMT executor (cc).
 *
 *     struct args { int *dest; };
 *     KERNEL(fill, struct args) { shmem_int_p(a.dest, 1, 0); }        // `a` is the argument
 *
 *     dev_init();                              // tap_init, and the device state under SIMT; exits 77 without a GPU
 *     a.dest = (int *)dev_malloc(64);          // symmetric device memory, zero; collective
 *     LAUNCH(fill, struct args, a, 2, 64);     // 2 blocks of 64 threads; waits for the end
 *     LAUNCH_BESIDE(fill, struct args, a, 2, 64, work, p);     // this thread calls work(p) meanwhile
 *     dev_read(host, a.dest, 64);
 *     return dev_done();
 *
 * Blocks of a test's launch that meet other PEs must fit on the GPU together with those of the PEs that share it.
 */
#ifndef LAUNCH_H
#define LAUNCH_H

#include "tap.h"

#include <shmemx.h>

#if defined(__CUDACC__)

#include <cuda_runtime.h>

#define KERNEL(name, type) static __global__ void name(type a)
#define LAUNCH(name, type, args, blocks, threads)                                                   \
    do {                                                                                            \
        name<<<blocks, threads>>>(args);                                                            \
        tap_check_eq(cudaGetLastError(), cudaSuccess);                                              \
        tap_check_eq(cudaDeviceSynchronize(), cudaSuccess);                                         \
    } while (0)

#define LAUNCH_BESIDE(name, type, args, blocks, threads, work, arg)                                 \
    do {                                                                                            \
        name<<<blocks, threads>>>(args);                                                            \
        tap_check_eq(cudaGetLastError(), cudaSuccess);                                              \
        work(arg);                                                                                  \
        tap_check_eq(cudaDeviceSynchronize(), cudaSuccess);                                         \
    } while (0)

static void *dev_malloc(size_t size)
{
    void *p = shmemx_malloc_device(size);

    if (!p) {
        fprintf(stderr, "shmemx_malloc_device(%zu) failed\n", size);
        shmem_global_exit(1);
    }
    cudaMemset(p, 0, size);
    cudaDeviceSynchronize();
    shmem_barrier_all();
    return p;
}

TAP_UNUSED static void dev_free(void *p)
{
    shmemx_free_device(p);
}

/* Memory of this PE's GPU that is not symmetric. */
TAP_UNUSED static void *dev_local(size_t size)
{
    void *p = 0;

    if (cudaMalloc(&p, size) != cudaSuccess)
        shmem_global_exit(1);
    cudaMemset(p, 0, size);
    return p;
}

TAP_UNUSED static void dev_read(void *to, const void *from, size_t size)
{
    tap_check_eq(cudaMemcpy(to, from, size, cudaMemcpyDefault), cudaSuccess);
}

TAP_UNUSED static void dev_write(void *to, const void *from, size_t size)
{
    tap_check_eq(cudaMemcpy(to, from, size, cudaMemcpyDefault), cudaSuccess);
}

/* What kernels know. */
TAP_UNUSED static void dev_state(struct shmemi_dev_state *out)
{
    tap_check_eq(cudaMemcpyFromSymbol(out, shmemi_dev_state, sizeof *out), cudaSuccess);
}

/* Tells the device of a handle that the host has made: the library does so itself. */
TAP_UNUSED static void dev_add_team(shmem_team_t team)
{
    (void)team;
}

TAP_UNUSED static void dev_skip_team(int n)
{
    (void)n;
}

TAP_UNUSED static void dev_add_ctx(shmem_ctx_t ctx, shmem_team_t team)
{
    (void)ctx;
    (void)team;
}

static void dev_init(void)
{
    int n = 0;

    if (cudaGetDeviceCount(&n) != cudaSuccess || n == 0) {
        printf("1..0 # SKIP no GPU\n");
        exit(77);
    }
    tap_init();
}

#else

#include "simt.h"

#include <pthread.h>
#include <shmem/device/module.h>
#include <stdlib.h>

#define KERNEL(name, type)                                  \
    static void name##_body(const type a);                  \
    static void name(void *args)                            \
    {                                                       \
        name##_body(*(const type *)args);                   \
    }                                                       \
    static void name##_body(const type a)
#define LAUNCH(name, type, args, nblocks, nthreads)                                                 \
    do {                                                                                            \
        struct simt_grid grid_ = { .blocks = (nblocks), .threads = (nthreads) };                    \
        type args_ = (args);                                                                        \
        tap_check_eq(simt_launch(&grid_, name, &args_), 0);                                         \
    } while (0)

struct dev_beside {
    void (*kernel)(void *args);
    void *args;
    struct simt_grid grid;
    int status;
};

TAP_UNUSED static void *dev_launch_beside(void *beside)
{
    struct dev_beside *b = (struct dev_beside *)beside;

    b->status = simt_launch(&b->grid, b->kernel, b->args);
    return NULL;
}

#define LAUNCH_BESIDE(name, type, args_of, nblocks, nthreads, work, arg)                            \
    do {                                                                                            \
        type args_ = (args_of);                                                                     \
        struct dev_beside beside_ = { name, &args_, { .blocks = (nblocks), .threads = (nthreads) }, 1 }; \
        pthread_t thread_;                                                                          \
        tap_check_eq(pthread_create(&thread_, NULL, dev_launch_beside, &beside_), 0);               \
        work(arg);                                                                                  \
        tap_check_eq(pthread_join(thread_, NULL), 0);                                               \
        tap_check_eq(beside_.status, 0);                                                            \
    } while (0)

#define DEV_ARENA ((size_t)8 << 20)
#define DEV_HANDLES 64

struct shmemi_dev_state shmemi_dev_state;
static struct shmemi_dev_team dev_teams[DEV_HANDLES];
static struct shmemi_dev_ctx dev_ctxs[DEV_HANDLES];
static struct shmemi_dev_report dev_report;
static size_t dev_used, dev_host_used;

/*
 * TAP_DEVICE in the environment: the library brings CUDA up, which is the stand-in driver of tests/fakecuda, and fills the state
 * as it does for a GPU; its device memory is memory that the executor's threads reach.
 */
static int dev_library;

static int dev_state_at(void **out)
{
    *out = &shmemi_dev_state;
    return 0;
}

static struct shmemi_dev_module dev_module = { NULL, SHMEMI_DEV_ABI, sizeof shmemi_dev_state, dev_state_at };

/* Device memory is a piece of the host heap here; blocks are never reused. */
static void *dev_malloc(size_t size)
{
    char *p = (char *)(uintptr_t)shmemi_dev_state.dheap_base + dev_used;

    if (dev_library) {
        p = (char *)shmemx_malloc_device(size);
        if (!p)
            shmem_global_exit(1);
        memset(p, 0, size);
        shmem_barrier_all();
        return p;
    }
    dev_used += (size + 255) / 256 * 256;
    if (dev_used > DEV_ARENA) {
        fprintf(stderr, "DEV_ARENA is too small\n");
        shmem_global_exit(1);
    }
    memset(p, 0, size);
    shmem_barrier_all();
    return p;
}

TAP_UNUSED static void dev_free(void *p)
{
    if (dev_library)
        shmemx_free_device(p);
    shmem_barrier_all();
}

TAP_UNUSED static void *dev_local(size_t size)
{
    return calloc(1, size);
}

TAP_UNUSED static void dev_read(void *to, const void *from, size_t size)
{
    memcpy(to, from, size);
}

TAP_UNUSED static void dev_write(void *to, const void *from, size_t size)
{
    memcpy(to, from, size);
}

TAP_UNUSED static void dev_state(struct shmemi_dev_state *out)
{
    *out = shmemi_dev_state;
}

/* Collective over the team, whose members must all have made the same calls of dev_malloc before. */
static void dev_add_team(shmem_team_t team)
{
    uintptr_t h = (uintptr_t)team;
    struct shmemi_dev_team *t = &dev_teams[((h & 0xffff) - 1) % DEV_HANDLES];
    size_t size;

    if (team == SHMEM_TEAM_INVALID || dev_library)
        return;
    t->generation = (uint32_t)(h >> 16);
    t->my_pe = shmem_team_my_pe(team);
    t->n_pes = shmem_team_n_pes(team);
    t->start = shmem_team_translate_pe(team, 0, SHMEM_TEAM_WORLD);
    t->stride = t->n_pes > 1 ? shmem_team_translate_pe(team, 1, SHMEM_TEAM_WORLD) - t->start : 1;
    size = (size_t)shmemi_sync_bytes((uint32_t)t->n_pes);
    t->sync = dev_used;
    memset((char *)(uintptr_t)shmemi_dev_state.dheap_base + dev_used, 0, size);
    t->far = shmemx_device_team(team, (char *)(uintptr_t)shmemi_dev_state.dheap_base + dev_used);
    if (t->far && getenv("TAP_FAR_SHAPE")) /* a shape that the library would choose for far more PEs */
        t->far = (uint32_t)atoi(getenv("TAP_FAR_SHAPE"));
    dev_used += (size + 255) / 256 * 256;
    for (int i = 0; i < SHMEMI_DEV_NEAR_TEAMS; i++) {
        shmemi_dev_state.near_teams[i] = dev_teams[i];
        shmemi_dev_state.meets[i] = shmemi_sync_meet_of(&shmemi_dev_state, &dev_teams[i]);
    }
    shmem_team_sync(team);
}

/* This PE is no member of a new team of n: its device memory goes on where that of members does. */
static void dev_skip_team(int n)
{
    if (!dev_library)
        dev_used += ((size_t)shmemi_sync_bytes((uint32_t)n) + 255) / 256 * 256;
}

TAP_UNUSED static void dev_add_ctx(shmem_ctx_t ctx, shmem_team_t team)
{
    uintptr_t h = (uintptr_t)ctx;
    struct shmemi_dev_ctx *c = &dev_ctxs[((h & 0xffff) - 1) % DEV_HANDLES];

    if (dev_library)
        return;
    c->generation = (uint32_t)(h >> 16);
    c->n_pes = shmem_team_n_pes(team);
    c->start = shmem_team_translate_pe(team, 0, SHMEM_TEAM_WORLD);
    c->stride = c->n_pes > 1 ? shmem_team_translate_pe(team, 1, SHMEM_TEAM_WORLD) - c->start : 1;
    c->row = shmemx_device_nic_ctx(&shmemi_dev_state, ctx);
}

static void dev_init(void)
{
    struct shmemi_dev_state *s = &shmemi_dev_state;
    char *arena, *host;

    dev_library = getenv("TAP_DEVICE") != NULL;
    if (dev_library)
        shmemx_device_register(&dev_module);
    tap_init();
    if (dev_library && s->n_pes == tap_n)
        return;
    if (dev_library) {
        fprintf(stderr, "CUDA did not come up\n");
        shmem_global_exit(1);
    }
    arena = (char *)shmem_align(4096, DEV_ARENA);
    host = (char *)shmem_align(4096, 65536); /* kernels reach this piece of the host heap */
    s->peers = (struct shmemi_dev_peer *)calloc((size_t)tap_n, sizeof *s->peers);
    for (int pe = 0; pe < tap_n; pe++) {
        s->peers[pe].dheap = (uint64_t)(uintptr_t)shmem_ptr(arena, pe);
        s->peers[pe].heap = (uint64_t)(uintptr_t)shmem_ptr(host, pe);
        if (pe < SHMEMI_DEV_NEAR)
            s->near[pe] = s->peers[pe];
    }
    s->abi = SHMEMI_DEV_ABI;
    s->bytes = sizeof *s;
    s->my_pe = tap_me;
    s->n_pes = tap_n;
    s->check = tap_n != 2; /* two PEs run the short way, as programs do */
    s->dheap_base = (uint64_t)(uintptr_t)arena;
    s->dheap_len = DEV_ARENA;
    s->heap_base = (uint64_t)(uintptr_t)host;
    s->heap_len = 65536;
    s->teams = dev_teams;
    s->ctxs = dev_ctxs;
    s->n_teams = s->n_ctxs = DEV_HANDLES;
    s->report = &dev_report;
    if (shmemx_device_nic(s)) {
        fprintf(stderr, "no queues of the NIC for kernels\n");
        shmem_global_exit(1);
    }
    dev_add_team(SHMEM_TEAM_WORLD);
}

#endif

TAP_UNUSED static int dev_done(void)
{
    return tap_done();
}

/* Symmetric memory of the host that kernels reach as well, zero; or null: they reach none.  Collective. */
TAP_UNUSED static void *dev_host_malloc(size_t size)
{
    struct shmemi_dev_state s;
    void *p;

    dev_state(&s);
#if !defined(__CUDACC__)
    if (!dev_library) {
        p = (char *)(uintptr_t)s.heap_base + dev_host_used;
        dev_host_used += (size + 255) / 256 * 256;
        memset(p, 0, size);
        shmem_barrier_all();
        return p;
    }
#endif
    p = s.heap_len ? shmem_calloc(1, size) : NULL;
    if (s.heap_len && !p)
        shmem_global_exit(1);
    return p;
}

/* A team of every `stride`-th PE from `start`, known to kernels too; SHMEM_TEAM_INVALID elsewhere. */
TAP_UNUSED static shmem_team_t dev_split(int start, int stride, int size)
{
    shmem_team_t team;

    shmem_team_split_strided(SHMEM_TEAM_WORLD, start, stride, size, NULL, 0, &team);
    dev_add_team(team);
    if (team == SHMEM_TEAM_INVALID)
        dev_skip_team(size);
    return team;
}

#endif
