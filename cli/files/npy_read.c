#include "files/npy_read.h"

#include <string.h>

#define MAGIC_BYTES 6
#define TEXT_BYTES 80 /* longest key, descr or shape in a message */

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, ".npy views assume little-endian");

/* The values of the dict. */
typedef struct npy_header {
    char descr[TEXT_BYTES];
    char shape[TEXT_BYTES]; /* text of the file */
    int64_t size[4];        /* the first four dimensions */
    int dim_count;
    int is_fortran;
    int has_descr, has_fortran, has_shape;
} npy_header;

/* Reads `at` up to `end`; offsets in messages count from `start`. */
typedef struct npy_text {
    const char *start, *at, *end;
    cli_file_error *error;
} npy_text;

static void skip_space(npy_text *text)
{
    while (text->at < text->end && memchr(" \t\r\n\f\v", *text->at, 6))
        text->at++;
}

static int fail_text(npy_text *text, const char *expected)
{
    char found[24];
    size_t left = (size_t)(text->end - text->at);
    cli_copy_printable(found, sizeof found, text->at, left);
    return cli_fail_file(text->error, CLI_EXIT_USAGE,
                         "the .npy header has '%s' at byte %td where %s is expected; save the "
                         "matrix again with numpy.save",
                         left ? found : "its end", text->at - text->start, expected);
}

/* Skips space and takes `symbol` if it is next. */
static int take(npy_text *text, char symbol)
{
    skip_space(text);
    if (text->at == text->end || *text->at != symbol)
        return 0;
    text->at++;
    return 1;
}

static int parse_string(npy_text *text, char value[TEXT_BYTES])
{
    skip_space(text);
    if (text->at == text->end || (*text->at != '\'' && *text->at != '"'))
        return fail_text(text, "a string");
    char quote = *text->at;
    const char *first = text->at + 1;
    const char *last = memchr(first, quote, (size_t)(text->end - first));
    if (!last || memchr(first, '\\', (size_t)(last - first)) || last - first >= TEXT_BYTES)
        return fail_text(text, "a short string without escapes");
    cli_copy_printable(value, TEXT_BYTES, first, (size_t)(last - first));
    text->at = last + 1;
    return CLI_EXIT_OK;
}

static int parse_descr(npy_text *text, npy_header *header)
{
    skip_space(text);
    if (text->at < text->end && (*text->at == '[' || *text->at == '('))
        return cli_fail_file(text->error, CLI_EXIT_USAGE,
                             "the elements are records (a structured dtype); save one field, for "
                             "example numpy.save(path, a['name'])");
    return parse_string(text, header->descr);
}

static int parse_bool(npy_text *text, npy_header *header)
{
    skip_space(text);
    size_t left = (size_t)(text->end - text->at);
    if (left >= 4 && memcmp(text->at, "True", 4) == 0) {
        header->is_fortran = 1;
        text->at += 4;
    } else if (left >= 5 && memcmp(text->at, "False", 5) == 0) {
        header->is_fortran = 0;
        text->at += 5;
    } else {
        return fail_text(text, "True or False");
    }
    return CLI_EXIT_OK;
}

static int parse_dimension(npy_text *text, int64_t *size)
{
    const char *first = text->at;
    *size = 0;
    if (text->at < text->end && *text->at == '-')
        return fail_text(text, "a dimension of at least 0");
    while (text->at < text->end && *text->at >= '0' && *text->at <= '9') {
        if (__builtin_mul_overflow(*size, 10, size) ||
            __builtin_add_overflow(*size, *text->at - '0', size))
            return cli_fail_file(text->error, CLI_EXIT_USAGE,
                                 "a dimension in the .npy header exceeds the limit 2^63 - 1");
        text->at++;
    }
    if (text->at == first || (*first == '0' && text->at - first > 1)) {
        text->at = first;
        return fail_text(text, "a dimension");
    }
    /* Python 2 wrote long integers as 3L. */
    if (text->at < text->end && *text->at == 'L')
        text->at++;
    return CLI_EXIT_OK;
}

static int parse_shape(npy_text *text, npy_header *header)
{
    int is_separated = 1, status;
    int64_t size;
    if (!take(text, '('))
        return fail_text(text, "a shape in parentheses");
    const char *first = text->at - 1;
    while (!take(text, ')')) {
        if (!is_separated)
            return fail_text(text, "',' or ')'");
        if ((status = parse_dimension(text, &size)) != CLI_EXIT_OK)
            return status;
        if (header->dim_count < 4)
            header->size[header->dim_count] = size;
        header->dim_count++;
        is_separated = take(text, ',');
    }
    if (header->dim_count == 1 && !is_separated) /* (3) is a number, not a tuple */
        return fail_text(text, "a shape such as (2, 3), its last ',' before the ')',");
    cli_copy_printable(header->shape, TEXT_BYTES, first, (size_t)(text->at - first));
    return CLI_EXIT_OK;
}

