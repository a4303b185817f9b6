/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rma.c - put and get in all their untyped forms, fence and quiet (specification 1.6, sections 9.5 and 9.12).
 *
 * Order on load/store paths: stores of one PE become visible in program order with a release fence between
 * them, which is all that fence needs.  Quiet is a full fence: after it, what this PE reads was
 * written no earlier than its puts were visible.
 */
#include "rma.h"

#include "log.h"
#include "net.h"

#define ALIGNED(a, b, n) ((((uintptr_t)(a) | (uintptr_t)(b)) & ((n) - 1)) == 0)

/*
 * Flags are often put with the general calls, so an aligned word goes as one store.  memmove, as a PE
 * may put to itself from overlapping memory.
 */
SHMEMI_INLINE bool copy_word(void *to, const void *from, size_t len)
{
    if (len == 8 && ALIGNED(to, from, 8))
        SHMEMI_ST_RLX((uint64_t *)to, *(const uint64_t *)from);
    else if (len == 4 && ALIGNED(to, from, 4))
        SHMEMI_ST_RLX((uint32_t *)to, *(const uint32_t *)from);
    else
        return false;
    return true;
}

SHMEMI_INLINE void copy(void *to, const void *from, size_t len)
{
    if (!copy_word(to, from, len))
        memmove(to, from, len);
}

/* ---- put and get ----
 *
 * The shortest way calls nothing but what it ends with, so that it keeps nothing for afterwards: words between PEs of a
 * node.  All else goes the other way with the arguments as they came.
 */

SHMEMI_INLINE void odd_put(shmem_ctx_t ctx, void *dest, const void *source, size_t len, int world, bool nbi,
                           const char *call)
{
    void *there;

    if (len == 0) {
        shmemi_check_pe(call, world);
        return;
    }
    if (shmemi.gpu_up && shmemi_devmem_put(dest, source, len, world, !nbi, call))
        return;
    if (!shmemi_reach(dest, len, world, call, &there)) {
        shmemi_net_put(ctx, dest, source, len, world, nbi, call);
        return;
    }
    copy(there, source, len);
    shmemi_wake_peer(shmemi.peers[world].ctl);
}

SHMEMI_COLD static void put_odd(shmem_ctx_t ctx, void *dest, const void *source, size_t len, int world, const char *call)
{
    odd_put(ctx, dest, source, len, world, false, call);
}

SHMEMI_COLD static void put_nbi_odd(shmem_ctx_t ctx, void *dest, const void *source, size_t len, int world,
                                    const char *call)
{
    odd_put(ctx, dest, source, len, world, true, call);
}

SHMEMI_NOINLINE static void put_bytes(void *there, const void *source, size_t len, struct shmemi_pe_ctl *ctl)
{
    memmove(there, source, len);
    shmemi_wake_peer(ctl);
}

enum way { ODD, NEAR, FAR };

/* As shmemi_reach_plain, but tells the far way, where only a NIC leads, from those that have to be looked at closer. */
SHMEMI_INLINE enum way way_to(const void *addr, size_t len, int world, void **there)
{
    uintptr_t off = (uintptr_t)addr - shmemi.heap_base, base;

    if (shmemi_unlikely((unsigned)world >= (unsigned)shmemi.n_pes || shmemi.odd_memory))
        return ODD;
    if (shmemi_likely(off < shmemi.heap_len)) {
        if (shmemi_unlikely(len > shmemi.heap_len - off))
            return ODD;
        base = shmemi.peers[world].heap;
    } else {
        off = (uintptr_t)addr - shmemi.data_base;
        if (shmemi_unlikely(off >= shmemi.data_len || len > shmemi.data_len - off))
            return ODD;
        base = shmemi.peers[world].data;
    }
    *there = (void *)(base + off);
    return shmemi_likely(base != 0) ? NEAR : FAR;
}

SHMEMI_COLD static void put_far(shmem_ctx_t ctx, void *dest, const void *source, size_t len, int world, const char *call)
{
    shmemi_net_put(ctx, dest, source, len, world, false, call);
}

SHMEMI_COLD static void put_nbi_far(shmem_ctx_t ctx, void *dest, const void *source, size_t len, int world,
                                    const char *call)
{
    shmemi_net_put(ctx, dest, source, len, world, true, call);
}

