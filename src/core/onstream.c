/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * onstream.c - routines on CUDA streams: copies by the copy engine, the rest by kernels of the library; to other nodes all by kernels.
 *
 * Collectives of long messages use many blocks, as many as the length is worth; each block meets its counterparts
 * on a channel of its own (kernels.h).
 */
#include "onstream.h"

#include "check.h"
#include "devmem_rma.h"
#include "net.h"
#include "team_slots.h"
#include "transports/cuda/gpu.h"
#include "transports/cuda/kernel.h"
#include "wait.h"

#include "shmem/device/syncblk.h"

#include <errno.h>
#include <string.h>

#define BYTES_A_BLOCK ((size_t)16 << 10)

/* Ends the job where streams are not to be had. */
static void need_gpu(const char *call)
{
    shmemi_check_init(call);
    if (shmemi_unlikely(!shmemi.gpu_up))
        shmemi_fatal(call, "CUDA is not up: %s", *shmemi_devmem_why() ? shmemi_devmem_why()
                     : "allocate device memory first, or set MARROW_CUDA=1");
}

static void launch(enum shmemi_kernel which, const struct shmemi_kernel_args *args, unsigned blocks, unsigned threads,
                   struct CUstream_st *stream, const char *call)
{
    if (shmemi_unlikely(shmemi_kernel_launch(which, args, blocks, threads, stream)))
        shmemi_fatal(call, "%s", shmemi_kernel_why());
}

static void copied(int rc, const void *addr, size_t len, int pe, const char *call)
{
    if (shmemi_unlikely(rc))
        shmemi_fatal(call, "%zu bytes at %p (PE %d): the copy cannot be put on the stream", len, addr, pe);
}

/* ---- one-sided ----
 *
 * To PEs that only the NIC reaches by a kernel of one thread, which posts (or leaves it to the proxy); so does what that thread cannot
 * read, memory of the host that is not symmetric: the stream is waited for, and the host's call does it.
 */

/* Does only the NIC lead there, and may kernels use it? */
static bool is_far(const void *addr, size_t len, int pe, const char *call)
{
    if (shmemi_likely(!shmemi_net.up) || !shmemi_devmem_far(addr, len, pe, call))
        return false;
    if (!shmemi_devmem_has_nic() || !shmemi_net_reaches(addr, pe))
        shmemi_not_reachable(call, addr, pe);
    return true;
}

/* Local memory that the kernel can use, or that the NIC knows. */
static bool for_kernels(const void *local)
{
    return shmemi_in_device_heap(local) || (uintptr_t)local - (uintptr_t)shmemi.heap_base < shmemi.heap_len ||
           shmemi_gpu_is_device_pointer(local);
}

static void wait_for(struct CUstream_st *stream, const char *call)
{
    if (shmemi_gpu_stream_wait(stream))
        shmemi_fatal(call, "the stream has failed");
}

static void launch_far(enum shmemi_kernel_far what, struct shmemi_kernel_args *args, int pe, struct CUstream_st *stream,
                       const char *call)
{
    args->coll = (uint32_t)what;
    args->root = pe;
    launch(SHMEMI_KERNEL_far, args, 1, 1, stream, call);
}

static void put_far(void *dest, const void *source, size_t len, int pe, struct CUstream_st *stream, const char *call)
{
    struct shmemi_kernel_args args = { .dest = (uintptr_t)dest, .source = (uintptr_t)source, .bytes = len };

    if (for_kernels(source)) {
        launch_far(SHMEMI_KERNEL_PUT, &args, pe, stream, call);
        return;
    }
    wait_for(stream, call);
    shmem_putmem(dest, source, len, pe);
    shmem_quiet();
}

static void get_far(void *dest, const void *source, size_t len, int pe, struct CUstream_st *stream, const char *call)
{
    struct shmemi_kernel_args args = { .dest = (uintptr_t)dest, .source = (uintptr_t)source, .bytes = len };

    if (for_kernels(dest)) {
        launch_far(SHMEMI_KERNEL_GET, &args, pe, stream, call);
        return;
    }
    wait_for(stream, call);
    shmem_getmem(dest, source, len, pe);
}

