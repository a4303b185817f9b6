/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * onstream.h - the routines that a CUDA stream carries out; the typed ones are shells around these.
 *
 * Nothing here allocates, synchronises or waits (but for g), so that all of it can be captured into a CUDA graph.
 */
#ifndef SHMEMI_ONSTREAM_H
#define SHMEMI_ONSTREAM_H

#include "team.h"

#include <shmemx.h>

void shmemi_put_on(void *dest, const void *source, size_t len, int pe, struct CUstream_st *stream, const char *call);
void shmemi_get_on(void *dest, const void *source, size_t len, int pe, struct CUstream_st *stream, const char *call);
void shmemi_p_on(void *dest, const void *value, size_t size, int pe, struct CUstream_st *stream, const char *call);
/* Waits for the stream. */
void shmemi_g_on(void *value_out, const void *source, size_t size, int pe, struct CUstream_st *stream, const char *call);
/* Strides in elements. */
void shmemi_iput_on(void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, size_t elem, int pe,
                    struct CUstream_st *stream, const char *call);
void shmemi_iget_on(void *dest, const void *source, ptrdiff_t dst, ptrdiff_t sst, size_t nelems, size_t elem, int pe,
                    struct CUstream_st *stream, const char *call);
void shmemi_put_signal_on(void *dest, const void *source, size_t len, uint64_t *sig_addr, uint64_t signal, int sig_op, int pe,
                          struct CUstream_st *stream, const char *call);
/* kind: bytes of the word, negative for a signed type */
void shmemi_wait_on(int kind, const void *ivar, int cmp, uint64_t value, struct CUstream_st *stream, const char *call);

/* coll: enum shmemi_kernel_coll; len: bytes of one member's part. */
int shmemi_coll_on(int coll, shmem_team_t team, void *dest, const void *source, size_t len, int root,
                   struct CUstream_st *stream, const char *call);
/* kind, op: enum shmemi_kernel_red_kind, _op.  team_reduce_on: for a team that is there, and a kind that GPUs have. */
void shmemi_team_reduce_on(const struct shmemi_team *t, void *dest, const void *source, size_t len, int kind, int op,
                           struct CUstream_st *stream, const char *call);
int shmemi_reduce_on(shmem_team_t team, void *dest, const void *source, size_t nreduce, size_t elem, int kind, int op,
                     struct CUstream_st *stream, const char *call);

#endif
