/* SPDX-License-Identifier: BSD-3-Clause */
/* datagram.c - the UD queue pair of the connection service. */
#include "service.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

enum { COMPLETIONS = 32, ALL = SHMEMI_VERBS_RECEIVES + SHMEMI_VERBS_SENDS };
#define SEND_ID (1ull << 32)
_Static_assert(SHMEMI_VERBS_GRH_BYTES + sizeof(struct shmemi_verbs_message) <= SHMEMI_VERBS_SLOT_BYTES, "a slot has room");
#define SLOTS_BYTES ((size_t)(ALL + 1) * SHMEMI_VERBS_SLOT_BYTES)

static unsigned char *slot(const struct shmemi_verbs_service *s, unsigned i)
{
    return s->slots + (size_t)i * SHMEMI_VERBS_SLOT_BYTES;
}

static int refused(struct shmemi_verbs_service *s, const char *what, int status)
{
    char hint[320];

    shmemi_verbs_log(s->nic->config, SHMEMI_VERBS_ERR, SHMEMI_VERBS_AT ": cannot %s for the connection service: %s%s",
                     SHMEMI_VERBS_AT_ARGS(s->nic), what, strerror(-status),
                     shmemi_verbs_memlock_hint(status, hint, sizeof hint));
    return status;
}

static int post_receive(struct shmemi_verbs_service *s, unsigned i)
{
    struct ibv_sge sge = { (uintptr_t)slot(s, i), SHMEMI_VERBS_SLOT_BYTES, s->mr->lkey };
    struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 }, *bad;

    return shmemi_verbs_status(ibv_post_recv(s->qp, &wr, &bad));
}

/* As arenas: a child of fork gets no copy. */
static int make_slots(struct shmemi_verbs_service *s)
{
    void *p = mmap(NULL, SLOTS_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED)
        return refused(s, "get memory", -errno);
    s->slots = p;
    if (madvise(p, SLOTS_BYTES, MADV_DONTFORK))
        return refused(s, "get memory", -errno);
    errno = 0;
    s->mr = ibv_reg_mr(s->nic->pd, p, SLOTS_BYTES, IBV_ACCESS_LOCAL_WRITE);
    return s->mr ? 0 : refused(s, "register memory", errno ? -errno : -EIO);
}

static int make_qp(struct shmemi_verbs_service *s)
{
    struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_UD, .sq_sig_all = 1 };

    errno = 0;
    s->channel = ibv_create_comp_channel(s->nic->ctx);
    if (s->channel)
        s->cq = ibv_create_cq(s->nic->ctx, ALL, NULL, s->channel, 0);
    if (!s->cq)
        return refused(s, "create a completion queue", errno ? -errno : -EIO);
    attr.send_cq = attr.recv_cq = s->cq;
    attr.cap.max_send_wr = SHMEMI_VERBS_SENDS;
    attr.cap.max_recv_wr = SHMEMI_VERBS_RECEIVES;
    attr.cap.max_send_sge = attr.cap.max_recv_sge = 1;
    s->qp = ibv_create_qp(s->nic->pd, &attr);
    return s->qp ? 0 : refused(s, "create a datagram queue pair", errno ? -errno : -EIO);
}

static int ready(struct shmemi_verbs_service *s)
{
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .pkey_index = (uint16_t)s->nic->config->pkey_index,
                                .port_num = (uint8_t)s->nic->nic.port, .qkey = s->qkey };
    int status;

    status = shmemi_verbs_status(
        ibv_modify_qp(s->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY));
    if (status)
        return refused(s, "initialise the datagram queue pair (is MARROW_IB_PKEY_INDEX right?)", status);
    for (unsigned i = 0; i < SHMEMI_VERBS_RECEIVES && !status; i++)
        status = post_receive(s, i);
    attr.qp_state = IBV_QPS_RTR;
    if (!status)
        status = shmemi_verbs_status(ibv_modify_qp(s->qp, &attr, IBV_QP_STATE));
    attr.qp_state = IBV_QPS_RTS;
    if (!status)
        status = shmemi_verbs_status(ibv_modify_qp(s->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN));
    return status ? refused(s, "start the datagram queue pair", status) : 0;
}

int shmemi_verbs_datagram_open(struct shmemi_verbs_service *s)
{
    int status;

    if (getrandom(&s->qkey, sizeof s->qkey, 0) != sizeof s->qkey)
        s->qkey = (uint32_t)shmemi_verbs_now_ns();
    s->qkey &= 0x7fffffff; /* with the highest bit set it would stand for the queue pair's own */
    status = make_slots(s);
    if (!status)
        status = make_qp(s);
    if (!status)
        status = ready(s);
    if (!status && fcntl(s->channel->fd, F_SETFL, fcntl(s->channel->fd, F_GETFL) | O_NONBLOCK))
        status = refused(s, "set up the completion channel", -errno);
    return status;
}

void shmemi_verbs_datagram_close(struct shmemi_verbs_service *s)
{
    for (size_t i = 0; s->ahs && i < (size_t)s->nic->config->n_pes * SHMEMI_NIC_RAILS; i++) {
        if (s->ahs[i])
            ibv_destroy_ah(s->ahs[i]);
    }
    free(s->ahs);
    if (s->qp)
        ibv_destroy_qp(s->qp);
    if (s->cq)
        ibv_destroy_cq(s->cq);
    if (s->channel)
        ibv_destroy_comp_channel(s->channel);
    if (s->mr)
        ibv_dereg_mr(s->mr);
    if (s->slots)
        munmap(s->slots, SLOTS_BYTES);
}

