/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * oshrun_output.c - forwards what the PEs write, by whole lines.
 *
 * A line goes out when its newline has come.  A beginning that nothing follows is shown after a
 * moment when a person watches (a prompt on a terminal); if another PE writes before it
 * is complete, a newline is put between.  Writes to a slow reader never block: oshrun must stay able
 * to handle signals and dead PEs.
 */
#include "config.h"

#include "oshrun.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_BYTES ((size_t)65536)
#define LINE_MAX_BYTES ((size_t)1 << 20)  /* a longer line goes out in pieces */
#define QUEUE_FULL_BYTES ((size_t)1 << 20) /* above this the PEs have to wait */
#define IDLE_MS 200

struct osh_sink {
    int fd;
    bool file, socket, terminal;
    int error; /* -errno: broken, all is dropped */
    char *queue;
    size_t start, end, cap; /* the queue's bytes are [start, end) */
    const struct osh_stream *unfinished; /* whose line stands there without a newline; also of a closed stream */
};

static struct osh_sink sinks[2];
static bool tagging, one_sink;

static void sink_init(struct osh_sink *sink, int fd)
{
    struct stat st;

    sink->fd = fd;
    if (fstat(fd, &st) == 0) {
        sink->file = S_ISREG(st.st_mode);
        sink->socket = S_ISSOCK(st.st_mode);
    }
    sink->terminal = isatty(fd);
}

void osh_output_init(bool tag)
{
    struct stat out, err;

    tagging = tag;
    sink_init(&sinks[0], STDOUT_FILENO);
    sink_init(&sinks[1], STDERR_FILENO);
    /* One terminal, or 2>&1. */
    one_sink = fstat(STDOUT_FILENO, &out) == 0 && fstat(STDERR_FILENO, &err) == 0 && out.st_dev == err.st_dev &&
               out.st_ino == err.st_ino;
}

struct osh_sink *osh_sink_of(int fd)
{
    return &sinks[fd == STDERR_FILENO && !one_sink];
}

static void sink_add(struct osh_sink *sink, const char *bytes, size_t len)
{
    if (sink->error)
        return;
    if (sink->start == sink->end)
        sink->start = sink->end = 0;
    if (len > sink->cap - sink->end) {
        if (sink->start)
            memmove(sink->queue, sink->queue + sink->start, sink->end - sink->start);
        sink->end -= sink->start;
        sink->start = 0;
        if (len > sink->cap - sink->end) {
            sink->cap = 2 * (sink->end + len);
            sink->queue = osh_grow(sink->queue, sink->cap);
        }
    }
    memcpy(sink->queue + sink->end, bytes, len);
    sink->end += len;
}

int osh_sink_flush(struct osh_sink *sink)
{
    while (!sink->error && sink->start < sink->end) {
        const char *from = sink->queue + sink->start;
        size_t len = sink->end - sink->start;
        ssize_t n;

        if (sink->socket) {
            n = send(sink->fd, from, len, MSG_DONTWAIT | MSG_NOSIGNAL);
        } else {
            struct pollfd p = { .fd = sink->fd, .events = POLLOUT };

            /* A pipe that polls writable takes a page at least. */
            if (!sink->file && poll(&p, 1, 0) == 0)
                break;
            n = write(sink->fd, from, sink->file || len < 4096 ? len : 4096);
        }
        if (n >= 0)
            sink->start += (size_t)n;
        else if (errno == EAGAIN)
            break;
        else if (errno != EINTR)
            sink->error = -errno;
    }
    if (sink->error)
        sink->start = sink->end = 0;
    return sink->error;
}

bool osh_sink_full(const struct osh_sink *sink)
{
    return sink->end - sink->start >= QUEUE_FULL_BYTES;
}

bool osh_sink_pending(const struct osh_sink *sink)
{
    return sink->end > sink->start;
}

int osh_sink_fd(const struct osh_sink *sink)
{
    return sink->fd;
}

/* One line, or a piece of one, of stream `s`. */
static void emit_line(struct osh_stream *s, const char *bytes, size_t len)
{
    struct osh_sink *sink = s->sink;
    char tag[24];

    if (sink->unfinished && sink->unfinished != s) {
        sink_add(sink, "\n", 1);
        sink->unfinished = NULL;
    }
    if (tagging && !sink->unfinished)
        sink_add(sink, tag, (size_t)snprintf(tag, sizeof tag, "[%d] ", s->pe));
    sink_add(sink, bytes, len);
    sink->unfinished = bytes[len - 1] == '\n' ? NULL : s;
}

/* Whole lines, the last of which may lack its newline. */
static void emit(struct osh_stream *s, const char *bytes, size_t len)
{
    while (len) {
        const char *nl = tagging ? memchr(bytes, '\n', len) : memrchr(bytes, '\n', len);
        size_t part = nl ? (size_t)(nl - bytes) + 1 : len;

        emit_line(s, bytes, part);
        bytes += part;
        len -= part;
    }
}

void osh_output_say(const char *line, size_t len)
{
    struct osh_sink *sink = osh_sink_of(STDERR_FILENO);

    if (sink->unfinished)
        sink_add(sink, "\n", 1);
    sink->unfinished = NULL;
    sink_add(sink, line, len);
    osh_sink_flush(sink);
}

void osh_stream_open(struct osh_stream *s, int fd, int pe, struct osh_sink *sink)
{
    s->fd = fd;
    s->pe = pe;
    s->sink = sink;
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

void osh_stream_close(struct osh_stream *s)
{
    if (s->fd < 0)
        return;
    emit(s, s->buf, s->len);
    s->len = 0;
    close(s->fd);
    s->fd = -1;
}

void osh_stream_read(struct osh_stream *s)
{
    const char *nl;
    ssize_t n;

    if (s->fd < 0)
        return;
    if (s->cap - s->len < READ_BYTES) {
        s->cap = s->len + READ_BYTES;
        s->buf = osh_grow(s->buf, s->cap);
    }
    n = read(s->fd, s->buf + s->len, READ_BYTES);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) { /* EIO: nobody has the other end of the pseudo-terminal open any more */
        osh_stream_close(s);
        return;
    }
    s->since_ms = osh_now_ms();
    nl = memrchr(s->buf + s->len, '\n', (size_t)n);
    s->len += (size_t)n;
    if (nl || s->len >= LINE_MAX_BYTES) {
        size_t part = nl ? (size_t)(nl - s->buf) + 1 : s->len;

        emit(s, s->buf, part);
        s->len -= part;
        memmove(s->buf, s->buf + part, s->len);
    }
}

int osh_stream_idle(struct osh_stream *s, int64_t now_ms)
{
    int64_t due = s->since_ms + IDLE_MS - now_ms;

    if (s->fd < 0 || s->len == 0 || !s->sink->terminal)
        return -1;
    if (due > 0)
        return (int)due;
    emit(s, s->buf, s->len);
    s->len = 0;
    return -1;
}
