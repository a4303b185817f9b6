/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two devices of one process: each with its address, numbers and keys, and connected to the other. Arguments: "down" (run
 * with --faults mlx5_1:port=down), "error" (mlx5_1:qperr=1:0x02) or "death" (mlx5_1:die=...): the other one goes on.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "tap.h"

enum { RAILS = 2, BYTES = 4096, WAIT_MS = 30000 };
enum { ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC };

struct rail {
    struct ibv_context *ctx;
    struct ibv_port_attr port;
    union ibv_gid gid;
    struct ibv_pd *pd;
    struct ibv_mr *mr;
    struct ibv_cq *cq;
    struct ibv_qp *qp;
    uint8_t *buffer;
};

static struct rail rails[RAILS];

static void die(const char *what)
{
    printf("Bail out! %s: %s\n", what, strerror(errno));
    exit(1);
}

static void open_rail(struct rail *r, struct ibv_device *device)
{
    r->ctx = ibv_open_device(device);
    if (!r->ctx || ibv_query_port(r->ctx, 1, &r->port) || ibv_query_gid(r->ctx, 1, 0, &r->gid))
        die("device");
    r->buffer = aligned_alloc(BYTES, BYTES);
    r->pd = ibv_alloc_pd(r->ctx);
    r->cq = ibv_create_cq(r->ctx, 16, NULL, NULL, 0);
    if (!r->buffer || !r->pd || !r->cq)
        die("objects");
    memset(r->buffer, 0, BYTES);
    r->mr = ibv_reg_mr(r->pd, r->buffer, BYTES, ACCESS);
    if (!r->mr)
        die("memory");
}

static void make_qp(struct rail *r)
{
    struct ibv_qp_init_attr init = { .send_cq = r->cq, .recv_cq = r->cq, .qp_type = IBV_QPT_RC, .sq_sig_all = 1,
                                     .cap = { 8, 1, 1, 1, 0 } };
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = ACCESS };

    r->qp = ibv_create_qp(r->pd, &init);
    if (!r->qp || ibv_modify_qp(r->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
        die("queue pair");
}

static void connect_to(const struct rail *r, const struct rail *peer)
{
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR, .path_mtu = r->port.active_mtu, .dest_qp_num = peer->qp->qp_num,
                                .max_dest_rd_atomic = 1, .min_rnr_timer = 12,
                                .ah_attr = { .dlid = peer->port.lid, .port_num = 1 } };

    if (r->port.link_layer == IBV_LINK_LAYER_ETHERNET) {
        attr.ah_attr.is_global = 1;
        attr.ah_attr.grh.dgid = peer->gid;
        attr.ah_attr.grh.hop_limit = 64;
    }
    if (ibv_modify_qp(r->qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN
                                        | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
        die("RTR");
    attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS, .timeout = 10, .retry_cnt = 4, .rnr_retry = 7, .max_rd_atomic = 1 };
    if (ibv_modify_qp(r->qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN
                                        | IBV_QP_MAX_QP_RD_ATOMIC))
        die("RTS");
}

/* The status of its completion, -1: none came. */
static int finish(struct rail *r)
{
    const struct timespec tick = { .tv_nsec = 1000000 };
    struct ibv_wc wc;

    for (int ms = 0; ms < WAIT_MS; ms++) {
        if (ibv_poll_cq(r->cq, 1, &wc) == 1)
            return (int)wc.status;
        nanosleep(&tick, NULL);
    }
    return -1;
}

static int write_to(struct rail *r, const struct rail *to, uint32_t rkey, uint32_t lkey)
{
    struct ibv_sge sge = { (uintptr_t)r->buffer, BYTES / 2, lkey };
    struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE,
                              .wr.rdma = { (uintptr_t)to->buffer + BYTES / 2, rkey } }, *bad;

    return ibv_post_send(r->qp, &wr, &bad) ? -1 : finish(r);
}

static int add_to(struct rail *r, const struct rail *to)
{
    struct ibv_sge sge = { (uintptr_t)r->buffer, 8, r->mr->lkey };
    struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
                              .wr.atomic = { .remote_addr = (uintptr_t)to->buffer + 8, .compare_add = 5, .rkey = to->mr->rkey } },
                       *bad;

    return ibv_post_send(r->qp, &wr, &bad) ? -1 : finish(r);
}

static void renew(struct rail *a, struct rail *b, bool loop)
{
    struct rail *both[RAILS] = { a, b };

    for (int i = 0; i < RAILS; i++) {
        if (both[i]->qp && ibv_destroy_qp(both[i]->qp))
            die("destroy");
        make_qp(both[i]);
    }
    for (int i = 0; i < RAILS; i++)
        connect_to(both[i], loop ? both[i] : both[!i]);
}

static void identities(void)
{
    struct stat st[RAILS];
    bool good = true;

    for (int i = 0; i < RAILS; i++)
        good = good && !fstat(rails[i].ctx->cmd_fd, &st[i]) && S_ISCHR(st[i].st_mode);
    tap_ok(good && major(st[0].st_rdev) == major(st[1].st_rdev) && minor(st[0].st_rdev) + 1 == minor(st[1].st_rdev),
           "two device nodes");
    tap_ok(memcmp(&rails[0].gid, &rails[1].gid, sizeof rails[0].gid) != 0 && ibv_get_device_guid(rails[0].ctx->device)
           != ibv_get_device_guid(rails[1].ctx->device), "each has its GID and GUID");
    tap_ok(rails[0].port.link_layer == IBV_LINK_LAYER_ETHERNET || rails[0].port.lid != rails[1].port.lid, "and its LID");
    renew(&rails[0], &rails[1], false);
    tap_ok(rails[0].qp->qp_num != rails[1].qp->qp_num, "queue pair numbers do not collide");
}

