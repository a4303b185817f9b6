/* SPDX-License-Identifier: BSD-3-Clause */
/* arena.c - memory for rings, completion entries and doorbell records, registered in large pieces. */
#include "ibgda.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { FIRST_PLACES = 4, MOST_PLACES = 64 };

/*
 * The only function that knows where queues live.  A child of fork gets no copy: it must not ring, and a copy would
 * take the pages away from the NIC when this process writes to them.
 */
static void *memory_get(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (p == MAP_FAILED)
        return NULL;
    if (madvise(p, bytes, MADV_DONTFORK)) {
        munmap(p, bytes);
        return NULL;
    }
    return p;
}

static void memory_put(void *p, size_t bytes)
{
    munmap(p, bytes);
}

void shmemi_ibgda_arena_open(struct shmemi_ibgda_arena *arena, size_t ring_bytes)
{
    memset(arena, 0, sizeof *arena);
    pthread_mutex_init(&arena->lock, NULL);
    arena->ring_bytes = ring_bytes;
}

static void piece_free(struct shmemi_ibgda_piece *piece)
{
    if (piece->umem)
        mlx5dv_devx_umem_dereg(piece->umem);
    if (piece->base)
        memory_put(piece->base, piece->bytes);
    free(piece);
}

/* Places in use are lost with it: the caller has destroyed their queues. */
void shmemi_ibgda_arena_close(struct shmemi_ibgda_arena *arena)
{
    while (arena->free) {
        struct shmemi_ibgda_place *place = arena->free;

        arena->free = place->next_free;
        free(place);
    }
    while (arena->pieces) {
        struct shmemi_ibgda_piece *piece = arena->pieces;

        arena->pieces = piece->next;
        piece_free(piece);
    }
    pthread_mutex_destroy(&arena->lock);
}

/* Rings and completion pages first, page by page; the records of all places together at the end. */
static int cut(struct shmemi_ibgda_arena *arena, struct shmemi_ibgda_piece *piece, unsigned places)
{
    size_t stride = arena->ring_bytes + SHMEMI_IBGDA_PAGE;

    for (unsigned i = places; i-- > 0;) {
        struct shmemi_ibgda_place *place = malloc(sizeof *place);

        if (!place)
            return arena->free ? 0 : -ENOMEM;
        place->piece = piece;
        place->ring = i * stride;
        place->cq = i * stride + arena->ring_bytes;
        place->records = places * stride + (size_t)i * SHMEMI_IBGDA_RECORDS;
        place->next_free = arena->free;
        arena->free = place;
    }
    return 0;
}

static int grow(struct shmemi_verbs_nic *nic, struct shmemi_ibgda_arena *arena)
{
    unsigned places = arena->places ? arena->places * 2 : FIRST_PLACES;
    struct shmemi_ibgda_piece *piece = calloc(1, sizeof *piece);
    char hint[320];
    size_t bytes;
    int status;

    if (places > MOST_PLACES)
        places = MOST_PLACES;
    bytes = places * (arena->ring_bytes + SHMEMI_IBGDA_PAGE) + (size_t)places * SHMEMI_IBGDA_RECORDS;
    bytes = (bytes + SHMEMI_IBGDA_PAGE - 1) / SHMEMI_IBGDA_PAGE * SHMEMI_IBGDA_PAGE;
    errno = ENOMEM;
    if (piece) {
        piece->bytes = bytes;
        piece->base = memory_get(bytes);
    }
    if (piece && piece->base)
        piece->umem = mlx5dv_devx_umem_reg(nic->ctx, piece->base, bytes, IBV_ACCESS_LOCAL_WRITE);
    if (!piece || !piece->umem) {
        status = errno ? -errno : -EIO;
        shmemi_verbs_log(nic->config, SHMEMI_VERBS_ERR, SHMEMI_VERBS_AT " refuses %zu bytes of memory for %u queues: %s%s",
                         SHMEMI_VERBS_AT_ARGS(nic), bytes, places, strerror(-status),
                         shmemi_verbs_memlock_hint(status, hint, sizeof hint));
        if (piece)
            piece_free(piece);
        return status;
    }
    status = cut(arena, piece, places);
    if (status) {
        piece_free(piece);
        return status;
    }
    piece->next = arena->pieces;
    arena->pieces = piece;
    arena->places = places;
    return 0;
}

int shmemi_ibgda_place_take(struct shmemi_verbs_nic *nic, struct shmemi_ibgda_place **out)
{
    struct shmemi_ibgda_arena *arena = &nic->ibgda->arena;
    struct shmemi_ibgda_place *place;
    int status = 0;

    pthread_mutex_lock(&arena->lock);
    if (!arena->free)
        status = grow(nic, arena);
    place = arena->free;
    if (!status)
        arena->free = place->next_free;
    pthread_mutex_unlock(&arena->lock);
    if (status)
        return status;
    memset(place->piece->base + place->ring, 0, arena->ring_bytes);
    memset(place->piece->base + place->cq, 0xff, SHMEMI_IBGDA_PAGE);
    memset(place->piece->base + place->records, 0, SHMEMI_IBGDA_RECORDS);
    *out = place;
    return 0;
}

void shmemi_ibgda_place_give(struct shmemi_ibgda_arena *arena, struct shmemi_ibgda_place *place)
{
    pthread_mutex_lock(&arena->lock);
    place->next_free = arena->free;
    arena->free = place;
    pthread_mutex_unlock(&arena->lock);
}
