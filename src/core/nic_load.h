/* SPDX-License-Identifier: BSD-3-Clause */
/* nic_load.h - finds and opens the module that knows verbs (transports/nic.h). */
#ifndef SHMEMI_NIC_LOAD_H
#define SHMEMI_NIC_LOAD_H

#include "transports/nic.h"

/*
 * From folder `dir`; when that is empty from marrow/ beside this library, from beside it, or from where it was
 * configured to be installed.  0, or -ENOENT and the reason in `why`.  The module stays for good: its thread's and
 * fork's handlers live in it.
 */
int shmemi_nic_load(const char *dir, const struct shmemi_nic_module **module_out, char *why, size_t len);

#endif
