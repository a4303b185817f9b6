/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * reduce.c - reductions on teams and active sets.
 *
 * Elements are combined in the order of the members' numbers on every PE (in a tree over nodes: node by node), so
 * all get the same bits, also of floating point.
 */
#include "reduce.h"

#include "devmem_coll.h"

#define CHUNK_BYTES 4096 /* stays in the first-level cache */

void shmemi_share(const struct shmemi_group *g, size_t n, size_t elem, size_t *first_out, size_t *count_out)
{
    size_t grain = elem < SHMEMI_CACHELINE ? SHMEMI_CACHELINE / elem : 1;
    size_t each = shmemi_round_up((n + (size_t)g->n_pes - 1) / (size_t)g->n_pes, grain);
    size_t first = each * (size_t)g->my_pe;

    *first_out = first < n ? first : n;
    *count_out = n - *first_out < each ? n - *first_out : each;
}

/*
 * Each member reduces a share of the elements and writes the result to all.  Nobody else reads or writes
 * that share, so source and dest may be the same array.
 */
void shmemi_bulk_reduce(const struct shmemi_group *g, void *dest, const void *source, size_t nreduce, size_t elem,
                        shmemi_red_fn *kernel)
{
    SHMEMI_ALIGNED_LINE unsigned char acc[CHUNK_BYTES];
    size_t first, count, n;

    if (g->far) {
        shmemi_far_reduce(g, dest, source, nreduce, elem, kernel);
        return;
    }
    shmemi_group_sync(g);
    shmemi_share(g, nreduce, elem, &first, &count);
    for (; count > 0; first += n, count -= n) {
        const char *from = (const char *)source + first * elem;
        char *to = (char *)dest + first * elem;
        size_t len;

        n = count < CHUNK_BYTES / elem ? count : CHUNK_BYTES / elem;
        len = n * elem;
        memcpy(acc, shmemi_group_addr(g, 0, from, len), len);
        for (int i = 1; i < g->n_pes; i++)
            kernel(acc, shmemi_group_addr(g, i, from, len), n);
        for (int i = 0; i < g->n_pes; i++)
            memcpy(shmemi_group_addr(g, i, to, len), acc, len);
    }
    shmemi_group_sync(g);
}

void shmemi_reduce(shmem_team_t team, void *dest, const void *source, size_t nreduce, size_t elem,
                   shmemi_red_fn *kernel, const char *call)
{
    struct shmemi_team *t = shmemi_team_get(team, call);
    size_t len = shmemi_mul(nreduce, elem, call);
    struct shmemi_exchange x;

    if (len == 0) {
        shmemi_team_sync(t, call);
        return;
    }
    if (shmemi_devmem_coll(dest, source)) {
        shmemi_devmem_reduce(t, dest, source, nreduce, elem, kernel, call);
        return;
    }
    shmemi_check_symmetric(dest, len, call);
    shmemi_check_symmetric(source, len, call);
    if (len > t->coll->stage_max) {
        struct shmemi_group g = shmemi_group_of(t, call);

        if (g.far)
            shmemi_span_reduce(t, dest, source, nreduce, elem, kernel, call);
        else
            shmemi_bulk_reduce(&g, dest, source, nreduce, elem, kernel);
        return;
    }
    shmemi_exchange_begin(&x, t, source, len, call);
    shmemi_copy_small(dest, shmemi_exchange_from(&x, 0), len);
    for (int i = 1; i < t->n_pes; i++)
        kernel(dest, shmemi_exchange_from(&x, i), nreduce);
    shmemi_exchange_end(&x, true);
}
