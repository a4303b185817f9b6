/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * far_bad.c - kernels whose work requests fail: the job must end with a message, never pass.  Run by far_nodes.sh, and by
 * maint/check-gpu.sh.
 * gpu: no
 *
 *     far_bad key     waits for a put under a wrong key
 *     far_bad wait    posts such a put and waits for a flag that nobody sets
 *     far_bad queue   puts until a queue fails (the virtual NIC is asked for that)
 *     far_bad late    all but the last PE meet in a barrier: it must be the one that is named
 */
#include "launch.h"

#include <unistd.h>

struct args {
    uint64_t *word;
    int to;
};

KERNEL(put_and_quiet, struct args)
{
    shmem_uint64_p(a.word + shmemi_thread_in_block(), 1, a.to);
    shmem_quiet();
}

KERNEL(put_and_wait, struct args)
{
    shmem_uint64_p(a.word + 1, 1, a.to);
    shmem_uint64_wait_until(a.word, SHMEM_CMP_EQ, 7);
}

KERNEL(put_many, struct args)
{
    for (int i = 0; i < 300; i++) {
        shmem_uint64_p(a.word + shmemi_thread_in_block(), 1, a.to);
        shmem_quiet();
    }
}

/* Makes PE `pe`'s device heap known under a wrong key. */
static void spoil_key(int pe)
{
    struct shmemi_dev_state state;
    struct shmemi_dev_far far;

    dev_state(&state);
    dev_read(&far, state.nic.peers + pe, sizeof far);
    far.dheap_rkey ^= 0x00ffff00u;
    dev_write(state.nic.peers + pe, &far, sizeof far);
}

KERNEL(meet, struct args)
{
    (void)a;
    shmemx_barrier_all_block();
}

/* The last PE does not come, for longer than MARROW_TIMEOUT. */
static int late(void)
{
    struct args a = { 0, 0 };

    if (tap_me == tap_n - 1)
        sleep(100);
    else
        LAUNCH(meet, struct args, a, 1, 33);
    printf("the program has ended\n");
    return 0;
}

int main(int argc, char **argv)
{
    const char *kind = argc > 1 ? argv[1] : "";
    struct args a;

    dev_init();
    if (!strcmp(kind, "late"))
        return late();
    a.word = (uint64_t *)dev_malloc(64 * 8);
    a.to = (tap_me + 1) % tap_n;
    if (tap_me == 0) {
        if (strcmp(kind, "queue"))
            spoil_key(a.to);
        if (!strcmp(kind, "key"))
            LAUNCH(put_and_quiet, struct args, a, 1, 33);
        else if (!strcmp(kind, "wait"))
            LAUNCH(put_and_wait, struct args, a, 1, 1);
        else
            LAUNCH(put_many, struct args, a, 1, 8);
        printf("the kernel has ended\n");
    }
    shmem_barrier_all();
    printf("the program has ended\n");
    return 0;
}
