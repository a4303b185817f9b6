/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * env_names.c - variables of the environment that look like the library's, but are not: misspelt ones above all, which
 * would have no effect without a word.
 *
 * Everything that begins with MARROW_ is ours, or a mistake.  SHMEM_ and SMA_ belong to other libraries too, so of those
 * only what nearly has the name of a variable that we read is one.
 */
#include "env.h"

#include "log.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#define NAME_MAX_LEN 48

extern char **environ;

static const struct known {
    const char *prefix, *suffix;
} known[] = {
#define OWN "MARROW_"
#define SPEC "SHMEM_"
#define SHMEMI_ENV(field, family, suffix, kind, dflt, category, help) { family, suffix },
#include "../../api/env.def"
#undef SHMEMI_ENV
#undef SPEC
#undef OWN
};

static const char *const others[] = {
#define SHMEMI_ENV_OTHER(suffix, why) suffix,
#include "../../api/env.def"
#undef SHMEMI_ENV_OTHER
};

/* Names that other libraries read where we read one of ours. */
static const struct {
    const char *theirs, *ours;
} elsewhere[] = { { "SHMEM_SYMMETRIC_HEAP_SIZE", "SHMEM_SYMMETRIC_SIZE" },
                  { "SMA_SYMMETRIC_HEAP_SIZE", "SHMEM_SYMMETRIC_SIZE" } };

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

static bool same(char a, char b)
{
    return toupper((unsigned char)a) == toupper((unsigned char)b);
}

/* Letters to leave out, put in, change or swap with the next one. */
static unsigned distance(const char *a, size_t a_len, const char *b)
{
    unsigned rows[3][NAME_MAX_LEN + 1], *before = rows[0], *last = rows[1], *now = rows[2], *free_row;
    size_t b_len = strlen(b);

    if (a_len > NAME_MAX_LEN || b_len > NAME_MAX_LEN)
        return NAME_MAX_LEN;
    for (unsigned j = 0; j <= b_len; j++)
        last[j] = j;
    for (size_t i = 1; i <= a_len; i++) {
        now[0] = (unsigned)i;
        for (size_t j = 1; j <= b_len; j++) {
            now[j] = least(least(last[j], now[j - 1]) + 1, last[j - 1] + !same(a[i - 1], b[j - 1]));
            if (i > 1 && j > 1 && same(a[i - 1], b[j - 2]) && same(a[i - 2], b[j - 1]))
                now[j] = least(now[j], before[j - 2] + 1);
        }
        free_row = before;
        before = last;
        last = now;
        now = free_row;
    }
    return last[b_len];
}

/* The variable whose suffix is nearest to this one, or NULL: none is near. */
static const struct known *nearest(const char *suffix, size_t len, bool spec_only)
{
    const struct known *best = NULL;
    unsigned limit = len < 6 ? 1 : len < 12 ? 2 : 3;

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        unsigned d;

        if (spec_only && strcmp(known[i].prefix, "SHMEM_"))
            continue;
        d = distance(suffix, len, known[i].suffix);
        if (d > limit || (best && d == limit))
            continue;
        best = &known[i];
        limit = d;
    }
    return best;
}

static bool is_known(const char *prefix, const char *suffix, size_t len)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (!strcmp(known[i].prefix, prefix) && strlen(known[i].suffix) == len && !memcmp(known[i].suffix, suffix, len))
            return true;
    return false;
}

static bool is_of_others(const char *suffix, size_t len)
{
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        size_t n = strlen(others[i]);
        bool open = others[i][n - 1] == '*';

        n -= open;
        if (!memcmp(others[i], suffix, len < n ? len : n) && (open ? len >= n : len == n))
            return true;
    }
    return false;
}

static void say(const char *name, size_t len, const char *prefix, const char *suffix)
{
    enum shmemi_log_level level = shmemi_env.strict ? SHMEMI_LOG_ERR : SHMEMI_LOG_WARN;

    if (suffix)
        shmemi_log(level, "env", "%.*s is not a variable of Marrow and has no effect (did you mean %s%s?)", (int)len, name,
                   prefix, suffix);
    else
        shmemi_log(level, "env", "%.*s is not a variable of Marrow and has no effect (shmem-info -e lists them)", (int)len, name);
}

/* Something with MARROW_ in front. */
static bool own_is_good(const char *name, size_t len)
{
    const char *suffix = name + strlen("MARROW_");
    size_t suffix_len = len - strlen("MARROW_");
    const struct known *near;

    /* An exact name with small letters in it is another name to getenv. */
    if (!memcmp(name, "MARROW_", 7) && (is_known("MARROW_", suffix, suffix_len) || is_of_others(suffix, suffix_len)))
        return true;
    near = nearest(suffix, suffix_len, false);
    say(name, len, near ? near->prefix : NULL, near ? near->suffix : NULL);
    return false;
}

static bool spec_is_good(const char *name, size_t len, size_t prefix_len)
{
    const char *suffix = name + prefix_len;
    const struct known *near;

    for (size_t i = 0; i < sizeof elsewhere / sizeof elsewhere[0]; i++)
        if (strlen(elsewhere[i].theirs) == len && !memcmp(elsewhere[i].theirs, name, len)) {
            say(name, len, "", elsewhere[i].ours);
            return false;
        }
    if (is_known("SHMEM_", suffix, len - prefix_len))
        return true;
    near = nearest(suffix, len - prefix_len, true);
    if (near)
        say(name, len, near->prefix, near->suffix);
    return !near;
}

/* MAROW_TRANSPORT: the mistake is in front. */
static bool front_is_good(const char *name, size_t len)
{
    const char *bar = memchr(name, '_', len);
    const struct known *near;

    if (!bar || distance(name, (size_t)(bar + 1 - name), "MARROW_") > 2)
        return true;
    near = nearest(bar + 1, len - (size_t)(bar + 1 - name), false);
    if (near)
        say(name, len, near->prefix, near->suffix);
    return !near;
}

int shmemi_env_check_names(void)
{
    int bad = 0;

    for (char **at = environ; at && *at; at++) {
        size_t len = strcspn(*at, "=");

        if (!strncasecmp(*at, "MARROW_", 7))
            bad += !own_is_good(*at, len);
        else if (!strncmp(*at, "SHMEM_", 6))
            bad += !spec_is_good(*at, len, 6);
        else if (!strncmp(*at, "SMA_", 4))
            bad += !spec_is_good(*at, len, 4);
        else if (!strncmp(*at, "MAR", 3))
            bad += !front_is_good(*at, len);
    }
    if (bad && shmemi_env.strict) {
        shmemi_err("env", "MARROW_STRICT=1 does not allow that");
        return -EINVAL;
    }
    return 0;
}
