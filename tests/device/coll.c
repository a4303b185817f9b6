/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll.c - collectives in kernels: every one at every scope, of lengths on both sides of each threshold, back to back and on
 * teams that overlap.
 *
 * run: n=1,2,3 launch=oshrun timeout=200
 * nodes: no load and store from kernels reach one node only
 */
#include "launch.h"

#define MOST 20000 /* ints of a PE's block */

enum what { BROADCAST, FCOLLECT, ALLTOALL, ALLTOALLS, COLLECT, REDUCE, IN_PLACE, N_WHATS };
static const char *const names[N_WHATS] = { "broadcast", "fcollect", "alltoall", "alltoalls", "collect", "sum_reduce",
                                            "sum_reduce in place" };

struct args {
    int *dest, *source;
    shmem_team_t team;
    int what, len, root;
};

#define CALLS(PREFIX, SUFFIX)                                                                                        \
    switch (a.what) {                                                                                                \
    case BROADCAST: PREFIX##_int_broadcast##SUFFIX(a.team, a.dest, a.source, (size_t)a.len, a.root); break;          \
    case FCOLLECT: PREFIX##_int_fcollect##SUFFIX(a.team, a.dest, a.source, (size_t)a.len); break;                    \
    case ALLTOALL: PREFIX##_int_alltoall##SUFFIX(a.team, a.dest, a.source, (size_t)a.len); break;                    \
    case ALLTOALLS: PREFIX##_int_alltoalls##SUFFIX(a.team, a.dest, a.source, 2, 3, (size_t)a.len); break;            \
    case COLLECT:                                                                                                    \
        PREFIX##_int_collect##SUFFIX(a.team, a.dest, a.source, (size_t)(a.len + shmem_team_my_pe(a.team)));          \
        break;                                                                                                       \
    case REDUCE: PREFIX##_int_sum_reduce##SUFFIX(a.team, a.dest, a.source, (size_t)a.len); break;                    \
    case IN_PLACE: PREFIX##_int_sum_reduce##SUFFIX(a.team, a.source, a.source, (size_t)a.len); break;                \
    }

KERNEL(by_thread, struct args)
{
    CALLS(shmem, )
}

KERNEL(by_warp, struct args)
{
    CALLS(shmemx, _warp)
}

KERNEL(by_block, struct args)
{
    CALLS(shmemx, _block)
}

static int value(int pe, int i)
{
    return pe * 100003 + i * 7 + 1;
}

/* What dest holds at element i on member `me`; *there: whether the call writes it. */
static int want(const struct args *a, int me, int n, int i, int *there)
{
    int block = a->len ? i / a->len : 0, at = a->len ? i % a->len : 0, sum = 0;

    *there = 1;
    switch (a->what) {
    case BROADCAST:
        *there = i < a->len;
        return value(a->root, i);
    case FCOLLECT:
        *there = a->len && block < n;
        return value(block, at);
    case ALLTOALL:
        *there = a->len && block < n;
        return value(block, me * a->len + at);
    case ALLTOALLS:
        *there = i % 2 == 0 && i / 2 < n * a->len;
        return value(i / 2 / (a->len ? a->len : 1), (me * a->len + i / 2 % (a->len ? a->len : 1)) * 3);
    case COLLECT:
        for (block = 0; block < n && i >= a->len + block; block++)
            i -= a->len + block;
        *there = block < n;
        return value(block, i);
    default:
        *there = i < a->len;
        for (int pe = 0; pe < n; pe++)
            sum += value(pe, i);
        return sum;
    }
}

static int look(const struct args *a, const int *dest, int span)
{
    static int got[MOST * 4];
    int me = shmem_team_my_pe(a->team), n = shmem_team_n_pes(a->team), bad = 0, there;

    dev_read(got, dest, (size_t)span * sizeof(int));
    for (int i = 0; i < span; i++) {
        int w = want(a, me, n, i, &there);

        if (a->what == IN_PLACE && !there)
            continue;
        if (got[i] != (there ? w : 0) && bad++ < 3)
            tap_diag("%s of %d: element %d is %d, should be %d", names[a->what], a->len, i, got[i], there ? w : 0);
    }
    return bad;
}

