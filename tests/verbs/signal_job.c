/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * signal_job.c - PE 0 puts with signals to PE 1, each complete before the next, so that none shares a post with another:
 * signals.sh reads from the virtual NIC's counters what one of them costs.
 *
 * Usage: signal_job COUNT BYTES set|add
 */
#include <shmem.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t signal_word;

int main(int argc, char **argv)
{
    long count = argc > 1 ? atol(argv[1]) : 0, bad = 0;
    size_t len = argc > 2 ? (size_t)atol(argv[2]) : 8;
    int op = argc > 3 && !strcmp(argv[3], "add") ? SHMEM_SIGNAL_ADD : SHMEM_SIGNAL_SET;
    unsigned char *data, *source;

    shmem_init();
    data = shmem_calloc(1, len);
    source = shmem_malloc(len);
    if (!data || !source)
        shmem_global_exit(1);
    memset(source, 0x5a, len);
    shmem_barrier_all();
    if (shmem_my_pe() == 0) {
        for (long i = 0; i < count; i++) {
            if (i & 1)
                shmem_putmem_signal_nbi(data, source, len, &signal_word, op == SHMEM_SIGNAL_ADD ? 1 : (uint64_t)i + 1, op, 1);
            else
                shmem_putmem_signal(data, source, len, &signal_word, op == SHMEM_SIGNAL_ADD ? 1 : (uint64_t)i + 1, op, 1);
            shmem_quiet();
        }
    } else {
        shmem_signal_wait_until(&signal_word, SHMEM_CMP_GE, (uint64_t)count);
        for (size_t i = 0; count && i < len; i++)
            bad += data[i] != 0x5a;
        printf("%s\n", bad || signal_word != (uint64_t)count ? "wrong" : "right");
    }
    shmem_barrier_all();
    shmem_finalize();
    return bad != 0;
}
