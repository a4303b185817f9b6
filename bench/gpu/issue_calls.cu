/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * issue_calls.cu - what calls of shmem.h in kernels cost where a NIC leads to the peer, as issue.h measures.
 *
 *     bench-issue-calls [--quick]      rows as bench-issue's; no library, no peers, one GPU
 *
 * The device state says that there are two PEs and no way to the other one but two queues, of the default context and of a
 * private one.
 */
#define SHMEMX_MODULE 1
#include <shmem.h>
#include <shmemx.h>

#include "issue.h"

#define WORDS 64
#define CTX_HANDLE ((shmem_ctx_t)0x10002) /* generation 1, slot 1 */

enum { DEFAULT_QUEUE = 1, PRIVATE_QUEUE = 3 }; /* row * PEs + PE */

/* Own heap: the destinations' addresses are what they are here. */
__device__ static uint64_t heap[1 << 16];

struct calls_nothing {
    __device__ void operator()(struct shmemi_sq *, int) const {}
};

template <int Private> __device__ static shmem_ctx_t ctx(void)
{
    return Private ? CTX_HANDLE : SHMEM_CTX_DEFAULT;
}

template <int Private> struct call_p {
    __device__ void operator()(struct shmemi_sq *, int i) const { shmem_ctx_uint64_p(ctx<Private>(), heap, (uint64_t)i, 1); }
};

/* Eight bytes of memory. */
template <int Private> struct call_put_nbi {
    __device__ void operator()(struct shmemi_sq *, int) const
    {
        shmem_ctx_uint64_put_nbi(ctx<Private>(), heap, heap + 64, 1, 1);
    }
};

/* Memory that the NIC reads. */
template <int Private> struct call_put_long {
    __device__ void operator()(struct shmemi_sq *, int) const
    {
        shmem_ctx_uint64_put_nbi(ctx<Private>(), heap, heap + 1024, 512, 1);
    }
};

template <int Private> struct call_put_signal {
    __device__ void operator()(struct shmemi_sq *, int i) const
    {
        shmem_ctx_uint64_put_signal_nbi(ctx<Private>(), heap, heap + 1024, 512, heap + 8, (uint64_t)i, SHMEM_SIGNAL_SET, 1);
    }
};

template <int Private> struct call_put_signal_add {
    __device__ void operator()(struct shmemi_sq *, int) const
    {
        shmem_ctx_uint64_put_signal_nbi(ctx<Private>(), heap, heap + 1024, 512, heap + 8, 1, SHMEM_SIGNAL_ADD, 1);
    }
};

/* Eight bytes, which may change at once. */
template <int Private> struct call_put_signal_word {
    __device__ void operator()(struct shmemi_sq *, int i) const
    {
        shmem_ctx_uint64_put_signal(ctx<Private>(), heap, heap + 64, 1, heap + 8, (uint64_t)i, SHMEM_SIGNAL_SET, 1);
    }
};

template <int Private> struct call_iput {
    __device__ void operator()(struct shmemi_sq *, int) const
    {
        shmem_ctx_uint64_iput(ctx<Private>(), heap, heap + 2048, 2, 2, WORDS, 1);
    }
};

struct call_p_warp {
    __device__ void operator()(struct shmemi_sq *, int i) const { shmem_uint64_p(heap + shmemi_lane(), (uint64_t)i, 1); }
};

/* A quarter of the ring, call by call. */
template <class Op> struct stream_of {
    __device__ void operator()(struct shmemi_sq *sq, int i) const
    {
#pragma unroll 1
        for (uint32_t k = 0; k < DEPTH / 4; k++)
            Op()(sq, i * (int)(DEPTH / 4) + (int)k);
    }
};

struct job {
    struct shmemi_sq *queues;
    struct shmemi_dev_far *peers;
    struct shmemi_dev_peer *near;
    struct shmemi_dev_ctx *ctxs;
    char *area;
};

/* Which of the two queues the next row uses, and whether the private context is in a batch. */
static void tell(struct job *j, struct bench *b, int queue, int batch)
{
    struct shmemi_dev_ctx table[2] = { { 1, 2, 0, 1, 0, 0 },
                                       { 1, 2, 0, 1, 0, 1u | SHMEMI_DEV_ROW_PRIVATE | (batch ? SHMEMI_DEV_ROW_BATCH : 0) } };

    CUDA(cudaMemcpy(j->ctxs, table, sizeof table, cudaMemcpyHostToDevice));
    b->sq = j->queues + queue;
}

