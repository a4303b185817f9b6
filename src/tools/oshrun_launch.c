/* SPDX-License-Identifier: BSD-3-Clause */
/* oshrun_launch.c - oshrun by way of mpirun or srun: says in their words what the user said in ours. */
#include "config.h"

#include "oshrun.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct command {
    char **argv;
    int argc;
};

static void add(struct command *c, const char *word)
{
    osh_append(&c->argv, &c->argc, word);
}

static void add_number(struct command *c, const char *option, int n)
{
    char text[16];

    snprintf(text, sizeof text, "%d", n);
    add(c, option);
    add(c, text);
}

static void add_list(struct command *c, char *const *words, int n)
{
    for (int i = 0; i < n; i++)
        add(c, words[i]);
}

/* mpirun hands the environment to other hosts by name only. */
static void add_exports(const struct osh_options *opt, struct command *c)
{
    static const char *const prefixes[] = { "MARROW_", "SHMEM_", "SMA_" };
    extern char **environ;

    for (char **e = environ; *e; e++) {
        for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
            char name[256];
            size_t len = strcspn(*e, "=");

            if (strncmp(*e, prefixes[i], strlen(prefixes[i])) || len >= sizeof name)
                continue;
            if (opt->nodes && len == 11 && strncmp(*e, "MARROW_NODE", len) == 0)
                continue; /* each program has its own */
            snprintf(name, sizeof name, "%.*s", (int)len, *e);
            add(c, "-x");
            add(c, name);
        }
    }
}

/* `n` PEs of a program; node -1: where they really are. */
static void add_app(const struct osh_options *opt, struct command *c, const struct osh_app *app, int n, int node,
                    bool first)
{
    char name[32];

    if (!first)
        add(c, ":");
    if (n)
        add_number(c, "-n", n);
    if (opt->hosts) {
        add(c, "--host");
        add(c, opt->hosts);
    }
    if (app->wdir) {
        add(c, "--wdir");
        add(c, app->wdir);
    }
    add_list(c, app->passed, app->n_passed);
    if (node >= 0) {
        snprintf(name, sizeof name, "MARROW_NODE=n%d", node);
        add(c, "-x");
        add(c, name);
    }
    for (char **arg = app->argv; *arg; arg++)
        add(c, *arg);
}

static void build_mpirun(const struct osh_options *opt, struct command *c)
{
    int total = 0, pe = 0;

    add(c, "mpirun");
    if (geteuid() == 0)
        add(c, "--allow-run-as-root");
    add(c, "--oversubscribe");
    add(c, "--bind-to");
    add(c, opt->bind ? opt->bind : "none");
    if (opt->tag)
        add(c, "--tag-output");
    if (opt->timeout_s)
        add_number(c, "--timeout", opt->timeout_s);
    add_exports(opt, c);
    add_list(c, opt->launcher_args, opt->n_launcher_args);
    for (int a = 0; a < opt->n_apps; a++)
        total += opt->apps[a].n;
    for (int a = 0; a < opt->n_apps; a++) {
        const struct osh_app *app = &opt->apps[a];

        if (!opt->nodes) {
            add_app(opt, c, app, app->n, -1, a == 0);
            continue;
        }
        /* One program for each node that its PEs are on. */
        for (int left = app->n; left;) {
            int node = osh_node_of(opt->nodes, pe, total), n = 1;

            while (n < left && osh_node_of(opt->nodes, pe + n, total) == node)
                n++;
            add_app(opt, c, app, n, node, pe == 0);
            pe += n;
            left -= n;
        }
    }
}

/* a:2,b:2 -> a,b */
static void strip_slots(char *hosts)
{
    char *to = hosts;
    bool skip = false;

    for (char *p = hosts; *p; p++) {
        skip = *p == ':' || (skip && *p != ',');
        if (!skip)
            *to++ = *p;
    }
    *to = '\0';
}

static void build_srun(const struct osh_options *opt, struct command *c)
{
    const struct osh_app *app = &opt->apps[0];

    add(c, "srun");
    add(c, "--mpi=pmix");
    add(c, "--kill-on-bad-exit=1"); /* else the others run on when a PE dies */
    add(c, "--input=0");
    if (app->n)
        add_number(c, "-n", app->n);
    if (opt->bind)
        add(c, strcmp(opt->bind, "core") == 0 ? "--cpu-bind=cores" : "--cpu-bind=none");
    if (opt->tag)
        add(c, "--label");
    if (opt->hosts) {
        strip_slots(opt->hosts);
        add(c, "-w");
        add(c, opt->hosts);
    }
    if (app->wdir) {
        add(c, "--chdir");
        add(c, app->wdir);
    }
    add_list(c, opt->launcher_args, opt->n_launcher_args);
    for (char **arg = app->argv; *arg; arg++)
        add(c, *arg);
}

/* As a shell would need it. */
static void print_word(const char *word)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_@%+=:,./-";

    if (*word && !word[strspn(word, plain)]) {
        fputs(word, stdout);
        return;
    }
    putchar('\'');
    for (; *word; word++)
        if (*word == '\'')
            fputs("'\\''", stdout);
        else
            putchar(*word);
    putchar('\'');
}

int osh_exec_launcher(const struct osh_options *opt)
{
    static struct command c;

    if (opt->launcher == OSH_SRUN) {
        if (opt->n_apps > 1)
            osh_die(OSH_EXIT_USAGE, "several programs in one job are not possible with srun here");
        if (opt->timeout_s)
            osh_die(OSH_EXIT_USAGE, "--timeout is not possible with srun; its own limit is "
                                    "--launcher-args --time=MINUTES");
        build_srun(opt, &c);
    } else {
        build_mpirun(opt, &c);
    }
    if (opt->show) {
        for (int i = 0; i < c.argc; i++) {
            if (i)
                putchar(' ');
            print_word(c.argv[i]);
        }
        putchar('\n');
        return 0;
    }
    if (opt->launcher == OSH_MPIRUN)
        osh_guard_start();
    execvp(c.argv[0], c.argv);
    osh_say("cannot execute the launcher %s: %s", c.argv[0], strerror(errno));
    return errno == ENOENT ? OSH_EXIT_NOT_FOUND : OSH_EXIT_CANNOT_RUN;
}
