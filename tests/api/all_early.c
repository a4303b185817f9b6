/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * all_early.c - each typed and sized routine, called before init and after finalize, says so with its name.
 *
 * run: n=1 launch=bare timeout=240
 */
#define SHMEM_NO_GENERICS
#include "../mp/tap.h"

#include "call_buffers.h"

#include <sys/wait.h>

static const char *const names[] = {
#define CALL(name, args) #name,
#include "api_calls.h"
#undef CALL
};

static void call(int which)
{
    switch (which) {
#define CALL(name, args) case __COUNTER__ - FIRST: (void)name args; calls++; break;
        enum { FIRST = __COUNTER__ + 1 };
#include "api_calls.h"
#undef CALL
    }
}

/* Calls it in a child; true when that ends with status 1 and the message. */
static int is_refused(int which, const char *when)
{
    char want[128], said[1024];
    ssize_t n, len = 0;
    int fds[2], status = -1;
    pid_t pid;

    if (pipe(fds))
        return 0;
    pid = fork();
    if (pid == 0) {
        dup2(fds[1], STDERR_FILENO);
        alarm(20);
        call(which);
        _exit(0);
    }
    close(fds[1]);
    while ((n = read(fds[0], said + len, sizeof said - 1 - (size_t)len)) > 0)
        len += n;
    close(fds[0]);
    said[len] = '\0';
    snprintf(want, sizeof want, "%s] called %s", names[which], when);
    if (waitpid(pid, &status, 0) == pid && status == 1 << 8 && strstr(said, want))
        return 1;
    fprintf(stderr, "# %s: wait status %#x, said: %s\n", names[which], (unsigned)status, said);
    return 0;
}

static int count_refused(const char *when)
{
    int n = 0;

    fflush(stdout);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        n += is_refused((int)i, when);
    return n;
}

int main(void)
{
    const int all = (int)(sizeof names / sizeof names[0]);
    int early = count_refused("before shmem_init"), late;

    shmem_init();
    shmem_finalize();
    late = count_refused("after shmem_finalize");
    tap_init();
    alarm(0);
    tap_check(all > 1700);
    tap_check_eq(early, all);
    tap_point("each call is refused before shmem_init");
    tap_check_eq(late, all);
    tap_point("each call is refused after shmem_finalize");
    return tap_done();
}
