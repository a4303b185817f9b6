/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * state.h - what a kernel knows of the job: one struct, filled by the library, read by device code.
 *
 * Each translation unit compiled by nvcc has a __constant__ copy that the library fills at init and after each change
 * (shmem.h says how it finds them); a kernel sees a snapshot, which grows only (heap, teams), so an old one stays right
 * for what existed when the kernel started.  Fixed-width types only; addresses are device-visible ones unless
 * their name ends in _host.
 */
#ifndef SHMEM_DEVICE_STATE_H
#define SHMEM_DEVICE_STATE_H

#include "port.h"

#define SHMEMI_DEV_ABI 7
#define SHMEMI_DEV_NEAR 8       /* peers whose addresses are in the struct itself */
#define SHMEMI_DEV_NEAR_TEAMS 4 /* teams likewise */
#define SHMEMI_DEV_MEET 7       /* other members of a team whose flags' addresses are found beforehand */

/* Where a peer's memory can be loaded and stored from here; 0: not at all. */
struct shmemi_dev_peer {
    uint64_t heap;  /* its host heap */
    uint64_t dheap; /* its device heap */
};

/* How the members of a team on several nodes meet (synctree.h); the library chooses, the same for all of them. */
enum shmemi_dev_far_shape {
    SHMEMI_FAR_FLAT = 1, /* each writes to each */
    SHMEMI_FAR_MESH,     /* the first members of the nodes do, for those of their node */
    SHMEMI_FAR_TREE,     /* these form a tree */
};

/* A team of which this PE is a member, by slot; generation 0: none. */
struct shmemi_dev_team {
    uint32_t generation; /* handle = generation << 16 | slot + 1; of the predefined ones 0, with n_pes > 0 */
    int32_t my_pe, n_pes, start, stride;
    uint32_t far; /* 0: no member is on another node; else how they meet (enum shmemi_dev_far_shape) */
    uint64_t sync; /* offset in the device heap of the team's sync block, the same in every member */
};

/*
 * The flags by which a small team on one node meets, for syncs that take little longer than a flag's way: each instruction
 * before the first store and behind the last load counts.  By number among the others, ascending.
 */
struct shmemi_dev_meet {
    uint64_t chan; /* address of the own counters; 0: not such a team */
    uint32_t generation, others;
    uint64_t there[SHMEMI_DEV_MEET]; /* where this PE tells them */
    uint64_t here[SHMEMI_DEV_MEET];  /* where they tell this PE */
    int32_t pe[SHMEMI_DEV_MEET];     /* their world PEs */
    uint32_t pad;
};

/* A context made on the host, by slot. */
struct shmemi_dev_ctx {
    uint32_t generation;
    int32_t n_pes, start, stride;
    uint32_t options;
    uint32_t row; /* of its queues in the NIC's table, 0: the default context's; or'ed with SHMEMI_DEV_ROW_FLAGS */
};

#define SHMEMI_DEV_ROW_PRIVATE 0x80000000u /* one thread at a time uses them: no atomics */
#define SHMEMI_DEV_ROW_BATCH 0x40000000u   /* private, in a session with SHMEM_CTX_SESSION_BATCH: puts leave the doorbell to others */
#define SHMEMI_DEV_ROW_FLAGS (SHMEMI_DEV_ROW_PRIVATE | SHMEMI_DEV_ROW_BATCH)

/*
 * How the NIC leads to a peer: where its heaps lie in its own address space, their keys, and the local keys on the rail that
 * leads there (nic.h); all big-endian.
 */
struct shmemi_dev_far {
    uint64_t heap, dheap; /* 0: no way there */
    uint32_t heap_rkey, dheap_rkey;
    uint32_t heap_lkey, dheap_lkey, area_lkey, pad;
};

