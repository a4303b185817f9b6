/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check_blocks.c - with MARROW_CHECK=1 an access past its block, into free space, or a disagreement about a size is fatal.
 *
 * dies: past_block | shmem_putmem\] 101 bytes at 0x[0-9a-f]+ for PE 0 run 1 bytes past the end of their block of 100 bytes
 * dies: get_past_block | shmem_getmem\] 8 bytes at 0x[0-9a-f]+ for PE 0 run 4 bytes past
 * dies: freed | shmem_putmem\] address 0x[0-9a-f]+ \(heap offset [0-9]+, 8 bytes, PE 0\) lies in no allocated block
 * run: n=1,2 env=MARROW_CHECK=1 timeout=30
 */
#include "tap.h"

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    static char private[128];
    char *block, *second;

    tap_init();
    block = shmem_malloc(100);
    second = shmem_malloc(100);
    tap_check(block && second);
    shmem_putmem(block, private, 100, 0);
    shmem_putmem(block + 99, private, 1, 0);
    if (!strcmp(name, "past_block"))
        shmem_putmem(block, private, 101, 0);
    if (!strcmp(name, "get_past_block"))
        shmem_getmem(private, block + 96, 8, 0);
    shmem_free(block);
    if (!strcmp(name, "freed"))
        shmem_putmem(block, private, 8, 0);
    tap_point("accesses inside their blocks pass");
    return tap_done();
}
