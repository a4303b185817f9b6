/* SPDX-License-Identifier: BSD-3-Clause */
/* net_chan.h - the thread that posts for kernels where they cannot drive the NIC themselves (shmem/device/channel.h). */
#ifndef SHMEMI_NET_CHAN_H
#define SHMEMI_NET_CHAN_H

#include "shmem/device/channel.h"
#include "shmem/device/state.h"

#include <stdbool.h>

struct shmemi_nic_memory;

/*
 * Starts it, without rows, of which there can be that many.  report, seen: what kernels tell, and where they see it themselves, or
 * NULL.  memory: host memory that the GPU reaches; NULL: device code on the CPU.
 */
int shmemi_chan_start(struct shmemi_dev_report *report, struct shmemi_dev_report *seen, int rows,
                      const struct shmemi_nic_memory *memory);
/* The next row; private_slot: memory for the results of a private context, or 0. */
int shmemi_chan_open(int row, uint64_t private_slot);
/* Fills in the state's channels and flags. */
void shmemi_chan_show(struct shmemi_dev_state *s);
/* Kernels have ended: completes what is under way, for a moment, and ends the thread. */
void shmemi_chan_stop(void);

#endif
