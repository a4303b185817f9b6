/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine: one thread that sees doorbells, executes work queue entries, and speaks the reliable, unreliable and
 * datagram protocols with other engines. Everything here is guarded by the device lock.
 */
#ifndef SOFTHCA_ENGINE_ENGINE_H
#define SOFTHCA_ENGINE_ENGINE_H

#include "engine/counters.h"
#include "hca/hca.h"
#include "mem/mem.h"
#include "wire/wire.h"

#define ENG_MAX_WQE_BYTES 1024   /* 6 bits of 16-byte units */
#define ENG_SENDS 128            /* WQEs of a queue pair in execution; power of two */
#define ENG_RESPONSES 64         /* answers of a queue pair waiting to be sent; power of two */
#define ENG_REPLAYS 32           /* atomics remembered; at least twice HCA_MAX_RD_ATOMIC */
#define ENG_SPANS 16

/* A send WQE in execution: a copy of the entry and how far it got. */
struct eng_send {
    uint16_t index;              /* of its first block */
    uint16_t blocks;
    uint8_t opcode, opmod, flags; /* flags: fm_ce_se */
    uint8_t syndrome;            /* not 0: fails with it once it is the oldest */
    bool answered_by_data;       /* read or atomic: a plain acknowledgement does not complete it */
    bool done;                   /* that answer is in */
    uint32_t imm_be;
    uint32_t len;                /* bytes of the message */
    uint32_t psn, npsn;          /* npsn 0: nothing goes on the wire */
    uint32_t got;                /* read: answers received, in order */
    uint64_t raddr;
    uint32_t rkey;
    uint16_t data_off, bytes;    /* data segments stand in raw[data_off..bytes) */
    uint8_t raw[ENG_MAX_WQE_BYTES];
};

enum eng_response_kind { ENG_RSP_ACK, ENG_RSP_READ, ENG_RSP_ATOMIC };

struct eng_response {
    enum eng_response_kind kind;
    uint8_t syndrome;            /* AETH */
    uint32_t psn;                /* next to send */
    uint32_t first_psn;          /* READ: of the first answer */
    uint64_t original;
    uint64_t va;
    uint32_t rkey, len, off;
};

struct eng_replay {
    bool valid;
    uint32_t psn;
    uint64_t original;
};

/* A receive WQE in use: the scatter list and how much of it is filled. */
struct eng_recv {
    bool held;
    uint16_t index;
    uint32_t filled;
    uint16_t bytes;
    uint8_t segs[ENG_MAX_WQE_BYTES];
};

#define ENG_RTO_MOST_NS 500000000ull

enum eng_nak_state { ENG_NAK_NONE, ENG_NAK_SEQ_SENT, ENG_NAK_RNR_SENT };

struct eng_qp {
    struct hca_qp *qp;
    struct eng *eng;
    struct hca_list active;      /* in eng->active while there is something to do */
    bool is_active;
    uint32_t peer_slot;

    /* Requester. head <= send <= tail, free-running; slot = n % ENG_SENDS. */
    struct eng_send *sends;
    uint32_t head, tail, send;
    uint32_t sent;               /* packets of sends[send] that are out */
    uint32_t next_psn, una, max_psn; /* not yet given; oldest unacknowledged; beyond the newest ever sent */
    uint16_t fetch, producer;    /* next block to fetch; producer index of the last doorbell */
    uint16_t rung;               /* without a doorbell record: the farthest that a doorbell has announced */
    uint64_t doorbell_due;       /* slow doorbell: look at the record then */
    uint64_t progress_ns, resend_ns, rto_ns, rnr_until;
    uint64_t timed_ns, rtt_ns;   /* when the packet before timed_psn went out, 0: none is timed; how long answers take */
    uint32_t timed_psn;
    unsigned rnr_tries;
    uint64_t fetched;            /* WQEs since RESET, for the injected error */
    bool wire_full;

