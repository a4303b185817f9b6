/* SPDX-License-Identifier: BSD-3-Clause */
/* Faults to inject: how they are written, and the verdict on one packet. Same seed and same traffic, same verdicts. */
#ifndef SOFTHCA_WIRE_FAULT_H
#define SOFTHCA_WIRE_FAULT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum fault_verdict {
    FAULT_NONE = 0,
    FAULT_LOSS = 1 << 0,
    FAULT_DUP = 1 << 1,
    FAULT_REORDER = 1 << 2,
    FAULT_DELAY = 1 << 3,
    FAULT_CORRUPT = 1 << 4,
};

/* A moment: so many nanoseconds after the first doorbell, or when so many packets were sent. Both 0: never. */
struct fault_when {
    uint64_t ns;
    uint64_t packets;
};

/* A table of buckets: a bucket loses its oldest entry only to a ninth packet with a fault and the same hash. */
#define FAULT_BUCKETS 512
#define FAULT_WAYS 8

/* Chances are in units of 2^-32. */
struct fault_plan {
    uint64_t seed;
    uint32_t loss, dup, reorder, delay, corrupt, rnr;
    uint32_t delay_us;
    uint32_t doorbell_us;        /* a doorbell is acted upon so much later */
    uint32_t qp_error_after;     /* each QP fails its n-th WQE; 0: none */
    uint8_t qp_error_syndrome;
    struct fault_when link_down;
    uint64_t link_down_ns;       /* how long; 0: for good */
    struct fault_when die;
    struct fault_when deny;      /* from then on no peer may touch this process's memory */
    bool port_down;              /* from the start, for good */
    bool no_gids;                /* an empty GID table */
    uint64_t memlock;            /* bytes that may be registered; 0: no limit */
    uint32_t pages;              /* doorbell pages that a process gets; 0: as many as the device model has */
    bool any_packet;             /* some packet fault is on */
    /*
     * Packets that met a fault, and how often they were sent since: a retransmission gets a verdict of its own, else a
     * lost packet would be lost for ever. Packets without fault need no entry.
     */
    struct fault_bucket {
        uint64_t key[FAULT_WAYS];
        uint32_t times[FAULT_WAYS];
        uint32_t next;
    } seen[FAULT_BUCKETS];
};

/*
 * Reads a list such as "loss=1%,dup=0.5%,reorder=1%,delay=2%:300us,corrupt=1%,rnr=5%,doorbell=50us,qperr=100:0x02,
 * linkdown=200ms+50ms,die=5000p,deny=200p,port=down,gids=none,memlock=64k,pages=8". NULL and "" mean no fault. -EINVAL: nothing
 * was changed and *bad_out points to the item that is wrong.
 */
int fault_parse(struct fault_plan *plan, const char *spec, uint64_t seed, const char **bad_out);

/* What happens to the packet that the key names. The key says which packet of which QP it is, not when it is sent. */
unsigned fault_verdict(struct fault_plan *plan, uint64_t key);

/* Whether the receiver of the packet named by the key shall pretend that it has no receive WQE. */
bool fault_rnr(struct fault_plan *plan, uint64_t key);

/* Writes the plan in the form that fault_parse reads. */
void fault_print(const struct fault_plan *plan, char *out, size_t len);

#endif
