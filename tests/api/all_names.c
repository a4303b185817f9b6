/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * all_names.c - links every routine by its name and its profiling name, and sees that both are one function.
 *
 * run: n=1 launch=bare timeout=60
 */
#define SHMEM_NO_GENERICS
#include "../mp/tap.h"

#include <dlfcn.h>
#include <pshmem.h>
#include <shmemx.h>

struct routine {
    const char *name;
    void (*standard)(void);
    void (*profiling)(void);
};

static const struct routine routines[] = {
#define ROUTINE(name, pname) { #name, (void (*)(void))name, (void (*)(void))pname },
#include "api_table.h"
};

int main(void)
{
    const size_t n = sizeof routines / sizeof *routines;
    size_t linked = 0, same = 0;

    tap_init();
    for (size_t i = 0; i < n; i++) {
        char pname[128];
        void *standard, *profiling;

        linked += routines[i].standard != NULL && routines[i].profiling != NULL;
        snprintf(pname, sizeof pname, "p%s", routines[i].name);
        standard = dlsym(RTLD_DEFAULT, routines[i].name);
        profiling = dlsym(RTLD_DEFAULT, pname);
        if (standard && standard == profiling)
            same++;
        else
            printf("# %s is %p, %s is %p\n", routines[i].name, standard, pname, profiling);
    }
    tap_check_eq(n, 1890); /* 1,685 current and 97 deprecated routines of 1.6, 12 older ones, 96 of ours */
    tap_point("the table has every name");
    tap_check_eq(linked, n);
    tap_point("every name links");
    tap_check_eq(same, n);
    tap_point("each name is an alias of its profiling name");
    tap_check(shmemx_wtime() > 0);
    tap_point("the extensions link");
    return tap_done();
}
