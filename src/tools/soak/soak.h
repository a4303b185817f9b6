/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * soak.h - what the parts of shmem-soak share: options, the job's memory and pictures of it, threads, and how a failure ends it.
 *
 * A step is: all threads of all PEs carry out their plans, a barrier, every PE draws what all plans make of its memory (the
 * shadow) and compares, a sync.  Other kinds of steps bring their own checks.
 */
#ifndef SOAK_H
#define SOAK_H

#include "plan.h"

#include <shmem.h>

#include <shmemx.h>
#include <stdbool.h>
#include <stdio.h>

#define SOAK_MOST_THREADS 64
#define SOAK_STATIC_BYTES ((size_t)1 << 20)
#define SOAK_ARENAS 3 /* private, symmetric, of the device */

struct soak_options {
    uint64_t seed;
    bool seeded;
    long from, to;   /* steps, `to` excluded */
    double minutes;  /* 0: the steps alone end the run */
    size_t size;
    int threads;
    uint32_t kinds;
    const char *log;
    long ring;       /* entries of a thread's log */
    long stall;      /* seconds without progress */
    bool device;
};

struct soak_entry {
    uint64_t step;
    double ns;
    struct soak_op op;
    bool done;
};

struct soak_thread {
    int id;
    shmem_ctx_t ctx[SOAK_CTXS];
    shmem_team_t team; /* all PEs, for this thread's collectives */
    unsigned char *arena[SOAK_ARENAS];
    int arena_now;
    void *scratch;
    unsigned char **mirror; /* [pe * SOAK_REGIONS + region]: this writer's slice, signals, words */
    unsigned char *work;    /* private bytes for comparing */
    struct soak_op ops[SOAK_OPS];
    int n, checked;
    uint64_t *last_ticket;  /* [cell * SOAK_TALLIES], plus 1 */
    uint8_t *last_bits;     /* [cell] */
    unsigned char *coll[2][2]; /* [host or device memory][source, dest] */
    uint64_t counts[SOAK_N_KINDS];
    struct soak_entry *ring;
    uint64_t n_entries; /* ever made */
};

/* Fetched tickets, and swapped values in less out: sums that only all PEs together can check. */
#define SOAK_TALLIES 3

struct soak {
    struct soak_options opt;
    struct soak_shape shape;
    int me, n;
    uint64_t step, epoch; /* epoch: of the constants */
    unsigned char *region[SOAK_REGIONS];  /* null: not used */
    unsigned char *shadow[SOAK_REGIONS];
    struct soak_layout layout[SOAK_REGIONS];
    struct soak_thread *threads;
    uint64_t *tally;      /* [cell * SOAK_TALLIES], private; threads add to it atomically */
    uint64_t *tally_sum[2]; /* symmetric */
    long *stop;           /* symmetric */
    size_t coll_most;     /* bytes of a block */
    double started;
};
extern struct soak soak;
extern const char *const soak_kind_names[SOAK_N_KINDS];
extern const char *const soak_region_names[SOAK_REGIONS];

/* options.c */
int soak_parse(int argc, char **argv, struct soak_options *out); /* 0, or 1 + exit status to leave with */
void soak_print_replay(FILE *to);

/* memory.c */
int soak_memory_open(void);
void soak_memory_close(void);
int soak_thread_open(struct soak_thread *t, int id);
void soak_thread_close(struct soak_thread *t);
void soak_region_read(int region, size_t off, void *to, size_t len);
void soak_region_write(int region, size_t off, const void *from, size_t len);
void soak_new_constants(uint64_t epoch);
void soak_local_read(struct soak_thread *t, size_t loc, void *to, size_t len);
void soak_local_write(struct soak_thread *t, size_t loc, const void *from, size_t len);
struct soak_view soak_shadow_view(int region, int writer);
struct soak_view soak_mirror_view(struct soak_thread *t, int pe, int region);
static inline size_t soak_writer(int pe, int thread)
{
    return (size_t)pe * (size_t)soak.shape.threads + (size_t)thread;
}

/* verify.c: what others did to this PE's memory */
void soak_verify(bool all);  /* after a barrier; all: every byte, else what the step's plans touched */
void soak_check_tallies(void);
void soak_compare(int region, size_t off, size_t len);

/* exec.c, check.c */
void soak_run_plan(struct soak_thread *t);
void soak_check_upto(struct soak_thread *t, int upto);
void soak_quiet_all(struct soak_thread *t);

/* steps: of threads, then of the main thread */
void soak_pairs(struct soak_thread *t);
void soak_fan(struct soak_thread *t);
void soak_coll(struct soak_thread *t);
void soak_renew_contexts(struct soak_thread *t);
void soak_contexts_open(struct soak_thread *t);
void soak_contexts_close(struct soak_thread *t);
void soak_pairs_apply(int kind);
void soak_team_step(void);
void soak_alloc_step(void);
void soak_alloc_close(void);
void soak_coll_on(struct soak_thread *t, shmem_team_t team, struct soak_rng *r);

/* log.c */
struct soak_entry *soak_begin(struct soak_thread *t, const struct soak_op *op); /* also counts it */
static inline void soak_end(struct soak_entry *e)
{
    e->done = true;
}
void soak_describe(char *text, size_t size, const struct soak_op *op);
void soak_write_log(void);
void soak_watch(void);
void soak_watch_end(void);
double soak_now(void);
_Noreturn __attribute__((format(printf, 3, 4))) void soak_fail(const struct soak_thread *t, const struct soak_op *op, const char *fmt, ...);

#endif
