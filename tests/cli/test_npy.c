/*
 * Tests the .npy header parser and writer on files in memory. Every buffer has exactly the file's
 * size, so that the address sanitizer sees a read past the end.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "files/matrix_convert.h"
#include "files/matrix_file.h"
#include "files/npy_read.h"
#include "files/npy_write.h"

/* Returns a file of version `major` with the header text and `data_bytes` of zeros. The caller owns
 * it. */
static char *make_file(int major, const char *text, int64_t data_bytes, int64_t *byte_count)
{
    size_t text_bytes = strlen(text), start = major == 1 ? 10 : 12;
    *byte_count = (int64_t)(start + text_bytes) + data_bytes;
    char *file = calloc((size_t)*byte_count, 1);
    assert_non_null(file);
    memcpy(file, "\x93NUMPY", 6);
    file[6] = (char)major;
    for (size_t i = 8; i < start; i++)
        file[i] = (char)(text_bytes >> 8 * (i - 8));
    memcpy(file + start, text, text_bytes);
    return file;
}

static void accepts(int major, const char *text, int64_t data_bytes, tg_matrix expected)
{
    int64_t byte_count;
    cli_array array;
    cli_file_error error = {""};
    char *file = make_file(major, text, data_bytes, &byte_count);
    if (cli_parse_npy(file, byte_count, &array, &error) != CLI_EXIT_OK)
        fail_msg("'%s' is refused: %s", text, error.text);
    assert_int_equal(array.view.type, expected.type);
    assert_int_equal(array.view.row_count, expected.row_count);
    assert_int_equal(array.view.col_count, expected.col_count);
    assert_int_equal(array.view.row_stride, expected.row_stride);
    assert_int_equal(array.view.col_stride, expected.col_stride);
    assert_ptr_equal(array.view.data, file + byte_count - data_bytes);
    free(file);
}

static void refuses(int major, const char *text, int64_t data_bytes, const char *reason)
{
    int64_t byte_count;
    cli_array array;
    cli_file_error error = {""};
    char *file = make_file(major, text, data_bytes, &byte_count);
    assert_int_equal(cli_parse_npy(file, byte_count, &array, &error), CLI_EXIT_USAGE);
    if (!strstr(error.text, reason))
        fail_msg("'%s' is refused with '%s', not '%s'", text, error.text, reason);
    free(file);
}

static tg_matrix expect(tg_type type, int64_t m, int64_t n, int is_fortran)
{
    tg_matrix view = tg_make_matrix(type, NULL, m, n);
    if (is_fortran) {
        view.row_stride = 1;
        view.col_stride = m;
    }
    return view;
}

static void test_versions_orders_types(void **state)
{
    (void)state;
    const char *c_order = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }    \n";
    const char *f_order = "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }\n";
    for (int major = 1; major <= 3; major++) {
        accepts(major, c_order, 24, expect(TG_TYPE_FP32, 2, 3, 0));
        accepts(major, f_order, 24, expect(TG_TYPE_FP32, 2, 3, 1));
    }
    accepts(1, "{'descr':'<f8','fortran_order':False,'shape':(2,3)}", 48,
            expect(TG_TYPE_FP64, 2, 3, 0));
    accepts(1, "{'descr':'<f2','fortran_order':False,'shape':(2,3)}", 12,
            expect(TG_TYPE_FP16, 2, 3, 0));
    accepts(1, "{'descr':'<V2','fortran_order':False,'shape':(2,3)}", 12,
            expect(TG_TYPE_BF16, 2, 3, 0));
}

static void test_text_variants(void **state)
{
    (void)state;
    tg_matrix expected = expect(TG_TYPE_FP32, 1, 2, 0);
    accepts(1, "{\"shape\": (1, 2), \"fortran_order\": False, \"descr\": \"<f4\"}", 8, expected);
    accepts(2, " \t{ 'descr' :\n'<f4' ,'fortran_order':False, 'shape' :( 1 ,2 , ) , }\n\n", 8,
            expected);
    accepts(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (1L, 2L)}", 8, expected);
    accepts(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 5)}", 0,
            expect(TG_TYPE_FP32, 0, 5, 0));
}

#define DICT(descr, shape) "{'descr': " descr ", 'fortran_order': False, 'shape': " shape "}"

