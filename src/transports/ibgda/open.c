/* SPDX-License-Identifier: BSD-3-Clause */
/* open.c - whether this device's queues can be driven by whoever posts, and what all of them share. */
#include "ibgda.h"
#include "prm.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    INLINE_HEAD = 16 + 16 + 4, /* control, remote address, length of the data */
    INLINE_WANTED = 4 * SHMEMI_IBGDA_BLOCK - INLINE_HEAD,
    LEAST_DEPTH = SHMEMI_IBGDA_PAGE / SHMEMI_IBGDA_BLOCK,
    MOST_LOG_DEPTH = 15, /* the NIC's 16-bit index must tell a full ring from an empty one */
};

static int no(struct shmemi_verbs_nic *nic, const char *why)
{
    shmemi_verbs_log(nic->config, SHMEMI_VERBS_WARN, SHMEMI_VERBS_AT ": no queues of our own: %s", SHMEMI_VERBS_AT_ARGS(nic),
                     why);
    return -EOPNOTSUPP;
}

static int read_caps(struct shmemi_verbs_nic *nic, unsigned *log_depth_out)
{
    uint8_t *out = malloc(PRM_CAP_OUT_BYTES), *cap = out + PRM_CAP;
    unsigned wqe_bytes, version, sizes, operations;
    bool host_order;

    if (!out)
        return -ENOMEM;
    if (shmemi_ibgda_query_cap(nic, PRM_CAP_GENERAL, out)) {
        free(out);
        return no(nic, "DEVX refuses to ask the firmware for its capabilities; is this container or user allowed to use DEVX?");
    }
    version = (unsigned)shmemi_prm_get(cap, CAP_CQE_VERSION);
    wqe_bytes = (unsigned)shmemi_prm_get(cap, CAP_MAX_WQE_SZ_SQ);
    *log_depth_out = (unsigned)shmemi_prm_get(cap, CAP_LOG_MAX_QP_SZ);
    if (shmemi_ibgda_query_cap(nic, PRM_CAP_ATOMIC, out)) {
        free(out);
        return no(nic, "the firmware does not say what atomics it can");
    }
    host_order = shmemi_prm_get(cap, CAP_ATOMIC_8B_HOST_ORDER) == 1;
    operations = (unsigned)shmemi_prm_get(cap, CAP_ATOMIC_OPERATIONS);
    sizes = (unsigned)shmemi_prm_get(cap, CAP_ATOMIC_SIZES);
    free(out);
    if (version != 1)
        return no(nic, "its completion format is not version 1 (firmware too old?)");
    if (!host_order)
        return no(nic, "its atomics do not return values in host byte order (firmware too old?)");
    nic->nic.atomics_4 = (operations & CAP_ATOMIC_MASKED) == CAP_ATOMIC_MASKED
                         && (sizes & CAP_ATOMIC_4_AND_8) == CAP_ATOMIC_4_AND_8;
    nic->nic.inline_max = INLINE_WANTED;
    if (wqe_bytes && wqe_bytes < INLINE_WANTED + INLINE_HEAD)
        nic->nic.inline_max = wqe_bytes - INLINE_HEAD;
    return 0;
}

/*
 * Can queues do without a doorbell record?  They are the software's then (EXT, not the INT of the NIC's own cores), and may be
 * bounded in length.
 */
static void look_for_bare_queues(struct shmemi_verbs_nic *nic)
{
    unsigned entries = (unsigned)(nic->ibgda->arena.ring_bytes / SHMEMI_IBGDA_BLOCK), log_most = 0;
    uint8_t *out = malloc(PRM_CAP_OUT_BYTES), *cap = out + PRM_CAP;
    bool offered = out && !shmemi_ibgda_query_cap(nic, PRM_CAP_GENERAL, out) && shmemi_prm_get(cap, CAP_HCA_CAP_2)
                   && !shmemi_ibgda_query_cap(nic, PRM_CAP_2, out) && shmemi_prm_get(cap, CAP_2_NO_DBR_EXT);

    if (offered)
        log_most = (unsigned)shmemi_prm_get(cap, CAP_2_LOG_MAX_NO_DBR_SQ);
    free(out);
    if (!offered)
        snprintf(nic->ibgda->record_why, sizeof nic->ibgda->record_why,
                 "it does not offer them (HCA_CAP_2, send_dbr_mode_no_dbr_ext; ConnectX-8 does)");
    else if (log_most && entries > 1u << log_most) /* 0: it does not say */
        snprintf(nic->ibgda->record_why, sizeof nic->ibgda->record_why,
                 "they hold %u entries at most, and MARROW_QUEUE_DEPTH asks for %u", 1u << log_most, entries);
    nic->nic.record_why = nic->ibgda->record_why[0] ? nic->ibgda->record_why : NULL;
}