static void strided_far(enum shmemi_kernel_far what, void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t n,
                        size_t elem, int pe, struct CUstream_st *stream, const char *call)
{
    struct shmemi_kernel_args args = { .dest = (uintptr_t)dest, .source = (uintptr_t)source, .bytes = n,
                                       .value = (uint64_t)dst, .cond = (uint64_t)sst, .size = (uint32_t)elem };
    bool put = what == SHMEMI_KERNEL_IPUT;

    if (for_kernels(put ? source : dest)) {
        launch_far(what, &args, pe, stream, call);
        return;
    }
    wait_for(stream, call);
    for (size_t i = 0; i < n; i++) {
        char *to = (char *)dest + i * (size_t)dst * elem;
        const char *from = (const char *)source + i * (size_t)sst * elem;

        if (put)
            shmem_putmem(to, from, elem, pe);
        else
            shmem_getmem(to, from, elem, pe);
    }
    shmem_quiet();
}

void shmemi_put_on(void *dest, const void *source, size_t len, int pe, struct CUstream_st *stream, const char *call)
{
    need_gpu(call);
    shmemi_check_pe(call, pe);
    if (len && is_far(dest, len, pe, call))
        put_far(dest, source, len, pe, stream, call);
    else if (len)
        copied(shmemi_gpu_copy_on(shmemi_devmem_address(dest, len, pe, call), source, len, stream), dest, len, pe, call);
}

void shmemi_get_on(void *dest, const void *source, size_t len, int pe, struct CUstream_st *stream, const char *call)
{
    need_gpu(call);
    shmemi_check_pe(call, pe);
    if (len && is_far(source, len, pe, call))
        get_far(dest, source, len, pe, stream, call);
    else if (len)
        copied(shmemi_gpu_copy_on(dest, shmemi_devmem_address(source, len, pe, call), len, stream), source, len, pe, call);
}

void shmemi_p_on(void *dest, const void *value, size_t size, int pe, struct CUstream_st *stream, const char *call)
{
    struct shmemi_kernel_args args = { .size = (uint32_t)size };

    need_gpu(call);
    shmemi_check_pe(call, pe);
    memcpy(&args.value, value, size < 8 ? size : 8);
    if (size > 8)
        memcpy(&args.cond, (const char *)value + 8, size - 8);
    if (is_far(dest, size, pe, call)) {
        args.dest = (uintptr_t)dest;
        launch_far(SHMEMI_KERNEL_P, &args, pe, stream, call);
        return;
    }
    args.dest = (uintptr_t)shmemi_devmem_address(dest, size, pe, call);
    launch(SHMEMI_KERNEL_store, &args, 1, 1, stream, call);
}

void shmemi_g_on(void *value_out, const void *source, size_t size, int pe, struct CUstream_st *stream, const char *call)
{
    need_gpu(call);
    shmemi_check_pe(call, pe);
    if (is_far(source, size, pe, call)) {
        wait_for(stream, call);
        shmem_getmem(value_out, source, size, pe);
        return;
    }
    copied(shmemi_gpu_copy_on(value_out, shmemi_devmem_address(source, size, pe, call), size, stream), source, size, pe, call);
    wait_for(stream, call);
}

static size_t reach_of(size_t stride, size_t nelems, size_t elem, const char *call)
{
    size_t bytes = shmemi_bytes(nelems - 1, stride);

    if (bytes > SIZE_MAX - elem)
        shmemi_fatal(call, "%zu elements with a stride of %zu bytes exceed the address space", nelems, stride);
    return bytes + elem;
}

static void check_strides(ptrdiff_t dst, ptrdiff_t sst, const char *call)
{
    if (dst < 1 || sst < 1)
        shmemi_fatal(call, "strides are %td and %td: they must be at least 1", dst, sst);
}

void shmemi_iput_on(void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, size_t elem, int pe,
                    struct CUstream_st *stream, const char *call)
{
    size_t to_step = shmemi_bytes((size_t)dst, elem), from_step = shmemi_bytes((size_t)sst, elem);

    need_gpu(call);
    shmemi_check_pe(call, pe);
    if (!nelems)
        return;
    check_strides(dst, sst, call);
    if (is_far(dest, reach_of(to_step, nelems, elem, call), pe, call)) {
        strided_far(SHMEMI_KERNEL_IPUT, dest, source, dst, sst, nelems, elem, pe, stream, call);
        return;
    }
    dest = shmemi_devmem_address(dest, reach_of(to_step, nelems, elem, call), pe, call);
    copied(shmemi_gpu_copy2d_on(dest, to_step, source, from_step, elem, nelems, stream), dest, nelems * elem, pe, call);
}