static void traffic(void)
{
    uint64_t sum;

    for (int i = 0; i < RAILS; i++) {
        struct rail *from = &rails[i], *to = &rails[!i];

        memset(from->buffer, 0x51 + i, BYTES / 2);
        tap_ok(write_to(from, to, to->mr->rkey, from->mr->lkey) == IBV_WC_SUCCESS && to->buffer[BYTES - 1] == 0x51 + i,
               "a write from mlx5_%d to mlx5_%d", i, !i);
    }
    memset(rails[1].buffer, 0, 16);
    tap_ok(add_to(&rails[0], &rails[1]) == IBV_WC_SUCCESS, "an atomic from mlx5_0 to mlx5_1");
    memcpy(&sum, rails[1].buffer + 8, sizeof sum);
    tap_ok(sum == 5, "adds there");
}

/* Memory that only the other device knows: numbers may coincide, so take one that this device has not given out. */
static void foreign_keys(void)
{
    struct ibv_mr *more[8];
    struct ibv_mr *last = NULL;

    for (int i = 0; i < 8; i++) {
        more[i] = ibv_reg_mr(rails[0].pd, rails[0].buffer, BYTES, ACCESS);
        if (!more[i])
            die("memory");
        last = more[i];
    }
    tap_ok(write_to(&rails[0], &rails[1], last->rkey, rails[0].mr->lkey) == IBV_WC_REM_ACCESS_ERR,
           "mlx5_1 refuses a remote key of mlx5_0");
    renew(&rails[0], &rails[1], false);
    tap_ok(write_to(&rails[1], &rails[0], rails[0].mr->rkey, last->lkey) == IBV_WC_LOC_PROT_ERR,
           "mlx5_1 refuses a local key of mlx5_0");
    renew(&rails[0], &rails[1], false);
    for (int i = 0; i < 8; i++)
        ibv_dereg_mr(more[i]);
    tap_ok(write_to(&rails[0], &rails[1], rails[1].mr->rkey, rails[0].mr->lkey) == IBV_WC_SUCCESS, "and both work on");
}

static void down(void)
{
    tap_ok(rails[0].port.state == IBV_PORT_ACTIVE, "mlx5_0 is up");
    tap_ok(rails[1].port.state == IBV_PORT_DOWN, "mlx5_1 is down");
    renew(&rails[0], &rails[1], true);
    tap_ok(write_to(&rails[0], &rails[0], rails[0].mr->rkey, rails[0].mr->lkey) == IBV_WC_SUCCESS, "mlx5_0 carries data");
}

static void error(void)
{
    renew(&rails[0], &rails[1], true);
    tap_ok(write_to(&rails[1], &rails[1], rails[1].mr->rkey, rails[1].mr->lkey) == IBV_WC_LOC_QP_OP_ERR,
           "the first entry on mlx5_1 fails");
    tap_ok(write_to(&rails[0], &rails[0], rails[0].mr->rkey, rails[0].mr->lkey) == IBV_WC_SUCCESS, "that on mlx5_0 does not");
}

static bool event_waits(const struct rail *r, int ms)
{
    struct pollfd p = { .fd = r->ctx->async_fd, .events = POLLIN };

    return poll(&p, 1, ms) == 1;
}

static void death(void)
{
    struct ibv_async_event e;
    int pd;

    renew(&rails[0], &rails[1], true);
    write_to(&rails[1], &rails[1], rails[1].mr->rkey, rails[1].mr->lkey); /* its time begins with the first doorbell */
    tap_ok(event_waits(&rails[1], WAIT_MS) && !ibv_get_async_event(rails[1].ctx, &e)
           && e.event_type == IBV_EVENT_DEVICE_FATAL, "mlx5_1 dies");
    ibv_ack_async_event(&e);
    tap_ok(!event_waits(&rails[0], 0), "nobody tells mlx5_0");
    pd = ibv_alloc_pd(rails[1].ctx) ? 1 : 0;
    tap_ok(!pd, "commands on mlx5_1 are refused");
    tap_ok(write_to(&rails[0], &rails[0], rails[0].mr->rkey, rails[0].mr->lkey) == IBV_WC_SUCCESS, "mlx5_0 carries data");
}

static void close_rail(struct rail *r, bool must)
{
    int bad = ibv_destroy_qp(r->qp);

    bad |= ibv_destroy_cq(r->cq) | ibv_dereg_mr(r->mr) | ibv_dealloc_pd(r->pd);
    bad |= ibv_close_device(r->ctx);
    if (must)
        tap_ok(!bad, "a device is closed after its objects");
    free(r->buffer);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";
    int n = 0;
    struct ibv_device **list = ibv_get_device_list(&n);

    if (!tap_ok(n == RAILS && list, "the list shows %d devices", n))
        return tap_done();
    for (int i = 0; i < RAILS; i++)
        open_rail(&rails[i], list[i]);
    ibv_free_device_list(list);
    if (!strcmp(what, "down")) {
        down();
    } else if (!strcmp(what, "error")) {
        error();
    } else if (!strcmp(what, "death")) {
        death();
    } else {
        identities();
        traffic();
        foreign_keys();
    }
    for (int i = 0; i < RAILS; i++)
        close_rail(&rails[i], strcmp(what, "death") != 0);
    return tap_done();
}
