/* SPDX-License-Identifier: BSD-3-Clause */
/* Parses and builds packets: base and extended transport headers, one table of opcodes for both directions. */
#include "wire/packet.h"

#include <errno.h>

#define SEND (PKT_KNOWN | PKT_IS_SEND | PKT_HAS_PAYLOAD)
#define WRITE (PKT_KNOWN | PKT_IS_WRITE | PKT_HAS_PAYLOAD)
#define READ_RSP (PKT_KNOWN | PKT_IS_RESPONSE | PKT_IS_READ_RSP | PKT_HAS_PAYLOAD)
#define ONLY (PKT_IS_FIRST | PKT_IS_LAST)

struct op_info {
    const char *name;
    uint32_t flags;
};

/* Indexed by the lower five bits: reliable and unreliable connections share the operations that both have. */
static const struct op_info op_table[32] = {
    [PKT_SEND_FIRST] = { "SEND_FIRST", SEND | PKT_IS_FIRST },
    [PKT_SEND_MIDDLE] = { "SEND_MIDDLE", SEND },
    [PKT_SEND_LAST] = { "SEND_LAST", SEND | PKT_IS_LAST },
    [PKT_SEND_LAST_IMM] = { "SEND_LAST_IMM", SEND | PKT_IS_LAST | PKT_HAS_IMM },
    [PKT_SEND_ONLY] = { "SEND_ONLY", SEND | ONLY },
    [PKT_SEND_ONLY_IMM] = { "SEND_ONLY_IMM", SEND | ONLY | PKT_HAS_IMM },
    [PKT_WRITE_FIRST] = { "WRITE_FIRST", WRITE | PKT_IS_FIRST | PKT_HAS_RETH },
    [PKT_WRITE_MIDDLE] = { "WRITE_MIDDLE", WRITE },
    [PKT_WRITE_LAST] = { "WRITE_LAST", WRITE | PKT_IS_LAST },
    [PKT_WRITE_LAST_IMM] = { "WRITE_LAST_IMM", WRITE | PKT_IS_LAST | PKT_HAS_IMM },
    [PKT_WRITE_ONLY] = { "WRITE_ONLY", WRITE | ONLY | PKT_HAS_RETH },
    [PKT_WRITE_ONLY_IMM] = { "WRITE_ONLY_IMM", WRITE | ONLY | PKT_HAS_RETH | PKT_HAS_IMM },
    [PKT_READ_REQ] = { "READ_REQ", PKT_KNOWN | ONLY | PKT_HAS_RETH },
    [PKT_READ_RSP_FIRST] = { "READ_RSP_FIRST", READ_RSP | PKT_IS_FIRST | PKT_HAS_AETH },
    [PKT_READ_RSP_MIDDLE] = { "READ_RSP_MIDDLE", READ_RSP },
    [PKT_READ_RSP_LAST] = { "READ_RSP_LAST", READ_RSP | PKT_IS_LAST | PKT_HAS_AETH },
    [PKT_READ_RSP_ONLY] = { "READ_RSP_ONLY", READ_RSP | ONLY | PKT_HAS_AETH },
    [PKT_ACK] = { "ACK", PKT_KNOWN | PKT_IS_RESPONSE | PKT_HAS_AETH },
    [PKT_ATOMIC_ACK] = { "ATOMIC_ACK", PKT_KNOWN | PKT_IS_RESPONSE | PKT_HAS_AETH | PKT_HAS_ATOMIC_ACK },
    [PKT_CMP_SWAP] = { "CMP_SWAP", PKT_KNOWN | ONLY | PKT_HAS_ATOMIC },
    [PKT_FETCH_ADD] = { "FETCH_ADD", PKT_KNOWN | ONLY | PKT_HAS_ATOMIC },
    [PKT_SEND_LAST_INV] = { "SEND_LAST_INV", SEND | PKT_IS_LAST | PKT_HAS_IMM },
    [PKT_SEND_ONLY_INV] = { "SEND_ONLY_INV", SEND | ONLY | PKT_HAS_IMM },
};

uint32_t pkt_flags(uint8_t op)
{
    uint32_t base = PKT_BASE(op);

    switch (PKT_TRANSPORT(op)) {
    case PKT_RC:
        return op_table[base].flags;
    case PKT_UC:
        return base <= PKT_WRITE_ONLY_IMM ? op_table[base].flags : 0;
    case PKT_UD:
        return base == PKT_SEND_ONLY || base == PKT_SEND_ONLY_IMM ? op_table[base].flags | PKT_HAS_DETH : 0;
    default:
        return op == PKT_MASKED_ATOMIC ? (uint32_t)PKT_KNOWN | ONLY | PKT_HAS_MASKED : 0;
    }
}

const char *pkt_op_name(uint8_t op)
{
    if (op == PKT_MASKED_ATOMIC)
        return "MASKED_ATOMIC";
    return pkt_flags(op) ? op_table[PKT_BASE(op)].name : "UNKNOWN";
}

static size_t ext_len(uint32_t flags)
{
    return (flags & PKT_HAS_DETH ? 8u : 0u) + (flags & PKT_HAS_RETH ? 16u : 0u) + (flags & PKT_HAS_AETH ? 4u : 0u) +
           (flags & PKT_HAS_ATOMIC ? 28u : 0u) + (flags & PKT_HAS_ATOMIC_ACK ? 8u : 0u) +
           (flags & PKT_HAS_IMM ? 4u : 0u) + (flags & PKT_HAS_MASKED ? 48u : 0u);
}

