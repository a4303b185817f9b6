/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets that should not be there: from a stranger, with a wrong key, length or sequence number, malformed, or noise.
 * None may touch memory, and each is counted. The attacker is a wire of its own in this process.
 */
#include "engine/engine.h"
#include "tests/nic.h"
#include "tests/tap.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PSN = 100, SETTLE_MS = 2000, ROUNDS = 100, NOISE = 200 };

static struct fault_plan no_faults;

static void ignore(void *ctx, uint32_t src, const uint8_t *bytes, size_t len)
{
    (void)ctx;
    (void)src;
    (void)bytes;
    (void)len;
}

static struct wire *open_wire(void)
{
    const struct wire_config config = { "shm", NULL, 0, &no_faults };
    const struct wire_handlers handlers = { ignore, NULL, NULL };
    struct wire *w = NULL;

    return wire_open(&w, &config, &handlers) ? NULL : w;
}

/* The victim, connected to the slot of `peer`, whose part of the exchange is sent beforehand. */
static bool open_victim(struct nic *n, struct wire *peer)
{
    static const struct nic_setup setup = { .sq_blocks = 16, .rq_entries = 16, .cq_entries = 64, .psn = PSN,
                                            .mtu_code = IBV_MTU_1024, .timeout = 0, .type = HCA_RC };
    struct nic_card card = { wire_slot(peer) << HCA_QPN_SHIFT | 2, 0x1234, wire_slot(peer), 0 };
    int sv[2];
    char go = 1;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv))
        return false;
    return send(sv[1], &card, sizeof(card), 0) == (ssize_t)sizeof(card) && send(sv[1], &go, 1, 0) == 1 &&
           nic_open(n, &setup, sv[0]) == 0;
}

static uint64_t counter(const uint64_t *value)
{
    uint64_t v;

    hca_lock(hca_current);
    v = *value;
    hca_unlock(hca_current);
    return v;
}

static void send_packet(struct wire *from, struct nic *n, struct pkt *p, const void *payload, uint32_t len)
{
    uint8_t *buf;
    size_t head;

    p->pad = (uint8_t)(-len & 3);
    while (!(buf = wire_reserve(from, n->hca->id.slot)))
        sched_yield();
    head = pkt_build(buf, p);
    memcpy(buf + head, payload, len);
    wire_commit(from, pkt_finish(buf, head + len, p->pad), 0);
    wire_flush(from);
}

static bool heap_is_zero(const struct nic *n)
{
    for (size_t i = 0; i < NIC_HEAP; i++)
        if (n->heap[i])
            return false;
    return true;
}

/* A write that would be legal; the attacks change one thing each. */
static struct pkt legal(const struct nic *n)
{
    return (struct pkt){ .op = PKT_WRITE_ONLY, .pkey = 0xffff, .ack_req = true, .dqpn = n->qp->qpn, .psn = PSN,
                         .va = (uint64_t)(uintptr_t)n->heap, .rkey = n->mr->key, .dma_len = 8 };
}

enum attack {
    STRANGER,
    WRONG_KEY,
    WRONG_VA,
    FUTURE_PSN,
    PAST_PSN,
    LONGER_THAN_TOLD,
    SHORTER_THAN_TOLD,
    MIDDLE_OF_NOTHING,
    WRONG_QPN,
    DATAGRAM_TO_RC,
    UNAWAITED_DATA,
    UNALIGNED_ATOMIC,
    READ_WRONG_KEY,
    READ_FROM_THE_PAST,
    ATTACKS
};

static const char *const attack_name[ATTACKS] = {
    [STRANGER] = "legal write, but not from the connected peer",
    [WRONG_KEY] = "wrong key",
    [WRONG_VA] = "address outside the region",
    [FUTURE_PSN] = "sequence number ahead",
    [PAST_PSN] = "sequence number behind",
    [LONGER_THAN_TOLD] = "more bytes than the header says",
    [SHORTER_THAN_TOLD] = "fewer bytes than the header says",
    [MIDDLE_OF_NOTHING] = "middle packet without a first one",
    [WRONG_QPN] = "no such queue pair",
    [DATAGRAM_TO_RC] = "datagram to a connected queue pair",
    [UNAWAITED_DATA] = "read data that nobody asked for",
    [UNALIGNED_ATOMIC] = "atomic on an unaligned address",
    [READ_WRONG_KEY] = "read with a wrong key",
    [READ_FROM_THE_PAST] = "read again that was never asked for",
};

