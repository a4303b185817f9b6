/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * heat.cu - heat in a plate as in heat2d.c, all steps inside one kernel that stays on the GPU.  Each block of threads
 * owns a band of rows and waits only for the bands above and below it: a flag when that band is on the same GPU, its
 * edge row put with a signal when it is another PE's.
 */
#include "gpu.h"

#include <getopt.h>
#include <stdint.h>
#include <string.h>

#define THREADS 256

struct options {
    long rows, cols, steps, blocks;
    int check;
};

/*
 * One PE's part of the plate: rows 1 .. rows of each grid are its own, 0 and rows + 1 are halos (or the plate's fixed edge).
 * Step s reads grid[s % 2] and writes the other one.
 */
struct plate {
    double *grid[2];                  /* symmetric */
    uint64_t *from_above, *from_below; /* symmetric, a word a band: steps that the neighbour has finished */
    long rows, cols, steps;
    int bands, me;
    int above, below;     /* PEs, or -1 */
    int last_band_above;  /* of the PE above */
    long halo_of_above;   /* its row rows + 1 */
};

static void usage(FILE *to)
{
    fputs("usage: oshrun -n N heat-gpu [options]\n"
          "\n"
          "Heat in a plate whose upper edge is at 100 degrees and the others at 0: Jacobi steps inside one\n"
          "kernel a PE, bands of rows that exchange their edges by put-with-signal from the kernel.\n"
          "PE 0's CPU then computes the plate alone and compares bit by bit.\n"
          "\n"
          "  -r, --rows N     inner rows (default 512)\n"
          "  -c, --cols N     inner columns (default 512)\n"
          "  -s, --steps N    steps (default 200)\n"
          "  -b, --blocks N   blocks of threads a PE, all on the GPU at once (default 16)\n"
          "  -n, --no-check   skip the comparison\n"
          "  -h, --help       this text\n",
          to);
}

/* 0, or the exit status plus one. */
static int parse(int argc, char **argv, struct options *o)
{
    static const struct option longs[] = {
        { "rows", required_argument, NULL, 'r' },  { "cols", required_argument, NULL, 'c' },
        { "steps", required_argument, NULL, 's' }, { "blocks", required_argument, NULL, 'b' },
        { "no-check", no_argument, NULL, 'n' },    { "help", no_argument, NULL, 'h' },
        { NULL, 0, NULL, 0 }
    };
    int c, first_pe = shmem_my_pe() == 0;

    opterr = first_pe;
    while ((c = getopt_long(argc, argv, "r:c:s:b:nh", longs, NULL)) != -1) {
        switch (c) {
        case 'r': o->rows = gpu_number(optarg); break;
        case 'c': o->cols = gpu_number(optarg); break;
        case 's': o->steps = gpu_number(optarg); break;
        case 'b': o->blocks = gpu_number(optarg); break;
        case 'n': o->check = 0; break;
        default:
            if (first_pe)
                usage(c == 'h' ? stdout : stderr);
            return c == 'h' ? 1 : 3;
        }
    }
    if (optind == argc && o->rows > 0 && o->cols > 0 && o->steps > 0 && o->rows <= 1 << 24 && o->cols <= 1 << 24 &&
        o->blocks > 0 && o->blocks <= 4096)
        return 0;
    if (first_pe) {
        if (optind < argc)
            fprintf(stderr, "heat-gpu: takes no arguments, but '%s' is one\n", argv[optind]);
        else
            fputs("heat-gpu: --rows and --cols must be 1 to 16777216, --steps 1 or more, --blocks 1 to 4096\n", stderr);
        usage(stderr);
    }
    return 3;
}

/* --- the kernel --------------------------------------------------------- */

/* The block's threads have all written: says so to a band on this GPU. */
__device__ static void tell(uint64_t *flag, uint64_t steps, int me)
{
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        shmemx_signal_op(flag, steps, SHMEM_SIGNAL_SET, me);
    }
}

