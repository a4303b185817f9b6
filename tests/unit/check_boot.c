/* SPDX-License-Identifier: BSD-3-Clause */
/* check_boot.c - which bootstrap an environment selects, what it refuses, and what it says then. */
#include "bootstrap/boot_kinds.h"
#include "bootstrap/fork_job.h"
#include "core/log.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char said[4096]; /* all lines logged since clean() */
static int lines;

static void hear(enum shmemi_log_level level, const char *line)
{
    (void)level;
    lines++;
    snprintf(said + strlen(said), sizeof said - strlen(said), "%s\n", line);
}

/* Each test runs in a process of its own (Check forks), so changes end with it. */
static void clean(void)
{
    static const char *const vars[] = { "PMIX_NAMESPACE",       "PMIX_RANK",           "MARROW_FORK_JOB",
                                        "SLURM_STEP_NUM_TASKS", "SLURM_PROCID",        "OMPI_COMM_WORLD_SIZE",
                                        "OMPI_COMM_WORLD_RANK", "PMI_SIZE",            "PMI_RANK",
                                        "MV2_COMM_WORLD_SIZE",  "MV2_COMM_WORLD_RANK", "FLUX_JOB_SIZE",
                                        "FLUX_TASK_RANK" };

    for (size_t i = 0; i < sizeof vars / sizeof vars[0]; i++)
        unsetenv(vars[i]);
    shmemi_log_set_sink(hear);
    said[0] = '\0';
    lines = 0;
}

static int open_job(const char *wanted)
{
    struct shmemi_boot boot;
    int rc = shmemi_boot_open(&boot, wanted, 0);

    if (rc == 0) {
        ck_assert_str_eq(boot.ops->name, "single");
        ck_assert_int_eq(boot.pe, 0);
        ck_assert_int_eq(boot.n_pes, 1);
        boot.ops->close(&boot);
    } else {
        ck_assert_ptr_null(boot.ops);
    }
    return rc;
}

#define KEY "00112233445566778899aabbccddeeff"

START_TEST(fork_variable_is_parsed)
{
    struct shmemi_fork_env env;

    ck_assert_int_eq(shmemi_fork_parse("200:3:16:" KEY, &env), 0);
    ck_assert_int_eq(env.fd, 200);
    ck_assert_int_eq(env.pe, 3);
    ck_assert_int_eq(env.n_pes, 16);
    ck_assert(env.key[0] == UINT64_C(0x0011223344556677));
    ck_assert(env.key[1] == UINT64_C(0x8899aabbccddeeff));
}
END_TEST

static const char *const bad_variables[] = {
    "banana",
    ":",
    "200",
    "200:3",
    "200:3:16",
    "200:3:16:",
    "200:3:16:0011",
    "200:3:16:" KEY "0",
    "200:3:16:0011223344556677 899aabbccddeeff",
    "200:3:16:00112233445566778899AABBCCDDEEFF",
    "-1:3:16:" KEY,
    " 200:3:16:" KEY,
    "200:16:16:" KEY,  /* PE out of range */
    "200:0:0:" KEY,    /* no PEs */
    "200:0:16385:" KEY, /* too many */
    "99999999999:0:1:" KEY,
    "200:3:16" KEY,
    "200:+3:16:" KEY,
};

START_TEST(bad_fork_variable_is_refused)
{
    struct shmemi_fork_env env = { .fd = 77 };

    ck_assert_int_eq(shmemi_fork_parse(bad_variables[_i], &env), -EINVAL);
    ck_assert_int_eq(env.fd, 77);
    clean();
    setenv("MARROW_FORK_JOB", bad_variables[_i], 1);
    ck_assert_int_eq(open_job("auto"), -EINVAL);
    ck_assert_int_eq(lines, 1);
    ck_assert_ptr_nonnull(strstr(said, "MARROW_FORK_JOB="));
    ck_assert_ptr_nonnull(strstr(said, bad_variables[_i]));
}
END_TEST

START_TEST(fork_descriptor_must_be_open_and_ours)
{
    clean();
    setenv("MARROW_FORK_JOB", "1000:0:2:" KEY, 1);
    ck_assert_int_eq(open_job(NULL), -EBADF);
    ck_assert_ptr_nonnull(strstr(said, "descriptor 1000"));
    clean();
    setenv("MARROW_FORK_JOB", "0:0:2:" KEY, 1);
    ck_assert_int_eq(open_job(NULL), -EPROTO);
    ck_assert_ptr_nonnull(strstr(said, "descriptor 0"));
}
END_TEST

START_TEST(bare_program_is_a_job_of_one)
{
    clean();
    ck_assert_int_eq(open_job(NULL), 0);
    ck_assert_int_eq(open_job(""), 0);
    ck_assert_int_eq(open_job("auto"), 0);
    ck_assert_int_eq(open_job("single"), 0);
    ck_assert_int_eq(lines, 0);
}
END_TEST

