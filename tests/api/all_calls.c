/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * all_calls.c - calls each typed and sized routine once on one PE.
 *
 * run: n=1 launch=bare,oshrun timeout=60
 */
#define SHMEM_NO_GENERICS
#include "../mp/tap.h"

#include "call_buffers.h"

static void call_all(void)
{
#define CALL(name, args) (void)name args; calls++;
#include "api_calls.h"
}

int main(void)
{
    char zero[64] = { 0 };

    tap_init();
    for (int i = 0; i < SHMEM_SYNC_SIZE; i++)
        pSync[i] = SHMEM_SYNC_VALUE;
    tap_check_eq(shmem_ctx_create(0, &ctx), 0);
    call_all();
    shmem_ctx_quiet(ctx);
    shmem_quiet();
    tap_check_eq(calls, 1794); /* 1,694 of the synopses, 28 of short and ushort, 72 old atomics of more types */
    tap_point("each typed and sized routine returns");
    tap_check(memcmp(buf_ivar, zero, sizeof zero) == 0 && memcmp(buf_ivars, zero, sizeof zero) == 0 &&
              memcmp(buf_cmp_values, zero, sizeof zero) == 0);
    tap_point("waits and tests change nothing");
    for (int i = 0; i < SHMEM_SYNC_SIZE; i++)
        tap_check_eq(pSync[i], SHMEM_SYNC_VALUE);
    tap_point("the active-set routines leave pSync as it was");
    shmem_ctx_destroy(ctx);
    return tap_done();
}
