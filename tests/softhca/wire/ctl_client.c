/* SPDX-License-Identifier: BSD-3-Clause */
/* The asking side of a slot's abstract socket: for engines that attach a ring, and for softhca-stat. */
#define _GNU_SOURCE
#include "wire/wire_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

socklen_t ctl_address(struct sockaddr_un *a, uint32_t slot)
{
    memset(a, 0, sizeof(*a));
    a->sun_family = AF_UNIX;
    /* Abstract name, first byte 0: no file, and the kernel frees it with the socket. */
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
                       (size_t)snprintf(a->sun_path + 1, sizeof(a->sun_path) - 1, "softhca.%u", slot));
}

bool ctl_same_user(int sock)
{
    struct ucred cred;
    socklen_t len = sizeof(cred);

    return !getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len) && (cred.uid == geteuid() || cred.uid == 0);
}

int ctl_connect(uint32_t slot)
{
    struct sockaddr_un a;
    socklen_t len = ctl_address(&a, slot);
    int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int err;

    if (sock < 0)
        return -errno;
    if (!connect(sock, (struct sockaddr *)&a, len)) {
        if (ctl_same_user(sock) || geteuid() == 0)
            return sock;
        errno = EACCES;
    }
    err = -errno;
    close(sock);
    return err;
}

int ctl_set_blocking(int sock)
{
    int flags = fcntl(sock, F_GETFL);

    return flags < 0 || fcntl(sock, F_SETFL, flags & ~O_NONBLOCK) < 0 ? -errno : 0;
}
