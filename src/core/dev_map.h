/* SPDX-License-Identifier: BSD-3-Clause */
/* dev_map.h - what kernels know of the nodes of a team (struct shmemi_sync_map), and how its members meet there. */
#ifndef SHMEMI_DEV_MAP_H
#define SHMEMI_DEV_MAP_H

#include "team.h"

/* Of a team that is live; writes shmemi_sync_map_bytes(n_pes) bytes.  -ENOMEM, or enum shmemi_dev_far_shape, 0 for a
 * team of one node. */
int shmemi_dev_map_fill(const struct shmemi_team *t, void *map);
/* The shape alone. */
int shmemi_dev_map_shape(const struct shmemi_team *t);

#endif
