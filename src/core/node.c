/* SPDX-License-Identifier: BSD-3-Clause */
/* node.c - exchanges cards and works out which PEs share this node. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "node.h"

#include "env.h"
#include "log.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CARD_MAGIC 0x4d525735u /* "MRW5": bump with any change of the card or the shared layout */

static void fill_cpus(struct shmemi_card *card)
{
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof set, &set)) {
        /* A machine of more CPUs than the set holds: as if this PE had one of its own. */
        CPU_ZERO(&set);
        CPU_SET(card->pid % CPU_SETSIZE, &set);
    }
    memcpy(card->cpus, &set, sizeof card->cpus);
}

/* Adds the PE's CPUs to those of its node and counts them: what tells crowded nodes from roomy ones, bound PEs or not. */
static int count_cpus(const struct shmemi_card *card, uint64_t all[SHMEMI_CPU_WORDS])
{
    int n = 0;

    for (int w = 0; w < SHMEMI_CPU_WORDS; w++) {
        all[w] |= card->cpus[w];
        n += __builtin_popcountll(all[w]);
    }
    return n;
}

static int fill_identity(struct shmemi_card *card)
{
    struct stat st;
    size_t len = strlen(shmemi_env.node);

    card->magic = CARD_MAGIC;
    card->pid = getpid();
    fill_cpus(card);
    card->pid_ns = stat("/proc/self/ns/pid", &st) ? 0 : (uint64_t)st.st_ino;
    if (len >= sizeof card->node) {
        shmemi_err("node", "MARROW_NODE is %zu bytes long: at most %zu", len, sizeof card->node - 1);
        return -EINVAL;
    }
    if (len)
        memcpy(card->node, shmemi_env.node, len + 1);
    else if (gethostname(card->node, sizeof card->node - 1))
        return -errno;
    return 0;
}

/* All PEs must agree on what the symmetric heap is. */
static int check_cards(const struct shmemi_card *cards)
{
    for (int pe = 1; pe < shmemi.boot.n_pes; pe++) {
        if (cards[pe].magic != cards[0].magic) {
            shmemi_err("node", "PE %d runs another version of the library than PE 0", pe);
            return -EPROTO;
        }
        if (cards[pe].heap_len != cards[0].heap_len) {
            shmemi_err("node", "SHMEM_SYMMETRIC_SIZE differs: %llu bytes on PE 0, %llu on PE %d",
                       (unsigned long long)cards[0].heap_len, (unsigned long long)cards[pe].heap_len, pe);
            return -EINVAL;
        }
    }
    return 0;
}

struct place {
    const char *node;
    int pe;
};

static int by_node_then_pe(const void *a_, const void *b_)
{
    const struct place *a = a_, *b = b_;
    int order = strcmp(a->node, b->node);

    return order ? order : a->pe - b->pe;
}

/* One node's PEs, `n` of them, ascending: all learn the node's lowest PE. */
static void take_node(const struct shmemi_card *cards, const struct place *places, int n)
{
    uint64_t cpus[SHMEMI_CPU_WORDS] = { 0 };
    bool mine = false;
    int n_cpus = 0;

    for (int i = 0; i < n; i++) {
        n_cpus = count_cpus(&cards[places[i].pe], cpus);
        shmemi.node_of[places[i].pe] = places[0].pe;
        mine |= places[i].pe == shmemi.boot.pe;
    }
    shmemi.crowded |= n > n_cpus;
    if (!mine)
        return;
    shmemi.n_cpus = n_cpus;
    shmemi.n_local = n;
    for (int i = 0; i < n; i++) {
        shmemi.local_pes[i] = places[i].pe;
        if (places[i].pe == shmemi.boot.pe)
            shmemi.my_local = i;
    }
}

/* Nodes are numbered by their lowest PEs, the same on all PEs. */
static int find_nodes(const struct shmemi_card *cards)
{
    int n = shmemi.boot.n_pes, next;
    struct place *places = malloc((size_t)n * sizeof *places);

    shmemi.local_pes = malloc((size_t)n * sizeof *shmemi.local_pes);
    shmemi.node_of = malloc((size_t)n * sizeof *shmemi.node_of);
    if (!places || !shmemi.local_pes || !shmemi.node_of) {
        free(places);
        return -ENOMEM;
    }
    for (int pe = 0; pe < n; pe++)
        places[pe] = (struct place){ cards[pe].node, pe };
    qsort(places, (size_t)n, sizeof *places, by_node_then_pe);
    shmemi.crowded = false;
    for (int first = 0; first < n; first = next) {
        for (next = first + 1; next < n && !strcmp(places[next].node, places[first].node); next++)
            ;
        take_node(cards, &places[first], next - first);
    }
    free(places);
    shmemi.n_nodes = 0;
    for (int pe = 0; pe < n; pe++) {
        int lowest = shmemi.node_of[pe];

        shmemi.node_of[pe] = lowest == pe ? shmemi.n_nodes++ : shmemi.node_of[lowest];
    }
    shmemi.gpu_wanted = false;
    for (int pe = 0; pe < n; pe++)
        shmemi.gpu_wanted |= cards[pe].wants_gpu != 0;
    return 0;
}

/* Addresses of another executable's variables mean nothing here: said for the first such PE. */
static int check_executables(const struct shmemi_card *cards)
{
    for (int i = 0; i < shmemi.n_local; i++) {
        int pe = shmemi.local_pes[i];

        if (!shmemi_same_data(&cards[pe], &cards[shmemi.boot.pe]))
            return shmemi_downgrade("node", "static variables of PE %d are not reachable from here: it runs another "
                                    "executable; the symmetric heap is", pe);
    }
    return 0;
}

int shmemi_node_discover(struct shmemi_card *mine, struct shmemi_card **cards_out)
{
    struct shmemi_card *cards = calloc((size_t)shmemi.boot.n_pes, sizeof *cards);
    int timeout_s = (int)((shmemi_env.init_timeout + 999999999u) / 1000000000u); /* 0 would be for ever */
    int rc;

    if (!cards)
        return -ENOMEM;
    rc = fill_identity(mine);
    if (!rc)
        rc = shmemi.boot.ops->allgather(&shmemi.boot, mine, sizeof *mine, cards, timeout_s);
    if (!rc)
        rc = check_cards(cards);
    if (!rc)
        rc = find_nodes(cards);
    if (!rc)
        rc = check_executables(cards);
    if (rc) {
        shmemi_node_forget();
        free(cards);
        return rc;
    }
    *cards_out = cards;
    return 0;
}

void shmemi_node_forget(void)
{
    free(shmemi.local_pes);
    free(shmemi.node_of);
    shmemi.local_pes = shmemi.node_of = NULL;
    shmemi.n_local = shmemi.n_nodes = 0;
}
