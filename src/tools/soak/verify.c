/* SPDX-License-Identifier: BSD-3-Clause */
/* verify.c - what all writers did to this PE's memory in a step, against the shadow; and sums that need all PEs. */
#include "soak.h"

#include <inttypes.h>

/* The operation of this step that wrote the byte last, by the plans. */
static bool culprit(int region, size_t off, int *pe_out, int *thread_out, struct soak_op *out)
{
    const struct soak_layout *l = &soak.layout[region];
    struct soak_thread *t = &soak.threads[0];
    size_t slice = soak.shape.slice[region], writer;
    struct soak_op ops[SOAK_OPS];
    bool found = false;
    int n;

    if (off >= l->shared)
        return false;
    writer = off < l->sig ? off / slice : (off < l->own ? off - l->sig : off - l->own) / (SOAK_WORDS * 8);
    *pe_out = (int)(writer / (size_t)soak.shape.threads);
    *thread_out = (int)(writer % (size_t)soak.shape.threads);
    n = soak_plan(&soak.shape, t->scratch, soak.step, *pe_out, *thread_out, ops);
    for (int i = 0; i < n; i++) {
        const struct soak_op *o = &ops[i];
        size_t at = off - writer * slice;

        if (o->pe != soak.me || o->region != region || o->kind == SOAK_FENCE || o->kind == SOAK_QUIET)
            continue;
        if (off < l->sig ? o->len && o->kind <= SOAK_SIGNAL_NBI && at >= o->off && at < o->off + o->len
                         : off < l->own ? (o->kind == SOAK_SIGNAL || o->kind == SOAK_SIGNAL_NBI) &&
                                               o->word == (off - l->sig) / 8 % SOAK_WORDS
                                        : (o->kind == SOAK_OWN || o->kind == SOAK_OWN_NBI) && o->off == (off - l->own) / 8 % SOAK_WORDS) {
            *out = *o;
            found = true;
        }
    }
    return found;
}

static const char *part_of(int region, size_t off)
{
    const struct soak_layout *l = &soak.layout[region];

    return off < l->sig ? "data" : off < l->own ? "a signal" : off < l->shared ? "an atomic word" : off < l->locks ? "a shared word"
         : off < l->held ? "a lock" : off < l->consts ? "a counter under a lock" : "a constant";
}

static void mismatch(int region, size_t off, size_t end, const unsigned char *got)
{
    const unsigned char *want = soak.shadow[region];
    const struct soak_layout *l = &soak.layout[region];
    size_t wrong = 0, first = off, word = off / 8 * 8, cell = (off - l->shared) / 8;
    struct soak_op o;
    int pe = -1, thread = -1;
    bool known;
    uint64_t w, g = 0;

    for (size_t i = off; i < end; i++)
        wrong += got[i - off] != want[i];
    known = culprit(region, first, &pe, &thread, &o);
    memcpy(&w, want + word, 8);
    soak_region_read(region, word, &g, 8);
    if (off >= l->shared && off < l->locks)
        soak_fail(NULL, NULL, "shared word %zu of the %s, at %p: it is 0x%" PRIx64 ", expected 0x%" PRIx64, cell, soak_region_names[region],
                  (void *)(soak.region[region] + word), g, w);
    soak_fail(NULL, known ? &o : NULL,
              "%s of the %s, offset %zu, at %p: byte 0x%02x, expected 0x%02x (word 0x%" PRIx64 ", expected 0x%" PRIx64
              "), %zu bytes wrong; writer: PE %d thread %d%s",
              part_of(region, first), soak_region_names[region], first, (void *)(soak.region[region] + first), got[0], want[first], g, w,
              wrong, pe, thread, known ? "" : ", which did not write there in this step");
}

