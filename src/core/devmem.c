/* SPDX-License-Identifier: BSD-3-Clause */
/* devmem.c - brings CUDA up on all PEs, and keeps what kernels know of the job up to date. */
#include "devmem.h"

#include "check.h"
#include "ctx.h"
#include "dev_map.h"
#include "env.h"
#include "heap.h"
#include "net_dheap.h"
#include "node.h"
#include "shmem/device/syncblk.h"
#include "team_slots.h"
#include "transports/cuda/gpu.h"
#include "transports/cuda/kernel.h"
#include "wait.h"

#include <shmemx.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CTX_ENTRIES 4096
#define FAR_TEAMS_BYTES ((size_t)32 << 20)
#define FAR_TEAMS_LEAST 16
#define FIXED_BYTES ((size_t)1 << 30) /* of a heap that cannot grow, unless the environment says */

/* Tables in device memory, in one allocation. */
struct tables {
    uint64_t at;
    uint64_t peers, teams, ctxs; /* addresses */
    size_t len;
};

static struct {
    bool tried, failed;
    bool kernels; /* the library's kernels are loaded on every PE of the node */
    char why[256];
    unsigned steps; /* votes so far, the same on every PE */
    struct tables tables;
    struct shmemi_dev_report *report;
    struct shmemi_dev_state state;
} it;

bool shmemi_devmem_wanted(void)
{
    if (shmemi_env.cuda >= 0)
        return shmemi_env.cuda > 0;
    return shmemi_gpu_image_any() || shmemi_gpu_has_context();
}

static struct shmemi_gpu_card *card_of(int pe)
{
    return &shmemi.peers[pe].ctl->gpu;
}

/* ---- agreement ---- */

/* Like the allocator's comparison (heap.c): one of two words by parity, since a PE cannot be two steps ahead. */
bool shmemi_devmem_agree(bool good, int *bad_pe_out, const char *call)
{
    unsigned slot = it.steps++ & 1;

    *bad_pe_out = -1;
    SHMEMI_ST_REL(&card_of(shmemi.my_pe)->vote[slot], (uint32_t)(good ? SHMEMI_GPU_READY : SHMEMI_GPU_FAILED));
    shmemi_barrier_all(call);
    for (int i = 0; i < shmemi.n_local && *bad_pe_out < 0; i++)
        if (SHMEMI_LD_ACQ(&card_of(shmemi.local_pes[i])->vote[slot]) != SHMEMI_GPU_READY)
            *bad_pe_out = shmemi.local_pes[i];
    if (shmemi_net.up)
        return shmemi_net_dheap_meet(*bad_pe_out < 0, bad_pe_out, call);
    return *bad_pe_out < 0;
}

/* ---- what kernels know ---- */

/* Of a team's place in the device heap; no team has more members than the world. */
static size_t slot_bytes(void)
{
    return shmemi_round_up(shmemi_sync_bytes((uint32_t)shmemi.n_pes), 4096);
}

/*
 * Teams that kernels may know, the first by slot.  A NIC registers the heap from its start on, so with one all their slots
 * are backed.
 */
static int teams_known(void)
{
    size_t fit = FAR_TEAMS_BYTES / slot_bytes();

    if (!shmemi_net.up || fit > SHMEMI_TEAMS_MAX)
        return SHMEMI_TEAMS_MAX;
    return fit < FAR_TEAMS_LEAST ? FAR_TEAMS_LEAST : (int)fit;
}

static size_t control_bytes(void)
{
    return shmemi_round_up((size_t)teams_known() * slot_bytes(), SHMEMI_GPU_GRANULE);
}

struct shmemi_dev_team shmemi_devmem_team_entry(const struct shmemi_team *t)
{
    return (struct shmemi_dev_team){
        .generation = t->slot < SHMEMI_TEAMS_PREDEFINED ? 0 : t->generation,
        .my_pe = t->my_pe,
        .n_pes = t->n_pes,
        .start = t->start,
        .stride = t->stride,
        .sync = (uint64_t)t->slot * slot_bytes(),
    };
}

