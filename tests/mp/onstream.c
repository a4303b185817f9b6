/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * onstream.c - routines on CUDA streams, on the stand-in driver, where a stream does its work at once and a kernel is
 * one thread: data and arguments, not speed.
 *
 * run: n=1,2,3 env=LD_LIBRARY_PATH=tests/fakecuda env=FAKECUDA_KERNELS=tests/fakecuda/kernels.so env=MARROW_CUDA=1 launch=oshrun
 * nodes: some=one timeout=200 env=LD_LIBRARY_PATH=tests/fakecuda env=FAKECUDA_KERNELS=tests/fakecuda/kernels.so env=MARROW_CUDA=1
 */
#include "config.h"
#include "standin.h"
#include "tap.h"

#include <dlfcn.h>
#include <shmemx.h>
#include <stdint.h>

#define SMALL 100
#define LARGE 40000

#ifdef HAVE_NVCC
enum { HAS_KERNELS = 1 };
#else
enum { HAS_KERNELS = 0 };
#endif

static struct CUstream_st *const stream; /* the default one */
static long mine[LARGE], back[LARGE];

static int before(void)
{
    return (tap_me + tap_n - 1) % tap_n;
}

static int behind(void)
{
    return (tap_me + 1) % tap_n;
}

static void one_sided(void)
{
    long *d = shmemx_calloc_device(SMALL, sizeof *d);
    uint64_t *sig = shmemx_calloc_device(2, sizeof *sig);

    for (int i = 0; i < SMALL; i++)
        mine[i] = tap_me * SMALL + i;
    shmemx_long_put_on_stream(d, mine, SMALL, behind(), stream);
    shmemx_barrier_all_on_stream(stream);
    shmemx_long_get_on_stream(back, d, SMALL, tap_me, stream);
    for (int i = 0; i < SMALL; i++)
        tap_check_eq(back[i], (long)(before() * SMALL + i));
    shmemx_barrier_all_on_stream(stream);
    shmemx_long_p_on_stream(&d[5], 1000 + tap_me, behind(), stream);
    shmemx_barrier_all_on_stream(stream);
    tap_check_eq(shmemx_long_g_on_stream(&d[5], tap_me, stream), (long)(1000 + before()));
    shmemx_long_iput_on_stream(d, mine, 2, 1, SMALL / 2, tap_me, stream);
    tap_check_eq(shmem_long_g(&d[2 * (SMALL / 2 - 1)], tap_me), mine[SMALL / 2 - 1]);
    shmemx_barrier_all_on_stream(stream);
    shmemx_long_put_signal_on_stream(d, mine, SMALL, &sig[0], 3, SHMEM_SIGNAL_ADD, behind(), stream);
    shmemx_signal_wait_until_on_stream(&sig[0], SHMEM_CMP_EQ, 3, stream);
    tap_check_eq(shmem_long_g(&d[7], tap_me), (long)(before() * SMALL + 7));
    shmemx_signal_op_on_stream(&sig[1], 9, SHMEM_SIGNAL_SET, behind(), stream);
    shmemx_uint64_wait_until_on_stream(&sig[1], SHMEM_CMP_GT, 8, stream);
    shmemx_quiet_on_stream(stream);
    shmemx_sync_all_on_stream(stream);
    shmem_free(sig);
    shmem_free(d);
    tap_point("put, get, p, g, strided, signals and waits");
}

/* On `where` and nowhere else, and with nothing that a driver refuses while the stream is being captured. */
static void captured(struct CUstream_st *where, const char *name)
{
    void *lib = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), *symbol = lib ? dlsym(lib, "fakecuda_capture") : NULL;
    long *d = shmemx_calloc_device(SMALL, sizeof *d), *h = shmem_calloc(SMALL, sizeof *h);
    int *sums = shmemx_calloc_device(2, sizeof *sums);
    uint64_t *sig = shmemx_calloc_device(1, sizeof *sig);
    void (*capture)(void *stream, int on);

    tap_check(symbol != NULL);
    if (!symbol)
        return;
    memcpy(&capture, &symbol, sizeof capture);
    shmem_barrier_all();
    capture(where, 1);
    shmemx_long_put_on_stream(d, h, SMALL, behind(), where);
    shmemx_long_get_on_stream(h, d, SMALL, behind(), where);
    shmemx_long_p_on_stream(&d[1], 7, behind(), where);
    shmemx_long_iput_on_stream(&d[10], h, 2, 1, 20, behind(), where);
    shmemx_long_iget_on_stream(h, &d[10], 1, 2, 20, behind(), where);
    shmemx_long_put_signal_on_stream(d, h, 1, sig, 1, SHMEM_SIGNAL_ADD, behind(), where);
    shmemx_signal_wait_until_on_stream(sig, SHMEM_CMP_EQ, 1, where);
    shmemx_quiet_on_stream(where);
    shmemx_barrier_all_on_stream(where);
    shmemx_long_fcollect_on_stream(SHMEM_TEAM_WORLD, d, h, 2, where);
    shmemx_int_sum_reduce_on_stream(SHMEM_TEAM_WORLD, sums, &sums[1], 1, where);
    shmemx_sync_all_on_stream(where);
    capture(where, 0);
    shmem_barrier_all();
    shmem_free(sig);
    shmem_free(sums);
    shmem_free(h);
    shmem_free(d);
    dlclose(lib);
    tap_point("under capture, on %s", name);
}