/* `to` holds step s's result; `first` .. `last` are this band's rows in it. */
__device__ static void pass_edges(const struct plate *p, double *to, int band, long first, long last, uint64_t steps)
{
    size_t width = (size_t)p->cols + 2;

    if (band > 0)
        tell(p->from_below + band - 1, steps, p->me);
    else if (p->above >= 0)
        shmemx_double_put_signal_block(to + p->halo_of_above * (long)width, to + first * (long)width, width,
                                       p->from_below + p->last_band_above, steps, SHMEM_SIGNAL_SET, p->above);
    if (band + 1 < p->bands)
        tell(p->from_above + band + 1, steps, p->me);
    else if (p->below >= 0)
        shmemx_double_put_signal_block(to, to + last * (long)width, width, p->from_above, steps, SHMEM_SIGNAL_SET,
                                       p->below);
}

/*
 * A neighbour last read our edge of the grid that we write in its step s - 1, and its flag, for which we waited, says that
 * this is over: the two grids are all the protection that is needed.
 */
__global__ void __launch_bounds__(THREADS) heat(struct plate p)
{
    int band = (int)blockIdx.x;
    long width = p.cols + 2, first = p.rows * band / p.bands + 1, last = p.rows * (band + 1) / p.bands;
    int has_above = band > 0 || p.above >= 0, has_below = band + 1 < p.bands || p.below >= 0;

    for (long s = 0; s < p.steps; s++) {
        const double *from = p.grid[s % 2];
        double *to = p.grid[1 - s % 2];

        if (threadIdx.x == 0 && s > 0) {
            if (has_above)
                shmem_signal_wait_until(p.from_above + band, SHMEM_CMP_GE, (uint64_t)s);
            if (has_below)
                shmem_signal_wait_until(p.from_below + band, SHMEM_CMP_GE, (uint64_t)s);
        }
        __syncthreads();
        for (long i = first; i <= last; i++) {
            const double *mid = from + i * width;

            for (long j = 1 + threadIdx.x; j <= p.cols; j += blockDim.x)
                to[i * width + j] = 0.25 * (mid[j - width] + mid[j + width] + mid[j - 1] + mid[j + 1]);
        }
        __syncthreads();
        pass_edges(&p, to, band, first, last, (uint64_t)s + 1);
    }
}

/* --- the host's part ---------------------------------------------------- */

static long first_row(long rows, int pe, int n)
{
    return rows * pe / n;
}

static int bands_of(const struct options *o, int pe, int active)
{
    long rows = first_row(o->rows, pe + 1, active) - first_row(o->rows, pe, active);

    return (int)(rows < o->blocks ? rows : o->blocks);
}

/* PEs beyond the number of rows get no part; only the first `active` take part. */
static void make_plate(const struct options *o, int active, struct plate *p)
{
    size_t width = (size_t)o->cols + 2;
    long most = (o->rows + active - 1) / active;
    double *edge;

    memset(p, 0, sizeof *p);
    p->cols = o->cols;
    p->steps = o->steps;
    p->me = shmem_my_pe();
    for (int k = 0; k < 2; k++)
        p->grid[k] = (double *)gpu_symmetric((size_t)(most + 2) * width * sizeof(double));
    p->from_above = (uint64_t *)gpu_symmetric((size_t)o->blocks * sizeof(uint64_t));
    p->from_below = (uint64_t *)gpu_symmetric((size_t)o->blocks * sizeof(uint64_t));
    if (p->me >= active)
        return;
    p->rows = first_row(o->rows, p->me + 1, active) - first_row(o->rows, p->me, active);
    p->bands = bands_of(o, p->me, active);
    p->above = p->me - 1; /* -1 for PE 0 */
    p->below = p->me + 1 < active ? p->me + 1 : -1;
    if (p->above >= 0) {
        p->last_band_above = bands_of(o, p->above, active) - 1;
        p->halo_of_above = first_row(o->rows, p->me, active) - first_row(o->rows, p->above, active) + 1;
        return;
    }
    edge = (double *)calloc(width, sizeof *edge);
    if (!edge)
        shmem_global_exit(1);
    for (size_t j = 1; j < width - 1; j++)
        edge[j] = 100;
    for (int k = 0; k < 2; k++)
        GPU(cudaMemcpy(p->grid[k], edge, width * sizeof *edge, cudaMemcpyHostToDevice));
    free(edge);
}

