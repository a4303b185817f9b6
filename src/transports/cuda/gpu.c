/* SPDX-License-Identifier: BSD-3-Clause */
/* gpu.c - chooses the GPU and opens its context. */
#include "gpu.h"
#include "kernel.h"

#include "core/compiler.h"
#include "core/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct shmemi_gpu shmemi_gpu;

int shmemi_gpu_check(int result, const char *what)
{
    if (shmemi_likely(result == SHMEMI_CU_OK))
        return 0;
    shmemi_err("cuda", "%s: %s", what, shmemi_cu_error(result));
    if (result == SHMEMI_CU_OUT_OF_MEMORY)
        return -ENOMEM;
    return result == SHMEMI_CU_NOT_SUPPORTED ? -EOPNOTSUPP : -EIO;
}

bool shmemi_gpu_enter(void)
{
    return shmemi_cu.ctx_push(shmemi_gpu.ctx) == SHMEMI_CU_OK;
}

void shmemi_gpu_leave(void)
{
    void *ctx;

    shmemi_cu.ctx_pop(&ctx);
}

bool shmemi_gpu_has_context(void)
{
    void *ctx = NULL;

    if (!shmemi_cu_present() || shmemi_cu_load(NULL, 0))
        return false;
    return shmemi_cu.ctx_current(&ctx) == SHMEMI_CU_OK && ctx;
}

bool shmemi_gpu_is_device_pointer(const void *p)
{
    unsigned type = 0;

    return shmemi_cu.pointer_attribute(&type, SHMEMI_CU_POINTER_TYPE, (uintptr_t)p) == SHMEMI_CU_OK &&
           type == SHMEMI_CU_MEMORY_DEVICE;
}

/* The context that the program has made current, else the primary one of the device that is this PE's turn. */
static int choose_context(int my_local, char *why, size_t len)
{
    struct shmemi_gpu *g = &shmemi_gpu;
    int rc;

    shmemi_cu.device_count(&g->n_devices);
    if (shmemi_cu.ctx_current(&g->ctx) == SHMEMI_CU_OK && g->ctx) {
        rc = shmemi_cu.ctx_device(&g->device);
    } else {
        rc = shmemi_cu.device_get(&g->device, my_local % g->n_devices);
        if (rc == SHMEMI_CU_OK)
            rc = shmemi_cu.primary_retain(&g->ctx, g->device);
        g->retained = rc == SHMEMI_CU_OK;
        /* It stays current: the CUDA runtime of the program then takes this device too. */
        if (rc == SHMEMI_CU_OK)
            rc = shmemi_cu.ctx_set(g->ctx);
    }
    if (rc == SHMEMI_CU_OK)
        return 0;
    snprintf(why, len, "no context on a GPU: %s", shmemi_cu_error(rc));
    if (g->retained)
        shmemi_cu.primary_release(g->device);
    g->retained = false;
    g->ctx = NULL;
    return -ENODEV;
}

static int attribute(int which)
{
    int value = 0;

    return shmemi_cu.device_attribute(&value, which, shmemi_gpu.device) == SHMEMI_CU_OK ? value : 0;
}

static void read_device(struct shmemi_gpu_card *mine)
{
    struct shmemi_gpu *g = &shmemi_gpu;

    g->sms = attribute(SHMEMI_CU_ATTR_SMS);
    g->cc = attribute(SHMEMI_CU_ATTR_MAJOR) * 10 + attribute(SHMEMI_CU_ATTR_MINOR);
    g->registers = attribute(SHMEMI_CU_ATTR_HOST_REGISTER) && attribute(SHMEMI_CU_ATTR_HOST_POINTER_SAME);
    g->memops = attribute(SHMEMI_CU_ATTR_MEMOPS_64);
    g->dma_buf = attribute(SHMEMI_CU_ATTR_DMA_BUF);
    g->sharing = attribute(SHMEMI_CU_ATTR_VMM) && attribute(SHMEMI_CU_ATTR_POSIX_FD) ? SHMEMI_GPU_CHUNKS : SHMEMI_GPU_IPC;
    if (shmemi_cu.device_uuid((struct shmemi_cu_uuid *)mine->uuid, g->device) != SHMEMI_CU_OK)
        memset(mine->uuid, 0, sizeof mine->uuid);
}

/* The device with that uuid, or -1 where it is not visible to this process. */
static int device_of(const char uuid[16])
{
    struct shmemi_cu_uuid seen;
    int device;

    for (int i = 0; i < shmemi_gpu.n_devices; i++)
        if (shmemi_cu.device_get(&device, i) == SHMEMI_CU_OK && shmemi_cu.device_uuid(&seen, device) == SHMEMI_CU_OK &&
            !memcmp(seen.bytes, uuid, sizeof seen.bytes))
            return device;
    return -1;
}

bool shmemi_gpu_reaches(const char uuid[16], bool *atomics_out)
{
    int device = device_of(uuid), can = 0, atomics = 0;

    *atomics_out = true;
    if (device < 0 || device == shmemi_gpu.device)
        return true; /* one that is not visible is tried */
    shmemi_cu.can_access_peer(&can, shmemi_gpu.device, device);
    shmemi_cu.p2p_attribute(&atomics, SHMEMI_CU_P2P_ATOMICS, shmemi_gpu.device, device);
    *atomics_out = atomics != 0;
    return can != 0;
}

static void close_context(void)
{
    struct shmemi_gpu *g = &shmemi_gpu;

    if (g->stream && shmemi_gpu_enter()) {
        shmemi_cu.stream_destroy(g->stream);
        shmemi_gpu_leave();
    }
    if (g->retained)
        shmemi_cu.primary_release(g->device);
    memset(g, 0, sizeof *g);
}

int shmemi_gpu_open(const struct shmemi_gpu_conf *conf, struct shmemi_gpu_card *mine, char *why, size_t len)
{
    struct shmemi_gpu *g = &shmemi_gpu;
    int rc = shmemi_cu_load(why, len);

    if (rc)
        return rc;
    g->my_local = conf->my_local;
    g->n_local = conf->n_local;
    rc = choose_context(conf->my_local, why, len);
    if (rc)
        return rc;
    read_device(mine);
    snprintf(why, len, "device %d cannot be set up", g->device);
    if (!shmemi_gpu_enter()) {
        close_context();
        return -ENODEV;
    }
    rc = shmemi_gpu_check(shmemi_cu.stream_create(&g->stream, SHMEMI_CU_STREAM_NON_BLOCKING), "cannot make a stream");
    if (!rc)
        rc = shmemi_gpu_copy_open();
    if (!rc)
        rc = shmemi_gpu_heap_open(conf, mine);
    if (rc)
        shmemi_gpu_copy_close();
    shmemi_gpu_leave();
    if (rc) {
        close_context();
        return rc;
    }
    mine->shares = g->sharing;
    g->up = true;
    return 0;
}

void shmemi_gpu_close(void)
{
    if (!shmemi_gpu.up)
        return;
    shmemi_gpu.up = false;
    if (shmemi_gpu_enter()) {
        shmemi_kernels_unload();
        shmemi_gpu_copy_close();
        shmemi_gpu_unregister_all();
        shmemi_gpu_heap_close();
        shmemi_gpu_leave();
    }
    close_context();
}
