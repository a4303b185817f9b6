/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hostmem.c - host memory that kernels may load and store: registered with the driver, which pins it.
 *
 * A range is registered in pieces as it grows, each as long as all before it: few pieces, and never more than
 * twice what is used.  A copy must not cross a piece's end, hence shmemi_gpu_piece().
 */
#include "gpu.h"

#include "core/compiler.h"
#include "core/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#define FIRST ((size_t)8 << 20)

struct range {
    uintptr_t base;
    size_t len;  /* registered from the base on */
    size_t room; /* that there is */
};

static struct {
    pthread_mutex_t lock;
    struct range *ranges;
    int n;
} it = { .lock = PTHREAD_MUTEX_INITIALIZER };

static struct range *range_of(uintptr_t base, size_t room)
{
    struct range *grown;

    for (int i = 0; i < it.n; i++)
        if (it.ranges[i].base == base)
            return &it.ranges[i];
    grown = realloc(it.ranges, (size_t)(it.n + 1) * sizeof *grown);
    if (!grown)
        return NULL;
    it.ranges = grown;
    grown[it.n] = (struct range){ .base = base, .room = room };
    return &grown[it.n++];
}

/* End of the piece that begins at `from`. */
static size_t piece_end(const struct range *r, size_t from)
{
    size_t end = from < FIRST ? FIRST : from * 2;

    return end < r->room ? end : r->room;
}

static int extend(struct range *r, size_t len)
{
    while (r->len < len && r->len < r->room) {
        size_t end = piece_end(r, r->len);
        int rc = shmemi_cu.host_register((void *)(r->base + r->len), end - r->len,
                                         SHMEMI_CU_REGISTER_PORTABLE | SHMEMI_CU_REGISTER_MAPPED);

        if (rc != SHMEMI_CU_OK && rc != SHMEMI_CU_HOST_ALREADY_REGISTERED)
            return shmemi_downgrade("cuda", "%zu bytes of host memory at %p cannot be registered (%s): kernels reach the "
                                    "host heap only up to there", end - r->len, (void *)(r->base + r->len),
                                    shmemi_cu_error(rc));
        r->len = end;
    }
    return 0;
}

int shmemi_gpu_register(uintptr_t base, size_t len, size_t room)
{
    struct range *r;
    int rc = -ENOMEM;

    if (!shmemi_gpu.registers || !shmemi_gpu_enter())
        return 0;
    pthread_mutex_lock(&it.lock);
    r = range_of(base, room);
    if (r)
        rc = extend(r, len);
    pthread_mutex_unlock(&it.lock);
    shmemi_gpu_leave();
    return rc;
}

void shmemi_gpu_unregister_all(void)
{
    for (int i = 0; i < it.n; i++) {
        const struct range *r = &it.ranges[i];

        for (size_t at = 0; at < r->len; at = piece_end(r, at))
            shmemi_cu.host_unregister((void *)(r->base + at));
    }
    free(it.ranges);
    it.ranges = NULL;
    it.n = 0;
}

size_t shmemi_gpu_piece(uintptr_t addr, size_t len)
{
    size_t result = len;

    pthread_mutex_lock(&it.lock);
    for (int i = 0; i < it.n; i++) {
        const struct range *r = &it.ranges[i];
        size_t at = 0, off = addr - r->base;

        if (addr < r->base || off >= r->len) {
            if (addr < r->base && r->len && len > r->base - addr)
                result = r->base - addr;
            continue;
        }
        while (piece_end(r, at) <= off)
            at = piece_end(r, at);
        if (len > piece_end(r, at) - off)
            result = piece_end(r, at) - off;
        break;
    }
    pthread_mutex_unlock(&it.lock);
    return result;
}
