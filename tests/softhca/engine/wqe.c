/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Send work queue entries: fetched after a doorbell and only up to the record's index, then checked field by field.
 * Layouts: struct mlx5_wqe_* of mlx5dv.h.
 */
#include "engine/engine.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    OP_DUMP = 0x23,
    SEG = 16,
    AV_COMPACT = 16,
    AV_FULL = 48,
    INLINE = 1u << 31,
    INLINE_RESERVED = 0x7ffffc00,
    MAX_COMPLAINTS = 20,
    EXT_ATOMIC_4 = 8,            /* opmod of the extended atomics: operand size */
    EXT_ATOMIC_8 = 9,
    FLAGS_RESERVED = 0x11,       /* bits of fm_ce_se without meaning */
    FENCE_MAX = 4,
};

const char *eng_opcode_name(uint8_t opcode)
{
    switch (opcode) {
    case MLX5_OPCODE_NOP: return "NOP";
    case MLX5_OPCODE_SEND_INVAL: return "SEND_INVAL";
    case MLX5_OPCODE_RDMA_WRITE: return "WRITE";
    case MLX5_OPCODE_RDMA_WRITE_IMM: return "WRITE_IMM";
    case MLX5_OPCODE_SEND: return "SEND";
    case MLX5_OPCODE_SEND_IMM: return "SEND_IMM";
    case MLX5_OPCODE_RDMA_READ: return "READ";
    case MLX5_OPCODE_ATOMIC_CS: return "ATOMIC_CS";
    case MLX5_OPCODE_ATOMIC_FA: return "ATOMIC_FA";
    case MLX5_OPCODE_ATOMIC_MASKED_CS: return "MASKED_CS";
    case MLX5_OPCODE_ATOMIC_MASKED_FA: return "MASKED_FA";
    case MLX5_OPCODE_UMR: return "UMR";
    case OP_DUMP: return "DUMP";
    default: return "UNKNOWN";
    }
}

void eng_complain(struct eng_qp *q, const char *fmt, ...)
{
    char text[256];
    va_list ap;

    q->eng->count.lint++;
    if (q->complaints++ >= MAX_COMPLAINTS)
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    hca_log(HCA_LINT, "lint: qp 0x%06x: %s%s", q->qp->qpn, text,
            q->complaints == MAX_COMPLAINTS ? " (more of this queue pair are counted, not shown)" : "");
    eng_trace("LINT qp 0x%06x %s", q->qp->qpn, text);
}

static bool broken(struct eng_send *s, struct eng_lint *lint, const char *field, uint64_t found, const char *rule)
{
    *lint = (struct eng_lint){ field, found, rule };
    s->syndrome = MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;
    return false;
}

/* Walks the data segments, adds up the message length. */
static bool parse_data(struct eng_send *s, struct eng_lint *lint)
{
    uint64_t total = 0;
    uint32_t at = s->data_off;

    while (at < s->bytes) {
        uint32_t count = pkt_get32(s->raw + at);

        if (count & INLINE) {
            uint32_t len = count & ~(uint32_t)INLINE;

            if (len & INLINE_RESERVED)
                return broken(s, lint, "inline.byte_count", count, "at most 1023 bytes can be inline");
            if (at + 4 + len > s->bytes)
                return broken(s, lint, "inline.byte_count", len, "inline data runs past ds");
            total += len;
            at += (4 + len + SEG - 1) & ~(uint32_t)(SEG - 1);
            continue;
        }
        if (at + SEG > s->bytes)
            return broken(s, lint, "data_seg", at, "segment runs past ds");
        total += count;
        at += SEG;
    }
    if (total > 1u << HCA_LOG_MAX_MSG) {
        s->syndrome = MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR;
        *lint = (struct eng_lint){ "byte_count", total, "message is longer than the port allows" };
        return false;
    }
    s->len = (uint32_t)total;
    return true;
}

static bool parse_raddr(struct eng_send *s, struct eng_lint *lint)
{
    if (s->bytes < 2 * SEG)
        return broken(s, lint, "ds", s->bytes / SEG, "no room for the remote address segment");
    s->raddr = pkt_get64(s->raw + SEG);
    s->rkey = pkt_get32(s->raw + SEG + 8);
    if (pkt_get32(s->raw + SEG + 12))
        return broken(s, lint, "raddr.reserved", pkt_get32(s->raw + SEG + 12), "must be 0");
    s->data_off = 2 * SEG;
    return true;
}

