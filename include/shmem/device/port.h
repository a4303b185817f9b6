/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * port.h - the only file of the data path that knows compilers: loads and
 * stores with an order and a scope, fences, vector stores, the doorbell store, lanes, warps and blocks.
 * Everything else in this folder is plain code in the common subset of C11 and CUDA C++.
 *
 * It serves three ways to run the same code:
 *
 *     GPU     nvcc's device pass (__CUDA_ARCH__)
 *     CPU     cc: a host thread is a block of one warp of one lane
 *     SIMT    cc with SHMEMI_SIMT: tests/simt supplies lanes, warps and blocks, so the CPU runs kernels
 *
 * The order is in the name, never a parameter.  Each use says in a comment which release an acquire pairs with.
 * Names without a scope reach the whole system (peers, NIC, CPU); _GPU ones reach the threads of this GPU.
 */
#ifndef SHMEM_DEVICE_PORT_H
#define SHMEM_DEVICE_PORT_H

#if defined(__CUDACC_RTC__)
#include "rtc.h"
#else
#include <stddef.h>
#include <stdint.h>
#endif
#if !defined(__CUDA_ARCH__)
#include <sched.h>
#include <string.h>
#include <time.h>
#endif

/* SHMEMI_FN is inlined everywhere; SHMEMI_FN_COLD, for what happens seldom, nowhere. */
#if defined(__CUDACC__)
#define SHMEMI_FN static __host__ __device__ __forceinline__
#define SHMEMI_FN_COLD static inline __host__ __device__ __noinline__
#else
#define SHMEMI_FN static inline __attribute__((always_inline))
#define SHMEMI_FN_COLD static __attribute__((noinline, unused))
#endif
#if defined(__cplusplus)
#define SHMEMI_STATIC_ASSERT(test, text) static_assert(test, text)
#else
#define SHMEMI_STATIC_ASSERT(test, text) _Static_assert(test, text)
#endif
#if defined(__CUDACC__)
#define SHMEMI_ALIGNED(n) __align__(n)
#else
#define SHMEMI_ALIGNED(n) __attribute__((aligned(n)))
#endif
#define SHMEMI_LIKELY(x) __builtin_expect(!!(x), 1)
#define SHMEMI_UNLIKELY(x) __builtin_expect(!!(x), 0)

#if defined(__CUDA_ARCH__)

#define SHMEMI_LD_RLX(p) __nv_atomic_load_n((p), __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_SYSTEM)
#define SHMEMI_LD_ACQ(p) __nv_atomic_load_n((p), __NV_ATOMIC_ACQUIRE, __NV_THREAD_SCOPE_SYSTEM)
#define SHMEMI_ST_RLX(p, v) __nv_atomic_store_n((p), (v), __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_SYSTEM)
#define SHMEMI_ST_REL(p, v) __nv_atomic_store_n((p), (v), __NV_ATOMIC_RELEASE, __NV_THREAD_SCOPE_SYSTEM)
#define SHMEMI_ADD_ACQREL(p, v) __nv_atomic_fetch_add((p), (v), __NV_ATOMIC_ACQ_REL, __NV_THREAD_SCOPE_SYSTEM)
#define SHMEMI_OR_ACQREL(p, v) __nv_atomic_fetch_or((p), (v), __NV_ATOMIC_ACQ_REL, __NV_THREAD_SCOPE_SYSTEM)
#define SHMEMI_FENCE_ACQREL() __nv_atomic_thread_fence(__NV_ATOMIC_ACQ_REL, __NV_THREAD_SCOPE_SYSTEM)
#define SHMEMI_FENCE_SC() __nv_atomic_thread_fence(__NV_ATOMIC_SEQ_CST, __NV_THREAD_SCOPE_SYSTEM)

