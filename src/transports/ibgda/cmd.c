/* SPDX-License-Identifier: BSD-3-Clause */
/* cmd.c - firmware commands through DEVX, and the words for those that are refused. */
#include "ibgda.h"
#include "prm.h"

#include <errno.h>
#include <string.h>

enum { OUT_BYTES = 0x110 };

static int refused(struct shmemi_verbs_nic *nic, const char *what, const uint8_t *out)
{
    int status = errno ? -errno : -EIO;
    uint8_t code = (uint8_t)shmemi_prm_get(out, PRM_STATUS);

    if (!what)
        return status;
    if (code)
        shmemi_verbs_log(nic->config, SHMEMI_VERBS_ERR,
                         SHMEMI_VERBS_AT ": firmware refuses to %s: %s (status 0x%02x, syndrome 0x%08x)",
                         SHMEMI_VERBS_AT_ARGS(nic), what, shmemi_verbs_fw_status(code), code,
                         (unsigned)shmemi_prm_get(out, PRM_SYNDROME));
    else
        shmemi_verbs_log(nic->config, SHMEMI_VERBS_ERR, SHMEMI_VERBS_AT ": cannot %s: %s", SHMEMI_VERBS_AT_ARGS(nic), what,
                         strerror(-status));
    return status;
}

int shmemi_ibgda_query_cap(struct shmemi_verbs_nic *nic, unsigned which, uint8_t *out)
{
    uint8_t in[16] = { 0 };

    shmemi_prm_set(in, PRM_OPCODE, PRM_QUERY_HCA_CAP);
    shmemi_prm_set(in, PRM_OP_MOD, which);
    memset(out, 0, PRM_CAP_OUT_BYTES);
    errno = 0;
    if (mlx5dv_devx_general_cmd(nic->ctx, in, sizeof in, out, PRM_CAP_OUT_BYTES))
        return refused(nic, NULL, out);
    return 0;
}

struct mlx5dv_devx_obj *shmemi_ibgda_create(struct shmemi_verbs_nic *nic, const char *what, void *in, size_t in_len,
                                            uint32_t *number_out, int *status_out)
{
    uint8_t out[OUT_BYTES] = { 0 };
    struct mlx5dv_devx_obj *object;

    errno = 0;
    object = mlx5dv_devx_obj_create(nic->ctx, in, in_len, out, 16);
    if (!object) {
        *status_out = refused(nic, what, out);
        return NULL;
    }
    *number_out = (uint32_t)shmemi_prm_get(out, PRM_OBJECT);
    *status_out = 0;
    return object;
}

int shmemi_ibgda_modify(struct shmemi_verbs_nic *nic, const char *what, struct mlx5dv_devx_obj *object, void *in,
                        size_t in_len)
{
    uint8_t out[OUT_BYTES] = { 0 };

    errno = 0;
    if (mlx5dv_devx_obj_modify(object, in, in_len, out, 16))
        return refused(nic, what, out);
    return 0;
}
