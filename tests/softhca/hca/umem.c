/* SPDX-License-Identifier: BSD-3-Clause */
/* User memory that DEVX objects refer to by number: rings and doorbell records. */
#include <stdlib.h>

#include "hca/objects.h"

int hca_umem_new(struct hca *hca, const struct hca_mr_attr *attr, struct hca_umem **out)
{
    struct hca_umem *umem;
    uint32_t id = 1;
    int err;

    while (id < HCA_MAX_UMEM && hca->umem[id])
        id++;
    if (id == HCA_MAX_UMEM)
        return -ENOMEM;
    umem = calloc(1, sizeof *umem);
    if (!umem)
        return -ENOMEM;
    if (attr->dmabuf_fd < 0) {
        umem->mem = hca_mem_get(attr->addr, attr->len, true, &err);
    } else {
        umem->mem = calloc(1, sizeof *umem->mem);
        err = umem->mem ? mem_attach_dmabuf(umem->mem, attr->dmabuf_fd, attr->addr, attr->len, 0, true) : -ENOMEM;
        if (!err)
            umem->mem->refs = 1;
        else
            free(umem->mem);
    }
    if (err) {
        free(umem);
        return err;
    }
    umem->id = id;
    umem->access = attr->access;
    hca->umem[id] = umem;
    *out = umem;
    return 0;
}

/* Objects made from a umem hold its memory range themselves, as hardware holds the pages. */
int hca_umem_free(struct hca *hca, struct hca_umem *umem)
{
    hca->umem[umem->id] = NULL;
    hca_mem_put(umem->mem);
    free(umem);
    return 0;
}

struct hca_umem *hca_umem_find(struct hca *hca, uint32_t id)
{
    return id < HCA_MAX_UMEM ? hca->umem[id] : NULL;
}
