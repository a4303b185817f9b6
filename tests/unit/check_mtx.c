/* SPDX-License-Identifier: BSD-3-Clause */
/* check_mtx.c - the Matrix Market reader of the examples: what it takes, and where it points in bad files. */
#include "../../examples/mtx.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HEAD "%%MatrixMarket matrix coordinate real general\n"
#define SYM "%%MatrixMarket matrix coordinate real symmetric\n"
#define INT "%%MatrixMarket matrix coordinate integer general\n"
#define PAT "%%MatrixMarket matrix coordinate pattern general\n"

static char path[64];
static char message[MTX_MESSAGE_MAX];

static void write_file(const char *text, size_t len)
{
    int fd;

    strcpy(path, "/tmp/check_mtx.XXXXXX");
    fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, len), (ssize_t)len);
    close(fd);
}

static int read_text(const char *text, size_t len, enum mtx_duplicates policy, struct mtx *m)
{
    int status;

    write_file(text, len);
    message[0] = '\0';
    status = mtx_read(path, policy, m, message);
    unlink(path);
    return status;
}

static void read_good(const char *text, struct mtx *m)
{
    int status = read_text(text, strlen(text), MTX_DUPLICATES_ERROR, m);

    ck_assert_msg(status == 0, "refused: %s", message);
}

START_TEST(general_file_is_read)
{
    struct mtx m;

    read_good(HEAD "% comment\n\n3 3 4\n1 1 2.5\n3 2 -1e3\n\n% another\n2 3 .5\n1 3 7\n", &m);
    ck_assert_int_eq(m.n, 3);
    ck_assert_int_eq(m.nnz, 4);
    ck_assert_int_eq(m.from_symmetric_file, 0);
    ck_assert(mtx_at(&m, 0, 0) == 2.5 && mtx_at(&m, 2, 1) == -1e3 && mtx_at(&m, 1, 2) == 0.5);
    ck_assert(mtx_at(&m, 0, 2) == 7 && mtx_at(&m, 2, 0) == 0 && mtx_at(&m, 2, 2) == 0);
    ck_assert(m.col[0] == 0 && m.col[1] == 2); /* ascending within the row */
    mtx_free(&m);
}
END_TEST

START_TEST(symmetric_file_gives_both_triangles)
{
    struct mtx m;
    int64_t row, col;

    read_good(SYM "3 3 4\n1 1 4\n2 1 -1\n2 2 4\n1 3 9\n", &m); /* (1,3): upper triangle is taken too */
    ck_assert_int_eq(m.nnz, 6);
    ck_assert(mtx_at(&m, 0, 1) == -1 && mtx_at(&m, 1, 0) == -1 && mtx_at(&m, 2, 0) == 9);
    ck_assert_int_eq(m.from_symmetric_file, 1);
    ck_assert_int_eq(mtx_is_symmetric(&m, &row, &col), 1);
    mtx_free(&m);
}
END_TEST

START_TEST(asymmetry_is_found)
{
    struct mtx m;
    int64_t row = -1, col = -1;

    read_good(HEAD "2 2 3\n1 1 1\n1 2 5\n2 2 1\n", &m);
    ck_assert_int_eq(mtx_is_symmetric(&m, &row, &col), 0);
    ck_assert(row == 0 && col == 1);
    mtx_free(&m);
}
END_TEST

START_TEST(integer_and_pattern_are_read)
{
    struct mtx m;

    read_good(INT "2 2 2\n1 1 -7\n2 2 +12\n", &m);
    ck_assert(mtx_at(&m, 0, 0) == -7 && mtx_at(&m, 1, 1) == 12);
    mtx_free(&m);
    read_good(PAT "2 2 2\n1 1\n2 1\n", &m);
    ck_assert(mtx_at(&m, 0, 0) == 1 && mtx_at(&m, 1, 0) == 1);
    mtx_free(&m);
}
END_TEST