/* The first teams are in the state itself too. */
static int write_team(int slot, const struct shmemi_dev_team *entry)
{
    if (slot < SHMEMI_DEV_NEAR_TEAMS) {
        it.state.near_teams[slot] = *entry;
        if (shmemi.gpu_up && shmemi_devmem_publish())
            return -EIO;
    }
    return shmemi_gpu_copy((void *)(uintptr_t)(it.tables.teams + (size_t)slot * sizeof *entry), entry, sizeof *entry, true);
}

void shmemi_devmem_ctx(shmem_ctx_t ctx, uint32_t generation, int start, int stride, int n_pes, long options)
{
    struct shmemi_dev_ctx entry = { generation, n_pes, start, stride, (uint32_t)options, 0 };
    size_t slot = ((uintptr_t)ctx & 0xffff) - 1;

    if (!shmemi.gpu_up || slot >= CTX_ENTRIES)
        return;
    if (generation)
        entry.row = shmemi_net_dev_ctx(&it.state, ctx, options);
    else
        shmemi_net_dev_ctx_gone(ctx);
    shmemi_gpu_copy((void *)(uintptr_t)(it.tables.ctxs + slot * sizeof entry), &entry, sizeof entry, true);
}

static size_t line(size_t bytes)
{
    return shmemi_round_up(bytes, 256);
}

static int tables_up(void)
{
    struct tables *t = &it.tables;
    size_t peers = line((size_t)shmemi.n_pes * sizeof(struct shmemi_dev_peer));
    size_t teams = line(SHMEMI_TEAMS_MAX * sizeof(struct shmemi_dev_team));
    int rc;

    t->len = peers + teams + line(CTX_ENTRIES * sizeof(struct shmemi_dev_ctx));
    if (!shmemi_gpu_enter())
        return -EIO;
    rc = shmemi_gpu_check(shmemi_cu.mem_alloc(&t->at, t->len), "no device memory for the library's tables");
    if (!rc)
        rc = shmemi_gpu_check(shmemi_cu.host_alloc((void **)&it.report, sizeof *it.report,
                                                   SHMEMI_CU_REGISTER_PORTABLE | SHMEMI_CU_REGISTER_MAPPED),
                              "no host memory that kernels may write to");
    shmemi_gpu_leave();
    if (rc)
        return rc;
    memset(it.report, 0, sizeof *it.report);
    t->peers = t->at;
    t->teams = t->peers + peers;
    t->ctxs = t->teams + teams;
    return shmemi_gpu_set((void *)(uintptr_t)t->at, 0, t->len);
}

static void tables_down(void)
{
    if (shmemi_gpu_enter()) {
        if (it.tables.at)
            shmemi_cu.mem_free(it.tables.at);
        if (it.report)
            shmemi_cu.host_free(it.report);
        shmemi_gpu_leave();
    }
    memset(&it.tables, 0, sizeof it.tables);
    it.report = NULL;
}

static int write_peers(void)
{
    size_t n = (size_t)shmemi.n_pes;
    struct shmemi_dev_peer *peers = calloc(n, sizeof *peers);
    int rc;

    if (!peers)
        return -ENOMEM;
    for (size_t i = 0; i < n; i++) {
        peers[i].heap = shmemi_gpu.registers ? shmemi.peers[i].heap : 0;
        peers[i].dheap = shmemi.peers[i].dheap;
        if (i < SHMEMI_DEV_NEAR)
            it.state.near[i] = peers[i];
    }
    rc = shmemi_gpu_copy((void *)(uintptr_t)it.tables.peers, peers, n * sizeof *peers, true);
    free(peers);
    return rc;
}

