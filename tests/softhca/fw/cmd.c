/* SPDX-License-Identifier: BSD-3-Clause */
/* Firmware commands: which may come through which door, and who executes them. */
#include <stdlib.h>
#include <string.h>

#include "fw/fw.h"

static uint32_t opcode(const struct fw_cmd *cmd)
{
    return (uint32_t)prm_get(cmd->in, CMD_OPCODE);
}

int fw_fail(const struct fw_cmd *cmd, enum prm_status status, uint32_t syndrome, const char *what)
{
    prm_set(cmd->out, OUT_STATUS, status);
    prm_set(cmd->out, OUT_SYNDROME, syndrome);
    hca_log(HCA_INFO, "firmware command 0x%x: status 0x%x, syndrome 0x%x: %s", opcode(cmd), status, syndrome, what);
    return -EREMOTEIO;
}

int fw_umem_buf(uint32_t umem_id, uint64_t off, uint64_t len, uint64_t align, struct hca_buf *out)
{
    const struct hca_umem *umem = hca_umem_find(hca_current, umem_id);

    return umem ? hca_buf_init(out, umem->mem, off, len, align) : -EINVAL;
}

/* ---- commands that belong to no object ---- */

static int query_hca_cap(const struct fw_cmd *cmd)
{
    uint8_t cap[CAP_BYTES] = { 0 };
    size_t room = cmd->out_len - CAP_OUT;
    int status = fw_hca_cap((uint16_t)prm_get(cmd->in, CMD_OP_MOD), cap);

    if (status)
        return fw_fail(cmd, status, 0x10001, "no such capability page");
    memcpy(cmd->out + CAP_OUT, cap, room < sizeof cap ? room : sizeof cap);
    return 0;
}

static int query_vport(const struct fw_cmd *cmd)
{
    if (cmd->out_len < PRM_OFFSET(VPORT_SM_LID) / 8 + 2)
        return fw_fail(cmd, STATUS_BAD_OUTPUT_LEN, 0x10002, "output too short");
    prm_set(cmd->out, VPORT_PORT_STATE, hca_current->link_up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN);
    prm_set(cmd->out, VPORT_VPORT_STATE, hca_current->link_up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN);
    prm_set(cmd->out, VPORT_PORT_GUID, hca_current->id.guid);
    prm_set(cmd->out, VPORT_NODE_GUID, hca_current->id.guid);
    prm_set(cmd->out, VPORT_LID, hca_current->id.lid);
    prm_set(cmd->out, VPORT_SM_LID, 1);
    return 0;
}

static bool is_general(uint32_t op)
{
    switch (op) {
    case OP_QUERY_HCA_CAP:
    case OP_QUERY_SPECIAL_CONTEXTS:
    case OP_QUERY_VPORT_STATE:
    case OP_QUERY_NIC_VPORT_CONTEXT:
    case OP_QUERY_HCA_VPORT_CONTEXT:
    case 0x10a: /* QUERY_ISSI */
    case 0x752: /* QUERY_ESW_VPORT_CONTEXT */
    case 0x760: /* QUERY_ROCE_ADDRESS */
    case 0x764: /* QUERY_HCA_VPORT_GID */
    case 0x765: /* QUERY_HCA_VPORT_PKEY */
    case 0x770: /* QUERY_VPORT_COUNTER */
    case 0x805: /* ACCESS_REGISTER */
    case OP_QUERY_LAG:
        return true;
    default:
        return op >= 0x1000;     /* vendor specific */
    }
}

int fw_general(const struct fw_cmd *cmd)
{
    uint32_t op = opcode(cmd);

    if (!is_general(op))
        return -EINVAL;
    switch (op) {
    case OP_QUERY_HCA_CAP:
        return query_hca_cap(cmd);
    case OP_QUERY_HCA_VPORT_CONTEXT:
        return query_vport(cmd);
    case OP_QUERY_LAG:
        return 0;                /* no bond: all zero */
    default:
        return fw_fail(cmd, STATUS_BAD_OP, 0x10000 | op, "not a command of this device");
    }
}

/* ---- objects ---- */

