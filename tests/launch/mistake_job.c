/* SPDX-License-Identifier: BSD-3-Clause */
/* mistake_job.c - a program of a newcomer; its argument says what goes wrong.  mistakes.sh reads what it is told. */
#include <shmem.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";

    shmem_init();
    if (!strcmp(what, "full")) {
        void *p = shmem_malloc((size_t)1 << 40), *q = shmem_calloc(1, (size_t)1 << 40);

        printf("PE %d got %s\n", shmem_my_pe(), p || q ? "memory" : "NULL");
    } else {
        printf("PE %d of %d on %s\n", shmem_my_pe(), shmem_n_pes(), getenv("MARROW_NODE") ? getenv("MARROW_NODE") : "this node");
    }
    shmem_finalize();
    return 0;
}
