/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * init.c - init and finalize as a list of stages, each with its undo (specification 1.6, section 9.1).
 *
 * A failure at stage k runs the undo of stages k-1 to 0.  Calls are counted: only the first init and the last finalize do
 * work, and the library can be brought up again afterwards.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "init.h"

#include "check.h"
#include "ctx.h"
#include "data.h"
#include "devmem.h"
#include "env.h"
#include "exit.h"
#include "heap.h"
#include "log.h"
#include "net.h"
#include "node.h"
#include "rma.h"
#include "team.h"
#include "transports/shm/shm.h"
#include "wait.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct shmemi_state shmemi = { .away = true };

#define MOST_SPIN 1000000000u /* a PE that spins does not look for dead peers */

static pthread_mutex_t init_lock = PTHREAD_MUTEX_INITIALIZER;
static struct shmemi_shm shm = { .fd = -1 };
static struct shmemi_card *cards; /* only during init */
static struct shmemi_shm_door door = { .fd = -1 };
static unsigned char job_secret[16]; /* PE 0's card has it */

static int boot_up(void)
{
    return shmemi_boot_open(&shmemi.boot, shmemi_env.bootstrap, (int)((shmemi_env.init_timeout + 999999999u) / 1000000000u));
}

static void boot_down(void)
{
    shmemi.boot.ops->close(&shmemi.boot);
    memset(&shmemi.boot, 0, sizeof shmemi.boot);
}

/* One PE speaks for all: their environments are alike. */
static int names_up(void)
{
    return shmemi.boot.pe == 0 ? shmemi_env_check_names() : 0;
}

static void names_down(void)
{
}

/* Machines without this much memory cannot mean it; the sum over PEs may exceed it, as untouched pages cost nothing. */
static int check_heap_size(size_t len)
{
    size_t have = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);

    if (len > have) {
        shmemi_err("init", "SHMEM_SYMMETRIC_SIZE asks for %zu bytes a PE: this machine has %zu bytes of memory", len, have);
        return -ENOMEM;
    }
    return 0;
}

static int cards_up(void)
{
    struct shmemi_card mine = { 0 };
    int rc = check_heap_size(shmemi_env.symmetric_size);

    if (rc)
        return rc;
    shmemi.heap_len = shmemi_round_up(shmemi_env.symmetric_size ? shmemi_env.symmetric_size : 1, SHMEMI_HEAP_UNIT);
    if (shmemi_env.static_data)
        shmemi_data_find(&shmemi.data_base, &shmemi.data_len);
    if (shmemi.boot.n_pes > 1) {
        rc = shmemi_shm_door_open(&door);
        if (rc)
            return rc;
        memcpy(mine.secret, door.secret, sizeof mine.secret);
        memcpy(mine.door, door.name, sizeof mine.door);
    }
    mine.wants_gpu = shmemi_devmem_wanted();
    mine.heap_len = shmemi.heap_len;
    mine.data_len = shmemi.data_len;
    mine.data_identity = shmemi_data_identity();
    rc = shmemi_node_discover(&mine, &cards);
    if (rc)
        shmemi_shm_door_close(&door);
    return rc;
}

static void cards_down(void)
{
    shmemi_node_forget();
    free(cards);
    cards = NULL;
    shmemi_shm_door_close(&door);
}

/* Longest static data of the node's PEs: they may run different executables. */
static size_t longest_data(void)
{
    size_t len = 0;

    for (int i = 0; i < shmemi.n_local; i++)
        if (cards[shmemi.local_pes[i]].data_len > len)
            len = (size_t)cards[shmemi.local_pes[i]].data_len;
    return len;
}

