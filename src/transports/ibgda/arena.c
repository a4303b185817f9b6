/* SPDX-License-Identifier: BSD-3-Clause */
/* arena.c - memory for rings, completion entries and doorbell records, registered in large pieces. */
#include "config.h"

#include "ibgda.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { FIRST_PLACES = 4, MOST_PLACES = 64 };

/*
 * Own memory.  A child of fork gets no copy: it must not ring, and a copy would take the pages away from the NIC when this
 * process writes to them.
 */
static void *own_get(size_t bytes)
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

void shmemi_ibgda_arena_open(struct shmemi_ibgda_arena *arena, size_t ring_bytes)
{
    memset(arena, 0, sizeof *arena);
    pthread_mutex_init(&arena->lock, NULL);
    arena->ring_bytes = ring_bytes;
}

static void piece_free(struct shmemi_ibgda_piece *piece)
{
    const struct shmemi_nic_memory *memory = piece->arena->memory;

    if (piece->umem)
        mlx5dv_devx_umem_dereg(piece->umem);
    if (piece->base && memory)
        memory->put(piece->base);
    else if (piece->base)
        munmap(piece->base, piece->bytes);
    free(piece);
}

/* Places in use are lost with it: the caller has destroyed their queues. */
static void empty(struct shmemi_ibgda_arena *arena)
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
    arena->places = 0;
}

void shmemi_ibgda_arena_close(struct shmemi_ibgda_arena *arena)
{
    empty(arena);
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

/* A device's memory by a dma-buf, or by its address, which a peer memory module of the kernel knows. */
static struct mlx5dv_devx_umem *umem_of(struct shmemi_verbs_nic *nic, const struct shmemi_nic_memory *memory, void *base,
                                        size_t bytes)
{
#if HAVE_DECL_MLX5DV_UMEM_MASK_DMABUF
    uint64_t offset = 0;
    int fd = memory && memory->export ? memory->export(base, bytes, &offset) : -1;
    struct mlx5dv_devx_umem_in in = { .addr = (void *)(uintptr_t)offset, .size = bytes, .access = IBV_ACCESS_LOCAL_WRITE,
                                      .pgsz_bitmap = UINT64_MAX & ~(uint64_t)(SHMEMI_IBGDA_PAGE - 1),
                                      .comp_mask = MLX5DV_UMEM_MASK_DMABUF, .dmabuf_fd = fd };
    struct mlx5dv_devx_umem *umem = fd >= 0 ? mlx5dv_devx_umem_reg_ex(nic->ctx, &in) : NULL;

    if (fd >= 0)
        close(fd);
    if (umem) {
        shmemi_verbs_log(nic->config, SHMEMI_VERBS_DEBUG, "queues in %s, registered as a dma-buf", memory->name);
        return umem;
    }
#endif
    if (memory)
        shmemi_verbs_log(nic->config, SHMEMI_VERBS_DEBUG, "queues in %s, registered by its address", memory->name);
    errno = 0;
    return mlx5dv_devx_umem_reg(nic->ctx, base, bytes, IBV_ACCESS_LOCAL_WRITE);
}

static int refused(struct shmemi_verbs_nic *nic, const struct shmemi_ibgda_arena *arena, size_t bytes, unsigned places)
{
    int status = errno ? -errno : -EIO, level = arena->memory ? SHMEMI_VERBS_DEBUG : SHMEMI_VERBS_ERR;
    char hint[320];

    shmemi_verbs_log(nic->config, level, SHMEMI_VERBS_AT " refuses %zu bytes of %s for %u queues: %s%s",
                     SHMEMI_VERBS_AT_ARGS(nic), bytes, arena->memory ? arena->memory->name : "memory", places,
                     strerror(-status), shmemi_verbs_memlock_hint(status, hint, sizeof hint));
    return status;
}

static int grow(struct shmemi_verbs_nic *nic, struct shmemi_ibgda_arena *arena)
{
    unsigned places = arena->places ? arena->places * 2 : FIRST_PLACES;
    struct shmemi_ibgda_piece *piece = calloc(1, sizeof *piece);
    size_t bytes;
    int status;

    if (!piece)
        return -ENOMEM;
    if (places > MOST_PLACES)
        places = MOST_PLACES;
    bytes = places * (arena->ring_bytes + SHMEMI_IBGDA_PAGE) + (size_t)places * SHMEMI_IBGDA_RECORDS;
    bytes = (bytes + SHMEMI_IBGDA_PAGE - 1) / SHMEMI_IBGDA_PAGE * SHMEMI_IBGDA_PAGE;
    piece->arena = arena;
    piece->bytes = bytes;
    errno = ENOMEM;
    piece->base = arena->memory ? arena->memory->get(bytes) : own_get(bytes);
    if (piece->base)
        piece->umem = umem_of(nic, arena->memory, piece->base, bytes);
    status = piece->umem ? cut(arena, piece, places) : refused(nic, arena, bytes, places);
    if (status) {
        piece_free(piece);
        return status;
    }
    piece->next = arena->pieces;
    arena->pieces = piece;
    arena->places = places;
    return 0;
}

/* Zero ring and records, and a completion entry that says nothing yet. */
static int clear(const struct shmemi_ibgda_place *place)
{
    const struct shmemi_nic_memory *m = place->piece->arena->memory;
    uint8_t *base = place->piece->base;
    size_t ring_bytes = place->piece->arena->ring_bytes;
    int status;

    if (m) {
        status = m->set(base + place->ring, 0, ring_bytes);
        if (!status)
            status = m->set(base + place->cq, 0xff, SHMEMI_IBGDA_PAGE);
        return status ? status : m->set(base + place->records, 0, SHMEMI_IBGDA_RECORDS);
    }
    memset(base + place->ring, 0, ring_bytes);
    memset(base + place->cq, 0xff, SHMEMI_IBGDA_PAGE);
    memset(base + place->records, 0, SHMEMI_IBGDA_RECORDS);
    return 0;
}

int shmemi_ibgda_place_take(struct shmemi_verbs_nic *nic, const struct shmemi_nic_memory *memory,
                            struct shmemi_ibgda_place **out)
{
    struct shmemi_ibgda_arena *arena = memory ? &nic->ibgda->device_arena : &nic->ibgda->arena;
    struct shmemi_ibgda_place *place = NULL;
    int status = 0;

    pthread_mutex_lock(&arena->lock);
    if (memory && !arena->in_use)
        arena->memory = memory;
    if (arena->memory != memory)
        status = -EBUSY;
    if (!status && !arena->free)
        status = grow(nic, arena);
    if (!status) {
        place = arena->free;
        arena->free = place->next_free;
        arena->in_use++;
    }
    pthread_mutex_unlock(&arena->lock);
    if (!status)
        status = clear(place);
    if (!status)
        *out = place;
    else if (place)
        shmemi_ibgda_place_give(place);
    return status;
}

void shmemi_ibgda_place_give(struct shmemi_ibgda_place *place)
{
    struct shmemi_ibgda_arena *arena = place->piece->arena;

    pthread_mutex_lock(&arena->lock);
    place->next_free = arena->free;
    arena->free = place;
    if (--arena->in_use == 0 && arena->memory)
        empty(arena); /* the device may go before the NIC does */
    pthread_mutex_unlock(&arena->lock);
}

int shmemi_ibgda_place_copy(const struct shmemi_ibgda_place *place, void *to, const void *from, size_t bytes)
{
    const struct shmemi_nic_memory *memory = place->piece->arena->memory;

    if (memory)
        return memory->copy(to, from, bytes);
    memcpy(to, from, bytes);
    return 0;
}
