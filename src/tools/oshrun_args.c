/* SPDX-License-Identifier: BSD-3-Clause */
/* oshrun_args.c - oshrun's command line: its own options and those that scripts bring along from mpirun. */
#include "config.h"

#include "oshrun.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum option_id {
    OPT_HELP,
    OPT_VERSION,
    OPT_N,
    OPT_LAUNCHER,
    OPT_LAUNCHER_ARGS,
    OPT_EXPORT,
    OPT_TAG,
    OPT_TIMEOUT,
    OPT_BIND,
    OPT_HOST,
    OPT_WDIR,
    OPT_NODES,
    OPT_PTY,
    OPT_NO_PTY,
    OPT_SHOW,
    OPT_OURS,    /* mpirun's; what oshrun does anyway */
    OPT_PASS,    /* mpirun's; goes there, and means nothing to the others */
    OPT_MPIRUN,  /* mpirun's; would change where PEs run, so an error with the others */
};

/* Each may have one or two dashes, as mpirun takes them. */
static const struct option_row {
    const char *name;
    int values;
    enum option_id id;
} rows[] = {
    { "h", 0, OPT_HELP },
    { "help", 0, OPT_HELP },
    { "V", 0, OPT_VERSION },
    { "version", 0, OPT_VERSION },
    { "n", 1, OPT_N },
    { "np", 1, OPT_N },
    { "c", 1, OPT_N },
    { "ntasks", 1, OPT_N },
    { "launcher", 1, OPT_LAUNCHER },
    { "launcher-args", 1, OPT_LAUNCHER_ARGS },
    { "x", 1, OPT_EXPORT },
    { "l", 0, OPT_TAG },
    { "label", 0, OPT_TAG },
    { "tag-output", 0, OPT_TAG },
    { "timeout", 1, OPT_TIMEOUT },
    { "bind-to", 1, OPT_BIND },
    { "host", 1, OPT_HOST },
    { "H", 1, OPT_HOST },
    { "wdir", 1, OPT_WDIR },
    { "wd", 1, OPT_WDIR },
    { "nodes", 1, OPT_NODES },
    { "pty", 0, OPT_PTY },
    { "no-pty", 0, OPT_NO_PTY },
    { "show", 0, OPT_SHOW },
    { "allow-run-as-root", 0, OPT_OURS },
    { "oversubscribe", 0, OPT_OURS },
    { "map-by", 1, OPT_PASS },
    { "rank-by", 1, OPT_PASS },
    { "mca", 2, OPT_PASS },
    { "gmca", 2, OPT_PASS },
    { "tune", 1, OPT_PASS },
    { "prefix", 1, OPT_PASS },
    { "quiet", 0, OPT_PASS },
    { "q", 0, OPT_PASS },
    { "verbose", 0, OPT_PASS },
    { "v", 0, OPT_PASS },
    { "report-bindings", 0, OPT_PASS },
    { "display-map", 0, OPT_PASS },
    { "display-allocation", 0, OPT_PASS },
    { "use-hwthread-cpus", 0, OPT_PASS },
    { "bynode", 0, OPT_PASS },
    { "byslot", 0, OPT_PASS },
    { "hostfile", 1, OPT_MPIRUN },
    { "machinefile", 1, OPT_MPIRUN },
    { "npernode", 1, OPT_MPIRUN },
    { "N", 1, OPT_MPIRUN },
    { "rankfile", 1, OPT_MPIRUN },
    { "rf", 1, OPT_MPIRUN },
    { "output-filename", 1, OPT_MPIRUN },
    { "timestamp-output", 0, OPT_MPIRUN },
};

