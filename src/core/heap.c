/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * heap.c - shmem_malloc and its relatives (specification 1.6, section 9.3).
 *
 * Every PE runs the same deterministic allocator on the same sequence of
 * calls, so offsets agree without a message; the barrier at the end only makes sure
 * that every PE has come before the block is used.
 */
#include "heap.h"

#include "alloc.h"
#include "check.h"
#include "devmem.h"
#include "net.h"
#include "node.h"
#include "team.h"
#include "transports/shm/shm.h"
#include "wait.h"

#include <shmemx.h>

#include <errno.h>
#include <pthread.h>
#include <string.h>

static struct shmemi_alloc *heap;
static pthread_mutex_t heap_lock = PTHREAD_MUTEX_INITIALIZER;
static size_t top;                /* where the last block ended when the heap was fullest */
static unsigned collective_count; /* allocation calls so far, the same on every PE */

int shmemi_heap_init(void)
{
    collective_count = 0;
    top = 0;
    return shmemi_alloc_create(shmemi.heap_len, SHMEMI_SHM_ALIGN, &heap);
}

void shmemi_heap_fini(void)
{
    shmemi_alloc_destroy(heap);
    heap = NULL;
}

int shmemi_heap_find(size_t off, size_t *start_out, size_t *size_out)
{
    int rc;

    pthread_mutex_lock(&heap_lock);
    rc = shmemi_alloc_find(heap, off, start_out, size_out);
    pthread_mutex_unlock(&heap_lock);
    return rc;
}

size_t shmemi_heap_top(void)
{
    return top;
}

static void *address(size_t off)
{
    return off == SHMEMI_ALLOC_FAIL ? NULL : (void *)(shmemi.heap_base + off);
}

static void compare(const char *call, size_t size, size_t theirs, int pe)
{
    if (theirs != size)
        shmemi_fatal(call, "PEs disagree: %zu bytes here, %zu bytes on PE %d", size, theirs, pe);
}

/*
 * MARROW_CHECK=1: PEs that disagree about what they allocate are told, instead of silently having
 * different heaps.  Each call has one of two words, by parity: a PE cannot be two calls ahead.  Other nodes are
 * compared through PE 0, which one PE of each asks.
 */
static void barrier_and_compare(const char *call, size_t size)
{
    unsigned slot = collective_count++ & 1;
    size_t theirs;

    SHMEMI_ST_RLX(&shmemi.my_ctl->alloc_size[slot], size);
    shmemi_barrier_all(call);
    if (!shmemi.check_blocks)
        return;
    for (int i = 0; i < shmemi.n_local; i++) {
        int pe = shmemi.local_pes[i];

        compare(call, size, SHMEMI_LD_RLX(&shmemi.peers[pe].ctl->alloc_size[slot]), pe);
    }
    if (shmemi.my_local || shmemi.peers[0].ctl)
        return;
    shmemi_net_block_read(0, &shmemi.my_ctl->alloc_size[slot], &theirs, sizeof theirs, call);
    compare(call, size, theirs, 0);
}

/* Caller holds the lock. */
static void note_end(size_t end)
{
    if (end <= top)
        return;
    top = end;
    shmemi_devmem_host_heap(top);
}

static size_t get_block(size_t size, size_t align)
{
    size_t off;

    pthread_mutex_lock(&heap_lock);
    off = shmemi_alloc_get(heap, size, align);
    note_end(off == SHMEMI_ALLOC_FAIL ? 0 : off + size);
    pthread_mutex_unlock(&heap_lock);
    return off;
}

/* NULL is an answer, but a program that does not look at it has a hard time: PE 0 says so, the first time. */
static void say_full(const char *call, size_t size)
{
    static bool said;
    enum shmemi_log_level level = said ? SHMEMI_LOG_INFO : SHMEMI_LOG_WARN;
    struct shmemi_alloc_stats stats;

    if (shmemi.my_pe != 0)
        return;
    said = true;
    pthread_mutex_lock(&heap_lock);
    shmemi_alloc_stats(heap, &stats);
    pthread_mutex_unlock(&heap_lock);
    shmemi_log(level, call, "%zu bytes: there is no room, the result is NULL; the heap has %zu bytes a PE (SHMEM_SYMMETRIC_SIZE), "
               "of which %zu are in use and %zu free in one piece", size, stats.size, stats.used_bytes, stats.largest_free);
}

static void *allocate(const char *call, size_t size, size_t align)
{
    size_t off;

    shmemi_check_init(call);
    if (size == 0)
        return NULL;
    off = get_block(size, align);
    if (off == SHMEMI_ALLOC_FAIL)
        say_full(call, size);
    barrier_and_compare(call, size);
    return address(off);
}

static size_t own_offset(const char *call, const void *ptr)
{
    size_t off = (uintptr_t)ptr - shmemi.heap_base;

    if (off >= shmemi.heap_len)
        shmemi_fatal(call, "%p is not in the symmetric heap [%p, %p)", ptr, (void *)shmemi.heap_base,
                     (void *)(shmemi.heap_base + shmemi.heap_len));
    return off;
}

SHMEMI_NORETURN static void not_a_block(const char *call, const void *ptr, size_t off)
{
    size_t start, size;

    if (!shmemi_heap_find(off, &start, &size))
        shmemi_fatal(call, "%p is not the start of a block: it lies %zu bytes into one of %zu bytes", ptr, off - start,
                     size);
    shmemi_fatal(call, "%p (heap offset %zu) is not an allocated block: was it freed before?", ptr, off);
}

