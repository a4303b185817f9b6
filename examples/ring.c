/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ring.c - sends a message around all PEs again and again with put-with-signal;
 * each PE checks what came, adds its number and sends it on.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <shmem.h>

#include <getopt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static uint64_t came; /* signal: messages that have come to this PE */

static void usage(FILE *to)
{
    fputs("usage: oshrun -n N ring [options]\n"
          "\n"
          "Sends a message around all PEs with shmem_put_signal and checks it at every stop.\n"
          "\n"
          "  -l, --laps N     laps (default 100)\n"
          "  -w, --words N    length of the message in 8-byte words (default 16)\n"
          "  -h, --help       this text\n",
          to);
}

/* The number that the whole text is, or -1: no option here takes negative ones. */
static long number(const char *text)
{
    char *end;
    long value = strtol(text, &end, 10);

    return end == text || *end ? -1 : value;
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
            *laps = number(optarg);
        } else if (c == 'w') {
            *words = number(optarg);
        } else {
            if (first)
                usage(c == 'h' ? stdout : stderr);
            return c == 'h' ? 1 : 3;
        }
    }
    if (optind != argc || *laps < 1 || *words < 1 || *words > 1 << 24) {
        if (first) {
            if (optind < argc)
                fprintf(stderr, "ring: takes no arguments, but '%s' is one\n", argv[optind]);
            else
                fputs("ring: --laps must be 1 or more, --words 1 to 16777216\n", stderr);
            usage(stderr);
        }
        return 3;
    }
    return 0;
}

/* What every word must be when it reaches PE `pe` in lap `lap`: one step for each stop before. */
static int64_t expected(long lap, int pe, int n, long word)
{
    return word + lap * n + pe;
}

/* Sends this PE's message on; the neighbour's buffer is free, its turn comes only with this message. */
static void pass_on(int64_t *inbox, int64_t *msg, long words, uint64_t number, int to)
{
    shmem_int64_put_signal(inbox, msg, (size_t)words, &came, number, SHMEM_SIGNAL_SET, to);
}

static long run(int64_t *inbox, int64_t *msg, long laps, long words)
{
    int me = shmem_my_pe(), n = shmem_n_pes();
    long wrong = 0;

    for (long lap = 0; lap < laps; lap++) {
        if (lap > 0 || me > 0) {
            /* PE 0 starts lap 0 itself, so it is one message behind the others. */
            shmem_signal_wait_until(&came, SHMEM_CMP_GE, (uint64_t)(me > 0 ? lap + 1 : lap));
            for (long w = 0; w < words; w++) {
                wrong += inbox[w] != expected(lap, me, n, w);
                msg[w] = inbox[w] + 1;
            }
        } else {
            for (long w = 0; w < words; w++)
                msg[w] = w + 1;
        }
        if (me + 1 < n || lap + 1 < laps)
            pass_on(inbox, msg, words, (uint64_t)lap + 1, (me + 1) % n);
    }
    return wrong;
}

int main(int argc, char **argv)
{
    static long wrong, all_wrong;
    long laps = 100, words = 16;
    struct timespec t0, t1;
    int64_t *inbox, *msg;
    int status;

    shmem_init();
    status = parse(argc, argv, &laps, &words);
    if (status) {
        shmem_finalize();
        return status - 1;
    }
    inbox = shmem_malloc((size_t)words * sizeof *inbox);
    msg = malloc((size_t)words * sizeof *msg);
    if (!inbox || !msg) {
        fprintf(stderr, "ring: PE %d: out of memory\n", shmem_my_pe());
        shmem_global_exit(1);
    }
    shmem_barrier_all();
    clock_gettime(CLOCK_MONOTONIC, &t0);
    wrong = run(inbox, msg, laps, words);
    clock_gettime(CLOCK_MONOTONIC, &t1);
    shmem_long_sum_reduce(SHMEM_TEAM_WORLD, &all_wrong, &wrong, 1);
    if (shmem_my_pe() == 0)
        printf("ring of %d PEs, %ld laps, %ld words: %s, %.0f ns a hop\n", shmem_n_pes(), laps, words,
               all_wrong ? "WRONG" : "all words right",
               ((double)(t1.tv_sec - t0.tv_sec) * 1e9 + (double)(t1.tv_nsec - t0.tv_nsec)) /
                   ((double)laps * shmem_n_pes()));
    free(msg);
    shmem_free(inbox);
    status = all_wrong != 0;
    shmem_finalize();
    return status;
}
