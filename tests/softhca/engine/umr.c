/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * User-mode memory registration: a work request that fills an indirect key with a list, binds a memory window or
 * invalidates either. Layouts: struct mlx5_wqe_umr_ctrl_seg, mlx5_wqe_mkey_context_seg and what follows, mlx5dv.h.
 */
#include "engine/engine.h"

#include <stdlib.h>
#include <string.h>

enum {
    CTRL_AT = 16,                /* after the control segment */
    CONTEXT_AT = 64,
    LIST_AT = 128,
    ENTRY = 16,                  /* bytes of a list entry, one octoword */
    MAX_ENTRIES = (ENG_MAX_WQE_BYTES - LIST_AT) / ENTRY,
    REPEAT_OP = 0x400,           /* where an ordinary entry has its key: no key has this value */
    BIND_ERROR = MLX5_CQE_SYNDROME_MW_BIND_ERR,
    QP_ERROR = MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR,
    QPN_ANY = 0xffffff,
    KEY_LOW = 0xff,
};

#define KNOWN_MASK                                                                                                          \
    ((uint64_t)MLX5_WQE_UMR_CTRL_MKEY_MASK_LEN | MLX5_WQE_UMR_CTRL_MKEY_MASK_START_ADDR | MLX5_WQE_UMR_CTRL_MKEY_MASK_MKEY  \
     | MLX5_WQE_UMR_CTRL_MKEY_MASK_QPN | ACCESS_MASK | MLX5_WQE_UMR_CTRL_MKEY_MASK_FREE)
#define ACCESS_MASK                                                                                                         \
    (MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_LOCAL_WRITE | MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_REMOTE_READ                        \
     | MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_REMOTE_WRITE | MLX5_WQE_UMR_CTRL_MKEY_MASK_ACCESS_ATOMIC)

/* A parsed list. */
struct list {
    struct hca_klm klm[MAX_ENTRIES];
    uint32_t stride[MAX_ENTRIES];
    uint32_t n, repeat;
    bool interleaved;
};

static const struct mlx5_wqe_umr_ctrl_seg *ctrl_of(const struct eng_send *s)
{
    return (const void *)(s->raw + CTRL_AT);
}

static const struct mlx5_wqe_mkey_context_seg *context_of(const struct eng_send *s)
{
    return (const void *)(s->raw + CONTEXT_AT);
}

static bool broken(struct eng_send *s, struct eng_lint *lint, const char *field, uint64_t found, const char *rule)
{
    *lint = (struct eng_lint){ field, found, rule };
    s->syndrome = QP_ERROR;
    return false;
}

bool eng_umr_parse(struct eng_send *s, struct eng_lint *lint)
{
    const struct mlx5_wqe_umr_ctrl_seg *ctrl = ctrl_of(s);
    uint32_t entries, room;

    if (s->bytes < LIST_AT)
        return broken(s, lint, "ds", s->bytes / 16, "no room for UMR control and memory key segments");
    entries = be16toh(ctrl->klm_octowords);
    room = (uint32_t)(s->bytes - LIST_AT) / ENTRY;
    if (entries && !(ctrl->flags & MLX5_WQE_UMR_CTRL_FLAG_INLINE))
        return broken(s, lint, "umr_ctrl.flags", ctrl->flags, "only lists inside the entry");
    if (room && entries > room)
        return broken(s, lint, "umr_ctrl.klm_octowords", entries, "list runs past ds");
    if (be64toh(ctrl->mkey_mask) & ~KNOWN_MASK)
        return broken(s, lint, "umr_ctrl.mkey_mask", be64toh(ctrl->mkey_mask), "attribute that this device cannot change");
    return true;
}

/* A block of entries that repeats: each with its length and the distance to its next occurrence. */
static bool read_repeat(const uint8_t *at, uint32_t room, struct list *list)
{
    const struct mlx5_wqe_umr_repeat_block_seg *head = (const void *)at;

    list->n = be16toh(head->num_ent);
    list->repeat = be32toh(head->repeat_count);
    list->interleaved = true;
    if (!list->n || list->n >= room || !list->repeat)
        return false;
    for (uint32_t i = 0; i < list->n; i++) {
        const struct mlx5_wqe_umr_repeat_ent_seg *entry = &head->entries[i];

        list->klm[i] = (struct hca_klm){ be64toh(entry->va), be16toh(entry->byte_count), be32toh(entry->memkey) };
        list->stride[i] = be16toh(entry->stride);
    }
    return true;
}

/* Entries are padded with empty ones to a multiple of 64 bytes. */
static bool read_list(const struct eng_send *s, struct list *list)
{
    uint32_t octowords = be16toh(ctrl_of(s)->klm_octowords), inside = (uint32_t)(s->bytes - LIST_AT) / ENTRY;
    uint32_t room = octowords < inside ? octowords : inside;
    const uint8_t *at = s->raw + LIST_AT;

    list->n = 0;
    list->repeat = 1;
    list->interleaved = false;
    if (room && pkt_get32(at + 4) == REPEAT_OP)
        return read_repeat(at, room, list);
    for (; list->n < room; list->n++, at += ENTRY) {
        uint32_t len = pkt_get32(at);

        if (!len)
            break;
        list->klm[list->n] = (struct hca_klm){ pkt_get64(at + 8), len, pkt_get32(at + 4) };
    }
    return true;
}