static void collectives(size_t n)
{
    long *src = shmemx_malloc_device((size_t)tap_n * n * sizeof *src), *dst = shmemx_calloc_device((size_t)tap_n * n, sizeof *dst);

    for (size_t i = 0; i < n; i++)
        mine[i] = tap_me * 100000L + (long)i;
    for (int pe = 0; pe < tap_n; pe++)
        shmem_long_put(src + (size_t)pe * n, mine, n, tap_me);
    shmem_barrier_all();
    tap_check_eq(shmemx_long_fcollect_on_stream(SHMEM_TEAM_WORLD, dst, src, n, stream), 0);
    for (int pe = 0; pe < tap_n; pe++)
        tap_check_eq(shmem_long_g(&dst[(size_t)pe * n + n - 1], tap_me), pe * 100000L + (long)n - 1);
    shmem_barrier_all();
    shmemx_long_alltoall_on_stream(SHMEM_TEAM_WORLD, dst, src, n, stream);
    shmem_long_get(back, dst + (size_t)before() * n, n, tap_me);
    for (size_t i = 0; i < n; i++)
        tap_check_eq(back[i], before() * 100000L + (long)i);
    shmem_barrier_all();
    for (int root = 0; root < tap_n; root++) {
        shmemx_long_broadcast_on_stream(SHMEM_TEAM_WORLD, dst, src, n, root, stream);
        shmem_long_get(back, dst, n, tap_me);
        for (size_t i = 0; i < n; i++)
            tap_check_eq(back[i], root * 100000L + (long)i);
        shmem_barrier_all();
    }
    shmemx_long_collect_on_stream(SHMEM_TEAM_WORLD, dst, src, n - (size_t)tap_me, stream);
    tap_check_eq(shmem_long_g(dst, tap_me), 0L);
    if (tap_n > 1)
        tap_check_eq(shmem_long_g(dst + n, tap_me), 100000L);
    shmem_barrier_all();
    shmem_free(dst);
    shmem_free(src);
    tap_point("collectives that move, %zu elements", n);
}

#define REDUCE(T, NAME, OP, WANT)                                                                   \
    do {                                                                                            \
        T *s_ = (T *)src, *d_ = (T *)dst;                                                           \
        for (size_t i_ = 0; i_ < n; i_++)                                                           \
            shmem_##NAME##_p(&s_[i_], (T)(tap_me + 1 + (int)(i_ % 5)), tap_me);                     \
        shmem_barrier_all();                                                                        \
        shmemx_##NAME##_##OP##_reduce_on_stream(SHMEM_TEAM_WORLD, d_, s_, n, stream);               \
        for (size_t i_ = 0; i_ < n; i_ += n > 9 ? n / 9 : 1) {                                      \
            T want_ = 0;                                                                            \
            for (int pe_ = 0; pe_ < tap_n; pe_++) {                                                 \
                T v_ = (T)(pe_ + 1 + (int)(i_ % 5));                                                \
                want_ = pe_ ? (T)(WANT) : v_;                                                       \
            }                                                                                       \
            tap_check(shmem_##NAME##_g(&d_[i_], tap_me) == want_);                                  \
        }                                                                                           \
        shmem_barrier_all();                                                                        \
        shmemx_##NAME##_##OP##_reduce_on_stream(SHMEM_TEAM_WORLD, s_, s_, n, stream);               \
        for (size_t i_ = 0; i_ < n; i_ += n > 9 ? n / 9 : 1)                                        \
            tap_check(shmem_##NAME##_g(&d_[i_], tap_me) == shmem_##NAME##_g(&s_[i_], tap_me));      \
        shmem_barrier_all();                                                                        \
    } while (0)

static void reductions(size_t n)
{
    void *src = shmemx_malloc_device(n * 8 + 64), *dst = shmemx_malloc_device(n * 8 + 64);

    REDUCE(int, int, sum, want_ + v_);
    REDUCE(double, double, sum, want_ + v_);
    REDUCE(float, float, sum, want_ + v_);
    REDUCE(long, long, sum, want_ + v_);
    REDUCE(short, short, max, want_ > v_ ? want_ : v_);
    REDUCE(double, double, min, want_ < v_ ? want_ : v_);
    REDUCE(unsigned, uint, xor, want_ ^ v_);
    REDUCE(uint8_t, uint8, or, want_ | v_);
    REDUCE(float, float, prod, want_ * v_);
    shmem_free(dst);
    shmem_free(src);
    tap_point("reductions of %zu elements, in place too", n);
}

static void teams(void)
{
    shmem_team_t team;
    long *d = shmemx_malloc_device(4 * sizeof *d);

    shmem_team_split_strided(SHMEM_TEAM_WORLD, tap_me % 2, 2, (tap_n + 1 - tap_me % 2) / 2, NULL, 0, &team);
    shmem_long_p(d, 1, tap_me);
    tap_check_eq(shmemx_long_sum_reduce_on_stream(team, &d[1], d, 1, stream), 0);
    tap_check_eq(shmem_long_g(&d[1], tap_me), (long)shmem_team_n_pes(team));
    shmemx_team_sync_on_stream(team, stream);
    shmemx_barrier_on_stream(team, stream);
    tap_check_eq(shmemx_barrier_on_stream(SHMEM_TEAM_INVALID, stream), -1);
    shmem_team_destroy(team);
    shmem_free(d);
    tap_point("teams");
}

int main(void)
{
    int other;

    if (!HAS_KERNELS) {
        printf("1..0 # SKIP built without nvcc\n");
        return 0;
    }
    if (standin_missing())
        return 0;
    tap_init();
    /* First: nothing has used a kernel yet. */
    captured(NULL, "the NULL stream");
    captured((struct CUstream_st *)&other, "another stream");
    one_sided();
    collectives(4);
    collectives(SMALL);
    collectives(LARGE / 4);
    reductions(3);
    reductions(1001);
    teams();
    shmem_barrier_all();
    return tap_done();
}