static struct ibv_ah *way_to(struct shmemi_verbs_service *s, int pe, const struct shmemi_verbs_address *to, int *status_out)
{
    struct ibv_ah **ah = &s->ahs[(size_t)pe * SHMEMI_NIC_RAILS + to->rail];
    char name[SHMEMI_VERBS_NAME_BYTES];
    struct ibv_ah_attr attr;

    if (*ah)
        return *ah;
    shmemi_verbs_ah_attr(s->nic, to, &attr);
    errno = 0;
    *ah = ibv_create_ah(s->nic->pd, &attr);
    if (!*ah) {
        *status_out = errno ? -errno : -EIO;
        shmemi_verbs_log(s->nic->config, SHMEMI_VERBS_ERR,
                         SHMEMI_VERBS_AT " finds no way to %s: %s; is its address routed from here? "
                         "MARROW_IB_GID_INDEX chooses another address of the port",
                         SHMEMI_VERBS_AT_ARGS(s->nic), shmemi_verbs_address_name(to, pe, name, sizeof name),
                         strerror(-*status_out));
    }
    return *ah;
}

bool shmemi_verbs_datagram_send(struct shmemi_verbs_service *s, const struct shmemi_verbs_address *to,
                                const struct shmemi_verbs_message *message, int *status_out)
{
    struct ibv_ah *ah = way_to(s, message->to, to, status_out);
    struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED, .num_sge = 1 }, *bad;
    struct ibv_sge sge = { 0 };
    unsigned i;

    if (!ah || s->busy_sends == UINT64_MAX || s->broken)
        return false;
    i = (unsigned)__builtin_ctzll(~s->busy_sends);
    memcpy(slot(s, SHMEMI_VERBS_RECEIVES + i), message, sizeof *message);
    memcpy(slot(s, SHMEMI_VERBS_RECEIVES + i) + offsetof(struct shmemi_verbs_message, secret), s->nic->config->secret,
           sizeof message->secret);
    sge.addr = (uintptr_t)slot(s, SHMEMI_VERBS_RECEIVES + i);
    sge.length = sizeof *message;
    sge.lkey = s->mr->lkey;
    wr.wr_id = SEND_ID | i;
    wr.sg_list = &sge;
    wr.wr.ud.ah = ah;
    wr.wr.ud.remote_qpn = to->qpn;
    wr.wr.ud.remote_qkey = to->qkey;
    if (ibv_post_send(s->qp, &wr, &bad))
        return false;
    s->busy_sends |= 1ull << i;
    return true;
}

/* Whether it is one of this job's messages, and from whom it says. */
static bool credible(struct shmemi_verbs_service *s, const struct shmemi_verbs_message *m, const struct ibv_wc *wc)
{
    const struct shmemi_nic_config *c = s->nic->config;
    unsigned differ = 0;

    if (wc->byte_len != SHMEMI_VERBS_GRH_BYTES + sizeof *m || m->magic != SHMEMI_VERBS_MAGIC)
        return false;
    for (size_t i = 0; i < sizeof m->secret; i++)
        differ |= m->secret[i] ^ c->secret[i];
    if (differ) {
        if (!s->said_secret)
            shmemi_verbs_log(c, SHMEMI_VERBS_WARN, SHMEMI_VERBS_AT " gets connection messages of another job; they are ignored",
                             SHMEMI_VERBS_AT_ARGS(s->nic));
        s->said_secret = true;
        return false;
    }
    if (m->to != c->my_pe || m->from < 0 || m->from >= c->n_pes || m->origin.rail >= SHMEMI_NIC_RAILS)
        return false;
    if (m->type == SHMEMI_VERBS_CONNECT || m->type == SHMEMI_VERBS_BYE)
        return wc->src_qp == m->origin.qpn;
    return wc->src_qp == s->nic->peers[m->from].qpn;
}

static void failed(struct shmemi_verbs_service *s, const struct ibv_wc *wc)
{
    if (s->broken)
        return;
    s->broken = true;
    shmemi_verbs_log(s->nic->config, SHMEMI_VERBS_ERR,
                     SHMEMI_VERBS_AT ": the connection service's queue pair failed (%s, vendor syndrome 0x%02x); no new "
                     "connections can be made",
                     SHMEMI_VERBS_AT_ARGS(s->nic), ibv_wc_status_str(wc->status), wc->vendor_err);
}

void shmemi_verbs_datagram_receive(struct shmemi_verbs_service *s,
                                   void (*take)(struct shmemi_verbs_service *s, const struct shmemi_verbs_message *m))
{
    struct shmemi_verbs_message m;
    struct ibv_wc wc[COMPLETIONS];
    int n;

    while ((n = ibv_poll_cq(s->cq, COMPLETIONS, wc)) > 0) {
        for (int i = 0; i < n; i++) {
            unsigned k = (unsigned)wc[i].wr_id;

            if (wc[i].wr_id & SEND_ID)
                s->busy_sends &= ~(1ull << k);
            if (wc[i].status != IBV_WC_SUCCESS) {
                failed(s, &wc[i]);
                continue;
            }
            if (wc[i].wr_id & SEND_ID)
                continue;
            memcpy(&m, slot(s, k) + SHMEMI_VERBS_GRH_BYTES, sizeof m);
            if (credible(s, &m, &wc[i]))
                take(s, &m);
            if (post_receive(s, k))
                s->broken = true;
        }
    }
}
