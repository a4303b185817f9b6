/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * devmem_coll.c - the host's collectives on device memory, on the stand-in driver: with the library's kernels, without them,
 * and between device memory and the host's.
 *
 * run: n=1,2,3 env=LD_LIBRARY_PATH=tests/fakecuda env=FAKECUDA_KERNELS=tests/fakecuda/kernels.so env=MARROW_CUDA=1 launch=oshrun timeout=200
 * run: n=2,3 env=LD_LIBRARY_PATH=tests/fakecuda env=MARROW_CUDA=1 env=MARROW_CHECK=1 launch=oshrun timeout=200
 * nodes: some=one timeout=300 env=LD_LIBRARY_PATH=tests/fakecuda env=FAKECUDA_KERNELS=tests/fakecuda/kernels.so env=MARROW_CUDA=1 env=FAKECUDA_GUARD=1
 */
#include "tap.h"

#include <complex.h>
#include <shmemx.h>
#include <stdbool.h>
#include <stdint.h>

#define LARGE 40000

static long mine[4 * LARGE], back[8 * LARGE];

static long value(int pe, size_t i)
{
    return pe * 1000000L + (long)i;
}

static void *memory(bool device, size_t bytes)
{
    return device ? shmemx_calloc_device(bytes, 1) : shmem_calloc(bytes, 1);
}

static void moves(size_t n, bool to_device, bool from_device)
{
    size_t all = (size_t)tap_n * n, at = 0;
    long *src = memory(from_device, all * sizeof *src), *dst = memory(to_device, 2 * all * sizeof *dst);

    for (size_t i = 0; i < all; i++)
        mine[i] = value(tap_me, i);
    shmem_long_put(src, mine, all, tap_me);
    shmem_barrier_all();
    for (int root = 0; root < tap_n; root++) {
        tap_check_eq(shmem_long_broadcast(SHMEM_TEAM_WORLD, dst, src, n, root), 0);
        shmem_long_get(back, dst, n, tap_me);
        for (size_t i = 0; i < n; i++)
            tap_check_eq(back[i], value(root, i));
    }
    tap_check_eq(shmem_long_fcollect(SHMEM_TEAM_WORLD, dst, src, n), 0);
    shmem_long_get(back, dst, all, tap_me);
    for (size_t i = 0; i < all; i++)
        tap_check_eq(back[i], value((int)(i / n), i % n));
    tap_check_eq(shmem_long_alltoall(SHMEM_TEAM_WORLD, dst, src, n), 0);
    shmem_long_get(back, dst, all, tap_me);
    for (size_t i = 0; i < all; i++)
        tap_check_eq(back[i], value((int)(i / n), (size_t)tap_me * n + i % n));
    tap_check_eq(shmem_long_alltoalls(SHMEM_TEAM_WORLD, dst, src, 2, 1, n), 0);
    usleep(tap_me ? 20000 : 0); /* nobody writes to dest before this PE comes to the next collective */
    shmem_long_get(back, dst, 2 * all - 1, tap_me);
    for (size_t i = 0; i < all; i++)
        tap_check_eq(back[2 * i], value((int)(i / n), (size_t)tap_me * n + i % n));
    tap_check_eq(shmem_long_collect(SHMEM_TEAM_WORLD, dst, src, n - (size_t)tap_me), 0);
    shmem_long_get(back, dst, all, tap_me);
    for (int pe = 0; pe < tap_n; pe++) {
        for (size_t i = 0; i < n - (size_t)pe; i++)
            tap_check_eq(back[at + i], value(pe, i));
        at += n - (size_t)pe;
    }
    shmem_barrier_all();
    shmem_free(dst);
    shmem_free(src);
    tap_point("moves of %zu elements, dest in %s memory, source in %s memory", n, to_device ? "device" : "host",
              from_device ? "device" : "host");
}