static const char help[] =
    "usage: oshrun [-n N] [options] [--] program [arguments] [: [-n N] program ...]\n"
    "Starts an OpenSHMEM program as N PEs.\n"
    "\n"
    "  -n, -np N             number of PEs (default with fork: one for each CPU)\n"
    "  --launcher L          fork: here, by oshrun alone (default); mpirun; srun\n"
    "                        (or MARROW_LAUNCHER)\n"
    "  --launcher-args 'A B' words for mpirun or srun, separated by blanks\n"
    "  -x VAR[=VALUE]        set, or hand on, an environment variable\n"
    "  -l, --tag-output      put \"[PE] \" before each line of output\n"
    "  --timeout SECONDS     end the job after that time, with status 124\n"
    "  --bind-to none|core   bind each PE to one CPU (default none)\n"
    "  --wdir DIR            run the program in DIR\n"
    "  --nodes K             the PEs act as if they were on K nodes (needs a NIC);\n"
    "                        without -n one PE on each\n"
    "  --host A:2,B:2        with mpirun and srun: hosts to run on\n"
    "  --no-pty              give the PEs pipes for their output, not terminals\n"
    "  --show                print mpirun's or srun's command line, run nothing\n"
    "  -h, --help  -V, --version\n"
    "\n"
    "Usual options of mpirun (--oversubscribe, --map-by X, --mca A B, ...) are accepted.\n"
    "Exit status: 0 when all PEs gave 0, else the first failing PE's; 128 + S when signal S\n"
    "killed it; 127 and 126 when the program is not found or not executable.  See oshrun(1).\n";

static SHMEMI_NORETURN void usage(const char *fmt, const char *arg)
{
    char text[512];

    snprintf(text, sizeof text, fmt, arg);
    osh_die(OSH_EXIT_USAGE, "%s (oshrun --help tells more)", text);
}

static const struct option_row *find_row(const char *name, size_t len)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (strlen(rows[i].name) == len && memcmp(rows[i].name, name, len) == 0)
            return &rows[i];
    return NULL;
}

static int number(const char *option, const char *text, int max, const char *what)
{
    char *end;
    long v;

    errno = 0;
    v = strtol(text, &end, 10);
    if (errno || end == text || *end || v < 1 || v > max)
        osh_die(OSH_EXIT_USAGE, "%s %s: not a number of %s from 1 to %d", option, text, what, max);
    return (int)v;
}

static enum osh_launcher launcher_of(const char *where, const char *name)
{
    if (strcmp(name, "fork") == 0)
        return OSH_FORK;
    if (strcmp(name, "mpirun") == 0 || strcmp(name, "mpiexec") == 0)
        return OSH_MPIRUN;
    if (strcmp(name, "srun") == 0)
        return OSH_SRUN;
    osh_die(OSH_EXIT_USAGE, "%s%s: no such launcher; fork, mpirun and srun are known", where, name);
}

/* -x VAR hands on, which everything is; -x VAR=VALUE sets. */
static void export_variable(const char *text)
{
    const char *eq = strchr(text, '=');
    char *name;

    if (!eq) {
        if (!getenv(text))
            osh_say("-x %s: this variable is not set; ignored", text);
        return;
    }
    name = strndup(text, (size_t)(eq - text));
    if (!name || !*name || setenv(name, eq + 1, 1))
        usage("-x %s: not a variable", text);
    free(name);
}

static void split_words(struct osh_options *opt, const char *text)
{
    char *copy = strdup(text), *save = NULL;

    for (char *w = copy ? strtok_r(copy, " \t", &save) : NULL; w; w = strtok_r(NULL, " \t", &save))
        osh_append(&opt->launcher_args, &opt->n_launcher_args, w);
    free(copy);
}

static void set_folder(struct osh_app *app, char *dir)
{
    struct stat st;

    if (stat(dir, &st) == 0 && !S_ISDIR(st.st_mode))
        usage("--wdir %s: not a folder", dir);
    app->wdir = dir;
}

/* What a command line was found to say, beyond the options themselves. */
struct parse {
    struct osh_options *opt;
    const char *mpirun_only; /* an option that only mpirun can honour */
};

