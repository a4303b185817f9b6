/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * service.c - the thread of the connection service.
 *
 * It sleeps in poll until a datagram comes, the device reports something, one of this process's threads has something
 * to say (wake_fd), or it is time to repeat a message.  It is the only one that touches the datagram queue pair.
 */
#include "config.h"

#include "service.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

enum {
    FIRST_INTERVAL_MS = 20, /* making a queue pair takes the peer a few of them at worst */
    LAST_INTERVAL_MS = 1000,
    GOODBYES = 8,           /* after so many the peer is taken to be gone */
    ONE_MS = 1000000,
    LOOK_MS = 50,           /* between looks whether the peer has left */
    REST_MS = 1000,         /* longest sleep: nobody wakes it when the program closes the descriptors */
    NONCE_JITTER = 8,       /* spreads repeats by up to an eighth */
};

uint64_t shmemi_verbs_now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void wake(const struct shmemi_verbs_service *s)
{
    const uint64_t one = 1;

    /* Fails only when the counter is full, and then the thread is awake. */
    if (write(s->wake_fd, &one, sizeof one) < 0)
        return;
}

/* ---- what is due ---- */

static uint64_t later(uint64_t now, uint64_t *interval_ns, uint64_t nonce)
{
    uint64_t wait = *interval_ns + *interval_ns / NONCE_JITTER * (nonce * 0x9e3779b97f4a7c15ull >> 61) / NONCE_JITTER;

    if (*interval_ns < (uint64_t)LAST_INTERVAL_MS * ONE_MS)
        *interval_ns *= 2;
    return now + wait;
}

static void end(struct shmemi_verbs_service *s, struct shmemi_verbs_pending *p, int status)
{
    struct shmemi_verbs_pending **at = &s->pending;

    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    p->status = status;
    p->done = true;
    pthread_cond_broadcast(&s->answered);
}

/*
 * Repeats requests whose time has come; returns when the next one is due.  A request's time runs from its first turn here, so
 * one that waits long for a CPU is sent all the same.
 */
static uint64_t repeat_requests(struct shmemi_verbs_service *s, uint64_t now, uint64_t next)
{
    struct shmemi_verbs_pending *p, *following;

    for (p = s->pending; p; p = following) {
        int status = 0;

        following = p->next;
        if (s->broken || (p->begun && now >= p->deadline_ns)) {
            end(s, p, s->broken ? -EIO : -ETIMEDOUT);
            continue;
        }
        if (!p->begun) {
            p->begun = true;
            p->deadline_ns = p->timeout_ns < UINT64_MAX - now ? now + p->timeout_ns : UINT64_MAX;
        }
        if (now >= p->send_ns) {
            if (shmemi_verbs_datagram_send(s, &s->nic->peers[p->message.to], &p->message, &status))
                p->tries++;
            if (status) {
                end(s, p, -EHOSTUNREACH);
                continue;
            }
            p->send_ns = later(now, &p->interval_ns, p->message.nonce + p->tries);
        }
        if (p->send_ns < next)
            next = p->send_ns;
        if (p->deadline_ns < next)
            next = p->deadline_ns;
    }
    return next;
}

static uint64_t repeat_goodbyes(struct shmemi_verbs_service *s, uint64_t now, uint64_t next)
{
    struct shmemi_verbs_goodbye **at = &s->goodbyes;

    while (*at) {
        struct shmemi_verbs_goodbye *g = *at;
        int ignored = 0;

        if (now >= g->send_ns) {
            if (s->broken || g->tries++ == GOODBYES) {
                *at = g->next;
                free(g);
                continue;
            }
            shmemi_verbs_datagram_send(s, &s->nic->peers[g->message.to], &g->message, &ignored);
            g->send_ns = later(now, &g->interval_ns, g->message.nonce + g->tries);
        }
        if (g->send_ns < next)
            next = g->send_ns;
        at = &g->next;
    }
    return next;
}

/* ---- what has come ---- */

