/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * syncblk.h - the sync block of a team: where its members' flags and small messages lie in the device heap.
 *
 * Every member has one, at the same offset (shmemi_dev_team.sync), of shmemi_sync_bytes(n_pes) bytes, all zero before the
 * team is used.  The library allocates it and fills the map; the rest only device code writes.
 *
 *     channels   the owner's counters; nobody else reads them
 *     flags      by channel and member: the epoch at which that member arrived
 *     acks       by member: the last broadcast that it has completed
 *     counts     scratch of the owner: elements a member gives to collect
 *     messages   by parity of the epoch and member: lines of 8 data bytes and their flags
 *     scratch    by parity of the epoch: what the others reduce when source and dest are one array; of teams on several
 *                nodes, both together: what a reduction has fetched
 *     map        which members are on which node, of teams on several nodes (struct shmemi_sync_map)
 *
 * Epochs only grow, so nothing is reset, and a kernel finds them where the one before left them.
 */
#ifndef SHMEM_DEVICE_SYNCBLK_H
#define SHMEM_DEVICE_SYNCBLK_H

#include "state.h"

#define SHMEMI_SYNC_CHANS 33u         /* 0: calls of user kernels; 1 + b: block b of a kernel of the library */
#define SHMEMI_SYNC_SCRATCH 32768u    /* bytes of one of the two scratch buffers */
#define SHMEMI_SYNC_ALIGN 256u        /* alignment of a block */

struct shmemi_sync_chan {
    uint64_t epoch; /* of the last operation begun */
    uint64_t safe;  /* all members are known to have completed the operations up to this one */
    uint64_t pad[14];
};

/* 16 bytes of a message on the wire: each half carries 4 data bytes and the low half of the epoch. */
struct shmemi_sync_line {
    uint64_t half[2];
};

/* Members' flags stand on lines of their own while there are few of them. */
SHMEMI_FN uint32_t shmemi_sync_stride(uint32_t n)
{
    return n <= 32 ? 128 : 32;
}

/* Data bytes of the longest message that goes by lines. */
SHMEMI_FN uint32_t shmemi_sync_message(uint32_t n)
{
    return n <= 16 ? 2048 : n <= 128 ? 512 : 64;
}

SHMEMI_FN uint64_t shmemi_sync_flags_off(void)
{
    return SHMEMI_SYNC_CHANS * sizeof(struct shmemi_sync_chan);
}

SHMEMI_FN uint64_t shmemi_sync_acks_off(uint32_t n)
{
    return shmemi_sync_flags_off() + (uint64_t)SHMEMI_SYNC_CHANS * n * shmemi_sync_stride(n);
}

SHMEMI_FN uint64_t shmemi_sync_counts_off(uint32_t n)
{
    return shmemi_sync_acks_off(n) + (uint64_t)n * shmemi_sync_stride(n);
}

SHMEMI_FN uint64_t shmemi_sync_lines_off(uint32_t n)
{
    return (shmemi_sync_counts_off(n) + (uint64_t)n * 8 + 127) & ~(uint64_t)127;
}

SHMEMI_FN uint64_t shmemi_sync_scratch_off(uint32_t n)
{
    return shmemi_sync_lines_off(n) + (uint64_t)2 * n * 2 * shmemi_sync_message(n);
}

/*
 * The nodes of a team, numbered from 0 on by their first member.  Behind it 3 * n + 1 words: by member its node; by node
 * where its members begin in the list that follows, and one more word; the members, node by node, ascending.
 */
struct shmemi_sync_map {
    uint32_t n_nodes, my_node;
    uint32_t radix; /* children of a node in the tree; a mesh is a tree of one level for what flows from one to all */
    uint32_t pad[13];
};

SHMEMI_FN uint64_t shmemi_sync_map_off(uint32_t n)
{
    return shmemi_sync_scratch_off(n) + 2 * SHMEMI_SYNC_SCRATCH;
}

SHMEMI_FN uint64_t shmemi_sync_map_bytes(uint32_t n)
{
    return sizeof(struct shmemi_sync_map) + ((uint64_t)3 * n + 1) * 4;
}

SHMEMI_FN uint64_t shmemi_sync_bytes(uint32_t n)
{
    return shmemi_sync_map_off(n) + ((shmemi_sync_map_bytes(n) + 127) & ~(uint64_t)127);
}

/* Where the members of a small team meet that loads and stores reach from here; as host code fills it in. */
SHMEMI_FN struct shmemi_dev_meet shmemi_sync_meet_of(const struct shmemi_dev_state *s, const struct shmemi_dev_team *t)
{
    struct shmemi_dev_meet m = { 0, 0, 0, { 0 }, { 0 }, { 0 }, 0 };
    uint64_t step, flags;

    if (t->n_pes < 1 || t->n_pes > SHMEMI_DEV_MEET + 1)
        return m;
    step = shmemi_sync_stride((uint32_t)t->n_pes);
    flags = t->sync + shmemi_sync_flags_off();
    for (int i = 0; i < t->n_pes; i++) {
        int world = t->start + i * t->stride;
        uint64_t base = world < SHMEMI_DEV_NEAR ? s->near[world].dheap : 0;

        if (!base)
            return m;
        if (i == t->my_pe)
            continue;
        m.there[m.others] = base + flags + (uint64_t)t->my_pe * step;
        m.here[m.others] = s->dheap_base + flags + (uint64_t)i * step;
        m.pe[m.others++] = world;
    }
    m.generation = t->generation;
    m.chan = s->dheap_base + t->sync;
    return m;
}

#endif
