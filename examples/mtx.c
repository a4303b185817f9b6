/* SPDX-License-Identifier: BSD-3-Clause */
/* mtx.c - the Matrix Market reader: lines, tokens, entries, then compressed rows. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "mtx.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/types.h>

#define MAX_TOKENS 8
#define MAX_N INT32_MAX

enum field { FIELD_REAL, FIELD_INTEGER, FIELD_PATTERN };

struct entry {
    int64_t row, col; /* from 0 */
    int64_t line;
    double val;
};

struct reader {
    const char *path;
    FILE *file;
    char *message;
    char *buf;
    size_t cap;
    int64_t line;
    char *token[MAX_TOKENS + 1];
    int tokens; /* of the current line; MAX_TOKENS + 1 stands for more */
    enum field field;
    int symmetric;
    int array;
    int64_t rows, cols, announced, size_line;
    struct entry *entry;
    int64_t entries, entry_cap;
};

/* Reports at the current line and returns -1. */
static int __attribute__((format(printf, 2, 3))) fail(struct reader *r, const char *fmt, ...)
{
    int len = r->line > 0 ? snprintf(r->message, MTX_MESSAGE_MAX, "%s:%lld: ", r->path, (long long)r->line)
                          : snprintf(r->message, MTX_MESSAGE_MAX, "%s: ", r->path);
    va_list ap;

    if (len < 0 || len >= MTX_MESSAGE_MAX)
        len = MTX_MESSAGE_MAX - 1;
    va_start(ap, fmt);
    vsnprintf(r->message + len, (size_t)(MTX_MESSAGE_MAX - len), fmt, ap);
    va_end(ap);
    return -1;
}

static void split(struct reader *r)
{
    char *save = NULL;

    r->tokens = 0;
    for (char *t = strtok_r(r->buf, " \t", &save); t; t = strtok_r(NULL, " \t", &save)) {
        if (r->tokens <= MAX_TOKENS)
            r->token[r->tokens] = t;
        if (r->tokens <= MAX_TOKENS)
            r->tokens++;
    }
}

/* Next line in r->buf, without its line end: 1, 0 at the end, -1 on errors. */
static int next_raw_line(struct reader *r)
{
    ssize_t len;

    errno = 0;
    len = getline(&r->buf, &r->cap, r->file);
    if (len < 0)
        return ferror(r->file) ? fail(r, "cannot read: %s", strerror(errno)) : 0;
    r->line++;
    if (memchr(r->buf, '\0', (size_t)len))
        return fail(r, "the line holds a zero byte: not a text file");
    while (len > 0 && (r->buf[len - 1] == '\n' || r->buf[len - 1] == '\r'))
        r->buf[--len] = '\0';
    return 1;
}

/* Next line that is neither blank nor a comment, split into tokens: 1, 0 at the end, -1. */
static int next_line(struct reader *r)
{
    int got;

    while ((got = next_raw_line(r)) == 1) {
        const char *first = r->buf + strspn(r->buf, " \t");

        if (*first == '\0' || *first == '%')
            continue;
        split(r);
        return 1;
    }
    return got;
}

static int parse_integer(struct reader *r, const char *token, const char *what, int64_t *out)
{
    char *end;
    long long v;

    errno = 0;
    v = strtoll(token, &end, 10);
    if (end == token || *end != '\0')
        return fail(r, "%s is not an integer: '%.40s'", what, token);
    if (errno == ERANGE)
        return fail(r, "%s is too large: %.40s", what, token);
    *out = v;
    return 0;
}

static int parse_real(struct reader *r, char *token, double *out)
{
    char *end, *d = strpbrk(token, "dD");

    if (d && strspn(token, "+-.0123456789dD") == strlen(token))
        *d = 'e'; /* Fortran's 1.0D+00 */
    errno = 0;
    *out = strtod(token, &end);
    if (end == token || *end != '\0')
        return fail(r, "the value is not a number: '%.40s'", token);
    if (isnan(*out))
        return fail(r, "the value is not a number (NaN)");
    if (isinf(*out))
        return fail(r, "the value is %s: %.40s", errno == ERANGE ? "too large for a double" : "infinite", token);
    return 0;
}

static int parse_value(struct reader *r, char *token, double *out)
{
    int64_t v;

    if (r->field == FIELD_REAL)
        return parse_real(r, token, out);
    if (parse_integer(r, token, "the value", &v))
        return -1;
    *out = (double)v;
    return 0;
}

static int is_word(const char *token, const char *word)
{
    return strcasecmp(token, word) == 0;
}

