/*
 * Reads the shapes to measure: --shape values and suites, with one shape a line followed by `#
 * reason`.
 */
#include "bench/bench.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int64_t cli_get_depth(const tg_problem *problem)
{
    return problem->op_a == TG_OPERATION_NONE ? problem->a.col_count : problem->a.row_count;
}

/* Returns 'n' for a row-major op(matrix), 't' for a column-major one, 0 for neither. */
static char find_letter(const tg_matrix *matrix, tg_operation op)
{
    int is_row_major = matrix->col_stride == 1;
    if (!is_row_major && matrix->row_stride != 1)
        return 0;
    return is_row_major == (op == TG_OPERATION_NONE) ? 'n' : 't';
}

const char *cli_get_layout(const tg_problem *problem)
{
    char a = find_letter(&problem->a, problem->op_a);
    char b = find_letter(&problem->b, problem->op_b);
    if (!a || !b)
        return "strided";
    return a == 'n' ? (b == 'n' ? "nn" : "nt") : (b == 'n' ? "tn" : "tt");
}

static double count_bytes(const tg_matrix *matrix, int64_t batch_count)
{
    if (matrix->row_count == 0 || matrix->col_count == 0 || batch_count == 0)
        return 0.0;
    double last = fabs((double)(matrix->row_count - 1) * (double)matrix->row_stride) +
                  fabs((double)(matrix->col_count - 1) * (double)matrix->col_stride) +
                  fabs((double)(batch_count - 1) * (double)matrix->batch_stride);
    return (last + 1.0) * (double)tg_get_type_bytes(matrix->type);
}

double cli_count_operand_bytes(const tg_problem *problem)
{
    const int64_t batch_count = problem->batch_count;
    return count_bytes(&problem->a, batch_count) + count_bytes(&problem->b, batch_count) +
           count_bytes(&problem->d, batch_count) +
           (problem->beta != 0.0 ? count_bytes(&problem->c, batch_count) : 0.0);
}

/* Copies a reason. A long one is truncated between two characters of UTF-8. */
static void copy_reason(char *copy, size_t copy_bytes, const char *reason)
{
    size_t length = strlen(reason);
    if (length >= copy_bytes) {
        length = copy_bytes - 1;
        while (length > 0 && ((unsigned char)reason[length] & 0xC0) == 0x80)
            length--;
    }
    memcpy(copy, reason, length);
    copy[length] = '\0';
}

/* Returns the zeroed shape after the last one; the caller counts it. NULL when out of memory. */
static bench_shape *grow_shapes(bench_options *options)
{
    size_t bytes = (size_t)(options->shape_count + 1) * sizeof *options->shapes;
    bench_shape *grown = realloc(options->shapes, bytes);
    if (!grown) {
        cli_print_error("out of memory for %d shapes", options->shape_count + 1);
        return NULL;
    }
    options->shapes = grown;
    grown[options->shape_count] = (bench_shape){.is_attention = 0};
    return &grown[options->shape_count];
}

int cli_add_shape(bench_options *options, const char *text, const char *reason)
{
    tg_problem problem;
    tg_status status = tg_parse_problem(text, &problem, sizeof problem);
    if (status != TG_STATUS_OK)
        return cli_report_status(status);
    bench_shape *shape = grow_shapes(options);
    if (!shape)
        return CLI_EXIT_WRONG;
    shape->problem = problem;
    copy_reason(shape->reason, sizeof shape->reason, reason);
    status = tg_format_problem(&problem, shape->text, sizeof shape->text);
    if (status != TG_STATUS_OK)
        return cli_report_status(status);
    options->shape_count++;
    return CLI_EXIT_OK;
}

int cli_add_attention(bench_options *options, const char *text)
{
    bench_shape *shape = grow_shapes(options);
    if (!shape)
        return CLI_EXIT_WRONG;
    tg_attention *attention = &shape->attention;
    tg_status status = tg_parse_attention(text, attention, sizeof *attention);
    if (status == TG_STATUS_OK)
        status = tg_format_attention(attention, shape->text, sizeof shape->text);
    if (status != TG_STATUS_OK)
        return cli_report_status(status);
    shape->is_attention = 1;
    options->shape_count++;
    return CLI_EXIT_OK;
}

tg_type cli_get_shape_type(const bench_shape *shape)
{
    return shape->is_attention ? shape->attention.type : shape->problem.a.type;
}

/* Removes white space at both ends, in place. */
static char *trim_line(char *line)
{
    while (isspace((unsigned char)*line))
        line++;
    char *end = line + strlen(line);
    while (end > line && isspace((unsigned char)end[-1]))
        end--;
    *end = '\0';
    return line;
}

/* Reads a line of a suite that begins with --: the suite's value of an option that is not given. */
static int add_suite_option(bench_options *options, char *text)
{
    static const char *const groups[] = {"best", "ladder", "all"};
    const size_t name_length = strcspn(text, " ");
    const char *value = trim_line(text + name_length);
    if (strncmp(text, "--max-time", name_length) == 0)
        return cli_parse_double("--max-time", value, 0.0, 86400.0, &options->suite_max_time_s)
                   ? CLI_EXIT_OK
                   : CLI_EXIT_USAGE;
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        if (strncmp(text, "--kernel", name_length) != 0 || strcmp(value, groups[i]) != 0 ||
            options->suite_kernel_name_count == BENCH_NAME_CAPACITY)
            continue;
        options->suite_kernel_names[options->suite_kernel_name_count++] = groups[i];
        return CLI_EXIT_OK;
    }
    cli_print_error("'%s' is not an option of a suite; write --max-time SECONDS, or --kernel best, "
                    "ladder or all",
                    text);
    return CLI_EXIT_USAGE;
}

