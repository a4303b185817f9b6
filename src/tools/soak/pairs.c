/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pairs.c - messages that somebody waits for, by each form of wait and test: the data must be there when the signal is.
 *
 * Each thread of a PE sends to the same thread of another (pairs), or of all (fan); a message is sent before
 * the wait for the message of the same number, so the waits cannot form a ring.
 */
#include "soak.h"

#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>

enum { IN_TURN, TEST_IN_TURN, ALL, ANY, SOME, TEST_ALL, TEST_ANY, TEST_SOME, N_MODES };

/* What a receiver waits for. */
struct expected {
    struct soak_pairing p;
    uint64_t *words;   /* as many as there are messages, or all writers' */
    size_t n_words;
    int *status;       /* 1: not to be waited for */
    uint64_t *values;
    size_t *indices;
    struct soak_op *ops;
    int *from;         /* the sender; -1: no message */
    int missing;
};

static uint64_t *words_of(int region, int writer)
{
    return (uint64_t *)(void *)(soak.region[region] + soak.layout[region].sig + (size_t)writer * SOAK_WORDS * 8);
}

static void send(struct soak_thread *t, struct soak_op *o)
{
    const struct soak_layout *l = &soak.layout[o->region];
    size_t writer = soak_writer(soak.me, t->id);
    unsigned char *at = soak.region[o->region] + l->data + writer * soak.shape.slice[o->region] + o->off, *here;
    uint64_t *sig = words_of(o->region, (int)writer) + o->word;
    shmem_ctx_t c = t->ctx[o->ctx];
    int how = o->sub ? SHMEM_SIGNAL_ADD : SHMEM_SIGNAL_SET;
    struct soak_view v = soak_mirror_view(t, o->pe, o->region);
    struct soak_entry *e;

    soak_fill(t->work, o->tag, 0, o->len);
    soak_local_write(t, o->loc, t->work, o->len);
    here = t->arena[t->arena_now] + o->loc;
    e = soak_begin(t, o);
    if (o->here == 0 && o->kind == SOAK_SIGNAL)
        shmem_ctx_putmem_signal(c, at, here, o->len, sig, o->value, how, o->pe);
    else if (o->here == 0)
        shmem_ctx_putmem_signal_nbi(c, at, here, o->len, sig, o->value, how, o->pe);
    else if (o->here == 1)
        shmem_ctx_putmem(c, at, here, o->len, o->pe);
    else
        shmem_ctx_putmem_nbi(c, at, here, o->len, o->pe);
    if (o->here == 3)
        shmem_ctx_quiet(c);
    else if (o->here)
        shmem_ctx_fence(c);
    if (o->here && o->sub)
        shmem_ctx_uint64_atomic_add(c, sig, o->value, o->pe);
    else if (o->here == 1)
        shmem_ctx_uint64_p(c, sig, o->value, o->pe);
    else if (o->here)
        shmem_ctx_uint64_atomic_set(c, sig, o->value, o->pe);
    soak_end(e);
    soak_apply(&v, o);
}

/* The signal of message i has come: so have its bytes. */
static void arrived(struct soak_thread *t, struct expected *x, size_t i)
{
    const struct soak_op *o = &x->ops[i];
    int writer = (int)soak_writer(x->from[i], t->id);
    size_t off = soak.layout[o->region].data + (size_t)writer * soak.shape.slice[o->region] + o->off;
    unsigned char *want = t->work, *got = t->work + soak.shape.most;

    if (x->from[i] < 0 || x->status[i])
        soak_fail(t, NULL, "thread %d: a wait says that word %zu has come, which was not asked for", t->id, i);
    x->status[i] = 1;
    x->missing--;
    for (size_t k = 0; k < o->len; k += 64) {
        size_t n = o->len - k < 64 ? o->len - k : 64;

        soak_fill(want, o->tag, k, n);
        soak_region_read(o->region, off + k, got, n);
        for (size_t b = 0; b < n; b++)
            if (got[b] != want[b])
                soak_fail(t, o, "thread %d: signal from PE %d without its data: byte %zu, at %p, is 0x%02x, expected 0x%02x", t->id,
                          x->from[i], k + b, (void *)(soak.region[o->region] + off + k + b), got[b], want[b]);
    }
}

