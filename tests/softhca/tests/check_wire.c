/* SPDX-License-Identifier: BSD-3-Clause */
/* The packet codec, the ICRC against a packet of a real NIC's format, fault plans, and both wires in one process. */
#include "tests/icrc_sample.h"
#include "tests/tap.h"
#include "wire/wire.h"

#include <stdlib.h>
#include <string.h>

/* ---- codec ---- */

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* Every opcode, built from random fields, parses to the same fields. */
static bool round_trip(void)
{
    uint32_t rng = 3, known = 0;
    uint8_t buf[PKT_MAX_LEN];

    for (unsigned op = 0; op < 256; op++) {
        struct pkt p = { .op = (uint8_t)op, .solicited = op & 1, .ack_req = op & 2, .pkey = 0xffff }, q;
        uint32_t payload = pkt_flags(p.op) & PKT_HAS_PAYLOAD ? next_random(&rng) % 1000 : 0;
        size_t len;

        if (!pkt_flags(p.op))
            continue;
        known++;
        p.pad = (uint8_t)(-payload & 3);
        p.dqpn = next_random(&rng);
        p.psn = next_random(&rng);
        p.va = (uint64_t)next_random(&rng) << 32 | next_random(&rng);
        p.rkey = next_random(&rng);
        p.dma_len = next_random(&rng);
        p.qkey = next_random(&rng);
        p.imm = next_random(&rng);
        p.syndrome = 0x1f;
        p.msn = 77;
        p.masked = (struct pkt_masked){ 1, 8, { 1, 2, 3, next_random(&rng) } };
        p.original = next_random(&rng);
        p.swap_add = p.compare = next_random(&rng);
        len = pkt_finish(buf, pkt_build(buf, &p) + payload, p.pad);
        if (pkt_parse(buf, len, &q) || q.op != p.op || q.dqpn != p.dqpn || q.psn != p.psn ||
            q.payload_len != payload || q.solicited != p.solicited || q.ack_req != p.ack_req)
            return false;
        if ((q.ext & PKT_HAS_RETH) && (q.va != p.va || q.rkey != p.rkey || q.dma_len != p.dma_len))
            return false;
        if ((q.ext & PKT_HAS_MASKED) && memcmp(&q.masked, &p.masked, sizeof(q.masked)) != 0)
            return false;
        if ((q.ext & PKT_HAS_IMM) && q.imm != p.imm)
            return false;
        if ((q.ext & PKT_HAS_ATOMIC_ACK) && q.original != p.original)
            return false;
        /* Less than a base header is refused. */
        if (!pkt_parse(buf, PKT_BTH_LEN - 4, &q))
            return false;
    }
    return known > 30;
}

/* Bytes of any kind: no read beyond the end (the sanitizers look), and what parses builds back to the same headers. */
static bool parse_noise(void)
{
    uint32_t rng = 11, parsed = 0;

    for (int i = 0; i < 300000; i++) {
        size_t len = next_random(&rng) % 120;
        uint8_t *bytes = malloc(len ? len : 1), again[PKT_MAX_LEN];
        struct pkt p;

        for (size_t k = 0; k < len; k++)
            bytes[k] = (uint8_t)next_random(&rng);
        if (len > 1 && i % 2)
            bytes[1] &= 0xf0;
        if (pkt_parse(bytes, len, &p) == 0) {
            size_t head = pkt_build(again, &p);

            parsed++;
            if (head + p.payload_len + p.pad != len || again[0] != bytes[0] || memcmp(again + 9, bytes + 9, 3) != 0) {
                free(bytes);
                return false;
            }
        }
        free(bytes);
    }
    return parsed > 1000;
}

static bool icrc_sample(void)
{
    return pkt_icrc(sample, sample + PKT_IP_UDP_LEN, sizeof(sample) - PKT_IP_UDP_LEN) == sample_icrc;
}

