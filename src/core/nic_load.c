/* SPDX-License-Identifier: BSD-3-Clause */
/* nic_load.c - where the NIC's module lies, seen from the library or program that this code is in. */
#include "config.h"

#include "nic_load.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAME "marrow-verbs.so"

/* The folder of the object that holds this function; "" when that cannot be told. */
static void own_folder(char out[PATH_MAX])
{
    Dl_info info;
    char *slash;

    if (!dladdr((void *)&shmemi_nic_load, &info) || !info.dli_fname || !realpath(info.dli_fname, out)) {
        out[0] = '\0';
        return;
    }
    slash = strrchr(out, '/');
    *slash = '\0';
}

static int take(const char *path, const struct shmemi_nic_module **module_out, char *why, size_t len)
{
    const struct shmemi_nic_module *module;
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);

    if (!handle) {
        snprintf(why, len, "%s", dlerror());
        return -ENOENT;
    }
    module = dlsym(handle, SHMEMI_NIC_SYMBOL);
    if (!module || module->abi != SHMEMI_NIC_ABI) {
        snprintf(why, len, "%s is of another version of Marrow", path);
        dlclose(handle);
        return -ENOENT;
    }
    *module_out = module;
    return 0;
}

int shmemi_nic_load(const char *dir, const struct shmemi_nic_module **module_out, char *why, size_t len)
{
    /* Installed; the library in the build tree; a program that is linked with its objects, there and installed. */
    static const char *const places[] = { "%s/marrow/" NAME, "%s/" NAME, "%s/../.libs/" NAME, "%s/../lib/marrow/" NAME };
    char own[PATH_MAX], path[PATH_MAX + 64];

    if (dir && dir[0]) {
        snprintf(path, sizeof path, "%s/" NAME, dir);
        return take(path, module_out, why, len);
    }
    own_folder(own);
    for (size_t i = 0; own[0] && i < sizeof places / sizeof *places; i++) {
        snprintf(path, sizeof path, places[i], own);
        if (access(path, F_OK) == 0)
            return take(path, module_out, why, len);
    }
    if (access(SHMEMI_PKGLIBDIR "/" NAME, F_OK) == 0)
        return take(SHMEMI_PKGLIBDIR "/" NAME, module_out, why, len);
    snprintf(why, len, "there is no " NAME " in %s/marrow, %s or " SHMEMI_PKGLIBDIR
             ": was Marrow built without the verbs headers? (MARROW_MODULE_DIR names another folder)",
             own, own);
    return -ENOENT;
}
