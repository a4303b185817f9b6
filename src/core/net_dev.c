/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net_dev.c - the NIC's queues that device code posts to: a table by row (of a context) and world PE, connected when it is
 * asked for, since a kernel cannot; and the thread that looks whether one of them, or a kernel, has failed.  Where kernels
 * cannot drive the NIC, a row is a channel instead (net_chan.c).
 *
 * For kernels of a GPU the queues lie in its memory, or in pinned host memory, as do the table, the peers and the area for
 * results; the table here is a mirror, brought up to date when something is to be explained.  Device code that runs on
 * the CPU without a GPU (the SIMT executor of the tests) uses the mirror itself; its device heap is a piece of the host heap, which the
 * slice's one registration covers.
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
#include "net_chan.h"
#include "net_dheap.h"
#include "shmem/device/state.h"
#include "transports/cuda/gpu.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define CTX_ROWS 16u
#define TABLE_MAX ((size_t)256 << 20) /* bytes of the table; with very many PEs there are fewer rows for contexts */
#define LOOK_NS 20000000 /* between looks at the queues and the report */
#define LOOKS 64u        /* queues looked at in a turn, where a look is a copy */

/* In the mirror. */
struct mirrored {
    struct shmemi_nic_queue queue; /* first */
    uint64_t door_there; /* where kernels see its own page of doorbells; 0: it has none, or is not there */
};

struct row {
    shmem_ctx_t of; /* its context; NULL: it is free */
    bool is_private;
};

static struct {
    struct mirrored *queues; /* the mirror: rows * n_pes, `stride` bytes apart */
    size_t stride, bytes;
    unsigned spread, rows, max_rows; /* rows of the default context; with queues; that there is room for */
    struct row *row;
    const struct shmemi_nic_memory *memory; /* of the queues; NULL: device code on the CPU */
    char *table;                     /* what kernels see of the queues, `table_stride` bytes apart */
    size_t table_stride;
    struct shmemi_dev_far *peers, *peers_there; /* by world PE: here, and what kernels see */
    char *area;
    struct shmemi_nic_key area_key;
    struct {
        void *page;                  /* of the doorbells of queues with a record, NULL: none is on that rail, */
        uint64_t there;              /* and where kernels see it */
    } doors[SHMEMI_NIC_RAILS];
    char door_why[120];              /* a page that cannot be mapped: why */
    bool bare;                       /* MARROW_NO_DBR: queues without a doorbell record, on rails that can */
    bool short_of_pages[SHMEMI_NIC_RAILS]; /* that rail has no doorbell page left for such a queue */
    bool forbidden;                  /* MARROW_STRICT forbids what was met: no other way is to be tried */
    struct shmemi_dev_report *report, *looked; /* looked: by this file's thread */
    unsigned turn;
    bool proxy; /* kernels leave their requests to a thread: rows are channels */
    pthread_mutex_t lock;
    pthread_t watcher;
    uint32_t stop;
} it = { .lock = PTHREAD_MUTEX_INITIALIZER };

static struct shmemi_nic_queue *queue_at(size_t index)
{
    return (struct shmemi_nic_queue *)(void *)((char *)it.queues + index * it.stride);
}

static struct mirrored *mirror_of(struct shmemi_nic_queue *q)
{
    return (struct mirrored *)(void *)q;
}

static bool is_open(const struct shmemi_nic_queue *q)
{
    return q->sq.ring != NULL;
}

/* ---- memory that kernels see ---- */

static int move(void *to, const void *from, size_t bytes)
{
    if (it.memory)
        return it.memory->copy(to, from, bytes);
    if (to != from)
        memcpy(to, from, bytes);
    return 0;
}

static struct shmemi_sq *seen_at(size_t index)
{
    return (struct shmemi_sq *)(void *)(it.table + index * it.table_stride);
}

static uintptr_t page_bytes(void)
{
    return (uintptr_t)sysconf(_SC_PAGESIZE);
}

static void *door_of(const struct shmemi_nic_queue *q)
{
    return (void *)((uintptr_t)q->sq.doorbell & ~(page_bytes() - 1));
}

