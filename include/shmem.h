/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shmem.h - the OpenSHMEM 1.6 interface for C and C++.
 *
 * This file has the types, handles and constants.  The routines are declared in
 * shmem/api.h, the type-generic macros of C11 in shmem/generic.h; both are generated
 * from the tables in api/.  "Section" means a section of the OpenSHMEM 1.6
 * specification.
 *
 * Unless a routine says otherwise: sizes that end in "mem" are bytes, all others
 * elements; a PE number counts from 0 in the team of the call's context or team
 * argument (the world team when there is none); an argument outside its range
 * ends the job with a message that names the PE, the call and the value.
 *
 * SHMEM_NO_GENERICS, defined before, leaves the type-generic macros out.
 */
#ifndef SHMEM_H
#define SHMEM_H

/* NVRTC has no C library; these are the widths of the hosts that CUDA runs on. */
#if defined(__CUDACC_RTC__)
#include <shmem/device/rtc.h>
#else
#include <stddef.h>
#include <stdint.h>
#endif

#if defined(__cplusplus) && !defined(__CUDACC_RTC__)
#include <complex>
#endif

/* ---- Version (sections 6, 9.1.11 and 9.1.12) ---- */

#define SHMEM_MAJOR_VERSION 1
#define SHMEM_MINOR_VERSION 6
/* Bytes of the longest vendor string, its final null included. */
#define SHMEM_MAX_NAME_LEN 256
#define SHMEM_VENDOR_STRING "Marrow 0.1.0"
/* For tests by the preprocessor: which library this is, and its version. */
#define SHMEM_MARROW 1
#define SHMEM_VENDOR_MAJOR_VERSION 0
#define SHMEM_VENDOR_MINOR_VERSION 1
#define SHMEM_VENDOR_PATCH_VERSION 0

/* ---- Handles (section 7) ---- */

/*
 * A handle is a number in the shape of a pointer that is never followed: comparable
 * with ==, usable in static initialisers, distinct from every other type.
 */
typedef struct shmemi_ctx_opaque *shmem_ctx_t;
typedef struct shmemi_team_opaque *shmem_team_t;

#ifdef __cplusplus /* where programs may be compiled with warnings about C's casts */
#define SHMEMI_HANDLE(type, number) (reinterpret_cast<type>(number))
#define SHMEMI_NO_HANDLE(type) (static_cast<type>(nullptr))
#else
#define SHMEMI_HANDLE(type, number) ((type)(number))
#define SHMEMI_NO_HANDLE(type) ((type)0)
#endif

#define SHMEM_CTX_INVALID SHMEMI_NO_HANDLE(shmem_ctx_t)
#define SHMEM_CTX_DEFAULT SHMEMI_HANDLE(shmem_ctx_t, 1)

#define SHMEM_TEAM_INVALID SHMEMI_NO_HANDLE(shmem_team_t)
#define SHMEM_TEAM_WORLD SHMEMI_HANDLE(shmem_team_t, 1)
/* The PEs that reach one another's symmetric memory by load and store. */
#define SHMEM_TEAM_SHARED SHMEMI_HANDLE(shmem_team_t, 2)

/* ---- Thread levels (section 9.2), in ascending order ---- */

#define SHMEM_THREAD_SINGLE 0
#define SHMEM_THREAD_FUNNELED 1
#define SHMEM_THREAD_SERIALIZED 2
#define SHMEM_THREAD_MULTIPLE 3

/* ---- Hints of shmem_malloc_with_hints (section 9.3.5): bits, combined with | ---- */

#define SHMEM_MALLOC_ATOMICS_REMOTE (1L << 0)
#define SHMEM_MALLOC_SIGNAL_REMOTE (1L << 1)

/* ---- Teams (section 9.4) ---- */

typedef struct {
    int num_contexts; /* contexts that will exist at a time; default 0 */
} shmem_team_config_t;

/* Mask bit: num_contexts of the configuration counts. */
#define SHMEM_TEAM_NUM_CONTEXTS (1L << 0)

/* ---- Contexts (section 9.5): options, bits combined with | ---- */

#define SHMEM_CTX_SERIALIZED (1L << 0)
#define SHMEM_CTX_PRIVATE (1L << 1)
#define SHMEM_CTX_NOSTORE (1L << 2)

/* ---- Sessions (section 9.9) ---- */

typedef struct {
    size_t total_ops; /* most RMA calls in the session; default SIZE_MAX, "not said" */
} shmem_ctx_session_config_t;

/* Mask bit: total_ops of the configuration counts. */
#define SHMEM_CTX_SESSION_TOTAL_OPS (1L << 0)
/* Option: operations tolerate latency and may be batched. */
#define SHMEM_CTX_SESSION_BATCH (1L << 0)

