/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * boot_pmix.c - peers found through PMIx: mpirun, srun --mpi=pmix, prterun.
 *
 * libpmix is loaded at run time and only its oldest functions are used, with their structures
 * filled by hand: headers from 4.2.3 on turn the macros for that into calls that older libraries
 * lack.  Every fence collects data and is preceded by a Put under a fresh key; a fence without new data
 * is no barrier under Slurm.  The wait is our own, since PMIX_TIMEOUT is not kept across nodes.
 */
#include "config.h"

#include "boot_kinds.h"
#include "core/log.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* PMIX_NAMESPACE is set, but PMIx cannot be used.  A job of one goes on without. */
static int unusable(const char *why)
{
    const char *var = NULL;
    bool first = true;

    if (shmemi_boot_env_size(&var, &first) == 1) {
        shmemi_info("boot", "PMIX_NAMESPACE is set, but %s; %s=1, so a job of one PE needs none", why, var);
        return 0;
    }
    if (!first)
        return -ELIBACC; /* said by the first, for all */
    shmemi_err("boot",
               "PMIX_NAMESPACE=%s: a launcher offers PMIx, but %s; set MARROW_BOOTSTRAP=single if a job of one PE "
               "is wanted",
               getenv("PMIX_NAMESPACE"), why);
    return -ELIBACC;
}

#ifdef HAVE_PMIX

#include <dlfcn.h>
#include <limits.h>
#include <pmix.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

static struct {
    __typeof__(PMIx_Init) *init;
    __typeof__(PMIx_Finalize) *finalize;
    __typeof__(PMIx_Put) *put;
    __typeof__(PMIx_Commit) *commit;
    __typeof__(PMIx_Fence_nb) *fence_nb;
    __typeof__(PMIx_Get) *get;
    __typeof__(PMIx_Get_nb) *get_nb;
    __typeof__(PMIx_Abort) *abort;
    __typeof__(PMIx_Error_string) *error_string;
} api;

static void *library;      /* never closed: its threads may outlive us */
static pmix_proc_t myself; /* as PMIx_Init gave it */
static unsigned exchanges; /* of this process: makes each key fresh, also after another shmem_init */
static pid_t joined_pid;   /* the process that called PMIx_Init; 0: none yet */

static const char *load_api(void)
{
    static const char *const names[] = { "PMIx_Init",     "PMIx_Finalize", "PMIx_Put",   "PMIx_Commit", "PMIx_Fence_nb",
                                         "PMIx_Get",      "PMIx_Get_nb",   "PMIx_Abort", "PMIx_Error_string" };
    static char why[256];
    void *lib;

    if (library)
        return NULL;
    /* A copy that the program or MPI has loaded already is found by its soname and used. */
    lib = dlopen("libpmix.so.2", RTLD_NOW | RTLD_LOCAL);
#ifdef SHMEMI_PMIX_LIBDIR
    if (!lib)
        lib = dlopen(SHMEMI_PMIX_LIBDIR "/libpmix.so.2", RTLD_NOW | RTLD_LOCAL);
#endif
    if (!lib) {
        snprintf(why, sizeof why, "libpmix.so.2 cannot be loaded (%s)", dlerror());
        return why;
    }
    _Static_assert(sizeof api == sizeof names / sizeof names[0] * sizeof(void *), "one name a function");
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        void *f = dlsym(lib, names[i]);

        if (!f) {
            snprintf(why, sizeof why, "libpmix.so.2 lacks %s", names[i]);
            dlclose(lib);
            return why;
        }
        memcpy((char *)&api + i * sizeof f, &f, sizeof f);
    }
    library = lib;
    return NULL;
}

static int pmix_probe(void)
{
    const char *nspace = getenv("PMIX_NAMESPACE");
    const char *why;

    if (!nspace || !*nspace)
        return 0;
    why = load_api();
    return why ? unusable(why) : 1;
}

static void fill_proc(pmix_proc_t *proc, pmix_rank_t rank)
{
    memset(proc, 0, sizeof *proc);
    memcpy(proc->nspace, myself.nspace, sizeof proc->nspace);
    proc->nspace[sizeof proc->nspace - 1] = '\0';
    proc->rank = rank;
}

static void fill_flag(pmix_info_t *info, const char *key)
{
    memset(info, 0, sizeof *info);
    snprintf(info->key, sizeof info->key, "%s", key);
    info->value.type = PMIX_BOOL;
    info->value.data.flag = true;
}