/* Four dimensions in C and in Fortran order; the elements are their places in the file. */
static void test_four_dimensions(void **state)
{
    (void)state;
    static const char *const texts[] = {DICT("'<f4'", "(2, 3, 4, 5)"),
                                        "{'descr': '<f4', 'fortran_order': True, 'shape': "
                                        "(2, 3, 4, 5)}"};
    for (int is_fortran = 0; is_fortran <= 1; is_fortran++) {
        int64_t byte_count;
        cli_array array;
        cli_file_error error = {""};
        float elems[120];
        void *owned = NULL;
        char *file = make_file(1, texts[is_fortran], sizeof elems, &byte_count);
        assert_int_equal(cli_parse_npy(file, byte_count, &array, &error), CLI_EXIT_OK);
        assert_int_equal(array.group_count, 2);
        assert_int_equal(array.batch_count, 3);
        for (int i = 0; i < 120; i++)
            elems[i] = (float)i;
        array.view.data = elems;
        assert_int_equal(cli_convert_array(&array, TG_TYPE_FP64, NULL, &owned, &error),
                         CLI_EXIT_OK);
        for (int i = 0; i < 120; i++) {
            const int place[] = {i / 60, i / 20 % 3, i / 5 % 4, i % 5};
            const int expected =
                is_fortran ? place[0] + 2 * (place[1] + 3 * (place[2] + 4 * place[3])) : i;
            assert_true(((const double *)owned)[i] == expected);
        }
        assert_int_equal(array.group_stride, 60);
        elems[119] = 1e6F;
        array.view.data = elems;
        array.view.type = TG_TYPE_FP32;
        free(owned);
        assert_int_equal(cli_convert_array(&array, TG_TYPE_FP16, NULL, &owned, &error),
                         CLI_EXIT_USAGE);
        assert_non_null(strstr(error.text, "element (1, 2, 3, 4) = 1e+06"));
        free(file);
    }
}

static void test_shapes_refused(void **state)
{
    (void)state;
    refuses(1, DICT("'<f4'", "()"), 4, "reshape(1, 1)");
    refuses(1, DICT("'<f4'", "(2, 3, 4, 1, 1)"), 96, "(2, 3, 4, 1, 1)");
    refuses(1, DICT("'<f4'", "(3)"), 12, "shape such as");
    refuses(1, DICT("'<f4'", "3"), 12, "parentheses");
    refuses(1, DICT("'<f4'", "(-1, 4)"), 16, "at least 0");
    refuses(1, DICT("'<f4'", "(1, -4)"), 16, "at least 0");
    refuses(1, DICT("'<f4'", "(2.0, 3)"), 24, "',' or ')'");
    refuses(1, DICT("'<f4'", "(02, 3)"), 24, "a dimension");
    refuses(1, DICT("'<f4'", "(2, 3"), 24, "',' or ')'");
    refuses(1, DICT("'<f4'", "(9223372036854775808, 1)"), 0, "2^63 - 1");
    refuses(1, DICT("'<f4'", "(4294967296, 4294967296)"), 0, "2^63 - 1 bytes");
    refuses(1, DICT("'<f8'", "(1152921504606846976, 1)"), 0, "2^63 - 1 bytes");
}

static void test_types_refused(void **state)
{
    (void)state;
    refuses(1, DICT("'>f4'", "(1, 1)"), 4, "byte-swapped");
    refuses(1, DICT("'|O'", "(1, 1)"), 8, "pickled");
    refuses(1, DICT("'<c8'", "(1, 1)"), 8, "save a.real and a.imag");
    refuses(1, DICT("'<f16'", "(1, 1)"), 16, "'<f16' is not read");
    refuses(1, DICT("'>i4'", "(1, 1)"), 4, "byte-swapped");
    refuses(1, DICT("[('x', '<f4')]", "(1, 1)"), 4, "structured");
    refuses(1, DICT("('<f4', (2,))", "(1, 1)"), 4, "structured");
    refuses(1, DICT("None", "(1, 1)"), 4, "a string");
    refuses(1, DICT("'\x1b[31m'", "(1, 1)"), 4, "'?[31m'");
}

static void test_dicts_refused(void **state)
{
    (void)state;
    refuses(1, "", 0, "its end");
    refuses(1, "{'descr': '<f4'", 4, "',' or '}'");
    refuses(1, "{'descr': '<f4', 'fortran_order': False}", 4, "lacks the key 'shape'");
    refuses(1, "{'shape': (1, 1), 'fortran_order': False}", 4, "lacks the key 'descr'");
    refuses(1, "{'shape': (1, 1), 'descr': '<f4'}", 4, "lacks the key 'fortran_order'");
    refuses(1, "{'descr': '<f4', 'extra': 1}", 4, "'extra' that is unknown");
    refuses(1, "{'descr': '<f4', 'descr': '<f4'}", 4, "'descr' twice");
    refuses(1, "{'descr': '<f4', 'fortran_order': 0, 'shape': (1, 1)}", 4, "True or False");
    refuses(1, "{'descr' '<f4'}", 4, "':'");
    refuses(1, "{'des\\x63r': '<f4'}", 4, "without escapes");
    refuses(1, "{'descr", 4, "without escapes");
    refuses(1, DICT("'<f4'", "(1, 1)") " x", 4, "nothing more");
    refuses(1, "__import__('os').system('true')", 4, "'{'");
}

static void test_data_size(void **state)
{
    (void)state;
    refuses(1, DICT("'<f4'", "(2, 3)"), 23, "it is truncated; copy or save it again");
    refuses(1, DICT("'<f4'", "(2, 3)"), 0, "truncated");
    refuses(1, DICT("'<f4'", "(2, 3)"), 25, "longer than that; save one array a file");
    refuses(1, DICT("'<f4'", "(1000000000, 1000000000)"), 8, "truncated");
}

