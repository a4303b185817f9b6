/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check_sync.c - teams and their meeting points over hand-made memory: one process per PE, all forked here, with no
 * launcher; and what the report of a hang says about who is missing.
 */
#include "activeset.h"
#include "sync.h"
#include "team_slots.h"

#include <check.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_PES 40
#define HEAP_BYTES 4096

static struct shmemi_pe_ctl *ctls;
static char *blocks, *heaps;
static int pes[MOST_PES];
static struct shmemi_peer peers[MOST_PES];

/* The state that init would make, with untouched shared memory. */
static void make_node(int n, int n_cpus)
{
    size_t block_bytes = (size_t)SHMEMI_TEAMS_MAX * SHMEMI_TEAM_BLOCK_BYTES;

    ctls = mmap(NULL, sizeof *ctls * MOST_PES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    blocks = mmap(NULL, block_bytes * (size_t)n, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    heaps = mmap(NULL, HEAP_BYTES * MOST_PES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert(ctls != MAP_FAILED && blocks != MAP_FAILED && heaps != MAP_FAILED);
    for (int i = 0; i < n; i++) {
        pes[i] = i;
        peers[i].ctl = &ctls[i];
        peers[i].heap = (uintptr_t)heaps + (uintptr_t)i * HEAP_BYTES;
        peers[i].team_blocks = blocks + (size_t)i * block_bytes;
        ctls[i].phase = SHMEMI_PE_RUNNING;
        ctls[i].pid = getpid();
    }
    shmemi = (struct shmemi_state){ .n_pes = n, .peers = peers, .n_local = n, .n_cpus = n_cpus, .local_pes = pes,
                                    .spin_limit = 10 };
}

static void become(int pe)
{
    static struct shmemi_node_hdr node;

    shmemi.node = &node;
    shmemi.my_pe = shmemi.my_local = pe;
    shmemi.my_ctl = &ctls[pe];
    shmemi.heap_base = peers[pe].heap;
    shmemi.heap_len = HEAP_BYTES;
    ck_assert_int_eq(shmemi_teams_init(), 0);
}

static void check_text(struct shmemi_team *t, uint64_t epoch, int member, const char *want, int culprit)
{
    struct shmemi_awaited a = { t, epoch, member };
    char text[256];

    shmemi_awaited_describe(&a, text, sizeof text);
    ck_assert_str_eq(text, want);
    ck_assert_int_eq(shmemi_awaited_culprit(&a), culprit);
}

START_TEST(report_names_who_has_not_come_to_a_flat_team)
{
    struct shmemi_team *t;

    make_node(4, 4);
    become(1);
    t = shmemi_team_get(SHMEM_TEAM_WORLD, "test");
    ck_assert(t->coll->flat);
    check_text(t, 1, -1, "PE 0, 2, 3 to enter (team slot 0, epoch 1)", 0);
    t->coll->mine->lines[1][0].epoch = 1;
    t->coll->mine->lines[1][2].epoch = 1;
    check_text(t, 1, -1, "PE 3 to enter (team slot 0, epoch 1)", 3);
    check_text(t, 1, 3, "PE 3 to enter (team slot 0, epoch 1)", 3);
    check_text(t, 2, 0, "PE 0 to enter (team slot 0, epoch 2)", 0);
    t->coll->mine->lines[1][3].epoch = 1;
    ck_assert_int_eq(shmemi_awaited_culprit(&(struct shmemi_awaited){ t, 1, -1 }), -1);
}
END_TEST

START_TEST(report_names_who_has_not_come_to_a_tree_team)
{
    struct shmemi_team *t;

    make_node(MOST_PES, 64);
    become(39);
    t = shmemi_team_get(SHMEM_TEAM_WORLD, "test");
    ck_assert(!t->coll->flat);
    check_text(t, 1, -1, "PE 0, 1, 2, 3, 4, 5, 6, 7 and others to enter (team slot 0, epoch 1)", 0);
    for (int i = 0; i < 38; i++)
        shmemi_block_of(t, i)->entered = 1;
    check_text(t, 1, -1, "PE 38 to enter (team slot 0, epoch 1)", 38);
}
END_TEST

START_TEST(report_of_a_team_counts_in_world_numbers)
{
    struct shmemi_team *t;

    make_node(8, 8);
    become(6);
    t = shmemi_team_at(2);
    shmemi_team_place(t, 6, -2, 3, 0, 100);
    check_text(t, 101, -1, "PE 4, 2 to enter (team slot 2, epoch 101)", 4);
}
END_TEST

/* ---- processes ---- */

static volatile int *entered; /* shared: rounds that each PE has begun */

/* Nobody leaves a round before all have begun it. */
static int meet_often(struct shmemi_team *t, int rounds)
{
    int me = shmemi.my_pe, bad = 0;

    for (int r = 1; r <= rounds; r++) {
        if ((me * 7 + r) % 13 == 0)
            usleep(50);
        __atomic_store_n(&entered[me], r, __ATOMIC_RELAXED);
        shmemi_team_sync(t, "test");
        for (int i = 0; i < t->n_pes; i++)
            bad |= __atomic_load_n(&entered[shmemi_team_world_pe(t, i)], __ATOMIC_RELAXED) < r;
        shmemi_team_sync(t, "test");
    }
    return bad;
}

/* The same through pSync, on all PEs but the first; pSync is as before at the end. */
static int meet_in_set(int rounds)
{
    int n = shmemi.n_pes, bad = 0;
    long *psync = (long *)shmemi.heap_base;
    struct shmemi_group g;

    if (shmemi.my_pe == 0)
        return 0;
    g = shmemi_set(1, 0, n - 1, psync, "test");
    for (int r = 1000; r < 1000 + rounds; r++) {
        __atomic_store_n(&entered[shmemi.my_pe], r, __ATOMIC_RELAXED);
        shmemi_set_sync(&g);
        for (int i = 1; i < n; i++)
            bad |= __atomic_load_n(&entered[i], __ATOMIC_RELAXED) < r;
        shmemi_set_sync(&g);
    }
    shmemi_team_sync(shmemi_team_get(SHMEM_TEAM_WORLD, "test"), "test");
    for (int i = 0; i < SHMEM_SYNC_SIZE; i++)
        bad |= psync[i] != SHMEM_SYNC_VALUE;
    return bad;
}

static int run_pe(int pe, int stride)
{
    struct shmemi_team *t;
    int n = shmemi.n_pes, bad;

    become(pe);
    bad = meet_often(shmemi_team_get(SHMEM_TEAM_WORLD, "test"), 50);
    if (stride && pe % stride == 0) {
        /* A slot that a team of all PEs gets next, with other numbers. */
        t = shmemi_team_at(3);
        shmemi_team_place(t, 0, stride, (n + stride - 1) / stride, pe / stride, 200);
        bad |= meet_often(t, 30);
    }
    shmemi_team_sync(shmemi_team_get(SHMEM_TEAM_WORLD, "test"), "test");
    t = shmemi_team_at(3);
    shmemi_team_retire(t);
    shmemi_team_place(t, n - 1, -1, n, n - 1 - pe, 300);
    bad |= meet_often(t, 30);
    bad |= meet_in_set(40);
    if (pe == 0)
        shmemi_team_sync(shmemi_team_get(SHMEM_TEAM_WORLD, "test"), "test");
    return bad;
}

static void run_all(int n, int n_cpus, int stride)
{
    int bad = 0, status;

    make_node(n, n_cpus);
    entered = mmap(NULL, sizeof(int) * MOST_PES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert(entered != MAP_FAILED);
    for (int i = 0; i < n; i++) {
        pid_t pid = fork();

        ck_assert_int_ge(pid, 0);
        if (pid == 0)
            _exit(run_pe(i, stride));
        ctls[i].pid = pid;
    }
    for (int i = 0; i < n; i++) {
        ck_assert_int_gt(wait(&status), 0);
        bad += status != 0;
    }
    ck_assert_int_eq(bad, 0);
}

START_TEST(flat_teams_meet)
{
    run_all(_i, 64, 2);
}
END_TEST

START_TEST(crowded_teams_meet_in_a_tree)
{
    run_all(_i, 1, 2);
}
END_TEST

START_TEST(two_level_tree_meets)
{
    run_all(MOST_PES, 1, 3);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("sync");
    TCase *t = tcase_create("teams");
    SRunner *r = srunner_create(s);
    int failed;

    tcase_set_timeout(t, 60);
    tcase_add_test(t, report_names_who_has_not_come_to_a_flat_team);
    tcase_add_test(t, report_names_who_has_not_come_to_a_tree_team);
    tcase_add_test(t, report_of_a_team_counts_in_world_numbers);
    tcase_add_loop_test(t, flat_teams_meet, 1, 6);
    tcase_add_loop_test(t, crowded_teams_meet_in_a_tree, 2, 6);
    tcase_add_test(t, two_level_tree_meets);
    suite_add_tcase(s, t);
    srunner_run_all(r, CK_NORMAL);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
