/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bad_input.c - each misuse ends the whole job with a message that names PE, call and value.
 *
 * dies: pe_high | shmem_long_p\] PE 1000 is out of range: the job has PEs 0 to
 * dies: pe_negative | shmem_long_atomic_fetch_add\] PE -1 is out of range
 * dies: private_address | shmem_putmem\] address 0x[0-9a-f]+ \(8 bytes, PE 0\) is neither in the symmetric heap
 * dies: null_address | shmem_getmem\] address (0x0|\(nil\)) \(8 bytes, PE 0\) is neither
 * dies: past_heap | shmem_putmem\] [0-9]+ bytes at 0x[0-9a-f]+ \(heap offset [0-9]+\) for PE 0 run past the end of the symmetric heap
 * dies: past_static | run past the end of the executable's static data
 * dies: before_init | shmem_my_pe\] called before shmem_init
 * dies: put_before_init | shmem_long_p\] called before shmem_init
 * dies: after_finalize | shmem_barrier_all\] called after shmem_finalize
 * dies: malloc_after_finalize | shmem_malloc\] called after shmem_finalize
 * dies: double_free | shmem_free\] 0x[0-9a-f]+ \(heap offset [0-9]+\) is not an allocated block: was it freed before
 * dies: free_inside | shmem_free\] 0x[0-9a-f]+ is not the start of a block: it lies 64 bytes into one of 256 bytes
 * dies: free_private | shmem_free\] 0x[0-9a-f]+ is not in the symmetric heap
 * dies: realloc_private | shmem_realloc\] 0x[0-9a-f]+ is not in the symmetric heap
 * dies: dead_ctx | shmem_ctx_long_p\] context 0x[0-9a-f]+ does not exist
 * dies: invalid_ctx | shmem_ctx_long_p\] the context is SHMEM_CTX_INVALID
 * dies: ctx_options | shmem_ctx_create\] options 0x1000 hold unknown bits
 * dies: dead_team | shmem_team_sync\] .*team
 * dies: ctx_pe | shmem_ctx_long_p\] PE 1000 is out of range: the context's team has PEs 0 to
 * dies: bad_cmp | shmem_long_wait_until\] comparison 77 is not one of SHMEM_CMP_
 * dies: wait_private | shmem_long_wait_until\] address 0x[0-9a-f]+
 * dies: wait_odd | shmem_long_wait_until\] address 0x[0-9a-f]+ is not aligned to 8 bytes
 * dies: wait_set_odd | shmem_int_wait_until_all\] address 0x[0-9a-f]+ is not aligned to 4 bytes
 * dies: atomic_odd | shmem_long_atomic_add\] address 0x[0-9a-f]+ is not aligned to 8 bytes
 * dies: signal_odd | shmem_putmem_signal\] address 0x[0-9a-f]+ is not aligned to 8 bytes
 * dies: signal_private | shmem_signal_fetch\] address 0x[0-9a-f]+ \(8 bytes, PE [0-9]+\) is neither
 * dies: no_ctx | shmem_ctx_create\] ctx is NULL
 * dies: no_ctx_team | shmem_ctx_get_team\] team is NULL
 * dies: no_team | shmem_team_split_strided\] new_team is NULL
 * dies: no_axis | shmem_team_split_2d\] yaxis_team is NULL
 * dies: no_level | shmem_query_thread\] provided is NULL
 * dies: no_answer | shmem_query_initialized\] initialized is NULL
 * dies: no_version | shmem_info_get_version\] minor is NULL
 * dies: no_name | shmem_info_get_name\] name is NULL
 * dies: no_pes | shmem_pe_quiet\] target_pes is NULL although npes is 1
 * dies: no_values | shmem_long_wait_until_any_vector\] cmp_values is NULL although nelems is 2
 * dies: no_fetch | shmem_long_atomic_fetch_add_nbi\] fetch is NULL
 * dies: no_fetch_word | shmem_double_atomic_fetch_nbi\] fetch is NULL
 * dies: no_fetch_swap | shmem_int_atomic_compare_swap_nbi\] fetch is NULL
 * dies: no_fetch_bits | shmem_uint64_atomic_fetch_xor_nbi\] fetch is NULL
 * dies: no_indices | shmem_long_test_some\] indices is NULL
 * dies: bad_stride | shmem_long_iput\] stride dst is 0: it must be at least 1
 * dies: bad_block_stride | shmem_long_ibput\] stride sst is 1: it must be at least 2
 * dies: bad_signal_op | shmem_long_put_signal\] sig_op 9 is neither
 * dies: wait_unsigned | shmem_uint64_wait_until\] gave up after [0-9.]+ s waiting for 0x[0-9a-f]+ == 18446744073709551615, which is 0 now
 * dies: lock_twice | shmem_set_lock\] PE [0-9]+ holds the lock at 0x[0-9a-f]+ already and would wait for itself
 * dies: lock_garbage | shmem_set_lock\] the long at 0x[0-9a-f]+ is no lock, one half of it was 0x12345678
 * dies: lock_garbage_test | shmem_test_lock\] the long at 0x[0-9a-f]+ is no lock, one half of it was 0x1:
 * dies: lock_garbage_tail | shmem_set_lock\] the long at 0x[0-9a-f]+ is no lock, one half of it was 0x12345678
 * dies: lock_not_held | shmem_clear_lock\] PE [0-9]+ does not hold the lock at 0x[0-9a-f]+
 * dies: sync_odd | shmem_barrier\] address 0x[0-9a-f]+ is not aligned to 8 bytes
 * dies: bad_thread_level | shmem_init_thread\] thread level 17
 * run: n=1,2 timeout=30
 * nodes: some=one timeout=30 dies=pe_high,private_address,past_heap,after_finalize,dead_ctx,atomic_odd
 */