static void take_answer(struct shmemi_verbs_service *s, const struct shmemi_verbs_message *m)
{
    struct shmemi_verbs_pending *p;

    pthread_mutex_lock(&s->lock);
    p = s->pending;
    while (p && (p->message.nonce != m->nonce || p->message.to != m->from))
        p = p->next;
    if (p) {
        p->peer_qpn = m->qpn;
        p->refused = m->status != 0;
        end(s, p, m->status);
    }
    pthread_mutex_unlock(&s->lock);
}

static void take_gone(struct shmemi_verbs_service *s, const struct shmemi_verbs_message *m)
{
    struct shmemi_verbs_goodbye **at;

    pthread_mutex_lock(&s->lock);
    at = &s->goodbyes;
    while (*at && ((*at)->message.nonce != m->nonce || (*at)->message.to != m->from))
        at = &(*at)->next;
    if (*at) {
        struct shmemi_verbs_goodbye *g = *at;

        *at = g->next;
        free(g);
    }
    pthread_mutex_unlock(&s->lock);
}

static void take(struct shmemi_verbs_service *s, const struct shmemi_verbs_message *m)
{
    switch (m->type) {
    case SHMEMI_VERBS_CONNECT:
        shmemi_verbs_serve_connect(s, m);
        break;
    case SHMEMI_VERBS_ANSWER:
        take_answer(s, m);
        break;
    case SHMEMI_VERBS_BYE:
        shmemi_verbs_serve_bye(s, m);
        break;
    case SHMEMI_VERBS_GONE:
        take_gone(s, m);
        break;
    default:
        break;
    }
}

/* ---- the thread ---- */

/* As daemons do, which close all that they do not know.  There is nothing to sleep on then. */
static bool closed(struct shmemi_verbs_service *s, const struct pollfd fds[3])
{
    const struct timespec moment = { .tv_nsec = LOOK_MS * ONE_MS };

    if (!((fds[0].revents | fds[1].revents | fds[2].revents) & POLLNVAL))
        return false;
    if (!s->broken) {
        shmemi_verbs_log(s->nic->config, SHMEMI_VERBS_ERR,
                         SHMEMI_VERBS_AT ": this process has closed the NIC's file descriptors, which are not its own (close_range, "
                                         "closefrom, or a loop over all?): nothing more goes through it",
                         SHMEMI_VERBS_AT_ARGS(s->nic));
        s->broken = true;
        shmemi_verbs_queues_fail(s->nic);
    }
    nanosleep(&moment, NULL);
    return true;
}

static void sleep_until(struct shmemi_verbs_service *s, uint64_t now, uint64_t next)
{
    struct pollfd fds[3] = { { s->wake_fd, POLLIN, 0 }, { s->channel->fd, POLLIN, 0 }, { s->nic->ctx->async_fd, POLLIN, 0 } };
    int ms = next - now > (uint64_t)REST_MS * ONE_MS ? REST_MS : (int)((next - now + ONE_MS - 1) / ONE_MS);
    struct ibv_cq *cq;
    uint64_t count;
    void *context;

    if (poll(fds, 3, ms) <= 0 || closed(s, fds))
        return;
    if ((fds[0].revents & POLLIN) && read(s->wake_fd, &count, sizeof count) < 0)
        return;
    if ((fds[1].revents & POLLIN) && ibv_get_cq_event(s->channel, &cq, &context) == 0)
        ibv_ack_cq_events(cq, 1);
    if (fds[2].revents & POLLIN)
        shmemi_verbs_events(s);
}

static void *serve(void *arg)
{
    struct shmemi_verbs_service *s = arg;

    for (;;) {
        uint64_t now, next;
        bool stop;

        /* Armed before the queue is looked at: what comes later wakes the poll. */
        if (ibv_req_notify_cq(s->cq, 0))
            s->broken = true;
        shmemi_verbs_datagram_receive(s, take);
        now = shmemi_verbs_now_ns();
        pthread_mutex_lock(&s->lock);
        stop = s->stop;
        next = repeat_requests(s, now, UINT64_MAX);
        next = repeat_goodbyes(s, now, next);
        pthread_mutex_unlock(&s->lock);
        if (stop)
            return NULL;
        sleep_until(s, now, next < now ? now : next);
    }
}

