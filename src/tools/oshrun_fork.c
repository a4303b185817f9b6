/* SPDX-License-Identifier: BSD-3-Clause */
/* oshrun_fork.c - minds the PEs of a job on this host: output, input, signals, failures, the end. */
#include "config.h"

#include "oshrun_job.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define FINALIZED_MS 1000 /* for the others, when one fails after shmem_finalize */
#define GLOBAL_EXIT_MS 0     /* who calls shmem_global_exit has waited for the others to flush */
#define KILL_AFTER_MS 2000   /* from SIGTERM to SIGKILL */
#define SIGNALLED_MS 10000   /* from a SIGTERM or SIGHUP to oshrun to the end of the job */
#define SECOND_INT_MS 2000   /* two SIGINT within this time end the job */
#define GONE_CHECK_MS 1000   /* should a PE's poke be lost */
#define DRAIN_BYTES (4 << 20)

struct input { /* a terminal's: background process groups cannot read it, so oshrun does */
    bool terminal;
    int to; /* PE 0's pipe; -1: closed */
    char buf[4096];
    size_t start, end;
};

static struct osh_job job;
static struct input input = { .to = -1 };
static int n_running;
static pid_t watch_pid;

/* The end: decided once, by the first cause. */
static bool ending;
static int exit_status;
static int64_t term_at = -1, kill_at = -1, give_up_at = -1, timeout_at = -1;
static int user_signal; /* that oshrun got and passed on */
static int64_t int_at = -1;

static void kill_all(int sig)
{
    for (int pe = 0; pe < job.n_pes; pe++)
        if (job.pes[pe].pid > 0 && (job.pes[pe].running || ending))
            kill(-job.pes[pe].pid, sig);
}

static void end_job(int status, int delay_ms)
{
    if (ending)
        return;
    ending = true;
    exit_status = status & 0xff;
    term_at = osh_now_ms() + delay_ms;
}

/* What `slot` tells of a PE whose exit status is 0 although others wait for it. */
static const char *how_far(const struct shmemi_fork_slot *slot)
{
    switch (slot->state) {
    case SHMEMI_FORK_NONE: return "without having called shmem_init";
    case SHMEMI_FORK_JOINED: return "inside shmem_init";
    default: return "after its last shmem_finalize";
    }
}

/* Does a PE wait in an exchange for one that has ended? */
static void check_waiters(void)
{
    struct shmemi_fork_slot *slots = job.shared->slots;
    int waiter = -1;
    uint32_t need = 0;

    if (ending || job.shared->n_gone == 0)
        return;
    for (int pe = 0; pe < job.n_pes && waiter < 0; pe++) {
        /* Pairs with the store in wait_round(): n_gone was raised before this looks. */
        need = __atomic_load_n(&slots[pe].waiting, __ATOMIC_SEQ_CST);
        if (need && !slots[pe].gone)
            waiter = pe;
    }
    for (int pe = 0; pe < job.n_pes && waiter >= 0; pe++) {
        const struct osh_pe *p = &job.pes[pe];

        if (!slots[pe].gone || (int32_t)(__atomic_load_n(&slots[pe].rounds, __ATOMIC_ACQUIRE) - need) >= 0)
            continue;
        osh_say("PE %d (pid %d, %s) exited with status 0 %s, while PE %d waits for it in shmem_init", pe, (int)p->pid,
                p->app->argv[0], how_far(&slots[pe]), waiter);
        end_job(1, 0);
        return;
    }
}

/* Reads what an ended PE has written.  A daemon of its that goes on writing does not keep us. */
static void drain(struct osh_stream *s)
{
    struct pollfd p = { .fd = s->fd, .events = POLLIN };

    for (int bytes = 0; s->fd >= 0 && bytes < DRAIN_BYTES && poll(&p, 1, 0) > 0; bytes += 65536)
        osh_stream_read(s);
}

static void report_exec(const struct osh_pe *p, int error)
{
    const char *prog = p->app->argv[0];
    bool path = strchr(prog, '/') != NULL, relative = p->app->wdir && prog[0] != '/';
    bool hint = error == ENOENT && !path && access(prog, X_OK) == 0;

    if (p->app->wdir && access(p->app->wdir, X_OK))
        osh_say("cannot run in folder %s: %s", p->app->wdir, strerror(errno));
    else if (error == ENOENT && path && !relative && access(prog, X_OK) == 0)
        osh_say("cannot execute %s: it is there, but not the interpreter that its first line or the loader that its header names",
                prog);
    else
        osh_say("cannot execute %s: %s%s%s%s", prog, strerror(error), hint ? " in PATH; is ./" : "",
                hint ? prog : "", hint ? " meant?" : "");
}

