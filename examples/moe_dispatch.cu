/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * moe_dispatch.cu - the exchange of a mixture-of-experts layer, all rounds inside one kernel a PE: tokens go to the PEs of
 * the experts that they chose, each row by a warp's put-with-signal, come back changed, and are combined.
 *
 * No barrier between PEs anywhere.  A source's rows have their own place at each expert, and it starts the next round only
 * when all answers have come, so whoever read that place is done.
 */
#include "gpu.h"

#include <cooperative_groups.h>

#include <getopt.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#define THREADS 256
#define WARPS (THREADS / 32)

struct options {
    long tokens, hidden, experts, top, rounds, blocks;
};

/* Expert e is the local expert e / n_pes of PE e % n_pes.  A "choice" is token * top + k. */
struct layer {
    int me, n_pes, tokens, hidden, experts, top, rounds;
    int local; /* local experts, rounded up */

    float *x, *out, *sum; /* tokens x hidden: input, this round's result, all rounds' */
    int *chosen;          /* experts x tokens: the choices that go to each expert */
    float *answer;        /* a row for each warp of the grid */
    uint64_t *rows_before; /* local x n_pes: rows of earlier rounds */

    /* symmetric; by local expert and source */
    float *row;       /* local x n_pes x tokens rows */
    int *choice;      /* what the rows are, for the way back */
    uint64_t *listed; /* signal: round + 1 in the upper half, number of rows in the lower */
    uint64_t *rows;   /* signal: rows that have come, over all rounds */

    float *back;     /* symmetric, tokens x top rows: answers */
    uint64_t *backs; /* symmetric, signal: answers that have come, over all rounds */
};

/* --- what is computed, for the GPU and for the check ---------------------- */

__host__ __device__ static float input(int pe, int token, int h, int round)
{
    return (float)((pe * 31 + token * 7 + h) % 97) * 0.125f + (float)round;
}

/* The experts of a token differ from each other. */
__host__ __device__ static int expert_of(int pe, int token, int k, int experts)
{
    unsigned hash = (unsigned)(pe * 7919 + token) * 2654435761u;

    return (int)(((hash >> 16) + (unsigned)k) % (unsigned)experts);
}

__host__ __device__ static float expert_value(int expert, float x)
{
    return x * (float)(expert + 1) + 0.5f * (float)expert;
}

__host__ __device__ static float weight(int k)
{
    return 1.0f / (float)(1 << k);
}

/* --- the kernel ----------------------------------------------------------- */

/* One block: the rows of this PE that go to `expert`. */
__device__ static void dispatch(const struct layer *l, int expert, int round)
{
    __shared__ int count;
    int *list = l->chosen + (size_t)expert * l->tokens, pe = expert % l->n_pes;
    size_t place = (size_t)(expert / l->n_pes) * l->n_pes + l->me;

    if (threadIdx.x == 0)
        count = 0;
    __syncthreads();
    for (int c = (int)threadIdx.x; c < l->tokens * l->top; c += THREADS)
        if (expert_of(l->me, c / l->top, c % l->top, l->experts) == expert)
            list[atomicAdd(&count, 1)] = c;
    __syncthreads();
    for (int i = (int)threadIdx.x / 32; i < count; i += WARPS)
        shmemx_float_put_signal_warp(l->row + (place * l->tokens + i) * l->hidden,
                                     l->x + (size_t)(list[i] / l->top) * l->hidden, (size_t)l->hidden, l->rows + place, 1,
                                     SHMEM_SIGNAL_ADD, pe);
    shmemx_int_put_signal_block(l->choice + place * l->tokens, list, (size_t)count, l->listed + place,
                                (uint64_t)(round + 1) << 32 | (uint64_t)count, SHMEM_SIGNAL_SET, pe);
    __syncthreads();
}

/* One block: a local expert's work on one source's rows, sent back as it is done. */
__device__ static void work(const struct layer *l, int local, int source, int round)
{
    __shared__ int count;
    int expert = local * l->n_pes + l->me, lane = (int)threadIdx.x % 32;
    size_t place = (size_t)local * l->n_pes + source;
    float *answer = l->answer + ((size_t)blockIdx.x * WARPS + threadIdx.x / 32) * l->hidden;

    if (threadIdx.x == 0) {
        uint64_t word = shmem_signal_wait_until(l->listed + place, SHMEM_CMP_GE, (uint64_t)(round + 1) << 32);

        count = (int)(word & 0xffffffffu);
        l->rows_before[place] += (uint64_t)count;
        if (l->rows_before[place] > 0)
            shmem_signal_wait_until(l->rows + place, SHMEM_CMP_GE, l->rows_before[place]);
    }
    __syncthreads();
    for (int i = (int)threadIdx.x / 32; i < count; i += WARPS) {
        const float *row = l->row + (place * l->tokens + i) * l->hidden;
        int c = l->choice[place * l->tokens + i];

        for (int h = lane; h < l->hidden; h += 32)
            answer[h] = expert_value(expert, row[h]);
        __syncwarp();
        shmemx_float_put_signal_warp(l->back + (size_t)c * l->hidden, answer, (size_t)l->hidden, l->backs, 1,
                                     SHMEM_SIGNAL_ADD, source);
        __syncwarp();
    }
    __syncthreads();
}

