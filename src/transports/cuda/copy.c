/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * copy.c - what host calls move from and to device memory: by the copy engine, on one stream of the library's own.
 *
 * One stream, so copies take effect in the order of the calls: fence costs nothing among them.  Copies that nobody
 * waits for are remembered by `pending` until the next flush.
 */
#include "gpu.h"

#include "core/compiler.h"
#include "core/log.h"
#include "shmem/device/port.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#define VALUES 256
#define VALUE_BYTES 16

static uint32_t pending;

/* Values on their way to the device, in pinned memory, so that the copy is truly asynchronous. */
static struct {
    pthread_mutex_t lock;
    char *slots;
    unsigned next;
} values = { .lock = PTHREAD_MUTEX_INITIALIZER };

static int enqueue(void *to, const void *from, size_t len, void *stream)
{
    uintptr_t t = (uintptr_t)to, f = (uintptr_t)from;
    int rc = SHMEMI_CU_OK;

    while (len && rc == SHMEMI_CU_OK) {
        size_t n = shmemi_gpu_piece(t, shmemi_gpu_piece(f, len));

        rc = shmemi_cu.copy_async(t, f, n, stream);
        t += n;
        f += n;
        len -= n;
    }
    return rc;
}

static int finish(int rc, bool wait)
{
    if (rc == SHMEMI_CU_OK && wait)
        rc = shmemi_cu.stream_sync(shmemi_gpu.stream);
    else
        SHMEMI_ST_REL(&pending, 1u);
    return rc;
}

int shmemi_gpu_copy(void *to, const void *from, size_t len, bool wait)
{
    int rc;

    if (!shmemi_gpu_enter())
        return -EIO;
    rc = finish(enqueue(to, from, len, shmemi_gpu.stream), wait);
    shmemi_gpu_leave();
    return shmemi_gpu_check(rc, "a copy fails");
}

/* Caller has the context current. */
static int send_value(void *to, const void *value, size_t size)
{
    char *slot;
    int rc = SHMEMI_CU_OK;

    if (!values.slots)
        return SHMEMI_CU_INVALID_VALUE;
    if (values.next && values.next % VALUES == 0)
        rc = shmemi_cu.stream_sync(shmemi_gpu.stream); /* all slots are on their way */
    if (rc != SHMEMI_CU_OK)
        return rc;
    slot = values.slots + values.next++ % VALUES * VALUE_BYTES;
    memcpy(slot, value, size);
    return finish(shmemi_cu.copy_async((uintptr_t)to, (uintptr_t)slot, size, shmemi_gpu.stream), false);
}

int shmemi_gpu_copy_value(void *to, const void *value, size_t size)
{
    int rc;

    if (!shmemi_gpu_enter())
        return -EIO;
    pthread_mutex_lock(&values.lock);
    rc = size <= VALUE_BYTES ? send_value(to, value, size) : SHMEMI_CU_INVALID_VALUE;
    pthread_mutex_unlock(&values.lock);
    shmemi_gpu_leave();
    return shmemi_gpu_check(rc, "a store to device memory fails");
}

int shmemi_gpu_copy_open(void)
{
    return shmemi_gpu_check(shmemi_cu.host_alloc((void **)&values.slots, VALUES * VALUE_BYTES,
                                                 SHMEMI_CU_REGISTER_PORTABLE | SHMEMI_CU_REGISTER_MAPPED),
                            "no pinned host memory");
}

void shmemi_gpu_copy_close(void)
{
    if (values.slots)
        shmemi_cu.host_free(values.slots);
    values.slots = NULL;
    values.next = 0;
}

int shmemi_gpu_stream_wait(void *stream)
{
    int rc;

    if (!shmemi_gpu_enter())
        return -EIO;
    rc = shmemi_cu.stream_sync(stream);
    shmemi_gpu_leave();
    return shmemi_gpu_check(rc, "a stream fails");
}

int shmemi_gpu_copy_on(void *to, const void *from, size_t len, void *stream)
{
    int rc;

    if (!shmemi_gpu_enter())
        return -EIO;
    rc = enqueue(to, from, len, stream);
    shmemi_gpu_leave();
    return shmemi_gpu_check(rc, "a copy on a stream fails");
}

/* Caller has the context current. */
static int enqueue2d(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height, void *stream)
{
    struct shmemi_cu_copy2d c = { .src_type = SHMEMI_CU_MEMORY_DEVICE, .src_device = (uintptr_t)from, .src_pitch = from_pitch,
                                  .dst_type = SHMEMI_CU_MEMORY_DEVICE, .dst_device = (uintptr_t)to, .dst_pitch = to_pitch,
                                  .width = width, .height = height };

    if (!shmemi_gpu_is_device_pointer(from)) {
        c.src_type = SHMEMI_CU_MEMORY_HOST;
        c.src_host = from;
    }
    if (!shmemi_gpu_is_device_pointer(to)) {
        c.dst_type = SHMEMI_CU_MEMORY_HOST;
        c.dst_host = to;
    }
    return shmemi_cu.copy2d_async(&c, stream);
}

int shmemi_gpu_copy2d(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height)
{
    int rc;

    if (!shmemi_gpu_enter())
        return -EIO;
    rc = finish(enqueue2d(to, to_pitch, from, from_pitch, width, height, shmemi_gpu.stream), true);
    shmemi_gpu_leave();
    return shmemi_gpu_check(rc, "a strided copy fails");
}

int shmemi_gpu_copy2d_on(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                         void *stream)
{
    int rc;

    if (!shmemi_gpu_enter())
        return -EIO;
    rc = enqueue2d(to, to_pitch, from, from_pitch, width, height, stream);
    shmemi_gpu_leave();
    return shmemi_gpu_check(rc, "a strided copy on a stream fails");
}

int shmemi_gpu_set(void *to, int value, size_t len)
{
    int rc;

    if (!shmemi_gpu_enter())
        return -EIO;
    rc = finish(shmemi_cu.set8_async((uintptr_t)to, (unsigned char)value, len, shmemi_gpu.stream), true);
    shmemi_gpu_leave();
    return shmemi_gpu_check(rc, "setting device memory fails");
}

int shmemi_gpu_flush(void)
{
    int rc;

    if (shmemi_likely(!SHMEMI_LD_ACQ(&pending)))
        return 0;
    if (!shmemi_gpu_enter())
        return -EIO;
    SHMEMI_ST_REL(&pending, 0u); /* before: a copy that another thread adds now is its own to flush */
    rc = shmemi_cu.stream_sync(shmemi_gpu.stream);
    shmemi_gpu_leave();
    return shmemi_gpu_check(rc, "copies fail");
}