START_TEST(loose_forms_are_read)
{
    struct mtx m;

    /* CR LF, tabs, leading blanks, any case, Fortran exponent, no newline at the end */
    read_good("%%matrixmarket MATRIX Coordinate REAL General\r\n%c\r\n\r\n 2\t2  2 \r\n\t1 1 1.5D+01\r\n2 2 1d-1", &m);
    ck_assert(mtx_at(&m, 0, 0) == 15 && fabs(mtx_at(&m, 1, 1) - 0.1) < 1e-15);
    mtx_free(&m);
    read_good(HEAD "3 3 0\n", &m);
    ck_assert(m.n == 3 && m.nnz == 0 && m.row_ptr[3] == 0);
    mtx_free(&m);
}
END_TEST

START_TEST(duplicates_are_summed_when_asked)
{
    static const char text[] = SYM "2 2 4\n1 1 1\n2 1 3\n1 2 4\n1 1 2\n";
    struct mtx m;

    ck_assert_int_eq(read_text(text, strlen(text), MTX_DUPLICATES_SUM, &m), 0);
    ck_assert_int_eq(m.nnz, 3);
    ck_assert(mtx_at(&m, 0, 0) == 3 && mtx_at(&m, 1, 0) == 7 && mtx_at(&m, 0, 1) == 7);
    mtx_free(&m);
}
END_TEST

START_TEST(product_is_right)
{
    double x[3] = { 1, 2, 3 }, y[3];
    struct mtx m;

    read_good(HEAD "3 3 4\n1 1 2\n1 3 1\n3 1 5\n3 3 -1\n", &m);
    mtx_multiply(&m, x, y);
    ck_assert(y[0] == 5 && y[1] == 0 && y[2] == 2);
    mtx_free(&m);
}
END_TEST

