/* SPDX-License-Identifier: BSD-3-Clause */
/* nic_load.c - opens the module that knows verbs, from the folder that the user names. */
#include "nic_load.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>

int shmemi_nic_load(const char *dir, const struct shmemi_nic_module **out, char *why, size_t len)
{
    char path[4096];
    void *handle;

    snprintf(path, sizeof path, "%s%smarrow-verbs.so", dir, *dir ? "/" : "");
    handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    *out = handle ? dlsym(handle, SHMEMI_NIC_SYMBOL) : NULL;
    if (*out && (*out)->abi == SHMEMI_NIC_ABI)
        return 0;
    snprintf(why, len, "%s", handle ? "it is of another version" : dlerror());
    return -ENOENT;
}
