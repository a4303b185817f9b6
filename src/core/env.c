/* SPDX-License-Identifier: BSD-3-Clause */
/* env.c - parses and prints the environment variables of api/env.def. */
#include "env.h"

#include "log.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct shmemi_env shmemi_env;

enum kind { FLAG, SIZE, INT, SECONDS, STRING };
enum family { SPEC, OWN };

static const struct variable {
    enum family family;
    const char *suffix;
    enum kind kind;
    const char *dflt, *category, *help;
    size_t offset;
} variables[] = {
#define SHMEMI_ENV(field, family, suffix, kind, dflt, category, help)                              \
    { family, suffix, kind, dflt, category, help, offsetof(struct shmemi_env, field) },
#include "../../api/env.def"
#undef SHMEMI_ENV
};

#define N_VARIABLES (sizeof variables / sizeof variables[0])

/* As it stands there, or NULL. */
static const char *find(const struct variable *v, char *name, size_t len)
{
    const char *value;

    if (v->family == SPEC) {
        snprintf(name, len, "SMA_%s", v->suffix);
        value = getenv(name);
        if (value && snprintf(name, len, "SHMEM_%s", v->suffix) > 0 && !getenv(name)) {
            snprintf(name, len, "SMA_%s", v->suffix);
            return value;
        }
    }
    snprintf(name, len, "%s_%s", v->family == SPEC ? "SHMEM" : "MARROW", v->suffix);
    return getenv(name);
}

/*
 * The value in the environment, or NULL; `name` receives the spelling that was found, or the preferred one.  An empty value
 * counts as unset, as users write VAR= to undo one; not for sizes: a heap of the default's is not meant.
 */
static const char *lookup(const struct variable *v, char *name, size_t len)
{
    const char *text = find(v, name, len);

    return text && !*text && v->kind != SIZE ? NULL : text;
}

/* Powers of 1024 of a size suffix; 0 for none, -1 for a letter that is no multiplier. */
static int multiplier(char c)
{
    static const char letters[] = "kmgt";
    const char *at;

    if (c == '\0')
        return 0;
    at = strchr(letters, tolower((unsigned char)c));
    return at ? (int)(at - letters) + 1 : -1;
}

int shmemi_parse_size(const char *text, size_t *out)
{
    char *end;
    long double number;
    int power, rc;

    while (isspace((unsigned char)*text))
        text++;
    if (!isdigit((unsigned char)*text) && *text != '.')
        return -EINVAL; /* also refuses a sign, "inf", "nan" */
    if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
        return -EINVAL;
    errno = 0;
    number = strtold(text, &end);
    rc = end == text || errno ? -EINVAL : 0;
    while (isspace((unsigned char)*end)) /* "2 GB" is not two bytes */
        end++;
    power = multiplier(*end);
    if (rc || power < 0)
        return -EINVAL;
    number = ceill(ldexpl(number, 10 * power));
    if (!(number < ldexpl(1, 63)))
        return -EINVAL;
    *out = (size_t)number;
    return 0;
}

static bool parse_flag(const char *text)
{
    static const char *const no[] = { "0", "no", "n", "false", "off" };

    for (size_t i = 0; i < sizeof no / sizeof no[0]; i++)
        if (!strcasecmp(text, no[i]))
            return false;
    return true;
}

static int parse_int(const char *text, long *out)
{
    char *end;

    errno = 0;
    *out = strtol(text, &end, 10);
    return end == text || *end || errno ? -EINVAL : 0;
}

static int parse_seconds(const char *text, uint64_t *out)
{
    char *end;
    double seconds;

    errno = 0;
    seconds = strtod(text, &end);
    if (end == text || *end || errno || !(seconds >= 0) || seconds > 1e9)
        return -EINVAL;
    *out = (uint64_t)(seconds * 1e9);
    return 0;
}

static int parse_one(const struct variable *v, const char *text)
{
    char *field = (char *)&shmemi_env + v->offset;

    switch (v->kind) {
    case FLAG: *(bool *)field = parse_flag(text); return 0;
    case SIZE: return shmemi_parse_size(text, (size_t *)field);
    case INT: return parse_int(text, (long *)field);
    case SECONDS: return parse_seconds(text, (uint64_t *)field);
    case STRING: *(const char **)field = text; return 0;
    }
    return -EINVAL;
}

static const char *expected(enum kind kind)
{
    switch (kind) {
    case SIZE: return "a non-negative number with an optional k, m, g or t";
    case INT: return "an integer";
    case SECONDS: return "a non-negative number of seconds";
    default: return "a word";
    }
}

static int set_log_level(void)
{
    static const char *const names[] = { "err", "warn", "info", "debug", "trace" };

    for (int i = 0; i < (int)(sizeof names / sizeof names[0]); i++)
        if (!strcasecmp(shmemi_env.log, names[i])) {
            shmemi_log_threshold = i;
            if (shmemi_env.debug && i < SHMEMI_LOG_DEBUG)
                shmemi_log_threshold = SHMEMI_LOG_DEBUG;
            return 0;
        }
    shmemi_err("env", "MARROW_LOG is \"%s\": expected err, warn, info, debug or trace", shmemi_env.log);
    return -EINVAL;
}

int shmemi_env_parse(void)
{
    char name[64];

    for (size_t i = 0; i < N_VARIABLES; i++) {
        const struct variable *v = &variables[i];
        const char *text = lookup(v, name, sizeof name);

        if (parse_one(v, text ? text : v->dflt)) {
            shmemi_err("env", "%s is \"%s\": expected %s", name, text ? text : v->dflt, expected(v->kind));
            return -EINVAL;
        }
    }
    if (set_log_level())
        return -EINVAL;
    return shmemi_env_check();
}

void shmemi_env_print(FILE *out)
{
    const char *category = "";
    char name[64];

    for (size_t i = 0; i < N_VARIABLES; i++) {
        const struct variable *v = &variables[i];
        const char *text = lookup(v, name, sizeof name);

        if (strcmp(category, v->category))
            fprintf(out, "%s\n%s:\n", *category ? "" : "\nMarrow environment variables", v->category);
        category = v->category;
        fprintf(out, "  %-24s %s%s%s  (default: %s%s)\n", name, text ? "\"" : "", text ? text : v->dflt,
                text ? "\"" : "", *v->dflt ? v->dflt : "none", text ? "; set by the environment" : "");
        fprintf(out, "      %s\n", v->help);
    }
    fputc('\n', out);
}
