/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * oshrun.h - parts of oshrun: options, the job of forked PEs, their output, other launchers.
 *
 * oshrun links nothing of the library; it shares fork_job.h with it.
 */
#ifndef OSHRUN_H
#define OSHRUN_H

#include "bootstrap/fork_job.h"
#include "core/compiler.h"

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define OSH_EXIT_USAGE 2
#define OSH_EXIT_TIMEOUT 124
#define OSH_EXIT_CANNOT_RUN 126
#define OSH_EXIT_NOT_FOUND 127

enum osh_launcher { OSH_FORK, OSH_MPIRUN, OSH_SRUN };

/* One program of the job; `a : b` on the command line gives several. */
struct osh_app {
    int n;       /* PEs; 0: not given */
    char **argv; /* ends with NULL */
    char *wdir;  /* NULL: where oshrun runs */
    /* What the user wrote for mpirun and goes there as it is; fork and srun do without. */
    char **passed;
    int n_passed;
};

struct osh_options {
    enum osh_launcher launcher;
    struct osh_app *apps;
    int n_apps;
    const char *bind; /* --bind-to; NULL: not given */
    bool tag;         /* --tag-output */
    bool pty;         /* PEs write to a terminal of their own, and so line by line */
    bool show;        /* --show: print the launcher's command instead */
    int timeout_s;    /* 0: none */
    int nodes;        /* --nodes: the PEs act as on so many nodes, by MARROW_NODE; 0: they do not */
    char *hosts;      /* --host; NULL: not given */
    char **launcher_args;
    int n_launcher_args;
};

/* oshrun_args.c: fills `opt`; prints usage, help or errors and exits where that ends it. */
void osh_parse(struct osh_options *opt, int argc, char **argv);

/* oshrun_launch.c: becomes mpirun or srun.  Comes back only with an exit status, when that failed. */
int osh_exec_launcher(const struct osh_options *opt);

/* oshrun_guard.c: starts a process that ends this one, soon mpirun, when it hangs. */
void osh_guard_start(void);

/* oshrun_fork.c: runs the job on this host.  Returns oshrun's exit status. */
int osh_fork_run(const struct osh_options *opt);

/* oshrun_util.c */
extern void (*osh_say_to)(const char *line, size_t len); /* NULL: stderr */
void osh_say(const char *fmt, ...) SHMEMI_PRINTF(1, 2); /* "oshrun: ..." and a newline to stderr, in one write */
SHMEMI_NORETURN void osh_die(int status, const char *fmt, ...) SHMEMI_PRINTF(2, 3);
void *osh_alloc(size_t size);               /* zeroed; ends oshrun when there is none */
void *osh_grow(void *old, size_t size);     /* the same for realloc, not zeroed */
int64_t osh_now_ms(void);                   /* monotonic */
/* Of PE `pe` of `n_pes`, in blocks of consecutive PEs. */
static inline int osh_node_of(int nodes, int pe, int n_pes)
{
    return (int)((int64_t)pe * nodes / n_pes);
}
void osh_append(char ***list, int *n, const char *text); /* keeps the list's end a NULL */

/* oshrun_output.c: lines of the PEs to oshrun's stdout and stderr. */
struct osh_sink;

struct osh_stream {
    int fd; /* -1: at its end */
    int pe;
    struct osh_sink *sink;
    char *buf; /* the beginning of a line that has not ended yet */
    size_t len, cap;
    int64_t since_ms; /* when its last bytes came */
};

void osh_output_init(bool tag);
/* A line of oshrun's own, after what the PEs wrote before. */
void osh_output_say(const char *line, size_t len);
struct osh_sink *osh_sink_of(int fd); /* 1 or 2; the same sink for both where they are the same file */
void osh_stream_open(struct osh_stream *s, int fd, int pe, struct osh_sink *sink);
/* Reads what is there; at the end of the stream writes the rest and closes it. */
void osh_stream_read(struct osh_stream *s);
/* Nothing more will be read: writes the rest of a line. */
void osh_stream_close(struct osh_stream *s);
/* Shows the beginning of a line on a terminal when nothing followed it for a while.  ms until that is due, or -1. */
int osh_stream_idle(struct osh_stream *s, int64_t now_ms);
/* A sink whose reader is slow holds its streams back. */
bool osh_sink_full(const struct osh_sink *sink);
bool osh_sink_pending(const struct osh_sink *sink);
int osh_sink_fd(const struct osh_sink *sink);
/* Writes what the reader takes without blocking.  0, or -errno once it is broken (-EPIPE: the reader has gone). */
int osh_sink_flush(struct osh_sink *sink);

#endif