static bool headers_sample(void)
{
    static const uint8_t want[PKT_IP_UDP_LEN] = { 0x45, 0, 0, 60, 0,    0,    0x40, 0,    64,   17, 0x5c, 0x97, 127, 77,
                                                  0,    1, 127, 77, 0,  2,    0x12, 0xb7, 0x12, 0xb7, 0,  40,   0,   0 };
    uint8_t got[PKT_IP_UDP_LEN];
    uint32_t sum = 0;

    pkt_ip_udp(got, 0x7f4d0001, 0x7f4d0002, PKT_ROCE_PORT, 32);
    for (int i = 0; i < 20; i += 2)
        sum += (uint32_t)got[i] << 8 | got[i + 1];
    sum = (sum & 0xffff) + (sum >> 16);
    return !memcmp(got, want, 10) && !memcmp(got + 12, want + 12, 16) && sum == 0xffff;
}

/* ---- faults ---- */

static bool fault_text(void)
{
    static const char *const bad[] = { "loss", "loss=", "loss=101%", "loss=1", "delay=1%", "qperr=0", "nonsense=1%",
                                       "loss=1%,,", "linkdown=5", "die=x", "deny=", "loss=1% ", "delay=1%:5", "port=up", "gids=0",
                                       "memlock=0", "memlock=1x", "pages=0", "pages=4k" };
    struct fault_plan *p = calloc(1, sizeof(*p)), *q = calloc(1, sizeof(*q));
    const char *where = NULL;
    char text[256], again[256];
    bool good = !fault_parse(p, "loss=1%,dup=0.5%,reorder=2%,corrupt=1%,rnr=5%,delay=2%:300us,doorbell=50us,qperr=7:0x10,"
                                "linkdown=200ms+50ms,die=5000p,deny=40p,port=down,gids=none,memlock=64k,pages=8", 9, &where);

    fault_print(p, text, sizeof(text));
    good = good && !fault_parse(q, text, 9, &where);
    fault_print(q, again, sizeof(again));
    good = good && !strcmp(text, again) && p->qp_error_after == 7 && p->qp_error_syndrome == 0x10 &&
           p->delay_us == 300 && p->die.packets == 5000 && p->deny.packets == 40 && p->link_down_ns == 50000000 && p->port_down &&
           p->no_gids && p->memlock == 65536 && p->pages == 8;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        if (!fault_parse(p, bad[i], 1, &where)) {
            printf("# accepted: %s\n", bad[i]);
            good = false;
        }
    free(p);
    free(q);
    return good;
}

static bool fault_repeats(void)
{
    struct fault_plan *p = calloc(1, sizeof(*p)), *q = calloc(1, sizeof(*q));
    unsigned lost = 0, differ = 0, stuck = 0;
    const char *where;

    fault_parse(p, "loss=10%,dup=5%", 1, &where);
    fault_parse(q, "loss=10%,dup=5%", 2, &where);
    for (uint64_t key = 0; key < 20000; key++) {
        unsigned a = fault_verdict(p, key), tries = 0;

        lost += (a & FAULT_LOSS) != 0;
        differ += a != fault_verdict(q, key);
        while ((a & FAULT_LOSS) && tries++ < 20)
            a = fault_verdict(p, key);
        stuck += tries > 12;
    }
    fault_parse(q, "loss=10%,dup=5%", 1, &where);
    fault_parse(p, "loss=10%,dup=5%", 1, &where);
    for (uint64_t key = 0; key < 20000; key++)
        if (fault_verdict(p, key) != fault_verdict(q, key))
            stuck = 1;
    free(p);
    free(q);
    return lost > 1800 && lost < 2200 && differ > 1000 && !stuck;
}

/* A hundred packets in flight and one lost in their midst: each one gets through in the end. */
static bool fault_lets_all_through(void)
{
    struct fault_plan *p = calloc(1, sizeof(*p));
    const char *where;
    bool good = true;

    fault_parse(p, "loss=30%", 5, &where);
    for (uint64_t base = 0; base < 200 && good; base++) {
        bool through[100] = { false };
        int left = 100;

        for (int round = 0; left && round < 60; round++)
            for (int i = 0; i < 100; i++)
                if (!(fault_verdict(p, base * 100 + (uint64_t)i) & FAULT_LOSS) && !through[i]) {
                    through[i] = true;
                    left--;
                }
        good = left == 0;
    }
    free(p);
    return good;
}

/* ---- wires ---- */

struct sink {
    uint32_t next, wrong, count;
};

