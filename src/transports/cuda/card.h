/* SPDX-License-Identifier: BSD-3-Clause */
/* card.h - what a PE shows the PEs of its node about its GPU, in memory that they share. */
#ifndef SHMEMI_GPU_CARD_H
#define SHMEMI_GPU_CARD_H

#include <stdint.h>

struct shmemi_gpu_card {
    uint32_t state;  /* enum shmemi_gpu_state, stored last, with release */
    uint32_t shares; /* enum shmemi_gpu_sharing */
    char uuid[16];   /* of the device */
    char ipc[64];    /* handle of a heap that does not grow, and where in the allocation it begins */
    uint64_t ipc_skip;
    uint8_t secret[16];
    char door[24];
    uint32_t vote[2]; /* outcomes of the last two steps that all must take: enum shmemi_gpu_state */
};

enum shmemi_gpu_state { SHMEMI_GPU_SILENT, SHMEMI_GPU_READY, SHMEMI_GPU_FAILED };
enum shmemi_gpu_sharing { SHMEMI_GPU_CHUNKS, SHMEMI_GPU_IPC };

#endif