/* Launchers answer the same key with different types.  -1: not a number, or out of range. */
static int64_t value_number(const pmix_value_t *v)
{
    switch (v->type) {
    case PMIX_UINT8: return v->data.uint8;
    case PMIX_UINT16: return v->data.uint16;
    case PMIX_UINT32: return v->data.uint32;
    case PMIX_UINT64: return v->data.uint64 > INT64_MAX ? -1 : (int64_t)v->data.uint64;
    case PMIX_UINT: return v->data.uint;
    case PMIX_SIZE: return v->data.size > INT64_MAX ? -1 : (int64_t)v->data.size;
    case PMIX_INT8: return v->data.int8;
    case PMIX_INT16: return v->data.int16;
    case PMIX_INT32: return v->data.int32;
    case PMIX_INT64: return v->data.int64;
    case PMIX_INT: return v->data.integer;
    case PMIX_PROC_RANK: return v->data.rank;
    default: return -1;
    }
}

static void value_free(pmix_value_t *v)
{
    if (v->type == PMIX_BYTE_OBJECT)
        free(v->data.bo.bytes);
    else if (v->type == PMIX_STRING)
        free(v->data.string);
    free(v);
}

static int get_job_size(int *out)
{
    pmix_value_t *v = NULL;
    pmix_proc_t all;
    pmix_status_t st;
    int64_t n = -1;

    fill_proc(&all, PMIX_RANK_WILDCARD);
    st = api.get(&all, PMIX_JOB_SIZE, NULL, 0, &v);
    if (st == PMIX_SUCCESS && v)
        n = value_number(v);
    if (v)
        value_free(v);
    if (st != PMIX_SUCCESS) {
        shmemi_err("boot", "PMIx does not tell the size of the job %s: %s (%d)", myself.nspace, api.error_string(st),
                   st);
        return -EPROTO;
    }
    if (n < 1 || n > INT_MAX || (int64_t)myself.rank >= n) {
        shmemi_err("boot", "PMIx says rank %u in a job of %lld", myself.rank, (long long)n);
        return -EPROTO;
    }
    *out = (int)n;
    return 0;
}

static void on_registered(pmix_status_t status, size_t id, void *arg)
{
    (void)status, (void)id, (void)arg;
}

/*
 * The server on this host is gone: the launcher was killed.  Nobody will end this process then, and a peer may be
 * gone too.  Runs in a thread of PMIx.
 */
static void on_lost_server(size_t id, pmix_status_t status, const pmix_proc_t *source, pmix_info_t info[],
                           size_t n_info, pmix_info_t *results, size_t n_results,
                           pmix_event_notification_cbfunc_fn_t done, void *done_arg)
{
    (void)id, (void)source, (void)info, (void)n_info, (void)results, (void)n_results;
    if (joined_pid == getpid()) {
        shmemi_err("boot", "the launcher has gone (%s): PE %u ends", api.error_string(status), myself.rank);
        _exit(1);
    }
    if (done)
        done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, done_arg);
}

static void watch_server(void)
{
    pmix_status_t code = PMIX_ERR_LOST_CONNECTION;
    __typeof__(PMIx_Register_event_handler) *watch;
    void *f = dlsym(library, "PMIx_Register_event_handler");

    if (!f)
        return;
    memcpy(&watch, &f, sizeof f);
    watch(&code, 1, NULL, 0, on_lost_server, on_registered, NULL);
}

/* A forked child that calls exit() has no part in it. */
static void finalize_at_exit(void)
{
    if (joined_pid == getpid())
        api.finalize(NULL, 0);
    joined_pid = 0;
}

/*
 * PMIx_Init is counted: MPI in the same process has its own.  Ours lasts until the process exits: where one
 * PE calls PMIx_Finalize while another, already in its next shmem_init, fences, the fence fails.
 */
static int init_once(void)
{
    pmix_status_t st;

    if (joined_pid == getpid())
        return 0;
    st = api.init(&myself, NULL, 0);
    if (st == PMIX_SUCCESS) {
        joined_pid = getpid();
        if (atexit(finalize_at_exit) == 0) {
            watch_server();
            return 0;
        }
        joined_pid = 0;
        api.finalize(NULL, 0);
        return -ENOMEM;
    }
    /* No PMIx_Finalize here: after PMIX_ERR_UNREACH, 4.2.2 crashes in it. */
    shmemi_err("boot",
               "PMIX_NAMESPACE=%s, but its PMIx server does not answer: %s (%d); was the variable inherited from "
               "a job that is over?",
               getenv("PMIX_NAMESPACE"), api.error_string(st), st);
    return -ECONNREFUSED;
}

