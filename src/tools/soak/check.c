/* SPDX-License-Identifier: BSD-3-Clause */
/* check.c - what a thread's own operations brought: fetched values and bytes, against the mirror of what it wrote. */
#include "soak.h"

#include <inttypes.h>

/* Bytes that came into the arena at `loc` against those at `want`. */
static void compare_local(struct soak_thread *t, const struct soak_op *o, size_t loc, const unsigned char *want, size_t len)
{
    unsigned char *got = t->work + soak.shape.most;

    for (size_t i = 0; i < len; i += 64) {
        size_t n = len - i < 64 ? len - i : 64;

        if (t->arena_now != 2 && !memcmp(t->arena[t->arena_now] + loc + i, want + i, n))
            continue;
        soak_local_read(t, loc + i, got, n);
        for (size_t k = 0; k < n; k++)
            if (got[k] != want[i + k])
                soak_fail(t, o, "thread %d: byte %zu, at %p, is 0x%02x, expected 0x%02x", t->id, i + k,
                          (void *)(t->arena[t->arena_now] + loc + i + k), got[k], want[i + k]);
    }
}

static void check_got(struct soak_thread *t, const struct soak_op *o, uint64_t want)
{
    if (o->got != want)
        soak_fail(t, o, "thread %d: fetched 0x%" PRIx64 ", expected 0x%" PRIx64, t->id, o->got, want);
}

/* Constants of the target, contiguous or strided. */
static void check_constants(struct soak_thread *t, const struct soak_op *o)
{
    uint64_t tag = soak_const_tag(&soak.shape, o->pe, o->region, soak.epoch), want = 0;

    if (o->kind == SOAK_G) {
        soak_fill(&want, tag, o->off, o->sub);
        check_got(t, o, want);
    } else if (o->kind == SOAK_IGET) {
        for (uint32_t i = 0; i < o->count; i++) {
            soak_fill(t->work, tag, o->off + i * o->there * o->sub, o->sub);
            compare_local(t, o, o->loc + i * o->here * o->sub, t->work, o->sub);
        }
    } else {
        soak_fill(t->work, tag, o->off, o->len);
        compare_local(t, o, o->loc, t->work, o->len);
    }
}

static int tally_of(const struct soak_op *o)
{
    switch (soak_class_of[o->off] & 15) {
    case SOAK_C_TICKET: return soak_class_of[o->off] & SOAK_W32 ? 1 : 0;
    case SOAK_C_SWAP: return 2;
    default: return -1;
    }
}

/* A ticket of a word is higher than the thread's last; all tickets and swapped values are summed. */
static void check_shared(struct soak_thread *t, const struct soak_op *o)
{
    int which = tally_of(o);
    size_t at = ((size_t)o->pe * SOAK_REGIONS + o->region) * SOAK_TALLIES + (size_t)(which > 0 ? which : 0);
    uint64_t bit = o->value, had;

    if (soak_class_of[o->off] == SOAK_C_BITS) {
        bit = (o->sub & SOAK_AMO_MASK) == SOAK_FAND ? ~o->value : o->value;
        had = t->last_bits[(size_t)o->pe * SOAK_REGIONS + o->region];
        if (!!(o->got & bit) != !!had)
            soak_fail(t, o, "thread %d: fetched 0x%" PRIx64 ", where bit 0x%" PRIx64 " should be %d", t->id, o->got, bit, had ? 1 : 0);
        t->last_bits[(size_t)o->pe * SOAK_REGIONS + o->region] = (o->sub & SOAK_AMO_MASK) == SOAK_FOR;
        return;
    }
    if (which < 0)
        return;
    if (which < 2 && o->got + 1 <= t->last_ticket[at])
        soak_fail(t, o, "thread %d: fetched ticket %" PRIu64 " after %" PRIu64, t->id, o->got, t->last_ticket[at] - 1);
    t->last_ticket[at] = o->got + 1;
    __atomic_fetch_add(&soak.tally[at], which == 2 ? o->value - o->got : o->got, __ATOMIC_RELAXED);
}

void soak_check_upto(struct soak_thread *t, int upto)
{
    for (; t->checked < upto; t->checked++) {
        const struct soak_op *o = &t->ops[t->checked];
        struct soak_view v = soak_mirror_view(t, o->pe, o->region);
        uint64_t had;

        had = soak_apply(&v, o);
        switch (o->kind) {
        case SOAK_GET:
        case SOAK_GET_NBI:
        case SOAK_G:
        case SOAK_IGET: check_constants(t, o); break;
        case SOAK_BACK: compare_local(t, o, o->loc, v.slice + o->off, o->len); break;
        case SOAK_OWN:
        case SOAK_OWN_NBI:
            if (soak_fetches(o->sub))
                check_got(t, o, had);
            break;
        case SOAK_SHARED: check_shared(t, o); break;
        default: break;
        }
    }
}
