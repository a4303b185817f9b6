/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * soft_nic.h - a NIC in one process: takes entries from one send queue when its doorbell has been rung,
 * carries them out on the process's own memory, and writes completions into a collapsed queue.
 *
 * It reads the record with acquire and publishes completions with release, which is all the order that real
 * hardware has; so ThreadSanitizer judges the posting side.  It checks what it reads and says what is wrong
 * (`complaint`). The layout is written down here a second time on purpose.
 *
 * Of a queue without a record it goes by the doorbell's value, read with acquire.  Its register is a word of memory, where a value that
 * follows a later one would hide that, so that must not be.
 */
#ifndef SOFT_NIC_H
#define SOFT_NIC_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define SOFT_NIC_QPN 0x00abcdefu
#define SOFT_NIC_LKEY 0x11223344u
#define SOFT_NIC_RKEY 0x55667788u
#define SOFT_NIC_RING_MAX (32768 * 64)

struct soft_nic {
    uint8_t *ring;
    uint32_t depth;
    /* what the poster touches; each in a line of its own */
    _Alignas(64) uint32_t dbrec;
    _Alignas(64) uint64_t doorbell;
    _Alignas(64) uint32_t cqe[16];
    /* the NIC's own */
    _Alignas(64) uint16_t next; /* block */
    uint16_t limit;             /* up to here it was rung for */
    bool no_record;             /* the doorbell's value says how far, and nobody reads the record */
    uint64_t bells, entries, completions;
    uint16_t last_index; /* of the entry taken last */
    uint64_t fail_at;    /* this entry (counted from 1) and all behind it fail; 0: none */
    uint8_t fail_syndrome;
    bool failed;
    const char *complaint; /* the first */
};

static inline uint32_t nic_be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static inline uint64_t nic_be64(const uint8_t *p)
{
    return (uint64_t)nic_be32(p) << 32 | nic_be32(p + 4);
}

static inline void *nic_addr(uint64_t va)
{
    return (void *)(uintptr_t)va;
}

static inline void nic_complain(struct soft_nic *n, bool right, const char *what)
{
    if (!right && !n->complaint)
        n->complaint = what;
}

static inline void nic_complete(struct soft_nic *n, uint16_t index, uint8_t opcode, uint8_t syndrome,
                                uint8_t op)
{
    uint32_t last = (uint32_t)(index >> 8) | (uint32_t)(index & 0xff) << 8 | (uint32_t)op << 28;

    n->completions++;
    __atomic_store_n(&n->cqe[13], (uint32_t)syndrome << 24 | 0x77u << 16, __ATOMIC_RELAXED);
    __atomic_store_n(&n->cqe[14], opcode, __ATOMIC_RELAXED);
    __atomic_store_n(&n->cqe[15], last, __ATOMIC_RELEASE);
}

/* Old value out; what the entry's 16 or 32 bytes of operands make of the word. */
static inline uint64_t nic_atomic(uint8_t op, unsigned size, uint64_t old, const uint8_t *arg)
{
    uint64_t a, b, am = UINT64_MAX, bm = UINT64_MAX, sum = 0;

    if (size == 8) {
        a = nic_be64(arg);
        b = nic_be64(arg + 8);
    } else {
        a = nic_be32(arg);
        b = nic_be32(arg + 4);
    }
    switch (op) {
    case 0x12: return old + a;
    case 0x11: return old == b ? a : old;
    case 0x15:
        for (uint64_t bit = 1, carry = 0; bit; bit <<= 1) {
            uint64_t s = !!(old & bit) + !!(a & bit) + carry;

            sum |= s & 1 ? bit : 0;
            carry = b & bit ? 0 : s >> 1;
        }
        return sum;
    default: break;
    }
    if (size == 8) {
        am = nic_be64(arg + 16);
        bm = nic_be64(arg + 24);
    } else {
        am = nic_be32(arg + 8);
        bm = nic_be32(arg + 12);
    }
    return (old & bm) == (b & bm) ? (old & ~am) | (a & am) : old;
}

static inline void nic_do_atomic(struct soft_nic *n, const uint8_t *e, uint32_t segs)
{
    uint8_t op = e[3], mod = e[0];
    unsigned size = mod == 8 ? 4 : 8;
    bool wide = op == 0x14 && size == 8;
    const uint8_t *data = e + (wide ? 64 : 48);
    void *at = nic_addr(nic_be64(e + 16)), *to = nic_addr(nic_be64(data + 8));
    uint64_t old, now;

    nic_complain(n, segs == (wide ? 5 : 4), "ds of an atomic");
    nic_complain(n, op >= 0x14 ? mod == 8 || mod == 9 : mod == 0, "opmod of an atomic");
    nic_complain(n, nic_be32(data) == size && nic_be32(data + 4) == SOFT_NIC_LKEY,
                 "data segment of an atomic");
    if (n->complaint)
        return;
    if (size == 4) {
        uint32_t was = __atomic_load_n((uint32_t *)at, __ATOMIC_RELAXED);
        uint8_t be[4] = { (uint8_t)(was >> 24), (uint8_t)(was >> 16), (uint8_t)(was >> 8), (uint8_t)was };

        __atomic_store_n((uint32_t *)at, (uint32_t)nic_atomic(op, 4, was, e + 32), __ATOMIC_RELAXED);
        memcpy(to, be, 4);
        return;
    }
    old = __atomic_load_n((uint64_t *)at, __ATOMIC_RELAXED);
    now = nic_atomic(op, 8, old, e + 32);
    __atomic_store_n((uint64_t *)at, now, __ATOMIC_RELAXED);
    memcpy(to, &old, 8);
}