static int banner_field(struct reader *r, const char *field)
{
    if (is_word(field, "real") || is_word(field, "double"))
        r->field = FIELD_REAL;
    else if (is_word(field, "integer"))
        r->field = FIELD_INTEGER;
    else if (is_word(field, "pattern"))
        r->field = FIELD_PATTERN;
    else if (is_word(field, "complex"))
        return fail(r, "complex matrices are not supported (real, integer and pattern are)");
    else
        return fail(r, "unknown field '%.40s' in the banner (real, integer or pattern)", field);
    return 0;
}

static int banner_symmetry(struct reader *r, const char *symmetry)
{
    if (is_word(symmetry, "symmetric"))
        r->symmetric = 1;
    else if (is_word(symmetry, "skew-symmetric") || is_word(symmetry, "hermitian"))
        return fail(r, "%s matrices are not supported (general and symmetric are)", symmetry);
    else if (!is_word(symmetry, "general"))
        return fail(r, "unknown symmetry '%.40s' in the banner (general or symmetric)", symmetry);
    return 0;
}

/* The first line, already read: %%MatrixMarket matrix FORMAT FIELD SYMMETRY. */
static int parse_banner(struct reader *r, int want_array)
{
    if (strncasecmp(r->buf, "%%MatrixMarket", 14) != 0)
        return fail(r, "not a Matrix Market file: it must begin with %%%%MatrixMarket");
    split(r);
    if (!is_word(r->token[0], "%%MatrixMarket"))
        return fail(r, "bad banner word '%.40s', should be %%%%MatrixMarket", r->token[0]);
    if (r->tokens != 5)
        return fail(r, "the banner has %s%d words, should be 5: %%%%MatrixMarket matrix coordinate real general",
                    r->tokens > MAX_TOKENS ? "more than " : "",
                    r->tokens > MAX_TOKENS ? MAX_TOKENS : r->tokens);
    if (!is_word(r->token[1], "matrix"))
        return fail(r, "object '%.40s' is not supported (matrix is)", r->token[1]);
    r->array = is_word(r->token[2], "array");
    if (!r->array && !is_word(r->token[2], "coordinate"))
        return fail(r, "unknown format '%.40s' in the banner (coordinate or array)", r->token[2]);
    if (r->array && !want_array)
        return fail(r, "array (dense) matrices are not supported (coordinate is)");
    if (!r->array && want_array)
        return fail(r, "a vector must be in array format, this file is in coordinate format");
    if (banner_field(r, r->token[3]) || banner_symmetry(r, r->token[4]))
        return -1;
    if (r->array && (r->symmetric || r->field == FIELD_PATTERN))
        return fail(r, "a vector must be general, and real or integer");
    return 0;
}

static int open_reader(struct reader *r, const char *path, char *message)
{
    memset(r, 0, sizeof *r);
    r->path = path;
    r->message = message;
    r->file = fopen(path, "r");
    return r->file ? 0 : fail(r, "cannot open: %s", strerror(errno));
}

static void close_reader(struct reader *r)
{
    if (r->file)
        fclose(r->file);
    free(r->buf);
    free(r->entry);
}

/* The size line: rows, columns and, for coordinates, the number of entries. */
static int parse_size(struct reader *r)
{
    int want = r->array ? 2 : 3;
    int got = next_line(r);

    if (got <= 0)
        return got < 0 ? -1 : fail(r, "the file ends before the size line");
    r->size_line = r->line;
    if (r->tokens != want)
        return fail(r, "the size line must have %d numbers: rows, columns%s", want, r->array ? "" : ", entries");
    if (parse_integer(r, r->token[0], "the number of rows", &r->rows) ||
        parse_integer(r, r->token[1], "the number of columns", &r->cols) ||
        (want == 3 && parse_integer(r, r->token[2], "the number of entries", &r->announced)))
        return -1;
    if (r->rows < 0 || r->cols < 0 || r->announced < 0)
        return fail(r, "a size is negative: %lld rows, %lld columns, %lld entries", (long long)r->rows,
                    (long long)r->cols, (long long)r->announced);
    if (r->rows == 0 || r->cols == 0)
        return fail(r, "the matrix is empty: %lld rows, %lld columns", (long long)r->rows, (long long)r->cols);
    return 0;
}

static int check_square(struct reader *r, enum mtx_duplicates policy)
{
    int64_t most;

    if (r->rows != r->cols)
        return fail(r, "the matrix is not square: %lld rows, %lld columns", (long long)r->rows, (long long)r->cols);
    if (r->rows > MAX_N)
        return fail(r, "too many rows for this program: %lld, the limit is %d", (long long)r->rows, MAX_N);
    most = r->symmetric ? r->rows * (r->rows + 1) / 2 : r->rows * r->rows;
    if (r->announced > most && policy == MTX_DUPLICATES_ERROR)
        return fail(r, "%lld entries do not fit into %lld rows%s: at most %lld", (long long)r->announced,
                    (long long)r->rows, r->symmetric ? " of a symmetric matrix" : "", (long long)most);
    return 0;
}

