/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * exit_job.c - shmem_global_exit(7) by PE 0 in awkward places, while the others compute: what exits.sh starts.
 *
 * Usage: exit_job WHERE: finalizes, meets, again, older, reads, signal, prints, threads.
 */
#include <shmem.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static long never;

static void again(void)
{
    shmem_global_exit(8);
}

static void older(void)
{
    if (shmem_my_pe() == 0)
        shmem_global_exit(7);
}

static void on_alarm(int sig)
{
    (void)sig;
    shmem_global_exit(7);
}

static void *read_input(void *arg)
{
    (void)arg;
    return getchar() == EOF ? NULL : arg; /* holds the lock of stdin for as long as nothing comes */
}

static void *end(void *arg)
{
    (void)arg;
    shmem_global_exit(7);
}

static void in_a_place(const char *where)
{
    pthread_t threads[8];

    if (strcmp(where, "finalizes") == 0)
        atexit(shmem_finalize);
    else if (strcmp(where, "meets") == 0)
        atexit(shmem_barrier_all);
    else if (strcmp(where, "again") == 0)
        atexit(again);
    else if (strcmp(where, "older") == 0)
        exit(0);
    else if (strcmp(where, "reads") == 0)
        pthread_create(&threads[0], NULL, read_input, NULL);
    for (int i = 0; i < 8 && strcmp(where, "threads") == 0; i++)
        pthread_create(&threads[i], NULL, end, NULL);
    if (strcmp(where, "signal") == 0 || strcmp(where, "prints") == 0 || strcmp(where, "threads") == 0) {
        signal(SIGALRM, on_alarm);
        alarm(1);
        flockfile(where[0] == 'p' ? stdout : stderr); /* what a signal in the middle of printf finds */
        shmem_long_wait_until(&never, SHMEM_CMP_EQ, 1);
    }
    usleep(100000);
    shmem_global_exit(7);
}

int main(int argc, char **argv)
{
    const char *where = argc > 1 ? argv[1] : "";
    static volatile unsigned long work;
    int provided;

    if (strcmp(where, "older") == 0)
        atexit(older);
    shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided);
    shmem_barrier_all();
    if (shmem_my_pe() == 0)
        in_a_place(where);
    for (;;)
        work++;
}
