/* SPDX-License-Identifier: BSD-3-Clause */
/* log.c - the last operations of each thread, how a mismatch ends the job, and the thread that sees a run stand still. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "soak.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t failing = PTHREAD_MUTEX_INITIALIZER;

double soak_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

struct soak_entry *soak_begin(struct soak_thread *t, const struct soak_op *op)
{
    struct soak_entry *e = &t->ring[t->n_entries % (uint64_t)soak.opt.ring];

    *e = (struct soak_entry){ .step = soak.step, .ns = (soak_now() - soak.started) * 1e9, .op = *op };
    t->counts[op->kind]++;
    __atomic_store_n(&t->n_entries, t->n_entries + 1, __ATOMIC_RELEASE); /* pairs with watch */
    return e;
}

static const char *amo_name(int sub)
{
    static const char *const names[] = { "fetch", "swap", "compare_swap", "fetch_inc", "fetch_add", "fetch_and", "fetch_or", "fetch_xor",
                                         "set", "inc", "add", "and", "or", "xor", "compare_swap loop", "?" };

    return names[sub & SOAK_AMO_MASK];
}

void soak_describe(char *text, size_t size, const struct soak_op *op)
{
    const char *kind = soak_kind_names[op->kind], *region = soak_region_names[op->region];

    switch (op->kind) {
    case SOAK_FENCE:
    case SOAK_QUIET: snprintf(text, size, "%s of context %d", kind, op->ctx); break;
    case SOAK_LOCK: snprintf(text, size, "%s %u, its counter on PE %d", kind, op->off, op->pe); break;
    case SOAK_OWN:
    case SOAK_OWN_NBI:
    case SOAK_SHARED:
        snprintf(text, size, "%s %s, %d bits, word %u%s, %s of PE %d, context %d, value 0x%" PRIx64 " condition 0x%" PRIx64, kind,
                 amo_name(op->sub), op->sub & SOAK_AMO_32 ? 32 : 64, op->off, op->sub & SOAK_AMO_HIGH ? " (upper half)" : "", region, op->pe,
                 op->ctx, op->value, op->cond);
        break;
    case SOAK_IPUT:
    case SOAK_IBPUT:
    case SOAK_IGET:
        snprintf(text, size, "%s of %u elements of %u x %d bytes, strides %u there, %u here, offset %u, %s of PE %d, context %d", kind,
                 op->count, op->word, op->sub, op->there, op->here, op->off, region, op->pe, op->ctx);
        break;
    case SOAK_SIGNAL:
    case SOAK_SIGNAL_NBI:
        snprintf(text, size, "%s of %u bytes at offset %u, signal %s of 0x%" PRIx64 " to %sword %u, %s of PE %d, context %d", kind, op->len,
                 op->off, op->sub ? "add" : "set", op->value, op->word & SOAK_SHARED_SIG ? "shared " : "", op->word & 0xff, region, op->pe,
                 op->ctx);
        break;
    default:
        snprintf(text, size, "%s of %u bytes at offset %u, %s of PE %d, context %d", kind, op->len, op->off, region, op->pe, op->ctx);
    }
}

static void write_entry(FILE *f, const struct soak_thread *t, const struct soak_entry *e)
{
    char text[400];

    soak_describe(text, sizeof text, &e->op);
    fprintf(f, "%.0f thread %d step %" PRIu64 " %s%s\n", e->ns, t->id, e->step, text, e->done ? "" : " (not ended)");
}

/* False: not possible, and said. */
static bool write_to(const char *name)
{
    FILE *f = fopen(name, "w");

    if (!f) {
        fprintf(stderr, "shmem-soak: PE %d: cannot write %s: %m\n", soak.me, name);
        return false;
    }
    fprintf(f, "# shmem-soak, PE %d of %d, seed %" PRIu64 ": ns since the start, thread, step, operation\n", soak.me, soak.n, soak.opt.seed);
    for (int i = 0; soak.threads && i < soak.opt.threads; i++) {
        struct soak_thread *t = &soak.threads[i];
        uint64_t n = t->n_entries, ring = (uint64_t)soak.opt.ring;

        for (uint64_t k = n > ring ? n - ring : 0; t->ring && k < n; k++)
            write_entry(f, t, &t->ring[k % ring]);
    }
    fclose(f);
    return true;
}

/* On failure without --log, into the current folder. */
void soak_write_log(void)
{
    char name[4096];

    snprintf(name, sizeof name, "%s.%d", soak.opt.log ? soak.opt.log : "shmem-soak.log", soak.me);
    if (write_to(name))
        fprintf(stderr, "shmem-soak: PE %d: last operations in %s\n", soak.me, name);
}

void soak_fail(const struct soak_thread *t, const struct soak_op *op, const char *fmt, ...)
{
    char text[1024], what[400] = "";
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (op)
        soak_describe(what, sizeof what, op);
    pthread_mutex_lock(&failing); /* for good: the first one speaks */
    fprintf(stderr, "shmem-soak: PE %d%s: step %" PRIu64 ": %s%s%s\n", soak.me, t ? "" : ", its memory", soak.step, text, op ? ": " : "",
            what);
    soak_print_replay(stderr);
    soak_write_log();
    fflush(NULL);
    shmem_global_exit(1);
    _exit(1);
}

/* Where everyone stands, when nobody has moved for too long. */
static void stalled(void)
{
    char text[400];

    fprintf(stderr, "shmem-soak: PE %d: step %" PRIu64 ": no progress for %ld s\n", soak.me, soak.step, soak.opt.stall);
    for (int i = 0; i < soak.opt.threads; i++) {
        struct soak_thread *t = &soak.threads[i];
        struct soak_entry *e = &t->ring[(t->n_entries - 1) % (uint64_t)soak.opt.ring];

        if (!t->n_entries)
            continue;
        soak_describe(text, sizeof text, &e->op);
        fprintf(stderr, "shmem-soak: PE %d: thread %d %s %s\n", soak.me, i, e->done ? "has ended" : "is in", text);
    }
    soak_print_replay(stderr);
    soak_write_log();
    fflush(NULL);
    _exit(3);
}

static pthread_mutex_t watching = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t watch_over = PTHREAD_COND_INITIALIZER;
static pthread_t watcher;
static bool watched;

/* A second, or until the run is over. */
static bool second(void)
{
    struct timespec until;
    bool on;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec++;
    pthread_mutex_lock(&watching);
    if (watched)
        pthread_cond_timedwait(&watch_over, &watching, &until);
    on = watched;
    pthread_mutex_unlock(&watching);
    return on;
}

static void *watch(void *arg)
{
    uint64_t seen = 0, now;
    double since = soak_now();

    (void)arg;
    while (second()) {
        now = __atomic_load_n(&soak.step, __ATOMIC_RELAXED);
        for (int i = 0; i < soak.opt.threads; i++)
            now += __atomic_load_n(&soak.threads[i].n_entries, __ATOMIC_ACQUIRE); /* pairs with soak_begin */
        if (now != seen)
            since = soak_now();
        seen = now;
        if (soak_now() - since > (double)soak.opt.stall)
            stalled();
    }
    return NULL;
}

/* The thread makes no call of the library. */
void soak_watch(void)
{
    watched = true; /* before the thread looks */
    watched = pthread_create(&watcher, NULL, watch, NULL) == 0;
}

void soak_watch_end(void)
{
    if (!watched)
        return;
    pthread_mutex_lock(&watching);
    watched = false;
    pthread_cond_signal(&watch_over);
    pthread_mutex_unlock(&watching);
    pthread_join(watcher, NULL);
}
