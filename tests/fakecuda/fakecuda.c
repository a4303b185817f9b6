/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fakecuda.c - a libcuda.so.1 for machines without a GPU: device memory is memory of the CPU, shared between processes as
 * the driver shares it (descriptors, IPC handles), streams do their work at once, kernels are functions of a shared
 * library that is named by FAKECUDA_KERNELS.
 *
 * It is strict where a driver would fail: unknown handles, copies that cross the end of a mapping or of a registered piece,
 * calls without a context.
 *
 *     FAKECUDA_DEVICES=N      devices (1)          FAKECUDA_MEMORY=BYTES   of each process (1 GiB)
 *     FAKECUDA_NO_VMM=1       no descriptors       FAKECUDA_VERSION=N      of the driver (13000)
 *     FAKECUDA_NO_PEER=1      no access between devices
 *
 * A test finds one function more, fakecuda_capture(stream, on): from on to off everything must be put on that stream, and
 * what a driver refuses while a stream is being captured fails.
 */
#define _GNU_SOURCE
#include "transports/cuda/driver.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PUBLIC __attribute__((visibility("default")))
#define GRANULE ((size_t)2 << 20)
#define MAX 4096

enum kind { NONE, RESERVED, MAPPED, ALLOCATED, OPENED, PINNED, REGISTERED };

/* A piece of address space with a meaning. */
struct range {
    enum kind kind;
    bool readable; /* cuMemSetAccess was called */
    uint64_t at;
    size_t len;
    int fd; /* behind ALLOCATED */
};

struct handle {
    int fd; /* -1: free */
    size_t len;
    int held; /* by the user and by mappings */
};

static struct range ranges[MAX];
static struct handle handles[MAX]; /* handle value is index + 1 */
static size_t used;
static int n_handles;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char contexts[16];
static __thread void *stack[16];
static __thread int depth;

static long setting(const char *name, long otherwise)
{
    const char *text = getenv(name);

    return text ? atol(text) : otherwise;
}

static int device_count(void)
{
    return (int)setting("FAKECUDA_DEVICES", 1);
}

static void *current(void)
{
    return depth ? stack[depth - 1] : NULL;
}

/* ---- a capture that the test pretends ---- */

static bool capturing;
static void *captured;

PUBLIC void fakecuda_capture(void *stream, int on);
PUBLIC void fakecuda_capture(void *stream, int on)
{
    captured = stream;
    capturing = on;
}

#define NOT_IN_CAPTURE   \
    do {                 \
        if (capturing)   \
            return 900;  \
    } while (0)
#define RIGHT_STREAM                            \
    do {                                        \
        if (capturing && stream != captured)    \
            return 900;                         \
    } while (0)

#define NEED_CONTEXT         \
    do {                     \
        if (!current())      \
            return 201;      \
    } while (0)

static struct range *range_new(enum kind kind, uint64_t at, size_t len)
{
    for (int i = 0; i < MAX; i++)
        if (ranges[i].kind == NONE) {
            ranges[i] = (struct range){ kind, false, at, len, -1 };
            return &ranges[i];
        }
    abort();
}

static struct range *range_at(enum kind kind, uint64_t at)
{
    for (int i = 0; i < MAX; i++)
        if (ranges[i].kind == kind && ranges[i].at == at)
            return &ranges[i];
    return NULL;
}

static struct range *range_around(enum kind kind, uint64_t at)
{
    for (int i = 0; i < MAX; i++)
        if (ranges[i].kind == kind && at - ranges[i].at < ranges[i].len)
            return &ranges[i];
    return NULL;
}

static bool is_device(uint64_t at, struct range **out)
{
    static const enum kind kinds[] = { MAPPED, ALLOCATED, OPENED };

    for (int i = 0; i < 3; i++)
        if ((*out = range_around(kinds[i], at)))
            return true;
    return false;
}

