/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Speed between two processes: batches from an idle queue to their last completion, the best of many counts, because
 * other load on the machine says nothing about the engine. Aims: 200,000 8-byte writes a second, 500 MB/s.
 */
#include "tests/nic.h"
#include "tests/tap.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BATCH = 2048, GROUP = 64, LARGE = 65536, LARGE_COUNT = 64, BATCHES = 60, WAIT_MS = 60000 };

static const struct nic_setup setup = { .sq_blocks = 1024, .rq_entries = 16, .cq_entries = 256, .psn = 0,
                                        .mtu_code = IBV_MTU_4096, .timeout = 18, .retry_cnt = 7, .rnr_retry = 7,
                                        .type = HCA_RC };

/* Keeps several groups under way and waits for the last one. */
static bool small_writes(struct nic *n)
{
    int posted = 0, done = 0;

    while (done < BATCH / GROUP) {
        while (posted < BATCH / GROUP && posted - done < 12) {
            for (uint64_t i = 0; i < GROUP; i++)
                nic_write_inline(n, n->peer_heap + 8 * i, n->peer_rkey, &i, 8, i == GROUP - 1 ? NIC_SIGNAL : 0);
            nic_ring(n);
            posted++;
        }
        if (nic_wait_send(n, WAIT_MS).opcode != MLX5_CQE_REQ)
            return false;
        done++;
    }
    return true;
}

static bool large(struct nic *n, bool read)
{
    for (int i = 0; i < LARGE_COUNT; i++) {
        uint64_t off = (uint64_t)(i % 8) * LARGE;
        uint8_t flags = i == LARGE_COUNT - 1 ? NIC_SIGNAL : 0;

        if (read)
            nic_read(n, n->heap + off, n->peer_heap + off, n->peer_rkey, LARGE, flags);
        else
            nic_write(n, n->peer_heap + off, n->peer_rkey, n->heap + off, LARGE, flags);
    }
    nic_ring(n);
    return nic_wait_send(n, WAIT_MS).opcode == MLX5_CQE_REQ;
}

/* Shortest time of a batch in seconds; 0: failed. kind: 0 small, 1 large writes, 2 large reads. */
static double best(struct nic *n, int kind)
{
    uint64_t shortest = UINT64_MAX;

    for (int i = 0; i < BATCHES; i++) {
        uint64_t start = hca_now_ns(), took;

        if (kind ? !large(n, kind == 2) : !small_writes(n))
            return 0;
        took = hca_now_ns() - start;
        shortest = took < shortest ? took : shortest;
    }
    return (double)shortest / 1e9;
}

static bool run(const char *wire, int rank, int sock)
{
    const double bytes = (double)LARGE * LARGE_COUNT;
    double small, writes, reads;
    bool strict = !strcmp(wire, "shm"), open;
    struct nic n;

    hca_config_read();
    hca_config.wire = wire;
    if (nic_open(&n, &setup, sock))
        return false;
    if (rank) {
        nic_sync(&n);
        nic_close(&n);
        hca_device_stop();
        return true;
    }
    small = best(&n, 0);
    writes = best(&n, 1);
    reads = best(&n, 2);
    open = nic_sync(&n) && small > 0 && writes > 0 && reads > 0;
    nic_close(&n);
    hca_device_stop();
    if (!open)
        return false;
    printf("# %s: %.0f 8-byte writes a second, 64 KiB writes %.0f MB/s, 64 KiB reads %.0f MB/s\n", wire, BATCH / small,
           bytes / writes / 1e6, bytes / reads / 1e6);
    return !strict || (BATCH / small >= 200000 && bytes / writes >= 500e6 && bytes / reads >= 500e6);
}

static bool run_pair(const char *wire)
{
    bool good = true;
    pid_t pid[2];
    int sv[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv))
        return false;
    fflush(stdout);
    for (int rank = 0; rank < 2; rank++) {
        pid[rank] = fork();
        if (pid[rank] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            alarm(120);
            close(sv[!rank]);
            good = run(wire, rank, sv[rank]);
            fflush(stdout);
            exit(!good);
        }
    }
    close(sv[0]);
    close(sv[1]);
    for (int rank = 0; rank < 2; rank++) {
        int status;

        if (pid[rank] < 0 || waitpid(pid[rank], &status, 0) < 0 || status)
            good = false;
    }
    return good;
}

int main(void)
{
    tap_ok(run_pair("shm"), "shared-memory wire reaches 200000 small writes a second and 500 MB/s");
    tap_ok(run_pair("udp"), "UDP wire carries the same");
    return tap_done();
}