static int map_door(const struct shmemi_nic_queue *q, uint64_t *there_out)
{
    const char *how = "";
    int rc = shmemi_gpu_map_registers(door_of(q), page_bytes(), there_out, &how);

    if (rc)
        snprintf(it.door_why, sizeof it.door_why, "the doorbell page of %s cannot be mapped into the GPU (%s)", q->nic->device, how);
    else
        shmemi_debug("net", "%s doorbell page of %s is mapped into the GPU %s",
                     q->sq.flags & SHMEMI_SQ_NO_RECORD ? "a queue's own" : "the", q->nic->device, how);
    return rc;
}

/* Queues with a record share one page a rail, a queue without one has its own: where kernels see it. */
static int show_door(struct shmemi_nic_queue *q, uint64_t *there_out)
{
    int rail = q->nic->rail, rc = 0;

    if (q->sq.flags & SHMEMI_SQ_NO_RECORD) {
        if (!mirror_of(q)->door_there)
            rc = map_door(q, &mirror_of(q)->door_there);
        *there_out = mirror_of(q)->door_there;
        return rc;
    }
    if (!it.doors[rail].page) {
        rc = map_door(q, &it.doors[rail].there);
        it.doors[rail].page = rc ? NULL : door_of(q);
    }
    *there_out = it.doors[rail].there;
    return rc;
}

/* Gives kernels an open queue. */
static int publish(size_t index)
{
    struct shmemi_nic_queue *q = queue_at(index);
    struct shmemi_sq sq = q->sq;
    uint64_t there;
    int rc;

    if (!it.memory)
        return 0; /* they see the mirror */
    rc = show_door(q, &there);
    if (rc)
        return rc;
    sq.doorbell = (uint64_t *)(uintptr_t)(there + ((uintptr_t)sq.doorbell & (page_bytes() - 1)));
    return move(seen_at(index), &sq, sizeof sq);
}

/* Brings the mirror up to date. */
static int refresh(size_t index)
{
    uint64_t *doorbell = queue_at(index)->sq.doorbell;
    int rc = it.memory ? move(&queue_at(index)->sq, seen_at(index), sizeof(struct shmemi_sq)) : 0;

    if (!rc)
        queue_at(index)->sq.doorbell = doorbell;
    return rc;
}

/* ---- errors ---- */

void shmemi_net_dev_failed(size_t index, uint64_t error, uint64_t addr, const char *call)
{
    struct shmemi_nic_error e = { .what = "unknown error", .advice = "", .operation = "operation" };
    struct shmemi_sq *sq = &queue_at(index)->sq;
    int pe = (int)(index % (size_t)shmemi.n_pes);

    shmemi_exit_if_ending();
    shmemi_net_check_left(pe, call);
    (void)refresh(index); /* without it the kernel's word alone has to do */
    if (error)
        sq->error = error;
    shmemi_net.module->queue_error(queue_at(index), &e);
    if (it.report)
        SHMEMI_ST_REL(&it.report->stop, 1u);
    shmemi_fatal(call, "in a kernel: %s to PE %d failed on %s port %d: %s (syndrome 0x%02x, vendor 0x%02x, opcode 0x%02x, "
                 "remote address %#llx, symmetric address %#llx); %s",
                 e.operation ? e.operation : "operation", pe, queue_at(index)->nic->device, queue_at(index)->nic->port, e.what,
                 e.syndrome, e.vendor_syndrome, (unsigned)(sq->error >> 48) & 0xff, (unsigned long long)e.raddr,
                 (unsigned long long)addr, e.advice ? e.advice : "");
}

static void nap(long ns)
{
    struct timespec t = { .tv_nsec = ns };

    nanosleep(&t, NULL);
}

static bool has_failed(size_t index)
{
    const struct shmemi_sq *sq = &queue_at(index)->sq;
    uint32_t last = 0;

    if (!SHMEMI_LD_ACQ(&sq->ring))
        return false;
    if (!it.memory)
        return shmemi_mlx5_cqe_is_error(SHMEMI_LD_ACQ(sq->cqe + SHMEMI_MLX5_CQE_LAST));
    return !move(&last, sq->cqe + SHMEMI_MLX5_CQE_LAST, sizeof last) && shmemi_mlx5_cqe_is_error(last);
}

/* What a kernel would have found, had it polled. */
static uint64_t error_of(size_t index)
{
    struct shmemi_nic_queue *q = queue_at(index);
    uint32_t entry[16], *there;

    if (refresh(index) || move(entry, q->sq.cqe, sizeof entry))
        return 0;
    there = q->sq.cqe;
    q->sq.cqe = entry;
    shmemi_sq_poll(&q->sq);
    q->sq.cqe = there;
    return q->sq.error;
}