static void serial(double *g[2], const struct options *o)
{
    long width = o->cols + 2;

    for (long j = 1; j <= o->cols; j++)
        g[0][j] = g[1][j] = 100;
    for (long s = 0; s < o->steps; s++)
        for (long i = 1; i <= o->rows; i++) {
            const double *mid = g[s % 2] + i * width;

            for (long j = 1; j <= o->cols; j++)
                g[1 - s % 2][i * width + j] = 0.25 * (mid[j - width] + mid[j + width] + mid[j - 1] + mid[j + 1]);
        }
}

/* The whole plate on one CPU with the same arithmetic.  Number of points that differ, or -1 without memory. */
static long compare_serial(const struct options *o, int active, const struct plate *p)
{
    size_t width = (size_t)o->cols + 2, size = (size_t)(o->rows + 2) * width;
    double *g[2] = { (double *)calloc(size, sizeof(double)), (double *)calloc(size, sizeof(double)) };
    double *theirs = (double *)malloc(size * sizeof *theirs);
    int last = (int)(o->steps % 2);
    long differ = 0;

    if (!g[0] || !g[1] || !theirs) {
        differ = -1;
    } else {
        serial(g, o);
        for (int pe = 0; pe < active; pe++) {
            long from = first_row(o->rows, pe, active), rows = first_row(o->rows, pe + 1, active) - from;

            shmem_double_get(theirs, p->grid[last] + width, (size_t)rows * width, pe);
            for (long i = 0; i < rows; i++)
                for (size_t j = 1; j < width - 1; j++)
                    differ += memcmp(&theirs[(size_t)i * width + j], &g[last][(size_t)(from + i + 1) * width + j],
                                     sizeof(double)) != 0;
        }
    }
    free(g[0]);
    free(g[1]);
    free(theirs);
    return differ;
}

static int run(const struct options *o, int active, struct plate *p)
{
    static int result, result_of_pe0;
    double start, time;

    if (p->bands == 0)
        p->bands = 1; /* a PE without rows: its kernel has nothing to do, but the launch is collective */
    if (p->me >= active)
        p->steps = 0;
    shmem_barrier_all();
    start = gpu_seconds();
    gpu_run_together("heat-gpu", (const void *)heat, p->bands, THREADS, p);
    shmem_barrier_all();
    time = gpu_seconds() - start;
    if (p->me == 0) {
        long differ = o->check ? compare_serial(o, active, p) : 0;

        printf("heat-gpu: %ld x %ld, %ld steps on %d PEs, %.3f s, %.0f million points/s: ", o->rows, o->cols, o->steps,
               shmem_n_pes(), time, 1e-6 * (double)o->rows * (double)o->cols * (double)o->steps / time);
        if (differ)
            printf("%s (%ld)\n", differ < 0 ? "no memory for the check" : "DIFFERENT from a serial run", differ);
        else
            printf("%s\n", o->check ? "the same as a serial run" : "not checked");
        result = differ != 0;
    }
    shmem_int_broadcast(SHMEM_TEAM_WORLD, &result_of_pe0, &result, 1, 0);
    return result_of_pe0;
}

int main(int argc, char **argv)
{
    struct options o = { 512, 512, 200, 16, 1 };
    struct plate p;
    int status, active;

    shmem_init();
    status = parse(argc, argv, &o) - 1;
    if (status < 0)
        status = gpu_is_there("heat-gpu") ? 1 : -1;
    if (status < 0) {
        active = o.rows < shmem_n_pes() ? (int)o.rows : shmem_n_pes();
        make_plate(&o, active, &p);
        status = run(&o, active, &p);
        for (int k = 0; k < 2; k++)
            shmem_free(p.grid[k]);
        shmem_free(p.from_above);
        shmem_free(p.from_below);
    }
    shmem_finalize();
    return status;
}
