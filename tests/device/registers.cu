/* SPDX-License-Identifier: BSD-3-Clause */
/* registers.cu - one call a kernel, for registers.sh, which looks how many registers each takes; never run. */
#include <shmem.h>

#define K(name, ...) \
    extern "C" __global__ void name(int *d, int *s, long *w, uint64_t *sig, size_t n, int pe) { __VA_ARGS__; }

K(put_block, shmemx_putmem_block(d, s, n, pe))
K(get_block, shmemx_getmem_block(d, s, n, pe))
K(quiet_block, shmemx_quiet_block())
K(barrier_block, shmemx_barrier_all_block())
K(sync_block, shmemx_sync_all_block())
K(p, shmem_int_p(d, *s, pe))
K(fetch_add, *w = shmem_long_atomic_fetch_add(w, 1, pe))
