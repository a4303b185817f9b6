/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Firmware command layouts, as far as this device reads or writes them. A field is its bit offset and width, counted as
 * the mlx5 programmer's reference counts: from the first bit of the structure, most significant bit first.
 */
#ifndef SOFTHCA_FW_PRM_H
#define SOFTHCA_FW_PRM_H

#include <stddef.h>
#include <stdint.h>

#define PRM(offset, width) ((uint32_t)(offset) << 8 | (width))
#define PRM_OFFSET(field) ((field) >> 8)
#define PRM_WIDTH(field) ((field) & 0xff)

uint64_t prm_get(const void *base, uint32_t field);
void prm_set(void *base, uint32_t field, uint64_t value);

/* Command headers. */
#define CMD_OPCODE PRM(0x00, 16)
#define CMD_OP_MOD PRM(0x30, 16)
#define CMD_NUMBER PRM(0x48, 24)        /* object number of modify and query commands; of the output of create */
#define OUT_STATUS PRM(0x00, 8)
#define OUT_SYNDROME PRM(0x20, 32)
#define OUT_NUMBER PRM(0x48, 24)
enum { CMD_HEADER_BYTES = 16, OUT_HEADER_BYTES = 16 };

enum prm_opcode {
    OP_QUERY_HCA_CAP = 0x100,
    OP_CREATE_MKEY = 0x200,
    OP_DESTROY_MKEY = 0x202,
    OP_QUERY_SPECIAL_CONTEXTS = 0x203,
    OP_CREATE_CQ = 0x400,
    OP_DESTROY_CQ = 0x401,
    OP_QUERY_CQ = 0x402,
    OP_MODIFY_CQ = 0x403,
    OP_CREATE_QP = 0x500,
    OP_DESTROY_QP = 0x501,
    OP_RST2INIT_QP = 0x502,
    OP_INIT2RTR_QP = 0x503,
    OP_RTR2RTS_QP = 0x504,
    OP_RTS2RTS_QP = 0x505,
    OP_SQERR2RTS_QP = 0x506,
    OP_2ERR_QP = 0x507,
    OP_2RST_QP = 0x50a,
    OP_QUERY_QP = 0x50b,
    OP_SQD_RTS_QP = 0x50c,
    OP_INIT2INIT_QP = 0x50e,
    OP_CREATE_PSV = 0x600,
    OP_CREATE_SRQ = 0x700,
    OP_CREATE_XRC_SRQ = 0x705,
    OP_CREATE_DCT = 0x710,
    OP_CREATE_XRQ = 0x717,
    OP_QUERY_VPORT_STATE = 0x750,
    OP_QUERY_NIC_VPORT_CONTEXT = 0x754,
    OP_QUERY_HCA_VPORT_CONTEXT = 0x762,
    OP_ALLOC_Q_COUNTER = 0x771,
    OP_QUERY_LAG = 0x842,
    OP_ALLOC_PD = 0x800,
    OP_DEALLOC_PD = 0x801,
    OP_ALLOC_TRANSPORT_DOMAIN = 0x816,
    OP_CREATE_TIR = 0x900,
    OP_CREATE_SQ = 0x904,
    OP_CREATE_RQ = 0x908,
    OP_CREATE_RMP = 0x90c,
    OP_CREATE_TIS = 0x912,
    OP_CREATE_RQT = 0x916,
    OP_CREATE_FLOW_TABLE = 0x930,
    OP_CREATE_FLOW_GROUP = 0x933,
    OP_ALLOC_FLOW_COUNTER = 0x939,
    OP_CREATE_GENERAL_OBJECT = 0xa00,
};

enum prm_status {
    STATUS_OK = 0x00,
    STATUS_BAD_OP = 0x02,
    STATUS_BAD_PARAM = 0x03,
    STATUS_BAD_RES = 0x05,
    STATUS_RES_BUSY = 0x06,
    STATUS_BAD_RES_STATE = 0x09,
    STATUS_NO_RES = 0x0f,
    STATUS_BAD_QP_STATE = 0x10,
    STATUS_BAD_INPUT_LEN = 0x50,
    STATUS_BAD_OUTPUT_LEN = 0x51,
};

