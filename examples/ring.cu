/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ring.cu - ring.c inside one kernel: a message goes around all PEs' GPUs again and again; each kernel waits for it,
 * checks it, adds one and sends it on with put-with-signal, and no CPU takes part.
 */
#include "gpu.h"

#include <getopt.h>
#include <stdint.h>

static void usage(FILE *to)
{
    fputs("usage: oshrun -n N ring-gpu [options]\n"
          "\n"
          "Sends a message around all PEs' GPUs from inside one kernel a PE and checks it at every stop.\n"
          "\n"
          "  -l, --laps N     laps (default 100)\n"
          "  -w, --words N    length of the message in 8-byte words (default 16)\n"
          "  -h, --help       this text\n",
          to);
}

/* 0, or the exit status plus one. */
static int parse(int argc, char **argv, long *laps, long *words)
{
    static const struct option longs[] = { { "laps", required_argument, NULL, 'l' },
                                           { "words", required_argument, NULL, 'w' },
                                           { "help", no_argument, NULL, 'h' },
                                           { NULL, 0, NULL, 0 } };
    int c, first = shmem_my_pe() == 0;

    opterr = first;
    while ((c = getopt_long(argc, argv, "l:w:h", longs, NULL)) != -1) {
        if (c == 'l') {
            *laps = gpu_number(optarg);
        } else if (c == 'w') {
            *words = gpu_number(optarg);
        } else {
            if (first)
                usage(c == 'h' ? stdout : stderr);
            return c == 'h' ? 1 : 3;
        }
    }
    if (optind == argc && *laps >= 1 && *words >= 1 && *words <= 1 << 24)
        return 0;
    if (first) {
        if (optind < argc)
            fprintf(stderr, "ring-gpu: takes no arguments, but '%s' is one\n", argv[optind]);
        else
            fputs("ring-gpu: --laps must be 1 or more, --words 1 to 16777216\n", stderr);
        usage(stderr);
    }
    return 3;
}

struct ring {
    int64_t *inbox, *msg; /* `inbox` symmetric */
    uint64_t *came;       /* symmetric: messages that have come */
    unsigned long long *wrong;
    long laps, words;
    int me, n;
};

/* One block.  Every word of the message is one more than at the stop before. */
__global__ void __launch_bounds__(1024) go_round(struct ring r)
{
    unsigned long long bad = 0;

    for (long lap = 0; lap < r.laps; lap++) {
        /* PE 0 starts lap 0 itself, so it is one message behind the others. */
        uint64_t number = (uint64_t)(r.me > 0 ? lap + 1 : lap);

        if (threadIdx.x == 0 && number > 0)
            shmem_signal_wait_until(r.came, SHMEM_CMP_GE, number);
        __syncthreads();
        for (long w = threadIdx.x; w < r.words; w += blockDim.x) {
            int64_t word = number > 0 ? r.inbox[w] : w;

            bad += word != w + lap * r.n + r.me;
            r.msg[w] = word + 1;
        }
        /* The neighbour's inbox is free: its turn comes only with this message. */
        if (r.me + 1 < r.n || lap + 1 < r.laps)
            shmemx_int64_put_signal_block(r.inbox, r.msg, (size_t)r.words, r.came, (uint64_t)lap + 1, SHMEM_SIGNAL_SET,
                                          (r.me + 1) % r.n);
    }
    if (bad)
        atomicAdd(r.wrong, bad);
}

static int run(long laps, long words)
{
    static long wrong, all_wrong;
    unsigned long long zero = 0;
    struct ring r;
    double start, time;

    r.inbox = (int64_t *)gpu_symmetric((size_t)words * sizeof *r.inbox);
    r.came = (uint64_t *)gpu_symmetric(sizeof *r.came);
    GPU(cudaMalloc((void **)&r.msg, (size_t)words * sizeof *r.msg));
    r.wrong = (unsigned long long *)gpu_copy(&zero, sizeof zero);
    r.laps = laps;
    r.words = words;
    r.me = shmem_my_pe();
    r.n = shmem_n_pes();
    shmem_barrier_all();
    start = gpu_seconds();
    go_round<<<1, words < 1024 ? 32 * (int)((words + 31) / 32) : 1024>>>(r);
    GPU(cudaGetLastError());
    GPU(cudaDeviceSynchronize());
    time = gpu_seconds() - start;
    GPU(cudaMemcpy(&zero, r.wrong, sizeof zero, cudaMemcpyDeviceToHost));
    wrong = (long)zero;
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &all_wrong, &wrong, 1);
    if (r.me == 0)
        printf("ring of %d PEs, %ld laps, %ld words: %s, %.0f ns a hop\n", r.n, laps, words,
               all_wrong ? "WRONG" : "all words right", time * 1e9 / ((double)laps * r.n));
    GPU(cudaFree(r.msg));
    GPU(cudaFree(r.wrong));
    shmem_free(r.inbox);
    shmem_free(r.came);
    return all_wrong != 0;
}

int main(int argc, char **argv)
{
    long laps = 100, words = 16;
    int status;

    shmem_init();
    status = parse(argc, argv, &laps, &words) - 1;
    if (status < 0)
        status = gpu_is_there("ring-gpu") ? 1 : run(laps, words);
    shmem_finalize();
    return status;
}
