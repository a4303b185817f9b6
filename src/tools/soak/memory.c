/* SPDX-License-Identifier: BSD-3-Clause */
/* memory.c - regions of the host heap, of static data and of the device heap, their shadows, and what each thread has. */
#include "soak.h"

#include <errno.h>
#include <stdlib.h>

const char *const soak_region_names[SOAK_REGIONS] = { "heap", "static data", "device heap" };

static _Alignas(64) unsigned char static_region[SOAK_STATIC_BYTES];
static const unsigned char zeros[4096];

/* Largest slice, a multiple of 16, with which the region takes no more than `bytes`; 0: none. */
static uint32_t fitting_slice(size_t bytes)
{
    size_t writers = (size_t)soak.shape.n_pes * (size_t)soak.shape.threads, fixed, slice;

    fixed = writers * SOAK_WORDS * 16 + SOAK_CELLS * 8 + SOAK_LOCKS * 16;
    if (fixed >= bytes)
        return 0;
    slice = (bytes - fixed) / (writers + 1) / 16 * 16;
    if (slice > soak.shape.most)
        slice = soak.shape.most;
    return slice < 64 ? 0 : (uint32_t)slice;
}

static int region_open(int region, unsigned char *at)
{
    struct soak_layout *l = &soak.layout[region];

    soak.region[region] = at;
    soak.shape.regions |= 1u << region;
    soak.shadow[region] = calloc(1, l->end);
    if (!soak.shadow[region])
        return -1;
    for (size_t i = 0; i < l->end; i += sizeof zeros)
        soak_region_write(region, i, zeros, l->end - i < sizeof zeros ? l->end - i : sizeof zeros);
    return 0;
}

/* The regions' sizes; then their memory.  -ENODEV: no device memory, which was said. */
int soak_memory_open(void)
{
    unsigned char *at;
    size_t cells;

    for (int r = 0; r < SOAK_REGIONS; r++) {
        soak.shape.slice[r] = r == SOAK_STATIC ? fitting_slice(SOAK_STATIC_BYTES) : soak.shape.most;
        soak.shape.consts[r] = soak.shape.slice[r];
        soak.layout[r] = soak_layout_of(&soak.shape, r);
    }
    cells = (size_t)soak.n * SOAK_REGIONS * SOAK_TALLIES;
    soak.tally = calloc(cells, sizeof *soak.tally);
    soak.tally_sum[0] = shmem_calloc(cells, sizeof **soak.tally_sum);
    soak.tally_sum[1] = shmem_calloc(cells, sizeof **soak.tally_sum);
    soak.stop = shmem_calloc(1, sizeof *soak.stop);
    at = shmem_align(64, soak.layout[SOAK_HEAP].end);
    if (!soak.tally || !soak.tally_sum[0] || !soak.tally_sum[1] || !soak.stop || !at || region_open(SOAK_HEAP, at))
        return -1;
    if (soak.shape.slice[SOAK_STATIC] && region_open(SOAK_STATIC, static_region))
        return -1;
    if (soak.opt.device) {
        at = shmemx_align_device(256, soak.layout[SOAK_DEVICE].end);
        if (!at) {
            if (soak.me == 0)
                fprintf(stderr, "shmem-soak: --device: there is no device memory here, or too little of it for --size and "
                        "--threads; the library has said why\n");
            return -ENODEV;
        }
        if (region_open(SOAK_DEVICE, at))
            return -1;
    }
    soak_new_constants(soak.epoch);
    return 0;
}

void soak_memory_close(void)
{
    for (int r = 0; r < SOAK_REGIONS; r++)
        free(soak.shadow[r]);
    if (soak.region[SOAK_DEVICE])
        shmemx_free_device(soak.region[SOAK_DEVICE]);
    shmem_free(soak.region[SOAK_HEAP]);
    shmem_free(soak.stop);
    shmem_free(soak.tally_sum[1]);
    shmem_free(soak.tally_sum[0]);
    free(soak.tally);
}

static int mirror_open(struct soak_thread *t)
{
    t->mirror = calloc((size_t)soak.n * SOAK_REGIONS, sizeof *t->mirror);
    for (int i = 0; t->mirror && i < soak.n * SOAK_REGIONS; i++) {
        t->mirror[i] = calloc(1, soak.shape.slice[i % SOAK_REGIONS] + SOAK_WORDS * 16);
        if (!t->mirror[i])
            return -1;
    }
    return t->mirror ? 0 : -1;
}

