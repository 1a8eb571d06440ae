#include "files/mtx_read.h"
#include "files/matrix_convert.h"
#include "files/mtx_text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef enum mtx_symmetry { MTX_GENERAL = 0, MTX_SYMMETRIC = 1, MTX_SKEW = 2 } mtx_symmetry;

typedef struct mtx_reader {
    cli_mtx_text text;
    tg_type type;
    int is_coordinate, is_integer;
    mtx_symmetry symmetry;
    int64_t m, n, entry_count;
    tg_matrix view;
    cli_progress *progress;
} mtx_reader;

static int fail_word(mtx_reader *reader, cli_mtx_word word, const char *expected)
{
    char found[32];
    cli_copy_printable(found, sizeof found, word.start, (size_t)word.length);
    return cli_fail_file(reader->text.error, CLI_EXIT_USAGE, "line %lld: '%s' where %s is expected",
                         (long long)reader->text.line, word.length ? found : "end of line",
                         expected);
}

static int is_word(cli_mtx_word word, const char *name)
{
    return word.length == (int64_t)strlen(name) &&
           strncasecmp(word.start, name, (size_t)word.length) == 0;
}

static int parse_banner(mtx_reader *reader)
{
    cli_mtx_text *text = &reader->text;
    if (!cli_next_mtx_line(text) || !is_word(cli_next_mtx_word(text), CLI_MTX_MAGIC))
        return cli_fail_file(text->error, CLI_EXIT_USAGE,
                             "this is not a MatrixMarket file: its first line must start with "
                             "%%%%MatrixMarket");
    cli_mtx_word word = cli_next_mtx_word(text);
    if (!is_word(word, "matrix"))
        return fail_word(reader, word, "'matrix'");
    word = cli_next_mtx_word(text);
    reader->is_coordinate = is_word(word, "coordinate");
    if (!reader->is_coordinate && !is_word(word, "array"))
        return fail_word(reader, word, "'coordinate' or 'array'");
    word = cli_next_mtx_word(text);
    if (is_word(word, "complex"))
        return fail_word(reader, word,
                         "'real' or 'integer' (store the real and the imaginary part in a file "
                         "each)");
    if (is_word(word, "pattern"))
        return fail_word(reader, word,
                         "'real' or 'integer' (store the entries with values, 1 for example)");
    reader->is_integer = is_word(word, "integer");
    if (!is_word(word, "real") && !reader->is_integer)
        return fail_word(reader, word, "'real' or 'integer'");
    word = cli_next_mtx_word(text);
    if (is_word(word, "symmetric"))
        reader->symmetry = MTX_SYMMETRIC;
    else if (is_word(word, "skew-symmetric"))
        reader->symmetry = MTX_SKEW;
    else if (!is_word(word, "general"))
        return fail_word(reader, word, "'general', 'symmetric' or 'skew-symmetric'");
    word = cli_next_mtx_word(text);
    return word.length ? fail_word(reader, word, "the end of the line") : CLI_EXIT_OK;
}

/* Takes the next word of the line as an integer of at least `low`. */
static int parse_integer(mtx_reader *reader, int64_t low, const char *expected, int64_t *value)
{
    cli_mtx_word word = cli_next_mtx_word(&reader->text);
    return cli_read_mtx_integer(word, value) && *value >= low ? CLI_EXIT_OK
                                                              : fail_word(reader, word, expected);
}

/* Counts the rest of a line as an error unless it is empty; `rule` says what a line holds. */
static int expect_line_end(mtx_reader *reader, const char *rule)
{
    char expected[64];
    cli_mtx_word word = cli_next_mtx_word(&reader->text);
    snprintf(expected, sizeof expected, "the end of the line (%s)", rule);
    return word.length ? fail_word(reader, word, expected) : CLI_EXIT_OK;
}