static void apply(struct parse *ps, const struct option_row *row, const char *word, char **values)
{
    struct osh_options *opt = ps->opt;
    struct osh_app *app = &opt->apps[opt->n_apps - 1];

    switch (row->id) {
    case OPT_HELP: fputs(help, stdout); exit(0);
    case OPT_VERSION: printf("oshrun (%s) %s\n", PACKAGE_NAME, PACKAGE_VERSION); exit(0);
    case OPT_N: app->n = number(word, values[0], SHMEMI_FORK_MAX_PES, "PEs"); break;
    case OPT_LAUNCHER: opt->launcher = launcher_of("--launcher ", values[0]); break;
    case OPT_LAUNCHER_ARGS: split_words(opt, values[0]); break;
    case OPT_EXPORT:
        export_variable(values[0]);
        osh_append(&app->passed, &app->n_passed, "-x");
        osh_append(&app->passed, &app->n_passed, values[0]);
        break;
    case OPT_TAG: opt->tag = true; break;
    case OPT_TIMEOUT: opt->timeout_s = number(word, values[0], 1000000, "seconds"); break;
    case OPT_BIND: opt->bind = values[0]; break;
    case OPT_HOST: opt->hosts = values[0]; break;
    case OPT_WDIR: set_folder(app, values[0]); break;
    case OPT_NODES: opt->nodes = number(word, values[0], SHMEMI_FORK_MAX_PES, "nodes"); break;
    case OPT_PTY: opt->pty = true; break;
    case OPT_NO_PTY: opt->pty = false; break;
    case OPT_SHOW: opt->show = true; break;
    case OPT_OURS: break;
    case OPT_MPIRUN: ps->mpirun_only = row->name; /* fallthrough */
    case OPT_PASS:
        osh_append(&app->passed, &app->n_passed, word);
        for (int i = 0; i < row->values; i++)
            osh_append(&app->passed, &app->n_passed, values[i]);
        break;
    }
}

/* One option at argv[0]; returns how many words it took. */
static int parse_option(struct parse *ps, int argc, char **argv)
{
    char *word = argv[0];
    const char *name = word + (word[1] == '-' ? 2 : 1);
    size_t len = strcspn(name, "=");
    const struct option_row *row = find_row(name, len);
    char *value;

    if (!row)
        usage("%s: no such option; the program's own options come after the program", word);
    if (name[len] == '=') {
        if (row->values != 1)
            usage("%s: this option takes no =VALUE", word);
        value = word + (name - word) + len + 1;
        word = strndup(word, (size_t)(name - word) + len);
        if (!word)
            osh_die(1, "out of memory");
        apply(ps, row, word, &value);
        free(word);
        return 1;
    }
    if (argc <= row->values)
        usage("%s: a value is missing after it", word);
    apply(ps, row, word, argv + 1);
    return 1 + row->values;
}

static struct osh_app *new_app(struct osh_options *opt)
{
    opt->apps = osh_grow(opt->apps, (size_t)(opt->n_apps + 1) * sizeof *opt->apps);
    memset(&opt->apps[opt->n_apps], 0, sizeof *opt->apps);
    return &opt->apps[opt->n_apps++];
}

/* The program and its arguments, up to a lone ":" unless "--" stood before.  Returns how many words it took. */
static int parse_program(struct osh_options *opt, int argc, char **argv, bool literal)
{
    struct osh_app *app = &opt->apps[opt->n_apps - 1];
    int n = 0, words = 0;

    while (words < argc && (literal || strcmp(argv[words], ":")))
        osh_append(&app->argv, &n, argv[words++]);
    if (words < argc && ++words == argc) /* the colon */
        usage("%s", "no program given after the last :");
    return words;
}

static int default_pes(void)
{
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof set, &set) ? 0 : CPU_COUNT(&set);

    return n > 0 ? n : 1;
}

