/* SPDX-License-Identifier: BSD-3-Clause */
/* ext.c - the routines of shmemx.h. */
#include "amo.h"
#include "team.h"

#include <shmemx.h>
#include <time.h>

SHMEMI_API(double, shmemx_wtime, (void))
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

SHMEMI_API(int, shmemx_team_barrier, (shmem_team_t team))
{
    struct shmemi_team *t = shmemi_team_get(team, "shmemx_team_barrier");

    shmemi_quiet(SHMEM_CTX_DEFAULT, "shmemx_team_barrier");
    shmemi_team_sync(t, "shmemx_team_barrier");
    return 0;
}

SHMEMI_API(void, shmemx_signal_op, (uint64_t *sig_addr, uint64_t signal, int sig_op, int pe))
{
    const char *call = "shmemx_signal_op";

    if (sig_op != SHMEM_SIGNAL_SET && sig_op != SHMEM_SIGNAL_ADD)
        shmemi_fatal(call, "sig_op %d is neither SHMEM_SIGNAL_SET nor SHMEM_SIGNAL_ADD", sig_op);
    shmemi_amo(SHMEM_CTX_DEFAULT, sig_op == SHMEM_SIGNAL_SET ? SHMEMI_AMO_SET : SHMEMI_AMO_ADD, sig_addr, &signal, NULL, NULL,
               sizeof signal, pe, false, call);
}
