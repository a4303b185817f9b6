/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * p2p.c - the engine behind every wait and test (specification 1.6, section 9.11).
 *
 * A word is read with acquire: what its writer had made visible before (put-with-signal, fence, an atomic) is then visible here.
 */
#include "p2p.h"

#include "devmem_rma.h"
#include "log.h"
#include "net.h"
#include "wait.h"

#include <stdio.h>

static const char *const cmp_names[] = {
    [SHMEM_CMP_EQ] = "==", [SHMEM_CMP_NE] = "!=", [SHMEM_CMP_GT] = ">",
    [SHMEM_CMP_LE] = "<=", [SHMEM_CMP_LT] = "<",  [SHMEM_CMP_GE] = ">=",
};

static size_t width(enum shmemi_kind kind)
{
    return kind <= SHMEMI_U16 ? 2 : kind <= SHMEMI_U32 ? 4 : 8;
}

/*
 * A word of any kind as a key of 64 bits that compares as unsigned like the word itself: signed words have their sign
 * bit flipped after widening.
 */
SHMEMI_INLINE uint64_t key_of(enum shmemi_kind kind, uint64_t raw)
{
    const uint64_t sign = 1ull << 63;

    switch (kind) {
    case SHMEMI_I16: return (uint64_t)(int64_t)(int16_t)raw ^ sign;
    case SHMEMI_U16: return (uint16_t)raw;
    case SHMEMI_I32: return (uint64_t)(int64_t)(int32_t)raw ^ sign;
    case SHMEMI_U32: return (uint32_t)raw;
    case SHMEMI_I64: return raw ^ sign;
    case SHMEMI_U64: return raw;
    }
    return raw;
}

/* Of memory that the CPU reads: a value to compare with. */
SHMEMI_INLINE uint64_t near_key(enum shmemi_kind kind, const void *p)
{
    switch (width(kind)) {
    case 2: return key_of(kind, SHMEMI_LD_ACQ((const uint16_t *)p));
    case 4: return key_of(kind, SHMEMI_LD_ACQ((const uint32_t *)p));
    default: return key_of(kind, SHMEMI_LD_ACQ((const uint64_t *)p));
    }
}

SHMEMI_INLINE uint64_t load_key(enum shmemi_kind kind, const void *p)
{
    if (shmemi_unlikely(shmemi.gpu_up) && shmemi_in_device_heap(p))
        return key_of(kind, shmemi_devmem_load(p, width(kind)));
    return near_key(kind, p);
}

SHMEMI_INLINE bool holds(uint64_t a, int cmp, uint64_t b)
{
    switch (cmp) {
    case SHMEM_CMP_EQ: return a == b;
    case SHMEM_CMP_NE: return a != b;
    case SHMEM_CMP_GT: return a > b;
    case SHMEM_CMP_LE: return a <= b;
    case SHMEM_CMP_LT: return a < b;
    default: return a >= b;
    }
}

static void check_args(const void *ivars, size_t len, size_t word, int cmp, const char *call)
{
    void *there;

    shmemi_check_init(call);
    if (shmemi_unlikely(cmp < SHMEM_CMP_EQ || cmp > SHMEM_CMP_GE))
        shmemi_fatal(call, "comparison %d is not one of SHMEM_CMP_*", cmp);
    (void)shmemi_reach(ivars, len, shmemi.my_pe, call, &there); /* only to see that it is symmetric */
    shmemi_check_aligned(ivars, word, call);
}

struct word {
    enum shmemi_kind kind;
    const void *ivar;
    int cmp;
    uint64_t value; /* key */
};

static void describe_word(const void *arg, char *buf, size_t len)
{
    const struct word *w = arg;
    const uint64_t sign = 1ull << 63, now = load_key(w->kind, w->ivar);

    if (w->kind & 1)
        snprintf(buf, len, "%p %s %llu, which is %llu now", w->ivar, cmp_names[w->cmp], (unsigned long long)w->value,
                 (unsigned long long)now);
    else
        snprintf(buf, len, "%p %s %lld, which is %lld now", w->ivar, cmp_names[w->cmp], (long long)(w->value ^ sign),
                 (long long)(now ^ sign));
}

uint64_t shmemi_wait_until(enum shmemi_kind kind, const void *ivar, int cmp, const void *value, const char *call)
{
    struct word word = { kind, ivar, cmp, near_key(kind, value) };
    struct shmemi_waiter w = SHMEMI_WAITER_FN(call, describe_word, &word);

    uint64_t key;

    check_args(ivar, width(kind), width(kind), cmp, call);
    while (!holds(key = load_key(kind, ivar), cmp, word.value))
        shmemi_wait_step(&w);
    shmemi_wait_done(&w);
    return key;
}

