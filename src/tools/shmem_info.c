/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shmem_info.c - says what this installation is, what it was built with, what
 * works on this machine and why not, and what the environment sets.
 *
 * Linked with the library's objects, so it asks the code that programs will run.
 */
#include "config.h"

#include "info.h"

#include "core/env.h"
#include "core/log.h"
#include "core/nic_load.h"
#include "core/state.h"
#include "transports/shm/shm.h"

#include <shmem.h>

#include <dlfcn.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <sched.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/utsname.h>
#include <unistd.h>

#ifndef SHMEMI_PMIX_LIBDIR
#define SHMEMI_PMIX_LIBDIR ""
#endif

static void usage(FILE *to)
{
    fputs("usage: shmem-info [options]\n"
          "\n"
          "Says what this Marrow is, what works on this machine, and what the environment sets.\n"
          "Without an option everything is shown.\n"
          "\n"
          "  -v, --version        versions\n"
          "  -c, --config         what it was built with\n"
          "  -l, --launch         ways to start a job, and whether each can work here\n"
          "  -t, --transports     ways to move data, and whether each can work here\n"
          "  -e, --env            every environment variable with its value and default\n"
          "  -p, --path[=WHICH]   where this installation is; WHICH of prefix, bin, lib, include\n"
          "                       prints that folder alone\n"
          "  -h, --help           this text\n"
          "\n"
          "Exit status: 0; 1 when a variable has a value that programs would refuse or when\n"
          "shared memory does not work; 2 for bad usage.\n",
          to);
}

static void show_version(void)
{
    printf("Marrow %s\n", PACKAGE_VERSION);
    printf("OpenSHMEM %d.%d\n", SHMEM_MAJOR_VERSION, SHMEM_MINOR_VERSION);
}

static const char *yes_no(int yes)
{
    return yes ? "yes" : "no";
}

static void show_config(void)
{
#ifdef HAVE_PMIX
    int pmix = 1;
#else
    int pmix = 0;
#endif
#ifdef HAVE_HWLOC
    int hwloc = 1;
#else
    int hwloc = 0;
#endif
#ifdef HAVE_VERBS
    int verbs = 1;
#else
    int verbs = 0;
#endif
#ifdef HAVE_CUDA
    int cuda = 1;
#else
    int cuda = 0;
#endif
    printf("\nBuilt with\n");
#ifdef __clang__
    printf("  compiler     %s\n", __VERSION__);
#else
    printf("  compiler     gcc %s\n", __VERSION__);
#endif
    printf("  sanitizers   %s\n", SHMEMI_SANITIZERS);
    printf("  headers      PMIx %s, hwloc %s, verbs %s, CUDA %s\n", yes_no(pmix), yes_no(hwloc), yes_no(verbs),
           yes_no(cuda));
#ifdef HAVE_NVCC
    printf("  nvcc         yes\n");
#else
    printf("  nvcc         no\n");
#endif
}

/* A program of this name in PATH, or NULL. */
static const char *in_path(const char *name, char *buf, size_t len)
{
    const char *at = getenv("PATH");

    while (at && *at) {
        size_t n = strcspn(at, ":");

        if (n > 0 && snprintf(buf, len, "%.*s/%s", (int)n, at, name) < (int)len && access(buf, X_OK) == 0)
            return buf;
        at += n + (at[n] == ':');
    }
    return NULL;
}

static void show_pmix(void)
{
#ifdef HAVE_PMIX
    const char *(*get_version)(void);
    void *lib = dlopen("libpmix.so.2", RTLD_LAZY | RTLD_LOCAL), *symbol;
    const char *where = "";

    if (!lib && SHMEMI_PMIX_LIBDIR[0] != '\0') {
        where = " in " SHMEMI_PMIX_LIBDIR;
        lib = dlopen(SHMEMI_PMIX_LIBDIR "/libpmix.so.2", RTLD_LAZY | RTLD_LOCAL);
    }
    symbol = lib ? dlsym(lib, "PMIx_Get_version") : NULL;
    if (symbol) {
        memcpy(&get_version, &symbol, sizeof get_version);
        printf("  pmix         yes: libpmix.so.2%s, %s\n", where, get_version());
    } else {
        const char *why = dlerror();

        printf("  pmix         no: %s\n", why ? why : "libpmix.so.2 is not usable");
        printf("               remedy: install the PMIx library (Debian, Ubuntu: libpmix2)\n");
    }
    if (lib)
        dlclose(lib);
#else
    printf("  pmix         no: built without PMIx\n");
    printf("               remedy: install its headers (Debian, Ubuntu: libpmix-dev) and build again\n");
#endif
}

