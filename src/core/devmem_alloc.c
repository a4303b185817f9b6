/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * devmem_alloc.c - shmemx_malloc_device and its relatives: the program's part of the device heap.
 *
 * As in heap.c every PE runs the same allocator on the same calls.  Memory behind the heap comes in steps of
 * MARROW_DEVICE_GROW when a block ends beyond what is backed, and goes back when that much and more is unused at the end.
 */
#include "devmem.h"

#include "alloc.h"
#include "check.h"
#include "env.h"
#include "net_dheap.h"
#include "node.h"
#include "transports/cuda/gpu.h"
#include "wait.h"

#include <shmemx.h>

#include <errno.h>
#include <pthread.h>
#include <string.h>

#define BLOCK_ALIGN 256 /* as cudaMalloc: whole sectors, and vector accesses anywhere */

static struct {
    pthread_mutex_t lock;
    struct shmemi_alloc *alloc;
    size_t from;   /* offset of the program's part */
    size_t backed; /* end of what is backed, as an offset in the heap */
    size_t live;   /* blocks */
    unsigned said; /* refusals that have been explained */
} it = { .lock = PTHREAD_MUTEX_INITIALIZER };

int shmemi_devmem_alloc_init(size_t from, size_t max)
{
    it.from = from;
    it.backed = shmemi_gpu.sharing == SHMEMI_GPU_IPC ? max : from;
    it.live = 0;
    return shmemi_alloc_create(max - from, SHMEMI_GPU_GRANULE, &it.alloc);
}

void shmemi_devmem_alloc_fini(void)
{
    shmemi_alloc_destroy(it.alloc);
    it.alloc = NULL;
}

int shmemi_devmem_find(size_t off, size_t *start_out, size_t *size_out)
{
    int rc;

    if (!it.alloc || off < it.from)
        return -ENOENT;
    pthread_mutex_lock(&it.lock);
    rc = shmemi_alloc_find(it.alloc, off - it.from, start_out, size_out);
    pthread_mutex_unlock(&it.lock);
    *start_out += it.from;
    return rc;
}

static int import_all(size_t off, size_t len)
{
    int rc = 0;

    for (int i = 0; i < shmemi.n_local && !rc; i++) {
        int pe = shmemi.local_pes[i];

        if (pe != shmemi.my_pe && shmemi.peers[pe].dheap)
            rc = shmemi_gpu_import(i, &shmemi.peers[pe].ctl->gpu, off, len);
    }
    return rc;
}

static void say_no_memory(const char *call, size_t size, int rc, int bad_pe)
{
    size_t free_bytes = 0, total = 0;

    if (!rc) {
        shmemi_warn(call, "%zu bytes of device memory: refused, since PE %d has no room for them", size, bad_pe);
        return;
    }
    if (shmemi_gpu_enter()) {
        shmemi_cu.mem_info(&free_bytes, &total);
        shmemi_gpu_leave();
    }
    shmemi_warn(call, "%zu bytes of device memory: refused, GPU %d has %zu of %zu bytes left", size, shmemi_gpu.device,
                free_bytes, total);
}

/* Where the heap's backing is to end: after whole steps of `step` bytes. */
static size_t whole_steps(size_t end, size_t step)
{
    size_t to;

    step = shmemi_round_up(step ? step : 1, SHMEMI_GPU_GRANULE);
    to = it.backed + (end - it.backed + step - 1) / step * step;
    return to < shmemi_gpu.max ? to : shmemi_gpu.max;
}

/* Backs the heap up to `to` on all PEs, or on none; last: and says why not. */
static bool back_all(const char *call, size_t size, size_t to, bool last)
{
    int bad, rc = shmemi_gpu_back(it.backed, to - it.backed, false);

    if (shmemi_devmem_agree(rc == 0, &bad, call))
        return true;
    if (last)
        say_no_memory(call, size, rc, bad);
    shmemi_gpu_unback(it.backed);
    return false;
}

/*
 * Backs the heap up to `end` on all PEs, or on none.  Every PE comes to this in the same call.  NICs register the whole heap
 * anew, and keep what they had: with them it grows by a quarter at least, where there is room for it.
 */
static bool grow(const char *call, size_t size, size_t end)
{
    size_t to = whole_steps(end, shmemi_env.device_grow), more = it.backed / 4;
    int rc, bad;

    if (shmemi_net.up && more > shmemi_env.device_grow && whole_steps(end, more) > to &&
        back_all(call, size, whole_steps(end, more), false))
        to = whole_steps(end, more);
    else if (!back_all(call, size, to, true))
        return false;
    rc = import_all(it.backed, to - it.backed);
    if (!rc)
        rc = shmemi_net_dheap_register(to);
    if (!shmemi_devmem_agree(rc == 0, &bad, call)) {
        shmemi_warn(call, "%zu bytes of device memory: refused, since PE %d cannot map or register them", size, bad);
        if (!rc)
            shmemi_net_dheap_withdraw();
        shmemi_gpu_unback(it.backed);
        return false;
    }
    it.backed = to;
    shmemi.dheap_len = to;
    if (shmemi_devmem_publish())
        shmemi_fatal(call, "the larger device heap cannot be made known to kernels");
    return true;
}

static void *address(size_t off)
{
    return (void *)(shmemi.dheap_base + it.from + off);
}

