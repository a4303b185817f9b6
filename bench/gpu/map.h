/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * map.h - the names that the benchmark uses, ours; with -DUSE_NVSHMEM each stands for NVSHMEM's call of the same meaning.
 *
 * Both libraries are started by oshrun.  Ours finds its peers by itself; NVSHMEM gets a unique id that PE 0 writes to the
 * file named in BENCH_UID_FILE.  BENCH_NO_STREAM leaves out the rows on streams, for a library built without nvcc.
 */
#ifndef BENCH_MAP_H
#define BENCH_MAP_H

#include <cuda_runtime.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#if !defined(USE_NVSHMEM)

#include <shmem.h>
#include <shmemx.h>

#define BENCH_LIBRARY "Marrow"

static inline void bench_prepare(int pe, int n_pes)
{
    (void)pe;
    (void)n_pes;
}

static inline void bench_init(void)
{
    shmem_init();
}

#else

#include <nvshmem.h>
#include <nvshmemx.h>

#define BENCH_LIBRARY "NVSHMEM"

#define SHMEM_TEAM_WORLD NVSHMEM_TEAM_WORLD
#define SHMEM_SIGNAL_SET NVSHMEM_SIGNAL_SET
#define SHMEM_CMP_GE NVSHMEM_CMP_GE

#define shmem_finalize nvshmem_finalize
#define shmem_my_pe nvshmem_my_pe
#define shmem_n_pes nvshmem_n_pes
#define shmemx_malloc_device nvshmem_malloc
#define shmem_free nvshmem_free

#define shmem_barrier_all nvshmem_barrier_all
#define shmemx_barrier_all_warp nvshmemx_barrier_all_warp
#define shmemx_barrier_all_block nvshmemx_barrier_all_block
#define shmemx_barrier_all_on_stream nvshmemx_barrier_all_on_stream
#define shmem_sync_all nvshmem_sync_all
#define shmemx_sync_all_warp nvshmemx_sync_all_warp
#define shmemx_sync_all_block nvshmemx_sync_all_block
#define shmem_quiet nvshmem_quiet
#define shmem_fence nvshmem_fence

#define shmem_int64_p nvshmem_int64_p
#define shmem_int64_g nvshmem_int64_g
#define shmem_putmem nvshmem_putmem
#define shmemx_putmem_block nvshmemx_putmem_block
#define shmemx_putmem_nbi_block nvshmemx_putmem_nbi_block
#define shmemx_getmem_block nvshmemx_getmem_block
#define shmemx_getmem_nbi_block nvshmemx_getmem_nbi_block
#define shmemx_putmem_signal_block nvshmemx_putmem_signal_block
#define shmemx_signal_op nvshmemx_signal_op
#define shmem_signal_wait_until nvshmem_signal_wait_until

#define shmem_uint64_atomic_add nvshmem_uint64_atomic_add
#define shmem_uint64_atomic_fetch_add nvshmem_uint64_atomic_fetch_add
#define shmem_uint64_atomic_compare_swap nvshmem_uint64_atomic_compare_swap

#define shmemx_int_sum_reduce_block nvshmemx_int_sum_reduce_block
#define shmemx_int_fcollect_block nvshmemx_int_fcollect_block
#define shmemx_int_broadcast_block nvshmemx_int_broadcast_block
#define shmemx_int_alltoall_block nvshmemx_int_alltoall_block
#define shmemx_int_sum_reduce_on_stream nvshmemx_int_sum_reduce_on_stream

static nvshmemx_init_attr_t bench_attr = NVSHMEMX_INIT_ATTR_INITIALIZER;
static nvshmemx_uniqueid_t bench_id = NVSHMEMX_UNIQUEID_INITIALIZER;

static inline void bench_die(const char *what)
{
    fprintf(stderr, "bench: %s\n", what);
    exit(1);
}

/* PE 0 makes the id, the others wait up to 20 seconds for the file. */
static inline void bench_prepare(int pe, int n_pes)
{
    const char *path = getenv("BENCH_UID_FILE");
    char part[4096];
    FILE *f = NULL;

    if (!path)
        bench_die("BENCH_UID_FILE is not set");
    if (pe == 0) {
        snprintf(part, sizeof part, "%s.part", path);
        if (nvshmemx_get_uniqueid(&bench_id) || !(f = fopen(part, "wb")) ||
            fwrite(&bench_id, sizeof bench_id, 1, f) != 1 || fclose(f) || rename(part, path))
            bench_die("cannot make or write the unique id");
    } else {
        for (int i = 0; i < 2000 && !(f = fopen(path, "rb")); i++)
            usleep(10000);
        if (!f || fread(&bench_id, sizeof bench_id, 1, f) != 1)
            bench_die("the unique id did not come");
        fclose(f);
    }
    if (nvshmemx_set_attr_uniqueid_args(pe, n_pes, &bench_id, &bench_attr))
        bench_die("the unique id was refused");
}

static inline void bench_init(void)
{
    if (nvshmemx_init_attr(NVSHMEMX_INIT_WITH_UNIQUEID, &bench_attr))
        bench_die("init failed");
}

#endif

#endif
