/* SPDX-License-Identifier: BSD-3-Clause */
/* Handles of a device file, and how each type of object ends. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "fw/fw.h"
#include "uverbs/uverbs.h"

int uv_object_add(struct uv_context *ctx, enum uv_type type, void *ptr, uint32_t *handle_out)
{
    uint32_t handle = 0;

    while (handle < ctx->nobjects && ctx->object[handle].type != UV_NONE)
        handle++;
    if (handle == ctx->nobjects) {
        uint32_t more = ctx->nobjects ? ctx->nobjects * 2 : 64;
        struct uv_object *grown = realloc(ctx->object, more * sizeof *grown);

        if (!grown)
            return -ENOMEM;
        memset(grown + ctx->nobjects, 0, (more - ctx->nobjects) * sizeof *grown);
        ctx->object = grown;
        ctx->nobjects = more;
    }
    ctx->object[handle].type = type;
    ctx->object[handle].ptr = ptr;
    *handle_out = handle;
    return 0;
}

void *uv_object_get(struct uv_context *ctx, uint32_t handle, enum uv_type type, int *err_out)
{
    if (handle >= ctx->nobjects || ctx->object[handle].type == UV_NONE) {
        *err_out = -ENOENT;
        return NULL;
    }
    if (ctx->object[handle].type != type) {
        *err_out = -EINVAL;
        return NULL;
    }
    *err_out = 0;
    return ctx->object[handle].ptr;
}

static int destroy_cq(void *ptr, struct uv_gone *gone)
{
    struct hca_cq *cq = ptr;

    if (cq->users)
        return -EBUSY;
    gone->completion_events = uv_event_retire(&cq->comp);
    gone->async_events = uv_event_retire(&cq->async);
    uv_devx_unsubscribe_object(cq);
    return hca_cq_free(hca_current, cq);
}

static int destroy_qp(void *ptr, struct uv_gone *gone)
{
    struct hca_qp *qp = ptr;
    struct hca_evsource async = qp->async;

    memset(&qp->async, 0, sizeof qp->async);
    uv_devx_unsubscribe_object(qp);
    hca_qp_free(hca_current, qp);
    gone->async_events = uv_event_retire(&async);
    return 0;
}

static int destroy_srq(void *ptr, struct uv_gone *gone)
{
    struct hca_srq *srq = ptr;

    if (srq->users)
        return -EBUSY;
    gone->async_events = uv_event_retire(&srq->async);
    return hca_srq_free(hca_current, srq);
}

static int destroy_ah(void *ptr, struct uv_gone *gone)
{
    struct uv_ah *ah = ptr;

    (void)gone;
    ah->pd->users--;
    free(ah);
    return 0;
}

static int destroy_pd(void *ptr, struct uv_gone *gone)
{
    (void)gone;
    return hca_pd_free(hca_current, ptr);
}

static int destroy_key(void *ptr, struct uv_gone *gone)
{
    (void)gone;
    return hca_key_free(hca_current, ptr);
}

static int destroy_umem(void *ptr, struct uv_gone *gone)
{
    (void)gone;
    return hca_umem_free(hca_current, ptr);
}

static int destroy_uar(void *ptr, struct uv_gone *gone)
{
    struct uv_uar *uar = ptr;
    int err = hca_uar_free(hca_current, uar->uar);

    (void)gone;
    if (err)
        return err;
    munmap(uar->map, HCA_UAR_BYTES);
    if (fallocate(uar->memfd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)uar->offset, HCA_UAR_BYTES))
        hca_log(HCA_INFO, "a doorbell page stays allocated until its file is closed: %m");
    free(uar);
    return 0;
}

static int destroy_devx(void *ptr, struct uv_gone *gone)
{
    const void *target = ((struct fw_object *)ptr)->ptr;
    int err = fw_object_destroy(ptr);

    (void)gone;
    if (!err)
        uv_devx_unsubscribe_object(target);   /* compares addresses only */
    return err;
}

static int destroy_xrcd(void *ptr, struct uv_gone *gone)
{
    (void)gone;
    free(ptr);
    return 0;
}

static int (*const destroyers[UV_TYPES])(void *ptr, struct uv_gone *gone) = {
    [UV_PD] = destroy_pd,       [UV_CQ] = destroy_cq,     [UV_QP] = destroy_qp,
    [UV_SRQ] = destroy_srq,     [UV_AH] = destroy_ah,     [UV_MR] = destroy_key,
    [UV_MW] = destroy_key,      [UV_XRCD] = destroy_xrcd, [UV_DEVX_OBJ] = destroy_devx,
    [UV_UMEM] = destroy_umem,   [UV_UAR] = destroy_uar,
};

int uv_object_destroy(struct uv_context *ctx, uint32_t handle, enum uv_type type, struct uv_gone *gone)
{
    struct uv_gone unused;
    int err;
    void *ptr = uv_object_get(ctx, handle, type, &err);

    if (err)
        return err;
    memset(gone ? gone : &unused, 0, sizeof unused);
    err = destroyers[type](ptr, gone ? gone : &unused);
    if (!err)
        ctx->object[handle].type = UV_NONE;
    return err;
}

/* Users first, what they use later: passes until nothing is left or nothing moves. */
void uv_objects_destroy_all(struct uv_context *ctx)
{
    bool moved = true, left = true;

    while (moved && left) {
        moved = left = false;
        for (uint32_t i = ctx->nobjects; i-- > 0;) {
            if (ctx->object[i].type == UV_NONE)
                continue;
            if (uv_object_destroy(ctx, i, ctx->object[i].type, NULL))
                left = true;
            else
                moved = true;
        }
    }
    if (left)
        hca_log(HCA_LINT, "a context closed with objects that nothing can destroy");
    free(ctx->object);
    ctx->object = NULL;
    ctx->nobjects = 0;
}