/* Memory that the NIC knows, for results: claims by the bits of words, scrap that nobody reads, slots. */
enum {
    SHMEMI_DEV_CLAIM_WORDS = 16, /* of 64 slots each, 64 bytes apart */
    SHMEMI_DEV_SLOT = 1024,      /* bytes */
    SHMEMI_DEV_SLOTS_OFF = 4096,
    SHMEMI_DEV_SCRAP_OFF = 2048,
    SHMEMI_DEV_AREA_BYTES = SHMEMI_DEV_SLOTS_OFF + SHMEMI_DEV_CLAIM_WORDS * 64 * SHMEMI_DEV_SLOT,
};

enum {
    SHMEMI_DEV_NIC_ATOMICS = 1, /* all atomics go through the NIC, to this PE and near ones too */
    SHMEMI_DEV_NIC_WATCHED = 2, /* device code on a CPU: the library ends the process when it finds a record of an error */
    SHMEMI_DEV_NIC_PROXY = 4, /* `queues` are channels (channel.h), one a row */
};

/* The NIC as kernels drive it (sq.h): a queue by row and world PE; or the channels to the thread that drives it. */
struct shmemi_dev_nic {
    uint64_t queues; /* address of the first struct shmemi_sq; 0: no NIC for kernels */
    struct shmemi_dev_far *peers; /* by world PE */
    uint64_t area;   /* results */
    uint32_t stride; /* bytes from one queue to the next */
    uint32_t message_max; /* bytes of one work request */
    uint32_t flags;
    uint32_t spread; /* rows of the default context, less 1: blocks of threads take turns */
    uint32_t zero;   /* always: what compilers of kernels do not know (SHMEMI_BEHIND) */
};

/* The calls, as a record names them: X(NAME, text). */
#define SHMEMI_DEV_CALLS(X)                                                                       \
    X(PUT, "shmem_put") X(GET, "shmem_get") X(PUT_NBI, "shmem_put_nbi") X(GET_NBI, "shmem_get_nbi") X(P, "shmem_p") X(G, "shmem_g")                       \
    X(IPUT, "shmem_iput") X(IGET, "shmem_iget") X(IBPUT, "shmem_ibput") X(IBGET, "shmem_ibget")   \
    X(PUT_SIGNAL, "shmem_put_signal") X(PUT_SIGNAL_NBI, "shmem_put_signal_nbi") X(SIGNAL, "shmem_signal") X(SIGNAL_FETCH, "shmem_signal_fetch") \
    X(ATOMIC, "shmem_atomic") X(WAIT, "shmem_wait_until") X(TEST, "shmem_test")                   \
    X(SIGNAL_WAIT, "shmem_signal_wait_until") X(FENCE, "shmem_fence") X(QUIET, "shmem_quiet")     \
    X(PE_QUIET, "shmem_pe_quiet") X(BARRIER_ALL, "shmem_barrier_all") X(SYNC_ALL, "shmem_sync_all") \
    X(TEAM_SYNC, "shmem_team_sync") X(TEAM_BARRIER, "shmemx_team_barrier") X(PTR, "shmem_ptr")    \
    X(TEAM_QUERY, "shmem_team query") X(BROADCAST, "shmem_broadcast") X(COLLECT, "shmem_collect") \
    X(FCOLLECT, "shmem_fcollect") X(ALLTOALL, "shmem_alltoall") X(ALLTOALLS, "shmem_alltoalls")   \
    X(REDUCE, "shmem_reduce") X(SCAN, "shmem_scan") X(LIBRARY, "a kernel of the library")

#define SHMEMI_DEV_CALL_ENUM(NAME, text) SHMEMI_CALL_##NAME,
enum shmemi_dev_call { SHMEMI_CALL_NONE, SHMEMI_DEV_CALLS(SHMEMI_DEV_CALL_ENUM) SHMEMI_CALL_LAST };

/*
 * Errors of a kernel.  error_args are call, then: PE out of range: the PE, PEs of the context or team; the others of an
 * address: the address, bytes, world PE; bad handle or value: it; NIC: the address, the queue's error word (sq.h), its place in
 * the table (row * PEs + world PE).
 */