static int memory_up(void)
{
    const struct shmemi_card *leader = &cards[shmemi.local_pes[0]];
    int rc = shmemi_shm_layout(&shm, shmemi.n_local, sizeof(struct shmemi_pe_ctl),
                               (size_t)SHMEMI_TEAMS_MAX * SHMEMI_TEAM_BLOCK_BYTES, longest_data(), shmemi.heap_len);

    if (rc) {
        shmemi_err("init", "%d heaps of %zu bytes exceed the address space", shmemi.n_local, shmemi.heap_len);
        return rc;
    }
    if (shmemi.my_local == 0)
        rc = shmemi_shm_lead(&shm, &door, shmemi.n_local - 1, shmemi_env.init_timeout);
    else
        rc = shmemi_shm_join(&shm, leader->door, leader->secret, shmemi_env.init_timeout);
    shmemi_shm_door_close(&door);
    if (!rc)
        rc = shmemi_shm_map(&shm, shmemi.my_local);
    if (rc)
        shmemi_shm_close(&shm);
    return rc;
}

static void memory_down(void)
{
    shmemi_shm_close(&shm);
}

static char *slice_of(int local)
{
    return shm.base + shm.header + (size_t)local * shm.slice;
}

static int peers_up(void)
{
    struct shmemi_pe_ctl *ctl;

    shmemi.peers = calloc((size_t)shmemi.boot.n_pes, sizeof *shmemi.peers);
    if (!shmemi.peers)
        return -ENOMEM;
    for (int i = 0; i < shmemi.n_local; i++) {
        int pe = shmemi.local_pes[i];
        struct shmemi_peer *p = &shmemi.peers[pe];

        p->ctl = (struct shmemi_pe_ctl *)slice_of(i);
        p->team_blocks = slice_of(i) + shm.off_team_blocks;
        p->heap = (uintptr_t)slice_of(i) + shm.off_heap;
        if (shmemi_same_data(&cards[pe], &cards[shmemi.boot.pe]))
            p->data = (uintptr_t)slice_of(i) + shm.off_data;
    }
    shmemi.amo_peers = shmemi.peers;
    shmemi.node = (struct shmemi_node_hdr *)shm.base;
    shmemi.heap_base = shmemi.peers[shmemi.boot.pe].heap;
    ctl = shmemi.my_ctl = shmemi.peers[shmemi.boot.pe].ctl;
    ctl->pid = cards[shmemi.boot.pe].pid;
    ctl->pid_ns = cards[shmemi.boot.pe].pid_ns;
    memcpy(job_secret, cards[0].secret, sizeof job_secret);
    free(cards);
    cards = NULL;
    SHMEMI_ST_REL(&ctl->phase, SHMEMI_PE_RUNNING);
    return 0;
}

static void peers_down(void)
{
    free(shmemi.peers);
    shmemi.peers = shmemi.amo_peers = NULL;
    shmemi.my_ctl = NULL;
    shmemi.node = NULL;
    shmemi.heap_base = 0;
    shmemi.heap_len = 0;
}

static int data_up(void)
{
    if (!shmemi.data_len)
        return 0;
    return shmemi_data_share(shmemi.data_base, shmemi.data_len, shm.fd,
                             (off_t)(slice_of(shmemi.my_local) + shm.off_data - shm.base));
}

static void data_down(void)
{
    shmemi_data_unshare();
    shmemi.data_base = 0;
    shmemi.data_len = 0;
}

/*
 * Polls before the first yield.  A PE that has a CPU to itself may spin for some microseconds; where PEs
 * share CPUs every poll is time that the awaited PE does not get.
 */
static unsigned choose_spin(void)
{
    if (shmemi_env.spin >= 0)
        return shmemi_env.spin < MOST_SPIN ? (unsigned)shmemi_env.spin : MOST_SPIN;
    return shmemi.n_local > shmemi.n_cpus ? 1 : 4000;
}

static int go_up(void)
{
    shmemi.check_blocks = shmemi_env.check > 0;
    shmemi.spin_limit = choose_spin();
    shmemi.my_pe = shmemi.boot.pe;
    shmemi.n_pes = shmemi.boot.n_pes;
    shmemi.away = false;
    return 0;
}

static void go_down(void)
{
    shmemi.away = true;
    shmemi.n_pes = 0;
    shmemi.my_pe = -1;
}

