/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * devmem_rma.c - host calls on device memory.
 *
 * Data moves by the copy engine, on one stream and so in the order of the calls; a signal in host memory is stored when the
 * copies before it are complete, one in device memory follows them on the stream.  Atomics are a kernel of one thread, but
 * where the job's NICs do all of them: then they go through this PE's NIC, to its own memory and its node's too.
 */
#include "devmem_rma.h"

#include "amo.h"
#include "check.h"
#include "net.h"
#include "transports/cuda/gpu.h"
#include "transports/cuda/kernel.h"
#include "wait.h"

#include <string.h>

#define NEAR_STACK ((uintptr_t)1 << 16)

bool shmemi_devmem_holds(const void *p)
{
    uintptr_t a = (uintptr_t)p, here = (uintptr_t)__builtin_frame_address(0);

    if (shmemi_in_device_heap(p))
        return true;
    if (a - here < NEAR_STACK || a - shmemi.heap_base < shmemi.heap_len || a - shmemi.data_base < shmemi.data_len)
        return false;
    return shmemi_gpu_is_device_pointer(p);
}

/* The arguments of a call on the device heap. */
static void check_device(const void *addr, size_t len, int pe, const char *call)
{
    uintptr_t off = (uintptr_t)addr - shmemi.dheap_base;
    size_t start, size;

    shmemi_check_pe(call, pe);
    if (len > shmemi.dheap_len - off)
        shmemi_bad_range(call, addr, len, pe);
    if (shmemi.check_blocks) {
        if (shmemi_devmem_find(off, &start, &size))
            shmemi_fatal(call, "address %p (device heap offset %zu, %zu bytes, PE %d) lies in no allocated block", addr,
                         (size_t)off, len, pe);
        if (len > start + size - off)
            shmemi_fatal(call, "%zu bytes at %p for PE %d run %zu bytes past the end of their block of %zu bytes of device "
                         "memory", len, addr, pe, len - (start + size - off), size);
    }
}

bool shmemi_devmem_far(const void *addr, size_t len, int pe, const char *call)
{
    void *there;

    if (!shmemi_net.up)
        return false;
    if (!shmemi_in_device_heap(addr))
        return !shmemi_reach(addr, len, pe, call, &there);
    check_device(addr, len, pe, call);
    return !shmemi.peers[pe].dheap;
}

/* Where the bytes lie here when they are in the device heap; NULL when they are not. */
static void *device_address(const void *addr, size_t len, int pe, const char *call)
{
    uintptr_t off = (uintptr_t)addr - shmemi.dheap_base;

    if (off >= shmemi.dheap_len)
        return NULL;
    check_device(addr, len, pe, call);
    if (!shmemi.peers[pe].dheap)
        shmemi_not_reachable(call, addr, pe);
    return (void *)(shmemi.peers[pe].dheap + off);
}

/* The same, or the host's address of it. */
void *shmemi_devmem_address(const void *addr, size_t len, int pe, const char *call)
{
    void *p = device_address(addr, len, pe, call);

    return p ? p : shmemi_remote(addr, len, pe, call);
}

static void copied(int rc, const void *a, const void *b, size_t len, int pe, const char *call)
{
    if (rc)
        shmemi_fatal(call, "%zu bytes between %p and %p (PE %d): the GPU's copy failed", len, a, b, pe);
}

bool shmemi_devmem_put(void *dest, const void *source, size_t len, int pe, bool wait, const char *call)
{
    void *to;

    if (len == 0 || (!shmemi_in_device_heap(dest) && !shmemi_devmem_holds(source)) || shmemi_devmem_far(dest, len, pe, call))
        return false;
    to = shmemi_devmem_address(dest, len, pe, call);
    copied(shmemi_gpu_copy(to, source, len, wait), dest, source, len, pe, call);
    shmemi_wake_peer(shmemi.peers[pe].ctl);
    return true;
}

bool shmemi_devmem_get(void *dest, const void *source, size_t len, int pe, bool wait, const char *call)
{
    if (len == 0 || (!shmemi_in_device_heap(source) && !shmemi_devmem_holds(dest)) || shmemi_devmem_far(source, len, pe, call))
        return false;
    copied(shmemi_gpu_copy(dest, shmemi_devmem_address(source, len, pe, call), len, wait), source, dest, len, pe, call);
    return true;
}

bool shmemi_devmem_strided(bool put, void *dest, const void *source, size_t dst, size_t sst, size_t n, size_t block,
                           size_t span, int pe, const char *call)
{
    const void *symmetric = put ? dest : source;

    if ((!shmemi_in_device_heap(symmetric) && !shmemi_devmem_holds(put ? source : dest)) ||
        shmemi_devmem_far(symmetric, span, pe, call))
        return false;
    if (put)
        dest = shmemi_devmem_address(dest, span, pe, call);
    else
        source = shmemi_devmem_address(source, span, pe, call);
    copied(shmemi_gpu_copy2d(dest, dst, source, sst, block, n), symmetric, put ? source : dest, n * block, pe, call);
    if (put)
        shmemi_wake_peer(shmemi.peers[pe].ctl);
    return true;
}

