/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * atomics.h - the rest of the platform: atomics on other PEs' words, pairs of words that travel together, the device
 * state and how a kernel ends itself.  With port.h the only file that knows compilers.
 *
 * Atomics are relaxed, at system scope: the calls built on them order nothing, shmem_fence and shmem_quiet do.
 */
#ifndef SHMEM_DEVICE_ATOMICS_H
#define SHMEM_DEVICE_ATOMICS_H

#include "port.h"
#include "state.h"

/* Where device code is compiled: nvcc's pass over the host code leaves it out. */
#if !defined(__CUDACC__) || defined(__CUDA_ARCH__)
#define SHMEMI_DEVICE_CODE 1
#endif

/*
 * Device code that folds into its caller; the cold half that does not; and what is large and the same for all types and
 * scopes, which a translation unit has once.
 */
#if defined(__CUDACC__)
#define SHMEMI_DEV static __device__ __forceinline__
#define SHMEMI_DEV_COLD static inline __device__ __noinline__
#define SHMEMI_DEV_LAST static inline __device__ __noinline__ __attribute__((noreturn)) /* callers save nothing for it */
#define SHMEMI_DEV_LARGE static inline __device__ __noinline__
#else
#define SHMEMI_DEV static inline __attribute__((always_inline, unused))
#define SHMEMI_DEV_COLD static __attribute__((cold, noinline, unused))
#define SHMEMI_DEV_LAST static __attribute__((cold, noinline, noreturn, unused))
#define SHMEMI_DEV_LARGE static inline __attribute__((unused))
#endif

/* ---- the device state ---- */

/*
 * The copy of this translation unit.  A module that is loaded by the driver API (SHMEMX_MODULE; always under NVRTC) shows
 * it under this name to shmemx_module_init.
 */
#if defined(__CUDACC_RTC__) || (defined(__CUDACC__) && defined(SHMEMX_MODULE))
extern "C" {
__constant__ struct shmemi_dev_state shmemi_dev_state;
}
#elif defined(__CUDACC__)
static __constant__ struct shmemi_dev_state shmemi_dev_state;
#else
extern struct shmemi_dev_state shmemi_dev_state;
#endif

/*
 * SHMEMI_BEHIND(f)(...) calls a function of the NIC's path.  ptxas gives a kernel the registers of all functions that it may
 * call, one on top of the other, when it sees which they are; a function behind a pointer saves those that it uses, so that a
 * kernel needs what the largest one needs, once, and the path of loads and stores keeps its registers to itself.
 */
#if defined(__CUDACC__)
#define SHMEMI_BEHIND(f) ((decltype(&f))((uintptr_t)&f + shmemi_dev_state.nic.zero))
#else
#define SHMEMI_BEHIND(f) f
#endif

#if defined(__CUDA_ARCH__)

#define SHMEMI_ATOMIC(op, p, v) __nv_atomic_##op((p), (v), __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_SYSTEM)
#define SHMEMI_SWAP_RLX(p, v) SHMEMI_ATOMIC(exchange_n, p, v)
#define SHMEMI_ADD_RLX(p, v) SHMEMI_ATOMIC(fetch_add, p, v)
#define SHMEMI_AND_RLX(p, v) SHMEMI_ATOMIC(fetch_and, p, v)
#define SHMEMI_OR_RLX(p, v) SHMEMI_ATOMIC(fetch_or, p, v)
#define SHMEMI_XOR_RLX(p, v) SHMEMI_ATOMIC(fetch_xor, p, v)
#define SHMEMI_ADD_REL(p, v) __nv_atomic_fetch_add((p), (v), __NV_ATOMIC_RELEASE, __NV_THREAD_SCOPE_SYSTEM)
#define SHMEMI_CAS_RLX(p, old, v) \
    __nv_atomic_compare_exchange_n((p), (old), (v), false, __NV_ATOMIC_RELAXED, __NV_ATOMIC_RELAXED, \
                                   __NV_THREAD_SCOPE_SYSTEM)

/* Two words by one instruction; each of them is whole, the pair may be seen in parts. */
SHMEMI_DEV void shmemi_st_pair(uint64_t *p, uint64_t a, uint64_t b)
{
    asm volatile("st.relaxed.sys.v2.b64 [%0], {%1, %2};" : : "l"(p), "l"(a), "l"(b) : "memory");
}

SHMEMI_DEV void shmemi_ld_pair(const uint64_t *p, uint64_t *a, uint64_t *b)
{
    asm volatile("ld.relaxed.sys.v2.b64 {%0, %1}, [%2];" : "=l"(*a), "=l"(*b) : "l"(p) : "memory");
}

/*
 * One thread is about to copy up to 1 KiB, `n` vectors: a word of each 32 bytes is loaded, all at once, as the first level of cache takes
 * 32 bytes a miss; nobody needs their values.
 */
SHMEMI_DEV void shmemi_touch(char *to, const char *from, uint32_t n)
{
    uint32_t word[32], all = 0;

    _Pragma("unroll")
    for (uint32_t k = 0; k < 32; k++)
        word[k] = 2 * k < n ? *(const uint32_t *)(from + k * 32) : 0;
    _Pragma("unroll")
    for (int k = 0; k < 32; k++)
        all |= word[k];
    if (all == 0x5a17c0deu) /* so that the loads are made; the byte is copied anyway */
        *to = *from;
}