static void one(struct args *a, int scope)
{
    static int fill[MOST * 4];
    int me = shmem_team_my_pe(a->team), n = shmem_team_n_pes(a->team);
    int span = a->what == ALLTOALLS ? a->len * n * 3 + 8 : a->what >= REDUCE ? a->len + 8 : (a->len + n) * n + 8;

    for (int i = 0; i < span; i++)
        fill[i] = value(me, i);
    dev_write(a->source, fill, (size_t)span * sizeof(int));
    memset(fill, 0, (size_t)span * sizeof(int));
    dev_write(a->dest, fill, (size_t)span * sizeof(int));
    shmem_team_sync(a->team);
    if (scope == 0)
        LAUNCH(by_thread, struct args, *a, 1, 1);
    else if (scope == 1)
        LAUNCH(by_warp, struct args, *a, 1, 32);
    else
        LAUNCH(by_block, struct args, *a, 1, 96);
    tap_check_eq(look(a, a->what == IN_PLACE ? a->source : a->dest, span), 0);
    shmem_team_sync(a->team);
}

static void all(struct args *a, const char *team)
{
    static const int lens[7] = { 0, 1, 3, 128, 511, 600, 9000 };

    for (int what = 0; what < N_WHATS; what++) {
        for (int scope = 0; scope < 3; scope++)
            for (int l = 0; l < (what == ALLTOALLS ? 6 : 7) && a->team != SHMEM_TEAM_INVALID; l++) {
                a->what = what;
                a->len = lens[l];
                a->root = (l + scope) % shmem_team_n_pes(a->team);
                one(a, scope);
            }
        tap_point("%s: %s by a thread, a warp and a block", team, names[what]);
    }
}

/* ---- back to back, with no host between, on two teams in turn ---- */

#define ROUNDS 60

struct chain {
    int *dest, *source, *bad;
    shmem_team_t world, other;
    int n_other;
};

KERNEL(chain, struct chain)
{
    int me = shmem_my_pe(), n = shmem_n_pes(), rank = (int)shmemi_thread_in_block();

    for (int r = 0; r < ROUNDS; r++) {
        if (rank == 0)
            a.source[0] = me + r;
        /* Two broadcasts from one root and one from another: the buffers' turn-taking. */
        shmemx_int_broadcast_block(a.world, a.dest, a.source, 1, r % n);
        shmemx_int_broadcast_block(a.world, a.dest + 1, a.source, 1, r % n);
        shmemx_int_broadcast_block(a.world, a.dest + 2, a.source, 1, (r + 1) % n);
        shmemx_int_sum_reduce_block(a.world, a.dest + 3, a.source, 1);
        if (a.n_other)
            shmemx_int_fcollect_block(a.other, a.dest + 8, a.source, 1);
        shmemx_sync_all_block();
        if (rank == 0) {
            int sum = n * (n - 1) / 2 + n * r;

            if (a.dest[0] != r % n + r || a.dest[1] != r % n + r || a.dest[2] != (r + 1) % n + r || a.dest[3] != sum)
                ++*a.bad;
            for (int i = 0; i < a.n_other; i++)
                if (a.dest[8 + i] != shmem_team_translate_pe(a.other, i, a.world) + r)
                    ++*a.bad;
        }
        shmemx_barrier_all_block();
    }
}

static void back_to_back(int *dest, int *source, shmem_team_t other)
{
    struct chain c = { dest, source, (int *)dev_local(sizeof(int)), SHMEM_TEAM_WORLD, other,
                       other == SHMEM_TEAM_INVALID ? 0 : shmem_team_n_pes(other) };
    int bad = -1;

    shmem_barrier_all();
    LAUNCH(chain, struct chain, c, 1, 64);
    dev_read(&bad, c.bad, sizeof bad);
    tap_check_eq(bad, 0);
    tap_point("%d rounds of collectives on two teams in turn", ROUNDS);
}

int main(void)
{
    shmem_team_t odd_ones;
    struct args a;

    dev_init();
    memset(&a, 0, sizeof a);
    a.dest = (int *)dev_malloc(MOST * 4 * sizeof(int));
    a.source = (int *)dev_malloc(MOST * 4 * sizeof(int));
    a.team = SHMEM_TEAM_WORLD;
    all(&a, "world");
    odd_ones = dev_split(tap_n > 1, tap_n > 3 ? 2 : 1, tap_n > 3 ? tap_n / 2 : tap_n > 1 ? tap_n - 1 : 1);
    a.team = odd_ones;
    all(&a, "a team");
    back_to_back(a.dest, a.source, odd_ones);
    return dev_done();
}
