/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * words.c - single words in kernels: p and g of every type, strided copies, every atomic, waits and tests on words and sets,
 * contexts of a team, questions about PEs and teams.
 *
 * run: n=1,2,3 launch=oshrun timeout=120
 * nodes: no load and store from kernels reach one node only
 */
#include "launch.h"

#define LANES 40

struct args {
    char *word;  /* symmetric, 64 bytes a lane */
    uint64_t *count; /* symmetric, 16 words */
    int *matrix; /* symmetric, 400 ints */
    int *bad;    /* local */
    int peer, n, me;
    shmem_team_t team;
    shmem_ctx_t ctx;
};

/* Each lane has a word of its own on the peer. */
#define ROUND_TRIP(NAME, T)                                     \
    do {                                                        \
        T value_ = (T)(rank + 3), back_;                        \
        shmem_##NAME##_p((T *)(void *)slot, value_, a.peer);    \
        shmem_quiet();                                          \
        back_ = shmem_##NAME##_g((T *)(void *)slot, a.peer);    \
        *bad += back_ != value_;                                \
    } while (0)

KERNEL(round_trips, struct args)
{
    int rank = (int)shmemi_thread_in_block(), *bad = a.bad + rank;
    char *slot = a.word + rank * 64;

    ROUND_TRIP(float, float);
    ROUND_TRIP(double, double);
    ROUND_TRIP(char, char);
    ROUND_TRIP(schar, signed char);
    ROUND_TRIP(short, short);
    ROUND_TRIP(int, int);
    ROUND_TRIP(long, long);
    ROUND_TRIP(longlong, long long);
    ROUND_TRIP(uchar, unsigned char);
    ROUND_TRIP(ushort, unsigned short);
    ROUND_TRIP(uint, unsigned int);
    ROUND_TRIP(ulong, unsigned long);
    ROUND_TRIP(ulonglong, unsigned long long);
    ROUND_TRIP(int8, int8_t);
    ROUND_TRIP(uint64, uint64_t);
    ROUND_TRIP(size, size_t);
    ROUND_TRIP(ptrdiff, ptrdiff_t);
}

/* All lanes of all PEs on PE 0's words; the sums are known. */
KERNEL(atomics, struct args)
{
    int rank = (int)shmemi_thread_in_block();
    uint64_t old, bit = (uint64_t)1 << rank;
    float swapped;

    shmem_uint64_atomic_inc(&a.count[0], 0);
    shmem_uint64_atomic_add(&a.count[1], 5, 0);
    old = shmem_uint64_atomic_fetch_add(&a.count[2], 1, 0);
    a.bad[rank] += old >= (uint64_t)(2 * a.n * LANES);
    shmem_uint64_atomic_fetch_inc_nbi(&old, &a.count[2], 0);
    shmem_uint64_atomic_or(&a.count[3], bit, 0);
    shmem_uint64_atomic_xor(&a.count[4], bit, 0);
    shmem_uint64_atomic_and(&a.count[5], ~bit, 0);
    shmem_int_atomic_add((int *)(void *)&a.count[6], -1, 0);
    do
        old = shmem_uint64_atomic_fetch(&a.count[7], 0);
    while (shmem_uint64_atomic_compare_swap(&a.count[7], old, old + 2, 0) != old);
    swapped = shmem_float_atomic_swap((float *)(void *)&a.count[8], 1.5f, 0);
    a.bad[rank] += swapped != 0 && swapped != 1.5f;
    shmem_double_atomic_set((double *)(void *)&a.count[9], 2.5, 0);
    a.bad[rank] += shmem_double_atomic_fetch((double *)(void *)&a.count[9], 0) != 2.5;
    shmemx_signal_op(&a.count[10], 3, SHMEM_SIGNAL_ADD, 0);
    shmem_quiet();
}