static uint32_t access_of(uint8_t flags)
{
    return (flags & MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_LOCAL_WRITE ? IBV_ACCESS_LOCAL_WRITE : 0)
           | (flags & MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_REMOTE_READ ? IBV_ACCESS_REMOTE_READ : 0)
           | (flags & MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_REMOTE_WRITE ? IBV_ACCESS_REMOTE_WRITE : 0)
           | (flags & MLX5_WQE_MKEY_CONTEXT_ACCESS_FLAGS_ATOMIC ? IBV_ACCESS_REMOTE_ATOMIC : 0);
}

/* A window may give no more than the region behind it has. */
static bool window_ok(struct eng_qp *q, const struct list *list, uint32_t access)
{
    const struct hca_key *mr = list->n == 1 ? hca_key_find(q->qp->hca, list->klm[0].key) : NULL;
    const struct hca_klm *klm = list->klm;

    if (!mr || mr->kind != HCA_KEY_MR || mr->pd != q->qp->pd || !(mr->access & IBV_ACCESS_MW_BIND))
        return false;
    if ((access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) && !(mr->access & IBV_ACCESS_LOCAL_WRITE))
        return false;
    return klm->va >= mr->iova && klm->len <= mr->len && klm->va - mr->iova <= mr->len - klm->len;
}

static uint8_t check(struct eng_qp *q, const struct eng_send *s, const struct hca_key *key, const struct list *list)
{
    const struct mlx5_wqe_umr_ctrl_seg *ctrl = ctrl_of(s);
    bool window = key->kind == HCA_KEY_MW, bind = !(context_of(s)->free & MLX5_WQE_MKEY_CONTEXT_FREE);

    if ((ctrl->flags & MLX5_WQE_UMR_CTRL_FLAG_CHECK_FREE) && !key->free)
        return BIND_ERROR;
    if ((ctrl->flags & MLX5_WQE_UMR_CTRL_FLAG_CHECK_QPN) && key->bound_qpn && key->bound_qpn != q->qp->qpn)
        return BIND_ERROR;
    if (window && bind && list->n && !window_ok(q, list, access_of(context_of(s)->access_flags)))
        return BIND_ERROR;
    return 0;
}

static void apply(struct hca_key *key, const struct eng_send *s)
{
    const struct mlx5_wqe_mkey_context_seg *context = context_of(s);
    uint64_t mask = be64toh(ctrl_of(s)->mkey_mask);
    uint32_t qpn_mkey = be32toh(context->qpn_mkey);

    if (mask & MLX5_WQE_UMR_CTRL_MKEY_MASK_LEN)
        key->len = be64toh(context->len);
    if (mask & MLX5_WQE_UMR_CTRL_MKEY_MASK_START_ADDR)
        key->iova = be64toh(context->start_addr);
    if (mask & ACCESS_MASK)
        key->access = access_of(context->access_flags);
    if (mask & MLX5_WQE_UMR_CTRL_MKEY_MASK_FREE)
        key->free = (context->free & MLX5_WQE_MKEY_CONTEXT_FREE) != 0;
    if (mask & MLX5_WQE_UMR_CTRL_MKEY_MASK_QPN)
        key->bound_qpn = qpn_mkey >> 8 == QPN_ANY ? 0 : qpn_mkey >> 8;
    if (mask & MLX5_WQE_UMR_CTRL_MKEY_MASK_MKEY)
        key->key = (key->key & ~(uint32_t)KEY_LOW) | (qpn_mkey & KEY_LOW);
}

/*
 * The low byte of a key is its tag: the work request names the old value in its immediate field and may set a new one. A
 * tag that does not match is refused, except for the first configuration of a free key.
 */
static struct hca_key *find_key(struct eng_qp *q, const struct eng_send *s)
{
    struct hca_key *key = hca_key_find(q->qp->hca, be32toh(s->imm_be));

    return key && key->kind != HCA_KEY_MR && key->pd == q->qp->pd ? key : NULL;
}

uint8_t eng_umr_run(struct eng_qp *q, const struct eng_send *s)
{
    struct hca_key *key = find_key(q, s);
    struct list list;
    uint8_t syndrome;

    if (!key) {
        eng_complain(q, "wqe %u (UMR): key 0x%x is not an indirect key or window of this protection domain", s->index,
                     be32toh(s->imm_be));
        return BIND_ERROR;
    }
    if (!read_list(s, &list))
        return QP_ERROR;
    syndrome = check(q, s, key, &list);
    if (syndrome)
        return syndrome;
    if (list.n && hca_key_set_list(q->qp->hca, key, list.klm, list.n, list.interleaved ? list.stride : NULL, list.repeat))
        return QP_ERROR;
    if (!list.n && key->kind == HCA_KEY_MW && (context_of(s)->free & MLX5_WQE_MKEY_CONTEXT_FREE))
        hca_key_invalidate(q->qp->hca, q->qp->pd, q->qp->qpn, key->key);
    eng_key_gone(q->qp->hca, key);
    apply(key, s);
    return 0;
}