/* text, and what the message must say behind the file's name */
static const struct bad {
    const char *text, *says;
} bad[] = {
    { "", ": the file is empty" },
    { "\n" HEAD, ":1: not a Matrix Market file" },
    { "hello world\n", ":1: not a Matrix Market file" },
    { "%%MatrixMarketX matrix coordinate real general\n", ":1: bad banner word" },
    { "%%MatrixMarket\n", ":1: the banner has 1 words" },
    { "%%MatrixMarket matrix coordinate real\n", ":1: the banner has 4 words" },
    { "%%MatrixMarket matrix coordinate real general extra\n", ":1: the banner has 6 words" },
    { "%%MatrixMarket a b c d e f g h i j k\n", ":1: the banner has more than 8 words" },
    { "%%MatrixMarket tensor coordinate real general\n", ":1: object 'tensor' is not supported" },
    { "%%MatrixMarket matrix sparse real general\n", ":1: unknown format 'sparse'" },
    { "%%MatrixMarket matrix array real general\n", ":1: array (dense) matrices are not supported" },
    { "%%MatrixMarket matrix coordinate complex general\n", ":1: complex matrices are not supported" },
    { "%%MatrixMarket matrix coordinate quaternion general\n", ":1: unknown field 'quaternion'" },
    { "%%MatrixMarket matrix coordinate real skew-symmetric\n", ":1: skew-symmetric matrices are not supported" },
    { "%%MatrixMarket matrix coordinate real Hermitian\n", ":1: Hermitian matrices are not supported" },
    { "%%MatrixMarket matrix coordinate real upper\n", ":1: unknown symmetry 'upper'" },
    { HEAD, ":1: the file ends before the size line" },
    { HEAD "% only comments\n\n", ":3: the file ends before the size line" },
    { HEAD "3 3\n", ":2: the size line must have 3 numbers" },
    { HEAD "3 3 1 1\n", ":2: the size line must have 3 numbers" },
    { HEAD "%\n3 x 1\n", ":3: the number of columns is not an integer: 'x'" },
    { HEAD "3.0 3 1\n", ":2: the number of rows is not an integer: '3.0'" },
    { HEAD "99999999999999999999 3 1\n", ":2: the number of rows is too large" },
    { HEAD "-3 -3 1\n", ":2: a size is negative" },
    { HEAD "3 3 -1\n", ":2: a size is negative" },
    { HEAD "0 0 0\n", ":2: the matrix is empty" },
    { HEAD "0 3 0\n", ":2: the matrix is empty" },
    { HEAD "3 2 1\n1 1 1\n", ":2: the matrix is not square: 3 rows, 2 columns" },
    { HEAD "3000000000 3000000000 1\n1 1 1\n", ":2: too many rows" },
    { HEAD "3 3 10\n", ":2: 10 entries do not fit into 3 rows: at most 9" },
    { SYM "3 3 7\n", ":2: 7 entries do not fit into 3 rows of a symmetric matrix: at most 6" },
    { HEAD "2 2 1\n0 1 1\n", ":3: row index 0 is out of range 1..2" },
    { HEAD "2 2 1\n3 1 1\n", ":3: row index 3 is out of range 1..2" },
    { HEAD "2 2 1\n1 0 1\n", ":3: column index 0 is out of range 1..2" },
    { HEAD "2 2 1\n1 -1 1\n", ":3: column index -1 is out of range 1..2" },
    { HEAD "2 2 2\n1 1 1\n%\n1 3 1\n", ":5: column index 3 is out of range 1..2" },
    { HEAD "2 2 1\n1.5 1 1\n", ":3: the row index is not an integer: '1.5'" },
    { HEAD "2 2 1\n1 1x 1\n", ":3: the column index is not an integer: '1x'" },
    { HEAD "2 2 1\n1 1\n", ":3: an entry must have 3 numbers (row, column, value), this line has 2" },
    { HEAD "2 2 1\n1 1 1 0\n", ":3: an entry must have 3 numbers (row, column, value), this line has 4" },
    { PAT "2 2 1\n1 1 1\n", ":3: an entry must have 2 numbers (row, column), this line has 3" },
    { HEAD "2 2 1\n1 1 one\n", ":3: the value is not a number: 'one'" },
    { HEAD "2 2 1\n1 1 1,5\n", ":3: the value is not a number: '1,5'" },
    { HEAD "2 2 1\n1 1 nan\n", ":3: the value is not a number (NaN)" },
    { HEAD "2 2 1\n1 1 NaN(7)\n", ":3: the value is not a number (NaN)" },
    { HEAD "2 2 1\n1 1 inf\n", ":3: the value is infinite: inf" },
    { HEAD "2 2 1\n1 1 1e999\n", ":3: the value is too large for a double: 1e999" },
    { INT "2 2 1\n1 1 1.5\n", ":3: the value is not an integer: '1.5'" },
    { INT "2 2 1\n1 1 99999999999999999999\n", ":3: the value is too large" },
    { HEAD "2 2 2\n1 1 1\n", ":3: the file ends after 1 entries, line 2 announces 2" },
    { HEAD "%\n2 2 1\n1 1 1\n2 2 1\n", ":5: more entries than the 1 that line 3 announces" },
    { HEAD "2 2 0\n1 1 1\n", ":3: more entries than the 0 that line 2 announces" },
    { HEAD "2 2 3\n1 1 1\n2 2 1\n1 1 1\n", ":5: entry (1, 1) was already given on line 3" },
    { SYM "2 2 3\n2 1 1\n2 2 1\n1 2 1\n", ":5: entry (1, 2) was already given on line 3 (as itself or its mirror image)" },
};

START_TEST(bad_file_is_refused_with_its_line)
{
    const struct bad *b = &bad[_i];
    struct mtx m = { .n = -77 };

    ck_assert_int_eq(read_text(b->text, strlen(b->text), MTX_DUPLICATES_ERROR, &m), -1);
    ck_assert_int_eq(m.n, -77); /* untouched */
    ck_assert_msg(strncmp(message, path, strlen(path)) == 0, "no file name in: %s", message);
    ck_assert_msg(strncmp(message + strlen(path), b->says, strlen(b->says)) == 0, "row %d: got: %s\nwant: %s", _i,
                  message + strlen(path), b->says);
}
END_TEST