/* Whole ranges of neighbours that are mapped count as one. */
static bool device_range_ok(uint64_t at, size_t len)
{
    struct range *r;

    while (len) {
        size_t n;

        if (!is_device(at, &r) || (r->kind == MAPPED && !r->readable))
            return false;
        n = r->at + r->len - at;
        n = n < len ? n : len;
        at += n;
        len -= n;
    }
    return true;
}

/* May a copy touch these bytes? */
static bool range_ok(uint64_t at, size_t len)
{
    struct range *r;

    if (range_around(RESERVED, at) || is_device(at, &r))
        return device_range_ok(at, len);
    for (int i = 0; i < MAX; i++) {
        r = &ranges[i];
        if (r->kind != REGISTERED || at + len <= r->at || at >= r->at + r->len)
            continue;
        if (at < r->at || at + len > r->at + r->len)
            return false; /* crosses the end of a registered piece */
    }
    return true;
}

int cuInit(unsigned flags);
#define DECLARE(field, symbol, params) int field##_ params __asm__(symbol);
SHMEMI_CU_FUNCTIONS(DECLARE)

/* ---- device, context, stream ---- */

PUBLIC int init_(unsigned flags)
{
    if (flags)
        return SHMEMI_CU_INVALID_VALUE;
    return device_count() > 0 ? SHMEMI_CU_OK : SHMEMI_CU_NO_DEVICE;
}

PUBLIC int driver_version_(int *version)
{
    *version = (int)setting("FAKECUDA_VERSION", 13000);
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
    case SHMEMI_CU_ATTR_POSIX_FD: *value = !setting("FAKECUDA_NO_VMM", 0); break;
    case SHMEMI_CU_ATTR_HOST_REGISTER:
    case SHMEMI_CU_ATTR_HOST_POINTER_SAME:
    case SHMEMI_CU_ATTR_COOPERATIVE:
    case SHMEMI_CU_ATTR_MEMOPS_64: *value = 1; break;
    default: *value = 0;
    }
    return SHMEMI_CU_OK;
}

PUBLIC int device_memory_(size_t *bytes, int device)
{
    (void)device;
    *bytes = (size_t)setting("FAKECUDA_MEMORY", 1 << 30);
    return SHMEMI_CU_OK;
}

PUBLIC int can_access_peer_(int *can, int device, int peer)
{
    *can = device != peer && !setting("FAKECUDA_NO_PEER", 0);
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
    *ctx = &contexts[device];
    return SHMEMI_CU_OK;
}

PUBLIC int primary_release_(int device)
{
    return device < device_count() ? SHMEMI_CU_OK : SHMEMI_CU_INVALID_VALUE;
}

PUBLIC int ctx_current_(void **ctx)
{
    *ctx = current();
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
    *device = (int)((char *)current() - contexts);
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
    (void)stream;
    NEED_CONTEXT;
    if (flags || addr % 8 || !range_ok(addr, 8))
        return SHMEMI_CU_INVALID_VALUE;
    __atomic_store_n((uint64_t *)(uintptr_t)addr, value, __ATOMIC_RELEASE);
    return SHMEMI_CU_OK;
}

PUBLIC int stream_wait64_(void *stream, uint64_t addr, uint64_t value, unsigned flags)
{
    uint64_t *word = (uint64_t *)(uintptr_t)addr;

    (void)stream;
    NEED_CONTEXT;
    if (flags > 1 || addr % 8 || !range_ok(addr, 8))
        return SHMEMI_CU_INVALID_VALUE;
    for (;;) {
        uint64_t seen = __atomic_load_n(word, __ATOMIC_ACQUIRE);

        if (flags == SHMEMI_CU_WAIT_EQ ? seen == value : (int64_t)(seen - value) >= 0)
            return SHMEMI_CU_OK;
        usleep(50);
    }
}

/* ---- virtual memory ---- */

