/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * devmem_far.c - host calls on the device heaps of PEs of other nodes, and with local buffers in device memory, on the stand-in
 * driver and the virtual NIC: every kind of memory on either side, heaps that grow, and atomics of near and far PEs and the
 * owner on the same word.
 *
 * run: n=2 launch=oshrun timeout=100 env=LD_LIBRARY_PATH=tests/fakecuda env=FAKECUDA_KERNELS=tests/fakecuda/kernels.so env=FAKECUDA_GUARD=1
 * nodes: some=one timeout=200 env=LD_LIBRARY_PATH=tests/fakecuda env=FAKECUDA_KERNELS=tests/fakecuda/kernels.so env=FAKECUDA_GUARD=1
 */
#include "config.h"
#include "tap.h"

#include <dlfcn.h>
#include <shmemx.h>
#include <stdbool.h>
#include <stdint.h>

#define MOST (300000 + 3)

enum where { STACK, HEAP, OWN_DEVICE, OTHER_DEVICE, N_WHERE };

static const char *const names[N_WHERE] = { "the stack", "the host heap", "the device heap", "other device memory" };
static unsigned char *local[N_WHERE];
static unsigned char mine[MOST], back[MOST];
static unsigned char *there; /* in the device heap */
static uint64_t *word, *host_word;
static int right, left;

static unsigned char byte_of(int pe, size_t i, unsigned salt)
{
    return (unsigned char)((size_t)pe * 131 + i * 7 + (i >> 8) + salt);
}

static void fill(int pe, size_t len, unsigned salt)
{
    for (size_t i = 0; i < len; i++)
        mine[i] = byte_of(pe, i, salt);
}

static void check(const unsigned char *got, int pe, size_t len, unsigned salt)
{
    size_t bad = 0;

    for (size_t i = 0; i < len; i++)
        bad += got[i] != byte_of(pe, i, salt);
    tap_check_eq(bad, 0u);
}

static void *driver; /* also a real one: the CPU touches no device memory here */

static void *symbol(const char *name)
{
    void *at = driver ? dlsym(driver, name) : NULL;

    if (!at)
        exit(99);
    return at;
}

/* A context of the program's own, before shmem_init. */
static void context(void)
{
    int (*init)(unsigned), (*retain)(void **, int), (*use)(void *);
    void *ctx = NULL;

    driver = dlopen("libcuda.so.1", RTLD_NOW);
    *(void **)&init = symbol("cuInit");
    *(void **)&retain = symbol("cuDevicePrimaryCtxRetain");
    *(void **)&use = symbol("cuCtxSetCurrent");
    if (init(0) || retain(&ctx, 0) || use(ctx))
        exit(99);
}

/* Memory of the GPU that the library knows nothing of, as from cudaMalloc. */
static void *other_device(size_t bytes)
{
    int (*get)(unsigned long long *, size_t);
    unsigned long long at = 0;

    *(void **)&get = symbol("cuMemAlloc_v2");
    return get(&at, bytes) ? NULL : (void *)(uintptr_t)at;
}

/* The driver's copies, by a put to oneself: no test touches device memory with the CPU. */
static void set(enum where w, const void *from, size_t len)
{
    if (w == OTHER_DEVICE)
        shmem_getmem(local[w], memcpy(local[HEAP], from, len), len, tap_me);
    else if (w == OWN_DEVICE)
        shmem_putmem(local[w], from, len, tap_me);
    else
        memcpy(local[w], from, len);
}

static const unsigned char *see(enum where w, size_t len)
{
    if (w == OTHER_DEVICE) {
        shmem_putmem(local[HEAP], local[w], len, tap_me);
        return memcpy(back, local[HEAP], len);
    }
    if (w == OWN_DEVICE)
        shmem_getmem(back, local[w], len, tap_me);
    else
        memcpy(back, local[w], len);
    return back;
}

static void put_and_get(enum where w)
{
    static const size_t sizes[] = { 1, 8, 24, 100, 1000, 70000, MOST };

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        size_t len = sizes[i];
        bool nbi = i % 2;

        fill(tap_me, len, 1 + (unsigned)w);
        set(w, mine, len);
        if (nbi)
            shmem_putmem_nbi(there, local[w], len, right);
        else
            shmem_putmem(there, local[w], len, right);
        shmem_barrier_all();
        shmem_getmem(back, there, len, tap_me);
        check(back, left, len, 1 + (unsigned)w);
        memset(mine, 0, len);
        set(w, mine, len);
        if (nbi) {
            shmem_getmem_nbi(local[w], there, len, right);
            shmem_quiet();
        } else {
            shmem_getmem(local[w], there, len, right);
        }
        check(see(w, len), tap_me, len, 1 + (unsigned)w);
        shmem_barrier_all();
    }
    tap_point("put and get of 1 to %d bytes, the local buffer in %s", MOST, names[w]);
}