void *shmemi_devmem_allocate(const char *call, size_t size, size_t align, bool zero)
{
    size_t off;
    void *p = NULL;

    shmemi_check_init(call);
    if (size == 0 || align == 0 || (align & (align - 1)))
        return NULL;
    if (!shmemi_devmem_start(call)) {
        if (!it.said++)
            shmemi_warn(call, "no device memory: %s", shmemi_devmem_why());
        return NULL;
    }
    pthread_mutex_lock(&it.lock);
    off = size > shmemi_gpu.max ? SHMEMI_ALLOC_FAIL
                                : shmemi_alloc_get(it.alloc, shmemi_round_up(size, BLOCK_ALIGN),
                                                   align < BLOCK_ALIGN ? BLOCK_ALIGN : align);
    if (off == SHMEMI_ALLOC_FAIL) {
        if (shmemi.my_pe == 0) /* the same on all */
            shmemi_warn(call, "%zu bytes of device memory: refused, the device heap of each PE ends at %zu bytes "
                        "(MARROW_DEVICE_HEAP)", size, shmemi_gpu.max - it.from);
    } else if (it.from + off + size > it.backed && !grow(call, size, it.from + off + size)) {
        shmemi_alloc_put(it.alloc, off);
    } else {
        p = address(off);
        it.live++;
    }
    pthread_mutex_unlock(&it.lock);
    if (p && zero && shmemi_gpu_set(p, 0, size))
        shmemi_fatal(call, "%zu bytes of device memory cannot be cleared", size);
    shmemi_barrier_all(call);
    return p;
}

/*
 * What is unused at the end goes back, but for one step, so that a program that frees and allocates in turn keeps it; and but
 * for what NICs have registered.
 */
static void shrink(void)
{
    size_t keep = 2 * shmemi_round_up(shmemi_env.device_grow + 1, SHMEMI_GPU_GRANULE), end;

    if (shmemi_gpu.sharing == SHMEMI_GPU_IPC || shmemi_net.up || it.backed - it.from <= keep)
        return;
    end = it.from + shmemi_alloc_end(it.alloc);
    if (it.backed - end <= keep)
        return;
    end = shmemi_gpu_unback(shmemi_round_up(end + keep / 2, SHMEMI_GPU_GRANULE));
    if (end == it.backed)
        return;
    it.backed = end > it.from ? end : it.from;
    shmemi.dheap_len = it.backed;
    if (shmemi_devmem_publish())
        shmemi_fatal("shmem_free", "the smaller device heap cannot be made known to kernels");
}

void shmemi_devmem_release(const char *call, void *ptr)
{
    size_t off = (uintptr_t)ptr - shmemi.dheap_base, start = 0, size = 0;
    int rc;

    shmemi_barrier_all(call); /* no PE still uses the block */
    pthread_mutex_lock(&it.lock);
    rc = off < it.from ? -EINVAL : shmemi_alloc_put(it.alloc, off - it.from);
    if (!rc)
        shrink();
    pthread_mutex_unlock(&it.lock);
    if (!rc)
        return;
    if (!shmemi_devmem_find(off, &start, &size))
        shmemi_fatal(call, "%p is not the start of a block: it lies %zu bytes into one of %zu bytes of device memory", ptr,
                     off - start, size);
    shmemi_fatal(call, "%p (device heap offset %zu) is not an allocated block: was it freed before?", ptr, off);
}

/* Never in place: it is rare, and a copy inside the device is quick. */
void *shmemi_devmem_reallocate(const char *call, void *ptr, size_t size)
{
    size_t off = (uintptr_t)ptr - shmemi.dheap_base, start = 0, old = 0;
    void *fresh;

    if (shmemi_devmem_find(off, &start, &old) || start != off)
        shmemi_fatal(call, "%p (device heap offset %zu) is not an allocated block", ptr, off);
    if (size) {
        fresh = shmemi_devmem_allocate(call, size, BLOCK_ALIGN, false);
        if (!fresh)
            return NULL;
        if (shmemi_gpu_copy(fresh, ptr, old < size ? old : size, true))
            shmemi_fatal(call, "%zu bytes of device memory cannot be copied", old < size ? old : size);
    } else {
        fresh = NULL;
    }
    shmemi_devmem_release(call, ptr);
    return fresh;
}

SHMEMI_API(void *, shmemx_malloc_device, (size_t size))
{
    return shmemi_devmem_allocate("shmemx_malloc_device", size, BLOCK_ALIGN, false);
}

SHMEMI_API(void *, shmemx_calloc_device, (size_t count, size_t size))
{
    return shmemi_devmem_allocate("shmemx_calloc_device", shmemi_bytes(count, size), BLOCK_ALIGN, true);
}

SHMEMI_API(void *, shmemx_align_device, (size_t alignment, size_t size))
{
    return shmemi_devmem_allocate("shmemx_align_device", size, alignment, false);
}

SHMEMI_API(void, shmemx_free_device, (void *ptr))
{
    shmemi_check_init("shmemx_free_device");
    if (!ptr)
        return;
    if (!shmemi_in_device_heap(ptr))
        shmemi_fatal("shmemx_free_device", "%p is not in the device heap", ptr);
    shmemi_devmem_release("shmemx_free_device", ptr);
}
