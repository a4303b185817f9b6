/* SPDX-License-Identifier: BSD-3-Clause */
/* report.c - the rows of shmem-perf as a table for people, as CSV or as JSON. */
#include "perf.h"

#include <stdio.h>
#include <stdlib.h>

static bool first_row = true;

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Nearest rank: the smallest sample that at least this share of all do not exceed. */
static double rank(const double *sorted, long n, double share)
{
    long i = (long)(share * (double)n);

    if ((double)i < share * (double)n)
        i++;
    return sorted[i < 1 ? 0 : i - 1];
}

void perf_row_stats(struct perf_row *row, double *samples, long n)
{
    qsort(samples, (size_t)n, sizeof *samples, by_value);
    row->samples = n;
    row->min = samples[0];
    row->p50 = rank(samples, n, 0.5);
    row->p99 = rank(samples, n, 0.99);
    row->p999 = rank(samples, n, 0.999);
    row->max = samples[n - 1];
}

static const char *how_name(enum perf_how how)
{
    return how == PERF_BATCH ? "batch" : how == PERF_CALL ? "call" : "once";
}

static double rate_of(const struct perf_row *r)
{
    if (r->rate == PERF_NO_RATE || r->p50 <= 0)
        return 0;
    return (r->rate == PERF_MBYTES ? (double)r->bytes : 1.0) * 1e3 / r->p50;
}

static const char *rate_unit(enum perf_rate rate)
{
    return rate == PERF_MBYTES ? "MB/s" : rate == PERF_MOPS ? "Mop/s" : "";
}

/* Four digits that matter, aligned. */
static void cell(double v, int width)
{
    if (v < 100)
        printf(" %*.2f", width, v);
    else if (v < 1000)
        printf(" %*.1f", width, v);
    else
        printf(" %*.0f", width, v);
}

static void size_text(size_t bytes, char *buf, size_t len)
{
    if (bytes == 0)
        snprintf(buf, len, "-");
    else if (bytes % (1 << 20) == 0)
        snprintf(buf, len, "%zuM", bytes >> 20);
    else if (bytes % (1 << 10) == 0)
        snprintf(buf, len, "%zuK", bytes >> 10);
    else
        snprintf(buf, len, "%zu", bytes);
}

void perf_report_begin(double ruler_ns)
{
    char name[SHMEM_MAX_NAME_LEN];
    int major, minor;

    shmem_info_get_name(name);
    shmem_info_get_version(&major, &minor);
    if (perf.opt.format == PERF_JSON) {
        printf("{\"library\": \"%s\", \"version\": \"%d.%d\", \"pes\": %d, \"clock_ns\": %.2f, "
               "\"ruler_start_ns\": %.2f,\n \"rows\": [\n",
               name, major, minor, perf.n_pes, perf.clock_ns, ruler_ns);
    } else if (perf.opt.format == PERF_CSV) {
        printf("# library %s\n# version %d.%d\n# pes %d\n# clock_ns %.2f\n# ruler_start_ns %.2f\n", name, major, minor,
               perf.n_pes, perf.clock_ns, ruler_ns);
        printf("test,bytes,how,samples,batch,min_ns,p50_ns,p99_ns,p999_ns,max_ns,rate,rate_unit,floor_ns,ratio\n");
    } else {
        printf("%s, OpenSHMEM %d.%d, %d PEs\n", name, major, minor, perf.n_pes);
        printf("clock: one reading costs %.1f ns, which rows marked \"call\" include\n", perf.clock_ns);
        printf("ruler: a cache line takes %.1f ns one way between PE 0 and 1 now\n", ruler_ns);
        printf("ns for one operation; batch: mean of a batch of some 20 us, call: each call timed\n\n");
        printf("%-18s %5s %-5s %7s %9s %9s %9s %9s %10s %9s       %9s %6s\n", "test", "bytes", "how", "samples", "min",
               "p50", "p99", "p99.9", "max", "rate", "floor", "ratio");
    }
    fflush(stdout);
}

static void table_row(const struct perf_row *r, double ratio)
{
    char size[32];

    size_text(r->bytes, size, sizeof size);
    printf("%-18s %5s %-5s %7ld", r->test, size, how_name(r->how), r->samples);
    cell(r->min, 9);
    cell(r->p50, 9);
    cell(r->p99, 9);
    cell(r->p999, 9);
    cell(r->max, 10);
    if (r->rate)
        cell(rate_of(r), 9);
    else
        printf(" %9s", "");
    printf(" %-5s", rate_unit(r->rate));
    if (r->floor > 0) {
        cell(r->floor, 9);
        printf(" %6.2f", ratio);
    }
    printf("\n");
}

void perf_report_row(const struct perf_row *r)
{
    double ratio = r->floor > 0 ? r->p50 / r->floor : 0;

    if (perf.opt.format == PERF_CSV) {
        printf("%s,%zu,%s,%ld,%ld,%.2f,%.2f,%.2f,%.2f,%.2f,%.2f,%s,%.2f,%.3f\n", r->test, r->bytes, how_name(r->how),
               r->samples, r->batch, r->min, r->p50, r->p99, r->p999, r->max, rate_of(r), rate_unit(r->rate), r->floor,
               ratio);
    } else if (perf.opt.format == PERF_JSON) {
        printf("%s  {\"test\": \"%s\", \"bytes\": %zu, \"how\": \"%s\", \"samples\": %ld, \"batch\": %ld, "
               "\"min_ns\": %.2f, \"p50_ns\": %.2f, \"p99_ns\": %.2f, \"p999_ns\": %.2f, \"max_ns\": %.2f",
               first_row ? "" : ",\n", r->test, r->bytes, how_name(r->how), r->samples, r->batch, r->min, r->p50, r->p99,
               r->p999, r->max);
        if (r->rate)
            printf(", \"rate\": %.2f, \"rate_unit\": \"%s\"", rate_of(r), rate_unit(r->rate));
        if (r->floor > 0)
            printf(", \"floor_ns\": %.2f, \"ratio\": %.3f", r->floor, ratio);
        printf("}");
    } else {
        table_row(r, ratio);
    }
    first_row = false;
    fflush(stdout);
}

void perf_report_end(double ruler_ns)
{
    if (perf.opt.format == PERF_JSON)
        printf("\n ],\n \"ruler_end_ns\": %.2f}\n", ruler_ns);
    else if (perf.opt.format == PERF_CSV)
        printf("# ruler_end_ns %.2f\n", ruler_ns);
    else
        printf("\nruler: %.1f ns one way now\n", ruler_ns);
    fflush(stdout);
}
