/* SPDX-License-Identifier: BSD-3-Clause */
/* path.c - from this port to a peer's: address vector, MTU, and a name for messages. */
#include "verbs.h"

#include <stdio.h>
#include <string.h>

enum { HOPS = 64 };

/* InfiniBand needs the global header only between subnets, where the port demands it, or where the user chose an index. */
static bool needs_global(const struct shmemi_verbs_nic *nic, const struct shmemi_verbs_address *to)
{
    if (nic->port.link_layer == IBV_LINK_LAYER_ETHERNET)
        return true;
    if (nic->gid_index < 0 || !to->global)
        return false;
    return nic->config->gid_index >= 0 || (nic->port.flags & IBV_QPF_GRH_REQUIRED) || to->lid == 0
           || memcmp(nic->gid.raw, to->gid, 8) != 0;
}

void shmemi_verbs_ah_attr(const struct shmemi_verbs_nic *nic, const struct shmemi_verbs_address *to, struct ibv_ah_attr *out)
{
    memset(out, 0, sizeof *out);
    out->port_num = (uint8_t)nic->nic.port;
    out->sl = (uint8_t)nic->config->service_level;
    out->dlid = to->lid;
    if (!needs_global(nic, to))
        return;
    out->is_global = 1;
    memcpy(out->grh.dgid.raw, to->gid, sizeof to->gid);
    out->grh.sgid_index = (uint8_t)nic->gid_index;
    out->grh.hop_limit = HOPS;
    out->grh.traffic_class = (uint8_t)nic->config->traffic_class;
}

enum ibv_mtu shmemi_verbs_path_mtu(const struct shmemi_verbs_nic *nic, const struct shmemi_verbs_address *to)
{
    return to->mtu < nic->mtu ? (enum ibv_mtu)to->mtu : nic->mtu;
}

const char *shmemi_verbs_peer_name(const struct shmemi_verbs_nic *nic, int pe, char *buf, size_t len)
{
    if (nic->peers)
        return shmemi_verbs_address_name(&nic->peers[pe], pe, buf, len);
    snprintf(buf, len, "PE %d", pe);
    return buf;
}

const char *shmemi_verbs_address_name(const struct shmemi_verbs_address *a, int pe, char *buf, size_t len)
{
    const uint8_t *g = a->gid;

    if (a->link != IBV_LINK_LAYER_ETHERNET)
        snprintf(buf, len, "PE %d (%.31s port %u, LID %u)", pe, a->device, a->port, a->lid);
    else if (g[10] == 0xff && g[11] == 0xff && !g[0])
        snprintf(buf, len, "PE %d (%.31s port %u, %u.%u.%u.%u)", pe, a->device, a->port, g[12], g[13], g[14], g[15]);
    else
        snprintf(buf, len, "PE %d (%.31s port %u, GID %02x%02x:%02x%02x::%02x%02x:%02x%02x)", pe, a->device, a->port, g[0],
                 g[1], g[2], g[3], g[12], g[13], g[14], g[15]);
    return buf;
}

/* Of an Ethernet port the mask is not known here: the usual ones are taken. */
bool shmemi_verbs_same_network(const struct shmemi_verbs_address *a, const struct shmemi_verbs_address *b)
{
    static const uint8_t ipv4[12] = { [10] = 0xff, [11] = 0xff };
    bool mapped = memcmp(a->gid, ipv4, sizeof ipv4) == 0;

    if (a->link != b->link)
        return false;
    if (a->link != IBV_LINK_LAYER_ETHERNET && (!a->global || !b->global))
        return true;
    return memcmp(a->gid, b->gid, a->link == IBV_LINK_LAYER_ETHERNET && mapped ? 15 : 8) == 0;
}

/*
 * One on the same network before all others, and among those the device of the same name, since devices with one number
 * are mostly on one leaf switch; without such, peers take turns.
 */
int shmemi_verbs_rail_to(const struct shmemi_verbs_address *const *rails, int n, const struct shmemi_verbs_address *to, int pe)
{
    int best = 0, best_worth = -1;

    for (int i = 0; i < n; i++) {
        int k = (pe + i) % n;
        int worth = shmemi_verbs_same_network(rails[k], to) * 2
                    + (rails[k]->port == to->port && strcmp(rails[k]->device, to->device) == 0);

        if (worth > best_worth) {
            best_worth = worth;
            best = k;
        }
    }
    return best;
}
