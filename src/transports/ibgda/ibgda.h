/* SPDX-License-Identifier: BSD-3-Clause */
/* ibgda.h - what the DEVX side keeps: doorbell pages, and the arenas that queues' rings and records lie in. */
#ifndef SHMEMI_IBGDA_H
#define SHMEMI_IBGDA_H

#include "transports/verbs/verbs.h"

#include <infiniband/mlx5dv.h>

enum {
    SHMEMI_IBGDA_PAGE = 4096,
    SHMEMI_IBGDA_BLOCK = 64,
    SHMEMI_IBGDA_LOG_CQ = 6, /* entries of 64 bytes that fill the page; a collapsed queue uses the first */
};

/*
 * Memory that the NIC reads and writes queues in: a few large pieces, each registered once, cut into places of one
 * size.  A place holds a queue's ring, the page of its completion entry, and a line of doorbell records.
 */
struct shmemi_ibgda_piece {
    struct shmemi_ibgda_piece *next;
    struct shmemi_ibgda_arena *arena;
    uint8_t *base;
    size_t bytes;
    struct mlx5dv_devx_umem *umem;
};

struct shmemi_ibgda_place {
    struct shmemi_ibgda_piece *piece;
    struct shmemi_ibgda_place *next_free;
    size_t ring, cq, records; /* offsets in the piece */
};

struct shmemi_ibgda_arena {
    pthread_mutex_t lock;
    size_t ring_bytes;
    const struct shmemi_nic_memory *memory; /* NULL: this process's own */
    unsigned places; /* in the newest piece */
    unsigned in_use;
    struct shmemi_ibgda_piece *pieces;
    struct shmemi_ibgda_place *free;
};

/* A doorbell page of a queue without a record. */
struct shmemi_ibgda_page {
    struct shmemi_ibgda_page *next;
    struct mlx5dv_devx_uar *uar;
    bool taken; /* by a queue, or for good: it is another's page */
};

/* In a doorbell page: the register of a queue without a record. */
enum { SHMEMI_IBGDA_BARE_BELL = 0x600 };

/* The one place where a completion queue's record and a queue pair's lie: 64 bytes apart, so that no line is shared. */
enum { SHMEMI_IBGDA_QP_RECORD = 0, SHMEMI_IBGDA_CQ_RECORD = 64, SHMEMI_IBGDA_RECORDS = 128 };

struct shmemi_ibgda {
    uint32_t pdn, eqn;
    struct mlx5dv_devx_uar *uar;      /* doorbells of the queues that send */
    struct mlx5dv_devx_uar *idle_uar; /* of those that only answer: never rung */
    struct shmemi_ibgda_arena arena, device_arena;
    struct shmemi_ibgda_place *idle_place; /* all that only answer share it */
    struct mlx5dv_devx_obj *idle_cq;
    uint32_t idle_cqn;
    uint32_t next_index;
    char record_why[100]; /* why queues need a doorbell record; "": they do not */
    pthread_mutex_t pages_lock;
    struct shmemi_ibgda_page *pages;
};

/* cmd.c: a command, `object` NULL for those that need none.  Logs a refusal as `what`, unless that is NULL. */
int shmemi_ibgda_query_cap(struct shmemi_verbs_nic *nic, unsigned which, uint8_t *out);
struct mlx5dv_devx_obj *shmemi_ibgda_create(struct shmemi_verbs_nic *nic, const char *what, void *in, size_t in_len,
                                            uint32_t *number_out, int *status_out);
int shmemi_ibgda_modify(struct shmemi_verbs_nic *nic, const char *what, struct mlx5dv_devx_obj *object, void *in,
                        size_t in_len);

/* arena.c */
void shmemi_ibgda_arena_open(struct shmemi_ibgda_arena *arena, size_t ring_bytes);
void shmemi_ibgda_arena_close(struct shmemi_ibgda_arena *arena);
/* In the memory, one at a time besides NULL's; what it has given goes back with the last place. */
int shmemi_ibgda_place_take(struct shmemi_verbs_nic *nic, const struct shmemi_nic_memory *memory,
                            struct shmemi_ibgda_place **out);
void shmemi_ibgda_place_give(struct shmemi_ibgda_place *place);
/* Between the process's memory and a place's, whoever's that is.  0 or -errno. */
int shmemi_ibgda_place_copy(const struct shmemi_ibgda_place *place, void *to, const void *from, size_t bytes);

/* page.c: NULL when the device has none left. */
struct shmemi_ibgda_page *shmemi_ibgda_page_take(struct shmemi_verbs_nic *nic);
void shmemi_ibgda_page_give(struct shmemi_verbs_nic *nic, struct shmemi_ibgda_page *page);
void shmemi_ibgda_pages_close(struct shmemi_verbs_nic *nic);

/* probe.c: what a queue in error died of, where its completion says no more than that entries were flushed. */
bool shmemi_ibgda_probe(struct shmemi_nic_queue *nq, struct shmemi_nic_error *out);

/* qp.c */
const char *shmemi_ibgda_opcode_name(uint8_t opcode);
int shmemi_ibgda_make_cq(struct shmemi_verbs_nic *nic, const struct shmemi_ibgda_place *place, bool idle,
                         struct mlx5dv_devx_obj **cq_out, uint32_t *cqn_out);

#endif