KERNEL(strided, struct args)
{
    shmemx_int_iput_block(a.matrix, a.matrix + 200, 3, 2, 20, a.peer);
    shmemx_int_ibput_block(a.matrix + 100, a.matrix + 200, 10, 7, 4, 5, a.peer);
    shmemx_barrier_all_block();
    shmemx_int_iget_block(a.matrix + 320, a.matrix + 200, 1, 5, 12, a.peer);
    shmemx_int_ibget_block(a.matrix + 340, a.matrix + 200, 5, 6, 3, 4, a.peer);
}

/* Every PE sets a word of a set on its peer, in an order that a wait for any, some and all can follow. */
KERNEL(sets, struct args)
{
    uint64_t *set = a.count;
    size_t indices[4], n;
    int status[4] = { 0, 1, 0, 0 };
    uint64_t least[4] = { 1, 9, 1, 1 };

    shmem_uint64_p(&set[0], 1, a.peer);
    n = shmem_uint64_wait_until_any(set, 4, status, SHMEM_CMP_GE, 1);
    *a.bad += n == 1 || n > 3;
    shmem_uint64_p(&set[2], 2, a.peer);
    shmem_uint64_p(&set[3], 3, a.peer);
    n = shmem_uint64_wait_until_some(set, 4, indices, status, SHMEM_CMP_NE, 0);
    *a.bad += n < 1 || n > 3;
    shmem_uint64_wait_until_all_vector(set, 4, status, SHMEM_CMP_GE, least);
    *a.bad += shmem_uint64_test_all(set, 4, status, SHMEM_CMP_GE, 1) != 1;
    *a.bad += shmem_uint64_test_some(set, 4, indices, status, SHMEM_CMP_EQ, 3) != 1 || indices[0] != 3;
    *a.bad += shmem_uint64_test_any(set, 4, status, SHMEM_CMP_EQ, 77) != SIZE_MAX;
    *a.bad += shmem_uint64_wait_until_any(set, 0, status, SHMEM_CMP_EQ, 77) != SIZE_MAX;
    shmem_int_p((int *)(void *)&set[5], -7, a.peer);
    shmem_int_wait_until((int *)(void *)&set[5], SHMEM_CMP_LT, -6);
    *a.bad += shmem_int_test((int *)(void *)&set[5], SHMEM_CMP_GT, 0) != 0;
    shmem_barrier_all();
}

KERNEL(questions, struct args)
{
    int team_n = shmem_team_n_pes(a.team), team_me = shmem_team_my_pe(a.team), last = team_n - 1;
    int world = shmem_team_translate_pe(a.team, last, SHMEM_TEAM_WORLD);

    *a.bad += shmem_my_pe() != a.me || shmem_n_pes() != a.n;
    *a.bad += shmem_team_my_pe(SHMEM_TEAM_INVALID) != -1 || shmem_team_n_pes(SHMEM_TEAM_INVALID) != -1;
    *a.bad += shmem_team_translate_pe(a.team, team_me, SHMEM_TEAM_WORLD) != a.me;
    *a.bad += shmem_team_translate_pe(a.team, team_n, SHMEM_TEAM_WORLD) != -1;
    *a.bad += shmem_ptr(a.count, a.me) != a.count || shmem_ptr(&world, a.me) != NULL;
    *a.bad += shmem_team_ptr(a.team, a.count, last) != shmem_ptr(a.count, world);
    *a.bad += !shmem_pe_accessible(a.peer) || shmem_pe_accessible(a.n) || !shmem_addr_accessible(a.count, a.peer);
    /* A context counts PEs in its team. */
    shmem_ctx_int_p(a.ctx, (int *)(void *)&a.count[11], 40 + last, last);
    shmem_ctx_quiet(a.ctx);
    *a.bad += shmem_int_g((int *)(void *)&a.count[11], world) != 40 + last;
}

static int bad_lanes(struct args *a)
{
    int host[LANES], zero[LANES] = { 0 }, total = 0;

    dev_read(host, a->bad, sizeof host);
    dev_write(a->bad, zero, sizeof zero);
    for (int i = 0; i < LANES; i++)
        total += host[i];
    return total;
}