static int add_entry(struct reader *r, int64_t row, int64_t col, double val)
{
    if (r->entries == r->entry_cap) {
        /* Grows with what is really there: the announced number may be nonsense. */
        int64_t cap = r->entry_cap ? r->entry_cap * 2 : 1024;
        struct entry *e = realloc(r->entry, (size_t)cap * sizeof *e);

        if (!e)
            return fail(r, "out of memory after %lld entries", (long long)r->entries);
        r->entry = e;
        r->entry_cap = cap;
    }
    r->entry[r->entries++] = (struct entry){ .row = row, .col = col, .line = r->line, .val = val };
    return 0;
}

/* One entry line in r->token. */
static int parse_entry(struct reader *r)
{
    int want = r->field == FIELD_PATTERN ? 2 : 3;
    int64_t row, col;
    double val = 1;

    if (r->tokens != want)
        return fail(r, "an entry must have %d numbers (row, column%s), this line has %s%d", want,
                    want == 3 ? ", value" : "", r->tokens > MAX_TOKENS ? "more than " : "",
                    r->tokens > MAX_TOKENS ? MAX_TOKENS : r->tokens);
    if (parse_integer(r, r->token[0], "the row index", &row) ||
        parse_integer(r, r->token[1], "the column index", &col))
        return -1;
    if (row < 1 || row > r->rows)
        return fail(r, "row index %lld is out of range 1..%lld", (long long)row, (long long)r->rows);
    if (col < 1 || col > r->cols)
        return fail(r, "column index %lld is out of range 1..%lld", (long long)col, (long long)r->cols);
    if (want == 3 && parse_value(r, r->token[2], &val))
        return -1;
    if (add_entry(r, row - 1, col - 1, val))
        return -1;
    if (r->symmetric && row != col)
        return add_entry(r, col - 1, row - 1, val);
    return 0;
}

static int read_entries(struct reader *r)
{
    int64_t found = 0;
    int got;

    while ((got = next_line(r)) == 1) {
        if (found == r->announced)
            return fail(r, "more entries than the %lld that line %lld announces", (long long)r->announced,
                        (long long)r->size_line);
        if (parse_entry(r))
            return -1;
        found++;
    }
    if (got < 0)
        return -1;
    if (found < r->announced)
        return fail(r, "the file ends after %lld entries, line %lld announces %lld", (long long)found,
                    (long long)r->size_line, (long long)r->announced);
    return 0;
}

static int by_place(const void *pa, const void *pb)
{
    const struct entry *a = pa, *b = pb;

    if (a->row != b->row)
        return a->row < b->row ? -1 : 1;
    if (a->col != b->col)
        return a->col < b->col ? -1 : 1;
    return a->line < b->line ? -1 : a->line > b->line;
}

/* Sorts the entries and settles duplicates; r->entries shrinks when they are summed. */
static int settle_duplicates(struct reader *r, enum mtx_duplicates policy)
{
    int64_t kept = 0;

    if (r->entries > 0)
        qsort(r->entry, (size_t)r->entries, sizeof *r->entry, by_place);
    for (int64_t i = 0; i < r->entries; i++) {
        struct entry *last = kept ? &r->entry[kept - 1] : NULL;
        const struct entry *e = &r->entry[i];

        if (!last || last->row != e->row || last->col != e->col) {
            r->entry[kept++] = *e;
            continue;
        }
        if (policy == MTX_DUPLICATES_ERROR) {
            r->line = e->line;
            return fail(r, "entry (%lld, %lld) was already given on line %lld%s", (long long)e->row + 1,
                        (long long)e->col + 1, (long long)last->line,
                        r->symmetric ? " (as itself or its mirror image)" : "");
        }
        last->val += e->val;
    }
    r->entries = kept;
    return 0;
}

static int compress(struct reader *r, struct mtx *out)
{
    struct mtx m = { .n = r->rows, .nnz = r->entries, .from_symmetric_file = r->symmetric };
    size_t nnz = (size_t)(m.nnz ? m.nnz : 1);

    m.row_ptr = calloc((size_t)m.n + 1, sizeof *m.row_ptr);
    m.col = malloc(nnz * sizeof *m.col);
    m.val = malloc(nnz * sizeof *m.val);
    if (!m.row_ptr || !m.col || !m.val) {
        mtx_free(&m);
        return fail(r, "out of memory for %lld rows and %lld entries", (long long)m.n, (long long)m.nnz);
    }
    for (int64_t i = 0; i < m.nnz; i++) {
        m.row_ptr[r->entry[i].row + 1]++;
        m.col[i] = r->entry[i].col;
        m.val[i] = r->entry[i].val;
    }
    for (int64_t i = 0; i < m.n; i++)
        m.row_ptr[i + 1] += m.row_ptr[i];
    *out = m;
    return 0;
}