static void report_failure(int pe, const siginfo_t *info)
{
    const struct osh_pe *p = &job.pes[pe];
    int error = job.shared->slots[pe].exec_errno;

    if (info->si_code == CLD_EXITED) {
        if (error)
            report_exec(p, error);
        else
            osh_say("PE %d (pid %d, %s) exited with status %d", pe, (int)p->pid, p->app->argv[0], info->si_status);
        /* After shmem_finalize nobody waits for it, and the others are likely about to end too. */
        end_job(info->si_status, job.shared->slots[pe].state == SHMEMI_FORK_LEFT ? FINALIZED_MS : 0);
        return;
    }
    if (info->si_status != user_signal)
        osh_say("PE %d (pid %d, %s) was killed by signal %d (%s)%s", pe, (int)p->pid, p->app->argv[0],
                info->si_status, strsignal(info->si_status), info->si_code == CLD_DUMPED ? ", core dumped" : "");
    end_job(128 + info->si_status, 0);
}

/* A PE asked for the end of the job (shmem_global_exit, or a fatal error in the library). */
static void check_global_exit(void)
{
    uint64_t word = __atomic_load_n(&job.shared->ending, __ATOMIC_ACQUIRE);
    int pe = SHMEMI_FORK_ENDING_PE(word), code = SHMEMI_FORK_ENDING_CODE(word);

    if (!word || ending || pe >= job.n_pes)
        return;
    if (code)
        osh_say("PE %d (pid %d, %s) ended the job with status %d", pe, (int)job.pes[pe].pid,
                job.pes[pe].app->argv[0], code);
    end_job(code, GLOBAL_EXIT_MS);
}

/*
 * Looks at the PEs that have ended.  Of several at once a signal's victim is the likely cause, then a global exit,
 * then an exit status.
 */
static void check_pes(void)
{
    int killed = -1, failed = -1;
    siginfo_t killed_info, failed_info;

    for (int pe = 0; pe < job.n_pes; pe++) {
        struct osh_pe *p = &job.pes[pe];
        siginfo_t info = { 0 };

        if (!p->running || waitid(P_PID, (id_t)p->pid, &info, WEXITED | WNOHANG | WNOWAIT) || info.si_pid == 0)
            continue;
        p->running = false;
        n_running--;
        drain(&p->out);
        drain(&p->err);
        __atomic_store_n(&job.shared->slots[pe].gone, 1, __ATOMIC_RELEASE);
        __atomic_add_fetch(&job.shared->n_gone, 1, __ATOMIC_SEQ_CST);
        if (info.si_code != CLD_EXITED && killed < 0) {
            killed = pe;
            killed_info = info;
        } else if (info.si_code == CLD_EXITED && info.si_status && failed < 0) {
            failed = pe;
            failed_info = info;
        }
    }
    if (killed >= 0 && !ending)
        report_failure(killed, &killed_info);
    check_global_exit();
    if (failed >= 0 && !ending)
        report_failure(failed, &failed_info);
    check_waiters();
}

static void pass_on(int sig)
{
    int64_t now = osh_now_ms();

    if (n_running == 0) /* only the reader of our output keeps us */
        exit(128 + sig);
    if (sig == SIGINT && int_at >= 0 && now - int_at < SECOND_INT_MS)
        end_job(128 + sig, 0);
    if (sig == SIGINT)
        int_at = now;
    if ((sig == SIGTERM || sig == SIGHUP) && give_up_at < 0)
        give_up_at = now + SIGNALLED_MS;
    if (sig != SIGCONT && sig != SIGTSTP)
        user_signal = sig;
    kill_all(sig);
    if (sig == SIGTSTP)
        raise(SIGSTOP);
}

static void read_signals(int fd)
{
    struct signalfd_siginfo info[16];
    ssize_t n = read(fd, info, sizeof info);

    for (ssize_t i = 0; i < n / (ssize_t)sizeof info[0]; i++)
        if (info[i].ssi_signo != SIGCHLD)
            pass_on((int)info[i].ssi_signo);
    check_pes();
}

