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
 *     FAKECUDA_GUARD=1        device memory is not to be touched at its own address, as on a GPU, but by kernels; not for IPC
 *     FAKECUDA_NO_DMA_BUF=1   device memory is not exported as dma-bufs
 *     FAKECUDA_NO_PEERMEM=1   to a NIC it looks like managed memory, which none registers by its address (with FAKECUDA_GUARD)
 *     FAKECUDA_IO=N           registers of a NIC: 0 not mapped at all, 1 as plain memory only (default), 2 as I/O memory only
 *     FAKECUDA_HOST_ATOMICS=1 the GPU's atomics on host memory are atomic with the CPU's, as shmem-info shows them
 *
 * A test finds one function more, fakecuda_capture(stream, on): from on to off everything must be put on that stream, and
 * what a driver refuses while a stream is being captured fails, but for threads that have exchanged their capture mode.
 */
#define _GNU_SOURCE
#include "fake.h"

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

#define GRANULE ((size_t)2 << 20)
#define MAX 4096

enum kind { NONE, RESERVED, MAPPED, ALLOCATED, OPENED, PINNED, REGISTERED };

/* A piece of address space with a meaning. */
struct range {
    enum kind kind;
    bool readable; /* cuMemSetAccess was called */
    uint64_t at;
    size_t len;
    int fd; /* behind ALLOCATED and MAPPED */
    int device;
    char *alias; /* guarded: where the stand-in itself touches it */
};

struct handle {
    int fd; /* -1: free */
    size_t len;
    int held; /* by the user and by mappings */
};

static struct range ranges[MAX];
static struct handle handles[MAX]; /* handle value is index + 1 */
static size_t used;
static int n_handles, n_ranges;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, ranges_lock = PTHREAD_MUTEX_INITIALIZER;

/* Any thread may ask about a pointer while another one allocates. */
static struct range *range_new(enum kind kind, uint64_t at, size_t len)
{
    void *ctx = fake_current();

    pthread_mutex_lock(&ranges_lock);
    for (int i = 0; i < MAX; i++)
        if (ranges[i].kind == NONE) {
            ranges[i] = (struct range){ kind, false, at, len, -1, ctx ? (int)((char *)ctx - fake_contexts) : 0, NULL };
            n_ranges = i >= n_ranges ? i + 1 : n_ranges;
            pthread_mutex_unlock(&ranges_lock);
            return &ranges[i];
        }
    abort();
}

static void range_end(struct range *r)
{
    pthread_mutex_lock(&ranges_lock);
    r->kind = NONE;
    pthread_mutex_unlock(&ranges_lock);
}

static struct range *range_find(enum kind kind, uint64_t at, bool first)
{
    struct range *found = NULL;

    pthread_mutex_lock(&ranges_lock);
    for (int i = 0; i < n_ranges && !found; i++)
        if (ranges[i].kind == kind && (first ? ranges[i].at == at : at - ranges[i].at < ranges[i].len))
            found = &ranges[i];
    pthread_mutex_unlock(&ranges_lock);
    return found;
}

static struct range *range_at(enum kind kind, uint64_t at)
{
    return range_find(kind, at, true);
}

