/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nic.h - contract between the core and the module that knows verbs.
 *
 * The module (src/transports/verbs with ibgda/ and proxy/, one shared object beside libmarrow.so)
 * is opened with dlopen when a job spans nodes, so libmarrow.so itself needs no verbs library.  It finds the NIC,
 * registers memory, and connects queues; then the core posts by itself:
 *
 *     SHMEMI_NIC_MLX5    through shmem/device/sq.h, with no call into the module ("ibgda")
 *     SHMEMI_NIC_VERBS   through the post and poll calls below, over ibv_post_send ("proxy")
 *
 * A PE may use several devices, its rails.  Atomics of two devices on one word are not atomic with each other, so everything that
 * comes to a PE comes through its first rail, the home, whose address its card holds; through which of its own rails it sends
 * depends on the target PE alone, so what it sends to one PE keeps its order, and all of it goes under one rail's keys.
 *
 * Calls return 0 or -errno; who decides the error says so once, through config->log, with device, port, peer,
 * and what to do about it.  Nothing here ends the process.
 */
#ifndef SHMEMI_NIC_H
#define SHMEMI_NIC_H

#define SHMEMI_SQ_RECORDS /* sq.h: threads of this process post to queues with a doorbell record only */
#include "shmem/device/sq.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SHMEMI_NIC_ABI 5
#define SHMEMI_NIC_SYMBOL "shmemi_nic_module" /* the module's const struct shmemi_nic_module */
#define SHMEMI_NIC_CARD_BYTES 96
#define SHMEMI_NIC_RAILS 4 /* devices that one PE uses at most */

enum shmemi_nic_kind { SHMEMI_NIC_AUTO, SHMEMI_NIC_MLX5, SHMEMI_NIC_VERBS };

struct shmemi_nic_config {
    int my_pe, n_pes;
    int my_local, n_local;        /* place among the node's PEs: ties between equally near devices go round robin */
    enum shmemi_nic_kind want;    /* MARROW_TRANSPORT: auto, ibgda, proxy */
    bool strict;                  /* MARROW_STRICT: a downgrade (auto, but the device is no mlx5) fails */
    int rails;                    /* MARROW_RAILS: how many devices; 0: those that are nearest, where several are equally near */
    const char *device_list;      /* MARROW_HCA_LIST: "mlx5_0:1,mlx5_1", "^mlx5_2" leaves out, "" all */
    const char *near_pci;         /* "0000:1b:00.0": nearest to this GPU; NULL: to this process's CPUs */
    int gid_index;                /* RoCE; -1 chooses (v2, IPv4-mapped first) */
    int traffic_class, service_level, pkey_index;
    int mtu;                      /* bytes; 0: the port's */
    int timeout, retry_count;     /* IB encodings: 4.096 us * 2^timeout, 0 to 7 */
    int queue_depth;              /* entries of 64 bytes, a power of two */
    uint64_t connect_timeout_ns;  /* UINT64_MAX: no limit */
    unsigned char secret[16];     /* of the job, the same on all PEs: the connection service answers to nobody else */
    bool (*gone)(int pe);         /* NULL, or: has that PE left, so that it will never answer a connection? */
    bool (*log_on)(int level);    /* levels as in core/log.h */
    void (*log)(int level, const char *component, const char *fmt, ...);
};

/*
 * Memory for queues whose threads run on a device, supplied by whoever knows it.  Addresses are the same for the device and
 * for this process, which touches `near` memory through these calls only.
 */
struct shmemi_nic_memory {
    const char *name;
    bool near; /* the device's own */
    void *(*get)(size_t bytes); /* at a multiple of 64 KiB; NULL: none */
    void (*put)(void *p);
    int (*set)(void *p, int value, size_t bytes);
    int (*copy)(void *to, const void *from, size_t bytes); /* one side is host memory; complete when it returns */
    /* A dma-buf with these bytes from *offset_out on, which the caller closes; -errno: only the address is known. */
    int (*export)(const void *p, size_t bytes, uint64_t *offset_out);
};

struct shmemi_nic_key {
    uint32_t lkey[SHMEMI_NIC_RAILS], rkey; /* host order; by rail, and the home's */
    void *mr[SHMEMI_NIC_RAILS];            /* the module's; [0] NULL: no key */
};

/* One port of one device, as shmem-info shows it. */
struct shmemi_nic_port {
    const char *device;
    int port;
    const char *state;           /* "active", "down" ... */
    const char *link;            /* "InfiniBand", "Ethernet" */
    uint64_t mbit;               /* a second */
    enum shmemi_nic_kind kind;   /* what would drive it */
    int rail;                    /* by open with this configuration: 1 the home, 2 and on further rails; 0: not used */
    const char *why;             /* how near it is, or why it is left out */
};

/* Filled by open; read by the core.  open gives the home, which stands for all rails; a queue names the one it is on. */
struct shmemi_nic {
    int rail, n_rails; /* which one; of the home: how many, and */
    struct shmemi_nic *rails[SHMEMI_NIC_RAILS]; /* which, itself first */
    enum shmemi_nic_kind kind;
    char device[64];         /* "mlx5_0" */
    int port;
    bool atomics_global;     /* the NIC's atomics are atomic with the CPU's (PCIe atomics, IBV_ATOMIC_GLOB) */
    bool atomics_4;          /* 4-byte and masked ones in hardware; else the core makes them of 8-byte compare-swap */
    uint32_t inline_max;     /* bytes; kind VERBS: a write of at most so many copies its data before it returns (no lkey) */
    uint32_t message_max;    /* bytes of one work request */
    const char *record_why;  /* why a queue cannot do without a doorbell record on this rail; NULL: it can */
    const struct shmemi_nic_config *config;
};

