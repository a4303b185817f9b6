/* SPDX-License-Identifier: BSD-3-Clause */
/* oshrun_util.c - oshrun's messages and memory. */
#include "config.h"

#include "oshrun.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

void (*osh_say_to)(const char *line, size_t len);

SHMEMI_PRINTF(1, 0)
static void say(const char *fmt, va_list args)
{
    char line[1024] = "oshrun: ";
    size_t len = strlen(line);
    int n = vsnprintf(line + len, sizeof line - len - 1, fmt, args);

    if (n < 0)
        return;
    len += (size_t)n < sizeof line - len - 1 ? (size_t)n : sizeof line - len - 2;
    line[len++] = '\n';
    if (osh_say_to)
        osh_say_to(line, len);
    else if (write(STDERR_FILENO, line, len) < 0)
        return; /* nobody to tell */
}

void osh_say(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    say(fmt, args);
    va_end(args);
}

void osh_die(int status, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    say(fmt, args);
    va_end(args);
    exit(status);
}

void *osh_grow(void *old, size_t size)
{
    void *p = realloc(old, size);

    if (!p)
        osh_die(1, "out of memory (%zu bytes)", size);
    return p;
}

void *osh_alloc(size_t size)
{
    return memset(osh_grow(NULL, size), 0, size);
}

int64_t osh_now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void osh_append(char ***list, int *n, const char *text)
{
    char *copy = strdup(text);

    if (!copy)
        osh_die(1, "out of memory");
    *list = osh_grow(*list, ((size_t)*n + 2) * sizeof **list);
    (*list)[(*n)++] = copy;
    (*list)[*n] = NULL;
}