void shmemi_iget_on(void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, size_t elem, int pe,
                    struct CUstream_st *stream, const char *call)
{
    size_t to_step = shmemi_bytes((size_t)dst, elem), from_step = shmemi_bytes((size_t)sst, elem);

    need_gpu(call);
    shmemi_check_pe(call, pe);
    if (!nelems)
        return;
    check_strides(dst, sst, call);
    if (is_far(source, reach_of(from_step, nelems, elem, call), pe, call)) {
        strided_far(SHMEMI_KERNEL_IGET, dest, source, dst, sst, nelems, elem, pe, stream, call);
        return;
    }
    source = shmemi_devmem_address(source, reach_of(from_step, nelems, elem, call), pe, call);
    copied(shmemi_gpu_copy2d_on(dest, to_step, source, from_step, elem, nelems, stream), source, nelems * elem, pe, call);
}

void shmemi_put_signal_on(void *dest, const void *source, size_t len, uint64_t *sig_addr, uint64_t signal, int sig_op, int pe,
                          struct CUstream_st *stream, const char *call)
{
    struct shmemi_kernel_args args = { .value = signal, .op = (uint32_t)sig_op };

    need_gpu(call);
    shmemi_check_pe(call, pe);
    if (sig_op != SHMEM_SIGNAL_SET && sig_op != SHMEM_SIGNAL_ADD)
        shmemi_fatal(call, "sig_op %d is neither SHMEM_SIGNAL_SET nor SHMEM_SIGNAL_ADD", sig_op);
    shmemi_check_aligned(sig_addr, sizeof *sig_addr, call);
    if (is_far(sig_addr, sizeof *sig_addr, pe, call)) {
        shmemi_put_on(dest, source, len, pe, stream, call); /* waits until the data is there, or is ahead in the same queue */
        args.dest = (uintptr_t)sig_addr;
        launch_far(SHMEMI_KERNEL_SIGNAL, &args, pe, stream, call);
        return;
    }
    args.dest = (uintptr_t)shmemi_devmem_address(sig_addr, sizeof *sig_addr, pe, call);
    if (len)
        copied(shmemi_gpu_copy_on(shmemi_devmem_address(dest, len, pe, call), source, len, stream), dest, len, pe, call);
    launch(SHMEMI_KERNEL_signal, &args, 1, 1, stream, call);
}

void shmemi_wait_on(int kind, const void *ivar, int cmp, uint64_t value, struct CUstream_st *stream, const char *call)
{
    struct shmemi_kernel_args args = { .dest = (uintptr_t)ivar, .op = (uint32_t)cmp, .kind = kind, .value = value };
    size_t size = (size_t)(kind < 0 ? -kind : kind);

    need_gpu(call);
    if (cmp < SHMEM_CMP_EQ || cmp > SHMEM_CMP_GE)
        shmemi_fatal(call, "comparison %d is not one of SHMEM_CMP_*", cmp);
    shmemi_check_aligned(ivar, size, call);
    shmemi_devmem_address(ivar, size, shmemi.my_pe, call); /* only to see that it is symmetric */
    launch(SHMEMI_KERNEL_wait, &args, 1, 1, stream, call);
}

/* ---- teams ---- */

static struct shmemi_team *team_of(shmem_team_t team, const char *call)
{
    need_gpu(call);
    return shmemi_team_get_or_invalid(team, call);
}

/* Has the team members on other nodes? */
static bool spans_nodes(const struct shmemi_team *t)
{
    for (int i = 0; shmemi_net.up && i < t->n_pes; i++)
        if (shmemi.node_of[shmemi_team_world_pe(t, i)] != shmemi.node_of[shmemi.my_pe])
            return true;
    return false;
}

static void fill_team(struct shmemi_kernel_args *args, const struct shmemi_team *t)
{
    args->team = shmemi_devmem_team_entry(t);
    args->team.far = spans_nodes(t);
    args->team_handle = (uintptr_t)shmemi_team_handle(t);
}

static int sync_on(shmem_team_t team, bool fenced, struct CUstream_st *stream, const char *call)
{
    struct shmemi_kernel_args args = { .fenced = fenced };
    const struct shmemi_team *t = team_of(team, call);

    if (!t)
        return -1;
    fill_team(&args, t);
    launch(SHMEMI_KERNEL_sync, &args, 1, 32, stream, call);
    return 0;
}