static int parse_entry(npy_text *text, npy_header *header)
{
    char key[TEXT_BYTES];
    int *has_value = NULL;
    int status = parse_string(text, key);
    if (status != CLI_EXIT_OK)
        return status;
    if (strcmp(key, "descr") == 0)
        has_value = &header->has_descr;
    else if (strcmp(key, "fortran_order") == 0)
        has_value = &header->has_fortran;
    else if (strcmp(key, "shape") == 0)
        has_value = &header->has_shape;
    if (!has_value || *has_value)
        return cli_fail_file(text->error, CLI_EXIT_USAGE,
                             "the .npy header has the key '%s' %s; it must have 'descr', "
                             "'fortran_order' and 'shape', each once",
                             key, has_value ? "twice" : "that is unknown");
    *has_value = 1;
    if (!take(text, ':'))
        return fail_text(text, "':'");
    if (has_value == &header->has_descr)
        return parse_descr(text, header);
    return has_value == &header->has_shape ? parse_shape(text, header) : parse_bool(text, header);
}

static int parse_dict(npy_text *text, npy_header *header)
{
    int is_separated = 1, status;
    if (!take(text, '{'))
        return fail_text(text, "'{'");
    while (!take(text, '}')) {
        if (!is_separated)
            return fail_text(text, "',' or '}'");
        if ((status = parse_entry(text, header)) != CLI_EXIT_OK)
            return status;
        is_separated = take(text, ',');
    }
    skip_space(text);
    if (text->at != text->end)
        return fail_text(text, "nothing more");
    if (!header->has_descr || !header->has_fortran || !header->has_shape)
        return cli_fail_file(text->error, CLI_EXIT_USAGE,
                             "the .npy header lacks the key '%s'; save the matrix again with "
                             "numpy.save",
                             !header->has_descr     ? "descr"
                             : !header->has_fortran ? "fortran_order"
                                                    : "shape");
    return CLI_EXIT_OK;
}

/* Returns 1 if the text names integers or truth values, which this machine reads as they are. */
static int find_integer(const char *descr, cli_integer *integer)
{
    const int is_native = descr[0] == '<' || (descr[0] == '|' && descr[2] == '1');
    if (!is_native || !descr[1] || !strchr("iub", descr[1]) || !strchr("1248", descr[2]) ||
        !descr[2] || descr[3])
        return 0;
    *integer = (cli_integer){.elem_bytes = descr[2] - '0', .is_signed = descr[1] != 'u'};
    return 1;
}

/* Says why the elements are not read, and what to save instead without losing any of them. */
static int refuse_type(const char *descr, cli_file_error *error)
{
    if (descr[0] == '>' && descr[1] && strchr("fViu", descr[1]))
        return cli_fail_file(error, CLI_EXIT_USAGE,
                             "the elements are byte-swapped (descr '%s'); save them little-endian, "
                             "for example a.astype(a.dtype.newbyteorder('<'))",
                             descr);
    if (strchr(descr, 'O'))
        return cli_fail_file(error, CLI_EXIT_USAGE,
                             "the elements are Python objects (descr '%s'), which are pickled and "
                             "never loaded; save numbers",
                             descr);
    if (descr[0] && descr[1] == 'c')
        return cli_fail_file(error, CLI_EXIT_USAGE,
                             "the elements are complex (descr '%s'); save a.real and a.imag, and "
                             "multiply them one by one",
                             descr);
    return cli_fail_file(error, CLI_EXIT_USAGE,
                         "the element type '%s' is not read; float16, float32, float64, bfloat16 "
                         "and 8-bit floats of ml_dtypes, integers of up to 64 bits and bool are",
                         descr);
}

static int find_type(const char *descr, cli_array *array, cli_file_error *error)
{
    static const struct {
        const char *descr;
        tg_type type;
    } known[] = {{"<f4", TG_TYPE_FP32},
                 {"<f8", TG_TYPE_FP64},
                 {"<f2", TG_TYPE_FP16},
                 /* ml_dtypes registers bfloat16 as a void type of two bytes. */
                 {"<V2", TG_TYPE_BF16},
                 {"|V2", TG_TYPE_BF16},
                 /* ml_dtypes writes both FP8 types so, as bytes. The user names the type. */
                 {"|V1", TG_TYPE_FP8_E4M3},
                 {"<V1", TG_TYPE_FP8_E4M3}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (strcmp(descr, known[i].descr) == 0) {
            array->view.type = known[i].type;
            return CLI_EXIT_OK;
        }
    }
    array->view.type = TG_TYPE_FP64;
    return find_integer(descr, &array->integer) ? CLI_EXIT_OK : refuse_type(descr, error);
}