static void wait_for(struct soak_thread *t, struct expected *x, size_t i)
{
    uint64_t *word = x->words + i, seen;

    if (x->p.mode == TEST_IN_TURN) {
        while (!shmem_uint64_test(word, SHMEM_CMP_EQ, x->values[i]))
            sched_yield();
    } else if (i % 2) {
        shmem_uint64_wait_until(word, SHMEM_CMP_EQ, x->values[i]);
    } else {
        seen = shmem_signal_wait_until(word, SHMEM_CMP_EQ, x->values[i]);
        if (seen != x->values[i])
            soak_fail(t, &x->ops[i], "thread %d: shmem_signal_wait_until gave 0x%" PRIx64 ", expected 0x%" PRIx64, t->id, seen, x->values[i]);
    }
    arrived(t, x, i);
}

static void take_some(struct soak_thread *t, struct expected *x, size_t n)
{
    for (size_t k = 0; k < n; k++)
        arrived(t, x, x->indices[k]);
}

/* Everything that is missing has come. */
static void take_all(struct soak_thread *t, struct expected *x)
{
    for (size_t i = 0; i < x->n_words; i++)
        if (!x->status[i])
            arrived(t, x, i);
}

static void wait_for_rest(struct soak_thread *t, struct expected *x)
{
    uint64_t *w = x->words, *v = x->values, one = x->p.value;
    size_t n = x->n_words, i;
    bool same = x->p.same;
    int *s = x->status;

    while (x->missing) {
        switch (x->p.mode) {
        case ALL:
            if (same)
                shmem_uint64_wait_until_all(w, n, s, SHMEM_CMP_EQ, one);
            else
                shmem_uint64_wait_until_all_vector(w, n, s, SHMEM_CMP_EQ, v);
            take_all(t, x);
            break;
        case TEST_ALL:
            if (same ? shmem_uint64_test_all(w, n, s, SHMEM_CMP_EQ, one) : shmem_uint64_test_all_vector(w, n, s, SHMEM_CMP_EQ, v))
                take_all(t, x);
            break;
        case ANY:
        case TEST_ANY:
            if (x->p.mode == ANY)
                i = same ? shmem_uint64_wait_until_any(w, n, s, SHMEM_CMP_EQ, one)
                         : shmem_uint64_wait_until_any_vector(w, n, s, SHMEM_CMP_EQ, v);
            else
                i = same ? shmem_uint64_test_any(w, n, s, SHMEM_CMP_EQ, one) : shmem_uint64_test_any_vector(w, n, s, SHMEM_CMP_EQ, v);
            if (i != SIZE_MAX)
                arrived(t, x, i);
            break;
        case SOME:
            take_some(t, x,
                      same ? shmem_uint64_wait_until_some(w, n, x->indices, s, SHMEM_CMP_EQ, one)
                           : shmem_uint64_wait_until_some_vector(w, n, x->indices, s, SHMEM_CMP_EQ, v));
            break;
        default:
            take_some(t, x,
                      same ? shmem_uint64_test_some(w, n, x->indices, s, SHMEM_CMP_EQ, one)
                           : shmem_uint64_test_some_vector(w, n, x->indices, s, SHMEM_CMP_EQ, v));
            break;
        }
        if (x->missing && x->p.mode >= TEST_ALL)
            sched_yield();
    }
}

/* Word i is to get message m of PE `from`. */
static void expect(struct soak_thread *t, struct expected *x, size_t i, int from, int m)
{
    struct soak_view v = soak_shadow_view(x->p.region, (int)soak_writer(from, t->id));
    uint64_t old;

    x->ops[i] = soak_message(&soak.shape, &x->p, soak.step, from, t->id, soak.me, m);
    memcpy(&old, v.sig + m * 8, 8);
    x->values[i] = x->ops[i].sub ? old + x->ops[i].value : x->ops[i].value;
    x->from[i] = from;
    x->status[i] = 0;
    x->missing++;
}