static void tell(size_t index)
{
    nap(LOOK_NS * 4); /* the thread that polls it says more: its call and address */
    if (it.looked)
        shmemi_devmem_look();
    else
        nap(LOOK_NS * 6); /* the report has a thread of its own */
    if (it.memory) {
        shmemi_net_dev_failed(index, error_of(index), 0, "a kernel");
    } else {
        shmemi_sq_poll(&queue_at(index)->sq);
        shmemi_net_dev_failed(index, SHMEMI_LD_RLX(&queue_at(index)->sq.error), 0, "a kernel");
    }
}

/* A kernel that waits for a flag does not look at its queues: this does. */
static void look_at_queues(void)
{
    size_t n = (size_t)SHMEMI_LD_ACQ(&it.rows) * (size_t)shmemi.n_pes; /* pairs with open_row */
    size_t looks = it.memory && n > LOOKS ? LOOKS : n;

    for (; looks > 0; looks--) {
        size_t i = it.turn++ % n;

        if (has_failed(i))
            tell(i);
    }
}

static void *watch(void *arg)
{
    if (it.memory)
        shmemi_gpu_beside_captures();
    while (!SHMEMI_LD_RLX(&it.stop)) {
        if (it.looked)
            shmemi_devmem_look();
        look_at_queues();
        for (int i = it.memory ? 10 : 1; i > 0 && !SHMEMI_LD_RLX(&it.stop); i--)
            nap(LOOK_NS);
    }
    return arg;
}

static int start_watching(void)
{
    sigset_t all, old;
    int rc;

    it.stop = 0;
    it.turn = 0;
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
    if (shmemi_net.nic_atomics)
        return true;
    if (it.memory)
        return !shmemi.peers[pe].heap || !shmemi.peers[pe].dheap;
    return !s->peers[pe].heap || !s->peers[pe].dheap;
}

static size_t index_of(unsigned row, int pe)
{
    return (size_t)row * (size_t)shmemi.n_pes + (size_t)pe;
}

static void close_row(unsigned row)
{
    for (int pe = 0; pe < shmemi.n_pes; pe++) {
        struct shmemi_nic_queue *q = queue_at(index_of(row, pe));

        if (!is_open(q))
            continue;
        if (mirror_of(q)->door_there)
            shmemi_gpu_unmap_registers(door_of(q));
        shmemi_net.module->queue_close(q);
        memset(mirror_of(q), 0, sizeof(struct mirrored));
    }
}

/* A private queue has a slot for results of its own, for good, as long as there are some: the first half of all. */
static void give_slot(struct shmemi_nic_queue *q, size_t slot)
{
    if (slot < SHMEMI_DEV_CLAIM_WORDS / 2 * 64)
        q->sq.user[0] = (uint64_t)(uintptr_t)it.area + SHMEMI_DEV_SLOTS_OFF + slot * SHMEMI_DEV_SLOT;
}

static uint64_t slot_of(size_t slot)
{
    return (uint64_t)(uintptr_t)it.area + SHMEMI_DEV_SLOTS_OFF + slot * SHMEMI_DEV_SLOT;
}

static bool wants_bare(void)
{
    return !strcasecmp(shmemi_env.no_dbr, "on");
}

/*
 * Each queue without a doorbell record takes a page of its own, and a device has some hundred to some thousand: queues beyond have
 * records as ever.  Said once a rail, unless MARROW_NO_DBR is auto.
 */
static int look_at_record(const struct shmemi_nic_queue *q)
{
    const struct shmemi_nic *rail = q->nic;

    if (!it.bare || rail->record_why || q->sq.flags & SHMEMI_SQ_NO_RECORD || it.short_of_pages[rail->rail])
        return 0;
    it.short_of_pages[rail->rail] = true;
    if (!wants_bare())
        return 0;
    it.forbidden = shmemi_downgrade("net", "%s port %d has no doorbell page left for a queue without a record (MARROW_NO_DBR=on): "
                                    "further queues of kernels have one; fewer contexts or a smaller MARROW_DEVICE_QPS need fewer "
                                    "pages", rail->device, rail->port) != 0;
    return it.forbidden ? -EOPNOTSUPP : 0;
}

