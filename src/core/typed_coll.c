/* SPDX-License-Identifier: BSD-3-Clause */
/* typed_coll.c - the collectives of every type and size (specification 1.6, section 9.10): shells only. */
#include "activeset.h"
#include "coll.h"

#include "shell.h"

#define BROADCAST(NAME, T, SIZE)                                                                           \
    SHMEMI_SHELL(int, NAME, (shmem_team_t team, T *dest, const T *source, size_t nelems, int PE_root),     \
                 shmemi_broadcast(team, dest, source, shmemi_mul(nelems, SIZE, call), PE_root, call);      \
                 return 0;)
#define COLLECT(NAME, OP, T, SIZE)                                                                         \
    SHMEMI_SHELL(int, NAME, (shmem_team_t team, T *dest, const T *source, size_t nelems),                  \
                 shmemi_##OP(team, dest, source, shmemi_mul(nelems, SIZE, call), call); return 0;)
#define ALLTOALL(NAME, T, SIZE)                                                                            \
    SHMEMI_SHELL(int, NAME, (shmem_team_t team, T *dest, const T *source, size_t nelems),                  \
                 shmemi_alltoalls(team, dest, source, 1, 1, nelems, SIZE, call); return 0;)
#define ALLTOALLS(NAME, T, SIZE)                                                                           \
    SHMEMI_SHELL(int, NAME,                                                                                \
                 (shmem_team_t team, T *dest, const T *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems), \
                 shmemi_alltoalls(team, dest, source, dst, sst, nelems, SIZE, call); return 0;)

#define TYPED(NAME, T)                                  \
    BROADCAST(NAME##_broadcast, T, sizeof(T))           \
    COLLECT(NAME##_collect, collect, T, sizeof(T))      \
    COLLECT(NAME##_fcollect, fcollect, T, sizeof(T))    \
    ALLTOALL(NAME##_alltoall, T, sizeof(T))             \
    ALLTOALLS(NAME##_alltoalls, T, sizeof(T))
SHMEMI_TYPES_RMA(TYPED)

BROADCAST(broadcastmem, void, 1)
COLLECT(collectmem, collect, void, 1)
COLLECT(fcollectmem, fcollect, void, 1)
ALLTOALL(alltoallmem, void, 1)
ALLTOALLS(alltoallsmem, void, 1)

/* ---- on active sets ---- */

#define SET_PARAMS int PE_start, int logPE_stride, int PE_size, long *pSync
#define SET shmemi_set(PE_start, logPE_stride, PE_size, pSync, call)

#define SIZED(BITS, SIZE)                                                                                      \
    SHMEMI_SHELL(void, broadcast##BITS, (void *dest, const void *source, size_t nelems, int PE_root, SET_PARAMS), \
                 const struct shmemi_group g = SET;                                                            \
                 shmemi_set_broadcast(&g, dest, source, shmemi_mul(nelems, SIZE, call), PE_root);)             \
    SHMEMI_SHELL(void, collect##BITS, (void *dest, const void *source, size_t nelems, SET_PARAMS),             \
                 const struct shmemi_group g = SET;                                                            \
                 shmemi_set_collect(&g, dest, source, shmemi_mul(nelems, SIZE, call));)                        \
    SHMEMI_SHELL(void, fcollect##BITS, (void *dest, const void *source, size_t nelems, SET_PARAMS),            \
                 const struct shmemi_group g = SET;                                                            \
                 shmemi_set_fcollect(&g, dest, source, shmemi_mul(nelems, SIZE, call));)                       \
    SHMEMI_SHELL(void, alltoall##BITS, (void *dest, const void *source, size_t nelems, SET_PARAMS),            \
                 const struct shmemi_group g = SET;                                                            \
                 shmemi_set_alltoalls(&g, dest, source, 1, 1, nelems, SIZE);)                                  \
    SHMEMI_SHELL(void, alltoalls##BITS,                                                                        \
                 (void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, SET_PARAMS),    \
                 const struct shmemi_group g = SET;                                                            \
                 shmemi_set_alltoalls(&g, dest, source, dst, sst, nelems, SIZE);)

SIZED(32, 4)
SIZED(64, 8)
