/* SPDX-License-Identifier: BSD-3-Clause */
/* oshrun_spawn.c - makes the job's memory and starts the PEs, none of which outlives oshrun. */
#include "config.h"

#include "oshrun_job.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#define FIRST_HIGH_FD 200

static struct rlimit user_files; /* what the PEs get back */

/* Three descriptors a PE: room for them, without changing what the PEs see. */
static void raise_file_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &user_files))
        return;
    limit = user_files;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

/* An environment inherited from an outer launcher would make a PE a member of that launcher's job. */
static void forget_outer_launcher(void)
{
    static const char *const prefixes[] = { "PMIX_", "PMI_", "OMPI_COMM_WORLD_" };
    extern char **environ;
    bool again = true;

    while (again) {
        again = false;
        for (char **e = environ; *e && !again; e++) {
            for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
                char name[256];
                size_t len = strcspn(*e, "=");

                if (strncmp(*e, prefixes[i], strlen(prefixes[i])) || strncmp(*e, "PMIX_MCA_", 9) == 0 ||
                    len >= sizeof name)
                    continue;
                memcpy(name, *e, len);
                name[len] = '\0';
                unsetenv(name);
                again = true;
                break;
            }
        }
    }
}

int osh_job_create(struct osh_job *job)
{
    size_t size = shmemi_fork_size(job->n_pes);
    struct shmemi_fork_job *s;
    int fd, high;

    raise_file_limit();
    forget_outer_launcher();
    fd = memfd_create("oshrun", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, (off_t)size)) {
        osh_say("cannot make the job's exchange area of %zu bytes: %s", size, strerror(errno));
        return -ENOMEM;
    }
    s = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (s == MAP_FAILED) {
        osh_say("cannot map the job's exchange area of %zu bytes: %s", size, strerror(errno));
        return -ENOMEM;
    }
    high = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_HIGH_FD);
    if (high >= 0) {
        close(fd);
        fd = high;
    }
    s->magic = SHMEMI_FORK_MAGIC;
    s->version = SHMEMI_FORK_VERSION;
    s->n_pes = (uint32_t)job->n_pes;
    s->oshrun_pid = getpid();
    if (getrandom(s->key, sizeof s->key, 0) != sizeof s->key) {
        osh_say("no random bytes for the job's key: %s", strerror(errno));
        return -EIO;
    }
    job->shared = s;
    job->shared_fd = fd;
    return 0;
}

/*
 * A pseudo-terminal, so that the C library writes whole lines as they come and a crash loses none;
 * it changes no byte.  -errno where there is none to be had.
 */
static int open_pty(int fds[2])
{
    int unlock = 0;
    struct termios t;
    int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
    int slave;

    if (master < 0)
        return -errno;
    if (ioctl(master, TIOCSPTLCK, &unlock) ||
        (slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC)) < 0) {
        int rc = -errno;

        close(master);
        return rc;
    }
    if (tcgetattr(slave, &t) == 0) {
        cfmakeraw(&t);
        tcsetattr(slave, TCSANOW, &t);
    }
    fds[0] = master;
    fds[1] = slave;
    return 0;
}

static void bind_pe(int pe)
{
    cpu_set_t allowed, one;
    int n, want;

    if (sched_getaffinity(0, sizeof allowed, &allowed) || (n = CPU_COUNT(&allowed)) == 0)
        return;
    want = pe % n;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &allowed) || want-- > 0)
            continue;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        sched_setaffinity(0, sizeof one, &one);
        return;
    }
}

static void set_environment(const struct osh_job *job, int pe)
{
    const struct shmemi_fork_job *s = job->shared;
    char text[96], number[16];

    snprintf(text, sizeof text, "%d:%d:%d:%016llx%016llx", job->shared_fd, pe, job->n_pes,
             (unsigned long long)s->key[0], (unsigned long long)s->key[1]);
    setenv(SHMEMI_FORK_VAR, text, 1);
    snprintf(number, sizeof number, "%d", pe);
    setenv("MARROW_PE", number, 1);
    snprintf(number, sizeof number, "%d", job->n_pes);
    setenv("MARROW_N_PES", number, 1);
    if (job->opt->nodes) {
        snprintf(number, sizeof number, "n%d", osh_node_of(job->opt->nodes, pe, job->n_pes));
        setenv("MARROW_NODE", number, 1);
    }
}