static void release(const char *call, void *ptr)
{
    size_t off = own_offset(call, ptr);
    int rc;

    pthread_mutex_lock(&heap_lock);
    rc = shmemi_alloc_put(heap, off);
    pthread_mutex_unlock(&heap_lock);
    if (rc)
        not_a_block(call, ptr, off);
}

SHMEMI_API(void *, shmem_malloc, (size_t size))
{
    return allocate("shmem_malloc", size, SHMEMI_ALLOC_MIN_ALIGN);
}

SHMEMI_API(void *, shmem_malloc_with_hints, (size_t size, long hints))
{
    const long known = SHMEM_MALLOC_ATOMICS_REMOTE | SHMEM_MALLOC_SIGNAL_REMOTE | SHMEMX_MALLOC_DEVICE;

    /* Garbage must not lead to memory that the CPU cannot touch. */
    if (shmemi_unlikely(hints & ~known)) {
        shmemi_warn("shmem_malloc_with_hints", "hints %#lx hold unknown bits %#lx: none of them is followed",
                    (unsigned long)hints, (unsigned long)(hints & ~known));
        hints = 0;
    }
    if (hints & SHMEMX_MALLOC_DEVICE)
        return shmemi_devmem_allocate("shmem_malloc_with_hints", size, SHMEMI_ALLOC_MIN_ALIGN, false);
    return allocate("shmem_malloc_with_hints", size, SHMEMI_ALLOC_MIN_ALIGN);
}

SHMEMI_API(void *, shmem_align, (size_t alignment, size_t size))
{
    shmemi_check_init("shmem_align");
    /* Less than a pointer's is undefined by the specification; other libraries take any power of two, and so do old codes. */
    if (alignment == 0 || (alignment & (alignment - 1)))
        return NULL;
    if (alignment < SHMEMI_ALLOC_MIN_ALIGN)
        alignment = SHMEMI_ALLOC_MIN_ALIGN;
    return allocate("shmem_align", size, alignment);
}

SHMEMI_API(void *, shmem_calloc, (size_t count, size_t size))
{
    size_t bytes, off;

    shmemi_check_init("shmem_calloc");
    if (count == 0 || size == 0)
        return NULL;
    if (__builtin_mul_overflow(count, size, &bytes))
        bytes = SIZE_MAX; /* more than any heap: NULL on every PE, through the barrier all the same */
    off = bytes == SIZE_MAX ? SHMEMI_ALLOC_FAIL : get_block(bytes, SHMEMI_ALLOC_MIN_ALIGN);
    if (off != SHMEMI_ALLOC_FAIL)
        memset(address(off), 0, bytes);
    else
        say_full("shmem_calloc", bytes);
    barrier_and_compare("shmem_calloc", bytes);
    return address(off);
}

SHMEMI_API(void, shmem_free, (void *ptr))
{
    shmemi_check_init("shmem_free");
    if (!ptr)
        return;
    if (shmemi_in_device_heap(ptr)) {
        shmemi_devmem_release("shmem_free", ptr);
        return;
    }
    /* On entry, so that no PE still uses the block (section 9.3.2). */
    barrier_and_compare("shmem_free", own_offset("shmem_free", ptr));
    release("shmem_free", ptr);
}

/* Moves a block that cannot grow where it is.  NULL: no room, and the old block stays. */
static void *move_block(const char *call, void *ptr, size_t old_size, size_t size)
{
    void *fresh = address(get_block(size, SHMEMI_ALLOC_MIN_ALIGN));

    if (!fresh) {
        say_full(call, size);
        return NULL;
    }
    memcpy(fresh, ptr, old_size < size ? old_size : size);
    release(call, ptr);
    return fresh;
}

static void *reallocate(const char *call, void *ptr, size_t size)
{
    size_t off = own_offset(call, ptr), start, old_size;
    void *result = ptr;
    int rc;

    if (shmemi_heap_find(off, &start, &old_size) || start != off)
        not_a_block(call, ptr, off);
    barrier_and_compare(call, size); /* no PE may still use what is about to move */
    pthread_mutex_lock(&heap_lock);
    rc = shmemi_alloc_resize(heap, off, size);
    note_end(rc ? 0 : off + size);
    pthread_mutex_unlock(&heap_lock);
    if (rc)
        result = move_block(call, ptr, old_size, size);
    shmemi_barrier_all(call);
    return result;
}

SHMEMI_API(void *, shmem_realloc, (void *ptr, size_t size))
{
    shmemi_check_init("shmem_realloc");
    if (!ptr)
        return allocate("shmem_realloc", size, SHMEMI_ALLOC_MIN_ALIGN);
    if (shmemi_in_device_heap(ptr))
        return shmemi_devmem_reallocate("shmem_realloc", ptr, size);
    if (size)
        return reallocate("shmem_realloc", ptr, size);
    barrier_and_compare("shmem_realloc", own_offset("shmem_realloc", ptr));
    release("shmem_realloc", ptr);
    return NULL;
}

/* Deprecated names of the same (specification 1.6, annex on deprecated API). */
SHMEMI_API(void *, shmalloc, (size_t size))
{
    return allocate("shmalloc", size, SHMEMI_ALLOC_MIN_ALIGN);
}

SHMEMI_API(void, shfree, (void *ptr))
{
    pshmem_free(ptr);
}

SHMEMI_API(void *, shrealloc, (void *ptr, size_t size))
{
    return pshmem_realloc(ptr, size);
}

SHMEMI_API(void *, shmemalign, (size_t alignment, size_t size))
{
    return pshmem_align(alignment, size);
}