static void expected_open(struct expected *x, size_t n)
{
    x->n_words = n;
    x->status = malloc(n * sizeof *x->status);
    x->values = calloc(n, sizeof *x->values);
    x->indices = calloc(n, sizeof *x->indices);
    x->ops = calloc(n, sizeof *x->ops);
    x->from = malloc(n * sizeof *x->from);
    if (!x->status || !x->values || !x->indices || !x->ops || !x->from)
        soak_fail(NULL, NULL, "out of memory");
    for (size_t i = 0; i < n; i++) {
        x->status[i] = 1;
        x->from[i] = -1;
    }
}

static void expected_close(struct expected *x)
{
    free(x->from);
    free(x->ops);
    free(x->indices);
    free(x->values);
    free(x->status);
}

static void choose_arena(struct soak_thread *t, uint64_t number)
{
    t->arena_now = (int)(number % SOAK_ARENAS);
    while (!t->arena[t->arena_now])
        t->arena_now--;
}

void soak_pairs(struct soak_thread *t)
{
    struct expected x = { .p = soak_pairing_of(&soak.shape, soak.step, t->id, 0, N_MODES) };
    int to = (soak.me + x.p.shift) % soak.n, from = (soak.me + soak.n - x.p.shift) % soak.n;
    bool in_turn = x.p.mode == IN_TURN || x.p.mode == TEST_IN_TURN;
    struct soak_op o;

    choose_arena(t, soak.step);
    expected_open(&x, (size_t)x.p.messages);
    x.words = words_of(x.p.region, (int)soak_writer(from, t->id));
    for (int m = 0; m < x.p.messages; m++)
        expect(t, &x, (size_t)m, from, m);
    for (int m = 0; m < x.p.messages; m++) {
        o = soak_message(&soak.shape, &x.p, soak.step, soak.me, t->id, to, m);
        send(t, &o);
        if (in_turn)
            wait_for(t, &x, (size_t)m);
    }
    wait_for_rest(t, &x);
    soak_quiet_all(t);
    expected_close(&x);
}

void soak_fan(struct soak_thread *t)
{
    struct expected x = { .p = soak_pairing_of(&soak.shape, soak.step, t->id, 1, N_MODES) };
    struct soak_op o;

    choose_arena(t, soak.step);
    expected_open(&x, (size_t)soak.n * (size_t)soak.opt.threads * SOAK_WORDS);
    x.words = words_of(x.p.region, 0);
    for (int pe = 0; pe < soak.n; pe++)
        expect(t, &x, soak_writer(pe, t->id) * SOAK_WORDS, pe, 0);
    for (int i = 0; i < soak.n; i++) {
        o = soak_message(&soak.shape, &x.p, soak.step, soak.me, t->id, (soak.me + i) % soak.n, 0);
        o.loc = 0;
        soak_quiet_all(t); /* the arena is used again */
        send(t, &o);
    }
    if (x.p.mode <= TEST_IN_TURN)
        for (int pe = 0; pe < soak.n; pe++)
            wait_for(t, &x, soak_writer(pe, t->id) * SOAK_WORDS);
    wait_for_rest(t, &x);
    soak_quiet_all(t);
    expected_close(&x);
}

/* After the step's barrier: what came, into the shadow, and compare. */
void soak_pairs_apply(int kind)
{
    for (int thread = 0; thread < soak.opt.threads; thread++) {
        struct soak_pairing p = soak_pairing_of(&soak.shape, soak.step, thread, kind == SOAK_FAN, N_MODES);

        for (int pe = 0; pe < soak.n; pe++) {
            int writer = (int)soak_writer(pe, thread);
            struct soak_view v = soak_shadow_view(p.region, writer);

            if (kind == SOAK_PAIRS && (pe + p.shift) % soak.n != soak.me)
                continue;
            for (int m = 0; m < p.messages; m++) {
                struct soak_op o = soak_message(&soak.shape, &p, soak.step, pe, thread, soak.me, m);

                soak_apply(&v, &o);
            }
            soak_compare(p.region, (size_t)writer * soak.shape.slice[p.region], soak.shape.slice[p.region]);
            soak_compare(p.region, soak.layout[p.region].sig + (size_t)writer * SOAK_WORDS * 8, SOAK_WORDS * 8);
        }
    }
}
