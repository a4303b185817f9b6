/* SPDX-License-Identifier: BSD-3-Clause */
/* DEVX event subscriptions: which file (or eventfd) hears about which event of which object. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "uverbs/events.h"
#include "uverbs/file.h"

struct subscription {
    struct subscription *next;
    struct hca_evfile *file;
    uint64_t cookie;
    int redirect_fd;             /* our duplicate of an eventfd, or -1 */
    uint16_t type;               /* event number of the device's event queue */
    struct hca_cq *cq;           /* both NULL: events that belong to no object */
    struct hca_qp *qp;
};

/* Event numbers in event queue entries (mlx5 programmer's reference, "event types"). */
enum {
    EVENT_COMP = 0x00,
    EVENT_COMM_EST = 0x02,
    EVENT_SQ_DRAINED = 0x03,
    EVENT_WQ_CATAS = 0x05,
    EVENT_REQ_ERR = 0x10,
    EVENT_ACCESS_ERR = 0x11,
    EVENT_LAST_WQE = 0x13,
    EVENT_NONE = 0xffff,
};

enum { EQE_BYTES = 64, EQE_TYPE = 1, EQE_DATA = 32, EQE_NUMBER = 24 };

static struct subscription *subscriptions;   /* guarded by the device lock */

static uint16_t event_number(enum ibv_event_type type)
{
    switch (type) {
    case IBV_EVENT_COMM_EST:
        return EVENT_COMM_EST;
    case IBV_EVENT_SQ_DRAINED:
        return EVENT_SQ_DRAINED;
    case IBV_EVENT_QP_FATAL:
        return EVENT_WQ_CATAS;
    case IBV_EVENT_QP_REQ_ERR:
        return EVENT_REQ_ERR;
    case IBV_EVENT_QP_ACCESS_ERR:
        return EVENT_ACCESS_ERR;
    case IBV_EVENT_QP_LAST_WQE_REACHED:
        return EVENT_LAST_WQE;
    default:
        return EVENT_NONE;
    }
}

int uv_devx_subscribe(struct hca_evfile *file, uint64_t cookie, int redirect_fd, const uint16_t *types, unsigned n,
                      struct hca_cq *cq, struct hca_qp *qp)
{
    for (unsigned i = 0; i < n; i++) {
        struct subscription *sub = calloc(1, sizeof *sub);

        if (!sub)
            return -ENOMEM;
        sub->redirect_fd = redirect_fd < 0 ? -1 : dup(redirect_fd);
        if (redirect_fd >= 0 && sub->redirect_fd < 0) {
            free(sub);
            return -EBADF;
        }
        sub->file = uv_evfile_ref(file);
        sub->cookie = cookie;
        sub->type = types[i];
        sub->cq = cq;
        sub->qp = qp;
        if (cq && types[i] == EVENT_COMP)
            cq->devx_events++;
        sub->next = subscriptions;
        subscriptions = sub;
    }
    return 0;
}

static void drop(struct subscription **at)
{
    struct subscription *sub = *at;

    *at = sub->next;
    if (sub->cq && sub->type == EVENT_COMP)
        sub->cq->devx_events--;
    if (sub->redirect_fd >= 0)
        close(sub->redirect_fd);
    uv_evfile_put(sub->file);
    free(sub);
}

void uv_devx_unsubscribe_object(const void *object)
{
    struct subscription **at = &subscriptions;

    while (*at) {
        if ((const void *)(*at)->cq == object || (const void *)(*at)->qp == object)
            drop(at);
        else
            at = &(*at)->next;
    }
}

void uv_devx_unsubscribe_context(const struct uv_context *ctx)
{
    struct subscription **at = &subscriptions;

    while (*at) {
        if ((*at)->file->ctx == ctx)
            drop(at);
        else
            at = &(*at)->next;
    }
}

void uv_devx_forked(void)
{
    subscriptions = NULL;
}

static void deliver(struct subscription *sub, const uint8_t *eqe)
{
    uint8_t record[sizeof(struct mlx5_ib_uapi_devx_async_event_hdr) + EQE_BYTES];
    const uint64_t one = 1;

    if (sub->redirect_fd >= 0) {
        if (write(sub->redirect_fd, &one, sizeof one) != (ssize_t)sizeof one)
            hca_log(HCA_LINT, "event descriptor of a DEVX subscription: %m");
        return;
    }
    memcpy(record, &sub->cookie, sizeof sub->cookie);
    memcpy(record + sizeof sub->cookie, eqe, EQE_BYTES);
    uv_evfile_send(sub->file, record, sub->file->omit_data ? sizeof sub->cookie : sizeof record);
}

static void raise_event(uint16_t type, const struct hca_cq *cq, const struct hca_qp *qp)
{
    uint8_t eqe[EQE_BYTES] = { 0 };
    uint32_t number = htobe32(cq ? cq->cqn : qp->qpn);

    eqe[EQE_TYPE] = (uint8_t)type;
    memcpy(eqe + EQE_DATA + EQE_NUMBER, &number, sizeof number);
    for (struct subscription *sub = subscriptions; sub; sub = sub->next)
        if (sub->type == type && sub->cq == cq && sub->qp == qp)
            deliver(sub, eqe);
}

void uv_event_devx_cq(const struct hca_cq *cq)
{
    raise_event(EVENT_COMP, cq, NULL);
}

void uv_event_devx_qp(const struct hca_qp *qp, enum ibv_event_type type)
{
    uint16_t number = event_number(type);

    if (number != EVENT_NONE)
        raise_event(number, NULL, qp);
}
