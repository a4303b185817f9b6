/* SPDX-License-Identifier: BSD-3-Clause */
/* bootstrap.c - picks the bootstrap from the environment and refuses N silent jobs of one. */
#include "config.h"

#include "bootstrap.h"

#include "boot_kinds.h"
#include "core/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* In the order of the search.  single accepts everything and so comes last. */
static const struct shmemi_boot_ops *const kinds[] = {
    &shmemi_boot_pmix,
    &shmemi_boot_fork,
    &shmemi_boot_single,
};
#define N_KINDS (sizeof kinds / sizeof kinds[0])

/* Where launchers say how many processes they started, and which of them this is. */
static const struct {
    const char *size, *rank;
} size_vars[] = {
    { "SLURM_STEP_NUM_TASKS", "SLURM_PROCID" }, /* salloc and sbatch set neither or one: no members of a step */
    { "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK" },
    { "PMI_SIZE", "PMI_RANK" },
    { "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK" },
    { "FLUX_JOB_SIZE", "FLUX_TASK_RANK" },
};

int shmemi_boot_env_size(const char **var_out, bool *first_out)
{
    for (size_t i = 0; i < sizeof size_vars / sizeof size_vars[0]; i++) {
        const char *text = getenv(size_vars[i].size), *rank = getenv(size_vars[i].rank);
        char *end;
        long n;

        if (!text || !rank)
            continue;
        errno = 0;
        n = strtol(text, &end, 10);
        if (errno || end == text || *end || n < 1 || n > INT32_MAX)
            continue;
        *var_out = size_vars[i].size;
        *first_out = atoi(rank) == 0;
        return (int)n;
    }
    return 0;
}

int shmemi_boot_name_missing(int n_pes, int (*missing)(const void *arg, int pe), const void *arg, char *buf,
                             size_t len)
{
    int count = 0;
    size_t used = 0;

    buf[0] = '\0';
    for (int pe = 0; pe < n_pes; pe++) {
        if (!missing(arg, pe))
            continue;
        if (count++ < 8 && used < len)
            used += (size_t)snprintf(buf + used, len - used, "%sPE %d", used ? ", " : "", pe);
    }
    if (count > 8 && used < len)
        snprintf(buf + used, len - used, " and %d more", count - 8);
    return count;
}

/* An environment that says N > 1 although nobody here can find the other N - 1. */
static int refuse_silent_single(void)
{
    const char *var = NULL;
    bool first = true;
    int n = shmemi_boot_env_size(&var, &first);

    if (n <= 1)
        return 0;
    if (!first)
        return -ENOTCONN; /* said by the first, for all */
    shmemi_err("boot",
               "%s=%d: a launcher started %d processes, but gives none of the ways to find each other that this "
               "library knows (PMIX_NAMESPACE is not set); start the program with %s, with oshrun, or set "
               "MARROW_BOOTSTRAP=single if %d separate jobs of one PE are wanted",
               var, n, n, strncmp(var, "SLURM", 5) == 0 ? "srun --mpi=pmix" : "a launcher that offers PMIx", n);
    return -ENOTCONN;
}

static const struct shmemi_boot_ops *find_kind(const char *name)
{
    for (size_t i = 0; i < N_KINDS; i++)
        if (strcmp(kinds[i]->name, name) == 0)
            return kinds[i];
    return NULL;
}

static int pick_auto(const struct shmemi_boot_ops **ops_out)
{
    for (size_t i = 0; i < N_KINDS; i++) {
        int rc = kinds[i]->probe();

        if (rc < 0)
            return rc;
        if (rc == 0)
            continue;
        if (kinds[i] == &shmemi_boot_single) {
            rc = refuse_silent_single();
            if (rc)
                return rc;
        }
        *ops_out = kinds[i];
        return 0;
    }
    return -ENOTCONN; /* not reached: single accepts everything */
}

static int pick_named(const char *wanted, const struct shmemi_boot_ops **ops_out)
{
    const struct shmemi_boot_ops *ops = find_kind(wanted);
    int rc;

    if (!ops) {
        shmemi_err("boot", "MARROW_BOOTSTRAP=%s: no such bootstrap; auto, pmix, fork and single are known", wanted);
        return -EINVAL;
    }
    rc = ops->probe();
    if (rc == 0) {
        shmemi_err("boot", "MARROW_BOOTSTRAP=%s, but %s is not set: start the program with %s", wanted,
                   ops == &shmemi_boot_pmix ? "PMIX_NAMESPACE" : "MARROW_FORK_JOB",
                   ops == &shmemi_boot_pmix ? "mpirun or srun --mpi=pmix" : "oshrun");
        return -ENOTCONN;
    }
    if (rc < 0)
        return rc;
    *ops_out = ops;
    return 0;
}

int shmemi_boot_open(struct shmemi_boot *boot, const char *wanted, int join_s)
{
    const struct shmemi_boot_ops *ops = NULL;
    int rc;

    memset(boot, 0, sizeof *boot);
    if (!wanted || !*wanted || strcmp(wanted, "auto") == 0)
        rc = pick_auto(&ops);
    else
        rc = pick_named(wanted, &ops);
    if (rc)
        return rc;
    boot->ops = ops;
    boot->join_s = join_s;
    rc = ops->open(boot);
    if (rc) {
        memset(boot, 0, sizeof *boot);
        return rc;
    }
    shmemi_debug("boot", "bootstrap %s: PE %d of %d", ops->name, boot->pe, boot->n_pes);
    return 0;
}
