/* SPDX-License-Identifier: BSD-3-Clause */
/* reinit.c - init and finalize are counted and can be repeated; nothing grows from round to round. */
#include "tap.h"

#include <dirent.h>
#include <malloc.h>
#include <stdbool.h>

static long word = 3;

/* AddressSanitizer keeps freed blocks, 256 MB of them, to see late uses: here few, or memory is never flat. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "quarantine_size_mb=1";
}

/*
 * What a process has.  A leak of every round has grown by eight from the rounds FIRST to SECOND - 1 to those after them.
 * The least of several rounds counts, since the virtual NIC closes what joins it to the NICs of other PEs only when
 * those have gone; what PMIx opens once is no leak, and it keeps what PEs have exchanged.
 */
enum { ROUNDS = 20, FIRST = 3, SECOND = 11, GROWTH = 4, LEAK_BYTES = 32768, PMIX_BYTES = 131072, MOST_PAGES = 256 };

struct state {
    long files, maps, bytes;
    char what[64][96]; /* the descriptors */
};

static void open_files(struct state *s)
{
    DIR *d = opendir("/proc/self/fd");
    struct dirent *e;
    char name[300], target[80];
    ssize_t len;

    s->files = 0;
    while (d && (e = readdir(d)) && s->files < 64) {
        if (e->d_name[0] == '.' || atoi(e->d_name) == dirfd(d))
            continue;
        snprintf(name, sizeof name, "/proc/self/fd/%s", e->d_name);
        len = readlink(name, target, sizeof target - 1);
        target[len > 0 ? len : 0] = '\0';
        snprintf(s->what[s->files++], sizeof s->what[0], "%.8s -> %s", e->d_name, target);
    }
    if (d)
        closedir(d);
}

/* Nothing under AddressSanitizer, whose allocator maps more and more. */
static long mappings(void)
{
    FILE *f = fopen("/proc/self/maps", "r");
    long n = 0;
    int c;

#ifdef __SANITIZE_ADDRESS__
    if (f)
        fclose(f);
    f = NULL;
#endif
    while (f && (c = getc(f)) != EOF)
        n += c == '\n';
    if (f)
        fclose(f);
    return n;
}

/* Of malloc; nothing under AddressSanitizer, which finds leaks by itself. */
static long bytes_in_use(void)
{
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33)
    struct mallinfo2 m = mallinfo2();

    return (long)(m.uordblks + m.hblkhd);
#else
    return 0;
#endif
}

static void keep_least(struct state *least, bool first)
{
    static struct state now;

    now.bytes = bytes_in_use();
    now.maps = mappings();
    open_files(&now);
    if (first || now.files < least->files) {
        least->files = now.files;
        memcpy(least->what, now.what, sizeof now.what);
    }
    if (first || now.maps < least->maps)
        least->maps = now.maps;
    if (first || now.bytes < least->bytes)
        least->bytes = now.bytes;
}

static void show(const char *when, const struct state *s)
{
    fprintf(stderr, "PE %d, %s: %ld descriptors, %ld mappings, %ld bytes\n", tap_me, when, s->files, s->maps, s->bytes);
    for (int i = 0; i < s->files; i++)
        fprintf(stderr, "PE %d, %s: %s\n", tap_me, when, s->what[i]);
}

static long resident_pages(void)
{
    long pages = -1;
    FILE *f = fopen("/proc/self/statm", "r");

    if (f && fscanf(f, "%*s %ld", &pages) != 1)
        pages = -1;
    if (f)
        fclose(f);
    return pages;
}

static int one_round(int round)
{
    int bad = 0, me, n, provided = -1, up = 0;
    long *heap;

    shmem_query_initialized(&up);
    bad |= up;
    shmem_init();
    bad |= shmem_init_thread(SHMEM_THREAD_MULTIPLE, round % 2 ? &provided : NULL) != 0;
    if (round % 2 == 0)
        shmem_query_thread(&provided);
    bad |= provided != SHMEM_THREAD_MULTIPLE;
    me = shmem_my_pe();
    n = shmem_n_pes();
    shmem_finalize(); /* the inner one: acts as a barrier */
    shmem_query_initialized(&up);
    bad |= !up;
    heap = shmem_calloc(10, sizeof *heap);
    shmem_long_p(&heap[3], 100 * round + me, (me + 1) % n);
    shmem_long_p(&word, 7 * round + me, (me + 1) % n);
    shmem_barrier_all();
    bad |= heap[3] != 100 * round + (me + n - 1) % n;
    bad |= word != 7 * round + (me + n - 1) % n;
    shmem_free(heap);
    shmem_finalize();
    bad |= word != 7 * round + (me + n - 1) % n; /* the value stays, private again */
    word = 3;
    return bad;
}

int main(void)
{
    static struct state early, late;
    long pages = 0, most = getenv("PMIX_NAMESPACE") ? PMIX_BYTES : LEAK_BYTES;
    int bad = 0;
    bool grown;

    for (int round = 0; round < ROUNDS; round++) {
        bad |= one_round(round);
        if (round >= FIRST)
            keep_least(round < SECOND ? &early : &late, round == FIRST || round == SECOND);
        if (round == FIRST)
            pages = resident_pages();
    }
    pages = resident_pages() - pages;
    grown = late.files - early.files >= GROWTH || late.maps - early.maps >= GROWTH || late.bytes - early.bytes >= most;
    tap_init();
    tap_check_eq(bad, 0);
    tap_check(!grown);
    if (grown) {
        show("early", &early);
        show("late", &late);
    }
    /* The virtual NIC's buffers are touched bit by bit. */
    if (getenv("SOFTHCA_DIR"))
        pages = 0;
    tap_check(pages <= MOST_PAGES);
    tap_point("20 rounds of init and finalize, descriptors and memory flat");
    return tap_done();
}
