/*
 * Tests the MatrixMarket reader and writer on files in memory, and the conversion of elements.
 * Every buffer has exactly the file's size, so that the address sanitizer sees a read past the end.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "files/matrix_file.h"
#include "files/matrix_convert.h"
#include "files/mtx_read.h"
#include "files/mtx_write.h"

#define LIMIT_BYTES (1 << 20)
#define ARRAY "%%MatrixMarket matrix array real general\n"
#define COORDINATE "%%MatrixMarket matrix coordinate real general\n"

static int parse(const char *text, size_t bytes, tg_type type, tg_matrix *view, void **owned,
                 cli_file_error *error)
{
    char *file = malloc(bytes > 0 ? bytes : 1);
    assert_non_null(file);
    memcpy(file, text, bytes);
    *owned = NULL;
    error->text[0] = 0;
    int code = cli_parse_mtx(file, (int64_t)bytes, type, LIMIT_BYTES, NULL, view, owned, error);
    free(file);
    return code;
}

/* Asserts that the text gives `expected`, which is m x n, row-major. */
static void gives_typed(tg_type type, const char *text, int64_t m, int64_t n,
                        const double *expected)
{
    tg_matrix view;
    void *owned;
    cli_file_error error;
    if (parse(text, strlen(text), type, &view, &owned, &error) != CLI_EXIT_OK)
        fail_msg("'%s' is refused: %s", text, error.text);
    assert_int_equal(view.type, type);
    assert_int_equal(view.row_count, m);
    assert_int_equal(view.col_count, n);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            if (cli_load_element(&view, i, j) != expected[i * n + j])
                fail_msg("'%s': (%d, %d) is %.17g", text, (int)i, (int)j,
                         cli_load_element(&view, i, j));
    free(owned);
}

static void gives(const char *text, int64_t m, int64_t n, const double *expected)
{
    gives_typed(TG_TYPE_FP64, text, m, n, expected);
}

static void refuses_typed(tg_type type, const char *text, const char *reason)
{
    tg_matrix view;
    void *owned;
    cli_file_error error;
    int code = strstr(reason, "are available") ? CLI_EXIT_WRONG : CLI_EXIT_USAGE;
    assert_int_equal(parse(text, strlen(text), type, &view, &owned, &error), code);
    assert_null(owned);
    if (!strstr(error.text, reason))
        fail_msg("'%s' is refused with '%s', not '%s'", text, error.text, reason);
}

static void refuses(const char *text, const char *reason)
{
    refuses_typed(TG_TYPE_FP64, text, reason);
}

static void test_array(void **state)
{
    (void)state;
    const double expected[] = {1, 3, 5, 2, 4, -6.5};
    gives(ARRAY "2 3\n1\n2\n3\n4\n5\n-6.5\n", 2, 3, expected);
    gives(ARRAY "% a comment\n%\n\n2 3\n1\n2\n3\n4\n5\n-65e-1", 2, 3, expected);
    gives("%%matrixmarket MATRIX Array Real General\r\n% c\r\n2 3\r\n1\r\n2\r\n3\r\n4\r\n5\r\n-6.5"
          "\r\n",
          2, 3, expected);
    gives(ARRAY "  2\t3  \n\n 1 \n2\n\n3\n4\n5\n-6.5\n\n  \n", 2, 3, expected);
    gives("%%MatrixMarket matrix array integer general\n1 2\n-7\n+8\n", 1, 2, (double[]){-7, 8});
    gives(ARRAY "0 3\n", 0, 3, NULL);
    gives(ARRAY "1 2\ninf\n-INF\n", 1, 2, (double[]){INFINITY, -INFINITY});
}

static void test_coordinate(void **state)
{
    (void)state;
    gives(COORDINATE "2 3 2\n1 3 1.5\n2 1 -2\n", 2, 3, (double[]){0, 0, 1.5, -2, 0, 0});
    gives(COORDINATE "2 2 3\n1 1 1\n1 1 2\n2 2 4\n", 2, 2, (double[]){3, 0, 0, 4});
    gives(COORDINATE "2 2 0\n", 2, 2, (double[]){0, 0, 0, 0});
}

