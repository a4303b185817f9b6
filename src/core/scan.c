/* SPDX-License-Identifier: BSD-3-Clause */
/* scan.c - inclusive and exclusive prefix sums over a team (specification 1.6, section 9.10). */
#include "reduce.h"

#include "devmem_coll.h"

#define CHUNK_BYTES 4096

/*
 * Each member scans a share of the elements for all members: it reads a member's part before it
 * writes it, so source and dest may be the same array.  All-zero bytes are 0 in every type.
 */
static void bulk_scan(const struct shmemi_group *g, void *dest, const void *source, size_t nelems, size_t elem,
                      bool inclusive, shmemi_red_fn *kernel)
{
    SHMEMI_ALIGNED_LINE unsigned char sum[CHUNK_BYTES], part[CHUNK_BYTES];
    size_t first, count, n;

    shmemi_group_sync(g);
    shmemi_share(g, nelems, elem, &first, &count);
    for (; count > 0; first += n, count -= n) {
        const char *from = (const char *)source + first * elem;
        char *to = (char *)dest + first * elem;
        size_t len;

        n = count < CHUNK_BYTES / elem ? count : CHUNK_BYTES / elem;
        len = n * elem;
        memset(sum, 0, len);
        for (int i = 0; i < g->n_pes; i++) {
            memcpy(part, shmemi_group_addr(g, i, from, len), len);
            if (!inclusive)
                memcpy(shmemi_group_addr(g, i, to, len), sum, len);
            if (i == 0)
                memcpy(sum, part, len);
            else
                kernel(sum, part, n);
            if (inclusive)
                memcpy(shmemi_group_addr(g, i, to, len), sum, len);
        }
    }
    shmemi_group_sync(g);
}

void shmemi_scan(shmem_team_t team, void *dest, const void *source, size_t nelems, size_t elem, bool inclusive,
                 shmemi_red_fn *kernel, const char *call)
{
    struct shmemi_team *t = shmemi_team_get(team, call);
    size_t len = shmemi_mul(nelems, elem, call);
    int last = inclusive ? t->my_pe : t->my_pe - 1;
    struct shmemi_exchange x;

    if (len == 0) {
        shmemi_team_sync(t, call);
        return;
    }
    if (shmemi_devmem_coll(dest, source)) {
        shmemi_devmem_scan(t, dest, source, nelems, elem, inclusive, kernel, call);
        return;
    }
    shmemi_check_symmetric(dest, len, call);
    shmemi_check_symmetric(source, len, call);
    if (len > t->coll->stage_max) {
        struct shmemi_group g = shmemi_group_of(t, call);

        if (g.far)
            shmemi_far_scan(&g, dest, source, nelems, elem, inclusive, kernel);
        else
            bulk_scan(&g, dest, source, nelems, elem, inclusive, kernel);
        return;
    }
    shmemi_exchange_begin(&x, t, source, len, call);
    if (last < 0)
        memset(dest, 0, len);
    else
        shmemi_copy_small(dest, shmemi_exchange_from(&x, 0), len);
    for (int i = 1; i <= last; i++)
        kernel(dest, shmemi_exchange_from(&x, i), nelems);
    /* PEs further on are waited for by the next operation. */
    shmemi_exchange_end(&x, false);
}