    /* Responder. */
    uint32_t epsn, msn;
    enum eng_nak_state nak;
    uint64_t nak_ns;
    bool in_msg, msg_is_send;
    uint64_t write_va;
    uint32_t write_rkey, write_left, write_len;
    struct eng_recv recv;
    struct eng_response *responses;
    uint32_t rsp_head, rsp_tail;
    struct eng_replay replay[ENG_REPLAYS];
    uint32_t next_replay;
    bool comm_established;
    unsigned complaints;
};

struct eng {
    struct hca *hca;
    struct wire *wire;
    struct eng_counters count;
    struct fault_plan faults;
    struct hca_list active;
    pthread_t thread;
    bool running, stop;          /* stop: atomic */
    uint64_t now;                /* of the current round */
    uint64_t start_ns;           /* first doorbell */
    uint64_t last_timers;
    uint64_t link_up_ns;         /* when an injected link failure ends */
    bool link_fault_done, any_delayed;
    bool denies;                 /* injected: no peer may touch this process's memory any more */
    unsigned window;
    uint64_t rto_ns, timeout_scale;
    unsigned rounds, idle, spin;
    uint64_t busy_ns;            /* the last round that had something to do */
    bool undisturbed;            /* the last nap ended by its time: the wire has nothing */
};

#define ENG_OF(qp) ((struct eng_qp *)(qp)->eng)

/* ---- sched.c ---- */
void eng_activate(struct eng_qp *q);
bool eng_link_open(const struct eng *e);
/* Acts on all doorbells that are waiting; returns how many registers were written. */
unsigned eng_scan_pages(struct eng *e);

/* ---- wqe.c ---- */

/* Which rule a WQE breaks; field names the place for the message. */
struct eng_lint {
    const char *field;
    uint64_t found;
    const char *rule;
};

struct eng_wqe_rules {
    uint32_t qpn;
    uint16_t index;
    enum hca_qp_type type;
    bool ext_atomics;
};

/*
 * Parses s->raw[0..s->bytes), bytes at least 16. Returns true and fills the other fields, or false with *lint: the entry
 * is not legal and must fail with s->syndrome. Pure: reads nothing else.
 */
