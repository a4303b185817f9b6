/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cg_job.h - what cg.c and cg.cu share around their solvers: options, input with its checks, the report, the check against
 * a serial solve, the output file.
 */
#ifndef CG_JOB_H
#define CG_JOB_H

#include "spmat.h"

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { STATUS_OK = 0, STATUS_INPUT = 1, STATUS_USAGE = 2, STATUS_FAILED = 3 };

struct cg_options {
    const char *name; /* of the program, for its messages */
    int on_gpu;       /* it has --blocks and no --exchange */
    const char *path, *rhs, *output;
    double tol;
    long maxit; /* 0: by size */
    long blocks;
    enum spmat_exchange exchange;
    enum mtx_duplicates duplicates;
    int jacobi, check, help;
};

/* How the solve ended, the same on every PE. */
enum cg_outcome { CG_CONVERGED, CG_OUT_OF_ITERATIONS, CG_STAGNATED, CG_NOT_POSITIVE, CG_NOT_FINITE };

struct cg_result {
    enum cg_outcome outcome;
    long iterations;
    double residual;  /* true one, ||b - Ax|| / ||b|| */
    double curvature; /* p'Ap where it broke down */
};

struct cg_times {
    double read, plan, solve;
};

double cg_now(void);
void cg_defaults(struct cg_options *o, const char *name, int on_gpu);

/* 0, or STATUS_USAGE on every PE with a message from PE 0. */
int cg_parse(int argc, char **argv, struct cg_options *o);
void cg_usage(const struct cg_options *o, FILE *to);

/* On PE 0: the matrix and the right-hand side, checked as far as one can before solving.  0, or -1 with a message. */
int cg_read_input(const struct cg_options *o, struct mtx *m, double **b);
long cg_most_iterations(const struct cg_options *o, int64_t n);

/* Sums of up to two numbers over all PEs: out[k] = sum of in[k]. */
void cg_sum_over_pes(const double *in, double *out, int count);

/* PE 0, after the solve: what came out; then the known answer, the check and the file, from any PE's part of x. */
void cg_report(const struct cg_options *o, const struct mtx *m, const struct spmat *a, const struct cg_result *res,
               const struct cg_times *t, double volume);
int cg_finish(const struct cg_options *o, const struct mtx *m, const double *b, const struct spmat *a, const double *x,
              long maxit);

/* PE 0's word on how it went, for all. */
int cg_agree(int status);

#ifdef __cplusplus
}
#endif

#endif
