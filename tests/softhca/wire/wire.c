/* SPDX-License-Identifier: BSD-3-Clause */
/* The front of the wire: applies faults, writes the capture, and hands packets to shared memory or UDP. */
#define _GNU_SOURCE
#include "wire/wire.h"
#include "wire/pcap.h"
#include "wire/wire_priv.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define SHM_WINDOW 96            /* three quarters of a ring at the largest MTU */
#define REORDER_BY 3
#define REORDER_MAX_NS 2000000ull
#define MAX_EVENTS 32

uint64_t wire_now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

#define NET_BASE 0x7f4d0000u     /* 127.77.0.0 */

uint32_t wire_ipv4(const struct wire *w, uint32_t slot)
{
    return w->net + slot;
}

uint32_t wire_slot(const struct wire *w)
{
    return w->slot;
}

const char *wire_kind(const struct wire *w)
{
    return w->udp ? "udp" : "shm";
}

unsigned wire_window(const struct wire *w)
{
    return w->window;
}

struct wire_stats *wire_stats(struct wire *w)
{
    return &w->stats;
}

static int watch(struct wire *w, int fd, uint64_t mark)
{
    struct epoll_event ev = { .events = EPOLLIN, .data.u64 = mark };

    return epoll_ctl(w->epoll, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

static int open_descriptors(struct wire *w, bool with_udp, const char *pcap)
{
    int err = ctl_claim_slot(w, with_udp);

    if (err)
        return err;
    w->epoll = epoll_create1(EPOLL_CLOEXEC);
    w->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (w->epoll < 0 || w->wake < 0)
        return -errno;
    err = watch(w, w->listen_sock, WIRE_EV_LISTEN);
    if (!err)
        err = watch(w, w->wake, WIRE_EV_WAKE);
    if (!err && w->udp)
        err = watch(w, w->udp->sock, WIRE_EV_UDP);
    if (err || !pcap)
        return err;
    w->pcap = pcap_open(pcap);
    return w->pcap < 0 ? w->pcap : 0;
}

int wire_open(struct wire **out, const struct wire_config *config, const struct wire_handlers *handlers)
{
    bool with_udp = config->kind && !strcmp(config->kind, "udp");
    struct wire *w;
    int err;

    if (config->kind && !with_udp && strcmp(config->kind, "shm") != 0)
        return -EINVAL;
    w = calloc(1, sizeof(*w));
    if (!w)
        return -ENOMEM;
    w->net = config->net ? config->net : NET_BASE;
    w->handlers = *handlers;
    w->faults = config->faults;
    w->listen_sock = w->epoll = w->wake = w->pcap = -1;
    w->window = SHM_WINDOW;
    w->held_tail = &w->held;
    for (unsigned i = 0; i <= WIRE_MAX_SLOT; i++)
        w->out[i].sock = -1;
    err = open_descriptors(w, with_udp, config->pcap);
    if (err) {
        wire_close(w);
        return err;
    }
    *out = w;
    return 0;
}

void wire_close(struct wire *w)
{
    const int fds[] = { w->listen_sock, w->epoll, w->wake, w->pcap };

    shm_close(w);
    udp_close(w);
    for (unsigned i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
        if (fds[i] >= 0)
            close(fds[i]);
    while (w->held) {
        struct held *h = w->held;

        w->held = h->next;
        free(h);
    }
    free(w);
}

void wire_abandon(struct wire *w)
{
    wire_close(w); /* closing and unmapping in the child leaves the parent's side alone */
}

void wire_set_link(struct wire *w, bool up)
{
    w->link_down = !up;
}

uint8_t *wire_reserve(struct wire *w, uint32_t slot)
{
    w->unreachable = slot < 1 || slot > WIRE_MAX_SLOT || w->link_down;
    w->reserved_slot = slot;
    if (w->unreachable)
        w->reserved = w->scratch;
    else
        w->reserved = w->udp ? udp_reserve(w) : shm_reserve(w, slot);
    return w->reserved;
}

/* Sends what stands in the reserved buffer. A corrupt packet gets its ICRC first and is changed then. */
static void transmit(struct wire *w, uint32_t slot, uint8_t *bytes, size_t len, bool corrupt)
{
    bool has_icrc = w->udp || corrupt;
    uint8_t head[PKT_IP_UDP_LEN];

    if (has_icrc || w->pcap >= 0) {
        uint32_t icrc;

        pkt_ip_udp(head, wire_ipv4(w, w->slot), wire_ipv4(w, slot), PKT_ROCE_PORT, len + PKT_ICRC_LEN);
        icrc = htole32(pkt_icrc(head, bytes, len));
        memcpy(bytes + len, &icrc, sizeof(icrc));
        if (corrupt)
            bytes[len - 1] ^= 0x10;
        if (w->pcap >= 0)
            pcap_write(w->pcap, head, sizeof(head), bytes, len + PKT_ICRC_LEN);
    }
    w->stats.tx_packets++;
    w->stats.tx_bytes += len;
    if (w->udp)
        udp_commit(w, slot, len + PKT_ICRC_LEN);
    else
        shm_commit(w, slot, has_icrc ? len + PKT_ICRC_LEN : len, has_icrc);
}

static void hold(struct wire *w, const uint8_t *bytes, size_t len, unsigned verdict)
{
    struct held *h = malloc(sizeof(*h) + len);

    if (!h)
        return; /* lost: faults are on anyway */
    h->next = NULL;
    h->slot = w->reserved_slot;
    h->len = len;
    h->corrupt = verdict & FAULT_CORRUPT;
    h->overtakers = verdict & FAULT_DELAY ? UINT32_MAX : REORDER_BY;
    h->due_ns = wire_now_ns() + (verdict & FAULT_DELAY ? w->faults->delay_us * 1000ull : REORDER_MAX_NS);
    memcpy(h->bytes, bytes, len);
    *w->held_tail = h;
    w->held_tail = &h->next;
}

static void count_verdict(struct wire_stats *s, unsigned verdict)
{
    s->fault_loss += (verdict & FAULT_LOSS) != 0;
    s->fault_dup += (verdict & FAULT_DUP) != 0;
    s->fault_reorder += (verdict & FAULT_REORDER) != 0;
    s->fault_delay += (verdict & FAULT_DELAY) != 0;
    s->fault_corrupt += (verdict & FAULT_CORRUPT) != 0;
}

/* The packet in the reserved buffer meets its fault. */
static void commit_faulty(struct wire *w, size_t len, unsigned verdict)
{
    uint32_t slot = w->reserved_slot;
    uint8_t *bytes = w->reserved;

    count_verdict(&w->stats, verdict);
    if (verdict & FAULT_LOSS)
        return;
    if (verdict & (FAULT_REORDER | FAULT_DELAY)) {
        hold(w, bytes, len, verdict);
        return;
    }
    if (verdict & FAULT_DUP) {
        uint8_t copy[PKT_MAX_LEN];
        uint8_t *again;

        memcpy(copy, bytes, len);
        transmit(w, slot, bytes, len, verdict & FAULT_CORRUPT);
        again = wire_reserve(w, slot);
        if (!again || w->unreachable)
            return;
        memcpy(again, copy, len);
        transmit(w, slot, again, len, false);
        return;
    }
    transmit(w, slot, bytes, len, verdict & FAULT_CORRUPT);
}

void wire_commit(struct wire *w, size_t len, uint64_t key)
{
    unsigned verdict = fault_verdict(w->faults, key);

    if (w->unreachable) {
        w->stats.tx_unreachable++;
        return;
    }
    for (struct held *h = w->held; h; h = h->next)
        if (h->slot == w->reserved_slot && h->overtakers && h->overtakers != UINT32_MAX)
            h->overtakers--;
    if (verdict)
        commit_faulty(w, len, verdict);
    else
        transmit(w, w->reserved_slot, w->reserved, len, false);
}

static void release_held(struct wire *w)
{
    uint64_t now = wire_now_ns();
    struct held **at = &w->held;

    while (*at) {
        struct held *h = *at;
        uint8_t *bytes;

        if (h->overtakers && now < h->due_ns) {
            at = &h->next;
            continue;
        }
        bytes = wire_reserve(w, h->slot);
        if (!bytes)
            break;
        if (!w->unreachable) {
            memcpy(bytes, h->bytes, h->len);
            transmit(w, h->slot, bytes, h->len, h->corrupt);
        }
        *at = h->next;
        free(h);
    }
    w->held_tail = &w->held;
    while (*w->held_tail)
        w->held_tail = &(*w->held_tail)->next;
}

void wire_flush(struct wire *w)
{
    if (w->held)
        release_held(w);
    if (w->udp && w->udp->queued)
        udp_flush(w);
}

void wire_deliver(struct wire *w, uint32_t slot, const uint8_t *bytes, size_t len, bool has_icrc)
{
    if (len < PKT_BTH_LEN + PKT_ICRC_LEN) {
        w->stats.rx_short++;
        return;
    }
    if (has_icrc) {
        uint8_t head[PKT_IP_UDP_LEN];
        uint32_t icrc;

        pkt_ip_udp(head, wire_ipv4(w, slot), wire_ipv4(w, w->slot), PKT_ROCE_PORT, len);
        len -= PKT_ICRC_LEN;
        memcpy(&icrc, bytes + len, sizeof(icrc));
        if (le32toh(icrc) != pkt_icrc(head, bytes, len)) {
            w->stats.rx_icrc++;
            return;
        }
    }
    w->stats.rx_packets++;
    w->stats.rx_bytes += len;
    w->handlers.packet(w->handlers.ctx, slot, bytes, len);
}

unsigned wire_poll(struct wire *w, unsigned budget)
{
    return w->udp ? udp_poll(w) : shm_poll(w, budget);
}

static void handle_event(struct wire *w, const struct epoll_event *ev)
{
    uint64_t mark = ev->data.u64;
    char sink[64];

    if (mark == WIRE_EV_LISTEN) {
        ctl_accept(w);
    } else if (mark == WIRE_EV_WAKE) {
        uint64_t count;

        if (read(w->wake, &count, sizeof(count)) < 0)
            return; /* another wake-up was read already */
    } else if (mark >= WIRE_EV_OUT && mark <= WIRE_EV_OUT + WIRE_MAX_SLOT) {
        shm_out_close(w, (uint32_t)(mark - WIRE_EV_OUT));
    } else if (mark > WIRE_EV_IN) {
        struct shm_in *in = (struct shm_in *)(uintptr_t)mark;

        while (recv(in->sock, sink, sizeof(sink), MSG_DONTWAIT) > 0)
            ;
        if (ev->events & (EPOLLHUP | EPOLLRDHUP | EPOLLERR)) {
            in->gone = true;
            epoll_ctl(w->epoll, EPOLL_CTL_DEL, in->sock, NULL);
        }
    }
}

void wire_control(struct wire *w)
{
    struct epoll_event ev[MAX_EVENTS];
    int n = epoll_wait(w->epoll, ev, MAX_EVENTS, 0);

    for (int i = 0; i < n; i++)
        handle_event(w, &ev[i]);
    shm_in_sweep(w);
}

bool wire_wait(struct wire *w, uint64_t timeout_ns)
{
    struct pollfd p = { .fd = w->epoll, .events = POLLIN };
    struct timespec limit = { (time_t)(timeout_ns / 1000000000ull), (long)(timeout_ns % 1000000000ull) };
    bool came = true;

    if (shm_sleep_begin(w))
        came = ppoll(&p, 1, &limit, NULL) != 0;
    shm_sleep_end(w);
    return came;
}

void wire_wake(struct wire *w)
{
    uint64_t one = 1;

    if (write(w->wake, &one, sizeof(one)) < 0)
        return; /* the counter is full: the thread is about to wake */
}

bool wire_pending(const struct wire *w)
{
    return w->held || (w->udp ? w->udp->queued > 0 : shm_pending(w));
}
