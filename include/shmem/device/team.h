/* SPDX-License-Identifier: BSD-3-Clause */
/* team.h - what a kernel can ask about PEs and teams, and the addresses of peers' memory. */
#ifndef SHMEM_DEVICE_TEAM_H
#define SHMEM_DEVICE_TEAM_H

#include "addr.h"

#ifdef SHMEMI_DEVICE_CODE

SHMEMI_DEV int shmemi_dev_my_pe(void)
{
    if (shmemi_dev_state.n_pes == 0)
        shmemi_not_started();
    return shmemi_dev_state.my_pe;
}

SHMEMI_DEV int shmemi_dev_n_pes(void)
{
    if (shmemi_dev_state.n_pes == 0)
        shmemi_not_started();
    return shmemi_dev_state.n_pes;
}

SHMEMI_DEV int shmemi_dev_team_my_pe(shmem_team_t team)
{
    return team == SHMEM_TEAM_INVALID ? -1 : shmemi_dev_team_get(team, SHMEMI_CALL_TEAM_QUERY).my_pe;
}

SHMEMI_DEV int shmemi_dev_team_n_pes(shmem_team_t team)
{
    return team == SHMEM_TEAM_INVALID ? -1 : shmemi_dev_team_get(team, SHMEMI_CALL_TEAM_QUERY).n_pes;
}

SHMEMI_DEV int shmemi_dev_team_translate(shmem_team_t src, int src_pe, shmem_team_t dest)
{
    struct shmemi_dev_team s, d;
    int distance, index;

    if (src == SHMEM_TEAM_INVALID || dest == SHMEM_TEAM_INVALID)
        return -1;
    s = shmemi_dev_team_get(src, SHMEMI_CALL_TEAM_QUERY);
    d = shmemi_dev_team_get(dest, SHMEMI_CALL_TEAM_QUERY);
    if (src_pe < 0 || src_pe >= s.n_pes)
        return -1;
    distance = shmemi_dev_team_world(&s, src_pe) - d.start;
    if (distance % d.stride)
        return -1;
    index = distance / d.stride;
    return index >= 0 && index < d.n_pes ? index : -1;
}

/* Null where the PE's memory is out of reach, and for an address that is not symmetric. */
SHMEMI_DEV void *shmemi_dev_ptr(const void *dest, int pe)
{
    uint64_t room;

    shmemi_dev_check_pe(pe, SHMEMI_CALL_PTR);
    return (void *)(uintptr_t)shmemi_dev_try(dest, pe, &room);
}

SHMEMI_DEV void *shmemi_dev_team_ptr(shmem_team_t team, const void *dest, int pe)
{
    struct shmemi_dev_team t;

    if (team == SHMEM_TEAM_INVALID)
        return 0;
    t = shmemi_dev_team_get(team, SHMEMI_CALL_PTR);
    if ((uint32_t)pe >= (uint32_t)t.n_pes)
        shmemi_dev_fail(SHMEMI_DEV_BAD_PE, SHMEMI_CALL_PTR, (uint64_t)(int64_t)pe, (uint64_t)t.n_pes, 0);
    return shmemi_dev_ptr(dest, shmemi_dev_team_world(&t, pe));
}

SHMEMI_DEV int shmemi_dev_pe_accessible(int pe)
{
    return (uint32_t)pe < (uint32_t)shmemi_dev_n_pes() &&
           (shmemi_dev_base(pe, 0) || shmemi_dev_base(pe, 1) || shmemi_dev_nic());
}

SHMEMI_DEV int shmemi_dev_addr_accessible(const void *addr, int pe)
{
    uint64_t room;

    return (uint32_t)pe < (uint32_t)shmemi_dev_n_pes() &&
           (shmemi_dev_try(addr, pe, &room) != 0 || (room && shmemi_dev_nic()));
}

#endif
#endif
