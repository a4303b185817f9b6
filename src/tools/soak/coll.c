/* SPDX-License-Identifier: BSD-3-Clause */
/* coll.c - a collective of random kind and size on a team, with every element of the result checked. */
#include "soak.h"

#include <inttypes.h>

/* One call's parts; src and dst are symmetric, on the host or the device. */
struct call {
    struct soak_thread *t;
    shmem_team_t team;
    int me, n;
    size_t len;            /* elements, or bytes */
    uint64_t tag;
    unsigned char *src, *dst;
    bool device;
    const char *name;
};

static void put_in(struct call *c, unsigned char *to, const void *from, size_t len)
{
    if (c->device) {
        shmem_putmem(to, from, len, soak.me);
        shmem_quiet();
    } else {
        memcpy(to, from, len);
    }
}

static void take_out(struct call *c, void *to, const unsigned char *from, size_t len)
{
    if (c->device)
        shmem_getmem(to, from, len, soak.me);
    else
        memcpy(to, from, len);
}

static void check_rc(struct call *c, int rc)
{
    if (rc)
        soak_fail(c->t, NULL, "thread %d: %s of %zu on a team of %d gave %d", c->t->id, c->name, c->len, c->n, rc);
}

/* Bytes at off of dest against those of the pattern. */
static void check_bytes(struct call *c, size_t off, uint64_t tag, size_t from, size_t len)
{
    unsigned char *want = c->t->work, *got = c->t->work + 256;

    for (size_t i = 0; i < len; i += 256) {
        size_t n = len - i < 256 ? len - i : 256;

        soak_fill(want, tag, from + i, n);
        take_out(c, got, c->dst + off + i, n);
        for (size_t k = 0; k < n; k++)
            if (got[k] != want[k])
                soak_fail(c->t, NULL, "thread %d: %s of %zu, PE %d of a team of %d, %s memory: byte %zu, at %p, is 0x%02x, expected 0x%02x",
                          c->t->id, c->name, c->len, c->me, c->n, c->device ? "device" : "host", off + i + k, (void *)(c->dst + off + i + k),
                          got[k], want[k]);
    }
}

static void fill_source(struct call *c, size_t len)
{
    unsigned char part[512];

    for (size_t i = 0; i < len; i += sizeof part) {
        size_t n = len - i < sizeof part ? len - i : sizeof part;

        soak_fill(part, c->tag + (uint64_t)c->me * 1000003, i, n);
        put_in(c, c->src + i, part, n);
    }
}

static uint64_t tag_of(const struct call *c, int pe)
{
    return c->tag + (uint64_t)pe * 1000003;
}

static void broadcast(struct call *c, struct soak_rng *r)
{
    int root = (int)soak_below(r, (uint32_t)c->n);

    fill_source(c, c->len);
    check_rc(c, shmem_broadcastmem(c->team, c->dst, c->src, c->len, root));
    check_bytes(c, 0, tag_of(c, root), 0, c->len);
}

static void fcollect(struct call *c)
{
    fill_source(c, c->len);
    check_rc(c, shmem_fcollectmem(c->team, c->dst, c->src, c->len));
    for (int pe = 0; pe < c->n; pe++)
        check_bytes(c, (size_t)pe * c->len, tag_of(c, pe), 0, c->len);
}

/* Each PE's part has a length of its own, 0 too. */
static void collect(struct call *c)
{
    size_t off = 0, len;

    len = (size_t)soak_mix(tag_of(c, c->me)) % (c->len + 1);
    fill_source(c, len);
    check_rc(c, shmem_collectmem(c->team, c->dst, c->src, len));
    for (int pe = 0; pe < c->n; pe++) {
        len = (size_t)soak_mix(tag_of(c, pe)) % (c->len + 1);
        check_bytes(c, off, tag_of(c, pe), 0, len);
        off += len;
    }
}

static void alltoall(struct call *c)
{
    fill_source(c, c->len * (size_t)c->n);
    check_rc(c, shmem_alltoallmem(c->team, c->dst, c->src, c->len));
    for (int pe = 0; pe < c->n; pe++)
        check_bytes(c, (size_t)pe * c->len, tag_of(c, pe), (size_t)c->me * c->len, c->len);
}

