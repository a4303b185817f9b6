/* SPDX-License-Identifier: BSD-3-Clause */
/* select.h - which ports of which devices a PE uses: the list of the user, what works, what is near, and turns. */
#ifndef SHMEMI_VERBS_SELECT_H
#define SHMEMI_VERBS_SELECT_H

#include "verbs.h"

enum { SHMEMI_VERBS_MAX_PORTS = 128, SHMEMI_VERBS_WHY_BYTES = 160 };

struct shmemi_verbs_port {
    char device[64];
    int port;
    struct ibv_device *handle;
    enum ibv_port_state state;
    uint8_t link;
    uint64_t mbit;
    bool mlx5, iwarp;
    int far;      /* 0 is nearest */
    bool listed;  /* MARROW_HCA_LIST lets it in */
    bool out;     /* cannot or shall not be used */
    bool named;   /* MARROW_HCA_LIST names it, or its device */
    int rail;     /* 0: not used; 1: the home; 2 and on: further rails, by preference */
    char why[SHMEMI_VERBS_WHY_BYTES]; /* how near, or why not */
};

/* Marks what `list` lets in.  -EINVAL, and which word in `bad`: not a list.  *named_out: it names what is wanted. */
int shmemi_verbs_list_apply(const char *list, struct shmemi_verbs_port *ports, int n, bool *named_out, char *bad,
                            size_t bad_len);

/*
 * The index of the port to use as home, or -ENODEV when none can be, after `rail` of that and of all others to use was set: as
 * many as config->rails says, by distance, or those that are as near as the home (0).  `rank` fills in how far each usable port is and says
 * whose turn it is among equally near ones (-1: as my_local says); it is called when there is a choice.
 */
int shmemi_verbs_select(const struct shmemi_nic_config *config, struct shmemi_verbs_port *ports, int n, bool named,
                        int (*rank)(const struct shmemi_nic_config *config, struct shmemi_verbs_port *ports, int n));

/* topo.c: such a `rank` by hwloc.  `cpus`: a list as "0-3,8"; NULL: those that this thread may run on. */
int shmemi_verbs_topo_rank(const struct shmemi_nic_config *config, struct shmemi_verbs_port *ports, int n);
int shmemi_verbs_topo_rank_cpus(const struct shmemi_nic_config *config, struct shmemi_verbs_port *ports, int n,
                                const char *cpus);

/* device.c: every port here.  Their handles are valid until *list_out is freed with ibv_free_device_list. */
int shmemi_verbs_ports(struct shmemi_verbs_port *ports, int max, struct ibv_device ***list_out);
const char *shmemi_verbs_state_name(enum ibv_port_state state);

#endif