#define SHMEMI_LD_RLX_GPU(p) __nv_atomic_load_n((p), __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE)
#define SHMEMI_LD_ACQ_GPU(p) __nv_atomic_load_n((p), __NV_ATOMIC_ACQUIRE, __NV_THREAD_SCOPE_DEVICE)
#define SHMEMI_ST_RLX_GPU(p, v) __nv_atomic_store_n((p), (v), __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE)
#define SHMEMI_ST_REL_GPU(p, v) __nv_atomic_store_n((p), (v), __NV_ATOMIC_RELEASE, __NV_THREAD_SCOPE_DEVICE)
#define SHMEMI_ADD_RLX_GPU(p, v) __nv_atomic_fetch_add((p), (v), __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE)
#define SHMEMI_ADD_ACQREL_GPU(p, v) __nv_atomic_fetch_add((p), (v), __NV_ATOMIC_ACQ_REL, __NV_THREAD_SCOPE_DEVICE)
#define SHMEMI_FENCE_ACQREL_GPU() __nv_atomic_thread_fence(__NV_ATOMIC_ACQ_REL, __NV_THREAD_SCOPE_DEVICE)
#define SHMEMI_CAS_ACQREL_GPU(p, expected, v) \
    __nv_atomic_compare_exchange_n((p), (expected), (v), false, __NV_ATOMIC_ACQ_REL, __NV_ATOMIC_ACQUIRE, \
                                   __NV_THREAD_SCOPE_DEVICE)
/*
 * A load whose value decides whether stores behind it are made: no GPU makes a store before the branch that guards it, so this
 * orders them without an acquire, which empties the first level of cache.  Loads behind it are not ordered.
 */
#define SHMEMI_LD_GATE_GPU(p) SHMEMI_LD_RLX_GPU(p)
/* Orders what was stored before, and empties no cache, where there is such a fence. */
#if __CUDACC_VER_MAJOR__ >= 13 && __CUDA_ARCH__ >= 900
#define SHMEMI_FENCE_REL "fence.release."
#else
#define SHMEMI_FENCE_REL "fence.acq_rel."
#endif
#define SHMEMI_PAUSE() __nanosleep(20)
#define SHMEMI_UNROLL _Pragma("unroll")
#define SHMEMI_ROLLED _Pragma("unroll 1") /* keeps a rare loop from taking registers */
/* What other PEs can reach is never shared or local memory: the compiler need not look. */
#define SHMEMI_ASSUME_GLOBAL(p) __builtin_assume(__isGlobal(p))

#else

#define SHMEMI_ASSUME_GLOBAL(p) ((void)0)
#define SHMEMI_UNROLL
#define SHMEMI_ROLLED

/* Under SIMT lanes may change places at every atomic. */
#if defined(SHMEMI_SIMT)
#define SHMEMI_STEP() shmemi_simt_step()
void shmemi_simt_step(void);
#else
#define SHMEMI_STEP() ((void)0)
#endif

#define SHMEMI_LD_RLX(p) (SHMEMI_STEP(), __atomic_load_n((p), __ATOMIC_RELAXED))
#define SHMEMI_LD_ACQ(p) (SHMEMI_STEP(), __atomic_load_n((p), __ATOMIC_ACQUIRE))
#define SHMEMI_ST_RLX(p, v) (SHMEMI_STEP(), __atomic_store_n((p), (v), __ATOMIC_RELAXED))
#define SHMEMI_ST_REL(p, v) (SHMEMI_STEP(), __atomic_store_n((p), (v), __ATOMIC_RELEASE))
#define SHMEMI_ADD_ACQREL(p, v) (SHMEMI_STEP(), __atomic_fetch_add((p), (v), __ATOMIC_ACQ_REL))
#define SHMEMI_OR_ACQREL(p, v) (SHMEMI_STEP(), __atomic_fetch_or((p), (v), __ATOMIC_ACQ_REL))
#define SHMEMI_FENCE_ACQREL() __atomic_thread_fence(__ATOMIC_ACQ_REL)
#define SHMEMI_FENCE_SC() __atomic_thread_fence(__ATOMIC_SEQ_CST)

