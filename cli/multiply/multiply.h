/*
 * Declares the options of tilegemm multiply and its report.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TG_CLI_MULTIPLY_H
#define TG_CLI_MULTIPLY_H

#include "cli.h"
#include "files/matrix_file.h"
#include "freivalds.h"

/* The options as given. Paths point into argv. */
typedef struct cli_multiply_options {
    const char *a_path, *b_path;
    const char *c_path, *bias_path; /* NULL: none */
    const char *output_path, *device;
    double alpha, beta;
    int has_beta, has_type, has_output_type;
    tg_type type, output_type; /* types of A and B, and of D; valid if has_ is 1 */
    tg_precision precision;
    tg_activation activation;
    int64_t device_bytes; /* limit of --device-memory; 0: none is given */
    int64_t memory_bytes; /* limit of --memory; 0: none is given */
    int thread_count;     /* 0: the library's default */
    int is_a_transposed, is_b_transposed;
    int is_checked, is_json, is_quiet;
} cli_multiply_options;

/* Reads the command line. Returns a cli_exit. Ends the process for --help and for unknown options,
 * as argp does. */
int cli_parse_multiply(int argc, char **argv, cli_multiply_options *options);

/* The outcome of a run. */
typedef struct cli_multiply_result {
    int64_t m, n, k, batch_count;
    int64_t sizes[3]; /* sizes of D's array, which lacks the dimension of a vector */
    int dim_count;
    tg_type type, output_type;
    tg_device_info device;
    const char *kernel;
    int thread_count;
    int64_t panel_count;   /* panels of D */
    int64_t resumed_count; /* panels of them that an interrupted run had done */
    double time_s;         /* time of the product, without files; with copies to a GPU and back */
    int is_written;
    int round_count;              /* rounds of the check; 0 if there was none */
    check_freivalds_report check; /* valid if round_count is not 0 */
} cli_multiply_result;

/* Returns the 10^9 floating-point operations of the product. */
double cli_count_gflop(const cli_multiply_result *result);

/* Returns the summary as JSON; NULL when out of memory. The caller frees it. */
char *cli_format_multiply(const cli_multiply_options *options, const cli_multiply_result *result);

/* Prints the summary as a line or two. */
void cli_print_multiply(const cli_multiply_options *options, const cli_multiply_result *result);

/* The loaded files. */
typedef struct cli_multiply_files {
    cli_matrix_file a, b, c, bias;
    int has_c, has_bias;
} cli_multiply_files;

/* Makes the problem of vectors, matrices and batches, as numpy.matmul takes them: sets the problem,
 * D without memory, and result's sizes. Refuses shapes that do not fit. Returns a cli_exit. */
int cli_make_multiply_problem(const cli_multiply_options *options, const cli_multiply_files *files,
                              cli_multiply_result *result, tg_problem *problem,
                              cli_file_error *error);

/* Writes what the run computes, a line "name: value" for each fact. Two runs with the same facts
 * form the same D. CLI_FACTS_BYTES always suffice. */
#define CLI_FACTS_BYTES 4096
void cli_write_facts(const cli_multiply_options *options, const cli_multiply_files *files,
                     const cli_multiply_result *result, char *text, size_t text_bytes);

#endif /* TG_CLI_MULTIPLY_H */
