/* SPDX-License-Identifier: BSD-3-Clause */
/* What events.c and devx_events.c share. */
#ifndef SOFTHCA_UVERBS_EVENTS_H
#define SOFTHCA_UVERBS_EVENTS_H

#include "uverbs/uverbs.h"

struct hca_evfile {
    struct hca_evfile *next;
    struct uv_context *ctx;      /* NULL once the context is gone */
    enum uv_evkind kind;
    unsigned refs;
    uint64_t ino;                /* of the application's end */
    int our_end, app_end;
    bool omit_data;
};

bool uv_evfile_send(struct hca_evfile *file, const void *record, size_t len);
void uv_event_devx_cq(const struct hca_cq *cq);
void uv_devx_unsubscribe_context(const struct uv_context *ctx);
void uv_devx_forked(void);

#endif
