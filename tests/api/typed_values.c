/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * typed_values.c - each typed routine moves whole elements of its own type and no others: values at the ends of the
 * type's range, guards on both sides, signedness of the comparisons, wrap-around of the additions.
 *
 * run: n=1,2,3 launch=oshrun timeout=120
 */
#define SHMEM_NO_GENERICS
#include "../mp/tap.h"

#include "types_x.h"

static int me, npes, right, left;
static shmem_ctx_t ctx;

/* Bytes that differ from each other, for every type alike: a value of the type `a` PE gave, number i. */
static void pattern(void *value, size_t size, int pe, int i)
{
    for (size_t b = 0; b < size; b++)
        ((unsigned char *)value)[b] = (unsigned char)(0x11 + 37 * b + 5 * (size_t)pe + 3 * (size_t)i) & 0x7f;
    if (size == 16)
        memset((unsigned char *)value + 10, 0, 6); /* padding of an x87 long double */
}

/* `got` is element i of PE pe's pattern. */
static int is_pattern(const void *got, size_t size, int pe, int i)
{
    unsigned char want[16];

    pattern(want, size, pe, i);
    return memcmp(got, want, size == 16 ? 10 : size) == 0;
}

static int is_zero(const void *p, size_t size)
{
    for (size_t b = 0; b < size; b++)
        if (((const unsigned char *)p)[b])
            return 0;
    return 1;
}

/* An array whose elements 1 to 6 may be written; 0 and 7 are guards. */
#define N 8

/* Element i (1-based) of `got` came from element `from` of PE pe; others are zero. */
static void expect(const void *got, size_t size, const int *from, int pe)
{
    for (int i = 0; i < N; i++) {
        const char *element = (const char *)got + (size_t)i * size;

        if (from[i] < 0)
            tap_check(is_zero(element, size));
        else
            tap_check(is_pattern(element, size, pe, from[i]));
    }
}

#define NONE -1

