/*
 * Reads the command line of tilegemm multiply.
 *
 * SPDX-License-Identifier: MIT
 */
#include "multiply/multiply.h"

#include <argp.h>
#include <errno.h>
#include <float.h>
#include <string.h>

enum multiply_option {
    KEY_ALPHA = 0x100,
    KEY_BETA,
    KEY_C,
    KEY_BIAS,
    KEY_ACTIVATION,
    KEY_TRANSPOSE_A,
    KEY_TRANSPOSE_B,
    KEY_TYPE,
    KEY_OUTPUT_TYPE,
    KEY_PRECISION,
    KEY_DEVICE,
    KEY_MEMORY,
    KEY_DEVICE_MEMORY,
    KEY_CHECK,
    KEY_JSON
};

static const struct argp_option options_table[] = {
    {.name = "output", .key = 'o', .arg = "D", .doc = "File to write, .npy or .mtx (required)"},
    {.name = "alpha", .key = KEY_ALPHA, .arg = "X", .doc = "Factor of A B (default 1)"},
    {.name = "beta",
     .key = KEY_BETA,
     .arg = "X",
     .doc = "Factor of C (default 1 with --c, else 0); with 0, C is not read"},
    {.name = "c",
     .key = KEY_C,
     .arg = "FILE",
     .doc = "Matrix C, with the shape of D; one matrix may serve all batch entries"},
    {.name = "bias",
     .key = KEY_BIAS,
     .arg = "FILE",
     .doc =
         "Vector to add: n values or 1 x n, one for each column of D, or m x 1, one for each row"},
    {.name = "activation",
     .key = KEY_ACTIVATION,
     .arg = "NAME",
     .doc = "Activation of D: none (default), relu, gelu_erf, gelu_tanh or silu"},
    {.name = "transpose-a", .key = KEY_TRANSPOSE_A, .doc = "Multiply with A transposed"},
    {.name = "transpose-b", .key = KEY_TRANSPOSE_B, .doc = "Multiply with B transposed"},
    {.name = "type",
     .key = KEY_TYPE,
     .arg = "TYPE",
     .doc = "Convert A and B to fp32, fp64, bf16, fp16, fp8_e4m3 or fp8_e5m2 (default: "
            "the type in the files; fp64 if both are .mtx)"},
    {.name = "output-type",
     .key = KEY_OUTPUT_TYPE,
     .arg = "TYPE",
     .doc = "Type of D (default: that of A and B): fp32, bf16 or fp16 for 16-bit and 8-bit inputs"},
    {.name = "precision",
     .key = KEY_PRECISION,
     .arg = "NAME",
     .doc = "default, ieee_fp32, ieee_fp64, tf32, bf16x3, bf16x6, bf16x9 or fp16x3"},
    {.name = "threads", .key = 't', .arg = "N", .doc = "CPU threads, 1 to 1024 (default: all)"},
    {.name = "device",
     .key = KEY_DEVICE,
     .arg = "NAME",
     .doc = "cpu, cuda (the first GPU) or cuda:N (default: TILEGEMM_DEVICE, else cpu)"},
    {.name = "memory",
     .key = KEY_MEMORY,
     .arg = "SIZE",
     .doc = "Memory for the matrices, in bytes or as 8G or 512M (default: the available memory). "
            "Larger matrices are multiplied in panels, and an interrupted run can be continued"},
    {.name = "device-memory",
     .key = KEY_DEVICE_MEMORY,
     .arg = "SIZE",
     .doc = "Memory for the matrices on a GPU (default: three quarters of the free memory). "
            "Matrices are copied in panels while other panels are multiplied"},
    {.name = "check",
     .key = KEY_CHECK,
     .doc = "Verify D by Freivalds' method before it is written; a wrong D is not written"},
    {.name = "json", .key = KEY_JSON, .doc = "Print the summary as JSON"},
    {.name = "quiet", .key = 'q', .doc = "Print only errors"},
    {0},
};

static const char doc[] =
    "Compute D = activation(alpha A B + beta C + bias) from matrices in files.\v"
    "Files: NumPy .npy (float16, float32, float64, bfloat16 of ml_dtypes, integers; C or "
    "Fortran order), the arrays of an .npz that numpy.savez wrote (FILE.npz:NAME), and "
    "MatrixMarket .mtx (array or coordinate; real or integer; general, symmetric or "
    "skew-symmetric; entries at the same position are added). Numbers of an .mtx file, and "
    "integers, are converted to the type of the other operand; each integer must be exact in it. "
    "With --type bf16, uint16 holds the bits of BF16.\n\n"
    "A three-dimensional array is a batch. A one-dimensional array is a vector: A is then a row, B "
    "a column, and D lacks that dimension, as in numpy.matmul.\n\n"
    "D is written under a temporary name and renamed at the end. It may be one of the inputs, and "
    "a failure leaves an existing file unchanged. Inputs must not be shortened while they are "
    "read.\n\n"
    "Matrices larger than memory must be .npy files. They are mapped and multiplied in panels of "
    "D, and D.partial keeps the finished panels. If a signal, a failure or a crash of the machine "
    "interrupts the run, the same command continues it. A run with other inputs or options is "
    "refused.\n\n"
    "Examples:\n"
    "  tilegemm multiply a.npy b.npy -o d.npy\n"
    "  tilegemm multiply a.npy b.npy -o d.npy --transpose-b --check\n"
    "  tilegemm multiply a.npy b.npy --c c.npy --alpha 2 --beta -1 -o c.npy\n"
    "  tilegemm multiply a.mtx b.npy -o d.mtx --type fp64 --threads 4\n"
    "  tilegemm multiply a.npy b.npy -o d.npy --device cuda --check\n"
    "  tilegemm multiply big_a.npy big_b.npy -o d.npy --memory 16G\n"
    "  tilegemm multiply l.npz:x l.npz:w -o y.npy --bias b.npy --activation relu\n"
    "  tilegemm multiply a.npy b.npy -o d.npy --type bf16 --output-type fp32 "
    "--json\n\n"
    "Exit codes: 0 done, 1 wrong result or failed work (no space, no memory), 2 "
    "wrong usage or input, 3 no such device or file, or an input that is not a "
    "readable file.";

