/* SPDX-License-Identifier: BSD-3-Clause */
/* connect.c - queues from open to close, whatever their kind. */
#include "verbs.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

enum { PSN_MASK = 0xffffff };

/* Random, so that packets of an earlier connection with the same numbers are not taken for this one's. */
static uint32_t first_psn(void)
{
    uint32_t psn = 0;

    if (getrandom(&psn, sizeof psn, 0) != sizeof psn)
        psn = 1;
    return psn & PSN_MASK;
}

static int forked(struct shmemi_verbs_nic *nic)
{
    shmemi_verbs_log(nic->config, SHMEMI_VERBS_ERR, "this process is a child of the PE by fork: only the PE itself can use "
                                                    "the NIC");
    return -EPERM;
}

static void enlist(struct shmemi_verbs_nic *nic, struct shmemi_verbs_queue *q)
{
    pthread_mutex_lock(&nic->lock);
    q->next = nic->queues;
    if (q->next)
        q->next->prev = q;
    nic->queues = q;
    if (nic->dead)
        nic->kind->fail(nic, q);
    pthread_mutex_unlock(&nic->lock);
}

static void strike_off(struct shmemi_verbs_nic *nic, struct shmemi_verbs_queue *q)
{
    pthread_mutex_lock(&nic->lock);
    if (q->next)
        q->next->prev = q->prev;
    if (q->prev)
        q->prev->next = q->next;
    else
        nic->queues = q->next;
    pthread_mutex_unlock(&nic->lock);
}

void shmemi_verbs_queues_fail(struct shmemi_verbs_nic *nic)
{
    pthread_mutex_lock(&nic->lock);
    nic->dead = true;
    for (struct shmemi_verbs_queue *q = nic->queues; q; q = q->next)
        nic->kind->fail(nic, q);
    pthread_mutex_unlock(&nic->lock);
}

static int open_queue(struct shmemi_verbs_nic *nic, int pe, int how, const struct shmemi_nic_memory *memory,
                      const struct shmemi_verbs_asked *asked, struct shmemi_nic_queue *q)
{
    struct shmemi_verbs_end own = { .pe = pe, .address = &nic->peers[pe], .psn = first_psn() }, peer = own;
    struct shmemi_verbs_queue *common;
    int status;

    memset(q, 0, sizeof *q);
    q->nic = &nic->nic;
    q->pe = pe;
    q->shared = how & SHMEMI_NIC_SHARED;
    status = nic->kind->create(nic, how, memory, q, &own.qpn);
    if (status)
        return status;
    common = q->priv;
    status = shmemi_verbs_service_connect(nic, &own, asked, &common->nonce, &peer.qpn);
    if (!status) {
        status = nic->kind->connect(nic, q, &peer);
        if (status)
            shmemi_verbs_service_bye(nic, pe, common->nonce);
    }
    if (status) {
        nic->kind->destroy(nic, q);
        return status;
    }
    enlist(nic, common);
    shmemi_verbs_log(nic->config, SHMEMI_VERBS_DEBUG, "queue pair 0x%x is connected to PE %d's 0x%x", own.qpn, pe, peer.qpn);
    return 0;
}

int shmemi_verbs_queue_rail(struct shmemi_nic *home, int pe)
{
    const struct shmemi_verbs_address *own[SHMEMI_NIC_RAILS];

    for (int i = 0; i < home->n_rails; i++)
        own[i] = &shmemi_verbs_of(home->rails[i])->own;
    return home->n_rails == 1 ? 0 : shmemi_verbs_rail_to(own, home->n_rails, &shmemi_verbs_of(home)->peers[pe], pe);
}

int shmemi_verbs_queue_open(struct shmemi_nic *base, int pe, int how, const struct shmemi_nic_memory *memory,
                            struct shmemi_nic_queue *q)
{
    struct shmemi_verbs_nic *nic = shmemi_verbs_of(base);
    const struct shmemi_verbs_asked asked = { .timeout_ns = nic->config->connect_timeout_ns };

    if (shmemi_verbs_forked())
        return forked(nic);
    if (!nic->peers || pe < 0 || pe >= nic->config->n_pes)
        return -EINVAL;
    return open_queue(shmemi_verbs_of(base->rails[shmemi_verbs_queue_rail(base, pe)]), pe, how, memory, &asked, q);
}

int shmemi_verbs_queue_probe(struct shmemi_verbs_nic *nic, int pe, uint64_t timeout_ns, struct shmemi_nic_queue *q)
{
    const struct shmemi_verbs_asked asked = { .timeout_ns = timeout_ns, .quiet = true };

    return open_queue(nic, pe, 0, NULL, &asked, q);
}

void shmemi_verbs_queue_close(struct shmemi_nic_queue *q)
{
    struct shmemi_verbs_nic *nic = shmemi_verbs_of(q->nic);
    struct shmemi_verbs_queue *common = q->priv;
    uint64_t nonce;

    if (!common || shmemi_verbs_forked())
        return;
    strike_off(nic, common);
    nonce = common->nonce;
    nic->kind->destroy(nic, q);
    shmemi_verbs_service_bye(nic, q->pe, nonce);
}

void shmemi_verbs_queue_error(struct shmemi_nic_queue *q, struct shmemi_nic_error *out)
{
    memset(out, 0, sizeof *out);
    out->pe = q->pe;
    if (q->nic->kind == SHMEMI_NIC_MLX5)
        shmemi_ibgda_error(q, out);
    else
        shmemi_proxy_error(q, out);
}
