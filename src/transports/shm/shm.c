/* SPDX-License-Identifier: BSD-3-Clause */
/* shm.c - creates, hands over and maps the memory of a node. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "shm.h"

#include "core/log.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define HUGE ((size_t)2 << 20)
#define PAGE ((size_t)4096)
#define STRANGER_MS 2000 /* how long a connection may take to say the secret */

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/*
 * A program's timer or profiler may interrupt every call that waits, however its handler was installed: sockets with a
 * time limit are never restarted by the kernel.  `end` is 0 for no limit.
 */
#define UNINTERRUPTED(result, call, end)                                    \
    do                                                                      \
        result = (call);                                                    \
    while (result < 0 && errno == EINTR && ((end) == 0 || now_ns() < (end)))

static socklen_t abstract_address(struct sockaddr_un *a, const char *name)
{
    memset(a, 0, sizeof *a);
    a->sun_family = AF_UNIX;
    memcpy(a->sun_path + 1, name, strlen(name));
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
}

int shmemi_shm_door_open(struct shmemi_shm_door *door)
{
    struct sockaddr_un a;
    uint64_t r;
    int rc;

    if (getrandom(door->secret, sizeof door->secret, 0) != (ssize_t)sizeof door->secret ||
        getrandom(&r, sizeof r, 0) != (ssize_t)sizeof r)
        return -EIO;
    snprintf(door->name, sizeof door->name, "marrow-%016llx", (unsigned long long)r);
    door->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (door->fd < 0) {
        rc = -errno;
        shmemi_err("shm", "cannot create a unix socket: %m");
        return rc;
    }
    if (bind(door->fd, (struct sockaddr *)&a, abstract_address(&a, door->name)) || listen(door->fd, SOMAXCONN)) {
        rc = -errno;
        shmemi_err("shm", "cannot listen on unix socket @%s: %m", door->name);
        close(door->fd);
        return rc;
    }
    return 0;
}

void shmemi_shm_door_close(struct shmemi_shm_door *door)
{
    if (door->fd >= 0)
        close(door->fd);
    door->fd = -1;
}

int shmemi_shm_layout(struct shmemi_shm *shm, int n_local, size_t ctl_len, size_t team_len, size_t data_len,
                      size_t heap_len)
{
    size_t slice;

    shm->fd = -1;
    shm->base = NULL;
    shm->data_len = data_len;
    shm->heap_len = heap_len;
    shm->off_team_blocks = (ctl_len + PAGE - 1) & ~(PAGE - 1);
    shm->off_data = shm->off_team_blocks + team_len;
    shm->off_heap = (shm->off_data + data_len + HUGE - 1) & ~(HUGE - 1);
    if (__builtin_add_overflow(shm->off_heap + HUGE, heap_len, &slice))
        return -EOVERFLOW;
    shm->slice = slice & ~(HUGE - 1);
    shm->header = HUGE; /* keeps every heap on a huge page boundary */
    if (__builtin_mul_overflow(shm->slice, (size_t)n_local, &shm->total) ||
        __builtin_add_overflow(shm->total, shm->header, &shm->total) || shm->total > ((size_t)1 << 46))
        return -EOVERFLOW;
    return 0;
}

/* Which limit may be in the way of so much memory; empty when there is none. */
static const char *limit_hint(int resource, const char *name, char *buf, size_t len)
{
    struct rlimit limit;

    buf[0] = '\0';
    if (!getrlimit(resource, &limit) && limit.rlim_cur != RLIM_INFINITY)
        snprintf(buf, len, "; the limit of %s is %llu KiB here: raise it, or lower SHMEM_SYMMETRIC_SIZE", name,
                 (unsigned long long)limit.rlim_cur / 1024);
    return buf;
}

