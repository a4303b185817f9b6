/* SPDX-License-Identifier: BSD-3-Clause */
/* event.c - what the device reports by itself: ports that go down, queue pairs and devices that fail. */
#include "service.h"

/* Whose queue pair it is, or NULL. */
static const struct shmemi_verbs_served *owner(const struct shmemi_verbs_service *s, const struct ibv_qp *qp)
{
    for (size_t i = 0; i < s->n_buckets; i++) {
        for (const struct shmemi_verbs_served *c = s->table[i]; c; c = c->next) {
            if (c->responder == qp)
                return c;
        }
    }
    return NULL;
}

static void queue_pair(struct shmemi_verbs_service *s, const struct ibv_async_event *e)
{
    char name[SHMEMI_VERBS_NAME_BYTES];
    const struct shmemi_verbs_served *c = owner(s, e->element.qp);

    if (c)
        shmemi_verbs_log(s->nic->config, SHMEMI_VERBS_WARN, SHMEMI_VERBS_AT ": %s on queue pair 0x%x, which answers %s",
                         SHMEMI_VERBS_AT_ARGS(s->nic), ibv_event_type_str(e->event_type), e->element.qp->qp_num,
                         shmemi_verbs_address_name(&c->answer.origin, c->pe, name, sizeof name));
    else
        shmemi_verbs_log(s->nic->config, SHMEMI_VERBS_WARN, SHMEMI_VERBS_AT ": %s on queue pair 0x%x",
                         SHMEMI_VERBS_AT_ARGS(s->nic), ibv_event_type_str(e->event_type), e->element.qp->qp_num);
}

static void port(struct shmemi_verbs_service *s, const struct ibv_async_event *e)
{
    if (e->element.port_num != s->nic->nic.port)
        return;
    if (e->event_type == IBV_EVENT_PORT_ERR)
        shmemi_verbs_log(s->nic->config, SHMEMI_VERBS_WARN,
                         SHMEMI_VERBS_AT ": the link is down; operations fail unless it comes back in time (MARROW_IB_TIMEOUT "
                         "%d, MARROW_IB_RETRY %d)",
                         SHMEMI_VERBS_AT_ARGS(s->nic), s->nic->config->timeout, s->nic->config->retry_count);
    else if (e->event_type == IBV_EVENT_PORT_ACTIVE)
        shmemi_verbs_log(s->nic->config, SHMEMI_VERBS_WARN, SHMEMI_VERBS_AT ": the link is up again",
                         SHMEMI_VERBS_AT_ARGS(s->nic));
    else
        shmemi_verbs_log(s->nic->config, SHMEMI_VERBS_INFO, SHMEMI_VERBS_AT ": %s", SHMEMI_VERBS_AT_ARGS(s->nic),
                         ibv_event_type_str(e->event_type));
}

static void one(struct shmemi_verbs_service *s, const struct ibv_async_event *e)
{
    switch (e->event_type) {
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
        queue_pair(s, e);
        break;
    case IBV_EVENT_PORT_ACTIVE:
    case IBV_EVENT_PORT_ERR:
    case IBV_EVENT_LID_CHANGE:
    case IBV_EVENT_PKEY_CHANGE:
    case IBV_EVENT_SM_CHANGE:
    case IBV_EVENT_CLIENT_REREGISTER:
    case IBV_EVENT_GID_CHANGE:
        port(s, e);
        break;
    case IBV_EVENT_DEVICE_FATAL:
        shmemi_verbs_log(s->nic->config, SHMEMI_VERBS_ERR,
                         SHMEMI_VERBS_AT ": the device has failed; see the kernel log (dmesg). Nothing more goes through it",
                         SHMEMI_VERBS_AT_ARGS(s->nic));
        s->broken = true;
        shmemi_verbs_queues_fail(s->nic);
        break;
    case IBV_EVENT_CQ_ERR:
        shmemi_verbs_log(s->nic->config, SHMEMI_VERBS_ERR, SHMEMI_VERBS_AT ": a completion queue has failed",
                         SHMEMI_VERBS_AT_ARGS(s->nic));
        break;
    default: /* such as the first packet of a connection */
        shmemi_verbs_log(s->nic->config, SHMEMI_VERBS_DEBUG, SHMEMI_VERBS_AT ": %s", SHMEMI_VERBS_AT_ARGS(s->nic),
                         ibv_event_type_str(e->event_type));
    }
}

void shmemi_verbs_events(struct shmemi_verbs_service *s)
{
    struct ibv_async_event e;

    while (ibv_get_async_event(s->nic->ctx, &e) == 0) {
        one(s, &e);
        ibv_ack_async_event(&e);
    }
}
