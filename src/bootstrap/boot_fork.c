/* SPDX-License-Identifier: BSD-3-Clause */
/* boot_fork.c - the PEs that oshrun forked on this host find each other in its memfd. */
#include "config.h"

#include "boot_kinds.h"
#include "core/log.h"
#include "fork_job.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/*
 * The mapping lives as long as the process: shmem_init may come again after shmem_finalize, when
 * the descriptor and the variable are gone.
 */
static struct shmemi_fork_job *job;
static struct shmemi_fork_env place; /* fd is -1 once mapped */

static bool parse_number(const char **text, int max, int *out)
{
    char *end;
    long v;

    if (**text < '0' || **text > '9')
        return false;
    errno = 0;
    v = strtol(*text, &end, 10);
    if (errno || v > max || *end != ':')
        return false;
    *text = end + 1;
    *out = (int)v;
    return true;
}

static bool parse_hex64(const char *text, uint64_t *out)
{
    uint64_t v = 0;

    for (int i = 0; i < 16; i++) {
        char c = text[i];
        int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;

        if (digit < 0)
            return false;
        v = v << 4 | (uint64_t)digit;
    }
    *out = v;
    return true;
}

int shmemi_fork_parse(const char *text, struct shmemi_fork_env *out)
{
    struct shmemi_fork_env env;

    if (!parse_number(&text, INT_MAX, &env.fd) || !parse_number(&text, INT_MAX, &env.pe) ||
        !parse_number(&text, SHMEMI_FORK_MAX_PES, &env.n_pes) || strlen(text) != 32 ||
        !parse_hex64(text, &env.key[0]) || !parse_hex64(text + 16, &env.key[1]) || env.pe >= env.n_pes)
        return -EINVAL;
    *out = env;
    return 0;
}

static int fork_probe(void)
{
    const char *text = getenv(SHMEMI_FORK_VAR);
    struct shmemi_fork_env env;

    if (job)
        return 1;
    if (!text || !*text)
        return 0;
    if (shmemi_fork_parse(text, &env)) {
        shmemi_err("boot", "%s=%s is not what oshrun writes there (FD:PE:N:KEY); unset it", SHMEMI_FORK_VAR, text);
        return -EINVAL;
    }
    return 1;
}

/* Maps the memfd that the environment names, if it is ours indeed. */
static int map_job(const struct shmemi_fork_env *env)
{
    size_t size = shmemi_fork_size(env->n_pes);
    struct shmemi_fork_job *map;
    struct stat st;

    if (fstat(env->fd, &st)) {
        shmemi_err("boot",
                   "%s names descriptor %d, which is not open: the program or a wrapper around it has closed "
                   "the descriptors that it inherited from oshrun",
                   SHMEMI_FORK_VAR, env->fd);
        return -EBADF;
    }
    if ((size_t)st.st_size != size)
        goto foreign;
    map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, env->fd, 0);
    if (map == MAP_FAILED) {
        int rc = -errno;

        shmemi_err("boot", "cannot map descriptor %d of %s: %m", env->fd, SHMEMI_FORK_VAR);
        return rc;
    }
    if (map->magic != SHMEMI_FORK_MAGIC || map->version != SHMEMI_FORK_VERSION ||
        map->n_pes != (uint32_t)env->n_pes || map->key[0] != env->key[0] || map->key[1] != env->key[1]) {
        munmap(map, size);
        goto foreign;
    }
    job = map;
    return 0;

foreign:
    shmemi_err("boot",
               "descriptor %d of %s is not the job's memory: a wrapper has reused the descriptor, or oshrun is "
               "of another version than the library",
               env->fd, SHMEMI_FORK_VAR);
    return -EPROTO;
}

/* Takes the PE's line.  Another live process that has it is a user's mistake (two programs started as one PE). */
static int take_slot(void)
{
    struct shmemi_fork_slot *slot = &job->slots[place.pe];
    int32_t owner = slot->pid;

    if (__atomic_exchange_n(&slot->state, SHMEMI_FORK_JOINED, __ATOMIC_ACQ_REL) == SHMEMI_FORK_JOINED &&
        owner != getpid() && kill(owner, 0) == 0) {
        shmemi_err("boot", "PE %d has joined already as process %d: two programs run as one PE", place.pe, owner);
        return -EEXIST;
    }
    slot->pid = getpid();
    return 0;
}

static int fork_open(struct shmemi_boot *boot)
{
    int rc;

    if (!job) {
        if (shmemi_fork_parse(getenv(SHMEMI_FORK_VAR), &place))
            return -EINVAL; /* not reached: probe has looked */
        rc = map_job(&place);
        if (rc)
            return rc;
        /* Neither the descriptor nor the variable is for programs that this PE may start. */
        close(place.fd);
        place.fd = -1;
        unsetenv(SHMEMI_FORK_VAR);
    }
    rc = take_slot();
    if (rc)
        return rc;
    boot->pe = place.pe;
    boot->n_pes = place.n_pes;
    memcpy(boot->job_key, job->key, sizeof boot->job_key);
    return 0;
}

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Has everybody come to the round that makes every count `rounds`?  Counts may wrap. */
static bool all_came(uint32_t arrived, uint32_t rounds)
{
    return (int32_t)(arrived - rounds * job->n_pes) >= 0;
}

