/* SPDX-License-Identifier: BSD-3-Clause */
/* nic_load.h - finds and opens the module that knows verbs. */
#ifndef SHMEMI_NIC_LOAD_H
#define SHMEMI_NIC_LOAD_H

#include "transports/nic.h"

/* `dir`: MARROW_MODULE_DIR, or "" for beside the library.  0, or -errno with the reason in `why`.  It stays loaded. */
int shmemi_nic_load(const char *dir, const struct shmemi_nic_module **out, char *why, size_t len);

#endif
