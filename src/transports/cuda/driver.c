/* SPDX-License-Identifier: BSD-3-Clause */
/* driver.c - finds the CUDA driver library and fills the table of its functions. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "driver.h"

#include "core/log.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define LIBRARY "libcuda.so.1"

struct shmemi_cu shmemi_cu;

static struct {
    pthread_mutex_t lock;
    int tried, result;
    char why[256];
} load = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Values of CUdriverProcAddressQueryResult are not needed: a null pointer says it all. */
typedef int (*get_proc_address)(const char *symbol, void **fn, int version, uint64_t flags, void *status);

/* Names whose ending is a version of the interface stand for the function of that version. */
static void *lookup(void *lib, const char *name)
{
    void *fn = dlsym(lib, name);
    get_proc_address ask = (get_proc_address)dlsym(lib, "cuGetProcAddress_v2");
    char plain[96];
    size_t len = strlen(name);

    if (fn || !ask || len >= sizeof plain)
        return fn;
    memcpy(plain, name, len + 1);
    if (len > 3 && plain[len - 3] == '_' && plain[len - 2] == 'v')
        plain[len - 3] = '\0';
    return ask(plain, &fn, SHMEMI_CU_DRIVER_MIN, 0, NULL) == SHMEMI_CU_OK ? fn : NULL;
}

/* The name of the first function that is missing, or NULL. */
static const char *fill(void *lib)
{
    static const struct {
        const char *name;
        size_t at;
    } rows[] = {
#define ROW(field, symbol, params) { symbol, offsetof(struct shmemi_cu, field) },
        SHMEMI_CU_FUNCTIONS(ROW)
#undef ROW
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        void *fn = lookup(lib, rows[i].name);

        if (!fn)
            return rows[i].name;
        memcpy((char *)&shmemi_cu + rows[i].at, &fn, sizeof fn);
    }
    return NULL;
}

static int start(char *why, size_t len)
{
    void *lib = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    const char *missing;
    int rc, version = 0, count = 0;

    if (!lib) {
        snprintf(why, len, "the CUDA driver is not installed (%s)", dlerror());
        return -ENOENT;
    }
    missing = fill(lib);
    if (shmemi_cu.driver_version && shmemi_cu.driver_version(&version) == SHMEMI_CU_OK &&
        version < SHMEMI_CU_DRIVER_MIN) {
        snprintf(why, len, "the CUDA driver is for CUDA %d.%d: %d.%d or later is needed", version / 1000,
                 version % 1000 / 10, SHMEMI_CU_DRIVER_MIN / 1000, SHMEMI_CU_DRIVER_MIN % 1000 / 10);
        return -ENOSYS;
    }
    if (missing) {
        snprintf(why, len, "the CUDA driver has no %s: it is too old, or %s is a stub", missing, LIBRARY);
        return -ENOSYS;
    }
    rc = shmemi_cu.init(0);
    if (rc == SHMEMI_CU_OK)
        rc = shmemi_cu.device_count(&count);
    if (rc != SHMEMI_CU_OK || count < 1) {
        snprintf(why, len, "no usable GPU (%s)", rc == SHMEMI_CU_OK ? "0 devices" : shmemi_cu_error(rc));
        return -ENODEV;
    }
    return 0;
}

int shmemi_cu_load(char *why, size_t len)
{
    int rc;

    pthread_mutex_lock(&load.lock);
    if (!load.tried) {
        load.tried = 1;
        load.result = start(load.why, sizeof load.why);
    }
    if (why)
        snprintf(why, len, "%s", load.why);
    rc = load.result;
    pthread_mutex_unlock(&load.lock);
    return rc;
}

int shmemi_cu_present(void)
{
    void *lib = dlopen(LIBRARY, RTLD_NOW | RTLD_NOLOAD);

    if (lib)
        dlclose(lib);
    return lib != NULL;
}

const char *shmemi_cu_error(int result)
{
    const char *name = NULL;

    if (!shmemi_cu.error_name || shmemi_cu.error_name(result, &name) != SHMEMI_CU_OK || !name)
        return "an unknown CUDA error";
    return name;
}
