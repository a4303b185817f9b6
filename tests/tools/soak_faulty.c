/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * soak_faulty.c - calls that go wrong now and then, between shmem-soak and the library (the profiling interface): shmem-soak
 * with them must notice.  SOAK_FAULT names the one that fails, every SOAK_EVERY times (20).
 */
#include <pshmem.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Is it this call's turn? */
static int fails(const char *name)
{
    static int calls, every;
    const char *fault = getenv("SOAK_FAULT"), *text = getenv("SOAK_EVERY");

    if (!fault || strcmp(fault, name))
        return 0;
    if (!every)
        every = text ? atoi(text) : 20;
    return ++calls % every == 0;
}

void shmem_ctx_putmem(shmem_ctx_t ctx, void *dest, const void *source, size_t nelems, int pe)
{
    if (!fails("lost_put"))
        pshmem_ctx_putmem(ctx, dest, source, nelems, pe);
}

void shmem_ctx_putmem_nbi(shmem_ctx_t ctx, void *dest, const void *source, size_t nelems, int pe)
{
    pshmem_ctx_putmem_nbi(ctx, dest, source, fails("short_put") ? nelems - 1 : nelems, pe);
}

void shmem_ctx_getmem(shmem_ctx_t ctx, void *dest, const void *source, size_t nelems, int pe)
{
    pshmem_ctx_getmem(ctx, dest, source, nelems, pe);
    if (fails("wrong_bit"))
        *((unsigned char *)dest + nelems / 2) ^= 4;
}

/* A get that comes after the quiet. */
void shmem_ctx_getmem_nbi(shmem_ctx_t ctx, void *dest, const void *source, size_t nelems, int pe)
{
    if (!fails("late_get"))
        pshmem_ctx_getmem_nbi(ctx, dest, source, nelems, pe);
    else
        memset(dest, 0xaa, nelems);
}

void shmem_ctx_iput32(shmem_ctx_t ctx, void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, int pe)
{
    pshmem_ctx_iput32(ctx, dest, source, fails("wrong_stride") && nelems > 1 ? dst + 1 : dst, sst, nelems, pe);
}

void shmem_ctx_uint64_atomic_add(shmem_ctx_t ctx, uint64_t *dest, uint64_t value, int pe)
{
    if (!fails("lost_add"))
        pshmem_ctx_uint64_atomic_add(ctx, dest, value, pe);
}

/* An increment that is a get and a put. */
uint64_t shmem_ctx_uint64_atomic_fetch_inc(shmem_ctx_t ctx, uint64_t *dest, int pe)
{
    uint64_t old;

    if (!fails("torn_inc"))
        return pshmem_ctx_uint64_atomic_fetch_inc(ctx, dest, pe);
    old = pshmem_ctx_uint64_atomic_fetch(ctx, dest, pe);
    usleep(20000);
    pshmem_ctx_uint64_atomic_set(ctx, dest, old + 1, pe);
    pshmem_ctx_quiet(ctx);
    return old;
}

uint64_t shmem_ctx_uint64_atomic_swap(shmem_ctx_t ctx, uint64_t *dest, uint64_t value, int pe)
{
    return pshmem_ctx_uint64_atomic_swap(ctx, dest, value, pe) + (uint64_t)fails("wrong_swap");
}

/* The signal overtakes the data, or there is none. */
void shmem_ctx_putmem_signal(shmem_ctx_t ctx, void *dest, const void *source, size_t nelems, uint64_t *sig, uint64_t signal, int op, int pe)
{
    if (fails("lost_signal")) {
        pshmem_ctx_putmem(ctx, dest, source, nelems, pe);
    } else if (fails("early_signal")) {
        pshmem_ctx_putmem_signal(ctx, dest, source, 0, sig, signal, op, pe);
        pshmem_ctx_quiet(ctx);
        usleep(50000);
        pshmem_ctx_putmem(ctx, dest, source, nelems, pe);
    } else {
        pshmem_ctx_putmem_signal(ctx, dest, source, nelems, sig, signal, op, pe);
    }
}

int shmem_long_sum_reduce(shmem_team_t team, long *dest, const long *source, size_t nreduce)
{
    int rc = pshmem_long_sum_reduce(team, dest, source, nreduce);

    if (nreduce && fails("wrong_sum"))
        dest[nreduce - 1]++;
    return rc;
}

int shmem_fcollectmem(shmem_team_t team, void *dest, const void *source, size_t nelems)
{
    int rc = pshmem_fcollectmem(team, dest, source, nelems);

    if (nelems && fails("wrong_collect"))
        *(unsigned char *)dest ^= 1;
    return rc;
}

void *shmem_calloc(size_t count, size_t size)
{
    unsigned char *p = pshmem_calloc(count, size);

    if (p && count == 1 && size > 100 && fails("dirty_calloc"))
        p[size - 1] = 1;
    return p;
}

/* Nobody is kept out. */
void shmem_set_lock(long *lock)
{
    if (!getenv("SOAK_FAULT") || strcmp(getenv("SOAK_FAULT"), "no_lock"))
        pshmem_set_lock(lock);
    else
        usleep(1000);
}

int shmem_test_lock(long *lock)
{
    return getenv("SOAK_FAULT") && !strcmp(getenv("SOAK_FAULT"), "no_lock") ? 0 : pshmem_test_lock(lock);
}

/* Time for another PE between the reading of what a lock guards and its writing. */
uint64_t shmem_uint64_g(const uint64_t *source, int pe)
{
    uint64_t value = pshmem_uint64_g(source, pe);

    if (getenv("SOAK_FAULT") && !strcmp(getenv("SOAK_FAULT"), "no_lock"))
        usleep(2000);
    return value;
}

void shmem_clear_lock(long *lock)
{
    if (!getenv("SOAK_FAULT") || strcmp(getenv("SOAK_FAULT"), "no_lock"))
        pshmem_clear_lock(lock);
    else
        pshmem_quiet();
}