/* CREATE_CQ: context at byte 16, and inside it. */
enum { CREATE_CQ_CONTEXT = 0x10, CREATE_CQ_BYTES = 0x110 };
#define CREATE_CQ_UMEM_OFFSET PRM(0x280, 64)
#define CREATE_CQ_UMEM_ID PRM(0x2c0, 32)
#define CQC_CQE_SIZE PRM(0x08, 3)
#define CQC_COLLAPSED PRM(0x0b, 1)
#define CQC_IGNORE_OVERRUN PRM(0x0e, 1)
#define CQC_COMPRESS PRM(0x11, 1)
#define CQC_DBREC_UMEM PRM(0x20, 32)
#define CQC_LOG_SIZE PRM(0x63, 5)
#define CQC_UAR_PAGE PRM(0x68, 24)
#define CQC_EQN PRM(0xb8, 8)
#define CQC_CONSUMER PRM(0x148, 24)
#define CQC_PRODUCER PRM(0x168, 24)
#define CQC_DBREC_ADDR PRM(0x1c0, 64)
enum { CQC_BYTES = 0x40, QUERY_CQ_CONTEXT = 0x10 };

/* CREATE_QP and the QPC of create, modify and query: context at byte 24. */
enum { QP_CONTEXT = 0x18, QPC_BYTES = 0xe8, CREATE_QP_BYTES = 0x110, MODIFY_QP_BYTES = QP_CONTEXT + QPC_BYTES };
#define MODIFY_QP_OPTIONAL PRM(0x80, 32)
#define CREATE_QP_UMEM_OFFSET PRM(0x800, 64)
#define CREATE_QP_UMEM_ID PRM(0x840, 32)
#define QPC_STATE PRM(0x00, 4)
#define QPC_ST PRM(0x08, 8)
#define QPC_PM_STATE PRM(0x13, 2)
#define QPC_OFFLOAD_TYPE PRM(0x18, 4)
#define QPC_WQ_SIGNATURE PRM(0x20, 1)
#define QPC_PD PRM(0x28, 24)
#define QPC_MTU PRM(0x40, 3)
#define QPC_LOG_MSG_MAX PRM(0x43, 5)
#define QPC_LOG_RQ_SIZE PRM(0x49, 4)
#define QPC_LOG_RQ_STRIDE PRM(0x4d, 3)
#define QPC_NO_SQ PRM(0x50, 1)
#define QPC_LOG_SQ_SIZE PRM(0x51, 4)
#define QPC_UAR_PAGE PRM(0x68, 24)
#define QPC_USER_INDEX PRM(0x88, 24)
#define QPC_REMOTE_QPN PRM(0xa8, 24)
#define QPC_LOG_SRA_MAX PRM(0x388, 3)
#define QPC_RETRY_COUNT PRM(0x38d, 3)
#define QPC_RNR_RETRY PRM(0x390, 3)
#define QPC_NEXT_SEND_PSN PRM(0x3c8, 24)
#define QPC_CQN_SND PRM(0x3e8, 24)
#define QPC_LOG_RRA_MAX PRM(0x488, 3)
#define QPC_SEND_DBR_MODE PRM(0x80, 2)
#define QPC_ATOMIC_MODE PRM(0x48c, 4)
#define QPC_RRE PRM(0x490, 1)
#define QPC_RWE PRM(0x491, 1)
#define QPC_RAE PRM(0x492, 1)
#define QPC_MIN_RNR_NAK PRM(0x4a3, 5)
#define QPC_NEXT_RCV_PSN PRM(0x4a8, 24)
#define QPC_CQN_RCV PRM(0x4e8, 24)
#define QPC_DBREC_ADDR PRM(0x500, 64)
#define QPC_Q_KEY PRM(0x540, 32)
#define QPC_RQ_TYPE PRM(0x565, 3)
#define QPC_SRQN PRM(0x568, 24)
#define QPC_HW_SQ_COUNTER PRM(0x5a0, 16)
#define QPC_SW_SQ_COUNTER PRM(0x5b0, 16)
#define QPC_HW_RQ_COUNTER PRM(0x5c0, 32)
#define QPC_DC_KEY PRM(0x640, 64)
#define QPC_DBREC_UMEM PRM(0x720, 32)
/* The primary address path begins at bit 0xc0 of the context. */
#define QPC_PATH_PKEY_INDEX PRM(0xd0, 16)
#define QPC_PATH_GRH PRM(0xe8, 1)
#define QPC_PATH_MLID PRM(0xe9, 7)
#define QPC_PATH_RLID PRM(0xf0, 16)
#define QPC_PATH_ACK_TIMEOUT PRM(0x100, 5)
#define QPC_PATH_SGID_INDEX PRM(0x108, 8)
#define QPC_PATH_STAT_RATE PRM(0x114, 4)
#define QPC_PATH_HOP_LIMIT PRM(0x118, 8)
#define QPC_PATH_TCLASS PRM(0x124, 8)
#define QPC_PATH_FLOW_LABEL PRM(0x12c, 20)
#define QPC_PATH_RGID_HIGH PRM(0x140, 64)
#define QPC_PATH_RGID_LOW PRM(0x180, 64)
#define QPC_PATH_UDP_SPORT PRM(0x1d0, 16)
#define QPC_PATH_SL PRM(0x1e4, 4)
#define QPC_PATH_PORT PRM(0x1e8, 8)
#define QPC_PATH_RMAC_HIGH PRM(0x1f0, 16)
#define QPC_PATH_RMAC_LOW PRM(0x200, 32)

