/*
 * Reads the command line of tilegemm attention.
 *
 * SPDX-License-Identifier: MIT
 */
#include "attention/attention.h"

#include <argp.h>
#include <errno.h>
#include <float.h>
#include <limits.h>

enum attention_option {
    KEY_CAUSAL = 0x100,
    KEY_CAUSAL_TOP_LEFT,
    KEY_SCALE,
    KEY_BEFORE,
    KEY_AFTER,
    KEY_SOFT_CAP,
    KEY_LOG_SUM_EXP,
    KEY_BATCH_INVARIANT,
    KEY_TYPE,
    KEY_DEVICE,
    KEY_CHECK,
    KEY_JSON,
    KEY_FILE /* then the keys of the inputs, in the order of cli_attention_file */
};

static const struct argp_option options_table[] = {
    {.name = "output", .key = 'o', .arg = "D", .doc = "File to write, .npy or .mtx (required)"},
    {.name = "causal",
     .key = KEY_CAUSAL,
     .doc = "Hide later keys; the last query is aligned with the last key"},
    {.name = "causal-top-left",
     .key = KEY_CAUSAL_TOP_LEFT,
     .doc = "Hide later keys; the first query is aligned with the first key"},
    {.name = "scale",
     .key = KEY_SCALE,
     .arg = "X",
     .doc = "Factor of Q K^T (default 1 / sqrt(head size))"},
    {.name = "before",
     .key = KEY_BEFORE,
     .arg = "N",
     .doc = "Hide keys more than N places before the query (default: no limit)"},
    {.name = "after",
     .key = KEY_AFTER,
     .arg = "N",
     .doc = "Hide keys more than N places after the query (default: no limit)"},
    {.name = "soft-cap",
     .key = KEY_SOFT_CAP,
     .arg = "X",
     .doc = "Score s becomes X tanh(s / X) (default: no cap)"},
    {.name = "bias",
     .key = KEY_FILE + CLI_ATTENTION_BIAS,
     .arg = "FILE",
     .doc = "Array to add to the scores; a dimension of 1 is broadcast"},
    {.name = "slopes",
     .key = KEY_FILE + CLI_ATTENTION_SLOPES,
     .arg = "FILE",
     .doc = "ALiBi: one factor for each head of Q"},
    {.name = "log-sum-exp",
     .key = KEY_LOG_SUM_EXP,
     .arg = "FILE",
     .doc = "Also write the logarithm of each row's sum of exponentials"},
    {.name = "query-offsets",
     .key = KEY_FILE + CLI_ATTENTION_QUERY_OFFSETS,
     .arg = "FILE",
     .doc = "First row of Q of each batch entry, then the number of rows"},
    {.name = "key-offsets",
     .key = KEY_FILE + CLI_ATTENTION_KEY_OFFSETS,
     .arg = "FILE",
     .doc = "First row of K and V of each batch entry, then the number of rows"},
    {.name = "key-lengths",
     .key = KEY_FILE + CLI_ATTENTION_KEY_LENGTHS,
     .arg = "FILE",
     .doc = "Number of keys in use, from the first on, in each batch entry"},
    {.name = "pages",
     .key = KEY_FILE + CLI_ATTENTION_PAGES,
     .arg = "FILE",
     .doc = "Table of the pages of each batch entry; K and V consist of pages"},
    {.name = "batch-invariant",
     .key = KEY_BATCH_INVARIANT,
     .doc = "Give a row of D the same bits for every batch, on a GPU too"},
    {.name = "type",
     .key = KEY_TYPE,
     .arg = "TYPE",
     .doc = "Convert Q, K and V to fp32, fp64, bf16 or fp16 (default: the type in the files; fp64 "
            "if all are .mtx)"},
    {.name = "threads", .key = 't', .arg = "N", .doc = "CPU threads, 1 to 1024 (default: all)"},
    {.name = "device",
     .key = KEY_DEVICE,
     .arg = "NAME",
     .doc = "cpu, cuda or cuda:N (default: TILEGEMM_DEVICE, else cpu)"},
    {.name = "check",
     .key = KEY_CHECK,
     .doc = "Compare D with FP64 before it is written; a wrong D is not written"},
    {.name = "json", .key = KEY_JSON, .doc = "Print the summary as JSON"},
    {.name = "quiet", .key = 'q', .doc = "Print only errors"},
    {0},
};