#include "tap.h"

#include <limits.h>

static long global;
static long *block;

static void pe_high(void) { shmem_long_p(&global, 1, 1000); }
static void pe_negative(void) { shmem_long_atomic_fetch_add(&global, 1, -1); }
static void private_address(void)
{
    long on_stack = 0;

    shmem_putmem(&on_stack, &global, 8, 0);
}
static void null_address(void) { shmem_getmem(&global, NULL, 8, 0); }
static void past_heap(void) { shmem_putmem(block, block, (size_t)1 << 40, 0); }
static void past_static(void) { shmem_putmem(&global, &global, (size_t)1 << 40, 0); }
static void after_finalize(void)
{
    shmem_finalize();
    shmem_barrier_all();
}
static void malloc_after_finalize(void)
{
    shmem_finalize();
    shmem_malloc(8);
}
static void double_free(void)
{
    shmem_free(block);
    shmem_free(block);
}
static void free_inside(void) { shmem_free((char *)block + 64); }
static void free_private(void)
{
    void *p = malloc(8);

    shmem_free(p);
}
static void realloc_private(void)
{
    void *p = malloc(8);

    shmem_realloc(p, 16);
}
static void dead_ctx(void)
{
    shmem_ctx_t ctx;

    shmem_ctx_create(0, &ctx);
    shmem_ctx_destroy(ctx);
    shmem_ctx_long_p(ctx, &global, 1, 0);
}
static void invalid_ctx(void) { shmem_ctx_long_p(SHMEM_CTX_INVALID, &global, 1, 0); }
static void ctx_options(void)
{
    shmem_ctx_t ctx;

    shmem_ctx_create(0x1000, &ctx);
}
static void dead_team(void)
{
    shmem_team_t team;

    shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, shmem_n_pes(), NULL, 0, &team);
    shmem_team_destroy(team);
    shmem_team_sync(team);
}
static void ctx_pe(void)
{
    shmem_ctx_t ctx;

    shmem_ctx_create(0, &ctx);
    shmem_ctx_long_p(ctx, &global, 1, 1000);
}
static void bad_cmp(void) { shmem_long_wait_until(&global, 77, 0); }
static void wait_private(void)
{
    long on_stack = 0;

    shmem_long_wait_until(&on_stack, SHMEM_CMP_EQ, 0);
}
/* An address inside the block that is a multiple of 1 only. */
static void *odd(void) { return (char *)block + 1; }
static void wait_odd(void) { shmem_long_wait_until(odd(), SHMEM_CMP_EQ, 0); }
static void wait_set_odd(void) { shmem_int_wait_until_all(odd(), 2, NULL, SHMEM_CMP_EQ, 0); }
static void atomic_odd(void) { shmem_long_atomic_add(odd(), 1, 0); }
static void signal_odd(void) { shmem_putmem_signal(block, block, 8, odd(), 1, SHMEM_SIGNAL_SET, 0); }
static void signal_private(void)
{
    uint64_t on_stack = 0;

    shmem_signal_fetch(&on_stack);
}
static void no_ctx(void) { shmem_ctx_create(0, NULL); }
static void no_ctx_team(void) { shmem_ctx_get_team(SHMEM_CTX_DEFAULT, NULL); }
static void no_team(void) { shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, tap_n, NULL, 0, NULL); }
static void no_axis(void)
{
    shmem_team_t team;

    shmem_team_split_2d(SHMEM_TEAM_WORLD, 1, NULL, 0, &team, NULL, 0, NULL);
}
static void no_level(void) { shmem_query_thread(NULL); }
static void no_answer(void) { shmem_query_initialized(NULL); }
static void no_version(void)
{
    int major;

    shmem_info_get_version(&major, NULL);
}
static void no_name(void) { shmem_info_get_name(NULL); }
static void no_pes(void) { shmem_pe_quiet(NULL, 1); }
static void no_values(void) { shmem_long_wait_until_any_vector(block, 2, NULL, SHMEM_CMP_EQ, NULL); }
static void no_fetch(void) { shmem_long_atomic_fetch_add_nbi(NULL, block, 1, 0); }
static void no_fetch_word(void) { shmem_double_atomic_fetch_nbi(NULL, (const double *)block, 0); }
static void no_fetch_swap(void) { shmem_int_atomic_compare_swap_nbi(NULL, (int *)block, 0, 1, 0); }
static void no_fetch_bits(void) { shmem_uint64_atomic_fetch_xor_nbi(NULL, (uint64_t *)block, 1, 0); }
static void no_indices(void) { shmem_long_test_some(block, 2, NULL, NULL, SHMEM_CMP_EQ, 0); }
static void bad_stride(void) { shmem_long_iput(block, block, 0, 1, 2, 0); }
static void bad_block_stride(void) { shmem_long_ibput(block, block, 2, 1, 2, 2, 0); }
static void bad_signal_op(void)
{
    shmem_long_put_signal(block, block, 1, (uint64_t *)(block + 8), 1, 9, 0);
}

