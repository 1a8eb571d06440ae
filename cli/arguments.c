#include "cli.h"
#include "tilegemm_lab.h"

#include <errno.h>
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREAD_COUNT_MAX 1024 /* most threads that tg_create_context takes */

void cli_print_error(const char *format, ...)
{
    char text[8192]; /* longer than any message */
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    /* A message may name a file, or quote one: no terminal takes its bytes for commands. */
    for (char *c = text; *c; c++) {
        if (((unsigned char)*c < ' ' && *c != '\n') || *c == '\x7f')
            *c = '?';
    }
    fprintf(stderr, "%s: %s\n", program_invocation_name, text);
}

int cli_exit_code(tg_status status)
{
    switch (status) {
    case TG_STATUS_OK:
        return CLI_EXIT_OK;
    case TG_STATUS_INVALID_ARGUMENT:
    case TG_STATUS_SIZE_OVERFLOW:
    case TG_STATUS_OVERLAP:
    case TG_STATUS_UNSUPPORTED:
        return CLI_EXIT_USAGE;
    case TG_STATUS_UNKNOWN_NAME:
    case TG_STATUS_NO_DEVICE:
        return CLI_EXIT_MISSING;
    default:
        return CLI_EXIT_WRONG;
    }
}

int cli_report_status(tg_status status)
{
    const char *detail = tg_get_error_detail();
    cli_print_error("%s", detail[0] ? detail : tg_get_status_text(status));
    return cli_exit_code(status);
}

int cli_create_context(const tg_context_options *options, tg_context **context)
{
    tg_status status = tg_create_context(options, context);
    if (status == TG_STATUS_OK)
        return CLI_EXIT_OK;
    int exit_code = cli_report_status(status);
    if (status != TG_STATUS_UNKNOWN_NAME)
        return exit_code;
    /* If a context with an instruction set that is always there opens, options->isa was wrong. */
    tg_context_options least = *options;
    least.isa = options->device && strncmp(options->device, "cuda", 4) == 0 ? "sm75" : "generic";
    if (tg_create_context(&least, context) == TG_STATUS_OK)
        exit_code = CLI_EXIT_USAGE;
    tg_destroy_context(*context);
    *context = NULL;
    return exit_code;
}

static error_t take_gpu(const char *arg, cli_query *query)
{
    const int most = query->has_several_gpus ? CLI_GPU_MOST : 1;
    if (query->gpu_count == most) {
        cli_print_error("--gpu = '%s' is one chip too many; pass at most %d", arg, most);
        return EINVAL;
    }
    query->gpus[query->gpu_count++] = arg;
    return 0;
}

