/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * devmem_coll.c - the host's collectives on buffers in the device heap.
 *
 * What only moves is moved by the copy engine, to each member, and by the NIC to those of other nodes, between two meetings of
 * the hosts.  Reductions are a kernel of the library, the one of the routines on streams; where there is none (built without
 * nvcc, long double, static data, members on several nodes) and for scans, the hosts combine: each a share of the elements
 * for all, as coll_bulk.c and scan.c do.
 */
#include "devmem_coll.h"

#include "devmem_rma.h"
#include "onstream.h"
#include "rma.h"
#include "span.h"
#include "transports/cuda/gpu.h"
#include "transports/cuda/kernel_args.h"

#include <stdlib.h>

#define CHUNK_BYTES ((size_t)256 << 10)

/* Member i is given after me + 1, me + 2, ...; the own part comes last. */
static int partner(const struct shmemi_team *t, int step)
{
    return (t->my_pe + step) % t->n_pes;
}

static void move(void *to, const void *from, size_t len, bool wait, const void *addr, const char *call)
{
    if (to != from && len && shmemi_gpu_copy(to, from, len, wait))
        shmemi_fatal(call, "%zu bytes at %p: the GPU's copy failed", len, addr);
}

/* Gives `len` bytes at `source`, local, to member i's `dest`; complete after finish(). */
static void give(struct shmemi_team *t, int i, void *dest, const void *source, size_t len, const char *call)
{
    int pe = shmemi_team_world_pe(t, i);

    if (!len)
        return;
    if (shmemi_devmem_far(dest, len, pe, call))
        shmemi_net_put(SHMEM_CTX_DEFAULT, dest, source, len, pe, true, call);
    else
        move(shmemi_devmem_address(dest, len, pe, call), source, len, false, dest, call);
}

static void finish(struct shmemi_team *t, const char *call)
{
    shmemi_quiet(SHMEM_CTX_DEFAULT, call);
    shmemi_team_sync(t, call);
}

/* Own bytes, which must be symmetric. */
static const void *own(const void *addr, size_t len, const char *call)
{
    return len ? shmemi_devmem_address(addr, len, shmemi.my_pe, call) : addr;
}

void shmemi_devmem_broadcast(struct shmemi_team *t, void *dest, const void *source, size_t len, int root, const char *call)
{
    own(dest, len, call);
    shmemi_team_sync(t, call);
    if (t->my_pe == root) {
        source = own(source, len, call);
        for (int step = 1; step <= t->n_pes; step++)
            give(t, partner(t, step), dest, source, len, call);
    }
    finish(t, call);
}

void shmemi_devmem_fcollect(struct shmemi_team *t, void *dest, const void *source, size_t len, const char *call)
{
    own(dest, len * (size_t)t->n_pes, call);
    source = own(source, len, call);
    shmemi_team_sync(t, call);
    for (int step = 1; step <= t->n_pes; step++)
        give(t, partner(t, step), (char *)dest + (size_t)t->my_pe * len, source, len, call);
    finish(t, call);
}

/* Bytes of the members before this one; waits for all, whose dest may be written from then on. */
static size_t offset(struct shmemi_team *t, uint64_t mine, const char *call)
{
    struct shmemi_exchange x;
    size_t at = 0;

    if (t->coll->span && !t->coll->span->lines)
        return shmemi_span_offset(t, mine, call);
    shmemi_exchange_begin(&x, t, &mine, sizeof mine, call);
    for (int i = 0; i < t->n_pes; i++) {
        const uint64_t *theirs = shmemi_exchange_from(&x, i);

        at += i < t->my_pe ? (size_t)*theirs : 0;
    }
    shmemi_exchange_end(&x, true);
    return at;
}

void shmemi_devmem_collect(struct shmemi_team *t, void *dest, const void *source, size_t len, const char *call)
{
    size_t at;

    source = own(source, len, call);
    at = offset(t, len, call);
    for (int step = 1; step <= t->n_pes; step++)
        give(t, partner(t, step), (char *)dest + at, source, len, call);
    finish(t, call);
}

