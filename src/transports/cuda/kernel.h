/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * kernel.h - the kernels that the library itself launches: compiled into it where nvcc was found.
 *
 * Functions give 0, or -errno, whose cause shmemi_kernel_why() tells.
 */
#ifndef SHMEMI_KERNEL_H
#define SHMEMI_KERNEL_H

#include "kernel_args.h"

#include <stdbool.h>
#include <stddef.h>

/* Is there an image in this build, for which architectures? */
bool shmemi_kernels_built(const char **archs_out);
const char *shmemi_kernel_why(void);

/* Loads them, unless it has been tried.  At CUDA's start, since nothing can be loaded while a stream is being captured. */
int shmemi_kernels_load(void);
/* An atomic operation on a word of device memory here; waits for it.  old_out may be NULL. */
int shmemi_kernel_amo(int op, void *word, uint64_t value, uint64_t cond, uint64_t *old_out, size_t size);
/* Launches kernel `which` on the stream, which may be under capture. */
int shmemi_kernel_launch(enum shmemi_kernel which, const struct shmemi_kernel_args *args, unsigned blocks, unsigned threads,
                         void *stream);
/* A kernel of the program whose blocks wait for each other, here and on other PEs: refused unless all run at once. */
int shmemi_kernel_launch_together(void *function, const unsigned grid[3], const unsigned block[3], void **args, size_t shared,
                                  void *stream);
/* Most blocks of it that run at once. */
int shmemi_kernel_most_blocks(void *function, unsigned threads, size_t shared, int *blocks_out);
void shmemi_kernels_unload(void);

#endif
