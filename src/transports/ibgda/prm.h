/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * prm.h - the firmware commands that we use, as the mlx5 programmer's reference lays them out: a field is its first bit
 * and its width, most significant bit first, counted from the start of the structure it is in.
 */
#ifndef SHMEMI_IBGDA_PRM_H
#define SHMEMI_IBGDA_PRM_H

#include <stddef.h>
#include <stdint.h>

struct shmemi_prm_field {
    uint16_t bit, width;
};

#define SHMEMI_PRM(name, bit, width) \
    static const struct shmemi_prm_field name __attribute__((unused)) = { (bit), (width) }

/* Every command begins so; every answer with its status. */
SHMEMI_PRM(PRM_OPCODE, 0x00, 16);
SHMEMI_PRM(PRM_OP_MOD, 0x30, 16);
SHMEMI_PRM(PRM_OBJECT, 0x48, 24); /* in: of modify and query; out: of create */
SHMEMI_PRM(PRM_STATUS, 0x00, 8);
SHMEMI_PRM(PRM_SYNDROME, 0x20, 32);

enum shmemi_prm_opcode {
    PRM_QUERY_HCA_CAP = 0x100,
    PRM_CREATE_CQ = 0x400,
    PRM_CREATE_QP = 0x500,
    PRM_RST2INIT_QP = 0x502,
    PRM_INIT2RTR_QP = 0x503,
    PRM_RTR2RTS_QP = 0x504,
    PRM_QUERY_QP = 0x50b,
};

/* CREATE_CQ: context at byte 16, umem behind it. */
enum { PRM_CREATE_CQ_BYTES = 0x110, PRM_CQC = 0x10 };
SHMEMI_PRM(PRM_CQ_UMEM_OFFSET, 0x280, 64);
SHMEMI_PRM(PRM_CQ_UMEM_ID, 0x2c0, 32);
SHMEMI_PRM(PRM_CQ_UMEM_VALID, 0x2e0, 1);
SHMEMI_PRM(CQC_DBR_UMEM_VALID, 0x06, 1);
SHMEMI_PRM(CQC_COLLAPSED, 0x0b, 1);
SHMEMI_PRM(CQC_IGNORE_OVERRUN, 0x0e, 1);
SHMEMI_PRM(CQC_DBR_UMEM_ID, 0x20, 32);
SHMEMI_PRM(CQC_LOG_SIZE, 0x63, 5);
SHMEMI_PRM(CQC_UAR_PAGE, 0x68, 24);
SHMEMI_PRM(CQC_EQN, 0xb8, 8);
SHMEMI_PRM(CQC_DBR_ADDR, 0x1c0, 64);

/* CREATE_QP and the modify commands: context at byte 24. */
enum { PRM_CREATE_QP_BYTES = 0x110, PRM_MODIFY_QP_BYTES = 0x110, PRM_QPC = 0x18 };
SHMEMI_PRM(PRM_QP_UMEM_OFFSET, 0x800, 64);
SHMEMI_PRM(PRM_QP_UMEM_ID, 0x840, 32);
SHMEMI_PRM(PRM_QP_UMEM_VALID, 0x860, 1);
SHMEMI_PRM(PRM_QP_OPT_MASK, 0x80, 32);
SHMEMI_PRM(QPC_STATE, 0x00, 4);
SHMEMI_PRM(QPC_ST, 0x08, 8);
SHMEMI_PRM(QPC_PM_STATE, 0x13, 2);
SHMEMI_PRM(QPC_PD, 0x28, 24);
SHMEMI_PRM(QPC_MTU, 0x40, 3);
SHMEMI_PRM(QPC_LOG_MSG_MAX, 0x43, 5);
SHMEMI_PRM(QPC_LOG_SQ_SIZE, 0x51, 4);
SHMEMI_PRM(QPC_UAR_PAGE, 0x68, 24);
SHMEMI_PRM(QPC_SEND_DBR_MODE, 0x80, 2);
SHMEMI_PRM(QPC_USER_INDEX, 0x88, 24);
SHMEMI_PRM(QPC_REMOTE_QPN, 0xa8, 24);
SHMEMI_PRM(QPC_LOG_SRA_MAX, 0x388, 3);
SHMEMI_PRM(QPC_RETRY_COUNT, 0x38d, 3);
SHMEMI_PRM(QPC_RNR_RETRY, 0x390, 3);
SHMEMI_PRM(QPC_NEXT_SEND_PSN, 0x3c8, 24);
SHMEMI_PRM(QPC_CQN_SND, 0x3e8, 24);
SHMEMI_PRM(QPC_LOG_RRA_MAX, 0x488, 3);
SHMEMI_PRM(QPC_ATOMIC_MODE, 0x48c, 4);
SHMEMI_PRM(QPC_RRE, 0x490, 1);
SHMEMI_PRM(QPC_RWE, 0x491, 1);
SHMEMI_PRM(QPC_RAE, 0x492, 1);
SHMEMI_PRM(QPC_MIN_RNR_NAK, 0x4a3, 5);
SHMEMI_PRM(QPC_NEXT_RCV_PSN, 0x4a8, 24);
SHMEMI_PRM(QPC_CQN_RCV, 0x4e8, 24);
SHMEMI_PRM(QPC_DBR_ADDR, 0x500, 64);
SHMEMI_PRM(QPC_RQ_TYPE, 0x565, 3);
SHMEMI_PRM(QPC_DBR_UMEM_VALID, 0x683, 1);
SHMEMI_PRM(QPC_DBR_UMEM_ID, 0x720, 32);

