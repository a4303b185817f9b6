/* SPDX-License-Identifier: BSD-3-Clause */
/* options.c - the command line of shmem-perf.  All PEs parse it, PE 0 says what is wrong with it. */
#include "perf.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const known_tests[] = {
    "memcpy",  "init",      "put",      "put_bw",  "get",       "get_bw",   "p",        "g",      "quiet",
    "fence",   "atomics",   "ptr",      "pwait",   "putsignal", "barrier",  "sync",     "reduce", "scan",
    "broadcast", "fcollect", "collect", "alltoall", "malloc",   "lock",     "contended",
};
#define N_TESTS (sizeof known_tests / sizeof known_tests[0])

static void usage(FILE *to)
{
    fprintf(to, "usage: oshrun -n N shmem-perf [option]...\n"
                "  --tests a,b     run only these\n"
                "  --min BYTES     smallest size (8)\n"
                "  --max BYTES     largest size (4M); suffixes K, M, G\n"
                "  --iters N       most samples for a row (100000)\n"
                "  --seconds S     about how long a row may take (0.1)\n"
                "  --pin           PE i on the i-th CPU, modulo their number\n"
                "  --csv, --json   for programs; default is a table\n"
                "  --help\n"
                "tests:");
    for (size_t i = 0; i < N_TESTS; i++)
        fprintf(to, " %s", known_tests[i]);
    fprintf(to, "\n");
}

static int parse_size(const char *text, size_t *out)
{
    char *end;
    unsigned shift = 0;
    unsigned long long v;

    errno = 0;
    v = strtoull(text, &end, 10);
    if (end == text || errno || *text == '-')
        return -EINVAL;
    if (*end == 'K' || *end == 'k')
        shift = 10;
    else if (*end == 'M' || *end == 'm')
        shift = 20;
    else if (*end == 'G' || *end == 'g')
        shift = 30;
    if (shift)
        end++;
    if (*end || v == 0 || v > (UINT64_C(1) << 40 >> shift))
        return -EINVAL;
    *out = (size_t)v << shift;
    return 0;
}

static bool list_has(const char *list, const char *name)
{
    size_t len = strlen(name);

    for (const char *p = list; p; p = strchr(p, ',')) {
        p += *p == ',';
        if (!strncmp(p, name, len) && (p[len] == ',' || p[len] == '\0'))
            return true;
    }
    return false;
}

bool perf_wanted(const char *test)
{
    return !perf.opt.tests || list_has(perf.opt.tests, test);
}

/* The first name in the list that is no test, or NULL. */
static const char *unknown_test(const char *list)
{
    static char name[64];
    const char *p = list;

    for (;;) {
        size_t len = strcspn(p, ","), i;

        snprintf(name, sizeof name, "%.*s", (int)(len < 63 ? len : 63), p);
        for (i = 0; i < N_TESTS && strcmp(name, known_tests[i]); i++)
            continue;
        if (i == N_TESTS)
            return name;
        if (!p[len])
            return NULL;
        p += len + 1;
    }
}

__attribute__((format(printf, 1, 2))) static int bad(const char *fmt, ...)
{
    va_list ap;

    if (perf.me == 0) {
        fputs("shmem-perf: ", stderr);
        va_start(ap, fmt);
        vfprintf(stderr, fmt, ap);
        va_end(ap);
        fputc('\n', stderr);
    }
    return 1 + EXIT_FAILURE;
}

static int bad_value(const char *option, const char *value)
{
    return bad("bad value for %s: \"%s\"", option, value);
}

static int help(FILE *to, int status)
{
    if (perf.me == 0)
        usage(to);
    return 1 + status;
}

static int take(int c, const char *arg, struct perf_options *o)
{
    char *end;
    size_t n;

    switch (c) {
    case 't':
        o->tests = arg;
        if (unknown_test(arg))
            return bad_value("--tests", unknown_test(arg));
        return 0;
    case 'm': return parse_size(arg, &o->min_bytes) ? bad_value("--min", arg) : 0;
    case 'M': return parse_size(arg, &o->max_bytes) ? bad_value("--max", arg) : 0;
    case 'i':
        if (parse_size(arg, &n) || n > 100000000)
            return bad_value("--iters", arg);
        o->iters = (long)n;
        return 0;
    case 's':
        o->seconds = strtod(arg, &end);
        return end == arg || *end || !(o->seconds > 0 && o->seconds < 1e6) ? bad_value("--seconds", arg) : 0;
    case 'p': o->pin = true; return 0;
    case 'c': o->format = PERF_CSV; return 0;
    case 'j': o->format = PERF_JSON; return 0;
    case 'h': return help(stdout, EXIT_SUCCESS);
    default: return help(stderr, EXIT_FAILURE);
    }
}

static bool any_size(const struct perf_options *o)
{
    size_t s = 8;

    while (s < o->min_bytes && s <= o->max_bytes)
        s = perf_next_size(s);
    return s <= o->max_bytes && o->min_bytes <= o->max_bytes;
}

int perf_parse(int argc, char **argv, struct perf_options *out)
{
    static const struct option longs[] = {
        { "tests", required_argument, NULL, 't' },   { "min", required_argument, NULL, 'm' },
        { "max", required_argument, NULL, 'M' },     { "iters", required_argument, NULL, 'i' },
        { "seconds", required_argument, NULL, 's' }, { "pin", no_argument, NULL, 'p' },
        { "csv", no_argument, NULL, 'c' },           { "json", no_argument, NULL, 'j' },
        { "help", no_argument, NULL, 'h' },          { NULL, 0, NULL, 0 },
    };
    int c, rc;

    *out = (struct perf_options){ .min_bytes = 8, .max_bytes = 4 << 20, .iters = 100000, .seconds = 0.1 };
    opterr = perf.me == 0;
    while ((c = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
        rc = take(c, optarg, out);
        if (rc)
            return rc;
    }
    if (optind < argc)
        return bad("unexpected argument \"%s\"", argv[optind]);
    if (!any_size(out))
        return bad("no size lies between --min %zu and --max %zu: they are 8, 64, 256, 1024 and so on, times 4", out->min_bytes,
                   out->max_bytes);
    return 0;
}
