/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parser and linter of send entries: legal entries of each kind, one wrong field at a time, then noise. Entries are
 * built with the functions and structs of mlx5dv.h.
 */
#include "engine/engine.h"
#include "tests/tap.h"

#include <stdlib.h>
#include <string.h>

enum { QPN = 0x2002, INDEX = 0xfff0 };

static const struct eng_wqe_rules rc_rules = { QPN, INDEX, HCA_RC, true };

/* The entry under construction: a control segment, then what the caller appends. */
struct entry {
    struct eng_send s;
    uint16_t at;
};

static void begin(struct entry *e)
{
    memset(e, 0, sizeof(*e));
    e->at = 16;
}

static void append(struct entry *e, const void *p, size_t len)
{
    memcpy(e->s.raw + e->at, p, len);
    e->at = (uint16_t)((e->at + len + 15) & ~15u);
}

static void raddr(struct entry *e, uint64_t va)
{
    struct mlx5_wqe_raddr_seg seg = { htobe64(va), htobe32(0x1234), 0 };

    append(e, &seg, sizeof(seg));
}

static void pointer(struct entry *e, uint32_t len)
{
    struct mlx5_wqe_data_seg seg;

    mlx5dv_set_data_seg(&seg, len, 0x77, 0x1000);
    append(e, &seg, sizeof(seg));
}

static void finish(struct entry *e, uint8_t opcode, uint8_t opmod, uint8_t flags)
{
    mlx5dv_set_ctrl_seg((struct mlx5_wqe_ctrl_seg *)(void *)e->s.raw, INDEX, opcode, opmod, QPN, flags,
                        (uint8_t)(e->at / 16), 0, 0);
    e->s.bytes = e->at;
}

static bool legal(struct entry *e, const struct eng_wqe_rules *rules)
{
    struct eng_lint lint = { 0 };
    bool good = eng_wqe_parse(&e->s, rules, &lint);

    if (!good)
        printf("# %s is 0x%llx: %s\n", lint.field, (unsigned long long)lint.found, lint.rule);
    return good;
}

/* Illegal because of that field. */
static bool illegal(struct entry *e, const struct eng_wqe_rules *rules, const char *field)
{
    struct eng_lint lint = { 0 };

    if (eng_wqe_parse(&e->s, rules, &lint)) {
        printf("# accepted, although %s is wrong\n", field);
        return false;
    }
    if (strcmp(lint.field, field) != 0)
        printf("# complains about %s, not about %s\n", lint.field, field);
    return !strcmp(lint.field, field) && e->s.syndrome;
}

static void make_write(struct entry *e)
{
    begin(e);
    raddr(e, 0x10000);
    pointer(e, 100);
    pointer(e, 23);
    finish(e, MLX5_OPCODE_RDMA_WRITE, 0, MLX5_WQE_CTRL_CQ_UPDATE);
}

static void make_atomic(struct entry *e, uint8_t opcode, uint8_t opmod, unsigned operand_bytes, uint32_t result)
{
    static const uint8_t operands[32] = { 1 };

    begin(e);
    raddr(e, 0x10000);
    append(e, operands, operand_bytes);
    pointer(e, result);
    finish(e, opcode, opmod, 0);
}

static void good_entries(void)
{
    uint32_t inline_head = htobe32(MLX5_INLINE_SEG | 20);
    uint8_t inline_seg[24] = { 0 };
    struct mlx5_wqe_av av = { .dqp_dct = htobe32(MLX5_EXTENDED_UD_AV | 5) };
    const struct eng_wqe_rules ud = { QPN, INDEX, HCA_UD, true };
    struct entry e;

    make_write(&e);
    tap_ok(legal(&e, &rc_rules) && e.s.len == 123 && e.s.raddr == 0x10000 && e.s.rkey == 0x1234, "write, two segments");
    begin(&e);
    raddr(&e, 8);
    memcpy(inline_seg, &inline_head, 4);
    append(&e, inline_seg, sizeof(inline_seg));
    finish(&e, MLX5_OPCODE_RDMA_WRITE, 0, 0);
    tap_ok(legal(&e, &rc_rules) && e.s.len == 20 && e.s.bytes == 64, "write, 20 bytes inline");
    begin(&e);
    finish(&e, MLX5_OPCODE_NOP, 0, 0);
    tap_ok(legal(&e, &rc_rules), "NOP");
    make_atomic(&e, MLX5_OPCODE_ATOMIC_FA, 0, 16, 8);
    tap_ok(legal(&e, &rc_rules) && e.s.answered_by_data, "fetch-add");
    make_atomic(&e, MLX5_OPCODE_ATOMIC_MASKED_FA, 8, 16, 4);
    tap_ok(legal(&e, &rc_rules) && e.s.len == 4, "masked fetch-add, 4 bytes");
    make_atomic(&e, MLX5_OPCODE_ATOMIC_MASKED_CS, 9, 32, 8);
    tap_ok(legal(&e, &rc_rules) && e.s.data_off == 64, "masked compare-swap, 8 bytes, two blocks");
    begin(&e);
    append(&e, &av, sizeof(av));
    pointer(&e, 10);
    finish(&e, MLX5_OPCODE_SEND, 0, 0);
    tap_ok(legal(&e, &ud) && e.s.len == 10, "datagram, full address vector");
    begin(&e);
    av.dqp_dct = htobe32(5);
    append(&e, &av, 16);
    pointer(&e, 10);
    finish(&e, MLX5_OPCODE_SEND, 0, 0);
    tap_ok(legal(&e, &ud) && e.s.len == 10, "datagram, compact address vector");
}