/* Collective: the arenas are symmetric.  Device memory is there on all PEs or on none. */
int soak_thread_open(struct soak_thread *t, int id)
{
    size_t coll = soak.coll_most * (size_t)soak.n * 2 + 64;
    int device = soak.region[SOAK_DEVICE] != NULL;

    t->id = id;
    t->scratch = malloc(soak_planner_bytes(&soak.shape));
    t->work = malloc(soak.shape.most + 16 + coll);
    t->ring = calloc((size_t)soak.opt.ring, sizeof *t->ring);
    t->last_ticket = calloc((size_t)soak.n * SOAK_REGIONS * SOAK_TALLIES, sizeof *t->last_ticket);
    t->last_bits = calloc((size_t)soak.n, SOAK_REGIONS);
    t->arena[0] = malloc(soak.shape.arena);
    t->arena[1] = shmem_align(64, soak.shape.arena);
    if (!t->scratch || !t->work || !t->ring || !t->last_ticket || !t->last_bits || !t->arena[0] || !t->arena[1] || mirror_open(t))
        return -1;
    if (device)
        t->arena[2] = shmemx_malloc_device(soak.shape.arena);
    for (int where = 0; where < 1 + device; where++)
        for (int end = 0; end < 2; end++) {
            t->coll[where][end] = where ? shmemx_malloc_device(coll) : shmem_align(64, coll);
            if (!t->coll[where][end])
                return -1;
        }
    return device && !t->arena[2] ? -1 : 0;
}

void soak_thread_close(struct soak_thread *t)
{
    for (int end = 1; end >= 0; end--) {
        if (t->coll[1][end])
            shmemx_free_device(t->coll[1][end]);
        shmem_free(t->coll[0][end]);
    }
    if (t->arena[2])
        shmemx_free_device(t->arena[2]);
    shmem_free(t->arena[1]);
    free(t->arena[0]);
    for (int i = 0; i < soak.n * SOAK_REGIONS; i++)
        free(t->mirror[i]);
    free(t->mirror);
    free(t->last_bits);
    free(t->last_ticket);
    free(t->ring);
    t->ring = NULL;
    free(t->work);
    free(t->scratch);
}

/* This PE's memory.  The CPU cannot touch that of a device: the library copies. */
void soak_region_read(int region, size_t off, void *to, size_t len)
{
    if (region == SOAK_DEVICE)
        shmem_getmem(to, soak.region[region] + off, len, soak.me);
    else
        memcpy(to, soak.region[region] + off, len);
}

void soak_region_write(int region, size_t off, const void *from, size_t len)
{
    if (region == SOAK_DEVICE) {
        shmem_putmem(soak.region[region] + off, from, len, soak.me);
        shmem_quiet();
    } else {
        memcpy(soak.region[region] + off, from, len);
    }
}

void soak_new_constants(uint64_t epoch)
{
    soak.epoch = epoch;
    for (int r = 0; r < SOAK_REGIONS; r++) {
        if (!soak.region[r])
            continue;
        soak_fill(soak.shadow[r] + soak.layout[r].consts, soak_const_tag(&soak.shape, soak.me, r, epoch), 0, soak.shape.consts[r]);
        soak_region_write(r, soak.layout[r].consts, soak.shadow[r] + soak.layout[r].consts, soak.shape.consts[r]);
    }
}

void soak_local_read(struct soak_thread *t, size_t loc, void *to, size_t len)
{
    if (t->arena_now == 2)
        shmem_getmem(to, t->arena[2] + loc, len, soak.me);
    else
        memcpy(to, t->arena[t->arena_now] + loc, len);
}

void soak_local_write(struct soak_thread *t, size_t loc, const void *from, size_t len)
{
    if (t->arena_now == 2) {
        shmem_putmem(t->arena[2] + loc, from, len, soak.me);
        shmem_quiet();
    } else {
        memcpy(t->arena[t->arena_now] + loc, from, len);
    }
}

struct soak_view soak_shadow_view(int region, int writer)
{
    const struct soak_layout *l = &soak.layout[region];
    unsigned char *at = soak.shadow[region];

    return (struct soak_view){
        .slice = at + l->data + (size_t)writer * soak.shape.slice[region],
        .sig = at + l->sig + (size_t)writer * SOAK_WORDS * 8,
        .own = at + l->own + (size_t)writer * SOAK_WORDS * 8,
        .shared = at + l->shared,
        .held = at + l->held,
    };
}

struct soak_view soak_mirror_view(struct soak_thread *t, int pe, int region)
{
    unsigned char *at = t->mirror[pe * SOAK_REGIONS + region];
    size_t slice = soak.shape.slice[region];

    return (struct soak_view){ .slice = at, .sig = at + slice, .own = at + slice + SOAK_WORDS * 8 };
}