static void test_symmetry(void **state)
{
    (void)state;
    const double symmetric[] = {1, 2, 3, 2, 4, 5, 3, 5, 6}, skew[] = {0, -2, -3, 2, 0, -5, 3, 5, 0};
    gives("%%MatrixMarket matrix array real symmetric\n3 3\n1\n2\n3\n4\n5\n6\n", 3, 3, symmetric);
    gives("%%MatrixMarket matrix array real skew-symmetric\n3 3\n2\n3\n5\n", 3, 3, skew);
    gives("%%MatrixMarket matrix array real skew-symmetric\n1 1\n", 1, 1, (double[]){0});
    gives("%%MatrixMarket matrix coordinate real symmetric\n3 3 6\n1 1 1\n2 1 2\n3 1 3\n2 2 4\n"
          "3 2 5\n3 3 6\n",
          3, 3, symmetric);
    gives("%%MatrixMarket matrix coordinate real symmetric\n2 2 2\n2 1 1\n2 1 2\n", 2, 2,
          (double[]){0, 3, 3, 0});
    gives("%%MatrixMarket matrix coordinate real skew-symmetric\n3 3 3\n2 1 2\n3 1 3\n3 2 5\n", 3,
          3, skew);
    refuses("%%MatrixMarket matrix array real symmetric\n2 3\n1\n2\n3\n", "must be square");
    refuses("%%MatrixMarket matrix coordinate real symmetric\n2 2 1\n1 2 1\n", "lower triangle");
    refuses("%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n1 1 1\n",
            "below the diagonal");
}

static void test_banner_refused(void **state)
{
    (void)state;
    refuses("", "first line");
    refuses("2 2\n", "first line");
    refuses("%%MatrixMarket\n", "end of line");
    refuses("%%MatrixMarket vector array real general\n1 1\n1\n", "'matrix'");
    refuses("%%MatrixMarket matrix dense real general\n1 1\n1\n", "'array'");
    refuses("%%MatrixMarket matrix array complex general\n1 1\n1 1\n",
            "'complex' where 'real' or 'integer' (store the real and");
    refuses("%%MatrixMarket matrix coordinate pattern general\n1 1 1\n1 1\n",
            "'pattern' where 'real' or 'integer' (store the entries with values");
    refuses("%%MatrixMarket matrix array real hermitian\n1 1\n1\n", "'hermitian'");
    refuses("%%MatrixMarket matrix array real general extra\n1 1\n1\n", "'extra'");
    refuses("%%MatrixMarket matrix array \x1b[31m general\n1 1\n1\n", "'?[31m'");
}

static void test_sizes_refused(void **state)
{
    (void)state;
    refuses(ARRAY, "no line of sizes");
    refuses(ARRAY "% only comments\n", "no line of sizes");
    refuses(ARRAY "2\n", "number of columns");
    refuses(ARRAY "2 2 2\n1\n2\n3\n4\n", "end of the line");
    refuses(ARRAY "-1 2\n", "number of rows");
    refuses(ARRAY "2 x\n", "number of columns");
    refuses(ARRAY "9223372036854775808 1\n1\n", "number of rows");
    refuses(COORDINATE "2 2\n1 1 1\n", "number of entries");
    refuses(COORDINATE "1000000000 1000000000 1\n1 1 1\n",
            "needs 8000000000000000000 bytes as a dense matrix, 1048576 are available");
    refuses(COORDINATE "9000000000000000000 9000000000000000000 1\n1 1 1\n", "bytes");
    refuses(COORDINATE "2 2 9000000000000000000\n1 1 1\n", "sizes lie");
    refuses(ARRAY "300 300\n1\n", "sizes lie");
}

static void test_values_refused(void **state)
{
    (void)state;
    refuses(ARRAY "2 1\n1.000\n", "2 values are declared, 1 are there");
    refuses(ARRAY "1 1\n1\n2\n", "text after the last of 1");
    refuses(ARRAY "2 1\n1 2\n", "'2' where the end of the line (one value a line)");
    refuses(ARRAY "1 1\n1,5\n", "'1,5'");
    refuses(ARRAY "1 1\n0x10\n", "'0x10'");
    refuses(ARRAY "1 1\n% late\n1\n", "line 3: a comment among the values");
    refuses("%%MatrixMarket matrix array integer general\n2 1\n1\n1.5\n",
            "line 4: '1.5' where an integer");
    refuses("%%MatrixMarket matrix array integer general\n1 1\ninf\n", "line 3: 'inf'");
    refuses("%%MatrixMarket matrix coordinate integer general\n2 2 1\n1 1 1e3\n",
            "line 3: '1e3' where an integer");
    refuses(ARRAY "1 1\n1e999\n", "within the type's range");
    refuses(COORDINATE "2 2 1\n3 1 1.0\n", "(3, 1) lies outside");
    refuses(COORDINATE "2 2 1\n1 3 1.0\n", "(1, 3) lies outside");
    refuses(COORDINATE "2 2 1\n0 1 1.0\n", "row index from 1");
    refuses(COORDINATE "2 2 1\n1 1   \n", "a number");
    refuses(COORDINATE "2 2 1\n1 1 1 1\n", "end of the line");
    refuses(COORDINATE "2 2 1\n1.5 1 1\n", "row index");
    refuses(COORDINATE "2 2 2\n1 1 1.00000\n", "1 are there");
}

