/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * image.c - the copies of the device state: one in each program part that was compiled for the GPU (module.h), and one in
 * each CUmodule that the program has named by shmemx_module_init.
 *
 * A part registers before main; its copy's address is asked for when CUDA is up, since asking brings the
 * CUDA runtime up.
 */
#include "gpu.h"

#include "core/compiler.h"
#include "core/log.h"
#include "shmem/device/module.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#define SYMBOL "shmemi_dev_state"
#define NO_IMAGE_FOR_GPU 209 /* cudaErrorNoKernelImageForDevice */

struct named {
    struct named *next;
    uint64_t at;
};

static struct {
    pthread_mutex_t lock;
    struct shmemi_dev_module *parts;
    struct named *modules;
    struct shmemi_dev_state state; /* the last one written */
} it = { .lock = PTHREAD_MUTEX_INITIALIZER };

static int write_part(struct shmemi_dev_module *part)
{
    void *at = NULL;
    int rc;

    if (part->abi != SHMEMI_DEV_ABI || part->bytes != sizeof it.state) {
        shmemi_err("cuda", "a part of the program was compiled with another version of the library's headers (device state "
                   "%u of %u bytes, here %u of %zu): compile it again", part->abi, part->bytes, SHMEMI_DEV_ABI,
                   sizeof it.state);
        return -EPROTO;
    }
    rc = part->address(&at);
    if (rc || !at) {
        shmemi_err("cuda", "the CUDA runtime does not find the program's device state: error %d%s", rc,
                   rc == NO_IMAGE_FOR_GPU ? " (the program has no code for this GPU: compile for its architecture)" : "");
        return -EIO;
    }
    return shmemi_gpu_copy(at, &it.state, sizeof it.state, true);
}

SHMEMI_API(void, shmemx_device_register, (struct shmemi_dev_module *module))
{
    pthread_mutex_lock(&it.lock);
    module->next = it.parts;
    it.parts = module;
    /* Loaded after init, as by dlopen: it gets what the others have. */
    if (shmemi_gpu.up && it.state.n_pes && shmemi_gpu_enter()) {
        if (write_part(module))
            shmemi_warn("cuda", "kernels of a part of the program that was loaded late cannot communicate");
        shmemi_gpu_leave();
    }
    pthread_mutex_unlock(&it.lock);
}

SHMEMI_API(void, shmemx_device_unregister, (struct shmemi_dev_module *module))
{
    struct shmemi_dev_module **at;

    pthread_mutex_lock(&it.lock);
    for (at = &it.parts; *at && *at != module;)
        at = &(*at)->next;
    if (*at)
        *at = module->next;
    pthread_mutex_unlock(&it.lock);
}

bool shmemi_gpu_image_any(void)
{
    return it.parts != NULL;
}

static int look_into(void *module, uint64_t *at_out)
{
    size_t len = 0;
    int rc;

    if (!shmemi_gpu_enter())
        return -EIO;
    rc = shmemi_cu.module_global(at_out, &len, module, SYMBOL);
    shmemi_gpu_leave();
    if (rc == SHMEMI_CU_NOT_FOUND)
        return -ENOENT;
    if (rc != SHMEMI_CU_OK)
        return shmemi_gpu_check(rc, "cannot look into the module");
    return len == sizeof it.state ? 0 : -EPROTO;
}

int shmemi_gpu_image_add_module(void *module)
{
    struct named *n = calloc(1, sizeof *n);
    int rc = n ? look_into(module, &n->at) : -ENOMEM;

    if (rc) {
        free(n);
        return rc;
    }
    pthread_mutex_lock(&it.lock);
    n->next = it.modules;
    it.modules = n;
    rc = shmemi_gpu_copy((void *)(uintptr_t)n->at, &it.state, sizeof it.state, true);
    pthread_mutex_unlock(&it.lock);
    return rc;
}

static void forget_modules(void)
{
    while (it.modules) {
        struct named *n = it.modules;

        it.modules = n->next;
        free(n);
    }
}

int shmemi_gpu_image_fill(const struct shmemi_dev_state *state)
{
    int rc = 0;

    if (!shmemi_gpu_enter())
        return -EIO;
    pthread_mutex_lock(&it.lock);
    it.state = *state;
    for (struct shmemi_dev_module *p = it.parts; p && !rc; p = p->next)
        rc = write_part(p);
    if (state->n_pes)
        for (struct named *n = it.modules; n && !rc; n = n->next)
            rc = shmemi_gpu_copy((void *)(uintptr_t)n->at, state, sizeof *state, true);
    else
        forget_modules(); /* they may have been unloaded meanwhile */
    pthread_mutex_unlock(&it.lock);
    shmemi_gpu_leave();
    return rc;
}
