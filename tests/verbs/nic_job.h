/* SPDX-License-Identifier: BSD-3-Clause */
/* nic_job.h - a job of a few processes that use the NIC module without the rest of the library. */
#ifndef NIC_JOB_H
#define NIC_JOB_H

#include "core/nic_load.h"

#include <stdbool.h>
#include <stdint.h>

enum { JOB_MAX_PES = 8, JOB_HEAP = 4 << 20, JOB_BOUNCE = 1 << 20, JOB_SECONDS = 60 };

/* Shared by all processes of the job. */
struct job_board {
    uint64_t arrived; /* counts up: a barrier is so many arrivals */
    uint64_t failed;  /* checks that did not hold, on any PE */
    unsigned char cards[JOB_MAX_PES][SHMEMI_NIC_CARD_BYTES];
    uint64_t heap[JOB_MAX_PES];
    uint32_t rkey[JOB_MAX_PES];
};

struct job {
    int me, n;
    uint64_t barriers;
    struct job_board *board;
    struct shmemi_nic_config config;
    const struct shmemi_nic_module *module;
    struct shmemi_nic *nic;
    unsigned char *heap;   /* what peers reach */
    unsigned char *bounce; /* local side of transfers */
    struct shmemi_nic_key heap_key, bounce_key;
    struct shmemi_nic_queue *queues; /* by PE */
};

/* Says what went wrong and ends this process with status 1. */
void job_die(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
/* Counts and prints a check that does not hold. */
bool job_check(struct job *job, bool good, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Bounded: a PE that does not come within JOB_SECONDS ends the job. */
void job_barrier(struct job *job);

/* Opens the module's NIC: 0 or its error. */
int job_open(struct job *job);
/* Registers memory, exchanges cards, starts the service. */
void job_start(struct job *job);
void job_connect(struct job *job, int pe, bool shared);
void job_close(struct job *job);

/* Runs `pe_main` in `n` processes; the sum of what they return and of those that died. */
int job_run(int n, int (*pe_main)(struct job *job));

/* Either kind of queue; `offset` into the peer's heap, local addresses inside bounce.  Tickets; -1: queue in error. */
int64_t job_write(struct job *job, int pe, uint64_t offset, const void *from, uint32_t len, int flags);
int64_t job_read(struct job *job, int pe, uint64_t offset, void *to, uint32_t len, int flags);
/* Fetch-add, or compare-swap when compare is not NULL; 8 bytes, the old value goes to `old`. */
int64_t job_atomic(struct job *job, int pe, uint64_t offset, uint64_t operand, const uint64_t *compare, uint64_t *old);
/* Rings and waits until all of the queue is complete: 0, -EIO, or -ETIMEDOUT after JOB_SECONDS. */
int job_quiet(struct job *job, int pe);

#endif
