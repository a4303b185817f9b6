/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * far_idle.c - the thread that posts for kernels sleeps when they are silent: what it takes of a CPU in a second without
 * requests, and that it is there again for the next one.  Run by far_nodes.sh over the proxy.
 * gpu: no
 */
#include "launch.h"

#include <dirent.h>
#include <time.h>

#define MOST_MS 50

struct args {
    uint64_t *word;
    uint64_t value;
    int to;
};

KERNEL(put, struct args)
{
    shmem_uint64_p(a.word, a.value, a.to);
    shmem_quiet();
}

/* Nanoseconds that the thread has run, or -1: there is none. */
static long long ran_ns(void)
{
    DIR *dir = opendir("/proc/self/task");
    long long ns = -1;

    for (struct dirent *d; dir && (d = readdir(dir));) {
        char path[300], name[32] = "";
        FILE *f;

        snprintf(path, sizeof path, "/proc/self/task/%s/comm", d->d_name);
        f = fopen(path, "r");
        if (!f)
            continue;
        if (!fgets(name, sizeof name, f))
            name[0] = 0;
        fclose(f);
        if (strncmp(name, "marrow-chan", 11))
            continue;
        snprintf(path, sizeof path, "/proc/self/task/%s/schedstat", d->d_name);
        f = fopen(path, "r");
        if (f && fscanf(f, "%lld", &ns) != 1)
            ns = -1;
        if (f)
            fclose(f);
    }
    if (dir)
        closedir(dir);
    return ns;
}

static void rest(long ms)
{
    struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

    nanosleep(&t, NULL);
}

int main(void)
{
    long long before, after;
    struct args a;

    dev_init();
    a.word = (uint64_t *)dev_malloc(8);
    a.to = (tap_me + 1) % tap_n;
    a.value = 1;
    LAUNCH(put, struct args, a, 1, 1);
    rest(100);
    before = ran_ns();
    rest(1000);
    after = ran_ns();
    tap_ok(before >= 0 && after - before < MOST_MS * 1000000ll, "a silent second takes less than %d ms of a CPU", MOST_MS);
    if (tap_me == 0)
        printf("# %.2f ms\n", (double)(after - before) / 1e6);
    a.value = 2;
    LAUNCH(put, struct args, a, 1, 1);
    shmem_barrier_all();
    tap_ok(*a.word == 2, "and the next request is served");
    return dev_done();
}