static struct range *range_around(enum kind kind, uint64_t at)
{
    return range_find(kind, at, false);
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
bool fake_range_ok(uint64_t at, size_t len)
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

/* ---- memory that the CPU is to leave alone ---- */

static void guard(struct range *r)
{
    if (!fake_setting("FAKECUDA_GUARD", 0))
        return;
    r->alias = mmap(NULL, r->len, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, 0);
    if (r->alias == MAP_FAILED || mprotect((void *)(uintptr_t)r->at, r->len, PROT_NONE))
        abort();
}

/* But kernels may, so there is no guard while one runs, on whatever thread. */
static void guards(int step)
{
    static int running;

    pthread_mutex_lock(&ranges_lock);
    running += step;
    for (int i = 0; i < n_ranges && running == (step > 0); i++)
        if (ranges[i].kind != NONE && ranges[i].alias)
            mprotect((void *)(uintptr_t)ranges[i].at, ranges[i].len, running ? PROT_READ | PROT_WRITE : PROT_NONE);
    pthread_mutex_unlock(&ranges_lock);
}

static void unguard(struct range *r)
{
    if (r->alias)
        munmap(r->alias, r->len);
    r->alias = NULL;
}

void *fake_cpu(uint64_t at, size_t *len)
{
    struct range *r;
    size_t off;

    if (!is_device(at, &r) || !r->alias)
        return (void *)(uintptr_t)at;
    off = at - r->at;
    *len = *len < r->len - off ? *len : r->len - off;
    return r->alias + off;
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
    if (used + len > (size_t)fake_setting("FAKECUDA_MEMORY", 1 << 30))
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
    r = range_new(MAPPED, ptr, len);
    r->fd = fcntl(h->fd, F_DUPFD_CLOEXEC, 0);
    guard(r);
    return SHMEMI_CU_OK;
}

PUBLIC int mem_unmap_(uint64_t ptr, size_t len)
{
    struct range *r = range_at(MAPPED, ptr);

    NEED_CONTEXT;
    if (!r || r->len != len)
        return SHMEMI_CU_INVALID_VALUE;
    mmap((void *)(uintptr_t)ptr, len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    unguard(r);
    close(r->fd);
    range_end(r);
    return SHMEMI_CU_OK;
}

PUBLIC int mem_access_(uint64_t ptr, size_t len, const struct shmemi_cu_access *desc, size_t n)
{
    struct range *r = range_at(MAPPED, ptr);

    NEED_CONTEXT;
    if (!r || r->len != len || n != 1 || desc->flags != SHMEMI_CU_READ_WRITE)
        return SHMEMI_CU_INVALID_VALUE;
    r->readable = true;
    if (r->alias)
        return SHMEMI_CU_OK;
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
    *total_out = (size_t)fake_setting("FAKECUDA_MEMORY", 1 << 30);
    *free_out = *total_out - used;
    return SHMEMI_CU_OK;
}

/* ---- plain allocations, IPC, host memory ---- */

PUBLIC int mem_alloc_(uint64_t *ptr, size_t len)
{
    int fd = memfd_create("fakecuda", MFD_CLOEXEC);
    const size_t align = 65536; /* so that a dma-buf of it begins where its descriptor does */
    struct range *r;
    char *p;

    NOT_IN_CAPTURE;
    NEED_CONTEXT;
    if (used + len > (size_t)fake_setting("FAKECUDA_MEMORY", 1 << 30) || ftruncate(fd, (off_t)len)) {
        close(fd);
        return SHMEMI_CU_OUT_OF_MEMORY;
    }
    p = mmap(NULL, len + align, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    p += -(uintptr_t)p & (align - 1);
    mmap(p, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
    r = range_new(ALLOCATED, (uintptr_t)p, len);
    r->fd = fd;
    guard(r);
    *ptr = (uintptr_t)p;
    return SHMEMI_CU_OK;
}

/* A descriptor that stands for the range; its bytes can be mapped when it is one allocation's from the start on. */
PUBLIC int range_handle_(void *handle, uint64_t ptr, size_t len, int type, uint64_t flags)
{
    struct range *r;
    int fd;

    NEED_CONTEXT;
    if (type != SHMEMI_CU_HANDLE_DMA_BUF || flags || ptr % 4096 || len % 4096 || fake_setting("FAKECUDA_NO_DMA_BUF", 0) ||
        !device_range_ok(ptr, len) || !is_device(ptr, &r) || r->at != ptr)
        return SHMEMI_CU_INVALID_VALUE;
    fd = fcntl(r->fd, F_DUPFD_CLOEXEC, 0);
    memcpy(handle, &fd, sizeof fd);
    return fd < 0 ? SHMEMI_CU_OUT_OF_MEMORY : SHMEMI_CU_OK;
}

PUBLIC int mem_free_(uint64_t ptr)
{
    struct range *r = range_at(ALLOCATED, ptr);

    NOT_IN_CAPTURE;
    NEED_CONTEXT;
    if (!r)
        return SHMEMI_CU_INVALID_VALUE;
    munmap((void *)(uintptr_t)ptr, r->len);
    unguard(r);
    close(r->fd);
    range_end(r);
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
    range_end(r);
    free(ptr);
    return SHMEMI_CU_OK;
}

PUBLIC int host_register_(void *ptr, size_t len, unsigned flags)
{
    uint64_t at = (uintptr_t)ptr;
    long io = fake_setting("FAKECUDA_IO", 1);

    NOT_IN_CAPTURE;
    NEED_CONTEXT;
    if ((flags & ~(unsigned)SHMEMI_CU_REGISTER_IO) != (SHMEMI_CU_REGISTER_PORTABLE | SHMEMI_CU_REGISTER_MAPPED) || !len)
        return SHMEMI_CU_INVALID_VALUE;
    /* A single page is taken for registers. */
    if (flags & SHMEMI_CU_REGISTER_IO ? io < 2 : len == 4096 && io != 1)
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
    range_end(r);
    return SHMEMI_CU_OK;
}

PUBLIC int host_device_pointer_(uint64_t *ptr, void *host, unsigned flags)
{
    NEED_CONTEXT;
    *ptr = (uintptr_t)host;
    if (flags || (!range_around(REGISTERED, *ptr) && !range_around(PINNED, *ptr)))
        return SHMEMI_CU_INVALID_VALUE;
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
    range_end(r);
    return SHMEMI_CU_OK;
}

PUBLIC int pointer_attribute_(void *value, int attribute, uint64_t ptr)
{
    struct range *r = NULL;
    unsigned result;

    if (is_device(ptr, &r))
        result = SHMEMI_CU_MEMORY_DEVICE;
    else if (range_around(REGISTERED, ptr) || range_around(PINNED, ptr))
        result = SHMEMI_CU_MEMORY_HOST;
    else
        return SHMEMI_CU_INVALID_VALUE;
    if (attribute == SHMEMI_CU_POINTER_MANAGED)
        result = fake_setting("FAKECUDA_NO_PEERMEM", 0) != 0;
    else if (attribute == SHMEMI_CU_POINTER_ORDINAL)
        result = r ? (unsigned)r->device : 0;
    else if (attribute != SHMEMI_CU_POINTER_TYPE)
        return SHMEMI_CU_INVALID_VALUE;
    memcpy(value, &result, sizeof result);
    return SHMEMI_CU_OK;
}

/* ---- copies ---- */

/* Words whole, as the copy engine stores them. */
static void move_piece(void *to, const void *from, size_t len)
{
    if (len == 8 && (uintptr_t)to % 8 == 0 && (uintptr_t)from % 8 == 0)
        __atomic_store_n((uint64_t *)to, *(const uint64_t *)from, __ATOMIC_RELEASE);
    else if (len == 4 && (uintptr_t)to % 4 == 0 && (uintptr_t)from % 4 == 0)
        __atomic_store_n((uint32_t *)to, *(const uint32_t *)from, __ATOMIC_RELEASE);
    else
        memmove(to, from, len);
}

static int move(uint64_t to, uint64_t from, size_t len)
{
    while (len) {
        size_t n = len;
        void *t = fake_cpu(to, &n);
        const void *f = fake_cpu(from, &n);

        move_piece(t, f, n);
        to += n;
        from += n;
        len -= n;
    }
    return SHMEMI_CU_OK;
}

PUBLIC int copy_async_(uint64_t to, uint64_t from, size_t len, void *stream)
{
    RIGHT_STREAM;
    NEED_CONTEXT;
    if (!fake_range_ok(to, len) || !fake_range_ok(from, len))
        return SHMEMI_CU_INVALID_VALUE;
    return move(to, from, len);
}

/* What the virtual NIC calls, in a thread of its own. */
int cuMemAllocHost_v2(void **ptr, size_t len);
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t len, void *stream);
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t len, void *stream);

PUBLIC int cuMemAllocHost_v2(void **ptr, size_t len)
{
    return host_alloc_(ptr, len, 0);
}

PUBLIC int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t len, void *stream)
{
    (void)stream;
    NEED_CONTEXT;
    return device_range_ok(from, len) ? move((uintptr_t)to, from, len) : SHMEMI_CU_INVALID_VALUE;
}

PUBLIC int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t len, void *stream)
{
    (void)stream;
    NEED_CONTEXT;
    return device_range_ok(to, len) ? move(to, (uintptr_t)from, len) : SHMEMI_CU_INVALID_VALUE;
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
    if (!fake_range_ok(ptr, len))
        return SHMEMI_CU_INVALID_VALUE;
    while (len) {
        size_t n = len;

        memset(fake_cpu(ptr, &n), value, n);
        ptr += n;
        len -= n;
    }
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
    guards(1);
    run(grid, block, args);
    guards(-1);
    return SHMEMI_CU_OK;
}

PUBLIC int launch_cooperative_(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                               unsigned bz, unsigned shared, void *stream, void **args)
{
    if (gx * gy * gz > 8)
        return SHMEMI_CU_COOPERATIVE_TOO_LARGE;
    return launch_(function, gx, gy, gz, bx, by, bz, shared, stream, args, NULL);
}
