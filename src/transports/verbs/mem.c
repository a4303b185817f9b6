/* SPDX-License-Identifier: BSD-3-Clause */
/* mem.c - registration of memory with the NIC, and what a refusal means. */
#include "verbs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

/*
 * No IBV_ACCESS_RELAXED_ORDERING: with it the NIC may make a signal visible before the data that was written ahead of
 * it on the same queue.
 */
enum {
    ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC
};

int shmemi_verbs_status(int ret)
{
    if (ret == 0)
        return 0;
    if (ret > 0)
        return -ret;
    return errno ? -errno : -EIO;
}

const char *shmemi_verbs_memlock_hint(int status, char *buf, size_t len)
{
    struct rlimit limit;

    buf[0] = '\0';
    if (status != -ENOMEM && status != -EAGAIN && status != -EPERM)
        return buf;
    if (getrlimit(RLIMIT_MEMLOCK, &limit))
        return buf;
    if (limit.rlim_cur == RLIM_INFINITY)
        snprintf(buf, len, "; the limit of locked memory (ulimit -l) is unlimited, so the node itself has too little memory");
    else
        snprintf(buf, len,
                 "; the limit of locked memory (ulimit -l) is %llu KiB here: raise it, for ranks of a launcher on every "
                 "node (limits.conf, or LimitMEMLOCK of the launcher's service), or lower SHMEM_SYMMETRIC_SIZE",
                 (unsigned long long)limit.rlim_cur / 1024);
    return buf;
}

/* What is to be registered. */
struct range {
    void *addr;
    uint64_t va, offset;
    size_t len;
    int fd;     /* of a dma-buf, or -1 */
    int level;  /* at which a refusal is said: of device memory there are two ways to try */
    const char *what;
};

static struct ibv_mr *registered(const struct shmemi_verbs_nic *nic, const struct range *r)
{
    errno = 0;
    if (r->fd >= 0)
        return ibv_reg_dmabuf_mr(nic->pd, r->offset, r->len, r->va, r->fd, ACCESS);
    return ibv_reg_mr(nic->pd, r->addr, r->len, ACCESS);
}

static int with_rail(struct shmemi_verbs_nic *nic, const struct range *r, struct shmemi_nic_key *key)
{
    struct ibv_mr *mr = registered(nic, r);
    int rail = nic->nic.rail, status;
    char hint[320];

    if (mr) {
        key->mr[rail] = mr;
        key->lkey[rail] = mr->lkey;
        if (rail == 0)
            key->rkey = mr->rkey;
        shmemi_verbs_log(nic->config, SHMEMI_VERBS_DEBUG, SHMEMI_VERBS_AT " registered %zu bytes of %s at 0x%llx, key 0x%x",
                         SHMEMI_VERBS_AT_ARGS(nic), r->len, r->what, (unsigned long long)r->va, mr->rkey);
        return 0;
    }
    status = errno ? -errno : -EIO;
    shmemi_verbs_log(nic->config, r->level, SHMEMI_VERBS_AT " refuses to register %zu bytes of %s at 0x%llx: %s%s",
                     SHMEMI_VERBS_AT_ARGS(nic), r->len, r->what, (unsigned long long)r->va, strerror(-status),
                     shmemi_verbs_memlock_hint(status, hint, sizeof hint));
    return status;
}

/* The first registration is the heap's: a rail that has no room for it cannot be one, and nobody knows of it yet. */
static bool may_leave_out(const struct shmemi_verbs_nic *home, int rail, const struct range *r)
{
    return rail > 0 && !home->peers && !home->config->strict && r->level == SHMEMI_VERBS_ERR;
}

static int with_all(struct shmemi_nic *home, const struct range *r, struct shmemi_nic_key *key_out)
{
    struct shmemi_nic_key key = { .rkey = 0 };
    int status = 0;

    for (int i = 0; i < home->n_rails && !status; i++) {
        status = with_rail(shmemi_verbs_of(home->rails[i]), r, &key);
        if (status && may_leave_out(shmemi_verbs_of(home), i, r)) {
            shmemi_verbs_rails_leave_out(home, i);
            status = 0;
        }
    }
    if (status)
        shmemi_verbs_mem_deregister(home, &key);
    else
        *key_out = key;
    return status;
}

int shmemi_verbs_mem_register(struct shmemi_nic *base, void *addr, size_t len, struct shmemi_nic_key *key_out)
{
    const struct range r = { .addr = addr, .va = (uintptr_t)addr, .len = len, .fd = -1, .level = SHMEMI_VERBS_ERR,
                             .what = "memory" };

    return with_all(base, &r, key_out);
}

int shmemi_verbs_mem_register_dmabuf(struct shmemi_nic *base, int fd, uint64_t offset, uint64_t va, size_t len,
                                     struct shmemi_nic_key *key_out)
{
    const struct range r = { .addr = (void *)(uintptr_t)va, .va = va, .offset = offset, .len = len, .fd = fd,
                             .level = SHMEMI_VERBS_DEBUG,
                             .what = fd >= 0 ? "device memory (dma-buf)" : "device memory (peer memory module)" };

    return with_all(base, &r, key_out);
}

void shmemi_verbs_mem_deregister(struct shmemi_nic *base, struct shmemi_nic_key *key)
{
    if (shmemi_verbs_forked())
        return;
    for (int i = 0; i < base->n_rails; i++) {
        struct shmemi_verbs_nic *nic = shmemi_verbs_of(base->rails[i]);
        int status = key->mr[i] ? shmemi_verbs_status(ibv_dereg_mr(key->mr[i])) : 0;

        if (status)
            shmemi_verbs_log(nic->config, SHMEMI_VERBS_WARN, SHMEMI_VERBS_AT ": cannot deregister key 0x%x: %s",
                             SHMEMI_VERBS_AT_ARGS(nic), key->lkey[i], strerror(-status));
    }
    *key = (struct shmemi_nic_key){ .rkey = 0 };
}
