/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * count.c - kernels and the host count on the same words at the same time, in device and in host memory, by every kind of atomic that
 * counts: nothing is lost, and no two of them fetch the same value.
 *
 * run: n=1,2,4 launch=oshrun timeout=120
 * nodes: no far_nodes.sh and far_gpu.sh run it
 */
#include "launch.h"

#define LANES 40
#define ROUNDS 6
#define HOST_ROUNDS 60
#define SWAP_LANES 2   /* each try of one fails for a success of another: few of them, */
#define SWAP_ROUNDS 10 /* and few by the host */
#define MOST_PES 8

/* The words of a PE, in lines of their own. */
enum { FETCH_ADD, FETCH_INC, SWAP, ADD, WORDS, STEP = 16 };

struct args {
    uint64_t *words; /* symmetric: WORDS * STEP */
    uint64_t *sums;  /* what was fetched: of each lane, by kind and PE */
    int n;
};

/* One more by compare-swap: the value that it replaced. */
#define COUNT_BY_SWAP(word, pe, out)                                                  \
    do {                                                                              \
        uint64_t seen_ = shmem_uint64_atomic_fetch(word, pe), old_;                   \
        while ((old_ = shmem_uint64_atomic_compare_swap(word, seen_, seen_ + 1, pe)) != seen_) \
            seen_ = old_;                                                             \
        (out) = seen_;                                                                \
    } while (0)

KERNEL(count, struct args)
{
    uint64_t *mine = a.sums + shmemi_thread_in_block() * WORDS * MOST_PES, old;

    for (int i = 0; i < ROUNDS; i++)
        for (int pe = 0; pe < a.n; pe++) {
            mine[FETCH_ADD * MOST_PES + pe] += shmem_uint64_atomic_fetch_add(a.words + FETCH_ADD * STEP, 1, pe);
            mine[FETCH_INC * MOST_PES + pe] += shmem_uint32_atomic_fetch_inc((uint32_t *)(a.words + FETCH_INC * STEP), pe);
            if (shmemi_thread_in_block() < SWAP_LANES) {
                COUNT_BY_SWAP(a.words + SWAP * STEP, pe, old);
                mine[SWAP * MOST_PES + pe] += old;
            }
            shmem_uint64_atomic_inc(a.words + ADD * STEP, pe);
        }
    shmem_quiet();
}

/* The host's part. */
struct part {
    struct args *a;
    uint64_t sums[WORDS * MOST_PES];
};

static void count_on_host(void *part)
{
    struct part *p = (struct part *)part;
    uint64_t *words = p->a->words, old;

    for (int i = 0; i < HOST_ROUNDS; i++)
        for (int pe = 0; pe < tap_n; pe++) {
            p->sums[FETCH_ADD * MOST_PES + pe] += shmem_uint64_atomic_fetch_add(words + FETCH_ADD * STEP, 1, pe);
            p->sums[FETCH_INC * MOST_PES + pe] += shmem_uint32_atomic_fetch_inc((uint32_t *)(words + FETCH_INC * STEP), pe);
            if (i < SWAP_ROUNDS) {
                COUNT_BY_SWAP(words + SWAP * STEP, pe, old);
                p->sums[SWAP * MOST_PES + pe] += old;
            }
            shmem_uint64_atomic_add(words + ADD * STEP, 1, pe);
        }
    shmem_quiet();
}

/* Both at once on words at `words`, then their final values and the sums of what was fetched. */
static void count_on(uint64_t *words, const char *where)
{
    static uint64_t sums[WORDS * MOST_PES], all[WORDS * MOST_PES]; /* symmetric */
    static uint64_t lanes[LANES * WORDS * MOST_PES], last[WORDS * STEP];
    const uint64_t all_of_it = (uint64_t)tap_n * (LANES * ROUNDS + HOST_ROUNDS);
    const uint64_t swaps = (uint64_t)tap_n * (SWAP_LANES * ROUNDS + SWAP_ROUNDS);
    struct args a = { words, (uint64_t *)dev_local(sizeof lanes), tap_n };
    struct part host;

    memset(&host, 0, sizeof host);
    host.a = &a;
    shmem_barrier_all();
    LAUNCH_BESIDE(count, struct args, a, 1, LANES, count_on_host, &host);
    dev_read(lanes, a.sums, sizeof lanes);
    memcpy(sums, host.sums, sizeof sums);
    for (int i = 0; i < LANES * WORDS * MOST_PES; i++)
        sums[i % (WORDS * MOST_PES)] += lanes[i];
    shmem_barrier_all();
    shmem_uint64_sum_reduce(SHMEM_TEAM_WORLD, all, sums, WORDS * MOST_PES);
    dev_read(last, words, sizeof last);
    for (int k = 0; k < WORDS; k++) {
        uint64_t total = k == SWAP ? swaps : all_of_it;

        tap_check_eq(last[k * STEP], total);
        if (k != ADD)
            tap_check_eq(all[k * MOST_PES + tap_me], total * (total - 1) / 2);
    }
    tap_point("kernels and host count in %s", where);
    shmem_barrier_all();
}

/* Do the processors and the GPU do atomics on host memory as one?  Where NICs do all of them, it does not matter. */
static int host_memory_counts(void)
{
#if defined(__CUDACC__)
    struct shmemi_dev_state s;
    int native = 0;

    dev_state(&s);
    if (!(s.nic.flags & SHMEMI_DEV_NIC_ATOMICS))
        return cudaDeviceGetAttribute(&native, cudaDevAttrHostNativeAtomicSupported, 0) == cudaSuccess && native;
#endif
    return 1;
}

int main(void)
{
    uint64_t *there;

    dev_init();
    if (tap_n > MOST_PES) {
        tap_diag("more than %d PEs", MOST_PES);
        shmem_global_exit(1);
    }
    there = (uint64_t *)dev_malloc(WORDS * STEP * 8);
    count_on(there, "device memory");
    there = (uint64_t *)dev_host_malloc(WORDS * STEP * 8);
    if (!there)
        tap_skip("kernels and host count in host memory", "kernels do not reach it");
    else if (!host_memory_counts())
        tap_skip("kernels and host count in host memory", "atomics of this GPU and of the processors are not atomic together");
    else
        count_on(there, "host memory");
    return dev_done();
}
