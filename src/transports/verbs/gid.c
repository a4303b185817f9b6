/* SPDX-License-Identifier: BSD-3-Clause */
/* gid.c - which of a RoCE port's addresses to use. */
#include "verbs.h"

#include <errno.h>
#include <string.h>

static bool ipv4_mapped(const union ibv_gid *gid)
{
    static const uint8_t head[12] = { [10] = 0xff, [11] = 0xff };

    return memcmp(gid->raw, head, sizeof head) == 0;
}

static bool link_local(const union ibv_gid *gid)
{
    return gid->raw[0] == 0xfe && (gid->raw[1] & 0xc0) == 0x80;
}

/*
 * RoCE v2 before v1: only v2 packets pass routers, and switches set them apart by DSCP.  Among them IPv4 first, as that is what
 * administrators set up; a link-local address last, as it leads nowhere but to the same segment.
 */
static int worth(const struct ibv_gid_entry *entry)
{
    if (entry->gid_type != IBV_GID_TYPE_ROCE_V2)
        return entry->gid_type == IBV_GID_TYPE_ROCE_V1 ? 1 : 0;
    if (ipv4_mapped(&entry->gid))
        return 4;
    return link_local(&entry->gid) ? 2 : 3;
}

int shmemi_verbs_gid_choose(const struct ibv_gid_entry *table, int n, int port, int wanted)
{
    int best = -ENOENT, best_worth = 0;

    for (int i = 0; i < n; i++) {
        if ((int)table[i].port_num != port)
            continue;
        if (wanted >= 0 && (int)table[i].gid_index == wanted)
            return wanted;
        if (wanted < 0 && worth(&table[i]) > best_worth) {
            best_worth = worth(&table[i]);
            best = (int)table[i].gid_index;
        }
    }
    return best;
}