static unsigned blocks_for(size_t bytes)
{
    size_t n = (bytes + BYTES_A_BLOCK - 1) / BYTES_A_BLOCK;

    return n < 1 ? 1 : n > SHMEMI_KERNEL_BLOCKS ? SHMEMI_KERNEL_BLOCKS : (unsigned)n;
}

/* A thread for each line of a short message, of which there is one for each member. */
static unsigned threads_for(size_t bytes, int n_pes)
{
    size_t lines = shmemi_round_up((bytes + 7) / 8 * (size_t)n_pes, 32);

    return lines < 32 ? 32 : lines > SHMEMI_KERNEL_THREADS ? SHMEMI_KERNEL_THREADS : (unsigned)lines;
}

/* What the members of `t` read or write must be reachable from kernels here. */
static void check_symmetric(const struct shmemi_team *t, const void *addr, size_t len, const char *call)
{
    for (int i = 0; len && i < t->n_pes; i++)
        if (!is_far(addr, len, shmemi_team_world_pe(t, i), call))
            shmemi_devmem_address(addr, len, shmemi_team_world_pe(t, i), call);
}

int shmemi_coll_on(int coll, shmem_team_t team, void *dest, const void *source, size_t len, int root,
                   struct CUstream_st *stream, const char *call)
{
    struct shmemi_kernel_args args = { .dest = (uintptr_t)dest, .source = (uintptr_t)source, .bytes = len,
                                       .coll = (uint32_t)coll, .root = root };
    const struct shmemi_team *t = team_of(team, call);
    bool all_parts = coll == SHMEMI_KERNEL_FCOLLECT || coll == SHMEMI_KERNEL_ALLTOALL;

    if (!t)
        return -1;
    if (coll == SHMEMI_KERNEL_BROADCAST && (root < 0 || root >= t->n_pes))
        shmemi_fatal(call, "PE_root %d is out of range: the team has PEs 0 to %d", root, t->n_pes - 1);
    check_symmetric(t, dest, all_parts ? shmemi_bytes(len, (size_t)t->n_pes) : len, call);
    fill_team(&args, t);
    args.value = coll == SHMEMI_KERNEL_ALLTOALL ? len : 0;
    if (args.team.far || coll == SHMEMI_KERNEL_COLLECT)
        launch(SHMEMI_KERNEL_small, &args, 1, SHMEMI_KERNEL_THREADS, stream, call);
    else if (len <= shmemi_sync_message((uint32_t)t->n_pes))
        launch(SHMEMI_KERNEL_small, &args, 1, threads_for(len, t->n_pes), stream, call);
    else
        launch(all_parts ? SHMEMI_KERNEL_exchange : SHMEMI_KERNEL_broadcast, &args, blocks_for(len), SHMEMI_KERNEL_THREADS,
               stream, call);
    return 0;
}

/* Of which the kernel for short messages has code. */
static bool has_short_form(int kind, int op)
{
    return op == SHMEMI_KERNEL_SUM && (kind == SHMEMI_KERNEL_F32 || kind == SHMEMI_KERNEL_F64 ||
                                       kind == SHMEMI_KERNEL_I32 || kind == SHMEMI_KERNEL_U32);
}

void shmemi_team_reduce_on(const struct shmemi_team *t, void *dest, const void *source, size_t len, int kind, int op,
                           struct CUstream_st *stream, const char *call)
{
    struct shmemi_kernel_args args = { .dest = (uintptr_t)dest, .source = (uintptr_t)source, .bytes = len,
                                       .coll = SHMEMI_KERNEL_REDUCE, .op = (uint32_t)op, .kind = kind };

    check_symmetric(t, dest, len, call);
    check_symmetric(t, source, len, call);
    fill_team(&args, t);
    if (args.team.far)
        launch(SHMEMI_KERNEL_small, &args, 1, SHMEMI_KERNEL_THREADS, stream, call);
    else if (len <= shmemi_sync_message((uint32_t)t->n_pes) && has_short_form(kind, op))
        launch(SHMEMI_KERNEL_small, &args, 1, threads_for(len, t->n_pes), stream, call);
    else
        launch(SHMEMI_KERNEL_reduce, &args, blocks_for(len), SHMEMI_KERNEL_THREADS, stream, call);
}

int shmemi_reduce_on(shmem_team_t team, void *dest, const void *source, size_t nreduce, size_t elem, int kind, int op,
                     struct CUstream_st *stream, const char *call)
{
    const struct shmemi_team *t = team_of(team, call);