#define RMA(NAME, T)                                                                              \
    static T NAME##_dest[N], NAME##_source[N], NAME##_local[N];                                   \
    static uint64_t NAME##_sig;                                                                   \
    static void NAME##_put_forms(void)                                                            \
    {                                                                                             \
        const int all[N] = { NONE, 1, 2, 3, 4, 5, 6, NONE };                                      \
        const int odd[N] = { NONE, 2, NONE, 4, NONE, 6, NONE, NONE };                             \
        const int blocks[N] = { NONE, 1, 2, NONE, 4, 5, NONE, NONE };                             \
        T *d = NAME##_dest + 1, *s = NAME##_source + 1;                                           \
        FORM(NAME, shmem_##NAME##_put(d, s, 6, right), all)                                       \
        FORM(NAME, shmem_ctx_##NAME##_put(ctx, d, s, 6, right), all)                              \
        FORM(NAME, shmem_##NAME##_put_nbi(d, s, 6, right), all)                                   \
        FORM(NAME, shmem_ctx_##NAME##_put_nbi(ctx, d, s, 6, right), all)                          \
        FORM(NAME, shmem_##NAME##_iput(d, s + 1, 2, 2, 3, right), odd)                            \
        FORM(NAME, shmem_ctx_##NAME##_iput(ctx, d, s + 1, 2, 2, 3, right), odd)                   \
        FORM(NAME, shmem_##NAME##_ibput(d, s, 3, 3, 2, 2, right), blocks)                         \
        FORM(NAME, shmem_ctx_##NAME##_ibput(ctx, d, s, 3, 3, 2, 2, right), blocks)                \
    }                                                                                             \
    static void NAME##_get_forms(void)                                                            \
    {                                                                                             \
        const int all[N] = { NONE, 1, 2, 3, 4, 5, 6, NONE };                                      \
        const int odd[N] = { NONE, 2, NONE, 4, NONE, 6, NONE, NONE };                             \
        const int blocks[N] = { NONE, 1, 2, NONE, 4, 5, NONE, NONE };                             \
        T *d = NAME##_local + 1, *s = NAME##_source + 1;                                          \
        GOT(NAME, shmem_##NAME##_get(d, s, 6, left), all)                                         \
        GOT(NAME, shmem_ctx_##NAME##_get(ctx, d, s, 6, left), all)                                \
        GOT(NAME, shmem_##NAME##_get_nbi(d, s, 6, left), all)                                     \
        GOT(NAME, shmem_ctx_##NAME##_get_nbi(ctx, d, s, 6, left), all)                            \
        GOT(NAME, shmem_##NAME##_iget(d, s + 1, 2, 2, 3, left), odd)                              \
        GOT(NAME, shmem_ctx_##NAME##_iget(ctx, d, s + 1, 2, 2, 3, left), odd)                     \
        GOT(NAME, shmem_##NAME##_ibget(d, s, 3, 3, 2, 2, left), blocks)                           \
        GOT(NAME, shmem_ctx_##NAME##_ibget(ctx, d, s, 3, 3, 2, 2, left), blocks)                  \
    }                                                                                             \
    static void NAME##_element_forms(void)                                                        \
    {                                                                                             \
        const int one[N] = { NONE, NONE, 3, NONE, NONE, NONE, NONE, NONE };                       \
        T value;                                                                                  \
        FORM(NAME, shmem_##NAME##_p(&NAME##_dest[2], NAME##_source[3], right), one)               \
        FORM(NAME, shmem_ctx_##NAME##_p(ctx, &NAME##_dest[2], NAME##_source[3], right), one)      \
        value = shmem_##NAME##_g(&NAME##_source[3], left);                                        \
        tap_check(is_pattern(&value, sizeof value, left, 3));                                     \
        value = shmem_ctx_##NAME##_g(ctx, &NAME##_source[4], left);                               \
        tap_check(is_pattern(&value, sizeof value, left, 4));                                     \
    }                                                                                             \
    static void NAME##_signal_forms(void)                                                         \
    {                                                                                             \
        const int all[N] = { NONE, 1, 2, 3, 4, 5, 6, NONE };                                      \
        T *d = NAME##_dest + 1, *s = NAME##_source + 1;                                           \
        uint64_t *sig = &NAME##_sig;                                                              \
        FORM(NAME, shmem_##NAME##_put_signal(d, s, 6, sig, 1, SHMEM_SIGNAL_SET, right), all)      \
        FORM(NAME, shmem_ctx_##NAME##_put_signal(ctx, d, s, 6, sig, 2, SHMEM_SIGNAL_ADD, right), all)      \
        FORM(NAME, shmem_##NAME##_put_signal_nbi(d, s, 6, sig, 3, SHMEM_SIGNAL_ADD, right), all)           \
        FORM(NAME, shmem_ctx_##NAME##_put_signal_nbi(ctx, d, s, 6, sig, 4, SHMEM_SIGNAL_ADD, right), all)  \
        tap_check_eq(shmem_signal_fetch(sig), 10);                                                \
    }
/* Every PE writes to its right; what lies in dest then came from the left. */
#define FORM(NAME, statement, from)                                        \
    memset(NAME##_dest, 0, sizeof NAME##_dest);                            \
    shmem_barrier_all();                                                   \
    statement;                                                             \
    shmem_ctx_quiet(ctx);                                                  \
    shmem_barrier_all();                                                   \
    expect(NAME##_dest, sizeof *NAME##_dest, from, left);
#define GOT(NAME, statement, from)                                         \
    memset(NAME##_local, 0, sizeof NAME##_local);                          \
    statement;                                                             \
    shmem_ctx_quiet(ctx);                                                  \
    shmem_quiet();                                                         \
    expect(NAME##_local, sizeof *NAME##_local, from, left);
SHMEMI_TYPES_RMA(RMA)

static void rma(void)
{
#define RUN(NAME, T)                                                    \
    for (int i = 0; i < N; i++)                                         \
        pattern(&NAME##_source[i], sizeof *NAME##_source, me, i);       \
    shmem_barrier_all();                                                \
    NAME##_put_forms();                                                 \
    NAME##_get_forms();                                                 \
    NAME##_element_forms();                                             \
    NAME##_signal_forms();                                              \
    shmem_barrier_all();                                                \
    tap_point(#NAME ": put, get, p, g, strided, blocks, signals");
    SHMEMI_TYPES_RMA(RUN)
#undef RUN
}

/* The word of the right neighbour, which only this PE touches between two barriers. */
#define WORD(NAME, T)                                                                                            \
    static T NAME##_word[3];                                                                                     \
    static void NAME##_set_swap(void)                                                                            \
    {                                                                                                            \
        T *w = &NAME##_word[1], old = 0, a = (T)7, b = (T)((T)0 - (T)3);                                         \
        shmem_##NAME##_atomic_set(w, a, right);                                                                  \
        shmem_quiet();                                                                                           \
        tap_check(shmem_##NAME##_atomic_fetch(w, right) == a);                                                   \
        shmem_ctx_##NAME##_atomic_set(ctx, w, b, right);                                                         \
        shmem_ctx_quiet(ctx);                                                                                    \
        tap_check(shmem_ctx_##NAME##_atomic_fetch(ctx, w, right) == b);                                          \
        tap_check(shmem_##NAME##_atomic_swap(w, a, right) == b);                                                 \
        tap_check(shmem_ctx_##NAME##_atomic_swap(ctx, w, b, right) == a);                                        \
        shmem_##NAME##_atomic_swap_nbi(&old, w, a, right);                                                       \
        shmem_quiet();                                                                                           \
        tap_check(old == b);                                                                                     \
        shmem_ctx_##NAME##_atomic_fetch_nbi(ctx, &old, w, right);                                                \
        shmem_ctx_quiet(ctx);                                                                                    \
        tap_check(old == a);                                                                                     \
        shmem_ctx_##NAME##_atomic_swap_nbi(ctx, &old, w, b, right);                                              \
        shmem_##NAME##_atomic_fetch_nbi(&old, w, right);                                                         \
        shmem_quiet();                                                                                           \
        tap_check(old == b);                                                                                     \
    }
SHMEMI_TYPES_AMO_EXT(WORD)
#undef WORD

#define ARITHMETIC(NAME, T)                                                                                      \
    static void NAME##_add_cswap(void)                                                                           \
    {                                                                                                            \
        T *w = &NAME##_word[1], old = 0, most = (T)-1 > 0 ? (T)-1 : (T)(((uint64_t)1 << (8 * sizeof(T) - 1)) - 1); \
        shmem_##NAME##_atomic_set(w, most, right);                                                               \
        tap_check(shmem_##NAME##_atomic_fetch_inc(w, right) == most);                                            \
        old = shmem_##NAME##_atomic_fetch(w, right); /* wrapped to the least value */                            \
        tap_check((T)-1 > 0 ? old == 0 : old == (T)(-most - 1));                                                 \
        tap_check(shmem_ctx_##NAME##_atomic_fetch_add(ctx, w, most, right) == old);                              \
        tap_check(shmem_##NAME##_atomic_fetch(w, right) == (T)((T)-1 > 0 ? most : (T)-1));                       \
        shmem_##NAME##_atomic_set(w, 10, right);                                                                 \
        shmem_##NAME##_atomic_inc(w, right);                                                                     \
        shmem_ctx_##NAME##_atomic_inc(ctx, w, right);                                                            \
        shmem_##NAME##_atomic_add(w, 3, right);                                                                  \
        shmem_ctx_##NAME##_atomic_add(ctx, w, (T)-1, right);                                                     \
        shmem_quiet();                                                                                           \
        tap_check(shmem_ctx_##NAME##_atomic_fetch_inc(ctx, w, right) == 14);                                     \
        tap_check(shmem_##NAME##_atomic_compare_swap(w, 14, 1, right) == 15);                                    \
        tap_check(shmem_ctx_##NAME##_atomic_compare_swap(ctx, w, 15, 2, right) == 15);                           \
        shmem_##NAME##_atomic_compare_swap_nbi(&old, w, 2, 3, right);                                            \
        shmem_quiet();                                                                                           \
        tap_check(old == 2);                                                                                     \
        shmem_ctx_##NAME##_atomic_fetch_add_nbi(ctx, &old, w, 5, right);                                         \
        shmem_ctx_quiet(ctx);                                                                                    \
        tap_check(old == 3);                                                                                     \
        shmem_##NAME##_atomic_fetch_inc_nbi(&old, w, right);                                                     \
        shmem_quiet();                                                                                           \
        tap_check(old == 8);                                                                                     \
        tap_check(shmem_##NAME##_atomic_fetch_add(w, 0, right) == 9);                                            \
    }
SHMEMI_TYPES_AMO(ARITHMETIC)
#undef ARITHMETIC

#define BITS(NAME, T)                                                                    \
    static void NAME##_bits(void)                                                        \
    {                                                                                    \
        T *w = &NAME##_word[1], old = 0, top = (T)((T)1 << (8 * sizeof(T) - 2));          \
        shmem_##NAME##_atomic_set(w, 0x0f, right);                                       \
        shmem_##NAME##_atomic_or(w, top, right);                                         \
        shmem_ctx_##NAME##_atomic_and(ctx, w, (T)(top | 0x3c), right);                   \
        shmem_##NAME##_atomic_xor(w, 0x30, right);                                       \
        tap_check(shmem_##NAME##_atomic_fetch_and(w, (T)(top | 0x0c), right) == (T)(top | 0x3c)); \
        tap_check(shmem_ctx_##NAME##_atomic_fetch_or(ctx, w, 1, right) == (T)(top | 0x0c)); \
        tap_check(shmem_##NAME##_atomic_fetch_xor(w, top, right) == (T)(top | 0x0d));    \
        shmem_##NAME##_atomic_fetch_or_nbi(&old, w, 2, right);                           \
        shmem_quiet();                                                                   \
        tap_check(old == 0x0d);                                                          \
        shmem_ctx_##NAME##_atomic_fetch_and_nbi(ctx, &old, w, 3, right);                 \
        shmem_ctx_quiet(ctx);                                                            \
        tap_check(old == 0x0f);                                                          \
        shmem_##NAME##_atomic_fetch_xor_nbi(&old, w, 3, right);                          \
        shmem_quiet();                                                                   \
        tap_check(old == 3 && shmem_##NAME##_atomic_fetch(w, right) == 0);               \
    }
SHMEMI_TYPES_AMO_BIT(BITS)
#undef BITS

static void amo(void)
{
#define RUN(NAME, T)                                                       \
    shmem_barrier_all();                                                   \
    NAME##_set_swap();                                                     \
    tap_check(NAME##_word[0] == 0 && NAME##_word[2] == 0);                 \
    tap_point(#NAME ": fetch, set, swap");
    SHMEMI_TYPES_AMO_EXT(RUN)
#undef RUN
#define RUN(NAME, T)                                                       \
    shmem_barrier_all();                                                   \
    NAME##_add_cswap();                                                    \
    tap_check(NAME##_word[0] == 0 && NAME##_word[2] == 0);                 \
    tap_point(#NAME ": add, inc, compare_swap");
    SHMEMI_TYPES_AMO(RUN)
#undef RUN
#define RUN(NAME, T)                                                       \
    shmem_barrier_all();                                                   \
    NAME##_bits();                                                         \
    tap_check(NAME##_word[0] == 0 && NAME##_word[2] == 0);                 \
    tap_point(#NAME ": and, or, xor");
    SHMEMI_TYPES_AMO_BIT(RUN)
#undef RUN
}

/* Comparisons: a word with its top bit set is less than 1 exactly when the type is signed. */
#define COMPARE(NAME, T)                                                                     \
    static T NAME##_ivar[3];                                                                 \
    static void NAME##_compare(void)                                                         \
    {                                                                                        \
        const int is_signed = (T)-1 < (T)1;                                                  \
        T *w = &NAME##_ivar[1];                                                              \
        *w = (T)-2;                                                                          \
        tap_check_eq(shmem_##NAME##_test(w, SHMEM_CMP_LT, 1), is_signed);                    \
        tap_check_eq(shmem_##NAME##_test(w, SHMEM_CMP_GE, 1), !is_signed);                   \
        tap_check_eq(shmem_##NAME##_test(w, SHMEM_CMP_GT, (T)-3), 1);                        \
        tap_check_eq(shmem_##NAME##_test(w, SHMEM_CMP_LE, (T)-3), 0);                        \
        tap_check_eq(shmem_##NAME##_test(w, SHMEM_CMP_EQ, (T)-2), 1);                        \
        tap_check_eq(shmem_##NAME##_test(w, SHMEM_CMP_NE, (T)-2), 0);                        \
        shmem_##NAME##_wait_until(w, is_signed ? SHMEM_CMP_LT : SHMEM_CMP_GT, 1);            \
        shmem_##NAME##_wait_until(w, SHMEM_CMP_NE, 0);                                       \
        NAME##_ivar[0] = NAME##_ivar[2] = (T)-1;                                             \
        tap_check_eq(shmem_##NAME##_test(w, SHMEM_CMP_EQ, (T)-2), 1);                        \
    }
SHMEMI_TYPES_SYNC(COMPARE)
#undef COMPARE

#define SETS(NAME, T)                                                                                  \
    static T NAME##_set[4];                                                                            \
    static void NAME##_sets(void)                                                                      \
    {                                                                                                  \
        const int skip[4] = { 0, 1, 0, 0 };                                                            \
        const T want[4] = { (T)-1, 0, 9, 4 };                                                          \
        T *v = NAME##_set;                                                                             \
        size_t idx[4] = { 9, 9, 9, 9 };                                                                \
        v[0] = (T)-1, v[1] = 0, v[2] = 3, v[3] = 4;                                                    \
        tap_check_eq(shmem_##NAME##_test_all(v, 4, NULL, SHMEM_CMP_NE, 0), 0);                         \
        tap_check_eq(shmem_##NAME##_test_all(v, 4, skip, SHMEM_CMP_NE, 0), 1);                         \
        tap_check_eq(shmem_##NAME##_test_all_vector(v, 4, skip, SHMEM_CMP_EQ, want), 0);               \
        tap_check_eq(shmem_##NAME##_test_any(v, 4, NULL, SHMEM_CMP_EQ, 3), 2);                         \
        tap_check(shmem_##NAME##_test_any(v, 4, NULL, SHMEM_CMP_EQ, 77) == SIZE_MAX);                  \
        tap_check_eq(shmem_##NAME##_test_any_vector(v + 2, 2, NULL, SHMEM_CMP_EQ, want + 2), 1);       \
        tap_check_eq(shmem_##NAME##_test_some(v, 4, idx, skip, SHMEM_CMP_NE, 3), 2);                   \
        tap_check_eq(idx[0] + idx[1], 3);                                                              \
        tap_check_eq(shmem_##NAME##_test_some_vector(v, 4, idx, NULL, SHMEM_CMP_EQ, want), 3);         \
        tap_check_eq(idx[0] + idx[1] + idx[2], 4);                                                     \
        shmem_##NAME##_wait_until_all(v, 4, skip, SHMEM_CMP_NE, 0);                                    \
        shmem_##NAME##_wait_until_all_vector(v, 2, NULL, SHMEM_CMP_EQ, want);                          \
        tap_check_eq(shmem_##NAME##_wait_until_any(v, 4, NULL, SHMEM_CMP_EQ, 4), 3);                   \
        tap_check_eq(shmem_##NAME##_wait_until_any_vector(v + 2, 2, NULL, SHMEM_CMP_EQ, want + 2), 1); \
        tap_check_eq(shmem_##NAME##_wait_until_some(v, 4, idx, NULL, SHMEM_CMP_EQ, 0), 1);             \
        tap_check_eq(idx[0], 1);                                                                       \
        tap_check_eq(shmem_##NAME##_wait_until_some_vector(v, 4, idx, skip, SHMEM_CMP_EQ, want), 2);   \
        tap_check(shmem_##NAME##_wait_until_any(v, 0, NULL, SHMEM_CMP_EQ, 4) == SIZE_MAX);             \
    }
SHMEMI_TYPES_SYNC(SETS)
#undef SETS

static void p2p(void)
{
#define RUN(NAME, T)                                    \
    NAME##_compare();                                   \
    tap_point(#NAME ": comparisons");
    SHMEMI_TYPES_SYNC(RUN)
#undef RUN
#define RUN(NAME, T)                                    \
    NAME##_sets();                                      \
    tap_point(#NAME ": sets of words");
    SHMEMI_TYPES_SYNC(RUN)
#undef RUN
}

/* The sized and byte routines, on elements of `BYTES` bytes of a byte array. */
static unsigned char raw_dest[N * 16], raw_source[N * 16], raw_local[N * 16];
static uint64_t raw_sig;

static void raw_put(size_t size, const int *from)
{
    shmem_ctx_quiet(ctx);
    shmem_barrier_all();
    for (int i = 0; i < N; i++) {
        if (from[i] < 0)
            tap_check(is_zero(raw_dest + (size_t)i * size, size));
        else
            tap_check(memcmp(raw_dest + (size_t)i * size, raw_local + (size_t)from[i] * size, size) == 0);
    }
    shmem_barrier_all();
    memset(raw_dest, 0, sizeof raw_dest);
    shmem_barrier_all();
}

#define SIZED(BITS, BYTES)                                                                                   \
    static void size_##BITS(void)                                                                            \
    {                                                                                                        \
        const int all[N] = { NONE, 1, 2, 3, 4, 5, 6, NONE };                                                 \
        const int odd[N] = { NONE, 2, NONE, 4, NONE, 6, NONE, NONE };                                        \
        const int blocks[N] = { NONE, 1, 2, NONE, 4, 5, NONE, NONE };                                        \
        unsigned char *d = raw_dest + (BYTES), *s = raw_source + (BYTES);                                    \
        raw_put(BYTES, (shmem_put##BITS(d, s, 6, right), all));                                              \
        raw_put(BYTES, (shmem_ctx_put##BITS(ctx, d, s, 6, right), all));                                     \
        raw_put(BYTES, (shmem_put##BITS##_nbi(d, s, 6, right), all));                                        \
        raw_put(BYTES, (shmem_ctx_put##BITS##_nbi(ctx, d, s, 6, right), all));                               \
        raw_put(BYTES, (shmem_put##BITS##_signal(d, s, 6, &raw_sig, 1, SHMEM_SIGNAL_ADD, right), all));      \
        raw_put(BYTES, (shmem_ctx_put##BITS##_signal_nbi(ctx, d, s, 6, &raw_sig, 1, SHMEM_SIGNAL_ADD, right), all)); \
        raw_put(BYTES, (shmem_iput##BITS(d, s + (BYTES), 2, 2, 3, right), odd));                             \
        raw_put(BYTES, (shmem_ctx_ibput##BITS(ctx, d, s, 3, 3, 2, 2, right), blocks));                       \
        raw_put(BYTES, (shmem_get##BITS(d, s, 6, left), all));                                               \
        raw_put(BYTES, (shmem_ctx_get##BITS##_nbi(ctx, d, s, 6, left), all));                                \
        raw_put(BYTES, (shmem_ctx_iget##BITS(ctx, d, s + (BYTES), 2, 2, 3, left), odd));                     \
        raw_put(BYTES, (shmem_ibget##BITS(d, s, 3, 3, 2, 2, left), blocks));                                 \
    }
SHMEMI_SIZES(SIZED)
#undef SIZED

static void sizes(void)
{
    const int all[N] = { NONE, 1, 2, 3, 4, 5, 6, NONE };

    for (size_t b = 0; b < sizeof raw_source; b++) {
        raw_source[b] = (unsigned char)(1 + b + 97 * (size_t)me);
        raw_local[b] = (unsigned char)(1 + b + 97 * (size_t)left); /* what the left neighbour has */
    }
    shmem_barrier_all();
#define RUN(BITS, BYTES)                                      \
    size_##BITS();                                            \
    tap_point(#BITS " bits: put, get, strided, blocks, signal");
    SHMEMI_SIZES(RUN)
#undef RUN
    raw_put(1, (shmem_putmem(raw_dest + 1, raw_source + 1, 6, right), all));
    raw_put(1, (shmem_ctx_putmem_nbi(ctx, raw_dest + 1, raw_source + 1, 6, right), all));
    raw_put(1, (shmem_getmem(raw_dest + 1, raw_source + 1, 6, left), all));
    raw_put(1, (shmem_ctx_getmem_nbi(ctx, raw_dest + 1, raw_source + 1, 6, left), all));
    raw_put(1, (shmem_putmem_signal(raw_dest + 1, raw_source + 1, 6, &raw_sig, 1, SHMEM_SIGNAL_ADD, right), all));
    tap_check_eq(shmem_signal_fetch(&raw_sig), 11);
    tap_point("bytes: put, get, signal");
}

int main(void)
{
    tap_init();
    me = shmem_my_pe();
    npes = shmem_n_pes();
    right = (me + 1) % npes;
    left = (me + npes - 1) % npes;
    tap_check_eq(shmem_ctx_create(0, &ctx), 0);
    rma();
    amo();
    p2p();
    sizes();
    shmem_ctx_destroy(ctx);
    return tap_done();
}
