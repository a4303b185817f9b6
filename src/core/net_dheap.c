/* SPDX-License-Identifier: BSD-3-Clause */
/* net_dheap.c - registers the device heap with the NIC, and keeps where the peers' lie. */
#include "net_dheap.h"

#include "env.h"
#include "log.h"
#include "net_queue.h"
#include "transports/cuda/gpu.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct kept {
    struct kept *next;
    struct shmemi_nic_key key;
};

static struct {
    struct kept *keys;              /* newest first */
    struct shmemi_net_dheap *peers; /* by world PE; NULL before the first meeting */
    uint32_t lkey[SHMEMI_NIC_RAILS]; /* what threads that post read: as of the last meeting */
    size_t len, wanted;
    bool said;
} it;

int shmemi_net_register_near(uint64_t at, size_t bytes, struct shmemi_nic_key *key_out)
{
    int fd = shmemi_gpu_range_export(at, shmemi_round_up(bytes, (size_t)64 << 10));
    int rc = -EOPNOTSUPP;

    if (fd >= 0) {
        rc = shmemi_net.module->mem_register_dmabuf(shmemi_net.nic, fd, 0, at, bytes, key_out);
        close(fd);
    }
    if (rc)
        rc = shmemi_net.module->mem_register_dmabuf(shmemi_net.nic, -1, 0, at, bytes, key_out);
    return rc;
}

int shmemi_net_dheap_register(size_t len)
{
    struct kept *k;
    int rc;

    it.wanted = len; /* the others' may be registered where this one is not */
    if (!shmemi_net.up || (it.said && !it.keys))
        return 0;
    k = calloc(1, sizeof *k);
    if (!k)
        return -ENOMEM;
    rc = shmemi_net_register_near(shmemi.dheap_base, len, &k->key);
    if (!rc) {
        k->next = it.keys;
        it.keys = k;
        return 0;
    }
    free(k);
    if (it.keys) {
        shmemi_err("net", "%s port %d does not register %zu bytes of the device heap", shmemi_net.nic->device,
                   shmemi_net.nic->port, len);
        return -EIO;
    }
    it.said = true;
    return shmemi_downgrade("net", "the device heap (%zu bytes) cannot be registered with %s port %d, neither as a dma-buf nor "
                            "by its address (is nvidia-peermem loaded?): PEs of other nodes cannot reach it", len,
                            shmemi_net.nic->device, shmemi_net.nic->port);
}

void shmemi_net_dheap_withdraw(void)
{
    struct kept *k = it.keys;

    if (!k)
        return;
    it.keys = k->next;
    shmemi_net.module->mem_deregister(shmemi_net.nic, &k->key);
    free(k);
}

/* In place, since other threads read: a base stays what it is. */
static void take_in(const struct shmemi_net_dheap *all)
{
    for (int pe = 0; pe < shmemi.n_pes; pe++) {
        it.peers[pe].base = all[pe].base;
        SHMEMI_ST_RLX(&it.peers[pe].rkey, all[pe].rkey);
    }
    for (int i = 0; i < SHMEMI_NIC_RAILS; i++)
        SHMEMI_ST_RLX(&it.lkey[i], it.keys ? it.keys->key.lkey[i] : 0);
    it.len = it.wanted;
    shmemi_net_queues_dheap();
}

bool shmemi_net_dheap_meet(bool good, int *bad_pe_out, const char *call)
{
    struct shmemi_net_dheap mine = { it.keys ? shmemi.dheap_base : 0, it.keys ? it.keys->key.rkey : 0, good };
    int timeout_s = (int)((shmemi_env.init_timeout + 999999999u) / 1000000000u);
    struct shmemi_net_dheap *all = calloc((size_t)shmemi.n_pes, sizeof *all);
    int rc;

    if (!it.peers)
        it.peers = calloc((size_t)shmemi.n_pes, sizeof *it.peers);
    rc = all && it.peers ? shmemi.boot.ops->allgather(&shmemi.boot, &mine, sizeof mine, all, timeout_s) : -ENOMEM;
    if (rc) {
        errno = -rc;
        shmemi_fatal(call, "PEs cannot tell each other about their device memory: %m");
    }
    *bad_pe_out = -1;
    for (int pe = 0; pe < shmemi.n_pes && *bad_pe_out < 0; pe++)
        if (!all[pe].good)
            *bad_pe_out = pe;
    if (*bad_pe_out < 0)
        take_in(all);
    free(all);
    return *bad_pe_out < 0;
}

void shmemi_net_dheap_down(void)
{
    while (it.keys)
        shmemi_net_dheap_withdraw();
    free(it.peers);
    it.peers = NULL;
    memset(it.lkey, 0, sizeof it.lkey);
    it.len = it.wanted = 0;
    it.said = false;
}

struct shmemi_net_dheap shmemi_net_dheap(int pe)
{
    return it.peers ? it.peers[pe] : (struct shmemi_net_dheap){ 0, 0, 0 };
}

uint32_t shmemi_net_dheap_lkey(int rail)
{
    return SHMEMI_LD_RLX(&it.lkey[rail]);
}

size_t shmemi_net_dheap_len(void)
{
    return it.len;
}