/* Service types of a QPC; number of the states in it. */
enum { ST_RC = 0, ST_UC = 1, ST_UD = 2, ST_XRC = 3, ST_DCI = 5 };
enum { RQ_TYPE_RQ = 0, RQ_TYPE_SRQ = 1, RQ_TYPE_NONE = 3 };

/* send_dbr_mode: whether the doorbell record says where the send queue ends. */
enum { SEND_DBR_VALID = 0, SEND_NO_DBR_EXT = 1 };

/* Optional attributes that modify commands may bring (bit of opt_param_mask). */
enum {
    OPT_RRE = 1 << 1,
    OPT_RAE = 1 << 2,
    OPT_RWE = 1 << 3,
    OPT_PKEY_INDEX = 1 << 4,
    OPT_Q_KEY = 1 << 5,
    OPT_RNR_TIMEOUT = 1 << 6,
    OPT_PRIMARY_ADDR_PATH = 1 << 7,
    OPT_SRA_MAX = 1 << 8,
    OPT_RRA_MAX = 1 << 9,
    OPT_PM_STATE = 1 << 10,
    OPT_RETRY_COUNT = 1 << 12,
    OPT_RNR_RETRY = 1 << 13,
    OPT_ACK_TIMEOUT = 1 << 14,
};

/* CREATE_MKEY: memory key context at byte 16. */
enum { CREATE_MKEY_CONTEXT = 0x10, CREATE_MKEY_BYTES = 0x60, CREATE_MKEY_LIST = 0x110 };
#define MKC_FREE PRM(0x01, 1)
#define MKC_ACCESS_MODE_HIGH PRM(0x03, 3)
#define MKC_UMR_EN PRM(0x10, 1)
#define MKC_A PRM(0x11, 1)
#define MKC_RW PRM(0x12, 1)
#define MKC_RR PRM(0x13, 1)
#define MKC_LW PRM(0x14, 1)
#define MKC_LR PRM(0x15, 1)
#define MKC_ACCESS_MODE_LOW PRM(0x16, 2)
#define MKC_QPN PRM(0x20, 24)
#define MKC_KEY_LOW PRM(0x38, 8)
#define MKC_LENGTH64 PRM(0x60, 1)
#define MKC_BSF_EN PRM(0x61, 1)
#define MKC_PD PRM(0x68, 24)
#define MKC_START_ADDR PRM(0x80, 64)
#define MKC_LEN PRM(0xc0, 64)
#define MKC_OCTWORDS PRM(0x1a0, 32)
#define CREATE_MKEY_ACTUAL_OCTWORDS PRM(0x300, 32)
enum { ACCESS_MODE_PA = 0, ACCESS_MODE_MTT = 1, ACCESS_MODE_KLMS = 2, ACCESS_MODE_KSM = 3 };

