/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shell.h - how the typed routines are defined: each a shell of one call around an untyped one.
 *
 *     #define PUT(NAME, T) SHMEMI_SHELLS(void, NAME##_put, (T *dest, ...), shmemi_put(ctx, dest, ..., call);)
 *     SHMEMI_TYPES_RMA(PUT)
 *     #undef PUT
 *
 * No logic stands here or in the typed files: it would be out of reach for gdb and coverage.
 */
#ifndef SHMEMI_SHELL_H
#define SHMEMI_SHELL_H

#include "compiler.h"

#include "types_x.h"

#include <shmem.h>

#define SHMEMI_CTX_PARAMS(...) (shmem_ctx_t ctx, __VA_ARGS__)

/* Defines shmem_NAME with a body that sees its own name as `call`. */
#define SHMEMI_SHELL(RET, NAME, PARAMS, ...)         \
    SHMEMI_API(RET, shmem_##NAME, PARAMS)            \
    {                                                \
        static const char call[] = "shmem_" #NAME;   \
        __VA_ARGS__                                  \
    }

/* Defines shmem_NAME on the default context and shmem_ctx_NAME; the body sees `ctx` too. */
#define SHMEMI_SHELLS(RET, NAME, PARAMS, ...)                       \
    SHMEMI_API(RET, shmem_##NAME, PARAMS)                           \
    {                                                               \
        const shmem_ctx_t ctx = SHMEM_CTX_DEFAULT;                  \
        static const char call[] = "shmem_" #NAME;                  \
        __VA_ARGS__                                                 \
    }                                                               \
    SHMEMI_API(RET, shmem_ctx_##NAME, SHMEMI_CTX_PARAMS PARAMS)     \
    {                                                               \
        static const char call[] = "shmem_ctx_" #NAME;              \
        __VA_ARGS__                                                 \
    }

#endif
