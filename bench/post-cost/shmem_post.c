/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shmem_post.c - an 8-byte put of the library from PE 0 to the last PE.
 *
 *     shmem_post long_p | put8 | put8_nbi
 */
#include "measured.h"

#include <shmem.h>

static long target;
static long value = 42;
static int last;

static void long_p(void)
{
    shmem_long_p(&target, value, last);
}

static void put8(void)
{
    shmem_put8(&target, &value, 8, last);
}

static void put8_nbi(void)
{
    shmem_put8_nbi(&target, &value, 8, last);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    void (*post)(void) = !strcmp(what, "long_p") ? long_p : !strcmp(what, "put8") ? put8 : put8_nbi;

    if (post == put8_nbi && strcmp(what, "put8_nbi") != 0)
        die("which post?");
    shmem_init();
    last = shmem_n_pes() - 1;
    if (shmem_my_pe() == 0)
        measure(post, shmem_quiet);
    shmem_barrier_all();
    if (shmem_my_pe() == last && target != value)
        die("the value did not arrive");
    shmem_finalize();
    return 0;
}
