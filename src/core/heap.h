/* SPDX-License-Identifier: BSD-3-Clause */
/* heap.h - the symmetric heap of this PE: allocation calls over alloc.h. */
#ifndef SHMEMI_HEAP_H
#define SHMEMI_HEAP_H

#include <stddef.h>

int shmemi_heap_init(void);
void shmemi_heap_fini(void);

/* Where the last block ended when the heap was fullest, as an offset. */
size_t shmemi_heap_top(void);

/* The live block that holds heap offset `off`; takes the heap's lock.  -ENOENT in free space. */
int shmemi_heap_find(size_t off, size_t *start_out, size_t *size_out);

#endif
