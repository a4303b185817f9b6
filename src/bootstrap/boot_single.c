/* SPDX-License-Identifier: BSD-3-Clause */
/* boot_single.c - a program started bare: a job of one PE. */
#include "config.h"

#include "boot_kinds.h"
#include "core/compiler.h"

#include <string.h>
#include <sys/random.h>
#include <unistd.h>

static int single_probe(void)
{
    return 1;
}

static int single_open(struct shmemi_boot *boot)
{
    boot->pe = 0;
    boot->n_pes = 1;
    /* Zero means "the cards carry one", which is right here too should there be no randomness. */
    if (getrandom(boot->job_key, sizeof boot->job_key, GRND_NONBLOCK) != sizeof boot->job_key)
        memset(boot->job_key, 0, sizeof boot->job_key);
    return 0;
}

static int single_allgather(struct shmemi_boot *boot, const void *mine, size_t len, void *all, int timeout_s)
{
    (void)boot;
    (void)timeout_s;
    if (len)
        memmove(all, mine, len);
    return 0;
}

static SHMEMI_NORETURN void single_abort(struct shmemi_boot *boot, int code)
{
    (void)boot;
    _exit(code);
}

static void single_close(struct shmemi_boot *boot)
{
    (void)boot;
}

const struct shmemi_boot_ops shmemi_boot_single = {
    .name = "single",
    .probe = single_probe,
    .open = single_open,
    .allgather = single_allgather,
    .abort = single_abort,
    .close = single_close,
};