static void show_launch(void)
{
    static const char *const launchers[] = { "mpirun", "srun" };
    char path[PATH_MAX];

    printf("\nWays to start a job (MARROW_BOOTSTRAP)\n");
    printf("  single       yes: a program started by itself is a job of one PE\n");
    printf("  fork         yes: oshrun -n N prog, on this machine\n");
    show_pmix();
    for (size_t i = 0; i < sizeof launchers / sizeof launchers[0]; i++) {
        const char *found = in_path(launchers[i], path, sizeof path);

        printf("  %-12s %s%s\n", launchers[i], found ? "yes: " : "no: not in PATH", found ? found : "");
    }
}

/* Makes and maps a job of one PE with the heap that the environment asks for. */
static int try_shm(char *why, size_t len)
{
    struct shmemi_shm shm = { .fd = -1 };
    struct shmemi_shm_door door = { .fd = -1 };
    int status = shmemi_shm_door_open(&door);

    if (status) {
        snprintf(why, len, "no unix socket to hand the memory over: %s", strerror(-status));
        return status;
    }
    status = shmemi_shm_layout(&shm, 1, sizeof(struct shmemi_pe_ctl), 0, 0, shmemi_env.symmetric_size);
    if (!status)
        status = shmemi_shm_lead(&shm, &door, 0, 1000000000u);
    if (!status)
        status = shmemi_shm_map(&shm, 0);
    if (status)
        snprintf(why, len, "a heap of %zu bytes cannot be made: %s", shmemi_env.symmetric_size, strerror(-status));
    shmemi_shm_close(&shm);
    shmemi_shm_door_close(&door);
    return status;
}

static bool net_log_on(int level)
{
    return level <= SHMEMI_LOG_WARN;
}

static char net_said[1600];

/* What the module complains of, for the line that says what works. */
SHMEMI_PRINTF(3, 4)
static void net_log(int level, const char *component, const char *fmt, ...)
{
    va_list ap;

    (void)component;
    if (!net_log_on(level) || net_said[0])
        return;
    va_start(ap, fmt);
    vsnprintf(net_said, sizeof net_said, fmt, ap);
    va_end(ap);
}

static const char *kind_name(enum shmemi_nic_kind kind)
{
    return kind == SHMEMI_NIC_MLX5 ? "ibgda" : "proxy";
}

static void show_port(void *arg, const struct shmemi_nic_port *p)
{
    int *n = arg;
    char name[80];

    if ((*n)++ == 0)
        printf("\nNIC ports (MARROW_HCA_LIST); * is what this process would use, + a further rail of it (MARROW_RAILS)\n");
    snprintf(name, sizeof name, "%s:%d", p->device, p->port);
    printf("  %c %-12s %s, %s, %.4g Gbit/s, %s%s%s\n", p->rail == 1 ? '*' : p->rail ? '+' : ' ', name, p->link, p->state, (double)p->mbit / 1000,
           kind_name(p->kind), p->why[0] ? ": " : "", p->why);
}

static void net_config(struct shmemi_nic_config *c)
{
    memset(c, 0, sizeof *c);
    c->n_pes = c->n_local = 1;
    c->want = strcasecmp(shmemi_env.transport, "ibgda") == 0   ? SHMEMI_NIC_MLX5
              : strcasecmp(shmemi_env.transport, "proxy") == 0 ? SHMEMI_NIC_VERBS
                                                               : SHMEMI_NIC_AUTO;
    c->strict = shmemi_env.strict;
    c->rails = (int)shmemi_env.rails;
    c->device_list = shmemi_env.hca_list;
    c->gid_index = (int)shmemi_env.ib_gid_index;
    c->traffic_class = (int)shmemi_env.ib_traffic_class;
    c->service_level = (int)shmemi_env.ib_sl;
    c->pkey_index = (int)shmemi_env.ib_pkey_index;
    c->mtu = (int)shmemi_env.ib_mtu;
    c->timeout = (int)shmemi_env.ib_timeout;
    c->retry_count = (int)shmemi_env.ib_retry;
    c->queue_depth = (int)shmemi_env.queue_depth;
    c->log_on = net_log_on;
    c->log = net_log;
}

static bool net_quiet(int level)
{
    (void)level;
    return false;
}

/* Opens the NIC as a program would that spans nodes, and lists the ports that there are. */
static void show_net(void)
{
    const struct shmemi_nic_module *module;
    struct shmemi_nic_config config;
    struct shmemi_nic *nic;
    char why[PATH_MAX];
    int status, n = 0;

    net_config(&config);
    status = shmemi_nic_load(shmemi_env.module_dir, &module, why, sizeof why);
    if (status) {
        printf("  ibgda, proxy no: %s\n", why);
        printf("               remedy: install the verbs headers (Debian, Ubuntu: libibverbs-dev) and build again\n");
        return;
    }
    status = module->open(&config, &nic);
    if (status) {
        printf("  ibgda, proxy no: %s\n", net_said[0] ? net_said : strerror(-status));
    } else {
        printf("  %-12s yes: PEs of different nodes reach each other through %s port %d\n", kind_name(nic->kind), nic->device,
               nic->port);
        if (nic->kind == SHMEMI_NIC_MLX5)
            printf("               queues of kernels %s%s\n",
                   nic->record_why ? "have doorbell records: " : "can do without doorbell records (MARROW_NO_DBR=on)",
                   nic->record_why ? nic->record_why : "");
        if (net_said[0])
            printf("               but: %s\n", net_said);
        module->close(nic);
    }
    config.log_on = net_quiet;
    module->describe(&config, show_port, &n);
}

