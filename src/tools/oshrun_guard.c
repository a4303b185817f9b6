/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * oshrun_guard.c - ends an mpirun that hangs.
 *
 * The mpirun of Open MPI 4 can lock itself up when a process dies while it connects to it: mpirun then says that the
 * job ends, collects none of its dead processes and waits for ever.  It was oshrun, so its caller has nobody else to
 * notice: a process beside it looks for children that are dead and stay uncollected, which a sound mpirun never has.
 */
#include "config.h"

#include "oshrun.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LOOK_MS = 500, PATIENCE_MS = 10000, LOOKS = 10 };

/* State letter of a process as in /proc/PID/stat, or 0 when there is none. */
static char state_of(long pid)
{
    char name[64], text[512] = "";
    const char *end;
    FILE *f;

    snprintf(name, sizeof name, "/proc/%ld/stat", pid);
    f = fopen(name, "re");
    if (!f)
        return 0;
    if (!fgets(text, sizeof text, f))
        text[0] = '\0';
    fclose(f);
    end = strrchr(text, ')'); /* the name before it may hold anything */
    return end && end[1] == ' ' ? end[2] : 0;
}

/* A dead child of one thread that is not collected, or 0. */
static long dead_child_of(const char *children)
{
    FILE *f = fopen(children, "re");
    long pid, dead = 0;

    if (!f)
        return 0;
    while (!dead && fscanf(f, "%ld", &pid) == 1)
        if (state_of(pid) == 'Z')
            dead = pid;
    fclose(f);
    return dead;
}

static long dead_child(pid_t parent)
{
    char name[320];
    struct dirent *entry;
    long dead = 0;
    DIR *tasks;

    snprintf(name, sizeof name, "/proc/%d/task", (int)parent);
    tasks = opendir(name);
    while (tasks && !dead && (entry = readdir(tasks))) {
        snprintf(name, sizeof name, "/proc/%d/task/%s/children", (int)parent, entry->d_name);
        if (entry->d_name[0] != '.')
            dead = dead_child_of(name);
    }
    if (tasks)
        closedir(tasks);
    return dead;
}

/* Never returns; ends with mpirun. */
static SHMEMI_NORETURN void guard(pid_t mpirun, int pidfd)
{
    struct pollfd p = { .fd = pidfd, .events = POLLIN };
    long dead = 0;
    int64_t since = 0;
    int looks = 0;

    while (poll(&p, 1, LOOK_MS) <= 0) {
        long now_dead = dead_child(mpirun);
        char state = state_of(mpirun);

        if (!now_dead || now_dead != dead || state == 'T' || state == 't') {
            dead = now_dead;
            since = osh_now_ms();
            looks = 0;
        } else if (++looks >= LOOKS && osh_now_ms() - since > PATIENCE_MS) { /* on a busy CPU too it had its turns */
            osh_say("mpirun hangs: for %d s it has not noticed that its process %ld is dead; killing it",
                    PATIENCE_MS / 1000, dead);
            kill(mpirun, SIGKILL);
            break;
        }
    }
    _exit(0);
}

void osh_guard_start(void)
{
    pid_t self = getpid(), middle;
    int pidfd = (int)syscall(SYS_pidfd_open, self, 0);

    if (pidfd < 0) /* an old kernel: mpirun goes unguarded */
        return;
    middle = fork();
    if (middle == 0) {
        if (fork() != 0)
            _exit(0); /* what is to become mpirun must have no child that it does not know */
        setsid();
        prctl(PR_SET_NAME, "oshrun-guard");
        /* Nobody may wait for the end of a pipe that only this process holds. */
        if (dup2(pidfd, STDIN_FILENO) < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0 || close_range(3, ~0u, 0))
            _exit(0);
        guard(self, STDIN_FILENO);
    }
    close(pidfd);
    if (middle > 0)
        waitpid(middle, NULL, 0);
}
