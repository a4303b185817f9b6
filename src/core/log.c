/* SPDX-License-Identifier: BSD-3-Clause */
/* log.c - writes log lines, and ends the job for fatal ones. */
#include "log.h"

#include "env.h"
#include "exit.h"
#include "state.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int shmemi_log_threshold = SHMEMI_LOG_WARN;

static void (*log_sink)(enum shmemi_log_level, const char *);

void shmemi_log_set_sink(void (*sink)(enum shmemi_log_level level, const char *line))
{
    log_sink = sink;
}

/* `[pe 3 node7:4711 heap] `; before the PE is known, without it. */
static int prefix(char *buf, size_t len, const char *component)
{
    static char host[64];

    if (!host[0] && gethostname(host, sizeof host - 1))
        strcpy(host, "?");
    if (shmemi.boot.n_pes > 0)
        return snprintf(buf, len, "[pe %d %s:%d %s] ", shmemi.boot.pe, host, (int)getpid(), component);
    return snprintf(buf, len, "[%s:%d %s] ", host, (int)getpid(), component);
}

static void emit(enum shmemi_log_level level, const char *component, const char *fmt, va_list ap)
    __attribute__((format(printf, 3, 0)));

static void emit(enum shmemi_log_level level, const char *component, const char *fmt, va_list ap)
{
    char line[2048];
    int n = prefix(line, sizeof line - 1, component);
    int m = vsnprintf(line + n, sizeof line - 1 - (size_t)n, fmt, ap);

    n += m < 0 ? 0 : m;
    if (n > (int)sizeof line - 2)
        n = (int)sizeof line - 2;
    if (log_sink) {
        log_sink(level, line);
        return;
    }
    line[n++] = '\n';
    /* Nothing sensible is left to do when stderr refuses the line. */
    if (write(STDERR_FILENO, line, (size_t)n) < 0)
        return;
}

void shmemi_log_write(enum shmemi_log_level level, const char *component, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    emit(level, component, fmt, ap);
    va_end(ap);
}

void shmemi_log_vwrite(enum shmemi_log_level level, const char *component, const char *fmt, va_list ap)
{
    emit(level, component, fmt, ap);
}

int shmemi_downgrade(const char *component, const char *fmt, ...)
{
    enum shmemi_log_level level = shmemi_env.strict ? SHMEMI_LOG_ERR : SHMEMI_LOG_WARN;
    va_list ap;

    va_start(ap, fmt);
    if ((int)level <= shmemi_log_threshold)
        emit(level, component, fmt, ap);
    va_end(ap);
    return shmemi_env.strict ? -EOPNOTSUPP : 0;
}

void shmemi_fatal(const char *call, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    emit(SHMEMI_LOG_ERR, call, fmt, ap);
    va_end(ap);
    shmemi_end_job(1);
}
