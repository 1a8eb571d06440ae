/* Reads the command's own options and calls the function of the command that is named. */
#include "cli.h"
#include "files/standard_streams.h"

#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct command {
    const char *name;
    const char *full_name; /* argv[0] of the command; it heads its error lines */
    const char *summary;
    int (*run)(int argc, char **argv);
} command;

static const command commands[] = {
#define CLI_COMMAND(name, summary) {#name, "tilegemm " #name, summary, cli_run_##name},
#include "commands.def"
#undef CLI_COMMAND
};
enum { command_count = sizeof commands / sizeof commands[0] };

typedef struct front {
    const command *chosen; /* NULL until an argument names one */
    int first_arg;         /* index of that argument in argv */
} front;

/* argp asks for this text before its list of options: the commands come first. */
static char *list_commands(int key, const char *text, void *input)
{
    (void)input;
    if (key != ARGP_KEY_HELP_POST_DOC)
        return (char *)(uintptr_t)text;
    char *list = NULL;
    size_t list_bytes = 0;
    FILE *stream = open_memstream(&list, &list_bytes);
    if (!stream)
        return (char *)(uintptr_t)text;
    fprintf(stream, "Commands:\n");
    for (int i = 0; i < command_count; i++)
        fprintf(stream, "  %-10s %s\n", commands[i].name, commands[i].summary);
    fprintf(stream, "\n%s", text);
    fclose(stream);
    return list;
}

static error_t parse_front(int key, char *arg, struct argp_state *state)
{
    front *parsed = state->input;
    switch (key) {
    case ARGP_KEY_ARG:
        for (int i = 0; i < command_count; i++) {
            if (strcmp(arg, commands[i].name) == 0)
                parsed->chosen = &commands[i];
        }
        if (!parsed->chosen)
            argp_error(state, "no command is named '%s'", arg);
        parsed->first_arg = state->next - 1;
        state->next = state->argc; /* the rest of the words belongs to the command */
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "name a command");
        return EINVAL;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

int main(int argc, char **argv)
{
    static char version_text[64];
    static char program_name[] = "tilegemm";
    program_invocation_name = program_name;
    if (cli_hold_standard_streams() != CLI_EXIT_OK)
        return CLI_EXIT_WRONG;
    snprintf(version_text, sizeof version_text, "tilegemm %s", tg_get_version());
    argp_program_version = version_text;
    argp_err_exit_status = CLI_EXIT_USAGE;
    if (argc > 0)
        argv[0] = program_name;

    const struct argp argp = {
        .parser = parse_front,
        .args_doc = "COMMAND [OPTION...]",
        .doc = "Multiply matrices, measure the kernels that do it, and list them.\v"
               "Each command has its own --help with examples. Exit codes: 0 done, 1 wrong "
               "result or failure, 2 wrong usage, 3 no such device, kernel, library or file.",
        .help_filter = list_commands,
    };
    front parsed = {NULL, 0};
    if (argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &parsed) != 0)
        return CLI_EXIT_USAGE;

    static char full_name[64]; /* exit handlers use it */
    snprintf(full_name, sizeof full_name, "%s", parsed.chosen->full_name);
    program_invocation_name = full_name;
    argv[parsed.first_arg] = full_name;
    return parsed.chosen->run(argc - parsed.first_arg, argv + parsed.first_arg);
}
