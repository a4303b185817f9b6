/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nic_fail.c - what the NIC module says and does when something is wrong.  nic_errors.sh runs it under the virtual NIC
 * with faults and wrong settings, and reads what it prints.
 *
 *     nic_fail SCENARIO          NIC_FAIL_FAKE=plain: the device is no mlx5; devx: it refuses DEVX
 *
 * Exit status 0: the module reacted in the way of the scenario.
 */
#include "config.h"

#include "nic_job.h"

#include <dlfcn.h>
#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- stand-ins that the module finds before libmlx5's ---- */

static bool fake(const char *what)
{
    const char *text = getenv("NIC_FAIL_FAKE");

    return text && strcmp(text, what) == 0;
}

static void *real(const char *name)
{
    void *lib = dlopen("libmlx5.so.1", RTLD_LAZY | RTLD_NOLOAD), *symbol = lib ? dlsym(lib, name) : NULL;

    if (!symbol)
        job_die("no %s", name);
    return symbol;
}

bool mlx5dv_is_supported(struct ibv_device *device)
{
    bool (*is_supported)(struct ibv_device *) = real(__func__);

    return !fake("plain") && is_supported(device);
}

struct ibv_context *mlx5dv_open_device(struct ibv_device *device, struct mlx5dv_context_attr *attr)
{
    struct ibv_context *(*open_device)(struct ibv_device *, struct mlx5dv_context_attr *) = real(__func__);

    if (!fake("devx"))
        return open_device(device, attr);
    errno = EOPNOTSUPP;
    return NULL;
}

/* ---- scenarios ---- */

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void started(struct job *job)
{
    if (job_open(job))
        job_die("the NIC does not open");
    job_start(job);
    job_barrier(job);
}

/* As the core would say it. */
static void print_error(struct job *job, int pe)
{
    struct shmemi_nic_error e;

    job->module->queue_error(&job->queues[pe], &e);
    printf("error: pe %d syndrome 0x%02x vendor 0x%02x what '%s' operation '%s' heap offset %lld advice '%s'\n", e.pe,
           e.syndrome, e.vendor_syndrome, e.what, e.operation, (long long)(e.raddr - job->board->heap[pe]), e.advice);
    fflush(stdout);
}

/* Opens and closes; says which kind it became. */
static int open_only(struct job *job)
{
    int status = job_open(job);

    printf("open: %s\n", status ? strerror(-status) : job->nic->kind == SHMEMI_NIC_MLX5 ? "ibgda" : "proxy");
    if (!status)
        job->module->close(job->nic);
    fflush(stdout);
    return 0;
}

static int register_too_much(struct job *job)
{
    struct shmemi_nic_key key;
    static char memory[1 << 20];
    int status;

    if (job_open(job))
        job_die("the NIC does not open");
    status = job->module->mem_register(job->nic, memory, sizeof memory, &key);
    printf("register: %s\n", strerror(-status));
    job->module->close(job->nic);
    fflush(stdout);
    return status != -ENOMEM;
}

/* PE 1 is gone before PE 0 connects. */
static int gone(struct job *job)
{
    struct shmemi_nic_queue q;
    double began;
    int status;

    started(job);
    if (job->me == 1)
        _exit(0);
    sleep(1); /* by then it is gone */
    began = seconds();
    status = job->module->queue_open(job->nic, 1, 0, NULL, &q);
    printf("connect: %s after %.1f s\n", strerror(-status), seconds() - began);
    job_close(job);
    fflush(stdout);
    return status != -ETIMEDOUT;
}

static bool has_left(int pe)
{
    return pe == 1;
}

/* The core knows that PE 1 has left: nobody waits for its answer. */
static int left(struct job *job)
{
    job->config.gone = has_left;
    return gone(job) ? 0 : 1; /* not for the whole time */
}

/* PE 1 belongs to another job. */
static int other_job(struct job *job)
{
    struct shmemi_nic_queue q;
    int status = 0;

    if (job_open(job))
        job_die("the NIC does not open");
    if (job->me == 1)
        job->config.secret[0]++;
    job_start(job);
    job_barrier(job);
    if (job->me == 0) {
        status = job->module->queue_open(job->nic, 1, 0, NULL, &q);
        printf("connect: %s\n", strerror(-status));
    }
    job_barrier(job);
    job_close(job);
    fflush(stdout);
    return job->me == 0 && status != -ETIMEDOUT;
}

/* PE 0 writes until it fails. */
static int write_until_error(struct job *job)
{
    double end = seconds() + JOB_SECONDS;
    int status = 0;

    while (!status && seconds() < end) {
        if (job_write(job, 1, 4096, job->bounce, 512, 0) < 0)
            status = -EIO;
        else
            status = job_quiet(job, 1);
    }
    print_error(job, 1);
    return status != -EIO;
}

static int failing_writes(struct job *job)
{
    int status = 0;

    started(job);
    if (job->me == 0) {
        job_connect(job, 1, false);
        status = write_until_error(job);
    }
    job_barrier(job);
    job_close(job);
    return status;
}

/* PE 1 is killed while PE 0 writes to it. */
static int killed(struct job *job)
{
    double began;
    int status;

    started(job);
    if (job->me == 0)
        job_connect(job, 1, false);
    job_barrier(job);
    if (job->me == 1) {
        usleep(300000);
        raise(SIGKILL);
    }
    began = seconds();
    status = write_until_error(job);
    printf("ended after %.1f s\n", seconds() - began);
    job_close(job);
    fflush(stdout);
    return status;
}

