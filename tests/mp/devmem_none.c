/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * devmem_none.c - what is answered where device memory is not to be had, on the stand-in driver: no GPU, a driver that is too
 * old, no memory left on one PE, and a kernel that runs before shmem_init.
 *
 * run: n=1,2 launch=oshrun args=gpu env=LD_LIBRARY_PATH=tests/fakecuda env=FAKECUDA_DEVICES=0
 * run: n=2 launch=oshrun args=old env=LD_LIBRARY_PATH=tests/fakecuda env=FAKECUDA_VERSION=11080
 * run: n=2,3 launch=oshrun args=room env=LD_LIBRARY_PATH=tests/fakecuda
 * run: n=1 launch=oshrun args=early
 * nodes: no device memory on one node only
 */
#include "tap.h"

#include "shmem/device/module.h"
#include "simt.h"

#include <shmemx.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/wait.h>

struct shmemi_dev_state shmemi_dev_state;
static char heard[1 << 16];

static int where(void **out)
{
    *out = &shmemi_dev_state;
    return 0;
}

static struct shmemi_dev_module module = { NULL, SHMEMI_DEV_ABI, sizeof shmemi_dev_state, where };

/* stderr goes to a file of this PE's from here on. */
static FILE *said;

static void listen(void)
{
    said = tmpfile();
    if (!said || dup2(fileno(said), 2) < 0)
        exit(1);
}

static bool hears(const char *text)
{
    size_t n;

    fflush(stderr);
    rewind(said);
    n = fread(heard, 1, sizeof heard - 1, said);
    heard[n] = '\0';
    return strstr(heard, text) != NULL;
}

/* The program has device code, and init goes well all the same. */
static void no_device(const char *why)
{
    listen();
    shmemx_device_register(&module);
    tap_init();
    tap_point("shmem_init without a usable GPU");
    tap_check(hears(why));
    tap_point("it says why");
    tap_check(shmemx_malloc_device(64) == NULL && shmemx_calloc_device(4, 4) == NULL);
    tap_check(hears("shmemx_malloc_device] no device memory: "));
    tap_check(shmem_malloc_with_hints(64, SHMEMX_MALLOC_DEVICE) == NULL);
    tap_point("allocations of device memory give NULL, with a message");
    tap_check(shmem_malloc_with_hints(64, ~(long)SHMEM_MALLOC_ATOMICS_REMOTE) != NULL);
    tap_check(hears("hold unknown bits"));
    tap_point("of hints with unknown bits none is followed, SHMEMX_MALLOC_DEVICE neither");
    tap_check(shmemx_collective_launch_cufunction(NULL, 1, 1, 1, 1, 1, 1, NULL, 0, NULL) != 0);
    tap_check(hears("shmemx_collective_launch] no kernel can be launched, CUDA is not up: "));
    tap_point("what launches kernels together says why it cannot");
    tap_check(shmemi_dev_state.n_pes == 0);
    tap_point("kernels do not believe that there is a job");
}

static void no_room(void)
{
    const size_t all = (size_t)256 << 20;
    void *p;

    listen();
    if (tap_me == 0)
        setenv("FAKECUDA_MEMORY", "134217728", 1);
    p = shmemx_malloc_device(all);
    tap_check(p == NULL);
    tap_check(hears(tap_me ? "refused, since PE 0 has no room for them" : "refused, GPU 0 has "));
    tap_point("memory exhausted on one PE: NULL on all, each says why");
    p = shmemx_malloc_device(4096);
    tap_check(p != NULL);
    shmem_long_p(p, tap_me, (tap_me + 1) % tap_n);
    shmem_barrier_all();
    tap_check_eq(shmem_long_g(p, tap_me), (long)((tap_me + tap_n - 1) % tap_n));
    tap_point("smaller blocks still work");
    setenv("FAKECUDA_MEMORY", "1073741824", 1);
    shmem_free(p);
    p = shmemx_malloc_device(all);
    tap_check(p != NULL);
    tap_point("and so does the large one, once there is room");
    shmem_free(p);
}

static void kernel(void *arg)
{
    shmem_long_p(arg, 1, 0);
}

/* On a GPU it is an assertion that says so; here it is a trap. */
static int early(void)
{
    struct simt_grid grid = { .blocks = 1, .threads = 1 };
    int status = 0;
    long word = 0;
    pid_t child = fork();

    if (child == 0) {
        simt_launch(&grid, kernel, &word);
        _exit(0);
    }
    return waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGILL;
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    int stopped;

    if (!strcmp(name, "gpu")) {
        no_device("CUDA_ERROR_NO_DEVICE");
    } else if (!strcmp(name, "old")) {
        no_device("the CUDA driver is for CUDA 11.8: 12.0 or later is needed");
    } else if (!strcmp(name, "early")) {
        stopped = early();
        tap_init();
        tap_ok(stopped, "a kernel before shmem_init is stopped");
    } else {
        tap_init();
        no_room();
    }
    return tap_done();
}
