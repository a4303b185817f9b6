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

static int open_files(void)
{
    DIR *d = opendir("/proc/self/fd");
    int n = 0;

    while (d && readdir(d))
        n++;
    if (d)
        closedir(d);
    return n;
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

int main(void)
{
    int bad = 0, files = 0;
    long pages = 0;

    for (int round = 0; round < 20; round++) {
        bad |= one_round(round);
        if (round == 3) {
            files = open_files();
            pages = resident_pages();
        }
    }
    files = open_files() - files;
    pages = resident_pages() - pages;
    tap_init();
    tap_check_eq(bad, 0);
    tap_check_eq(files, 0);
    tap_check(pages <= 256);
    tap_point("20 rounds of init and finalize, descriptors and memory flat");
    return tap_done();
}