static void start(struct job *j)
{
    struct shmemi_dev_far peers[2] = { { RADDR, RADDR, 1, 1, 2, 2, 2, 0 }, { RADDR, RADDR, 1, 1, 2, 2, 2, 0 } };
    struct shmemi_dev_peer near[2];
    struct shmemi_dev_state s;
    void *at;

    memset(&s, 0, sizeof s);
    memset(near, 0, sizeof near);
    CUDA(cudaGetSymbolAddress(&at, heap));
    CUDA(cudaMalloc((void **)&j->queues, 4 * sizeof *j->queues));
    CUDA(cudaMalloc((void **)&j->peers, sizeof peers));
    CUDA(cudaMalloc((void **)&j->near, sizeof near));
    CUDA(cudaMalloc((void **)&j->ctxs, 2 * sizeof *j->ctxs));
    CUDA(cudaMalloc((void **)&j->area, SHMEMI_DEV_AREA_BYTES));
    CUDA(cudaMemset(j->queues, 0, 4 * sizeof *j->queues));
    CUDA(cudaMemset(j->area, 0, SHMEMI_DEV_AREA_BYTES));
    CUDA(cudaMemcpy(j->peers, peers, sizeof peers, cudaMemcpyHostToDevice));
    near[0].dheap = (uint64_t)(uintptr_t)at;
    CUDA(cudaMemcpy(j->near, near, sizeof near, cudaMemcpyHostToDevice));
    s.abi = SHMEMI_DEV_ABI;
    s.bytes = (uint32_t)sizeof s;
    s.n_pes = 2;
    s.dheap_base = (uint64_t)(uintptr_t)at;
    s.dheap_len = sizeof heap;
    s.peers = j->near;
    s.near[0] = near[0];
    s.ctxs = j->ctxs;
    s.n_ctxs = 2;
    s.nic.queues = (uint64_t)(uintptr_t)j->queues;
    s.nic.peers = j->peers;
    s.nic.area = (uint64_t)(uintptr_t)j->area;
    s.nic.stride = (uint32_t)sizeof *j->queues;
    s.nic.message_max = 1u << 30;
    CUDA(cudaMemcpyToSymbol(shmemi_dev_state, &s, sizeof s));
}

int main(int argc, char **argv)
{
    struct bench b = {};
    struct cudaDeviceProp prop;
    struct job j;

    b.n = argc > 1 && strcmp(argv[1], "--quick") == 0 ? 32 : SAMPLES;
    if (argc > 2 || (argc == 2 && b.n == SAMPLES)) {
        fprintf(stderr, "usage: bench-issue-calls [--quick]\n");
        return 2;
    }
    CUDA(cudaGetDeviceProperties(&prop, 0));
    set_up(&b);
    start(&j);
    printf("# Marrow, calls over a queue, ring of %u blocks, %s\nrow,unit,p50,mean,p999,max,wrong,p99\n", DEPTH, prop.name);
    tell(&j, &b, PRIVATE_QUEUE, 0);
    row(&b, "calls_nothing", calls_nothing(), 1, 1, 0, 0);
    row(&b, "call_p_private", call_p<1>(), 1, 1, 1, 1);
    row(&b, "call_put_nbi_private", call_put_nbi<1>(), 1, 1, 1, 1);
    row(&b, "call_put_long_private", call_put_long<1>(), 1, 1, 1, 1);
    row(&b, "call_put_signal_private", call_put_signal<1>(), 1, 1, 2, 1);
    row(&b, "call_put_signal_add_private", call_put_signal_add<1>(), 1, 1, 2, 1);
    row(&b, "call_put_signal_word_private", call_put_signal_word<1>(), 1, 1, 2, 1);
    row(&b, "call_iput_private", call_iput<1>(), 1, WORDS, 1, 1);
    tell(&j, &b, PRIVATE_QUEUE, 1);
    row(&b, "call_p_batch", stream_of<call_p<1> >(), 1, DEPTH / 4, 1, 1);
    row(&b, "call_put_nbi_batch", stream_of<call_put_nbi<1> >(), 1, DEPTH / 4, 1, 1);
    tell(&j, &b, DEFAULT_QUEUE, 0);
    row(&b, "call_p", call_p<0>(), 1, 1, 1, 1);
    row(&b, "call_put_long", call_put_long<0>(), 1, 1, 1, 1);
    row(&b, "call_put_signal", call_put_signal<0>(), 1, 1, 2, 1);
    row(&b, "call_put_signal_add", call_put_signal_add<0>(), 1, 1, 2, 1);
    row(&b, "call_put_signal_word", call_put_signal_word<0>(), 1, 1, 2, 1);
    row(&b, "call_iput", call_iput<0>(), 1, WORDS, 1, 1);
    row(&b, "call_p_warp", call_p_warp(), 32, 32, 1, 1);
    return b.errors;
}