static const uint64_t *prepare(enum attack what, const struct nic *n, struct pkt *p, uint32_t *len)
{
    struct eng *e = n->hca->eng;

    switch (what) {
    case STRANGER: return &e->count.rx_wrong_peer;
    case WRONG_KEY: p->rkey ^= 1; return &e->count.refused_key;
    case WRONG_VA: p->va += NIC_HEAP - 4; return &e->count.refused_key;
    case FUTURE_PSN: p->psn++; return &e->count.out_of_sequence;
    case PAST_PSN: p->psn--; return &e->count.duplicates;
    case LONGER_THAN_TOLD: *len = 16; return &e->count.rx_bad_length;
    case SHORTER_THAN_TOLD: *len = 4; return &e->count.rx_bad_length;
    case MIDDLE_OF_NOTHING: p->op = PKT_WRITE_MIDDLE; *len = 1024; return &e->count.rx_bad_length;
    case WRONG_QPN: p->dqpn++; return &e->count.rx_no_qp;
    case DATAGRAM_TO_RC: p->op = PKT_UD | PKT_SEND_ONLY; return &e->count.rx_no_qp;
    case UNAWAITED_DATA: p->op = PKT_READ_RSP_ONLY; p->syndrome = PKT_AETH_ACK; return &e->count.rx_stale;
    case UNALIGNED_ATOMIC: p->op = PKT_FETCH_ADD; p->swap_add = 1; p->va += 4; *len = 0; return &e->count.naks_sent;
    case READ_WRONG_KEY: p->op = PKT_READ_REQ; p->rkey ^= 1; *len = 0; return &e->count.refused_key;
    default: p->op = PKT_READ_REQ; p->psn--; p->dma_len = 4096; *len = 0; return &e->count.rx_bad_length;
    }
}

static bool attack(enum attack what, struct wire *peer, struct wire *stranger)
{
    static const uint8_t payload[2048] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    struct nic n;
    uint32_t len = 8;
    struct pkt p;
    const uint64_t *count;
    uint64_t before;
    bool good = false;

    if (!open_victim(&n, peer))
        return false;
    p = legal(&n);
    count = prepare(what, &n, &p, &len);
    before = counter(count);
    send_packet(what == STRANGER ? stranger : peer, &n, &p, payload, len);
    for (int ms = 0; ms < SETTLE_MS && !good; ms++) {
        usleep(1000);
        good = counter(count) == before + 1;
    }
    if (!good)
        printf("# not counted\n");
    good = good && heap_is_zero(&n);
    nic_close(&n);
    return good;
}

/* The same packet, legal: shows that the attacks fail for the reason given. */
static bool legal_write(struct wire *peer)
{
    uint64_t value = 0x1122334455667788ull;
    struct nic n;
    struct pkt p;
    bool good = false;

    if (!open_victim(&n, peer))
        return false;
    p = legal(&n);
    send_packet(peer, &n, &p, &value, 8);
    for (int ms = 0; ms < SETTLE_MS && !good; ms++) {
        usleep(1000);
        good = __atomic_load_n((uint64_t *)(void *)n.heap, __ATOMIC_ACQUIRE) == value;
    }
    nic_close(&n);
    return good;
}

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/*
 * Bytes at random, and packets that are almost right, from the connected peer: no crash, and memory stays as it is. A
 * refusal ends the queue pair, so each round has a new one.
 */
static bool noise(struct wire *peer, uint32_t rng)
{
    struct nic n;
    bool good;

    if (!open_victim(&n, peer))
        return false;
    for (int i = 0; i < NOISE; i++) {
        uint8_t payload[300], *buf;
        struct pkt p = legal(&n);
        size_t len;

        p.op = (uint8_t)(next_random(&rng) % (i % 4 ? 0x18 : 0x100));
        p.psn = PSN - 2 + next_random(&rng) % 5;
        p.rkey = n.mr->key ^ (1u + next_random(&rng) % 0xffff); /* never the right one */
        p.dma_len = next_random(&rng) % 400;
        p.syndrome = (uint8_t)next_random(&rng);
        p.masked.size = 8;
        for (size_t k = 0; k < sizeof(payload); k++)
            payload[k] = (uint8_t)next_random(&rng);
        if (pkt_flags(p.op) && i % 3) {
            send_packet(peer, &n, &p, payload, next_random(&rng) % sizeof(payload));
            continue;
        }
        while (!(buf = wire_reserve(peer, n.hca->id.slot)))
            sched_yield();
        len = 12 + next_random(&rng) % 200;
        memcpy(buf, payload, len);
        pkt_put32(buf + 4, n.qp->qpn);
        wire_commit(peer, len, 0);
    }
    wire_flush(peer);
    for (int ms = 0; ms < SETTLE_MS && wire_pending(peer); ms++)
        usleep(1000);
    usleep(1000);
    good = heap_is_zero(&n);
    nic_close(&n);
    return good;
}

int main(void)
{
    struct wire *peer, *stranger;
    bool quiet = true;

    alarm(120);
    hca_config_read();
    hca_config.log_level = -1; /* refusals are expected here */
    hca_config.wire = "shm";
    peer = open_wire();
    stranger = open_wire();
    if (!tap_ok(peer && stranger, "wires of the attackers"))
        return tap_done();
    tap_ok(legal_write(peer), "a legal write arrives");
    for (int i = 0; i < ATTACKS; i++)
        tap_ok(attack(i, peer, stranger), "%s", attack_name[i]);
    for (uint32_t i = 0; i < ROUNDS && quiet; i++)
        quiet = noise(peer, i);
    tap_ok(quiet, "%d times %d packets of noise", ROUNDS, NOISE);
    tap_ok(legal_write(peer), "a legal write still arrives");
    hca_device_stop();
    wire_close(peer);
    wire_close(stranger);
    return tap_done();
}
