/* SPDX-License-Identifier: BSD-3-Clause */
/* select.c - the list of devices that the user gives, and the order among those that can be used. */
#include "select.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "mlx5_0" or "mlx5_0:1", of `len` characters: the name's length, and the port or 0 for any; false: neither. */
static bool parse_word(const char *word, size_t len, size_t *name_len_out, int *port_out)
{
    const char *colon = memchr(word, ':', len);
    char *end;
    long port;

    *name_len_out = colon ? (size_t)(colon - word) : len;
    *port_out = 0;
    if (*name_len_out == 0)
        return false;
    if (!colon)
        return true;
    port = strtol(colon + 1, &end, 10);
    if (end != word + len || end == colon + 1 || port < 1 || port > 255)
        return false;
    *port_out = (int)port;
    return true;
}

static bool matches(const struct shmemi_verbs_port *p, const char *name, size_t len, int port)
{
    return strlen(p->device) == len && memcmp(p->device, name, len) == 0 && (!port || port == p->port);
}

int shmemi_verbs_list_apply(const char *list, struct shmemi_verbs_port *ports, int n, bool *named_out, char *bad,
                            size_t bad_len)
{
    bool out = list && list[0] == '^';
    const char *at = list && list[0] ? list + out : "";
    bool named = at[0] && !out;

    for (int i = 0; i < n; i++)
        ports[i].listed = !named, ports[i].named = false;
    while (*at) {
        size_t len = strcspn(at, ","), name_len;
        int port;

        if (!parse_word(at, len, &name_len, &port)) {
            snprintf(bad, bad_len, "%.*s", (int)len, at);
            return -EINVAL;
        }
        for (int i = 0; i < n; i++) {
            if (matches(&ports[i], at, name_len, port))
                ports[i].listed = ports[i].named = !out;
        }
        at += len;
        at += *at == ',';
    }
    *named_out = named;
    return 0;
}

static void leave_out(struct shmemi_verbs_port *p, const char *why)
{
    p->out = true;
    snprintf(p->why, sizeof p->why, "%s", why);
}

/* Says of every port that cannot be used why; the number of those that can. */
static int usable(const struct shmemi_nic_config *config, struct shmemi_verbs_port *ports, int n)
{
    int count = 0;

    for (int i = 0; i < n; i++) {
        struct shmemi_verbs_port *p = &ports[i];

        p->out = false;
        p->rail = 0;
        p->why[0] = '\0';
        if (!p->listed)
            leave_out(p, "left out by MARROW_HCA_LIST");
        else if (p->iwarp)
            leave_out(p, "iWARP connects by another protocol than Marrow speaks");
        else if (p->state != IBV_PORT_ACTIVE)
            leave_out(p, p->state == IBV_PORT_DOWN ? "the port is down: cable, switch, or \"ip link set up\""
                                                   : "the port is not active: is a subnet manager running?");
        else if (config->want == SHMEMI_NIC_MLX5 && !p->mlx5)
            leave_out(p, "not an mlx5 device, which MARROW_TRANSPORT=ibgda asks for");
        else
            count++;
    }
    return count;
}

/*
 * All PEs of a job must meet on one kind of link: InfiniBand where there is any.  Among what the user has not named,
 * a management port that is much slower than the fastest is no choice, however near it is.
 */
static void prefer(const struct shmemi_nic_config *config, struct shmemi_verbs_port *ports, int n, bool named)
{
    bool mlx5 = false, ib = false;
    uint64_t fastest = 0;

    for (int i = 0; i < n; i++)
        mlx5 = mlx5 || (!ports[i].out && ports[i].mlx5 && config->want == SHMEMI_NIC_AUTO);
    for (int i = 0; i < n; i++) {
        if (!ports[i].out && mlx5 && !ports[i].mlx5)
            leave_out(&ports[i], "an mlx5 device is here too");
        ib = ib || (!ports[i].out && ports[i].link != IBV_LINK_LAYER_ETHERNET);
    }
    for (int i = 0; i < n; i++) {
        if (!ports[i].out && ib && ports[i].link == IBV_LINK_LAYER_ETHERNET)
            leave_out(&ports[i], "InfiniBand is here too");
        if (!ports[i].out && ports[i].mbit > fastest)
            fastest = ports[i].mbit;
    }
    for (int i = 0; i < n && !named; i++) {
        if (!ports[i].out && ports[i].mbit < fastest / 2)
            leave_out(&ports[i], "less than half as fast as the fastest port");
    }
}

/* The nearest ones: their number. */
static int nearest(const struct shmemi_verbs_port *ports, int n, int choice[])
{
    int least = -1, equal = 0;

    for (int i = 0; i < n; i++) {
        if (ports[i].out || ports[i].rail)
            continue;
        if (least < 0 || ports[i].far < least) {
            least = ports[i].far;
            equal = 0;
        }
        if (ports[i].far == least)
            choice[equal++] = i;
    }
    return equal;
}

/*
 * Whose turn it is where nothing about the CPUs says so.  With several rails the homes of a node's only PEs would all be devices
 * of one number, and the others idle, so nodes take turns too.
 */
static int turn_of(const struct shmemi_nic_config *config)
{
    if (config->rails == 1 || config->n_local < 1)
        return config->my_local;
    return config->my_local + config->my_pe / config->n_local;
}

/* The ports behind the home, from its place in `choice` on; then the next ones by distance, where so many are asked for. */
static void further_rails(const struct shmemi_nic_config *config, struct shmemi_verbs_port *ports, int n, int *choice,
                          int equal, int home)
{
    int most = config->rails > 0 ? config->rails : SHMEMI_NIC_RAILS, rail = 1;

    if (most > SHMEMI_NIC_RAILS)
        most = SHMEMI_NIC_RAILS;
    while (rail < most && equal > 0) {
        for (int k = 0; k < equal && rail < most; k++) {
            struct shmemi_verbs_port *p = &ports[choice[(home + k) % equal]];

            if (!p->rail)
                p->rail = ++rail;
        }
        equal = config->rails > 0 ? nearest(ports, n, choice) : 0;
        home = 0;
    }
}

int shmemi_verbs_select(const struct shmemi_nic_config *config, struct shmemi_verbs_port *ports, int n, bool named,
                        int (*rank)(const struct shmemi_nic_config *config, struct shmemi_verbs_port *ports, int n))
{
    int choice[SHMEMI_VERBS_MAX_PORTS], turn = -1, equal, left = 0, at, home;

    if (!usable(config, ports, n))
        return -ENODEV;
    prefer(config, ports, n, named);
    for (int i = 0; i < n; i++)
        left += !ports[i].out;
    if (left > 1)
        turn = rank(config, ports, n);
    equal = nearest(ports, n, choice);
    if (left == 1)
        snprintf(ports[choice[0]].why, sizeof ports[choice[0]].why, "the only one that can be used");
    at = (turn >= 0 ? turn : turn_of(config)) % equal;
    home = choice[at];
    ports[home].rail = 1;
    further_rails(config, ports, n, choice, equal, at);
    return home;
}