static bool only_this_host(const char *hosts)
{
    char own[256] = "";

    gethostname(own, sizeof own - 1);
    while (*hosts) {
        size_t len = strcspn(hosts, ",");
        size_t name = strcspn(hosts, ":,");

        if (!(name == strlen(own) && strncmp(hosts, own, name) == 0) &&
            !(name == 9 && strncmp(hosts, "localhost", 9) == 0) &&
            !(name == 9 && strncmp(hosts, "127.0.0.1", 9) == 0))
            return false;
        hosts += len + (hosts[len] == ',');
    }
    return true;
}

/* Of mpirun and of srun, with other meanings: say what is to be had here. */
static SHMEMI_NORETURN void usage_of_mpirun(const char *name)
{
    if (strcmp(name, "N") == 0)
        usage("-%s is PEs a node for mpirun and nodes for srun, and needs --launcher mpirun here; -n PEs --nodes K makes this "
              "machine act as K nodes", name);
    usage("--%s needs --launcher mpirun", name);
}

static void check_fork(const struct parse *ps)
{
    struct osh_options *opt = ps->opt;
    const char *nodes = getenv("SLURM_JOB_NUM_NODES");
    long total = 0;

    if (ps->mpirun_only)
        usage_of_mpirun(ps->mpirun_only);
    if (opt->hosts && !only_this_host(opt->hosts))
        usage("--host %s: other hosts need --launcher mpirun or srun", opt->hosts);
    if (opt->n_launcher_args)
        usage("%s needs --launcher mpirun or srun", "--launcher-args");
    for (int a = 0; a < opt->n_apps; a++) {
        if (opt->apps[a].n == 0)
            opt->apps[a].n = opt->n_apps == 1 ? default_pes() : 1;
        total += opt->apps[a].n;
    }
    if (total > SHMEMI_FORK_MAX_PES)
        osh_die(OSH_EXIT_USAGE, "%ld PEs: at most %d on one host", total, SHMEMI_FORK_MAX_PES);
    if (nodes && atoi(nodes) > 1)
        osh_say("this Slurm job has %s nodes; the PEs run on this one only (--launcher srun uses all)", nodes);
}

static void check_nodes(const struct osh_options *opt)
{
    long total = 0;

    if (opt->launcher == OSH_SRUN)
        usage("%s needs --launcher fork or mpirun; with srun set MARROW_NODE by a script", "--nodes");
    for (int a = 0; a < opt->n_apps; a++) {
        if (opt->apps[a].n == 0)
            usage("%s with several programs: each needs its -n", "--nodes");
        total += opt->apps[a].n;
    }
    if (total < opt->nodes)
        osh_die(OSH_EXIT_USAGE, "--nodes %d: there are only %ld PEs (-n says how many)", opt->nodes, total);
}

void osh_parse(struct osh_options *opt, int argc, char **argv)
{
    struct parse ps = { .opt = opt };
    const char *launcher = getenv("MARROW_LAUNCHER");
    bool literal = false;

    memset(opt, 0, sizeof *opt);
    opt->pty = true;
    if (launcher && *launcher)
        opt->launcher = launcher_of("MARROW_LAUNCHER=", launcher);
    argc--, argv++;
    do {
        new_app(opt);
        while (argc && argv[0][0] == '-' && argv[0][1] && !literal) {
            int n = 1;

            if (strcmp(argv[0], "--") == 0)
                literal = true;
            else
                n = parse_option(&ps, argc, argv);
            argc -= n, argv += n;
        }
        if (argc == 0 || strcmp(argv[0], ":") == 0)
            usage("%s", "no program given");
        if (!*argv[0])
            usage("%s", "the program's name is empty: a variable that is not set?");
        int n = parse_program(opt, argc, argv, literal);
        argc -= n, argv += n;
    } while (argc);
    if (opt->nodes && opt->n_apps == 1 && opt->apps[0].n == 0)
        opt->apps[0].n = opt->nodes; /* one on each, as srun has it */
    if (opt->launcher == OSH_FORK)
        check_fork(&ps);
    else if (opt->launcher == OSH_SRUN && ps.mpirun_only)
        usage_of_mpirun(ps.mpirun_only);
    if (opt->nodes)
        check_nodes(opt);
}
