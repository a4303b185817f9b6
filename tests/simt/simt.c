/* SPDX-License-Identifier: BSD-3-Clause */
/* Launches: the grid's memory, what a lane sees of itself, and the report when it does not end. */
#include "simt_priv.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LINES = 24 };

void __tsan_acquire(void *addr) __attribute__((weak));

static __thread struct lane *self;

struct lane *simt_self(void)
{
    return self;
}

void simt_set_self(struct lane *lane)
{
    self = lane;
}

const struct shmemi_simt_place *shmemi_simt_place(void)
{
    static const struct shmemi_simt_place alone = { 0, 1, 0, 1, 0 };

    return self ? &self->place : &alone;
}

uint64_t simt_now_ns(void)
{
    return shmemi_now_ns();
}

/* xorshift64*, which is never 0. */
uint64_t simt_random(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (*state * 0x2545f4914f6cdd1dull) >> 32;
}

/* ---- reports ---- */

static const char *where(const struct lane *lane, char *text, size_t len)
{
    static const char *const calls[] = { "active mask", "warp sync", "ballot", "shuffle", "match" };

    switch (lane->state) {
    case LANE_READY: return "runs or spins";
    case LANE_AT_ACTIVE: return "at an active mask call";
    case LANE_AT_BLOCK: return "at a block sync";
    case LANE_ENDED: return "has ended";
    default: break;
    }
    snprintf(text, len, "at a %s, mask 0x%08x", calls[lane->call], lane->mask);
    return text;
}

void simt_complain(struct launch *l, const char *what)
{
    char text[64], next[64];
    uint32_t lines = 0;

    fprintf(stderr, "simt: %s (%u blocks of %u threads, seed %llu)\n", what, l->grid.blocks, l->grid.threads,
            (unsigned long long)l->grid.seed);
    for (uint32_t i = 0, j; i < l->n && lines < MOST_LINES; i = j, lines++) {
        const char *at = where(&l->lanes[i], text, sizeof text);

        for (j = i + 1; j < l->n && l->lanes[j].block == l->lanes[i].block; j++)
            if (strcmp(at, where(&l->lanes[j], next, sizeof next)) != 0)
                break;
        fprintf(stderr, "simt:   block %u threads %u to %u: %s\n", l->lanes[i].place.block,
                l->lanes[i].place.thread, l->lanes[j - 1].place.thread, at);
    }
}

/* ---- the grid ---- */

static uint64_t number_from(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);

    return text && *text ? strtoull(text, NULL, 0) : otherwise;
}

enum simt_mode simt_mode(enum simt_mode wish)
{
    const char *mode = getenv("MARROW_SIMT_MODE");

    /* The sanitizer judges threads, not fibres. */
    return __tsan_acquire || (mode && strcmp(mode, "threads") == 0) ? SIMT_THREADS : wish;
}

static int settle(struct launch *l)
{
    struct simt_grid *g = &l->grid;

    if (g->blocks == 0 || g->threads == 0 || g->threads > 1024 || g->blocks > 65536 / g->threads) {
        fprintf(stderr, "simt: a grid of %u blocks of %u threads\n", g->blocks, g->threads);
        return -EINVAL;
    }
    if (!g->seed)
        g->seed = number_from("MARROW_SIMT_SEED", 1);
    if (!g->timeout_ms)
        g->timeout_ms = (uint32_t)number_from("MARROW_SIMT_TIMEOUT_MS", 60000);
    g->mode = simt_mode(g->mode);
    l->random = g->seed * 0x9e3779b97f4a7c15ull | 1;
    l->deadline_ns = simt_now_ns() + (uint64_t)g->timeout_ms * 1000000;
    l->n = l->live = g->blocks * g->threads;
    return 0;
}

static void lay_out(struct launch *l)
{
    uint32_t n_warps = (l->grid.threads + 31) / 32;

    for (uint32_t b = 0; b < l->grid.blocks; b++) {
        struct block *block = &l->blocks[b];

        block->n = block->live = l->grid.threads;
        block->lanes = &l->lanes[b * l->grid.threads];
        block->warps = calloc(n_warps, sizeof *block->warps);
        block->arena = aligned_alloc(64, ARENA_BYTES);
        if (!block->warps || !block->arena)
            abort();
        memset(block->arena, 0xa5, ARENA_BYTES); /* as undefined as on a GPU */
        for (uint32_t t = 0; t < block->n; t++) {
            struct lane *lane = &block->lanes[t];

            lane->place = (struct shmemi_simt_place){ t, block->n, b, l->grid.blocks, 1 };
            lane->launch = l;
            lane->block = block;
            lane->warp = &block->warps[t / 32];
            lane->warp->lane[t % 32] = lane;
            lane->warp->lanes |= 1u << t % 32;
            for (int i = 0; i < 3; i++)
                simt_random(&l->random);
            lane->random = l->random | 1;
        }
    }
}

int simt_launch(const struct simt_grid *grid, void (*kernel)(void *arg), void *arg)
{
    struct launch l = { .grid = *grid, .kernel = kernel, .arg = arg };
    int rc = settle(&l);

    if (rc)
        return rc;
    l.lanes = calloc(l.n, sizeof *l.lanes);
    l.ready = calloc(l.n, sizeof *l.ready);
    l.blocks = calloc(l.grid.blocks, sizeof *l.blocks);
    if (!l.lanes || !l.ready || !l.blocks)
        abort();
    lay_out(&l);
    rc = l.grid.mode == SIMT_THREADS ? simt_run_threads(&l) : simt_run_fibres(&l);
    for (uint32_t b = 0; b < l.grid.blocks; b++) {
        free(l.blocks[b].warps);
        free(l.blocks[b].arena);
    }
    free(l.blocks);
    free(l.ready);
    free(l.lanes);
    return rc;
}
