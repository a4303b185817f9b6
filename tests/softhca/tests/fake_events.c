/* SPDX-License-Identifier: BSD-3-Clause */
/* Stands in for the event files of uverbs/ in tests that have no command interface: events go nowhere. */
#include "uverbs/uverbs.h"

void uv_event_completion(struct hca_cq *cq)
{
    (void)cq;
}

void uv_event_async(struct hca_evsource *source, enum ibv_event_type type)
{
    (void)source;
    (void)type;
}

void uv_event_devx_qp(const struct hca_qp *qp, enum ibv_event_type type)
{
    (void)qp;
    (void)type;
}

void uv_event_port(const struct hca *hca, enum ibv_event_type type)
{
    (void)hca;
    (void)type;
}

void uv_event_device_fatal(const struct hca *hca)
{
    (void)hca;
}

void uv_forked(void)
{
}

void uv_fork_lock(void)
{
}

void uv_fork_unlock(void)
{
}
