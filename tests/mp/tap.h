/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tap.h - the frame of a multi-PE test: PE 0 prints one TAP stream, a point
 * passes when it held on every PE.
 *
 *     int main(void)
 *     {
 *         tap_init();                          // shmem_init and a watchdog
 *         tap_check(x == 3);                   // local: any PE, any number of times
 *         tap_check_eq(got, want);             // the same, and prints both
 *         tap_point("ring of %d", n);          // collective: closes the point
 *         tap_ok(x == 3, "name");              // check and point in one
 *         tap_skip("name", "why");             // collective
 *         return tap_done();                   // collective: plan, shmem_finalize, exit status
 *     }
 *
 * A test that calls shmem_init itself uses tap_attach() after it and
 * tap_report() instead of tap_done() before its own shmem_finalize.
 *
 * A PE on which a check failed also exits with status 1, so a failure is seen
 * even when the routines that carry the votes to PE 0 are at fault.
 *
 * Comments in the test's source tell tests/driver.sh how to run it:
 *
 *     run: n=1,2,3,4 launch=oshrun,mpirun timeout=60 env=NAME=value args=a,b
 *     dies: ARG | REGEX
 *
 * Each `run:` line is a set of runs; what it leaves out has the values shown
 * (no env, no args), and a source without such a line gets exactly these.
 * launch=bare runs the program with no launcher.  On several nodes (see driver.sh) the first `run:` line's timeout, env and
 * args hold, or those of a `nodes:` line; `nodes: no REASON` leaves these runs out, `nodes: some=no`
 * those of MARROW_TEST_NODES=some.  Each `dies:` line runs the program with ARG as its
 * argument: it must end by itself with a non-zero status and print a line that
 * matches REGEX (extended); `run:` lines then say with which n and launchers.
 */
#ifndef TAP_H
#define TAP_H

#include <shmem.h>

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TAP_MAX_PES 1024
#define TAP_SECONDS 60

#if defined(__GNUC__)
#define TAP_PRINTF(f, a) __attribute__((format(printf, f, a), unused))
#define TAP_UNUSED __attribute__((unused))
#else
#define TAP_PRINTF(f, a)
#define TAP_UNUSED
#endif

static int tap_votes[TAP_MAX_PES]; /* on PE 0: 1 passed, 2 failed, for the open point */
static int tap_me, tap_n;
static int tap_points;       /* closed so far */
static int tap_failed;       /* points that failed, known to PE 0 only */
static int tap_local_bad;    /* this PE: checks that failed in the open point */
static int tap_local_bads;   /* this PE: over all points */
static char tap_last[256] = "the start";

/* Only async-signal-safe calls: says where this PE stood and ends it. */
TAP_UNUSED static void tap_alarm(int sig)
{
    static const char text[] = "# a PE ran out of time; the last point that it passed: ";

    (void)sig;
    if (write(2, text, sizeof text - 1) < 0 || write(2, tap_last, strlen(tap_last)) < 0 ||
        write(2, "\n", 1) < 0)
        _exit(125);
    _exit(124);
}

/* After the test's own shmem_init.  TAP_TIMEOUT in the environment sets the watchdog's seconds. */
TAP_UNUSED static void tap_attach(void)
{
    const char *t = getenv("TAP_TIMEOUT");
    int seconds = t ? atoi(t) : TAP_SECONDS;

    setvbuf(stdout, NULL, _IOLBF, 0);
    signal(SIGALRM, tap_alarm);
    alarm((unsigned)(seconds > 0 ? seconds : TAP_SECONDS));
    tap_me = shmem_my_pe();
    tap_n = shmem_n_pes();
    if (tap_n > TAP_MAX_PES) {
        printf("Bail out! more than %d PEs\n", TAP_MAX_PES);
        exit(99);
    }
}

/* Do load and store lead from every PE to every other, as on one node? */
TAP_UNUSED static int tap_all_near(void)
{
    for (int pe = 0; pe < tap_n; pe++)
        if (!shmem_ptr(tap_votes, pe))
            return 0;
    return 1;
}

/* Is this one of many runs of the program, where less of everything will do? */
TAP_UNUSED static int tap_short(void)
{
    return getenv("TAP_SHORT") != NULL;
}

TAP_UNUSED static void tap_init(void)
{
    shmem_init();
    tap_attach();
}

/* Notes of any PE go to stderr, where they cannot break the stream. */
TAP_PRINTF(1, 2) static void tap_diag(const char *fmt, ...)
{
    char line[512];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(line, sizeof line, fmt, ap);
    va_end(ap);
    fprintf(stderr, "# PE %d: %s\n", tap_me, line);
}

TAP_UNUSED static int tap_check_at(int good, const char *file, int line, const char *what)
{
    if (!good) {
        if (tap_local_bad++ < 10)
            tap_diag("%s:%d: %s", file, line, what);
        tap_local_bads++;
    }
    return good;
}

#define tap_check(cond) tap_check_at(!!(cond), __FILE__, __LINE__, #cond)

TAP_UNUSED static int tap_check_eq_at(long long got, long long want, const char *file, int line,
                                      const char *what)
{
    char text[256];

    if (got == want)
        return 1;
    snprintf(text, sizeof text, "%s: got %lld, want %lld", what, got, want);
    return tap_check_at(0, file, line, text);
}

#define tap_check_eq(got, want) \
    tap_check_eq_at((long long)(got), (long long)(want), __FILE__, __LINE__, #got " == " #want)

/* Collective: nonzero on PE 0 when a PE's check failed in the open point; votes are cleared. */
TAP_UNUSED static int tap_vote(void)
{
    int bad = 0;

    shmem_int_p(&tap_votes[tap_me], tap_local_bad ? 2 : 1, 0);
    shmem_barrier_all();
    if (tap_me == 0) {
        for (int pe = 0; pe < tap_n; pe++) {
            if (tap_votes[pe] != 1) {
                bad = 1;
                tap_diag("PE %d %s", pe, tap_votes[pe] == 2 ? "says no" : "did not vote");
            }
            tap_votes[pe] = 0;
        }
    } else {
        bad = tap_local_bad != 0;
    }
    shmem_barrier_all();
    return bad;
}

TAP_PRINTF(1, 2) static void tap_point(const char *fmt, ...)
{
    char name[200];
    va_list ap;
    int bad;

    va_start(ap, fmt);
    vsnprintf(name, sizeof name, fmt, ap);
    va_end(ap);
    bad = tap_vote();
    tap_local_bad = 0;
    tap_points++;
    tap_failed += bad;
    snprintf(tap_last, sizeof tap_last, "%s", name);
    if (tap_me == 0)
        printf("%sok %d - %s\n", bad ? "not " : "", tap_points, name);
}

#define tap_ok(cond, ...)           \
    do {                            \
        tap_check(cond);            \
        tap_point(__VA_ARGS__);     \
    } while (0)

TAP_UNUSED static void tap_skip(const char *name, const char *why)
{
    tap_points++;
    if (tap_me == 0)
        printf("ok %d - %s # SKIP %s\n", tap_points, name, why);
}

/* The plan, and this PE's exit status.  A check after the last point is a failure too. */
TAP_UNUSED static int tap_report(void)
{
    if (tap_me == 0)
        printf("1..%d\n", tap_points);
    fflush(stdout);
    return tap_failed || tap_local_bads ? 1 : 0;
}

TAP_UNUSED static int tap_done(void)
{
    int status = tap_report();

    shmem_finalize();
    alarm(0);
    return status;
}

#endif
