/* SPDX-License-Identifier: BSD-3-Clause */
/* What the device says that it can do: verbs attributes, port attributes, firmware capability pages. */
#include <string.h>

#include "fw/fw.h"

enum {
    VENDOR_OUI = 0x02c9,
    DEVICE_ID = 4129,            /* ConnectX-7 */
    FW_MAJOR = 28,
    FW_MINOR = 39,
    FW_SUB = 1002,
    PKEYS = 1,
    CA_ACK_DELAY = 16,
    SPEED_NDR = 128,
    WIDTH_4X = 2,
    PHYS_LINK_UP = 5,
    PHYS_DISABLED = 3,
};

struct cap {
    uint32_t field;
    uint32_t value;
};

/* Clients branch on these: they must be a consistent set, and only say what the engine does. */
static const struct cap general_caps[] = {
    { CAP_LOG_MAX_SRQ_SZ, 15 },
    { CAP_LOG_MAX_QP_SZ, 15 },
    { CAP_LOG_MAX_QP, HCA_QPN_SHIFT },
    { CAP_LOG_MAX_SRQ, 11 },
    { CAP_LOG_MAX_CQ_SZ, 22 },
    { CAP_LOG_MAX_CQ, 13 },
    { CAP_LOG_MAX_MKEY, 16 },
    { CAP_LOG_MAX_KLM_LIST, 16 },
    { CAP_LOG_MAX_RA_REQ_QP, 4 },
    { CAP_LOG_MAX_RA_RES_QP, 4 },
    { CAP_GID_TABLE_SIZE, 0 },   /* 8 entries */
    { CAP_LOCAL_CA_ACK_DELAY, CA_ACK_DELAY },
    { CAP_NUM_PORTS, 1 },
    { CAP_LOG_MAX_MSG, HCA_LOG_MAX_MSG },
    { CAP_CQE_VERSION, 1 },
    { CAP_COMPACT_AV, 1 },
    { CAP_UMR_ATOMIC_DISABLED, 1 },
    { CAP_ATOMIC_BIT, 1 },
    { CAP_CQ_OI, 1 },
    { CAP_CQ_RESIZE, 1 },
    { CAP_CQ_MODERATION, 1 },
    { CAP_UD, 1 },
    { CAP_UC, 1 },
    { CAP_RC, 1 },
    { CAP_UAR_4K, 1 },
    { CAP_LOG_PG_SZ, 12 },
    { CAP_BF, 1 },
    { CAP_LOG_BF_REG_SIZE, 9 },
    { CAP_MAX_WQE_SZ_SQ, 1024 },
    { CAP_MAX_WQE_SZ_RQ, 512 },
    { CAP_LOG_MAX_PD, 14 },
};

/* Operations: compare-swap, fetch-add and their masked forms. Sizes: a bit for each power of two, here 4 and 8 bytes. */
static const struct cap atomic_caps[] = {
    { ATOMIC_8B_ENDIANNESS_MODE, 1 },
    { ATOMIC_8B_MODE_1_SUPPORTED, 1 },
    { ATOMIC_OPERATIONS, 0xf },
    { ATOMIC_SIZE_QP, 0xc },
    { ATOMIC_SIZE_DC, 0xc },
    { ATOMIC_PCI_FETCH_ADD, 0xc },
    { ATOMIC_PCI_SWAP, 0xc },
    { ATOMIC_PCI_COMPARE_SWAP, 0xc },
};

static void apply(uint8_t *cap, const struct cap *list, size_t n)
{
    for (size_t i = 0; i < n; i++)
        prm_set(cap, list[i].field, list[i].value);
}

int fw_hca_cap(uint16_t op_mod, uint8_t *cap)
{
    switch (op_mod >> 1) {
    case CAP_GENERAL:
        apply(cap, general_caps, sizeof general_caps / sizeof *general_caps);
        prm_set(cap, CAP_PORT_TYPE, hca_config.eth);
        prm_set(cap, CAP_ROCE_BIT, hca_config.eth);
        prm_set(cap, CAP_HCA_CAP_2, hca_config.log_bare != 0);
        return STATUS_OK;
    case CAP_GENERAL_2:
        prm_set(cap, CAP_2_NO_DBR_EXT, hca_config.log_bare != 0);
        prm_set(cap, CAP_2_LOG_MAX_NO_DBR_SQ, hca_config.log_bare);
        return STATUS_OK;
    case CAP_ATOMIC:
        apply(cap, atomic_caps, sizeof atomic_caps / sizeof *atomic_caps);
        return STATUS_OK;
    default:
        return op_mod >> 1 <= 0x40 ? STATUS_OK : STATUS_BAD_PARAM;   /* known pages of things that we have none of */
    }
}