/* The data of a put with signal, complete at the peer when it returns: the signal goes another way. */
static void put_data(shmem_ctx_t ctx, void *dest, const void *source, size_t len, int pe, const char *call)
{
    if (shmemi_devmem_far(dest, len, pe, call)) {
        shmemi_net_put(ctx, dest, source, len, pe, false, call);
        shmemi_net_quiet_pe(ctx, pe, call);
    } else if (!shmemi_devmem_put(dest, source, len, pe, true, call)) {
        memmove(shmemi_remote(dest, len, pe, call), source, len);
    }
}

/* Where the job's NICs do all atomics, do they this word's, too?  One that they do not know is the GPUs' alone. */
static bool nic_changes(const void *word, int pe)
{
    return shmemi_net.nic_atomics && (!shmemi_in_device_heap(word) || shmemi_net_reaches(word, pe));
}

static void signal_word(shmem_ctx_t ctx, uint64_t *sig_addr, uint64_t signal, int sig_op, int pe, const char *call)
{
    if (shmemi_devmem_far(sig_addr, sizeof signal, pe, call) || nic_changes(sig_addr, pe))
        shmemi_net_put_signal(ctx, NULL, NULL, 0, sig_addr, signal, sig_op, pe, true, call);
    else
        shmemi_amo(SHMEM_CTX_DEFAULT, sig_op == SHMEM_SIGNAL_SET ? SHMEMI_AMO_SET : SHMEMI_AMO_ADD, sig_addr, &signal, NULL,
                   NULL, sizeof signal, pe, false, call);
}

bool shmemi_devmem_put_signal(shmem_ctx_t ctx, void *dest, const void *source, size_t len, uint64_t *sig_addr,
                              uint64_t signal, int sig_op, int pe, const char *call)
{
    bool far_word = shmemi_devmem_far(sig_addr, sizeof signal, pe, call);
    bool far_data = len && shmemi_devmem_far(dest, len, pe, call);

    if ((far_word && (!len || far_data)) ||
        !(shmemi_in_device_heap(sig_addr) || (len && (shmemi_in_device_heap(dest) || shmemi_devmem_holds(source)))))
        return false;
    if (sig_op != SHMEM_SIGNAL_SET && sig_op != SHMEM_SIGNAL_ADD)
        shmemi_fatal(call, "sig_op %d is neither SHMEM_SIGNAL_SET nor SHMEM_SIGNAL_ADD", sig_op);
    shmemi_check_aligned(sig_addr, sizeof *sig_addr, call);
    if (len)
        put_data(ctx, dest, source, len, pe, call);
    signal_word(ctx, sig_addr, signal, sig_op, pe, call);
    return true;
}

bool shmemi_devmem_p(void *dest, const void *value, size_t size, int pe, const char *call)
{
    void *to;

    if (shmemi_devmem_far(dest, size, pe, call))
        return false;
    to = device_address(dest, size, pe, call);
    if (!to)
        return false;
    copied(shmemi_gpu_copy_value(to, value, size), dest, value, size, pe, call);
    return true;
}

bool shmemi_devmem_g(void *value_out, const void *source, size_t size, int pe, const char *call)
{
    const void *from;

    if (shmemi_devmem_far(source, size, pe, call))
        return false;
    from = device_address(source, size, pe, call);
    if (!from)
        return false;
    copied(shmemi_gpu_copy(value_out, from, size, true), source, value_out, size, pe, call);
    return true;
}

uint64_t shmemi_devmem_load(const void *addr, size_t size)
{
    uint64_t value = 0;

    copied(shmemi_gpu_copy(&value, addr, size, true), addr, &value, size, shmemi.my_pe, "a wait");
    return value;
}

bool shmemi_devmem_amo(int op, void *dest, const void *operand, const void *cond, void *old_out, size_t size, int pe,
                       const char *call)
{
    uint64_t old = 0, v = 0, c = 0;
    void *word;

    if (shmemi_devmem_far(dest, size, pe, call) || nic_changes(dest, pe))
        return false;
    word = device_address(dest, size, pe, call);
    if (!word)
        return false;
    if (operand)
        memcpy(&v, operand, size);
    if (cond)
        memcpy(&c, cond, size);
    if (op == SHMEMI_AMO_SET)
        copied(shmemi_gpu_copy_value(word, &v, size), dest, operand, size, pe, call);
    else if (op == SHMEMI_AMO_FETCH)
        copied(shmemi_gpu_copy(&old, word, size, true), dest, old_out, size, pe, call);
    else if (shmemi_kernel_amo(op, word, v, c, old_out ? &old : NULL, size))
        shmemi_fatal(call, "atomic operation on device memory at %p (PE %d): %s", dest, pe, shmemi_kernel_why());
    if (old_out && shmemi_devmem_holds(old_out)) /* which the CPU cannot store to */
        copied(shmemi_gpu_copy_value(old_out, &old, size), dest, old_out, size, pe, call);
    else if (old_out)
        memcpy(old_out, &old, size);
    return true;
}

void shmemi_devmem_quiet(const char *call)
{
    if (shmemi_gpu_flush())
        shmemi_fatal(call, "copies to device memory have failed");
}