int shmemi_test(enum shmemi_kind kind, const void *ivar, int cmp, const void *value, const char *call)
{
    bool yes;

    check_args(ivar, width(kind), width(kind), cmp, call);
    yes = holds(load_key(kind, ivar), cmp, near_key(kind, value));
    if (shmemi_unlikely(!yes && shmemi_net.up))
        shmemi_net_progress(call); /* the caller may go on testing until what it has sent is answered */
    return yes;
}

/* One pass over a set. */
struct pass {
    size_t members; /* not left out by status */
    size_t hits;
    size_t first; /* index of the first hit */
};

struct set {
    enum shmemi_kind kind;
    const char *ivars;
    size_t nelems;
    size_t *indices;
    const int *status;
    int cmp;
    const char *values;
    size_t value_step; /* 0: one value for all */
    size_t start;      /* where ANY begins to look, so that no element starves */
    bool stop_at_first;
};

static struct pass look(const struct set *s)
{
    struct pass p = { 0, 0, SIZE_MAX };
    size_t step = width(s->kind);

    for (size_t n = 0, i = s->start; n < s->nelems; n++, i = i + 1 == s->nelems ? 0 : i + 1) {
        if (s->status && s->status[i])
            continue;
        p.members++;
        if (!holds(load_key(s->kind, s->ivars + i * step), s->cmp, load_key(s->kind, s->values + i * s->value_step)))
            continue;
        if (p.hits == 0)
            p.first = i;
        if (s->indices)
            s->indices[p.hits] = i;
        p.hits++;
        if (s->stop_at_first)
            break;
    }
    return p;
}

static struct set make_set(enum shmemi_set set, enum shmemi_kind kind, const void *ivars, size_t nelems, size_t *indices,
                           const int *status, int cmp, const void *values, bool vector, const char *call)
{
    static __thread size_t turn;
    size_t bytes;
    struct set s = { kind, ivars, nelems, set == SHMEMI_SOME ? indices : NULL, status, cmp, values,
                     vector ? width(kind) : 0, 0, set == SHMEMI_ANY };

    shmemi_check_init(call);
    if (!nelems)
        return s;
    if (__builtin_mul_overflow(nelems, width(kind), &bytes))
        shmemi_fatal(call, "%zu elements exceed the address space", nelems);
    check_args(ivars, bytes, width(kind), cmp, call);
    if (!values)
        shmemi_fatal(call, "cmp_values is NULL although nelems is %zu", nelems);
    if (set == SHMEMI_SOME)
        shmemi_check_result(indices, "indices", call);
    if (set == SHMEMI_ANY)
        s.start = turn++ % nelems;
    return s;
}

static void describe_set(const void *arg, char *buf, size_t len)
{
    const struct set *s = arg;
    struct set all = *s;
    struct pass p;

    all.indices = NULL;
    all.stop_at_first = false;
    p = look(&all);
    snprintf(buf, len, "%zu words at %p, of which %zu of %zu that count meet %s", s->nelems, (const void *)s->ivars, p.hits,
             p.members, cmp_names[s->cmp]);
}

static bool satisfied(enum shmemi_set set, const struct pass *p)
{
    return p->members == 0 || (set == SHMEMI_ALL ? p->hits == p->members : p->hits > 0);
}

size_t shmemi_wait_set(enum shmemi_set set, enum shmemi_kind kind, const void *ivars, size_t nelems, size_t *indices,
                       const int *status, int cmp, const void *values, bool vector, const char *call)
{
    struct set s = make_set(set, kind, ivars, nelems, indices, status, cmp, values, vector, call);
    struct shmemi_waiter w = SHMEMI_WAITER_FN(call, describe_set, &s);
    struct pass p = look(&s);

    while (!satisfied(set, &p)) {
        shmemi_wait_step(&w);
        p = look(&s);
    }
    shmemi_wait_done(&w);
    return set == SHMEMI_ANY ? p.first : set == SHMEMI_SOME ? p.hits : 0;
}

size_t shmemi_test_set(enum shmemi_set set, enum shmemi_kind kind, const void *ivars, size_t nelems, size_t *indices,
                       const int *status, int cmp, const void *values, bool vector, const char *call)
{
    struct set s = make_set(set, kind, ivars, nelems, indices, status, cmp, values, vector, call);
    struct pass p = look(&s);

    if (shmemi_unlikely(shmemi_net.up && !satisfied(set, &p)))
        shmemi_net_progress(call);
    if (set == SHMEMI_ALL)
        return satisfied(set, &p);
    return set == SHMEMI_ANY ? p.first : p.hits;
}
