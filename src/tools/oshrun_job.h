/* SPDX-License-Identifier: BSD-3-Clause */
/* oshrun_job.h - the job of forked PEs: shared by the part that starts them and the part that minds them. */
#ifndef OSH_JOB_H
#define OSH_JOB_H

#include "oshrun.h"

#include <signal.h>

struct osh_pe {
    pid_t pid; /* also its process group; stays a zombie, and so ours, until the job is over */
    bool running;
    const struct osh_app *app;
    struct osh_stream out, err;
};

struct osh_job {
    const struct osh_options *opt;
    struct shmemi_fork_job *shared;
    int shared_fd; /* a high number, so that shell wrappers do not hit it */
    int n_pes;
    struct osh_pe *pes;
    int stdin_fd;          /* what PE 0 reads; -1: /dev/null */
    sigset_t old_mask;     /* what oshrun was started with, for the PEs */
    void (*old_sigpipe)(int), (*old_sigxfsz)(int);
};

/* oshrun_spawn.c.  0 or -errno, logged. */
int osh_job_create(struct osh_job *job);
int osh_spawn_pe(struct osh_job *job, int pe);
/* A process that outlives a kill -9 of oshrun for long enough to end the PEs' process groups.  -1: none. */
pid_t osh_watch_start(const struct osh_job *job);
void osh_watch_stop(pid_t pid);

#endif
