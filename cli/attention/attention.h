/*
 * Declares the options of tilegemm attention and its report.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TG_CLI_ATTENTION_H
#define TG_CLI_ATTENTION_H

#include "attention_check.h"
#include "cli.h"
#include "files/matrix_file.h"
#include "tilegemm_attention.h"

/* The files of an attention, in the order in which they are read. */
enum cli_attention_file {
    CLI_ATTENTION_Q,
    CLI_ATTENTION_K,
    CLI_ATTENTION_V,
    CLI_ATTENTION_BIAS,
    CLI_ATTENTION_SLOPES,
    CLI_ATTENTION_FILE_COUNT
};

/* The options as given. Paths point into argv. */
typedef struct cli_attention_options {
    const char *paths[CLI_ATTENTION_FILE_COUNT]; /* NULL: none */
    const char *output_path, *device;
    int has_type, has_scale;
    tg_type type;
    tg_causal causal;
    double scale, soft_cap;
    int keys_before, keys_after; /* -1: no limit */
    int thread_count;            /* 0: the library's default */
    int is_checked, is_json, is_quiet;
} cli_attention_options;

/* Reads the command line. Returns a cli_exit. Ends the process for --help and for unknown options,
 * as argp does. */
int cli_parse_attention(int argc, char **argv, cli_attention_options *options);

/* The outcome of a run. */
typedef struct cli_attention_result {
    tg_attention attention;
    char text[1024];  /* the attention as text */
    int64_t sizes[4]; /* sizes of D's array, which has the dimensions of Q's */
    int dim_count;
    tg_device_info device;
    const char *kernel;
    double time_s; /* time of the attention, without files and planning */
    int is_written;
    int has_check;
    check_attention_result check; /* valid if has_check is 1 */
} cli_attention_result;

/* Makes the attention of loaded files: sets result's attention, D without memory, and its sizes.
 * Refuses shapes that do not fit. Returns a cli_exit. */
int cli_make_attention(const cli_attention_options *options, const cli_matrix_file *files,
                       tg_type type, cli_attention_result *result, cli_file_error *error);

/* Returns the summary as JSON; NULL when out of memory. The caller frees it. */
char *cli_format_attention(const cli_attention_options *options,
                           const cli_attention_result *result);

/* Prints the summary as a line or two. */
void cli_print_attention(const cli_attention_options *options, const cli_attention_result *result);

#endif /* TG_CLI_ATTENTION_H */
