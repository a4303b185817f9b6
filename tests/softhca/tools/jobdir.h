/* SPDX-License-Identifier: BSD-3-Clause */
/* The folder of a job: the fake piece of /sys, and the process that removes it. */
#ifndef SOFTHCA_JOBDIR_H
#define SOFTHCA_JOBDIR_H

#include <stdbool.h>
#include <sys/types.h>

struct jobdir {
    char path[256];
    int hold_fd;                 /* every process of the job inherits it: the folder lives while one is open */
    pid_t cleaner;
};

enum { JOBDIR_MAX_DEVICES = 8 };

/* 0, or -1 with a message printed. */
int jobdir_make(struct jobdir *job, bool eth, unsigned devices);
/* Says that something, a fork perhaps, has failed (errno). */
void jobdir_failed(const char *what);
/* Removes folders of this user whose cleaner is gone. */
void jobdir_sweep(void);

#endif