/* A flag beside those of sq.h, of a write: never copied, since the CPU may not be able to load it (memory of a GPU). */
enum { SHMEMI_NIC_IN_PLACE = 0x100 };

/* How a queue is opened. */
enum {
    SHMEMI_NIC_SHARED = 1, /* several threads post */
    /* Kind MLX5, for kernels: without a doorbell record where its rail can and has a doorbell page left, as the flags of `sq` say. */
    SHMEMI_NIC_NO_RECORD = 2,
};

/* A send queue to one peer.  Kind MLX5 uses `sq`; kind VERBS the calls below with `priv`. */
struct shmemi_nic_queue {
    struct shmemi_sq sq;
    struct shmemi_nic *nic; /* its rail */
    void *priv;
    int pe;
    bool shared; /* several threads post: decides between SHMEMI_SQ_SHARED and _PRIVATE */
};

/* What a completion error was. */
struct shmemi_nic_error {
    int pe;
    uint8_t syndrome, vendor_syndrome;
    const char *what;   /* "transport retry counter exceeded" */
    const char *advice; /* what the user can do about it */
    const char *operation; /* "RDMA write", "atomic" ... */
    uint64_t raddr;     /* of the work request, where it is still known */
};

struct shmemi_nic_module {
    uint32_t abi;

    /* Every port that the module sees, best first; `say` gets the texts for the time of the call.  -ENODEV: none. */
    int (*describe)(const struct shmemi_nic_config *config, void (*say)(void *arg, const struct shmemi_nic_port *port),
                    void *arg);

    /* `config` stays readable until close.  A rail that cannot be used is said and left out. */
    int (*open)(const struct shmemi_nic_config *config, struct shmemi_nic **nic_out);
    void (*close)(struct shmemi_nic *nic);

    /* With every rail.  Before start, where a rail other than the home refuses, it and those behind it are said and left out. */
    int (*mem_register)(struct shmemi_nic *nic, void *addr, size_t len, struct shmemi_nic_key *key_out);
    /* Device memory: a dma-buf, or an address that peermem knows when fd is -1. */
    int (*mem_register_dmabuf)(struct shmemi_nic *nic, int fd, uint64_t offset, uint64_t va, size_t len,
                               struct shmemi_nic_key *key_out);
    void (*mem_deregister)(struct shmemi_nic *nic, struct shmemi_nic_key *key);

    /* What others need to reach this PE's connection service. */
    void (*card)(struct shmemi_nic *nic, unsigned char card[SHMEMI_NIC_CARD_BYTES]);
    /* All cards, in PE order (copied): from here on peers may connect, which a thread that sleeps otherwise serves. */
    int (*start)(struct shmemi_nic *nic, const unsigned char (*cards)[SHMEMI_NIC_CARD_BYTES]);

    /* The rail that this PE sends to `pe` by; valid once started. */
    int (*rail_to)(struct shmemi_nic *nic, int pe);

    /*
     * Connects a new queue to `pe` (also to the own PE), on first use.  Blocks up to connect_timeout_ns.  how: SHMEMI_NIC_SHARED
     * and so on.  memory NULL: the
     * module's own; else (kind MLX5) ring, record and completion entry lie there, for as long as the NIC is open, and `sq` is
     * what the device's threads are to be given.
     */
    int (*queue_open)(struct shmemi_nic *nic, int pe, int how, const struct shmemi_nic_memory *memory,
                      struct shmemi_nic_queue *q);
    /* The caller has quieted it, or it is in error.  Tells the peer, which frees its side. */
    void (*queue_close)(struct shmemi_nic_queue *q);
    /* Explains a queue whose poll has failed: the first error, not the flushes behind it.  A device's queue: after its `sq` was
     * brought up to date. */
    void (*queue_error)(struct shmemi_nic_queue *q, struct shmemi_nic_error *out);

    /*
     * Kind VERBS only.  Tickets count from 1 per queue; a post waits for room by polling.  -errno when the queue is
     * in error.  `flags` are those of sq.h.  Thread-safe on queues opened as shared.
     */
    int64_t (*write)(struct shmemi_nic_queue *q, uint64_t raddr, uint32_t rkey, const void *laddr, uint32_t lkey,
                     uint32_t len, int flags);
    int64_t (*read)(struct shmemi_nic_queue *q, uint64_t raddr, uint32_t rkey, void *laddr, uint32_t lkey, uint32_t len,
                    int flags);
    /* 8-byte fetch-add (compare == NULL) or compare-swap; the old value goes to laddr, host order. */
    int64_t (*atomic)(struct shmemi_nic_queue *q, uint64_t raddr, uint32_t rkey, uint64_t operand,
                      const uint64_t *compare, uint64_t *laddr, uint32_t lkey, int flags);
    /* Posts what SHMEMI_SQ_DEFER has left behind. */
    int (*flush)(struct shmemi_nic_queue *q);
    /* Takes completions; tickets up to *done_out are complete.  -EIO when the queue is in error. */
    int (*poll)(struct shmemi_nic_queue *q, uint64_t *done_out);
};

#endif