static const char doc[] =
    "Compute D = softmax(scale Q K^T + bias) V from arrays in files.\v"
    "Arrays are [batch][head][row][element]. An array of three dimensions has one batch entry, an "
    "array of two has one batch entry and one head. K and V may have fewer heads than Q; heads of "
    "Q then share them. A batch of one K and V serves all entries. D has the dimensions of Q.\n\n"
    "Files are those of tilegemm multiply. The bias has the dimensions of the scores, "
    "[batch][head][query][key]; leading dimensions may be left out. The bias and the slopes are "
    "converted to the type of the sums, fp64 if Q is fp64 and fp32 otherwise.\n\n"
    "Lists hold 32-bit or 64-bit integers. Offsets begin with 0 and have one number more than "
    "there are batch entries. Entry b has rows offsets[b] .. offsets[b + 1] - 1 of Q, or of K and "
    "V, in arrays of one batch entry. Rows of D, of the bias and of the log-sum-exp are placed as "
    "those of Q. With pages, K and V are [page][head][row][element], and key j of entry b is row j "
    "% rows of page pages[b][j / rows]. Rows behind the entry's key length are not used.\n\n"
    "The log-sum-exp has the type of the sums and the dimensions of Q except the last. A row "
    "without visible keys has -Inf.\n\n"
    "--check compares rows of D with a reference in FP64 (long double for fp64): all rows of small "
    "arrays, else a sample whose size is printed. Every element must be within the bound of "
    "tilegemm_attention.h.\n\n"
    "D and the log-sum-exp are written under temporary names and renamed at the end. They may be "
    "inputs, and a failure leaves existing files unchanged.\n\n"
    "Examples:\n"
    "  tilegemm attention q.npy k.npy v.npy -o d.npy --causal --check\n"
    "  tilegemm attention q.npy k.npy v.npy -o d.npy --causal-top-left --before 128\n"
    "  tilegemm attention x.npz:q x.npz:k x.npz:v -o d.npy --slopes slopes.npy\n"
    "  tilegemm attention q.npy k.npy v.npy -o d.npy --pages pages.npy\n\n"
    "Exit codes: 0 done, 1 wrong result or failed work (no space, no memory), 2 wrong usage or "
    "input, 3 no such device or file, or an input that is not a readable "
    "file.";

static error_t parse_path(char *arg, struct argp_state *state, cli_attention_options *options)
{
    if (state->arg_num > CLI_ATTENTION_V)
        argp_error(state, "'%s' is one file too many; pass three, Q, K and V", arg);
    else
        options->paths[state->arg_num] = arg;
    return 0;
}

static void check_options(struct argp_state *state, const cli_attention_options *options)
{
    if (!options->paths[CLI_ATTENTION_V])
        argp_error(state, "pass three files, Q, K and V");
    if (!options->output_path)
        argp_error(state, "pass the file to write: -o D.npy or -o D.mtx");
    if (options->is_json && options->is_quiet)
        argp_error(state, "--json and --quiet exclude each other; pass one");
    if (options->paths[CLI_ATTENTION_PAGES] && options->paths[CLI_ATTENTION_KEY_OFFSETS])
        argp_error(state, "--pages and --key-offsets exclude each other; pass --key-lengths with "
                          "--pages");
}

static int parse_type(const char *text, cli_attention_options *options)
{
    options->has_type = 1;
    if (!cli_parse_type("--type", text, &options->type))
        return 0;
    if (options->type <= TG_TYPE_FP16)
        return 1;
    cli_print_error("--type = %s has no attention; pass fp32, fp64, bf16 or fp16", text);
    return 0;
}

/* Reads the options whose value may be wrong. */
static error_t parse_value(int key, const char *arg, cli_attention_options *options)
{
    int is_valid = 1;
    switch (key) {
    case KEY_SCALE:
        options->has_scale = 1;
        is_valid = cli_parse_double("--scale", arg, -DBL_MAX, DBL_MAX, &options->scale);
        break;
    case KEY_SOFT_CAP:
        is_valid = cli_parse_double("--soft-cap", arg, 0, DBL_MAX, &options->soft_cap);
        break;
    case KEY_BEFORE:
        is_valid = cli_parse_int("--before", arg, 0, INT_MAX, &options->keys_before);
        break;
    case KEY_AFTER:
        is_valid = cli_parse_int("--after", arg, 0, INT_MAX, &options->keys_after);
        break;
    case KEY_TYPE:
        is_valid = parse_type(arg, options);
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
    cli_attention_options *options = state->input;
    if (key >= KEY_FILE && key < KEY_FILE + CLI_ATTENTION_FILE_COUNT) {
        options->paths[key - KEY_FILE] = arg;
        return 0;
    }
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
    case KEY_CAUSAL:
        options->causal = TG_CAUSAL_BOTTOM_RIGHT;
        return 0;
    case KEY_CAUSAL_TOP_LEFT:
        options->causal = TG_CAUSAL_TOP_LEFT;
        return 0;
    case KEY_LOG_SUM_EXP:
        options->log_sum_exp_path = arg;
        return 0;
    case KEY_BATCH_INVARIANT:
        options->is_batch_invariant = 1;
        return 0;
    case KEY_DEVICE:
        options->device = arg;
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

const struct argp cli_argp_attention = {
    .options = options_table, .parser = parse_option, .args_doc = "Q K V -o D", .doc = doc};

int cli_parse_attention(int argc, char **argv, cli_attention_options *options)
{
    *options = (cli_attention_options){.keys_before = -1, .keys_after = -1};
    return cli_parse_words(argc, argv, &cli_argp_attention, options);
}