/* One pointer segment of exactly the operand's size takes the old value. */
static bool parse_result(struct eng_send *s, struct eng_lint *lint, uint16_t off, uint32_t size)
{
    s->data_off = off;
    if (s->bytes != off + SEG)
        return broken(s, lint, "ds", s->bytes / SEG, "atomic takes exactly one data segment");
    if (pkt_get32(s->raw + off) != size)
        return broken(s, lint, "data_seg.byte_count", pkt_get32(s->raw + off), "must be the operand's size");
    if (s->raddr & (size - 1))
        return broken(s, lint, "raddr.raddr", s->raddr, "atomic address must be naturally aligned");
    s->len = size;
    s->answered_by_data = true;
    return true;
}

static bool parse_atomic(struct eng_send *s, const struct eng_wqe_rules *rules, struct eng_lint *lint)
{
    bool masked = s->opcode == MLX5_OPCODE_ATOMIC_MASKED_CS || s->opcode == MLX5_OPCODE_ATOMIC_MASKED_FA;
    uint32_t size = 8;

    if (!parse_raddr(s, lint))
        return false;
    if (!masked) {
        if (s->opmod)
            return broken(s, lint, "opmod", s->opmod, "must be 0 for a standard atomic");
        return parse_result(s, lint, 3 * SEG, size);
    }
    if (s->opmod != EXT_ATOMIC_4 && s->opmod != EXT_ATOMIC_8)
        return broken(s, lint, "opmod", s->opmod, "extended atomic: 8 (4 bytes) or 9 (8 bytes)");
    if (!rules->ext_atomics)
        return broken(s, lint, "opcode", s->opcode, "queue pair context does not allow extended atomics");
    size = s->opmod == EXT_ATOMIC_4 ? 4 : 8;
    return parse_result(s, lint, s->opcode == MLX5_OPCODE_ATOMIC_MASKED_CS && size == 8 ? 4 * SEG : 3 * SEG, size);
}

static bool parse_send(struct eng_send *s, const struct eng_wqe_rules *rules, struct eng_lint *lint)
{
    s->data_off = SEG;
    if (rules->type == HCA_UD) {
        if (s->bytes < 2 * SEG)
            return broken(s, lint, "ds", s->bytes / SEG, "no room for the address vector");
        s->data_off += pkt_get32(s->raw + SEG + 8) >> 31 ? AV_FULL : AV_COMPACT;
        if (s->bytes < s->data_off)
            return broken(s, lint, "ds", s->bytes / SEG, "no room for the address vector");
    }
    return parse_data(s, lint);
}

static bool allowed(enum hca_qp_type type, uint8_t opcode)
{
    switch (opcode) {
    case MLX5_OPCODE_NOP:
    case OP_DUMP:
    case MLX5_OPCODE_SEND:
    case MLX5_OPCODE_SEND_IMM:
    case MLX5_OPCODE_UMR:
        return true;
    case MLX5_OPCODE_RDMA_WRITE:
    case MLX5_OPCODE_RDMA_WRITE_IMM:
        return type != HCA_UD;
    case MLX5_OPCODE_SEND_INVAL:
    case MLX5_OPCODE_RDMA_READ:
    case MLX5_OPCODE_ATOMIC_CS:
    case MLX5_OPCODE_ATOMIC_FA:
    case MLX5_OPCODE_ATOMIC_MASKED_CS:
    case MLX5_OPCODE_ATOMIC_MASKED_FA:
        return type != HCA_UD && type != HCA_UC;
    default:
        return false;
    }
}

