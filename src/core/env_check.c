/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * env_check.c - values of environment variables that can be read but mean nothing.
 *
 * They end the program at init, whether or not this job comes to use them: what is wrong on one node now is a dead job on
 * two later.
 */
#include "env.h"

#include "log.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <strings.h>

struct range {
    const char *name;
    long value, least, most;
    bool power; /* of two; 0 is none, but may stand at the least end */
};

static bool fits(const struct range *r)
{
    return r->value >= r->least && r->value <= r->most && !(r->power && (r->value & (r->value - 1)));
}

static int check_ranges(void)
{
    const struct shmemi_env *e = &shmemi_env;
    const struct range rows[] = {
        { "MARROW_RAILS", e->rails, 0, 4, false },
        { "MARROW_IB_GID_INDEX", e->ib_gid_index, -1, 255, false },
        { "MARROW_IB_TRAFFIC_CLASS", e->ib_traffic_class, 0, 255, false },
        { "MARROW_IB_SL", e->ib_sl, 0, 15, false },
        { "MARROW_IB_PKEY_INDEX", e->ib_pkey_index, 0, 65535, false },
        { "MARROW_IB_TIMEOUT", e->ib_timeout, 1, 31, false },
        { "MARROW_IB_RETRY", e->ib_retry, 0, 7, false },
        { "MARROW_QUEUE_DEPTH", e->queue_depth, 64, 32768, true },
        { "MARROW_DEVICE_QPS", e->device_qps, 1, 64, true },
        { "MARROW_CUDA", e->cuda, -1, 1, false },
        { "MARROW_CHECK", e->check, 0, 1, false },
        { "MARROW_SPIN", e->spin, -1, LONG_MAX, false },
        { "MARROW_BARRIER_RADIX", e->barrier_radix, 0, LONG_MAX, false },
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct range *r = &rows[i];

        if (fits(r))
            continue;
        if (r->most == LONG_MAX)
            shmemi_err("env", "%s is %ld: expected %ld or more", r->name, r->value, r->least);
        else
            shmemi_err("env", "%s is %ld: expected %s%ld to %ld", r->name, r->value, r->power ? "a power of two from " : "",
                       r->least, r->most);
        return -EINVAL;
    }
    if (e->ib_mtu && (e->ib_mtu < 256 || e->ib_mtu > 4096 || (e->ib_mtu & (e->ib_mtu - 1)))) {
        shmemi_err("env", "MARROW_IB_MTU is %ld: expected 0, 256, 512, 1024, 2048 or 4096", e->ib_mtu);
        return -EINVAL;
    }
    return 0;
}

/* One of `words`, which ends with NULL. */
static int check_word(const char *name, const char *value, const char *const *words, const char *expected)
{
    for (int i = 0; words[i]; i++)
        if (!strcasecmp(value, words[i]))
            return 0;
    shmemi_err("env", "%s is \"%s\": expected %s", name, value, expected);
    return -EINVAL;
}

static int check_words(void)
{
    static const char *const transports[] = { "auto", "ibgda", "proxy", NULL }, *const places[] = { "gpu", "host", NULL },
                            *const modes[] = { "off", "auto", "on", NULL };
    int rc = check_word("MARROW_TRANSPORT", shmemi_env.transport, transports, "auto, ibgda or proxy");

    rc = rc ? rc : check_word("MARROW_IBGDA_MEMORY", shmemi_env.ibgda_memory, places, "gpu or host");
    return rc ? rc : check_word("MARROW_NO_DBR", shmemi_env.no_dbr, modes, "off, auto or on");
}

/* No GPU has as much: an address range of the kind cannot even be reserved. */
static int check_sizes(void)
{
    static const size_t most = (size_t)1 << 45;
    const struct shmemi_env *e = &shmemi_env;

    if (e->device_heap <= most && e->device_grow <= most)
        return 0;
    shmemi_err("env", "%s is %zu bytes: expected at most 32T", e->device_heap > most ? "MARROW_DEVICE_HEAP" : "MARROW_DEVICE_GROW",
               e->device_heap > most ? e->device_heap : e->device_grow);
    return -EINVAL;
}

int shmemi_env_check(void)
{
    int rc = check_ranges();

    if (!rc)
        rc = check_words();
    return rc ? rc : check_sizes();
}
