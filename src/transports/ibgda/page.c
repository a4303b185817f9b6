/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * page.c - doorbell pages for queues without a doorbell record, one each.
 *
 * Nobody may overwrite a doorbell that alone announces entries before it is looked at.  A real NIC takes each store; but where the
 * register is memory (the tests' NIC), queues that share it would lose some.  libmlx5 hands out registers of other queues, of which a
 * page has two or four: those that lie in a page that is here already are kept until the end, so that it gives another page.
 *
 * The pages are not for this process's threads but for kernels, which see them through a mapping of their own; so how they are
 * mapped here (uncached, or write-combining) does not matter.
 */
#include "ibgda.h"

#include <stdlib.h>

enum { MOST_OF_A_PAGE = 8 };

static struct mlx5dv_devx_uar *any_register(struct shmemi_verbs_nic *nic)
{
#ifdef MLX5DV_UAR_ALLOC_TYPE_NC_DEDICATED
    struct mlx5dv_devx_uar *uar = mlx5dv_devx_alloc_uar(nic->ctx, MLX5DV_UAR_ALLOC_TYPE_NC_DEDICATED);

    if (uar)
        return uar; /* else libmlx5 is older than its header */
#endif
    return mlx5dv_devx_alloc_uar(nic->ctx, MLX5DV_UAR_ALLOC_TYPE_BF);
}

static struct shmemi_ibgda_page *add(struct shmemi_verbs_nic *nic)
{
    struct shmemi_ibgda_page *page = calloc(1, sizeof *page), *other = nic->ibgda->pages;

    if (page)
        page->uar = any_register(nic);
    if (!page || !page->uar) {
        free(page);
        return NULL;
    }
    while (other && other->uar->base_addr != page->uar->base_addr)
        other = other->next;
    page->taken = other != NULL;
    page->next = nic->ibgda->pages;
    nic->ibgda->pages = page;
    return page;
}

struct shmemi_ibgda_page *shmemi_ibgda_page_take(struct shmemi_verbs_nic *nic)
{
    struct shmemi_ibgda *g = nic->ibgda;
    struct shmemi_ibgda_page *page;

    pthread_mutex_lock(&g->pages_lock);
    page = g->pages;
    while (page && page->taken)
        page = page->next;
    for (int i = 0; i < MOST_OF_A_PAGE && !page; i++) {
        page = add(nic);
        if (!page)
            break;
        if (page->taken)
            page = NULL;
    }
    if (page)
        page->taken = true;
    pthread_mutex_unlock(&g->pages_lock);
    return page;
}

void shmemi_ibgda_page_give(struct shmemi_verbs_nic *nic, struct shmemi_ibgda_page *page)
{
    pthread_mutex_lock(&nic->ibgda->pages_lock);
    page->taken = false;
    pthread_mutex_unlock(&nic->ibgda->pages_lock);
}

void shmemi_ibgda_pages_close(struct shmemi_verbs_nic *nic)
{
    struct shmemi_ibgda *g = nic->ibgda;

    while (g->pages) {
        struct shmemi_ibgda_page *page = g->pages;

        g->pages = page->next;
        mlx5dv_devx_free_uar(page->uar);
        free(page);
    }
    pthread_mutex_destroy(&g->pages_lock);
}