static bool parse_control(struct eng_send *s, const struct eng_wqe_rules *rules, struct eng_lint *lint)
{
    uint32_t word0 = pkt_get32(s->raw), word1 = pkt_get32(s->raw + 4);

    s->opcode = (uint8_t)word0;
    s->opmod = (uint8_t)(word0 >> 24);
    s->flags = s->raw[11];
    memcpy(&s->imm_be, s->raw + 12, sizeof(s->imm_be));
    if ((uint16_t)(word0 >> 8) != rules->index)
        return broken(s, lint, "ctrl.wqe_index", (uint16_t)(word0 >> 8), "is not the index of this block");
    if (word1 >> 8 != rules->qpn)
        return broken(s, lint, "ctrl.qpn", word1 >> 8, "is not the number of this queue pair");
    if (word1 & 0xc0)
        return broken(s, lint, "ctrl.qpn_ds", word1, "bits 7-6 must be 0");
    if ((s->flags & FLAGS_RESERVED) || s->flags >> 5 > FENCE_MAX)
        return broken(s, lint, "ctrl.fm_ce_se", s->flags, "reserved bits or fence mode");
    if (!allowed(rules->type, s->opcode))
        return broken(s, lint, "ctrl.opcode", s->opcode, "unknown, or not for this kind of queue pair");
    return true;
}

bool eng_wqe_parse(struct eng_send *s, const struct eng_wqe_rules *rules, struct eng_lint *lint)
{
    bool ok;

    s->syndrome = 0;
    s->answered_by_data = s->done = false;
    s->len = s->got = s->rkey = 0;
    s->raddr = 0;
    s->data_off = s->bytes;
    if (!parse_control(s, rules, lint))
        return false;
    switch (s->opcode) {
    case MLX5_OPCODE_NOP:
        return true;
    case MLX5_OPCODE_UMR:
        return eng_umr_parse(s, lint);
    case OP_DUMP:
        s->data_off = SEG;
        return parse_data(s, lint);
    case MLX5_OPCODE_SEND:
    case MLX5_OPCODE_SEND_IMM:
    case MLX5_OPCODE_SEND_INVAL:
        return parse_send(s, rules, lint);
    case MLX5_OPCODE_RDMA_READ:
        ok = parse_raddr(s, lint) && parse_data(s, lint);
        s->answered_by_data = ok;
        return ok;
    case MLX5_OPCODE_RDMA_WRITE:
    case MLX5_OPCODE_RDMA_WRITE_IMM:
        return parse_raddr(s, lint) && parse_data(s, lint);
    default:
        return parse_atomic(s, rules, lint);
    }
}

/* Copies block by block: an entry may wrap at the ring's end. */
static int copy_blocks(struct eng_qp *q, struct eng_send *s)
{
    const struct hca_qp *qp = q->qp;

    for (uint16_t i = 0; i < s->blocks; i++) {
        uint64_t slot = (uint64_t)(uint16_t)(q->fetch + i) & (qp->sq_entries - 1);

        if (hca_buf_read(&qp->sq, slot * HCA_WQEBB, s->raw + (size_t)i * HCA_WQEBB, HCA_WQEBB))
            return -EIO;
    }
    return 0;
}

static uint32_t packets_of(const struct eng_qp *q, const struct eng_send *s)
{
    if (s->syndrome || s->opcode == MLX5_OPCODE_NOP || s->opcode == MLX5_OPCODE_UMR || s->opcode == OP_DUMP)
        return 0;
    if (q->qp->type == HCA_UD || s->len <= q->qp->mtu)
        return 1;
    return (s->len + q->qp->mtu - 1) / q->qp->mtu;
}

static void check_more(struct eng_qp *q, struct eng_send *s)
{
    const struct fault_plan *f = &q->eng->faults;

    /* A datagram queue pair has no path of its own: the port's MTU counts. */
    if (q->qp->type == HCA_UD && !s->syndrome && s->len > PKT_MAX_MTU) {
        s->syndrome = MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR;
        eng_complain(q, "wqe %u: datagram of %u bytes, the port's MTU is %u", s->index, s->len, PKT_MAX_MTU);
    }
    if (f->qp_error_after && ++q->fetched == f->qp_error_after)
        s->syndrome = f->qp_error_syndrome;
}

static void parse_fetched(struct eng_qp *q, struct eng_send *s)
{
    const struct eng_wqe_rules rules = { q->qp->qpn, q->fetch, q->qp->type, q->qp->ext_atomics };
    uint16_t available = (uint16_t)(q->producer - q->fetch);
    struct eng_lint lint;

    if (!s->bytes) {
        s->opcode = s->raw[3];
        s->syndrome = MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;
        s->bytes = SEG;
        eng_complain(q, "wqe %u: ctrl.ds 0: an entry has at least the control segment", s->index);
    } else if (s->blocks > available) {
        s->opcode = s->raw[3];
        s->syndrome = MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;
        eng_complain(q, "wqe %u: ctrl.ds %u: runs past the producer index %u of the doorbell", s->index,
                     s->bytes / SEG, q->producer);
    } else if (!eng_wqe_parse(s, &rules, &lint)) {
        eng_complain(q, "wqe %u (%s): %s is 0x%llx: %s", s->index, eng_opcode_name(s->opcode), lint.field,
                     (unsigned long long)lint.found, lint.rule);
    }
    check_more(q, s);
}