void shmemi_devmem_alltoalls(struct shmemi_team *t, void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst,
                             size_t nelems, size_t elem, const char *call)
{
    size_t to_block = nelems * (size_t)dst * elem, from_block = nelems * (size_t)sst * elem;
    size_t n = nelems * (size_t)t->n_pes, span = shmemi_extent(nelems, dst, elem, call);
    const char *from = own(source, shmemi_extent(n, sst, elem, call), call);
    char *to = (char *)dest + (size_t)t->my_pe * to_block;

    own(dest, shmemi_extent(n, dst, elem, call), call);
    shmemi_team_sync(t, call);
    for (int step = 1; step <= t->n_pes; step++) {
        int i = partner(t, step), pe = shmemi_team_world_pe(t, i);
        const char *part = from + (size_t)i * from_block;

        if (dst == 1 && sst == 1)
            give(t, i, to, part, nelems * elem, call);
        else if (shmemi_devmem_far(to, span, pe, call))
            shmemi_net_put_strided(SHMEM_CTX_DEFAULT, to, (size_t)dst * elem, part, (size_t)sst * elem, nelems, elem, pe, call);
        else if (shmemi_gpu_copy2d(shmemi_devmem_address(to, span, pe, call), (size_t)dst * elem, part, (size_t)sst * elem, elem,
                                   nelems))
            shmemi_fatal(call, "%zu elements at %p (PE %d): the GPU's copy failed", nelems, dest, pe);
    }
    finish(t, call);
}

/* ---- reductions ---- */

/* Can the kernels of all members load and store there? */
static bool kernels_reach(const void *addr)
{
    return shmemi_in_device_heap(addr) || (shmemi_gpu.registers && (uintptr_t)addr - shmemi.heap_base < shmemi.heap_len);
}

/* What the host's loop does, in the names of the library's kernels. */
static bool kernel_for(shmemi_red_fn *loop, int *op_out, int *kind_out)
{
    static const int ops[SHMEMI_RED_OPS] = {
        [SHMEMI_RED_AND] = SHMEMI_KERNEL_AND, [SHMEMI_RED_OR] = SHMEMI_KERNEL_OR,   [SHMEMI_RED_XOR] = SHMEMI_KERNEL_XOR,
        [SHMEMI_RED_MAX] = SHMEMI_KERNEL_MAX, [SHMEMI_RED_MIN] = SHMEMI_KERNEL_MIN, [SHMEMI_RED_SUM] = SHMEMI_KERNEL_SUM,
        [SHMEMI_RED_PROD] = SHMEMI_KERNEL_PROD,
    };
    static const int kinds[SHMEMI_RED_TYPES] = {
        [SHMEMI_RED_U8] = SHMEMI_KERNEL_U8,         [SHMEMI_RED_U16] = SHMEMI_KERNEL_U16,
        [SHMEMI_RED_U32] = SHMEMI_KERNEL_U32,       [SHMEMI_RED_U64] = SHMEMI_KERNEL_U64,
        [SHMEMI_RED_I8] = SHMEMI_KERNEL_I8,         [SHMEMI_RED_I16] = SHMEMI_KERNEL_I16,
        [SHMEMI_RED_I32] = SHMEMI_KERNEL_I32,       [SHMEMI_RED_I64] = SHMEMI_KERNEL_I64,
        [SHMEMI_RED_FLOAT] = SHMEMI_KERNEL_F32,     [SHMEMI_RED_DOUBLE] = SHMEMI_KERNEL_F64,
        [SHMEMI_RED_COMPLEXF] = SHMEMI_KERNEL_C32,  [SHMEMI_RED_COMPLEXD] = SHMEMI_KERNEL_C64,
        [SHMEMI_RED_LONGDOUBLE] = SHMEMI_KERNEL_NO_KIND,
    };

    for (int op = 0; op < SHMEMI_RED_OPS; op++)
        for (int type = 0; type < SHMEMI_RED_TYPES; type++)
            if (shmemi_red_kernels[op][type] == loop) {
                *op_out = ops[op];
                *kind_out = kinds[type];
                return kinds[type] != SHMEMI_KERNEL_NO_KIND;
            }
    return false;
}

/* Two buffers of a chunk. */
static unsigned char *chunks(const char *call)
{
    unsigned char *p = malloc(2 * CHUNK_BYTES);

    if (!p)
        shmemi_fatal(call, "no memory for a buffer of %zu bytes", 2 * CHUNK_BYTES);
    return p;
}

