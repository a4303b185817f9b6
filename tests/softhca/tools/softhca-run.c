/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * softhca-run: runs a command and its children with the virtual NIC in front of libibverbs. It makes the job's folder (a
 * fake piece of /sys), sets the environment, and waits. A cleaner process removes the folder when the last process of the
 * job is gone, however it went; folders whose cleaner was killed too are swept by the next start.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tools/jobdir.h"
#include "tools/settings.h"

enum { EXIT_USAGE = 2, EXIT_SETUP = 125, EXIT_EXEC = 126, CLEAN_WAIT_MS = 2000 };

static volatile sig_atomic_t command_pid;

static void usage(FILE *to)
{
    fputs("usage: softhca-run [options] command [argument ...]\n"
          "  --nodes N      let the processes of the job believe that they run on N hosts\n"
          "  --devices N    so many devices, mlx5_0 and on (default 1)\n"
          "  --faults SPEC  faults to inject, such as loss=1%,dup=1%; README.md lists them; mlx5_1:SPEC is\n"
          "                 for that device instead of what all get\n"
          "  --seed S       seed of the faults (default 1)\n"
          "  --trace FILE   text trace of work requests and completions\n"
          "  --pcap FILE    packets, as tcpdump writes them\n"
          "  --stats        print counters when a process ends\n"
          "  --wire udp|shm how packets travel (default: shm)\n"
          "  --net A.B.C.D  addresses of the ports count from here (default: 127.77.0.0); with commas: for each device\n"
          "  --link ib|eth  what kind of port it is (default: ib)\n"
          "  --log LEVEL    0 errors, 1 objects, 2 commands, 3 packets\n"
          "  --no-dbr LOG   offer queues without a doorbell record, of up to 2 to the power LOG blocks (as ConnectX-8 does)\n"
          "  --lenient      act on doorbell records without waiting for a doorbell\n"
          "  --lib FILE     the library to preload (default: beside this program)\n",
          to);
}

/* A file name that children in other folders still find. */
static void set_path_env(const char *name, const char *path)
{
    char here[PATH_MAX / 2], full[PATH_MAX];

    if (path[0] == '/' || !getcwd(here, sizeof here)) {
        setenv(name, path, 1);
        return;
    }
    snprintf(full, sizeof full, "%s/%.*s", here, (int)(sizeof full - sizeof here - 2), path);
    setenv(name, full, 1);
}

struct options {
    const char *lib;
    bool eth;
    unsigned faulty; /* devices that there must be, as the last of them has faults */
};

/* "SPEC" or "mlx5_<n>:SPEC" */
static void set_faults(const char *spec, struct options *options)
{
    char name[32];
    unsigned device;
    int end = 0;

    if (sscanf(spec, "mlx5_%1u:%n", &device, &end) != 1 || !end) {
        setenv("SOFTHCA_FAULTS", spec, 1);
        return;
    }
    snprintf(name, sizeof name, "SOFTHCA_FAULTS_%u", device);
    setenv(name, spec + end, 1);
    if (device >= options->faulty)
        options->faulty = device + 1;
}

static unsigned devices(void)
{
    const char *text = getenv("SOFTHCA_DEVICES");

    return text && *text ? (unsigned)strtoul(text, NULL, 0) : 1;
}

static void one_option(int opt, struct options *options)
{
    switch (opt) {
    case 'n':
        setenv("SOFTHCA_NODES", optarg, 1);
        break;
    case 'f':
        set_faults(optarg, options);
        break;
    case 'd':
        setenv("SOFTHCA_DEVICES", optarg, 1);
        break;
    case 's':
        setenv("SOFTHCA_SEED", optarg, 1);
        break;
    case 't':
        set_path_env("SOFTHCA_TRACE", optarg);
        break;
    case 'p':
        set_path_env("SOFTHCA_PCAP", optarg);
        break;
    case 'S':
        setenv("SOFTHCA_STATS", "1", 1);
        break;
    case 'w':
        setenv("SOFTHCA_WIRE", optarg, 1);
        break;
    case 'N':
        setenv("SOFTHCA_NET", optarg, 1);
        break;
    case 'l':
        setenv("SOFTHCA_LINK", optarg, 1);
        options->eth = !strcmp(optarg, "eth");
        break;
    case 'L':
        setenv("SOFTHCA_LOG", optarg, 1);
        break;
    case 'r':
        setenv("SOFTHCA_NO_DBR", optarg, 1);
        break;
    case 'e':
        setenv("SOFTHCA_STRICT", "0", 1);
        break;
    case 'b':
        options->lib = optarg;
        break;
    case 'h':
        usage(stdout);
        exit(0);
    default:
        usage(stderr);
        exit(EXIT_USAGE);
    }
}

