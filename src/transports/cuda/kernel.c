/* SPDX-License-Identifier: BSD-3-Clause */
/* kernel.c - loads the library's kernels and launches them. */
#include "kernel.h"

#include "core/compiler.h"
#include "core/log.h"
#include "gpu.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* From nvcc; a build without it has neither (kernels_none.c). */
extern const void *const shmemi_kernels_image;
extern const char shmemi_kernels_archs[];

static struct {
    pthread_mutex_t lock;
    bool tried;
    bool ready; /* loaded; set with release, behind all that launch() reads */
    int result;
    char why[200];
    void *module;
    void *functions[SHMEMI_KERNEL_COUNT];
    uint64_t *result_word; /* pinned; under the lock */
} it = { .lock = PTHREAD_MUTEX_INITIALIZER };

bool shmemi_kernels_built(const char **archs_out)
{
    *archs_out = shmemi_kernels_archs;
    return shmemi_kernels_image != NULL;
}

const char *shmemi_kernel_why(void)
{
    return it.why;
}

static int load_functions(void)
{
    static const char *const names[] = {
#define NAME(name) "shmemi_k_" #name,
        SHMEMI_KERNELS(NAME)
#undef NAME
    };

    for (int i = 0; i < SHMEMI_KERNEL_COUNT; i++) {
        int rc = shmemi_cu.module_function(&it.functions[i], it.module, names[i]);

        if (rc != SHMEMI_CU_OK) {
            snprintf(it.why, sizeof it.why, "the library's kernel %s is not found: %s", names[i], shmemi_cu_error(rc));
            return -ENOENT;
        }
    }
    return 0;
}

/* Caller holds the lock and has the context current. */
static int load(void)
{
    int rc;

    if (!shmemi_kernels_image) {
        snprintf(it.why, sizeof it.why, "this build of the library has no kernels: nvcc was not found when it was made");
        return -EOPNOTSUPP;
    }
    rc = shmemi_cu.module_load(&it.module, shmemi_kernels_image);
    if (rc != SHMEMI_CU_OK) {
        snprintf(it.why, sizeof it.why, "the library's kernels (%s) do not load on this GPU (%d.%d): %s", shmemi_kernels_archs,
                 shmemi_gpu.cc / 10, shmemi_gpu.cc % 10, shmemi_cu_error(rc));
        return -EIO;
    }
    rc = load_functions();
    if (!rc)
        rc = shmemi_gpu_image_add_module(it.module);
    if (!rc)
        rc = shmemi_gpu_check(shmemi_cu.host_alloc((void **)&it.result_word, sizeof *it.result_word,
                                                   SHMEMI_CU_REGISTER_PORTABLE | SHMEMI_CU_REGISTER_MAPPED),
                              "no host memory for kernels' results");
    if (rc && !it.why[0])
        snprintf(it.why, sizeof it.why, "the library's kernels cannot be told about the job");
    return rc;
}

/* Leaves the lock held and the context current, if it gives 0. */
static int begin(void)
{
    int rc = -EIO;

    pthread_mutex_lock(&it.lock);
    if (shmemi_gpu_enter()) {
        if (!it.tried) {
            it.tried = true;
            it.result = load();
            __atomic_store_n(&it.ready, it.result == 0, __ATOMIC_RELEASE);
        }
        rc = it.result;
        if (!rc)
            return 0;
        shmemi_gpu_leave();
    }
    pthread_mutex_unlock(&it.lock);
    return rc;
}

static void end(void)
{
    shmemi_gpu_leave();
    pthread_mutex_unlock(&it.lock);
}

int shmemi_kernels_load(void)
{
    int rc = begin();

    if (!rc)
        end();
    return rc;
}