/* No signal of the program is taken by this thread. */
static int start_thread(struct shmemi_verbs_service *s)
{
    sigset_t all, before;
    int err;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    err = pthread_create(&s->thread, NULL, serve, s);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (err)
        return -err;
    s->running = true;
    pthread_setname_np(s->thread, "marrow-nic");
    return 0;
}

/* ---- for the rest of the module ---- */

int shmemi_verbs_service_open(struct shmemi_verbs_nic *nic)
{
    struct shmemi_verbs_service *s = calloc(1, sizeof *s);
    pthread_condattr_t attr;
    int status;

    if (!s)
        return -ENOMEM;
    nic->service = s;
    s->nic = nic;
    pthread_mutex_init(&s->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&s->answered, &attr);
    pthread_condattr_destroy(&attr);
    if (getrandom(&s->next_nonce, sizeof s->next_nonce, 0) != sizeof s->next_nonce)
        s->next_nonce = shmemi_verbs_now_ns();
    s->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    status = s->wake_fd < 0 ? -errno : shmemi_verbs_datagram_open(s);
    if (status)
        shmemi_verbs_service_close(nic);
    return status;
}

void shmemi_verbs_service_address(const struct shmemi_verbs_nic *nic, struct shmemi_verbs_address *address)
{
    address->qpn = nic->service->qp->qp_num;
    address->qkey = nic->service->qkey;
}

int shmemi_verbs_service_start(struct shmemi_verbs_nic *nic)
{
    struct shmemi_verbs_service *s = nic->service;
    int status;

    s->ahs = calloc((size_t)nic->config->n_pes * SHMEMI_NIC_RAILS, sizeof(struct ibv_ah *));
    if (!s->ahs)
        return -ENOMEM;
    if (fcntl(nic->ctx->async_fd, F_SETFL, fcntl(nic->ctx->async_fd, F_GETFL) | O_NONBLOCK))
        return -errno;
    status = start_thread(s);
    if (status)
        shmemi_verbs_log(nic->config, SHMEMI_VERBS_ERR, "cannot start the connection service's thread: %s",
                         strerror(-status));
    return status;
}

void shmemi_verbs_service_close(struct shmemi_verbs_nic *nic)
{
    struct shmemi_verbs_service *s = nic->service;

    if (!s)
        return;
    if (s->running) {
        pthread_mutex_lock(&s->lock);
        s->stop = true;
        pthread_mutex_unlock(&s->lock);
        wake(s);
        pthread_join(s->thread, NULL);
    }
    while (s->goodbyes) {
        struct shmemi_verbs_goodbye *g = s->goodbyes;

        s->goodbyes = g->next;
        free(g);
    }
    shmemi_verbs_served_free(s);
    shmemi_verbs_datagram_close(s);
    if (s->wake_fd >= 0)
        close(s->wake_fd);
    pthread_cond_destroy(&s->answered);
    pthread_mutex_destroy(&s->lock);
    free(s);
    nic->service = NULL;
}

static void fill(const struct shmemi_verbs_nic *nic, struct shmemi_verbs_message *m, enum shmemi_verbs_message_type type,
                 int pe, uint64_t nonce)
{
    memset(m, 0, sizeof *m);
    m->magic = SHMEMI_VERBS_MAGIC;
    m->type = type;
    m->nonce = nonce;
    m->from = nic->config->my_pe;
    m->to = pe;
    m->kind = nic->nic.kind;
    m->origin = nic->own;
}

