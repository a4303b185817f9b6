/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * state.h - the process-wide state that the hot path reads, and the layout of
 * the memory that the PEs of a node share.
 *
 * Everything here is written during init and finalize only, and read by every
 * call.  Before init and after finalize n_pes is 0 and the ranges are empty, so the
 * ordinary range checks of a call also catch use at the wrong time; the cold
 * path then says which it was.
 */
#ifndef SHMEMI_STATE_H
#define SHMEMI_STATE_H

#include "bootstrap/bootstrap.h"
#include "compiler.h"
#include "shmem/device/port.h"
#include "transports/cuda/card.h"

#include <stdbool.h>

#define SHMEMI_TEAMS_MAX 1024         /* live teams a PE may be in, world and shared included */
#define SHMEMI_TEAM_BLOCK_BYTES 65536 /* of shared memory for each PE and team; untouched pages cost nothing */

/*
 * Shared control words of one PE, in the node's shared segment.  Members that
 * different PEs write lie on different cache lines.
 */
struct shmemi_pe_ctl {
    /* What its sleeping threads wait for: bits of enum shmemi_asleep, for who stores to its memory (wait.h). */
    SHMEMI_ALIGNED_LINE uint32_t asleep;
    SHMEMI_ALIGNED_LINE uint32_t wake_seq; /* futex word: bumped to wake the sleepers */
    SHMEMI_ALIGNED_LINE uint32_t phase;    /* enum shmemi_pe_phase, written by its owner */
    int32_t pid;                           /* in the owner's pid namespace */
    uint64_t pid_ns;                       /* inode of that namespace: liveness checks need it equal */
    size_t alloc_size[2];                  /* sizes of the last two collective allocations (heap.c) */
    /* Written by NICs of other nodes' PEs. */
    SHMEMI_ALIGNED_LINE uint64_t far_end; /* 0, or SHMEMI_FAR_END of a PE that ends the job; the node's first PE's counts */
    uint64_t far_left;                    /* 0, or the last PE that has left without finalize, plus 1 */
    SHMEMI_ALIGNED_LINE struct shmemi_gpu_card gpu;
};

#define SHMEMI_FAR_END(pe, code) ((uint64_t)1 << 63 | (uint64_t)(uint32_t)(pe) << 32 | (uint32_t)(code))

enum shmemi_pe_phase {
    SHMEMI_PE_STARTING, /* memory is zero at first */
    SHMEMI_PE_RUNNING,
    SHMEMI_PE_FINALIZED, /* passed the last barrier: its exit is no failure */
    SHMEMI_PE_EXITED,    /* left through exit() without finalize */
};

/* First page of the node's shared segment. */
struct shmemi_node_hdr {
    SHMEMI_ALIGNED_LINE uint32_t ending; /* 1: a global exit or abort is under way */
    int32_t exit_code;
    int32_t ending_pe; /* who asked for it */
};

/* What this PE knows of a peer: where its memory is mapped here, or 0 where load/store does not reach. */
struct shmemi_peer {
    uintptr_t heap;            /* this PE's mapping of the peer's heap */
    uintptr_t data;            /* the same for its static data segment */
    uintptr_t dheap;           /* the same for its device heap; the CPU does not touch it */
    struct shmemi_pe_ctl *ctl; /* and its control words; NULL on another node */
    char *team_blocks;         /* SHMEMI_TEAMS_MAX blocks of SHMEMI_TEAM_BLOCK_BYTES */
    uintptr_t spare[3];        /* a PE's place is a shift */
};

_Static_assert(sizeof(struct shmemi_peer) == 64, "a power of two");

struct shmemi_state {
    /* read by every call: keep within two cache lines */
    int n_pes; /* 0 unless initialised */
    int my_pe;
    struct shmemi_peer *peers;     /* n_pes of them, by world PE */
    struct shmemi_peer *amo_peers; /* the same, or all zeroes where atomics go through the NIC (net.h) */
    uintptr_t heap_base;           /* own heap */
    size_t heap_len;
    uintptr_t data_base;           /* own .data/.bss, page rounded; len 0 when static data is not shared */
    size_t data_len;
    /* What is out of the ordinary.  Calls ask for all that may concern them in one test, and then go another way. */
    union {
        struct {
            bool check_blocks; /* MARROW_CHECK=1 */
            bool gpu_up;       /* pointers may be device memory (devmem.h) */
            bool net_up;       /* as shmemi_net.up */
            bool away;         /* before init, after finalize */
        };
        uint16_t odd_memory; /* the first two */
        uint32_t odd;
    };
    struct shmemi_pe_ctl *my_ctl;
    struct shmemi_node_hdr *node;
    unsigned spin_limit;           /* polls before the first yield; small when PEs outnumber CPUs */

    /* the rest */
    int thread_level;
    int init_count;      /* nested init/finalize, specification 1.6 section 9.1 */
    bool finalized_once; /* tells "before init" from "after finalize" */
    int n_local;         /* PEs of this node */
    int n_cpus;          /* CPUs that they may run on, together */
    int my_local;        /* my index among them */
    int *local_pes;      /* n_local world PEs, ascending */
    int n_nodes;
    int *node_of;        /* by world PE: its node, from 0 on by lowest PE */
    bool crowded;        /* some node of the job has more PEs than CPUs for them */
    uintptr_t dheap_base; /* own device heap */
    size_t dheap_len;     /* backed so far */
    bool gpu_wanted;     /* some PE wants CUDA from the start */
    struct shmemi_boot boot;
};

extern struct shmemi_state shmemi;

/* Shared block of team slot `slot` that belongs to world PE `pe` (NULL on another node). */
SHMEMI_INLINE void *shmemi_team_block(int pe, int slot)
{
    char *blocks = shmemi.peers[pe].team_blocks;

    return blocks ? blocks + (size_t)slot * SHMEMI_TEAM_BLOCK_BYTES : NULL;
}

#endif
