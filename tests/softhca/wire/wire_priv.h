/* SPDX-License-Identifier: BSD-3-Clause */
/* What the parts of the wire share among themselves. */
#ifndef SOFTHCA_WIRE_WIRE_PRIV_H
#define SOFTHCA_WIRE_WIRE_PRIV_H

#include "wire/wire.h"

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

struct shm_ring;

/* Our ring towards a peer. */
struct shm_out {
    int sock;                    /* -1: not attached */
    struct shm_ring *ring;
    uint64_t head;               /* bytes produced */
    uint64_t retry_ns;           /* not before this time, after a refusal */
};

/* A peer's ring towards us. */
struct shm_in {
    int sock;
    struct shm_ring *ring;
    uint64_t tail;               /* bytes consumed */
    uint32_t slot;
    bool gone;                   /* the peer closed; freed by wire_control */
};

/* A packet that faults hold back. */
struct held {
    struct held *next;
    uint32_t slot;
    uint32_t overtakers;         /* goes out when so many later packets were sent to that slot */
    uint64_t due_ns;             /* or at this time */
    bool corrupt;
    size_t len;
    uint8_t bytes[];
};

#define UDP_BATCH 32

struct udp {
    int sock;
    unsigned queued;
    uint32_t slot[UDP_BATCH];
    size_t len[UDP_BATCH];
    uint8_t out[UDP_BATCH][PKT_MAX_LEN];
    uint8_t in[UDP_BATCH][PKT_MAX_LEN + 64];
};

struct wire {
    struct wire_handlers handlers;
    struct fault_plan *faults;
    struct wire_stats stats;
    uint32_t slot;
    uint32_t net;                /* address of slot 0 */
    int listen_sock, epoll, wake;
    int pcap;
    struct udp *udp;             /* NULL: shared memory */
    unsigned window;

    struct shm_out out[WIRE_MAX_SLOT + 1];
    struct shm_in **in;
    unsigned n_in, cap_in, next_in;

    uint8_t *reserved;           /* buffer of wire_reserve */
    uint32_t reserved_slot;
    bool link_down;
    bool unreachable;            /* the buffer is scratch: nobody is there */
    uint8_t scratch[PKT_MAX_LEN];
    struct held *held, **held_tail;
};

/* Marks of epoll entries: low values are descriptors of the wire itself, others a slot or a struct shm_in. */
enum { WIRE_EV_LISTEN = 1, WIRE_EV_WAKE = 2, WIRE_EV_UDP = 3, WIRE_EV_OUT = 0x1000, WIRE_EV_IN = 0x2000 };

uint64_t wire_now_ns(void);

/* ctl.c: the abstract socket of a slot. */
struct ctl_msg {
    uint32_t magic;
    uint32_t type;
    uint32_t slot;               /* of the sender, CTL_ATTACH */
    uint32_t reserved;
};
enum { CTL_MAGIC = 0x53484341, CTL_ATTACH = 1, CTL_REPORT = 2 };
socklen_t ctl_address(struct sockaddr_un *a, uint32_t slot);
int ctl_claim_slot(struct wire *w, bool with_udp);
int ctl_connect(uint32_t slot);  /* non-blocking connection to a slot, or -errno */
int ctl_set_blocking(int sock);
void ctl_accept(struct wire *w);
int ctl_send_fd(int sock, const struct ctl_msg *msg, int fd);
bool ctl_same_user(int sock);

/* shm.c */
uint8_t *shm_reserve(struct wire *w, uint32_t slot);
void shm_commit(struct wire *w, uint32_t slot, size_t len, bool has_icrc);
unsigned shm_poll(struct wire *w, unsigned budget);
int shm_attach(struct wire *w, int sock, uint32_t slot, int fd);
void shm_out_close(struct wire *w, uint32_t slot);
void shm_in_sweep(struct wire *w);
bool shm_sleep_begin(struct wire *w); /* false: a packet is there, do not sleep */
void shm_sleep_end(struct wire *w);
bool shm_pending(const struct wire *w);
void shm_close(struct wire *w);

/* udp.c */
int udp_open(struct wire *w, uint32_t slot); /* -EADDRINUSE: the slot's address is taken */
uint8_t *udp_reserve(struct wire *w);
void udp_commit(struct wire *w, uint32_t slot, size_t len);
void udp_flush(struct wire *w);
unsigned udp_poll(struct wire *w);
void udp_close(struct wire *w);

/* wire.c: a packet with its ICRC, if it has one, arrived. */
void wire_deliver(struct wire *w, uint32_t slot, const uint8_t *bytes, size_t len, bool has_icrc);

#endif
