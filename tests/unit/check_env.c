/* SPDX-License-Identifier: BSD-3-Clause */
/* check_env.c - how environment variables are read, and what is refused with which words. */
#include "core/env.h"
#include "core/log.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static char last_line[2048];

static void remember(enum shmemi_log_level level, const char *line)
{
    (void)level;
    snprintf(last_line, sizeof last_line, "%s", line);
}

static const struct {
    const char *text;
    int rc;
    size_t bytes;
} sizes[] = {
    { "0", 0, 0 },
    { "1", 0, 1 },
    { "20m", 0, 20971520 },
    { "3.1M", 0, 3250586 },
    { ".5m", 0, 524288 },
    { "0.5m", 0, 524288 },
    { "20kk", 0, 20480 },
    { "20Mabc", 0, 20971520 },
    { "65536k", 0, 67108864 },
    { "300.5M", 0, 315097088 },
    { "1e3", 0, 1000 },
    { "2G", 0, (size_t)2 << 30 },
    { "1t", 0, (size_t)1 << 40 },
    { "1.5", 0, 2 },
    { " 7k", 0, 7168 },
    { "100 ", 0, 100 },
    { "7 k", 0, 7168 },
    { "512 MB", 0, (size_t)512 << 20 },
    { "5 blocks", -EINVAL, 0 },
    { "", -EINVAL, 0 },
    { "abc", -EINVAL, 0 },
    { "-1", -EINVAL, 0 },
    { "+5", -EINVAL, 0 },
    { "20Q", -EINVAL, 0 },
    { "m", -EINVAL, 0 },
    { ".", -EINVAL, 0 },
    { "nan", -EINVAL, 0 },
    { "inf", -EINVAL, 0 },
    { "0x10", -EINVAL, 0 },
    { "99999999999t", -EINVAL, 0 },
    { "1e400", -EINVAL, 0 },
};

START_TEST(sizes_are_read_as_the_specification_says)
{
    size_t out = 12345;

    ck_assert_int_eq(shmemi_parse_size(sizes[_i].text, &out), sizes[_i].rc);
    if (sizes[_i].rc == 0)
        ck_assert_uint_eq(out, sizes[_i].bytes);
}
END_TEST

START_TEST(shmem_names_win_over_sma_names)
{
    setenv("SMA_SYMMETRIC_SIZE", "1m", 1);
    ck_assert_int_eq(shmemi_env_parse(), 0);
    ck_assert_uint_eq(shmemi_env.symmetric_size, 1 << 20);
    setenv("SHMEM_SYMMETRIC_SIZE", "2m", 1);
    ck_assert_int_eq(shmemi_env_parse(), 0);
    ck_assert_uint_eq(shmemi_env.symmetric_size, 2 << 20);
}
END_TEST

