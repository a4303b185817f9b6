/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nccl.cu - NCCL and Marrow in one process: all-reduces by NCCL and put-with-signal from a kernel take turns on the same
 * stream, on buffers of both kinds, and each sees what the other wrote.
 *
 *     oshrun -n N nccl        with a GPU for each PE; with fewer, each PE's NCCL is a communicator of its own
 */
#include <shmem.h>
#include <shmemx.h>

#include <cuda_runtime.h>
#include <nccl.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N 4096
#define ROUNDS 50

static void must(int ok, const char *what, const char *why)
{
    if (ok)
        return;
    fprintf(stderr, "nccl: PE %d: %s: %s\n", shmem_my_pe(), what, why);
    shmem_global_exit(1);
}

static void cuda(cudaError_t status, const char *what)
{
    must(status == cudaSuccess, what, cudaGetErrorString(status));
}

static void nccl_ok(ncclResult_t status, const char *what)
{
    must(status == ncclSuccess, what, ncclGetErrorString(status));
}

/* Waits for the neighbour's row of this round, adds it to the sum that NCCL made, and sends the result on. */
__global__ void turn(int *sum, int *inbox, uint64_t *came, int round, int next, int *wrong, int want_sum, int want_row)
{
    for (int i = (int)threadIdx.x; i < N; i += (int)blockDim.x)
        if (sum[i] != want_sum + i)
            atomicAdd(wrong, 1);
    shmemx_int_put_signal_block(inbox, sum, N, came, (uint64_t)round + 1, SHMEM_SIGNAL_SET, next);
    if (threadIdx.x == 0)
        shmem_signal_wait_until(came, SHMEM_CMP_GE, (uint64_t)round + 1);
    __syncthreads();
    for (int i = (int)threadIdx.x; i < N; i += (int)blockDim.x)
        if (inbox[i] != want_row + i)
            atomicAdd(wrong, 1);
}

/* Contributions whose sum over `ranks` is  round * ranks + ... + i in total: rank 0 brings the i. */
__global__ void contribute(int *mine, int rank, int round)
{
    for (int i = (int)threadIdx.x; i < N; i += (int)blockDim.x)
        mine[i] = round + rank * 3 + (rank == 0 ? i : 0);
}

static int sum_for(int ranks, int first, int round)
{
    int sum = 0;

    for (int r = first; r < first + ranks; r++)
        sum += round + (r - first) * 3;
    return sum;
}

static ncclComm_t make_comm(int together, int me, int n)
{
    static ncclUniqueId id, from_pe0;
    ncclComm_t comm;

    if (together) {
        if (me == 0)
            nccl_ok(ncclGetUniqueId(&id), "ncclGetUniqueId");
        shmem_broadcastmem(SHMEM_TEAM_WORLD, &from_pe0, &id, sizeof id, 0);
        nccl_ok(ncclCommInitRank(&comm, n, from_pe0, me), "ncclCommInitRank");
    } else {
        nccl_ok(ncclGetUniqueId(&id), "ncclGetUniqueId");
        nccl_ok(ncclCommInitRank(&comm, 1, id, 0), "ncclCommInitRank");
    }
    return comm;
}

int main(void)
{
    static int bad, all_bad;
    int me, n, devices = 0, together, rank, ranks, zero = 0, *mine, *sum, *inbox, *wrong;
    uint64_t *came;
    cudaStream_t stream;
    ncclComm_t comm;

    shmem_init();
    me = shmem_my_pe();
    n = shmem_n_pes();
    cuda(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
    together = devices >= n;
    rank = together ? me : 0;
    ranks = together ? n : 1;
    comm = make_comm(together, me, n);
    cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
    cuda(cudaMalloc((void **)&mine, N * sizeof *mine), "cudaMalloc");
    cuda(cudaMalloc((void **)&wrong, sizeof *wrong), "cudaMalloc");
    cuda(cudaMemcpy(wrong, &zero, sizeof zero, cudaMemcpyHostToDevice), "cudaMemcpy");
    sum = (int *)shmemx_malloc_device(N * sizeof *sum);
    inbox = (int *)shmemx_malloc_device(N * sizeof *inbox);
    came = (uint64_t *)shmemx_malloc_device(sizeof *came);
    must(sum && inbox && came, "shmemx_malloc_device", "no memory");
    cuda(cudaMemset(came, 0, sizeof *came), "cudaMemset");
    cuda(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    shmem_barrier_all();
    for (int round = 0; round < ROUNDS; round++) {
        int want = sum_for(ranks, 0, round);

        contribute<<<1, 256, 0, stream>>>(mine, rank, round);
        nccl_ok(ncclAllReduce(mine, sum, N, ncclInt, ncclSum, comm, stream), "ncclAllReduce");
        turn<<<1, 256, 0, stream>>>(sum, inbox, came, round, (me + 1) % n, wrong, want, want);
        shmemx_barrier_all_on_stream(stream); /* every inbox has been read */
    }
    cuda(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    cuda(cudaMemcpy(&bad, wrong, sizeof bad, cudaMemcpyDeviceToHost), "cudaMemcpy");
    shmem_int_sum_reduce(SHMEM_TEAM_WORLD, &all_bad, &bad, 1);
    if (me == 0)
        printf("nccl: %d PEs, NCCL communicator%s of %d, %d rounds: %s (%d)\n", n, ranks == 1 ? "s" : "", ranks, ROUNDS,
               all_bad ? "WRONG" : "all values right", all_bad);
    nccl_ok(ncclCommDestroy(comm), "ncclCommDestroy");
    shmem_free(sum);
    shmem_free(inbox);
    shmem_free(came);
    shmem_finalize();
    return all_bad != 0;
}
