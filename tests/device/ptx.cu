/* SPDX-License-Identifier: BSD-3-Clause */
/* ptx.cu - one call a kernel, for ptx.sh, which reads what nvcc makes of each; never run. */
#include <shmem.h>

#define K(name, ...) \
    extern "C" __global__ void name(int *d, int *s, long *w, uint64_t *sig, shmem_team_t t, size_t n, int pe) { __VA_ARGS__; }

K(p, shmem_int_p(d, *s, pe))
K(g, *d = shmem_int_g(s, pe))
K(put_thread, shmem_putmem(d, s, n, pe))
K(put_block, shmemx_putmem_block(d, s, n, pe))
K(get_block, shmemx_getmem_block(d, s, n, pe))
K(put_signal, shmemx_putmem_signal_block(d, s, n, sig, 1, SHMEM_SIGNAL_SET, pe))
K(signal_add, shmemx_putmem_signal_block(d, s, n, sig, 1, SHMEM_SIGNAL_ADD, pe))
K(signal_op, shmemx_signal_op(sig, 1, SHMEM_SIGNAL_SET, pe))
K(fence, shmem_fence())
K(quiet, shmem_quiet())
K(barrier_thread, shmem_barrier_all())
K(barrier_warp, shmemx_barrier_all_warp())
K(barrier_block, shmemx_barrier_all_block())
K(sync_thread, shmem_sync_all())
K(sync_block, shmemx_sync_all_block())
K(add, shmem_long_atomic_add(w, 1, pe))
K(fetch_add, *w = shmem_long_atomic_fetch_add(w, 1, pe))
K(swap, *w = shmem_long_atomic_swap(w, 1, pe))
K(cswap, *w = shmem_long_atomic_compare_swap(w, 1, 2, pe))
K(set, shmem_long_atomic_set(w, 1, pe))
K(fetch, *w = shmem_long_atomic_fetch(w, pe))
K(wait, shmem_long_wait_until(w, SHMEM_CMP_GE, 1))
K(reduce_block, shmemx_int_sum_reduce_block(t, d, s, n))
K(fcollect_block, shmemx_int_fcollect_block(t, d, s, n))
K(broadcast_block, shmemx_int_broadcast_block(t, d, s, n, pe))
