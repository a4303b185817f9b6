/* SPDX-License-Identifier: BSD-3-Clause */
/* heap.c - the memory behind the device heap: chunks made, mapped, handed to and taken from the node's PEs. */
#include "gpu.h"

#include "core/compiler.h"
#include "core/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Guards the list of chunks against the door's thread. */
static pthread_mutex_t chunks_lock = PTHREAD_MUTEX_INITIALIZER;

static struct shmemi_cu_alloc_prop own_memory(void)
{
    struct shmemi_cu_alloc_prop p = { .type = SHMEMI_CU_PINNED, .handle_types = SHMEMI_CU_HANDLE_FD,
                                      .location = { SHMEMI_CU_AT_DEVICE, shmemi_gpu.device } };
    int rdma = 0;

    /* A NIC may read it later, and on some drivers only such memory can be shared. */
    if (shmemi_cu.device_attribute(&rdma, SHMEMI_CU_ATTR_RDMA_VMM, shmemi_gpu.device) == SHMEMI_CU_OK)
        p.flags.rdma = rdma != 0;
    return p;
}

static int reserve(const struct shmemi_gpu_conf *conf)
{
    struct shmemi_gpu *g = &shmemi_gpu;
    struct shmemi_cu_alloc_prop prop = own_memory();
    size_t granularity = 0, total;
    int rc = shmemi_gpu_check(shmemi_cu.mem_granularity(&granularity, &prop, SHMEMI_CU_GRANULARITY_MINIMUM),
                              "cannot learn the granularity of device memory");

    if (rc)
        return rc;
    if (granularity > SHMEMI_GPU_GRANULE || SHMEMI_GPU_GRANULE % granularity) {
        shmemi_err("cuda", "device memory comes in units of %zu bytes: %zu expected", granularity, SHMEMI_GPU_GRANULE);
        return -EOPNOTSUPP;
    }
    g->max = shmemi_round_up(conf->max, SHMEMI_GPU_GRANULE);
    if (__builtin_mul_overflow(g->max, (size_t)g->n_local, &total) ||
        shmemi_cu.va_reserve(&g->va, total, SHMEMI_GPU_GRANULE, 0, 0) != SHMEMI_CU_OK) {
        shmemi_err("cuda", "no address space for %d device heaps of %zu bytes: set MARROW_DEVICE_HEAP lower", g->n_local,
                   g->max);
        return -ENOMEM;
    }
    for (int i = 0; i < g->n_local; i++)
        g->base[i] = g->va + (uint64_t)i * g->max;
    return 0;
}

/* One allocation for good: where chunks cannot be shared. */
static int allocate_fixed(const struct shmemi_gpu_conf *conf, struct shmemi_gpu_card *mine)
{
    struct shmemi_gpu *g = &shmemi_gpu;
    int rc = shmemi_downgrade("cuda", "device %d cannot share memory as descriptors: the device heap is one block of %zu "
                              "bytes shared by CUDA IPC, which does not grow (MARROW_DEVICE_HEAP sets its size)",
                              g->device, conf->fixed);

    if (rc)
        return rc;
    g->max = shmemi_round_up(conf->fixed, SHMEMI_GPU_GRANULE);
    rc = shmemi_gpu_check(shmemi_cu.mem_alloc(&g->va, g->max + SHMEMI_GPU_GRANULE), "cannot allocate the device heap");
    g->base[g->my_local] = shmemi_round_up(g->va, SHMEMI_GPU_GRANULE);
    mine->ipc_skip = g->base[g->my_local] - g->va;
    if (!rc)
        rc = shmemi_gpu_set((void *)(uintptr_t)g->base[g->my_local], 0, g->max);
    if (!rc && g->n_local > 1)
        rc = shmemi_gpu_check(shmemi_cu.ipc_get((struct shmemi_cu_ipc_handle *)mine->ipc, g->va), "cannot share the device heap by CUDA IPC");
    return rc;
}

