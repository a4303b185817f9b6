/* SPDX-License-Identifier: BSD-3-Clause */
/* net.c - brings the network up for a job that spans nodes: the module, this PE's memory, everybody's cards. */
#include "net.h"

#include "data.h"
#include "env.h"
#include "log.h"
#include "net_bounce.h"
#include "net_dheap.h"
#include "net_queue.h"
#include "nic_load.h"
#include "node.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct shmemi_net shmemi_net;

enum { ATOMICS_GLOBAL = 1 }; /* struct shmemi_net_peer.flags */

/* What a PE tells all others once its memory is registered. */
struct card {
    struct shmemi_net_peer peer;
    uint64_t data_len, data_identity;
    unsigned char nic[SHMEMI_NIC_CARD_BYTES];
};

static struct shmemi_nic_config config; /* the module reads it until close */
static struct shmemi_peer *no_peers;    /* amo_peers where NICs do the atomics */

static bool log_on(int level)
{
    return level <= shmemi_log_threshold;
}

SHMEMI_PRINTF(3, 4)
static void log_line(int level, const char *component, const char *fmt, ...)
{
    va_list ap;

    if (!log_on(level))
        return;
    va_start(ap, fmt);
    shmemi_log_vwrite((enum shmemi_log_level)level, component, fmt, ap);
    va_end(ap);
}

/* The name is known to be one of these (env_check.c). */
static enum shmemi_nic_kind transport(void)
{
    if (!strcasecmp(shmemi_env.transport, "ibgda"))
        return SHMEMI_NIC_MLX5;
    return !strcasecmp(shmemi_env.transport, "proxy") ? SHMEMI_NIC_VERBS : SHMEMI_NIC_AUTO;
}

static void fill_config(const struct shmemi_net_start *start)
{
    config.my_pe = shmemi.my_pe;
    config.n_pes = shmemi.n_pes;
    config.my_local = shmemi.my_local;
    config.n_local = shmemi.n_local;
    config.want = transport();
    config.strict = shmemi_env.strict;
    config.rails = (int)shmemi_env.rails;
    config.device_list = shmemi_env.hca_list;
    config.near_pci = NULL;
    config.gid_index = (int)shmemi_env.ib_gid_index;
    config.traffic_class = (int)shmemi_env.ib_traffic_class;
    config.service_level = (int)shmemi_env.ib_sl;
    config.pkey_index = (int)shmemi_env.ib_pkey_index;
    config.mtu = (int)shmemi_env.ib_mtu;
    config.timeout = (int)shmemi_env.ib_timeout;
    config.retry_count = (int)shmemi_env.ib_retry;
    config.queue_depth = (int)shmemi_env.queue_depth;
    config.connect_timeout_ns = shmemi_env.connect_timeout ? shmemi_env.connect_timeout : UINT64_MAX;
    memcpy(config.secret, start->secret, sizeof config.secret);
    config.gone = shmemi_net_left;
    config.log_on = log_on;
    config.log = log_line;
}

static int open_nic(const struct shmemi_net_start *start)
{
    char why[1024];
    int rc;

    fill_config(start);
    rc = shmemi_nic_load(shmemi_env.module_dir, &shmemi_net.module, why, sizeof why);
    if (rc) {
        shmemi_err("net", "the job spans nodes, but the module that knows NICs cannot be loaded: %s", why);
        return rc;
    }
    rc = shmemi_net.module->open(&config, &shmemi_net.nic);
    /* Where no variable of the NIC's is at fault, but that there is none. */
    if (rc == -ENODEV && *shmemi_env.node && !*shmemi_env.hca_list && shmemi.my_pe == 0)
        shmemi_err("net", "this PE counts as on node \"%s\" by MARROW_NODE (oshrun --nodes sets it): nodes reach each other through "
                   "a NIC only. Without it the PEs of one machine share memory; softhca-run of the source tree, in front of "
                   "the launcher, gives a machine a virtual NIC", shmemi_env.node);
    return rc;
}

static void fill_card(struct card *mine)
{
    const struct shmemi_peer *me = &shmemi.peers[shmemi.my_pe];

    mine->peer.heap = me->heap;
    mine->peer.data = me->data;
    mine->peer.team_blocks = (uint64_t)(uintptr_t)me->team_blocks;
    mine->peer.ctl = (uint64_t)(uintptr_t)me->ctl;
    mine->peer.rkey = shmemi_net.key.rkey;
    mine->peer.flags = shmemi_net.nic->atomics_global ? ATOMICS_GLOBAL : 0;
    mine->data_len = shmemi.data_len;
    mine->data_identity = shmemi_data_identity();
    shmemi_net.module->card(shmemi_net.nic, mine->nic);
}

/* Takes in the cards; peers may connect from here on. */
static int start_nic(const struct card *cards)
{
    unsigned char(*nic)[SHMEMI_NIC_CARD_BYTES] = malloc((size_t)shmemi.n_pes * sizeof *nic);
    const struct card *mine = &cards[shmemi.my_pe];
    int rc;

    if (!nic)
        return -ENOMEM;
    shmemi_net.nic_atomics = false;
    for (int pe = 0; pe < shmemi.n_pes; pe++) {
        struct shmemi_net_peer *p = &shmemi_net.peers[pe];

        memcpy(nic[pe], cards[pe].nic, sizeof nic[pe]);
        *p = cards[pe].peer;
        if (!shmemi.data_len || cards[pe].data_len != mine->data_len || cards[pe].data_identity != mine->data_identity)
            p->data = 0;
        if (!(p->flags & ATOMICS_GLOBAL))
            shmemi_net.nic_atomics = true;
    }
    rc = shmemi_net.module->start(shmemi_net.nic, (const unsigned char(*)[SHMEMI_NIC_CARD_BYTES])nic);
    free(nic);
    return rc;
}