bool eng_wqe_parse(struct eng_send *s, const struct eng_wqe_rules *rules, struct eng_lint *lint);
/* Copies the WQE at q->fetch into the next free place and parses it. false: nothing to fetch, or no room. */
bool eng_wqe_fetch(struct eng_qp *q);
/* A queue pair without a doorbell record was rung: notes what the value announces, for the doorbell that follows. */
void eng_note_bell(struct eng_qp *q, uint64_t value);
uint16_t eng_announced(struct eng_qp *q);
/* The doorbell of the queue pair was rung; value as written to the register, 0 when only the page is known. */
void eng_doorbell(struct eng_qp *q, uint64_t value);
void eng_complain(struct eng_qp *q, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
const char *eng_opcode_name(uint8_t opcode);

/* ---- umr.c ---- */
bool eng_umr_parse(struct eng_send *s, struct eng_lint *lint);
/* Executes it, all before it being complete: 0 or the syndrome to fail with. */
uint8_t eng_umr_run(struct eng_qp *q, const struct eng_send *s);

/* ---- gather.c ---- */

enum eng_copy_result { ENG_COPY_OK, ENG_COPY_PROTECTION, ENG_COPY_SHORT };
/* Bytes [pos, pos + len) of a list of data segments, out of or into memory. */
enum eng_copy_result eng_gather(struct eng_qp *q, const uint8_t *segs, size_t bytes, uint32_t pos, uint8_t *out,
                                uint32_t len);
enum eng_copy_result eng_scatter(struct eng_qp *q, const uint8_t *segs, size_t bytes, uint32_t pos, const uint8_t *in,
                                 uint32_t len);
/*
 * Around access to our memory on behalf of a peer. With the application's own access it is ordered by what the two
 * applications tell each other; when the peer is another process, ThreadSanitizer cannot know, and does not look.
 */
void eng_remote_begin(const struct eng_qp *q);
void eng_remote_end(const struct eng_qp *q);
/* A peer's access to [va, va + len). Returns false, counted and logged, when it is refused. spans NULL: only checks. */
bool eng_remote_map(struct eng_qp *q, uint32_t rkey, uint64_t va, uint64_t len, uint32_t need, struct hca_span *spans,
                    unsigned *n_out);
bool eng_remote_write(struct eng_qp *q, uint32_t rkey, uint64_t va, const uint8_t *in, uint32_t len);
bool eng_remote_read(struct eng_qp *q, uint32_t rkey, uint64_t va, uint8_t *out, uint32_t len);

/* ---- requester.c ---- */
unsigned eng_requester(struct eng_qp *q, unsigned budget); /* packets sent or WQEs done */
bool eng_requester_idle(const struct eng_qp *q);           /* nothing to do until a packet, doorbell or timer */
void eng_requester_timer(struct eng_qp *q);
void eng_rewind(struct eng_qp *q, uint32_t psn);
uint32_t eng_next_psn(const struct eng_qp *q);             /* sequence number of the next packet to send */
/* Marks sends complete from the oldest on while everything before psn is acknowledged; trigger: see response.c. */
void eng_retire(struct eng_qp *q);
void eng_complete(struct eng_qp *q, struct eng_send *s);
void eng_fail_head(struct eng_qp *q, uint8_t syndrome, uint8_t vendor);
uint64_t eng_packet_key(const struct eng_qp *q, const struct pkt *p);

/* ---- response.c ---- */
void eng_response_packet(struct eng_qp *q, const struct pkt *p);

/* ---- responder.c ---- */
void eng_request_packet(struct eng_qp *q, const struct pkt *p);
void eng_uc_packet(struct eng_qp *q, const struct pkt *p);
unsigned eng_respond(struct eng_qp *q, unsigned budget);   /* sends waiting answers; returns how many packets */
void eng_answer_ack(struct eng_qp *q, uint32_t psn, uint8_t syndrome);
/* Refuses the request: negative acknowledgement, completion of a held receive WQE, event, queue pair to ERR. */
void eng_refuse(struct eng_qp *q, uint32_t psn, enum pkt_nak code, uint8_t recv_syndrome);

/* ---- atomics.c ---- */
void eng_atomic_packet(struct eng_qp *q, const struct pkt *p);
void eng_atomic_replay(struct eng_qp *q, const struct pkt *p);
/* Fills the request for an atomic WQE; the answer goes to memory with eng_atomic_result. */
void eng_atomic_request(const struct eng_send *s, struct pkt *p);
enum eng_copy_result eng_atomic_result(struct eng_qp *q, const struct eng_send *s, uint64_t original);

/* ---- recv.c ---- */
bool eng_recv_fetch(struct eng_qp *q); /* false: no receive WQE */
enum eng_copy_result eng_recv_put(struct eng_qp *q, const uint8_t *data, uint32_t len);
void eng_recv_done(struct eng_qp *q, const struct hca_cqe *what);
void eng_recv_fail(struct eng_qp *q, uint8_t syndrome);
void eng_ud_packet(struct eng_qp *q, const struct pkt *p, uint32_t src_slot);

/* ---- flush.c ---- */
void eng_flush(struct eng_qp *q);
void eng_cqe(struct eng_qp *q, struct hca_cq *cq, const struct hca_cqe *cqe);
bool eng_flush_due(struct eng_qp *q);

/* ---- trace.c ---- */
void eng_trace_open(const char *path);
void eng_trace_flush(void);
void eng_trace_close(void);
bool eng_trace_on(void);
void eng_trace(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void eng_trace_send(const struct eng_qp *q, const struct eng_send *s);
void eng_trace_cqe(const struct hca_cq *cq, const struct hca_cqe *cqe);
size_t eng_report(void *ctx, char *out, size_t len);

static inline void eng_trace_line(const char *what, const struct eng_qp *q, uint32_t value)
{
    if (eng_trace_on())
        eng_trace("%s qp 0x%06x %u", what, q->qp->qpn, value);
}

#endif