/* Skips the comments and reads the line of sizes. */
static int parse_sizes(mtx_reader *reader)
{
    cli_mtx_text *text = &reader->text;
    int status;
    do {
        if (!cli_next_mtx_line(text))
            return cli_fail_file(text->error, CLI_EXIT_USAGE,
                                 "the file is truncated: it has no line of sizes");
    } while (cli_is_mtx_comment(text));
    if ((status = parse_integer(reader, 0, "a number of rows", &reader->m)) != CLI_EXIT_OK ||
        (status = parse_integer(reader, 0, "a number of columns", &reader->n)) != CLI_EXIT_OK)
        return status;
    if (reader->is_coordinate && (status = parse_integer(reader, 0, "a number of entries",
                                                         &reader->entry_count)) != CLI_EXIT_OK)
        return status;
    if ((status = expect_line_end(reader, reader->is_coordinate ? "three sizes" : "two sizes")) !=
        CLI_EXIT_OK)
        return status;
    if (reader->symmetry != MTX_GENERAL && reader->m != reader->n)
        return cli_fail_file(text->error, CLI_EXIT_USAGE,
                             "a symmetric matrix must be square, this one is %lld x %lld",
                             (long long)reader->m, (long long)reader->n);
    return CLI_EXIT_OK;
}

/* Refuses sizes that memory or the file itself cannot hold, before anything is allocated. */
static int check_sizes(mtx_reader *reader, int64_t limit_bytes, int64_t *bytes)
{
    cli_file_error *error = reader->text.error;
    long long m = reader->m, n = reader->n;
    int64_t elem_count;
    int is_overflow = __builtin_mul_overflow(reader->m, reader->n, &elem_count) ||
                      __builtin_mul_overflow(elem_count, tg_get_type_bytes(reader->type), bytes);
    if (is_overflow || *bytes > limit_bytes)
        return cli_fail_file(error, is_overflow ? CLI_EXIT_USAGE : CLI_EXIT_WRONG,
                             "%lld x %lld %s needs %.0f bytes as a dense matrix, %lld are "
                             "available; matrices are multiplied dense, use a sparse product for "
                             "this one",
                             m, n, tg_get_type_name(reader->type),
                             (double)m * (double)n * (double)tg_get_type_bytes(reader->type),
                             (long long)limit_bytes);
    if (!reader->is_coordinate)
        reader->entry_count = reader->symmetry == MTX_GENERAL     ? elem_count
                              : reader->symmetry == MTX_SYMMETRIC ? (elem_count - m) / 2 + m
                                                                  : (elem_count - m) / 2;
    /* The shortest lines are "1\n" and "1 1 1\n"; the last line feed may be missing. */
    int64_t left = reader->text.end - reader->text.at + 1;
    if (reader->entry_count > left / (reader->is_coordinate ? 6 : 2))
        return cli_fail_file(error, CLI_EXIT_USAGE,
                             "the file is truncated or its sizes lie: %lld values are declared, "
                             "%lld bytes are left for them",
                             (long long)reader->entry_count, (long long)(left - 1));
    return CLI_EXIT_OK;
}

static int store(mtx_reader *reader, int64_t row, int64_t col, double value)
{
    const tg_matrix *view = &reader->view;
    int64_t index = row * view->row_stride + col * view->col_stride;
    if (cli_store_element(reader->type, view->data, index, value))
        return CLI_EXIT_OK;
    return cli_fail_file(reader->text.error, CLI_EXIT_USAGE,
                         "line %lld: %g is beyond the largest %s, %g; pass a --type with a wider "
                         "range",
                         (long long)reader->text.line, value, tg_get_type_name(reader->type),
                         cli_get_type_max(reader->type));
}

/* Stores or adds the value, and its mirror image if the file is symmetric. */
static int store_mirrored(mtx_reader *reader, int64_t row, int64_t col, double value)
{
    if (reader->is_coordinate)
        value += cli_load_element(&reader->view, row, col);
    int status = store(reader, row, col, value);
    if (status == CLI_EXIT_OK && reader->symmetry != MTX_GENERAL && row != col)
        status = store(reader, col, row, reader->symmetry == MTX_SKEW ? -value : value);
    return status;
}

static int parse_value(mtx_reader *reader, double *value)
{
    cli_mtx_word word = cli_next_mtx_word(&reader->text);
    /* FP32 is rounded from the text once, not through FP64. */
    if (!cli_read_mtx_number(word, reader->type == TG_TYPE_FP32, value))
        return fail_word(reader, word, "a number");
    int64_t whole;
    if (reader->is_integer && !cli_read_mtx_integer(word, &whole))
        return fail_word(reader, word,
                         "an integer of 64 bits (other numbers need 'real' in the first line)");
    if (isinf(*value) && !memchr("iI", word.start[word.start[0] == '-' || word.start[0] == '+'], 2))
        return fail_word(reader, word, "a number within the type's range");
    return expect_line_end(reader, reader->is_coordinate ? "one entry a line" : "one value a line");
}