static int not_here(const void *arg, int pe)
{
    uint32_t rounds = *(const uint32_t *)arg;

    return (int32_t)(__atomic_load_n(&job->slots[pe].rounds, __ATOMIC_ACQUIRE) - rounds) < 0;
}

static int report_timeout(uint32_t rounds, int timeout_s)
{
    char who[160];

    shmemi_boot_name_missing((int)job->n_pes, not_here, &rounds, who, sizeof who);
    shmemi_err("boot", "waited %d s in the start-up exchange for %s", timeout_s, who);
    return -ETIMEDOUT;
}

/* oshrun looks for a PE that left while others wait for it when it is poked; a lost poke costs it a second. */
static void poke_oshrun(void)
{
    kill(job->oshrun_pid, SIGCHLD);
}

static int wait_round(uint32_t rounds, int timeout_s)
{
    struct shmemi_fork_slot *mine = &job->slots[place.pe];
    int64_t end = timeout_s > 0 ? now_ns() + (int64_t)timeout_s * 1000000000 : 0;
    int rc = 0;
    uint32_t seen;

    /* Either we see n_gone or oshrun, which raises n_gone first and then looks, sees us wait. */
    __atomic_store_n(&mine->waiting, rounds, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&job->n_gone, __ATOMIC_SEQ_CST))
        poke_oshrun();
    /* Pairs with the add in arrive(): the others' chunks are there. */
    while (!all_came(seen = __atomic_load_n(&job->arrived, __ATOMIC_ACQUIRE), rounds)) {
        struct timespec nap = { .tv_sec = 0, .tv_nsec = 200000000 };

        if (end) {
            int64_t left = end - now_ns();

            if (left <= 0) {
                rc = report_timeout(rounds, timeout_s);
                break;
            }
            if (left < nap.tv_nsec)
                nap.tv_nsec = left;
        }
        syscall(SYS_futex, &job->arrived, FUTEX_WAIT, seen, &nap, NULL, 0);
    }
    __atomic_store_n(&mine->waiting, 0, __ATOMIC_RELEASE);
    return rc;
}

/* Puts `len` bytes into the round's buffer and says so. */
static void arrive(uint32_t round, char *buffer, const char *bytes, size_t len)
{
    struct shmemi_fork_slot *mine = &job->slots[place.pe];

    if (len)
        memcpy(buffer + (size_t)place.pe * SHMEMI_FORK_CHUNK, bytes, len);
    __atomic_store_n(&mine->rounds, round + 1, __ATOMIC_RELEASE);
    /* Pairs with the load in wait_round(). */
    if (all_came(__atomic_add_fetch(&job->arrived, 1, __ATOMIC_ACQ_REL), round + 1))
        syscall(SYS_futex, &job->arrived, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static int fork_allgather(struct shmemi_boot *boot, const void *mine, size_t len, void *all, int timeout_s)
{
    size_t n = (size_t)boot->n_pes;
    char *area = (char *)job + shmemi_fork_data_offset(boot->n_pes);
    size_t done = 0;

    do {
        size_t part = len - done < SHMEMI_FORK_CHUNK ? len - done : SHMEMI_FORK_CHUNK;
        uint32_t round = job->slots[boot->pe].rounds;
        /*
         * Two buffers in turns: who writes into this one again has seen everybody arrive at the
         * round between, and so leave this one.
         */
        char *buffer = area + (round & 1) * n * SHMEMI_FORK_CHUNK;
        int rc;

        arrive(round, buffer, (const char *)mine + done, part);
        rc = wait_round(round + 1, timeout_s);
        if (rc)
            return rc;
        for (size_t pe = 0; part && pe < n; pe++)
            memcpy((char *)all + pe * len + done, buffer + pe * SHMEMI_FORK_CHUNK, part);
        done += part;
    } while (done < len);
    return 0;
}

static SHMEMI_NORETURN void fork_abort(struct shmemi_boot *boot, int code)
{
    uint64_t nobody = 0;

    __atomic_compare_exchange_n(&job->ending, &nobody, SHMEMI_FORK_ENDING(boot->pe, code), 0, __ATOMIC_ACQ_REL,
                                __ATOMIC_ACQUIRE);
    /* Our end alone does not reach oshrun when a wrapper script stands between. */
    poke_oshrun();
    _exit(code);
}

static void fork_close(struct shmemi_boot *boot)
{
    __atomic_store_n(&job->slots[boot->pe].state, SHMEMI_FORK_LEFT, __ATOMIC_RELEASE);
}

const struct shmemi_boot_ops shmemi_boot_fork = {
    .name = "fork",
    .probe = fork_probe,
    .open = fork_open,
    .allgather = fork_allgather,
    .abort = fork_abort,
    .close = fork_close,
};
