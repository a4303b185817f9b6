/* SPDX-License-Identifier: BSD-3-Clause */
/* device.c - the stand-in driver's devices, contexts and streams, and a capture that a test pretends. */
#define _GNU_SOURCE
#include "fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char fake_contexts[16];
void *fake_captured;
static _Atomic bool capturing;
static __thread int capture_mode; /* of cuThreadExchangeStreamCaptureMode */
static __thread void *stack[16];
static __thread int depth;

long fake_setting(const char *name, long otherwise)
{
    const char *text = getenv(name);

    return text ? atol(text) : otherwise;
}

static int device_count(void)
{
    return (int)fake_setting("FAKECUDA_DEVICES", 1);
}

void *fake_current(void)
{
    return depth ? stack[depth - 1] : NULL;
}

PUBLIC void fakecuda_capture(void *stream, int on);
PUBLIC void fakecuda_capture(void *stream, int on)
{
    fake_captured = stream;
    capturing = on;
}

bool fake_capture_minds(void)
{
    return capturing && capture_mode != SHMEMI_CU_CAPTURE_RELAXED;
}

PUBLIC int capture_mode_(int *mode)
{
    int old = capture_mode;

    capture_mode = *mode;
    *mode = old;
    return SHMEMI_CU_OK;
}

PUBLIC int init_(unsigned flags)
{
    if (flags)
        return SHMEMI_CU_INVALID_VALUE;
    return device_count() > 0 ? SHMEMI_CU_OK : SHMEMI_CU_NO_DEVICE;
}

PUBLIC int driver_version_(int *version)
{
    *version = (int)fake_setting("FAKECUDA_VERSION", 13000);
    return SHMEMI_CU_OK;
}

PUBLIC int error_name_(int error, const char **text)
{
    switch (error) {
    case SHMEMI_CU_OK: *text = "CUDA_SUCCESS"; break;
    case SHMEMI_CU_INVALID_VALUE: *text = "CUDA_ERROR_INVALID_VALUE"; break;
    case SHMEMI_CU_OUT_OF_MEMORY: *text = "CUDA_ERROR_OUT_OF_MEMORY"; break;
    case SHMEMI_CU_NO_DEVICE: *text = "CUDA_ERROR_NO_DEVICE"; break;
    case 900: *text = "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"; break;
    case 201: *text = "CUDA_ERROR_INVALID_CONTEXT"; break;
    default: *text = "CUDA_ERROR_OTHER";
    }
    return SHMEMI_CU_OK;
}

PUBLIC int device_count_(int *count)
{
    *count = device_count();
    return SHMEMI_CU_OK;
}

PUBLIC int device_get_(int *device, int ordinal)
{
    *device = ordinal;
    return ordinal >= 0 && ordinal < device_count() ? SHMEMI_CU_OK : SHMEMI_CU_INVALID_VALUE;
}

PUBLIC int device_name_(char *name, int len, int device)
{
    snprintf(name, (size_t)len, "Fake GPU %d", device);
    return SHMEMI_CU_OK;
}

PUBLIC int device_uuid_(struct shmemi_cu_uuid *uuid, int device)
{
    memset(uuid, device + 1, sizeof *uuid);
    return SHMEMI_CU_OK;
}

PUBLIC int device_attribute_(int *value, int attribute, int device)
{
    switch (attribute) {
    case SHMEMI_CU_ATTR_PCI_BUS: *value = device + 1; break;
    case SHMEMI_CU_ATTR_SMS: *value = 4; break;
    case SHMEMI_CU_ATTR_MAJOR: *value = 9; break;
    case SHMEMI_CU_ATTR_VMM:
    case SHMEMI_CU_ATTR_POSIX_FD: *value = !fake_setting("FAKECUDA_NO_VMM", 0); break;
    case SHMEMI_CU_ATTR_HOST_REGISTER:
    case SHMEMI_CU_ATTR_HOST_POINTER_SAME:
    case SHMEMI_CU_ATTR_COOPERATIVE:
    case SHMEMI_CU_ATTR_MEMOPS_64: *value = 1; break;
    case SHMEMI_CU_ATTR_HOST_ATOMICS: *value = (int)fake_setting("FAKECUDA_HOST_ATOMICS", 0); break;
    case SHMEMI_CU_ATTR_DMA_BUF: *value = !fake_setting("FAKECUDA_NO_DMA_BUF", 0); break;
    default: *value = 0;
    }
    return SHMEMI_CU_OK;
}

