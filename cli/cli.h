/*
 * Declares one function for each command, exit codes, error lines, and the reading of option
 * values. Depends on include/ alone.
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

/* Runs one command: argv[0] is "tilegemm <name>", the rest are its own arguments. Returns a
 * cli_exit. Wrong options end the process with CLI_EXIT_USAGE, --help and --version with
 * CLI_EXIT_OK. */
#define CLI_COMMAND(name, summary)                                                                 \
    int cli_run_##name(int argc, char **argv);                                                     \
    extern const struct argp cli_argp_##name; /* options and texts of its --help and manual */
#include "commands.def"
#undef CLI_COMMAND

/* Prints "tilegemm: " (or "tilegemm <command>: " while one runs), the text and a newline to
 * stderr. `format` has no newline. */
void cli_print_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Returns the exit code of a library status: 0 for OK; 2 for INVALID_ARGUMENT, SIZE_OVERFLOW,
 * OVERLAP and UNSUPPORTED; 3 for UNKNOWN_NAME and NO_DEVICE; 1 for the others. */
int cli_exit_code(tg_status status);

/* Prints the library's detail of the last failure, or the text of the status if there is none, as
 * an error line. Returns cli_exit_code(status). */
int cli_report_status(tg_status status);

/* Creates a context, and prints an error line if that fails. Returns a cli_exit: CLI_EXIT_USAGE for
 * an instruction set that no build knows, CLI_EXIT_MISSING for a device that is not there or an
 * instruction set that the device lacks. */
int cli_create_context(const tg_context_options *options, tg_context **context);

/* The options that several commands share. */
enum { CLI_GPU_MOST = 4 };
typedef struct cli_query {
    const char *device, *isa, *kernel, *shape; /* NULL: not given */
    const char *gpus[CLI_GPU_MOST];            /* the first is NULL if none is given */
    int gpu_count;
    int tile; /* 0: not given */
    int has_json;
    /* The command sets these. A shape or a tile is refused without them. */
    const char *shape_example; /* for error lines */
    int has_several_gpus;      /* 1: --gpu may be repeated */
    int tile_max;
} cli_query;

/* Keys of these options; a command numbers its own from CLI_KEY_OWN. */
enum cli_query_key {
    CLI_KEY_ISA = 0x100,
    CLI_KEY_DEVICE,
    CLI_KEY_GPU,
    CLI_KEY_TILE,
    CLI_KEY_OWN,
    CLI_KEY_JSON = 'j',
    CLI_KEY_KERNEL = 'k'
};

/* Handles one option of cli_query_key, or the shape, for the parser of a command. */
error_t cli_take_query_option(int key, char *arg, struct argp_state *state, cli_query *query);

/* The parser of a command that has only these options; its input is a cli_query. */
error_t cli_parse_query_option(int key, char *arg, struct argp_state *state);

/* Runs argp_parse for a command whose input is `input`. Returns a cli_exit. */
int cli_parse_words(int argc, char **argv, const struct argp *argp, void *input);

/* Refuses a command line without a shape. */
void cli_require_shape(struct argp_state *state, const cli_query *query);

/* Returns 1 for D = A B of row-major matrices of one type without gaps, and nothing else. */
int cli_is_plain_product(const tg_problem *problem);

/* Reads a shape MxNxK without further parts: an FP32 product with each size from 1 to `most`.
 * `what` ("the page shows") is the subject and the verb of the error line. Returns a cli_exit. */
int cli_parse_plain_shape(const char *shape, const char *what, int64_t most, tg_problem *problem);

/* Read an option's value; `option` ("--threads") names it in the error line. Return 1, or 0 after
 * printing what is wrong, the limits and the remedy. */
int cli_parse_type(const char *option, const char *text, tg_type *type);
int cli_parse_precision(const char *option, const char *text, tg_precision *precision);
int cli_parse_int(const char *option, const char *text, int low, int high, int *value);
int cli_parse_threads(const char *text, int *count); /* reads the value of --threads */
int cli_parse_bytes(const char *option, const char *text, int64_t *bytes);
int cli_parse_double(const char *option, const char *text, double low, double high, double *value);

#endif /* TG_CLI_H */
