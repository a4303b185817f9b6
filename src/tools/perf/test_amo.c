/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_amo.c - every atomic on one word of the peer.  Fetching forms are latencies; the
 * others are followed by a quiet each, and once more in a stream.
 */
#include "perf.h"

#define WORD (&perf.ctl->word)
#define UWORD ((unsigned long *)&perf.ctl->word)
#define WORD32 ((int *)&perf.ctl->word)
#define PEER perf.peer

/* A perf_fn that runs EXPR n times, then AFTER once. */
#define LOOP(NAME, EXPR, AFTER)            \
    static void NAME(size_t bytes, long n) \
    {                                      \
        (void)bytes;                       \
        for (long i = 0; i < n; i++)       \
            EXPR;                          \
        AFTER;                             \
    }
#define FETCHING(NAME, EXPR) LOOP(NAME, (void)(EXPR), (void)0)
#define PLAIN(NAME, EXPR) LOOP(NAME, (EXPR, shmem_quiet()), (void)0)
#define STREAM(NAME, EXPR) LOOP(NAME, EXPR, shmem_quiet())

FETCHING(fetch, shmem_long_atomic_fetch(WORD, PEER))
FETCHING(swap, shmem_long_atomic_swap(WORD, i, PEER))
FETCHING(compare_swap, shmem_long_atomic_compare_swap(WORD, i - 1, i, PEER))
FETCHING(fetch_inc, shmem_long_atomic_fetch_inc(WORD, PEER))
FETCHING(fetch_add, shmem_long_atomic_fetch_add(WORD, 3, PEER))
FETCHING(fetch_and, shmem_ulong_atomic_fetch_and(UWORD, ~0ul, PEER))
FETCHING(fetch_or, shmem_ulong_atomic_fetch_or(UWORD, 1ul, PEER))
FETCHING(fetch_xor, shmem_ulong_atomic_fetch_xor(UWORD, 1ul, PEER))
PLAIN(set, shmem_long_atomic_set(WORD, i, PEER))
PLAIN(inc, shmem_long_atomic_inc(WORD, PEER))
PLAIN(add, shmem_long_atomic_add(WORD, 3, PEER))
PLAIN(and_, shmem_ulong_atomic_and(UWORD, ~0ul, PEER))
PLAIN(or_, shmem_ulong_atomic_or(UWORD, 1ul, PEER))
PLAIN(xor_, shmem_ulong_atomic_xor(UWORD, 1ul, PEER))
STREAM(add_stream, shmem_long_atomic_add(WORD, 3, PEER))

static const struct {
    const char *test;
    perf_fn *fn;
    size_t bytes;
    enum perf_rate rate;
} fast[] = {
    { "atomic_fetch", fetch, 8, PERF_NO_RATE },
    { "atomic_swap", swap, 8, PERF_NO_RATE },
    { "atomic_cswap", compare_swap, 8, PERF_NO_RATE },
    { "atomic_fetch_inc", fetch_inc, 8, PERF_NO_RATE },
    { "atomic_fetch_add", fetch_add, 8, PERF_NO_RATE },
    { "atomic_fetch_and", fetch_and, 8, PERF_NO_RATE },
    { "atomic_fetch_or", fetch_or, 8, PERF_NO_RATE },
    { "atomic_fetch_xor", fetch_xor, 8, PERF_NO_RATE },
    { "atomic_set", set, 8, PERF_NO_RATE },
    { "atomic_inc", inc, 8, PERF_NO_RATE },
    { "atomic_add", add, 8, PERF_NO_RATE },
    { "atomic_and", and_, 8, PERF_NO_RATE },
    { "atomic_or", or_, 8, PERF_NO_RATE },
    { "atomic_xor", xor_, 8, PERF_NO_RATE },
    { "atomic_add_rate", add_stream, 8, PERF_MOPS },
};

#if PERF_HAVE_15
static long fetched;
static unsigned long ufetched;

/* The 32-bit forms are left out with older libraries: one of them writes past the result. */
FETCHING(fetch_add32, shmem_int_atomic_fetch_add(WORD32, 3, PEER))
FETCHING(compare_swap32, shmem_int_atomic_compare_swap(WORD32, (int)i - 1, (int)i, PEER))
STREAM(fetch_nbi, shmem_long_atomic_fetch_nbi(&fetched, WORD, PEER))
STREAM(swap_nbi, shmem_long_atomic_swap_nbi(&fetched, WORD, i, PEER))
STREAM(compare_swap_nbi, shmem_long_atomic_compare_swap_nbi(&fetched, WORD, i - 1, i, PEER))
STREAM(fetch_inc_nbi, shmem_long_atomic_fetch_inc_nbi(&fetched, WORD, PEER))
STREAM(fetch_add_nbi, shmem_long_atomic_fetch_add_nbi(&fetched, WORD, 3, PEER))
STREAM(fetch_and_nbi, shmem_ulong_atomic_fetch_and_nbi(&ufetched, UWORD, ~0ul, PEER))
STREAM(fetch_or_nbi, shmem_ulong_atomic_fetch_or_nbi(&ufetched, UWORD, 1ul, PEER))
STREAM(fetch_xor_nbi, shmem_ulong_atomic_fetch_xor_nbi(&ufetched, UWORD, 1ul, PEER))

static const struct {
    const char *test;
    perf_fn *fn;
    size_t bytes;
    enum perf_rate rate;
} later[] = {
    { "atomic_fetch_add", fetch_add32, 4, PERF_NO_RATE },
    { "atomic_cswap", compare_swap32, 4, PERF_NO_RATE },
    { "atomic_fetch_nbi", fetch_nbi, 8, PERF_MOPS },
    { "atomic_swap_nbi", swap_nbi, 8, PERF_MOPS },
    { "atomic_cswap_nbi", compare_swap_nbi, 8, PERF_MOPS },
    { "atomic_finc_nbi", fetch_inc_nbi, 8, PERF_MOPS },
    { "atomic_fadd_nbi", fetch_add_nbi, 8, PERF_MOPS },
    { "atomic_fand_nbi", fetch_and_nbi, 8, PERF_MOPS },
    { "atomic_for_nbi", fetch_or_nbi, 8, PERF_MOPS },
    { "atomic_fxor_nbi", fetch_xor_nbi, 8, PERF_MOPS },
};
#endif

/* The instruction itself on the peer's word: what the fetching forms are held against. */
static long *bare_word;
static void bare_fetch_add(size_t bytes, long n)
{
    (void)bytes;
    for (long i = 0; i < n; i++)
        __atomic_fetch_add(bare_word, 3, __ATOMIC_ACQ_REL);
}

void perf_run_amo(void)
{
    if (!perf_wanted("atomics"))
        return;
    bare_word = shmem_ptr(WORD, PEER);
    if (!bare_word)
        bare_word = WORD;
    perf_one_sided("bare_fetch_add", 8, bare_fetch_add, 0, PERF_NO_RATE);
    for (size_t i = 0; i < sizeof fast / sizeof fast[0]; i++)
        perf_one_sided(fast[i].test, fast[i].bytes, fast[i].fn, 0, fast[i].rate);
#if PERF_HAVE_15
    for (size_t i = 0; i < sizeof later / sizeof later[0]; i++)
        perf_one_sided(later[i].test, later[i].bytes, later[i].fn, 0, later[i].rate);
#endif
}
