/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nicmem.c - memory that a NIC and kernels share: queues in GPU memory or in pinned host memory, and the NIC's doorbell page
 * as kernels see it.
 */
#include "gpu.h"

#include "core/compiler.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define UNIT ((size_t)64 << 10) /* of GPU memory as NICs map it */

/* Allocations: what the driver gave, and the aligned address in it. */
struct piece {
    struct piece *next;
    uint64_t raw, at;
};

static struct piece *pieces;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int status_of(int result)
{
    return result == SHMEMI_CU_OK ? 0 : -EIO;
}

static void *near_get(size_t bytes)
{
    struct piece *p = calloc(1, sizeof *p);
    int rc = SHMEMI_CU_OUT_OF_MEMORY;

    if (p && shmemi_gpu_enter()) {
        rc = shmemi_cu.mem_alloc(&p->raw, shmemi_round_up(bytes, UNIT) + UNIT);
        shmemi_gpu_leave();
    }
    if (rc != SHMEMI_CU_OK) {
        free(p);
        return NULL;
    }
    p->at = shmemi_round_up(p->raw, UNIT);
    pthread_mutex_lock(&lock);
    p->next = pieces;
    pieces = p;
    pthread_mutex_unlock(&lock);
    return (void *)(uintptr_t)p->at;
}

static void near_put(void *addr)
{
    struct piece **at = &pieces, *p;

    pthread_mutex_lock(&lock);
    while ((p = *at) && p->at != (uintptr_t)addr)
        at = &p->next;
    if (p)
        *at = p->next;
    pthread_mutex_unlock(&lock);
    if (p && shmemi_gpu_enter()) {
        shmemi_cu.mem_free(p->raw);
        shmemi_gpu_leave();
    }
    free(p);
}

static int near_set(void *p, int value, size_t bytes)
{
    int rc;

    if (!shmemi_gpu_enter())
        return -EIO;
    rc = shmemi_cu.set8_async((uintptr_t)p, (unsigned char)value, bytes, shmemi_gpu.stream);
    if (rc == SHMEMI_CU_OK)
        rc = shmemi_cu.stream_sync(shmemi_gpu.stream);
    shmemi_gpu_leave();
    return status_of(rc);
}

static int near_copy(void *to, const void *from, size_t bytes)
{
    int rc;

    if (!shmemi_gpu_enter())
        return -EIO;
    rc = shmemi_cu.copy_async((uintptr_t)to, (uintptr_t)from, bytes, shmemi_gpu.stream);
    if (rc == SHMEMI_CU_OK)
        rc = shmemi_cu.stream_sync(shmemi_gpu.stream);
    shmemi_gpu_leave();
    return status_of(rc);
}

int shmemi_gpu_range_export(uint64_t at, size_t bytes)
{
    int fd = -1, rc;

    if (!shmemi_gpu.dma_buf)
        return -EOPNOTSUPP;
    if (!shmemi_gpu_enter())
        return -EIO;
    rc = shmemi_cu.range_handle(&fd, at, bytes, SHMEMI_CU_HANDLE_DMA_BUF, 0);
    shmemi_gpu_leave();
    return rc == SHMEMI_CU_OK && fd >= 0 ? fd : -EIO;
}

static int near_export(const void *p, size_t bytes, uint64_t *offset_out)
{
    *offset_out = 0;
    return shmemi_gpu_range_export((uintptr_t)p, shmemi_round_up(bytes, UNIT));
}

const struct shmemi_nic_memory shmemi_gpu_near_memory = {
    .name = "GPU memory", .near = true, .get = near_get, .put = near_put, .set = near_set, .copy = near_copy,
    .export = near_export
};

static void *host_get(size_t bytes)
{
    void *p = NULL;
    int rc = SHMEMI_CU_OUT_OF_MEMORY;

    if (shmemi_gpu_enter()) {
        rc = shmemi_cu.host_alloc(&p, shmemi_round_up(bytes, UNIT), SHMEMI_CU_REGISTER_PORTABLE | SHMEMI_CU_REGISTER_MAPPED);
        shmemi_gpu_leave();
    }
    return rc == SHMEMI_CU_OK ? p : NULL;
}

static void host_put(void *p)
{
    if (shmemi_gpu_enter()) {
        shmemi_cu.host_free(p);
        shmemi_gpu_leave();
    }
}

static int host_set(void *p, int value, size_t bytes)
{
    memset(p, value, bytes);
    return 0;
}

static int host_copy(void *to, const void *from, size_t bytes)
{
    memcpy(to, from, bytes);
    return 0;
}

const struct shmemi_nic_memory shmemi_gpu_host_memory = {
    .name = "host memory", .get = host_get, .put = host_put, .set = host_set, .copy = host_copy
};

int shmemi_gpu_map_registers(void *page, size_t bytes, uint64_t *at_out, const char **why_out)
{
    static const unsigned plain = SHMEMI_CU_REGISTER_PORTABLE | SHMEMI_CU_REGISTER_MAPPED;
    int rc;

    *why_out = "no CUDA context";
    if (!shmemi_gpu_enter())
        return -EIO;
    *why_out = "as I/O memory";
    rc = shmemi_cu.host_register(page, bytes, plain | SHMEMI_CU_REGISTER_IO);
    if (rc != SHMEMI_CU_OK) {
        *why_out = "as plain memory";
        rc = shmemi_cu.host_register(page, bytes, plain);
    }
    if (rc == SHMEMI_CU_OK) {
        rc = shmemi_cu.host_device_pointer(at_out, page, 0);
        if (rc != SHMEMI_CU_OK)
            shmemi_cu.host_unregister(page);
    }
    if (rc != SHMEMI_CU_OK)
        *why_out = shmemi_cu_error(rc);
    shmemi_gpu_leave();
    return status_of(rc);
}

void shmemi_gpu_unmap_registers(void *page)
{
    if (shmemi_gpu_enter()) {
        shmemi_cu.host_unregister(page);
        shmemi_gpu_leave();
    }
}

void shmemi_gpu_beside_captures(void)
{
    int mode = SHMEMI_CU_CAPTURE_RELAXED;

    if (shmemi_gpu_enter()) {
        shmemi_cu.capture_mode(&mode);
        shmemi_gpu_leave();
    }
}
