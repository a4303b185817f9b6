/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net_dheap.h - the device heaps as NICs know them.
 *
 * All that backs this PE's is one registration, from its start on.  When the heap has grown there is a new one, and the old one
 * stays: kernels that run meanwhile may have read its key.
 */
#ifndef SHMEMI_NET_DHEAP_H
#define SHMEMI_NET_DHEAP_H

#include "net.h"

/* What a PE tells of itself. */
struct shmemi_net_dheap {
    uint64_t base; /* 0: no NIC reaches it */
    uint32_t rkey;
    uint32_t good; /* the step that ends with the exchange has gone well there */
};

/* Registers memory of the GPU: as a dma-buf, else by its address.  Says nothing when it fails. */
int shmemi_net_register_near(uint64_t at, size_t bytes, struct shmemi_nic_key *key_out);

/* The first `len` bytes of this PE's device heap; does nothing where no NIC is open.  Fails with MARROW_STRICT only. */
int shmemi_net_dheap_register(size_t len);
/* The newest registration is not needed after all. */
void shmemi_net_dheap_withdraw(void);
/* All PEs of the job have taken a step, and tell each other their keys: true when it went well everywhere. */
bool shmemi_net_dheap_meet(bool good, int *bad_pe_out, const char *call);
void shmemi_net_dheap_down(void);

/* As of the last meeting. */
struct shmemi_net_dheap shmemi_net_dheap(int pe);
size_t shmemi_net_dheap_len(void); /* of each */
uint32_t shmemi_net_dheap_lkey(int rail); /* of the own one; 0: its NIC does not know it */

#endif