/* Behind the end of PE 1's memory; the queue's other operations stop too. */
static int access_error(struct job *job)
{
    int status = 0;

    started(job);
    if (job->me == 0) {
        job_connect(job, 1, false);
        job_write(job, 1, JOB_HEAP - 8, job->bounce, 16, 0);
        status = job_quiet(job, 1) != -EIO;
        print_error(job, 1);
        status |= job_read(job, 1, 0, job->bounce, 8, 0) >= 0 && job_quiet(job, 1) != -EIO;
        /* A new queue works. */
        job->module->queue_close(&job->queues[1]);
        job_connect(job, 1, false);
        job_write(job, 1, 0, job->bounce, 16, 0);
        status |= job_quiet(job, 1) != 0;
    }
    job_barrier(job);
    job_close(job);
    return status;
}

/* As access_error, with more behind it that is flushed, by which the first error is lost. */
static int flushed(struct job *job)
{
    int status = 0;

    started(job);
    if (job->me == 0) {
        job_connect(job, 1, false);
        for (int i = 0; i < 20; i++)
            job_write(job, 1, i == 10 ? JOB_HEAP - 8 : 64 * (uint64_t)i, job->bounce, 16, SHMEMI_SQ_DEFER);
        status = job_quiet(job, 1) != -EIO;
        usleep(300000);
        print_error(job, 1);
    }
    job_barrier(job);
    job_close(job);
    return status;
}

/* PE 1 is killed with operations on their way to it. */
static int killed_busy(struct job *job)
{
    double began;
    int status = 0;

    started(job);
    if (job->me == 0)
        job_connect(job, 1, false);
    job_barrier(job);
    if (job->me == 1)
        raise(SIGKILL);
    sleep(1); /* by then it is dead */
    for (int i = 0; i < 20; i++)
        job_write(job, 1, 64 * (uint64_t)i, job->bounce, 16, SHMEMI_SQ_DEFER);
    began = seconds();
    status = job_quiet(job, 1) != -EIO;
    print_error(job, 1);
    printf("ended after %.1f s\n", seconds() - began);
    fflush(stdout);
    job_close(job);
    return status;
}

/* The link is down for a while: what is under way survives that. */
static int link_blinks(struct job *job)
{
    double end;
    int status = 0;

    started(job);
    if (job->me == 0) {
        job_connect(job, 1, false);
        end = seconds() + 3; /* it is down and up again in its first half second */
        while (!status && seconds() < end) {
            job_write(job, 1, 0, job->bounce, 512, 0);
            status = job_quiet(job, 1);
        }
        printf("link: %s\n", strerror(-status));
        fflush(stdout);
    }
    job_barrier(job);
    job_close(job);
    return status;
}

/* A child of fork must keep its hands off; the PE goes on. */
static int forked(struct job *job)
{
    struct shmemi_nic_queue q = { 0 };
    int status = 0;
    pid_t child;

    started(job);
    job_connect(job, 0, false);
    child = fork();
    if (child == 0) {
        status = job->module->queue_open(job->nic, 0, 0, NULL, &q);
        printf("child: %s\n", strerror(-status));
        fflush(stdout);
        job_close(job);
        _exit(status != -EPERM);
    }
    if (waitpid(child, &status, 0) != child || status)
        return 1;
    job_write(job, 0, 0, job->bounce, 4096, 0);
    status = job_quiet(job, 0);
    job_close(job);
    return status;
}

/* Every port, as shmem-info shows it. */
static void show_port(void *arg, const struct shmemi_nic_port *p)
{
    int *n = arg;

    printf("port: %s %d %s %s %llu Mbit/s %s%s%s\n", p->device, p->port, p->state, p->link, (unsigned long long)p->mbit,
           p->kind == SHMEMI_NIC_MLX5 ? "ibgda" : "proxy", p->rail == 1 ? ", chosen " : p->rail ? ", rail " : " ", p->why);
    (*n)++;
}

static int describe(struct job *job)
{
    int n = 0, status = job_open(job);

    if (!status)
        job->module->close(job->nic);
    status = job->module->describe(&job->config, show_port, &n);
    printf("describe: %d, %d ports\n", status, n);
    fflush(stdout);
    return n == 0;
}

static const struct {
    const char *name;
    int pes;
    int (*run)(struct job *job);
} scenarios[] = {
    { "open", 1, open_only },           { "register", 1, register_too_much }, { "gone", 2, gone },
    { "left", 2, left },
    { "other-job", 2, other_job },      { "failing", 2, failing_writes },     { "killed", 2, killed },
    { "access", 2, access_error },      { "blink", 2, link_blinks },          { "fork", 1, forked },
    { "describe", 1, describe },        { "flushed", 2, flushed },            { "killed-busy", 2, killed_busy },
};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc == 2 && i < sizeof scenarios / sizeof *scenarios; i++) {
        if (strcmp(argv[1], scenarios[i].name) == 0) {
            int failed = job_run(scenarios[i].pes, scenarios[i].run);

            /* The PE that the scenario kills counts as one. */
            return failed != (strncmp(argv[1], "killed", 6) == 0);
        }
    }
    fprintf(stderr, "usage: nic_fail SCENARIO\n");
    return 2;
}
