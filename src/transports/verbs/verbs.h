/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbs.h - what the parts of the NIC module share: the open NIC, a peer's address, and the two kinds of queue.
 *
 * The core sees struct shmemi_nic, which is the first member of struct shmemi_verbs_nic.  A queue that sends is made
 * by its user's thread (connect.c); the side that only answers is made by the connection service's thread (service.c).
 */
#ifndef SHMEMI_VERBS_H
#define SHMEMI_VERBS_H

#include "transports/nic.h"

#include <infiniband/verbs.h>
#include <pthread.h>

enum { SHMEMI_VERBS_ERR, SHMEMI_VERBS_WARN, SHMEMI_VERBS_INFO, SHMEMI_VERBS_DEBUG, SHMEMI_VERBS_TRACE };

#define shmemi_verbs_log(config, level, ...)                  \
    do {                                                      \
        if ((config)->log_on(level))                          \
            (config)->log((level), "nic", __VA_ARGS__);       \
    } while (0)

#define SHMEMI_VERBS_MAGIC 0x6d617277u

/* Where a connection service is, and what its port can do: of a PE's home in its card, of another rail in what it asks. */
struct shmemi_verbs_address {
    uint32_t magic;
    uint8_t link;      /* IBV_LINK_LAYER_* */
    uint8_t port;
    uint8_t mtu;       /* enum ibv_mtu */
    uint8_t rd_atomic; /* reads and atomics that a queue pair here answers at once */
    uint8_t gid[16];
    uint32_t qpn, qkey;
    uint16_t lid;
    uint8_t global;    /* has a usable GID */
    uint8_t rail;
    char device[32];
};

/* The other end of a queue pair. */
struct shmemi_verbs_end {
    int pe;
    const struct shmemi_verbs_address *address;
    uint32_t qpn;
    uint32_t psn; /* first packet that goes from the sending to the answering side */
};

/* What priv of every queue begins with. */
struct shmemi_verbs_queue {
    struct shmemi_verbs_queue *next, *prev; /* all that are open */
    uint64_t nonce;                         /* names the connection to the peer's service */
};

struct shmemi_verbs_nic;

/* How a kind makes its queue pairs.  Messages have been logged when a call fails. */
struct shmemi_verbs_kind {
    /* The sending side, in state INIT. */
    int (*create)(struct shmemi_verbs_nic *nic, int how, const struct shmemi_nic_memory *memory, struct shmemi_nic_queue *q,
                  uint32_t *qpn_out);
    int (*connect)(struct shmemi_verbs_nic *nic, struct shmemi_nic_queue *q, const struct shmemi_verbs_end *peer);
    void (*destroy)(struct shmemi_verbs_nic *nic, struct shmemi_nic_queue *q);
    /* The device is dead and completes nothing more: makes the next poll see an error. */
    void (*fail)(struct shmemi_verbs_nic *nic, struct shmemi_verbs_queue *q);
    /* The answering side, ready to receive. */
    int (*accept)(struct shmemi_verbs_nic *nic, const struct shmemi_verbs_end *peer, void **responder_out,
                  uint32_t *qpn_out);
    void (*drop)(struct shmemi_verbs_nic *nic, void *responder);
};

struct shmemi_verbs_service;
struct shmemi_ibgda;

struct shmemi_verbs_nic {
    struct shmemi_nic nic; /* first: the core's view */
    const struct shmemi_nic_config *config;
    const struct shmemi_verbs_kind *kind;
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_device_attr_ex attr;
    struct ibv_port_attr port;
    enum ibv_mtu mtu;
    int gid_index; /* -1: none */
    union ibv_gid gid;
    struct ibv_cq *idle_cq; /* proxy: of queue pairs that never complete anything here */
    unsigned depth;         /* proxy: requests of a queue */
    struct shmemi_ibgda *ibgda;
    struct shmemi_verbs_service *service;
    struct shmemi_verbs_address own;
    struct shmemi_verbs_address *peers; /* homes by PE, once started; the home's own memory, which its other rails share */
    pthread_mutex_t lock;               /* what follows */
    struct shmemi_verbs_queue *queues;
    bool dead;
};

static inline struct shmemi_verbs_nic *shmemi_verbs_of(struct shmemi_nic *nic)
{
    return (struct shmemi_verbs_nic *)nic;
}

/* 0 for 0, else -errno of a call that returns errno or -1. */
int shmemi_verbs_status(int ret);

/* "mlx5_0 port 1". */
#define SHMEMI_VERBS_AT "%s port %d"
#define SHMEMI_VERBS_AT_ARGS(n) (n)->nic.device, (n)->nic.port

/* mem.c */
int shmemi_verbs_mem_register(struct shmemi_nic *nic, void *addr, size_t len, struct shmemi_nic_key *key_out);
int shmemi_verbs_mem_register_dmabuf(struct shmemi_nic *nic, int fd, uint64_t offset, uint64_t va, size_t len,
                                     struct shmemi_nic_key *key_out);
void shmemi_verbs_mem_deregister(struct shmemi_nic *nic, struct shmemi_nic_key *key);
/* module.c: says that rail `first` and those behind it cannot be used, and closes them. */
void shmemi_verbs_rails_leave_out(struct shmemi_nic *home, int first);
/* " (ulimit -l is 64 KiB ...)" where a refusal with `status` may come from the limit of locked memory, else "". */
const char *shmemi_verbs_memlock_hint(int status, char *buf, size_t len);

/* path.c */
void shmemi_verbs_ah_attr(const struct shmemi_verbs_nic *nic, const struct shmemi_verbs_address *to,
                          struct ibv_ah_attr *out);