int shmemi_gpu_heap_open(const struct shmemi_gpu_conf *conf, struct shmemi_gpu_card *mine)
{
    struct shmemi_gpu *g = &shmemi_gpu;
    int rc;

    g->base = calloc((size_t)g->n_local, sizeof *g->base);
    g->opened = calloc((size_t)g->n_local, sizeof *g->opened);
    if (!g->base || !g->opened) {
        free(g->base);
        free(g->opened);
        g->base = g->opened = NULL;
        return -ENOMEM;
    }
    rc = g->sharing == SHMEMI_GPU_CHUNKS ? reserve(conf) : allocate_fixed(conf, mine);
    if (rc)
        shmemi_gpu_heap_close();
    return rc;
}

static size_t chunk_bytes(void)
{
    return sizeof(struct shmemi_gpu_chunk) + (size_t)shmemi_gpu.n_local * sizeof(bool);
}

/* Maps `handle` at `off` of PE `local`'s heap, for this device. */
static int map_chunk(int local, size_t off, size_t len, uint64_t handle)
{
    const struct shmemi_cu_access desc = { { SHMEMI_CU_AT_DEVICE, shmemi_gpu.device }, SHMEMI_CU_READ_WRITE };
    uint64_t at = shmemi_gpu.base[local] + off;
    int rc = shmemi_cu.mem_map(at, len, 0, handle, 0);

    if (rc != SHMEMI_CU_OK)
        return rc;
    rc = shmemi_cu.mem_access(at, len, &desc, 1);
    if (rc != SHMEMI_CU_OK)
        shmemi_cu.mem_unmap(at, len);
    return rc;
}

static int create_chunk(size_t off, size_t len, bool zero)
{
    struct shmemi_gpu *g = &shmemi_gpu;
    struct shmemi_cu_alloc_prop prop = own_memory();
    struct shmemi_gpu_chunk *c = calloc(1, chunk_bytes());
    int rc;

    if (!c)
        return -ENOMEM;
    c->off = off;
    c->len = len;
    rc = shmemi_cu.mem_create(&c->handle, len, &prop, 0);
    if (rc == SHMEMI_CU_OK) {
        rc = map_chunk(g->my_local, off, len, c->handle);
        if (rc != SHMEMI_CU_OK)
            shmemi_cu.mem_release(c->handle);
    }
    if (rc != SHMEMI_CU_OK) {
        free(c);
        if (rc == SHMEMI_CU_OUT_OF_MEMORY)
            return -ENOMEM; /* the caller says it with the sizes that matter */
        return shmemi_gpu_check(rc, "cannot make device memory");
    }
    c->mapped[g->my_local] = true;
    pthread_mutex_lock(&chunks_lock);
    c->next = g->chunks;
    g->chunks = c;
    pthread_mutex_unlock(&chunks_lock);
    return zero ? shmemi_gpu_set((void *)(uintptr_t)(g->base[g->my_local] + off), 0, len) : 0;
}

static struct shmemi_gpu_chunk *chunk_at(size_t off)
{
    struct shmemi_gpu_chunk *c = shmemi_gpu.chunks;

    while (c && off - c->off >= c->len)
        c = c->next;
    return c;
}

int shmemi_gpu_back(size_t off, size_t len, bool zero)
{
    size_t end = shmemi_round_up(off + len, SHMEMI_GPU_GRANULE), from;
    int rc = 0;

    if (shmemi_gpu.sharing == SHMEMI_GPU_IPC)
        return end <= shmemi_gpu.max ? 0 : -ENOMEM;
    if (!shmemi_gpu_enter())
        return -EIO;
    for (off &= ~(SHMEMI_GPU_GRANULE - 1); !rc && off < end; off += SHMEMI_GPU_GRANULE) {
        if (chunk_at(off))
            continue;
        for (from = off; off + SHMEMI_GPU_GRANULE < end && !chunk_at(off + SHMEMI_GPU_GRANULE);)
            off += SHMEMI_GPU_GRANULE;
        rc = create_chunk(from, off + SHMEMI_GPU_GRANULE - from, zero);
    }
    shmemi_gpu_leave();
    return rc;
}

