/* SPDX-License-Identifier: BSD-3-Clause */
/* oshrun.c - starts an OpenSHMEM program as N PEs: by itself on this host, or through mpirun or srun. */
#include "config.h"

#include "oshrun.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/* Descriptors 0 to 2 must be taken, or what oshrun opens next would end up as a PE's output. */
static void open_standard(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

int main(int argc, char **argv)
{
    static struct osh_options opt;

    open_standard();
    osh_parse(&opt, argc, argv);
    if (opt.launcher != OSH_FORK)
        return osh_exec_launcher(&opt);
    if (opt.show) {
        printf("fork\n");
        return 0;
    }
    return osh_fork_run(&opt);
}
