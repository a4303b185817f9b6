/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net_dev.c - the NIC's queues that device code posts to: a table by row (of a context) and world PE, connected when it is
 * asked for, since a kernel cannot; and the thread that looks whether one of them, or a kernel, has failed.
 *
 * For now device code that runs on the CPU (the SIMT executor of the tests): its device heap is a piece of the host heap,
 * which the slice's one registration covers.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "net.h"

#include "ctx.h"
#include "devmem.h"
#include "env.h"
#include "exit.h"
#include "log.h"
#include "shmem/device/state.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define ROWS 17 /* 0: the default context */
#define LOOK_NS 20000000 /* between looks at the queues and the report */

static struct {
    struct shmemi_nic_queue *queues; /* ROWS * n_pes, `stride` bytes apart */
    size_t stride, bytes;
    struct shmemi_dev_far *peers;
    char *area;
    struct shmemi_nic_key area_key;
    struct shmemi_dev_report *report;
    int rows;              /* that have queues */
    shmem_ctx_t of[ROWS];  /* the context of a row */
    bool private_row[ROWS];
    pthread_mutex_t lock;
    pthread_t watcher;
    uint32_t stop;
} it = { .lock = PTHREAD_MUTEX_INITIALIZER };

static struct shmemi_nic_queue *queue_at(size_t index)
{
    return (struct shmemi_nic_queue *)(void *)((char *)it.queues + index * it.stride);
}

static bool is_open(const struct shmemi_nic_queue *q)
{
    return q->sq.ring != NULL;
}

/* ---- errors ---- */

void shmemi_net_dev_failed(size_t index, uint64_t error, uint64_t addr, const char *call)
{
    struct shmemi_nic_error e = { .what = "unknown error", .advice = "", .operation = "operation" };
    int pe = (int)(index % (size_t)shmemi.n_pes);

    shmemi_exit_if_ending();
    shmemi_net_check_left(pe, call);
    shmemi_net.module->queue_error(queue_at(index), &e);
    shmemi_fatal(call, "in a kernel: %s to PE %d failed on %s port %d: %s (syndrome 0x%02x, vendor 0x%02x, opcode 0x%02x, "
                 "remote address %#llx, symmetric address %#llx); %s",
                 e.operation ? e.operation : "operation", pe, shmemi_net.nic->device, shmemi_net.nic->port, e.what,
                 e.syndrome, e.vendor_syndrome, (unsigned)(error >> 48) & 0xff, (unsigned long long)e.raddr,
                 (unsigned long long)addr, e.advice ? e.advice : "");
}

static void nap(long ns)
{
    struct timespec t = { .tv_nsec = ns };

    nanosleep(&t, NULL);
}

/* A kernel that waits for a flag does not look at its queues: this does. */
static void look_at_queues(void)
{
    size_t n = (size_t)SHMEMI_LD_ACQ(&it.rows) * (size_t)shmemi.n_pes; /* pairs with open_row */

    for (size_t i = 0; i < n; i++) {
        struct shmemi_sq *sq = &queue_at(i)->sq;

        if (!sq->ring || !shmemi_mlx5_cqe_is_error(SHMEMI_LD_ACQ(sq->cqe + SHMEMI_MLX5_CQE_LAST)))
            continue;
        nap(LOOK_NS * 2); /* the thread that polls it says more: its call and address */
        if (it.report)
            shmemi_devmem_look();
        shmemi_sq_poll(sq);
        shmemi_net_dev_failed(i, SHMEMI_LD_RLX(&sq->error), 0, "a kernel");
    }
}

static void *watch(void *arg)
{
    while (!SHMEMI_LD_RLX(&it.stop)) {
        if (it.report)
            shmemi_devmem_look();
        look_at_queues();
        nap(LOOK_NS);
    }
    return arg;
}

static int start_watching(void)
{
    sigset_t all, old;
    int rc;

    it.stop = 0;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    rc = pthread_create(&it.watcher, NULL, watch, NULL);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return -rc;
}

/* ---- queues ---- */

/* Only where kernels use them: atomics go to near PEs too. */
static bool wants_queue(const struct shmemi_dev_state *s, int pe)
{
    return shmemi_net.nic_atomics || !s->peers[pe].heap || !s->peers[pe].dheap;
}

