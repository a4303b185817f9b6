/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lost_peer.c - a PE that dies, leaves or never comes ends the wait of the others, with its number.
 *
 * dies: killed | (PE 1|process rank 1|task 1: |Process name: \[\[[0-9]+,1\],1\])
 * dies: leaves | shmem_barrier_all\] waits for PE 1, which has exited without calling shmem_finalize
 * dies: late | gave up after [0-9.]+ s waiting for .*PE 1
 * dies: never_set | gave up after [0-9.]+ s waiting for 0x[0-9a-f]+ == 1, which is 0 now
 * dies: leaves_wait | (all other PEs have exited without calling shmem_finalize|PEs, PE 1 among them, have exited)
 * dies: leaves_lock | (shmem_set_lock\] waits for PE 1, which has exited without calling shmem_finalize|gave up after [0-9.]+ s waiting for the lock)
 * run: n=2,3 launch=oshrun env=MARROW_TIMEOUT=10 timeout=60
 */
#include "tap.h"

static long flag, lock;

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";

    tap_init();
    if (!strcmp(name, "never_set"))
        shmem_long_wait_until(&flag, SHMEM_CMP_EQ, 1);
    if (!strcmp(name, "leaves_lock")) {
        if (tap_me == 1)
            shmem_set_lock(&lock);
        shmem_barrier_all();
        if (tap_me == 1)
            exit(0);
        shmem_set_lock(&lock);
    }
    if (!strcmp(name, "leaves_wait")) {
        if (tap_me == 1)
            exit(0);
        shmem_long_wait_until(&flag, SHMEM_CMP_EQ, 1);
    }
    if (*name && tap_me == 1) {
        if (!strcmp(name, "killed"))
            raise(SIGSEGV);
        if (!strcmp(name, "leaves"))
            exit(0);
        sleep(30);
    }
    shmem_barrier_all();
    tap_ok(1, "nobody is lost");
    return tap_done();
}