static void look_at_strided(const struct args *a, int from)
{
    int got[400], bad = 0;

    dev_read(got, a->matrix, sizeof got);
    for (int i = 0; i < 20; i++)
        bad += got[3 * i] != from * 1000 + 2 * i || got[3 * i + 1] != 0;
    for (int i = 0; i < 20; i++)
        bad += got[100 + i / 4 * 10 + i % 4] != from * 1000 + i / 4 * 7 + i % 4;
    for (int i = 0; i < 12; i++)
        bad += got[320 + i] != a->peer * 1000 + 5 * i;
    for (int i = 0; i < 12; i++)
        bad += got[340 + i / 3 * 5 + i % 3] != a->peer * 1000 + i / 3 * 6 + i % 3;
    tap_check_eq(bad, 0);
}

static void look_at_sums(const struct args *a)
{
    const uint64_t all = (uint64_t)a->n * LANES, lanes = ((uint64_t)1 << LANES) - 1;
    uint64_t got[16];

    dev_read(got, a->count, sizeof got);
    tap_check_eq(got[0], all);
    tap_check_eq(got[1], 5 * all);
    tap_check_eq(got[2], 2 * all);
    tap_check_eq(got[3], lanes);
    tap_check_eq(got[4], a->n % 2 ? lanes : 0);
    tap_check_eq(got[5], ~lanes);
    tap_check_eq((int32_t)(uint32_t)got[6], -(int64_t)all);
    tap_check_eq(got[7], 2 * all);
    tap_check_eq(got[10], 3 * all);
}

int main(void)
{
    uint64_t start[16] = { 0, 0, 0, 0, 0, ~(uint64_t)0 }, zero[16] = { 0 };
    int fill[400] = { 0 };
    struct args a;

    dev_init();
    memset(&a, 0, sizeof a);
    a.word = (char *)dev_malloc(64 * LANES);
    a.count = (uint64_t *)dev_malloc(sizeof start);
    a.matrix = (int *)dev_malloc(sizeof fill);
    a.bad = (int *)dev_local(LANES * sizeof(int));
    a.me = tap_me;
    a.n = tap_n;
    a.peer = (tap_me + 1) % tap_n;
    LAUNCH(round_trips, struct args, a, 1, LANES);
    tap_ok(bad_lanes(&a) == 0, "p and g of every type");

    dev_write(a.count, start, sizeof start);
    shmem_barrier_all();
    LAUNCH(atomics, struct args, a, 1, LANES);
    tap_check_eq(bad_lanes(&a), 0);
    shmem_barrier_all();
    if (tap_me == 0)
        look_at_sums(&a);
    tap_point("atomics of %d lanes of every PE on the same words", LANES);

    for (int i = 0; i < 120; i++)
        fill[200 + i] = tap_me * 1000 + i;
    dev_write(a.matrix, fill, sizeof fill);
    shmem_barrier_all();
    LAUNCH(strided, struct args, a, 1, LANES);
    shmem_barrier_all();
    look_at_strided(&a, (tap_me + tap_n - 1) % tap_n);
    tap_point("strided elements and blocks, put and get");

    dev_write(a.count, zero, sizeof zero);
    shmem_barrier_all();
    LAUNCH(sets, struct args, a, 1, 1);
    tap_ok(bad_lanes(&a) == 0, "waits and tests on words and sets");

    a.team = dev_split(0, tap_n > 2 ? 2 : 1, tap_n > 2 ? (tap_n + 1) / 2 : tap_n);
    if (a.team != SHMEM_TEAM_INVALID) {
        shmem_team_create_ctx(a.team, 0, &a.ctx);
        dev_add_ctx(a.ctx, a.team);
        LAUNCH(questions, struct args, a, 1, 1);
    }
    tap_ok(bad_lanes(&a) == 0, "questions about PEs and teams, and a context of a team");
    return dev_done();
}