static void bad_control(void)
{
    const struct eng_wqe_rules uc = { QPN, INDEX, HCA_UC, true };
    struct entry e;

    make_write(&e);
    e.s.raw[2] ^= 1;
    tap_ok(illegal(&e, &rc_rules, "ctrl.wqe_index"), "wrong index");
    make_write(&e);
    e.s.raw[6] ^= 1;
    tap_ok(illegal(&e, &rc_rules, "ctrl.qpn"), "wrong queue pair number");
    make_write(&e);
    e.s.raw[7] |= 0x40;
    tap_ok(illegal(&e, &rc_rules, "ctrl.qpn_ds"), "reserved bit beside ds");
    make_write(&e);
    e.s.raw[11] |= 0x01;
    tap_ok(illegal(&e, &rc_rules, "ctrl.fm_ce_se"), "reserved flag");
    make_write(&e);
    e.s.raw[3] = 0x7e;
    tap_ok(illegal(&e, &rc_rules, "ctrl.opcode"), "unknown opcode");
    make_atomic(&e, MLX5_OPCODE_ATOMIC_FA, 0, 16, 8);
    tap_ok(illegal(&e, &uc, "ctrl.opcode"), "atomic on an unreliable connection");
}

static void bad_segments(void)
{
    const struct eng_wqe_rules plain = { QPN, INDEX, HCA_RC, false };
    uint32_t head = htobe32(MLX5_INLINE_SEG | 200);
    struct entry e;

    make_write(&e);
    e.s.raw[31] = 1;
    tap_ok(illegal(&e, &rc_rules, "raddr.reserved"), "reserved word of the remote address");
    begin(&e);
    finish(&e, MLX5_OPCODE_RDMA_WRITE, 0, 0);
    tap_ok(illegal(&e, &rc_rules, "ds"), "write without remote address");
    begin(&e);
    raddr(&e, 0);
    append(&e, &head, sizeof(head));
    finish(&e, MLX5_OPCODE_RDMA_WRITE, 0, 0);
    tap_ok(illegal(&e, &rc_rules, "inline.byte_count"), "inline data past the end");
    make_atomic(&e, MLX5_OPCODE_ATOMIC_FA, 0, 16, 4);
    tap_ok(illegal(&e, &rc_rules, "data_seg.byte_count"), "result of the wrong size");
    make_atomic(&e, MLX5_OPCODE_ATOMIC_FA, 9, 16, 8);
    tap_ok(illegal(&e, &rc_rules, "opmod"), "standard atomic with a modifier");
    make_atomic(&e, MLX5_OPCODE_ATOMIC_MASKED_FA, 7, 16, 8);
    tap_ok(illegal(&e, &rc_rules, "opmod"), "masked atomic of an unknown size");
    make_atomic(&e, MLX5_OPCODE_ATOMIC_MASKED_FA, 8, 16, 4);
    tap_ok(illegal(&e, &plain, "opcode"), "masked atomic that the context forbids");
    make_atomic(&e, MLX5_OPCODE_ATOMIC_MASKED_CS, 9, 16, 8);
    tap_ok(illegal(&e, &rc_rules, "ds"), "masked compare-swap without its masks");
    make_atomic(&e, MLX5_OPCODE_ATOMIC_FA, 0, 16, 8);
    e.s.raw[23] = 4;
    tap_ok(illegal(&e, &rc_rules, "raddr.raddr"), "unaligned atomic");
}

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* Whatever an entry says, the parser stays inside it, and gives either an entry that fits or a complaint. */
static bool noise(void)
{
    static const uint8_t opcodes[] = { 0x00, 0x01, 0x08, 0x09, 0x0a, 0x0b, 0x10, 0x11, 0x12, 0x14, 0x15, 0x23, 0x25, 0x1b };
    uint32_t rng = 1, accepted = 0;
    struct eng_send *s = calloc(1, sizeof(*s));

    if (!s)
        return false;
    for (int i = 0; i < 300000; i++) {
        struct eng_wqe_rules rules = rc_rules;
        struct eng_lint lint = { 0 };
        uint8_t ds = (uint8_t)(1 + next_random(&rng) % 63);

        for (size_t k = 0; k < ds * 16u; k += 2)
            s->raw[k] = s->raw[k + 1] = next_random(&rng) % 3 ? 0 : (uint8_t)next_random(&rng);
        mlx5dv_set_ctrl_seg((struct mlx5_wqe_ctrl_seg *)(void *)s->raw, INDEX, opcodes[next_random(&rng) % sizeof(opcodes)],
                            (uint8_t)(next_random(&rng) % 4 ? 0 : 8 + next_random(&rng) % 2), QPN, 8, ds, 0, 0);
        s->bytes = (uint16_t)(ds * 16);
        rules.type = (enum hca_qp_type)(next_random(&rng) % 3);
        if (eng_wqe_parse(s, &rules, &lint)) {
            accepted++;
            if (s->data_off > s->bytes || s->syndrome || s->len > 1u << HCA_LOG_MAX_MSG) {
                free(s);
                return false;
            }
        } else if (!lint.field || !s->syndrome) {
            free(s);
            return false;
        }
    }
    free(s);
    return accepted > 1000;
}

int main(void)
{
    good_entries();
    bad_control();
    bad_segments();
    tap_ok(noise(), "300000 entries of noise");
    return tap_done();
}