PUBLIC int va_reserve_(uint64_t *ptr, size_t len, size_t align, uint64_t at, uint64_t flags)
{
    char *raw;
    uint64_t p;

    NOT_IN_CAPTURE;
    NEED_CONTEXT;
    if (!len || len % GRANULE || flags || at)
        return SHMEMI_CU_INVALID_VALUE;
    align = align ? align : GRANULE;
    raw = mmap(NULL, len + align, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (raw == MAP_FAILED)
        return SHMEMI_CU_OUT_OF_MEMORY;
    p = ((uintptr_t)raw + align - 1) & ~(align - 1);
    *ptr = p;
    range_new(RESERVED, p, len);
    return SHMEMI_CU_OK;
}

PUBLIC int va_free_(uint64_t ptr, size_t len)
{
    struct range *r = range_at(RESERVED, ptr), *inside;

    if (!r || r->len != len)
        return SHMEMI_CU_INVALID_VALUE;
    for (int i = 0; i < MAX; i++) {
        inside = &ranges[i];
        if (inside->kind == MAPPED && inside->at - ptr < len)
            return SHMEMI_CU_INVALID_VALUE; /* still in use */
    }
    munmap((void *)(uintptr_t)ptr, len);
    r->kind = NONE;
    return SHMEMI_CU_OK;
}

static int handle_new(uint64_t *handle, int fd, size_t len)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < MAX; i++)
        if (i >= n_handles || handles[i].held == 0) {
            handles[i] = (struct handle){ fd, len, 1 };
            n_handles = i >= n_handles ? i + 1 : n_handles;
            *handle = (uint64_t)i + 1;
            pthread_mutex_unlock(&lock);
            return SHMEMI_CU_OK;
        }
    abort();
}

static struct handle *handle_of(uint64_t h)
{
    return h && h <= (uint64_t)n_handles && handles[h - 1].held ? &handles[h - 1] : NULL;
}

PUBLIC int mem_create_(uint64_t *handle, size_t len, const struct shmemi_cu_alloc_prop *prop, uint64_t flags)
{
    int fd;

    NOT_IN_CAPTURE;
    NEED_CONTEXT;
    if (flags || !len || len % GRANULE || prop->type != SHMEMI_CU_PINNED || prop->location.type != SHMEMI_CU_AT_DEVICE)
        return SHMEMI_CU_INVALID_VALUE;
    if (used + len > (size_t)setting("FAKECUDA_MEMORY", 1 << 30))
        return SHMEMI_CU_OUT_OF_MEMORY;
    fd = memfd_create("fakecuda", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, (off_t)len))
        return SHMEMI_CU_OUT_OF_MEMORY;
    used += len;
    return handle_new(handle, fd, len);
}

PUBLIC int mem_release_(uint64_t handle)
{
    struct handle *h = handle_of(handle);

    if (!h)
        return SHMEMI_CU_INVALID_VALUE;
    if (--h->held == 0) {
        close(h->fd);
        h->fd = -1;
    }
    return SHMEMI_CU_OK;
}

PUBLIC int mem_map_(uint64_t ptr, size_t len, size_t off, uint64_t handle, uint64_t flags)
{
    struct handle *h = handle_of(handle);
    struct range *r = range_around(RESERVED, ptr);

    NEED_CONTEXT;
    if (!h || !r || len != h->len || off || flags || ptr + len > r->at + r->len || range_around(MAPPED, ptr))
        return SHMEMI_CU_INVALID_VALUE;
    if (mmap((void *)(uintptr_t)ptr, len, PROT_NONE, MAP_SHARED | MAP_FIXED, h->fd, 0) == MAP_FAILED)
        return SHMEMI_CU_OUT_OF_MEMORY;
    range_new(MAPPED, ptr, len);
    return SHMEMI_CU_OK;
}

