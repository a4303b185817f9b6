/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * devmem_bad.c - misuse of device memory, by the host and in kernels, ends the job with a message that names the PE, the call and
 * the value.  Driver and GPU are stand-ins: kernels run under the SIMT executor on the library's own device state, and a
 * kernel that has failed stays where it is, as on a GPU whose host is in cudaStreamSynchronize.
 *
 * dies: bad_pe | shmem_p\] in a kernel: PE 1000 is out of range: there are PEs 0 to
 * dies: not_symmetric | shmem_put\] in a kernel: address 0x[0-9a-f]+ \(64 bytes, PE 0\) is neither in the symmetric heap .* nor in the device heap
 * dies: past_end | shmem_put\] in a kernel: [0-9]+ bytes at 0x[0-9a-f]+ for PE 0 run past the end of the heap
 * dies: odd_word | in a kernel: address 0x[0-9a-f]+ is not aligned to 8 bytes
 * dies: dead_team | in a kernel: team handle 0x[0-9a-f]+ is not valid
 * dies: dead_ctx | in a kernel: context 0x[0-9a-f]+ does not exist
 * dies: bad_compare | in a kernel: bad argument 77
 * dies: hang_report | in a kernel: has waited [0-9]+ s for the word at 0x[0-9a-f]+ to be equal to 1; it is 0 \(MARROW_HANG_REPORT
 * dies: hang | in a kernel: gave up after [0-9.]+ s waiting for the word at 0x[0-9a-f]+ to be equal to 1; it is 0 \(MARROW_TIMEOUT
 * dies: lonely_barrier | in a kernel: gave up after [0-9.]+ s waiting for PE [01]: the word at
 * dies: host_past_end | shmem_putmem\] [0-9]+ bytes at 0x[0-9a-f]+ for PE 0 run [0-9]+ bytes past the end of their block of .* device memory
 * dies: host_freed | shmem_long_g\] address 0x[0-9a-f]+ \(device heap offset [0-9]+, 8 bytes, PE 0\) lies in no allocated block
 * dies: double_free | shmem_free\] 0x[0-9a-f]+ \(device heap offset [0-9]+\) is not an allocated block: was it freed before
 * dies: active_set | shmem_broadcast64\] address 0x[0-9a-f]+ is device memory, which this call does not take
 * dies: lock | shmem_set_lock\] address 0x[0-9a-f]+ is device memory
 * dies: private_collective | shmem_long_fcollect\] address 0x[0-9a-f]+ \(8 bytes, PE [01]\) is neither in the symmetric heap
 * dies: stream_pe | shmemx_long_p_on_stream\] PE 1000 is out of range
 * dies: stream_private | shmemx_long_put_on_stream\] address 0x[0-9a-f]+ \(8 bytes, PE 0\) is neither
 * run: n=2 launch=oshrun timeout=40 env=LD_LIBRARY_PATH=tests/fakecuda env=MARROW_CHECK=1 env=MARROW_TIMEOUT=3 env=MARROW_HANG_REPORT=1
 * nodes: no device memory on one node only
 */
#include "tap.h"

#include "shmem/device/module.h"
#include "simt.h"

#include <shmemx.h>
#include <stdint.h>

struct shmemi_dev_state shmemi_dev_state;
static char *block; /* of device memory, 256 bytes */

static int where(void **out)
{
    *out = &shmemi_dev_state;
    return 0;
}

static struct shmemi_dev_module module = { NULL, SHMEMI_DEV_ABI, sizeof shmemi_dev_state, where };

static void dead_kernel(int sig)
{
    (void)sig;
    for (;;)
        pause();
}

static void launch(void (*kernel)(void *), void *arg)
{
    struct simt_grid grid = { .blocks = 1, .threads = 1 };

    signal(SIGILL, dead_kernel); /* what a trap is here */
    simt_launch(&grid, kernel, arg);
}

/* ---- in kernels ---- */

static char local[64];

