/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bootstrap.h - who are my peers: the five calls that a launcher must give.
 *
 * The launcher is not trusted (DESIGN, rules): its fence exchanges data and is
 * never used as a barrier, node membership is derived by core from the host
 * names in the cards, and a dead peer is detected by the library itself.
 *
 * A bootstrap knows nothing of core.  It logs (log.h) what it decides and
 * returns 0 or -errno.
 */
#ifndef SHMEMI_BOOTSTRAP_H
#define SHMEMI_BOOTSTRAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct shmemi_boot;

struct shmemi_boot_ops {
    const char *name; /* "pmix", "fork", "single": what shmem-info shows */

    /*
     * Is this process a member of a job of this kind?  Cheap, looks only at
     * the environment.  1 yes, 0 no, -errno when the environment says yes but
     * contradicts itself (logged, with the variable named).
     */
    int (*probe)(void);

    /* Joins the job; fills pe, n_pes, job_key of `boot`.  Takes no longer than boot->join_s: else it ends the process. */
    int (*open)(struct shmemi_boot *boot);

    /*
     * Every PE contributes `len` bytes and receives n_pes * len bytes in PE
     * order.  Collective.  Bounded by `timeout_s` (0: wait for ever); a PE
     * that does not come is named in the log and gives -ETIMEDOUT.
     */
    int (*allgather)(struct shmemi_boot *boot, const void *mine, size_t len, void *all,
                     int timeout_s);

    /*
     * Ends the whole job with exit status `code` (also 0: shmem_global_exit(0)
     * must end every PE and give status 0).  Does not return.
     */
    void (*abort)(struct shmemi_boot *boot, int code) __attribute__((noreturn));

    /* Leaves the job.  Called after core's own barrier, so every PE gets here. */
    void (*close)(struct shmemi_boot *boot);
};

struct shmemi_boot {
    const struct shmemi_boot_ops *ops;
    int pe;
    int n_pes;
    uint64_t job_key[2]; /* same on all PEs of the job, unlike any other job's; all zero when the
                            launcher offers none and the cards must carry one */
    /*
     * abort(0) ends only the caller: this launcher counts PEs that it kills as a failure, so for
     * shmem_global_exit(0) every PE must be told by core and call abort(0) itself.
     */
    bool leave_on_zero;
    int join_s; /* seconds that joining may take; 0: no limit */
};

/*
 * Picks the bootstrap (MARROW_BOOTSTRAP = auto | pmix | fork | single; auto
 * probes in that order), refuses the silent singleton (launch.md 0.6: an
 * environment that says N > 1 processes where no bootstrap can find them is an
 * error that names the variable and the remedy) and opens it.
 */
int shmemi_boot_open(struct shmemi_boot *boot, const char *wanted, int join_s);

#endif
