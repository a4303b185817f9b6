/* SPDX-License-Identifier: BSD-3-Clause */
/* nic_job.c - processes, barrier, start-up and transfers of a job on the NIC module alone. */
#include "config.h"

#include "nic_job.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int my_pe = -1;

static void say(const char *what, const char *fmt, va_list ap)
{
    char line[1600];
    int n = snprintf(line, sizeof line, "# PE %d: %s", my_pe, what);

    n += vsnprintf(line + n, sizeof line - (size_t)n - 1, fmt, ap);
    if (n > (int)sizeof line - 2)
        n = (int)sizeof line - 2;
    line[n++] = '\n';
    if (write(STDERR_FILENO, line, (size_t)n) < 0)
        _exit(1);
}

void job_die(const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    say("", fmt, ap);
    va_end(ap);
    _exit(1);
}

bool job_check(struct job *job, bool good, const char *fmt, ...)
{
    va_list ap;

    if (good)
        return true;
    __atomic_fetch_add(&job->board->failed, 1, __ATOMIC_RELAXED);
    va_start(ap, fmt);
    say("wrong: ", fmt, ap);
    va_end(ap);
    return false;
}

static int log_level(void)
{
    const char *text = getenv("NIC_JOB_LOG");

    return text ? atoi(text) : 1;
}

static bool log_on(int level)
{
    return level <= log_level();
}

static void log_line(int level, const char *component, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static void log_line(int level, const char *component, const char *fmt, ...)
{
    char what[64];
    va_list ap;

    snprintf(what, sizeof what, "log %d %s: ", level, component);
    va_start(ap, fmt);
    say(what, fmt, ap);
    va_end(ap);
}

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

void job_barrier(struct job *job)
{
    uint64_t want = ++job->barriers * (uint64_t)job->n;
    double end = seconds() + JOB_SECONDS;

    __atomic_fetch_add(&job->board->arrived, 1, __ATOMIC_ACQ_REL);
    while (__atomic_load_n(&job->board->arrived, __ATOMIC_ACQUIRE) < want) {
        usleep(100);
        if (seconds() > end)
            job_die("barrier %llu is not complete", (unsigned long long)job->barriers);
    }
}

static long number(const char *name, long otherwise)
{
    const char *text = getenv(name);

    return text ? strtol(text, NULL, 0) : otherwise;
}

static void configure(struct job *job)
{
    const char *transport = getenv("MARROW_TRANSPORT");
    struct shmemi_nic_config *c = &job->config;

    c->my_pe = c->my_local = job->me;
    c->n_pes = c->n_local = job->n;
    c->want = !transport || !strcmp(transport, "auto") ? SHMEMI_NIC_AUTO
              : !strcmp(transport, "proxy")            ? SHMEMI_NIC_VERBS
                                                       : SHMEMI_NIC_MLX5;
    c->strict = number("MARROW_STRICT", 0);
    c->device_list = getenv("MARROW_HCA_LIST");
    c->rails = (int)number("MARROW_RAILS", 0);
    c->gid_index = (int)number("MARROW_IB_GID_INDEX", -1);
    c->timeout = (int)number("MARROW_IB_TIMEOUT", 14);
    c->retry_count = (int)number("MARROW_IB_RETRY", 7);
    c->queue_depth = (int)number("MARROW_QUEUE_DEPTH", 128);
    c->connect_timeout_ns = (uint64_t)number("MARROW_CONNECT_TIMEOUT", 20) * 1000000000u;
    memcpy(c->secret, "sixteen letters!", sizeof c->secret);
    c->log_on = log_on;
    c->log = log_line;
}

int job_open(struct job *job)
{
    char why[512];

    configure(job);
    if (shmemi_nic_load(getenv("MARROW_MODULE_DIR"), &job->module, why, sizeof why))
        job_die("%s", why);
    return job->module->open(&job->config, &job->nic);
}

static unsigned char *pages(size_t len)
{
    void *p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED)
        job_die("no memory");
    return p;
}

void job_start(struct job *job)
{
    job->heap = pages(JOB_HEAP);
    job->bounce = pages(JOB_BOUNCE);
    job->queues = (struct shmemi_nic_queue *)(void *)pages(sizeof *job->queues * (size_t)job->n);
    if (job->module->mem_register(job->nic, job->heap, JOB_HEAP, &job->heap_key)
        || job->module->mem_register(job->nic, job->bounce, JOB_BOUNCE, &job->bounce_key))
        job_die("memory is not registered");
    job->board->heap[job->me] = (uintptr_t)job->heap;
    job->board->rkey[job->me] = job->heap_key.rkey;
    job->module->card(job->nic, job->board->cards[job->me]);
    job_barrier(job);
    if (job->module->start(job->nic, (const unsigned char (*)[SHMEMI_NIC_CARD_BYTES])job->board->cards))
        job_die("the service does not start");
}

void job_connect(struct job *job, int pe, bool shared)
{
    int status = job->module->queue_open(job->nic, pe, shared ? SHMEMI_NIC_SHARED : 0, NULL, &job->queues[pe]);

    if (status)
        job_die("no queue to PE %d: %s", pe, strerror(-status));
}