#define SHMEMI_LD_RLX_GPU(p) SHMEMI_LD_RLX(p)
#define SHMEMI_LD_ACQ_GPU(p) SHMEMI_LD_ACQ(p)
#define SHMEMI_LD_GATE_GPU(p) SHMEMI_LD_ACQ(p)
#define SHMEMI_ST_RLX_GPU(p, v) SHMEMI_ST_RLX(p, v)
#define SHMEMI_ST_REL_GPU(p, v) SHMEMI_ST_REL(p, v)
#define SHMEMI_ADD_RLX_GPU(p, v) (SHMEMI_STEP(), __atomic_fetch_add((p), (v), __ATOMIC_RELAXED))
#define SHMEMI_ADD_ACQREL_GPU(p, v) SHMEMI_ADD_ACQREL(p, v)
#define SHMEMI_FENCE_ACQREL_GPU() SHMEMI_FENCE_ACQREL()
#define SHMEMI_CAS_ACQREL_GPU(p, expected, v) \
    (SHMEMI_STEP(), __atomic_compare_exchange_n((p), (expected), (v), 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))

#if defined(SHMEMI_SIMT)
#define SHMEMI_PAUSE() shmemi_simt_pause()
void shmemi_simt_pause(void);
#elif defined(__x86_64__) || defined(__i386__)
#define SHMEMI_PAUSE() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define SHMEMI_PAUSE() __asm__ volatile("yield" ::: "memory")
#else
#define SHMEMI_PAUSE() __asm__ volatile("" ::: "memory")
#endif

#endif

/* ---- values ---- */

SHMEMI_FN uint32_t shmemi_bswap32(uint32_t v)
{
#if defined(__CUDA_ARCH__)
    return __byte_perm(v, 0, 0x0123);
#else
    return __builtin_bswap32(v);
#endif
}

SHMEMI_FN uint64_t shmemi_bswap64(uint64_t v)
{
#if defined(__CUDA_ARCH__)
    return (uint64_t)shmemi_bswap32((uint32_t)v) << 32 | shmemi_bswap32((uint32_t)(v >> 32));
#else
    return __builtin_bswap64(v);
#endif
}

/* For a GPU, whose compiler would go on with 64 bits, a register as it is. */
SHMEMI_FN uint32_t shmemi_high32(uint64_t v)
{
#if defined(__CUDA_ARCH__)
    uint32_t high;

    asm("{ .reg .u32 low; mov.b64 {low, %0}, %1; }" : "=r"(high) : "l"(v));
    return high;
#else
    return (uint32_t)(v >> 32);
#endif
}

/* The low two bytes of v, swapped, between the lowest and the highest byte of `outer`. */
SHMEMI_FN uint32_t shmemi_swap16_between(uint32_t v, uint32_t outer)
{
#if defined(__CUDA_ARCH__)
    return __byte_perm(v, outer, 0x7014);
#else
    return (uint32_t)__builtin_bswap16((uint16_t)v) << 8 | (outer & 0xff0000ffu);
#endif
}

SHMEMI_FN uint32_t shmemi_popc32(uint32_t v)
{
#if defined(__CUDA_ARCH__)
    return (uint32_t)__popc((int)v);
#else
    return (uint32_t)__builtin_popcount(v);
#endif
}

/* Zeros above the highest set bit; v is not 0. */
SHMEMI_FN uint32_t shmemi_clz32(uint32_t v)
{
#if defined(__CUDA_ARCH__)
    return (uint32_t)__clz((int)v);
#else
    return (uint32_t)__builtin_clz(v);
#endif
}

/* The lowest set bit; v is not 0. */
SHMEMI_FN uint32_t shmemi_ctz32(uint32_t v)
{
#if defined(__CUDA_ARCH__)
    return (uint32_t)__ffs((int)v) - 1;
#else
    return (uint32_t)__builtin_ctz(v);
#endif
}

