/* SPDX-License-Identifier: BSD-3-Clause */
/* exit.h - ending the job before its time, and noticing that the process ends. */
#ifndef SHMEMI_EXIT_H
#define SHMEMI_EXIT_H

#include "compiler.h"

#include <stdbool.h>

/* Ends every PE of the job with this status, without running exit handlers. */
SHMEMI_COLD SHMEMI_NORETURN void shmemi_end_job(int code);

/* Called by waiting PEs: leaves with the job's status if another PE has asked for the end. */
SHMEMI_COLD void shmemi_exit_if_ending(void);

/* Installs, once a process, the handler that notices exit(); under srun also a listener for the others' end. */
int shmemi_exit_watch(void);
void shmemi_exit_unwatch(void);

/* From now on exit() finalizes the library (start_pes has no finalize of its own). */
void shmemi_exit_finalizes(void);

/* Is this thread inside shmem_global_exit, in the program's exit handlers? */
bool shmemi_exit_in_handlers(void);
/* Is this process a forked child of the PE? */
bool shmemi_exit_is_child(void);

#endif
