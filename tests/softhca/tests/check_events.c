/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Asynchronous events as an application sees them: drained queue, access error, overrun, receive limit; with an argument,
 * an injected fault of the port: "link" (run with --faults linkdown=...) or "death" (--faults die=...). Two queue pairs of
 * one process talk to each other. Run it under softhca-run.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tap.h"

enum { DEPTH = 16, BYTES = 4096, WAIT_MS = 30000, ACCESS = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE };

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_mr *mr;
static struct ibv_port_attr port;
static union ibv_gid gid;
static uint8_t *buffer;

static void die(const char *what)
{
    printf("Bail out! %s: %s\n", what, strerror(errno));
    exit(1);
}

static void open_device(void)
{
    struct ibv_device **list = ibv_get_device_list(NULL);

    if (!list || !list[0])
        die("no device");
    ctx = ibv_open_device(list[0]);
    ibv_free_device_list(list);
    buffer = aligned_alloc(4096, BYTES);
    pd = ctx ? ibv_alloc_pd(ctx) : NULL;
    mr = pd && buffer ? ibv_reg_mr(pd, buffer, BYTES, ACCESS) : NULL;
    if (!mr || ibv_query_port(ctx, 1, &port) || ibv_query_gid(ctx, 1, 0, &gid))
        die("device");
}

struct pair {
    struct ibv_cq *cq;
    struct ibv_srq *srq;
    struct ibv_qp *a, *b;
};

static struct ibv_qp *make_qp(struct pair *p)
{
    struct ibv_qp_init_attr init = { .send_cq = p->cq, .recv_cq = p->cq, .srq = p->srq, .qp_type = IBV_QPT_RC, .sq_sig_all = 1,
                                     .cap = { DEPTH, p->srq ? 0 : DEPTH, 1, 1, 0 } };
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qp_access_flags = ACCESS };
    struct ibv_qp *qp = ibv_create_qp(pd, &init);

    if (!qp || ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
        die("queue pair");
    return qp;
}

static void connect_qp(struct ibv_qp *qp, uint32_t peer)
{
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTR, .path_mtu = port.active_mtu, .dest_qp_num = peer,
                                .max_dest_rd_atomic = 1, .min_rnr_timer = 12,
                                .ah_attr = { .dlid = port.lid, .port_num = 1 } };

    if (port.link_layer == IBV_LINK_LAYER_ETHERNET) {
        attr.ah_attr.is_global = 1;
        attr.ah_attr.grh.dgid = gid;
        attr.ah_attr.grh.hop_limit = 64;
    }
    if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN
                                     | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
        die("RTR");
    attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7, .max_rd_atomic = 1 };
    if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN
                                     | IBV_QP_MAX_QP_RD_ATOMIC))
        die("RTS");
}

static void make_pair(struct pair *p, int cqe, bool srq)
{
    struct ibv_srq_init_attr init = { .attr = { .max_wr = DEPTH, .max_sge = 1 } };

    p->cq = ibv_create_cq(ctx, cqe, NULL, NULL, 0);
    p->srq = srq ? ibv_create_srq(pd, &init) : NULL;
    if (!p->cq || (srq && !p->srq))
        die("completion or receive queue");
    p->a = make_qp(p);
    p->b = make_qp(p);
    connect_qp(p->a, p->b->qp_num);
    connect_qp(p->b, p->a->qp_num);
}

static void end_pair(struct pair *p)
{
    bool good = !ibv_destroy_qp(p->a) && !ibv_destroy_qp(p->b) && (!p->srq || !ibv_destroy_srq(p->srq)) && !ibv_destroy_cq(p->cq);

    tap_ok(good, "the objects can be destroyed after their events");
}

static void post(struct ibv_qp *qp, enum ibv_wr_opcode opcode, uint32_t rkey)
{
    struct ibv_sge sge = { (uintptr_t)buffer, 8, mr->lkey };
    struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1, .opcode = opcode }, *bad;

    wr.wr.rdma.remote_addr = (uintptr_t)buffer + 64;
    wr.wr.rdma.rkey = rkey;
    if (ibv_post_send(qp, &wr, &bad))
        die("post_send");
}

/* The next event that is not about an established connection; false: none came. */
static bool next_event(struct ibv_async_event *event)
{
    struct pollfd fd = { .fd = ctx->async_fd, .events = POLLIN };

    while (poll(&fd, 1, WAIT_MS) == 1 && !ibv_get_async_event(ctx, event)) {
        ibv_ack_async_event(event);
        if (event->event_type != IBV_EVENT_COMM_EST)
            return true;
    }
    return false;
}

