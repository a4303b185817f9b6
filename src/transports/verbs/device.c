/* SPDX-License-Identifier: BSD-3-Clause */
/* device.c - what devices and ports there are. */
#include "select.h"

#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <stdio.h>
#include <string.h>

const char *shmemi_verbs_state_name(enum ibv_port_state state)
{
    switch (state) {
    case IBV_PORT_ACTIVE:
        return "active";
    case IBV_PORT_DOWN:
        return "down";
    case IBV_PORT_INIT:
        return "initialising";
    case IBV_PORT_ARMED:
        return "armed";
    case IBV_PORT_ACTIVE_DEFER:
        return "active, deferred";
    default:
        return "unknown";
    }
}

/* Megabits a second: active_speed is a bit for each signalling rate of a lane, active_width for the number of lanes. */
static uint64_t rate(const struct ibv_port_attr *attr)
{
    static const struct {
        uint8_t code;
        uint32_t mbit;
    } speeds[] = { { 1, 2500 }, { 2, 5000 }, { 4, 10000 }, { 8, 10000 }, { 16, 14000 }, { 32, 25000 }, { 64, 50000 }, { 128, 100000 } };
    static const struct {
        uint8_t code;
        uint32_t lanes;
    } widths[] = { { 1, 1 }, { 2, 4 }, { 4, 8 }, { 8, 12 }, { 16, 2 } };
    uint32_t mbit = 0, lanes = 0;

    for (size_t i = 0; i < sizeof speeds / sizeof *speeds; i++)
        mbit = speeds[i].code == attr->active_speed ? speeds[i].mbit : mbit;
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++)
        lanes = widths[i].code == attr->active_width ? widths[i].lanes : lanes;
    return (uint64_t)mbit * lanes;
}

static int ports_of(struct ibv_device *device, struct shmemi_verbs_port *ports, int max)
{
    struct ibv_context *ctx = ibv_open_device(device);
    struct ibv_device_attr attr;
    struct ibv_port_attr port;
    int n = 0;

    if (!ctx)
        return 0;
    if (ibv_query_device(ctx, &attr))
        attr.phys_port_cnt = 0;
    for (int i = 1; i <= attr.phys_port_cnt && n < max; i++) {
        struct shmemi_verbs_port *p = &ports[n];

        if (ibv_query_port(ctx, (uint8_t)i, &port))
            continue;
        memset(p, 0, sizeof *p);
        snprintf(p->device, sizeof p->device, "%s", ibv_get_device_name(device));
        p->handle = device;
        p->port = i;
        p->state = port.state;
        p->link = port.link_layer;
        p->mbit = rate(&port);
        p->mlx5 = mlx5dv_is_supported(device);
        p->iwarp = device->transport_type != IBV_TRANSPORT_IB;
        n++;
    }
    ibv_close_device(ctx);
    return n;
}

int shmemi_verbs_ports(struct shmemi_verbs_port *ports, int max, struct ibv_device ***list_out)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    int n = 0;

    *list_out = list;
    for (int i = 0; list && list[i] && n < max; i++)
        n += ports_of(list[i], ports + n, max - n);
    return n;
}
