/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fork_job.h - what oshrun and the PEs that it forked share: one anonymous memfd.
 *
 * oshrun creates it, fills the header and hands the descriptor down by number in
 * MARROW_FORK_JOB; a PE maps it in shmem_init and closes the descriptor.  Every PE
 * exchanges data through it, says how far it has come, and leaves the exit status of
 * a global exit there.
 */
#ifndef SHMEMI_FORK_JOB_H
#define SHMEMI_FORK_JOB_H

#include "core/compiler.h"

#include <stddef.h>
#include <stdint.h>

#define SHMEMI_FORK_VAR "MARROW_FORK_JOB"
#define SHMEMI_FORK_MAGIC 0x6d72776au
#define SHMEMI_FORK_VERSION 1u
#define SHMEMI_FORK_CHUNK ((size_t)4096) /* bytes that a PE gives in one round */
#define SHMEMI_FORK_MAX_PES 16384

enum shmemi_fork_state {
    SHMEMI_FORK_NONE, /* memory is zero at first: has not called shmem_init */
    SHMEMI_FORK_JOINED,
    SHMEMI_FORK_LEFT,
};

/* One PE's line.  The first four members are the PE's own, the others oshrun's. */
struct shmemi_fork_slot {
    SHMEMI_ALIGNED_LINE uint32_t state; /* enum shmemi_fork_state */
    uint32_t rounds;                    /* rounds of exchange that this PE has arrived at; never reset */
    uint32_t waiting;                   /* not 0: waits for the round that makes everybody's count this */
    int32_t pid;                        /* of the process that joined; may be a grandchild of oshrun */
    uint32_t gone;                      /* 1: the process that oshrun forked has ended */
    int32_t exec_errno;                 /* not 0: the program could not be executed */
};

struct shmemi_fork_job {
    uint32_t magic, version;
    uint32_t n_pes;
    int32_t oshrun_pid;
    uint64_t key[2];
    SHMEMI_ALIGNED_LINE uint32_t arrived; /* futex word: arrivals of all PEs at all rounds */
    SHMEMI_ALIGNED_LINE uint64_t ending;  /* 0, or SHMEMI_FORK_ENDING of the first PE that asked */
    uint32_t n_gone;                      /* PEs whose `gone` is set */
    struct shmemi_fork_slot slots[];
};

/* `ending` packs who asked and the exit status, so that one compare-and-swap decides both. */
#define SHMEMI_FORK_ENDING(pe, code) ((uint64_t)1 << 63 | (uint64_t)(uint32_t)(pe) << 32 | (uint32_t)(code))
#define SHMEMI_FORK_ENDING_PE(word) ((int)((word) >> 32 & 0x7fffffff))
#define SHMEMI_FORK_ENDING_CODE(word) ((int)(uint32_t)(word))

/* The exchange area: two buffers of n_pes chunks, used in turns, so that a round needs no second wait. */
static inline size_t shmemi_fork_data_offset(int n_pes)
{
    return shmemi_round_up(sizeof(struct shmemi_fork_job) + (size_t)n_pes * sizeof(struct shmemi_fork_slot), 4096);
}

static inline size_t shmemi_fork_size(int n_pes)
{
    return shmemi_fork_data_offset(n_pes) + 2 * (size_t)n_pes * SHMEMI_FORK_CHUNK;
}

/* What the environment says: MARROW_FORK_JOB is FD:PE:N:KEY, KEY 32 hexadecimal digits. */
struct shmemi_fork_env {
    int fd, pe, n_pes;
    uint64_t key[2];
};

/* 0, or -EINVAL when `text` is not of that form or its numbers contradict each other. */
int shmemi_fork_parse(const char *text, struct shmemi_fork_env *out);

#endif