static inline void nic_do_rdma(struct soft_nic *n, const uint8_t *e, uint32_t segs)
{
    uint8_t *remote = nic_addr(nic_be64(e + 16));
    uint32_t count = segs > 2 ? nic_be32(e + 32) : 0;

    nic_complain(n, nic_be32(e + 24) == SOFT_NIC_RKEY && nic_be32(e + 28) == 0, "remote key");
    if (segs == 2 || n->complaint)
        return;
    if (count >> 31) {
        count &= 0x7fffffff;
        nic_complain(n, e[3] == 8 && segs == 2 + (count + 4 + 15) / 16, "ds of an inline write");
        if (!n->complaint)
            memcpy(remote, e + 36, count);
        return;
    }
    nic_complain(n, segs == 3 && nic_be32(e + 36) == SOFT_NIC_LKEY && count, "data segment");
    if (n->complaint)
        return;
    if (e[3] == 8)
        memcpy(remote, nic_addr(nic_be64(e + 40)), count);
    else
        memcpy(nic_addr(nic_be64(e + 40)), remote, count);
}

/* One block, in accesses that ThreadSanitizer sees (a memcpy of this size may be expanded behind its back).
 */
static inline void nic_fetch(const struct soft_nic *n, uint32_t block, uint8_t *to)
{
    const uint64_t *from = (const uint64_t *)(const void *)(n->ring + (block & (n->depth - 1)) * 64);

    for (int i = 0; i < 8; i++) {
        uint64_t word = from[i];

        memcpy(to + i * 8, &word, 8);
    }
}

static inline void nic_take(struct soft_nic *n)
{
    uint8_t e[1024];
    uint32_t segs, blocks;

    nic_fetch(n, n->next, e);
    segs = nic_be32(e + 4) & 0x3f;
    blocks = (segs + 3) / 4;
    nic_complain(n, nic_be32(e + 4) >> 8 == SOFT_NIC_QPN, "queue number");
    nic_complain(n, (uint16_t)(e[1] << 8 | e[2]) == n->next, "index");
    nic_complain(n, segs > 0 && e[8] == 0 && (e[11] & ~0xe8) == 0, "control segment");
    if (n->complaint)
        return;
    for (uint32_t b = 1; b < blocks; b++)
        nic_fetch(n, (uint32_t)n->next + b, e + b * 64);
    n->entries++;
    n->last_index = n->next;
    n->next = (uint16_t)(n->next + blocks);
    if (n->failed || (n->fail_at && n->entries >= n->fail_at)) {
        nic_complete(n, n->last_index, e[3], n->failed ? 0x05 : n->fail_syndrome, 13);
        n->failed = true;
        return;
    }
    switch (e[3]) {
    case 0x00: break;
    case 0x08:
    case 0x10: nic_do_rdma(n, e, segs); break;
    case 0x11:
    case 0x12:
    case 0x14:
    case 0x15: nic_do_atomic(n, e, segs); break;
    default: nic_complain(n, false, "opcode"); break;
    }
    if (e[11] & 8)
        nic_complete(n, n->last_index, e[3], 0, 0);
}

/* Without a record: behind the entry that the value names, of the size that it names. */
static inline void nic_bell(struct soft_nic *n, uint64_t bell)
{
    uint32_t head = __builtin_bswap32((uint32_t)bell), segs = (uint32_t)(bell >> 56) & 0x3f;
    uint16_t end = (uint16_t)((head >> 8) + (segs + 3) / 4);

    nic_complain(n, (int16_t)(end - n->limit) >= 0, "doorbell behind a later one");
    nic_complain(n, (uint16_t)(end - n->next) <= n->depth, "doorbell beyond the ring");
    n->limit = end;
}

/*
 * Looks at the doorbell; carries out at most `most` entries of what was announced when it was last
 * rung, and not one more: who forgets to ring waits for ever. Number of entries.
 */
static inline uint32_t soft_nic_run(struct soft_nic *n, uint32_t most)
{
    /* Pairs with the doorbell's release where no record is stored: the entries before its value are filled. */
    uint64_t bell = __atomic_exchange_n(&n->doorbell, 0, n->no_record ? __ATOMIC_ACQUIRE : __ATOMIC_RELAXED);
    uint32_t done = 0, record;

    if (bell) {
        n->bells++;
        nic_complain(n, (bell >> 32 & 0xffffff) == __builtin_bswap32(SOFT_NIC_QPN << 8),
                     "doorbell's queue number");
    }
    if (bell && n->no_record)
        nic_bell(n, bell);
    if (bell && !n->no_record) {
        /* Pairs with the poster's release: the entries before the record are filled. */
        record = __builtin_bswap32(__atomic_load_n(&n->dbrec, __ATOMIC_ACQUIRE));
        nic_complain(n, record <= 0xffff && (uint16_t)(record - n->next) <= n->depth, "record");
        n->limit = (uint16_t)record;
    }
    while (!n->complaint && n->next != n->limit && done < most) {
        nic_take(n);
        done++;
    }
    return done;
}

#endif
