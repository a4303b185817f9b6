/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net.h - how the core reaches PEs that load and store do not: over a NIC queue that the calling thread posts to.
 *
 * A job whose PEs are all on one node never opens a NIC, and `shmemi_net.up` is false.  Where it is true, each
 * PE has registered its slice of the node's memory (control words, team blocks, static data, heap) and told all others
 * where its parts lie and under which key (struct shmemi_net_peer).
 *
 * Rails: a PE may use several devices (nic.h).  Everything that goes to one PE goes by one of them, which its queue names; local
 * keys are that rail's.
 *
 * Queues: one a peer and context, connected on first use.  All of one context's operations to one peer go through
 * one RC queue, in order, so fence is free.  Local buffers that are registered (symmetric memory) are used in place;
 * others travel inline or through a registered bounce buffer.
 *
 * Every function ends the job with a message (device, port, peer, operation, syndrome, advice) when the queue fails.
 * `pe` is a world PE, also the own one.  Addresses are this PE's own addresses of symmetric objects.
 */
#ifndef SHMEMI_NET_H
#define SHMEMI_NET_H

#include "state.h"
#include "transports/nic.h"

#include <shmem.h>

/* Where a peer's memory lies in its own address space. */
struct shmemi_net_peer {
    uint64_t heap, data, team_blocks, ctl;
    uint32_t rkey;
    uint32_t flags;
};

struct shmemi_net {
    bool up;
    /* All atomics go through the NIC, to the own PE and the node's too: peers reach the same words by NIC, and
     * its atomics are not atomic with the CPU's. */
    bool nic_atomics;
    struct shmemi_nic *nic; /* the home rail */
    const struct shmemi_nic_module *module;
    struct shmemi_net_peer *peers; /* by world PE */
    struct shmemi_nic_key key;     /* of this PE's slice */
    size_t message_max;            /* bytes of one work request */
    unsigned spin;                 /* polls of a wait before it yields */
};

extern struct shmemi_net shmemi_net;

/* What init knows. */
struct shmemi_net_start {
    void *slice; /* this PE's memory */
    size_t slice_len;
    unsigned char secret[16]; /* the job's */
};

/* Init stage: the card exchange needs the memory, so this is a second allgather, made only when the job spans nodes. */
int shmemi_net_init(const struct shmemi_net_start *start);
void shmemi_net_fini(void);

/* Does the NIC lead to this symmetric address at `pe`, which may be any number?  A question, so no error. */
bool shmemi_net_reaches(const void *addr, int pe);

/* ---- user operations, on a context ---- */

/* Returns when source may be reused (nbi: at the next quiet).  `dest`: own address of the symmetric object. */
void shmemi_net_put(shmem_ctx_t ctx, void *dest, const void *source, size_t len, int pe, bool nbi, const char *call);
/* The one element of shmem_p. */
void shmemi_net_p(shmem_ctx_t ctx, void *dest, const void *value, size_t size, int pe, const char *call);
void shmemi_net_get(shmem_ctx_t ctx, void *dest, const void *source, size_t len, int pe, bool nbi, const char *call);
void shmemi_net_put_signal(shmem_ctx_t ctx, void *dest, const void *source, size_t len, uint64_t *sig_addr,
                           uint64_t signal, int sig_op, int pe, bool nbi, const char *call);
/* `n` blocks of `block` bytes (neither is 0); strides in bytes. */
void shmemi_net_put_strided(shmem_ctx_t ctx, void *dest, size_t dst, const void *source, size_t sst, size_t n,
                            size_t block, int pe, const char *call);
void shmemi_net_get_strided(shmem_ctx_t ctx, void *dest, size_t dst, const void *source, size_t sst, size_t n,
                            size_t block, int pe, const char *call);
/* op: enum shmemi_amo_op of amo.h; old_out NULL for the non-fetching forms. */
void shmemi_net_amo(shmem_ctx_t ctx, int op, void *dest, const void *operand, const void *cond, void *old_out,
                    size_t size, int pe, bool nbi, const char *call);