/* The address path inside the context, which begins at its bit 0xc0. */
SHMEMI_PRM(QPC_PKEY_INDEX, 0xd0, 16);
SHMEMI_PRM(QPC_GRH, 0xe8, 1);
SHMEMI_PRM(QPC_RLID, 0xf0, 16);
SHMEMI_PRM(QPC_ACK_TIMEOUT, 0x100, 5);
SHMEMI_PRM(QPC_SGID_INDEX, 0x108, 8);
SHMEMI_PRM(QPC_HOP_LIMIT, 0x118, 8);
SHMEMI_PRM(QPC_TCLASS, 0x124, 8);
enum { QPC_RGID_BYTE = 0x28 };
SHMEMI_PRM(QPC_DSCP, 0x1ca, 6);
SHMEMI_PRM(QPC_UDP_SPORT, 0x1d0, 16);
SHMEMI_PRM(QPC_ETH_PRIO, 0x1e1, 3);
SHMEMI_PRM(QPC_SL, 0x1e4, 4);
SHMEMI_PRM(QPC_PORT, 0x1e8, 8);
enum { QPC_RMAC_BYTE = 0x3e };

enum { PRM_ST_RC = 0, PRM_MIGRATED = 3, PRM_RQ_NONE = 3, PRM_ATOMIC_8_BYTES_EXTENDED = 3, PRM_LOG_MSG_MAX = 30, PRM_NO_DBR_EXT = 1 };
enum { PRM_OPT_RRE = 1 << 1, PRM_OPT_RAE = 1 << 2, PRM_OPT_RWE = 1 << 3 };

/* QUERY_HCA_CAP: capabilities at byte 16; op_mod 1 is the current general ones, 7 those of atomics, 0x41 more general ones. */
enum { PRM_CAP_OUT_BYTES = 0x1010, PRM_CAP = 0x10, PRM_CAP_GENERAL = 1, PRM_CAP_ATOMIC = 7, PRM_CAP_2 = 0x41 };
SHMEMI_PRM(CAP_HCA_CAP_2, 0x20, 1);
SHMEMI_PRM(CAP_LOG_MAX_QP_SZ, 0x88, 8);
SHMEMI_PRM(CAP_CQE_VERSION, 0x1fc, 4);
SHMEMI_PRM(CAP_MAX_WQE_SZ_SQ, 0x290, 16);
SHMEMI_PRM(CAP_ATOMIC_8B_HOST_ORDER, 0x40, 2);
SHMEMI_PRM(CAP_ATOMIC_OPERATIONS, 0x90, 16);
SHMEMI_PRM(CAP_ATOMIC_SIZES, 0xb0, 16);
SHMEMI_PRM(CAP_2_NO_DBR_EXT, 0x2e1, 1);
SHMEMI_PRM(CAP_2_LOG_MAX_NO_DBR_SQ, 0x2e3, 5);
enum { CAP_ATOMIC_MASKED = 0xc, CAP_ATOMIC_4_AND_8 = 0xc };

static inline void shmemi_prm_set(void *base, struct shmemi_prm_field f, uint64_t value)
{
    uint8_t *bytes = (uint8_t *)base;

    for (unsigned i = f.bit + f.width; i-- > f.bit; value >>= 1) {
        uint8_t bit = (uint8_t)(0x80 >> i % 8);

        bytes[i / 8] = (uint8_t)((bytes[i / 8] & ~bit) | (value & 1 ? bit : 0));
    }
}

static inline uint64_t shmemi_prm_get(const void *base, struct shmemi_prm_field f)
{
    const uint8_t *bytes = (const uint8_t *)base;
    uint64_t value = 0;

    for (unsigned i = f.bit; i < (unsigned)f.bit + f.width; i++)
        value = value << 1 | (bytes[i / 8] >> (7 - i % 8) & 1);
    return value;
}

#endif
