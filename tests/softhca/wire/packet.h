/* SPDX-License-Identifier: BSD-3-Clause */
/* The packets that engines exchange: InfiniBand transport headers as RoCE v2 carries them, parsed and built. */
#ifndef SOFTHCA_WIRE_PACKET_H
#define SOFTHCA_WIRE_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <endian.h>

/* Opcodes (IBTA 9.2): the upper three bits name the transport, the lower five the operation. */
enum pkt_op {
    PKT_SEND_FIRST = 0x00,
    PKT_SEND_MIDDLE = 0x01,
    PKT_SEND_LAST = 0x02,
    PKT_SEND_LAST_IMM = 0x03,
    PKT_SEND_ONLY = 0x04,
    PKT_SEND_ONLY_IMM = 0x05,
    PKT_WRITE_FIRST = 0x06,
    PKT_WRITE_MIDDLE = 0x07,
    PKT_WRITE_LAST = 0x08,
    PKT_WRITE_LAST_IMM = 0x09,
    PKT_WRITE_ONLY = 0x0a,
    PKT_WRITE_ONLY_IMM = 0x0b,
    PKT_READ_REQ = 0x0c,
    PKT_READ_RSP_FIRST = 0x0d,
    PKT_READ_RSP_MIDDLE = 0x0e,
    PKT_READ_RSP_LAST = 0x0f,
    PKT_READ_RSP_ONLY = 0x10,
    PKT_ACK = 0x11,
    PKT_ATOMIC_ACK = 0x12,
    PKT_CMP_SWAP = 0x13,
    PKT_FETCH_ADD = 0x14,
    PKT_SEND_LAST_INV = 0x16,
    PKT_SEND_ONLY_INV = 0x17,
    /* Manufacturer's range: the masked atomics of mlx5 have no opcode in the standard. */
    PKT_MASKED_ATOMIC = 0xc0,
};

enum pkt_transport { PKT_RC = 0x00, PKT_UC = 0x20, PKT_UD = 0x60, PKT_VENDOR = 0xc0 };

#define PKT_TRANSPORT(op) ((op) & 0xe0u)
#define PKT_BASE(op) ((op) & 0x1fu)
#define PKT_PSN_MASK 0xffffffu
#define PKT_BTH_LEN 12
#define PKT_ICRC_LEN 4
#define PKT_MAX_HEADER 64
#define PKT_MAX_MTU 4096
#define PKT_MAX_LEN (PKT_MAX_HEADER + PKT_MAX_MTU + PKT_ICRC_LEN)
#define PKT_ROCE_PORT 4791

/* Which headers an opcode carries behind the base header. */
enum pkt_ext {
    PKT_HAS_DETH = 1 << 0,
    PKT_HAS_RETH = 1 << 1,
    PKT_HAS_AETH = 1 << 2,
    PKT_HAS_ATOMIC = 1 << 3,
    PKT_HAS_ATOMIC_ACK = 1 << 4,
    PKT_HAS_IMM = 1 << 5,
    PKT_HAS_MASKED = 1 << 6,
    PKT_HAS_PAYLOAD = 1 << 7,
    PKT_IS_FIRST = 1 << 8,
    PKT_IS_LAST = 1 << 9,
    PKT_IS_RESPONSE = 1 << 10,
    PKT_IS_SEND = 1 << 11,
    PKT_IS_WRITE = 1 << 12,
    PKT_IS_READ_RSP = 1 << 13,
    PKT_KNOWN = 1 << 14,
};

/* Masked atomics: two or four operands of `size` bytes, in the order of the work queue entry. */
struct pkt_masked {
    uint8_t compare_swap; /* 1: masked compare-swap, 0: masked fetch-add */
    uint8_t size;         /* 4 or 8 */
    uint64_t operand[4];  /* swap, compare, swap mask, compare mask; or add, boundary */
};

