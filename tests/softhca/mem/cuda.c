/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * GPU memory: found through the driver library, if the process has loaded it, and copied by the copy engine on a stream
 * of our own, which runs beside whatever kernels spin. Registered or managed host memory is left to host.c.
 */
#define _GNU_SOURCE
#include "mem/mem.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

/* The few names of the driver interface that are needed; values as in its public header. */
typedef int cu_result;
enum { CU_SUCCESS = 0, CU_MEMORYTYPE_DEVICE = 2, CU_STREAM_NON_BLOCKING = 1 };
enum { CU_ATTR_CONTEXT = 1, CU_ATTR_MEMORY_TYPE = 2, CU_ATTR_IS_MANAGED = 8, CU_ATTR_DEVICE_ORDINAL = 9 };
enum { CU_CAPTURE_RELAXED = 2 };
enum { STAGING_BYTES = 64 * 1024, MAX_DEVICES = 16 };

static struct {
    bool looked;
    cu_result (*pointer_attribute)(void *value, int attribute, uint64_t ptr);
    cu_result (*primary_retain)(void **context, int device);
    cu_result (*push)(void *context);
    cu_result (*pop)(void **context);
    cu_result (*stream_create)(void **stream, unsigned flags);
    cu_result (*stream_sync)(void *stream);
    cu_result (*host_alloc)(void **ptr, size_t bytes);
    cu_result (*to_host)(void *dst, uint64_t src, size_t len, void *stream);
    cu_result (*to_device)(uint64_t dst, const void *src, size_t len, void *stream);
    cu_result (*capture_mode)(int *mode);
} cu;

/* One a device, made at the first registration there and kept until the process ends. */
struct gpu {
    void *context, *stream;
    uint8_t *staging;            /* page-locked: copies from ordinary memory would wait for other streams */
};
static struct gpu gpus[MAX_DEVICES];

static bool load(void)
{
    static const struct {
        const char *name;
        void *slot;
    } symbols[] = {
        { "cuPointerGetAttribute", &cu.pointer_attribute }, { "cuDevicePrimaryCtxRetain", &cu.primary_retain },
        { "cuCtxPushCurrent_v2", &cu.push },                { "cuCtxPopCurrent_v2", &cu.pop },
        { "cuStreamCreate", &cu.stream_create },            { "cuStreamSynchronize", &cu.stream_sync },
        { "cuMemAllocHost_v2", &cu.host_alloc },            { "cuMemcpyDtoHAsync_v2", &cu.to_host },
        { "cuMemcpyHtoDAsync_v2", &cu.to_device },         { "cuThreadExchangeStreamCaptureMode", &cu.capture_mode },
    };
    void *lib;

    if (cu.looked)
        return cu.capture_mode != NULL;
    lib = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (!lib)
        return false; /* perhaps later */
    cu.looked = true;
    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
        void *address = dlsym(lib, symbols[i].name);

        if (!address) {
            cu.capture_mode = NULL;
            return false;
        }
        memcpy(symbols[i].slot, &address, sizeof(address));
    }
    return true;
}

/*
 * What is done from here to leave() is on a stream of our own and belongs to no capture: without the word the driver refuses it,
 * or ends the capture, while any thread of the program captures a stream.  *mode: the thread's own, for leave().
 */
static bool enter(struct gpu *g, int *mode)
{
    *mode = CU_CAPTURE_RELAXED;
    if (cu.capture_mode(mode) != CU_SUCCESS)
        return false;
    if (cu.push(g->context) == CU_SUCCESS)
        return true;
    cu.capture_mode(mode);
    return false;
}

static void leave(int *mode)
{
    void *old;

    cu.pop(&old);
    cu.capture_mode(mode);
}

static int gpu_read(struct hca_mem *mem, uint64_t off, void *dst, size_t len)
{
    struct gpu *g = mem->priv;
    uint8_t *to = dst;
    cu_result r = CU_SUCCESS;
    int mode;

    if (!enter(g, &mode))
        return -EIO;
    for (size_t n; len && r == CU_SUCCESS; to += n, off += n, len -= n) {
        n = len < STAGING_BYTES ? len : STAGING_BYTES;
        r = cu.to_host(g->staging, mem->addr + off, n, g->stream);
        if (r == CU_SUCCESS)
            r = cu.stream_sync(g->stream);
        memcpy(to, g->staging, n);
    }
    leave(&mode);
    return r == CU_SUCCESS ? 0 : -EIO;
}

static int gpu_write(struct hca_mem *mem, uint64_t off, const void *src, size_t len)
{
    struct gpu *g = mem->priv;
    const uint8_t *from = src;
    cu_result r = CU_SUCCESS;
    int mode;

    if (!enter(g, &mode))
        return -EIO;
    for (size_t n; len && r == CU_SUCCESS; from += n, off += n, len -= n) {
        n = len < STAGING_BYTES ? len : STAGING_BYTES;
        memcpy(g->staging, from, n);
        r = cu.to_device(mem->addr + off, g->staging, n, g->stream);
        /* Waits here, so that a completion written next is behind the data. */
        if (r == CU_SUCCESS)
            r = cu.stream_sync(g->stream);
    }
    leave(&mode);
    return r == CU_SUCCESS ? 0 : -EIO;
}

static const struct hca_mem_ops gpu_ops = { .name = "cuda", .read = gpu_read, .write = gpu_write };

static int gpu_open(struct gpu *g, int device)
{
    void *staging = NULL;
    int mode;

    if (g->stream)
        return 0;
    if (cu.primary_retain(&g->context, device) != CU_SUCCESS || !enter(g, &mode))
        return -EIO;
    if (cu.host_alloc(&staging, STAGING_BYTES) != CU_SUCCESS ||
        cu.stream_create(&g->stream, CU_STREAM_NON_BLOCKING) != CU_SUCCESS)
        g->stream = NULL;
    leave(&mode);
    g->staging = staging;
    return g->stream ? 0 : -ENOMEM;
}

int mem_cuda_attach(struct hca_mem *mem, uint64_t addr, uint64_t len)
{
    unsigned type = 0, managed = 0;
    uint64_t last = len ? addr + len - 1 : addr;
    int device = -1, err;

    if (!addr || !load() || cu.pointer_attribute(&type, CU_ATTR_MEMORY_TYPE, addr) != CU_SUCCESS ||
        type != CU_MEMORYTYPE_DEVICE)
        return 0;
    if (cu.pointer_attribute(&managed, CU_ATTR_IS_MANAGED, addr) == CU_SUCCESS && managed)
        return 0;
    if (cu.pointer_attribute(&type, CU_ATTR_MEMORY_TYPE, last) != CU_SUCCESS || type != CU_MEMORYTYPE_DEVICE)
        return -EFAULT;
    if (cu.pointer_attribute(&device, CU_ATTR_DEVICE_ORDINAL, addr) != CU_SUCCESS || device < 0 ||
        device >= MAX_DEVICES)
        return -EFAULT;
    err = gpu_open(&gpus[device], device);
    if (err)
        return err;
    mem->addr = addr;
    mem->ops = &gpu_ops;
    mem->priv = &gpus[device];
    return 1;
}