PUBLIC int mem_unmap_(uint64_t ptr, size_t len)
{
    struct range *r = range_at(MAPPED, ptr);

    NEED_CONTEXT;
    if (!r || r->len != len)
        return SHMEMI_CU_INVALID_VALUE;
    mmap((void *)(uintptr_t)ptr, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    r->kind = NONE;
    return SHMEMI_CU_OK;
}

PUBLIC int mem_access_(uint64_t ptr, size_t len, const struct shmemi_cu_access *desc, size_t n)
{
    struct range *r = range_at(MAPPED, ptr);

    NEED_CONTEXT;
    if (!r || r->len != len || n != 1 || desc->flags != SHMEMI_CU_READ_WRITE)
        return SHMEMI_CU_INVALID_VALUE;
    r->readable = true;
    return mprotect((void *)(uintptr_t)ptr, len, PROT_READ | PROT_WRITE) ? SHMEMI_CU_INVALID_VALUE : SHMEMI_CU_OK;
}

PUBLIC int mem_granularity_(size_t *out, const struct shmemi_cu_alloc_prop *prop, int option)
{
    (void)prop;
    (void)option;
    *out = GRANULE;
    return SHMEMI_CU_OK;
}

PUBLIC int mem_export_(void *out, uint64_t handle, int type, uint64_t flags)
{
    struct handle *h = handle_of(handle);
    int fd;

    if (!h || type != SHMEMI_CU_HANDLE_FD || flags)
        return SHMEMI_CU_INVALID_VALUE;
    fd = fcntl(h->fd, F_DUPFD_CLOEXEC, 0);
    memcpy(out, &fd, sizeof fd);
    return fd < 0 ? SHMEMI_CU_OUT_OF_MEMORY : SHMEMI_CU_OK;
}

PUBLIC int mem_import_(uint64_t *handle, void *os_handle, int type)
{
    struct stat st;
    int fd = fcntl((int)(intptr_t)os_handle, F_DUPFD_CLOEXEC, 0);

    if (fd < 0 || type != SHMEMI_CU_HANDLE_FD || fstat(fd, &st))
        return SHMEMI_CU_INVALID_VALUE;
    return handle_new(handle, fd, (size_t)st.st_size);
}

PUBLIC int mem_info_(size_t *free_out, size_t *total_out)
{
    *total_out = (size_t)setting("FAKECUDA_MEMORY", 1 << 30);
    *free_out = *total_out - used;
    return SHMEMI_CU_OK;
}

/* ---- plain allocations, IPC, host memory ---- */

PUBLIC int mem_alloc_(uint64_t *ptr, size_t len)
{
    int fd = memfd_create("fakecuda", MFD_CLOEXEC);
    void *p;

    NOT_IN_CAPTURE;
    NEED_CONTEXT;
    if (used + len > (size_t)setting("FAKECUDA_MEMORY", 1 << 30) || ftruncate(fd, (off_t)len)) {
        close(fd);
        return SHMEMI_CU_OUT_OF_MEMORY;
    }
    p = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    range_new(ALLOCATED, (uintptr_t)p, len)->fd = fd;
    *ptr = (uintptr_t)p;
    return SHMEMI_CU_OK;
}

PUBLIC int mem_free_(uint64_t ptr)
{
    struct range *r = range_at(ALLOCATED, ptr);

    NOT_IN_CAPTURE;
    NEED_CONTEXT;
    if (!r)
        return SHMEMI_CU_INVALID_VALUE;
    munmap((void *)(uintptr_t)ptr, r->len);
    close(r->fd);
    r->kind = NONE;
    return SHMEMI_CU_OK;
}

PUBLIC int host_alloc_(void **ptr, size_t len, unsigned flags)
{
    NOT_IN_CAPTURE;
    NEED_CONTEXT;
    (void)flags;
    *ptr = aligned_alloc(4096, (len + 4095) & ~(size_t)4095);
    range_new(PINNED, (uintptr_t)*ptr, len);
    return SHMEMI_CU_OK;
}

PUBLIC int host_free_(void *ptr)
{
    struct range *r = range_at(PINNED, (uintptr_t)ptr);

    NOT_IN_CAPTURE;
    if (!r)
        return SHMEMI_CU_INVALID_VALUE;
    r->kind = NONE;
    free(ptr);
    return SHMEMI_CU_OK;
}

PUBLIC int host_register_(void *ptr, size_t len, unsigned flags)
{
    uint64_t at = (uintptr_t)ptr;

    NOT_IN_CAPTURE;
    NEED_CONTEXT;
    if (flags != (SHMEMI_CU_REGISTER_PORTABLE | SHMEMI_CU_REGISTER_MAPPED) || !len)
        return SHMEMI_CU_INVALID_VALUE;
    for (int i = 0; i < MAX; i++)
        if (ranges[i].kind == REGISTERED && at < ranges[i].at + ranges[i].len && ranges[i].at < at + len)
            return SHMEMI_CU_HOST_ALREADY_REGISTERED;
    range_new(REGISTERED, at, len);
    return SHMEMI_CU_OK;
}

PUBLIC int host_unregister_(void *ptr)
{
    struct range *r = range_at(REGISTERED, (uintptr_t)ptr);

    if (!r)
        return SHMEMI_CU_INVALID_VALUE;
    r->kind = NONE;
    return SHMEMI_CU_OK;
}

PUBLIC int ipc_get_(struct shmemi_cu_ipc_handle *handle, uint64_t ptr)
{
    struct range *r = range_at(ALLOCATED, ptr);

    NEED_CONTEXT;
    if (!r)
        return SHMEMI_CU_INVALID_VALUE;
    snprintf(handle->bytes, sizeof handle->bytes, "/proc/%d/fd/%d", (int)getpid(), r->fd);
    return SHMEMI_CU_OK;
}

PUBLIC int ipc_open_(uint64_t *ptr, struct shmemi_cu_ipc_handle handle, unsigned flags)
{
    struct stat st;
    int fd = open(handle.bytes, O_RDWR | O_CLOEXEC);
    void *p;

    NEED_CONTEXT;
    (void)flags;
    if (fd < 0 || fstat(fd, &st))
        return SHMEMI_CU_INVALID_VALUE;
    p = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    range_new(OPENED, (uintptr_t)p, (size_t)st.st_size);
    *ptr = (uintptr_t)p;
    return SHMEMI_CU_OK;
}

PUBLIC int ipc_close_(uint64_t ptr)
{
    struct range *r = range_at(OPENED, ptr);

    if (!r)
        return SHMEMI_CU_INVALID_VALUE;
    munmap((void *)(uintptr_t)ptr, r->len);
    r->kind = NONE;
    return SHMEMI_CU_OK;
}

PUBLIC int pointer_attribute_(void *value, int attribute, uint64_t ptr)
{
    struct range *r;
    unsigned result;

    NEED_CONTEXT;
    if (is_device(ptr, &r))
        result = SHMEMI_CU_MEMORY_DEVICE;
    else if (range_around(REGISTERED, ptr) || range_around(PINNED, ptr))
        result = SHMEMI_CU_MEMORY_HOST;
    else
        return SHMEMI_CU_INVALID_VALUE;
    if (attribute != SHMEMI_CU_POINTER_TYPE)
        return SHMEMI_CU_INVALID_VALUE;
    memcpy(value, &result, sizeof result);
    return SHMEMI_CU_OK;
}

/* ---- copies ---- */

PUBLIC int copy_async_(uint64_t to, uint64_t from, size_t len, void *stream)
{
    RIGHT_STREAM;
    NEED_CONTEXT;
    if (!range_ok(to, len) || !range_ok(from, len))
        return SHMEMI_CU_INVALID_VALUE;
    if (len == 8 && to % 8 == 0 && from % 8 == 0)
        __atomic_store_n((uint64_t *)(uintptr_t)to, *(uint64_t *)(uintptr_t)from, __ATOMIC_RELEASE);
    else
        memmove((void *)(uintptr_t)to, (const void *)(uintptr_t)from, len);
    return SHMEMI_CU_OK;
}

PUBLIC int copy2d_async_(const struct shmemi_cu_copy2d *c, void *stream)
{
    uint64_t to = c->dst_type == SHMEMI_CU_MEMORY_HOST ? (uintptr_t)c->dst_host : c->dst_device;
    uint64_t from = c->src_type == SHMEMI_CU_MEMORY_HOST ? (uintptr_t)c->src_host : c->src_device;
    int rc = SHMEMI_CU_OK;

    if (c->width > c->dst_pitch || c->width > c->src_pitch)
        return SHMEMI_CU_INVALID_VALUE;
    for (size_t i = 0; i < c->height && rc == SHMEMI_CU_OK; i++)
        rc = copy_async_(to + i * c->dst_pitch, from + i * c->src_pitch, c->width, stream);
    return rc;
}

PUBLIC int set8_async_(uint64_t ptr, unsigned char value, size_t len, void *stream)
{
    RIGHT_STREAM;
    NEED_CONTEXT;
    if (!range_ok(ptr, len))
        return SHMEMI_CU_INVALID_VALUE;
    memset((void *)(uintptr_t)ptr, value, len);
    return SHMEMI_CU_OK;
}

/* ---- modules and kernels: functions of a shared library that take their arguments as CUDA passes them ---- */

PUBLIC int module_load_(void **module, const void *image)
{
    const char *path = getenv("FAKECUDA_KERNELS");

    NOT_IN_CAPTURE;
    NEED_CONTEXT;
    (void)image;
    *module = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    return *module ? SHMEMI_CU_OK : SHMEMI_CU_NOT_FOUND;
}

PUBLIC int module_unload_(void *module)
{
    return dlclose(module) ? SHMEMI_CU_INVALID_VALUE : SHMEMI_CU_OK;
}

PUBLIC int module_function_(void **function, void *module, const char *name)
{
    NOT_IN_CAPTURE;
    *function = dlsym(module, name);
    return *function ? SHMEMI_CU_OK : SHMEMI_CU_NOT_FOUND;
}

PUBLIC int module_global_(uint64_t *ptr, size_t *len, void *module, const char *name)
{
    char size_name[128];
    const size_t *size;
    void *p = dlsym(module, name);

    snprintf(size_name, sizeof size_name, "%s_bytes", name);
    size = dlsym(module, size_name);
    if (!p || !size)
        return SHMEMI_CU_NOT_FOUND;
    *ptr = (uintptr_t)p;
    *len = *size;
    return SHMEMI_CU_OK;
}

PUBLIC int occupancy_(int *blocks, void *function, int block_size, size_t shared)
{
    (void)function;
    (void)shared;
    *blocks = block_size <= 1024 ? 2 : 0;
    return SHMEMI_CU_OK;
}

PUBLIC int launch_(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **args, void **extra)
{
    void (*run)(const unsigned *grid, const unsigned *block, void **args);
    const unsigned grid[3] = { gx, gy, gz }, block[3] = { bx, by, bz };

    (void)shared;
    RIGHT_STREAM;
    NEED_CONTEXT;
    if (!function || extra || !gx || !gy || !gz || !bx || !by || !bz || bx * by * bz > 1024)
        return SHMEMI_CU_INVALID_VALUE;
    memcpy(&run, &function, sizeof run);
    run(grid, block, args);
    return SHMEMI_CU_OK;
}

PUBLIC int launch_cooperative_(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                               unsigned bz, unsigned shared, void *stream, void **args)
{
    if (gx * gy * gz > 8)
        return SHMEMI_CU_COOPERATIVE_TOO_LARGE;
    return launch_(function, gx, gy, gz, bx, by, bz, shared, stream, args, NULL);
}
