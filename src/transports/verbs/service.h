/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * service.h - the connection service: its messages and what its thread keeps.
 *
 * A request names the sender's queue pair; the answer names the one that was made for it.  Datagrams get lost, come
 * twice or late: the requester repeats until it is answered, and the peer knows by PE and nonce what it has answered
 * already, and says the same again.  A goodbye is repeated until it is confirmed too.
 */
#ifndef SHMEMI_VERBS_SERVICE_H
#define SHMEMI_VERBS_SERVICE_H

#include "verbs.h"

enum shmemi_verbs_message_type { SHMEMI_VERBS_CONNECT = 1, SHMEMI_VERBS_ANSWER, SHMEMI_VERBS_BYE, SHMEMI_VERBS_GONE };

/* Same architecture on all PEs, as for symmetric memory. */
struct shmemi_verbs_message {
    uint32_t magic;
    uint32_t type;
    unsigned char secret[16];
    uint64_t nonce;
    int32_t from, to;
    uint32_t qpn, psn;
    int32_t status; /* of an answer: 0 or -errno */
    uint32_t kind;  /* enum shmemi_nic_kind */
    struct shmemi_verbs_address origin; /* of who connects, and gets the answers; requests go to a PE's home */
};

enum {
    SHMEMI_VERBS_GRH_BYTES = 40,
    SHMEMI_VERBS_RECEIVES = 512,
    SHMEMI_VERBS_SENDS = 64,
    SHMEMI_VERBS_SLOT_BYTES = 192, /* GRH and a message */
};

/* One of our requests, on the stack of the thread that waits for it. */
struct shmemi_verbs_pending {
    struct shmemi_verbs_pending *next;
    struct shmemi_verbs_message message;
    uint64_t timeout_ns, deadline_ns, send_ns, interval_ns;
    unsigned tries;
    bool begun, done, refused; /* begun: its time runs; refused: by the peer */
    int status;
    uint32_t peer_qpn;
};

/* A goodbye that is not confirmed. */
struct shmemi_verbs_goodbye {
    struct shmemi_verbs_goodbye *next;
    struct shmemi_verbs_message message;
    uint64_t send_ns, interval_ns;
    unsigned tries;
};

/* A connection of somebody else's queue to us.  Closed ones stay a while, so that a late request is not taken for a new one. */
struct shmemi_verbs_served {
    struct shmemi_verbs_served *next;
    int pe;
    bool closed;
    uint64_t nonce;
    void *responder;
    struct shmemi_verbs_message answer;
};

enum { SHMEMI_VERBS_CLOSED_KEPT = 1024 };

struct shmemi_verbs_service {
    struct shmemi_verbs_nic *nic;
    struct ibv_comp_channel *channel;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    uint32_t qkey;
    struct ibv_mr *mr;
    unsigned char *slots; /* receives, then sends, then one of scratch */
    uint64_t busy_sends;  /* bit i: send slot i is with the NIC */
    struct ibv_ah **ahs;  /* by PE and its rail, made when needed */
    int wake_fd;
    pthread_t thread;
    bool running, broken, said_secret;

    /* by the thread alone */
    struct shmemi_verbs_served **table; /* a hash */
    size_t n_served, n_buckets;
    struct shmemi_verbs_served *closed[SHMEMI_VERBS_CLOSED_KEPT];
    size_t n_closed;

    pthread_mutex_t lock; /* what follows */
    pthread_cond_t answered;
    struct shmemi_verbs_pending *pending;
    struct shmemi_verbs_goodbye *goodbyes;
    uint64_t next_nonce;
    bool stop;
};

uint64_t shmemi_verbs_now_ns(void);

/* datagram.c: the queue pair. */
int shmemi_verbs_datagram_open(struct shmemi_verbs_service *s);
void shmemi_verbs_datagram_close(struct shmemi_verbs_service *s);
/* False: try again later (no free slot, or no way to the peer, which has been said and is in *status_out). */
bool shmemi_verbs_datagram_send(struct shmemi_verbs_service *s, const struct shmemi_verbs_address *to,
                                const struct shmemi_verbs_message *message, int *status_out);
/* Hands every message that has come to `take`. */
void shmemi_verbs_datagram_receive(struct shmemi_verbs_service *s,
                                   void (*take)(struct shmemi_verbs_service *s, const struct shmemi_verbs_message *m));

/* served.c: the answering side. */
void shmemi_verbs_serve_connect(struct shmemi_verbs_service *s, const struct shmemi_verbs_message *m);
void shmemi_verbs_serve_bye(struct shmemi_verbs_service *s, const struct shmemi_verbs_message *m);
void shmemi_verbs_served_free(struct shmemi_verbs_service *s);

/* event.c: what the device reports by itself. */
void shmemi_verbs_events(struct shmemi_verbs_service *s);

#endif