START_TEST(unreadable_files_are_refused)
{
    static const char zero[] = HEAD "2 2 1\n1 1\0 1\n";
    struct mtx m;

    ck_assert_int_eq(mtx_read("/nonexistent/a.mtx", MTX_DUPLICATES_ERROR, &m, message), -1);
    ck_assert_str_eq(message, "/nonexistent/a.mtx: cannot open: No such file or directory");
    ck_assert_int_eq(mtx_read("/tmp", MTX_DUPLICATES_ERROR, &m, message), -1);
    ck_assert_ptr_nonnull(strstr(message, "/tmp: cannot read: Is a directory"));
    ck_assert_int_eq(read_text(zero, sizeof zero - 1, MTX_DUPLICATES_ERROR, &m), -1);
    ck_assert_ptr_nonnull(strstr(message, ":3: the line holds a zero byte"));
}
END_TEST

START_TEST(long_lines_and_names_do_no_harm)
{
    static char text[20000];
    struct mtx m;

    strcpy(text, HEAD "2 2 1\n1 1 ");
    memset(text + strlen(text), '7', 15000);
    ck_assert_int_eq(read_text(text, strlen(text), MTX_DUPLICATES_ERROR, &m), -1);
    ck_assert_ptr_nonnull(strstr(message, ":3: the value is too large for a double"));
    memset(text, 'x', sizeof text - 1);
    ck_assert_int_eq(mtx_read(text, MTX_DUPLICATES_ERROR, &m, message), -1);
    ck_assert_int_lt(strlen(message), MTX_MESSAGE_MAX);
}
END_TEST

static const struct vector_case {
    const char *text;
    const char *says; /* NULL: good, and the values are 1.5, -2 */
} vectors[] = {
    { "%%MatrixMarket matrix array real general\n% c\n2 1\n1.5\n-2\n", NULL },
    { "1.5\r\n\r\n-2\r\n", NULL },
    { "% comment\n1.5\n-2", NULL },
    { "", ": the file is empty" },
    { "1.5\n", ":1: the file ends after 1 numbers, the matrix has 2 rows" },
    { "1.5\n-2\n3\n", ":3: more numbers than the 2 rows" },
    { "1.5 -2\n", ":1: a vector must have one number a line" },
    { "1.5\nnan\n", ":2: the value is not a number" },
    { "%%MatrixMarket matrix array real general\n3 1\n1\n1\n1\n", ":2: the vector has 3 rows, the matrix 2" },
    { "%%MatrixMarket matrix array real general\n2 2\n1\n1\n1\n1\n", ":2: a vector must have one column" },
    { "%%MatrixMarket matrix array real symmetric\n2 1\n", ":1: a vector must be general" },
    { HEAD "2 1 1\n1 1 1\n", ":1: a vector must be in array format" },
};

START_TEST(vector_file)
{
    const struct vector_case *c = &vectors[_i];
    double *v = NULL;
    int status;

    write_file(c->text, strlen(c->text));
    status = mtx_read_vector(path, 2, &v, message);
    unlink(path);
    if (!c->says) {
        ck_assert_msg(status == 0, "refused: %s", message);
        ck_assert(v[0] == 1.5 && v[1] == -2);
        free(v);
        return;
    }
    ck_assert_int_eq(status, -1);
    ck_assert_msg(strncmp(message + strlen(path), c->says, strlen(c->says)) == 0, "got: %s\nwant: %s",
                  message + strlen(path), c->says);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("mtx");
    TCase *good = tcase_create("good"), *wrong = tcase_create("bad");
    SRunner *r;
    int failed;

    tcase_add_test(good, general_file_is_read);
    tcase_add_test(good, symmetric_file_gives_both_triangles);
    tcase_add_test(good, asymmetry_is_found);
    tcase_add_test(good, integer_and_pattern_are_read);
    tcase_add_test(good, loose_forms_are_read);
    tcase_add_test(good, duplicates_are_summed_when_asked);
    tcase_add_test(good, product_is_right);
    tcase_add_loop_test(wrong, bad_file_is_refused_with_its_line, 0, (int)(sizeof bad / sizeof bad[0]));
    tcase_add_test(wrong, unreadable_files_are_refused);
    tcase_add_test(wrong, long_lines_and_names_do_no_harm);
    tcase_add_loop_test(wrong, vector_file, 0, (int)(sizeof vectors / sizeof vectors[0]));
    suite_add_tcase(s, good);
    suite_add_tcase(s, wrong);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? 1 : 0;
}
