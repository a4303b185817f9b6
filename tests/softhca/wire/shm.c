/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The shared-memory wire: one ring a direction and pair of processes, made by the sender and handed over through the
 * receiver's abstract socket. A full ring holds the sender back, so nothing is lost on it but by injected faults.
 */
#define _GNU_SOURCE
#include "wire/wire_priv.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define RING_BYTES (512u * 1024)
#define RECORD_ICRC 0x80000000u  /* the packet ends with an ICRC that the receiver shall check */
#define RECORD_SKIP 0x40000000u  /* nothing more before the ring's end */
#define RECORD_LEN 0x0000ffffu
#define RECORD_MAX ((8 + PKT_MAX_LEN + 7) & ~7u)
#define RETRY_NS 2000000ull

struct shm_ring {
    uint64_t head __attribute__((aligned(64)));      /* bytes produced; release by sender, acquire by receiver */
    uint64_t tail __attribute__((aligned(64)));      /* bytes consumed; release by receiver, acquire by sender */
    uint32_t sleeping __attribute__((aligned(64)));  /* the receiver wants a byte on the socket */
    uint8_t data[RING_BYTES] __attribute__((aligned(64)));
};

static struct shm_ring *map_ring(int fd)
{
    void *p = mmap(NULL, sizeof(struct shm_ring), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    return p == MAP_FAILED ? NULL : p;
}

static int watch(struct wire *w, int fd, uint64_t mark)
{
    struct epoll_event ev = { .events = EPOLLIN | EPOLLRDHUP, .data.u64 = mark };

    return epoll_ctl(w->epoll, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

static int make_ring(struct wire *w, uint32_t slot, int sock)
{
    struct ctl_msg msg = { .magic = CTL_MAGIC, .type = CTL_ATTACH, .slot = w->slot };
    int fd = memfd_create("softhca-ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int err;

    if (fd < 0)
        return -errno;
    /* The seal assures the receiver that the file does not shrink under its feet. */
    if (ftruncate(fd, sizeof(struct shm_ring)) || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK)) {
        err = -errno;
        close(fd);
        return err;
    }
    w->out[slot].ring = map_ring(fd);
    err = w->out[slot].ring ? ctl_send_fd(sock, &msg, fd) : -ENOMEM;
    close(fd);
    return err;
}

static bool connect_out(struct wire *w, uint32_t slot)
{
    struct shm_out *o = &w->out[slot];
    uint64_t now;
    int sock;

    if (o->sock >= 0)
        return true;
    now = wire_now_ns();
    if (now < o->retry_ns)
        return false;
    o->retry_ns = now + RETRY_NS;
    sock = ctl_connect(slot);
    if (sock < 0)
        return false;
    if (make_ring(w, slot, sock) || watch(w, sock, WIRE_EV_OUT + slot)) {
        if (o->ring)
            munmap(o->ring, sizeof(*o->ring));
        o->ring = NULL;
        close(sock);
        return false;
    }
    o->sock = sock;
    o->head = 0;
    return true;
}

void shm_out_close(struct wire *w, uint32_t slot)
{
    struct shm_out *o = &w->out[slot];

    if (o->sock < 0)
        return;
    close(o->sock);
    munmap(o->ring, sizeof(*o->ring));
    o->sock = -1;
    o->ring = NULL;
    o->retry_ns = 0;
}

uint8_t *shm_reserve(struct wire *w, uint32_t slot)
{
    struct shm_out *o = &w->out[slot];
    uint64_t used;
    uint32_t at;

    w->unreachable = !connect_out(w, slot);
    if (w->unreachable)
        return w->scratch;
    /* pairs with the release in shm_poll: the receiver has read what it counts as consumed */
    used = o->head - __atomic_load_n(&o->ring->tail, __ATOMIC_ACQUIRE);
    at = (uint32_t)(o->head % RING_BYTES);
    if (RING_BYTES - used < 2 * RECORD_MAX)
        return NULL;
    if (RING_BYTES - at < RECORD_MAX) {
        uint32_t skip = RECORD_SKIP;

        memcpy(o->ring->data + at, &skip, sizeof(skip));
        o->head += RING_BYTES - at;
        at = 0;
    }
    return o->ring->data + at + 8;
}

static void wake_receiver(struct shm_out *o)
{
    char byte = 0;

    if (!__atomic_exchange_n(&o->ring->sleeping, 0, __ATOMIC_SEQ_CST))
        return;
    if (send(o->sock, &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        return; /* gone or overslept: epoll reports the first, the nap ends by itself in the other case */
}

void shm_commit(struct wire *w, uint32_t slot, size_t len, bool has_icrc)
{
    struct shm_out *o = &w->out[slot];
    uint32_t word = (uint32_t)len | (has_icrc ? RECORD_ICRC : 0);

    memcpy(o->ring->data + o->head % RING_BYTES, &word, sizeof(word));
    o->head += (8 + len + 7) & ~7ull;
    /* pairs with the acquire in shm_poll; sequentially consistent because the sleep flag is looked at next */
    __atomic_store_n(&o->ring->head, o->head, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&o->ring->sleeping, __ATOMIC_SEQ_CST))
        wake_receiver(o);
}

int shm_attach(struct wire *w, int sock, uint32_t slot, int fd)
{
    struct shm_in *in;
    struct stat st;

    if (fstat(fd, &st) || st.st_size != (off_t)sizeof(struct shm_ring) ||
        !(fcntl(fd, F_GET_SEALS) & F_SEAL_SHRINK))
        return -EINVAL;
    if (w->n_in == w->cap_in) {
        unsigned cap = w->cap_in ? 2 * w->cap_in : 16;
        struct shm_in **bigger = realloc(w->in, cap * sizeof(*bigger));

        if (!bigger)
            return -ENOMEM;
        w->in = bigger;
        w->cap_in = cap;
    }
    in = calloc(1, sizeof(*in));
    if (!in)
        return -ENOMEM;
    in->ring = map_ring(fd);
    in->sock = sock;
    in->slot = slot;
    fcntl(sock, F_SETFL, O_NONBLOCK);
    if (!in->ring || watch(w, sock, (uint64_t)(uintptr_t)in)) {
        if (in->ring)
            munmap(in->ring, sizeof(*in->ring));
        free(in);
        return -ENOMEM;
    }
    w->in[w->n_in++] = in;
    return 0;
}

/* Takes packets from one ring until it is empty or the budget is used up; returns how many. */
static unsigned drain(struct wire *w, struct shm_in *in, unsigned budget)
{
    struct shm_ring *r = in->ring;
    uint64_t head = __atomic_load_n(&r->head, __ATOMIC_ACQUIRE); /* pairs with shm_commit */
    unsigned n = 0;

    while (in->tail != head && n < budget) {
        uint32_t at = (uint32_t)(in->tail % RING_BYTES);
        uint32_t word, len;

        memcpy(&word, r->data + at, sizeof(word));
        len = word & RECORD_LEN;
        if (word & RECORD_SKIP) {
            in->tail += RING_BYTES - at;
            continue;
        }
        /* The ring belongs to another process: nothing in it is believed. */
        if (len > PKT_MAX_LEN || (at & 7) || at + 8 + len > RING_BYTES || head - in->tail > RING_BYTES) {
            w->stats.rx_short++;
            in->tail = head;
            break;
        }
        wire_deliver(w, in->slot, r->data + at + 8, len, word & RECORD_ICRC);
        in->tail += (8 + len + 7) & ~7ull;
        n++;
        if (!(n & 7))
            __atomic_store_n(&r->tail, in->tail, __ATOMIC_RELEASE); /* pairs with shm_reserve */
    }
    __atomic_store_n(&r->tail, in->tail, __ATOMIC_RELEASE); /* pairs with shm_reserve */
    return n;
}

unsigned shm_poll(struct wire *w, unsigned budget)
{
    unsigned n = 0;

    /* Starts with another peer each time, so that a busy one does not starve the others. */
    for (unsigned k = 0; k < w->n_in && n < budget; k++)
        n += drain(w, w->in[(w->next_in + k) % w->n_in], budget - n);
    if (w->n_in)
        w->next_in = (w->next_in + 1) % w->n_in;
    return n;
}

void shm_in_sweep(struct wire *w)
{
    for (unsigned i = 0; i < w->n_in;) {
        struct shm_in *in = w->in[i];

        if (!in->gone || in->tail != __atomic_load_n(&in->ring->head, __ATOMIC_ACQUIRE)) {
            i++;
            continue;
        }
        close(in->sock);
        munmap(in->ring, sizeof(*in->ring));
        free(in);
        w->in[i] = w->in[--w->n_in];
    }
}

bool shm_sleep_begin(struct wire *w)
{
    bool empty = true;

    for (unsigned i = 0; i < w->n_in; i++) {
        struct shm_in *in = w->in[i];

        __atomic_store_n(&in->ring->sleeping, 1, __ATOMIC_SEQ_CST);
        /* Flag first, then head: the sender stores head first, then looks at the flag. */
        if (__atomic_load_n(&in->ring->head, __ATOMIC_SEQ_CST) != in->tail)
            empty = false;
    }
    return empty;
}

void shm_sleep_end(struct wire *w)
{
    for (unsigned i = 0; i < w->n_in; i++)
        __atomic_store_n(&w->in[i]->ring->sleeping, 0, __ATOMIC_RELAXED);
}

bool shm_pending(const struct wire *w)
{
    for (unsigned i = 1; i <= WIRE_MAX_SLOT; i++)
        if (w->out[i].sock >= 0 && __atomic_load_n(&w->out[i].ring->tail, __ATOMIC_ACQUIRE) != w->out[i].head)
            return true;
    return false;
}

void shm_close(struct wire *w)
{
    for (uint32_t i = 1; i <= WIRE_MAX_SLOT; i++)
        shm_out_close(w, i);
    for (unsigned i = 0; i < w->n_in; i++) {
        close(w->in[i]->sock);
        munmap(w->in[i]->ring, sizeof(*w->in[i]->ring));
        free(w->in[i]);
    }
    free(w->in);
    w->in = NULL;
    w->n_in = w->cap_in = 0;
}
