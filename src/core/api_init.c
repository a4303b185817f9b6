/* SPDX-License-Identifier: BSD-3-Clause */
/* api_init.c - the routines of specification 1.6, sections 9.1 and 9.2: set-up, exit, query. */
#include "check.h"
#include "devmem.h"
#include "exit.h"
#include "init.h"
#include "net.h"
#include "team.h"

#include <string.h>

static void init_or_die(int level, const char *call)
{
    if (shmemi_init(level, call))
        shmemi_fatal(call, "the library cannot be initialised; the reason stands above");
}

SHMEMI_API(void, shmem_init, (void))
{
    init_or_die(SHMEM_THREAD_SINGLE, "shmem_init");
}

SHMEMI_API(int, shmem_init_thread, (int requested, int *provided))
{
    if (requested < SHMEM_THREAD_SINGLE || requested > SHMEM_THREAD_MULTIPLE)
        shmemi_fatal("shmem_init_thread", "thread level %d is not one of SHMEM_THREAD_*", requested);
    init_or_die(requested, "shmem_init_thread");
    if (provided)
        *provided = shmemi.thread_level;
    return 0;
}

SHMEMI_API(void, shmem_query_initialized, (int *initialized))
{
    shmemi_check_result(initialized, "initialized", "shmem_query_initialized");
    *initialized = shmemi.init_count > 0;
}

SHMEMI_API(void, shmem_query_thread, (int *provided))
{
    shmemi_check_init("shmem_query_thread");
    shmemi_check_result(provided, "provided", "shmem_query_thread");
    *provided = shmemi.thread_level;
}

SHMEMI_API(void, shmem_finalize, (void))
{
    shmemi_finalize("shmem_finalize");
}

SHMEMI_API(void, start_pes, (int npes))
{
    (void)npes; /* ignored, as the specification has it */
    if (shmemi.init_count)
        return;
    init_or_die(SHMEM_THREAD_SINGLE, "start_pes");
    shmemi_exit_finalizes();
}

SHMEMI_API(int, shmem_my_pe, (void))
{
    shmemi_check_init("shmem_my_pe");
    return shmemi.my_pe;
}

SHMEMI_API(int, shmem_n_pes, (void))
{
    shmemi_check_init("shmem_n_pes");
    return shmemi.n_pes;
}

SHMEMI_API(int, _my_pe, (void))
{
    shmemi_check_init("_my_pe");
    return shmemi.my_pe;
}

SHMEMI_API(int, _num_pes, (void))
{
    shmemi_check_init("_num_pes");
    return shmemi.n_pes;
}

SHMEMI_API(void, shmem_info_get_version, (int *major, int *minor))
{
    shmemi_check_result(major, "major", "shmem_info_get_version");
    shmemi_check_result(minor, "minor", "shmem_info_get_version");
    *major = SHMEM_MAJOR_VERSION;
    *minor = SHMEM_MINOR_VERSION;
}

SHMEMI_API(void, shmem_info_get_name, (char *name))
{
    shmemi_check_result(name, "name", "shmem_info_get_name");
    strcpy(name, SHMEM_VENDOR_STRING);
}

/* Can this PE reach `pe` at all?  Out of range is a plain no: the call is a question. */
SHMEMI_API(int, shmem_pe_accessible, (int pe))
{
    shmemi_check_init("shmem_pe_accessible");
    return (unsigned)pe < (unsigned)shmemi.n_pes && (shmemi.peers[pe].heap != 0 || shmemi_net.up);
}

/* The peer's mapping of a symmetric address, or NULL. */
static void *peer_address(const void *addr, int pe)
{
    uintptr_t off = (uintptr_t)addr - shmemi.heap_base;
    uintptr_t base = 0;

    if ((unsigned)pe >= (unsigned)shmemi.n_pes)
        return NULL;
    if (off < shmemi.heap_len) {
        base = shmemi.peers[pe].heap;
    } else if (shmemi_in_device_heap(addr)) {
        off = (uintptr_t)addr - shmemi.dheap_base;
        base = shmemi.peers[pe].dheap;
    } else {
        off = (uintptr_t)addr - shmemi.data_base;
        if (off < shmemi.data_len)
            base = shmemi.peers[pe].data;
    }
    if (pe == shmemi.my_pe && base)
        return (void *)(uintptr_t)addr; /* one's own address, and not a second mapping of it */
    return base ? (void *)(base + off) : NULL;
}

SHMEMI_API(int, shmem_addr_accessible, (const void *addr, int pe))
{
    shmemi_check_init("shmem_addr_accessible");
    return peer_address(addr, pe) != NULL || shmemi_net_reaches(addr, pe);
}

SHMEMI_API(void *, shmem_ptr, (const void *dest, int pe))
{
    shmemi_check_pe("shmem_ptr", pe);
    return peer_address(dest, pe);
}

SHMEMI_API(void *, shmem_team_ptr, (shmem_team_t team, const void *dest, int pe))
{
    struct shmemi_team *t = shmemi_team_get_or_invalid(team, "shmem_team_ptr");

    if (!t)
        return NULL;
    if ((unsigned)pe >= (unsigned)t->n_pes)
        shmemi_fatal("shmem_team_ptr", "PE %d is out of range: the team has PEs 0 to %d", pe, t->n_pes - 1);
    return peer_address(dest, shmemi_team_world_pe(t, pe));
}

SHMEMI_API(void, shmem_pcontrol, (int level, ...))
{
    (void)level; /* for profiling tools that define it; the library does nothing */
}
