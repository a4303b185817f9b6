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
};

START_TEST(nonsense_is_refused_by_name_and_value)
{
    setenv(refused[_i].name, refused[_i].value, 1);
    ck_assert_int_eq(shmemi_env_parse(), -EINVAL);
    ck_assert_msg(strstr(last_line, refused[_i].says) != NULL, "said: %s", last_line);
}
END_TEST

START_TEST(an_empty_value_counts_as_unset)
{
    setenv("MARROW_CHECK", "", 1);
    setenv("MARROW_TIMEOUT", "", 1);
    ck_assert_int_eq(shmemi_env_parse(), 0);
    ck_assert_int_eq(shmemi_env.check, 0);
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