bool eng_wqe_fetch(struct eng_qp *q)
{
    struct eng_send *s = &q->sends[q->tail % ENG_SENDS];
    uint32_t units;

    if (q->fetch == q->producer || q->tail - q->head >= ENG_SENDS)
        return false;
    s->index = q->fetch;
    s->blocks = 1;
    if (copy_blocks(q, s))
        memset(s->raw, 0, HCA_WQEBB);
    units = pkt_get32(s->raw + 4) & 0x3f;
    s->bytes = (uint16_t)(units * SEG);
    s->blocks = units ? (uint16_t)((units + 3) / 4) : 1;
    if (s->blocks > 1 && (s->blocks > q->qp->sq_entries || copy_blocks(q, s)))
        s->bytes = 0;
    parse_fetched(q, s);
    s->npsn = packets_of(q, s);
    s->psn = q->next_psn;
    q->next_psn = pkt_psn_add(q->next_psn, s->npsn);
    q->fetch = (uint16_t)(q->fetch + s->blocks);
    q->tail++;
    q->eng->count.wqe_posted++;
    q->qp->sq_consumer = q->fetch;
    q->qp->next_send_psn = q->next_psn;
    if (eng_trace_on())
        eng_trace_send(q, s);
    return true;
}

/* A real NIC would use stale or overwritten entries here without a word. */
static void check_record(struct eng_qp *q, uint64_t value, uint16_t record)
{
    uint32_t word0 = be32toh((uint32_t)value), word1 = be32toh((uint32_t)(value >> 32));
    uint16_t pending = (uint16_t)(record - q->fetch);

    if (value && word1 >> 8 == q->qp->qpn && (int16_t)(record - (uint16_t)(word0 >> 8)) < 0)
        eng_complain(q, "doorbell for index %u, but the doorbell record says %u: the record must be stored before",
                     (uint16_t)(word0 >> 8), record);
    if (pending > q->qp->sq_entries)
        eng_complain(q, "doorbell record says %u, the NIC is at %u: more than the %u blocks of the ring", record, q->fetch,
                     q->qp->sq_entries);
}

/*
 * rdma-core's test rings such a queue with the first 8 bytes of the last entry, DOCA's GPU library with the index behind it and nothing
 * else.  Under this rule both are right.  Doorbells may come in any order.
 */
void eng_note_bell(struct eng_qp *q, uint64_t value)
{
    uint32_t word0 = be32toh((uint32_t)value), word1 = be32toh((uint32_t)(value >> 32));
    uint16_t end = (uint16_t)((word0 >> 8) + ((word1 & 0x3f) + 3) / 4);
    uint16_t pending = (uint16_t)(end - q->fetch), more = (uint16_t)(end - q->rung);

    if (more == 0 || more > 0x8000) /* half of what 16 bits count: a ring's whole length may be announced at once */
        return;
    if (pending > q->qp->sq_entries)
        eng_complain(q, "doorbell announces entries up to %u, the NIC is at %u: more than the %u blocks of the ring", end, q->fetch,
                     q->qp->sq_entries);
    q->rung = end;
    q->eng->count.bare_doorbells++;
}

/* Up to where the entries are announced; acquire: those below are complete. */
uint16_t eng_announced(struct eng_qp *q)
{
    return q->qp->bare ? q->rung : (uint16_t)hca_dbrec_load(&q->qp->dbrec, 1);
}

void eng_doorbell(struct eng_qp *q, uint64_t value)
{
    uint16_t record;

    if (!q->qp->sq_entries || q->qp->state == IBV_QPS_RESET || q->qp->state == IBV_QPS_INIT)
        return;
    record = eng_announced(q);
    if (!q->qp->bare)
        check_record(q, value, record);
    q->producer = record;
    q->qp->sq_producer = record;
    eng_activate(q);
}