SHMEMI_INLINE void put(shmem_ctx_t ctx, void *dest, const void *source, size_t len, int world, bool nbi, const char *call)
{
    void *there;
    enum way way = len ? way_to(dest, len, world, &there) : ODD;

    if (shmemi_unlikely(way == ODD))
        (nbi ? put_nbi_odd : put_odd)(ctx, dest, source, len, world, call);
    else if (shmemi_unlikely(way == FAR))
        (nbi ? put_nbi_far : put_far)(ctx, dest, source, len, world, call);
    else if (copy_word(there, source, len))
        shmemi_wake_peer(shmemi.peers[world].ctl);
    else
        put_bytes(there, source, len, shmemi.peers[world].ctl);
}

SHMEMI_NOINLINE static void put_ctx(shmem_ctx_t ctx, void *dest, const void *source, size_t len, int pe, const char *call)
{
    put(ctx, dest, source, len, shmemi_ctx_lookup_pe(ctx, pe, call), false, call);
}

SHMEMI_NOINLINE static void put_nbi_ctx(shmem_ctx_t ctx, void *dest, const void *source, size_t len, int pe,
                                        const char *call)
{
    put(ctx, dest, source, len, shmemi_ctx_lookup_pe(ctx, pe, call), true, call);
}

void shmemi_put(shmem_ctx_t ctx, void *dest, const void *source, size_t len, int pe, const char *call)
{
    if (shmemi_unlikely(ctx != SHMEM_CTX_DEFAULT))
        put_ctx(ctx, dest, source, len, pe, call);
    else
        put(SHMEM_CTX_DEFAULT, dest, source, len, pe, false, call);
}

void shmemi_put_nbi(shmem_ctx_t ctx, void *dest, const void *source, size_t len, int pe, const char *call)
{
    if (shmemi_unlikely(ctx != SHMEM_CTX_DEFAULT))
        put_nbi_ctx(ctx, dest, source, len, pe, call);
    else
        put(SHMEM_CTX_DEFAULT, dest, source, len, pe, true, call);
}

SHMEMI_INLINE void odd_get(shmem_ctx_t ctx, void *dest, const void *source, size_t len, int world, bool nbi,
                           const char *call)
{
    void *there;

    if (len == 0) {
        shmemi_check_pe(call, world);
        return;
    }
    if (shmemi.gpu_up && shmemi_devmem_get(dest, source, len, world, !nbi, call))
        return;
    if (!shmemi_reach(source, len, world, call, &there))
        shmemi_net_get(ctx, dest, source, len, world, nbi, call);
    else
        copy(dest, there, len);
}

SHMEMI_COLD static void get_odd(shmem_ctx_t ctx, void *dest, const void *source, size_t len, int world, const char *call)
{
    odd_get(ctx, dest, source, len, world, false, call);
}

SHMEMI_COLD static void get_nbi_odd(shmem_ctx_t ctx, void *dest, const void *source, size_t len, int world,
                                    const char *call)
{
    odd_get(ctx, dest, source, len, world, true, call);
}

SHMEMI_COLD static void get_far(shmem_ctx_t ctx, void *dest, const void *source, size_t len, int world, const char *call)
{
    shmemi_net_get(ctx, dest, source, len, world, false, call);
}

SHMEMI_COLD static void get_nbi_far(shmem_ctx_t ctx, void *dest, const void *source, size_t len, int world,
                                    const char *call)
{
    shmemi_net_get(ctx, dest, source, len, world, true, call);
}

SHMEMI_INLINE void get(shmem_ctx_t ctx, void *dest, const void *source, size_t len, int world, bool nbi, const char *call)
{
    void *there;
    enum way way = len ? way_to(source, len, world, &there) : ODD;

    if (shmemi_unlikely(way == ODD))
        (nbi ? get_nbi_odd : get_odd)(ctx, dest, source, len, world, call);
    else if (shmemi_unlikely(way == FAR))
        (nbi ? get_nbi_far : get_far)(ctx, dest, source, len, world, call);
    else
        copy(dest, there, len);
}

SHMEMI_NOINLINE static void get_ctx(shmem_ctx_t ctx, void *dest, const void *source, size_t len, int pe, const char *call)
{
    get(ctx, dest, source, len, shmemi_ctx_lookup_pe(ctx, pe, call), false, call);
}

SHMEMI_NOINLINE static void get_nbi_ctx(shmem_ctx_t ctx, void *dest, const void *source, size_t len, int pe,
                                        const char *call)
{
    get(ctx, dest, source, len, shmemi_ctx_lookup_pe(ctx, pe, call), true, call);
}

