/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How packets get from one engine to another. A slot number names a device of a process on this host; it is claimed by binding
 * an abstract socket, so it is free again when the process ends in whatever way. All functions are for the engine's
 * thread (or with the device lock held), but wire_wake.
 */
#ifndef SOFTHCA_WIRE_WIRE_H
#define SOFTHCA_WIRE_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/fault.h"
#include "wire/packet.h"

#define WIRE_MAX_SLOT 1023

struct wire;

struct wire_stats {
    uint64_t tx_packets, tx_bytes, rx_packets, rx_bytes;
    uint64_t tx_unreachable;     /* nobody holds that slot */
    uint64_t rx_short, rx_icrc, rx_foreign;
    uint64_t fault_loss, fault_dup, fault_reorder, fault_delay, fault_corrupt;
};

/* What the wire asks its user for. Pointers stay valid until wire_close. */
struct wire_handlers {
    /* A packet from base header to before the ICRC; valid during the call. */
    void (*packet)(void *ctx, uint32_t src_slot, const uint8_t *bytes, size_t len);
    /* Writes a report for softhca-stat; returns its length. NULL: no reports. */
    size_t (*report)(void *ctx, char *out, size_t len);
    void *ctx;
};

struct wire_config {
    const char *kind;            /* "shm", "udp" or NULL for shm */
    const char *pcap;            /* capture file or NULL */
    uint32_t net;                /* address of slot 0, host byte order; 0: 127.77.0.0 */
    struct fault_plan *faults;   /* owned by the caller, never NULL */
};

/* Claims a slot and opens the wire. 0 or -errno; logged by the caller. */
int wire_open(struct wire **out, const struct wire_config *config, const struct wire_handlers *handlers);
void wire_close(struct wire *w);
/* In the child of a fork: closes descriptors and mappings, touches nothing that the parent shares. */
void wire_abandon(struct wire *w);

uint32_t wire_slot(const struct wire *w);
uint32_t wire_ipv4(const struct wire *w, uint32_t slot); /* host byte order */
const char *wire_kind(const struct wire *w);
/* How many packets a queue pair may have in flight without flooding the receiver. */
unsigned wire_window(const struct wire *w);
struct wire_stats *wire_stats(struct wire *w);

/*
 * A buffer for a packet of at most PKT_MAX_LEN bytes to that slot, or NULL: full, try again later. One at a time;
 * wire_commit sends its first len bytes (the ICRC is added), or not when the faults say so. key names the packet to
 * fault_verdict. Without a commit nothing is sent.
 */
uint8_t *wire_reserve(struct wire *w, uint32_t slot);
void wire_commit(struct wire *w, size_t len, uint64_t key);
/* Link down: what is sent from now on gets lost. */
void wire_set_link(struct wire *w, bool up);
/* Sends what is batched and what faults held back long enough. */
void wire_flush(struct wire *w);
/* Delivers up to budget packets; returns how many. */
unsigned wire_poll(struct wire *w, unsigned budget);
/* Accepts peers and requests for reports; cheap, but a system call: for idle rounds and every so many busy ones. */
void wire_control(struct wire *w);
/* Sleeps until a packet, a peer or wire_wake comes, at most timeout_ns; false when none of them came. */
bool wire_wait(struct wire *w, uint64_t timeout_ns);
/* Any thread. */
void wire_wake(struct wire *w);
/* Sent and not yet handed over, or held back: false when everything is gone. */
bool wire_pending(const struct wire *w);

#endif
