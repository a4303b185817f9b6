/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared receive queues: their making and end. Entries are a linked list that the engine follows. */
#include <stdlib.h>
#include <string.h>

#include "hca/objects.h"
#include "uverbs/uverbs.h"

int hca_srq_new(struct hca *hca, struct hca_srq_attr *attr, struct hca_srq **out)
{
    uint32_t srqn = 1;
    struct hca_srq *srq;

    while (srqn < HCA_MAX_SRQ && hca->srq[srqn])
        srqn++;
    if (srqn == HCA_MAX_SRQ)
        return -ENOMEM;
    srq = calloc(1, sizeof *srq);
    if (!srq)
        return -ENOMEM;
    srq->srqn = srqn;
    srq->pd = attr->pd;
    srq->pd->users++;
    srq->ring = attr->ring;
    srq->dbrec = attr->dbrec;
    srq->entries = attr->entries;
    srq->log_stride = attr->log_stride;
    srq->max_sge = attr->max_sge;
    srq->limit = attr->limit;
    srq->uidx = attr->uidx;
    memset(&attr->ring, 0, sizeof attr->ring);
    memset(&attr->dbrec, 0, sizeof attr->dbrec);
    hca->srq[srqn] = srq;
    *out = srq;
    return 0;
}

int hca_srq_free(struct hca *hca, struct hca_srq *srq)
{
    if (srq->users)
        return -EBUSY;
    hca->srq[srq->srqn] = NULL;
    srq->pd->users--;
    hca_buf_fini(&srq->ring);
    hca_buf_fini(&srq->dbrec);
    free(srq);
    return 0;
}

struct hca_srq *hca_srq_find(struct hca *hca, uint32_t srqn)
{
    return srqn < HCA_MAX_SRQ ? hca->srq[srqn] : NULL;
}

void hca_srq_event(struct hca_srq *srq, enum ibv_event_type type)
{
    uv_event_async(&srq->async, type);
}