static int create_memory(struct shmemi_shm *shm)
{
    sigset_t xfsz, old;
    char hint[128];
    int rc = 0;

    shm->fd = memfd_create("marrow", MFD_CLOEXEC);
    if (shm->fd < 0) {
        rc = -errno;
        shmemi_err("shm", "cannot create shared memory (memfd_create): %m");
        return rc;
    }
    /* A file size limit sends SIGXFSZ besides failing: the error is wanted, the signal is not. */
    sigemptyset(&xfsz);
    sigaddset(&xfsz, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &xfsz, &old);
    if (ftruncate(shm->fd, (off_t)shm->total))
        rc = -errno;
    if (rc) {
        struct timespec none = { 0 };

        sigtimedwait(&xfsz, NULL, &none);
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (rc) {
        errno = -rc;
        shmemi_err("shm", "cannot make %zu bytes of shared memory for this node (heaps of %zu bytes): %m%s", shm->total,
                   shm->heap_len,
                   rc == -EFBIG ? limit_hint(RLIMIT_FSIZE, "a file's size (ulimit -f)", hint, sizeof hint) : "");
        close(shm->fd);
        shm->fd = -1;
    }
    return rc;
}

int shmemi_shm_send_fd(int sock, int fd, uint64_t end)
{
    union {
        struct cmsghdr align;
        char buf[CMSG_SPACE(sizeof(int))];
    } control = { .buf = { 0 } };
    char byte = 'M';
    struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
    struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.buf,
                          .msg_controllen = sizeof control.buf };
    struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
    ssize_t n;

    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(c), &fd, sizeof fd);
    UNINTERRUPTED(n, sendmsg(sock, &msg, MSG_NOSIGNAL), end);
    return n == 1 ? 0 : -errno;
}

int shmemi_shm_recv_fd(int sock, int *fd_out, uint64_t end)
{
    union {
        struct cmsghdr align;
        char buf[CMSG_SPACE(sizeof(int))];
    } control;
    char byte;
    struct iovec iov = { .iov_base = &byte, .iov_len = 1 };
    struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.buf,
                          .msg_controllen = sizeof control.buf };
    struct cmsghdr *c;
    ssize_t n;

    UNINTERRUPTED(n, recvmsg(sock, &msg, MSG_CMSG_CLOEXEC), end);
    if (n != 1)
        return n < 0 ? -errno : -ECONNRESET;
    c = CMSG_FIRSTHDR(&msg);
    if (!c || c->cmsg_type != SCM_RIGHTS || c->cmsg_len != CMSG_LEN(sizeof(int)))
        return -EPROTO;
    memcpy(fd_out, CMSG_DATA(c), sizeof(int));
    return 0;
}

int shmemi_shm_same_user(int sock)
{
    struct ucred cred;
    socklen_t len = sizeof cred;

    return getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0 && cred.uid == geteuid();
}

static void limit_io(int sock, uint64_t ns)
{
    struct timeval t = { .tv_sec = (time_t)(ns / 1000000000u), .tv_usec = (suseconds_t)(ns % 1000000000u / 1000) };

    if (!ns)
        return;
    setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
    setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof t);
}

/* 1 when a PE was served, 0 when the caller was a stranger. */
static int serve_one(const struct shmemi_shm *shm, const struct shmemi_shm_door *door)
{
    uint64_t end = now_ns() + STRANGER_MS * 1000000ull;
    uint8_t said[16];
    ssize_t n;
    int served = 0, sock = accept4(door->fd, NULL, NULL, SOCK_CLOEXEC);

    if (sock < 0)
        return 0;
    limit_io(sock, STRANGER_MS * 1000000ull);
    if (shmemi_shm_same_user(sock)) {
        UNINTERRUPTED(n, recv(sock, said, sizeof said, MSG_WAITALL), end);
        if (n == (ssize_t)sizeof said && !memcmp(said, door->secret, sizeof said))
            served = shmemi_shm_send_fd(sock, shm->fd, end) == 0;
    }
    close(sock);
    return served;
}

int shmemi_shm_lead(struct shmemi_shm *shm, struct shmemi_shm_door *door, int n_others, uint64_t timeout_ns)
{
    uint64_t end = now_ns() + timeout_ns;
    int rc = create_memory(shm), served = 0;

    if (rc)
        return rc;
    while (served < n_others) {
        struct pollfd p = { .fd = door->fd, .events = POLLIN };
        uint64_t now = now_ns();

        if (timeout_ns && now >= end) {
            shmemi_err("shm", "%d of %d PEs of this node did not fetch the shared memory in %.0f s", n_others - served,
                       n_others, (double)timeout_ns / 1e9);
            return -ETIMEDOUT;
        }
        if (poll(&p, 1, timeout_ns && end - now < 1000000000u ? (int)((end - now) / 1000000u) + 1 : 1000) > 0)
            served += serve_one(shm, door);
    }
    return 0;
}

