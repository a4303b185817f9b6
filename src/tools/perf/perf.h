/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * perf.h - what the parts of shmem-perf share: options, the job, the ways to
 * measure, and the rows of the report.
 *
 * How a row was measured is part of the row:
 *   batch  mean of a batch of calls that lasts some 20 us, so that the clock
 *          does not count; percentiles are over batches
 *   call   each call between two readings of the clock: includes one reading
 *   once   a single figure
 * All figures are in ns for one operation.
 */
#ifndef PERF_H
#define PERF_H

#include "compat.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum perf_format { PERF_TABLE, PERF_CSV, PERF_JSON };
enum perf_how { PERF_BATCH, PERF_CALL, PERF_ONCE };
enum perf_rate { PERF_NO_RATE, PERF_MBYTES, PERF_MOPS };

struct perf_options {
    enum perf_format format;
    size_t min_bytes, max_bytes;
    long iters;     /* most samples for a row */
    double seconds; /* about how long a row may take */
    bool pin;
    const char *tests; /* comma separated, NULL: all */
};

/* Symmetric words; each on a cache line of its own. */
struct perf_ctl {
    long agreed __attribute__((aligned(64)));
    long word __attribute__((aligned(64))); /* atomics, p, g */
    long flag __attribute__((aligned(64))); /* p and wait */
    uint64_t signal __attribute__((aligned(64)));
    long lock __attribute__((aligned(64)));
    double init_ns __attribute__((aligned(64)));
};

struct perf {
    struct perf_options opt;
    int me, n_pes;
    int peer;     /* target of PE 0's one-sided calls: PE 1, or itself when alone */
    double clock_ns;
    struct perf_ctl *ctl;
    char *src, *dst; /* symmetric, buf_len bytes each */
    char *local;     /* private, opt.max_bytes */
    size_t buf_len;
    double *samples; /* symmetric, opt.iters of them */
};
extern struct perf perf;

/* Runs the operation n times on `bytes` bytes. */
typedef void perf_fn(size_t bytes, long n);

/* options.c */
int perf_parse(int argc, char **argv, struct perf_options *out); /* 0, or 1 + exit status to leave with */
bool perf_wanted(const char *test);

/* measure.c: all are collective; PE 0 adds the row */
double perf_now(void);
double perf_clock_overhead(void);
long perf_agree(long value_of_pe0);
double perf_floor(const char *test, size_t bytes, perf_fn *fn); /* also the row's p50, on PE 0 */
void perf_one_sided(const char *test, size_t bytes, perf_fn *fn, double floor, enum perf_rate rate);
void perf_pingpong(const char *test, size_t bytes, perf_fn *fn, double floor); /* fn: n round trips of PE 0 and 1 */
void perf_all_batch(const char *test, size_t bytes, perf_fn *fn, double floor);
void perf_all_calls(const char *test, perf_fn *fn, double floor);
void perf_collective(const char *test, size_t bytes, perf_fn *fn, double floor); /* slowest PE, entered after a barrier */
void perf_contended(const char *test, size_t bytes, perf_fn *fn); /* all PEs at once: ns between two of the job's */
size_t perf_next_size(size_t bytes); /* 8, 64, 256, 1 Ki, ... */
#define PERF_FOR_SIZES(s) \
    for (size_t s = 8; s <= perf.opt.max_bytes; s = perf_next_size(s)) \
        if (s >= perf.opt.min_bytes)

/* report.c */
struct perf_row {
    const char *test;
    size_t bytes;
    enum perf_how how;
    long samples, batch;
    double min, p50, p99, p999, max;
    double floor; /* ns, 0: none known */
    enum perf_rate rate;
};
void perf_report_begin(double ruler_ns);
void perf_report_row(const struct perf_row *row);
void perf_report_end(double ruler_ns);
/* Sorts the samples and fills min to max. */
void perf_row_stats(struct perf_row *row, double *samples, long n);

/* the tests */
double perf_ruler(void); /* one way of a cache line between PE 0 and 1, 0 when it cannot be measured */
void perf_run_rma(void);
void perf_run_amo(void);
void perf_run_p2p(double ruler);
void perf_run_sync(double ruler);
void perf_run_coll(double ruler);
void perf_run_misc(void);
double perf_copy_floor(size_t bytes); /* ns of a memcpy to the peer, measured by perf_run_rma(); 0: not measured */

#endif