static void fill_state(void)
{
    struct shmemi_dev_state *s = &it.state;

    s->abi = SHMEMI_DEV_ABI;
    s->bytes = sizeof *s;
    s->my_pe = shmemi.my_pe;
    s->n_pes = shmemi.n_pes;
    s->check = shmemi_env.check > 0;
    s->heap_base = shmemi.heap_base;
    s->heap_len = shmemi_gpu.registers ? shmemi.heap_len : 0;
    s->dheap_base = shmemi.dheap_base;
    s->dheap_len = shmemi.dheap_len;
    s->peers = (struct shmemi_dev_peer *)(uintptr_t)it.tables.peers;
    s->teams = (struct shmemi_dev_team *)(uintptr_t)it.tables.teams;
    s->ctxs = (struct shmemi_dev_ctx *)(uintptr_t)it.tables.ctxs;
    s->n_teams = (uint32_t)teams_known();
    s->n_ctxs = CTX_ENTRIES;
    s->report = it.report;
    for (int i = 0; i < SHMEMI_DEV_NEAR_TEAMS; i++)
        s->meets[i] = shmemi_sync_meet_of(s, &s->near_teams[i]);
    s->hang_ns = shmemi_devmem_watch_after();
    s->timeout_ns = shmemi_env.timeout;
}

int shmemi_devmem_publish(void)
{
    fill_state();
    if (shmemi_net.up && shmemi_net_dev_peers(&it.state))
        return -EIO;
    return shmemi_gpu_image_fill(&it.state);
}

/* ---- teams ---- */

static int back_slot(int slot)
{
    size_t bytes = slot_bytes(), off = (size_t)slot * bytes;
    int rc = 0;

    /* One granule at a time: chunks must begin and end at the same offsets in all members. */
    for (size_t g = off & ~(SHMEMI_GPU_GRANULE - 1); g < off + bytes && !rc; g += SHMEMI_GPU_GRANULE)
        rc = shmemi_gpu_back(g, 1, false);
    if (!rc)
        rc = shmemi_gpu_set((void *)(shmemi.dheap_base + off), 0, bytes);
    return rc;
}

/* Writes the map of a team that spans nodes, and notes in the entry how its members meet. */
static int write_map(const struct shmemi_team *t, struct shmemi_dev_team *entry)
{
    uint32_t n = (uint32_t)t->n_pes;
    void *map;
    int rc;

    if (shmemi.n_nodes <= 1)
        return 0;
    map = malloc(shmemi_sync_map_bytes(n));
    rc = map ? shmemi_dev_map_fill(t, map) : -ENOMEM;
    if (rc > 0) {
        entry->far = (uint32_t)rc;
        rc = shmemi_gpu_copy((void *)(shmemi.dheap_base + entry->sync + shmemi_sync_map_off(n)), map, shmemi_sync_map_bytes(n),
                             true);
    }
    free(map);
    return rc;
}

/* Local index of the PE, which is of this node. */
static int local_of(int pe)
{
    for (int i = 0; i < shmemi.n_local; i++)
        if (shmemi.local_pes[i] == pe)
            return i;
    return -1;
}

static int import_slot(const struct shmemi_team *t)
{
    size_t bytes = slot_bytes();
    int rc = 0;

    for (int i = 0; i < t->n_pes && !rc; i++) {
        int pe = shmemi_team_world_pe(t, i), local = local_of(pe);

        if (local >= 0 && pe != shmemi.my_pe && shmemi.peers[pe].dheap)
            rc = shmemi_gpu_import(local, card_of(pe), (size_t)t->slot * bytes, bytes);
    }
    return rc;
}

void shmemi_devmem_team_up(struct shmemi_team *t, const char *call)
{
    struct shmemi_dev_team entry = shmemi_devmem_team_entry(t);
    int rc;

    if (!shmemi.gpu_up)
        return;
    if (t->slot >= teams_known()) {
        shmemi_warn(call, "kernels will not know this team: on several nodes they know the first %d", teams_known());
        return;
    }
    rc = back_slot(t->slot);
    if (rc)
        shmemi_fatal(call, "no device memory for the new team of %d PEs", t->n_pes);
    shmemi_team_sync(t, call); /* every member's memory is there, and zero */
    rc = import_slot(t);
    if (!rc)
        rc = write_map(t, &entry);
    if (!rc)
        rc = write_team(t->slot, &entry);
    if (rc)
        shmemi_fatal(call, "the new team of %d PEs cannot be made known to kernels", t->n_pes);
}

void shmemi_devmem_team_gone(int slot)
{
    const struct shmemi_dev_team none = { 0 };

    if (shmemi.gpu_up && slot < teams_known())
        write_team(slot, &none);
}