int shmemi_shm_connect(const char *door_name, const uint8_t secret[16], uint64_t timeout_ns)
{
    struct sockaddr_un a;
    socklen_t len = abstract_address(&a, door_name);
    uint64_t end = timeout_ns ? now_ns() + timeout_ns : 0;
    ssize_t n;
    int rc, sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (sock < 0)
        return -errno;
    limit_io(sock, timeout_ns);
    UNINTERRUPTED(rc, connect(sock, (struct sockaddr *)&a, len), end);
    if (rc) {
        rc = -errno;
    } else if (!shmemi_shm_same_user(sock)) {
        rc = -EPERM;
    } else {
        UNINTERRUPTED(n, send(sock, secret, 16, MSG_NOSIGNAL), end);
        rc = n == 16 ? 0 : -errno;
    }
    if (!rc)
        return sock;
    close(sock);
    return rc;
}

int shmemi_shm_join(struct shmemi_shm *shm, const char *door_name, const uint8_t secret[16], uint64_t timeout_ns)
{
    int sock = shmemi_shm_connect(door_name, secret, timeout_ns);
    int rc = sock < 0 ? sock : shmemi_shm_recv_fd(sock, &shm->fd, timeout_ns ? now_ns() + timeout_ns : 0);

    if (sock >= 0)
        close(sock);
    if (rc) {
        errno = -rc;
        shmemi_err("shm", "cannot fetch the node's shared memory from @%s: %m%s", door_name,
                   rc == -ECONNREFUSED || rc == -ECONNRESET ?
                       " (the node's first PE has failed and says why, or its network namespace is another one)" :
                       "");
    }
    return rc;
}

/*
 * Address space for everything, such that byte `anchor` of it lies at a multiple of SHMEMI_SHM_ALIGN.  What the search
 * reserved too much is given back.
 */
static char *reserve(const struct shmemi_shm *shm, size_t anchor)
{
    char *raw = mmap(NULL, shm->total + SHMEMI_SHM_ALIGN, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    char *base;

    if (raw == MAP_FAILED)
        return NULL;
    base = raw + (-((uintptr_t)raw + anchor) & (SHMEMI_SHM_ALIGN - 1));
    if (base > raw)
        munmap(raw, (size_t)(base - raw));
    munmap(base + shm->total, (size_t)(raw + SHMEMI_SHM_ALIGN - base));
    return base;
}

int shmemi_shm_map(struct shmemi_shm *shm, int my_local)
{
    char *base = reserve(shm, shm->header + (size_t)my_local * shm->slice + shm->off_heap);
    char hint[128];
    int rc;

    if (!base) {
        rc = -errno;
        shmemi_err("shm", "no address space for %zu bytes (%zu a PE): %m%s", shm->total, shm->slice,
                   limit_hint(RLIMIT_AS, "address space (ulimit -v)", hint, sizeof hint));
        return rc;
    }
    if (mmap(base, shm->total, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, shm->fd, 0) == MAP_FAILED) {
        rc = -errno;
        shmemi_err("shm", "cannot map %zu bytes of the node's shared memory: %m", shm->total);
        munmap(base, shm->total);
        return rc;
    }
    /* A crash would write all heaps of the node, untouched pages too, which takes a minute and more memory than there is. */
    madvise(base, shm->total, MADV_DONTDUMP);
    madvise(base, shm->total, MADV_HUGEPAGE); /* a wish: the kernel may not do it for shared memory */
    shm->base = base;
    return 0;
}

void shmemi_shm_close(struct shmemi_shm *shm)
{
    if (shm->base)
        munmap(shm->base, shm->total);
    if (shm->fd >= 0)
        close(shm->fd);
    shm->base = NULL;
    shm->fd = -1;
}