static void parse(int argc, char **argv, struct options *options)
{
    static const struct option longs[] = {
        { "nodes", required_argument, NULL, 'n' },  { "faults", required_argument, NULL, 'f' },
        { "seed", required_argument, NULL, 's' },   { "trace", required_argument, NULL, 't' },
        { "pcap", required_argument, NULL, 'p' },   { "stats", no_argument, NULL, 'S' },
        { "wire", required_argument, NULL, 'w' },   { "link", required_argument, NULL, 'l' },
        { "net", required_argument, NULL, 'N' },    { "devices", required_argument, NULL, 'd' },
        { "log", required_argument, NULL, 'L' },    { "lenient", no_argument, NULL, 'e' },
        { "lib", required_argument, NULL, 'b' },    { "no-dbr", required_argument, NULL, 'r' },
        { "help", no_argument, NULL, 'h' },
        { NULL, 0, NULL, 0 },
    };
    const char *link = getenv("SOFTHCA_LINK");
    int opt;

    options->eth = link && !strcmp(link, "eth");
    while ((opt = getopt_long(argc, argv, "+h", longs, NULL)) != -1)
        one_option(opt, options);
    if (optind == argc) {
        usage(stderr);
        exit(EXIT_USAGE);
    }
    if (!settings_good())
        exit(EXIT_USAGE);
    if (options->faulty > devices()) { /* a test would pass with no faults at all */
        fprintf(stderr, "softhca-run: --faults names mlx5_%u, but --devices is %u\n", options->faulty - 1, devices());
        exit(EXIT_USAGE);
    }
}

/* The library lies beside this program, or where libtool leaves it. */
static bool find_library(const char *given, char *out)
{
    static const char *const places[] = { "libsofthca.so", ".libs/libsofthca.so", "../libsofthca.so", "../.libs/libsofthca.so" };
    char self[PATH_MAX / 2], name[PATH_MAX];
    ssize_t n;

    if (!given)
        given = getenv("SOFTHCA_LIB");
    if (given)
        return realpath(given, out) != NULL;
    n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n <= 0)
        return false;
    self[n] = 0;
    *strrchr(self, '/') = 0;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        snprintf(name, sizeof name, "%s/%s", self, places[i]);
        if (realpath(name, out))
            return true;
    }
    return false;
}

/* What is preloaded already stays in front: a sanitizer's runtime has to be first. */
static void set_preload(const char *lib)
{
    const char *before = getenv("LD_PRELOAD");
    char *value;

    if (!before || !*before) {
        setenv("LD_PRELOAD", lib, 1);
        return;
    }
    if (asprintf(&value, "%s:%s", before, lib) < 0)
        return;
    setenv("LD_PRELOAD", value, 1);
    free(value);
}

static void forward(int sig)
{
    if (command_pid > 0)
        kill((pid_t)command_pid, sig);
}

static void run_command(char **argv, const sigset_t *mask)
{
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    sigprocmask(SIG_SETMASK, mask, NULL);
    execvp(argv[0], argv);
    fprintf(stderr, "softhca-run: %s: %s\n", argv[0], strerror(errno));
    _exit(errno == ENOENT ? EXIT_EXEC + 1 : EXIT_EXEC);
}

static int wait_command(void)
{
    int status;

    while (waitpid((pid_t)command_pid, &status, 0) < 0)
        if (errno != EINTR)
            return EXIT_SETUP;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* Normally the folder is gone before we are; processes that stay in the background keep it. */
static void wait_cleaner(pid_t cleaner)
{
    const struct timespec tick = { .tv_nsec = 5000000 };

    for (int ms = 0; ms < CLEAN_WAIT_MS; ms += 5) {
        if (waitpid(cleaner, NULL, WNOHANG) != 0)
            return;
        nanosleep(&tick, NULL);
    }
}

int main(int argc, char **argv)
{
    struct options options = { NULL, false, 0 };
    const struct sigaction action = { .sa_handler = forward };
    char lib[PATH_MAX];
    sigset_t old, block;
    struct jobdir job;
    int code;

    parse(argc, argv, &options);
    if (!find_library(options.lib, lib)) {
        fprintf(stderr, "softhca-run: libsofthca.so is neither beside this program nor named by --lib\n");
        return EXIT_SETUP;
    }
    jobdir_sweep();
    if (jobdir_make(&job, options.eth, devices()))
        return EXIT_SETUP;
    setenv("SOFTHCA_DIR", job.path, 1);
    set_preload(lib);
    sigemptyset(&block);
    sigaddset(&block, SIGINT);
    sigaddset(&block, SIGTERM);
    sigaddset(&block, SIGHUP);
    sigprocmask(SIG_BLOCK, &block, &old);
    command_pid = fork();
    if (command_pid == 0)
        run_command(argv + optind, &old);
    if (command_pid < 0)
        jobdir_failed(argv[optind]);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    sigprocmask(SIG_SETMASK, &old, NULL);
    code = command_pid > 0 ? wait_command() : EXIT_SETUP;
    close(job.hold_fd);
    wait_cleaner(job.cleaner);
    return code;
}