static void close_row(int row)
{
    for (int pe = 0; pe < shmemi.n_pes; pe++) {
        struct shmemi_nic_queue *q = queue_at((size_t)row * (size_t)shmemi.n_pes + (size_t)pe);

        if (!is_open(q))
            continue;
        shmemi_net.module->queue_close(q);
        memset(q, 0, sizeof *q);
    }
}

static int open_row(const struct shmemi_dev_state *s, int row, shmem_ctx_t ctx, bool is_private)
{
    int rc = 0;

    for (int pe = 0; pe < shmemi.n_pes && !rc; pe++)
        if (wants_queue(s, pe))
            rc = shmemi_net.module->queue_open(shmemi_net.nic, pe, !is_private,
                                               queue_at((size_t)row * (size_t)shmemi.n_pes + (size_t)pe));
    if (rc) {
        close_row(row);
        return rc;
    }
    /* A private queue has a slot for results of its own, for good, as long as there are some. */
    for (int pe = 0; is_private && pe < shmemi.n_pes; pe++) {
        size_t slot = (size_t)(row - 1) * (size_t)shmemi.n_pes + (size_t)pe;
        uint64_t *word = (uint64_t *)(void *)(it.area + slot / 64 * 64);

        if (slot >= SHMEMI_DEV_CLAIM_WORDS / 2 * 64 || __atomic_fetch_or(word, 1ull << slot % 64, __ATOMIC_ACQUIRE) >> slot % 64 & 1)
            continue;
        queue_at((size_t)row * (size_t)shmemi.n_pes + (size_t)pe)->sq.user[0] =
            (uint64_t)(uintptr_t)it.area + SHMEMI_DEV_SLOTS_OFF + slot * SHMEMI_DEV_SLOT;
    }
    it.of[row] = ctx;
    it.private_row[row] = is_private;
    SHMEMI_ST_REL(&it.rows, row + 1);
    return 0;
}

/* ---- start ---- */

