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

#include <stddef.h>
#include <stdint.h>

#if defined(__CUDACC__)
#define SHMEMI_FN static __host__ __device__ __forceinline__
#else
#define SHMEMI_FN static inline __attribute__((always_inline))
#endif

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
#define SHMEMI_PAUSE() __nanosleep(20)

#else

#define SHMEMI_LD_RLX(p) __atomic_load_n((p), __ATOMIC_RELAXED)
#define SHMEMI_LD_ACQ(p) __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define SHMEMI_ST_RLX(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)
#define SHMEMI_ST_REL(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)
#define SHMEMI_ADD_ACQREL(p, v) __atomic_fetch_add((p), (v), __ATOMIC_ACQ_REL)
#define SHMEMI_OR_ACQREL(p, v) __atomic_fetch_or((p), (v), __ATOMIC_ACQ_REL)
#define SHMEMI_FENCE_ACQREL() __atomic_thread_fence(__ATOMIC_ACQ_REL)
#define SHMEMI_FENCE_SC() __atomic_thread_fence(__ATOMIC_SEQ_CST)

#define SHMEMI_LD_RLX_GPU(p) SHMEMI_LD_RLX(p)
#define SHMEMI_LD_ACQ_GPU(p) SHMEMI_LD_ACQ(p)
#define SHMEMI_ST_RLX_GPU(p, v) SHMEMI_ST_RLX(p, v)
#define SHMEMI_ST_REL_GPU(p, v) SHMEMI_ST_REL(p, v)
#define SHMEMI_ADD_RLX_GPU(p, v) __atomic_fetch_add((p), (v), __ATOMIC_RELAXED)
#define SHMEMI_ADD_ACQREL_GPU(p, v) SHMEMI_ADD_ACQREL(p, v)
#define SHMEMI_FENCE_ACQREL_GPU() SHMEMI_FENCE_ACQREL()

#if defined(SHMEMI_SIMT)
#define SHMEMI_PAUSE() shmemi_simt_pause()
#elif defined(__x86_64__) || defined(__i386__)
#define SHMEMI_PAUSE() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define SHMEMI_PAUSE() __asm__ volatile("yield" ::: "memory")
#else
#define SHMEMI_PAUSE() __asm__ volatile("" ::: "memory")
#endif

#endif

#endif
