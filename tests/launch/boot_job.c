/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * boot_job.c - a program that uses nothing of the library but a bootstrap: what launch_*.sh start.
 *
 * Usage: boot_job MODE [PE [CODE]]; PE is the one that misbehaves (default 1).
 *   exchange  exchanges of many sizes, twice in one process; PE 0 prints "exchanged N"
 *   never     PE ends with CODE and does not join; the others wait for it
 *   inside    PE joins, then ends with CODE before the exchange
 *   killed    PE joins, then gets SIGKILL before the exchange
 *   late      after an exchange PE comes 8 s late to one that waits 1 s
 *   abort     after an exchange PE ends the job with CODE; the others sleep
 *   leave     PE 1 of an exchange leaves the job, sleeps, and ends well
 *   time      PE 0 prints the microseconds of open plus one exchange, the slowest PE's
 *   sleep     all join and sleep CODE seconds; PE 0 says "joined" first
 */
#include "config.h"

#include "bootstrap/bootstrap.h"
#include "core/log.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The bootstraps need log.h and nothing else. */
int shmemi_log_threshold = SHMEMI_LOG_WARN;

void shmemi_log_write(enum shmemi_log_level level, const char *component, const char *fmt, ...)
{
    char line[1024];
    int n = snprintf(line, sizeof line, "[boot_job %s] ", component);
    va_list ap;

    (void)level;
    va_start(ap, fmt);
    n += vsnprintf(line + n, sizeof line - (size_t)n - 1, fmt, ap);
    va_end(ap);
    if (n > (int)sizeof line - 2)
        n = (int)sizeof line - 2;
    line[n++] = '\n';
    if (write(2, line, (size_t)n) < 0)
        _exit(9);
}

static struct shmemi_boot boot;

/* The PE by the launcher's word, before joining. */
static int early_pe(void)
{
    static const char *const vars[] = { "MARROW_PE", "PMIX_RANK" };

    for (size_t i = 0; i < sizeof vars / sizeof vars[0]; i++)
        if (getenv(vars[i]))
            return atoi(getenv(vars[i]));
    return 0;
}

static void join(void)
{
    const char *limit = getenv("MARROW_INIT_TIMEOUT");
    int rc = shmemi_boot_open(&boot, getenv("MARROW_BOOTSTRAP"), limit ? atoi(limit) : 0);

    if (rc) {
        fprintf(stderr, "open: %s\n", strerror(-rc));
        exit(3);
    }
}

static unsigned char byte_of(int pe, size_t i, int round)
{
    return (unsigned char)(pe * 7 + (int)i * 3 + round * 11 + 1);
}

static void exchange(size_t len, int round)
{
    size_t n = (size_t)boot.n_pes;
    unsigned char *mine = malloc(len + 1), *all = malloc(n * len + 1);
    int rc;

    for (size_t i = 0; i < len; i++)
        mine[i] = byte_of(boot.pe, i, round);
    all[n * len] = 0x5a;
    rc = boot.ops->allgather(&boot, mine, len, all, 30);
    if (rc) {
        fprintf(stderr, "allgather of %zu: %s\n", len, strerror(-rc));
        exit(4);
    }
    for (size_t pe = 0; pe < n; pe++)
        for (size_t i = 0; i < len; i++)
            if (all[pe * len + i] != byte_of((int)pe, i, round)) {
                fprintf(stderr, "PE %d: wrong byte %zu of PE %zu in round %d\n", boot.pe, i, pe, round);
                exit(5);
            }
    if (all[n * len] != 0x5a) {
        fprintf(stderr, "PE %d: wrote past the result\n", boot.pe);
        exit(6);
    }
    free(mine);
    free(all);
}

static void all_sizes(void)
{
    static const size_t sizes[] = { 1, 8, 0, 100, 4095, 4096, 4097, 70000, 3 };

    for (int again = 0; again < 2; again++) {
        join();
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
            exchange(sizes[i], (int)i + again);
        if (again == 1 && boot.pe == 0)
            printf("exchanged %d by %s key %d\n", boot.n_pes, boot.ops->name, boot.job_key[0] != 0);
        boot.ops->close(&boot);
    }
}

static int64_t now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void timed(void)
{
    int64_t start = now_us(), mine, all[1024], worst = 0;
    char card[256] = "", cards[256 * 1024];

    join();
    boot.ops->allgather(&boot, card, sizeof card, cards, 30);
    mine = now_us() - start;
    boot.ops->allgather(&boot, &mine, sizeof mine, all, 30);
    for (int pe = 0; pe < boot.n_pes; pe++)
        worst = all[pe] > worst ? all[pe] : worst;
    if (boot.pe == 0)
        printf("joined %d in %lld us\n", boot.n_pes, (long long)worst);
    boot.ops->close(&boot);
}

static void misbehave(const char *mode, int code)
{
    if (strcmp(mode, "never") == 0 || strcmp(mode, "inside") == 0)
        _exit(code);
    if (strcmp(mode, "killed") == 0)
        kill(getpid(), SIGKILL);
    if (strcmp(mode, "late") == 0)
        sleep(8);
    if (strcmp(mode, "abort") == 0)
        boot.ops->abort(&boot, code);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "exchange";
    int victim = argc > 2 ? atoi(argv[2]) : 1, code = argc > 3 ? atoi(argv[3]) : 0;
    char byte = 1, bytes[1024];
    int rc;

    alarm(60);
    if (strcmp(mode, "exchange") == 0) {
        all_sizes();
        return 0;
    }
    if (strcmp(mode, "time") == 0) {
        timed();
        return 0;
    }
    if (strcmp(mode, "never") == 0 && early_pe() == victim)
        misbehave(mode, code);
    join();
    /* Where nobody is missing, and where one alone is to be late however slowly the others start. */
    if (strcmp(mode, "abort") == 0 || strcmp(mode, "sleep") == 0 || strcmp(mode, "leave") == 0 || strcmp(mode, "late") == 0)
        exchange(64, 0);
    if (boot.pe == victim)
        misbehave(mode, code);
    if (strcmp(mode, "sleep") == 0) {
        if (boot.pe == 0) {
            printf("joined\n");
            fflush(stdout);
        }
        sleep((unsigned)code);
        return 0;
    }
    if (strcmp(mode, "abort") == 0) {
        sleep(30);
        return 7; /* the end should have come before */
    }
    if (strcmp(mode, "leave") == 0) {
        boot.ops->close(&boot);
        usleep(boot.pe == victim ? 500000 : 0);
        return 0;
    }
    rc = boot.ops->allgather(&boot, &byte, 1, bytes, strcmp(mode, "late") == 0 ? 1 : 20);
    if (rc) {
        fprintf(stderr, "PE %d: allgather: %s\n", boot.pe, strerror(-rc));
        return 8;
    }
    boot.ops->close(&boot);
    return 0;
}