/* Finds where the dict starts, and its bytes. */
static int find_dict(const unsigned char *bytes, int64_t byte_count, npy_text *text)
{
    cli_file_error *error = text->error;
    if (byte_count < MAGIC_BYTES || memcmp(bytes, CLI_NPY_MAGIC, MAGIC_BYTES) != 0)
        return cli_fail_file(error, CLI_EXIT_USAGE, "this is not a .npy file");
    if (byte_count < 10)
        return cli_fail_file(error, CLI_EXIT_USAGE,
                             "the file is truncated: %lld bytes do not hold a .npy header",
                             (long long)byte_count);
    int major = bytes[6], minor = bytes[7];
    if (major < 1 || major > 3 || minor != 0)
        return cli_fail_file(error, CLI_EXIT_USAGE,
                             "version %d.%d of .npy is unknown; save as version 1.0, 2.0 or 3.0",
                             major, minor);
    int64_t start = major == 1 ? 10 : 12;
    int64_t dict_bytes = bytes[8] | (int64_t)bytes[9] << 8;
    if (major > 1 && byte_count >= start)
        dict_bytes |= (int64_t)bytes[10] << 16 | (int64_t)bytes[11] << 24;
    if (byte_count < start || dict_bytes > byte_count - start)
        return cli_fail_file(error, CLI_EXIT_USAGE,
                             "the file is truncated or its header lies: the header claims %lld "
                             "bytes, the file has %lld in all",
                             (long long)dict_bytes, (long long)byte_count);
    text->start = (const char *)bytes;
    text->at = text->start + start;
    text->end = text->at + dict_bytes;
    return CLI_EXIT_OK;
}

static int check_shape(const npy_header *header, cli_file_error *error)
{
    if (header->dim_count >= 1 && header->dim_count <= 4)
        return CLI_EXIT_OK;
    return cli_fail_file(error, CLI_EXIT_USAGE,
                         "the shape %s has %d dimensions; a vector has 1, a matrix 2, a batch of "
                         "matrices 3 and a batch of heads 4: reshape it, for example a.reshape(%s)",
                         header->shape, header->dim_count,
                         header->dim_count == 0 ? "1, 1" : "-1, *a.shape[-2:]");
}

/* Returns x y. Only the strides of an array without elements, which lead nowhere, overflow. */
static int64_t multiply_stride(int64_t x, int64_t y)
{
    return (int64_t)((uint64_t)x * (uint64_t)y);
}

/* Fills in sizes and strides. */
static void set_view(const npy_header *header, const char *data, cli_array *array)
{
    const int64_t *size = header->size;
    const int dims = header->dim_count;
    const int64_t rows = dims == 1 ? 1 : size[dims - 2], cols = size[dims - 1];
    array->view = tg_make_matrix(array->view.type, data, rows, cols);
    array->dim_count = dims;
    array->group_count = dims == 4 ? size[0] : 1;
    array->batch_count = dims >= 3 ? size[dims - 3] : 1;
    array->view.batch_stride = dims >= 3 ? multiply_stride(rows, cols) : 0;
    array->group_stride =
        dims == 4 ? multiply_stride(array->batch_count, array->view.batch_stride) : 0;
    if (header->is_fortran && dims > 1) {
        array->group_stride = dims == 4;
        array->view.batch_stride = dims >= 3 ? array->group_count : 0;
        array->view.row_stride = multiply_stride(array->group_count, array->batch_count);
        array->view.col_stride = multiply_stride(array->view.row_stride, rows);
    }
}

int cli_parse_npy(const void *bytes, int64_t byte_count, cli_array *array, cli_file_error *error)
{
    npy_text text = {.error = error};
    npy_header header = {.dim_count = 0, .size = {1, 1, 1, 1}};
    *array = (cli_array){.group_count = 1, .batch_count = 1};
    int status = find_dict(bytes, byte_count, &text);
    if (status == CLI_EXIT_OK)
        status = parse_dict(&text, &header);
    if (status == CLI_EXIT_OK)
        status = find_type(header.descr, array, error);
    if (status == CLI_EXIT_OK)
        status = check_shape(&header, error);
    if (status != CLI_EXIT_OK)
        return status;
    const int64_t elem_bytes =
        array->integer.elem_bytes ? array->integer.elem_bytes : tg_get_type_bytes(array->view.type);
    int64_t data_bytes, file_bytes = byte_count - (text.end - text.start);
    if (__builtin_mul_overflow(header.size[0], header.size[1], &data_bytes) ||
        __builtin_mul_overflow(data_bytes, header.size[2], &data_bytes) ||
        __builtin_mul_overflow(data_bytes, header.size[3], &data_bytes) ||
        __builtin_mul_overflow(data_bytes, elem_bytes, &data_bytes))
        return cli_fail_file(error, CLI_EXIT_USAGE,
                             "the shape %s needs more than 2^63 - 1 bytes; the header lies",
                             header.shape);
    if (data_bytes != file_bytes)
        return cli_fail_file(error, CLI_EXIT_USAGE,
                             "the shape %s of '%s' needs %lld bytes after the header, the file has "
                             "%lld: it is %s",
                             header.shape, header.descr, (long long)data_bytes,
                             (long long)file_bytes,
                             file_bytes < data_bytes ? "truncated; copy or save it again"
                                                     : "longer than that; save one array a file");
    set_view(&header, text.end, array);
    return CLI_EXIT_OK;
}