/* The grid: weighs the answers; makes the next round's input. */
__device__ static void combine(const struct layer *l, int round)
{
    size_t all = (size_t)l->tokens * l->hidden;

    if (threadIdx.x == 0)
        shmem_signal_wait_until(l->backs, SHMEM_CMP_GE, (uint64_t)(round + 1) * l->tokens * l->top);
    __syncthreads();
    for (size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x; i < all; i += (size_t)gridDim.x * THREADS) {
        int token = (int)(i / l->hidden), h = (int)(i % l->hidden);
        float sum = 0;

        for (int k = 0; k < l->top; k++)
            sum += weight(k) * l->back[((size_t)token * l->top + k) * l->hidden + h];
        l->out[i] = sum;
        l->sum[i] += sum;
        l->x[i] = input(l->me, token, h, round + 1);
    }
}

/* Sending never waits, so each block may send all that it has before it waits for others. */
__global__ void __launch_bounds__(THREADS) layer_kernel(struct layer l)
{
    for (int round = 0; round < l.rounds; round++) {
        for (int e = (int)blockIdx.x; e < l.experts; e += (int)gridDim.x)
            dispatch(&l, e, round);
        for (int q = (int)blockIdx.x; q < l.local * l.n_pes; q += (int)gridDim.x)
            if (q / l.n_pes * l.n_pes + l.me < l.experts)
                work(&l, q / l.n_pes, q % l.n_pes, round);
        combine(&l, round);
        cooperative_groups::this_grid().sync(); /* the next round's input is complete */
    }
}

/* --- the host's part ------------------------------------------------------ */

static void usage(FILE *to)
{
    fputs("usage: oshrun -n N moe-dispatch [options]\n"
          "\n"
          "Tokens travel to the PEs of their experts and back, from inside one kernel a PE, and are\n"
          "combined; the CPU then computes the same and compares.\n"
          "\n"
          "  -t, --tokens N    tokens a PE (default 512)\n"
          "  -d, --hidden N    floats in a token (default 512)\n"
          "  -e, --experts N   experts in all (default 16)\n"
          "  -k, --top N       experts that a token goes to (default 2)\n"
          "  -r, --rounds N    rounds (default 20)\n"
          "  -b, --blocks N    blocks of threads a PE, all on the GPU at once (default 16)\n"
          "  -h, --help        this text\n",
          to);
}

/* 0, or the exit status plus one. */
static int parse(int argc, char **argv, struct options *o)
{
    static const struct option longs[] = {
        { "tokens", required_argument, NULL, 't' },  { "hidden", required_argument, NULL, 'd' },
        { "experts", required_argument, NULL, 'e' }, { "top", required_argument, NULL, 'k' },
        { "rounds", required_argument, NULL, 'r' },  { "blocks", required_argument, NULL, 'b' },
        { "help", no_argument, NULL, 'h' },          { NULL, 0, NULL, 0 }
    };
    int c, first = shmem_my_pe() == 0;

    opterr = first;
    while ((c = getopt_long(argc, argv, "t:d:e:k:r:b:h", longs, NULL)) != -1) {
        switch (c) {
        case 't': o->tokens = gpu_number(optarg); break;
        case 'd': o->hidden = gpu_number(optarg); break;
        case 'e': o->experts = gpu_number(optarg); break;
        case 'k': o->top = gpu_number(optarg); break;
        case 'r': o->rounds = gpu_number(optarg); break;
        case 'b': o->blocks = gpu_number(optarg); break;
        default:
            if (first)
                usage(c == 'h' ? stdout : stderr);
            return c == 'h' ? 1 : 3;
        }
    }
    if (optind == argc && o->tokens >= 1 && o->tokens <= 1 << 16 && o->hidden >= 1 && o->hidden <= 1 << 16 &&
        o->experts >= 1 && o->experts <= 1024 && o->top >= 1 && o->top <= 8 && o->top <= o->experts && o->rounds >= 1 &&
        o->rounds <= 100000 && o->blocks >= 1 && o->blocks <= 4096)
        return 0;
    if (first) {
        if (optind < argc)
            fprintf(stderr, "moe-dispatch: takes no arguments, but '%s' is one\n", argv[optind]);
        else
            fputs("moe-dispatch: --tokens and --hidden must be 1 to 65536, --experts 1 to 1024, --top 1 to 8 and at most\n"
                  "the experts, --rounds 1 to 100000, --blocks 1 to 4096\n",
                  stderr);
        usage(stderr);
    }
    return 3;
}

