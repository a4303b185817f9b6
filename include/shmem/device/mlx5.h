/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mlx5.h - work queue entries and completions of mlx5 NICs: values in, values out, nothing stored.
 *
 * An entry is a row of 16-byte segments in one or more 64-byte blocks of the send queue: control, remote
 * address, then what the operation needs.  Everything is big-endian.  The layout is the programmer's
 * reference manual's (chapters on work queue entries and completions); tests/mlx5 compares each with what
 * rdma-core itself writes.
 */
#ifndef SHMEM_DEVICE_MLX5_H
#define SHMEM_DEVICE_MLX5_H

#include "port.h"

#if !defined(__CUDACC__)
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the entries are built on a little-endian machine"
#endif
#endif

/* Types of their own: a missing swap does not compile. */
struct shmemi_be32 {
    uint32_t raw;
};
struct shmemi_be64 {
    uint64_t raw;
};
typedef struct shmemi_be32 shmemi_be32;
typedef struct shmemi_be64 shmemi_be64;

SHMEMI_FN shmemi_be32 shmemi_be32_of(uint32_t v)
{
    shmemi_be32 be = { shmemi_bswap32(v) };

    return be;
}

SHMEMI_FN shmemi_be64 shmemi_be64_of(uint64_t v)
{
    shmemi_be64 be = { shmemi_bswap64(v) };

    return be;
}

enum shmemi_mlx5_opcode {
    SHMEMI_MLX5_NOP = 0x00,
    SHMEMI_MLX5_WRITE = 0x08,
    SHMEMI_MLX5_READ = 0x10,
    SHMEMI_MLX5_CS = 0x11,
    SHMEMI_MLX5_FA = 0x12,
    SHMEMI_MLX5_MASKED_CS = 0x14, /* of extended atomics: the operand's size stands in opmod */
    SHMEMI_MLX5_MASKED_FA = 0x15,
};

enum {
    SHMEMI_MLX5_BLOCK = 64,
    SHMEMI_MLX5_OPMOD_4 = 0x08, /* extended atomic on 4 bytes, on 8 */
    SHMEMI_MLX5_OPMOD_8 = 0x09,
    SHMEMI_MLX5_SIGNALLED = 0x08, /* completion also when all went well */
    SHMEMI_MLX5_FENCED = 0x80,    /* behind earlier reads and atomics */
    SHMEMI_MLX5_FM_CE_SE = 11,    /* byte of the control segment that holds these two */
};

/*
 * The first 8 bytes of an entry, which are also the doorbell's value: the index of its block and the queue's
 * number (qpn: shmemi_be32_of(number << 8)), with what it does (shmemi_mlx5_ctrl_op).
 */
SHMEMI_FN uint64_t shmemi_mlx5_ctrl(shmemi_be32 qpn, uint64_t idx, uint64_t op)
{
    return shmemi_swap16_between((uint32_t)idx, (uint32_t)op) | (op >> 32 | qpn.raw) << 32;
}

SHMEMI_FN uint64_t shmemi_mlx5_ctrl_op(uint32_t opcode, uint32_t opmod, uint32_t n_segs)
{
    return (uint64_t)opcode << 24 | opmod | (uint64_t)n_segs << 56;
}

/* Its second half: flags, no immediate data. */
SHMEMI_FN uint64_t shmemi_mlx5_ctrl_flags(uint32_t fm_ce_se)
{
    return (uint64_t)fm_ce_se << 24;
}

SHMEMI_FN struct shmemi_v16 shmemi_mlx5_raddr(uint64_t raddr, shmemi_be32 rkey)
{
    struct shmemi_v16 seg = { shmemi_bswap64(raddr), rkey.raw };

    return seg;
}

/* len is not 0, which would mean 2 GiB. */
SHMEMI_FN struct shmemi_v16 shmemi_mlx5_data(uint64_t laddr, shmemi_be32 lkey, uint32_t len)
{
    struct shmemi_v16 seg = { shmemi_bswap32(len) | (uint64_t)lkey.raw << 32, shmemi_bswap64(laddr) };

    return seg;
}

/* The four bytes before inline data. */
SHMEMI_FN uint32_t shmemi_mlx5_inline(uint32_t len)
{
    return shmemi_bswap32(len | 0x80000000u);
}

/* Two 8-byte words: swap and compare, add and boundary, the two masks. */
SHMEMI_FN struct shmemi_v16 shmemi_mlx5_pair8(uint64_t a, uint64_t b)
{
    struct shmemi_v16 seg = { shmemi_bswap64(a), shmemi_bswap64(b) };

    return seg;
}

/* Four 4-byte words: swap, compare, swap mask, compare mask; or add, boundary, 0, 0. */
SHMEMI_FN struct shmemi_v16 shmemi_mlx5_quad4(uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    struct shmemi_v16 seg = { shmemi_bswap32(a) | (uint64_t)shmemi_bswap32(b) << 32,
                              shmemi_bswap32(c) | (uint64_t)shmemi_bswap32(d) << 32 };

    return seg;
}

/* ---- completion entries: 64 bytes, read as 4-byte words ---- */

enum {
    SHMEMI_MLX5_CQE_SYNDROME = 13, /* word that holds, from its top byte down: syndrome, vendor syndrome */
    SHMEMI_MLX5_CQE_OPCODE = 14,   /* opcode of the entry, queue number */
    SHMEMI_MLX5_CQE_LAST = 15, /* index of the entry's first block (2 bytes), signature, opcode and owner */
};

/* From the last word, as it lies in memory: */
SHMEMI_FN uint16_t shmemi_mlx5_cqe_index(uint32_t last)
{
    return (uint16_t)(shmemi_bswap32(last) >> 16);
}

/* 0: complete. */
SHMEMI_FN uint32_t shmemi_mlx5_cqe_opcode(uint32_t last)
{
    return last >> 28;
}

/* 15 is what a fresh entry holds; whatever else is no success is an error (requester 13, responder 14). */
SHMEMI_FN int shmemi_mlx5_cqe_is_error(uint32_t last)
{
    return shmemi_mlx5_cqe_opcode(last) != 0 && shmemi_mlx5_cqe_opcode(last) != 15;
}

#endif
