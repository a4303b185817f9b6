/* SPDX-License-Identifier: BSD-3-Clause */
/* check_reduce.c - the loops behind the reductions: each pair of operation and type exists where it should and is right. */
#include "reduce.h"
#include "types_x.h"

#include <check.h>
#include <complex.h>
#include <stdlib.h>

#define N 200 /* more than three blocks of the unrolled loop */

START_TEST(types_map_to_width_and_sign)
{
    ck_assert_int_eq(SHMEMI_RED_TYPE(uint8_t), SHMEMI_RED_U8);
    ck_assert_int_eq(SHMEMI_RED_TYPE(signed char), SHMEMI_RED_I8);
    ck_assert_int_eq(SHMEMI_RED_TYPE(char), (char)-1 < 0 ? SHMEMI_RED_I8 : SHMEMI_RED_U8);
    ck_assert_int_eq(SHMEMI_RED_TYPE(unsigned short), SHMEMI_RED_U16);
    ck_assert_int_eq(SHMEMI_RED_TYPE(short), SHMEMI_RED_I16);
    ck_assert_int_eq(SHMEMI_RED_TYPE(int), SHMEMI_RED_I32);
    ck_assert_int_eq(SHMEMI_RED_TYPE(unsigned), SHMEMI_RED_U32);
    ck_assert_int_eq(SHMEMI_RED_TYPE(long long), SHMEMI_RED_I64);
    ck_assert_int_eq(SHMEMI_RED_TYPE(size_t), sizeof(size_t) == 8 ? SHMEMI_RED_U64 : SHMEMI_RED_U32);
    ck_assert_int_eq(SHMEMI_RED_TYPE(float), SHMEMI_RED_FLOAT);
    ck_assert_int_eq(SHMEMI_RED_TYPE(long double), SHMEMI_RED_LONGDOUBLE);
    ck_assert_int_eq(SHMEMI_RED_TYPE(float _Complex), SHMEMI_RED_COMPLEXF);
    ck_assert_int_eq(SHMEMI_RED_TYPE(double _Complex), SHMEMI_RED_COMPLEXD);
}
END_TEST

#define AND(a, b) ((a) & (b))
#define OR(a, b) ((a) | (b))
#define XOR(a, b) ((a) ^ (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define SUM(a, b) ((a) + (b))
#define PROD(a, b) ((a) * (b))

/* Both signs, and 0; small enough for exact products in every type. */
#define VALUE(T, i) ((T)((int)((i) * 7u % 15u) - 7))

#define TRY(NAME, T, OP)                                                                                \
    do {                                                                                                \
        shmemi_red_fn *kernel = shmemi_red_kernels[SHMEMI_RED_##OP][SHMEMI_RED_TYPE(T)];                \
                                                                                                        \
        ck_assert_msg(kernel != NULL, #NAME " has no " #OP);                                            \
        for (size_t n = 0; n <= N; n += n < 70 ? 1 : 13) {                                              \
            T acc[N + 1], in[N + 1];                                                                    \
                                                                                                        \
            for (size_t i = 0; i <= N; i++)                                                             \
                acc[i] = VALUE(T, i), in[i] = VALUE(T, i * 3 + 1);                                      \
            kernel(acc, in, n);                                                                         \
            for (size_t i = 0; i <= N; i++) {                                                           \
                T a = VALUE(T, i), want = i < n ? (T)OP(a, in[i]) : a;                                  \
                                                                                                        \
                ck_assert_msg(acc[i] == want, #NAME " " #OP ": element %zu of %zu", i, n);              \
            }                                                                                           \
        }                                                                                               \
    } while (0);

#define BIT(NAME, T) TRY(NAME, T, AND) TRY(NAME, T, OR) TRY(NAME, T, XOR)
#define MINMAX(NAME, T) TRY(NAME, T, MAX) TRY(NAME, T, MIN)
#define ARITH(NAME, T) TRY(NAME, T, SUM) TRY(NAME, T, PROD)

START_TEST(every_pair_of_the_tables_is_right)
{
    shmemi_red_choose(_i);
    SHMEMI_TYPES_RED_BIT(BIT)
    SHMEMI_TYPES_RED_MINMAX(MINMAX)
    SHMEMI_TYPES_RED_ARITH(ARITH)
    SHMEMI_TYPES_OLD_WAIT(BIT)
    SHMEMI_TYPES_OLD_MINMAX(MINMAX)
    SHMEMI_TYPES_OLD_ARITH(ARITH)
}
END_TEST

START_TEST(pairs_without_meaning_are_absent)
{
    ck_assert_ptr_null(shmemi_red_kernels[SHMEMI_RED_AND][SHMEMI_RED_FLOAT]);
    ck_assert_ptr_null(shmemi_red_kernels[SHMEMI_RED_XOR][SHMEMI_RED_COMPLEXD]);
    ck_assert_ptr_null(shmemi_red_kernels[SHMEMI_RED_MAX][SHMEMI_RED_COMPLEXF]);
}
END_TEST

START_TEST(shares_cover_everything_once)
{
    for (int n_pes = 1; n_pes <= 9; n_pes++)
        for (size_t elem = 1; elem <= 32; elem *= 2)
            for (size_t n = 0; n < 700; n += 23) {
                size_t next = 0;

                for (int me = 0; me < n_pes; me++) {
                    struct shmemi_group g = { .n_pes = n_pes, .my_pe = me };
                    size_t first, count;

                    shmemi_share(&g, n, elem, &first, &count);
                    ck_assert_uint_eq(first, next);
                    ck_assert_msg(count == 0 || first * elem % SHMEMI_CACHELINE == 0, "a share splits a line");
                    next += count;
                }
                ck_assert_uint_eq(next, n);
            }
}
END_TEST

int main(void)
{
    Suite *s = suite_create("reduce");
    TCase *t = tcase_create("loops");
    SRunner *r = srunner_create(s);
    int failed;

    tcase_set_timeout(t, 60);
    tcase_add_test(t, types_map_to_width_and_sign);
    tcase_add_loop_test(t, every_pair_of_the_tables_is_right, 0, 2); /* with and without wide vectors */
    tcase_add_test(t, pairs_without_meaning_are_absent);
    tcase_add_test(t, shares_cover_everything_once);
    suite_add_tcase(s, t);
    srunner_run_all(r, CK_NORMAL);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
