/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * post.c - posts and completions over ibv_post_send and ibv_poll_cq.
 *
 * Deferred requests gather in a list that one ibv_post_send takes; its last one is signalled, and its completion stands
 * for all before it.  Inline data is copied when the request is made, as the list may go out later.
 */
#include "proxy.h"

#include <errno.h>
#include <sched.h>
#include <string.h>

enum { COMPLETIONS = 16, SPINS = 256 };

static void lock(struct shmemi_nic_queue *nq)
{
    struct shmemi_proxy_queue *q = nq->priv;

    if (nq->shared)
        pthread_mutex_lock(&q->lock);
}

static void unlock(struct shmemi_nic_queue *nq)
{
    struct shmemi_proxy_queue *q = nq->priv;

    if (nq->shared)
        pthread_mutex_unlock(&q->lock);
}

static void fail(struct shmemi_proxy_queue *q, uint64_t ticket, int error)
{
    if (q->error)
        return;
    q->failed = q->requests[ticket % q->depth];
    q->error = error;
}

static int take_completions(struct shmemi_proxy_queue *q)
{
    struct ibv_wc wc[COMPLETIONS];
    int n = ibv_poll_cq(q->cq, COMPLETIONS, wc);

    if (n < 0 || (n == 0 && __atomic_load_n(&q->dead, __ATOMIC_RELAXED)))
        fail(q, q->done + 1, -EIO);
    for (int i = 0; i < n; i++) {
        if (wc[i].status == IBV_WC_SUCCESS) {
            q->done = wc[i].wr_id;
            continue;
        }
        if (!q->error) {
            q->wc_status = wc[i].status;
            q->vendor = wc[i].vendor_err;
        }
        fail(q, wc[i].wr_id, -EIO);
    }
    return q->error;
}

/* Posts what waits. */
static int send_list(struct shmemi_proxy_queue *q)
{
    struct ibv_send_wr *bad = NULL;
    int err;

    if (!q->waiting)
        return q->error;
    for (unsigned i = 0; i + 1 < q->waiting; i++)
        q->wr[i].next = &q->wr[i + 1];
    q->wr[q->waiting - 1].next = NULL;
    q->wr[q->waiting - 1].send_flags |= IBV_SEND_SIGNALED;
    q->waiting = 0;
    if (q->error)
        return q->error;
    err = ibv_post_send(q->qp, q->wr, &bad);
    if (err) {
        q->refused = true;
        fail(q, bad ? bad->wr_id : q->posted, err > 0 ? -err : -EIO);
    }
    return q->error;
}

/* Room for one more; the list must go out first, or nothing would ever complete. */
static int wait_for_room(struct shmemi_proxy_queue *q)
{
    int status = q->error;

    if (!status && q->waiting == SHMEMI_PROXY_BATCH)
        status = send_list(q);
    if (q->posted - q->done < q->depth)
        return status;
    if (!status)
        status = send_list(q);
    for (unsigned spins = 1; !status && q->posted - q->done >= q->depth; spins++) {
        status = take_completions(q);
        if (spins % SPINS == 0)
            sched_yield();
    }
    return status;
}

/* A request with its ticket; the caller fills in what it is. */
static struct ibv_send_wr *request(struct shmemi_proxy_queue *q, enum ibv_wr_opcode opcode, uint64_t raddr, void *laddr,
                                   uint32_t lkey, uint32_t len, int flags)
{
    struct ibv_send_wr *wr = &q->wr[q->waiting];
    struct ibv_sge *sge = &q->sge[q->waiting++];

    q->posted++;
    q->requests[q->posted % q->depth] = (struct shmemi_proxy_request){ raddr, opcode };
    *sge = (struct ibv_sge){ (uintptr_t)laddr, len, lkey };
    memset(wr, 0, sizeof *wr);
    wr->wr_id = q->posted;
    wr->sg_list = sge;
    wr->num_sge = len ? 1 : 0;
    wr->opcode = opcode;
    wr->send_flags = flags & SHMEMI_SQ_FENCE ? IBV_SEND_FENCE : 0;
    return wr;
}