error_t cli_take_query_option(int key, char *arg, struct argp_state *state, cli_query *query)
{
    switch (key) {
    case CLI_KEY_JSON:
        query->has_json = 1;
        return 0;
    case CLI_KEY_DEVICE:
        query->device = arg;
        return 0;
    case CLI_KEY_ISA:
        query->isa = arg;
        return 0;
    case CLI_KEY_GPU:
        return take_gpu(arg, query);
    case CLI_KEY_KERNEL:
        query->kernel = arg;
        return 0;
    case CLI_KEY_TILE:
        return cli_parse_int("--tile", arg, 1, query->tile_max, &query->tile) ? 0 : EINVAL;
    case ARGP_KEY_ARG:
        if (!query->shape_example)
            argp_error(state, "'%s' is not an option", arg);
        else if (query->shape)
            argp_error(state, "'%s' is one shape too many; pass one, such as %s", arg,
                       query->shape_example);
        query->shape = arg;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

error_t cli_parse_query_option(int key, char *arg, struct argp_state *state)
{
    return cli_take_query_option(key, arg, state, state->input);
}

int cli_parse_words(int argc, char **argv, const struct argp *argp, void *input)
{
    return argp_parse(argp, argc, argv, 0, NULL, input) == 0 ? CLI_EXIT_OK : CLI_EXIT_USAGE;
}

void cli_require_shape(struct argp_state *state, const cli_query *query)
{
    if (!query->shape)
        argp_error(state, "name a shape, such as %s", query->shape_example);
}

int cli_is_plain_product(const tg_problem *problem)
{
    const tg_type type = problem->a.type;
    char plain[512], given[512];
    tg_problem alone =
        tg_make_problem(tg_make_matrix(type, NULL, problem->d.row_count, problem->a.col_count),
                        tg_make_matrix(type, NULL, problem->a.col_count, problem->d.col_count),
                        tg_make_matrix(type, NULL, problem->d.row_count, problem->d.col_count));
    return tg_format_problem(problem, given, sizeof given) == TG_STATUS_OK &&
           tg_format_problem(&alone, plain, sizeof plain) == TG_STATUS_OK &&
           strcmp(plain, given) == 0;
}

int cli_parse_plain_shape(const char *shape, const char *what, int64_t most, tg_problem *problem)
{
    tg_status status = tg_parse_problem(shape, problem, sizeof *problem);
    if (status != TG_STATUS_OK)
        return cli_report_status(status);
    const int64_t m = problem->d.row_count, n = problem->d.col_count, k = problem->a.col_count;
    if (problem->a.type == TG_TYPE_FP32 && cli_is_plain_product(problem) && m >= 1 && n >= 1 &&
        k >= 1 && m <= most && n <= most && k <= most)
        return CLI_EXIT_OK;
    cli_print_error("shape = '%s', but %s D = A B of row-major matrices; pass MxNxK alone, each "
                    "from 1 to %lld",
                    shape, what, (long long)most);
    return CLI_EXIT_USAGE;
}

int cli_parse_type(const char *option, const char *text, tg_type *type)
{
    for (int value = 0; tg_get_type_name((tg_type)value); value++) {
        if (strcmp(text, tg_get_type_name((tg_type)value)) == 0) {
            *type = (tg_type)value;
            return 1;
        }
    }
    cli_print_error("%s = '%s' is not an element type; pass fp32, fp64, bf16, fp16, fp8_e4m3 or "
                    "fp8_e5m2",
                    option, text);
    return 0;
}

int cli_parse_precision(const char *option, const char *text, tg_precision *precision)
{
    for (int value = 0; tg_get_precision_name((tg_precision)value); value++) {
        if (strcmp(text, tg_get_precision_name((tg_precision)value)) == 0) {
            *precision = (tg_precision)value;
            return 1;
        }
    }
    cli_print_error(
        "%s = '%s' is not a precision; pass default, ieee_fp32, ieee_fp64, tf32, bf16x3, "
        "bf16x6, bf16x9 or fp16x3",
        option, text);
    return 0;
}

int cli_parse_int(const char *option, const char *text, int low, int high, int *value)
{
    char *end = NULL;
    errno = 0;
    long number = strtol(text, &end, 10);
    if (end == text || *end != '\0') {
        cli_print_error("%s = '%s' is not a whole number; pass one from %d to %d", option, text,
                        low, high);
        return 0;
    }
    if (high == INT_MAX && errno != ERANGE && number < low) {
        cli_print_error("%s = %s is less than %d; pass one of at least %d", option, text, low, low);
        return 0;
    }
    if (errno == ERANGE || number < low || number > high) {
        cli_print_error("%s = %s is outside %d to %d; pass one inside", option, text, low, high);
        return 0;
    }
    *value = (int)number;
    return 1;
}

int cli_parse_threads(const char *text, int *count)
{
    return cli_parse_int("--threads", text, 1, THREAD_COUNT_MAX, count);
}

int cli_parse_bytes(const char *option, const char *text, int64_t *bytes)
{
    static const char units[] = "KMGT";
    char *end = NULL;
    const double number = strtod(text, &end);
    const char *unit = end != text && *end ? strchr(units, *end) : NULL;
    const double value = number * (unit ? (double)(INT64_C(1024) << 10 * (unit - units)) : 1);
    if (end == text || (unit ? end[1] : *end) || !(value >= 1 && value < 0x1p62)) {
        cli_print_error(
            "%s = '%s' is not a size of 1 byte or more; pass bytes, or a number with K, "
            "M, G or T (1024, 1024^2, ...): 8G",
            option, text);
        return 0;
    }
    *bytes = (int64_t)value;
    return 1;
}

int cli_parse_double(const char *option, const char *text, double low, double high, double *value)
{
    char *end = NULL;
    errno = 0;
    double number = strtod(text, &end);
    if (end == text || *end != '\0' || isnan(number)) {
        cli_print_error("%s = '%s' is not a number; pass one from %g to %g", option, text, low,
                        high);
        return 0;
    }
    if (number == 0 && errno == ERANGE) {
        cli_print_error("%s = %s is too small, it would become 0; pass 0 or a magnitude of at "
                        "least %g",
                        option, text, DBL_TRUE_MIN);
        return 0;
    }
    if (number < low || number > high) {
        cli_print_error("%s = %s is outside %g to %g; pass one inside", option, text, low, high);
        return 0;
    }
    *value = number;
    return 1;
}