/* Teams that were made before CUDA came up. */
static int teams_back(void)
{
    int rc = 0;

    for (int slot = 0; slot < teams_known() && !rc; slot++)
        if (shmemi_team_live(slot))
            rc = back_slot(slot);
    return rc;
}

static int teams_write(void)
{
    int rc = 0;

    for (int slot = 0; slot < teams_known() && !rc; slot++) {
        const struct shmemi_team *t = shmemi_team_live(slot);
        struct shmemi_dev_team entry;

        if (!t)
            continue;
        entry = shmemi_devmem_team_entry(t);
        rc = import_slot(t);
        if (!rc)
            rc = write_map(t, &entry);
        if (!rc)
            rc = write_team(slot, &entry);
    }
    return rc;
}

/* ---- up ---- */

static struct shmemi_gpu_conf configuration(void)
{
    bool set = shmemi_env.device_heap != 0;
    struct shmemi_gpu_conf c = { .my_local = shmemi.my_local, .n_local = shmemi.n_local,
                                 .door_timeout_ns = shmemi_env.init_timeout };
    size_t control = control_bytes();

    c.max = control + shmemi_round_up(set ? shmemi_env.device_heap : (size_t)64 << 30, SHMEMI_GPU_GRANULE);
    c.fixed = control + (set ? shmemi_env.device_heap : FIXED_BYTES);
    return c;
}

/* Own part of coming up; what failed is in it.why. */
static int open_own(void)
{
    struct shmemi_gpu_card *mine = card_of(shmemi.my_pe);
    struct shmemi_gpu_conf conf = configuration();
    size_t control = control_bytes();
    int rc = shmemi_gpu_open(&conf, mine, it.why, sizeof it.why);

    if (rc)
        return rc;
    rc = shmemi_gpu_door_open(mine, conf.door_timeout_ns);
    if (!rc)
        rc = tables_up();
    if (!rc)
        rc = shmemi_devmem_alloc_init(control, shmemi_gpu.max);
    if (!rc) {
        shmemi.dheap_base = (uintptr_t)shmemi_gpu.base[shmemi.my_local];
        shmemi.dheap_len = shmemi_gpu.sharing == SHMEMI_GPU_IPC ? shmemi_gpu.max : control;
        if (shmemi_net.up)
            rc = shmemi_gpu_back(0, control, false);
    }
    if (!rc) {
        rc = teams_back();
    }
    return rc;
}

/* Where the peers' heaps are here, and which cannot be reached. */
static int meet_peers(void)
{
    int rc = 0;

    for (int i = 0; i < shmemi.n_local && !rc; i++) {
        int pe = shmemi.local_pes[i];
        bool atomics;

        if (pe != shmemi.my_pe && !shmemi_gpu_reaches(card_of(pe)->uuid, &atomics)) {
            rc = shmemi_downgrade("cuda", "the GPU of PE %d is not reachable from the one of this PE (no peer access): "
                                  "its device heap cannot be used from here", pe);
            continue;
        }
        if (pe != shmemi.my_pe && !atomics)
            rc = shmemi_downgrade("cuda", "the link to the GPU of PE %d has no atomics: atomic operations on its device "
                                  "heap from kernels here are not atomic with that PE's own", pe);
        if (!rc && shmemi_gpu.sharing == SHMEMI_GPU_IPC && pe != shmemi.my_pe)
            rc = shmemi_gpu_import(i, card_of(pe), 0, 1);
        shmemi.peers[pe].dheap = (uintptr_t)shmemi_gpu.base[i];
    }
    return rc;
}

static void close_own(void)
{
    shmemi.gpu_up = false;
    if (!shmemi_gpu.up)
        return;
    if (shmemi_net.up) {
        shmemi_net_dev_down();
        shmemi_net_dheap_down();
        memset(&it.state.nic, 0, sizeof it.state.nic);
    }
    shmemi_gpu_door_close();
    shmemi_devmem_alloc_fini();
    tables_down();
    shmemi_gpu_close();
    shmemi.dheap_base = 0;
    shmemi.dheap_len = 0;
    for (int i = 0; i < shmemi.n_local; i++)
        shmemi.peers[shmemi.local_pes[i]].dheap = 0;
}

