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
    CLI_ATTENTION_QUERY_OFFSETS, /* lists of whole numbers from here on */
    CLI_ATTENTION_KEY_OFFSETS,
    CLI_ATTENTION_KEY_LENGTHS,
    CLI_ATTENTION_PAGES,
    CLI_ATTENTION_FILE_COUNT
};

/* The inputs of a run: those whose path is given. */
typedef struct cli_attention_inputs {
    cli_matrix_file files[CLI_ATTENTION_FILE_COUNT];
    int32_t *lists[CLI_ATTENTION_FILE_COUNT]; /* owned; the numbers of a list, row-major, or NULL */
} cli_attention_inputs;

/* The options as given. Paths point into argv. */
typedef struct cli_attention_options {
    const char *paths[CLI_ATTENTION_FILE_COUNT]; /* NULL: none */
    const char *output_path, *device;
    const char *log_sum_exp_path; /* NULL: none */
    int has_type, has_scale, is_batch_invariant;
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
    int64_t sizes[4]; /* sizes of D's array, which has the dimensions of Q's; log_sum_exp lacks the
                         last of them, or has 1 instead of the only one */
    int dim_count;
    tg_device_info device;
    const char *kernel;
    double time_s; /* time of the attention, without files and planning */
    int is_written;
    int has_check;
    check_attention_result check; /* valid if has_check is 1 */
} cli_attention_result;

/* The dimensions of an array as [batch][head][row][element], 1 where it has none. */
typedef struct cli_head_shape {
    int64_t sizes[4];
} cli_head_shape;

cli_head_shape cli_find_head_shape(const cli_matrix_file *file);

/* Writes the dimensions that the file has into `text`, and returns it. */
const char *cli_format_head_shape(const cli_matrix_file *file, char text[96]);

/* Reads the numbers of a list, which are integers of 32 or 64 bits, into *values, which the caller
 * frees. Returns a cli_exit. */
int cli_load_attention_list(cli_matrix_file *file, cli_memory *memory, cli_progress *progress,
                            int32_t **values, cli_file_error *error);

/* Refuses offsets that are no vector of one number or more. Returns a cli_exit. */
int cli_check_offset_lists(const cli_attention_inputs *inputs, cli_file_error *error);

/* Returns the batch entries of offsets. */
int64_t cli_count_offset_entries(const cli_attention_inputs *inputs, int file);

/* Returns the rows of the longest entry of offsets. */
int64_t cli_find_longest_entry(const cli_attention_inputs *inputs, int file);

/* Adds the lists to an attention that has its sizes. Refuses lists that do not fit the attention, Q
 * or K. Returns a cli_exit. */
int cli_set_attention_lists(const cli_attention_inputs *inputs, tg_attention *attention,
                            cli_file_error *error);

/* Makes the attention from loaded files. Sets result's attention and sizes; outputs have no memory
 * yet. Refuses shapes that do not fit. Returns a cli_exit. */
int cli_make_attention(const cli_attention_options *options, const cli_attention_inputs *inputs,
                       tg_type type, cli_attention_result *result, cli_file_error *error);

/* Returns the summary as JSON; NULL when out of memory. The caller frees it. */
char *cli_format_attention(const cli_attention_options *options,
                           const cli_attention_result *result);

/* Prints the summary as a line or two. */
void cli_print_attention(const cli_attention_options *options, const cli_attention_result *result);

#endif /* TG_CLI_ATTENTION_H */