static void test_every_truncation(void **state)
{
    (void)state;
    const char *text = COORDINATE "% c\n2 2 2\n1 1 1\n2 2 2\n";
    for (size_t length = 0; length < strlen(text) - 2; length++) {
        tg_matrix view;
        void *owned;
        cli_file_error error;
        assert_int_equal(parse(text, length, TG_TYPE_FP32, &view, &owned, &error), CLI_EXIT_USAGE);
        assert_null(owned);
    }
}

static void test_types(void **state)
{
    (void)state;
    /* 1 + 2^-24 + 2^-54 rounds up in one step, but down through FP64. */
    const char *halfway = ARRAY "1 1\n1.00000005960464483090178\n";
    gives_typed(TG_TYPE_FP32, halfway, 1, 1, (double[]){1 + 0x1p-23});
    /* 1 + 2^-11 + 2^-40 rounds up in one step, but down through FP32. The number for BF16 is 1 +
     * 2^-8 + 2^-40. */
    gives_typed(TG_TYPE_FP16, ARRAY "1 1\n1.00048828125090949470177\n", 1, 1,
                (double[]){1 + 0x1p-10});
    gives_typed(TG_TYPE_BF16, ARRAY "1 1\n1.00390625000090949470177\n", 1, 1,
                (double[]){1 + 0x1p-7});
    gives_typed(TG_TYPE_FP16, ARRAY "1 1\n65504\n", 1, 1, (double[]){65504});
    refuses_typed(TG_TYPE_FP16, ARRAY "1 1\n65520\n", "largest fp16");
    refuses_typed(TG_TYPE_FP32, ARRAY "1 1\n1e39\n", "range");
    refuses_typed(TG_TYPE_BF16, ARRAY "1 1\n3.4e38\n", "largest bf16");
    refuses_typed(TG_TYPE_FP16, COORDINATE "1 1 2\n1 1 65504\n1 1 65504\n", "largest fp16");
}

/* Writes the view and reads it again: bits are the same, NaN stays NaN. */
static void go_round(const tg_matrix *view)
{
    char *text = NULL;
    size_t bytes = 0;
    tg_matrix read;
    void *owned;
    cli_file_error error;
    FILE *stream = open_memstream(&text, &bytes);
    assert_int_equal(cli_write_mtx(stream, view, NULL), 1);
    fclose(stream);
    if (parse(text, bytes, view->type, &read, &owned, &error) != CLI_EXIT_OK)
        fail_msg("%s", error.text);
    for (int64_t i = 0; i < view->row_count; i++) {
        for (int64_t j = 0; j < view->col_count; j++) {
            double wrote = cli_load_element(view, i, j), got = cli_load_element(&read, i, j);
            if (wrote != got && !(isnan(wrote) && isnan(got)))
                fail_msg("%s: %.17g reads back as %.17g", tg_get_type_name(view->type), wrote, got);
        }
    }
    free(owned);
    free(text);
}

static void test_round_trip(void **state)
{
    (void)state;
    /* One decimal digit less could not tell these neighbours apart. */
    const double fp64[] = {0.1, 0.10000000000000002, -NAN, -INFINITY, 5e-324, 1 / 3.0};
    const float fp32[] = {1e9f, 1000000064.0f, -NAN, INFINITY, 1e-45f, 1 / 3.0f};
    tg_matrix view = tg_make_matrix(TG_TYPE_FP64, fp64, 2, 3);
    go_round(&view);
    view = tg_make_matrix(TG_TYPE_FP32, fp32, 3, 2);
    go_round(&view);
    static uint16_t bits[256 * 256]; /* holds all there are */
    for (int i = 0; i < 256 * 256; i++)
        bits[i] = (uint16_t)i;
    view = tg_make_matrix(TG_TYPE_FP16, bits, 256, 256);
    go_round(&view);
    view.type = TG_TYPE_BF16;
    go_round(&view);
}