/* Host memory there, device memory here. */
static void from_device(void)
{
    unsigned char *host = shmem_malloc(MOST);

    for (int w = OWN_DEVICE; w <= OTHER_DEVICE; w++) {
        for (size_t len = 7; len < MOST; len *= 40) {
            fill(tap_me, len, 9);
            set((enum where)w, mine, len);
            shmem_putmem(host, local[w], len, right);
            shmem_barrier_all();
            check(host, left, len, 9);
            memset(mine, 0, len);
            set((enum where)w, mine, len);
            shmem_getmem(local[w], host, len, right);
            check(see((enum where)w, len), tap_me, len, 9);
            shmem_barrier_all();
        }
    }
    shmem_free(host);
    tap_point("host memory there, device memory here");
}

static void elements_and_strides(enum where w)
{
    long *to = (long *)(void *)there, *from = (long *)(void *)local[w], got[300];

    for (int i = 0; i < 300; i++)
        ((long *)(void *)mine)[i] = tap_me * 1000 + i;
    set(w, mine, 300 * sizeof(long));
    shmem_long_p(&to[900], 7 + tap_me, right);
    shmem_char_p((char *)&to[901], (char)(3 + tap_me), right);
    shmem_long_iput(to, from, 3, 2, 150, right);
    shmem_ibput64(&to[450], from, 10, 20, 5, 15, right);
    shmem_barrier_all();
    tap_check_eq(shmem_long_g(&to[900], right), 7L + tap_me);
    tap_check_eq(shmem_long_g(&to[900], tap_me), 7L + left);
    tap_check_eq(shmem_char_g((char *)&to[901], right), (char)(3 + tap_me));
    for (int i = 0; i < 150; i++)
        tap_check_eq(shmem_long_g(&to[3 * i], tap_me), left * 1000L + 2 * i);
    for (int i = 0; i < 15; i++)
        tap_check_eq(shmem_long_g(&to[450 + 10 * i + 4], tap_me), left * 1000L + 20 * i + 4);
    memset(mine, 0, 300 * sizeof(long));
    set(w, mine, 300 * sizeof(long));
    shmem_long_iget(from, to, 2, 3, 150, right);
    memcpy(got, see(w, sizeof got), sizeof got);
    for (int i = 0; i < 150; i++)
        tap_check(got[2 * i] == tap_me * 1000L + 2 * i && got[2 * i + 1] == 0);
    shmem_barrier_all();
    tap_point("p, g, iput, iget and ibput, the local buffer in %s", names[w]);
}

static void signals(enum where w)
{
    unsigned char *host = shmem_malloc(70000);
    uint64_t value = 0;

    for (size_t len = 5; len <= 70000; len = len < 70000 && len * 30 > 70000 ? 70000 : len * 30) {
        for (int form = 0; form < 6; form++) { /* data and signal in device memory, or one of them; put or nbi */
            uint64_t *sig = form % 3 == 0 ? host_word : word;
            unsigned char *data = form % 3 == 2 ? host : there;

            value++;
            fill(tap_me, len, (unsigned)value);
            set(w, mine, len);
            if (form < 3)
                shmem_putmem_signal(data, local[w], len, sig, value, SHMEM_SIGNAL_SET, right);
            else
                shmem_putmem_signal_nbi(data, local[w], len, sig, 1, SHMEM_SIGNAL_ADD, right);
            shmem_signal_wait_until(sig, SHMEM_CMP_GE, form < 3 ? value : 1);
            shmem_getmem(back, data, len, tap_me);
            check(back, left, len, (unsigned)value);
            shmem_barrier_all();
            shmem_uint64_p(word, 0, tap_me);
            *host_word = 0;
            shmem_barrier_all();
        }
    }
    shmem_free(host);
    tap_point("put with signal, the source in %s", names[w]);
}

static void contexts(void)
{
    static const long options[] = { 0, SHMEM_CTX_PRIVATE, SHMEM_CTX_SERIALIZED, SHMEM_CTX_NOSTORE };
    shmem_ctx_t ctx;

    for (int i = 0; i < 4; i++) {
        tap_check_eq(shmem_ctx_create(options[i], &ctx), 0);
        fill(tap_me, 5000, (unsigned)i);
        set(OWN_DEVICE, mine, 5000);
        shmem_ctx_putmem_nbi(ctx, there, local[OWN_DEVICE], 2500, right);
        shmem_ctx_putmem_nbi(ctx, there + 2500, mine + 2500, 2500, right);
        shmem_ctx_fence(ctx);
        shmem_ctx_uint64_atomic_add(ctx, word, 1, right);
        shmem_ctx_quiet(ctx);
        shmem_uint64_wait_until(word, SHMEM_CMP_EQ, (uint64_t)i + 1);
        shmem_getmem(back, there, 5000, tap_me);
        check(back, left, 5000, (unsigned)i);
        shmem_barrier_all();
        shmem_ctx_destroy(ctx);
    }
    shmem_uint64_p(word, 0, tap_me);
    shmem_barrier_all();
    tap_point("contexts");
}