static int explain(struct shmemi_verbs_nic *nic, const struct shmemi_verbs_pending *p)
{
    char name[SHMEMI_VERBS_NAME_BYTES];

    shmemi_verbs_peer_name(nic, p->message.to, name, sizeof name);
    if (p->refused)
        shmemi_verbs_log(nic->config, SHMEMI_VERBS_ERR, SHMEMI_VERBS_AT ": %s refuses a connection: %s; it says more itself",
                         SHMEMI_VERBS_AT_ARGS(nic), name, strerror(-p->status));
    else if (p->status == -ETIMEDOUT)
        shmemi_verbs_log(nic->config, SHMEMI_VERBS_ERR,
                         SHMEMI_VERBS_AT ": %s has not answered %u connection requests in %.3g s; %s "
                         "(MARROW_CONNECT_TIMEOUT waits longer)",
                         SHMEMI_VERBS_AT_ARGS(nic), name, p->tries, (double)nic->config->connect_timeout_ns / 1e9,
                         shmemi_verbs_same_network(&nic->own, &nic->peers[p->message.to]) ?
                         "has its process ended, is its port down, or is there no route?" :
                         "their addresses are of different networks: is there a route? MARROW_HCA_LIST keeps all PEs to the "
                         "devices of one");
    /* Other causes have been said where they were found. */
    return p->status;
}

/* For an answer, but no longer than a peer's leaving may go unnoticed. */
static void wait_a_moment(struct shmemi_verbs_service *s)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_nsec += LOOK_MS * ONE_MS;
    t.tv_sec += t.tv_nsec / 1000000000;
    t.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&s->answered, &s->lock, &t);
}

int shmemi_verbs_service_connect(struct shmemi_verbs_nic *nic, const struct shmemi_verbs_end *own,
                                 const struct shmemi_verbs_asked *how, uint64_t *nonce_out, uint32_t *peer_qpn_out)
{
    struct shmemi_verbs_service *s = nic->service;
    struct shmemi_verbs_pending p = { .interval_ns = (uint64_t)FIRST_INTERVAL_MS * ONE_MS, .timeout_ns = how->timeout_ns };

    pthread_mutex_lock(&s->lock);
    fill(nic, &p.message, SHMEMI_VERBS_CONNECT, own->pe, s->next_nonce++);
    p.message.qpn = own->qpn;
    p.message.psn = own->psn;
    p.next = s->pending;
    s->pending = &p;
    wake(s);
    while (!p.done) {
        wait_a_moment(s);
        if (!p.done && nic->config->gone && nic->config->gone(own->pe))
            end(s, &p, -ESHUTDOWN);
    }
    pthread_mutex_unlock(&s->lock);
    *nonce_out = p.message.nonce;
    if (p.status) {
        shmemi_verbs_service_bye(nic, own->pe, p.message.nonce);
        return how->quiet ? p.status : explain(nic, &p);
    }
    *peer_qpn_out = p.peer_qpn;
    return 0;
}

uint64_t shmemi_verbs_service_scratch(const struct shmemi_verbs_nic *nic, uint32_t *lkey_out)
{
    const struct shmemi_verbs_service *s = nic->service;

    *lkey_out = s->mr->lkey;
    return (uintptr_t)s->slots + (size_t)(SHMEMI_VERBS_RECEIVES + SHMEMI_VERBS_SENDS) * SHMEMI_VERBS_SLOT_BYTES;
}

/* Without memory the peer's small queue pair stays until the end. */
void shmemi_verbs_service_bye(struct shmemi_verbs_nic *nic, int pe, uint64_t nonce)
{
    struct shmemi_verbs_service *s = nic->service;
    struct shmemi_verbs_goodbye *g = calloc(1, sizeof *g);

    if (!g)
        return;
    fill(nic, &g->message, SHMEMI_VERBS_BYE, pe, nonce);
    g->interval_ns = (uint64_t)FIRST_INTERVAL_MS * ONE_MS;
    pthread_mutex_lock(&s->lock);
    g->next = s->goodbyes;
    s->goodbyes = g;
    pthread_mutex_unlock(&s->lock);
    wake(s);
}
