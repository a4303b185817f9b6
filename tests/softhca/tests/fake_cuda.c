/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A libcuda.so.1 for machines without a GPU: "device" addresses are reserved but not accessible, so that whoever touches
 * them directly crashes, and copies go to a shadow. Only what cuda_client.c and mem/cuda.c call.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { OK = 0, INVALID = 1, DEVICE_BYTES = 64 << 20, ALIGN = 2 << 20 };
enum { ATTR_MEMORY_TYPE = 2, ATTR_IS_MANAGED = 8, ATTR_ORDINAL = 9, TYPE_DEVICE = 2 };

static uint8_t *reserved, *shadow;
static size_t used;

#define PUBLIC __attribute__((visibility("default")))
int cuInit(unsigned flags);
int cuDeviceGet(int *device, int ordinal);
int cuDevicePrimaryCtxRetain(void **context, int device);
int cuCtxSetCurrent(void *context);
int cuCtxPushCurrent_v2(void *context);
int cuCtxPopCurrent_v2(void **context);
int cuStreamCreate(void **stream, unsigned flags);
int cuStreamSynchronize(void *stream);
int cuMemAlloc_v2(uint64_t *ptr, size_t bytes);
int cuMemAllocHost_v2(void **ptr, size_t bytes);
int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t len);
int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t len);
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t len, void *stream);
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t len, void *stream);
int cuMemHostRegister_v2(void *ptr, size_t bytes, unsigned flags);
int cuMemHostUnregister(void *ptr);
int cuPointerGetAttribute(void *value, int attribute, uint64_t ptr);
int cuThreadExchangeStreamCaptureMode(int *mode);

static uint8_t *shadow_of(uint64_t ptr, size_t len)
{
    uint64_t off = ptr - (uint64_t)(uintptr_t)reserved;

    return reserved && off < used && len <= used - off ? shadow + off : NULL;
}

PUBLIC int cuInit(unsigned flags)
{
    return flags ? INVALID : OK;
}

PUBLIC int cuDeviceGet(int *device, int ordinal)
{
    *device = ordinal;
    return ordinal ? INVALID : OK;
}

PUBLIC int cuDevicePrimaryCtxRetain(void **context, int device)
{
    *context = &used;
    return device ? INVALID : OK;
}

PUBLIC int cuCtxSetCurrent(void *context)
{
    return context == &used ? OK : INVALID;
}

PUBLIC int cuCtxPushCurrent_v2(void *context)
{
    return context == &used ? OK : INVALID;
}

PUBLIC int cuCtxPopCurrent_v2(void **context)
{
    *context = &used;
    return OK;
}

PUBLIC int cuStreamCreate(void **stream, unsigned flags)
{
    *stream = &shadow;
    return flags == 1 ? OK : INVALID;
}

PUBLIC int cuStreamSynchronize(void *stream)
{
    return stream == &shadow ? OK : INVALID;
}

PUBLIC int cuMemAlloc_v2(uint64_t *ptr, size_t bytes)
{
    if (!reserved) {
        void *p = mmap(NULL, DEVICE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

        shadow = calloc(1, DEVICE_BYTES);
        if (p == MAP_FAILED || !shadow)
            return INVALID;
        reserved = p;
    }
    bytes = (bytes + ALIGN - 1) & ~(size_t)(ALIGN - 1);
    if (bytes > DEVICE_BYTES - used)
        return INVALID;
    *ptr = (uint64_t)(uintptr_t)reserved + used;
    used += bytes;
    return OK;
}

PUBLIC int cuMemAllocHost_v2(void **ptr, size_t bytes)
{
    *ptr = malloc(bytes);
    return *ptr ? OK : INVALID;
}

PUBLIC int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t len)
{
    uint8_t *p = shadow_of(to, len);

    if (!p)
        return INVALID;
    memcpy(p, from, len);
    return OK;
}

PUBLIC int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t len)
{
    const uint8_t *p = shadow_of(from, len);

    if (!p)
        return INVALID;
    memcpy(to, p, len);
    return OK;
}

PUBLIC int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t len, void *stream)
{
    return stream == &shadow ? cuMemcpyHtoD_v2(to, from, len) : INVALID;
}

PUBLIC int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t len, void *stream)
{
    return stream == &shadow ? cuMemcpyDtoH_v2(to, from, len) : INVALID;
}

PUBLIC int cuMemHostRegister_v2(void *ptr, size_t bytes, unsigned flags)
{
    /* Pinning reads the pages: a hole is an error. */
    return mprotect(ptr, bytes, PROT_READ | PROT_WRITE) || flags & ~7u ? INVALID : OK;
}

PUBLIC int cuMemHostUnregister(void *ptr)
{
    return ptr ? OK : INVALID;
}

PUBLIC int cuPointerGetAttribute(void *value, int attribute, uint64_t ptr)
{
    unsigned result;

    if (!shadow_of(ptr, 1))
        return INVALID;
    switch (attribute) {
    case ATTR_MEMORY_TYPE: result = TYPE_DEVICE; break;
    case ATTR_IS_MANAGED:
    case ATTR_ORDINAL: result = 0; break;
    default: return INVALID;
    }
    memcpy(value, &result, sizeof(result));
    return OK;
}

PUBLIC int cuThreadExchangeStreamCaptureMode(int *mode)
{
    static __thread int now;
    int old = now;

    now = *mode;
    *mode = old;
    return OK;
}
