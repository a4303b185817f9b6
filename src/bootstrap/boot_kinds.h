/* SPDX-License-Identifier: BSD-3-Clause */
/* boot_kinds.h - the bootstraps there are, and what they share; private to this folder. */
#ifndef SHMEMI_BOOT_KINDS_H
#define SHMEMI_BOOT_KINDS_H

#include "bootstrap.h"

extern const struct shmemi_boot_ops shmemi_boot_pmix;
extern const struct shmemi_boot_ops shmemi_boot_fork;
extern const struct shmemi_boot_ops shmemi_boot_single;

/*
 * The job size that a launcher's environment states, whatever the launcher: 0 when it states
 * none, else the size, with the variable's name in *var_out and whether this is its first process.
 */
int shmemi_boot_env_size(const char **var_out, bool *first_out);

/*
 * Writes "PE 1, PE 4 and 3 more" into buf: the PEs for which missing(arg, pe) is true.
 * Returns how many there are.
 */
int shmemi_boot_name_missing(int n_pes, int (*missing)(const void *arg, int pe), const void *arg, char *buf,
                             size_t len);

#endif
