/*
 * What the files of the command share: one function a command, exit codes, error lines, and the
 * reading of option values. Depends on include/ alone.
 */
#ifndef TG_CLI_H
#define TG_CLI_H

#include "tilegemm.h"

#include <argp.h>

/* Exit codes of every command. */
enum cli_exit {
    CLI_EXIT_OK = 0,
    CLI_EXIT_WRONG = 1,  /* a result is wrong, or the work itself failed */
    CLI_EXIT_USAGE = 2,  /* an argument is wrong */
    CLI_EXIT_MISSING = 3 /* no such device, kernel, peer or file */
};

/* Runs one command: argv[0] is "tilegemm <name>", the rest its own arguments. Returns a cli_exit.
 * Wrong options end the process with CLI_EXIT_USAGE, --help and --version with CLI_EXIT_OK. */
#define CLI_COMMAND(name, summary) int cli_run_##name(int argc, char **argv);
#include "commands.def"
#undef CLI_COMMAND

/* Prints "tilegemm: " (or "tilegemm <command>: " while one runs), the text and a newline to
 * stderr. `format` has no newline. */
void cli_print_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The exit code that stands for a library status: OK 0; INVALID_ARGUMENT, SIZE_OVERFLOW, OVERLAP
 * and UNSUPPORTED 2; UNKNOWN_NAME and NO_DEVICE 3; the others 1. */
int cli_exit_code(tg_status status);

/* Prints the library's detail of the last failure (its one-line text where there is none) as
 * cli_print_error does and returns cli_exit_code(status). */
int cli_report_status(tg_status status);

/* tg_create_context, with an error line where it fails. Returns a cli_exit: an instruction set that
 * no build knows is CLI_EXIT_USAGE, one that the device lacks, or a device, CLI_EXIT_MISSING. */
int cli_create_context(const tg_context_options *options, tg_context **context);

/* What the commands that only show something are asked for. */
typedef struct cli_query {
    const char *device, *isa; /* NULL: not given */
    int has_json;
} cli_query;

enum cli_query_key { CLI_KEY_ISA = 0x100, CLI_KEY_DEVICE, CLI_KEY_JSON = 'j' };

/* Reads the command line of such a command, whose `options` have keys of cli_query_key. Returns a
 * cli_exit. */
int cli_parse_query(int argc, char **argv, const struct argp_option *options, const char *doc,
                    cli_query *query);

/* argp_parse for a command whose input is `input`. Returns a cli_exit. */
int cli_parse_words(int argc, char **argv, const struct argp *argp, void *input);

/* For the parser of a command that takes one shape: its word, and, at the end, whether there was
 * one. `example` is for the error lines. */
void cli_take_shape(struct argp_state *state, const char *word, const char *example,
                    const char **shape);
void cli_require_shape(struct argp_state *state, const char *shape, const char *example);

/* Reads a shape that is MxNxK alone: D = A B of row-major FP32, each size from 1 to `most`. `what`
 * ("the page shows") is for the error line. Returns a cli_exit. */
int cli_parse_plain_shape(const char *shape, const char *what, int64_t most, tg_problem *problem);

/* Read an option's value; `option` ("--threads") names it in the error line. Return 1, or 0 after
 * printing what is wrong, the limits and the remedy. */
int cli_parse_type(const char *option, const char *text, tg_type *type);
int cli_parse_precision(const char *option, const char *text, tg_precision *precision);
int cli_parse_int(const char *option, const char *text, int low, int high, int *value);
int cli_parse_double(const char *option, const char *text, double low, double high, double *value);

#endif /* TG_CLI_H */
