/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rma.c - kernels put to, get from and signal to their neighbour: every scope, every alignment, every type's p and g.
 *
 * run: n=1,2,3 launch=oshrun timeout=120
 * nodes: no load and store from kernels reach one node only
 */
#include "launch.h"

#define SPAN 4096
#define N_LENGTHS 13

static const int lengths[N_LENGTHS] = { 0, 1, 2, 3, 4, 8, 15, 16, 31, 47, 48, 200, 2001 };

struct args {
    char *dest;         /* symmetric, SPAN bytes */
    char *source;       /* symmetric */
    char *back;         /* local */
    uint64_t *sig;
    int len, to_shift, from_shift, round, to, from;
};

static char pattern(int pe, int i)
{
    return (char)(pe * 37 + i * 11 + (i >> 8));
}

KERNEL(put_block, struct args)
{
    shmemx_putmem_block(a.dest + a.to_shift, a.source + a.from_shift, (size_t)a.len, a.to);
    shmemx_putmem_signal_block(a.dest + 3072 + a.to_shift, a.source + a.from_shift, (size_t)(a.len < 1000 ? a.len : 1000), a.sig,
                               (uint64_t)a.round, SHMEM_SIGNAL_SET, a.to);
    shmemx_signal_wait_until_block(a.sig, SHMEM_CMP_GE, (uint64_t)a.round);
    shmemx_getmem_block(a.back + a.from_shift, a.source + a.to_shift, (size_t)a.len, a.from);
    shmemx_barrier_all_block();
}

KERNEL(put_warp, struct args)
{
    shmemx_putmem_warp(a.dest + a.to_shift, a.source + a.from_shift, (size_t)a.len, a.to);
    shmemx_putmem_signal_warp(a.dest + 3072 + a.to_shift, a.source + a.from_shift, (size_t)(a.len < 1000 ? a.len : 1000), a.sig,
                              1, SHMEM_SIGNAL_ADD, a.to);
    shmemx_signal_wait_until_warp(a.sig, SHMEM_CMP_GE, (uint64_t)a.round);
    shmemx_getmem_warp(a.back + a.from_shift, a.source + a.to_shift, (size_t)a.len, a.from);
    shmemx_barrier_all_warp();
}

KERNEL(put_thread, struct args)
{
    shmem_putmem_nbi(a.dest + a.to_shift, a.source + a.from_shift, (size_t)a.len, a.to);
    shmem_putmem_signal(a.dest + 3072 + a.to_shift, a.source + a.from_shift, (size_t)(a.len < 1000 ? a.len : 1000), a.sig,
                        (uint64_t)a.round, SHMEM_SIGNAL_SET, a.to);
    shmem_signal_wait_until(a.sig, SHMEM_CMP_GE, (uint64_t)a.round);
    shmem_getmem(a.back + a.from_shift, a.source + a.to_shift, (size_t)a.len, a.from);
    shmem_barrier_all();
}

/* One round: data of the neighbour is where it should be, and nothing beside it has changed. */
static void look(const struct args *a)
{
    static char got[SPAN];
    int small = a->len < 1000 ? a->len : 1000, bad = 0;

    dev_read(got, a->dest, SPAN);
    for (int i = 0; i < 3072; i++)
        bad += got[i] != (i >= a->to_shift && i < a->to_shift + a->len ? pattern(a->from, i - a->to_shift + a->from_shift) : 0);
    for (int i = 0; i < 1024; i++)
        bad += got[3072 + i] !=
               (i >= a->to_shift && i < a->to_shift + small ? pattern(a->from, i - a->to_shift + a->from_shift) : 0);
    dev_read(got, a->back, SPAN);
    for (int i = 0; i < SPAN; i++)
        bad += got[i] != (i >= a->from_shift && i < a->from_shift + a->len ? pattern(a->from, i - a->from_shift + a->to_shift) : 0);
    if (!tap_check_eq(bad, 0))
        tap_diag("len %d to %d from %d", a->len, a->to_shift, a->from_shift);
    memset(got, 0, SPAN);
    dev_write(a->dest, got, SPAN);
    dev_write(a->back, got, SPAN);
    shmem_barrier_all();
}