static void test_convert(void **state)
{
    (void)state;
    double elems[] = {1, 2, 3, 4, 5, 6};
    cli_array array = {.view = tg_make_matrix(TG_TYPE_FP64, elems, 2, 3),
                       .dim_count = 2,
                       .group_count = 1,
                       .batch_count = 1};
    array.view.row_stride = 1; /* column-major */
    array.view.col_stride = 2;
    void *owned = NULL;
    cli_file_error error = {""};
    assert_int_equal(cli_convert_array(&array, TG_TYPE_BF16, NULL, &owned, &error), CLI_EXIT_OK);
    assert_int_equal(array.view.type, TG_TYPE_BF16);
    assert_true(cli_load_element(&array.view, 0, 1) == 3 &&
                cli_load_element(&array.view, 1, 2) == 6);
    free(owned);
    elems[4] = 1e6;
    array.view = tg_make_matrix(TG_TYPE_FP64, elems, 2, 3);
    assert_int_equal(cli_convert_array(&array, TG_TYPE_FP16, NULL, &owned, &error), CLI_EXIT_USAGE);
    assert_non_null(strstr(error.text, "element (1, 1) = 1e+06"));
}

/* A terminal whose work began long ago sees the first step at once, and a pipe none. */
static void test_convert_progress(void **state)
{
    (void)state;
    static const float elems[256 * 257];
    for (int is_terminal = 0; is_terminal <= 1; is_terminal++) {
        cli_array array = {.view = tg_make_matrix(TG_TYPE_FP32, elems, 256, 257),
                           .dim_count = 2,
                           .group_count = 1,
                           .batch_count = 1};
        cli_progress progress = {.label = "converting", .is_terminal = is_terminal};
        void *owned = NULL;
        cli_file_error error = {""};
        assert_int_equal(cli_convert_array(&array, TG_TYPE_FP64, &progress, &owned, &error),
                         CLI_EXIT_OK);
        assert_int_equal(progress.is_shown, is_terminal);
        cli_end_progress(&progress);
        free(owned);
    }
}

static void test_memory(void **state)
{
    (void)state;
    cli_memory memory = {.left_bytes = 100};
    cli_file_error error = {""};
    assert_true(cli_read_memory(0).left_bytes > 0);
    assert_int_equal(cli_reserve_memory(&memory, 60, "A", &error), CLI_EXIT_OK);
    assert_int_equal(cli_reserve_memory(&memory, 41, "B", &error), CLI_EXIT_WRONG);
    assert_non_null(strstr(error.text, "B needs 41 bytes, 40 are available"));
    assert_int_equal(cli_reserve_memory(&memory, 40, "C", &error), CLI_EXIT_OK);
}

static void write_group(const char *folder, const char *name, const char *text)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

/* A group with a limit of 1000 bytes holds one with a limit of 500 and one without. */
static void test_group_memory(void **state)
{
    (void)state;
    char root[] = "/tmp/tilegemm_memory_XXXXXX", folder[64];
    static const struct {
        const char *name, *limit, *used, *stat;
    } groups[] = {{"/a", "1000\n", "700\n", "anon 100\nfile 250\n"},
                  {"/a/b", "500\n", "300\n", "file 0\n"},
                  {"/a/c", "max\n", "300\n", ""}};
    static const struct {
        const char *membership;
        int64_t left;
    } cases[] = {{"0::/a\n", 550},      {"0::/a/b\n", 200},
                 {"0::/a/c\n", 550},    {"3:memory:/x\n0::/a/b\n", 200},
                 {"0::/\n", INT64_MAX}, {"0::/none\n", INT64_MAX},
                 {"", INT64_MAX}};
    assert_non_null(mkdtemp(root));
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        snprintf(folder, sizeof folder, "%s%s", root, groups[i].name);
        assert_int_equal(mkdir(folder, 0700), 0);
        write_group(folder, "memory.max", groups[i].limit);
        write_group(folder, "memory.current", groups[i].used);
        write_group(folder, "memory.stat", groups[i].stat);
    }
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const int64_t left = cli_find_group_memory(root, cases[i].membership);
        if (left != cases[i].left)
            fail_msg("%s: %lld bytes, not %lld", cases[i].membership, (long long)left,
                     (long long)cases[i].left);
    }
    snprintf(folder, sizeof folder, "rm -r %s", root);
    assert_int_equal(system(folder), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_array),
        cmocka_unit_test(test_coordinate),
        cmocka_unit_test(test_symmetry),
        cmocka_unit_test(test_banner_refused),
        cmocka_unit_test(test_sizes_refused),
        cmocka_unit_test(test_values_refused),
        cmocka_unit_test(test_every_truncation),
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_convert),
        cmocka_unit_test(test_convert_progress),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_group_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