static int open_row(const struct shmemi_dev_state *s, shmem_ctx_t ctx, bool is_private)
{
    unsigned row = it.rows;
    int rc = row < it.max_rows ? 0 : -ENOSPC, how = (is_private ? 0 : SHMEMI_NIC_SHARED) | (it.bare ? SHMEMI_NIC_NO_RECORD : 0);

    if (!rc && it.proxy)
        rc = shmemi_chan_open((int)row, is_private ? slot_of(row - it.spread) : 0);
    for (int pe = 0; pe < shmemi.n_pes && !rc && !it.proxy; pe++) {
        struct shmemi_nic_queue *q = queue_at(index_of(row, pe));

        if (!wants_queue(s, pe))
            continue;
        rc = shmemi_net.module->queue_open(shmemi_net.nic, pe, how, it.memory, q);
        if (!rc)
            rc = look_at_record(q);
        if (!rc && is_private)
            give_slot(q, index_of(row - it.spread, pe));
        if (!rc)
            rc = publish(index_of(row, pe));
    }
    if (rc) {
        if (row < it.max_rows)
            close_row(row);
        return rc;
    }
    it.row[row] = (struct row){ ctx, is_private };
    SHMEMI_ST_REL(&it.rows, row + 1);
    return 0;
}

/* ---- start ---- */

/* Memory that kernels and, with a key, the NIC reach; zero. */
static void *shared_get(size_t bytes)
{
    void *p;

    if (!it.memory) {
        p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        return p == MAP_FAILED ? NULL : p;
    }
    p = it.memory->get(bytes);
    if (p && it.memory->set(p, 0, bytes)) {
        it.memory->put(p);
        return NULL;
    }
    return p;
}

static void shared_put(void *p, size_t bytes)
{
    if (p && it.memory)
        it.memory->put(p);
    else if (p)
        munmap(p, bytes);
}

static int area_up(void)
{
    uint64_t claims[SHMEMI_DEV_CLAIM_WORDS * 8] = { 0 };
    int rc;

    for (int i = 0; i < SHMEMI_DEV_CLAIM_WORDS / 2; i++)
        claims[i * 8] = UINT64_MAX; /* what private queues get */
    it.area = shared_get(SHMEMI_DEV_AREA_BYTES);
    if (!it.area)
        return -ENOMEM;
    rc = move(it.area, claims, sizeof claims);
    if (rc)
        return rc;
    if (it.memory && it.memory->near)
        return shmemi_net_register_near((uintptr_t)it.area, SHMEMI_DEV_AREA_BYTES, &it.area_key);
    return shmemi_net.module->mem_register(shmemi_net.nic, it.area, SHMEMI_DEV_AREA_BYTES, &it.area_key);
}

