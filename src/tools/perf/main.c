/* SPDX-License-Identifier: BSD-3-Clause */
/* main.c - shmem-perf: what an OpenSHMEM library costs on this machine.  Only public calls. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "perf.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUF_MOST ((size_t)16 << 20)

struct perf perf;

/* PE i on the i-th of the CPUs that it may use, modulo their number; nothing when the launcher has bound it to one. */
static void pin(void)
{
    cpu_set_t set, one;
    int n, nth, cpu;

    if (sched_getaffinity(0, sizeof set, &set))
        return;
    n = CPU_COUNT(&set);
    if (n < 2)
        return;
    nth = perf.me % n;
    for (cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &set) && nth-- == 0)
            break;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (sched_setaffinity(0, sizeof one, &one))
        fprintf(stderr, "shmem-perf: PE %d: cannot run on CPU %d only: %m\n", perf.me, cpu);
}

/* Symmetric memory, less of it when the heap is small. */
static int buffers_open(void)
{
    size_t len = perf.opt.max_bytes * (size_t)perf.n_pes;

    if (len > BUF_MOST)
        len = BUF_MOST;
    if (len < perf.opt.max_bytes)
        len = perf.opt.max_bytes;
    perf.buf_len = len;
    perf.ctl = shmem_align(64, sizeof *perf.ctl);
    perf.samples = shmem_malloc((size_t)perf.opt.iters * sizeof *perf.samples);
    perf.src = shmem_align(4096, len);
    perf.dst = shmem_align(4096, len);
    perf.local = aligned_alloc(4096, (perf.opt.max_bytes + 4095) & ~(size_t)4095);
    if (!perf.ctl || !perf.samples || !perf.src || !perf.dst || !perf.local) {
        if (perf.me == 0)
            fprintf(stderr,
                    "shmem-perf: the symmetric heap is too small for two buffers of %zu bytes: "
                    "set SHMEM_SYMMETRIC_SIZE, or lower --max\n",
                    len);
        return -1;
    }
    memset(perf.ctl, 0, sizeof *perf.ctl);
    memset(perf.samples, 0, (size_t)perf.opt.iters * sizeof *perf.samples);
    memset(perf.src, 1, len);
    memset(perf.dst, 2, len);
    memset(perf.local, 3, perf.opt.max_bytes);
    shmem_barrier_all();
    return 0;
}

/* The slowest PE's shmem_init. */
static void report_init(double mine)
{
    struct perf_row row = { .test = "init", .how = PERF_ONCE, .batch = 1 };

    perf.ctl->init_ns = mine;
    shmem_barrier_all();
    if (perf.me == 0) {
        for (int pe = 0; pe < perf.n_pes; pe++)
            shmem_getmem(&perf.samples[0] + (pe < perf.opt.iters ? pe : 0), &perf.ctl->init_ns, sizeof(double), pe);
        perf_row_stats(&row, perf.samples, perf.n_pes < perf.opt.iters ? perf.n_pes : perf.opt.iters);
        row.p50 = row.p99 = row.p999 = row.max;
        perf_report_row(&row);
    }
    shmem_barrier_all();
}

static void run_all(double init_ns)
{
    double ruler = perf_ruler();

    if (perf.me == 0)
        perf_report_begin(ruler);
    if (perf_wanted("init"))
        report_init(init_ns);
    perf_run_rma();
    perf_run_amo();
    perf_run_p2p(ruler);
    perf_run_sync(ruler);
    perf_run_coll(ruler);
    perf_run_misc();
    ruler = perf_ruler();
    if (perf.me == 0)
        perf_report_end(ruler);
}

int main(int argc, char **argv)
{
    double init_ns = perf_now();
    int rc;

    shmem_init();
    init_ns = perf_now() - init_ns;
    perf.me = shmem_my_pe();
    perf.n_pes = shmem_n_pes();
    perf.peer = perf.n_pes > 1 ? 1 : 0;
    rc = perf_parse(argc, argv, &perf.opt);
    if (rc) {
        shmem_finalize();
        return rc - 1;
    }
    if (perf.opt.pin)
        pin();
    perf.clock_ns = perf_clock_overhead();
    if (buffers_open())
        shmem_global_exit(EXIT_FAILURE);
    run_all(init_ns);
    shmem_finalize();
    return EXIT_SUCCESS;
}