/* One packet, host byte order except `imm`, which is passed through as the sender wrote it. */
struct pkt {
    uint8_t op;
    bool solicited;
    bool ack_req;
    uint8_t pad;
    uint16_t pkey;
    uint32_t dqpn;
    uint32_t psn;
    uint32_t ext; /* enum pkt_ext, filled by pkt_parse */
    uint32_t qkey, src_qpn;
    uint64_t va;
    uint32_t rkey, dma_len;
    uint8_t syndrome;
    uint32_t msn;
    uint64_t swap_add, compare;
    struct pkt_masked masked;
    uint64_t original;
    uint32_t imm;
    const uint8_t *payload;
    uint32_t payload_len; /* without pad */
};

/* AETH syndromes (IBTA 9.7.5.2.2): bits 6-5 the kind, bits 4-0 credits, RNR timer or NAK code. */
#define PKT_AETH_ACK 0x1fu
#define PKT_AETH_RNR(timer) (0x20u | (timer))
#define PKT_AETH_NAK(code) (0x60u | (code))
enum pkt_nak { PKT_NAK_SEQ = 0, PKT_NAK_INVALID = 1, PKT_NAK_ACCESS = 2, PKT_NAK_OPERATION = 3 };

/* Signed distance between sequence numbers, modulo 2^24. */
static inline int32_t pkt_psn_diff(uint32_t a, uint32_t b)
{
    return (int32_t)((a - b) << 8) >> 8;
}

static inline uint32_t pkt_psn_add(uint32_t psn, uint32_t n)
{
    return (psn + n) & PKT_PSN_MASK;
}

static inline uint32_t pkt_get32(const void *p)
{
    uint32_t v;

    memcpy(&v, p, sizeof(v));
    return be32toh(v);
}

static inline uint64_t pkt_get64(const void *p)
{
    uint64_t v;

    memcpy(&v, p, sizeof(v));
    return be64toh(v);
}

static inline uint32_t pkt_get24(const uint8_t *p)
{
    return (uint32_t)p[0] << 16 | (uint32_t)p[1] << 8 | p[2];
}

static inline void pkt_put32(void *p, uint32_t v)
{
    v = htobe32(v);
    memcpy(p, &v, sizeof(v));
}

static inline void pkt_put64(void *p, uint64_t v)
{
    v = htobe64(v);
    memcpy(p, &v, sizeof(v));
}

static inline void pkt_put24(uint8_t *p, uint32_t v)
{
    p[0] = (uint8_t)(v >> 16);
    p[1] = (uint8_t)(v >> 8);
    p[2] = (uint8_t)v;
}

/* Flags (enum pkt_ext) of an opcode; 0 when the opcode is unknown. */
uint32_t pkt_flags(uint8_t op);

/*
 * Parses `len` bytes that start at the base header and end before the ICRC. Returns 0, or -EINVAL when the opcode
 * is unknown or a length does not fit. `out->payload` points into `bytes`.
 */
int pkt_parse(const uint8_t *bytes, size_t len, struct pkt *out);

/* Writes the headers that p->op asks for and returns their length (at most PKT_MAX_HEADER). */
size_t pkt_build(uint8_t *out, const struct pkt *p);

/* Ends a packet whose headers and payload stand in out[0..len): adds the pad and returns the new length. */
size_t pkt_finish(uint8_t *out, size_t len, uint8_t pad);

/* The name of an opcode for traces. */
const char *pkt_op_name(uint8_t op);

/* IPv4 and UDP headers, 28 bytes, as they stand on the wire around `len` bytes from base header to ICRC. */
#define PKT_IP_UDP_LEN 28
void pkt_ip_udp(uint8_t *out, uint32_t src_ip, uint32_t dst_ip, uint16_t sport, size_t len);

/*
 * Invariant CRC (IBTA 7.8.1 with the RoCE v2 annex) over the 28 bytes of IP and UDP header and `len` bytes of packet.
 * The result is stored little-endian behind the packet.
 */
uint32_t pkt_icrc(const uint8_t *ip_udp, const uint8_t *bytes, size_t len);

#endif
