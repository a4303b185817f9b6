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

/* A refusal is said at `level`: of device memory there are two ways to try. */
static int keep(struct shmemi_verbs_nic *nic, struct ibv_mr *mr, uint64_t addr, size_t len, const char *what, int level,
                struct shmemi_nic_key *key_out)
{
    char hint[320];
    int status;

    if (mr) {
        *key_out = (struct shmemi_nic_key){ mr->lkey, mr->rkey, mr };
        shmemi_verbs_log(nic->config, SHMEMI_VERBS_DEBUG, "registered %zu bytes of %s at 0x%llx, key 0x%x", len, what,
                         (unsigned long long)addr, mr->rkey);
        return 0;
    }
    status = errno ? -errno : -EIO;
    shmemi_verbs_log(nic->config, level, SHMEMI_VERBS_AT " refuses to register %zu bytes of %s at 0x%llx: %s%s",
                     SHMEMI_VERBS_AT_ARGS(nic), len, what, (unsigned long long)addr, strerror(-status),
                     shmemi_verbs_memlock_hint(status, hint, sizeof hint));
    return status;
}

int shmemi_verbs_mem_register(struct shmemi_nic *base, void *addr, size_t len, struct shmemi_nic_key *key_out)
{
    struct shmemi_verbs_nic *nic = shmemi_verbs_of(base);

    errno = 0;
    return keep(nic, ibv_reg_mr(nic->pd, addr, len, ACCESS), (uintptr_t)addr, len, "memory", SHMEMI_VERBS_ERR, key_out);
}

int shmemi_verbs_mem_register_dmabuf(struct shmemi_nic *base, int fd, uint64_t offset, uint64_t va, size_t len,
                                     struct shmemi_nic_key *key_out)
{
    struct shmemi_verbs_nic *nic = shmemi_verbs_of(base);
    struct ibv_mr *mr;

    errno = 0;
    if (fd >= 0)
        mr = ibv_reg_dmabuf_mr(nic->pd, offset, len, va, fd, ACCESS);
    else
        mr = ibv_reg_mr(nic->pd, (void *)(uintptr_t)va, len, ACCESS);
    return keep(nic, mr, va, len, fd >= 0 ? "device memory (dma-buf)" : "device memory (peer memory module)",
                SHMEMI_VERBS_DEBUG, key_out);
}

void shmemi_verbs_mem_deregister(struct shmemi_nic *base, struct shmemi_nic_key *key)
{
    struct shmemi_verbs_nic *nic = shmemi_verbs_of(base);
    int status;

    if (!key->mr || shmemi_verbs_forked())
        return;
    status = shmemi_verbs_status(ibv_dereg_mr(key->mr));
    if (status)
        shmemi_verbs_log(nic->config, SHMEMI_VERBS_WARN, SHMEMI_VERBS_AT ": cannot deregister key 0x%x: %s",
                         SHMEMI_VERBS_AT_ARGS(nic), key->rkey, strerror(-status));
    *key = (struct shmemi_nic_key){ 0 };
}