static int net_up(void)
{
    struct shmemi_net_start start = { .slice = slice_of(shmemi.my_local), .slice_len = shm.slice };

    memcpy(start.secret, job_secret, sizeof start.secret);
    return shmemi_net_init(&start);
}

static const struct stage {
    const char *name;
    int (*up)(void);
    void (*down)(void);
} stages[] = {
    { "bootstrap", boot_up, boot_down },
    { "environment", names_up, names_down },
    { "cards", cards_up, cards_down },
    { "shared memory", memory_up, memory_down },
    { "peers", peers_up, peers_down },
    { "static data", data_up, data_down },
    { "go", go_up, go_down },
    { "network", net_up, shmemi_net_fini },
    { "heap", shmemi_heap_init, shmemi_heap_fini },
    { "teams", shmemi_teams_init, shmemi_teams_fini },
    { "contexts", shmemi_ctxs_init, shmemi_ctxs_fini },
    { "CUDA", shmemi_devmem_init, shmemi_devmem_fini },
    { "exit watch", shmemi_exit_watch, shmemi_exit_unwatch },
};

#define N_STAGES ((int)(sizeof stages / sizeof stages[0]))

static void run_down(int from)
{
    for (int i = from; i >= 0; i--)
        stages[i].down();
}

static int run_up(void)
{
    for (int i = 0; i < N_STAGES; i++) {
        int rc = stages[i].up();

        shmemi_debug("init", "%s: %s", stages[i].name, rc ? "failed" : "up");
        if (rc) {
            errno = -rc;
            shmemi_err("init", "initialisation fails at \"%s\": %m", stages[i].name);
            run_down(i - 1);
            return rc;
        }
    }
    return 0;
}

/* In the place of a closed standard descriptor, one of ours would take what the program prints: into the heaps. */
static void fill_standard_descriptors(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) < 0)
            return;
}

static void greet(void)
{
    if (shmemi.my_pe != 0)
        return;
    if (shmemi_env.version || shmemi_env.info)
        printf("%s (OpenSHMEM %d.%d)\n", SHMEM_VENDOR_STRING, SHMEM_MAJOR_VERSION, SHMEM_MINOR_VERSION);
    if (shmemi_env.info)
        shmemi_env_print(stdout);
    fflush(stdout);
}

int shmemi_init(int thread_level, const char *call)
{
    int rc = 0;

    pthread_mutex_lock(&init_lock);
    if (shmemi.init_count == 0) {
        fill_standard_descriptors();
        rc = shmemi_env_parse();
        shmemi.thread_level = thread_level; /* queues are opened for it */
        if (!rc)
            rc = run_up();
        if (!rc) {
            greet();
            shmemi_barrier_all(call);
        }
    } else if (thread_level > shmemi.thread_level) {
        shmemi.thread_level = thread_level; /* every level is supported */
        shmemi_net_level_raised();
    }
    if (!rc)
        shmemi.init_count++;
    pthread_mutex_unlock(&init_lock);
    return rc;
}

void shmemi_finalize(const char *call)
{
    shmemi_check_init(call);
    if (shmemi_exit_in_handlers())
        return; /* the others are not about to finalize */
    if (shmemi_exit_is_child()) {
        shmemi_warn(call, "ignored in process %d, which a PE has forked: leave it by _exit", (int)getpid());
        return;
    }
    pthread_mutex_lock(&init_lock);
    if (shmemi_net.up) {
        shmemi_net_quiet_all(call);
        shmemi_net_dev_settle();
    }
    shmemi_quiet(SHMEM_CTX_DEFAULT, call);
    shmemi_barrier_all(call);
    if (--shmemi.init_count == 0) {
        SHMEMI_ST_REL(&shmemi.my_ctl->phase, SHMEMI_PE_FINALIZED);
        /* A second barrier: nobody unmaps or leaves while a peer may still read this PE's phase or slots. */
        shmemi_barrier_all(call);
        run_down(N_STAGES - 1);
        shmemi.finalized_once = true;
    }
    pthread_mutex_unlock(&init_lock);
}