    if (!t)
        return -1;
    if (kind == SHMEMI_KERNEL_NO_KIND)
        shmemi_fatal(call, "GPUs have no long double");
    shmemi_team_reduce_on(t, dest, source, shmemi_bytes(nreduce, elem), kind, op, stream, call);
    return 0;
}

/* ---- the routines without a type ---- */

SHMEMI_API(void, shmemx_barrier_all_on_stream, (struct CUstream_st *stream))
{
    sync_on(SHMEM_TEAM_WORLD, true, stream, "shmemx_barrier_all_on_stream");
}

SHMEMI_API(void, shmemx_sync_all_on_stream, (struct CUstream_st *stream))
{
    sync_on(SHMEM_TEAM_WORLD, false, stream, "shmemx_sync_all_on_stream");
}

SHMEMI_API(int, shmemx_barrier_on_stream, (shmem_team_t team, struct CUstream_st *stream))
{
    return sync_on(team, true, stream, "shmemx_barrier_on_stream");
}

SHMEMI_API(int, shmemx_team_sync_on_stream, (shmem_team_t team, struct CUstream_st *stream))
{
    return sync_on(team, false, stream, "shmemx_team_sync_on_stream");
}

/* By load and store, what the stream did before is complete when the stream comes here; kernels may have posted to the NIC. */
SHMEMI_API(void, shmemx_quiet_on_stream, (struct CUstream_st *stream))
{
    static const char call[] = "shmemx_quiet_on_stream";
    struct shmemi_kernel_args args = { .dest = 0 };

    need_gpu(call);
    if (shmemi_net.up && shmemi_devmem_has_nic())
        launch_far(SHMEMI_KERNEL_QUIET, &args, shmemi.my_pe, stream, call);
}

SHMEMI_API(void, shmemx_signal_op_on_stream,
           (uint64_t *sig_addr, uint64_t signal, int sig_op, int pe, struct CUstream_st *stream))
{
    shmemi_put_signal_on(NULL, NULL, 0, sig_addr, signal, sig_op, pe, stream, "shmemx_signal_op_on_stream");
}

SHMEMI_API(void, shmemx_signal_wait_until_on_stream,
           (uint64_t *sig_addr, int cmp, uint64_t cmp_value, struct CUstream_st *stream))
{
    shmemi_wait_on(8, sig_addr, cmp, cmp_value, stream, "shmemx_signal_wait_until_on_stream");
}

/* ---- kernels of the program that meet across PEs ---- */

/* Is that no kernel?  CUDA knows none where there is no GPU that it can use, or no code for it.  Said once. */
static bool no_kernel(const struct CUfunc_st *function, const char *call)
{
    static bool said;

    shmemi_check_init(call);
    if (function)
        return false;
    if (!said && shmemi.gpu_up)
        shmemi_warn(call, "CUDA does not know this kernel: was it compiled for this GPU (compute capability %d.%d), and linked "
                    "into the program?", shmemi_gpu.cc / 10, shmemi_gpu.cc % 10);
    else if (!said)
        shmemi_warn(call, "no kernel can be launched, CUDA is not up: %s", *shmemi_devmem_why() ? shmemi_devmem_why()
                    : "there is no usable GPU here, or no device memory was allocated before (shmem-info -t says more)");
    said = true;
    return true;
}

SHMEMI_API(int, shmemx_collective_launch_cufunction,
           (struct CUfunc_st *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
            unsigned block_y, unsigned block_z, void **args, size_t shared, struct CUstream_st *stream))
{
    static const char call[] = "shmemx_collective_launch";
    const unsigned grid[3] = { grid_x, grid_y, grid_z }, block[3] = { block_x, block_y, block_z };
    int rc;

    if (no_kernel(function, call))
        return -1;
    need_gpu(call);
    rc = shmemi_kernel_launch_together(function, grid, block, args, shared, stream);
    if (rc)
        shmemi_warn(call, "%s", shmemi_kernel_why());
    return rc;
}

SHMEMI_API(int, shmemx_collective_launch_query_gridsize_cufunction,
           (struct CUfunc_st *function, unsigned block_x, unsigned block_y, unsigned block_z, size_t shared, int *gridsize))
{
    static const char call[] = "shmemx_collective_launch_query_gridsize";

    if (no_kernel(function, call))
        return -1;
    need_gpu(call);
    shmemi_check_result(gridsize, "gridsize", call);
    return shmemi_kernel_most_blocks(function, block_x * block_y * block_z, shared, gridsize);
}
