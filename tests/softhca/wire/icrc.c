/* SPDX-License-Identifier: BSD-3-Clause */
/* The invariant CRC of RoCE v2, and the IP and UDP headers that it covers. */
#include "wire/packet.h"

#include <pthread.h>

#define CRC32_POLY 0xedb88320u /* Ethernet's polynomial, bit-reversed */

static uint32_t crc_table[8][256];
static pthread_once_t crc_once = PTHREAD_ONCE_INIT;

static void crc_init(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;

        for (int k = 0; k < 8; k++)
            c = c >> 1 ^ (c & 1 ? CRC32_POLY : 0);
        crc_table[0][i] = c;
    }
    for (int t = 1; t < 8; t++)
        for (uint32_t i = 0; i < 256; i++)
            crc_table[t][i] = crc_table[t - 1][i] >> 8 ^ crc_table[0][crc_table[t - 1][i] & 0xff];
}

/* Eight bytes a step; a byte-wise loop would halve the speed of large transfers over UDP. */
static uint32_t crc_update(uint32_t crc, const uint8_t *p, size_t len)
{
    for (; len >= 8; p += 8, len -= 8) {
        uint32_t lo, hi;

        memcpy(&lo, p, 4);
        memcpy(&hi, p + 4, 4);
        lo = le32toh(lo) ^ crc;
        hi = le32toh(hi);
        crc = crc_table[7][lo & 0xff] ^ crc_table[6][lo >> 8 & 0xff] ^ crc_table[5][lo >> 16 & 0xff] ^
              crc_table[4][lo >> 24] ^ crc_table[3][hi & 0xff] ^ crc_table[2][hi >> 8 & 0xff] ^
              crc_table[1][hi >> 16 & 0xff] ^ crc_table[0][hi >> 24];
    }
    while (len--)
        crc = crc >> 8 ^ crc_table[0][(crc ^ *p++) & 0xff];
    return crc;
}

uint32_t pkt_icrc(const uint8_t *ip_udp, const uint8_t *bytes, size_t len)
{
    uint8_t pseudo[8 + PKT_IP_UDP_LEN + 8];
    uint8_t *ip = pseudo + 8;
    uint32_t crc;

    pthread_once(&crc_once, crc_init);
    /* Fields that routers may change count as ones: link header, type of service, TTL, checksums, BTH reserved byte. */
    memset(pseudo, 0xff, 8);
    memcpy(ip, ip_udp, PKT_IP_UDP_LEN);
    ip[1] = 0xff;
    ip[8] = 0xff;
    memset(ip + 10, 0xff, 2);
    memset(ip + 26, 0xff, 2);
    memcpy(ip + PKT_IP_UDP_LEN, bytes, 8);
    ip[PKT_IP_UDP_LEN + 4] = 0xff;
    crc = crc_update(~0u, pseudo, sizeof(pseudo));
    return ~crc_update(crc, bytes + 8, len - 8);
}

static uint16_t ip_checksum(const uint8_t *p)
{
    uint32_t sum = 0;

    for (int i = 0; i < 20; i += 2)
        sum += (uint32_t)p[i] << 8 | p[i + 1];
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)~sum;
}

void pkt_ip_udp(uint8_t *out, uint32_t src_ip, uint32_t dst_ip, uint16_t sport, size_t len)
{
    uint16_t sum;

    memset(out, 0, PKT_IP_UDP_LEN);
    out[0] = 0x45;
    /* An unconnected Linux socket with path MTU discovery sends identification 0 and "don't fragment". */
    pkt_put32(out, 0x45000000u | (uint32_t)(PKT_IP_UDP_LEN + len));
    pkt_put32(out + 4, 0x4000);
    out[8] = 64;
    out[9] = 17;
    pkt_put32(out + 12, src_ip);
    pkt_put32(out + 16, dst_ip);
    sum = ip_checksum(out);
    out[10] = (uint8_t)(sum >> 8);
    out[11] = (uint8_t)sum;
    pkt_put32(out + 20, (uint32_t)sport << 16 | PKT_ROCE_PORT);
    pkt_put32(out + 24, (uint32_t)(8 + len) << 16);
}
