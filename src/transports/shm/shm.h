/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shm.h - the memory that the PEs of one node share: one anonymous memfd a node, mapped whole by each PE.
 *
 * The leader (lowest PE of the node) creates it and hands its descriptor to the others over an abstract
 * unix socket, to processes of its own user that know the job's secret.  So nothing has a name that could
 * outlive the job.  Layout, with L PEs on the node:
 *
 *     header | slice 0 | ... | slice L-1        slice: control | team blocks | static data | heap
 *
 * One mapping a process, however many peers: peer i's memory is at base + header + i * slice.
 */
#ifndef SHMEMI_SHM_H
#define SHMEMI_SHM_H

#include <stddef.h>
#include <stdint.h>

struct shmemi_shm {
    int fd; /* close-on-exec */
    char *base;
    size_t total, header, slice;
    size_t off_team_blocks, off_data, off_heap; /* within a slice */
    size_t data_len, heap_len;
};

/* The socket at which this PE, as a leader, would give the memory away. */
struct shmemi_shm_door {
    int fd;
    char name[24]; /* abstract name, without the leading zero byte */
    uint8_t secret[16];
};

int shmemi_shm_door_open(struct shmemi_shm_door *door);
void shmemi_shm_door_close(struct shmemi_shm_door *door);

/* Sizes only; lengths are rounded up.  -EOVERFLOW when the address space cannot hold it. */
int shmemi_shm_layout(struct shmemi_shm *shm, int n_local, size_t ctl_len, size_t team_len, size_t data_len,
                      size_t heap_len);

/* Leader: creates the memory and serves `n_others` PEs.  Others: fetch it through the leader's door. */
int shmemi_shm_lead(struct shmemi_shm *shm, struct shmemi_shm_door *door, int n_others, uint64_t timeout_ns);
int shmemi_shm_join(struct shmemi_shm *shm, const char *door_name, const uint8_t secret[16], uint64_t timeout_ns);

/* A connection to a door, its secret said, or -errno.  timeout_ns, 0 for none, also bounds later traffic. */
int shmemi_shm_connect(const char *door_name, const uint8_t secret[16], uint64_t timeout_ns);

/* One descriptor over a connected unix socket; `end`: CLOCK_MONOTONIC nanoseconds after which a signal may interrupt, or 0. */
int shmemi_shm_send_fd(int sock, int fd, uint64_t end);
int shmemi_shm_recv_fd(int sock, int *fd_out, uint64_t end);
/* Same user at the other end of a unix socket? */
int shmemi_shm_same_user(int sock);

/* Largest alignment that an address in one's own heap can have by its offset. */
#define SHMEMI_SHM_ALIGN ((size_t)256 << 20)

/* Maps everything, the heap of the PE at slice `my_local` (this one) at a multiple of SHMEMI_SHM_ALIGN. */
int shmemi_shm_map(struct shmemi_shm *shm, int my_local);
void shmemi_shm_close(struct shmemi_shm *shm);

#endif