/*
 * PMIx_Init waits for its server without a limit: one that is frozen, or an mpirun that has locked itself up because another
 * PE died in it, would keep this process for ever, and no call takes it out of there again.
 */
struct join_watch {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t cond;
    int limit_s;
    bool running, joined;
};

static void *watch_join(void *arg)
{
    struct join_watch *w = arg;
    struct timespec end;
    bool joined;

    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += w->limit_s;
    pthread_mutex_lock(&w->lock);
    while (!w->joined)
        if (pthread_cond_timedwait(&w->cond, &w->lock, &end) == ETIMEDOUT)
            break;
    joined = w->joined;
    pthread_mutex_unlock(&w->lock);
    if (joined)
        return NULL;
    shmemi_err("boot", "PMIx_Init has not come back in %d s (MARROW_INIT_TIMEOUT): the PMIx server of this host (mpirun, its "
               "daemon or slurmstepd) does not answer; it may hang since another process of the job has died in it", w->limit_s);
    _exit(1);
}

static void join_begins(struct join_watch *w, int limit_s)
{
    pthread_condattr_t attr;
    sigset_t all, old;
    int err;

    memset(w, 0, sizeof *w);
    w->limit_s = limit_s;
    if (limit_s <= 0)
        return;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&w->cond, &attr);
    pthread_condattr_destroy(&attr);
    pthread_mutex_init(&w->lock, NULL);
    sigfillset(&all); /* the program's signals are for its own threads */
    pthread_sigmask(SIG_SETMASK, &all, &old);
    err = pthread_create(&w->thread, NULL, watch_join, w);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    w->running = err == 0;
    if (err)
        shmemi_warn("boot", "no thread can be made (%s): MARROW_INIT_TIMEOUT does not limit PMIx_Init", strerror(err));
}

static void join_ends(struct join_watch *w)
{
    if (!w->running)
        return;
    pthread_mutex_lock(&w->lock);
    w->joined = true;
    pthread_cond_signal(&w->cond);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, NULL);
}

static int pmix_open(struct shmemi_boot *boot)
{
    struct join_watch watch;
    int rc;

    if (!library)
        return -ELIBACC; /* not reached: probe has loaded it */
    join_begins(&watch, boot->join_s);
    rc = init_once();
    if (rc == 0)
        rc = get_job_size(&boot->n_pes);
    join_ends(&watch);
    if (rc)
        return rc;
    boot->pe = (int)myself.rank;
    boot->leave_on_zero = getenv("SLURM_STEP_ID") != NULL;
    return 0; /* no key: a namespace's name is used again after a while */
}

/*
 * A PMIx operation under way, with the arguments that must live as long.  Belongs to both the waiter
 * and the callback: who comes second frees it.
 */
struct pending {
    pmix_proc_t proc;
    pmix_info_t info;
    char key[32];
    pthread_mutex_t lock;
    pthread_cond_t cond;
    bool done, abandoned;
    pmix_status_t status;
};

static struct pending *pending_new(void)
{
    struct pending *p = calloc(1, sizeof *p);
    pthread_condattr_t attr;

    if (!p)
        return NULL;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&p->cond, &attr);
    pthread_condattr_destroy(&attr);
    pthread_mutex_init(&p->lock, NULL);
    return p;
}

