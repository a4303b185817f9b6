/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll_active.c - the deprecated collectives on active sets, static and heap arrays; pSync is as before after each.
 *
 * run: n=1,2,3,4,7 launch=oshrun timeout=120
 * run: n=3 launch=mpirun timeout=120
 * nodes: some=one timeout=300
 */
#include "coll.h"

#include <complex.h>
#include <stdint.h>

#define MOST 3000 /* elements of a PE's part */

static long psync[2][SHMEM_SYNC_SIZE];
static int set_start, set_log, set_size, set_me;
static unsigned skew;
static int64_t *s64, *d64;
static int32_t *s32, *d32;

#define SET set_start, set_log, set_size

static int turn;

static long *sync_array(void)
{
    return psync[turn++ % 2];
}

static int pe_of(int member)
{
    return set_start + (member << set_log);
}

static void check_restored(void)
{
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < SHMEM_SYNC_SIZE; i++)
            tap_check_eq(psync[k][i], SHMEM_SYNC_VALUE);
}

/* A PE that is ahead may already use a pSync again, so look when nobody can. */
static void check_restored_everywhere(void)
{
    shmem_barrier_all();
    check_restored();
    shmem_barrier_all();
}

static int64_t value(int from, int to, size_t i)
{
    return (int64_t)from * 1000003 + to * 4099 + (int64_t)i;
}

static void fill(size_t n, int to_count)
{
    for (int to = 0; to < to_count; to++)
        for (size_t i = 0; i < n; i++) {
            s64[(size_t)to * n + i] = value(tap_me, to, i);
            s32[(size_t)to * n + i] = (int32_t)value(tap_me, to, i);
        }
}

static void check_part(size_t at, size_t n, int from, int to)
{
    for (size_t i = 0; i < n; i++)
        if (!tap_check(d64[at + i] == value(from, to, i)) || !tap_check(d32[at + i] == (int32_t)value(from, to, i)))
            return;
}

static void meet(void)
{
    coll_skew(&skew);
    shmem_barrier(SET, sync_array());
    shmem_barrier(SET, sync_array());
    (shmem_sync)(SET, sync_array());
}

static void broadcasts(size_t n)
{
    for (int root = 0; root < set_size; root++) {
        meet();
        fill(n, 1);
        d64[0] = d32[0] = -7;
        meet();
        shmem_broadcast64(d64, s64, n, root, SET, sync_array());
        shmem_broadcast32(d32, s32, n, root, SET, sync_array());
        if (root == set_me)
            tap_check(d64[0] == -7 && d32[0] == -7); /* the root's dest is left alone */
        else
            check_part(0, n, pe_of(root), 0);
    }
}

static void collects(size_t n)
{
    size_t at = 0, mine = n * (size_t)(set_me % 3);

    meet();
    fill(n, 1);
    meet();
    shmem_fcollect64(d64, s64, n, SET, sync_array());
    shmem_fcollect32(d32, s32, n, SET, sync_array());
    for (int i = 0; i < set_size; i++)
        check_part((size_t)i * n, n, pe_of(i), 0);
    meet();
    fill(mine, 1);
    shmem_collect64(d64, s64, mine, SET, sync_array());
    shmem_collect32(d32, s32, mine, SET, sync_array());
    for (int i = 0; i < set_size; at += n * (size_t)(i % 3), i++)
        check_part(at, n * (size_t)(i % 3), pe_of(i), 0);
    meet();
}

static void alltoalls(size_t n)
{
    meet();
    fill(n, set_size);
    meet();
    shmem_alltoall64(d64, s64, n, SET, sync_array());
    shmem_alltoall32(d32, s32, n, SET, sync_array());
    for (int i = 0; i < set_size; i++)
        check_part((size_t)i * n, n, pe_of(i), set_me);
    meet();
    n /= 2;
    fill(2 * n, set_size);
    meet();
    shmem_alltoalls64(d64, s64, 2, 1, n, SET, sync_array());
    shmem_alltoalls32(d32, s32, 1, 2, n, SET, sync_array());
    for (int i = 0; i < set_size; i++)
        for (size_t k = 0; k < n; k++) {
            size_t in64 = (size_t)set_me * n + k, in32 = 2 * in64;

            tap_check(d64[2 * ((size_t)i * n + k)] == value(pe_of(i), (int)(in64 / (2 * n)), in64 % (2 * n)));
            tap_check(d32[(size_t)i * n + k] == (int32_t)value(pe_of(i), (int)(in32 / (2 * n)), in32 % (2 * n)));
        }
    meet();
}