void shmemi_get(shmem_ctx_t ctx, void *dest, const void *source, size_t len, int pe, const char *call)
{
    if (shmemi_unlikely(ctx != SHMEM_CTX_DEFAULT))
        get_ctx(ctx, dest, source, len, pe, call);
    else
        get(SHMEM_CTX_DEFAULT, dest, source, len, pe, false, call);
}

void shmemi_get_nbi(shmem_ctx_t ctx, void *dest, const void *source, size_t len, int pe, const char *call)
{
    if (shmemi_unlikely(ctx != SHMEM_CTX_DEFAULT))
        get_nbi_ctx(ctx, dest, source, len, pe, call);
    else
        get(SHMEM_CTX_DEFAULT, dest, source, len, pe, true, call);
}

/* ---- one element, the other way ---- */

void shmemi_p_far(shmem_ctx_t ctx, void *dest, uint64_t bits, size_t size, int world, const char *call)
{
    void *there;

    if (shmemi_likely(way_to(dest, size, world, &there) == FAR)) {
        shmemi_net_p(ctx, dest, &bits, size, world, call);
        return;
    }
    if (shmemi_reach(dest, size, world, call, &there)) {
        shmemi_store_elem(there, &bits, size);
        shmemi_wake_peer(shmemi.peers[world].ctl);
        return;
    }
    if (shmemi_likely(!shmemi.gpu_up) || !shmemi_devmem_p(dest, &bits, size, world, call))
        shmemi_net_p(ctx, dest, &bits, size, world, call);
}

uint64_t shmemi_g_far(shmem_ctx_t ctx, const void *source, size_t size, int world, const char *call)
{
    uint64_t bits = 0;

    shmemi_get_far(ctx, &bits, source, size, world, call);
    return bits;
}

void shmemi_put_far(shmem_ctx_t ctx, void *dest, const void *value, size_t size, int world, const char *call)
{
    void *there;

    if (shmemi_reach(dest, size, world, call, &there)) {
        shmemi_store_elem(there, value, size);
        shmemi_wake_peer(shmemi.peers[world].ctl);
        return;
    }
    if (shmemi_likely(!shmemi.gpu_up) || !shmemi_devmem_p(dest, value, size, world, call))
        shmemi_net_put(ctx, dest, value, size, world, false, call);
}

void shmemi_get_far(shmem_ctx_t ctx, void *value_out, const void *source, size_t size, int world, const char *call)
{
    void *there;

    if (shmemi_reach(source, size, world, call, &there)) {
        shmemi_store_elem(value_out, there, size);
        return;
    }
    if (shmemi_likely(!shmemi.gpu_up) || !shmemi_devmem_g(value_out, source, size, world, call))
        shmemi_net_get(ctx, value_out, source, size, world, false, call);
}

/* Bytes from the first to the last element of `n` blocks of `block` bytes every `stride` bytes. */
static size_t span(const char *call, size_t n, size_t stride, size_t block)
{
    size_t bytes;

    if (__builtin_mul_overflow(n - 1, stride, &bytes) || __builtin_add_overflow(bytes, block, &bytes))
        shmemi_fatal(call, "%zu elements with a stride of %zu bytes exceed the address space", n, stride);
    return bytes;
}

static size_t bytes_of(const char *call, size_t n, size_t elem)
{
    size_t bytes;

    if (__builtin_mul_overflow(n, elem, &bytes))
        shmemi_fatal(call, "%zu elements of %zu bytes exceed the address space", n, elem);
    return bytes;
}

static void check_stride(const char *call, const char *name, ptrdiff_t stride, size_t least)
{
    if (shmemi_unlikely(stride < 1 || (size_t)stride < least))
        shmemi_fatal(call, "stride %s is %td: it must be at least %zu", name, stride, least);
}

static void copy_strided(char *to, size_t to_step, const char *from, size_t from_step, size_t n, size_t block)
{
    switch (block) {
    case 4:
        for (size_t i = 0; i < n; i++)
            memcpy(to + i * to_step, from + i * from_step, 4);
        break;
    case 8:
        for (size_t i = 0; i < n; i++)
            memcpy(to + i * to_step, from + i * from_step, 8);
        break;
    default:
        for (size_t i = 0; i < n; i++)
            memmove(to + i * to_step, from + i * from_step, block);
    }
}