static int open_signals(void)
{
    static const int passed[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP, SIGCONT };
    struct sigaction old;
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    for (size_t i = 0; i < sizeof passed / sizeof passed[0]; i++)
        /* What nohup or a shell's background job ignores stays ignored. */
        if (sigaction(passed[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaddset(&set, passed[i]);
    signal(SIGCHLD, SIG_DFL);
    job.old_sigpipe = signal(SIGPIPE, SIG_IGN);
    job.old_sigxfsz = signal(SIGXFSZ, SIG_IGN); /* a file size limit: the error is enough */
    sigprocmask(SIG_BLOCK, &set, &job.old_mask);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void open_input(void)
{
    int fds[2];

    job.stdin_fd = STDIN_FILENO;
    if (!isatty(STDIN_FILENO) || pipe2(fds, O_CLOEXEC))
        return;
    fcntl(fds[1], F_SETFL, O_NONBLOCK);
    job.stdin_fd = fds[0];
    input.terminal = true;
    input.to = fds[1];
}

static void close_input(void)
{
    if (input.to >= 0)
        close(input.to);
    input.to = -1;
}

static void move_input(bool readable)
{
    ssize_t n;

    if (input.to < 0)
        return;
    if (readable && input.start == input.end) {
        n = read(STDIN_FILENO, input.buf, sizeof input.buf);
        if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN)) {
            close_input();
            return;
        }
        input.start = 0;
        input.end = n > 0 ? (size_t)n : 0;
    }
    if (input.start < input.end) {
        n = write(input.to, input.buf + input.start, input.end - input.start);
        if (n > 0)
            input.start += (size_t)n;
        else if (n < 0 && errno != EAGAIN && errno != EINTR)
            close_input(); /* PE 0 does not read any more */
    }
}

static bool in_foreground(void)
{
    pid_t group = tcgetpgrp(STDIN_FILENO);

    return group < 0 || group == getpgrp(); /* < 0: it does not control us, and so does not stop us */
}

/* The earlier of two waits in ms, where -1 is for ever. */
static int sooner(int a, int64_t b)
{
    if (b < 0)
        return a;
    return a < 0 || b < a ? (int)b : a;
}

static int until(int wait_ms, int64_t at, int64_t now)
{
    return at < 0 ? wait_ms : sooner(wait_ms, at > now ? at - now : 0);
}

/* Does what is due now; returns the ms until more will be. */
static int run_timers(void)
{
    int64_t now = osh_now_ms();
    int wait_ms = -1;

    if (timeout_at >= 0 && now >= timeout_at && !ending && n_running) {
        osh_say("the job did not end within %d s (--timeout)", job.opt->timeout_s);
        end_job(OSH_EXIT_TIMEOUT, 0);
    }
    if (give_up_at >= 0 && now >= give_up_at && !ending && n_running)
        end_job(128 + user_signal, 0);
    if (term_at >= 0 && now >= term_at) {
        term_at = -1;
        kill_at = now + KILL_AFTER_MS;
        kill_all(SIGTERM);
        kill_all(SIGCONT); /* also to those that stand still */
    }
    if (kill_at >= 0 && now >= kill_at) {
        kill_at = -1;
        kill_all(SIGKILL);
    }
    for (int pe = 0; pe < job.n_pes; pe++) {
        wait_ms = sooner(wait_ms, osh_stream_idle(&job.pes[pe].out, now));
        wait_ms = sooner(wait_ms, osh_stream_idle(&job.pes[pe].err, now));
    }
    if (n_running) {
        wait_ms = until(wait_ms, ending ? -1 : timeout_at, now);
        wait_ms = until(wait_ms, ending ? -1 : give_up_at, now);
        wait_ms = until(wait_ms, term_at, now);
        wait_ms = until(wait_ms, kill_at, now);
        if (job.shared->n_gone && !ending)
            wait_ms = sooner(wait_ms, GONE_CHECK_MS);
        if (input.to >= 0)
            wait_ms = sooner(wait_ms, 500); /* is oshrun in the foreground now? */
    }
    return wait_ms;
}

static void flush_sinks(void)
{
    struct osh_sink *out = osh_sink_of(STDOUT_FILENO), *err = osh_sink_of(STDERR_FILENO);
    static bool told;
    int rc;

    osh_sink_flush(err);
    rc = osh_sink_flush(out);
    if (rc == 0 || told)
        return;
    told = true;
    if (rc != -EPIPE) {
        osh_say("cannot write standard output: %s", strerror(-rc));
        end_job(1, 0);
    }
    end_job(128 + SIGPIPE, 0); /* as a program that writes to a pipe without a reader */
}

static void add_poll(struct pollfd *fds, int *n, int fd, short events)
{
    fds[*n].fd = fd;
    fds[*n].events = events;
    fds[(*n)++].revents = 0;
}

/* Fills fds: signals, input, PE 0's pipe, the sinks that are behind, then two streams a PE. */
static int poll_set(struct pollfd *fds, int signal_fd)
{
    struct osh_sink *sinks[2] = { osh_sink_of(STDOUT_FILENO), osh_sink_of(STDERR_FILENO) };
    bool unsent = input.start < input.end;
    int n = 0;

    add_poll(fds, &n, signal_fd, POLLIN);
    add_poll(fds, &n, input.to >= 0 && !unsent && in_foreground() ? STDIN_FILENO : -1, POLLIN);
    add_poll(fds, &n, input.to >= 0 && unsent ? input.to : -1, POLLOUT);
    for (int i = 0; i < 2; i++)
        add_poll(fds, &n, osh_sink_pending(sinks[i]) ? osh_sink_fd(sinks[i]) : -1, POLLOUT);
    for (int pe = 0; pe < job.n_pes; pe++) {
        struct osh_pe *p = &job.pes[pe];

        add_poll(fds, &n, osh_sink_full(p->out.sink) ? -1 : p->out.fd, POLLIN);
        add_poll(fds, &n, osh_sink_full(p->err.sink) ? -1 : p->err.fd, POLLIN);
    }
    return n;
}

/* Polls the entries that have a descriptor; poll refuses an array longer than the limit of open files. */
static void poll_open(struct pollfd *fds, struct pollfd *open, int n, int wait_ms)
{
    int n_open = 0;

    for (int i = 0; i < n; i++)
        if (fds[i].fd >= 0)
            open[n_open++] = fds[i];
    if (poll(open, (nfds_t)n_open, wait_ms) <= 0)
        return;
    n_open = 0;
    for (int i = 0; i < n; i++)
        if (fds[i].fd >= 0)
            fds[i].revents = open[n_open++].revents;
}

static void mind(int signal_fd)
{
    size_t size = (size_t)(5 + 2 * job.n_pes) * sizeof(struct pollfd);
    struct pollfd *fds = osh_alloc(size), *open = osh_alloc(size);

    while (n_running) {
        int n = poll_set(fds, signal_fd);

        poll_open(fds, open, n, run_timers());
        /* Output before deaths: what a PE wrote comes before the line about its end. */
        for (int pe = 0; pe < job.n_pes; pe++) {
            if (fds[5 + 2 * pe].revents)
                osh_stream_read(&job.pes[pe].out);
            if (fds[6 + 2 * pe].revents)
                osh_stream_read(&job.pes[pe].err);
        }
        flush_sinks();
        if (fds[0].revents)
            read_signals(signal_fd);
        if (fds[1].revents || fds[2].revents)
            move_input(fds[1].revents);
    }
    free(fds);
    free(open);
}

static void finish_output(int signal_fd)
{
    struct osh_sink *sinks[2] = { osh_sink_of(STDOUT_FILENO), osh_sink_of(STDERR_FILENO) };

    for (int pe = 0; pe < job.n_pes; pe++) {
        drain(&job.pes[pe].out);
        drain(&job.pes[pe].err);
        osh_stream_close(&job.pes[pe].out);
        osh_stream_close(&job.pes[pe].err);
    }
    for (;;) {
        struct pollfd fds[3];
        int n = 0;

        flush_sinks();
        if (!osh_sink_pending(sinks[0]) && !osh_sink_pending(sinks[1]))
            return;
        add_poll(fds, &n, signal_fd, POLLIN);
        for (int i = 0; i < 2; i++)
            add_poll(fds, &n, osh_sink_pending(sinks[i]) ? osh_sink_fd(sinks[i]) : -1, POLLOUT);
        poll(fds, 3, -1);
        if (fds[0].revents)
            read_signals(signal_fd);
    }
}

static void start_pes(void)
{
    int pe = 0;

    for (int a = 0; a < job.opt->n_apps; a++) {
        for (int i = 0; i < job.opt->apps[a].n; i++, pe++) {
            job.pes[pe].app = &job.opt->apps[a];
            if (osh_spawn_pe(&job, pe)) {
                end_job(1, 0);
                return;
            }
            n_running++;
        }
    }
}

int osh_fork_run(const struct osh_options *opt)
{
    int signal_fd;

    job.opt = opt;
    for (int a = 0; a < opt->n_apps; a++)
        job.n_pes += opt->apps[a].n;
    job.pes = osh_alloc((size_t)job.n_pes * sizeof *job.pes);
    osh_output_init(opt->tag);
    osh_say_to = osh_output_say;
    for (int pe = 0; pe < job.n_pes; pe++) {
        job.pes[pe].out = (struct osh_stream){ .fd = -1, .sink = osh_sink_of(STDOUT_FILENO) };
        job.pes[pe].err = (struct osh_stream){ .fd = -1, .sink = osh_sink_of(STDERR_FILENO) };
    }
    signal_fd = open_signals();
    open_input();
    if (osh_job_create(&job))
        return 1;
    if (opt->timeout_s)
        timeout_at = osh_now_ms() + (int64_t)opt->timeout_s * 1000;
    start_pes();
    close(job.shared_fd);
    if (input.terminal)
        close(job.stdin_fd);
    watch_pid = osh_watch_start(&job);
    mind(signal_fd);
    /* A failed job leaves nothing: also not what its PEs started.  They are zombies still, so the ids are ours. */
    if (ending)
        kill_all(SIGKILL);
    finish_output(signal_fd);
    osh_watch_stop(watch_pid);
    return exit_status;
}
