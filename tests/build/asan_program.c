/* SPDX-License-Identifier: BSD-3-Clause */
/* asan_program.c - a program built with AddressSanitizer against a library that is not; with an argument it does wrong. */
#include <shmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static char name[7] = "static"; /* odd sizes: each gets a forbidden zone behind it */
static long box[5], flag;
int shared_int = 4;
static char page[3 * 4096 + 5] = { 1 };

static int child_sees_a_copy(void)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        box[0] = -1;
        _exit(shared_int == 5 && page[4097] == 7 ? 0 : 1);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0 && box[0] != -1;
}

static int do_wrong(const char *what)
{
    volatile int n = sizeof box / sizeof box[0];
    char *volatile block = malloc(1);

    if (!strcmp(what, "store"))
        box[n] = 1;
    else if (!strcmp(what, "put"))
        shmem_long_put(box, box + 1, (size_t)n, 0); /* reads one too many */
    else
        free(block + n);
    return 0;
}

int main(int argc, char **argv)
{
    int me, n, next, bad = 0;

    shmem_init();
    me = shmem_my_pe();
    n = shmem_n_pes();
    next = (me + 1) % n;
    if (argc > 1)
        return do_wrong(argv[1]);
    for (long i = 0; i < 5; i++)
        shmem_long_p(&box[i], 10 * i + me, next);
    shmem_char_put(name, me % 2 ? "odd" : "even", 5 - (size_t)(me % 2), next);
    page[4097] = 7;
    shared_int++;
    shmem_barrier_all();
    for (long i = 0; i < 5; i++)
        bad |= box[i] != 10 * i + (me + n - 1) % n;
    bad |= strcmp(name, (me + n - 1) % n % 2 ? "odd" : "even") != 0;
    bad |= !child_sees_a_copy();
    shmem_long_atomic_inc(&flag, next);
    shmem_long_wait_until(&flag, SHMEM_CMP_EQ, 1);
    shmem_barrier_all();
    shmem_finalize();
    bad |= page[4097] != 7 || flag != 1 || shared_int != 5; /* private again */
    shmem_init();
    bad |= shmem_n_pes() != n;
    shmem_finalize();
    printf("PE %d: %s\n", me, bad ? "wrong" : "right");
    return bad;
}