START_TEST(unknown_bootstrap_is_named)
{
    clean();
    ck_assert_int_eq(open_job("banana"), -EINVAL);
    ck_assert_ptr_nonnull(strstr(said, "MARROW_BOOTSTRAP=banana"));
    clean();
    ck_assert_int_eq(open_job("fork"), -ENOTCONN);
    ck_assert_ptr_nonnull(strstr(said, "MARROW_FORK_JOB is not set"));
    clean();
    ck_assert_int_eq(open_job("pmix"), -ENOTCONN);
    ck_assert_ptr_nonnull(strstr(said, "PMIX_NAMESPACE is not set"));
}
END_TEST

static const char *const launchers[][2] = {
    { "SLURM_STEP_NUM_TASKS", "SLURM_PROCID" }, { "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK" },
    { "PMI_SIZE", "PMI_RANK" },                 { "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK" },
    { "FLUX_JOB_SIZE", "FLUX_TASK_RANK" },
};

START_TEST(silent_job_of_one_is_refused)
{
    const char *size = launchers[_i][0], *rank = launchers[_i][1];

    clean();
    setenv(size, "4", 1);
    setenv(rank, "0", 1);
    ck_assert_int_eq(open_job("auto"), -ENOTCONN);
    ck_assert_int_eq(lines, 1);
    ck_assert_ptr_nonnull(strstr(said, size));
    ck_assert_ptr_nonnull(strstr(said, "MARROW_BOOTSTRAP=single"));

    setenv(rank, "2", 1); /* the others fail too, but do not say it again */
    ck_assert_int_eq(open_job("auto"), -ENOTCONN);
    ck_assert_int_eq(lines, 1);

    ck_assert_int_eq(open_job("single"), 0); /* obeyed */
    setenv(size, "1", 1);
    ck_assert_int_eq(open_job("auto"), 0);
    setenv(size, "many", 1);
    ck_assert_int_eq(open_job("auto"), 0);
    setenv(size, "4", 1);
    unsetenv(rank); /* an allocation's shell is no member of a step */
    ck_assert_int_eq(open_job("auto"), 0);
    ck_assert_int_eq(lines, 1);
}
END_TEST

static int odd(const void *limit, int pe)
{
    return pe % 2 && pe < *(const int *)limit;
}

START_TEST(missing_pes_are_listed)
{
    char who[160];
    int limit = 4;

    ck_assert_int_eq(shmemi_boot_name_missing(100, odd, &limit, who, sizeof who), 2);
    ck_assert_str_eq(who, "PE 1, PE 3");
    limit = 100;
    ck_assert_int_eq(shmemi_boot_name_missing(100, odd, &limit, who, sizeof who), 50);
    ck_assert_str_eq(who, "PE 1, PE 3, PE 5, PE 7, PE 9, PE 11, PE 13, PE 15 and 42 more");
    limit = 0;
    ck_assert_int_eq(shmemi_boot_name_missing(100, odd, &limit, who, sizeof who), 0);
    ck_assert_str_eq(who, "");
    limit = 100;
    shmemi_boot_name_missing(100, odd, &limit, who, 12); /* cut, not overrun */
    ck_assert_uint_lt(strlen(who), 12);
}
END_TEST

START_TEST(single_exchanges_with_itself)
{
    struct shmemi_boot boot;
    int mine = 42, all = 0;

    clean();
    ck_assert_int_eq(shmemi_boot_open(&boot, "single", 0), 0);
    ck_assert_int_eq(boot.ops->allgather(&boot, &mine, sizeof mine, &all, 1), 0);
    ck_assert_int_eq(all, 42);
    ck_assert_int_eq(boot.ops->allgather(&boot, NULL, 0, NULL, 1), 0);
    ck_assert(boot.job_key[0] | boot.job_key[1]);
    boot.ops->close(&boot);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("boot");
    TCase *t = tcase_create("boot");
    SRunner *r;
    int failed;

    suite_add_tcase(s, t);
    tcase_add_test(t, fork_variable_is_parsed);
    tcase_add_loop_test(t, bad_fork_variable_is_refused, 0, sizeof bad_variables / sizeof bad_variables[0]);
    tcase_add_test(t, fork_descriptor_must_be_open_and_ours);
    tcase_add_test(t, bare_program_is_a_job_of_one);
    tcase_add_test(t, unknown_bootstrap_is_named);
    tcase_add_loop_test(t, silent_job_of_one_is_refused, 0, sizeof launchers / sizeof launchers[0]);
    tcase_add_test(t, missing_pes_are_listed);
    tcase_add_test(t, single_exchanges_with_itself);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
