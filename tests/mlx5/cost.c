/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cost.c - puts of 8 inline bytes or of 4096 registered ones, ours and rdma-core's, for a profiler that
 * counts the instructions of the functions measured_* (cost.sh).
 *
 *     cost METHOD    makes PUTS puts; METHOD: see the table below
 */
#include "peer.h"

enum { PUTS = 40, BYTES = 4096 };

#define MEASURED static __attribute__((noinline, used))

/* Everything a put needs is in registers or in the queue, as in a library that has looked up its peer. */
MEASURED void measured_private(struct peer *p, uint64_t raddr, shmemi_be32 rkey, uint64_t v)
{
    shmemi_sq_write_value(&p->sq, SHMEMI_SQ_PRIVATE, raddr, rkey, v, 8, 0);
    __asm__ volatile("" ::: "memory");
}

MEASURED void measured_deferred(struct peer *p, uint64_t raddr, shmemi_be32 rkey, uint64_t v)
{
    shmemi_sq_write_value(&p->sq, SHMEMI_SQ_PRIVATE, raddr, rkey, v, 8, SHMEMI_SQ_DEFER);
    __asm__ volatile("" ::: "memory");
}

MEASURED void measured_shared(struct peer *p, uint64_t raddr, shmemi_be32 rkey, uint64_t v)
{
    shmemi_sq_write_value(&p->sq, SHMEMI_SQ_SHARED, raddr, rkey, v, 8, 0);
    __asm__ volatile("" ::: "memory");
}

MEASURED void measured_inline(struct peer *p, uint64_t raddr, shmemi_be32 rkey, uint64_t v)
{
    uint32_t len = 8;

    __asm__ volatile("" : "+r"(len)); /* a length that the compiler does not know */
    shmemi_sq_write_inline(&p->sq, SHMEMI_SQ_PRIVATE, raddr, rkey, &v, len, 0);
    __asm__ volatile("" ::: "memory");
}

MEASURED void measured_write(struct peer *p, uint64_t raddr, shmemi_be32 rkey, uint64_t v)
{
    shmemi_sq_write(&p->sq, SHMEMI_SQ_PRIVATE, raddr, rkey, v, rkey, BYTES, 0);
    __asm__ volatile("" ::: "memory");
}

MEASURED void measured_verbs(struct peer *p, struct ibv_send_wr *wr)
{
    struct ibv_send_wr *bad;

    if (ibv_post_send(p->qp, wr, &bad))
        die("ibv_post_send");
    __asm__ volatile("" ::: "memory");
}

static void verbs(struct peer *p, int registered)
{
    uint64_t v = 5;
    struct ibv_sge sge = { registered ? (uintptr_t)p->heap + HEAP / 2 : (uintptr_t)&v, registered ? BYTES : 8,
                           p->mr->lkey };
    struct ibv_send_wr wr = { .sg_list = &sge,
                              .num_sge = 1,
                              .opcode = IBV_WR_RDMA_WRITE,
                              .send_flags = IBV_SEND_SIGNALED | (registered ? 0 : IBV_SEND_INLINE),
                              .wr.rdma = { (uintptr_t)p->heap, p->mr->rkey } };

    for (int i = 0; i < PUTS; i++) {
        measured_verbs(p, &wr);
        await_completion(p);
    }
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*put)(struct peer *, uint64_t, shmemi_be32, uint64_t);
    } methods[] = { { "private", measured_private },
                    { "deferred", measured_deferred },
                    { "shared", measured_shared },
                    { "inline", measured_inline },
                    { "write", measured_write } };
    struct peer p = { 0 };
    shmemi_be32 key;

    if (argc < 2)
        return 2;
    open_device(&p);
    make_qp(&p);
    key = shmemi_be32_of(p.mr->rkey);
    if (strncmp(argv[1], "verbs", 5) == 0)
        verbs(&p, strcmp(argv[1], "verbs") != 0);
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        for (int n = 0; n < PUTS && strcmp(argv[1], methods[i].name) == 0; n++)
            methods[i].put(&p, (uintptr_t)p.heap, key, (uintptr_t)p.heap + HEAP / 2);
    printf("%d puts\n", PUTS);
    return 0;
}