/* Takes `len` bytes at the symmetric address `addr` of a member to the host. */
static void take(const struct shmemi_group *g, int i, void *to, const void *addr, size_t len)
{
    int pe = shmemi_group_pe(g, i);

    if (shmemi_devmem_far(addr, len, pe, g->call))
        shmemi_net_get(SHMEM_CTX_DEFAULT, to, addr, len, pe, false, g->call);
    else
        move(to, shmemi_devmem_address(addr, len, pe, g->call), len, true, addr, g->call);
}

/* And there; complete after shmemi_quiet. */
static void bring(const struct shmemi_group *g, int i, void *addr, const void *from, size_t len)
{
    int pe = shmemi_group_pe(g, i);

    if (shmemi_devmem_far(addr, len, pe, g->call))
        shmemi_net_put(SHMEM_CTX_DEFAULT, addr, from, len, pe, false, g->call);
    else
        move(shmemi_devmem_address(addr, len, pe, g->call), from, len, true, addr, g->call);
}

static void end(const struct shmemi_group *g)
{
    shmemi_quiet(SHMEM_CTX_DEFAULT, g->call);
    shmemi_group_sync(g);
}

static void share_reduce(const struct shmemi_group *g, void *dest, const void *source, size_t n_all, size_t elem,
                         shmemi_red_fn *kernel)
{
    unsigned char *acc = chunks(g->call), *part = acc + CHUNK_BYTES;
    size_t first, count, n;

    shmemi_group_sync(g);
    shmemi_share(g, n_all, elem, &first, &count);
    for (; count > 0; first += n, count -= n) {
        const char *from = (const char *)source + first * elem;
        char *to = (char *)dest + first * elem;
        size_t len;

        n = count < CHUNK_BYTES / elem ? count : CHUNK_BYTES / elem;
        len = n * elem;
        take(g, 0, acc, from, len);
        for (int i = 1; i < g->n_pes; i++) {
            take(g, i, part, from, len);
            kernel(acc, part, n);
        }
        for (int i = 0; i < g->n_pes; i++)
            bring(g, i, to, acc, len);
    }
    free(acc);
    end(g);
}

void shmemi_devmem_reduce(struct shmemi_team *t, void *dest, const void *source, size_t nreduce, size_t elem,
                          shmemi_red_fn *kernel, const char *call)
{
    const struct shmemi_group g = shmemi_group_of(t, call);
    size_t len = nreduce * elem;
    int op, kind;

    own(dest, len, call);
    own(source, len, call);
    if (t->coll->span || !shmemi_devmem_kernels() || !kernels_reach(dest) || !kernels_reach(source) || !kernel_for(kernel, &op, &kind)) {
        share_reduce(&g, dest, source, nreduce, elem, kernel);
        return;
    }
    shmemi_team_reduce_on(t, dest, source, len, kind, op, shmemi_gpu.stream, call);
    if (shmemi_gpu_stream_wait(shmemi_gpu.stream))
        shmemi_fatal(call, "the kernel for %zu bytes at %p failed", len, dest);
}

/* As bulk_scan in scan.c. */
void shmemi_devmem_scan(struct shmemi_team *t, void *dest, const void *source, size_t nelems, size_t elem, bool inclusive,
                        shmemi_red_fn *kernel, const char *call)
{
    const struct shmemi_group g = shmemi_group_of(t, call);
    unsigned char *sum = chunks(call), *part = sum + CHUNK_BYTES;
    size_t first, count, n;

    shmemi_group_sync(&g);
    shmemi_share(&g, nelems, elem, &first, &count);
    for (; count > 0; first += n, count -= n) {
        const char *from = (const char *)source + first * elem;
        char *to = (char *)dest + first * elem;
        size_t len;

        n = count < CHUNK_BYTES / elem ? count : CHUNK_BYTES / elem;
        len = n * elem;
        memset(sum, 0, len);
        for (int i = 0; i < g.n_pes; i++) {
            take(&g, i, part, from, len);
            if (!inclusive)
                bring(&g, i, to, sum, len);
            if (i == 0)
                memcpy(sum, part, len);
            else
                kernel(sum, part, n);
            if (inclusive)
                bring(&g, i, to, sum, len);
        }
    }
    free(sum);
    end(&g);
}
