/* SPDX-License-Identifier: BSD-3-Clause */
/* info.h - the parts of shmem-info. */
#ifndef SHMEMI_INFO_H
#define SHMEMI_INFO_H

/* Part of the transports. */
void shmemi_info_gpus(void);

#endif