/* Every PE, the owner among them, changes PE 0's words in every way. */
static void no_add_is_lost(void)
{
    long *at = shmemx_calloc_device(8, sizeof *at), old = -1, *old_there = &at[6];
    int rounds = tap_short() ? 50 : 200, *small = (int *)&at[2];
    unsigned bit = 1u << tap_me % 32;

    for (int i = 0; i < rounds; i++) {
        shmem_long_atomic_inc(at, 0);
        shmem_int_atomic_add(&small[1], 2, 0);
        tap_check(shmem_long_atomic_fetch_add(at, 2, 0) >= 0);
        shmem_long_atomic_fetch_add_nbi(&old, at, 3, 0);
        shmem_signal_add((uint64_t *)&at[1], 1, 0);
        shmem_putmem_signal(there, mine, 0, (uint64_t *)&at[1], 1, SHMEM_SIGNAL_ADD, 0);
        tap_check(!(shmem_uint_atomic_fetch_xor((unsigned *)&at[3], bit, 0) & bit));
        tap_check(shmem_uint_atomic_fetch_and((unsigned *)&at[3], ~bit, 0) & bit);
        if (i % 16 == 0) {
            shmem_quiet();
            tap_check(old >= 0);
        }
    }
    for (int i = 0; i < 10; i++) {
        while (shmem_long_atomic_compare_swap(&at[4], 0, tap_me + 1, 0) != 0)
            ;
        shmem_long_p(&at[5], shmem_long_g(&at[5], 0) + 1, 0);
        shmem_quiet();
        tap_check_eq(shmem_long_atomic_swap(&at[4], 0, 0), tap_me + 1L);
    }
    shmem_long_atomic_fetch_nbi(old_there, &at[4], 0); /* the result goes to device memory */
    shmem_barrier_all();
    tap_check_eq(shmem_long_g(at, 0), 6L * rounds * tap_n);
    tap_check_eq(shmem_long_g(&at[1], 0), 2L * rounds * tap_n);
    tap_check_eq(shmem_int_g(&small[1], 0), 2 * rounds * tap_n);
    tap_check_eq(shmem_int_g(&small[0], 0), 0);
    tap_check_eq(shmem_long_g(&at[3], 0), 0L);
    tap_check_eq(shmem_long_g(&at[5], 0), 10L * tap_n);
    tap_check_eq(shmem_long_atomic_fetch(&at[4], 0), 0L);
    shmem_barrier_all();
    shmem_free(at);
    tap_point("no increment is lost between near, far and own atomics on device memory");
}

/* New keys, and transfers across what was registered before. */
static void growth(void)
{
    size_t bytes = (size_t)20 << 20;
    unsigned char *blocks[3];

    for (int i = 0; i < 3; i++) {
        blocks[i] = shmemx_malloc_device(bytes);
        tap_check(blocks[i] != NULL && shmem_addr_accessible(blocks[i] + bytes - 1, right));
        for (int k = 0; k <= i; k++) {
            for (size_t at = 0; at + 4096 <= bytes; at += bytes / 8 - 1000) {
                fill(tap_me, 4096, (unsigned)(k + i));
                shmem_putmem_nbi(blocks[k] + at, mine, 4096, right);
                shmem_quiet();
            }
        }
        shmem_barrier_all();
        for (int k = 0; k <= i; k++) {
            for (size_t at = 0; at + 4096 <= bytes; at += bytes / 8 - 1000) {
                shmem_getmem(back, blocks[k] + at, 4096, right);
                check(back, tap_me, 4096, (unsigned)(k + i));
            }
        }
        shmem_barrier_all();
    }
    for (int i = 0; i < 3; i++)
        shmem_free(blocks[i]);
    tap_point("the device heap grows while it is in use");
}

int main(void)
{
    unsigned char stack[MOST];
    bool atomics;

    context();
    tap_init();
    right = (tap_me + 1) % tap_n;
    left = (tap_me + tap_n - 1) % tap_n;
    there = shmemx_calloc_device(MOST, 1);
    word = shmemx_calloc_device(1, sizeof *word);
    host_word = shmem_calloc(1, sizeof *host_word);
    local[STACK] = stack;
    local[HEAP] = shmem_malloc(MOST);
    local[OWN_DEVICE] = shmemx_malloc_device(MOST);
    local[OTHER_DEVICE] = other_device(MOST);
    if (!there || !word || !local[HEAP] || !local[OWN_DEVICE] || !local[OTHER_DEVICE])
        return 99;
    tap_ok(shmem_addr_accessible(there, right), "far device memory is accessible");
    for (int w = 0; w < N_WHERE; w++) {
        put_and_get((enum where)w);
        elements_and_strides((enum where)w);
    }
    from_device();
    growth();
    atomics = shmem_team_n_pes(SHMEM_TEAM_SHARED) != tap_n;
#ifdef HAVE_NVCC
    atomics = true; /* kernels of the library do them where there is no NIC */
#endif
    for (int w = 0; w < N_WHERE && atomics; w++)
        signals((enum where)w);
    if (atomics) {
        contexts();
        no_add_is_lost();
    } else {
        tap_skip("atomics and signals", "one node, built without nvcc");
    }
    shmem_barrier_all();
    return tap_done();
}