#define AND(a, b) ((a) & (b))
#define OR(a, b) ((a) | (b))
#define XOR(a, b) ((a) ^ (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define SUM(a, b) ((a) + (b))
#define PROD(a, b) ((a) * (b))

#define VALUE(T, pe, i) ((T)(1 + (pe) * 3 % 4 + (int)((i) % 3)))

#define TO_ALL(NAME, T, FN, OP)                                                                    \
    do {                                                                                           \
        T *s = (T *)(void *)s64, *d = in_place ? s : (T *)(void *)d64, *work = (T *)(void *)d32;   \
                                                                                                   \
        meet();                                                                                    \
        for (int i = 0; i < n; i++)                                                                \
            s[i] = VALUE(T, tap_me, i);                                                            \
        coll_skew(&skew);                                                                          \
        shmem_##NAME##_##FN##_to_all(d, s, n, SET, work, sync_array());                            \
        for (int i = 0; i < n; i++) {                                                              \
            T want = VALUE(T, pe_of(0), i);                                                        \
                                                                                                   \
            for (int m = 1; m < set_size; m++)                                                     \
                want = (T)OP(want, VALUE(T, pe_of(m), i));                                         \
            if (!tap_check(d[i] == want))                                                          \
                break;                                                                             \
        }                                                                                          \
    } while (0)
#define BITS(NAME, T) TO_ALL(NAME, T, and, AND); TO_ALL(NAME, T, or, OR); TO_ALL(NAME, T, xor, XOR)
#define ORDER(NAME, T) TO_ALL(NAME, T, max, MAX); TO_ALL(NAME, T, min, MIN)
#define ARITH(NAME, T) TO_ALL(NAME, T, sum, SUM); TO_ALL(NAME, T, prod, PROD)

static void reductions(int n, int in_place)
{
    BITS(short, short);
    BITS(int, int);
    BITS(long, long);
    BITS(longlong, long long);
    ORDER(short, short);
    ORDER(int, int);
    ORDER(long, long);
    ORDER(longlong, long long);
    ORDER(float, float);
    ORDER(double, double);
    ORDER(longdouble, long double);
    ARITH(short, short);
    ARITH(int, int);
    ARITH(long, long);
    ARITH(longlong, long long);
    ARITH(float, float);
    ARITH(double, double);
    ARITH(longdouble, long double);
    ARITH(complexf, float complex);
    ARITH(complexd, double complex);
    meet();
}

static void on_set(int start, int log_stride, int size)
{
    turn = 0;
    set_start = start;
    set_log = log_stride;
    set_size = size;
    set_me = (tap_me - start) >> log_stride;
    if (tap_me < start || (tap_me - start) % (1 << log_stride) || set_me >= size)
        return;
    for (size_t n = 0; n <= MOST; n = n * 9 + 2) {
        if (tap_short() && n != (start || log_stride ? 20 : 1640))
            continue;
        broadcasts(n);
        collects(n);
        alltoalls(n);
    }
    for (int n = 0; n < 1000; n = n * 30 + 1)
        for (int in_place = 0; in_place < 2; in_place++)
            if (!tap_short() || (in_place == log_stride && n == (start ? 31 : 931)))
                reductions(n, in_place);
}

int main(void)
{
    size_t elements;

    tap_init();
    skew = (unsigned)tap_me * 31u + 7;
    elements = (size_t)tap_n * 2 * MOST;
    s64 = shmem_calloc(elements, 8);
    d64 = shmem_calloc(elements, 8);
    s32 = shmem_calloc(elements, 4);
    d32 = shmem_calloc(elements, 4);
    tap_check(s64 && d64 && s32 && d32);
    on_set(0, 0, tap_n);
    check_restored_everywhere();
    tap_point("all PEs");
    on_set(tap_n / 2, 0, tap_n - tap_n / 2);
    check_restored_everywhere();
    tap_point("the upper half");
    on_set(0, 1, (tap_n + 1) / 2);
    check_restored_everywhere();
    tap_point("every second PE");
    on_set(tap_n - 1, 3, 1);
    check_restored_everywhere();
    tap_point("one PE");
    return tap_done();
}
