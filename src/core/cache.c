/* SPDX-License-Identifier: BSD-3-Clause */
/* cache.c - the cache control calls of old codes (deprecated since 1.3): coherent machines have nothing to do. */
#include "check.h"

#include <shmem.h>

SHMEMI_API(void, shmem_clear_cache_inv, (void)) { shmemi_check_init("shmem_clear_cache_inv"); }
SHMEMI_API(void, shmem_set_cache_inv, (void)) { shmemi_check_init("shmem_set_cache_inv"); }
SHMEMI_API(void, shmem_clear_cache_line_inv, (void *dest))
{
    (void)dest;
    shmemi_check_init("shmem_clear_cache_line_inv");
}
SHMEMI_API(void, shmem_set_cache_line_inv, (void *dest))
{
    (void)dest;
    shmemi_check_init("shmem_set_cache_line_inv");
}
SHMEMI_API(void, shmem_udcflush, (void)) { shmemi_check_init("shmem_udcflush"); }
SHMEMI_API(void, shmem_udcflush_line, (void *dest))
{
    (void)dest;
    shmemi_check_init("shmem_udcflush_line");
}