static bool is_create(uint32_t op)
{
    switch (op) {
    case OP_CREATE_MKEY:
    case OP_CREATE_CQ:
    case OP_CREATE_QP:
    case OP_CREATE_PSV:
    case OP_CREATE_SRQ:
    case OP_CREATE_XRC_SRQ:
    case OP_CREATE_DCT:
    case OP_CREATE_XRQ:
    case OP_ALLOC_Q_COUNTER:
    case OP_ALLOC_PD:
    case OP_ALLOC_TRANSPORT_DOMAIN:
    case OP_CREATE_TIR:
    case OP_CREATE_SQ:
    case OP_CREATE_RQ:
    case OP_CREATE_RMP:
    case OP_CREATE_TIS:
    case OP_CREATE_RQT:
    case OP_CREATE_FLOW_TABLE:
    case OP_CREATE_FLOW_GROUP:
    case OP_ALLOC_FLOW_COUNTER:
    case OP_CREATE_GENERAL_OBJECT:
        return true;
    default:
        return false;
    }
}

static int alloc_pd(const struct fw_cmd *cmd, struct fw_object *obj)
{
    struct hca_pd *pd;

    if (hca_pd_new(hca_current, &pd))
        return fw_fail(cmd, STATUS_NO_RES, 0x20001, "no protection domain left");
    obj->kind = FW_PD;
    obj->number = pd->pdn;
    obj->ptr = pd;
    prm_set(cmd->out, OUT_NUMBER, pd->pdn);
    return 0;
}

int fw_object_create(const struct fw_cmd *cmd, struct fw_object **out)
{
    uint32_t op = opcode(cmd);
    struct fw_object *obj;
    int err;

    if (!is_create(op))
        return -EINVAL;
    obj = calloc(1, sizeof *obj);
    if (!obj)
        return -ENOMEM;
    switch (op) {
    case OP_CREATE_CQ:
        err = fw_create_cq(cmd, obj);
        break;
    case OP_CREATE_QP:
        err = fw_create_qp(cmd, obj);
        break;
    case OP_CREATE_MKEY:
        err = fw_create_mkey(cmd, obj);
        break;
    case OP_ALLOC_PD:
        err = alloc_pd(cmd, obj);
        break;
    default:
        err = fw_fail(cmd, STATUS_BAD_OP, 0x20000 | op, "this device has no such object");
        break;
    }
    if (err)
        free(obj);
    else
        *out = obj;
    return err;
}

static bool names(const struct fw_cmd *cmd, uint32_t number)
{
    return prm_get(cmd->in, CMD_NUMBER) == number;
}

int fw_object_modify(const struct fw_cmd *cmd, const struct fw_object *obj, struct hca_qp *qp, struct hca_cq *cq)
{
    uint32_t op = opcode(cmd);

    if (obj && obj->kind == FW_QP)
        qp = obj->ptr;
    if (obj && obj->kind == FW_CQ)
        cq = obj->ptr;
    switch (op) {
    case OP_MODIFY_CQ:
        return cq && names(cmd, cq->cqn) ? fw_modify_cq(cmd, cq) : -EINVAL;
    case OP_RST2INIT_QP:
    case OP_INIT2RTR_QP:
    case OP_RTR2RTS_QP:
    case OP_RTS2RTS_QP:
    case OP_SQERR2RTS_QP:
    case OP_2ERR_QP:
    case OP_2RST_QP:
    case OP_SQD_RTS_QP:
    case OP_INIT2INIT_QP:
        return qp && names(cmd, qp->qpn) ? fw_modify_qp(cmd, qp) : -EINVAL;
    default:
        return -EINVAL;
    }
}

int fw_object_query(const struct fw_cmd *cmd, const struct fw_object *obj, struct hca_qp *qp, struct hca_cq *cq)
{
    if (obj && obj->kind == FW_QP)
        qp = obj->ptr;
    if (obj && obj->kind == FW_CQ)
        cq = obj->ptr;
    switch (opcode(cmd)) {
    case OP_QUERY_QP:
        return qp && names(cmd, qp->qpn) ? fw_query_qp(cmd, qp) : -EINVAL;
    case OP_QUERY_CQ:
        return cq && names(cmd, cq->cqn) ? fw_query_cq(cmd, cq) : -EINVAL;
    default:
        return -EINVAL;
    }
}

int fw_object_destroy(struct fw_object *obj)
{
    int err = 0;

    switch (obj->kind) {
    case FW_CQ:
        err = hca_cq_free(hca_current, obj->ptr);
        break;
    case FW_QP:
        err = hca_qp_free(hca_current, obj->ptr);
        break;
    case FW_MKEY:
        err = hca_key_free(hca_current, obj->ptr);
        break;
    case FW_PD:
        err = hca_pd_free(hca_current, obj->ptr);
        break;
    }
    if (err)
        return -EREMOTEIO;       /* the firmware says "resource busy", the kernel passes that on */
    free(obj);
    return 0;
}