/* The child's part: never returns. */
static SHMEMI_NORETURN void become_pe(struct osh_job *job, int pe, int in, int out, int err)
{
    const struct osh_app *app = job->pes[pe].app;
    struct shmemi_fork_slot *slot = &job->shared->slots[pe];

    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != job->shared->oshrun_pid)
        _exit(1); /* oshrun died before it could take us along */
    if (dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 || dup2(err, STDERR_FILENO) < 0 ||
        fcntl(job->shared_fd, F_SETFD, 0) || (app->wdir && chdir(app->wdir))) {
        slot->exec_errno = errno;
        _exit(OSH_EXIT_CANNOT_RUN);
    }
    set_environment(job, pe);
    if (job->opt->bind && strcmp(job->opt->bind, "core") == 0)
        bind_pe(pe);
    if (user_files.rlim_cur)
        setrlimit(RLIMIT_NOFILE, &user_files);
    signal(SIGPIPE, job->old_sigpipe);
    signal(SIGXFSZ, job->old_sigxfsz);
    sigprocmask(SIG_SETMASK, &job->old_mask, NULL);
    execvp(app->argv[0], app->argv);
    slot->exec_errno = errno;
    _exit(errno == ENOENT ? OSH_EXIT_NOT_FOUND : OSH_EXIT_CANNOT_RUN);
}

static void close_pair(int fds[2])
{
    for (int i = 0; i < 2; i++)
        if (fds[i] >= 0)
            close(fds[i]);
}

int osh_spawn_pe(struct osh_job *job, int pe)
{
    struct osh_pe *p = &job->pes[pe];
    int out[2] = { -1, -1 }, err[2] = { -1, -1 };
    int in = pe == 0 ? job->stdin_fd : -1;
    int null = -1, rc;

    if (in < 0)
        in = null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (in < 0 || ((!job->opt->pty || open_pty(out)) && pipe2(out, O_CLOEXEC)) || pipe2(err, O_CLOEXEC))
        goto no_files;
    p->pid = fork();
    if (p->pid == 0)
        become_pe(job, pe, in, out[1], err[1]);
    rc = -errno;
    if (null >= 0)
        close(null);
    if (p->pid < 0) {
        osh_say("cannot start PE %d of %d: %s%s", pe, job->n_pes, strerror(-rc),
                rc == -EAGAIN ? "; this user may have no more processes (ulimit -u)" : "");
        close_pair(out);
        close_pair(err);
        return rc;
    }
    setpgid(p->pid, p->pid); /* both sides do: whoever comes first */
    close(out[1]);
    close(err[1]);
    osh_stream_open(&p->out, out[0], pe, osh_sink_of(STDOUT_FILENO));
    osh_stream_open(&p->err, err[0], pe, osh_sink_of(STDERR_FILENO));
    p->running = true;
    return 0;

no_files:
    rc = -errno;
    osh_say("cannot start PE %d of %d: no descriptors for its input and output: %s", pe, job->n_pes, strerror(errno));
    close_pair(out);
    close_pair(err);
    if (null >= 0)
        close(null);
    return rc;
}

static SHMEMI_NORETURN void watch(const struct osh_job *job, int pipe_fd)
{
    char byte;
    ssize_t n;

    prctl(PR_SET_NAME, "oshrun-watch");
    setsid(); /* out of reach of the terminal and of a kill of oshrun's group */
    dup2(pipe_fd, 0);
    if (close_range(1, ~0u, 0)) /* a kernel before 5.9 */
        for (int fd = 1; fd < 65536; fd++)
            close(fd);
    do
        n = read(0, &byte, 1);
    while (n < 0 && errno == EINTR);
    /* The pipe's other end closed: oshrun is dead.  Its direct children are killed by the kernel, theirs by us. */
    for (int pe = 0; pe < job->n_pes; pe++)
        if (job->pes[pe].pid > 0)
            kill(-job->pes[pe].pid, SIGKILL);
    _exit(0);
}

pid_t osh_watch_start(const struct osh_job *job)
{
    int fds[2];
    pid_t pid;

    if (pipe2(fds, O_CLOEXEC))
        return -1;
    pid = fork();
    if (pid == 0)
        watch(job, fds[0]);
    close(fds[0]);
    return pid; /* fds[1] stays open as long as oshrun lives */
}

void osh_watch_stop(pid_t pid)
{
    if (pid <= 0)
        return;
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}