static void pending_free(struct pending *p)
{
    pthread_cond_destroy(&p->cond);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

static void pending_finish(struct pending *p, pmix_status_t status)
{
    bool mine;

    pthread_mutex_lock(&p->lock);
    p->status = status;
    p->done = true;
    mine = p->abandoned;
    pthread_cond_signal(&p->cond);
    pthread_mutex_unlock(&p->lock);
    if (mine)
        pending_free(p);
}

static void on_op(pmix_status_t status, void *arg)
{
    pending_finish(arg, status);
}

static void on_value(pmix_status_t status, pmix_value_t *value, void *arg)
{
    (void)value; /* the library's */
    pending_finish(arg, status);
}

/* Waits and gives up ownership.  false: not done in time. */
static bool pending_wait(struct pending *p, int timeout_ms, pmix_status_t *status_out)
{
    struct timespec end;
    bool done;

    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += timeout_ms / 1000;
    end.tv_nsec += timeout_ms % 1000 * 1000000L;
    if (end.tv_nsec >= 1000000000) {
        end.tv_sec++;
        end.tv_nsec -= 1000000000;
    }
    pthread_mutex_lock(&p->lock);
    while (!p->done) {
        if (timeout_ms == 0)
            pthread_cond_wait(&p->cond, &p->lock);
        else if (pthread_cond_timedwait(&p->cond, &p->lock, &end) == ETIMEDOUT)
            break;
    }
    done = p->done;
    *status_out = p->status;
    p->abandoned = !done;
    pthread_mutex_unlock(&p->lock);
    if (done)
        pending_free(p);
    return done;
}

#define ASKED_MAX 1024
#define ASK_MS 1500

struct absent {
    int n;
    bool here[ASKED_MAX]; /* PMIx has what it put, or we cannot tell */
};

/* A fence that hung: whose data can be had?  Asks for all at once; who has not put any does not answer. */
static void ask_who_is_here(struct absent *a, const char *key)
{
    struct pending *asked[ASKED_MAX];
    int left_ms = ASK_MS;

    for (int pe = 0; pe < a->n; pe++) {
        struct pending *p = asked[pe] = pending_new();
        pmix_status_t st;

        a->here[pe] = true;
        if (!p)
            continue;
        fill_proc(&p->proc, (pmix_rank_t)pe);
        snprintf(p->key, sizeof p->key, "%s", key);
        st = api.get_nb(&p->proc, p->key, NULL, 0, on_value, p);
        if (st == PMIX_SUCCESS)
            continue;
        a->here[pe] = st == PMIX_OPERATION_SUCCEEDED;
        pending_free(p);
        asked[pe] = NULL;
    }
    for (int pe = 0; pe < a->n; pe++) {
        struct timespec from, to;
        pmix_status_t st;

        if (!asked[pe])
            continue;
        clock_gettime(CLOCK_MONOTONIC, &from);
        a->here[pe] = pending_wait(asked[pe], left_ms > 1 ? left_ms : 1, &st) && st == PMIX_SUCCESS;
        clock_gettime(CLOCK_MONOTONIC, &to);
        left_ms -= (int)((to.tv_sec - from.tv_sec) * 1000 + (to.tv_nsec - from.tv_nsec) / 1000000);
    }
}

static int is_absent(const void *arg, int pe)
{
    const struct absent *a = arg;

    return pe < a->n && !a->here[pe];
}

static int report_timeout(struct shmemi_boot *boot, const char *key, int timeout_s)
{
    struct absent a = { .n = boot->n_pes < ASKED_MAX ? boot->n_pes : ASKED_MAX };
    char who[160];

    ask_who_is_here(&a, key);
    if (shmemi_boot_name_missing(boot->n_pes, is_absent, &a, who, sizeof who) == 0)
        snprintf(who, sizeof who, "some PE that PMIx does not name");
    shmemi_err("boot", "waited %d s in the start-up exchange for %s", timeout_s, who);
    return -ETIMEDOUT;
}

static int put_mine(const char *key, const void *mine, size_t len)
{
    pmix_value_t v;
    pmix_status_t st;
    const char *what = "PMIx_Put";

    memset(&v, 0, sizeof v);
    v.type = PMIX_BYTE_OBJECT;
    v.data.bo.bytes = (char *)(uintptr_t)mine; /* Put copies */
    v.data.bo.size = len;
    st = api.put(PMIX_GLOBAL, key, &v);
    if (st == PMIX_SUCCESS) {
        what = "PMIx_Commit";
        st = api.commit();
    }
    if (st == PMIX_SUCCESS)
        return 0;
    shmemi_err("boot", "%s of %zu bytes: %s (%d)", what, len, api.error_string(st), st);
    return -EIO;
}

static int fence(struct shmemi_boot *boot, const char *key, int timeout_s)
{
    const struct timespec first = { .tv_sec = 1 }; /* the PE that has ended is the cause: its status is to be the job's */
    struct pending *p = pending_new();
    pmix_status_t st;

    if (!p)
        return -ENOMEM;
    if (timeout_s > INT_MAX / 1000)
        timeout_s = INT_MAX / 1000;
    fill_proc(&p->proc, PMIX_RANK_WILDCARD);
    fill_flag(&p->info, PMIX_COLLECT_DATA);
    st = api.fence_nb(&p->proc, 1, &p->info, 1, on_op, p);
    if (st == PMIX_OPERATION_SUCCEEDED) { /* and never calls back */
        pending_free(p);
        return 0;
    }
    if (st != PMIX_SUCCESS)
        pending_free(p);
    else if (!pending_wait(p, timeout_s * 1000, &st))
        return report_timeout(boot, key, timeout_s);
    if (st == PMIX_SUCCESS)
        return 0;
    shmemi_err("boot", "the start-up exchange failed: PMIx fence: %s (%d); a PE has ended before it joined",
               api.error_string(st), st);
    nanosleep(&first, NULL);
    return -EIO;
}

static int get_card(int pe, const char *key, void *out, size_t len)
{
    pmix_value_t *v = NULL;
    pmix_proc_t proc;
    pmix_status_t st;
    int rc = 0;

    fill_proc(&proc, (pmix_rank_t)pe);
    st = api.get(&proc, key, NULL, 0, &v);
    if (st != PMIX_SUCCESS || !v) {
        shmemi_err("boot", "PMIx has no data of PE %d: %s (%d)", pe, api.error_string(st), st);
        return -EIO;
    }
    if (v->type != PMIX_BYTE_OBJECT || v->data.bo.size != len || !v->data.bo.bytes) {
        shmemi_err("boot", "PE %d gave %zu bytes to an exchange of %zu: is it built with another version?", pe,
                   v->type == PMIX_BYTE_OBJECT ? v->data.bo.size : (size_t)0, len);
        rc = -EPROTO;
    } else {
        memcpy(out, v->data.bo.bytes, len);
    }
    value_free(v);
    return rc;
}

static int pmix_allgather(struct shmemi_boot *boot, const void *mine, size_t len, void *all, int timeout_s)
{
    /* PMIx drops values without bytes, and the fence needs some. */
    const char *bytes = len ? mine : "";
    size_t size = len ? len : 1;
    char nothing[1];
    char key[32];
    int rc;

    snprintf(key, sizeof key, "marrow.%u", exchanges++);
    rc = put_mine(key, bytes, size);
    if (rc == 0)
        rc = fence(boot, key, timeout_s);
    for (int pe = 0; rc == 0 && pe < boot->n_pes; pe++)
        rc = get_card(pe, key, len ? (char *)all + (size_t)pe * len : nothing, size);
    return rc;
}

/* Ends the process should PMIx_Abort not come back from a launcher that is gone. */
static void *abort_watch(void *code)
{
    struct timespec t = { .tv_sec = 5 };

    nanosleep(&t, NULL);
    _exit((int)(intptr_t)code);
}

static SHMEMI_NORETURN void pmix_abort(struct shmemi_boot *boot, int code)
{
    pthread_t watch;

    if (pthread_create(&watch, NULL, abort_watch, (void *)(intptr_t)code) == 0)
        pthread_detach(watch);
    /* Slurm kills the step and so makes it a failure, also when a PE ends that has not said goodbye. */
    if (code == 0 && boot->leave_on_zero)
        api.finalize(NULL, 0);
    else
        api.abort(code, "ended by the program", NULL, 0);
    _exit(code);
}

static void pmix_close(struct shmemi_boot *boot)
{
    (void)boot; /* finalize_at_exit() */
}

#else /* built without PMIx */

static int pmix_probe(void)
{
    const char *nspace = getenv("PMIX_NAMESPACE");

    return nspace && *nspace ? unusable("this library was built without it") : 0;
}

static int pmix_open(struct shmemi_boot *boot)
{
    (void)boot;
    return -ENOSYS;
}

static int pmix_allgather(struct shmemi_boot *boot, const void *mine, size_t len, void *all, int timeout_s)
{
    (void)boot, (void)mine, (void)len, (void)all, (void)timeout_s;
    return -ENOSYS;
}

static SHMEMI_NORETURN void pmix_abort(struct shmemi_boot *boot, int code)
{
    (void)boot;
    _exit(code);
}

static void pmix_close(struct shmemi_boot *boot)
{
    (void)boot;
}

#endif

const struct shmemi_boot_ops shmemi_boot_pmix = {
    .name = "pmix",
    .probe = pmix_probe,
    .open = pmix_open,
    .allgather = pmix_allgather,
    .abort = pmix_abort,
    .close = pmix_close,
};