static int exchange(void)
{
    struct card mine = { .data_len = 0 };
    struct card *cards = calloc((size_t)shmemi.n_pes, sizeof *cards);
    int timeout_s = (int)((shmemi_env.init_timeout + 999999999u) / 1000000000u);
    int rc = -ENOMEM;

    shmemi_net.peers = calloc((size_t)shmemi.n_pes, sizeof *shmemi_net.peers);
    if (cards && shmemi_net.peers) {
        fill_card(&mine);
        rc = shmemi.boot.ops->allgather(&shmemi.boot, &mine, sizeof mine, cards, timeout_s);
    }
    if (!rc)
        rc = start_nic(cards);
    free(cards);
    if (rc) {
        free(shmemi_net.peers);
        shmemi_net.peers = NULL;
    }
    return rc;
}

/* The PEs' waits: nobody wakes who waits for a NIC, so the spinning is left to the slow half of waiting (wait.c). */
static void go_live(void)
{
    if (shmemi_net.nic_atomics && no_peers)
        shmemi.amo_peers = no_peers;
    /* Nodes that are made up share CPUs. */
    shmemi_net.spin = (*shmemi_env.node && shmemi_env.spin < 0) || shmemi.spin_limit == 0 ? 1 : shmemi.spin_limit;
    shmemi.spin_limit = 1;
    shmemi_net.up = shmemi.net_up = true;
    shmemi_debug("net", "%s port %d by %s, atomics of %d and more bytes by the NIC%s; %d rail%s", shmemi_net.nic->device,
                 shmemi_net.nic->port, shmemi_net.nic->kind == SHMEMI_NIC_MLX5 ? "ibgda" : "proxy",
                 shmemi_net.nic->atomics_4 ? 4 : 8, shmemi_net.nic_atomics ? ", to near PEs too" : "",
                 shmemi_net.nic->n_rails, shmemi_net.nic->n_rails == 1 ? "" : "s");
}

int shmemi_net_init(const struct shmemi_net_start *start)
{
    int rc;

    if (shmemi.n_local == shmemi.n_pes)
        return 0;
    rc = open_nic(start);
    if (rc)
        return rc;
    rc = shmemi_net.module->mem_register(shmemi_net.nic, start->slice, start->slice_len, &shmemi_net.key);
    if (rc)
        goto no_memory;
    shmemi_net.message_max = shmemi_net.nic->message_max;
    for (int i = 1; i < shmemi_net.nic->n_rails; i++)
        if (shmemi_net.nic->rails[i]->message_max < shmemi_net.message_max)
            shmemi_net.message_max = shmemi_net.nic->rails[i]->message_max;
    if (shmemi_env.nic_message && shmemi_env.nic_message < shmemi_net.message_max)
        shmemi_net.message_max = shmemi_env.nic_message;
    rc = shmemi_landing_init();
    if (rc)
        goto no_landing;
    rc = exchange();
    if (rc)
        goto no_cards;
    no_peers = shmemi_net.nic_atomics ? calloc((size_t)shmemi.n_pes, sizeof *no_peers) : NULL;
    rc = shmemi_net.nic_atomics && !no_peers ? -ENOMEM : shmemi_net_queues_init();
    if (rc)
        goto no_queues;
    go_live();
    return 0;

no_queues:
    free(no_peers);
    free(shmemi_net.peers);
no_cards:
    shmemi_landing_fini();
no_landing:
    shmemi_net.module->mem_deregister(shmemi_net.nic, &shmemi_net.key);
no_memory:
    shmemi_net.module->close(shmemi_net.nic);
    memset(&shmemi_net, 0, sizeof shmemi_net);
    return rc;
}

void shmemi_net_fini(void)
{
    if (!shmemi_net.up)
        return;
    shmemi_net_dev_down();
    shmemi_net_queues_fini();
    shmemi.net_up = false;
    shmemi.amo_peers = shmemi.peers;
    shmemi_landing_fini();
    shmemi_net.module->mem_deregister(shmemi_net.nic, &shmemi_net.key);
    shmemi_net.module->close(shmemi_net.nic);
    free(no_peers);
    free(shmemi_net.peers);
    no_peers = NULL;
    memset(&shmemi_net, 0, sizeof shmemi_net);
}

const struct shmemi_nic *shmemi_net_rail(int pe)
{
    return shmemi_net.nic->rails[shmemi_net.module->rail_to(shmemi_net.nic, pe)];
}

bool shmemi_net_reaches(const void *addr, int pe)
{
    uintptr_t a = (uintptr_t)addr;

    if (!shmemi_net.up || (unsigned)pe >= (unsigned)shmemi.n_pes)
        return false;
    if (shmemi_in_device_heap(addr))
        return shmemi_net_dheap(pe).base != 0;
    return a - shmemi.heap_base < shmemi.heap_len ||
           (a - shmemi.data_base < shmemi.data_len && shmemi_net.peers[pe].data != 0);
}