static error_t parse_path(char *arg, struct argp_state *state, cli_multiply_options *options)
{
    if (state->arg_num == 0)
        options->a_path = arg;
    else if (state->arg_num == 1)
        options->b_path = arg;
    else
        argp_error(state, "'%s' is one file too many; pass two, A and B", arg);
    return 0;
}

static void check_options(struct argp_state *state, cli_multiply_options *options)
{
    if (!options->b_path)
        argp_error(state, "pass two files, A and B");
    if (!options->output_path)
        argp_error(state, "pass the file to write: -o D.npy or -o D.mtx");
    if (options->is_json && options->is_quiet)
        argp_error(state, "--json and --quiet exclude each other; pass one");
    if (!options->has_beta)
        options->beta = options->c_path ? 1 : 0;
    if (options->beta != 0 && !options->c_path)
        argp_error(state, "--beta = %g needs a matrix C; pass --c FILE or --beta 0", options->beta);
}

static int parse_activation(const char *text, tg_activation *activation)
{
    for (int value = 0; tg_get_activation_name((tg_activation)value); value++) {
        if (strcmp(text, tg_get_activation_name((tg_activation)value)) == 0) {
            *activation = (tg_activation)value;
            return 1;
        }
    }
    cli_print_error(
        "--activation = '%s' is not an activation; pass none, relu, gelu_erf, gelu_tanh "
        "or silu",
        text);
    return 0;
}

/* Reads the options whose value may be wrong. */
static error_t parse_value(int key, const char *arg, cli_multiply_options *options)
{
    int is_valid = 1;
    switch (key) {
    case KEY_ALPHA:
        is_valid = cli_parse_double("--alpha", arg, -DBL_MAX, DBL_MAX, &options->alpha);
        break;
    case KEY_BETA:
        options->has_beta = 1;
        is_valid = cli_parse_double("--beta", arg, -DBL_MAX, DBL_MAX, &options->beta);
        break;
    case KEY_TYPE:
        options->has_type = 1;
        is_valid = cli_parse_type("--type", arg, &options->type);
        break;
    case KEY_OUTPUT_TYPE:
        options->has_output_type = 1;
        is_valid = cli_parse_type("--output-type", arg, &options->output_type);
        break;
    case KEY_PRECISION:
        is_valid = cli_parse_precision("--precision", arg, &options->precision);
        break;
    case KEY_ACTIVATION:
        is_valid = parse_activation(arg, &options->activation);
        break;
    case KEY_MEMORY:
        is_valid = cli_parse_bytes("--memory", arg, &options->memory_bytes);
        break;
    case KEY_DEVICE_MEMORY:
        is_valid = cli_parse_bytes("--device-memory", arg, &options->device_bytes);
        break;
    case 't':
        is_valid = cli_parse_threads(arg, &options->thread_count);
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    return is_valid ? 0 : EINVAL;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    cli_multiply_options *options = state->input;
    switch (key) {
    case ARGP_KEY_ARG:
        return parse_path(arg, state, options);
    case ARGP_KEY_END:
        check_options(state, options);
        return 0;
    case 'o':
        options->output_path = arg;
        return 0;
    case 'q':
        options->is_quiet = 1;
        return 0;
    case KEY_C:
        options->c_path = arg;
        return 0;
    case KEY_BIAS:
        options->bias_path = arg;
        return 0;
    case KEY_DEVICE:
        options->device = arg;
        return 0;
    case KEY_TRANSPOSE_A:
        options->is_a_transposed = 1;
        return 0;
    case KEY_TRANSPOSE_B:
        options->is_b_transposed = 1;
        return 0;
    case KEY_CHECK:
        options->is_checked = 1;
        return 0;
    case KEY_JSON:
        options->is_json = 1;
        return 0;
    default:
        return parse_value(key, arg, options);
    }
}

const struct argp cli_argp_multiply = {
    .options = options_table, .parser = parse_option, .args_doc = "A B -o D", .doc = doc};

int cli_parse_multiply(int argc, char **argv, cli_multiply_options *options)
{
    *options = (cli_multiply_options){.alpha = 1};
    return cli_parse_words(argc, argv, &cli_argp_multiply, options);
}
