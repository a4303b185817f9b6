/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * api.h (device) - how a routine is defined for both sides: in kernels it is the device code, elsewhere a call of the
 * library's routine of the same name, which is declared under another one.  Included by shmem/api_device.h.
 *
 *     nvcc, host pass      the library; device-only forms are declared with empty bodies, which are never called
 *     nvcc, device pass    the device code
 *     SIMT                 the device code in a lane of the executor, else the library
 */
#ifndef SHMEM_DEVICE_API_H
#define SHMEM_DEVICE_API_H

#include "rma.h"
#include "amo.h"
#include "wait.h"
#include "team.h"
#include "sync.h"
#include "coll.h"

#if defined(__CUDACC_RTC__) || (defined(__CUDACC__) && defined(SHMEMI_DEVICE_CODE))

#define SHMEMI_BOTH(RET, NAME, PARAMS, GIVE, ARGS, ...) \
    static __host__ __device__ __forceinline__ RET NAME PARAMS { __VA_ARGS__ }
#define SHMEMI_ONLY(RET, NAME, PARAMS, ...) static __device__ __forceinline__ RET NAME PARAMS { __VA_ARGS__ }

#elif defined(__CUDACC__)

#define SHMEMI_BOTH(RET, NAME, PARAMS, GIVE, ARGS, ...)            \
    extern "C" RET shmemi_host_##NAME PARAMS __asm__(#NAME);       \
    static __host__ __device__ __forceinline__ RET NAME PARAMS { GIVE shmemi_host_##NAME ARGS; }
#define SHMEMI_ONLY(RET, NAME, PARAMS, ...) static __device__ __forceinline__ RET NAME PARAMS { __builtin_unreachable(); }

#else

#define SHMEMI_BOTH(RET, NAME, PARAMS, GIVE, ARGS, ...)                                             \
    extern RET shmemi_host_##NAME PARAMS __asm__(#NAME);                                            \
    static inline __attribute__((always_inline, unused)) RET NAME PARAMS __asm__("shmemi_simt_" #NAME); \
    static inline RET NAME PARAMS                                                                   \
    {                                                                                               \
        if (shmemi_on_device()) {                                                                   \
            __VA_ARGS__                                                                             \
        } else {                                                                                    \
            GIVE shmemi_host_##NAME ARGS;                                                           \
        }                                                                                           \
    }
#define SHMEMI_ONLY(RET, NAME, PARAMS, ...) \
    static inline __attribute__((always_inline, unused)) RET NAME PARAMS { __VA_ARGS__ }

#endif

/* ---- how the library finds this translation unit's copy of the device state ---- */

#if defined(__CUDACC__) && !defined(__CUDACC_RTC__) && !defined(SHMEMX_MODULE) && !defined(SHMEMI_DEVICE_CODE)

#include "module.h"

static int shmemi_dev_state_address(void **out)
{
    return (int)cudaGetSymbolAddress(out, shmemi_dev_state);
}

static struct shmemi_dev_module shmemi_dev_module = { 0, SHMEMI_DEV_ABI, (uint32_t)sizeof(struct shmemi_dev_state),
                                                      shmemi_dev_state_address };

namespace {
struct shmemi_dev_registrar {
    shmemi_dev_registrar() { shmemx_device_register(&shmemi_dev_module); }
    ~shmemi_dev_registrar() { shmemx_device_unregister(&shmemi_dev_module); }
};
shmemi_dev_registrar shmemi_dev_registered;
}

#endif

#endif
