/* SPDX-License-Identifier: BSD-3-Clause */
/* Protection domains and doorbell pages: small numbered things that others refer to. */
#include <stdlib.h>
#include <string.h>

#include "hca/objects.h"

int hca_pd_new(struct hca *hca, struct hca_pd **out)
{
    for (uint32_t pdn = 1; pdn < HCA_MAX_PD; pdn++) {
        if (hca->pd[pdn])
            continue;
        hca->pd[pdn] = calloc(1, sizeof **hca->pd);
        if (!hca->pd[pdn])
            return -ENOMEM;
        hca->pd[pdn]->pdn = pdn;
        *out = hca->pd[pdn];
        return 0;
    }
    return -ENOMEM;
}

int hca_pd_free(struct hca *hca, struct hca_pd *pd)
{
    if (pd->users)
        return -EBUSY;
    hca->pd[pd->pdn] = NULL;
    free(pd);
    return 0;
}

struct hca_pd *hca_pd_find(struct hca *hca, uint32_t pdn)
{
    return pdn < HCA_MAX_PD ? hca->pd[pdn] : NULL;
}

int hca_uar_new(struct hca *hca, uint8_t *page, bool dedicated, struct hca_uar **out)
{
    uint32_t most = hca->uar_most && hca->uar_most < HCA_MAX_UAR ? hca->uar_most : HCA_MAX_UAR - 1;

    for (uint32_t i = 1; i <= most; i++) {
        struct hca_uar *uar = &hca->uar[i];

        if (uar->used)
            continue;
        memset(uar, 0, sizeof *uar);
        uar->page_id = i;
        uar->page = page;
        uar->dedicated = dedicated;
        hca_list_init(&uar->qps);
        uar->used = true;
        if (i >= hca->uar_top)
            hca->uar_top = i + 1;
        *out = uar;
        return 0;
    }
    return -ENOMEM;
}

int hca_uar_free(struct hca *hca, struct hca_uar *uar)
{
    if (uar->users)
        return -EBUSY;
    uar->used = false;
    uar->page = NULL;
    while (hca->uar_top > 1 && !hca->uar[hca->uar_top - 1].used)
        hca->uar_top--;
    return 0;
}

struct hca_uar *hca_uar_find(struct hca *hca, uint32_t page_id)
{
    return page_id < HCA_MAX_UAR && hca->uar[page_id].used ? &hca->uar[page_id] : NULL;
}