static bool step(bool good, const char *call)
{
    int bad;

    if (shmemi_devmem_agree(good, &bad, call))
        return true;
    if (good)
        snprintf(it.why, sizeof it.why, "PE %d could not bring CUDA up", bad);
    return false;
}

bool shmemi_devmem_has_nic(void)
{
    return it.state.nic.queues != 0;
}

/* Kernels' way to PEs of other nodes. */
static int nic_up(void)
{
    if (!shmemi_net.up)
        return 0;
    fill_state();
    return shmemi_net_dev_up(&it.state, it.report);
}

static void bring_up(const char *call)
{
    struct shmemi_gpu_card *mine = card_of(shmemi.my_pe);
    bool good = open_own() == 0;
    int bad;

    mine->state = good ? SHMEMI_GPU_READY : SHMEMI_GPU_FAILED;
    good = step(good, call);
    if (good)
        good = step(meet_peers() == 0 && teams_write() == 0 && write_peers() == 0 &&
                    shmemi_net_dheap_register(shmemi.dheap_len) == 0, call);
    if (good) {
        shmemi_devmem_watch(it.report);
        good = step(nic_up() == 0 && shmemi_devmem_publish() == 0, call);
    }
    it.failed = !good;
    if (!good) {
        close_own();
        return;
    }
    /* Where they do not load, what needs them says why when it is called. */
    it.kernels = shmemi_devmem_agree(shmemi_kernels_load() == 0, &bad, call);
    shmemi.gpu_up = true;
    shmemi_devmem_host_heap(shmemi_heap_top());
    shmemi_ctxs_tell_kernels();
    if (shmemi.my_pe == 0)
        shmemi_info("cuda", "up: device %d of %d, compute capability %d.%d, device heaps of up to %zu bytes",
                    shmemi_gpu.device, shmemi_gpu.n_devices, shmemi_gpu.cc / 10, shmemi_gpu.cc % 10, shmemi_gpu.max);
}

void shmemi_devmem_host_heap(size_t end)
{
    for (int i = 0; shmemi.gpu_up && i < shmemi.n_local; i++)
        shmemi_gpu_register(shmemi.peers[shmemi.local_pes[i]].heap, end, shmemi.heap_len);
}

bool shmemi_devmem_kernels(void)
{
    return it.kernels;
}

bool shmemi_devmem_start(const char *call)
{
    if (!it.tried) {
        it.tried = true;
        bring_up(call);
    }
    return !it.failed;
}

int shmemi_devmem_init(void)
{
    it.tried = it.failed = it.kernels = false;
    it.steps = 0;
    it.why[0] = '\0';
    if (!shmemi.gpu_wanted)
        return 0;
    if (shmemi_devmem_start("shmem_init"))
        return 0;
    if (shmemi_env.cuda > 0) {
        shmemi_err("cuda", "MARROW_CUDA asks for CUDA: %s", it.why);
        return -ENODEV;
    }
    return shmemi_downgrade("cuda", "kernels of this program cannot communicate: %s", it.why);
}

const char *shmemi_devmem_why(void)
{
    return it.why;
}

SHMEMI_API(int, shmemx_module_init, (struct CUmod_st *module))
{
    int rc;

    shmemi_check_init("shmemx_module_init");
    if (!shmemi.gpu_up) {
        shmemi_warn("shmemx_module_init", "CUDA is not up: allocate device memory first, or set MARROW_CUDA=1");
        return 1;
    }
    rc = shmemi_gpu_image_add_module(module);
    if (rc == -ENOENT)
        shmemi_warn("shmemx_module_init", "the module does not use the library, or was compiled without SHMEMX_MODULE");
    else if (rc == -EPROTO)
        shmemi_warn("shmemx_module_init", "the module was compiled with another version of the library's headers");
    return rc != 0;
}

void shmemi_devmem_fini(void)
{
    const struct shmemi_dev_state none = { .abi = SHMEMI_DEV_ABI, .bytes = sizeof none };

    if (!shmemi.gpu_up)
        return;
    SHMEMI_ST_REL(&it.report->stop, 1u); /* kernels that still wait return */
    shmemi_gpu_flush();
    shmemi_gpu_image_fill(&none);
    close_own();
}
