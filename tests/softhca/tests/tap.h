/* SPDX-License-Identifier: BSD-3-Clause */
/* Test Anything Protocol, as much as the C tests here need. */
#ifndef SOFTHCA_TESTS_TAP_H
#define SOFTHCA_TESTS_TAP_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

static int tap_number, tap_failures;

static inline bool tap_ok(bool good, const char *fmt, ...)
{
    va_list ap;

    printf("%sok %d - ", good ? "" : "not ", ++tap_number);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    putchar('\n');
    fflush(stdout);
    tap_failures += !good;
    return good;
}

/* Ends the test: prints the plan and returns the exit status. */
static inline int tap_done(void)
{
    printf("1..%d\n", tap_number);
    return tap_failures || !tap_number;
}

#endif