/* QUERY_HCA_CAP. */
enum { CAP_OUT = 0x10, CAP_BYTES = 0x1000, CAP_GENERAL = 0, CAP_ODP = 2, CAP_ATOMIC = 3, CAP_ROCE = 4, CAP_GENERAL_2 = 0x20 };
#define CAP_HCA_CAP_2 PRM(0x20, 1)
#define CAP_LOG_MAX_SRQ_SZ PRM(0x80, 8)
#define CAP_LOG_MAX_QP_SZ PRM(0x88, 8)
#define CAP_LOG_MAX_QP PRM(0x9b, 5)
#define CAP_LOG_MAX_SRQ PRM(0xab, 5)
#define CAP_LOG_MAX_CQ_SZ PRM(0xc8, 8)
#define CAP_LOG_MAX_CQ PRM(0xdb, 5)
#define CAP_LOG_MAX_MKEY PRM(0xea, 6)
#define CAP_LOG_MAX_KLM_LIST PRM(0x11a, 6)
#define CAP_LOG_MAX_RA_REQ_QP PRM(0x14a, 6)
#define CAP_LOG_MAX_RA_RES_QP PRM(0x15a, 6)
#define CAP_GID_TABLE_SIZE PRM(0x170, 16)
#define CAP_LOCAL_CA_ACK_DELAY PRM(0x1ab, 5)
#define CAP_PORT_TYPE PRM(0x1b6, 2)
#define CAP_NUM_PORTS PRM(0x1b8, 8)
#define CAP_LOG_MAX_MSG PRM(0x1c3, 5)
#define CAP_CQE_VERSION PRM(0x1fc, 4)
#define CAP_COMPACT_AV PRM(0x200, 1)
#define CAP_REPEATED_BLOCK_DISABLED PRM(0x206, 1)
#define CAP_UMR_ENTITY_SIZE_DISABLED PRM(0x207, 1)
#define CAP_UMR_ATOMIC_DISABLED PRM(0x208, 1)
#define CAP_UMR_INDIRECT_DISABLED PRM(0x209, 1)
#define CAP_ROCE_BIT PRM(0x21d, 1)
#define CAP_ATOMIC_BIT PRM(0x21e, 1)
#define CAP_CQ_OI PRM(0x220, 1)
#define CAP_CQ_RESIZE PRM(0x221, 1)
#define CAP_CQ_MODERATION PRM(0x222, 1)
#define CAP_UD PRM(0x23d, 1)
#define CAP_UC PRM(0x23e, 1)
#define CAP_RC PRM(0x23f, 1)
#define CAP_UAR_4K PRM(0x240, 1)
#define CAP_LOG_PG_SZ PRM(0x258, 8)
#define CAP_BF PRM(0x260, 1)
#define CAP_LOG_BF_REG_SIZE PRM(0x26b, 5)
#define CAP_MAX_WQE_SZ_SQ PRM(0x290, 16)
#define CAP_MAX_WQE_SZ_RQ PRM(0x2b0, 16)
#define CAP_LOG_MAX_PD PRM(0x32b, 5)

#define CAP_2_NO_DBR_EXT PRM(0x2e1, 1)
#define CAP_2_LOG_MAX_NO_DBR_SQ PRM(0x2e3, 5)

#define ATOMIC_8B_ENDIANNESS_MODE PRM(0x40, 2)
#define ATOMIC_8B_MODE_1_SUPPORTED PRM(0x46, 1)
#define ATOMIC_OPERATIONS PRM(0x90, 16)
#define ATOMIC_SIZE_QP PRM(0xb0, 16)
#define ATOMIC_SIZE_DC PRM(0xd0, 16)
#define ATOMIC_PCI_FETCH_ADD PRM(0x280, 16)
#define ATOMIC_PCI_SWAP PRM(0x290, 16)
#define ATOMIC_PCI_COMPARE_SWAP PRM(0x2a0, 16)

/* QUERY_SPECIAL_CONTEXTS output, QUERY_HCA_VPORT_CONTEXT output (context at byte 16). */
#define SPECIAL_DUMP_FILL_MKEY PRM(0x40, 32)
#define SPECIAL_RESERVED_LKEY PRM(0x60, 32)
#define VPORT_PORT_STATE PRM(0x198, 4)
#define VPORT_VPORT_STATE PRM(0x19c, 4)
#define VPORT_PORT_GUID PRM(0x200, 64)
#define VPORT_NODE_GUID PRM(0x240, 64)
#define VPORT_LID PRM(0x380, 16)
#define VPORT_SM_LID PRM(0x3a0, 16)

#endif
