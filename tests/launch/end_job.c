/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * end_job.c - how a job of the whole library ends: what end.sh starts.
 *
 * Usage: end_job HOW CODE WHAT
 *   HOW   what PE 1 (or the only PE) does: global (shmem_global_exit), exit, _exit, kill, return, closed (returns 1 where
 *         descriptor 0, 1 or 2 is anything but /dev/null), handler (returns; finalizes two seconds later, in a handler)
 *   CODE  its status
 *   WHAT  what the others do meanwhile: barrier, compute, sleep
 * Each PE first writes "PE n was here" to stdout and leaves "kept n" in the buffer of ./kept.n.
 */
#include <shmem.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void be_busy(const char *what)
{
    static volatile unsigned long work;

    if (strcmp(what, "barrier") == 0)
        shmem_barrier_all();
    else if (strcmp(what, "compute") == 0)
        for (;;)
            work++;
    else
        for (;;)
            sleep(1);
}

/* What is printed to a closed descriptor must go nowhere, and not into memory of the library's. */
static int only_dev_null(void)
{
    char path[32], target[64];

    for (int fd = 0; fd <= 2; fd++) {
        ssize_t len;

        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        len = readlink(path, target, sizeof target - 1);
        if (len < 0)
            return 1;
        target[len] = '\0';
        if (strcmp(target, "/dev/null"))
            return 1;
    }
    return 0;
}

/* As the destructor of a static C++ object might. */
static void finalize_late(void)
{
    if (shmem_my_pe() == 1)
        sleep(2);
    shmem_finalize();
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "return", *what = argc > 3 ? argv[3] : "barrier";
    int code = argc > 2 ? atoi(argv[2]) : 0, me;
    char name[32];
    FILE *kept;

    alarm(60);
    if (strcmp(how, "handler") == 0 && atexit(finalize_late))
        return 99;
    shmem_init();
    me = shmem_my_pe();
    if (strcmp(how, "closed") == 0)
        code = only_dev_null();
    snprintf(name, sizeof name, "kept.%d", me);
    kept = fopen(name, "w");
    if (!kept)
        shmem_global_exit(99);
    fprintf(kept, "kept %d\n", me);
    printf("PE %d was here\n", me);
    shmem_barrier_all();
    if (strcmp(how, "handler") == 0)
        return code;
    if (me != (shmem_n_pes() > 1) && strcmp(how, "return") && strcmp(how, "closed"))
        be_busy(what);
    usleep(200000); /* the others are in it by now */
    if (strcmp(how, "global") == 0)
        shmem_global_exit(code);
    if (strcmp(how, "exit") == 0)
        exit(code);
    if (strcmp(how, "_exit") == 0)
        _exit(code);
    if (strcmp(how, "kill") == 0)
        kill(getpid(), SIGSEGV);
    shmem_finalize();
    fclose(kept);
    return code;
}
