/* SPDX-License-Identifier: BSD-3-Clause */
/* Access to registered memory for the engine: host memory directly, other memory through its operations. */
#ifndef SOFTHCA_MEM_MEM_H
#define SOFTHCA_MEM_MEM_H

#include "hca/hca.h"

/* All return 0 or -EIO. Bounds were checked by whoever made the span or buffer. */
int mem_read(struct hca_mem *mem, uint64_t off, void *dst, size_t len);
/* Naturally aligned 4 and 8 byte writes are one release store each: a peer that polls such a word never sees half. */
int mem_write(struct hca_mem *mem, uint64_t off, const void *src, size_t len);

/* An atomic on 4 or 8 bytes, operands in host order. */
struct mem_atomic {
    bool compare_swap;           /* else fetch-add */
    unsigned size;
    uint64_t swap_add, compare;
    uint64_t swap_mask, compare_mask; /* compare_swap: which bits are written and looked at */
    uint64_t boundary;           /* fetch-add: a carry does not leave a bit that is set here */
};
int mem_atomic(struct hca_mem *mem, uint64_t off, const struct mem_atomic *op, uint64_t *old_out);
/* The value that op stores when it finds old; false: compare failed, nothing is stored. */
bool mem_atomic_apply(const struct mem_atomic *op, uint64_t old, uint64_t *new_out);

/*
 * mem/cuda.c: whether addr lies in memory of a GPU that only the copy engine can reach. 1 yes (ops and priv are
 * filled), 0 no, -errno. Looks for libcuda only if the process has loaded it.
 */
int mem_cuda_attach(struct hca_mem *mem, uint64_t addr, uint64_t len);

#endif