void job_close(struct job *job)
{
    for (int pe = 0; pe < job->n; pe++) {
        if (job->queues[pe].priv)
            job->module->queue_close(&job->queues[pe]);
    }
    job->module->mem_deregister(job->nic, &job->heap_key);
    job->module->mem_deregister(job->nic, &job->bounce_key);
    job->module->close(job->nic);
}

int job_run(int n, int (*pe_main)(struct job *job))
{
    struct job job = { .n = n };
    pid_t pids[JOB_MAX_PES];
    int failed = 0, status;

    job.board = (struct job_board *)(void *)pages(sizeof *job.board);
    for (int i = 0; i < n; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            job.me = my_pe = i;
            alarm(2 * JOB_SECONDS);
            status = pe_main(&job);
            _exit(status || job.board->failed);
        }
    }
    for (int i = 0; i < n; i++)
        failed += pids[i] < 0 || waitpid(pids[i], &status, 0) < 0 || status != 0;
    munmap(job.board, sizeof *job.board);
    return failed;
}

/* ---- transfers ---- */

static bool mlx5(const struct job *job)
{
    return job->nic->kind == SHMEMI_NIC_MLX5;
}

static enum shmemi_sq_mode mode(const struct shmemi_nic_queue *q)
{
    return q->shared ? SHMEMI_SQ_SHARED : SHMEMI_SQ_PRIVATE;
}

int64_t job_write(struct job *job, int pe, uint64_t offset, const void *from, uint32_t len, int flags)
{
    struct shmemi_nic_queue *q = &job->queues[pe];
    uint64_t to = job->board->heap[pe] + offset;
    uint32_t rkey = job->board->rkey[pe];

    if (!mlx5(job))
        return job->module->write(q, to, rkey, from, job->bounce_key.lkey[q->nic->rail], len, flags);
    return (int64_t)shmemi_sq_write(&q->sq, mode(q), to, shmemi_be32_of(rkey), (uintptr_t)from,
                                    shmemi_be32_of(job->bounce_key.lkey[q->nic->rail]), len, flags);
}

int64_t job_read(struct job *job, int pe, uint64_t offset, void *to, uint32_t len, int flags)
{
    struct shmemi_nic_queue *q = &job->queues[pe];
    uint64_t from = job->board->heap[pe] + offset;
    uint32_t rkey = job->board->rkey[pe];

    if (!mlx5(job))
        return job->module->read(q, from, rkey, to, job->bounce_key.lkey[q->nic->rail], len, flags);
    return (int64_t)shmemi_sq_read(&q->sq, mode(q), from, shmemi_be32_of(rkey), (uintptr_t)to,
                                   shmemi_be32_of(job->bounce_key.lkey[q->nic->rail]), len, flags);
}

int64_t job_atomic(struct job *job, int pe, uint64_t offset, uint64_t operand, const uint64_t *compare, uint64_t *old)
{
    struct shmemi_nic_queue *q = &job->queues[pe];
    uint64_t at = job->board->heap[pe] + offset;
    uint32_t rkey = job->board->rkey[pe];

    if (!mlx5(job))
        return job->module->atomic(q, at, rkey, operand, compare, old, job->bounce_key.lkey[q->nic->rail], 0);
    return (int64_t)shmemi_sq_amo(&q->sq, mode(q), compare ? SHMEMI_SQ_CSWAP : SHMEMI_SQ_FETCH_ADD, 8, at,
                                  shmemi_be32_of(rkey), operand, compare ? *compare : 0, (uintptr_t)old,
                                  shmemi_be32_of(job->bounce_key.lkey[q->nic->rail]), 0);
}

static int poll_once(struct job *job, struct shmemi_nic_queue *q, uint64_t ticket, bool *done)
{
    uint64_t so_far;

    if (mlx5(job)) {
        if (shmemi_sq_poll(&q->sq))
            return -EIO;
        *done = shmemi_sq_is_done(&q->sq, ticket);
        return 0;
    }
    if (job->module->poll(q, &so_far))
        return -EIO;
    *done = so_far >= ticket;
    return 0;
}

int job_quiet(struct job *job, int pe)
{
    struct shmemi_nic_queue *q = &job->queues[pe];
    double end = seconds() + JOB_SECONDS;
    uint64_t ticket = 0;
    bool done = false;
    int status = 0;

    if (mlx5(job)) {
        ticket = shmemi_sq_ring(&q->sq, mode(q));
    } else {
        /* An empty write behind all others: its ticket covers them. */
        int64_t last = job->module->write(q, job->board->heap[pe], job->board->rkey[pe], NULL, 0, 0, 0);

        if (last < 0)
            return -EIO;
        ticket = (uint64_t)last;
    }
    while (!status && !done) {
        status = poll_once(job, q, ticket, &done);
        if (!done)
            sched_yield();
        if (seconds() > end)
            return -ETIMEDOUT;
    }
    return status;
}
