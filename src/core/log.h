/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * log.h - the one log function, its levels, and the fatal error of the API
 * layer.
 *
 * A line reads `[pe 3 node7:4711 heap] text`.  Text is lower case, states the
 * exact cause, names PE, call and value, and has no final newline.  The level
 * is tested before the arguments are evaluated.
 */
#ifndef SHMEMI_LOG_H
#define SHMEMI_LOG_H

#include "compiler.h"

#include <stdarg.h>

enum shmemi_log_level {
    SHMEMI_LOG_ERR,
    SHMEMI_LOG_WARN, /* default */
    SHMEMI_LOG_INFO,
    SHMEMI_LOG_DEBUG,
    SHMEMI_LOG_TRACE,
};

extern int shmemi_log_threshold;

/* Writes one line to stderr with a single write(2); safe from any thread. */
void shmemi_log_write(enum shmemi_log_level level, const char *component, const char *fmt, ...)
    SHMEMI_PRINTF(3, 4);

void shmemi_log_vwrite(enum shmemi_log_level level, const char *component, const char *fmt, va_list ap)
    SHMEMI_PRINTF(3, 0);

/* Unit tests replace the sink to see, or fail on, what is logged.  NULL restores stderr. */
void shmemi_log_set_sink(void (*sink)(enum shmemi_log_level level, const char *line));

#define shmemi_log(level, component, ...)                                      \
    do {                                                                       \
        if (shmemi_unlikely((int)(level) <= shmemi_log_threshold))             \
            shmemi_log_write((level), (component), __VA_ARGS__);               \
    } while (0)

#define shmemi_err(component, ...) shmemi_log(SHMEMI_LOG_ERR, component, __VA_ARGS__)
#define shmemi_warn(component, ...) shmemi_log(SHMEMI_LOG_WARN, component, __VA_ARGS__)
#define shmemi_info(component, ...) shmemi_log(SHMEMI_LOG_INFO, component, __VA_ARGS__)
#define shmemi_debug(component, ...) shmemi_log(SHMEMI_LOG_DEBUG, component, __VA_ARGS__)
#define shmemi_trace(component, ...) shmemi_log(SHMEMI_LOG_TRACE, component, __VA_ARGS__)

/*
 * A path or a part of the memory that a program may count on is not there: says which, why and what it costs.
 * 0, or -EOPNOTSUPP with MARROW_STRICT=1, for init to fail.
 */
SHMEMI_COLD int shmemi_downgrade(const char *component, const char *fmt, ...) SHMEMI_PRINTF(2, 3);

/*
 * Fatal: prints the line and ends the whole job with a non-zero status (the
 * launcher is told, so that no PE stays behind).  Only the API layer and init
 * may call it; transports and bootstraps return codes.
 */
SHMEMI_COLD SHMEMI_NORETURN void shmemi_fatal(const char *call, const char *fmt, ...)
    SHMEMI_PRINTF(2, 3);

#endif
