/* SPDX-License-Identifier: BSD-3-Clause */
/* compiler.h - attributes and tiny helpers that every .c file of the library uses. */
#ifndef SHMEMI_COMPILER_H
#define SHMEMI_COMPILER_H

#include <stddef.h>
#include <stdint.h>

#define shmemi_likely(x) __builtin_expect(!!(x), 1)
#define shmemi_unlikely(x) __builtin_expect(!!(x), 0)
#define SHMEMI_COLD __attribute__((cold, noinline))
#define SHMEMI_NOINLINE __attribute__((noinline))
#define SHMEMI_NORETURN __attribute__((noreturn))
#define SHMEMI_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define SHMEMI_INLINE static inline __attribute__((always_inline))
#define SHMEMI_CACHELINE 64
#define SHMEMI_ALIGNED_LINE __attribute__((aligned(SHMEMI_CACHELINE)))

/*
 * Defines a public routine under its profiling name and makes the standard
 * name a weak alias of it (specification 1.6, section 10): a tool that
 * defines shmem_x itself reaches the library through pshmem_x.
 *
 *     SHMEMI_API(void, shmem_fence, (void)) { shmemi_fence(...); }
 */
#define SHMEMI_API(ret, name, params)                                          \
    __attribute__((visibility("default"))) ret p##name params;                 \
    __attribute__((visibility("default"), weak, alias("p" #name))) ret name params; \
    ret p##name params

/* The library defines functions whose names are also type-generic macros of shmem.h. */
#define SHMEM_NO_GENERICS 1

/* n elements of `size` bytes; SIZE_MAX, which every range check refuses, where that does not fit. */
static inline size_t shmemi_bytes(size_t n, size_t size)
{
    size_t bytes;

    return __builtin_mul_overflow(n, size, &bytes) ? SIZE_MAX : bytes;
}

static inline size_t shmemi_round_up(size_t n, size_t align)
{
    return (n + align - 1) & ~(align - 1);
}

#endif