static int memory_up(void)
{
    size_t n = (size_t)shmemi.n_pes, most = TABLE_MAX / sizeof(struct shmemi_sq) / n;

    it.stride = shmemi_round_up(sizeof(struct mirrored), 64);
    it.max_rows = most < it.spread + CTX_ROWS ? (unsigned)(most > it.spread ? most : it.spread) : it.spread + CTX_ROWS;
    it.bytes = it.max_rows * n * it.stride;
    it.queues = mmap(NULL, it.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    it.peers = calloc(n, sizeof *it.peers);
    it.row = calloc(it.max_rows, sizeof *it.row);
    if ((void *)it.queues == MAP_FAILED)
        it.queues = NULL;
    if (!it.queues || !it.peers || !it.row)
        return -ENOMEM;
    it.table_stride = it.memory ? sizeof(struct shmemi_sq) : it.stride;
    it.table = it.memory ? shared_get(it.max_rows * n * it.table_stride) : (char *)it.queues;
    it.peers_there = it.memory ? shared_get(n * sizeof *it.peers) : it.peers;
    return it.table && it.peers_there ? area_up() : -ENOMEM;
}

static void memory_down(void)
{
    if (it.area_key.mr[0])
        shmemi_net.module->mem_deregister(shmemi_net.nic, &it.area_key);
    if (it.memory) {
        shared_put(it.table, 0);
        shared_put(it.peers_there, 0);
    }
    shared_put(it.area, SHMEMI_DEV_AREA_BYTES);
    if (it.queues)
        munmap(it.queues, it.bytes);
    free(it.peers);
    free(it.row);
    it.queues = NULL;
    it.table = it.area = NULL;
    it.peers = it.peers_there = NULL;
    it.row = NULL;
    it.rows = 0;
    memset(&it.area_key, 0, sizeof it.area_key);
}

static void doors_down(void)
{
    for (int i = 0; i < SHMEMI_NIC_RAILS; i++) {
        if (it.doors[i].page)
            shmemi_gpu_unmap_registers(it.doors[i].page);
        it.doors[i].page = NULL;
    }
}

/* Where `base`, a piece of this PE's heap, lies at that PE; 0: it is no such piece. */
static uint64_t far_base(uint64_t base, int pe)
{
    return base - shmemi.heap_base < shmemi.heap_len ? base - shmemi.heap_base + shmemi_net.peers[pe].heap : 0;
}

/* Kernels that run meanwhile read either key: those of a smaller heap stay good. */
int shmemi_net_dev_peers(struct shmemi_dev_state *s)
{
    if (!it.queues)
        return 0;
    for (int pe = 0; pe < shmemi.n_pes; pe++) {
        uint32_t rkey = shmemi_be32_of(shmemi_net.peers[pe].rkey).raw;
        int rail = shmemi_net.module->rail_to(shmemi_net.nic, pe);
        struct shmemi_net_dheap d = { far_base(s->dheap_base, pe), shmemi_net.peers[pe].rkey, 0 };

        if (it.memory)
            d = shmemi_net_dheap(pe);
        it.peers[pe] = (struct shmemi_dev_far){ far_base(s->heap_base, pe), d.base, rkey, shmemi_be32_of(d.rkey).raw,
                                                .heap_lkey = shmemi_be32_of(shmemi_net.key.lkey[rail]).raw,
                                                .area_lkey = shmemi_be32_of(it.area_key.lkey[rail]).raw };
        it.peers[pe].dheap_lkey = it.memory ? shmemi_be32_of(shmemi_net_dheap_lkey(rail)).raw : it.peers[pe].heap_lkey;
    }
    return move(it.peers_there, it.peers, (size_t)shmemi.n_pes * sizeof *it.peers);
}

static int fill(struct shmemi_dev_state *s)
{
    int rc = shmemi_net_dev_peers(s);

    s->nic.peers = it.peers_there;
    s->nic.area = (uint64_t)(uintptr_t)it.area;
    s->nic.stride = (uint32_t)it.table_stride;
    s->nic.message_max = (uint32_t)shmemi_net.message_max;
    s->nic.flags = SHMEMI_DEV_NIC_WATCHED | (shmemi_net.nic_atomics ? SHMEMI_DEV_NIC_ATOMICS : 0);
    s->nic.spread = it.spread - 1;
    s->nic.queues = (uint64_t)(uintptr_t)it.table;
    return rc;
}

static const char *records_text(void)
{
    if (!it.bare || shmemi_net.nic->record_why)
        return "";
    return it.short_of_pages[0] ? ", some without doorbell records" : " without doorbell records";
}

/* Why kernels cannot drive this NIC; NULL: they can. */
static const char *unfit(void)
{
    if (shmemi_net.nic->kind != SHMEMI_NIC_MLX5)
        return "it is not driven as an mlx5 device";
    return shmemi_net.nic->atomics_4 ? NULL : "it has no 4-byte and masked atomics";
}

/* Says that kernels leave their requests to a thread, and why.  -EOPNOTSUPP: nobody has asked for that, and MARROW_STRICT. */
static int say_proxy(const char *why)
{
    it.proxy = true;
    it.spread = 1;
    if (shmemi_net.nic->config->want != SHMEMI_NIC_VERBS)
        return shmemi_downgrade("net", "kernels do not post to %s port %d themselves: %s; a thread of the CPU does it for them "
                                "(proxy), which takes some microseconds more for each operation", shmemi_net.nic->device,
                                shmemi_net.nic->port, why);
    shmemi_info("net", "kernels leave their requests to a thread of the CPU, which posts them to %s port %d "
                "(MARROW_TRANSPORT=proxy)", shmemi_net.nic->device, shmemi_net.nic->port);
    return 0;
}

/*
 * MARROW_NO_DBR: without a doorbell record a post saves its store, and in host memory a fence of 1.2 us.  Off unless asked for: it has
 * been seen to work on a virtual NIC alone, the two public programs that use it ring with different values (shmemi_sq_bell), and
 * a NIC that reads ours otherwise executes what is no entry.  On: a rail that cannot is said, and has records.
 */
static int want_bare(void)
{
    bool on = wants_bare();
    int rc = 0;

    it.bare = on || !strcasecmp(shmemi_env.no_dbr, "auto");
    for (int i = 0; on && i < shmemi_net.nic->n_rails && !rc; i++) {
        const struct shmemi_nic *rail = shmemi_net.nic->rails[i];

        if (rail->record_why)
            rc = shmemi_downgrade("net", "%s port %d has no queues without a doorbell record (MARROW_NO_DBR=on): %s; kernels post "
                                  "with records there (MARROW_NO_DBR=auto does the same and says nothing)", rail->device, rail->port,
                                  rail->record_why);
    }
    return rc;
}

/* Queues in that memory (NULL: device code on the CPU).  `why` says what was refused. */
static int bring_up(struct shmemi_dev_state *s, const struct shmemi_nic_memory *memory, char *why, size_t len)
{
    int rc;

    it.memory = memory;
    it.door_why[0] = '\0';
    snprintf(why, len, "%s cannot be shared with the NIC", memory ? memory->name : "memory");
    rc = memory_up();
    if (!rc && it.proxy)
        rc = shmemi_chan_start(it.report, s->report, (int)it.max_rows, memory);
    for (unsigned row = 0; row < it.spread && !rc; row++)
        rc = open_row(s, SHMEM_CTX_DEFAULT, false);
    if (it.door_why[0])
        snprintf(why, len, "%s", it.door_why);
    if (!rc)
        rc = fill(s);
    if (!rc && it.proxy)
        shmemi_chan_show(s);
    if (!rc)
        rc = start_watching();
    if (!rc)
        return 0;
    shmemi_chan_stop();
    for (unsigned row = 0; it.queues && row < it.rows; row++)
        close_row(row);
    doors_down();
    memory_down();
    it.memory = NULL;
    memset(&s->nic, 0, sizeof s->nic);
    return rc;
}

/*
 * Which way do this GPU's kernels take to PEs of other nodes?  Queues of their own, in GPU memory or else in host memory; or
 * none, and then the job goes on without.  Says which, and why not a better one.
 */
int shmemi_net_dev_up(struct shmemi_dev_state *s, struct shmemi_dev_report *report)
{
    const char *none = unfit();
    char why[160], why_near[160] = "";
    bool host = !strcasecmp(shmemi_env.ibgda_memory, "host");
    int rc;

    it.spread = (unsigned)shmemi_env.device_qps;
    it.report = report;
    if (none) {
        rc = say_proxy(none);
        return rc ? rc : bring_up(s, &shmemi_gpu_host_memory, why, sizeof why);
    }
    rc = want_bare();
    if (rc)
        return rc;
    rc = host ? -EOPNOTSUPP : bring_up(s, &shmemi_gpu_near_memory, why_near, sizeof why_near);
    if (rc && !it.forbidden) {
        rc = bring_up(s, &shmemi_gpu_host_memory, why, sizeof why);
        if (rc && !it.forbidden) {
            rc = say_proxy(why);
            return rc ? rc : bring_up(s, &shmemi_gpu_host_memory, why, sizeof why);
        }
        if (!rc && !host)
            rc = shmemi_downgrade("net", "%s: the queues that kernels post to lie in host memory, so each post crosses PCIe",
                                  why_near);
    }
    if (!rc && shmemi.my_pe == 0)
        shmemi_info("net", "kernels reach PEs of other nodes by ibgda: %s port %d, queues in %s%s, %u for each PE",
                    shmemi_net.nic->device, shmemi_net.nic->port, it.memory->name, records_text(), it.spread);
    return rc;
}

SHMEMI_API(int, shmemx_device_nic, (struct shmemi_dev_state *state))
{
    char text[160];
    const char *why;
    int rc;

    shmemi_check_init("shmemx_device_nic");
    if (!shmemi_net.up)
        return 0;
    why = it.queues ? "called before" : shmemi.gpu_up ? "CUDA is up: its kernels have queues of their own" : NULL;
    it.spread = why ? it.spread : (unsigned)shmemi_env.device_qps;
    if (why || (unfit() ? say_proxy(unfit()) : want_bare())) {
        shmemi_err("shmemx_device_nic", "%s", why ? why : "MARROW_STRICT forbids it");
        return 1;
    }
    it.report = it.looked = state->report;
    if (state->report) {
        state->hang_ns = shmemi_devmem_watch_after();
        shmemi_devmem_watch_by(state->report);
    }
    rc = bring_up(state, NULL, text, sizeof text);
    if (rc) {
        errno = -rc;
        shmemi_err("shmemx_device_nic", "no queues for device code: %m");
    }
    return rc != 0;
}

/* A row that its context has left, or a new one; 0: the default context's. */
static unsigned row_for(const struct shmemi_dev_state *s, shmem_ctx_t ctx, bool is_private)
{
    unsigned row = 0;

    for (unsigned r = it.spread; r < it.rows; r++)
        if (it.row[r].of == ctx)
            row = r;
    for (unsigned r = it.spread; r < it.rows && !row; r++)
        if (!it.row[r].of && it.row[r].is_private == is_private)
            row = r;
    if (!row && !open_row(s, ctx, is_private))
        row = it.rows - 1;
    if (row)
        it.row[row].of = ctx;
    return row && is_private ? row | SHMEMI_DEV_ROW_PRIVATE : row;
}

unsigned shmemi_net_dev_ctx(const struct shmemi_dev_state *s, shmem_ctx_t ctx, long options)
{
    unsigned row = 0;

    if (!it.queues || ctx == SHMEM_CTX_DEFAULT || ctx == SHMEM_CTX_INVALID)
        return 0;
    pthread_mutex_lock(&it.lock);
    row = row_for(s, ctx, options & SHMEM_CTX_PRIVATE);
    pthread_mutex_unlock(&it.lock);
    if (it.forbidden)
        shmemi_end_job(1); /* said already */
    return row & SHMEMI_DEV_ROW_PRIVATE && options & SHMEMI_CTX_IN_BATCH ? row | SHMEMI_DEV_ROW_BATCH : row;
}

void shmemi_net_dev_ctx_gone(shmem_ctx_t ctx)
{
    pthread_mutex_lock(&it.lock);
    for (unsigned r = it.spread; it.queues && r < it.rows; r++)
        if (it.row[r].of == ctx)
            it.row[r].of = NULL;
    pthread_mutex_unlock(&it.lock);
}

SHMEMI_API(unsigned, shmemx_device_nic_ctx, (struct shmemi_dev_state *state, shmem_ctx_t ctx))
{
    long options;

    if (!it.queues || ctx == SHMEM_CTX_DEFAULT || ctx == SHMEM_CTX_INVALID)
        return 0;
    (void)shmemi_ctx_net(ctx, &options, "shmemx_device_nic_ctx");
    return shmemi_net_dev_ctx(state, ctx, options);
}

/* ---- end ---- */

/* Everything that was posted is complete, or the queue has failed. */
static bool is_settled(size_t index)
{
    struct shmemi_nic_queue *q = queue_at(index);
    uint32_t last;

    if (!is_open(q))
        return true;
    if (!it.memory)
        return SHMEMI_LD_RLX(&q->sq.done) >= SHMEMI_LD_RLX(&q->sq.tail) || shmemi_sq_poll(&q->sq);
    if (refresh(index) || move(&last, q->sq.cqe + SHMEMI_MLX5_CQE_LAST, sizeof last))
        return true; /* the GPU answers no more */
    if (q->sq.done >= q->sq.tail || shmemi_mlx5_cqe_is_error(last))
        return true;
    return !shmemi_mlx5_cqe_opcode(last) && shmemi_sq_widen(q->sq.done, last) >= q->sq.tail;
}

/* What is still under way gets its chance: kernels have ended. */
void shmemi_net_dev_settle(void)
{
    int turns = 100;

    for (size_t i = 0; it.queues && i < index_of(it.rows, 0); i++)
        while (!is_settled(i) && turns-- > 0)
            nap(1000000);
}

void shmemi_net_dev_down(void)
{
    if (!it.queues)
        return;
    SHMEMI_ST_RLX(&it.stop, 1u);
    pthread_join(it.watcher, NULL);
    shmemi_chan_stop();
    shmemi_net_dev_settle();
    for (unsigned row = 0; row < it.rows; row++)
        close_row(row);
    doors_down();
    memory_down();
    memset(it.short_of_pages, 0, sizeof it.short_of_pages);
    it.memory = NULL;
    it.proxy = false;
    it.report = it.looked = NULL;
}