/* Shifts the four words right by `bytes` (1 to 15) and gives the low two. */
SHMEMI_DEV struct shmemi_v16 shmemi_shift16(struct shmemi_v16 lo, struct shmemi_v16 hi, uint32_t bytes)
{
    uint32_t w[8] = { (uint32_t)lo.x, (uint32_t)(lo.x >> 32), (uint32_t)lo.y, (uint32_t)(lo.y >> 32),
                      (uint32_t)hi.x, (uint32_t)(hi.x >> 32), (uint32_t)hi.y, (uint32_t)(hi.y >> 32) };
    struct shmemi_v16 v;

    if (bytes & 8)
        for (int i = 0; i < 6; i++)
            w[i] = w[i + 2];
    if (bytes & 4)
        for (int i = 0; i < 5; i++)
            w[i] = w[i + 1];
    bytes = (bytes & 3) * 8;
    for (int i = 0; i < 4; i++)
        w[i] = __funnelshift_r(w[i], w[i + 1], bytes);
    v.x = (uint64_t)w[1] << 32 | w[0];
    v.y = (uint64_t)w[3] << 32 | w[2];
    return v;
}

/* Ends the kernel, and with it the context: later CUDA calls of this process fail. */
SHMEMI_DEV void shmemi_trap(void)
{
    __trap();
}

/* Behind a trap, which need not take effect at once. */
#define shmemi_gone()                \
    do {                             \
        asm volatile("exit;");       \
        __builtin_unreachable();     \
    } while (0)

extern "C" __device__ void __assertfail(const char *condition, const char *file, unsigned line, const char *function,
                                        size_t char_size);

/* The driver prints this on stderr and fails the launch; there is no other way to be heard before init. */
SHMEMI_DEV_LAST void shmemi_not_started(void)
{
    __assertfail("shmem_init has not been called", "shmem.h", 0, "a kernel that calls shmem routines", 1);
    shmemi_gone();
}

/* In a loop whose answer comes from another PE and is near: on a GPU polls follow one another at once. */
#define SHMEMI_POLL_PAUSE() ((void)0)

/* About half of what a load from L2 takes: between two polls that are to be under way by turns. */
SHMEMI_DEV void shmemi_poll_gap(void)
{
    uint32_t begin, now;

    asm volatile("mov.u32 %0, %%clock;" : "=r"(begin) : : "memory");
    do {
        asm volatile("mov.u32 %0, %%clock;" : "=r"(now) : : "memory");
    } while (now - begin < 90);
}

#elif !defined(__CUDACC__)

#define SHMEMI_SWAP_RLX(p, v) __atomic_exchange_n((p), (v), __ATOMIC_RELAXED)
#define SHMEMI_ADD_RLX(p, v) __atomic_fetch_add((p), (v), __ATOMIC_RELAXED)
#define SHMEMI_AND_RLX(p, v) __atomic_fetch_and((p), (v), __ATOMIC_RELAXED)
#define SHMEMI_OR_RLX(p, v) __atomic_fetch_or((p), (v), __ATOMIC_RELAXED)
#define SHMEMI_XOR_RLX(p, v) __atomic_fetch_xor((p), (v), __ATOMIC_RELAXED)
#define SHMEMI_ADD_REL(p, v) __atomic_fetch_add((p), (v), __ATOMIC_RELEASE)
#define SHMEMI_CAS_RLX(p, old, v) \
    __atomic_compare_exchange_n((p), (old), (v), 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)

SHMEMI_DEV void shmemi_st_pair(uint64_t *p, uint64_t a, uint64_t b)
{
    SHMEMI_ST_RLX(p, a);
    SHMEMI_ST_RLX(p + 1, b);
}

SHMEMI_DEV void shmemi_ld_pair(const uint64_t *p, uint64_t *a, uint64_t *b)
{
    *a = SHMEMI_LD_RLX(p);
    *b = SHMEMI_LD_RLX(p + 1);
}

SHMEMI_DEV void shmemi_touch(char *to, const char *from, uint32_t n)
{
    (void)to, (void)from, (void)n;
}

SHMEMI_DEV struct shmemi_v16 shmemi_shift16(struct shmemi_v16 lo, struct shmemi_v16 hi, uint32_t bytes)
{
    struct shmemi_v16 v;
    uint32_t bits = (bytes & 7) * 8;

    if (bytes & 8) {
        lo.x = lo.y;
        lo.y = hi.x;
        hi.x = hi.y;
    }
    v.x = bits ? lo.x >> bits | lo.y << (64 - bits) : lo.x;
    v.y = bits ? lo.y >> bits | hi.x << (64 - bits) : lo.y;
    return v;
}

/* Where the library watches, it says why and ends the process; no lane goes on meanwhile. */
SHMEMI_DEV void shmemi_trap(void)
{
    uint64_t until = shmemi_now_ns() + 20000000000u;

    while (shmemi_dev_state.nic.flags & SHMEMI_DEV_NIC_WATCHED && shmemi_now_ns() < until)
        SHMEMI_PAUSE();
    __builtin_trap();
}

#define shmemi_gone() __builtin_unreachable()

SHMEMI_DEV_LAST void shmemi_not_started(void)
{
    __builtin_trap();
}

#define SHMEMI_POLL_PAUSE() SHMEMI_PAUSE()
#define shmemi_poll_gap() ((void)0)

#endif

#endif
