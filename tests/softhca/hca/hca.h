/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The device model of the virtual NIC: what the command side (uverbs/, fw/) creates and what the engine executes.
 *
 * Ownership. One struct hca a device of a process; objects belong to one device and know nothing of the others'. Every
 * object below is guarded by the device lock (hca_lock), one for all devices: an engine holds it for a whole scheduling
 * round and commands hold it for a whole command. So no object vanishes under an engine, and a pointer to an object may
 * be kept only while the lock is held or until the matching eng_*_gone call. Fields marked [ctl] are written by commands
 * only, [eng] by the engine only (both under the lock; the other side may read).
 *
 * Memory that the application also touches (rings, doorbell records, completions, UAR pages, payload) is not guarded by
 * the lock: access it with __atomic builtins of explicit order, or through struct hca_mem.
 */
#ifndef SOFTHCA_HCA_H
#define SOFTHCA_HCA_H

#include <endian.h>
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- sizes ---- */

enum {
    /* A queue pair number is slot << 13 | index, so it is unique on this host and names its process. */
    HCA_QPN_SHIFT = 13,
    HCA_MAX_QP = 1 << HCA_QPN_SHIFT,
    HCA_MAX_SLOT = 1023,
    HCA_MAX_CQ = 1 << 13,
    HCA_MAX_SRQ = 1 << 11,
    HCA_MAX_KEY = 1 << 16,
    HCA_MAX_UMEM = 1 << 14,
    HCA_MAX_UAR = 512,
    HCA_MAX_PD = 1 << 14,
    HCA_MAX_RD_ATOMIC = 16,
    HCA_WQEBB = 64,              /* bytes in a send queue block */
    HCA_UAR_BYTES = 4096,
    HCA_INVALID_LKEY = 0x100,    /* ends a receive scatter list */
    HCA_PORT = 1,
    HCA_MAX_DEVICES = 8,         /* mlx5_0 to mlx5_7 */
    HCA_GID_TABLE = 8,
    HCA_LOG_MAX_MSG = 30,
};

#define HCA_QPN_INDEX(qpn) ((qpn) & (HCA_MAX_QP - 1))
#define HCA_QPN_SLOT(qpn) ((qpn) >> HCA_QPN_SHIFT)
#define HCA_PSN_MASK 0xffffffu

/* ---- configuration (hca/config.c, from the environment that softhca-run sets; read once) ---- */

struct hca_config {
    int log_level;               /* SOFTHCA_LOG: 0 errors and lint (default), 1 objects, 2 commands, 3 packets */
    bool eth;                    /* SOFTHCA_LINK=eth: RoCE port, else InfiniBand port */
    unsigned log_bare;           /* SOFTHCA_NO_DBR: queues without a doorbell record are offered, of up to 2 to this blocks; 0: not */
    bool lenient;                /* SOFTHCA_STRICT=0: poll doorbell records instead of UAR pages */
    bool stats;                  /* SOFTHCA_STATS=1: print counters at exit */
    uint64_t seed;               /* SOFTHCA_SEED */
    unsigned nodes;              /* SOFTHCA_NODES, 0 when not given */
    const char *wire;            /* SOFTHCA_WIRE: "udp", "shm" or NULL for the engine's choice */
    unsigned devices;            /* SOFTHCA_DEVICES */
    const char *faults[HCA_MAX_DEVICES]; /* SOFTHCA_FAULTS, or SOFTHCA_FAULTS_<n> for mlx5_<n>; parsed by wire/fault.c */
    const char *trace;           /* SOFTHCA_TRACE: file */
    const char *pcap;            /* SOFTHCA_PCAP: file */
    uint32_t net[HCA_MAX_DEVICES]; /* SOFTHCA_NET: address of slot 0, host byte order; 0 when not given */
    const char *dir;             /* SOFTHCA_DIR: per-job folder owned by softhca-run, or NULL */
};

extern struct hca_config hca_config;