enum shmemi_dev_error {
    SHMEMI_DEV_OK,
    SHMEMI_DEV_BAD_PE,
    SHMEMI_DEV_BAD_ADDRESS, /* in neither symmetric heap */
    SHMEMI_DEV_BAD_RANGE,   /* runs past the end of the heap */
    SHMEMI_DEV_MISALIGNED,  /* an atomic or a wait on a word that straddles its size */
    SHMEMI_DEV_UNREACHABLE, /* the peer's memory cannot be reached from this GPU */
    SHMEMI_DEV_BAD_TEAM,
    SHMEMI_DEV_BAD_CTX,
    SHMEMI_DEV_BAD_VALUE, /* a comparison, signal operation or stride that does not exist */
    SHMEMI_DEV_NIC,       /* a work request has failed */
};

/*
 * What kernels leave for the host's watchdog, in host memory; also how the host tells kernels to stop.  A kernel claims a
 * record with its claim word, fills it and stores `error` or `waiting` last, with release.
 */
struct shmemi_dev_report {
    uint32_t stop;        /* set by the host: the job is ending, waits end their kernel */
    uint32_t error_claim;
    uint32_t error;       /* first device-side error: enum shmemi_dev_error */
    uint32_t wait_claim;  /* back to 0 when the wait has ended */
    uint64_t error_args[4];
    uint32_t waiting;     /* the record below is valid: a wait has taken longer than hang_ns */
    uint32_t call;        /* enum shmemi_dev_call */
    uint64_t addr, value, want; /* the word, what it is, what it is compared with */
    int32_t pe, cmp;      /* world PE that has not come, -1: a wait for data, or SHMEMI_DEV_SPEAKER(); SHMEM_CMP_* */
    uint64_t since_ns;    /* the GPU's clock when the wait began */
};

/* In place of a PE that has not come: world PE `pe`, or one for which it speaks.  Its own inverse. */
#define SHMEMI_DEV_SPEAKER(pe) (-2 - (pe))

struct shmemi_dev_state {
    uint32_t abi, bytes; /* SHMEMI_DEV_ABI, sizeof: the library refuses a program built with another */
    int32_t my_pe, n_pes; /* n_pes 0: not initialised */
    uint32_t flags, check; /* check: MARROW_CHECK, ranges are looked at */
    uint64_t heap_base, heap_len;   /* own host symmetric heap: addresses as the user has them; len 0: not for kernels */
    uint64_t dheap_base, dheap_len; /* own device heap; len: bytes backed so far */
    struct shmemi_dev_peer *peers;  /* n_pes of them */
    struct shmemi_dev_team *teams;  /* by slot; 0 world, 1 shared */
    struct shmemi_dev_ctx *ctxs;    /* by slot; 0 default */
    uint32_t n_teams, n_ctxs;
    struct shmemi_dev_report *report;
    uint64_t hang_ns, timeout_ns; /* 0: never */
    struct shmemi_dev_peer near[SHMEMI_DEV_NEAR];           /* the first peers again */
    struct shmemi_dev_team near_teams[SHMEMI_DEV_NEAR_TEAMS]; /* the first teams again */
    struct shmemi_dev_meet meets[SHMEMI_DEV_NEAR_TEAMS];      /* and how they meet */
    struct shmemi_dev_nic nic;
};

SHMEMI_STATIC_ASSERT(sizeof(struct shmemi_dev_team) == 32, "the same for every compiler");
SHMEMI_STATIC_ASSERT(sizeof(struct shmemi_dev_report) == 96, "the same for every compiler");
SHMEMI_STATIC_ASSERT(sizeof(struct shmemi_dev_meet) == 160, "the same for every compiler");
SHMEMI_STATIC_ASSERT(sizeof(struct shmemi_dev_state) == 416 + 4 * 160, "the same for every compiler");

#endif