/* Ends the job when bytes of the region are not as in the shadow. */
void soak_compare(int region, size_t off, size_t len)
{
    static unsigned char got[4096];

    for (size_t i = 0; i < len; i += sizeof got) {
        size_t n = len - i < sizeof got ? len - i : sizeof got;

        soak_region_read(region, off + i, got, n);
        if (!memcmp(got, soak.shadow[region] + off + i, n))
            continue;
        for (size_t k = 0; k < n; k++)
            if (got[k] != soak.shadow[region][off + i + k])
                mismatch(region, off + i + k, off + i + n, got + k);
    }
}

static void apply_plan(int pe, int thread, uint32_t *touched)
{
    struct soak_op ops[SOAK_OPS];
    int writer = (int)soak_writer(pe, thread), n;

    n = soak_plan(&soak.shape, soak.threads[0].scratch, soak.step, pe, thread, ops);
    for (int i = 0; i < n; i++) {
        struct soak_view v = soak_shadow_view(ops[i].region, writer);

        if (ops[i].pe != soak.me || ops[i].kind == SOAK_FENCE || ops[i].kind == SOAK_QUIET)
            continue;
        soak_apply(&v, &ops[i]);
        if (ops[i].kind <= SOAK_SIGNAL_NBI)
            *touched |= 1u << ops[i].region;
    }
}

/* Lock words are the library's; what is in a swapped word depends on the order. */
static void take_unknown(int region)
{
    const struct soak_layout *l = &soak.layout[region];

    soak_region_read(region, l->locks, soak.shadow[region] + l->locks, SOAK_LOCKS * 8);
    for (size_t w = 0; w < SOAK_CELLS; w++)
        if ((soak_class_of[w] & 15) == SOAK_C_SWAP)
            soak_region_read(region, l->shared + w * 8, soak.shadow[region] + l->shared + w * 8, 8);
}

void soak_verify(bool all)
{
    uint32_t touched;

    for (int pe = 0; pe < soak.n; pe++)
        for (int thread = 0; thread < soak.opt.threads; thread++) {
            size_t writer = soak_writer(pe, thread);

            touched = 0;
            apply_plan(pe, thread, &touched);
            for (int r = 0; r < SOAK_REGIONS; r++)
                if (touched >> r & 1)
                    soak_compare(r, writer * soak.shape.slice[r], soak.shape.slice[r]);
        }
    for (int r = 0; r < SOAK_REGIONS; r++) {
        if (!soak.region[r])
            continue;
        take_unknown(r);
        if (all)
            soak_compare(r, 0, soak.layout[r].end);
        else
            soak_compare(r, soak.layout[r].sig, soak.layout[r].consts - soak.layout[r].sig);
    }
}

static void check_tally(int region, int which, uint64_t sum)
{
    static const int words[SOAK_TALLIES] = { 5, 6, 8 };
    uint64_t v = 0, want;

    memcpy(&v, soak.shadow[region] + soak.layout[region].shared + words[which] * 8, which == 1 ? 4 : 8);
    want = which == 2 ? v : v % 2 ? (v - 1) / 2 * v : v / 2 * (v - 1);
    if (sum != want)
        soak_fail(NULL, NULL, "shared word %d of the %s: %s 0x%" PRIx64 ", expected 0x%" PRIx64, words[which], soak_region_names[region],
                  which == 2 ? "what was swapped in less what came out is" : "the sum of all tickets is", sum, want);
}

/* Collective, after a barrier. */
void soak_check_tallies(void)
{
    size_t cells = (size_t)soak.n * SOAK_REGIONS * SOAK_TALLIES;

    memcpy(soak.tally_sum[0], soak.tally, cells * sizeof *soak.tally);
    shmem_uint64_sum_reduce(SHMEM_TEAM_WORLD, soak.tally_sum[1], soak.tally_sum[0], cells);
    for (int r = 0; r < SOAK_REGIONS; r++)
        for (int which = 0; soak.region[r] && which < SOAK_TALLIES; which++)
            check_tally(r, which, soak.tally_sum[1][(size_t)(soak.me * SOAK_REGIONS + r) * SOAK_TALLIES + (size_t)which]);
    shmem_sync_all();
}
