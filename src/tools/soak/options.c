/* SPDX-License-Identifier: BSD-3-Clause */
/* options.c - the command line of shmem-soak.  All PEs parse it, PE 0 says what is wrong with it. */
#include "soak.h"

#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>

#define KIND_NAME(id, name) name,
const char *const soak_kind_names[SOAK_N_KINDS] = { SOAK_KINDS(KIND_NAME) };

static void usage(FILE *to)
{
    fprintf(to, "usage: oshrun -n N shmem-soak [option]...\n"
                "  --minutes M     stop after so long\n"
                "  --steps N       run N steps (1000 without --minutes)\n"
                "  --steps A,B     run the steps A to B - 1\n"
                "  --seed S        the same operations again (default: from the clock)\n"
                "  --ops a,b       only these kinds; -a,b: all but these\n"
                "  --size BYTES    most bytes of an operation (16K); suffixes K, M\n"
                "  --threads T     threads of a PE (1)\n"
                "  --log FILE      write the last operations to FILE.PE at the end\n"
                "  --ring N        remember the last N operations of a thread (1000)\n"
                "  --stall S       give up after S seconds without progress (120)\n"
                "  --device        device memory too\n"
                "  --help\n"
                "kinds:");
    for (size_t i = 0; i < SOAK_N_KINDS; i++)
        fprintf(to, " %s", soak_kind_names[i]);
    fprintf(to, "\n");
}

__attribute__((format(printf, 1, 2))) static int bad(const char *fmt, ...)
{
    va_list ap;

    if (soak.me == 0) {
        fputs("shmem-soak: ", stderr);
        va_start(ap, fmt);
        vfprintf(stderr, fmt, ap);
        va_end(ap);
        fputc('\n', stderr);
    }
    return 1 + EXIT_FAILURE;
}

/* A number from least to most; `end` null: all of the text. */
static int number(const char *text, long long least, long long most, long long *out, char **end_out)
{
    char *end;

    errno = 0;
    *out = strtoll(text, &end, 0);
    if (end == text || errno || *out < least || *out > most)
        return -EINVAL;
    if (end_out)
        *end_out = end;
    return !end_out && *end ? -EINVAL : 0;
}

static int take_kinds(const char *list, uint32_t *out)
{
    uint32_t bits = 0;
    bool but = *list == '-';
    size_t i, len;

    for (const char *p = list + but; *p; p += len + (p[len] == ',')) {
        len = strcspn(p, ",");
        for (i = 0; i < SOAK_N_KINDS; i++)
            if (strlen(soak_kind_names[i]) == len && !strncmp(p, soak_kind_names[i], len))
                break;
        if (i == SOAK_N_KINDS)
            return bad("unknown kind in --ops: \"%.*s\"", (int)len, p);
        bits |= 1u << i;
    }
    *out = but ? ~bits & (SOAK_BIT(SOAK_N_KINDS) - 1) : bits;
    return *out && bits ? 0 : bad("--ops names no kind, or leaves none");
}

static int take_steps(const char *arg, struct soak_options *o)
{
    long long a, b;
    char *end;

    if (number(arg, 0, 1LL << 60, &a, &end))
        return -EINVAL;
    if (*end == '\0') {
        o->from = 0;
        o->to = (long)a;
        return a > 0 ? 0 : -EINVAL;
    }
    if (*end != ',' || number(end + 1, a + 1, 1LL << 60, &b, NULL))
        return -EINVAL;
    o->from = (long)a;
    o->to = (long)b;
    return 0;
}

static int take_size(const char *arg, size_t *out)
{
    long long v;
    char *end;

    if (number(arg, 1, 1 << 30, &v, &end))
        return -EINVAL;
    if (*end == 'K' || *end == 'k')
        v <<= 10, end++;
    else if (*end == 'M' || *end == 'm')
        v <<= 20, end++;
    if (*end || v < 64 || v > 1 << 28)
        return -EINVAL;
    *out = (size_t)v;
    return 0;
}

static int take(int c, const char *arg, struct soak_options *o)
{
    static const char *const names[128] = {
        ['m'] = "--minutes", ['n'] = "--steps", ['s'] = "--seed", ['z'] = "--size", ['t'] = "--threads", ['r'] = "--ring", ['w'] = "--stall",
    };
    long long v = 0;
    char *end;
    int rc = 0;

    switch (c) {
    case 'm':
        o->minutes = strtod(arg, &end);
        rc = end == arg || *end || !(o->minutes > 0 && o->minutes < 1e6);
        break;
    case 'n': rc = take_steps(arg, o); break;
    case 's':
        errno = 0;
        o->seed = strtoull(arg, &end, 0);
        rc = end == arg || *end || errno;
        o->seeded = true;
        break;
    case 'o': return take_kinds(arg, &o->kinds);
    case 'z': rc = take_size(arg, &o->size); break;
    case 't': rc = number(arg, 1, SOAK_MOST_THREADS, &v, NULL); o->threads = (int)v; break;
    case 'l': o->log = arg; break;
    case 'r': rc = number(arg, 1, 100000000, &v, NULL); o->ring = (long)v; break;
    case 'w': rc = number(arg, 1, 1000000, &v, NULL); o->stall = (long)v; break;
    case 'd': o->device = true; break;
    default:
        if (soak.me == 0)
            usage(c == 'h' ? stdout : stderr);
        return 1 + (c == 'h' ? EXIT_SUCCESS : EXIT_FAILURE);
    }
    return rc ? bad("bad value for %s: \"%s\"", names[c], arg) : 0;
}

int soak_parse(int argc, char **argv, struct soak_options *out)
{
    static const struct option longs[] = {
        { "minutes", required_argument, NULL, 'm' }, { "steps", required_argument, NULL, 'n' },
        { "seed", required_argument, NULL, 's' },    { "ops", required_argument, NULL, 'o' },
        { "size", required_argument, NULL, 'z' },    { "threads", required_argument, NULL, 't' },
        { "log", required_argument, NULL, 'l' },     { "ring", required_argument, NULL, 'r' },
        { "stall", required_argument, NULL, 'w' },   { "device", no_argument, NULL, 'd' },
        { "help", no_argument, NULL, 'h' },          { NULL, 0, NULL, 0 },
    };
    int c, rc;

    *out = (struct soak_options){
        .size = 16 << 10, .threads = 1, .ring = 1000, .stall = 120, .kinds = SOAK_BIT(SOAK_N_KINDS) - 1,
    };
    optind = 1;
    opterr = soak.me == 0;
    while ((c = getopt_long(argc, argv, "h", longs, NULL)) != -1) {
        rc = take(c, optarg, out);
        if (rc)
            return rc;
    }
    if (optind < argc)
        return bad("unexpected argument \"%s\"", argv[optind]);
    if (!out->to)
        out->to = out->minutes > 0 ? 1L << 60 : 1000;
    return 0;
}

void soak_print_replay(FILE *to)
{
    const struct soak_options *o = &soak.opt;
    const char *sep = " --ops ";

    fprintf(to, "shmem-soak: again: -n %d shmem-soak --seed %llu --size %zu --threads %d%s", soak.n, (unsigned long long)o->seed, o->size,
            o->threads, o->device ? " --device" : "");
    for (size_t i = 0; i < SOAK_N_KINDS && o->kinds != SOAK_BIT(SOAK_N_KINDS) - 1; i++)
        if (o->kinds >> i & 1) {
            fprintf(to, "%s%s", sep, soak_kind_names[i]);
            sep = ",";
        }
    fprintf(to, " --steps %ld,%llu\n", o->from, (unsigned long long)soak.step + 1);
}