/* All four strided forms: `n` blocks of `block` bytes; strides in bytes. */
static void strided(shmem_ctx_t ctx, bool put, void *dest, const void *source, size_t dst, size_t sst, size_t n,
                    size_t block, int pe, const char *call)
{
    int world = shmemi_ctx_world_pe(ctx, pe, call);
    void *there;

    if (n == 0 || block == 0) {
        shmemi_check_pe(call, world);
    } else if (shmemi_unlikely(shmemi.gpu_up) &&
               shmemi_devmem_strided(put, dest, source, dst, sst, n, block, span(call, n, put ? dst : sst, block), world, call)) {
        return;
    } else if (put && !shmemi_reach(dest, span(call, n, dst, block), world, call, &there)) {
        shmemi_net_put_strided(ctx, dest, dst, source, sst, n, block, world, call);
    } else if (put) {
        copy_strided(there, dst, source, sst, n, block);
        shmemi_wake_peer(shmemi.peers[world].ctl);
    } else if (!shmemi_reach(source, span(call, n, sst, block), world, call, &there)) {
        shmemi_net_get_strided(ctx, dest, dst, source, sst, n, block, world, call);
    } else {
        copy_strided(dest, dst, there, sst, n, block);
    }
}

static void strided_elements(shmem_ctx_t ctx, bool put, void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst,
                             size_t bsize, size_t nblocks, size_t elem, int pe, const char *call)
{
    if (nblocks && bsize) {
        check_stride(call, "dst", dst, bsize);
        check_stride(call, "sst", sst, bsize);
        strided(ctx, put, dest, source, bytes_of(call, (size_t)dst, elem), bytes_of(call, (size_t)sst, elem), nblocks,
                bytes_of(call, bsize, elem), pe, call);
    } else {
        strided(ctx, put, dest, source, 0, 0, 0, 0, pe, call);
    }
}

void shmemi_iput(shmem_ctx_t ctx, void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems,
                 size_t elem, int pe, const char *call)
{
    strided_elements(ctx, true, dest, source, dst, sst, 1, nelems, elem, pe, call);
}

void shmemi_iget(shmem_ctx_t ctx, void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems,
                 size_t elem, int pe, const char *call)
{
    strided_elements(ctx, false, dest, source, dst, sst, 1, nelems, elem, pe, call);
}

void shmemi_ibput(shmem_ctx_t ctx, void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize,
                  size_t nblocks, size_t elem, int pe, const char *call)
{
    strided_elements(ctx, true, dest, source, dst, sst, bsize, nblocks, elem, pe, call);
}

void shmemi_ibget(shmem_ctx_t ctx, void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t bsize,
                  size_t nblocks, size_t elem, int pe, const char *call)
{
    strided_elements(ctx, false, dest, source, dst, sst, bsize, nblocks, elem, pe, call);
}

void shmemi_signal_add_far(shmem_ctx_t ctx, uint64_t *sig_addr, uint64_t signal, int world, const char *call)
{
    shmemi_net_put_signal(ctx, NULL, NULL, 0, sig_addr, signal, SHMEM_SIGNAL_ADD, world, true, call);
}

SHMEMI_INLINE void odd_put_signal(shmem_ctx_t ctx, void *dest, const void *source, size_t len, uint64_t *sig_addr,
                                  uint64_t signal, int sig_op, int world, bool nbi, const char *call)
{
    void *there, *word;

    if (sig_op != SHMEM_SIGNAL_SET && sig_op != SHMEM_SIGNAL_ADD)
        shmemi_fatal(call, "sig_op %d is neither SHMEM_SIGNAL_SET nor SHMEM_SIGNAL_ADD", sig_op);
    if (shmemi.gpu_up && shmemi_devmem_put_signal(ctx, dest, source, len, sig_addr, signal, sig_op, world, call))
        return;
    if (!shmemi_reach(sig_addr, sizeof *sig_addr, world, call, &word)) {
        if (len)
            (void)shmemi_reach(dest, len, world, call, &there); /* its checks */
        shmemi_check_aligned(sig_addr, sizeof *sig_addr, call);
        shmemi_net_put_signal(ctx, dest, source, len, sig_addr, signal, sig_op, world, nbi, call);
        return;
    }
    shmemi_check_aligned(sig_addr, sizeof *sig_addr, call);
    if (len)
        copy(shmemi_remote(dest, len, world, call), source, len);
    shmemi_signal_near(ctx, word, sig_addr, signal, sig_op, world, call);
}