static int launch(enum shmemi_kernel which, const struct shmemi_kernel_args *args, unsigned blocks, unsigned threads,
                  void *stream)
{
    void *list[] = { (void *)(uintptr_t)args };
    int rc = shmemi_cu.launch(it.functions[which], blocks, 1, 1, threads, 1, 1, 0, stream, list, NULL);

    if (rc == SHMEMI_CU_OK)
        return 0;
    snprintf(it.why, sizeof it.why, "a kernel of the library cannot be launched: %s", shmemi_cu_error(rc));
    return -EIO;
}

/* Loaded, and the context is the caller's own: nothing to be locked or switched. */
static bool at_once(void)
{
    void *ctx = NULL;

    return __atomic_load_n(&it.ready, __ATOMIC_ACQUIRE) && shmemi_cu.ctx_current(&ctx) == SHMEMI_CU_OK &&
           ctx == shmemi_gpu.ctx;
}

int shmemi_kernel_launch(enum shmemi_kernel which, const struct shmemi_kernel_args *args, unsigned blocks, unsigned threads,
                         void *stream)
{
    int rc;

    if (shmemi_likely(at_once()))
        return launch(which, args, blocks, threads, stream);
    rc = begin();
    if (rc)
        return rc;
    rc = launch(which, args, blocks, threads, stream);
    end();
    return rc;
}

int shmemi_kernel_amo(int op, void *word, uint64_t value, uint64_t cond, uint64_t *old_out, size_t size)
{
    struct shmemi_kernel_args args = { .dest = (uintptr_t)word, .value = value, .cond = cond, .op = (uint32_t)op,
                                       .size = (uint32_t)size };
    int rc = begin();

    if (rc)
        return rc;
    args.out = (uintptr_t)it.result_word;
    rc = launch(SHMEMI_KERNEL_amo, &args, 1, 1, shmemi_gpu.stream);
    if (!rc)
        rc = shmemi_gpu_check(shmemi_cu.stream_sync(shmemi_gpu.stream), "an atomic operation fails");
    if (!rc && old_out)
        *old_out = *it.result_word;
    end();
    return rc;
}

int shmemi_kernel_most_blocks(void *function, unsigned threads, size_t shared, int *blocks_out)
{
    int each = 0, rc = SHMEMI_CU_INVALID_VALUE;

    if (threads && shmemi_gpu_enter()) {
        rc = shmemi_cu.occupancy(&each, function, (int)threads, shared);
        shmemi_gpu_leave();
    }
    *blocks_out = each * shmemi_gpu.sms;
    return shmemi_gpu_check(rc, "cannot learn how many blocks of the kernel fit");
}

int shmemi_kernel_launch_together(void *function, const unsigned grid[3], const unsigned block[3], void **args, size_t shared,
                                  void *stream)
{
    uint64_t want = (uint64_t)grid[0] * grid[1] * grid[2];
    int most, rc = shmemi_kernel_most_blocks(function, block[0] * block[1] * block[2], shared, &most);

    if (rc)
        return rc;
    if (want > (uint64_t)most) {
        snprintf(it.why, sizeof it.why, "%llu blocks of %u threads do not run at once on this GPU: at most %d do",
                 (unsigned long long)want, block[0] * block[1] * block[2], most);
        return -E2BIG;
    }
    if (!shmemi_gpu_enter())
        return -EIO;
    rc = shmemi_cu.launch_cooperative(function, grid[0], grid[1], grid[2], block[0], block[1], block[2], (unsigned)shared,
                                      stream, args);
    shmemi_gpu_leave();
    if (rc == SHMEMI_CU_OK)
        return 0;
    snprintf(it.why, sizeof it.why, "the kernel cannot be launched: %s", shmemi_cu_error(rc));
    return -EIO;
}

void shmemi_kernels_unload(void)
{
    if (it.result_word)
        shmemi_cu.host_free(it.result_word);
    if (it.module)
        shmemi_cu.module_unload(it.module);
    it.result_word = NULL;
    it.module = NULL;
    it.tried = false;
    it.ready = false;
    it.why[0] = '\0';
}