static int parse_entry(mtx_reader *reader)
{
    int64_t row, col;
    double value;
    int status;
    if ((status = parse_integer(reader, 1, "a row index from 1", &row)) != CLI_EXIT_OK ||
        (status = parse_integer(reader, 1, "a column index from 1", &col)) != CLI_EXIT_OK ||
        (status = parse_value(reader, &value)) != CLI_EXIT_OK)
        return status;
    if (row > reader->m || col > reader->n)
        return cli_fail_file(reader->text.error, CLI_EXIT_USAGE,
                             "line %lld: entry (%lld, %lld) lies outside the %lld x %lld matrix",
                             (long long)reader->text.line, (long long)row, (long long)col,
                             (long long)reader->m, (long long)reader->n);
    if (reader->symmetry != MTX_GENERAL && col > row - (reader->symmetry == MTX_SKEW))
        return cli_fail_file(reader->text.error, CLI_EXIT_USAGE,
                             "line %lld: entry (%lld, %lld) is not below the diagonal; a %s file "
                             "holds the lower triangle only",
                             (long long)reader->text.line, (long long)row, (long long)col,
                             reader->symmetry == MTX_SKEW ? "skew-symmetric" : "symmetric");
    return store_mirrored(reader, row - 1, col - 1, value);
}

static int parse_entries(mtx_reader *reader)
{
    cli_mtx_text *text = &reader->text;
    int64_t row = reader->symmetry == MTX_SKEW, col = 0;
    for (int64_t i = 0; i < reader->entry_count; i++) {
        double value;
        int status;
        if (!cli_next_mtx_line(text))
            return cli_fail_file(text->error, CLI_EXIT_USAGE,
                                 "the file is truncated: %lld values are declared, %lld are there",
                                 (long long)reader->entry_count, (long long)i);
        if (cli_is_mtx_comment(text))
            return cli_fail_file(text->error, CLI_EXIT_USAGE,
                                 "line %lld: a comment among the values; comments stand before the "
                                 "line of sizes, move it there",
                                 (long long)text->line);
        if (reader->is_coordinate) {
            status = parse_entry(reader);
        } else if ((status = parse_value(reader, &value)) == CLI_EXIT_OK) {
            status = store_mirrored(reader, row, col, value);
            if (++row == reader->m) {
                col++;
                row = reader->symmetry == MTX_GENERAL ? 0 : col + (reader->symmetry == MTX_SKEW);
            }
        }
        if (status != CLI_EXIT_OK)
            return status;
        if (i % CLI_PROGRESS_INTERVAL == 0)
            cli_show_progress(reader->progress, i, reader->entry_count);
    }
    if (cli_next_mtx_line(text))
        return cli_fail_file(text->error, CLI_EXIT_USAGE,
                             "line %lld: text after the last of %lld declared values",
                             (long long)text->line, (long long)reader->entry_count);
    return CLI_EXIT_OK;
}

int cli_parse_mtx(const void *bytes, int64_t byte_count, tg_type type, int64_t limit_bytes,
                  cli_progress *progress, tg_matrix *view, void **owned, cli_file_error *error)
{
    mtx_reader reader = {.type = type, .progress = progress};
    int64_t data_bytes = 0;
    int status;
    reader.text = cli_make_mtx_text(bytes, byte_count, error);
    if ((status = parse_banner(&reader)) != CLI_EXIT_OK ||
        (status = parse_sizes(&reader)) != CLI_EXIT_OK ||
        (status = check_sizes(&reader, limit_bytes, &data_bytes)) != CLI_EXIT_OK)
        return status;
    void *data = calloc(data_bytes > 0 ? (size_t)data_bytes : 1, 1); /* zeros in every type */
    if (!data)
        return cli_fail_file(error, CLI_EXIT_WRONG, "out of memory: the matrix needs %lld bytes",
                             (long long)data_bytes);
    reader.view = tg_make_matrix(type, data, reader.m, reader.n);
    if (!reader.is_coordinate) {
        reader.view.row_stride = 1;
        reader.view.col_stride = reader.m;
    }
    status = parse_entries(&reader);
    if (status != CLI_EXIT_OK) {
        free(data);
        return status;
    }
    *view = reader.view;
    *owned = data;
    return CLI_EXIT_OK;
}
