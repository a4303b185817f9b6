/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wait.h - how a kernel waits, and the wait and test calls on words of this PE.
 *
 * A word is read with acquire: what its writer had made visible before (put-with-signal, fence, barrier) is visible
 * here.  Polls follow one another at once at first, then with pauses.  Now and then a wait looks whether the host ends the
 * job, and after hang_ns it leaves a record of what it waits for, which the host prints.
 */
#ifndef SHMEM_DEVICE_WAIT_H
#define SHMEM_DEVICE_WAIT_H

#include "addr.h"

#ifdef SHMEMI_DEVICE_CODE

#define SHMEMI_WAIT_SPINS 4096u /* polls without a pause */
#define SHMEMI_WAIT_LOOK 1024u  /* polls between looks at the host and the clock */

struct shmemi_spin {
    uint32_t polls, reported;
    uint64_t since_ns;
};

/* What is waited for, for the record. */
struct shmemi_waited {
    uint32_t call;
    int pe, cmp;
    const void *addr;
    uint64_t value, want;
};

/* Takes and gives the spin by value: one whose address is known would live in memory, which each poll would then load. */
SHMEMI_DEV struct shmemi_spin shmemi_spin_looked(struct shmemi_spin s, const struct shmemi_waited *w)
{
    struct shmemi_dev_report *r = shmemi_dev_state.report;
    uint64_t now = shmemi_now_ns();
    uint32_t unclaimed = 0;

    if (!s.since_ns)
        s.since_ns = now;
    if (!r)
        return s;
    if (SHMEMI_LD_RLX(&r->stop))
        shmemi_trap();
    if (s.reported || !shmemi_dev_state.hang_ns || now - s.since_ns < shmemi_dev_state.hang_ns)
        return s;
    if (!SHMEMI_CAS_RLX(&r->wait_claim, &unclaimed, 1u))
        return s;
    s.reported = 1;
    r->call = w->call;
    r->addr = (uint64_t)(uintptr_t)w->addr;
    r->value = w->value;
    r->want = w->want;
    r->pe = w->pe;
    r->cmp = w->cmp;
    r->since_ns = s.since_ns;
    SHMEMI_ST_REL(&r->waiting, 1u); /* pairs with the watchdog's acquire */
    return s;
}

SHMEMI_DEV_COLD struct shmemi_spin shmemi_spin_look(struct shmemi_spin s, const struct shmemi_waited *w)
{
    return shmemi_spin_looked(s, w);
}

/* After a failed poll: is it time for a look? */
SHMEMI_DEV int shmemi_spin_pause(struct shmemi_spin *s)
{
    s->polls++;
    if (SHMEMI_LIKELY(s->polls % SHMEMI_WAIT_LOOK && s->polls < SHMEMI_WAIT_SPINS)) {
        SHMEMI_POLL_PAUSE();
        return 0;
    }
    SHMEMI_PAUSE();
    return s->polls % SHMEMI_WAIT_LOOK == 0;
}

/* One failed poll. */
SHMEMI_DEV void shmemi_spin_step(struct shmemi_spin *s, uint32_t call, int pe, const void *addr, uint64_t value, int cmp,
                                 uint64_t want)
{
    if (shmemi_spin_pause(s)) {
        struct shmemi_waited w = { call, pe, cmp, addr, value, want };

        *s = shmemi_spin_look(*s, &w);
    }
}

SHMEMI_DEV void shmemi_spin_withdrawn(void)
{
    SHMEMI_ST_REL(&shmemi_dev_state.report->waiting, 0u);
    SHMEMI_ST_REL(&shmemi_dev_state.report->wait_claim, 0u);
}

SHMEMI_DEV_COLD void shmemi_spin_withdraw(void)
{
    shmemi_spin_withdrawn();
}

SHMEMI_DEV void shmemi_spin_done(const struct shmemi_spin *s)
{
    if (s->reported)
        shmemi_spin_withdraw();
}

#define SHMEMI_SPIN_INIT { 0, 0, 0 }

/* ---- words ---- */

/* A word's kind: its bytes, negative for a signed type.  Constant. */
#define SHMEMI_WORD(T) ((T)-1 < (T)1 ? -(int)sizeof(T) : (int)sizeof(T))

/* A word of any kind as a key of 64 bits that compares as unsigned like the word itself. */
SHMEMI_DEV uint64_t shmemi_word_key(int kind, uint64_t raw)
{
    const uint64_t sign = (uint64_t)1 << 63;

    switch (kind) {
    case -2: return (uint64_t)(int64_t)(int16_t)raw ^ sign;
    case 2: return (uint16_t)raw;
    case -4: return (uint64_t)(int64_t)(int32_t)raw ^ sign;
    case 4: return (uint32_t)raw;
    case -8: return raw ^ sign;
    }
    return raw;
}

SHMEMI_DEV uint64_t shmemi_word_load(int kind, const void *p)
{
    switch (kind) {
    case 2:
    case -2: return SHMEMI_LD_ACQ((uint16_t *)(uintptr_t)p);
    case 4:
    case -4: return SHMEMI_LD_ACQ((uint32_t *)(uintptr_t)p);
    }
    return SHMEMI_LD_ACQ((uint64_t *)(uintptr_t)p);
}

SHMEMI_DEV int shmemi_word_holds(int kind, uint64_t word, int cmp, uint64_t value)
{
    uint64_t a = shmemi_word_key(kind, word), b = shmemi_word_key(kind, value);

    switch (cmp) {
    case SHMEM_CMP_EQ: return a == b;
    case SHMEM_CMP_NE: return a != b;
    case SHMEM_CMP_GT: return a > b;
    case SHMEM_CMP_LE: return a <= b;
    case SHMEM_CMP_LT: return a < b;
    }
    return a >= b;
}