int shmemi_gpu_export(size_t off)
{
    struct shmemi_gpu_chunk *c;
    int fd = -1;

    pthread_mutex_lock(&chunks_lock);
    for (c = shmemi_gpu.chunks; c && c->off != off;)
        c = c->next;
    if (c && shmemi_gpu_enter()) {
        if (shmemi_cu.mem_export(&fd, c->handle, SHMEMI_CU_HANDLE_FD, 0) != SHMEMI_CU_OK)
            fd = -1;
        shmemi_gpu_leave();
    }
    pthread_mutex_unlock(&chunks_lock);
    return fd;
}

static int import_chunk(int local, const struct shmemi_gpu_card *card, struct shmemi_gpu_chunk *c)
{
    int fd = shmemi_gpu_door_fetch(local, card, c->off);
    uint64_t handle = 0;
    int rc;

    if (fd < 0)
        return fd == -ENOENT ? 0 : fd; /* that PE has no team there */
    rc = shmemi_cu.mem_import(&handle, (void *)(uintptr_t)fd, SHMEMI_CU_HANDLE_FD);
    close(fd);
    if (rc == SHMEMI_CU_OK) {
        rc = map_chunk(local, c->off, c->len, handle);
        shmemi_cu.mem_release(handle); /* the mapping keeps it */
    }
    c->mapped[local] = rc == SHMEMI_CU_OK;
    return shmemi_gpu_check(rc, "cannot map a peer's device memory");
}

static int import_ipc(int local, const struct shmemi_gpu_card *card)
{
    struct shmemi_cu_ipc_handle handle;
    uint64_t at;
    int rc;

    if (shmemi_gpu.base[local])
        return 0;
    memcpy(&handle, card->ipc, sizeof handle);
    rc = shmemi_gpu_check(shmemi_cu.ipc_open(&at, handle, SHMEMI_CU_IPC_LAZY_PEER),
                          "cannot open a peer's device heap by CUDA IPC");
    if (rc)
        return rc;
    shmemi_gpu.opened[local] = at;
    shmemi_gpu.base[local] = at + card->ipc_skip;
    return 0;
}

int shmemi_gpu_import(int local, const struct shmemi_gpu_card *card, size_t off, size_t len)
{
    int rc = 0;

    if (!shmemi_gpu_enter())
        return -EIO;
    if (shmemi_gpu.sharing == SHMEMI_GPU_IPC)
        rc = import_ipc(local, card);
    for (struct shmemi_gpu_chunk *c = shmemi_gpu.chunks; c && !rc; c = c->next)
        if (!c->mapped[local] && c->off < off + len && off < c->off + c->len)
            rc = import_chunk(local, card, c);
    shmemi_gpu_leave();
    return rc;
}

static void drop_chunk(struct shmemi_gpu_chunk *c)
{
    for (int i = 0; i < shmemi_gpu.n_local; i++)
        if (c->mapped[i])
            shmemi_cu.mem_unmap(shmemi_gpu.base[i] + c->off, c->len);
    shmemi_cu.mem_release(c->handle);
    free(c);
}

size_t shmemi_gpu_unback(size_t off)
{
    struct shmemi_gpu_chunk **at = &shmemi_gpu.chunks, *c;
    size_t end = 0;

    if (!shmemi_gpu_enter())
        return shmemi_gpu.max;
    pthread_mutex_lock(&chunks_lock);
    while ((c = *at)) {
        if (c->off < off) {
            end = c->off + c->len > end ? c->off + c->len : end;
            at = &c->next;
            continue;
        }
        *at = c->next;
        drop_chunk(c);
    }
    pthread_mutex_unlock(&chunks_lock);
    shmemi_gpu_leave();
    return end;
}

void shmemi_gpu_heap_close(void)
{
    struct shmemi_gpu *g = &shmemi_gpu;

    if (!g->base)
        return;
    if (g->sharing == SHMEMI_GPU_CHUNKS) {
        shmemi_gpu_unback(0);
        if (g->va)
            shmemi_cu.va_free(g->va, g->max * (size_t)g->n_local);
    } else {
        for (int i = 0; i < g->n_local; i++)
            if (g->opened[i])
                shmemi_cu.ipc_close(g->opened[i]);
        if (g->va)
            shmemi_cu.mem_free(g->va);
    }
    g->va = 0;
    free(g->base);
    free(g->opened);
    g->base = g->opened = NULL;
}
