/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check.h - address translation with the argument checks of the API layer.
 *
 * The checks are the translation: a PE out of range, an address outside the
 * symmetric heap and data, a range past its end all fall out of the compares that the
 * address needs anyway.  The cold functions say which it was and end the job.
 */
#ifndef SHMEMI_CHECK_H
#define SHMEMI_CHECK_H

#include "log.h"
#include "state.h"

SHMEMI_COLD SHMEMI_NORETURN void shmemi_bad_pe(const char *call, int pe);
SHMEMI_COLD SHMEMI_NORETURN void shmemi_bad_range(const char *call, const void *addr, size_t len, int pe);
SHMEMI_COLD SHMEMI_NORETURN void shmemi_not_reachable(const char *call, const void *addr, int pe);
SHMEMI_COLD SHMEMI_NORETURN void shmemi_misaligned(const char *call, const void *addr, size_t size);
SHMEMI_COLD SHMEMI_NORETURN void shmemi_not_initialized(const char *call);
/* MARROW_CHECK=1: the range must lie within one allocated block of the heap. */
SHMEMI_COLD void shmemi_check_block(const char *call, const void *addr, size_t len, int pe);

/* Ends the job unless the library is initialised. */
SHMEMI_INLINE void shmemi_check_init(const char *call)
{
    if (shmemi_unlikely(shmemi.n_pes == 0))
        shmemi_not_initialized(call);
}

/* For a pointer through which a call is to give its result. */
SHMEMI_INLINE void shmemi_check_result(const void *p, const char *name, const char *call)
{
    if (shmemi_unlikely(!p))
        shmemi_fatal(call, "%s is NULL: there is nowhere to put the result", name);
}

/* An atomic on a word that straddles cache lines locks the bus, or traps, or is not atomic at all. */
SHMEMI_INLINE void shmemi_check_aligned(const void *addr, size_t size, const char *call)
{
    if (shmemi_unlikely((uintptr_t)addr & (size - 1)))
        shmemi_misaligned(call, addr, size);
}

SHMEMI_INLINE void shmemi_check_pe(const char *call, int pe)
{
    if (shmemi_unlikely((unsigned)pe >= (unsigned)shmemi.n_pes))
        shmemi_bad_pe(call, pe);
}

/* An address that is neither in the host heap nor in static data: ends the job unless it is in the device heap. */
SHMEMI_COLD void shmemi_elsewhere(const char *call, const void *addr, size_t len, int pe);

/*
 * Where `len` bytes at this PE's symmetric address `addr` lie on world PE `pe`, as an address that this PE can load and
 * store.  False where load and store do not lead there: then it is device memory (devmem_rma.h), or a NIC may (net.h).
 * Ends the job on bad arguments.
 */
SHMEMI_INLINE bool shmemi_reach_in(struct shmemi_peer *const *peers, const void *addr, size_t len, int pe,
                                   const char *call, void **out)
{
    uintptr_t off = (uintptr_t)addr - shmemi.heap_base;
    uintptr_t base;

    shmemi_check_pe(call, pe);
    if (shmemi_likely(off < shmemi.heap_len)) {
        if (shmemi_unlikely(len > shmemi.heap_len - off))
            shmemi_bad_range(call, addr, len, pe);
        if (shmemi_unlikely(shmemi.check_blocks))
            shmemi_check_block(call, addr, len, pe);
        base = (*peers)[pe].heap;
    } else {
        off = (uintptr_t)addr - shmemi.data_base;
        if (shmemi_unlikely(off >= shmemi.data_len || len > shmemi.data_len - off)) {
            shmemi_elsewhere(call, addr, len, pe);
            return false;
        }
        base = (*peers)[pe].data;
    }
    if (shmemi_unlikely(base == 0))
        return false;
    *out = (void *)(base + off);
    return true;
}

SHMEMI_INLINE bool shmemi_reach(const void *addr, size_t len, int pe, const char *call, void **out)
{
    return shmemi_reach_in(&shmemi.peers, addr, len, pe, call, out);
}

/* For atomics: false for every PE in a job where the NICs do them all. */
SHMEMI_INLINE bool shmemi_reach_amo(const void *addr, size_t len, int pe, const char *call, void **out)
{
    return shmemi_reach_in(&shmemi.amo_peers, addr, len, pe, call, out);
}

/*
 * The same for the shortest way, with no call in it: false also where there is something to complain about or to look at
 * closer.  Who gets false goes another way, which begins with shmemi_reach.  `odd`: what of shmemi.odd concerns it.
 */
SHMEMI_INLINE bool shmemi_reach_plain(struct shmemi_peer *const *peers, const void *addr, size_t len, int pe, unsigned odd,
                                      void **out)
{
    uintptr_t off = (uintptr_t)addr - shmemi.heap_base;
    uintptr_t base;

    if (shmemi_unlikely((unsigned)pe >= (unsigned)shmemi.n_pes || odd))
        return false;
    if (shmemi_likely(off < shmemi.heap_len)) {
        if (shmemi_unlikely(len > shmemi.heap_len - off))
            return false;
        base = (*peers)[pe].heap;
    } else {
        off = (uintptr_t)addr - shmemi.data_base;
        if (shmemi_unlikely(off >= shmemi.data_len || len > shmemi.data_len - off))
            return false;
        base = (*peers)[pe].data;
    }
    if (shmemi_unlikely(base == 0))
        return false;
    *out = (void *)(base + off);
    return true;
}

/* For who has made sure that load and store lead there. */
SHMEMI_INLINE void *shmemi_remote(const void *addr, size_t len, int pe, const char *call)
{
    void *there;

    if (shmemi_unlikely(!shmemi_reach(addr, len, pe, call, &there)))
        shmemi_not_reachable(call, addr, pe);
    return there;
}

#endif
