/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Event files: socket pairs that keep record boundaries, so that read, poll and O_NONBLOCK of the application's end behave
 * like the kernel's event files. We keep a duplicate of the application's end to take records of a dying object back.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "uverbs/events.h"
#include "uverbs/file.h"
#include "uverbs/uverbs.h"

enum { MAX_RECORD = 256 };

static struct hca_evfile *files;   /* all of them; guarded by the device lock */

static struct hca_evfile *evfile_make(struct uv_context *ctx, enum uv_evkind kind, const int pair[2])
{
    struct hca_evfile *file = calloc(1, sizeof *file);
    struct uv_file_id id;

    if (!file || !uv_file_id(pair[0], &id)) {
        free(file);
        return NULL;
    }
    file->app_end = fcntl(pair[0], F_DUPFD_CLOEXEC, 0);
    if (file->app_end < 0) {
        free(file);
        return NULL;
    }
    file->refs = 1;
    file->ctx = ctx;
    file->kind = kind;
    file->ino = id.ino;
    file->our_end = pair[1];
    file->next = files;
    files = file;
    return file;
}

int uv_evfile_new(struct uv_context *ctx, enum uv_evkind kind, bool omit_data)
{
    int pair[2];
    struct hca_evfile *file;

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
        return -errno;
    file = evfile_make(ctx, kind, pair);
    if (!file) {
        close(pair[0]);
        close(pair[1]);
        return -ENOMEM;
    }
    file->omit_data = omit_data;
    if (kind == UV_EV_ASYNC && !ctx->async)
        ctx->async = uv_evfile_ref(file);
    return pair[0];
}

struct hca_evfile *uv_evfile_get(int fd, enum uv_evkind kind, int *err_out)
{
    struct uv_file_id id;

    *err_out = -EBADF;
    if (fd < 0 || !uv_file_id(fd, &id))
        return NULL;
    for (struct hca_evfile *file = files; file; file = file->next) {
        if (file->ino != id.ino)
            continue;
        *err_out = file->kind == kind ? 0 : -EINVAL;
        return *err_out ? NULL : uv_evfile_ref(file);
    }
    return NULL;
}

struct hca_evfile *uv_evfile_ref(struct hca_evfile *file)
{
    if (file)
        file->refs++;
    return file;
}

void uv_evfile_put(struct hca_evfile *file)
{
    struct hca_evfile **at = &files;

    if (!file || --file->refs)
        return;
    while (*at != file)
        at = &(*at)->next;
    *at = file->next;
    close(file->our_end);
    close(file->app_end);
    free(file);
}

/* The context goes: its own reference and the one each file was born with. */
void uv_evfiles_close(struct uv_context *ctx)
{
    struct hca_evfile *file = files;

    uv_evfile_put(ctx->async);
    ctx->async = NULL;
    uv_devx_unsubscribe_context(ctx);
    file = files;
    while (file) {
        struct hca_evfile *next = file->next;

        if (file->ctx == ctx) {
            file->ctx = NULL;
            uv_evfile_put(file);
        }
        file = next;
    }
}

void uv_evfiles_forked(void)
{
    for (struct hca_evfile *file = files; file; file = file->next) {
        close(file->our_end);
        close(file->app_end);
    }
    files = NULL;
    uv_devx_forked();
}

bool uv_evfile_send(struct hca_evfile *file, const void *record, size_t len)
{
    if (!file)
        return false;
    if (send(file->our_end, record, len, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)len)
        return true;
    hca_log(HCA_LINT, "event file is full, an event is lost: %m");
    return false;
}

void uv_event_async(struct hca_evsource *source, enum ibv_event_type type)
{
    struct ib_uverbs_async_event_desc record = { .element = source->user_handle, .event_type = type };

    if (uv_evfile_send(source->file, &record, sizeof record))
        source->reported++;
}

void uv_event_completion(struct hca_cq *cq)
{
    uint64_t record = cq->comp.user_handle;

    if (uv_evfile_send(cq->comp.file, &record, sizeof record))
        cq->comp.reported++;
    if (cq->devx_events)
        uv_event_devx_cq(cq);
}

static void to_all(const struct hca *hca, uint64_t element, enum ibv_event_type type)
{
    struct ib_uverbs_async_event_desc record = { .element = element, .event_type = type };

    for (struct hca_evfile *file = files; file; file = file->next)
        if (file->kind == UV_EV_ASYNC && file->ctx && file->ctx->hca == hca)
            uv_evfile_send(file, &record, sizeof record);
}

void uv_event_port(const struct hca *hca, enum ibv_event_type type)
{
    to_all(hca, HCA_PORT, type);
}

void uv_event_device_fatal(const struct hca *hca)
{
    to_all(hca, 0, IBV_EVENT_DEVICE_FATAL);
}

/*
 * The library blocks in destroy until it has acknowledged as many events as we report, so unread records are pulled back
 * out of the application's end and do not count.
 */
uint32_t uv_event_retire(struct hca_evsource *source)
{
    struct hca_evfile *file = source->file;
    uint8_t (*kept)[MAX_RECORD] = NULL;
    size_t *kept_len = NULL;
    uint32_t unread = 0, n = 0, reported = source->reported;

    if (!file)
        return 0;
    while (reported) {
        uint8_t record[MAX_RECORD];
        uint64_t element;
        ssize_t len = recv(file->app_end, record, sizeof record, MSG_DONTWAIT);
        void *grown;

        if (len < (ssize_t)sizeof element)
            break;
        memcpy(&element, record, sizeof element);
        if (element == source->user_handle) {
            unread++;
            continue;
        }
        grown = realloc(kept, (n + 1) * sizeof *kept);
        if (grown)
            kept = grown;
        grown = grown ? realloc(kept_len, (n + 1) * sizeof *kept_len) : NULL;
        if (!grown)
            break;
        kept_len = grown;
        memcpy(kept[n], record, (size_t)len);
        kept_len[n++] = (size_t)len;
    }
    for (uint32_t i = 0; i < n; i++)
        uv_evfile_send(file, kept[i], kept_len[i]);
    free(kept);
    free(kept_len);
    source->file = NULL;
    uv_evfile_put(file);
    return reported > unread ? reported - unread : 0;
}