/* Gives the ticket, and posts unless that is left to a later call. */
static int64_t finish(struct shmemi_nic_queue *nq, int flags)
{
    struct shmemi_proxy_queue *q = nq->priv;
    int64_t ticket = (int64_t)q->posted;
    int status = flags & SHMEMI_SQ_DEFER ? q->error : send_list(q);

    unlock(nq);
    return status ? status : ticket;
}

static int64_t give_up(struct shmemi_nic_queue *nq, int status)
{
    unlock(nq);
    return status;
}

int64_t shmemi_proxy_write(struct shmemi_nic_queue *nq, uint64_t raddr, uint32_t rkey, const void *laddr, uint32_t lkey,
                           uint32_t len, int flags)
{
    struct shmemi_proxy_queue *q = nq->priv;
    void *from = (void *)(uintptr_t)laddr;
    bool copied = len && len <= q->inline_max && !(flags & SHMEMI_NIC_IN_PLACE);
    struct ibv_send_wr *wr;
    int status;

    lock(nq);
    status = wait_for_room(q);
    if (status)
        return give_up(nq, status);
    if (copied)
        from = memcpy(q->data[q->waiting], laddr, len);
    wr = request(q, IBV_WR_RDMA_WRITE, raddr, from, lkey, len, flags);
    if (copied)
        wr->send_flags |= IBV_SEND_INLINE;
    wr->wr.rdma.remote_addr = raddr;
    wr->wr.rdma.rkey = rkey;
    return finish(nq, flags);
}

int64_t shmemi_proxy_read(struct shmemi_nic_queue *nq, uint64_t raddr, uint32_t rkey, void *laddr, uint32_t lkey,
                          uint32_t len, int flags)
{
    struct shmemi_proxy_queue *q = nq->priv;
    struct ibv_send_wr *wr;
    int status;

    lock(nq);
    status = wait_for_room(q);
    if (status)
        return give_up(nq, status);
    wr = request(q, IBV_WR_RDMA_READ, raddr, laddr, lkey, len, flags);
    wr->wr.rdma.remote_addr = raddr;
    wr->wr.rdma.rkey = rkey;
    return finish(nq, flags);
}

int64_t shmemi_proxy_atomic(struct shmemi_nic_queue *nq, uint64_t raddr, uint32_t rkey, uint64_t operand,
                            const uint64_t *compare, uint64_t *laddr, uint32_t lkey, int flags)
{
    struct shmemi_proxy_queue *q = nq->priv;
    enum ibv_wr_opcode opcode = compare ? IBV_WR_ATOMIC_CMP_AND_SWP : IBV_WR_ATOMIC_FETCH_AND_ADD;
    struct ibv_send_wr *wr;
    int status;

    lock(nq);
    status = wait_for_room(q);
    if (status)
        return give_up(nq, status);
    wr = request(q, opcode, raddr, laddr, lkey, sizeof *laddr, flags);
    wr->wr.atomic.remote_addr = raddr;
    wr->wr.atomic.rkey = rkey;
    wr->wr.atomic.compare_add = compare ? *compare : operand;
    wr->wr.atomic.swap = compare ? operand : 0;
    return finish(nq, flags);
}

int shmemi_proxy_flush(struct shmemi_nic_queue *nq)
{
    int status;

    lock(nq);
    status = send_list(nq->priv);
    unlock(nq);
    return status;
}

int shmemi_proxy_poll(struct shmemi_nic_queue *nq, uint64_t *done_out)
{
    struct shmemi_proxy_queue *q = nq->priv;
    int status;

    lock(nq);
    status = take_completions(q);
    *done_out = q->done;
    unlock(nq);
    return status ? -EIO : 0;
}
