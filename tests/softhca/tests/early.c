/* SPDX-License-Identifier: BSD-3-Clause */
/* A library whose constructor opens the device; preloaded behind the virtual NIC, it runs before that one's own. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

__attribute__((constructor)) static void early(void)
{
    int fd = open("/dev/infiniband/uverbs0", O_RDWR | O_CLOEXEC);

    dprintf(STDOUT_FILENO, "opened early: %s\n", fd < 0 ? strerror(errno) : "yes");
    if (fd >= 0)
        close(fd);
}