static void expect(enum ibv_event_type type, const void *element, const char *when)
{
    struct ibv_async_event event;
    bool came = next_event(&event);

    tap_ok(came && event.event_type == type && (!element || element == (void *)event.element.qp), "%s: %s", when,
           came ? ibv_event_type_str(event.event_type) : "no event");
}

static int wait_completions(struct ibv_cq *cq, int n)
{
    struct ibv_wc wc;

    for (int ms = 0; n > 0 && ms < WAIT_MS; ms++) {
        int got = ibv_poll_cq(cq, 1, &wc);

        if (got < 0)
            break;
        n -= got;
        if (!got)
            usleep(1000);
    }
    return n;
}

static void drained(void)
{
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1 };
    struct pair p;

    make_pair(&p, DEPTH, false);
    post(p.a, IBV_WR_RDMA_WRITE, mr->rkey);
    tap_ok(!ibv_modify_qp(p.a, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), "RTS to SQD");
    expect(IBV_EVENT_SQ_DRAINED, p.a, "a queue pair that drains");
    end_pair(&p);
}

static void access_error(void)
{
    struct pair p;

    make_pair(&p, DEPTH, false);
    post(p.a, IBV_WR_RDMA_WRITE, mr->rkey ^ 0x7700);
    expect(IBV_EVENT_QP_ACCESS_ERR, p.b, "a write with a wrong key, at its target");
    end_pair(&p);
}

static void overrun(void)
{
    struct pair p;

    make_pair(&p, 1, false);
    for (int i = 0; i < DEPTH / 2; i++)
        post(p.a, IBV_WR_RDMA_WRITE, mr->rkey);
    expect(IBV_EVENT_CQ_ERR, p.cq, "a completion queue that nobody empties");
    end_pair(&p);
}

static void receive_limit(void)
{
    struct ibv_sge sge = { (uintptr_t)buffer + 128, 64, mr->lkey };
    struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;
    struct ibv_srq_attr attr = { .srq_limit = 3 };
    struct pair p;

    make_pair(&p, DEPTH * 2, true);
    for (int i = 0; i < 4; i++)
        if (ibv_post_srq_recv(p.srq, &wr, &bad))
            die("post_srq_recv");
    tap_ok(!ibv_modify_srq(p.srq, &attr, IBV_SRQ_LIMIT), "receive limit of 3");
    post(p.a, IBV_WR_SEND, 0);
    post(p.a, IBV_WR_SEND, 0);
    expect(IBV_EVENT_SRQ_LIMIT_REACHED, p.srq, "fewer receives than the limit are left");
    tap_ok(!wait_completions(p.cq, 4), "the messages arrived");
    end_pair(&p);
}

static void last_wqe(void)
{
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
    struct pair p;

    make_pair(&p, DEPTH, true);
    tap_ok(!ibv_modify_qp(p.b, &attr, IBV_QP_STATE), "RTS to ERR");
    expect(IBV_EVENT_QP_LAST_WQE_REACHED, p.b, "a queue pair with a shared receive queue in ERR");
    end_pair(&p);
}

static void link_fault(void)
{
    struct pair p;

    make_pair(&p, DEPTH, false);
    post(p.a, IBV_WR_RDMA_WRITE, mr->rkey);
    expect(IBV_EVENT_PORT_ERR, NULL, "the link goes down");
    tap_ok(!ibv_query_port(ctx, 1, &port) && port.state == IBV_PORT_DOWN, "the port says so");
    expect(IBV_EVENT_PORT_ACTIVE, NULL, "the link comes back");
    tap_ok(!ibv_query_port(ctx, 1, &port) && port.state == IBV_PORT_ACTIVE, "the port says so");
    post(p.a, IBV_WR_RDMA_WRITE, mr->rkey);
    tap_ok(!wait_completions(p.cq, 2), "writes complete again");
    end_pair(&p);
}

static void death(void)
{
    struct ibv_pd *more;
    struct pair p;

    make_pair(&p, DEPTH, false);
    post(p.a, IBV_WR_RDMA_WRITE, mr->rkey);
    expect(IBV_EVENT_DEVICE_FATAL, NULL, "the device dies");
    errno = 0;
    more = ibv_alloc_pd(ctx);
    tap_ok(!more && errno == EIO, "commands fail with EIO then");
    end_pair(&p);
}

int main(int argc, char **argv)
{
    open_device();
    if (argc > 1 && !strcmp(argv[1], "link")) {
        link_fault();
    } else if (argc > 1 && !strcmp(argv[1], "death")) {
        death();
    } else {
        drained();
        access_error();
        overrun();
        receive_limit();
        last_wqe();
    }
    return tap_done();
}