static void wait_unsigned(void)
{
    *block = 0;
    shmem_uint64_wait_until((uint64_t *)block, SHMEM_CMP_EQ, UINT64_MAX);
}
static void lock_twice(void)
{
    shmem_set_lock(block);
    shmem_set_lock(block);
}
/* A long that holds something else, on all PEs: first as a PE's own place in the queue, then as the queue's end. */
static void fill_lock(long value)
{
    *block = value;
    shmem_barrier_all();
}
static void lock_garbage(void)
{
    fill_lock(0x1234567800000000);
    shmem_set_lock(block);
}
static void lock_garbage_test(void)
{
    fill_lock(0x100000000);
    while (shmem_test_lock(block))
        continue;
}
static void lock_garbage_tail(void)
{
    fill_lock(0x12345678);
    shmem_set_lock(block);
}
static void lock_not_held(void) { shmem_clear_lock(block); }
static void sync_odd(void) { shmem_barrier(0, 0, tap_n, odd()); }

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
#define CASE(x) { #x, x }
    CASE(pe_high), CASE(pe_negative), CASE(private_address), CASE(null_address), CASE(past_heap), CASE(past_static),
    CASE(after_finalize), CASE(malloc_after_finalize), CASE(double_free), CASE(free_inside), CASE(free_private),
    CASE(realloc_private), CASE(dead_ctx), CASE(invalid_ctx), CASE(ctx_options), CASE(dead_team), CASE(ctx_pe),
    CASE(bad_cmp), CASE(wait_private),
    CASE(wait_odd), CASE(wait_set_odd), CASE(atomic_odd), CASE(signal_odd), CASE(signal_private), CASE(no_ctx), CASE(no_ctx_team), CASE(no_team), CASE(no_axis), CASE(no_level),
    CASE(no_answer), CASE(no_version), CASE(no_name), CASE(no_pes), CASE(no_values), CASE(no_fetch), CASE(no_fetch_word), CASE(no_fetch_swap), CASE(no_fetch_bits),
    CASE(no_indices), CASE(bad_stride), CASE(bad_block_stride), CASE(bad_signal_op),
    CASE(wait_unsigned), CASE(lock_twice), CASE(lock_garbage), CASE(lock_garbage_test), CASE(lock_garbage_tail), CASE(lock_not_held), CASE(sync_odd),
#undef CASE
};

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";

    if (!strcmp(name, "before_init"))
        return shmem_my_pe();
    if (!strcmp(name, "put_before_init"))
        shmem_long_p(&global, 1, 0);
    if (!strcmp(name, "wait_unsigned"))
        setenv("MARROW_TIMEOUT", "1", 1);
    if (!strcmp(name, "bad_thread_level"))
        shmem_init_thread(17, NULL);
    tap_init();
    block = shmem_malloc(256);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (!strcmp(name, cases[i].name)) {
            cases[i].run();
            fprintf(stderr, "%s was let through\n", name);
            return 0;
        }
    tap_ok(block != NULL, "without an argument nothing is misused");
    return tap_done();
}
