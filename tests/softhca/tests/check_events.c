/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Asynchronous events as an application sees them: drained queue, access error, overrun, receive limit; with an argument,
 * an injected fault of the port: "link" (run with --faults linkdown=...) or "death" (--faults die=...). Two queue pairs of
 * one process talk to each other. Run it under softhca-run.
 */
#include <poll.h>

#include "loop.h"

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
