/* SPDX-License-Identifier: BSD-3-Clause */
/* check.c - says what is wrong with the arguments of a call, and ends the job. */
#include "check.h"

#include "devmem.h"
#include "heap.h"
#include "net.h"

void shmemi_not_initialized(const char *call)
{
    if (shmemi.finalized_once)
        shmemi_fatal(call, "called after shmem_finalize");
    shmemi_fatal(call, "called before shmem_init");
}

void shmemi_bad_pe(const char *call, int pe)
{
    shmemi_check_init(call);
    shmemi_fatal(call, "PE %d is out of range: the job has PEs 0 to %d", pe, shmemi.n_pes - 1);
}

void shmemi_bad_range(const char *call, const void *addr, size_t len, int pe)
{
    uintptr_t a = (uintptr_t)addr;

    shmemi_check_init(call);
    if (a - shmemi.heap_base < shmemi.heap_len)
        shmemi_fatal(call, "%zu bytes at %p (heap offset %zu) for PE %d run past the end of the symmetric heap of %zu bytes",
                     len, addr, (size_t)(a - shmemi.heap_base), pe, shmemi.heap_len);
    if (a - shmemi.data_base < shmemi.data_len)
        shmemi_fatal(call, "%zu bytes at %p for PE %d run past the end of the executable's static data", len, addr, pe);
    if (shmemi_in_device_heap(addr))
        shmemi_fatal(call, "%zu bytes at %p for PE %d run past the end of the device heap, of which %zu bytes are in use", len,
                     addr, pe, shmemi.dheap_len);
    shmemi_fatal(call, "address %p (%zu bytes, PE %d) is neither in the symmetric heap [%p, %p) nor in the executable's "
                 "static data [%p, %p)%s", addr, len, pe, (void *)shmemi.heap_base,
                 (void *)(shmemi.heap_base + shmemi.heap_len), (void *)shmemi.data_base,
                 (void *)(shmemi.data_base + shmemi.data_len),
                 shmemi.data_len ? "" : ", which is not shared (MARROW_STATIC_DATA)");
}

void shmemi_not_reachable(const char *call, const void *addr, int pe)
{
    if ((uintptr_t)addr - shmemi.data_base < shmemi.data_len && shmemi.peers[pe].heap)
        shmemi_fatal(call, "static data at %p is not symmetric with PE %d: that PE runs another executable, or does not "
                     "share its static data (MARROW_STATIC_DATA)", addr, pe);
    if (shmemi_in_device_heap(addr) && shmemi.peers[pe].dheap)
        shmemi_fatal(call, "address %p is device memory, which this call does not take", addr);
    if (shmemi_in_device_heap(addr) && shmemi_net_reaches(addr, pe))
        shmemi_fatal(call, "%p is device memory of PE %d, to which only the NIC leads, and kernels have no NIC here (MARROW_LOG=info "
                     "says why); calls of the host (shmem_putmem) reach it", addr, pe);
    if (shmemi_in_device_heap(addr) && !shmemi.peers[pe].heap)
        shmemi_fatal(call, "%p is device memory of PE %d, which is on another node, and its NIC has not registered it (that PE "
                     "has said why): load nvidia-peermem, or use a driver and a kernel with dma-bufs; or keep in host memory "
                     "(shmem_malloc) what nodes exchange", addr, pe);
    if (shmemi_in_device_heap(addr))
        shmemi_fatal(call, "%p is device memory of PE %d, whose GPU gives this PE's no peer access (shmem-info -t shows which "
                     "do): let both PEs use GPUs that do, or exchange through host memory (shmem_malloc)", addr, pe);
    shmemi_fatal(call, "memory of PE %d at %p is not reachable from this PE: that PE is on another node, and this job has no "
                 "NIC open", pe, addr);
}

void shmemi_elsewhere(const char *call, const void *addr, size_t len, int pe)
{
    if (!shmemi.gpu_up || !shmemi_in_device_heap(addr))
        shmemi_bad_range(call, addr, len, pe);
}

void shmemi_misaligned(const char *call, const void *addr, size_t size)
{
    shmemi_fatal(call, "address %p is not aligned to %zu bytes, as an atomic access must be", addr, size);
}

void shmemi_check_block(const char *call, const void *addr, size_t len, int pe)
{
    size_t off = (uintptr_t)addr - shmemi.heap_base, start, size;

    if (shmemi_heap_find(off, &start, &size))
        shmemi_fatal(call, "address %p (heap offset %zu, %zu bytes, PE %d) lies in no allocated block of the heap", addr,
                     off, len, pe);
    if (len > start + size - off)
        shmemi_fatal(call, "%zu bytes at %p for PE %d run %zu bytes past the end of their block of %zu bytes", len, addr,
                     pe, len - (start + size - off), size);
}
