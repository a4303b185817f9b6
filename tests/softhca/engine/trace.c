/* SPDX-License-Identifier: BSD-3-Clause */
/* The text trace of WQEs and completions, and the report of counters. */
#include "engine/engine.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TRACE_BYTES 65536
#define LINE_BYTES 600
#define RAW_BYTES 128

static int trace_fd = -1;
static unsigned trace_users; /* engines of this process, guarded by the device lock as the rest */
static bool trace_raw; /* SOFTHCA_TRACE_RAW: entries byte by byte as well */
static char trace_buf[TRACE_BYTES];
static size_t trace_used;

void eng_trace_open(const char *path)
{
    if (!path)
        return;
    trace_users++;
    if (trace_fd >= 0)
        return;
    trace_raw = getenv("SOFTHCA_TRACE_RAW") != NULL;
    trace_fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (trace_fd < 0)
        hca_log(HCA_LINT, "trace file %s: %m", path);
}

bool eng_trace_on(void)
{
    return trace_fd >= 0;
}

/* Whole lines in one write: processes append to the same file. */
void eng_trace_flush(void)
{
    size_t used = trace_used;

    trace_used = 0;
    if (used && trace_fd >= 0 && write(trace_fd, trace_buf, used) < 0)
        return; /* a full disk must not stop the traffic */
}

void eng_trace_close(void)
{
    eng_trace_flush();
    if (!trace_users || --trace_users)
        return;
    if (trace_fd >= 0)
        close(trace_fd);
    trace_fd = -1;
}

void eng_trace(const char *fmt, ...)
{
    uint64_t now;
    va_list ap;
    int n, m;

    if (trace_fd < 0)
        return;
    if (trace_used + LINE_BYTES > TRACE_BYTES)
        eng_trace_flush();
    now = hca_now_ns();
    n = snprintf(trace_buf + trace_used, LINE_BYTES, "%llu.%09llu %u ", (unsigned long long)(now / 1000000000),
                 (unsigned long long)(now % 1000000000), hca_current->id.slot);
    va_start(ap, fmt);
    m = vsnprintf(trace_buf + trace_used + n, (size_t)(LINE_BYTES - n - 1), fmt, ap);
    va_end(ap);
    n += m < LINE_BYTES - n - 1 ? m : LINE_BYTES - n - 2;
    trace_buf[trace_used + (size_t)n] = '\n';
    trace_used += (size_t)n + 1;
}

void eng_trace_send(const struct eng_qp *q, const struct eng_send *s)
{
    char raw[2 * RAW_BYTES + 6] = "";

    if (trace_raw) {
        memcpy(raw, " raw ", 5);
        for (uint32_t i = 0; i < s->bytes && i < RAW_BYTES; i++)
            snprintf(raw + 5 + 2 * i, 3, "%02x", s->raw[i]);
    }
    eng_trace("WQE qp 0x%06x index %u %s opmod %u ds %u flags 0x%02x len %u raddr 0x%llx rkey 0x%x psn %u packets %u%s%s",
              q->qp->qpn, s->index, eng_opcode_name(s->opcode), s->opmod, s->bytes / 16, s->flags, s->len,
              (unsigned long long)s->raddr, s->rkey, s->psn, s->npsn, s->syndrome ? " BAD" : "", raw);
}

static const char *cqe_name(uint8_t opcode)
{
    switch (opcode) {
    case MLX5_CQE_REQ: return "REQ";
    case MLX5_CQE_RESP_WR_IMM: return "RECV_WRITE_IMM";
    case MLX5_CQE_RESP_SEND: return "RECV";
    case MLX5_CQE_RESP_SEND_IMM: return "RECV_IMM";
    case MLX5_CQE_RESP_SEND_INV: return "RECV_INV";
    case MLX5_CQE_REQ_ERR: return "REQ_ERR";
    case MLX5_CQE_RESP_ERR: return "RECV_ERR";
    default: return "UNKNOWN";
    }
}

void eng_trace_cqe(const struct hca_cq *cq, const struct hca_cqe *cqe)
{
    eng_trace("CQE cq 0x%x at %u qp 0x%06x wqe %u %s op %s bytes %u syndrome 0x%02x", cq->cqn, cq->producer, cqe->qpn,
              cqe->wqe_counter, cqe_name(cqe->opcode), eng_opcode_name(cqe->send_opcode), cqe->byte_cnt, cqe->syndrome);
}

struct row {
    const char *name;
    const char *text;
    uint64_t value;
};

static size_t add_rows(char *out, size_t len, size_t at, const struct row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!rows[i].value)
            continue;
        if (at >= len)
            return at;
        at += (size_t)snprintf(out + at, len - at, "%-18s %14llu  %s\n", rows[i].name,
                               (unsigned long long)rows[i].value, rows[i].text);
    }
    return at;
}

size_t eng_report(void *ctx, char *out, size_t len)
{
    struct eng *e = ctx;
    const struct wire_stats *w = wire_stats(e->wire);
    const struct row mine[] = {
#define X(name, text) { #name, text, e->count.name },
        ENG_COUNTERS(X)
#undef X
    };
    const struct row wire[] = {
        { "tx_packets", "packets sent", w->tx_packets },
        { "tx_bytes", "bytes sent", w->tx_bytes },
        { "rx_packets", "packets received", w->rx_packets },
        { "rx_bytes", "bytes received", w->rx_bytes },
        { "tx_unreachable", "packets to a slot that nobody holds", w->tx_unreachable },
        { "rx_short", "packets dropped: too short", w->rx_short },
        { "rx_icrc", "packets dropped: wrong ICRC", w->rx_icrc },
        { "rx_foreign", "packets and peers dropped: not of this fabric", w->rx_foreign },
        { "fault_loss", "injected: packets lost", w->fault_loss },
        { "fault_dup", "injected: packets sent twice", w->fault_dup },
        { "fault_reorder", "injected: packets overtaken", w->fault_reorder },
        { "fault_delay", "injected: packets delayed", w->fault_delay },
        { "fault_corrupt", "injected: packets corrupted", w->fault_corrupt },
    };
    char faults[256];
    size_t at;

    fault_print(&e->faults, faults, sizeof(faults));
    at = (size_t)snprintf(out, len, "softhca slot %u pid %d wire %s faults %s seed %llu device mlx5_%u\n", e->hca->id.slot, getpid(),
                          wire_kind(e->wire), faults[0] ? faults : "none", (unsigned long long)e->faults.seed, hca_index(e->hca));
    at = add_rows(out, len, at, mine, sizeof(mine) / sizeof(mine[0]));
    at = add_rows(out, len, at, wire, sizeof(wire) / sizeof(wire[0]));
    return at < len ? at : len - 1;
}