static int parse_masked(const uint8_t *p, struct pkt *out)
{
    struct pkt_masked *m = &out->masked;

    out->va = pkt_get64(p);
    out->rkey = pkt_get32(p + 8);
    m->compare_swap = p[12];
    m->size = p[13];
    if (m->compare_swap > 1 || (m->size != 4 && m->size != 8) || p[14] || p[15])
        return -EINVAL;
    for (int i = 0; i < 4; i++)
        m->operand[i] = pkt_get64(p + 16 + 8 * i);
    return 0;
}

static int parse_ext(const uint8_t *p, struct pkt *out)
{
    uint32_t flags = out->ext;

    if (flags & PKT_HAS_DETH) {
        out->qkey = pkt_get32(p);
        out->src_qpn = pkt_get24(p + 5);
        p += 8;
    }
    if (flags & PKT_HAS_RETH) {
        out->va = pkt_get64(p);
        out->rkey = pkt_get32(p + 8);
        out->dma_len = pkt_get32(p + 12);
        p += 16;
    }
    if (flags & PKT_HAS_ATOMIC) {
        out->va = pkt_get64(p);
        out->rkey = pkt_get32(p + 8);
        out->swap_add = pkt_get64(p + 12);
        out->compare = pkt_get64(p + 20);
        p += 28;
    }
    if (flags & PKT_HAS_AETH) {
        out->syndrome = p[0];
        out->msn = pkt_get24(p + 1);
        p += 4;
    }
    if (flags & PKT_HAS_ATOMIC_ACK) {
        out->original = pkt_get64(p);
        p += 8;
    }
    if (flags & PKT_HAS_IMM) {
        memcpy(&out->imm, p, sizeof(out->imm));
        p += 4;
    }
    return flags & PKT_HAS_MASKED ? parse_masked(p, out) : 0;
}

int pkt_parse(const uint8_t *bytes, size_t len, struct pkt *out)
{
    size_t head;

    memset(out, 0, sizeof(*out));
    if (len < PKT_BTH_LEN)
        return -EINVAL;
    out->op = bytes[0];
    out->ext = pkt_flags(out->op);
    out->solicited = bytes[1] >> 7;
    out->pad = bytes[1] >> 4 & 3;
    out->pkey = (uint16_t)(bytes[2] << 8 | bytes[3]);
    out->dqpn = pkt_get24(bytes + 5);
    out->ack_req = bytes[8] >> 7;
    out->psn = pkt_get24(bytes + 9);
    if (!out->ext || (bytes[1] & 0x0f)) /* low bits: transport header version, always 0 */
        return -EINVAL;
    head = PKT_BTH_LEN + ext_len(out->ext);
    if (len < head + out->pad || (len & 3) || len - head > PKT_MAX_MTU)
        return -EINVAL;
    if (parse_ext(bytes + PKT_BTH_LEN, out))
        return -EINVAL;
    out->payload = bytes + head;
    out->payload_len = (uint32_t)(len - head - out->pad);
    if (!(out->ext & PKT_HAS_PAYLOAD) && (out->payload_len || out->pad))
        return -EINVAL;
    return 0;
}

static uint8_t *build_ext(uint8_t *o, const struct pkt *p, uint32_t flags)
{
    if (flags & PKT_HAS_DETH) {
        pkt_put32(o, p->qkey);
        pkt_put32(o + 4, p->src_qpn & PKT_PSN_MASK);
        o += 8;
    }
    if (flags & (PKT_HAS_RETH | PKT_HAS_ATOMIC | PKT_HAS_MASKED)) {
        pkt_put64(o, p->va);
        pkt_put32(o + 8, p->rkey);
        o += 12;
    }
    if (flags & PKT_HAS_RETH) {
        pkt_put32(o, p->dma_len);
        o += 4;
    }
    if (flags & PKT_HAS_ATOMIC) {
        pkt_put64(o, p->swap_add);
        pkt_put64(o + 8, p->compare);
        o += 16;
    }
    if (flags & PKT_HAS_AETH) {
        pkt_put32(o, (uint32_t)p->syndrome << 24 | (p->msn & PKT_PSN_MASK));
        o += 4;
    }
    if (flags & PKT_HAS_ATOMIC_ACK) {
        pkt_put64(o, p->original);
        o += 8;
    }
    if (flags & PKT_HAS_IMM) {
        memcpy(o, &p->imm, sizeof(p->imm));
        o += 4;
    }
    if (flags & PKT_HAS_MASKED) {
        pkt_put32(o, (uint32_t)p->masked.compare_swap << 24 | (uint32_t)p->masked.size << 16);
        for (int i = 0; i < 4; i++)
            pkt_put64(o + 4 + 8 * i, p->masked.operand[i]);
        o += 36;
    }
    return o;
}

size_t pkt_build(uint8_t *out, const struct pkt *p)
{
    uint32_t flags = pkt_flags(p->op);

    out[0] = p->op;
    /* Bit 6: the migration state of a path that is not being migrated. */
    out[1] = (uint8_t)(p->solicited << 7 | 1 << 6 | (p->pad & 3) << 4);
    out[2] = (uint8_t)(p->pkey >> 8);
    out[3] = (uint8_t)p->pkey;
    pkt_put32(out + 4, p->dqpn & PKT_PSN_MASK);
    pkt_put32(out + 8, (uint32_t)p->ack_req << 31 | (p->psn & PKT_PSN_MASK));
    return (size_t)(build_ext(out + PKT_BTH_LEN, p, flags) - out);
}

size_t pkt_finish(uint8_t *out, size_t len, uint8_t pad)
{
    memset(out + len, 0, pad);
    return len + pad;
}
