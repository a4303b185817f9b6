/* SPDX-License-Identifier: BSD-3-Clause */
/* reinit.c - init and finalize are counted and can be repeated; nothing grows from round to round. */
#include "tap.h"

#include <dirent.h>

static long word = 3;

/* AddressSanitizer keeps freed blocks, 256 MB of them, to see late uses: here few, or memory is never flat. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "quarantine_size_mb=1";
}

/*
 * A leak of every round has grown by eight from the rounds FIRST to SECOND - 1 to those after them.  The least of several
 * rounds counts, since the virtual NIC closes its sockets only when the NICs of the other PEs have gone; what PMIx opens
 * once is no leak.
 */
enum { ROUNDS = 20, FIRST = 3, SECOND = 11, GROWTH = 4 };

/* The descriptors of this process and what each is. */
struct files {
    int n;
    char what[64][96];
};

static void open_files(struct files *f)
{
    DIR *d = opendir("/proc/self/fd");
    struct dirent *e;
    char name[300], target[80];
    ssize_t len;

    f->n = 0;
    while (d && (e = readdir(d)) && f->n < 64) {
        if (e->d_name[0] == '.' || atoi(e->d_name) == dirfd(d))
            continue;
        snprintf(name, sizeof name, "/proc/self/fd/%s", e->d_name);
        len = readlink(name, target, sizeof target - 1);
        target[len > 0 ? len : 0] = '\0';
        snprintf(f->what[f->n++], sizeof f->what[0], "%.8s -> %s", e->d_name, target);
    }
    if (d)
        closedir(d);
}

static void show_files(const char *when, const struct files *f)
{
    for (int i = 0; i < f->n; i++)
        fprintf(stderr, "PE %d, %s: %s\n", tap_me, when, f->what[i]);
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
    shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
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

/* Keeps in least whichever of the two has fewer. */
static void keep_fewer(struct files *least, int round)
{
    static struct files now;

    open_files(&now);
    if (round == FIRST || round == SECOND || now.n < least->n)
        *least = now;
}

int main(void)
{
    static struct files early, late;
    long pages = 0;
    int bad = 0;

    for (int round = 0; round < ROUNDS; round++) {
        bad |= one_round(round);
        if (round >= FIRST)
            keep_fewer(round < SECOND ? &early : &late, round);
        if (round == FIRST)
            pages = resident_pages();
    }
    pages = resident_pages() - pages;
    tap_init();
    tap_check_eq(bad, 0);
    tap_check(late.n - early.n < GROWTH);
    if (late.n - early.n >= GROWTH) {
        show_files("early", &early);
        show_files("late", &late);
    }
    tap_check(pages <= 256);
    if (pages > 256)
        fprintf(stderr, "PE %d: %ld pages more than after round %d\n", tap_me, pages, FIRST);
    tap_point("20 rounds of init and finalize, descriptors and memory flat");
    return tap_done();
}