static int read_banner(struct reader *r, int want_array)
{
    int got = next_raw_line(r);

    if (got <= 0)
        return got < 0 ? -1 : fail(r, "the file is empty");
    return parse_banner(r, want_array);
}

int mtx_read(const char *path, enum mtx_duplicates duplicates, struct mtx *out, char *message)
{
    struct reader r;
    int status = open_reader(&r, path, message);

    if (!status)
        status = read_banner(&r, 0);
    if (!status)
        status = parse_size(&r);
    if (!status)
        status = check_square(&r, duplicates);
    if (!status)
        status = read_entries(&r);
    if (!status)
        status = settle_duplicates(&r, duplicates);
    if (!status)
        status = compress(&r, out);
    close_reader(&r);
    return status;
}

void mtx_free(struct mtx *m)
{
    free(m->row_ptr);
    free(m->col);
    free(m->val);
    memset(m, 0, sizeof *m);
}

/* The head of a vector file: a banner and sizes, or nothing at all.  1: the first number is in r->token. */
static int vector_head(struct reader *r, int64_t n)
{
    int got = next_raw_line(r);

    if (got <= 0)
        return got < 0 ? -1 : fail(r, "the file is empty");
    if (strncmp(r->buf, "%%", 2) != 0) {
        const char *first = r->buf + strspn(r->buf, " \t");

        if (*first == '\0' || *first == '%')
            return 0;
        split(r);
        return 1;
    }
    if (parse_banner(r, 1) || parse_size(r))
        return -1;
    if (r->cols != 1)
        return fail(r, "a vector must have one column, this file has %lld", (long long)r->cols);
    if (r->rows != n)
        return fail(r, "the vector has %lld rows, the matrix %lld", (long long)r->rows, (long long)n);
    return 0;
}

static int read_vector(struct reader *r, int64_t n, double *v)
{
    int64_t found = 0;
    int got = vector_head(r, n);

    if (got == 0)
        got = next_line(r);
    for (; got == 1; got = next_line(r)) {
        if (r->tokens != 1)
            return fail(r, "a vector must have one number a line");
        if (found == n)
            return fail(r, "more numbers than the %lld rows of the matrix", (long long)n);
        if (parse_value(r, r->token[0], &v[found++]))
            return -1;
    }
    if (got < 0)
        return -1;
    if (found < n)
        return fail(r, "the file ends after %lld numbers, the matrix has %lld rows", (long long)found, (long long)n);
    return 0;
}

int mtx_read_vector(const char *path, int64_t n, double **out, char *message)
{
    struct reader r;
    double *v = NULL;
    int status = open_reader(&r, path, message);

    if (!status) {
        v = malloc((size_t)n * sizeof *v);
        status = v ? read_vector(&r, n, v) : fail(&r, "out of memory for %lld numbers", (long long)n);
    }
    close_reader(&r);
    if (status) {
        free(v);
        return -1;
    }
    *out = v;
    return 0;
}

double mtx_at(const struct mtx *m, int64_t row, int64_t col)
{
    int64_t lo = m->row_ptr[row], hi = m->row_ptr[row + 1];

    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;

        if (m->col[mid] < col)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < m->row_ptr[row + 1] && m->col[lo] == col ? m->val[lo] : 0;
}

int mtx_is_symmetric(const struct mtx *m, int64_t *row, int64_t *col)
{
    for (int64_t i = 0; i < m->n; i++) {
        for (int64_t k = m->row_ptr[i]; k < m->row_ptr[i + 1]; k++) {
            double a = m->val[k], b = mtx_at(m, m->col[k], i);

            if (fabs(a - b) > 1e-12 * fmax(fabs(a), fabs(b))) {
                *row = i;
                *col = m->col[k];
                return 0;
            }
        }
    }
    return 1;
}

void mtx_multiply(const struct mtx *m, const double *x, double *y)
{
    for (int64_t i = 0; i < m->n; i++) {
        double sum = 0;

        for (int64_t k = m->row_ptr[i]; k < m->row_ptr[i + 1]; k++)
            sum += m->val[k] * x[m->col[k]];
        y[i] = sum;
    }
}