void fw_query_device(const struct hca *hca, struct ib_uverbs_query_device_resp *resp)
{
    resp->fw_ver = (uint64_t)FW_MAJOR << 32 | FW_MINOR << 16 | FW_SUB;
    resp->node_guid = htobe64(hca->id.guid);
    resp->sys_image_guid = htobe64(hca->id.guid);
    resp->max_mr_size = UINT64_MAX;
    resp->page_size_cap = ~(uint64_t)(HCA_UAR_BYTES - 1);
    resp->vendor_id = VENDOR_OUI;
    resp->vendor_part_id = DEVICE_ID;
    resp->max_qp = HCA_MAX_QP;
    resp->max_qp_wr = FW_MAX_WQEBB;
    resp->device_cap_flags = IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_PORT_ACTIVE_EVENT
                             | IBV_DEVICE_CHANGE_PHY_PORT | IBV_DEVICE_MEM_MGT_EXTENSIONS | IBV_DEVICE_MEM_WINDOW
                             | IBV_DEVICE_MEM_WINDOW_TYPE_2B;
    resp->max_sge = FW_MAX_SGE;
    resp->max_sge_rd = FW_MAX_SGE;
    resp->max_cq = HCA_MAX_CQ - 1;
    resp->max_cqe = FW_MAX_CQE;
    resp->max_mr = HCA_MAX_KEY - 8;
    resp->max_pd = HCA_MAX_PD - 1;
    resp->max_qp_rd_atom = HCA_MAX_RD_ATOMIC;
    resp->max_res_rd_atom = HCA_MAX_RD_ATOMIC * HCA_MAX_QP;
    resp->max_qp_init_rd_atom = HCA_MAX_RD_ATOMIC;
    resp->atomic_cap = IBV_ATOMIC_HCA;
    resp->max_mw = HCA_MAX_KEY - 8;
    resp->max_ah = INT32_MAX;
    resp->max_srq = HCA_MAX_SRQ - 1;
    resp->max_srq_wr = FW_MAX_SRQ_WR;
    resp->max_srq_sge = FW_MAX_SRQ_SGE;
    resp->max_pkeys = PKEYS;
    resp->local_ca_ack_delay = CA_ACK_DELAY;
    resp->phys_port_cnt = 1;
}

void fw_query_device_ex(const struct hca *hca, struct ib_uverbs_ex_query_device_resp *resp)
{
    fw_query_device(hca, &resp->base);
    resp->timestamp_mask = UINT64_MAX;
    resp->hca_core_clock = 1000000;   /* kHz: ticks are nanoseconds */
    resp->device_cap_flags_ex = resp->base.device_cap_flags;
    resp->cq_moderation_caps.max_cq_moderation_count = FW_MAX_MODERATION;
    resp->cq_moderation_caps.max_cq_moderation_period = FW_MAX_MODERATION;
}

void fw_query_port(const struct hca *hca, struct ib_uverbs_query_port_resp *resp)
{
    resp->port_cap_flags = hca_config.eth ? 0x04010000 : 0x2250e848;
    resp->max_msg_sz = 1u << HCA_LOG_MAX_MSG;
    resp->gid_tbl_len = HCA_GID_TABLE;
    resp->pkey_tbl_len = PKEYS;
    resp->lid = hca_config.eth ? 0 : hca->id.lid;
    resp->sm_lid = hca_config.eth ? 0 : 1;
    resp->state = hca->link_up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
    resp->max_mtu = IBV_MTU_4096;
    resp->active_mtu = hca_config.eth ? IBV_MTU_1024 : IBV_MTU_4096;
    resp->max_vl_num = 4;
    resp->subnet_timeout = 18;
    resp->active_width = WIDTH_4X;
    resp->active_speed = SPEED_NDR;
    resp->phys_state = hca->link_up ? PHYS_LINK_UP : PHYS_DISABLED;
    resp->link_layer = hca_config.eth ? IBV_LINK_LAYER_ETHERNET : IBV_LINK_LAYER_INFINIBAND;
}

/* Locally administered, the last four bytes of the address: an IPv4 address of a RoCE GID is in them. */
void fw_gid_mac(const uint8_t gid[16], uint8_t mac[6])
{
    mac[0] = 0x02;
    mac[1] = 0x00;
    memcpy(mac + 2, gid + 12, 4);
}
