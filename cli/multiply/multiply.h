/*
 * tilegemm multiply: its options, and what it reports.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TG_CLI_MULTIPLY_H
#define TG_CLI_MULTIPLY_H

#include "cli.h"
#include "freivalds.h"

/* What was asked for. Paths point into argv. */
typedef struct cli_multiply_options {
    const char *a_path, *b_path;
    const char *c_path; /* NULL: none */
    const char *output_path, *device;
    double alpha, beta;
    int has_beta, has_type, has_output_type;
    tg_type type, output_type; /* of A and B, of D; valid where has_ says so */
    tg_precision precision;
    int thread_count; /* 0: the library's default */
    int is_a_transposed, is_b_transposed;
    int is_checked, is_json, is_quiet;
} cli_multiply_options;

/* Reads the command line. Returns a cli_exit; ends the process as argp does for --help and for
 * options it does not know. */
int cli_parse_multiply(int argc, char **argv, cli_multiply_options *options);

/* What was done. */
typedef struct cli_multiply_result {
    int64_t m, n, k;
    tg_type type, output_type;
    tg_device_info device;
    const char *kernel;
    int thread_count;
    double time_s; /* of the product alone: neither files nor planning, nor copies to a GPU */
    int is_written;
    int round_count;              /* of the check; 0 where none was asked for */
    check_freivalds_report check; /* valid where round_count is not 0 */
} cli_multiply_result;

/* The summary as JSON, NULL when out of memory. The caller frees it. */
char *cli_format_multiply(const cli_multiply_options *options, const cli_multiply_result *result);

/* Prints the summary as a line or two. */
void cli_print_multiply(const cli_multiply_options *options, const cli_multiply_result *result);

#endif /* TG_CLI_MULTIPLY_H */
