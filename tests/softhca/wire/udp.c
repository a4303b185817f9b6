/* SPDX-License-Identifier: BSD-3-Clause */
/* The UDP wire: RoCE v2 on loopback addresses, a slot's own address each, sent and received in batches. */
#define _GNU_SOURCE
#include "wire/wire_priv.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define WANTED_BUFFER (16 << 20)
#define PACKET_COST (2 * PKT_MAX_LEN) /* what the kernel charges for a packet of the largest MTU, roughly */

static struct sockaddr_in address(const struct wire *w, uint32_t slot)
{
    return (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(PKT_ROCE_PORT),
                                 .sin_addr.s_addr = htonl(wire_ipv4(w, slot)) };
}

/* The receive buffer bounds what may be in flight: a loss there costs a timeout. */
static unsigned grow_buffers(int sock)
{
    int want = WANTED_BUFFER, got = 0;
    socklen_t len = sizeof(got);

    if (setsockopt(sock, SOL_SOCKET, SO_RCVBUFFORCE, &want, sizeof(want)))
        setsockopt(sock, SOL_SOCKET, SO_RCVBUF, &want, sizeof(want));
    if (setsockopt(sock, SOL_SOCKET, SO_SNDBUFFORCE, &want, sizeof(want)))
        setsockopt(sock, SOL_SOCKET, SO_SNDBUF, &want, sizeof(want));
    getsockopt(sock, SOL_SOCKET, SO_RCVBUF, &got, &len);
    return (unsigned)got / PACKET_COST / 4;
}

int udp_open(struct wire *w, uint32_t slot)
{
    int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    struct sockaddr_in a = address(w, slot);
    int dont_fragment = IP_PMTUDISC_DO; /* fixes the identification field that the ICRC covers */
    unsigned window;
    int err;

    if (sock < 0)
        return -errno;
    if (setsockopt(sock, IPPROTO_IP, IP_MTU_DISCOVER, &dont_fragment, sizeof(dont_fragment)) ||
        bind(sock, (struct sockaddr *)&a, sizeof(a))) {
        err = -errno;
        close(sock);
        return err;
    }
    w->udp = calloc(1, sizeof(*w->udp));
    if (!w->udp) {
        close(sock);
        return -ENOMEM;
    }
    w->udp->sock = sock;
    window = grow_buffers(sock);
    w->window = window < 8 ? 8 : window > 128 ? 128 : window;
    return 0;
}

uint8_t *udp_reserve(struct wire *w)
{
    if (w->udp->queued == UDP_BATCH)
        udp_flush(w);
    return w->udp->queued < UDP_BATCH ? w->udp->out[w->udp->queued] : NULL;
}

void udp_commit(struct wire *w, uint32_t slot, size_t len)
{
    struct udp *u = w->udp;

    u->slot[u->queued] = slot;
    u->len[u->queued] = len;
    u->queued++;
}

void udp_flush(struct wire *w)
{
    struct udp *u = w->udp;
    struct mmsghdr m[UDP_BATCH];
    struct iovec iov[UDP_BATCH];
    struct sockaddr_in to[UDP_BATCH];
    unsigned sent = 0;

    memset(m, 0, sizeof(m));
    for (unsigned i = 0; i < u->queued; i++) {
        to[i] = address(w, u->slot[i]);
        iov[i] = (struct iovec){ u->out[i], u->len[i] };
        m[i].msg_hdr = (struct msghdr){ .msg_name = &to[i], .msg_namelen = sizeof(to[i]), .msg_iov = &iov[i],
                                        .msg_iovlen = 1 };
    }
    while (sent < u->queued) {
        int n = sendmmsg(u->sock, m + sent, u->queued - sent, MSG_NOSIGNAL);

        if (n > 0) {
            sent += (unsigned)n;
            continue;
        }
        if (errno == EINTR)
            continue;
        /* A refusal is the answer to an earlier packet (nobody there), or the buffer is full: lost, as on a wire. */
        w->stats.tx_unreachable++;
        sent++;
    }
    u->queued = 0;
}

unsigned udp_poll(struct wire *w)
{
    struct udp *u = w->udp;
    struct mmsghdr m[UDP_BATCH];
    struct iovec iov[UDP_BATCH];
    struct sockaddr_in from[UDP_BATCH];
    int n;

    memset(m, 0, sizeof(m));
    for (unsigned i = 0; i < UDP_BATCH; i++) {
        iov[i] = (struct iovec){ u->in[i], sizeof(u->in[i]) };
        m[i].msg_hdr = (struct msghdr){ .msg_name = &from[i], .msg_namelen = sizeof(from[i]), .msg_iov = &iov[i],
                                        .msg_iovlen = 1 };
    }
    n = recvmmsg(u->sock, m, UDP_BATCH, MSG_DONTWAIT, NULL);
    for (int i = 0; i < n; i++) {
        uint32_t slot = ntohl(from[i].sin_addr.s_addr) - wire_ipv4(w, 0);

        if (slot < 1 || slot > WIRE_MAX_SLOT || from[i].sin_port != htons(PKT_ROCE_PORT))
            w->stats.rx_foreign++;
        else
            wire_deliver(w, slot, u->in[i], m[i].msg_len, true);
    }
    return n > 0 ? (unsigned)n : 0;
}

void udp_close(struct wire *w)
{
    if (!w->udp)
        return;
    close(w->udp->sock);
    free(w->udp);
    w->udp = NULL;
}
