/* SPDX-License-Identifier: BSD-3-Clause */
/* proxy.h - a send queue of plain verbs: what create and post share. */
#ifndef SHMEMI_PROXY_H
#define SHMEMI_PROXY_H

#include "transports/verbs/verbs.h"

enum {
    SHMEMI_PROXY_BATCH = 16,   /* requests that wait for one ibv_post_send */
    SHMEMI_PROXY_INLINE = 220, /* as much as the mlx5 queue of our own takes */
};

/* What a request was, for the message when it fails. */
struct shmemi_proxy_request {
    uint64_t raddr;
    enum ibv_wr_opcode opcode;
};

struct shmemi_proxy_queue {
    struct shmemi_verbs_queue common; /* first */
    struct ibv_qp *qp;
    struct ibv_cq *cq;
    pthread_mutex_t lock; /* taken on shared queues */
    uint64_t posted;      /* tickets handed out; a request's ticket is its wr_id */
    uint64_t done;        /* tickets complete */
    unsigned depth, inline_max, waiting;
    /* the first error, which stays */
    int error;            /* 0, or -errno */
    bool refused;         /* by ibv_post_send, not by a completion */
    bool dead;            /* set by the service's thread: the device completes nothing more */
    int wc_status;
    uint32_t vendor;
    struct shmemi_proxy_request failed;
    struct shmemi_proxy_request *requests; /* ring of `depth` */
    struct ibv_send_wr wr[SHMEMI_PROXY_BATCH];
    struct ibv_sge sge[SHMEMI_PROXY_BATCH];
    unsigned char data[SHMEMI_PROXY_BATCH][SHMEMI_PROXY_INLINE + 4]; /* what inline writes carry */
};

#endif
