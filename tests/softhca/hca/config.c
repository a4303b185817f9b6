/* SPDX-License-Identifier: BSD-3-Clause */
/* What the environment says, and the log. */
#include "hca/hca.h"

#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hca/objects.h"

struct hca_config hca_config;

static long env_number(const char *name, long fallback)
{
    const char *text = getenv(name);
    char *end;
    long value;

    if (!text || !*text)
        return fallback;
    value = strtol(text, &end, 0);
    if (*end) {
        hca_log_line(HCA_LINT, "%s: '%s' is not a number, using %ld", name, text, fallback);
        return fallback;
    }
    return value;
}

static const char *env_text(const char *name)
{
    const char *text = getenv(name);

    return text && *text ? text : NULL;
}

/* One address a device, with commas between; the last one goes for all devices behind it too. */
static void read_nets(const char *name)
{
    const char *text = env_text(name);
    struct in_addr a = { 0 };

    for (unsigned i = 0; i < HCA_MAX_DEVICES; i++) {
        char one[INET_ADDRSTRLEN] = "";
        size_t n = text ? strcspn(text, ",") : 0;

        if (n && n < sizeof one)
            memcpy(one, text, n);
        if (n && inet_pton(AF_INET, one, &a) != 1)
            hca_log_line(HCA_LINT, "%s: '%.*s' is no IPv4 address", name, (int)n, text);
        hca_config.net[i] = ntohl(a.s_addr);
        text = n && text[n] ? text + n + 1 : NULL;
    }
}

static void read_devices(void)
{
    long n = env_number("SOFTHCA_DEVICES", 1);
    char name[32];

    if (n < 1 || n > HCA_MAX_DEVICES) {
        hca_log_line(HCA_LINT, "SOFTHCA_DEVICES: %ld is not between 1 and %d, using 1", n, HCA_MAX_DEVICES);
        n = 1;
    }
    hca_config.devices = (unsigned)n;
    for (unsigned i = 0; i < HCA_MAX_DEVICES; i++) {
        snprintf(name, sizeof name, "SOFTHCA_FAULTS_%u", i);
        hca_config.faults[i] = env_text(name);
        if (!hca_config.faults[i])
            hca_config.faults[i] = env_text("SOFTHCA_FAULTS");
    }
}

void hca_config_read(void)
{
    const char *link = env_text("SOFTHCA_LINK");

    hca_config.log_level = (int)env_number("SOFTHCA_LOG", 0);
    hca_config.eth = link && !strcmp(link, "eth");
    if (link && strcmp(link, "eth") && strcmp(link, "ib"))
        hca_log_line(HCA_LINT, "SOFTHCA_LINK: '%s' is neither ib nor eth, using ib", link);
    hca_config.lenient = !env_number("SOFTHCA_STRICT", 1);
    hca_config.log_bare = (unsigned)env_number("SOFTHCA_NO_DBR", 0) & 0x1f;
    hca_config.stats = env_number("SOFTHCA_STATS", 0) != 0;
    hca_config.seed = (uint64_t)env_number("SOFTHCA_SEED", 1);
    hca_config.nodes = (unsigned)env_number("SOFTHCA_NODES", 0);
    hca_config.wire = env_text("SOFTHCA_WIRE");
    read_devices();
    hca_config.trace = env_text("SOFTHCA_TRACE");
    hca_config.pcap = env_text("SOFTHCA_PCAP");
    read_nets("SOFTHCA_NET");
    hca_config.dir = env_text("SOFTHCA_DIR");
}

/* One write a line, so that lines of several processes do not mix. */
void hca_log_line(int level, const char *fmt, ...)
{
    char line[1024];
    int saved = errno;
    va_list args;
    int n, m;

    n = snprintf(line, sizeof line, "[softhca %u:%d] %s", hca_current->id.slot, (int)getpid(), level == HCA_LINT ? "! " : "");
    va_start(args, fmt);
    m = vsnprintf(line + n, sizeof line - (size_t)n - 1, fmt, args);
    va_end(args);
    n += m < 0 ? 0 : m;
    if (n > (int)sizeof line - 2)
        n = (int)sizeof line - 2;
    line[n++] = '\n';
    if (write(STDERR_FILENO, line, (size_t)n) < 0)
        n = 0;
    errno = saved;
}