SHMEMI_COLD static void put_signal_odd(shmem_ctx_t ctx, void *dest, const void *source, size_t len, uint64_t *sig_addr,
                                       uint64_t signal, int sig_op, int world, const char *call)
{
    odd_put_signal(ctx, dest, source, len, sig_addr, signal, sig_op, world, false, call);
}

SHMEMI_COLD static void put_signal_nbi_odd(shmem_ctx_t ctx, void *dest, const void *source, size_t len,
                                           uint64_t *sig_addr, uint64_t signal, int sig_op, int world, const char *call)
{
    odd_put_signal(ctx, dest, source, len, sig_addr, signal, sig_op, world, true, call);
}

/* Release: who sees the signal with acquire sees the data. */
SHMEMI_INLINE void raise_signal(uint64_t *word, uint64_t signal, bool add, struct shmemi_pe_ctl *ctl)
{
    if (add)
        SHMEMI_ADD_ACQREL(word, signal);
    else
        SHMEMI_ST_REL(word, signal);
    shmemi_wake_peer(ctl);
}

SHMEMI_NOINLINE static void put_bytes_signal(void *there, const void *source, size_t len, uint64_t *word, uint64_t signal,
                                             bool add, struct shmemi_pe_ctl *ctl)
{
    if (len)
        memmove(there, source, len);
    raise_signal(word, signal, add, ctl);
}

/* ADD is an atomic, which where NICs do them is none of ours. */
SHMEMI_INLINE void put_signal(shmem_ctx_t ctx, void *dest, const void *source, size_t len, uint64_t *sig_addr,
                              uint64_t signal, int sig_op, int world, bool nbi, const char *call)
{
    bool add = sig_op != SHMEM_SIGNAL_SET;
    void *there = NULL, *word;

    if (shmemi_unlikely((add && (sig_op != SHMEM_SIGNAL_ADD || shmemi_net.nic_atomics)) ||
                        ((uintptr_t)sig_addr & (sizeof *sig_addr - 1)) ||
                        !shmemi_reach_plain(&shmemi.peers, sig_addr, sizeof *sig_addr, world, shmemi.odd_memory, &word) ||
                        (len && !shmemi_reach_plain(&shmemi.peers, dest, len, world, 0, &there))))
        (nbi ? put_signal_nbi_odd : put_signal_odd)(ctx, dest, source, len, sig_addr, signal, sig_op, world, call);
    else if (copy_word(there, source, len))
        raise_signal(word, signal, add, shmemi.peers[world].ctl);
    else
        put_bytes_signal(there, source, len, word, signal, add, shmemi.peers[world].ctl);
}

SHMEMI_NOINLINE static void put_signal_ctx(shmem_ctx_t ctx, void *dest, const void *source, size_t len, uint64_t *sig_addr,
                                           uint64_t signal, int sig_op, int pe, const char *call)
{
    put_signal(ctx, dest, source, len, sig_addr, signal, sig_op, shmemi_ctx_lookup_pe(ctx, pe, call), false, call);
}

SHMEMI_NOINLINE static void put_signal_nbi_ctx(shmem_ctx_t ctx, void *dest, const void *source, size_t len,
                                               uint64_t *sig_addr, uint64_t signal, int sig_op, int pe, const char *call)
{
    put_signal(ctx, dest, source, len, sig_addr, signal, sig_op, shmemi_ctx_lookup_pe(ctx, pe, call), true, call);
}

void shmemi_put_signal(shmem_ctx_t ctx, void *dest, const void *source, size_t len, uint64_t *sig_addr,
                       uint64_t signal, int sig_op, int pe, const char *call)
{
    if (shmemi_unlikely(ctx != SHMEM_CTX_DEFAULT))
        put_signal_ctx(ctx, dest, source, len, sig_addr, signal, sig_op, pe, call);
    else
        put_signal(SHMEM_CTX_DEFAULT, dest, source, len, sig_addr, signal, sig_op, pe, false, call);
}

void shmemi_put_signal_nbi(shmem_ctx_t ctx, void *dest, const void *source, size_t len, uint64_t *sig_addr,
                           uint64_t signal, int sig_op, int pe, const char *call)
{
    if (shmemi_unlikely(ctx != SHMEM_CTX_DEFAULT))
        put_signal_nbi_ctx(ctx, dest, source, len, sig_addr, signal, sig_op, pe, call);
    else
        put_signal(SHMEM_CTX_DEFAULT, dest, source, len, sig_addr, signal, sig_op, pe, true, call);
}