static unsigned depth(const struct shmemi_verbs_nic *nic, unsigned log_most)
{
    unsigned log_blocks = 0;

    if (log_most == 0 || log_most > MOST_LOG_DEPTH)
        log_most = MOST_LOG_DEPTH;
    while (log_blocks < log_most && (1 << log_blocks) < nic->config->queue_depth)
        log_blocks++;
    return 1u << log_blocks < LEAST_DEPTH ? LEAST_DEPTH : 1u << log_blocks;
}

/*
 * An uncached page: each 8-byte store leaves at once, in order, whatever thread it comes from.  A write-combining
 * page would need a fence after every doorbell.
 */
static int make_uars(struct shmemi_verbs_nic *nic)
{
    struct shmemi_ibgda *g = nic->ibgda;

    g->uar = mlx5dv_devx_alloc_uar(nic->ctx, MLX5DV_UAR_ALLOC_TYPE_NC);
    if (!g->uar)
        return no(nic, "no uncached doorbell page (kernel or rdma-core too old?)");
    g->idle_uar = mlx5dv_devx_alloc_uar(nic->ctx, MLX5DV_UAR_ALLOC_TYPE_BF);
    return g->idle_uar ? 0 : no(nic, "no second doorbell page");
}

static int make_shared(struct shmemi_verbs_nic *nic)
{
    struct mlx5dv_pd pd = { 0 };
    struct mlx5dv_obj obj = { 0 };
    int status;

    obj.pd.in = nic->pd;
    obj.pd.out = &pd;
    if (mlx5dv_init_obj(&obj, MLX5DV_OBJ_PD))
        return no(nic, "the number of the protection domain is not to be had");
    nic->ibgda->pdn = pd.pdn;
    if (mlx5dv_devx_query_eqn(nic->ctx, 0, &nic->ibgda->eqn))
        return no(nic, "DEVX names no event queue");
    status = make_uars(nic);
    if (!status)
        status = shmemi_ibgda_place_take(nic, NULL, &nic->ibgda->idle_place);
    if (!status)
        status = shmemi_ibgda_make_cq(nic, nic->ibgda->idle_place, true, &nic->ibgda->idle_cq, &nic->ibgda->idle_cqn);
    return status;
}

int shmemi_ibgda_open(struct shmemi_verbs_nic *nic)
{
    unsigned log_depth = 0;
    int status = read_caps(nic, &log_depth);

    if (status)
        return status;
    nic->ibgda = calloc(1, sizeof *nic->ibgda);
    if (!nic->ibgda)
        return -ENOMEM;
    pthread_mutex_init(&nic->ibgda->pages_lock, NULL);
    shmemi_ibgda_arena_open(&nic->ibgda->arena, (size_t)depth(nic, log_depth) * SHMEMI_IBGDA_BLOCK);
    shmemi_ibgda_arena_open(&nic->ibgda->device_arena, nic->ibgda->arena.ring_bytes);
    look_for_bare_queues(nic);
    status = make_shared(nic);
    if (status) {
        shmemi_ibgda_close(nic);
        return status;
    }
    nic->nic.kind = SHMEMI_NIC_MLX5;
    nic->kind = &shmemi_ibgda_kind;
    nic->nic.message_max = nic->port.max_msg_sz < 1u << PRM_LOG_MSG_MAX ? nic->port.max_msg_sz : 1u << PRM_LOG_MSG_MAX;
    return 0;
}

void shmemi_ibgda_close(struct shmemi_verbs_nic *nic)
{
    struct shmemi_ibgda *g = nic->ibgda;

    if (!g)
        return;
    if (g->idle_cq)
        mlx5dv_devx_obj_destroy(g->idle_cq);
    if (g->idle_place)
        shmemi_ibgda_place_give(g->idle_place);
    shmemi_ibgda_arena_close(&g->arena);
    shmemi_ibgda_arena_close(&g->device_arena);
    shmemi_ibgda_pages_close(nic);
    if (g->idle_uar)
        mlx5dv_devx_free_uar(g->idle_uar);
    if (g->uar)
        mlx5dv_devx_free_uar(g->uar);
    free(g);
    nic->ibgda = NULL;
}