static const struct {
    const char *name, *value, *says;
} refused[] = {
    { "SHMEM_SYMMETRIC_SIZE", "abc", "SHMEM_SYMMETRIC_SIZE is \"abc\"" },
    { "SMA_SYMMETRIC_SIZE", "-3", "SMA_SYMMETRIC_SIZE is \"-3\"" },
    { "MARROW_CHECK", "yes", "MARROW_CHECK is \"yes\"" },
    { "MARROW_TIMEOUT", "-1", "MARROW_TIMEOUT is \"-1\"" },
    { "MARROW_HANG_REPORT", "10 minutes", "MARROW_HANG_REPORT is \"10 minutes\"" },
    { "MARROW_LOG", "loud", "MARROW_LOG is \"loud\"" },
    { "MARROW_SPIN", "99999999999999999999", "MARROW_SPIN is" },
    /* what can be read, but means nothing */
    { "MARROW_TRANSPORT", "ibgdaa", "MARROW_TRANSPORT is \"ibgdaa\": expected auto, ibgda or proxy" },
    { "MARROW_IBGDA_MEMORY", "disk", "MARROW_IBGDA_MEMORY is \"disk\": expected gpu or host" },
    { "MARROW_NO_DBR", "1", "MARROW_NO_DBR is \"1\": expected off, auto or on" },
    { "MARROW_DEVICE_QPS", "3", "MARROW_DEVICE_QPS is 3: expected a power of two from 1 to 64" },
    { "MARROW_DEVICE_QPS", "0", "MARROW_DEVICE_QPS is 0: expected a power of two from 1 to 64" },
    { "MARROW_DEVICE_QPS", "128", "MARROW_DEVICE_QPS is 128: expected a power of two from 1 to 64" },
    { "MARROW_DEVICE_HEAP", "64t", "MARROW_DEVICE_HEAP is 70368744177664 bytes: expected at most 32T" },
    { "MARROW_DEVICE_GROW", "64t", "MARROW_DEVICE_GROW is 70368744177664 bytes: expected at most 32T" },
    { "MARROW_QUEUE_DEPTH", "100", "MARROW_QUEUE_DEPTH is 100: expected a power of two from 64 to 32768" },
    { "MARROW_IB_MTU", "1000", "MARROW_IB_MTU is 1000: expected 0, 256" },
    { "MARROW_IB_TIMEOUT", "32", "MARROW_IB_TIMEOUT is 32: expected 1 to 31" },
    { "MARROW_IB_RETRY", "8", "MARROW_IB_RETRY is 8: expected 0 to 7" },
    { "MARROW_IB_GID_INDEX", "-2", "MARROW_IB_GID_INDEX is -2: expected -1 to 255" },
    { "MARROW_CUDA", "2", "MARROW_CUDA is 2: expected -1 to 1" },
    { "MARROW_SPIN", "-2", "MARROW_SPIN is -2: expected -1 or more" },
    { "MARROW_BARRIER_RADIX", "-1", "MARROW_BARRIER_RADIX is -1: expected 0 or more" },
};

START_TEST(nonsense_is_refused_by_name_and_value)
{
    setenv(refused[_i].name, refused[_i].value, 1);
    ck_assert_int_eq(shmemi_env_parse(), -EINVAL);
    ck_assert_msg(strstr(last_line, refused[_i].says) != NULL, "said: %s", last_line);
}
END_TEST

static const struct {
    const char *name, *says; /* NULL: nothing */
} names[] = {
    { "MARROW_TRANSPROT", "MARROW_TRANSPROT is not a variable of Marrow and has no effect (did you mean MARROW_TRANSPORT?)" },
    { "MARROW_TIMOUT", "did you mean MARROW_TIMEOUT?" },
    { "MARROW_transport", "did you mean MARROW_TRANSPORT?" },
    { "marrow_strict", "did you mean MARROW_STRICT?" },
    { "MARROW_HCALIST", "did you mean MARROW_HCA_LIST?" },
    { "MARROW_SYMMETRIC_SIZE", "did you mean SHMEM_SYMMETRIC_SIZE?" },
    { "MARROW_GRAVITY", "MARROW_GRAVITY is not a variable of Marrow and has no effect (shmem-info -e lists them)" },
    { "MAROW_TRANSPORT", "did you mean MARROW_TRANSPORT?" },
    { "SHMEM_SYMETRIC_SIZE", "did you mean SHMEM_SYMMETRIC_SIZE?" },
    { "SMA_SYMMETRIC_SIZ", "did you mean SHMEM_SYMMETRIC_SIZE?" },
    { "SHMEM_SYMMETRIC_HEAP_SIZE", "did you mean SHMEM_SYMMETRIC_SIZE?" },
    { "SHMEM_DEBGU", "did you mean SHMEM_DEBUG?" },
    /* others', and ours */
    { "SHMEM_BOUNCE_SIZE", NULL },
    { "SHMEM_CC", NULL },
    { "SHMEM_TRANSPORT", NULL },
    { "SMA_VERSION", NULL },
    { "MARROW_STRICTLY_NOT", "shmem-info -e" },
    { "MARROW_TEST_ANYTHING", NULL },
    { "MARROW_FORK_JOB", NULL },
    { "MARROW_ROOT", NULL },
    { "MARROW_TRANSPORT", NULL },
    { "MARS_ATTACKS", NULL },
};

