/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checks the settings, from options or given in the environment. The library says what it cannot read too, but goes on with the
 * default, in each process that opens a device: a test would pass without its fault, or on one node.
 */
#include "tools/settings.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/jobdir.h"
#include "wire/fault.h"

/* A number from least to most, or one of two words where there is a first. */
struct setting {
    const char *option, *name;
    long least, most;
    const char *first, *second;
};

static const struct setting settings[] = {
    { "--devices", "SOFTHCA_DEVICES", 1, JOBDIR_MAX_DEVICES, NULL, NULL },
    { "--nodes", "SOFTHCA_NODES", 1, INT32_MAX, NULL, NULL },
    { "--log", "SOFTHCA_LOG", 0, 3, NULL, NULL },
    { "--no-dbr", "SOFTHCA_NO_DBR", 0, 15, NULL, NULL },
    { "--seed", "SOFTHCA_SEED", INT64_MIN, INT64_MAX, NULL, NULL },
    { "--stats", "SOFTHCA_STATS", 0, 1, NULL, NULL },
    { "--lenient", "SOFTHCA_STRICT", 0, 1, NULL, NULL },
    { "--wire", "SOFTHCA_WIRE", 0, 0, "shm", "udp" },
    { "--link", "SOFTHCA_LINK", 0, 0, "ib", "eth" },
};

static const char *text_of(const char *name)
{
    const char *text = getenv(name);

    return text && *text ? text : NULL;
}

static bool plain_good(const struct setting *s)
{
    const char *text = text_of(s->name);
    char *end;
    long n;

    if (!text)
        return true;
    if (s->first) {
        if (!strcmp(text, s->first) || !strcmp(text, s->second))
            return true;
        fprintf(stderr, "softhca-run: %s (%s) must be %s or %s, not '%s'\n", s->option, s->name, s->first, s->second, text);
        return false;
    }
    errno = 0;
    n = strtol(text, &end, 0);
    if (end != text && !*end && !errno && n >= s->least && n <= s->most)
        return true;
    if (s->most == INT32_MAX)
        fprintf(stderr, "softhca-run: %s (%s) must be a number from %ld on, not '%s'\n", s->option, s->name, s->least, text);
    else if (s->most == INT64_MAX)
        fprintf(stderr, "softhca-run: %s (%s) must be a number, not '%s'\n", s->option, s->name, text);
    else
        fprintf(stderr, "softhca-run: %s (%s) must be a number from %ld to %ld, not '%s'\n", s->option, s->name, s->least, s->most,
                text);
    return false;
}

static bool faults_good(const char *name)
{
    static struct fault_plan plan;
    const char *text = text_of(name), *bad = "";

    if (!text || !fault_parse(&plan, text, 1, &bad))
        return true;
    fprintf(stderr, "softhca-run: --faults (%s) cannot be read at '%s': softhca's README.md lists the faults\n", name, bad);
    return false;
}

static bool nets_good(void)
{
    const char *text = text_of("SOFTHCA_NET");
    struct in_addr a;

    while (text) {
        char one[INET_ADDRSTRLEN] = "";
        size_t n = strcspn(text, ",");

        if (n < sizeof one)
            memcpy(one, text, n);
        if (inet_pton(AF_INET, one, &a) != 1) {
            fprintf(stderr, "softhca-run: --net (SOFTHCA_NET): '%.*s' is no IPv4 address\n", (int)n, text);
            return false;
        }
        text = text[n] ? text + n + 1 : NULL;
    }
    return true;
}

/* Files that processes of the job will make. */
static bool folder_good(const char *option, const char *name)
{
    const char *text = text_of(name), *slash = text ? strrchr(text, '/') : NULL;
    char folder[PATH_MAX];

    if (!text)
        return true;
    snprintf(folder, sizeof folder, "%.*s", slash > text ? (int)(slash - text) : 1, slash ? text : ".");
    if (!access(folder, W_OK))
        return true;
    fprintf(stderr, "softhca-run: %s (%s) cannot be written into %s: %s\n", option, name, folder, strerror(errno));
    return false;
}

bool settings_good(void)
{
    bool good = nets_good();
    char name[32];

    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        good = plain_good(&settings[i]) && good;
    good = folder_good("--trace", "SOFTHCA_TRACE") && folder_good("--pcap", "SOFTHCA_PCAP") && good;
    good = faults_good("SOFTHCA_FAULTS") && good;
    for (unsigned i = 0; i < JOBDIR_MAX_DEVICES; i++) {
        snprintf(name, sizeof name, "SOFTHCA_FAULTS_%u", i);
        good = faults_good(name) && good;
    }
    return good;
}