PUBLIC int device_memory_(size_t *bytes, int device)
{
    (void)device;
    *bytes = (size_t)fake_setting("FAKECUDA_MEMORY", 1 << 30);
    return SHMEMI_CU_OK;
}

PUBLIC int can_access_peer_(int *can, int device, int peer)
{
    *can = device != peer && !fake_setting("FAKECUDA_NO_PEER", 0);
    return SHMEMI_CU_OK;
}

PUBLIC int p2p_attribute_(int *value, int attribute, int device, int peer)
{
    (void)attribute;
    return can_access_peer_(value, device, peer);
}

PUBLIC int primary_retain_(void **ctx, int device)
{
    NOT_IN_CAPTURE;
    *ctx = &fake_contexts[device];
    return SHMEMI_CU_OK;
}

PUBLIC int primary_release_(int device)
{
    return device < device_count() ? SHMEMI_CU_OK : SHMEMI_CU_INVALID_VALUE;
}

PUBLIC int ctx_current_(void **ctx)
{
    *ctx = fake_current();
    return SHMEMI_CU_OK;
}

PUBLIC int ctx_set_(void *ctx)
{
    depth = depth ? depth : 1;
    stack[depth - 1] = ctx;
    return SHMEMI_CU_OK;
}

PUBLIC int ctx_push_(void *ctx)
{
    if (depth == 16 || !ctx)
        return SHMEMI_CU_INVALID_VALUE;
    stack[depth++] = ctx;
    return SHMEMI_CU_OK;
}

PUBLIC int ctx_pop_(void **ctx)
{
    NEED_CONTEXT;
    *ctx = stack[--depth];
    return SHMEMI_CU_OK;
}

PUBLIC int ctx_device_(int *device)
{
    NEED_CONTEXT;
    *device = (int)((char *)fake_current() - fake_contexts);
    return SHMEMI_CU_OK;
}

PUBLIC int stream_create_(void **stream, unsigned flags)
{
    NOT_IN_CAPTURE;
    NEED_CONTEXT;
    (void)flags;
    *stream = malloc(1);
    return SHMEMI_CU_OK;
}

PUBLIC int stream_destroy_(void *stream)
{
    NEED_CONTEXT;
    free(stream);
    return SHMEMI_CU_OK;
}

PUBLIC int stream_sync_(void *stream)
{
    NOT_IN_CAPTURE;
    (void)stream;
    NEED_CONTEXT;
    return SHMEMI_CU_OK;
}

PUBLIC int stream_query_(void *stream)
{
    return stream_sync_(stream);
}

PUBLIC int stream_write64_(void *stream, uint64_t addr, uint64_t value, unsigned flags)
{
    size_t size = sizeof value;

    (void)stream;
    NEED_CONTEXT;
    if (flags || addr % 8 || !fake_range_ok(addr, 8))
        return SHMEMI_CU_INVALID_VALUE;
    __atomic_store_n((uint64_t *)fake_cpu(addr, &size), value, __ATOMIC_RELEASE);
    return SHMEMI_CU_OK;
}

PUBLIC int stream_wait64_(void *stream, uint64_t addr, uint64_t value, unsigned flags)
{
    size_t size = sizeof value;
    uint64_t *word = fake_cpu(addr, &size);

    (void)stream;
    NEED_CONTEXT;
    if (flags > 1 || addr % 8 || !fake_range_ok(addr, 8))
        return SHMEMI_CU_INVALID_VALUE;
    for (;;) {
        uint64_t seen = __atomic_load_n(word, __ATOMIC_ACQUIRE);

        if (flags == SHMEMI_CU_WAIT_EQ ? seen == value : (int64_t)(seen - value) >= 0)
            return SHMEMI_CU_OK;
        usleep(50);
    }
}
