/* SPDX-License-Identifier: BSD-3-Clause */
/* clock.h - the clocks that kernels of the benchmarks read: nanoseconds of the GPU, and ticks of a multiprocessor. */
#ifndef BENCH_CLOCK_H
#define BENCH_CLOCK_H

#include <stdint.h>

__device__ static inline uint64_t bench_timer(void)
{
    uint64_t t;

    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t)::"memory");
    return t;
}

__device__ static inline long long bench_ticks(void)
{
    long long t;

    asm volatile("mov.u64 %0, %%clock64;" : "=l"(t)::"memory");
    return t;
}

#endif