static void take(void *ctx, uint32_t src, const uint8_t *bytes, size_t len)
{
    struct sink *s = ctx;
    struct pkt p;

    (void)src;
    s->count++;
    if (pkt_parse(bytes, len, &p) || p.psn != (s->next & PKT_PSN_MASK) || p.payload_len != p.dma_len ||
        (p.payload_len && p.payload[p.payload_len - 1] != (uint8_t)p.psn))
        s->wrong++;
    s->next++;
}

static bool send_one(struct wire *w, uint32_t slot, uint32_t psn, uint32_t len)
{
    struct pkt p = { .op = PKT_WRITE_ONLY, .psn = psn, .dma_len = len, .pad = (uint8_t)(-len & 3) };
    uint8_t *buf = wire_reserve(w, slot);
    size_t n;

    if (!buf)
        return false;
    n = pkt_build(buf, &p);
    memset(buf + n, (uint8_t)psn, len);
    wire_commit(w, pkt_finish(buf, n + len, p.pad), psn);
    return true;
}

/* Packets of all lengths arrive whole, in order, with no more in flight than the wire allows. */
static bool transfer(const char *kind)
{
    static struct fault_plan none;
    struct sink sink = { 0 };
    const struct wire_config config = { kind, NULL, 0, &none };
    const struct wire_handlers handlers = { take, NULL, &sink };
    struct wire *a = NULL, *b = NULL;
    uint32_t sent = 0;
    bool good = !wire_open(&a, &config, &handlers) && !wire_open(&b, &config, &handlers) && wire_slot(a) != wire_slot(b);

    for (int idle = 0; good && sink.count < 20000 && idle < 20000;) {
        if (sent < 20000 && sent - sink.count < 8 && send_one(a, wire_slot(b), sent, sent * 37 % 4097))
            sent++;
        wire_flush(a);
        if (!(sent & 7) || sent == 20000)
            wire_control(b);
        idle = wire_poll(b, 16) ? 0 : idle + 1;
    }
    good = good && sink.count == 20000 && !sink.wrong && !wire_stats(b)->rx_icrc;
    if (a)
        wire_close(a);
    if (b)
        wire_close(b);
    return good;
}

/* A slot that nobody holds swallows packets and counts them; a corrupt packet is dropped for its ICRC. */
static bool losses(const char *kind)
{
    static struct fault_plan corrupt, none;
    struct sink sink = { 0 };
    const struct wire_config broken = { kind, NULL, 0, &corrupt }, whole = { kind, NULL, 0, &none };
    const struct wire_handlers handlers = { take, NULL, &sink };
    struct wire *a = NULL, *b = NULL;
    const char *where;
    bool good;

    fault_parse(&corrupt, "corrupt=100%", 1, &where);
    good = !wire_open(&a, &broken, &handlers) && !wire_open(&b, &whole, &handlers);
    for (int i = 0; good && i < 10; i++) {
        send_one(a, wire_slot(b), (uint32_t)i, 100);
        wire_flush(a);
        wire_control(b);
        wire_wait(b, 1000000);
        wire_poll(b, 16);
    }
    good = good && !sink.count && wire_stats(b)->rx_icrc == 10 && wire_stats(a)->fault_corrupt == 10;
    if (good && !strcmp(kind, "shm")) {
        send_one(a, 1000, 1, 100);
        good = wire_stats(a)->tx_unreachable == 1;
    }
    if (a)
        wire_close(a);
    if (b)
        wire_close(b);
    return good;
}

int main(void)
{
    tap_ok(round_trip(), "each opcode builds and parses");
    tap_ok(parse_noise(), "noise parses to nothing, or to itself");
    tap_ok(icrc_sample(), "ICRC of a sample");
    tap_ok(headers_sample(), "IP and UDP headers");
    tap_ok(fault_text(), "fault lists are read and printed");
    tap_ok(fault_repeats(), "same seed, same verdicts");
    tap_ok(fault_lets_all_through(), "retransmissions get through");
    tap_ok(transfer("shm"), "shared-memory wire carries 20000 packets in order");
    tap_ok(transfer("udp"), "UDP wire carries 20000 packets in order");
    tap_ok(losses("shm"), "shared-memory wire drops what is corrupt");
    tap_ok(losses("udp"), "UDP wire drops what is corrupt");
    return tap_done();
}