static void all_shifts(struct args *a, const char *name, int scope)
{
    static const int shifts[6] = { 0, 1, 4, 7, 8, 15 };

    a->round = 0;
    for (int l = 0; l < N_LENGTHS; l++)
        for (int t = 0; t < 6; t++) {
            a->len = lengths[l];
            a->to_shift = shifts[t];
            a->from_shift = shifts[(t * 2 + l) % 6];
            a->round++;
            if (scope == 0)
                LAUNCH(put_thread, struct args, *a, 1, 1);
            else if (scope == 1)
                LAUNCH(put_warp, struct args, *a, 1, 32);
            else
                LAUNCH(put_block, struct args, *a, 1, 72);
            look(a);
        }
    tap_point("%s: put, put with signal and get of %d lengths at odd addresses", name, N_LENGTHS);
}

/* ---- the copy loops, which change with the length: by one thread that takes every rank in turn ---- */

#define COPY_SPAN (1024 * 16 * 14)

struct copy {
    char *to, *from; /* local */
    uint32_t len, size;
    int far;
};

KERNEL(copy_ranks, struct copy)
{
#if !defined(__CUDACC__) || defined(__CUDA_ARCH__) /* nvcc's pass for the host does not know it */
    for (uint32_t rank = 0; rank < a.size; rank++)
        shmemi_copy_from(a.far, a.to, a.from, a.len, rank, a.size);
#endif
}

/* `turns`: vectors of 16 bytes a thread; `more`: vectors beyond. */
static int copy_wrong(struct copy *a, int turns, int more)
{
    static char got[COPY_SPAN], zero[COPY_SPAN];
    int bad = 0;

    a->len = a->size * 16 * (uint32_t)turns + 16 * (uint32_t)more;
    dev_write(a->to, zero, COPY_SPAN);
    LAUNCH(copy_ranks, struct copy, *a, 1, 1);
    dev_read(got, a->to, COPY_SPAN);
    for (uint32_t i = 0; i < COPY_SPAN; i++)
        bad += got[i] != (i < a->len ? pattern(1, (int)i) : 0);
    return bad;
}

static void copy_loops(void)
{
    static const uint32_t sizes[] = { 32, 72, 512, 1024 };
    static char fill[COPY_SPAN];
    struct copy a;

    memset(&a, 0, sizeof a);
    a.to = (char *)dev_local(COPY_SPAN);
    a.from = (char *)dev_local(COPY_SPAN);
    for (int i = 0; i < COPY_SPAN; i++)
        fill[i] = pattern(1, i);
    dev_write(a.from, fill, COPY_SPAN);
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
        for (int k = 0; k < 2 * 13 * 3; k++) {
            a.size = sizes[s];
            a.far = k & 1;
            if (!tap_check_eq(copy_wrong(&a, k / 6, (k / 2 % 3) * 7), 0))
                tap_diag("%u threads, %u bytes, far %d", (unsigned)a.size, (unsigned)a.len, a.far);
        }
    tap_point("loops of every length in vectors a thread, from near and from far");
}

int main(void)
{
    static char fill[SPAN];
    struct args a;

    dev_init();
    memset(&a, 0, sizeof a);
    a.dest = (char *)dev_malloc(SPAN);
    a.source = (char *)dev_malloc(SPAN);
    a.back = (char *)dev_local(SPAN);
    a.to = (tap_me + 1) % tap_n;
    a.from = (tap_me + tap_n - 1) % tap_n;
    for (int i = 0; i < SPAN; i++)
        fill[i] = pattern(tap_me, i);
    dev_write(a.source, fill, SPAN);
    shmem_barrier_all();
    for (int scope = 0; scope < 3; scope++) {
        a.sig = (uint64_t *)dev_malloc(8);
        all_shifts(&a, scope == 0 ? "thread" : scope == 1 ? "warp" : "block", scope);
    }
    copy_loops();
    return dev_done();
}