SHMEMI_DEV void shmemi_dev_check_wait(int kind, const void *ivars, uint64_t n, int cmp, uint32_t call)
{
    uint32_t size = (uint32_t)(kind < 0 ? -kind : kind);

    if ((uint32_t)cmp > SHMEM_CMP_GE)
        shmemi_dev_fail(SHMEMI_DEV_BAD_VALUE, call, (uint64_t)cmp, 0, 0);
    shmemi_dev_check_word(ivars, size, call);
    if (shmemi_dev_state.check || shmemi_dev_state.n_pes == 0)
        shmemi_dev_remote(ivars, n * size, shmemi_dev_state.my_pe, call);
}

/* Gives the word that ended the wait, to every thread of the group. */
SHMEMI_DEV uint64_t shmemi_dev_wait_until(enum shmemi_scope scope, int kind, const void *ivar, int cmp, uint64_t value,
                                          uint32_t call)
{
    struct shmemi_spin s = SHMEMI_SPIN_INIT;
    uint64_t word = 0;

    shmemi_dev_check_wait(kind, ivar, 1, cmp, call);
    if (shmemi_rank(scope) == 0) {
        while (!shmemi_word_holds(kind, word = shmemi_word_load(kind, ivar), cmp, value))
            shmemi_spin_step(&s, call, -1, ivar, word, cmp, value);
        shmemi_spin_done(&s);
    }
    return shmemi_group_word(scope, word);
}

SHMEMI_DEV int shmemi_dev_test(int kind, const void *ivar, int cmp, uint64_t value)
{
    shmemi_dev_check_wait(kind, ivar, 1, cmp, SHMEMI_CALL_TEST);
    return shmemi_word_holds(kind, shmemi_word_load(kind, ivar), cmp, value);
}

/* ---- sets ---- */

enum shmemi_dev_set { SHMEMI_DEV_ALL, SHMEMI_DEV_ANY, SHMEMI_DEV_SOME };

struct shmemi_dev_pass {
    uint64_t members, hits, first;
};

/* One look at the set; `values` has one value an element when `vector`. */
SHMEMI_DEV_LARGE struct shmemi_dev_pass shmemi_dev_look(enum shmemi_dev_set set, int kind, const void *ivars, uint64_t n,
                                                        size_t *indices, const int *status, int cmp, const void *values,
                                                        int vector, uint64_t start)
{
    struct shmemi_dev_pass p = { 0, 0, ~(uint64_t)0 };
    uint64_t width = (uint64_t)(kind < 0 ? -kind : kind), value = 0;

    SHMEMI_ROLLED
    for (uint64_t k = 0; k < n; k++) {
        uint64_t i = start + k < n ? start + k : start + k - n;
        const char *at = (const char *)values + (vector ? i * width : 0);

        if (status && status[i])
            continue;
        p.members++;
        value = width == 2 ? *(const uint16_t *)(const void *)at
                : width == 4 ? *(const uint32_t *)(const void *)at : *(const uint64_t *)(const void *)at;
        if (!shmemi_word_holds(kind, shmemi_word_load(kind, (const char *)ivars + i * width), cmp, value))
            continue;
        if (p.hits == 0)
            p.first = i;
        if (set == SHMEMI_DEV_SOME)
            indices[p.hits] = i;
        p.hits++;
        if (set == SHMEMI_DEV_ANY)
            break;
    }
    return p;
}

/* Where ANY begins to look: another element each time, so that none starves. */
SHMEMI_DEV uint64_t shmemi_dev_turn(enum shmemi_dev_set set, uint64_t n)
{
    return set == SHMEMI_DEV_ANY && n > 1 ? (shmemi_now_ns() >> 5) % n : 0;
}

SHMEMI_DEV uint64_t shmemi_dev_wait_set(enum shmemi_dev_set set, int kind, const void *ivars, uint64_t n, size_t *indices,
                                        const int *status, int cmp, const void *values, int vector)
{
    struct shmemi_spin s = SHMEMI_SPIN_INIT;
    struct shmemi_dev_pass p;
    uint64_t start = shmemi_dev_turn(set, n);

    shmemi_dev_check_wait(kind, ivars, n, cmp, SHMEMI_CALL_WAIT);
    for (;;) {
        p = shmemi_dev_look(set, kind, ivars, n, indices, status, cmp, values, vector, start);
        if (p.members == 0 || (set == SHMEMI_DEV_ALL ? p.hits == p.members : p.hits > 0))
            break;
        shmemi_spin_step(&s, SHMEMI_CALL_WAIT, -1, ivars, p.hits, cmp, p.members);
    }
    shmemi_spin_done(&s);
    return set == SHMEMI_DEV_ANY ? p.first : p.hits;
}

SHMEMI_DEV uint64_t shmemi_dev_test_set(enum shmemi_dev_set set, int kind, const void *ivars, uint64_t n, size_t *indices,
                                        const int *status, int cmp, const void *values, int vector)
{
    struct shmemi_dev_pass p;

    shmemi_dev_check_wait(kind, ivars, n, cmp, SHMEMI_CALL_TEST);
    p = shmemi_dev_look(set, kind, ivars, n, indices, status, cmp, values, vector, shmemi_dev_turn(set, n));
    return set == SHMEMI_DEV_ALL ? p.hits == p.members : set == SHMEMI_DEV_ANY ? p.first : p.hits;
}

#endif
#endif