/* Every prefix of a good file is refused, and read no further than its end. */
static void test_every_truncation(void **state)
{
    (void)state;
    for (int major = 1; major <= 3; major++) {
        int64_t byte_count;
        char *file = make_file(major, DICT("'<f4'", "(2, 3)"), 24, &byte_count);
        for (int64_t length = 0; length < byte_count; length++) {
            cli_array array;
            cli_file_error error = {""};
            char *prefix = malloc(length > 0 ? (size_t)length : 1);
            memcpy(prefix, file, (size_t)length);
            assert_int_equal(cli_parse_npy(prefix, length, &array, &error), CLI_EXIT_USAGE);
            assert_true(strlen(error.text) > 0);
            free(prefix);
        }
        free(file);
    }
}

static void test_lying_header_length(void **state)
{
    (void)state;
    int64_t byte_count;
    cli_array array;
    cli_file_error error = {""};
    char *file = make_file(2, DICT("'<f4'", "(1, 1)"), 4, &byte_count);
    memset(file + 8, 0xff, 4);
    assert_int_equal(cli_parse_npy(file, byte_count, &array, &error), CLI_EXIT_USAGE);
    assert_non_null(strstr(error.text, "4294967295"));
    file[6] = 4;
    assert_int_equal(cli_parse_npy(file, byte_count, &array, &error), CLI_EXIT_USAGE);
    assert_non_null(strstr(error.text, "version 4.0"));
    file[0] = 'N';
    assert_int_equal(cli_parse_npy(file, byte_count, &array, &error), CLI_EXIT_USAGE);
    assert_non_null(strstr(error.text, "not a .npy"));
    free(file);
}

static void test_written_header(void **state)
{
    (void)state;
    static const tg_type types[] = {TG_TYPE_FP32, TG_TYPE_FP64, TG_TYPE_BF16, TG_TYPE_FP16};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        cli_array array;
        cli_file_error error = {""};
        int64_t data_bytes = 5 * 7 * tg_get_type_bytes(types[i]);
        char *file = calloc(CLI_NPY_HEADER_BYTES + (size_t)data_bytes, 1);
        assert_non_null(file);
        cli_format_npy_header(types[i], (const int64_t[]){5, 7}, 2, file);
        assert_int_equal(file[CLI_NPY_HEADER_BYTES - 1], '\n');
        assert_int_equal(cli_parse_npy(file, CLI_NPY_HEADER_BYTES + data_bytes, &array, &error),
                         CLI_EXIT_OK);
        assert_int_equal(array.view.type, types[i]);
        assert_int_equal(array.view.row_count, 5);
        assert_int_equal(array.view.row_stride, 7);
        free(file);
    }
    char header[CLI_NPY_HEADER_BYTES];
    cli_format_npy_header(TG_TYPE_FP32, (const int64_t[]){INT64_MAX, INT64_MAX}, 2, header);
    assert_int_equal(header[CLI_NPY_HEADER_BYTES - 1], '\n');
    assert_null(memchr(header + 10, 0, sizeof header - 10));
}

/* The file's elements begin at any byte; in memory they lie where their type may. */
static void test_alignment(void **state)
{
    (void)state;
    for (int pad = 0; pad < 4; pad++) {
        char path[] = P_tmpdir "/tilegemm-test-XXXXXX";
        const char *text = &"   {'descr':'<f4','fortran_order':False,'shape':(1,1)}"[pad];
        int64_t byte_count;
        char *bytes = make_file(1, text, 4, &byte_count);
        int fd = mkstemp(path);
        assert_int_equal(write(fd, bytes, (size_t)byte_count), byte_count);
        close(fd);
        cli_matrix_file file;
        cli_memory memory = {.left_bytes = 4};
        cli_file_error error = {""};
        assert_int_equal(cli_open_matrix(path, &file, &error), CLI_EXIT_OK);
        assert_int_equal(cli_load_matrix(&file, TG_TYPE_FP32, &memory, NULL, &error), CLI_EXIT_OK);
        assert_int_equal((uintptr_t)file.array.view.data % 4, 0);
        assert_int_equal(file.owned == NULL, (byte_count - 4) % 4 == 0);
        cli_close_matrix(&file);
        unlink(path);
        free(bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_versions_orders_types),
        cmocka_unit_test(test_text_variants),
        cmocka_unit_test(test_four_dimensions),
        cmocka_unit_test(test_shapes_refused),
        cmocka_unit_test(test_types_refused),
        cmocka_unit_test(test_dicts_refused),
        cmocka_unit_test(test_data_size),
        cmocka_unit_test(test_every_truncation),
        cmocka_unit_test(test_lying_header_length),
        cmocka_unit_test(test_written_header),
        cmocka_unit_test(test_alignment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