static void make_layer(const struct options *o, struct layer *l)
{
    size_t places, all = (size_t)o->tokens * o->hidden;
    float *x = (float *)malloc(all * sizeof *x);

    memset(l, 0, sizeof *l);
    l->me = shmem_my_pe();
    l->n_pes = shmem_n_pes();
    l->tokens = (int)o->tokens;
    l->hidden = (int)o->hidden;
    l->experts = (int)o->experts;
    l->top = (int)o->top;
    l->rounds = (int)o->rounds;
    l->local = (l->experts + l->n_pes - 1) / l->n_pes;
    places = (size_t)l->local * l->n_pes;
    if (!x)
        shmem_global_exit(1);
    for (size_t i = 0; i < all; i++)
        x[i] = input(l->me, (int)(i / o->hidden), (int)(i % o->hidden), 0);
    l->x = (float *)gpu_copy(x, all * sizeof *x);
    free(x);
    GPU(cudaMalloc((void **)&l->out, all * sizeof *l->out));
    GPU(cudaMalloc((void **)&l->sum, all * sizeof *l->sum));
    GPU(cudaMemset(l->sum, 0, all * sizeof *l->sum));
    GPU(cudaMalloc((void **)&l->chosen, (size_t)l->experts * l->tokens * sizeof *l->chosen));
    GPU(cudaMalloc((void **)&l->answer, (size_t)o->blocks * WARPS * l->hidden * sizeof *l->answer));
    GPU(cudaMalloc((void **)&l->rows_before, places * sizeof *l->rows_before));
    GPU(cudaMemset(l->rows_before, 0, places * sizeof *l->rows_before));
    l->row = (float *)gpu_symmetric(places * l->tokens * l->hidden * sizeof *l->row);
    l->choice = (int *)gpu_symmetric(places * l->tokens * sizeof *l->choice);
    l->listed = (uint64_t *)gpu_symmetric(places * sizeof *l->listed);
    l->rows = (uint64_t *)gpu_symmetric(places * sizeof *l->rows);
    l->back = (float *)gpu_symmetric(all * l->top * sizeof *l->back);
    l->backs = (uint64_t *)gpu_symmetric(sizeof *l->backs);
    GPU(cudaDeviceSynchronize());
}

static void free_layer(struct layer *l)
{
    void *mine[] = { l->x, l->out, l->sum, l->chosen, l->answer, l->rows_before };
    void *symmetric[] = { l->row, l->choice, l->listed, l->rows, l->back, l->backs };

    for (size_t i = 0; i < sizeof mine / sizeof mine[0]; i++)
        GPU(cudaFree(mine[i]));
    for (size_t i = 0; i < sizeof symmetric / sizeof symmetric[0]; i++)
        shmem_free(symmetric[i]);
}

static float combined(const struct layer *l, int token, int h, int round)
{
    float sum = 0;

    for (int k = 0; k < l->top; k++)
        sum += weight(k) * expert_value(expert_of(l->me, token, k, l->experts), input(l->me, token, h, round));
    return sum;
}

static int differs(float got, double want)
{
    return !(fabs(got - want) <= 1e-5 * (fabs(want) > 1 ? fabs(want) : 1));
}

/* Numbers of this PE's results that are not what the CPU computes, in the last round and over all rounds. */
static long check(const struct layer *l)
{
    size_t all = (size_t)l->tokens * l->hidden;
    float *out = (float *)malloc(2 * all * sizeof *out), *sum = out + all;
    long wrong = 0;

    if (!out)
        shmem_global_exit(1);
    GPU(cudaMemcpy(out, l->out, all * sizeof *out, cudaMemcpyDeviceToHost));
    GPU(cudaMemcpy(sum, l->sum, all * sizeof *sum, cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < all; i++) {
        int token = (int)(i / l->hidden), h = (int)(i % l->hidden);
        double want = 0;

        for (int round = 0; round < l->rounds; round++)
            want += combined(l, token, h, round);
        wrong += differs(out[i], combined(l, token, h, l->rounds - 1)) || differs(sum[i], want);
    }
    free(out);
    return wrong;
}

static int run(const struct options *o)
{
    static long wrong, all_wrong;
    struct layer l;
    double start, time;

    make_layer(o, &l);
    shmem_barrier_all();
    start = gpu_seconds();
    gpu_run_together("moe-dispatch", (const void *)layer_kernel, (int)o->blocks, THREADS, &l);
    time = gpu_seconds() - start;
    wrong = check(&l);
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &all_wrong, &wrong, 1);
    if (l.me == 0)
        printf("moe-dispatch: %d PEs, %d tokens of %d floats each to %d of %d experts, %d rounds: %s, %.1f us a round\n",
               l.n_pes, l.tokens, l.hidden, l.top, l.experts, l.rounds, all_wrong ? "WRONG" : "all results right",
               time * 1e6 / l.rounds);
    free_layer(&l);
    return all_wrong != 0;
}

int main(int argc, char **argv)
{
    struct options o = { 512, 512, 16, 2, 20, 16 };
    int status;

    shmem_init();
    status = parse(argc, argv, &o) - 1;
    if (status < 0)
        status = gpu_is_there("moe-dispatch") ? 1 : run(&o);
    shmem_finalize();
    return status;
}
