/* SPDX-License-Identifier: BSD-3-Clause */
/* hello.c - the first program: every PE says who and where it is, in order. */
#include <shmem.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static long turn; /* symmetric, like every static variable of the program */

int main(int argc, char **argv)
{
    char host[256] = "?", name[SHMEM_MAX_NAME_LEN];
    int major, minor, me, n;

    shmem_init();
    me = shmem_my_pe();
    n = shmem_n_pes();
    if (argc > 1) {
        int help = strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0;

        if (me == 0)
            fprintf(help ? stdout : stderr, "usage: oshrun -n N hello\n\nEach PE prints its number and its host, PE 0 first.\n");
        shmem_finalize();
        return help ? 0 : 2;
    }
    shmem_info_get_version(&major, &minor);
    shmem_info_get_name(name);
    gethostname(host, sizeof host - 1);

    /* The PE whose turn it is prints, then passes the turn on with a put. */
    if (me > 0)
        shmem_long_wait_until(&turn, SHMEM_CMP_EQ, me);
    if (me == 0)
        printf("%s, OpenSHMEM %d.%d\n", name, major, minor);
    printf("hello from PE %d of %d on %s\n", me, n, host);
    fflush(stdout);
    if (me + 1 < n)
        shmem_long_p(&turn, me + 1, me + 1);

    shmem_finalize();
    return 0;
}