/* 16 bytes that move in one access: plain ones, ordered by what follows. */
#if defined(__CUDACC__)
struct __align__(16) shmemi_v16 {
#else
struct __attribute__((aligned(16), may_alias)) shmemi_v16 {
#endif
    uint64_t x, y;
};

SHMEMI_FN struct shmemi_v16 shmemi_ld16(const void *p)
{
    return *(const struct shmemi_v16 *)p;
}

SHMEMI_FN void shmemi_st16(void *p, struct shmemi_v16 v)
{
#if defined(__CUDA_ARCH__)
    *(ulonglong2 *)p = make_ulonglong2(v.x, v.y);
#else
    *(struct shmemi_v16 *)p = v;
#endif
}

/* The same address, of an object that the compiler does not know: gcc 12 warns of loads that a length excludes. */
SHMEMI_FN const void *shmemi_any_object(const void *p)
{
#if !defined(__CUDA_ARCH__)
    __asm__("" : "+r"(p));
#endif
    return p;
}

/*
 * Loads of any alignment.  On a GPU the aligned load is one that the compiler cannot see through: nvcc 13.0 made one load of
 * eight aligned bytes of both branches, whatever the address (tests/device/unaligned.sh).
 */
SHMEMI_FN uint64_t shmemi_ld64u(const void *p)
{
    uint64_t v;

#if defined(__CUDA_ARCH__)
    if (((uintptr_t)p & 7) == 0) {
        asm volatile("ld.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
        return v;
    }
#endif
    memcpy(&v, p, sizeof v);
    return v;
}

SHMEMI_FN uint64_t shmemi_ld32u(const void *p)
{
    uint32_t v;

#if defined(__CUDA_ARCH__)
    if (((uintptr_t)p & 3) == 0) {
        asm volatile("ld.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
        return v;
    }
#endif
    memcpy(&v, p, sizeof v);
    return v;
}

/* Can a word be loaded by halves from there?  A CPU takes any address. */
SHMEMI_FN int shmemi_in_halves(const void *p)
{
#if defined(__CUDA_ARCH__)
    return ((uintptr_t)p & 3) == 0;
#else
    (void)p;
    return 1;
#endif
}

SHMEMI_FN uint64_t shmemi_ld64h(const void *p)
{
#if defined(__CUDA_ARCH__)
    return ((const uint32_t *)p)[0] | (uint64_t)((const uint32_t *)p)[1] << 32;
#else
    return shmemi_ld64u(p);
#endif
}

/* ---- the NIC ---- */

#if defined(__CUDA_ARCH__)
SHMEMI_FN uint32_t shmemi_lanes_below(void)
{
    uint32_t mask;

    asm("mov.u32 %0, %%lanemask_lt;" : "=r"(mask));
    return mask;
}
#endif

/*
 * Relaxed addition, GPU scope, to a word in global memory.  The builtin does not know that it is there, and waits for the
 * answer at once to find out.  The assembler makes one addition of those of a warp that it takes to add the same, which costs a lane
 * on its own 60 cycles: so it must not see that they do.
 */
SHMEMI_FN uint64_t shmemi_reserve_gpu(uint64_t *p, uint64_t n)
{
#if defined(__CUDA_ARCH__)
    uint64_t old;

    asm volatile("atom.add.relaxed.gpu.global.u64 %0, [%1], %2;"
                 : "=l"(old)
                 : "l"(__cvta_generic_to_global(p)), "l"(n + (shmemi_lanes_below() >> 31))
                 : "memory");
    return old;
#else
    return SHMEMI_ADD_RLX_GPU(p, n);
#endif
}

/* Release store to a word that the NIC reads. `near`: the word, and all that it publishes, lie in this GPU's memory. */
SHMEMI_FN void shmemi_st_rel_nic(uint32_t *p, uint32_t v, int near)
{
#if defined(__CUDA_ARCH__)
    if (near)
        SHMEMI_ST_REL_GPU(p, v);
    else
        SHMEMI_ST_REL(p, v);
#else
    (void)near;
    SHMEMI_ST_REL(p, v);
#endif
}

/* The same in two steps: the fence, and the store, before which more may be waited for. */
SHMEMI_FN void shmemi_fence_nic(int near)
{
#if defined(__CUDA_ARCH__)
    if (near)
        asm volatile(SHMEMI_FENCE_REL "gpu;" ::: "memory");
    else
        asm volatile(SHMEMI_FENCE_REL "sys;" ::: "memory");
#else
    (void)near;
    SHMEMI_STEP();
#endif
}

SHMEMI_FN void shmemi_st_fenced_nic(uint32_t *p, uint32_t v)
{
#if defined(__CUDA_ARCH__)
    SHMEMI_ST_RLX(p, v);
#else
    SHMEMI_ST_REL(p, v);
#endif
}

/*
 * Between record and doorbell, for a record that is not near: in another memory it may arrive behind the doorbell, and then
 * nobody rings for its entries (seen with records in host memory).
 */
SHMEMI_FN void shmemi_fence_record(int near)
{
#if defined(__CUDA_ARCH__)
    if (!near)
        asm volatile(SHMEMI_FENCE_REL "sys;" ::: "memory");
#else
    (void)near;
#endif
}

/*
 * A doorbell: one 8-byte store to an uncached register, behind the stores before it.  On x86 such stores leave in order.  On a GPU
 * nothing short of a second fence (1.2 us) orders it behind the doorbell record; where that is near, the store crosses PCIe and
 * the NIC then reads the record back, which takes far longer than the record's way to the GPU's own L2 cache.
 * (Released on a CPU, which costs nothing: the store is all that a NIC without a record has of what came before it.)
 */
SHMEMI_FN void shmemi_mmio_st64(uint64_t *reg, uint64_t v)
{
#if defined(__CUDA_ARCH__)
    asm volatile("st.mmio.relaxed.sys.global.b64 [%0], %1;" ::"l"(__cvta_generic_to_global(reg)), "l"(v) : "memory");
#else
#if defined(__aarch64__)
    __asm__ volatile("dmb oshst" ::: "memory");
#else
    __asm__ volatile("" ::: "memory");
#endif
    __atomic_store_n((volatile uint64_t *)reg, v, __ATOMIC_RELEASE);
#endif
}

/* ---- lanes, warps, blocks: a host thread is a block of one warp of one lane ---- */

#if defined(__CUDA_ARCH__)

SHMEMI_FN uint32_t shmemi_lane(void)
{
    uint32_t lane;

    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    return lane;
}

SHMEMI_FN uint32_t shmemi_thread_in_block(void)
{
    return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}

SHMEMI_FN uint32_t shmemi_block_threads(void)
{
    return blockDim.x * blockDim.y * blockDim.z;
}

SHMEMI_FN uint32_t shmemi_block_index(void)
{
    return blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
}

SHMEMI_FN uint32_t shmemi_grid_blocks(void)
{
    return gridDim.x * gridDim.y * gridDim.z;
}

SHMEMI_FN uint32_t shmemi_active_mask(void)
{
    return __activemask();
}

SHMEMI_FN void shmemi_warp_sync(uint32_t mask)
{
    if (mask == 0xffffffffu) /* which the compiler knows how to do in no time; other masks take it 50 cycles */
        __syncwarp(0xffffffffu);
    else
        __syncwarp(mask);
}

SHMEMI_FN void shmemi_block_sync(void)
{
    __syncthreads();
}

SHMEMI_FN uint32_t shmemi_ballot(uint32_t mask, int pred)
{
    return __ballot_sync(mask, pred);
}

SHMEMI_FN uint64_t shmemi_shfl64(uint32_t mask, uint64_t v, uint32_t src_lane)
{
    return __shfl_sync(mask, (unsigned long long)v, (int)src_lane);
}

SHMEMI_FN uint32_t shmemi_match_any64(uint32_t mask, uint64_t v)
{
    return __match_any_sync(mask, (unsigned long long)v);
}

SHMEMI_FN int shmemi_on_device(void)
{
    return 1;
}

SHMEMI_FN uint64_t shmemi_now_ns(void)
{
    uint64_t ns;

    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
}

SHMEMI_FN void shmemi_nanosleep(uint32_t ns)
{
    __nanosleep(ns);
}

#define SHMEMI_SHARED(type, name, n) \
    __shared__ type name##_shared[n]; \
    type *const name = name##_shared

#else

#if defined(SHMEMI_SIMT)

/* What tests/simt supplies. A thread that is no lane of the executor sees itself as a block of one. */
struct shmemi_simt_place {
    uint32_t thread, threads, block, blocks;
    int device;
};
enum shmemi_simt_call { SHMEMI_SIMT_ACTIVE, SHMEMI_SIMT_SYNC, SHMEMI_SIMT_BALLOT, SHMEMI_SIMT_SHFL, SHMEMI_SIMT_MATCH };
const struct shmemi_simt_place *shmemi_simt_place(void);
uint64_t shmemi_simt_warp(enum shmemi_simt_call call, uint32_t mask, uint64_t v, uint32_t src_lane);
void shmemi_simt_block_sync(void);
void *shmemi_simt_shared(const void *site, size_t bytes, void *own);

#define SHMEMI_PLACE(field, host) (shmemi_simt_place()->field)
#define SHMEMI_WARP(call, mask, v, src, host) shmemi_simt_warp(SHMEMI_SIMT_##call, (mask), (v), (src))
#define SHMEMI_SHARED(type, name, n) \
    static const char name##_site; \
    type name##_own[n]; \
    type *const name = (type *)shmemi_simt_shared(&name##_site, sizeof name##_own, name##_own)

#else

#define SHMEMI_PLACE(field, host) (host)
#define SHMEMI_WARP(call, mask, v, src, host) ((void)(mask), (void)(v), (void)(src), (host))
#define SHMEMI_SHARED(type, name, n) \
    type name##_own[n]; \
    type *const name = name##_own

#endif

SHMEMI_FN uint32_t shmemi_lane(void)
{
    return SHMEMI_PLACE(thread, 0u) % 32;
}

SHMEMI_FN uint32_t shmemi_thread_in_block(void)
{
    return SHMEMI_PLACE(thread, 0u);
}

SHMEMI_FN uint32_t shmemi_block_threads(void)
{
    return SHMEMI_PLACE(threads, 1u);
}

SHMEMI_FN uint32_t shmemi_block_index(void)
{
    return SHMEMI_PLACE(block, 0u);
}

SHMEMI_FN uint32_t shmemi_grid_blocks(void)
{
    return SHMEMI_PLACE(blocks, 1u);
}

SHMEMI_FN uint32_t shmemi_active_mask(void)
{
    return (uint32_t)SHMEMI_WARP(ACTIVE, 0, 0, 0, 1u);
}

SHMEMI_FN void shmemi_warp_sync(uint32_t mask)
{
    (void)SHMEMI_WARP(SYNC, mask, 0, 0, 0u);
}

SHMEMI_FN void shmemi_block_sync(void)
{
#if defined(SHMEMI_SIMT)
    shmemi_simt_block_sync();
#endif
}

SHMEMI_FN uint32_t shmemi_ballot(uint32_t mask, int pred)
{
    return (uint32_t)SHMEMI_WARP(BALLOT, mask, pred != 0, 0, pred != 0 ? 1u : 0u);
}

SHMEMI_FN uint64_t shmemi_shfl64(uint32_t mask, uint64_t v, uint32_t src_lane)
{
    return SHMEMI_WARP(SHFL, mask, v, src_lane, v);
}

SHMEMI_FN uint32_t shmemi_match_any64(uint32_t mask, uint64_t v)
{
    return (uint32_t)SHMEMI_WARP(MATCH, mask, v, 0, 1u);
}

SHMEMI_FN int shmemi_on_device(void)
{
    return SHMEMI_PLACE(device, 0);
}

SHMEMI_FN uint64_t shmemi_now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

SHMEMI_FN void shmemi_nanosleep(uint32_t ns)
{
#if defined(SHMEMI_SIMT)
    (void)ns;
    shmemi_simt_pause();
#else
    struct timespec t = { (time_t)(ns / 1000000000u), (long)(ns % 1000000000u) };

    nanosleep(&t, NULL);
#endif
}

#endif

/* The lanes that exist in this warp. */
SHMEMI_FN uint32_t shmemi_warp_mask(void)
{
    uint32_t left = shmemi_block_threads() - shmemi_thread_in_block() / 32 * 32;

    return left >= 32 ? 0xffffffffu : (1u << left) - 1;
}

/* For loops that wait for another thread: spins counts from 0.  A CPU gives its time slice away after a while. */
SHMEMI_FN void shmemi_backoff(uint32_t *spins)
{
#if defined(__CUDA_ARCH__) || defined(SHMEMI_SIMT)
    ++*spins;
    SHMEMI_PAUSE();
#else
    if (++*spins % 64)
        SHMEMI_PAUSE();
    else
        sched_yield();
#endif
}

#endif
