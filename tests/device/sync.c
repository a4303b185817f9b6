/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sync.c - barriers and syncs in kernels at every scope, across launches and mixed: nobody passes before all have come, and a
 * barrier shows what every thread of every PE stored.
 *
 * run: n=1,2,3,4 launch=oshrun timeout=120
 * nodes: no load and store from kernels reach one node only
 */
#include "launch.h"

#define ROUNDS 30
#define THREADS 64

struct args {
    int *slots; /* n_pes * THREADS, written by the others */
    int *bad;
    int scope, first;
    shmem_team_t team;
};

#define MEET(name)                                            \
    do {                                                      \
        if (a.scope == 2)                                     \
            shmemx_##name##_block();                          \
        else if (a.scope == 1)                                \
            shmemx_##name##_warp();                           \
        else                                                  \
            shmem_##name();                                   \
    } while (0)

/* Each thread stores to its slot on every PE; behind the barrier all slots of all PEs show the round. */
KERNEL(rounds, struct args)
{
    int me = shmem_my_pe(), n = shmem_n_pes(), rank = (int)shmemi_thread_in_block(), size = (int)shmemi_block_threads();

    for (int r = a.first; r < a.first + ROUNDS; r++) {
        for (int pe = 0; pe < n; pe++)
            shmem_int_p(a.slots + me * THREADS + rank, r, pe);
        MEET(barrier_all);
        for (int i = rank; i < n * size; i += size)
            if (a.slots[i / size * THREADS + i % size] != r)
                ++a.bad[rank];
        MEET(barrier_all);
        MEET(sync_all);
    }
}

KERNEL(team_rounds, struct args)
{
    int rank = (int)shmemi_thread_in_block(), n = shmem_team_n_pes(a.team), me = shmem_team_my_pe(a.team);

    for (int r = 1; r <= ROUNDS; r++) {
        if (rank == 0)
            for (int i = 0; i < n; i++)
                shmem_int_p(a.slots + me, 1000 + r, shmem_team_translate_pe(a.team, i, SHMEM_TEAM_WORLD));
        shmemx_team_barrier_block(a.team);
        for (int i = rank; i < n; i += THREADS)
            if (a.slots[i] != 1000 + r)
                ++a.bad[rank];
        shmemx_team_sync_block(a.team);
    }
}

static int sum(const int *dev, int n)
{
    int host[THREADS], total = 0;

    dev_read(host, dev, (size_t)n * sizeof(int));
    for (int i = 0; i < n; i++)
        total += host[i];
    return total;
}

int main(void)
{
    static const char *const scopes[3] = { "thread", "warp", "block" };
    static const int threads[3] = { 1, 32, THREADS };
    struct args a;

    dev_init();
    memset(&a, 0, sizeof a);
    a.slots = (int *)dev_malloc((size_t)tap_n * THREADS * sizeof(int));
    a.bad = (int *)dev_local(THREADS * sizeof(int));
    a.first = 1;
    for (a.scope = 0; a.scope < 3; a.scope++)
        for (int launch = 0; launch < 2; launch++) {
            LAUNCH(rounds, struct args, a, 1, threads[a.scope]);
            a.first += ROUNDS;
            tap_check_eq(sum(a.bad, THREADS), 0);
            tap_point("%s: barrier_all and sync_all, launch %d", scopes[a.scope], launch + 1);
        }
    if (tap_n > 1) {
        a.team = dev_split(1, 1, tap_n - 1);
        if (a.team != SHMEM_TEAM_INVALID)
            LAUNCH(team_rounds, struct args, a, 1, THREADS);
        tap_check_eq(sum(a.bad, THREADS), 0);
        tap_point("barrier and sync of a team that leaves one PE out");
    }
    return dev_done();
}