/* Levels of hca_log: what a real NIC would reject silently is always shown. */
enum { HCA_LINT = 0, HCA_INFO = 1, HCA_CMD = 2, HCA_PKT = 3 };
void hca_log_line(int level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
#define hca_log(level, ...) ((level) <= hca_config.log_level ? hca_log_line((level), __VA_ARGS__) : (void)0)

/* ---- memory ---- */

/*
 * A pinned range of application memory. Filled by mem/ (host.c, cuda.c); host is the address as the CPU sees it, NULL
 * when the CPU cannot touch the range and ops must be used. Offsets are bytes from the start of the range; callers
 * have checked the bounds.
 */
struct hca_mem;
struct hca_mem_ops {
    const char *name;
    int (*read)(struct hca_mem *mem, uint64_t off, void *dst, size_t len);
    int (*write)(struct hca_mem *mem, uint64_t off, const void *src, size_t len);
    void (*detach)(struct hca_mem *mem);
};

struct hca_mem {
    uint64_t addr;               /* address in the application */
    uint64_t len;
    uint8_t *host;
    const struct hca_mem_ops *ops;
    void *priv;
    unsigned refs;               /* [ctl] objects that use this range */
    uint64_t pinned;             /* [ctl] bytes of it that count towards hca->memlock */
};

/* A part of a range: a ring, a doorbell record. Bounds were checked when it was made. */
struct hca_buf {
    struct hca_mem *mem;
    uint64_t off;
    uint64_t len;
    uint8_t *host;               /* mem->host + off, NULL with memory that the CPU cannot touch */
};

/*
 * Offered by mem/. attach probes the range: 0, -EFAULT when it is not mapped, -ENOMEM. writable says that the device
 * will write. dmabuf: -EINVAL, -EBADF, or -EOPNOTSUPP when nothing can reach that memory; iova helps to find CUDA ranges.
 */
int mem_attach(struct hca_mem *mem, uint64_t addr, uint64_t len, bool writable);
int mem_attach_dmabuf(struct hca_mem *mem, int fd, uint64_t off, uint64_t len, uint64_t iova, bool writable);
void mem_detach(struct hca_mem *mem);

/* Offered by hca/mem_ref.c: heap-allocated ranges with a reference count. */
struct hca_mem *hca_mem_get(uint64_t addr, uint64_t len, bool writable, int *err_out);
void hca_mem_put(struct hca_mem *mem);
/* Sub-range of mem; -EINVAL when out of bounds or when align (power of two) does not hold. Takes a reference. */
int hca_buf_init(struct hca_buf *buf, struct hca_mem *mem, uint64_t off, uint64_t len, uint64_t align);
void hca_buf_fini(struct hca_buf *buf);
/* One doorbell-record word, big-endian in memory: acquire load, release store. */
uint32_t hca_dbrec_load(const struct hca_buf *dbrec, unsigned word);
void hca_dbrec_store(const struct hca_buf *dbrec, unsigned word, uint32_t value);
int hca_buf_read(const struct hca_buf *buf, uint64_t off, void *dst, size_t len);
int hca_buf_write(const struct hca_buf *buf, uint64_t off, const void *src, size_t len);

/* ---- event files (uverbs/events.c) ---- */

/* One end of a record-keeping socket pair whose other end the application reads. Reference counted. */
struct hca_evfile;

/* What an object needs in order to report: the channel, the application's name of it, how many records it has sent. */
struct hca_evsource {
    struct hca_evfile *file;     /* NULL: events are dropped */
    uint64_t user_handle;
    uint32_t reported;           /* [eng] */
};

/* ---- objects ---- */

struct hca_list {
    struct hca_list *next, *prev;
};

struct hca_pd {
    uint32_t pdn;
    unsigned users;              /* [ctl] objects that refer to it: destroy says EBUSY */
};

struct hca_uar {
    uint32_t page_id;
    uint8_t *page;               /* 4 KiB, shared with the application (and perhaps a GPU) */
    bool used;
    bool dedicated;              /* write-combining ("BF") or not ("NC"): same behaviour, kept for the trace */
    struct hca_list qps;         /* struct hca_qp.uar_link of every QP whose doorbells come through this page */
    unsigned users;
    bool bare;                   /* one of them is without a doorbell record */
};

/* Memory keys: an MR is direct, an mkey object or a bound memory window may point at other keys. */
enum hca_key_kind { HCA_KEY_MR, HCA_KEY_INDIRECT, HCA_KEY_MW };

struct hca_klm {
    uint64_t va;
    uint32_t len;
    uint32_t key;
};

struct hca_key {
    uint32_t key;                /* index << 8 | variant: lkey and rkey are equal */
    enum hca_key_kind kind;
    struct hca_pd *pd;
    uint32_t access;             /* IBV_ACCESS_* */
    uint64_t iova;
    uint64_t len;
    bool zero_based;
    bool free;                   /* mkey not yet configured by UMR, or invalidated: every access is refused */
    struct hca_mem *mem;         /* HCA_KEY_MR: device address iova is byte mem_off of it */
    uint64_t mem_off;
    struct hca_klm *klm;         /* HCA_KEY_INDIRECT and HCA_KEY_MW: entries in address order */
    uint32_t nklm, max_klm;
    bool interleaved;            /* klm is one block of a repeated pattern, see key.c */
    uint32_t repeat;             /* blocks, when interleaved; else 1 */
    uint64_t block;              /* sum of the lengths of all klm */
    bool type2;                  /* memory window type 2: bound by a work request */
    uint32_t *stride;            /* bytes from block to block for each klm, when interleaved */
    uint32_t bound_qpn;          /* type-2 window: only this QP may use it */
    unsigned windows;            /* windows bound to it: dereg says EBUSY */
};

/* A piece of memory that an access resolves to, in address order. */
struct hca_span {
    struct hca_mem *mem;
    uint64_t off;
    uint64_t len;
};

/* Why an access was refused (for the log; the wire and completion codes follow from remote or local). */
enum hca_deny {
    HCA_OK = 0,
    HCA_DENY_KEY,                /* no such key, or stale variant */
    HCA_DENY_PD,
    HCA_DENY_ACCESS,
    HCA_DENY_BOUNDS,
    HCA_DENY_FREE,
    HCA_DENY_SPANS,              /* needs more spans than the caller has room for */
};

struct hca_umem {
    uint32_t id;
    struct hca_mem *mem;
    uint32_t access;
    unsigned users;
};

struct hca_cq {
    uint32_t cqn;
    struct hca_buf ring;
    struct hca_buf dbrec;        /* word 0 consumer index, word 1 arm */
    uint32_t entries;            /* power of two */
    uint8_t log_entries;
    uint16_t cqe_bytes;          /* 64 or 128 */
    bool collapsed;              /* every completion goes to entry 0 */
    bool ignore_overrun;
    bool overrun;                /* has overrun: no more completions are written */
    bool devx;
    uint32_t producer;           /* [eng] free-running */
    uint32_t notified;           /* [eng] producer at the last event */
    uint32_t solicited;          /* [eng] producer after the last solicited or failed completion */
    bool armed;                  /* [eng] last arm word seen and not yet fired */
    struct hca_evsource comp;    /* completion channel */
    struct hca_evsource async;
    uint16_t moder_count, moder_period;
    uint8_t timestamp_format;
    unsigned devx_events;        /* [ctl] DEVX subscriptions to completion events of this CQ */
    unsigned users;              /* queue pairs and SRQs attached */
    uint32_t eqn;
};

struct hca_srq {
    uint32_t srqn;
    uint32_t xrc_cqn;            /* XRC only */
    struct hca_pd *pd;
    struct hca_buf ring;
    struct hca_buf dbrec;        /* word 0: entries posted */
    uint32_t entries;            /* power of two */
    uint8_t log_stride;
    uint32_t max_sge;
    uint32_t limit;              /* [both] event when fewer remain; 0 = not armed; the engine clears it when it fires */
    uint32_t head;               /* [eng] next entry to use, follows the linked list */
    uint16_t consumed;           /* [eng] */
    struct hca_evsource async;
    unsigned users;
    uint32_t uidx;
    bool error;
};

/* Address of a peer port, from ibv_ah_attr, from a QPC's address path or from a UD WQE. */
struct hca_av {
    bool global;                 /* dgid is valid */
    uint8_t dgid[16];
    uint16_t dlid;
    uint8_t sl, sgid_index, hop_limit, traffic_class, static_rate, src_path_bits, port;
    uint32_t flow_label;
    uint16_t udp_sport;
    uint8_t dmac[6];
};

enum hca_qp_type { HCA_RC, HCA_UC, HCA_UD, HCA_DCI, HCA_DCT, HCA_XRC_INI, HCA_XRC_TGT, HCA_RAW };

struct hca_qp_cap {
    uint32_t max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline;
};

struct hca_qp {
    struct hca *hca;
    uint32_t qpn;
    enum hca_qp_type type;
    enum ibv_qp_state state;     /* [both] the engine moves it to SQE or ERR through hca_qp_error only */
    uint32_t uidx;               /* goes into completions (cqe_version 1) */
    bool devx;
    struct hca_pd *pd;
    struct hca_cq *scq, *rcq;    /* NULL when the QP has no such queue */
    struct hca_srq *srq;
    struct hca_uar *uar;
    struct hca_list uar_link;
    struct hca_evsource async;
    struct hca_qp_cap cap;

    /* Rings; entries == 0: no such queue. sq counts 64-byte blocks. dbrec word 0 receive, word 1 send. */
    struct hca_buf sq, rq, dbrec;
    uint32_t sq_entries, rq_entries;
    uint8_t rq_log_stride;
    bool bare;                   /* no doorbell record: the doorbell's value says where the send queue ends */
    bool sig_all;                /* every send completes with a CQE */
    bool rq_signature;           /* receive WQEs begin with a 16-byte header */
    bool ext_atomics;            /* QPC.atomic_mode allows 4-byte and masked forms */

    /* Attributes [ctl]; valid once the state that needs them is reached. */
    uint32_t access;             /* IBV_ACCESS_REMOTE_* */
    uint32_t mtu;                /* bytes */
    uint32_t dest_qpn;
    uint32_t rq_psn, sq_psn;     /* as set by the last modify */
    uint32_t qkey;
    uint16_t pkey_index;
    uint8_t max_rd_atomic;       /* initiator depth */
    uint8_t max_dest_rd_atomic;  /* responder depth */
    uint8_t timeout, retry_cnt, rnr_retry, min_rnr_timer;
    uint8_t port_num;
    uint8_t sq_drained_event;    /* en_sqd_async_notify: report SQ_DRAINED */
    bool sq_draining;            /* [eng] in SQD and not yet drained */
    struct hca_av av, alt_av;
    uint8_t path_mig_state, alt_timeout, alt_port, alt_pkey_index;
    uint64_t dc_key;

    /* [eng] for QUERY_QP: next indices and sequence numbers, kept up to date by the engine. */
    uint16_t sq_consumer, sq_producer, rq_consumer;
    uint32_t next_send_psn, next_rcv_psn;

    void *eng;                   /* engine's own state, made by eng_qp_new, freed by eng_qp_gone */
};

/* Who we are on the wire; filled by wire/ before the first QP exists. */
struct hca_identity {
    uint32_t slot;               /* 1..HCA_MAX_SLOT */
    uint16_t lid;
    uint32_t ipv4_be;            /* our address in RoCE v2 packets */
    uint8_t gid[16];             /* index 0: ib: fe80::<guid>, eth: ::ffff:a.b.c.d */
    uint64_t guid;
};

struct hca {
    bool identified;             /* it has a wire and so an address */
    bool started;
    bool dead;                   /* NIC death: commands fail with EIO, the engine does nothing */
    bool link_up;
    bool no_gids;                /* an injected fault: the GID table is empty */
    uint64_t memlock, pinned;    /* bytes that may be and are registered; memlock 0: no limit */
    uint32_t uar_most;           /* doorbell pages at most; 0: as many as uar[] has room for */
    struct hca_identity id;

    struct hca_uar uar[HCA_MAX_UAR];   /* index 0 is never used; page_id is the index */
    uint32_t uar_top;            /* no used page at or above */

    struct hca_qp *qp[HCA_MAX_QP];
    uint32_t qp_top;             /* no used index at or above; index 0 and 1 are never used */
    struct hca_cq *cq[HCA_MAX_CQ];
    uint32_t cq_top;
    struct hca_srq *srq[HCA_MAX_SRQ];
    struct hca_key *key[HCA_MAX_KEY];
    struct hca_umem *umem[HCA_MAX_UMEM];
    struct hca_pd *pd[HCA_MAX_PD];

    void *eng;                   /* engine's own state */
};

extern struct hca hca_devices[HCA_MAX_DEVICES];
/* The device that this thread is at work on; the lock's holder sets it. */
extern _Thread_local struct hca *hca_current;

static inline unsigned hca_index(const struct hca *hca)
{
    return (unsigned)(hca - hca_devices);
}

/* ---- offered by hca/ to the engine (call with the lock held unless said) ---- */

void hca_lock(struct hca *hca);            /* for commands; both make it the thread's current device */
void hca_unlock(struct hca *hca);
void hca_lock_engine(struct hca *hca);     /* waits until no command wants the lock, and lets other engines have a turn */
void hca_unlock_engine(struct hca *hca);
uint64_t hca_now_ns(void);                 /* CLOCK_MONOTONIC; no lock */

struct hca_qp *hca_qp_find(struct hca *hca, uint32_t qpn);     /* NULL: not ours, or no such QP */
struct hca_srq *hca_srq_find(struct hca *hca, uint32_t srqn);
struct hca_cq *hca_cq_find(struct hca *hca, uint32_t cqn);

/*
 * Checks key, PD, access (all bits of need) and bounds of [va, va + len) and resolves it. spans_out[max] is filled in
 * address order, *n_out says how many (1 for an MR; 0 only when len is 0). qpn matters to type-2 windows. len 0: the key is
 * not looked at. Nothing is logged: the engine knows WQE index and field, or the packet.
 */
enum hca_deny hca_key_map(struct hca *hca, const struct hca_pd *pd, uint32_t qpn, uint32_t key, uint64_t va, uint64_t len,
                          uint32_t need, struct hca_span *spans_out, unsigned max, unsigned *n_out);
const char *hca_deny_name(enum hca_deny deny);
/* UMR, LOCAL_INVAL, BIND_MW, SEND_INVAL; 0 or -EINVAL. klm is copied. stride NULL: plain list. */
struct hca_key *hca_key_find(struct hca *hca, uint32_t key);
int hca_key_set_list(struct hca *hca, struct hca_key *key, const struct hca_klm *klm, uint32_t n, const uint32_t *stride,
                     uint32_t repeat);
int hca_key_invalidate(struct hca *hca, const struct hca_pd *pd, uint32_t qpn, uint32_t key);

/* What a completion says; the writer does layout, owner bit, ring index, overrun, memory order and event arming. */
struct hca_cqe {
    uint8_t opcode;              /* MLX5_CQE_REQ, _RESP_*, _REQ_ERR, _RESP_ERR (mlx5dv.h) */
    bool solicited;
    uint8_t send_opcode;         /* MLX5_OPCODE_* of the WQE, requester side */
    uint8_t syndrome;            /* MLX5_CQE_SYNDROME_*, error completions only */
    uint8_t vendor_syndrome;
    uint16_t wqe_counter;        /* index of the WQE's first block; of the receive WQE; SRQ: its entry */
    uint32_t qpn;                /* local QP */
    uint32_t uidx;               /* qp->uidx (srq->uidx with XRC) */
    uint32_t byte_cnt;
    uint32_t imm_be;             /* as on the wire; invalidated key for SEND_INVAL */
    uint32_t src_qpn;            /* UD */
    uint16_t slid;
    uint8_t sl;
    bool grh;                    /* UD: the 40 bytes in front hold a GRH */
    uint8_t rocev2_l3;           /* eth: 0 GRH, 1 IPv6, 2 IPv4 */
};

/* false: overrun, the completion is lost (the async event was sent once). */
bool hca_cq_write(struct hca_cq *cq, const struct hca_cqe *cqe);
/* Fires an event if the CQ is armed and due. Call for all CQs now and then (arming does not ring anything). */
void hca_cq_check_arm(struct hca_cq *cq);

/* Async events: IBV_EVENT_QP_FATAL, _QP_REQ_ERR, _QP_ACCESS_ERR, _COMM_EST, _SQ_DRAINED, _QP_LAST_WQE_REACHED. */
void hca_qp_event(struct hca_qp *qp, enum ibv_event_type type);
void hca_cq_event(struct hca_cq *cq, enum ibv_event_type type);
void hca_srq_event(struct hca_srq *srq, enum ibv_event_type type);
/* Link change or NIC death, as a fault or as configured: tells every open context. */
void hca_port_set(struct hca *hca, bool up);
void hca_die(struct hca *hca);

/*
 * The engine found a fatal error on this QP: state becomes ERR (SQE for UD/UC send errors) and eng_qp_state is called back
 * for the flush. Write the failing completion before this call.
 */
void hca_qp_error(struct hca_qp *qp, enum ibv_qp_state state);

/* ---- offered by the engine to hca/ (called with the lock held unless said) ---- */

/* First open in this process, before any object exists: opens the wire, fills hca->id, no thread yet. 0 or -errno. */
int eng_open(struct hca *hca);
/* After eng_open: starts the engine thread. 0 or -errno. */
int eng_start(struct hca *hca);
/* Process exit: drains what is already acknowledged, stops the thread, closes the wire, prints counters. No lock held. */
void eng_stop(struct hca *hca);
/* In the child of a fork, single-threaded: forget thread and sockets of the parent (close fds), so that eng_open works. */
void eng_forked(struct hca *hca);

/* qp is complete (rings, CQs, PD), state RESET. 0 or -errno. */
int eng_qp_new(struct hca_qp *qp);
/*
 * Attributes and qp->state are already the new ones; old is the state before (may equal the new one, e.g. INIT->INIT or
 * attribute changes in RTS). RESET: drop everything, zero counters. RTR: responder starts at rq_psn. RTS from RTR:
 * requester starts at sq_psn. SQD: stop starting WQEs, then set sq_draining false and send SQ_DRAINED if wanted.
 * ERR: flush everything posted, now and later.
 */
void eng_qp_state(struct hca_qp *qp, enum ibv_qp_state old);
/* The QP is about to be freed: nothing of it may be touched later. Destroy of a live QP is allowed. */
void eng_qp_gone(struct hca_qp *qp);
/* The key is about to be freed or changed: drop cached translations. */
void eng_key_gone(struct hca *hca, const struct hca_key *key);
/* The CQ is about to be freed (no QP uses it any more). */
void eng_cq_gone(struct hca_cq *cq);
/* hca->link_up or hca->dead changed. */
void eng_port_changed(struct hca *hca);
/* Wakes a napping engine thread; any thread, no lock needed. */
void eng_kick(struct hca *hca);

/* ---- small helpers ---- */

static inline void hca_list_init(struct hca_list *head)
{
    head->next = head->prev = head;
}

static inline void hca_list_add(struct hca_list *head, struct hca_list *item)
{
    item->prev = head->prev;
    item->next = head;
    head->prev->next = item;
    head->prev = item;
}

static inline void hca_list_del(struct hca_list *item)
{
    item->prev->next = item->next;
    item->next->prev = item->prev;
    item->next = item->prev = item;
}

#define hca_container(ptr, type, member) ((type *)(void *)((char *)(ptr) - offsetof(type, member)))

#endif