static void k_bad_pe(void *arg) { shmem_long_p(arg, 1, 1000); }
static void k_not_symmetric(void *arg) { shmem_putmem(local, arg, 64, 0); }
static void k_past_end(void *arg) { shmem_putmem(arg, arg, (size_t)1 << 40, 0); }
static void k_odd_word(void *arg) { shmem_long_atomic_add((long *)(void *)((char *)arg + 1), 1, 0); }
static void k_dead_team(void *arg) { shmem_team_sync(arg); }
static void k_dead_ctx(void *arg) { shmem_ctx_long_p(*(shmem_ctx_t *)arg, (long *)(void *)block, 1, 0); }
static void k_bad_compare(void *arg) { shmem_long_wait_until(arg, 77, 1); }
static void k_hang(void *arg) { shmem_long_wait_until(arg, SHMEM_CMP_EQ, 1); }
static void k_barrier(void *arg)
{
    (void)arg;
    shmem_barrier_all();
}

static void bad_pe(void) { launch(k_bad_pe, block); }
static void not_symmetric(void) { launch(k_not_symmetric, block); }
static void past_end(void) { launch(k_past_end, block); }
static void odd_word(void) { launch(k_odd_word, block); }
static void dead_team(void)
{
    shmem_team_t team;

    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, tap_n, NULL, 0, &team);
    shmem_team_destroy(team);
    launch(k_dead_team, team);
}
static void dead_ctx(void)
{
    shmem_ctx_t ctx;

    shmem_ctx_create(0, &ctx);
    shmem_ctx_destroy(ctx);
    launch(k_dead_ctx, &ctx);
}
static void bad_compare(void) { launch(k_bad_compare, block); }
static void hang(void) { launch(k_hang, block); }
static void lonely_barrier(void)
{
    if (tap_me == 0)
        launch(k_barrier, NULL);
    sleep(20);
}

/* ---- by the host ---- */

static void host_past_end(void) { shmem_putmem(block, block, 512, 0); }
static void host_freed(void)
{
    shmem_free(block);
    shmem_long_g((long *)(void *)block, 0);
}
static void double_free(void)
{
    shmem_free(block);
    shmem_free(block);
}
static void active_set(void)
{
    static long sync[SHMEM_BCAST_SYNC_SIZE];

    for (int i = 0; i < SHMEM_BCAST_SYNC_SIZE; i++)
        sync[i] = SHMEM_SYNC_VALUE;
    shmem_barrier_all();
    shmem_broadcast64(block, block, 1, 0, 0, 0, tap_n, sync);
}
static void lock(void) { shmem_set_lock((long *)(void *)block); }
static void private_collective(void)
{
    long on_stack = 1;

    shmem_long_fcollect(SHMEM_TEAM_WORLD, (long *)(void *)block, &on_stack, 1);
}
static void stream_pe(void) { shmemx_long_p_on_stream((long *)(void *)block, 1, 1000, NULL); }
static void stream_private(void)
{
    long on_stack = 1;

    shmemx_long_put_on_stream(&on_stack, &on_stack, 1, 0, NULL);
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
#define CASE(x) { #x, x }
    CASE(bad_pe), CASE(not_symmetric), CASE(past_end), CASE(odd_word), CASE(dead_team), CASE(dead_ctx), CASE(bad_compare),
    CASE(hang), { "hang_report", hang }, CASE(lonely_barrier), CASE(host_past_end), CASE(host_freed), CASE(double_free),
    CASE(active_set), CASE(lock), CASE(private_collective), CASE(stream_pe), CASE(stream_private),
#undef CASE
};

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";

    shmemx_device_register(&module);
    tap_init();
    block = shmemx_calloc_device(256, 1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (!strcmp(name, cases[i].name)) {
            cases[i].run();
            fprintf(stderr, "%s was let through\n", name);
            return 0;
        }
    tap_ok(block != NULL, "without an argument nothing is misused");
    return tap_done();
}