static int show_transports(void)
{
    char why[200];
    int status = try_shm(why, sizeof why);

    printf("\nWays to move data\n");
    if (status)
        printf("  shm          no: %s\n"
               "               remedy: a smaller SHMEM_SYMMETRIC_SIZE, or a larger memory limit (ulimit -v)\n",
               why);
    else
        printf("  shm          yes: PEs of one node share memory, load and store\n");
    shmemi_info_gpus();
    show_net();
    return status ? 1 : 0;
}

static void show_machine(void)
{
    struct utsname u;
    cpu_set_t cpus;
    int usable = sched_getaffinity(0, sizeof cpus, &cpus) == 0 ? CPU_COUNT(&cpus) : -1;

    printf("\nThis machine\n");
    if (uname(&u) == 0)
        printf("  node         %s (%s %s, %s)\n", u.nodename, u.sysname, u.release, u.machine);
    printf("  CPUs         %d usable of %ld\n", usable, sysconf(_SC_NPROCESSORS_ONLN));
    printf("  memory       %.1f GiB\n",
           (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGE_SIZE) / (1 << 30));
}

/* `seen` from the folder of this program; the plain name when it is not there. */
static int folder(const char *seen, char *out)
{
    char self[PATH_MAX], joined[2 * PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    char *slash;

    if (n < 0)
        return -1;
    self[n] = '\0';
    slash = strrchr(self, '/');
    if (slash)
        *slash = '\0';
    if (seen[0] == '/')
        snprintf(joined, sizeof joined, "%s", seen);
    else
        snprintf(joined, sizeof joined, "%s/%s", self, seen);
    return realpath(joined, out) ? 0 : -1;
}

static int show_path(const char *which)
{
    static const struct {
        const char *name, *seen;
    } folders[] = {
        { "prefix", ".." }, { "bin", "." }, { "lib", SHMEMI_BIN_TO_LIB }, { "include", SHMEMI_BIN_TO_INCLUDE } };
    char path[PATH_MAX];
    int known = 0;

    if (!which)
        printf("\nThis installation\n");
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        int found = folder(folders[i].seen, path) == 0;

        if (!which)
            printf("  %-12s %s\n", folders[i].name, found ? path : "not there (not installed?)");
        if (!which || strcmp(which, folders[i].name) != 0)
            continue;
        known = 1;
        if (!found) {
            fprintf(stderr, "shmem-info: no %s folder: %s from here is not there\n", which, folders[i].seen);
            return 1;
        }
        printf("%s\n", path);
    }
    if (which && !known) {
        fprintf(stderr, "shmem-info: --path knows prefix, bin, lib and include, not '%s'\n", which);
        return 2;
    }
    return 0;
}

int main(int argc, char **argv)
{
    static const struct option longs[] = {
        { "version", no_argument, NULL, 'v' },       { "config", no_argument, NULL, 'c' },
        { "launch", no_argument, NULL, 'l' },        { "transports", no_argument, NULL, 't' },
        { "env", no_argument, NULL, 'e' },           { "path", optional_argument, NULL, 'p' },
        { "help", no_argument, NULL, 'h' },          { NULL, 0, NULL, 0 } };
    char asked[128] = { 0 };
    const char *which = NULL;
    int c, all = 1, status = 0;

    while ((c = getopt_long(argc, argv, "vcltep::h", longs, NULL)) != -1) {
        if (c == 'h') {
            usage(stdout);
            return 0;
        }
        if (c == '?') {
            usage(stderr);
            return 2;
        }
        if (c == 'p')
            which = optarg;
        asked[c] = 1;
        all = 0;
    }
    if (optind < argc) {
        usage(stderr);
        return 2;
    }
    if (which)
        return show_path(which);
    if (shmemi_env_parse() || shmemi_env_check_names()) /* have said which variable */
        status = 1;
    if (all || asked['v'])
        show_version();
    if (all || asked['c'])
        show_config();
    if (all || asked['p'])
        status |= show_path(NULL);
    if (all)
        show_machine();
    if (all || asked['l'])
        show_launch();
    if ((all || asked['t']) && status)
        printf("\nWays to move data are not looked at with such a value\n");
    else if (all || asked['t'])
        status |= show_transports();
    if (all || asked['e'])
        shmemi_env_print(stdout);
    return status;
}