/* ---- Signals (section 9.8): how a put-with-signal changes the signal word ---- */

#define SHMEM_SIGNAL_SET 0
#define SHMEM_SIGNAL_ADD 1

/* ---- Comparisons of the wait and test routines (section 9.11) ---- */

#define SHMEM_CMP_EQ 0
#define SHMEM_CMP_NE 1
#define SHMEM_CMP_GT 2
#define SHMEM_CMP_LE 3
#define SHMEM_CMP_LT 4
#define SHMEM_CMP_GE 5

/* ---- Work arrays of the active-set collectives (deprecated since 1.5) ---- */

/* What the elements of a pSync array hold before its first use, and again after each. */
#define SHMEM_SYNC_VALUE 0L

/* Elements (long) of a pSync array. */
#define SHMEM_SYNC_SIZE 64
#define SHMEM_BCAST_SYNC_SIZE SHMEM_SYNC_SIZE
#define SHMEM_REDUCE_SYNC_SIZE SHMEM_SYNC_SIZE
#define SHMEM_BARRIER_SYNC_SIZE SHMEM_SYNC_SIZE
#define SHMEM_COLLECT_SYNC_SIZE SHMEM_SYNC_SIZE
#define SHMEM_ALLTOALL_SYNC_SIZE SHMEM_SYNC_SIZE
#define SHMEM_ALLTOALLS_SYNC_SIZE SHMEM_SYNC_SIZE

/* Elements of a pWrk array are at least this and nreduce/2 + 1. */
#define SHMEM_REDUCE_MIN_WRKDATA_SIZE 1

/* ---- Deprecated spellings (since 1.4; annex on deprecated API) ---- */

#define _SHMEM_MAJOR_VERSION SHMEM_MAJOR_VERSION
#define _SHMEM_MINOR_VERSION SHMEM_MINOR_VERSION
#define _SHMEM_MAX_NAME_LEN SHMEM_MAX_NAME_LEN
#define _SHMEM_VENDOR_STRING SHMEM_VENDOR_STRING
#define _SHMEM_CMP_EQ SHMEM_CMP_EQ
#define _SHMEM_CMP_NE SHMEM_CMP_NE
#define _SHMEM_CMP_GT SHMEM_CMP_GT
#define _SHMEM_CMP_LE SHMEM_CMP_LE
#define _SHMEM_CMP_LT SHMEM_CMP_LT
#define _SHMEM_CMP_GE SHMEM_CMP_GE
#define _SHMEM_SYNC_VALUE SHMEM_SYNC_VALUE
#define _SHMEM_BCAST_SYNC_SIZE SHMEM_BCAST_SYNC_SIZE
#define _SHMEM_REDUCE_SYNC_SIZE SHMEM_REDUCE_SYNC_SIZE
#define _SHMEM_BARRIER_SYNC_SIZE SHMEM_BARRIER_SYNC_SIZE
#define _SHMEM_COLLECT_SYNC_SIZE SHMEM_COLLECT_SYNC_SIZE
#define _SHMEM_REDUCE_MIN_WRKDATA_SIZE SHMEM_REDUCE_MIN_WRKDATA_SIZE

/* ---- Complex elements of the sum and product reductions ---- */

/* C++ has no _Complex; std::complex<T> has the same layout (C++11 26.4). */
#if defined(__CUDACC_RTC__)
typedef struct { float re, im; } shmemi_complexf;
typedef struct { double re, im; } shmemi_complexd;
#elif defined(__cplusplus)
typedef std::complex<float> shmemi_complexf;
typedef std::complex<double> shmemi_complexd;
#else
typedef float _Complex shmemi_complexf;
typedef double _Complex shmemi_complexd;
#endif

/* ---- Routines ---- */

#define SHMEM_API extern
#if defined(__GNUC__)
#define SHMEM_NORETURN __attribute__((noreturn))
#else
#define SHMEM_NORETURN
#endif

/*
 * In a file with kernels (nvcc, clang, NVRTC) the routines that can run there are defined here as well: in a kernel they are
 * device code, elsewhere calls of the library.  -DSHMEM_HOST_ONLY leaves that out.
 */
#if (defined(__CUDACC__) || defined(SHMEMI_SIMT)) && !defined(SHMEM_HOST_ONLY)
#define SHMEMI_DEVICE_API 1
#include <shmem/api_device.h>
#else
#include <shmem/api.h>
#endif

#ifdef __cplusplus
#include <shmem/cxx.h>
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L && !defined(SHMEM_NO_GENERICS)
#include <shmem/generic.h>
#endif

#endif