START_TEST(misspelt_names_are_said)
{
    setenv(names[_i].name, "auto", 1);
    last_line[0] = '\0';
    ck_assert_int_eq(shmemi_env_check_names(), 0);
    if (names[_i].says)
        ck_assert_msg(strstr(last_line, names[_i].says) != NULL, "said: %s", last_line);
    else
        ck_assert_str_eq(last_line, "");
    shmemi_env.strict = true;
    ck_assert_int_eq(shmemi_env_check_names(), names[_i].says ? -EINVAL : 0);
}
END_TEST

START_TEST(an_empty_value_counts_as_unset)
{
    setenv("MARROW_CHECK", "", 1);
    setenv("MARROW_TIMEOUT", "", 1);
    setenv("MARROW_STATIC_DATA", "", 1);
    setenv("MARROW_LOG", "", 1);
    setenv("MARROW_TRANSPORT", "", 1);
    ck_assert_int_eq(shmemi_env_parse(), 0);
    ck_assert_int_eq(shmemi_env.check, 0);
    ck_assert(shmemi_env.static_data);
    ck_assert_str_eq(shmemi_env.log, "warn");
    ck_assert_str_eq(shmemi_env.transport, "auto");
    setenv("SHMEM_SYMMETRIC_SIZE", "", 1);
    ck_assert_int_eq(shmemi_env_parse(), -EINVAL);
}
END_TEST

START_TEST(flags_know_no)
{
    static const struct {
        const char *text;
        bool on;
    } flags[] = { { "1", true }, { "y", true }, { "anything", true }, { "0", false }, { "no", false }, { "OFF", false } };

    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
        setenv("MARROW_STRICT", flags[i].text, 1);
        ck_assert_int_eq(shmemi_env_parse(), 0);
        ck_assert_int_eq(shmemi_env.strict, flags[i].on);
    }
}
END_TEST

START_TEST(seconds_become_nanoseconds)
{
    setenv("MARROW_TIMEOUT", "2.5", 1);
    ck_assert_int_eq(shmemi_env_parse(), 0);
    ck_assert_uint_eq(shmemi_env.timeout, 2500000000u);
}
END_TEST

START_TEST(the_list_shows_names_values_and_defaults)
{
    char *text = NULL;
    size_t len = 0;
    FILE *f = open_memstream(&text, &len);

    setenv("MARROW_NODE", "left", 1);
    shmemi_env_print(f);
    fclose(f);
    ck_assert_ptr_nonnull(strstr(text, "SHMEM_SYMMETRIC_SIZE"));
    ck_assert_ptr_nonnull(strstr(text, "default: 512M"));
    ck_assert_ptr_nonnull(strstr(text, "\"left\""));
    free(text);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("env");
    TCase *c = tcase_create("core");
    SRunner *r = srunner_create(s);
    int failed;

    shmemi_log_set_sink(remember);
    tcase_add_loop_test(c, sizes_are_read_as_the_specification_says, 0, (int)(sizeof sizes / sizeof sizes[0]));
    tcase_add_test(c, shmem_names_win_over_sma_names);
    tcase_add_loop_test(c, nonsense_is_refused_by_name_and_value, 0, (int)(sizeof refused / sizeof refused[0]));
    tcase_add_loop_test(c, misspelt_names_are_said, 0, (int)(sizeof names / sizeof names[0]));
    tcase_add_test(c, an_empty_value_counts_as_unset);
    tcase_add_test(c, flags_know_no);
    tcase_add_test(c, seconds_become_nanoseconds);
    tcase_add_test(c, the_list_shows_names_values_and_defaults);
    suite_add_tcase(s, c);
    srunner_run_all(r, CK_NORMAL);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
