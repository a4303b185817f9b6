/* SPDX-License-Identifier: BSD-3-Clause */
/* The abstract socket of a slot: claims the slot, and takes rings of peers and requests for reports. */
#define _GNU_SOURCE
#include "wire/wire_priv.h"

#include <errno.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define REPORT_BYTES 16384
#define HELLO_WAIT_MS 20

int ctl_claim_slot(struct wire *w, bool with_udp)
{
    int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int err = -EADDRINUSE;

    if (sock < 0)
        return -errno;
    for (uint32_t slot = 1; slot <= WIRE_MAX_SLOT; slot++) {
        struct sockaddr_un a;
        socklen_t len = ctl_address(&a, slot);

        if (bind(sock, (struct sockaddr *)&a, len)) {
            err = -errno;
            if (err == -EADDRINUSE)
                continue;
            break;
        }
        err = with_udp ? udp_open(w, slot) : 0;
        if (!err && listen(sock, 128))
            err = -errno;
        if (err != -EADDRINUSE && err != -EADDRNOTAVAIL) {
            w->slot = slot;
            break;
        }
        /* The address is somebody else's, or another host's: a bound socket cannot move on, so take a new one. */
        close(sock);
        sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (sock < 0)
            return -errno;
    }
    if (err) {
        close(sock);
        return err;
    }
    w->listen_sock = sock;
    return 0;
}

int ctl_send_fd(int sock, const struct ctl_msg *msg, int fd)
{
    union {
        struct cmsghdr head;
        char space[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec iov = { (void *)(uintptr_t)msg, sizeof(*msg) };
    struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
                        .msg_controllen = sizeof(control.space) };
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);

    memset(&control, 0, sizeof(control));
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(c), &fd, sizeof(fd));
    return sendmsg(sock, &m, MSG_NOSIGNAL) == (ssize_t)sizeof(*msg) ? 0 : -errno;
}

/* Receives one message and the descriptor that may come with it (-1: none). */
static bool recv_msg(int sock, struct ctl_msg *msg, int *fd_out)
{
    union {
        struct cmsghdr head;
        char space[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec iov = { msg, sizeof(*msg) };
    struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control,
                        .msg_controllen = sizeof(control.space) };
    ssize_t n = recvmsg(sock, &m, MSG_CMSG_CLOEXEC);

    *fd_out = -1;
    if (n <= 0)
        return false;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c))
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS && c->cmsg_len == CMSG_LEN(sizeof(int)))
            memcpy(fd_out, CMSG_DATA(c), sizeof(int));
    return n == (ssize_t)sizeof(*msg) && msg->magic == CTL_MAGIC;
}

static void send_report(struct wire *w, int sock)
{
    char text[REPORT_BYTES];
    size_t len = w->handlers.report ? w->handlers.report(w->handlers.ctx, text, sizeof(text)) : 0;

    if (len && send(sock, text, len, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        return; /* the asker went away */
}

static void serve(struct wire *w, int sock)
{
    struct timeval limit = { 0, HELLO_WAIT_MS * 1000 };
    struct ctl_msg msg;
    bool keep = false;
    int fd = -1;

    /* A peer sends its greeting before it does anything else, so this wait is short; a stranger gets no longer one. */
    setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    if (!ctl_same_user(sock) || !recv_msg(sock, &msg, &fd))
        w->stats.rx_foreign++;
    else if (msg.type == CTL_ATTACH && fd >= 0 && msg.slot >= 1 && msg.slot <= WIRE_MAX_SLOT)
        keep = shm_attach(w, sock, msg.slot, fd) == 0;
    else if (msg.type == CTL_REPORT)
        send_report(w, sock);
    if (fd >= 0)
        close(fd);
    if (!keep)
        close(sock);
}

void ctl_accept(struct wire *w)
{
    for (;;) {
        int sock = accept4(w->listen_sock, NULL, NULL, SOCK_CLOEXEC);

        if (sock < 0)
            return;
        serve(w, sock);
    }
}
