/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads that make and destroy objects at once: each in a context of its own, and all in one; a process that forks while
 * they do. Run it under softhca-run, best with a library built with the thread sanitizer.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tap.h"

enum { THREADS = 4, ROUNDS = 15, BYTES = 4096, START_MS = 5000 };

static struct ibv_device *device;
static struct ibv_context *shared;

static bool one_round(struct ibv_context *ctx, void *buffer)
{
    struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC, .cap = { 4, 4, 1, 1, 0 } };
    struct ibv_pd *pd = ibv_alloc_pd(ctx);
    struct ibv_mr *mr = pd ? ibv_reg_mr(pd, buffer, BYTES, IBV_ACCESS_LOCAL_WRITE) : NULL;
    struct ibv_cq *cq = ibv_create_cq(ctx, 8, NULL, NULL, 0);
    struct ibv_qp *qp;
    bool good;

    init.send_cq = init.recv_cq = cq;
    qp = pd && cq ? ibv_create_qp(pd, &init) : NULL;
    good = mr && qp && !ibv_destroy_qp(qp);
    good = cq && !ibv_destroy_cq(cq) && good;
    good = mr && !ibv_dereg_mr(mr) && good;
    return pd && !ibv_dealloc_pd(pd) && good;
}

static void *own_contexts(void *arg)
{
    void *buffer = aligned_alloc(BYTES, BYTES);
    intptr_t failed = 0;

    (void)arg;
    for (int i = 0; i < ROUNDS; i++) {
        struct ibv_context *ctx = ibv_open_device(device);

        if (!ctx || !one_round(ctx, buffer) || ibv_close_device(ctx))
            failed++;
    }
    free(buffer);
    return (void *)failed;
}

static void *shared_context(void *arg)
{
    void *buffer = aligned_alloc(BYTES, BYTES);
    intptr_t failed = 0;

    (void)arg;
    for (int i = 0; i < ROUNDS * 4; i++)
        failed += !one_round(shared, buffer);
    free(buffer);
    return (void *)failed;
}

/* The child has no device until it opens it anew; then it has a port of its own. */
static int child(uint16_t lid)
{
    struct ibv_context *ctx = ibv_open_device(device);
    struct ibv_port_attr port;
    void *buffer = aligned_alloc(BYTES, BYTES);

    if (!ctx || ibv_query_port(ctx, 1, &port))
        return 1;
    if (port.link_layer == IBV_LINK_LAYER_INFINIBAND && port.lid == lid)
        return 2;
    return one_round(ctx, buffer) && !ibv_close_device(ctx) ? 0 : 3;
}

static int forks(void)
{
    struct ibv_port_attr port;
    int bad = 0;

    if (ibv_query_port(shared, 1, &port))
        return 1;
    for (int i = 0; i < 3; i++) {
        int status;
        pid_t pid = fork();

        if (pid == 0) {
            alarm(60);
            _exit(child(port.lid));
        }
        if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
            bad++;
    }
    return bad;
}

static void run(void *(*body)(void *), bool with_forks, const char *what)
{
    pthread_t thread[THREADS];
    intptr_t failed = 0;
    int bad = 0;

    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&thread[i], NULL, body, NULL))
            exit(1);
    if (with_forks)
        bad = forks();
    for (int i = 0; i < THREADS; i++) {
        void *result;

        pthread_join(thread[i], &result);
        failed += (intptr_t)result;
    }
    tap_ok(!failed, "%d threads %s: %d rounds failed", THREADS, what, (int)failed);
    if (with_forks)
        tap_ok(!bad, "children that fork off meanwhile have a device of their own (%d failed)", bad);
}

static bool is_nic(const char *tid)
{
    char path[300], name[32] = "";
    FILE *f;

    snprintf(path, sizeof(path), "/proc/self/task/%s/comm", tid);
    f = fopen(path, "r");
    if (!f)
        return false;
    if (!fgets(name, sizeof(name), f))
        name[0] = '\0';
    fclose(f);
    return !strcmp(name, "softhca\n");
}

/* The class of this process's NIC, -1: no such thread yet. */
static int class_of_nic(void)
{
    DIR *tasks = opendir("/proc/self/task");
    int class = -1;

    for (struct dirent *d; tasks && (d = readdir(tasks));)
        if (is_nic(d->d_name))
            class = sched_getscheduler(atoi(d->d_name)) & ~SCHED_RESET_ON_FORK;
    if (tasks)
        closedir(tasks);
    return class;
}

/* Spinning programs of other sessions, as the pretended hosts of srun are, would keep a NIC of their own class waiting. */
static void goes_first(void)
{
    static const struct sched_param lowest = { .sched_priority = 1 }, none;
    bool may = !sched_setscheduler(0, SCHED_RR, &lowest) && !sched_setscheduler(0, SCHED_OTHER, &none);
    int wanted = may ? SCHED_RR : SCHED_OTHER;

    for (int ms = 0; ms < START_MS && class_of_nic() != wanted; ms++)
        usleep(1000); /* the thread sets its class when it starts */
    tap_ok(class_of_nic() == wanted, "the NIC's thread goes before all that share the time%s",
           may ? "" : ": refused here, and it is there nevertheless");
}

int main(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);

    device = list ? list[0] : NULL;
    shared = device ? ibv_open_device(device) : NULL;
    if (!shared) {
        printf("Bail out! no device: %s\n", strerror(errno));
        return 1;
    }
    goes_first();
    run(own_contexts, false, "with contexts of their own");
    run(shared_context, false, "in one context");
    run(shared_context, true, "in one context, and forks");
    tap_ok(!ibv_close_device(shared), "close");
    ibv_free_device_list(list);
    return tap_done();
}