static int memory_up(void)
{
    it.stride = shmemi_round_up(sizeof(struct shmemi_nic_queue), 64);
    it.bytes = ROWS * (size_t)shmemi.n_pes * it.stride;
    it.queues = mmap(NULL, it.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    it.area = mmap(NULL, SHMEMI_DEV_AREA_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    it.peers = calloc((size_t)shmemi.n_pes, sizeof *it.peers);
    if (it.queues == MAP_FAILED || it.area == MAP_FAILED || !it.peers)
        return -ENOMEM;
    return shmemi_net.module->mem_register(shmemi_net.nic, it.area, SHMEMI_DEV_AREA_BYTES, &it.area_key);
}

static void memory_down(void)
{
    if (it.area_key.mr)
        shmemi_net.module->mem_deregister(shmemi_net.nic, &it.area_key);
    if (it.queues && it.queues != MAP_FAILED)
        munmap(it.queues, it.bytes);
    if (it.area && it.area != MAP_FAILED)
        munmap(it.area, SHMEMI_DEV_AREA_BYTES);
    free(it.peers);
    it.queues = NULL;
    it.area = NULL;
    it.peers = NULL;
    memset(&it.area_key, 0, sizeof it.area_key);
}

/* Where `base`, a piece of this PE's heap, lies at that PE; 0: it is no such piece. */
static uint64_t far_base(uint64_t base, int pe)
{
    return base - shmemi.heap_base < shmemi.heap_len ? base - shmemi.heap_base + shmemi_net.peers[pe].heap : 0;
}

static void fill(struct shmemi_dev_state *s)
{
    uint32_t lkey = shmemi_be32_of(shmemi_net.key.lkey).raw;

    for (int pe = 0; pe < shmemi.n_pes; pe++) {
        uint32_t rkey = shmemi_be32_of(shmemi_net.peers[pe].rkey).raw;

        it.peers[pe] = (struct shmemi_dev_far){ far_base(s->heap_base, pe), far_base(s->dheap_base, pe), rkey, rkey };
    }
    s->nic.peers = it.peers;
    s->nic.area = (uint64_t)(uintptr_t)it.area;
    s->nic.area_lkey = shmemi_be32_of(it.area_key.lkey).raw;
    s->nic.heap_lkey = s->nic.dheap_lkey = lkey;
    s->nic.stride = (uint32_t)it.stride;
    s->nic.message_max = (uint32_t)shmemi_net.message_max;
    s->nic.flags = SHMEMI_DEV_NIC_WATCHED | (shmemi_net.nic_atomics ? SHMEMI_DEV_NIC_ATOMICS : 0);
    s->nic.queues = (uint64_t)(uintptr_t)it.queues;
}

/* Why kernels cannot drive this NIC; NULL: they can. */
static const char *unfit(void)
{
    if (shmemi_net.nic->kind != SHMEMI_NIC_MLX5)
        return "device code drives mlx5 devices only (MARROW_TRANSPORT=ibgda)";
    if (!shmemi_net.nic->atomics_4)
        return "the device has no 4-byte and masked atomics";
    return shmemi.gpu_up ? "CUDA is up, and its kernels do not drive the NIC" : NULL;
}

static int bring_up(struct shmemi_dev_state *s)
{
    int rc = memory_up();

    if (!rc)
        rc = open_row(s, 0, SHMEM_CTX_DEFAULT, false);
    if (!rc) {
        fill(s);
        it.report = s->report;
        s->hang_ns = shmemi_devmem_watch_after();
        shmemi_devmem_watch_by(s->report);
        rc = start_watching();
    }
    if (!rc)
        return 0;
    if (it.queues && it.queues != MAP_FAILED)
        close_row(0);
    it.rows = 0;
    memory_down();
    memset(&s->nic, 0, sizeof s->nic);
    return rc;
}

SHMEMI_API(int, shmemx_device_nic, (struct shmemi_dev_state *state))
{
    const char *why;
    int rc;

    shmemi_check_init("shmemx_device_nic");
    if (!shmemi_net.up)
        return 0;
    why = unfit();
    if (why || it.queues) {
        shmemi_err("shmemx_device_nic", "%s", why ? why : "called before");
        return 1;
    }
    rc = bring_up(state);
    if (rc) {
        errno = -rc;
        shmemi_err("shmemx_device_nic", "no queues for device code: %m");
    }
    return rc != 0;
}

SHMEMI_API(unsigned, shmemx_device_nic_ctx, (struct shmemi_dev_state *state, shmem_ctx_t ctx))
{
    unsigned row = 0;
    long options;

    if (!it.queues || ctx == SHMEM_CTX_DEFAULT || ctx == SHMEM_CTX_INVALID)
        return 0;
    (void)shmemi_ctx_net(ctx, &options, "shmemx_device_nic_ctx");
    pthread_mutex_lock(&it.lock);
    for (int r = 1; r < it.rows; r++)
        if (it.of[r] == ctx)
            row = (unsigned)r;
    if (!row && it.rows < ROWS && !open_row(state, it.rows, ctx, options & SHMEM_CTX_PRIVATE))
        row = (unsigned)it.rows - 1;
    pthread_mutex_unlock(&it.lock);
    return row && it.private_row[row] ? row | SHMEMI_DEV_ROW_PRIVATE : row;
}

/* ---- end ---- */

/* What is still under way has got its chance: kernels have ended, and finalize's barrier is behind us. */
static void settle(struct shmemi_sq *sq, int turns)
{
    while (turns-- > 0 && SHMEMI_LD_RLX(&sq->done) < SHMEMI_LD_RLX(&sq->tail) && !shmemi_sq_poll(sq))
        nap(1000000);
}

void shmemi_net_dev_fini(void)
{
    if (!it.queues)
        return;
    SHMEMI_ST_RLX(&it.stop, 1u);
    pthread_join(it.watcher, NULL);
    for (int row = 0; row < it.rows; row++) {
        for (int pe = 0; pe < shmemi.n_pes; pe++) {
            struct shmemi_nic_queue *q = queue_at((size_t)row * (size_t)shmemi.n_pes + (size_t)pe);

            if (is_open(q))
                settle(&q->sq, 100);
        }
        close_row(row);
    }
    it.rows = 0;
    it.report = NULL;
    memory_down();
}
