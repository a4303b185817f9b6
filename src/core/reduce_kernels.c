/* SPDX-License-Identifier: BSD-3-Clause */
/* reduce_kernels.c - the loops of the reductions for the instructions that every processor has, and for wide vectors. */
#include "reduce.h"

#define VARIANT plain
#define TARGET
#include "reduce_loops.h"
#undef TARGET
#undef VARIANT

/* 128-bit vectors have no 64-bit comparison; twice as fast in the first-level cache for most pairs. */
#if defined(__x86_64__) && !defined(__AVX2__)
#define HAVE_WIDE 1
#define VARIANT wide
#define TARGET __attribute__((target("avx2")))
#include "reduce_loops.h"
#undef TARGET
#undef VARIANT
#endif

shmemi_red_fn *const (*shmemi_red_kernels)[SHMEMI_RED_TYPES] = kernels_plain;

void shmemi_red_choose(bool wide)
{
    shmemi_red_kernels = kernels_plain;
#ifdef HAVE_WIDE
    if (wide && __builtin_cpu_supports("avx2"))
        shmemi_red_kernels = kernels_wide;
#else
    (void)wide;
#endif
}