enum ibv_mtu shmemi_verbs_path_mtu(const struct shmemi_verbs_nic *nic, const struct shmemi_verbs_address *to);
/* "PE 3 (mlx5_1 port 1, LID 7)". */
const char *shmemi_verbs_peer_name(const struct shmemi_verbs_nic *nic, int pe, char *buf, size_t len);
const char *shmemi_verbs_address_name(const struct shmemi_verbs_address *a, int pe, char *buf, size_t len);
/* Do these two ports look as if they were on one network?  InfiniBand: one subnet; Ethernet: one /24 or /64. */
bool shmemi_verbs_same_network(const struct shmemi_verbs_address *a, const struct shmemi_verbs_address *b);
/* Which of the `n` rails leads best to that home of PE `pe`. */
int shmemi_verbs_rail_to(const struct shmemi_verbs_address *const *rails, int n, const struct shmemi_verbs_address *to, int pe);
#define SHMEMI_VERBS_NAME_BYTES 128

/* gid.c: the index to use on an Ethernet port, or -ENOENT.  `wanted` >= 0 must be there, and is taken. */
int shmemi_verbs_gid_choose(const struct ibv_gid_entry *table, int n, int port, int wanted);

/* service.c: the datagram queue pair that connections are made over, and the one thread, which sleeps. */
int shmemi_verbs_service_open(struct shmemi_verbs_nic *nic);
void shmemi_verbs_service_address(const struct shmemi_verbs_nic *nic, struct shmemi_verbs_address *address);
int shmemi_verbs_service_start(struct shmemi_verbs_nic *nic);
void shmemi_verbs_service_close(struct shmemi_verbs_nic *nic);
/* Asks `pe` for the answering side of queue pair `qpn`; blocks.  Logs why it fails, unless `quiet`. */
struct shmemi_verbs_asked {
    uint64_t timeout_ns;
    bool quiet;
};
int shmemi_verbs_service_connect(struct shmemi_verbs_nic *nic, const struct shmemi_verbs_end *own,
                                 const struct shmemi_verbs_asked *how, uint64_t *nonce_out, uint32_t *peer_qpn_out);
/* Some registered bytes that nobody reads. */
uint64_t shmemi_verbs_service_scratch(const struct shmemi_verbs_nic *nic, uint32_t *lkey_out);
/* Tells `pe` that the connection is over; returns at once. */
void shmemi_verbs_service_bye(struct shmemi_verbs_nic *nic, int pe, uint64_t nonce);

/* connect.c */
int shmemi_verbs_queue_rail(struct shmemi_nic *home, int pe);
int shmemi_verbs_queue_open(struct shmemi_nic *nic, int pe, int how, const struct shmemi_nic_memory *memory,
                            struct shmemi_nic_queue *q);
void shmemi_verbs_queue_close(struct shmemi_nic_queue *q);
/* As open, but says nothing when it fails. */
int shmemi_verbs_queue_probe(struct shmemi_verbs_nic *nic, int pe, uint64_t timeout_ns, struct shmemi_nic_queue *q);
/* The device has failed: fails all queues, those too that are opened later. */
void shmemi_verbs_queues_fail(struct shmemi_verbs_nic *nic);
void shmemi_verbs_queue_error(struct shmemi_nic_queue *q, struct shmemi_nic_error *out);

/* error.c */
enum { SHMEMI_VERBS_DEVICE_DEAD = 0xff }; /* a syndrome of our own */
struct shmemi_verbs_syndrome {
    uint8_t code;
    const char *what, *advice;
};
/* Never NULL. */
const struct shmemi_verbs_syndrome *shmemi_verbs_syndrome(uint8_t code);
/* The syndrome that an error status of a plain work completion stands for. */
uint8_t shmemi_verbs_wc_syndrome(int wc_status);
const char *shmemi_verbs_fw_status(uint8_t status);

/* True in a child of the process that opened the NIC. */
bool shmemi_verbs_forked(void);

/* ibgda/ */
int shmemi_ibgda_open(struct shmemi_verbs_nic *nic);
void shmemi_ibgda_close(struct shmemi_verbs_nic *nic);
void shmemi_ibgda_error(struct shmemi_nic_queue *q, struct shmemi_nic_error *out);
extern const struct shmemi_verbs_kind shmemi_ibgda_kind;

/* proxy/ */
int shmemi_proxy_open(struct shmemi_verbs_nic *nic);
void shmemi_proxy_close(struct shmemi_verbs_nic *nic);
void shmemi_proxy_error(const struct shmemi_nic_queue *q, struct shmemi_nic_error *out);
extern const struct shmemi_verbs_kind shmemi_proxy_kind;
int64_t shmemi_proxy_write(struct shmemi_nic_queue *q, uint64_t raddr, uint32_t rkey, const void *laddr, uint32_t lkey,
                           uint32_t len, int flags);
int64_t shmemi_proxy_read(struct shmemi_nic_queue *q, uint64_t raddr, uint32_t rkey, void *laddr, uint32_t lkey,
                          uint32_t len, int flags);
int64_t shmemi_proxy_atomic(struct shmemi_nic_queue *q, uint64_t raddr, uint32_t rkey, uint64_t operand,
                            const uint64_t *compare, uint64_t *laddr, uint32_t lkey, int flags);
int shmemi_proxy_flush(struct shmemi_nic_queue *q);
int shmemi_proxy_poll(struct shmemi_nic_queue *q, uint64_t *done_out);

#endif