/* A block is len elements of a byte, strided on both sides. */
static void alltoalls(struct call *c, struct soak_rng *r)
{
    size_t dst = 1 + soak_below(r, 2), sst = 1 + soak_below(r, 2), len = c->len;

    fill_source(c, len * sst * (size_t)c->n);
    check_rc(c, shmem_alltoallsmem(c->team, c->dst, c->src, (ptrdiff_t)dst, (ptrdiff_t)sst, len));
    for (int pe = 0; pe < c->n; pe++)
        for (size_t i = 0; i < len; i++)
            check_bytes(c, ((size_t)pe * len + i) * dst, tag_of(c, pe), ((size_t)c->me * len + i) * sst, 1);
}

static uint64_t element(const struct call *c, int pe, size_t i)
{
    return soak_mix(tag_of(c, pe) + i);
}

enum { SUM, MAX, MIN, INSCAN, EXSCAN, PROD, AND, OR, XOR };

#define SMALL(NAME, T)                                                                                               \
    static T value_##NAME(const struct call *c, int pe, size_t i)                                                    \
    {                                                                                                                \
        return (T)(element(c, pe, i) % 100);                                                                         \
    }                                                                                                                \
    static T want_##NAME(const struct call *c, int op, size_t i)                                                     \
    {                                                                                                                \
        int last = op == INSCAN ? c->me + 1 : op == EXSCAN ? c->me : c->n;                                           \
        T acc = op == INSCAN || op == EXSCAN || op == SUM ? 0 : value_##NAME(c, 0, i), v;                            \
                                                                                                                     \
        for (int pe = 0; pe < last; pe++) {                                                                          \
            v = value_##NAME(c, pe, i);                                                                              \
            acc = op == MAX ? (v > acc ? v : acc) : op == MIN ? (v < acc ? v : acc) : (T)(acc + v);                  \
        }                                                                                                            \
        return acc;                                                                                                  \
    }                                                                                                                \
    static void reduce_##NAME(struct call *c, int op, bool in_place)                                                 \
    {                                                                                                                \
        T *dst = (T *)(void *)(in_place ? c->src : c->dst), *src = (T *)(void *)c->src, v, got;                      \
        size_t n = c->len / sizeof(T);                                                                               \
                                                                                                                     \
        for (size_t i = 0; i < n; i++) {                                                                             \
            v = value_##NAME(c, c->me, i);                                                                           \
            put_in(c, (unsigned char *)(src + i), &v, sizeof v);                                                     \
        }                                                                                                            \
        check_rc(c, op == SUM ? shmem_##NAME##_sum_reduce(c->team, dst, src, n)                                      \
                  : op == MAX ? shmem_##NAME##_max_reduce(c->team, dst, src, n)                                      \
                  : op == MIN ? shmem_##NAME##_min_reduce(c->team, dst, src, n)                                      \
                  : op == INSCAN ? shmem_##NAME##_sum_inscan(c->team, dst, src, n)                                   \
                  : shmem_##NAME##_sum_exscan(c->team, dst, src, n));                                                \
        for (size_t i = 0; i < n; i++) {                                                                             \
            v = want_##NAME(c, op, i);                                                                               \
            take_out(c, &got, (unsigned char *)(dst + i), sizeof got);                                               \
            if (memcmp(&got, &v, sizeof v))                                                                          \
                soak_fail(c->t, NULL, "thread %d: " #NAME " %s %d of %zu, PE %d of %d: element %zu, at %p, is %.17g, expected %.17g",  \
                          c->t->id, c->name, op, n, c->me, c->n, i, (void *)(dst + i), (double)got, (double)v);      \
        }                                                                                                            \
    }
SMALL(int, int)
SMALL(short, short)
SMALL(long, long)
SMALL(float, float)
SMALL(double, double)
#undef SMALL

static void reduce_bits(struct call *c, int op, bool in_place)
{
    uint64_t *dst = (uint64_t *)(void *)(in_place ? c->src : c->dst), *src = (uint64_t *)(void *)c->src, v, got;
    size_t n = c->len / sizeof *dst;

    for (size_t i = 0; i < n; i++) {
        v = element(c, c->me, i);
        put_in(c, (unsigned char *)(src + i), &v, sizeof v);
    }
    check_rc(c, op == AND  ? shmem_uint64_and_reduce(c->team, dst, src, n)
              : op == OR   ? shmem_uint64_or_reduce(c->team, dst, src, n)
              : op == PROD ? shmem_uint64_prod_reduce(c->team, dst, src, n)
                           : shmem_uint64_xor_reduce(c->team, dst, src, n));
    for (size_t i = 0; i < n; i++) {
        v = element(c, 0, i);
        for (int pe = 1; pe < c->n; pe++) {
            uint64_t e = element(c, pe, i);

            v = op == AND ? v & e : op == OR ? v | e : op == PROD ? v * e : v ^ e;
        }
        take_out(c, &got, (unsigned char *)(dst + i), sizeof got);
        if (got != v)
            soak_fail(c->t, NULL, "thread %d: uint64 %s %d of %zu, PE %d of %d: element %zu, at %p, is 0x%" PRIx64 ", expected 0x%" PRIx64,
                      c->t->id, c->name, op, n, c->me, c->n, i, (void *)(dst + i), got, v);
    }
}

static void reduce(struct call *c, struct soak_rng *r)
{
    int type = (int)soak_below(r, 6), op = (int)soak_below(r, 5);
    bool in_place = soak_below(r, 4) == 0;

    c->name = op >= INSCAN ? "scan" : "reduction";
    if (c->device && c->len > 1024)
        c->len = 1024; /* element by element */
    c->len = (c->len + 7) / 8 * 8;
    switch (type) {
    case 0: reduce_int(c, op, in_place); break;
    case 1: reduce_short(c, op, in_place); break;
    case 2: reduce_long(c, op, in_place); break;
    case 3: reduce_float(c, op, in_place); break;
    case 4: reduce_double(c, op, in_place); break;
    default: c->name = "reduction"; reduce_bits(c, PROD + (int)soak_below(r, 4), in_place); break;
    }
}

/* One collective; `r` is a stream that all members share. */
void soak_coll_on(struct soak_thread *t, shmem_team_t team, struct soak_rng *r)
{
    static const char *const names[] = { "sync", "broadcast", "fcollect", "collect", "alltoall", "alltoalls", "reduction", "reduction" };
    int kind = (int)soak_below(r, 8), device = (int)soak_below(r, 3) == 0 && t->coll[1][0] != NULL;
    struct soak_op o = { .kind = SOAK_COLL, .region = device ? SOAK_DEVICE : SOAK_HEAP, .sub = (uint8_t)kind };
    struct call c = { .t = t, .team = team, .me = shmem_team_my_pe(team), .n = shmem_team_n_pes(team), .name = names[kind] };
    struct soak_entry *e;

    c.device = device;
    c.src = t->coll[device][0] + 8 * soak_below(r, 8);
    c.dst = t->coll[device][1] + 8 * soak_below(r, 8);
    c.len = soak_size(r, (uint32_t)soak.coll_most - 64);
    c.tag = soak_next(r);
    o.len = (uint32_t)c.len;
    e = soak_begin(t, &o);
    switch (kind) {
    case 0: shmem_team_sync(team); break;
    case 1: broadcast(&c, r); break;
    case 2: fcollect(&c); break;
    case 3: collect(&c); break;
    case 4: alltoall(&c); break;
    case 5: alltoalls(&c, r); break;
    default: reduce(&c, r); break;
    }
    shmem_team_sync(team); /* both buffers are used again */
    soak_end(e);
}

/* A thread's collectives of a step, on the team that it has with the same threads of other PEs. */
void soak_coll(struct soak_thread *t)
{
    struct soak_rng r = soak_stream(soak.shape.seed, soak.step, -1, t->id, 5);
    int n = 1 + (int)soak_below(&r, 4);

    for (int i = 0; i < n; i++)
        soak_coll_on(t, t->team, &r);
}
