/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * door.c - hands the chunks of this PE's device heap to the node's PEs, as descriptors.
 *
 * Each PE listens at an abstract unix socket, whose name and secret it shows in memory that only the node's PEs of the job
 * have.  A thread serves: a peer connects once, says the secret, then asks for chunks by their offset (8 bytes) and
 * receives for each a byte with the descriptor, or a byte alone when there is none.  So a PE may fetch whenever it needs
 * to, and no PE must be in a call for that.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "gpu.h"

#include "core/log.h"
#include "shmem/device/port.h"
#include "transports/shm/shm.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define TURN_MS 100
#define STRANGER_US 2000000 /* how long a caller may take for what it has to say */

static struct {
    struct shmemi_shm_door door;
    pthread_t thread;
    bool running;
    uint32_t stop;
    int wake[2];          /* a byte here ends the nap */
    void (*also)(void);
    struct pollfd *polls; /* door, wake, then the callers */
    int n_polls, room;
    int *to;              /* by PE of the node: connection to its door, or -1; for the asking side */
    pthread_mutex_t asking;
    uint64_t timeout_ns;
} it = { .door = { .fd = -1 }, .asking = PTHREAD_MUTEX_INITIALIZER };

static void limit(int sock)
{
    struct timeval t = { .tv_sec = STRANGER_US / 1000000 };

    setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof t);
    setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &t, sizeof t);
}

static bool receive_all(int sock, void *buf, size_t len)
{
    ssize_t n;

    do
        n = recv(sock, buf, len, MSG_WAITALL);
    while (n < 0 && errno == EINTR);
    return n == (ssize_t)len;
}

static void admit(void)
{
    int sock = accept4(it.door.fd, NULL, NULL, SOCK_CLOEXEC);
    uint8_t said[16];

    if (sock < 0)
        return;
    limit(sock);
    if (it.n_polls < it.room && shmemi_shm_same_user(sock) && receive_all(sock, said, sizeof said) &&
        !memcmp(said, it.door.secret, sizeof said))
        it.polls[it.n_polls++] = (struct pollfd){ .fd = sock, .events = POLLIN };
    else
        close(sock);
}

/* False: this caller has left. */
static bool answer(int sock)
{
    uint64_t off;
    char none = 'N';
    int fd, rc;

    if (!receive_all(sock, &off, sizeof off))
        return false;
    fd = shmemi_gpu_export((size_t)off);
    if (fd < 0)
        return send(sock, &none, 1, MSG_NOSIGNAL) == 1;
    rc = shmemi_shm_send_fd(sock, fd, 0);
    close(fd);
    return rc == 0;
}

static void serve_callers(void)
{
    for (int i = 2; i < it.n_polls; i++) {
        if (!it.polls[i].revents || answer(it.polls[i].fd))
            continue;
        close(it.polls[i].fd);
        it.polls[i--] = it.polls[--it.n_polls];
    }
}

static void *serve(void *arg)
{
    while (!SHMEMI_LD_ACQ(&it.stop)) {
        int n = poll(it.polls, (nfds_t)it.n_polls, TURN_MS);

        if (n > 0) {
            serve_callers();
            if (it.polls[0].revents)
                admit();
        }
        if (it.also)
            it.also();
    }
    return arg;
}

static int start_thread(void)
{
    sigset_t all, old;
    int rc;

    SHMEMI_ST_REL(&it.stop, 0u);
    sigfillset(&all); /* the program's signals are for its own threads */
    pthread_sigmask(SIG_SETMASK, &all, &old);
    rc = pthread_create(&it.thread, NULL, serve, NULL);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    it.running = rc == 0;
    return -rc;
}

int shmemi_gpu_door_open(struct shmemi_gpu_card *mine, uint64_t timeout_ns)
{
    int n = shmemi_gpu.n_local, rc;

    it.timeout_ns = timeout_ns;
    it.room = n + 2 + 8; /* a few strangers besides */
    it.polls = calloc((size_t)it.room, sizeof *it.polls);
    it.to = malloc((size_t)n * sizeof *it.to);
    if (!it.polls || !it.to || pipe2(it.wake, O_CLOEXEC)) {
        free(it.polls);
        free(it.to);
        it.to = NULL;
        it.polls = NULL;
        return -ENOMEM;
    }
    for (int i = 0; i < n; i++)
        it.to[i] = -1;
    rc = shmemi_shm_door_open(&it.door);
    if (!rc) {
        memcpy(mine->secret, it.door.secret, sizeof mine->secret);
        memcpy(mine->door, it.door.name, sizeof mine->door);
        it.polls[0] = (struct pollfd){ .fd = it.door.fd, .events = POLLIN };
        it.polls[1] = (struct pollfd){ .fd = it.wake[0], .events = POLLIN };
        it.n_polls = 2;
        rc = start_thread();
    }
    if (rc)
        shmemi_gpu_door_close();
    return rc;
}

void shmemi_gpu_door_also(void (*watch)(void))
{
    it.also = watch;
}

void shmemi_gpu_door_close(void)
{
    if (!it.polls)
        return;
    if (it.running) {
        SHMEMI_ST_REL(&it.stop, 1u);
        if (write(it.wake[1], "", 1) == 1)
            pthread_join(it.thread, NULL);
    }
    for (int i = 2; i < it.n_polls; i++)
        close(it.polls[i].fd);
    for (int i = 0; i < shmemi_gpu.n_local; i++)
        if (it.to[i] >= 0)
            close(it.to[i]);
    close(it.wake[0]);
    close(it.wake[1]);
    shmemi_shm_door_close(&it.door);
    free(it.polls);
    free(it.to);
    it.polls = NULL;
    it.to = NULL;
    it.running = false;
    it.n_polls = 0;
    it.also = NULL;
}

static int ask(int local, const struct shmemi_gpu_card *card, size_t off)
{
    uint64_t what = off;
    int fd, rc;

    if (it.to[local] < 0)
        it.to[local] = shmemi_shm_connect(card->door, card->secret, it.timeout_ns);
    if (it.to[local] < 0) {
        rc = it.to[local];
        it.to[local] = -1;
        return rc;
    }
    if (send(it.to[local], &what, sizeof what, MSG_NOSIGNAL) != (ssize_t)sizeof what)
        return -errno;
    rc = shmemi_shm_recv_fd(it.to[local], &fd, 0);
    if (rc == -EPROTO)
        return -ENOENT;
    return rc ? rc : fd;
}

int shmemi_gpu_door_fetch(int local, const struct shmemi_gpu_card *card, size_t off)
{
    int fd;

    pthread_mutex_lock(&it.asking);
    fd = ask(local, card, off);
    pthread_mutex_unlock(&it.asking);
    if (fd < 0 && fd != -ENOENT) {
        errno = -fd;
        shmemi_err("cuda", "cannot fetch device memory of the node's PE %d from @%s: %m", local, card->door);
    }
    return fd;
}