uint64_t shmemi_signal_fetch_odd(const uint64_t *sig_addr, const char *call)
{
    void *word;

    shmemi_check_init(call);
    shmemi_check_aligned(sig_addr, sizeof *sig_addr, call);
    if (!shmemi_reach(sig_addr, sizeof *sig_addr, shmemi.my_pe, call, &word))
        return shmemi_devmem_load(sig_addr, sizeof *sig_addr);
    if (shmemi_net.up)
        shmemi_net_progress(call); /* it may be asked for in a loop */
    return SHMEMI_LD_ACQ(sig_addr);
}

SHMEMI_INLINE void check_ctx(shmem_ctx_t ctx, const char *call)
{
    if (ctx != SHMEM_CTX_DEFAULT)
        shmemi_ctx_check(ctx, call);
    else
        shmemi_check_init(call);
}

/* Stores are not all that there is to order: device memory, and atomics that the NIC does on this PE's own node. */
SHMEMI_COLD static void odd_fence(shmem_ctx_t ctx, const char *call)
{
    check_ctx(ctx, call);
    if (shmemi.gpu_up)
        shmemi_devmem_quiet(call);
    SHMEMI_FENCE_ACQREL();
    if (shmemi_net.nic_atomics)
        shmemi_net_fence(ctx, call);
}

void shmemi_fence(shmem_ctx_t ctx, const char *call)
{
    if (shmemi_unlikely(shmemi.odd)) {
        odd_fence(ctx, call);
        return;
    }
    if (ctx != SHMEM_CTX_DEFAULT)
        shmemi_ctx_check(ctx, call);
    SHMEMI_FENCE_ACQREL();
}

SHMEMI_COLD static void odd_quiet(shmem_ctx_t ctx, const char *call)
{
    check_ctx(ctx, call);
    if (shmemi.gpu_up)
        shmemi_devmem_quiet(call);
    if (shmemi_net.up)
        shmemi_net_quiet(ctx, call);
    SHMEMI_FENCE_SC();
}

void shmemi_quiet(shmem_ctx_t ctx, const char *call)
{
    if (shmemi_unlikely(shmemi.odd)) {
        odd_quiet(ctx, call);
        return;
    }
    if (ctx != SHMEM_CTX_DEFAULT)
        shmemi_ctx_check(ctx, call);
    SHMEMI_FENCE_SC();
}

SHMEMI_API(void, shmem_fence, (void))
{
    shmemi_fence(SHMEM_CTX_DEFAULT, "shmem_fence");
}

SHMEMI_API(void, shmem_quiet, (void))
{
    shmemi_quiet(SHMEM_CTX_DEFAULT, "shmem_quiet");
}

/* Fence and quiet on the invalid context do nothing (sections 9.12.1 and 9.12.2). */
SHMEMI_API(void, shmem_ctx_fence, (shmem_ctx_t ctx))
{
    if (ctx != SHMEM_CTX_INVALID)
        shmemi_fence(ctx, "shmem_ctx_fence");
}

SHMEMI_API(void, shmem_ctx_quiet, (shmem_ctx_t ctx))
{
    if (ctx != SHMEM_CTX_INVALID)
        shmemi_quiet(ctx, "shmem_ctx_quiet");
}

static void pe_quiet(shmem_ctx_t ctx, const int *pes, size_t n, const char *call)
{
    if (n && !pes)
        shmemi_fatal(call, "target_pes is NULL although npes is %zu", n);
    shmemi_check_init(call);
    for (size_t i = 0; i < n; i++) {
        int world = shmemi_ctx_world_pe(ctx, pes[i], call);

        shmemi_check_pe(call, world);
        if (shmemi_net.up)
            shmemi_net_quiet_pe(ctx, world, call);
    }
    SHMEMI_FENCE_SC();
}

SHMEMI_API(void, shmem_pe_quiet, (const int *target_pes, size_t npes))
{
    pe_quiet(SHMEM_CTX_DEFAULT, target_pes, npes, "shmem_pe_quiet");
}

SHMEMI_API(void, shmem_ctx_pe_quiet, (shmem_ctx_t ctx, const int *target_pes, size_t npes))
{
    if (ctx != SHMEM_CTX_INVALID)
        pe_quiet(ctx, target_pes, npes, "shmem_ctx_pe_quiet");
}