/* Completes everything that this PE has issued on ctx over the NIC; polls only the queues that are dirty. */
void shmemi_net_quiet(shmem_ctx_t ctx, const char *call);
void shmemi_net_quiet_pe(shmem_ctx_t ctx, int pe, const char *call);
/* Every context of this PE. */
void shmemi_net_quiet_all(const char *call);
/* Before stores to PEs of the node that must not overtake what the NIC does there (atomics); free otherwise. */
void shmemi_net_fence(shmem_ctx_t ctx, const char *call);
/* Rings the doorbells that non-blocking operations have left to later: before a wait. */
void shmemi_net_progress(const char *call);

/* A context's queues: it goes; its slot's next context takes them on; threads may share those of all contexts from now on. */
struct shmemi_net_ctx;
void shmemi_net_ctx_gone(shmem_ctx_t ctx);
void shmemi_net_ctx_reuse(struct shmemi_net_ctx *c, long options);
void shmemi_net_level_raised(void);

/* ---- for the core's own protocols: team blocks and control words of a PE that load/store does not reach ---- */

/* Writes `len` bytes, then (when epoch_at is not NULL) the 8-byte word `epoch`, in this order, into what corresponds
 * at `pe` to this PE's own team block or control word at `mine` (and at epoch_at).  Returns at once; ordered after
 * all puts of the default context to that PE. */
void shmemi_net_block_write(int pe, const void *mine, const void *src, size_t len, const uint64_t *epoch_at,
                            uint64_t epoch, const char *call);
/* Reads a team block or control word of `pe`; blocks. */
void shmemi_net_block_read(int pe, const void *mine, void *dst, size_t len, const char *call);

/* Adds to such a word, at any PE: ordered like a write, and atomic with other PEs' adds.  Returns at once. */
void shmemi_net_block_add(int pe, const uint64_t *mine, uint64_t value, const char *call);

/* A wait takes long: asks `pe` (or, with -1, one connected peer a call in turn) whether it is alive, by an empty
 * write; a peer that is gone ends the job once the NIC has given up on it.  Never blocks. */
void shmemi_net_probe(int pe, const char *call);

/* Queues for device code (net_dev.c): a kernel reports that the queue at this place of the table has failed. */
SHMEMI_COLD SHMEMI_NORETURN void shmemi_net_dev_failed(size_t index, uint64_t error, uint64_t addr, const char *call);
/* CUDA is up: connects what its kernels need, fills state->nic.  `report`: how kernels are told to stop.  Fails
 * with MARROW_STRICT. */
struct shmemi_dev_state;
struct shmemi_dev_report;
int shmemi_net_dev_up(struct shmemi_dev_state *state, struct shmemi_dev_report *report);
/* The peers' device heaps have changed. */
int shmemi_net_dev_peers(struct shmemi_dev_state *state);
/* The row of a context's queues, as kernels are given it. */
unsigned shmemi_net_dev_ctx(const struct shmemi_dev_state *state, shmem_ctx_t ctx, long options);
void shmemi_net_dev_ctx_gone(shmem_ctx_t ctx);
/* Kernels have ended: gives what they have posted a moment to complete. */
void shmemi_net_dev_settle(void);
void shmemi_net_dev_down(void);

/* This PE leaves without finalize, or ends the job: tells the connected PEs, or one PE of each node, which with `connect`
 * need not be connected yet.  Takes no more than a moment, whatever has become of them. */
void shmemi_net_tell_left(void);
void shmemi_net_tell_end(int code, bool connect);
/* Has `pe` left without finalize, as far as is known here? */
bool shmemi_net_left(int pe);

/* The device that this PE sends to `pe` through. */
const struct shmemi_nic *shmemi_net_rail(int pe);
/* It has: ends the job with that message. */
void shmemi_net_check_left(int pe, const char *call);

#endif