static int read_suite(bench_options *options, FILE *file, const char *path)
{
    char *line = NULL; /* getline's, of any length */
    size_t line_bytes = 0;
    int before_count = options->shape_count, exit_code = CLI_EXIT_OK;
    for (int line_number = 1; getline(&line, &line_bytes, file) >= 0; line_number++) {
        char *mark = strchr(line, '#');
        char *reason = mark ? mark + 1 : line + strlen(line);
        if (mark)
            *mark = '\0';
        char *text = trim_line(line);
        if (!text[0])
            continue;
        if (strncmp(text, "--", 2) == 0)
            exit_code = add_suite_option(options, text);
        else
            exit_code = cli_add_shape(options, text, trim_line(reason));
        if (exit_code == CLI_EXIT_USAGE)
            cli_print_error("%s:%d: this line is not a shape; write MxNxK # reason", path,
                            line_number);
        if (exit_code != CLI_EXIT_OK)
            break;
    }
    int number = errno;
    free(line);
    if (exit_code != CLI_EXIT_OK)
        return exit_code;
    if (!feof(file)) {
        cli_print_error("cannot read %s: %s", path, strerror(number));
        return number == ENOMEM ? CLI_EXIT_WRONG : CLI_EXIT_MISSING;
    }
    if (options->shape_count == before_count) {
        cli_print_error("%s holds no shape; write one MxNxK # reason a line", path);
        return CLI_EXIT_USAGE;
    }
    return CLI_EXIT_OK;
}

/* Opens the suite of that name: installed beside this program, else in the folder of the build's
 * source. If there is none, or the name has a slash, it opens the file of that name. */
static FILE *open_suite(const char *name, char *path, size_t path_bytes)
{
    char program[PATH_MAX] = "";
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    char *slash = length > 0 ? strrchr(program, '/') : NULL;
    if (slash)
        *slash = '\0';
    FILE *file = NULL;
    if (!strchr(name, '/')) {
        snprintf(path, path_bytes, "%s/../share/tilegemm/suites/%s.txt", program, name);
        file = slash ? fopen(path, "r") : NULL;
        if (!file) {
            snprintf(path, path_bytes, "%s/%s.txt", TG_SUITE_DIR, name);
            file = fopen(path, "r");
        }
    }
    if (!file) {
        snprintf(path, path_bytes, "%s", name);
        file = fopen(path, "r");
    }
    return file;
}

int cli_add_suite(bench_options *options, const char *name_or_path)
{
    char path[PATH_MAX + 64];
    FILE *file = open_suite(name_or_path, path, sizeof path);
    if (!file) {
        cli_print_error(
            "--suite = '%s' is neither a suite nor a file: %s; pass square, cubes, layouts, odd, "
            "skinny, llm, tokens, cliff, rounded, seeds or a path",
            name_or_path, strerror(errno));
        return CLI_EXIT_MISSING;
    }
    int exit_code = read_suite(options, file, path);
    fclose(file);
    return exit_code;
}

static void apply_type(bench_shape *shape, tg_type type)
{
    if (shape->problem.a.type == type)
        return;
    /* FP8 layers of a network give BF16. */
    shape->problem.a.type = shape->problem.b.type = type;
    shape->problem.c.type = shape->problem.d.type =
        tg_get_type_bytes(type) == 1 ? TG_TYPE_BF16 : type;
}

int cli_apply_types(bench_options *options)
{
    const int shape_count = options->shape_count;
    const int type_count = options->type_count > 0 ? options->type_count : 1;
    bench_shape *typed = calloc((size_t)shape_count * (size_t)type_count, sizeof *typed);
    if (!typed) {
        cli_print_error("out of memory for %d shapes", shape_count * type_count);
        return CLI_EXIT_WRONG;
    }
    int exit_code = CLI_EXIT_OK;
    for (int i = 0; i < shape_count * type_count && exit_code == CLI_EXIT_OK; i++) {
        bench_shape *shape = &typed[i];
        *shape = options->shapes[i % shape_count];
        if (options->is_batch_invariant)
            *(shape->is_attention ? &shape->attention.is_batch_invariant
                                  : &shape->problem.is_batch_invariant) = 1;
        if (options->type_count > 0 && !shape->is_attention)
            apply_type(shape, options->types[i / shape_count]);
        if (options->has_precision)
            shape->problem.precision = options->precision;
        tg_status status =
            shape->is_attention
                ? tg_format_attention(&shape->attention, shape->text, sizeof shape->text)
                : tg_format_problem(&shape->problem, shape->text, sizeof shape->text);
        if (status != TG_STATUS_OK)
            exit_code = cli_report_status(status);
    }
    free(options->shapes);
    options->shapes = typed;
    options->shape_count = shape_count * type_count;
    return exit_code;
}