#define REDUCE(NAME, T, OP, WANT)                                                        \
    do {                                                                                 \
        T *s_ = src, *d_ = dst, want_ = 0;                                               \
        for (size_t i_ = 0; i_ < n; i_++)                                                \
            shmem_putmem(&s_[i_], &(T){ (T)(tap_me + 1 + (int)(i_ % 5)) }, sizeof(T), tap_me); \
        shmem_barrier_all();                                                             \
        tap_check_eq(shmem_##NAME##_##OP##_reduce(SHMEM_TEAM_WORLD, d_, s_, n), 0);      \
        for (size_t i_ = 0; i_ < n; i_ += n > 9 ? n / 9 : 1) {                           \
            T got_;                                                                      \
            for (int pe_ = 0; pe_ < tap_n; pe_++) {                                      \
                T v_ = (T)(pe_ + 1 + (int)(i_ % 5));                                     \
                want_ = pe_ ? (T)(WANT) : v_;                                            \
            }                                                                            \
            shmem_getmem(&got_, &d_[i_], sizeof got_, tap_me);                           \
            tap_check(got_ == want_);                                                    \
        }                                                                                \
        shmem_barrier_all();                                                             \
    } while (0)

static void reductions(size_t n, bool to_device, bool from_device)
{
    void *src = memory(from_device, n * 16), *dst = memory(to_device, n * 16);

    REDUCE(int, int, sum, want_ + v_);
    REDUCE(double, double, sum, want_ + v_);
    REDUCE(longdouble, long double, sum, want_ + v_); /* not on a GPU: the hosts do it */
    REDUCE(complexd, double _Complex, prod, want_ * v_);
    REDUCE(short, short, max, want_ > v_ ? want_ : v_);
    REDUCE(schar, signed char, min, want_ < v_ ? want_ : v_);
    REDUCE(uint64, uint64_t, xor, want_ ^ v_);
    REDUCE(ushort, unsigned short, or, want_ | v_);
    REDUCE(ulong, unsigned long, and, want_ & v_);
    shmem_free(dst);
    shmem_free(src);
    tap_point("reductions of %zu elements, dest in %s memory, source in %s memory", n, to_device ? "device" : "host",
              from_device ? "device" : "host");
}

static void scans(size_t n)
{
    long *a = shmemx_calloc_device(n, sizeof *a);

    for (int inclusive = 0; inclusive < 2; inclusive++) {
        long want = 0;

        for (size_t i = 0; i < n; i++)
            mine[i] = tap_me + 1;
        shmem_long_put(a, mine, n, tap_me);
        shmem_barrier_all();
        if (inclusive)
            shmem_long_sum_inscan(SHMEM_TEAM_WORLD, a, a, n);
        else
            shmem_long_sum_exscan(SHMEM_TEAM_WORLD, a, a, n);
        for (int pe = 0; pe < tap_me + inclusive; pe++)
            want += pe + 1;
        shmem_long_get(back, a, n, tap_me);
        for (size_t i = 0; i < n; i++)
            tap_check_eq(back[i], want);
        shmem_barrier_all();
    }
    shmem_free(a);
    tap_point("scans of %zu elements, in place", n);
}

static void teams(void)
{
    shmem_team_t team;
    long *d = shmemx_calloc_device(2, sizeof *d);

    shmem_team_split_strided(SHMEM_TEAM_WORLD, tap_me % 2, 2, (tap_n + 1 - tap_me % 2) / 2, NULL, 0, &team);
    shmem_long_p(d, tap_me, tap_me);
    shmem_quiet();
    shmem_long_max_reduce(team, &d[1], d, 1);
    tap_check_eq(shmem_long_g(&d[1], tap_me), (long)shmem_team_translate_pe(team, shmem_team_n_pes(team) - 1, SHMEM_TEAM_WORLD));
    shmem_long_broadcast(team, &d[1], d, 1, 0);
    tap_check_eq(shmem_long_g(&d[1], tap_me), (long)(tap_me % 2));
    shmem_team_destroy(team);
    shmem_free(d);
    tap_point("teams");
}

int main(void)
{
    tap_init();
    for (int where = 1; where < 4; where++) {
        moves(5, where & 1, where & 2);
        reductions(where == 3 ? 3 : 1001, where & 1, where & 2);
    }
    moves(LARGE / 2, true, true);
    reductions(2001, true, true);
    scans(3);
    scans(LARGE);
    teams();
    shmem_barrier_all();
    return tap_done();
}
