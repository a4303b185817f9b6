/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mtx.h - reads square sparse matrices and vectors from Matrix Market files.
 *
 * Understood: `matrix coordinate`, real, integer or pattern, general or
 * symmetric, with comments, blank lines, CR LF line ends and Fortran's D
 * exponents; vectors as `matrix array` of one column.  A symmetric file may
 * hold either triangle; both are in the result.  A pattern's entries are 1.
 *
 * Everything else is an error with the file's name and the line:
 *     m.mtx:17: row index 9 is out of range 1..8
 */
#ifndef MTX_H
#define MTX_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Compressed sparse rows; columns ascend within a row, no duplicates. */
struct mtx {
    int64_t n;         /* rows and columns */
    int64_t nnz;       /* stored entries, both triangles */
    int64_t *row_ptr;  /* n + 1 */
    int64_t *col;      /* nnz, from 0 */
    double *val;       /* nnz */
    int from_symmetric_file;
};

enum mtx_duplicates { MTX_DUPLICATES_ERROR, MTX_DUPLICATES_SUM };

#define MTX_MESSAGE_MAX 512

/* 0, or -1 with the reason in `message` (MTX_MESSAGE_MAX bytes) and *out untouched. */
int mtx_read(const char *path, enum mtx_duplicates duplicates, struct mtx *out, char *message);
void mtx_free(struct mtx *m);

/* Reads a vector of exactly n numbers into a new array: an array file, or n plain numbers, one a line. */
int mtx_read_vector(const char *path, int64_t n, double **out, char *message);

/*
 * Is a(i,j) equal to a(j,i) everywhere, to a relative 1e-12?  1 yes, else 0 with
 * the first offending place in *row and *col, from 0.
 */
int mtx_is_symmetric(const struct mtx *m, int64_t *row, int64_t *col);

/* a(row, col), 0 where nothing is stored. */
double mtx_at(const struct mtx *m, int64_t row, int64_t col);

/* y = A x */
void mtx_multiply(const struct mtx *m, const double *x, double *y);

#ifdef __cplusplus
}
#endif

#endif
