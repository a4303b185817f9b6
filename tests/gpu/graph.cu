/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * graph.cu - calls on a stream captured into a CUDA graph: puts, a signal and its wait, a barrier, reductions short and long, fcollect
 * and alltoall; the graph runs many times on new values, and each result is compared.
 *
 *     oshrun -n N graph
 */
#include <shmem.h>
#include <shmemx.h>

#include <cuda_runtime.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <vector>

#define SHORT_N 100
#define LONG_N (1 << 20)
#define ROUNDS 20

static int me, n;

static void cuda(cudaError_t status, const char *what)
{
    if (status == cudaSuccess)
        return;
    fprintf(stderr, "graph: PE %d: %s: %s\n", me, what, cudaGetErrorString(status));
    shmem_global_exit(1);
}

template <class T> static T *device(size_t count)
{
    T *p = (T *)shmemx_malloc_device(count * sizeof(T));

    if (!p) {
        fprintf(stderr, "graph: PE %d: no device memory\n", me);
        shmem_global_exit(1);
    }
    cuda(cudaMemset(p, 0, count * sizeof(T)), "cudaMemset");
    return p;
}

struct buffers {
    int *in, *put, *sum, *all, *sent;
    uint64_t *signal;
    int *round; /* in device memory: what the graph's kernels read */
};

/* Element i of PE `pe` in a round. */
__host__ __device__ static int value(int pe, int round, int i) { return pe * 1000 + round * 7 + i % 1000; }

__global__ void fill(struct buffers b, int pe)
{
    int round = *b.round, all = (int)(gridDim.x * blockDim.x);

    for (int i = (int)(blockIdx.x * blockDim.x + threadIdx.x); i < LONG_N; i += all)
        b.in[i] = value(pe, round, i);
}

__global__ void next_round(int *round) { ++*round; }

static void calls(const struct buffers *b, cudaStream_t s)
{
    int next = (me + 1) % n;

    fill<<<64, 256, 0, s>>>(*b, me);
    shmemx_barrier_all_on_stream(s);
    shmemx_int_put_signal_on_stream(b->put, b->in, LONG_N, b->signal, 1, SHMEM_SIGNAL_ADD, next, s);
    shmemx_signal_wait_until_on_stream(b->signal, SHMEM_CMP_GE, 1, s);
    shmemx_int_sum_reduce_on_stream(SHMEM_TEAM_WORLD, b->sum, b->in, SHORT_N, s);
    shmemx_int_max_reduce_on_stream(SHMEM_TEAM_WORLD, b->sum + SHORT_N, b->in + SHORT_N, LONG_N - SHORT_N, s);
    shmemx_int_fcollect_on_stream(SHMEM_TEAM_WORLD, b->all, b->in, LONG_N, s);
    shmemx_int_alltoall_on_stream(SHMEM_TEAM_WORLD, b->sent, b->in, SHORT_N, s);
    shmemx_barrier_all_on_stream(s);
    next_round<<<1, 1, 0, s>>>(b->round);
}

static long compare(const int *device_data, size_t count, int (*want)(size_t i, int round), int round)
{
    std::vector<int> got(count);
    long wrong = 0;

    cuda(cudaMemcpy(got.data(), device_data, count * sizeof(int), cudaMemcpyDeviceToHost), "cudaMemcpy");
    for (size_t i = 0; i < count; i++)
        wrong += got[i] != want(i, round);
    return wrong;
}

static int want_put(size_t i, int round) { return value((me + n - 1) % n, round, (int)i); }

static int want_sum(size_t i, int round)
{
    int sum = 0;

    for (int pe = 0; pe < n; pe++)
        sum += value(pe, round, (int)i);
    return sum;
}

static int want_max(size_t i, int round) { return value(n - 1, round, (int)i + SHORT_N); }
static int want_all(size_t i, int round) { return value((int)(i / LONG_N), round, (int)(i % LONG_N)); }
static int want_sent(size_t i, int round) { return value((int)(i / SHORT_N), round, me * SHORT_N + (int)(i % SHORT_N)); }

static long check(const struct buffers *b, int round)
{
    uint64_t signal = 0;
    long wrong = compare(b->put, LONG_N, want_put, round) + compare(b->sum, SHORT_N, want_sum, round) +
                 compare(b->sum + SHORT_N, LONG_N - SHORT_N, want_max, round) +
                 compare(b->all, (size_t)LONG_N * n, want_all, round) +
                 compare(b->sent, (size_t)SHORT_N * n, want_sent, round);

    cuda(cudaMemcpy(&signal, b->signal, sizeof signal, cudaMemcpyDeviceToHost), "cudaMemcpy");
    return wrong + (signal != (uint64_t)round + 1);
}

int main(void)
{
    static long wrong, all_wrong;
    struct buffers b;
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;

    shmem_init();
    me = shmem_my_pe();
    n = shmem_n_pes();
    b.in = device<int>(LONG_N);
    b.put = device<int>(LONG_N);
    b.sum = device<int>(LONG_N);
    b.all = device<int>((size_t)LONG_N * n);
    b.sent = device<int>((size_t)SHORT_N * n);
    b.signal = device<uint64_t>(1);
    cuda(cudaMalloc((void **)&b.round, sizeof *b.round), "cudaMalloc");
    cuda(cudaMemset(b.round, 0, sizeof *b.round), "cudaMemset");
    cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
    cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    shmem_barrier_all();
    cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), "cudaStreamBeginCapture");
    calls(&b, stream);
    cuda(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
    cuda(cudaGraphInstantiate(&exec, graph, 0), "cudaGraphInstantiate");
    for (int round = 0; round < ROUNDS; round++) {
        cuda(cudaGraphLaunch(exec, stream), "cudaGraphLaunch");
        cuda(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
        wrong += check(&b, round);
        shmem_barrier_all();
    }
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &all_wrong, &wrong, 1);
    if (me == 0)
        printf("graph: %d PEs, %d launches of one graph: %s (%ld)\n", n, ROUNDS, all_wrong ? "WRONG" : "all values right",
               all_wrong);
    cuda(cudaGraphExecDestroy(exec), "cudaGraphExecDestroy");
    cuda(cudaGraphDestroy(graph), "cudaGraphDestroy");
    shmem_finalize();
    return all_wrong != 0;
}
